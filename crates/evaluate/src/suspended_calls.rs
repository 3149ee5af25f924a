//! Suspended calls: they are asked for their status, and continued where and as they were begun.
//!
//! A call that has a place in the storage is continued there, under the commit that began it, even if another commit asks for it.
//! When it is over, it is published under its first name, and then taken over like any result of another commit.

use super::evaluator::{AbsentCall, BegunCall, CallStep, SuspendedPlace, call_of};
use super::launcher::{CallLauncher, own_key};
use super::ticket::ticket_value;
use super::{Absence, CallError, Evaluator, ExecutionSettings, Outcome, SuspendedCall};
use ce_model::plan::CallId;
use ce_model::task::Computation;
use ce_storage::records::{Provenance, SuspensionRecord, SuspensionState, TicketValue, WaitingJob};
use ce_storage::{
    Call, FoundSuspension, ResultName, Stage, Storage, StorageError, Stored, Suspension,
};

/// The outcome of an absent call that is suspended, where nothing is computed.
pub(super) fn seen_suspended(
    storage: &Storage,
    call: Call<'_>,
    name: &ResultName,
) -> Option<Outcome> {
    let (FoundSuspension::Same(found) | FoundSuspension::Unlike(found)) =
        storage.suspensions().find(call, true).ok()?
    else {
        return None;
    };
    let suspended = SuspendedCall { name: found.name, line: None, continues: true };
    let is_suspended = found.record.state == SuspensionState::Suspended;
    is_suspended.then(|| Outcome::Absent(name.clone(), Absence::Suspended(suspended)))
}

/// The suspended calls of an evaluation, and the calls that may suspend.
#[derive(Clone, Copy)]
pub(super) struct SuspendedCalls<'e, 'a> {
    pub(super) evaluator: &'e Evaluator<'a>,
    pub(super) launcher: CallLauncher<'a>,
}

impl<'a> SuspendedCalls<'_, 'a> {
    /// Finds the place of an absent call, and acquires the lease of the name under which it was begun.
    pub(super) fn find(
        &self,
        absent: &AbsentCall<'a>,
    ) -> Result<SuspendedPlace<'a>, Box<CallStep<'a>>> {
        self.try_find(absent).unwrap_or_else(|error| {
            Err(Box::new(CallStep::Ended(Outcome::failed(absent.name.clone(), error))))
        })
    }

    fn try_find(
        &self,
        absent: &AbsentCall<'a>,
    ) -> Result<Result<SuspendedPlace<'a>, Box<CallStep<'a>>>, StorageError> {
        let storage = self.launcher.storage;
        let suspensions = storage.suspensions();
        let call = call_of(absent.computation, &absent.inputs);
        if !absent.computation.access.suspends() && !suspensions.may_exist()? {
            return Ok(Ok(SuspendedPlace::default()));
        }
        let is_isolated = self.evaluator.is_isolated(&self.launcher.settings, absent.id);
        let found = match suspensions.find(call, is_isolated)? {
            FoundSuspension::Absent => return Ok(Ok(SuspendedPlace::default())),
            FoundSuspension::Unlike(found) => {
                let line = match found.record.isolated {
                    true => "it was begun isolated, and this run does not isolate",
                    false => "it was begun without isolation, and this run isolates",
                };
                let line = Some(format!("{line}; continue it as it was begun, or use ce cancel"));
                let suspended = SuspendedCall { name: found.name, line, continues: false };
                let step = self.wait(absent.id, absent.name.clone(), suspended);
                return Ok(Err(Box::new(step)));
            }
            FoundSuspension::Same(found) if suspensions.is_closed(&found.name)? => {
                let line = "another user has begun it, and only that user can continue it";
                let line = Some(line.to_owned());
                let suspended = SuspendedCall { name: found.name, line, continues: false };
                let step = self.wait(absent.id, absent.name.clone(), suspended);
                return Ok(Err(Box::new(step)));
            }
            FoundSuspension::Same(found) => found,
        };
        if found.name == absent.name {
            return Ok(Ok(SuspendedPlace { suspension: Some(found), _lease: None }));
        }
        let lease = match storage.leases().acquire(&found.name) {
            Err(holder) => return Ok(Err(Box::new(CallStep::Held(found.name, holder)))),
            Ok(lease) => lease,
        };
        if let FoundSuspension::Same(again) = suspensions.find(call, is_isolated)?
            && again.name == found.name
        {
            return Ok(Ok(SuspendedPlace { suspension: Some(again), _lease: Some(lease) }));
        }
        // It was over, or given up, before there was the lease.
        storage.equivalents().forget_versions(call.version);
        Ok(Err(Box::new(CallStep::Again)))
    }

    /// Notes that a call is suspended for another commit, so this commit cannot continue it.
    pub(super) fn note_elsewhere(&self, absent: &mut AbsentCall<'a>) {
        let call = call_of(absent.computation, &absent.inputs);
        let suspensions = self.evaluator.evaluation.storage.suspensions();
        if suspensions.may_exist().unwrap_or(false)
            && let Ok(Some(other)) = suspensions.elsewhere(call)
        {
            absent.prior.get_or_insert_default().suspended = Some(other.short());
        }
    }

    /// Makes the place of a call before `exec` is started, if the call is continued or may suspend.
    pub(super) fn make(
        &self,
        absent: &AbsentCall<'a>,
        found: SuspendedPlace<'a>,
    ) -> Result<SuspendedPlace<'a>, Box<CallStep<'a>>> {
        if found.suspension.is_none() && !absent.computation.access.suspends() {
            return Ok(found);
        }
        let storage = self.launcher.storage;
        let made = self.try_make(absent, found);
        let error = match made {
            Ok((place, None)) => return Ok(place),
            // Another commit has begun it meanwhile.
            Ok((_, Some(other))) => {
                return Err(Box::new(match storage.leases().holder(&other) {
                    Some(holder) => CallStep::Held(other, holder),
                    None => CallStep::Again,
                }));
            }
            Err(error) => error,
        };
        Err(Box::new(CallStep::Ended(Outcome::failed(absent.name.clone(), error))))
    }

    /// Makes the place of a call, or returns the name under which another commit has begun it.
    fn try_make(
        &self,
        absent: &AbsentCall<'a>,
        mut place: SuspendedPlace<'a>,
    ) -> Result<(SuspendedPlace<'a>, Option<ResultName>), CallError> {
        let suspensions = self.launcher.storage.suspensions();
        let mut suspension = match place.suspension.take() {
            Some(found) => found,
            None => {
                let values = self.evaluator.sources(absent.id);
                let made = self.suspension(absent.computation, &absent.name, &values)?;
                // Its place may be there, and the index have lost it.
                let kept = suspensions.read(&absent.name)?.filter(|kept| {
                    kept.record.digests() == *absent.inputs
                        && kept.record.isolated == made.record.isolated
                });
                Box::new(kept.unwrap_or(made))
            }
        };
        suspension.record.add_job(&self.waiting_job());
        let other = suspensions.begin(&mut suspension)?;
        place.suspension = Some(suspension);
        Ok((place, other))
    }

    /// A call that has not been suspended yet.
    fn suspension(
        &self,
        computation: &Computation,
        name: &ResultName,
        values: &[Stored],
    ) -> Result<Suspension, CallError> {
        let inputs: Vec<TicketValue> = values.iter().map(ticket_value).collect();
        let recorded = Provenance::now();
        let mut record = SuspensionRecord {
            format: SuspensionRecord::format_of(&inputs),
            computation: computation.name.clone(),
            commit: computation.commit.clone(),
            tree: computation.tree.clone(),
            dirty: computation.dirty,
            // Its programs are needed as long as it is suspended, wherever its repository is.
            export: self.launcher.settings.exports.for_workers(computation)?,
            inputs,
            input_names: computation.inputs.clone(),
            output_names: computation.outputs.clone(),
            access: computation.access.rules.iter().map(ToString::to_string).collect(),
            isolated: self.launcher.settings.executor.isolates(),
            state: SuspensionState::Executing,
            attempts: 0,
            since: recorded.at,
            jobs: vec![self.waiting_job()],
            recorded,
            code: None,
        };
        // Without a code, the call cannot be asked in a storage that others may write.
        record.code = own_key().map(|key| record.code_of(name, &key));
        Ok(Suspension { name: name.clone(), record })
    }

    /// The next step of a call that says that it is still suspended.
    pub(super) fn remain(
        &self,
        absent: AbsentCall<'a>,
        place: &mut SuspendedPlace<'a>,
        line: Option<String>,
    ) -> CallStep<'a> {
        let Some(suspension) = &mut place.suspension else { return CallStep::Again };
        let job = self.waiting_job();
        // It is displayed, and nothing more.
        drop(self.launcher.storage.suspensions().add_job(suspension, &job));
        let name = suspension.name.clone();
        self.wait(absent.id, absent.name, SuspendedCall { name, line, continues: true })
    }

    /// The next step of a call that is suspended.
    pub(super) fn wait(
        &self,
        id: CallId,
        name: ResultName,
        suspended: SuspendedCall,
    ) -> CallStep<'a> {
        self.evaluator.evaluation.continuable.set(id, false);
        let ExecutionSettings { policy, executor, .. } = self.launcher.settings;
        let waits = policy.wait && !executor.is_cancelled();
        match waits && suspended.continues {
            true => CallStep::Suspended(name, suspended),
            false => CallStep::Ended(Outcome::Absent(name, Absence::Suspended(suspended))),
        }
    }

    /// Suspends a call whose `exec` asked for it. Returns the outcome.
    pub(super) fn keep(&self, begun: &mut BegunCall<'a>, stage: Stage<'a>) -> Outcome {
        let name = begun.name.clone();
        match self.store(begun, stage) {
            Ok(first) => {
                let suspended = SuspendedCall { name: first, line: None, continues: true };
                Outcome::Absent(name, Absence::Suspended(suspended))
            }
            Err(error) => Outcome::failed(name, error),
        }
    }

    /// Stores how a suspended call stands. Returns the name under which it was begun.
    fn store(&self, begun: &mut BegunCall<'a>, stage: Stage<'a>) -> Result<ResultName, CallError> {
        let suspensions = self.evaluator.evaluation.storage.suspensions();
        let mut suspension = match begun.place.suspension.take() {
            Some(suspension) => suspension,
            None => {
                let BegunCall { computation, name, sources, .. } = &*begun;
                let mut made = self.suspension(computation, name, sources)?;
                if let Some(other) = suspensions.begin(&mut made)? {
                    return Ok(other);
                }
                Box::new(made)
            }
        };
        suspensions.keep_log(&suspension.name, stage)?;
        suspensions.set(&mut suspension, SuspensionState::Suspended)?;
        Ok(suspension.name)
    }

    /// Leaves a call whose execution did not succeed. The place of a process that it may have started elsewhere is
    /// kept.
    pub(super) fn leave(&self, begun: &mut BegunCall<'a>, mut outcome: Outcome) -> CallStep<'a> {
        if let Outcome::Absent(name, Absence::Suspended(call)) = outcome {
            return self.wait(begun.id, name, call);
        }
        let Some(mut suspension) = begun.place.suspension.take() else {
            return CallStep::Ended(outcome);
        };
        self.evaluator.evaluation.continuable.set(begun.id, false);
        let suspensions = self.evaluator.evaluation.storage.suspensions();
        let is_failed = outcome.failure().is_some_and(|failure| !failure.error.is_storage());
        let is_first = suspension.record.attempts <= 1;
        let is_gone = (is_failed || is_first)
            && !outcome.is_lost()
            && suspensions.is_empty(&suspension.name).unwrap_or(false);
        // If this cannot be written, the next run continues the call nevertheless.
        if is_gone {
            drop(suspensions.remove(&suspension));
            return CallStep::Ended(outcome);
        }
        if is_failed {
            drop(suspensions.set(&mut suspension, SuspensionState::Failed));
        }
        if is_failed && let Outcome::Absent(_, Absence::Failed(failure)) = &mut outcome {
            failure.hint.get_or_insert_with(|| {
                "the next run continues with what is in its directory; ce cancel --forget removes that"
                    .to_owned()
            });
        }
        CallStep::Ended(outcome)
    }

    /// The job that waits for suspended calls.
    fn waiting_job(&self) -> WaitingJob {
        let task = &self.evaluator.evaluation.task;
        WaitingJob { task: task.name.clone(), commit: task.commit.clone() }
    }
}
