//! Workers and runs that are killed.

use std::process::Command;

use rustix::process::Signal;

use super::QUEUED;
use crate::fifo::{Fifo, Never};
use crate::lab::Lab;
use crate::program::{Ran, Running};

/// A task with one call, which waits if `LAB_MEET` is set.
fn lab() -> Lab {
    let meet = r#"if [ "${LAB_MEET-}" ]; then echo here >"$LAB_MEET"; cat "$LAB_WAIT"; fi"#;
    Lab::task("Inputs: 'x'\n(call INPUT('x'))[0]")
        .computation("call", "x", "y", &format!("{meet}; cat \"$1\" >\"$2\""))
        .with_storage()
        .commit()
}

impl Lab {
    /// A worker whose calls wait until they are let go.
    fn holding(&self, name: &str) -> (Command, Fifo, Never) {
        let [meet, wait] = ["meet", "wait"].map(|it| self.path(&format!("{it}-{name}")));
        let (fifo, never) = (Fifo::new(&meet), Never::new(wait.clone()));
        let mut worker = self.worker(&["--no-isolate"]);
        worker.env("LAB_MEET", meet).env("LAB_WAIT", wait);
        (worker, fifo, never)
    }
}

#[test]
fn the_call_of_a_worker_that_is_killed_is_executed_by_another_one() {
    let lab = lab();
    let (mut first, fifo, _never) = lab.holding("first");
    let first = Running::start(&mut first);
    let run = Running::start(&mut lab.evaluation(QUEUED));
    assert_eq!(fifo.line(), "here");
    first.signal(Signal::KILL);
    first.output();
    let second = lab.serve(&["--no-isolate"]);
    Ran::new(&lab, run.output()).exit(0);
    lab.dismiss(second);
    assert_eq!(lab.called(), ["call", "call"]);
    lab.ce_run(&[]).exit(0);
    assert!(lab.is_tidy());
}

#[test]
fn a_call_whose_workers_die_is_given_up() {
    let lab = lab();
    let run = Running::start(&mut lab.evaluation(QUEUED));
    // Once beside others, and three times alone.
    for name in ["first", "second", "third", "fourth"] {
        let (mut worker, fifo, _never) = lab.holding(name);
        let worker = Running::start(&mut worker);
        assert_eq!(fifo.line(), "here");
        worker.signal(Signal::KILL);
        worker.output();
    }
    let ran = Ran::new(&lab, run.output()).exit(3);
    let why = "it was lost: 3 workers ended while they executed it, the last one was process";
    assert!(ran.stderr.contains(why), "{}", ran.stderr);
    assert_eq!(lab.called(), ["call"; 4]);
}

#[test]
fn a_worker_that_is_asked_to_end_gives_its_calls_back() {
    let lab = lab();
    let (mut first, fifo, _never) = lab.holding("first");
    let first = Running::start(&mut first);
    let run = Running::start(&mut lab.evaluation(QUEUED));
    assert_eq!(fifo.line(), "here");
    first.signal(Signal::TERM);
    Ran::new(&lab, first.output()).exit(143);
    let second = lab.serve(&["--no-isolate"]);
    Ran::new(&lab, run.output()).exit(0);
    lab.dismiss(second);
    assert!(lab.is_tidy());
}

#[test]
fn a_worker_publishes_its_call_after_its_run_was_killed() {
    let lab = lab();
    let (mut worker, fifo, never) = lab.holding("worker");
    let worker = Running::start(&mut worker);
    let run = Running::start(&mut lab.evaluation(QUEUED));
    assert_eq!(fifo.line(), "here");
    run.signal(Signal::KILL);
    run.output();
    never.let_go();
    // Another run waits for the call that the worker executes, or finds its outputs.
    lab.ce_run(&[]).exit(0);
    lab.dismiss(worker);
    assert_eq!(lab.called(), ["call"]);
    assert!(lab.is_tidy());
}

#[test]
fn a_run_that_is_interrupted_lets_a_worker_finish_its_call() {
    let lab = lab();
    let (mut worker, fifo, never) = lab.holding("worker");
    let worker = Running::start(&mut worker);
    let run = Running::start(&mut lab.evaluation(QUEUED));
    assert_eq!(fifo.line(), "here");
    run.signal(Signal::INT);
    never.let_go();
    let ran = Ran::new(&lab, run.output());
    let ran = if ran.status.code() == Some(0) { ran.exit(0) } else { ran.exit(130) };
    drop(ran);
    lab.ce_run(&[]).exit(0);
    lab.dismiss(worker);
    assert_eq!(lab.called(), ["call"]);
}
