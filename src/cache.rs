//! The user's cache: what spares work if it is there, and costs only work if it is not.
//!
//! It may be deleted at any time, as a whole or in part. Nothing that goes wrong with it is told:
//! what cannot be read is not remembered, and what cannot be written will not be. A file is whole
//! and says what was written, or it is not there: each begins with a checksum of the rest.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::Stat;
use rustix::process::geteuid;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::digest::{Blake3, Digest};

/// A directory of files that are known by relative names. Nothing is made before it is written.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
}

impl Cache {
    /// The cache of the user, below `$XDG_CACHE_HOME` or `$HOME/.cache`, if there is such a place.
    ///
    /// A home that is not there is not made.
    pub fn of_user() -> Option<Self> {
        let variable = |name| std::env::var_os(name).map(PathBuf::from);
        let given = variable("XDG_CACHE_HOME").filter(|dir| dir.is_absolute());
        let home = || variable("HOME").filter(|dir| dir.is_absolute() && dir.is_dir());
        let dir = given.or_else(|| Some(home()?.join(".cache")))?;
        Some(Self::at(dir.join("compeval")))
    }

    /// The cache in this directory, which need not be there.
    pub const fn at(root: PathBuf) -> Self {
        Self { root }
    }

    /// Returns what was written under this name, if that is still there, and this user's.
    pub fn read(&self, name: &str) -> Option<Vec<u8>> {
        let mut file = File::open(self.path(name)).ok()?;
        let owner = file.metadata().ok()?.uid();
        let mut sum = [0; Blake3::BYTES];
        file.read_exact(&mut sum).ok().filter(|()| owner == geteuid().as_raw())?;
        let mut contents = Vec::new();
        file.read_to_end(&mut contents).ok()?;
        (Blake3::of(&contents).bytes() == &sum).then_some(contents)
    }

    /// Remembers something under this name, in place of what was there.
    ///
    /// Whoever reads at the same time sees either.
    pub fn write(&self, name: &str, contents: &[u8]) {
        let path = self.path(name);
        let aside = aside(&path);
        let write = || -> io::Result<()> {
            if let Some(dir) = path.parent() {
                DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
            }
            let mut file =
                OpenOptions::new().write(true).create_new(true).mode(0o600).open(&aside)?;
            let written = file
                .write_all(Blake3::of(contents).bytes())
                .and_then(|()| file.write_all(contents))
                .and_then(|()| fs::rename(&aside, &path));
            written.inspect_err(|_| drop(fs::remove_file(&aside)))
        };
        drop(write());
    }

    /// Forgets the oldest files that are directly in a directory, until there are so many.
    pub fn keep(&self, dir: &str, most: usize) {
        let entries: Vec<_> =
            fs::read_dir(self.path(dir)).into_iter().flatten().flatten().collect();
        if entries.len() <= most {
            return;
        }
        let files = entries.iter().filter_map(|entry| {
            let metadata = entry.metadata().ok().filter(Metadata::is_file)?;
            Some((metadata.modified().ok()?, entry.path()))
        });
        let mut files: Vec<_> = files.collect();
        files.sort_unstable();
        let surplus = files.len().saturating_sub(most);
        files.iter().take(surplus).for_each(|(_, path)| drop(fs::remove_file(path)));
    }

    /// Returns what this very program has kept in a directory under a key.
    ///
    /// Another version of it may understand the same in another way, and does not believe it.
    pub fn recall<T: DeserializeOwned>(&self, dir: &str, key: &[&[u8]]) -> Option<T> {
        let kept = self.read(&own_name(dir, key)?)?;
        let (program, what): (Stamp, T) = postcard::from_bytes(&kept).ok()?;
        (program == own_stamp()?).then_some(what)
    }

    /// Keeps something in a directory under a key for this very program, and only the newest that are
    /// there, so many.
    pub fn remember(&self, dir: &str, key: &[&[u8]], what: &impl Serialize, most: usize) {
        let Some((name, program)) = own_name(dir, key).zip(own_stamp()) else { return };
        if let Ok(kept) = postcard::to_allocvec(&(program, what)) {
            self.write(&name, &kept);
            self.keep(dir, most);
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        debug_assert!(Path::new(name).is_relative(), "names are relative");
        self.root.join(name)
    }
}

/// What tells this program from every other version of it.
fn own_stamp() -> Option<Stamp> {
    Some(Stamp::of(&std::env::current_exe().ok()?.metadata().ok()?))
}

/// The name of what this program keeps. Each program has its own, or they would take turns.
fn own_name(dir: &str, key: &[&[u8]]) -> Option<String> {
    let program = std::env::current_exe().ok()?;
    let key = [key, &[program.as_os_str().as_bytes()]].concat().join(&0);
    Some(format!("{dir}/{}", Digest::of(&key).sha1.full()))
}

/// A name beside a file that no other thread or process of this host uses.
fn aside(path: &Path) -> PathBuf {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}-{number}.new", std::process::id()));
    name.into()
}

/// How long after its last change a file is watched: file systems may tell times in steps of 2 s.
const STEP: Duration = Duration::from_secs(2);

/// What tells that a file has not been changed: nobody can set all of it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stamp {
    /// Which file system it is on.
    pub device: u64,
    /// Which file of that it is.
    pub inode: u64,
    /// How many bytes it has.
    pub size: u64,
    /// When it was last written, or is said to have been, in nanoseconds since 1970.
    pub modified_ns: i64,
    /// When anything of it was last changed, in nanoseconds since 1970.
    pub changed_ns: i64,
}

impl From<&Stat> for Stamp {
    fn from(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
            size: stat.st_size.unsigned_abs(),
            modified_ns: ns(stat.st_mtime, stat.st_mtime_nsec.cast_signed()),
            changed_ns: ns(stat.st_ctime, stat.st_ctime_nsec.cast_signed()),
        }
    }
}

/// Nanoseconds, as far as they can be counted.
const fn ns(seconds: i64, rest: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}

impl Stamp {
    /// What is known of a file now.
    pub fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.len(),
            modified_ns: ns(metadata.mtime(), metadata.mtime_nsec()),
            changed_ns: ns(metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// Which file it is: its file system, and its number there.
    pub const fn file(&self) -> (u64, u64) {
        (self.device, self.inode)
    }

    /// Whether any later change would show, if this was taken at that time.
    ///
    /// A file that has just been changed can change again without another time, and one that was
    /// changed in the future tells of a clock that is not to be trusted.
    pub fn settled(&self, taken: SystemTime) -> bool {
        let since = taken.duration_since(UNIX_EPOCH).ok();
        let before = since.and_then(|since| since.checked_sub(STEP));
        let before = before.and_then(|before| i64::try_from(before.as_nanos()).ok());
        before.is_some_and(|before| self.modified_ns.max(self.changed_ns) <= before)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_is_written_is_read_until_it_is_deleted() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path().join("a/b"));
        assert_eq!(cache.read("c/d"), None);
        assert!(!dir.path().join("a").exists(), "reading makes nothing");
        cache.write("c/d", b"first");
        cache.write("c/d", b"");
        assert_eq!(cache.read("c/d"), Some(Vec::new()));
        cache.write("c/d", b"second");
        assert_eq!(cache.read("c/d").as_deref(), Some(&b"second"[..]));
        let mode = |name: &str| dir.path().join(name).metadata().unwrap().permissions().mode();
        assert_eq!(["a", "a/b", "a/b/c"].map(|name| mode(name) & 0o777), [0o700; 3]);
        assert_eq!(mode("a/b/c/d") & 0o777, 0o600);
        assert_eq!(fs::read_dir(dir.path().join("a/b/c")).unwrap().count(), 1, "nothing is left");
        fs::remove_dir_all(dir.path().join("a")).unwrap();
        assert_eq!(cache.read("c/d"), None);
    }

    #[test]
    fn what_is_cut_or_spoiled_is_not_there() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path().to_owned());
        cache.write("it", b"contents");
        let whole = fs::read(dir.path().join("it")).unwrap();
        for length in 0..whole.len() {
            fs::write(dir.path().join("it"), &whole[..length]).unwrap();
            assert_eq!(cache.read("it"), None, "{length} bytes");
        }
        for byte in 0..whole.len() {
            let mut spoiled = whole.clone();
            spoiled[byte] ^= 1;
            fs::write(dir.path().join("it"), spoiled).unwrap();
            assert_eq!(cache.read("it"), None, "byte {byte}");
        }
    }

    #[test]
    fn what_another_user_wrote_is_not_believed() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path().to_owned());
        cache.write("it", b"contents");
        // Only root can give a file away.
        if std::os::unix::fs::chown(dir.path().join("it"), Some(65534), None).is_ok() {
            assert_eq!(cache.read("it"), None);
        }
    }

    #[test]
    fn where_nothing_can_be_written_nothing_is_remembered() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("file"), "").unwrap();
        let cache = Cache::at(dir.path().join("file/cache"));
        cache.write("it", b"contents");
        cache.keep("it", 0);
        assert_eq!(cache.read("it"), None);
        // A directory is in the way: what was written aside is removed.
        let cache = Cache::at(dir.path().join("cache"));
        cache.write("it/there", b"contents");
        cache.write("it", b"contents");
        assert_eq!(cache.read("it"), None);
        assert_eq!(fs::read_dir(dir.path().join("cache")).unwrap().count(), 1);
    }

    #[test]
    fn the_oldest_go() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path().to_owned());
        for (name, age) in [("x/new", 1), ("x/old", 30), ("x/middle", 2), ("x/dir/other", 99)] {
            cache.write(name, b"");
            let file = File::open(dir.path().join(name)).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
        }
        cache.keep("x", 3);
        assert!(cache.read("x/old").is_some(), "a directory is no file");
        cache.keep("x", 2);
        let kept =
            ["x/new", "x/old", "x/middle", "x/dir/other"].map(|name| cache.read(name).is_some());
        assert_eq!(kept, [true, false, true, true]);
    }

    #[test]
    fn a_file_settles_when_both_times_are_past() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let now = Stamp::of(&file.as_file().metadata().unwrap());
        let after = |ms: i64| {
            let ns = now.changed_ns.max(now.modified_ns) + ms * 1_000_000;
            UNIX_EPOCH + Duration::from_nanos(ns.try_into().unwrap())
        };
        assert!(!now.settled(after(-5000)), "the future");
        assert!(!now.settled(after(0)));
        assert!(!now.settled(after(1999)));
        assert!(now.settled(after(2000)));
        assert!(!Stamp { modified_ns: now.modified_ns + 1, ..now }.settled(after(2000)));
        assert!(!Stamp { changed_ns: now.changed_ns + 1, ..now }.settled(after(2000)));
        assert!(!now.settled(UNIX_EPOCH), "a clock that stands at the beginning");
        assert!(Stamp { modified_ns: -1, ..now }.settled(after(2000)), "an old archive");
    }
}
