//! How the outputs of an execution become visible.
//!
//! Linking the record decides: it appears whole, under a name that was free, so one execution wins
//! and every other one throws its outputs away. The winner's outputs then move from its stage to
//! their places; if it dies on the way, whoever meets the record next moves the rest.

use super::disk::FileId;
use std::path::Path;

use super::failure::Room;
use super::find::{Call, Found, Outputs, State};
use super::scheme::ResultName;
use super::stage::Stage;
use super::{Result, Storage, StorageError, disk};
use crate::digest::Digest;

/// How often a result that others change is looked at before giving up.
const PATIENCE: usize = 10;

/// The outputs of an execution, taken as they are, which nobody else sees yet.
#[derive(Debug)]
pub struct Sealed<'a> {
    pub(super) stage: Stage<'a>,
    pub(super) digests: Box<[Digest]>,
}

impl Sealed<'_> {
    /// Makes the outputs visible, all or none; returns those that are visible then.
    ///
    /// They are another execution's if that was faster.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be written.
    pub fn publish(mut self, call: Call<'_>, name: &ResultName) -> Result<Outputs> {
        let storage = self.stage.storage;
        let mut name = name.clone();
        for _ in 0..PATIENCE {
            let place = storage.place(&name.record())?;
            if disk::link(&self.stage.record(), &place)? {
                storage.unsynced.note_entry(&place);
                storage.note_version(call.computation);
                return self.reveal(name);
            }
            match storage.state(&name, call)? {
                State::Hit(theirs) => return Ok(theirs),
                State::Remains(Some(record)) => {
                    if self.replace(&name, record)? {
                        return self.reveal(name);
                    }
                }
                State::Remains(None) | State::Free => {}
                State::Stranger => match storage.find(call)? {
                    Found::Hit(theirs) => return Ok(theirs),
                    Found::Absent(other) => name = other,
                },
            }
        }
        Err(StorageError::Unsteady(storage.path(&name.record())))
    }

    /// Puts the record in the place of one whose outputs are lost or damaged; tells whether that
    /// was still the one that was looked at.
    ///
    /// The name is never free in between: outputs without a record would be adopted.
    fn replace(&self, name: &ResultName, record: FileId) -> Result<bool> {
        let storage = self.stage.storage;
        let (place, copy) = (storage.path(&name.record()), self.stage.copy());
        let aside =
            storage.place(&format!("{}/record.json", storage.aside_room(&name.room("aside"))))?;
        if disk::id(&place)? != Some(record) {
            return Ok(false);
        }
        disk::link(&place, &aside)?;
        disk::link(&self.stage.record(), &copy)?;
        disk::rename(&copy, &place)?;
        storage.unsynced.note_entry(&place);
        Ok(true)
    }

    /// Moves everything to its place, after the record.
    fn reveal(&mut self, name: ResultName) -> Result<Outputs> {
        self.stage.awaited = true;
        for number in 0..self.stage.outputs {
            self.stage.storage.reveal(&self.stage.output(number), &name, number)?;
        }
        self.stage.awaited = false;
        self.stage.keep_log(&name, Room::Log)?;
        Ok(Outputs { name, digests: self.digests.clone() })
    }
}

impl Storage {
    /// Moves an output that waits to its place; what is there gets a name aside.
    ///
    /// If it does not wait any more, somebody who met the record has moved it.
    pub(super) fn reveal(&self, waiting: &Path, name: &ResultName, number: usize) -> Result<()> {
        let place = self.place(&name.output(number))?;
        if !disk::rename_new(waiting, &place)? {
            let room = self.aside_room(&name.room("aside"));
            disk::link(&place, &self.place(&format!("{room}/{number:02}"))?)?;
            disk::rename(waiting, &place)?;
        }
        self.unsynced.note_entry(&place);
        Ok(())
    }

    /// Moves what stands under a name out of the way; nothing is deleted. Returns where it is now.
    ///
    /// The record goes last: outputs without one would be adopted. A record that is not the one
    /// that was looked at is left alone, with its outputs: somebody was faster.
    pub(super) fn set_aside(
        &self,
        name: &ResultName,
        outputs: usize,
        record: Option<FileId>,
    ) -> Result<String> {
        let room = self.aside_room(&name.room("aside"));
        let path = self.path(&name.record());
        let parts = (0..outputs).map(|number| (name.output(number), format!("{number:02}")));
        for (from, part) in parts.chain([(name.record(), "record.json".to_owned())]) {
            let from = self.path(&from);
            if disk::id(&path)? == record && disk::metadata(&from)?.is_some() {
                disk::rename(&from, &self.place(&format!("{room}/{part}"))?)?;
            }
        }
        Ok(room)
    }

    /// A directory of its own for what this run sets aside of one result.
    pub(super) fn aside_room(&self, aside: &str) -> String {
        format!("{aside}/{}", self.private_name().replace('/', "-"))
    }
}
