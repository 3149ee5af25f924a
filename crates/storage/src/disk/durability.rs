//! Durability: written files are on the disk before anything depends on them.
//!
//! Files and directories are noted when they change, and flushed together: many small calls share
//! one flush.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::lock;

/// Whether written files are flushed to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Everything is flushed before it is reported: a reported result survives a loss of power.
    Synced,
    /// Nothing is flushed: faster, and safe as long as the power stays on.
    Unsynced,
}

/// Files and directories that have changed and may not be on the disk yet.
#[derive(Debug)]
pub(crate) struct Unsynced {
    sync: Durability,
    paths: Mutex<HashSet<PathBuf>>,
    /// When the flush began that goes on.
    flushing: Mutex<Option<Instant>>,
}

impl Unsynced {
    pub(crate) fn new(sync: Durability) -> Self {
        Self { sync, paths: Mutex::default(), flushing: Mutex::default() }
    }

    /// Notes that a file, or the list of entries of a directory, has changed.
    pub(crate) fn note(&self, path: &Path) {
        if self.is_synced() {
            lock(&self.paths).insert(path.to_owned());
        }
    }

    /// Notes that a file and the entry for it in its directory are new.
    pub(crate) fn note_new(&self, file: &Path) {
        self.note(file);
        self.note_entry(file);
    }

    /// Notes that the entry for a file in its directory has changed.
    pub(crate) fn note_entry(&self, file: &Path) {
        if let Some(directory) = file.parent() {
            self.note(directory);
        }
    }

    /// Whether writes are flushed at all.
    pub(crate) fn is_synced(&self) -> bool {
        self.sync == Durability::Synced
    }

    /// Notes that a flush begins now, or is over.
    pub(super) fn note_flush(&self, began: Option<Instant>) {
        *lock(&self.flushing) = began;
    }

    /// How long the flush has lasted that goes on.
    pub(crate) fn flushing(&self) -> Option<Duration> {
        lock(&self.flushing).map(|began| began.elapsed())
    }

    /// Returns all noted paths, to be flushed, and forgets them.
    pub(super) fn take(&self) -> HashSet<PathBuf> {
        std::mem::take(&mut *lock(&self.paths))
    }

    /// Notes paths again that could not be flushed: the next flush must cover them.
    pub(super) fn put_back(&self, paths: HashSet<PathBuf>) {
        lock(&self.paths).extend(paths);
    }
}
