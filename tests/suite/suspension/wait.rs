//! Runs that wait for suspended calls.

use std::fs;
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use super::spooling;
use crate::program::{Ran, Running};

/// Waits until a condition holds.
fn until(holds: impl Fn() -> bool) {
    while !holds() {
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_run_waits_for_a_suspended_call_until_it_is_over() {
    for programs in [&["status"][..], &[]] {
        let lab = spooling(programs).commit();
        let run = Running::start(&mut lab.evaluation(&["--wait"]));
        until(|| lab.submitted() == 1 && !lab.suspended().is_empty());
        lab.finish_job();
        let ran = Ran::new(&lab, run.output()).exit(0).says("2 calls: 2 computed");
        assert_eq!(ran.stderr.matches("waiting until it goes on").count(), 1, "{}", ran.stderr);
        assert_eq!((lab.output(), lab.submitted()), ("21\n".to_owned(), 1));
        lab.is_over();
    }
}

#[test]
fn a_run_that_waits_can_be_interrupted() {
    let lab = spooling(&["status"]).commit();
    let told = lab.path("told");
    let mut command = lab.evaluation(&["--wait", "--json"]);
    let run = Running::start(command.stdout(fs::File::create(&told).unwrap()));
    // The state is written before the event.
    until(|| fs::read_to_string(&told).unwrap().contains(r#"{"event":"suspended""#));
    run.signal(Signal::INT);
    Ran::new(&lab, run.output()).exit(130);
    assert_eq!(lab.one_suspended().1["state"], "suspended");
    lab.finish_job();
    lab.ce_run(&[]).exit(0);
    assert_eq!(lab.submitted(), 1);
}
