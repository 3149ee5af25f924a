//! How inputs are taken in: what a file contains is remembered, in the user's cache, until the file
//! changes. What is remembered is a file each; see doc/formats.md.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::disk::Metadata;
use super::reading::Reading;
use super::record::Published;
use super::survey::TASK_INPUTS;
use super::{Result, Storage, lock};
use crate::cache::{Cache, Stamp};
use crate::digest::Digest;

/// From so many bytes on, a digest is remembered: a smaller file is read as fast as that is found.
const WORTHWHILE: u64 = 128 << 10;

/// How many digests a directory of the cache has at most; there are 256 of them.
const MOST: usize = 64;

/// How to read what is remembered; another format is none.
const FORMAT: u32 = 1;

/// What helps to take in inputs.
#[derive(Debug, Default)]
pub(super) struct Intake {
    cache: Option<Cache>,
    stop: Arc<AtomicBool>,
    /// How many bytes are to be read, and how many of them are or need not be.
    expected: AtomicU64,
    done: AtomicU64,
    /// How many bytes the task inputs have that are there, once that was asked for.
    sizes: OnceLock<HashSet<u64>>,
    publishing: Mutex<()>,
}

impl Intake {
    /// Where something may be remembered, if anywhere.
    pub(super) const fn cache(&self) -> Option<&Cache> {
        self.cache.as_ref()
    }

    /// Expects so many bytes more.
    pub(super) fn expect(&self, bytes: u64) {
        self.expected.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Keeps other threads from publishing.
    pub(super) fn publishing(&self) -> MutexGuard<'_, ()> {
        lock(&self.publishing)
    }
}

/// What is remembered of a file.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Remembered {
    format: u32,
    stamp: Stamp,
    digest: Digest,
}

/// A user's file, and what is remembered of it.
#[derive(Debug)]
pub(super) struct Original<'a> {
    reading: Reading<'a>,
    stamp: Stamp,
    /// When the stamp was taken, or earlier.
    taken: SystemTime,
    known: Option<Digest>,
}

impl Original<'_> {
    /// Whether what it contains is known without reading it.
    pub(super) const fn is_known(&self) -> bool {
        self.known.is_some()
    }

    /// Whether it is so small that reading it twice does not matter.
    pub(super) fn is_small(&self) -> bool {
        self.reading.is_file() && !self.reading.is_large()
    }
}

impl Storage {
    /// Lets it remember in this cache what large inputs contain, and believe what is there.
    #[must_use]
    pub fn remembering(mut self, cache: Option<Cache>) -> Self {
        self.intake.cache = cache;
        self
    }

    /// Lets it stop to read inputs when this becomes true.
    #[must_use]
    pub fn until(mut self, stop: Arc<AtomicBool>) -> Self {
        self.intake.stop = stop;
        self
    }

    /// Expects these files to be taken in. Returns whether several threads are of use for that, and
    /// do no harm: what is read from pipes may depend on the order.
    ///
    pub fn expect(&self, paths: &[&Path]) -> bool {
        let (mut large, mut only_files) = (0, true);
        for path in paths {
            match fs::metadata(path) {
                Ok(metadata) if metadata.is_file() => {
                    self.intake.expect(metadata.len());
                    large += usize::from(metadata.len() >= WORTHWHILE);
                }
                _ => only_files = false,
            }
        }
        only_files && large > 1
    }

    /// How many bytes of what is to be taken in are done with, and how many there are, as far as that
    /// is known.
    pub fn taken_in(&self) -> (u64, u64) {
        let Intake { expected, done, .. } = &self.intake;
        let expected = expected.load(Ordering::Relaxed);
        (done.load(Ordering::Relaxed).min(expected), expected)
    }

    /// Returns what a file contains; reads it unless that is remembered.
    pub(super) fn read_to_digest(&self, path: &Path) -> Result<Digest> {
        self.digest_of(&mut self.original(path)?)
    }

    /// Opens a user's file.
    pub(super) fn original<'a>(&'a self, path: &'a Path) -> Result<Original<'a>> {
        let taken = SystemTime::now();
        Ok(self.begin(Reading::open_unless(&self.intake.stop, path)?, taken))
    }

    /// Returns what a file of the storage contains; reads it unless that is remembered.
    pub(super) fn stored_digest(&self, path: &Path) -> Result<Digest> {
        let taken = SystemTime::now();
        let reading = self.disk.reading(path)?.until(&self.intake.stop);
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
            reading = reading.counting(&self.intake.done);
        }
        let stamp = reading.metadata().stamp();
        let known = reading.is_file().then(|| self.recall(&stamp)).flatten();
        if known.is_some() {
            self.intake.done.fetch_add(stamp.size, Ordering::Relaxed);
        }
        Original { reading, stamp, taken, known }
    }

    /// Returns what a file contains; reads it unless that is known.
    pub(super) fn digest_of(&self, original: &mut Original<'_>) -> Result<Digest> {
        if let Some(digest) = original.known {
            return Ok(digest);
        }
        let digest = original.reading.digest()?;
        self.remember(original, digest)?;
        Ok(digest)
    }

    /// Goes back to the beginning of a file, which is to be read again.
    pub(super) fn rewind(&self, original: &mut Original<'_>) -> Result<()> {
        self.intake.expect(original.stamp.size);
        original.reading.rewind()
    }

    /// Copies a file; returns what the copy contains.
    pub(super) fn copy_of(&self, original: &mut Original<'_>, copy: &Path) -> Result<Digest> {
        let digest = original.reading.copy(&self.disk, copy)?;
        self.remember(original, digest)?;
        Ok(digest)
    }

    /// Whether a task input is there that has as many bytes as a file.
    pub(super) fn may_have(&self, original: &Original<'_>) -> Result<bool> {
        if !original.reading.is_file() {
            return Ok(false);
        }
        if let Some(sizes) = self.intake.sizes.get() {
            return Ok(sizes.contains(&original.stamp.size));
        }
        let dir = self.path(TASK_INPUTS);
        let mut sizes = HashSet::new();
        for file in self.disk.walk(&dir)? {
            sizes.extend(self.disk.metadata(&dir.join(file))?.map(|metadata| metadata.len()));
        }
        Ok(self.intake.sizes.get_or_init(|| sizes).contains(&original.stamp.size))
    }

    fn recall(&self, stamp: &Stamp) -> Option<Digest> {
        let cache = self.intake.cache.as_ref().filter(|_| stamp.size >= WORTHWHILE)?;
        let remembered: Remembered = serde_json::from_slice(&cache.read(&name(stamp))?).ok()?;
        let Remembered { format, stamp: then, digest } = remembered;
        (format == FORMAT && then == *stamp && digest.size == stamp.size).then_some(digest)
    }

    /// Remembers what a file contains that has just been read, if it did not change meanwhile.
    fn remember(&self, original: &Original<'_>, digest: Digest) -> Result<()> {
        let Original { reading, stamp, taken, .. } = original;
        let worthwhile = reading.is_file() && digest.size >= WORTHWHILE;
        let Some(cache) = self.intake.cache.as_ref().filter(|_| worthwhile) else { return Ok(()) };
        let now = reading.metadata_now()?.stamp();
        if stamp.settled(*taken) && now == *stamp && digest.size == stamp.size {
            let remembered = Remembered { format: FORMAT, stamp: *stamp, digest };
            if let Ok(json) = serde_json::to_vec(&remembered) {
                cache.write(&name(stamp), &json);
                cache.keep(&room(stamp), MOST);
            }
        }
        Ok(())
    }
}

/// The directory of the cache that has what is remembered of a file.
fn room(stamp: &Stamp) -> String {
    format!("hashes/{:02x}", stamp.inode % 256)
}

/// The name of what is remembered of a file.
fn name(stamp: &Stamp) -> String {
    let Stamp { device, inode, .. } = stamp;
    format!("{}/{device:x}-{inode:x}", room(stamp))
}

#[cfg(test)]
mod tests;
