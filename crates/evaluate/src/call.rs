//! Processing a call: it is found in the storage, or executed with its lease.
//!
//! A pure function decides the state of a call from the result of the lookup and the demands. No step waits: it returns
//! what the next one needs.

use std::sync::Arc;

use super::evaluator::{AbsentCall, CallStep, Grants, SealedCall, SuspendedPlace, call_of};
use super::execution::CallRunner;
use super::suspended_calls::seen_suspended;
use super::sweep::gather;
use super::{Absence, CallError, CallFailure, Evaluator, Outcome, Unavailable};
use ce_exchange::can_fetch_files;
use ce_executor::is_within;
use ce_model::exit::Explain;
use ce_model::plan::{CallId, Operation, Planned};
use ce_storage::records::OutputSource;
use ce_storage::{
    Call, Damage, ExecutionMode, Found, Holder, Lease, Maintenance, Outputs, Precedence,
    PriorAttempt, ResultName, Sealed, StorageError,
};

/// The requests of an evaluation that decide what becomes of a call with outputs.
#[derive(Clone, Copy, Debug, Default)]
struct Demands {
    /// It is executed even if it has outputs.
    forced: bool,
    /// Its outputs are to be made if they are away.
    needed: bool,
    /// It is executed if it has no outputs, and unpacked if these are archives.
    executed: bool,
}

/// The state of a call after the lookup of its outputs.
#[derive(Debug)]
enum CallLookup {
    /// It is over.
    Ended(Outcome),
    /// It has outputs that may still be written.
    Unsettled(ResultName),
    /// It is to be executed, or is missing.
    Absent(ResultName, Option<Damage>),
}

impl CallLookup {
    /// Decides the state of a call by the result of the lookup.
    fn decide(found: Found, demands: Demands) -> Self {
        let Demands { forced, needed, executed } = demands;
        match found {
            Found::Hit(outputs) if forced => Self::Absent(outputs.name, None),
            Found::Hit(outputs) => Self::Ended(Outcome::Present(outputs, OutputSource::Reused)),
            Found::Away(outputs) if forced || needed => Self::Absent(outputs.name, None),
            Found::Away(outputs) => Self::Ended(Outcome::Known(outputs, Unavailable::Away)),
            Found::Archived(outputs) if executed => Self::Absent(outputs.name, None),
            Found::Archived(outputs) => Self::Ended(Outcome::Known(outputs, Unavailable::Archived)),
            Found::Absent { name, damage } => Self::Absent(name, damage),
            Found::Unsettled(name) => Self::Unsettled(name),
        }
    }
}

/// The result of looking for a call again, with its lease.
enum Recheck<'a> {
    /// It is over.
    Ended(Outcome),
    /// Its outputs are taken over, and are to be flushed and published.
    Sealed(Sealed<'a>),
    /// It is to be executed; this is known about earlier attempts.
    Absent(Option<Box<PriorAttempt>>),
    /// Another call has the name now.
    Taken,
}

impl<'a> Evaluator<'a> {
    /// Takes the steps of a ready call that need no waiting.
    pub(super) fn process_call(&self, id: CallId, grants: Grants) -> CallStep<'a> {
        let evaluation = self.evaluation;
        let storage = &*evaluation.storage;
        let planned = evaluation.plan.call(id);
        if !planned.is_needed() {
            return CallStep::Ended(Outcome::Absent(self.guess(planned), Absence::LeftOut));
        }
        let computation = match planned.operation {
            Operation::Computation(id) => &evaluation.task.computations[id.index()],
            Operation::Sweep(sweep) => return gather(self, id, evaluation.plan.sweep(sweep)),
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
        let (name, damage) = match self.look_up(id, call, guess) {
            CallLookup::Ended(outcome) => return CallStep::Ended(outcome),
            CallLookup::Unsettled(name) => return self.await_settled(name),
            CallLookup::Absent(name, damage) => (name, damage),
        };
        if planned.may_fail()
            && let Some(outcome) = self.remembered_failure(id, call, &name)
        {
            return CallStep::Ended(outcome);
        }
        let Some(runner) = CallRunner::from_evaluator(self) else {
            return self.only_look(id, call, name, damage);
        };
        let stopped = |name: ResultName| {
            let suspended = seen_suspended(storage, call, &name);
            CallStep::Ended(suspended.unwrap_or_else(|| self.not_started(name)))
        };
        if runner.launcher.settings.executor.is_cancelled() {
            return stopped(name);
        }
        let lease = match self.acquire(id, &name, call) {
            Ok(lease) => lease,
            Err((lease, holder)) => return self.held(name, lease, holder),
        };
        match self.recheck_under_lease(id, call, &name, damage) {
            Ok(Recheck::Ended(outcome)) => CallStep::Ended(outcome),
            Ok(Recheck::Sealed(sealed)) => CallStep::Sealed(SealedCall {
                id,
                computation,
                name,
                inputs,
                sealed,
                taken_over: true,
                remembered: true,
                precedence: Precedence::Recorded,
                place: SuspendedPlace::default(),
                _lease: lease,
            }),
            Ok(Recheck::Absent(_)) if self.has_stopped() => stopped(name),
            Ok(Recheck::Absent(_)) if let Some(step) = self.demand(&planned.inputs, &name) => step,
            Ok(Recheck::Absent(prior)) => {
                let absent = AbsentCall { id, computation, name, inputs, prior, lease };
                runner.resume(absent, grants)
            }
            Ok(Recheck::Taken) => {
                // From the beginning: with the lease of the longer name that it is to have.
                drop(lease);
                self.process_call(id, grants)
            }
            Err(error) => CallStep::Ended(Outcome::failed(name, error)),
        }
    }

    /// Looks for a call. `guess` is the name that it may have.
    fn look_up(
        &self,
        id: CallId,
        call: Call<'_>,
        guess: impl FnOnce() -> ResultName,
    ) -> CallLookup {
        let found = match self.evaluation.storage.calls().find(call) {
            Ok(found) => found,
            Err(error) => return CallLookup::Ended(Outcome::failed(guess(), error)),
        };
        let demands = self.demands(id, &found);
        match self.foreseen(found, demands) {
            Ok(found) => CallLookup::decide(found, demands),
            Err(outcome) => CallLookup::Ended(outcome),
        }
    }

    /// Treats outputs that a clone of a results repository could fetch as archived if nothing is to be computed. Nothing is fetched
    /// then, just as archives are not unpacked.
    fn foreseen(&self, found: Found, demands: Demands) -> Result<Found, Outcome> {
        let outputs = match found {
            Found::Away(outputs) if demands.needed && !demands.executed => outputs,
            found => return Ok(found),
        };
        match can_fetch_files(&self.evaluation.storage, &outputs) {
            Ok(true) => Ok(Found::Archived(outputs)),
            Ok(false) => Ok(Found::Away(outputs)),
            Err(error) => Err(Outcome::failed(outputs.name, CallError::Fetch(Arc::new(error)))),
        }
    }

    /// The requests that concern a call with this result of the lookup.
    fn demands(&self, id: CallId, found: &Found) -> Demands {
        let forced = match found {
            Found::Hit(outputs) | Found::Away(outputs) => self.is_forced(&outputs.name),
            Found::Archived(_) | Found::Absent { .. } | Found::Unsettled(_) => false,
        };
        let (needed, executed) = (self.evaluation.was_away(id), self.execution.is_some());
        Demands { forced, needed, executed }
    }

    /// Acquires the right to execute a call, or returns the run whose result is waited for, and its lease.
    fn acquire(
        &self,
        id: CallId,
        name: &ResultName,
        call: Call<'_>,
    ) -> Result<Lease<'a>, (ResultName, Holder)> {
        let storage = &*self.evaluation.storage;
        // A forced call is executed even if there is a result.
        if self.is_forced(name) {
            return storage.leases().acquire(name).map_err(|holder| (name.clone(), holder));
        }
        let isolates = self.execution.is_some_and(|settings| self.is_isolated(&settings, id));
        let mode = ExecutionMode { isolates, trusts_trees: storage.equivalents().trusts_trees() };
        // The holder may publish the result at any version, even one whose records are cached already.
        let lease = storage.leases().acquire_for_tree(name, call, mode);
        let lease = lease.inspect_err(|_| storage.equivalents().forget_versions(call.version))?;
        storage.equivalents().refresh_versions(call.version);
        Ok(lease)
    }

    /// The name that a call would have, as far as its inputs are known.
    fn guess(&self, planned: &Planned) -> ResultName {
        let Operation::Computation(computation) = planned.operation else {
            return ResultName::unknown_table();
        };
        let computation = &self.evaluation.task.computations[computation.index()];
        let known = planned.inputs.iter().map(|source| self.evaluation.digest(*source));
        self.evaluation.storage.calls().guess(computation.into(), known)
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
        name: ResultName,
        damage: Option<Damage>,
    ) -> CallStep<'a> {
        let away = self.evaluation.away_outputs(id);
        let outcome = match self.evaluation.storage.equivalents().find_equivalent(call) {
            Ok(Some(it)) if away.is_none() || !it.is_away() && is_same(away, &it.outputs) => {
                Outcome::of_equivalent(it)
            }
            Ok(_) if let Some(outcome) = seen_suspended(&self.evaluation.storage, call, &name) => {
                outcome
            }
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
        name: &ResultName,
        damage: Option<Damage>,
    ) -> Result<Recheck<'a>, StorageError> {
        if self.is_forced(name) {
            return Ok(Recheck::Absent(self.evaluation.storage.attempts().prior(name, damage)));
        }
        let collected = Maintenance::new(&self.evaluation.storage).restore(name)?;
        let mut away = self.evaluation.away_outputs(id).cloned();
        match self.evaluation.storage.calls().find_again(call, name)? {
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
        let storage = &self.evaluation.storage;
        let source = storage.equivalents().find_equivalent(call)?;
        if let Some(found) = source.as_ref().filter(|it| it.is_away() && away.is_none()) {
            return Ok(Recheck::Ended(Outcome::Known(found.outputs.clone(), Unavailable::Away)));
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
        let source = source.filter(|it| it.is_here() && is_same(away.as_ref(), &it.outputs));
        let Some(source) = source else { return Ok(absent()) };
        match self.evaluation.storage.equivalents().take_over(call, &source) {
            Ok(taken) => Ok(taken.map_or_else(absent, Recheck::Sealed)),
            // A user without write access uses the result in place.
            Err(error) if error.may_not_write() => {
                Ok(Recheck::Ended(Outcome::Present(source.outputs, OutputSource::TakenOver)))
            }
            Err(error) => Err(error),
        }
    }

    /// The outcome of an absent call that ended with an exit status before, or met the end of its range of limits, if that
    /// counts. The failure may be from another commit, of the same computation with the same inputs, like a result that is
    /// taken over.
    fn remembered_failure(&self, id: CallId, call: Call<'_>, name: &ResultName) -> Option<Outcome> {
        if self.execution.is_some_and(|it| it.policy.retry_failed) || self.is_forced(name) {
            return None;
        }
        let storage = &self.evaluation.storage;
        let attempts = storage.attempts();
        let own = attempts.prior(name, None).and_then(|prior| prior.failure);
        let own = own.filter(|record| record.inputs == call.inputs);
        let (place, record) = match own {
            Some(record) => (name.clone(), record),
            None => storage.equivalents().find_equivalent_failure(call).ok()??,
        };
        let failure = &record.failure;
        let is_final = failure.exit_status.is_some()
            || self.resources(id).is_ok_and(|resources| {
                resources.is_exhausted(&failure.attempts, self.memory_there())
            });
        // If another commit has succeeded since, that is taken over.
        if !is_final || storage.equivalents().find_equivalent(call).ok()?.is_some() {
            return None;
        }
        let error = Box::new(CallError::Remembered(Box::new(record)));
        let hint = error.hint();
        let log = attempts.failed_log(&place).ok().flatten();
        Some(Outcome::Absent(name.clone(), Absence::Failed(CallFailure { error, log, hint })))
    }

    /// The next step of a call whose lease is held by another run, or by another call of this run.
    fn held(&self, name: ResultName, lease: ResultName, holder: Holder) -> CallStep<'a> {
        if is_within(holder.process, &name.short(), lease != name) {
            CallStep::Ended(Outcome::failed(name, CallError::Within))
        } else if self.has_stopped() && !holder.own {
            CallStep::Ended(self.not_started(name))
        } else {
            CallStep::Held(lease, holder)
        }
    }
}

/// Whether outputs are the recorded ones, if these are known.
fn is_same(recorded: Option<&Outputs>, outputs: &Outputs) -> bool {
    recorded.is_none_or(|recorded| recorded.has_same(outputs))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::How;

    /// Returns the kind of outcome of a call with these found outputs; `None` if it is absent.
    fn decided(found: fn(Outputs) -> Found, demands: Demands) -> Option<How> {
        let outputs = Outputs { name: ResultName::unknown_table(), files: Box::default() };
        match CallLookup::decide(found(outputs), demands) {
            CallLookup::Ended(outcome) => Some(outcome.how()),
            CallLookup::Absent(..) => None,
            CallLookup::Unsettled(name) => panic!("{name:?}"),
        }
    }

    #[test]
    fn the_outcome_of_a_call_follows_from_its_outputs_and_its_demands() {
        let nothing = Demands::default();
        let (forced, needed) =
            (Demands { forced: true, ..nothing }, Demands { needed: true, ..nothing });
        let executed = Demands { executed: true, ..nothing };
        let kinds: [fn(Outputs) -> Found; 3] = [Found::Hit, Found::Away, Found::Archived];
        let (reused, away, archived) = (Some(How::Reused), Some(How::Away), Some(How::Archived));
        let expected = [
            [reused, None, reused, reused],
            [away, None, None, away],
            [archived, archived, archived, None],
        ];
        for (found, expected) in kinds.into_iter().zip(expected) {
            assert_eq!([nothing, forced, needed, executed].map(|it| decided(found, it)), expected);
        }
    }
}
