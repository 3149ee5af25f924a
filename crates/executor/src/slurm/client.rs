//! Asks Slurm, by its programs.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use std::{env, error, io};

use ce_model::exit::Explain;

use super::SlurmSettings;
use super::sbatch_and_squeue::{FORMAT, RunJob, arguments, read_accounting, read_jobs};
use crate::executor::Reach;
use crate::scheduler::{
    ArrayTask, BatchScheduler, CancelScope, Client, CommandFailure, JobAnswer, JobState, JobToken,
    ScheduledJob, SchedulerError, SchedulerKind, Submission, SubmitFailure, WorkerSettings,
    excerpt, last_lines,
};

/// The variable that names the configuration of the cluster.
const CONFIGURATION: &str = "SLURM_CONF";
/// The beginning of the message of a program that has asked nothing of Slurm.
const FATAL: &str = "fatal:";

/// The Slurm of this host.
///
/// Each method starts programs, and takes as long as these do. So they must not be called from the main thread, whose
/// children are taken for orphans of executions. [`interrupt`](Self::interrupt) ends a call from another thread.
#[derive(Debug, Default)]
pub struct Slurm {
    environment: Vec<(OsString, OsString)>,
    client: Client,
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
    pub fn with_limit(mut self, limit: Duration) -> Self {
        self.client.limit = limit;
        self
    }

    /// Submits a job array. Returns its number, which is for people: the token identifies it.
    ///
    /// # Errors
    ///
    /// Fails if Slurm does not say that it has accepted it. It may have done so: only [`jobs`](Self::jobs) shows it.
    pub fn submit(
        &self,
        submission: &Submission<'_>,
        settings: &SlurmSettings,
    ) -> Result<u64, SlurmError> {
        self.submit_script(arguments(submission, settings), &submission.script(&settings.common))
    }

    /// Submits a run that is a job itself. Returns its number, which is for people.
    pub fn submit_run(&self, job: &RunJob<'_>) -> Result<u64, SlurmError> {
        self.submit_script(job.arguments(), &job.script())
    }

    fn submit_script(&self, arguments: Vec<OsString>, script: &[u8]) -> Result<u64, SlurmError> {
        let text = self.run("sbatch", arguments, script)?;
        // `12`, or `12;cluster`
        let number = text.trim().split(';').next().and_then(|number| number.parse().ok());
        number.ok_or(SlurmError::Answer { program: "sbatch", text })
    }

    /// Returns the jobs with these names that Slurm knows, in one question. A job that is not in the answer is unknown: it may have
    /// ended some time ago, be lost, or be yet to come.
    ///
    /// # Errors
    ///
    /// Fails if there is no answer, or it is not understood: then nothing is known.
    pub fn jobs(&self, tokens: &[JobToken]) -> Result<Vec<ScheduledJob>, SlurmError> {
        if tokens.is_empty() {
            return Ok(Vec::new());
        }
        let names: Vec<&str> = tokens.iter().map(JobToken::as_str).collect();
        let names = format!("--name={}", names.join(","));
        // Without all states, squeue omits jobs that have ended.
        let plain = ["--noheader", "--array", "--me", "--states=all", "--format", FORMAT];
        let arguments = plain.into_iter().map(OsString::from).chain([names.into()]);
        let text = self.run("squeue", arguments.collect(), b"")?;
        read_jobs(&text).map_err(|line| {
            let text = line.to_owned();
            SlurmError::Answer { program: "squeue", text }
        })
    }

    /// Cancels the jobs with a name. There need not be any.
    pub fn cancel(&self, token: &JobToken, scope: CancelScope) -> Result<(), SlurmError> {
        let mut arguments = vec!["--quiet".to_owned(), format!("--name={token}")];
        if scope == CancelScope::Pending {
            arguments.push("--state=PENDING".to_owned());
        }
        self.run("scancel", arguments.into_iter().map(OsString::from).collect(), b"").map(drop)
    }

    /// Returns Slurm's word for the end of a worker, or `None` if Slurm does not say so. It is a second opinion: Slurm may show a job as
    /// running minutes after its end, and accounting may be wrong for a while.
    pub fn end_of(&self, task: &ArrayTask) -> Option<String> {
        let jobs = self.jobs(std::slice::from_ref(&task.token)).unwrap_or_default();
        match JobAnswer::new(&jobs).find_job(&task.token, task.index) {
            Some(job) if job.state == JobState::Ended => Some(job.word.clone()),
            Some(_) => None,
            // Slurm itself forgets after some minutes.
            None => {
                let name = format!("--name={}", task.token);
                let plain = ["-nPX", "--starttime=now-30days", "--format=JobID,State"];
                let arguments = plain.into_iter().map(OsString::from).chain([name.into()]);
                read_accounting(&self.run("sacct", arguments.collect(), b"").ok()?, task)
            }
        }
    }

    /// Returns the id by which programs of Slurm know the job with this number, and no other one: `12_3` if it is an
    /// element of an array. An element can have the number of its array, which would mean all of them.
    ///
    /// Only Slurm knows it: a job that was submitted by an element of an array has inherited that one's variables.
    ///
    /// # Errors
    ///
    /// Fails if Slurm does not answer.
    pub(super) fn job_id(&self, number: &str) -> Result<String, SlurmError> {
        let plain = ["--noheader", "--array", "--format", "%A %i"].map(str::to_owned);
        let arguments = plain.into_iter().chain([format!("--jobs={number}")]);
        let text = self.run("squeue", arguments.map(OsString::from).collect(), b"")?;
        let mut pairs = text.lines().filter_map(|line| line.trim().split_once(' '));
        let id = pairs.find(|(own, _)| *own == number).map(|(_, id)| id.trim().to_owned());
        id.ok_or(SlurmError::Answer { program: "squeue", text })
    }

    /// Returns the steps of a job that are not over, without steps that Slurm itself has made, such as its script.
    ///
    /// # Errors
    ///
    /// Fails if Slurm does not answer.
    pub(super) fn steps(&self, job: &str) -> Result<Vec<String>, SlurmError> {
        let plain = ["--noheader", "--steps", "--format", "%i"].map(str::to_owned);
        let arguments = plain.into_iter().chain([format!("--jobs={job}")]);
        let text = self.run("squeue", arguments.map(OsString::from).collect(), b"")?;
        let mut steps = Vec::new();
        for step in text.lines().map(str::trim) {
            let number = step.rsplit_once('.').map_or("", |(_, number)| number);
            if number.starts_with(|digit: char| digit.is_ascii_digit()) {
                steps.push(step.to_owned());
            }
        }
        Ok(steps)
    }

    /// Kills all processes of a step.
    pub(super) fn kill_step(&self, step: &str) -> Result<(), SlurmError> {
        let arguments = ["--quiet", "--signal=KILL", step].map(OsString::from);
        self.run("scancel", arguments.into(), b"").map(drop)
    }

    /// Whether Slurm ends all that a step has started, even processes that have detached themselves: control groups find
    /// them. False if Slurm does not say so.
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
        self.client.interrupt();
    }

    /// Returns the configuration that programs are to read, if it does not exist.
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
        let end = self.client.run(&mut command, input).map_err(|unfinished| match unfinished {
            CommandFailure::NotStarted(source) => SlurmError::Start { program, source },
            CommandFailure::Lost(source) => SlurmError::Wait { program, source },
            CommandFailure::TimedOut => SlurmError::TimedOut { program, limit: self.client.limit },
            CommandFailure::TooMuchOutput => SlurmError::TooMuchOutput { program },
            CommandFailure::Stopped => SlurmError::Interrupted { program },
        })?;
        if end.status.success() {
            return Ok(end.stdout);
        }
        let message = error_message(program, &end.stderr);
        let message = if message.is_empty() { end.status.to_string() } else { message };
        Err(SlurmError::Failed { program, message })
    }
}

/// Slurm as what starts workers, with the user's settings.
#[derive(Debug, Default)]
pub struct SlurmScheduler {
    slurm: Slurm,
    settings: SlurmSettings,
}

impl SlurmScheduler {
    /// The Slurm of this host, with settings.
    pub fn new(settings: SlurmSettings) -> Self {
        Self { slurm: Slurm::default(), settings }
    }

    /// The properties of this kind of scheduler.
    pub const KIND: SchedulerKind =
        SchedulerKind { word: "slurm", name: "Slurm", most_at_once: u32::MAX, reach: Reach::Any };
}

impl BatchScheduler for SlurmScheduler {
    fn kind(&self) -> SchedulerKind {
        Self::KIND
    }

    fn settings(&self) -> &WorkerSettings {
        &self.settings.common
    }

    fn submit(&self, submission: &Submission<'_>) -> Result<(), SchedulerError> {
        Ok(self.slurm.submit(submission, &self.settings).map(drop)?)
    }

    fn jobs(&self, tokens: &[JobToken]) -> Result<Vec<ScheduledJob>, SchedulerError> {
        Ok(self.slurm.jobs(tokens)?)
    }

    fn ran_out_of_memory(&self, task: &ArrayTask) -> bool {
        self.slurm.end_of(task).is_some_and(|word| word == "OUT_OF_MEMORY")
    }

    fn cancel(&self, token: &JobToken, scope: CancelScope) -> Result<(), SchedulerError> {
        self.slurm.cancel(token, scope).map_err(|error| SchedulerError {
            advice: self.cancel_by_hand(&[token]),
            ..error.into()
        })
    }

    fn cancel_by_hand(&self, tokens: &[&JobToken]) -> Option<String> {
        let names: Vec<&str> = tokens.iter().map(|token| token.as_str()).collect();
        Some(format!("scancel --name={}", names.join(",")))
    }

    fn interrupt(&self) {
        self.slurm.interrupt();
    }
}

/// Whether a variable would change what programs of Slurm do or print: variables of the job that this process may be
/// in, and variables for options that must not be given.
fn is_misleading(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    let kept = [CONFIGURATION, "SLURM_CLUSTERS"];
    let begins = ["SLURM_", "SQUEUE_", "SCANCEL_", "SACCT_"].iter().any(|it| name.starts_with(it));
    let options = ["SBATCH_ARRAY_INX", "SBATCH_WAIT", "SBATCH_REQUEUE", "SBATCH_SIGNAL"];
    (begins && !kept.contains(&name)) || options.contains(&name)
}

/// The last lines of a program's output, in one line, without its name.
fn error_message(program: &str, stderr: &str) -> String {
    let lines = stderr.lines().map(|line| {
        let line = line.trim().strip_prefix(program).unwrap_or(line).trim_start_matches(':').trim();
        line.strip_prefix("error:").unwrap_or(line).trim()
    });
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    if let Some(fatal) = lines.iter().find_map(|line| line.strip_prefix(FATAL)) {
        return excerpt(fatal);
    }
    last_lines(lines.into_iter())
}

/// The reason why Slurm gave no answer, or an unexpected one.
#[derive(Debug, thiserror::Error, Explain)]
pub enum SlurmError {
    /// A program could not be started.
    #[error("{program} cannot be started")]
    #[hint(hint_for_start(program, source))]
    Start {
        program: &'static str,
        /// The cause.
        source: io::Error,
    },
    /// The configuration of the cluster does not exist. Programs of Slurm would wait a minute for it.
    #[error("SLURM_CONF is {path:?}, and there is no such file")]
    #[hint("the slurm.conf of the cluster, or unset SLURM_CONF")]
    NoConfiguration {
        /// The value of the variable.
        path: PathBuf,
    },
    /// This process should be a run that is a job, and is not.
    #[error("SLURM_JOB_NAME is not the name of a run that is a job")]
    #[hint("ce run --detach=job, which submits a run")]
    NoJob,
    /// A program could not be waited for.
    #[error("{program} cannot be waited for")]
    #[hint("the same command again")]
    Wait {
        program: &'static str,
        /// The cause.
        source: io::Error,
    },
    /// A program did not end in time.
    #[error("{program} did not answer for {} s", limit.as_secs_f64())]
    #[hint("scontrol ping, which says whether Slurm answers, and later this")]
    TimedOut {
        program: &'static str,
        /// The time that it had.
        limit: Duration,
    },
    /// A program printed too much.
    #[error("{program} printed more than 1 MiB, and was ended")]
    #[hint(Some(asking_version(program)))]
    TooMuchOutput { program: &'static str },
    /// The caller did not want to wait any longer.
    #[error("{program} was interrupted")]
    #[hint(None)]
    Interrupted { program: &'static str },
    /// A program ended without success.
    #[error("{program} failed: {message}")]
    #[hint(hint_for_refusal(message))]
    Failed {
        program: &'static str,
        /// Its message, or else how it ended.
        message: String,
    },
    /// A program said something that it never says.
    #[error("{program} answered with an unknown text: {:?}", excerpt(text))]
    #[hint(Some(asking_version(program)))]
    Answer { program: &'static str, text: String },
}

/// Messages of Slurm when the user has too much in its queues.
const LIMIT: [&str; 2] = ["submitjob", "submit limit"];

/// Messages of Slurm when it is too busy. The last one is about the daemons of authentication.
const BUSY: [&str; 9] = [
    "timed out",
    "unable to contact",
    "temporarily",
    "try again",
    "connection refused",
    "connection reset",
    "required partition not available",
    "slurmctld",
    "authentication",
];

/// Messages of Slurm when the job can never be executed.
const FINAL: [&str; 9] = [
    "configuration source",
    "invalid",
    "requested node configuration",
    "requested partition configuration",
    "specification can not be satisfied",
    "unrecognized option",
    "permission denied",
    "access/permission",
    "not permitted",
];

impl SlurmError {
    /// Returns the consequence for a submission, if the error is about one.
    pub(super) fn failure(&self) -> SubmitFailure {
        match self {
            Self::Start { .. } | Self::NoConfiguration { .. } | Self::NoJob => SubmitFailure::Final,
            Self::Failed { message, .. } => {
                let message = message.to_lowercase();
                if LIMIT.iter().any(|text| message.contains(text)) {
                    SubmitFailure::Limit
                } else if BUSY.iter().any(|text| message.contains(text)) {
                    SubmitFailure::Busy
                } else if FINAL.iter().any(|text| message.contains(text)) {
                    SubmitFailure::Final
                } else {
                    SubmitFailure::Unclear
                }
            }
            Self::Wait { .. } | Self::TooMuchOutput { .. } | Self::Answer { .. } => {
                SubmitFailure::Unclear
            }
            Self::TimedOut { .. } | Self::Interrupted { .. } => SubmitFailure::Busy,
        }
    }
}

impl From<SlurmError> for SchedulerError {
    fn from(error: SlurmError) -> Self {
        let cause = error::Error::source(&error).map(|cause| format!(": {cause}"));
        let text = format!("{error}{}", cause.unwrap_or_default());
        Self { text, advice: error.hint(), failure: error.failure() }
    }
}

/// Returns what to try after a program could not be started.
fn hint_for_start(program: &str, source: &io::Error) -> Option<String> {
    Some(if source.kind() == io::ErrorKind::NotFound {
        format!("a host of the cluster: there is no {program} on PATH here")
    } else {
        asking_version(program)
    })
}

/// Returns the command that shows whether a program is that of the cluster.
fn asking_version(program: &str) -> String {
    format!("{program} --version, which must be the version of the cluster's Slurm")
}

/// Returns what to try after a program has refused with this message.
fn hint_for_refusal(message: &str) -> Option<String> {
    let advice = [
        (
            "configuration source",
            "a host of the cluster, or SLURM_CONF=FILE: Slurm has no configuration here",
        ),
        ("invalid account", "git config compeval.slurm.account NAME"),
        ("invalid qos", "git config compeval.slurm.qos NAME"),
        ("partition", "git config compeval.slurm.partition NAME; sinfo lists the partitions"),
        ("feature", "another compeval.slurm.constraint; sinfo -o '%N %f' lists the features"),
        ("time limit", "a shorter compeval.slurm.walltime"),
        ("(gres)", "a partition with such devices, or no gpus in the files resources"),
        ("memory specification", "less memory in the files resources"),
        ("node configuration", "less in the files resources, or another compeval.slurm.partition"),
        ("unrecognized option", "compeval.slurm.options without it; sbatch --help lists options"),
    ];
    let message = message.to_lowercase();
    let found = advice.into_iter().find(|(word, _)| message.contains(word));
    found.map(|(_, advice)| advice.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_line() {
        let text = "sbatch: error: invalid partition specified: x\nsbatch: error: Batch job submission failed: no\n\n";
        assert_eq!(
            error_message("sbatch", text),
            "invalid partition specified: x; Batch job submission failed: no"
        );
        let text =
            "sbatch: error: fetch_config: DNS SRV lookup failed\nsbatch: fatal: no configuration\n";
        assert_eq!(
            error_message("sbatch", text),
            "no configuration",
            "the others are consequences"
        );
        assert_eq!(error_message("squeue", "1\n2\n3\n4\n5\n"), "2; 3; 4; 5");
        assert_eq!(error_message("squeue", "\n"), "");
    }

    #[test]
    fn the_environment_of_a_job_is_not_passed_on() {
        for name in ["SLURM_JOB_ID", "SLURM_MEM_PER_NODE", "SQUEUE_FORMAT", "SBATCH_ARRAY_INX"] {
            assert!(is_misleading(OsStr::new(name)), "{name}");
        }
        for name in ["SLURM_CONF", "SLURM_CLUSTERS", "SBATCH_PARTITION", "PATH"] {
            assert!(!is_misleading(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn a_host_without_slurm_is_reported() {
        let slurm = Slurm::default().with_variable("PATH", "/nowhere");
        let token = JobToken::random().unwrap();
        let error = slurm.jobs(std::slice::from_ref(&token)).unwrap_err();
        assert_eq!(error.to_string(), "squeue cannot be started");
        assert_eq!(slurm.end_of(&ArrayTask { token, index: 1 }), None);
        assert_eq!(slurm.jobs(&[]).unwrap(), [], "nothing is asked for nothing");
    }

    fn failed(message: &str) -> SlurmError {
        SlurmError::Failed { program: "sbatch", message: message.to_owned() }
    }

    #[test]
    fn only_a_submission_that_certainly_failed_is_final() {
        for (message, failure) in [
            ("Batch job submission failed: Invalid partition name specified", SubmitFailure::Final),
            (
                "Batch job submission failed: Requested node configuration is not available",
                SubmitFailure::Final,
            ),
            ("unrecognized option '--nonsense'", SubmitFailure::Final),
            ("Could not establish a configuration source", SubmitFailure::Final),
            (
                "Batch job submission failed: Socket timed out on send/recv operation",
                SubmitFailure::Busy,
            ),
            ("Unable to contact slurm controller (connect failure)", SubmitFailure::Busy),
            ("AssocMaxSubmitJobLimit\nJob violates accounting/QOS policy", SubmitFailure::Limit),
            (
                "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)",
                SubmitFailure::Limit,
            ),
            ("Slurm temporarily unable to accept job, sleeping and retrying", SubmitFailure::Busy),
            ("Batch job submission failed: Protocol authentication error", SubmitFailure::Busy),
            ("Batch job submission failed: Unspecified error", SubmitFailure::Unclear),
        ] {
            assert_eq!(failed(message).failure(), failure, "{message}");
        }
        let source = io::ErrorKind::NotFound.into();
        let missing = SlurmError::Start { program: "sbatch", source };
        assert_eq!(missing.failure(), SubmitFailure::Final);
        assert!(missing.hint().unwrap().contains("no sbatch on PATH"));
        let late = SlurmError::TimedOut { program: "sbatch", limit: Duration::from_secs(60) };
        assert_eq!(late.failure(), SubmitFailure::Busy);
    }

    #[test]
    fn advice_names_the_setting() {
        let advice = failed("Batch job submission failed: Invalid partition name specified").hint();
        assert!(advice.unwrap().starts_with("git config compeval.slurm.partition NAME"));
        assert_eq!(failed("Unspecified error").hint(), None);
    }
}
