//! Stopping at the first failure: what runs goes on to its end, and nothing else is started.

use std::sync::atomic::Ordering;

use super::{Evaluation, Evaluator, Outcome, Unfinished};
use crate::plan::{CallId, Source};

impl Evaluator<'_> {
    /// Whether no more calls are started, since one has failed.
    pub(super) fn has_stopped(&self) -> bool {
        self.execution.is_some_and(|it| it.fail_fast)
            && self.evaluation.any_failed.load(Ordering::Acquire)
    }

    /// Withdraws what no worker has begun, if no more calls are started.
    pub(super) fn stop_workers(&self) {
        if self.has_stopped()
            && let Some(workers) = self.execution.and_then(|it| it.queue)
        {
            workers.stop();
        }
    }
}

impl Evaluation {
    /// Whether the evaluation cannot succeed after this outcome: the call failed, and not as a point that may, or its executor
    /// lost or refused it.
    pub(super) fn is_failure(&self, call: CallId, outcome: &Outcome) -> bool {
        match outcome {
            Outcome::Failed { .. } => !self.is_allowed(call, outcome),
            Outcome::Unfinished(_, why) => !matches!(why, Unfinished::Suspended(_)),
            _ => false,
        }
    }

    /// Whether inputs are missing only because calls were not started.
    pub(super) fn await_not_started(&self, sources: &[Source]) -> bool {
        let awaited = sources.iter().filter_map(|it| self.plan.awaited(*it));
        let mut missing = awaited
            .filter_map(|call| self.outcome(call))
            .filter(|it| it.outputs().is_none())
            .peekable();
        missing.peek().is_some() && missing.all(|it| matches!(it, Outcome::NotStarted(_)))
    }
}
