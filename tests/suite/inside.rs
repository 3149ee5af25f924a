//! Evaluation in this process, by an executor that starts nothing: fast enough for thousands.

use std::collections::HashSet;
use std::fs;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use compeval::evaluate::{Evaluation, Evaluator, Event, ExecutionSettings, Exports, Files, Policy};
use compeval::executor::{Executor, Fake, Invocation};
use compeval::git::Trees;
use compeval::load;
use compeval::load::Uncommitted;
use compeval::plan::Plan;
use compeval::report::{Reporter, Tally, TreePrinter, TreeStyle};
use compeval::session::Exit;
use compeval::storage::{Durability, InputSource, Storage, Unrecorded};
use compeval::task::Task;

use crate::lab::Lab;

/// A task, and where its results are.
pub(crate) struct World {
    pub(crate) task: Arc<Task>,
    pub(crate) plan: Arc<Plan>,
    pub(crate) storage: PathBuf,
    pub(crate) inputs: Vec<InputSource>,
    /// Whether written files are flushed.
    pub(crate) durability: Durability,
}

/// The result of an evaluation.
pub(crate) struct Evaluated {
    pub(crate) exit: Exit,
    pub(crate) tally: Tally,
    /// The contents of the outputs; empty if one is missing.
    pub(crate) outputs: Vec<String>,
    /// The names of all calls.
    pub(crate) names: Vec<String>,
    /// The tree, as it is printed.
    pub(crate) text: String,
    /// The executed calls: a computation, and its inputs.
    pub(crate) executed: Vec<(String, Vec<String>)>,
    /// The greatest number of calls that ran at a time, by the events.
    pub(crate) most_running: usize,
}

/// Returns the output that a computation of this name makes, given such inputs.
pub(crate) fn value(name: &str, number: usize, inputs: &[String]) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let text = format!("{name} {number} {}", inputs.join(" "));
    for byte in text.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    format!("{hash:016x}")
}

/// Makes the outputs of an invocation; returns the computation, and its inputs.
pub(crate) fn execute(invocation: &Invocation) -> (String, Vec<String>) {
    let name = invocation.tree.path.file_name().unwrap().to_str().unwrap();
    let inputs: Vec<String> =
        invocation.inputs.iter().map(|input| read(&input.file.path)).collect();
    for (number, output) in invocation.outputs.iter().enumerate() {
        fs::write(&output.path, value(name, number, &inputs)).unwrap();
    }
    (name.to_owned(), inputs)
}

fn read(path: &PathBuf) -> String {
    fs::read_to_string(path).unwrap()
}

impl World {
    /// Loads the task that is in a laboratory.
    pub(crate) fn load(lab: &Lab) -> Self {
        let task = load::task(&lab.path("task"), Uncommitted::Ignore, None);
        let task = task.unwrap_or_else(|error| panic!("{error:?}")).task;
        let (plan, task) = (Arc::new(Plan::new(&task)), Arc::new(task));
        let inputs = lab.inputs.iter().map(|name| InputSource::File(lab.path("data").join(name)));
        let (storage, inputs) = (lab.path("storage"), inputs.collect());
        Self { task, plan, storage, inputs, durability: Durability::Unsynced }
    }

    /// Evaluates it with this number of threads.
    pub(crate) fn run(&self, jobs: usize) -> Evaluated {
        self.run_and(jobs, || ())
    }

    /// Evaluates it, and does something else in each execution.
    pub(crate) fn run_and(&self, jobs: usize, and: impl Fn() + Sync) -> Evaluated {
        let executed = Mutex::new(Vec::new());
        let fake = Fake(|invocation: &Invocation| {
            and();
            executed.lock().unwrap().push(execute(invocation));
            0
        });
        let evaluated = self.evaluate(Some(&fake), jobs, 0);
        let executed = executed.into_inner().unwrap();
        Evaluated { executed, ..evaluated }
    }

    /// Looks up the results, and executes nothing.
    pub(crate) fn look(&self) -> Evaluated {
        self.evaluate(None, 2, 0)
    }

    /// Evaluates it with an executor, or only looks up the results.
    pub(crate) fn evaluate(
        &self,
        executor: Option<&dyn Executor>,
        jobs: usize,
        retries: u32,
    ) -> Evaluated {
        let Self { task, plan, .. } = self;
        let storage = match executor {
            Some(_) => Storage::open(&self.storage, Unrecorded::Adopt, self.durability),
            None => Storage::inspect(&self.storage, Unrecorded::Adopt),
        };
        let storage = storage.unwrap();
        let files =
            Files::new(task, plan, &self.inputs, &[], &storage, executor.is_some()).unwrap();
        let evaluation = &Evaluation::new(Arc::clone(task), Arc::clone(plan), files, storage);
        let events = Mutex::new(Vec::new());
        let observe = &|event: Event| events.lock().unwrap().push(event);
        let trees = Trees::new(&self.storage.with_file_name("task"));
        let exports = &Exports::new(&evaluation.storage, &trees);
        let policy = &Policy { retries, ..Policy::default() };
        let settings =
            |executor| ExecutionSettings { executor, exports, policy, leads: true, queue: None };
        let evaluator = Evaluator { evaluation, execution: executor.map(settings), observe };
        evaluator.evaluate(NonZeroUsize::new(jobs).unwrap()).unwrap();
        let mut text = Vec::new();
        let mut tree = TreePrinter::new(evaluation, TreeStyle::Original);
        tree.begin(&mut text).unwrap();
        let (mut running, mut most_running) = (HashSet::new(), 0);
        for event in events.into_inner().unwrap() {
            match event {
                Event::Started(call, ..) => drop(running.insert(call)),
                Event::Sealed(call) | Event::Ended(call) => drop(running.remove(&call)),
                _ => {}
            }
            most_running = most_running.max(running.len());
            tree.event(&event, &mut text).unwrap();
        }
        tree.end(&[], evaluation.exit(), &mut text).unwrap();
        let outputs = evaluation.outputs().unwrap_or_default();
        let path = |name: &str| evaluation.storage.path(name);
        Evaluated {
            exit: evaluation.exit(),
            tally: compeval::report::tally(evaluation),
            outputs: outputs.iter().map(|output| read(&path(&output.name))).collect(),
            names: evaluation.outcomes().map(|outcome| outcome.name().short()).collect(),
            text: String::from_utf8(text).unwrap(),
            executed: Vec::new(),
            most_running,
        }
    }
}

impl Evaluated {
    /// Returns the number of different calls that were executed.
    pub(crate) fn different(&self) -> usize {
        self.executed.iter().collect::<HashSet<_>>().len()
    }
}
