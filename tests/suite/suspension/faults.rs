//! Suspended calls in a storage that fails, or whose run dies, at any operation: nothing is submitted twice, and nothing is lost.
//!
//! A longer form takes each operation: `CE_KILLS=1 cargo test --test suite suspension::faults`.

use super::spooling;
use crate::faults::stride;
use crate::lab::Lab;

/// A call in one of its states.
fn call(begun: bool, done: bool) -> Lab {
    let lab = spooling(&["status"]).commit();
    if begun {
        lab.ce_run(&[]).exit(4);
    }
    if done {
        lab.finish_job();
    }
    lab
}

/// Lets the k-th operation of a run fail, for many k from the given one on, with a call in one of its states. Afterwards all is done, and was
/// submitted once.
fn fail_everywhere(from: u32, fault: &str, (begun, done): (bool, bool)) -> u32 {
    let step = stride(15);
    for at in (from.min(step as u32)..).step_by(step) {
        let lab = call(begun, done);
        let fault = format!("{at}{fault}");
        let ran = lab.finish(lab.evaluation(&["-j1"]).env("CE_FAULT", &fault));
        let was_hit = ran.stderr.contains("fault at operation");
        let told = format!("{fault}, begun: {begun}, done: {done}\n{}\n{}", ran.stdout, ran.stderr);
        assert!(lab.submitted() <= 1, "{told}");
        if !lab.path("spool/done").exists() {
            let ran = lab.ce_run(&[]);
            assert_eq!(ran.status.code(), Some(4), "{told}\nthen\n{}{}", ran.stdout, ran.stderr);
            lab.finish_job();
        }
        let ran = lab.ce_run(&[]);
        assert_eq!(ran.status.code(), Some(0), "{told}\nthen\n{}{}", ran.stdout, ran.stderr);
        assert_eq!((lab.output(), lab.submitted()), ("21\n".to_owned(), 1), "{told}");
        lab.run("ce", &["gc", "--no-keep", "--older", "0s", "--delete", "../storage"]).exit(0);
        assert_eq!(lab.suspended(), [""; 0], "{told}");
        assert!(lab.is_tidy(), "{told}");
        if !was_hit {
            return at - 1;
        }
    }
    0
}

#[test]
fn a_run_that_dies_at_any_operation_submits_nothing_twice() {
    for (from, state) in [(1, (false, false)), (4, (true, false))] {
        let operations = fail_everywhere(from, ":KILL", state);
        assert!(operations > 20, "{operations} operations of {state:?}");
    }
}

#[test]
fn a_run_that_dies_at_any_operation_keeps_suspended_calls_that_are_over() {
    let operations = fail_everywhere(7, ":KILL", (true, true));
    assert!(operations > 50, "{operations} operations");
}

#[test]
fn a_storage_that_fails_at_any_operation_submits_nothing_twice() {
    for (from, state) in [(10, (false, false)), (13, (true, true))] {
        fail_everywhere(from, ":ENOSPC", state);
    }
}
