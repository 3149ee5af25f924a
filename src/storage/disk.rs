//! The file system as the storage uses it.
//!
//! Every operation tells what was tried and with which file when it fails, and tells "there is no
//! such file" as a value where that is an answer. No other way leads to a file that a result depends
//! on, so that a test can let any operation fail (see `fault`).

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, RawDir, RenameFlags, renameat_with};

use super::fault::fault;
use super::reading::Reading;
use super::record::Published;
use super::{Result, StorageError};
use crate::cache::Stamp;
use crate::digest::Digest;

/// Names what was tried when an operation fails.
pub(super) trait Doing<T> {
    fn doing(self, doing: &'static str, path: &Path) -> Result<T>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, doing: &'static str, path: &Path) -> Result<T> {
        self.map_err(|source| StorageError::Io { doing, path: path.to_owned(), source })
    }
}

/// Turns an error that says "there is no such file" into `None`.
fn found<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Returns what is known of a file, following links, or `None` if nothing has that name.
pub(super) fn metadata(path: &Path) -> Result<Option<Metadata>> {
    found(fault().and_then(|()| fs::metadata(path))).doing("look at", path)
}

/// Returns what is known of a file or link, or `None` if nothing has that name.
pub(super) fn link_metadata(path: &Path) -> Result<Option<Metadata>> {
    found(fault().and_then(|()| fs::symlink_metadata(path))).doing("look at", path)
}

/// Returns the contents of a small file, or `None` if nothing has that name.
pub(super) fn read(path: &Path) -> Result<Option<Vec<u8>>> {
    Ok(read_one(path)?.map(|(_, contents)| contents))
}

/// Returns the contents of a small file, and what tells that it has not been changed since.
pub(super) fn read_one(path: &Path) -> Result<Option<(Stamp, Vec<u8>)>> {
    let read = || {
        let mut file = File::open(path)?;
        let metadata = file.metadata()?;
        // What is there is whole, so that nobody needs to ask whether more follows.
        let mut contents = vec![0; metadata.len() as usize];
        file.read_exact(&mut contents)?;
        Ok((Stamp::of(&metadata), contents))
    };
    found(fault().and_then(|()| read())).doing("read", path)
}

/// Returns what tells that nothing was added to a directory, and nothing taken away; or `None` if nothing
/// has that name.
///
/// It is opened, which lets network file systems ask for what is true now.
pub(super) fn directory(path: &Path) -> Result<Option<Stamp>> {
    let look = || Ok(Stamp::of(&File::open(path)?.metadata()?));
    found(fault().and_then(|()| look())).doing("look at", path)
}

/// Returns the paths in a directory, or nothing if there is no such directory.
pub(super) fn list(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    each_entry(dir, |name| {
        paths.push(dir.join(name));
        true
    })?;
    Ok(paths)
}

/// Whether a directory holds nothing, or is not there.
pub(super) fn is_empty(dir: &Path) -> Result<bool> {
    let mut is_empty = true;
    each_entry(dir, |_| {
        is_empty = false;
        false
    })?;
    Ok(is_empty)
}

/// Tells each name in a directory, unless that is not there, to somebody who says whether to go on.
fn each_entry(dir: &Path, mut next: impl FnMut(&OsStr) -> bool) -> Result<()> {
    let mut tell = || -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = rustix::fs::open(dir, flags, Mode::empty())?;
        let mut room = [const { MaybeUninit::uninit() }; 4096];
        let mut entries = RawDir::new(dir, &mut room);
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." && !next(OsStr::from_bytes(name)) {
                break;
            }
        }
        Ok(())
    };
    found(fault().and_then(|()| tell())).doing("list", dir).map(drop)
}

/// Returns all files below a directory, relative to it and sorted.
///
/// Names that are no text are none of the storage's, and left out.
pub(super) fn walk(dir: &Path) -> Result<Vec<String>> {
    let mut files = Vec::new();
    let mut directories = vec![dir.to_owned()];
    while let Some(next) = directories.pop() {
        let entries = found(fault().and_then(|()| fs::read_dir(&next))).doing("list", &next)?;
        for entry in entries.into_iter().flatten() {
            let entry = entry.doing("list", &next)?;
            let path = entry.path();
            if entry.file_type().doing("look at", &path)?.is_dir() {
                directories.push(path);
            } else if let Some(name) = path.strip_prefix(dir).ok().and_then(Path::to_str) {
                files.push(name.to_owned());
            }
        }
    }
    files.sort_unstable();
    Ok(files)
}

/// Writes a file that is not there yet.
pub(super) fn write(path: &Path, contents: &[u8]) -> Result<()> {
    let written = fault().and_then(|()| File::create_new(path)?.write_all(contents));
    written.doing("write", path)
}

/// Adds to the end of a file, which is made if it is not there.
pub(super) fn append(path: &Path, contents: &[u8]) -> Result<()> {
    let open = || OpenOptions::new().create(true).append(true).open(path);
    let written = fault().and_then(|()| open()?.write_all(contents));
    written.doing("write", path)
}

/// Makes a directory that is not there yet.
pub(super) fn make_dir(path: &Path) -> Result<()> {
    fault().and_then(|()| fs::create_dir(path)).doing("make the directory", path)
}

/// Makes a directory, and all above it, unless they are there.
pub(super) fn make_dirs(path: &Path) -> Result<()> {
    let made = fault().and_then(|()| DirBuilder::new().recursive(true).create(path));
    made.doing("make the directory", path)
}

/// Makes a directory, and all above it but the first, unless they are there.
pub(super) fn make_dirs_in(first: &Path, path: &Path) -> Result<()> {
    let above = path.ancestors().take_while(|dir| *dir != first && !dir.is_dir());
    let missing: Vec<&Path> = above.collect();
    let make = |dir: &&Path| match fs::create_dir(dir) {
        // Somebody else was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => Ok(()),
        made => made,
    };
    let made = fault().and_then(|()| missing.iter().rev().try_for_each(make));
    made.doing("make the directory", path)
}

/// Gives a file a second name; returns whether that was free.
pub(super) fn link(from: &Path, to: &Path) -> Result<bool> {
    match fault().and_then(|()| fs::hard_link(from, to)) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error).doing("link to", to),
    }
}

/// Moves a file to its place, whatever is there; returns whether there was a file to be moved.
pub(super) fn rename(from: &Path, to: &Path) -> Result<bool> {
    let moved = found(fault().and_then(|()| fs::rename(from, to)));
    moved.doing("move to", to).map(|moved| moved.is_some())
}

/// Moves a file to its place unless something is there; returns whether nothing was.
///
/// A file that is gone is not moved, and nothing is in its way.
pub(super) fn rename_new(from: &Path, to: &Path) -> Result<bool> {
    let rename = || {
        let moved = renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE);
        match moved.map_err(io::Error::from) {
            // Network file systems do not know this.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                if to.try_exists()? {
                    Ok(false)
                } else {
                    fs::rename(from, to).map(|()| true)
                }
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(!from.try_exists()?),
            other => other.map(|()| true),
        }
    };
    let moved = found(fault().and_then(|()| rename()));
    moved.doing("move to", to).map(|moved| moved.unwrap_or(true))
}

/// Removes a file unless it is gone.
pub(super) fn remove(path: &Path) -> Result<()> {
    found(fault().and_then(|()| fs::remove_file(path))).doing("remove", path).map(drop)
}

/// Removes whatever has this name, with everything in it if it is a directory.
pub(super) fn remove_any(path: &Path) -> Result<()> {
    match link_metadata(path)? {
        Some(metadata) if metadata.is_dir() => remove_tree(path),
        Some(_) => remove(path),
        None => Ok(()),
    }
}

/// Removes a directory and everything in it unless it is gone.
pub(super) fn remove_tree(path: &Path) -> Result<()> {
    found(fault().and_then(|()| fs::remove_dir_all(path))).doing("remove", path).map(drop)
}

/// Removes a directory if nothing is in it; fails if something is.
pub(super) fn remove_dir(path: &Path) -> Result<()> {
    found(fault().and_then(|()| fs::remove_dir(path))).doing("remove", path).map(drop)
}

/// Makes a symbolic link that is not there yet.
pub(super) fn symbolic_link(target: &Path, path: &Path) -> Result<()> {
    let made = fault().and_then(|()| std::os::unix::fs::symlink(target, path));
    made.doing("make the link", path)
}

/// Says who may do what with a file.
pub(super) fn set_mode(path: &Path, mode: u32) -> Result<()> {
    let set = fault().and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(mode)));
    set.doing("change the mode of", path)
}

/// Takes from everybody the right to write a file; the rights to read and execute it stay.
///
/// Returns when the file was last written, in nanoseconds since 1970.
pub(super) fn seal(path: &Path) -> Result<i64> {
    let known = fault().and_then(|()| fs::metadata(path)).doing("make read-only", path)?;
    seal_known(path, &known)
}

/// Does the same with a file of which this is known.
pub(super) fn seal_known(path: &Path, metadata: &Metadata) -> Result<i64> {
    let mode = metadata.mode() & 0o555 | 0o400;
    let seal = || fs::set_permissions(path, fs::Permissions::from_mode(mode));
    fault().and_then(|()| seal()).doing("make read-only", path)?;
    Ok(modified_ns(metadata))
}

/// Returns the digest of a file's contents.
pub(super) fn digest(path: &Path) -> Result<Digest> {
    Reading::open(path)?.digest()
}

/// Copies a file into a new one that everybody may read who may read the original; returns the
/// digest of what was copied.
///
/// The original is opened once, so it may be a pipe.
pub(super) fn copy(from: &Path, to: &Path) -> Result<Digest> {
    Reading::open(from)?.copy(to)
}

/// Returns the last lines of a text, of so many bytes at most.
pub(super) fn tail(path: &Path, bytes: u64) -> Result<String> {
    let tail = || {
        let mut file = File::open(path)?;
        let begin = file.metadata()?.len().saturating_sub(bytes);
        file.seek(SeekFrom::Start(begin))?;
        let mut text = Vec::new();
        file.take(bytes).read_to_end(&mut text)?;
        let text = String::from_utf8_lossy(&text);
        let whole_lines = text.split_once('\n').filter(|_| begin > 0).map(|(_, rest)| rest);
        Ok(whole_lines.unwrap_or(&text).to_owned())
    };
    fault().and_then(|()| tail()).doing("read", path)
}

/// When a file was last written, in nanoseconds since 1970.
pub(super) fn modified_ns(metadata: &Metadata) -> i64 {
    metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec())
}

/// Whether a file is there and still the published one.
pub(super) fn is_published(path: &Path, file: &Published) -> Result<bool> {
    match metadata(path)? {
        Some(metadata) => unchanged(path, &metadata, file),
        None => Ok(false),
    }
}

/// Whether a file is still the published one.
///
/// Size and time stamp decide; only where the time stamp differs is the file read. Copying tools
/// may cut a time stamp to whole seconds, and a user may `touch` a file.
pub(super) fn unchanged(path: &Path, metadata: &Metadata, file: &Published) -> Result<bool> {
    Ok(metadata.is_file()
        && metadata.len() == file.digest.size
        && (modified_ns(metadata) == file.modified_ns || digest(path)? == file.digest))
}

/// What tells a file from every other one, whatever its name: device and inode.
pub(super) type FileId = (u64, u64);

/// Returns which file has this name, or `None` if none has.
pub(super) fn id(path: &Path) -> Result<Option<FileId>> {
    Ok(metadata(path)?.map(|metadata| (metadata.dev(), metadata.ino())))
}

/// Waits until a file, or what a directory lists, is on the disk. What is gone needs no waiting.
pub(super) fn sync(path: &Path) -> Result<()> {
    let synced = fault().and_then(|()| File::open(path)?.sync_all());
    found(synced).doing("flush", path).map(drop)
}

/// Waits until everything on the file system of a directory is on the disk.
pub(super) fn sync_file_system(path: &Path) -> Result<()> {
    let synced = fault().and_then(|()| Ok(rustix::fs::syncfs(File::open(path)?)?));
    synced.doing("flush the file system of", path)
}
