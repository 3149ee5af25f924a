//! Runs that wait while a collection takes results away say so.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use compeval::storage::{Durability, Storage, Unrecorded};

use crate::lab::Lab;
use crate::program::Running;

/// Runs while a collection has closed the gate, until something has come to pass. Returns its messages.
fn behind_a_closed_gate(options: &[&str], is_seen: impl Fn(&Lab, &Path) -> bool) -> String {
    let lab = Lab::task("Inputs: 'x', 'y'\n(mul INPUT('x') INPUT('y'))[0]").commit();
    lab.ce_run(&[]).exit(0);
    let lab = lab.data("x", "7\n");
    let path = lab.path("storage");
    let other = Storage::open(&path, Unrecorded::Adopt, Durability::Unsynced).unwrap();
    let gate = other.gc_roots().close_gate().unwrap();
    let told = lab.path("told");
    let mut command = lab.evaluation(options);
    command.env("CE_PATIENCE", "0").stderr(fs::File::create(&told).unwrap());
    let running = Running::start(&mut command);
    while !is_seen(&lab, &told) && !running.has_ended() {
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

/// The place of the gate in the storage.
#[cfg(debug_assertions)]
const GATE: &str = "storage/tmp/collecting";

/// A storage with results, and a gate that a dead collection has left.
#[cfg(debug_assertions)]
fn behind_a_dead_collection(lab: &Lab) {
    lab.copy("stock", "storage");
    fs::write(lab.path(GATE), "host-0-1-1-1\n").unwrap();
}

#[cfg(debug_assertions)]
fn stocked() -> Lab {
    let lab = Lab::task("Inputs: 'x', 'y'\n(mul INPUT('x') INPUT('y'))[0]").commit();
    lab.ce_run(&[]).exit(0);
    lab.copy("storage", "stock");
    lab
}

/// Starts a run with a fault, which tells at once that it waits.
#[cfg(debug_assertions)]
fn with_fault(lab: &Lab, fault: &str, told: &Path) -> Running {
    let mut command = lab.evaluation(&["--no-sync"]);
    command.env("CE_PATIENCE", "0").env("CE_FAULT", fault);
    Running::start(command.stderr(fs::File::create(told).unwrap()))
}

/// Waits until a run waits for a collection, or has ended. Returns whether it waits.
#[cfg(debug_assertions)]
fn comes_to_wait(running: &Running, told: &Path) -> bool {
    loop {
        let has_ended = running.has_ended();
        let waits = fs::read_to_string(told).unwrap().contains("takes results away");
        if waits || has_ended {
            return waits;
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// A holder that cannot be read is not dead: a gate stays closed for those who cannot look at it.
#[test]
#[cfg(debug_assertions)]
fn an_error_does_not_open_the_gate() {
    let lab = stocked();
    let (told, path) = (lab.path("told"), lab.path("storage"));
    for at in 1.. {
        lab.copy("stock", "storage");
        let other = Storage::open(&path, Unrecorded::Adopt, Durability::Unsynced).unwrap();
        let gate = other.gc_roots().close_gate().unwrap();
        let running = with_fault(&lab, &format!("{at}:EIO"), &told);
        let waits = comes_to_wait(&running, &told);
        assert!(gate.is_held().unwrap(), "a fault at {at}");
        gate.release().unwrap();
        let status = running.output().status;
        let told = fs::read_to_string(&told).unwrap();
        assert!(waits || status.code() == Some(5), "a fault at {at}: {status}\n{told}");
        if !told.contains("fault at operation") {
            assert!(at > 15, "{at} operations");
            return;
        }
    }
}

/// Of several that find the gate of a dead collection, one has it afterwards, and nobody takes it from that.
#[test]
#[cfg(debug_assertions)]
fn a_gate_that_was_taken_over_is_not_taken_over_again() {
    let lab = stocked();
    let (told, path) = (lab.path("told"), lab.path("storage"));
    let mut tried = 0;
    for at in 1.. {
        behind_a_dead_collection(&lab);
        let running = with_fault(&lab, &format!("{at}:STOP"), &told);
        if !running.comes_to_a_stop() {
            assert_eq!(running.output().status.code(), Some(0));
            break;
        }
        let holder = fs::read_to_string(lab.path(GATE)).unwrap_or_default();
        if holder.contains(&format!("-{}-", running.pid.as_raw_nonzero())) {
            // It is about to give it back.
            running.signal(rustix::process::Signal::CONT);
            assert_eq!(running.output().status.code(), Some(0));
            continue;
        }
        let other = Storage::open(&path, Unrecorded::Adopt, Durability::Unsynced).unwrap();
        let gate = other.gc_roots().close_gate().unwrap();
        running.signal(rustix::process::Signal::CONT);
        comes_to_wait(&running, &told);
        assert!(gate.is_held().unwrap(), "stopped at {at}");
        gate.release().unwrap();
        assert_eq!(running.output().status.code(), Some(0), "stopped at {at}");
        tried += 1;
    }
    assert!(tried > 20, "{tried} operations");
}
