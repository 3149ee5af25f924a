//! Runs, workers and daemons of their hosts that end in the middle of a call.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::cluster::{Cluster, wait_for};
use super::runs::one_call;
use crate::fifo::{Fifo, Never};
use crate::lab::Lab;
use crate::program::{Ran, Running};

/// The script of the first execution: it waits until it is let go.
pub(crate) const MEET: &str = r#"if mkdir "$LAB_ONCE" 2>/dev/null; then echo here >"$LAB_MEET"; cat "$LAB_WAIT" || kill $$; fi"#;

/// The time within which a program ends that does not wait for Slurm.
const PROMPT: Duration = Duration::from_secs(30);

impl Lab {
    /// A run on a cluster whose first call waits until it is let go.
    pub(super) fn holding_on(&self, cluster: &Cluster) -> (Command, Fifo, Never) {
        let [meet, wait, once] = ["meet", "wait", "once"].map(|it| self.path(it));
        let (fifo, never) = (Fifo::new(&meet), Never::new(wait.clone()));
        let mut run = self.on(cluster, &[]);
        run.env("LAB_MEET", meet).env("LAB_WAIT", wait).env("LAB_ONCE", once);
        (run, fifo, never)
    }

    /// Kills the only worker.
    #[track_caller]
    pub(crate) fn kill_worker(&self) {
        kill_process(self.worker_process(), Signal::KILL).unwrap();
    }

    /// The process of the only worker.
    #[track_caller]
    fn worker_process(&self) -> Pid {
        let runs = fs::read_dir(self.path("storage/tmp")).unwrap();
        let runs = runs.map(|run| run.unwrap().path());
        let workers: Vec<PathBuf> = runs.filter(|run| run.join("worker.json").exists()).collect();
        let [worker] = &workers[..] else { panic!("these are workers: {workers:?}") };
        // HOST-BOOT-NAMESPACE-PROCESS-TIME
        let name = worker.file_name().unwrap().to_str().unwrap();
        Pid::from_raw(name.rsplit('-').nth(1).unwrap().parse().unwrap()).unwrap()
    }
}

/// The process that has started another one.
fn parent(process: Pid) -> Pid {
    let status = fs::read_to_string(format!("/proc/{}/status", process.as_raw_nonzero())).unwrap();
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap();
    Pid::from_raw(parent.trim().parse().unwrap()).unwrap()
}

#[test]
fn an_interrupted_run_leaves_nothing_pending_and_the_next_one_goes_on() {
    let Some(cluster) = Cluster::shared() else { return };
    let lab = one_call("").set("options", "--begin=now+1hour");
    let run = Running::start(&mut lab.on(cluster, &[]));
    wait_for("job", || (!cluster.jobs_in(&lab.path("storage")).is_empty()).then_some(()));
    run.signal(Signal::INT);
    let ran = Ran::new(&lab, run.output()).exit(130);
    assert_eq!(cluster.jobs_in(&lab.path("storage")), [""; 0], "{}", ran.stderr);
    assert!(lab.is_tidy());
    let lab = lab.set("options", "");
    lab.ce_run_on(cluster, &[]).exit(0).called(vec!["call"]);
    lab.is_left_alone_by(cluster);
}

#[test]
fn a_second_interrupt_does_not_wait_for_calls() {
    let Some(cluster) = Cluster::shared() else { return };
    let lab = one_call(MEET);
    let (mut run, fifo, never) = lab.holding_on(cluster);
    let run = Running::start(&mut run);
    assert_eq!(fifo.line(), "here");
    run.signal(Signal::INT);
    run.signal(Signal::TERM);
    // Two signals at once come in any order.
    assert!(matches!(run.output().status.code(), Some(130 | 143)));
    // The call has not ended.
    never.let_go();
    lab.ce_run_on(cluster, &[]).exit(0).called(vec!["call"]);
    lab.is_left_alone_by(cluster);
}

#[test]
fn an_interrupt_does_not_wait_for_slurm() {
    for signals in [&[Signal::INT][..], &[Signal::INT, Signal::INT]] {
        let lab = one_call("");
        fs::create_dir(lab.path("bin")).unwrap();
        let fifo = Fifo::new(&lab.path("meet"));
        lab.program("sbatch", "echo here >\"$LAB_MEET\"; exec sleep 600");
        lab.program("scancel", "exec sleep 600");
        let path = format!("{}:/usr/bin:/bin", lab.path("bin").display());
        let mut run = lab.evaluation(&["--on", "slurm"]);
        let run = Running::start(run.env("PATH", path).env("LAB_MEET", lab.path("meet")));
        assert_eq!(fifo.line(), "here");
        let begin = Instant::now();
        signals.iter().for_each(|signal| run.signal(*signal));
        let ran = Ran::new(&lab, run.output()).exit(130);
        assert!(begin.elapsed() < PROMPT, "{:?}", begin.elapsed());
        ran.says("jobs may be left").says("try: scancel --name=ce-");
        assert!(lab.is_tidy());
    }
}

#[test]
fn workers_of_a_killed_run_publish_begun_calls_and_end() {
    let Some(cluster) = Cluster::shared() else { return };
    let lab = one_call(MEET);
    let (mut run, fifo, never) = lab.holding_on(cluster);
    let run = Running::start(&mut run);
    assert_eq!(fifo.line(), "here");
    run.signal(Signal::KILL);
    run.output();
    never.let_go();
    wait_for("end of all jobs", || cluster.jobs_in(&lab.path("storage")).is_empty().then_some(()));
    lab.ce_run(&[]).exit(0).called(vec!["call"]);
    assert!(lab.is_tidy());
}

/// Lets something happen to the worker that executes a call. Returns the number of executions, and the messages of the run.
#[track_caller]
fn after(act: impl FnOnce(&Cluster, &Lab, &mut Option<Never>)) -> (usize, String) {
    let cluster = Cluster::shared().unwrap();
    let lab = one_call(MEET);
    let (mut run, fifo, never) = lab.holding_on(cluster);
    // A worker may end before its run has seen it: then its hello is waited for.
    let run = Running::start(run.env("CE_HASTE", "20"));
    assert_eq!(fifo.line(), "here");
    let mut never = Some(never);
    act(cluster, &lab, &mut never);
    let ran = Ran::new(&lab, run.output()).exit(0);
    let stderr = ran.stderr;
    let called = lab.called().len();
    lab.ce_run(&[]).exit(0).called(vec![]);
    // Slurm may show the jobs for a minute yet.
    wait_for("tidy storage", || lab.is_tidy().then_some(()));
    (called, stderr)
}

#[test]
fn the_call_of_a_cancelled_worker_is_executed_again() {
    let Some(_) = Cluster::shared() else { return };
    let (called, stderr) = after(|cluster, lab, _| {
        let jobs = cluster.jobs_in(&lab.path("storage"));
        assert_eq!(jobs.len(), 1, "{jobs:?}");
        cluster.ask("scancel", &[jobs[0].split(' ').next().unwrap()]);
        wait_for("end", || cluster.jobs_in(&lab.path("storage")).ne(&jobs).then_some(()));
    });
    assert_eq!(called, 2, "{stderr}");
}

#[test]
fn the_call_of_a_killed_worker_is_executed_again() {
    let Some(_) = Cluster::shared() else { return };
    let (called, stderr) = after(|_, lab, _| lab.kill_worker());
    assert_eq!(called, 2, "{stderr}");
}

/// Nothing limits the memory of this cluster: its answers are changed.
#[test]
fn a_call_whose_worker_was_ended_for_its_memory_gets_a_worker_with_more() {
    let Some(cluster) = Cluster::shared() else { return };
    let lab = one_call(MEET).file("resources", "call memory 16M..64M\n").commit_again();
    fs::create_dir(lab.path("bin")).unwrap();
    // Slurm may show a job as running when its worker is dead.
    let ended = lab.path("bin/ended");
    lab.program(
        "squeue",
        &format!(
            "job=$(cat {} 2>/dev/null); /usr/bin/squeue \"$@\" | sed -E \"/^${{job:-none}}[|]/s/[|][A-Z_]+[|]/|OUT_OF_MEMORY|/\"",
            ended.display()
        ),
    );
    let (mut run, fifo, never) = lab.holding_on(cluster);
    let path = std::env::var("PATH").unwrap();
    let run = Running::start(run.env("PATH", format!("{}:{path}", lab.path("bin").display())));
    assert_eq!(fifo.line(), "here");
    let jobs = cluster.jobs_in(&lab.path("storage"));
    fs::write(ended, jobs[0].split(' ').next().unwrap()).unwrap();
    lab.kill_worker();
    drop(never);
    let ran = Ran::new(&lab, run.output()).exit(0).called(vec!["call"; 2]);
    ran.says(
        "call (TASK): it used more than its 16.0 MiB of memory; the next attempt has memory 32M\n",
    );
    let record =
        lab.storage().into_iter().find(|it| it.starts_with("c_call/") && it.contains("/record/"));
    let record = lab.stored(&record.unwrap());
    assert!(record.contains(r#""limit": "memory 16M""#), "{record}");
    assert!(record.contains("memory 32M..64M"), "{record}");
    lab.is_left_alone_by(cluster);
}

#[test]
fn a_worker_that_is_cut_off_with_its_node_does_no_harm() {
    let Some(cluster) = Cluster::start(2) else { return };
    // These nodes are one host: each has locks of its own, as hosts have.
    let cache = "export XDG_CACHE_HOME=$HOME/cache-$SLURMD_NODENAME";
    let different = format!("{MEET}; cat /proc/sys/kernel/random/uuid >\"$2\"; exit");
    let lab = one_call(&different).set("prologue", cache);
    let (mut run, fifo, never) = lab.holding_on(&cluster);
    // A process that is silent for so long is taken for dead.
    let run = Running::start(run.env("CE_HASTE", "20").env("CE_SILENCE", "5"));
    assert_eq!(fifo.line(), "here");
    let jobs = cluster.jobs_in(&lab.path("storage"));
    let node = jobs[0].rsplit(' ').next().unwrap();
    let worker = lab.worker_process();
    // The worker hangs, and nobody on its node can end it.
    cluster.signal(&format!("slurmd-{node}"), Signal::KILL);
    kill_process(worker, Signal::STOP).unwrap();
    cluster.ask("scontrol", &["update", &format!("nodename={node}"), "state=down", "reason=test"]);
    drop(Ran::new(&lab, run.output()).exit(0));
    let made = || {
        let results = lab.results().into_iter().filter(|(name, _)| name.starts_with("c_call/"));
        results.collect::<Vec<_>>()
    };
    let first = made();
    // It comes back, and makes something else.
    kill_process(worker, Signal::CONT).unwrap();
    never.let_go();
    wait_for("tidy storage", || lab.is_tidy().then_some(()));
    assert_eq!(lab.called(), ["call", "call"], "it ran twice");
    assert_eq!((first.len(), made()), (1, first), "the first result stands");
    lab.run("ce", &["verify", "../storage"]).exit(0);
    lab.ce_run(&[]).exit(0).called(vec![]);
}

#[test]
fn a_worker_whose_slurmstepd_is_killed_goes_on() {
    let Some(_) = Cluster::shared() else { return };
    let (called, stderr) = after(|_, lab, never| {
        let step = parent(lab.worker_process());
        let name = fs::read_to_string(format!("/proc/{}/comm", step.as_raw_nonzero())).unwrap();
        assert!(name.starts_with("slurmstepd"), "{name}");
        kill_process(step, Signal::KILL).unwrap();
        never.take().unwrap().let_go();
    });
    assert_eq!(called, 1, "{stderr}");
}
