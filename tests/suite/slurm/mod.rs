//! Workers on a real Slurm: their submission, what Slurm tells of them, and their end.

mod cluster;
mod deaths;
mod faults;
mod jobs;
mod mpi;
mod outages;
mod pool;
mod runs;
mod spanning;

use std::ffi::OsString;
use std::fs;
use std::num::NonZeroU32;
use std::path::Path;
use std::time::Duration;

use compeval::executor::scheduler::{
    ArrayTask, CancelScope, JobState, JobToken, ScheduledJob, Submission, WorkerRequest,
    WorkerSettings,
};
use compeval::executor::slurm::{Slurm, SlurmError, SlurmSettings};
use compeval::exit::Explain;
use compeval::resources::Resources;
use tempfile::TempDir;

pub(crate) use self::cluster::{Cluster, wait_for};
pub(crate) use self::deaths::MEET;
pub(crate) use self::runs::one_call;

/// So many workers with the least resources.
fn request(workers: u32) -> WorkerRequest {
    let resources = Resources { cpus: NonZeroU32::new(1), ..Resources::default() };
    let token = JobToken::random().unwrap();
    WorkerRequest { token, resources, workers, exclude: Vec::new() }
}

/// Submits workers that are a command of the shell.
fn submit(
    slurm: &Slurm,
    dir: &Path,
    request: &WorkerRequest,
    settings: &SlurmSettings,
    script: &str,
) -> Result<u64, SlurmError> {
    let command = ["sh", "-c", script].map(OsString::from);
    let (directory, logs) = (dir, dir);
    slurm.submit(&Submission { request, directory, logs, command: &command }, settings)
}

/// The jobs of a request once something holds for all of them.
#[track_caller]
fn jobs(
    slurm: &Slurm,
    request: &WorkerRequest,
    holds: impl Fn(&ScheduledJob) -> bool,
) -> Vec<ScheduledJob> {
    wait_for("such job", || {
        let jobs = slurm.jobs(std::slice::from_ref(&request.token)).unwrap();
        (!jobs.is_empty() && jobs.iter().all(&holds)).then_some(jobs)
    })
}

fn is_in(state: JobState) -> impl Fn(&ScheduledJob) -> bool {
    move |job| job.state == state
}

/// Settings with options of sbatch.
fn options(options: &[&str]) -> SlurmSettings {
    let options = options.iter().map(|it| (*it).to_owned()).collect();
    SlurmSettings { options, ..SlurmSettings::default() }
}

#[test]
fn workers_run_and_slurm_reports_their_end() {
    let Some(cluster) = Cluster::shared() else { return };
    let (slurm, dir) = (cluster.slurm(), TempDir::new().unwrap());
    let logs = dir.path().join("100% of 'it'");
    fs::create_dir(&logs).unwrap();
    let request = request(3);
    let script = "echo $SLURM_JOB_NAME $SLURM_ARRAY_TASK_ID $((COMPEVAL_DEADLINE - $(date +%s))); \
                  exit $((SLURM_ARRAY_TASK_ID - 1))";
    let settings = SlurmSettings::default();
    let number = submit(&slurm, &logs, &request, &settings, script).unwrap();
    let ended = jobs(&slurm, &request, is_in(JobState::Ended));
    assert_eq!(ended.len(), 3);
    for index in 1..=3 {
        let job = ended.iter().find(|job| job.index == Some(index)).unwrap();
        assert_eq!((job.id.clone(), &job.token), (format!("{number}_{index}"), &request.token));
        let state = if index == 1 { "COMPLETED" } else { "FAILED (NonZeroExitCode)" };
        assert_eq!(job.description(), state);
        assert!(job.node.is_some());
        let task = ArrayTask { token: request.token.clone(), index };
        assert_eq!(slurm.end_of(&task).as_deref(), state.split(' ').next());
        let log = fs::read_to_string(Submission::log(&logs, &task)).unwrap();
        let words: Vec<&str> = log.split_whitespace().collect();
        assert_eq!(words[..2], [request.token.as_str(), &index.to_string()], "{log}");
        assert!((3500..=3600).contains(&words[2].parse().unwrap()), "{log}");
    }
    let stranger = ArrayTask { token: JobToken::random().unwrap(), index: 1 };
    assert_eq!(slurm.jobs(std::slice::from_ref(&stranger.token)).unwrap(), []);
    assert_eq!(slurm.end_of(&stranger), None);
}

#[test]
fn a_failing_prologue_starts_no_worker() {
    let Some(cluster) = Cluster::shared() else { return };
    let (slurm, dir) = (cluster.slurm(), TempDir::new().unwrap());
    let log = |prologue: [&str; 2]| {
        let prologue = prologue.map(str::to_owned).into();
        let common = WorkerSettings { prologue, ..WorkerSettings::default() };
        let settings = SlurmSettings { common, ..SlurmSettings::default() };
        let request = request(1);
        submit(&slurm, dir.path(), &request, &settings, "echo $GREETING").unwrap();
        let end = jobs(&slurm, &request, is_in(JobState::Ended)).remove(0).word;
        let log = Submission::log(dir.path(), &ArrayTask { token: request.token, index: 1 });
        (end, fs::read_to_string(log).unwrap())
    };
    let right = log(["export GREETING=hello", "true"]);
    assert_eq!(right, ("COMPLETED".to_owned(), "hello\n".to_owned()));
    assert_eq!(log(["false", "true"]), ("FAILED".to_owned(), String::new()));
}

#[test]
fn cancelling_leaves_nothing_pending() {
    let Some(cluster) = Cluster::shared() else { return };
    let (slurm, dir) = (cluster.slurm(), TempDir::new().unwrap());
    let (later, now) = (request(4), request(2));
    let settings = options(&["--begin=now+1hour"]);
    submit(&slurm, dir.path(), &later, &settings, "true").unwrap();
    submit(&slurm, dir.path(), &now, &SlurmSettings::default(), "exec sleep 600").unwrap();
    assert_eq!(jobs(&slurm, &later, is_in(JobState::Pending)).len(), 4);
    jobs(&slurm, &now, is_in(JobState::Running));
    for request in [&later, &now] {
        slurm.cancel(&request.token, CancelScope::Pending).unwrap();
    }
    let cancelled = jobs(&slurm, &later, is_in(JobState::Ended));
    assert!(cancelled.iter().all(|job| job.word == "CANCELLED"), "{cancelled:?}");
    let task = ArrayTask { token: later.token.clone(), index: 4 };
    assert_eq!(slurm.end_of(&task).as_deref(), Some("CANCELLED"));
    assert!(
        slurm.jobs(std::slice::from_ref(&now.token)).unwrap().iter().all(is_in(JobState::Running))
    );
    slurm.cancel(&now.token, CancelScope::All).unwrap();
    assert_eq!(jobs(&slurm, &now, is_in(JobState::Ended)).len(), 2);
    slurm.cancel(&JobToken::random().unwrap(), CancelScope::All).unwrap();
}

#[test]
fn no_worker_is_started_on_an_excluded_node() {
    let Some(cluster) = Cluster::shared() else { return };
    let (slurm, dir) = (cluster.slurm(), TempDir::new().unwrap());
    let request = WorkerRequest { exclude: vec!["n1".to_owned()], ..request(4) };
    let settings = options(&["--exclude=n2"]);
    submit(&slurm, dir.path(), &request, &settings, "true").unwrap();
    let ended = jobs(&slurm, &request, is_in(JobState::Ended));
    assert!(ended.iter().all(|job| job.node.as_deref() == Some("n3")), "{ended:?}");
}

#[test]
fn resources_that_the_cluster_lacks_are_reported() {
    let Some(cluster) = Cluster::shared() else { return };
    let (slurm, dir) = (cluster.slurm(), TempDir::new().unwrap());
    let told = |settings: SlurmSettings, resources: Resources| {
        let request = WorkerRequest { resources, ..request(1) };
        let error = submit(&slurm, dir.path(), &request, &settings, "true").unwrap_err();
        // Slurm remembers some jobs that it has refused.
        assert!(slurm.jobs(&[request.token]).unwrap().iter().all(is_in(JobState::Ended)));
        format!("{error}; try: {}", error.hint().unwrap())
    };
    let partition = SlurmSettings { partition: Some("none".to_owned()), ..<_>::default() };
    let error = told(partition, Resources::default());
    assert!(error.contains("invalid partition specified: none"), "{error}");
    assert!(error.contains("try: git config compeval.slurm.partition NAME"), "{error}");
    let gpus = Resources { gpus: NonZeroU32::new(1), ..Resources::default() };
    assert!(told(<_>::default(), gpus).ends_with("or no gpus in the files resources"));
    let memory = Resources { memory: Some(1 << 50), ..Resources::default() };
    let error = told(<_>::default(), memory);
    assert!(error.contains("try: less memory"), "{error}");
    let error = told(options(&["--nonsense"]), Resources::default());
    assert!(error.contains("unrecognized option '--nonsense'"), "{error}");
}

#[test]
fn all_resources_are_requested() {
    let Some(cluster) = Cluster::shared() else { return };
    let (slurm, dir) = (cluster.slurm(), TempDir::new().unwrap());
    let one = NonZeroU32::new(1);
    let all = Resources {
        cpus: NonZeroU32::new(3),
        memory: Some(64 << 20),
        time: Some(Duration::from_secs(1)),
        nodes: one,
        tasks: NonZeroU32::new(2),
        ..Resources::default()
    };
    let request = WorkerRequest { resources: all, ..request(1) };
    let script = "echo $SLURM_CPUS_PER_TASK $SLURM_NTASKS $SLURM_JOB_NUM_NODES $SLURM_MEM_PER_NODE";
    submit(&slurm, dir.path(), &request, &SlurmSettings::default(), script).unwrap();
    jobs(&slurm, &request, is_in(JobState::Ended));
    let log = Submission::log(dir.path(), &ArrayTask { token: request.token, index: 1 });
    assert_eq!(fs::read_to_string(log).unwrap(), "3 2 1 64\n");
}
