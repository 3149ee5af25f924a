//! The repositories whose tasks use the storage, one file each: what a collection keeps results for.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::digest::Digest;
use crate::storage::disk::{Result, Root};
use crate::storage::layout::REPOSITORIES;
use crate::storage::records::{Format, Provenance, Records, RepositoryRecord, host};
use crate::storage::store::Storage;

/// How long a record is not written again.
const FRESH: Duration = Duration::from_secs(24 * 60 * 60);

/// A record of a repository, and the name that it has in the storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownRepository {
    /// Twelve digits: those of the path on the host.
    pub id: String,
    /// What is recorded, unless that is spoiled.
    pub record: Option<RepositoryRecord>,
}

/// The repositories that are recorded in a storage.
#[derive(Clone, Copy, Debug)]
pub struct KnownRepositories<'a> {
    root: &'a Root,
}

impl<'a> KnownRepositories<'a> {
    /// The repositories that are recorded in a storage.
    pub const fn new(storage: &'a Storage) -> Self {
        Self { root: &storage.root }
    }

    /// Whether it was recorded within a day that a repository on this host uses the storage.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read.
    pub fn is_recorded(&self, path: &str) -> Result<bool> {
        let metadata = self.root.disk.metadata(&self.root.path(&record(&id(path))))?;
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
    pub fn record(&self, path: &str, inode: u64) -> Result<()> {
        if self
            .is_recorded(path)
            .or_else(|error| error.is_not_own().then_some(true).ok_or(error))?
        {
            return Ok(());
        }
        let (name, recorded) = (record(&id(path)), Provenance::now());
        let path = path.to_owned();
        match Records::new(self.root)
            .put(&name, &RepositoryRecord { format: Format, path, inode, recorded })
        {
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
    pub fn all(&self) -> Result<Vec<KnownRepository>> {
        let names = self.root.names(REPOSITORIES)?;
        let ids = names.iter().filter_map(|name| name.strip_suffix(".json"));
        let known = |id: &str| {
            Ok(KnownRepository {
                id: id.to_owned(),
                record: Records::new(self.root).read(&record(id))?.ok(),
            })
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
    pub fn forget(&self, repository: &KnownRepository) -> Result<()> {
        self.root.disk.remove(&self.root.path(&record(&repository.id)))
    }
}

/// What tells a repository on this host from all others.
fn id(path: &str) -> String {
    Digest::of(format!("{}\0{path}", host()).as_bytes()).sha1.short()
}

fn record(id: &str) -> String {
    format!("{REPOSITORIES}/{id}.json")
}
