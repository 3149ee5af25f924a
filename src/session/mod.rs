//! A session: one or more evaluations on one storage, from options to the published job.
//!
//! It owns the storage, the executor and the signals that interrupt it. A program opens a session,
//! lets it [`prepare`](Session::prepare) a task, which returns an [`Evaluation`], and lets it
//! [`evaluate`](Session::evaluate) that. Without an executor nothing is computed or written.

mod access;
mod audit;
mod bisect;
mod calls;
mod error;
mod fit;
mod follow;
mod input_error;
mod inputs;
mod inspection;
mod interrupt;
mod job;
mod look_up;
mod notices;
mod options;
mod outages;
mod place;
mod points;
mod queued;
mod run_job;
mod sheets;
mod slurm;
mod suspended;
mod worker;

use std::cell::Cell;
use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;
use std::{iter, mem};

pub use self::audit::{AuditChoice, AuditSample, AuditTerms};
pub use self::bisect::{BisectStep, Criterion, Judge};
pub use self::calls::{CallNameError, find_call};
pub use self::error::{BeginError, Interrupted, OutputError, WriteError};
pub use self::follow::print_log;
pub use self::input_error::InputError;
pub use self::inputs::{bind, check_directories, check_trees, with_defaults};
use self::inputs::{bind_like, fill_in, given_to, of_input, own_files, texts};
pub use self::inspection::{InspectionError, InspectionSession};
use self::interrupt::Interrupts;
pub use self::interrupt::Stop;
pub use self::job::{FinishedJob, Kept, find_job};
pub use self::look_up::{look_up, look_up_versions};
use self::options::local;
pub use self::options::{Given, Place, RunOptions};
use self::outages::{StorageNotices, unless_interrupted};
pub use self::place::{ResultPathError, naming_results};
pub use self::points::{
    FinishedJobs, RangeError, check_selection, find_jobs, for_each, read_points,
};
pub use self::run_job::{RunJobRequest, is_to_be_handed_over, own_token, retain_waiting};
pub use self::sheets::{check_own_sheets, check_wanted, expand_own_sheets};
use self::slurm::SlurmWorkers;
pub use self::suspended::{SuspensionError, SuspensionSession};
pub use self::worker::{WorkerOptions, WorkerSession};
use crate::evaluate::{
    EvaluateError, Evaluation, Evaluator, Event, ExecutionSettings, Exports, Files, Texts,
    WorkerQueue,
};
use crate::report::{EventPrinter, reading};
use ce_executor::Executor;
use ce_files::cache::Cache;
use ce_git::{SourceRepositories, Trees};
pub use ce_model::exit::{Error, Exit};
use ce_model::plan::{Plan, PointSelection, Source};
use ce_model::task::Task;
use ce_storage::records::RunState;
use ce_storage::{InputSource, ResultName, Storage, StorageError};

/// A storage, and whatever is needed to evaluate tasks of one repository with it.
pub struct Session {
    storage: Arc<Storage>,
    trees: Trees,
    /// The repositories that tasks read as values.
    sources: Arc<SourceRepositories>,
    jobs: NonZeroUsize,
    retries: u32,
    retry_failed: bool,
    accept: bool,
    fail_fast: bool,
    limit: Option<Duration>,
    /// Whether suspended calls are waited for.
    wait: bool,
    /// The calls that are executed even if they have outputs.
    forced: HashSet<ResultName>,
    /// The points that are evaluated.
    selection: PointSelection,
    /// The queue of the workers that execute calls, if they are not executed here.
    queue: Option<Arc<WorkerQueue>>,
    /// The workers that serve it on Slurm.
    slurm: Option<SlurmWorkers>,
    /// `None` if nothing is to be computed.
    executor: Option<(Arc<dyn Executor>, Interrupts)>,
    /// Whether inputs that are not in the storage are put there.
    stores: bool,
    /// Whether the warning about missing isolation was printed.
    warned: Cell<bool>,
    /// What is to be told of the storage's file system.
    notices: Arc<StorageNotices>,
}

impl Session {
    /// Opens a storage to evaluate tasks of the repository in a directory; creates it if it does
    /// not exist. From now on SIGINT, SIGTERM and SIGHUP interrupt executions.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be written, or signals not be watched.
    pub fn open(dir: &Path, storage: &Path, options: &RunOptions) -> Result<Self, Error> {
        let executor = local(options, None, None);
        let interrupts = Interrupts::of_run(&executor, options.is_job).map_err(BeginError::new)?;
        let notices = Arc::<StorageNotices>::default();
        let how = (options.unrecorded, options.durability);
        let opened = Storage::open_patiently(
            storage,
            how,
            notices.patience(interrupts.asked(), options.quiet),
        );
        let storage = unless_interrupted(opened, &interrupts)?;
        let storage = storage.with_cache(Cache::of_user()).until(interrupts.asked());
        let storage = storage.taking_over(options.takeover);
        job::record_use(&storage, dir)?;
        let mut session =
            Self::with(storage, dir, options, Some((Arc::clone(&executor), interrupts)));
        session.notices = notices;
        if options.place != Place::Here {
            session.queue_calls(&executor, options)?;
        }
        Ok(session)
    }

    /// Opens a storage, which need not exist, for reading only: nothing is computed or written.
    ///
    /// # Errors
    ///
    /// Fails if the path is something other than a storage.
    pub fn inspect(dir: &Path, storage: &Path, options: &RunOptions) -> Result<Self, Error> {
        let storage = Storage::inspect(storage, options.unrecorded)?;
        let storage = storage.with_cache(Cache::of_user()).taking_over(options.takeover);
        Ok(Self::with(storage, dir, options, None))
    }

    fn with(
        storage: Storage,
        dir: &Path,
        options: &RunOptions,
        executor: Option<(Arc<dyn Executor>, Interrupts)>,
    ) -> Self {
        Self {
            storage: Arc::new(storage),
            trees: Trees::new(dir),
            sources: Arc::new(SourceRepositories::new(dir, Vec::new())),
            jobs: options.jobs,
            retries: options.retries,
            retry_failed: options.retry_failed,
            accept: options.accept,
            fail_fast: options.fail_fast,
            limit: options.timeout,
            wait: options.wait,
            forced: HashSet::new(),
            selection: PointSelection::default(),
            stores: executor.is_some(),
            executor,
            queue: None,
            slurm: None,
            warned: Cell::new(false),
            notices: Arc::default(),
        }
    }

    /// Reads these repositories, of a task in this directory, in place of those that it records.
    #[must_use]
    pub fn reading(self, dir: &Path, repositories: &[(String, PathBuf)]) -> Self {
        let sources = Arc::new(SourceRepositories::new(dir, repositories.to_vec()));
        Self { sources, ..self }
    }

    /// Evaluates those points only that are selected.
    #[must_use]
    pub fn selecting(self, selection: PointSelection) -> Self {
        Self { selection, ..self }
    }

    /// Executes these calls even if they have outputs.
    #[must_use]
    pub fn forcing(self, forced: HashSet<ResultName>) -> Self {
        Self { forced, ..self }
    }

    /// Returns the storage.
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// Returns the signal that interrupted the session, if any.
    pub fn interrupted_by(&self) -> Option<u8> {
        self.executor.as_ref().and_then(|(_, interrupts)| interrupts.caught())
    }

    /// Binds and plans a task, and finds or stores its inputs and other leaves. If that takes a while,
    /// progress is shown on a terminal if `visible`.
    ///
    /// # Errors
    ///
    /// Fails if an input cannot be read, if a value of the task is wrong with the texts of inputs, or if the
    /// storage cannot be read or written.
    pub fn prepare(
        &self,
        task: Task,
        given: &[Option<InputSource>],
        visible: bool,
    ) -> Result<Evaluation, Error> {
        let (task, given) = bind(&self.trees, task, given)?;
        let plan = self.plan(&task);
        check_selection(&plan)?;
        let inputs: &Vec<InputSource> = &given.iter().flatten().cloned().collect();
        let own = &own_files(&self.trees, &task)?;
        let (storage, store) = (&self.storage, self.stores);
        let read = || Files::new(&task, &plan, (inputs, own), storage, store);
        let files = reading(visible, || storage.inputs().taken_in(), read);
        let failed = |error| of_input(&task, &given, error);
        let mut files = self.unless_interrupted(files, failed)?;
        let mut found = mem::take(&mut files.inputs).into_iter().flatten();
        let given = given.into_iter().map(|source| Some((source?, found.next()?))).collect();
        let is_read = self.selection.inputs_read(&task)?;
        let files = fill_in((&task, &is_read), files, given, InputError::NotGiven)?;
        let texts = if task.trees.is_empty() {
            Texts::new()
        } else {
            texts(inputs.iter().chain(own.iter().flatten()))
        };
        self.with_trees(Evaluation::new(task, plan, files, Arc::clone(storage)), texts)
    }

    /// Plans another version of a task, with the inputs of the same names that a version was given.
    ///
    /// # Errors
    ///
    /// Fails if it has an input that was not given, and no default for it, or the storage cannot be
    /// read. `titles` names both versions for that error.
    pub fn prepare_like(
        &self,
        task: Task,
        other: &Evaluation,
        titles: [&str; 2],
    ) -> Result<Evaluation, Error> {
        let task = self.bind_like(task, other, titles)?;
        let plan = self.plan(&task);
        let own = own_files(&self.trees, &task)?;
        let files = Files::new(&task, &plan, (&[], &own), &self.storage, self.stores);
        let files = self.unless_interrupted(files, Error::from)?;
        let all = vec![true; task.inputs.len()];
        let files = fill_in((&task, &all), files, given_to(other, &task), no_input(titles))?;
        let mut texts = texts(own.iter().flatten());
        texts.extend(other.texts().clone());
        self.with_trees(Evaluation::new(task, plan, files, Arc::clone(&self.storage)), texts)
    }

    /// Makes all derived values that wait for no call.
    fn with_trees(&self, evaluation: Evaluation, texts: Texts) -> Result<Evaluation, Error> {
        let evaluation = evaluation.reading(Arc::clone(&self.sources), texts);
        // Where only some calls are asked for, they make what they need.
        let is_whole = evaluation.plan.tops().is_empty();
        let values = evaluation.plan.derived().map(|(id, _)| id).filter(|_| is_whole);
        let values = values.map(|value| (value, Source::Derived { value, number: 0 }));
        let (trees, members): (Vec<_>, Vec<_>) = values
            .filter(|(_, source)| evaluation.plan.awaited(*source).is_none())
            .partition(|(value, _)| evaluation.plan.tree(*value).is_some());
        let store = self.stores;
        for (_, member) in members {
            // The calls that read it have the error.
            let _remembered = evaluation.derive(iter::once(member), store);
        }
        let known = trees.into_iter().map(|(_, tree)| tree);
        match (evaluation.derive(known, store), self.interrupted_by()) {
            (Err(error), Some(signal)) if error.is_interrupted() => Err(Interrupted(signal).into()),
            (made, _) => Ok(made.map(|()| evaluation)?),
        }
    }

    /// Binds another version of a task, with the texts of the inputs that a version was given.
    fn bind_like(&self, task: Task, other: &Evaluation, titles: [&str; 2]) -> Result<Task, Error> {
        bind_like(&self.trees, task, other, no_input(titles))
    }

    /// Plans a task, and loads the record cache meanwhile.
    fn plan(&self, task: &Task) -> Plan {
        let selection = self.selection.clone();
        thread::scope(|scope| {
            let plan = scope.spawn(|| Plan::of_points(task, selection));
            self.storage.load_record_cache(&task.name);
            plan.join().unwrap_or_else(|panic| resume_unwind(panic))
        })
    }

    fn unless_interrupted<T>(
        &self,
        read: Result<T, StorageError>,
        failed: impl FnOnce(StorageError) -> Error,
    ) -> Result<T, Error> {
        read.map_err(|error| match (error, self.interrupted_by()) {
            (StorageError::Interrupted, Some(signal)) => Interrupted(signal).into(),
            (error, _) => failed(error),
        })
    }

    /// Whether calls can be executed, so that progress is worth showing.
    pub const fn executes(&self) -> bool {
        self.executor.is_some()
    }

    /// Evaluates in other threads, and prints events in this one.
    ///
    /// # Errors
    ///
    /// Fails if a call asks for more than there is, before anything is executed; if no thread can be started, or if the storage
    /// failed and no call reports it.
    pub fn evaluate(
        &self,
        evaluation: &Evaluation,
        printer: &mut EventPrinter<'_>,
    ) -> Result<(), Error> {
        self.check_fit(evaluation)?;
        let (sender, events) = mpsc::channel::<Event>();
        let executor = self.executor.as_ref().map(|(executor, _)| &**executor);
        let (trees, forced) = (&self.trees, &self.forced);
        let (jobs, retries, limit, accept) = (self.jobs, self.retries, self.limit, self.accept);
        let (retry_failed, fail_fast) = (self.retry_failed, self.fail_fast);
        let (wait, queue) = (self.wait, self.queue.as_deref());
        let evaluated = thread::scope(|scope| {
            let evaluating = scope.spawn(move || {
                // The events end when all senders are dropped.
                let observe = &move |event| drop(sender.send(event));
                let exports = &Exports::new(&evaluation.storage, trees);
                let execution = executor.map(|executor| ExecutionSettings {
                    executor,
                    exports,
                    retries,
                    retry_failed,
                    limit,
                    forced,
                    accept,
                    fail_fast,
                    wait,
                    asks: true,
                    queue,
                });
                Evaluator { evaluation, execution, observe }.evaluate(jobs)
            });
            // A run whose state cannot be written goes on.
            let note = |state: &RunState| drop(evaluation.storage.note_state(state));
            let note: Option<&dyn Fn(&RunState)> = executor.is_some().then_some(&note);
            self.notices.follow(true);
            printer.follow(&events, &|| self.interrupted_by(), &|| self.notice(), note);
            self.notices.follow(false);
            evaluating.join()
        });
        match evaluated {
            // Calls that failed because of it have reported it.
            Ok(Err(EvaluateError::Storage(error))) if printer.has_reported(&error) => Ok(()),
            Ok(evaluated) => Ok(evaluated?),
            Err(panic) => resume_unwind(panic),
        }
    }

    /// Evaluates, and prints nothing but failures and progress.
    ///
    /// # Errors
    ///
    /// Fails as [`evaluate`](Self::evaluate) does.
    pub fn evaluate_quietly(&self, evaluation: &Evaluation) -> Result<(), Error> {
        let mut printer = EventPrinter::silent(evaluation, self.executes());
        self.evaluate(evaluation, &mut printer)?;
        printer.remembered();
        Ok(())
    }
}

/// The error of an input that only the first of two versions takes.
fn no_input([takes, lacks]: [&str; 2]) -> impl Fn(String) -> InputError {
    move |name| InputError::NoInput { name, takes: takes.to_owned(), lacks: lacks.to_owned() }
}
