//! The workflow: an expression tree, kept as a graph in which equal subtrees are one node.
//!
//! Children precede their readers, so a pass over [`Workflow::nodes`] visits every input of a node
//! before the node. A tree of 2^40 paths over 40 different subtrees has 40 nodes. Knows nothing of
//! files.

mod parts;

use std::collections::HashMap;
use std::ops::Index;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use self::parts::{
    Computation, FileContents, MEMBER_INPUTS, RecordedTree, TREE_INPUTS, TREE_OUTPUTS, TaskFile,
    TaskTree, TreeCommit,
};
use crate::digest::ObjectId;
use crate::task::name::{InputName, MemberPath, StorageName, TaskName};
use crate::task::slice::Slice;
use crate::task::template::Template;

/// The directory of a task that holds its computations.
pub const LIBRARY: &str = "computations";

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[derive(serde::Serialize, serde::Deserialize)]
        pub struct $name(u32);

        impl $name {
            /// The id of the thing at this place.
            pub fn at(index: usize) -> Self {
                debug_assert!(u32::try_from(index).is_ok(), "fewer than 2^32 things");
                Self(index as u32)
            }

            /// The place of the thing with this id.
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    )+};
}
pub(crate) use ids;

ids! {
    /// A node of a [`Workflow`].
    NodeId
    /// A computation of a [`Task`].
    ComputationId
    /// An input of a [`Task`].
    InputId
    /// A file of a [`Task`] itself.
    TaskFileId
    /// A Git tree that a [`Task`] reads.
    TaskTreeId
}

/// A whole program: a workflow and the inputs that all of it may read.
#[derive(Debug, Serialize, Deserialize)]
pub struct Task {
    /// The name of the directory that holds the task.
    pub name: TaskName,
    /// The commit of the task's repository.
    pub commit: ObjectId,
    /// The path of the task in its repository; empty if the task is the whole repository.
    pub place: String,
    /// The version that it was loaded from.
    pub loaded_from: LoadedFrom,
    /// Its files with uncommitted changes, relative to the task.
    pub changed: Vec<PathBuf>,
    /// The symbolic names of the task's inputs, in the order in which they are given.
    pub inputs: Vec<InputName>,
    /// The default of each input, if it has one.
    pub defaults: Vec<Option<TaskFileId>>,
    /// The files of the task that are values: nodes and defaults of inputs.
    pub files: Vec<TaskFile>,
    /// The Git trees that are values.
    pub trees: Vec<TaskTree>,
    /// The computations that the workflow uses.
    pub computations: Vec<Computation>,
    /// The expression.
    pub workflow: Workflow,
}

/// The version of its repository that a task is loaded from. The commit is [`Task::commit`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LoadedFrom {
    /// The work tree, of which HEAD is the commit.
    WorkTree(Uncommitted),
    /// The commit; with a submodule at another commit than it records, given by its place, if there is one.
    Commit(Option<(PathBuf, ObjectId)>),
}

/// The treatment of uncommitted changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Uncommitted {
    /// A changed computation is an error: the commit in the names of its results would be wrong.
    Refuse,
    /// A changed computation is identified by its current tree instead of a commit.
    Evaluate,
    /// They are reported.
    Warn,
    /// They are not looked for: only the expression matters.
    Ignore,
}

impl Task {
    /// Returns the inputs whose texts values of nodes depend on, as often as they do.
    pub fn free_names(&self) -> impl Iterator<Item = InputId> {
        let nodes = self.workflow.nodes().flat_map(|(_, node)| match node {
            Node::Literal(name) => name.names().collect(),
            Node::Member { path, .. } => path.names().collect(),
            _ => Vec::new(),
        });
        let names = nodes.chain(self.files.iter().flat_map(|file| file.path.names()));
        names.chain(self.trees.iter().flat_map(|tree| tree.name.names())).map(InputId::at)
    }

    /// Returns the names in braces that are no names of inputs, and the nodes with these values. They stay as
    /// they are, so nothing is wrong with those in the path of a file that exists.
    pub fn unknown_names(&self) -> impl Iterator<Item = (NodeId, &str)> {
        self.workflow.nodes().flat_map(|(id, node)| {
            let path = |file: &TaskFileId| &self.files[file.index()].path;
            let names: Vec<&str> = match node {
                Node::Literal(name) => name.unknown().collect(),
                Node::Tree { tree, .. } => self.trees[tree.index()].name.unknown().collect(),
                Node::Member { path, .. } if path.is_open() => path.unknown().collect(),
                Node::File(file) if path(file).is_open() => path(file).unknown().collect(),
                Node::File(_) | Node::Input(_) | Node::Member { .. } | Node::Computation { .. } => {
                    Vec::new()
                }
            };
            names.into_iter().map(move |name| (id, name))
        })
    }

    /// Whether no value depends on the text of an input, so that the task can be evaluated.
    pub fn is_bound(&self) -> bool {
        self.free_names().next().is_none()
    }

    /// Returns the inputs that no node of the workflow reads.
    pub fn unused_inputs(&self) -> impl Iterator<Item = &InputName> {
        let mut used = vec![false; self.inputs.len()];
        for (_, node) in self.workflow.nodes() {
            if let Node::Input(id) = node {
                used[id.index()] = true;
            }
        }
        self.free_names().for_each(|id| used[id.index()] = true);
        self.inputs.iter().zip(used).filter_map(|(name, used)| (!used).then_some(name))
    }

    /// Whether another version of the task has the same expression, and the same trees of all
    /// computations: from the same inputs it makes the same outputs.
    pub fn means_the_same(&self, other: &Self) -> bool {
        let trees = |task: &Self| {
            let trees = task.computations.iter().map(|it| (it.name.clone(), it.tree.clone()));
            trees.collect::<Vec<_>>()
        };
        let files = |task: &Self| {
            let files = task.files.iter().map(|it| (it.path.clone(), it.contents.clone()));
            files.collect::<Vec<_>>()
        };
        self.inputs == other.inputs
            && files(self) == files(other)
            && self.trees == other.trees
            && self.workflow == other.workflow
            && trees(self) == trees(other)
    }
}

/// An expression: where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Node {
    /// Outputs of a computation.
    Computation {
        /// The computation.
        computation: ComputationId,
        /// Its inputs, in order, without gap or overlap.
        inputs: Box<[Argument]>,
        /// The outputs that are passed up.
        outputs: Slice,
    },
    /// An input of the task.
    Input(InputId),
    /// A file that is in the storage.
    Literal(Template<StorageName>),
    /// A file of the task itself.
    File(TaskFileId),
    /// A Git repository at a commit.
    Tree {
        /// The repository, and the path in it.
        tree: TaskTreeId,
        /// The revision, unless it is the recorded one.
        inputs: Box<[Argument]>,
        /// The values that are passed up: 0 is the directory, 1 its commit's id.
        outputs: Slice,
    },
    /// A file or directory within a directory.
    Member {
        /// The path in the directory.
        path: Template<MemberPath>,
        /// The directory: one.
        inputs: Box<[Argument]>,
    },
}

/// A sub-workflow in its place among a reader's inputs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Argument {
    /// The label, for humans.
    pub label: Box<str>,
    /// The first input of the reader that it fills.
    pub first: u8,
    /// The last input of the reader that it fills.
    pub last: u8,
    /// The sub-workflow.
    pub node: NodeId,
}

impl Node {
    /// The number of files that the node passes up.
    pub fn width(&self) -> usize {
        self.slice().map_or(1, Slice::len)
    }

    /// The outputs that the node passes up, if it has a choice.
    pub const fn slice(&self) -> Option<&Slice> {
        match self {
            Self::Computation { outputs, .. } | Self::Tree { outputs, .. } => Some(outputs),
            Self::Input(_) | Self::Literal(_) | Self::File(_) | Self::Member { .. } => None,
        }
    }

    /// The numbers of the outputs that the node passes up, in order.
    pub fn numbers(&self) -> impl Iterator<Item = u8> {
        let one = self.slice().is_none().then_some(0);
        self.slice().into_iter().flat_map(Slice::numbers).chain(one)
    }

    /// The sub-workflows that the node reads.
    pub fn inputs(&self) -> &[Argument] {
        match self {
            Self::Computation { inputs, .. }
            | Self::Tree { inputs, .. }
            | Self::Member { inputs, .. } => inputs,
            Self::Input(_) | Self::Literal(_) | Self::File(_) => &[],
        }
    }
}

/// An expression tree in which equal subtrees are one node.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workflow {
    nodes: Vec<Node>,
    root: NodeId,
}

impl Workflow {
    /// The node that stands for the whole expression.
    pub const fn root(&self) -> NodeId {
        self.root
    }

    /// All nodes, each after its inputs.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = (NodeId, &Node)> {
        self.nodes.iter().enumerate().map(|(at, node)| (NodeId::at(at), node))
    }
}

impl Index<NodeId> for Workflow {
    type Output = Node;

    fn index(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }
}

/// Grows a [`Workflow`] from its leaves.
#[derive(Default)]
pub struct Builder {
    nodes: Vec<Node>,
    known: HashMap<NodeKey, NodeId>,
}

/// The key of equal expressions: their structure. Labels are for humans and do not count.
#[derive(PartialEq, Eq, Hash)]
enum NodeKey {
    Computation(ComputationId, Box<[NodeId]>, Slice),
    Input(InputId),
    Literal(Template<StorageName>),
    File(TaskFileId),
    Tree(TaskTreeId, Box<[NodeId]>, Slice),
    Member(Template<MemberPath>, Box<[NodeId]>),
}

impl Builder {
    /// Returns the node equal to this one, which becomes part of the workflow if it is the first.
    ///
    /// The nodes that it reads are ids that this builder gave.
    pub fn intern(&mut self, node: Node) -> NodeId {
        let read = || node.inputs().iter().map(|argument| argument.node).collect();
        let key = match &node {
            Node::Computation { computation, outputs, .. } => {
                NodeKey::Computation(*computation, read(), outputs.clone())
            }
            Node::Tree { tree, outputs, .. } => NodeKey::Tree(*tree, read(), outputs.clone()),
            Node::Member { path, .. } => NodeKey::Member(path.clone(), read()),
            Node::Input(input) => NodeKey::Input(*input),
            Node::Literal(name) => NodeKey::Literal(name.clone()),
            Node::File(file) => NodeKey::File(*file),
        };
        let next = NodeId::at(self.nodes.len());
        let id = *self.known.entry(key).or_insert(next);
        if id == next {
            self.nodes.push(node);
        }
        id
    }

    /// Ends the growth: the expression is the one at `root`.
    pub fn finish(self, root: NodeId) -> Workflow {
        Workflow { nodes: self.nodes, root }
    }
}

impl Index<NodeId> for Builder {
    type Output = Node;

    fn index(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(label: &str, node: NodeId, slice: &str) -> Node {
        Node::Computation {
            computation: ComputationId::at(0),
            inputs: [Argument { label: label.into(), first: 0, last: 0, node }].into(),
            outputs: Slice::parse([slice]).0,
        }
    }

    #[test]
    fn equal_expressions_are_one_node_whatever_their_labels() {
        let mut builder = Builder::default();
        let x = builder.intern(Node::Input(InputId::at(0)));
        assert_eq!(builder.intern(Node::Input(InputId::at(0))), x);
        let one = builder.intern(call("a", x, "0"));
        assert_eq!(builder.intern(call("b", x, "0")), one);
        let other = builder.intern(call("a", x, "00"));
        assert_ne!(other, one, "it prints differently");
        assert_eq!(builder.finish(one).nodes().len(), 3);
    }
}
