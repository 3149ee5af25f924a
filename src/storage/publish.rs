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
                State::Remains(record) => storage.set_aside(&name, self.stage.outputs, record)?,
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
    /// Moves what stands under a name out of the way; nothing is deleted.
    ///
    /// The outputs get a second name aside and stay until others take their places; with the
    /// record the name becomes free. A record that is not the one that was looked at is left
    /// alone: somebody was faster.
    pub(super) fn set_aside(
        &self,
        name: &ResultName,
        outputs: usize,
        record: Option<FileId>,
    ) -> Result<()> {
        let room = format!("{}/{}", name.room("aside"), self.private_name().replace('/', "-"));
        for number in 0..outputs {
            let output = self.path(&name.output(number));
            if disk::metadata(&output)?.is_some() {
                let aside = self.place(&format!("{room}/{number:02}"))?;
                disk::link(&output, &aside)?;
                if record.is_none() {
                    // Nothing decides about outputs without a record: they would be adopted.
                    disk::remove(&output)?;
                }
            }
        }
        let (path, aside) =
            (self.path(&name.record()), self.place(&format!("{room}/record.json"))?);
        if record.is_none() || disk::id(&path)? != record {
            return Ok(());
        }
        disk::rename(&path, &aside)?;
        if disk::id(&aside)? != record {
            disk::link(&aside, &path)?;
        }
        Ok(())
    }
}
