//! Looking up a call: its record and all its outputs, made from the requested inputs.

use std::sync::atomic::AtomicBool;
use std::time::SystemTime;

use super::call::{Call, CallState, Damage, Found, Outputs};
use super::{Storage, Unrecorded};
use crate::disk::{FileId, Result, StorageError};
use crate::layout::{ComputationVersion, DIGITS, Digits, Entry, ResultName, is_stage, waiting};
use crate::records::{CallRecord, Defect, Origin, Published};
use ce_model::digest::Digest;

impl Storage {
    /// Looks for a call.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read, or holds a record that only a newer version can.
    pub fn find(&self, call: Call<'_>) -> Result<Found> {
        let directory = self.versions.directory(&self.root, call.version)?;
        for digits in DIGITS {
            let name = ResultName::new(&directory, call.inputs, digits);
            let damage = match self.state(&name, call)? {
                CallState::Hit(outputs) => {
                    self.claims.release(&outputs.name);
                    return Ok(Found::Hit(outputs));
                }
                CallState::Away(_, outputs) => {
                    self.claims.release(&outputs.name);
                    return Ok(Found::Away(outputs));
                }
                CallState::Archived(outputs) => {
                    self.claims.release(&outputs.name);
                    return Ok(Found::Archived(outputs));
                }
                CallState::Unsettled => return Ok(Found::Unsettled(name)),
                CallState::Collision => continue,
                CallState::Incomplete(_, damage) => damage,
                CallState::Vacant => None,
            };
            if self.claims.reserve(&name, call.inputs) {
                return Ok(Found::Absent { name, damage });
            }
        }
        // Full names collide only if SHA-1 does in all its digits.
        let name = ResultName::new(&directory, call.inputs, Digits::Full);
        Err(StorageError::Collision(self.path(&name.record())))
    }

    /// The name of a call, as far as its inputs are known, for display.
    pub fn guess(
        &self,
        version: ComputationVersion<'_>,
        inputs: impl Iterator<Item = Option<Digest>>,
    ) -> ResultName {
        let directory = self
            .versions
            .directory(&self.root, version)
            .unwrap_or_else(|_| version.directories().swap_remove(0).into());
        ResultName::guess(&directory, inputs)
    }

    /// Notes that a call has a record now, or will have none, by whoever executed it: its name is reserved no more.
    pub fn note_published(&self, name: &ResultName) {
        self.claims.release(name);
    }

    /// Looks again for a call that was absent under a name. The caller has acquired its lease, and
    /// the previous holder may have just published.
    ///
    /// Outputs without a record are not looked for again.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read.
    pub fn find_again(&self, call: Call<'_>, name: &ResultName) -> Result<Found> {
        match self.root.disk.metadata(&self.path(&name.record()))? {
            Some(_) => self.find(call),
            None => Ok(Found::Absent { name: name.clone(), damage: None }),
        }
    }

    /// Returns the state of a call under a name, in a directory that belongs to its version.
    pub(crate) fn state(&self, name: &ResultName, call: Call<'_>) -> Result<CallState> {
        let record_name = name.record();
        let taken = SystemTime::now();
        if let Some(outputs) = self.cached_record(&record_name, call)?
            && self.are_published(name, &outputs)?
        {
            return Ok(CallState::hit(name, &outputs));
        }
        let Some((stat, record)) = self.records().read_at::<CallRecord>(&record_name)? else {
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
        if !call.has(&record.outputs) {
            return incomplete(Defect::Spoiled);
        }
        if self.unrecorded == Unrecorded::Refuse {
            if record.origin == Origin::Adopted {
                return incomplete(Defect::Adopted);
            }
            if record.has_trusted_tree() {
                return incomplete(Defect::TrustedTree);
            }
        }
        self.cache_record(&record_name, stat, taken, &record);
        self.recorded(name, &record, stat.id())
    }

    /// Whether a value exists and is still the published one.
    pub(crate) fn is_published(&self, name: &str, value: &Published) -> Result<bool> {
        self.ingest.is_published(&self.root, name, value)
    }

    /// Whether all outputs exist and are still the published ones.
    fn are_published(&self, name: &ResultName, outputs: &[Published]) -> Result<bool> {
        for (number, output) in outputs.iter().enumerate() {
            if !self.is_published(&name.output(number), output)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn recorded(&self, name: &ResultName, record: &CallRecord, id: FileId) -> Result<CallState> {
        let (mut is_missing, mut is_archived) = (false, false);
        for (number, output) in record.outputs.iter().enumerate() {
            let file = name.output(number);
            if !self.is_published(&file, output)? {
                // It may still be in the stage, or be moved from there just now.
                self.roll_forward(name, number, record);
                self.unpack_output(name, number, record);
                if !self.is_published(&file, output)? {
                    let stop = AtomicBool::new(false);
                    let defect = Defect::of_value(&self.root, &file, &output.digest, &stop)?
                        .unwrap_or(Defect::Contents);
                    match defect {
                        Defect::Missing => is_missing = true,
                        Defect::Archived => is_archived = true,
                        defect => {
                            let damage = Damage { file, what: defect.to_string() };
                            return Ok(CallState::Incomplete(Some(id), Some(damage)));
                        }
                    }
                }
            }
        }
        let outputs = Outputs { name: name.clone(), files: record.outputs.as_slice().into() };
        Ok(match is_missing {
            false if !is_archived => CallState::Hit(outputs),
            false if !self.root.writable => CallState::Archived(outputs),
            true if self.is_marked_away(name)? => CallState::Away(id, outputs),
            // A deleted output is no damage: the user wants it computed again. Nor is an archive that cannot be unpacked.
            _ => CallState::Incomplete(Some(id), None),
        })
    }

    /// Moves an output to its place if it is still in the stage: its execution had no time to do
    /// so.
    fn roll_forward(&self, name: &ResultName, number: usize, record: &CallRecord) {
        if let Some(stage) = record.origin.stage()
            && self.root.writable
            && is_stage(stage)
        {
            let waiting = waiting(stage, number);
            // Another file was not staged for this record. A file that cannot be moved is found
            // missing next.
            if self.is_published(&waiting, &record.outputs[number]).unwrap_or(false) {
                drop(self.reveal(&waiting, name, number, &record.outputs[number]));
            }
        }
    }
}
