//! Revocations that were pulled: what others say is wrong. Nothing is deleted because of them.

use super::Storage;
use crate::digest::Blake3;
use crate::storage::disk::Result;
use crate::storage::layout::{Entry, of_revocation, revocation, revocations};
use crate::storage::records::{Record, RevocationRecord};

/// The revocations in a storage.
#[derive(Clone, Copy, Debug)]
pub struct Revocations<'a> {
    storage: &'a Storage,
}

impl<'a> Revocations<'a> {
    pub(super) const fn new(storage: &'a Storage) -> Self {
        Self { storage }
    }

    /// Returns what revokes a result, in the order of the names. Files that cannot be understood revoke nothing.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read.
    pub fn of(&self, entry: &Entry, record: &Record) -> Result<Vec<RevocationRecord>> {
        let (root, directory) = (&self.storage.root, revocations(entry));
        let outputs: Vec<_> = entry.expected_files(record).iter().map(|it| it.digest).collect();
        let mut found = Vec::new();
        for name in root.own_names(&directory)? {
            let name = format!("{directory}/{name}");
            let Some((_, contents)) = of_revocation(&name) else { continue };
            let text = match root.disk.read(&root.path(&name)) {
                Err(error) if error.is_not_own() => continue,
                read => read?.unwrap_or_default(),
            };
            let is_right = Blake3::of(&text) == contents;
            let revocation = RevocationRecord::of_text(&text).filter(|_| is_right);
            found.extend(revocation.filter(|it| outputs.starts_with(&it.outputs)));
        }
        Ok(found)
    }

    /// Adds a revocation. Returns whether it was new. It is durable after the next [`flush`](Storage::flush).
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be written.
    pub fn add(&self, entry: &Entry, text: &[u8]) -> Result<bool> {
        let root = &self.storage.root;
        let name = revocation(entry, &Blake3::of(text));
        if root.disk.exists(&root.path(&name))? {
            return Ok(false);
        }
        let private = root.private_path()?;
        root.disk.write_sealed(&private, text, 0o444)?;
        root.unsynced.note(&private);
        let place = root.place(&name)?;
        root.disk.rename(&private, &place)?;
        root.unsynced.note_new(&place);
        Ok(true)
    }
}
