//! Runs that go on without a terminal.

use std::fs;
use std::path::PathBuf;

use crate::fifo::{Fifo, Never};
use crate::lab::Lab;

impl Lab {
    /// Returns the log of the only detached run.
    fn run_log(&self) -> String {
        let runs: Vec<PathBuf> =
            fs::read_dir(self.path("storage/runs")).unwrap().map(|it| it.unwrap().path()).collect();
        let [run] = &runs[..] else { panic!("{runs:?}") };
        fs::read_to_string(run.join("log")).unwrap()
    }
}

#[test]
fn a_detached_run_goes_on_with_the_commit_and_the_inputs_that_it_was_given() {
    let lab = Lab::task("Inputs: 'x'\n(add (wait INPUT('x'))[0] INPUT('x'))[0]")
        .computation("wait", "x", "y", r#"echo here >"$LAB_MEET"; cat "$LAB_WAIT" "$1" >"$2""#)
        .with_storage()
        .commit();
    let [meet, wait] = ["meet", "wait"].map(|name| lab.path(name));
    let (fifo, never) = (Fifo::new(&meet), Never::new(wait.clone()));
    let mut command = lab.evaluation(&["--detach"]);
    command.env("LAB_MEET", meet).env("LAB_WAIT", wait);
    // It ends at once, though its only call waits.
    let ran = lab.finish(&mut command).exit(0).says("goes on in the background as process");
    assert_eq!(ran.stdout, "");
    // Its progress is known as soon as the terminal is free.
    let status = lab.run("ce", &["status", "../storage"]).exit(0);
    status.shows("run of task at ").shows("0 of 2 calls are over");
    assert_eq!(fifo.line(), "here");
    let input = fs::read_to_string(lab.path("data/x")).unwrap();
    let lab = lab.data("x", "1000").computation("add", "a b", "sum", "exit 1").commit_again();
    never.let_go();
    while !lab.is_tidy() {
        std::thread::yield_now();
    }
    let log = lab.run_log();
    assert!(log.contains("Task outputs are:") && log.contains("2 calls: 2 computed"), "{log}");
    let output = log.lines().skip_while(|line| *line != "Task outputs are:").nth(1).unwrap().trim();
    let sum = 2 * input.trim().parse::<u32>().unwrap();
    assert_eq!(lab.stored(output), format!("{sum}\n"));
}

#[test]
fn a_detached_run_that_cannot_begin_says_so_at_the_terminal() {
    let lab = Lab::task("Inputs: 'x'\n(add INPUT('x') INPUT('x'))[0]").with_storage().commit();
    let lab = lab.file("computations/add/exec", "changed");
    lab.ce_run(&["--detach"]).exit(2).says("add");
    lab.ce_run(&["--detach", "-n"]).exit(2);
    lab.ce_run(&["--detach", "--dirty"]).exit(2);
    assert!(!lab.path("storage/runs").exists());
}
