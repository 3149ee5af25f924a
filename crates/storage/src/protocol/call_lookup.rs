//! Looking up a call: its record and all its outputs, made from the requested inputs.
//!
//! Outputs without a record, for example of the first implementation, are adopted: hashed and recorded. Only settled
//! files are adopted, since a copying tool may still be writing a file that has changed a moment ago.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::{Instant, SystemTime};

use jiff::Timestamp;

use super::heartbeat::lease_timeout;
use super::{Inputs, Storage, Unrecorded};
use crate::disk::{FileId, Moved, Result, StorageError, ValueMetadata, lock};
use crate::paths::{
    COLLECTED, ComputationVersion, DIGITS, Digits, Entry, OWNER, ResultName, is_stage, link_to,
    waiting,
};
use crate::records::{CallRecord, Defect, Format, Origin, Provenance, Published, VersionRecord};
use ce_files::cache::FileStat;
use ce_model::declaration::Declaration;
use ce_model::digest::{Blake3, Digest};
use ce_model::name::is_directory;
use ce_model::text_file;

/// A call to look up: a version of a computation and the digests of its inputs.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    pub version: ComputationVersion<'a>,
    /// Its inputs, in order.
    pub inputs: &'a [Digest],
    /// The names of its outputs, in order. The name of a directory ends in a slash.
    pub outputs: &'a [String],
}

/// The outputs of a call, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outputs {
    /// The common part of their names.
    pub name: ResultName,
    /// Their digests and time stamps.
    pub files: Box<[Published]>,
}

impl Outputs {
    /// Returns the digests of the files, in their order.
    pub fn digests(&self) -> Vec<Digest> {
        self.files.iter().map(|file| file.digest).collect()
    }

    /// Whether others have the same contents.
    pub fn has_same(&self, others: &Self) -> bool {
        self.digests() == others.digests()
    }
}

/// The result of looking up a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// The call is complete.
    Hit(Outputs),
    /// The call is known, and some of its outputs are deliberately not here.
    Away(Outputs),
    /// The call is complete, and some of its outputs are archives, which cannot be unpacked into a storage that is only read.
    Archived(Outputs),
    /// The call is missing or incomplete.
    Absent {
        /// The name under which it is published if it is executed.
        name: ResultName,
        /// Unusable remains, if there are any.
        damage: Option<Damage>,
    },
    /// There are outputs without a record, which may still be written to.
    Unsettled(ResultName),
}

/// An unusable file under the name of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file, relative to the storage.
    pub file: String,
    /// The damage.
    pub what: String,
}

/// The state of the files under the name of a call.
pub(crate) enum CallState {
    /// The requested call, complete.
    Hit(Outputs),
    /// The requested call, with the inode of the record. Some outputs are deliberately not here.
    Away(FileId, Outputs),
    /// The requested call, in a storage that is only read. Some outputs are archives.
    Archived(Outputs),
    /// Another call, whose name has the same shortened digits.
    Collision,
    /// Unusable parts of the call, with the inode of the record if there is one.
    Incomplete(Option<FileId>, Option<Damage>),
    /// There are outputs without a record, which may still be written to.
    Unsettled,
    /// No files.
    Vacant,
}

impl CallState {
    pub(crate) fn hit(name: &ResultName, outputs: impl Into<Box<[Published]>>) -> Self {
        Self::Hit(Outputs { name: name.clone(), files: outputs.into() })
    }
}

/// Names that calls of this run have reserved and that have no record yet: two colliding calls may
/// be evaluated at the same time.
#[derive(Debug, Default)]
pub(super) struct ReservedNames(Mutex<HashMap<ResultName, Box<[Digest]>>>);

impl ReservedNames {
    /// Reserves a name for a call with these inputs. Returns false if it is reserved for another
    /// call.
    pub(super) fn reserve(&self, name: &ResultName, inputs: &[Digest]) -> bool {
        let mut claims = lock(&self.0);
        match claims.get(name) {
            Some(known) => **known == *inputs,
            None => {
                claims.insert(name.clone(), inputs.into());
                true
            }
        }
    }

    /// Releases a name that has a record now, which keeps other calls from it.
    pub(super) fn release(&self, name: &ResultName) {
        let mut claims = lock(&self.0);
        if !claims.is_empty() {
            claims.remove(name);
        }
    }

    /// The number of reserved names.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        lock(&self.0).len()
    }
}

impl Call<'_> {
    /// Whether recorded outputs are as many as the call's, and of the same kinds.
    pub(super) fn has(&self, recorded: &[Published]) -> bool {
        let kinds = self.outputs.iter().map(|name| is_directory(name));
        kinds.eq(recorded.iter().map(|output| output.digest.is_directory()))
    }

    /// The record of the call, made now.
    pub(super) fn record(&self, outputs: Vec<Published>, origin: Origin) -> CallRecord {
        let ComputationVersion { computation, commit, tree, dirty } = self.version;
        let digests = self.inputs.iter().chain(outputs.iter().map(|it| &it.digest));
        let format = match origin {
            Origin::Shared(_) => Format::SHARED,
            Origin::Executed { .. } | Origin::Adopted => Format::for_values(digests),
        };
        CallRecord {
            format,
            computation: computation.clone(),
            commit: commit.clone(),
            tree: tree.clone(),
            dirty,
            inputs: self.inputs.to_vec(),
            outputs,
            origin,
            recorded: Some(Provenance::now()),
        }
    }
}

/// The calls of a storage.
#[derive(Clone, Copy, Debug)]
pub struct StoredCalls<'a> {
    storage: &'a Storage,
}

impl<'a> StoredCalls<'a> {
    pub(super) const fn new(storage: &'a Storage) -> Self {
        Self { storage }
    }

    /// Looks for a call.
    pub fn find(&self, call: Call<'_>) -> Result<Found> {
        let directory = self.storage.versions.directory(&self.storage.root, call.version)?;
        for digits in DIGITS {
            let name = ResultName::new(directory.clone(), call.inputs, digits);
            let damage = match self.state(&name, call)? {
                CallState::Hit(outputs) => {
                    self.storage.reserved_names.release(&outputs.name);
                    return Ok(Found::Hit(outputs));
                }
                CallState::Away(_, outputs) => {
                    self.storage.reserved_names.release(&outputs.name);
                    return Ok(Found::Away(outputs));
                }
                CallState::Archived(outputs) => {
                    self.storage.reserved_names.release(&outputs.name);
                    return Ok(Found::Archived(outputs));
                }
                CallState::Unsettled => return Ok(Found::Unsettled(name)),
                CallState::Collision => continue,
                CallState::Incomplete(_, damage) => damage,
                CallState::Vacant => None,
            };
            if self.storage.reserved_names.reserve(&name, call.inputs) {
                return Ok(Found::Absent { name, damage });
            }
        }
        // Full names collide only if SHA-1 does in all its digits.
        let name = ResultName::new(directory, call.inputs, Digits::Full);
        Err(StorageError::Collision(self.storage.path(&name.record())))
    }

    /// The name of a call, as far as its inputs are known, for display.
    pub fn guess(
        &self,
        version: ComputationVersion<'_>,
        inputs: impl Iterator<Item = Option<Digest>>,
    ) -> ResultName {
        let directory = self
            .storage
            .versions
            .directory(&self.storage.root, version)
            .unwrap_or_else(|_| version.directories().swap_remove(0).into());
        ResultName::guess(&directory, inputs)
    }

    /// Releases the reserved name of a call: it has a record now, or will have none. It does not matter who executed
    /// it.
    pub fn note_published(&self, name: &ResultName) {
        self.storage.reserved_names.release(name);
    }

    /// Looks again for a call that was absent under a name. The caller has acquired its lease, and
    /// the previous holder may have just published.
    ///
    /// Outputs without a record are not looked for again.
    pub fn find_again(&self, call: Call<'_>, name: &ResultName) -> Result<Found> {
        match self.storage.root.disk.metadata(&self.storage.path(&name.record()))? {
            Some(_) => self.find(call),
            None => Ok(Found::Absent { name: name.clone(), damage: None }),
        }
    }

    /// Returns the state of a call under a name, in a directory that belongs to its version.
    pub(crate) fn state(&self, name: &ResultName, call: Call<'_>) -> Result<CallState> {
        let record_name = name.record();
        if let Some(outputs) = self.storage.cached_records().find(&record_name, call)?
            && self.are_published(name, &outputs)?
        {
            return Ok(CallState::hit(name, outputs));
        }
        let taken = SystemTime::now();
        let Some((stat, record)) = self.storage.records().read_at::<CallRecord>(&record_name)?
        else {
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
        if self.storage.unrecorded == Unrecorded::Refuse {
            if record.origin == Origin::Adopted {
                return incomplete(Defect::Adopted);
            }
            if record.has_trusted_tree() {
                return incomplete(Defect::TrustedTree);
            }
        }
        self.storage.cached_records().insert(&record_name, stat, taken, &record);
        self.recorded(name, &record, stat.id())
    }

    /// Whether all outputs exist and are still the published ones.
    fn are_published(&self, name: &ResultName, outputs: &[Published]) -> Result<bool> {
        for (number, output) in outputs.iter().enumerate() {
            if !self.storage.values().is_published(&name.output(number), output)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn recorded(&self, name: &ResultName, record: &CallRecord, id: FileId) -> Result<CallState> {
        let (mut is_missing, mut is_archived) = (false, false);
        for (number, output) in record.outputs.iter().enumerate() {
            let file = name.output(number);
            if !self.storage.values().is_published(&file, output)? {
                // It may still be in the stage, or be moved from there just now. One that cannot be moved is found missing next.
                drop(self.roll_forward(name, number, record));
                self.storage.values().unpack_output(name, number, record);
                if !self.storage.values().is_published(&file, output)? {
                    let stop = AtomicBool::new(false);
                    let defect =
                        Defect::of_value(&self.storage.root, &file, &output.digest, &stop)?
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
            false if !self.storage.root.writable => CallState::Archived(outputs),
            true if self.storage.evictions().is_marked_away(name)? => CallState::Away(id, outputs),
            // A deleted output is not damage: the user wants it computed again. An archive that cannot be unpacked is
            // not damage, either.
            _ => CallState::Incomplete(Some(id), None),
        })
    }

    /// Moves outputs that are still in their stage to their places, if their record is the one under a name. This uses
    /// no outputs, so the rules for outputs without a record and for trusted trees do not matter.
    pub(super) fn finish(&self, name: &ResultName, staged: &CallRecord) -> Result<()> {
        if self.storage.records().read(&name.record())?.ok().as_ref() != Some(staged) {
            return Ok(());
        }
        for (number, output) in staged.outputs.iter().enumerate() {
            if !self.storage.values().is_published(&name.output(number), output)? {
                self.roll_forward(name, number, staged)?;
            }
        }
        Ok(())
    }

    /// Moves an output to its place if it is still in the stage: its execution had no time to do
    /// so.
    fn roll_forward(&self, name: &ResultName, number: usize, record: &CallRecord) -> Result<()> {
        let Some(stage) = record.origin.stage().filter(|stage| is_stage(stage)) else {
            return Ok(());
        };
        let (waiting, output) = (waiting(stage, number), &record.outputs[number]);
        // Another file was not staged for this record.
        if self.storage.root.writable && self.storage.values().is_published(&waiting, output)? {
            self.reveal(&waiting, name, number, output)?;
        }
        Ok(())
    }

    /// Adopts outputs without a record, if all of them exist and have settled.
    pub(crate) fn unrecorded(&self, name: &ResultName, call: Call<'_>) -> Result<CallState> {
        let mut there = Vec::with_capacity(call.outputs.len());
        for (number, output) in call.outputs.iter().enumerate() {
            let file = name.output(number);
            match (
                self.storage.root.disk.see(&self.storage.path(&file), &self.storage.hasher.stop),
                is_directory(output),
            ) {
                (Ok(None), _) => {}
                (Ok(Some(seen @ ValueMetadata::File(_))), false)
                | (Ok(Some(seen @ ValueMetadata::Directory(..))), true) => there.push((file, seen)),
                (Ok(Some(_)) | Err(StorageError::Directory { .. }), directory) => {
                    let defect = if directory { Defect::NotADirectory } else { Defect::NotAFile };
                    let damage = Damage { file, what: defect.to_string() };
                    return Ok(CallState::Incomplete(None, Some(damage)));
                }
                (Err(error), _) => return Err(error),
            }
        }
        if there.is_empty() {
            return Ok(CallState::Vacant);
        }
        if there.len() < call.outputs.len()
            || self.storage.unrecorded == Unrecorded::Refuse
            // They are being collected.
            || self.storage.root.disk.exists(&self.storage.path(&name.record_in(COLLECTED)))?
        {
            return Ok(CallState::Incomplete(None, None));
        }
        let mut outputs = Vec::with_capacity(there.len());
        for (file, seen) in &there {
            let path = self.storage.path(file);
            if !self.has_settled(file, seen) {
                return Ok(CallState::Unsettled);
            }
            let output = self.storage.hasher.stored_value(&self.storage.root.disk, &path, seen)?;
            let now = self.storage.root.disk.see(&path, &self.storage.hasher.stop)?;
            if now.is_none_or(|now| state(&now) != state(seen)) {
                return Ok(CallState::Unsettled);
            }
            outputs.push(output);
        }
        let hit = CallState::hit(name, outputs.as_slice());
        // If the record cannot be written, they are only hashed again the next time.
        let adopted = self.storage.root.writable && {
            let record = call.record(outputs, Origin::Adopted);
            self.storage.records().put_new(&name.record(), &record).unwrap_or(false)
        };
        if !adopted && self.storage.root.disk.exists(&self.storage.path(&name.record()))? {
            // Another run has published since. The files may be partly the old ones, partly the new
            // ones.
            return self.state(name, call);
        }
        Ok(hit)
    }

    /// Whether a value is no longer being written: it was last changed at least a minute ago.
    ///
    /// A copying tool sets an earlier time at its end. Where clocks differ, a value has settled if
    /// it was watched for a minute and did not change.
    fn has_settled(&self, name: &str, seen: &ValueMetadata) -> bool {
        let changed = match seen {
            ValueMetadata::File(metadata) => {
                let FileStat { modified_ns, changed_ns, .. } = metadata.stat();
                modified_ns.min(changed_ns)
            }
            ValueMetadata::Directory(scan, _) => scan.changed_ns(),
            ValueMetadata::Other => return false,
        };
        let age = Timestamp::now().as_nanosecond() - i128::from(changed);
        if age >= lease_timeout().as_nanos().cast_signed() {
            return true;
        }
        let state = state(seen);
        let mut watched = lock(&self.storage.unsettled);
        let known = watched.entry(name.to_owned()).or_insert_with(|| (state, Instant::now()));
        if known.0 != state {
            *known = (state, Instant::now());
        }
        known.1.elapsed() >= lease_timeout()
    }

    /// Creates the directories in which a call is published, and checks that they can be written.
    pub fn prepare(&self, name: &ResultName, outputs: usize) -> Result<()> {
        let outputs = (0..outputs).map(|number| name.output(number));
        for file in outputs.chain([name.record()]) {
            let place = self.storage.root.place(&file)?;
            let dir = place.parent().unwrap_or(&place);
            if !lock(&self.storage.writable_dirs).contains(dir) {
                self.storage.root.disk.check_writable(dir)?;
                lock(&self.storage.writable_dirs).insert(dir.to_owned());
            }
        }
        Ok(())
    }

    /// Moves a staged output to its place. An entry that is there goes to quarantine.
    ///
    /// If it is not staged any more, another run that read the record has moved it.
    ///
    /// # Errors
    ///
    /// Fails if it is neither in the stage nor in its place: the caller must not report it as there.
    pub(crate) fn reveal(
        &self,
        waiting: &str,
        name: &ResultName,
        number: usize,
        value: &Published,
    ) -> Result<()> {
        let file = name.output(number);
        let place = self.storage.root.place(&file)?;
        let mut staged = self.storage.root.path(waiting);
        if value.digest.is_directory()
            && let maker = self.storage.root.maker(waiting)?
            && maker != waiting
        {
            staged = self.storage.root.private_path()?;
            self.storage.root.disk.symbolic_link(Path::new(&link_to(&file, &maker)), &staged)?;
            if self.storage.values().is_published(&file, value)? {
                // Another run was faster.
                return self.storage.root.disk.remove(&staged);
            }
        }
        let disk = &self.storage.root.disk;
        let is_moved = match disk.move_new(&staged, &place)? {
            Moved::Here => true,
            Moved::Gone => false,
            Moved::Taken => {
                let part = format!("{number:02}");
                let aside = self.storage.root.quarantine_place(&name.quarantine(), &part)?;
                if !value.digest.is_directory() {
                    disk.quarantine(&place, &aside)?;
                    disk.rename(&staged, &place)?
                } else if self.storage.values().is_published(&file, value)? {
                    true
                } else {
                    // A directory cannot take the place of anything else.
                    disk.rename(&place, &aside)?;
                    let is_moved = disk.rename(&staged, &place)?;
                    if !is_moved {
                        // Another run has moved the staged file there meanwhile, and this run has taken it away.
                        disk.rename_new(&aside, &place)?;
                    }
                    is_moved
                }
            }
        };
        let is_there = || Ok(self.storage.values().is_published(&file, value)?.then_some(()));
        if !is_moved && disk.surely(is_there)?.is_none() {
            return Err(StorageError::Moved(staged));
        }
        if value.digest.is_directory() {
            self.storage.root.disk.seal_top(&place)?;
        }
        self.storage.root.unsynced.note_entry(&place);
        Ok(())
    }

    /// Returns the names of the inputs of a call's computation, if the storage has an export of that.
    pub fn input_names(&self, call: &ResultName) -> Option<Vec<String>> {
        self.names(call, "inputs")
    }

    /// Returns the names of the outputs of a call's computation, if the storage has an export of that. The names of
    /// directories end in a slash.
    pub fn output_names(&self, call: &ResultName) -> Option<Vec<String>> {
        self.names(call, "outputs")
    }

    /// The lines of a file of a call's computation, or, if it has one file only, what this declares instead.
    fn names(&self, call: &ResultName, list: &str) -> Option<Vec<String>> {
        let owner =
            self.storage.records().read::<VersionRecord>(&format!("{}/{OWNER}", call.directory()));
        let tree = owner.ok()?.ok()?.tree;
        let tree = self.storage.trees().name(&tree);
        let read = |file: &str| {
            let path = self.storage.path(&format!("{tree}/{file}"));
            self.storage.root.disk.read(&path).ok().flatten()
        };
        let names: Vec<String> = match read(list) {
            Some(contents) => {
                text_file::lines(&contents).ok()?.into_iter().map(str::to_owned).collect()
            }
            None => Declaration::parse(&read("exec")?).ok()?.names(list)?,
        };
        names.iter().all(|name| Inputs::is_line(name)).then_some(names)
    }
}

/// The state of a value that is looked at, and not read.
fn state(seen: &ValueMetadata) -> Blake3 {
    match seen {
        ValueMetadata::File(metadata) => {
            let FileStat { device, inode, size, modified_ns, changed_ns } = metadata.stat();
            let text = format!("{device} {inode} {size} {modified_ns} {changed_ns}");
            Blake3::hash_bytes(text.as_bytes())
        }
        ValueMetadata::Directory(scan, _) => scan.exact_stamp(),
        ValueMetadata::Other => Blake3::hash_bytes(b""),
    }
}
