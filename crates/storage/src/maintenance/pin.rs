//! Pins: results that are never collected, with everything that they were made from.

use crate::disk::{Result, StorageError};
use crate::layout::{Entry, PINS};
use crate::records::{Format, PinRecord, Provenance};
use crate::store::Storage;

use super::Survey;

/// The pins of a storage.
#[derive(Clone, Copy, Debug)]
pub struct Pins<'a> {
    storage: &'a Storage,
}

impl<'a> Pins<'a> {
    /// The pins of a storage.
    pub const fn new(storage: &'a Storage) -> Self {
        Self { storage }
    }

    /// Pins a result. Replaces an existing pin.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be written, or the result has just been collected.
    pub fn add(&self, entry: &Entry, note: Option<String>) -> Result<()> {
        let pin = PinRecord { format: Format::FILES, note, recorded: Provenance::now() };
        self.storage.records().put(&entry.room(PINS), &pin)?;
        // The pin is written before this check, and a collector works in the opposite order: one of
        // the two notices the other.
        if self.storage.root.disk.metadata(&self.storage.path(&entry.record()))?.is_none() {
            self.remove(entry)?;
            return Err(StorageError::Collected(self.storage.path(&entry.file(0))));
        }
        self.storage.flush()
    }

    /// Removes a pin. Returns whether there was one.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be written.
    pub fn remove(&self, entry: &Entry) -> Result<bool> {
        let path = self.storage.path(&entry.room(PINS));
        let pinned = self.storage.root.disk.exists(&path)?;
        self.storage.root.disk.remove(&path)?;
        Ok(pinned)
    }

    /// Whether a result is pinned.
    pub(crate) fn has(&self, entry: &Entry) -> Result<bool> {
        self.storage.root.disk.exists(&self.storage.path(&entry.room(PINS)))
    }

    /// Returns all pinned results, sorted by name, with their pins unless they are spoiled.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read.
    pub fn all(&self) -> Result<Vec<(Entry, Option<PinRecord>)>> {
        let mut pins = Vec::new();
        for entry in Survey::new(self.storage).entries_in(PINS)? {
            let pin = self.storage.records().read(&entry.room(PINS))?.ok();
            pins.push((entry, pin));
        }
        Ok(pins)
    }
}
