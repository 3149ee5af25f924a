//! Suspended calls: what has become of them is asked, and they are continued where and as they were begun.
//!
//! A call that has a place in the storage is continued there, under the commit that began it, whatever commit asks for it. When
//! it is over, it is published under its first name, and then taken over like any result of another commit.

use std::sync::Arc;

use super::attempt::limit;
use super::grants::Footing;
use super::launcher::invocation;
use super::step::{AbsentCall, CallStep, Pending, Running, SuspendedPlace, call_of};
use super::{Absence, CallError, Evaluator, ExecutionSettings, Outcome, SuspendedCall, Unfinished};
use ce_executor::{CallProgram, Ended, ExecuteError, Invocation, TurnRequest, VerifiedPath};
use ce_model::plan::CallId;
use ce_model::task::Computation;
use ce_storage::records::{Provenance, Published, SuspensionRecord, SuspensionState, TicketValue};
use ce_storage::{Call, FoundSuspension, ResultName, Stage, Stored, Suspension};

impl<'a> Evaluator<'a> {
    /// The outcome of an absent call that is suspended, where nothing is computed.
    pub(super) fn seen_suspended(&self, call: Call<'_>, name: &ResultName) -> Option<Outcome> {
        let suspensions = self.evaluation.storage.suspensions();
        let (FoundSuspension::Same(found) | FoundSuspension::Unlike(found)) =
            suspensions.find(call, true).ok()?
        else {
            return None;
        };
        let suspended = SuspendedCall { name: found.name, line: None, continues: true };
        let is_suspended = found.record.state == SuspensionState::Suspended;
        is_suspended.then(|| Outcome::Absent(name.clone(), Absence::Suspended(suspended)))
    }

    /// Goes on with an absent call: one that is suspended is asked whether it is to be continued; any other one begins.
    pub(super) fn resume(
        &self,
        settings: &ExecutionSettings<'_>,
        mut absent: AbsentCall<'a>,
        footing: Footing,
    ) -> CallStep<'a> {
        let found = match self.find_suspended(settings, &absent) {
            Ok(found) => found,
            Err(step) => return *step,
        };
        let (suspension, first) = found;
        let Some(suspension) = suspension else {
            if !self.is_isolated(settings, absent.id) {
                self.note_elsewhere(&mut absent);
            }
            return self.begin(settings, (absent, (None, None)), footing);
        };
        let is_asked = settings.asks
            && suspension.record.state == SuspensionState::Suspended
            && !self.evaluation.is_continuable(absent.id);
        if !is_asked {
            return self.begin(settings, (absent, (Some(suspension), first)), footing);
        }
        let name = absent.name.clone();
        match self.question(settings, &absent, &suspension) {
            Ok(None) => self.begin(settings, (absent, (Some(suspension), first)), footing),
            Ok(Some((invocation, tree, stage))) => {
                let turn = match self.turn(settings, footing, TurnRequest::default(), &name) {
                    Ok(turn) => turn,
                    Err(step) => return *step,
                };
                let AbsentCall { id, computation, name, inputs, prior, lease } = absent;
                let pending = Pending {
                    id,
                    computation,
                    name,
                    inputs,
                    sources: Vec::new(),
                    remembered: prior.is_some(),
                    resources: Default::default(),
                    retries: 0,
                    replacements: 0,
                    exports: 0,
                    suspension: Some(suspension),
                    leases: (lease, first),
                    turn,
                };
                let (program, outages) = (CallProgram::Status, self.evaluation.storage.outages());
                let running = Running { pending, program, tree, stage, outages };
                CallStep::Submit(Box::new(running), Box::new(invocation))
            }
            Err(error) => CallStep::Ended(Outcome::failed(name, error)),
        }
    }

    /// Whether a call is isolated, wherever it is executed.
    pub(super) fn is_isolated(&self, settings: &ExecutionSettings<'_>, id: CallId) -> bool {
        let resources = || self.resources(id).unwrap_or_default();
        let queue = settings.queue.map(|queue| queue.rules().isolates(&resources()));
        queue.unwrap_or_else(|| settings.executor.isolates())
    }

    /// Notes that a call is suspended for another commit, which this one cannot continue.
    fn note_elsewhere(&self, absent: &mut AbsentCall<'a>) {
        let call = call_of(absent.computation, &absent.inputs);
        let suspensions = self.evaluation.storage.suspensions();
        if suspensions.may_exist().unwrap_or(false)
            && let Ok(Some(other)) = suspensions.elsewhere(call)
        {
            absent.prior.get_or_insert_default().suspended = Some(other.short());
        }
    }

    /// Finds the place of an absent call, and acquires the lease of the name under which it was begun.
    fn find_suspended(
        &self,
        settings: &ExecutionSettings<'_>,
        absent: &AbsentCall<'a>,
    ) -> Result<SuspendedPlace<'a>, Box<CallStep<'a>>> {
        let storage = &*self.evaluation.storage;
        let call = call_of(absent.computation, &absent.inputs);
        let name = || absent.name.clone();
        let failed = |error| Box::new(CallStep::Ended(Outcome::failed(name(), error)));
        let is_isolated = self.is_isolated(settings, absent.id);
        let find = || storage.suspensions().find(call, is_isolated).map_err(failed);
        let may_be = absent.computation.access.suspends()
            || storage.suspensions().may_exist().map_err(failed)?;
        if !may_be {
            return Ok((None, None));
        }
        let found = match find()? {
            FoundSuspension::Absent => return Ok((None, None)),
            FoundSuspension::Unlike(found) => {
                let line = match found.record.isolated {
                    true => "it was begun isolated, and this run does not isolate",
                    false => "it was begun without isolation, and this run isolates",
                };
                let line = Some(format!("{line}; continue it as it was begun, or use ce cancel"));
                let suspended = SuspendedCall { name: found.name, line, continues: false };
                return Err(Box::new(self.suspended(absent.id, name(), suspended)));
            }
            FoundSuspension::Same(found) => found,
        };
        if found.name == absent.name {
            return Ok((Some(found), None));
        }
        match storage.leases().acquire(&found.name) {
            Err(holder) => Err(Box::new(CallStep::Held(found.name, holder))),
            Ok(first) => match find()? {
                FoundSuspension::Same(again) if again.name == found.name => {
                    Ok((Some(again), Some(first)))
                }
                // It was over, or given up, before there was the lease.
                _ => {
                    storage.equivalents().forget_versions(call.version);
                    Err(Box::new(CallStep::Again))
                }
            },
        }
    }

    /// What a suspended call is asked by; `None` if its computation has no program for that.
    fn question(
        &self,
        settings: &ExecutionSettings<'_>,
        absent: &AbsentCall<'a>,
        suspension: &Suspension,
    ) -> Result<Option<(Invocation, Arc<VerifiedPath>, Stage<'a>)>, CallError> {
        let storage = &*self.evaluation.storage;
        if settings.executor.isolates() != suspension.record.isolated {
            // Workers isolate, and this host does not.
            return Ok(None);
        }
        let tree = settings.exports.directory(absent.computation, suspension.record.isolated)?;
        if !tree.path.join(CallProgram::Status.file()).exists() {
            return Ok(None);
        }
        let stage = storage.stage(0)?;
        let directory = (*tree).clone();
        let invocation = invocation(storage, suspension, directory, &stage, CallProgram::Status)?;
        Ok(Some((invocation, tree, stage)))
    }

    /// Goes on with a suspended call that was asked.
    pub(super) fn answered(
        &self,
        settings: &ExecutionSettings<'_>,
        pending: Pending<'a>,
        (mut stage, end): (Stage<'a>, Result<Ended, ExecuteError>),
    ) -> CallStep<'a> {
        let Pending { id, computation, name, inputs, suspension, leases, turn, .. } = pending;
        drop(turn);
        let ended = |outcome| CallStep::Ended(outcome);
        let Some(mut suspension) = suspension else { return CallStep::Again };
        if let Ok(Ended::Done(usage) | Ended::Suspended(usage)) = &end {
            limit(&mut stage, usage);
        }
        let line = stage.first_line().unwrap_or_default();
        match end {
            Ok(Ended::Done(_)) => {
                self.evaluation.set_continuable(id, true);
                let prior = self.evaluation.storage.attempts().prior(&name, None);
                let (lease, first) = leases;
                let absent = AbsentCall { id, computation, name, inputs, prior, lease };
                drop(stage);
                self.begin(settings, (absent, (Some(suspension), first)), Footing::default())
            }
            Ok(Ended::Suspended(_)) => {
                let job = self.evaluation.waiting_job();
                // It is displayed, and nothing more.
                drop(self.evaluation.storage.suspensions().add_job(&mut suspension, &job));
                let suspended = SuspendedCall { name: suspension.name, line, continues: true };
                self.suspended(id, name, suspended)
            }
            Ok(Ended::Failed(failed)) => {
                limit(&mut stage, &failed.usage);
                ended(Outcome::failed(suspension.name, CallError::Asked(Box::new(failed), line)))
            }
            Ok(Ended::Lost(how)) => {
                stage.doubt();
                ended(Outcome::Absent(name, Absence::Unfinished(Unfinished::Lost(how))))
            }
            Err(ExecuteError::Refused(why)) => {
                ended(Outcome::Absent(name, Absence::Unfinished(Unfinished::Refused(why))))
            }
            Err(ExecuteError::Interrupted) => ended(Outcome::Absent(name, Absence::Interrupted)),
            Err(error) => ended(Outcome::failed(name, error)),
        }
    }

    /// The next step of a call that is suspended.
    pub(super) fn suspended(
        &self,
        id: CallId,
        name: ResultName,
        suspended: SuspendedCall,
    ) -> CallStep<'a> {
        self.evaluation.set_continuable(id, false);
        let waits = self.execution.is_some_and(|it| it.policy.wait && !it.executor.is_cancelled());
        match waits && suspended.continues {
            true => CallStep::Suspended(name, suspended),
            false => CallStep::Ended(Outcome::Absent(name, Absence::Suspended(suspended))),
        }
    }

    /// Makes the place of a call before `exec` is started: that of one which is continued, or of one that may suspend.
    pub(super) fn place(
        &self,
        settings: &ExecutionSettings<'_>,
        absent: &AbsentCall<'a>,
        (found, first): SuspendedPlace<'a>,
    ) -> Result<SuspendedPlace<'a>, Box<CallStep<'a>>> {
        let suspensions = self.evaluation.storage.suspensions();
        let AbsentCall { id, computation, inputs, name, .. } = absent;
        let failed = |error| Box::new(CallStep::Ended(Outcome::failed(name.clone(), error)));
        let mut suspension = match found {
            Some(found) => found,
            None if !computation.access.suspends() => return Ok((None, None)),
            None => {
                let values = self.sources(self.evaluation.plan.call(*id));
                let made = self.suspension(settings, (computation, name), &values);
                let made = made.map_err(|error| {
                    Box::new(CallStep::Ended(Outcome::failed(name.clone(), error)))
                })?;
                // Its place may be there, and the index have lost it.
                let kept = suspensions.read(name).map_err(failed)?;
                let is_same = |kept: &Suspension| {
                    kept.record.digests() == *inputs && kept.record.isolated == made.record.isolated
                };
                Box::new(kept.filter(is_same).unwrap_or(made))
            }
        };
        suspension.record.add_job(&self.evaluation.waiting_job());
        match suspensions.begin(&mut suspension).map_err(failed)? {
            None => Ok((Some(suspension), first)),
            // Another commit has begun it meanwhile.
            Some(other) => Err(Box::new(match self.evaluation.storage.leases().holder(&other) {
                Some(holder) => CallStep::Held(other, holder),
                None => CallStep::Again,
            })),
        }
    }

    /// A call that has not been suspended yet.
    fn suspension(
        &self,
        settings: &ExecutionSettings<'_>,
        (computation, name): (&Computation, &ResultName),
        values: &[Stored],
    ) -> Result<Suspension, CallError> {
        let value = |stored: &Stored| TicketValue {
            name: stored.name.clone(),
            value: Published { digest: stored.digest, stamp: stored.stamp },
        };
        let inputs: Vec<TicketValue> = values.iter().map(value).collect();
        let recorded = Provenance::now();
        let record = SuspensionRecord {
            format: SuspensionRecord::format_of(&inputs),
            computation: computation.name.clone(),
            commit: computation.commit.clone(),
            tree: computation.tree.clone(),
            dirty: computation.dirty,
            // Its programs are needed as long as it is suspended, wherever its repository is.
            export: settings.exports.for_workers(computation)?,
            inputs,
            input_names: computation.inputs.clone(),
            output_names: computation.outputs.clone(),
            access: computation.access.rules.iter().map(ToString::to_string).collect(),
            isolated: settings.executor.isolates(),
            state: SuspensionState::Executing,
            attempts: 0,
            since: recorded.at,
            jobs: vec![self.evaluation.waiting_job()],
            recorded,
        };
        Ok(Suspension { name: name.clone(), record })
    }

    /// Suspends a call of which `exec` has ended like that. Returns the outcome.
    pub(super) fn suspend(
        &self,
        settings: &ExecutionSettings<'_>,
        pending: &mut Pending<'a>,
        stage: Stage<'a>,
    ) -> Outcome {
        let name = pending.name.clone();
        match self.store_suspended(settings, pending, stage) {
            Ok(begun) => {
                let suspended = SuspendedCall { name: begun, line: None, continues: true };
                Outcome::Absent(name, Absence::Suspended(suspended))
            }
            Err(error) => Outcome::failed(name, error),
        }
    }

    /// Stores how a suspended call stands. Returns the name under which it was begun.
    fn store_suspended(
        &self,
        settings: &ExecutionSettings<'_>,
        pending: &mut Pending<'a>,
        stage: Stage<'a>,
    ) -> Result<ResultName, CallError> {
        let suspensions = self.evaluation.storage.suspensions();
        let mut suspension = match pending.suspension.take() {
            Some(suspension) => suspension,
            None => {
                let place = (pending.computation, &pending.name);
                let mut made = self.suspension(settings, place, &pending.sources)?;
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

    /// Leaves a call whose execution did not succeed. What it may have started elsewhere is kept.
    pub(super) fn leave(&self, pending: &mut Pending<'a>, mut outcome: Outcome) -> CallStep<'a> {
        if let Outcome::Absent(name, Absence::Suspended(call)) = outcome {
            return self.suspended(pending.id, name, call);
        }
        let Some(mut suspension) = pending.suspension.take() else {
            return CallStep::Ended(outcome);
        };
        self.evaluation.set_continuable(pending.id, false);
        let suspensions = self.evaluation.storage.suspensions();
        let is_failed = outcome.failure().is_some_and(|failure| !failure.error.is_storage());
        let is_first = suspension.record.attempts <= 1;
        let is_gone = (is_failed || is_first)
            && !outcome.is_lost()
            && suspensions.is_empty(&suspension.name).unwrap_or(false);
        // If this cannot be written, the next run continues the call all the same.
        if is_gone {
            drop(suspensions.remove(&suspension));
            return CallStep::Ended(outcome);
        }
        if is_failed {
            drop(suspensions.set(&mut suspension, SuspensionState::Failed));
        }
        if is_failed && let Outcome::Absent(_, Absence::Failed(failure)) = &mut outcome {
            failure.hint.get_or_insert_with(|| {
                "the next run continues with what is in its directory; ce forget removes that"
                    .to_owned()
            });
        }
        CallStep::Ended(outcome)
    }
}
