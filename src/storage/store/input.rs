//! Task inputs: copied into the storage, and named by their contents.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Storage, Stored};
use crate::cache::digests;
use crate::digest::Digest;
use crate::storage::disk::{FileId, Result, StorageError};
use crate::storage::layout::{DIGITS, Digits, task_input, task_input_record};
use crate::storage::records::{Format, InputRecord, Provenance, Published, Read};

/// The source of the contents of a task input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputSource {
    /// A user's file, or something else that can be read, such as a pipe.
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
    /// Its file, or the one that it would have.
    pub file: Stored,
    /// Whether the file exists.
    pub there: bool,
}

/// The state of the file under the name of a task input.
enum InputState {
    /// The same contents, written at this time.
    Same(i64),
    /// Other contents with the same digits.
    Collision,
    /// No file, or one with contents that do not fit the name.
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

    /// Returns the file of an input in the storage, or the one that it would have.
    ///
    /// # Errors
    ///
    /// Fails if the file or the storage cannot be read, or if reading is interrupted.
    pub fn find(&self, source: &InputSource) -> Result<Input> {
        self.known(match source {
            InputSource::File(path) => self.storage.ingest.read_to_digest(path)?,
            InputSource::Bytes(contents) => Digest::of(contents),
        })
    }

    /// Copies an input into the storage, unless it is there already.
    ///
    /// A large file is read at most once: it is copied at once if the storage cannot have it.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read or the storage cannot be written, or if reading is
    /// interrupted. Then no part of the copy remains.
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

    /// Publishes a file that a function writes under a private name. Removes it after a failure.
    fn publish(&self, write: impl FnOnce(&Path) -> Result<Digest>) -> Result<Input> {
        let copy = self.storage.root.private_path()?;
        let published = write(&copy).and_then(|digest| self.publish_copy(digest, &copy));
        if published.is_err() {
            drop(self.storage.root.disk.remove(&copy));
        }
        published
    }

    fn known(&self, digest: Digest) -> Result<Input> {
        self.announce_input(&digest);
        let (digits, found) = self.find_contents(&digest)?;
        let name = task_input(&digest, digits);
        let modified_ns = found.unwrap_or_default();
        Ok(Input { file: Stored { name, digest, modified_ns }, there: found.is_some() })
    }

    fn publish_copy(&self, digest: Digest, copy: &Path) -> Result<Input> {
        self.announce_input(&digest);
        // Two threads may publish the same contents.
        let _one_at_a_time = self.storage.ingest.publishing();
        let (digits, found) = self.find_contents(&digest)?;
        let name = task_input(&digest, digits);
        let root = &self.storage.root;
        let modified_ns = if let Some(modified_ns) = found {
            root.disk.remove(copy)?;
            modified_ns
        } else {
            let modified_ns = root.disk.seal(copy)?;
            root.sync(copy)?;
            let place = root.place(&name)?;
            root.disk.rename(copy, &place)?;
            root.unsynced.note_entry(&place);
            self.record_input(digits, Published { digest, modified_ns })?;
            modified_ns
        };
        Ok(Input { file: Stored { name, digest, modified_ns }, there: true })
    }

    fn announce_input(&self, digest: &Digest) {
        self.storage.announce_roots(DIGITS.map(|digits| task_input(digest, digits)));
    }

    /// Returns the number of digits in the name of these contents, and the time of the last write
    /// if the file exists.
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
        let Storage { root, ingest, .. } = self.storage;
        let path = root.path(&task_input(digest, digits));
        let Some(metadata) = root.disk.metadata(&path)? else {
            return Ok(InputState::Vacant);
        };
        let modified_ns = metadata.modified_ns();
        let same = |found| {
            if found == *digest { InputState::Same(modified_ns) } else { InputState::Collision }
        };
        let record =
            self.storage.records().read::<InputRecord>(&task_input_record(digest, digits))?;
        if let Read::Record(InputRecord { file: known, .. }) = record
            && ingest.unchanged(&root.disk, &path, &metadata, &known)?
        {
            return Ok(same(known.digest));
        }
        let found = root.disk.digest(&path)?;
        if task_input(&found, digits) != task_input(digest, digits) {
            return Ok(InputState::Vacant);
        }
        if root.writable {
            // If the record cannot be written, the file is only hashed again the next time.
            drop(self.record_input(digits, Published { digest: found, modified_ns }));
        }
        Ok(same(found))
    }

    fn record_input(&self, digits: Digits, file: Published) -> Result<()> {
        let record = InputRecord { format: Format, file, recorded: Provenance::now() };
        self.storage.records().put(&task_input_record(&file.digest, digits), &record)
    }

    /// Returns a literal, which is a file that should be in the storage; `None` if it is missing.
    ///
    /// # Errors
    ///
    /// Fails if the file exists and cannot be read.
    pub fn literal(&self, name: &str) -> Result<Option<Stored>> {
        let disk = &self.storage.root.disk;
        let path = self.storage.path(name);
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

    /// Returns the device and inode of a file that was found before, if it still has the same
    /// contents: size and time stamp decide, as when it was found.
    ///
    /// # Errors
    ///
    /// Fails if the file was changed or replaced meanwhile, or the storage cannot be read.
    pub fn verify_unchanged(&self, file: &Stored) -> Result<FileId> {
        let Stored { ref name, digest, modified_ns } = *file;
        let published = Published { digest, modified_ns };
        let disk = &self.storage.root.disk;
        let path = self.storage.path(name);
        match disk.metadata(&path)? {
            Some(found) if self.storage.ingest.unchanged(disk, &path, &found, &published)? => {
                Ok(found.id())
            }
            _ => Err(StorageError::Changed(path)),
        }
    }

    /// Announces inputs that are going to be read, for the progress. Returns whether several
    /// threads are useful for that, and harmless: the contents of pipes may depend on the order of
    /// reading.
    pub fn expect(&self, sources: &[&InputSource]) -> bool {
        let mut large = 0;
        let mut only_files = true;
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

    /// The number of processed bytes of the announced inputs, and the number of all their bytes, as
    /// far as it is known.
    pub fn taken_in(&self) -> (u64, u64) {
        self.storage.ingest.progress()
    }
}
