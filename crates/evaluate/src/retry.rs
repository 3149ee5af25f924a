//! Whether a call that was executed without success is executed again: here, by a worker, or for an audit.

use super::computation_directories::MAX_TRIES;
use super::{Absence, Outcome, Unfinished};

/// How often a call is executed again, by the reason why it did not succeed.
///
/// The storage, a refusal and the user's wish to stop are not reasons: the same would happen again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RetryPolicy {
    /// After failures: as often as the user says.
    failures: u32,
    /// After losses, which the call is not to blame for.
    losses: u32,
    /// After another run has replaced the directory that its program ran from.
    exports: usize,
}

impl RetryPolicy {
    /// The policy for a call that is executed here. A lost one is executed once more than one that fails.
    pub(super) const fn here(retries: u32) -> Self {
        Self { failures: retries, losses: retries.saturating_add(1), exports: MAX_TRIES }
    }

    /// The policy for a call that workers execute. A worker executes a lost call again by its own policy, and the queue
    /// gives the ticket of a dead worker to another.
    pub(super) const fn at_workers(retries: u32) -> Self {
        Self { failures: retries, losses: 0, exports: 0 }
    }

    /// The policy for a call that is executed to be compared with its result: a failure is a verdict.
    pub(super) const fn of_audit() -> Self {
        Self { failures: 0, losses: 0, exports: MAX_TRIES - 1 }
    }

    /// Decides whether a call with this outcome is executed again, and counts that.
    pub(super) fn allows(&mut self, outcome: &Outcome) -> bool {
        let Outcome::Absent(_, absence) = outcome else { return false };
        let left = match absence {
            Absence::Failed(failure) if failure.error.may_pass() => &mut self.failures,
            Absence::Unfinished(Unfinished::Lost(_)) => &mut self.losses,
            Absence::Failed(_)
            | Absence::Unfinished(Unfinished::Refused(_) | Unfinished::Unreadable { .. })
            | Absence::Missing(_)
            | Absence::Blocked
            | Absence::Waiting
            | Absence::NotStarted(_)
            | Absence::LeftOut
            | Absence::Suspended(_)
            | Absence::Interrupted => return false,
        };
        let is_allowed = *left > 0;
        *left = left.saturating_sub(1);
        is_allowed
    }

    /// Decides whether a call is executed again whose export another run has replaced, and counts that.
    pub(super) const fn allows_new_export(&mut self) -> bool {
        let is_allowed = self.exports > 0;
        self.exports = self.exports.saturating_sub(1);
        is_allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CallError, SuspendedCall};
    use ce_storage::{ResultName, StorageError};

    fn absent(absence: Absence) -> Outcome {
        Outcome::Absent(name(), absence)
    }

    fn name() -> ResultName {
        ResultName::of_short("c_call/0123456789ab/0123456789ab").unwrap()
    }

    fn lost() -> Outcome {
        absent(Absence::Unfinished(Unfinished::Lost("its host is down".to_owned())))
    }

    fn failed(error: impl Into<CallError>) -> Outcome {
        Outcome::failed(name(), error)
    }

    /// The number of executions after the first one, if all end in the same way.
    fn retries(mut policy: RetryPolicy, outcome: &Outcome) -> usize {
        (0..100).take_while(|_| policy.allows(outcome)).count()
    }

    #[test]
    fn failures_are_retried_as_often_as_requested_here_and_at_workers() {
        for asked in [0, 1, 3] {
            for policy in [RetryPolicy::here(asked), RetryPolicy::at_workers(asked)] {
                assert_eq!(retries(policy, &failed(CallError::Within)), asked as usize);
            }
        }
    }

    #[test]
    fn a_run_retries_a_lost_call_once_more_than_asked() {
        assert_eq!(retries(RetryPolicy::here(0), &lost()), 1);
        assert_eq!(retries(RetryPolicy::here(3), &lost()), 4);
        assert_eq!(retries(RetryPolicy::here(u32::MAX), &lost()), 100);
        assert_eq!(retries(RetryPolicy::at_workers(3), &lost()), 0);
    }

    #[test]
    fn losses_do_not_count_as_failures() {
        let mut policy = RetryPolicy::here(1);
        let ends = [lost(), failed(CallError::Within), lost(), lost()];
        assert_eq!(ends.map(|end| policy.allows(&end)), [true, true, true, false]);
    }

    #[test]
    fn errors_that_would_recur_and_interrupted_calls_are_not_retried() {
        let suspended = SuspendedCall { name: name(), line: None, continues: true };
        let unreadable = Unfinished::Unreadable { why: String::new(), hint: None };
        for outcome in [
            failed(StorageError::Moved("c_call".into())),
            failed(CallError::OutOfTime(60.0)),
            failed(StorageError::Interrupted),
            absent(Absence::Unfinished(Unfinished::Refused("no gpu".to_owned()))),
            absent(Absence::Unfinished(unreadable)),
            absent(Absence::Suspended(suspended)),
            absent(Absence::Interrupted),
        ] {
            for policy in [RetryPolicy::here(3), RetryPolicy::at_workers(3)] {
                assert_eq!(retries(policy, &outcome), 0, "{outcome:?}");
            }
        }
    }

    #[test]
    fn an_audit_retries_only_calls_disturbed_by_another_run() {
        let mut policy = RetryPolicy::of_audit();
        assert_eq!([lost(), failed(CallError::Within)].map(|end| policy.allows(&end)), [false; 2]);
        let exports = (0..100).take_while(|_| policy.allows_new_export()).count();
        assert_eq!(exports, MAX_TRIES - 1);
    }
}
