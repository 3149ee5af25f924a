//! Files of a result that were moved away, until it is known whether they are in use.

use std::path::PathBuf;

use crate::disk::Result;
use crate::store::Storage;

/// Files that were moved away. Whatever was not discarded is moved back in the end.
#[derive(Debug)]
pub(super) struct MovedFiles<'a> {
    storage: &'a Storage,
    /// Their paths now, and their names.
    files: Vec<(PathBuf, String)>,
}

impl<'a> MovedFiles<'a> {
    pub(super) const fn new(storage: &'a Storage) -> Self {
        Self { storage, files: Vec::new() }
    }

    /// Moves a file or directory of this name away, if it is there.
    pub(super) fn take(&mut self, name: String) -> Result<()> {
        let root = &self.storage.root;
        let (path, private) = (root.path(&name), root.private_path()?);
        if root.disk.rename(&path, &private)? {
            root.unsynced.note_entry(&path);
            self.files.push((private, name));
        }
        Ok(())
    }

    /// Moves all of them back, unless they were made again.
    pub(super) fn put_back(&mut self) -> Result<()> {
        let disk = &self.storage.root.disk;
        while let Some((moved, name)) = self.files.pop() {
            if !disk.rename_new(&moved, &self.storage.path(&name))? {
                disk.remove_tree(&moved)?;
            }
        }
        Ok(())
    }

    /// Removes all of them.
    pub(super) fn discard(&mut self) -> Result<()> {
        while let Some((moved, _)) = self.files.pop() {
            self.storage.root.disk.remove_tree(&moved)?;
        }
        Ok(())
    }
}

impl Drop for MovedFiles<'_> {
    fn drop(&mut self) {
        // Without a record, a file is only hashed again; beside outputs that are here, a mark means nothing.
        drop(self.put_back());
    }
}
