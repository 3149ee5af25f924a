//! The names that nodes depend on, and sweeps around them bind.

use super::{Node, NodeId, Task, TaskFile, TaskTree};
use crate::task::sweep::{BoundId, Sweep};

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

impl FreeNames {
    /// The free names of all nodes of a task.
    pub fn new(task: &Task) -> Self {
        let Task { inputs, files, trees, sweeps, workflow, .. } = task;
        let parts = TaskParts { inputs: inputs.len(), files, trees, sweeps };
        let mut free = Self(Vec::with_capacity(workflow.nodes().len()));
        workflow.nodes().for_each(|(_, node)| free.add(node, parts));
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
        let mut free: Vec<BoundId> = match node {
            Node::Bound(name) => vec![*name],
            Node::Literal(name) => bound(name.names(), parts.inputs),
            Node::File(file) => bound(parts.files[file.index()].path.names(), parts.inputs),
            Node::Tree { tree, .. } => bound(parts.trees[tree.index()].name.names(), parts.inputs),
            Node::Member { path, .. } => bound(path.names(), parts.inputs),
            Node::Input(_) | Node::Points(_) | Node::Computation { .. } | Node::Sweep { .. } => {
                Vec::new()
            }
        };
        for (at, argument) in node.inputs().iter().enumerate() {
            let binds = match node {
                Node::Sweep { sweep, .. } if at == 0 => &parts.sweeps[sweep.index()].binds[..],
                _ => &[],
            };
            free.extend(self.of(argument.node).iter().filter(|name| !binds.contains(name)));
        }
        free.sort_unstable();
        free.dedup();
        self.0.push(free.into());
    }
}

/// The names among these numbers that are no inputs.
fn bound(numbers: impl Iterator<Item = usize>, inputs: usize) -> Vec<BoundId> {
    numbers.filter_map(|number| number.checked_sub(inputs).map(BoundId::at)).collect()
}
