//! Directories of results repositories, each of which is one file there: its archive.

use std::path::{Path, PathBuf};

use super::Storage;
use crate::disk::{Result, StorageError};
use crate::layout::ResultName;
use crate::records::{CallRecord, ExpectedFile, Origin, Published, Stamp};
use ce_files::manifest::DirectoryArchive;
use ce_model::digest::Digest;

/// A value as a results repository holds it, which was compared with its digest.
#[derive(Debug)]
pub(super) enum SharedValue<'a> {
    /// A file.
    File(&'a [u8]),
    /// A directory.
    Directory(DirectoryArchive<'a>),
}

impl<'a> SharedValue<'a> {
    /// Reads a value. `None` unless it has this digest.
    pub(super) fn of(contents: &'a [u8], digest: &Digest) -> Option<Self> {
        match digest.is_directory() {
            true => DirectoryArchive::parse(contents, digest).map(Self::Directory),
            false => (Digest::of(contents) == *digest).then_some(Self::File(contents)),
        }
    }
}

impl Storage {
    /// Reads a value as a results repository holds it: a file, or the archive of a directory, in memory. `None` if there is no
    /// such value, or it is not the recorded one.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be read.
    pub fn shared_contents(&self, file: &ExpectedFile) -> Result<Option<Vec<u8>>> {
        match file.digest.is_directory() {
            true => self.archive(&file.name, &file.digest),
            false => self.contents(file),
        }
    }

    fn archive(&self, name: &str, digest: &Digest) -> Result<Option<Vec<u8>>> {
        let (root, stop) = (&self.root, &self.ingest.stop);
        let path = root.value(name, digest)?;
        let scan = match root.disk.scan(&path, stop) {
            Ok(Some(scan)) => scan,
            // Something was put into it that no value has, or something else has its place.
            Err(StorageError::Directory { .. }) => return Ok(None),
            Err(error) if error.is_not_own() => return Ok(None),
            // A clone may have it all the same.
            Ok(None) => return root.archive(digest),
            Err(error) => return Err(error),
        };
        if Some(scan.bytes()) != digest.bytes {
            return Ok(None);
        }
        let archive = match scan.archive(stop) {
            Ok(archive) => archive,
            Err(error) => match StorageError::of_directory(&path, error) {
                // It changes.
                StorageError::Directory { .. } => return Ok(None),
                error => return Err(error),
            },
        };
        let is_recorded = DirectoryArchive::parse(&archive, digest).is_some();
        Ok(is_recorded.then_some(archive))
    }

    /// Unpacks an output of a call from elsewhere that is a directory and is not there, if the storage is a clone of a results
    /// repository and has its archive. It appears whole. An output that cannot be unpacked is found missing next.
    pub(super) fn unpack_output(&self, name: &ResultName, number: usize, record: &CallRecord) {
        let digest = &record.outputs[number].digest;
        let may_be = matches!(record.origin, Origin::Shared(_)) && digest.is_directory();
        if may_be && self.root.writable {
            drop(self.unpack_to(&name.output(number), digest));
        }
    }

    fn unpack_to(&self, file: &str, digest: &Digest) -> Result<()> {
        let root = &self.root;
        if root.disk.metadata(&root.path(file))?.is_some() {
            return Ok(());
        }
        let Some(private) = self.unpacked(digest)? else { return Ok(()) };
        let place = root.place(file)?;
        if root.disk.rename_new(&private, &place)? {
            root.disk.seal_top(&place)?;
            root.unsynced.note_entry(&place);
            return Ok(());
        }
        // Another run was faster.
        root.disk.remove_tree(&private)
    }

    /// Unpacks a directory that the storage has in its archive to a private path, read-only but for the top. `None` if there is
    /// no archive, or the file system cannot hold the directory.
    pub(super) fn unpacked(&self, digest: &Digest) -> Result<Option<PathBuf>> {
        let root = &self.root;
        let Some(contents) = root.archive(digest)? else { return Ok(None) };
        let Some(value) = SharedValue::of(&contents, digest) else { return Ok(None) };
        let private = root.private_path()?;
        let written = self.write_shared(&private, &value, digest);
        if matches!(written, Ok(Some(_))) {
            return Ok(Some(private));
        }
        root.disk.remove_tree(&private)?;
        written.map(|_| None)
    }

    /// Writes a literal to a private path, durably: users may remove what they keep for themselves. Returns false if the file
    /// system cannot hold it.
    pub(super) fn write_literal(
        &self,
        path: &Path,
        value: &SharedValue<'_>,
        digest: &Digest,
    ) -> Result<bool> {
        let root = &self.root;
        match value {
            SharedValue::File(contents) => {
                root.disk.write(path, contents)?;
                root.sync(path)?;
                Ok(true)
            }
            SharedValue::Directory(archive) => {
                if !root.disk.unpack(archive, path)? {
                    return Ok(false);
                }
                let scan = root.disk.surely(|| root.disk.scan(path, &self.ingest.stop))?;
                let scan = scan.ok_or_else(|| StorageError::Moved(path.to_owned()))?;
                root.sync_all()?;
                Ok(self.ingest.directory_digest(path, &scan)? == *digest)
            }
        }
    }

    /// Writes a value to a private path, read-only but for the top of a directory. `None` if the file system cannot hold it.
    pub(super) fn write_shared(
        &self,
        path: &Path,
        value: &SharedValue<'_>,
        digest: &Digest,
    ) -> Result<Option<Published>> {
        let disk = &self.root.disk;
        match value {
            SharedValue::File(contents) => {
                disk.write(path, contents)?;
                let stamp = Stamp::Modified(disk.seal(path)?);
                Ok(Some(Published { digest: *digest, stamp }))
            }
            SharedValue::Directory(archive) => {
                if !disk.unpack(archive, path)? {
                    return Ok(None);
                }
                let sealed = self.seal_at(path)?;
                // A file system may change names.
                Ok((sealed.digest == *digest).then_some(sealed))
            }
        }
    }
}
