//! Tickets: calls that are written down for a worker, and the answers of workers.
//!
//! They exist only while the run that wants the call lives, in its private directory. A ticket is a claim, not a proof: the
//! worker looks up the call, and verifies its computation and its inputs, like any run.

use std::num::NonZeroU32;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{AuditReport, Provenance, Published};
use crate::layout::ComputationVersion;
use ce_model::digest::{Blake3, ObjectId};
use ce_model::task::access::Access;
use ce_model::task::name::{ComputationName, TaskName};
use ce_model::task::resources::Resources;

/// The format of tickets and answers that this program writes and reads. Run and worker must know the same one.
pub const TICKET_FORMAT: u32 = 1;

/// The number of digits of the checksum of a line.
const CHECKSUM: usize = 16;

/// A call that a worker is to execute. All names are relative to the storage, which may be mounted elsewhere there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ticket {
    /// The format: see [`TICKET_FORMAT`].
    pub format: u32,
    /// The task that wants it.
    pub task: TaskName,
    /// The computation.
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
    /// What it asks for.
    pub resources: Resources,
    /// Its time limit, unless it asks for one.
    pub limit: Option<Duration>,
    /// Whether it is executed in a sandbox.
    pub isolated: bool,
    /// Whether its outputs are on the disk before they are published.
    pub synced: bool,
    /// Whether it is executed even if it has outputs.
    pub forced: bool,
    /// Whether it may replace outputs that are away by others.
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

/// What a worker says of a ticket.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TicketAnswer {
    /// The number of the ticket.
    pub ticket: u64,
    /// What became of the call.
    pub end: TicketEnd,
}

/// What became of a call at a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum TicketEnd {
    /// Its outputs are in the storage.
    Published(PublishedCall),
    /// It failed, and the failure is recorded.
    Failed(FailedCall),
    /// It has started something that goes on elsewhere, and was begun under this short name.
    Suspended(String),
    /// The worker lacks something that the call needs, which the call is not to blame for; in words, what.
    Refused(String),
    /// The worker ended before the call did; in words, why.
    Lost(String),
    /// The time of the worker was over before the call had ended.
    OutOfTime(OutOfTime),
    /// It was executed to be compared with its result.
    Audited(Box<AuditReport>),
}

/// A call that did not end within the time of its worker.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutOfTime {
    /// How long it was executed.
    pub seconds: f64,
    /// Whether that was nearly all the time that the worker had, so another one would not do.
    pub full: bool,
}

/// A call whose outputs are in the storage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedCall {
    /// Its short name.
    pub name: String,
    /// Where its outputs came from.
    pub source: OutputSource,
    /// Its outputs, in order.
    pub outputs: Vec<Published>,
}

/// Where the outputs of a call came from.
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

/// A call that failed at a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailedCall {
    /// Its short name.
    pub name: String,
    /// The reason, in words.
    pub reason: String,
    /// Advice for the user.
    pub hint: Option<String>,
    /// Whether the same would happen again.
    pub recurs: bool,
    /// Whether the storage is to blame, rather than the computation.
    pub storage: bool,
}

impl TicketAnswer {
    /// The answer as a line of a file: its checksum, its text, and a line feed.
    ///
    /// The line feed in front ends a line that was not written to its end.
    pub fn line(&self) -> String {
        let text = serde_json::to_string(self).unwrap_or_default();
        format!("\n{} {text}\n", checksum(&text))
    }

    /// Parses a line without its line feed. `None` if it is empty, or not as it was written.
    pub fn parse(line: &str) -> Option<Self> {
        let (sum, text) = line.split_once(' ')?;
        (sum == checksum(text)).then(|| serde_json::from_str(text).ok()).flatten()
    }
}

fn checksum(text: &str) -> String {
    Blake3::of(text.as_bytes()).full()[..CHECKSUM].to_owned()
}

/// What a worker can do.
#[derive(Clone, Debug)]
pub struct WorkerAbilities {
    /// The job of a scheduler that it runs in, if it was told.
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
            format: TICKET_FORMAT,
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

/// What a worker says of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkerRecord {
    /// The format: see [`TICKET_FORMAT`].
    pub format: u32,
    /// Its host, its user, when it began, and the version of the program.
    pub recorded: Provenance,
    /// The job of a scheduler that it runs in, if it was told.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_was_not_written_to_its_end_is_no_answer_and_harms_no_other() {
        let answer =
            |ticket| TicketAnswer { ticket, end: TicketEnd::Refused("why not\n?".to_owned()) };
        let first = answer(1).line();
        for end in 0..first.len() - 1 {
            let text = first[..end].to_owned() + &answer(2).line();
            let read: Vec<_> = text.lines().filter_map(TicketAnswer::parse).collect();
            assert_eq!(read, [answer(2)], "after {end} bytes");
        }
        let both = first + &answer(2).line();
        assert_eq!(
            both.lines().filter_map(TicketAnswer::parse).collect::<Vec<_>>(),
            [answer(1), answer(2)]
        );
    }
}
