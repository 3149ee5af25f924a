//! The errors of reading a commit.

use std::error::Error;
use std::path::{Path, PathBuf};

use super::advice::{no_task_repository, unreadable};
use super::opening::NoRepository;
use super::shallow::CutOff;

use ce_model::exit::Explain;

/// The reason why an entry of a commit cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// No commit is called so.
    #[error("there is no commit {rev} in {}", repository.display())]
    Revision {
        /// The revision.
        rev: String,
        /// The repository.
        repository: PathBuf,
        /// The error of gix.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The directory is in no repository.
    #[error("{} is not in a Git repository", .0.display())]
    NoRepository(PathBuf),
    /// There is no entry with this path.
    #[error("does not exist")]
    Missing,
    /// A file stands on the way.
    #[error("is not a directory")]
    NotADirectory,
    /// Something other than a submodule stands there.
    #[error("is not a submodule")]
    NotASubmodule,
    /// A link leads out of the repository.
    #[error("leads out of the repository, to {}", .0.display())]
    Outside(PathBuf),
    /// Links lead to links without end.
    #[error("has too many levels of links")]
    Links,
    /// The submodule is ambiguous.
    #[error("there is no submodule that holds {}", path.display())]
    Submodule {
        /// The path that it should hold.
        path: PathBuf,
        /// The cause.
        source: Box<Self>,
    },
    /// The task's own repository holds this.
    #[error("it is the task's own")]
    Own,
    /// The submodule is not there.
    #[error("is a submodule of which the commit {commit} is not cloned")]
    NotCloned {
        /// The first digits of its commit.
        commit: String,
    },
    /// Git's data could not be read.
    #[error("the repository cannot be read: {0}")]
    Git(Box<dyn Error + Send + Sync>),
}

impl SnapshotError {
    /// The repository of a directory cannot be opened.
    pub(super) fn of_opening(dir: &Path, source: Box<dyn Error + Send + Sync>) -> Self {
        match source.is::<NoRepository>() {
            true => Self::NoRepository(dir.to_owned()),
            false => Self::Git(source),
        }
    }
}

impl Explain for SnapshotError {
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Revision { source, .. } if let Some(cut) = source.downcast_ref::<CutOff>() => {
                return cut.hint();
            }
            Self::Revision { .. } => Some("git log lists the commits"),
            Self::NotCloned { .. } => {
                Some("git submodule update --init --recursive, or git fetch in the submodule")
            }
            Self::NoRepository(_) => Some(no_task_repository()),
            Self::Git(source) => Some(unreadable(&**source)),
            Self::Missing => Some("git ls-tree -r --name-only REV lists what the commit has"),
            Self::NotADirectory => Some("correct the path: a file of the commit stands on its way"),
            Self::NotASubmodule => Some("git submodule status lists the submodules"),
            Self::Outside(_) => Some("link only to what is committed with the task"),
            Self::Links => Some("correct the links: they lead to each other"),
            Self::Submodule { source, .. } if matches!(**source, Self::Own) => {
                return source.hint();
            }
            Self::Submodule { .. } => Some("name a path in a submodule of the task"),
            Self::Own => Some("leave out --in: the history of the task is searched then"),
        };
        hint.map(str::to_owned)
    }
}
