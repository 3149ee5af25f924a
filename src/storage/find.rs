//! Whether a call is there: its record and all its outputs, made from the very inputs asked for.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::collect::COLLECTED;
use super::disk::FileId;
use super::record::{CallRecord, FORMAT, Format, Origin, Published, Version};
use super::scheme::{DIGITS, Digits, ResultName};
use super::stage::waiting;
use super::{Result, Storage, StorageError, Unrecorded, disk, lock};
use crate::cache::Stamp;
use crate::digest::Digest;
use crate::workflow::Computation;

/// A call to be found: a computation and what its inputs contain.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The computation.
    pub computation: &'a Computation,
    /// Its inputs, in order.
    pub inputs: &'a [Digest],
}

/// The outputs of a call, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outputs {
    /// The name that they share.
    pub name: ResultName,
    /// What they contain.
    pub digests: Box<[Digest]>,
}

/// Whether a call is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// All of it.
    Hit(Outputs),
    /// Not all of it; if executed, it gets this name.
    Absent(ResultName),
}

/// What stands under a name.
pub(super) enum State {
    /// The call that was asked for, complete.
    Hit(Outputs),
    /// Another call, of which the name is the same in as many digits as are shown.
    Stranger,
    /// Parts of the call, of no use, and the record among them if there is one.
    Remains(Option<FileId>),
    /// Nothing at all.
    Free,
}

impl State {
    fn hit(name: &ResultName, outputs: &[Published]) -> Self {
        let digests = outputs.iter().map(|output| output.digest).collect();
        Self::Hit(Outputs { name: name.clone(), digests })
    }
}

impl Call<'_> {
    fn name(&self, digits: Digits) -> ResultName {
        ResultName::of_call(self.computation, self.inputs, digits)
    }

    pub(super) fn outputs(&self) -> usize {
        self.computation.outputs.len()
    }
}

impl Storage {
    /// Looks for a call.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read, or holds a record that only a newer version can.
    pub fn find(&self, call: Call<'_>) -> Result<Found> {
        for digits in DIGITS {
            let name = call.name(digits);
            match self.state(&name, call)? {
                State::Hit(outputs) => {
                    self.release(&outputs.name);
                    return Ok(Found::Hit(outputs));
                }
                State::Remains(_) | State::Free if self.claim(&name, call) => {
                    return Ok(Found::Absent(name));
                }
                State::Remains(_) | State::Free | State::Stranger => {}
            }
        }
        // Full names collide only if SHA-1 does in all its digits.
        let path = self.path(&call.name(Digits::Full).record());
        Err(StorageError::Collision(path))
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
        match disk::metadata(&self.path(&name.record()))? {
            Some(_) => self.find(call),
            None => Ok(Found::Absent(name.clone())),
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

    /// Looks at what stands under a name.
    pub(super) fn state(&self, name: &ResultName, call: Call<'_>) -> Result<State> {
        let (record_name, taken) = (name.record(), SystemTime::now());
        if let Some(outputs) = self.said(&record_name, call)?
            && self.are_published(name, &outputs)?
        {
            return Ok(State::hit(name, &outputs));
        }
        let Some((stamp, record)) = self.record_at::<CallRecord>(&record_name)? else {
            return self.unrecorded(name, call);
        };
        match record {
            Some(record) if record.inputs != call.inputs => Ok(State::Stranger),
            Some(record) if record.outputs.len() == call.outputs() => {
                self.note_record(&record_name, stamp, taken, &record);
                self.recorded(name, &record, stamp.file())
            }
            Some(_) | None => Ok(State::Remains(Some(stamp.file()))),
        }
    }

    /// Whether all outputs are there, and still the published ones.
    fn are_published(&self, name: &ResultName, outputs: &[Published]) -> Result<bool> {
        for (number, output) in outputs.iter().enumerate() {
            if !disk::is_published(&self.path(&name.output(number)), output)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn recorded(&self, name: &ResultName, record: &CallRecord, id: FileId) -> Result<State> {
        for (number, output) in record.outputs.iter().enumerate() {
            let path = self.path(&name.output(number));
            if !disk::is_published(&path, output)? {
                // It may be waiting still, or somebody may just be moving it.
                self.roll_forward(name, number, record);
                if !disk::is_published(&path, output)? {
                    return Ok(State::Remains(Some(id)));
                }
            }
        }
        Ok(State::hit(name, &record.outputs))
    }

    /// Puts an output in its place that its execution had no time to, if it is waiting.
    fn roll_forward(&self, name: &ResultName, number: usize, record: &CallRecord) {
        if let Origin::Executed { stage, .. } = &record.origin
            && self.writable
        {
            // What cannot be moved is missing, and that is seen next.
            drop(self.reveal(&self.path(&waiting(stage, number)), name, number));
        }
    }

    /// Believes outputs that nobody recorded, if all of them are there.
    fn unrecorded(&self, name: &ResultName, call: Call<'_>) -> Result<State> {
        let mut outputs = Vec::with_capacity(call.outputs());
        let mut any = false;
        for number in 0..call.outputs() {
            let path = self.path(&name.output(number));
            let Some(metadata) = disk::metadata(&path)? else {
                continue;
            };
            any = true;
            if metadata.is_file() && self.unrecorded == Unrecorded::Adopt {
                let digest = disk::digest(&path)?;
                outputs.push(Published { digest, modified_ns: disk::modified_ns(&metadata) });
            }
        }
        if outputs.len() < call.outputs() || outputs.is_empty() {
            return Ok(if any { State::Remains(None) } else { State::Free });
        }
        let hit = State::hit(name, &outputs);
        if disk::metadata(&self.path(&name.record_in(COLLECTED)))?.is_some() {
            // They are being taken away.
            return Ok(State::Remains(None));
        }
        // Without a record they are hashed again the next time, and that is all.
        let adopted = self.writable && {
            let record = self.call_record(call, outputs, Origin::Adopted);
            self.put_new_record(&name.record(), &record).unwrap_or(false)
        };
        if !adopted && disk::id(&self.path(&name.record()))?.is_some() {
            // Somebody has published since. What was seen may be half of the old and half of the new.
            return self.state(name, call);
        }
        Ok(hit)
    }

    pub(super) fn call_record(
        &self,
        call: Call<'_>,
        outputs: Vec<Published>,
        origin: Origin,
    ) -> CallRecord {
        let Computation { name, commit, tree, dirty, .. } = call.computation;
        CallRecord {
            format: Format,
            computation: name.clone(),
            commit: commit.clone(),
            tree: tree.clone(),
            dirty: *dirty,
            inputs: call.inputs.to_vec(),
            outputs,
            origin,
            recorded: self.stamp(),
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
    ) -> Result<Option<(Stamp, Option<T>)>> {
        let path = self.path(name);
        let Some((stamp, text)) = disk::read_one(&path)? else { return Ok(None) };
        if let Ok(record) = serde_json::from_slice(&text) {
            return Ok(Some((stamp, Some(record))));
        }
        match serde_json::from_slice(&text) {
            Ok(Version { format }) if format > FORMAT => Err(StorageError::Format { path, format }),
            _ => Ok(Some((stamp, None))),
        }
    }

    /// Writes a record into a new file.
    pub(super) fn write_record(&self, path: &Path, record: &impl Serialize) -> Result<()> {
        let json = |source| StorageError::Record { path: path.to_owned(), source };
        let mut text = serde_json::to_vec_pretty(record).map_err(json)?;
        text.push(b'\n');
        disk::write(path, &text)
    }

    /// Puts a record in its place, whole, whatever is there.
    pub(super) fn put_record(&self, name: &str, record: &impl Serialize) -> Result<()> {
        let aside = self.write_aside(record)?;
        let place = self.place(name)?;
        disk::rename(&aside, &place)?;
        self.unsynced.note(&place);
        self.unsynced.note_entry(&place);
        Ok(())
    }

    /// Puts a record in its place, whole, if that is free; tells whether it was.
    pub(super) fn put_new_record(&self, name: &str, record: &impl Serialize) -> Result<bool> {
        let aside = self.write_aside(record)?;
        let place = self.place(name)?;
        let first = disk::link(&aside, &place)?;
        disk::remove(&aside)?;
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
