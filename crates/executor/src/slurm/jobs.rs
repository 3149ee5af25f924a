//! Names of job arrays and their workers, and the states of jobs as squeue and sacct print them.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::str::FromStr;

/// What a token begins with, so that people see in a queue whose job it is.
const PREFIX: &str = "ce-";
/// The number of random bytes.
const RANDOM: usize = 8;

/// The name of a job array, which no other one has. It identifies the jobs, because Slurm may assign the number of a job
/// again after its controller has crashed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobToken(String);

impl JobToken {
    /// Makes a token from random bytes of the kernel.
    pub fn random() -> io::Result<Self> {
        let mut bytes = [0; RANDOM];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        Ok(Self(format!("{PREFIX}{:016x}", u64::from_le_bytes(bytes))))
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

/// One worker: a task of a job array.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArrayTask {
    /// The name of the array.
    pub token: JobToken,
    /// The index of the task, counted from one.
    pub index: u32,
}

impl ArrayTask {
    /// Returns the task that this process is, from the variables that Slurm sets for it, or `None` outside of one.
    pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let token = variable("SLURM_JOB_NAME")?.parse().ok()?;
        let index = variable("SLURM_ARRAY_TASK_ID")?.parse().ok().filter(|index| *index > 0)?;
        Some(Self { token, index })
    }

    /// Returns what programs of Slurm call its job: `12_3`. The number of one task of an array is that of the array, too.
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

/// The fields of a line of squeue: job, name, state, nodes, reason. Only the last one may hold any text.
pub(super) const FORMAT: &str = "%i|%j|%T|%N|%r";

/// Where a job is.
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

impl JobState {
    /// The state with a name of Slurm's.
    fn of_word(word: &str) -> Self {
        match word {
            "PENDING" | "REQUEUED" | "REQUEUE_FED" | "REQUEUE_HOLD" | "RESV_DEL_HOLD"
            | "SPECIAL_EXIT" => Self::Pending,
            "RUNNING" | "CONFIGURING" | "COMPLETING" | "RESIZING" | "SIGNALING" | "STAGE_OUT"
            | "STOPPED" | "SUSPENDED" => Self::Running,
            "BOOT_FAIL" | "CANCELLED" | "COMPLETED" | "DEADLINE" | "FAILED" | "NODE_FAIL"
            | "OUT_OF_MEMORY" | "PREEMPTED" | "REVOKED" | "TIMEOUT" => Self::Ended,
            _ => Self::Unknown,
        }
    }
}

/// A line of squeue's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlurmJob {
    /// The number of the job, with that of the task: `12_3`.
    pub id: String,
    /// The name of its array.
    pub token: JobToken,
    /// The task, or `None` for all tasks of the array that have no line of their own. Slurm prints one line for those that
    /// were cancelled before they started.
    pub index: Option<u32>,
    /// Where it is.
    pub state: JobState,
    /// Slurm's name of that.
    pub word: String,
    /// The node, if it is on one.
    pub node: Option<String>,
    /// Why it waits or ended; `None` is a word, too.
    pub reason: String,
}

impl SlurmJob {
    /// Reads a line.
    fn read(line: &str) -> Option<Self> {
        let mut fields = line.splitn(5, '|').map(str::trim);
        let (id, token) = (fields.next()?, fields.next()?.parse().ok()?);
        let (word, nodes, reason) = (fields.next()?, fields.next()?, fields.next()?);
        let index = id.split_once('_').map_or("", |(_, index)| index);
        let is_one = !nodes.is_empty() && !nodes.contains(['[', ',', '(']);
        Some(Self {
            id: id.to_owned(),
            token,
            index: index.parse().ok(),
            state: JobState::of_word(word),
            word: word.to_owned(),
            node: is_one.then(|| nodes.to_owned()),
            reason: reason.to_owned(),
        })
    }

    /// Reads the whole answer. Returns the first line that is not understood otherwise: then nothing is known.
    pub(super) fn read_all(text: &str) -> Result<Vec<Self>, &str> {
        // With several clusters there are titles between the lines.
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with("CLUSTER:"));
        lines.map(|line| Self::read(line).ok_or(line)).collect()
    }

    /// How it ended, or where it is, in Slurm's words: `FAILED (NonZeroExitCode)`.
    pub fn description(&self) -> String {
        let is_said = !matches!(&*self.reason, "" | "None" | "N/A");
        let reason = if is_said { format!(" ({})", self.reason) } else { String::new() };
        format!("{}{reason}", self.word)
    }
}

/// An answer, by array and task.
pub(super) struct JobAnswer<'a>(BTreeMap<(&'a JobToken, Option<u32>), &'a SlurmJob>);

impl<'a> JobAnswer<'a> {
    pub(super) fn new(jobs: &'a [SlurmJob]) -> Self {
        Self(jobs.iter().map(|job| ((&job.token, job.index), job)).collect())
    }

    /// The line that is about a task.
    pub(super) fn of(&self, token: &'a JobToken, index: u32) -> Option<&'a SlurmJob> {
        self.0.get(&(token, Some(index))).or_else(|| self.0.get(&(token, None))).copied()
    }
}

/// Reads how a task ended from lines `JOB_TASK|STATE|...` of sacct.
pub(super) fn read_accounting(text: &str, task: &ArrayTask) -> Option<String> {
    let end = format!("_{}", task.index);
    let word = text.lines().find_map(|line| {
        let mut fields = line.split('|');
        fields.next().filter(|id| id.ends_with(&end)).and(fields.next())
    })?;
    // `CANCELLED by 1000`
    let word = word.split(' ').next()?;
    (JobState::of_word(word) == JobState::Ended).then(|| word.to_owned())
}

/// What a state means for a worker that had it, and what to try.
pub(super) fn meaning(word: &str) -> Option<&'static str> {
    Some(match word {
        "OUT_OF_MEMORY" => "it took more memory than it had; ask for more `memory`",
        "TIMEOUT" => "its time was over; ask for more `time`",
        "NODE_FAIL" | "BOOT_FAIL" => "its node failed",
        "PREEMPTED" => "a more important job took its place",
        "CANCELLED" | "REVOKED" => "somebody cancelled it",
        "DEADLINE" => "it could not end before its deadline",
        _ => return None,
    })
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
    fn a_worker_knows_which_task_it_is() {
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

    const ANSWER: &str = "CLUSTER: here\n\
        3_1|ce-0000000000000003|RUNNING|n1|None\n\
        3_2|ce-0000000000000003|FAILED|n2|JobLaunchFailure\n\
        3|ce-0000000000000003|CANCELLED||Resources\n\
        4_[1-7]|ce-0000000000000004|PENDING|n[1-2]|(a | b)\n\
        5_1|ce-0000000000000005|LATER||None\n";

    #[test]
    fn an_answer_is_read_line_by_line() {
        let jobs = SlurmJob::read_all(ANSWER).unwrap();
        let states: Vec<_> = jobs.iter().map(|job| (job.index, job.state)).collect();
        let ended = JobState::Ended;
        let first = [(Some(1), JobState::Running), (Some(2), ended), (None, ended)];
        assert_eq!(states[..3], first);
        assert_eq!(states[3..], [(None, JobState::Pending), (Some(1), JobState::Unknown)]);
        assert_eq!(jobs[1].node.as_deref(), Some("n2"));
        assert_eq!(jobs[1].description(), "FAILED (JobLaunchFailure)");
        assert_eq!((&*jobs[3].reason, &jobs[3].node), ("(a | b)", &None));
        let answer = JobAnswer::new(&jobs);
        let id = |index| answer.of(&jobs[0].token, index).map(|job| job.id.as_str());
        assert_eq!([id(1), id(2), id(3)], [Some("3_1"), Some("3_2"), Some("3")]);
        assert!(answer.of(&"ce-00000000000000ff".parse().unwrap(), 1).is_none());
    }

    #[test]
    fn an_answer_that_is_not_understood_says_nothing() {
        assert_eq!(SlurmJob::read_all("").unwrap(), []);
        for wrong in
            ["slurm_load_jobs error", "1_1|bash|RUNNING|n1|None", "1_1|ce-0000000000000001"]
        {
            assert_eq!(SlurmJob::read_all(wrong), Err(wrong));
        }
    }

    #[test]
    fn accounting_tells_how_a_task_ended() {
        let token: JobToken = "ce-0000000000000003".parse().unwrap();
        let end = |index| {
            let text = "3_1|OUT_OF_MEMORY|0:125\n3_11|RUNNING|0:0\n3_2|CANCELLED by 0|0:0\n";
            read_accounting(text, &ArrayTask { token: token.clone(), index })
        };
        assert_eq!([end(1), end(2)].map(Option::unwrap), ["OUT_OF_MEMORY", "CANCELLED"]);
        assert_eq!([end(11), end(4)], [None, None]);
    }
}
