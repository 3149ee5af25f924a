//! Files of executions: paths that must still lead to what was verified, logs, and the beginnings of scripts.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, Stat, fstat, lstat, open, openat};
use rustix::io::Errno;
use rustix::path::Arg;

/// An absolute path without symbolic links, and the file or directory that it leads to.
///
/// Any directory on the way may be replaced meanwhile, by a link or another directory. The user of
/// the path must check that the inode is the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedPath {
    /// The path.
    pub path: PathBuf,
    /// The device and inode of the file or directory.
    pub id: (u64, u64),
}

impl VerifiedPath {
    /// Verifies whatever is at this path, which has no symbolic link.
    pub fn of(path: PathBuf) -> io::Result<Self> {
        let stat = lstat(&path)?;
        Ok(Self { path, id: (stat.st_dev, stat.st_ino) })
    }

    /// Opens the file or directory: see [`open_verified`].
    pub(super) fn open(&self) -> io::Result<OwnedFd> {
        open_verified(&self.path, self.id)
    }

    /// Checks that the path still leads to the same file or directory.
    ///
    /// # Errors
    ///
    /// Fails with `ESTALE` if it does not.
    pub(super) fn check(&self) -> io::Result<()> {
        compare(&lstat(&self.path)?, self.id)
    }
}

/// Opens a file or directory that was verified, wherever this process finds it. No rights are needed:
/// the descriptor is a place, and cannot be read.
///
/// # Errors
///
/// Fails with `ESTALE` if the path leads to another device and inode by now.
pub(super) fn open_verified(path: &Path, id: (u64, u64)) -> io::Result<OwnedFd> {
    let place = open(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    compare(&fstat(&place)?, id)?;
    Ok(place)
}

fn compare(found: &Stat, id: (u64, u64)) -> io::Result<()> {
    if (found.st_dev, found.st_ino) == id { Ok(()) } else { Err(Errno::STALE.into()) }
}

/// Whether an error says that a path leads elsewhere, or nowhere.
pub(super) fn is_replaced(error: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound, StaleNetworkFileHandle};
    let is_link = error.raw_os_error() == Some(Errno::LOOP.raw_os_error());
    is_link || matches!(error.kind(), NotADirectory | NotFound | StaleNetworkFileHandle)
}

/// How many bytes at the end of a log are searched for why an execution failed.
pub const TAIL: u64 = 4000;

/// How many bytes at the beginning of a script are read: as many as the kernel reads of the line that names
/// the interpreter.
pub const HEAD: u64 = 256;

/// Opens the file that takes what an execution prints: an empty one, or one that is yet to be made.
///
/// Another execution without isolation may have put a link or a FIFO in its place: neither is used.
pub(super) fn open_log(stage: &OwnedFd, name: impl Arg) -> io::Result<File> {
    // To cut it would be a change of the file system, even where it is empty.
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let log = openat(stage, name, flags | OFlags::CLOEXEC, Mode::from_raw_mode(0o666))?;
    match FileType::from_raw_mode(fstat(&log)?.st_mode) {
        FileType::RegularFile => Ok(log.into()),
        _ => Err(io::Error::other("it is not a plain file")),
    }
}

/// Returns the last bytes of a plain file, at most so many.
///
/// # Errors
///
/// Fails if it cannot be read, or is something else, such as a link.
pub fn tail(path: &Path, bytes: u64) -> io::Result<Vec<u8>> {
    let (mut file, size) = open_plain(path, OFlags::NOFOLLOW)?;
    file.seek(SeekFrom::Start(size.saturating_sub(bytes)))?;
    read(file, bytes)
}

/// Returns the first bytes of a plain file, or of one that a link leads to, at most so many.
///
/// # Errors
///
/// Fails if it cannot be read, or is something else.
pub fn head(path: &Path, bytes: u64) -> io::Result<Vec<u8>> {
    read(open_plain(path, OFlags::empty())?.0, bytes)
}

/// Opens a plain file for reading; returns its size, too. A FIFO, for example, is refused.
fn open_plain(path: &Path, flags: OFlags) -> io::Result<(File, u64)> {
    let flags = flags | OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(open(path, flags, Mode::empty())?);
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a plain file"));
    }
    Ok((file, metadata.len()))
}

fn read(file: File, bytes: u64) -> io::Result<Vec<u8>> {
    let mut read = Vec::new();
    file.take(bytes).read_to_end(&mut read)?;
    Ok(read)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_to_a_copy_is_not_the_directory_that_was_verified() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at("room")).unwrap();
        fs::write(at("room/file"), "a").unwrap();
        let file = VerifiedPath::of(at("room/file")).unwrap();
        file.check().unwrap();
        drop(file.open().unwrap());

        fs::rename(at("room"), at("away")).unwrap();
        assert_eq!(file.check().unwrap_err().kind(), io::ErrorKind::NotFound);
        fs::create_dir(at("copy")).unwrap();
        fs::write(at("copy/file"), "a").unwrap();
        symlink(at("copy"), at("room")).unwrap();
        let stale = Some(Errno::STALE.raw_os_error());
        assert_eq!(file.check().unwrap_err().raw_os_error(), stale);
        assert_eq!(file.open().unwrap_err().raw_os_error(), stale);

        fs::remove_file(at("room")).unwrap();
        symlink(at("away"), at("room")).unwrap();
        file.check().unwrap();
    }
}
