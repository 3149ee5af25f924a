//! Publishing: making the outputs of an execution visible.
//!
//! The link to the record is the commit point: it appears atomically under a free name, so one
//! execution wins, and every other one discards its outputs. The winner's outputs then move from
//! its stage to their places. If the winner is killed meanwhile, the next run that reads the record
//! moves the rest.

use std::path::Path;

use super::call::{Call, CallState, Found, Outputs};
use super::{Precedence, PublishError, Sealed, Storage};
use crate::disk::{FileId, Result, StorageError, lock};
use crate::paths::{LOGS, ResultName, link_to, waiting};
use crate::records::Published;

/// The number of attempts to read a result that others change.
const MAX_ATTEMPTS: usize = 10;

impl Sealed<'_> {
    /// Makes all outputs visible, or none. Returns the visible outputs.
    ///
    /// They are those of another execution if that was faster, unless the new ones have precedence: then existing
    /// outputs go to quarantine even if they are intact.
    ///
    /// # Errors
    ///
    /// Fails if the outputs of the call are away and the new ones differ, or if the storage cannot be written.
    pub fn publish(
        mut self,
        call: Call<'_>,
        name: &ResultName,
        precedence: Precedence,
    ) -> Result<Outputs, PublishError> {
        let published = self.link(call, name, precedence)?;
        self.stage.storage.reserved_names.release(&published.name);
        Ok(published)
    }

    fn link(
        &mut self,
        call: Call<'_>,
        name: &ResultName,
        precedence: Precedence,
    ) -> Result<Outputs, PublishError> {
        let storage = self.stage.storage;
        let mut name = name.clone();
        for _ in 0..MAX_ATTEMPTS {
            // If a directory cannot be created, nothing has been decided yet.
            storage.prepare(&name, self.stage.outputs)?;
            let place = storage.root.place(&name.record())?;
            if storage.root.disk.link(&self.stage.record(), &place)? {
                storage.root.unsynced.note_entry(&place);
                storage.equivalents().note_version(call.version, &name);
                return Ok(self.reveal(name)?);
            }
            match storage.state(&name, call)? {
                CallState::Hit(_) if precedence == Precedence::New => {
                    let record = storage.root.disk.id(&place)?;
                    if let Some(record) = record
                        && self.replace(&name, record)?
                    {
                        return Ok(self.reveal(name)?);
                    }
                }
                CallState::Away(record, theirs) => {
                    if precedence == Precedence::Recorded
                        && let Some(deviation) = self.deviation(&theirs)?
                    {
                        return Err(PublishError::Deviates(Box::new(deviation)));
                    }
                    if self.replace(&name, record)? {
                        let published = self.reveal(name)?;
                        storage.evictions().unmark_away(&published.name)?;
                        return Ok(published);
                    }
                }
                CallState::Hit(theirs) | CallState::Archived(theirs) => return Ok(theirs),
                CallState::Incomplete(Some(record), _) => {
                    if self.replace(&name, record)? {
                        return Ok(self.reveal(name)?);
                    }
                }
                CallState::Incomplete(None, _) | CallState::Vacant | CallState::Unsettled => {}
                CallState::Collision => match storage.find(call)? {
                    Found::Hit(theirs) | Found::Archived(theirs) => return Ok(theirs),
                    Found::Away(Outputs { name: other, .. })
                    | Found::Absent { name: other, .. }
                    | Found::Unsettled(other) => name = other,
                },
            }
        }
        Err(StorageError::Unsteady(storage.path(&name.record())).into())
    }

    /// Replaces a record whose outputs are lost or damaged. Returns false if it has changed since
    /// it was read.
    ///
    /// There is a record at any moment: outputs without one would be adopted.
    fn replace(&self, name: &ResultName, record: FileId) -> Result<bool> {
        let root = &self.stage.storage.root;
        let place = root.path(&name.record());
        let copy = self.stage.copy();
        let room = root.quarantine_room(&name.quarantine());
        let kept = root.place(&format!("{room}/record.json"))?;
        if root.disk.id(&place)? != Some(record) {
            return Ok(false);
        }
        root.disk.quarantine(&place, &kept)?;
        root.disk.link(&self.stage.record(), &copy)?;
        root.disk.rename(&copy, &place)?;
        root.unsynced.note_entry(&place);
        Ok(true)
    }

    /// Moves the outputs and the log to their places, after the record.
    fn reveal(&mut self, name: ResultName) -> Result<Outputs> {
        self.stage.awaited = true;
        for number in 0..self.stage.outputs {
            let waiting = waiting(&self.stage.name, number);
            self.stage.storage.reveal(&waiting, &name, number, &self.files[number])?;
        }
        self.stage.awaited = false;
        self.stage.keep_log(&name, LOGS)?;
        self.stage.published = true;
        Ok(Outputs { name, files: self.files.clone() })
    }
}

impl Storage {
    /// Creates the directories in which a call is published, and checks that they can be written.
    pub fn prepare(&self, name: &ResultName, outputs: usize) -> Result<()> {
        let outputs = (0..outputs).map(|number| name.output(number));
        for file in outputs.chain([name.record()]) {
            let place = self.root.place(&file)?;
            let dir = place.parent().unwrap_or(&place);
            if !lock(&self.writable_dirs).contains(dir) {
                self.root.disk.check_writable(dir)?;
                lock(&self.writable_dirs).insert(dir.to_owned());
            }
        }
        Ok(())
    }

    /// Moves a staged output to its place. Whatever is there goes to quarantine.
    ///
    /// If it is not staged any more, another run that read the record has moved it.
    pub(crate) fn reveal(
        &self,
        waiting: &str,
        name: &ResultName,
        number: usize,
        value: &Published,
    ) -> Result<()> {
        let file = name.output(number);
        let place = self.root.place(&file)?;
        let mut staged = self.root.path(waiting);
        if value.digest.is_directory()
            && let maker = self.root.maker(waiting)?
            && maker != waiting
        {
            staged = self.root.private_path()?;
            self.root.disk.symbolic_link(Path::new(&link_to(&file, &maker)), &staged)?;
            if self.is_published(&file, value)? {
                // Another run was faster.
                return self.root.disk.remove(&staged);
            }
        }
        if !self.root.disk.rename_new(&staged, &place)? {
            let room = self.root.quarantine_room(&name.quarantine());
            let aside = self.root.place(&format!("{room}/{number:02}"))?;
            if !value.digest.is_directory() {
                self.root.disk.quarantine(&place, &aside)?;
                self.root.disk.rename(&staged, &place)?;
            } else if !self.is_published(&file, value)? {
                // A directory cannot take the place of anything else.
                self.root.disk.rename(&place, &aside)?;
                if !self.root.disk.rename(&staged, &place)? {
                    // Another run has moved the staged one there meanwhile, and this one has taken it away.
                    self.root.disk.rename_new(&aside, &place)?;
                }
            }
        }
        if value.digest.is_directory() {
            self.root.disk.seal_top(&place)?;
        }
        self.root.unsynced.note_entry(&place);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use jiff::Timestamp;

    use super::*;
    use crate::paths::ComputationVersion;
    use crate::records::{Execution, NOT_ISOLATED};
    use crate::{Durability, Unrecorded};
    use ce_model::digest::Digest;

    /// Their SHA-1s are the same in the digits that names show.
    const COLLIDING: [&str; 2] = ["input 11405692\n", "input 27966124\n"];

    static NAMES: [String; 1] = [String::new()];

    fn call(inputs: &[Digest]) -> Call<'_> {
        Call { version: ComputationVersion::example(), inputs, outputs: &NAMES }
    }

    fn open(path: &Path) -> Storage {
        Storage::open(path, Unrecorded::Adopt, Durability::Unsynced).unwrap()
    }

    fn absent(found: Found) -> ResultName {
        let Found::Absent { name, .. } = found else { panic!("{found:?}") };
        name
    }

    /// Publishes as if the call had been executed under this name.
    fn publish(storage: &Storage, call: Call<'_>, name: &ResultName, output: &str) {
        let stage = storage.stage(1).unwrap();
        fs::write(stage.outputs().next().unwrap(), output).unwrap();
        let execution = Execution {
            argv: Box::default(),
            isolation: NOT_ISOLATED.to_owned(),
            access: Box::default(),
            resources: Box::default(),
            host_kind: None,
            start: Timestamp::now(),
            end: Timestamp::now(),
            user_seconds: 0.0,
            system_seconds: 0.0,
            peak_bytes: 0,
            exit_status: 0,
            tasks: Box::default(),
            taken_over: None,
            trusted_tree: false,
        };
        let sealed = stage.seal(call, execution).map_err(|(_, error)| error).unwrap();
        sealed.publish(call, name, Precedence::Recorded).unwrap();
    }

    #[test]
    fn a_name_is_reserved_until_a_record_keeps_others_from_it() {
        let dir = tempfile::tempdir().unwrap();
        let storage = open(dir.path());
        let inputs = COLLIDING.map(|text| [Digest::of(text.as_bytes())]);
        let [one, other] = [0, 1].map(|at| call(&inputs[at]));
        let reserved = || storage.reserved_names.count();

        let names = [one, other].map(|call| absent(storage.find(call).unwrap()));
        assert!(names[0] != names[1] && reserved() == 2, "{names:?}");
        assert_eq!(absent(storage.find(one).unwrap()), names[0]);

        publish(&storage, one, &names[0], COLLIDING[0]);
        assert_eq!(reserved(), 1);
        assert_eq!(absent(storage.find(other).unwrap()), names[1]);
        publish(&storage, other, &names[1], COLLIDING[1]);
        assert_eq!(reserved(), 0);
        for (call, name) in [one, other].into_iter().zip(names) {
            let Found::Hit(hit) = storage.find(call).unwrap() else { panic!("{name:?}") };
            assert_eq!((hit.name, hit.files[0].digest), (name, call.inputs[0]));
        }
    }

    #[test]
    fn a_name_that_another_run_has_taken_is_another_calls() {
        let dir = tempfile::tempdir().unwrap();
        let [here, elsewhere] = [(); 2].map(|()| open(dir.path()));
        let inputs = COLLIDING.map(|text| [Digest::of(text.as_bytes())]);
        let [one, other] = [0, 1].map(|at| call(&inputs[at]));

        let name = absent(here.find(one).unwrap());
        assert_eq!(absent(here.find_again(one, &name).unwrap()), name);
        publish(&elsewhere, other, &absent(elsewhere.find(other).unwrap()), COLLIDING[1]);
        let longer = absent(here.find_again(one, &name).unwrap());
        assert_ne!(longer, name);
        assert_eq!(absent(here.find_again(one, &longer).unwrap()), longer);
        publish(&elsewhere, one, &absent(elsewhere.find(one).unwrap()), COLLIDING[0]);
        assert!(matches!(here.find_again(one, &longer).unwrap(), Found::Hit(_)));
        assert!(here.reserved_names.count() < 2, "what was found is reserved no more");
    }
}
