//! Results that are away: the record says what the outputs are, and these are deliberately not here.
//!
//! An empty file beside the record marks such a result. Without it, a missing output is one that the user has deleted. Beside
//! outputs that are all here, it means nothing.

use std::fmt;

use super::call::{Call, Outputs};
use super::{PublishError, Sealed, Storage};
use crate::disk::Result;
use crate::layout::{Entry, ResultName};
use crate::records::{ExpectedFile, Published, differences};
use ce_model::digest::Digest;

/// What becomes of a result that is in the place of a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precedence {
    /// It stays. If its outputs are away, the new ones must be equal to them.
    Recorded,
    /// It stays, unless its outputs are away: then the new ones replace it.
    NewOfAway,
    /// The new one replaces it.
    New,
}

/// An execution of a call that is away has made other outputs than are recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deviation {
    /// The outputs that differ.
    pub outputs: Vec<DeviatingOutput>,
    /// The directory of the new outputs, relative to the storage.
    pub aside: String,
    /// The number of recorded calls that were made from recorded outputs that differ.
    pub readers: usize,
}

/// An output that differs from the recorded one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviatingOutput {
    /// Its number.
    pub number: usize,
    /// Its recorded digest.
    pub recorded: Digest,
    /// Its digest now.
    pub found: Digest,
    /// What differs in a directory, in words, if the storage knows what was in it.
    pub members: Option<String>,
}

impl fmt::Display for Deviation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { outputs, aside, readers } = self;
        write!(f, "its outputs are away, and executed again it made others than are recorded: ")?;
        for (at, output) in outputs.iter().enumerate() {
            let DeviatingOutput { number, recorded, found, members } = output;
            let separator = if at == 0 { "" } else { ", " };
            let (was, is) = (recorded.sha1.full(), found.sha1.full());
            write!(f, "{separator}output {number:02} was {was}, is {is}")?;
            if let Some(members) = members {
                write!(f, " ({members})")?;
            }
        }
        match readers {
            0 => {}
            1 => write!(f, "; 1 recorded call was made from what is recorded")?,
            readers => write!(f, "; {readers} recorded calls were made from what is recorded")?,
        }
        write!(f, "; the new outputs are in {aside}")
    }
}

impl Storage {
    /// Whether a result is marked as one whose outputs are deliberately not here.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read.
    pub fn is_marked_away(&self, name: &ResultName) -> Result<bool> {
        let marker = self.root.disk.metadata(&self.path(&name.away()));
        match marker {
            Err(error) if error.is_not_own() => Ok(false),
            marker => Ok(marker?.is_some_and(|it| it.is_file())),
        }
    }

    /// Whether a file of a result is deliberately not here.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read.
    pub fn is_away(&self, entry: &Entry, file: &ExpectedFile) -> Result<bool> {
        let (Entry::Call(name) | Entry::Job(name)) = entry else { return Ok(false) };
        Ok(self.is_marked_away(name)? && !self.has(&file.name)?)
    }

    /// Marks a result as one whose outputs are deliberately not here. It is durable after the next [`flush`](Self::flush).
    pub(crate) fn mark_away(&self, name: &ResultName) -> Result<()> {
        if self.is_marked_away(name)? {
            return Ok(());
        }
        let private = self.root.private_path()?;
        self.root.disk.write(&private, b"")?;
        let place = self.root.place(&name.away())?;
        self.root.disk.rename(&private, &place)?;
        self.root.unsynced.note_new(&place);
        Ok(())
    }

    /// Removes the mark of a result whose outputs are here.
    pub(crate) fn unmark_away(&self, name: &ResultName) -> Result<()> {
        self.root.disk.remove(&self.path(&name.away()))
    }
}

impl Sealed<'_> {
    /// Makes all outputs visible, or none, like [`publish`](Self::publish); and none if they are not the recorded ones of
    /// the same call, which may have another name.
    ///
    /// # Errors
    ///
    /// Fails if the outputs differ, or if the storage cannot be written.
    pub fn publish_same(
        self,
        call: Call<'_>,
        (name, recorded): (&ResultName, Option<&Outputs>),
        precedence: Precedence,
    ) -> Result<Outputs, PublishError> {
        if let Some(recorded) = recorded
            && let Some(deviation) = self.deviation(recorded)?
        {
            return Err(PublishError::Deviates(Box::new(deviation)));
        }
        self.publish(call, name, precedence)
    }

    /// Compares the outputs with those of a result that is away. If they differ, they are moved to quarantine.
    pub(super) fn deviation(&self, recorded: &Outputs) -> Result<Option<Deviation>> {
        let pairs = recorded.files.iter().zip(&self.files).enumerate();
        let mut outputs = Vec::new();
        for (number, (recorded, found)) in pairs {
            if recorded.digest != found.digest {
                outputs.push(self.deviating(number, &recorded.digest, &found.digest)?);
            }
        }
        if outputs.is_empty() {
            return Ok(None);
        }
        let aside = self.set_aside(&recorded.name)?;
        Ok(Some(Deviation { outputs, aside, readers: 0 }))
    }

    fn deviating(
        &self,
        number: usize,
        recorded: &Digest,
        found: &Digest,
    ) -> Result<DeviatingOutput> {
        let root = &self.stage.storage.root;
        let members = match recorded.is_directory() && found.is_directory() {
            true => root.manifest(recorded)?.zip(root.manifest(found)?),
            false => None,
        };
        let members = members.map(|(recorded, found)| differences(&recorded, &found));
        Ok(DeviatingOutput { number, recorded: *recorded, found: *found, members })
    }

    /// Moves everything that an execution has made to quarantine. Returns the directory.
    fn set_aside(&self, name: &ResultName) -> Result<String> {
        let (stage, root) = (&self.stage, &self.stage.storage.root);
        let room = root.quarantine_room(&name.quarantine());
        for (number, Published { digest, .. }) in self.files.iter().enumerate() {
            let place = root.place(&format!("{room}/{number:02}"))?;
            root.disk.rename(&stage.output(number), &place)?;
            if digest.is_directory() {
                root.disk.seal_top(&place)?;
            }
        }
        root.disk.rename(&stage.record(), &root.place(&format!("{room}/record.json"))?)?;
        if root.disk.metadata(&stage.log())?.is_some_and(|log| log.is_file() && log.len() > 0) {
            root.disk.copy(&stage.log(), &root.place(&format!("{room}/log"))?)?;
        }
        Ok(room)
    }
}
