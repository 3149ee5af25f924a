//! Files and directories beneath an open directory: no path leads out of it or through a symbolic link.
//!
//! The storage, and directories that are written for people, are reached in no other way.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RawDir, ResolveFlags, fchmod, fstat, openat, openat2,
    renameat, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::path::Arg;

use crate::is_leased;

/// The flags to open a directory only as the base of further operations.
const PLACE: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// The number of attempts to open a directory while directories are moved.
const MAX_ATTEMPTS: usize = 10;

/// An entry that stands where a storage, or a directory that is written for people, has one of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ForeignEntry {
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
    pub fn from_error(error: &io::Error) -> Option<Self> {
        error.get_ref()?.downcast_ref().copied()
    }

    /// The `ForeignEntry` of a file of this type, unless it is a plain file.
    pub fn of_type(kind: FileType) -> Option<Self> {
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

/// Returns a hint for the user of a storage about an error of an operation on its files, if there is one.
pub fn advice(doing: &str, source: &io::Error) -> Option<&'static str> {
    match ForeignEntry::from_error(source) {
        Some(ForeignEntry::Link) => {
            return Some(
                "replace the link by its target, or mount the target there; only the storage as a \
                 whole may be a link",
            );
        }
        Some(ForeignEntry::Kind(_) | ForeignEntry::TooLarge | ForeignEntry::Outside) => {
            return Some("find out what put it there, and remove it");
        }
        None => {}
    }
    let reading = ["read", "look at", "list", "open the storage"].contains(&doing);
    Some(match source.kind() {
        ErrorKind::PermissionDenied if reading => "check who may read it",
        ErrorKind::PermissionDenied => "check who may write there, or use a storage of your own",
        ErrorKind::ReadOnlyFilesystem => "mount it for writing, or use a storage of your own",
        ErrorKind::StorageFull => {
            "make room (see df and df -i), then run the same command again: finished calls are kept"
        }
        ErrorKind::QuotaExceeded => {
            "make room, or have your quota raised, then run the same command again: finished \
             calls are kept"
        }
        ErrorKind::FileTooLarge => {
            "let files be larger (see ulimit -f), then run the same command again: finished calls \
             are kept"
        }
        ErrorKind::NotADirectory if doing == "open the storage" => {
            "give the directory that is the storage"
        }
        ErrorKind::IsADirectory => "find out what put a directory there, and remove it",
        ErrorKind::NotADirectory => {
            "remove what stands in the place of a directory: ce verify names it"
        }
        ErrorKind::InvalidFilename => {
            "give the storage a shorter path, on a file system that takes names of 255 bytes"
        }
        ErrorKind::StaleNetworkFileHandle | ErrorKind::NotConnected => {
            "check whether its file system is still mounted, then run the same command again: \
             finished calls are kept"
        }
        _ if is_leased(source) => {
            "end the program that holds a lease on it (/proc/locks has its process), then run the same command again"
        }
        _ if source.raw_os_error() == Some(Errno::IO.raw_os_error()) => {
            "look for errors of the disk (dmesg), then run the same command again: finished \
             calls are kept"
        }
        _ => return None,
    })
}

/// The flags to open a directory that is to be listed.
pub const LISTED: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The greatest number of nested directories that are open while a tree is removed.
const MAX_DEPTH: usize = 32;

/// Opens a directory below another one, only as the base of further operations.
///
/// # Errors
///
/// Fails if it does not exist, and with a [`ForeignEntry`] if the path leads out, or through a symbolic link.
pub fn open_directory(top: &OwnedFd, inside: &OsStr) -> io::Result<OwnedFd> {
    /// Whether the kernel has no `openat2` (before Linux 5.6), or forbids it to this process.
    static MISSING: AtomicBool = AtomicBool::new(false);
    if !MISSING.load(Ordering::Relaxed) {
        let opened = open_at_once(top, inside);
        if matches!(opened, Err(Errno::NOSYS | Errno::PERM)) {
            MISSING.store(true, Ordering::Relaxed);
        } else if let Some(answer) = answer_of(opened) {
            return answer;
        }
    }
    open_step_by_step(top, inside)
}

/// The answer of `openat2`, unless others have moved directories all the time.
fn answer_of(opened: Result<OwnedFd, Errno>) -> Option<io::Result<OwnedFd>> {
    Some(match opened {
        Err(Errno::AGAIN) => return None,
        Err(Errno::LOOP) => Err(ForeignEntry::Link.into()),
        Err(Errno::XDEV) => Err(ForeignEntry::Outside.into()),
        opened => opened.map_err(io::Error::from),
    })
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

/// Whether an entry of a directory is a symbolic link.
pub fn is_link(dir: &OwnedFd, name: impl Arg) -> bool {
    statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
}

/// Opens a directory that is to be listed.
///
/// # Errors
///
/// Fails if it does not exist, and with a [`ForeignEntry`] if it is a symbolic link.
pub fn open_listed(dir: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
    match openat(dir, name, LISTED, Mode::empty()) {
        Err(Errno::LOOP | Errno::NOTDIR) if is_link(dir, name) => Err(ForeignEntry::Link.into()),
        opened => Ok(opened?),
    }
}

/// Calls a function with each name in an open directory until it returns false.
///
/// # Errors
///
/// Fails if it cannot be listed.
pub fn each_entry(dir: &OwnedFd, mut next: impl FnMut(&OsStr, FileType) -> bool) -> io::Result<()> {
    let mut room = [const { MaybeUninit::uninit() }; 4096];
    let mut entries = RawDir::new(dir, &mut room);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if !matches!(name, b"." | b"..") && !next(OsStr::from_bytes(name), entry.file_type()) {
            break;
        }
    }
    Ok(())
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

/// Removes a file, or a directory with all its entries. In a deep tree, inner directories are first moved up, so that few
/// are open.
///
/// # Errors
///
/// Fails if it does not exist, or cannot be removed.
pub fn remove_tree(parent: &OwnedFd, name: &OsStr) -> io::Result<()> {
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
        } else if open.len() < MAX_DEPTH {
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

/// Moves a directory into another one, under a free name. Returns that name.
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

/// Removes an entry, unless it is a directory with entries. Returns whether it does not exist any
/// more.
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

/// Opens a directory to remove its entries, and makes it writable if necessary.
fn open_writable(dir: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
    let opened = match openat(dir, name, LISTED, Mode::empty()) {
        Err(Errno::ACCESS) => {
            allow(dir, name, 0o700)?;
            openat(dir, name, LISTED, Mode::empty())?
        }
        opened => opened?,
    };
    let mode = fstat(&opened)?.st_mode & 0o7777;
    if mode & 0o700 != 0o700 {
        // The mode of another user's directory cannot be changed. Removing may succeed nevertheless.
        let _refused = fchmod(&opened, Mode::from_raw_mode(mode | 0o700));
    }
    Ok(opened)
}

/// Treats a file that does not exist as removed.
fn absent(removed: Result<(), Errno>) -> io::Result<()> {
    match removed {
        Err(Errno::NOENT) => Ok(()),
        removed => Ok(removed?),
    }
}

/// Adds rights to a file or directory, unless it has them.
///
/// # Errors
///
/// Fails if it is a symbolic link, or its mode cannot be changed.
pub fn allow(dir: &OwnedFd, name: &OsStr, rights: u32) -> io::Result<()> {
    set_mode(dir, name, |mode| mode | rights)
}

/// Changes the mode of a file or directory, if the new one differs.
///
/// # Errors
///
/// Fails if it is a symbolic link, or its mode cannot be changed.
pub fn set_mode(dir: &OwnedFd, name: &OsStr, new: impl FnOnce(u32) -> u32) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = File::from(openat(dir, name, flags, Mode::empty())?);
    let stat = fstat(&file)?;
    if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
        return Err(ForeignEntry::Link.into());
    }
    let old = stat.st_mode & 0o7777;
    let mode = new(old);
    if mode == old {
        return Ok(());
    }
    // The path leads to the open file, even if another one has its name now.
    let open = format!("/proc/self/fd/{}", file.as_raw_fd());
    fs::set_permissions(open, Permissions::from_mode(mode))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use rustix::fs::CWD;

    use super::*;

    /// Both ways to open a directory, which are to agree.
    const WAYS: [fn(&OwnedFd, &OsStr) -> io::Result<OwnedFd>; 2] =
        [open_directory, open_step_by_step];

    #[test]
    fn a_directory_that_moves_again_and_again_is_not_taken_for_a_leased_file() {
        assert!(answer_of(Err(Errno::AGAIN)).is_none(), "the path is walked step by step");
        let lost = answer_of(Err(Errno::NOENT)).unwrap().unwrap_err();
        assert_eq!(lost.raw_os_error(), Some(Errno::NOENT.raw_os_error()));
    }

    #[test]
    fn no_path_leads_through_a_link_or_outside() {
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
            let wrong = |inside: &str| {
                ForeignEntry::from_error(&way(&top, OsStr::new(inside)).unwrap_err())
            };
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
