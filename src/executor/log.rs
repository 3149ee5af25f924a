//! Logs of executions: opened for writing, and read from the end.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, fstat, open, openat};
use rustix::path::Arg;

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
pub(super) fn tail(path: &Path, bytes: u64) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut file = File::from(open(path, flags, Mode::empty())?);
    let metadata = file.metadata()?;
    let mut end = Vec::new();
    if metadata.is_file() {
        file.seek(SeekFrom::Start(metadata.len().saturating_sub(bytes)))?;
        file.take(bytes).read_to_end(&mut end)?;
    }
    Ok(end)
}
