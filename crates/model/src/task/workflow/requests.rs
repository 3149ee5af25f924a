//! What the nodes of a task ask for. It is no part of the workflow: other resources make no other node.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{ComputationId, NodeId};
use crate::task::resources::{ResourceLine, ResourceLines};
use crate::task::template::Template;

/// What the nodes of a task ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskResources {
    /// Each set of lines once.
    sets: Vec<ResourceLines>,
    /// The numbers of the sets of each node that has any, by its computations. Equal nodes that are written in different
    /// places may have several.
    nodes: BTreeMap<NodeId, BTreeMap<ComputationId, Vec<u32>>>,
}

impl TaskResources {
    /// Whether no node asks for anything.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Lets the calls of a computation at a node ask for something, unless there are no lines.
    pub fn add(&mut self, node: NodeId, computation: ComputationId, lines: ResourceLines) {
        if lines.is_empty() {
            return;
        }
        let known = self.sets.iter().position(|it| *it == lines);
        let set = known.unwrap_or_else(|| {
            self.sets.push(lines);
            self.sets.len() - 1
        });
        let sets = self.nodes.entry(node).or_default().entry(computation).or_default();
        if !sets.contains(&(set as u32)) {
            sets.push(set as u32);
        }
    }

    /// The sets of lines that count for a node, whatever its computation.
    pub fn of(&self, node: NodeId) -> impl Iterator<Item = &ResourceLines> {
        let sets = self.nodes.get(&node).into_iter().flat_map(BTreeMap::values).flatten();
        sets.map(|set| &self.sets[*set as usize])
    }

    /// The sets of lines that count for the calls of a computation at a node.
    pub fn of_calls(
        &self,
        node: NodeId,
        computation: ComputationId,
    ) -> impl Iterator<Item = &ResourceLines> {
        let sets = self.nodes.get(&node).and_then(|node| node.get(&computation));
        let sets = sets.into_iter().flatten();
        sets.map(|set| &self.sets[*set as usize])
    }

    /// All lines.
    pub fn lines(&self) -> impl Iterator<Item = &ResourceLine> {
        self.sets.iter().flat_map(ResourceLines::iter)
    }

    /// Returns the same with other numbers of names.
    #[must_use]
    pub fn renamed(self, amount: impl Fn(Template<String>) -> Template<String>) -> Self {
        let line = |it: ResourceLine| ResourceLine { amount: amount(it.amount), ..it };
        let lines = |set: ResourceLines| ResourceLines::new(set.into_iter().map(line));
        Self { sets: self.sets.into_iter().map(lines).collect(), nodes: self.nodes }
    }

    /// Returns the same with texts of names, of nodes that have become others.
    #[must_use]
    pub fn bind<'a>(
        &self,
        text: impl Fn(usize) -> Option<&'a str> + Copy,
        node: impl Fn(NodeId) -> Option<NodeId>,
    ) -> Self {
        let mut bound = Self::default();
        for (id, sets) in &self.nodes {
            let Some(id) = node(*id) else { continue };
            for (computation, set) in
                sets.iter().flat_map(|(it, sets)| sets.iter().map(move |set| (it, set)))
            {
                bound.add(id, *computation, self.sets[*set as usize].bind(text));
            }
        }
        bound
    }
}
