//! Runs on a Slurm whose daemons die, and on nodes that start nothing.

use std::fs;
use std::process::Command;

use rustix::process::Signal;

use super::cluster::{Cluster, wait_for};
use super::runs::one_call;
use crate::fifo::Fifo;
use crate::lab::Lab;
use crate::program::{Ran, Running};

impl Lab {
    /// A run on a cluster that waits for Slurm a twentieth of the time.
    fn hasty_on(&self, cluster: &Cluster) -> (Command, Fifo) {
        let mut run = self.on(cluster, &[]);
        let fifo = Fifo::new(&self.path("says"));
        run.env("CE_HASTE", "20");
        run.stderr(fs::File::options().write(true).open(self.path("says")).unwrap());
        (run, fifo)
    }
}

/// Waits until a program says something.
#[track_caller]
fn says(fifo: &Fifo, text: &str) {
    while !fifo.line().contains(text) {}
}

#[test]
fn jobs_that_slurm_has_lost_are_submitted_again() {
    let Some(cluster) = Cluster::start(1) else { return };
    let lab = one_call("");
    cluster.ask("scontrol", &["update", "nodename=n1", "state=drain", "reason=test"]);
    let (mut run, fifo) = lab.hasty_on(&cluster);
    let run = Running::start(&mut run);
    let lost = wait_for("job", || cluster.jobs_in(&lab.path("storage")).pop());
    cluster.signal("slurmctld", Signal::KILL);
    cluster.forget_jobs();
    assert!(cluster.repair(1));
    says(&fifo, "was lost: Slurm knows no such job");
    Ran::new(&lab, run.output()).exit(0).called(vec!["call"]);
    lab.is_left_alone_by(&cluster);
    let number = |job: &str| job.split('_').next().unwrap().to_owned();
    let jobs = cluster.ask("squeue", &["--noheader", "--states=all", "--format=%A"]);
    assert_eq!(jobs.trim(), number(&lost), "its number was assigned again");

    // Nothing can be asked, until munge is there again.
    let lab = one_call("");
    cluster.signal("munged", Signal::STOP);
    let (mut run, fifo) = lab.hasty_on(&cluster);
    let run = Running::start(&mut run);
    says(&fifo, "workers are submitted again later: sbatch did not answer for 3 s");
    cluster.signal("munged", Signal::CONT);
    Ran::new(&lab, run.output()).exit(0).called(vec!["call"]);
    lab.is_left_alone_by(&cluster);
}

#[test]
fn workers_that_cannot_start_end_the_run() {
    let Some(cluster) = Cluster::shared() else { return };
    let lab = one_call("").set("prologue", "echo no such module; exit 9");
    let mut run = lab.on(cluster, &[]);
    let ran = lab.finish(run.env("CE_HASTE", "20")).exit(3).says("no more workers are submitted");
    ran.says("ended at its start: FAILED (NonZeroExitCode)").called(vec![]);
    lab.is_left_alone_by(cluster);
}

#[test]
fn workers_that_never_begin_a_call_end_the_run() {
    let Some(cluster) = Cluster::shared() else { return };
    // No worker has an hour.
    let lab = one_call("").file("resources", "call time 1h\n").commit_again();
    let lab = lab.set("prologue", "export COMPEVAL_DEADLINE=$(($(date +%s) + 2))");
    let mut run = lab.on(cluster, &[]);
    let ran = lab.finish(run.env("CE_HASTE", "20")).exit(3).says("no more workers are submitted");
    ran.says("5 workers in a row ended, and had executed nothing").called(vec![]);
    lab.is_left_alone_by(cluster);
}

#[test]
fn nodes_where_no_worker_starts_are_left_out() {
    let Some(cluster) = Cluster::shared() else { return };
    let lab = one_call("").set("prologue", "[ $SLURMD_NODENAME = n3 ] || exit 9");
    let mut run = lab.on(cluster, &[]);
    lab.finish(run.env("CE_HASTE", "20")).exit(0).called(vec!["call"]);
    lab.is_left_alone_by(cluster);
}
