//! What repositories can still reach: every commit that a branch, a tag or a HEAD leads to, and
//! every commit of a submodule that one of them records.
//!
//! It is for deciding what may go, so what cannot be known is an error, never an omission.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use gix::objs::tree::EntryKind;
use gix::{ObjectId, Repository};

use super::repositories::Repositories;
use super::{GitResult, object_id};
use crate::digest;

/// The library of computations; if it is a submodule, its own submodules are computations.
const LIBRARY: &[u8] = b"computations";

/// What some repositories can reach.
#[derive(Debug, Default)]
pub struct Reach {
    commits: HashSet<digest::ObjectId>,
    literals: HashSet<String>,
}

/// Why it cannot be told what a repository reaches.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReachError {
    /// The history of the repository is cut off.
    #[error("{} is a shallow clone, which does not know its older commits", .0.display())]
    Shallow(PathBuf),
    /// What computations a commit has cannot be seen.
    #[error("{}: the commit {commit} has a submodule computations at {submodule}, which is not cloned", repository.display())]
    NotCloned {
        /// The repository.
        repository: PathBuf,
        /// The first digits of its commit.
        commit: String,
        /// The first digits of the submodule's commit.
        submodule: String,
    },
    /// Git's data could not be read.
    #[error("the repository at {} cannot be read", repository.display())]
    Git {
        /// The repository.
        repository: PathBuf,
        /// What gix says.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl ReachError {
    /// What the user can do about it, if that is not plain.
    pub const fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Shallow(_) => Some("git fetch --unshallow"),
            Self::NotCloned { .. } => {
                Some("git submodule update --init --recursive, or git fetch in the submodule")
            }
            Self::Git { .. } => None,
        }
    }
}

impl Reach {
    /// Adds what a repository reaches, given by any directory in it.
    ///
    /// # Errors
    ///
    /// Fails if not everything that it reaches can be told.
    pub fn add(&mut self, dir: &Path) -> Result<(), ReachError> {
        let git = |source| ReachError::Git { repository: dir.to_owned(), source };
        let repositories = Repositories::open(dir).map_err(git)?;
        let task = &repositories.task;
        if task.is_shallow().map_err(|error| git(error.into()))? {
            return Err(ReachError::Shallow(dir.to_owned()));
        }
        let submodules = repositories.submodules().map_err(git)?;
        self.commits.extend(heads(submodules).map_err(git)?);
        let tips = tips(task).map_err(git)?;
        let mut walk = Walk { repositories: &repositories, reach: self, seen: HashSet::new() };
        for commit in history(task, tips).map_err(git)? {
            let name = object_id(commit).map_err(git)?;
            if let Some(submodule) = walk.commit(commit).map_err(git)? {
                return Err(ReachError::NotCloned {
                    repository: dir.to_owned(),
                    commit: name.short().to_owned(),
                    submodule: submodule.to_hex_with_len(digest::SHORT).to_string(),
                });
            }
            walk.reach.commits.insert(name);
        }
        Ok(())
    }

    /// Whether a commit is reached.
    pub fn has(&self, commit: &digest::ObjectId) -> bool {
        self.commits.contains(commit)
    }

    /// The names in the storage that workflows read at these commits.
    pub fn literals(&self) -> impl Iterator<Item = &str> {
        self.literals.iter().map(String::as_str)
    }
}

/// What the branches, the tags and all other references lead to, and the HEAD of each work tree.
fn tips(repository: &Repository) -> GitResult<Vec<ObjectId>> {
    let mut tips = Vec::new();
    for reference in repository.references()?.all()? {
        let id = reference?.into_fully_peeled_id()?;
        if repository.find_header(id)?.kind() == gix::objs::Kind::Commit {
            tips.push(id.detach());
        }
    }
    tips.extend(head(repository));
    for worktree in repository.worktrees()? {
        tips.extend(head(&worktree.into_repo_with_possibly_inaccessible_worktree()?));
    }
    Ok(tips)
}

/// The commits that submodules are at, recorded or not.
fn heads(submodules: &[Repository]) -> GitResult<Vec<digest::ObjectId>> {
    submodules.iter().filter_map(head).map(object_id).collect()
}

fn history(repository: &Repository, tips: Vec<ObjectId>) -> GitResult<Vec<ObjectId>> {
    let commits = repository.rev_walk(tips).all()?;
    Ok(commits.map(|commit| commit.map(|it| it.id)).collect::<Result<_, _>>()?)
}

/// The commit at HEAD, if there is one.
fn head(repository: &Repository) -> Option<ObjectId> {
    repository.head_id().ok().map(gix::Id::detach)
}

/// Reads each tree once.
struct Walk<'a> {
    repositories: &'a Repositories,
    reach: &'a mut Reach,
    seen: HashSet<ObjectId>,
}

impl Walk<'_> {
    /// Notes what a commit records; returns the commit of a library that is not cloned, if so.
    fn commit(&mut self, commit: ObjectId) -> GitResult<Option<ObjectId>> {
        let mut commits = vec![commit];
        while let Some(id) = commits.pop() {
            let repositories = self.repositories;
            let Some(repository) = repositories.having(id)? else { return Ok(Some(id)) };
            let mut trees = vec![repository.find_commit(id)?.tree_id()?.detach()];
            while let Some(tree) = trees.pop() {
                if self.seen.insert(tree) {
                    self.tree(repository, tree, &mut trees, &mut commits)?;
                }
            }
        }
        Ok(None)
    }

    /// Notes what a tree records, and what else is to be read.
    fn tree(
        &mut self,
        repository: &Repository,
        id: ObjectId,
        trees: &mut Vec<ObjectId>,
        commits: &mut Vec<ObjectId>,
    ) -> GitResult<()> {
        let tree = repository.find_tree(id)?;
        let (mut kind, mut value) = (None, None);
        for entry in tree.iter() {
            let entry = entry?;
            let id = entry.object_id();
            match entry.kind() {
                EntryKind::Tree => trees.push(id),
                EntryKind::Commit => {
                    self.reach.commits.insert(object_id(id)?);
                    // A submodule that is one computation needs not be cloned.
                    if *entry.filename() == LIBRARY || self.repositories.having(id)?.is_some() {
                        commits.push(id);
                    }
                }
                _ if *entry.filename() == "kind" => kind = Some(id),
                _ if *entry.filename() == "value" => value = Some(id),
                _ => {}
            }
        }
        if let (Some(kind), Some(value)) = (kind, value)
            && repository.find_blob(kind)?.data.trim_ascii() == b"literal"
        {
            let value = repository.find_blob(value)?;
            let name = std::str::from_utf8(value.data.trim_ascii()).unwrap_or_default();
            self.reach.literals.insert(name.to_owned());
        }
        Ok(())
    }
}
