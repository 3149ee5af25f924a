//! Task inputs: copied into the storage under what they contain.

use std::path::Path;

use super::find::Read;
use super::ingest::Original;
use super::record::{Format, InputRecord, Published};
use super::scheme::{DIGITS, Digits, task_input, task_input_record};
use super::{Result, Storage, StorageError, Stored};
use crate::digest::Digest;

/// A task input, and whether the storage has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// The file that it is, or would be.
    pub file: Stored,
    /// Whether the file is there.
    pub there: bool,
}

/// What stands under the name of a task input.
enum InputState {
    /// The very contents, written at this time.
    Same(i64),
    /// Other contents with the same digits.
    Collision,
    /// Nothing, or what is not what its name says.
    Vacant,
}

impl Storage {
    /// Returns the name under which a user's file is, or would be, in the storage.
    ///
    /// # Errors
    ///
    /// Fails if the file or the storage cannot be read, or if somebody asked to stop.
    pub fn find_input(&self, path: &Path) -> Result<Input> {
        self.known_input(self.read_to_digest(path)?)
    }

    /// Copies a user's file into the storage, unless it is there.
    ///
    /// A large file is read once, if at all: it is copied as soon as the storage cannot have it.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read or the storage cannot be written, or if somebody asked to
    /// stop. Then nothing is left of it.
    pub fn store_input(&self, path: &Path) -> Result<Input> {
        let mut original = self.original(path)?;
        if original.is_cheap() || self.may_have(&original)? {
            let digest = self.digest_of(&mut original)?;
            let input = self.known_input(digest)?;
            if input.there {
                return Ok(input);
            }
            self.rewind(&mut original)?;
        }
        let copy = self.place(&self.private_name())?;
        let stored = self.copy_input(original, &copy);
        if stored.is_err() {
            drop(self.disk.remove(&copy));
        }
        stored
    }

    fn known_input(&self, digest: Digest) -> Result<Input> {
        self.announce_input(&digest);
        let (digits, found) = self.find_contents(&digest)?;
        let (name, modified_ns) = (task_input(&digest, digits), found.unwrap_or_default());
        Ok(Input { file: Stored { name, digest, modified_ns }, there: found.is_some() })
    }

    fn copy_input(&self, mut original: Original<'_>, copy: &Path) -> Result<Input> {
        let digest = self.copy_of(&mut original, copy)?;
        self.announce_input(&digest);
        // Two inputs may be the same.
        let _one_at_a_time = self.ingest.publishing();
        let (digits, found) = self.find_contents(&digest)?;
        let name = task_input(&digest, digits);
        let modified_ns = if let Some(modified_ns) = found {
            self.disk.remove(copy)?;
            modified_ns
        } else {
            let modified_ns = self.disk.seal(copy)?;
            self.sync(copy)?;
            let place = self.place(&name)?;
            self.disk.rename(copy, &place)?;
            self.unsynced.note_entry(&place);
            self.record_input(digits, Published { digest, modified_ns })?;
            modified_ns
        };
        Ok(Input { file: Stored { name, digest, modified_ns }, there: true })
    }

    fn announce_input(&self, digest: &Digest) {
        self.announce_roots(DIGITS.map(|digits| task_input(digest, digits)));
    }

    /// Returns how many digits the name of these contents has, and when they were written if they
    /// are there.
    fn find_contents(&self, digest: &Digest) -> Result<(Digits, Option<i64>)> {
        for digits in DIGITS {
            match self.input_state(digest, digits)? {
                InputState::Same(modified_ns) => return Ok((digits, Some(modified_ns))),
                InputState::Vacant => return Ok((digits, None)),
                InputState::Collision => {}
            }
        }
        Err(StorageError::Collision(self.path(&task_input(digest, Digits::Full))))
    }

    fn input_state(&self, digest: &Digest, digits: Digits) -> Result<InputState> {
        let path = self.path(&task_input(digest, digits));
        let Some(metadata) = self.disk.metadata(&path)? else {
            return Ok(InputState::Vacant);
        };
        let modified_ns = metadata.modified_ns();
        let same = |found| {
            if found == *digest { InputState::Same(modified_ns) } else { InputState::Collision }
        };
        let record = self.record::<InputRecord>(&task_input_record(digest, digits))?;
        if let Read::Record(InputRecord { file: known, .. }) = record
            && self.unchanged(&path, &metadata, &known)?
        {
            return Ok(same(known.digest));
        }
        let found = self.disk.digest(&path)?;
        if task_input(&found, digits) != task_input(digest, digits) {
            return Ok(InputState::Vacant);
        }
        if self.writable {
            // Without a record it is hashed again the next time, and that is all.
            drop(self.record_input(digits, Published { digest: found, modified_ns }));
        }
        Ok(same(found))
    }

    fn record_input(&self, digits: Digits, file: Published) -> Result<()> {
        let record = InputRecord { format: Format, file, recorded: self.provenance() };
        self.put_record(&task_input_record(&file.digest, digits), &record)
    }
}
