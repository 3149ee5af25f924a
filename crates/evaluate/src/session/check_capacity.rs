//! The check that calls can be executed here, before anything is executed.

use std::num::NonZeroUsize;

use super::{Error, Session};
use crate::{Evaluation, Evaluator, Misfit, Outcome};
use ce_executor::Offer;
use ce_model::exit::Explain;
use ce_model::plan::{CallId, Plan, PlannedSweep, Source, SweepRows};

/// Calls ask for more than there is.
#[derive(Debug, thiserror::Error)]
#[error("nothing is executed: {}", calls.join("; "))]
struct MisfitsError {
    /// The calls, each with the reason.
    calls: Vec<String>,
    /// Advice for the user.
    hint: String,
}

impl Explain for MisfitsError {
    fn hint(&self) -> Option<String> {
        Some(self.hint.clone())
    }
}

impl Session {
    /// Checks that no call that is to be executed asks for more than there is. A call whose inputs are not known yet counts as
    /// one without a result.
    ///
    /// # Errors
    ///
    /// Fails if one does, or the storage cannot be read.
    pub fn check_fit(&self, evaluation: &Evaluation) -> Result<(), Error> {
        let Some((executor, _)) = self.executor.as_ref() else { return Ok(()) };
        let misfits = match self.queue {
            // Nothing is known of workers.
            Some(_) => evaluation.misfits(usize::MAX, Offer::default),
            None => evaluation.misfits(executor.capacity().get(), || executor.offer()),
        };
        if misfits.is_empty() {
            return Ok(());
        }
        let looked = evaluation.again();
        let evaluator = Evaluator { evaluation: &looked, execution: None, observe: &|_| {} };
        evaluator.evaluate(NonZeroUsize::MIN)?;
        let is_needed = |id| {
            let found = looked.outcome(id).and_then(Outcome::known);
            let has_result = found.is_some_and(|it| !self.policy.forced.contains(&it.name));
            !has_result && looked.plan.call(id).is_needed() && !is_left_out(&looked.plan, id)
        };
        let misfits: Vec<_> = misfits.into_iter().filter(|(id, _)| is_needed(*id)).collect();
        match misfits.first() {
            None => Ok(()),
            Some((_, first)) => {
                let hint = first.hint().unwrap_or_default();
                Err(MisfitsError { calls: described(evaluation, misfits), hint }.into())
            }
        }
    }
}

/// Whether a call needs the table of a sweep of which not all points are asked for, so that it is not executed.
fn is_left_out(plan: &Plan, call: CallId) -> bool {
    let made_from = plan.ancestors(&[Source::Output { call, number: 0 }]);
    let rows = |call: &CallId| plan.gathered(*call).and_then(PlannedSweep::rows);
    made_from.calls.iter().filter_map(rows).any(SweepRows::is_partial)
}

/// Describes calls and why they do not fit. Points of a sweep that say the same are one.
fn described(evaluation: &Evaluation, misfits: Vec<(CallId, Misfit)>) -> Vec<String> {
    let mut described = Vec::new();
    for (id, misfit) in misfits {
        let name = evaluation.computation(id).map_or("", |it| it.name.as_str());
        let label =
            evaluation.label_path(id).map(|label| format!(" ({label})")).unwrap_or_default();
        let text = format!("{name}{label}: {misfit}");
        if !described.contains(&text) {
            described.push(text);
        }
    }
    described
}
