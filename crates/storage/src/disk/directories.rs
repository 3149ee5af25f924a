//! Directories of the storage: listing, making, removing; and as values: each is walked through, hashed, copied, sealed and
//! moved as a whole.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, PoisonError};

use rustix::fs::{Access, AtFlags, FileType, Mode, Stat, accessat, fstat, mkdirat, readlinkat};
use rustix::io::Errno;

use super::network::{OnNotFound, retry};
use super::{
    Disk, FileId, ForeignEntry, IoContext, Metadata, NoStorage, Result, StorageError,
    ValueMetadata, attempt_once, is_absent, look_once, stat,
};
use ce_files::attributes::Sealing;
use ce_files::beneath::{allow, each_entry, open_directory, open_listed, remove_tree, set_mode};
use ce_files::cache::FileStat;
use ce_files::manifest::{self, DirectoryArchive, DirectoryError, Made, Manifest, Scan};
use ce_files::umask;
use ce_model::digest::Digest;

/// A directory of the storage whose files a copy of another directory can share.
#[derive(Clone, Copy)]
pub(crate) struct EarlierDirectory<'a> {
    pub(crate) path: &'a Path,
    pub(crate) manifest: &'a Manifest,
}

/// Creates the directory of a storage, unless it exists. The parent must exist: it is missing if the file system is not
/// mounted.
pub(crate) fn make_storage(path: &Path) -> Result<()> {
    let path: &PathBuf = &path.components().collect();
    let make = || match umask::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            // Another host has just made it, and it may not be visible yet.
            if path.is_dir() || path.symlink_metadata()?.is_dir() { Ok(()) } else { Err(error) }
        }
        made => made,
    };
    retry(None, OnNotFound::Retry, |_| {
        let made = attempt_once("make the directory", path, make);
        let parent = path.parent().filter(|it| !it.as_os_str().is_empty() && !it.exists());
        match (made, parent) {
            (Err(error), Some(parent)) if error.is(Errno::NOENT) => {
                let source = Box::new(NoStorage::NoParent(parent.to_owned()));
                Err(StorageError::NoStorage { path: path.clone(), source })
            }
            (made, _) => made,
        }
    })
}

/// Creates a directory, and all above it, unless they exist.
pub(crate) fn make_dirs(path: &Path) -> Result<()> {
    let make = || match umask::create_dir_all(path) {
        // If another host has just made it, it may not be visible yet, and this returns that nothing is there.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            if path.symlink_metadata()?.is_dir() { Ok(()) } else { Err(error) }
        }
        made => made,
    };
    retry(None, OnNotFound::Retry, |_| attempt_once("make the directory", path, make))
}

impl Disk {
    /// Returns the path of an open directory that leads to another directory now, if one of the directories that stay
    /// does.
    pub(crate) fn moved(&self, stays: impl Fn(&[u8]) -> bool) -> Option<PathBuf> {
        // A look that is repeated closes open directories, so no look is made while they are locked.
        let known: Vec<_> = {
            let directories = self.directories.read().unwrap_or_else(PoisonError::into_inner);
            let staying = directories.iter().filter(|(inside, _)| stays(inside));
            staying.map(|(inside, directory)| (inside.clone(), Arc::clone(directory))).collect()
        };
        let (moved, _) =
            known.iter().find(|(inside, directory)| !self.leads_to(inside, directory))?;
        Some(self.root.join(OsStr::from_bytes(moved)))
    }

    /// Whether a path leads to another directory now than when it was opened.
    pub(crate) fn is_moved(&self, path: &Path) -> bool {
        let Ok(inside) = self.inside(path) else { return false };
        self.known(inside).is_some_and(|directory| !self.leads_to(inside, &directory))
    }

    /// Whether a path below the top leads to an open directory.
    fn leads_to(&self, inside: &[u8], directory: &OwnedFd) -> bool {
        let id = |directory: &OwnedFd| fstat(directory).map(|stat| (stat.st_dev, stat.st_ino)).ok();
        let Some(top) = &self.top else { return false };
        self.is_certain(|| match open_directory(top, OsStr::from_bytes(inside)) {
            Ok(now) if id(&now) == id(directory) => true,
            // Two hosts that have made a directory at once may know it by two identities. From now on it is opened by its path.
            Ok(now) => {
                let same = self.is_on_network() && lists_all_of(&now, directory).unwrap_or(true);
                if same {
                    self.close(inside);
                }
                same
            }
            // Any other error does not say that it was moved: the operations themselves will fail.
            Err(error) => !is_absent(&error) && ForeignEntry::from_error(&error).is_none(),
        })
    }

    /// Returns the stat of a directory, which differs after an entry was added or removed; or
    /// `None` if nothing has that name.
    ///
    /// Opening it makes network file systems ask the server.
    pub(crate) fn directory_stat(&self, path: &Path) -> Result<Option<FileStat>> {
        let directory = self.look("look at", path, || self.at(path, open_stat))?;
        Ok(directory.map(|(_, stat)| FileStat::from(&stat)))
    }

    /// Opens a directory to list it, and returns its device and inode; `None` if nothing has that
    /// name.
    pub(crate) fn open_directory(&self, path: &Path) -> Result<Option<(OwnedFd, FileId)>> {
        let directory = self.look("list", path, || self.at(path, open_stat))?;
        Ok(directory.map(|(directory, stat)| (directory, (stat.st_dev, stat.st_ino))))
    }

    /// Returns the paths in a directory; none if there is no such directory.
    pub(crate) fn list(&self, dir: &Path) -> Result<Vec<PathBuf>> {
        Ok(self.entries(dir)?.into_iter().map(|(name, _)| dir.join(name)).collect())
    }

    /// Returns the names in a directory, sorted, and whether each is a symbolic link; none if there
    /// is no such directory. Names that are not UTF-8 are not the storage's, and left out.
    pub(crate) fn names(&self, dir: &Path) -> Result<Vec<(String, bool)>> {
        let found = self.entries(dir)?;
        let mut names = Vec::with_capacity(found.len());
        for (name, kind) in found {
            let Ok(name) = name.into_string() else { continue };
            let is_link = match kind {
                FileType::Unknown => {
                    self.metadata(&dir.join(&name))?.is_some_and(|metadata| metadata.is_link())
                }
                kind => kind == FileType::Symlink,
            };
            names.push((name, is_link));
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Returns the names in a directory, sorted, and the kind of each; none if there is no such directory. Names that are not UTF-8
    /// are not the storage's, and left out.
    pub(crate) fn kinds(&self, dir: &Path) -> Result<Vec<(String, FileType)>> {
        let entries = self.entries(dir)?.into_iter();
        let mut kinds: Vec<(String, FileType)> =
            entries.filter_map(|(name, kind)| Some((name.into_string().ok()?, kind))).collect();
        for (name, kind) in kinds.iter_mut().filter(|(_, kind)| *kind == FileType::Unknown) {
            let path = dir.join(name);
            let stat = self.look("look at", &path, || self.at(&path, stat))?;
            *kind = stat.map_or(*kind, |stat| FileType::from_raw_mode(stat.st_mode));
        }
        kinds.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        Ok(kinds)
    }

    /// Whether a directory is empty or does not exist.
    pub(crate) fn is_empty(&self, dir: &Path) -> Result<bool> {
        self.retry(OnNotFound::Accept, |_| {
            let mut is_empty = true;
            self.each_entry(dir, |_, _| {
                is_empty = false;
                false
            })?;
            Ok(is_empty)
        })
    }

    /// Returns the names in a directory; none if there is no such directory.
    pub(super) fn entries(&self, dir: &Path) -> Result<Vec<(OsString, FileType)>> {
        self.retry(OnNotFound::Accept, |_| {
            let mut entries = Vec::new();
            self.each_entry(dir, |name, kind| {
                entries.push((name.to_owned(), kind));
                true
            })?;
            Ok(entries)
        })
    }

    /// Calls a function with each name in a directory, if that exists, until it returns false.
    fn each_entry(&self, dir: &Path, next: impl FnMut(&OsStr, FileType) -> bool) -> Result<()> {
        look_once("list", dir, || each_entry(&self.at(dir, open_listed)?, next)).map(drop)
    }

    /// Calls a function with the files below a directory, in any order, until it returns true.
    pub(crate) fn visit_files(
        &self,
        dir: &Path,
        mut visit: impl FnMut(&Path) -> bool,
    ) -> Result<()> {
        let mut directories = vec![dir.to_owned()];
        let mut found = false;
        while !found && let Some(next) = directories.pop() {
            for (name, kind) in self.entries(&next)? {
                let path = next.join(name);
                if kind == FileType::Directory {
                    directories.push(path);
                } else if visit(&path) {
                    found = true;
                    break;
                }
            }
        }
        Ok(())
    }

    /// Returns all files below a directory, relative to it and sorted.
    ///
    /// A directory with a name that ends in `.json` stands in the place of a record, and is listed
    /// like a file. Names that are not UTF-8 are not the storage's, and left out.
    pub(crate) fn walk(&self, dir: &Path) -> Result<Vec<String>> {
        self.walk_unless(dir, |_| false)
    }

    /// Does the same, but lists a directory like a file if `is_value` accepts its name.
    pub(crate) fn walk_unless(
        &self,
        dir: &Path,
        is_value: impl Fn(&OsStr) -> bool,
    ) -> Result<Vec<String>> {
        let mut files = Vec::new();
        let mut directories = vec![dir.to_owned()];
        while let Some(next) = directories.pop() {
            let mut unknown = Vec::new();
            for (name, kind) in self.entries(&next)? {
                let path = next.join(&name);
                match kind {
                    _ if name.as_bytes().ends_with(b".json") || is_value(&name) => files.push(path),
                    FileType::Directory => directories.push(path),
                    FileType::Unknown => unknown.push(path),
                    _ => files.push(path),
                }
            }
            for path in unknown {
                let is_dir = self.metadata(&path)?.is_some_and(|metadata| metadata.is_dir());
                if is_dir { directories.push(path) } else { files.push(path) }
            }
        }
        let mut files: Vec<String> = files
            .iter()
            .filter_map(|path| Some(path.strip_prefix(dir).ok()?.to_str()?.to_owned()))
            .collect();
        files.sort_unstable();
        Ok(files)
    }

    /// Creates a directory.
    pub(crate) fn make_dir(&self, path: &Path) -> Result<()> {
        self.attempt_again("make the directory", path, |again| {
            match self.again(&[path], || self.make_one(path)) {
                // It was made, and reported as not made.
                Err(error) if again && error.kind() == io::ErrorKind::AlreadyExists => {
                    let kind = FileType::from_raw_mode(self.at(path, stat)?.st_mode);
                    if kind == FileType::Directory { Ok(()) } else { Err(error) }
                }
                made => made,
            }
        })
    }

    fn make_one(&self, path: &Path) -> io::Result<()> {
        self.at(path, |dir, name| self.making(0o777, |mode| Ok(mkdirat(dir, name, mode)?)))
    }

    /// Creates a directory that only this user may enter.
    pub(crate) fn make_private_dir(&self, path: &Path) -> Result<()> {
        self.attempt_again("make the directory", path, |again| {
            let make = |dir: &OwnedFd, name: &OsStr| match mkdirat(dir, name, Mode::RWXU) {
                // It was made, and reported as not made.
                Err(Errno::EXIST) if again => Ok(()),
                made => Ok(made?),
            };
            self.again(&[path], || self.at(path, make))
        })
    }

    /// The attributes of the entry that is sealed now. It gets the owner of `like`, a directory that this run has made.
    pub(crate) fn sealing<'a>(&self, like: &Path, stop: &'a AtomicBool) -> Result<Sealing<'a>> {
        self.attempt("look at", like, || {
            Ok(Sealing::like(&*self.directory(self.inside(like)?)?, stop)?)
        })
    }

    /// Creates a directory, and all above it but the top, unless they exist.
    pub(crate) fn make_dirs(&self, path: &Path) -> Result<()> {
        self.attempt("make the directory", path, || {
            let mut missing = Vec::new();
            for dir in path.ancestors().take_while(|dir| *dir != self.root()) {
                let inside = self.inside(dir)?;
                self.close_if_removed(inside);
                match self.directory(inside) {
                    Ok(_) => break,
                    Err(error) if error.kind() == io::ErrorKind::NotFound => missing.push(dir),
                    Err(error) => return Err(error),
                }
            }
            for dir in missing.into_iter().rev() {
                match self.make_one(dir) {
                    // Another thread or process was faster.
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                        self.directory(self.inside(dir)?)?;
                    }
                    made => made?,
                }
            }
            Ok(())
        })
    }

    /// Checks that the permissions of a directory allow creating files in it.
    pub(crate) fn check_writable(&self, path: &Path) -> Result<()> {
        self.attempt("write in", path, || {
            let directory = self.directory(self.inside(path)?)?;
            Ok(accessat(directory, ".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::empty())?)
        })
    }

    /// Removes a file, or a directory with everything in it, if it exists. Does not follow links.
    pub(crate) fn remove_tree(&self, path: &Path) -> Result<()> {
        let removed = self.look("remove", path, || self.at(path, remove_tree));
        if let Ok(inside) = self.inside(path) {
            self.close(inside);
        }
        removed.map(drop)
    }
}

pub(super) fn open_stat(dir: &OwnedFd, name: &OsStr) -> io::Result<(OwnedFd, Stat)> {
    let directory = open_listed(dir, name)?;
    let stat = fstat(&directory)?;
    Ok((directory, stat))
}

/// Whether a directory lists everything that another one lists, or the server does not know the other one any more. A
/// directory that is opened for a listing shows the entries of the server.
fn lists_all_of(directory: &OwnedFd, other: &OwnedFd) -> io::Result<bool> {
    match names_in(other) {
        Err(error) if error.raw_os_error() == Some(Errno::STALE.raw_os_error()) => Ok(true),
        others => Ok(others?.is_subset(&names_in(directory)?)),
    }
}

/// The names in a directory, which is opened for that.
fn names_in(directory: &OwnedFd) -> io::Result<HashSet<OsString>> {
    let mut names = HashSet::new();
    let listed = open_listed(directory, OsStr::new("."))?;
    each_entry(&listed, |name, _| names.insert(name.to_owned()))?;
    Ok(names)
}

impl StorageError {
    /// The error of an operation on a directory at this path.
    pub fn of_directory(path: &Path, error: DirectoryError) -> Self {
        let inner = |inner: &[u8]| match inner {
            [] => path.to_owned(),
            inner => path.join(OsStr::from_bytes(inner)),
        };
        match error {
            DirectoryError::Io { path, source } => {
                Self::Io { doing: "read", path: inner(&path), source }
            }
            DirectoryError::Write { path, source } => {
                Self::Io { doing: "write", path: inner(&path), source }
            }
            DirectoryError::Interrupted => Self::Interrupted,
            source => Self::Directory { path: path.to_owned(), source: Box::new(source) },
        }
    }
}

/// The error of making everything in a directory at this path read-only.
fn unsealed(path: &Path, error: DirectoryError) -> StorageError {
    match StorageError::of_directory(path, error) {
        StorageError::Io { path, source, .. } => {
            StorageError::Io { doing: "make read-only", path, source }
        }
        error => error,
    }
}

impl Disk {
    /// Looks at a published file, or at a directory with everything in it. Returns `None` if nothing has that name.
    pub(crate) fn see(&self, path: &Path, stop: &AtomicBool) -> Result<Option<ValueMetadata>> {
        match self.metadata(path)? {
            None => Ok(None),
            Some(metadata) if metadata.is_file() => Ok(Some(ValueMetadata::File(metadata))),
            Some(metadata) if metadata.is_dir() => {
                let scan = self.scan(path, stop)?.map(Scan::linked);
                Ok(scan.map(|scan| ValueMetadata::Directory(scan, metadata)))
            }
            Some(_) => Ok(Some(ValueMetadata::Other)),
        }
    }

    /// Walks through a directory. Returns `None` if no directory has that name.
    pub(crate) fn scan(&self, path: &Path, stop: &AtomicBool) -> Result<Option<Scan>> {
        self.retry(OnNotFound::Accept, |_| {
            let Some((top, _)) = self.open_directory(path)? else { return Ok(None) };
            Scan::walk(top, stop).map(Some).map_err(|error| StorageError::of_directory(path, error))
        })
    }

    /// Makes a directory read-only, but not its top, so that it can be moved. With a `sealing`, the entry was made by a
    /// computation, and gets these attributes.
    pub(crate) fn seal_directory(
        &self,
        path: &Path,
        mut sealing: Option<&mut Sealing<'_>>,
    ) -> Result<()> {
        self.retry(OnNotFound::Retry, |_| {
            self.attempt("make read-only", path, || {
                self.at(path, |dir, name| allow(dir, name, 0o700))
            })?;
            let Some((top, _)) = self.open_directory(path)? else {
                return Err(io::Error::from(Errno::NOENT)).context("make read-only", path);
            };
            let made = sealing.as_deref_mut().map_or(Made::Here, Made::ByComputation);
            manifest::seal(&top, self.shared.unwrap_or(0), made)
                .map_err(|error| unsealed(path, error))
        })
    }

    /// Copies a directory into a new one. Returns the manifest of the copy. All of the copy but its top is read-only.
    pub(crate) fn copy_directory(
        &self,
        scan: &Scan,
        to: &Path,
        stop: &AtomicBool,
        done: &AtomicU64,
    ) -> Result<Manifest> {
        let manifest = self.filling(to, || {
            let (top, _) = self.attempt("write", to, || self.at(to, open_stat))?;
            scan.copy(&top, stop, done).map_err(|error| StorageError::of_directory(to, error))
        })?;
        self.seal_directory(to, None)?;
        Ok(manifest)
    }

    /// Does the same for a directory with this manifest. Files that are equal to files of an earlier directory of the
    /// storage become links to them.
    pub(crate) fn copy_sharing(
        &self,
        scan: &Scan,
        manifest: &Manifest,
        earlier: EarlierDirectory<'_>,
        to: &Path,
        stop: &AtomicBool,
        done: &AtomicU64,
    ) -> Result<Manifest> {
        self.filling(to, || {
            let (top, directory) = self.attempt("write", to, || {
                Ok((self.at(to, open_stat)?.0, self.at(earlier.path, open_stat)?.0))
            })?;
            let copied = scan
                .copy_sharing(&top, manifest, &directory, earlier.manifest, stop, done)
                .map_err(|error| StorageError::of_directory(to, error))?;
            manifest::seal(&top, self.shared.unwrap_or(0), Made::Here)
                .map_err(|error| unsealed(to, error))?;
            Ok(copied)
        })
    }

    /// Unpacks an archive into a new directory, whose files are read-only. Returns false if the file system cannot hold it.
    pub(crate) fn unpack(&self, archive: &DirectoryArchive<'_>, to: &Path) -> Result<bool> {
        self.filling(to, || {
            let top = self.attempt("write", to, || Ok(self.at(to, open_stat)?.0))?;
            match archive.unpack(&top) {
                Ok(()) => Ok(true),
                Err(error) if error.is_of_names() => Ok(false),
                Err(error) => Err(StorageError::of_directory(to, error.writing())),
            }
        })
    }

    /// Does the same with the archive of the directory with this digest, piece by piece. Also returns false if it is
    /// another directory.
    pub(crate) fn unpack_object(
        &self,
        archive: &mut dyn Read,
        digest: &Digest,
        to: &Path,
    ) -> Result<bool> {
        self.make_dir(to)?;
        let top = self.attempt("write", to, || Ok(self.at(to, open_stat)?.0))?;
        match DirectoryArchive::unpack_from(archive, digest, &top) {
            Ok(is_recorded) => Ok(is_recorded),
            Err(error) if error.is_of_names() => Ok(false),
            Err(error) => Err(StorageError::of_directory(to, error.writing())),
        }
    }

    /// Makes a directory of this run's own, and fills it. A retry starts over.
    fn filling<T>(&self, to: &Path, mut fill: impl FnMut() -> Result<T>) -> Result<T> {
        self.retry(OnNotFound::Accept, |again| {
            if again {
                self.remove_tree(to)?;
            }
            self.make_dir(to)?;
            fill()
        })
    }

    /// Makes a directory of this run's own read-only, but not its top. Files in it may be links to files of other
    /// results, which are read-only already.
    pub(crate) fn seal_trusted(&self, path: &Path) -> Result<()> {
        self.retry(OnNotFound::Accept, |_| {
            let top = self.attempt("make read-only", path, || Ok(self.at(path, open_stat)?.0))?;
            manifest::seal(&top, self.shared.unwrap_or(0), Made::Here)
                .map_err(|error| unsealed(path, error))
        })
    }

    /// Whether a directory itself is read-only.
    pub(crate) fn is_sealed(&self, metadata: &Metadata) -> bool {
        let mode = metadata.mode();
        manifest::sealed_directory(mode, self.shared.unwrap_or(0)) == mode
    }

    /// Makes a directory itself read-only, once it is in its place.
    pub(crate) fn seal_top(&self, path: &Path) -> Result<()> {
        let set = self.look("make read-only", path, || {
            match self.at(path, |dir, name| {
                set_mode(dir, name, |mode| {
                    manifest::sealed_directory(mode, self.shared.unwrap_or(0))
                })
            }) {
                // It is a link to a directory that was made elsewhere.
                Err(error) if ForeignEntry::from_error(&error) == Some(ForeignEntry::Link) => {
                    Ok(())
                }
                set => set,
            }
        });
        // Another run may have moved it.
        set.map(drop)
    }

    /// Returns the target of a symbolic link; `None` if no link has that name.
    pub(crate) fn link_target(&self, path: &Path) -> Result<Option<PathBuf>> {
        match self.look("read the link", path, || self.target_now(path)) {
            // It is something else.
            Err(StorageError::Io { source, .. })
                if source.kind() == io::ErrorKind::InvalidInput =>
            {
                Ok(None)
            }
            target => target,
        }
    }

    /// The target of a symbolic link.
    pub(super) fn target_now(&self, path: &Path) -> io::Result<PathBuf> {
        let target = self.at(path, |dir, name| Ok(readlinkat(dir, name, Vec::new())?))?;
        Ok(OsStr::from_bytes(target.as_bytes()).into())
    }
}
