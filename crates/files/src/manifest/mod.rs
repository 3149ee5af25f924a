//! Directories as values: the manifest of a directory, and how a directory is read.
//!
//! A directory is identified by its [`Manifest`]: a text with a line for each file, symbolic link and empty directory
//! in it. The SHA-1 and the BLAKE3 of that text are the directory's. Times, owners and modes are not part of it, except
//! whether the owner may execute a file.
//!
//! A [`Scan`] walks a directory and reads no file. It knows the entries that cannot be part of a value and the number
//! of bytes, and its stamps show whether anything has changed. [`Scan::read`] then reads each file once, on all cores,
//! and returns the manifest.
//!
//! Everything is reached from a descriptor of the directory, through no symbolic link. Nothing recurses, so directories
//! may be nested as deep as the file system allows. The module does not know workflows or the storage.
//!
//! Not every path and target of a link may stand in a manifest. Names in a file system are bytes. A manifest is UTF-8 without white space
//! in a path, so that each path is one word: the bytes 00 to 20, 7f, `\` and all that are not UTF-8 are written as `\xHH`.

mod archive;
mod format;
mod hash_files;
mod scan;
mod seal;

use std::{fmt, io};

use ce_model::exit::Explain;
use rustix::io::Errno;

pub use self::archive::{DirectoryArchive, ValuePiece};
pub use self::format::{
    EntryDifference, EntryKind, HEADER, Manifest, ManifestEntry, ManifestError, ManifestFault,
    ManifestMember,
};
pub use self::hash_files::FileCopy;
pub use self::scan::Scan;
pub use self::seal::{Made, seal, sealed_directory};

/// The largest number of entries that an error names.
const NAMED: usize = 10;

/// The reason why a directory could not be read. Paths are relative to it, and spelled as in a manifest.
#[derive(Debug, thiserror::Error, Explain)]
pub enum DirectoryError {
    /// The operating system refused.
    #[error("cannot read {}", place(path))]
    #[hint("ls -l shows who may read it")]
    Io {
        /// The path; empty for the directory itself.
        path: Box<[u8]>,
        /// The cause.
        source: io::Error,
    },
    /// The operating system refused to write a copy of it.
    #[error("cannot write the copy of {}", place(path))]
    #[hint("df and ls -ld show whether there is room, and who may write")]
    Write {
        /// The path; empty for the directory itself.
        path: Box<[u8]>,
        /// The cause.
        source: io::Error,
    },
    /// Entries that cannot be part of a value, sorted by their paths.
    #[error("{}", Refused::list(.0))]
    #[hint(_0.first().map(|first| refusal_hint(&first.why).to_owned()))]
    Refused(Vec<Refused>),
    /// An entry was changed, replaced or removed while the directory was read.
    #[error("{} was changed while it was read", place(.0))]
    #[hint("wait until nothing writes to it, then run this again")]
    Changed(Box<[u8]>),
    /// The user asked to stop.
    #[error("interrupted")]
    #[hint(None)]
    Interrupted,
}

/// An entry that cannot be part of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Its path in the directory.
    pub path: Box<[u8]>,
    /// The reason why it cannot.
    pub why: Refusal,
}

/// The reason why an entry cannot be part of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is called `.git`.
    Repository,
    /// It is something like `a FIFO`.
    Kind(&'static str),
    /// It is a symbolic link that leads out of the directory.
    Link {
        target: Box<[u8]>,
        /// The way in which it leads out.
        fault: LinkFault,
    },
}

/// What to try if an entry cannot be part of a value.
const fn refusal_hint(why: &Refusal) -> &'static str {
    match why {
        Refusal::Repository => "use a copy without .git: git archive HEAD | tar -x -C COPY",
        Refusal::Kind(_) => "remove what is neither a file, a directory nor a link",
        Refusal::Link { .. } => {
            "make links relative and keep them within the directory, or copy what they lead to"
        }
    }
}

/// The name of an entry in a message.
fn place(path: &[u8]) -> String {
    if path.is_empty() { "the directory itself".to_owned() } else { shown(path) }
}

impl DirectoryError {
    /// The meaning of an error of the operating system for an entry that existed just now.
    fn from_errno(path: &[u8], error: Errno) -> Self {
        match error {
            Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NXIO | Errno::INVAL => {
                Self::Changed(path.into())
            }
            error => Self::Io { path: path.into(), source: error.into() },
        }
    }

    /// A failure to write the copy of an entry.
    fn write(path: &[u8], source: io::Error) -> Self {
        Self::Write { path: path.into(), source }
    }

    /// The same error of the copy.
    pub fn writing(self) -> Self {
        match self {
            Self::Io { path, source } => Self::Write { path, source },
            Self::Changed(path) => Self::Write { path, source: Errno::STALE.into() },
            other => other,
        }
    }

    /// Whether a file system refused a name that was to be written: it is too long, is not valid text, or differs from
    /// another entry's only by upper and lower case, which are the same there.
    pub fn is_of_names(&self) -> bool {
        const NONE: [Errno; 3] = [Errno::NAMETOOLONG, Errno::ILSEQ, Errno::EXIST];
        match self {
            Self::Io { source, .. } | Self::Write { source, .. } => {
                Errno::from_io_error(source).is_some_and(|error| NONE.contains(&error))
            }
            Self::Changed(_) => true,
            Self::Refused(_) | Self::Interrupted => false,
        }
    }
}

impl Refused {
    /// Describes the first few in words.
    fn list(refused: &[Self]) -> String {
        match refused {
            [one] => one.to_string(),
            _ => {
                let lines = refused.iter().take(NAMED).map(|one| format!("\n    {one}"));
                let lines: String = lines.collect();
                let more = match refused.len().saturating_sub(NAMED) {
                    0 => String::new(),
                    more => format!("\n    and {more} more"),
                };
                format!("{} entries cannot be part of a value:{lines}{more}", refused.len())
            }
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = shown(&self.path);
        match &self.why {
            Refusal::Repository => {
                write!(f, "{path} belongs to a Git repository, which cannot be part of a value")
            }
            Refusal::Kind(kind) => write!(f, "{path} is {kind}, which cannot be part of a value"),
            Refusal::Link { target, fault } => {
                write!(f, "{path} is a symbolic link to {}, {fault}", shown(target))
            }
        }
    }
}

/// The reason why an entry cannot have a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathFault {
    /// It begins with a slash.
    #[error("is absolute")]
    Absolute,
    /// It is empty, or has two slashes in a row or one at the end.
    #[error("has an empty component")]
    Empty,
    /// A component is `.` or `..`.
    #[error("has a component . or ..")]
    Dots,
    /// A component is `.git`.
    #[error("has a component .git")]
    Repository,
    /// It has a zero byte, which a file name cannot have.
    #[error("has a zero byte")]
    Zero,
}

/// The reason why a directory cannot hold a symbolic link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinkFault {
    /// Its target begins with a slash.
    #[error("which is an absolute path")]
    Absolute,
    /// Its target has more `..` than there are directories around it.
    #[error("which is outside of the directory")]
    Outside,
    /// The target is empty or has a zero byte, which a link cannot have.
    #[error("which is empty or has a zero byte")]
    NoPath,
}

/// Checks the path of an entry, relative to the directory.
///
/// # Errors
///
/// Fails unless it has one or more components that are file names.
pub fn check_path(path: &[u8]) -> Result<(), PathFault> {
    if path.starts_with(b"/") {
        return Err(PathFault::Absolute);
    }
    if path.contains(&0) {
        return Err(PathFault::Zero);
    }
    path.split(|byte| *byte == b'/').try_for_each(|component| match component {
        b"" => Err(PathFault::Empty),
        b"." | b".." => Err(PathFault::Dots),
        b".git" => Err(PathFault::Repository),
        _ => Ok(()),
    })
}

/// Checks the target of the link that has this path in the directory.
///
/// Only the text of the target counts, not the file system: the target need not exist, and a component before a `..` counts as a
/// directory.
///
/// # Errors
///
/// Fails if the target is absolute or outside of the directory.
pub fn check_link(path: &[u8], target: &[u8]) -> Result<(), LinkFault> {
    if target.is_empty() || target.contains(&0) {
        return Err(LinkFault::NoPath);
    }
    if target.starts_with(b"/") {
        return Err(LinkFault::Absolute);
    }
    let mut depth = path.iter().filter(|byte| **byte == b'/').count();
    for component in target.split(|byte| *byte == b'/') {
        match component {
            b"" | b"." => {}
            b".." => depth = depth.checked_sub(1).ok_or(LinkFault::Outside)?,
            _ => depth += 1,
        }
    }
    Ok(())
}

/// The path of the directory that something is in, and its name there.
fn split_path(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (b"", path),
    }
}

/// Writes a path or target as manifests do: in a message, it then commands no terminal.
pub fn shown(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    escape(bytes, &mut text);
    text
}

/// Appends a path or target as manifests spell it.
fn escape(bytes: &[u8], text: &mut String) {
    for chunk in bytes.utf8_chunks() {
        let mut rest = chunk.valid();
        while let Some((plain, special)) =
            rest.find(|c| matches!(c, '\0'..=' ' | '\\' | '\x7f')).map(|at| rest.split_at(at))
        {
            text.push_str(plain);
            escape_byte(special.as_bytes()[0], text);
            rest = &special[1..];
        }
        text.push_str(rest);
        chunk.invalid().iter().for_each(|byte| escape_byte(*byte, text));
    }
}

fn escape_byte(byte: u8, text: &mut String) {
    text.push_str("\\x");
    text.extend(
        [byte >> 4, byte & 15].map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)])),
    );
}

/// Returns the bytes that a spelling stands for, or `None` if a `\` does not begin `\xHH`.
///
/// Spellings that [`escape`] does not write are accepted, too.
fn unescape(mut text: &[u8]) -> Option<Box<[u8]>> {
    let mut bytes = Vec::with_capacity(text.len());
    while let Some(at) = text.iter().position(|byte| *byte == b'\\') {
        bytes.extend_from_slice(&text[..at]);
        let [b'\\', b'x', high, low, rest @ ..] = &text[at..] else { return None };
        let [high, low] = [*high, *low].map(|byte| char::from(byte).to_digit(16));
        bytes.push(u8::try_from(high? * 16 + low?).ok()?);
        text = rest;
    }
    bytes.extend_from_slice(text);
    Some(bytes.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_escaped_path_is_one_word_and_stands_for_its_bytes() {
        for (bytes, text) in [
            (&b"a/b.txt"[..], "a/b.txt"),
            (b"a b\n\t\x7f\\", r"a\x20b\x0a\x09\x7f\x5c"),
            ("é\u{85}\u{feff}".as_bytes(), "é\u{85}\u{feff}"),
            (b"\xff\xc3", r"\xff\xc3"),
            // Cut, overlong, and half of a surrogate pair.
            (b"\xe2\x82a\xc0\xaf\xed\xa0\x80", r"\xe2\x82a\xc0\xaf\xed\xa0\x80"),
        ] {
            assert_eq!(shown(bytes), text);
            assert_eq!(unescape(text.as_bytes()).as_deref(), Some(bytes), "{text}");
        }
        for text in [r"\", r"\x", r"\x4", r"\n", r"\X41", r"\xgg", r"\x+1", r"a\\"] {
            assert_eq!(unescape(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn a_path_has_components_that_are_names() {
        for path in ["a", "a/b", "...", "a/.gitignore", "a\\b", "-"] {
            assert_eq!(check_path(path.as_bytes()), Ok(()), "{path}");
        }
        for (path, fault) in [
            ("", PathFault::Empty),
            ("a/", PathFault::Empty),
            ("a//b", PathFault::Empty),
            ("/a", PathFault::Absolute),
            ("./a", PathFault::Dots),
            ("a/..", PathFault::Dots),
            (".git", PathFault::Repository),
            ("a/.git/b", PathFault::Repository),
            ("a\0", PathFault::Zero),
        ] {
            assert_eq!(check_path(path.as_bytes()), Err(fault), "{path:?}");
        }
    }

    #[test]
    fn the_text_of_a_link_decides_whether_it_leads_out() {
        for (path, target) in
            [("a", "b"), ("a", "."), ("a/b", ".."), ("a/b", "../c/.."), ("a", "b/..//./c")]
        {
            assert_eq!(check_link(path.as_bytes(), target.as_bytes()), Ok(()), "{path} {target}");
        }
        for (path, target, fault) in [
            ("a", "/", LinkFault::Absolute),
            ("a", "..", LinkFault::Outside),
            ("a", "b/../../a", LinkFault::Outside),
            ("a/b", "../../a", LinkFault::Outside),
            ("a", "", LinkFault::NoPath),
        ] {
            let checked = check_link(path.as_bytes(), target.as_bytes());
            assert_eq!(checked, Err(fault), "{path} {target}");
        }
    }
}
