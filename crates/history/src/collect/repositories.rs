//! Commits that are reachable in the recorded repositories of a storage.
//!
//! An unreadable repository is an error, never an omission: it may be on another host, or on a disk
//! that is not mounted.

use std::path::Path;

use ce_git::{Home, ReachError, ReachableSet};
use ce_model::exit::{Exit, Explain};
use ce_storage::{KnownRepositories, KnownRepository, RepositoryRecord, Storage, StorageError};

/// The reason why the reachable commits are unknown.
#[derive(Debug, thiserror::Error)]
pub enum RepositoryError {
    /// The storage cannot be read.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// A repository cannot be read.
    #[error(transparent)]
    Reach(#[from] ReachError),
    /// No repository is recorded.
    #[error("no repository is recorded to use the storage")]
    None,
    /// Some repositories were not found: a line for each.
    #[error("cannot read these recorded repositories:{}", lines(.0))]
    Lost(Vec<String>),
    /// The repository to forget is not recorded.
    #[error("no repository is recorded as {0}")]
    Unknown(String),
}

impl Explain for RepositoryError {
    fn exit(&self) -> Exit {
        match self {
            Self::Storage(_) => Exit::Storage,
            Self::Reach(_) | Self::None | Self::Lost(_) | Self::Unknown(_) => Exit::Malformed,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Storage(error) => return error.hint(),
            Self::Reach(error) => return error.hint(),
            Self::None => {
                "name all that use it with --keep REPOSITORY, or give --no-keep with --older TIME"
            }
            Self::Lost(_) => {
                "ce gc --forget ID STORAGE for one that is gone; or collect on a host that has all of \
                 them, or name those to keep with --keep REPOSITORY"
            }
            Self::Unknown(_) => "ce gc --repositories STORAGE lists them",
        };
        Some(hint.to_owned())
    }
}

fn lines(lost: &[String]) -> String {
    lost.iter().map(|line| format!("\n  {line}")).collect()
}

/// Whether a recorded repository is on this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It is on this host.
    Here,
    /// There is no repository at its path.
    Gone,
    /// It was recorded on another host, and its path leads to another repository here.
    Elsewhere,
}

impl Presence {
    /// Looks for a recorded repository on this host.
    pub fn of(record: &RepositoryRecord) -> Self {
        let path = Path::new(&record.path);
        match Home::of(path) {
            Ok(home) if home.path != path => Self::Gone,
            Ok(home) if record.is_of_this_host() || home.inode == record.inode => Self::Here,
            Ok(_) => Self::Elsewhere,
            Err(_) => Self::Gone,
        }
    }

    /// A description, as in "the repository ...".
    pub const fn text(self) -> &'static str {
        match self {
            Self::Here => "is there",
            Self::Gone => "is not there",
            Self::Elsewhere => "is another one here",
        }
    }
}

/// Returns the commits that are reachable in the recorded repositories.
///
/// # Errors
///
/// Fails if there are none, or one cannot be read.
pub fn reach_of_recorded(storage: &Storage) -> Result<ReachableSet, RepositoryError> {
    let mut here = Vec::new();
    let mut lost = Vec::new();
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

/// Returns the recorded repositories that are not among these, so their results are not kept.
pub fn not_kept<'a>(
    storage: &Storage,
    kept: impl Iterator<Item = &'a Path>,
) -> Result<Vec<RepositoryRecord>, StorageError> {
    let kept: Vec<Home> = kept.filter_map(|path| Home::of(path).ok()).collect();
    let known = KnownRepositories::new(storage).all()?;
    let mut not_kept: Vec<_> = known.into_iter().filter_map(|known| known.record).collect();
    not_kept.retain(|record| {
        kept.iter().all(|home| home.path != Path::new(&record.path))
            || Presence::of(record) != Presence::Here
    });
    Ok(not_kept)
}

/// Removes the records of repositories, given by ID or by path on any host.
///
/// # Errors
///
/// Fails if one of them is not recorded, before any is forgotten, or the storage cannot be written.
pub fn forget(storage: &Storage, repositories: &[String]) -> Result<(), RepositoryError> {
    let known = KnownRepositories::new(storage).all()?;
    let mut found = Vec::new();
    for wanted in repositories {
        let real = Home::of(Path::new(wanted)).ok().map(|home| home.path);
        let before = found.len();
        found.extend(known.iter().filter(|known| {
            let path = known.record.as_ref().map(|record| record.path.as_str());
            known.id == *wanted
                || path.is_some_and(|path| path == wanted || real.as_deref() == Some(path.as_ref()))
        }));
        if found.len() == before {
            return Err(RepositoryError::Unknown(wanted.clone()));
        }
    }
    Ok(found.into_iter().try_for_each(|known| KnownRepositories::new(storage).forget(known))?)
}
