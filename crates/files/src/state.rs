//! The user's private directory for files that are neither cache nor configuration: scripts of workers, directories
//! that computations run from where the storage's are in reach of others, and the [key](SecretKey) by which processes
//! of the user recognise each other's messages in a storage that others can write.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{self, Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{Mode, OFlags, open};
use rustix::process::geteuid;

use crate::beneath::{each_entry, remove_tree};
use crate::cache::absolute_path;
use crate::umask;
use crate::walk::is_out_of_reach;
use ce_model::digest::Blake3;
use ce_model::exit::Explain;
use ce_model::humanize::quoted_path;

/// The name of the user's key.
const KEY: &str = "key";

/// Rights of others than the owner.
const OTHERS: u32 = 0o077;

/// The age of a directory that a run has left behind which was killed. Runs that are alive [keep](keep) theirs young.
const LEFT: Duration = Duration::from_secs(30 * 24 * 3600);

/// An error with the user's private files.
#[derive(Debug, thiserror::Error, Explain)]
pub enum StateError {
    /// Neither `HOME` nor `XDG_STATE_HOME` is a directory.
    #[error("there is no place for private files: neither HOME nor XDG_STATE_HOME is a directory")]
    #[hint("set XDG_STATE_HOME to a directory")]
    NoPlace,
    /// Another user may read or change it.
    #[error("{} must be for its owner alone, and belong to this user", quoted_path(.0))]
    #[hint("chmod go= {0}, and ls -ld {0}", quoted_path(_0))]
    NotPrivate(PathBuf),
    /// Another user may put another directory in its place.
    #[error("others can write in a directory above {}", quoted_path(.0))]
    #[hint("set XDG_STATE_HOME to a directory that only you and root can write or move")]
    InReach(PathBuf),
    /// A key that has another length.
    #[error("{} is not a key: it does not have {} bytes", quoted_path(.0), Blake3::BYTES)]
    #[hint("remove {}: the next run makes another one", quoted_path(_0))]
    NoKey(PathBuf),
    /// An operation failed.
    #[error("cannot use {}", quoted_path(path))]
    #[hint("set XDG_STATE_HOME to a directory that all hosts of the run share")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// The user's private directory: `$XDG_STATE_HOME/compeval` or `$HOME/.local/state/compeval`, which is made. A home that does not
/// exist is not.
fn directory() -> Result<PathBuf, StateError> {
    let dir = match absolute_path("XDG_STATE_HOME") {
        Some(given) => given,
        None => {
            let home = absolute_path("HOME").filter(|home| home.is_dir());
            home.ok_or(StateError::NoPlace)?.join(".local/state")
        }
    };
    let dir = dir.join("compeval");
    private(&dir)?;
    Ok(dir)
}

/// Makes a directory for the user alone, and those above it, unless they exist.
fn private(dir: &Path) -> Result<(), StateError> {
    let made = umask::create_private_dirs(dir);
    made.map_err(|source| StateError::Io { path: dir.to_owned(), source })?;
    check_private(dir)
}

/// Fails unless a directory is for the user alone, and no other user can replace it.
///
/// # Errors
///
/// The error says which of the two conditions does not hold.
pub fn check_private(dir: &Path) -> Result<(), StateError> {
    let found = dir.symlink_metadata();
    let found = found.map_err(|source| StateError::Io { path: dir.to_owned(), source })?;
    let user = geteuid().as_raw();
    if !found.is_dir() || found.uid() != user || found.mode() & OTHERS != 0 {
        return Err(StateError::NotPrivate(dir.to_owned()));
    }
    if is_out_of_reach(dir, user) { Ok(()) } else { Err(StateError::InReach(dir.to_owned())) }
}

/// A directory of the user alone with this name.
///
/// # Errors
///
/// Fails if there is no such place, or others may write there.
pub fn own_directory(name: &str) -> Result<PathBuf, StateError> {
    let dir = directory()?.join(name);
    private(&dir)?;
    Ok(dir)
}

/// Removes entries of a directory that killed runs have left behind: an entry whose run is over, or, if that is
/// unknown, an entry that no run has [kept](keep) for a month.
pub fn remove_left(dir: &Path, is_over: impl Fn(&OsStr) -> Option<bool>) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(opened) = open(dir, flags, Mode::empty()) else { return };
    let old = SystemTime::now().checked_sub(LEFT);
    let is_old = |name: &OsStr| {
        let changed = dir.join(name).symlink_metadata().and_then(|it| it.modified()).ok();
        changed.zip(old).is_some_and(|(changed, old)| changed < old)
    };
    let mut left: Vec<OsString> = Vec::new();
    // The next run tries again if an entry cannot be listed or removed.
    let _listed = each_entry(&opened, |name, _| {
        left.extend(is_over(name).unwrap_or_else(|| is_old(name)).then(|| name.to_owned()));
        true
    });
    left.iter().for_each(|name| drop(remove_tree(&opened, name)));
}

/// Sets the time of a directory, which shows that its run is alive.
pub fn keep(dir: &Path) {
    // A run that cannot do that for a month has other problems.
    drop(File::open(dir).and_then(|dir| dir.set_modified(SystemTime::now())));
}

/// A key that only processes of one user know. A text with its code comes from a process with this key.
#[derive(Clone)]
pub struct SecretKey([u8; Blake3::BYTES]);

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey")
    }
}

impl SecretKey {
    /// Returns the absolute path of a key file: this one, or else the user's own.
    ///
    /// # Errors
    ///
    /// Fails if the user has no place for one.
    pub fn file(given: Option<&Path>) -> Result<PathBuf, StateError> {
        let Some(given) = given else { return Ok(directory()?.join(KEY)) };
        path::absolute(given).map_err(|source| StateError::Io { path: given.to_owned(), source })
    }

    /// The key in a file. The file is made if it does not exist.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be read or made, or others may read it.
    pub fn find(path: &Path) -> Result<Self, StateError> {
        let wrong = |source| StateError::Io { path: path.to_owned(), source };
        match Self::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => make(path).map_err(wrong)?,
            opened => drop(opened.map_err(wrong)?),
        }
        let mut file = Self::open(path).map_err(wrong)?;
        let found = file.metadata().map_err(wrong)?;
        if !found.is_file() || found.uid() != geteuid().as_raw() || found.mode() & OTHERS != 0 {
            return Err(StateError::NotPrivate(path.to_owned()));
        }
        let mut key = [0; Blake3::BYTES];
        if found.len() != Blake3::BYTES as u64 || file.read_exact(&mut key).is_err() {
            return Err(StateError::NoKey(path.to_owned()));
        }
        Ok(Self(key))
    }

    fn open(path: &Path) -> io::Result<File> {
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        File::options().read(true).custom_flags(flags.bits().cast_signed()).open(path)
    }

    /// Returns the code that authenticates a message of these parts. The first one is its kind: no other kind has the same code.
    pub fn sign(&self, parts: &[&[u8]]) -> Blake3 {
        Blake3::keyed(&self.0, parts)
    }

    /// Whether a code is the keyed hash of these parts.
    pub fn has_signed(&self, parts: &[&[u8]], code: &Blake3) -> bool {
        self.sign(parts).is_same(code)
    }
}

/// Random bytes of the kernel, fit for secrets.
///
/// # Errors
///
/// Fails if they cannot be read.
pub fn random_bytes<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Makes a key, unless another process is faster: it appears whole.
fn make(path: &Path) -> io::Result<()> {
    let key = random_bytes::<{ Blake3::BYTES }>()?;
    // Other threads and hosts make one, too.
    let name = u64::from_le_bytes(random_bytes()?);
    let aside = path.with_extension(format!("{name:016x}.new"));
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(&aside)?;
    let written = file.write_all(&key).and_then(|()| file.sync_all());
    let linked = written.and_then(|()| match fs::hard_link(&aside, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        linked => linked,
    });
    fs::remove_file(&aside).and(linked)
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;
    use std::thread;

    use super::*;

    #[test]
    fn a_key_is_made_once_and_is_for_its_owner_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        let read = || SecretKey::find(&path).map(|key| key.0);
        let keys: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(read)).collect();
            threads.into_iter().map(|it| it.join().unwrap().unwrap()).collect()
        });
        assert!(keys.iter().all(|key| *key == keys[0]) && keys[0] != [0; Blake3::BYTES]);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(read(), Err(StateError::NotPrivate(_))));
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        fs::write(&path, "short").unwrap();
        assert!(matches!(read(), Err(StateError::NoKey(_))));
        std::os::unix::fs::symlink("key", dir.path().join("link")).unwrap();
        assert!(SecretKey::find(&dir.path().join("link")).is_err(), "no link leads to a key");
    }

    #[test]
    fn a_directory_that_others_can_replace_is_not_private() {
        let top = tempfile::tempdir().unwrap();
        let dir = top.path().join("above/own");
        private(&dir).unwrap();
        let set =
            |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        for (mode, is_private) in [(0o775, false), (0o757, false), (0o1777, true), (0o755, true)] {
            set(&top.path().join("above"), mode);
            assert_eq!(private(&dir).is_ok(), is_private, "{mode:o}");
        }
        set(&dir, 0o750);
        assert!(matches!(private(&dir), Err(StateError::NotPrivate(_))));
    }

    #[test]
    fn leftovers_of_a_killed_run_are_removed_and_kept_directories_stay() {
        let dir = tempfile::tempdir().unwrap();
        let long_ago = SystemTime::now() - 2 * LEFT;
        for name in ["old", "kept", "new", "over", "alive"] {
            let inner = dir.path().join(name).join("read-only");
            fs::create_dir_all(&inner).unwrap();
            fs::write(inner.join("file"), "").unwrap();
            fs::set_permissions(&inner, Permissions::from_mode(0o555)).unwrap();
            let is_old = !matches!(name, "new" | "over");
            if is_old {
                File::open(dir.path().join(name)).unwrap().set_modified(long_ago).unwrap();
            }
        }
        keep(&dir.path().join("kept"));
        remove_left(dir.path(), |name| match name.to_str() {
            Some("over") => Some(true),
            Some("alive") => Some(false),
            _ => None,
        });
        let left = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let mut left: Vec<_> = left.collect();
        left.sort();
        assert_eq!(left, ["alive", "kept", "new"]);
    }

    #[test]
    fn each_part_and_kind_of_a_message_is_signed() {
        let [one, other] = [1, 2].map(|byte| SecretKey([byte; Blake3::BYTES]));
        let code = one.sign(&[b"ticket", b"run", b"1"]);
        assert!(one.has_signed(&[b"ticket", b"run", b"1"], &code));
        assert!(!other.has_signed(&[b"ticket", b"run", b"1"], &code));
        let wrong: [&[&[u8]]; 4] = [
            &[b"answer", b"run", b"1"],
            &[b"ticket", b"run1", b""],
            &[b"ticket", b"run", b"1", b""],
            &[b"ticket", b"run"],
        ];
        assert!(wrong.iter().all(|parts| !one.has_signed(parts, &code)));
    }
}
