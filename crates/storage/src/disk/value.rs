//! Directories as values: each is walked through, hashed, copied, sealed and moved as a whole.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64};

use rustix::fs::readlinkat;
use rustix::io::Errno;

use super::directories::open_stat;
use super::files::{allow, set_mode};
use super::network::OnNotFound;
use super::{Disk, ForeignEntry, IoContext, Metadata, Result, StorageError};
use ce_files::manifest::{self, DirectoryArchive, DirectoryError, Manifest, Scan};

/// A file or directory that was looked at, and not read.
#[derive(Debug)]
pub(crate) enum ValueMetadata {
    /// A plain file.
    File(Metadata),
    /// A directory, with everything in it.
    Directory(Scan, Metadata),
    /// Something else, which is no value.
    Other,
}

impl StorageError {
    /// The error of an operation on a directory at this path.
    pub fn of_directory(path: &Path, error: DirectoryError) -> Self {
        let inner = |inner: &[u8]| match inner {
            [] => path.to_owned(),
            inner => path.join(OsStr::from_bytes(inner)),
        };
        match error {
            DirectoryError::Io { path, source } => {
                Self::Io { doing: "read", path: inner(&path), source }
            }
            DirectoryError::Write { path, source } => {
                Self::Io { doing: "write", path: inner(&path), source }
            }
            DirectoryError::Interrupted => Self::Interrupted,
            source => Self::Directory { path: path.to_owned(), source: Box::new(source) },
        }
    }
}

/// The error of making everything in a directory at this path read-only.
fn unsealed(path: &Path, error: DirectoryError) -> StorageError {
    match StorageError::of_directory(path, error) {
        StorageError::Io { path, source, .. } => {
            StorageError::Io { doing: "make read-only", path, source }
        }
        error => error,
    }
}

impl Disk {
    /// Looks at a published file, or at a directory with everything in it. Returns `None` if nothing has that name.
    pub(crate) fn see(&self, path: &Path, stop: &AtomicBool) -> Result<Option<ValueMetadata>> {
        match self.metadata(path)? {
            None => Ok(None),
            Some(metadata) if metadata.is_file() => Ok(Some(ValueMetadata::File(metadata))),
            Some(metadata) if metadata.is_dir() => {
                let scan = self.scan(path, stop)?.map(Scan::linked);
                Ok(scan.map(|scan| ValueMetadata::Directory(scan, metadata)))
            }
            Some(_) => Ok(Some(ValueMetadata::Other)),
        }
    }

    /// Walks through a directory; returns `None` if there is no directory of that name.
    pub(crate) fn scan(&self, path: &Path, stop: &AtomicBool) -> Result<Option<Scan>> {
        self.retry(OnNotFound::Accept, |_| {
            let Some((top, _)) = self.open_directory(path)? else { return Ok(None) };
            Scan::of(top, stop).map(Some).map_err(|error| StorageError::of_directory(path, error))
        })
    }

    /// Makes a directory that a computation made read-only, but not its top, so that it can be moved.
    pub(crate) fn seal_directory(&self, path: &Path) -> Result<()> {
        self.retry(OnNotFound::Retry, |_| {
            self.attempt("make read-only", path, || {
                self.at(path, |dir, name| allow(dir, name, 0o700))
            })?;
            let Some((top, _)) = self.open_directory(path)? else {
                return Err(io::Error::from(Errno::NOENT)).context("make read-only", path);
            };
            manifest::seal(&top, self.shared.unwrap_or(0), false)
                .map_err(|error| unsealed(path, error))
        })
    }

    /// Copies a directory into a new one. Returns the manifest of the copy, of which all but the top is
    /// read-only.
    pub(crate) fn copy_directory(
        &self,
        scan: &Scan,
        to: &Path,
        stop: &AtomicBool,
        done: &AtomicU64,
    ) -> Result<Manifest> {
        let manifest = self.filling(to, || {
            let (top, _) = self.attempt("write", to, || self.at(to, open_stat))?;
            scan.copy(&top, stop, done).map_err(|error| StorageError::of_directory(to, error))
        })?;
        self.seal_directory(to)?;
        Ok(manifest)
    }

    /// Does the same for a directory with this manifest. Files that are equal to those of an earlier directory
    /// of the storage become links to them.
    pub(crate) fn copy_sharing(
        &self,
        (scan, manifest): (&Scan, &Manifest),
        (path, earlier): (&Path, &Manifest),
        to: &Path,
        (stop, done): (&AtomicBool, &AtomicU64),
    ) -> Result<Manifest> {
        self.filling(to, || {
            let (top, directory) = self.attempt("write", to, || {
                Ok((self.at(to, open_stat)?.0, self.at(path, open_stat)?.0))
            })?;
            let copied = scan
                .copy_sharing(&top, manifest, (&directory, earlier), (stop, done))
                .map_err(|error| StorageError::of_directory(to, error))?;
            manifest::seal(&top, self.shared.unwrap_or(0), true)
                .map_err(|error| unsealed(to, error))?;
            Ok(copied)
        })
    }

    /// Unpacks an archive into a new directory, whose files are read-only. Returns false if the file system cannot hold it.
    pub(crate) fn unpack(&self, archive: &DirectoryArchive<'_>, to: &Path) -> Result<bool> {
        self.filling(to, || {
            let top = self.attempt("write", to, || Ok(self.at(to, open_stat)?.0))?;
            match archive.unpack(&top) {
                Ok(()) => Ok(true),
                Err(error) if error.is_of_names() => Ok(false),
                Err(error) => Err(StorageError::of_directory(to, error.writing())),
            }
        })
    }

    /// Makes a directory of this run's own, and fills it. What was begun is begun anew.
    fn filling<T>(&self, to: &Path, mut fill: impl FnMut() -> Result<T>) -> Result<T> {
        self.retry(OnNotFound::Accept, |again| {
            if again {
                self.remove_tree(to)?;
            }
            self.make_dir(to)?;
            fill()
        })
    }

    /// Makes a directory of this run's own read-only, but not its top. Files of it may be those of other
    /// results, which are read-only already.
    pub(crate) fn seal_trusted(&self, path: &Path) -> Result<()> {
        self.retry(OnNotFound::Accept, |_| {
            let top = self.attempt("make read-only", path, || Ok(self.at(path, open_stat)?.0))?;
            manifest::seal(&top, self.shared.unwrap_or(0), true)
                .map_err(|error| unsealed(path, error))
        })
    }

    /// Whether a directory itself is read-only.
    pub(crate) fn is_sealed(&self, metadata: &Metadata) -> bool {
        let mode = metadata.mode();
        manifest::sealed_directory(mode, self.shared.unwrap_or(0)) == mode
    }

    /// Makes a directory itself read-only, once it is in its place.
    pub(crate) fn seal_top(&self, path: &Path) -> Result<()> {
        let set = self.look("make read-only", path, || {
            match self.at(path, |dir, name| {
                set_mode(dir, name, |mode| {
                    manifest::sealed_directory(mode, self.shared.unwrap_or(0))
                })
            }) {
                // It is a link to a directory that was made elsewhere.
                Err(error) if ForeignEntry::of(&error) == Some(ForeignEntry::Link) => Ok(()),
                set => set,
            }
        });
        // Another run may have moved it.
        set.map(drop)
    }

    /// Returns the target of a symbolic link; `None` if none has that name.
    pub(crate) fn link_target(&self, path: &Path) -> Result<Option<PathBuf>> {
        match self.look("read the link", path, || self.target_now(path)) {
            // It is something else.
            Err(StorageError::Io { source, .. })
                if source.kind() == io::ErrorKind::InvalidInput =>
            {
                Ok(None)
            }
            target => target,
        }
    }

    /// The target of a symbolic link.
    pub(super) fn target_now(&self, path: &Path) -> io::Result<PathBuf> {
        let target = self.at(path, |dir, name| Ok(readlinkat(dir, name, Vec::new())?))?;
        Ok(OsStr::from_bytes(target.as_bytes()).into())
    }
}
