//! Workers whose time is over, that see the storage late, that were taken for dead, or whose disk is full.

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process};

use super::{QUEUED, SUM};
use crate::fifo::{Fifo, Never};
use crate::lab::Lab;
use crate::program::{Ran, Running, through};
use crate::slurm::wait_for;
use crate::sweeps::sweep;

/// The first execution of a computation waits until it is let go.
const MEET: &str =
    r#"if mkdir "$LAB_ONCE" 2>/dev/null; then echo here >"$LAB_MEET"; cat "$LAB_WAIT"; fi"#;

#[test]
fn a_call_longer_than_any_worker_fails_after_some_attempts() {
    let lab = Lab::task("Inputs: 'x'\n(call INPUT('x'))[0]")
        .computation("call", "x", "y", "exec sleep 600")
        .with_storage()
        .commit();
    let run = Running::start(&mut lab.evaluation(&[QUEUED, &["--retry", "2", "--json"]].concat()));
    let ran = thread::scope(|scope| {
        let output = scope.spawn(|| run.output());
        // One that is late does not begin the call.
        while !output.is_finished() {
            let worker = Running::start(&mut lab.worker(&["--no-isolate", "--deadline", "400ms"]));
            Ran::new(&lab, worker.output()).exit(0).says("its time is over");
        }
        Ran::new(&lab, output.join().unwrap())
    });
    let ran = ran.exit(1).says("failed: it did not end within ");
    let ran = ran.says("the time of its worker\n").says("try: a time limit in a file resources");
    assert!((1..=3).contains(&lab.called().len()), "{}", ran.stderr);
    ran.shows(r#"{"event":"queued""#);
    assert!(lab.is_tidy());
}

#[test]
fn a_call_that_does_not_fit_the_time_of_a_worker_goes_to_another_one() {
    let life = Duration::from_secs(3);
    let lab = Lab::task("Inputs: 'x'\n(second (first INPUT('x'))[0])[0]")
        .computation("first", "x", "y", &format!("{MEET}; cat \"$1\" >\"$2\""))
        .computation(
            "second",
            "x",
            "y",
            r#"mkdir "$LAB_ONCE.2" 2>/dev/null && sleep 600; cat "$1" >"$2""#,
        )
        .with_storage()
        .commit();
    let [meet, wait, once] = ["meet", "wait", "once"].map(|it| lab.path(it));
    let (fifo, never) = (Fifo::new(&meet), Never::new(wait.clone()));
    let mut worker = lab.worker(&["--no-isolate", "--deadline", "3s"]);
    worker.env("LAB_MEET", meet).env("LAB_WAIT", wait).env("LAB_ONCE", &once);
    let begin = Instant::now();
    let worker = Running::start(&mut worker);
    let run = Running::start(&mut lab.evaluation(QUEUED));
    assert_eq!(fifo.line(), "here");
    // The second call gets less than nine tenths of it.
    wait_for("time", || (begin.elapsed() > life / 5).then_some(()));
    never.let_go();
    Ran::new(&lab, worker.output()).exit(0).says("its time is over");
    let other = Running::start(lab.worker(&["--no-isolate"]).env("LAB_ONCE", &once));
    Ran::new(&lab, run.output()).exit(0);
    lab.dismiss(other);
    assert_eq!(lab.called(), ["first", "second", "second"]);
    assert!(lab.is_tidy());
}

#[test]
fn waiting_for_another_run_does_not_use_up_the_time_of_a_worker() {
    let lab = Lab::task("Inputs: 'x'\n(call INPUT('x'))[0]")
        .computation("call", "x", "y", &format!("{MEET}; cat \"$1\" >\"$2\""))
        .with_storage()
        .commit();
    let [meet, wait, once] = ["meet", "wait", "once"].map(|it| lab.path(it));
    let (fifo, never) = (Fifo::new(&meet), Never::new(wait.clone()));
    let run = Running::start(&mut lab.evaluation(QUEUED));
    lab.place_of("/queue/");
    let mut here = lab.evaluation(&[]);
    let here = here.env("LAB_MEET", meet).env("LAB_WAIT", wait).env("LAB_ONCE", &once);
    let here = Running::start(here);
    assert_eq!(fifo.line(), "here");
    // More of them than a call may be interrupted by for want of time.
    for _ in 0..5 {
        let worker = Running::start(&mut lab.worker(&["--no-isolate", "--deadline", "400ms"]));
        Ran::new(&lab, worker.output()).exit(0).says("its time is over");
    }
    never.let_go();
    Ran::new(&lab, here.output()).exit(0);
    let other = lab.serve(&["--no-isolate"]);
    Ran::new(&lab, run.output()).exit(0);
    lab.dismiss(other);
    assert_eq!(lab.called(), ["call"]);
    assert!(lab.is_tidy());
}

#[test]
fn a_worker_works_for_users_by_name() {
    let lab = Lab::task("Inputs: 'x'\n(add INPUT('x') INPUT('x'))[0]").with_storage().commit();
    let arguments = |user| ["worker", "--idle", "0s", "--for", user, "../storage"];
    for user in ["root", "0"] {
        lab.run("ce", &arguments(user)).exit(0);
    }
    let ran = lab.run("ce", &arguments("nobody knows")).exit(2);
    ran.says("this host knows no such user").says("--for <USER>");
}

impl Lab {
    /// A file of the storage whose name contains this.
    #[track_caller]
    fn place_of(&self, part: &str) -> PathBuf {
        let part = wait_for(part, || self.storage().into_iter().find(|name| name.contains(part)));
        self.path("storage").join(part)
    }
}

#[test]
fn a_worker_waits_for_inputs_that_are_not_visible_yet() {
    let lab = Lab::task("Inputs: 'x'\n(call INPUT('x'))[0]")
        .computation("call", "x", "y", r#"cat "$1" >"$2""#)
        .with_storage()
        .commit();
    for appears in [true, false] {
        let run = Running::start(&mut lab.evaluation(&[QUEUED, &["-q"]].concat()));
        lab.place_of("/queue/");
        let (input, away) = (lab.place_of("tinputs/"), lab.path("away"));
        fs::rename(input.parent().unwrap(), &away).unwrap();
        let mut worker = lab.worker(&["--no-isolate"]);
        if !appears {
            worker.env("CE_SILENCE", "0.2");
        }
        let worker = Running::start(&mut worker);
        if appears {
            lab.place_of("/claims/");
            assert!(lab.called().is_empty());
        } else {
            lab.place_of("/answers/");
            fs::rename(away, input.parent().unwrap()).unwrap();
            let why = "it was refused: tinputs/";
            let ran = Ran::new(&lab, run.output()).exit(3).says(why);
            ran.says("is not visible to the worker").called(vec![]);
            lab.dismiss(worker);
            continue;
        }
        fs::rename(away, input.parent().unwrap()).unwrap();
        Ran::new(&lab, run.output()).exit(0).called(vec!["call"]);
        lab.dismiss(worker);
        fs::remove_dir_all(lab.path("storage")).unwrap();
        fs::create_dir(lab.path("storage")).unwrap();
    }
    assert!(lab.is_tidy());
}

#[test]
fn a_worker_that_was_taken_for_dead_and_lives_does_no_harm() {
    let twins = format!("{MEET}; od -An -N8 -tx8 /dev/urandom >\"$2\"; cat \"$2\" >\"$3\"");
    let lab = Lab::task("Inputs: 'x'\n(twins INPUT('x'))[0, 1]")
        .computation("twins", "seed", "one other", &twins)
        .with_storage()
        .commit();
    let [meet, wait, once] = ["meet", "wait", "once"].map(|it| lab.path(it));
    let (fifo, never) = (Fifo::new(&meet), Never::new(wait.clone()));
    let mut far = lab.worker(&["--no-isolate"]);
    far.env("LAB_MEET", meet).env("LAB_WAIT", wait).env("LAB_ONCE", &once);
    far.env("CE_SILENCE", "0.3");
    // Its process is no process of this host: only its heart tells that it lives.
    let Some(elsewhere) = crate::run::elsewhere() else { return };
    let script = ["-c", "hostname far; exec \"$0\" \"$@\""];
    let far = Running::start(&mut through(&[elsewhere, &script].concat(), &far));
    let mut run = lab.evaluation(QUEUED);
    let run = Running::start(run.env("CE_SILENCE", "0.3"));
    assert_eq!(fifo.line(), "here");
    let process = crate::run::child(far.pid);
    kill_process(process, Signal::STOP).unwrap();
    let near = Running::start(
        lab.worker(&["--no-isolate"]).env("LAB_ONCE", &once).env("CE_SILENCE", "0.3"),
    );
    Ran::new(&lab, run.output()).exit(0);
    let results = lab.results();
    kill_process(process, Signal::CONT).unwrap();
    never.let_go();
    kill_process(process, Signal::TERM).unwrap();
    far.output();
    lab.dismiss(near);
    assert_eq!(lab.called(), ["twins", "twins"], "it ran twice");
    let outputs = |results: &std::collections::BTreeMap<String, Vec<u8>>| {
        let all = results.iter().filter(|(name, _)| name.starts_with("c_twins"));
        all.map(|(name, text)| (name.clone(), text.clone())).collect::<Vec<_>>()
    };
    assert_eq!(outputs(&lab.results()), outputs(&results), "the first one stands");
    lab.run("ce", &["verify", "../storage"]).exit(0);
    lab.ce_run(&[]).exit(0).called(vec![]);
    assert!(lab.is_tidy());
}

#[test]
fn a_worker_that_cannot_write_ends_and_another_one_goes_on() {
    for operation in [30, 60, 75, 90, 105, 120] {
        let lab = Lab::task(SUM).with_storage().commit();
        let run = Running::start(&mut lab.evaluation(QUEUED));
        lab.place_of("/queue/");
        let mut full = lab.worker(&["--no-isolate"]);
        let full = Running::start(full.env("CE_FAULT", format!("{operation}+:ENOSPC")));
        let full = Ran::new(&lab, full.output()).exit(5);
        assert!(full.stderr.contains("No space left on device"), "{}", full.stderr);
        let other = lab.serve(&["--no-isolate"]);
        let ran = Ran::new(&lab, run.output());
        // It may have said that a call failed for that reason.
        assert!(matches!(ran.status.code(), Some(0 | 5)), "{operation}: {}", ran.stderr);
        lab.dismiss(other);
        lab.ce_run(&[]).exit(0);
        assert!(lab.is_tidy(), "{operation}: {:?}", lab.storage());
    }
}

#[test]
fn a_full_storage_ends_the_run_and_results_that_fit_are_kept() {
    let numbers: Vec<String> = (1..=20).map(|number| number.to_string()).collect();
    let lab = sweep("", &[("factors/00-n", &numbers.join("\n"))])
        .computation(
            "large",
            "n",
            "out",
            "head -c 65536 /dev/zero >\"$2\" || exit 9; cat \"$1\" >>\"$2\"",
        )
        .call("inputs/00-body/", "large", &["n"])
        .commit();
    let run = lab.evaluation(&["--on", "workers", "--no-sync"]);
    // A worker that cannot write ends. Another one is started, as a pool of workers does.
    let script = r#"
        ce=${0%-run}
        while [ ! -e ../over ]; do
            "$ce" worker --idle 200ms --no-isolate --no-sync ../storage 2>>../workers
        done &
        "$0" "$@"; code=$?; : >../over; wait; exit $code"#;
    let mut shell = through(&["sh", "-c", script], &run);
    let tmpfs = "mount -t tmpfs -o size=640k tmpfs ../storage";
    let Some(ran) = crate::mount::with(&lab, tmpfs, shell.current_dir(lab.path("task"))) else {
        return;
    };
    assert!(matches!(ran.status.code(), Some(1 | 5)), "{:?}\n{}", ran.status, ran.stderr);
    let there = lab.results().keys().filter(|name| name.starts_with("c_large/")).count();
    assert!((1..20).contains(&there), "{there}\n{}", ran.stderr);
    lab.called();
    lab.ce_run(&[]).exit(0);
    assert_eq!(lab.called().len(), 20 - there);
    lab.run("ce", &["verify", "../storage"]).exit(0);
    assert!(lab.is_tidy());
}
