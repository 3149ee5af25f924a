//! Stops after a failure (`--fail-fast`) or an interruption, or because the storage is away: no further call is started. After a failure, running calls go on to
//! their end.

use super::{Evaluation, How, Outcome};
use ce_model::plan::{CallId, Source};

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
