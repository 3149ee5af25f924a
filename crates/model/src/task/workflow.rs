//! The workflow: an expression tree, kept as a graph in which equal subtrees are one node.
//!
//! Children precede their readers, so a pass over [`Workflow::nodes`] visits every input of a node
//! before the node. A tree of 2^40 paths over 40 different subtrees has 40 nodes. Knows nothing of
//! files.

use std::collections::HashMap;
use std::ops::Index;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{NamedComputation, TREE_OUTPUTS, Task, TaskFile, TaskTree, VALUE};
use crate::name::{MemberPath, NameError, StorageName, WrittenText};
use crate::resources::ResourceLines;
use crate::slice::Slice;
use crate::sweep::{BoundId, SWEEP_OUTPUTS, Sweep};
use crate::template::Template;

/// The file of a task that is the text of its workflow.
pub const WORKFLOW_TEXT: &str = "workflow.ce";

/// The directory of a task that holds its computations.
pub const LIBRARY: &str = "computations";

/// The file of a computation that says that its outputs differ each time.
pub const NONDETERMINISTIC: &str = "nondeterministic";

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
    /// The rules of a sweep or of a node `points` of a [`Task`].
    SweepId
}

/// An expression: where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Node {
    /// Outputs of a computation.
    Computation {
        computation: NamedComputation,
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
    /// A text that the workflow holds: the contents of a file.
    Text(Template<WrittenText>),
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
    /// The values of several expressions.
    All {
        /// The expressions: each is in the place of the values that it passes up.
        inputs: Box<[Argument]>,
    },
    /// A name that a sweep binds: its text at each point, as a file.
    Bound(BoundId),
    /// The product of factors, as a file.
    Points(SweepId),
    /// A sub-workflow that is evaluated for each point.
    Sweep {
        /// Its rules.
        sweep: SweepId,
        /// The body, and the points if they are computed.
        inputs: Box<[Argument]>,
        /// The values that are passed up: 0 is the table, 1 the directory.
        outputs: Slice,
    },
}

/// A sub-workflow in its place among a reader's inputs.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
        match self {
            Self::All { inputs } => inputs.last().map_or(0, |it| usize::from(it.last) + 1),
            _ => self.slice().map_or(1, Slice::len),
        }
    }

    /// The outputs that the node passes up, if it has a choice.
    pub const fn slice(&self) -> Option<&Slice> {
        match self {
            Self::Computation { outputs, .. }
            | Self::Tree { outputs, .. }
            | Self::Sweep { outputs, .. } => Some(outputs),
            Self::Input(_)
            | Self::Literal(_)
            | Self::File(_)
            | Self::Text(_)
            | Self::Member { .. }
            | Self::All { .. }
            | Self::Bound(_)
            | Self::Points(_) => None,
        }
    }

    /// The numbers of the outputs that the node passes up, in order. The outputs of a node `ALL` have the numbers of its
    /// inputs.
    pub fn numbers(&self) -> impl Iterator<Item = u8> {
        let whole = if self.slice().is_none() { self.width() as u8 } else { 0 };
        self.slice().into_iter().flat_map(Slice::numbers).chain(0..whole)
    }

    /// The names of all values that it makes, by number; the name of a directory may end with a slash. `outputs` has the outputs
    /// of computations. A node `ALL` makes nothing itself: see [`origins`].
    pub fn made<'a>(&self, outputs: impl Fn(ComputationId) -> &'a [String]) -> Vec<&'a str> {
        match self {
            Self::Computation { computation, .. } => {
                outputs(computation.first).iter().map(String::as_str).collect()
            }
            Self::Tree { .. } => TREE_OUTPUTS.to_vec(),
            Self::Sweep { .. } => SWEEP_OUTPUTS.to_vec(),
            Self::All { .. } => Vec::new(),
            Self::Input(_)
            | Self::Literal(_)
            | Self::File(_)
            | Self::Text(_)
            | Self::Member { .. }
            | Self::Bound(_)
            | Self::Points(_) => vec![VALUE],
        }
    }

    /// The sub-workflows that the node reads.
    pub fn inputs(&self) -> &[Argument] {
        match self {
            Self::Computation { inputs, .. }
            | Self::Tree { inputs, .. }
            | Self::Member { inputs, .. }
            | Self::All { inputs, .. }
            | Self::Sweep { inputs, .. } => inputs,
            Self::Input(_)
            | Self::Literal(_)
            | Self::File(_)
            | Self::Text(_)
            | Self::Bound(_)
            | Self::Points(_) => &[],
        }
    }

    /// The sub-workflows that the node reads, to be changed.
    pub fn inputs_mut(&mut self) -> &mut [Argument] {
        match self {
            Self::Computation { inputs, .. }
            | Self::Tree { inputs, .. }
            | Self::Member { inputs, .. }
            | Self::All { inputs, .. }
            | Self::Sweep { inputs, .. } => inputs,
            Self::Input(_)
            | Self::Literal(_)
            | Self::File(_)
            | Self::Text(_)
            | Self::Bound(_)
            | Self::Points(_) => &mut [],
        }
    }

    /// Returns the node with new values, and the same inputs.
    ///
    /// # Errors
    ///
    /// Fails if one of its values has no new one.
    pub fn with_values<N: NewValues>(self, new: &mut N) -> Result<Self, N::Missing> {
        Ok(match self {
            Self::Input(input) => new.input(input),
            Self::Literal(name) => Self::Literal(new.value(name)?),
            Self::File(file) => Self::File(new.file(file)?),
            Self::Text(text) => Self::Text(new.value(text)?),
            Self::Tree { tree, inputs, outputs } => {
                Self::Tree { tree: new.tree(tree)?, inputs, outputs }
            }
            Self::Member { path, inputs } => Self::Member { path: new.value(path)?, inputs },
            Self::Computation { mut computation, inputs, outputs } => {
                if let Some(name) = computation.open {
                    computation.open = Some(Box::new(new.value(*name)?));
                }
                Self::Computation { computation, inputs, outputs }
            }
            Self::All { .. } | Self::Bound(_) | Self::Points(_) | Self::Sweep { .. } => self,
        })
    }
}

/// The values that nodes get when the names in them are bound, or get other numbers.
pub trait NewValues {
    /// The reason why a value has no new one.
    type Missing;

    /// Returns the new value in which names may stand.
    fn value<T>(&mut self, value: Template<T>) -> Result<Template<T>, Self::Missing>
    where
        T: AsRef<str> + FromStr<Err = NameError>;

    /// Returns the id of the file with the new path.
    fn file(&mut self, file: TaskFileId) -> Result<TaskFileId, Self::Missing>;

    /// Returns the id of the tree with the new name.
    fn tree(&mut self, tree: TaskTreeId) -> Result<TaskTreeId, Self::Missing>;

    /// Returns the node that takes the place of an input.
    fn input(&mut self, input: InputId) -> Node;
}

/// Returns where each value that a node passes up comes from: the node that makes it, and its number there.
pub fn origins<W: Index<NodeId, Output = Node>>(
    nodes: &W,
    node: NodeId,
) -> impl Iterator<Item = (NodeId, u8)> {
    nodes[node].numbers().map(move |number| {
        let mut origin = (node, number);
        // A loop: texts may nest these nodes without limit.
        while let Some((input, number)) = passing_input(nodes, origin.0, origin.1) {
            origin = (input.node, number);
        }
        origin
    })
}

/// Returns the input of a node `ALL` that a value of it comes from, and the number of the value there. `None` for any other node, which makes
/// its values.
pub(super) fn passing_input<W: Index<NodeId, Output = Node>>(
    nodes: &W,
    node: NodeId,
    number: u8,
) -> Option<(&Argument, u8)> {
    let Node::All { inputs } = &nodes[node] else { return None };
    let input = inputs.iter().find(|it| (it.first..=it.last).contains(&number))?;
    let place = usize::from(number - input.first);
    Some((input, nodes[input.node].numbers().nth(place).unwrap_or_default()))
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
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = (NodeId, &Node)> + DoubleEndedIterator {
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
    /// The nodes without the labels of their inputs, which are for humans: equal expressions have equal ones.
    known: HashMap<Node, NodeId>,
}

impl Builder {
    /// Returns the node equal to this one, which becomes part of the workflow if it is the first.
    ///
    /// The ids of the nodes that it reads come from this builder.
    pub fn intern(&mut self, node: Node) -> NodeId {
        let mut key = node.clone();
        key.inputs_mut().iter_mut().for_each(|input| input.label = Box::default());
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

/// The label of the root of every workflow.
pub const ROOT_LABEL: &str = "TASK";

/// The greatest number of labels that tell where in the workflow a node is.
const LABELS: usize = 4;

/// A node of the workflow, and the number of one of its arguments.
type ArgumentPlace = (NodeId, usize);

/// The argument where each node occurs first in the workflow; `None` for the root.
#[derive(Debug)]
pub struct LabelPaths(Box<[Option<ArgumentPlace>]>);

impl LabelPaths {
    /// Finds the first reader of each node.
    pub fn new(workflow: &Workflow) -> Self {
        let mut first: Box<[_]> = workflow.nodes().map(|_| None).collect();
        for (id, node) in workflow.nodes() {
            for (at, argument) in node.inputs().iter().enumerate() {
                first[argument.node.index()].get_or_insert((id, at));
            }
        }
        Self(first)
    }

    /// Returns the argument where a node occurs first. `None` for the root, which is not an argument.
    pub fn argument<'w>(&self, workflow: &'w Workflow, node: NodeId) -> Option<&'w Argument> {
        self.0[node.index()].map(|(reader, at)| &workflow[reader].inputs()[at])
    }

    /// Returns the name that a node is defined by; or else the labels that lead to the argument where it occurs first, from a definition
    /// or from the root, the last few of them: `.../left/lines`. Equal ones of one node have their numbers: `reads[03]`. `None` for the
    /// root.
    pub fn path(&self, task: &Task, node: NodeId) -> Option<String> {
        let workflow = &task.workflow;
        let defined = |node: NodeId| task.definitions.get(&node)?.first();
        if let Some(name) = defined(node) {
            return Some(name.to_string());
        }
        let mut labels: Vec<String> = Vec::new();
        let mut next = self.0[node.index()];
        while let Some((node, at)) = next {
            if labels.len() == LABELS {
                labels.push("...".to_owned());
                break;
            }
            let arguments = workflow[node].inputs();
            let label = &arguments[at].label;
            labels.push(match arguments.iter().filter(|it| it.label == *label).count() {
                1 => label.to_string(),
                _ => format!("{label}[{at:02}]"),
            });
            if let Some(name) = defined(node) {
                labels.push(name.to_string());
                break;
            }
            // The path ends at a sweep: a node within its body is named by its point.
            next = match workflow[node] {
                Node::Sweep { .. } => None,
                _ => self.0[node.index()],
            };
            next = next.filter(|(node, _)| !matches!(workflow[*node], Node::Sweep { .. }));
        }
        labels.reverse();
        (!labels.is_empty()).then(|| labels.join("/"))
    }
}

/// The free names of the nodes of a workflow, which a sweep around a node must bind. Excludes names of the task's inputs.
#[derive(Debug, Default)]
pub struct FreeNames(Vec<Box<[BoundId]>>);

/// The parts of a task that its nodes refer to.
#[derive(Clone, Copy)]
pub struct TaskParts<'a> {
    /// The number of the task's inputs.
    pub inputs: usize,
    /// The files that are values.
    pub files: &'a [TaskFile],
    /// The Git trees that are values.
    pub trees: &'a [TaskTree],
    /// The rules of sweeps.
    pub sweeps: &'a [Sweep],
}

impl<'a> TaskParts<'a> {
    /// The value of a node in which names may stand.
    pub fn value(self, node: &'a Node) -> Option<Template<&'a str>> {
        match node {
            Node::Literal(name) => Some(name.text()),
            Node::File(file) => Some(self.files[file.index()].path.text()),
            Node::Text(text) => Some(text.text()),
            Node::Tree { tree, .. } => Some(self.trees[tree.index()].name.text()),
            Node::Member { path, .. } => Some(path.text()),
            Node::Computation { computation, .. } => computation.open.as_ref().map(|it| it.text()),
            Node::Input(_)
            | Node::Bound(_)
            | Node::Points(_)
            | Node::All { .. }
            | Node::Sweep { .. } => None,
        }
    }

    /// The numbers of the names that a node itself has: the task's inputs come first, then the names that sweeps bind.
    pub fn names(self, node: &Node) -> Vec<usize> {
        if let Node::Input(input) = node {
            return vec![input.index()];
        }
        if let Node::Bound(name) = node {
            return vec![self.inputs + name.index()];
        }
        self.value(node).iter().flat_map(Template::names).collect()
    }

    /// The names in braces in the value of a node that name nothing, if they may be mistakes.
    pub fn unknown_names(self, node: &Node) -> Vec<String> {
        // Braces in a text mean nothing unless they hold a name, and a path may have some.
        let is_text = matches!(node, Node::Text(_));
        let is_path = matches!(node, Node::File(_) | Node::Member { .. });
        let value = self.value(node).filter(|it| !is_text && (!is_path || it.is_open()));
        value.iter().flat_map(Template::unknown).map(str::to_owned).collect()
    }
}

impl FreeNames {
    /// The names that all nodes of a task depend on when they are planned: their free names, and those that only their
    /// resources have.
    pub fn new(task: &Task) -> Self {
        let free = Self::but_for(task, &[]);
        match free.names_in(task.workflow.root()) {
            [] => free,
            // Equal nodes are one. Elsewhere, one of them is where the names in its resources are not bound.
            unbound => Self::but_for(task, unbound),
        }
    }

    fn but_for(task: &Task, unbound: &[BoundId]) -> Self {
        let Task { inputs, workflow, resources, .. } = task;
        let parts = task.parts();
        let mut free = Self(Vec::with_capacity(workflow.nodes().len()));
        for (id, node) in workflow.nodes() {
            let lines = resources.lines_for(id).flat_map(ResourceLines::iter);
            let asked = lines.flat_map(|line| bound(line.amount.names(), inputs.len()));
            free.add_with(node, parts, asked.filter(|name| !unbound.contains(name)));
        }
        free
    }

    /// The free names of a node, sorted.
    pub fn names_in(&self, node: NodeId) -> &[BoundId] {
        &self.0[node.index()]
    }

    /// The number of nodes.
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no nodes.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds the next node. The nodes that it reads are there already.
    pub fn add(&mut self, node: &Node, parts: TaskParts<'_>) {
        self.add_with(node, parts, std::iter::empty());
    }

    /// Adds the next node, which depends on some names besides.
    fn add_with(
        &mut self,
        node: &Node,
        parts: TaskParts<'_>,
        asked: impl Iterator<Item = BoundId>,
    ) {
        let mut free = bound(parts.names(node).into_iter(), parts.inputs);
        for (at, argument) in node.inputs().iter().enumerate() {
            let sweep = match node {
                Node::Sweep { sweep, .. } if at == 0 => Some(&parts.sweeps[sweep.index()]),
                _ => None,
            };
            let given: Vec<BoundId> = sweep.into_iter().flat_map(Sweep::gives).collect();
            free.extend(self.names_in(argument.node).iter().filter(|name| !given.contains(name)));
        }
        free.extend(asked);
        free.sort_unstable();
        free.dedup();
        self.0.push(free.into());
    }
}

/// The names among these numbers that are not inputs.
fn bound(numbers: impl Iterator<Item = usize>, inputs: usize) -> Vec<BoundId> {
    numbers.filter_map(|number| number.checked_sub(inputs).map(BoundId::at)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slice::WrittenSlice;

    fn call(label: &str, node: NodeId, slice: &str) -> Node {
        Node::Computation {
            computation: ComputationId::at(0).into(),
            inputs: [Argument { label: label.into(), first: 0, last: 0, node }].into(),
            outputs: WrittenSlice::parse([slice]).resolve(&[]).0,
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
