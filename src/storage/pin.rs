//! Pins: results that are never collected, with all that they were made of.

use serde::{Deserialize, Serialize};

use super::record::{Format, Provenance};
use super::survey::{Entry, PINS};
use super::{Result, Storage, StorageError};

/// Who wants a result to stay, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinRecord {
    /// How to read this record.
    pub format: Format,
    /// Why, in the user's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Who pinned it, and when.
    pub recorded: Provenance,
}

impl Storage {
    /// Pins a result. A pin that is there is replaced.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be written, or the result has just been collected.
    pub fn pin(&self, entry: &Entry, note: Option<String>) -> Result<()> {
        let pin = PinRecord { format: Format, note, recorded: self.provenance() };
        self.put_record(&entry.room(PINS), &pin)?;
        // The pin first, then this look: a collector looks the other way round.
        if self.disk.metadata(&self.path(&entry.record()))?.is_none() {
            self.unpin(entry)?;
            return Err(StorageError::Collected(self.path(&entry.file(0))));
        }
        self.flush()
    }

    /// Removes a pin; tells whether there was one.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be written.
    pub fn unpin(&self, entry: &Entry) -> Result<bool> {
        let path = self.path(&entry.room(PINS));
        let pinned = self.disk.exists(&path)?;
        self.disk.remove(&path)?;
        Ok(pinned)
    }

    /// Whether a result is pinned.
    pub(super) fn is_pinned(&self, entry: &Entry) -> Result<bool> {
        self.disk.exists(&self.path(&entry.room(PINS)))
    }

    /// Returns everything that is pinned, sorted by name, with the pin unless it is spoiled.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read.
    pub fn pins(&self) -> Result<Vec<(Entry, Option<PinRecord>)>> {
        let pin = |entry: Entry| {
            let pin = self.record(&entry.room(PINS))?.ok();
            Ok((entry, pin))
        };
        self.entries_in(PINS)?.into_iter().map(pin).collect()
    }
}
