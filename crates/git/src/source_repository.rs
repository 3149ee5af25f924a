//! The repositories that a task reads as values: its own, its submodules, and others that the user names.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use super::commit_snapshot::Snapshot;
use super::errors::{CutOff, SnapshotError, hint_for_unreadable, hint_to_trust};
use super::head::Heads;
use super::lfs_files::LfsFile;
use super::opening::{Untrusted, open, open_submodule};
use super::submodules::Repositories;
use super::{GitResult, Trees, discovery, from, object_id, revision, top};
use ce_model::digest::ObjectId;
use ce_model::exit::Explain;
use ce_model::system_hints;
use ce_model::task::Task;

/// The repositories that a task may read, each opened once.
#[derive(Debug)]
pub struct SourceRepositories {
    /// The directory of the task.
    task: PathBuf,
    /// The repositories that the user has named, and their places.
    named: Vec<(String, PathBuf)>,
    opened: Mutex<HashMap<(String, ObjectId, bool), Arc<SourceRepository>>>,
}

/// A repository that a task reads.
#[derive(Debug)]
pub struct SourceRepository {
    name: String,
    /// Its work tree, or its own directory.
    place: PathBuf,
    trees: Trees,
}

/// The reason why a repository cannot be read as a task says.
#[derive(Debug, thiserror::Error, Explain)]
pub enum SourceError {
    /// Nothing has this name.
    #[error("there is no repository {name}: the task has no such submodule{}", beside(named))]
    #[hint("-r {name}=REPO, with the path of a repository")]
    Unknown {
        name: String,
        /// The names that the user gave.
        named: Vec<String>,
    },
    /// The directory that the user named cannot be read.
    #[error("cannot read the repository {name} at {}", path.display())]
    #[hint(system_hints::for_directory(path, source))]
    Directory {
        name: String,
        /// The directory.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The directory that the user named is in no repository.
    #[error("{} is not in a Git repository, and cannot be {name}", path.display())]
    #[hint("-r {name}=REPO, with the path of a work tree or of a bare repository")]
    NoRepository {
        name: String,
        /// The directory.
        path: PathBuf,
    },
    /// The repository belongs to another user, and is not trusted.
    #[error("the repository {name} at {} belongs to another user", path.display())]
    #[hint(Some(hint_to_trust(path.display())))]
    Untrusted {
        name: String,
        /// Its directory.
        path: PathBuf,
    },
    /// The submodule is not there.
    #[error("the submodule {name} is not cloned")]
    #[hint("git submodule update --init {name}, or -r {name}=REPO")]
    NotCloned {
        /// Its path in the task.
        name: String,
    },
    /// No commit has this name.
    #[error("the repository {name} at {} has no commit {rev}", path.display())]
    #[hint(Some(lacking_commit_hint(path, &**source)))]
    Revision {
        /// The name of the repository.
        name: String,
        path: PathBuf,
        /// The revision.
        rev: String,
        /// The error of Git.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The commit has no directory with this path.
    #[error("{path} {} in the commit {commit} of the repository {name}", fault.of_directory())]
    #[hint(path_hint(fault, name, commit))]
    Path {
        /// The name of the repository.
        name: String,
        /// The first digits of the commit.
        commit: String,
        path: String,
        /// The entry that stands there.
        fault: Box<SnapshotError>,
    },
    /// Git's data could not be read.
    #[error("the repository {name} cannot be read")]
    #[hint("{}", hint_for_unreadable(&**source))]
    Git {
        /// The name of the repository.
        name: String,
        /// The error of Git.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// What to try if a repository lacks a commit.
fn lacking_commit_hint(path: &Path, source: &(dyn std::error::Error + 'static)) -> String {
    let path = path.display();
    if source.is::<CutOff>() {
        format!("git -C {path} fetch --unshallow")
    } else {
        format!("git -C {path} fetch --tags")
    }
}

/// What to try if a commit of the repository has no directory with a path.
fn path_hint(fault: &SnapshotError, name: &str, commit: &str) -> Option<String> {
    match fault {
        SnapshotError::Link => fault.hint(),
        SnapshotError::NotADirectory => Some("name the directory that holds it".to_owned()),
        SnapshotError::NotCloned { .. } => {
            Some(format!("git submodule update --init --recursive in the repository {name}"))
        }
        _ => Some(format!("git ls-tree -rd --name-only {commit} lists the existing directories")),
    }
}

/// The names that the user gave, in words.
fn beside(named: &[String]) -> String {
    match named {
        [] => ", and -r names none".to_owned(),
        names => format!(", and -r names only {}", names.join(", ")),
    }
}

impl SourceError {
    /// Whether the repository is not there, its data cannot be read, or it lacks a commit that is given by its id.
    pub fn is_unreadable(&self) -> bool {
        match self {
            Self::Directory { .. } | Self::NoRepository { .. } | Self::Git { .. } => true,
            Self::Revision { .. } => self.lacking_commit().is_some(),
            _ => false,
        }
    }

    /// The commit that the repository lacks, if that was given by its id.
    pub fn lacking_commit(&self) -> Option<ObjectId> {
        match self {
            Self::Revision { rev, .. } => rev.parse().ok(),
            _ => None,
        }
    }

    /// Whether the repository as a whole is to blame, at any commit.
    pub const fn is_of_repository(&self) -> bool {
        !matches!(self, Self::Revision { .. } | Self::Path { .. } | Self::Git { .. })
    }
}

impl SourceRepositories {
    /// The directory of the task.
    pub fn task_directory(&self) -> &Path {
        &self.task
    }

    /// The repositories that the user names, and where they are.
    pub fn named(&self) -> &[(String, PathBuf)] {
        &self.named
    }

    /// The repositories of the task in a directory, and the ones that the user names. A name given by the user hides a
    /// submodule.
    pub fn new(task: &Path, named: Vec<(String, PathBuf)>) -> Self {
        Self { task: task.to_owned(), named, opened: Mutex::default() }
    }

    /// Returns the repository with this name, for a version of the task: one that the user has named; `.`, the task's
    /// own; or a submodule, by its path relative to the task.
    pub fn find(&self, name: &str, task: &Task) -> Result<Arc<SourceRepository>, SourceError> {
        let key = (name.to_owned(), task.commit.clone(), task.is_draft());
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = opened.get(&key) {
            return Ok(Arc::clone(known));
        }
        let (place, repositories) = match self.named.iter().find(|(known, _)| known == name) {
            Some((_, path)) => named(name, path)?,
            None if name == "." => self
                .task_repository()
                .map_err(|source| SourceError::Git { name: name.to_owned(), source })?,
            None => self.submodule(name, task)?,
        };
        let trees = Trees::from_repositories(place.clone(), repositories);
        let found = Arc::new(SourceRepository { name: name.to_owned(), place, trees });
        opened.insert(key, Arc::clone(&found));
        Ok(found)
    }

    /// Whether the commit of the task has the repository with this name, or the user has named it: a draft may have another submodule.
    pub fn is_recorded(&self, name: &str, task: &Task) -> bool {
        if !task.is_draft() || name == "." || self.named.iter().any(|(known, _)| known == name) {
            return true;
        }
        let snapshot = Snapshot::open(&self.task, task.commit.full());
        let recorded = snapshot.map(|it| it.submodule_commit(Path::new(name)));
        matches!(recorded, Ok(Ok(_) | Err(SnapshotError::NotCloned { .. })))
    }

    fn task_repository(&self) -> GitResult<(PathBuf, Repositories)> {
        let real = self.task.canonicalize()?;
        Ok((top(&real).unwrap_or(real), Repositories::open(&self.task)?))
    }

    fn submodule(&self, name: &str, task: &Task) -> Result<(PathBuf, Repositories), SourceError> {
        let git = |source| SourceError::Git { name: name.to_owned(), source };
        let snapshot = if task.is_draft() {
            let dir = self.task.canonicalize().map_err(|it| git(it.into()))?;
            Heads::default().draft_snapshot(&dir).map_err(|it| git(it.into()))?
        } else {
            Snapshot::open(&self.task, task.commit.full()).map_err(|it| git(it.into()))?
        };
        let recorded = match snapshot.submodule_commit(Path::new(name)) {
            Ok(recorded) => recorded,
            Err(SnapshotError::Git(source)) => return Err(git(source)),
            Err(SnapshotError::NotCloned { .. }) => {
                return Err(SourceError::NotCloned { name: name.to_owned() });
            }
            Err(_) => {
                let named = self.named.iter().map(|(name, _)| name.clone()).collect();
                return Err(SourceError::Unknown { name: name.to_owned(), named });
            }
        };
        let place = self.task.join(name);
        if place.join(".git").symlink_metadata().is_ok() {
            let repository = open_submodule(&place).map_err(git)?;
            return Ok((place, Repositories::from_open(repository, Vec::new())));
        }
        // It is cloned, but at a commit that does not have the file.
        let repositories = Repositories::open(&self.task).map_err(git)?;
        let recorded = from(&recorded).map_err(git)?;
        match repositories.repository_of(recorded).map_err(git)? {
            Some(repository) => {
                let place = repository.git_dir().to_owned();
                Ok((place, Repositories::from_open(repository.clone(), Vec::new())))
            }
            None => Err(SourceError::NotCloned { name: name.to_owned() }),
        }
    }
}

/// Opens a repository that the user has named: a bare one, or one with a work tree, by any directory in it.
fn named(name: &str, path: &Path) -> Result<(PathBuf, Repositories), SourceError> {
    let (name, path) = (name.to_owned(), path.to_owned());
    let place = match discovery::find_repository(&path) {
        Ok(Some(place)) => place,
        Ok(None) => return Err(SourceError::NoRepository { name, path }),
        Err(source) => return Err(SourceError::Directory { name, path, source }),
    };
    match open(&place) {
        Ok(repository) => Ok((place, Repositories::from_open(repository, Vec::new()))),
        Err(error) if error.is::<Untrusted>() => Err(SourceError::Untrusted { name, path: place }),
        Err(source) => Err(SourceError::Git { name, source }),
    }
}

impl SourceRepository {
    /// Its trees.
    pub const fn trees(&self) -> &Trees {
        &self.trees
    }

    /// Returns the commit that a revision names: an id, a tag, a branch, or what else Git understands.
    pub fn commit(&self, rev: &str) -> Result<ObjectId, SourceError> {
        let commit = self.trees.with(|repositories| {
            object_id(revision::commit(&repositories.task, &self.place, rev)?)
        });
        let (name, path) = (self.name.clone(), self.place.clone());
        commit.map_err(|source| SourceError::Revision { name, path, rev: rev.to_owned(), source })
    }

    /// Returns the files that Git LFS keeps elsewhere, in the directory with this path in a commit.
    pub fn lfs_files(&self, commit: &ObjectId, path: &str) -> Result<Vec<LfsFile>, SourceError> {
        let found = self.trees.with(|repositories| {
            let snapshot = Snapshot::from_commit(Rc::new(repositories.clone()), from(commit)?);
            let place = snapshot.directory(&snapshot.source(".")?, Path::new(path))?;
            Ok(snapshot.lfs_files(&place)?)
        });
        found.map_err(|source| SourceError::Git { name: self.name.clone(), source })
    }

    /// Returns the tree of the directory with this path in a commit; of the whole commit if the path is empty.
    /// Submodules are directories. Links are not followed.
    pub fn tree(&self, commit: &ObjectId, path: &str) -> Result<ObjectId, SourceError> {
        let found = self.trees.with(|repositories| {
            let id = from(commit)?;
            repositories.required_repository_of(id)?;
            let snapshot = Snapshot::from_commit(Rc::new(repositories.clone()), id);
            let place = snapshot.directory(&snapshot.source(".")?, Path::new(path));
            Ok(place.and_then(|place| snapshot.id(&place)))
        });
        let name = self.name.clone();
        let fault = match found {
            Ok(Ok(tree)) => return Ok(tree),
            Ok(Err(SnapshotError::Git(source))) | Err(source) => {
                return Err(SourceError::Git { name, source });
            }
            Ok(Err(fault)) => Box::new(fault),
        };
        let (commit, path) = (commit.short().to_owned(), path.to_owned());
        Err(SourceError::Path { name, commit, path, fault })
    }
}
