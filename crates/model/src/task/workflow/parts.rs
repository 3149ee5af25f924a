//! The parts that the nodes of a workflow refer to: computations, files of the task, and Git trees.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::digest::{DIRTY, ObjectId, shown_version};
use crate::task::access::Access;
use crate::task::name::{ComputationName, TaskPath, TreeName};
use crate::task::template::Template;
use crate::task::workflow::{ComputationId, Task};

/// A file in the repository of a task, at the commit of the task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskFile {
    /// Its path, relative to the task.
    pub path: Template<TaskPath>,
    /// Its contents.
    pub contents: FileContents,
}

/// The location of the contents of a task's file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileContents {
    /// In the commit. Whatever filters make of them in a work tree does not count.
    Blob(ObjectId),
    /// In the work tree: the file has changes that are not committed.
    Uncommitted(PathBuf),
    /// Unknown, since the path has free names.
    Unbound,
}

/// A Git repository, or a directory in it, that the task reads at some commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskTree {
    /// The repository, and the path in it.
    pub name: Template<TreeName>,
    /// Which commit it is.
    pub commit: TreeCommit,
}

/// The commit of a repository that a task reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TreeCommit {
    /// The one that the commit of the task records.
    Recorded(RecordedTree),
    /// The recorded one, which is not known as long as the name of the tree is open.
    Unbound,
    /// The one that a value names: the revision.
    OfRevision,
}

/// The commit of a repository that the commit of a task records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedTree {
    /// The commit.
    pub commit: ObjectId,
    /// The directory as it stands, and its Git tree, if that has changes that are not committed.
    pub uncommitted: Option<(PathBuf, ObjectId)>,
}

impl RecordedTree {
    /// Its version in full: the commit, or the tree of uncommitted changes.
    pub fn version(&self) -> String {
        match &self.uncommitted {
            Some((_, tree)) => format!("{DIRTY}{}", tree.full()),
            None => self.commit.full().to_owned(),
        }
    }
}

/// The outputs of a Git tree: the directory, and the id of its commit.
pub const TREE_OUTPUTS: [&str; 2] = ["directory", "commit"];

/// The symbolic name of what a node passes up that is one value, such as an input or a member.
pub const VALUE: &str = "value";

/// The inputs of a member.
pub const MEMBER_INPUTS: [&str; 1] = ["directory"];

/// The inputs of a Git tree, unless it is at the recorded commit.
pub const TREE_INPUTS: [&str; 1] = ["revision"];

/// The computation of a node, as its name is written.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NamedComputation {
    /// The computation. If the name has free names, the one at the first point: all others have the same inputs and outputs.
    pub first: ComputationId,
    /// The name, if it has free names. Sweeps bind all of them, and the task has a computation for each of their points.
    pub open: Option<Box<Template<ComputationName>>>,
}

impl NamedComputation {
    /// Its name as it is written.
    pub fn written<'a>(&'a self, task: &'a Task) -> &'a str {
        match &self.open {
            Some(name) => name.as_str(),
            None => task.computations[self.first.index()].name.as_str(),
        }
    }

    /// The numbers of the names that it depends on.
    pub fn names(&self) -> impl Iterator<Item = usize> {
        self.open.iter().flat_map(|name| name.names())
    }
}

impl From<ComputationId> for NamedComputation {
    fn from(first: ComputationId) -> Self {
        Self { first, open: None }
    }
}

/// A named executable that turns inputs into outputs, at one commit.
#[derive(Debug, Serialize, Deserialize)]
pub struct Computation {
    /// Its name in the library.
    pub name: ComputationName,
    /// The commit of the repository that holds it.
    pub commit: ObjectId,
    /// The Git tree of its directory.
    pub tree: ObjectId,
    /// The tree is not the commit's: the directory has changes that are not committed.
    pub dirty: bool,
    /// The symbolic names of its inputs.
    pub inputs: Vec<String>,
    /// The symbolic names of its outputs.
    pub outputs: Vec<String>,
    /// Its grants of access beyond its own tree.
    pub access: Access,
    /// The directory, if it is checked out.
    pub checked_out: Option<PathBuf>,
}

impl Computation {
    /// Its version as in names: the commit, or the tree of uncommitted changes.
    pub fn version(&self) -> String {
        shown_version(&self.commit, &self.tree, self.dirty)
    }
}
