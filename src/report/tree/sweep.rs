//! Sweeps in the tree: their points, and their bodies once.

use std::collections::HashSet;
use std::io::{self, Write};

use super::super::body::Body;
use super::super::harmless;
use super::super::point::PointCounts;
use super::super::point::count_points;
use super::super::point::points_words;
use super::super::sweep_title;
use super::{OpenStep, TreePrinter, TreeStyle, indent};
use ce_evaluate::{Evaluation, How, Outcome};
use ce_model::expression::written_alone;
use ce_model::humanize::counted;
use ce_model::plan::{CallId, Operation, Step};
use ce_model::task::Node;

impl TreePrinter<'_> {
    /// Prints the points of the sweep at the top of the stack. Returns whether all calls of its body have ended.
    pub(super) fn begin_body(&mut self, step: Step, out: &mut dyn Write) -> io::Result<bool> {
        let Evaluation { plan, .. } = self.evaluation;
        let Some(OpenStep { node, .. }) = self.stack.last() else { return Ok(true) };
        let is_computed = self.evaluation.task.workflow[*node].inputs().len() > 1;
        let Step::Call(call) = step else {
            let counted = self.bodies.last().map(|(body, _)| body.node(*node)).unwrap_or_default();
            let Some((first, counts)) = counted.sweep else { return Ok(true) };
            return self.points(first, &counts, is_computed, out).map(|()| true);
        };
        let Operation::Sweep(id) = plan.call(call).operation else { return Ok(true) };
        let sweep = plan.sweep(id);
        let ended = self.ended[call.index()];
        if !self.pointed && (ended || sweep.rows().is_some()) {
            self.pointed = true;
            let mut counts =
                PointCounts { steps: plan.body_steps(sweep), ..PointCounts::default() };
            count_points(self.evaluation, sweep, &mut counts);
            self.points(call, &counts, is_computed, out)?;
        }
        if self.pointed && !self.computing && self.started_sweeps.contains(&id) {
            self.computing = true;
            if self.style == TreeStyle::Original {
                indent(self.stack.len(), out)?;
                writeln!(out, "`* computing...")?;
            }
        }
        if ended {
            (self.pointed, self.computing) = (false, false);
            self.bodies.push((Body::new(self.evaluation, sweep), HashSet::new()));
            self.stack.last_mut().into_iter().for_each(|open| open.has_body = true);
        }
        Ok(ended)
    }

    /// Prints the points of the sweep that a call gathers, or of several with the same rules.
    fn points(
        &self,
        call: CallId,
        counts: &PointCounts,
        is_computed: bool,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let Some(sweep) = self.evaluation.plan.gathered(call) else { return Ok(()) };
        indent(self.stack.len(), out)?;
        writeln!(out, "points: {}", points_words(self.evaluation, sweep, counts, is_computed))
    }

    /// Prints the node at the top of the stack, which depends on the points of a sweep.
    pub(super) fn close_open(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let Evaluation { task, .. } = self.evaluation;
        let Some(&OpenStep { node, label, .. }) = self.stack.last() else { return Ok(()) };
        let Some((body, printed)) = self.bodies.last_mut() else { return Ok(()) };
        printed.insert(node);
        let tally = body.node(node).tally;
        // Points that are not known have no calls yet.
        let counts = |counts: String| match tally.calls == 0 && !body.is_complete() {
            true => "not known".to_owned(),
            false => counts,
        };
        indent(self.stack.len() - 1, out)?;
        match &task.workflow[node] {
            Node::Computation { computation, .. } => {
                let name = computation.written(task);
                writeln!(out, "{name} ({}): {}", harmless(label), counts(tally.to_string()))
            }
            Node::Sweep { sweep, .. } => {
                let title = sweep_title(self.evaluation, *sweep);
                writeln!(out, "{title} ({}): {}", harmless(label), counts(tally.of_tables()))
            }
            _ => writeln!(out, "{}: {}", harmless(label), written_alone(task, node)),
        }
    }

    /// Says how many points of a sweep have no result.
    pub(super) fn points_without_result(&self, call: CallId, outcome: &Outcome) -> Option<String> {
        let sweep = self.evaluation.plan.gathered(call)?;
        let mut counts = PointCounts::default();
        count_points(self.evaluation, sweep, &mut counts);
        let PointCounts { points, without_result, .. } = counts;
        match outcome.how() {
            _ if without_result == 0 => None,
            How::Waiting => Some(format!(
                "not made yet: {without_result} of {} have no result",
                counted(points, "point")
            )),
            How::Blocked | How::NotStarted => {
                let points = counted(points, "point");
                Some(format!("not computed: {without_result} of {points} have no result"))
            }
            _ if outcome.known().is_some() => {
                Some(format!("{without_result} of {} failed", counted(points, "point")))
            }
            _ => None,
        }
    }
}
