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

/// What a call notes of its processors: how many it is told of, and their numbers.
const PROCESSORS: &str = "$LAB_RUN $CE_CPUS $OMP_NUM_THREADS $(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)";

const CPUS: &str = "a call asks for cpus, and other runs have them";

/// The numbers of the processors in a list of the kernel's, such as `0-2,5`.
fn numbers(list: &str) -> Vec<usize> {
    let ranges = list.split(',').map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        first.parse().unwrap()..=last.parse().unwrap()
    });
    ranges.flatten().collect()
}

/// The processors that a thread may use.
fn processors_of(thread: impl std::fmt::Display) -> Vec<usize> {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).unwrap_or_default();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    list.map(|list| numbers(list.trim())).unwrap_or_default()
}

#[test]
fn no_two_runs_are_pinned_to_the_same_processor() {
    let lab = lab_noting(PROCESSORS).file("resources", "call pin\n");
    let usable = processors_of("self");
    let (first, never) = lab.held("first");
    let note = lab.notes().pop().unwrap();
    let pinned = numbers(note.strip_prefix("begin first 1 1 ").unwrap());
    let [own] = pinned[..] else { panic!("{note}") };
    assert!(usable.contains(&own));
    // A host with one processor has no other for the second run.
    if usable.len() > 1 {
        for thread in fs::read_dir(format!("/proc/{}/task", first.pid)).unwrap() {
            let thread = thread.unwrap().file_name();
            let may_use = processors_of(thread.display());
            assert!(!may_use.contains(&own), "{may_use:?}");
        }
        lab.finish(&mut lab.run_as("second")).exit(0);
        let note = lab.notes().pop().unwrap();
        let second = numbers(note.strip_prefix("end second 1 1 ").unwrap());
        assert!(second.len() == 1 && second != pinned, "{second:?}");
    }
    let lab = lab.file("resources", format!("call pin\ncall cpus {}\n", usable.len()));
    let third = lab.waiting("third", CPUS);
    drop(never);
    for run in [first, third] {
        assert!(run.output().status.success());
    }
    let last = lab.notes().pop().unwrap();
    let n = usable.len();
    assert!(last.starts_with(&format!("end third {n} {n} ")), "{last}");
    assert_eq!(numbers(last.rsplit_once(' ').unwrap().1), usable);
    // A run that dies gives them back.
    let (fourth, _never) = lab.held("fourth");
    kill_process_group(fourth.pid, Signal::KILL).unwrap();
    fourth.output();
    lab.finish(&mut lab.run_as("fifth")).exit(0);
    // Nobody has more than there are.
    let lab = lab.file("resources", format!("call pin\ncall cpus {}\n", n + 1));
    let mut run = lab.run_as("sixth");
    let ran = lab.finish(run.args(["-j", &(n + 1).to_string()])).exit(2);
    ran.says(&format!(
        "it asks for {} cpus of its own, and this run may use {n} of the host",
        n + 1
    ));
}

#[test]
fn an_isolated_call_is_pinned_and_the_next_one_is_not() {
    let script = "sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status >\"$2\"";
    let lab = Lab::task("Inputs: 'x'\n(last (pinned INPUT('x')))[0]")
        .computation("pinned", "x", "y", script)
        .computation("last", "x", "y", &script.replace(">", "| cat \"$1\" - >"))
        .file("resources", "pinned pin\n")
        .commit()
        .isolated();
    lab.ce_run(&["-j", "1"]).exit(0);
    let usable = processors_of("self");
    let output = lab.output();
    let lists: Vec<Vec<usize>> = output.lines().map(numbers).collect();
    assert!(lists[0].len() == 1 && usable.contains(&lists[0][0]), "{output}");
    assert_eq!(lists[1], usable);
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
    for asks in ["call exclusive\n", "call gpus 1\n", "call pin\n"] {
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
    let all = format!("call pin\ncall cpus {}\n", processors_of("self").len());
    for (asks, then_asks, why) in [
        ("call exclusive\n", "# nothing\n", ORDINARY),
        ("call exclusive\n", "call exclusive\n", EXCLUSIVE),
        ("call gpus 1\n", "call gpus 1\n", GPUS),
        (&all, &all, CPUS),
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
