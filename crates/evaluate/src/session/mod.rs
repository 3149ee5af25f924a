//! A session: one or more evaluations on one storage, from options to the published job.
//!
//! It owns the storage, the executor and the signals that interrupt it. A program opens a session,
//! lets it [`prepare`](Session::prepare) a task, which returns an [`Evaluation`], and lets it
//! [`evaluate`](Session::evaluate) that. Without an executor nothing is computed or written.
//!
//! A worker has a session of its own: [`WorkerSession`].

mod call_inspection;
mod input_error;
mod inputs;
mod interrupts;
mod jobs_and_points;
mod known_storages;
mod options;
mod own_files;
mod run_as_slurm_job;
mod sheets_of_files;
mod submitted_workers;
mod suspension_session;
mod worker_session;
mod written_outputs;

use std::convert::Infallible;
use std::ffi::OsStr;
use std::num::NonZeroUsize;
use std::os::unix::ffi::OsStrExt;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use std::{error, io, iter, mem, thread};

use self::inputs::{as_given_to, bind_like, fill_in, given_to, of_input, texts};
use self::interrupts::{InterruptibleExecutor, unless_interrupted};
use self::options::local;
use self::own_files::own_files;
use self::sheets_of_files::SheetOfFiles;
use self::submitted_workers::ScheduledWorkers;
use crate::{
    Audit, AuditBudget, AuditedCall, AuditedEnd, EvaluateError, Evaluation, Evaluator, Event,
    ExecutionSettings, Exports, Files, ForcedCalls, Outcome, Policy, Texts, Unsatisfiable,
    WorkerQueue,
};
use ce_executor::{ExecuteError, Offer, Reach, Status};
use ce_files::cache::Cache;
use ce_git::{SourceRepositories, Trees};
use ce_model::exit::Explain;
use ce_model::leftovers::is_leftover;
use ce_model::plan::{CallId, Plan, PlannedSweep, PointSelection, Source, SweepRows};
use ce_model::system_hints;
use ce_model::task::Task;
use ce_storage::records::RunState;
use ce_storage::{Input, InputSource, Patience, Storage, StorageError};

pub use self::call_inspection::{
    CallNameError, InspectionError, InspectionSession, find_call, named_call, named_job, print_log,
};
pub use self::input_error::InputError;
pub use self::inputs::{BoundTask, check_selection, check_trees};
pub use self::interrupts::{Stop, start_pool};
pub use self::jobs_and_points::{
    FinishedJobs, Kept, PointsFile, RangeError, find_finished, find_job, for_each, open_finished,
    record_later_use,
};
pub use self::known_storages::{KnownStorageError, KnownStorages};
pub use self::options::{
    Frontend, Given, InputReading, IsolationPolicy, IsolationRequired, Place, RunOptions,
};
pub use self::own_files::{
    PointValuesError, check_own_sheets, check_point_values, expand_own_sheets,
};
pub use self::run_as_slurm_job::{RunJobRequest, is_to_be_handed_over, own_token, retain_waiting};
pub use self::sheets_of_files::{SheetFilesError, check_sheets_of_files};
pub use self::suspension_session::{SuspensionError, SuspensionSession};
pub use self::worker_session::{WorkerOptions, WorkerSession, scheduler_job, time_left};
pub use self::written_outputs::{finished_outputs, outputs_to_write};
pub use ce_model::exit::{Error, Exit};

/// The progress of an evaluation, for an observer.
pub struct Progression<'a> {
    /// The events of its calls, until there are no more.
    pub events: &'a mpsc::Receiver<Event>,
    /// Waits for this time, or until there are no more events.
    pub wait: &'a dyn Fn(Duration),
    /// Returns the signal by which the user has asked to stop, if any.
    pub interrupted_by: &'a dyn Fn() -> Option<u8>,
    /// Returns the next message for the user, each one once.
    pub notice: &'a dyn Fn() -> Option<String>,
    /// Keeps how far the run has come, for other programs. A dry run keeps nothing.
    pub note: Option<&'a dyn Fn(&RunState)>,
}

/// Follows an evaluation, and reports it to the user.
pub trait Observer {
    /// Follows until there are no more events.
    fn follow(&mut self, progression: &Progression<'_>);

    /// Whether a failure of a call with this error was reported to the user.
    fn has_reported(&self, error: &StorageError) -> bool;
}

/// A storage, and everything that is needed to evaluate tasks of one repository with it.
pub struct Session {
    storage: Arc<Storage>,
    trees: Trees,
    /// The repositories that tasks read as values.
    sources: Arc<SourceRepositories>,
    jobs: NonZeroUsize,
    policy: Policy,
    /// The queue of the workers that execute calls, if they are not executed here.
    queue: Option<Arc<WorkerQueue>>,
    /// The workers that serve it, and that this run submits to a scheduler.
    scheduled: Option<ScheduledWorkers>,
    /// `None` if nothing is to be computed.
    execution: Option<InterruptibleExecutor>,
    /// Whether inputs that are not in the storage are put there.
    stores: bool,
    frontend: Frontend,
}

impl Session {
    /// Opens a storage to evaluate tasks of the repository in a directory; creates it if it does
    /// not exist. From now on SIGINT, SIGTERM and SIGHUP interrupt executions.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be written, or signals not be watched.
    pub fn open(dir: &Path, storage: &Path, options: &RunOptions) -> Result<Self, Error> {
        Self::begin(dir, options, |patience| {
            Storage::open_patiently(storage, options.unrecorded, options.durability, patience)
        })
    }

    /// Does the same with a storage that was opened for reading.
    ///
    /// # Errors
    ///
    /// Fails as [`open`](Self::open) does.
    pub fn start(dir: &Path, storage: Storage, options: &RunOptions) -> Result<Self, Error> {
        Self::begin(dir, options, |patience| {
            // Leftovers of a killed run are recovered as soon as the storage is writable.
            let storage = storage.treating(options.unrecorded);
            storage.into_writable_patiently(options.durability, patience)
        })
    }

    fn begin(
        dir: &Path,
        options: &RunOptions,
        open: impl FnOnce(Patience) -> Result<Storage, StorageError>,
    ) -> Result<Self, Error> {
        let options = &options.within_open_files();
        let executor = local(options, None, None);
        let execution = InterruptibleExecutor::new(Arc::clone(&executor), options)?;
        let storage = execution.open(options, open)?;
        if options.place == Place::Here {
            IsolationRequired::check(&*executor, options.isolation)?;
        }
        jobs_and_points::record_use(&storage, dir, options.accepts_new, options.frontend.notify)?;
        let mut session = Self::with(storage, dir, options, Some(execution));
        if options.place != Place::Here {
            session.queue_calls(&executor, options)?;
        }
        Ok(session)
    }

    /// Looks for results in a storage that was opened for reading only, which need not exist: nothing is computed or written.
    pub fn inspect(dir: &Path, storage: Storage, options: &RunOptions) -> Self {
        Self::with(storage, dir, options, None)
    }

    fn with(
        storage: Storage,
        dir: &Path,
        options: &RunOptions,
        execution: Option<InterruptibleExecutor>,
    ) -> Self {
        let storage = storage.with_cache(Cache::of_user()).treating(options.unrecorded);
        Self {
            storage: Arc::new(storage.taking_over(options.takeover)),
            trees: Trees::new(dir),
            sources: Arc::new(SourceRepositories::new(dir, Vec::new())),
            jobs: options.jobs,
            policy: options.policy.clone(),
            stores: execution.is_some(),
            execution,
            queue: None,
            scheduled: None,
            frontend: options.frontend,
        }
    }

    /// Reads these repositories, for a task in this directory, in place of the recorded ones.
    #[must_use]
    pub fn reading(self, dir: &Path, repositories: &[(String, PathBuf)]) -> Self {
        let sources = Arc::new(SourceRepositories::new(dir, repositories.to_vec()));
        Self { sources, ..self }
    }

    /// Executes these calls even if they have outputs.
    #[must_use]
    pub fn forcing(mut self, forced: ForcedCalls) -> Self {
        self.policy.forced = forced;
        self
    }

    /// Returns the storage.
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// Returns the signal that interrupted the session, if any.
    pub fn interrupted_by(&self) -> Option<u8> {
        self.execution.as_ref().and_then(InterruptibleExecutor::interrupted_by)
    }

    /// Returns the next message about executions for the user, each one once.
    fn notice(&self) -> Option<String> {
        let execution = self.execution.as_ref()?;
        execution.storage_notice(&self.storage).or_else(|| match &self.queue {
            Some(queue) => queue.notice().or_else(|| self.scheduled.as_ref()?.notice()),
            None => execution.notice(),
        })
    }

    /// Warns once, while a task measures, that others use this host's processors.
    fn busy_host(&self, task: &Task) -> Option<String> {
        let execution = self.execution.as_ref().filter(|_| task.measures())?;
        execution.busy_host()
    }

    /// Binds the names in the values of a task to the texts of its given inputs. All of it is requested.
    ///
    /// # Errors
    ///
    /// Fails as [`BoundTask::new`] does.
    pub fn bind(&self, task: Task, given: &[Option<InputSource>]) -> Result<BoundTask, Error> {
        BoundTask::new(&self.trees, task, given)
    }

    /// Plans a task, and finds or stores its inputs and other leaves.
    ///
    /// # Errors
    ///
    /// Fails if an input cannot be read, or if the storage cannot be read or written.
    pub fn prepare(&self, mut bound: BoundTask) -> Result<Evaluation, Error> {
        let (storage, store) = (&self.storage, self.stores);
        let mut taken = Ok(());
        (self.frontend.while_reading)(&|| storage.inputs().taken_in(), &mut || {
            taken = bound.take_in_sheets(storage, store);
        });
        match (taken, self.interrupted_by()) {
            (Err(_), Some(signal)) => return Err(Interrupted(signal).into()),
            (taken, _) => taken?,
        }
        let BoundTask { task, given, is_read, selection, plan, as_given, sheets } = bound;
        let plan = self.plan(&task, selection, plan);
        check_selection(&plan)?;
        let inputs: &Vec<InputSource> = &given.iter().flatten().cloned().collect();
        let own = &own_files(&self.trees, &task)?;
        let mut files = None;
        (self.frontend.while_reading)(&|| storage.inputs().taken_in(), &mut || {
            files = Some(Files::new(&task, &plan, inputs, own, storage, store));
        });
        let files = files.unwrap_or(Err(StorageError::Interrupted));
        let mut files = self.unless_interrupted(files, |error| of_input(&task, &given, error))?;
        let mut found = mem::take(&mut files.inputs).into_iter().flatten();
        let given: Vec<Option<(InputSource, Input)>> =
            given.into_iter().map(|source| Some((source?, found.next()?))).collect();
        for (name, (_, input)) in
            task.inputs.iter().zip(&given).filter_map(|(name, given)| Some((name, given.as_ref()?)))
        {
            if let Some(left) = leftover(storage, input) {
                (self.frontend.notify)(&format!(
                    "warning: the input {name} has {left}, which another program has left there, and which counts\n  try: remove it; or give a directory without it"
                ));
            }
        }
        let files = fill_in(&task, &is_read, files, given, InputError::NotGiven)?;
        let files = Files { as_given, ..files };
        let texts = if task.trees.is_empty() {
            Texts::new()
        } else {
            texts(inputs.iter().chain(own.iter().flatten()))
        };
        let evaluation = Evaluation::new(task, plan, files, Arc::clone(storage));
        let evaluation = self.with_trees(evaluation, texts)?;
        if sheets.iter().any(SheetOfFiles::has_changed_files) {
            evaluation.note_changed_files();
        }
        Ok(evaluation)
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
        let plan = self.plan(&task, PointSelection::default(), None);
        let own = own_files(&self.trees, &task)?;
        let files = Files::new(&task, &plan, &[], &own, &self.storage, self.stores);
        let files = self.unless_interrupted(files, Error::from)?;
        let all = vec![true; task.inputs.len()];
        let (as_given, mut given) = (as_given_to(other, &task), given_to(other, &task));
        let sheets = sheets_of_files::look(&self.trees, &task, &as_given)?;
        for (at, (given, as_given)) in given.iter_mut().zip(&as_given).enumerate() {
            // A sheet has other columns of files in another version.
            let value = match sheets.iter().find(|sheet| sheet.input == at) {
                Some(sheet) => Some(sheet.value(&self.storage, self.stores)?),
                None => as_given.clone(),
            };
            let is_same = |value: &InputSource| given.as_ref().is_some_and(|it| it.0 == *value);
            if let Some(value) = value.filter(|value| !is_same(value)) {
                let input = self.storage.inputs().take_in(&value, None, self.stores)?;
                *given = Some((value, input));
            }
        }
        let files = fill_in(&task, &all, files, given, no_input(titles))?;
        let files = Files { as_given, ..files };
        let mut texts = texts(own.iter().flatten());
        texts.extend(other.texts.clone());
        self.with_trees(Evaluation::new(task, plan, files, Arc::clone(&self.storage)), texts)
    }

    /// Makes all derived values that wait for no call.
    fn with_trees(&self, evaluation: Evaluation, texts: Texts) -> Result<Evaluation, Error> {
        let evaluation = evaluation.reading(Arc::clone(&self.sources), texts);
        // If only some calls are requested, they make the values that they need.
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
    ///
    /// # Errors
    ///
    /// Fails if it needs the text of an input that the other one lacks.
    pub fn bind_like(
        &self,
        task: Task,
        other: &Evaluation,
        titles: [&str; 2],
    ) -> Result<Task, Error> {
        bind_like(&self.trees, task, other, no_input(titles))
    }

    /// Plans a task unless that was done, and loads the record cache meanwhile.
    fn plan(&self, task: &Task, selection: PointSelection, known: Option<Plan>) -> Plan {
        thread::scope(|scope| {
            let load = || self.storage.cached_records().load(&task.name);
            let loading = thread::Builder::new().spawn_scoped(scope, load);
            let plan = known.unwrap_or_else(|| Plan::of_points(task, selection));
            match loading {
                Ok(loading) => loading.join().unwrap_or_else(|panic| resume_unwind(panic)),
                Err(_) => load(),
            }
            plan
        })
    }

    fn unless_interrupted<T>(
        &self,
        read: Result<T, StorageError>,
        failed: impl FnOnce(StorageError) -> Error,
    ) -> Result<T, Error> {
        read.map_err(|error| unless_interrupted(error, self.interrupted_by(), failed))
    }

    /// Executes calls again, and compares them with their results. Passes the place of each call with its end to `ended`. When the
    /// user asks to stop, no further call begins.
    ///
    /// # Errors
    ///
    /// Fails if threads cannot be started, or written files cannot be flushed.
    pub fn execute_again(
        &self,
        calls: &[AuditedCall],
        budget: AuditBudget,
        ended: &mut dyn FnMut(usize, AuditedEnd),
    ) -> Result<(), EvaluateError> {
        let Some(execution) = &self.execution else { return Ok(()) };
        let exports = &Exports::new(&self.storage, &self.trees);
        let policy = &Policy { timeout: self.policy.timeout, ..Policy::default() };
        let (executor, queue) = (&*execution.executor, self.queue.as_deref());
        let settings = ExecutionSettings { executor, exports, policy, leads: false, queue };
        Audit { storage: &self.storage, settings, calls, budget }.run(ended, &|| {
            if let Some(notice) = self.notice() {
                (self.frontend.notify)(&notice);
            }
        })
    }

    /// Runs a user's command, which is interrupted like executions. Its output goes to standard
    /// error.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be started, or nothing is executed.
    pub fn run_command(&self, command: &mut Command) -> Result<Status, ExecuteError> {
        command.stdin(Stdio::null()).stdout(io::stderr());
        match &self.execution {
            Some(execution) => execution.executor.run(command),
            None => Err(ExecuteError::Interrupted),
        }
    }

    /// A session on the same storage for tasks in another directory, which executes nothing.
    #[must_use]
    pub fn looking_in(&self, dir: &Path) -> Self {
        Self {
            storage: Arc::clone(&self.storage),
            trees: Trees::new(dir),
            sources: Arc::new(SourceRepositories::new(dir, Vec::new())),
            jobs: self.jobs,
            policy: Policy { timeout: self.policy.timeout, ..Policy::default() },
            queue: None,
            scheduled: None,
            execution: None,
            stores: self.stores,
            frontend: self.frontend,
        }
    }

    /// The number of calls that are executed at the same time.
    pub const fn jobs(&self) -> NonZeroUsize {
        self.jobs
    }

    /// Whether inputs that are not in the storage are put there.
    pub const fn stores_inputs(&self) -> bool {
        self.stores
    }

    /// Whether calls can be executed, so that progress is worth showing.
    pub const fn executes(&self) -> bool {
        self.execution.is_some()
    }

    /// Evaluates in other threads, and lets an observer follow in this one.
    ///
    /// # Errors
    ///
    /// Fails if a call asks for more than there is, before anything is executed; if no thread can be started, or if the storage
    /// failed and no call reports it.
    pub fn evaluate(
        &self,
        evaluation: &Evaluation,
        observer: &mut dyn Observer,
    ) -> Result<(), Error> {
        self.check_fit(evaluation)?;
        let (sender, events) = mpsc::channel::<Event>();
        // It is closed when the evaluation is over.
        let (open, over) = mpsc::channel::<Infallible>();
        let executor = self.execution.as_ref().map(|it| &*it.executor);
        let (trees, policy) = (&self.trees, &self.policy);
        let (jobs, queue) = (self.jobs, self.queue.as_deref());
        let evaluated = thread::scope(|scope| {
            let evaluating = move || {
                let _open = open;
                // The events end when all senders are dropped.
                let observe = &move |event| drop(sender.send(event));
                let exports = &Exports::new(&evaluation.storage, trees);
                let execution = executor.map(|executor| ExecutionSettings {
                    executor,
                    exports,
                    policy,
                    leads: true,
                    queue,
                });
                Evaluator { evaluation, execution, observe }.evaluate(jobs)
            };
            let evaluating = thread::Builder::new().spawn_scoped(scope, evaluating);
            let evaluating = match evaluating {
                Ok(evaluating) => evaluating,
                Err(error) => return Ok(Err(EvaluateError::Threads(error))),
            };
            // A run whose state cannot be written continues.
            let note: &dyn Fn(&RunState) =
                &|state| drop(evaluation.storage.runs().note_state(state));
            let note = executor.is_some().then_some(note);
            self.execution.iter().for_each(|it| it.follow(true));
            observer.follow(&Progression {
                events: &events,
                wait: &|time| _ = over.recv_timeout(time).err(),
                interrupted_by: &|| self.interrupted_by(),
                notice: &|| self.notice().or_else(|| self.busy_host(&evaluation.task)),
                note,
            });
            self.execution.iter().for_each(|it| it.follow(false));
            evaluating.join()
        });
        match evaluated {
            // Calls that failed because of the error have reported it.
            Ok(Err(EvaluateError::Storage(error))) if observer.has_reported(&error) => Ok(()),
            Ok(evaluated) => Ok(evaluated?),
            Err(panic) => resume_unwind(panic),
        }
    }
}

/// The error of an input that only the first of two versions takes.
fn no_input([takes, lacks]: [&str; 2]) -> impl Fn(String) -> InputError {
    move |name| InputError::NoInput { name, takes: takes.to_owned(), lacks: lacks.to_owned() }
}

/// Calls ask for more than there is.
#[derive(Debug, thiserror::Error, Explain)]
#[error("nothing is executed: {}", calls.join("; "))]
#[hint("{hint}")]
struct UnsatisfiableError {
    /// The calls, each with the reason.
    calls: Vec<String>,
    /// Advice for the user.
    hint: String,
}

impl Session {
    /// Checks that no call that is to be executed asks for more than there is. A call whose inputs are not known yet counts as
    /// one without a result.
    ///
    /// # Errors
    ///
    /// Fails if one does, or the storage cannot be read.
    pub fn check_fit(&self, evaluation: &Evaluation) -> Result<(), Error> {
        let Some(InterruptibleExecutor { executor, .. }) = &self.execution else { return Ok(()) };
        let mut unsatisfiable = match self.queue {
            // Only the workers that this run submits are known.
            Some(_) => evaluation.unsatisfiable_calls(usize::MAX, || {
                let reach = self.scheduled.as_ref().map_or(Reach::Any, ScheduledWorkers::reach);
                Offer { reach, ..Offer::default() }
            }),
            None => evaluation.unsatisfiable_calls(executor.capacity().get(), || executor.offer()),
        };
        if unsatisfiable.is_empty() {
            return Ok(());
        }
        let looked = evaluation.again();
        let evaluator = Evaluator { evaluation: &looked, execution: None, observe: &|_| {} };
        evaluator.evaluate(NonZeroUsize::MIN)?;
        unsatisfiable.retain(|(id, _)| {
            let found = looked.outcome(*id).and_then(Outcome::known);
            let has_result = found.is_some_and(|it| !self.policy.forced.contain(&it.name));
            !has_result && looked.plan.call(*id).is_needed() && !is_left_out(&looked.plan, *id)
        });
        match unsatisfiable.first() {
            None => Ok(()),
            Some((_, first)) => {
                let hint = first.hint().unwrap_or_default();
                Err(UnsatisfiableError { calls: described(evaluation, unsatisfiable), hint }.into())
            }
        }
    }
}

/// Whether a call needs the table of a sweep with points that are left out, so that it is not executed.
fn is_left_out(plan: &Plan, call: CallId) -> bool {
    let made_from = plan.ancestors(&[Source::Output { call, number: 0 }]);
    made_from
        .calls
        .iter()
        .filter_map(|call| plan.gathered(*call).and_then(PlannedSweep::rows))
        .any(SweepRows::is_partial)
}

/// Describes calls and why they do not fit. Equal points of a sweep are one.
fn described(evaluation: &Evaluation, unsatisfiable: Vec<(CallId, Unsatisfiable)>) -> Vec<String> {
    let mut described = Vec::new();
    for (id, why) in unsatisfiable {
        let name = evaluation.computation(id).map_or("", |it| it.name.as_str());
        let label =
            evaluation.label_path(id).map(|label| format!(" ({label})")).unwrap_or_default();
        let text = format!("{name}{label}: {why}");
        if !described.contains(&text) {
            described.push(text);
        }
    }
    described
}

/// Looks for the results of all calls of a task in a storage that exists. Computes and writes nothing.
///
/// # Errors
///
/// Fails if an input or the storage cannot be read.
pub fn look_up(
    dir: &Path,
    task: Task,
    given: &Given,
    options: &RunOptions,
) -> Result<Evaluation, Error> {
    let session = inspect_existing(dir, given, options)?;
    let evaluation = session.prepare(session.bind(task, &given.inputs)?)?;
    look_only(&evaluation, NonZeroUsize::MIN)?;
    Ok(evaluation)
}

/// Looks for the results of two versions of a task, the older one first. The older one gets the newer one's given
/// inputs by name. An output that cannot be derived is not an error. `titles` names both for errors.
///
/// # Errors
///
/// Fails if an input or the storage cannot be read, or if the older version has an input that the newer one lacks.
pub fn look_up_versions(
    dir: &Path,
    [older, newer]: [Task; 2],
    titles: [&str; 2],
    given: &Given,
    options: &RunOptions,
) -> Result<[Evaluation; 2], Error> {
    let session = inspect_existing(dir, given, options)?;
    let newer = session.prepare(session.bind(newer, &given.inputs)?)?;
    let older = session.prepare_like(older, &newer, titles)?;
    for evaluation in [&older, &newer] {
        match look_only(evaluation, NonZeroUsize::MIN) {
            Ok(()) | Err(EvaluateError::Output(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok([older, newer])
}

/// A session in which nothing is computed.
fn inspect_existing(dir: &Path, given: &Given, options: &RunOptions) -> Result<Session, Error> {
    let storage = Storage::existing(&given.storage)?;
    Ok(Session::inspect(dir, storage, options).reading(dir, &given.repositories))
}

/// Looks for the results of all calls, in `jobs` threads. Computes and writes nothing.
///
/// # Errors
///
/// Fails if threads cannot be started, or the storage cannot be read.
pub fn look_only(evaluation: &Evaluation, jobs: NonZeroUsize) -> Result<(), EvaluateError> {
    Evaluator { evaluation, execution: None, observe: &|_| {} }.evaluate(jobs)
}

/// Threads or signals are not available.
#[derive(Debug, thiserror::Error, Explain)]
#[error("cannot start threads or watch signals")]
#[exit(Storage)]
#[hint(Some(system_hints::raising_limits()))]
pub struct BeginError(#[source] Box<dyn error::Error + Send + Sync>);

impl BeginError {
    /// The error for this reason.
    pub fn new(reason: impl Into<Box<dyn error::Error + Send + Sync>>) -> Self {
        Self(reason.into())
    }
}

/// Standard output could not be written.
#[derive(Debug, thiserror::Error, Explain)]
#[error("cannot write the standard output")]
#[exit(Storage)]
#[hint("look at where it leads to: df and ls -l say whether it can be written")]
pub struct OutputError(#[source] pub io::Error);

/// A file of the user could not be written.
#[derive(Debug, thiserror::Error, Explain)]
#[error("cannot write {path}")]
#[exit(Storage)]
#[hint(system_hints::for_writing(Path::new(path), source))]
pub struct WriteError {
    /// The file.
    pub path: String,
    /// The cause.
    pub source: io::Error,
}

/// A signal of this number came while inputs were read.
#[derive(Debug, thiserror::Error, Explain)]
#[error("interrupted while inputs are read")]
#[exit(Exit::Interrupted(*_0))]
#[hint(None)]
pub struct Interrupted(pub u8);

/// The reason why a path names no result.
#[derive(Debug, thiserror::Error, Explain)]
pub enum ResultPathError {
    /// It is a storage.
    #[error("{} is a storage, and no result in it is given", .0.display())]
    #[hint(Some(naming_results()))]
    Storage(PathBuf),
    /// It leads into a storage, to a place where no results are.
    #[error("{} is in the storage {}, and not where results are", path.display(), storage.display())]
    #[hint(
        "give a file in c_NAME/CCID/NN/, t_NAME/CCID/NN/ or tinputs/ of the storage; ce log lists calls"
    )]
    Elsewhere { path: PathBuf, storage: PathBuf },
    /// It leads through no storage.
    #[error("{} is in no storage, and Git's configuration has no compeval.storage", .0.display())]
    #[hint("give the path of a file in a storage, or give the storage before the name of the file")]
    Nowhere(PathBuf),
}

/// Returns the advice for a user who has named no result.
pub fn naming_results() -> String {
    "give a file of each result, after the storage".to_owned()
}

/// The first file of a directory that another program has left, as far as the storage has the directory.
fn leftover(storage: &Storage, input: &Input) -> Option<String> {
    let directory = Some(&input.file).filter(|file| input.there && file.digest.is_directory())?;
    // Unreadable files are errors where they are needed.
    let manifest = storage.values().manifest(&directory.name, &directory.digest).ok()??;
    let mut paths = manifest.entries().iter().map(|it| Path::new(OsStr::from_bytes(&it.path)));
    Some(paths.find(|path| is_leftover(path))?.display().to_string())
}
