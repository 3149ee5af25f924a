//! Several runs on one host.

use std::fs::{self, File};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::Command;

use rustix::process::{Signal, kill_process_group};

use super::beside;
use crate::fifo::{Fifo, Never};
use crate::lab::Lab;
use crate::program::{Ran, Running};

/// A task with one call, which says that it runs, and goes on as soon as it is let go.
fn lab() -> Lab {
    lab_noting("$LAB_RUN")
}

/// Such a task, whose call notes this.
fn lab_noting(noted: &str) -> Lab {
    let meet = r#"if [ "${LAB_MEET-}" ]; then echo here >"$LAB_MEET"; cat "$LAB_WAIT"; fi"#;
    let work = format!(
        "echo \"begin {noted}\" >>\"$LAB_NOTES\"; {meet}; echo \"end {noted}\" >>\"$LAB_NOTES\"; cat \"$1\" >\"$2\""
    );
    Lab::task("Inputs: 'x'\n(call INPUT('x'))[0]").computation("call", "x", "y", &work).commit()
}

impl Lab {
    /// An evaluation of another storage, whose calls have this name in the notes.
    fn run_as(&self, name: &str) -> Command {
        let mut command = self.command("ce-run");
        command.args([&format!("../storage-{name}"), "../data/x"]);
        command.env("LAB_NOTES", self.path("notes")).env("LAB_RUN", name).process_group(0);
        command.env("CUDA_VISIBLE_DEVICES", "3,5");
        command
    }

    /// Starts an evaluation whose call waits until it is let go; returns when it does.
    fn held(&self, name: &str) -> (Running, Never) {
        let [meet, wait] = ["meet", "wait"].map(|it| self.path(&format!("{it}-{name}")));
        let (fifo, never) = (Fifo::new(&meet), Never::new(wait.clone()));
        let running = Running::start(self.run_as(name).env("LAB_MEET", meet).env("LAB_WAIT", wait));
        assert_eq!(fifo.line(), "here");
        (running, never)
    }

    /// Starts an evaluation that has to wait for others; returns when it says so.
    fn waiting(&self, name: &str, why: &str) -> Running {
        self.waiting_with(name, why, &[])
    }

    /// Starts such an evaluation with this in its environment.
    fn waiting_with(&self, name: &str, why: &str, variables: &[(&str, &str)]) -> Running {
        let path = self.path(&format!("said-{name}"));
        let said = Fifo::new(&path);
        let mut command = self.run_as(name);
        command.envs(variables.iter().copied());
        let running =
            Running::start(command.stderr(File::options().write(true).open(path).unwrap()));
        drop(command);
        let line =
            std::iter::repeat_with(|| said.line()).find(|it| it.contains("waiting")).unwrap();
        assert_eq!(line, format!("ce-run: waiting: {why}"));
        // It may go on talking.
        std::thread::spawn(move || said.drain());
        running
    }

    fn exclusive(self, is_exclusive: bool) -> Self {
        let text = if is_exclusive { "call exclusive\n" } else { "# nothing\n" };
        self.file("resources", text)
    }
}

const EXCLUSIVE: &str = "a call is exclusive, and other runs execute on this host";
const ORDINARY: &str = "another run on this host has an exclusive call";
const GPUS: &str = "a call asks for gpus, and other runs have them";

#[test]
fn other_runs_execute_nothing_beside_an_exclusive_call() {
    for others_too in [false, true] {
        let lab = lab().exclusive(true);
        let (first, never) = lab.held("first");
        let lab = lab.exclusive(others_too);
        let second = lab.waiting("second", if others_too { EXCLUSIVE } else { ORDINARY });
        drop(never);
        Ran::new(&lab, first.output()).exit(0);
        assert!(second.output().status.success());
        let notes = lab.notes();
        assert_eq!(notes, ["begin first", "end first", "begin second", "end second"]);
    }
}

#[test]
fn a_run_that_waits_for_an_exclusive_call_is_next() {
    let lab = lab().exclusive(false);
    let (first, never) = lab.held("first");
    let lab = lab.exclusive(true);
    let second = lab.waiting("second", EXCLUSIVE);
    let lab = lab.exclusive(false);
    let third = lab.waiting("third", ORDINARY);
    drop(never);
    for run in [first, second, third] {
        assert!(run.output().status.success());
    }
    let notes = lab.notes();
    let beside = beside(&notes);
    assert!(beside.values().all(Vec::is_empty), "{notes:?}");
    assert_eq!(notes[2], "begin second");
}

#[test]
fn a_run_that_is_killed_lets_others_go_on_at_once() {
    let lab = lab().exclusive(true);
    let (first, never) = lab.held("first");
    let second = lab.waiting("second", EXCLUSIVE);
    kill_process_group(first.pid, Signal::KILL).unwrap();
    assert_eq!(first.output().status.signal(), Some(9));
    assert!(second.output().status.success());
    drop(never);
    // One that waits is killed, too.
    let (first, never) = lab.held("third");
    let second = lab.waiting("fourth", EXCLUSIVE);
    kill_process_group(second.pid, Signal::KILL).unwrap();
    assert_eq!(second.output().status.signal(), Some(9));
    drop(never);
    Ran::new(&lab, first.output()).exit(0);
    lab.finish(&mut lab.run_as("fifth")).exit(0);
}

#[test]
fn a_run_that_waits_can_be_interrupted() {
    let lab = lab().exclusive(true);
    let (first, never) = lab.held("first");
    let second = lab.waiting("second", EXCLUSIVE);
    second.signal(Signal::INT);
    assert_eq!(second.output().status.code(), Some(130));
    drop(never);
    Ran::new(&lab, first.output()).exit(0);
}

#[test]
fn a_run_without_a_cache_and_one_whose_cache_cannot_be_written_go_on() {
    let lab = lab().exclusive(true);
    lab.finish(lab.run_as("none").env_remove("HOME").env_remove("XDG_CACHE_HOME")).exit(0);
    fs::write(lab.path("file"), "").unwrap();
    let ran = lab.finish(lab.run_as("file").env("XDG_CACHE_HOME", lab.path("file")));
    ran.exit(0).says("warning: other runs on this host are not waited for");
    // A call that is not exclusive needs nobody to wait.
    let lab = lab.exclusive(false);
    let ran = lab.finish(lab.run_as("other").env("XDG_CACHE_HOME", lab.path("file"))).exit(0);
    assert!(!ran.stderr.contains("warning"), "{}", ran.stderr);
}

#[test]
fn no_two_runs_use_the_same_gpu() {
    let lab = lab_noting("$LAB_RUN $CUDA_VISIBLE_DEVICES").file("resources", "call gpus 1\n");
    let (first, never) = lab.held("first");
    lab.finish(&mut lab.run_as("second")).exit(0);
    let lab = lab.file("resources", "call gpus 2\n");
    let third = lab.waiting("third", GPUS);
    drop(never);
    for run in [first, third] {
        assert!(run.output().status.success());
    }
    let gpus = ["first 3", "second 5", "second 5", "first 3", "third 3,5", "third 3,5"];
    let notes = lab.notes();
    assert!(notes.iter().map(|note| note.split_once(' ').unwrap().1).eq(gpus), "{notes:?}");
    // One that waits can be interrupted.
    let (first, never) = lab.held("fourth");
    let second = lab.waiting("fifth", GPUS);
    second.signal(Signal::INT);
    assert_eq!(second.output().status.code(), Some(130));
    drop(never);
    Ran::new(&lab, first.output()).exit(0);
}

/// A task whose call asks for something, and starts a run of the same task in its turn, as soon as it is let go.
fn nested(asks: &str) -> Lab {
    let inner = r#"if [ "${LAB_INNER-}" ]; then
            inner=$LAB_INNER; unset LAB_INNER
            if [ "${LAB_MEET-}" ]; then echo here >"$LAB_MEET"; cat "$LAB_WAIT"; fi
            "$inner" --no-isolate --task "$LAB_TASK" "$LAB_STORAGE" "$LAB_INPUT" >&2 || exit 1
        fi
        cat "$1" >"$2""#;
    Lab::task("Inputs: 'x'\n(call INPUT('x'))[0]")
        .computation("call", "x", "y", inner)
        .file("resources", asks)
        .file("../other", "7\n")
        .commit()
}

impl Lab {
    /// An evaluation whose call starts a run with this storage and this input.
    fn nesting(&self, storage: &str, input: &str) -> Command {
        let mut command = self.evaluation(&[]);
        command.env("LAB_INNER", self.command("ce-run").get_program());
        command.env("LAB_TASK", self.path("task")).env("CUDA_VISIBLE_DEVICES", "3");
        command.env("LAB_STORAGE", self.path(storage)).env("LAB_INPUT", self.path(input));
        command
    }
}

#[test]
fn a_run_within_a_call_does_not_wait_for_that_call() {
    for asks in ["call exclusive\n", "call gpus 1\n"] {
        let lab = nested(asks);
        lab.finish(&mut lab.nesting("inner", "data/x")).exit(0).called(vec!["call", "call"]);
        let lab = nested(asks);
        lab.finish(&mut lab.nesting("storage", "other")).exit(0).called(vec!["call", "call"]);
    }
}

#[test]
fn a_run_within_a_call_that_needs_that_call_fails() {
    let lab = nested("call cpus 1\n");
    let ran = lab.finish(&mut lab.nesting("storage", "data/x")).exit(1);
    ran.called(vec!["call"]);
    let log = lab.storage().into_iter().find(|name| name.contains("/failed/")).unwrap();
    let log = lab.stored(&log);
    assert!(log.contains("it is being executed, and has started this run"), "{log}");
}

#[test]
fn a_waiting_run_does_not_block_a_run_nested_in_the_current_one() {
    for (asks, then_asks, why) in [
        ("call exclusive\n", "# nothing\n", ORDINARY),
        ("call exclusive\n", "call exclusive\n", EXCLUSIVE),
        ("call gpus 1\n", "call gpus 1\n", GPUS),
    ] {
        let lab = nested(asks);
        let [meet, wait] = ["meet", "wait"].map(|it| lab.path(it));
        let (fifo, never) = (Fifo::new(&meet), Never::new(wait.clone()));
        let mut outer = lab.nesting("storage-second", "data/x");
        let outer = Running::start(outer.env("LAB_MEET", meet).env("LAB_WAIT", wait));
        assert_eq!(fifo.line(), "here");
        let lab = lab.file("resources", then_asks);
        let second = lab.waiting_with("second", why, &[("CUDA_VISIBLE_DEVICES", "3")]);
        // The run within the first one needs the call for which the second one waits.
        never.let_go();
        Ran::new(&lab, outer.output()).exit(0).called(vec!["call", "call"]);
        assert!(second.output().status.success());
    }
}
