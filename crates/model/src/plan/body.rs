//! The body of a sweep at all of its points together: which calls and derived values each of its nodes is.
//!
//! The time is that of sorting these, and no memory is kept for each.

use std::collections::BTreeMap;

use super::{CallId, DerivedId, Plan, PlannedSweep, Source, Step};
use crate::task::workflow::{Argument, Node, NodeId, Task};

/// What a node of a body is at all points: each once, in the order of the plan.
#[derive(Clone, Copy, Debug)]
pub enum BodySteps<'a> {
    /// Calls; of a sweep, those that gather it.
    Calls(&'a [CallId]),
    /// Derived values.
    Derived(&'a [DerivedId]),
}

impl BodySteps<'_> {
    /// How many there are.
    pub const fn len(&self) -> usize {
        match self {
            Self::Calls(calls) => calls.len(),
            Self::Derived(values) => values.len(),
        }
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The nodes of bodies that are still to be visited, and what they are at different points, with repetitions.
#[derive(Default)]
struct Waiting {
    calls: BTreeMap<NodeId, Vec<CallId>>,
    derived: BTreeMap<NodeId, Vec<DerivedId>>,
}

impl Plan {
    /// Passes each node of a sweep's body that depends on points to a function, before those that it reads. Sweeps in the
    /// body are among them, and their bodies.
    pub fn visit_body(
        &self,
        task: &Task,
        sweep: &PlannedSweep,
        visit: &mut dyn FnMut(NodeId, BodySteps<'_>),
    ) {
        let mut waiting = Waiting::default();
        self.add_rows(sweep, &mut waiting);
        loop {
            // A node comes after those that it reads.
            let last = waiting.calls.last_key_value().map(|(node, _)| *node);
            let last = last.max(waiting.derived.last_key_value().map(|(node, _)| *node));
            let Some(node) = last else { break };
            if let Some(mut calls) = waiting.calls.remove(&node) {
                calls.sort_unstable();
                calls.dedup();
                visit(node, BodySteps::Calls(&calls));
                calls.iter().for_each(|call| self.add_inputs(task, node, *call, &mut waiting));
            }
            if let Some(mut values) = waiting.derived.remove(&node) {
                values.sort_unstable();
                values.dedup();
                visit(node, BodySteps::Derived(&values));
                let inputs = task.workflow[node].inputs();
                for (value, input) in values.iter().flat_map(|it| inputs.first().map(|at| (it, at)))
                {
                    self.add(input, self.value(*value).from.as_ref(), &mut waiting);
                }
            }
        }
    }

    /// The number of different steps of the body of a sweep at its points.
    pub fn body_steps(&self, sweep: &PlannedSweep) -> usize {
        let mut waiting = Waiting::default();
        self.add_rows(sweep, &mut waiting);
        let calls = waiting.calls.into_values().map(distinct);
        calls.chain(waiting.derived.into_values().map(distinct)).sum::<usize>().max(1)
    }

    /// Adds the body of a sweep at all of its points.
    fn add_rows(&self, sweep: &PlannedSweep, waiting: &mut Waiting) {
        let Some(rows) = sweep.rows().filter(|_| self.is_open(sweep.body)) else { return };
        for source in rows.iter().filter_map(|(_, sources)| sources.first()) {
            waiting.add(sweep.body, source);
        }
    }

    /// Adds the inputs of a call that a node is.
    fn add_inputs(&self, task: &Task, node: NodeId, call: CallId, waiting: &mut Waiting) {
        let (node, sources) = (&task.workflow[node], &self.call(call).inputs);
        let Node::Sweep { inputs, .. } = node else {
            for argument in node.inputs() {
                self.add(argument, sources.get(usize::from(argument.first)), waiting);
            }
            return;
        };
        self.gathered(call).into_iter().for_each(|sweep| self.add_rows(sweep, waiting));
        if let [_, points] = &inputs[..] {
            self.add(points, sources.first(), waiting);
        }
    }

    /// Adds what an argument is at some point, if it depends on that.
    fn add(&self, argument: &Argument, source: Option<&Source>, waiting: &mut Waiting) {
        if self.is_open(argument.node) {
            source.into_iter().for_each(|source| waiting.add(argument.node, source));
        }
    }

    /// Whether a node depends on a point.
    fn is_open(&self, node: NodeId) -> bool {
        self.step(node) == Step::PerPoint
    }
}

impl Waiting {
    fn add(&mut self, node: NodeId, source: &Source) {
        match source {
            Source::Output { call, .. } => self.calls.entry(node).or_default().push(*call),
            Source::Derived { value, .. } => self.derived.entry(node).or_default().push(*value),
            Source::Input(_) | Source::Literal(_) | Source::File(_) => {}
        }
    }
}

/// The number of different elements.
fn distinct<T: Ord>(mut all: Vec<T>) -> usize {
    all.sort_unstable();
    all.dedup();
    all.len()
}
