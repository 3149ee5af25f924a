//! Records of results: JSON, one file each. The record of a call is its commit point.
//!
//! Every record has a number of its format. doc/formats.md describes the fields.

mod activity;
mod audit;
mod expected;
mod files;
mod host_kind;
mod housekeeping;
mod long_text;
mod origin;
mod place;
mod provenance;
mod published;
mod recipe;
mod revocation;
mod shared;
mod signer;
mod suspension;
mod ticket;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use self::activity::{FailedTitle, RunState, RunningCall, SubmittedRun};
pub use self::audit::{
    AuditFailure, AuditReport, AuditVerdict, FirstDifference, LineDifference, OutputDifference,
};
pub use self::expected::{Defect, ExpectedFile, Finding, Stopped};
pub use self::files::{Read, Record, Records};
pub use self::host_kind::HostKind;
pub use self::housekeeping::{PinRecord, RepositoryRecord, Tombstone, VersionRecord};
pub use self::long_text::LongText;
pub use self::origin::{Execution, NOT_ISOLATED, Origin, SharedOrigin};
pub(super) use self::place::differences;
pub use self::provenance::Provenance;
pub(super) use self::provenance::host;
pub use self::published::{Published, Stamp};
pub use self::recipe::{
    RecipeError, RecipeFile, RecipeHeader, RecipeReader, RecipeRow, RecipeWriter,
};
pub use self::revocation::RevocationRecord;
pub use self::signer::SignerNote;
pub use self::suspension::{SuspensionRecord, SuspensionState, WaitingJob};
pub use self::ticket::{
    FailedCall, OutOfTime, OutputSource, PublishedCall, TICKET_FORMAT, Ticket, TicketAnswer,
    TicketEnd, TicketValue, WorkerAbilities, WorkerRecord,
};
use super::layout::{ComputationVersion, Entry, TaskVersion};
use ce_model::digest::{Digest, ObjectId};
use ce_model::task::name::{ComputationName, InputName, TaskName};
use ce_model::task::slice::MAX_ARITY;

/// The newest format of records that this program reads.
pub const FORMAT: u32 = 3;

/// The format of a record. Reading a record of an unknown format fails.
///
/// Format 3 is that of records in a results repository, which do not say when, where and by whom. Of the others, format 2
/// is that of records that name a directory, and all that name none have format 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format(u32);

impl Format {
    /// The format of a record that names no directory.
    pub(crate) const FILES: Self = Self(1);

    /// The format of a record in a results repository.
    pub(crate) const SHARED: Self = Self(3);

    /// The format of a record that names these values.
    pub(crate) fn of<'a>(values: impl IntoIterator<Item = &'a Digest>) -> Self {
        match values.into_iter().any(Digest::is_directory) {
            true => Self(2),
            false => Self::FILES,
        }
    }
}

impl Serialize for Format {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(self.0)
    }
}

impl<'de> Deserialize<'de> for Format {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match u32::deserialize(deserializer)? {
            known @ 1..=FORMAT => Ok(Self(known)),
            other => Err(D::Error::custom(format_args!("format {other} is not known"))),
        }
    }
}

/// Reads a list that two digits can number.
fn few<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let list = Vec::deserialize(deserializer)?;
    if list.len() > MAX_ARITY {
        return Err(D::Error::invalid_length(list.len(), &"at most 100"));
    }
    Ok(list)
}

/// The record of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallRecord {
    /// The format of this record.
    pub format: Format,
    /// The computation.
    pub computation: ComputationName,
    /// The commit that holds it.
    pub commit: ObjectId,
    /// The Git tree of its directory.
    pub tree: ObjectId,
    /// The tree is not the commit's: there were uncommitted changes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dirty: bool,
    /// Its inputs, in order.
    #[serde(deserialize_with = "few")]
    pub inputs: Vec<Digest>,
    /// Its outputs, in order.
    #[serde(deserialize_with = "few")]
    pub outputs: Vec<Published>,
    /// The origin of the outputs.
    pub origin: Origin,
    /// The user, host and time of recording. In a results repository, no record has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<Provenance>,
}

impl CallRecord {
    /// The version of the computation.
    pub fn version(&self) -> ComputationVersion<'_> {
        let Self { computation, commit, tree, dirty, .. } = self;
        ComputationVersion { computation, commit, tree, dirty: *dirty }
    }

    /// The execution, unless the outputs were adopted or executed in another storage.
    pub const fn execution(&self) -> Option<&Execution> {
        match &self.origin {
            Origin::Executed { execution, .. } => Some(execution),
            Origin::Adopted | Origin::Shared(_) => None,
        }
    }

    /// Whether it was taken over only because its tree was trusted.
    pub fn has_trusted_tree(&self) -> bool {
        self.execution().is_some_and(|execution| execution.trusted_tree)
    }

    /// The result that its directories are links to, if they were taken over. It is kept with this one.
    pub fn linked(&self) -> Option<Entry> {
        let linked = self.outputs.iter().any(|output| output.digest.is_directory());
        Entry::of_short(self.origin.taken_over().filter(|_| linked)?)
    }

    /// The duration of the execution, in seconds, if it is known.
    pub fn seconds(&self) -> Option<f64> {
        let Execution { start, end, .. } = self.execution()?;
        Some(end.duration_since(*start).as_secs_f64().max(0.0))
    }
}

/// The record of a task input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InputRecord {
    /// The format of this record.
    pub format: Format,
    /// The file.
    #[serde(flatten)]
    pub file: Published,
    /// The user, host and time of recording.
    pub recorded: Provenance,
}

/// The record of a job, with the names of calls as `C`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobRecord<C = Vec<String>> {
    /// The format of this record.
    pub format: Format,
    /// The task.
    pub task: TaskName,
    /// The commit of the task's repository.
    pub commit: ObjectId,
    /// The path of the task in its repository. Records of earlier versions of this program lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// Its inputs, in order.
    pub inputs: Vec<JobInput>,
    /// The literals that its workflow reads. Records of earlier versions of this program lack them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub literals: Option<Vec<JobOutput>>,
    /// Its outputs, in order.
    #[serde(deserialize_with = "few")]
    pub outputs: Vec<JobOutput>,
    /// The short names of the calls of its workflow.
    pub calls: C,
    /// The user, host and time of recording. In a results repository, no record has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<Provenance>,
}

impl JobRecord {
    /// The version of the task.
    pub fn version(&self) -> TaskVersion<'_> {
        let Self { task: name, commit, place, .. } = self;
        TaskVersion { name, commit, place: place.as_deref() }
    }
}

/// The record of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableRecord {
    /// The format of this record.
    pub format: Format,
    /// The recipe, which decides its name.
    pub recipe: Published,
    /// The table, and the directory of the outputs that it was made from, if that was needed.
    #[serde(deserialize_with = "one_or_two")]
    pub outputs: Vec<Published>,
    /// The user, host and time of recording. In a results repository, no record has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<Provenance>,
}

impl TableRecord {
    /// The record of a table, written now.
    pub(crate) fn now(recipe: Published, outputs: Vec<Published>) -> Self {
        let format = Format::of(outputs.iter().map(|output| &output.digest));
        Self { format, recipe, outputs, recorded: Some(Provenance::now()) }
    }
}

/// Reads the outputs of a table: a file, and possibly a directory.
fn one_or_two<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Published>, D::Error> {
    let outputs = Vec::<Published>::deserialize(deserializer)?;
    let kinds = outputs.iter().map(|output| output.digest.is_directory());
    match kinds.eq([false, true].into_iter().take(outputs.len().max(1))) {
        true => Ok(outputs),
        false => Err(D::Error::custom("expected a file, and a directory at most")),
    }
}

/// An input of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobInput {
    /// Its symbolic name in the task.
    pub name: InputName,
    /// The digest of its contents.
    #[serde(flatten)]
    pub digest: Digest,
}

/// An output or literal of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobOutput {
    /// Its name in the storage.
    pub file: String,
    /// The digest of its contents.
    #[serde(flatten)]
    pub digest: Digest,
}

/// The record of a call that failed. It is never used as a result.
///
/// An optional field is `null` if it is unknown: without the field, the record is spoiled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailureRecord {
    /// The format of this record.
    pub format: Format,
    /// The computation.
    pub computation: ComputationName,
    /// The commit that holds it.
    pub commit: ObjectId,
    /// The Git tree of its directory. Records of earlier versions of this program lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<ObjectId>,
    /// Its inputs, in order.
    #[serde(deserialize_with = "few")]
    pub inputs: Vec<Digest>,
    /// The isolation of the execution, if `exec` was started. Records of earlier versions of this program lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<String>,
    /// The reason, in words.
    pub reason: String,
    /// Its exit status, if it ended by itself.
    #[serde(deserialize_with = "Option::deserialize")]
    pub exit_status: Option<i32>,
    /// The signal that killed it, if one did.
    #[serde(deserialize_with = "Option::deserialize")]
    pub signal: Option<i32>,
    /// The exit statuses of its tasks, by their numbers, if a launcher has started it: null for one that has noted none.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub tasks: Box<[Option<u8>]>,
    /// The duration, in seconds.
    pub seconds: f64,
    /// The user, host and time of recording.
    pub recorded: Provenance,
}

impl FailureRecord {
    /// Whether `exec` was started and could read nothing but its inputs and its computation.
    pub fn is_isolated(&self) -> bool {
        self.isolation.as_ref().is_some_and(|isolation| isolation != NOT_ISOLATED)
    }
}

/// The part of a record with its format.
#[derive(Deserialize)]
pub(crate) struct FormatOf {
    pub(crate) format: u32,
}
