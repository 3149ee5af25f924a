//! Directories as task inputs: copied into the storage as a whole, and read once.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use super::input::InputState;
use super::{Input, InputSource, Inputs, Storage};
use crate::disk::{Result, StorageError};
use crate::layout::{Digits, Entry, TASK_INPUTS, is_value};
use crate::records::{Record, Stamp};
use ce_files::cache::digests;
use ce_files::manifest::{Manifest, Scan};
use ce_model::digest::Digest;

impl Inputs<'_> {
    /// Returns the manifest of a user's directory.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be read or be a value, or if reading is interrupted.
    pub fn manifest(&self, source: &InputSource) -> Result<Manifest> {
        let InputSource::File(path) = source else { return Ok(Manifest::default()) };
        let ingest = &self.storage.ingest;
        ingest.read_directory(path, &ingest.scan(path)?)
    }

    /// Copies a user's directory into the storage, unless it is there already.
    ///
    /// It is read once and copied meanwhile. But if the storage may have it, it is only read first; and if the
    /// storage has an earlier version of it, files that have not changed become links to those of that.
    pub(super) fn store_directory(&self, path: &Path) -> Result<Input> {
        let Storage { root, ingest, .. } = self.storage;
        let scan = ingest.scan(path)?;
        if let Some(digest) = ingest.cached_directory(&scan) {
            let input = self.known(digest)?;
            if input.there {
                ingest.done().fetch_add(scan.bytes(), Ordering::Relaxed);
                return self.note_version(path, &scan, input);
            }
        }
        let earlier = self.earlier_version(path)?;
        let read = match earlier.is_some() || self.may_have(&scan)? {
            true => Some(ingest.read_directory(path, &scan)?),
            false => None,
        };
        if let Some(manifest) = &read {
            let input = self.known(manifest.digest())?;
            if input.there {
                return self.note_version(path, &scan, input);
            }
        }
        let input = self.publish(|copy| {
            let progress = (&*ingest.stop, ingest.done());
            let manifest = match (&read, &earlier) {
                (Some(manifest), Some((place, earlier))) => {
                    let (new, old) = ((&scan, manifest), (place.as_path(), earlier));
                    root.disk.copy_sharing(new, old, copy, progress)
                }
                _ => root.disk.copy_directory(&scan, copy, progress.0, progress.1),
            };
            let manifest = manifest.map_err(|error| blame(error, path, copy))?;
            let digest = manifest.digest();
            ingest.cache_directory(&scan, digest);
            root.keep_manifest(&digest, &manifest)?;
            Ok(digest)
        })?;
        self.note_version(path, &scan, input)
    }

    /// Remembers which directory of the storage a user's directory is, for its next version.
    fn note_version(&self, path: &Path, scan: &Scan, input: Input) -> Result<Input> {
        let digest = input.file.digest;
        if let Some(cache) = self.storage.ingest.cache_for(scan)
            && self.cached_version(path) != Some(digest)
        {
            digests::insert_version(cache, [self.storage.root.disk.root(), &place(path)], &digest);
        }
        Ok(input)
    }

    /// The digest that a user's directory had when it was last stored, if that is cached.
    fn cached_version(&self, path: &Path) -> Option<Digest> {
        let Storage { root, ingest, .. } = self.storage;
        digests::look_up_version(ingest.cache.as_ref()?, [root.disk.root(), &place(path)])
    }

    /// Returns an earlier version of a user's directory that the storage has, and its manifest.
    fn earlier_version(&self, path: &Path) -> Result<Option<(PathBuf, Manifest)>> {
        let root = &self.storage.root;
        let Some(digest) = self.cached_version(path) else { return Ok(None) };
        let input = self.known(digest)?;
        let manifest = root.manifest(&digest)?.filter(|_| input.there);
        Ok(manifest.map(|manifest| (root.path(&input.file.name), manifest)))
    }

    /// Whether there is a task input that could be a directory, as far as sizes tell.
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
        (digest, digits): (&Digest, Digits),
    ) -> Result<Stamp> {
        let Storage { root, ingest, .. } = self.storage;
        let place = root.place(name)?;
        let scan = root.disk.surely(|| root.disk.scan(copy, &ingest.stop))?;
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
