//! Durability: what was written is on the disk before anybody counts on it.
//!
//! Files and directories are noted when they change, and flushed together: many small calls share
//! one flush.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use super::lock;

/// Whether what is written is flushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// It is: a result that was told survives a loss of power.
    Synced,
    /// It is not: faster, and safe as long as the power stays on.
    Unsynced,
}

/// What has changed and may not be on the disk yet.
#[derive(Debug)]
pub(in crate::storage) struct Unsynced {
    sync: Durability,
    paths: Mutex<HashSet<PathBuf>>,
}

impl Unsynced {
    pub(in crate::storage) fn new(sync: Durability) -> Self {
        Self { sync, paths: Mutex::default() }
    }

    /// Notes that a file, or what a directory lists, has changed.
    pub(in crate::storage) fn note(&self, path: &Path) {
        if self.is_synced() {
            lock(&self.paths).insert(path.to_owned());
        }
    }

    /// Notes that a file has come into its directory.
    pub(in crate::storage) fn note_entry(&self, file: &Path) {
        if let Some(directory) = file.parent() {
            self.note(directory);
        }
    }

    /// Whether anything is flushed at all.
    pub(in crate::storage) fn is_synced(&self) -> bool {
        self.sync == Durability::Synced
    }

    /// Takes all that was noted, to be flushed.
    pub(super) fn take(&self) -> HashSet<PathBuf> {
        std::mem::take(&mut *lock(&self.paths))
    }

    /// Notes again what could not be flushed: others may count on it with the next flush.
    pub(super) fn put_back(&self, paths: HashSet<PathBuf>) {
        lock(&self.paths).extend(paths);
    }
}
