//! The text of a manifest.

use std::io::{self, Write};

use super::check::{ManifestError, PathOrder, check_entry};
use super::entry::{EntryKind, HEADER, ManifestEntry, contents};
use ce_model::digest::{Blake3, Digest, Hasher};

/// How much of a text is hashed at a time, in bytes.
const PIECE: usize = 64 << 10;

/// The contents of a directory: its files, its symbolic links, and the empty directories in it.
///
/// The entries are sorted by the bytes of their paths, each path occurs once, and no path leads through
/// another entry. So equal directories have equal manifests, byte for byte. doc/formats.md defines the text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    entries: Vec<ManifestEntry<Digest>>,
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

/// Returns the hash of a text that begins with this line and has a line for each entry.
pub(super) fn hash<C>(
    header: &str,
    entries: &[ManifestEntry<C>],
    contents: impl Fn(&C) -> String,
) -> Blake3 {
    let mut text = format!("{header}\n");
    entries.iter().for_each(|entry| entry.write(&contents, &mut text));
    Blake3::of(text.as_bytes())
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
        Digest { bytes: Some(self.bytes()), ..digest(HEADER, &self.entries, contents) }
    }
}
