//! Task inputs: copied into the storage, and named by their contents.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Storage, Stored};
use crate::disk::{FileId, Result, SeenValue, StorageError};
use crate::layout::{
    DIGITS, Digits, Entry, QUARANTINE, TASK_INPUTS, task_input, task_input_record,
};
use crate::records::{ExpectedFile, Format, InputRecord, Provenance, Published, Read, Stamp};
use ce_files::cache::digests;
use ce_model::digest::Digest;

/// The source of the contents of a task input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputSource {
    /// A user's file or directory, or something else that can be read, such as a pipe.
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
pub(super) enum InputState {
    /// The same contents, with this stamp.
    Same(Stamp),
    /// Other contents with the same digits.
    Collision,
    /// No file, or one with contents that do not fit the name.
    Vacant,
}

/// The task inputs of a storage.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    pub(super) storage: &'a Storage,
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
        if original.is_directory() {
            return self.store_directory(path);
        }
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

    /// Publishes a value that a function writes under a private name. Removes it after a failure.
    pub(super) fn publish<E: From<StorageError>>(
        &self,
        write: impl FnOnce(&Path) -> Result<Digest, E>,
    ) -> Result<Input, E> {
        let copy = self.storage.root.private_path()?;
        let published = write(&copy).and_then(|digest| Ok(self.publish_copy(digest, &copy)?));
        if published.is_err() {
            drop(self.storage.root.disk.remove_tree(&copy));
        }
        published
    }

    /// Returns the file of an input with these contents in the storage, or the one that it would have.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read.
    pub fn known(&self, digest: Digest) -> Result<Input> {
        self.announce_input(&digest);
        let (digits, found) = self.find_contents(&digest)?;
        let name = task_input(&digest, digits);
        let stamp = found.unwrap_or(Stamp::Unknown);
        Ok(Input { file: Stored { name, digest, stamp }, there: found.is_some() })
    }

    fn publish_copy(&self, digest: Digest, copy: &Path) -> Result<Input> {
        self.announce_input(&digest);
        // Two threads may publish the same contents.
        let _one_at_a_time = self.storage.ingest.publishing();
        let (digits, found) = self.find_contents(&digest)?;
        let name = task_input(&digest, digits);
        let root = &self.storage.root;
        let stamp = if let Some(stamp) = found {
            root.disk.remove_tree(copy)?;
            stamp
        } else {
            let place = root.place(&name)?;
            let stamp = match digest.is_directory() {
                true => self.place_directory(copy, &name, (&digest, digits))?,
                false => self.place_file(copy, &name, (&digest, digits))?,
            };
            root.unsynced.note_entry(&place);
            self.record_input(digits, Published { digest, stamp })?;
            stamp
        };
        Ok(Input { file: Stored { name, digest, stamp }, there: true })
    }

    /// Moves a copied file to its place, unless another run was faster: who has found that one may be reading it.
    fn place_file(
        &self,
        copy: &Path,
        name: &str,
        (digest, digits): (&Digest, Digits),
    ) -> Result<Stamp> {
        let root = &self.storage.root;
        let place = root.place(name)?;
        let modified_ns = root.disk.seal(copy)?;
        root.sync(copy)?;
        if !root.disk.rename_new(copy, &place)? {
            if let InputState::Same(stamp) = self.input_state(digest, digits)? {
                root.disk.remove_tree(copy)?;
                return Ok(stamp);
            }
            if root.disk.metadata(&place)?.is_some_and(|it| it.is_dir()) {
                self.set_aside(name)?;
            }
            root.disk.rename(copy, &place)?;
        }
        Ok(Stamp::Modified(modified_ns))
    }

    /// Moves what stands in the place of an input to quarantine.
    pub(super) fn set_aside(&self, name: &str) -> Result<()> {
        let root = &self.storage.root;
        let aside = name.replacen(TASK_INPUTS, &format!("{TASK_INPUTS}/{QUARANTINE}"), 1);
        let room = root.quarantine_room(&aside);
        root.disk.rename(&root.path(name), &root.place(&format!("{room}/00"))?).map(drop)
    }

    fn announce_input(&self, digest: &Digest) {
        self.storage.announce_roots(DIGITS.map(|digits| task_input(digest, digits)));
    }

    /// Returns the number of digits in the name of these contents, and the stamp if it exists.
    fn find_contents(&self, digest: &Digest) -> Result<(Digits, Option<Stamp>)> {
        for digits in DIGITS {
            match self.input_state(digest, digits)? {
                InputState::Same(stamp) => return Ok((digits, Some(stamp))),
                InputState::Vacant => return Ok((digits, None)),
                InputState::Collision => {}
            }
        }
        Err(StorageError::Collision(self.storage.path(&task_input(digest, Digits::Full))))
    }

    /// The file that an input with these contents has, or would have, and whether it is there.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read.
    pub fn expected(&self, digest: Digest) -> Result<(ExpectedFile, bool)> {
        let Input { file: Stored { name, digest, .. }, there } = self.known(digest)?;
        Ok((ExpectedFile { name, digest, waiting: None }, there))
    }

    /// The file of an input with these contents, if the storage has it. A directory that a clone of a results repository has in
    /// its archive only is unpacked first; a storage that is only read does not have it.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read, or the directory cannot be written.
    pub fn unpacked(&self, digest: Digest) -> Result<Option<Stored>> {
        let Storage { root, .. } = self.storage;
        let known = self.known(digest)?;
        if known.there {
            return Ok(Some(known.file));
        }
        if !(digest.is_directory() && root.writable) {
            return Ok(None);
        }
        let Some(copy) = self.storage.unpacked(&digest)? else { return Ok(None) };
        let published = self.publish_copy(digest, &copy);
        if published.is_err() {
            drop(root.disk.remove_tree(&copy));
        }
        Ok(Some(published?.file))
    }

    /// Whether a storage that is only read has a directory with these contents in its archive only.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read.
    pub fn is_archived(&self, digest: &Digest) -> Result<bool> {
        let root = &self.storage.root;
        Ok(digest.is_directory() && !root.writable && root.archive(digest)?.is_some())
    }

    pub(super) fn input_state(&self, digest: &Digest, digits: Digits) -> Result<InputState> {
        let Storage { root, ingest, .. } = self.storage;
        let path = root.path(&task_input(digest, digits));
        // A collection may just have taken it away.
        let seen = match root.disk.look_anew(&path, || root.disk.see(&path, &ingest.stop)) {
            Ok(Some(seen)) => seen,
            Ok(None) | Err(StorageError::Directory { .. }) => return Ok(InputState::Vacant),
            Err(error) => return Err(error),
        };
        let same = |found: Digest, stamp| {
            if found == *digest { InputState::Same(stamp) } else { InputState::Collision }
        };
        let record =
            self.storage.records().read::<InputRecord>(&task_input_record(digest, digits))?;
        if let Read::Record(InputRecord { file: known, .. }) = record
            && ingest.unchanged(&root.disk, &path, &seen, &known)?
        {
            return Ok(same(known.digest, known.stamp));
        }
        let found = ingest.stored_value(&root.disk, &path, &seen)?;
        if task_input(&found.digest, digits) != task_input(digest, digits) {
            return Ok(InputState::Vacant);
        }
        if root.writable {
            // If the record cannot be written, the value is only hashed again the next time.
            drop(self.record_input(digits, found));
        }
        Ok(same(found.digest, found.stamp))
    }

    fn record_input(&self, digits: Digits, file: Published) -> Result<()> {
        let format = Format::of([&file.digest]);
        let record = InputRecord { format, file, recorded: Provenance::now() };
        self.storage.records().put(&task_input_record(&file.digest, digits), &record)
    }

    /// Returns a literal, which is a file that should be in the storage; `None` if it is missing.
    ///
    /// # Errors
    ///
    /// Fails if the file exists and cannot be read.
    pub fn literal(&self, name: &str) -> Result<Option<Stored>> {
        let Storage { root, ingest, .. } = self.storage;
        let mut path = root.path(name);
        let mut seen = root.disk.see(&path, &ingest.stop)?;
        if let Some(SeenValue::Other) = seen
            && let Some(maker) = self.linked(name)?
        {
            path = root.path(&maker);
            seen = root.disk.see(&path, &ingest.stop)?;
        }
        let seen = match seen {
            None | Some(SeenValue::Other) => return Ok(None),
            Some(seen) => seen,
        };
        ingest.expect(match &seen {
            SeenValue::File(metadata) => metadata.len(),
            SeenValue::Directory(scan, _) => scan.bytes(),
            SeenValue::Other => 0,
        });
        let Published { digest, stamp } = ingest.stored_value(&root.disk, &path, &seen)?;
        Ok(Some(Stored { name: name.to_owned(), digest, stamp }))
    }

    /// Returns the name of the directory that the output with this name is a link to. Announces it: a
    /// collection keeps it, or has removed the record of the link before.
    fn linked(&self, name: &str) -> Result<Option<String>> {
        let Storage { root, .. } = self.storage;
        let maker = root.maker(name)?;
        let Some(entry) = Entry::of_file(name).filter(|_| maker != name) else { return Ok(None) };
        self.storage.announce_roots([maker.clone()]);
        Ok(root.disk.exists(&root.path(&entry.record()))?.then_some(maker))
    }

    /// Returns the path, the device and the inode of a value that was found before, if it still has the
    /// same contents: its stamp decides, as when it was found.
    ///
    /// # Errors
    ///
    /// Fails if the value was changed or replaced meanwhile, or the storage cannot be read.
    pub fn verify_unchanged(&self, value: &Stored) -> Result<(PathBuf, FileId)> {
        let Storage { root, ingest, .. } = self.storage;
        let Stored { ref name, digest, stamp } = *value;
        let path = root.value(name, &digest)?;
        let changed = || StorageError::Changed(root.path(name));
        let seen = match root.disk.surely(|| root.disk.see(&path, &ingest.stop)) {
            Ok(seen) => seen.ok_or_else(changed)?,
            Err(StorageError::Directory { .. }) => return Err(changed()),
            Err(error) => return Err(error),
        };
        if !ingest.unchanged(&root.disk, &path, &seen, &Published { digest, stamp })? {
            return Err(changed());
        }
        match seen {
            SeenValue::File(metadata) => Ok((path, metadata.id())),
            SeenValue::Directory(_, metadata) => Ok((path, metadata.id())),
            SeenValue::Other => Err(changed()),
        }
    }

    /// Announces inputs that are going to be read, for the progress. Returns whether several
    /// threads are useful for that, and harmless: the contents of pipes may depend on the order of
    /// reading.
    pub fn expect(&self, sources: &[&InputSource]) -> bool {
        let (mut large, mut bytes) = (0, 0);
        let (mut only_files, mut has_pipe) = (true, false);
        for source in sources {
            let InputSource::File(path) = source else { continue };
            match fs::metadata(path) {
                Ok(metadata) if metadata.is_file() => {
                    bytes += metadata.len();
                    large += usize::from(metadata.len() >= digests::MIN_SIZE);
                }
                other => {
                    only_files = false;
                    has_pipe |= other.is_ok_and(|it| !it.is_dir());
                }
            }
        }
        // How much comes from a pipe is not known, so nor is how much there is in all.
        if !has_pipe {
            self.storage.ingest.expect(bytes);
        }
        only_files && large > 1
    }

    /// The number of processed bytes of the announced inputs, and the number of all their bytes, as
    /// far as it is known.
    pub fn taken_in(&self) -> (u64, u64) {
        self.storage.ingest.progress()
    }
}
