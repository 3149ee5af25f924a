//! The repositories whose tasks use the storage, one file each: what a collection keeps results for.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::record::{Format, Provenance};
use super::{Result, Storage, run};
use crate::digest::Digest;

/// Where they are.
pub(super) const REPOSITORIES: &str = "repositories";

/// How long a record is not written again.
const FRESH: Duration = Duration::from_secs(24 * 60 * 60);

/// A repository with tasks that were evaluated into the storage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepositoryRecord {
    /// How to read this record.
    pub format: Format,
    /// The real path of the repository.
    pub path: String,
    /// The inode of its Git directory: tells on other hosts whether the path leads to the same one.
    pub inode: u64,
    /// Who evaluated a task of it, and when: the last time, give or take a day.
    pub recorded: Provenance,
}

/// A record of a repository, and the name that it has in the storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownRepository {
    /// Twelve digits: those of the path on the host.
    pub id: String,
    /// What is recorded, unless that is spoiled.
    pub record: Option<RepositoryRecord>,
}

impl RepositoryRecord {
    /// Whether this host recorded it.
    pub fn is_of_this_host(&self) -> bool {
        self.recorded.host == run::host()
    }
}

impl Storage {
    /// Whether it was recorded within a day that a repository on this host uses the storage.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read.
    pub fn is_recorded(&self, path: &str) -> Result<bool> {
        let metadata = self.disk.metadata(&self.path(&record(&id(path))))?;
        let modified = metadata.and_then(|metadata| u64::try_from(metadata.modified_ns()).ok());
        let modified = modified.map(|modified| UNIX_EPOCH + Duration::from_nanos(modified));
        let age = modified.map(|modified| SystemTime::now().duration_since(modified));
        Ok(age.is_some_and(|age| age.is_ok_and(|age| age < FRESH)))
    }

    /// Records that a task of a repository is evaluated here. Costs one look at a file if that was
    /// recorded within a day. Who may not write has no results to lose, and records nothing.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be written for another reason.
    pub fn record_repository(&self, path: &str, inode: u64) -> Result<()> {
        if self
            .is_recorded(path)
            .or_else(|error| error.is_not_own().then_some(true).ok_or(error))?
        {
            return Ok(());
        }
        let (name, recorded) = (record(&id(path)), self.provenance());
        let path = path.to_owned();
        match self.put_record(&name, &RepositoryRecord { format: Format, path, inode, recorded }) {
            // It is only for collections, which tell what is in the way.
            Err(error) if error.may_not_write() || error.is_not_own() => Ok(()),
            done => done,
        }
    }

    /// Returns all repositories that are recorded, sorted by path.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read, or only a newer version can.
    pub fn repositories(&self) -> Result<Vec<KnownRepository>> {
        let names = self.below(REPOSITORIES)?;
        let ids = names.iter().filter_map(|name| name.strip_suffix(".json"));
        let known = |id: &str| {
            Ok(KnownRepository { id: id.to_owned(), record: self.record(&record(id))?.ok() })
        };
        let mut known = ids.map(known).collect::<Result<Vec<_>>>()?;
        known.sort_by_cached_key(|known| known.record.as_ref().map(|it| it.path.clone()));
        Ok(known)
    }

    /// Forgets a repository that is recorded.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be written.
    pub fn forget_repository(&self, repository: &KnownRepository) -> Result<()> {
        self.disk.remove(&self.path(&record(&repository.id)))
    }
}

/// What tells a repository on this host from all others.
fn id(path: &str) -> String {
    Digest::of(format!("{}\0{path}", run::host()).as_bytes()).sha1.short()
}

fn record(id: &str) -> String {
    format!("{REPOSITORIES}/{id}.json")
}
