//! What squeue and sacct print.

use std::collections::BTreeMap;

use super::token::{ArrayTask, JobToken};

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
        let line = |index| self.0.get(&(token, index)).copied();
        line(Some(index)).or_else(|| line(None))
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
