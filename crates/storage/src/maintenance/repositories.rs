//! The repositories whose tasks use the storage, one file each. A collection keeps their results.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::disk::{Result, Root};
use crate::layout::REPOSITORIES;
use crate::records::{Format, Provenance, Records, RepositoryRecord, host};
use crate::store::Storage;
use ce_model::digest::Digest;

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
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read.
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
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be written for another reason.
    pub fn record(&self, path: &str, inode: u64) -> Result<()> {
        if self
            .is_recorded(path)
            .or_else(|error| error.is_not_own().then_some(true).ok_or(error))?
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
            Err(error) if error.may_not_write() || error.is_not_own() => Ok(()),
            done => done,
        }
    }

    /// Returns all repositories that are recorded, sorted by path.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read, or only a newer version can.
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
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be written.
    pub fn forget(&self, repository: &KnownRepository) -> Result<()> {
        self.root.disk.remove(&self.root.path(&record(&repository.id)))
    }
}

/// The id of a repository on this host.
fn id(path: &str) -> String {
    Digest::of(format!("{}\0{path}", host()).as_bytes()).sha1.short()
}

fn record(id: &str) -> String {
    format!("{REPOSITORIES}/{id}.json")
}
