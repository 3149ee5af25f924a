//! Maintenance of a storage: listing, checking, repairing and collecting its contents.
//!
//! This file lists the results that a collection keeps: pinned results with everything that they were made from, and
//! the repositories whose tasks use the storage.

mod collect;
mod identity;
mod survey;
pub mod verify;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub use self::collect::{NewRecords, RecordWatch, Removal};
pub use self::identity::{StorageId, StorageIdentity, StorageRecord};
pub use self::survey::{NameKind, PastCall, PastCallRef, Survey};
use super::disk::{Result, Root, StorageError};
use super::paths::{Entry, PINS, REPOSITORIES};
use super::protocol::Storage;
use super::records::{Format, PinRecord, Provenance, Records, RepositoryRecord, host};
use ce_model::digest::Digest;

/// Checks, repairs and collects results.
#[derive(Clone, Copy, Debug)]
pub struct Maintenance<'a> {
    storage: &'a Storage,
}

impl<'a> Maintenance<'a> {
    /// The maintenance of a storage.
    pub const fn new(storage: &'a Storage) -> Self {
        Self { storage }
    }
}

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
    pub fn all(&self) -> Result<Vec<(Entry, Option<PinRecord>)>> {
        let mut pins = Vec::new();
        for entry in Survey::new(self.storage).entries_in(PINS)? {
            let pin = self.storage.records().read(&entry.room(PINS))?.ok();
            pins.push((entry, pin));
        }
        Ok(pins)
    }
}

/// The time for which a record is not written again.
const FRESH: Duration = Duration::from_secs(24 * 60 * 60);

/// The record of a repository, and its name in the storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownRepository {
    /// Twelve digits: the hash of host and path.
    pub id: String,
    /// The record, unless it is spoiled.
    pub record: Option<RepositoryRecord>,
}

/// The recorded repositories of a storage.
#[derive(Clone, Copy, Debug)]
pub struct KnownRepositories<'a> {
    root: &'a Root,
}

impl<'a> KnownRepositories<'a> {
    /// The recorded repositories of a storage.
    pub const fn new(storage: &'a Storage) -> Self {
        Self { root: &storage.root }
    }

    /// Whether a repository on this host was recorded within the last day.
    pub fn is_recorded(&self, path: &str) -> Result<bool> {
        let metadata = self.root.disk.metadata(&self.root.path(&record(&id(path))))?;
        Ok(metadata.is_some_and(|metadata| {
            let modified = Duration::from_nanos(metadata.modified_ns().try_into().unwrap_or(0));
            SystemTime::now().duration_since(UNIX_EPOCH + modified).is_ok_and(|age| age < FRESH)
        }))
    }

    /// Records that a task of a repository is evaluated here. Costs one `stat` if that was recorded
    /// within the last day. A user who may not write has no results to lose, so nothing is recorded
    /// then.
    pub fn record(&self, path: &str, inode: u64) -> Result<()> {
        if self
            .is_recorded(path)
            .or_else(|error| error.is_foreign().then_some(true).ok_or(error))?
        {
            return Ok(());
        }
        let repository = RepositoryRecord {
            format: Format::FILES,
            path: path.to_owned(),
            inode,
            recorded: Provenance::now(),
        };
        match Records::new(self.root).put(&record(&id(path)), &repository) {
            // Only collections need it, and they report this error.
            Err(error) if error.may_not_write() || error.is_foreign() => Ok(()),
            done => done,
        }
    }

    /// Returns all repositories that are recorded, sorted by path.
    pub fn all(&self) -> Result<Vec<KnownRepository>> {
        let mut known = Vec::new();
        for name in self.root.names(REPOSITORIES)? {
            if let Some(id) = name.strip_suffix(".json") {
                let record = Records::new(self.root).read(&record(id))?.ok();
                known.push(KnownRepository { id: id.to_owned(), record });
            }
        }
        known.sort_by_cached_key(|known| known.record.as_ref().map(|it| it.path.clone()));
        Ok(known)
    }

    /// Removes the record of a repository.
    pub fn forget(&self, repository: &KnownRepository) -> Result<()> {
        self.root.disk.remove(&self.root.path(&record(&repository.id)))
    }
}

/// The id of a repository on this host.
fn id(path: &str) -> String {
    Digest::hash_bytes(format!("{}\0{path}", host()).as_bytes()).sha1.short()
}

fn record(id: &str) -> String {
    format!("{REPOSITORIES}/{id}.json")
}
