//! Copies of directories: made while their files are hashed, so that each is read once.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use rustix::fs::{Mode, OFlags, ioctl_ficlone, mkdirat, openat, symlinkat};

use super::descent::Descent;
use super::entry::{EntryKind, ManifestEntry};
use super::error::DirectoryError;
use super::format::Manifest;
use super::path::split;
use super::scan::Scan;
use crate::cache::FileStat;
use ce_model::digest::Digest;

/// A copied directory of which some files are equal to those of another one.
pub(super) struct EqualFiles<'a> {
    /// The manifest of the copied directory.
    manifest: &'a Manifest,
    /// That of the other one.
    earlier: &'a Manifest,
    /// The way through the other one.
    descent: Descent,
}

/// A copy of a file that is being written.
pub(super) struct FileCopy {
    pub(super) file: File,
    /// It ends in zeros that were not written.
    is_short: bool,
}

impl Scan {
    /// Copies everything into an empty directory, and returns the manifest of the copy, like
    /// [`Scan::read`]. Files of the copy are read-only. They share their blocks with the originals where
    /// the file system can do that, and zeros take no space.
    ///
    /// # Errors
    ///
    /// Fails like [`Scan::read`], and if the copy cannot be written.
    pub fn copy(
        &self,
        to: &OwnedFd,
        stop: &AtomicBool,
        done: &AtomicU64,
    ) -> Result<Manifest, DirectoryError> {
        let mut to = Descent::new(to).map_err(DirectoryError::writing)?;
        self.process(self.watch(stop, done), Some(&mut to), None)
    }

    /// Does the same for a directory with this manifest. A file that is equal to one of an earlier directory,
    /// which never changes, becomes a hard link to that.
    ///
    /// # Errors
    ///
    /// Fails like [`Scan::copy`].
    pub fn copy_sharing(
        &self,
        to: &OwnedFd,
        manifest: &Manifest,
        (directory, earlier): (&OwnedFd, &Manifest),
        (stop, done): (&AtomicBool, &AtomicU64),
    ) -> Result<Manifest, DirectoryError> {
        let mut to = Descent::new(to).map_err(DirectoryError::writing)?;
        let mut sharing = EqualFiles { manifest, earlier, descent: Descent::new(directory)? };
        self.process(self.watch(stop, done), Some(&mut to), Some(&mut sharing))
    }
}

impl EqualFiles<'_> {
    /// Returns the directory of the file that an entry is equal to, and its digest.
    pub(super) fn equal(
        &mut self,
        entry: &ManifestEntry<FileStat>,
    ) -> Result<Option<(Arc<OwnedFd>, Digest)>, DirectoryError> {
        let kind = self.manifest.entry(&entry.path);
        let Some(EntryKind::File { contents, .. }) = kind else { return Ok(None) };
        if self.earlier.entry(&entry.path) != kind {
            return Ok(None);
        }
        self.descent.go_to(split(&entry.path).0)?;
        Ok(Some((Arc::clone(self.descent.directory()), *contents)))
    }
}

/// Makes the directories above the copy of an entry, and the entry itself unless it is a file.
/// Returns the directory that it is in.
pub(super) fn make_way<C>(
    to: &mut Descent,
    entry: &ManifestEntry<C>,
) -> Result<Arc<OwnedFd>, DirectoryError> {
    let (directory, name) = split(&entry.path);
    to.make(directory)?;
    let made = match &entry.kind {
        EntryKind::File { .. } => Ok(()),
        EntryKind::Link { target } => symlinkat(&**target, to.directory(), name),
        EntryKind::Empty => mkdirat(to.directory(), name, Mode::from_raw_mode(0o777)),
    };
    made.map_err(|error| DirectoryError::of(&entry.path, error))?;
    Ok(Arc::clone(to.directory()))
}

impl FileCopy {
    /// Makes an empty file with the path of an original, below this directory.
    pub(super) fn new(
        to: impl AsFd,
        path: &[u8],
        executable: bool,
    ) -> Result<Self, DirectoryError> {
        let mode = if executable { 0o555 } else { 0o444 };
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        match openat(to, split(path).1, flags, Mode::from_raw_mode(mode)) {
            Ok(file) => Ok(Self { file: file.into(), is_short: false }),
            Err(error) => Err(DirectoryError::write(path, error.into())),
        }
    }

    /// Lets the copy share its blocks with the original, if the file system can do that.
    pub(super) fn clone_of(&self, original: &OwnedFd) -> bool {
        ioctl_ficlone(&self.file, original).is_ok()
    }

    /// Writes a piece at this place, unless it is all zeros: then it takes no space.
    pub(super) fn write(&mut self, piece: &[u8], at: u64) -> io::Result<()> {
        self.is_short = piece.iter().all(|byte| *byte == 0);
        if self.is_short { Ok(()) } else { self.file.write_all_at(piece, at) }
    }

    pub(super) fn finish(&self, size: u64) -> io::Result<()> {
        if self.is_short { self.file.set_len(size) } else { Ok(()) }
    }
}
