//! The names that the nodes of an expression read, as inputs or in braces.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::rc::Rc;

use super::rules::rules;
use super::{Expression, ExpressionNode, NodeKind};
use crate::expand::SweepRules;
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
    pub(super) fn new(
        expression: &Expression,
        inputs: &HashSet<&str>,
        rules: &HashMap<NodeId, SweepRules>,
    ) -> Self {
        let mut reads = Self { names: Vec::new(), nodes: Vec::new() };
        let mut numbers = HashMap::new();
        for (at, node) in expression.nodes.iter().enumerate() {
            let mut own = Vec::new();
            for name in names(node).into_iter().filter(|name| !inputs.contains(&**name)) {
                let next = numbers.len();
                let number = *numbers.entry(name.clone()).or_insert(next);
                if number == next {
                    reads.names.push(name);
                }
                own.push(number);
            }
            let all = reads.with_inputs(node, own, rules.get(&NodeId::at(at)));
            reads.nodes.push(all);
        }
        reads
    }

    /// The names that a node reads.
    pub(super) fn of(&self, node: NodeId) -> impl Iterator<Item = &str> {
        self.nodes[node.index()].iter().map(|number| self.names[*number].as_str())
    }

    /// Returns the names of a node and of its inputs, without those that it binds in its body.
    fn with_inputs(
        &self,
        node: &ExpressionNode,
        mut own: Vec<usize>,
        rules: Option<&SweepRules>,
    ) -> Rc<[usize]> {
        let input = |at: usize| &self.nodes[node.inputs[at].node.index()];
        if let [first, rest @ ..] = &node.inputs[..]
            && own.is_empty()
            && rules.is_none()
            && rest.iter().all(|it| Rc::ptr_eq(&self.nodes[it.node.index()], input(0)))
        {
            return Rc::clone(&self.nodes[first.node.index()]);
        }
        let binds: HashSet<String> =
            rules.into_iter().flat_map(SweepRules::named).map(|(name, _)| name).collect();
        for at in 0..node.inputs.len() {
            let is_bound = |number: &&usize| at == 0 && binds.contains(&self.names[**number]);
            own.extend(input(at).iter().filter(|number| !is_bound(number)));
        }
        own.sort_unstable();
        own.dedup();
        let same = (0..node.inputs.len()).map(input).find(|names| ***names == *own);
        same.map_or_else(|| own.into(), Rc::clone)
    }
}

/// The names that a node reads itself.
fn names(node: &ExpressionNode) -> Vec<String> {
    match node.kind {
        NodeKind::Input => vec![node.value.to_string()],
        NodeKind::Literal | NodeKind::File | NodeKind::Tree | NodeKind::Member => {
            let value = Template::new(&*node.value, |_| None, Path::new(""));
            value.unknown().map(str::to_owned).collect()
        }
        NodeKind::Computation | NodeKind::Sweep | NodeKind::Points => Vec::new(),
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
