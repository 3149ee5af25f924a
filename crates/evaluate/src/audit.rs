//! Audits: calls that have results are executed again, and compared with them, here or by workers elsewhere.
//!
//! The calls do not wait for each other, since what each reads is in the storage. They begin in their order, as the resources
//! that they ask for allow.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::audited::AuditSubject;
use super::oversized_calls::Misfit;
use super::pending_ticket::TicketWatcher;
use super::queue::MAX_TICKETS;
use super::reservations::{Reservation, Reservations};
use super::ticket::TicketCall;
use super::{EvaluateError, ExecutionSettings};
use ce_model::plan::CallId;
use ce_model::resources::Resources;
use ce_model::task::{Computation, ComputationId, Task};
use ce_storage::records::{AuditReport, AuditVerdict, TicketEnd};
use ce_storage::{Outputs, Storage, Stored};

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
