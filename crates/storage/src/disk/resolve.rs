//! Path resolution: directories are opened relative to another one and through no symbolic link.
//!
//! Also detects open directories that were moved or replaced.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2, statat};
use rustix::io::Errno;
use rustix::path::Arg;

use super::{Disk, is_absent};

/// The flags to open a directory only as the base of further operations.
const PLACE: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// The number of attempts to open a directory while directories are moved.
const MAX_ATTEMPTS: usize = 10;

/// An entry with a name of the storage that is not the storage's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ForeignEntry {
    /// A path leads out of the storage.
    #[error("it is not below the storage")]
    Outside,
    /// It is, or is behind, a symbolic link.
    #[error("it is a symbolic link, or behind one")]
    Link,
    /// It is larger than any file that is read into memory.
    #[error("it is too large")]
    TooLarge,
    /// It is neither a file nor a directory.
    #[error("it is {0}, not a plain file")]
    Kind(&'static str),
}

impl From<ForeignEntry> for io::Error {
    fn from(error: ForeignEntry) -> Self {
        Self::other(error)
    }
}

impl ForeignEntry {
    /// The `ForeignEntry` that an error wraps, if it does.
    pub(crate) fn of(error: &io::Error) -> Option<Self> {
        error.get_ref()?.downcast_ref().copied()
    }

    /// The `ForeignEntry` of a file of this type, unless it is a plain file.
    pub(super) fn of_type(kind: FileType) -> Option<Self> {
        Some(match kind {
            FileType::RegularFile => return None,
            FileType::Symlink => Self::Link,
            FileType::Directory => Self::Kind("a directory"),
            FileType::Fifo => Self::Kind("a FIFO"),
            FileType::Socket => Self::Kind("a socket"),
            FileType::CharacterDevice | FileType::BlockDevice => Self::Kind("a device"),
            FileType::Unknown => Self::Kind("something unknown"),
        })
    }
}

/// Opens a directory below another one.
pub(super) fn open(top: &OwnedFd, inside: &OsStr) -> io::Result<OwnedFd> {
    /// Whether the kernel has no `openat2` (before Linux 5.6), or forbids it to this process.
    static MISSING: AtomicBool = AtomicBool::new(false);
    if !MISSING.load(Ordering::Relaxed) {
        match open_at_once(top, inside) {
            Err(Errno::NOSYS | Errno::PERM) => MISSING.store(true, Ordering::Relaxed),
            Err(Errno::LOOP) => return Err(ForeignEntry::Link.into()),
            Err(Errno::XDEV) => return Err(ForeignEntry::Outside.into()),
            opened => return Ok(opened?),
        }
    }
    open_step_by_step(top, inside)
}

fn open_at_once(top: &OwnedFd, inside: &OsStr) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    for _ in 0..MAX_ATTEMPTS {
        match openat2(top, inside, PLACE, Mode::empty(), resolve) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            opened => return opened,
        }
    }
    Err(Errno::AGAIN)
}

/// Opens a directory below another one without `openat2`, one component at a time.
fn open_step_by_step(top: &OwnedFd, inside: &OsStr) -> io::Result<OwnedFd> {
    let mut here: Option<OwnedFd> = None;
    for part in inside.as_bytes().split(|byte| *byte == b'/') {
        if part.is_empty() || part == b".." {
            return Err(ForeignEntry::Outside.into());
        }
        let above = here.as_ref().unwrap_or(top);
        here = match openat(above, part, PLACE | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(opened) => Some(opened),
            Err(_) if is_link(above, part) => return Err(ForeignEntry::Link.into()),
            Err(error) => return Err(error.into()),
        };
    }
    here.ok_or_else(|| ForeignEntry::Outside.into())
}

/// Whether a name in a directory is that of a symbolic link.
pub(super) fn is_link(dir: &OwnedFd, name: impl Arg) -> bool {
    statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
}

impl Disk {
    /// Whether the path of the top directory still leads to the one that was opened.
    pub(crate) fn is_in_place(&self) -> bool {
        self.is_certain(|| match rustix::fs::stat(&self.root) {
            Ok(stat) => self.id == Some((stat.st_dev, stat.st_ino)),
            // Any other error counts as "the same": the operations themselves will fail.
            Err(error) => self.id.is_some() && error != Errno::NOENT,
        })
    }

    /// Whether something holds that should: if it does not, that may be an old answer.
    fn is_certain(&self, holds: impl Fn() -> bool) -> bool {
        self.surely(|| Ok(holds().then_some(()))).is_ok_and(|found| found.is_some())
    }

    /// Returns the path of an open directory that leads to another directory now, if there is one
    /// among those that stay.
    pub(crate) fn moved(&self, stays: impl Fn(&[u8]) -> bool) -> Option<PathBuf> {
        let known = self.directories.read().unwrap_or_else(PoisonError::into_inner);
        // It may be that they are asked for again, and closed meanwhile.
        let known: Vec<_> = known
            .iter()
            .filter(|(inside, _)| stays(inside))
            .map(|(inside, directory)| (inside.clone(), Arc::clone(directory)))
            .collect();
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
        self.is_certain(|| match open(top, OsStr::from_bytes(inside)) {
            Ok(now) => id(&now) == id(directory),
            // Any other error does not say that it was moved: the operations themselves will fail.
            Err(error) => !is_absent(&error) && ForeignEntry::of(&error).is_none(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use rustix::fs::CWD;

    use super::*;

    /// Both ways to open a directory, which are to agree.
    const WAYS: [fn(&OwnedFd, &OsStr) -> io::Result<OwnedFd>; 2] = [open, open_step_by_step];

    #[test]
    fn no_way_leads_through_a_link_or_out() {
        let outside = tempfile::tempdir().unwrap();
        fs::create_dir(outside.path().join("below")).unwrap();
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("a/b/c")).unwrap();
        fs::write(dir.path().join("a/file"), "").unwrap();
        symlink(outside.path(), dir.path().join("a/link")).unwrap();
        symlink("b", dir.path().join("a/near")).unwrap();
        let top = openat(CWD, dir.path(), OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap();
        for way in WAYS {
            let opened = way(&top, OsStr::new("a/b/c")).unwrap();
            let inode = fs::metadata(dir.path().join("a/b/c")).unwrap();
            assert_eq!(fstat(&opened).unwrap().st_ino, std::os::unix::fs::MetadataExt::ino(&inode));
            let wrong =
                |inside: &str| ForeignEntry::of(&way(&top, OsStr::new(inside)).unwrap_err());
            for link in ["a/link", "a/link/below", "a/near", "a/near/c"] {
                assert_eq!(wrong(link), Some(ForeignEntry::Link), "{link}");
            }
            for out in ["../x", "a/../../x", "/etc"] {
                assert_eq!(wrong(out), Some(ForeignEntry::Outside), "{out}");
            }
            for (inside, error) in [("a/none", Errno::NOENT), ("a/file", Errno::NOTDIR)] {
                let found = way(&top, OsStr::new(inside)).unwrap_err().raw_os_error();
                assert_eq!(found, Some(error.raw_os_error()), "{inside}");
            }
        }
    }
}
