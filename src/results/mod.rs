//! Results in Git repositories: what is pushed there, how repositories join, and what is pulled from there.
//!
//! A results repository has the layout of a storage, so its clone is one. It holds nothing but published records and the
//! files that they promise; the names of those who executed are in a ledger beside them, if they want that.
//! doc/results.md describes it for users.

mod build;
mod inbox;
mod join;
mod layout;
mod ledger;
mod offer;
mod published;
mod pull;
mod push;
mod secrets;
mod selection;

use std::path::Path;

use crate::cache::Cache;
use crate::exit::Exit;
use crate::git::{Mirror, MirrorError};
use crate::storage::StorageError;

pub use self::offer::{LeftOut, Withheld};
pub use self::published::copies;
pub use self::pull::{PullRequest, Pulled, RefusedFor, RefusedResult, pull};
pub use self::push::push;
pub use self::selection::{DEFAULT_LIMIT, MAX_LIMIT, PushRequest, Pushed};

/// The reason why results were not exchanged with a repository.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResultsError {
    /// The storage cannot be read or written.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The repository is not to be had.
    #[error(transparent)]
    Mirror(#[from] MirrorError),
    /// There is no such repository.
    #[error("there is no repository {0}")]
    None(String),
    /// There is no place for a mirror.
    #[error(
        "there is no place for a mirror of {0}: neither HOME nor XDG_CACHE_HOME is a directory"
    )]
    NoCache(String),
    /// Others have pushed all the time.
    #[error(
        "others have pushed to {0} at every attempt, and its inbox cannot be written: try again"
    )]
    Busy(String),
}

impl ResultsError {
    /// The exit code for it.
    pub const fn exit(&self) -> Exit {
        match self {
            Self::None(_) => Exit::Malformed,
            _ => Exit::Storage,
        }
    }

    /// What to try.
    pub const fn advice(&self) -> Option<&'static str> {
        match self {
            Self::None(_) => Some("git init --bare PATH makes an empty one"),
            _ => None,
        }
    }
}

/// Opens the mirror of a repository, which is given by its path or URL.
///
/// # Errors
///
/// Fails if there is no such path, or no mirror can be made.
pub fn mirror(repository: &str, cache: Option<&Cache>) -> Result<Mirror, ResultsError> {
    let path = Path::new(repository);
    let url = match path.canonicalize() {
        Ok(real) => real.to_string_lossy().into_owned(),
        Err(_) if repository.contains(':') => repository.to_owned(),
        Err(_) => return Err(ResultsError::None(repository.to_owned())),
    };
    let cache = cache.ok_or_else(|| ResultsError::NoCache(repository.to_owned()))?;
    Ok(Mirror::open(&cache.mirror(&url), &url)?)
}
