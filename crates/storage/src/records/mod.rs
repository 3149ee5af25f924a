//! Records of results: JSON, one file each. The record of a call is its commit point.
//!
//! Every record has a number of its format. doc/formats.md describes the fields. A record appears atomically: it is written
//! under a private name first.
//!
//! Records in a results repository have the sources of results and the isolation of executions, without user, host and
//! time. So equal results have equal bytes, regardless of who executed them. Beside them are the records of audits, of
//! signers of the ledger, and of revocations.

mod failure;
mod pending_work;
mod promised_files;
mod provenance;
mod recipe;

use std::path::{Component, Path, PathBuf};

use jiff::Timestamp;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use self::failure::{FailedCall, Failure, FailureFacts, FailureRecord};
pub use self::pending_work::{
    FailedTitle, OutOfTime, OutputSource, PublishedCall, RunState, RunningCall, SubmittedRun,
    SuspensionRecord, SuspensionState, TICKET_FORMAT, Ticket, TicketAnswer, TicketEnd, TicketValue,
    WaitingJob, WorkerAbilities, WorkerRecord,
};
pub(crate) use self::pending_work::{signed, split_signed};
pub(super) use self::promised_files::differences;
pub use self::promised_files::{
    CheckStopped, Defect, ExpectedFile, Finding, OwnOutput, Published, Stamp,
};
pub(super) use self::provenance::host;
pub use self::provenance::{
    Arguments, Execution, HostKind, NOT_ISOLATED, Origin, Provenance, SharedOrigin, machine,
};
pub use self::recipe::{
    LongText, RecipeError, RecipeFile, RecipeHeader, RecipeReader, RecipeRow, RecipeWriter,
};
use super::disk::{ForeignEntry, Result, Root, StorageError};
use super::paths::{ComputationVersion, Entry, RECORDS, TaskVersion};
use ce_files::cache::FileStat;
use ce_model::digest::{Digest, ObjectId};
use ce_model::name::{ComputationName, InputName, StorageName, TaskName};
use ce_model::shared_text::SharedText;
use ce_model::slice::MAX_ARITY;

/// The newest format of records that this program reads.
pub const FORMAT: u32 = 4;

/// The format of a record. Reading a record of an unknown format fails.
///
/// Records in a results repository have format 3: they do not say when, where and by whom. Jobs that depend on revisions have format 4.
/// Other records have format 2 if they name a directory, and else format 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format(u32);

impl Format {
    /// The format of a record that names no directory.
    pub(crate) const FILES: Self = Self(1);

    /// The format of a record in a results repository.
    pub(crate) const SHARED: Self = Self(3);

    /// The format of the record of a job that depends on revisions.
    pub(crate) const REVISIONS: Self = Self(4);

    /// The format of a record that names these values.
    pub(crate) fn for_values<'a>(values: impl IntoIterator<Item = &'a Digest>) -> Self {
        if values.into_iter().any(Digest::is_directory) { Self(2) } else { Self::FILES }
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
fn at_most_100<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let mut list = Vec::deserialize(deserializer)?;
    if list.len() > MAX_ARITY {
        return Err(D::Error::invalid_length(list.len(), &"at most 100"));
    }
    // History keeps the records of millions of calls.
    list.shrink_to_fit();
    Ok(list)
}

/// The record of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallRecord {
    /// The format of this record.
    pub format: Format,
    pub computation: ComputationName,
    /// The commit that holds it.
    pub commit: ObjectId,
    /// The Git tree of its directory.
    pub tree: ObjectId,
    /// The tree is not the commit's: there were uncommitted changes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dirty: bool,
    /// Its inputs, in order.
    #[serde(deserialize_with = "at_most_100")]
    pub inputs: Vec<Digest>,
    /// Its outputs, in order.
    #[serde(deserialize_with = "at_most_100")]
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
    #[serde(flatten)]
    pub file: Published,
    /// The user, host and time of recording.
    pub recorded: Provenance,
}

/// The record of the directory in a commit that a task has read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CommitTreeRecord {
    /// The format of this record.
    pub format: Format,
    /// The commit, of any repository.
    pub commit: ObjectId,
    /// The path of the directory in it; empty for the whole commit.
    pub path: String,
    /// Its Git tree.
    pub tree: ObjectId,
    /// The directory that is a task input.
    #[serde(flatten)]
    pub directory: Digest,
    /// The user, host and time of recording.
    pub recorded: Provenance,
}

/// The record of a job, with the names of calls as `C`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobRecord<C = Vec<String>> {
    /// The format of this record.
    pub format: Format,
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
    /// The ranges of these literals that are the files and texts of the commit, or that sheets among its inputs name. They need not be
    /// looked at again. In a results repository, no record has them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own: Vec<[usize; 2]>,
    /// The ranges of these literals that sheets among its inputs name. They are inputs, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub named: Vec<[usize; 2]>,
    /// The revisions by which it has found commits, other than full commit ids. The job counts as long as they name the same commits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub revisions: Vec<JobRevision>,
    /// Its outputs, in order.
    #[serde(deserialize_with = "at_most_100")]
    pub outputs: Vec<JobOutput>,
    /// The short names of the calls of its workflow.
    pub calls: C,
    /// The user, host and time of recording. In a results repository, no record has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<Provenance>,
}

impl JobRecord {
    /// The directory of the task in a work tree of its repository, if the record names one that is in it.
    pub fn task_in(&self, top: &Path) -> Option<PathBuf> {
        let place = Path::new(self.place.as_ref()?);
        let is_inside = place.components().all(|part| matches!(part, Component::Normal(_)));
        is_inside.then(|| top.join(place))
    }

    /// The digests of the files that sheets among its inputs name.
    pub fn named_files(&self) -> impl Iterator<Item = Digest> {
        let literals = self.literals.as_deref().unwrap_or_default();
        let ranges = self.named.iter().filter_map(|[begin, end]| literals.get(*begin..*end));
        ranges.flatten().map(|literal| literal.digest)
    }

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
    /// The table, and the directory of the outputs that it was made from, if it was needed.
    #[serde(deserialize_with = "one_or_two")]
    pub outputs: Vec<Published>,
    /// The user, host and time of recording. In a results repository, no record has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<Provenance>,
}

impl TableRecord {
    /// The record of a table, written now.
    pub(crate) fn now(recipe: Published, outputs: Vec<Published>) -> Self {
        let format = Format::for_values(outputs.iter().map(|output| &output.digest));
        Self { format, recipe, outputs, recorded: Some(Provenance::now()) }
    }
}

/// Reads the outputs of a table: a file, and possibly a directory.
fn one_or_two<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Published>, D::Error> {
    let outputs = Vec::<Published>::deserialize(deserializer)?;
    let kinds = outputs.iter().map(|output| output.digest.is_directory());
    if kinds.eq([false, true].into_iter().take(outputs.len().max(1))) {
        Ok(outputs)
    } else {
        Err(D::Error::custom("expected a file, and a directory at most"))
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

/// A revision of a repository that a job has read, such as a tag.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct JobRevision {
    /// The name of the repository in the task.
    pub repository: String,
    pub revision: String,
    /// The commit that it named.
    pub commit: ObjectId,
}

/// Reads the name of a file of the storage.
fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let name = String::deserialize(deserializer)?;
    name.parse::<StorageName>().map_err(D::Error::custom)?;
    Ok(name)
}

/// An output or literal of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobOutput {
    /// Its name in the storage.
    #[serde(deserialize_with = "name")]
    pub file: String,
    /// The digest of its contents.
    #[serde(flatten)]
    pub digest: Digest,
}

/// The part of a record with its format.
#[derive(Deserialize)]
pub(crate) struct FormatOf {
    pub(crate) format: u32,
}

/// The record of any result.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// Of a call.
    Call(CallRecord),
    /// Of a job.
    Job(JobRecord),
    /// Of a table.
    Table(TableRecord),
    /// Of a task input.
    TaskInput(InputRecord),
}

impl Record {
    /// The time of recording, if it is known.
    pub fn at(&self) -> Option<Timestamp> {
        let recorded = match self {
            Self::Call(record) => record.recorded.as_ref(),
            Self::Job(record) => record.recorded.as_ref(),
            Self::Table(record) => record.recorded.as_ref(),
            Self::TaskInput(record) => Some(&record.recorded),
        };
        recorded.map(|it| it.at)
    }
}

/// The result of reading a record.
#[derive(Debug)]
pub enum RecordState<T> {
    /// The record.
    Valid(T),
    /// The file cannot be parsed, or is not a plain file.
    Spoiled,
    /// The file does not exist.
    Absent,
}

impl<T> RecordState<T> {
    /// The record, if there is one.
    pub fn ok(self) -> Option<T> {
        match self {
            Self::Valid(record) => Some(record),
            Self::Spoiled | Self::Absent => None,
        }
    }

    /// Converts the record.
    pub(crate) fn map<U>(self, record: impl FnOnce(T) -> U) -> RecordState<U> {
        match self {
            Self::Valid(it) => RecordState::Valid(record(it)),
            Self::Spoiled => RecordState::Spoiled,
            Self::Absent => RecordState::Absent,
        }
    }
}

/// The records of a storage.
#[derive(Clone, Copy, Debug)]
pub struct Records<'a> {
    root: &'a Root,
}

impl<'a> Records<'a> {
    /// The records below a root.
    pub(crate) const fn new(root: &'a Root) -> Self {
        Self { root }
    }

    /// Reads the record of an entry.
    pub fn read_entry(&self, entry: &Entry) -> Result<RecordState<Record>> {
        self.read_entry_in(RECORDS, entry)
    }

    /// Reads the record of an entry. `None` if it is absent, spoiled, or does not belong to this name: `ce verify`
    /// reports that.
    pub fn read_fitting(&self, entry: &Entry) -> Result<Option<Record>> {
        Ok(self.read_entry(entry)?.ok().filter(|record| entry.fits(record)))
    }

    /// Reads the record of an entry that was listed: on a network file system, it may not be visible yet.
    pub fn read_listed(&self, entry: &Entry) -> Result<RecordState<Record>> {
        let read = self.root.disk.surely(|| match self.read_entry(entry)? {
            RecordState::Absent => Ok(None),
            read => Ok(Some(read)),
        });
        Ok(read?.unwrap_or(RecordState::Absent))
    }

    /// Reads the record of an entry in a room.
    pub(crate) fn read_entry_in(&self, room: &str, entry: &Entry) -> Result<RecordState<Record>> {
        let name = entry.room(room);
        Ok(match entry {
            Entry::Call(_) => self.read(&name)?.map(Record::Call),
            Entry::Job(_) => self.read(&name)?.map(Record::Job),
            Entry::Table(_) => self.read(&name)?.map(Record::Table),
            Entry::TaskInput(_) => self.read(&name)?.map(Record::TaskInput),
        })
    }

    /// Reads a record of this name.
    pub(crate) fn read<T: DeserializeOwned>(&self, name: &str) -> Result<RecordState<T>> {
        Ok(match self.read_at(name)? {
            Some((_, Some(record))) => RecordState::Valid(record),
            Some((_, None)) => RecordState::Spoiled,
            None => RecordState::Absent,
        })
    }

    /// Reads the file of a record. Returns its stat, and the record if it can be parsed.
    pub(crate) fn read_at<T: DeserializeOwned>(
        &self,
        name: &str,
    ) -> Result<Option<(FileStat, Option<T>)>> {
        let path = self.root.path(name);
        let (stat, text) = match self.root.disk.read_one(&path) {
            Ok(Some(read)) => read,
            Ok(None) => return Ok(None),
            // Anything but a plain file is a spoiled record.
            Err(StorageError::Io { source, .. }) if ForeignEntry::from_error(&source).is_some() => {
                return Ok(self.root.disk.metadata(&path)?.map(|metadata| (metadata.stat(), None)));
            }
            Err(error) => return Err(error),
        };
        if let Ok(record) = serde_json::from_slice(&text) {
            return Ok(Some((stat, Some(record))));
        }
        match serde_json::from_slice(&text) {
            Ok(FormatOf { format }) if format > FORMAT => {
                Err(StorageError::Format { path, format, newest: FORMAT })
            }
            _ => Ok(Some((stat, None))),
        }
    }

    /// Writes a record into a new file.
    pub(crate) fn write(&self, path: &Path, record: &impl Serialize) -> Result<()> {
        self.root.disk.write(
            path,
            &text(record)
                .map_err(|source| StorageError::Record { path: path.to_owned(), source })?,
        )
    }

    /// Writes a record atomically; replaces an existing one.
    pub(crate) fn put(&self, name: &str, record: &impl Serialize) -> Result<()> {
        let private = self.write_private(record)?;
        self.reveal(&private, name)
    }

    /// Gives a complete record its name.
    fn reveal(&self, private: &Path, name: &str) -> Result<()> {
        let place = self.root.place(name)?;
        self.root.disk.rename(private, &place)?;
        self.root.unsynced.note_new(&place);
        Ok(())
    }

    /// Writes a record atomically like [`Self::put`], without holding its text: it may be long.
    pub(crate) fn put_long(&self, name: &str, record: &impl Serialize) -> Result<()> {
        let private = self.root.private_path()?;
        self.root.disk.write_by(&private, |out| {
            serde_json::to_writer_pretty(&mut *out, record)?;
            out.write_all(b"\n")
        })?;
        self.reveal(&private, name)
    }

    /// Writes a record atomically, unless there is one. Returns whether it was written.
    pub(crate) fn put_new(&self, name: &str, record: &impl Serialize) -> Result<bool> {
        let private = self.write_private(record)?;
        let place = self.root.place(name)?;
        let first = self.root.disk.link(&private, &place)?;
        self.root.disk.remove(&private)?;
        self.root.unsynced.note_new(&place);
        Ok(first)
    }

    fn write_private(&self, record: &impl Serialize) -> Result<PathBuf> {
        let private = self.root.private_path()?;
        self.write(&private, record)?;
        Ok(private)
    }
}

/// The text of a record.
fn text(record: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut text = serde_json::to_vec_pretty(record)?;
    text.push(b'\n');
    Ok(text)
}

/// The record of the version that owns a directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VersionRecord {
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
    /// The user and the time of the first use.
    pub recorded: Provenance,
}

impl VersionRecord {
    /// The record for a version, written now.
    pub(crate) fn now(version: ComputationVersion<'_>) -> Self {
        let ComputationVersion { computation, commit, tree, dirty } = version;
        Self {
            format: Format::FILES,
            computation: computation.clone(),
            commit: commit.clone(),
            tree: tree.clone(),
            dirty,
            recorded: Provenance::now(),
        }
    }

    /// The version.
    pub(crate) fn version(&self) -> ComputationVersion<'_> {
        let Self { computation, commit, tree, dirty, .. } = self;
        ComputationVersion { computation, commit, tree, dirty: *dirty }
    }
}

/// The record of a pin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinRecord {
    /// The format of this record.
    pub format: Format,
    /// The reason, in the user's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The user, and the time.
    pub recorded: Provenance,
}

/// A repository with tasks that were evaluated into the storage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepositoryRecord {
    /// The format of this record.
    pub format: Format,
    /// The real path of the repository.
    pub path: String,
    /// The inode of its Git directory. On other hosts it shows whether the path leads to the same
    /// one.
    pub inode: u64,
    /// The user, and the time of the last evaluation of a task of it, to within a day.
    pub recorded: Provenance,
}

impl RepositoryRecord {
    /// Whether this host recorded it.
    pub fn is_of_this_host(&self) -> bool {
        self.recorded.host == host()
    }
}

/// The remaining record of a collected result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tombstone<T> {
    #[serde(flatten)]
    pub record: T,
    /// The user, and the time of the collection.
    pub collected: Provenance,
}

impl CallRecord {
    /// The record for a results repository. `None` for outputs that have no place there: adopted ones, whose origin is
    /// unknown, outputs of uncommitted changes, and outputs that were taken over because a tree was trusted.
    pub fn shared(&self) -> Option<Self> {
        let stays = self.dirty || self.has_trusted_tree();
        let isolation = self.origin.isolation().filter(|_| !stays)?.to_owned();
        let access = self.origin.access().to_vec();
        Some(Self {
            format: Format::SHARED,
            outputs: self.outputs.iter().map(unstamped).collect(),
            origin: Origin::Shared(SharedOrigin {
                stage: None,
                isolation: isolation.into(),
                access,
                taken_over: None,
            }),
            recorded: None,
            ..self.clone()
        })
    }

    /// Reads the record of a call in a results repository. `None` if the text is not such a record.
    pub fn of_shared(text: &[u8]) -> Option<Self> {
        let record: Self = serde_json::from_slice(text).ok()?;
        let is_shared = matches!(
            record.origin,
            Origin::Shared(SharedOrigin { stage: None, taken_over: None, .. })
        );
        (is_shared && !record.dirty).then_some(record)
    }
}

impl JobRecord {
    /// The record for a results repository. `None` for a job that depends on revisions: they may name other commits elsewhere.
    pub fn shared(&self) -> Option<Self> {
        let shared =
            Self { format: Format::SHARED, own: Vec::new(), recorded: None, ..self.clone() };
        self.revisions.is_empty().then_some(shared)
    }
}

impl TableRecord {
    /// The record for a results repository: of the table alone. The directory beside it is made again where it is needed.
    pub fn shared(&self) -> Self {
        Self {
            format: Format::SHARED,
            recipe: unstamped(&self.recipe),
            outputs: self.outputs.iter().take(1).map(unstamped).collect(),
            recorded: None,
        }
    }
}

impl Record {
    /// The record for a results repository. `None` for a record that has no place there.
    pub fn shared(&self) -> Option<Self> {
        match self {
            Self::Call(record) => record.shared().map(Self::Call),
            Self::Job(record) => record.shared().map(Self::Job),
            Self::Table(record) => Some(Self::Table(record.shared())),
            Self::TaskInput(_) => None,
        }
    }

    /// Reads the record of a result in a results repository. `None` if the text is not a record, or does not belong to
    /// the name.
    pub fn of_shared(entry: &Entry, text: &[u8]) -> Option<Self> {
        let record = match entry {
            Entry::Call(_) => CallRecord::of_shared(text).map(Self::Call),
            Entry::Job(_) => serde_json::from_slice(text).ok().map(Self::Job),
            Entry::Table(_) => serde_json::from_slice(text).ok().map(Self::Table),
            Entry::TaskInput(_) => None,
        };
        record.filter(|record| entry.fits(record))
    }

    /// The text of the file that holds it.
    pub fn text(&self) -> Vec<u8> {
        let text = match self {
            Self::Call(record) => text(record),
            Self::Job(record) => text(record),
            Self::Table(record) => text(record),
            Self::TaskInput(record) => text(record),
        };
        // All fields of a record can be written as JSON: their names are texts.
        text.unwrap_or_default()
    }
}

fn unstamped(value: &Published) -> Published {
    Published { digest: value.digest, stamp: Stamp::Unknown }
}

/// The findings of an audit of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditReport {
    /// When the execution was started.
    pub start: Timestamp,
    /// Its duration, in seconds.
    pub seconds: f64,
    /// The peak resident memory of its largest process, in bytes.
    pub peak_bytes: u64,
    /// Its isolation, as in the record of a call.
    pub isolation: SharedText,
    pub host_kind: Option<HostKind>,
    /// The outputs that it has made; empty if it failed.
    pub outputs: Vec<Digest>,
    /// The outputs that are not the recorded ones.
    pub differing: Vec<OutputDifference>,
    /// Its failure, if it failed.
    pub failed: Option<FailureFacts>,
}

/// The verdict of an audit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditVerdict {
    /// All outputs are the recorded ones.
    Agrees,
    /// An output is another one.
    Differs,
    /// It failed, and has a result.
    Failed,
}

/// An output that is not the recorded one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutputDifference {
    /// The number of the output.
    pub number: usize,
    /// The recorded output.
    pub recorded: Digest,
    /// The one that was made now.
    pub found: Digest,
    /// The name in the storage of the new version.
    pub aside: String,
    /// Their first difference; `None` if the recorded one could not be read.
    pub first: Option<FirstDifference>,
}

/// The first difference of two values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FirstDifference {
    /// The path in a directory, as manifests spell it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
    /// The difference of the member, in words, unless it is a file with other contents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
    /// The number of the first byte of a file that differs, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub byte: Option<u64>,
    /// The line with that byte, if both files are texts there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<LineDifference>,
}

/// A line that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LineDifference {
    /// Its number, from 1.
    pub number: u64,
    /// A part of the recorded line; `None` if the file ends before it.
    pub recorded: Option<String>,
    /// The same part of the line that was made now.
    pub found: Option<String>,
}

impl AuditReport {
    /// Returns the verdict.
    pub const fn verdict(&self) -> AuditVerdict {
        match (&self.failed, self.differing.is_empty()) {
            (Some(_), _) => AuditVerdict::Failed,
            (None, false) => AuditVerdict::Differs,
            (None, true) => AuditVerdict::Agrees,
        }
    }
}

/// The note of who vouches for a file of the ledger. A file without a note is unsigned.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignerNote {
    /// The file was made in this storage.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own: bool,
    /// The name of the signer of the commit with the file, as the allowed signers have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signer: Option<String>,
    /// The fingerprint of the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The repository that it came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
}

/// The statement that a result with these outputs is wrong. Nothing is deleted because of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevocationRecord {
    /// The version of the format.
    pub revoked: u32,
    /// The outputs that are wrong: all of one result.
    pub outputs: Vec<Digest>,
    /// The reason, in words.
    pub reason: String,
}

impl RevocationRecord {
    /// The version of the format.
    pub const FORMAT: u32 = 1;

    /// Reads a revocation. `None` if the text is not a revocation, or of a later format.
    pub fn of_text(text: &[u8]) -> Option<Self> {
        let revocation: Self = serde_json::from_slice(text).ok()?;
        (revocation.revoked == Self::FORMAT).then_some(revocation)
    }
}
