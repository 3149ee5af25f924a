//! The evaluator: what all steps of all calls share. It says what a call needs and lacks, and why no more calls are
//! started.

use std::sync::atomic::Ordering;

use super::launcher::ExecutionSettings;
use super::step::CallStep;
use super::{Absence, Evaluation, Event, Outcome, StopReason};
use ce_model::digest::Digest;
use ce_model::plan::{CallId, Source};
use ce_model::resources::{Resources, WrongAmount};
use ce_storage::{Precedence, ResultName, Stored};

/// Evaluates the calls of one evaluation.
pub struct Evaluator<'a> {
    /// The evaluation, which gets the outcomes.
    pub evaluation: &'a Evaluation,
    /// The settings for executions. Without them, nothing is computed or written.
    pub execution: Option<ExecutionSettings<'a>>,
    /// Receives events, in the thread where they happen.
    pub observe: &'a (dyn Fn(Event) + Sync),
}

impl<'a> Evaluator<'a> {
    /// Returns the reason why no more calls are started, or `None`.
    fn stopped(&self) -> Option<StopReason> {
        let execution = self.execution?;
        if execution.executor.is_cancelled() {
            return Some(StopReason::Interruption);
        }
        if self.evaluation.storage.availability().away().is_some() {
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
        if (has_failed || outcome.is_lost())
            && self.evaluation.storage.availability().away().is_some()
        {
            return Outcome::Absent(outcome.name().clone(), Absence::Interrupted);
        }
        if has_failed && let Some(error) = self.evaluation.storage.availability().vanished() {
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

    /// Returns the digests of the inputs of a call, or its outcome if one is not to be had.
    pub(super) fn inputs(
        &self,
        sources: &[Source],
        name: impl Fn() -> ResultName,
    ) -> Result<Vec<Digest>, Outcome> {
        if self.evaluation.storage.availability().away().is_some() {
            return Err(self.not_started(name()));
        }
        match self.evaluation.derive(sources.iter().copied(), self.execution.is_some()) {
            Err(error) if error.is_interrupted() => return Err(self.not_started(name())),
            Err(error) => return Err(Outcome::failed(name(), error)),
            Ok(()) => {}
        }
        let inputs = sources.iter().map(|source| self.evaluation.digest(*source));
        inputs.collect::<Option<_>>().ok_or_else(|| {
            match self.evaluation.behind(sources).are_left_out() {
                true => Outcome::Absent(name(), Absence::LeftOut),
                false => self.without(sources, name()),
            }
        })
    }

    /// Demands the calls whose outputs are needed to know what these values are, such as members of them.
    pub(super) fn demand_derived(&self, sources: &[Source]) -> Option<CallStep<'a>> {
        let is_unknown = |source: &Source| match source {
            Source::Derived { value, .. } => !self.evaluation.is_derived(*value),
            _ => false,
        };
        let unknown: Vec<Source> = sources.iter().copied().filter(is_unknown).collect();
        let away = self.evaluation.behind(&unknown).away();
        (!away.is_empty()).then_some(CallStep::Demand(away))
    }

    /// Demands the calls whose outputs are away and needed. If they were demanded, and are not to be had, a call that needs
    /// them is over.
    pub(super) fn demand(&self, sources: &[Source], name: &ResultName) -> Option<CallStep<'a>> {
        let behind = self.evaluation.behind(sources);
        let away = behind.away();
        if !away.is_empty() {
            return Some(CallStep::Demand(away));
        }
        // Without execution, all of them are missing.
        self.execution.filter(|_| behind.lack_outputs())?;
        Some(CallStep::Ended(self.without(sources, name.clone())))
    }

    /// The outcome of a call that is not executed, since an input is not here.
    pub(super) fn without(&self, sources: &[Source], name: ResultName) -> Outcome {
        match self.execution {
            Some(_) if self.evaluation.behind(sources).are_suspended() => {
                Outcome::Absent(name, Absence::Waiting)
            }
            Some(_) if self.evaluation.behind(sources).are_not_over() => self.not_started(name),
            Some(_) => Outcome::Absent(name, Absence::Blocked),
            None if self.evaluation.behind(sources).are_given_up() => {
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

    /// Whether a call is executed even if it has outputs.
    pub(super) fn is_forced(&self, name: &ResultName) -> bool {
        self.execution.is_some_and(|it| it.policy.forced.contain(name))
    }

    /// The files that a call reads.
    pub(super) fn sources(&self, call: CallId) -> Vec<Stored> {
        let sources = self.evaluation.plan.inputs(call).iter();
        sources.filter_map(|source| self.evaluation.stored(*source)).collect()
    }

    /// Returns the resources that a call requests.
    pub(super) fn resources(&self, id: CallId) -> Result<Resources, WrongAmount> {
        let Evaluation { task, plan, .. } = self.evaluation;
        if task.resources.is_empty() {
            return Ok(Resources::default());
        }
        plan.resources(id).map(Option::unwrap_or_default)
    }

    /// Whether a call is isolated, wherever it is executed.
    pub(super) fn is_isolated(&self, settings: &ExecutionSettings<'_>, id: CallId) -> bool {
        match settings.queue {
            Some(queue) => queue.rules().isolates(&self.resources(id).unwrap_or_default()),
            None => settings.executor.isolates(),
        }
    }
}
