//! How the outputs of an execution become visible.
//!
//! Linking the record decides: it appears whole, under a name that was free, so one execution wins
//! and every other one throws its outputs away. The winner's outputs then move from its stage to
//! their places; if it dies on the way, whoever meets the record next moves the rest.

use super::disk::FileId;
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
                return self.reveal(name);
            }
            match storage.state(&name, call)? {
                State::Hit(theirs) => return Ok(theirs),
                State::Remains(record) => {
                    storage.set_aside(&name, self.stage.outputs, record)?;
                }
                State::Free => {}
                State::Stranger => match storage.find(call)? {
                    Found::Hit(theirs) => return Ok(theirs),
                    Found::Absent(other) => name = other,
                },
            }
        }
        Err(StorageError::Unsteady(storage.path(&name.record())))
    }

    /// Moves everything to its place, after the record.
    fn reveal(&mut self, name: ResultName) -> Result<Outputs> {
        self.stage.awaited = true;
        let storage = self.stage.storage;
        for number in 0..self.stage.outputs {
            let place = storage.place(&name.output(number))?;
            // If it is gone, somebody who met the record has moved it.
            disk::rename(&self.stage.output(number), &place)?;
            storage.unsynced.note_entry(&place);
        }
        self.stage.awaited = false;
        self.stage.keep_log(&name, Room::Log)?;
        Ok(Outputs { name, digests: self.digests.clone() })
    }
}

impl Storage {
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
            let (from, aside) = (self.path(&from), format!("{room}/{part}"));
            if disk::id(&path)? != record {
                break;
            }
            if disk::metadata(&from)?.is_none() {
                continue;
            }
            let aside = self.place(&aside)?;
            disk::rename(&from, &aside)?;
            let now = disk::id(if from == path { &aside } else { &path })?;
            if now != record && now.is_some() {
                // Somebody has replaced it in between.
                disk::link(&aside, &from)?;
                disk::remove(&aside)?;
            }
        }
        Ok(room)
    }

    /// A directory of its own for what this run sets aside of one result.
    pub(super) fn aside_room(&self, aside: &str) -> String {
        format!("{aside}/{}", self.private_name().replace('/', "-"))
    }
}
