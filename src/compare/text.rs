//! The difference of two texts, line by line.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use similar::TextDiff;

/// The greatest size of a file of which lines are compared, in bytes.
const MOST: u64 = 1 << 20;

/// How long the shortest difference is looked for; after that, a longer one will do.
const PATIENCE: Duration = Duration::from_secs(5);

/// The difference of two files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// That of two texts, in the unified form, without its head.
    Lines(String),
    /// One of them is larger than so many bytes.
    Large(u64),
    /// One of them is no text.
    Binary,
}

/// Compares two files.
///
/// # Errors
///
/// Fails if one of them cannot be read.
pub fn difference(one: &Path, other: &Path) -> io::Result<Difference> {
    if fs::metadata(one)?.len().max(fs::metadata(other)?.len()) > MOST {
        return Ok(Difference::Large(MOST));
    }
    let (Some(one), Some(other)) = (text(one)?, text(other)?) else {
        return Ok(Difference::Binary);
    };
    let diff = TextDiff::configure().timeout(PATIENCE).diff_lines(&one, &other);
    Ok(Difference::Lines(diff.unified_diff().to_string()))
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
        assert_eq!(lines(b"a\0"), Difference::Binary);
        assert_eq!(lines(b"\xff"), Difference::Binary);
        let large = vec![b'a'; (1 << 20) + 1];
        assert_eq!(lines(&large), Difference::Large(1 << 20));
        assert!(matches!(lines(&large[1..]), Difference::Lines(_)));
        assert!(difference(&text, Path::new("/nowhere/at/all")).is_err());
    }
}
