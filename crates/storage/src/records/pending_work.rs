//! Records of pending work: tickets for workers and their answers, states of runs, and suspended calls.
//!
//! A ticket exists only while the run that wants the call lives, in its private directory. It is a claim, not a proof: the
//! worker looks up the call, and verifies its computation and its inputs, like any run. The state of a run is for display only.
//! The record of a suspended call has all that is needed to continue it, to poll it and to cancel it on any host.

use std::num::NonZeroU32;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{AuditReport, FailedCall, Format, Provenance, Published};
use crate::paths::{ComputationVersion, ResultName};
use ce_files::state::SecretKey;
use ce_model::access::{Access, Rule};
use ce_model::digest::{Blake3, Digest, ObjectId};
use ce_model::name::{ComputationName, TaskName};
use ce_model::resources::Resources;

/// The format of tickets and answers that this program writes and reads. Run and worker must know the same one.
pub const TICKET_FORMAT: u32 = 2;

/// The format of the record of a worker.
const WORKER_FORMAT: u32 = 1;

/// The text of a message, and the code that says by its key who has written it: 64 hexadecimal digits, a blank, and the text.
pub(crate) fn signed(code: &Blake3, text: &str) -> String {
    format!("{} {text}", code.full())
}

/// The code and the text of a message.
pub(crate) fn split_signed(message: &str) -> Option<(Blake3, &str)> {
    let (code, text) = message.split_once(' ')?;
    Some((Blake3::from_digits(code.as_bytes())?, text))
}

/// A call that a worker is to execute. All names are relative to the storage, which may be mounted elsewhere there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ticket {
    /// The format: see [`TICKET_FORMAT`].
    pub format: u32,
    /// The task that wants it.
    pub task: TaskName,
    pub computation: ComputationName,
    /// The commit that holds it.
    pub commit: ObjectId,
    /// The Git tree of its directory.
    pub tree: ObjectId,
    /// The tree is not the commit's.
    pub dirty: bool,
    /// The Git tree that the exported directory has as it stands. It differs if the tree has submodules.
    pub export: ObjectId,
    /// The symbolic names of its inputs.
    pub inputs: Vec<String>,
    /// The symbolic names of its outputs.
    pub outputs: Vec<String>,
    /// Its grants of access.
    pub access: Access,
    /// The values that it reads, in order.
    pub values: Vec<TicketValue>,
    /// The resources that it requests.
    pub resources: Resources,
    /// Its time limit, unless it asks for one.
    pub limit: Option<Duration>,
    /// Whether it is executed in a sandbox.
    pub isolated: bool,
    /// Whether its outputs are on the disk before they are published.
    pub synced: bool,
    /// Whether it is executed even if it has outputs.
    pub forced: bool,
    /// Whether it may replace outputs that are away by differing ones.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub accept: bool,
    /// Whether it has outputs, and is executed only to compare them. Nothing is published then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub audited: bool,
}

/// A value that a call reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TicketValue {
    /// Its name in the storage.
    pub name: String,
    /// Its digest and its stamp.
    #[serde(flatten)]
    pub value: Published,
}

impl Ticket {
    /// The version of the computation.
    pub fn version(&self) -> ComputationVersion<'_> {
        let Self { computation, commit, tree, dirty, .. } = self;
        ComputationVersion { computation, commit, tree, dirty: *dirty }
    }
}

/// The answer of a worker to a ticket.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TicketAnswer {
    /// The number of the ticket.
    pub ticket: u64,
    /// The end of the call.
    pub end: TicketEnd,
}

/// The end of a call at a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum TicketEnd {
    /// Its outputs are in the storage.
    Published(PublishedCall),
    /// It failed, and the failure is recorded.
    Failed(FailedCall),
    /// It has started a process that runs elsewhere, and was begun under this short name.
    Suspended(String),
    /// The worker lacks something that the call needs, which the call is not to blame for; in words, what.
    Refused(String),
    /// The worker ended before the call did; in words, why.
    Lost(String),
    /// The time of the worker was over before the call had ended.
    OutOfTime(OutOfTime),
    /// Its worker was ended by a scheduler, since it used more memory than it had. No worker answers so: the run finds out.
    OutOfMemory,
    /// It was executed to be compared with its result.
    Audited(Box<AuditReport>),
}

/// A call that did not end within the time of its worker.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutOfTime {
    /// The duration of its execution, in seconds.
    pub seconds: f64,
    /// Whether the worker had nearly all its time left, so another worker would not help.
    pub full: bool,
}

/// A call whose outputs are in the storage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedCall {
    /// Its short name.
    pub name: String,
    pub source: OutputSource,
    /// Its outputs, in order.
    pub outputs: Vec<Published>,
}

/// The source of the outputs of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputSource {
    /// The worker executed it.
    Executed,
    /// They were there when the worker looked.
    Reused,
    /// Another commit had an equivalent result.
    TakenOver,
}

impl TicketAnswer {
    /// The answer as a line of a file: the code of its text, its text, and a line feed.
    ///
    /// The line feed in front ends a line that was not written to its end.
    pub(crate) fn line(&self, sign: impl FnOnce(&str) -> Blake3) -> String {
        let text = serde_json::to_string(self).unwrap_or_default();
        format!("\n{}\n", signed(&sign(&text), &text))
    }

    /// Parses a line without its line feed, and returns its code and its text, too. `None` if it is empty, or was not written to its
    /// end.
    pub(crate) fn parse(line: &str) -> Option<(Self, Blake3, &str)> {
        let (code, text) = split_signed(line)?;
        Some((serde_json::from_str(text).ok()?, code, text))
    }
}

/// The abilities of a worker.
#[derive(Clone, Debug)]
pub struct WorkerAbilities {
    /// The job of a scheduler that it runs in, if any.
    pub job: Option<String>,
    /// The name under which a run has submitted it.
    pub task: Option<String>,
    /// The number of processors that its calls may use.
    pub cpus: usize,
    /// The memory that its calls may use, in bytes, if that is known.
    pub memory: Option<u64>,
    /// The hosts and the tasks of the allocation that one of its calls may have.
    pub allocation: Option<(NonZeroU32, NonZeroU32)>,
    /// Whether it isolates calls.
    pub isolates: bool,
    /// The time that it has, if that is limited.
    pub life: Option<Duration>,
}

impl WorkerAbilities {
    /// The record of a worker that begins now on this host.
    pub(crate) fn record(self) -> WorkerRecord {
        let Self { job, task, cpus, memory, allocation, isolates, life } = self;
        let (nodes, tasks) = allocation.unzip();
        let recorded = Provenance::now();
        let deadline = life.and_then(|life| recorded.at.checked_add(life).ok());
        WorkerRecord {
            format: WORKER_FORMAT,
            recorded,
            job,
            task,
            cpus,
            memory,
            nodes,
            tasks,
            isolates,
            deadline,
        }
    }
}

/// The description that a worker gives of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkerRecord {
    /// The format, 1.
    pub format: u32,
    /// Its host, its user, when it began, and the version of the program.
    pub recorded: Provenance,
    /// The job of a scheduler that it runs in, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// The name under which a run has submitted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The number of processors that its calls may use.
    pub cpus: usize,
    /// The memory that its calls may use, in bytes, if that is limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// The number of hosts of the allocation that one of its calls may have, if it is in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<NonZeroU32>,
    /// The number of tasks of that allocation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<NonZeroU32>,
    /// Whether it isolates calls.
    pub isolates: bool,
    /// When its time is over, if it is limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
}

/// The progress of a run. It is written again every few seconds, and goes with the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunState {
    /// The name of the task.
    pub task: String,
    /// The version of the task: the commit, shortened.
    pub version: String,
    /// The user, host and time of the beginning of the run.
    pub began: Provenance,
    /// When this was written.
    pub at: Timestamp,
    /// The calls that are over.
    pub done: usize,
    /// All calls that are known and asked for.
    pub all: usize,
    /// Whether there may be more.
    pub at_least: bool,
    /// The calls that had results.
    pub found: usize,
    /// The calls that wait for workers.
    pub queued: usize,
    /// The number of calls that run.
    pub running: usize,
    /// The calls that have run longest.
    pub longest: Vec<RunningCall>,
    /// The number of calls that have failed.
    pub failed: usize,
    /// The first of them, and why.
    pub failures: Vec<FailedTitle>,
    /// The time until it ends in seconds, if that can be estimated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds_left: Option<f64>,
}

/// A call that runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunningCall {
    /// Its title, for people.
    pub title: String,
    /// The time since its start, in seconds.
    pub seconds: f64,
}

/// A call that has failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedTitle {
    /// Its title, for people.
    pub title: String,
    /// The reason, in words.
    pub reason: String,
}

/// A run that was submitted as a job. Its file is removed when the job begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubmittedRun {
    /// The name of the task.
    pub task: String,
    /// The version of the task: the commit, shortened.
    pub version: String,
    /// The name of its jobs.
    pub job: String,
    /// The user, host and time of its submission.
    pub recorded: Provenance,
}

/// The state of a suspended call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SuspensionState {
    /// `exec` runs, or its run has died.
    Executing,
    /// `exec` has ended, and the process that it has started runs elsewhere.
    Suspended,
    /// `exec` has failed, and its directory is not empty: a process that it has started may still run.
    Failed,
}

/// A job that waits for a suspended call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingJob {
    pub task: TaskName,
    /// The commit of its repository.
    pub commit: ObjectId,
}

/// The record of a suspended call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SuspensionRecord {
    /// The format of this record.
    pub format: Format,
    pub computation: ComputationName,
    /// The commit that holds it.
    pub commit: ObjectId,
    /// The Git tree of its directory.
    pub tree: ObjectId,
    /// The tree is not the commit's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dirty: bool,
    /// The Git tree that the exported directory of the computation has as it stands.
    pub export: ObjectId,
    /// The values that it reads, in order.
    pub inputs: Vec<TicketValue>,
    /// The symbolic names of its inputs.
    pub input_names: Vec<String>,
    /// The symbolic names of its outputs.
    pub output_names: Vec<String>,
    /// Its grants of access: the lines of its file `access`.
    pub access: Vec<String>,
    /// Whether it was executed in a sandbox.
    pub isolated: bool,
    pub state: SuspensionState,
    /// The number of times that `exec` was started.
    pub attempts: u32,
    /// When `exec` was started first.
    pub since: Timestamp,
    /// The first jobs that wait for it.
    pub jobs: Vec<WaitingJob>,
    /// The user, host and time of the last change.
    pub recorded: Provenance,
    /// The [code](SuspensionRecord::code_of) of the user who has begun it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Blake3>,
}

/// The kind of message that the code of a suspended call is for.
const SUSPENDED_CALL: &[u8] = b"compeval suspended 1";

/// The greatest number of jobs that are recorded.
const MAX_JOBS: usize = 20;

impl SuspensionRecord {
    /// The format of a record of a call that reads these values.
    pub fn format_of(values: &[TicketValue]) -> Format {
        Format::for_values(values.iter().map(|value| &value.value.digest))
    }

    /// The version of the computation.
    pub fn version(&self) -> ComputationVersion<'_> {
        let Self { computation, commit, tree, dirty, .. } = self;
        ComputationVersion { computation, commit, tree, dirty: *dirty }
    }

    /// Returns the code of the call with this name by the key of a user. It covers everything that determines what is
    /// executed when the call is asked or cancelled.
    pub fn code_of(&self, name: &ResultName, key: &SecretKey) -> Blake3 {
        let Self { computation, commit, tree, dirty, export, .. } = self;
        let Self { inputs, input_names, output_names, access, isolated, .. } = self;
        let version = (name.short(), computation, commit, tree, dirty, export);
        let call = (version, inputs, input_names, output_names, access, isolated);
        // It is read from JSON, too.
        let text = serde_json::to_vec(&call).unwrap_or_default();
        key.sign(&[SUSPENDED_CALL, &text])
    }

    /// Its grants of access. A line that only a newer version knows grants nothing.
    pub fn granted(&self) -> Access {
        let rules =
            self.access.iter().map(|line| Rule::parse(line, &self.input_names, &self.output_names));
        Access::new(rules.filter_map(Result::ok).collect())
    }

    /// The digests of its inputs.
    pub fn digests(&self) -> Vec<Digest> {
        self.inputs.iter().map(|input| input.value.digest).collect()
    }

    /// Adds a job that waits for it. Returns whether that is new.
    pub fn add_job(&mut self, job: &WaitingJob) -> bool {
        let is_new = !self.jobs.contains(job) && self.jobs.len() < MAX_JOBS;
        if is_new {
            self.jobs.push(job.clone());
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_truncated_line_is_ignored_and_spoils_no_other_answer() {
        let answer =
            |ticket| TicketAnswer { ticket, end: TicketEnd::Refused("why not\n?".to_owned()) };
        let line = |ticket| answer(ticket).line(|text| Blake3::hash_bytes(text.as_bytes()));
        let read = |text: &str| {
            let read = text.lines().filter_map(TicketAnswer::parse);
            read.map(|(answer, code, text)| {
                assert_eq!(code, Blake3::hash_bytes(text.as_bytes()));
                answer
            })
            .collect::<Vec<_>>()
        };
        let first = line(1);
        for end in 0..first.len() - 1 {
            let text = first[..end].to_owned() + &line(2);
            assert_eq!(read(&text), [answer(2)], "after {end} bytes");
        }
        assert_eq!(read(&(first + &line(2))), [answer(1), answer(2)]);
    }
}
