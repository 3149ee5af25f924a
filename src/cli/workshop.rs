//! How tasks are evaluated: what `ce-run`, `ce diff` and `ce bisect` share.

use std::cell::Cell;
use std::collections::HashSet;
use std::error::Error as _;
use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal, Write};
use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use clap::Args;

use super::interrupt::Interrupts;
use super::options::Strict;
use super::screen::Screen;
use crate::cache::Cache;
use crate::error::Error;
use crate::evaluate::{Account, EvaluateError, Evaluation, Evaluator, Event, Exports, Files};
use crate::executor::{ExecuteError, Executor, Local, Sandbox, Status};
use crate::git::{Config, Home, Trees};
use crate::load;
use crate::plan::Plan;
use crate::report::{Progress, Silent, Troubles, View, labels, reading};
use crate::storage::{Durability, Input, ResultName, Storage, StorageError, Unrecorded};
use crate::workflow::Task;

/// How tasks are evaluated.
#[derive(Debug, Args)]
pub(super) struct How {
    /// How many computations run at the same time [default: what Git's configuration has for
    /// compeval.jobs, else the number of cores]
    #[arg(short, long, value_name = "N")]
    jobs: Option<NonZeroUsize>,

    /// Try a call that fails N times more
    #[arg(long, value_name = "N", default_value_t = 0)]
    retry: u32,

    /// End a computation that takes longer, such as 90s, 10min or 1h30min
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    timeout: Option<Duration>,

    /// Do not wait until results are on the disk: faster, and safe as long as the power stays on
    #[arg(long)]
    no_sync: bool,

    /// Keep computations apart from the rest of the system, whatever Git's configuration has for
    /// compeval.isolate
    #[arg(long, overrides_with = "no_isolate")]
    isolate: bool,

    /// Do not keep computations apart from the rest of the system [default: what Git's
    /// configuration has for compeval.isolate]
    #[arg(long, overrides_with = "isolate")]
    no_isolate: bool,

    #[command(flatten)]
    strict: Strict,
}

/// Where one or more evaluations are carried out.
pub(super) struct Workshop {
    pub(super) storage: Storage,
    trees: Trees,
    jobs: NonZeroUsize,
    retries: u32,
    /// The calls that are executed although their outputs are there.
    forced: HashSet<ResultName>,
    /// Who executes; nobody, if nothing is to be computed.
    crew: Option<(Arc<Local>, Interrupts)>,
    /// It was told that nothing is isolated.
    warned: Cell<bool>,
}

/// A task that was evaluated.
pub(super) struct Evaluated {
    pub(super) task: Task,
    pub(super) plan: Plan,
    pub(super) files: Files,
    pub(super) evaluation: Evaluation,
}

impl How {
    /// Opens the storage for evaluations of a task in this directory; with `dry_run`, nothing is
    /// computed or written. From now on a signal interrupts what is executed.
    pub(super) fn workshop(
        &self,
        dry_run: bool,
        config: &Config,
        dir: &Path,
        storage: &Path,
    ) -> Result<Workshop, Error> {
        let jobs = self.jobs(config)?;
        let unrecorded = self.unrecorded();
        let sync = if self.no_sync { Durability::Unsynced } else { Durability::Synced };
        let storage = match dry_run {
            true => Storage::inspect(storage, unrecorded)?,
            false => Storage::open(storage, unrecorded, sync)?,
        };
        let mut storage = storage.remembering(Cache::of_user());
        let crew = if dry_run { None } else { Some(self.crew(config)?) };
        if let Some((_, interrupts)) = &crew {
            storage = storage.until(interrupts.asked());
            record_use(&storage, dir)?;
        }
        Ok(Workshop {
            storage,
            trees: Trees::new(dir),
            jobs,
            retries: self.retry,
            forced: HashSet::new(),
            crew,
            warned: Cell::new(false),
        })
    }

    /// What becomes of outputs that nobody recorded.
    pub(super) const fn unrecorded(&self) -> Unrecorded {
        self.strict.unrecorded()
    }

    fn jobs(&self, config: &Config) -> Result<NonZeroUsize, Error> {
        let jobs = match self.jobs {
            Some(jobs) => Some(jobs),
            None => config.jobs()?,
        };
        let cores = || thread::available_parallelism().ok();
        Ok(jobs.or_else(cores).unwrap_or(NonZeroUsize::MIN))
    }

    /// Checks that what the computations of a task are granted is there, if they are isolated.
    pub(super) fn check(&self, config: &Config, dir: &Path, task: &Task) -> Result<(), Error> {
        if self.isolates(config)? {
            load::check_access(dir, task)?;
        }
        Ok(())
    }

    /// Whether computations are isolated.
    fn isolates(&self, config: &Config) -> Result<bool, Error> {
        match (self.isolate, self.no_isolate) {
            (false, false) => Ok(config.isolate()?.unwrap_or(true)),
            (isolate, _) => Ok(isolate),
        }
    }

    fn crew(&self, config: &Config) -> Result<(Arc<Local>, Interrupts), Error> {
        let executor = Local::with_limit(self.timeout);
        let isolated = |executor: Local| executor.isolated(Sandbox::default());
        let isolates = self.isolates(config)?;
        let executor = Arc::new(if isolates { isolated(executor) } else { executor });
        let interrupts =
            Interrupts::watch(&executor).map_err(|error| Error::Begin(error.into()))?;
        Ok((executor, interrupts))
    }
}

impl Workshop {
    /// Executes these calls although their outputs are there.
    pub(super) fn forcing(self, forced: HashSet<ResultName>) -> Self {
        Self { forced, ..self }
    }

    /// The signal that ended the work early, if any.
    pub(super) fn caught(&self) -> Option<u8> {
        self.crew.as_ref().and_then(|(_, interrupts)| interrupts.caught())
    }

    /// Plans the evaluation of a task, and recalls meanwhile what is known of its calls' records.
    pub(super) fn plan(&self, task: &Task) -> Plan {
        thread::scope(|scope| {
            let plan = scope.spawn(|| Plan::new(&task.workflow));
            self.storage.recall_records(&task.name);
            plan.join().unwrap_or_else(|panic| resume_unwind(panic))
        })
    }

    /// Finds or stores what is there before any call of a task. If that takes a while, it is
    /// `visible` on a terminal how far it is.
    pub(super) fn files(
        &self,
        task: &Task,
        plan: &Plan,
        inputs: &[&Path],
        visible: bool,
    ) -> Result<Files, Error> {
        let (storage, store) = (&self.storage, self.crew.is_some());
        let read = || Files::new(task, plan, inputs, storage, store);
        self.unless_caught(reading(visible, || storage.taken_in(), read))
    }

    /// Passes on what was read, or the signal because of which it was not.
    pub(super) fn unless_caught<T>(&self, read: Result<T, StorageError>) -> Result<T, Error> {
        read.map_err(|error| match (error, self.caught()) {
            (StorageError::Interrupted, Some(signal)) => Error::Interrupted(signal),
            (error, _) => error.into(),
        })
    }

    /// Says why nothing is isolated although it was to be, and what to try; once.
    fn warning(&self) -> Option<String> {
        let (executor, _) = self.crew.as_ref()?;
        let error = executor.exposed().filter(|_| !self.warned.replace(true))?;
        let because = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
        let hint = error.hint().map(|hint| format!("\n  try: {hint}")).unwrap_or_default();
        Some(format!("warning: computations are not isolated here: {error}{because}{hint}"))
    }

    /// Runs a test of the user's; what it prints goes to standard error.
    pub(super) fn test(
        &self,
        program: &OsStr,
        arguments: &[OsString],
        files: &[PathBuf],
    ) -> Result<Status, Error> {
        let mut command = Command::new(program);
        command.args(arguments).args(files).stdin(Stdio::null()).stdout(io::stderr());
        let status = match &self.crew {
            Some((executor, _)) => executor.run(&mut command),
            None => Err(ExecuteError::Interrupted),
        };
        let program = program.display().to_string();
        status.map_err(|source| Error::Test { program, source })
    }

    /// Whether progress is shown where that can be seen.
    pub(super) fn shows_progress(&self) -> bool {
        self.crew.is_some() && io::stderr().is_terminal()
    }

    /// Evaluates in other threads what this one tells of.
    pub(super) fn evaluate(&self, view: View<'_>, screen: &mut Screen<'_>) -> Result<(), Error> {
        let Account { task, plan, files, evaluation, storage } = view.account;
        let (retries, forced) = (self.retries, &self.forced);
        let (trees, jobs) = (&self.trees, self.jobs);
        let executor = self.crew.as_ref().map(|(executor, _)| &**executor as &dyn Executor);
        let (sender, events) = mpsc::channel::<Event>();
        let evaluated = thread::scope(|scope| {
            let evaluating = scope.spawn(move || {
                // The events end when nobody is left to send one.
                let observe = move |event| drop(sender.send(event));
                let exports = &Exports::new(storage, trees);
                let observe = &observe;
                Evaluator {
                    task,
                    plan,
                    files,
                    storage,
                    exports,
                    executor,
                    retries,
                    forced,
                    observe,
                }
                .evaluate(evaluation, jobs)
            });
            screen.follow(&events, &|| self.caught(), &|| self.warning());
            evaluating.join()
        });
        match evaluated {
            // Calls have failed of it, which says enough.
            Ok(Err(EvaluateError::Storage(error))) if screen.troubles.have_told(&error) => Ok(()),
            Ok(evaluated) => Ok(evaluated?),
            Err(panic) => resume_unwind(panic),
        }
    }

    /// Evaluates a task, and tells of nothing but troubles and progress.
    pub(super) fn quietly(&self, task: Task, plan: Plan, files: Files) -> Result<Evaluated, Error> {
        let evaluation = Evaluation::new(&plan);
        let evaluated = Evaluated { task, plan, files, evaluation };
        let labels = labels(&evaluated.task, &evaluated.plan);
        let view = evaluated.view(&self.storage, &labels);
        self.evaluate(
            view,
            &mut Screen {
                program: "ce",
                view,
                reporter: Box::new(Silent),
                progress: Progress::new(view, self.shows_progress()),
                troubles: Troubles::default(),
                text: Vec::new(),
                out: &mut io::sink() as &mut dyn Write,
                broken: None,
            },
        )?;
        Ok(evaluated)
    }
}

impl Evaluated {
    /// What can be told of it.
    pub(super) fn view<'a>(&'a self, storage: &'a Storage, labels: &'a [&'a str]) -> View<'a> {
        let Self { task, plan, files, evaluation } = self;
        View { account: Account { task, plan, files, evaluation, storage }, labels }
    }
}

/// Records that the repository of a task in this directory uses a storage.
fn record_use(storage: &Storage, dir: &Path) -> Result<(), Error> {
    let Home { path, inode } = Home::of(dir)?;
    Ok(storage.record_repository(&path.to_string_lossy(), inode)?)
}

/// The same with a storage that was only looked at, because nothing was to be computed.
pub(super) fn record_use_of(storage: &Path, looked_at: &Storage, dir: &Path) -> Result<(), Error> {
    let is_recorded = looked_at.is_recorded(&Home::of(dir)?.path.to_string_lossy())?;
    if is_recorded {
        return Ok(());
    }
    record_use(&Storage::open(storage, Unrecorded::Refuse, Durability::Unsynced)?, dir)
}

/// The inputs of one version of a task, which are those that were given to another one, by name.
pub(super) fn same_inputs(
    [takes, lacks]: [&str; 2],
    [task, other]: [&Task; 2],
    given: &[Input],
) -> Result<Vec<Input>, Error> {
    let input = |name| {
        let at = other.inputs.iter().position(|known| known == name);
        let input = at.and_then(|at| given.get(at)).cloned();
        input.ok_or_else(|| Error::NoInput {
            name: ToString::to_string(name),
            takes: takes.to_owned(),
            lacks: lacks.to_owned(),
        })
    };
    task.inputs.iter().map(input).collect()
}

/// Reads a duration with its unit.
fn duration(text: &str) -> Result<Duration, String> {
    let duration: jiff::SignedDuration = text.parse().map_err(|error| format!("{error}"))?;
    Duration::try_from(duration).map_err(|_| "it is negative".to_owned())
}
