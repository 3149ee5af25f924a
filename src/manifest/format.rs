//! The text of a manifest.

use std::io::{self, Write};

use super::parse::{ManifestError, PathOrder, check_entry};
use super::path::escape;
use crate::digest::{Digest, Hasher};

/// The first line of every manifest.
pub const HEADER: &str = "compeval directory 1";

/// How much of a text is hashed at a time, in bytes.
const PIECE: usize = 64 << 10;

/// What a directory contains: its files, its symbolic links, and the empty directories in it.
///
/// The entries are sorted by the bytes of their paths, each path occurs once, and no path leads through
/// another entry. So equal directories have equal manifests, byte for byte. doc/formats.md defines the text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    entries: Vec<ManifestEntry<Digest>>,
}

/// An entry of a directory. `C` is what is known of the contents of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestEntry<C> {
    /// The path in the directory: names of any bytes, with `/` between them.
    pub path: Box<[u8]>,
    /// What has that path.
    pub kind: EntryKind<C>,
}

/// The kind of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryKind<C> {
    /// A file.
    File {
        /// What is known of its contents.
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
pub(super) fn contents(Digest { size, sha1, blake3 }: &Digest) -> String {
    format!("{size} {} {}", sha1.full(), blake3.full())
}

/// Returns the digest of a text that begins with this line and has a line for each entry.
pub(super) fn digest<C>(
    header: &str,
    entries: &[ManifestEntry<C>],
    contents: impl Fn(&C) -> String,
) -> Digest {
    let mut hasher = Hasher::default();
    let mut text = format!("{header}\n");
    for entry in entries {
        entry.write(&contents, &mut text);
        if text.len() >= PIECE {
            hasher.update(text.as_bytes());
            text.clear();
        }
    }
    hasher.update(text.as_bytes());
    hasher.finish()
}

impl Manifest {
    /// Returns the manifest of a directory that has these entries, in any order.
    ///
    /// # Errors
    ///
    /// Fails if no directory has them. The error names the line that the entry would have.
    pub fn new(mut entries: Vec<ManifestEntry<Digest>>) -> Result<Self, ManifestError> {
        entries.sort_by(|one, other| one.path.cmp(&other.path));
        let mut order = PathOrder::default();
        for (at, entry) in entries.iter().enumerate() {
            let checked = check_entry(entry).and_then(|()| order.check(&entries[..at], entry));
            checked.map_err(|fault| ManifestError { line: at + 2, fault })?;
        }
        Ok(Self { entries })
    }

    /// Returns the manifest of entries that were checked and are sorted.
    pub(super) const fn of_sorted(entries: Vec<ManifestEntry<Digest>>) -> Self {
        Self { entries }
    }

    /// The entries, sorted by the bytes of their paths.
    pub fn entries(&self) -> &[ManifestEntry<Digest>] {
        &self.entries
    }

    /// How many bytes all files have together. A file counts once for each of its names.
    pub fn bytes(&self) -> u64 {
        self.entries.iter().fold(0, |sum: u64, entry| match &entry.kind {
            EntryKind::File { contents, .. } => sum.saturating_add(contents.size),
            EntryKind::Link { .. } | EntryKind::Empty => sum,
        })
    }

    /// Writes the text, line by line.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be written.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut line = format!("{HEADER}\n");
        for entry in &self.entries {
            out.write_all(line.as_bytes())?;
            line.clear();
            entry.write(contents, &mut line);
        }
        out.write_all(line.as_bytes())
    }

    /// Returns the digest of the text: the identity of the directory.
    pub fn digest(&self) -> Digest {
        digest(HEADER, &self.entries, contents)
    }
}
