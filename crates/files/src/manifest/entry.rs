//! The entries of a directory, and their lines in a manifest.

use super::path::escape;
use ce_model::digest::Digest;

/// The first line of every manifest.
pub const HEADER: &str = "compeval directory 1";

/// An entry of a directory. `C` is what is known of the contents of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestEntry<C> {
    /// The path in the directory: names of any bytes, with `/` between them.
    pub path: Box<[u8]>,
    /// The kind of what has that path.
    pub kind: EntryKind<C>,
}

/// The kind of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryKind<C> {
    /// A file.
    File {
        /// The known facts of its contents.
        contents: C,
        /// Its owner may execute it.
        executable: bool,
    },
    /// A symbolic link.
    Link {
        /// Its target, which is relative and within the directory.
        target: Box<[u8]>,
    },
    /// An empty directory.
    Empty,
}

impl<C> ManifestEntry<C> {
    /// Appends the entry's line, in which `contents` writes what is known of a file's contents.
    pub(super) fn write(&self, contents: impl Fn(&C) -> String, text: &mut String) {
        match &self.kind {
            EntryKind::File { contents: known, executable } => {
                text.push_str(if *executable { "exec " } else { "file " });
                text.push_str(&contents(known));
                text.push(' ');
            }
            EntryKind::Link { target } => {
                text.push_str("link ");
                escape(target, text);
                text.push('\t');
            }
            EntryKind::Empty => text.push_str("dir "),
        }
        escape(&self.path, text);
        text.push('\n');
    }
}

/// Writes the contents of a file as a manifest does.
pub(super) fn contents(Digest { size, sha1, blake3, .. }: &Digest) -> String {
    format!("{size} {} {}", sha1.full(), blake3.full())
}
