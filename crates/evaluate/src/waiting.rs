//! What calls wait for: suspended calls, some of which are to be continued, and calls that have failed and are not tried again.

use std::sync::PoisonError;

use super::{Evaluation, How};
use ce_model::plan::{CallId, Source};
use ce_storage::records::WaitingJob;

impl Evaluation {
    /// Whether inputs are missing only because calls are suspended.
    pub(super) fn await_suspended(&self, sources: &[Source]) -> bool {
        let awaited = sources.iter().filter_map(|it| self.plan.awaited(*it));
        let mut outcomes = awaited.filter_map(|call| self.outcome(call));
        let mut any = false;
        let all = outcomes.all(|outcome| {
            let waits = matches!(outcome.how(), How::Suspended | How::Waiting);
            any |= waits;
            waits || outcome.outputs().is_some()
        });
        all && any
    }

    /// Whether an input is missing since a call has failed, and is not tried again.
    pub(super) fn await_failures(&self, sources: &[Source]) -> bool {
        let mut awaited = sources.iter().filter_map(|it| self.plan.awaited(*it));
        awaited.any(|call| self.is_given_up(call))
    }

    /// Whether a call has failed and is not tried again, or waits for such a call.
    pub fn is_given_up(&self, call: CallId) -> bool {
        self.outcome(call)
            .is_some_and(|outcome| outcome.how() == How::Blocked || self.is_allowed(call, outcome))
    }

    /// Whether a suspended call has said that it is to be continued.
    pub(super) fn is_continuable(&self, id: CallId) -> bool {
        self.continuable.lock().unwrap_or_else(PoisonError::into_inner).contains(&id)
    }

    /// Notes what a suspended call has said.
    pub(super) fn set_continuable(&self, id: CallId, is_continuable: bool) {
        let mut known = self.continuable.lock().unwrap_or_else(PoisonError::into_inner);
        if is_continuable {
            known.insert(id)
        } else {
            known.remove(&id)
        };
    }

    /// The job that waits for suspended calls.
    pub(super) fn waiting_job(&self) -> WaitingJob {
        WaitingJob { task: self.task.name.clone(), commit: self.task.commit.clone() }
    }
}
