//! Where in a workflow a node is: the labels that lead to it.

use super::{Argument, Node, NodeId, Workflow};

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

    /// Returns the argument where a node occurs first. `None` for the root, which is no argument.
    pub fn argument<'w>(&self, workflow: &'w Workflow, node: NodeId) -> Option<&'w Argument> {
        self.0[node.index()].map(|(reader, at)| &workflow[reader].inputs()[at])
    }

    /// Returns the labels that lead from the root to the argument where a node occurs first, the last few of them:
    /// `.../left/lines`. Equal ones of one node have their numbers: `reads[03]`. `None` for the root.
    pub fn path(&self, workflow: &Workflow, node: NodeId) -> Option<String> {
        let is_sweep = |node: NodeId| matches!(workflow[node], Node::Sweep { .. });
        // What is within the body of a sweep is told with its point.
        let above = |(node, _): &ArgumentPlace| match is_sweep(*node) {
            true => None,
            false => self.0[node.index()].filter(|it| !is_sweep(it.0)),
        };
        let uses = std::iter::successors(self.0[node.index()], above);
        let label = |(node, at): (NodeId, usize)| {
            let arguments = workflow[node].inputs();
            let label = &arguments[at].label;
            match arguments.iter().filter(|it| it.label == *label).count() {
                1 => label.to_string(),
                _ => format!("{label}[{at:02}]"),
            }
        };
        let mut labels: Vec<String> = uses.take(LABELS + 1).map(label).collect();
        if labels.len() > LABELS {
            "...".clone_into(&mut labels[LABELS]);
        }
        labels.reverse();
        (!labels.is_empty()).then(|| labels.join("/"))
    }
}
