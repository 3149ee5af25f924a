//! Directories of a work tree, and what is in them, without going long ways.

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
use super::source::MOST;

/// A directory: its real path, and how it was reached.
#[derive(Debug)]
pub(super) struct DirHandle {
    /// The path, which is absolute and has no links.
    pub(super) path: PathBuf,
    /// The directory that it is in, if it was reached from there.
    around: Option<Rc<Self>>,
    /// How many directories lead to it.
    depth: usize,
    /// The directory itself, open once something was asked for in it.
    handle: OnceCell<OwnedFd>,
    /// It was listed.
    listed: Cell<bool>,
}

/// What is in deeper directories is looked for from the root of the file system, so that there are not
/// too many that are open.
const DEEPEST: usize = 100;

const FLAGS: OFlags = OFlags::CLOEXEC.union(OFlags::NONBLOCK).union(OFlags::NOFOLLOW);

impl DirHandle {
    /// A directory with this real path.
    pub(super) fn new(path: PathBuf, depth: usize) -> Rc<Self> {
        let (handle, listed) = (OnceCell::new(), Cell::new(false));
        Rc::new(Self { path, around: None, depth, handle, listed })
    }

    /// A directory that is in this one, and no link.
    pub(super) fn within(self: &Rc<Self>, name: &str) -> Rc<Self> {
        let (path, around) = (self.path.join(name), Some(Rc::clone(self)));
        let (handle, listed) = (OnceCell::new(), Cell::new(false));
        Rc::new(Self { path, around, depth: self.depth + 1, handle, listed })
    }

    /// A directory that a link in this one leads to.
    pub(super) fn linked(&self, path: PathBuf) -> Rc<Self> {
        Self::new(path, self.depth + 1)
    }

    /// Tells what has this name here; of a link, the link.
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
            // Whoever lists again begins again.
            Some(handle) if self.listed.replace(true) => {
                seek(handle, SeekFrom::Start(0)).and_then(|_| names(handle))
            }
            Some(handle) => names(handle),
            None => open(CWD, &self.path, OFlags::DIRECTORY).and_then(names),
        };
        listed.map_err(fault)
    }

    /// Returns the contents of a small file here; nothing if it is a link.
    pub(super) fn read(&self, name: &str) -> Result<Option<Vec<u8>>, LoadFault> {
        let file = match self.handle() {
            Some(handle) => open(handle, Path::new(name), OFlags::empty()),
            None => open(CWD, &self.path.join(name), OFlags::empty()),
        };
        match file {
            Ok(file) => contents(file).map(Some),
            Err(Errno::LOOP) => Ok(None),
            // A socket, or a device that is not there.
            Err(Errno::NXIO) => Err(LoadFault::NotAFile),
            Err(error) => Err(fault(error)),
        }
    }

    /// The open directory, unless it is too deep or cannot be opened: whoever goes by its path is told
    /// why.
    fn handle(&self) -> Option<BorrowedFd<'_>> {
        if self.depth > DEEPEST {
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

/// Reads a file that has a real path.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, LoadFault> {
    contents(open(CWD, path, OFlags::empty()).map_err(fault)?)
}

fn contents(file: OwnedFd) -> Result<Vec<u8>, LoadFault> {
    let stat = fstat(&file).map_err(fault)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(LoadFault::NotAFile);
    }
    let size = stat.st_size.unsigned_abs();
    if size > MOST {
        return Err(LoadFault::too_large());
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
