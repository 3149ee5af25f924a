//! The session of a worker: it executes the calls of other runs on a storage.

use std::env;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::interrupts::InterruptibleExecutor;
use super::options::local;
use super::{Error, RunOptions};
use crate::{Exports, Worker, WorkerEvent, WorkerRules};
use ce_executor::scheduler::ArrayTask;
use ce_executor::slurm::Allocation;
use ce_files::state::SecretKey;
use ce_storage::{Availability, Durability, Storage, WorkerAbilities};

/// The variable that says when the job of a worker ends, in seconds since 1970.
const DEADLINE_VARIABLE: &str = "COMPEVAL_DEADLINE";

/// The variables in which schedulers say which job a process is in.
const JOB_VARIABLES: [(&str, &str); 4] = [
    ("SLURM_JOB_ID", "slurm"),
    ("PBS_JOBID", "pbs"),
    ("LSB_JOBID", "lsf"),
    ("JOB_ID", "gridengine"),
];

/// The time until the end of the job that this process is in, if it is known.
pub fn time_left() -> Option<Duration> {
    let end: u64 = env::var(DEADLINE_VARIABLE).ok()?.parse().ok()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    Some(Duration::from_secs(end).saturating_sub(now))
}

/// The job of a scheduler that this process is in, if any.
pub fn scheduler_job() -> Option<String> {
    if let Some(id) = ArrayTask::from_environment(variable).and_then(|it| it.job_id(variable)) {
        return Some(format!("slurm {id}"));
    }
    JOB_VARIABLES
        .iter()
        .find_map(|(name, scheduler)| Some(format!("{scheduler} {}", variable(name)?)))
}

/// A variable of the environment that is set, and not empty.
fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// The resources of a worker, and the users that it works for.
#[derive(Clone, Debug)]
pub struct WorkerOptions {
    /// The options for executing calls.
    pub run: RunOptions,
    /// The memory that its calls may use, in bytes, if it is less than the host's.
    pub memory: Option<u64>,
    /// The user ids of other users whose calls it executes.
    pub users: Vec<u32>,
    /// The files of keys; empty for the user's own.
    pub keys: Vec<PathBuf>,
    /// The time without a call after which it ends.
    pub idle: Duration,
    /// The time that it has, if that is limited.
    pub life: Option<Duration>,
    /// The job of a scheduler that it runs in.
    pub job: Option<String>,
    /// Its number in a submission, if it was given one; a worker of a job array knows its own.
    pub task: Option<ArrayTask>,
}

/// A worker that has appeared in a storage.
pub struct WorkerSession {
    storage: Arc<Storage>,
    execution: InterruptibleExecutor,
    rules: WorkerRules,
    keys: Arc<[SecretKey]>,
    began: Instant,
}

impl WorkerSession {
    /// Appears in a storage, which must exist. From now on SIGINT, SIGTERM and SIGHUP interrupt executions, and others may
    /// have their tickets.
    ///
    /// # Errors
    ///
    /// Fails if there is no storage, it cannot be written, or signals not be watched.
    pub fn open(storage: &Path, options: WorkerOptions) -> Result<Self, Error> {
        let WorkerOptions { run, memory, mut users, keys, idle, life, job, task } = options;
        let files = if keys.is_empty() { vec![SecretKey::file(None)?] } else { keys };
        let keys = files.iter().map(|file| SecretKey::find(file)).collect::<Result<_, _>>()?;
        let environment = |name: &str| env::var(name).ok();
        let task = task.or_else(|| ArrayTask::from_environment(environment));
        let allocation = Allocation::from_environment(environment);
        let shape = allocation.as_ref().map(Allocation::shape);
        let run = run.within_open_files();
        let executor = local(&run, memory, allocation);
        let execution = InterruptibleExecutor::new(Arc::clone(&executor), &run)?;
        let storage = execution.open(&run, |patience| {
            Availability::await_existing(storage, idle, &patience, || {
                let text = "is not there yet: waiting for it, as long as for a call (--idle)";
                (run.frontend.notify)(&format!("the storage {} {text}", storage.display()));
            })?;
            Storage::open_patiently(storage, run.unrecorded, run.durability, patience)
        })?;
        users.push(storage.runs().own_user());
        let synced = run.durability == Durability::Synced;
        // The run that has submitted it wants nothing else of a larger allocation.
        let spans = shape.is_some_and(|it| it.nodes.max(it.tasks) > NonZeroU32::MIN);
        let only_spanning = task.is_some() && spans;
        let rules = WorkerRules { users, idle, life, synced, only_spanning };
        storage.runs().become_worker(WorkerAbilities {
            job,
            task: task.map(|task| task.to_string()),
            cpus: executor.capacity().get(),
            memory: executor.offer().memory,
            allocation: shape.map(|it| (it.nodes, it.tasks)),
            isolates: executor.isolates(),
            life,
        })?;
        if let Some(warning) = execution.storage_notice(&storage) {
            (run.frontend.notify)(&warning);
        }
        let storage = Arc::new(storage);
        Ok(Self { storage, execution, rules, keys, began: Instant::now() })
    }

    /// Works until no work is left.
    ///
    /// # Errors
    ///
    /// Fails if threads cannot be started, or the storage cannot be read.
    pub fn work(&self, observe: &(dyn Fn(WorkerEvent<'_>) + Sync)) -> Result<(), Error> {
        let exports = &Exports::of_runs(&self.storage);
        let executor = &*self.execution.executor;
        let (storage, rules) = (&self.storage, self.rules.clone());
        let keys = Arc::clone(&self.keys);
        Ok(Worker { storage, executor, exports, rules, keys, observe }.work()?)
    }

    /// The time since it began.
    pub fn lived(&self) -> Duration {
        self.began.elapsed()
    }

    /// The signal that interrupted it, if any.
    pub fn interrupted_by(&self) -> Option<u8> {
        self.execution.interrupted_by()
    }
}
