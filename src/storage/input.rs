//! Task inputs: copied into the storage under what they contain.

use std::path::Path;

use super::find::Read;
use super::record::{Format, InputRecord, Published};
use super::scheme::{DIGITS, Digits, task_input, task_input_record};
use super::{Result, Storage, StorageError, Stored, disk};
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
enum State {
    /// The very contents.
    Same,
    /// Other contents with the same digits.
    Stranger,
    /// Nothing, or what is not what its name says.
    Free,
}

impl Storage {
    /// Returns the name under which a user's file is, or would be, in the storage.
    ///
    /// # Errors
    ///
    /// Fails if the file or the storage cannot be read.
    pub fn find_input(&self, path: &Path) -> Result<Input> {
        let digest = disk::digest(path)?;
        self.announce_input(&digest);
        let (digits, there) = self.find_contents(&digest)?;
        Ok(Input { file: Stored { name: task_input(&digest, digits), digest }, there })
    }

    /// Copies a user's file into the storage, unless it is there.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read or the storage cannot be written.
    pub fn store_input(&self, path: &Path) -> Result<Input> {
        // What is no regular file, such as a pipe, can be read only once.
        if disk::metadata(path)?.is_some_and(|metadata| metadata.is_file()) {
            let input = self.find_input(path)?;
            if input.there {
                return Ok(input);
            }
        }
        let copy = self.place(&self.private_name())?;
        let stored = self.copy_input(path, &copy);
        if stored.is_err() {
            drop(disk::remove(&copy));
        }
        stored
    }

    fn copy_input(&self, path: &Path, copy: &Path) -> Result<Input> {
        let digest = disk::copy(path, copy)?;
        self.announce_input(&digest);
        let (digits, there) = self.find_contents(&digest)?;
        let name = task_input(&digest, digits);
        if there {
            disk::remove(copy)?;
        } else {
            let modified_ns = disk::seal(copy)?;
            self.unsynced.sync(copy)?;
            let place = self.place(&name)?;
            disk::rename(copy, &place)?;
            self.unsynced.note_entry(&place);
            self.record_input(digits, Published { digest, modified_ns })?;
        }
        Ok(Input { file: Stored { name, digest }, there: true })
    }

    fn announce_input(&self, digest: &Digest) {
        self.announce(DIGITS.map(|digits| task_input(digest, digits)));
    }

    /// Returns how many digits the name of these contents has, and whether they are there.
    fn find_contents(&self, digest: &Digest) -> Result<(Digits, bool)> {
        for digits in DIGITS {
            match self.input_state(digest, digits)? {
                State::Same => return Ok((digits, true)),
                State::Free => return Ok((digits, false)),
                State::Stranger => {}
            }
        }
        Err(StorageError::Collision(self.path(&task_input(digest, Digits::Full))))
    }

    fn input_state(&self, digest: &Digest, digits: Digits) -> Result<State> {
        let path = self.path(&task_input(digest, digits));
        let Some(metadata) = disk::metadata(&path)? else {
            return Ok(State::Free);
        };
        let record = self.record::<InputRecord>(&task_input_record(digest, digits))?;
        if let Read::Record(InputRecord { file: known, .. }) = record
            && disk::unchanged(&path, &metadata, &known)?
        {
            return Ok(if known.digest == *digest { State::Same } else { State::Stranger });
        }
        let found = disk::digest(&path)?;
        if task_input(&found, digits) != task_input(digest, digits) {
            return Ok(State::Free);
        }
        if self.writable {
            let modified_ns = disk::modified_ns(&metadata);
            // Without a record it is hashed again the next time, and that is all.
            drop(self.record_input(digits, Published { digest: found, modified_ns }));
        }
        Ok(if found == *digest { State::Same } else { State::Stranger })
    }

    fn record_input(&self, digits: Digits, file: Published) -> Result<()> {
        let record = InputRecord { format: Format, file, recorded: self.stamp() };
        self.put_record(&task_input_record(&file.digest, digits), &record)
    }
}
