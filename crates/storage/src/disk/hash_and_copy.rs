//! Reading a file to its end once: hashing it and, optionally, copying it.
//!
//! The SHA-1 of a large file is computed by a thread of its own. doc/performance.md has measurements.

use std::fs::File;
use std::io::ErrorKind::{Interrupted, WouldBlock};
use std::io::{self, Read, Seek};
use std::iter;
use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, ioctl_ficlone, open};
use rustix::io::Errno;

use super::known_texts::{KnownTexts, MAX_TEXT_FILE};
use super::network::OnNotFound;
use super::{Disk, IoContext, Metadata, Result, StorageError, attempt, fault, lock};
use ce_files::manifest::FileCopy;
use ce_files::open_leased;
use ce_model::digest::{Digest, Hasher, LARGE, PIECE, hash_in_two_threads};

/// The least size of a buffer, in bytes: the sizes of files in `/proc` are 0.
const SMALL_PIECE: usize = 4 << 10;

/// The time to wait for a pipe before checking for an interruption.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// Locked by the thread that reads several files at the same time: the number of cores is limited.
static TOGETHER: Mutex<()> = Mutex::new(());

/// The stop flag of a reading that is never interrupted.
static NEVER: AtomicBool = AtomicBool::new(false);

/// A file that is being read.
#[derive(Debug)]
pub(crate) struct Reading<'a> {
    path: &'a Path,
    file: File,
    metadata: Metadata,
    stop: &'a AtomicBool,
    count: Option<&'a AtomicU64>,
    texts: Option<&'a KnownTexts>,
}

impl<'a> Reading<'a> {
    /// A reading of an open file of the storage.
    pub(crate) const fn new(path: &'a Path, file: File, metadata: Metadata) -> Self {
        Self { path, file, metadata, stop: &NEVER, count: None, texts: None }
    }

    /// Opens a user's file, which may be anywhere, behind links, or a pipe. Reading it fails when
    /// `stop` is set.
    pub(crate) fn open_unless(stop: &'a AtomicBool, path: &'a Path) -> Result<Self> {
        attempt("read", path, || {
            // Opening a pipe would wait for a writer, and could not be interrupted.
            let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let is_stopped = || stop.load(Ordering::Relaxed);
            let file = open_leased(is_stopped, || open(path, flags, Mode::empty()))?;
            let file = File::from(file);
            let metadata = Metadata::read(&file)?;
            Ok(Self { stop, ..Self::new(path, file, metadata) })
        })
    }

    /// Makes reading fail when `stop` is set.
    pub(crate) const fn until(mut self, stop: &'a AtomicBool) -> Self {
        self.stop = stop;
        self
    }

    /// The file.
    pub(crate) const fn file(&self) -> &File {
        &self.file
    }

    /// Its path.
    pub(crate) const fn path(&self) -> &'a Path {
        self.path
    }

    /// Adds the number of bytes read to a counter.
    pub(crate) const fn counting(mut self, count: &'a AtomicU64) -> Self {
        self.count = Some(count);
        self
    }

    /// Notes what it reads, if that is small enough for a text.
    pub(crate) const fn noting(mut self, texts: &'a KnownTexts) -> Self {
        self.texts = Some(texts);
        self
    }

    /// The metadata of the file when it was opened.
    pub(crate) const fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The same file, which has another path now.
    pub(crate) const fn moved(mut self, path: &'a Path) -> Self {
        self.path = path;
        self
    }

    /// The same file with its metadata as they are now.
    pub(crate) fn refresh(mut self) -> Result<Self> {
        self.metadata = self.metadata_now()?;
        Ok(self)
    }

    /// Reads the metadata of the file as it is now.
    pub(crate) fn metadata_now(&self) -> Result<Metadata> {
        Metadata::read(&self.file).context("look at", self.path)
    }

    /// Whether it can be read more than once, unlike a pipe.
    pub(crate) fn is_file(&self) -> bool {
        self.metadata.is_file()
    }

    /// Whether it is large.
    pub(crate) fn is_large(&self) -> bool {
        self.is_file() && self.metadata.len() >= LARGE
    }

    /// Returns the digest of the contents.
    pub(crate) fn digest(&mut self) -> Result<Digest> {
        let is_small = self.is_file() && self.metadata.len() <= MAX_TEXT_FILE;
        let Some(texts) = self.texts.filter(|_| is_small) else {
            return self.pieces(&mut |_| Ok(()));
        };
        let mut contents = Vec::new();
        let digest = self.pieces(&mut |piece| {
            contents.extend_from_slice(piece);
            Ok(())
        })?;
        texts.note(digest, &contents);
        Ok(digest)
    }

    /// Copies the file into a new one with the same permissions. Returns the digest of the copy.
    ///
    /// The copy shares its blocks with the original where the file system can do that.
    pub(crate) fn copy(&mut self, disk: &Disk, to: &Path) -> Result<Digest> {
        self.copy_as(disk, to, self.metadata.mode() & 0o777)
    }

    /// Does the same, but with these permissions.
    pub(crate) fn copy_as(&mut self, disk: &Disk, to: &Path, mode: u32) -> Result<Digest> {
        if !self.is_file() {
            return self.copy_once(disk, to, mode);
        }
        disk.retry(OnNotFound::Retry, |again| {
            if again {
                disk.remove(to)?;
                self.rewind()?;
            }
            self.copy_once(disk, to, mode)
        })
    }

    fn copy_once(&mut self, disk: &Disk, to: &Path, mode: u32) -> Result<Digest> {
        let copy = disk.create(to, mode | 0o600)?;
        if ioctl_ficlone(&copy, &self.file).is_ok() {
            let metadata = Metadata::read(&copy).context("look at", to)?;
            let Self { stop, count, .. } = *self;
            return Reading { stop, count, ..Reading::new(to, copy, metadata) }.digest();
        }
        let (mut copy, mut at) = (FileCopy::begin(copy), 0);
        let mut write = |piece: &[u8]| {
            fault().and_then(|()| copy.write(piece, at))?;
            at += piece.len() as u64;
            Ok(())
        };
        let digest = self.pieces(&mut |piece| write(piece).context("write", to))?;
        copy.finish(at).and_then(|()| disk.arrive(&copy.file)).context("write", to)?;
        Ok(digest)
    }

    /// Goes back to the beginning.
    pub(crate) fn rewind(&mut self) -> Result<()> {
        self.file.rewind().context("read", self.path)
    }

    /// The size of the buffer, in bytes: no more than a small file needs.
    fn piece(&self) -> usize {
        let whole = usize::try_from(self.metadata.len()).unwrap_or(PIECE);
        if self.is_file() { whole.clamp(SMALL_PIECE, PIECE) } else { PIECE }
    }

    /// Reads the file to its end, piece by piece. Returns the digest.
    fn pieces(&mut self, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<Digest> {
        if self.is_large() {
            let fill = |piece: &mut [u8]| {
                let count = self.fill(piece)?;
                each(&piece[..count])?;
                Ok(count)
            };
            if let Some(digest) = hash_in_two_threads(fill)? {
                return Ok(digest);
            }
        }
        let mut hasher = Hasher::default();
        let mut piece = vec![0; self.piece()];
        loop {
            let count = self.fill(&mut piece)?;
            if count == 0 {
                return Ok(hasher.finish());
            }
            hasher.update(&piece[..count]);
            each(&piece[..count])?;
        }
    }

    /// Reads the next piece. Returns its size in bytes, 0 at the end.
    fn fill(&mut self, piece: &mut [u8]) -> Result<usize> {
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return Err(StorageError::Interrupted);
            }
            if !self.has_more().context("read", self.path)? {
                continue;
            }
            match self.file.read(piece) {
                Err(error) if matches!(error.kind(), Interrupted | WouldBlock) => {}
                read => {
                    if let (Some(total), Ok(count)) = (self.count, &read) {
                        total.fetch_add(*count as u64, Ordering::Relaxed);
                    }
                    return read.context("read", self.path);
                }
            }
        }
    }

    /// Waits a moment until something can be read. Returns false if it was not long enough.
    fn has_more(&self) -> io::Result<bool> {
        if self.is_file() {
            return Ok(true);
        }
        let mut files = [PollFd::new(&self.file, PollFlags::IN)];
        match poll(&mut files, Some(&LOOK)) {
            Err(Errno::INTR) => Ok(false),
            ready => Ok(ready? > 0),
        }
    }
}

/// Returns the digests of files that do not change. They must not be pipes.
///
/// Several large files are read at the same time, unless another thread is doing that.
pub(crate) fn digests(files: Vec<Reading<'_>>) -> Result<Box<[Digest]>> {
    let large = files.iter().filter(|file| file.is_large()).count();
    let Some(_others_do_not) = TOGETHER.try_lock().ok().filter(|_| large > 1) else {
        return files.into_iter().map(|mut file| file.digest()).collect();
    };
    let files: Vec<Mutex<Reading<'_>>> = files.into_iter().map(Mutex::new).collect();
    let next = AtomicUsize::new(0);
    let some = || {
        iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed))
            .map_while(|at| Some((at, lock(files.get(at)?).digest())))
            .collect::<Vec<_>>()
    };
    let others = thread::available_parallelism().map_or(1, NonZeroUsize::get).min(large) - 1;
    let mut all = thread::scope(|scope| {
        let others: Vec<_> = (0..others)
            .filter_map(|_| thread::Builder::new().spawn_scoped(scope, some).ok())
            .collect();
        let mut all = some();
        for other in others {
            all.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        all
    });
    all.sort_unstable_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, digest)| digest).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Contents of this size without equal pieces.
    fn contents(size: usize) -> Vec<u8> {
        (0..).flat_map(u64::to_le_bytes).take(size).collect()
    }

    #[test]
    fn one_and_two_threads_copy_and_hash_alike() {
        let dir = tempfile::tempdir().unwrap();
        let disk = Disk::open(dir.path()).unwrap();
        let (file, copy) = (dir.path().join("file"), dir.path().join("copy"));
        let large = usize::try_from(LARGE).unwrap();
        for size in [0, 1, PIECE, PIECE + 1, large - 1, large, large + PIECE + 1] {
            let contents = contents(size);
            fs::write(&file, &contents).unwrap();
            let mut reading = disk.reading(&file).unwrap();
            assert_eq!(reading.is_large(), size >= large);
            let digest = Digest::hash_bytes(&contents);
            assert_eq!(reading.digest().unwrap(), digest, "{size} bytes");
            reading.rewind().unwrap();
            assert_eq!(reading.copy(&disk, &copy).unwrap(), digest, "{size} bytes");
            assert!(fs::read(&copy).unwrap() == contents, "{size} bytes");
            fs::remove_file(&copy).unwrap();
        }
    }

    #[test]
    fn several_files_are_read_at_the_same_time() {
        let dir = tempfile::tempdir().unwrap();
        let large = usize::try_from(LARGE).unwrap();
        let contents = [large, 3, large + 1, 0, large + 2].map(contents);
        let disk = Disk::open(dir.path()).unwrap();
        let path = |at: usize| dir.path().join(at.to_string());
        let paths: Vec<_> = (0..contents.len()).map(path).collect();
        for (path, contents) in paths.iter().zip(&contents) {
            fs::write(path, contents).unwrap();
        }
        let files = paths.iter().map(|path| disk.reading(path).unwrap()).collect();
        let expected: Vec<_> =
            contents.iter().map(|contents| Digest::hash_bytes(contents)).collect();
        assert_eq!(*digests(files).unwrap(), expected);
    }

    #[test]
    fn reading_stops_when_it_is_asked_to_and_when_the_copy_cannot_be_written() {
        let dir = tempfile::tempdir().unwrap();
        let (file, copy) = (dir.path().join("file"), dir.path().join("copy"));
        for size in [LARGE - 1, LARGE] {
            File::create(&file).unwrap().set_len(size).unwrap();
            let stop = AtomicBool::new(false);
            let mut reading = Reading::open_unless(&stop, &file).unwrap();
            let failed = reading.pieces(&mut |_| Err(StorageError::Unsteady(copy.clone())));
            assert!(matches!(failed, Err(StorageError::Unsteady(_))));
            reading.rewind().unwrap();
            let mut pieces = 0;
            let asked = reading.pieces(&mut |_| {
                pieces += 1;
                stop.store(pieces == 2, Ordering::Relaxed);
                Ok(())
            });
            assert!(matches!(asked, Err(StorageError::Interrupted)));
            assert_eq!(pieces, 2);
        }
    }
}
