//! Runs whose calls are executed by workers on Slurm, from the first submission to the end of the last worker.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use super::cluster::{Cluster, wait_for};
use crate::lab::{Lab, files};
use crate::program::{Ran, Running};
use crate::sweeps::sweep;
use crate::sweeps::until::measured;

/// A call that fails unless its input is even.
const PARITY: &str = r#"[ $(($(cat "$1") % 2)) = 0 ] || exit $(cat "$1"); cp "$1" "$2""#;
/// A sum of products, in which two calls are the same.
const SUM: &str = "Inputs: 'x', 'y'\n(add (mul INPUT('x') INPUT('y'))[0] (add (mul INPUT('x') INPUT('y'))[0] INPUT('x'))[0])[0]";

impl Lab {
    /// A run whose workers are submitted to a cluster.
    pub(super) fn on(&self, cluster: &Cluster, options: &[&str]) -> Command {
        let mut run = self.evaluation(&[&["--on", "slurm"], options].concat());
        run.env("SLURM_CONF", &cluster.conf);
        run
    }

    /// Such a run from its beginning to its end.
    #[track_caller]
    pub(super) fn ce_run_on(&self, cluster: &Cluster, options: &[&str]) -> Ran<'_> {
        let run = Running::start(&mut self.on(cluster, options));
        Ran::new(self, run.output())
    }

    /// Changes a setting of the user.
    pub(super) fn set(self, name: &str, value: &str) -> Self {
        self.git("task", &["config", "--global", &format!("compeval.slurm.{name}"), value]);
        self
    }

    /// Makes a program in `bin/`.
    pub(super) fn program(&self, name: &str, script: &str) {
        let path = self.path("bin").join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Waits until nothing is left of workers and runs.
    #[track_caller]
    pub(super) fn is_left_alone_by(&self, cluster: &Cluster) {
        wait_for("end of all jobs", || {
            cluster.jobs_in(&self.path("storage")).is_empty().then_some(())
        });
        wait_for("tidy storage", || self.is_tidy().then_some(()));
    }
}

#[test]
fn workers_on_slurm_agree_with_a_local_run() {
    let Some(cluster) = Cluster::shared() else { return };
    for isolated in [false, true] {
        let [here, there] = [(); 2].map(|()| {
            let lab = Lab::task(SUM).with_storage();
            let lab = if isolated { lab.isolated() } else { lab };
            lab.commit()
        });
        let expected = here.ce_run(&[]).exit(0);
        let ran = there.ce_run_on(cluster, &[]).exit(0);
        assert_eq!((ran.stdout, ran.stderr), (expected.stdout, expected.stderr));
        there.is_left_alone_by(cluster);
        assert!(there.results() == here.results(), "isolated: {isolated}");
        assert_eq!(there.called(), here.called());
    }
}

#[test]
fn workers_on_slurm_audit_calls() {
    let Some(cluster) = Cluster::shared() else { return };
    let lab = Lab::task(SUM).with_storage().commit();
    lab.ce_run(&[]).exit(0).called(vec!["add", "add", "mul"]);
    let before = lab.results();
    let mut audit = lab.command("ce");
    audit.args(["audit", "--no-isolate", "--on", "slurm", "../storage"]);
    let audit = Running::start(audit.env("SLURM_CONF", &cluster.conf));
    let ran = Ran::new(&lab, audit.output()).exit(0).called(vec!["add", "add", "mul"]);
    assert!(ran.stderr.contains("ce: 3 calls audited: 3 agree\n"), "{}", ran.stderr);
    lab.is_left_alone_by(cluster);
    assert!(lab.results() == before, "nothing that is published changes");
}

#[test]
fn exit_statuses_of_many_calls_are_reported() {
    let Some(cluster) = Cluster::shared() else { return };
    // Status 75 means a suspended call.
    let all = || (1..=201).filter(|number| *number != 75_u32);
    let numbers: String = all().map(|number| format!("{number}\n")).collect();
    let lab = sweep("", &[("factors/00-n", &numbers), ("allow-failed", "")])
        .computation("parity", "n", "out", PARITY)
        .call("inputs/00-body/", "parity", &["n"])
        .with_storage()
        .commit()
        .set("workers", "3");
    let ran = lab.ce_run_on(cluster, &[]).exit(0);
    lab.is_left_alone_by(cluster);
    assert_eq!(lab.called().len(), 200, "{}", ran.stderr);
    let (table, even) = (lab.table(), |number: &u32| number.is_multiple_of(2));
    let expected = |number| {
        let out = if even(&number) { number.to_string() } else { "null".to_owned() };
        let status = if even(&number) { "ok" } else { "failed" };
        format!("{{\"n\":{number},\"out\":{out},\"status\":\"{status}\"}}\n")
    };
    assert_eq!(table, all().map(expected).collect::<String>());
    let statuses: BTreeSet<u64> = (files(&lab.path("storage")).into_iter())
        .filter(|(name, _)| name.contains("/failed/") && !name.ends_with("log"))
        .filter_map(|(_, text)| serde_json::from_slice::<serde_json::Value>(&text).ok())
        .map(|record| record["exit_status"].as_u64().unwrap())
        .collect();
    let odd = all().filter(|number| !number.is_multiple_of(2));
    assert_eq!(statuses, odd.map(u64::from).collect());
}

#[test]
fn workers_on_slurm_execute_a_computation_in_one_file() {
    let Some(cluster) = Cluster::shared() else { return };
    for isolated in [false, true] {
        let script = "#!/bin/sh\n#CE inputs x\n#CE outputs y\ncat \"$1\" >\"$2\"\n";
        let lab = Lab::task("Inputs: 'x'\n(call INPUT('x'))[0]").with_storage();
        let lab = lab.file("computations/call.sh", script).mode("computations/call.sh", 0o755);
        let lab = if isolated { lab.isolated() } else { lab }.commit();
        lab.ce_run_on(cluster, &[]).exit(0);
        lab.is_left_alone_by(cluster);
        assert_eq!(lab.output(), "17\n", "isolated: {isolated}");
    }
}

/// A task with one call.
pub(crate) fn one_call(script: &str) -> Lab {
    let script = format!("{script}\ncat \"$1\" >\"$2\"");
    Lab::task("Inputs: 'x'\n(call INPUT('x'))[0]")
        .computation("call", "x", "y", &script)
        .with_storage()
        .commit()
}

#[test]
fn runs_share_the_workers_that_each_of_them_submits() {
    let Some(cluster) = Cluster::shared() else { return };
    let lab = Lab::task(SUM).with_storage().data("z", "5\n").commit();
    let first = Running::start(&mut lab.on(cluster, &[]));
    let mut second = lab.command("ce-run");
    second.args(["--on", "slurm", "../storage", "../data/z", "../data/z"]);
    let second = Running::start(second.env("SLURM_CONF", &cluster.conf));
    let third = Running::start(&mut lab.on(cluster, &[]));
    for run in [first, second, third] {
        Ran::new(&lab, run.output()).exit(0);
    }
    lab.is_left_alone_by(cluster);
    let mut called = lab.called();
    called.sort();
    assert_eq!(called, ["add", "add", "add", "add", "mul", "mul"], "each once");
}

#[test]
fn settings_that_the_cluster_refuses_are_reported_and_nothing_hangs() {
    let Some(cluster) = Cluster::shared() else { return };
    let lab = one_call("").set("partition", "none");
    let ran = lab.ce_run_on(cluster, &[]).exit(3);
    let ran = ran.says("invalid partition specified: none");
    ran.says("try: git config compeval.slurm.partition NAME").called(vec![]);
    lab.is_left_alone_by(cluster);
    let lab = lab.set("partition", "main");
    lab.ce_run_on(cluster, &[]).exit(0).called(vec!["call"]);
    lab.is_left_alone_by(cluster);
    let lab = lab.set("partition", "two words");
    lab.ce_run_on(cluster, &[]).exit(2).says("compeval.slurm.partition");
}

#[test]
fn a_host_outside_of_a_cluster_is_an_error() {
    let lab = one_call("");
    let run = |name: &str, value: &Path| {
        let mut run = lab.evaluation(&["--on", "slurm"]);
        lab.finish(run.env("PATH", lab.path("bin")).env(name, value)).exit(3)
    };
    fs::create_dir(lab.path("bin")).unwrap();
    let none =
        run("SLURM_CONF", &lab.path("none.conf")).says("none.conf\", and there is no such file");
    none.says("try: the slurm.conf of the cluster, or unset SLURM_CONF");
    let none = run("LANG", Path::new("C")).says("sbatch cannot be started");
    none.says("try: a host of the cluster: there is no sbatch on PATH here");
    // As it is where no configuration is found.
    lab.program(
        "sbatch",
        "echo 'sbatch: fatal: Could not establish a configuration source' >&2; exit 1",
    );
    let none = run("LANG", Path::new("C"))
        .says("sbatch failed: Could not establish a configuration source");
    none.says("try: a host of the cluster, or SLURM_CONF=FILE: Slurm has no configuration here");
    assert!(lab.is_tidy() && lab.called().is_empty());
}

/// A look at the results of some workers lets others be submitted for more replicates.
#[test]
fn replicates_end_by_results_of_workers_on_slurm() {
    let Some(cluster) = Cluster::shared() else { return };
    let [here, there] = [(); 2].map(|()| measured("1\n2\n", "10..45 until seconds ±5%\n").commit());
    let expected = here.ce_run(&[]).exit(0);
    let ran = there.ce_run_on(cluster, &[]).exit(0).says("25 calls: 25 computed");
    assert_eq!((ran.stdout, ran.stderr), (expected.stdout, expected.stderr));
    there.is_left_alone_by(cluster);
    assert_eq!(there.table(), here.table());
    assert_eq!(there.called(), here.called());
}
