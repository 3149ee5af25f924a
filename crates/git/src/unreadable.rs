//! The errors of reading a repository that a directory is in.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

use super::advice::{no_repository, trusting, unreadable};
use super::opening::{NoRepository, Untrusted};
use ce_model::exit::Explain;
use ce_model::hints;

/// The reason why the repository that a directory is in cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UnreadableRepository {
    /// The directory cannot be read.
    #[error("cannot read the repository {}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The directory is in no repository.
    #[error("{} is not in a Git repository", .0.display())]
    NoRepository(PathBuf),
    /// The repository belongs to another user, and is not trusted.
    #[error("the repository at {} belongs to another user", .0.display())]
    Untrusted(PathBuf),
    /// Git's data cannot be read.
    #[error("the repository {} cannot be read", path.display())]
    Git {
        /// The directory.
        path: PathBuf,
        /// The error of gix.
        source: Box<dyn Error + Send + Sync>,
    },
}

impl UnreadableRepository {
    /// The error of the operating system for a directory.
    pub(super) fn of_directory(dir: &Path, source: io::Error) -> Self {
        Self::Directory { path: dir.to_owned(), source }
    }

    /// The error of opening or reading the repository that a directory is in.
    pub(super) fn new(dir: &Path, source: Box<dyn Error + Send + Sync>) -> Self {
        match source.downcast_ref() {
            Some(Untrusted(top)) => Self::Untrusted(top.clone()),
            None if source.is::<NoRepository>() => Self::NoRepository(dir.to_owned()),
            None => Self::Git { path: dir.to_owned(), source },
        }
    }
}

impl Explain for UnreadableRepository {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Directory { path, source } => return hints::for_directory(path, source),
            Self::NoRepository(_) => no_repository().to_owned(),
            Self::Untrusted(top) => trusting(top.display()),
            Self::Git { source, .. } => unreadable(&**source).to_owned(),
        })
    }
}
