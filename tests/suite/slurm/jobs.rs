//! Runs that are jobs of Slurm themselves.

use std::fs;

use super::cluster::{Cluster, wait_for};
use super::deaths::MEET;
use super::runs::one_call;
use crate::lab::Lab;
use crate::program::Ran;

/// A run that was submitted.
struct RunJob<'a> {
    cluster: &'a Cluster,
    /// The name of all its jobs.
    token: String,
    /// The number of the first one.
    number: String,
}

impl<'a> RunJob<'a> {
    /// The run that a program says it has submitted.
    #[track_caller]
    fn submitted(ran: &Ran<'_>, cluster: &'a Cluster) -> Self {
        let after = |text: &str| {
            let rest = ran.stderr.split(text).nth(1).unwrap_or_else(|| panic!("{}", ran.stderr));
            rest.split([' ', '\n', ',']).next().unwrap().to_owned()
        };
        let (number, token) = (after("goes on as job "), after("squeue --name="));
        Self { cluster, token, number }
    }

    /// The states of its jobs, in the order of their submission.
    fn states(&self) -> Vec<String> {
        let name = format!("--name={}", self.token);
        let arguments = ["--noheader", "--states=all", "--sort=i", "--format=%T", &name];
        self.cluster.ask("squeue", &arguments).lines().map(str::to_owned).collect()
    }

    /// Waits until its jobs are in these states.
    #[track_caller]
    fn wait_for(&self, states: &[&str]) {
        wait_for(&format!("{states:?}"), || (self.states() == states).then_some(()));
    }
}

/// Returns the log of the only run in the background.
fn log(lab: &Lab) -> String {
    let runs = fs::read_dir(lab.path("storage/runs")).unwrap();
    let logs: Vec<_> = runs.map(|run| run.unwrap().path().join("log")).collect();
    let [log] = &logs[..] else { panic!("{logs:?}") };
    fs::read_to_string(log).unwrap()
}

#[test]
fn a_run_hands_over_in_time_to_a_job_of_the_same_commit_and_inputs() {
    let Some(cluster) = Cluster::shared() else { return };
    let lab = one_call(MEET);
    let (mut run, fifo, never) = lab.holding_on(cluster);
    let ran = lab.finish(run.arg("--detach=job")).exit(0);
    assert_eq!(ran.stdout, "");
    let job = RunJob::submitted(&ran, cluster);
    assert_eq!(fifo.line(), "here");
    let before = fs::read_to_string(lab.path("data/x")).unwrap();
    let lab = lab.data("x", "1000").computation("call", "x", "y", "exit 1").commit_again();
    job.wait_for(&["RUNNING"]);
    // As Slurm does before the time is over.
    cluster.ask("scancel", &["--batch", "--signal=USR1", &job.number]);
    job.wait_for(&["COMPLETED", "RUNNING"]);
    wait_for("run", || {
        let status = lab.finish(lab.command("ce").args(["status", "../storage"])).exit(0);
        status.stdout.contains("run of task at ").then_some(())
    });
    never.let_go();
    job.wait_for(&["COMPLETED", "COMPLETED"]);
    lab.is_left_alone_by(cluster);
    let log = log(&lab);
    assert!(log.contains("the time of this job is over soon"), "{log}");
    let output = log.lines().skip_while(|line| *line != "Task outputs are:").last().unwrap();
    assert!(output.contains("1 call: 1 reused") || output.contains("1 computed"), "{log}");
    let made: Vec<_> = lab.results().into_iter().filter(|it| it.0.starts_with("c_call/")).collect();
    assert_eq!(made.len(), 1);
    assert_eq!(made[0].1, before.as_bytes());
    assert_eq!(lab.called(), ["call"]);
}

#[test]
fn a_run_that_waits_as_a_job_is_shown_until_it_begins_or_is_cancelled() {
    let Some(cluster) = Cluster::shared() else { return };
    let status = |lab: &Lab, json: bool| {
        let mut command = lab.command("ce");
        command.env("SLURM_CONF", &cluster.conf);
        command.args(["status", "../storage"]).args(json.then_some("--json"));
        lab.finish(&mut command).exit(0).stdout
    };
    let lab = one_call("").set("options", "--begin=now+1hour");
    let job = RunJob::submitted(&lab.ce_run_on(cluster, &["--detach=job"]).exit(0), cluster);
    let shown = status(&lab, false);
    assert!(shown.starts_with("no run is going on\nrun of task at "), "{shown}");
    assert!(shown.contains(&format!(": waits as job {} of Slurm, for 0:0", job.token)), "{shown}");
    let json: serde_json::Value = serde_json::from_str(&status(&lab, true)).unwrap();
    assert_eq!(json["submitted"][0]["job"], *job.token);
    cluster.ask("scancel", &[&job.number]);
    job.wait_for(&["CANCELLED"]);
    assert_eq!(status(&lab, false), "no run is going on\n");

    let lab = one_call(MEET);
    let (mut run, fifo, never) = lab.holding_on(cluster);
    let job = RunJob::submitted(&lab.finish(run.arg("--detach=job")).exit(0), cluster);
    assert_eq!(fifo.line(), "here");
    let shown = status(&lab, false);
    // It names its task within a second or so.
    assert!(shown.starts_with("run") && !shown.contains("waits as job"), "{shown}");
    never.let_go();
    job.wait_for(&["COMPLETED"]);
    let shown = status(&lab, false);
    assert!(!shown.contains("waits as job"), "{shown}");
    lab.is_left_alone_by(cluster);
}

#[test]
fn a_cancelled_or_failed_job_is_not_submitted_again() {
    let Some(cluster) = Cluster::shared() else { return };
    let lab = one_call(MEET);
    let (mut run, fifo, never) = lab.holding_on(cluster);
    let job = RunJob::submitted(&lab.finish(run.arg("--detach=job")).exit(0), cluster);
    assert_eq!(fifo.line(), "here");
    job.wait_for(&["RUNNING"]);
    cluster.ask("scancel", &[&job.number]);
    job.wait_for(&["CANCELLED"]);
    never.let_go();
    wait_for("end of all jobs", || cluster.jobs_in(&lab.path("storage")).is_empty().then_some(()));
    job.wait_for(&["CANCELLED"]);
    assert!(!log(&lab).contains("submitted again"), "{}", log(&lab));

    let lab = one_call("exit 3");
    let ran = lab.ce_run_on(cluster, &["--detach=job"]).exit(0);
    let job = RunJob::submitted(&ran, cluster);
    job.wait_for(&["FAILED"]);
    assert!(log(&lab).contains("it ended with exit status 3"), "{}", log(&lab));
    lab.is_left_alone_by(cluster);
    job.wait_for(&["FAILED"]);
}

#[test]
fn a_run_that_cannot_be_a_job_is_refused_at_the_terminal() {
    let lab = one_call("");
    lab.ce_run(&["--detach=job"]).exit(2).says("--on here and --detach=job exclude each other");
    let job = ["--on", "slurm", "--detach=job"];
    let force = ["--force", "c_call/0123456789ab/0123456789ab"];
    let forced = lab.ce_run(&[&job[..], &force].concat()).exit(2);
    forced.says("--force and --detach=job exclude each other");
    let lab = lab.file("../points.tsv", "x\n1\n");
    let mut sheet = lab.command("ce-run");
    sheet.args(job).args(["--points", "../points.tsv", "../storage"]);
    lab.finish(&mut sheet).exit(2).says("--points and --detach=job exclude each other");
    let workers = lab.ce_run(&["--on", "workers", "--detach=job"]).exit(2);
    workers.says("--on workers and --detach=job").says("try: give --on slurm");
    let lab = lab.file("workflow/inputs/00-x/value", "z").file("inputs", "z\n");
    lab.ce_run(&job).exit(2).says("an uncommitted task and --detach=job exclude each other");
    assert!(!lab.path("storage/runs").exists() && lab.is_tidy());
}

#[test]
fn a_run_whose_node_is_taken_from_it_goes_on() {
    let Some(cluster) = Cluster::shared() else { return };
    let lab = one_call(MEET);
    let (mut run, fifo, never) = lab.holding_on(cluster);
    let job = RunJob::submitted(&lab.finish(run.arg("--detach=job")).exit(0), cluster);
    assert_eq!(fifo.line(), "here");
    job.wait_for(&["RUNNING"]);
    cluster.ask("scontrol", &["requeue", &job.number]);
    wait_for("restart", || {
        let told = cluster.ask("scontrol", &["--oneliner", "show", "job", &job.number]);
        (told.contains("Restarts=1 ") && job.states() == ["RUNNING"]).then_some(())
    });
    never.let_go();
    job.wait_for(&["COMPLETED"]);
    lab.is_left_alone_by(cluster);
    assert_eq!(lab.called(), ["call"]);
}
