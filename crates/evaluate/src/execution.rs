//! Executing a call: it gets its resources, is launched or queued for a worker, and sealed when its execution has
//! ended. It is executed again if it failed and may pass.
//!
//! A call that waits for resources or for a turn has no lease. Otherwise another run that needs the call might wait for this one, which
//! waits for a turn that the other run is part of.

use std::num::NonZeroU32;

use super::capacity::{Reservation, Unsatisfiable};
use super::evaluator::{
    AbsentCall, AskedCall, BegunCall, CallStep, Grants, QueuedCall, Running, SealedCall,
    SuspendedPlace, call_as_begun, call_of,
};
use super::hint::{self, Scene};
use super::launcher::{
    CallLauncher, Launch, LaunchRequest, Purpose, execution, isolation_word, limit,
};
use super::retry::RetryPolicy;
use super::sealing_watch::SealingWatch;
use super::suspended_calls::SuspendedCalls;
use super::ticket::{self, TicketCall};
use super::{
    Absence, CallError, CallFailure, Evaluator, Event, LimitedExecution, Outcome, Unfinished,
    WorkerQueue,
};
use ce_executor::{
    CallProgram, Ended, ExecuteError, Failed, HostTurn, Isolation, Status, TurnRequest,
};
use ce_model::plan::CallId;
use ce_model::resources::{AttemptLimit, LimitedAttempt, Resources};
use ce_model::task::LIBRARY;
use ce_storage::records::{Failure, OutputSource, SuspensionState, Ticket, TicketEnd};
use ce_storage::{
    Call, Deviation, Entry, Precedence, PublishError, Record, ResultName, Sealed, Stage, Stored,
    Survey,
};

/// Executes the calls of an evaluation.
#[derive(Clone, Copy)]
pub(super) struct CallRunner<'e, 'a> {
    pub(super) evaluator: &'e Evaluator<'a>,
    pub(super) launcher: CallLauncher<'a>,
}

impl<'e, 'a> CallRunner<'e, 'a> {
    /// Executes the calls of an evaluation, if that is wanted.
    pub(super) fn from_evaluator(evaluator: &'e Evaluator<'a>) -> Option<Self> {
        let storage = &evaluator.evaluation.storage;
        let launcher = CallLauncher { storage, settings: evaluator.execution? };
        Some(Self { evaluator, launcher })
    }

    /// Continues with an absent call: a suspended one is asked whether it is to be continued; any other one begins.
    pub(super) fn resume(&self, mut absent: AbsentCall<'a>, grants: Grants) -> CallStep<'a> {
        let settings = &self.launcher.settings;
        let place = match self.suspended_calls().find(&absent) {
            Ok(place) => place,
            Err(step) => return *step,
        };
        let Some(suspension) = &place.suspension else {
            if !self.evaluator.is_isolated(settings, absent.id) {
                self.suspended_calls().note_elsewhere(&mut absent);
            }
            return self.begin(absent, place, grants);
        };
        let is_asked = settings.leads
            && suspension.record.state == SuspensionState::Suspended
            // Workers may isolate where this host does not.
            && settings.executor.isolates() == suspension.record.isolated
            && !self.evaluator.evaluation.continuable.has(absent.id);
        if !is_asked {
            return self.begin(absent, place, grants);
        }
        let program = CallProgram::Status;
        match self.launcher.prepare_question(absent.computation, suspension, program) {
            Ok(None) => self.begin(absent, place, grants),
            Ok(Some((launch, invocation))) => {
                match self.turn(grants, TurnRequest::default(), &absent.name) {
                    Ok(turn) => {
                        let asked = AskedCall { absent, place, turn, launch };
                        let running = Running::Asked(asked);
                        CallStep::Submit(Box::new(running), Box::new(invocation))
                    }
                    Err(step) => *step,
                }
            }
            Err(error) => CallStep::Ended(Outcome::failed(absent.name, error)),
        }
    }

    /// Executes a call, if it has the resources that it asks for.
    fn begin(
        &self,
        absent: AbsentCall<'a>,
        place: SuspendedPlace<'a>,
        grants: Grants,
    ) -> CallStep<'a> {
        let settings = &self.launcher.settings;
        let resources = match self.evaluator.resources(absent.id) {
            Ok(resources) => resources,
            Err(error) => return CallStep::Ended(Outcome::failed(absent.name, error)),
        };
        let attempts = self.attempts(&absent, &resources);
        let resources = self.after(resources, &attempts);
        if let Some(queue) = settings.queue {
            return self.queue(queue, absent, resources);
        }
        if !grants.is_reserved {
            match self.reservation(&resources) {
                Ok(None) => {}
                Ok(Some(reservation)) => return CallStep::Reserve(reservation),
                Err(unsatisfiable) => {
                    return CallStep::Ended(Outcome::failed(absent.name, unsatisfiable));
                }
            }
        }
        let turn = match self.turn(grants, turn_request(&resources), &absent.name) {
            Ok(turn) => turn,
            Err(step) => return *step,
        };
        let place = match self.suspended_calls().make(&absent, place) {
            Ok(place) => place,
            Err(step) => return *step,
        };
        let AbsentCall { id, computation, name, inputs, prior, lease } = absent;
        let remembered = prior.is_some();
        let sources = self.evaluator.sources(id);
        (self.evaluator.observe)(Event::Started(id, name.clone(), prior));
        self.attempt(BegunCall {
            id,
            computation,
            name,
            inputs,
            sources,
            remembered,
            resources,
            attempts,
            retries: RetryPolicy::here(settings.policy.retries),
            place,
            lease,
            turn,
        })
    }

    /// The executions of a call that a limit has ended, if the limit is the beginning of a range. They may be from another commit, like a
    /// result that is taken over.
    fn attempts(&self, absent: &AbsentCall<'_>, resources: &Resources) -> Box<[LimitedAttempt]> {
        if resources.last_memory.is_none() && resources.last_time.is_none() {
            return Box::default();
        }
        let own = absent.prior.as_ref().and_then(|prior| prior.failure.clone());
        let own = own.filter(|record| record.inputs == absent.inputs);
        let record = own.or_else(|| {
            let equivalents = self.evaluator.evaluation.storage.equivalents();
            let call = call_of(absent.computation, &absent.inputs);
            equivalents.find_equivalent_failure(call).ok().flatten().map(|(_, record)| record)
        });
        record.map(|record| record.failure.attempts).unwrap_or_default()
    }

    /// Returns the resources that a call requests after these attempts.
    fn after(&self, resources: Resources, attempts: &[LimitedAttempt]) -> Resources {
        if attempts.is_empty() {
            return resources;
        }
        resources.after(attempts, self.evaluator.memory_there())
    }

    const fn suspended_calls(&self) -> SuspendedCalls<'_, 'a> {
        SuspendedCalls { evaluator: self.evaluator, launcher: self.launcher }
    }

    /// Returns the reservation that a call needs, if any.
    fn reservation(&self, resources: &Resources) -> Result<Option<Reservation>, Unsatisfiable> {
        if self.evaluator.evaluation.task.resources.is_empty() {
            return Ok(None);
        }
        let executor = self.launcher.settings.executor;
        match Unsatisfiable::find(resources, executor.capacity().get(), &executor.offer()) {
            Some(unsatisfiable) => Err(unsatisfiable),
            None => Ok(Reservation::from_resources(resources)),
        }
    }

    /// Takes a turn for a call, unless it has one. If other runs have the resources that it needs, the call releases
    /// its lease, and waits.
    fn turn(
        &self,
        grants: Grants,
        request: TurnRequest,
        name: &ResultName,
    ) -> Result<HostTurn, Box<CallStep<'a>>> {
        if let Some(turn) = grants.turn.filter(|turn| turn.request() == request) {
            return Ok(turn);
        }
        let name = name.clone();
        Err(Box::new(match self.launcher.settings.executor.enter(request, false) {
            Ok(Some(turn)) => return Ok(turn),
            Ok(None) => CallStep::Enter(request, grants.is_reserved),
            Err(ExecuteError::Interrupted) => CallStep::Ended(self.evaluator.not_started(name)),
            Err(ExecuteError::Refused(why)) => CallStep::Ended(Outcome::Absent(
                name,
                Absence::Unfinished(Unfinished::Refused(why)),
            )),
            Err(error) => CallStep::Ended(Outcome::failed(name, error)),
        }))
    }

    /// Launches the next execution of a call.
    fn attempt(&self, mut begun: BegunCall<'a>) -> CallStep<'a> {
        loop {
            let suspension = begun.place.suspension.as_deref();
            let prepared = self.launcher.prepare(LaunchRequest {
                name: &begun.name,
                computation: begun.computation,
                sources: &begun.sources,
                resources: &begun.resources,
                turn: Some(&begun.turn),
                purpose: Purpose::Publish(begun.published_name(), suspension),
            });
            match prepared {
                Ok((launch, invocation)) => {
                    let running = Running::Executed(begun, launch);
                    return CallStep::Submit(Box::new(running), Box::new(invocation));
                }
                Err(error) => {
                    let outcome = Outcome::failed(begun.name.clone(), error);
                    if let Err(outcome) = self.retry(&mut begun, outcome) {
                        return CallStep::Ended(outcome);
                    }
                }
            }
        }
    }

    /// Continues a call after one of its programs has ended.
    pub(super) fn conclude(
        &self,
        running: Running<'a>,
        end: Result<Ended, ExecuteError>,
    ) -> CallStep<'a> {
        let (mut begun, launch) = match running {
            Running::Executed(begun, launch) => (begun, launch),
            Running::Asked(asked) => {
                let end = self.launcher.judge(&asked.launch, &[], end);
                return self.answered(asked, end);
            }
        };
        let end = self.launcher.judge(&launch, &begun.sources, end);
        if self.launcher.is_replaced(&launch, begun.computation, &end)
            && begun.retries.allows_new_export()
        {
            drop(launch);
            return self.attempt(begun);
        }
        match self.seal(&mut begun, launch, end) {
            Ok(sealed) => {
                let BegunCall { id, computation, name, inputs, remembered, place, lease, .. } =
                    begun;
                let precedence = self.evaluator.precedence(&name);
                // Before its slot is given back, and another call begins.
                (self.evaluator.observe)(Event::Sealed(id));
                CallStep::Sealed(SealedCall {
                    id,
                    computation,
                    name,
                    inputs,
                    sealed,
                    taken_over: false,
                    remembered,
                    precedence,
                    place,
                    _lease: lease,
                })
            }
            Err(outcome) => match self.retry(&mut begun, outcome) {
                Ok(()) => self.attempt(begun),
                Err(outcome) => {
                    let step = self.suspended_calls().leave(&mut begun, outcome);
                    self.continued(begun.id, begun.computation.access.suspends(), step)
                }
            },
        }
    }

    /// Lets a call be looked for again that a limit has ended, unless that was its last attempt: the record of the failure says what the
    /// next one asks for.
    fn continued(&self, id: CallId, suspends: bool, step: CallStep<'a>) -> CallStep<'a> {
        match step {
            // The next run continues one that may be suspended, whose place was left.
            CallStep::Ended(outcome)
                if self.launcher.settings.leads
                    && !suspends
                    && !self.evaluator.has_stopped()
                    && outcome.continues() =>
            {
                (self.evaluator.observe)(Event::Retried(id, Box::new(outcome)));
                CallStep::Again
            }
            step => step,
        }
    }

    /// Reports an unsuccessful execution here if the call is executed again; returns the outcome otherwise.
    fn retry(&self, begun: &mut BegunCall<'_>, outcome: Outcome) -> Result<(), Outcome> {
        // A failure is recorded until the call succeeds, a loss is not. A worker removes its own records.
        begun.remembered |= outcome.failure().is_some();
        self.execute_again(begun.id, &mut begun.retries, outcome)
    }

    /// Reports an unsuccessful execution if the call is executed again; returns the outcome otherwise.
    fn execute_again(
        &self,
        id: CallId,
        retries: &mut RetryPolicy,
        outcome: Outcome,
    ) -> Result<(), Outcome> {
        if self.evaluator.has_stopped() || !retries.allows(&outcome) {
            return Err(outcome);
        }
        (self.evaluator.observe)(Event::Retried(id, Box::new(outcome)));
        Ok(())
    }

    /// Seals the outputs of an execution, or returns its outcome if it has none. Signals and the time limit of the call
    /// end the sealing, too.
    fn seal(
        &self,
        begun: &mut BegunCall<'a>,
        mut launch: Launch<'a>,
        end: Result<Ended, ExecuteError>,
    ) -> Result<Sealed<'a>, Outcome> {
        let executor = self.launcher.settings.executor;
        let watch = SealingWatch::start(executor, &mut launch, &begun.computation.outputs, &end);
        let (id, observe) = (begun.id, self.evaluator.observe);
        let tell = |what| observe(Event::Hashing(id, what));
        watch.during(tell, || self.seal_watched(begun, launch, end, &watch))
    }

    fn seal_watched(
        &self,
        begun: &mut BegunCall<'a>,
        launch: Launch<'a>,
        end: Result<Ended, ExecuteError>,
        watch: &SealingWatch<'_>,
    ) -> Result<Sealed<'a>, Outcome> {
        let Launch { tree, stage, .. } = launch;
        if let (Some(suspension), Ok(Ended::Done(_) | Ended::Failed(_) | Ended::Suspended(_))) =
            (&begun.place.suspension, &end)
        {
            let continued = stage.continue_log(&suspension.name);
            continued.map_err(|error| Outcome::failed(begun.name.clone(), error))?;
        }
        if let Ok(Ended::Suspended(_)) = &end {
            return Err(self.suspended_calls().keep(begun, stage));
        }
        let (call, name) = (begun.call(), begun.published_name());
        let scene = self.launcher.scene(&tree, begun.computation, &begun.sources);
        let fail = |stage, error| self.fail(stage, begun, error, &scene);
        let unfinished = match end {
            Ok(Ended::Done(usage)) => {
                let argv = argv(call, name, &begun.sources);
                let mut execution = execution(&usage, begun.computation, argv);
                execution.resources = begun.resources.lines().into();
                execution.attempts.clone_from(&begun.attempts);
                self.evaluator.evaluation.note_memory(
                    &begun.computation.name,
                    &begun.resources,
                    usage.peak,
                );
                if begun.place.suspension.is_some() {
                    // The work of a suspended call ran elsewhere, on an unknown host.
                    (execution.host_kind, execution.machine) = (None, None);
                    execution.host_use = None;
                }
                return stage.seal(call, execution).map_err(|failed| {
                    let (stage, error) = *failed;
                    let Some(error) = watch.judge(error, usage) else {
                        return Outcome::Absent(name.clone(), Absence::Interrupted);
                    };
                    // Outputs may be missing because an input was lost.
                    match self.launcher.lost_input(&begun.sources) {
                        Some(how) => Outcome::Absent(
                            name.clone(),
                            Absence::Unfinished(Unfinished::Lost(how)),
                        ),
                        None => fail(stage, error),
                    }
                });
            }
            Ok(Ended::Failed(failed)) => {
                return Err(fail(stage, CallError::Ended(Box::new(failed))));
            }
            Ok(Ended::Suspended(_)) => Unfinished::Lost("it is suspended".to_owned()),
            Ok(Ended::Lost(how)) => {
                // It may still run.
                let mut stage = stage;
                stage.doubt();
                Unfinished::Lost(how)
            }
            Err(ExecuteError::Refused(why)) => Unfinished::Refused(why),
            Err(ExecuteError::Interrupted) => {
                return Err(Outcome::Absent(name.clone(), Absence::Interrupted));
            }
            Err(error) => return Err(fail(stage, error.into())),
        };
        Err(Outcome::Absent(name.clone(), Absence::Unfinished(unfinished)))
    }

    /// Remembers a failure.
    fn fail(
        &self,
        stage: Stage<'_>,
        begun: &BegunCall<'_>,
        error: CallError,
        scene: &Scene<'_>,
    ) -> Outcome {
        let name = begun.published_name().clone();
        if error.is_storage() {
            return Outcome::failed(name, error);
        }
        let error = self.by_limit(&begun.resources, error);
        // The stage is emptied afterwards.
        let hint = hint::hint(&stage, scene, &error);
        match stage.fail(begun.call(), &name, recorded_failure(&error, &begun.attempts)) {
            Ok(log) => {
                let error = Box::new(error);
                Outcome::Absent(name, Absence::Failed(CallFailure { error, log, hint }))
            }
            Err(error) => Outcome::failed(name, error),
        }
    }

    /// The error of an execution says so if a limit has ended it that is the beginning of a range.
    fn by_limit(&self, resources: &Resources, error: CallError) -> CallError {
        let CallError::Ended(failed) = error else { return error };
        let limit = match failed.status {
            Status::OutOfMemory(bytes) => AttemptLimit::Memory(bytes),
            // The time limit of the run may be shorter.
            Status::TimedOut(_, time) if resources.time == Some(time) => AttemptLimit::Time(time),
            Status::Exited(_) | Status::Killed(_) | Status::TimedOut(..) => {
                return CallError::Ended(failed);
            }
        };
        let Some(up_to) = resources.end_of_range(limit) else { return CallError::Ended(failed) };
        let (seconds, peak_bytes) = (Some(failed.usage.seconds()), Some(failed.usage.peak));
        let mut attempt = LimitedAttempt { limit, up_to, last: false, seconds, peak_bytes };
        let next = self.after(resources.clone(), std::slice::from_ref(&attempt));
        attempt.last = next == *resources;
        let next = match limit {
            AttemptLimit::Memory(_) => next.memory.map(AttemptLimit::Memory),
            AttemptLimit::Time(_) => next.time.map(AttemptLimit::Time),
        };
        let (failed, next) = (*failed, next.unwrap_or(limit));
        CallError::Limited(Box::new(LimitedExecution { failed, attempt, next }))
    }

    /// Continues with a suspended call that was asked.
    fn answered(&self, asked: AskedCall<'a>, end: Result<Ended, ExecuteError>) -> CallStep<'a> {
        let AskedCall { absent, mut place, turn, launch: Launch { mut stage, .. } } = asked;
        drop(turn);
        if let Ok(Ended::Done(usage) | Ended::Suspended(usage)) = &end {
            limit(&mut stage, usage);
        }
        let line = stage.first_line().unwrap_or_default();
        let (id, name) = (absent.id, absent.name.clone());
        CallStep::Ended(match end {
            Ok(Ended::Done(_)) => {
                self.evaluator.evaluation.continuable.set(id, true);
                drop(stage);
                return self.begin(absent, place, Grants::default());
            }
            Ok(Ended::Suspended(_)) => {
                return self.suspended_calls().remain(absent, &mut place, line);
            }
            Ok(Ended::Failed(failed)) => {
                limit(&mut stage, &failed.usage);
                let first = place.suspension.map_or(name, |suspension| suspension.name);
                Outcome::failed(first, CallError::Asked(Box::new(failed), line))
            }
            Ok(Ended::Lost(how)) => {
                stage.doubt();
                Outcome::Absent(name, Absence::Unfinished(Unfinished::Lost(how)))
            }
            Err(ExecuteError::Refused(why)) => {
                Outcome::Absent(name, Absence::Unfinished(Unfinished::Refused(why)))
            }
            Err(ExecuteError::Interrupted) => Outcome::Absent(name, Absence::Interrupted),
            Err(error) => Outcome::failed(name, error),
        })
    }

    /// Publishes executed and flushed outputs. Returns `None` if another commit began the call: then it is looked for again,
    /// and taken over.
    pub(super) fn publish(&self, executed: SealedCall<'_>) -> Option<Outcome> {
        let storage = self.launcher.storage;
        let SuspendedPlace { suspension, _lease } = executed.place;
        let name = suspension.as_ref().map_or(&executed.name, |it| &it.name).clone();
        let (taken_over, remembered) = (executed.taken_over, executed.remembered);
        let is_own = name == executed.name;
        let call =
            call_as_begun(call_of(executed.computation, &executed.inputs), suspension.as_deref());
        let recorded = self.evaluator.evaluation.away_outputs(executed.id);
        let recorded = recorded.filter(|_| executed.precedence == Precedence::Recorded);
        let source = if taken_over { OutputSource::TakenOver } else { OutputSource::Executed };
        // This comes before another call of this run may find it.
        self.evaluator.evaluation.made().insert(name.clone(), source);
        let published = executed.sealed.publish_same(call, &name, recorded, executed.precedence);
        let published = published.and_then(|outputs| {
            if remembered {
                storage.attempts().forget(&outputs.name)?;
            }
            if let Some(suspension) = &suspension {
                storage.suspensions().remove(suspension)?;
            }
            Ok(outputs)
        });
        if published.is_err() {
            self.evaluator.evaluation.made().remove(&name);
        }
        match published {
            Ok(_) if !is_own => {
                storage.equivalents().forget_versions(call.version);
                None
            }
            Ok(outputs) => Some(Outcome::Present(outputs, source)),
            Err(PublishError::Storage(error)) => Some(Outcome::failed(name, error)),
            Err(PublishError::Deviates(deviation)) => {
                Some(Outcome::failed(name, self.counted(deviation)))
            }
            Err(error) => Some(Outcome::failed(name, error)),
        }
    }

    /// Counts the recorded calls that were made from outputs which cannot be made again.
    fn counted(&self, mut deviation: Box<Deviation>) -> CallError {
        let recorded: Vec<_> = deviation.outputs.iter().map(|output| output.recorded).collect();
        // Only the count is lost.
        deviation.readers =
            Survey::new(self.launcher.storage).readers(&recorded).unwrap_or_default();
        PublishError::Deviates(deviation).into()
    }

    /// Lets a worker execute a call. The lease is released: the worker acquires it when it begins.
    fn queue(
        &self,
        queue: &WorkerQueue,
        absent: AbsentCall<'a>,
        resources: Resources,
    ) -> CallStep<'a> {
        let AbsentCall { id, computation, name, prior, lease, .. } = absent;
        if let Err(error) = lease.release() {
            return CallStep::Ended(Outcome::failed(name, error));
        }
        let settings = &self.launcher.settings;
        let standing = match settings.exports.for_workers(computation) {
            Ok(standing) => standing,
            Err(error) => return CallStep::Ended(Outcome::failed(name, error)),
        };
        let call = TicketCall {
            task: &self.evaluator.evaluation.task,
            computation,
            standing,
            values: &self.evaluator.sources(id),
            resources,
            forced: self.evaluator.is_forced(&name),
            accept: settings.policy.accept,
            audited: false,
        };
        let ticket = call.write(queue.rules());
        (self.evaluator.observe)(Event::Queued(id, name.clone()));
        let (retries, unreported) = (RetryPolicy::at_workers(settings.policy.retries), Some(prior));
        CallStep::Queue(Box::new(QueuedCall { id, name, ticket, retries, unreported }))
    }

    /// Reports, once, that a worker executes a call.
    pub(super) fn report_begun(&self, queued: &mut QueuedCall) {
        if let Some(prior) = queued.unreported.take() {
            (self.evaluator.observe)(Event::Started(queued.id, queued.name.clone(), prior));
        }
    }

    /// Notes the memory that a call has used at a worker, if it had reserved any.
    fn note_memory_at_worker(&self, ticket: &Ticket, name: &ResultName) {
        let Ticket { computation, resources, .. } = ticket;
        if resources.memory.is_none() {
            return;
        }
        let entry = Entry::Call(name.clone());
        let record = self.launcher.storage.records().read_fitting(&entry).ok().flatten();
        // The usage of tasks is not known.
        let Some(Record::Call(record)) = record else { return };
        let execution = record.execution().filter(|it| it.tasks.is_empty());
        let peak = execution.map_or(0, |execution| execution.peak_bytes);
        self.evaluator.evaluation.note_memory(computation, resources, peak);
    }

    /// Records the failure of a call whose worker was ended, since it used more memory than it had.
    fn out_of_memory(&self, queued: &QueuedCall) -> Outcome {
        let (name, storage) = (&queued.name, self.launcher.storage);
        let Ticket { resources, values, outputs, isolated, .. } = &queued.ticket;
        let isolation = if *isolated { Isolation::Namespaces } else { Isolation::None };
        let failed = Failed::out_of_memory(resources.memory.unwrap_or_default(), isolation);
        let mut error = self.by_limit(resources, CallError::Ended(Box::new(failed)));
        if let CallError::Limited(limited) = &mut error {
            (limited.attempt.seconds, limited.attempt.peak_bytes) = (None, None);
        }
        let inputs: Vec<_> = values.iter().map(|it| it.value.digest).collect();
        let call = Call { version: queued.ticket.version(), inputs: &inputs, outputs };
        let prior = storage.attempts().prior(name, None).and_then(|prior| prior.failure);
        let attempts = prior.map(|record| record.failure.attempts).unwrap_or_default();
        let stage = Stage::new(storage, 0);
        let failed =
            stage.and_then(|stage| stage.fail(call, name, recorded_failure(&error, &attempts)));
        match failed {
            Ok(_) => Outcome::failed(name.clone(), error),
            Err(error) => Outcome::failed(name.clone(), error),
        }
    }

    /// Continues with a call that a worker has answered.
    pub(super) fn conclude_at_worker(
        &self,
        mut queued: QueuedCall,
        end: Option<TicketEnd>,
    ) -> CallStep<'a> {
        let storage = self.launcher.storage;
        let Some(end) = end else {
            // After a failure, only tickets that no worker has now are withdrawn.
            let is_cancelled = self.launcher.settings.executor.is_cancelled();
            return CallStep::Ended(match queued.unreported {
                None if is_cancelled => Outcome::Absent(queued.name, Absence::Interrupted),
                _ => self.evaluator.not_started(queued.name),
            });
        };
        let is_executed = match &end {
            TicketEnd::Published(call) => call.source == OutputSource::Executed,
            end => matches!(
                end,
                TicketEnd::Failed(_) | TicketEnd::OutOfTime(_) | TicketEnd::OutOfMemory
            ),
        };
        if is_executed {
            self.report_begun(&mut queued);
        }
        let outcome = match end {
            TicketEnd::OutOfMemory => self.out_of_memory(&queued),
            end => ticket::outcome(storage, &queued.name, end),
        };
        storage.calls().note_published(&queued.name);
        if let Outcome::Present(outputs, OutputSource::Executed) = &outcome {
            self.note_memory_at_worker(&queued.ticket, &outputs.name);
        }
        if let Some(suspended) = outcome.suspended() {
            return self.suspended_calls().wait(queued.id, queued.name, suspended.clone());
        }
        match self.execute_again(queued.id, &mut queued.retries, outcome) {
            Ok(()) => CallStep::Queue(Box::new(queued)),
            Err(outcome) => self.continued(queued.id, false, CallStep::Ended(outcome)),
        }
    }
}

/// Returns the request for resources that other runs of the host may have. The scheduler gives out the gpus of an allocation.
pub(super) fn turn_request(resources: &Resources) -> TurnRequest {
    let gpus = resources.gpus.filter(|_| !resources.spans()).map_or(0, NonZeroU32::get);
    let processors = resources.pinned().map_or(0, NonZeroU32::get);
    TurnRequest { gpus, processors, exclusive: resources.exclusive }
}

/// Returns the arguments of `exec`, in the storage's names.
fn argv(call: Call<'_>, name: &ResultName, sources: &[Stored]) -> Vec<String> {
    let exec = format!("{LIBRARY}/{}/exec", call.version.computation);
    let outputs = (0..call.outputs.len()).map(|number| name.output(number));
    let sources = sources.iter().map(|file| file.name.clone());
    std::iter::once(exec).chain(sources).chain(outputs).collect()
}

/// A failure with this error after these attempts, as its record has it.
fn recorded_failure(error: &CallError, attempts: &[LimitedAttempt]) -> Failure {
    let mut failure =
        Failure { reason: error.to_string(), attempts: attempts.into(), ..Failure::default() };
    let ended = match error {
        CallError::Ended(failed) => &**failed,
        CallError::Limited(limited) => {
            failure.attempts = attempts.iter().chain([&limited.attempt]).cloned().collect();
            &limited.failed
        }
        _ => return failure,
    };
    let Failed { status, usage, .. } = ended;
    failure.isolation = Some(isolation_word(usage.isolation).to_owned());
    failure.tasks = usage.tasks.0.clone();
    failure.seconds = usage.seconds();
    match *status {
        Status::Exited(status) => failure.exit_status = Some(status),
        status => failure.signal = status.signal(),
    }
    failure
}
