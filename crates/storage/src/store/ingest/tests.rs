//! Cached digests of inputs, and the progress of reading them.

use std::fs::{self, File};
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use tempfile::TempDir;

use super::*;
use crate::{Durability, InputSource, Storage, Unrecorded};

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
    /// Opens the file so many milliseconds after its last change.
    fn open_after(&self, ms: u64) -> Original<'_> {
        let mut original = self.storage.ingest.original(&self.file).unwrap();
        let FileStat { modified_ns, changed_ns, .. } = original.stat;
        let last = Duration::from_nanos(modified_ns.max(changed_ns).try_into().unwrap());
        original.taken = UNIX_EPOCH + last + Duration::from_millis(ms);
        original
    }

    fn cached(&self) -> Option<Digest> {
        self.storage.ingest.original(&self.file).unwrap().cached
    }

    fn digest(&self) -> Digest {
        Digest::of(&fs::read(&self.file).unwrap())
    }

    fn has_entries(&self) -> bool {
        self.file.with_file_name("cache").exists()
    }
}

#[test]
fn a_digest_is_cached_until_the_file_changes() {
    let place = place();
    assert_eq!(place.cached(), None);
    let digest = place.storage.ingest.digest_of(&mut place.open_after(2000)).unwrap();
    assert_eq!((digest, place.cached()), (place.digest(), Some(digest)));
    fs::write(&place.file, vec![b'y'; 129 << 10]).unwrap();
    assert_eq!(place.cached(), None);
    let copy = place.storage.path("copy");
    let digest = place
        .storage
        .ingest
        .copy_of(&place.storage.root.disk, &mut place.open_after(2000), &copy)
        .unwrap();
    assert_eq!((digest, place.cached()), (place.digest(), Some(digest)));
    assert_eq!(fs::read(&copy).unwrap(), fs::read(&place.file).unwrap());
}

#[test]
fn a_file_that_is_racy_or_changes_while_it_is_read_is_not_cached() {
    let place = place();
    place.storage.ingest.digest_of(&mut place.open_after(1999)).unwrap();
    assert_eq!(place.cached(), None);
    let mut original = place.open_after(2000);
    File::open(&place.file).unwrap().set_modified(UNIX_EPOCH).unwrap();
    place.storage.ingest.digest_of(&mut original).unwrap();
    assert!(!place.has_entries());
}

#[test]
fn a_small_file_is_not_cached() {
    let place = place();
    fs::write(&place.file, vec![b'x'; (128 << 10) - 1]).unwrap();
    place.storage.ingest.digest_of(&mut place.open_after(2000)).unwrap();
    assert_eq!(place.cached(), None);
    assert!(!place.has_entries());
}

#[test]
fn a_name_leads_to_the_file_that_a_link_leads_to() {
    let place = place();
    let digest = place.storage.ingest.digest_of(&mut place.open_after(2000)).unwrap();
    let link = place.file.with_file_name("link");
    std::os::unix::fs::symlink(&place.file, &link).unwrap();
    assert_eq!(place.storage.ingest.original(&link).unwrap().cached, Some(digest));
}

#[test]
fn what_is_read_and_what_need_not_be_is_told() {
    let place = place();
    let size = 128 << 10;
    assert_eq!(place.storage.inputs().taken_in(), (0, 0));
    let file = InputSource::from(place.file.as_path());
    place.storage.inputs().expect(&[&file, &file]);
    assert_eq!(place.storage.inputs().taken_in(), (0, 2 * size));
    place.storage.ingest.digest_of(&mut place.open_after(2000)).unwrap();
    assert_eq!(place.storage.inputs().taken_in(), (size, 2 * size));
    assert!(place.cached().is_some());
    assert_eq!(place.storage.inputs().taken_in(), (2 * size, 2 * size));
}

#[test]
fn a_size_that_no_task_input_has_is_that_of_a_new_one() {
    let place = place();
    let other = place.file.with_file_name("other");
    fs::write(&other, "other").unwrap();
    place.storage.inputs().store(&other.as_path().into()).unwrap();
    let may_have = |path| {
        let Storage { ingest, root, .. } = &place.storage;
        ingest.may_have(root, &ingest.original(path).unwrap())
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
    let together =
        |paths: [&Path; 3]| place.storage.inputs().expect(&paths.map(InputSource::from).each_ref());
    assert!(together([large, small, large]));
    assert!(!together([large, small, small]));
    assert!(!together([large, large, dir]));
}
