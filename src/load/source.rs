//! Where a task is read from: the work tree, or a commit.
//!
//! Both tell the same of the same task. All paths are relative to the task.

use std::ffi::OsString;
use std::fmt::Debug;
use std::path::{Path, PathBuf};

use super::problem::Fault;
use crate::digest::ObjectId;
use crate::git::Changes;

/// The greatest size of a file that is read whole, in bytes.
pub(super) const MOST: u64 = 1 << 20;

/// What tells a directory from every other one, however it is reached.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Identity {
    /// Device and inode of a directory in a work tree.
    Inode(u64, u64),
    /// The place of a directory in a commit.
    Place(PathBuf),
    /// The Git tree of a directory that holds no links, and so means the same wherever it is.
    Tree(ObjectId),
}

/// What has some path.
#[derive(Debug)]
pub(super) enum Found {
    /// A directory.
    Directory {
        /// Where it really is.
        place: PathBuf,
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
pub(super) struct Version {
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
pub(super) trait Source: Debug {
    /// Returns the commit of the task.
    fn commit(&mut self) -> Result<ObjectId, Fault>;

    /// Tells what has this path, following links.
    fn find(&mut self, path: &Path) -> Result<Found, Fault>;

    /// Lists the names in a directory, in any order.
    fn list(&mut self, dir: &Path) -> Result<Vec<OsString>, Fault>;

    /// Returns the contents of a file of at most [`MOST`] bytes, following links.
    fn read(&mut self, path: &Path) -> Result<Vec<u8>, Fault>;

    /// Returns the version of the computation in a directory.
    fn version(&mut self, dir: &Path) -> Result<Version, Fault>;

    /// Returns what of all that was read no commit records, and what is ignored beside it.
    fn changes(&mut self) -> Result<Changes, Fault>;
}
