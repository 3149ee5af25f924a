//! The queue of a run: calls that workers execute, and a thread that waits for their answers.
//!
//! A worker may die, refuse a ticket, or answer one that another worker has answered: each call is delivered once in all these
//! cases. A ticket reserves nothing, so it may be given to another worker at any time.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::mem;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::EvaluateError;
use super::capacity::Unsatisfiable;
use super::ticket::TicketRules;
use ce_executor::{AllocationShape, Executor, Reach};
use ce_files::state::SecretKey;
use ce_model::name::ComputationName;
use ce_model::resources::Resources;
use ce_storage::records::{OutOfTime, Ticket, TicketAnswer, TicketEnd, WorkerRecord};
use ce_storage::{AnswersRead, Claim, Storage, StorageError, WorkerName};

/// The age at which a ticket that waits is written again: it would expire.
const RENEWAL: Duration = Duration::from_secs(10 * 24 * 3600);

/// The greatest number of tickets at a time.
pub(super) const MAX_TICKETS: usize = 4096;

/// The shortest and the longest pause between two looks for answers.
const PAUSES: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(200)];

/// The interval at which it is checked whether the workers live that have tickets.
const CHECK: Duration = Duration::from_secs(1);

/// The number of workers that may die while they execute a call alone.
const MAX_DEATHS: u32 = 3;

/// The time without any worker after which the user is warned.
const PATIENCE: Duration = Duration::from_secs(2);

/// The queue of a run.
pub struct WorkerQueue {
    shared: Arc<QueueWatch>,
    thread: Option<JoinHandle<()>>,
}

struct QueueWatch {
    storage: Arc<Storage>,
    /// The key that signs tickets, and must sign answers.
    key: SecretKey,
    /// The executor, which knows whether the user has asked to stop.
    executor: Arc<dyn Executor>,
    rules: TicketRules,
    /// The run starts workers itself, which may take any time.
    expects_workers: bool,
    /// Answers whether a worker has ended since it used more memory than it had, if a scheduler has started the workers.
    ran_out_of_memory: OnceLock<MemoryVerdict>,
    state: Mutex<QueueState>,
    changed: Condvar,
}

/// An answer about a worker that has ended.
type MemoryVerdict = Box<dyn Fn(&WorkerRecord) -> bool + Send + Sync>;

#[derive(Default)]
struct QueueState {
    /// The number of tickets so far.
    made: u64,
    tickets: HashMap<u64, PendingTicket>,
    /// The number of tickets that were answered, by the resources that they asked for.
    answered: BTreeMap<Resources, u64>,
    /// Messages for the user.
    messages: QueueMessages,
    /// Tickets that no worker has are withdrawn.
    stopped: bool,
    closed: bool,
}

impl WorkerQueue {
    /// Opens the queue of this run to workers. When `executor` is cancelled, tickets are withdrawn. Unless the run
    /// `expects_workers`, the user is warned if no worker is there. Workers have the same key.
    pub fn open(
        storage: Arc<Storage>,
        key: SecretKey,
        executor: Arc<dyn Executor>,
        rules: TicketRules,
        expects_workers: bool,
    ) -> Result<Self, EvaluateError> {
        storage.runs().queue().open()?;
        let shared = Arc::new(QueueWatch {
            storage,
            key,
            executor,
            rules,
            expects_workers,
            ran_out_of_memory: OnceLock::new(),
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let watching = Arc::clone(&shared);
        let thread =
            thread::Builder::new().name("queue".to_owned()).spawn(move || watching.watch());
        Ok(Self { shared, thread: Some(thread.map_err(EvaluateError::Threads)?) })
    }

    /// Sets the function that reports whether a worker has ended since it used more memory than it had.
    pub(super) fn ask_of_memory(&self, verdict: MemoryVerdict) {
        let _asked = self.shared.ran_out_of_memory.set(verdict);
    }

    /// Returns the rules of this run for the workers that execute its calls.
    pub(super) fn rules(&self) -> TicketRules {
        self.shared.rules
    }

    /// Queues a call.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be written; then nothing is delivered.
    pub(super) fn put(&self, ticket: &Ticket, watcher: TicketWatcher) -> Result<(), StorageError> {
        let mut state = self.shared.lock();
        state.made += 1;
        let number = state.made;
        state.messages.warn_not_isolated(ticket, self.shared.rules);
        state.tickets.insert(number, PendingTicket::new(ticket.clone(), watcher));
        drop(state);
        let put = self.shared.put(number, ticket);
        if put.is_err() {
            self.shared.lock().tickets.remove(&number);
        }
        self.shared.changed.notify_all();
        put
    }

    /// Returns the number of tickets, by the resources that they ask for.
    pub fn demand(&self) -> BTreeMap<Resources, TicketCounts> {
        let mut demand: BTreeMap<Resources, TicketCounts> = BTreeMap::new();
        let state = self.shared.lock();
        for open in state.tickets.values() {
            let resources = &open.ticket.resources;
            if !demand.contains_key(resources) {
                let answered = state.answered.get(resources).copied().unwrap_or_default();
                demand.insert(resources.clone(), TicketCounts { answered, ..<_>::default() });
            }
            if let Some(TicketCounts { queued, running, .. }) = demand.get_mut(resources) {
                *(if open.is_begun { running } else { queued }) += 1;
            }
        }
        demand
    }

    /// Gives up the tickets that ask for this and wait, since there will be no worker for them.
    pub fn refuse(&self, resources: &Resources, why: &str) {
        let waiting: Vec<u64> = (self.shared.lock().tickets.iter())
            .filter(|(_, open)| open.ticket.resources == *resources && !open.is_begun)
            .map(|(number, _)| *number)
            .collect();
        self.shared.give_up(waiting, || Some(TicketEnd::Refused(why.to_owned())));
    }

    /// Withdraws the calls that no worker has begun, and all later calls.
    pub(super) fn stop(&self) {
        self.shared.lock().stopped = true;
        self.shared.changed.notify_all();
    }

    /// Returns the next message for the user, each one once.
    pub fn notice(&self) -> Option<String> {
        self.shared.lock().messages.take()
    }
}

impl Drop for WorkerQueue {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

impl QueueWatch {
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Delivers answers until the queue is closed.
    fn watch(&self) {
        let mut read = AnswersRead::new(self.key.clone());
        let [shortest, longest] = PAUSES;
        let mut pause = shortest;
        let mut checked = Instant::now();
        let mut alone = Some(Instant::now());
        while self.await_tickets() {
            let began = Instant::now();
            pause = if self.read_answers(&mut read) { shortest } else { (pause * 2).min(longest) };
            // Looking for the answers of a thousand workers keeps no processor busy.
            pause = pause.max(began.elapsed());
            if checked.elapsed() > CHECK {
                let is_served = self.check_workers(&mut read);
                checked = Instant::now();
                alone = alone.filter(|_| !is_served && !self.expects_workers);
                if alone.is_some_and(|since| since.elapsed() > PATIENCE) {
                    alone = None;
                    self.lock().messages.add(self.no_worker());
                }
            }
            if self.executor.is_cancelled() {
                self.withdraw(self.executor.is_killed());
            } else if self.lock().stopped {
                self.withdraw(false);
            }
            let state = self.lock();
            if !state.closed {
                drop(self.changed.wait_timeout(state, pause));
            }
        }
    }

    /// Writes a ticket for workers.
    fn put(&self, number: u64, ticket: &Ticket) -> Result<(), StorageError> {
        self.storage.runs().queue().put(number, ticket, &self.key)
    }

    /// Waits until a ticket is open. Returns false if no more will come.
    fn await_tickets(&self) -> bool {
        let mut state = self.lock();
        while state.tickets.is_empty() && !state.closed {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        !state.closed
    }

    /// Delivers the answers that have come. Returns whether there were any.
    fn read_answers(&self, read: &mut AnswersRead) -> bool {
        let Ok(answers) = self.storage.runs().queue().answers(read) else {
            if let Some(error) = self.storage.availability().vanished() {
                self.deliver_all(&TicketEnd::Lost(error.to_string()));
            }
            return false;
        };
        if let Some(worker) = read.take_stranger() {
            self.lock().messages.warn_stranger(&worker);
        }
        let any = !answers.is_empty();
        for (worker, TicketAnswer { ticket, end }) in answers {
            self.answered(&worker, ticket, end);
        }
        any
    }

    fn answered(&self, worker: &WorkerName, number: u64, end: TicketEnd) {
        let mut state = self.lock();
        match end {
            TicketEnd::Refused(why) => {
                if let Some(open) = state.tickets.get_mut(&number) {
                    open.refused.insert(worker.clone());
                    open.why = why;
                }
            }
            end => {
                if let TicketEnd::OutOfTime(out) = end
                    && let Some(open) = state.tickets.get_mut(&number)
                    && open.ran_out_of_time(out)
                {
                    let ticket = open.ticket.clone();
                    drop(state);
                    // If it cannot be queued now, it is missing at the next look.
                    return drop(self.put(number, &ticket));
                }
                let open = state.tickets.remove(&number);
                if let Some(open) = &open {
                    *state.answered.entry(open.ticket.resources.clone()).or_default() += 1;
                }
                drop(state);
                if let Some(open) = open {
                    (open.watcher.ended)(Some(end));
                }
            }
        }
    }

    /// Returns the message for the user if no worker serves the storage.
    fn no_worker(&self) -> String {
        let storage = self.storage.shown_place();
        format!(
            "no worker serves {0} yet; the calls wait\n  try: start one, here or on another host: ce worker {0}",
            storage.display()
        )
    }

    /// Gives tickets of dead workers to others, and delivers tickets that all workers have refused. Returns whether a
    /// worker is alive.
    fn check_workers(&self, read: &mut AnswersRead) -> bool {
        let queue = self.storage.runs().queue();
        let Ok(claims) = queue.claims(read) else { return true };
        let mut alive: HashMap<WorkerName, bool> = HashMap::new();
        for Claim { worker, .. } in &claims {
            alive.entry(worker.clone()).or_insert_with(|| self.storage.runs().is_alive(worker));
        }
        // A worker may have answered before it died.
        self.read_answers(read);
        let claimed: HashSet<u64> = claims.iter().map(|claim| claim.ticket).collect();
        self.report_begun(&claimed);
        for claim in claims.into_iter().filter(|claim| !alive[&claim.worker]) {
            self.requeue_ticket_of_dead(&claim);
        }
        self.find_missing(&claimed);
        let workers = self.storage.runs().workers().unwrap_or_default();
        if !self.expects_workers {
            let mut state = self.lock();
            let QueueState { tickets, messages, .. } = &mut *state;
            messages.warn_no_shape(tickets.values(), &workers, self.storage.shown_place());
        }
        let living: HashSet<WorkerName> = workers.into_iter().map(|(name, _)| name).collect();
        self.check_refused(&living);
        !living.is_empty()
    }

    /// Reports the calls that workers execute.
    fn report_begun(&self, claimed: &HashSet<u64>) {
        let mut state = self.lock();
        for number in claimed {
            if let Some(open) = state.tickets.get_mut(number).filter(|open| !open.is_begun) {
                open.is_begun = true;
                (open.watcher.begun)();
            }
        }
    }

    /// Whether a dead worker has ended since it used more memory than it had, and the call of its ticket has a limit.
    fn ran_out_of_memory(&self, claim: &Claim) -> bool {
        let state = self.lock();
        let open = state.tickets.get(&claim.ticket);
        let is_limited = open.is_some_and(|open| open.ticket.resources.last_memory.is_some());
        drop(state);
        is_limited
            && self.ran_out_of_memory.get().is_some_and(|verdict| {
                self.storage.runs().worker(&claim.worker).is_some_and(|worker| verdict(&worker))
            })
    }

    /// Gives the ticket of a dead worker to another one, unless too many have died of it.
    fn requeue_ticket_of_dead(&self, claim: &Claim) {
        let ran_out_of_memory = self.ran_out_of_memory(claim);
        drop(self.storage.runs().queue().drop_claim(claim));
        let mut state = self.lock();
        if ran_out_of_memory {
            let open = state.tickets.remove(&claim.ticket);
            drop(state);
            if let Some(open) = open {
                (open.watcher.ended)(Some(TicketEnd::OutOfMemory));
            }
            return;
        }
        let Some(open) = state.tickets.get_mut(&claim.ticket) else { return };
        // The call that killed the worker is unknown: each of its calls is executed alone from now on.
        open.deaths += u32::from(open.ticket.resources.exclusive);
        open.ticket.resources.exclusive = true;
        open.is_begun = false;
        if open.deaths >= MAX_DEATHS {
            let how = format!(
                "{MAX_DEATHS} workers ended while they executed it, the last one was {}",
                claim.worker.holder()
            );
            if let Some(open) = state.tickets.remove(&claim.ticket) {
                drop(state);
                (open.watcher.ended)(Some(TicketEnd::Lost(how)));
            }
            return;
        }
        let ticket = open.ticket.clone();
        drop(state);
        // If it cannot be queued now, it is missing at the next look.
        drop(self.put(claim.ticket, &ticket));
    }

    /// Queues tickets again that are nowhere, twice in a row: something else has removed them. Old ones are replaced before they expire.
    fn find_missing(&self, claimed: &HashSet<u64>) {
        let waiting = self.storage.runs().queue().waiting_tickets().ok();
        let mut missing = Vec::new();
        for (number, open) in &mut self.lock().tickets {
            let is_waiting = waiting.as_ref().is_some_and(|waiting| waiting.contains(number));
            if is_waiting && open.written.elapsed() > RENEWAL {
                open.written = Instant::now();
                missing.push((*number, open.ticket.clone()));
            }
            let is_there = claimed.contains(number)
                || waiting.as_ref().is_none_or(|waiting| waiting.contains(number));
            if !is_there && open.is_missing {
                missing.push((*number, open.ticket.clone()));
            }
            open.is_missing = !is_there;
            // A worker that has given it back executes it no longer.
            open.is_begun &= claimed.contains(number);
        }
        for (number, ticket) in missing {
            drop(self.put(number, &ticket));
        }
    }

    /// Delivers the tickets that all living workers have refused.
    fn check_refused(&self, living: &HashSet<WorkerName>) {
        let mut state = self.lock();
        if living.is_empty() {
            return;
        }
        let refused = state.tickets.iter().filter(|(_, open)| living.is_subset(&open.refused));
        let refused: Vec<u64> = refused.map(|(number, _)| *number).collect();
        let refused: Vec<_> =
            refused.into_iter().filter_map(|it| Some((it, state.tickets.remove(&it)?))).collect();
        drop(state);
        for (number, open) in refused {
            drop(self.storage.runs().queue().withdraw(number, &open.ticket));
            (open.watcher.ended)(Some(TicketEnd::Refused(open.why)));
        }
    }

    /// Takes back the tickets that wait; with `all`, does not wait for tickets of workers, either.
    fn withdraw(&self, all: bool) {
        let tickets: Vec<u64> = self.lock().tickets.keys().copied().collect();
        let held = self.give_up(tickets, || None);
        for number in held.into_iter().filter(|_| all) {
            let open = self.lock().tickets.remove(&number);
            if let Some(open) = open {
                (open.watcher.ended)(None);
            }
        }
    }

    /// Takes tickets back, and delivers an end for each that no worker has. Returns the others.
    fn give_up(&self, tickets: Vec<u64>, end: impl Fn() -> Option<TicketEnd>) -> Vec<u64> {
        let mut held = Vec::new();
        for number in tickets {
            let ticket = self.lock().tickets.get(&number).map(|open| open.ticket.clone());
            let Some(ticket) = ticket else { continue };
            if !self.storage.runs().queue().withdraw(number, &ticket).unwrap_or(true) {
                held.push(number);
                continue;
            }
            let open = self.lock().tickets.remove(&number);
            if let Some(open) = open {
                (open.watcher.ended)(end());
            }
        }
        held
    }

    fn deliver_all(&self, end: &TicketEnd) {
        let tickets = mem::take(&mut self.lock().tickets);
        for open in tickets.into_values() {
            (open.watcher.ended)(Some(end.clone()));
        }
    }
}

/// The number of workers whose time may be over before a call has ended.
const MAX_OUT_OF_TIME: u32 = 3;

/// Receives what becomes of a ticket.
pub(super) struct TicketWatcher {
    /// A worker executes the call. It may not be told of a short one.
    pub(super) begun: Box<dyn Fn() + Send>,
    /// Receives the end of the call, once; `None` if no worker executes it since the user asked to stop.
    pub(super) ended: Box<dyn FnOnce(Option<TicketEnd>) + Send>,
}

/// A ticket that is not answered yet.
pub(super) struct PendingTicket {
    pub(super) ticket: Ticket,
    pub(super) watcher: TicketWatcher,
    /// Whether a worker reported that it executes it.
    pub(super) is_begun: bool,
    /// The number of workers that died while they executed it alone.
    pub(super) deaths: u32,
    /// The number of workers whose time was over before it ended.
    out_of_time: u32,
    /// The workers that have refused it, and why the last one did.
    pub(super) refused: HashSet<WorkerName>,
    pub(super) why: String,
    /// It was neither waiting nor claimed at the last look.
    pub(super) is_missing: bool,
    /// When it was written, or written again because of its age.
    written: Instant,
}

/// The tickets that ask for the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TicketCounts {
    /// The number of tickets that wait.
    pub queued: u64,
    /// The number of tickets that workers have.
    pub running: u64,
    /// The number of tickets that were answered so far.
    pub answered: u64,
}

impl PendingTicket {
    pub(super) fn new(ticket: Ticket, watcher: TicketWatcher) -> Self {
        let (refused, why) = Default::default();
        let (is_begun, is_missing) = (false, false);
        let (deaths, out_of_time, written) = (0, 0, Instant::now());
        Self { ticket, watcher, is_begun, deaths, out_of_time, refused, why, is_missing, written }
    }

    /// The time of a worker was over. Returns whether another worker may do better.
    pub(super) fn ran_out_of_time(&mut self, out: OutOfTime) -> bool {
        self.out_of_time += 1;
        self.is_begun = false;
        !out.full && self.out_of_time < MAX_OUT_OF_TIME
    }
}

/// Messages that are not reported yet, and the subjects of earlier warnings.
#[derive(Default)]
pub(super) struct QueueMessages {
    waiting: VecDeque<String>,
    exposed: HashSet<ComputationName>,
    unserved: HashSet<String>,
    has_stranger: bool,
}

impl QueueMessages {
    /// Returns the next one.
    pub(super) fn take(&mut self) -> Option<String> {
        self.waiting.pop_front()
    }

    pub(super) fn add(&mut self, notice: String) {
        self.waiting.push_back(notice);
    }

    /// Warns, once, that a worker has another key.
    pub(super) fn warn_stranger(&mut self, worker: &WorkerName) {
        if !mem::replace(&mut self.has_stranger, true) {
            self.add(format!(
                "warning: answers of the worker {} are ignored: its key differs from the key of this run\n  try: give both the same --key FILE, if they do not share a home",
                worker.holder()
            ));
        }
    }

    /// Warns that a computation is not isolated although the run isolates.
    pub(super) fn warn_not_isolated(&mut self, ticket: &Ticket, rules: TicketRules) {
        if rules.isolated && !ticket.isolated && self.exposed.insert(ticket.computation.clone()) {
            let name = &ticket.computation;
            self.add(format!(
                "warning: {name} is not isolated: it starts tasks of its allocation itself, which are outside of any sandbox\n  try: let it ask for launcher srun, or for one task, if it is to be isolated"
            ));
        }
    }

    /// Warns that no worker has the shape of a call that waits, if there are workers.
    pub(super) fn warn_no_shape<'a>(
        &mut self,
        tickets: impl Iterator<Item = &'a PendingTicket>,
        workers: &[(WorkerName, WorkerRecord)],
        storage: &Path,
    ) {
        for PendingTicket { ticket: Ticket { resources, .. }, .. } in tickets {
            let is_unserved = resources.spans()
                && !workers.is_empty()
                && workers.iter().all(|(_, worker)| {
                    Unsatisfiable::of_span(resources, worker_reach(worker)).is_some()
                });
            if is_unserved && self.unserved.insert(resources.class()) {
                self.add(format!(
                    "no worker has an allocation for {}; such calls wait\n  try: sbatch {}--wrap 'ce worker {}', or give --on slurm",
                    resources.class(),
                    options(resources),
                    storage.display()
                ));
            }
        }
    }
}

/// The hosts and tasks that a call may have of a worker.
fn worker_reach(worker: &WorkerRecord) -> Reach {
    match (worker.nodes, worker.tasks) {
        (Some(nodes), Some(tasks)) => Reach::Allocation(AllocationShape { nodes, tasks }),
        _ => Reach::Process,
    }
}

/// The options of sbatch for a shape, each with a blank after it.
fn options(resources: &Resources) -> String {
    let Resources { nodes, tasks, cpus, .. } = *resources;
    [("nodes", nodes), ("ntasks", tasks), ("cpus-per-task", cpus)]
        .map(|(name, number)| {
            number.map(|number| format!("--{name}={number} ")).unwrap_or_default()
        })
        .concat()
}
