//! Options of a session, and the check that this host has everything that the computations of a task access.

use std::error::Error as _;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use crate::Policy;
use ce_executor::scheduler::{BatchScheduler, CommandScheduler, CommandSettings};
use ce_executor::slurm::{Allocation, SlurmScheduler, SlurmSettings};
use ce_executor::{Executor, Local, Sandbox, SandboxError, raise_open_files};
use ce_files::cache::Cache;
use ce_git::{Config, ConfigError};
use ce_model::exit::Explain;
use ce_model::task::Task;
use ce_storage::{Durability, InputSource, Takeover, Unrecorded};
use ce_task::load::{self, Exposed, LoadError};

/// A task, which may be done in another thread.
pub type InputReading<'a> = &'a mut (dyn FnMut() + Send);

/// The interface of a session to its user outside of an evaluation. The default says nothing.
#[derive(Clone, Copy, Debug)]
pub struct Frontend {
    /// Shows the user a message.
    pub notify: fn(&str),
    /// Does some work, and shows meanwhile how many bytes of how many were read.
    pub while_reading: fn(&dyn Fn() -> (u64, u64), InputReading<'_>),
}

impl Default for Frontend {
    fn default() -> Self {
        Self { notify: |_| {}, while_reading: |_, read| read() }
    }
}

/// Options for the execution and publication of missing calls.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The greatest number of computations that run at the same time.
    pub jobs: NonZeroUsize,
    /// The policy for executing missing calls.
    pub policy: Policy,
    /// Whether results are flushed to the disk before they are published.
    pub durability: Durability,
    /// Whether computations are isolated.
    pub isolation: IsolationPolicy,
    /// The treatment of outputs without a record.
    pub unrecorded: Unrecorded,
    /// The results of other commits that are taken over.
    pub takeover: Takeover,
    /// The place where calls are executed.
    pub place: Place,
    /// The settings for submitting workers and runs to Slurm.
    pub slurm: SlurmSettings,
    /// The file of the key that the run and its workers have; `None` for the user's own.
    pub key: Option<PathBuf>,
    /// Whether the run is a job, which its scheduler asks by SIGUSR1 to hand over to the next one.
    pub is_job: bool,
    /// Whether the storage may be another one than the repository has used at its path.
    pub accepts_new: bool,
    /// Whether the user is not told that the run waits for a collection.
    pub quiet: bool,
    /// The functions that report to the user outside of an evaluation.
    pub frontend: Frontend,
}

/// Whether computations are isolated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsolationPolicy {
    /// Computations are not isolated.
    Off,
    /// Computations are isolated unless the host has no namespaces.
    IfPossible,
    /// Computations are isolated; without isolation, nothing is executed.
    Required,
}

/// The place where calls are executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// On this host, by this process.
    Here,
    /// By workers, which others start.
    Workers,
    /// By workers that are submitted to Slurm.
    Slurm,
    /// By workers that commands of the user start.
    Scheduler(Box<CommandSettings>),
}

impl Default for RunOptions {
    /// All cores, isolated, synced; no retries, no time-out.
    fn default() -> Self {
        Self {
            jobs: thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
            policy: Policy::default(),
            durability: Durability::Synced,
            isolation: IsolationPolicy::IfPossible,
            unrecorded: Unrecorded::Adopt,
            takeover: Takeover::Isolated,
            place: Place::Here,
            slurm: SlurmSettings::default(),
            key: None,
            is_job: false,
            accepts_new: true,
            quiet: false,
            frontend: Frontend::default(),
        }
    }
}

impl RunOptions {
    /// Options of a session that only looks for results, for a task with this configuration of Git.
    ///
    /// # Errors
    ///
    /// Fails if a setting is wrong.
    pub fn to_look(
        config: &Config,
        unrecorded: Unrecorded,
        frontend: Frontend,
    ) -> Result<Self, ConfigError> {
        let takeover = Self::takeover(config)?;
        Ok(Self { unrecorded, takeover, frontend, ..Self::default() })
    }

    /// Returns the scheduler that starts workers; `None` if calls are executed here, or others start the workers.
    pub(super) fn scheduler(&self) -> Option<Box<dyn BatchScheduler>> {
        match &self.place {
            Place::Here | Place::Workers => None,
            Place::Slurm => Some(Box::new(SlurmScheduler::new(self.slurm.clone()))),
            Place::Scheduler(settings) => {
                Some(Box::new(CommandScheduler::new((**settings).clone())))
            }
        }
    }

    /// Returns the rule for results of other commits that are taken over, from Git's configuration.
    ///
    /// # Errors
    ///
    /// Fails if a setting is wrong.
    pub fn takeover(config: &Config) -> Result<Takeover, ConfigError> {
        Ok(match config.trusts_trees()? {
            Some(true) => Takeover::Tree,
            Some(false) | None => Takeover::Isolated,
        })
    }
}

/// The place of the results, and the inputs of the task.
#[derive(Clone, Debug)]
pub struct Given {
    /// The directory of the storage.
    pub storage: PathBuf,
    /// Whether Git's configuration names it, and not the user.
    pub is_configured: bool,
    /// The inputs, in the task's order; `None` for one that is its default, or is not read.
    pub inputs: Vec<Option<InputSource>>,
    /// The repositories that the user names, and where they are.
    pub repositories: Vec<(String, PathBuf)>,
}

/// Isolation is required, and the host has no namespaces.
#[derive(Debug, thiserror::Error, Explain)]
#[error("isolation is required, and is not possible here: {why}")]
#[exit(Missing)]
#[hint(Some(or_leave_out_isolation(hint.as_deref())))]
pub struct IsolationRequired {
    why: String,
    hint: Option<String>,
}

impl IsolationRequired {
    /// Checks that an executor isolates if it has to.
    pub(super) fn check(executor: &dyn Executor, policy: IsolationPolicy) -> Result<(), Self> {
        if policy != IsolationPolicy::Required {
            return Ok(());
        }
        executor.isolates();
        match executor.exposed() {
            None => Ok(()),
            Some(error) => Err(Self { why: in_full(error), hint: error.hint() }),
        }
    }
}

/// Returns what to try, with its last resort.
fn or_leave_out_isolation(hint: Option<&str>) -> String {
    let without = "or leave out --isolate and compeval.isolate, and computations are not isolated";
    hint.map_or_else(|| without.to_owned(), |hint| format!("{hint}; {without}"))
}

/// An error and its cause.
fn in_full(error: &SandboxError) -> String {
    let because = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
    format!("{error}{because}")
}

/// An executor of this host, with this memory if that is less than the host's, and this allocation.
pub(super) fn local(
    options: &RunOptions,
    memory: Option<u64>,
    allocation: Option<Allocation>,
) -> Arc<dyn Executor> {
    let sandbox = (options.isolation != IsolationPolicy::Off).then(Sandbox::default);
    let is_required = options.isolation == IsolationPolicy::Required;
    let executor = Local::new(options.jobs, sandbox).requiring_isolation(is_required);
    let mut executor = executor.in_allocation(allocation);
    if let Some(cache) = Cache::of_user() {
        executor = executor.sharing_host(cache.locks_of_host());
    }
    if let Some(memory) = memory {
        executor = executor.with_memory(memory);
    }
    Arc::new(executor)
}

impl RunOptions {
    /// Raises the limit of open files as far as possible. If it is still too low, warns the user and returns options with fewer executions
    /// at once.
    pub(super) fn within_open_files(&self) -> Self {
        if self.place != Place::Here {
            return self.clone();
        }
        let jobs = raise_open_files(self.jobs);
        if jobs < self.jobs {
            (self.frontend.notify)(&format!(
                "warning: {jobs} computations run at once, and not {}: the limit of open files allows no more\n  try: {}",
                self.jobs, "raise the hard limit (ulimit -Hn)"
            ));
        }
        Self { jobs, ..self.clone() }
    }

    /// Checks that this host has everything that the files `access` of a task's computations name.
    ///
    /// # Errors
    ///
    /// Returns all that is missing: granted paths, and isolation for a root.
    pub fn check_access(&self, dir: &Path, task: &Task) -> Result<(), LoadError> {
        load::check_access(dir, task, self.exposed(task).as_ref())
    }

    /// Returns why computations are not isolated. Isolation is tried only for a task with a computation that requires it: others
    /// are executed without it where it is not possible.
    fn exposed(&self, task: &Task) -> Option<Exposed> {
        if self.isolation == IsolationPolicy::Off {
            let reason = "which is turned off".to_owned();
            let hint = "leave out --no-isolate, or give --isolate if compeval.isolate is false";
            return Some(Exposed { reason, hint: Some(hint.to_owned()) });
        }
        let sandbox = Sandbox::default();
        let mut accesses = task.computations.iter().map(|computation| &computation.access);
        let requires_sandbox = accesses.any(|access| access.requires_sandbox().is_some());
        // If it cannot be found out for now, executions are isolated or lost.
        if !requires_sandbox || sandbox.is_possible().unwrap_or(true) {
            return None;
        }
        let error = sandbox.refused()?;
        let reason = format!("which is not possible here: {}", in_full(error));
        Some(Exposed { reason, hint: error.hint() })
    }
}
