//! The history of a repository that a user names, commit by commit.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use gix::{ObjectId, Repository};

use super::log::{LogLine, LogRange, LogWalk, NEWEST_FIRST};
use super::opening::open;
use super::shallow::CutOff;
use super::unreadable::UnreadableRepository;
use super::{GitResult, revision, top};

use ce_model::exit::Explain;

/// Which commits of a repository.
#[derive(Clone, Debug)]
pub struct CommitFilter {
    /// The revision whose history is left out, with itself.
    pub after: Option<String>,
    /// The newest commit, as a revision.
    pub until: String,
    /// Of merges, only the first parent is followed.
    pub first_parent: bool,
    /// Only commits that touched this path, relative to the top of the repository. If a merge took everything
    /// from one side, the other side is left out, as by Git.
    pub path: Option<PathBuf>,
}

/// A repository whose commits are listed.
#[derive(Debug)]
pub struct CommitHistory {
    place: PathBuf,
    repository: Repository,
}

/// The reason why the commits of a repository cannot be listed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommitHistoryError {
    /// The repository cannot be read.
    #[error(transparent)]
    Repository(#[from] UnreadableRepository),
    /// No commit is called so.
    #[error("the repository {} has no commit {rev}", repository.display())]
    Revision {
        /// The revision.
        rev: String,
        /// The repository.
        repository: PathBuf,
        /// Whether it begins at HEAD, and HEAD leads to no commit.
        is_head_broken: bool,
        /// The error of Git.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl Explain for CommitHistoryError {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Revision { is_head_broken: true, .. } => {
                "name a branch, tag or commit in place of HEAD".to_owned()
            }
            Self::Revision { repository, source, .. } if source.is::<CutOff>() => {
                format!("git -C {} fetch --unshallow", repository.display())
            }
            Self::Revision { repository, .. } => {
                format!("git -C {} fetch --tags", repository.display())
            }
            Self::Repository(error) => return error.hint(),
        })
    }
}

/// The bytes of trees that are kept: histories read the same ones again and again.
const CACHED: usize = 16 << 20;

impl CommitHistory {
    /// Opens a repository: a bare one, or one with a work tree, by any directory in it.
    ///
    /// # Errors
    ///
    /// Fails if there is none, it is not trusted, or it cannot be read.
    pub fn open(dir: &Path) -> Result<Self, CommitHistoryError> {
        let place = place(dir).map_err(|error| UnreadableRepository::of_directory(dir, error))?;
        let place = place.ok_or_else(|| UnreadableRepository::NoRepository(dir.to_owned()))?;
        let repository = open(&place).map_err(|error| UnreadableRepository::new(dir, error));
        let mut repository = repository?;
        repository.object_cache_size_if_unset(CACHED);
        Ok(Self { place: dir.to_owned(), repository })
    }

    /// Returns the commits in the order of `git log`: from the newest one on to parents, of those that wait for
    /// their turn the one with the latest date first. They end early when the flag becomes true.
    ///
    /// # Errors
    ///
    /// Fails if a revision is unknown. An item fails if Git's data cannot be read, and is the last one.
    pub fn commits<'a>(
        &'a self,
        filter: &'a CommitFilter,
        is_asked: &'a AtomicBool,
    ) -> Result<impl Iterator<Item = Result<LogLine, CommitHistoryError>> + 'a, CommitHistoryError>
    {
        let new = self.commit(&filter.until)?;
        let old = filter.after.as_ref().map(|rev| self.commit(rev)).transpose()?;
        let CommitFilter { first_parent, path, .. } = filter;
        let range = LogRange { old, new, first_parent: *first_parent, path: path.as_deref() };
        let git = |error| UnreadableRepository::new(&self.place, error).into();
        let walk = self.walk(range, is_asked).map_err(git)?;
        let line = |id: GitResult<ObjectId>| LogLine::read(&self.repository, id?);
        Ok(walk.map(move |id| line(id).map_err(git)))
    }

    fn walk<'a>(&'a self, range: LogRange<'a>, is_asked: &'a AtomicBool) -> GitResult<LogWalk<'a>> {
        // The whole history of the old commit: whatever the dates are, it tells what is in it.
        let old = self.repository.rev_walk(range.old).all()?;
        let old = old.take_while(|_| !is_asked.load(Ordering::Relaxed));
        let old = old.map(|it| Ok(it?.id)).collect::<GitResult<HashSet<ObjectId>>>()?;
        let all = self.repository.rev_walk([range.new]).sorting(NEWEST_FIRST);
        let all = all.selected(move |id| !old.contains(id))?;
        range.walk(&self.repository, all, is_asked)
    }

    fn commit(&self, rev: &str) -> Result<ObjectId, CommitHistoryError> {
        let begins_at_head = rev.split(['~', '^']).next() == Some("HEAD");
        let unknown = |source| CommitHistoryError::Revision {
            rev: rev.to_owned(),
            repository: self.place.clone(),
            is_head_broken: begins_at_head
                && revision::commit(&self.repository, &self.place, "HEAD").is_err(),
            source,
        };
        revision::commit(&self.repository, &self.place, rev).map_err(unknown)
    }
}

/// Returns the top of the work tree that a directory is in, or the bare repository that it is.
pub(super) fn place(dir: &Path) -> io::Result<Option<PathBuf>> {
    let real = dir.canonicalize()?;
    let is_bare = real.join("HEAD").is_file() && real.join("objects").is_dir();
    Ok(if is_bare { Some(real) } else { top(&real) })
}
