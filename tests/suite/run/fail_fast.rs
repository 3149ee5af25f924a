//! `--fail-fast`: no call is started after one has failed, and what runs ends as ever.

use std::fs::{self, File};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::fifo::Never;
use crate::json::check_event;
use crate::lab::Lab;
use crate::program::{PATIENCE, Ran, Running};
use crate::sweeps::sweep;

/// `mul` runs when `bad` fails, and ends when the run has told that this event is over. What reads it is not started.
fn lab(workflow: &str, event: &str) -> Lab {
    let mul =
        format!(r#"until grep -q '{event}' "$LAB_EVENTS"; do sleep 0.01; done; echo 7 >"$3""#);
    let bad = r#"until grep -q mul "$LAB_LOG"; do sleep 0.01; done; exit 3"#;
    Lab::task(&format!("Inputs: 'x', 'y'\n{workflow}"))
        .computation("mul", "a b", "product", &mul)
        .computation("bad", "a b", "none", bad)
        .with_storage()
}

/// The events of a run, which `mul` reads.
#[track_caller]
fn events<'a>(lab: &'a Lab, options: &[&str]) -> (Ran<'a>, String) {
    let (path, mut command) = (lab.path("events"), lab.evaluation(&["--json", "--fail-fast"]));
    command.args(options).env("LAB_EVENTS", &path);
    let running = Running::start(command.stdout(File::create(&path).unwrap()));
    let ran = Ran::new(lab, running.output());
    let events = fs::read_to_string(path).unwrap();
    events.lines().for_each(check_event);
    (ran, events)
}

#[test]
fn nothing_is_started_after_a_failure() {
    let lab = Lab::task(
        "Inputs: 'x', 'y'\n(add (bad INPUT('x') INPUT('y'))[0] (mul INPUT('x') INPUT('y'))[0])[0]",
    )
    .computation("bad", "a b", "none", "exit 3")
    .commit();
    let ran = lab.ce_run(&["-j1", "--fail-fast"]).exit(1).called(vec!["bad"]);
    let ran = ran.says("3 calls: 1 failed, 1 blocked, 1 not started");
    ran.shows("`* not started: another call had failed");
    // Existing results are found all the same, and the last one of both options counts.
    lab.ce_run(&["-j1", "--fail-fast", "--keep-going"]).exit(1).called(vec!["bad", "mul"]);
    let ran = lab.ce_run(&["-j1", "--keep-going", "--fail-fast"]).exit(1).called(vec!["bad"]);
    ran.says("3 calls: 1 reused, 1 failed, 1 blocked");
    // Nothing fails in a dry run.
    lab.ce_run(&["-n", "--fail-fast"]).exit(3).says("3 calls: 1 reused, 2 missing");
}

#[test]
fn running_calls_are_completed() {
    let workflow = "(add (add (mul INPUT('x') INPUT('y'))[0] INPUT('x'))[0] (bad INPUT('x') INPUT('y'))[0])[0]";
    let lab = lab(workflow, "\"outcome\":\"failed\"").commit();
    let (ran, events) = events(&lab, &["-j2"]);
    ran.exit(1).called(vec!["bad", "mul"]);
    let tally = r#""executed":1,"missing":0,"blocked":1,"failed":1,"not_started":1,"#;
    assert!(events.contains(tally) && events.contains(r#""outcome":"not_started""#), "{events}");
    lab.ce_run(&["-n"]).exit(3).says("4 calls: 1 reused, 3 missing");
}

#[test]
fn retries_come_before_fail_fast_stops_the_run() {
    let lab = Lab::task("Inputs: 'x', 'y'\n(bad (mul INPUT('x') INPUT('y'))[0] INPUT('x'))[0]")
        .computation("bad", "a b", "none", "exit 3")
        .commit();
    let ran = lab.ce_run(&["-j1", "--fail-fast", "--retry=1"]).exit(1);
    ran.called(vec!["mul", "bad", "bad"]);
}

#[test]
fn workers_begin_no_waiting_call_after_a_failure() {
    // `wide` needs what `mul` has, which goes on until `wide` was withdrawn.
    let workflow = "(add (add (mul INPUT('x') INPUT('y'))[0] (bad INPUT('x') INPUT('y'))[0])[0] (wide INPUT('x') INPUT('y'))[0])[0]";
    let lab = lab(workflow, "\"outcome\":\"not_started\"")
        .computation("wide", "a b", "c", "echo 1 >\"$3\"")
        .file("computations/wide/resources", "cpus 2\n")
        .commit();
    let mut worker = lab.command("ce");
    worker.args(["worker", "--idle=10h", "--no-isolate", "-j2", "../storage"]);
    let worker = Running::start(worker.env("LAB_EVENTS", lab.path("events")));
    worker.wait_until_it_catches(Signal::TERM);
    let (ran, events) = events(&lab, &["-j1", "--on=workers"]);
    ran.exit(1).called(vec!["bad", "mul"]);
    assert!(events.contains(r#""blocked":2,"failed":1,"not_started":1,"#), "{events}");
    worker.signal(Signal::TERM);
    Ran::new(&lab, worker.output()).exit(143);
}

#[test]
fn a_call_without_a_worker_is_not_started() {
    // The first worker begins both calls. The second one is too small for `wide`, and `bad` fails there.
    let workflow = "(add (bad INPUT('x') INPUT('y'))[0] (wide INPUT('x') INPUT('y'))[0])[0]";
    let wait = r#"cat "$LAB_WAIT"; exit 3"#;
    let lab = Lab::task(&format!("Inputs: 'x', 'y'\n{workflow}"))
        .computation("bad", "a b", "none", wait)
        .computation("wide", "a b", "c", wait)
        .file("computations/wide/resources", "cpus 2\n")
        .with_storage()
        .commit();
    let worker = |cpus: &str, waits_for: &Path| {
        let mut worker = lab.command("ce");
        worker.args(["worker", "--idle=10h", "--no-isolate", cpus, "../storage"]);
        let worker = Running::start(worker.env("LAB_WAIT", waits_for));
        worker.wait_until_it_catches(Signal::TERM);
        worker
    };
    let dismiss = |worker: Running| {
        worker.signal(Signal::TERM);
        Ran::new(&lab, worker.output()).exit(143);
    };
    let (path, mut command) = (lab.path("events"), lab.evaluation(&["--json", "--fail-fast"]));
    command.args(["-j1", "--on=workers"]).stdout(File::create(&path).unwrap());
    let begun = || fs::read_to_string(&path).unwrap().matches(r#""event":"started""#).count();
    let _never = Never::new(lab.path("never"));
    let first = worker("-j3", &lab.path("never"));
    let running = Running::start(&mut command);
    let since = Instant::now();
    while begun() < 2 {
        assert!(since.elapsed() < PATIENCE, "{}", fs::read_to_string(&path).unwrap());
        thread::sleep(Duration::from_millis(10));
    }
    dismiss(first);
    let second = worker("-j1", Path::new("/dev/null"));
    Ran::new(&lab, running.output()).exit(1);
    dismiss(second);
    let events = fs::read_to_string(&path).unwrap();
    assert!(events.contains(r#""blocked":1,"failed":1,"not_started":1,"#), "{events}");
}

#[test]
fn points_that_may_fail_stop_nothing() {
    let lab = |more: &[(&str, &str)]| {
        let factors = [("factors/00-a", "1\n2\n3\n"), ("factors/01-b", "5\n")];
        let lab = sweep("", &[&factors, more].concat());
        lab.call("inputs/00-body/", "bad", &["a", "b"])
            .computation("bad", "a b", "none", "[ \"$(cat \"$1\")\" -gt 3 ]")
            .commit()
    };
    let ran = lab(&[("allow-failed", "")]);
    ran.ce_run(&["-j1", "--fail-fast"]).exit(0).called(vec!["bad", "bad", "bad"]);
    let ran = lab(&[]);
    let ran = ran.ce_run(&["-j1", "--fail-fast"]).exit(1).called(vec!["bad"]);
    ran.says("3 calls: 1 failed, 2 not started; 1 table: 1 blocked");
}
