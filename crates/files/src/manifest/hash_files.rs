//! Hashes the files of a scanned directory, and copies them if asked to: each is read once, and all cores do it.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ce_model::digest::{Digest, Hasher, LARGE, PIECE, hash_in_two_threads};
use rayon::iter::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};
use rustix::fs::{
    AtFlags, Mode, OFlags, fstat, ioctl_ficlone, linkat, mkdirat, openat, symlinkat, unlinkat,
};
use rustix::io::{Errno, read};

use super::format::{EntryKind, Manifest, ManifestEntry};
use super::scan::{Descent, Scan, Watch};
use super::{DirectoryError, split_path};
use crate::cache::FileStat;
use crate::{open_leased, umask};

/// The largest numbers of directories and entries of a batch: each directory stays open until its files are read.
const DIRECTORIES: usize = 64;
const ENTRIES: usize = 4096;

/// Some entries that are hashed together.
#[derive(Default)]
struct Batch<'a> {
    entries: Vec<BatchEntry<'a>>,
    /// The number of directories that are open for it, or more.
    directories: usize,
    /// The last one.
    directory: Option<Arc<OwnedFd>>,
}

/// An entry of a batch.
struct BatchEntry<'a> {
    entry: &'a ManifestEntry<FileStat>,
    /// The directory of a file.
    directory: Option<Arc<OwnedFd>>,
    /// The directory of the file's copy, if it is copied.
    to: Option<Arc<OwnedFd>>,
    /// A file that the copy may be a hard link to.
    equal: Option<EqualFile>,
}

/// A file of another directory that is equal to an entry.
pub(super) struct EqualFile {
    /// The directory that it is in, under the name of the entry.
    directory: Arc<OwnedFd>,
    digest: Digest,
}

/// A file that is being read.
struct OpenFile<'a> {
    file: OwnedFd,
    copy: Option<FileCopy>,
    watch: Watch<'a>,
    read: u64,
}

impl Scan {
    /// Reads all files and returns the manifest. `done` grows by the bytes that are read, up to
    /// [`Scan::bytes`].
    ///
    /// The manifest describes the directory as it was scanned: a file whose stat has changed after it was read is an
    /// error. Files that were added since the scan are not seen.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be read or has changed since the scan, and once `stop` is set.
    pub fn read(&self, stop: &AtomicBool, done: &AtomicU64) -> Result<Manifest, DirectoryError> {
        self.process(self.watch(stop, done), None, None)
    }

    pub(super) const fn watch<'a>(&self, stop: &'a AtomicBool, done: &'a AtomicU64) -> Watch<'a> {
        Watch { stop, done, linked: self.linked }
    }

    pub(super) fn process(
        &self,
        watch: Watch<'_>,
        mut to: Option<&mut Descent>,
        mut sharing: Option<&mut EqualFiles<'_>>,
    ) -> Result<Manifest, DirectoryError> {
        let mut descent = Descent::new(&self.top)?;
        let mut batch = Batch::default();
        let mut hashed = Vec::with_capacity(self.entries.len());
        // All paths below a directory are neighbours, so each directory is entered once.
        for entry in &self.entries {
            if batch.is_full() {
                batch.hash(watch, &mut hashed)?;
            }
            let to = match &mut to {
                Some(to) => Some(make_way(to, entry).map_err(DirectoryError::writing)?),
                None => None,
            };
            let equal = match &mut sharing {
                Some(sharing) => sharing.equal(entry)?,
                None => None,
            };
            batch.add(entry, &mut descent, to, equal)?;
        }
        batch.hash(watch, &mut hashed)?;
        Ok(Manifest::of_sorted(hashed))
    }
}

impl<'a> Batch<'a> {
    fn is_full(&self) -> bool {
        self.entries.len() >= ENTRIES || self.directories >= DIRECTORIES
    }

    fn add(
        &mut self,
        entry: &'a ManifestEntry<FileStat>,
        descent: &mut Descent,
        to: Option<Arc<OwnedFd>>,
        equal: Option<EqualFile>,
    ) -> Result<(), DirectoryError> {
        let directory = match entry.kind {
            EntryKind::File { .. } => {
                descent.go_to(split_path(&entry.path).0)?;
                Some(Arc::clone(descent.directory()))
            }
            EntryKind::Link { .. } | EntryKind::Empty => None,
        };
        if let Some(directory) = &directory
            && !self.directory.as_ref().is_some_and(|last| Arc::ptr_eq(last, directory))
        {
            self.directories += 1 + usize::from(to.is_some());
            self.directory = Some(Arc::clone(directory));
        }
        self.entries.push(BatchEntry { entry, directory, to, equal });
        Ok(())
    }

    /// Hashes the files, and begins anew.
    fn hash(
        &mut self,
        watch: Watch<'_>,
        hashed: &mut Vec<ManifestEntry<Digest>>,
    ) -> Result<(), DirectoryError> {
        let large = self.entries.iter().filter(|it| is_large(it.entry)).count();
        // With several files, one thread could begin the next file while it waits for the other half of this one.
        let halve = large == 1;
        let batch = self.entries.par_iter().with_max_len(1).map(|it| {
            let kind = match (&it.entry.kind, &it.directory) {
                (EntryKind::File { contents, executable }, Some(directory)) => {
                    let executable = *executable;
                    let contents = match it.link(watch) {
                        Some(digest) => digest,
                        None => OpenFile::open(directory, it, executable, watch)?.digest(
                            &it.entry.path,
                            contents,
                            halve,
                        )?,
                    };
                    EntryKind::File { contents, executable }
                }
                (EntryKind::Link { target }, _) => EntryKind::Link { target: target.clone() },
                _ => EntryKind::Empty,
            };
            Ok(ManifestEntry { path: it.entry.path.clone(), kind })
        });
        // The first of several errors in the order of the paths is returned.
        let batch: Vec<Result<_, DirectoryError>> = batch.collect();
        for entry in batch {
            hashed.push(entry?);
        }
        *self = Self::default();
        Ok(())
    }
}

impl BatchEntry<'_> {
    /// Makes the copy a link to an equal file, if there is one and the file system can do that. Returns its
    /// digest. The file is read: a damaged one is not passed on.
    fn link(&self, watch: Watch<'_>) -> Option<Digest> {
        let (Some(to), Some(EqualFile { directory, digest })) = (&self.to, &self.equal) else {
            return None;
        };
        let name = split_path(&self.entry.path).1;
        linkat(directory, name, to, name, AtFlags::empty()).ok()?;
        if self.hash_link(to, name, watch) == Some(*digest) {
            return Some(*digest);
        }
        let _removed = unlinkat(to, name, AtFlags::empty());
        None
    }

    /// Hashes a link that was just made; `None` if it cannot be read, or changes meanwhile.
    fn hash_link(&self, to: &OwnedFd, name: &[u8], watch: Watch<'_>) -> Option<Digest> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let is_stopped = || watch.stop.load(Ordering::Relaxed);
        let file = open_leased(is_stopped, || openat(to, name, flags, Mode::empty())).ok()?;
        let stat = FileStat::from(&fstat(&file).ok()?);
        // Only the bytes of the original are counted. Others may link to the same file.
        let watch = Watch { done: &AtomicU64::new(0), linked: true, ..watch };
        OpenFile { file, copy: None, watch, read: 0 }.digest(name, &stat, false).ok()
    }
}

fn is_large(entry: &ManifestEntry<FileStat>) -> bool {
    matches!(&entry.kind, EntryKind::File { contents, .. } if contents.size >= LARGE)
}

impl<'a> OpenFile<'a> {
    /// Opens a file, and makes its copy if it is copied.
    fn open(
        directory: &OwnedFd,
        entry: &BatchEntry<'_>,
        executable: bool,
        watch: Watch<'a>,
    ) -> Result<Self, DirectoryError> {
        let path = &entry.entry.path;
        // If it is a FIFO now, opening it does not wait.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let name = split_path(path).1;
        let is_stopped = || watch.stop.load(Ordering::Relaxed);
        let file = open_leased(is_stopped, || openat(directory, name, flags, Mode::empty()));
        let file = file.map_err(|error| match error {
            Errno::WOULDBLOCK if is_stopped() => DirectoryError::Interrupted,
            error => DirectoryError::from_errno(path, error),
        })?;
        let copy = match &entry.to {
            Some(to) => Some(FileCopy::new(to, path, executable)?),
            None => None,
        };
        Ok(Self { file, copy, watch, read: 0 })
    }

    /// Hashes the file, which must have this stat before and after.
    fn digest(
        mut self,
        path: &[u8],
        stat: &FileStat,
        halve: bool,
    ) -> Result<Digest, DirectoryError> {
        let original = match self.copy.take_if(|copy| copy.clone_of(&self.file)) {
            // The clone is kept, so the clone is hashed.
            Some(clone) => Some(std::mem::replace(&mut self.file, clone.file.into())),
            None => None,
        };
        let by_two = if halve && stat.size >= LARGE {
            hash_in_two_threads(|piece| self.fill(piece, path))?
        } else {
            None
        };
        let digest = match by_two {
            Some(digest) => digest,
            None => self.hash(path, stat.size)?,
        };
        if let Some(copy) = &self.copy {
            copy.finish(digest.size).map_err(|source| DirectoryError::write(path, source))?;
        }
        // The stat was taken before the file was opened.
        let original = original.as_ref().unwrap_or(&self.file);
        let after = fstat(original).map_err(|error| DirectoryError::from_errno(path, error))?;
        let mut after = FileStat::from(&after);
        if self.watch.linked {
            after.changed_ns = stat.changed_ns;
        }
        if after != *stat || digest.size != stat.size {
            return Err(DirectoryError::Changed(path.into()));
        }
        Ok(digest)
    }

    /// Hashes a file that should have this size.
    fn hash(&mut self, path: &[u8], size: u64) -> Result<Digest, DirectoryError> {
        // One more byte shows the end without another look.
        let whole = usize::try_from(size).unwrap_or(PIECE).saturating_add(1);
        let mut piece = vec![0; whole.min(PIECE)];
        let mut hasher = Hasher::default();
        loop {
            let count = self.fill(&mut piece, path)?;
            hasher.update(&piece[..count]);
            if count == 0 || (count < piece.len() && self.read >= size) {
                return Ok(hasher.finish());
            }
        }
    }

    /// Reads the next piece; returns how much there was, or 0 at the end.
    fn fill(&mut self, piece: &mut [u8], path: &[u8]) -> Result<usize, DirectoryError> {
        loop {
            if self.watch.stop.load(Ordering::Relaxed) {
                return Err(DirectoryError::Interrupted);
            }
            match read(&self.file, &mut *piece) {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN | Errno::ISDIR) => {
                    return Err(DirectoryError::Changed(path.into()));
                }
                Err(error) => return Err(DirectoryError::from_errno(path, error)),
                Ok(count) => {
                    if let Some(copy) = &mut self.copy {
                        let written = copy.write(&piece[..count], self.read);
                        written.map_err(|source| DirectoryError::write(path, source))?;
                    }
                    self.watch.done.fetch_add(count as u64, Ordering::Relaxed);
                    self.read += count as u64;
                    return Ok(count);
                }
            }
        }
    }
}

/// A copied directory that shares equal files with another one.
pub(super) struct EqualFiles<'a> {
    /// The manifest of the copied directory.
    manifest: &'a Manifest,
    /// The manifest of the other one.
    earlier: &'a Manifest,
    /// The way through the other one.
    descent: Descent,
}

/// A copy of a file that is being written. Zeros take no space in it.
#[derive(Debug)]
pub struct FileCopy {
    /// The copy.
    pub file: File,
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
    pub fn copy_sharing(
        &self,
        to: &OwnedFd,
        manifest: &Manifest,
        directory: &OwnedFd,
        earlier: &Manifest,
        stop: &AtomicBool,
        done: &AtomicU64,
    ) -> Result<Manifest, DirectoryError> {
        let mut to = Descent::new(to).map_err(DirectoryError::writing)?;
        let mut sharing = EqualFiles { manifest, earlier, descent: Descent::new(directory)? };
        self.process(self.watch(stop, done), Some(&mut to), Some(&mut sharing))
    }
}

impl EqualFiles<'_> {
    /// Returns the file that an entry is equal to.
    pub(super) fn equal(
        &mut self,
        entry: &ManifestEntry<FileStat>,
    ) -> Result<Option<EqualFile>, DirectoryError> {
        let kind = self.manifest.entry(&entry.path);
        let Some(EntryKind::File { contents, .. }) = kind else { return Ok(None) };
        if self.earlier.entry(&entry.path) != kind {
            return Ok(None);
        }
        self.descent.go_to(split_path(&entry.path).0)?;
        let directory = Arc::clone(self.descent.directory());
        Ok(Some(EqualFile { directory, digest: *contents }))
    }
}

/// Makes the directories above the copy of an entry, and the entry itself unless it is a file.
/// Returns the directory that it is in.
pub(super) fn make_way<C>(
    to: &mut Descent,
    entry: &ManifestEntry<C>,
) -> Result<Arc<OwnedFd>, DirectoryError> {
    let (directory, name) = split_path(&entry.path);
    to.make(directory)?;
    let made = match &entry.kind {
        EntryKind::File { .. } => Ok(()),
        EntryKind::Link { target } => symlinkat(&**target, to.directory(), name),
        EntryKind::Empty => {
            mkdirat(to.directory(), name, Mode::from_raw_mode(umask::for_user(0o777)))
        }
    };
    made.map_err(|error| DirectoryError::from_errno(&entry.path, error))?;
    Ok(Arc::clone(to.directory()))
}

impl FileCopy {
    /// Begins a copy in an empty file.
    pub const fn begin(file: File) -> Self {
        Self { file, is_short: false }
    }

    /// Makes an empty file with the path of an original, below this directory.
    pub(super) fn new(
        to: impl AsFd,
        path: &[u8],
        executable: bool,
    ) -> Result<Self, DirectoryError> {
        let mode = umask::for_user(if executable { 0o555 } else { 0o444 });
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        match openat(to, split_path(path).1, flags, Mode::from_raw_mode(mode)) {
            Ok(file) => Ok(Self::begin(file.into())),
            Err(error) => Err(DirectoryError::write(path, error.into())),
        }
    }

    /// Lets the copy share its blocks with the original, if the file system can do that.
    pub(super) fn clone_of(&self, original: &OwnedFd) -> bool {
        ioctl_ficlone(&self.file, original).is_ok()
    }

    /// Writes a piece at this place, unless it is all zeros: then it takes no space.
    pub fn write(&mut self, piece: &[u8], at: u64) -> io::Result<()> {
        self.is_short = piece.iter().all(|byte| *byte == 0);
        if self.is_short { Ok(()) } else { self.file.write_all_at(piece, at) }
    }

    /// Gives the copy this size, once all is written.
    pub fn finish(&self, size: u64) -> io::Result<()> {
        if self.is_short { self.file.set_len(size) } else { Ok(()) }
    }
}
