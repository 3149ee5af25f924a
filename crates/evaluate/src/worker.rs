//! Workers: runs that execute the calls of other runs.
//!
//! A worker claims tickets from the queues of all living runs, as many as it has room for, and evaluates each as a task
//! of one call. It ends when no run has had a ticket for it for a while, when its time is over, or when it is asked to.
//! Its results are published like any others, whether or not the run that wanted them is alive.

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::audit::{Audit, AuditBudget, AuditMessage, AuditedCall};
use super::capacity::{Reservation, Reservations, Unsatisfiable};
use super::{
    CallError, EvaluateError, Evaluator, Event, ExecutionSettings, Exports, ForcedCalls, Policy,
    ticket, waiting_calls,
};
use ce_executor::{
    Completion, Ended, ExecuteError, Executor, GRACE, HostTurn, Invocation, Offer, SandboxError,
    Status, TurnRequest,
};
use ce_files::state::SecretKey;
use ce_model::digest::Blake3;
use ce_model::plan::CallId;
use ce_model::resources::Resources;
use ce_model::task::{ComputationId, Task};
use ce_storage::records::{FailedCall, OutOfTime, Ticket, TicketEnd};
use ce_storage::{
    Call, ClaimedTicket, Found, Outputs, QueueSearch, ServedQueue, Storage, StorageError,
    TicketContents, lease_timeout,
};

/// The shortest and the longest pause between two looks for tickets.
const PAUSES: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(250)];

/// The age at which a list of tickets is read again.
const STALE: Duration = Duration::from_secs(1);

/// The interval at which a worker looks again for the files that a call needs.
const LOOK: Duration = Duration::from_millis(200);

/// A worker.
pub struct Worker<'a> {
    pub storage: &'a Arc<Storage>,
    /// Starts processes.
    pub executor: &'a dyn Executor,
    /// The directories that computations run from.
    pub exports: &'a Exports<'a>,
    /// For whom it works, and how long.
    pub rules: WorkerRules,
    /// The keys of the users whose calls it executes: its own comes first.
    pub keys: Arc<[SecretKey]>,
    /// Receives events, in the thread where they happen.
    pub observe: &'a (dyn Fn(WorkerEvent<'_>) + Sync),
}

/// An event of a worker.
#[derive(Debug)]
pub enum WorkerEvent<'a> {
    /// It executes a ticket.
    Began(&'a Ticket),
    /// It has answered a ticket; `None` if another worker may have it.
    Ended(&'a Ticket, Option<&'a TicketEnd>),
    /// It refuses a ticket that no run of a user with a key has written, for this reason.
    Distrusted(&'a str),
}

/// A ticket that waits.
struct WaitingTicket<'a> {
    queue: ServedQueue<'a>,
    class: String,
    number: u64,
    reservation: Reservation,
}

/// A ticket that a thread is to execute.
struct Assignment<'a> {
    key: CallId,
    claimed: ClaimedTicket<'a>,
    id: String,
}

/// A ticket that a thread has executed.
struct Finished {
    key: CallId,
    /// The unique id of the ticket, if it was refused.
    refused: Option<String>,
    /// Fails if the storage could not be written.
    answered: Result<(), StorageError>,
}

/// The resources of a worker, and the free ones among them.
struct ClaimState<'a> {
    slots: usize,
    offer: Offer,
    free: Reservations,
    /// The waiting tickets at the time of the listing, the first one last.
    waiting: Vec<WaitingTicket<'a>>,
    listed: Option<Instant>,
    refused: HashSet<String>,
    queues: QueueSearch<'a>,
    running: usize,
    given: usize,
}

impl<'a> Worker<'a> {
    /// Works until no work is left.
    pub fn work(&self) -> Result<(), EvaluateError> {
        let slots = self.executor.capacity().get();
        let (assign, assignments) = channel::<Assignment<'a>>();
        let (finish, finished) = channel();
        let assignments = Mutex::new(assignments);
        let done = Mutex::new(HashSet::new());
        let time = WorkerTime { began: Instant::now(), life: self.rules.life };
        let ended: Result<(), EvaluateError> = thread::scope(|scope| {
            for _ in 0..slots {
                let (finish, assignments, done) = (finish.clone(), &assignments, &done);
                let thread = thread::Builder::new().name("worker".to_owned());
                let serve = move || self.serve(time, assignments, &finish, done);
                thread.spawn_scoped(scope, serve).map_err(EvaluateError::Threads)?;
            }
            drop(finish);
            let worked = self.assign(time, &assign, &finished);
            drop(assign);
            let answered = self.end_calls(time, &finished);
            Ok(worked.and(answered)?)
        });
        self.executor.finish();
        ended?;
        // The calls that have ended since the last one was assigned.
        Ok(finished.try_iter().try_for_each(|it| it.answered)?)
    }

    /// Claims tickets as long as there are any.
    fn assign(
        &self,
        time: WorkerTime,
        assign: &Sender<Assignment<'a>>,
        finished: &Receiver<Finished>,
    ) -> Result<(), StorageError> {
        let slots = self.executor.capacity().get();
        let offer = self.executor.offer();
        let free = Reservations::new(slots, offer);
        let mut state = ClaimState {
            slots,
            offer,
            free,
            waiting: Vec::new(),
            listed: None,
            refused: HashSet::new(),
            queues: self
                .storage
                .runs()
                .search_queues(self.rules.users.clone(), Arc::clone(&self.keys)),
            running: 0,
            given: 0,
        };
        let [shortest, longest] = PAUSES;
        let mut pause = shortest;
        let mut busy = Instant::now();
        loop {
            if self.executor.is_cancelled() || time.is_over() {
                return Ok(());
            }
            let claimed = self.claim(&mut state, time, assign)?;
            if claimed > 0 || state.running > 0 {
                busy = Instant::now();
            }
            if busy.elapsed() > self.rules.idle {
                return Ok(());
            }
            pause = if claimed > 0 { shortest } else { (pause * 2).min(longest) };
            let left = time.left().unwrap_or(pause);
            match finished.recv_timeout(pause.min(left)) {
                Ok(first) => {
                    let all = std::iter::once(first).chain(finished.try_iter());
                    for Finished { key, refused, answered } in all {
                        // A worker that ends is noticed. Its calls are given to others.
                        answered?;
                        state.free.release(key);
                        state.running -= 1;
                        state.refused.extend(refused);
                    }
                    pause = shortest;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
        }
    }

    /// Ends the calls that are still being executed when the time is over.
    fn end_calls(
        &self,
        time: WorkerTime,
        finished: &Receiver<Finished>,
    ) -> Result<(), StorageError> {
        if self.executor.is_cancelled() || !time.is_over() {
            return Ok(());
        }
        self.executor.cancel();
        let end = Instant::now() + GRACE;
        let mut answered = Ok(());
        // All threads have ended when nothing can come any more.
        loop {
            match finished.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(finished) => answered = answered.and(finished.answered),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return answered,
            }
            if Instant::now() >= end {
                self.executor.kill();
                return answered;
            }
        }
    }

    /// Claims what there is room for. Returns how many tickets that were.
    fn claim(
        &self,
        state: &mut ClaimState<'a>,
        time: WorkerTime,
        assign: &Sender<Assignment<'a>>,
    ) -> Result<usize, StorageError> {
        let mut claimed = 0;
        if !state.free.fits(Reservation::ONE) {
            return Ok(claimed);
        }
        let is_stale = state.listed.is_none_or(|listed| listed.elapsed() > STALE);
        if is_stale || state.waiting.is_empty() {
            self.list(state, time)?;
        }
        // The first ticket has priority: resources that it needs are not given to later ones. Tickets that are gone
        // since they were listed follow each other: twice as many are skipped each time, or each of many workers would
        // try all tickets. Skipped tickets that still wait are listed again.
        let mut skipped = 0;
        while let Some(first) = state.waiting.last()
            && state.free.fits(first.reservation)
            && let Some(WaitingTicket { queue, class, number, reservation }) = state.waiting.pop()
        {
            // A run that has just ended has no tickets any more.
            let ticket = match queue.claim(&class, number) {
                Err(_) if !queue.is_served() => None,
                ticket => ticket?,
            };
            let Some(ticket) = ticket else {
                state.waiting.truncate(state.waiting.len().saturating_sub(skipped));
                skipped = 2 * skipped + 1;
                continue;
            };
            skipped = 0;
            let key = CallId::at(state.given);
            state.given += 1;
            state.running += 1;
            claimed += 1;
            state.free.take(key, reservation);
            let id = queue.id(number);
            if assign.send(Assignment { key, claimed: ticket, id }).is_err() {
                break;
            }
        }
        Ok(claimed)
    }

    /// Lists the tickets that wait, and that this worker can execute.
    fn list(&self, state: &mut ClaimState<'a>, time: WorkerTime) -> Result<(), StorageError> {
        state.waiting.clear();
        for queue in state.queues.look()? {
            for (class, numbers) in queue.tickets()? {
                let Some(resources) = Resources::of_class(&class) else { continue };
                let is_too_much =
                    Unsatisfiable::find(&resources, state.slots, &state.offer).is_some();
                let is_wasteful = self.rules.only_spanning && !resources.spans();
                if is_too_much || is_wasteful || !time.suffices_for(&resources) {
                    continue;
                }
                let reservation =
                    Reservation::from_resources(&resources).unwrap_or(Reservation::ONE);
                for number in numbers {
                    if state.refused.is_empty() || !state.refused.contains(&queue.id(number)) {
                        let (queue, class) = (queue.clone(), class.clone());
                        state.waiting.push(WaitingTicket { queue, class, number, reservation });
                    }
                }
            }
        }
        // The tickets of several runs take turns.
        state.waiting.sort_by_key(|it| std::cmp::Reverse(it.number));
        state.listed = Some(Instant::now());
        Ok(())
    }

    /// Executes tickets until there are no more.
    fn serve(
        &self,
        time: WorkerTime,
        assignments: &Mutex<Receiver<Assignment<'a>>>,
        finish: &Sender<Finished>,
        done: &Mutex<HashSet<Blake3>>,
    ) {
        loop {
            let next = assignments.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(Assignment { key, claimed, id }) = next else { return };
            let distrusted = |why: String| {
                (self.observe)(WorkerEvent::Distrusted(&why));
                Some(TicketEnd::Refused(why))
            };
            let mut executed = None;
            let end = match &claimed.contents {
                TicketContents::Signed(_, code) if is_known(done, code) => {
                    distrusted(format!("the ticket {id} was executed already, and is there again"))
                }
                TicketContents::Signed(ticket, code) => {
                    executed = Some(*code);
                    (self.observe)(WorkerEvent::Began(ticket));
                    // A call that waits for another run, or for a turn on this host, has not begun.
                    let began = OnceLock::new();
                    let end = self.execute(ticket, &began);
                    let had = began.get().map(Instant::elapsed);
                    let end = end.or_else(|| time.out_of_time(had?));
                    (self.observe)(WorkerEvent::Ended(ticket, end.as_ref()));
                    end
                }
                TicketContents::OtherFormat => Some(TicketEnd::Refused(
                    "its ticket was written by another version of compeval".to_owned(),
                )),
                TicketContents::Forged => distrusted(format!(
                    "the ticket {id} was not written with a key of this worker, or was changed"
                )),
                TicketContents::Expired => distrusted(format!("the ticket {id} has expired")),
            };
            let is_refused = matches!(end, Some(TicketEnd::Refused(_)));
            let gives_back = is_refused || end.is_none();
            if let Some(code) = executed.filter(|_| !gives_back) {
                done.lock().unwrap_or_else(PoisonError::into_inner).insert(code);
            }
            let answered = end.map_or(Ok(()), |end| claimed.answer(end));
            let answered = answered.and_then(|()| match gives_back {
                true => claimed.put_back(),
                false => claimed.close(),
            });
            let refused = is_refused.then_some(id);
            if finish.send(Finished { key, refused, answered }).is_err() {
                return;
            }
        }
    }

    /// Executes a ticket, and notes when that began. Returns its end; `None` if another worker may have it.
    fn execute(&self, ticket: &Ticket, began: &OnceLock<Instant>) -> Option<TicketEnd> {
        if ticket.isolated && !self.executor.isolates() {
            let why = self.executor.exposed().map(|error| format!(": {error}"));
            let why = format!("calls cannot be isolated there{}", why.unwrap_or_default());
            return Some(TicketEnd::Refused(why));
        }
        if ticket.synced && !self.rules.synced {
            return Some(TicketEnd::Refused(
                "the worker has --no-sync, and the run has not".to_owned(),
            ));
        }
        let evaluation = match ticket::evaluation(ticket, self.storage) {
            Ok(evaluation) => evaluation,
            Err(error) => return Some(TicketEnd::Refused(error.to_string())),
        };
        if let Err(error) = self.announce(ticket) {
            return Some(TicketEnd::Refused(error.to_string()));
        }
        if let Some(missing) = self.await_visible(ticket) {
            let is_cancelled = self.executor.is_cancelled();
            let how = format!("{missing} is not visible to the worker");
            return (!is_cancelled).then_some(TicketEnd::Refused(how));
        }
        self.exports.expect(&ticket.tree, ticket.export.clone());
        let executor = &ExecutorShare::new(self.executor, &ticket.resources, ticket.isolated);
        let policy = &Policy {
            retry_failed: true,
            timeout: ticket.limit,
            forced: self.forced(ticket),
            accept: ticket.accept,
            ..Policy::default()
        };
        let settings = ExecutionSettings {
            executor,
            exports: self.exports,
            policy,
            leads: false,
            queue: None,
        };
        if ticket.audited {
            began.get_or_init(Instant::now);
            return self.audit(ticket, &evaluation.task, settings);
        }
        let execution = Some(settings);
        let observe = &|event| {
            if matches!(event, Event::Started(..)) {
                began.get_or_init(Instant::now);
            }
        };
        let evaluator = Evaluator { evaluation: &evaluation, execution, observe };
        match waiting_calls::carry_out(&evaluator, NonZeroUsize::MIN) {
            Ok(()) => {}
            Err(EvaluateError::Storage(error)) => {
                // It may be published, and be lost with the power.
                let name = evaluation.outcomes().next().map(|it| it.name().short());
                let name = name.unwrap_or_default();
                let failure = CallError::from(error).facts().in_full();
                return Some(TicketEnd::Failed(FailedCall { name, failure }));
            }
            Err(error) => return Some(TicketEnd::Lost(error.to_string())),
        }
        match evaluation.outcomes().next() {
            Some(outcome) => ticket::answer(outcome),
            None => Some(TicketEnd::Lost("the worker broke down".to_owned())),
        }
    }

    /// Protects the files that a ticket needs from collection, even if its run ends.
    fn announce(&self, ticket: &Ticket) -> Result<(), StorageError> {
        let values = ticket.values.iter().map(|value| value.name.clone());
        let results = ticket.version().directories();
        let tree = self.storage.trees().name(&ticket.tree);
        self.storage.gc_roots().announce(values.chain(results).chain([tree]))
    }

    /// Waits until all files that a ticket names are visible: a file system of several hosts may show them late.
    /// Returns one that is not visible when the wait is over.
    fn await_visible(&self, ticket: &Ticket) -> Option<String> {
        let began = Instant::now();
        let tree = self.storage.trees().name(&ticket.tree);
        loop {
            let mut needed = ticket.values.iter().map(|it| &it.name).chain([&tree]);
            let missing = needed.find(|name| !self.storage.has(name).unwrap_or(false))?;
            if began.elapsed() > 2 * lease_timeout() || self.executor.is_cancelled() {
                return Some(missing.clone());
            }
            thread::sleep(LOOK);
        }
    }
}

impl Worker<'_> {
    /// Executes a call that has a result, and compares: an audit of one call.
    fn audit(
        &self,
        ticket: &Ticket,
        task: &Arc<Task>,
        settings: ExecutionSettings<'_>,
    ) -> Option<TicketEnd> {
        let Some(recorded) = self.recorded(ticket) else {
            return Some(TicketEnd::Refused("its result is not visible to the worker".to_owned()));
        };
        let call = AuditedCall {
            task: Arc::clone(task),
            computation: ComputationId::at(0),
            sources: ticket::sources(ticket),
            resources: ticket.resources.clone(),
            recorded,
            expected: None,
        };
        let budget = AuditBudget::new(None);
        let audit = Audit { storage: self.storage, settings, calls: &[call], budget };
        let mut answer = None;
        let audited = audit.carry_out(&|| {}, &mut |message| {
            if let AuditMessage::Ended(_, end) = message {
                answer = Some(end);
            }
        });
        match audited {
            Ok(()) => answer,
            Err(error) => Some(TicketEnd::Lost(error.to_string())),
        }
    }

    /// The result to be replaced, if any.
    pub(super) fn forced(&self, ticket: &Ticket) -> ForcedCalls {
        let forced = ticket.forced.then(|| self.recorded(ticket)).flatten();
        let calls = forced.into_iter().map(|outputs| outputs.name).collect();
        ForcedCalls { calls, ..ForcedCalls::default() }
    }

    /// The result of a ticket's call, if it has one.
    fn recorded(&self, ticket: &Ticket) -> Option<Outputs> {
        let inputs: Vec<_> = ticket.values.iter().map(|it| it.value.digest).collect();
        let call = Call { version: ticket.version(), inputs: &inputs, outputs: &ticket.outputs };
        match self.storage.calls().find(call) {
            Ok(Found::Hit(outputs)) => Some(outputs),
            _ => None,
        }
    }
}

/// The time after the death of an execution within which the signal of a scheduler reaches this process.
const LATE: Duration = Duration::from_millis(500);
/// The interval at which it is looked for.
const SIGNAL_LOOK: Duration = Duration::from_millis(10);

/// An executor for one call: it offers the processors that were reserved for it, and isolates it only if requested.
pub(super) struct ExecutorShare<'a> {
    executor: &'a dyn Executor,
    slots: NonZeroUsize,
    isolates: bool,
}

impl<'a> ExecutorShare<'a> {
    /// The share of a call that has its resources.
    pub(super) fn new(executor: &'a dyn Executor, resources: &Resources, isolates: bool) -> Self {
        let slots = resources.cpus.map_or(1, |cpus| cpus.get() as usize);
        Self { executor, slots: NonZeroUsize::new(slots).unwrap_or(NonZeroUsize::MIN), isolates }
    }
}

impl Executor for ExecutorShare<'_> {
    fn submit(&self, invocation: Invocation, completion: Completion) {
        self.executor.submit(invocation, completion);
    }

    fn enter(&self, request: TurnRequest, waits: bool) -> Result<Option<HostTurn>, ExecuteError> {
        self.executor.enter(request, waits)
    }

    fn capacity(&self) -> NonZeroUsize {
        self.slots
    }

    fn offer(&self) -> Offer {
        self.executor.offer()
    }

    fn isolates(&self) -> bool {
        self.isolates && self.executor.isolates()
    }

    fn exposed(&self) -> Option<&SandboxError> {
        self.executor.exposed()
    }

    /// Schedulers send signals to all processes of a job, and to this one last.
    fn is_disturbed(&self, end: &Result<Ended, ExecuteError>) -> bool {
        let is_killed = match end {
            Ok(Ended::Failed(failed)) => matches!(failed.status, Status::Killed(_)),
            Ok(Ended::Lost(_)) => true,
            _ => false,
        };
        let began = Instant::now();
        while is_killed && !self.executor.is_cancelled() && began.elapsed() < LATE {
            thread::sleep(SIGNAL_LOOK);
        }
        self.executor.is_cancelled()
    }

    fn is_cancelled(&self) -> bool {
        self.executor.is_cancelled()
    }
}

/// Whether a ticket with this code was executed.
fn is_known(done: &Mutex<HashSet<Blake3>>, code: &Blake3) -> bool {
    done.lock().unwrap_or_else(PoisonError::into_inner).contains(code)
}

/// For whom a worker works, and how long.
#[derive(Clone, Debug)]
pub struct WorkerRules {
    /// The user ids of the users whose calls it executes.
    pub users: Vec<u32>,
    /// The time without a ticket after which it ends.
    pub idle: Duration,
    /// The time that it has, if that is limited.
    pub life: Option<Duration>,
    /// Whether outputs are on the disk before they are published.
    pub synced: bool,
    /// Whether it executes only calls that span hosts or tasks.
    pub only_spanning: bool,
}

/// The longest time before the limit of a worker at which a scheduler may ask it to end for that reason.
const EARLY: Duration = Duration::from_secs(60);

/// When a worker began, and how long it lives, if that is limited.
#[derive(Clone, Copy, Debug)]
pub(super) struct WorkerTime {
    pub(super) began: Instant,
    pub(super) life: Option<Duration>,
}

impl WorkerTime {
    /// The time that is left, if it is limited.
    pub(super) fn left(&self) -> Option<Duration> {
        self.life.map(|life| life.saturating_sub(self.began.elapsed()))
    }

    /// Whether no call is left.
    pub(super) fn is_over(&self) -> bool {
        self.left().is_some_and(|left| left.is_zero())
    }

    /// Whether a call may begin now: a call with a time limit if that much time is left, any other in the first half.
    pub(super) fn suffices_for(&self, resources: &Resources) -> bool {
        let Some((life, left)) = self.life.zip(self.left()) else { return true };
        left >= resources.time.unwrap_or(life / 2)
    }

    /// Returns the answer for a call that was interrupted after some time, if that was because the time of the worker is over. A
    /// scheduler may ask it to end somewhat earlier.
    pub(super) fn out_of_time(&self, had: Duration) -> Option<TicketEnd> {
        let (life, left) = self.life.zip(self.left())?;
        let full = had >= life - life / 10;
        let end = TicketEnd::OutOfTime(OutOfTime { seconds: had.as_secs_f64(), full });
        (left <= EARLY.min(life / 4)).then_some(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn a_call_runs_out_of_time_only_when_the_worker_ends() {
        let after = |minutes: u32| {
            let began = Instant::now().checked_sub(HOUR / 60 * minutes).unwrap();
            WorkerTime { began, life: Some(HOUR) }
        };
        let is_full = |time: WorkerTime, had| match time.out_of_time(had) {
            Some(TicketEnd::OutOfTime(out)) => Some(out.full),
            _ => None,
        };
        assert_eq!(is_full(after(30), HOUR / 2), None, "somebody else has asked it to end");
        assert_eq!(is_full(after(59), HOUR / 2), Some(false));
        assert_eq!(is_full(after(59), HOUR / 10 * 9), Some(true));
        assert!(!after(59).is_over() && after(60).is_over());
        let unknown = Resources::default();
        let known = Resources { time: Some(HOUR / 4), ..Resources::default() };
        let suffices = |minutes| [&unknown, &known].map(|it| after(minutes).suffices_for(it));
        assert_eq!([29, 31, 46].map(suffices), [[true, true], [false, true], [false, false]]);
    }
}
