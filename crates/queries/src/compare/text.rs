//! The difference of two texts by lines, with Git's choice among differences of equal length.

use std::fmt::{self, Write};
use std::fs;
use std::io;
use std::path::Path;

use gix_imara_diff::{
    Algorithm, Diff, InternedInput, Interner, Token, UnifiedDiffConfig, UnifiedDiffPrinter,
};

/// The greatest size of a file whose lines are compared, in bytes.
const MAX_SIZE: u64 = 1 << 20;

/// The difference of two files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// The lines, in the unified format without its header.
    Lines(String),
    /// A file is larger than this, in bytes.
    Large(u64),
    /// A file is not a text.
    Binary,
}

/// Compares two files.
///
/// # Errors
///
/// Fails if one of them cannot be read.
pub fn difference(one: &Path, other: &Path) -> io::Result<Difference> {
    if fs::metadata(one)?.len().max(fs::metadata(other)?.len()) > MAX_SIZE {
        return Ok(Difference::Large(MAX_SIZE));
    }
    let (Some(one), Some(other)) = (text(one)?, text(other)?) else {
        return Ok(Difference::Binary);
    };
    let input = InternedInput::new(one.as_str(), other.as_str());
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_lines(&input);
    let lines = Lines(&input.interner);
    let text = diff.unified_diff(&lines, UnifiedDiffConfig::default(), &input).to_string();
    Ok(Difference::Lines(text))
}

/// Prints lines as `diff -u` does.
struct Lines<'a>(&'a Interner<&'a str>);

impl Lines<'_> {
    fn line(&self, mut out: impl Write, sign: char, token: Token) -> fmt::Result {
        let line = self.0[token];
        write!(out, "{sign}{line}")?;
        if line.ends_with('\n') {
            Ok(())
        } else {
            out.write_str("\n\\ No newline at end of file\n")
        }
    }
}

impl UnifiedDiffPrinter for Lines<'_> {
    fn display_header(
        &self,
        mut out: impl Write,
        first: u32,
        first_of_other: u32,
        lines: u32,
        lines_of_other: u32,
    ) -> fmt::Result {
        // As in `diff -u`: an empty range begins before its first line, a length of one is left out.
        let range = |first: u32, lines: u32| match lines {
            0 => format!("{first},0"),
            1 => format!("{}", first + 1),
            _ => format!("{},{lines}", first + 1),
        };
        let (one, other) = (range(first, lines), range(first_of_other, lines_of_other));
        writeln!(out, "@@ -{one} +{other} @@")
    }

    fn display_context_token(&self, out: impl Write, token: Token) -> fmt::Result {
        self.line(out, ' ', token)
    }

    fn display_hunk(&self, mut out: impl Write, before: &[Token], after: &[Token]) -> fmt::Result {
        before.iter().try_for_each(|token| self.line(&mut out, '-', *token))?;
        after.iter().try_for_each(|token| self.line(&mut out, '+', *token))
    }
}

/// The contents of a file, if they are text.
fn text(path: &Path) -> io::Result<Option<String>> {
    let text = String::from_utf8(fs::read(path)?).ok();
    Ok(text.filter(|text| !text.contains('\0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_differ_in_lines_and_others_as_a_whole() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, contents: &[u8]| {
            let path = dir.path().join(name);
            fs::write(&path, contents).unwrap();
            path
        };
        let text = file("text", b"a\nb\nc\n");
        let lines = |contents: &[u8]| difference(&text, &file("other", contents)).unwrap();
        assert_eq!(
            lines(b"a\nB\nc\n"),
            Difference::Lines("@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n".into())
        );
        assert_eq!(
            lines(b"a\nb\nc"),
            Difference::Lines(
                "@@ -1,3 +1,3 @@\n a\n b\n-c\n+c\n\\ No newline at end of file\n".into()
            )
        );
        assert_eq!(lines(b""), Difference::Lines("@@ -1,3 +0,0 @@\n-a\n-b\n-c\n".into()));
        assert_eq!(lines(b"a\0"), Difference::Binary);
        assert_eq!(lines(b"\xff"), Difference::Binary);
        let large = vec![b'a'; (1 << 20) + 1];
        assert_eq!(lines(&large), Difference::Large(1 << 20));
        assert!(matches!(lines(&large[1..]), Difference::Lines(_)));
        assert!(difference(&text, Path::new("/nowhere/at/all")).is_err());
    }
}
