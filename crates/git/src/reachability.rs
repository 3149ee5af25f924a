//! The commits that repositories can still reach: every one that a branch, a tag or a HEAD leads
//! to, and every commit of a submodule that one of them records.
//!
//! It is for deciding what may go, so what cannot be known is an error, never an omission.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use gix::objs::tree::EntryKind;
use gix::{ObjectId, Repository};

use super::{GitResult, object_id};
use crate::commit_snapshot::Snapshot;
use crate::errors::{SnapshotError, UnreadableRepository, border};
use crate::submodules::{self, Repositories, object, tree_of};
use ce_model::exit::Explain;
use ce_model::expression::{Mistake, parse};
use ce_model::name::StorageName;
use ce_model::task::{LIBRARY, WORKFLOW_TEXT};
use ce_model::{digest, text_file};

/// The commits and literals that some repositories can reach.
#[derive(Debug, Default)]
pub struct ReachableSet {
    commits: HashSet<digest::ObjectId>,
    literals: HashSet<StorageName>,
}

/// The reason why the reachable commits of a repository are unknown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReachError {
    /// The repository cannot be read.
    #[error(transparent)]
    Repository(#[from] UnreadableRepository),
    /// The history of the repository is cut off.
    #[error("{} is a shallow clone: its history ends at the commit {border}, and older commits are missing", repository.display())]
    Shallow {
        /// The repository.
        repository: PathBuf,
        /// The first digits of the commits without their parents.
        border: String,
    },
    /// The text of a workflow cannot be read, so it is not known what it names.
    #[error("{}: at the commit {commit}, {} cannot be read: {fault}", repository.display(), path.display())]
    Unreadable {
        /// The repository.
        repository: PathBuf,
        /// The first digits of the commit.
        commit: String,
        /// The text, relative to the repository.
        path: PathBuf,
        /// The fault of the text, and its place.
        fault: String,
    },
    /// The computations of a commit cannot be seen.
    #[error("{}: the commit {commit} has a submodule computations at {submodule}, which is not cloned", repository.display())]
    NotCloned {
        /// The repository.
        repository: PathBuf,
        /// The first digits of its commit.
        commit: String,
        /// The first digits of the submodule's commit.
        submodule: String,
    },
}

impl Explain for ReachError {
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Repository(error) => return error.hint(),
            Self::Shallow { .. } => "git fetch --unshallow",
            Self::Unreadable { .. } => {
                "if no branch or tag needs this commit, remove those that lead to it; else correct its text with git rebase"
            }
            Self::NotCloned { .. } => {
                "git submodule update --init --recursive, or git fetch in the submodule"
            }
        };
        Some(hint.to_owned())
    }
}

impl ReachableSet {
    /// Adds the reachable commits of a repository, given by any directory in it.
    pub fn add(&mut self, dir: &Path) -> Result<(), ReachError> {
        let git = |error| UnreadableRepository::new(dir, error);
        let place = dir.canonicalize();
        let place = &place.map_err(|error| UnreadableRepository::of_directory(dir, error))?;
        let repositories = Rc::new(Repositories::open(place).map_err(git)?);
        let task = &repositories.task;
        if let Some(border) = border(task).map_err(git)? {
            return Err(ReachError::Shallow { repository: dir.to_owned(), border });
        }
        let submodules = repositories.submodules().map_err(git)?;
        self.commits.extend(heads(submodules).map_err(git)?);
        let tips = tips(task).map_err(git)?;
        let mut walk = Walk::new(&repositories, self);
        for commit in history(task, tips).map_err(git)? {
            let name = object_id(commit).map_err(git)?;
            if let Some(submodule) = walk.commit(commit).map_err(git)? {
                return Err(ReachError::NotCloned {
                    repository: dir.to_owned(),
                    commit: name.short().to_owned(),
                    submodule: submodule.to_hex_with_len(digest::SHORT).to_string(),
                });
            }
            if let Some((path, fault)) = walk.unreadable.take() {
                let (repository, commit) = (dir.to_owned(), name.short().to_owned());
                return Err(ReachError::Unreadable { repository, commit, path, fault });
            }
            walk.reach.commits.insert(name);
        }
        Ok(())
    }

    /// Whether a commit is reached.
    pub fn has(&self, commit: &digest::ObjectId) -> bool {
        self.commits.contains(commit)
    }

    /// The names in the storage that workflows read at these commits, as they are written: a name in
    /// braces may stand for any text.
    pub fn literals(&self) -> impl Iterator<Item = &str> {
        self.literals.iter().map(StorageName::as_str)
    }
}

/// The commits of all branches, tags and other references, and the HEAD of each work tree.
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

/// Reads each tree once, unless links in it may lead elsewhere in another commit.
struct Walk<'a> {
    repositories: &'a Rc<Repositories>,
    reach: &'a mut ReachableSet,
    /// The trees that were read, and whether they hold nodes with links, themselves or anywhere
    /// below.
    linked: HashMap<ObjectId, bool>,
    /// The commits that are yet to be looked into, and where they are in the task's repository.
    commits: Vec<(PathBuf, ObjectId)>,
    /// The texts of workflows that were read.
    texts: HashSet<ObjectId>,
    /// One that cannot be read, and why.
    unreadable: Option<(PathBuf, String)>,
}

/// A commit of the task's repository, opened where a link is to be followed.
struct OpenedCommit {
    id: ObjectId,
    opened: OnceCell<Snapshot>,
}

/// A tree that is being read, and its name in the one around it.
#[derive(Default)]
struct TreeBeingRead {
    id: Option<ObjectId>,
    name: OsString,
    /// The trees in it that are yet to be read.
    below: Vec<(OsString, ObjectId)>,
    submodules: Vec<(OsString, ObjectId)>,
    kind: Option<NodeFile>,
    value: Option<NodeFile>,
    /// The text of a workflow.
    text: Option<NodeFile>,
    linked: bool,
}

impl<'a> Walk<'a> {
    fn new(repositories: &'a Rc<Repositories>, reach: &'a mut ReachableSet) -> Self {
        Self {
            repositories,
            reach,
            linked: HashMap::new(),
            commits: Vec::new(),
            texts: HashSet::new(),
            unreadable: None,
        }
    }

    /// Adds the entries of a commit. Returns the commit of a library that is not cloned, if there
    /// is one.
    fn commit(&mut self, commit: ObjectId) -> GitResult<Option<ObjectId>> {
        let task = OpenedCommit { id: commit, opened: OnceCell::new() };
        self.commits = vec![(PathBuf::new(), commit)];
        while let Some((place, id)) = self.commits.pop() {
            let repositories = Rc::clone(self.repositories);
            let Some(repository) = repositories.repository_of(id)? else { return Ok(Some(id)) };
            let mut way = Vec::new();
            let mut next = Some((OsString::new(), tree_of(repository, id)?));
            while next.is_some() || !way.is_empty() {
                if let Some((name, id)) = next.take()
                    && self.linked.get(&id) != Some(&false)
                {
                    way.push(open(repository, id, name)?);
                    self.note(&task, repository, &place, &way)?;
                }
                let Some(open) = way.last_mut() else { break };
                next = open.below.pop();
                if next.is_none() {
                    let linked = open.linked;
                    self.linked.extend(open.id.map(|id| (id, linked)));
                    way.pop();
                    if let Some(around) = way.last_mut() {
                        around.linked |= linked;
                    }
                }
            }
        }
        Ok(None)
    }

    /// Notes what the tree at the end of a way records itself.
    fn note(
        &mut self,
        task: &OpenedCommit,
        repository: &Repository,
        place: &Path,
        way: &[TreeBeingRead],
    ) -> GitResult<()> {
        let Some(open) = way.last() else { return Ok(()) };
        // Most trees have no use for it, and it may be long.
        let place = || way.iter().fold(place.to_owned(), |place, open| place.join(&open.name));
        for (name, id) in &open.submodules {
            self.reach.commits.insert(object_id(*id)?);
            // Submodules of the library are computations, which need not be cloned.
            if name == LIBRARY || self.repositories.repository_of(*id)?.is_some() {
                self.commits.push((place().join(name), *id));
            }
        }
        let is_known = matches!(open.text, Some(NodeFile::Blob(id)) if self.texts.contains(&id));
        if let Some(text) = open.text.filter(|_| !is_known)
            && let Some(contents) =
                self.read(task, repository, text, || place().join(WORKFLOW_TEXT))?
        {
            match literals(&contents) {
                Ok(names) => self.reach.literals.extend(names),
                Err(fault) => self.unreadable = Some((place().join(WORKFLOW_TEXT), fault)),
            }
            if let NodeFile::Blob(id) = text {
                self.texts.insert(id);
            }
        }
        let (Some(kind), Some(value)) = (open.kind, open.value) else { return Ok(()) };
        if let Some(kind) = self.read(task, repository, kind, || place().join("kind"))?
            && text_file::line(&kind).is_ok_and(|(kind, _)| kind == "literal")
            && let Some(value) = self.read(task, repository, value, || place().join("value"))?
            && let Ok((name, _)) = text_file::line(&value)
            && let Ok(name) = name.parse()
        {
            self.reach.literals.insert(name);
        }
        Ok(())
    }

    /// Reads a file in a tree, which is at this place.
    fn read(
        &self,
        task: &OpenedCommit,
        repository: &Repository,
        file: NodeFile,
        place: impl FnOnce() -> PathBuf,
    ) -> GitResult<Option<Vec<u8>>> {
        match file {
            NodeFile::Blob(id) => submodules::blob(repository, id).map(Some),
            NodeFile::Link => self.follow(task, &place()),
        }
    }

    /// Reads the file that a link in the task leads to, if the task could be loaded with it.
    fn follow(&self, task: &OpenedCommit, path: &Path) -> GitResult<Option<Vec<u8>>> {
        let snapshot =
            task.opened.get_or_init(|| Snapshot::of(Rc::clone(self.repositories), task.id));
        match snapshot.find(path).and_then(|file| snapshot.read(&file)) {
            Ok(contents) => Ok(Some(contents)),
            Err(SnapshotError::Git(error)) => Err(error),
            Err(_) => Ok(None),
        }
    }
}

/// Reads a tree.
fn open(repository: &Repository, id: ObjectId, name: OsString) -> GitResult<TreeBeingRead> {
    let mut open = TreeBeingRead { id: Some(id), name, ..TreeBeingRead::default() };
    for entry in object(repository, id)?.try_into_tree()?.iter() {
        let entry = entry?;
        let (id, name) = (entry.object_id(), OsStr::from_bytes(entry.filename()));
        let file = match entry.kind() {
            EntryKind::Tree => {
                open.below.push((name.to_owned(), id));
                continue;
            }
            EntryKind::Commit => {
                open.submodules.push((name.to_owned(), id));
                // A link in it may lead out of it.
                open.linked = true;
                continue;
            }
            EntryKind::Link => NodeFile::Link,
            _ => NodeFile::Blob(id),
        };
        let known = match name.as_bytes() {
            b"kind" => &mut open.kind,
            b"value" => &mut open.value,
            name if name == WORKFLOW_TEXT.as_bytes() => &mut open.text,
            _ => continue,
        };
        *known = Some(file);
        open.linked |= matches!(file, NodeFile::Link);
    }
    Ok(open)
}

/// The files in the storage that the text of a workflow names, or what is wrong with it.
fn literals(contents: &[u8]) -> Result<Vec<StorageName>, String> {
    let text = std::str::from_utf8(contents)
        .map_err(|error| Mistake::not_text(contents, error.valid_up_to()).to_string())?;
    let parsed = parse(text).map_err(|mistake| mistake.to_string())?;
    Ok(parsed.literals.iter().filter_map(|name| name.parse().ok()).collect())
}

/// A file of a node, in a tree.
#[derive(Clone, Copy)]
enum NodeFile {
    Blob(ObjectId),
    Link,
}
