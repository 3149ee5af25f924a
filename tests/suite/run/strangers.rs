//! Signals that somebody else sends to the processes of a run, of a worker and of a call, in every state of the call: none makes a
//! failure of the call, and the call is executed again.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};

use crate::faults;
use crate::faults::stride;
use crate::fifo::{Fifo, Never};
use crate::isolation;
use crate::lab::Lab;
use crate::needs::needs;
use crate::program::{Ran, Running};

const SIGNALS: [Signal; 4] = [Signal::TERM, Signal::KILL, Signal::INT, Signal::HUP];

/// A process that gets a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    /// The run or the worker itself.
    Program,
    /// The launcher of its sandbox.
    Launcher,
    /// The first process of the sandbox.
    Init,
    /// The process that starts calls in the sandbox, where they have no grants.
    Spawner,
    /// The process that the call executes.
    Exec,
}

/// The children of all threads of a process.
fn children(pid: Pid) -> Vec<Pid> {
    let tasks = fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero()));
    let lists = tasks.into_iter().flatten().flatten().map(|task| task.path().join("children"));
    let text: String = lists.filter_map(|list| fs::read_to_string(list).ok()).collect();
    text.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect()
}

fn is_launcher(pid: Pid) -> bool {
    let words = fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).unwrap_or_default();
    words.starts_with(b"ce-launcher\0")
}

/// Whether a process is the first one of a process namespace.
fn is_first(pid: Pid) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero()));
    let status = status.unwrap_or_default();
    let numbers = status.lines().find(|line| line.starts_with("NSpid:")).unwrap_or_default();
    numbers.split_whitespace().count() > 2 && numbers.ends_with("\t1")
}

impl Target {
    /// The process of a program, if there is one now.
    fn find_pid(self, program: Pid) -> Option<Pid> {
        // Another one may be idle.
        let executes =
            |pid: &Pid| is_launcher(*pid) && !children(*pid).into_iter().all(is_launcher);
        let launcher = || children(program).into_iter().find(executes);
        let (parent, is_it): (Pid, fn(Pid) -> bool) = match self {
            Self::Program => return Some(program),
            Self::Launcher => return launcher(),
            Self::Init => (launcher()?, |pid| is_launcher(pid) && is_first(pid)),
            Self::Spawner => (launcher()?, |pid| is_launcher(pid) && !is_first(pid)),
            Self::Exec => (launcher().unwrap_or(program), |pid| !is_launcher(pid)),
        };
        children(parent).into_iter().find(|pid| is_it(*pid))
    }
}

/// Whether a storage remembers that a call has failed.
fn has_failure(lab: &Lab) -> bool {
    lab.storage().iter().any(|name| name.contains("/failed"))
}

/// A task of two calls. The first one waits when it is executed for the first time.
fn waiting() -> (Lab, Fifo, Never) {
    let lab = Lab::task("Inputs: 'x'\n(copy (wait INPUT('x'))[0])[0]");
    let place = lab.path("").display().to_string();
    let here = |text: &str| text.replace("LAB", place.trim_end_matches('/'));
    // A shell that waits for a child obeys SIGINT only after that.
    let script = "mkdir LAB/room/once 2>&- || exec cp \"$1\" \"$2\"\n\
                  echo here >LAB/meet; exec cat LAB/never \"$1\" >\"$2\"";
    fs::create_dir(lab.path("room")).unwrap();
    fs::set_permissions(lab.path("room"), fs::Permissions::from_mode(0o777)).unwrap();
    let lab = lab
        .computation("wait", "a", "b", &here(script))
        .computation("copy", "a", "b", r#"cat "$1" >"$2""#)
        .file("computations/wait/access", here("write LAB/room\nwrite LAB/meet\nwrite LAB/never\n"))
        .with_storage();
    let (fifo, never) = (Fifo::new(&lab.path("meet")), Never::new(lab.path("never")));
    (lab, fifo, never)
}

/// A process gets a signal while a call is executed.
#[track_caller]
fn while_executing(isolated: bool, is_worker: bool, target: Target, signal: Signal) {
    let what = format!("isolated: {isolated}, worker: {is_worker}, {signal:?} to {target:?}");
    let (lab, fifo, never) = waiting();
    let lab = if isolated { lab.isolated() } else { lab }.commit();
    let worker = is_worker.then(|| {
        let mut worker = lab.command("ce");
        worker.args(["worker", "--idle", "10h", "-j1", "../storage"]);
        Running::start(if isolated { &mut worker } else { worker.arg("--no-isolate") })
    });
    let options: &[&str] = if is_worker { &["--on", "workers"] } else { &["-j1"] };
    let run = Running::start(&mut lab.evaluation(options));
    assert_eq!(fifo.line(), "here", "{what}");
    let program = worker.as_ref().map_or(run.pid, |worker| worker.pid);
    let Some(pid) = target.find_pid(program) else { panic!("there is no such process: {what}") };
    kill_process(pid, signal).unwrap();
    // The kernel keeps all signals of others but KILL from the first process of a namespace.
    if target == Target::Spawner || target == Target::Init && signal != Signal::KILL {
        never.let_go();
    }
    let ran = Ran::new(&lab, run.output());
    assert_eq!(ran.status.code(), Some(0), "{what}\n{}\n{}", ran.stdout, ran.stderr);
    assert!(!has_failure(&lab), "{what}: {:?}", lab.storage());
    if let Some(worker) = worker {
        worker.signal(Signal::TERM);
        Ran::new(&lab, worker.output()).exit(143);
    }
    assert_eq!(lab.output(), "17\n", "{what}");
    assert!(lab.is_tidy(), "{what}");
}

#[test]
fn a_signal_to_any_process_of_a_running_call_does_not_fail_the_call() {
    let mut cases = Vec::new();
    for is_worker in [false, true] {
        for signal in SIGNALS {
            // KILL of exec itself is the kernel's answer to a lack of memory.
            let of_exec = (signal != Signal::KILL).then_some(Target::Exec);
            cases.extend(of_exec.map(|target| (false, is_worker, target, signal)));
            if isolation::is_possible() {
                let targets = [Target::Launcher, Target::Init, Target::Spawner];
                let targets = targets.into_iter().chain(of_exec);
                cases.extend(targets.map(|target| (true, is_worker, target, signal)));
            }
        }
    }
    thread::scope(|scope| {
        for part in cases.chunks(cases.len().div_ceil(4)) {
            scope.spawn(move || {
                part.iter().for_each(|(isolated, is_worker, target, signal)| {
                    while_executing(*isolated, *is_worker, *target, *signal);
                });
            });
        }
    });
}

/// A process gets a signal while a run is stopped at an operation of the storage.
#[track_caller]
fn at_operation(at: usize, target: Target, signal: Signal) {
    let what = format!("{signal:?} to {target:?} at operation {at}");
    let lab = faults::lab().isolated();
    let mut run = lab.evaluation(&["-j1"]);
    let run = Running::start(run.env("CE_FAULT", format!("{at}:STOP")));
    if run.comes_to_a_stop() {
        if let Some(pid) = target.find_pid(run.pid) {
            kill_process(pid, signal).unwrap();
        }
        // Fails if it was killed.
        let _gone = kill_process(run.pid, Signal::CONT);
    }
    let ran = Ran::new(&lab, run.output());
    let code = ran.status.code();
    let is_ended = target == Target::Program && code.is_none_or(|code| code > 128);
    assert!(code == Some(0) || is_ended, "{what}: {code:?}\n{}\n{}", ran.stdout, ran.stderr);
    assert!(!has_failure(&lab), "{what}: {:?}", lab.storage());
    faults::recovers(&lab, &what);
}

/// The first operations of a run, which belong to its two calls.
const OPERATIONS: usize = 140;

/// A longer form takes each operation: `CE_KILLS=1 cargo test --test suite strangers`.
#[test]
fn a_signal_to_any_process_in_any_state_of_a_call_does_not_fail_the_call() {
    if !isolation::is_possible() {
        return;
    }
    let targets = [Target::Launcher, Target::Init, Target::Spawner, Target::Program];
    let kinds = SIGNALS.into_iter().flat_map(|it| targets.map(|target| (target, it)));
    let step = stride(5);
    let cases: Vec<_> = (1..OPERATIONS).step_by(step).zip(kinds.cycle()).collect();
    thread::scope(|scope| {
        for part in cases.chunks(cases.len().div_ceil(4)) {
            scope.spawn(move || {
                part.iter().for_each(|(at, (it, how))| at_operation(*at, *it, *how));
            });
        }
    });
}

/// The second call of a run is killed each time before it has become its program.
#[track_caller]
fn killed_before_exec(isolated: bool) {
    let (lab, fifo, never) = waiting();
    let lab = if isolated { lab.isolated() } else { lab }.commit();
    let run = Running::start(&mut lab.evaluation(&["-j1"]));
    assert_eq!(fifo.line(), "here");
    // The second call has no grants, and another launcher.
    let mut traced = vec![run.pid];
    for launcher in children(run.pid).into_iter().filter(|pid| is_launcher(*pid)) {
        traced.push(launcher);
        traced
            .extend(children(launcher).into_iter().filter(|it| is_launcher(*it) && !is_first(*it)));
    }
    let mut strace = Command::new("strace");
    strace.args(["-f", "-o", "/dev/null", "-e", "inject=execve,execveat:signal=KILL"]);
    strace.args(traced.iter().flat_map(|pid| ["-p".to_owned(), pid.as_raw_nonzero().to_string()]));
    let mut strace = strace.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(strace.stderr.take().unwrap()).lines();
    for _ in &traced {
        let line = lines.next().unwrap().unwrap();
        assert!(line.contains("attached"), "{line}");
    }
    never.let_go();
    let ran = Ran::new(&lab, run.output());
    strace.wait().unwrap();
    let ran = ran.exit(3).says("it was lost: it was killed by signal 9 before it was started");
    assert!(!has_failure(ran.lab), "isolated: {isolated}: {:?}", lab.storage());
    lab.ce_run(&[]).exit(0);
    assert_eq!(lab.output(), "17\n");
}

#[test]
fn a_process_killed_before_exec_does_not_fail_the_call() {
    needs(&["strace"]);
    killed_before_exec(false);
    if isolation::is_possible() {
        killed_before_exec(true);
    }
}

/// A task with one call.
fn call(script: &str) -> Lab {
    Lab::task("Inputs: 'x'\n(call INPUT('x'))[0]").computation("call", "a", "b", script).commit()
}

#[test]
fn the_exit_status_of_exec_counts_and_signals_to_its_children_do_not() {
    let lab = call("sh -c 'kill -TERM $$'");
    lab.ce_run(&[]).exit(1).called(vec!["call"]).says("failed: it ended with exit status 143");
    assert!(has_failure(&lab));
    let lab = call("kill -KILL $$");
    lab.ce_run(&[]).exit(1).called(vec!["call"]).says("failed: it was killed by signal 9");
    assert!(has_failure(&lab));
}

#[test]
fn an_exec_that_gets_a_signal_in_each_attempt_is_not_finished() {
    let lab = call("kill -TERM $$");
    let ran = lab.ce_run(&[]).exit(3).called(vec!["call"; 2]);
    let ran = ran.says("it was lost: it was killed by signal 15, which compeval had not sent");
    assert!(!has_failure(ran.lab));
    // One more for each retry.
    lab.ce_run(&["--retry", "2"]).exit(3).called(vec!["call"; 4]);
}
