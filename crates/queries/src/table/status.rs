//! What became of a point whose outputs are not all there.

use std::collections::HashSet;

use ce_evaluate::{Evaluation, Outcome};
use ce_model::plan::{CallId, Source};
use ce_storage::Holder;

/// What became of a point.
#[derive(Clone, Debug, PartialEq)]
pub enum RowStatus {
    /// Its outputs are there.
    Ok,
    /// A call that it needs is being executed.
    Running(Holder),
    /// A call that it needs is suspended: what it has started goes on elsewhere.
    Suspended,
    /// An input of the call that makes its outputs is not there yet.
    Waiting,
    /// The call that makes its outputs could be executed, and was not.
    Missing,
    /// A call that it needs has failed, and has not succeeded since.
    Failed {
        /// Why, in words.
        reason: String,
        /// The log, as the user would write its path.
        log: Option<String>,
    },
    /// The rules of the sweep leave it out.
    Excluded,
}

impl RowStatus {
    /// The word for it.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Running(_) => "running",
            Self::Suspended => "suspended",
            Self::Waiting => "waiting",
            Self::Missing => "missing",
            Self::Failed { .. } => "failed",
            Self::Excluded => "excluded",
        }
    }

    /// Finds out what became of a point with outputs from these sources, of which one is not there.
    ///
    /// A failure of a call that it needs counts first, then an execution.
    pub(super) fn of(evaluation: &Evaluation, sources: &[Source]) -> Self {
        Self::with_call(evaluation, sources).0
    }

    /// Finds out the same, and which call it is that has failed or is executed, if there is one.
    fn with_call(evaluation: &Evaluation, sources: &[Source]) -> (Self, Option<CallId>) {
        let is_absent = |source: &Source| evaluation.digest(*source).is_none();
        let absent = |sources: &[Source]| -> Vec<CallId> {
            let absent = sources.iter().filter(|source| is_absent(source));
            absent.filter_map(|source| evaluation.plan.awaited(*source)).collect()
        };
        let own = absent(sources);
        let is_waiting = |call: &CallId| evaluation.plan.inputs(*call).iter().any(is_absent);
        let mut status = match own.iter().any(is_waiting) {
            true => (Self::Waiting, None),
            false => (Self::Missing, None),
        };
        let (mut waiting, mut seen) = (own, HashSet::new());
        while let Some(call) = waiting.pop() {
            if !seen.insert(call) {
                continue;
            }
            match Self::of_call(evaluation, call) {
                Some(failed @ Self::Failed { .. }) => return (failed, Some(call)),
                Some(running) => status = (running, Some(call)),
                None => {}
            }
            waiting.extend(absent(evaluation.plan.inputs(call)));
        }
        status
    }

    /// Finds the call because of which the points of a sweep are not known, if one has failed or is executed.
    pub(super) fn of_unknown_points(evaluation: &Evaluation) -> Option<(CallId, Self)> {
        let plan = &evaluation.plan;
        let gathering = plan.calls().filter_map(|(call, _)| Some((call, plan.gathered(call)?)));
        let mut unknown = gathering.filter(|(_, sweep)| sweep.rows().is_none());
        unknown.find_map(|(call, _)| {
            // What is wrong with points that no call makes is an error of the sweep itself.
            if let Some(failed @ Self::Failed { .. }) = Self::of_call(evaluation, call) {
                return Some((call, failed));
            }
            let (status, call) = Self::with_call(evaluation, plan.inputs(call));
            Some((call?, status))
        })
    }

    /// The state of a missing call, if it has failed or is being executed.
    fn of_call(evaluation: &Evaluation, call: CallId) -> Option<Self> {
        let storage = &evaluation.storage;
        let outcome = evaluation.outcome(call)?;
        let name = outcome.name();
        if let Outcome::Failed { error, log, .. } = outcome {
            let log = log.as_ref().map(|log| evaluation_path(evaluation, &log.name));
            return Some(Self::Failed { reason: error.to_string(), log });
        }
        if outcome.suspended().is_some() {
            return Some(Self::Suspended);
        }
        let Outcome::Missing(_, prior) = outcome else { return None };
        if let Some(holder) = storage.leases().holder(name) {
            return Some(Self::Running(holder));
        }
        let failure = prior.as_ref()?.failure.as_ref()?;
        let log = storage.attempts().failure_log(name);
        let log = log.map(|log| evaluation_path(evaluation, &log));
        Some(Self::Failed { reason: failure.reason.clone(), log })
    }
}

fn evaluation_path(evaluation: &Evaluation, name: &str) -> String {
    evaluation.storage.shown(name).display().to_string()
}
