//! The text files of a task: one line, or a list of lines.
//!
//! A final newline or none, CRLF, a byte order mark, blank lines at the end and white space around
//! a line are ignored. All such files are read with these functions, from a work tree or from a
//! commit. The meaning of the lines is unknown here.

use crate::exit::Explain;

/// The greatest size of a file of a task that is read as text, in bytes.
pub const MAX_FILE: usize = 1 << 20;

/// A file of a factor of a sweep, or of excluded points, is too large.
pub const MAX_POINTS_FILE: usize = 64 << 20;

/// The reason why the contents of a file are not a text of this kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, Explain)]
pub enum TextError {
    /// The file holds something other than UTF-8.
    #[error("is not UTF-8 text")]
    #[hint("save the file as UTF-8")]
    NotText,
    /// The file or its first line is empty.
    #[error("has an empty first line")]
    #[hint("write its text into the first line")]
    Empty,
    /// A list has an empty line before its end.
    #[error("the line is empty")]
    #[hint("remove the line")]
    EmptyLine,
}

/// Returns the lines of a list, each trimmed.
///
/// # Errors
///
/// Fails if the file is not a text, or a line within the list is empty: each error with the number of its line counted from
/// one, zero for the file as a whole.
pub fn lines(contents: &[u8]) -> Result<Vec<&str>, Vec<(usize, TextError)>> {
    let text = whole(contents).map_err(|error| vec![(0, error)])?;
    let lines: Vec<&str> = list(text).collect();
    let empty: Vec<_> = (1..)
        .zip(&lines)
        .filter(|(_, line)| line.is_empty())
        .map(|(number, _)| (number, TextError::EmptyLine))
        .collect();
    if empty.is_empty() { Ok(lines) } else { Err(empty) }
}

/// Returns the first line, trimmed, and whether others follow that nothing reads.
pub fn line(contents: &[u8]) -> Result<(&str, bool), TextError> {
    let mut lines = list(whole(contents)?);
    match lines.next() {
        Some(first) if !first.is_empty() => Ok((first, lines.next().is_some())),
        _ => Err(TextError::Empty),
    }
}

fn list(text: &str) -> impl Iterator<Item = &str> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).trim_end();
    text.lines().map(str::trim)
}

fn whole(contents: &[u8]) -> Result<&str, TextError> {
    std::str::from_utf8(contents).map_err(|_| TextError::NotText)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ends_and_a_byte_order_mark_are_ignored() {
        for same in ["a\nb c", "a\nb c\n", "a\r\nb c\r\n", "\u{feff}a\n b c \n\n \n"] {
            assert_eq!(lines(same.as_bytes()).unwrap(), ["a", "b c"], "{same:?}");
        }
        assert!(lines(b"").unwrap().is_empty());
        assert!(lines(b"\n\n").unwrap().is_empty());
    }

    #[test]
    fn an_empty_line_within_a_list_is_reported_with_its_place() {
        assert_eq!(lines(b"a\n\nb\n").unwrap_err(), [(2, TextError::EmptyLine)]);
    }

    #[test]
    fn the_first_line_is_read() {
        assert_eq!(line(b" a\r\n"), Ok(("a", false)));
        assert_eq!(line(b"a\nb\n"), Ok(("a", true)));
        for empty in [&b""[..], b"\n", b"\na\n"] {
            assert_eq!(line(empty), Err(TextError::Empty), "{empty:?}");
        }
    }

    #[test]
    fn bytes_that_are_not_utf8_are_refused() {
        assert_eq!(line(b"\xff\xfe"), Err(TextError::NotText));
        assert_eq!(lines(b"\xff\xfe"), Err(vec![(0, TextError::NotText)]));
    }
}
