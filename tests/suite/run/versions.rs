//! Runs at different commits of one tree share the calls that are being executed: the second waits, and takes over.

use std::fs::{self, File};

use rustix::process::Signal;

use crate::fifo::{Fifo, Never};
use crate::isolation::is_possible;
use crate::lab::Lab;
use crate::program::{Ran, Running};

const TASK: &str = "Inputs: 'x', 'y'\n(mul INPUT('x') INPUT('y'))[0]";

/// An execution that a test meets, and lets go on.
struct Meeting {
    fifo: Fifo,
    never: Never,
}

impl Meeting {
    /// At two named pipes of a laboratory.
    fn new(lab: &Lab) -> Self {
        let (fifo, never) = (Fifo::new(&lab.path("meet/here")), Never::new(lab.path("meet/never")));
        Self { fifo, never }
    }
}

/// A laboratory whose call meets the test in a directory, and a commit. It is isolated, or its user trusts trees.
fn lab(isolated: bool) -> Lab {
    let lab = Lab::task(TASK);
    let meet = lab.path("meet").display().to_string();
    fs::create_dir(lab.path("meet")).unwrap();
    let script = format!(
        r#"echo executed >>{meet}/log
if [ -p {meet}/here ]; then exec 4>{meet}/here; echo here >&4; exec 4>&-; cat {meet}/never; fi
read -r a <"$1"; read -r b <"$2"; echo $((a * b)) >"$3""#
    );
    let lab = lab.computation("mul", "a b", "product", &script);
    let lab = lab.file("computations/mul/access", format!("write {meet}\n"));
    let lab = if isolated { lab.isolated() } else { lab }.commit();
    if !isolated {
        lab.git("task", &["config", "compeval.takeover", "tree"]);
    }
    lab
}

/// The number of executions.
fn executed(lab: &Lab) -> usize {
    fs::read_to_string(lab.path("meet/log")).unwrap_or_default().lines().count()
}

/// A run that waits for another one, and its messages.
struct Waiting {
    running: Running,
    says: Fifo,
}

impl Waiting {
    /// Starts a run, and returns when it says that it waits for another one.
    fn start(lab: &Lab, options: &[&str], holder: &Running) -> Self {
        let says = Fifo::new(&lab.path("says"));
        let mut command = lab.evaluation(options);
        command.stderr(File::options().write(true).open(lab.path("says")).unwrap());
        let running = Running::start(&mut command);
        let line = says.line();
        let process = holder.pid.as_raw_nonzero();
        assert!(line.contains(&format!("waits for process {process} on ")), "{line}");
        Self { running, says }
    }

    /// Waits until it says this.
    fn says(&self, text: &str) {
        while !self.says.line().contains(text) {}
    }
}

/// The way in which a run executes, and takes over results of others.
#[derive(Clone, Copy, Debug)]
struct Way {
    isolates: bool,
    trusts: bool,
}

impl Way {
    /// Whether it isolates, and whether it trusts trees.
    const fn new(isolates: bool, trusts: bool) -> Self {
        Self { isolates, trusts }
    }

    /// Sets the task so; returns the options of a run.
    fn options(self, lab: &Lab) -> &'static [&'static str] {
        let takeover = if self.trusts { "tree" } else { "isolated" };
        lab.git("task", &["config", "compeval.takeover", takeover]);
        if self.isolates { &["--no-sync"] } else { &["--no-sync", "--no-isolate"] }
    }
}

/// Starts a run beside another one at an earlier commit: it waits for that and takes over, or executes the call itself.
#[track_caller]
fn beside(holder: Way, comer: Way, waits: bool) {
    let lab = lab(true);
    let Meeting { fifo, never } = Meeting::new(&lab);
    let first = Running::start(&mut lab.evaluation(holder.options(&lab)));
    assert_eq!(fifo.line(), "here", "{holder:?}");
    fs::remove_file(lab.path("meet/here")).unwrap();
    let lab = lab.file("README", "").commit_again();
    let options = comer.options(&lab);
    if waits {
        let second = Waiting::start(&lab, options, &first);
        assert_eq!(executed(&lab), 1);
        never.let_go();
        second.says("1 taken over");
        Ran::new(&lab, second.running.output()).exit(0);
        lab.ce_run(options).exit(0).says("1 reused");
    } else {
        lab.ce_run(options).exit(0).says("1 computed");
        never.let_go();
    }
    Ran::new(&lab, first.output()).exit(0).says("1 computed");
    assert_eq!(executed(&lab), if waits { 1 } else { 2 }, "{holder:?} {comer:?}");
    assert!(lab.is_tidy(), "{:?}", lab.storage());
}

const BOTH: [bool; 2] = [false, true];

#[test]
fn every_run_at_another_commit_waits_for_an_isolated_call() {
    if is_possible() {
        for (isolates, trusts) in BOTH.iter().flat_map(|one| BOTH.map(|other| (*one, other))) {
            for holder_trusts in BOTH {
                beside(Way::new(true, holder_trusts), Way::new(isolates, trusts), true);
            }
        }
    }
}

#[test]
fn a_run_at_another_commit_does_not_wait_for_a_result_that_would_not_serve_it() {
    for (isolates, holder_trusts) in BOTH.iter().flat_map(|one| BOTH.map(|other| (*one, other))) {
        if !isolates || is_possible() {
            beside(Way::new(false, holder_trusts), Way::new(isolates, false), false);
        }
    }
}

#[test]
fn runs_that_take_over_by_tree_wait_for_each_other() {
    beside(Way::new(false, true), Way::new(false, true), true);
    if is_possible() {
        beside(Way::new(false, true), Way::new(true, true), true);
    }
}

#[test]
fn a_run_at_another_commit_executes_what_a_dead_one_has_begun() {
    let lab = lab(false);
    let Meeting { fifo, never } = Meeting::new(&lab);
    let first = Running::start(&mut lab.evaluation(&["--no-sync"]));
    assert_eq!(fifo.line(), "here");
    let lab = lab.file("README", "").commit_again();
    let second = Waiting::start(&lab, &["--no-sync"], &first);
    fs::remove_file(lab.path("meet/here")).unwrap();
    first.signal(Signal::KILL);
    second.says("1 computed");
    Ran::new(&lab, second.running.output()).exit(0);
    assert_eq!(executed(&lab), 2);
    drop(never);
    lab.ce_run(&["--no-sync"]).exit(0).says("1 reused");
}

#[test]
fn many_runs_at_many_commits_execute_a_call_once() {
    let mut lab = lab(false);
    let mut tasks = Vec::new();
    for at in 0..4 {
        lab = lab.file("README", format!("{at}\n")).commit_again();
        let copy = format!("task{at}");
        lab.copy("task", &copy);
        tasks.push(copy);
    }
    let start = |task: &String| {
        let mut command = lab.evaluation(&["--no-sync"]);
        Running::start(command.current_dir(lab.path(task)))
    };
    let running: Vec<Running> = tasks.iter().chain(&tasks).map(start).collect();
    for run in running {
        Ran::new(&lab, run.output()).exit(0);
    }
    assert_eq!(executed(&lab), 1);
    assert!(lab.is_tidy(), "{:?}", lab.storage());
}

#[test]
fn runs_of_all_kinds_at_many_commits_all_end() {
    if !is_possible() {
        return;
    }
    let mut lab = lab(true);
    let mut running = Vec::new();
    for at in 0..8 {
        lab = lab.file("README", format!("{at}\n")).commit_again();
        let options = Way::new(at % 2 == 0, at / 2 % 2 == 0).options(&lab);
        let copy = format!("task{at}");
        lab.copy("task", &copy);
        let mut command = lab.evaluation(options);
        running.push(Running::start(command.current_dir(lab.path(&copy))));
    }
    for run in running {
        Ran::new(&lab, run.output()).exit(0);
    }
    assert!(executed(&lab) >= 1);
    assert!(lab.is_tidy(), "{:?}", lab.storage());
}

#[test]
fn a_run_within_a_call_does_not_wait_for_that_call_at_another_commit() {
    let lab = Lab::task(TASK);
    let (other, storage) = (lab.path("other"), lab.path("storage"));
    let script = format!(
        r#"cd {} && "$CE_RUN" --no-isolate --no-sync {} "$1" "$2" 2>{}; echo $? >"$3""#,
        other.display(),
        storage.display(),
        lab.path("told").display(),
    );
    let lab = lab.computation("mul", "a b", "product", &script).commit();
    lab.git("task", &["config", "compeval.takeover", "tree"]);
    lab.copy("task", "other");
    let lab = lab.file("README", "").commit_again();
    lab.finish(lab.evaluation(&["--no-sync"]).env("CE_RUN", env!("CARGO_BIN_EXE_ce-run"))).exit(0);
    let told = fs::read_to_string(lab.path("told")).unwrap();
    assert!(told.contains("has started this run, which would wait for it forever"), "{told}");
}
