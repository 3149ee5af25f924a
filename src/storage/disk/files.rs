//! Files of the storage: reading, writing, linking, moving, removing.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RenameFlags, linkat, openat, renameat, renameat_with,
    symlinkat, syncfs, unlinkat,
};
use rustix::io::Errno;

use super::reading::Reading;
use super::{Disk, Doing, Metadata, NotOwn, Result, attempt, found, stat};
use crate::cache::FileStat;
use crate::digest::{Digest, PIECE};

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
    pub(in crate::storage) fn reading<'a>(&self, path: &'a Path) -> Result<Reading<'a>> {
        let (file, metadata) = attempt("read", path, || self.open_file(path))?;
        Ok(Reading::of(path, file, metadata))
    }

    /// Opens a file of a computation to be read to its end. Makes it readable if necessary.
    pub(in crate::storage) fn reading_made<'a>(&self, path: &'a Path) -> Result<Reading<'a>> {
        let (file, metadata) = attempt("read", path, || match self.open_file(path) {
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
    pub(in crate::storage) fn read_one(&self, path: &Path) -> Result<Option<(FileStat, Vec<u8>)>> {
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
        attempt("read", path, || found(read()))
    }

    /// Opens a file that is read line by line; `None` if there is no plain file of that name.
    pub(in crate::storage) fn lines(&self, path: &Path) -> Result<Option<BufReader<File>>> {
        match attempt("read", path, || found(self.open_file(path))) {
            Ok(opened) => Ok(opened.map(|(file, _)| BufReader::new(file))),
            Err(error) if error.is_not_own() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Creates a file, and opens it for reading and writing.
    ///
    /// The umask applies to `mode`.
    pub(in crate::storage) fn create(&self, path: &Path, mode: u32) -> Result<File> {
        let flags = PLAIN | OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        attempt("write", path, || {
            let file = self.again(&[path], || {
                self.at(path, |dir, name| {
                    Ok(File::from(openat(dir, name, flags, Mode::from_raw_mode(mode))?))
                })
            })?;
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
        self.create(path, 0o666)?.write_all(contents).doing("write", path)
    }

    /// Writes a new file by a function, piece by piece.
    pub(in crate::storage) fn write_by(
        &self,
        path: &Path,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<()> {
        let mut out = BufWriter::with_capacity(PIECE, self.create(path, 0o666)?);
        write(&mut out).and_then(|()| out.flush()).doing("write", path)
    }

    /// Writes a new file, and then sets its permissions.
    pub(in crate::storage) fn write_sealed(
        &self,
        path: &Path,
        contents: &[u8],
        mode: u32,
    ) -> Result<()> {
        let mut file = self.create(path, 0o600)?;
        file.write_all(contents)
            .and_then(|()| file.set_permissions(Permissions::from_mode(mode)))
            .doing("write", path)
    }

    /// Appends to a file; creates it if necessary.
    pub(in crate::storage) fn append(&self, path: &Path, contents: &[u8]) -> Result<()> {
        let flags = PLAIN | OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND;
        attempt("write", path, || {
            let mut file = self.at(path, |dir, name| {
                Ok(File::from(openat(dir, name, flags, Mode::from_raw_mode(0o666))?))
            })?;
            if let Some(kind) = NotOwn::of_type(Metadata::of(&file)?.kind()) {
                return Err(kind.into());
            }
            self.share(&file, 0o666)?;
            file.write_all(contents)
        })
    }

    /// Gives a file a second name; returns whether that was free. A link is not followed.
    pub(crate) fn link(&self, from: &Path, to: &Path) -> Result<bool> {
        let link = || {
            let (from, to) = (self.spot(from)?, self.spot(to)?);
            let flags = AtFlags::empty();
            Ok(linkat(&from.directory, from.name, &to.directory, to.name, flags)?)
        };
        attempt("link to", to, || match self.again(&[from, to], link) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            linked => linked.map(|()| true),
        })
    }

    /// Links to a file, or copies it where the system refuses to link to a file of another user
    /// (`fs.protected_hardlinks`). Returns whether the new name was free.
    pub(in crate::storage) fn link_or_copy(&self, from: &Path, to: &Path) -> Result<bool> {
        match self.link(from, to) {
            Err(error) if error.may_not_write() => self.copy(from, to).map(|_| true),
            linked => linked,
        }
    }

    /// Gives an entry that is going to be replaced another name. A directory is moved, since it has
    /// only one name.
    pub(in crate::storage) fn quarantine(&self, from: &Path, to: &Path) -> Result<()> {
        match self.metadata(from)? {
            Some(metadata) if metadata.is_dir() => self.rename(from, to).map(drop),
            _ => self.link_or_copy(from, to).map(drop),
        }
    }

    /// Moves a file; replaces any file at the new path. Returns whether there was a file to move.
    pub(crate) fn rename(&self, from: &Path, to: &Path) -> Result<bool> {
        let rename = || {
            let (from, to) = (self.spot(from)?, self.spot(to)?);
            Ok(renameat(&from.directory, from.name, &to.directory, to.name)?)
        };
        let moved = attempt("move to", to, || found(self.moving(from, to, rename)));
        self.close_moved(&[from]);
        Ok(moved?.is_some())
    }

    /// Moves a file unless something has the new name. Returns whether the name was free.
    ///
    /// A file that does not exist is not moved; that returns true.
    pub(crate) fn rename_new(&self, from: &Path, to: &Path) -> Result<bool> {
        let exists = |path: &Path| Ok::<_, io::Error>(found(self.at(path, stat))?.is_some());
        let rename = || {
            let (old, new) = (self.spot(from)?, self.spot(to)?);
            let flags = RenameFlags::NOREPLACE;
            match renameat_with(&old.directory, old.name, &new.directory, new.name, flags) {
                // Network file systems do not support the flag.
                Err(Errno::INVAL) if exists(to)? => return Ok(false),
                Err(Errno::INVAL) => {
                    renameat(&old.directory, old.name, &new.directory, new.name)?;
                }
                Err(Errno::EXIST) => return Ok(!exists(from)?),
                moved => moved?,
            }
            Ok(true)
        };
        let moved = attempt("move to", to, || found(self.moving(from, to, rename)));
        self.close_moved(&[from]);
        Ok(moved?.unwrap_or(true))
    }

    /// Moves something. A read-only directory is made writable for that, since its entry for the
    /// directory above it changes.
    fn moving<T>(&self, from: &Path, to: &Path, act: impl Fn() -> io::Result<T>) -> io::Result<T> {
        match self.again(&[from, to], &act) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                let mode = Metadata::from(&self.at(from, stat)?);
                if !mode.is_dir() || mode.mode() & 0o200 != 0 {
                    return Err(error);
                }
                self.at(from, |dir, name| allow(dir, name, 0o200))?;
                let moved = act();
                let now = if moved.is_ok() { to } else { from };
                self.at(now, |dir, name| set_mode(dir, name, |_| mode.mode()))?;
                moved
            }
            moved => moved,
        }
    }

    /// Exchanges two files or directories. Returns false if one does not exist, or the file system
    /// cannot exchange.
    pub(in crate::storage) fn exchange(&self, one: &Path, other: &Path) -> Result<bool> {
        let exchanged = attempt("move to", other, || {
            let (here, there) = (self.spot(one)?, self.spot(other)?);
            let flags = RenameFlags::EXCHANGE;
            match renameat_with(&here.directory, here.name, &there.directory, there.name, flags) {
                Err(Errno::INVAL | Errno::NOENT) => Ok(false),
                exchanged => Ok(exchanged.map(|()| true)?),
            }
        });
        self.close_moved(&[one, other]);
        exchanged
    }

    /// Removes a file, if it exists. Does not follow a link.
    pub(crate) fn remove(&self, path: &Path) -> Result<()> {
        let remove = |dir: &OwnedFd, name: &OsStr| Ok(unlinkat(dir, name, AtFlags::empty())?);
        attempt("remove", path, || found(self.at(path, remove))).map(drop)
    }

    /// Creates a symbolic link.
    pub(in crate::storage) fn symbolic_link(&self, target: &Path, path: &Path) -> Result<()> {
        attempt("make the link", path, || {
            self.at(path, |dir, name| Ok(symlinkat(target, dir, name)?))
        })
    }

    /// Makes a file read-only. Returns the time of its last write, in nanoseconds since 1970.
    pub(crate) fn seal(&self, path: &Path) -> Result<i64> {
        self.seal_open(&self.reading_made(path)?)
    }

    /// Makes an open file read-only. The rights to read and execute it stay. Returns the time of
    /// its last write, in nanoseconds since 1970.
    pub(in crate::storage) fn seal_open(&self, reading: &Reading<'_>) -> Result<i64> {
        let metadata = reading.metadata();
        let shared = self.shared.unwrap_or(0) & 0o044;
        let mode = metadata.mode() & 0o555 | 0o400 | shared;
        attempt("make read-only", reading.path(), || {
            reading.file().set_permissions(Permissions::from_mode(mode))
        })?;
        Ok(metadata.modified_ns())
    }

    /// Lets the group read a file that a computation made, if the storage is shared.
    pub(in crate::storage) fn share_made(&self, path: &Path) -> Result<()> {
        let Some(shared) = self.shared else { return Ok(()) };
        attempt("make readable", path, || {
            self.at(path, |dir, name| allow(dir, name, shared & 0o044))
        })
    }

    /// Returns the digest of a file's contents.
    pub(crate) fn digest(&self, path: &Path) -> Result<Digest> {
        self.reading(path)?.digest()
    }

    /// Copies a file into a new one. Returns the digest of the copy.
    pub(crate) fn copy(&self, from: &Path, to: &Path) -> Result<Digest> {
        self.reading_made(from)?.copy(self, to)
    }

    /// Returns the last lines of a text, at most `bytes` bytes.
    pub(in crate::storage) fn tail(&self, path: &Path, bytes: u64) -> Result<String> {
        attempt("read", path, || tail(self.open_file(path)?.0, bytes))
    }

    /// Returns what a file has from a byte on, at most so many bytes; nothing if it does not exist.
    ///
    /// The file is opened anew: over NFS, only then is its size known for certain.
    pub(in crate::storage) fn read_from(
        &self,
        path: &Path,
        from: u64,
        most: u64,
    ) -> Result<Vec<u8>> {
        let read = || {
            let mut file = self.open_file(path)?.0;
            let mut contents = Vec::new();
            file.seek(SeekFrom::Start(from))?;
            file.take(most).read_to_end(&mut contents)?;
            Ok(contents)
        };
        Ok(attempt("read", path, || found(read()))?.unwrap_or_default())
    }

    /// Waits until a file, or the list of entries of a directory, is on the disk. Does nothing if
    /// it does not exist.
    pub(crate) fn sync(&self, path: &Path) -> Result<()> {
        let sync = |dir: &OwnedFd, name: &OsStr| {
            File::from(openat(dir, name, PLAIN | OFlags::RDONLY, Mode::empty())?).sync_all()
        };
        attempt("flush", path, || found(self.at(path, sync))).map(drop)
    }

    /// Waits until everything on the file system of the storage is on the disk.
    pub(crate) fn sync_all(&self) -> Result<()> {
        let sync = |dir: &OwnedFd, name: &OsStr| {
            Ok(syncfs(openat(dir, name, PLAIN | OFlags::RDONLY, Mode::empty())?)?)
        };
        attempt("flush the file system of", self.root(), || self.at(self.root(), sync))
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
