//! Durability: what was written is on the disk before anybody counts on it.
//!
//! Files and directories are noted when they change, and flushed together: many small calls pay
//! for one flush.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use super::{Result, Storage, lock};

/// Up to so many files and directories are flushed one by one, more with the whole file system.
const MAX_SINGLE_FLUSHES: usize = 16;

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
pub(super) struct Unsynced {
    sync: Durability,
    paths: Mutex<HashSet<PathBuf>>,
}

impl Unsynced {
    pub(super) fn new(sync: Durability) -> Self {
        Self { sync, paths: Mutex::default() }
    }

    /// Notes that a file, or what a directory lists, has changed.
    pub(super) fn note(&self, path: &Path) {
        if self.sync == Durability::Synced {
            lock(&self.paths).insert(path.to_owned());
        }
    }

    /// Notes that a file has come into its directory.
    pub(super) fn note_entry(&self, file: &Path) {
        if let Some(directory) = file.parent() {
            self.note(directory);
        }
    }
}

impl Storage {
    /// Whether there is anything to be waited for: many calls should share a flush then.
    pub fn flushes(&self) -> bool {
        self.unsynced.sync == Durability::Synced
    }

    /// Waits until one file is on the disk.
    pub(super) fn sync(&self, path: &Path) -> Result<()> {
        if self.flushes() { self.disk.sync(path) } else { Ok(()) }
    }

    /// Waits until everything that was written so far is on the disk.
    ///
    /// # Errors
    ///
    /// Fails if the disk does; then nothing of it can be counted on.
    pub fn flush(&self) -> Result<()> {
        let paths = std::mem::take(&mut *lock(&self.unsynced.paths));
        let flushed = match paths.len() {
            0 => return Ok(()),
            1..=MAX_SINGLE_FLUSHES => paths.iter().try_for_each(|path| self.disk.sync(path)),
            _ => self.disk.sync_all(),
        };
        if flushed.is_err() {
            // Others may count on them with the next flush.
            lock(&self.unsynced.paths).extend(paths);
        }
        self.vanished().map_or(flushed, Err)
    }
}
