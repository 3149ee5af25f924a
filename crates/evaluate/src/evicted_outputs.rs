//! Calls whose outputs are away: known, and deliberately not here.
//!
//! Such a call is over as soon as it is found, and calls that read it are looked up with the recorded digests. Where its outputs
//! themselves are needed it is demanded: it is processed once more, like a missing call, and what it makes must be what is recorded.

use super::{Evaluation, How, Outcome};
use ce_model::plan::{CallId, Source};

impl Evaluation {
    /// Whether the outputs of a call were away when it was found.
    pub(super) fn was_away(&self, call: CallId) -> bool {
        self.away_outputs(call).is_some()
    }

    /// The calls behind these values whose outputs are away still, and that were not demanded.
    pub(super) fn away_behind(&self, sources: impl Iterator<Item = Source>) -> Vec<CallId> {
        let mut away: Vec<CallId> = sources
            .filter_map(|source| self.plan.awaited(source))
            .filter(|call| self.outcome(*call).map(Outcome::how) == Some(How::Away))
            .collect();
        away.sort_unstable();
        away.dedup();
        away
    }

    /// Whether a value is known and not here, since the outputs of the call behind it are away.
    pub fn lacks_outputs(&self, source: Source) -> bool {
        let call = self.plan.awaited(source);
        call.is_some_and(|call| {
            self.was_away(call) && self.outcome(call).is_none_or(|it| it.outputs().is_none())
        })
    }

    /// Whether a call that was away has made other outputs than were recorded, and these were accepted: calls that were
    /// found before were made from the others.
    pub fn has_replaced(&self) -> bool {
        self.plan.calls().any(|(call, _)| {
            let now = self.outcome(call).and_then(Outcome::outputs);
            self.away_outputs(call).zip(now).is_some_and(|(away, now)| !away.has_same(now))
        })
    }
}
