//! The strict reader of manifests: a text that is accepted is what [`Manifest::write`] writes.

use super::check::{ManifestError, ManifestFault, PathOrder, check_entry};
use super::entry::{EntryKind, HEADER, ManifestEntry, contents};
use super::format::Manifest;
use super::path::unescape;
use ce_model::digest::{Blake3, Digest, Sha1};

impl Manifest {
    /// Reads the text of a manifest.
    ///
    /// # Errors
    ///
    /// Fails unless the text is the very one that [`Manifest::write`] writes for the entries.
    pub fn parse(text: &[u8]) -> Result<Self, ManifestError> {
        let wrong = |line: usize, fault| ManifestError { line, fault };
        if text == HEADER.as_bytes() {
            return Err(wrong(1, ManifestFault::Cut));
        }
        let rest = text.strip_prefix(HEADER.as_bytes()).and_then(|rest| rest.strip_prefix(b"\n"));
        let mut rest = rest.ok_or_else(|| wrong(1, ManifestFault::Header))?;
        let (mut entries, mut order) = (Vec::new(), PathOrder::default());
        while !rest.is_empty() {
            let number = entries.len() + 2;
            let end = rest.iter().position(|byte| *byte == b'\n');
            let end = end.ok_or_else(|| wrong(number, ManifestFault::Cut))?;
            let entry = parse_line(&rest[..end]).map_err(|fault| wrong(number, fault))?;
            order.check(&entries, &entry).map_err(|fault| wrong(number, fault))?;
            entries.push(entry);
            rest = &rest[end + 1..];
        }
        Ok(Self::of_sorted(entries))
    }
}

/// Reads a line without its newline.
fn parse_line(line: &[u8]) -> Result<ManifestEntry<Digest>, ManifestFault> {
    let (path, kind) = split_line(line).ok_or(ManifestFault::Form)?;
    let path = unescape(path).ok_or(ManifestFault::Escape)?;
    let kind = match kind {
        EntryKind::Link { target } => {
            EntryKind::Link { target: unescape(&target).ok_or(ManifestFault::Escape)? }
        }
        kind => kind,
    };
    let entry = ManifestEntry { path, kind };
    let mut expected = String::new();
    entry.write(contents, &mut expected);
    if expected.as_bytes().strip_suffix(b"\n") != Some(line) {
        return Err(ManifestFault::Spelling(expected.trim_end_matches('\n').to_owned()));
    }
    check_entry(&entry)?;
    Ok(entry)
}

/// Takes a line apart. Path and target are still spelled as in the line.
fn split_line(line: &[u8]) -> Option<(&[u8], EntryKind<Digest>)> {
    let space = |byte: &u8| *byte == b' ';
    let mut words = line.splitn(2, space);
    let (word, rest) = (words.next()?, words.next()?);
    match word {
        b"file" | b"exec" => {
            let mut words = rest.splitn(4, space);
            let size = str::from_utf8(words.next()?).ok()?.parse().ok()?;
            let sha1 = Sha1::from_digits(words.next()?)?;
            let blake3 = Blake3::from_digits(words.next()?)?;
            let contents = Digest { sha1, blake3, size, bytes: None };
            Some((words.next()?, EntryKind::File { contents, executable: word == b"exec" }))
        }
        b"link" => {
            let tab = rest.iter().position(|byte| *byte == b'\t')?;
            Some((&rest[tab + 1..], EntryKind::Link { target: rest[..tab].into() }))
        }
        b"dir" => Some((rest, EntryKind::Empty)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The digest of `a\n`, as a line has it.
    const A: &str = "2 3f786850e387550fdab836ed7e6dc881de23001b \
        b5d1f6ab1ca0da8c5d2de0aabd3e7e8a1ddc0a3b3b3c6a8a8a3e3e3e3e3e3e3e";

    fn parse(lines: &str) -> Result<Manifest, ManifestError> {
        Manifest::parse(format!("{HEADER}\n{}", lines.replace("DIGEST", A)).as_bytes())
    }

    #[test]
    fn what_is_accepted_is_written_again_byte_for_byte() {
        for lines in [
            "",
            "file DIGEST a\n",
            "file DIGEST a\nfile DIGEST a.b\nexec DIGEST ab/c\ndir b\nlink ../a\tc/d\nfile DIGEST \\x20\\xff\n",
            "dir a/b\nlink \\x09\ta0\nfile DIGEST é\n",
        ] {
            // The last path of the second one is less than the others.
            let mut lines: Vec<&str> = lines.split_inclusive('\n').collect();
            lines.sort_by_key(|line| unescape(line.rsplit([' ', '\t']).next().unwrap().as_bytes()));
            let text = lines.concat();
            let manifest = parse(&text).unwrap();
            let mut written = Vec::new();
            manifest.write(&mut written).unwrap();
            let text = format!("{HEADER}\n{}", text.replace("DIGEST", A));
            assert_eq!(String::from_utf8(written).unwrap(), text);
            let bytes = Some(manifest.bytes());
            assert_eq!(manifest.digest(), Digest { bytes, ..Digest::of(text.as_bytes()) });
            assert_eq!(Manifest::new(manifest.entries().to_vec()).unwrap(), manifest);
        }
    }

    #[test]
    fn another_text_is_refused_with_the_number_of_its_line() {
        for (lines, line, fault) in [
            ("dir a", 2, "the newline at its end is missing"),
            ("dir a\n\n", 3, "expected \"file SIZE"),
            ("dirs a\n", 2, "expected \"file SIZE"),
            ("file 2 a\n", 2, "expected \"file SIZE"),
            ("file -2 DIGEST a\n", 2, "expected \"file SIZE"),
            ("link a b\n", 2, "expected \"file SIZE"),
            ("dir a\r\n", 2, r#"expected "dir a\\x0d""#),
            ("dir a b\n", 2, r#"expected "dir a\\x20b""#),
            ("dir \\x61\n", 2, r#"expected "dir a""#),
            ("dir \\xc3\\xa9\n", 2, r#"expected "dir é""#),
            ("dir \\x5C\n", 2, r#"expected "dir \\x5c""#),
            ("link a\tb\tc\n", 2, r#"expected "link a\tb\\x09c""#),
            ("dir \\n\n", 2, r"a \ does not begin \xHH"),
            ("dir ../a\n", 2, "the path ../a has a component . or .."),
            ("dir /a\n", 2, "the path /a is absolute"),
            ("dir a//b\n", 2, "the path a//b has an empty component"),
            ("dir \n", 2, "the path  has an empty component"),
            ("dir \\x00\n", 2, r"the path \x00 has a zero byte"),
            ("dir a/.git\n", 2, "the path a/.git has a component .git"),
            ("link /etc\ta\n", 2, "the link a leads to /etc, which is an absolute path"),
            ("link ..\ta\n", 2, "the link a leads to .., which is outside"),
            ("dir a\ndir a\n", 3, "the path a occurs twice"),
            ("dir a\nlink x\ta\n", 3, "the path a occurs twice"),
            ("dir b\ndir a\n", 3, "the path a must come before"),
            ("dir a\nfile DIGEST a/b\n", 3, "the path a/b leads through a, an entry"),
            ("dir a\ndir a.b\ndir a.b.c\ndir a/b\n", 5, "the path a/b leads through a, an entry"),
            ("link x\ta/b\ndir a/b/c\n", 3, "the path a/b/c leads through a/b, an entry"),
        ] {
            let error = parse(lines).unwrap_err();
            let told = error.to_string();
            let line = format!("line {line}: ");
            assert!(told.starts_with(&line) && told.contains(fault), "{lines:?}: {told}");
        }
        let large = format!("file 0{A} a\n");
        assert!(parse(&large).unwrap_err().to_string().contains("expected \"file 2 3f"));
        assert!(parse(&large.replace("02 ", "99999999999999999999 ")).is_err());
        for text in ["", "compeval directory 2\n", "compeval directory 1 \n", "\u{feff}compeval"] {
            let error = Manifest::parse(text.as_bytes()).unwrap_err();
            assert_eq!((error.line, error.fault), (1, ManifestFault::Header), "{text:?}");
        }
        let cut = Manifest::parse(HEADER.as_bytes()).unwrap_err();
        assert_eq!((cut.line, cut.fault), (1, ManifestFault::Cut));
    }

    #[test]
    fn entries_that_no_directory_has_make_no_manifest() {
        let entry =
            |path: &str| ManifestEntry { path: path.as_bytes().into(), kind: EntryKind::Empty };
        let line = |paths: &[&str]| {
            Manifest::new(paths.iter().map(|path| entry(path)).collect())
                .map_err(|error| error.line)
        };
        assert_eq!(line(&["b", "a"]).unwrap().entries()[0], entry("a"));
        assert_eq!(line(&["a/b", "a"]), Err(3));
        assert_eq!(line(&["a", "a"]), Err(3));
        assert_eq!(line(&["", "a"]), Err(2));
    }
}
