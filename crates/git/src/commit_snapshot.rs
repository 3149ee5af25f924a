//! A commit of a repository, read from its objects: paths as in a checkout of it, and of its
//! submodules at the commits that it records. Or the commit that a work tree would become: its [`Draft`].
//!
//! Directories of a commit are identical if they are at the same path, or have the same tree and no links.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use gix::ObjectId;
use gix::hashtable;
use gix::objs::tree::EntryKind;

use super::attributes::CommitAttributes;
use super::draft::{self, Draft, NestedDraft, TreeEntry};
use super::errors::SnapshotError;
use super::objects::{self, tree_of};
use super::submodules::Repositories;
use super::text_computations;
use super::{GitResult, from, object_id, revision, top};
use ce_model::digest;

/// The message where a commit is needed.
const NO_COMMIT: &str = "there is no commit";

/// The greatest number of links that are followed.
const LINKS: usize = 40;

/// A commit, and the directory in it that paths are relative to.
#[derive(Debug)]
pub struct Snapshot {
    /// `None` for a directory that is in no repository.
    repositories: Option<Rc<Repositories>>,
    /// `None` if there is no commit yet.
    commit: Option<ObjectId>,
    /// The work tree, which counts where it differs from the commit.
    draft: Option<Rc<Draft>>,
    directory: Rc<Path>,
    /// The drafts of repositories in the work tree.
    nested: RefCell<Vec<Rc<Draft>>>,
    /// The links that were followed, and their targets.
    linked: RefCell<BTreeSet<PathBuf>>,
    /// A submodule that is not at its recorded commit, and the commit that it is at.
    moved: Option<(PathBuf, ObjectId)>,
    /// Some of the trees that were read.
    trees: RefCell<hashtable::HashMap<ObjectId, Rc<TreeEntries>>>,
    /// The small files that were read: most are the same word again.
    words: RefCell<hashtable::HashMap<ObjectId, Vec<u8>>>,
    same: SameDirectories,
}

/// The number of trees kept in memory, besides the parents of the current one.
const TREES: usize = 4096;

/// The greatest size of a file that is kept in memory, in bytes.
const WORD: usize = 128;

impl Snapshot {
    /// Opens a revision of the repository that a directory is in, or is.
    pub fn open(dir: &Path, rev: &str) -> Result<Self, SnapshotError> {
        let repositories =
            Repositories::open(dir).map_err(|source| SnapshotError::of_opening(dir, source))?;
        let commit = revision::commit(&repositories.task, dir, rev);
        let commit = commit.map_err(|source| SnapshotError::Revision {
            rev: rev.to_owned(),
            repository: repositories.task.git_dir().to_owned(),
            source,
        })?;
        let real = dir.canonicalize().map_err(|error| SnapshotError::Git(error.into()))?;
        let directory = top(&real).and_then(|top| real.strip_prefix(top).ok().map(Path::to_owned));
        let whole = Self::from_commit(Rc::new(repositories), commit);
        Ok(whole.relative_to(&directory.unwrap_or_default()))
    }

    /// A commit of a repository, with paths relative to its top.
    pub(super) fn from_commit(repositories: Rc<Repositories>, commit: ObjectId) -> Self {
        Self::new(Some(repositories), Some(commit), None)
    }

    /// A work tree as if it were committed, with paths relative to its top.
    pub(super) fn of_draft(
        repositories: Option<Rc<Repositories>>,
        commit: Option<ObjectId>,
        draft: Draft,
    ) -> Self {
        Self::new(repositories, commit, Some(Rc::new(draft)))
    }

    /// The files in a directory, given by its real path, and in the work tree that it is in, whether or not Git ignores them. There is no
    /// commit.
    pub fn of_files(dir: &Path) -> Self {
        let top = top(dir).unwrap_or_else(|| dir.to_owned());
        let inside = dir.strip_prefix(&top).unwrap_or(Path::new(""));
        Self::of_draft(None, None, Draft::outside(&top)).relative_to(inside)
    }

    /// The same with paths relative to a directory, given by its place in the repository.
    pub(super) fn relative_to(self, directory: &Path) -> Self {
        Self { directory: directory.into(), ..self }
    }

    fn new(
        repositories: Option<Rc<Repositories>>,
        commit: Option<ObjectId>,
        draft: Option<Rc<Draft>>,
    ) -> Self {
        Self {
            repositories,
            commit,
            draft,
            nested: RefCell::default(),
            linked: RefCell::default(),
            directory: PathBuf::new().into(),
            moved: None,
            trees: RefCell::default(),
            words: RefCell::default(),
            same: SameDirectories::default(),
        }
    }

    /// The same with a submodule at another commit, given by its place in the repository.
    pub fn with(self, place: &Path, commit: &digest::ObjectId) -> Result<Self, SnapshotError> {
        let commit = from(commit).map_err(SnapshotError::Git)?;
        Ok(Self { moved: Some((place.to_owned(), commit)), ..self })
    }

    /// The commit.
    pub fn commit(&self) -> Result<digest::ObjectId, SnapshotError> {
        let commit = self.commit.ok_or_else(|| SnapshotError::Git(NO_COMMIT.into()))?;
        object_id(commit).map_err(SnapshotError::Git)
    }

    /// The places in the repository of the links that were followed, and of their targets.
    pub fn linked(&self) -> BTreeSet<PathBuf> {
        self.linked.borrow().clone()
    }

    /// Finds the entry with this path, following links.
    pub fn find(&self, path: &Path) -> Result<TreePath, SnapshotError> {
        Ok(self.tree_path(self.way(path)?))
    }

    /// Finds the entry with this name in a directory, following links.
    pub fn entry(&self, directory: &TreePath, name: &OsStr) -> Result<TreePath, SnapshotError> {
        Ok(self.tree_path(self.follow(Rc::clone(&directory.step), name, &mut 0)?))
    }

    /// The innermost submodule that holds a path: its place in the repository, and its commit.
    pub(super) fn submodule(&self, path: &Path) -> Result<(PathBuf, ObjectId), SnapshotError> {
        let step = self.way(path)?;
        match step.upwards().find(|step| step.root) {
            Some(root) if root.above.is_some() => Ok((root.place(), root.commit)),
            _ => Err(SnapshotError::Own),
        }
    }

    /// Returns the commit of the submodule with this path, as the commit records it, or as the commit of a draft would.
    pub fn submodule_commit(&self, path: &Path) -> Result<digest::ObjectId, SnapshotError> {
        let name = path.file_name().ok_or(SnapshotError::NotASubmodule)?;
        let around = self.way(path.parent().unwrap_or(Path::new("")))?;
        let entry = self.entry_of(&around, name)?;
        let commit = match entry.kind {
            EntryKind::Commit if entry.is_draft => match self.child(&around, name)?.commit {
                unborn if unborn.is_null() => return Err(SnapshotError::Git(NO_COMMIT.into())),
                commit => commit,
            },
            EntryKind::Commit => self.commit_at(&around.place().join(name), entry.id),
            EntryKind::Tree | EntryKind::Blob | EntryKind::BlobExecutable | EntryKind::Link => {
                return Err(SnapshotError::NotASubmodule);
            }
        };
        object_id(commit).map_err(SnapshotError::Git)
    }

    /// The top of a repository that a tree names: `.`, the task's own, or a submodule by its path.
    pub fn source(&self, name: &str) -> Result<TreePath, SnapshotError> {
        if name == "." {
            return Ok(self.tree_path(Rc::new(self.root()?)));
        }
        let path = Path::new(name);
        let around = self.way(path.parent().unwrap_or(Path::new("")))?;
        let step = self.child(&around, path.file_name().ok_or(SnapshotError::NotASubmodule)?)?;
        if step.root { Ok(self.tree_path(step)) } else { Err(SnapshotError::NotASubmodule) }
    }

    /// Finds a directory by its path in another one. No links are followed.
    pub fn directory(&self, around: &TreePath, path: &Path) -> Result<TreePath, SnapshotError> {
        let mut here = Rc::clone(&around.step);
        for part in parts(path) {
            here = self.child(&here, part)?;
        }
        match here.kind {
            EntryKind::Tree => Ok(self.tree_path(here)),
            EntryKind::Blob | EntryKind::BlobExecutable | EntryKind::Link | EntryKind::Commit => {
                Err(SnapshotError::NotADirectory)
            }
        }
    }

    fn tree_path(&self, step: Rc<PathStep>) -> TreePath {
        TreePath { step, directory: Rc::clone(&self.directory) }
    }

    fn way(&self, path: &Path) -> Result<Rc<PathStep>, SnapshotError> {
        let mut here = Rc::new(self.root()?);
        let mut links = 0;
        for part in parts(&self.directory.join(path)) {
            here = self.follow(here, part, &mut links)?;
        }
        Ok(here)
    }

    fn root(&self) -> Result<PathStep, SnapshotError> {
        let none = gix::hash::Kind::Sha1.null();
        let (tree, commit) = match self.commit {
            Some(commit) => (self.tree(commit)?, commit),
            None => (none, none),
        };
        let mut root = PathStep::root(None, OsString::new(), tree, commit);
        root.is_draft = self.draft.as_ref().is_some_and(|it| it.has_changes(Path::new("")));
        root.draft.clone_from(&self.draft);
        Ok(root)
    }

    /// Continues to an entry of a directory; if it is a link, to its target.
    fn follow(
        &self,
        mut here: Rc<PathStep>,
        part: &OsStr,
        links: &mut usize,
    ) -> Result<Rc<PathStep>, SnapshotError> {
        let mut left = VecDeque::from([part.to_owned()]);
        let before = *links;
        while let Some(part) = left.pop_front() {
            here = match self.step(&here, &part)? {
                EntryTarget::PathStep(step) => step,
                EntryTarget::Link(target) => {
                    *links += 1;
                    self.linked.borrow_mut().insert(here.place().join(&part));
                    if *links > LINKS {
                        return Err(SnapshotError::Links);
                    }
                    if target.is_absolute() {
                        return Err(SnapshotError::Outside(target));
                    }
                    let target: Vec<&OsStr> = parts(&target).collect();
                    target.iter().rev().for_each(|part| left.push_front(part.into()));
                    here
                }
            };
        }
        if *links > before {
            self.linked.borrow_mut().insert(here.place());
        }
        Ok(here)
    }

    fn step(&self, here: &Rc<PathStep>, part: &OsStr) -> Result<EntryTarget, SnapshotError> {
        if part == ".." {
            let above = here.above.clone().ok_or_else(|| SnapshotError::Outside("..".into()))?;
            return Ok(EntryTarget::PathStep(above));
        }
        let TreeEntry { kind, id, is_draft, .. } = self.entry_of(here, part)?;
        let (above, name) = (Rc::clone(here), part.to_owned());
        Ok(EntryTarget::PathStep(Rc::new(match kind {
            EntryKind::Link => {
                let mut link = PathStep::entry(above, name, kind, id);
                link.is_draft = is_draft;
                let target = self.contents(&link)?;
                return Ok(EntryTarget::Link(OsString::from_vec(target).into()));
            }
            EntryKind::Commit if is_draft => {
                let nested = here.draft().map(|draft| draft.nested(&here.inside().join(part)));
                let NestedDraft { head, draft } =
                    nested.ok_or(SnapshotError::Missing)?.map_err(SnapshotError::Git)?;
                let (commit, tree) = head.unwrap_or((id, id));
                let mut known = self.nested.borrow_mut();
                if !known.iter().any(|it| Rc::ptr_eq(it, &draft)) {
                    known.push(Rc::clone(&draft));
                }
                drop(known);
                let mut root = PathStep::root(Some(above), name, tree, commit);
                root.is_draft = draft.has_changes(Path::new(""));
                root.draft = Some(draft);
                root
            }
            EntryKind::Commit => {
                let commit = self.commit_at(&here.place().join(part), id);
                PathStep::root(Some(above), name, self.tree(commit)?, commit)
            }
            kind => {
                let mut entry = PathStep::entry(above, name, kind, id);
                entry.is_draft = is_draft;
                entry
            }
        })))
    }

    /// The entry with this name in a directory, which is not a link.
    pub(super) fn child(
        &self,
        here: &Rc<PathStep>,
        name: &OsStr,
    ) -> Result<Rc<PathStep>, SnapshotError> {
        match self.step(here, name)? {
            EntryTarget::PathStep(step) => Ok(step),
            EntryTarget::Link(_) => Err(SnapshotError::Link),
        }
    }

    /// Does something with the repository that has an object: the task's, a submodule, or one in the work tree that no
    /// commit records.
    pub(super) fn with_repository_of<T>(
        &self,
        id: ObjectId,
        act: impl FnOnce(&gix::Repository) -> GitResult<T>,
    ) -> GitResult<T> {
        let nested = self.nested.borrow().clone();
        let mut nested = nested.iter().filter_map(|draft| draft.repository());
        match nested.find(|repository| repository.has_object(id)) {
            Some(repository) => act(repository),
            None => act(self.repositories()?.required_repository_of(id)?),
        }
    }

    /// The same with the repository of a draft's file, which need not be an object yet.
    pub(super) fn with_repository_at<T>(
        &self,
        file: &PathStep,
        act: impl FnOnce(&gix::Repository) -> GitResult<T>,
    ) -> GitResult<T> {
        match file.changes().and_then(Draft::repository) {
            Some(repository) => act(repository),
            None => self.with_repository_of(file.id, act),
        }
    }

    /// The entry with this name in a directory.
    pub(super) fn entry_of(
        &self,
        here: &PathStep,
        name: &OsStr,
    ) -> Result<TreeEntry, SnapshotError> {
        if here.kind != EntryKind::Tree {
            return Err(SnapshotError::NotADirectory);
        }
        let entries = self.entries(here)?;
        let at = entries.binary_search_by(|entry| entry.name.as_os_str().cmp(name));
        Ok(entries[at.map_err(|_| SnapshotError::Missing)?].clone())
    }

    /// The commit of the submodule at this place for which the given commit is recorded.
    fn commit_at(&self, place: &Path, recorded: ObjectId) -> ObjectId {
        let moved = self.moved.as_ref().filter(|(moved, _)| *moved == place);
        moved.map_or(recorded, |(_, commit)| *commit)
    }

    /// Whether a directory holds links or submodules, itself or anywhere below, or differs from the commit. A path that
    /// does not lead through one means the same everywhere.
    pub fn is_linked(&self, directory: &TreePath) -> Result<bool, SnapshotError> {
        if directory.step.is_draft {
            return Ok(true);
        }
        self.same.is_linked(&directory.step, |id| self.tree_entries(id))
    }

    /// The number of a directory's place: no other place has it.
    pub fn number(&self, directory: &TreePath) -> u32 {
        self.same.number(&directory.step)
    }

    /// Lists the names in a directory, in any order.
    pub fn list(&self, directory: &TreePath) -> Result<Vec<OsString>, SnapshotError> {
        let entries = self.entries(&directory.step)?;
        Ok(entries.iter().map(|entry| entry.name.clone()).collect())
    }

    /// Returns the contents of a file.
    pub fn read(&self, file: &TreePath) -> Result<Vec<u8>, SnapshotError> {
        self.contents(&file.step)
    }

    /// The size of a file in bytes, if that is known before it is read.
    pub fn size(&self, file: &TreePath) -> Option<u64> {
        self.draft_size(&file.step)
    }

    /// The size of a file that differs in a draft, in bytes.
    pub(super) fn draft_size(&self, file: &PathStep) -> Option<u64> {
        let draft = file.changes()?;
        draft.size(&file.inside()).ok()
    }

    /// The id of a tree or blob, which a draft makes.
    pub fn id(&self, path: &TreePath) -> Result<digest::ObjectId, SnapshotError> {
        let step = &path.step;
        let id = match step.changes() {
            None => Ok(step.id),
            Some(draft) => {
                let recorded = (!step.id.is_null()).then_some((step.id, step.kind));
                draft.object(&step.inside(), recorded)
            }
        };
        id.and_then(object_id).map_err(SnapshotError::Git)
    }

    /// The id that a file has if its repository has these contents of it.
    pub fn id_of_contents(
        &self,
        file: &TreePath,
        contents: &str,
    ) -> Result<digest::ObjectId, SnapshotError> {
        let id = text_computations::id_of(contents, file.step.commit.kind());
        id.and_then(object_id).map_err(SnapshotError::Git)
    }

    /// The repository of a tree or blob whose id was asked for, and the repositories in its work tree that have parts
    /// of it.
    pub(super) fn repositories_of(&self, path: &TreePath) -> GitResult<Repositories> {
        let draft = path.step.draft().map(Draft::repositories).unwrap_or_default();
        let mut found = draft.into_iter();
        match found.next() {
            Some(first) => Ok(Repositories::from_open(first, found.collect())),
            None => self.with_repository_of(path.step.id, |it| {
                Ok(Repositories::from_open(it.clone(), Vec::new()))
            }),
        }
    }

    /// Whether objects of the repository are left to be fetched when they are needed.
    pub(super) fn is_partial(&self) -> bool {
        self.repositories.as_ref().is_some_and(|it| is_partial(&it.task))
    }

    /// The contents of a file, or the target of a link.
    pub(super) fn contents(&self, step: &PathStep) -> Result<Vec<u8>, SnapshotError> {
        let Some(draft) = step.changes() else {
            return self.blob(step.id).map_err(SnapshotError::Git);
        };
        let contents = draft.contents(&step.inside()).map_err(SnapshotError::Git)?;
        contents.ok_or(SnapshotError::NotAFile)
    }

    /// Returns the entries of a directory.
    pub(super) fn entries(&self, step: &PathStep) -> Result<Rc<TreeEntries>, SnapshotError> {
        if let Some(known) = step.entries.get() {
            return Ok(Rc::clone(known));
        }
        let recorded = match step.id.is_null() {
            true => Rc::default(),
            false => self.tree_entries(step.id)?,
        };
        let entries = match step.changes() {
            None => recorded,
            Some(draft) => {
                let entries = draft.entries(&step.inside(), &recorded);
                Rc::new(entries.map_err(SnapshotError::Git)?)
            }
        };
        Ok(Rc::clone(step.entries.get_or_init(|| entries)))
    }

    fn tree_entries(&self, id: ObjectId) -> Result<Rc<TreeEntries>, SnapshotError> {
        if let Some(known) = self.trees.borrow().get(&id) {
            return Ok(Rc::clone(known));
        }
        let entries = Rc::new(self.read_tree(id).map_err(SnapshotError::Git)?);
        let mut trees = self.trees.borrow_mut();
        if trees.len() < TREES {
            trees.insert(id, Rc::clone(&entries));
        }
        Ok(entries)
    }

    fn read_tree(&self, id: ObjectId) -> GitResult<TreeEntries> {
        self.with_repository_of(id, |repository| draft::tree_entries(repository, id))
    }

    fn blob(&self, id: ObjectId) -> GitResult<Vec<u8>> {
        if let Some(word) = self.words.borrow().get(&id) {
            return Ok(word.clone());
        }
        let contents = self.with_repository_of(id, |it| objects::blob(it, id))?;
        if contents.len() <= WORD {
            self.words.borrow_mut().insert(id, contents.clone());
        }
        Ok(contents)
    }

    fn repositories(&self) -> GitResult<&Repositories> {
        self.repositories.as_deref().ok_or_else(|| NO_COMMIT.into())
    }

    /// The tree of a commit of this repository or a submodule.
    fn tree(&self, commit: ObjectId) -> Result<ObjectId, SnapshotError> {
        let repositories = self.repositories().map_err(SnapshotError::Git)?;
        let having = repositories.repository_of(commit).map_err(SnapshotError::Git)?;
        let repository = having.ok_or_else(|| SnapshotError::NotCloned {
            commit: commit.to_hex_with_len(digest::SHORT).to_string(),
        })?;
        tree_of(repository, commit).map_err(SnapshotError::Git)
    }
}

/// Whether objects of a repository are left to be fetched when they are needed.
fn is_partial(repository: &gix::Repository) -> bool {
    let config = repository.config_snapshot();
    let mut remotes = config.plumbing().sections_by_name("remote").into_iter().flatten();
    config.string("extensions.partialClone").is_some()
        || remotes.any(|remote| remote.value("promisor").is_some())
}

fn parts(path: &Path) -> impl Iterator<Item = &OsStr> {
    let parts = path.components().filter(|part| *part != Component::CurDir);
    parts.map(Component::as_os_str)
}

/// The target of an entry of a directory.
enum EntryTarget {
    PathStep(Rc<PathStep>),
    Link(PathBuf),
}

/// The entries of a tree, sorted by name.
type TreeEntries = Vec<TreeEntry>;

/// A step of the way to something. Steps share those before them.
#[derive(Debug)]
pub(super) struct PathStep {
    /// The directory that it is in; nothing for the root of the task's repository.
    pub(super) above: Option<Rc<Self>>,
    /// Its name there.
    pub(super) name: OsString,
    /// Its kind; never a link.
    pub(super) kind: EntryKind,
    /// The id of the tree or blob.
    pub(super) id: ObjectId,
    /// The commit of the innermost repository.
    pub(super) commit: ObjectId,
    /// It is the root of a repository.
    pub(super) root: bool,
    /// The draft of its repository, if it is the root of one.
    pub(super) draft: Option<Rc<Draft>>,
    /// As [`TreeEntry::is_draft`].
    pub(super) is_draft: bool,
    /// The entries in it, once they were read.
    pub(super) entries: OnceCell<Rc<TreeEntries>>,
    /// The attributes of files in it, once they were read.
    pub(super) attributes: OnceCell<Rc<CommitAttributes>>,
    /// It is known to hold no links or submodules, itself or anywhere below.
    pub(super) plain: Cell<bool>,
    /// The number of its path, once that was requested.
    pub(super) number: Cell<Option<u32>>,
}

impl PathStep {
    /// The root of a repository; without anything above it, of the task's.
    pub(super) fn root(
        above: Option<Rc<Self>>,
        name: OsString,
        id: ObjectId,
        commit: ObjectId,
    ) -> Self {
        Self {
            above,
            name,
            kind: EntryKind::Tree,
            id,
            commit,
            root: true,
            draft: None,
            is_draft: false,
            entries: OnceCell::new(),
            attributes: OnceCell::new(),
            plain: Cell::new(false),
            number: Cell::new(None),
        }
    }

    /// An entry of a directory.
    pub(super) fn entry(above: Rc<Self>, name: OsString, kind: EntryKind, id: ObjectId) -> Self {
        let (commit, plain) = (above.commit, above.plain.clone());
        let mut entry = Self::root(Some(above), name, id, commit);
        (entry.kind, entry.root, entry.plain) = (kind, false, plain);
        entry
    }

    /// The steps from this one upwards.
    fn upwards(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |step| step.above.as_deref())
    }

    /// Its place in the task's repository.
    pub(super) fn place(&self) -> PathBuf {
        path(self.upwards().filter(|step| step.above.is_some()))
    }

    /// Its path in the innermost repository.
    pub(super) fn inside(&self) -> PathBuf {
        path(self.upwards().take_while(|step| !step.root))
    }

    /// The draft of the innermost repository.
    pub(super) fn draft(&self) -> Option<&Draft> {
        self.upwards().find(|step| step.root)?.draft.as_deref()
    }

    /// The draft in which it differs from the commit. Most steps differ in none, and then nobody looks above: a chain of
    /// directories would take quadratic time.
    fn changes(&self) -> Option<&Draft> {
        if self.is_draft { self.draft() } else { None }
    }
}

impl Drop for PathStep {
    /// Drops the steps above it in a loop, since there may be any number.
    fn drop(&mut self) {
        let mut above = self.above.take();
        while let Some(mut step) = above.and_then(Rc::into_inner) {
            above = step.above.take();
        }
    }
}

/// The path that these steps make, given from its end.
fn path<'a>(steps: impl Iterator<Item = &'a PathStep>) -> PathBuf {
    let names: Vec<&OsString> = steps.map(|step| &step.name).collect();
    names.into_iter().rev().collect()
}

/// The object at some path in a commit.
#[derive(Clone, Debug)]
pub struct TreePath {
    step: Rc<PathStep>,
    /// The directory that paths are relative to.
    pub(super) directory: Rc<Path>,
}

/// The identity of a Git tree: directories with equal ids have equal contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TreeId(ObjectId);

/// The kind of an entry of a commit, links aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A directory.
    Directory,
    /// A file.
    File {
        /// It may be executed.
        executable: bool,
    },
}

impl TreePath {
    pub(super) fn step(&self) -> &Rc<PathStep> {
        &self.step
    }

    /// Its kind.
    pub fn kind(&self) -> Kind {
        match self.step.kind {
            EntryKind::Tree => Kind::Directory,
            kind => Kind::File { executable: kind == EntryKind::BlobExecutable },
        }
    }

    /// Its real path, without links.
    pub fn place(&self) -> PathBuf {
        relative(&self.step.place(), &self.directory)
    }

    /// Its path in the innermost repository.
    pub fn inside(&self) -> PathBuf {
        self.step.inside()
    }

    /// Its place in the outermost repository.
    pub fn whole_place(&self) -> PathBuf {
        self.step.place()
    }

    /// The place of the top of its repository in the outermost one.
    pub fn repository_place(&self) -> PathBuf {
        self.step.upwards().find(|step| step.root).map(PathStep::place).unwrap_or_default()
    }

    /// Whether a draft differs from the commit here, or below.
    pub fn is_draft(&self) -> bool {
        self.step.is_draft
    }

    /// Whether it is in a directory, or anywhere below.
    pub fn is_below(&self, directory: &Self) -> bool {
        // The way to it mostly leads through that very directory.
        let is_on_the_way = self.step.upwards().any(|step| std::ptr::eq(step, &*directory.step));
        is_on_the_way || self.step.place().starts_with(directory.step.place())
    }

    /// The commit of the innermost repository.
    pub fn commit(&self) -> Result<digest::ObjectId, SnapshotError> {
        object_id(self.step.commit).map_err(SnapshotError::Git)
    }

    /// The identity of a directory's tree.
    pub fn tree(&self) -> TreeId {
        TreeId(self.step.id)
    }
}

/// A path relative to a directory, both relative to the same root.
fn relative(path: &Path, directory: &Path) -> PathBuf {
    let (mut path, mut directory) =
        (path.components().peekable(), directory.components().peekable());
    while path.peek().is_some() && path.peek() == directory.peek() {
        path.next();
        directory.next();
    }
    directory.map(|_| Component::ParentDir).chain(path).collect()
}

/// The known facts of the directories of a commit.
#[derive(Debug, Default)]
struct SameDirectories {
    /// Whether trees hold links or submodules, themselves or anywhere below.
    linked: RefCell<hashtable::HashMap<ObjectId, bool>>,
    /// The numbers of places, by the number of the directory around and the name in it.
    places: RefCell<HashMap<(u32, OsString), u32>>,
}

impl SameDirectories {
    /// Whether a directory holds links or submodules, itself or anywhere below.
    pub(super) fn is_linked(
        &self,
        step: &PathStep,
        read_tree: impl Fn(ObjectId) -> Result<Rc<TreeEntries>, SnapshotError>,
    ) -> Result<bool, SnapshotError> {
        if !step.plain.get() {
            let first = self.linked.borrow().is_empty();
            step.plain.set(!self.look_for_links(step.id, read_tree)?);
            if first && step.plain.get() {
                // Directories below it are not visited any more: it is plain as well.
                self.linked.take();
            }
        }
        Ok(!step.plain.get())
    }

    fn look_for_links(
        &self,
        root: ObjectId,
        read_tree: impl Fn(ObjectId) -> Result<Rc<TreeEntries>, SnapshotError>,
    ) -> Result<bool, SnapshotError> {
        let mut stack = vec![root];
        while let Some(&id) = stack.last() {
            if self.linked.borrow().contains_key(&id) {
                stack.pop();
                continue;
            }
            let entries = read_tree(id)?;
            let (mut linked, mut open) = (false, false);
            for TreeEntry { kind, id: below, .. } in entries.iter() {
                match kind {
                    EntryKind::Link | EntryKind::Commit => linked = true,
                    EntryKind::Tree => match self.linked.borrow().get(below) {
                        Some(known) => linked |= known,
                        None => {
                            stack.push(*below);
                            open = true;
                        }
                    },
                    EntryKind::Blob | EntryKind::BlobExecutable => {}
                }
            }
            if linked || !open {
                self.linked.borrow_mut().insert(id, linked);
            }
        }
        Ok(self.linked.borrow().get(&root).copied().unwrap_or(true))
    }

    /// The number of a directory's place: no other place has it.
    pub(super) fn number(&self, directory: &PathStep) -> u32 {
        let mut unknown = Vec::new();
        let mut number = 0;
        for step in directory.upwards().filter(|step| step.above.is_some()) {
            if let Some(known) = step.number.get() {
                number = known;
                break;
            }
            unknown.push(step);
        }
        let mut places = self.places.borrow_mut();
        for step in unknown.into_iter().rev() {
            let next = places.len() as u32 + 1;
            number = *places.entry((number, step.name.clone())).or_insert(next);
            step.number.set(Some(number));
        }
        number
    }
}
