//! The directory of a table: the outputs that it was made from, under the names of their points.
//!
//! Its files share their storage with the originals. It depends on the contents of the outputs only: an output
//! that is a file is not executable in it.

use std::path::Path;
use std::sync::atomic::AtomicU64;

use super::{Storage, Stored, Tables};
use crate::disk::{Result, StorageError};
use crate::records::{Published, Stamp};
use ce_files::manifest::{EntryKind, Manifest, ManifestEntry};
use ce_model::digest::Digest;

/// The file with the points.
const POINTS: &str = "points.ndjson";

/// The rights to write and to execute a file.
const CHANGING: u32 = 0o333;

/// The contents of the directory of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableDirectory {
    /// The contents of its file `points.ndjson`.
    pub points: Vec<u8>,
    /// The outputs, each with its path in the directory. All paths are different, and none leads through
    /// another one.
    pub members: Vec<(String, Stored)>,
}

impl Tables<'_> {
    /// Returns the digest that the directory of a table would have. Reads none of the files.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read, a directory in it is gone, or two members have one path.
    pub fn directory_digest(&self, directory: &TableDirectory) -> Result<Digest> {
        Ok(self.gathered(directory)?.digest())
    }

    /// Returns the manifest that the directory of a table would have.
    fn gathered(&self, directory: &TableDirectory) -> Result<Manifest> {
        let file = |path: &str, contents| ManifestEntry {
            path: path.as_bytes().into(),
            kind: EntryKind::File { contents, executable: false },
        };
        let mut entries = vec![file(POINTS, Digest::of(&directory.points))];
        for (path, value) in &directory.members {
            if !value.digest.is_directory() {
                entries.push(file(path, value.digest));
                continue;
            }
            let inner = self.manifest(value)?;
            if inner.entries().is_empty() {
                entries
                    .push(ManifestEntry { path: path.as_bytes().into(), kind: EntryKind::Empty });
            }
            entries.extend(inner.entries().iter().map(|entry| ManifestEntry {
                path: [path.as_bytes(), b"/", &entry.path].concat().into(),
                kind: entry.kind.clone(),
            }));
        }
        Manifest::new(entries).map_err(|source| StorageError::Gathered(Box::new(source)))
    }

    fn manifest(&self, value: &Stored) -> Result<Manifest> {
        let manifest = self.storage.manifest(&value.name, &value.digest)?;
        manifest.ok_or_else(|| self.changed(value))
    }

    fn changed(&self, value: &Stored) -> StorageError {
        StorageError::Changed(self.storage.path(&value.name))
    }

    /// Makes the directory of a table at a private path, all but its top read-only.
    pub(super) fn gather(&self, directory: &TableDirectory, to: &Path) -> Result<Published> {
        let Storage { root, ingest, .. } = self.storage;
        let manifest = self.gathered(directory)?;
        root.disk.make_dir(to)?;
        let points = to.join(POINTS);
        root.disk.write(&points, &directory.points)?;
        root.disk.seal(&points)?;
        for (path, value) in &directory.members {
            self.storage.inputs().go_on()?;
            let to = to.join(path);
            root.disk.make_dirs(to.parent().unwrap_or(&to))?;
            match value.digest.is_directory() {
                true => self.share_directory(value, &to)?,
                false => self.share_file(value, &to)?,
            }
        }
        root.disk.seal_trusted(to)?;
        let scan = root.disk.surely(|| root.disk.scan(to, &ingest.stop))?;
        let scan = scan.ok_or_else(|| StorageError::Moved(to.to_owned()))?;
        let digest = manifest.digest();
        root.keep_manifest(&digest, &manifest)?;
        Ok(Published { digest, stamp: Stamp::Scanned(scan.stamp()) })
    }

    /// Gives a file of the storage another name. It is copied where that is not possible, or if it could be
    /// changed or executed through that name.
    fn share_file(&self, value: &Stored, to: &Path) -> Result<()> {
        let disk = &self.storage.root.disk;
        let (from, id) = self.storage.inputs().verify_unchanged(value)?;
        let metadata = disk.metadata(&from)?.ok_or_else(|| self.changed(value))?;
        let same = if metadata.mode() & CHANGING == 0 && disk.link(&from, to).unwrap_or(false) {
            disk.id(to)? == Some(id)
        } else {
            let copy =
                disk.reading(&from)?.until(&self.storage.ingest.stop).copy_as(disk, to, 0)?;
            disk.seal(to)?;
            copy == value.digest
        };
        if same { Ok(()) } else { Err(self.changed(value)) }
    }

    /// Copies a directory of the storage. Its files become links to those of the original where that is possible.
    fn share_directory(&self, value: &Stored, to: &Path) -> Result<()> {
        let Storage { root, ingest, .. } = self.storage;
        let (from, _) = self.storage.inputs().verify_unchanged(value)?;
        let scan = root.disk.surely(|| root.disk.scan(&from, &ingest.stop))?;
        let scan = scan.ok_or_else(|| self.changed(value))?.linked();
        let manifest = self.manifest(value)?;
        let (copied, progress) = ((&scan, &manifest), (&*ingest.stop, &AtomicU64::new(0)));
        let copy = root.disk.copy_sharing(copied, (&from, &manifest), to, progress)?;
        if copy.digest() == value.digest { Ok(()) } else { Err(self.changed(value)) }
    }
}
