//! What the repositories reach that are recorded to use a storage.
//!
//! What cannot be known is an error, never an omission: a repository that is not to be found may be
//! on another host, or on a disk that is not mounted.

use std::fmt::Write as _;
use std::path::Path;

use crate::git::{Home, ReachError, ReachableSet};
use crate::storage::{KnownRepositories, KnownRepository, RepositoryRecord, Storage, StorageError};

/// Why it cannot be told what recorded repositories reach.
#[derive(Debug, thiserror::Error)]
pub enum RepositoryError {
    /// The storage cannot be read.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// One of them cannot be read.
    #[error(transparent)]
    Reach(#[from] ReachError),
    /// There are none.
    #[error("no repository is recorded to use the storage")]
    None,
    /// Some of them are not to be found: a line for each.
    #[error("cannot read these recorded repositories:{}", lines(.0))]
    Lost(Vec<String>),
    /// What is to be forgotten is not recorded.
    #[error("no repository is recorded as {0}")]
    Unknown(String),
}

impl RepositoryError {
    /// What the user can do about it, if that is not plain.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Storage(error) => error.hint(),
            Self::Reach(error) => error.hint(),
            Self::None => Some(
                "name all that use it with --keep REPOSITORY, or give --no-keep with --older AGE",
            ),
            Self::Lost(_) => Some(
                "ce gc --forget ID STORAGE for one that is gone; or collect on a host that has all of \
                 them, or name those to keep with --keep REPOSITORY",
            ),
            Self::Unknown(_) => Some("ce gc --repositories STORAGE lists them"),
        }
    }
}

fn lines(lost: &[String]) -> String {
    lost.iter().fold(String::new(), |mut text, line| {
        // Writing to a string cannot fail.
        let _written = write!(text, "\n  {line}");
        text
    })
}

/// Whether a recorded repository can be looked into here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It is there.
    Here,
    /// Nothing is there, or no repository.
    Gone,
    /// It was recorded on another host, and here its path leads to another repository.
    Elsewhere,
}

impl Presence {
    /// Looks whether a repository can be looked into here.
    pub fn of(record: &RepositoryRecord) -> Self {
        let path = Path::new(&record.path);
        match Home::of(path) {
            Ok(home) if home.path != path => Self::Gone,
            Ok(home) if record.is_of_this_host() || home.inode == record.inode => Self::Here,
            Ok(_) => Self::Elsewhere,
            Err(_) => Self::Gone,
        }
    }

    /// What it means, in words.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Here => "is there",
            Self::Gone => "is not there",
            Self::Elsewhere => "is another one here",
        }
    }
}

/// Returns what all repositories reach that are recorded to use a storage.
///
/// # Errors
///
/// Fails if there are none, or what one of them reaches cannot be told.
pub fn reach_of_recorded(storage: &Storage) -> Result<ReachableSet, RepositoryError> {
    let (mut here, mut lost) = (Vec::new(), Vec::new());
    for KnownRepository { id, record } in KnownRepositories::new(storage).all()? {
        match record {
            None => lost.push(format!("{id}: its record cannot be understood")),
            Some(record) => match Presence::of(&record) {
                Presence::Here => here.push(record.path),
                other => {
                    let (path, host) = (&record.path, &record.recorded.host);
                    lost.push(format!("{id}: {path} of the host {host} {}", other.text()));
                }
            },
        }
    }
    if !lost.is_empty() {
        return Err(RepositoryError::Lost(lost));
    }
    if here.is_empty() {
        return Err(RepositoryError::None);
    }
    here.sort_unstable();
    here.dedup();
    let mut reach = ReachableSet::default();
    here.iter().try_for_each(|path| reach.add(Path::new(path)))?;
    Ok(reach)
}

/// Returns the recorded repositories of which the results are not kept for these.
///
/// # Errors
///
/// Fails if the storage cannot be read.
pub fn not_kept<'a>(
    storage: &Storage,
    kept: impl Iterator<Item = &'a Path>,
) -> Result<Vec<RepositoryRecord>, StorageError> {
    let kept: Vec<Home> = kept.filter_map(|path| Home::of(path).ok()).collect();
    let known = KnownRepositories::new(storage).all()?.into_iter().filter_map(|known| known.record);
    let is_kept = |record: &RepositoryRecord| {
        kept.iter().any(|home| home.path == Path::new(&record.path))
            && Presence::of(record) == Presence::Here
    };
    Ok(known.filter(|record| !is_kept(record)).collect())
}

/// Forgets recorded repositories: each by its ID, or by its path on any host.
///
/// # Errors
///
/// Fails if one of them is not recorded, before any is forgotten, or the storage cannot be written.
pub fn forget(storage: &Storage, repositories: &[String]) -> Result<(), RepositoryError> {
    let known = KnownRepositories::new(storage).all()?;
    let mut found = Vec::new();
    for wanted in repositories {
        let real = Home::of(Path::new(wanted)).ok().map(|home| home.path);
        let is_meant = |known: &&KnownRepository| {
            let path = known.record.as_ref().map(|record| record.path.as_str());
            known.id == *wanted
                || path.is_some_and(|path| path == wanted || real.as_deref() == Some(path.as_ref()))
        };
        let before = found.len();
        found.extend(known.iter().filter(is_meant));
        if found.len() == before {
            return Err(RepositoryError::Unknown(wanted.clone()));
        }
    }
    Ok(found.into_iter().try_for_each(|known| KnownRepositories::new(storage).forget(known))?)
}
