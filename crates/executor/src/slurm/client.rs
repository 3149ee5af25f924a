//! Asks Slurm, by its programs, each of which runs for a limited time.
//!
//! A program of Slurm may hang for a minute or for ever when a daemon is down. So it has a process group of its own, which is
//! killed at a time limit, or as soon as the caller has lost interest. A Ctrl-C at the terminal does not reach it.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::num::NonZeroU32;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{env, error};

use ce_model::exit::Explain;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionbio};
use rustix::process::{Pid, Signal, kill_process_group};

use super::jobs::{
    ArrayTask, FORMAT, JobAnswer, JobState, JobToken, RunJob, SlurmJob, Submission, meaning,
    read_accounting,
};

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
        let end = run_limited(&mut command, input, self.limit, || {
            self.interruptions.load(Ordering::Relaxed) != before
        });
        let end = end.map_err(|unfinished| match unfinished {
            CommandFailure::NotStarted(source) => SlurmError::Start { program, source },
            CommandFailure::Lost(source) => SlurmError::Wait { program, source },
            CommandFailure::TimedOut => SlurmError::TimedOut { program, limit: self.limit },
            CommandFailure::Stopped => SlurmError::Interrupted { program },
        })?;
        if end.status.success() {
            return Ok(end.stdout);
        }
        let message = last_lines(program, &end.stderr);
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
fn last_lines(program: &str, stderr: &str) -> String {
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

/// The longest time between two looks at whether the program has ended.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
/// The same once it has closed its outputs, which it does by ending.
const SHORT_LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
/// The time that a killed program has to go. One that hangs in the kernel does not.
const GONE: Duration = Duration::from_secs(1);

/// The end of a program.
struct CommandOutput {
    status: ExitStatus,
    stdout: String,
    stderr: String,
}

/// The reason why the end of a program is unknown.
enum CommandFailure {
    /// It could not be started.
    NotStarted(io::Error),
    /// It could not be waited for, or talked to.
    Lost(io::Error),
    /// It was killed at its time limit.
    TimedOut,
    /// It was killed because the caller stopped it.
    Stopped,
}

/// Runs a program with a text as its standard input, until it ends, its time is over, or it is stopped.
fn run_limited(
    command: &mut Command,
    input: &[u8],
    limit: Duration,
    is_stopped: impl Fn() -> bool,
) -> Result<CommandOutput, CommandFailure> {
    let begin = Instant::now();
    let streams = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = streams.process_group(0).spawn().map_err(CommandFailure::NotStarted)?;
    let mut pipes = ChildPipes::new(&mut child, input);
    let end = loop {
        match pipes.go_on().and_then(|()| child.try_wait()) {
            Ok(Some(status)) => break Ok(status),
            Ok(None) if is_stopped() => break Err(CommandFailure::Stopped),
            Ok(None) if begin.elapsed() >= limit => break Err(CommandFailure::TimedOut),
            Ok(None) => {}
            Err(error) => break Err(CommandFailure::Lost(error)),
        }
    };
    let status = end.inspect_err(|_| kill(&mut child))?;
    // What it has written is all there. A process that it left behind may still hold the pipes, and is not waited for.
    let (stdout, stderr) = pipes.rest();
    Ok(CommandOutput { status, stdout, stderr })
}

/// Kills the process group of a child, and reaps the child.
fn kill(child: &mut Child) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let _gone = pid.map(|pid| kill_process_group(pid, Signal::KILL));
    let begin = Instant::now();
    while matches!(child.try_wait(), Ok(None)) && begin.elapsed() < GONE {
        let _timeout = poll(&mut [], Some(&SHORT_LOOK));
    }
}

/// The pipes of a child. Those that are closed are `None`.
struct ChildPipes<'a> {
    stdin: Option<ChildStdin>,
    input: &'a [u8],
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    read: [Vec<u8>; 2],
}

impl<'a> ChildPipes<'a> {
    fn new(child: &mut Child, input: &'a [u8]) -> Self {
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let fds = [stdin.as_ref().map(AsFd::as_fd), stdout.as_ref().map(AsFd::as_fd)];
        for fd in fds.into_iter().chain([stderr.as_ref().map(AsFd::as_fd)]).flatten() {
            // A pipe can always be set so.
            let _never_fails = ioctl_fionbio(fd, true);
        }
        Self { stdin, input, stdout, stderr, read: [Vec::new(), Vec::new()] }
    }

    /// Waits for a moment, and passes on what can be.
    fn go_on(&mut self) -> io::Result<()> {
        let inputs = self.stdin.as_ref().map(|it| (it.as_fd(), PollFlags::OUT));
        let outputs =
            [self.stdout.as_ref().map(AsFd::as_fd), self.stderr.as_ref().map(AsFd::as_fd)];
        let outputs = outputs.into_iter().flatten().map(|fd: BorrowedFd<'_>| (fd, PollFlags::IN));
        let ends = inputs.into_iter().chain(outputs);
        let mut ends: Vec<_> =
            ends.map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags)).collect();
        let look = if ends.is_empty() { &SHORT_LOOK } else { &LOOK };
        match poll(&mut ends, Some(look)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        self.write();
        let [out, err] = &mut self.read;
        read(&mut self.stdout, out)?;
        read(&mut self.stderr, err)
    }

    /// Writes what the child takes now.
    fn write(&mut self) {
        while let Some(stdin) = self.stdin.as_mut().filter(|_| !self.input.is_empty()) {
            match stdin.write(self.input) {
                Ok(count) => self.input = &self.input[count..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // It does not want to read: its exit status says why.
                Err(_) => break,
            }
        }
        self.stdin = None;
    }

    fn rest(mut self) -> (String, String) {
        let [mut out, mut err] = self.read;
        // What cannot be read any more was said in vain.
        let _rest = read(&mut self.stdout, &mut out).and(read(&mut self.stderr, &mut err));
        (String::from_utf8_lossy(&out).into_owned(), String::from_utf8_lossy(&err).into_owned())
    }
}

/// Reads what is there, and closes the pipe at its end.
fn read<R: Read>(pipe: &mut Option<R>, text: &mut Vec<u8>) -> io::Result<()> {
    let mut piece = [0; 4096];
    while let Some(open) = pipe.as_mut() {
        match open.read(&mut piece) {
            Ok(0) => *pipe = None,
            Ok(count) => text.extend_from_slice(&piece[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The reason why Slurm gave no answer, or not the one that was hoped for.
#[derive(Debug, thiserror::Error)]
pub enum SlurmError {
    /// A program could not be started.
    #[error("{program} cannot be started")]
    Start {
        /// The program.
        program: &'static str,
        /// The cause.
        source: io::Error,
    },
    /// The configuration of the cluster does not exist. Programs of Slurm would wait a minute for it.
    #[error("SLURM_CONF is {path:?}, and there is no such file")]
    NoConfiguration {
        /// What the variable says.
        path: PathBuf,
    },
    /// This process should be a run that is a job, and is not.
    #[error("SLURM_JOB_NAME is not the name of a run that is a job")]
    NoJob,
    /// A program could not be waited for.
    #[error("{program} cannot be waited for")]
    Wait {
        /// The program.
        program: &'static str,
        /// The cause.
        source: io::Error,
    },
    /// A program did not end in time.
    #[error("{program} did not answer for {} s", limit.as_secs_f64())]
    TimedOut {
        /// The program.
        program: &'static str,
        /// The time that it had.
        limit: Duration,
    },
    /// The caller did not want to wait any longer.
    #[error("{program} was interrupted")]
    Interrupted {
        /// The program.
        program: &'static str,
    },
    /// A program ended without success.
    #[error("{program} failed: {message}")]
    Failed {
        /// The program.
        program: &'static str,
        /// What it said, or else how it ended.
        message: String,
    },
    /// A program said something that it never says.
    #[error("{program} answered with an unknown text: {text:?}")]
    Answer {
        /// The program.
        program: &'static str,
        /// The text.
        text: String,
    },
}

/// What follows from a submission that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SubmitFailure {
    /// Nothing was submitted, and the same will not be accepted later.
    Final,
    /// It may have been submitted. If not, it will be accepted once Slurm is less busy, or something has ended.
    Busy,
    /// It may have been submitted. If not, nobody knows whether it will ever be accepted.
    Unclear,
}

/// What Slurm says when it is too busy, or the user has too much in its queues. The last one is about the daemons of authentication.
const BUSY: [&str; 11] = [
    "timed out",
    "unable to contact",
    "temporarily",
    "try again",
    "connection refused",
    "connection reset",
    "submitjob",
    "submit limit",
    "required partition not available",
    "slurmctld",
    "authentication",
];

/// What it says when the job can never be executed.
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
    /// What follows from it if it is about a submission.
    pub(super) fn failure(&self) -> SubmitFailure {
        match self {
            Self::Start { .. } | Self::NoConfiguration { .. } | Self::NoJob => SubmitFailure::Final,
            Self::Failed { message, .. } => {
                let message = message.to_lowercase();
                if BUSY.iter().any(|text| message.contains(text)) {
                    SubmitFailure::Busy
                } else if FINAL.iter().any(|text| message.contains(text)) {
                    SubmitFailure::Final
                } else {
                    SubmitFailure::Unclear
                }
            }
            Self::Wait { .. } | Self::Answer { .. } => SubmitFailure::Unclear,
            Self::TimedOut { .. } | Self::Interrupted { .. } => SubmitFailure::Busy,
        }
    }

    /// It and its cause, in words.
    pub(super) fn text(&self) -> String {
        let cause = error::Error::source(self).map(|cause| format!(": {cause}"));
        format!("{self}{}", cause.unwrap_or_default())
    }
}

impl Explain for SlurmError {
    fn hint(&self) -> Option<String> {
        let message = match self {
            Self::Start { program, source } if source.kind() == io::ErrorKind::NotFound => {
                return Some(format!("a host of the cluster: there is no {program} on PATH here"));
            }
            Self::NoConfiguration { .. } => {
                return Some("the slurm.conf of the cluster, or unset SLURM_CONF".to_owned());
            }
            Self::NoJob => return Some("ce run --detach=job, which submits a run".to_owned()),
            Self::TimedOut { .. } => {
                return Some(
                    "scontrol ping, which says whether Slurm answers, and later this".to_owned(),
                );
            }
            Self::Answer { program, .. } | Self::Start { program, .. } => {
                return Some(format!(
                    "{program} --version, which must be that of the cluster's Slurm"
                ));
            }
            Self::Wait { .. } => return Some("the same command again".to_owned()),
            Self::Failed { message, .. } => message.to_lowercase(),
            Self::Interrupted { .. } => return None,
        };
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
            (
                "node configuration",
                "less in the files resources, or another compeval.slurm.partition",
            ),
            (
                "unrecognized option",
                "compeval.slurm.options without it; sbatch --help lists options",
            ),
        ];
        let found = advice.into_iter().find(|(word, _)| message.contains(word));
        found.map(|(_, advice)| advice.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[test]
    fn an_error_is_one_line() {
        let text = "sbatch: error: invalid partition specified: x\nsbatch: error: Batch job submission failed: no\n\n";
        assert_eq!(
            last_lines("sbatch", text),
            "invalid partition specified: x; Batch job submission failed: no"
        );
        let text =
            "sbatch: error: fetch_config: DNS SRV lookup failed\nsbatch: fatal: no configuration\n";
        assert_eq!(last_lines("sbatch", text), "no configuration", "the others are consequences");
        assert_eq!(last_lines("squeue", "1\n2\n3\n4\n5\n"), "2; 3; 4; 5");
        assert_eq!(last_lines("squeue", "\n"), "");
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
    fn a_host_without_slurm_is_told() {
        let slurm = Slurm::default().with_variable("PATH", "/nowhere");
        let token = JobToken::random().unwrap();
        let error = slurm.jobs(std::slice::from_ref(&token)).unwrap_err();
        assert_eq!(error.to_string(), "squeue cannot be started");
        assert_eq!(slurm.why(&ArrayTask { token, index: 1 }), None);
        assert_eq!(slurm.jobs(&[]).unwrap(), [], "nothing is asked for nothing");
    }

    const LONG: Duration = Duration::from_secs(60);

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_program_reads_and_writes_more_than_a_pipe_holds() {
        let input = vec![b'x'; 300_000];
        let Ok(end) = run_limited(&mut shell("tee /dev/stderr; exit 3"), &input, LONG, || false)
        else {
            panic!("it ends")
        };
        assert_eq!((end.status.code(), end.stdout.len()), (Some(3), input.len()));
        assert_eq!(end.stderr.len(), input.len());
    }

    #[test]
    fn a_program_need_not_read_its_input() {
        let end = run_limited(
            &mut shell("exec <&-; echo no >&2; exit 1"),
            &vec![0; 300_000],
            LONG,
            || false,
        );
        assert!(matches!(end, Ok(end) if end.stderr == "no\n" && end.status.code() == Some(1)));
    }

    #[test]
    fn a_program_is_killed_with_what_it_has_started() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("fifo");
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        // Whoever holds the FIFO open for writing keeps a reader waiting.
        let script = format!("exec 9>'{}'; sleep 600 & sleep 600", fifo.display());
        let is_open = &AtomicBool::new(false);
        std::thread::scope(|scope| {
            let reader = scope.spawn(move || {
                let mut file = File::open(fifo)?;
                is_open.store(true, Ordering::Relaxed);
                file.read(&mut [0])
            });
            let end =
                run_limited(&mut shell(&script), b"", LONG, || is_open.load(Ordering::Relaxed));
            assert!(matches!(end, Err(CommandFailure::Stopped)));
            assert_eq!(reader.join().unwrap().unwrap(), 0);
        });
        let end = run_limited(&mut shell("sleep 600"), b"", Duration::from_millis(50), || false);
        assert!(matches!(end, Err(CommandFailure::TimedOut)));
    }

    #[test]
    fn a_process_that_is_left_behind_is_not_waited_for() {
        let begin = Instant::now();
        let end = run_limited(&mut shell("sleep 20 & echo $!"), b"", LONG, || false);
        let Ok(end) = end else { panic!("it ends") };
        assert!(begin.elapsed() < Duration::from_secs(20));
        assert!(Command::new("kill").arg(end.stdout.trim()).status().unwrap().success());
    }

    #[test]
    fn a_program_that_is_not_there_is_not_started() {
        let end = run_limited(&mut Command::new("/nowhere/sbatch"), b"", LONG, || false);
        assert!(matches!(end, Err(CommandFailure::NotStarted(_))));
    }

    fn failed(message: &str) -> SlurmError {
        SlurmError::Failed { program: "sbatch", message: message.to_owned() }
    }

    #[test]
    fn only_what_is_certainly_not_submitted_is_final() {
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
            ("AssocMaxSubmitJobLimit\nJob violates accounting/QOS policy", SubmitFailure::Busy),
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
