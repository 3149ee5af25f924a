//! Small text files: one line, or a list of lines.
//!
//! A final newline or none, CRLF, a byte order mark, blank lines at the end and white space
//! around a line all mean nothing. Knows nothing of what the lines say.

use super::problem::Fault;

/// Returns the lines of a list, each trimmed, together with their places counted from one.
///
/// # Errors
///
/// Tells that the file cannot be read, is no text, or that a line within the list is empty.
pub(super) fn lines(file: Result<Vec<u8>, Fault>) -> Result<Vec<String>, Vec<(usize, Fault)>> {
    let text = file.and_then(whole).map_err(|fault| vec![(0, fault)])?;
    let lines: Vec<String> = list(&text).map(str::to_owned).collect();
    let empty =
        |(at, line): (usize, &String)| line.is_empty().then_some((at + 1, Fault::EmptyLine));
    let empty: Vec<_> = lines.iter().enumerate().filter_map(empty).collect();
    if empty.is_empty() { Ok(lines) } else { Err(empty) }
}

/// Returns the first line, trimmed, and whether others follow that nothing reads.
///
/// # Errors
///
/// Tells that the file cannot be read, is no text, or is empty.
pub(super) fn line(file: Result<Vec<u8>, Fault>) -> Result<(String, bool), Fault> {
    let text = file.and_then(whole)?;
    let mut lines = list(&text);
    match lines.next() {
        Some(first) if !first.is_empty() => Ok((first.to_owned(), lines.next().is_some())),
        _ => Err(Fault::Empty),
    }
}

fn list(text: &str) -> impl Iterator<Item = &str> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).trim_end();
    text.lines().map(str::trim)
}

fn whole(contents: Vec<u8>) -> Result<String, Fault> {
    String::from_utf8(contents).map_err(|_| Fault::NotText)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(contents: &[u8]) -> Result<Vec<u8>, Fault> {
        Ok(contents.to_vec())
    }

    #[test]
    fn endings_mean_nothing() {
        for same in ["a\nb c", "a\nb c\n", "a\r\nb c\r\n", "\u{feff}a\n b c \n\n \n"] {
            assert_eq!(lines(file(same.as_bytes())).unwrap(), ["a", "b c"], "{same:?}");
        }
        assert!(lines(file(b"")).unwrap().is_empty());
        assert!(lines(file(b"\n\n")).unwrap().is_empty());
    }

    #[test]
    fn an_empty_line_within_a_list_is_told_with_its_place() {
        let wrong = lines(file(b"a\n\nb\n")).unwrap_err();
        assert!(matches!(wrong[..], [(2, Fault::EmptyLine)]));
    }

    #[test]
    fn one_line_is_the_first() {
        assert_eq!(line(file(b" a\r\n")).unwrap(), ("a".to_owned(), false));
        assert_eq!(line(file(b"a\nb\n")).unwrap(), ("a".to_owned(), true));
        for empty in [&b""[..], b"\n", b"\na\n"] {
            assert!(matches!(line(file(empty)), Err(Fault::Empty)), "{empty:?}");
        }
    }

    #[test]
    fn what_is_no_text_is_told() {
        assert!(matches!(line(file(b"\xff\xfe")), Err(Fault::NotText)));
        assert!(matches!(line(Err(Fault::Missing)), Err(Fault::Missing)));
    }
}
