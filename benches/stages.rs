//! Times each stage of the evaluation of generated tasks: `cargo bench`.
//!
//! A task has 1,000 or 10,000 calls (`CE_BENCH_CALLS=1000,100000` asks for other numbers): half of
//! them join two of the task's inputs, the others join their results in a binary tree. What is cold is
//! measured with an executor that starts no process, and with one that does, with and without a sandbox
//! and flushing. What a stage allocates is told as well. At the end a large input is hashed, and copied.

#![expect(clippy::unwrap_used, reason = "a measurement may panic")]

mod generate;

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use compeval::cache::Cache;
use compeval::evaluate::{Evaluation, Evaluator, ExecutionSettings, Exports, Files, How, Policy};
use compeval::executor::{Executor, Fake, InputFile, Invocation, Local, Sandbox};
use compeval::git::Trees;
use compeval::load;
use compeval::load::Uncommitted;
use compeval::plan::Plan;
use compeval::storage::{Durability, InputSource, Storage, Unrecorded};
use compeval::task::Task;
use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};

#[global_allocator]
static ALLOCATIONS: divan::AllocProfiler = divan::AllocProfiler::system();

fn main() {
    drop(fs::remove_dir_all(place()));
    divan::main();
    drop(fs::remove_dir_all(place()));
}

/// Where everything is made, and removed again.
fn place() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("stages")
}

/// How many calls the tasks have.
fn calls() -> Vec<usize> {
    let given = std::env::var("CE_BENCH_CALLS").unwrap_or_else(|_| "1000,10000".to_owned());
    given.split(',').map(|number| number.trim().parse().unwrap()).collect()
}

/// A task that was generated, loaded and planned.
struct World {
    directory: PathBuf,
    inputs: Vec<InputSource>,
    task: Arc<Task>,
    plan: Arc<Plan>,
}

/// How many computations run at the same time.
fn jobs() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

impl World {
    /// The task with this number of calls, made when it is asked for first.
    fn with_calls(calls: usize) -> &'static Self {
        static WORLDS: Mutex<BTreeMap<usize, &'static World>> = Mutex::new(BTreeMap::new());
        WORLDS.lock().unwrap().entry(calls).or_insert_with(|| {
            let directory = place().join(calls.to_string());
            let generate::Generated { task: directory, inputs } = generate::task(&directory, calls);
            let task = load::task(&directory, Uncommitted::Refuse, None).unwrap().task;
            let plan = Plan::new(&task);
            assert_eq!(plan.calls().len(), calls);
            let (task, plan) = (Arc::new(task), Arc::new(plan));
            let inputs = inputs.into_iter().map(InputSource::File).collect();
            Box::leak(Box::new(Self { directory, inputs, task, plan }))
        })
    }

    /// A directory that is not there.
    fn fresh(&self) -> PathBuf {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        self.directory.with_file_name(format!("fresh-{number}"))
    }

    /// Evaluates everything; returns how many calls were executed.
    fn evaluate(&self, storage: &Path, durability: Durability, executor: &dyn Executor) -> usize {
        let storage = Storage::open(storage, Unrecorded::Adopt, durability).unwrap();
        let Self { task, plan, inputs, directory } = self;
        let files = Files::new(task, plan, inputs, &[], &storage, true).unwrap();
        let evaluation = &Evaluation::new(Arc::clone(task), Arc::clone(plan), files, storage);
        let (trees, policy) = (&Trees::new(directory), &Policy::default());
        let exports = &Exports::new(&evaluation.storage, trees);
        let execution =
            Some(ExecutionSettings { executor, exports, policy, leads: true, queue: None });
        Evaluator { evaluation, execution, observe: &|_| {} }.evaluate(jobs()).unwrap();
        assert!(evaluation.outputs().is_some(), "all outputs are there");
        evaluation.outcomes().filter(|outcome| outcome.how() == How::Executed).count()
    }

    fn cold(&self, bencher: Bencher<'_, '_>, durability: Durability, executor: &dyn Executor) {
        let calls = self.plan.calls().len();
        let executed = |storage: PathBuf| {
            assert_eq!(self.evaluate(&storage, durability, executor), calls);
            // Removed when the time is taken.
            Removed(storage)
        };
        bencher.with_inputs(|| self.fresh()).counter(ItemsCount::new(calls)).bench_values(executed);
    }
}

/// A storage that goes.
struct Removed(PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

#[divan::bench(args = calls(), sample_count = 5, sample_size = 1)]
fn load(bencher: Bencher<'_, '_>, calls: usize) {
    let World { directory, .. } = World::with_calls(calls);
    let load = || load::task(directory, Uncommitted::Refuse, None).unwrap();
    bencher.counter(ItemsCount::new(calls)).bench(load);
}

#[divan::bench(args = calls(), sample_count = 5, sample_size = 1)]
fn load_a_commit(bencher: Bencher<'_, '_>, calls: usize) {
    let World { directory, .. } = World::with_calls(calls);
    bencher
        .counter(ItemsCount::new(calls))
        .bench(|| load::task_at(directory, "HEAD", None).unwrap());
}

#[divan::bench(args = calls(), sample_count = 20, sample_size = 1)]
fn load_from_the_cache(bencher: Bencher<'_, '_>, calls: usize) {
    let World { directory, .. } = World::with_calls(calls);
    let cache = Cache::at(place().join("cache"));
    // A file that has just been written is racy.
    std::thread::sleep(std::time::Duration::from_secs(2));
    let load = || load::task(directory, Uncommitted::Refuse, Some(&cache)).unwrap();
    load();
    bencher.counter(ItemsCount::new(calls)).bench(load);
}

#[divan::bench(args = calls(), sample_count = 20, sample_size = 1)]
fn plan(bencher: Bencher<'_, '_>, calls: usize) {
    let world = World::with_calls(calls);
    bencher.counter(ItemsCount::new(calls)).bench(|| Plan::new(&world.task));
}

#[divan::bench(args = calls(), sample_count = 3, sample_size = 1)]
fn cold_without_processes(bencher: Bencher<'_, '_>, calls: usize) {
    World::with_calls(calls).cold(bencher, Durability::Unsynced, &Fake(concatenate));
}

#[divan::bench(args = calls(), sample_count = 3, sample_size = 1)]
fn cold(bencher: Bencher<'_, '_>, calls: usize) {
    World::with_calls(calls).cold(bencher, Durability::Unsynced, &Local::new(jobs(), None));
}

#[divan::bench(args = calls(), sample_count = 3, sample_size = 1)]
fn cold_flushed(bencher: Bencher<'_, '_>, calls: usize) {
    World::with_calls(calls).cold(bencher, Durability::Synced, &Local::new(jobs(), None));
}

#[divan::bench(args = calls(), sample_count = 3, sample_size = 1)]
fn cold_isolated(bencher: Bencher<'_, '_>, calls: usize) {
    let sandbox = Sandbox::with_program(env!("CARGO_BIN_EXE_ce").into());
    let executor = Local::new(jobs(), Some(sandbox));
    World::with_calls(calls).cold(bencher, Durability::Unsynced, &executor);
}

#[divan::bench(args = calls(), sample_count = 10, sample_size = 1)]
fn warm(bencher: Bencher<'_, '_>, calls: usize) {
    let world = World::with_calls(calls);
    let storage = Removed(world.fresh());
    let evaluate = || world.evaluate(&storage.0, Durability::Unsynced, &Fake(concatenate));
    evaluate();
    bencher.counter(ItemsCount::new(calls)).bench(|| assert_eq!(evaluate(), 0));
}

/// How large the one large input is.
const LARGE: usize = 256 << 20;

fn large() -> &'static Path {
    static FILE: OnceLock<PathBuf> = OnceLock::new();
    FILE.get_or_init(|| {
        let file = place().join("large");
        fs::create_dir_all(place()).unwrap();
        fs::write(&file, vec![0; LARGE]).unwrap();
        file
    })
}

fn storage() -> Storage {
    let storage = World::with_calls(1).fresh();
    Storage::open(&storage, Unrecorded::Adopt, Durability::Unsynced).unwrap()
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn hash(bencher: Bencher<'_, '_>) {
    let (storage, file) = (storage(), large());
    bencher.counter(BytesCount::new(LARGE)).bench(|| storage.inputs().find(&file.into()).unwrap());
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn hash_and_copy(bencher: Bencher<'_, '_>) {
    let file = large();
    let bencher = bencher.counter(BytesCount::new(LARGE)).with_inputs(storage);
    bencher.bench_values(|storage| storage.inputs().store(&file.into()).unwrap());
}

/// The action of the generated computation, without a process.
fn concatenate(invocation: &Invocation) -> i32 {
    let read = |input: &InputFile| fs::read(&input.file.path).unwrap();
    let contents: Vec<u8> = invocation.inputs.iter().flat_map(read).collect();
    fs::write(&invocation.outputs[0].path, contents).map_or(1, |()| 0)
}
