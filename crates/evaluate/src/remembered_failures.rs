//! Failures that are remembered: a call at a point that may fail is not executed again.

use super::{Absence, CallError, CallFailure, Evaluator, Outcome};
use ce_model::exit::Explain;
use ce_storage::{Call, ResultName};

impl Evaluator<'_> {
    /// The outcome of an absent call that ended with an exit status before, if that counts. The failure may be that of
    /// another commit, of the same computation from the same inputs, like a result that is taken over.
    pub(super) fn remembered_failure(&self, call: Call<'_>, name: &ResultName) -> Option<Outcome> {
        if self.execution.is_some_and(|it| it.policy.retry_failed) || self.is_forced(name) {
            return None;
        }
        let storage = &self.evaluation.storage;
        let attempts = storage.attempts();
        let own = attempts.prior(name, None).and_then(|prior| prior.failure);
        let own = own.filter(|failure| failure.inputs == call.inputs);
        let (place, failure) = match own {
            Some(failure) => (name.clone(), failure),
            None => storage.equivalents().find_equivalent_failure(call).ok()??,
        };
        // If another commit has succeeded since, that is taken over.
        if failure.exit_status.is_none()
            || storage.equivalents().find_equivalent(call).ok()?.is_some()
        {
            return None;
        }
        let error = Box::new(CallError::Remembered(Box::new(failure)));
        let hint = error.hint();
        let log = attempts.failed_log(&place).ok().flatten();
        Some(Outcome::Absent(name.clone(), Absence::Failed(CallFailure { error, log, hint })))
    }
}
