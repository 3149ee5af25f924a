//! Hashing of inputs and of stored files. A file whose digest is cached is not read.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::SystemTime;

use crate::disk::hash_and_copy::Reading;
use crate::disk::{Disk, Metadata, Result, Root, StorageError, ValueMetadata, lock};
use crate::paths::{TASK_INPUTS, is_value};
use crate::records::{Published, Stamp};
use ce_files::cache::{Cache, FileStat, digests};
use ce_files::manifest::{Manifest, Scan};
use ce_model::digest::Digest;

/// State shared by all threads that hash inputs.
#[derive(Debug, Default)]
pub(super) struct FileHasher {
    pub(super) cache: Option<Cache>,
    pub(super) stop: Arc<AtomicBool>,
    /// The number of bytes of all expected files, and of files that were read or need not be.
    expected: AtomicU64,
    done: AtomicU64,
    /// The sizes of the task inputs in the storage, once they were listed.
    sizes: OnceLock<HashSet<u64>>,
    publishing: Mutex<()>,
    /// The known digests of the small files that are looked at together.
    together: Mutex<Option<KnownFiles>>,
}

/// The digests of small files that are looked at together.
#[derive(Debug, Default)]
struct KnownFiles {
    cached: HashMap<FileStat, Digest>,
    /// The digests that are still current, and new ones.
    current: Vec<(FileStat, Digest)>,
    /// Whether any is new.
    is_new: bool,
}

impl FileHasher {
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

    /// Whether it is a directory, which is read in another way.
    pub(super) fn is_directory(&self) -> bool {
        self.reading.metadata().is_dir()
    }
}

impl FileHasher {
    /// Looks at these files. Digests of small files among them are cached together.
    pub(super) fn look_together<T>(&self, files: &[PathBuf], look: impl FnOnce() -> T) -> T {
        let Some(cache) = self.cache.as_ref().filter(|_| files.len() >= digests::MIN_FILES) else {
            return look();
        };
        let cached = digests::look_up_together(cache, files);
        *lock(&self.together) = Some(KnownFiles { cached, ..KnownFiles::default() });
        let looked = look();
        let known = lock(&self.together).take().filter(|known| known.is_new);
        if let Some(KnownFiles { current, .. }) = known {
            digests::insert_together(cache, files, &current);
        }
        looked
    }

    /// Returns the cached digest of a small file with this stat, if the file is looked at together with others.
    fn small_digest(&self, stat: FileStat) -> Option<Digest> {
        let mut together = lock(&self.together);
        let known = together.as_mut()?;
        let digest = *known.cached.get(&stat)?;
        known.current.push((stat, digest));
        Some(digest)
    }

    /// Returns the digest of a user's file, if it is one of these small files and is cached.
    pub(super) fn small_digest_of(&self, path: &Path) -> Option<Digest> {
        if lock(&self.together).as_ref().is_none_or(|known| known.cached.is_empty()) {
            return None;
        }
        let stat = FileStat::of_target(path).ok()?;
        let digest = self.small_digest(stat)?;
        // A network file system looks anew at a file that is opened.
        let now = File::open(path).and_then(|file| Metadata::read(&file)).ok()?;
        (now.stat() == stat).then(|| {
            self.done.fetch_add(stat.size, Ordering::Relaxed);
            digest
        })
    }

    /// Returns a value of the storage by its cached digest, if it is one of these small files.
    pub(super) fn known_small_file(&self, seen: &ValueMetadata) -> Option<Published> {
        let ValueMetadata::File(metadata) = seen else { return None };
        let digest = self.small_digest(metadata.stat())?;
        Some(Published { digest, stamp: Stamp::Modified(metadata.modified_ns()) })
    }

    /// Caches the recorded digest of a value of the storage if it is one of these files, unless it changed shortly
    /// before `taken`, just before its stat was taken.
    pub(super) fn note_small_file(&self, seen: &ValueMetadata, taken: SystemTime, digest: Digest) {
        if let ValueMetadata::File(metadata) = seen
            && metadata.len() < digests::MIN_SIZE
            && !metadata.stat().is_racy(taken)
        {
            self.note_small(metadata.stat(), digest);
        }
    }

    fn note_small(&self, stat: FileStat, digest: Digest) {
        if let Some(known) = lock(&self.together).as_mut() {
            known.current.push((stat, digest));
            known.is_new = true;
        }
    }

    /// Returns the digest of a user's file or directory. Reads it unless the digest is cached.
    pub(super) fn read_to_digest(&self, path: &Path) -> Result<Digest> {
        let mut original = self.original(path)?;
        if original.is_directory() {
            self.directory_digest(path, &self.scan(path)?)
        } else {
            self.digest_of(&mut original)
        }
    }

    /// Walks through a user's directory.
    pub(super) fn scan(&self, path: &Path) -> Result<Scan> {
        let scan = Scan::at(path, &self.stop);
        let scan = scan.map_err(|error| StorageError::of_directory(path, error))?;
        self.expect(scan.bytes());
        Ok(scan)
    }

    /// Opens a user's file.
    pub(super) fn original<'a>(&'a self, path: &'a Path) -> Result<Original<'a>> {
        let taken = SystemTime::now();
        Ok(self.begin(Reading::open_unless(&self.stop, path)?, taken))
    }

    /// Returns the digest of a file of the storage. Reads it unless the digest is cached.
    pub(super) fn stored_digest(&self, disk: &Disk, path: &Path) -> Result<Digest> {
        disk.read_whole(|| {
            let taken = SystemTime::now();
            let reading = disk.reading_until(path, &self.stop)?;
            self.digest_of(&mut self.begin(reading, taken))
        })
    }

    /// Whether a value exists and is still the published one.
    pub(super) fn is_published(&self, root: &Root, name: &str, value: &Published) -> Result<bool> {
        let path = root.value(name, &value.digest)?;
        if root.disk.may_show_late() {
            let own = root.path(name);
            if path != own && !root.disk.exists_anew(&own)? {
                return Ok(false);
            }
        }
        // A collection may just have taken it away.
        match root.disk.see_anew(&path, &self.stop) {
            Ok(Some(seen)) => {
                if let ValueMetadata::Directory(_, metadata) = &seen
                    && root.writable
                    && !root.disk.is_sealed(metadata)
                {
                    // The run that has moved it here had no time to do that.
                    drop(root.disk.seal_top(&path));
                }
                self.unchanged(&root.disk, &path, &seen, value)
            }
            Ok(None) => Ok(false),
            // Something was put into it that no value has.
            Err(StorageError::Directory { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether a value is still the published one.
    ///
    /// Its stamp decides, if it has one: size and time stamp of a file, or of all files of a directory. A value is read
    /// only if its stamp differs, and a large one only once. Copying tools may cut a time stamp to whole seconds, a
    /// clock may be wrong, and a user may `touch` a file.
    pub(super) fn unchanged(
        &self,
        disk: &Disk,
        path: &Path,
        seen: &ValueMetadata,
        value: &Published,
    ) -> Result<bool> {
        let Published { digest, stamp } = value;
        Ok(match (seen, digest.is_directory()) {
            (ValueMetadata::File(metadata), false) => {
                metadata.len() == digest.size
                    && (*stamp == Stamp::Modified(metadata.modified_ns())
                        || self.stored_digest(disk, path)? == *digest)
            }
            (ValueMetadata::Directory(scan, _), true) => {
                *stamp == Stamp::Scanned(scan.stamp())
                    || self.directory_digest(path, scan)? == *digest
            }
            _ => false,
        })
    }

    /// Returns the digest and the stamp of a value of the storage. Reads it unless the digest is cached.
    pub(super) fn stored_value(
        &self,
        disk: &Disk,
        path: &Path,
        seen: &ValueMetadata,
    ) -> Result<Published> {
        Ok(match seen {
            ValueMetadata::File(metadata) => {
                if let Some(known) = self.known_small_file(seen) {
                    self.done.fetch_add(metadata.len(), Ordering::Relaxed);
                    return Ok(known);
                }
                let digest = self.stored_digest(disk, path)?;
                Published { digest, stamp: Stamp::Modified(metadata.modified_ns()) }
            }
            ValueMetadata::Directory(scan, _) => {
                let digest = self.directory_digest(path, scan)?;
                Published { digest, stamp: Stamp::Scanned(scan.stamp()) }
            }
            // Reading it fails with the reason.
            ValueMetadata::Other => Published { digest: disk.digest(path)?, stamp: Stamp::Unknown },
        })
    }

    /// Returns the digest of a directory. Reads it unless the digest is cached.
    pub(super) fn directory_digest(&self, path: &Path, scan: &Scan) -> Result<Digest> {
        if let Some(digest) = self.cached_directory(scan) {
            self.done.fetch_add(scan.bytes(), Ordering::Relaxed);
            return Ok(digest);
        }
        Ok(self.read_directory(path, scan)?.digest())
    }

    /// Reads a directory.
    pub(super) fn read_directory(&self, path: &Path, scan: &Scan) -> Result<Manifest> {
        let read = scan.read(&self.stop, &self.done);
        let manifest = read.map_err(|error| StorageError::of_directory(path, error))?;
        self.cache_directory(scan, manifest.digest());
        Ok(manifest)
    }

    /// The cache, for a directory that is worth it.
    pub(super) fn cache_for(&self, scan: &Scan) -> Option<&Cache> {
        self.cache.as_ref().filter(|_| is_worth_caching(scan))
    }

    /// Returns the digest of a directory if it is cached.
    pub(super) fn cached_directory(&self, scan: &Scan) -> Option<Digest> {
        digests::look_up_directory(self.cache_for(scan)?, &scan.exact_stamp())
    }

    /// Caches the digest of a directory that was read, unless it is small or racy.
    pub(super) fn cache_directory(&self, scan: &Scan, digest: Digest) {
        if let Some(cache) = self.cache_for(scan)
            && !scan.is_racy()
        {
            digests::insert_directory(cache, &scan.exact_stamp(), digest);
        }
    }

    /// The number of bytes of expected files that were read.
    pub(super) const fn done(&self) -> &AtomicU64 {
        &self.done
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
        let mut sizes = HashSet::new();
        for room in root.own_names(TASK_INPUTS)? {
            for file in root.values(&format!("{TASK_INPUTS}/{room}"), is_value)? {
                sizes.extend(root.disk.metadata(&root.path(&file))?.map(|metadata| metadata.len()));
            }
        }
        Ok(self.sizes.get_or_init(|| sizes).contains(&original.stat.size))
    }

    /// Caches the digest of a file that was read, unless it is small and alone, racy or has changed meanwhile.
    fn cache_digest(&self, original: &Original<'_>, digest: Digest) -> Result<()> {
        let Original { reading, stat, taken, .. } = original;
        let is_large = digest.size >= digests::MIN_SIZE;
        if let Some(cache) = &self.cache
            && reading.is_file()
            && (is_large || lock(&self.together).is_some())
            && digest.size == stat.size
            && !stat.is_racy(*taken)
            && reading.metadata_now()?.stat() == *stat
        {
            if is_large {
                digests::insert(cache, stat, digest);
            } else {
                self.note_small(*stat, digest);
            }
        }
        Ok(())
    }
}

/// Whether a look into the cache is faster than hashing a directory.
fn is_worth_caching(scan: &Scan) -> bool {
    const MIN_ENTRIES: usize = 64;
    scan.bytes() >= digests::MIN_SIZE || scan.entries().len() >= MIN_ENTRIES
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::{Duration, UNIX_EPOCH};

    use tempfile::TempDir;

    use super::*;
    use crate::records::Defect;
    use crate::{Durability, InputSource, Storage, Stored, Unrecorded};

    /// A storage with a cache, and a file that is just large enough for it.
    struct CachedInput {
        _dir: TempDir,
        file: PathBuf,
        storage: Storage,
    }

    fn place() -> CachedInput {
        let dir = tempfile::tempdir().unwrap();
        let (file, cache) = (dir.path().join("file"), dir.path().join("cache"));
        fs::write(&file, vec![b'x'; 128 << 10]).unwrap();
        let storage = dir.path().join("storage");
        let storage = Storage::open(&storage, Unrecorded::Refuse, Durability::Unsynced).unwrap();
        let storage = storage.with_cache(Some(Cache::at(cache)));
        CachedInput { _dir: dir, file, storage }
    }

    impl CachedInput {
        /// Opens the file this number of milliseconds after its last change.
        fn open_after(&self, ms: u64) -> Original<'_> {
            let mut original = self.storage.hasher.original(&self.file).unwrap();
            let FileStat { modified_ns, changed_ns, .. } = original.stat;
            let last = Duration::from_nanos(modified_ns.max(changed_ns).try_into().unwrap());
            original.taken = UNIX_EPOCH + last + Duration::from_millis(ms);
            original
        }

        fn cached(&self) -> Option<Digest> {
            self.storage.hasher.original(&self.file).unwrap().cached
        }

        fn digest(&self) -> Digest {
            Digest::hash_bytes(&fs::read(&self.file).unwrap())
        }

        fn has_entries(&self) -> bool {
            self.file.with_file_name("cache").exists()
        }
    }

    #[test]
    fn a_digest_is_cached_until_the_file_changes() {
        let place = place();
        assert_eq!(place.cached(), None);
        let digest = place.storage.hasher.digest_of(&mut place.open_after(2000)).unwrap();
        assert_eq!((digest, place.cached()), (place.digest(), Some(digest)));
        fs::write(&place.file, vec![b'y'; 129 << 10]).unwrap();
        assert_eq!(place.cached(), None);
        let copy = place.storage.path("copy");
        let digest = place
            .storage
            .hasher
            .copy_of(&place.storage.root.disk, &mut place.open_after(2000), &copy)
            .unwrap();
        assert_eq!((digest, place.cached()), (place.digest(), Some(digest)));
        assert_eq!(fs::read(&copy).unwrap(), fs::read(&place.file).unwrap());
    }

    #[test]
    fn a_file_that_is_racy_or_changes_while_it_is_read_is_not_cached() {
        let place = place();
        place.storage.hasher.digest_of(&mut place.open_after(1999)).unwrap();
        assert_eq!(place.cached(), None);
        let mut original = place.open_after(2000);
        File::open(&place.file).unwrap().set_modified(UNIX_EPOCH).unwrap();
        place.storage.hasher.digest_of(&mut original).unwrap();
        assert!(!place.has_entries());
    }

    #[test]
    fn a_small_file_is_not_cached() {
        let place = place();
        fs::write(&place.file, vec![b'x'; (128 << 10) - 1]).unwrap();
        place.storage.hasher.digest_of(&mut place.open_after(2000)).unwrap();
        assert_eq!(place.cached(), None);
        assert!(!place.has_entries());
    }

    #[test]
    fn many_small_files_are_cached_together_until_they_change() {
        let place = place();
        let hasher = &place.storage.hasher;
        let file = |number: usize| place.file.with_file_name(number.to_string());
        let files: Vec<PathBuf> = (0..digests::MIN_FILES).map(file).collect();
        files.iter().for_each(|file| fs::write(file, "text").unwrap());
        let digest = Digest::hash_bytes(b"text");
        let note = |files: &[PathBuf]| {
            let note = |file: &PathBuf| hasher.note_small(FileStat::read(file).unwrap(), digest);
            hasher.look_together(files, || files.iter().for_each(note));
        };
        let known = |files: &[PathBuf]| -> Vec<usize> {
            let is_known = |at: &usize| hasher.small_digest_of(&files[*at]) == Some(digest);
            hasher.look_together(files, || (0..files.len()).filter(is_known).collect())
        };
        let few = &files[1..];
        note(few);
        assert_eq!(known(few), [0; 0]);
        assert_eq!(known(&files), [0; 0]);
        note(&files);
        assert_eq!(known(&files), (0..files.len()).collect::<Vec<_>>());
        fs::write(&files[0], "other text").unwrap();
        assert_eq!(known(&files), (1..files.len()).collect::<Vec<_>>());
    }

    #[test]
    fn a_name_leads_to_the_file_that_a_link_leads_to() {
        let place = place();
        let digest = place.storage.hasher.digest_of(&mut place.open_after(2000)).unwrap();
        let link = place.file.with_file_name("link");
        std::os::unix::fs::symlink(&place.file, &link).unwrap();
        assert_eq!(place.storage.hasher.original(&link).unwrap().cached, Some(digest));
    }

    #[test]
    fn progress_counts_hashed_and_cached_bytes() {
        let place = place();
        let size = 128 << 10;
        assert_eq!(place.storage.inputs().taken_in(), (0, 0));
        let file = InputSource::from(place.file.as_path());
        place.storage.inputs().expect(&[&file, &file]);
        assert_eq!(place.storage.inputs().taken_in(), (0, 2 * size));
        place.storage.hasher.digest_of(&mut place.open_after(2000)).unwrap();
        assert_eq!(place.storage.inputs().taken_in(), (size, 2 * size));
        assert!(place.cached().is_some());
        assert_eq!(place.storage.inputs().taken_in(), (2 * size, 2 * size));
    }

    #[test]
    fn a_file_whose_size_no_task_input_has_is_new() {
        let place = place();
        let other = place.file.with_file_name("other");
        fs::write(&other, "other").unwrap();
        place.storage.inputs().store(&other.as_path().into()).unwrap();
        let may_have = |path| {
            let Storage { hasher, root, .. } = &place.storage;
            hasher.may_have(root, &hasher.original(path).unwrap())
        };
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
        let together = |paths: [&Path; 3]| {
            place.storage.inputs().expect(&paths.map(InputSource::from).each_ref())
        };
        assert!(together([large, small, large]));
        assert!(!together([large, small, small]));
        assert!(!together([large, large, dir]));
    }

    const OUTPUT: &str = "c_copy/1/00/2";

    /// A storage that shows an output which is gone. A directory that stays open simulates the caches of a network file
    /// system.
    fn behind(is_on_network: bool) -> (TempDir, Storage, Published) {
        let dir = tempfile::tempdir().unwrap();
        let mut storage =
            Storage::open(dir.path(), Unrecorded::Refuse, Durability::Unsynced).unwrap();
        if is_on_network {
            Arc::get_mut(&mut storage.root.disk).unwrap().put_on_network();
        }
        let path = storage.path(OUTPUT);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "text").unwrap();
        let metadata = storage.root.disk.metadata(&path).unwrap().unwrap();
        let stamp = Stamp::Modified(metadata.modified_ns());
        (dir, storage, Published { digest: Digest::hash_bytes(b"text"), stamp })
    }

    /// Takes the output away.
    fn take_away(storage: &Storage) {
        let path = storage.path(OUTPUT);
        fs::rename(path.parent().unwrap(), storage.path("gone")).unwrap();
        fs::create_dir(path.parent().unwrap()).unwrap();
    }

    #[test]
    fn over_a_network_an_output_that_is_not_listed_is_not_there() {
        type Look = fn(&Storage, &Published) -> bool;
        let looks: [Look; 4] = [
            |storage, value| storage.values().is_published(OUTPUT, value).unwrap(),
            |storage, value| {
                let stop = AtomicBool::new(false);
                let defect = Defect::of_value(&storage.root, OUTPUT, &value.digest, &stop);
                !matches!(defect.unwrap(), Some(Defect::Missing))
            },
            |storage, _| storage.inputs().literal(OUTPUT).unwrap().is_some(),
            |storage, &Published { digest, stamp }| {
                !storage.inputs().is_lost(&Stored { name: OUTPUT.to_owned(), digest, stamp })
            },
        ];
        for (at, look) in looks.iter().enumerate() {
            let (_dir, storage, value) = behind(false);
            take_away(&storage);
            assert!(look(&storage, &value), "{at}: a local file system knows");
            let (_dir, storage, value) = behind(true);
            take_away(&storage);
            assert!(!look(&storage, &value), "{at}");
        }
    }

    #[test]
    fn over_a_network_directories_of_announced_names_are_listed_again() {
        let (_dir, storage, value) = behind(true);
        let is_there = || storage.values().is_published(OUTPUT, &value).unwrap();
        assert!(is_there());
        take_away(&storage);
        // Had it been announced, nothing would have been taken away.
        assert!(is_there());
        storage.gc_roots().announce(["c_copy/1".to_owned()]).unwrap();
        assert!(!is_there());
    }
}
