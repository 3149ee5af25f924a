//! The answers that a network file system may give, at any operation of the storage: an old answer once, or none for a while. A run
//! asks again or waits, and ends as if nothing had been.
//!
//! A longer form lets each error come at each operation: `CE_FAULTS=all cargo test --test suite network::faults`.

use std::fs;

use crate::faults::{lab, recovers};
use crate::lab::Lab;
use crate::program::Ran;

/// The number of NFS among file systems: answers may be old there.
const NFS: &str = "6969";

/// A run on a file system that it takes for a network one, with a fault.
fn run<'a>(lab: &'a Lab, fault: &str, patience: &str) -> Ran<'a> {
    let mut run = lab.evaluation(&["-j1"]);
    run.env("CE_FAULT", fault).env("CE_PATIENCE", patience).env("CE_FILE_SYSTEM", NFS);
    lab.finish(&mut run)
}

/// Lets faults come at every fifth operation from the given one on, each of them in turn, or all of them at each. Returns how many operations
/// there are.
fn each(from: u32, faults: &[fn(u32) -> String]) -> u32 {
    let lab = lab();
    let all = std::env::var("CE_FAULTS").is_ok_and(|which| which == "all");
    for (number, at) in (if all { 1 } else { from }..).step_by(if all { 1 } else { 5 }).enumerate()
    {
        let turn = number % faults.len();
        for fault in if all { faults } else { &faults[turn..=turn] } {
            drop(fs::remove_dir_all(lab.path("storage")));
            let fault = fault(at);
            let ran = run(&lab, &fault, "5");
            // A file that the user gives is no part of the storage.
            let is_input = ran.stderr.contains("the input x cannot be used");
            let code = ran.status.code();
            assert!(is_input || code == Some(0), "{fault}\n{}\n{}", ran.stdout, ran.stderr);
            if !ran.stderr.contains("fault at operation") {
                return at - 1;
            }
            recovers(&lab, &fault);
        }
    }
    0
}

#[test]
fn a_stale_answer_at_any_operation_is_asked_for_again() {
    let operations = each(
        1,
        &[|at| format!("{at}:ESTALE"), |at| format!("{at}:ENOENT"), |at| format!("{at}:ENOTEMPTY")],
    );
    assert!(operations > 50, "{operations} operations failed");
}

#[test]
fn a_storage_that_is_away_for_a_while_at_any_operation_is_waited_for() {
    let operations = each(
        3,
        &[
            |at| format!("{at}-{}:ENOTCONN", at + 2),
            |at| format!("{at}-{}:EHOSTDOWN", at + 2),
            |at| format!("{at}-{}:EIO", at + 2),
        ],
    );
    assert!(operations > 50, "{operations} operations failed");
}

/// A storage that does not come back is reported once, with what to try.
#[test]
fn a_storage_that_stays_away_is_reported_once() {
    let lab = lab();
    for at in (1..).step_by(7) {
        drop(fs::remove_dir_all(lab.path("storage")));
        let fault = format!("{at}+:ENOTCONN");
        let ran = run(&lab, &fault, "0.02");
        let told = ran.stderr.matches("has not answered for").count();
        if !ran.stderr.contains("fault at operation") {
            assert!(at > 50, "{at}");
            break;
        }
        // At the very end there is nothing left but to tidy up, or a job that need not be kept.
        let is_input = ran.stderr.contains("the input x cannot be used");
        let is_done = ran.status.code() == Some(0) || is_input;
        assert!(is_done || ran.status.code() == Some(5), "{fault}\n{}", ran.stderr);
        assert!(
            is_done || told == 1 && ran.stderr.contains("\n  try: "),
            "{fault}\n{}",
            ran.stderr
        );
        assert!(!ran.stderr.contains("more calls failed"), "{fault}\n{}", ran.stderr);
        recovers(&lab, &fault);
    }
}
