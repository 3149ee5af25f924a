//! Hashing of inputs and of stored files. A file whose digest is cached is not read.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::SystemTime;

use super::disk::Metadata;
use super::reading::Reading;
use super::record::Published;
use super::survey::TASK_INPUTS;
use super::{Result, Storage, lock};
use crate::cache::{Cache, FileStat, digests};
use crate::digest::Digest;

/// State shared by all threads that hash inputs.
#[derive(Debug, Default)]
pub(super) struct Ingest {
    stop: Arc<AtomicBool>,
    /// The bytes of all expected files, and those that were read or need not be.
    expected: AtomicU64,
    done: AtomicU64,
    /// The sizes of the task inputs in the storage, once they were listed.
    sizes: OnceLock<HashSet<u64>>,
    publishing: Mutex<()>,
}

impl Ingest {
    /// Expects so many bytes more.
    pub(super) fn expect(&self, bytes: u64) {
        self.expected.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Keeps other threads from publishing.
    pub(super) fn publishing(&self) -> MutexGuard<'_, ()> {
        lock(&self.publishing)
    }
}

/// An open file, and its digest if that is cached.
#[derive(Debug)]
pub(super) struct Original<'a> {
    reading: Reading<'a>,
    stat: FileStat,
    /// When the stat was taken, or earlier.
    taken: SystemTime,
    cached: Option<Digest>,
}

impl Original<'_> {
    /// Whether it takes little time to read it twice, or none: it is small, or its digest is cached.
    pub(super) fn is_cheap(&self) -> bool {
        self.cached.is_some() || self.reading.is_file() && !self.reading.is_large()
    }
}

impl Storage {
    /// Caches digests and records there.
    #[must_use]
    pub fn with_cache(mut self, cache: Option<Cache>) -> Self {
        self.cache = cache;
        self
    }

    /// Lets it stop to read inputs when this becomes true.
    #[must_use]
    pub fn until(mut self, stop: Arc<AtomicBool>) -> Self {
        self.ingest.stop = stop;
        self
    }

    /// Expects these files to be taken in. Returns whether several threads are of use for that, and
    /// do no harm: what is read from pipes may depend on the order.
    pub fn expect(&self, paths: &[&Path]) -> bool {
        let (mut large, mut only_files) = (0, true);
        for path in paths {
            match fs::metadata(path) {
                Ok(metadata) if metadata.is_file() => {
                    self.ingest.expect(metadata.len());
                    large += usize::from(metadata.len() >= digests::MIN_SIZE);
                }
                _ => only_files = false,
            }
        }
        only_files && large > 1
    }

    /// How many bytes of what is to be taken in are done with, and how many there are, as far as that
    /// is known.
    pub fn taken_in(&self) -> (u64, u64) {
        let Ingest { expected, done, .. } = &self.ingest;
        let expected = expected.load(Ordering::Relaxed);
        (done.load(Ordering::Relaxed).min(expected), expected)
    }

    /// Returns what a user's file contains; reads it unless that is cached.
    pub(super) fn read_to_digest(&self, path: &Path) -> Result<Digest> {
        self.digest_of(&mut self.original(path)?)
    }

    /// Opens a user's file.
    pub(super) fn original<'a>(&'a self, path: &'a Path) -> Result<Original<'a>> {
        let taken = SystemTime::now();
        Ok(self.begin(Reading::open_unless(&self.ingest.stop, path)?, taken))
    }

    /// Returns what a file of the storage contains; reads it unless that is cached.
    pub(super) fn stored_digest(&self, path: &Path) -> Result<Digest> {
        let taken = SystemTime::now();
        let reading = self.disk.reading(path)?.until(&self.ingest.stop);
        self.digest_of(&mut self.begin(reading, taken))
    }

    /// Whether a file is there and still the published one.
    pub(super) fn is_published(&self, path: &Path, file: &Published) -> Result<bool> {
        match self.disk.metadata(path)? {
            Some(metadata) => self.unchanged(path, &metadata, file),
            None => Ok(false),
        }
    }

    /// Whether a file is still the published one.
    ///
    /// Size and time stamp decide; only where the time stamp differs is the file read, and a large one
    /// once. Copying tools may cut a time stamp to whole seconds, a clone has times of its own, and a
    /// user may `touch` a file.
    pub(super) fn unchanged(
        &self,
        path: &Path,
        metadata: &Metadata,
        file: &Published,
    ) -> Result<bool> {
        Ok(metadata.is_file()
            && metadata.len() == file.digest.size
            && (metadata.modified_ns() == file.modified_ns
                || self.stored_digest(path)? == file.digest))
    }

    fn begin<'a>(&'a self, mut reading: Reading<'a>, taken: SystemTime) -> Original<'a> {
        if reading.is_file() {
            reading = reading.counting(&self.ingest.done);
        }
        let stat = reading.metadata().stat();
        let cache = self.cache.as_ref().filter(|_| reading.is_file());
        let cached = cache.and_then(|cache| digests::look_up(cache, &stat));
        if cached.is_some() {
            self.ingest.done.fetch_add(stat.size, Ordering::Relaxed);
        }
        Original { reading, stat, taken, cached }
    }

    /// Returns what a file contains; reads it unless that is cached.
    pub(super) fn digest_of(&self, original: &mut Original<'_>) -> Result<Digest> {
        if let Some(digest) = original.cached {
            return Ok(digest);
        }
        let digest = original.reading.digest()?;
        self.cache_digest(original, digest)?;
        Ok(digest)
    }

    /// Goes back to the beginning of a file, which is to be read again.
    pub(super) fn rewind(&self, original: &mut Original<'_>) -> Result<()> {
        self.ingest.expect(original.stat.size);
        original.reading.rewind()
    }

    /// Copies a file; returns what the copy contains.
    pub(super) fn copy_of(&self, original: &mut Original<'_>, copy: &Path) -> Result<Digest> {
        let digest = original.reading.copy(&self.disk, copy)?;
        self.cache_digest(original, digest)?;
        Ok(digest)
    }

    /// Whether a task input is there that has as many bytes as a file.
    pub(super) fn may_have(&self, original: &Original<'_>) -> Result<bool> {
        if !original.reading.is_file() {
            return Ok(false);
        }
        if let Some(sizes) = self.ingest.sizes.get() {
            return Ok(sizes.contains(&original.stat.size));
        }
        let dir = self.path(TASK_INPUTS);
        let mut sizes = HashSet::new();
        for file in self.disk.walk(&dir)? {
            sizes.extend(self.disk.metadata(&dir.join(file))?.map(|metadata| metadata.len()));
        }
        Ok(self.ingest.sizes.get_or_init(|| sizes).contains(&original.stat.size))
    }

    /// Caches the digest of a file that has just been read, unless it is small, racy or has changed
    /// meanwhile.
    fn cache_digest(&self, original: &Original<'_>, digest: Digest) -> Result<()> {
        let Original { reading, stat, taken, .. } = original;
        if let Some(cache) = &self.cache
            && reading.is_file()
            && digest.size >= digests::MIN_SIZE
            && digest.size == stat.size
            && !stat.is_racy(*taken)
            && reading.metadata_now()?.stat() == *stat
        {
            digests::insert(cache, stat, digest);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
