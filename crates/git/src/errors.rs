//! The reasons why a repository or a commit cannot be read, among them a history that is cut off; and what to try.

use std::error::Error;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::{io, iter};

use gix::Repository;

use crate::GitResult;
use crate::opening::{NoRepository, Unsupported, Untrusted};
use ce_model::digest::SHORT;
use ce_model::exit::Explain;
use ce_model::system_hints;

/// The reason why the repository that a directory is in cannot be read.
#[derive(Debug, thiserror::Error, Explain)]
#[non_exhaustive]
pub enum UnreadableRepository {
    /// The directory cannot be read.
    #[error("cannot read the repository {}", path.display())]
    #[hint(system_hints::for_directory(path, source))]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The directory is in no repository.
    #[error("{} is not in a Git repository", .0.display())]
    #[hint("give the path of a work tree or of a bare repository")]
    NoRepository(PathBuf),
    /// The repository belongs to another user, and is not trusted.
    #[error("the repository at {} belongs to another user", .0.display())]
    #[hint(Some(hint_to_trust(_0.display())))]
    Untrusted(PathBuf),
    /// Git's data cannot be read.
    #[error("the repository {} cannot be read", path.display())]
    #[hint("{}", hint_for_unreadable(&**source))]
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

    /// What to try if it is the repository of a task.
    pub(super) fn hint_for_task(&self) -> Option<String> {
        match self {
            Self::NoRepository(_) => Some(no_task_repository().to_owned()),
            other => other.hint(),
        }
    }
}

/// The reason why an entry of a commit cannot be read.
#[derive(Debug, thiserror::Error, Explain)]
#[non_exhaustive]
pub enum SnapshotError {
    /// No commit has this name.
    #[error("there is no commit {rev} in {}", repository.display())]
    #[hint(Some(unknown_commit_hint(&**source)))]
    Revision {
        /// The revision.
        rev: String,
        repository: PathBuf,
        /// The error of gix.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The directory is in no repository.
    #[error("{} is not in a Git repository", .0.display())]
    #[hint("{}", no_task_repository())]
    NoRepository(PathBuf),
    /// This path does not exist.
    #[error("does not exist")]
    #[hint("git ls-tree -r --name-only REV lists what the commit has")]
    Missing,
    /// A file stands on the way.
    #[error("is not a directory")]
    #[hint("correct the path: a file of the commit stands on its way")]
    NotADirectory,
    /// An entry of the work tree is not a file, a directory or a link.
    #[error("is not a file")]
    #[hint("replace it by a file")]
    NotAFile,
    /// Something other than a submodule stands there.
    #[error("is not a submodule")]
    #[hint("git submodule status lists the submodules")]
    NotASubmodule,
    /// A link leads out of the repository.
    #[error("leads out of the repository, to {}", .0.display())]
    #[hint("link only to what is committed with the task")]
    Outside(PathBuf),
    /// A link stands there, or on the way, where no links are followed.
    #[error("is a link, or behind one")]
    #[hint("name the directory that the link leads to")]
    Link,
    /// Links lead to links without end.
    #[error("has too many levels of links")]
    #[hint("correct the links: they lead to each other")]
    Links,
    /// The submodule is ambiguous.
    #[error("there is no submodule that holds {}", path.display())]
    #[hint(if matches!(**source, Self::Own) {
        source.hint()
    } else {
        Some("name a path in a submodule of the task".to_owned())
    })]
    Submodule {
        /// The path that it should hold.
        path: PathBuf,
        /// The cause.
        source: Box<Self>,
    },
    /// The task's own repository holds this.
    #[error("it is the task's own")]
    #[hint("leave out --in: the history of the task is searched then")]
    Own,
    /// The submodule is not there.
    #[error("is a submodule whose commit {commit} is not cloned")]
    #[hint("git submodule update --init --recursive, or git fetch in the submodule")]
    NotCloned {
        /// The first digits of its commit.
        commit: String,
    },
    /// Git's data could not be read.
    #[error("the repository cannot be read: {0}")]
    #[hint("{}", hint_for_unreadable(&**_0))]
    Git(Box<dyn Error + Send + Sync>),
}

/// What to try if no commit is called as it was asked for.
fn unknown_commit_hint(source: &(dyn Error + 'static)) -> String {
    let cut = source.downcast_ref().and_then(CutOff::hint);
    cut.unwrap_or_else(|| "git log lists the commits".to_owned())
}

impl SnapshotError {
    /// The entry in the place of a directory, in words that a place follows.
    pub fn of_directory(&self) -> String {
        match self {
            Self::NotADirectory => "is a file".to_owned(),
            Self::Link => "is a link, or behind one,".to_owned(),
            Self::NotCloned { .. } => "is in a submodule that is not cloned".to_owned(),
            other => other.to_string(),
        }
    }

    /// The repository of a directory cannot be opened.
    pub(super) fn of_opening(dir: &Path, source: Box<dyn Error + Send + Sync>) -> Self {
        if source.is::<NoRepository>() {
            Self::NoRepository(dir.to_owned())
        } else {
            Self::Git(source)
        }
    }
}

/// The number of commits of a border that are named.
const NAMED: usize = 3;

/// A revision that is not there, in a repository whose history is cut off.
#[derive(Debug, thiserror::Error, Explain)]
#[error("{why}: the repository is a shallow clone, whose history ends at the commit {border}")]
#[hint("git fetch --unshallow")]
pub(super) struct CutOff {
    /// The reason why it is not there, in words.
    pub(super) why: String,
    /// The commits without their parents.
    pub(super) border: String,
}

/// The first digits of the commits whose parents a repository lacks; `None` unless it is a shallow clone.
pub(super) fn border(repository: &Repository) -> GitResult<Option<String>> {
    let Some(commits) = repository.shallow_commits()? else { return Ok(None) };
    let mut names: Vec<String> =
        commits.iter().map(|commit| commit.to_hex_with_len(SHORT).to_string()).collect();
    names.sort();
    if let Some(more @ 1..) = names.len().checked_sub(NAMED) {
        names.truncate(NAMED);
        names.push(format!("and {more} more"));
    }
    Ok(Some(names.join(", ")))
}

/// Returns advice for a repository that belongs to another user.
pub(super) fn hint_to_trust(repository: impl Display) -> String {
    format!("if you trust it: git config --global --add safe.directory {repository}")
}

/// Returns advice for a task that is in no repository.
pub(super) const fn no_task_repository() -> &'static str {
    "run this in the repository of a task, or name a task with --task"
}

/// Returns advice for a repository that cannot be read, by the cause.
pub(super) fn hint_for_unreadable(source: &(dyn Error + 'static)) -> &'static str {
    if let Some(limit) = system_hints::exhausted_limit_behind(source) {
        return limit;
    }
    let mut causes = iter::successors(Some(source), |&error| error.source());
    if let Some(unsupported) = causes.clone().find_map(|it| it.downcast_ref::<Unsupported>()) {
        return unsupported.hint();
    }
    if causes.any(|error| lacks_object(&error.to_string())) {
        "git fetch --refetch --no-filter, or clone it again without --filter; git fsck lists what is missing"
    } else {
        "git status says what is wrong, or git fsck whether it is damaged"
    }
}

/// Whether an error says that an object is missing, in our words or in the words of gix.
fn lacks_object(text: &str) -> bool {
    [("the object ", " is missing"), ("An object with id ", " could not be found")]
        .iter()
        .any(|(begin, end)| text.contains(begin) && text.contains(end))
}
