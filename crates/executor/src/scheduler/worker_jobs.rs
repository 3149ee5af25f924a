//! Workers as schedulers know them: their names, requests and scripts, and where their jobs are. Starts no process.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use super::WorkerSettings;
use ce_files::state::random_bytes;
use ce_model::resources::Resources;

/// The beginning of a token, so that people see in a queue whose job it is.
const PREFIX: &str = "ce-";
/// The number of random bytes.
const RANDOM: usize = 8;

/// The name of a submission, which no other one has. It identifies the jobs, because Slurm may assign the number of a job
/// again after its controller has crashed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobToken(String);

impl JobToken {
    /// Makes a token from random bytes of the kernel.
    pub fn random() -> io::Result<Self> {
        let number = u64::from_le_bytes(random_bytes::<RANDOM>()?);
        Ok(Self(format!("{PREFIX}{number:016x}")))
    }

    /// The token as it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for JobToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for JobToken {
    type Err = NoToken;

    fn from_str(text: &str) -> Result<Self, NoToken> {
        let digits = text.strip_prefix(PREFIX).ok_or(NoToken)?;
        let is_token = digits.len() == 2 * RANDOM
            && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if is_token { Ok(Self(text.to_owned())) } else { Err(NoToken) }
    }
}

/// A text that is not a [`JobToken`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is not the name of a job of CompEval: \"ce-\" and 16 hexadecimal digits")]
pub struct NoToken;

/// One worker of a submission: a task of a job array, or the only one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArrayTask {
    /// The name of the array.
    pub token: JobToken,
    /// The index of the task, counted from one.
    pub index: u32,
}

impl ArrayTask {
    /// Returns the task of this process, from the variables that Slurm sets for it, or `None` outside of a job.
    pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let token = variable("SLURM_JOB_NAME")?.parse().ok()?;
        let index = variable("SLURM_ARRAY_TASK_ID")?.parse().ok().filter(|index| *index > 0)?;
        Some(Self { token, index })
    }

    /// Returns the id of its job for programs of Slurm: `12_3`. One task of an array has the array's number.
    pub fn job_id(&self, variable: impl Fn(&str) -> Option<String>) -> Option<String> {
        Some(format!("{}_{}", variable("SLURM_ARRAY_JOB_ID")?, self.index))
    }
}

impl fmt::Display for ArrayTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}", self.token, self.index)
    }
}

impl FromStr for ArrayTask {
    type Err = NoToken;

    fn from_str(text: &str) -> Result<Self, NoToken> {
        let (token, index) = text.rsplit_once('_').ok_or(NoToken)?;
        let index = index.parse().ok().filter(|index| *index > 0).ok_or(NoToken)?;
        Ok(Self { token: token.parse()?, index })
    }
}

/// The state of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobState {
    /// It waits.
    Pending,
    /// It runs, or is being started or ended.
    Running,
    /// It is over.
    Ended,
    /// This version of CompEval does not know the word.
    Unknown,
}

/// A job, as a scheduler describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduledJob {
    /// The scheduler's id of it: for Slurm the numbers of the job and the task, `12_3`.
    pub id: String,
    /// The name of its array.
    pub token: JobToken,
    /// The task, or `None` for all tasks of the array that have no line of their own. Slurm prints one line for all
    /// tasks that were cancelled before they started.
    pub index: Option<u32>,
    pub state: JobState,
    /// The scheduler's word for the state, or empty.
    pub word: String,
    /// The node, if it is on one.
    pub node: Option<String>,
    /// The reason why it waits or ended, if it says so; `None` is a word, too.
    pub reason: String,
}

impl ScheduledJob {
    /// Returns its end, or its present state, in the scheduler's words: `FAILED (NonZeroExitCode)`.
    pub fn description(&self) -> String {
        let is_said = !matches!(&*self.reason, "" | "None" | "N/A");
        let reason = if is_said { format!(" ({})", self.reason) } else { String::new() };
        format!("{}{reason}", self.word)
    }
}
/// An answer, by array and task.
pub(crate) struct JobAnswer<'a>(BTreeMap<(&'a JobToken, Option<u32>), &'a ScheduledJob>);

impl<'a> JobAnswer<'a> {
    pub(crate) fn new(jobs: &'a [ScheduledJob]) -> Self {
        Self(jobs.iter().map(|job| ((&job.token, job.index), job)).collect())
    }

    /// The line that is about a task.
    pub(crate) fn find_job(&self, token: &'a JobToken, index: u32) -> Option<&'a ScheduledJob> {
        self.0.get(&(token, Some(index))).or_else(|| self.0.get(&(token, None))).copied()
    }
}

/// A worker ends its calls this long before its scheduler kills it, or a quarter of its time limit.
pub(crate) const WARNING: Duration = Duration::from_secs(60);

/// A number of workers, to be submitted under one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerRequest {
    /// The name. It is used once, and must be written down before the submission begins.
    pub token: JobToken,
    /// The resources that each worker gets.
    pub resources: Resources,
    /// The number of workers, at least one.
    pub workers: u32,
    /// The nodes where they must not be started.
    pub exclude: Vec<String>,
}

/// A request, with all that the cluster has to know.
#[derive(Clone, Copy, Debug)]
pub struct Submission<'a> {
    pub request: &'a WorkerRequest,
    /// The directory in which workers are started, if the scheduler lets one say that. It must exist on the nodes, too: Slurm
    /// reports no error if it does not.
    pub directory: &'a Path,
    /// A directory for the logs of the workers. It must exist on the nodes, too.
    pub logs: &'a Path,
    /// The program that is a worker, and its arguments.
    pub command: &'a [OsString],
}

impl Submission<'_> {
    /// The script of each worker. The worker takes the place of the shell, so that it gets the scheduler's signals.
    ///
    /// `COMPEVAL_DEADLINE` is when the worker must end, in seconds since 1970. A prologue is read by a login shell, which knows
    /// `module`; if a line of it fails, no worker is started.
    pub(crate) fn script(&self, settings: &WorkerSettings) -> Vec<u8> {
        let limit = settings.walltime_for(&self.request.resources);
        let limit = (limit - WARNING.min(limit / 4)).as_secs();
        let deadline = format!("export COMPEVAL_DEADLINE=$(($(date +%s) + {limit}))\n");
        script(&settings.prologue, &deadline, self.command)
    }

    /// The log of a worker.
    pub fn log(logs: &Path, task: &ArrayTask) -> PathBuf {
        logs.join(format!("{task}.log"))
    }
}

/// Quotes a word for a shell.
pub(super) fn quoted(word: &[u8]) -> Vec<u8> {
    let mut quoted = vec![b'\''];
    for byte in word {
        quoted.extend(if *byte == b'\'' { &b"'\\''"[..] } else { std::slice::from_ref(byte) });
    }
    quoted.push(b'\'');
    quoted
}

/// A text as one word of the shell.
pub(super) fn word(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"%+,-./:=@_".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_plain) {
        return text.to_owned();
    }
    String::from_utf8_lossy(&quoted(text.as_bytes())).into_owned()
}

/// A script that executes a command in the place of its shell, after some lines of its own and the prologue.
pub(crate) fn script(prologue: &[String], first: &str, command: &[OsString]) -> Vec<u8> {
    let shell = if prologue.is_empty() { "#!/bin/sh" } else { "#!/bin/bash -l" };
    let mut script = format!("{shell}\n{first}").into_bytes();
    if !prologue.is_empty() {
        script.extend(format!("set -e\n{}\n", prologue.join("\n")).bytes());
    }
    script.extend(b"exec");
    for word in command {
        script.push(b' ');
        script.extend(quoted(word.as_bytes()));
    }
    script.push(b'\n');
    script
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_different_and_read_again() {
        let [one, two] = [(); 2].map(|()| JobToken::random().unwrap());
        assert_ne!(one, two);
        assert_eq!(one.as_str().parse(), Ok(one.clone()));
        for wrong in
            ["", "ce-", "ce-00000000000000zz", "xx-0000000000000000", "ce-0000000000000000,ce"]
        {
            assert_eq!(wrong.parse::<JobToken>(), Err(NoToken), "{wrong}");
        }
    }

    fn task(name: &str, index: &str) -> Option<ArrayTask> {
        ArrayTask::from_environment(|variable| match variable {
            "SLURM_JOB_NAME" => Some(name.to_owned()),
            "SLURM_ARRAY_TASK_ID" => Some(index.to_owned()),
            _ => None,
        })
    }

    #[test]
    fn a_worker_knows_its_job_and_array_index() {
        let known = task("ce-0123456789abcdef", "12").map(|task| task.to_string());
        assert_eq!(known.as_deref(), Some("ce-0123456789abcdef_12"));
        let task_of_ours = task("ce-0123456789abcdef", "12").unwrap();
        let id = task_of_ours
            .job_id(|variable| (variable == "SLURM_ARRAY_JOB_ID").then(|| "71".to_owned()));
        assert_eq!(id.as_deref(), Some("71_12"));
        assert_eq!(task("bash", "12"), None, "somebody else's job");
        assert_eq!(task("ce-0123456789abcdef", "0"), None);
        assert_eq!(ArrayTask::from_environment(|_| None), None);
    }

    #[test]
    fn the_worker_replaces_the_job_script() {
        let token = "ce-0123456789abcdef".parse().unwrap();
        let resources = Resources::default();
        let request = &WorkerRequest { token, resources, workers: 3, exclude: Vec::new() };
        let mut settings = WorkerSettings::default();
        let command = &["/it's/ce", "worker"].map(OsString::from);
        let (directory, logs) = (Path::new("/a b"), Path::new("/logs"));
        let script = |settings: &WorkerSettings| {
            let submission = Submission { request, directory, logs, command };
            String::from_utf8(submission.script(settings)).unwrap()
        };
        let deadline = "export COMPEVAL_DEADLINE=$(($(date +%s) + 3540))\n";
        let worker = "exec '/it'\\''s/ce' 'worker'\n";
        assert_eq!(script(&settings), format!("#!/bin/sh\n{deadline}{worker}"));
        settings.prologue = vec!["module load gcc".to_owned()];
        let prologue = "set -e\nmodule load gcc\n";
        assert_eq!(script(&settings), format!("#!/bin/bash -l\n{deadline}{prologue}{worker}"));
    }
}
