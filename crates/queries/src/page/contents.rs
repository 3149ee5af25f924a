//! The contents of outputs on a page: what they are, and which of them the page holds.
//!
//! A page holds what has room in it, and nothing that looks like a secret. Text of outputs is data: whoever shows it makes no markup of it.

use ce_exchange::Secrets;
use ce_model::digest::Digest;

/// The contents of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputContents {
    /// What they are.
    pub format: OutputFormat,
    /// The size in bytes.
    pub size: u64,
    /// The contents, or why they are not on the page.
    pub held: Result<Vec<u8>, NotHeld>,
}

impl OutputContents {
    /// Those of an output with this name that a clone of a results repository would fetch.
    pub(super) fn away(name: &str, digest: &Digest) -> Self {
        let (format, size) = (OutputFormat::of(name, b""), digest.total());
        Self { format, size, held: Err(NotHeld::Away) }
    }
}

/// Why contents are not on a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotHeld {
    /// They are not in the storage.
    Absent,
    /// They are not in the storage, which is a clone of a results repository that can fetch them.
    Away,
    /// They are a directory.
    Directory,
    /// They have no room.
    TooLarge,
    /// They seem to hold a secret: what it is.
    Secret(String),
}

/// What contents are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputFormat {
    /// A picture that browsers show, of this type.
    Picture(&'static str),
    /// Lines of cells that this character separates, the first with the names of columns.
    Table(char),
    /// Lines of JSON objects.
    JsonLines,
    /// A JSON document.
    Json,
    /// Markdown.
    Markdown,
    /// Another text.
    Text,
    /// Anything else.
    Other,
}

/// The beginnings of pictures, and their types.
const PICTURES: [(&[u8], &str); 5] = [
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"RIFF", "image/webp"),
];

/// A table has at least so many columns and lines that have as many cells each.
const LEAST: usize = 2;

impl OutputFormat {
    /// What contents are, by their name and by themselves.
    pub fn of(name: &str, contents: &[u8]) -> Self {
        if let Some((_, kind)) = PICTURES.iter().find(|(begin, _)| contents.starts_with(begin)) {
            return Self::Picture(kind);
        }
        let Ok(text) = std::str::from_utf8(contents) else { return Self::Other };
        if text.contains('\0') {
            return Self::Other;
        }
        let suffix = name.rsplit_once('.').map_or("", |(_, suffix)| suffix);
        let begin = text.trim_start();
        let is_xml = begin.starts_with("<?xml") || begin.starts_with("<!DOCTYPE svg");
        if begin.starts_with("<svg") || is_xml && begin.contains("<svg") {
            return Self::Picture("image/svg+xml");
        }
        if suffix == "md" {
            return Self::Markdown;
        }
        if begin.starts_with('{') && is_each_line_json(text) {
            return Self::JsonLines;
        }
        if begin.starts_with(['{', '['])
            && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
        {
            return Self::Json;
        }
        let is_table = |separator: &char| {
            let mut widths = text.lines().map(|line| line.split(*separator).count());
            let first = widths.next().unwrap_or_default();
            let mut rest = widths.peekable();
            first >= LEAST && rest.peek().is_some() && rest.all(|width| width == first)
        };
        match ['\t', ','].iter().find(|it| is_table(it)) {
            // What separates cells may be quoted in them.
            Some(',') if text.contains('"') => Self::Text,
            Some(separator) => Self::Table(*separator),
            None => Self::Text,
        }
    }

    /// The usual suffix of a file of this kind.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Picture("image/svg+xml") => ".svg",
            Self::Picture("image/jpeg") => ".jpg",
            Self::Picture("image/gif") => ".gif",
            Self::Picture("image/webp") => ".webp",
            Self::Picture(_) => ".png",
            Self::Table('\t') => ".tsv",
            Self::Table(_) => ".csv",
            Self::JsonLines => ".ndjson",
            Self::Json => ".json",
            Self::Markdown => ".md",
            Self::Text => ".txt",
            Self::Other => "",
        }
    }

    /// Its type, as browsers know it.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Picture(kind) => kind,
            Self::Other => "application/octet-stream",
            _ => "text/plain;charset=utf-8",
        }
    }
}

/// Whether a text has several lines, each of which is an object of JSON.
fn is_each_line_json(text: &str) -> bool {
    text.lines().count() >= LEAST
        && text.lines().all(|line| {
            line.starts_with('{') && serde_json::from_str::<serde::de::IgnoredAny>(line).is_ok()
        })
}

/// The room for contents on a page, and what must not be there.
#[derive(Debug)]
pub(super) struct ContentsRoom {
    left: u64,
    secrets: Secrets,
}

impl ContentsRoom {
    /// Room for so many bytes.
    pub(super) fn new(bytes: u64) -> Self {
        Self { left: bytes, secrets: Secrets::of_environment() }
    }

    /// Reads the contents of an output with this name, if there is room for them.
    pub(super) fn contents(
        &mut self,
        name: &str,
        digest: Digest,
        read: impl FnOnce() -> Option<Vec<u8>>,
    ) -> OutputContents {
        let (size, format) = (digest.total(), OutputFormat::of(name, b""));
        let not_held = |why| OutputContents { format, size, held: Err(why) };
        if digest.is_directory() {
            return not_held(NotHeld::Directory);
        }
        if size > self.left {
            return not_held(NotHeld::TooLarge);
        }
        let Some(contents) = read() else { return not_held(NotHeld::Absent) };
        if let Some(what) = self.secrets.find(&contents) {
            return not_held(NotHeld::Secret(what));
        }
        self.left -= size;
        OutputContents { format: OutputFormat::of(name, &contents), size, held: Ok(contents) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_known_by_themselves() {
        for (name, contents, format) in [
            ("figure", "<svg xmlns='x'/>", OutputFormat::Picture("image/svg+xml")),
            (
                "figure.svg",
                "<?xml version='1.0'?>\n<!-- a --><svg/>",
                OutputFormat::Picture("image/svg+xml"),
            ),
            ("page", "<?xml version='1.0'?><html/>", OutputFormat::Text),
            ("a", "x\ty\n1\t2\n", OutputFormat::Table('\t')),
            ("a", "x,y\n1,2\n", OutputFormat::Table(',')),
            ("a", "x,y\n\"1,5\",2\n", OutputFormat::Text),
            ("a", "x\ty\n1\n", OutputFormat::Text),
            ("a", "one line, only\n", OutputFormat::Text),
            ("a", "{\"x\":1}\n{\"x\":2}\n", OutputFormat::JsonLines),
            ("a", "{\n\"x\":1}\n", OutputFormat::Json),
            ("a", "[1, 2", OutputFormat::Text),
            ("read.md", "# Title\n", OutputFormat::Markdown),
            ("a", "a\0b", OutputFormat::Other),
            ("a", "", OutputFormat::Text),
        ] {
            assert_eq!(OutputFormat::of(name, contents.as_bytes()), format, "{contents}");
        }
        let png = OutputFormat::of("a", b"\x89PNG\r\n\x1a\nrest");
        assert_eq!((png.media_type(), png.suffix()), ("image/png", ".png"));
        assert_eq!(OutputFormat::of("a", b"\xff\xfe"), OutputFormat::Other);
    }

    #[test]
    fn what_is_held_takes_room_and_secrets_are_not_held() {
        let mut room = ContentsRoom::new(60);
        let mut held = |text: &str| {
            let contents = text.as_bytes().to_vec();
            room.contents("text", Digest::of(&contents), || Some(contents)).held
        };
        let token = format!("a ghp_{} b", "x".repeat(36));
        assert_eq!(held(&token), Err(NotHeld::Secret("a token of GitHub".to_owned())));
        assert_eq!(held(&"x".repeat(61)), Err(NotHeld::TooLarge));
        assert_eq!(held(&"x".repeat(60)), Ok(vec![b'x'; 60]));
        assert_eq!(held("x"), Err(NotHeld::TooLarge));
        let absent = ContentsRoom::new(9).contents("text", Digest::of(b"x"), || None);
        assert_eq!((absent.held, absent.size), (Err(NotHeld::Absent), 1));
    }
}
