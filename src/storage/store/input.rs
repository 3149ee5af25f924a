//! Task inputs: copied into the storage under what they contain.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Storage, Stored};
use crate::cache::digests;
use crate::digest::Digest;
use crate::storage::disk::{FileId, Result, StorageError};
use crate::storage::layout::{DIGITS, Digits, task_input, task_input_record};
use crate::storage::records::{Format, InputRecord, Provenance, Published, Read};

/// Where the contents of a task input come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputSource {
    /// A file of the user's, or something else that can be read, such as a pipe.
    File(PathBuf),
    /// The contents themselves.
    Bytes(Vec<u8>),
}

impl From<&Path> for InputSource {
    fn from(path: &Path) -> Self {
        Self::File(path.to_owned())
    }
}

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

/// The task inputs of a storage.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    storage: &'a Storage,
}

impl<'a> Inputs<'a> {
    pub(super) const fn new(storage: &'a Storage) -> Self {
        Self { storage }
    }

    /// Returns the name under which an input is, or would be, in the storage.
    ///
    /// # Errors
    ///
    /// Fails if the file or the storage cannot be read, or if somebody asked to stop.
    pub fn find(&self, source: &InputSource) -> Result<Input> {
        self.known(match source {
            InputSource::File(path) => self.storage.ingest.read_to_digest(path)?,
            InputSource::Bytes(contents) => Digest::of(contents),
        })
    }

    /// Copies an input into the storage, unless it is there.
    ///
    /// A large file is read once, if at all: it is copied as soon as the storage cannot have it.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read or the storage cannot be written, or if somebody asked to
    /// stop. Then nothing is left of it.
    pub fn store(&self, source: &InputSource) -> Result<Input> {
        match source {
            InputSource::File(path) => self.store_file(path),
            InputSource::Bytes(contents) => {
                let digest = Digest::of(contents);
                let input = self.known(digest)?;
                if input.there {
                    return Ok(input);
                }
                self.publish(|copy| {
                    self.storage.root.disk.write(copy, contents)?;
                    Ok(digest)
                })
            }
        }
    }

    fn store_file(&self, path: &Path) -> Result<Input> {
        let mut original = self.storage.ingest.original(path)?;
        if original.is_cheap() || self.storage.ingest.may_have(&self.storage.root, &original)? {
            let digest = self.storage.ingest.digest_of(&mut original)?;
            let input = self.known(digest)?;
            if input.there {
                return Ok(input);
            }
            self.storage.ingest.rewind(&mut original)?;
        }
        self.publish(|copy| {
            self.storage.ingest.copy_of(&self.storage.root.disk, &mut original, copy)
        })
    }

    /// Publishes what a function writes to a private file. If it fails, nothing is left of that.
    fn publish(&self, write: impl FnOnce(&Path) -> Result<Digest>) -> Result<Input> {
        let copy = self.storage.root.place(&self.storage.root.private_name())?;
        let published = write(&copy).and_then(|digest| self.publish_copy(digest, &copy));
        if published.is_err() {
            drop(self.storage.root.disk.remove(&copy));
        }
        published
    }

    fn known(&self, digest: Digest) -> Result<Input> {
        self.announce_input(&digest);
        let (digits, found) = self.find_contents(&digest)?;
        let (name, modified_ns) = (task_input(&digest, digits), found.unwrap_or_default());
        Ok(Input { file: Stored { name, digest, modified_ns }, there: found.is_some() })
    }

    fn publish_copy(&self, digest: Digest, copy: &Path) -> Result<Input> {
        self.announce_input(&digest);
        // Two inputs may be the same.
        let _one_at_a_time = self.storage.ingest.publishing();
        let (digits, found) = self.find_contents(&digest)?;
        let name = task_input(&digest, digits);
        let modified_ns = if let Some(modified_ns) = found {
            self.storage.root.disk.remove(copy)?;
            modified_ns
        } else {
            let modified_ns = self.storage.root.disk.seal(copy)?;
            self.storage.root.sync(copy)?;
            let place = self.storage.root.place(&name)?;
            self.storage.root.disk.rename(copy, &place)?;
            self.storage.root.unsynced.note_entry(&place);
            self.record_input(digits, Published { digest, modified_ns })?;
            modified_ns
        };
        Ok(Input { file: Stored { name, digest, modified_ns }, there: true })
    }

    fn announce_input(&self, digest: &Digest) {
        self.storage.announce_roots(DIGITS.map(|digits| task_input(digest, digits)));
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
        Err(StorageError::Collision(self.storage.path(&task_input(digest, Digits::Full))))
    }

    fn input_state(&self, digest: &Digest, digits: Digits) -> Result<InputState> {
        let path = self.storage.path(&task_input(digest, digits));
        let Some(metadata) = self.storage.root.disk.metadata(&path)? else {
            return Ok(InputState::Vacant);
        };
        let modified_ns = metadata.modified_ns();
        let same = |found| {
            if found == *digest { InputState::Same(modified_ns) } else { InputState::Collision }
        };
        let record =
            self.storage.records().read::<InputRecord>(&task_input_record(digest, digits))?;
        if let Read::Record(InputRecord { file: known, .. }) = record
            && self.storage.ingest.unchanged(&self.storage.root.disk, &path, &metadata, &known)?
        {
            return Ok(same(known.digest));
        }
        let found = self.storage.root.disk.digest(&path)?;
        if task_input(&found, digits) != task_input(digest, digits) {
            return Ok(InputState::Vacant);
        }
        if self.storage.root.writable {
            // Without a record it is hashed again the next time, and that is all.
            drop(self.record_input(digits, Published { digest: found, modified_ns }));
        }
        Ok(same(found))
    }

    fn record_input(&self, digits: Digits, file: Published) -> Result<()> {
        let record = InputRecord { format: Format, file, recorded: Provenance::now() };
        self.storage.records().put(&task_input_record(&file.digest, digits), &record)
    }

    /// Returns a literal: a file that is expected to be in the storage, or `None` if it is not.
    ///
    /// # Errors
    ///
    /// Fails if the file is there and cannot be read.
    pub fn literal(&self, name: &str) -> Result<Option<Stored>> {
        let (disk, path) = (&self.storage.root.disk, self.storage.path(name));
        match disk.metadata(&path)? {
            Some(metadata) if metadata.is_file() => {
                self.storage.ingest.expect(metadata.len());
                let digest = self.storage.ingest.stored_digest(disk, &path)?;
                let modified_ns = metadata.modified_ns();
                Ok(Some(Stored { name: name.to_owned(), digest, modified_ns }))
            }
            _ => Ok(None),
        }
    }

    /// Returns the device and inode of a file that was found before, provided that it still has the
    /// same contents: size and time stamp decide, as when it was found.
    ///
    /// # Errors
    ///
    /// Fails if the file was changed or replaced meanwhile, or the storage cannot be read.
    pub fn verify_unchanged(&self, file: &Stored) -> Result<FileId> {
        let Stored { ref name, digest, modified_ns } = *file;
        let (disk, path) = (&self.storage.root.disk, self.storage.path(name));
        match disk.metadata(&path)? {
            Some(metadata)
                if self.storage.ingest.unchanged(
                    disk,
                    &path,
                    &metadata,
                    &Published { digest, modified_ns },
                )? =>
            {
                Ok(metadata.id())
            }
            _ => Err(StorageError::Changed(path)),
        }
    }

    /// Expects these inputs to be taken in. Returns whether several threads are of use for that, and
    /// do no harm: what is read from pipes may depend on the order.
    pub fn expect(&self, sources: &[&InputSource]) -> bool {
        let (mut large, mut only_files) = (0, true);
        for source in sources {
            let InputSource::File(path) = source else { continue };
            match fs::metadata(path) {
                Ok(metadata) if metadata.is_file() => {
                    self.storage.ingest.expect(metadata.len());
                    large += usize::from(metadata.len() >= digests::MIN_SIZE);
                }
                _ => only_files = false,
            }
        }
        only_files && large > 1
    }

    /// How many bytes of what is to be taken in are done with, and how many there are, as far as that
    /// is known.
    pub fn taken_in(&self) -> (u64, u64) {
        self.storage.ingest.progress()
    }
}
