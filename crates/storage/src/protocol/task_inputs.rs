//! Task inputs: files, directories and Git trees, copied into the storage and named by their contents.
//!
//! The module also reads short texts among the inputs of calls for display; an unreadable text is left out.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use super::{NewTree, Storage, Stored};
use crate::disk::{EarlierDirectory, FileId, Result, Root, StorageError, ValueMetadata, lock};
use crate::paths::{
    DIGITS, Digits, Entry, QUARANTINE, TASK_INPUTS, is_value, task_input, task_input_record,
};
use crate::records::{
    ExpectedFile, Format, InputRecord, Provenance, Published, Record, RecordState, Stamp,
};
use ce_files::cache::digests;
use ce_files::manifest::{Manifest, Scan};
use ce_model::digest::{Digest, ObjectId};
use ce_model::system_hints::exhausted_limit;

/// The source of the contents of a task input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputSource {
    /// A user's file or directory, or something else that can be read, such as a pipe.
    File(PathBuf),
    /// The contents themselves.
    Bytes(Vec<u8>),
}

impl InputSource {
    /// The files among some sources.
    pub(super) fn files<'s>(
        sources: impl Iterator<Item = &'s Self>,
    ) -> impl Iterator<Item = PathBuf> {
        sources.filter_map(|source| match source {
            Self::File(path) => Some(path.clone()),
            Self::Bytes(_) => None,
        })
    }

    /// The digest of contents that are not in a file, if they are small.
    fn small_contents(&self) -> Option<Digest> {
        match self {
            Self::Bytes(contents) if (contents.len() as u64) < digests::MIN_SIZE => {
                Some(Digest::hash_bytes(contents))
            }
            _ => None,
        }
    }

    /// Returns the text, without its newline, if the contents are one short line, and still have this digest. Inputs that
    /// can be read only once are not read.
    pub fn short_text(&self, digest: &Digest) -> Option<String> {
        let contents = match self {
            Self::Bytes(contents) => contents.clone(),
            Self::File(path) => {
                let metadata = fs::metadata(path).ok()?;
                let is_short = metadata.is_file() && metadata.len() <= Inputs::SHORT_TEXT;
                is_short.then(|| fs::read(path).ok())??
            }
        };
        let is_it = digest.size <= Inputs::SHORT_TEXT && Digest::hash_bytes(&contents) == *digest;
        is_it.then(|| line_of(contents))?
    }
}

/// Reads a file of a storage up to one byte more than a short text has. `None` if it is empty or cannot be read.
pub(super) fn read_short(root: &Root, name: &str) -> Option<Vec<u8>> {
    let read = root.disk.read_from(&root.path(name), 0, Inputs::SHORT_TEXT + 1);
    read.ok().filter(|it| !it.is_empty())
}

/// The text of contents that are one line, without its newline.
pub(super) fn line_of(contents: Vec<u8>) -> Option<String> {
    let text = String::from_utf8(contents).ok()?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    Inputs::is_line(line).then(|| line.to_owned())
}

impl From<&Path> for InputSource {
    fn from(path: &Path) -> Self {
        Self::File(path.to_owned())
    }
}

/// A task input, and whether the storage has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// Its file in the storage, existing or not.
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

impl InputState {
    /// The state of a file with the name of some contents.
    fn compare(contents: &Digest, found: Published) -> Self {
        if found.digest == *contents { Self::Same(found.stamp) } else { Self::Collision }
    }
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

    /// Returns the file of an input in the storage, existing or not.
    pub fn find(&self, source: &InputSource) -> Result<Input> {
        self.known(match source {
            InputSource::File(path) => self.storage.hasher.read_to_digest(path)?,
            InputSource::Bytes(contents) => Digest::hash_bytes(contents),
        })
    }

    /// Returns the file that an input has or would have. Its digest may be known. With `store`, the input is stored.
    ///
    /// # Errors
    ///
    /// Fails as [`store`](Self::store) does.
    pub fn take_in(
        &self,
        source: &InputSource,
        known: Option<Digest>,
        store: bool,
    ) -> Result<Input> {
        if let Some(digest) = known {
            let input = self.known(digest)?;
            if input.there || !store {
                return Ok(input);
            }
        }
        if store { self.store(source) } else { self.find(source) }
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
                let digest = Digest::hash_bytes(contents);
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
        let mut original = self.storage.hasher.original(path)?;
        if original.is_directory() {
            return self.store_directory(path);
        }
        if original.is_cheap() || self.storage.hasher.may_have(&self.storage.root, &original)? {
            let digest = self.storage.hasher.digest_of(&mut original)?;
            let input = self.known(digest)?;
            if input.there {
                return Ok(input);
            }
            self.storage.hasher.rewind(&mut original)?;
        }
        self.publish(|copy| {
            self.storage.hasher.copy_of(&self.storage.root.disk, &mut original, copy)
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

    /// Returns the file of an input with these contents in the storage, existing or not.
    pub fn known(&self, digest: Digest) -> Result<Input> {
        self.announce_input(&digest)?;
        let (digits, found) = self.find_contents(&digest)?;
        let name = task_input(&digest, digits);
        let stamp = found.unwrap_or(Stamp::Unknown);
        Ok(Input { file: Stored { name, digest, stamp }, there: found.is_some() })
    }

    fn publish_copy(&self, digest: Digest, copy: &Path) -> Result<Input> {
        self.announce_input(&digest)?;
        // Two threads may publish the same contents.
        let _one_at_a_time = self.storage.hasher.publishing();
        let (digits, found) = self.find_contents(&digest)?;
        let name = task_input(&digest, digits);
        let root = &self.storage.root;
        let stamp = if let Some(stamp) = found {
            root.disk.remove_tree(copy)?;
            stamp
        } else {
            let place = root.place(&name)?;
            let stamp = if digest.is_directory() {
                self.place_directory(copy, &name, &digest, digits)?
            } else {
                self.place_file(copy, &name, &digest, digits)?
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
        digest: &Digest,
        digits: Digits,
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

    /// Moves the entry in the place of an input to quarantine.
    pub(super) fn set_aside(&self, name: &str) -> Result<()> {
        let root = &self.storage.root;
        let aside = name.replacen(TASK_INPUTS, &format!("{TASK_INPUTS}/{QUARANTINE}"), 1);
        root.disk.rename(&root.path(name), &root.quarantine_place(&aside, "00")?).map(drop)
    }

    fn announce_input(&self, digest: &Digest) -> Result<()> {
        if lock(&self.storage.run.announced_inputs).contains(digest) {
            return Ok(());
        }
        self.storage.gc_roots().announce(DIGITS.map(|digits| task_input(digest, digits)))
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
    pub fn expected(&self, digest: Digest) -> Result<(ExpectedFile, bool)> {
        let Input { file: Stored { name, digest, .. }, there } = self.known(digest)?;
        Ok((ExpectedFile { name, digest, waiting: None }, there))
    }

    /// The file of an input with these contents, if the storage has it. A directory that a clone of a results repository has in
    /// its archive only is unpacked first; a storage that is only read does not have it.
    pub fn unpacked(&self, digest: Digest) -> Result<Option<Stored>> {
        let Storage { root, .. } = self.storage;
        let known = self.known(digest)?;
        if known.there {
            return Ok(Some(known.file));
        }
        if !(digest.is_directory() && root.writable) {
            return Ok(None);
        }
        let Some(copy) = self.storage.values().unpacked(&digest)? else { return Ok(None) };
        let published = self.publish_copy(digest, &copy);
        if published.is_err() {
            drop(root.disk.remove_tree(&copy));
        }
        Ok(Some(published?.file))
    }

    /// Whether a storage that is only read has a directory with these contents in its archive only.
    pub fn is_archived(&self, digest: &Digest) -> Result<bool> {
        let root = &self.storage.root;
        Ok(digest.is_directory() && !root.writable && root.archive(digest)?.is_some())
    }

    pub(super) fn input_state(&self, digest: &Digest, digits: Digits) -> Result<InputState> {
        let Storage { root, hasher, .. } = self.storage;
        let path = root.path(&task_input(digest, digits));
        let taken = SystemTime::now();
        // A collection may just have taken it away.
        let seen = match root.disk.see_anew(&path, &hasher.stop) {
            Ok(Some(seen)) => seen,
            Ok(None) | Err(StorageError::Directory { .. }) => return Ok(InputState::Vacant),
            Err(error) => return Err(error),
        };
        if let Some(known) = hasher.known_small_file(&seen) {
            return Ok(InputState::compare(digest, known));
        }
        let record =
            self.storage.records().read::<InputRecord>(&task_input_record(digest, digits))?;
        if let RecordState::Valid(InputRecord { file: known, .. }) = record
            && hasher.unchanged(&root.disk, &path, &seen, &known)?
        {
            hasher.note_small_file(&seen, taken, known.digest);
            return Ok(InputState::compare(digest, known));
        }
        let found = hasher.stored_value(&root.disk, &path, &seen)?;
        if task_input(&found.digest, digits) != task_input(digest, digits) {
            return Ok(InputState::Vacant);
        }
        if root.writable {
            // If the record cannot be written, the value is only hashed again the next time.
            drop(self.record_input(digits, found));
        }
        Ok(InputState::compare(digest, found))
    }

    fn record_input(&self, digits: Digits, file: Published) -> Result<()> {
        let format = Format::for_values([&file.digest]);
        let record = InputRecord { format, file, recorded: Provenance::now() };
        self.storage.records().put(&task_input_record(&file.digest, digits), &record)
    }

    /// Returns a literal, which is a file that should be in the storage; `None` if it is missing.
    pub fn literal(&self, name: &str) -> Result<Option<Stored>> {
        let Storage { root, hasher, .. } = self.storage;
        let mut path = root.path(name);
        let mut seen = root.disk.see_anew(&path, &hasher.stop)?;
        if let Some(ValueMetadata::Other) = seen
            && let Some(maker) = self.linked(name)?
        {
            path = root.path(&maker);
            seen = root.disk.see_anew(&path, &hasher.stop)?;
        }
        let seen = match seen {
            None | Some(ValueMetadata::Other) => return Ok(None),
            Some(seen) => seen,
        };
        hasher.expect(match &seen {
            ValueMetadata::File(metadata) => metadata.len(),
            ValueMetadata::Directory(scan, _) => scan.bytes(),
            ValueMetadata::Other => 0,
        });
        let Published { digest, stamp } = hasher.stored_value(&root.disk, &path, &seen)?;
        Ok(Some(Stored { name: name.to_owned(), digest, stamp }))
    }

    /// Returns the name of the directory that the output with this name is a link to. Announces it: a
    /// collection keeps it, or has removed the record of the link before.
    fn linked(&self, name: &str) -> Result<Option<String>> {
        let Storage { root, .. } = self.storage;
        let maker = root.maker(name)?;
        let Some(entry) = Entry::of_file(name).filter(|_| maker != name) else { return Ok(None) };
        self.storage.gc_roots().announce([maker.clone()])?;
        Ok(root.disk.exists_anew(&root.path(&entry.record()))?.then_some(maker))
    }

    /// Returns the path, the device and the inode of a value that was found before, if it still has the
    /// same contents: its stamp decides, as when it was found.
    ///
    /// # Errors
    ///
    /// Fails if the value was changed or replaced meanwhile, or the storage cannot be read.
    pub fn verify_unchanged(&self, value: &Stored) -> Result<(PathBuf, FileId)> {
        let Storage { root, hasher, .. } = self.storage;
        let Stored { ref name, digest, stamp } = *value;
        let path = root.value(name, &digest)?;
        let changed = || StorageError::Changed(root.path(name));
        let seen = match root.disk.surely(|| root.disk.see(&path, &hasher.stop)) {
            Ok(seen) => seen.ok_or_else(changed)?,
            Err(StorageError::Directory { .. }) => return Err(changed()),
            Err(error) => return Err(error),
        };
        if !hasher.unchanged(&root.disk, &path, &seen, &Published { digest, stamp })? {
            return Err(changed());
        }
        match seen {
            ValueMetadata::File(metadata) => Ok((path, metadata.id())),
            ValueMetadata::Directory(_, metadata) => Ok((path, metadata.id())),
            ValueMetadata::Other => Err(changed()),
        }
    }

    /// Whether a value that was found before is gone, has changed, or cannot be read. An execution that has read it
    /// meanwhile may have failed because of that.
    pub fn is_lost(&self, value: &Stored) -> bool {
        let Storage { root, hasher, .. } = self.storage;
        let Stored { ref name, digest, stamp } = *value;
        root.disk.forget_listed(&root.path(name));
        let published = Published { digest, stamp };
        match hasher.is_published(root, name, &published) {
            // The file could not be opened, whatever its kind.
            Err(StorageError::Io { source, .. }) if exhausted_limit(&source).is_some() => false,
            found => !found.unwrap_or(false),
        }
    }

    /// Looks at some sources and literals. Facts about small files among them, and about the small files of the sources
    /// in the storage, are cached for all of them together. Gives the digest of each small source whose contents are
    /// known without reading it, and announces all of these at once.
    ///
    /// # Errors
    ///
    /// Fails if the storage does not answer, or with the error of `look`.
    pub fn look_together<'n, T>(
        &self,
        sources: &[&InputSource],
        literals: impl Iterator<Item = &'n str>,
        look: impl FnOnce(&[Option<Digest>]) -> Result<T>,
    ) -> Result<T> {
        let hasher = &self.storage.hasher;
        let mut known: Vec<Option<Digest>> =
            sources.iter().map(|source| source.small_contents()).collect();
        let files = sources.iter().zip(&known).filter_map(|(source, known)| match source {
            InputSource::File(path) => Some(path.clone()),
            InputSource::Bytes(_) => {
                known.map(|it| self.storage.path(&task_input(&it, Digits::Short)))
            }
        });
        let literals = literals.map(|name| self.storage.path(name));
        let files = files.chain(literals).collect::<Vec<_>>();
        hasher.look_together(&files, || {
            for (source, known) in sources.iter().zip(&mut known) {
                if let InputSource::File(path) = source {
                    *known = hasher.small_digest_of(path);
                }
            }
            let digests = known.iter().flatten();
            let names = digests.clone().flat_map(|it| DIGITS.map(|digits| task_input(it, digits)));
            self.storage.gc_roots().announce(names)?;
            lock(&self.storage.run.announced_inputs).extend(digests);
            look(&known)
        })
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
        // The number of bytes that come from a pipe is not known, so the total is not known, either.
        if !has_pipe {
            self.storage.hasher.expect(bytes);
        }
        only_files && large > 1
    }

    /// The number of processed bytes of the announced inputs, and the number of all their bytes, as
    /// far as it is known.
    pub fn taken_in(&self) -> (u64, u64) {
        self.storage.hasher.progress()
    }
}

impl Inputs<'_> {
    /// Returns the manifest of a user's directory.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be read or be a value, or if reading is interrupted.
    pub fn manifest(&self, source: &InputSource) -> Result<Manifest> {
        let InputSource::File(path) = source else { return Ok(Manifest::default()) };
        let hasher = &self.storage.hasher;
        hasher.read_directory(path, &hasher.scan(path)?)
    }

    /// Copies a user's directory into the storage, unless it is there already.
    ///
    /// It is read once and copied meanwhile. But if the storage may have it, it is only read first; and if the storage
    /// has an earlier version of it, unchanged files become links to the files of that version.
    pub(super) fn store_directory(&self, path: &Path) -> Result<Input> {
        let Storage { root, hasher, .. } = self.storage;
        let scan = hasher.scan(path)?;
        if let Some(digest) = hasher.cached_directory(&scan) {
            let input = self.known(digest)?;
            if input.there {
                hasher.done().fetch_add(scan.bytes(), Ordering::Relaxed);
                return self.note_version(path, &scan, input);
            }
        }
        let earlier = self.earlier_version(path)?;
        let read = if earlier.is_some() || self.may_have(&scan)? {
            Some(hasher.read_directory(path, &scan)?)
        } else {
            None
        };
        if let Some(manifest) = &read {
            let input = self.known(manifest.digest())?;
            if input.there {
                return self.note_version(path, &scan, input);
            }
        }
        let input = self.publish(|copy| {
            let (stop, done) = (&*hasher.stop, hasher.done());
            let manifest = match (&read, &earlier) {
                (Some(manifest), Some((path, earlier))) => {
                    let earlier = EarlierDirectory { path, manifest: earlier };
                    root.disk.copy_sharing(&scan, manifest, earlier, copy, stop, done)
                }
                _ => root.disk.copy_directory(&scan, copy, stop, done),
            };
            let manifest = manifest.map_err(|error| blame(error, path, copy))?;
            let digest = manifest.digest();
            hasher.cache_directory(&scan, digest);
            root.keep_manifest(&digest, &manifest)?;
            Ok(digest)
        })?;
        self.note_version(path, &scan, input)
    }

    /// Remembers which directory of the storage a user's directory is, for its next version.
    fn note_version(&self, path: &Path, scan: &Scan, input: Input) -> Result<Input> {
        let digest = input.file.digest;
        if let Some(cache) = self.storage.hasher.cache_for(scan)
            && self.cached_version(path) != Some(digest)
        {
            digests::insert_version(cache, [self.storage.root.disk.root(), &place(path)], &digest);
        }
        Ok(input)
    }

    /// The digest that a user's directory had when it was last stored, if that is cached.
    fn cached_version(&self, path: &Path) -> Option<Digest> {
        let Storage { root, hasher, .. } = self.storage;
        digests::look_up_version(hasher.cache.as_ref()?, [root.disk.root(), &place(path)])
    }

    /// Returns an earlier version of a user's directory that the storage has, and its manifest.
    fn earlier_version(&self, path: &Path) -> Result<Option<(PathBuf, Manifest)>> {
        let root = &self.storage.root;
        let Some(digest) = self.cached_version(path) else { return Ok(None) };
        let input = self.known(digest)?;
        let manifest = root.manifest(&digest)?.filter(|_| input.there);
        Ok(manifest.map(|manifest| (root.path(&input.file.name), manifest)))
    }

    /// Whether the storage has a task input that could be this directory, judged by sizes.
    fn may_have(&self, scan: &Scan) -> Result<bool> {
        let root = &self.storage.root;
        let (size, bytes) = (scan.manifest_size(), Some(scan.bytes()));
        for room in root.own_names(TASK_INPUTS)?.iter().filter(|room| room.len() == 2) {
            for name in root.values(&format!("{TASK_INPUTS}/{room}"), is_value)? {
                let Some(entry) = Entry::of_file(&name) else { continue };
                if root.disk.metadata(&root.path(&name))?.is_some_and(|it| it.is_dir())
                    && let Some(Record::TaskInput(record)) =
                        self.storage.records().read_entry(&entry)?.ok()
                    && record.file.digest.size == size
                    && record.file.digest.bytes == bytes
                {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Moves a copied directory to its place, unless another run was faster. A damaged one goes to
    /// quarantine.
    pub(super) fn place_directory(
        &self,
        copy: &Path,
        name: &str,
        digest: &Digest,
        digits: Digits,
    ) -> Result<Stamp> {
        let Storage { root, hasher, .. } = self.storage;
        let place = root.place(name)?;
        let scan = root.disk.surely(|| root.disk.scan(copy, &hasher.stop))?;
        let scan = scan.ok_or_else(|| StorageError::Moved(copy.to_owned()))?;
        root.sync_all()?;
        if !root.disk.rename_new(copy, &place)? {
            if let InputState::Same(stamp) = self.input_state(digest, digits)? {
                root.disk.remove_tree(copy)?;
                return Ok(stamp);
            }
            self.set_aside(name)?;
            root.disk.rename(copy, &place)?;
        }
        root.disk.seal_top(&place)?;
        Ok(Stamp::Scanned(scan.stamp()))
    }
}

/// The path by which a user's directory is known again.
fn place(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Lets an error name the directory that the user has, and not its copy.
fn blame(error: StorageError, path: &Path, copy: &Path) -> StorageError {
    match error {
        StorageError::Directory { path: of, source } if of == copy => {
            StorageError::Directory { path: path.to_owned(), source }
        }
        StorageError::Io { doing: "read", path: of, source } => {
            let inner = of.strip_prefix(copy).map(|inner| path.join(inner));
            StorageError::Io { doing: "read", path: inner.unwrap_or(of), source }
        }
        error => error,
    }
}

impl Inputs<'_> {
    /// Returns the directory that a Git tree is, or that it would be. `None` if that is not known without
    /// reading the tree.
    pub fn known_tree(&self, tree: &ObjectId) -> Result<Option<Input>> {
        let cache = self.storage.hasher.cache.as_ref();
        let digest = cache.and_then(|cache| digests::look_up_tree(cache, tree));
        digest.map(|digest| self.known(digest)).transpose()
    }

    /// Returns the directory of a Git tree with this manifest, existing or not.
    pub fn find_tree(&self, tree: &ObjectId, manifest: &Manifest) -> Result<Input> {
        let digest = manifest.digest();
        if let Some(cache) = &self.storage.hasher.cache {
            digests::insert_tree(cache, tree, digest);
        }
        self.known(digest)
    }

    /// Stores the directory that a Git tree is. A function writes its files, and returns their manifest.
    ///
    /// # Errors
    ///
    /// Fails if the function does, or the storage cannot be written. Then no part of it remains.
    pub fn store_tree<E: From<StorageError>>(
        &self,
        tree: &ObjectId,
        fill: impl FnOnce(&NewTree<'_>) -> Result<Manifest, E>,
    ) -> Result<Input, E> {
        let root = &self.storage.root;
        self.publish(|copy: &Path| {
            root.disk.make_dir(copy)?;
            let manifest = fill(&NewTree::private(root, copy))?;
            root.disk.seal_directory(copy, None)?;
            let digest = manifest.digest();
            root.keep_manifest(&digest, &manifest)?;
            if let Some(cache) = &self.storage.hasher.cache {
                digests::insert_tree(cache, tree, digest);
            }
            Ok(digest)
        })
    }

    /// Whether the user asked to stop.
    pub fn stop(&self) -> &AtomicBool {
        &self.storage.hasher.stop
    }

    /// Fails if the user asked to stop.
    pub fn go_on(&self) -> Result<()> {
        if self.storage.hasher.stop.load(Ordering::Relaxed) {
            Err(StorageError::Interrupted)
        } else {
            Ok(())
        }
    }
}

impl Inputs<'_> {
    /// The greatest size of a short text, in bytes.
    pub const SHORT_TEXT: u64 = 256;

    /// Returns the text of a task input that is one short line, without its newline. `None` if the contents are
    /// something else, or are not a task input here.
    pub fn short_text(&self, digest: &Digest) -> Option<String> {
        if digest.is_directory() || digest.size > Self::SHORT_TEXT {
            return None;
        }
        let root = &self.storage.root;
        // The longer name is taken only where another file has the shorter one.
        let mut contents =
            DIGITS.into_iter().map_while(|digits| read_short(root, &task_input(digest, digits)));
        line_of(contents.find(|it| Digest::hash_bytes(it) == *digest)?)
    }

    /// Whether these contents are not a task input here: no file has the shortest name that they can have.
    pub fn lacks(&self, digest: &Digest) -> bool {
        let root = &self.storage.root;
        matches!(root.disk.exists(&root.path(&task_input(digest, DIGITS[0]))), Ok(false))
    }

    /// Whether a text can be printed as a part of a line. Control characters could command a terminal.
    pub fn is_line(text: &str) -> bool {
        !text.contains(char::is_control)
    }
}
