//! The commits that repositories can still reach: every one that a branch, a tag or a HEAD leads
//! to, and every commit of a submodule that one of them records.
//!
//! It decides which results may be deleted, so unknown facts are errors, never omissions. A workflow that cannot be read is
//! neither: it can use nothing, and its words are kept for a version that may read it.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::ops::RangeInclusive;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use gix::objs::Kind;
use gix::objs::tree::EntryKind;
use gix::{ObjectId, Repository};

use super::{GitResult, from, object_id};
use crate::commit_snapshot::Snapshot;
use crate::errors::{SnapshotError, UnreadableRepository, border};
use crate::lfs::LfsPointer;
use crate::objects::{self, object, tree_of};
use crate::submodules::Repositories;
use crate::text_computations;
use crate::workflow_use::{self, OpenInputs, WorkflowUse, WorkflowUses, is_factors};
use ce_model::digest::{self, Digest};
use ce_model::exit::Explain;
use ce_model::expression::{Mistake, NodeKind, parse};
use ce_model::sweep::REPLICATES;
use ce_model::task::{LIBRARY, WORKFLOW_TEXT};
use ce_model::text_file;

/// The sizes of files that may be pointers of Git LFS, in bytes.
const POINTER_SIZES: RangeInclusive<u64> = 120..=200;

/// Everything that some repositories can reach: commits, the objects in them, and inputs of the workflows there.
#[derive(Debug, Default)]
pub struct ReachableSet {
    commits: HashSet<digest::ObjectId>,
    trees: HashSet<ObjectId>,
    blobs: HashSet<ObjectId>,
    /// The files of computations in texts, which are blobs of no repository.
    text_computations: HashSet<ObjectId>,
    uses: WorkflowUses,
    /// Words of workflows that cannot be read.
    words: HashSet<Box<str>>,
    unreadable: Vec<UnreadableWorkflow>,
    repositories: Vec<Rc<Repositories>>,
}

/// A workflow of a reachable commit that cannot be read. It can use nothing by itself.
#[derive(Debug)]
pub struct UnreadableWorkflow {
    pub repository: PathBuf,
    /// The first digits of a commit that has it.
    pub commit: String,
    /// The text, or the file of a node, relative to the repository.
    pub path: PathBuf,
    /// The fault, and its place.
    pub fault: String,
}

/// The reason why the reachable commits of a repository are unknown.
#[derive(Debug, thiserror::Error, Explain)]
#[non_exhaustive]
pub enum ReachError {
    /// The repository cannot be read.
    #[error(transparent)]
    #[hint(_0.hint())]
    Repository(#[from] UnreadableRepository),
    /// The history of the repository is cut off.
    #[error("{} is a shallow clone: its history ends at the commit {border}, and older commits are missing", repository.display())]
    #[hint("git fetch --unshallow")]
    Shallow {
        repository: PathBuf,
        /// The first digits of the commits without their parents.
        border: String,
    },
    /// The computations of a commit cannot be seen.
    #[error("{}: the commit {commit} has a submodule computations at {submodule}, which is not cloned", repository.display())]
    #[hint("git submodule update --init --recursive, or git fetch in the submodule")]
    NotCloned {
        repository: PathBuf,
        /// The first digits of its commit.
        commit: String,
        /// The first digits of the submodule's commit.
        submodule: String,
    },
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
            for (path, fault) in walk.unreadable.drain(..) {
                let (repository, commit) = (dir.to_owned(), name.short().to_owned());
                let found = UnreadableWorkflow { repository, commit, path, fault };
                walk.reach.unreadable.push(found);
            }
            walk.reach.commits.insert(name);
        }
        let directories = walk.directories;
        self.uses.add_workflow(directories);
        self.repositories.push(repositories);
        Ok(())
    }

    /// Whether a commit is reached.
    pub fn has(&self, commit: &digest::ObjectId) -> bool {
        self.commits.contains(commit)
    }

    /// The names in the storage that workflows read at these commits, as they are written: a name in
    /// braces may stand for any text.
    pub fn literals(&self) -> impl Iterator<Item = &str> {
        self.uses.literals()
    }

    /// The words of workflows that cannot be read: a newer version may read them, and find names in the storage.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.words.iter().map(|word| &**word)
    }

    /// The workflows that cannot be read.
    pub fn unreadable(&self) -> &[UnreadableWorkflow] {
        &self.unreadable
    }

    /// Whether a reachable commit has the tree or blob of a computation.
    pub fn has_version(&self, tree: &digest::ObjectId) -> bool {
        let known = [&self.trees, &self.blobs, &self.text_computations];
        from(tree).is_ok_and(|id| known.iter().any(|known| known.contains(&id)))
    }

    /// Where the inputs of a computation may come from; `None` if no reachable workflow calls it.
    pub fn open_inputs(&self, computation: &str) -> Option<OpenInputs> {
        self.uses.open_inputs(computation)
    }

    /// The contents of texts and levels without names in braces.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.uses.texts()
    }

    /// Whether contents may come from a text with names in braces.
    pub fn may_be_text(&self, contents: &str) -> bool {
        self.uses.may_be_text(contents)
    }

    /// Whether there are texts with names in braces.
    pub fn has_open_texts(&self) -> bool {
        self.uses.has_open_texts()
    }

    /// The paths within directories that workflows read, as they are written.
    pub fn members(&self) -> impl Iterator<Item = &str> {
        self.uses.members()
    }

    /// Returns the wanted contents that files of reachable commits have. Reads only files of the same sizes. A pointer
    /// of Git LFS stands for all contents of the size that it names.
    pub fn contents_of_files(
        &self,
        wanted: &HashSet<Digest>,
    ) -> Result<HashSet<Digest>, UnreadableRepository> {
        let mut found = HashSet::new();
        let sizes: HashSet<u64> = wanted.iter().map(|it| it.size).collect();
        for repositories in self.repositories.iter().filter(|_| !wanted.is_empty()) {
            let dir = repositories.task.git_dir().to_owned();
            let read = self.read_files(repositories, &sizes, &mut |contents| {
                if let Some(pointer) = LfsPointer::parse(contents) {
                    found.extend(wanted.iter().filter(|it| it.size == pointer.size));
                }
                let digest = Digest::hash_bytes(contents);
                found.extend(wanted.get(&digest));
            });
            read.map_err(|error| UnreadableRepository::new(&dir, error))?;
        }
        Ok(found)
    }

    /// Passes the contents of all files of these sizes, and all that may be pointers of Git LFS, to a function.
    fn read_files(
        &self,
        repositories: &Repositories,
        sizes: &HashSet<u64>,
        tell: &mut dyn FnMut(&[u8]),
    ) -> GitResult<()> {
        for id in &self.blobs {
            // A commit of a submodule that is not cloned, or in another repository.
            let Some(repository) = repositories.repository_of(*id)? else { continue };
            let size = repository.find_header(*id)?.size();
            if sizes.contains(&size) || POINTER_SIZES.contains(&size) {
                tell(&objects::blob(repository, *id)?);
            }
        }
        Ok(())
    }
}

/// The commits of all branches, tags and other references, and of the HEAD and the references of each work tree.
fn tips(repository: &Repository) -> GitResult<Vec<ObjectId>> {
    let mut tips = Vec::new();
    add_tips(repository, &mut tips)?;
    // References such as refs/bisect/* belong to one work tree.
    if repository.worktree().is_some_and(|it| !it.is_main()) {
        add_tips(&repository.main_repo()?, &mut tips)?;
    }
    for worktree in repository.worktrees()? {
        add_tips(&worktree.into_repo_with_possibly_inaccessible_worktree()?, &mut tips)?;
    }
    Ok(tips)
}

fn add_tips(repository: &Repository, tips: &mut Vec<ObjectId>) -> GitResult<()> {
    for reference in repository.references()?.all()? {
        let id = reference?.into_fully_peeled_id()?;
        if repository.find_header(id)?.kind() == Kind::Commit {
            tips.push(id.detach());
        }
    }
    tips.extend(head(repository));
    Ok(())
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
    /// The workflows that cannot be read, and why.
    unreadable: Vec<(PathBuf, String)>,
    /// The nodes that are directories. Nodes that are joined by links count as one workflow.
    directories: WorkflowUse,
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
    replicates: Option<NodeFile>,
    /// The text of a workflow.
    text: Option<NodeFile>,
    others: Vec<(OsString, NodeFile)>,
    node: Option<NodeKind>,
    linked: bool,
}

impl TreeBeingRead {
    /// The ids of its files.
    fn blobs(&self) -> impl Iterator<Item = ObjectId> {
        let own = [self.kind, self.value, self.replicates, self.text].into_iter().flatten();
        let files = own.chain(self.others.iter().map(|(_, file)| *file));
        files.filter_map(|file| match file {
            NodeFile::Blob(id) => Some(id),
            NodeFile::Link => None,
        })
    }
}

impl<'a> Walk<'a> {
    fn new(repositories: &'a Rc<Repositories>, reach: &'a mut ReachableSet) -> Self {
        Self {
            repositories,
            reach,
            linked: HashMap::new(),
            commits: Vec::new(),
            texts: HashSet::new(),
            unreadable: Vec::new(),
            directories: WorkflowUse::default(),
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
                    self.reach.trees.insert(id);
                    let node = self.note(&task, repository, &place, &way)?;
                    if let Some(open) = way.last_mut() {
                        self.reach.blobs.extend(open.blobs());
                        open.others.clear();
                        open.node = node;
                    }
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

    /// Notes the entries of the tree at the end of a way. Returns its kind if it is a node.
    fn note(
        &mut self,
        task: &OpenedCommit,
        repository: &Repository,
        place: &Path,
        way: &[TreeBeingRead],
    ) -> GitResult<Option<NodeKind>> {
        let Some((open, around)) = way.split_last() else { return Ok(None) };
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
            if let Err(fault) = self.add_text(&contents, repository.object_hash()) {
                self.give_up(place().join(WORKFLOW_TEXT), fault, &contents);
            }
            if let NodeFile::Blob(id) = text {
                self.texts.insert(id);
            }
        }
        if open.below.iter().any(|(name, _)| name == "workflow")
            && let Some((name, file)) = open.others.iter().find(|(name, _)| name == "inputs")
            && let Some(inputs) = self.read(task, repository, *file, || place().join(name))?
        {
            self.directories.set_given(!inputs.trim_ascii().is_empty());
        }
        if let Some(sweep) = around.last().filter(|around| around.node.is_some()) {
            if is_factors(&open.name) {
                for (name, file) in &open.others {
                    if let Some(levels) =
                        self.read(task, repository, *file, || place().join(name))?
                    {
                        let levels = String::from_utf8_lossy(&levels);
                        workflow_use::levels(&levels).for_each(|it| self.reach.uses.add_level(it));
                    }
                }
            } else if open.name == "inputs" && sweep.node == Some(NodeKind::Sweep) {
                // Its points are computed if it has more than a body.
                let branches = open.below.len() + open.others.len();
                self.directories.set_given(branches > 1);
            }
        }
        let Some(kind) = open.kind else { return Ok(None) };
        let Some(kind) = self.read(task, repository, kind, || place().join("kind"))? else {
            return Ok(None);
        };
        let value = match open.value {
            Some(value) => self.read(task, repository, value, || place().join("value"))?,
            None => None,
        };
        let value = value.unwrap_or_default();
        let Ok((word, _)) = text_file::line(&kind) else { return Ok(None) };
        let Some(kind) = NodeKind::of_file(word) else {
            // Elsewhere, files of this name are not nodes.
            if way.iter().any(|open| open.name == "workflow") {
                let fault = format!("{word:?} is not a kind of node");
                self.give_up(place().join("kind"), fault, &value);
            }
            return Ok(None);
        };
        let line = if kind == NodeKind::Text {
            std::str::from_utf8(&value).ok()
        } else {
            text_file::line(&value).ok().map(|(line, _)| line)
        };
        if let Some(value) = line {
            self.reach.uses.add_value(&mut self.directories, kind, value);
        }
        if let Some(replicates) = open.replicates
            && let Some(line) =
                self.read(task, repository, replicates, || place().join(REPLICATES))?
            && let Ok((line, _)) = text_file::line(&line)
        {
            self.reach.uses.add_replicates(line);
        }
        Ok(Some(kind))
    }

    /// Adds the text of a workflow.
    ///
    /// # Errors
    ///
    /// Fails with its fault.
    fn add_text(&mut self, contents: &[u8], hash: gix::hash::Kind) -> Result<(), String> {
        let text = std::str::from_utf8(contents)
            .map_err(|error| Mistake::not_text(contents, error.valid_up_to()).to_string())?;
        let parsed = parse(text).map_err(|mistake| mistake.to_string())?;
        self.reach.uses.add_parsed(&parsed);
        for computation in &parsed.text.computations {
            let id = text_computations::id_of(&computation.file().contents, hash);
            self.reach.text_computations.insert(id.map_err(|error| error.to_string())?);
        }
        Ok(())
    }

    /// Notes a workflow that cannot be read, and the words of its contents.
    fn give_up(&mut self, path: PathBuf, fault: String, contents: &[u8]) {
        self.reach.words.extend(workflow_use::words(contents).map(Box::from));
        self.unreadable.push((path, fault));
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
            NodeFile::Blob(id) => objects::blob(repository, id).map(Some),
            NodeFile::Link => self.follow(task, &place()),
        }
    }

    /// Reads the file that a link in the task leads to, if the task could be loaded with it.
    fn follow(&self, task: &OpenedCommit, path: &Path) -> GitResult<Option<Vec<u8>>> {
        let snapshot = task
            .opened
            .get_or_init(|| Snapshot::from_commit(Rc::clone(self.repositories), task.id));
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
            name if name == REPLICATES.as_bytes() => &mut open.replicates,
            name if name == WORKFLOW_TEXT.as_bytes() => &mut open.text,
            _ => {
                open.others.push((name.to_owned(), file));
                continue;
            }
        };
        *known = Some(file);
        open.linked |= matches!(file, NodeFile::Link);
    }
    Ok(open)
}

/// A file of a node, in a tree.
#[derive(Clone, Copy)]
enum NodeFile {
    Blob(ObjectId),
    Link,
}
