//! Evaluation: each call of a plan once, in parallel, by counting down.
//!
//! A call is ready when no input of it is awaited any more. Whatever is ready is done by the next
//! free thread; a call that is over counts down its readers. Nobody waits for anybody, so there is
//! no depth of recursion and no deadlock. The only place where plan, storage and executor meet.

mod call;
mod countdown;
mod exports;
mod outcome;

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::OnceLock;

use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

pub use self::exports::Exports;
pub use self::outcome::{CallError, EvaluateError, Event, Files, Outcome};
use crate::digest::Digest;
use crate::executor::Executor;
use crate::git::Trees;
use crate::plan::{CallId, Plan, Source};
use crate::storage::record::Published;
use crate::storage::{Input, Job, ResultName, Storage, StorageError, Stored, TaskVersion, Version};
use crate::workflow::Task;

/// A plan, and everything that is needed to carry it out.
pub struct Evaluator<'a> {
    /// The task that was planned.
    pub task: &'a Task,
    /// What is to be done.
    pub plan: &'a Plan,
    /// What is there before any call.
    pub files: &'a Files,
    /// Where results are.
    pub storage: &'a Storage,
    /// Where computations run from.
    pub exports: &'a Exports<'a>,
    /// What can start processes; without it, nothing is computed.
    pub executor: Option<&'a dyn Executor>,
    /// How often a call that fails is tried again.
    pub retries: u32,
    /// The calls that are executed although their outputs are there.
    pub forced: &'a HashSet<ResultName>,
    /// Who is told what happens, by the thread that does it.
    pub observe: &'a (dyn Fn(Event) + Sync),
}

/// How every call of a plan ended, as far as it did.
pub struct Evaluation {
    outcomes: Box<[OnceLock<Outcome>]>,
}

/// An evaluation, and everything that it is of: what others ask and tell of it.
#[derive(Clone, Copy)]
pub struct Account<'a> {
    /// The task.
    pub task: &'a Task,
    /// Its plan.
    pub plan: &'a Plan,
    /// What was there before any call.
    pub files: &'a Files,
    /// How the calls end.
    pub evaluation: &'a Evaluation,
    /// Where the results are.
    pub storage: &'a Storage,
}

impl Account<'_> {
    /// What a source contains, if it is known.
    pub fn digest(&self, source: Source) -> Option<Digest> {
        self.evaluation.digest(self.files, source)
    }
}

impl Evaluation {
    /// Nothing is done yet.
    pub fn new(plan: &Plan) -> Self {
        Self { outcomes: plan.calls().map(|_| OnceLock::new()).collect() }
    }

    /// Looks for the results of all calls of a task in this directory, and computes nothing.
    ///
    /// # Errors
    ///
    /// Fails if no thread can be started.
    pub fn of_what_is_there(
        dir: &Path,
        task: &Task,
        plan: &Plan,
        files: &Files,
        storage: &Storage,
    ) -> Result<Self, EvaluateError> {
        let evaluation = Self::new(plan);
        let (observe, trees) = (&|_| {}, Trees::new(dir));
        let (exports, forced) = (&Exports::new(storage, &trees), &HashSet::new());
        let (executor, retries) = (None, 0);
        Evaluator { task, plan, files, storage, exports, executor, retries, forced, observe }
            .evaluate(&evaluation, NonZeroUsize::MIN)?;
        Ok(evaluation)
    }

    /// Notes how a call ended; tells whether that was not known.
    fn set(&self, call: CallId, outcome: Outcome) -> bool {
        self.outcomes[call.index()].set(outcome).is_ok()
    }

    /// How a call ended, if it did.
    pub fn outcome(&self, call: CallId) -> Option<&Outcome> {
        self.outcomes[call.index()].get()
    }

    /// How the calls ended that did, in the order of the plan.
    pub fn outcomes(&self) -> impl Iterator<Item = &Outcome> {
        self.outcomes.iter().filter_map(OnceLock::get)
    }

    /// What a source contains, if it is known.
    pub fn digest(&self, files: &Files, source: Source) -> Option<Digest> {
        match source {
            Source::Input(id) => Some(files.inputs[id.index()].file.digest),
            Source::Literal(id) => files.literals[id.index()].as_ref().map(|file| file.digest),
            Source::Output { call, number } => {
                let outputs = self.outcome(call)?.outputs()?;
                outputs.files.get(usize::from(number)).map(|file| file.digest)
            }
        }
    }

    /// The name of a source's file, or of what it would be.
    pub fn name(&self, files: &Files, plan: &Plan, source: Source) -> Option<String> {
        Some(match source {
            Source::Input(id) => files.inputs[id.index()].file.name.clone(),
            Source::Literal(id) => plan.literals()[id.index()].to_string(),
            Source::Output { call, number } => self.outcome(call)?.name().output(number.into()),
        })
    }

    /// Whether a source's file is in the storage.
    pub fn is_there(&self, files: &Files, source: Source) -> bool {
        match source {
            Source::Input(id) => files.inputs[id.index()].there,
            Source::Literal(id) => files.literals[id.index()].is_some(),
            Source::Output { call, .. } => {
                self.outcome(call).is_some_and(|outcome| outcome.outputs().is_some())
            }
        }
    }

    /// A source's file, if it is in the storage.
    pub fn stored(&self, files: &Files, source: Source) -> Option<Stored> {
        match source {
            Source::Input(id) => {
                let input = &files.inputs[id.index()];
                input.there.then(|| input.file.clone())
            }
            Source::Literal(id) => files.literals[id.index()].clone(),
            Source::Output { call, number } => {
                let outputs = self.outcome(call)?.outputs()?;
                let Published { digest, modified_ns } = *outputs.files.get(usize::from(number))?;
                Some(Stored { name: outputs.name.output(number.into()), digest, modified_ns })
            }
        }
    }

    /// The files that a job's outputs are, if all of them are there.
    pub fn outputs(&self, files: &Files, plan: &Plan) -> Option<Vec<Stored>> {
        plan.outputs().iter().map(|source| self.stored(files, *source)).collect()
    }

    /// The job that was done, if all outputs of the task are there.
    pub fn job<'a>(
        &'a self,
        task: &'a Task,
        inputs: &'a [Digest],
        literals: &'a [Stored],
        outputs: &'a [Stored],
    ) -> Job<'a> {
        let calls = self.outcomes().map(Outcome::name).collect();
        Job { task: task_version(task), names: &task.inputs, inputs, literals, outputs, calls }
    }
}

impl Files {
    /// Finds, or stores, what is there before any call. Large inputs are read by all cores.
    ///
    /// # Errors
    ///
    /// Fails if an input cannot be read, or the storage not be read or written: tells of the first
    /// input with which that is so.
    pub fn new(
        task: &Task,
        plan: &Plan,
        paths: &[impl AsRef<Path>],
        storage: &Storage,
        store: bool,
    ) -> Result<Self, StorageError> {
        announce(task, plan, storage);
        let input = |path: &&Path| -> Result<Input, StorageError> {
            if store { storage.store_input(path) } else { storage.find_input(path) }
        };
        let paths: Vec<&Path> = paths.iter().map(AsRef::as_ref).collect();
        let inputs: Result<_, _> = if storage.expect(&paths) {
            let inputs: Vec<_> = paths.par_iter().map(input).collect();
            inputs.into_iter().collect()
        } else {
            paths.iter().map(input).collect()
        };
        let inputs = inputs?;
        Self::with_literals(plan, inputs, storage)
    }

    /// Finds what else is there for a task of which the inputs were found before.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read.
    pub fn with_inputs(
        task: &Task,
        plan: &Plan,
        inputs: Vec<Input>,
        storage: &Storage,
    ) -> Result<Self, StorageError> {
        announce(task, plan, storage);
        Self::with_literals(plan, inputs, storage)
    }

    fn with_literals(
        plan: &Plan,
        inputs: Vec<Input>,
        storage: &Storage,
    ) -> Result<Self, StorageError> {
        let literals = plan.literals().iter().map(|name| storage.literal(name.as_str()));
        Ok(Self { inputs, literals: literals.collect::<Result<_, _>>()? })
    }
}

/// The version of a task, as the storage knows it.
fn task_version(task: &Task) -> TaskVersion<'_> {
    TaskVersion { name: &task.name, commit: &task.commit, place: Some(&task.place) }
}

/// Tells others which results are going to be looked for, so that nobody takes them away.
fn announce(task: &Task, plan: &Plan, storage: &Storage) {
    let calls = task.computations.iter().flat_map(|it| Version::of(it).directories());
    let literals = plan.literals().iter().map(ToString::to_string);
    let jobs = task_version(task).directories();
    storage.announce(calls.chain(literals).chain(jobs));
}

impl Evaluator<'_> {
    /// Carries out the plan with so many threads, until every call is over.
    ///
    /// # Errors
    ///
    /// Fails if the threads cannot be started, or if what was published cannot be flushed.
    pub fn evaluate(
        &self,
        evaluation: &Evaluation,
        jobs: NonZeroUsize,
    ) -> Result<(), EvaluateError> {
        self.storage.recall_records(&self.task.name);
        let carried_out = countdown::carry_out(self, evaluation, jobs);
        if let Some(executor) = self.executor {
            executor.finish();
        }
        let in_place = self.executor.map_or(Ok(()), |_| self.storage.check_in_place());
        self.storage.remember_records();
        carried_out.and(in_place.map_err(EvaluateError::from))
    }
}
