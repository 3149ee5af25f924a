//! Which commit holds a directory.
//!
//! The commit of a directory is what `git rev-parse HEAD` says inside it, the HEAD of the
//! innermost repository.

use std::collections::HashMap;
use std::error::Error;
use std::path::{Path, PathBuf};

use super::{GitResult, object_id};
use crate::digest::ObjectId;

/// A directory as its repository's HEAD records it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The commit at HEAD.
    pub commit: ObjectId,
    /// The tree of the directory in that commit.
    pub tree: ObjectId,
}

/// Why the commit of a directory cannot be told.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HeadError {
    /// The directory and all above it are outside of any repository.
    #[error("is not in a Git repository")]
    NoRepository,
    /// The repository at this place has no commit yet.
    #[error("the repository at {} has no commit yet", .0.display())]
    Unborn(PathBuf),
    /// The directory is not part of the commit.
    #[error("is not in the commit {commit} of {}", repository.display())]
    NotCommitted {
        /// The first digits of the commit at HEAD.
        commit: String,
        /// Where the repository is.
        repository: PathBuf,
    },
    /// The directory belongs to a submodule of which nothing is checked out.
    #[error("is a submodule that is not checked out")]
    NotCheckedOut,
    /// Git's data could not be read.
    #[error("the repository at {} cannot be read: {source}", repository.display())]
    Git {
        /// Where the repository is.
        repository: PathBuf,
        /// What gix says.
        source: Box<dyn Error + Send + Sync>,
    },
}

impl HeadError {
    /// What the user can do about it, if that is not plain.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NoRepository => Some("git init, git add and git commit the task"),
            Self::Unborn(_) | Self::NotCommitted { .. } => Some("git add and git commit it"),
            Self::NotCheckedOut => Some("git submodule update --init --recursive"),
            Self::Git { .. } => None,
        }
    }
}

/// The repositories met so far, each opened once.
#[derive(Debug, Default)]
pub struct Heads {
    opened: HashMap<PathBuf, Opened>,
}

#[derive(Debug)]
struct Opened {
    repository: gix::Repository,
    commit: gix::ObjectId,
}

impl Heads {
    /// Returns how HEAD of the innermost repository records a directory, given by its real path.
    ///
    /// # Errors
    ///
    /// Fails if no commit of any repository holds it, or Git's data cannot be read.
    pub fn of(&mut self, dir: &Path) -> Result<Head, HeadError> {
        let top = top(dir).ok_or(HeadError::NoRepository)?;
        let opened = self.open(&top)?;
        let git = |source| HeadError::Git { repository: top.clone(), source };
        let tree = opened.tree(dir.strip_prefix(&top).unwrap_or(Path::new(""))).map_err(git)?;
        let commit = object_id(opened.commit).map_err(git)?;
        match tree {
            Some((id, true)) => Ok(Head { commit, tree: object_id(id).map_err(git)? }),
            Some((_, false)) => Err(HeadError::NotCheckedOut),
            None => {
                Err(HeadError::NotCommitted { commit: commit.short().to_owned(), repository: top })
            }
        }
    }

    fn open(&mut self, top: &Path) -> Result<&Opened, HeadError> {
        if !self.opened.contains_key(top) {
            let git = |source| HeadError::Git { repository: top.to_owned(), source };
            let opened = open(top).map_err(git)?;
            let opened = opened.ok_or_else(|| HeadError::Unborn(top.to_owned()))?;
            self.opened.insert(top.to_owned(), opened);
        }
        Ok(&self.opened[top])
    }
}

/// Returns the top of the work tree that a directory is in.
pub fn top(dir: &Path) -> Option<PathBuf> {
    dir.ancestors().find(|dir| dir.join(".git").symlink_metadata().is_ok()).map(Path::to_owned)
}

fn open(top: &Path) -> GitResult<Option<Opened>> {
    let repository = gix::open_opts(top, gix::open::Options::isolated())?;
    let head = repository.head()?;
    if head.is_unborn() {
        return Ok(None);
    }
    let commit = repository.head_commit()?.id;
    Ok(Some(Opened { repository, commit }))
}

impl Opened {
    /// Returns what the commit has at this place, and whether it is a directory.
    fn tree(&self, inside: &Path) -> GitResult<Option<(gix::ObjectId, bool)>> {
        let root = self.repository.find_commit(self.commit)?.tree()?;
        if inside.as_os_str().is_empty() {
            return Ok(Some((root.id, true)));
        }
        let mut tree = root;
        let mut components = inside.components();
        while let Some(component) = components.next() {
            let name = Path::new(component.as_os_str());
            let Some(entry) = tree.lookup_entry_by_path(name)? else {
                return Ok(None);
            };
            if entry.mode().is_commit() {
                return Ok(Some((entry.object_id(), false)));
            }
            if !entry.mode().is_tree() {
                return Ok(None);
            }
            if components.as_path().as_os_str().is_empty() {
                return Ok(Some((entry.object_id(), true)));
            }
            tree = entry.object()?.try_into_tree()?;
        }
        Ok(None)
    }
}
