//! Hashing of inputs and of stored files. A file whose digest is cached is not read.

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::SystemTime;

use crate::cache::{Cache, FileStat, digests};
use crate::digest::Digest;
use crate::storage::disk::reading::Reading;
use crate::storage::disk::{Disk, Metadata, Result, Root, lock};
use crate::storage::layout::TASK_INPUTS;
use crate::storage::records::Published;

/// State shared by all threads that hash inputs.
#[derive(Debug, Default)]
pub(super) struct Ingest {
    pub(super) cache: Option<Cache>,
    pub(super) stop: Arc<AtomicBool>,
    /// The number of bytes of all expected files, and of those that were read or need not be.
    expected: AtomicU64,
    done: AtomicU64,
    /// The sizes of the task inputs in the storage, once they were listed.
    sizes: OnceLock<HashSet<u64>>,
    publishing: Mutex<()>,
}

impl Ingest {
    /// Adds to the number of expected bytes.
    pub(super) fn expect(&self, bytes: u64) {
        self.expected.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The number of processed bytes of expected files, and the number of expected bytes.
    pub(super) fn progress(&self) -> (u64, u64) {
        let expected = self.expected.load(Ordering::Relaxed);
        (self.done.load(Ordering::Relaxed).min(expected), expected)
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
    /// Whether hashing it separately is cheap: it is small, or its digest is cached.
    pub(super) fn is_cheap(&self) -> bool {
        self.cached.is_some() || self.reading.is_file() && !self.reading.is_large()
    }
}

impl Ingest {
    /// Returns the digest of a user's file. Reads it unless the digest is cached.
    pub(super) fn read_to_digest(&self, path: &Path) -> Result<Digest> {
        self.digest_of(&mut self.original(path)?)
    }

    /// Opens a user's file.
    pub(super) fn original<'a>(&'a self, path: &'a Path) -> Result<Original<'a>> {
        let taken = SystemTime::now();
        Ok(self.begin(Reading::open_unless(&self.stop, path)?, taken))
    }

    /// Returns the digest of a file of the storage. Reads it unless the digest is cached.
    pub(super) fn stored_digest(&self, disk: &Disk, path: &Path) -> Result<Digest> {
        let taken = SystemTime::now();
        let reading = disk.reading(path)?.until(&self.stop);
        self.digest_of(&mut self.begin(reading, taken))
    }

    /// Whether a file exists and is still the published one.
    pub(super) fn is_published(&self, disk: &Disk, path: &Path, file: &Published) -> Result<bool> {
        match disk.metadata(path)? {
            Some(metadata) => self.unchanged(disk, path, &metadata, file),
            None => Ok(false),
        }
    }

    /// Whether a file is still the published one.
    ///
    /// Size and time stamp decide. A file is read only if its time stamp differs, and a large file
    /// only once. Copying tools may cut a time stamp to whole seconds, a clock may be wrong, and a
    /// user may `touch` a file.
    pub(super) fn unchanged(
        &self,
        disk: &Disk,
        path: &Path,
        metadata: &Metadata,
        file: &Published,
    ) -> Result<bool> {
        Ok(metadata.is_file()
            && metadata.len() == file.digest.size
            && (metadata.modified_ns() == file.modified_ns
                || self.stored_digest(disk, path)? == file.digest))
    }

    fn begin<'a>(&'a self, mut reading: Reading<'a>, taken: SystemTime) -> Original<'a> {
        let stat = reading.metadata().stat();
        let mut cached = None;
        if reading.is_file() {
            reading = reading.counting(&self.done);
            cached = self.cache.as_ref().and_then(|cache| digests::look_up(cache, &stat));
        }
        if cached.is_some() {
            self.done.fetch_add(stat.size, Ordering::Relaxed);
        }
        Original { reading, stat, taken, cached }
    }

    /// Returns the digest of a file. Reads it unless the digest is cached.
    pub(super) fn digest_of(&self, original: &mut Original<'_>) -> Result<Digest> {
        if let Some(digest) = original.cached {
            return Ok(digest);
        }
        let digest = original.reading.digest()?;
        self.cache_digest(original, digest)?;
        Ok(digest)
    }

    /// Goes back to the beginning of a file that is read again.
    pub(super) fn rewind(&self, original: &mut Original<'_>) -> Result<()> {
        self.expect(original.stat.size);
        original.reading.rewind()
    }

    /// Copies a file. Returns the digest of the copy.
    pub(super) fn copy_of(
        &self,
        disk: &Disk,
        original: &mut Original<'_>,
        copy: &Path,
    ) -> Result<Digest> {
        let digest = original.reading.copy(disk, copy)?;
        self.cache_digest(original, digest)?;
        Ok(digest)
    }

    /// Whether there is a task input of the same size as a file.
    pub(super) fn may_have(&self, root: &Root, original: &Original<'_>) -> Result<bool> {
        if !original.reading.is_file() {
            return Ok(false);
        }
        if let Some(sizes) = self.sizes.get() {
            return Ok(sizes.contains(&original.stat.size));
        }
        let dir = root.path(TASK_INPUTS);
        let mut sizes = HashSet::new();
        for file in root.disk.walk(&dir)? {
            sizes.extend(root.disk.metadata(&dir.join(file))?.map(|metadata| metadata.len()));
        }
        Ok(self.sizes.get_or_init(|| sizes).contains(&original.stat.size))
    }

    /// Caches the digest of a file that was read, unless it is small, racy or has changed
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
