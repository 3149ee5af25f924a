//! Calls whose outputs are away: known, and deliberately not here.
//!
//! Such a call is over as soon as it is found, and calls that read it are looked up with the recorded digests. Where its outputs
//! themselves are needed it is demanded: it is processed once more, like a missing call, and what it makes must be what is recorded.

use super::step::CallStep;
use super::{Absence, CallError, Evaluation, Evaluator, How, Outcome};
use ce_model::plan::{CallId, Source};
use ce_storage::{Deviation, Precedence, PublishError, ResultName, Survey};

impl Evaluation {
    /// Whether the outputs of a call were away when it was found.
    pub(super) fn was_away(&self, call: CallId) -> bool {
        self.away_outputs(call).is_some()
    }

    /// The calls behind these values whose outputs are away still, and that were not demanded.
    fn away_behind(&self, sources: impl Iterator<Item = Source>) -> Vec<CallId> {
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

impl<'a> Evaluator<'a> {
    /// Whether the outputs of a call are to be made, which are away.
    pub(super) fn is_needed(&self, id: CallId, name: &ResultName) -> bool {
        self.evaluation.was_away(id) || self.is_forced(name)
    }

    /// Demands the calls whose outputs are needed to know what these values are, such as members of them.
    pub(super) fn demand_derived(&self, sources: &[Source]) -> Option<CallStep<'a>> {
        let is_unknown = |source: &Source| match source {
            Source::Derived { value, .. } => !self.evaluation.is_derived(*value),
            _ => false,
        };
        let away = self.evaluation.away_behind(sources.iter().copied().filter(is_unknown));
        (!away.is_empty()).then_some(CallStep::Demand(away))
    }

    /// Demands the calls whose outputs are away and needed. If they were demanded, and are not to be had, a call that needs
    /// them is over.
    pub(super) fn demand(&self, sources: &[Source], name: &ResultName) -> Option<CallStep<'a>> {
        let away = self.evaluation.away_behind(sources.iter().copied());
        if !away.is_empty() {
            return Some(CallStep::Demand(away));
        }
        let lacks = sources.iter().any(|source| self.evaluation.lacks_outputs(*source));
        // Without execution, all of them are missing.
        self.execution.filter(|_| lacks)?;
        Some(CallStep::Ended(self.without(sources, name.clone())))
    }

    /// The outcome of a call that is not executed, since an input is not here.
    pub(super) fn without(&self, sources: &[Source], name: ResultName) -> Outcome {
        match self.execution {
            Some(_) if self.evaluation.await_suspended(sources) => {
                Outcome::Absent(name, Absence::Waiting)
            }
            Some(_) if self.evaluation.await_not_started(sources) => self.not_started(name),
            Some(_) => Outcome::Absent(name, Absence::Blocked),
            None if self.evaluation.await_failures(sources) => {
                Outcome::Absent(name, Absence::Blocked)
            }
            None => Outcome::Absent(name, Absence::Missing(None)),
        }
    }

    /// Returns whether recorded or new outputs are kept under a name if a call is executed again.
    pub(super) fn precedence(&self, name: &ResultName) -> Precedence {
        match self.execution {
            _ if self.is_forced(name) => Precedence::New,
            Some(settings) if settings.policy.accept => Precedence::NewOfAway,
            _ => Precedence::Recorded,
        }
    }

    /// Counts the recorded calls that were made from outputs which cannot be made again.
    pub(super) fn counted(&self, mut deviation: Box<Deviation>) -> CallError {
        let recorded: Vec<_> = deviation.outputs.iter().map(|output| output.recorded).collect();
        // Only the count is lost.
        deviation.readers =
            Survey::new(&self.evaluation.storage).readers(&recorded).unwrap_or_default();
        PublishError::Deviates(deviation).into()
    }
}
