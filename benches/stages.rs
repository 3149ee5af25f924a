//! Times each stage of the evaluation of a generated task: `cargo bench`.
//!
//! The task has 10,000 calls (`CE_BENCH_CALLS` asks for another number): half of them add two of
//! a hundred task inputs, the others join their results in a binary tree. `cold` is measured
//! with an executor that starts no process, and with one that does, with and without a sandbox. For each stage the
//! fastest of three runs is told; the memory is the highest that the process had until then. At the end a
//! large input is hashed, and copied.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement may panic and print")]

mod generate;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use compeval::evaluate::{Evaluation, Evaluator, Exports, Files, Outcome};
use compeval::executor::{Executor, Fake, Invocation, Local, Sandbox};
use compeval::git::Trees;
use compeval::load::{self, Uncommitted};
use compeval::plan::Plan;
use compeval::storage::{Durability, Storage, Unrecorded};
use compeval::workflow::Task;

const RUNS: usize = 3;

/// How large the one large input is.
const MEBIBYTES: usize = 256;

fn main() {
    let calls = std::env::var("CE_BENCH_CALLS").map_or(10_000, |text| text.parse().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let generated = generate::task(dir.path(), calls);
    println!("{:<28}{:>10}{:>14}{:>12}", "stage", "time", "calls/s", "peak memory");

    let (task, time) =
        fastest(|_| load::task(&generated.task, Uncommitted::Refuse, None).unwrap().task);
    tell("load", calls, time);
    let (plan, time) = fastest(|_| Plan::new(&task.workflow));
    assert_eq!(plan.calls().len(), calls);
    tell("plan", calls, time);

    let durability = Durability::Unsynced;
    let trees = &Trees::new(&generated.task);
    let bench = Bench { task: &task, plan: &plan, inputs: &generated.inputs, trees, durability };
    let storage = |run: usize, kind: &str| dir.path().join(format!("storage-{kind}-{run}"));
    let (_, time) = fastest(|run| bench.evaluate(&storage(run, "fake"), &Fake(concatenate)));
    tell("cold, no processes", calls, time);
    let (_, time) = fastest(|run| bench.evaluate(&storage(run, "local"), &Local::default()));
    tell("cold", calls, time);
    let isolated = |run| {
        let sandbox = Sandbox::of(env!("CARGO_BIN_EXE_ce").into());
        bench.evaluate(&storage(run, "isolated"), &Local::default().isolated(sandbox))
    };
    let (_, time) = fastest(isolated);
    tell("cold, isolated", calls, time);
    let flushed = Bench { durability: Durability::Synced, ..bench };
    let (_, time) = fastest(|run| flushed.evaluate(&storage(run, "flushed"), &Local::default()));
    tell("cold, flushed", calls, time);
    let (executed, time) = fastest(|_| bench.evaluate(&storage(0, "local"), &Local::default()));
    assert_eq!(executed, 0, "a second run executes nothing");
    tell("warm", calls, time);

    let file = dir.path().join("large");
    std::fs::write(&file, vec![0; MEBIBYTES << 20]).unwrap();
    let open = |run: usize| {
        Storage::open(&storage(run, "large"), Unrecorded::Adopt, Durability::Unsynced).unwrap()
    };
    let (_, time) = fastest(|run| open(run).find_input(&file).unwrap());
    tell("hash, MiB in place of calls", MEBIBYTES, time);
    let (_, time) = fastest(|run| open(run).store_input(&file).unwrap());
    tell("hash and copy, likewise", MEBIBYTES, time);
}

/// What the generated computation does, without a process.
fn concatenate(invocation: &Invocation) -> i32 {
    let read = |path: &PathBuf| std::fs::read(path).unwrap();
    std::fs::write(
        &invocation.outputs[0],
        invocation.inputs.iter().flat_map(read).collect::<Vec<u8>>(),
    )
    .map_or(1, |()| 0)
}

#[derive(Clone, Copy)]
struct Bench<'a> {
    task: &'a Task,
    plan: &'a Plan,
    inputs: &'a [PathBuf],
    trees: &'a Trees,
    durability: Durability,
}

impl Bench<'_> {
    /// Evaluates everything; returns how many calls were executed.
    fn evaluate(&self, storage: &Path, executor: &dyn Executor) -> usize {
        let storage = &Storage::open(storage, Unrecorded::Adopt, self.durability).unwrap();
        let Self { task, plan, inputs, trees, .. } = *self;
        let files = &Files::new(task, plan, inputs, storage, true).unwrap();
        let evaluation = Evaluation::new(plan);
        let observe = &|_| {};
        let executor = Some(executor);
        let jobs = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let exports = &Exports::new(storage, trees);
        Evaluator { task, plan, files, storage, exports, executor, retries: 0, observe }
            .evaluate(&evaluation, jobs)
            .unwrap();
        assert!(evaluation.outputs(files, plan).is_some(), "all outputs are there");
        evaluation.outcomes().filter(|outcome| matches!(outcome, Outcome::Executed(_))).count()
    }
}

fn fastest<T>(mut work: impl FnMut(usize) -> T) -> (T, Duration) {
    let mut timed = |run| {
        let begin = Instant::now();
        let result = work(run);
        (result, begin.elapsed())
    };
    let runs: Vec<_> = (0..RUNS).map(&mut timed).collect();
    runs.into_iter().min_by_key(|(_, time)| *time).unwrap()
}

fn tell(stage: &str, calls: usize, time: Duration) {
    let rate = calls as f64 / time.as_secs_f64();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak: f64 =
        peak.and_then(|text| text.trim_end_matches("kB").trim().parse().ok()).unwrap_or(0.0);
    let milliseconds = time.as_secs_f64() * 1e3;
    println!("{stage:<28}{milliseconds:>7.1} ms{rate:>14.0}{:>8.1} MiB", peak / 1024.0);
}
