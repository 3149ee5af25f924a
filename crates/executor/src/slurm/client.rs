//! Asks Slurm, by its programs.

use std::env;
use std::ffi::{OsStr, OsString};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::command::{CommandFailure, run};
use super::error::SlurmError;
use super::run_job::RunJob;
use super::squeue::{FORMAT, JobAnswer, JobState, SlurmJob, meaning, read_accounting};
use super::submission::Submission;
use super::token::{ArrayTask, JobToken};

/// The time that a program has. A Slurm without its authentication was seen to answer after 49 s.
const LIMIT: Duration = Duration::from_secs(60);
/// The variable that names the configuration of the cluster.
const CONFIGURATION: &str = "SLURM_CONF";
/// What a program says first if nothing was asked of Slurm.
const FATAL: &str = "fatal:";
/// The most lines of an error that are shown.
const LINES: usize = 4;

/// Which jobs of an array are cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CancelScope {
    /// Those that have not started.
    Pending,
    /// All.
    All,
}

/// The Slurm of this host.
///
/// Each method starts programs, and takes as long as these do. So none of them may be called from the main thread, whose
/// children are taken for orphans of executions. [`interrupt`](Self::interrupt) ends a call from another thread.
#[derive(Debug)]
pub struct Slurm {
    environment: Vec<(OsString, OsString)>,
    limit: Duration,
    interruptions: AtomicU64,
}

impl Default for Slurm {
    fn default() -> Self {
        Self { environment: Vec::new(), limit: LIMIT / haste(), interruptions: AtomicU64::new(0) }
    }
}

/// How much faster than real time all waiting for Slurm is: once. A build with debug assertions obeys `CE_HASTE`.
pub fn haste() -> u32 {
    static HASTE: OnceLock<Option<NonZeroU32>> = OnceLock::new();
    if !cfg!(debug_assertions) {
        return 1;
    }
    HASTE.get_or_init(|| env::var("CE_HASTE").ok()?.parse().ok()).map_or(1, NonZeroU32::get)
}

impl Slurm {
    /// The same with a variable in the environment of its programs, such as `SLURM_CONF`.
    #[must_use]
    pub fn with_variable(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.environment.push((name.into(), value.as_ref().to_owned()));
        self
    }

    /// The same with another time limit of its programs.
    #[must_use]
    pub fn with_limit(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    /// Submits a job array. Returns its number, which is for people: the token identifies it.
    ///
    /// # Errors
    ///
    /// Fails if Slurm does not say that it has accepted it. It may have done so: only [`jobs`](Self::jobs) tells.
    pub fn submit(&self, submission: &Submission<'_>) -> Result<u64, SlurmError> {
        self.submit_script(submission.arguments(), &submission.script())
    }

    /// Submits a run that is a job itself. Returns its number, which is for people.
    ///
    /// # Errors
    ///
    /// Fails as [`submit`](Self::submit) does.
    pub fn submit_run(&self, job: &RunJob<'_>) -> Result<u64, SlurmError> {
        self.submit_script(job.arguments(), &job.script())
    }

    fn submit_script(&self, arguments: Vec<OsString>, script: &[u8]) -> Result<u64, SlurmError> {
        let text = self.run("sbatch", arguments, script)?;
        // `12`, or `12;cluster`
        let number = text.trim().split(';').next().and_then(|number| number.parse().ok());
        number.ok_or(SlurmError::Answer { program: "sbatch", text })
    }

    /// Returns what Slurm knows of the jobs with these names, in one question. A job that is not in the answer is unknown: it may
    /// have ended some time ago, be lost, or be yet to come.
    ///
    /// # Errors
    ///
    /// Fails if there is no answer, or it is not understood: then nothing is known.
    pub fn jobs(&self, tokens: &[JobToken]) -> Result<Vec<SlurmJob>, SlurmError> {
        if tokens.is_empty() {
            return Ok(Vec::new());
        }
        let names: Vec<&str> = tokens.iter().map(JobToken::as_str).collect();
        let names = format!("--name={}", names.join(","));
        // Without all states, squeue omits jobs that have ended.
        let plain = ["--noheader", "--array", "--me", "--states=all", "--format", FORMAT];
        let arguments = plain.into_iter().map(OsString::from).chain([names.into()]);
        let text = self.run("squeue", arguments.collect(), b"")?;
        SlurmJob::read_all(&text).map_err(|line| {
            let text = line.to_owned();
            SlurmError::Answer { program: "squeue", text }
        })
    }

    /// Cancels the jobs with a name. There need not be any.
    ///
    /// # Errors
    ///
    /// Fails if Slurm does not say that it has done so.
    pub fn cancel(&self, token: &JobToken, scope: CancelScope) -> Result<(), SlurmError> {
        let mut arguments = vec!["--quiet".to_owned(), format!("--name={token}")];
        if scope == CancelScope::Pending {
            arguments.push("--state=PENDING".to_owned());
        }
        self.run("scancel", arguments.into_iter().map(OsString::from).collect(), b"").map(drop)
    }

    /// Returns how a worker ended, in words, or `None` if Slurm does not say so. It is a second opinion: Slurm may show a job as
    /// running minutes after its end, and accounting may be wrong for a while.
    pub fn why(&self, task: &ArrayTask) -> Option<String> {
        let jobs = self.jobs(std::slice::from_ref(&task.token)).unwrap_or_default();
        let (word, description) = match JobAnswer::new(&jobs).of(&task.token, task.index) {
            Some(job) if job.state == JobState::Ended => (job.word.clone(), job.description()),
            Some(_) => return None,
            // Slurm itself forgets after some minutes.
            None => {
                let name = format!("--name={}", task.token);
                let plain = ["-nPX", "--starttime=now-30days", "--format=JobID,State"];
                let arguments = plain.into_iter().map(OsString::from).chain([name.into()]);
                let text = self.run("sacct", arguments.collect(), b"").ok()?;
                let word = read_accounting(&text, task)?;
                (word.clone(), word)
            }
        };
        Some(meaning(&word).map_or(description.clone(), |it| format!("{description}: {it}")))
    }

    /// Returns what programs of Slurm call the job with this number, and no other one: `12_3` if it is an element of an array. By
    /// the number of one of its elements, which is that of the array, they mean all of them.
    ///
    /// Only Slurm knows it: a job that was submitted by an element of an array has inherited that one's variables.
    ///
    /// # Errors
    ///
    /// Fails if there is no answer: then nothing is known.
    pub(super) fn job_id(&self, number: &str) -> Result<String, SlurmError> {
        let plain = ["--noheader", "--array", "--format", "%A %i"].map(str::to_owned);
        let arguments = plain.into_iter().chain([format!("--jobs={number}")]);
        let text = self.run("squeue", arguments.map(OsString::from).collect(), b"")?;
        let mut pairs = text.lines().filter_map(|line| line.trim().split_once(' '));
        let id = pairs.find(|(own, _)| *own == number).map(|(_, id)| id.trim().to_owned());
        id.ok_or(SlurmError::Answer { program: "squeue", text })
    }

    /// Returns the steps of a job that are not over, without those that Slurm itself has made, such as its script.
    ///
    /// # Errors
    ///
    /// Fails if there is no answer: then nothing is known.
    pub(super) fn steps(&self, job: &str) -> Result<Vec<String>, SlurmError> {
        let plain = ["--noheader", "--steps", "--format", "%i"].map(str::to_owned);
        let arguments = plain.into_iter().chain([format!("--jobs={job}")]);
        let text = self.run("squeue", arguments.map(OsString::from).collect(), b"")?;
        let is_numbered = |step: &&str| {
            let number = step.rsplit_once('.').map_or("", |(_, number)| number);
            number.starts_with(|digit: char| digit.is_ascii_digit())
        };
        Ok(text.lines().map(str::trim).filter(is_numbered).map(str::to_owned).collect())
    }

    /// Kills all processes of a step.
    ///
    /// # Errors
    ///
    /// Fails if Slurm does not say that it has done so.
    pub(super) fn kill_step(&self, step: &str) -> Result<(), SlurmError> {
        let arguments = ["--quiet", "--signal=KILL", step].map(OsString::from);
        self.run("scancel", arguments.into(), b"").map(drop)
    }

    /// Whether Slurm ends all that a step has started, even processes that have detached themselves: control groups find
    /// them. False if it does not say so.
    pub(super) fn ends_all_processes(&self) -> bool {
        let text = self.run("scontrol", ["show", "config"].map(OsString::from).into(), b"");
        let lines = text.unwrap_or_default();
        let mut pairs = lines.lines().filter_map(|line| line.split_once('='));
        pairs.any(|(name, value)| {
            name.trim() == "ProctrackType" && value.trim() == "proctrack/cgroup"
        })
    }

    /// Ends the programs that run now. A submission may or may not have reached Slurm then.
    pub fn interrupt(&self) {
        self.interruptions.fetch_add(1, Ordering::Relaxed);
    }

    /// The configuration that programs are told to read, if it does not exist.
    fn missing_configuration(&self) -> Option<PathBuf> {
        let own = self.environment.iter().rev().find(|(name, _)| name == CONFIGURATION);
        let path = own.map(|(_, path)| path.clone()).or_else(|| env::var_os(CONFIGURATION))?;
        Some(PathBuf::from(path))
            .filter(|path| !path.as_os_str().is_empty() && matches!(path.try_exists(), Ok(false)))
    }

    /// Runs a program; returns its standard output.
    fn run(
        &self,
        program: &'static str,
        arguments: Vec<OsString>,
        input: &[u8],
    ) -> Result<String, SlurmError> {
        let mut command = Command::new(program);
        command.args(arguments);
        for (name, _) in env::vars_os().filter(|(name, _)| is_misleading(name)) {
            command.env_remove(name);
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        if let Some(path) = self.missing_configuration() {
            return Err(SlurmError::NoConfiguration { path });
        }
        let before = self.interruptions.load(Ordering::Relaxed);
        let is_stopped = || self.interruptions.load(Ordering::Relaxed) != before;
        let end = run(&mut command, input, self.limit, is_stopped);
        let end = end.map_err(|unfinished| match unfinished {
            CommandFailure::NotStarted(source) => SlurmError::Start { program, source },
            CommandFailure::Lost(source) => SlurmError::Wait { program, source },
            CommandFailure::TimedOut => SlurmError::TimedOut { program, limit: self.limit },
            CommandFailure::Stopped => SlurmError::Interrupted { program },
        })?;
        if end.status.success() {
            return Ok(end.stdout);
        }
        let message = said(program, &end.stderr);
        let message = if message.is_empty() { end.status.to_string() } else { message };
        Err(SlurmError::Failed { program, message })
    }
}

/// Whether a variable would change what programs of Slurm do or print: those of the job that this process may be in, and
/// those that stand for options that must not be given.
fn is_misleading(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    let kept = [CONFIGURATION, "SLURM_CLUSTERS"];
    let begins = ["SLURM_", "SQUEUE_", "SCANCEL_", "SACCT_"].iter().any(|it| name.starts_with(it));
    let options = ["SBATCH_ARRAY_INX", "SBATCH_WAIT", "SBATCH_REQUEUE", "SBATCH_SIGNAL"];
    (begins && !kept.contains(&name)) || options.contains(&name)
}

/// The last lines of what a program said, in one line, without its name.
fn said(program: &str, stderr: &str) -> String {
    let lines = stderr.lines().map(|line| {
        let line = line.trim().strip_prefix(program).unwrap_or(line).trim_start_matches(':').trim();
        line.strip_prefix("error:").unwrap_or(line).trim()
    });
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    if let Some(fatal) = lines.iter().find_map(|line| line.strip_prefix(FATAL)) {
        return fatal.trim().to_owned();
    }
    lines[lines.len().saturating_sub(LINES)..].join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_line() {
        let text = "sbatch: error: invalid partition specified: x\nsbatch: error: Batch job submission failed: no\n\n";
        assert_eq!(
            said("sbatch", text),
            "invalid partition specified: x; Batch job submission failed: no"
        );
        let text =
            "sbatch: error: fetch_config: DNS SRV lookup failed\nsbatch: fatal: no configuration\n";
        assert_eq!(said("sbatch", text), "no configuration", "the others are consequences");
        assert_eq!(said("squeue", "1\n2\n3\n4\n5\n"), "2; 3; 4; 5");
        assert_eq!(said("squeue", "\n"), "");
    }

    #[test]
    fn the_environment_of_a_job_is_not_passed_on() {
        let misleading = |name: &str| is_misleading(OsStr::new(name));
        for name in ["SLURM_JOB_ID", "SLURM_MEM_PER_NODE", "SQUEUE_FORMAT", "SBATCH_ARRAY_INX"] {
            assert!(misleading(name), "{name}");
        }
        for name in ["SLURM_CONF", "SLURM_CLUSTERS", "SBATCH_PARTITION", "PATH"] {
            assert!(!misleading(name), "{name}");
        }
    }

    #[test]
    fn a_host_without_slurm_is_told() {
        let slurm = Slurm::default().with_variable("PATH", "/nowhere");
        let token = JobToken::random().unwrap();
        let error = slurm.jobs(std::slice::from_ref(&token)).unwrap_err();
        assert_eq!(error.to_string(), "squeue cannot be started");
        assert_eq!(slurm.why(&ArrayTask { token, index: 1 }), None);
        assert_eq!(slurm.jobs(&[]).unwrap(), [], "nothing is asked for nothing");
    }
}
