//! Whether a call is there: its record and all its outputs, made from the very inputs asked for.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::check::Defect;
use super::disk::FileId;
use super::disk::NotOwn;
use super::record::{CallRecord, FORMAT, Format, FormatOf, Origin, Published};
use super::scheme::{DIGITS, Digits, ResultName};
use super::stage::{is_stage, waiting};
use super::survey::Entry;
use super::version::{ComputationVersion, OfVersion};
use super::{Result, Storage, StorageError, Unrecorded, lock};
use crate::cache::FileStat;
use crate::digest::Digest;

/// A call to be found: a version of a computation and what its inputs contain.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The version of its computation.
    pub version: ComputationVersion<'a>,
    /// Its inputs, in order.
    pub inputs: &'a [Digest],
    /// How many outputs it has.
    pub outputs: usize,
}

/// The outputs of a call, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outputs {
    /// The name that they share.
    pub name: ResultName,
    /// What they contain, and their time stamps.
    pub files: Box<[Published]>,
}

/// Whether a call is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// All of it.
    Hit(Outputs),
    /// Not all of it.
    Absent {
        /// The name that it gets if it is executed.
        name: ResultName,
        /// What is there and cannot be used.
        damage: Option<Damage>,
    },
    /// Outputs without a record, which somebody may still be writing.
    Unsettled(ResultName),
}

/// Something that stands under the name of a result and cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file, relative to the storage.
    pub file: String,
    /// What is wrong with it.
    pub what: String,
}

/// What stands under a name.
pub(super) enum CallState {
    /// The call that was asked for, complete.
    Hit(Outputs),
    /// Another call, of which the name is the same in as many digits as are shown.
    Collision,
    /// Parts of the call, of no use, and the record among them if there is one.
    Incomplete(Option<FileId>, Option<Damage>),
    /// Outputs without a record, which somebody may still be writing.
    Unsettled,
    /// Nothing at all.
    Vacant,
}

impl CallState {
    pub(super) fn hit(name: &ResultName, outputs: &[Published]) -> Self {
        Self::Hit(Outputs { name: name.clone(), files: outputs.into() })
    }
}

impl Storage {
    /// Looks for a call.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read, or holds a record that only a newer version can.
    pub fn find(&self, call: Call<'_>) -> Result<Found> {
        let directory = self.directory_of_version(call.version)?;
        for digits in DIGITS {
            let name = ResultName::new(&directory, call.inputs, digits);
            let damage = match self.state(&name, call)? {
                CallState::Hit(outputs) => {
                    self.release(&outputs.name);
                    return Ok(Found::Hit(outputs));
                }
                CallState::Unsettled => return Ok(Found::Unsettled(name)),
                CallState::Collision => continue,
                CallState::Incomplete(_, damage) => damage,
                CallState::Vacant => None,
            };
            if self.claim(&name, call) {
                return Ok(Found::Absent { name, damage });
            }
        }
        // Full names collide only if SHA-1 does in all its digits.
        let name = ResultName::new(&directory, call.inputs, Digits::Full);
        Err(StorageError::Collision(self.path(&name.record())))
    }

    /// The name that a call would have, as far as its inputs are known: for showing.
    pub fn guess(
        &self,
        version: ComputationVersion<'_>,
        inputs: impl Iterator<Item = Option<Digest>>,
    ) -> ResultName {
        let directory = self.directory_of_version(version);
        let directory = directory.unwrap_or_else(|_| version.directories().swap_remove(0).into());
        ResultName::guess(&directory, inputs)
    }

    /// Looks for a call once more that was absent under a name, of which the caller has the lease by
    /// now: whoever had it until then may have just published.
    ///
    /// Outputs without a record were looked for, and are not again.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read.
    pub fn find_again(&self, call: Call<'_>, name: &ResultName) -> Result<Found> {
        match self.disk.metadata(&self.path(&name.record()))? {
            Some(_) => self.find(call),
            None => Ok(Found::Absent { name: name.clone(), damage: None }),
        }
    }

    /// Gives up the reservation of a name that now has a record, which keeps others from it.
    pub(super) fn release(&self, name: &ResultName) {
        let mut claims = lock(&self.claims);
        if !claims.is_empty() {
            claims.remove(name);
        }
    }

    /// Reserves a name within this run; tells whether it now is, or was, this call's.
    fn claim(&self, name: &ResultName, call: Call<'_>) -> bool {
        let mut claims = lock(&self.claims);
        match claims.get(name) {
            Some(inputs) => **inputs == *call.inputs,
            None => {
                claims.insert(name.clone(), call.inputs.into());
                true
            }
        }
    }

    /// Looks at what stands under a name, in a directory that belongs to the call's version.
    pub(super) fn state(&self, name: &ResultName, call: Call<'_>) -> Result<CallState> {
        let (record_name, taken) = (name.record(), SystemTime::now());
        if let Some(outputs) = self.cached_record(&record_name, call)?
            && self.are_published(name, &outputs)?
        {
            return Ok(CallState::hit(name, &outputs));
        }
        let Some((stat, record)) = self.record_at::<CallRecord>(&record_name)? else {
            return self.unrecorded(name, call);
        };
        let incomplete = |defect: Defect| {
            let damage = Damage { file: record_name.clone(), what: defect.to_string() };
            Ok(CallState::Incomplete(Some(stat.id()), Some(damage)))
        };
        let Some(record) = record else { return incomplete(Defect::Spoiled) };
        if record.version() != call.version || record.inputs != call.inputs {
            let fits = Entry::Call(name.clone()).fits_call(&record);
            let collides = fits && record.version() == call.version;
            return if collides { Ok(CallState::Collision) } else { incomplete(Defect::Misplaced) };
        }
        if record.outputs.len() != call.outputs {
            return incomplete(Defect::Spoiled);
        }
        if self.unrecorded == Unrecorded::Refuse && record.origin == Origin::Adopted {
            return incomplete(Defect::Adopted);
        }
        self.cache_record(&record_name, stat, taken, &record);
        self.recorded(name, &record, stat.id())
    }

    /// Whether all outputs are there, and still the published ones.
    fn are_published(&self, name: &ResultName, outputs: &[Published]) -> Result<bool> {
        for (number, output) in outputs.iter().enumerate() {
            if !self.is_published(&self.path(&name.output(number)), output)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn recorded(&self, name: &ResultName, record: &CallRecord, id: FileId) -> Result<CallState> {
        for (number, output) in record.outputs.iter().enumerate() {
            let path = self.path(&name.output(number));
            if !self.is_published(&path, output)? {
                // It may be waiting still, or somebody may just be moving it.
                self.roll_forward(name, number, record);
                if !self.is_published(&path, output)? {
                    let file = name.output(number);
                    let defect = self.defect_of(&file, &output.digest)?;
                    // Whoever has deleted it wants it made again.
                    let damage = !matches!(defect, Defect::Missing);
                    let damage = damage.then(|| Damage { file, what: defect.to_string() });
                    return Ok(CallState::Incomplete(Some(id), damage));
                }
            }
        }
        Ok(CallState::hit(name, &record.outputs))
    }

    /// Puts an output in its place that its execution had no time to, if it is waiting.
    fn roll_forward(&self, name: &ResultName, number: usize, record: &CallRecord) {
        if let Origin::Executed { stage, .. } = &record.origin
            && self.writable
            && is_stage(stage)
        {
            let waiting = self.path(&waiting(stage, number));
            // What is not the recorded file was not staged for it. What cannot be moved is missing,
            // and that is seen next.
            if self.is_published(&waiting, &record.outputs[number]).unwrap_or(false) {
                drop(self.reveal(&waiting, name, number));
            }
        }
    }

    pub(super) fn call_record(
        &self,
        call: Call<'_>,
        outputs: Vec<Published>,
        origin: Origin,
    ) -> CallRecord {
        let ComputationVersion { computation, commit, tree, dirty } = call.version;
        CallRecord {
            format: Format,
            computation: computation.clone(),
            commit: commit.clone(),
            tree: tree.clone(),
            dirty,
            inputs: call.inputs.to_vec(),
            outputs,
            origin,
            recorded: self.provenance(),
        }
    }

    /// Reads a record of this name.
    pub(super) fn record<T: DeserializeOwned>(&self, name: &str) -> Result<Read<T>> {
        Ok(match self.record_at(name)? {
            Some((_, Some(record))) => Read::Record(record),
            Some((_, None)) => Read::Spoiled,
            None => Read::Absent,
        })
    }

    /// Reads whatever has the name of a record: which file it is, and the record if it is one.
    pub(super) fn record_at<T: DeserializeOwned>(
        &self,
        name: &str,
    ) -> Result<Option<(FileStat, Option<T>)>> {
        let path = self.path(name);
        let (stat, text) = match self.disk.read_one(&path) {
            Ok(Some(read)) => read,
            Ok(None) => return Ok(None),
            // What is no plain file is no record.
            Err(StorageError::Io { source, .. }) if NotOwn::of(&source).is_some() => {
                return Ok(self.disk.metadata(&path)?.map(|metadata| (metadata.stat(), None)));
            }
            Err(error) => return Err(error),
        };
        if let Ok(record) = serde_json::from_slice(&text) {
            return Ok(Some((stat, Some(record))));
        }
        match serde_json::from_slice(&text) {
            Ok(FormatOf { format }) if format > FORMAT => {
                Err(StorageError::Format { path, format })
            }
            _ => Ok(Some((stat, None))),
        }
    }

    /// Writes a record into a new file.
    pub(super) fn write_record(&self, path: &Path, record: &impl Serialize) -> Result<()> {
        let json = |source| StorageError::Record { path: path.to_owned(), source };
        let mut text = serde_json::to_vec_pretty(record).map_err(json)?;
        text.push(b'\n');
        self.disk.write(path, &text)
    }

    /// Puts a record in its place, whole, whatever is there.
    pub(super) fn put_record(&self, name: &str, record: &impl Serialize) -> Result<()> {
        let aside = self.write_aside(record)?;
        let place = self.place(name)?;
        self.disk.rename(&aside, &place)?;
        self.unsynced.note(&place);
        self.unsynced.note_entry(&place);
        Ok(())
    }

    /// Puts a record in its place, whole, if that is free; tells whether it was.
    pub(super) fn put_new_record(&self, name: &str, record: &impl Serialize) -> Result<bool> {
        let aside = self.write_aside(record)?;
        let place = self.place(name)?;
        let first = self.disk.link(&aside, &place)?;
        self.disk.remove(&aside)?;
        self.unsynced.note(&place);
        self.unsynced.note_entry(&place);
        Ok(first)
    }

    fn write_aside(&self, record: &impl Serialize) -> Result<PathBuf> {
        let aside = self.place(&self.private_name())?;
        self.write_record(&aside, record)?;
        Ok(aside)
    }
}

/// What reading a record led to.
#[derive(Debug)]
pub enum Read<T> {
    /// The record.
    Record(T),
    /// Something is there that is no record.
    Spoiled,
    /// Nothing is there.
    Absent,
}

impl<T> Read<T> {
    /// The record, if there is one.
    pub(super) fn ok(self) -> Option<T> {
        match self {
            Self::Record(record) => Some(record),
            Self::Spoiled | Self::Absent => None,
        }
    }

    /// Makes another record of the record.
    pub(super) fn map<U>(self, record: impl FnOnce(T) -> U) -> Read<U> {
        match self {
            Self::Record(it) => Read::Record(record(it)),
            Self::Spoiled => Read::Spoiled,
            Self::Absent => Read::Absent,
        }
    }
}
