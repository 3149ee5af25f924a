//! Workers: runs that execute the calls of other runs.

mod allocation;
mod deaths;
mod faults;
mod forged;
mod limits;
mod status;

use std::fs;
use std::process::Command;

use rustix::process::Signal;

use crate::lab::Lab;
use crate::program::{Ran, Running};
use crate::sweeps::sweep;

/// Options of a run that lets workers execute.
const QUEUED: &[&str] = &["--on", "workers"];

/// A sum of products, in which two calls are the same.
const SUM: &str = "Inputs: 'x', 'y'\n(add (mul INPUT('x') INPUT('y'))[0] (add (mul INPUT('x') INPUT('y'))[0] INPUT('x'))[0])[0]";

impl Lab {
    /// A worker of the storage, which goes on until it is asked to end.
    fn worker(&self, options: &[&str]) -> Command {
        let mut command = self.command("ce");
        command.args(["worker", "--idle", "10h"]).args(options).arg("../storage");
        command
    }

    /// Starts a worker.
    fn serve(&self, options: &[&str]) -> Running {
        Running::start(&mut self.worker(options))
    }

    /// Asks a worker to end, which has nothing to do.
    #[track_caller]
    fn dismiss(&self, worker: Running) -> Ran<'_> {
        worker.signal(Signal::TERM);
        Ran::new(self, worker.output()).exit(143)
    }

    /// Lets a worker that does not isolate execute the calls of a run with these options.
    #[track_caller]
    pub(crate) fn ce_run_on_worker(&self, options: &[&str]) -> Ran<'_> {
        let worker = self.serve(&["--no-isolate"]);
        worker.wait_until_it_catches(Signal::TERM);
        let ran = self.ce_run(&[QUEUED, options].concat());
        self.dismiss(worker);
        ran
    }
}

#[test]
fn a_worker_makes_the_same_results_as_a_run() {
    for isolated in [false, true] {
        let [here, there] = [(); 2].map(|()| {
            let lab = Lab::task(SUM).with_storage();
            let lab = if isolated { lab.isolated() } else { lab };
            lab.commit()
        });
        let expected = here.ce_run(&[]).exit(0);
        let worker = there.serve(if isolated { &[] } else { &["--no-isolate"] });
        worker.wait_until_it_catches(Signal::TERM);
        let ran = there.ce_run(QUEUED).exit(0);
        assert_eq!(ran.stdout, expected.stdout, "isolated: {isolated}");
        let ended = there.dismiss(worker);
        assert!(
            ended.stderr.contains("the worker ends (interrupted): 3 calls computed"),
            "{}",
            ended.stderr
        );
        assert!(there.results() == here.results() && there.is_tidy(), "isolated: {isolated}");
        assert_eq!(there.called(), here.called());
        // Nothing is left to do, with or without a worker.
        there.ce_run(QUEUED).exit(0);
        assert!(there.results() == here.results());
        there.run("ce", &["verify", "../storage"]).exit(0);
    }
}

#[test]
fn several_workers_share_the_calls_of_several_runs() {
    let lab = Lab::task(SUM).with_storage().data("z", "5\n").commit();
    let workers = [lab.serve(&["--no-isolate", "-j1"]), lab.serve(&["--no-isolate", "-j2"])];
    let mut other = lab.command("ce-run");
    other.args(["--on", "workers", "../storage", "../data/z", "../data/z"]);
    let other = Running::start(&mut other);
    lab.ce_run(QUEUED).exit(0);
    Ran::new(&lab, other.output()).exit(0);
    for worker in workers {
        worker.wait_until_it_catches(Signal::TERM);
        lab.dismiss(worker);
    }
    let mut called = lab.called();
    called.sort();
    assert_eq!(called, ["add", "add", "add", "add", "mul", "mul"], "each once");
    assert!(lab.is_tidy());
}

#[test]
fn a_call_that_fails_at_a_worker_is_reported_like_any_other() {
    let lab = || {
        Lab::task("Inputs: 'x'\n(fail INPUT('x'))[0]")
            .computation("fail", "x", "y", "echo no luck; exit 3")
            .with_storage()
            .commit()
    };
    let [here, there] = [lab(), lab()];
    let expected = here.ce_run(&[]).exit(1);
    let ran = there.ce_run_on_worker(&[]).exit(1);
    assert_eq!((ran.stdout, ran.stderr), (expected.stdout, expected.stderr));
    // It is remembered, with its log.
    let failed = |lab: &Lab| lab.storage().into_iter().filter(|it| it.contains("failed")).count();
    assert_eq!((failed(&there), failed(&here)), (2, 2));
    there.called();
    let ran = there.ce_run_on_worker(&["--retry", "2"]).exit(1);
    assert_eq!(there.called(), ["fail"; 3], "{}", ran.stderr);
}

#[test]
fn a_call_that_a_worker_refuses_is_executed_by_another_one() {
    let lab = Lab::task(SUM).isolated().with_storage().commit();
    let weak = lab.serve(&["--no-isolate"]);
    weak.wait_until_it_catches(Signal::TERM);
    let ran = lab.ce_run(QUEUED).exit(3);
    assert!(
        ran.stderr.contains("it was refused: calls cannot be isolated there"),
        "{}",
        ran.stderr
    );
    let points = [QUEUED, &["../storage", "y=../data/y", "--each", "x=1,2"]].concat();
    let ran =
        lab.run("ce-run", &points).exit(3).says("ce-run: not finished at points:\n  x=1: mul");
    assert!(!ran.stderr.contains("failures at points"), "{}", ran.stderr);
    assert!(lab.called().is_empty());
    let able = lab.serve(&[]);
    lab.ce_run(QUEUED).exit(0);
    able.wait_until_it_catches(Signal::TERM);
    lab.dismiss(able);
    let ended = lab.dismiss(weak);
    assert!(ended.stderr.contains("refused"), "{}", ended.stderr);
    assert!(lab.is_tidy());
}

#[test]
fn a_worker_takes_only_calls_that_fit_its_resources() {
    let lab = Lab::task(SUM).with_storage().file("resources", "mul cpus 3\n").commit();
    let small = lab.serve(&["--no-isolate", "-j1"]);
    small.wait_until_it_catches(Signal::TERM);
    let run = Running::start(&mut lab.evaluation(QUEUED));
    let large = lab.serve(&["--no-isolate", "-j3"]);
    Ran::new(&lab, run.output()).exit(0);
    large.wait_until_it_catches(Signal::TERM);
    let ended = lab.dismiss(large);
    assert!(!ended.stderr.contains(": 0 calls"), "{}", ended.stderr);
    lab.dismiss(small);
}

#[test]
fn uncommitted_changes_and_forced_calls_go_to_workers_too() {
    let lab = Lab::task(SUM).with_storage().commit();
    lab.ce_run_on_worker(&[]).exit(0);
    let before = lab.called();
    let product =
        lab.storage().into_iter().find(|name| name.contains("c_mul") && name.contains("/00/"));
    let product = format!("../storage/{}", product.unwrap());
    lab.ce_run_on_worker(&["--force", &product]).exit(0);
    assert_eq!(lab.called(), ["mul"]);
    assert!(lab.storage().iter().any(|name| name.contains("/aside/")), "the old one is kept");
    let text = fs::read_to_string(lab.path("task/computations/mul/exec")).unwrap();
    let lab = lab.file("computations/mul/exec", text + "# changed\n");
    lab.ce_run_on_worker(&["--dirty"]).exit(0);
    assert_eq!(lab.called(), ["mul"], "the same product: {before:?}");
    assert!(lab.storage().iter().any(|name| name.contains("c_mul/dirty-")));
}

#[test]
fn another_commit_with_the_same_tree_is_taken_over() {
    let lab = Lab::task(SUM).isolated().with_storage().commit();
    lab.ce_run(&[]).exit(0);
    lab.called();
    let lab = lab.file("README", "text").commit_again();
    lab.ce_run(QUEUED).exit(0);
    assert!(lab.called().is_empty(), "no worker was needed");
}

#[test]
fn failures_of_points_that_workers_execute_are_rows() {
    let lab = sweep("", &[("factors/00-n", "1\n2\n3"), ("allow-failed", "")])
        .computation("fail", "n", "out", r#"[ "$(cat "$1")" != 2 ] || exit 9; cp "$1" "$2""#)
        .call("inputs/00-body/", "fail", &["n"])
        .with_storage()
        .commit();
    lab.ce_run_on_worker(&[]).exit(0).says("exit status 9").says("points of a sweep have failed");
    assert!(
        lab.table().contains("{\"n\":2,\"out\":null,\"status\":\"failed\"}"),
        "{}",
        lab.table()
    );
    lab.called();
    lab.ce_run_on_worker(&[]).exit(0).called(vec![]);
}

/// The run looks at what workers have measured, and lets them measure more.
#[test]
fn replicates_end_by_results_of_workers() {
    let time = r#"echo $((400 + 37 * $(cat "$2") % 41 * $(cat "$1"))) >"$3""#;
    let lab = sweep("", &[("factors/00-n", "1\n2"), ("replicates", "10..100 until out ±5%")])
        .computation("time", "n replicate", "out", time)
        .call("inputs/00-body/", "time", &["n", "replicate"])
        .with_storage()
        .commit();
    lab.ce_run_on_worker(&[]).exit(0).says("25 calls: 25 computed");
    assert_eq!(lab.table().lines().count(), 25);
}

#[test]
fn a_run_without_workers_can_be_interrupted() {
    let lab = Lab::task(SUM).with_storage().commit();
    let run = Running::start(&mut lab.evaluation(QUEUED));
    run.wait_until_it_catches(Signal::INT);
    while !lab.storage().iter().any(|name| name.contains("/queue/cpus=1/")) {
        std::thread::yield_now();
    }
    run.signal(Signal::INT);
    let ran = Ran::new(&lab, run.output()).exit(130);
    assert!(lab.is_tidy() && lab.called().is_empty(), "{}", ran.stderr);
    lab.run("ce", &["worker", "../nothing"]).exit(5).says("cannot open the storage ../nothing");
}

#[test]
fn a_worker_ends_when_nobody_needs_it() {
    let lab = Lab::task(SUM).with_storage().commit();
    lab.run("ce", &["worker", "--idle", "1ms", "../storage"]).exit(0).says("no call for");
    let ran = lab.run("ce", &["worker", "--idle", "10h", "--deadline", "1ms", "../storage"]);
    ran.exit(0).says("its time is over");
    assert!(lab.is_tidy());
}
