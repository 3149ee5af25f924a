//! The recipe of a table: what its bytes depend on. Its hash is the name of the table.
//!
//! Lines of compact JSON. The first one has the rules of the sweep, each other one a row: the values of its point, and
//! the outputs with their names and digests, or `null` if the point failed. Equal recipes are equal bytes. There may be
//! a million rows, so they are written and read one by one, like the rows of a [`LongText`].

use std::io::{self, BufRead, BufWriter, Write};

use serde::{Deserialize, Serialize};

use ce_model::digest::{Digest, Hasher, PIECE};

/// The newest version of recipes that this program writes and reads. Since version 2, fields of JSON keep their types. Since version 4, results may be
/// numbers that JSON does not have, and labels are in no path of the directory.
const VERSION: u32 = 4;

/// The rules of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecipeHeader {
    /// The version of the recipe.
    #[serde(rename = "recipe")]
    pub version: u32,
    /// The columns that outputs become: the lines of the sweep's file `columns`.
    pub columns: Vec<String>,
    /// Whether failed points become rows.
    pub allow_failed: bool,
    /// By which rule replicates ended, if they did by results: since version 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicates: Option<String>,
    /// The names of the columns of the points.
    pub names: Vec<String>,
    /// Those of them that are labels: since version 4.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// The names of the outputs of the sweep's body.
    pub outputs: Vec<String>,
}

impl Default for RecipeHeader {
    fn default() -> Self {
        Self {
            version: VERSION,
            columns: Vec::new(),
            allow_failed: false,
            replicates: None,
            names: Vec::new(),
            labels: Vec::new(),
            outputs: Vec::new(),
        }
    }
}

impl RecipeHeader {
    /// The same rules as an earlier version of this program wrote them. `has_fields` says whether columns are made of fields of JSON.
    #[must_use]
    pub fn before_version_4(&self, has_fields: bool) -> Self {
        let version = match &self.replicates {
            Some(_) => 3,
            None if has_fields => 2,
            None => 1,
        };
        Self { version, labels: Vec::new(), ..self.clone() }
    }
}

/// An output of a point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecipeFile<N = String> {
    /// Its name in the storage.
    pub file: N,
    #[serde(flatten)]
    pub digest: Digest,
}

/// A row of a recipe, with names of type `N`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecipeRow<N = String> {
    /// The values of the point, a text for each column.
    pub values: Vec<N>,
    /// The outputs, in the order of their numbers; `None` if the point failed.
    #[serde(deserialize_with = "Option::deserialize")]
    pub outputs: Option<Vec<RecipeFile<N>>>,
}

/// Writes the text of a recipe, row by row.
#[derive(Debug)]
pub struct RecipeWriter<W> {
    out: W,
}

impl<W: Write> RecipeWriter<W> {
    /// Begins a recipe.
    pub fn begin(out: W, header: &RecipeHeader) -> io::Result<Self> {
        let mut writer = Self { out };
        writer.line(header)?;
        Ok(writer)
    }

    /// Adds a row: the values of its point, and the names and digests of its outputs, in order.
    pub fn row<'a>(
        &mut self,
        values: impl IntoIterator<Item = &'a str>,
        outputs: impl IntoIterator<Item = (&'a str, &'a Digest)>,
    ) -> io::Result<()> {
        let outputs = Some(
            outputs
                .into_iter()
                .map(|(file, digest): (&'a str, &Digest)| RecipeFile { file, digest: *digest })
                .collect(),
        );
        self.line(&RecipeRow { values: values.into_iter().collect(), outputs })
    }

    /// Adds a row for a point that failed.
    pub fn failed_row<'a>(&mut self, values: impl IntoIterator<Item = &'a str>) -> io::Result<()> {
        self.line(&RecipeRow { values: values.into_iter().collect(), outputs: None })
    }

    /// Ends the recipe. Returns the writer that has it.
    pub fn finish(self) -> W {
        self.out
    }

    fn line(&mut self, line: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut self.out, line)?;
        self.out.write_all(b"\n")
    }
}

/// The reason why a text is not a recipe.
#[derive(Debug, thiserror::Error)]
pub enum RecipeError {
    /// The text could not be read.
    #[error("cannot read the recipe")]
    Read(#[from] io::Error),
    /// A line is not as expected.
    #[error("line {line} of the recipe cannot be understood")]
    Line {
        /// The number of the line, from 1.
        line: usize,
        /// The cause.
        source: serde_json::Error,
    },
    /// It is of a version that this program does not know.
    #[error("the recipe has version {0}, and this program reads up to {VERSION}")]
    Version(u32),
}

/// Reads a recipe, row by row.
#[derive(Debug)]
pub struct RecipeReader<R> {
    text: R,
    line: usize,
    header: RecipeHeader,
    buffer: Vec<u8>,
}

impl<R: BufRead> RecipeReader<R> {
    /// Reads the first line.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be read, or does not begin a recipe.
    pub fn begin(text: R) -> Result<Self, RecipeError> {
        let header = RecipeHeader::default();
        let mut reader = Self { text, line: 0, header, buffer: Vec::new() };
        reader.next_line()?;
        let header: RecipeHeader = reader.parse()?;
        if !(1..=VERSION).contains(&header.version) {
            return Err(RecipeError::Version(header.version));
        }
        reader.header = header;
        Ok(reader)
    }

    /// The rules of the table.
    pub const fn header(&self) -> &RecipeHeader {
        &self.header
    }

    /// Reads the next line into the buffer. Returns whether there was one.
    fn next_line(&mut self) -> Result<bool, RecipeError> {
        self.buffer.clear();
        self.line += 1;
        Ok(self.text.read_until(b'\n', &mut self.buffer)? > 0)
    }

    fn parse<'a, T: Deserialize<'a>>(&'a self) -> Result<T, RecipeError> {
        serde_json::from_slice(&self.buffer)
            .map_err(|source| RecipeError::Line { line: self.line, source })
    }
}

impl<R: BufRead> Iterator for RecipeReader<R> {
    type Item = Result<RecipeRow, RecipeError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.next_line() {
            Ok(true) => Some(self.parse()),
            Ok(false) => None,
            Err(error) => Some(Err(error)),
        }
    }
}

/// A text that is too long to be held in memory, and its digest.
///
/// It is written anew whenever it is needed.
pub struct LongText<'a> {
    write: Box<WriteLines<'a>>,
    digest: Digest,
}

/// Writes a text: the same bytes each time.
type WriteLines<'a> = dyn Fn(&mut dyn Write) -> io::Result<()> + Send + Sync + 'a;

/// Hashes everything that is written to it.
struct HashedText<'a>(&'a mut Hasher);

impl Write for HashedText<'_> {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        self.0.update(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> LongText<'a> {
    /// The text that a function writes: the same each time, and without an error of its own.
    pub fn from_writer(
        write: impl Fn(&mut dyn Write) -> io::Result<()> + Send + Sync + 'a,
    ) -> Self {
        let mut hasher = Hasher::default();
        let mut text = BufWriter::with_capacity(PIECE, HashedText(&mut hasher));
        let written = write(&mut text).and_then(|()| text.flush());
        debug_assert!(written.is_ok(), "hashing a text cannot fail");
        drop(text);
        let digest = hasher.finish();
        Self { write: Box::new(write), digest }
    }

    /// A text that is in memory after all.
    pub fn of_bytes(bytes: impl AsRef<[u8]> + Send + Sync + 'a) -> Self {
        let digest = Digest::hash_bytes(bytes.as_ref());
        Self { write: Box::new(move |out| out.write_all(bytes.as_ref())), digest }
    }

    /// Writes it.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        (self.write)(out)
    }

    /// Its digest.
    pub const fn digest(&self) -> &Digest {
        &self.digest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> RecipeHeader {
        let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
        RecipeHeader {
            columns: texts(&["00 seconds"]),
            allow_failed: true,
            names: texts(&["x", "y \"z\""]),
            labels: texts(&["x"]),
            outputs: texts(&["out", "plots/"]),
            ..RecipeHeader::default()
        }
    }

    fn recipe() -> Vec<u8> {
        recipe_with(&header())
    }

    fn recipe_with(header: &RecipeHeader) -> Vec<u8> {
        let (file, directory) =
            (Digest::hash_bytes(b"17\n"), Digest { bytes: Some(3), ..Digest::hash_bytes(b"") });
        let mut writer = RecipeWriter::begin(Vec::new(), header).unwrap();
        let outputs = [("c_a/0/00/1", &file), ("c_a/0/01/1", &directory)];
        writer.row(["1", "\nä"], outputs).unwrap();
        writer.failed_row(["2", ""]).unwrap();
        writer.finish()
    }

    #[test]
    fn a_recipe_is_these_bytes() {
        let recipe = recipe();
        let text = concat!(
            r#"{"recipe":4,"columns":["00 seconds"],"allow_failed":true,"names":["x","y \"z\""],"#,
            r#""labels":["x"],"outputs":["out","plots/"]}"#,
            "\n",
            r#"{"values":["1","\nä"],"outputs":[{"file":"c_a/0/00/1","#,
            r#""sha1":"ad48103e4fc71796e9708cafc43adeed0d1076b7","#,
            r#""blake3":"BLAKE3-OF-FILE","size":3},"#,
            r#"{"file":"c_a/0/01/1","sha1":"da39a3ee5e6b4b0d3255bfef95601890afd80709","#,
            r#""blake3":"BLAKE3-OF-NONE","size":0,"bytes":3}]}"#,
            "\n",
            r#"{"values":["2",""],"outputs":null}"#,
            "\n",
        );
        let text = text.replace("BLAKE3-OF-FILE", &Digest::hash_bytes(b"17\n").blake3.full());
        let text = text.replace("BLAKE3-OF-NONE", &Digest::hash_bytes(b"").blake3.full());
        assert_eq!(std::str::from_utf8(&recipe).unwrap(), text);
    }

    #[test]
    fn a_recipe_is_read_as_it_was_written() {
        let recipe = recipe();
        let mut reader = RecipeReader::begin(&*recipe).unwrap();
        assert_eq!(*reader.header(), header());
        let rows: Vec<RecipeRow> = reader.by_ref().map(Result::unwrap).collect();
        assert_eq!(rows[0].values, ["1", "\nä"]);
        let files = rows[0].outputs.as_ref().unwrap();
        assert_eq!((&*files[0].file, files[0].digest), ("c_a/0/00/1", Digest::hash_bytes(b"17\n")));
        assert!(files[1].digest.is_directory());
        assert_eq!((&*rows[1].values[0], &rows[1].outputs, rows.len()), ("2", &None, 2));
    }

    #[test]
    fn earlier_recipes_had_a_version_for_their_rules_and_no_labels() {
        let rule = "6..70 until seconds ±5%";
        let until = RecipeHeader { replicates: Some(rule.to_owned()), ..header() };
        let of_until = format!(r#""replicates":"{rule}","#);
        for (header, version, replicates) in [
            (header().before_version_4(false), 1, ""),
            (header().before_version_4(true), 2, ""),
            (until.before_version_4(true), 3, &*of_until),
            (until.before_version_4(false), 3, &of_until),
        ] {
            let text = String::from_utf8(recipe_with(&header)).unwrap();
            let first = format!(
                r#"{{"recipe":{version},"columns":["00 seconds"],"allow_failed":true,{replicates}"names":["x","y \"z\""],"outputs":["#
            );
            assert!(text.starts_with(&first), "{text}");
            let reader = RecipeReader::begin(text.as_bytes()).unwrap();
            assert_eq!((reader.header().clone(), reader.count()), (header, 2));
        }
    }

    #[test]
    fn invalid_recipes_are_refused() {
        for text in ["", "{}", "x\n", r#"{"recipe":1}"#] {
            let read = RecipeReader::begin(text.as_bytes());
            assert!(matches!(read, Err(RecipeError::Line { line: 1, .. })), "{text}");
        }
        let newer = String::from_utf8(recipe()).unwrap().replacen(":4,", ":5,", 1);
        assert!(matches!(RecipeReader::begin(newer.as_bytes()), Err(RecipeError::Version(5))));
        let recipe = recipe();
        let cut = &recipe[..recipe.len() - 4];
        let rows: Vec<_> = RecipeReader::begin(cut).unwrap().collect();
        assert!(matches!(rows[..], [Ok(_), Err(RecipeError::Line { line: 3, .. })]), "{rows:?}");
        let lacking = recipe.split(|it| *it == b'\n').next().unwrap();
        let text = [lacking, b"\n{\"values\":[]}\n"].concat();
        assert!(RecipeReader::begin(&*text).unwrap().next().unwrap().is_err());
    }

    #[test]
    fn a_text_is_the_same_however_it_is_made() {
        let text = b"a\nb\n";
        let in_pieces =
            LongText::from_writer(|out| text.chunks(1).try_for_each(|it| out.write_all(it)));
        for it in [in_pieces, LongText::of_bytes(text)] {
            let mut written = Vec::new();
            it.write(&mut written).unwrap();
            assert_eq!((it.digest(), &*written), (&Digest::hash_bytes(text), &text[..]));
        }
    }
}
