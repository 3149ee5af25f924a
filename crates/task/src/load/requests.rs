//! What nodes of computations ask for, by the files `resources`.
//!
//! A line of a node counts before one of the task, and that before one of the computation. The names in a line are those
//! that are known at the node. They do not make the node depend on them.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;

use super::nearest;
use super::nodes::NodeReader;
use super::resource_fault::ResourceFault;
use super::resources::WrittenLine;
use super::source::TaskSource;
use ce_model::expand::ScopeId;
use ce_model::task::resources::{ResourceLine, ResourceLines, Resources};
use ce_model::task::sweep::BoundId;
use ce_model::task::template::Template;
use ce_model::task::workflow::{ComputationId, Node, NodeId};

impl<S: TaskSource> NodeReader<'_, '_, S> {
    /// Lets a node of a computation ask for what its own lines say, then those of the task, then those of the
    /// computation.
    pub(super) fn request(
        &mut self,
        (node, computation): (NodeId, ComputationId),
        (dir, scope): (&S::Dir, ScopeId),
        own: &[WrittenLine],
    ) {
        let name = &self.library.get(computation).name;
        let task = self.shared.task.iter().filter(|(it, _)| it == name).map(|(_, line)| line);
        let lines = own.iter().chain(task).chain(self.library.resources(computation)).cloned();
        let lines: Vec<WrittenLine> = lines.collect();
        if lines.is_empty() {
            return;
        }
        let place = self.library.source.place(dir);
        let mut right = Vec::with_capacity(lines.len());
        for line in lines {
            let is_known = right.iter().any(|it: &ResourceLine| it.resource == line.resource);
            if is_known {
                continue;
            }
            match self.look_up(&line, scope, &place) {
                Ok(line) => right.extend(line),
                Err(fault) => {
                    if self.shared.reported.insert((line.path.clone(), line.line)) {
                        self.findings.problem_in_line(&line.path, line.line, fault);
                    }
                }
            }
        }
        self.resources.add(node, computation, ResourceLines::new(right));
    }

    /// Looks up the names in a line. Returns `None` if it may have some, and the task's inputs are not known.
    fn look_up(
        &mut self,
        written: &WrittenLine,
        scope: ScopeId,
        place: &Path,
    ) -> Result<Option<ResourceLine>, ResourceFault> {
        let Some(inputs) = self.inputs else { return Ok(None) };
        let WrittenLine { resource, amount, path, line } = written.clone();
        let number = |name: &str| self.scopes.number(scope, inputs, name);
        let amount = Template::new(amount, number, place);
        if let Some(name) = amount.unknown().next() {
            let names = inputs.iter().map(ToString::to_string).chain(self.scopes.names(scope));
            let nearest = nearest(name, &names.collect::<Vec<_>>());
            let (name, node) = (name.to_owned(), place.to_owned());
            return Err(ResourceFault::NoName { name, nearest, node });
        }
        if !amount.is_open() {
            // Braces may name nothing.
            Resources::default().set(resource, amount.as_str())?;
        }
        Ok(Some(ResourceLine { resource, amount, path, line }))
    }

    /// The names in resources of a node and of those that it reads, but for those that sweeps give among these.
    pub(super) fn asked_names(&self, node: NodeId) -> Vec<BoundId> {
        if self.resources.is_empty() {
            return Vec::new();
        }
        let inputs = self.inputs.unwrap_or_default().len();
        let (mut names, mut given) = (BTreeSet::new(), BTreeSet::new());
        let (mut seen, mut waiting) = (HashSet::from([node]), vec![node]);
        while let Some(node) = waiting.pop() {
            let lines = self.resources.of(node).flat_map(ResourceLines::iter);
            let numbers = lines.flat_map(|line| line.amount.names());
            names.extend(numbers.filter_map(|at| at.checked_sub(inputs).map(BoundId::at)));
            if let Node::Sweep { sweep, .. } = &self.builder[node] {
                given.extend(self.sweeps[sweep.index()].gives());
            }
            let read = self.builder[node].inputs().iter().map(|argument| argument.node);
            waiting.extend(read.filter(|node| seen.insert(*node)));
        }
        names.difference(&given).copied().collect()
    }
}
