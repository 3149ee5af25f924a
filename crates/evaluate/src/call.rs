//! Processing a call: it is found in the storage, or executed with its lease.
//!
//! No step waits: it returns what the next one needs.

use super::exports::MAX_TRIES;
use super::grants::{Footing, turn_request};
use super::publish::is_same;
use super::step::{AbsentCall, CallStep, Executed, Pending, QueuedCall, SuspendedPlace, call_of};
use super::ticket::{self, TicketCall};
use super::{Absence, Evaluator, Event, ExecutionSettings, Outcome, Unavailable};
use ce_model::digest::Digest;
use ce_model::plan::{CallId, Operation, Planned, Source};
use ce_model::resources::Resources;
use ce_storage::records::{OutputSource, TicketEnd};
use ce_storage::{
    Call, Damage, Equivalent, ExecutionMode, Found, Holder, Lease, Maintenance, Precedence,
    PriorAttempt, ResultName, Sealed, StorageError, Stored,
};

/// The result of looking for a call again, with its lease.
enum Recheck<'a> {
    /// It is over.
    Ended(Outcome),
    /// Its outputs are taken over, and are to be flushed and published.
    Sealed(Sealed<'a>),
    /// It is to be executed; this is remembered of it.
    Absent(Option<Box<PriorAttempt>>),
    /// Another call has the name by now.
    Taken,
}

impl<'a> Evaluator<'a> {
    /// Does for a ready call what can be done at once.
    pub(super) fn process_call(&self, id: CallId, footing: Footing) -> CallStep<'a> {
        let evaluation = self.evaluation;
        let planned = evaluation.plan.call(id);
        if !planned.is_needed() {
            return CallStep::Ended(Outcome::Absent(self.guess(planned), Absence::LeftOut));
        }
        let computation = match planned.operation {
            Operation::Computation(id) => &evaluation.task.computations[id.index()],
            Operation::Sweep(sweep) => return self.gather(id, evaluation.plan.sweep(sweep)),
        };
        if let Some(step) = self.demand_derived(&planned.inputs) {
            return step;
        }
        let guess = || self.guess(planned);
        let inputs = match self.inputs(&planned.inputs, guess) {
            Ok(inputs) => inputs,
            Err(outcome) => return CallStep::Ended(outcome),
        };
        let call = call_of(computation, &inputs);
        let (name, damage) = match self.find(id, call, guess) {
            Ok(Found::Hit(outputs) | Found::Away(outputs) | Found::Archived(outputs)) => {
                (outputs.name, None)
            }
            Ok(Found::Absent { name, damage }) => (name, damage),
            Ok(Found::Unsettled(name)) => return self.await_settled(name),
            Err(outcome) => return CallStep::Ended(outcome),
        };
        if planned.may_fail()
            && let Some(outcome) = self.remembered_failure(call, &name)
        {
            return CallStep::Ended(outcome);
        }
        let Some(settings) = &self.execution else {
            return self.only_look(id, call, (name, damage));
        };
        let stopped = |name: ResultName| {
            let suspended = self.seen_suspended(call, &name);
            CallStep::Ended(suspended.unwrap_or_else(|| self.not_started(name)))
        };
        if settings.executor.is_cancelled() {
            return stopped(name);
        }
        let lease = match self.acquire(settings, (id, &name), call) {
            Ok(lease) => lease,
            Err((lease, holder)) => return self.held(name, lease, holder),
        };
        match self.recheck_under_lease(id, call, (&name, damage)) {
            Ok(Recheck::Ended(outcome)) => CallStep::Ended(outcome),
            Ok(Recheck::Sealed(sealed)) => CallStep::Executed(Executed {
                id,
                computation,
                name,
                inputs,
                sealed,
                taken_over: true,
                remembered: true,
                precedence: Precedence::Recorded,
                suspension: None,
                _leases: (lease, None),
            }),
            Ok(Recheck::Absent(_)) if self.has_stopped() => stopped(name),
            Ok(Recheck::Absent(_)) if let Some(step) = self.demand(&planned.inputs, &name) => step,
            Ok(Recheck::Absent(prior)) => {
                let absent = AbsentCall { id, computation, name, inputs, prior, lease };
                self.resume(settings, absent, footing)
            }
            Ok(Recheck::Taken) => {
                // From the beginning: with the lease of the longer name that it is to have.
                drop(lease);
                self.process_call(id, footing)
            }
            Err(error) => CallStep::Ended(Outcome::failed(name, error)),
        }
    }

    /// Looks for the outputs of a call. Returns its outcome if these are used as they are found.
    fn find(
        &self,
        id: CallId,
        call: Call<'_>,
        guess: impl Fn() -> ResultName,
    ) -> Result<Found, Outcome> {
        match self.evaluation.storage.find(call) {
            Ok(Found::Hit(outputs)) if !self.is_forced(&outputs.name) => {
                Err(Outcome::Present(outputs, OutputSource::Reused))
            }
            Ok(Found::Away(outputs)) if !self.is_needed(id, &outputs.name) => {
                Err(Outcome::Known(outputs, Unavailable::Away))
            }
            Ok(Found::Archived(outputs)) if self.execution.is_none() => {
                Err(Outcome::Known(outputs, Unavailable::Archived))
            }
            Ok(found) => Ok(found),
            Err(error) => Err(Outcome::failed(guess(), error)),
        }
    }

    /// Acquires the right to execute a call, or returns the run whose result is waited for, and its lease.
    fn acquire(
        &self,
        settings: &ExecutionSettings<'_>,
        (id, name): (CallId, &ResultName),
        call: Call<'_>,
    ) -> Result<Lease<'a>, (ResultName, Holder)> {
        let storage = &*self.evaluation.storage;
        // One that is forced is executed even if there is a result.
        if self.is_forced(name) {
            return storage.leases().acquire(name).map_err(|holder| (name.clone(), holder));
        }
        let (isolates, trusts_trees) =
            (self.is_isolated(settings, id), storage.equivalents().trusts_trees());
        let mode = ExecutionMode { isolates, trusts_trees };
        let lease = storage.leases().acquire_for_tree(name, call, mode)?;
        storage.equivalents().refresh_versions(call.version);
        Ok(lease)
    }

    /// Executes a call, if it has what it asks for.
    pub(super) fn begin(
        &self,
        settings: &ExecutionSettings<'_>,
        (absent, suspended): (AbsentCall<'a>, SuspendedPlace<'a>),
        footing: Footing,
    ) -> CallStep<'a> {
        let (id, name) = (absent.id, absent.name.clone());
        let resources = match self.resources(id) {
            Ok(resources) => resources,
            Err(error) => return CallStep::Ended(Outcome::failed(name, error)),
        };
        if settings.queue.is_some() {
            return self.queue(settings, absent, resources);
        }
        if !footing.is_reserved {
            match self.reservation(settings, &resources) {
                Ok(None) => {}
                // The lease is released: a call that waits may be executed by another run.
                Ok(Some(reservation)) => return CallStep::Reserve(reservation),
                Err(misfit) => return CallStep::Ended(Outcome::failed(name, misfit)),
            }
        }
        let turn = match self.turn(settings, footing, turn_request(&resources), &name) {
            Ok(turn) => turn,
            Err(step) => return *step,
        };
        let (suspension, first) = match self.place(settings, &absent, suspended) {
            Ok(place) => place,
            Err(step) => return *step,
        };
        let AbsentCall { computation, inputs, prior, lease, .. } = absent;
        let remembered = prior.is_some();
        let sources = self.sources(self.evaluation.plan.call(id));
        (self.observe)(Event::Started(id, name.clone(), prior));
        let retries = settings.policy.retries;
        let pending = Pending {
            id,
            computation,
            name,
            inputs,
            sources,
            remembered,
            resources,
            retries,
            replacements: retries.saturating_add(1),
            exports: MAX_TRIES,
            suspension,
            leases: (lease, first),
            turn,
        };
        self.attempt(settings, pending)
    }

    /// Lets a worker execute a call. The lease is released: the worker acquires it when it begins.
    fn queue(
        &self,
        settings: &ExecutionSettings<'_>,
        absent: AbsentCall<'a>,
        resources: Resources,
    ) -> CallStep<'a> {
        let AbsentCall { id, computation, name, prior, lease, .. } = absent;
        if let Err(error) = lease.release() {
            return CallStep::Ended(Outcome::failed(name, error));
        }
        let Some(queue) = settings.queue else {
            return CallStep::Ended(self.not_started(name));
        };
        let standing = match settings.exports.for_workers(computation) {
            Ok(standing) => standing,
            Err(error) => return CallStep::Ended(Outcome::failed(name, error)),
        };
        let values = self.sources(self.evaluation.plan.call(id));
        let (task, forced) = (&*self.evaluation.task, self.is_forced(&name));
        let call = TicketCall {
            task,
            computation,
            standing,
            values: &values,
            resources,
            forced,
            accept: settings.policy.accept,
            audited: false,
        };
        let ticket = call.write(queue.rules());
        (self.observe)(Event::Queued(id, name.clone()));
        let (retries, untold) = (settings.policy.retries, Some(prior));
        CallStep::Queue(Box::new(QueuedCall { id, name, ticket, retries, untold }))
    }

    /// Tells that a worker executes a call, once.
    pub(super) fn tell_begun(&self, queued: &mut QueuedCall) {
        if let Some(prior) = queued.untold.take() {
            (self.observe)(Event::Started(queued.id, queued.name.clone(), prior));
        }
    }

    /// Goes on with a call that a worker has answered.
    pub(super) fn conclude_at_worker(
        &self,
        mut queued: QueuedCall,
        end: Option<TicketEnd>,
    ) -> CallStep<'a> {
        let storage = &self.evaluation.storage;
        let Some(end) = end else {
            // After a failure, only what no worker has is withdrawn, also if one had it earlier.
            let is_cancelled = self.execution.is_some_and(|it| it.executor.is_cancelled());
            return CallStep::Ended(match queued.untold {
                None if is_cancelled => Outcome::Absent(queued.name, Absence::Interrupted),
                _ => self.not_started(queued.name),
            });
        };
        let is_executed = match &end {
            TicketEnd::Published(call) => call.source == OutputSource::Executed,
            end => matches!(end, TicketEnd::Failed(_) | TicketEnd::OutOfTime(_)),
        };
        // Nothing is gained by trying it again.
        let may_pass = !matches!(end, TicketEnd::OutOfTime(_));
        if is_executed {
            self.tell_begun(&mut queued);
        }
        let outcome = ticket::outcome(storage, &queued.name, end);
        storage.note_published(&queued.name);
        if let Some(suspended) = outcome.suspended() {
            return self.suspended(queued.id, queued.name, suspended.clone());
        }
        if outcome.failure().is_some_and(|failure| !failure.error.is_storage())
            && may_pass
            && !self.has_stopped()
            && let Some(left) = queued.retries.checked_sub(1)
        {
            queued.retries = left;
            (self.observe)(Event::Retried(queued.id, Box::new(outcome)));
            return CallStep::Queue(Box::new(queued));
        }
        CallStep::Ended(outcome)
    }

    /// The name that a call would have, as far as its inputs are known.
    fn guess(&self, planned: &Planned) -> ResultName {
        let Operation::Computation(computation) = planned.operation else {
            return ResultName::unknown_table();
        };
        let computation = &self.evaluation.task.computations[computation.index()];
        let known = planned.inputs.iter().map(|source| self.evaluation.digest(*source));
        self.evaluation.storage.guess(computation.into(), known)
    }

    /// Returns the digests of the inputs of a call, or its outcome if one is not to be had.
    pub(super) fn inputs(
        &self,
        sources: &[Source],
        name: impl Fn() -> ResultName,
    ) -> Result<Vec<Digest>, Outcome> {
        if self.evaluation.storage.away().is_some() {
            return Err(self.not_started(name()));
        }
        match self.evaluation.derive(sources.iter().copied(), self.execution.is_some()) {
            Err(error) if error.is_interrupted() => return Err(self.not_started(name())),
            Err(error) => return Err(Outcome::failed(name(), error)),
            Ok(()) => {}
        }
        let inputs = sources.iter().map(|source| self.evaluation.digest(*source));
        inputs.collect::<Option<_>>().ok_or_else(|| match self.evaluation.are_left_out(sources) {
            true => Outcome::Absent(name(), Absence::LeftOut),
            false => self.without(sources, name()),
        })
    }

    /// Whether a call is executed even if it has outputs.
    pub(super) fn is_forced(&self, name: &ResultName) -> bool {
        self.execution.is_some_and(|it| it.policy.forced.contains(name))
    }

    /// The next step of a call whose outputs may still be written.
    fn await_settled(&self, name: ResultName) -> CallStep<'a> {
        match self.execution {
            Some(_) if self.has_stopped() => CallStep::Ended(self.not_started(name)),
            Some(_) => CallStep::Unsettled(name),
            None => CallStep::Ended(Outcome::Absent(name, Absence::Missing(None))),
        }
    }

    /// The outcome of an absent call where nothing is computed.
    fn only_look(
        &self,
        id: CallId,
        call: Call<'_>,
        (name, damage): (ResultName, Option<Damage>),
    ) -> CallStep<'a> {
        let away = self.evaluation.away_outputs(id);
        let outcome = match self.evaluation.storage.equivalents().find_equivalent(call) {
            Ok(Some(it)) if away.is_none() || !it.is_away() && is_same(away, &it.outputs) => {
                Outcome::of_equivalent(it)
            }
            Ok(_) if let Some(outcome) = self.seen_suspended(call, &name) => outcome,
            Ok(_) => {
                let inputs = &self.evaluation.plan.call(id).inputs;
                if let Some(step) = self.demand(inputs, &name) {
                    return step;
                }
                let mut prior = self.evaluation.storage.attempts().prior(&name, damage);
                if away.is_some() {
                    prior.get_or_insert_default().away = true;
                }
                Outcome::Absent(name, Absence::Missing(prior))
            }
            Err(error) => Outcome::failed(name, error),
        };
        CallStep::Ended(outcome)
    }

    /// Looks again for a call with its lease: the previous holder may have just published, or died
    /// while collecting it. Or another commit has an equivalent result.
    fn recheck_under_lease(
        &self,
        id: CallId,
        call: Call<'_>,
        (name, damage): (&ResultName, Option<Damage>),
    ) -> Result<Recheck<'a>, StorageError> {
        if self.is_forced(name) {
            return Ok(Recheck::Absent(self.evaluation.storage.attempts().prior(name, damage)));
        }
        let collected = Maintenance::new(&self.evaluation.storage).restore(name)?;
        let mut away = self.evaluation.away_outputs(id).cloned();
        match self.evaluation.storage.find_again(call, name)? {
            Found::Hit(outputs) => {
                return Ok(Recheck::Ended(Outcome::Present(outputs, OutputSource::Reused)));
            }
            Found::Away(outputs) if outputs.name != *name => return Ok(Recheck::Taken),
            Found::Away(outputs) => away = Some(outputs),
            Found::Absent { name: other, .. } | Found::Unsettled(other) if other != *name => {
                return Ok(Recheck::Taken);
            }
            Found::Absent { .. } | Found::Archived(_) | Found::Unsettled(_) => {}
        }
        let source = self.evaluation.storage.equivalents().find_equivalent(call)?;
        if let Some(source) = source.as_ref().filter(|it| it.is_away() && away.is_none()) {
            return Ok(Recheck::Ended(Outcome::Known(source.outputs.clone(), Unavailable::Away)));
        }
        let is_away = away.is_some();
        let absent = || {
            let attempts = self.evaluation.storage.attempts();
            let mut prior = attempts.prior_beside(name, collected, damage);
            if is_away {
                prior.get_or_insert_default().away = true;
            }
            Recheck::Absent(prior)
        };
        let may_serve = |it: &Equivalent| it.is_here() && is_same(away.as_ref(), &it.outputs);
        let Some(source) = source.filter(may_serve) else { return Ok(absent()) };
        match self.evaluation.storage.equivalents().take_over(call, &source) {
            Ok(taken) => Ok(taken.map_or_else(absent, Recheck::Sealed)),
            // A user without write access uses the result in place.
            Err(error) if error.may_not_write() => {
                Ok(Recheck::Ended(Outcome::Present(source.outputs, OutputSource::TakenOver)))
            }
            Err(error) => Err(error),
        }
    }

    /// The files that a call reads.
    pub(super) fn sources(&self, planned: &Planned) -> Vec<Stored> {
        planned.inputs.iter().filter_map(|source| self.evaluation.stored(*source)).collect()
    }
}
