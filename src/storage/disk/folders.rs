//! Directories of the storage: listing, making, removing.

use std::ffi::{CStr, OsStr, OsString};
use std::fs::DirBuilder;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    Access, AtFlags, FileType, Mode, OFlags, RawDir, accessat, fchmod, mkdirat, openat, renameat,
    statat, unlinkat,
};
use rustix::io::Errno;

use super::files::allow;
use super::{Disk, Doing, FileId, NotOwn, Result, fault, found};
use crate::cache::FileStat;

/// How a directory is opened that is to be listed.
const LISTED: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// How many directories inside each other are open while a tree is removed.
const DEEP: usize = 32;

/// Makes a directory by its path, and all above it, unless they are there: a storage.
pub(crate) fn make_dirs(path: &Path) -> Result<()> {
    let made = fault().and_then(|()| DirBuilder::new().recursive(true).create(path));
    made.doing("make the directory", path)
}

impl Disk {
    /// Returns what shows that something was added to a directory, or taken away; or `None` if
    /// nothing has that name.
    ///
    /// It is opened, which lets network file systems ask for what is true now.
    pub(in crate::storage) fn directory_stat(&self, path: &Path) -> Result<Option<FileStat>> {
        let look = || {
            let directory = self.at(path, open_listed)?;
            Ok(FileStat::from(&rustix::fs::fstat(directory)?))
        };
        found(fault().and_then(|()| look())).doing("look at", path)
    }

    /// Opens a directory to list it, and returns which one it is; `None` if nothing has that name.
    pub(in crate::storage) fn open_directory(
        &self,
        path: &Path,
    ) -> Result<Option<(OwnedFd, FileId)>> {
        let open = || {
            let directory = self.at(path, open_listed)?;
            let stat = rustix::fs::fstat(&directory)?;
            Ok((directory, (stat.st_dev, stat.st_ino)))
        };
        found(fault().and_then(|()| open())).doing("list", path)
    }

    /// Returns the paths in a directory, or nothing if there is no such directory.
    pub(crate) fn list(&self, dir: &Path) -> Result<Vec<PathBuf>> {
        let mut paths = Vec::new();
        self.each_entry(dir, |name, _| {
            paths.push(dir.join(name));
            true
        })?;
        Ok(paths)
    }

    /// Returns the names in a directory, sorted, or nothing if there is no such directory; each with
    /// whether it is a symbolic link. Names that are no text are none of the storage's, and left out.
    pub(in crate::storage) fn names(&self, dir: &Path) -> Result<Vec<(String, bool)>> {
        let mut found = Vec::new();
        self.each_entry(dir, |name, kind| {
            found.extend(name.to_str().map(|name| (name.to_owned(), kind)));
            true
        })?;
        let mut names = Vec::with_capacity(found.len());
        for (name, kind) in found {
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

    /// Whether a directory holds nothing, or is not there.
    pub(in crate::storage) fn is_empty(&self, dir: &Path) -> Result<bool> {
        let mut is_empty = true;
        self.each_entry(dir, |_, _| {
            is_empty = false;
            false
        })?;
        Ok(is_empty)
    }

    /// Passes each name in a directory, unless that is not there, to a function that says whether to
    /// go on.
    fn each_entry(&self, dir: &Path, next: impl FnMut(&OsStr, FileType) -> bool) -> Result<()> {
        let list = |()| each_entry(&self.at(dir, open_listed)?, next);
        found(fault().and_then(list)).doing("list", dir).map(drop)
    }

    /// Passes the files below a directory, in any order, to a function that says which is the last.
    pub(in crate::storage) fn find_file(
        &self,
        dir: &Path,
        mut is_last: impl FnMut(&Path) -> bool,
    ) -> Result<()> {
        let mut directories = vec![dir.to_owned()];
        let mut found = false;
        while !found && let Some(next) = directories.pop() {
            self.each_entry(&next, |name, kind| {
                let path = next.join(name);
                if kind == FileType::Directory {
                    directories.push(path);
                } else {
                    found = is_last(&path);
                }
                !found
            })?;
        }
        Ok(())
    }

    /// Returns all files below a directory, relative to it and sorted.
    ///
    /// A directory whose name ends in `.json` stands in the place of a record, and is listed like a
    /// file. Names that are no text are none of the storage's, and left out.
    pub(crate) fn walk(&self, dir: &Path) -> Result<Vec<String>> {
        let mut files = Vec::new();
        let mut directories = vec![dir.to_owned()];
        while let Some(next) = directories.pop() {
            let mut unknown = Vec::new();
            self.each_entry(&next, |name, kind| {
                match kind {
                    _ if name.as_bytes().ends_with(b".json") => files.push(next.join(name)),
                    FileType::Directory => directories.push(next.join(name)),
                    FileType::Unknown => unknown.push(next.join(name)),
                    _ => files.push(next.join(name)),
                }
                true
            })?;
            for path in unknown {
                let is_dir = self.metadata(&path)?.is_some_and(|metadata| metadata.is_dir());
                if is_dir { directories.push(path) } else { files.push(path) }
            }
        }
        let name = |path: &PathBuf| Some(path.strip_prefix(dir).ok()?.to_str()?.to_owned());
        let mut files: Vec<String> = files.iter().filter_map(name).collect();
        files.sort_unstable();
        Ok(files)
    }

    /// Makes a directory that is not there yet.
    pub(crate) fn make_dir(&self, path: &Path) -> Result<()> {
        let make = || self.again(&[path], || self.make_one(path));
        fault().and_then(|()| make()).doing("make the directory", path)
    }

    fn make_one(&self, path: &Path) -> io::Result<()> {
        self.at(path, |dir, name| {
            mkdirat(dir, name, Mode::from_raw_mode(0o777))?;
            if let Some(shared) = self.shared {
                let made = openat(dir, name, LISTED, Mode::empty())?;
                fchmod(made, Mode::from_raw_mode(0o700 | shared))?;
            }
            Ok(())
        })
    }

    /// Makes a directory, and all above it but the top, unless they are there.
    pub(crate) fn make_dirs(&self, path: &Path) -> Result<()> {
        let is_there = |dir: &Path| {
            let inside = self.inside(dir)?;
            self.close_if_removed(inside);
            match self.directory(inside) {
                Ok(_) => Ok(true),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
                Err(error) => Err(error),
            }
        };
        let make = || {
            let mut missing = Vec::new();
            for dir in path.ancestors().take_while(|dir| *dir != self.root()) {
                if is_there(dir)? {
                    break;
                }
                missing.push(dir);
            }
            for dir in missing.into_iter().rev() {
                match self.make_one(dir) {
                    // Somebody else was faster.
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                        self.inside(dir).and_then(|it| self.directory(it)).map(drop)?;
                    }
                    made => made?,
                }
            }
            Ok(())
        };
        fault().and_then(|()| make()).doing("make the directory", path)
    }

    /// Checks that files can be made in a directory, as far as rights tell.
    pub(in crate::storage) fn check_writable(&self, path: &Path) -> Result<()> {
        let check = || {
            let directory = self.inside(path).and_then(|inside| self.directory(inside))?;
            Ok(accessat(directory, ".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::empty())?)
        };
        fault().and_then(|()| check()).doing("write in", path)
    }

    /// Removes whatever has this name, with everything in it if it is a directory. Of a link, not
    /// what it leads to.
    pub(crate) fn remove_tree(&self, path: &Path) -> Result<()> {
        let removed = found(fault().and_then(|()| self.at(path, remove_tree)));
        if let Ok(inside) = self.inside(path) {
            self.close(inside);
        }
        removed.doing("remove", path).map(drop)
    }
}

fn open_listed(dir: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
    match openat(dir, name, LISTED, Mode::empty()) {
        Err(error @ (Errno::LOOP | Errno::NOTDIR)) => {
            let stat = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
            let is_link = FileType::from_raw_mode(stat.st_mode) == FileType::Symlink;
            Err(if is_link { NotOwn::Link.into() } else { error.into() })
        }
        opened => Ok(opened?),
    }
}

/// Passes each name in an open directory to a function that says whether to go on.
fn each_entry(dir: &OwnedFd, mut next: impl FnMut(&OsStr, FileType) -> bool) -> io::Result<()> {
    let mut room = [const { MaybeUninit::uninit() }; 4096];
    let mut entries = RawDir::new(dir, &mut room);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        if !is_own(entry.file_name()) && !next(os(entry.file_name()), entry.file_type()) {
            break;
        }
    }
    Ok(())
}

/// Whether a name is the directory's own, or that of the one above it.
fn is_own(name: &CStr) -> bool {
    matches!(name.to_bytes(), b"." | b"..")
}

fn os(name: &CStr) -> &OsStr {
    OsStr::from_bytes(name.to_bytes())
}

/// A directory that is being removed.
struct Removed {
    directory: OwnedFd,
    /// Its name in the directory above.
    name: OsString,
    /// The names that are still in it.
    left: Vec<OsString>,
}

impl Removed {
    fn open(above: &OwnedFd, name: &OsStr) -> io::Result<Self> {
        let directory = open_writable(above, name)?;
        let mut left = Vec::new();
        each_entry(&directory, |name, _| {
            left.push(name.to_owned());
            true
        })?;
        Ok(Self { directory, name: name.to_owned(), left })
    }
}

/// Removes a tree. However deep it is, few directories are open: what is deeper is first moved up.
fn remove_tree(parent: &OwnedFd, name: &OsStr) -> io::Result<()> {
    if remove_leaf(parent, name)? {
        return Ok(());
    }
    let mut open = vec![Removed::open(parent, name)?];
    let mut moved = 0_u64;
    while let Some(mut here) = open.pop() {
        let Some(name) = here.left.pop() else {
            let above = open.last().map_or(parent, |above| &above.directory);
            absent(unlinkat(above, &*here.name, AtFlags::REMOVEDIR))?;
            continue;
        };
        if remove_leaf(&here.directory, &name)? {
            open.push(here);
        } else if open.len() < DEEP {
            let inner = Removed::open(&here.directory, &name)?;
            open.extend([here, inner]);
        } else {
            let top = &mut open[0];
            top.left.push(move_up(&here.directory, &name, &top.directory, &mut moved)?);
            open.push(here);
        }
    }
    Ok(())
}

/// Moves a directory to another one, under a name that nothing has there; returns that.
fn move_up(from: &OwnedFd, name: &OsStr, to: &OwnedFd, moved: &mut u64) -> io::Result<OsString> {
    // It must be writable, since its entry for the directory above it changes.
    drop(open_writable(from, name)?);
    loop {
        let free = OsString::from(format!(".removed-{moved}"));
        *moved += 1;
        match statat(to, &*free, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return absent(renameat(from, name, to, &*free)).map(|()| free),
            looked => drop(looked?),
        }
    }
}

/// Removes what has this name, unless it is a directory with something in it; returns whether it is
/// gone.
fn remove_leaf(dir: &OwnedFd, name: &OsStr) -> io::Result<bool> {
    let removed = match unlinkat(dir, name, AtFlags::empty()) {
        Err(error @ (Errno::ISDIR | Errno::PERM)) => {
            match unlinkat(dir, name, AtFlags::REMOVEDIR) {
                Err(Errno::NOTEMPTY | Errno::EXIST) => return Ok(false),
                Err(Errno::NOTDIR) => Err(error),
                removed => removed,
            }
        }
        removed => removed,
    };
    absent(removed).map(|()| true)
}

/// Opens a directory to remove what is in it, which its maker may have forbidden.
fn open_writable(dir: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
    let opened = match openat(dir, name, LISTED, Mode::empty()) {
        Err(Errno::ACCESS) => {
            allow(dir, name, 0o700)?;
            openat(dir, name, LISTED, Mode::empty())?
        }
        opened => opened?,
    };
    let mode = rustix::fs::fstat(&opened)?.st_mode & 0o7777;
    if mode & 0o700 != 0o700 {
        // Of somebody else's directory the mode cannot be changed, and need not be the reason.
        let _refused = fchmod(&opened, Mode::from_raw_mode(mode | 0o700));
    }
    Ok(opened)
}

/// Treats a file that is gone already as removed.
fn absent(removed: Result<(), Errno>) -> io::Result<()> {
    match removed {
        Err(Errno::NOENT) => Ok(()),
        removed => Ok(removed?),
    }
}
