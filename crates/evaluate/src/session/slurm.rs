//! The workers of a run on Slurm: a thread that submits as many as the queue of the run needs.
//!
//! What to do is decided by [`WorkerPool`]. This module observes the queue and the workers of the storage, and does what the pool
//! says.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::io;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::{BeginError, Error, Frontend};
use crate::{TicketCounts, WorkerQueue};
use ce_executor::Executor;
use ce_executor::slurm::{
    ArrayTask, CancelScope, JobToken, PoolAction, Slurm, SlurmError, SlurmSettings, Submission,
    WorkerDemand, WorkerPool, WorkerRequest, haste,
};
use ce_model::resources::Resources;
use ce_storage::Storage;

/// The interval at which the queue and the workers are looked at.
const LOOK: Duration = Duration::from_millis(500);

/// The interval at which it is looked at whether the thread has ended.
const SHORT: Duration = Duration::from_millis(10);

/// How workers are started.
#[derive(Clone, Debug)]
pub(super) struct SlurmOptions {
    /// The user's settings.
    pub(super) settings: SlurmSettings,
    /// Whether workers isolate calls.
    pub(super) isolate: bool,
    /// Whether workers wait until results are on the disk.
    pub(super) synced: bool,
}

/// The workers of a run. Dropping it cancels those that have not started; the others end by themselves.
pub(super) struct SlurmWorkers {
    executor: Arc<dyn Executor>,
    shared: Arc<SlurmShared>,
    /// Dropping it ends the thread.
    open: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
    frontend: Frontend,
}

struct SlurmShared {
    slurm: Slurm,
    notices: Mutex<Vec<String>>,
}

impl SlurmShared {
    fn notices(&self) -> MutexGuard<'_, Vec<String>> {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SlurmWorkers {
    /// Begins to submit workers for the calls of a queue.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be written, no thread be started, or the program that is a worker is not found.
    pub(super) fn start(
        storage: &Arc<Storage>,
        queue: &Arc<WorkerQueue>,
        executor: &Arc<dyn Executor>,
        options: SlurmOptions,
        frontend: Frontend,
    ) -> Result<Self, Error> {
        let logs = storage.runs().submissions()?;
        let program = worker_program()?;
        let shared = Arc::new(SlurmShared { slurm: Slurm::default(), notices: Mutex::default() });
        let (open, closed) = channel();
        let driver = SlurmDriver {
            storage: Arc::clone(storage),
            queue: Arc::clone(queue),
            executor: Arc::clone(executor),
            shared: Arc::clone(&shared),
            pool: WorkerPool::new(&options.settings),
            options,
            program,
            logs,
            began: Instant::now(),
            seen: HashSet::new(),
        };
        let thread = thread::Builder::new().name("slurm".to_owned());
        let thread = thread.spawn(move || driver.drive(&closed));
        let thread = thread.map_err(BeginError::new)?;
        let executor = Arc::clone(executor);
        Ok(Self { executor, shared, open: Some(open), thread: Some(thread), frontend })
    }

    /// Returns what the user should know by now, each thing once.
    pub(super) fn notice(&self) -> Option<String> {
        let mut notices = self.shared.notices();
        (!notices.is_empty()).then(|| notices.remove(0))
    }
}

impl Drop for SlurmWorkers {
    fn drop(&mut self) {
        drop(self.open.take());
        if let Some(thread) = self.thread.take() {
            while !thread.is_finished() {
                // Slurm may not answer, and the user does not want to wait.
                if self.executor.is_killed() {
                    self.shared.slurm.interrupt();
                }
                thread::sleep(SHORT);
            }
            drop(thread.join());
        }
        // Nobody asks for these any more.
        for notice in self.shared.notices().drain(..) {
            (self.frontend.notify)(&notice);
        }
    }
}

/// What the thread has.
struct SlurmDriver {
    storage: Arc<Storage>,
    queue: Arc<WorkerQueue>,
    /// Tells whether the user has asked to stop.
    executor: Arc<dyn Executor>,
    shared: Arc<SlurmShared>,
    pool: WorkerPool,
    options: SlurmOptions,
    program: PathBuf,
    logs: PathBuf,
    began: Instant,
    /// The workers that have said hello, and have not said good-bye.
    seen: HashSet<ArrayTask>,
}

impl SlurmDriver {
    /// Does what the pool says until the run is over, and then until nothing is left to be done.
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
        self.pool.close(CancelScope::Pending);
        while !self.pool.is_closed() {
            if self.executor.is_killed() {
                self.tell_what_is_left();
                return;
            }
            thread::sleep(self.act().min(SHORT));
            self.shared.notices().extend(self.pool.take_notices());
        }
    }

    /// Tells which jobs may be left.
    fn tell_what_is_left(&self) {
        let names: Vec<&str> = self.pool.unsettled().into_iter().map(JobToken::as_str).collect();
        if !names.is_empty() {
            let names = names.join(",");
            let text = format!(
                "jobs may be left, and end when they find nothing to do; try: scancel --name={names}"
            );
            self.shared.notices().push(text);
        }
    }

    /// The time since the beginning, as the pool counts it.
    fn now(&self) -> Duration {
        self.began.elapsed() * haste()
    }

    /// Tells the pool which calls wait, and which workers live.
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
                return LOOK;
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
                let answer = self.shared.slurm.jobs(&tokens);
                let now = self.now();
                self.pool.answered(now, &answer);
                Duration::ZERO
            }
            PoolAction::Cancel(token, scope) => {
                let cancelled = self.shared.slurm.cancel(&token, scope);
                let now = self.now();
                self.pool.cancelled(now, &token, &cancelled);
                Duration::ZERO
            }
            PoolAction::Wait(until) => {
                until.map_or(LOOK, |until| (until.saturating_sub(now) / haste()).min(LOOK))
            }
        }
    }

    /// Submits workers, after their name was written down.
    fn submit(&self, request: &WorkerRequest) -> Result<u64, SlurmError> {
        let settings = &self.options.settings;
        if let Err(error) = self.storage.runs().note_submission(request.token.as_str()) {
            let source = io::Error::other(error);
            return Err(SlurmError::Start { program: "sbatch", source });
        }
        let directory = &self.storage.path("");
        let command = &self.command(&request.resources);
        let logs = &self.logs;
        self.shared.slurm.submit(&Submission { request, settings, directory, logs, command })
    }

    /// The program that is a worker with these resources, and its arguments.
    fn command(&self, resources: &Resources) -> Vec<OsString> {
        let cpus = resources.cpus.map_or(1, NonZeroU32::get);
        let mut command =
            vec![self.program.clone().into(), "worker".into(), format!("-j{cpus}").into()];
        if let Some(memory) = resources.memory {
            command.push(format!("--memory={}K", memory.div_ceil(1024)).into());
        }
        if !self.options.isolate {
            command.push("--no-isolate".into());
        }
        if !self.options.synced {
            command.push("--no-sync".into());
        }
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
    let own = std::env::current_exe().map_err(BeginError::new)?;
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
