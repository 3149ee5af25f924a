//! Open directories of a work tree. Entries are accessed relative to them, since the paths may be
//! long.

use std::cell::{Cell, OnceCell};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, RawDir, SeekFrom, Stat, fstat, openat, seek, statat,
};
use rustix::io::Errno;

use super::problems::LoadFault;

/// A directory: its real path, and how it was reached.
#[derive(Debug)]
pub(super) struct DirHandle {
    /// The path, which is absolute and has no links.
    pub(super) path: PathBuf,
    /// The directory above, if it was reached from there.
    around: Option<Rc<Self>>,
    /// The number of directories on the way to it.
    depth: usize,
    /// The open directory, once an entry was accessed.
    handle: OnceCell<OwnedFd>,
    /// Whether it was listed.
    listed: Cell<bool>,
}

/// Deeper directories are not kept open, to limit the number of open files. Their entries are
/// accessed by absolute paths.
const MAX_DEPTH: usize = 100;

const FLAGS: OFlags = OFlags::CLOEXEC.union(OFlags::NONBLOCK).union(OFlags::NOFOLLOW);

impl DirHandle {
    /// A directory with this real path.
    pub(super) fn new(path: PathBuf, depth: usize) -> Rc<Self> {
        Rc::new(Self {
            path,
            around: None,
            depth,
            handle: OnceCell::new(),
            listed: Cell::new(false),
        })
    }

    /// A directory in this one, which is not a link.
    pub(super) fn within(self: &Rc<Self>, name: &str) -> Rc<Self> {
        Rc::new(Self {
            path: self.path.join(name),
            around: Some(Rc::clone(self)),
            depth: self.depth + 1,
            handle: OnceCell::new(),
            listed: Cell::new(false),
        })
    }

    /// A directory that a link in this one leads to.
    pub(super) fn linked(&self, path: PathBuf) -> Rc<Self> {
        Self::new(path, self.depth + 1)
    }

    /// Returns the stat of an entry. Does not follow a link.
    pub(super) fn look(&self, name: &str) -> Result<Stat, LoadFault> {
        let stat = match self.handle() {
            Some(handle) => statat(handle, name, AtFlags::SYMLINK_NOFOLLOW),
            None => statat(CWD, self.path.join(name), AtFlags::SYMLINK_NOFOLLOW),
        };
        stat.map_err(fault)
    }

    /// Lists the names here, in any order.
    pub(super) fn list(&self) -> Result<Vec<OsString>, LoadFault> {
        let listed = match self.handle() {
            // A second listing starts at the beginning.
            Some(handle) if self.listed.replace(true) => {
                seek(handle, SeekFrom::Start(0)).and_then(|_| names(handle))
            }
            Some(handle) => names(handle),
            None => open(CWD, &self.path, OFlags::DIRECTORY).and_then(names),
        };
        listed.map_err(fault)
    }

    /// Returns the contents of a file here of at most so many bytes; `None` if it is a link.
    pub(super) fn read(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>, LoadFault> {
        let file = match self.handle() {
            Some(handle) => open(handle, Path::new(name), OFlags::empty()),
            None => open(CWD, &self.path.join(name), OFlags::empty()),
        };
        match file {
            Ok(file) => contents(file, most).map(Some),
            Err(Errno::LOOP) => Ok(None),
            // A socket, or a device without a driver.
            Err(Errno::NXIO) => Err(LoadFault::NotAFile),
            Err(error) => Err(fault(error)),
        }
    }

    /// The open directory. `None` if it is too deep or cannot be opened; access by its path reports
    /// the error.
    fn handle(&self) -> Option<BorrowedFd<'_>> {
        if self.depth > MAX_DEPTH {
            return None;
        }
        if self.handle.get().is_none() {
            let around = self.around.as_ref().and_then(|around| around.handle());
            let handle = match (around, self.path.file_name()) {
                (Some(around), Some(name)) => open(around, Path::new(name), OFlags::DIRECTORY),
                _ => open(CWD, &self.path, OFlags::DIRECTORY),
            };
            self.handle.set(handle.ok()?).ok()?;
        }
        self.handle.get().map(AsFd::as_fd)
    }
}

/// The names in an open directory.
fn names(directory: impl AsFd) -> Result<Vec<OsString>, Errno> {
    let mut room = [const { MaybeUninit::uninit() }; 4096];
    let mut entries = RawDir::new(directory, &mut room);
    let mut names = Vec::new();
    while let Some(entry) = entries.next() {
        match entry?.file_name().to_bytes() {
            b"." | b".." => {}
            name => names.push(OsStr::from_bytes(name).to_owned()),
        }
    }
    Ok(names)
}

/// Reads a file of at most so many bytes with this real path.
pub(super) fn read(path: &Path, most: u64) -> Result<Vec<u8>, LoadFault> {
    contents(open(CWD, path, OFlags::empty()).map_err(fault)?, most)
}

fn contents(file: OwnedFd, most: u64) -> Result<Vec<u8>, LoadFault> {
    let stat = fstat(&file).map_err(fault)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(LoadFault::NotAFile);
    }
    let size = stat.st_size.unsigned_abs();
    if size > most {
        return Err(LoadFault::too_large(most));
    }
    let mut contents = vec![0; size as usize];
    File::from(file).read_exact(&mut contents).map_err(LoadFault::read)?;
    Ok(contents)
}

fn open(around: impl AsFd, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    openat(around, path, flags | FLAGS, Mode::empty())
}

fn fault(error: Errno) -> LoadFault {
    LoadFault::read(error.into())
}
