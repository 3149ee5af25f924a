//! Audits: calls that have results are executed again, and compared with them, here or by workers elsewhere.
//!
//! The calls do not wait for each other, since what each reads is in the storage. They begin in their order, as the resources
//! that they ask for allow.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::execution::turn_request;
use super::exports::MAX_TRIES;
use super::hint::{self, Scene};
use super::launcher::{CallLauncher, LaunchRequest, Purpose, execution, isolation_word, limit};
use super::queue::{MAX_TICKETS, TicketWatcher};
use super::reservations::{Misfit, Reservation, Reservations};
use super::ticket::TicketCall;
use super::{CallError, EvaluateError, ExecutionSettings};
use ce_executor::{Completion, Ended, ExecuteError, HostTurn, Isolation, Usage};
use ce_model::exit::Explain;
use ce_model::plan::CallId;
use ce_model::resources::Resources;
use ce_model::task::{Computation, ComputationId, Task};
use ce_storage::records::{
    AuditFailure, AuditReport, AuditVerdict, FailedCall, HostKind, Provenance, TicketEnd,
};
use ce_storage::{Call, Outputs, Stage, Storage, StorageError, Stored};

/// The interval at which it is looked at whether the user asks to stop.
const LOOK: Duration = Duration::from_millis(100);

/// A call that has a result, with everything that its execution needs.
#[derive(Clone, Debug)]
pub struct AuditedCall {
    /// The task that reads it.
    pub task: Arc<Task>,
    /// Its computation in that task.
    pub computation: ComputationId,
    /// The values that it reads, in order.
    pub sources: Vec<Stored>,
    /// What it asks for.
    pub resources: Resources,
    /// The result.
    pub recorded: Outputs,
    /// How long it took, if that is recorded.
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
    /// It was not, which it is not to blame for; in words, why.
    NotAudited(String),
    /// It was not, since the storage could not be read or written; in words, why.
    Broken(String),
    /// It would take longer than there is time.
    OverBudget,
}

impl AuditedEnd {
    /// Whether it was executed, and made what is recorded.
    pub fn agrees(&self) -> bool {
        matches!(self, Self::Report(report) if report.verdict() == AuditVerdict::Agrees)
    }
}

/// Calls that are executed again.
pub struct Audit<'a> {
    /// The storage with the results.
    pub storage: &'a Arc<Storage>,
    /// How calls are executed, and where.
    pub settings: ExecutionSettings<'a>,
    /// The calls, in the order in which they begin.
    pub calls: &'a [AuditedCall],
    /// The time that there is.
    pub budget: AuditBudget,
}

/// The next call, and the resources that are free.
struct AuditDesk {
    next: usize,
    free: Reservations,
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

    /// Whether a call may begin that took so long.
    fn allows(&self, expected: Option<Duration>) -> bool {
        fits(self.limit, self.began.elapsed(), expected)
    }
}

/// Whether a call that takes so long ends within the limit. A call of unknown duration may begin until the limit is reached.
fn fits(limit: Option<Duration>, elapsed: Duration, expected: Option<Duration>) -> bool {
    limit.is_none_or(|limit| {
        elapsed < limit && elapsed.saturating_add(expected.unwrap_or_default()) <= limit
    })
}

impl Audit<'_> {
    /// Executes the calls, and passes the end of each to `ended`, in this thread. Calls `look` now and then meanwhile. When the
    /// user asks to stop, no further call begins, and those that were ended have no end.
    ///
    /// # Errors
    ///
    /// Fails if threads cannot be started, or what was written cannot be flushed.
    pub fn run(
        &self,
        ended: &mut dyn FnMut(usize, AuditedEnd),
        look: &dyn Fn(),
    ) -> Result<(), EvaluateError> {
        let run = match self.settings.queue {
            Some(_) => self.at_workers(ended, look),
            None => self.here(ended, look),
        };
        self.settings.executor.finish();
        run?;
        self.storage.flush()?;
        Ok(self.storage.check_in_place()?)
    }

    fn here(
        &self,
        ended: &mut dyn FnMut(usize, AuditedEnd),
        look: &dyn Fn(),
    ) -> Result<(), EvaluateError> {
        let executor = self.settings.executor;
        let slots = executor.capacity();
        let free = Reservations::new(slots.get(), executor.offer());
        let desk = (Mutex::new(AuditDesk { next: 0, free }), Condvar::new());
        let (sender, receiver) = channel();
        thread::scope(|scope| {
            for _ in 0..slots.get().min(self.calls.len()) {
                let (sender, desk) = (sender.clone(), &desk);
                let thread = thread::Builder::new().name("audit".to_owned());
                let work = move || self.work(desk, &sender);
                thread.spawn_scoped(scope, work).map_err(EvaluateError::Threads)?;
            }
            drop(sender);
            loop {
                look();
                match receiver.recv_timeout(LOOK) {
                    Ok((call, end)) => ended(call, end),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return Ok(()),
                }
            }
        })
    }

    /// Executes calls until there are no more.
    fn work(&self, desk: &(Mutex<AuditDesk>, Condvar), sender: &Sender<(usize, AuditedEnd)>) {
        while let Some(at) = self.take(desk, sender) {
            let call = &self.calls[at];
            let subject = AuditSubject {
                storage: self.storage,
                computation: call.computation(),
                sources: &call.sources,
                resources: &call.resources,
                recorded: &call.recorded,
            };
            let end = subject.audit(&self.settings);
            lock(&desk.0).free.release(CallId::at(at));
            desk.1.notify_all();
            if let Some(end) = end {
                // The receiver lives as long as this thread.
                drop(sender.send((at, audited(end))));
            }
        }
    }

    /// Takes the next call when there is what it asks for. Returns `None` if there is none, or the user asks to stop.
    fn take(
        &self,
        (desk, changed): &(Mutex<AuditDesk>, Condvar),
        sender: &Sender<(usize, AuditedEnd)>,
    ) -> Option<usize> {
        let executor = self.settings.executor;
        let mut desk = lock(desk);
        loop {
            let call = self.calls.get(desk.next).filter(|_| !executor.is_cancelled())?;
            let (at, asked) = (desk.next, &call.resources);
            let refusal = match Misfit::of(asked, executor.capacity().get(), &executor.offer()) {
                _ if !self.budget.allows(call.expected) => Some(AuditedEnd::OverBudget),
                Some(misfit) => Some(AuditedEnd::NotAudited(misfit.to_string())),
                None => None,
            };
            if let Some(refusal) = refusal {
                desk.next += 1;
                drop(sender.send((at, refusal)));
                continue;
            }
            let reservation = Reservation::of(asked).unwrap_or(Reservation::ONE);
            if desk.free.fits(reservation) {
                desk.free.take(CallId::at(at), reservation);
                desk.next += 1;
                return Some(at);
            }
            let waited = changed.wait_timeout(desk, LOOK);
            desk = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Lets workers execute the calls. With a limited time, no more wait than may be executed here.
    fn at_workers(
        &self,
        ended: &mut dyn FnMut(usize, AuditedEnd),
        look: &dyn Fn(),
    ) -> Result<(), EvaluateError> {
        let executor = self.settings.executor;
        let most = match self.budget.limit {
            Some(_) => executor.capacity().get(),
            None => MAX_TICKETS,
        };
        let (sender, receiver) = channel();
        let (mut next, mut open) = (0, 0);
        loop {
            while open < most && next < self.calls.len() && !executor.is_cancelled() {
                let at = next;
                next += 1;
                match self.put(at, &sender) {
                    Ok(()) => open += 1,
                    Err(end) => ended(at, end),
                }
            }
            if open == 0 {
                return Ok(());
            }
            look();
            if let Ok((at, end)) = receiver.recv_timeout(LOOK) {
                open -= 1;
                if let Some(end) = end {
                    ended(at, audited(end));
                }
            }
        }
    }

    /// Queues a call for workers.
    fn put(
        &self,
        at: usize,
        sender: &Sender<(usize, Option<TicketEnd>)>,
    ) -> Result<(), AuditedEnd> {
        let Some(queue) = self.settings.queue else { return Ok(()) };
        let call = &self.calls[at];
        if !self.budget.allows(call.expected) {
            return Err(AuditedEnd::OverBudget);
        }
        let computation = call.computation();
        let standing = self.settings.exports.for_workers(computation).map_err(|error| {
            let why = error.in_full();
            if error.is_storage() { AuditedEnd::Broken(why) } else { AuditedEnd::NotAudited(why) }
        })?;
        let ticket = TicketCall {
            task: &call.task,
            computation,
            standing,
            values: &call.sources,
            resources: call.resources.clone(),
            forced: false,
            accept: false,
            audited: true,
        };
        let sender = sender.clone();
        let watcher = TicketWatcher {
            begun: Box::new(|| {}),
            ended: Box::new(move |end| drop(sender.send((at, end)))),
        };
        let put = queue.put(&ticket.write(queue.rules()), watcher);
        put.map_err(|error| AuditedEnd::Broken(error.to_string()))
    }
}

/// Returns the end of an audited call from the end of its ticket.
fn audited(end: TicketEnd) -> AuditedEnd {
    AuditedEnd::NotAudited(match end {
        TicketEnd::Audited(report) => return AuditedEnd::Report(report),
        TicketEnd::Failed(failed) if failed.storage => return AuditedEnd::Broken(failed.reason),
        TicketEnd::Failed(failed) => failed.reason,
        TicketEnd::Refused(why) => why,
        TicketEnd::Lost(how) => how,
        TicketEnd::OutOfTime(_) => "it did not end within the time of its worker".to_owned(),
        TicketEnd::Published(_) | TicketEnd::Suspended(_) => {
            "its worker is of a version that audits nothing".to_owned()
        }
    })
}

fn lock(desk: &Mutex<AuditDesk>) -> MutexGuard<'_, AuditDesk> {
    desk.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A call that is executed again.
pub(super) struct AuditSubject<'a> {
    pub(super) storage: &'a Storage,
    pub(super) computation: &'a Computation,
    /// The values that it reads, in order.
    pub(super) sources: &'a [Stored],
    /// What it asks for.
    pub(super) resources: &'a Resources,
    /// The result.
    pub(super) recorded: &'a Outputs,
}

/// The end of an attempt.
enum AttemptEnd {
    /// There is nothing more to do.
    Over(Option<TicketEnd>),
    /// Another run has put its own export in the place of that of this one, or the export is not there any more.
    Replaced,
}

impl AuditSubject<'_> {
    /// Executes the call, and compares. Returns `None` if the user asks to stop.
    pub(super) fn audit(&self, settings: &ExecutionSettings<'_>) -> Option<TicketEnd> {
        self.execute(settings).unwrap_or_else(|error| Some(self.broken(&error.into())))
    }

    fn execute(&self, settings: &ExecutionSettings<'_>) -> Result<Option<TicketEnd>, StorageError> {
        let turn = match settings.executor.enter(turn_request(self.resources), true) {
            Ok(Some(turn)) => turn,
            Ok(None) | Err(ExecuteError::Interrupted) => return Ok(None),
            Err(ExecuteError::Refused(why)) => return Ok(Some(TicketEnd::Refused(why))),
            Err(error) => return Ok(Some(self.failed(None, &error.into(), None, None))),
        };
        for _ in 0..MAX_TRIES {
            match self.attempt(settings, &turn)? {
                AttemptEnd::Over(end) => return Ok(end),
                AttemptEnd::Replaced => {}
            }
        }
        Ok(Some(TicketEnd::Lost("others have replaced its computation all the time".to_owned())))
    }

    fn attempt(
        &self,
        settings: &ExecutionSettings<'_>,
        turn: &HostTurn,
    ) -> Result<AttemptEnd, StorageError> {
        let Self { storage, computation, sources, resources, recorded } = *self;
        let launcher = CallLauncher { storage, settings: *settings };
        let (name, gpus) = (&recorded.name, turn.gpus());
        let purpose = Purpose::Compare;
        let request = LaunchRequest { name, computation, sources, resources, gpus, purpose };
        let (launch, invocation) = match launcher.prepare(request) {
            Ok(prepared) => prepared,
            Err(error @ CallError::NotADirectory { .. }) => {
                return Ok(AttemptEnd::Over(Some(self.failed(None, &error, None, None))));
            }
            Err(error) => return Ok(AttemptEnd::Over(Some(self.not_executed(&error)))),
        };
        let (sender, ended) = channel();
        // The receiver is gone only if this thread has panicked.
        settings.executor.submit(invocation, Completion::new(move |end| drop(sender.send(end))));
        let end = ended.recv().unwrap_or(Err(ExecuteError::Interrupted));
        let end = launcher.judge(&launch, sources, end);
        if launcher.is_replaced(&launch, computation, &end) {
            return Ok(AttemptEnd::Replaced);
        }
        let scene = launcher.scene(&launch.tree, computation, sources);
        self.conclude(launch.stage, end, &scene).map(AttemptEnd::Over)
    }

    fn conclude(
        &self,
        mut stage: Stage<'_>,
        end: Result<Ended, ExecuteError>,
        scene: &Scene<'_>,
    ) -> Result<Option<TicketEnd>, StorageError> {
        let (stage, usage, error) = match end {
            Ok(Ended::Done(usage)) => {
                limit(&mut stage, &usage);
                let (version, outputs) = (self.computation.into(), &self.computation.outputs);
                let inputs: Vec<_> = self.sources.iter().map(|it| it.digest).collect();
                let call = Call { version, inputs: &inputs, outputs };
                match stage.seal(call, execution(&usage, self.computation, Vec::new())) {
                    Ok(sealed) => {
                        let outputs = sealed.digests();
                        let differing = sealed.compare(self.recorded)?;
                        let report = AuditReport { outputs, differing, ..report(Some(&usage)) };
                        return Ok(Some(TicketEnd::Audited(Box::new(report))));
                    }
                    Err((stage, error)) => (stage, Some(usage), CallError::from(error)),
                }
            }
            Ok(Ended::Failed(failed)) => {
                limit(&mut stage, &failed.usage);
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
        let hint = hint.or_else(|| error.hint());
        let reason = error.to_string();
        let cause = error.in_full().strip_prefix(&format!("{reason}: ")).map(str::to_owned);
        let failed = Some(AuditFailure { reason, cause, hint, log });
        TicketEnd::Audited(Box::new(AuditReport { failed, ..report(usage) }))
    }

    /// Its computation is not to be had, which the call is not to blame for.
    fn not_executed(&self, error: &CallError) -> TicketEnd {
        match error.is_storage() {
            true => self.broken(error),
            false => TicketEnd::Refused(error.in_full()),
        }
    }

    /// The storage cannot be read or written.
    fn broken(&self, error: &CallError) -> TicketEnd {
        TicketEnd::Failed(FailedCall {
            name: self.recorded.name.short(),
            reason: error.in_full(),
            hint: error.hint(),
            recurs: false,
            storage: true,
        })
    }
}

/// A report without outputs. Without usage, nothing was started.
fn report(usage: Option<&Usage>) -> AuditReport {
    AuditReport {
        start: usage.map_or_else(|| Provenance::now().at, |usage| usage.start),
        seconds: usage.map_or(0.0, Usage::seconds),
        peak_bytes: usage.map_or(0, |usage| usage.peak),
        isolation: isolation_word(usage.map_or(Isolation::None, |it| it.isolation)).to_owned(),
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
    fn no_call_begins_that_would_exceed_the_budget_and_none_after_it() {
        let seconds = Duration::from_secs;
        let (limit, known) = (Some(seconds(10)), |it| Some(seconds(it)));
        assert!(fits(limit, seconds(0), known(10)) && !fits(limit, seconds(0), known(11)));
        assert!(fits(limit, seconds(7), known(3)) && !fits(limit, seconds(7), known(4)));
        assert!(fits(limit, seconds(9), None) && !fits(limit, seconds(10), None));
        assert!(!fits(limit, seconds(10), known(0)));
        assert!(fits(None, seconds(1000), known(1000)));
    }
}
