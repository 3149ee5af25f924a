//! Audits: calls that have results are executed again, and compared with them, here or by workers elsewhere.
//!
//! The calls do not wait for each other, since what each reads is in the storage. They begin in their order, as the resources
//! that they ask for allow.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use super::call_scheduler::{Scheduler, Work};
use super::capacity::{Reservation, Reservations, Unsatisfiable};
use super::execution::turn_request;
use super::hint::{self, Scene};
use super::launcher::{CallLauncher, Launch, LaunchRequest, Purpose, execution, isolation_word};
use super::retry::RetryPolicy;
use super::sealing_watch::SealingWatch;
use super::ticket::TicketCall;
use super::worker_queue::MAX_TICKETS;
use super::{CallError, EvaluateError, ExecutionSettings, WorkerQueue};
use ce_exchange::fetch_values;
use ce_executor::{Ended, ExecuteError, HostTurn, Isolation, Usage};
use ce_git::Prompts;
use ce_model::exit::Explain;
use ce_model::plan::CallId;
use ce_model::resources::Resources;
use ce_model::task::{Computation, ComputationId, Task};
use ce_storage::records::{
    AuditReport, AuditVerdict, FailedCall, FailureFacts, HostKind, Provenance, TicketEnd,
};
use ce_storage::{Call, Outputs, Stage, Storage, StorageError, Stored};

/// The interval at which it is looked at whether the user asks to stop.
const LOOK: Duration = Duration::from_millis(100);

/// A call cannot be audited, since an input of it is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error, Explain)]
#[error("an input of it is not in the storage")]
#[hint("run its task again, which makes what is missing; ce verify says what is damaged")]
pub struct InputMissing;

/// A call that has a result, with everything that its execution needs.
#[derive(Clone, Debug)]
pub struct AuditedCall {
    /// The task that reads it.
    pub task: Arc<Task>,
    /// Its computation in that task.
    pub computation: ComputationId,
    /// The values that it reads, in order.
    pub sources: Vec<Stored>,
    /// The resources that it requests.
    pub resources: Resources,
    /// The result.
    pub recorded: Outputs,
    /// Its recorded duration, if there is one.
    pub expected: Option<Duration>,
}

/// The time that an audit may take.
#[derive(Clone, Copy, Debug)]
pub struct AuditBudget {
    began: Instant,
    limit: Option<Duration>,
}

/// The end of a call of an audit.
#[derive(Clone, Debug, PartialEq)]
pub enum AuditedEnd {
    /// It was executed, and compared.
    Report(Box<AuditReport>),
    /// It was not completed, for a reason outside of the call.
    NotAudited(FailureFacts),
    /// It would take longer than there is time.
    OverBudget,
}

impl AuditedEnd {
    /// Whether it was executed, and made the recorded outputs.
    pub fn agrees(&self) -> bool {
        matches!(self, Self::Report(report) if report.verdict() == AuditVerdict::Agrees)
    }
}

/// Calls that are executed again.
pub struct Audit<'a> {
    /// The storage with the results.
    pub storage: &'a Arc<Storage>,
    /// The settings of the executions, such as the executor and the queue of workers.
    pub settings: ExecutionSettings<'a>,
    /// The calls, in the order in which they begin.
    pub calls: &'a [AuditedCall],
    /// The available time.
    pub budget: AuditBudget,
}

impl AuditedCall {
    /// Its computation.
    pub fn computation(&self) -> &Computation {
        &self.task.computations[self.computation.index()]
    }
}

impl AuditBudget {
    /// A budget that begins now; without a limit, everything fits.
    pub fn new(limit: Option<Duration>) -> Self {
        Self { began: Instant::now(), limit }
    }

    /// Whether a call of this duration may begin.
    fn allows(&self, expected: Option<Duration>) -> bool {
        fits(self.limit, self.began.elapsed(), expected)
    }
}

/// Whether a call of this duration ends within the limit. A call of unknown duration may begin until the limit is reached.
fn fits(limit: Option<Duration>, elapsed: Duration, expected: Option<Duration>) -> bool {
    limit.is_none_or(|limit| {
        elapsed < limit && elapsed.saturating_add(expected.unwrap_or_default()) <= limit
    })
}

/// A message to the thread that began the audit: how a call ended, once for each, or why it has no end.
pub(super) enum AuditMessage {
    /// The end of a call, here or at a worker.
    Ended(usize, TicketEnd),
    /// It would take longer than there is time.
    OverBudget(usize),
    /// The user asked to stop before it was over.
    Interrupted,
    /// A thread has panicked.
    Panicked,
}

/// A call of an audit that is being executed.
struct AuditExecution<'a> {
    launch: Launch<'a>,
    turn: HostTurn,
    /// Whether it is executed again if another run replaces its export.
    retries: RetryPolicy,
}

/// An audit that is carried out.
struct RunningAudit<'a> {
    audit: &'a Audit<'a>,
    launcher: CallLauncher<'a>,
    scheduler: Scheduler<'a, AuditExecution<'a>, ()>,
    sender: Sender<AuditMessage>,
}

impl Audit<'_> {
    /// Executes the calls, and passes the end of each to `ended`, in this thread. Calls `look` now and then meanwhile.
    /// When the user asks to stop, no further call begins, and calls that were interrupted have no end.
    pub fn run(
        &self,
        ended: &mut dyn FnMut(usize, AuditedEnd),
        look: &dyn Fn(),
    ) -> Result<(), EvaluateError> {
        let fetched = self.fetch(ended);
        let calls: Vec<AuditedCall> = fetched.iter().map(|at| self.calls[*at].clone()).collect();
        let here = Audit { calls: &calls, ..*self };
        let run = here.carry_out(look, &mut |message| match message {
            AuditMessage::Ended(at, end) => ended(fetched[at], audited(end)),
            AuditMessage::OverBudget(at) => ended(fetched[at], AuditedEnd::OverBudget),
            AuditMessage::Interrupted | AuditMessage::Panicked => {}
        });
        self.settings.executor.finish();
        run?;
        self.storage.flush()?;
        Ok(self.storage.availability().check_in_place()?)
    }

    /// Fetches inputs of calls that are away in a clone of a results repository, until the time is over or the user
    /// asks to stop. Returns the places of the calls that have all inputs. Passes on the ends of the others.
    fn fetch(&self, ended: &mut dyn FnMut(usize, AuditedEnd)) -> Vec<usize> {
        let is_away = |it: &&Stored| !self.storage.has(&it.name).unwrap_or(true);
        let (mut here, mut lacking, mut values) = (Vec::new(), Vec::new(), Vec::new());
        for (at, call) in self.calls.iter().enumerate() {
            let away = call.sources.iter().filter(is_away);
            let away: Vec<_> = away.map(|it| (it.name.clone(), it.digest)).collect();
            if away.is_empty() {
                here.push(at);
            } else {
                lacking.push(at);
                values.push(away);
            }
        }
        let mut done = 0;
        while done < lacking.len() && !self.settings.executor.is_cancelled() {
            if !self.budget.allows(None) {
                lacking[done..].iter().for_each(|at| ended(*at, AuditedEnd::OverBudget));
                break;
            }
            let fetched = fetch_values(self.storage, &values[done..], Prompts::Off);
            for (at, fetched) in lacking[done..].iter().zip(&fetched) {
                match fetched {
                    Ok(true) => here.push(*at),
                    Ok(false) => {
                        ended(*at, AuditedEnd::NotAudited(FailureFacts::of_error(&InputMissing)));
                    }
                    Err(error) => {
                        let error = CallError::Fetch(Arc::clone(error));
                        if !error.is_interrupted() {
                            ended(*at, AuditedEnd::NotAudited(error.facts().in_full()));
                        }
                    }
                }
            }
            done += fetched.len();
        }
        here.sort_unstable();
        here
    }

    /// Executes the calls, and passes on the end of each, in this thread.
    pub(super) fn carry_out(
        &self,
        look: &dyn Fn(),
        pass: &mut dyn FnMut(AuditMessage),
    ) -> Result<(), EvaluateError> {
        let executor = self.settings.executor;
        let capacity = executor.capacity().get();
        // With a limited time, no more calls wait for workers than may be executed here.
        let slots = match self.settings.queue {
            Some(_) if self.budget.limit.is_none() => MAX_TICKETS,
            _ => capacity,
        };
        let (sender, receiver) = channel();
        let audit = &RunningAudit {
            audit: self,
            launcher: CallLauncher { storage: self.storage, settings: self.settings },
            scheduler: Scheduler::new(
                Some(self.settings),
                (0..self.calls.len()).map(CallId::at),
                Reservations::new(slots, executor.offer()),
            ),
            sender,
        };
        audit.scheduler.with_threads(
            capacity.min(self.calls.len()),
            &|| audit.work(),
            &|| audit.send(AuditMessage::Panicked),
            || {
                let mut left = self.calls.len();
                while left > 0 {
                    look();
                    match receiver.recv_timeout(LOOK) {
                        Ok(AuditMessage::Panicked) | Err(RecvTimeoutError::Disconnected) => break,
                        Ok(message) => {
                            left -= 1;
                            pass(message);
                        }
                        Err(RecvTimeoutError::Timeout) => {}
                    }
                }
                audit.scheduler.close();
            },
        )
    }
}

impl RunningAudit<'_> {
    /// Does what there is to do, until every call is over.
    fn work(&self) {
        while let Some(work) = self.scheduler.next() {
            match work {
                Work::Ready(id, grants) => self.begin(id, grants.is_reserved),
                Work::Begun(_) | Work::Fetch(_) => {}
                Work::Ended(id, execution, end) => self.conclude(id, execution, end),
                Work::Answered(id, (), end) => self.end(id, end),
            }
        }
    }

    /// Executes a call, if it has the resources that it asks for. It needs no lease, since no published file changes.
    fn begin(&self, id: CallId, is_reserved: bool) {
        let call = self.call(id);
        let settings = &self.launcher.settings;
        let executor = settings.executor;
        if executor.is_cancelled() {
            return self.end(id, None);
        }
        if !self.audit.budget.allows(call.expected) {
            self.scheduler.release(id);
            return self.send(AuditMessage::OverBudget(id.index()));
        }
        if let Some(queue) = settings.queue {
            return self.put(id, queue);
        }
        if !is_reserved {
            let unsatisfiable =
                Unsatisfiable::find(&call.resources, executor.capacity().get(), &executor.offer());
            if let Some(unsatisfiable) = unsatisfiable {
                return self.end(id, Some(TicketEnd::Refused(unsatisfiable.to_string())));
            }
            if let Some(reservation) = Reservation::from_resources(&call.resources) {
                return self.scheduler.reserve(id, reservation);
            }
        }
        match executor.enter(turn_request(&call.resources), true) {
            Ok(Some(turn)) => self.attempt(id, turn, RetryPolicy::of_audit()),
            Ok(None) | Err(ExecuteError::Interrupted) => self.end(id, None),
            Err(ExecuteError::Refused(why)) => self.end(id, Some(TicketEnd::Refused(why))),
            Err(error) => self.end(id, Some(call.failed(None, &error.into(), None, None))),
        }
    }

    /// Queues a call for workers.
    fn put(&self, id: CallId, queue: &WorkerQueue) {
        let call = self.call(id);
        let standing = match self.launcher.settings.exports.for_workers(call.computation()) {
            Ok(standing) => standing,
            Err(error) => return self.end(id, Some(call.not_executed(&error))),
        };
        let ticket = TicketCall {
            task: &call.task,
            computation: call.computation(),
            standing,
            values: &call.sources,
            resources: call.resources.clone(),
            forced: false,
            accept: false,
            audited: true,
        };
        if let Err(error) = self.scheduler.put(id, (), &ticket.write(queue.rules())) {
            self.end(id, Some(call.broken(&error.into())));
        }
    }

    /// Launches the next execution of a call.
    fn attempt(&self, id: CallId, turn: HostTurn, retries: RetryPolicy) {
        let call = self.call(id);
        let prepared = self.launcher.prepare(LaunchRequest {
            name: &call.recorded.name,
            computation: call.computation(),
            sources: &call.sources,
            resources: &call.resources,
            turn: Some(&turn),
            purpose: Purpose::Compare,
        });
        match prepared {
            Ok((launch, invocation)) => {
                self.scheduler.submit(id, AuditExecution { launch, turn, retries }, invocation);
            }
            Err(error @ CallError::NotADirectory { .. }) => {
                self.end(id, Some(call.failed(None, &error, None, None)));
            }
            Err(error) => self.end(id, Some(call.not_executed(&error))),
        }
    }

    /// Continues a call after an execution of it has ended.
    fn conclude(
        &self,
        id: CallId,
        execution: AuditExecution<'_>,
        end: Result<Ended, ExecuteError>,
    ) {
        let AuditExecution { mut launch, turn, mut retries } = execution;
        let call = self.call(id);
        let end = self.launcher.judge(&launch, &call.sources, end);
        if self.launcher.is_replaced(&launch, call.computation(), &end) {
            drop(launch);
            if retries.allows_new_export() {
                return self.attempt(id, turn, retries);
            }
            let how = "others have replaced its computation all the time".to_owned();
            return self.end(id, Some(TicketEnd::Lost(how)));
        }
        let executor = self.launcher.settings.executor;
        let watch = SealingWatch::start(executor, &mut launch, &call.computation().outputs, &end);
        let scene = self.launcher.scene(&launch.tree, call.computation(), &call.sources);
        let end = watch.during(drop, || call.compare(launch.stage, end, &watch, &scene));
        // Others may have it before the next call asks.
        drop((turn, launch.tree));
        self.end(id, end.unwrap_or_else(|error| Some(call.broken(&error.into()))));
    }

    /// Ends a call; without an end, the user asked to stop.
    fn end(&self, id: CallId, end: Option<TicketEnd>) {
        self.scheduler.release(id);
        self.send(match end {
            Some(end) => AuditMessage::Ended(id.index(), end),
            None => AuditMessage::Interrupted,
        });
    }

    fn call(&self, id: CallId) -> &AuditedCall {
        &self.audit.calls[id.index()]
    }

    fn send(&self, message: AuditMessage) {
        // The receiver lives as long as the threads.
        drop(self.sender.send(message));
    }
}

/// Returns the end of an audited call from the end of its ticket.
fn audited(end: TicketEnd) -> AuditedEnd {
    let reason = match end {
        TicketEnd::Audited(report) => return AuditedEnd::Report(report),
        TicketEnd::Failed(failed) => return AuditedEnd::NotAudited(failed.failure),
        TicketEnd::Refused(why) => why,
        TicketEnd::Lost(how) => how,
        TicketEnd::OutOfMemory => "it used more memory than its worker had".to_owned(),
        TicketEnd::OutOfTime(_) => "it did not end within the time of its worker".to_owned(),
        TicketEnd::Published(_) | TicketEnd::Suspended(_) => {
            "its worker is of a version that audits nothing".to_owned()
        }
    };
    AuditedEnd::NotAudited(FailureFacts::of_reason(reason))
}

impl AuditedCall {
    /// Compares the outputs of an execution with the result. Returns `None` if the user asks to stop.
    fn compare(
        &self,
        mut stage: Stage<'_>,
        end: Result<Ended, ExecuteError>,
        watch: &SealingWatch<'_>,
        scene: &Scene<'_>,
    ) -> Result<Option<TicketEnd>, StorageError> {
        let (stage, usage, error) = match end {
            Ok(Ended::Done(usage)) => {
                let (version, outputs) = (self.computation().into(), &self.computation().outputs);
                let inputs: Vec<_> = self.sources.iter().map(|it| it.digest).collect();
                let call = Call { version, inputs: &inputs, outputs };
                match stage.seal(call, execution(&usage, self.computation(), Vec::new())) {
                    Ok(sealed) => {
                        let outputs = sealed.digests();
                        let differing = sealed.compare(&self.recorded)?;
                        let report = AuditReport { outputs, differing, ..report(Some(&usage)) };
                        return Ok(Some(TicketEnd::Audited(Box::new(report))));
                    }
                    Err(failed) => {
                        let (stage, error) = *failed;
                        match watch.judge(error, usage.clone()) {
                            Some(error) => (stage, Some(usage), error),
                            None => return Ok(None),
                        }
                    }
                }
            }
            Ok(Ended::Failed(failed)) => {
                (stage, Some(failed.usage.clone()), CallError::Ended(Box::new(failed)))
            }
            Ok(Ended::Suspended(_)) => {
                let why = "it is suspended, and an audit does not wait for what goes on elsewhere";
                return Ok(Some(TicketEnd::Refused(why.to_owned())));
            }
            Ok(Ended::Lost(how)) => {
                // It may still run.
                stage.doubt();
                return Ok(Some(TicketEnd::Lost(how)));
            }
            Err(ExecuteError::Refused(why)) => return Ok(Some(TicketEnd::Refused(why))),
            Err(ExecuteError::Interrupted) => return Ok(None),
            Err(error) => (stage, None, CallError::from(error)),
        };
        if error.is_storage() {
            return Ok(Some(self.broken(&error)));
        }
        // The stage is emptied afterwards.
        let hint = hint::hint(&stage, scene, &error);
        let log = stage.fail_audit(&self.recorded.name)?;
        Ok(Some(self.failed(usage.as_ref(), &error, hint, log)))
    }

    /// The call has failed, which is a verdict.
    fn failed(
        &self,
        usage: Option<&Usage>,
        error: &CallError,
        hint: Option<String>,
        log: Option<String>,
    ) -> TicketEnd {
        let facts = error.facts();
        let failed = FailureFacts { hint: hint.or_else(|| facts.hint.clone()), log, ..facts };
        TicketEnd::Audited(Box::new(AuditReport { failed: Some(failed), ..report(usage) }))
    }

    /// Its computation is not available, which is not the call's fault.
    fn not_executed(&self, error: &CallError) -> TicketEnd {
        if error.is_storage() { self.broken(error) } else { TicketEnd::Refused(error.in_full()) }
    }

    /// The storage cannot be read or written.
    fn broken(&self, error: &CallError) -> TicketEnd {
        let (name, failure) = (self.recorded.name.short(), error.facts().in_full());
        TicketEnd::Failed(FailedCall { name, failure })
    }
}

/// A report without outputs. Without usage, nothing was started.
fn report(usage: Option<&Usage>) -> AuditReport {
    AuditReport {
        start: usage.map_or_else(|| Provenance::now().at, |usage| usage.start),
        seconds: usage.map_or(0.0, Usage::seconds),
        peak_bytes: usage.map_or(0, |usage| usage.peak),
        isolation: isolation_word(usage.map_or(Isolation::None, |it| it.isolation)).into(),
        host_kind: Some(HostKind::here().clone()),
        outputs: Vec::new(),
        differing: Vec::new(),
        failed: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_call_over_the_budget_ends_the_audit() {
        let seconds = Duration::from_secs;
        let (limit, known) = (Some(seconds(10)), |it| Some(seconds(it)));
        assert!(fits(limit, seconds(0), known(10)) && !fits(limit, seconds(0), known(11)));
        assert!(fits(limit, seconds(7), known(3)) && !fits(limit, seconds(7), known(4)));
        assert!(fits(limit, seconds(9), None) && !fits(limit, seconds(10), None));
        assert!(!fits(limit, seconds(10), known(0)));
        assert!(fits(None, seconds(1000), known(1000)));
    }
}
