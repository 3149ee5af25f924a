//! `ce status` of runs and workers.

use rustix::process::Signal;
use serde_json::Value;

use super::QUEUED;
use crate::fifo::{Fifo, Never};
use crate::lab::Lab;
use crate::program::{Ran, Running};

#[test]
fn the_activity_of_runs_and_workers_is_shown() {
    let lab = Lab::task("Inputs: 'x', 'y'\n(add (call INPUT('x'))[0] (big INPUT('y'))[0])[0]")
        .computation("call", "x", "y", r#"echo here >"$LAB_MEET"; cat "$LAB_WAIT" "$1" >"$2""#)
        .computation("big", "x", "y", r#"cp "$1" "$2""#)
        .file("resources", "big cpus 7\n")
        .with_storage()
        .commit();
    lab.run("ce", &["status", "../storage"]).exit(0).shows("no run is going on");
    let [meet, wait] = ["meet", "wait"].map(|name| lab.path(name));
    let (fifo, never) = (Fifo::new(&meet), Never::new(wait.clone()));
    let mut worker = lab.worker(&["--no-isolate", "-j2", "--memory", "1G", "--deadline", "9h"]);
    let worker = Running::start(worker.env("LAB_MEET", meet).env("LAB_WAIT", wait));
    let run = Running::start(&mut lab.evaluation(QUEUED));
    assert_eq!(fifo.line(), "here");
    let status = || {
        let ran = lab.run("ce", &["status", "--json", "../storage"]).exit(0);
        serde_json::from_str::<Value>(&ran.stdout).unwrap()
    };
    // The run writes its state every second.
    let known = loop {
        let status = status();
        if status["runs"][0]["state"]["running"] == 1 {
            break status;
        }
        std::thread::yield_now();
    };
    let run_of = &known["runs"][0];
    assert_eq!(run_of["queued"]["cpus=7"], 1, "{known}");
    assert_eq!(run_of["at_workers"][0]["computation"], "call");
    assert_eq!(run_of["state"]["all"], 3);
    assert_eq!(known["workers"][0]["cpus"], 2);
    assert_eq!(known["workers"][0]["memory"], 1 << 30);
    let text = lab.run("ce", &["status", "../storage"]).exit(0).stdout;
    for part in
        ["run of task at ", "call (", "1 call waits for a worker with cpus=7", "2 cpus, 1.0 GiB"]
    {
        assert!(text.contains(part), "{part}\n{text}");
    }
    run.signal(Signal::INT);
    never.let_go();
    Ran::new(&lab, run.output()).exit(130);
    lab.dismiss(worker);
    assert_eq!(status()["runs"].as_array().unwrap().len(), 0);
}

#[test]
fn status_watch_prints_until_it_is_interrupted() {
    let lab = Lab::task("Inputs: 'x'\n(add INPUT('x') INPUT('x'))[0]").with_storage().commit();
    let said = Fifo::new(&lab.path("said"));
    let mut command = lab.command("ce");
    let out = std::fs::File::options().write(true).open(lab.path("said")).unwrap();
    let watch = Running::start(command.args(["status", "--watch", "../storage"]).stdout(out));
    drop(command);
    assert_eq!(said.line(), "no run is going on");
    watch.signal(Signal::INT);
    Ran::new(&lab, watch.output()).exit(130);
    lab.run("ce", &["status", "../nothing"]).exit(5);
}
