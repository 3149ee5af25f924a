//! The ends of isolated computations, which leave nothing.

use std::os::unix::process::{CommandExt, ExitStatusExt};

use rustix::process::{Signal, kill_process_group};

use super::sight::{anew, as_each_user};
use super::{executed, is_possible, lab, task};
use crate::fifo::{Fifo, Never, make};
use crate::lab::Lab;
use crate::needs::needs;
use crate::program::{Ran, Running};

/// Both named pipes can be used in the sandbox.
const PIPES: &str = "write LAB/meet\nwrite LAB/never\n";

/// Starts an evaluation; returns when the computation waits for ever.
fn waiting(before: &str, options: &[&str]) -> Option<(Lab, Running, Fifo, Never)> {
    let script = r#"BEFORE
        exec 3>LAB/meet; echo here >&3
        # A shell obeys its traps at once only where it waits.
        cat LAB/never & wait $!; cp "$1" "$2""#;
    let lab = lab(PIPES, &script.replace("BEFORE", before))?;
    let fifo = Fifo::new(&lab.path("meet"));
    let never = Never::new(lab.path("never"));
    let running = Running::start(lab.evaluation(options).process_group(0));
    assert_eq!(fifo.line(), "here");
    Some((lab, running, fifo, never))
}

#[test]
fn processes_left_behind_end_with_the_call_and_their_usage_counts() {
    let script = r#"exec 3>LAB/meet; echo here >&3
        setsid sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; echo there >&3; cat LAB/never' &
        setsid setsid cat LAB/never &
        read there <LAB/back; cp "$1" "$2""#;
    let Some(lab) = lab(&format!("{PIPES}write LAB/back\n"), script) else { return };
    let fifo = Fifo::new(&lab.path("meet"));
    let _never = Never::new(lab.path("never"));
    make(&lab.path("back"));
    let running = Running::start(&mut lab.evaluation(&[]));
    assert_eq!((fifo.line(), fifo.line()), ("here".to_owned(), "there".to_owned()));
    std::fs::write(lab.path("back"), "there\n").unwrap();
    Ran::new(&lab, running.output()).exit(0);
    fifo.end();
    let used = executed(&lab)["user_seconds"].as_f64().unwrap();
    assert!(used > 0.005, "a hundred thousand steps of a shell took {used} s");
}

#[test]
fn a_stage_that_is_moved_away_meanwhile_is_reported_and_does_not_fail_the_call() {
    let script = r#"echo here >LAB/meet; read there <LAB/back; cp "$1" "$2""#;
    let access = "write LAB/meet\nwrite LAB/back\n";
    for (isolates, is_run) in [(false, false), (false, true), (true, false), (true, true)] {
        let lab = if isolates { lab(access, script) } else { Some(task(access, script)) };
        let Some(lab) = lab else { continue };
        let fifo = Fifo::new(&lab.path("meet"));
        make(&lab.path("back"));
        let options: &[&str] =
            if isolates { &["--no-sync"] } else { &["--no-sync", "--no-isolate"] };
        let running = Running::start(&mut lab.evaluation(options));
        assert_eq!(fifo.line(), "here");
        let tmp = lab.path("storage/tmp");
        let run = || tmp.read_dir().unwrap().next().unwrap().unwrap().path();
        let place = if is_run { run() } else { tmp.clone() };
        std::fs::rename(&place, lab.path("away")).unwrap();
        std::fs::write(lab.path("back"), "there\n").unwrap();
        let ran = Ran::new(&lab, running.output()).exit(5);
        ran.says(if isolates { "was moved or removed while it was used" } else { "was replaced" });
        assert!(!lab.storage().iter().any(|name| name.contains("/failed/")), "{:?}", lab.storage());
    }
}

#[test]
fn processes_left_behind_are_gone_before_the_next_call() {
    if !is_possible() {
        return;
    }
    let looks = r#"n=0; for p in 2 3 4 5 6 7 8 9; do kill -0 $p 2>&- && n=$((n+1)); done
        { cat "$1"; echo "$$ $n"; } >"$2""#;
    let text = "Inputs: 'x'\n(look (look (leave (look INPUT('x'))[0])[0])[0])[0]";
    let leaves = format!("sleep 600 &\n{looks}");
    let lab = Lab::task(text)
        .computation("look", "a", "b", looks)
        .computation("leave", "a", "b", &leaves);
    let lab = lab.isolated().commit();
    lab.ce_run(&["-j1"]).exit(0);
    let output = lab.output();
    let (numbers, seen): (Vec<_>, Vec<_>) =
        output.lines().filter_map(|line| line.split_once(' ')).unzip();
    // The shell, and once what is left behind. Number one may be another user's.
    assert_eq!(seen, ["1", "2", "1", "1"], "{output}");
    // If the kernel cannot give numbers again, they go on.
    if std::fs::exists("/proc/sys/kernel/ns_last_pid").unwrap() {
        assert_eq!(numbers, ["2"; 4], "{output}");
    }
}

#[test]
fn a_call_that_limits_the_first_process_harms_no_other_call() {
    if !is_possible() {
        return;
    }
    let copy = r#"cat "$1" >"$2""#;
    // Signals of a process of its namespace do not reach number one.
    let harms =
        format!("prlimit --pid 1 --nofile=0:0 --cpu=1:1; kill -KILL 1; kill -TERM 1; {copy}");
    let lab = Lab::task("Inputs: 'x'\n(copy (harm INPUT('x'))[0])[0]").isolated();
    let lab =
        lab.computation("copy", "a", "b", copy).computation("harm", "a", "b", &harms).commit();
    lab.ce_run(&["-j1"]).exit(0);
    assert_eq!(lab.output(), "17\n");
}

#[test]
fn a_signal_ends_isolated_calls() {
    let Some((lab, running, processes, _never)) = waiting("", &[]) else { return };
    running.signal(Signal::INT);
    Ran::new(&lab, running.output()).exit(130).says("interrupted");
    processes.end();
    assert!(lab.is_tidy());
}

#[test]
fn a_killed_execution_takes_processes_outside_its_group_along() {
    let before = "trap '' TERM; setsid sh -c 'exec 3>LAB/meet; cat LAB/never' &";
    let Some((lab, running, processes, _never)) = waiting(before, &[]) else { return };
    running.signal(Signal::INT);
    running.signal(Signal::TERM);
    assert!(matches!(running.output().status.code(), Some(130 | 143)));
    processes.end();
    assert!(lab.is_tidy());
}

#[test]
fn a_run_that_is_killed_leaves_nothing_running() {
    let Some((_lab, running, processes, _never)) = waiting("", &["-j1"]) else { return };
    kill_process_group(running.pid, Signal::KILL).unwrap();
    assert_eq!(running.output().status.signal(), Some(9));
    processes.end();
}

#[test]
fn a_call_that_exceeds_its_timeout_is_ended() {
    let Some((lab, running, processes, _never)) = waiting("", &["--timeout", "1s"]) else { return };
    Ran::new(&lab, running.output()).exit(1).says("failed: it timed out after 1 s");
    processes.end();
}

#[test]
fn exit_status_signal_and_log_are_reported() {
    for (script, told) in [
        ("echo working; exit 3", "failed: it ended with exit status 3"),
        ("echo working; kill -SEGV $$", "failed: it was killed by signal 11"),
        ("echo working; kill -9 $$", "failed: it was killed by signal 9"),
        ("echo working", "it made no output 00 (b)"),
        ("echo working; mkdir \"$2\"", "its output 00 (b) is not a file"),
        ("echo working; ln -s /etc/passwd \"$2\"", "its output 00 (b) is not a file"),
    ] {
        let Some(lab) = lab("", script) else { return };
        lab.ce_run(&[]).exit(1).says(told).says("| working");
        assert!(lab.is_tidy());
    }
}

#[test]
fn many_concurrent_calls_share_launchers() {
    let part = |at: usize| format!("(look{} INPUT('x'))[0]", at % 3);
    let text = format!("Inputs: 'x'\n(all {} {} {})[0]", part(0), part(1), part(2));
    let mut lab = Lab::task(&text)
        .computation("all", "a b c", "all", r#"cat "$1" "$2" "$3" >"$4""#)
        .isolated();
    for at in 0..3 {
        lab = lab.computation(&format!("look{at}"), "a", "b", r#"cat "$1" >"$2""#);
    }
    let lab = lab.file("computations/look1/access", "network\n").commit();
    lab.ce_run(&["-j4"]).exit(0);
    assert_eq!(lab.output(), "17\n17\n17\n");
    assert!(lab.is_tidy());
}

/// A child that has left the group traces `exec`, so that the kernel tells its parent nothing of its end.
const TRACED: &str = r#"
import ctypes, os, sys, time
libc = ctypes.CDLL(None)
ready, done = os.pipe()
exec_ = os.getpid()
if os.fork() == 0:
    os.setsid()
    libc.ptrace(0x4206, exec_, 0, 0)
    os.write(done, b'x')
    while True: time.sleep(1000)
os.read(ready, 1)
open(sys.argv[2], 'w').write(open(sys.argv[1]).read())
os._exit(0)"#;

#[test]
fn an_exec_traced_by_its_own_child_ends() {
    if !is_possible() {
        return;
    }
    needs(&["python3"]);
    let program = format!("#!/usr/bin/env python3\n{TRACED}\n");
    for access in ["", "read LAB/data\n"] {
        let lab = task(access, "").file("computations/look/exec", &program).commit_again();
        as_each_user(&lab, |user| {
            let run = Running::start(&mut anew(&lab, user, &["-j1"]));
            Ran::new(&lab, run.output()).exit(0);
            assert_eq!(lab.output(), "17\n");
        });
        let run = Running::start(&mut anew(&lab, None, &["-j1", "--no-isolate"]));
        Ran::new(&lab, run.output()).exit(0);
    }
}
