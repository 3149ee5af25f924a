//! A Slurm that hangs, is down, or answers too late: nothing is believed that it has not said.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::slice;
use std::thread;
use std::time::Duration;

use compeval::executor::scheduler::{CancelScope, JobState};
use compeval::executor::slurm::{Slurm, SlurmError, SlurmSettings};
use rustix::process::Signal;
use tempfile::TempDir;

use super::cluster::{Cluster, wait_for};
use super::{is_in, jobs, options, request, submit};

/// The time limit of programs that hang.
const SHORT: Duration = Duration::from_millis(1500);

#[test]
fn a_submission_that_was_cut_off_is_found_by_its_token() {
    let Some(cluster) = Cluster::shared() else { return };
    let dir = TempDir::new().unwrap();
    // Slurm has accepted the jobs, and sbatch never says so.
    let sbatch = dir.path().join("sbatch");
    let path = std::env::var("PATH").unwrap();
    fs::write(&sbatch, format!("#!/bin/sh\nPATH='{path}' sbatch \"$@\" >&2\nexec sleep 600\n"))
        .unwrap();
    fs::set_permissions(&sbatch, fs::Permissions::from_mode(0o755)).unwrap();
    let hanging = format!("{}:{path}", dir.path().display());
    let slurm = cluster.slurm().with_variable("PATH", hanging);
    let (request, settings) = (request(2), options(&["--begin=now+1hour"]));
    thread::scope(|scope| {
        let submitting = scope.spawn(|| submit(&slurm, dir.path(), &request, &settings, "true"));
        let honest = cluster.slurm();
        let tokens = slice::from_ref(&request.token);
        wait_for("job", || (honest.jobs(tokens).unwrap().len() == 2).then_some(()));
        slurm.interrupt();
        let error = submitting.join().unwrap().unwrap_err();
        assert!(matches!(error, SlurmError::Interrupted { program: "sbatch" }), "{error}");
    });
    assert_eq!(jobs(&slurm, &request, is_in(JobState::Pending)).len(), 2, "it goes on afterwards");
    slurm.cancel(&request.token, CancelScope::All).unwrap();
    jobs(&slurm, &request, is_in(JobState::Ended));
}

#[test]
fn a_slurm_without_daemons_is_not_waited_for_long() {
    let Some(cluster) = Cluster::start(1) else { return };
    let (slurm, dir) = (cluster.slurm(), TempDir::new().unwrap());
    let (running, settings) = (request(1), SlurmSettings::default());
    let tokens = slice::from_ref(&running.token);
    submit(&slurm, dir.path(), &running, &settings, "exec sleep 600").unwrap();
    jobs(&slurm, &running, is_in(JobState::Running));

    let hurried = cluster.slurm().with_limit(SHORT);
    let timed_out = |program: &str, error: &SlurmError| {
        assert!(matches!(error, SlurmError::TimedOut { .. }), "{program}: {error}");
        assert_eq!(error.to_string(), format!("{program} did not answer for 1.5 s"));
    };
    let all_time_out = |hurried: &Slurm| {
        let late = request(1);
        timed_out("squeue", &hurried.jobs(tokens).unwrap_err());
        timed_out("scancel", &hurried.cancel(&late.token, CancelScope::All).unwrap_err());
        timed_out("sbatch", &submit(hurried, dir.path(), &late, &settings, "true").unwrap_err());
    };
    for daemon in ["slurmctld", "munged"] {
        cluster.signal(daemon, Signal::STOP);
        all_time_out(&hurried);
        cluster.signal(daemon, Signal::CONT);
        jobs(&slurm, &running, is_in(JobState::Running));
    }

    cluster.stop("slurmctld");
    assert!(hurried.jobs(tokens).is_err());
    assert!(cluster.repair(1));
    jobs(&slurm, &running, is_in(JobState::Running));
}
