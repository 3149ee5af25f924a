//! Columns of files: cells of a sheet that are paths, and the files that a sweep binds names to in their place.
//!
//! The sheet that a user gives has paths. The sheet that is the value of an input has the digests of these files, so that neither its name nor
//! that of a call says where a file is. A sheet of the task itself keeps its paths, which lead to files of the task.

use std::borrow::Cow;
use std::collections::HashMap;
use std::mem;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::points::{SweepPoints, separators};
use super::sheet::{
    Interner, SheetRecord, SheetRecords, json_fields, json_text, read_placed, trimmed,
};
use super::{SheetFault, SheetFormat, SheetProblem, add_csv_line};
use crate::digest::{Blake3, Digest, Sha1};
use crate::name::{TaskPath, suffix};
use crate::suggest::UnknownName;

/// A line of the file `files`: a column whose cells are paths.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileColumn {
    /// Its name.
    pub name: Box<str>,
    /// The words that stand for no file. The empty text does so, too.
    pub words_for_none: Vec<Box<str>>,
}

impl FileColumn {
    /// Reads a line: a name, and the words that stand for no file.
    pub fn read(line: &str) -> Self {
        let mut words = line.split_whitespace().map(Box::from);
        Self { name: words.next().unwrap_or_default(), words_for_none: words.collect() }
    }

    /// The line.
    pub fn text(&self) -> String {
        let words = self.words_for_none.iter().map(|word| &**word);
        [&*self.name].into_iter().chain(words).collect::<Vec<_>>().join(" ")
    }

    /// Whether a cell with this text stands for no file.
    fn stands_for_no_file(&self, text: &str) -> bool {
        text.is_empty() || self.words_for_none.iter().any(|word| **word == *text)
    }
}

/// What a cell of a column of files stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileCell {
    /// An empty file.
    Nothing,
    /// A file or directory with these contents, which is an input of its own in the storage.
    Contents(Digest),
    /// A file of the task.
    Own(TaskPath),
}

/// The beginning of a cell that is a digest.
const DIGEST: &str = "digest:";

/// The beginning of the level of a file of the task.
const OWN: &str = "./";

/// The beginning of the level of a text that is no file.
const NO_FILE: &str = "?";

impl FileCell {
    /// Reads the level of a column of files of [`SweepPoints`].
    ///
    /// # Errors
    ///
    /// Fails with the text of the sheet if it can be no file.
    pub fn of_level(level: &str) -> Result<Self, &str> {
        let no_file = || level.strip_prefix(NO_FILE).unwrap_or(level);
        match level.strip_prefix(OWN) {
            _ if level.is_empty() => Ok(Self::Nothing),
            Some(path) => path.parse().map(Self::Own).map_err(|_| no_file()),
            None => digest_of_cell(level).map(Self::Contents).ok_or_else(no_file),
        }
    }
}

/// The cell of a sheet that is a value: the whole digest of a file or directory, and the suffix of its path.
pub fn cell_of_digest(digest: &Digest, path: &str) -> String {
    let Digest { sha1, blake3, size, bytes } = digest;
    let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let bytes = bytes.map(|bytes| format!("-{bytes}")).unwrap_or_default();
    format!("{DIGEST}{}-{}-{size}{bytes}{}", sha1.full(), blake3.full(), suffix(name))
}

/// The digest in such a cell, if a text is one.
pub fn digest_of_cell(text: &str) -> Option<Digest> {
    let whole = text.split_once('.').map_or(text, |(whole, _)| whole);
    let mut parts = whole.strip_prefix(DIGEST)?.split('-');
    let sha1 = Sha1::from_digits(parts.next()?.as_bytes())?;
    let blake3 = Blake3::from_digits(parts.next()?.as_bytes())?;
    let size = parts.next()?.parse().ok()?;
    let bytes = parts.next().map(str::parse).transpose().ok()?;
    let digest = Digest { sha1, blake3, size, bytes };
    // One digest has one spelling.
    (cell_of_digest(&digest, "") == whole).then_some(digest)
}

/// The file of the task that a cell of a sheet of the task stands for. Its path is relative to the sheet.
///
/// # Errors
///
/// Fails if it is not the path of a file in the directory of the task.
pub fn own_path(sheet: &TaskPath, text: &str) -> Result<TaskPath, SheetFault> {
    check_path(text)?;
    let outside = || SheetFault::OutsideTask(text.to_owned());
    let mut parts: Vec<&str> = sheet.as_str().split('/').collect();
    parts.pop();
    for part in text.split('/') {
        match part {
            ".." => drop(parts.pop().ok_or_else(outside)?),
            "." => {}
            part => parts.push(part),
        }
    }
    if text.starts_with('/') {
        return Err(outside());
    }
    parts.join("/").parse().map_err(|_| outside())
}

/// Checks that a cell may be a path.
///
/// # Errors
///
/// Fails if it is a URL.
pub fn check_path(text: &str) -> Result<(), SheetFault> {
    let scheme = text.split_once("://").map(|(scheme, _)| scheme);
    let is_url = scheme.is_some_and(|it| !it.is_empty() && it.bytes().all(is_of_scheme));
    if is_url { Err(SheetFault::Url(text.to_owned())) } else { Ok(()) }
}

const fn is_of_scheme(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')
}

/// A cell of a column of files that stands for a file, where its text first stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedCell {
    /// The line of its row, counted from one.
    pub line: usize,
    /// The name of its column.
    pub column: Box<str>,
    /// Its text, as the sheet has it.
    pub text: Arc<str>,
}

impl PlacedCell {
    /// The problem that this cell has.
    pub fn problem(&self, fault: SheetFault) -> SheetProblem {
        SheetProblem { line: Some(self.line), column: Some(self.column.to_string()), fault }
    }
}

/// Returns the cells of a sheet that stand for files, each text of a column once, in the order of the sheet.
///
/// # Errors
///
/// Fails if the sheet has no points that can be read, or lacks such a column.
pub fn file_cells(
    contents: &[u8],
    columns: &[FileColumn],
) -> Result<Vec<PlacedCell>, Vec<SheetProblem>> {
    let (points, lines) = read_placed(SheetFormat::detect(contents), contents)?;
    let (mut cells, mut problems) = (Vec::new(), Vec::new());
    for column in columns.iter().filter(|_| !points.names().is_empty()) {
        let Some(number) = points.column(&column.name) else {
            let unknown = UnknownName::new(&*column.name, points.names());
            let fault = SheetFault::NoFileColumn(unknown);
            problems.push(SheetProblem { line: Some(1), column: None, fault });
            continue;
        };
        let mut is_seen: Vec<bool> =
            points.levels(number).iter().map(|text| column.stands_for_no_file(text)).collect();
        for (row, line) in points.rows().zip(&lines) {
            let level = row[number] as usize;
            if !mem::replace(&mut is_seen[level], true) {
                let text = Arc::clone(&points.levels(number)[level]);
                let (line, column) = (*line as usize, column.name.clone());
                cells.push(PlacedCell { line, column, text });
            }
        }
    }
    cells.sort_by_key(|cell| cell.line);
    if problems.is_empty() { Ok(cells) } else { Err(problems) }
}

/// Returns a sheet of a user as it is a value: with these cells in place of texts of some columns. Everything else has the same meaning, and lines end
/// as on Unix. [`file_cells`] could read the sheet.
pub fn sheet_with_cells(
    contents: &[u8],
    columns: &[FileColumn],
    cells: &HashMap<Arc<str>, String>,
) -> Vec<u8> {
    let contents = trimmed(contents);
    let find = |name: &str| columns.iter().find(|column| *column.name == *name);
    let cell = |column: &FileColumn, text: &str| {
        cells.get(text).filter(|_| !column.stands_for_no_file(text))
    };
    match SheetFormat::detect(contents) {
        SheetFormat::Ndjson | SheetFormat::JsonArray => {
            let mut sheet = Vec::with_capacity(contents.len());
            for line in contents.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                let fields = json_fields(line).unwrap_or_default();
                for (before, (name, value)) in separators().zip(&fields) {
                    let text = json_text(value).ok();
                    let cell = find(name).zip(text).and_then(|(column, text)| cell(column, &text));
                    let value = cell.map_or(Cow::Borrowed(value.get()), |it| in_json(it).into());
                    sheet.extend([before, in_json(name).as_bytes(), b":"].concat());
                    sheet.extend_from_slice(value.as_bytes());
                }
                sheet.extend_from_slice(b"}\n");
            }
            sheet
        }
        SheetFormat::Tsv => records_with_cells(contents, b'\t', find, cell),
        SheetFormat::Csv => records_with_cells(contents, b',', find, cell),
    }
}

fn in_json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn records_with_cells<'c>(
    contents: &[u8],
    separator: u8,
    find: impl Fn(&str) -> Option<&'c FileColumn>,
    cell: impl Fn(&FileColumn, &str) -> Option<&'c String>,
) -> Vec<u8> {
    let (mut records, mut record) =
        (SheetRecords::new(contents, separator), SheetRecord::default());
    let (mut sheet, mut columns) = (String::with_capacity(contents.len()), Vec::new());
    while records.read(&mut record) {
        let mut values: Vec<Cow<'_, str>> =
            record.values.iter().map(|value| String::from_utf8_lossy(value)).collect();
        if columns.is_empty() {
            columns = values.iter().map(|name| find(name)).collect();
        } else {
            for (value, column) in values.iter_mut().zip(&columns) {
                if let Some(cell) = column.and_then(|column| cell(column, value)) {
                    *value = Cow::Borrowed(cell);
                }
            }
        }
        match separator {
            b',' if matches!(&values[..], [only] if only.is_empty()) => sheet.push_str("\"\"\n"),
            b',' => add_csv_line(values.iter().map(|value| &**value), &mut sheet),
            _ => {
                sheet.push_str(&values.join("\t"));
                sheet.push('\n');
            }
        }
    }
    sheet.into_bytes()
}

impl SweepPoints {
    /// The points of a sheet in which some columns are files: files of the task, if it is the sheet of the task with this path, and else digests. Other
    /// texts become cells that are no file, and say so where they are used.
    #[must_use]
    pub fn with_files(mut self, columns: &[FileColumn], own_sheet: Option<&TaskPath>) -> Self {
        let find = |name: &str| columns.iter().find(|column| *column.name == *name);
        let (files, texts): (Vec<usize>, Vec<usize>) =
            (0..self.names.len()).partition(|at| find(&self.names[*at]).is_some());
        if files.is_empty() {
            return self;
        }
        for column in columns {
            let Some(at) = self.column(&column.name) else { continue };
            let (mut cells, width) = (Interner::default(), self.levels.len());
            let cell = |text: &Arc<str>| match own_sheet {
                _ if column.stands_for_no_file(text) => String::new(),
                Some(sheet) => match own_path(sheet, text) {
                    Ok(path) => format!("{OWN}{path}"),
                    Err(_) => format!("{NO_FILE}{text}"),
                },
                None if digest_of_cell(text).is_some() => text.to_string(),
                None => format!("{NO_FILE}{text}"),
            };
            let numbers: Vec<u32> =
                self.levels[at].iter().map(|text| cells.number(&cell(text))).collect();
            for row in self.rows.chunks_exact_mut(width) {
                row[at] = numbers[row[at] as usize];
            }
            self.levels[at] = cells.into_levels();
        }
        let order = [texts, files.clone()].concat();
        let rows = self.rows().flat_map(|row| order.iter().map(|at| row[*at])).collect();
        let mut names: Vec<String> = order.iter().map(|at| self.names[*at].clone()).collect();
        let levels = order.iter().map(|at| mem::take(&mut self.levels[*at])).collect();
        let files = names.split_off(names.len() - files.len());
        Self { names, files, levels, rows, blank_rows: self.blank_rows }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(lines: &[&str]) -> Vec<FileColumn> {
        lines.iter().map(|line| FileColumn::read(line)).collect()
    }

    fn replaced(sheet: &str, lines: &[&str]) -> String {
        let columns = columns(lines);
        let cells = file_cells(sheet.as_bytes(), &columns).unwrap();
        let cells = cells.iter().map(|it| (Arc::clone(&it.text), format!("<{}>", it.text)));
        let sheet = sheet_with_cells(sheet.as_bytes(), &columns, &cells.collect());
        String::from_utf8(sheet).unwrap()
    }

    #[test]
    fn a_line_names_a_column_and_words_for_no_file() {
        let column = FileColumn::read(" reads2  NA -");
        assert_eq!(column.text(), "reads2 NA -");
        assert!(
            column.stands_for_no_file("")
                && column.stands_for_no_file("NA")
                && !column.stands_for_no_file("NA.fq")
        );
    }

    #[test]
    fn a_digest_is_read_back_from_its_cell() {
        let file = Digest::hash_bytes(b"x");
        let directory = Digest { bytes: Some(7), ..file };
        for digest in [file, directory] {
            for (path, suffix) in [("a/b.fastq.gz", ".fastq.gz"), ("d.v2/a", ""), ("x/", "")] {
                let cell = cell_of_digest(&digest, path);
                assert!(cell.ends_with(suffix), "{cell}");
                assert_eq!(digest_of_cell(&cell), Some(digest));
                assert_eq!(FileCell::of_level(&cell), Ok(FileCell::Contents(digest)));
            }
        }
        let cell = cell_of_digest(&file, "");
        for other in [cell.replace("-1", "-01"), cell.to_uppercase(), format!("{cell}-7-7")] {
            assert_eq!(digest_of_cell(&other), None, "{other}");
        }
        for text in ["digest:", "digest:12-34-5", "a.fq", "digest:../x"] {
            assert_eq!(digest_of_cell(text), None);
        }
    }

    #[test]
    fn a_path_of_a_sheet_of_the_task_stays_in_the_task() {
        let sheet: TaskPath = "sheets/a.csv".parse().unwrap();
        let path = |text| own_path(&sheet, text).map(|path| path.to_string());
        assert_eq!(path("x.fq").unwrap(), "sheets/x.fq");
        assert_eq!(path("./d/../x.fq").unwrap(), "sheets/x.fq");
        assert_eq!(path("../data/x.fq").unwrap(), "data/x.fq");
        for text in ["/x.fq", "../../x.fq", "..", "../.."] {
            assert_eq!(path(text), Err(SheetFault::OutsideTask(text.to_owned())));
        }
        assert!(matches!(path("https://example.org/x"), Err(SheetFault::Url(_))));
    }

    #[test]
    fn only_cells_of_these_columns_are_replaced() {
        let csv = "\u{feff}sample,one,two\r\na b,x.fq,\r\n\"c,d\",x.fq,NA\r\n\r\n";
        let replaced_csv = "sample,one,two\na b,<x.fq>,\n\"c,d\",<x.fq>,NA\n";
        assert_eq!(replaced(csv, &["one", "two NA"]), replaced_csv);
        // Reading it again changes nothing.
        assert_eq!(replaced("s\tone\nx.fq\tx.fq\n", &["one"]), "s\tone\nx.fq\t<x.fq>\n");
        assert_eq!(replaced("one\n\"\"\nx\n", &["one"]), "one\n\"\"\n<x>\n");
        let json = "{\"one\": \"x.fq\", \"n\": 1.50}\n{\"n\":\"2\",\"one\":\"\"}";
        let replaced_json = "{\"one\":\"<x.fq>\",\"n\":1.50}\n{\"n\":\"2\",\"one\":\"\"}\n";
        assert_eq!(replaced(json, &["one"]), replaced_json);
    }

    #[test]
    fn cells_have_the_line_in_which_they_first_stand() {
        let sheet = b"sample,one,two\na,x,y\nc,x,\nd,z,x\n";
        let cells = file_cells(sheet, &columns(&["two", "one"])).unwrap();
        let places = cells.iter().map(|it| (it.line, &*it.column, &*it.text)).collect::<Vec<_>>();
        assert_eq!(places, [(2, "two", "y"), (2, "one", "x"), (4, "two", "x"), (4, "one", "z")]);
        let problems = file_cells(sheet, &columns(&["tow"])).unwrap_err();
        assert!(matches!(&problems[0].fault, SheetFault::NoFileColumn(_)), "{problems:?}");
    }

    #[test]
    fn columns_of_files_are_in_no_title_path_or_line() {
        let sheet = b"one,sample,two\nx,a,NA\ny,b,z\n";
        let points = super::super::read(SheetFormat::Csv, sheet).unwrap();
        let task: TaskPath = "d/sheet.csv".parse().unwrap();
        let points = points.with_files(&columns(&["one", "two NA"]), Some(&task));
        assert_eq!(points.names(), ["sample"]);
        assert_eq!(points.files(), ["one", "two"]);
        let mut lines = Vec::new();
        points.write_ndjson(&mut lines).unwrap();
        assert_eq!(lines, b"{\"sample\":\"a\"}\n{\"sample\":\"b\"}\n");
        let cells =
            |at: usize| points.at(at).file("two").and_then(|it| FileCell::of_level(it).ok());
        assert_eq!(cells(0), Some(FileCell::Nothing));
        assert_eq!(cells(1), Some(FileCell::Own("d/z".parse().unwrap())));
        assert_eq!(points.with_same_texts(), None);
    }
}
