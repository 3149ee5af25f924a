//! A commit of a repository, read from its objects: paths as in a checkout of it, and of its
//! submodules at the commits that it records.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use gix::ObjectId;
use gix::hashtable::HashMap;
use gix::objs::tree::EntryKind;

use super::repositories::{self, Repositories, object, tree_of};
use super::revision;
use super::same::SameDirectories;
use super::snapshot_error::SnapshotError;
use super::tree_path::{PathStep, TreeEntries, TreePath};
use super::{GitResult, from, object_id, top};
use ce_model::digest;

/// The greatest number of links that are followed.
const LINKS: usize = 40;

/// A commit, and the directory in it that paths are relative to.
#[derive(Debug)]
pub struct Snapshot {
    repositories: Rc<Repositories>,
    commit: ObjectId,
    directory: Rc<Path>,
    /// A submodule that is at another commit than the one that is recorded, and that other one.
    moved: Option<(PathBuf, ObjectId)>,
    /// Some of the trees that were read.
    trees: RefCell<HashMap<ObjectId, Rc<TreeEntries>>>,
    /// The small files that were read: most are the same word again.
    words: RefCell<HashMap<ObjectId, Vec<u8>>>,
    same: SameDirectories,
}

/// The number of trees kept in memory, besides those above the current one.
const TREES: usize = 4096;

/// The greatest size of a file that is kept in memory, in bytes.
const WORD: usize = 128;

impl Snapshot {
    /// Opens a revision of the repository that a directory is in, or is.
    ///
    /// # Errors
    ///
    /// Fails if there is no such revision, or the repository cannot be read.
    pub fn open(dir: &Path, rev: &str) -> Result<Self, SnapshotError> {
        let repositories =
            Repositories::open(dir).map_err(|source| SnapshotError::of_opening(dir, source))?;
        let repository = || repositories.task.git_dir().to_owned();
        let wrong = |source| SnapshotError::Revision {
            rev: rev.to_owned(),
            repository: repository(),
            source,
        };
        let commit = revision::commit(&repositories.task, dir, rev).map_err(wrong)?;
        let real = dir.canonicalize().map_err(|error| SnapshotError::Git(error.into()))?;
        let directory = top(&real).and_then(|top| real.strip_prefix(top).ok().map(Path::to_owned));
        let whole = Self::of(Rc::new(repositories), commit);
        Ok(Self { directory: directory.unwrap_or_default().into(), ..whole })
    }

    /// A commit of a repository, with paths relative to its top.
    pub(super) fn of(repositories: Rc<Repositories>, commit: ObjectId) -> Self {
        Self {
            repositories,
            commit,
            directory: PathBuf::new().into(),
            moved: None,
            trees: RefCell::default(),
            words: RefCell::default(),
            same: SameDirectories::default(),
        }
    }

    /// The same with a submodule at another commit, given by its place in the repository.
    ///
    /// # Errors
    ///
    /// Never fails for an id that Git has made.
    pub fn with(self, place: &Path, commit: &digest::ObjectId) -> Result<Self, SnapshotError> {
        let commit = from(commit).map_err(SnapshotError::Git)?;
        Ok(Self { moved: Some((place.to_owned(), commit)), ..self })
    }

    /// The commit.
    ///
    /// # Errors
    ///
    /// Never fails for an id that Git has made.
    pub fn commit(&self) -> Result<digest::ObjectId, SnapshotError> {
        object_id(self.commit).map_err(SnapshotError::Git)
    }

    /// Finds the entry with this path, following links.
    ///
    /// # Errors
    ///
    /// Fails if there is none, or Git's data cannot be read.
    pub fn find(&self, path: &Path) -> Result<TreePath, SnapshotError> {
        Ok(TreePath { step: self.way(path)?, directory: Rc::clone(&self.directory) })
    }

    /// Finds the entry with this name in a directory, following links.
    ///
    /// # Errors
    ///
    /// Fails if there is none, or Git's data cannot be read.
    pub fn entry(&self, directory: &TreePath, name: &OsStr) -> Result<TreePath, SnapshotError> {
        let step = self.follow(Rc::clone(&directory.step), name, &mut 0)?;
        Ok(TreePath { step, directory: Rc::clone(&self.directory) })
    }

    /// The innermost submodule that holds a path: its place in the repository, and its commit.
    pub(super) fn submodule(&self, path: &Path) -> Result<(PathBuf, ObjectId), SnapshotError> {
        let step = self.way(path)?;
        match step.upwards().find(|step| step.root) {
            Some(root) if root.above.is_some() => Ok((root.place(), root.commit)),
            _ => Err(SnapshotError::Own),
        }
    }

    /// Returns the commit of the submodule with this path, as the commit records it.
    ///
    /// # Errors
    ///
    /// Fails if there is none, or Git's data cannot be read.
    pub fn submodule_commit(&self, path: &Path) -> Result<digest::ObjectId, SnapshotError> {
        let name = path.file_name().ok_or(SnapshotError::NotASubmodule)?;
        let around = self.way(path.parent().unwrap_or(Path::new("")))?;
        match self.entry_of(&around, name)? {
            (EntryKind::Commit, id) => {
                let commit = self.commit_at(&around.place().join(name), id);
                object_id(commit).map_err(SnapshotError::Git)
            }
            _ => Err(SnapshotError::NotASubmodule),
        }
    }

    fn way(&self, path: &Path) -> Result<Rc<PathStep>, SnapshotError> {
        let root = PathStep::root(None, OsString::new(), self.tree(self.commit)?, self.commit);
        let mut here = Rc::new(root);
        let mut links = 0;
        for part in parts(&self.directory.join(path)) {
            here = self.follow(here, part, &mut links)?;
        }
        Ok(here)
    }

    /// Goes on to an entry of a directory; if that is a link, to where it leads.
    fn follow(
        &self,
        mut here: Rc<PathStep>,
        part: &OsStr,
        links: &mut usize,
    ) -> Result<Rc<PathStep>, SnapshotError> {
        let mut left = VecDeque::from([part.to_owned()]);
        while let Some(part) = left.pop_front() {
            here = match self.step(&here, &part)? {
                EntryTarget::PathStep(step) => step,
                EntryTarget::Link(target) => {
                    *links += 1;
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
        Ok(here)
    }

    fn step(&self, here: &Rc<PathStep>, part: &OsStr) -> Result<EntryTarget, SnapshotError> {
        if part == ".." {
            let above = here.above.clone().ok_or_else(|| SnapshotError::Outside("..".into()))?;
            return Ok(EntryTarget::PathStep(above));
        }
        let (kind, id) = self.entry_of(here, part)?;
        let (above, name) = (Rc::clone(here), part.to_owned());
        Ok(EntryTarget::PathStep(Rc::new(match kind {
            EntryKind::Link => {
                let target = self.blob(id).map_err(SnapshotError::Git)?;
                return Ok(EntryTarget::Link(OsString::from_vec(target).into()));
            }
            EntryKind::Commit => {
                let commit = self.commit_at(&here.place().join(part), id);
                PathStep::root(Some(above), name, self.tree(commit)?, commit)
            }
            kind => PathStep::entry(above, name, kind, id),
        })))
    }

    /// The entry with this name in a directory.
    fn entry_of(
        &self,
        here: &PathStep,
        name: &OsStr,
    ) -> Result<(EntryKind, ObjectId), SnapshotError> {
        if here.kind != EntryKind::Tree {
            return Err(SnapshotError::NotADirectory);
        }
        let entries = self.entries(here)?;
        let at = entries.binary_search_by(|(other, ..)| other.as_os_str().cmp(name));
        let (_, kind, id) = entries[at.map_err(|_| SnapshotError::Missing)?];
        Ok((kind, id))
    }

    /// The commit of the submodule at this place, for which this one is recorded.
    fn commit_at(&self, place: &Path, recorded: ObjectId) -> ObjectId {
        let moved = self.moved.as_ref().filter(|(moved, _)| *moved == place);
        moved.map_or(recorded, |(_, commit)| *commit)
    }

    /// Whether a directory holds links or submodules, itself or anywhere below. One that holds none
    /// means the same wherever it is.
    ///
    /// # Errors
    ///
    /// Fails if Git's data cannot be read.
    pub fn is_linked(&self, directory: &TreePath) -> Result<bool, SnapshotError> {
        self.same.is_linked(&directory.step, |id| self.read_tree(id))
    }

    /// The number of a directory's place: no other place has it.
    pub fn number(&self, directory: &TreePath) -> u32 {
        self.same.number(&directory.step)
    }

    /// Lists the names in a directory, in any order.
    ///
    /// # Errors
    ///
    /// Fails if Git's data cannot be read.
    pub fn list(&self, directory: &TreePath) -> Result<Vec<OsString>, SnapshotError> {
        let entries = self.entries(&directory.step)?;
        Ok(entries.iter().map(|(name, ..)| name.clone()).collect())
    }

    /// Returns the contents of a file.
    ///
    /// # Errors
    ///
    /// Fails if Git's data cannot be read.
    pub fn read(&self, file: &TreePath) -> Result<Vec<u8>, SnapshotError> {
        self.blob(file.step.id).map_err(SnapshotError::Git)
    }

    /// Returns the entries of the current directory.
    fn entries(&self, step: &PathStep) -> Result<Rc<TreeEntries>, SnapshotError> {
        if let Some(known) = step.entries.get() {
            return Ok(Rc::clone(known));
        }
        let entries = self.read_tree(step.id)?;
        Ok(Rc::clone(step.entries.get_or_init(|| entries)))
    }

    fn read_tree(&self, id: ObjectId) -> Result<Rc<TreeEntries>, SnapshotError> {
        if let Some(known) = self.trees.borrow().get(&id) {
            return Ok(Rc::clone(known));
        }
        let read = || -> GitResult<TreeEntries> {
            let repository = self.repositories.needed(id)?;
            let tree = object(repository, id)?.try_into_tree()?;
            let entry = |entry: gix::object::tree::EntryRef<'_, '_>| {
                let name = OsStr::from_bytes(entry.filename()).to_owned();
                (name, entry.kind(), entry.object_id())
            };
            let mut entries: TreeEntries =
                tree.iter().map(|it| it.map(entry)).collect::<Result<_, _>>()?;
            // Git sorts directories as if their names ended with a slash.
            entries.sort_unstable_by(|(name, ..), (other, ..)| name.cmp(other));
            Ok(entries)
        };
        let entries = Rc::new(read().map_err(SnapshotError::Git)?);
        let mut trees = self.trees.borrow_mut();
        if trees.len() < TREES {
            trees.insert(id, Rc::clone(&entries));
        }
        Ok(entries)
    }

    fn blob(&self, id: ObjectId) -> GitResult<Vec<u8>> {
        if let Some(word) = self.words.borrow().get(&id) {
            return Ok(word.clone());
        }
        let contents = repositories::blob(self.repositories.needed(id)?, id)?;
        if contents.len() <= WORD {
            self.words.borrow_mut().insert(id, contents.clone());
        }
        Ok(contents)
    }

    /// The tree of a commit of this repository or a submodule.
    fn tree(&self, commit: ObjectId) -> Result<ObjectId, SnapshotError> {
        let read = || -> GitResult<Option<ObjectId>> {
            let Some(repository) = self.repositories.having(commit)? else { return Ok(None) };
            Ok(Some(tree_of(repository, commit)?))
        };
        let missing = || SnapshotError::NotCloned {
            commit: commit.to_hex_with_len(digest::SHORT).to_string(),
        };
        read().map_err(SnapshotError::Git)?.ok_or_else(missing)
    }
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
