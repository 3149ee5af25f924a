//! Evaluation: each call of a plan once, in parallel, by counting down.
//!
//! A call is ready when no input of it is awaited any more. Whatever is ready is done by the next
//! free thread; a call that is over counts down its readers. Nobody waits for anybody, so there is
//! no depth of recursion and no deadlock. The only place where plan, storage and executor meet.

mod call;
mod outcome;

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

pub use self::outcome::{CallError, Event, Files, Outcome};
use crate::digest::Digest;
use crate::executor::Executor;
use crate::plan::{CallId, Plan, Source};
use crate::storage::{Input, Job, Storage, StorageError, Stored};
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
    /// What can start processes; without it, nothing is computed.
    pub executor: Option<&'a dyn Executor>,
    /// Who is told what happens, by the thread that does it.
    pub observe: &'a (dyn Fn(Event) + Sync),
}

/// How every call of a plan ended, as far as it did.
pub struct Evaluation {
    outcomes: Box<[OnceLock<Outcome>]>,
}

impl Evaluation {
    /// Nothing is done yet.
    pub fn new(plan: &Plan) -> Self {
        Self {
            outcomes: plan.calls().map(|_| OnceLock::new()).collect(),
        }
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
                outputs.digests.get(usize::from(number)).copied()
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
            Source::Output { call, .. } => self
                .outcome(call)
                .is_some_and(|outcome| outcome.outputs().is_some()),
        }
    }

    /// The files that a job's outputs are, if all of them are there.
    pub fn outputs(&self, files: &Files, plan: &Plan) -> Option<Vec<Stored>> {
        let stored = |source: &Source| {
            let digest = self
                .digest(files, *source)
                .filter(|_| self.is_there(files, *source))?;
            Some(Stored {
                name: self.name(files, plan, *source)?,
                digest,
            })
        };
        plan.outputs().iter().map(stored).collect()
    }

    /// The job that was done, if all outputs of the task are there.
    pub fn job<'a>(&self, task: &'a Task, inputs: &'a [Digest], outputs: &'a [Stored]) -> Job<'a> {
        let calls = self
            .outcomes()
            .map(|outcome| outcome.name().short())
            .collect();
        Job {
            task,
            inputs,
            outputs,
            calls,
        }
    }
}

impl Files {
    /// Finds, or stores, what is there before any call.
    ///
    /// # Errors
    ///
    /// Fails if an input cannot be read, or the storage not be read or written.
    pub fn new(
        plan: &Plan,
        paths: &[impl AsRef<Path>],
        storage: &Storage,
        store: bool,
    ) -> Result<Self, StorageError> {
        let input = |path: &Path| -> Result<Input, StorageError> {
            if store {
                storage.store_input(path)
            } else {
                storage.find_input(path)
            }
        };
        let inputs = paths
            .iter()
            .map(|path| input(path.as_ref()))
            .collect::<Result<_, _>>()?;
        let literals = plan
            .literals()
            .iter()
            .map(|name| storage.literal(name.as_str()));
        Ok(Self {
            inputs,
            literals: literals.collect::<Result<_, _>>()?,
        })
    }
}

impl Evaluator<'_> {
    /// Carries out the plan with so many threads, until every call is over.
    ///
    /// # Errors
    ///
    /// Fails if the threads cannot be started.
    pub fn evaluate(
        &self,
        evaluation: &Evaluation,
        jobs: NonZeroUsize,
    ) -> Result<(), rayon::ThreadPoolBuildError> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(jobs.get())
            .build()?;
        let awaited = |(id, _)| AtomicU32::new(self.plan.awaited(id) as u32);
        let awaited: Vec<AtomicU32> = self.plan.calls().map(awaited).collect();
        // Collected before the first is started: one that is counted down meanwhile is not ready
        // from the beginning.
        let ready = |id: &CallId| awaited[id.index()].load(Ordering::Relaxed) == 0;
        let ready: Vec<CallId> = self.plan.calls().map(|(id, _)| id).filter(ready).collect();
        pool.scope_fifo(|scope| {
            let awaited = &awaited[..];
            for id in ready {
                scope.spawn_fifo(move |scope| self.step(scope, evaluation, awaited, id));
            }
        });
        Ok(())
    }

    fn step<'s>(
        &'s self,
        scope: &rayon::ScopeFifo<'s>,
        evaluation: &'s Evaluation,
        awaited: &'s [AtomicU32],
        id: CallId,
    ) {
        let outcome = self.call(evaluation, id);
        let first = evaluation.outcomes[id.index()].set(outcome).is_ok();
        debug_assert!(first, "a call ends once");
        (self.observe)(Event::Ended(id));
        for &reader in self.plan.readers(id) {
            if awaited[reader.index()].fetch_sub(1, Ordering::AcqRel) == 1 {
                scope.spawn_fifo(move |scope| self.step(scope, evaluation, awaited, reader));
            }
        }
    }
}
