//! The user's cache: tables of values that take long to compute, each with the state it depends on.
//!
//! An entry is a hit while that state is current, and stale from then on. Losing the cache at any
//! time, as a whole or in part, costs time and nothing else. So no operation reports an error: an
//! entry that cannot be read is a miss, and one that cannot be written is not kept.

pub mod digests;
mod fingerprint;
mod images;

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::umask;
use ce_model::digest::{Blake3, Digest};
use rustix::process::geteuid;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use self::fingerprint::{FileStat, Fingerprint};

/// The directory that holds the tables. It is created when the first entry is inserted.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
}

impl Cache {
    /// Returns the cache of the user, `$XDG_CACHE_HOME/compeval` or `$HOME/.cache/compeval`, or `None`
    /// if there is no such place. A home that does not exist is not created.
    pub fn of_user() -> Option<Self> {
        let dir = match absolute_path("XDG_CACHE_HOME") {
            Some(given) => given,
            None => absolute_path("HOME").filter(|home| home.is_dir())?.join(".cache"),
        };
        Some(Self::at(dir.join("compeval")))
    }

    /// The directory of the files that the user's processes on this host lock, which need not exist.
    pub fn locks_of_host(&self) -> PathBuf {
        let host = rustix::system::uname().nodename().to_string_lossy().replace('/', "_");
        self.root.join("hosts").join(host)
    }

    /// The directory of the mirror of a repository, which need not exist.
    pub fn mirror(&self, url: &str) -> PathBuf {
        let digits = Digest::hash_bytes(url.as_bytes()).sha1.short();
        self.root.join("mirrors").join(digits)
    }

    /// Returns the cache in this directory, which need not exist.
    pub const fn at(root: PathBuf) -> Self {
        Self { root }
    }
}

/// The absolute path in an environment variable, if there is one.
pub(crate) fn absolute_path(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// The format of entries.
const FORMAT: u32 = 3;

/// The beginning of an entry: the format, and the program that wrote it unless any may read it.
type Header = (u32, Option<FileStat>);

/// A table of cached values: a directory with a file for each entry.
///
/// An entry is the BLAKE3 of the rest, 32 bytes, and the rest in postcard: the format, which program
/// may read it, the state that the value depends on, and the value. It is named by the SHA-1 of its
/// key. A file that is cut, damaged, of another format or of another user is a miss. An entry is
/// replaced by a rename, so a concurrent reader gets the old or the new one as a whole.
#[derive(Clone, Debug)]
pub struct Table {
    dir: PathBuf,
    max_entries: usize,
    /// The program that may use the entries; empty if any may.
    program: PathBuf,
    header: Header,
}

/// The result of looking up a key.
#[derive(Debug, PartialEq, Eq)]
pub enum Lookup<T> {
    /// The value, which is current.
    Hit(T),
    /// The state that the value depends on has changed since.
    Stale,
    /// There is no entry that can be used.
    Miss,
}

impl<T> Lookup<T> {
    /// The value, if it is current.
    pub fn hit(self) -> Option<T> {
        if let Self::Hit(value) = self { Some(value) } else { None }
    }
}

impl Table {
    /// Opens a table that all programs share. Eviction keeps its `max_entries` newest entries.
    pub fn open(cache: &Cache, name: &str, max_entries: usize) -> Self {
        let dir = cache.root.join(name);
        Self { dir, max_entries, program: PathBuf::new(), header: (FORMAT, None) }
    }

    /// Restricts the table to entries of this program file, for values whose meaning may differ in
    /// another version. Programs at different paths do not replace each other's entries.
    ///
    /// `None` if the program file is unknown.
    pub fn of_this_program(self) -> Option<Self> {
        let program = std::env::current_exe().ok()?;
        let header = (FORMAT, Some(FileStat::read(&program).ok()?));
        Some(Self { program, header, ..self })
    }

    /// Looks up a key. `is_current` returns whether the state that the value depends on still
    /// holds.
    pub fn look_up<S, V>(&self, key: &[&[u8]], is_current: impl FnOnce(&S) -> bool) -> Lookup<V>
    where
        S: DeserializeOwned,
        V: DeserializeOwned,
    {
        let bytes = read(&self.path(key)).unwrap_or_default();
        match postcard::from_bytes::<(Header, S, V)>(&bytes) {
            Ok((header, ..)) if header != self.header => Lookup::Miss,
            Ok((_, state, value)) if is_current(&state) => Lookup::Hit(value),
            Ok(_) => Lookup::Stale,
            Err(_) => Lookup::Miss,
        }
    }

    /// Inserts a value and the state that it depends on; replaces the entry of the key.
    pub fn insert(&self, key: &[&[u8]], state: &impl Serialize, value: &impl Serialize) {
        if let Ok(entry) = postcard::to_allocvec(&(self.header, state, value))
            && write(&self.path(key), &entry).is_ok()
        {
            self.evict();
        }
    }

    /// Removes the oldest entries beyond `max_entries`.
    fn evict(&self) {
        let entries: Vec<_> = fs::read_dir(&self.dir).into_iter().flatten().flatten().collect();
        if entries.len() <= self.max_entries {
            return;
        }
        let files = entries.iter().filter_map(|entry| {
            let metadata = entry.metadata().ok().filter(Metadata::is_file)?;
            Some((metadata.modified().ok()?, entry.path()))
        });
        let mut files: Vec<_> = files.collect();
        files.sort_unstable();
        let surplus = files.len().saturating_sub(self.max_entries);
        files.iter().take(surplus).for_each(|(_, path)| drop(fs::remove_file(path)));
    }

    /// The file of the entry with this key.
    fn path(&self, key: &[&[u8]]) -> PathBuf {
        let key = [key, &[self.program.as_os_str().as_bytes()]].concat().join(&0);
        self.dir.join(Digest::hash_bytes(&key).sha1.full())
    }
}

/// Returns the contents of a file written by [`write`], if it is complete and belongs to this user.
fn read(path: &Path) -> Option<Vec<u8>> {
    let mut file = File::open(path).ok()?;
    let owner = file.metadata().ok()?.uid();
    let mut sum = [0; Blake3::BYTES];
    file.read_exact(&mut sum).ok().filter(|()| owner == geteuid().as_raw())?;
    let mut contents = Vec::new();
    file.read_to_end(&mut contents).ok()?;
    (Blake3::hash_bytes(&contents).bytes() == &sum).then_some(contents)
}

/// Replaces a file by these contents and their checksum, for this user alone.
fn write(path: &Path, contents: &[u8]) -> io::Result<()> {
    if let Some(dir) = path.parent() {
        umask::create_private_dirs(dir)?;
    }
    let aside = aside(path);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&aside)?;
    let written = file
        .write_all(Blake3::hash_bytes(contents).bytes())
        .and_then(|()| file.write_all(contents))
        .and_then(|()| fs::rename(&aside, path));
    written.inspect_err(|_| drop(fs::remove_file(&aside)))
}

/// A name beside a file that no other thread or process of this host uses.
fn aside(path: &Path) -> PathBuf {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    path.with_extension(format!("{}-{number}.new", process::id()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::time::{Duration, SystemTime};

    use tempfile::TempDir;

    use super::*;

    const KEY: [&[u8]; 1] = [b"key"];

    fn open(dir: &TempDir, name: &str) -> Table {
        Table::open(&Cache::at(dir.path().to_owned()), name, 2)
    }

    /// A table in a directory `a/b` that does not exist yet.
    fn table(dir: &TempDir) -> Table {
        open(dir, "a/b")
    }

    fn look_up(table: &Table) -> Lookup<String> {
        table.look_up(&KEY, |state: &u8| *state == 1)
    }

    fn hit(value: &str) -> Lookup<String> {
        Lookup::Hit(value.to_owned())
    }

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn an_entry_is_a_hit_until_it_is_deleted() {
        let dir = tempfile::tempdir().unwrap();
        let table = table(&dir);
        assert_eq!(look_up(&table), Lookup::Miss);
        assert!(!dir.path().join("a").exists(), "a look-up creates nothing");
        table.insert(&KEY, &1_u8, &"first");
        assert_eq!(look_up(&table), hit("first"));
        table.insert(&KEY, &1_u8, &"");
        assert_eq!(look_up(&table), hit(""));
        table.insert(&KEY, &2_u8, &"second");
        assert_eq!(look_up(&table), Lookup::Stale);
        assert_eq!(["a", "a/b"].map(|name| mode(&dir.path().join(name))), [0o700; 2]);
        assert_eq!(mode(&table.path(&KEY)), 0o600);
        assert_eq!(fs::read_dir(&table.dir).unwrap().count(), 1, "nothing is left");
        fs::remove_dir_all(dir.path().join("a")).unwrap();
        assert_eq!(look_up(&table), Lookup::Miss);
    }

    #[test]
    fn a_cut_or_damaged_entry_is_a_miss() {
        let dir = tempfile::tempdir().unwrap();
        let table = table(&dir);
        table.insert(&KEY, &1_u8, &"value");
        let whole = fs::read(table.path(&KEY)).unwrap();
        for length in 0..whole.len() {
            fs::write(table.path(&KEY), &whole[..length]).unwrap();
            assert_eq!(look_up(&table), Lookup::Miss, "{length} bytes");
        }
        for byte in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[byte] ^= 1;
            fs::write(table.path(&KEY), damaged).unwrap();
            assert_eq!(look_up(&table), Lookup::Miss, "byte {byte}");
        }
    }

    #[test]
    fn another_format_another_program_and_another_value_are_misses() {
        let dir = tempfile::tempdir().unwrap();
        let shared = table(&dir);
        let own = shared.clone().of_this_program().unwrap();
        own.insert(&KEY, &1_u8, &"own");
        assert_eq!((look_up(&own), look_up(&shared)), (hit("own"), Lookup::Miss));
        let stat = own.header.1.unwrap();
        let rebuilt = FileStat { changed_ns: stat.changed_ns + 1, ..stat };
        let rebuilt = Table { header: (FORMAT, Some(rebuilt)), ..own };
        assert_eq!(look_up(&rebuilt), Lookup::Miss);
        let entry = |header: Header| postcard::to_allocvec(&(header, 1_u8, "value")).unwrap();
        let expect = |entry: &[u8], found: Lookup<String>| {
            write(&shared.path(&KEY), entry).unwrap();
            assert_eq!(look_up(&shared), found);
        };
        expect(&entry((FORMAT, None)), hit("value"));
        expect(&entry((FORMAT + 1, None)), Lookup::Miss);
        expect(&entry((FORMAT, Some(stat))), Lookup::Miss);
        expect(&postcard::to_allocvec(&(shared.header, 1_u8)).unwrap(), Lookup::Miss);
        expect(br#"{"format": 1}"#, Lookup::Miss);
    }

    #[test]
    fn an_entry_of_another_user_is_a_miss() {
        let dir = tempfile::tempdir().unwrap();
        let table = table(&dir);
        table.insert(&KEY, &1_u8, &"value");
        // Only root can give a file away.
        if std::os::unix::fs::chown(table.path(&KEY), Some(65534), None).is_ok() {
            assert_eq!(look_up(&table), Lookup::Miss);
        }
    }

    #[test]
    fn an_unwritable_cache_inserts_nothing() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("file"), "").unwrap();
        let blocked = open(&dir, "file/table");
        blocked.insert(&KEY, &1_u8, &"value");
        assert_eq!(look_up(&blocked), Lookup::Miss);
        // A directory is in the way: the file that was written beside it is removed.
        let table = table(&dir);
        fs::create_dir_all(table.path(&KEY)).unwrap();
        table.insert(&KEY, &1_u8, &"value");
        assert_eq!(look_up(&table), Lookup::Miss);
        assert_eq!(fs::read_dir(&table.dir).unwrap().count(), 1);
    }

    #[test]
    fn the_oldest_are_evicted() {
        let dir = tempfile::tempdir().unwrap();
        let table = table(&dir);
        let put = |name: &str, age| {
            fs::create_dir_all(table.dir.join("dir")).unwrap();
            let file = File::create(table.dir.join(name)).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
        };
        put("old", 30);
        put("middle", 20);
        put("dir/other", 99);
        table.insert(&KEY, &1_u8, &"value");
        let kept = ["old", "middle", "dir/other"].map(|name| table.dir.join(name).exists());
        assert_eq!(kept, [false, true, true], "a directory is not an entry");
        assert_eq!(look_up(&table), hit("value"));
        put("new", 0);
        table.evict();
        assert!(!table.dir.join("middle").exists());
    }
}
