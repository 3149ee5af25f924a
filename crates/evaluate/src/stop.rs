//! Stops after a failure (`--fail-fast`) or an interruption, or because the storage is away: no further call is started. After a failure, running calls go on to
//! their end.

use std::sync::atomic::Ordering;

use super::{Absence, Evaluation, Evaluator, How, Outcome};
use ce_model::plan::{CallId, Source};
use ce_storage::ResultName;

/// Why no more calls are started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// A call has failed.
    Failure,
    /// The user asked to stop.
    Interruption,
    /// The storage was waited for, and does not answer.
    Away,
}

impl StopReason {
    /// The reason in words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Failure => "another call had failed",
            Self::Interruption => "the run was interrupted",
            Self::Away => "the storage did not answer",
        }
    }
}

impl Evaluator<'_> {
    /// Returns the reason why no more calls are started, or `None`.
    fn stopped(&self) -> Option<StopReason> {
        let execution = self.execution?;
        if execution.executor.is_cancelled() {
            return Some(StopReason::Interruption);
        }
        if self.evaluation.storage.away().is_some() {
            return Some(StopReason::Away);
        }
        let has_failed = self.evaluation.any_failed.load(Ordering::Acquire);
        (execution.policy.fail_fast && has_failed).then_some(StopReason::Failure)
    }

    /// Whether no more calls are started.
    pub(super) fn has_stopped(&self) -> bool {
        self.stopped().is_some()
    }

    /// The outcome of a call that is not started any more.
    pub(super) fn not_started(&self, name: ResultName) -> Outcome {
        Outcome::Absent(
            name,
            Absence::NotStarted(self.stopped().unwrap_or(StopReason::Interruption)),
        )
    }

    /// Blames a failure on the storage if that has vanished. If it does not answer, the run ends with that, and its calls have
    /// nothing to tell.
    pub(super) fn blame(&self, outcome: Outcome) -> Outcome {
        let has_failed = outcome.failure().is_some();
        if (has_failed || outcome.is_lost()) && self.evaluation.storage.away().is_some() {
            return Outcome::Absent(outcome.name().clone(), Absence::Interrupted);
        }
        if has_failed && let Some(error) = self.evaluation.storage.vanished() {
            return Outcome::failed(outcome.name().clone(), error);
        }
        outcome
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
        match outcome.how() {
            How::Failed => !self.is_allowed(call, outcome),
            How::Unfinished => true,
            _ => false,
        }
    }

    /// Whether inputs are missing only because calls were not started, or are not over.
    pub(super) fn await_not_started(&self, sources: &[Source]) -> bool {
        let awaited = sources.iter().filter_map(|it| self.plan.awaited(*it));
        let mut missing = awaited
            .filter_map(|call| self.outcome(call))
            .filter(|it| it.outputs().is_none())
            .peekable();
        missing.peek().is_some()
            && missing.all(|outcome| {
                matches!(
                    outcome.how(),
                    How::NotStarted | How::Interrupted | How::Waiting | How::Suspended
                )
            })
    }
}
