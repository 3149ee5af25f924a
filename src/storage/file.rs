//! Files: hashing, copying, and putting one in its place whole or not at all.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use crate::digest::{Digest, Hasher};

use super::record::Published;

/// How much is read at a time, in bytes: large enough to be cheap, small enough for the cache.
const PIECE: usize = 64 << 10;

/// Returns the digest of a file's contents.
pub(super) fn digest(path: &Path) -> io::Result<Digest> {
    read(path, |_| Ok(()))
}

/// Copies a file into a new, private one; returns the digest of what was copied.
///
/// The copy shares its blocks with the original where the file system can do that.
pub(super) fn copy(from: &Path, to: &Path) -> io::Result<Digest> {
    let mut copy = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(to)?;
    let original = File::open(from)?;
    if rustix::fs::ioctl_ficlone(&copy, &original).is_ok() {
        return digest(to);
    }
    read(from, |piece| copy.write_all(piece))
}

fn read(path: &Path, mut each: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<Digest> {
    let mut file = File::open(path)?;
    let mut buffer = vec![0; PIECE];
    let mut hasher = Hasher::default();
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(hasher.finish()),
            Ok(count) => {
                hasher.update(&buffer[..count]);
                each(&buffer[..count])?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Returns the last lines of a text, of so many bytes at most.
pub(super) fn tail(path: &Path, bytes: u64) -> io::Result<String> {
    let mut file = File::open(path)?;
    let begin = file.metadata()?.len().saturating_sub(bytes);
    file.seek(SeekFrom::Start(begin))?;
    let mut text = Vec::new();
    file.take(bytes).read_to_end(&mut text)?;
    let text = String::from_utf8_lossy(&text);
    let whole_lines = text
        .split_once('\n')
        .filter(|_| begin > 0)
        .map(|(_, rest)| rest);
    Ok(whole_lines.unwrap_or(&text).to_owned())
}

/// When a file was last written, in nanoseconds since 1970.
pub(super) fn modified_ns(metadata: &Metadata) -> i64 {
    metadata
        .mtime()
        .saturating_mul(1_000_000_000)
        .saturating_add(metadata.mtime_nsec())
}

/// Takes from everybody the right to write a file; the rights to read and execute it stay.
pub(super) fn protect(path: &Path, metadata: &Metadata) -> io::Result<()> {
    fs::set_permissions(
        path,
        fs::Permissions::from_mode(metadata.mode() & 0o555 | 0o400),
    )
}

/// Whether the file is still the published one.
///
/// Size and time stamp decide; only where the time stamp differs is the file read. Copying tools
/// may cut a time stamp to whole seconds, and a user may `touch` a file.
pub(super) fn unchanged(path: &Path, metadata: &Metadata, file: &Published) -> io::Result<bool> {
    Ok(metadata.is_file()
        && metadata.len() == file.digest.size
        && (modified_ns(metadata) == file.modified_ns || digest(path)? == file.digest))
}

/// Returns what is known of a file, or `None` if nothing has that name.
pub(super) fn metadata(path: &Path) -> io::Result<Option<Metadata>> {
    found(fs::metadata(path))
}

/// Turns "there is no such file" into `None`.
pub(super) fn found<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}
