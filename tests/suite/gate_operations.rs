//! The gate of collections: records made before it is closed, and work done while it is closed.

use rustix::process::Signal;

use crate::faults::stride;
use crate::lab::Lab;
use crate::program::{Ran, Running};

const TASK: &str = "Inputs: 'x', 'y'\n(mul INPUT('x') INPUT('y'))[0]";

const ALL: [&str; 2] = ["--no-keep", "--older=0s"];

/// Starts a collection of everything that stops at an operation. Returns it, unless it has ended before.
fn collection_at(lab: &Lab, at: usize) -> Option<Running> {
    let mut command = lab.command("ce");
    let command = command.args(["gc", "--delete"]).args(ALL).arg("../storage");
    let running = Running::start(command.env("CE_FAULT", format!("{at}:STOP")));
    running.comes_to_a_stop().then_some(running)
}

/// A run begins and ends while a collection stands still, after it has read the storage: the results that the run has
/// found, and all its records, stay.
#[test]
fn records_made_before_the_gate_closes_keep_the_results_they_name() {
    let lab = Lab::task(TASK).data("z", "917\n").commit();
    lab.ce_run(&[]).exit(0);
    let is_retired = |lab: &Lab| !lab.storage().iter().any(|name| name.contains("tinputs/record/"));
    lab.copy("storage", "stock");
    let mut tried = 0;
    // The others are taken in the next test.
    for at in (1..).step_by(stride(2)) {
        lab.copy("stock", "storage");
        let Some(collection) = collection_at(&lab, at) else { break };
        let begins = is_retired(&lab) && !lab.path("storage/tmp/collecting").exists();
        let mut run = lab.command("ce-run");
        let run = run.args(["--no-sync", "../storage", "../data/x", "../data/z"]);
        if begins {
            lab.finish(run).exit(0);
        }
        collection.signal(Signal::CONT);
        let ran = Ran::new(&lab, collection.output()).exit(0);
        if begins {
            lab.run("ce", &["verify", "../storage"]).exit(0).says("0 wrong, 0 odd");
            let is_complete = lab.finish(run.arg("-n")).status.success();
            assert!(is_complete, "at {at}: {}\n{:?}", ran.stderr, lab.storage());
            tried += 1;
        }
    }
    assert!(tried > 5, "{tried} operations");
}

/// Whether a collection has a lease of a call: a run that needs that waits.
fn has_leases(lab: &Lab) -> bool {
    lab.storage().iter().any(|name| name.contains("/running/"))
}

/// The same with the job that is collected: the new record stays, with its outputs under its own name.
#[test]
fn a_job_that_is_made_again_while_it_is_collected_stays() {
    let lab = Lab::task(TASK).commit();
    lab.ce_run(&[]).exit(0);
    let is_retired = |lab: &Lab| {
        !lab.storage().iter().any(|name| name.starts_with("t_") && name.contains("/record/"))
    };
    lab.copy("storage", "stock");
    let mut tried = 0;
    let step = stride(2);
    for at in (step..).step_by(step) {
        lab.copy("stock", "storage");
        let Some(collection) = collection_at(&lab, at) else { break };
        let is_closed = lab.path("storage/tmp/collecting").exists();
        let begins = is_retired(&lab) && !is_closed && !has_leases(&lab);
        if begins {
            lab.ce_run(&["--no-sync"]).exit(0);
        }
        collection.signal(Signal::CONT);
        Ran::new(&lab, collection.output()).exit(0);
        if begins {
            lab.run("ce", &["verify", "../storage"]).exit(0).says("0 wrong, 0 odd");
            tried += 1;
        }
    }
    assert!(tried > 5, "{tried} operations");
}

/// The number of operations of a collection of everything while the gate is closed, by killing it at each.
fn operations_inside(lab: &Lab) -> usize {
    lab.ce_run(&[]).exit(0);
    lab.copy("storage", "stock");
    let mut inside = 0;
    for at in 1.. {
        lab.copy("stock", "storage");
        let mut command = lab.command("ce");
        command.args(["gc", "--delete"]).args(ALL).arg("../storage");
        let ran = lab.finish(command.env("CE_FAULT", format!("{at}:KILL")));
        inside += usize::from(lab.path("storage/tmp/collecting").exists());
        if !ran.stderr.contains("fault at operation") {
            break;
        }
    }
    inside
}

#[test]
fn work_behind_the_closed_gate_does_not_grow_with_the_calls() {
    let inside = |calls: usize| {
        let nested = (0..calls).fold("INPUT('x')".to_owned(), |it, _| format!("(twice {it})[0]"));
        let lab = Lab::task(&format!("Inputs: 'x'\n{nested}"));
        let lab = lab.computation("twice", "a", "b", r#"cat "$1" "$1" >"$2""#).commit();
        operations_inside(&lab)
    };
    assert_eq!(inside(1), inside(3));
}
