//! Runs that wait while a collection takes results away say so.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use compeval::storage::{Durability, Storage, Unrecorded};

use crate::lab::Lab;
use crate::program::Running;

/// Runs while a collection has closed the gate, until something has come to pass. Returns what it tells.
fn behind_a_closed_gate(options: &[&str], is_seen: impl Fn(&Lab, &Path) -> bool) -> String {
    let lab = Lab::task("Inputs: 'x', 'y'\n(mul INPUT('x') INPUT('y'))[0]").commit();
    lab.ce_run(&[]).exit(0);
    let lab = lab.data("x", "7\n");
    let path = lab.path("storage");
    let other = Storage::open(&path, Unrecorded::Adopt, Durability::Unsynced).unwrap();
    let gate = other.close_gate().unwrap();
    let told = lab.path("told");
    let mut command = lab.evaluation(options);
    command.env("CE_PATIENCE", "0").stderr(fs::File::create(&told).unwrap());
    let running = Running::start(&mut command);
    while !is_seen(&lab, &told) {
        thread::sleep(Duration::from_millis(5));
    }
    gate.release().unwrap();
    let status = running.output().status;
    let told = fs::read_to_string(told).unwrap();
    assert_eq!(status.code(), Some(0), "{told}");
    told
}

#[test]
fn a_run_that_waits_for_a_collection_says_so_once() {
    let line = format!("ce: waiting for process {} on ", std::process::id());
    let is_told =
        |_: &Lab, told: &Path| fs::read_to_string(told).unwrap().contains("takes results away");
    let told = behind_a_closed_gate(&[], is_told);
    assert!(told.starts_with(&line) && told.matches("takes results away").count() == 1, "{told}");
    // It has announced something, and then it waits.
    let has_announced = |lab: &Lab, _: &Path| {
        let runs = fs::read_dir(lab.path("storage/tmp")).unwrap();
        let mut runs = runs.map(|run| run.unwrap().path().join("uses"));
        runs.any(|uses| uses.exists())
    };
    assert_eq!(behind_a_closed_gate(&["-q"], has_announced), "");
}
