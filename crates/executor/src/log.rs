//! Logs of executions: opened for writing, and read from the end; the beginnings of scripts.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, fstat, open, openat};
use rustix::path::Arg;

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
    match metadata.is_file() {
        true => Ok((file, metadata.len())),
        false => Err(io::Error::other("it is not a plain file")),
    }
}

fn read(file: File, bytes: u64) -> io::Result<Vec<u8>> {
    let mut read = Vec::new();
    file.take(bytes).read_to_end(&mut read)?;
    Ok(read)
}
