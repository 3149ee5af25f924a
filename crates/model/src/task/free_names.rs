//! Free names: the names that nodes depend on, and that sweeps around them bind.

use super::workflow::{Node, NodeId};
use super::{Task, TaskFile, TaskTree};
use crate::resources::ResourceLines;
use crate::sweep::{BoundId, Sweep};

/// The free names of the nodes of a workflow: those that a sweep around a node must bind. Names of the task's inputs
/// are none of them.
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

impl TaskParts<'_> {
    /// The numbers of the names that a node itself has: those of the task's inputs come first, then those that sweeps bind.
    pub fn names(self, node: &Node) -> Vec<usize> {
        match node {
            Node::Input(input) => vec![input.index()],
            Node::Bound(name) => vec![self.inputs + name.index()],
            Node::Literal(name) => name.names().collect(),
            Node::File(file) => self.files[file.index()].path.names().collect(),
            Node::Tree { tree, .. } => self.trees[tree.index()].name.names().collect(),
            Node::Member { path, .. } => path.names().collect(),
            Node::Computation { computation, .. } => computation.names().collect(),
            Node::Points(_) | Node::Sweep { .. } => Vec::new(),
        }
    }
}

impl FreeNames {
    /// The names that all nodes of a task depend on when they are planned: their free names, and those that only their
    /// resources have.
    pub fn new(task: &Task) -> Self {
        let free = Self::but_for(task, &[]);
        match free.of(task.workflow.root()) {
            [] => free,
            // Equal nodes are one. Elsewhere, one of them is where the names in its resources are not bound.
            unbound => Self::but_for(task, unbound),
        }
    }

    fn but_for(task: &Task, unbound: &[BoundId]) -> Self {
        let Task { inputs, files, trees, sweeps, workflow, resources, .. } = task;
        let parts = TaskParts { inputs: inputs.len(), files, trees, sweeps };
        let mut free = Self(Vec::with_capacity(workflow.nodes().len()));
        for (id, node) in workflow.nodes() {
            let lines = resources.of(id).flat_map(ResourceLines::iter);
            let asked = lines.flat_map(|line| bound(line.amount.names(), inputs.len()));
            free.add_with(node, parts, asked.filter(|name| !unbound.contains(name)));
        }
        free
    }

    /// The free names of a node, sorted.
    pub fn of(&self, node: NodeId) -> &[BoundId] {
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

    /// Adds the next node. Those that it reads are there already.
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
            free.extend(self.of(argument.node).iter().filter(|name| !given.contains(name)));
        }
        free.extend(asked);
        free.sort_unstable();
        free.dedup();
        self.0.push(free.into());
    }
}

/// The names among these numbers that are no inputs.
fn bound(numbers: impl Iterator<Item = usize>, inputs: usize) -> Vec<BoundId> {
    numbers.filter_map(|number| number.checked_sub(inputs).map(BoundId::at)).collect()
}
