//! Runs on several hosts with one storage: processes that have a network, a name and numbers of
//! processes of their own, as containers have.
//!
//! The computation `twins` makes two outputs that are equal, and different each time, so a mixture
//! of two executions would be seen. It waits where a test wants it to.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use rustix::process::{Pid, Signal, kill_process};

use crate::fifo::{Fifo, Never};
use crate::lab::Lab;
use crate::needs;
use crate::program::{Ran, Running, through};

/// The time, in seconds, that a run may show nothing before others take it for dead.
const SILENCE: &str = "0.3";

/// Returns the words that start a program on another host; `None` if the kernel does not let them.
pub(crate) fn elsewhere() -> Option<&'static [&'static str]> {
    const START: [&str; 10] = [
        "unshare",
        "--user",
        "--map-root-user",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
        "--net",
        "--uts",
        "sh",
    ];
    static POSSIBLE: OnceLock<bool> = OnceLock::new();
    let possible = *POSSIBLE.get_or_init(|| {
        let probe = Command::new("unshare").args(["-rU", "true"]).stderr(Stdio::null()).status();
        probe.is_ok_and(|status| status.success())
    });
    if !possible {
        needs::lacks("user namespaces");
    }
    possible.then_some(&START)
}

/// A laboratory, if there can be other hosts.
fn lab() -> Option<Lab> {
    elsewhere()?;
    let twins = r#"
        if [ "${LAB_WAIT-}" ]; then
            exec 3>"$LAB_MEET"
            echo here >&3
            read -r on <"$LAB_WAIT"
        fi
        od -An -N8 -tx8 /dev/urandom >"$2"; cat "$2" >"$3""#;
    let same = r#"cmp "$1" "$2" && cat "$1" "$2" >"$3""#;
    let lab = Lab::task("Inputs: 'x'\n(same (twins INPUT('x'))[0, 1])[0]")
        .computation("twins", "seed", "one other", twins)
        .computation("same", "one other", "both", same);
    Some(lab.commit())
}

/// A run of `ce-run` whose messages are read line by line.
struct Host {
    running: Running,
    says: Fifo,
    /// The FIFO into which `twins` says that it is executed.
    meets: Option<Fifo>,
    /// The FIFO that `twins` waits for.
    waits: Never,
    waits_at: PathBuf,
}

impl Host {
    /// Starts it on a host of this name, up to a dot, or on this one; `twins` may wait if this run
    /// executes it.
    fn start(lab: &Lab, name: &str, holds: bool, silence: Option<&str>) -> Self {
        let mut evaluation = lab.evaluation(&["-j2"]);
        evaluation.envs(silence.map(|silence| ("CE_SILENCE", silence)));
        let [says, meets, waits_at] =
            ["says", "meets", "waits"].map(|what| lab.path(&format!("{what}-{name}")));
        if holds {
            evaluation.env("LAB_MEET", &meets).env("LAB_WAIT", &waits_at);
        }
        let mut command = match name {
            "here" => evaluation,
            name => {
                evaluation.env("LAB_BOOT", lab.path(&format!("boot-{name}")));
                let script = r#"
                    hostname "${0%%.*}"
                    [ ! -e "$LAB_BOOT" ] || mount --bind "$LAB_BOOT" /proc/sys/kernel/random/boot_id
                    case $0 in *.blind*) mount -t tmpfs none /proc;; esac
                    # Its process number is one that the others have not.
                    case $0 in *-late) for i in $(seq 40); do : $(:); done; "$@"; exit;; esac
                    exec "$@""#;
                let starter = [elsewhere().unwrap(), &["-c", script, name]].concat();
                through(&starter, &evaluation)
            }
        };
        let (fifo, waits) = (Fifo::new(&says), Never::new(waits_at.clone()));
        let meets = holds.then(|| Fifo::new(&meets));
        command.stderr(File::options().write(true).open(says).unwrap());
        Self { running: Running::start(&mut command), says: fifo, meets, waits, waits_at }
    }

    /// Waits until it executes `twins`.
    #[track_caller]
    fn holds(self) -> Self {
        assert_eq!(self.meets.as_ref().unwrap().line(), "here");
        self
    }

    /// Waits until it says that it waits for this process.
    #[track_caller]
    fn waits_for(self, holder: &str) -> Self {
        let line = self.says.line();
        let waits = line.contains("waits for process ");
        assert!(waits && line.contains(&format!("{holder}, which computes it")), "{line}");
        self
    }

    /// Lets `twins` go on.
    fn release(&self) {
        fs::write(&self.waits_at, "on\n").unwrap();
    }

    /// Waits for its end; returns the names of the results that it found or made.
    #[track_caller]
    fn done(self, lab: &Lab) -> String {
        let Self { running, says, waits, .. } = self;
        let ran = Ran::new(lab, running.output()).exit(0);
        drop((says, waits));
        ran.stdout
    }

    /// The process of `ce-run` as this host knows it; it takes the place of what started it.
    fn process(&self, name: &str) -> Pid {
        if name == "here" {
            return self.running.pid;
        }
        child(self.running.pid)
    }
}

/// The only child of a process.
pub(crate) fn child(process: Pid) -> Pid {
    let process = process.as_raw_nonzero();
    let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children"));
    Pid::from_raw(children.unwrap().trim().parse().unwrap()).unwrap()
}

/// Checks the law that must hold when all runs are over: one result, whole, and nothing else.
#[track_caller]
fn is_right(lab: &Lab, called: &[&str]) {
    let mut now = lab.called();
    now.sort();
    assert_eq!(now, called);
    let results = lab.results();
    let twins: Vec<_> = results.iter().filter(|(name, _)| name.starts_with("c_twins/")).collect();
    let [(_, one), (_, other)] = twins[..] else { panic!("{twins:?}") };
    assert_eq!(one, other, "of one execution");
    assert!(lab.is_tidy(), "{:?}", lab.storage());
    assert!(!lab.storage().iter().any(|name| name.contains("/running/")), "{:?}", lab.storage());
    lab.run("ce", &["verify", "../storage"]).exit(0);
    lab.ce_run(&[]).exit(0).called(vec![]);
}

#[test]
fn runs_on_several_hosts_execute_each_call_once_and_say_for_whom_they_wait() {
    let Some(lab) = lab() else { return };
    let first = Host::start(&lab, "first", true, None).holds();
    let others = ["second", "third", "here"]
        .map(|name| Host::start(&lab, name, false, None).waits_for("process 1 on first"));
    lab.run("ce-viz", &["../storage", "../data/x"]).exit(0).shows("[label=\"twins: running\"");
    first.release();
    let printed = first.done(&lab);
    for other in others {
        assert_eq!(other.done(&lab).lines().last(), printed.lines().last());
    }
    is_right(&lab, &["same", "twins"]);
}

#[test]
fn hosts_of_the_same_name_leave_files_of_each_other_alone() {
    let Some(lab) = lab() else { return };
    for (at, name) in ["same.a", "same.b"].into_iter().enumerate() {
        fs::write(lab.path(&format!("boot-{name}")), format!("0000000{at}-0000\n")).unwrap();
    }
    let first = Host::start(&lab, "same.a", true, None).holds();
    let second = Host::start(&lab, "same.b", false, None).waits_for("process 1 on same");
    first.release();
    first.done(&lab);
    second.done(&lab);
    is_right(&lab, &["same", "twins"]);
}

#[test]
fn a_run_is_not_taken_for_dead_by_hosts_that_cannot_tell_whether_it_lives() {
    // The second one has a /proc.
    for other in ["same.blind", "same.b"] {
        let Some(lab) = lab() else { return };
        let first = Host::start(&lab, "same.blind-late", true, None).holds();
        let second = Host::start(&lab, other, false, None).waits_for(" on same");
        let rooms = fs::read_dir(lab.path("storage/tmp")).unwrap().count();
        assert_eq!(rooms, 2, "the directory of the one that computes is still there");
        first.release();
        let printed = first.done(&lab);
        assert_eq!(second.done(&lab).lines().last(), printed.lines().last());
        is_right(&lab, &["same", "twins"]);
    }
}

#[test]
fn a_run_on_another_host_that_dies_is_replaced() {
    let Some(lab) = lab() else { return };
    let first = Host::start(&lab, "first", true, Some(SILENCE)).holds();
    let second = Host::start(&lab, "second", true, Some(SILENCE)).waits_for("process 1 on first");
    // It is too patient to be faster than the second one.
    let third = Host::start(&lab, "third", false, None).waits_for("process 1 on first");
    kill_process(first.process("first"), Signal::KILL).unwrap();
    let second = second.holds();
    let third = third.waits_for("process 1 on second");
    second.release();
    second.done(&lab);
    third.done(&lab);
    first.running.output();
    // Leftovers of the dead run are removed by a run on its host.
    let theirs = lab.path("storage/tmp").read_dir().unwrap().map(|entry| entry.unwrap().path());
    theirs.for_each(|left| fs::remove_dir_all(left).unwrap());
    is_right(&lab, &["same", "twins", "twins"]);
}

/// A process that is stopped until this goes.
struct Stopped(Pid);

impl Stopped {
    fn new(process: Pid) -> Self {
        kill_process(process, Signal::STOP).unwrap();
        Self(process)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        kill_process(self.0, Signal::CONT).unwrap();
    }
}

/// A run is stopped for so long that another takes its call over; then both are there.
fn stopped_and_replaced(lab: &Lab, hosts: [&str; 2]) -> [Host; 2] {
    let first = Host::start(lab, hosts[0], true, Some(SILENCE)).holds();
    let process = first.process(hosts[0]);
    let second = Host::start(lab, hosts[1], true, Some(SILENCE));
    let holder = match hosts[0] {
        "here" => format!("process {} on {}", process.as_raw_nonzero(), own_name()),
        name => format!("process 1 on {name}"),
    };
    let second = second.waits_for(&holder);
    let stopped = Stopped::new(process);
    let second = second.holds();
    drop(stopped);
    [first, second]
}

fn own_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

fn lease(lab: &Lab) -> Option<String> {
    let name = lab.storage().into_iter().find(|name| name.contains("/running/"))?;
    Some(lab.stored(&name))
}

#[test]
fn a_run_that_was_stopped_for_too_long_does_not_break_a_lease() {
    for hosts in [["first", "second"], ["here", "second"]] {
        let Some(lab) = lab() else { return };
        let [first, second] = stopped_and_replaced(&lab, hosts);
        let before = lease(&lab);
        assert!(before.as_ref().is_some_and(|lease| lease.starts_with("second-")), "{before:?}");
        first.release();
        first.done(&lab);
        assert_eq!(lease(&lab), before, "the other one still computes");
        second.release();
        second.done(&lab);
        is_right(&lab, &["same", "twins", "twins"]);
    }
}

#[test]
fn a_run_that_was_stopped_for_too_long_uses_results_of_another() {
    for hosts in [["first", "second"], ["here", "second"]] {
        let Some(lab) = lab() else { return };
        let [first, second] = stopped_and_replaced(&lab, hosts);
        second.release();
        second.done(&lab);
        first.release();
        first.done(&lab);
        is_right(&lab, &["same", "twins", "twins"]);
    }
}

#[test]
fn a_run_whose_heart_beats_while_it_ends_leaves_nothing() {
    let lab = Lab::task("Inputs: 'x'\n(add INPUT('x') INPUT('x'))[0]").commit();
    for _ in 0..10 {
        // It beats all the time.
        let mut run = lab.evaluation(&[]);
        lab.finish(run.env("CE_SILENCE", "0.0001")).exit(0);
        assert!(lab.is_tidy(), "{:?}", lab.storage());
    }
}
