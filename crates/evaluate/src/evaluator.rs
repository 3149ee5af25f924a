//! The evaluator: the state that all steps of all calls share. It determines the needed and the missing inputs of a call,
//! and why no more calls are started.
//!
//! A `CallStep` is the state of a call after a step: it determines the next step, and has the data for it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::capacity::Reservation;
use crate::launcher::{ExecutionSettings, Launch};
use crate::retry::RetryPolicy;
use crate::{Absence, Evaluation, Event, Outcome, StopReason, SuspendedCall};
use ce_executor::{HostTurn, Invocation, TurnRequest};
use ce_model::digest::Digest;
use ce_model::plan::{CallId, PlanGrowth, Source};
use ce_model::resources::{LimitedAttempt, Resources, WrongAmount};
use ce_model::task::Computation;
use ce_storage::records::Ticket;
use ce_storage::{
    Call, Holder, Lease, Precedence, PriorAttempt, ResultName, Sealed, StorageError, Stored,
    Suspension,
};

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

    /// Blames a failure on the storage if the storage has vanished. If it does not answer, the run ends with this error,
    /// and failures of calls are not reported.
    pub(super) fn blame(&self, outcome: Outcome) -> Outcome {
        let has_failed = outcome.failure().is_some() || outcome.is_unreadable();
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

    /// Withdraws calls that no worker has begun, if no more calls are started.
    pub(super) fn stop_workers(&self) {
        if self.has_stopped()
            && let Some(workers) = self.execution.and_then(|it| it.queue)
        {
            workers.stop();
        }
    }

    /// Returns the digests of the inputs of a call, or its outcome if one is not available.
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

    /// Demands the calls whose outputs are needed to derive these values, such as members of them.
    pub(super) fn demand_derived(&self, sources: &[Source]) -> Option<CallStep<'a>> {
        let is_unknown = |source: &Source| match source {
            Source::Derived { value, .. } => !self.evaluation.is_derived(*value),
            _ => false,
        };
        let unknown: Vec<Source> = sources.iter().copied().filter(is_unknown).collect();
        let away = self.evaluation.behind(&unknown).away();
        (!away.is_empty()).then_some(CallStep::Demand(away))
    }

    /// Demands the calls whose outputs are away and needed. If they were demanded, and are not available, a call that
    /// needs them is over.
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

    /// The memory that calls may have in bytes, if it is known: it is not for calls that workers execute, and a worker leaves that to the run.
    pub(super) fn memory_there(&self) -> Option<u64> {
        let here = self.execution.filter(|it| it.leads && it.queue.is_none())?;
        here.executor.offer().memory
    }

    /// Whether a call is isolated, wherever it is executed.
    pub(super) fn is_isolated(&self, settings: &ExecutionSettings<'_>, id: CallId) -> bool {
        match settings.queue {
            Some(queue) => queue.rules().isolates(&self.resources(id).unwrap_or_default()),
            None => settings.executor.isolates(),
        }
    }
}

/// The state of a call after a step.
pub(super) enum CallStep<'a> {
    /// It is over.
    Ended(Outcome),
    /// It is to be executed, and waits for more than a slot.
    Reserve(Reservation),
    /// It is to be executed, and waits for a turn among the runs of the host; whether its reservation is granted.
    Enter(TurnRequest, bool),
    /// It is to be executed by a worker elsewhere.
    Queue(Box<QueuedCall>),
    /// It is to be executed.
    Submit(Box<Running<'a>>, Box<Invocation>),
    /// It was executed; its outputs are to be flushed and published.
    Sealed(SealedCall<'a>),
    /// It gathers a sweep. More points are known now, and it waits for the outputs of the body at each.
    Expand(PlanGrowth),
    /// It is suspended, and is to be looked at again in a while.
    Suspended(ResultName, SuspendedCall),
    /// It needs the outputs of these calls, which are away. It must be looked up again.
    Demand(Vec<CallId>),
    /// It is to be looked for again from the beginning.
    Again,
    /// Another run computes it, and has the lease of this name; it is to be looked for again when that is over.
    Held(ResultName, Holder),
    /// It has outputs without a record, which may still be written to. It must be looked up again.
    Unsettled(ResultName),
}

/// A call whose outputs must be flushed and published.
pub(super) struct SealedCall<'a> {
    pub(super) id: CallId,
    pub(super) computation: &'a Computation,
    pub(super) name: ResultName,
    pub(super) inputs: Vec<Digest>,
    pub(super) sealed: Sealed<'a>,
    /// Nothing was executed: the outputs are another commit's.
    pub(super) taken_over: bool,
    /// Something is remembered of the call, which is to be forgotten.
    pub(super) remembered: bool,
    /// Whether recorded or new outputs are kept if there are outputs already.
    pub(super) precedence: Precedence,
    /// The place that it had while it was suspended.
    pub(super) place: SuspendedPlace<'a>,
    /// Given back when the outputs are visible.
    pub(super) _lease: Lease<'a>,
}

/// A call that is to be executed.
pub(super) struct BegunCall<'a> {
    pub(super) id: CallId,
    pub(super) computation: &'a Computation,
    pub(super) name: ResultName,
    pub(super) inputs: Vec<Digest>,
    /// The files that it reads.
    pub(super) sources: Vec<Stored>,
    /// Something is remembered of it.
    pub(super) remembered: bool,
    /// The resources that it requests in this attempt.
    pub(super) resources: Resources,
    /// The executions that a limit has ended.
    pub(super) attempts: Box<[LimitedAttempt]>,
    /// Whether it is executed again if it does not succeed.
    pub(super) retries: RetryPolicy,
    /// Its place, if it is known that it may be suspended.
    pub(super) place: SuspendedPlace<'a>,
    pub(super) lease: Lease<'a>,
    /// Kept until it is over: who executes it again does not wait.
    pub(super) turn: HostTurn,
}

/// A call, while one of its programs is executed.
pub(super) enum Running<'a> {
    /// Its `exec`.
    Executed(BegunCall<'a>, Launch<'a>),
    /// The program that says how it stands, since it is suspended.
    Asked(AskedCall<'a>),
}

/// A suspended call that is asked how it stands.
pub(super) struct AskedCall<'a> {
    pub(super) absent: AbsentCall<'a>,
    pub(super) place: SuspendedPlace<'a>,
    pub(super) turn: HostTurn,
    pub(super) launch: Launch<'a>,
}

/// A call that a worker elsewhere executes.
pub(super) struct QueuedCall {
    pub(super) id: CallId,
    pub(super) name: ResultName,
    pub(super) ticket: Ticket,
    /// Whether it is queued again if it does not succeed.
    pub(super) retries: RetryPolicy,
    /// The earlier attempt that is recorded of it, until it was reported that a worker executes the call.
    pub(super) unreported: Option<Option<Box<PriorAttempt>>>,
}

impl SealedCall<'_> {
    /// Throws the outputs away, which could not be flushed.
    pub(super) fn give_up(self, error: Arc<StorageError>) -> Outcome {
        Outcome::failed(self.name, error)
    }
}

impl BegunCall<'_> {
    /// The call that is executed, at the commit that began it.
    pub(super) fn call(&self) -> Call<'_> {
        call_as_begun(call_of(self.computation, &self.inputs), self.place.suspension.as_deref())
    }

    /// The name under which it is published.
    pub(super) fn published_name(&self) -> &ResultName {
        self.place.suspension.as_ref().map_or(&self.name, |suspension| &suspension.name)
    }
}

/// A call under the commit that began it.
pub(super) fn call_as_begun<'b>(call: Call<'b>, suspension: Option<&'b Suspension>) -> Call<'b> {
    let version = suspension.map_or(call.version, |it| it.record.version());
    Call { version, ..call }
}

/// Returns the key by which the storage knows a call.
pub(super) fn call_of<'a>(computation: &'a Computation, inputs: &'a [Digest]) -> Call<'a> {
    Call { version: computation.into(), inputs, outputs: &computation.outputs }
}

/// A call that is to be executed, and its earlier attempts.
pub(super) struct AbsentCall<'a> {
    pub(super) id: CallId,
    pub(super) computation: &'a Computation,
    pub(super) name: ResultName,
    pub(super) inputs: Vec<Digest>,
    pub(super) prior: Option<Box<PriorAttempt>>,
    pub(super) lease: Lease<'a>,
}

/// The place of a call that is suspended, or may be.
#[derive(Default)]
pub(super) struct SuspendedPlace<'a> {
    pub(super) suspension: Option<Box<Suspension>>,
    /// The lease of the name under which it was begun, if that is another.
    pub(super) _lease: Option<Lease<'a>>,
}

/// Resources that a call in progress was granted.
#[derive(Debug, Default)]
pub(super) struct Grants {
    /// Whether all requested resources are reserved.
    pub(super) is_reserved: bool,
    pub(super) turn: Option<HostTurn>,
}
