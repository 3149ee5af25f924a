//! Paths in a commit, with the objects there.

use std::cell::{Cell, OnceCell};
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use gix::ObjectId;
use gix::objs::tree::EntryKind;

use super::object_id;
use super::snapshot_error::SnapshotError;
use ce_model::digest;

/// The entries of a tree, sorted by name.
pub(super) type TreeEntries = Vec<(OsString, EntryKind, ObjectId)>;

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
    /// The entries in it, once they were read.
    pub(super) entries: OnceCell<Rc<TreeEntries>>,
    /// It is known to hold neither links nor submodules, itself or anywhere below.
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
            entries: OnceCell::new(),
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
    pub(super) fn upwards(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |step| step.above.as_deref())
    }

    /// Its place in the task's repository.
    pub(super) fn place(&self) -> PathBuf {
        path(self.upwards().filter(|step| step.above.is_some()))
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
    pub(super) step: Rc<PathStep>,
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
        path(self.step.upwards().take_while(|step| !step.root))
    }

    /// Whether it is in a directory, or anywhere below.
    pub fn is_below(&self, directory: &Self) -> bool {
        self.step.place().starts_with(directory.step.place())
    }

    /// The commit of the innermost repository.
    ///
    /// # Errors
    ///
    /// Never fails for an id that Git has made.
    pub fn commit(&self) -> Result<digest::ObjectId, SnapshotError> {
        object_id(self.step.commit).map_err(SnapshotError::Git)
    }

    /// The identity of a directory's tree.
    pub fn tree(&self) -> TreeId {
        TreeId(self.step.id)
    }

    /// The id of the tree or blob.
    ///
    /// # Errors
    ///
    /// Never fails for an id that Git has made.
    pub fn id(&self) -> Result<digest::ObjectId, SnapshotError> {
        object_id(self.step.id).map_err(SnapshotError::Git)
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
