//! A task: its workflow, and everything that its nodes refer to.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{
    Computation, InputId, Node, NodeId, TaskFile, TaskFileId, TaskResources, TaskTree, Workflow,
};
use crate::digest::ObjectId;
use crate::task::name::{InputName, TaskName};
use crate::task::sweep::Sweep;

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
    /// The names that sweeps bind. In a value, their numbers follow those of the inputs.
    pub bound: Vec<InputName>,
    /// The rules of sweeps, and of nodes `points`.
    pub sweeps: Vec<Sweep>,
    /// The computations that the workflow uses.
    pub computations: Vec<Computation>,
    /// The resources that nodes of computations ask for.
    pub resources: TaskResources,
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
    /// The names of the outputs that a node passes up, in order.
    pub fn passed_names(&self, node: NodeId) -> Vec<String> {
        let node = &self.workflow[node];
        let made = node.made(self);
        node.numbers().map(|number| made[usize::from(number)].clone()).collect()
    }

    /// Returns the inputs whose texts values or resources of nodes depend on, as often as they do.
    pub fn free_names(&self) -> impl Iterator<Item = InputId> {
        let nodes = self.workflow.nodes().flat_map(|(_, node)| match node {
            Node::Literal(name) => name.names().collect(),
            Node::Member { path, .. } => path.names().collect(),
            _ => Vec::new(),
        });
        let names = nodes.chain(self.files.iter().flat_map(|file| file.path.names()));
        let names = names.chain(self.trees.iter().flat_map(|tree| tree.name.names()));
        let names = names.chain(self.resources.lines().flat_map(|line| line.amount.names()));
        names.filter(|number| *number < self.inputs.len()).map(InputId::at)
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
                Node::Computation { computation, .. } => {
                    computation.open.iter().flat_map(|name| name.unknown()).collect()
                }
                Node::File(_)
                | Node::Input(_)
                | Node::Bound(_)
                | Node::Points(_)
                | Node::Member { .. }
                | Node::Sweep { .. } => Vec::new(),
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
            && self.bound == other.bound
            && self.sweeps == other.sweeps
            && files(self) == files(other)
            && self.trees == other.trees
            && self.workflow == other.workflow
            && trees(self) == trees(other)
    }
}
