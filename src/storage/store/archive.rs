//! Directories of results repositories, each of which is one file there: its archive.

use std::path::Path;

use super::Storage;
use crate::digest::Digest;
use crate::manifest::DirectoryArchive;
use crate::storage::disk::{Result, StorageError};
use crate::storage::records::{ExpectedFile, Published, Stamp};

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
            Ok(None) => return Ok(None),
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
                let scan = root.disk.scan(path, &self.ingest.stop)?;
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
