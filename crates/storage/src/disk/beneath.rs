//! Opening directories below another one, through no symbolic link.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, openat, openat2, statat};
use rustix::io::Errno;
use rustix::path::Arg;

/// The flags to open a directory only as the base of further operations.
const PLACE: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// The number of attempts to open a directory while directories are moved.
const MAX_ATTEMPTS: usize = 10;

/// An entry with a name of the storage that is not the storage's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotOwn {
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

impl From<NotOwn> for io::Error {
    fn from(error: NotOwn) -> Self {
        Self::other(error)
    }
}

impl NotOwn {
    /// The `NotOwn` that an error wraps, if it does.
    pub(crate) fn of(error: &io::Error) -> Option<Self> {
        error.get_ref()?.downcast_ref().copied()
    }

    /// The `NotOwn` of a file of this type, unless it is a plain file.
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
            Err(Errno::LOOP) => return Err(NotOwn::Link.into()),
            Err(Errno::XDEV) => return Err(NotOwn::Outside.into()),
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
            return Err(NotOwn::Outside.into());
        }
        let above = here.as_ref().unwrap_or(top);
        here = match openat(above, part, PLACE | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(opened) => Some(opened),
            Err(_) if is_link(above, part) => return Err(NotOwn::Link.into()),
            Err(error) => return Err(error.into()),
        };
    }
    here.ok_or_else(|| NotOwn::Outside.into())
}

/// Whether a name in a directory is that of a symbolic link.
pub(super) fn is_link(dir: &OwnedFd, name: impl Arg) -> bool {
    statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use rustix::fs::{CWD, fstat};

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
            let wrong = |inside: &str| NotOwn::of(&way(&top, OsStr::new(inside)).unwrap_err());
            for link in ["a/link", "a/link/below", "a/near", "a/near/c"] {
                assert_eq!(wrong(link), Some(NotOwn::Link), "{link}");
            }
            for out in ["../x", "a/../../x", "/etc"] {
                assert_eq!(wrong(out), Some(NotOwn::Outside), "{out}");
            }
            for (inside, error) in [("a/none", Errno::NOENT), ("a/file", Errno::NOTDIR)] {
                let found = way(&top, OsStr::new(inside)).unwrap_err().raw_os_error();
                assert_eq!(found, Some(error.raw_os_error()), "{inside}");
            }
        }
    }
}
