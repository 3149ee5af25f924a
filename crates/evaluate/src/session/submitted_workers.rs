//! The workers of a run, which a thread submits to a scheduler as the queue of the run needs them.
//!
//! [`WorkerPool`] decides which workers to submit. This module observes the queue and the workers of the storage, and carries out
//! the pool's decisions.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{env, io};

use super::{BeginError, Error, Frontend, IsolationPolicy, RunOptions, Session};
use crate::{TicketCounts, TicketRules, WorkerQueue};
use ce_executor::scheduler::{
    ArrayTask, BatchScheduler, CancelScope, JobToken, PoolAction, SchedulerError, Submission,
    SubmitFailure, WorkerDemand, WorkerPool, WorkerRequest, haste,
};
use ce_executor::{Executor, Reach};
use ce_files::state::SecretKey;
use ce_model::exit::Explain;
use ce_model::resources::Resources;
use ce_storage::{Durability, Storage};

/// The interval at which the queue and the workers are looked at.
const POOL_INTERVAL: Duration = Duration::from_millis(500);

/// The interval at which it is looked at whether the thread has ended.
const END_INTERVAL: Duration = Duration::from_millis(10);

/// The options of workers for executing calls.
#[derive(Clone, Debug)]
struct WorkerFlags {
    /// Whether they isolate calls.
    isolate: bool,
    /// Whether they wait until results are on the disk.
    synced: bool,
    /// The file of the key that they share with the run.
    key: PathBuf,
}

/// The workers of a run. Dropping it cancels workers that have not started; the others end by themselves.
pub(super) struct ScheduledWorkers {
    executor: Arc<dyn Executor>,
    shared: Arc<SharedScheduler>,
    /// Dropping it ends the thread.
    open: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
    frontend: Frontend,
}

struct SharedScheduler {
    scheduler: Box<dyn BatchScheduler>,
    notices: Mutex<Vec<String>>,
}

impl SharedScheduler {
    fn notices(&self) -> MutexGuard<'_, Vec<String>> {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ScheduledWorkers {
    /// Begins to submit workers for the calls of a queue.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be written, no thread be started, or the program that is a worker is not found.
    fn start(
        storage: &Arc<Storage>,
        queue: &Arc<WorkerQueue>,
        executor: &Arc<dyn Executor>,
        scheduler: Box<dyn BatchScheduler>,
        flags: WorkerFlags,
        frontend: Frontend,
    ) -> Result<Self, Error> {
        let kind = scheduler.kind();
        let logs = storage.runs().submissions(kind.word)?;
        let pool = WorkerPool::new(kind, scheduler.settings());
        let program = worker_program()?;
        let shared = Arc::new(SharedScheduler { scheduler, notices: Mutex::default() });
        let asked = Arc::clone(&shared);
        queue.ask_of_memory(Box::new(move |worker| {
            let task = worker.task.as_ref().and_then(|task| task.parse().ok());
            task.is_some_and(|task| asked.scheduler.ran_out_of_memory(&task))
        }));
        let (open, closed) = channel();
        let driver = WorkerDriver {
            storage: Arc::clone(storage),
            queue: Arc::clone(queue),
            executor: Arc::clone(executor),
            shared: Arc::clone(&shared),
            pool,
            flags,
            program,
            logs,
            began: Instant::now(),
            seen: HashSet::new(),
        };
        let thread = thread::Builder::new().name("scheduler".to_owned());
        let thread = thread.spawn(move || driver.drive(&closed));
        let thread = thread.map_err(BeginError::new)?;
        let executor = Arc::clone(executor);
        Ok(Self { executor, shared, open: Some(open), thread: Some(thread), frontend })
    }

    /// The hosts and tasks that one of their calls may have.
    pub(super) fn reach(&self) -> Reach {
        self.shared.scheduler.kind().reach
    }

    /// Returns the next message for the user, each one once.
    pub(super) fn notice(&self) -> Option<String> {
        let mut notices = self.shared.notices();
        (!notices.is_empty()).then(|| notices.remove(0))
    }
}

impl Drop for ScheduledWorkers {
    fn drop(&mut self) {
        drop(self.open.take());
        if let Some(thread) = self.thread.take() {
            while !thread.is_finished() {
                // The scheduler may not answer, and the user does not want to wait.
                if self.executor.is_killed() {
                    self.shared.scheduler.interrupt();
                }
                thread::sleep(END_INTERVAL);
            }
            drop(thread.join());
        }
        // The caller does not ask for these any more.
        for notice in self.shared.notices().drain(..) {
            (self.frontend.notify)(&notice);
        }
    }
}

/// The state of the thread that submits workers.
struct WorkerDriver {
    storage: Arc<Storage>,
    queue: Arc<WorkerQueue>,
    /// The executor, which knows whether the user has asked to stop.
    executor: Arc<dyn Executor>,
    shared: Arc<SharedScheduler>,
    pool: WorkerPool,
    flags: WorkerFlags,
    program: PathBuf,
    logs: PathBuf,
    began: Instant,
    /// The workers that have said hello, and have not said good-bye.
    seen: HashSet<ArrayTask>,
}

impl WorkerDriver {
    /// Carries out the pool's actions until the run is over, and then until no action is left.
    fn drive(mut self, closed: &Receiver<()>) {
        let mut pause = Duration::ZERO;
        while closed.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
            if self.executor.is_cancelled() {
                self.pool.close(CancelScope::Pending);
            }
            self.observe();
            pause = self.act();
            self.refuse_stuck();
            self.shared.notices().extend(self.pool.take_notices());
        }
        // One that has said hello meanwhile ends by itself.
        self.observe();
        self.pool.close(CancelScope::Pending);
        while !self.pool.is_closed() {
            if self.executor.is_killed() {
                self.tell_what_is_left();
                return;
            }
            thread::sleep(self.act().min(END_INTERVAL));
            self.shared.notices().extend(self.pool.take_notices());
        }
    }

    /// Reports the jobs that may be left.
    fn tell_what_is_left(&self) {
        let left = self.pool.unsettled();
        if !left.is_empty() {
            let advice = self.shared.scheduler.cancel_by_hand(&left);
            let advice = advice.map(|it| format!("; try: {it}")).unwrap_or_default();
            let text = format!("jobs may be left, and end when they find nothing to do{advice}");
            self.shared.notices().push(text);
        }
    }

    /// The time since the beginning, as the pool counts it.
    fn now(&self) -> Duration {
        self.began.elapsed() * haste()
    }

    /// Passes to the pool the calls that wait, and the workers that live.
    fn observe(&mut self) {
        let demand: BTreeMap<Resources, WorkerDemand> = self
            .queue
            .demand()
            .into_iter()
            .map(|(resources, TicketCounts { queued, running, answered })| {
                (resources, WorkerDemand { queued, running, answered, at_once: NonZeroU32::MIN })
            })
            .collect();
        self.pool.set_demand(self.now(), &demand);
        let Ok(workers) = self.storage.runs().workers() else { return };
        let tasks = workers.into_iter().filter_map(|(_, worker)| worker.task?.parse().ok());
        let living: HashSet<ArrayTask> = tasks.collect();
        for task in &living {
            self.pool.hello(task);
        }
        for task in self.seen.difference(&living) {
            self.pool.gone(task);
        }
        self.seen = living;
    }

    /// Takes the next action. Returns how long to wait after it.
    fn act(&mut self) -> Duration {
        let now = self.now();
        let token = match JobToken::random() {
            Ok(token) => token,
            Err(error) => {
                self.shared.notices().push(format!("no worker can be submitted: {error}"));
                return POOL_INTERVAL;
            }
        };
        match self.pool.next(now, || token) {
            PoolAction::Submit(request) => {
                let submitted = self.submit(&request);
                let now = self.now();
                self.pool.submitted(now, &request.token, &submitted);
                Duration::ZERO
            }
            PoolAction::Ask(tokens) => {
                let answer = self.shared.scheduler.jobs(&tokens);
                let now = self.now();
                self.pool.answered(now, &answer);
                Duration::ZERO
            }
            PoolAction::Cancel(token, scope) => {
                let cancelled = self.shared.scheduler.cancel(&token, scope);
                let now = self.now();
                self.pool.cancelled(now, &token, &cancelled);
                Duration::ZERO
            }
            PoolAction::Wait(until) => until.map_or(POOL_INTERVAL, |until| {
                (until.saturating_sub(now) / haste()).min(POOL_INTERVAL)
            }),
        }
    }

    /// Submits workers, after their name was written down.
    fn submit(&self, request: &WorkerRequest) -> Result<(), SchedulerError> {
        let scheduler = &self.shared.scheduler;
        let (kind, token) = (scheduler.kind(), request.token.as_str());
        self.storage.runs().note_submission(kind.word, token).map_err(|error| SchedulerError {
            text: error.to_string(),
            advice: error.hint(),
            failure: SubmitFailure::Final,
        })?;
        let directory = &self.storage.path("");
        let command = &self.command(request);
        scheduler.submit(&Submission { request, directory, logs: &self.logs, command })
    }

    /// The program that is a worker of a request, and its arguments.
    fn command(&self, request: &WorkerRequest) -> Vec<OsString> {
        let resources = &request.resources;
        let cpus = resources.cpus.map_or(1, NonZeroU32::get);
        let mut command =
            vec![self.program.clone().into(), "worker".into(), format!("-j{cpus}").into()];
        if self.shared.scheduler.kind().most_at_once == 1 {
            let task = ArrayTask { token: request.token.clone(), index: 1 };
            command.push(format!("--task={task}").into());
        }
        if let Some(memory) = resources.memory {
            command.push(format!("--memory={}K", memory.div_ceil(1024)).into());
        }
        if !self.flags.isolate {
            command.push("--no-isolate".into());
        }
        if !self.flags.synced {
            command.push("--no-sync".into());
        }
        // A scheduler may set another home.
        command.extend(["--key".into(), self.flags.key.clone().into()]);
        command.push(self.storage.path("").into());
        command
    }

    /// Gives up the calls for which no worker is submitted any more.
    fn refuse_stuck(&self) {
        for (resources, why) in self.pool.stuck() {
            self.queue.refuse(resources, why);
        }
    }
}

/// The program that has the command `worker`: this one, or `ce` beside it.
pub(super) fn worker_program() -> Result<PathBuf, Error> {
    let own = env::current_exe().map_err(BeginError::new)?;
    let is_ce = own.file_name().is_some_and(|name| name == "ce");
    let program = if is_ce { own } else { own.with_file_name("ce") };
    match program.metadata() {
        Ok(_) => Ok(program),
        Err(cause) => {
            let text = format!("there is no {} to be a worker: {cause}", program.display());
            Err(BeginError::new(io::Error::new(cause.kind(), text)).into())
        }
    }
}

impl Session {
    /// Lets workers execute missing calls.
    pub(super) fn queue_calls(
        &mut self,
        executor: &Arc<dyn Executor>,
        options: &RunOptions,
    ) -> Result<(), Error> {
        let synced = options.durability == Durability::Synced;
        // A worker refuses a call that it cannot isolate.
        let isolated = options.isolation != IsolationPolicy::Off;
        let limit = options.policy.timeout;
        let rules = TicketRules { isolated, synced, limit };
        let (storage, watched) = (Arc::clone(&self.storage), Arc::clone(executor));
        let scheduler = options.scheduler();
        let key = SecretKey::file(options.key.as_deref())?;
        let secret = SecretKey::find(&key)?;
        let queue = WorkerQueue::open(storage, secret, watched, rules, scheduler.is_some())?;
        let queue = Arc::new(queue);
        if let Some(scheduler) = scheduler {
            let flags = WorkerFlags { isolate: isolated, synced, key };
            let (storage, frontend) = (&self.storage, self.frontend);
            let workers =
                ScheduledWorkers::start(storage, &queue, executor, scheduler, flags, frontend);
            self.scheduled = Some(workers?);
        }
        self.queue = Some(queue);
        Ok(())
    }
}
