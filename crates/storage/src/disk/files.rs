//! Files of the storage: reading, writing, linking, moving, removing.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, openat, syncfs, unlinkat};
use rustix::io::Errno;

use super::late::Absence;
use super::reading::Reading;
use super::{Disk, Doing, Metadata, NotOwn, Result, found, stat};
use ce_files::cache::FileStat;
use ce_model::digest::{Digest, PIECE};

/// The flags to open a file: not through a link, and without waiting for the other end of a FIFO.
const PLAIN: OFlags =
    OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// The greatest size of a file that is read at once, in bytes: 256 MiB, far more than any record.
const MAX_READ: u64 = 1 << 28;

/// Opens a plain file for reading.
fn open_plain(dir: &OwnedFd, name: &OsStr) -> io::Result<(File, Metadata)> {
    let file = match openat(dir, name, PLAIN | OFlags::RDONLY, Mode::empty()) {
        Ok(file) => File::from(file),
        // A socket cannot be opened at all.
        Err(error @ (Errno::LOOP | Errno::NXIO | Errno::OPNOTSUPP)) => {
            let kind = NotOwn::of_type(FileType::from_raw_mode(stat(dir, name)?.st_mode));
            return Err(kind.map_or_else(|| error.into(), io::Error::from));
        }
        Err(error) => return Err(error.into()),
    };
    let metadata = Metadata::of(&file)?;
    match NotOwn::of_type(metadata.kind()) {
        None => Ok((file, metadata)),
        Some(kind) => Err(kind.into()),
    }
}

impl Disk {
    /// Opens a plain file for reading.
    fn open_file(&self, path: &Path) -> io::Result<(File, Metadata)> {
        self.at(path, open_plain)
    }

    /// Opens a file to be read to its end.
    pub(crate) fn reading<'a>(&self, path: &'a Path) -> Result<Reading<'a>> {
        let (file, metadata) = self.attempt("read", path, || self.open_file(path))?;
        Ok(Reading::of(path, file, metadata))
    }

    /// Opens a file of a computation to be read to its end. Makes it readable if necessary.
    pub(crate) fn reading_made<'a>(&self, path: &'a Path) -> Result<Reading<'a>> {
        let (file, metadata) = self.attempt("read", path, || match self.open_file(path) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                self.at(path, |dir, name| allow(dir, name, 0o400))?;
                self.open_file(path)
            }
            opened => opened,
        })?;
        Ok(Reading::of(path, file, metadata))
    }

    /// Returns the contents of a small file, or `None` if nothing has that name.
    pub(crate) fn read(&self, path: &Path) -> Result<Option<Vec<u8>>> {
        Ok(self.read_one(path)?.map(|(_, contents)| contents))
    }

    /// Returns the stat and the contents of a small file, or `None` if nothing has that name.
    pub(crate) fn read_one(&self, path: &Path) -> Result<Option<(FileStat, Vec<u8>)>> {
        let read = || {
            let (mut file, metadata) = self.open_file(path)?;
            if metadata.len() > MAX_READ {
                return Err(NotOwn::TooLarge.into());
            }
            // Such files appear whole: no further `read` is needed to find the end.
            let mut contents = vec![0; metadata.len() as usize];
            file.read_exact(&mut contents)?;
            Ok((metadata.stat(), contents))
        };
        self.look("read", path, read)
    }

    /// Opens a file that is read line by line; `None` if there is no plain file of that name.
    pub(crate) fn lines(&self, path: &Path) -> Result<Option<BufReader<File>>> {
        match self.look("read", path, || self.open_file(path)) {
            Ok(opened) => Ok(opened.map(|(file, _)| BufReader::new(file))),
            Err(error) if error.is_not_own() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Creates a file, and opens it for reading and writing.
    ///
    /// The umask applies to `mode`.
    pub(crate) fn create(&self, path: &Path, mode: u32) -> Result<File> {
        let flags = PLAIN | OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        let open = |flags| {
            self.at(path, |dir, name| {
                Ok(File::from(openat(dir, name, flags, Mode::from_raw_mode(mode))?))
            })
        };
        self.attempt_again("write", path, |again| {
            let file = match self.again(&[path], || open(flags)) {
                // It was created, and reported as not created: then nothing is in it.
                Err(error) if again && error.kind() == io::ErrorKind::AlreadyExists => {
                    let file = open(flags - OFlags::EXCL - OFlags::CREATE)?;
                    if Metadata::of(&file)?.len() > 0 {
                        return Err(error);
                    }
                    file
                }
                created => created?,
            };
            self.share(&file, mode)?;
            Ok(file)
        })
    }

    /// Gives the group its rights to a new file, if the storage is shared.
    fn share(&self, file: &File, mode: u32) -> io::Result<()> {
        match self.shared {
            Some(shared) => {
                file.set_permissions(Permissions::from_mode(mode & 0o700 | mode & shared & 0o077))
            }
            None => Ok(()),
        }
    }

    /// Writes a new file.
    pub(crate) fn write(&self, path: &Path, contents: &[u8]) -> Result<()> {
        self.writing(path, || {
            let mut file = self.create(path, 0o666)?;
            file.write_all(contents).and_then(|()| self.arrive(&file)).doing("write", path)
        })
    }

    /// Waits until the server of a network file system has what was written to a file: else the error would come when the file is
    /// closed, where nobody sees it.
    pub(super) fn arrive(&self, file: &File) -> io::Result<()> {
        if self.is_on_network() { file.sync_data() } else { Ok(()) }
    }

    /// Writes a new file. What was begun is begun anew.
    fn writing(&self, path: &Path, mut write: impl FnMut() -> Result<()>) -> Result<()> {
        self.persist(Absence::Answer, |again| {
            if again {
                self.remove(path)?;
            }
            write()
        })
    }

    /// Writes a new file by a function, piece by piece.
    pub(crate) fn write_by(
        &self,
        path: &Path,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<()> {
        let mut out = BufWriter::with_capacity(PIECE, self.create(path, 0o666)?);
        write(&mut out)
            .and_then(|()| out.flush())
            .and_then(|()| self.arrive(out.get_ref()))
            .doing("write", path)
    }

    /// Writes a new file, and then sets its permissions.
    pub(crate) fn write_sealed(&self, path: &Path, contents: &[u8], mode: u32) -> Result<()> {
        self.writing(path, || {
            let mut file = self.create(path, 0o600)?;
            file.write_all(contents)
                .and_then(|()| self.arrive(&file))
                .and_then(|()| file.set_permissions(Permissions::from_mode(mode)))
                .doing("write", path)
        })
    }

    /// Appends to a file that only this process writes; creates it if necessary.
    pub(crate) fn append(&self, path: &Path, contents: &[u8]) -> Result<()> {
        let flags = PLAIN | OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND;
        self.attempt_again("write", path, |again| {
            // It may have been written, and reported as not written.
            if again && self.ends_with(path, contents)? {
                return Ok(());
            }
            let mut file = self.at(path, |dir, name| {
                Ok(File::from(openat(dir, name, flags, Mode::from_raw_mode(0o666))?))
            })?;
            if let Some(kind) = NotOwn::of_type(Metadata::of(&file)?.kind()) {
                return Err(kind.into());
            }
            self.share(&file, 0o666)?;
            file.write_all(contents)?;
            self.arrive(&file)
        })
    }

    /// Whether a file exists and ends with these bytes.
    fn ends_with(&self, path: &Path, end: &[u8]) -> io::Result<bool> {
        let Some((mut file, metadata)) = found(self.open_file(path))? else { return Ok(false) };
        let Some(begin) = metadata.len().checked_sub(end.len() as u64) else { return Ok(false) };
        let mut contents = Vec::new();
        file.seek(SeekFrom::Start(begin))?;
        file.read_to_end(&mut contents)?;
        Ok(contents == end)
    }

    /// Removes a file, if it exists. Does not follow a link.
    pub(crate) fn remove(&self, path: &Path) -> Result<()> {
        let remove = |dir: &OwnedFd, name: &OsStr| Ok(unlinkat(dir, name, AtFlags::empty())?);
        self.look("remove", path, || self.at(path, remove)).map(drop)
    }

    /// Makes a file read-only. Returns the time of its last write, in nanoseconds since 1970.
    pub(crate) fn seal(&self, path: &Path) -> Result<i64> {
        self.seal_open(&self.reading_made(path)?)
    }

    /// Makes an open file read-only. The rights to read and execute it stay. Returns the time of
    /// its last write, in nanoseconds since 1970.
    pub(crate) fn seal_open(&self, reading: &Reading<'_>) -> Result<i64> {
        let metadata = reading.metadata();
        let shared = self.shared.unwrap_or(0) & 0o044;
        let mode = metadata.mode() & 0o555 | 0o400 | shared;
        self.attempt("make read-only", reading.path(), || {
            reading.file().set_permissions(Permissions::from_mode(mode))
        })?;
        Ok(metadata.modified_ns())
    }

    /// Lets the group read a file that a computation made, if the storage is shared.
    pub(crate) fn share_made(&self, path: &Path) -> Result<()> {
        let Some(shared) = self.shared else { return Ok(()) };
        self.attempt("make readable", path, || {
            self.at(path, |dir, name| allow(dir, name, shared & 0o044))
        })
    }

    /// Returns the digest of a file's contents.
    pub(crate) fn digest(&self, path: &Path) -> Result<Digest> {
        self.read_whole(|| self.reading(path)?.digest())
    }

    /// Copies a file into a new one. Returns the digest of the copy.
    pub(crate) fn copy(&self, from: &Path, to: &Path) -> Result<Digest> {
        self.reading_made(from)?.copy(self, to)
    }

    /// Returns the last lines of a text, at most `bytes` bytes.
    pub(crate) fn tail(&self, path: &Path, bytes: u64) -> Result<String> {
        self.attempt("read", path, || tail(self.open_file(path)?.0, bytes))
    }

    /// Returns what a file has from a byte on, at most so many bytes; nothing if it does not exist.
    ///
    /// The file is opened anew: over NFS, only then is its size known for certain.
    pub(crate) fn read_from(&self, path: &Path, from: u64, most: u64) -> Result<Vec<u8>> {
        let read = || {
            let mut file = self.open_file(path)?.0;
            let mut contents = Vec::new();
            file.seek(SeekFrom::Start(from))?;
            file.take(most).read_to_end(&mut contents)?;
            Ok(contents)
        };
        Ok(self.look("read", path, read)?.unwrap_or_default())
    }

    /// Waits until a file, or the list of entries of a directory, is on the disk. Does nothing if
    /// it does not exist.
    pub(crate) fn sync(&self, path: &Path) -> Result<()> {
        let sync = |dir: &OwnedFd, name: &OsStr| {
            File::from(openat(dir, name, PLAIN | OFlags::RDONLY, Mode::empty())?).sync_all()
        };
        self.look("flush", path, || self.at(path, sync)).map(drop)
    }

    /// Waits until everything on the file system of the storage is on the disk.
    pub(crate) fn sync_all(&self) -> Result<()> {
        let sync = |dir: &OwnedFd, name: &OsStr| {
            Ok(syncfs(openat(dir, name, PLAIN | OFlags::RDONLY, Mode::empty())?)?)
        };
        self.attempt("flush the file system of", self.root(), || self.at(self.root(), sync))
    }
}

/// Adds rights to those of a file or directory, unless it has them.
pub(super) fn allow(dir: &OwnedFd, name: &OsStr, rights: u32) -> io::Result<()> {
    set_mode(dir, name, |mode| mode | rights)
}

/// Changes the mode of a file or directory, if the new one differs.
pub(super) fn set_mode(
    dir: &OwnedFd,
    name: &OsStr,
    new: impl FnOnce(u32) -> u32,
) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = File::from(openat(dir, name, flags, Mode::empty())?);
    let metadata = Metadata::of(&file)?;
    if metadata.kind() == FileType::Symlink {
        return Err(NotOwn::Link.into());
    }
    let mode = new(metadata.mode());
    if mode == metadata.mode() {
        return Ok(());
    }
    // The path leads to the open file, whatever has its name now.
    let open = format!("/proc/self/fd/{}", file.as_raw_fd());
    fs::set_permissions(open, Permissions::from_mode(mode))
}

/// Returns the last lines of a text, at most `bytes` bytes.
fn tail(mut file: File, bytes: u64) -> io::Result<String> {
    let begin = file.metadata()?.len().saturating_sub(bytes);
    file.seek(SeekFrom::Start(begin))?;
    let mut text = Vec::new();
    file.take(bytes).read_to_end(&mut text)?;
    let text = String::from_utf8_lossy(&text);
    Ok(match text.split_once('\n') {
        Some((_, whole_lines)) if begin > 0 => whole_lines.to_owned(),
        _ => text.into_owned(),
    })
}
