//! Calls that have failed at another commit.

use super::nearest::Ingredient;
use super::{CodeVersion, Comparison, Why};
use ce_model::digest::DIRTY;
use ce_model::plan::CallId;
use ce_storage::ResultName;

impl Comparison<'_> {
    /// The failure of a call at another commit, and the reason why it would run, unless the nearest result is of the same
    /// inputs. `None` if the record is too old to tell.
    pub(super) fn failed_elsewhere(
        &self,
        id: CallId,
        nearest: Option<usize>,
        inputs: &[Ingredient],
    ) -> Option<(ResultName, Why)> {
        if nearest.is_some_and(|at| self.archive.has_inputs(at, inputs)) {
            return None;
        }
        let computation = self.evaluation.computation(id)?;
        let (name, failure) =
            self.archive.failed(self.evaluation.plan.computation(id)?, inputs)?.clone();
        let (commit, tree) = (failure.commit.clone(), failure.tree.clone()?);
        let why = if tree == computation.tree && failure.is_isolated() {
            let log = self.evaluation.storage.attempts().failure_log(&name);
            Why::FailedLast { failure, log }
        } else {
            let old = CodeVersion { commit, tree, dirty: name.version().starts_with(DIRTY) };
            Why::of_version(computation, old)
        };
        Some((name, why))
    }
}
