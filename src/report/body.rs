//! The body of a sweep at all of its points together: how many calls each of its nodes is, and how they ended.
//!
//! Calls that points share are counted once. The time is that of sorting the calls, and no memory is kept for
//! each call.

use std::collections::{BTreeMap, HashMap};

use super::Tally;
use super::point::PointCounts;
use crate::evaluate::Evaluation;
use crate::plan::{CallId, DerivedId, PlannedSweep, Source, Step};
use crate::task::workflow::{Argument, Node, NodeId};

/// The nodes of a body that depend on points.
#[derive(Debug, Default)]
pub(super) struct Body {
    nodes: HashMap<NodeId, BodyNode>,
    /// The points of the sweep, or of one within it, are not known.
    has_unknown: bool,
}

/// A node of a body, at all points.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BodyNode {
    /// Its calls by outcome; or its tables, if it is a sweep.
    pub(super) tally: Tally,
    /// The points of its sweeps, and the first of these.
    pub(super) sweep: Option<(CallId, PointCounts)>,
}

/// The places of the calls or derived values that a node is at different points, with repetitions.
type Places = Vec<u32>;

impl Body {
    /// Counts the calls of the body of a sweep.
    pub(super) fn new(evaluation: &Evaluation, sweep: &PlannedSweep) -> Self {
        let mut count = Count { evaluation, waiting: BTreeMap::new() };
        let mut body = Self { has_unknown: sweep.rows().is_none(), ..Self::default() };
        count.add_rows(sweep);
        // A node comes after those that it reads.
        while let Some((node, mut places)) = count.waiting.pop_last() {
            places.sort_unstable();
            places.dedup();
            let counted = count.node(node, &places);
            body.add_steps(evaluation, sweep.body, node, places.len());
            body.has_unknown |= counted.sweep.is_some_and(|(_, counts)| counts.unknown > 0);
            body.nodes.insert(node, counted);
        }
        body
    }

    /// Whether the points of all sweeps are known.
    pub(super) const fn is_complete(&self) -> bool {
        !self.has_unknown
    }

    /// The node, if it depends on points and there are any.
    pub(super) fn node(&self, node: NodeId) -> BodyNode {
        self.nodes.get(&node).copied().unwrap_or_default()
    }

    /// Notes the number of different steps of a node, if it is the body of a sweep within this one.
    fn add_steps(&mut self, evaluation: &Evaluation, own: NodeId, node: NodeId, steps: usize) {
        if node == own {
            return;
        }
        for counted in self.nodes.values_mut() {
            if let Some((call, counts)) = &mut counted.sweep
                && evaluation.plan.gathered(*call).is_some_and(|it| it.body == node)
            {
                counts.steps = steps;
            }
        }
    }
}

/// The number of different steps of the body of a sweep.
pub(super) fn steps(evaluation: &Evaluation, sweep: &PlannedSweep) -> usize {
    let mut count = Count { evaluation, waiting: BTreeMap::new() };
    count.add_rows(sweep);
    let Some((_, mut places)) = count.waiting.pop_last() else { return 1 };
    places.sort_unstable();
    places.dedup();
    places.len()
}

/// A pass over the nodes of a body, each before those that it reads.
struct Count<'a> {
    evaluation: &'a Evaluation,
    /// The nodes that are to be counted.
    waiting: BTreeMap<NodeId, Places>,
}

impl Count<'_> {
    /// Adds the body of a sweep at all of its points.
    fn add_rows(&mut self, sweep: &PlannedSweep) {
        let Some(rows) = sweep.rows().filter(|_| self.is_open(sweep.body)) else { return };
        let firsts = rows.iter().filter_map(|(_, sources)| sources.first());
        self.waiting.entry(sweep.body).or_default().extend(firsts.filter_map(|it| place(*it)));
    }

    /// Whether a node depends on a point.
    fn is_open(&self, node: NodeId) -> bool {
        self.evaluation.plan.step(node) == Step::PerPoint
    }

    /// Adds the source that an argument has at some point.
    fn add(&mut self, argument: &Argument, source: Option<&Source>) {
        if self.is_open(argument.node)
            && let Some(place) = source.and_then(|it| place(*it))
        {
            self.waiting.entry(argument.node).or_default().push(place);
        }
    }

    /// Counts a node with these places, and adds those that it reads.
    fn node(&mut self, id: NodeId, places: &[u32]) -> BodyNode {
        let Evaluation { task, plan, .. } = self.evaluation;
        let node = &task.workflow[id];
        let mut counted = BodyNode::default();
        match node {
            Node::Computation { inputs, .. } => {
                for call in places.iter().map(|place| CallId::at(*place as usize)) {
                    self.end(call, &mut counted.tally);
                    let sources = &plan.call(call).inputs;
                    for argument in inputs {
                        self.add(argument, sources.get(usize::from(argument.first)));
                    }
                }
            }
            Node::Sweep { inputs, .. } => {
                for call in places.iter().map(|place| CallId::at(*place as usize)) {
                    self.end(call, &mut counted.tally);
                    let Some(sweep) = plan.gathered(call) else { continue };
                    let counts = &mut counted.sweep.get_or_insert((call, PointCounts::default())).1;
                    self.evaluation.count_points(sweep, counts);
                    self.add_rows(sweep);
                    if let [_, points] = &inputs[..] {
                        self.add(points, plan.call(call).inputs.first());
                    }
                }
            }
            Node::Tree { inputs, .. } | Node::Member { inputs, .. } => {
                for value in places.iter().map(|place| DerivedId::at(*place as usize)) {
                    for argument in inputs {
                        self.add(argument, plan.value(value).from.as_ref());
                    }
                }
            }
            Node::Input(_)
            | Node::Literal(_)
            | Node::File(_)
            | Node::Bound(_)
            | Node::Points(_) => {}
        }
        counted
    }

    fn end(&self, call: CallId, tally: &mut Tally) {
        let outcome = self.evaluation.outcome(call);
        tally.add(outcome, outcome.is_some_and(|it| self.evaluation.is_allowed(call, it)));
    }
}

/// The place of the call or derived value that makes a source.
fn place(source: Source) -> Option<u32> {
    match source {
        Source::Output { call, .. } => Some(call.index() as u32),
        Source::Derived { value, .. } => Some(value.index() as u32),
        Source::Input(_) | Source::Literal(_) | Source::File(_) => None,
    }
}
