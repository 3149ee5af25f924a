//! Where a task is read from: the work tree, or a commit.
//!
//! Both tell the same of the same task. They hand out directories, so that no path is ever gone from
//! its beginning, however deep a workflow is.

use std::ffi::OsString;
use std::path::PathBuf;

use super::problems::LoadFault;
use crate::digest::ObjectId;
use crate::git::{Changes, TreeId};
use crate::task::workflow::FileContents;

/// The greatest size of a file that is read whole, in bytes.
pub(super) const MOST: u64 = 1 << 20;

/// What tells a directory from every other one, however it is reached.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Identity {
    /// Device and inode of a directory in a work tree.
    Inode(u64, u64),
    /// The number of the place of a directory in a commit.
    Place(u32),
    /// The Git tree of a directory that holds no links, and so means the same wherever it is.
    Tree(TreeId),
}

/// What has some name.
#[derive(Debug)]
pub(super) enum Located<D> {
    /// A directory.
    Directory {
        /// The directory.
        dir: D,
        /// Which it is.
        identity: Identity,
        /// It is not in the task's repository.
        outside: bool,
    },
    /// Anything else.
    File {
        /// It is a plain file.
        plain: bool,
        /// It may be executed.
        executable: bool,
    },
}

/// The version of a computation's directory.
#[derive(Debug)]
pub(super) struct DirectoryVersion {
    /// The commit of the innermost repository.
    pub(super) commit: ObjectId,
    /// The tree of the directory.
    pub(super) tree: ObjectId,
    /// The tree is not the commit's.
    pub(super) dirty: bool,
    /// The directory, if it is checked out.
    pub(super) checked_out: Option<PathBuf>,
}

/// What a task is read from.
pub(super) trait TaskSource {
    /// A directory, and how it was reached.
    type Dir: Clone;

    /// Returns the commit of the task.
    fn commit(&mut self) -> Result<ObjectId, LoadFault>;

    /// Returns the directory of the task.
    fn task(&mut self) -> Result<Self::Dir, LoadFault>;

    /// Tells where a directory really is, relative to the task.
    fn place(&self, dir: &Self::Dir) -> PathBuf;

    /// Tells what has this name in a directory, following links.
    fn find(&mut self, dir: &Self::Dir, name: &str) -> Result<Located<Self::Dir>, LoadFault>;

    /// Whether what has this name in a directory, following links, is in that directory.
    fn holds(&mut self, dir: &Self::Dir, name: &str) -> Result<bool, LoadFault>;

    /// Lists the names in a directory, in any order.
    fn list(&mut self, dir: &Self::Dir) -> Result<Vec<OsString>, LoadFault>;

    /// Returns the contents of a file of at most [`MOST`] bytes, following links.
    fn read(&mut self, dir: &Self::Dir, name: &str) -> Result<Vec<u8>, LoadFault>;

    /// Returns the version of the computation in a directory.
    fn version(&mut self, dir: &Self::Dir) -> Result<DirectoryVersion, LoadFault>;

    /// Returns where the contents of the file are that has this name in a directory, following links.
    fn contents(&mut self, dir: &Self::Dir, name: &str) -> Result<FileContents, LoadFault>;

    /// Returns what of all that was read no commit records, and what is ignored beside it.
    fn changes(&mut self) -> Result<Changes, LoadFault>;

    /// Enters a directory.
    fn enter(&mut self, dir: &Self::Dir, name: &str) -> Result<Self::Dir, LoadFault> {
        match self.find(dir, name)? {
            Located::Directory { dir, outside: false, .. } => Ok(dir),
            Located::Directory { dir, .. } => Err(LoadFault::Outside(self.place(&dir))),
            Located::File { .. } => Err(LoadFault::NotADirectory),
        }
    }
}
