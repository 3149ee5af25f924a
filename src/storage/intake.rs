//! How inputs are taken in: what a file contains is remembered, in the user's cache, until the file
//! changes. What is remembered is a file each; see doc/formats.md.

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::reading::Reading;
use super::survey::TASK_INPUTS;
use super::{Result, Storage, disk, lock};
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
    /// # Errors
    ///
    /// Fails if one of them cannot be looked at.
    pub fn expect(&self, paths: &[&Path]) -> Result<bool> {
        let (mut large, mut only_files) = (0, true);
        for path in paths {
            match disk::metadata(path)? {
                Some(metadata) if metadata.is_file() => {
                    self.intake.expect(metadata.len());
                    large += usize::from(metadata.len() >= WORTHWHILE);
                }
                _ => only_files = false,
            }
        }
        Ok(only_files && large > 1)
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
        let reading = Reading::open_unless(&self.intake.stop, path)?.counting(&self.intake.done);
        let stamp = Stamp::of(reading.metadata());
        let known = reading.is_file().then(|| self.recall(&stamp)).flatten();
        if known.is_some() {
            self.intake.done.fetch_add(stamp.size, Ordering::Relaxed);
        }
        Ok(Original { reading, stamp, taken, known })
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
        let digest = original.reading.copy(copy)?;
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
        for file in disk::walk(&dir)? {
            sizes.extend(disk::metadata(&dir.join(file))?.map(|metadata| metadata.len()));
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
        let now = Stamp::of(&reading.metadata_now()?);
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
mod tests {
    use std::fs::{self, File};
    use std::path::PathBuf;
    use std::time::{Duration, UNIX_EPOCH};

    use serde_json::{Value, json};
    use tempfile::TempDir;

    use super::*;
    use crate::storage::{Durability, Unrecorded};

    /// A storage with a cache, and a file that is just worth remembering.
    struct Place {
        _dir: TempDir,
        file: PathBuf,
        cache: Cache,
        storage: Storage,
    }

    fn place() -> Place {
        let dir = tempfile::tempdir().unwrap();
        let (file, cache) = (dir.path().join("file"), Cache::at(dir.path().join("cache")));
        fs::write(&file, vec![b'x'; 128 << 10]).unwrap();
        let storage = dir.path().join("storage");
        let storage = Storage::open(&storage, Unrecorded::Refuse, Durability::Unsynced).unwrap();
        let storage = storage.remembering(Some(cache.clone()));
        Place { _dir: dir, file, cache, storage }
    }

    impl Place {
        /// Opens the file so many milliseconds after its last change.
        fn open_after(&self, ms: u64) -> Original<'_> {
            let mut original = self.storage.original(&self.file).unwrap();
            let Stamp { modified_ns, changed_ns, .. } = original.stamp;
            let last = Duration::from_nanos(modified_ns.max(changed_ns).try_into().unwrap());
            original.taken = UNIX_EPOCH + last + Duration::from_millis(ms);
            original
        }

        fn known(&self) -> Option<Digest> {
            self.storage.original(&self.file).unwrap().known
        }

        fn digest(&self) -> Digest {
            Digest::of(&fs::read(&self.file).unwrap())
        }

        fn stamp(&self) -> Stamp {
            Stamp::of(&self.file.metadata().unwrap())
        }

        /// Lets something be remembered of the file.
        fn remember(&self, what: &Value) {
            self.cache.write(&name(&self.stamp()), what.to_string().as_bytes());
        }
    }

    #[test]
    fn what_was_read_or_copied_is_known_until_the_file_changes() {
        let place = place();
        assert_eq!(place.known(), None);
        let digest = place.storage.digest_of(&mut place.open_after(2000)).unwrap();
        assert_eq!((digest, place.known()), (place.digest(), Some(digest)));
        fs::write(&place.file, vec![b'y'; 129 << 10]).unwrap();
        assert_eq!(place.known(), None);
        let copy = place.file.with_file_name("copy");
        let digest = place.storage.copy_of(&mut place.open_after(2000), &copy).unwrap();
        assert_eq!((digest, place.known()), (place.digest(), Some(digest)));
        assert_eq!(fs::read(&copy).unwrap(), fs::read(&place.file).unwrap());
    }

    #[test]
    fn a_file_that_has_just_changed_or_does_while_it_is_read_is_not_remembered() {
        let place = place();
        place.storage.digest_of(&mut place.open_after(1999)).unwrap();
        assert_eq!(place.known(), None);
        let mut original = place.open_after(2000);
        File::open(&place.file).unwrap().set_modified(UNIX_EPOCH).unwrap();
        place.storage.digest_of(&mut original).unwrap();
        assert_eq!(place.cache.read(&name(&place.stamp())), None);
    }

    #[test]
    fn a_small_file_is_not_remembered() {
        let place = place();
        fs::write(&place.file, vec![b'x'; (128 << 10) - 1]).unwrap();
        place.storage.digest_of(&mut place.open_after(2000)).unwrap();
        assert_eq!(place.known(), None);
        assert_eq!(place.cache.read(&name(&place.stamp())), None);
    }

    #[test]
    fn a_name_leads_to_the_file_that_a_link_leads_to() {
        let place = place();
        let digest = place.storage.digest_of(&mut place.open_after(2000)).unwrap();
        let link = place.file.with_file_name("link");
        std::os::unix::fs::symlink(&place.file, &link).unwrap();
        assert_eq!(place.storage.original(&link).unwrap().known, Some(digest));
    }

    #[test]
    fn what_does_not_fit_is_not_believed() {
        let place = place();
        let digest = Digest::of(&vec![b'z'; 128 << 10]);
        let stamp = place.stamp();
        let fitting = json!({"format": 1, "stamp": stamp, "digest": digest});
        place.remember(&fitting);
        assert_eq!(place.known(), Some(digest), "it is not read");
        for (field, value) in [
            ("/format", json!(2)),
            ("/stamp/device", json!(stamp.device + 1)),
            ("/stamp/inode", json!(stamp.inode + 1)),
            ("/stamp/size", json!(stamp.size + 1)),
            ("/stamp/modified_ns", json!(stamp.modified_ns + 1)),
            ("/stamp/changed_ns", json!(stamp.changed_ns + 1)),
            ("/digest/size", json!(digest.size + 1)),
            ("/digest/blake3", json!("00")),
            ("/digest", json!(null)),
            ("", json!([])),
        ] {
            let mut other = fitting.clone();
            *other.pointer_mut(field).unwrap() = value;
            place.remember(&other);
            assert_eq!(place.known(), None, "{other}");
        }
        place.cache.write(&name(&stamp), b"{");
        assert_eq!(place.known(), None);
    }

    #[test]
    fn there_is_an_end_to_what_is_remembered() {
        let place = place();
        let room = room(&place.stamp());
        (0..MOST + 9).for_each(|number| place.cache.write(&format!("{room}/{number}"), b""));
        place.storage.digest_of(&mut place.open_after(2000)).unwrap();
        let left = fs::read_dir(place.file.with_file_name("cache").join(room)).unwrap();
        assert_eq!(left.count(), MOST);
    }

    #[test]
    fn what_is_read_and_what_need_not_be_is_told() {
        let place = place();
        let size = 128 << 10;
        assert_eq!(place.storage.taken_in(), (0, 0));
        place.storage.expect(&[&place.file, &place.file]).unwrap();
        assert_eq!(place.storage.taken_in(), (0, 2 * size));
        place.storage.digest_of(&mut place.open_after(2000)).unwrap();
        assert_eq!(place.storage.taken_in(), (size, 2 * size));
        assert!(place.known().is_some());
        assert_eq!(place.storage.taken_in(), (2 * size, 2 * size));
    }

    #[test]
    fn a_size_that_no_task_input_has_is_that_of_a_new_one() {
        let place = place();
        let other = place.file.with_file_name("other");
        fs::write(&other, "other").unwrap();
        place.storage.store_input(&other).unwrap();
        let may_have = |path| place.storage.may_have(&place.storage.original(path).unwrap());
        assert!(!may_have(&place.file).unwrap());
        assert!(may_have(&other).unwrap());
    }

    #[test]
    fn several_large_files_are_taken_in_together_and_pipes_are_not() {
        let place = place();
        let small = place.file.with_file_name("small");
        fs::write(&small, "small").unwrap();
        let (large, small) = (place.file.as_path(), small.as_path());
        let dir = large.parent().unwrap();
        let together = |paths: &[&Path]| place.storage.expect(paths).unwrap();
        assert!(together(&[large, small, large]));
        assert!(!together(&[large, small, small]));
        assert!(!together(&[large, large, dir]));
    }
}
