//! Runs and workers that fail or die at any operation on the storage.
//!
//! The number of operations depends on how often they look. A longer form lets each of the first ones fail: `CE_KILLS=1 cargo test
//! --test suite workers::faults`.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rustix::process::Signal;

use super::QUEUED;
use crate::faults::{lab, recovers, stride};
use crate::lab::Lab;
use crate::program::{Ran, Running};

/// The first operations; most of them belong to a call.
const OPERATIONS: usize = 140;

/// The events at an operation.
const FAULTS: [&str; 4] = ["KILL", "ENOSPC", "EIO", "EACCES"];

/// Does something for many operations, from the given one on, several at once.
fn at_operations(from: usize, act: impl Fn(&Lab, &str) + Sync) {
    let faults: Vec<String> = (from..OPERATIONS)
        .step_by(stride(11))
        .zip(FAULTS.iter().cycle())
        .map(|(at, fault)| format!("{at}:{fault}"))
        .collect();
    thread::scope(|scope| {
        for part in faults.chunks(faults.len().div_ceil(4)) {
            let act = &act;
            scope.spawn(move || part.iter().for_each(|fault| act(&lab().with_storage(), fault)));
        }
    });
}

#[test]
fn a_worker_that_dies_or_fails_at_any_operation_loses_nothing() {
    at_operations(1, |lab, fault| {
        let run = Running::start(&mut lab.evaluation(QUEUED));
        let weak = Running::start(lab.worker(&["--no-isolate"]).env("CE_FAULT", fault));
        // The first of both that has an answer decides; the other one takes the rest.
        let strong = lab.serve(&["--no-isolate"]);
        let ran = Ran::new(lab, run.output());
        let code = ran.status.code();
        assert!(matches!(code, Some(0 | 1 | 5)), "{fault}: {code:?}\n{}", ran.stderr);
        for worker in [weak, strong] {
            let _over = rustix::process::kill_process(worker.pid, Signal::TERM);
            worker.output();
        }
        recovers(lab, fault);
    });
}

#[test]
fn a_run_that_dies_or_fails_at_any_operation_loses_nothing() {
    at_operations(1, |lab, fault| {
        let worker = lab.serve(&["--no-isolate"]);
        worker.wait_until_it_catches(Signal::TERM);
        let run = Running::start(lab.evaluation(QUEUED).env("CE_FAULT", fault));
        let ran = Ran::new(lab, run.output());
        let code = ran.status.code();
        // An input that the user may not read is the user's to mend.
        let is_input =
            fault.ends_with("EACCES") && ran.stderr.contains("the input x cannot be used");
        let expected = if is_input { code == Some(2) } else { matches!(code, None | Some(0 | 5)) };
        assert!(expected, "{fault}: {code:?}\n{}", ran.stderr);
        lab.dismiss(worker);
        recovers(lab, fault);
    });
}

#[test]
fn a_worker_on_a_storage_that_fails_ends_with_5_and_says_so() {
    let failed = AtomicUsize::new(0);
    let fails = |lab: &Lab, fault: &str| {
        let Some((at, "ENOSPC" | "EIO")) = fault.split_once(':') else { return };
        let run = Running::start(&mut lab.evaluation(QUEUED));
        while !lab.storage().iter().any(|name| name.contains("/queue/cpus=1/")) {
            thread::yield_now();
        }
        // It ends by itself, since nothing else is queued.
        let mut weak = lab.command("ce");
        weak.args(["worker", "--no-isolate", "-q", "--idle", "1ms", "../storage"]);
        let weak = Running::start(weak.env("CE_FAULT", fault));
        let weak = Ran::new(lab, weak.output());
        // A ticket that it has not answered is another worker's.
        let strong = lab.serve(&["--no-isolate"]);
        let ran = Ran::new(lab, run.output());
        strong.wait_until_it_catches(Signal::TERM);
        lab.dismiss(strong);
        if ran.status.code() == Some(5) {
            let weak = weak.exit(5).says(": failed: ").says("\n  try: ");
            weak.says("failed: the storage could not be read or written\n");
            failed.fetch_add(1, Ordering::Relaxed);
        }
        recovers(lab, at);
    };
    // The operations that belong to a call depend on how often the worker looked before. So the others have their turn until one
    // failed a call.
    for from in 1..=stride(11) {
        at_operations(from, fails);
        if failed.load(Ordering::Relaxed) > 0 {
            return;
        }
    }
    panic!("no call has failed");
}
