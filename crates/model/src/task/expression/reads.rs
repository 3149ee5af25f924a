//! The names that the nodes of an expression read, as inputs or in braces.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::rc::Rc;

use super::rules::rules;
use super::{Expression, ExpressionNode, NodeKind};
use crate::task::template::Template;
use crate::task::workflow::NodeId;

/// The names that nodes read, and sweeps around them must bind.
pub(super) struct ReadNames {
    names: Vec<String>,
    /// The numbers of the names of each node, sorted. Nodes that read the same share them.
    nodes: Vec<Rc<[usize]>>,
}

impl ReadNames {
    /// The names that the nodes of an expression read, but for those of the task's inputs.
    pub(super) fn new(expression: &Expression, inputs: &HashSet<&str>) -> Self {
        let mut reads = Self { names: Vec::new(), nodes: Vec::new() };
        let mut numbers = HashMap::new();
        for node in &expression.nodes {
            let mut own = Vec::new();
            for name in names(node).into_iter().filter(|name| !inputs.contains(&**name)) {
                let next = numbers.len();
                let number = *numbers.entry(name.clone()).or_insert(next);
                if number == next {
                    reads.names.push(name);
                }
                own.push(number);
            }
            let all = reads.with_inputs(node, own);
            reads.nodes.push(all);
        }
        reads
    }

    /// The names that a node or one below it reads. A name that a sweep below binds is among them: it is bound nowhere else.
    pub(super) fn of(&self, node: NodeId) -> impl Iterator<Item = &str> {
        self.nodes[node.index()].iter().map(|number| self.names[*number].as_str())
    }

    /// Returns the names of a node and of its inputs.
    fn with_inputs(&self, node: &ExpressionNode, mut own: Vec<usize>) -> Rc<[usize]> {
        let inputs = || node.inputs.iter().map(|input| &self.nodes[input.node.index()]);
        own.extend(inputs().flat_map(|names| names.iter().copied()));
        own.sort_unstable();
        own.dedup();
        inputs().find(|names| ***names == *own).map_or_else(|| own.as_slice().into(), Rc::clone)
    }
}

/// The names that a node reads itself.
fn names(node: &ExpressionNode) -> Vec<String> {
    match node.kind {
        NodeKind::Input => vec![node.value.to_string()],
        NodeKind::Computation
        | NodeKind::Literal
        | NodeKind::File
        | NodeKind::Tree
        | NodeKind::Member => {
            let value = Template::new(&*node.value, |_| None, Path::new(""));
            value.unknown().map(str::to_owned).collect()
        }
        NodeKind::Sweep | NodeKind::Points => Vec::new(),
    }
}

/// The names that sweeps of an expression bind, wherever they do.
#[derive(Debug)]
pub struct BoundNames {
    names: HashSet<String>,
    /// Whether a sweep binds whatever its body reads.
    is_open: bool,
}

impl BoundNames {
    /// The names of all sweeps of an expression.
    pub fn new(expression: &Expression) -> Self {
        let mut bound = Self { names: HashSet::new(), is_open: false };
        for node in expression.nodes.iter().filter(|node| node.kind == NodeKind::Sweep) {
            let (rules, _) = rules(&node.files);
            bound.is_open |= node.inputs.len() > 1 && rules.names.is_none();
            bound.names.extend(rules.named().map(|(name, _)| name));
        }
        bound
    }

    /// Whether a sweep may bind a name.
    pub fn may_have(&self, name: &str) -> bool {
        self.is_open || self.names.contains(name)
    }
}
