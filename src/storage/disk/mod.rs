//! The file system as the storage uses it.
//!
//! Everything below a storage is reached from a descriptor of its top directory, one directory at a
//! time and through no symbolic link: what is read, written, moved or removed is the storage's own,
//! whatever somebody puts in the place of a directory meanwhile. Only plain files and directories are
//! opened. A path that is not below the top is refused.
//!
//! Every operation says what was tried and with which file when it fails, and returns "there is no
//! such file" as a value where that is an answer. No other way leads to a file that a result depends
//! on, so that a test can let any operation fail (see `fault`).

mod advice;
mod beneath;
mod durability;
mod error;
mod fault;
mod files;
mod folders;
mod metadata;
pub(super) mod reading;
mod root;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use rustix::fs::{AtFlags, Mode, OFlags, fstat, open, statat};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

pub use self::advice::advice;
pub(super) use self::beneath::NotOwn;
pub use self::durability::Durability;
pub use self::error::{NoStorage, StorageError};
pub(super) use self::fault::fault;
pub(crate) use self::folders::make_dirs;
pub use self::metadata::FileId;
pub(crate) use self::metadata::Metadata;
pub(super) use self::root::Root;

/// What an operation of the storage returns.
pub(crate) type Result<T, E = StorageError> = std::result::Result<T, E>;

/// How many directories are kept open at most.
const OPEN: usize = 200;

/// How many directories are kept open: a fourth of the files that this process may have open.
fn most_open() -> usize {
    static MOST: OnceLock<usize> = OnceLock::new();
    let files = || getrlimit(Resource::Nofile).current.and_then(|files| files.try_into().ok());
    *MOST.get_or_init(|| files().map_or(OPEN, |files: usize| (files / 4).min(OPEN)))
}

/// The directory of a storage, and those below it that were opened.
#[derive(Debug)]
pub(crate) struct Disk {
    root: PathBuf,
    /// `None` if there was no such directory when this was made.
    top: Option<Arc<OwnedFd>>,
    /// Which directory that is.
    id: Option<FileId>,
    /// The rights that everything made here gets, if the storage is shared by a group.
    shared: Option<u32>,
    /// Open directories, by their paths below the top.
    directories: RwLock<HashMap<Box<[u8]>, Arc<OwnedFd>>>,
}

/// An open directory, and a name in it.
struct Spot<'p> {
    directory: Arc<OwnedFd>,
    name: &'p OsStr,
}

/// Adds the operation and its path to an error.
pub(crate) trait Doing<T> {
    fn doing(self, doing: &'static str, path: &Path) -> Result<T>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, doing: &'static str, path: &Path) -> Result<T> {
        self.map_err(|source| StorageError::Io { doing, path: path.to_owned(), source })
    }
}

/// Turns an error that says "there is no such file" into `None`.
fn found<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

pub(crate) fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

impl Disk {
    /// Opens the directory at this absolute path, which need not be there.
    ///
    /// # Errors
    ///
    /// Fails if it is no directory, or may not be entered.
    pub(crate) fn open(root: &Path) -> Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = fault().and_then(|()| Ok(open(root, flags, Mode::empty())?));
        let opened = match opened {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            opened => opened.map(Some),
        };
        let top = opened.doing("open the storage", root)?;
        // Paths below it are told by their beginning.
        let root = root.components().collect();
        let stat = top.as_ref().and_then(|top| fstat(top).ok());
        let mode = stat.map(|stat| stat.st_mode & 0o2777);
        Ok(Self {
            root,
            top: top.map(Arc::new),
            id: stat.map(|stat| (stat.st_dev, stat.st_ino)),
            shared: mode.filter(|mode| mode & 0o020 != 0),
            directories: RwLock::default(),
        })
    }

    /// A directory that is not there.
    pub(crate) fn absent(root: PathBuf) -> Self {
        Self { root, top: None, id: None, shared: None, directories: RwLock::default() }
    }

    /// The path of the top directory.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Whether there was such a directory when this was made.
    pub(super) const fn is_there(&self) -> bool {
        self.top.is_some()
    }

    /// Whether the directory that was opened is still the one at its path.
    pub(super) fn is_in_place(&self) -> bool {
        match rustix::fs::stat(&self.root) {
            Ok(stat) => self.id == Some((stat.st_dev, stat.st_ino)),
            // If that is unknown it counts as the same: the operations themselves will fail.
            Err(error) => self.id.is_some() && error != Errno::NOENT,
        }
    }

    /// Returns a directory whose path begins so and that has another one by now than when it was
    /// opened, if there is one.
    pub(super) fn moved(&self, begins: &[&str]) -> Option<PathBuf> {
        let known = self.directories.read().unwrap_or_else(PoisonError::into_inner);
        let is_meant =
            |inside: &[u8]| begins.iter().any(|begin| inside.starts_with(begin.as_bytes()));
        let mut meant = known.iter().filter(|(inside, _)| is_meant(inside));
        let moved = meant.find(|(inside, directory)| !self.leads_to(inside, directory));
        moved.map(|(inside, _)| self.root.join(OsStr::from_bytes(inside)))
    }

    /// Whether a path has another directory by now than when it was opened.
    pub(super) fn is_moved(&self, path: &Path) -> bool {
        let Ok(inside) = self.inside(path) else { return false };
        self.known(inside).is_some_and(|directory| !self.leads_to(inside, &directory))
    }

    /// Whether a path below the top leads to an open directory.
    fn leads_to(&self, inside: &[u8], directory: &OwnedFd) -> bool {
        let id = |directory: &OwnedFd| fstat(directory).map(|stat| (stat.st_dev, stat.st_ino)).ok();
        let now = self.top.as_ref().map(|top| beneath::open(top, OsStr::from_bytes(inside)));
        now.is_some_and(|now| now.is_ok_and(|now| id(&now) == id(directory)))
    }

    /// The path of something below the top, relative to it.
    fn inside<'p>(&self, path: &'p Path) -> io::Result<&'p [u8]> {
        let rest = path.as_os_str().as_bytes().strip_prefix(self.root.as_os_str().as_bytes());
        match rest {
            Some(b"") => Ok(b""),
            Some([b'/', inside @ ..]) => Ok(inside),
            // The root of the file system ends in a slash itself.
            Some(inside) if self.root == Path::new("/") => Ok(inside),
            _ => Err(NotOwn::Outside.into()),
        }
    }

    fn spot<'p>(&self, path: &'p Path) -> io::Result<Spot<'p>> {
        let inside = self.inside(path)?;
        let (directory, name) = match inside.iter().rposition(|byte| *byte == b'/') {
            Some(at) => (&inside[..at], &inside[at + 1..]),
            None if inside.is_empty() => (inside, &b"."[..]),
            None => (&b""[..], inside),
        };
        if name.is_empty() || name == b".." {
            return Err(NotOwn::Outside.into());
        }
        Ok(Spot { directory: self.directory(directory)?, name: OsStr::from_bytes(name) })
    }

    /// Opens a directory below the top, unless it is open.
    fn directory(&self, inside: &[u8]) -> io::Result<Arc<OwnedFd>> {
        let top = self.top.as_ref().ok_or(Errno::NOENT)?;
        if inside.is_empty() {
            return Ok(Arc::clone(top));
        }
        if let Some(known) = self.known(inside) {
            return Ok(known);
        }
        let opened = Arc::new(beneath::open(top, OsStr::from_bytes(inside))?);
        let mut known = self.directories.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= most_open() {
            known.clear();
        }
        known.insert(inside.into(), Arc::clone(&opened));
        Ok(opened)
    }

    /// The directory with this path below the top, if it is open.
    fn known(&self, inside: &[u8]) -> Option<Arc<OwnedFd>> {
        let directories = self.directories.read().unwrap_or_else(PoisonError::into_inner);
        directories.get(inside).map(Arc::clone)
    }

    /// Closes a directory, and all below it, which may be other ones by now.
    fn close(&self, inside: &[u8]) {
        let below = |path: &[u8]| match path.strip_prefix(inside) {
            Some(rest) => rest.is_empty() || rest[0] == b'/',
            None => false,
        };
        let mut known = self.directories.write().unwrap_or_else(PoisonError::into_inner);
        known.retain(|path, _| !below(path));
    }

    /// Does something with a name in its directory.
    fn at<T>(
        &self,
        path: &Path,
        act: impl FnOnce(&OwnedFd, &OsStr) -> io::Result<T>,
    ) -> io::Result<T> {
        let Spot { directory, name } = self.spot(path)?;
        act(&directory, name)
    }

    /// Does something that needs the directories of some paths; once more if one of them was removed
    /// since it was opened: another one may be in its place.
    fn again<T>(&self, paths: &[&Path], act: impl Fn() -> io::Result<T>) -> io::Result<T> {
        match act() {
            Err(error) if may_be_gone(&error) && self.close_removed(paths) => act(),
            done => done,
        }
    }

    /// Closes those of the paths' directories that were removed. Returns whether there were any.
    fn close_removed(&self, paths: &[&Path]) -> bool {
        let mut any = false;
        for path in paths {
            let Ok(inside) = self.inside(path) else { continue };
            let slash = inside.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
            any |= self.close_if_removed(&inside[..slash]);
        }
        any
    }

    /// Closes directories that may have other paths by now.
    fn close_moved(&self, paths: &[&Path]) {
        for inside in paths.iter().filter_map(|path| self.inside(path).ok()) {
            if self.known(inside).is_some() {
                self.close(inside);
            }
        }
    }

    /// Closes a directory that was removed since it was opened. Returns whether it was.
    fn close_if_removed(&self, inside: &[u8]) -> bool {
        let is_removed = |it: Arc<OwnedFd>| fstat(&it).map_or(true, |stat| stat.st_nlink == 0);
        let removed = self.known(inside).is_some_and(is_removed);
        if removed {
            self.close(inside);
        }
        removed
    }

    /// Returns what is known of a file, or `None` if nothing has that name. Links are not followed.
    pub(crate) fn metadata(&self, path: &Path) -> Result<Option<Metadata>> {
        let look = || self.at(path, |dir, name| Ok(statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?));
        let stat = found(fault().and_then(|()| look())).doing("look at", path)?;
        Ok(stat.map(|stat| Metadata::from(&stat)))
    }

    /// Whether anything has this name.
    pub(crate) fn exists(&self, path: &Path) -> Result<bool> {
        Ok(self.metadata(path)?.is_some())
    }

    /// Returns which file has this name, or `None` if none has.
    pub(crate) fn id(&self, path: &Path) -> Result<Option<FileId>> {
        Ok(self.metadata(path)?.map(|metadata| metadata.id()))
    }
}

/// Locks what is only ever changed in one step: a panic elsewhere does not spoil it.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether an error may come of a directory that was removed after it was opened.
fn may_be_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::StaleNetworkFileHandle)
}

#[cfg(test)]
mod tests;
