//! The formats of outputs, recognized by the name of a file and by its contents.

use crate::sweep::{SheetFormat, read_cells};

/// The format of contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFormat {
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

/// Suffixes of names, and the types of such files. The usual suffix of a type is the first.
const TYPES: [(&str, &str); 32] = [
    ("txt", "text/plain"),
    ("log", "text/plain"),
    ("csv", "text/csv"),
    ("tsv", "text/tab-separated-values"),
    ("md", "text/markdown"),
    ("html", "text/html"),
    ("htm", "text/html"),
    ("xml", "application/xml"),
    ("json", "application/json"),
    ("ndjson", "application/x-ndjson"),
    ("jsonl", "application/x-ndjson"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
    ("toml", "application/toml"),
    ("svg", "image/svg+xml"),
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("tif", "image/tiff"),
    ("tiff", "image/tiff"),
    ("pdf", "application/pdf"),
    ("zip", "application/zip"),
    ("tar", "application/x-tar"),
    ("gz", "application/gzip"),
    ("tgz", "application/gzip"),
    ("bz2", "application/x-bzip2"),
    ("xz", "application/x-xz"),
    ("zst", "application/zstd"),
    ("h5", "application/x-hdf5"),
    ("parquet", "application/vnd.apache.parquet"),
];

/// Suffixes of files whose scripts a browser executes when it opens them, or that others execute.
const EXECUTED: [&str; 19] = [
    "html", "htm", "xhtml", "xht", "shtml", "shtm", "mhtml", "mht", "svg", "svgz", "xml", "xsl",
    "xslt", "hta", "swf", "js", "mjs", "css", "php",
];

/// Suffixes of compressed files. Some servers send such files with the type of their contents.
const COMPRESSED: [&str; 5] = ["gz", "tgz", "bz2", "xz", "zst"];

/// The type of a file of unknown contents.
const UNKNOWN: &str = "application/octet-stream";

/// The least number of columns of a table, and of lines with as many cells each.
const LEAST: usize = 2;

impl FileFormat {
    /// Returns the format of contents, by the name of their file and by themselves.
    pub fn detect(name: &str, contents: &[u8]) -> Self {
        if let Some((_, kind)) = PICTURES.iter().find(|(begin, _)| contents.starts_with(begin)) {
            return Self::Picture(kind);
        }
        let Ok(text) = std::str::from_utf8(contents) else { return Self::Other };
        if text.contains('\0') {
            return Self::Other;
        }
        let begin = text.trim_start();
        let is_xml = begin.starts_with("<?xml") || begin.starts_with("<!DOCTYPE svg");
        if begin.starts_with("<svg") || is_xml && begin.contains("<svg") {
            return Self::Picture("image/svg+xml");
        }
        if suffix_of(name) == "md" {
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
        match read_cells(contents) {
            Ok(table) if table.names.len() >= LEAST && !table.rows.is_empty() => {
                Self::Table(if SheetFormat::detect(contents) == SheetFormat::Tsv {
                    '\t'
                } else {
                    ','
                })
            }
            _ => Self::Text,
        }
    }

    /// Whether a file is a picture by its name.
    pub fn may_be_picture(name: &str) -> bool {
        Self::media_type_of(name, || None).starts_with("image/")
    }

    /// Whether a file is a table by its name.
    pub fn may_be_table(name: &str) -> bool {
        ["text/csv", "text/tab-separated-values"].contains(&Self::media_type_of(name, || None))
    }

    /// The usual suffix of a file of this kind, without its dot; empty if there is none.
    pub fn suffix(self) -> &'static str {
        let kind = self.media_type();
        TYPES.iter().find(|(_, known)| *known == kind).map_or("", |(suffix, _)| suffix)
    }

    /// The media type of a file of this kind.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Picture(kind) => kind,
            Self::Table('\t') => "text/tab-separated-values",
            Self::Table(_) => "text/csv",
            Self::JsonLines => "application/x-ndjson",
            Self::Json => "application/json",
            Self::Markdown => "text/markdown",
            Self::Text => "text/plain",
            Self::Other => UNKNOWN,
        }
    }

    /// The media type of a file: by the suffix of its name, or else by its contents, if they are available.
    pub fn media_type_of(name: &str, contents: impl FnOnce() -> Option<Vec<u8>>) -> &'static str {
        let suffix = suffix_of(name);
        let named = TYPES.iter().find(|(known, _)| known.eq_ignore_ascii_case(suffix));
        match named {
            Some((_, kind)) => kind,
            None => contents().map_or(UNKNOWN, |it| Self::detect(name, &it).media_type()),
        }
    }
}

/// The suffix of a name, without its dot; empty if it has none.
fn suffix_of(name: &str) -> &str {
    name.rsplit_once('.').map_or("", |(_, suffix)| suffix)
}

/// Whether a browser may execute scripts that are in a file, when it opens the file as a document. A suffix that says otherwise decides. Else
/// each suffix counts, as servers look at several, and the beginning of the contents, as browsers guess: markup begins with `<`.
pub fn is_executed(name: &str, beginning: &[u8]) -> bool {
    let is_in =
        |known: &[&str], suffix: &str| known.iter().any(|it| it.eq_ignore_ascii_case(suffix));
    let last = suffix_of(name);
    let is_known = TYPES.iter().any(|(suffix, _)| suffix.eq_ignore_ascii_case(last));
    if is_known && !is_in(&EXECUTED, last) && !is_in(&COMPRESSED, last) {
        return false;
    }
    // White space, a byte order mark, and the other half of characters of two bytes.
    let is_before = |byte: &u8| b"\0\t\n\x0c\r \xef\xbb\xbf\xfe\xff".contains(byte);
    let first = beginning.iter().find(|byte| !is_before(byte));
    name.split('.').skip(1).any(|suffix| is_in(&EXECUTED, suffix))
        || first.map_or(!beginning.is_empty(), |byte| *byte == b'<')
}

/// Whether a text has several lines, and each is an object of JSON.
fn is_each_line_json(text: &str) -> bool {
    text.lines().count() >= LEAST
        && text.lines().all(|line| {
            line.starts_with('{') && serde_json::from_str::<serde::de::IgnoredAny>(line).is_ok()
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_is_recognised_by_the_contents() {
        for (name, contents, format) in [
            ("figure", "<svg xmlns='x'/>", FileFormat::Picture("image/svg+xml")),
            (
                "figure.svg",
                "<?xml version='1.0'?>\n<!-- a --><svg/>",
                FileFormat::Picture("image/svg+xml"),
            ),
            ("page", "<?xml version='1.0'?><html/>", FileFormat::Text),
            ("a", "x\ty\n1\t2\n", FileFormat::Table('\t')),
            ("a", "x,y\n1,2\n", FileFormat::Table(',')),
            ("a", "\u{feff}x,y\n\"1,5\",2\n", FileFormat::Table(',')),
            ("a", "x,y\n\"1,5,2\n", FileFormat::Text),
            ("a", "x\ty\n1\n", FileFormat::Text),
            ("a", "one line, only\n", FileFormat::Text),
            ("a", "{\"x\":1}\n{\"x\":2}\n", FileFormat::JsonLines),
            ("a", "{\n\"x\":1}\n", FileFormat::Json),
            ("a", "[1, 2", FileFormat::Text),
            ("read.md", "# Title\n", FileFormat::Markdown),
            ("a", "a\0b", FileFormat::Other),
            ("a", "", FileFormat::Text),
        ] {
            assert_eq!(FileFormat::detect(name, contents.as_bytes()), format, "{contents}");
        }
        let png = FileFormat::detect("a", b"\x89PNG\r\n\x1a\nrest");
        assert_eq!((png.media_type(), png.suffix()), ("image/png", "png"));
        assert_eq!(FileFormat::detect("a", b"\xff\xfe"), FileFormat::Other);
    }

    #[test]
    fn active_content_is_recognised_by_suffix_or_first_bytes() {
        for (name, begin) in [
            ("figure.svg", ""),
            ("A.HTML", "text"),
            ("page.html.de", ""),
            ("page.xhtml", ""),
            ("figure.svg.gz", "\x1f"),
            ("feed.rdf", "\u{feff}\n <rdf>"),
            ("job", "<script>"),
            ("job", "<\0s\0"),
            ("job", "\0<\0s"),
            ("job", "  "),
            ("mail.mht", ""),
        ] {
            assert!(is_executed(name, begin.as_bytes()), "{name}");
        }
        for (name, begin) in [
            ("notes.txt", "<script>"),
            ("page.html.txt", "<script>"),
            ("rows.csv", "<a>,b"),
            ("figure.png", "\u{89}PNG"),
            ("paper.pdf", "%PDF"),
            ("reads.fastq.gz", "\x1f"),
            ("html", "text"),
            ("job", "90\n"),
            ("job", ""),
            ("reads.bam", "BAM"),
        ] {
            assert!(!is_executed(name, begin.as_bytes()), "{name}");
        }
        assert!(is_executed("job", b"\xff\xfe<\0s\0"));
    }

    #[test]
    fn a_media_type_follows_from_the_suffix_or_else_the_contents() {
        for (name, contents, kind) in [
            ("notes.txt", "{}", "text/plain"),
            ("A.CSV", "", "text/csv"),
            ("x.tar.gz", "", "application/gzip"),
            ("rows.jsonl", "", "application/x-ndjson"),
            ("figure", "<svg xmlns='x'/>", "image/svg+xml"),
            ("sum", "90\n", "text/plain"),
            ("sum", "a,b\n1,2\n", "text/csv"),
            ("archive.bam", "\0", "application/octet-stream"),
        ] {
            let found = FileFormat::media_type_of(name, || Some(contents.into()));
            assert_eq!(found, kind, "{name}");
        }
        assert_eq!(FileFormat::media_type_of("sum", || None), UNKNOWN);
        let kinds = [FileFormat::Text, FileFormat::Table('\t'), FileFormat::JsonLines];
        assert_eq!(kinds.map(FileFormat::suffix), ["txt", "tsv", "ndjson"]);
        assert_eq!(FileFormat::Other.suffix(), "");
    }
}
