//! The cache of digests: the contents of files, by their [`FileStat`], of directories, by their exact stamps, and of Git trees, by
//! their ids. A large file has an entry of its own, and small ones that are looked at together share one. All programs share the cache.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ce_model::digest::{Blake3, Digest, ObjectId};

use super::fingerprint::FileStat;
use super::{Cache, Table};

/// The size of the smallest files whose digests are cached, in bytes. Smaller ones are hashed as fast
/// as an entry is read.
pub const MIN_SIZE: u64 = 128 << 10;

/// The least number of small files that share an entry. Fewer are hashed as fast as an entry is read.
pub const MIN_FILES: usize = 16;

/// The number of digests in a table. There are 256 tables of each kind, so each is fast to list.
const MAX_DIGESTS: usize = 64;

/// Looks up the digest of a file with this stat.
pub fn look_up(cache: &Cache, stat: &FileStat) -> Option<Digest> {
    if stat.size < MIN_SIZE {
        return None;
    }
    let digest = table(cache, stat).look_up(&[&key(stat)], |then: &FileStat| then == stat).hit();
    digest.filter(|digest: &Digest| digest.size == stat.size)
}

/// Looks up the digests that files had when all of these were looked at together, by their stats.
pub fn look_up_together(cache: &Cache, files: &[PathBuf]) -> HashMap<FileStat, Digest> {
    let entry = lists(cache).look_up(&[&key_of_list(files)], |()| true).hit();
    let known: Vec<(FileStat, Digest)> = entry.unwrap_or_default();
    known.into_iter().collect()
}

/// Inserts the digests of files that were looked at together. Their stats must not be racy.
pub fn insert_together(cache: &Cache, files: &[PathBuf], digests: &[(FileStat, Digest)]) {
    lists(cache).insert(&[&key_of_list(files)], &(), &digests);
}

fn lists(cache: &Cache) -> Table {
    Table::open(cache, "lists", MAX_DIGESTS)
}

fn key_of_list(files: &[PathBuf]) -> Vec<u8> {
    let paths: Vec<&[u8]> = files.iter().map(|path| path.as_os_str().as_bytes()).collect();
    paths.join(&0)
}

/// Looks up the digest of a directory with this exact stamp.
pub fn look_up_directory(cache: &Cache, stamp: &Blake3) -> Option<Digest> {
    directories(cache, stamp).look_up(&[stamp.bytes()], |()| true).hit()
}

/// Inserts the digest of a directory with this exact stamp, which must not be racy.
pub fn insert_directory(cache: &Cache, stamp: &Blake3, digest: Digest) {
    directories(cache, stamp).insert(&[stamp.bytes()], &(), &digest);
}

/// Looks up the digest that a user's directory had when it was stored: the paths of a storage and of it.
pub fn look_up_version(cache: &Cache, paths: [&Path; 2]) -> Option<Digest> {
    versions(cache).look_up(&paths.map(|path| path.as_os_str().as_bytes()), |()| true).hit()
}

/// Inserts the digest of a user's directory that was stored.
pub fn insert_version(cache: &Cache, paths: [&Path; 2], digest: &Digest) {
    versions(cache).insert(&paths.map(|path| path.as_os_str().as_bytes()), &(), digest);
}

fn versions(cache: &Cache) -> Table {
    Table::open(cache, "versions", MAX_DIGESTS)
}

fn directories(cache: &Cache, stamp: &Blake3) -> Table {
    Table::open(cache, &format!("directories/{:02x}", stamp.bytes()[0]), MAX_DIGESTS)
}

/// Looks up the digest of the directory that a Git tree is.
pub fn look_up_tree(cache: &Cache, tree: &ObjectId) -> Option<Digest> {
    trees(cache, tree).look_up(&[tree.full().as_bytes()], |()| true).hit()
}

/// Inserts the digest of the directory that a Git tree is.
pub fn insert_tree(cache: &Cache, tree: &ObjectId, digest: Digest) {
    trees(cache, tree).insert(&[tree.full().as_bytes()], &(), &digest);
}

fn trees(cache: &Cache, tree: &ObjectId) -> Table {
    Table::open(cache, &format!("trees/{}", &tree.full()[..2]), MAX_DIGESTS)
}

/// Inserts the digest of a file with this stat, which must not be racy.
pub fn insert(cache: &Cache, stat: &FileStat, digest: Digest) {
    table(cache, stat).insert(&[&key(stat)], stat, &digest);
}

fn table(cache: &Cache, stat: &FileStat) -> Table {
    Table::open(cache, &format!("hashes/{:02x}", stat.inode % 256), MAX_DIGESTS)
}

fn key(stat: &FileStat) -> [u8; 16] {
    (u128::from(stat.device) << 64 | u128::from(stat.inode)).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const STAT: FileStat =
        FileStat { device: 1, inode: 0x2fe, size: MIN_SIZE, modified_ns: 3, changed_ns: 4 };

    #[test]
    fn a_digest_is_a_hit_only_for_the_unchanged_file() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path().to_owned());
        assert_eq!(look_up(&cache, &STAT), None);
        let digest = Digest { size: MIN_SIZE, ..Digest::hash_bytes(b"large") };
        insert(&cache, &STAT, digest);
        assert_eq!(look_up(&cache, &STAT), Some(digest));
        for other in [
            FileStat { device: 2, ..STAT },
            FileStat { inode: 0x3fe, ..STAT },
            FileStat { size: MIN_SIZE + 1, ..STAT },
            FileStat { modified_ns: 4, ..STAT },
            FileStat { changed_ns: 5, ..STAT },
        ] {
            assert_eq!(look_up(&cache, &other), None, "{other:?}");
            // An entry in the place of the other one is not used either.
            table(&cache, &other).insert(&[&key(&other)], &STAT, &digest);
            assert_eq!(look_up(&cache, &other), None, "{other:?}");
        }
        for wrong in [STAT.size - 1, STAT.size + 1] {
            insert(&cache, &STAT, Digest { size: wrong, ..digest });
            assert_eq!(look_up(&cache, &STAT), None, "{wrong} bytes");
        }
    }

    #[test]
    fn a_git_tree_is_found_by_its_whole_id() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path().to_owned());
        let [one, other] = ["1", "2"].map(|end| format!("{:0<39}{end}", "ab").parse().unwrap());
        insert_tree(&cache, &one, Digest::hash_bytes(b"tree"));
        assert_eq!(look_up_tree(&cache, &one), Some(Digest::hash_bytes(b"tree")));
        assert_eq!(look_up_tree(&cache, &other), None);
    }

    #[test]
    fn a_small_file_is_a_miss() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path().to_owned());
        let small = FileStat { size: MIN_SIZE - 1, ..STAT };
        insert(&cache, &small, Digest { size: small.size, ..Digest::hash_bytes(b"small") });
        assert_eq!(look_up(&cache, &small), None);
    }

    #[test]
    fn old_digests_are_evicted() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path().to_owned());
        let room = dir.path().join("hashes/fe");
        fs::create_dir_all(&room).unwrap();
        (0..MAX_DIGESTS + 9).for_each(|at| fs::write(room.join(at.to_string()), "").unwrap());
        insert(&cache, &STAT, Digest::hash_bytes(b"large"));
        assert_eq!(fs::read_dir(room).unwrap().count(), MAX_DIGESTS);
    }
}
