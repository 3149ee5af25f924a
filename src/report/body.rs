//! The body of a sweep at all of its points together: how many calls each of its nodes is, and how they ended.
//!
//! Calls that points share are counted once.

use std::collections::HashMap;

use super::Tally;
use super::point::{PointCounts, count_points};
use ce_evaluate::Evaluation;
use ce_model::plan::{BodySteps, CallId, PlannedSweep};
use ce_model::task::NodeId;

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

impl Body {
    /// Counts the calls of the body of a sweep.
    pub(super) fn new(evaluation: &Evaluation, sweep: &PlannedSweep) -> Self {
        let mut body = Self { has_unknown: sweep.rows().is_none(), ..Self::default() };
        evaluation.plan.visit_body(&evaluation.task, sweep, &mut |node, steps| {
            let counted = node_of(evaluation, steps);
            body.has_unknown |= counted.sweep.is_some_and(|(_, counts)| counts.unknown > 0);
            body.add_steps(evaluation, node, steps.len());
            body.nodes.insert(node, counted);
        });
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
    fn add_steps(&mut self, evaluation: &Evaluation, node: NodeId, steps: usize) {
        for counted in self.nodes.values_mut() {
            if let Some((call, counts)) = &mut counted.sweep
                && evaluation.plan.gathered(*call).is_some_and(|it| it.body == node)
            {
                counts.steps = steps;
            }
        }
    }
}

/// Counts what a node is at all points.
fn node_of(evaluation: &Evaluation, steps: BodySteps<'_>) -> BodyNode {
    let mut counted = BodyNode::default();
    let BodySteps::Calls(calls) = steps else { return counted };
    for call in calls {
        let outcome = evaluation.outcome(*call);
        counted.tally.add(outcome, outcome.is_some_and(|it| evaluation.is_allowed(*call, it)));
        if let Some(sweep) = evaluation.plan.gathered(*call) {
            let (_, counts) = counted.sweep.get_or_insert((*call, PointCounts::default()));
            count_points(evaluation, sweep, counts);
        }
    }
    counted
}
