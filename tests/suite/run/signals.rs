//! Signals that were ignored or blocked by the process that started a program.

use std::fs;

use rustix::process::Signal;

use crate::fifo::{Fifo, Never};
use crate::isolation;
use crate::lab::Lab;
use crate::program::{Ran, Running, through};

/// The signal state that a process inherits, but for two signals of threads that glibc has ignored by the programs that it starts.
const SEES: &str =
    r#"grep -E '^Sig(Ign|Blk):' /proc/self/status | sed 's/00000001800*$/0000000000000000/' >"$2""#;

/// Has signals ignored and blocked.
const STARTER: [&str; 3] = [
    "env",
    "--ignore-signal=CHLD,INT,TERM,HUP,QUIT,USR1,TSTP",
    "--block-signal=CHLD,INT,TERM,HUP,QUIT,USR2",
];

fn task(script: &str) -> Lab {
    Lab::task("Inputs: 'x'\n(look INPUT('x'))[0]").computation("look", "a", "b", script)
}

#[test]
fn an_execution_inherits_no_ignored_or_blocked_signals() {
    let isolated = isolation::is_possible().then(|| task(SEES).isolated());
    for lab in [Some(task(SEES)), isolated].into_iter().flatten().map(Lab::commit) {
        lab.finish(&mut through(&STARTER, &lab.evaluation(&[]))).exit(0);
        assert_eq!(lab.output(), "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
    }
}

/// Starts an evaluation that waits in its call, and sends it a signal.
fn signalled(starter: &[&str], signal: Signal) -> (Lab, Running, Never) {
    let script = r#"echo here >"$LAB_MEET"; read -r on <"$LAB_NEVER"; cp "$1" "$2""#;
    let lab = task(script).commit();
    let [meet, never] = ["meet", "never"].map(|name| lab.path(name));
    let (fifo, waits) = (Fifo::new(&meet), Never::new(never.clone()));
    let mut command = lab.evaluation(&[]);
    command.env("LAB_MEET", meet).env("LAB_NEVER", never);
    let running = Running::start(&mut through(starter, &command));
    assert_eq!(fifo.line(), "here");
    running.signal(signal);
    (lab, running, waits)
}

#[test]
fn a_signal_that_was_blocked_interrupts() {
    for (block, signal, code) in
        [("--block-signal=INT", Signal::INT, 130), ("--block-signal=TERM", Signal::TERM, 143)]
    {
        let (lab, running, _never) = signalled(&["env", block], signal);
        Ran::new(&lab, running.output()).exit(code).says("interrupted");
    }
}

#[test]
fn a_signal_that_was_ignored_has_no_effect() {
    for (starter, signal) in [
        (&["nohup"][..], Signal::HUP),
        (&["env", "--ignore-signal=HUP"], Signal::HUP),
        (&["env", "--ignore-signal=INT"], Signal::INT),
        (&["env", "--ignore-signal=TERM"], Signal::TERM),
    ] {
        let (lab, running, _never) = signalled(starter, signal);
        fs::write(lab.path("never"), "on\n").unwrap();
        Ran::new(&lab, running.output()).exit(0);
        assert_eq!(lab.output(), "17\n");
    }
}
