//! Files of the storage: reading, writing, linking, moving, removing.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RenameFlags, linkat, openat, renameat, renameat_with, statat,
    symlinkat, unlinkat,
};
use rustix::io::Errno;

use super::reading::Reading;
use super::{Disk, Doing, Metadata, NotOwn, Result, fault, found};
use crate::cache::FileStat;
use crate::digest::Digest;

/// How a file is opened: never through a link, and without waiting for the other end of a FIFO.
const PLAIN: OFlags =
    OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// How many bytes a file may have that is read at once: far more than any record. 256 MiB.
const LARGEST: u64 = 1 << 28;

/// Opens a plain file for reading.
fn open_plain(dir: &OwnedFd, name: &OsStr) -> io::Result<(File, Metadata)> {
    let file = match openat(dir, name, PLAIN | OFlags::RDONLY, Mode::empty()) {
        Ok(file) => File::from(file),
        // A socket cannot be opened at all.
        Err(error @ (Errno::LOOP | Errno::NXIO | Errno::OPNOTSUPP)) => {
            let stat = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
            let kind = NotOwn::of_type(FileType::from_raw_mode(stat.st_mode));
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

    /// Opens a file to read it whole.
    pub(in crate::storage) fn reading<'a>(&self, path: &'a Path) -> Result<Reading<'a>> {
        let opened = fault().and_then(|()| self.open_file(path));
        let (file, metadata) = opened.doing("read", path)?;
        Ok(Reading::of(path, file, metadata))
    }

    /// Does the same with a file that its maker may have made unreadable.
    pub(in crate::storage) fn reading_made<'a>(&self, path: &'a Path) -> Result<Reading<'a>> {
        let open = || match self.open_file(path) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                self.at(path, |dir, name| allow(dir, name, 0o400))?;
                self.open_file(path)
            }
            opened => opened,
        };
        let (file, metadata) = fault().and_then(|()| open()).doing("read", path)?;
        Ok(Reading::of(path, file, metadata))
    }

    /// Returns the contents of a small file, or `None` if nothing has that name.
    pub(crate) fn read(&self, path: &Path) -> Result<Option<Vec<u8>>> {
        Ok(self.read_one(path)?.map(|(_, contents)| contents))
    }

    /// Returns the contents of a small file, and what shows that it was changed since.
    pub(in crate::storage) fn read_one(&self, path: &Path) -> Result<Option<(FileStat, Vec<u8>)>> {
        let read = || {
            let (mut file, metadata) = self.open_file(path)?;
            if metadata.len() > LARGEST {
                return Err(NotOwn::TooLarge.into());
            }
            // What is there is whole, so that nobody needs to ask whether more follows.
            let mut contents = vec![0; metadata.len() as usize];
            file.read_exact(&mut contents)?;
            Ok((metadata.stat(), contents))
        };
        found(fault().and_then(|()| read())).doing("read", path)
    }

    /// Makes a file that is not there yet, and opens it for reading and writing.
    ///
    /// `mode` says who may use it, as far as the user's mask lets them.
    pub(in crate::storage) fn create(&self, path: &Path, mode: u32) -> Result<File> {
        let flags = PLAIN | OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        let create = || {
            let file = self.again(&[path], || {
                self.at(path, |dir, name| {
                    Ok(File::from(openat(dir, name, flags, Mode::from_raw_mode(mode))?))
                })
            })?;
            self.share(&file, mode)?;
            Ok(file)
        };
        fault().and_then(|()| create()).doing("write", path)
    }

    /// Lets those read a new file who may read the storage, if that is shared.
    fn share(&self, file: &File, mode: u32) -> io::Result<()> {
        match self.shared {
            Some(shared) => {
                file.set_permissions(Permissions::from_mode(mode & 0o700 | mode & shared & 0o077))
            }
            None => Ok(()),
        }
    }

    /// Writes a file that is not there yet.
    pub(crate) fn write(&self, path: &Path, contents: &[u8]) -> Result<()> {
        self.create(path, 0o666)?.write_all(contents).doing("write", path)
    }

    /// Writes a file that is not there yet, and lets it be used in these ways.
    pub(in crate::storage) fn write_sealed(
        &self,
        path: &Path,
        contents: &[u8],
        mode: u32,
    ) -> Result<()> {
        let mut file = self.create(path, 0o600)?;
        let written = file.write_all(contents);
        let sealed = written.and_then(|()| file.set_permissions(Permissions::from_mode(mode)));
        sealed.doing("write", path)
    }

    /// Adds to the end of a file, which is made if it is not there.
    pub(in crate::storage) fn append(&self, path: &Path, contents: &[u8]) -> Result<()> {
        let flags = PLAIN | OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND;
        let append = || {
            let mut file = self.at(path, |dir, name| {
                Ok(File::from(openat(dir, name, flags, Mode::from_raw_mode(0o666))?))
            })?;
            if let Some(kind) = NotOwn::of_type(Metadata::of(&file)?.kind()) {
                return Err(kind.into());
            }
            self.share(&file, 0o666)?;
            file.write_all(contents)
        };
        fault().and_then(|()| append()).doing("write", path)
    }

    /// Gives a file a second name; returns whether that was free. A link is not followed.
    pub(crate) fn link(&self, from: &Path, to: &Path) -> Result<bool> {
        let link = || {
            let (from, to) = (self.spot(from)?, self.spot(to)?);
            let flags = AtFlags::empty();
            Ok(linkat(&from.directory, from.name, &to.directory, to.name, flags)?)
        };
        match fault().and_then(|()| self.again(&[from, to], link)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error).doing("link to", to),
        }
    }

    /// Gives a file a second name, or a copy that name where the system refuses to link to a file of
    /// another user (`fs.protected_hardlinks`); returns whether the name was free.
    pub(in crate::storage) fn link_or_copy(&self, from: &Path, to: &Path) -> Result<bool> {
        match self.link(from, to) {
            Err(error) if error.may_not_write() => self.copy(from, to).map(|_| true),
            linked => linked,
        }
    }

    /// Gives what is going to be replaced another name. A directory has but one, and is moved.
    pub(in crate::storage) fn quarantine(&self, from: &Path, to: &Path) -> Result<()> {
        match self.metadata(from)? {
            Some(metadata) if metadata.is_dir() => self.rename(from, to).map(drop),
            _ => self.link_or_copy(from, to).map(drop),
        }
    }

    /// Moves a file to its place, whatever is there; returns whether there was a file to be moved.
    pub(crate) fn rename(&self, from: &Path, to: &Path) -> Result<bool> {
        let rename = || {
            let (from, to) = (self.spot(from)?, self.spot(to)?);
            Ok(renameat(&from.directory, from.name, &to.directory, to.name)?)
        };
        let moved = found(fault().and_then(|()| self.again(&[from, to], rename)));
        self.close_moved(&[from]);
        moved.doing("move to", to).map(|moved| moved.is_some())
    }

    /// Moves a file to its place unless something is there; returns whether nothing was.
    ///
    /// A file that is gone is not moved, and nothing is in its way.
    pub(crate) fn rename_new(&self, from: &Path, to: &Path) -> Result<bool> {
        let is_there = |path: &Path| {
            let look = self.at(path, |dir, name| Ok(statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?));
            found(look).map(|stat| stat.is_some())
        };
        let rename = || {
            let (old, new) = (self.spot(from)?, self.spot(to)?);
            let flags = RenameFlags::NOREPLACE;
            match renameat_with(&old.directory, old.name, &new.directory, new.name, flags) {
                // Network file systems do not know this.
                Err(Errno::INVAL) if is_there(to)? => Ok(false),
                Err(Errno::INVAL) => {
                    Ok(renameat(&old.directory, old.name, &new.directory, new.name)
                        .map(|()| true)?)
                }
                Err(Errno::EXIST) => Ok(!is_there(from)?),
                moved => Ok(moved.map(|()| true)?),
            }
        };
        let moved = found(fault().and_then(|()| self.again(&[from, to], rename)));
        self.close_moved(&[from]);
        moved.doing("move to", to).map(|moved| moved.unwrap_or(true))
    }

    /// Lets two files or directories change places; returns false if one is gone, or the file system
    /// cannot do that.
    pub(in crate::storage) fn exchange(&self, one: &Path, other: &Path) -> Result<bool> {
        let exchange = || {
            let (here, there) = (self.spot(one)?, self.spot(other)?);
            let flags = RenameFlags::EXCHANGE;
            match renameat_with(&here.directory, here.name, &there.directory, there.name, flags) {
                Err(Errno::INVAL | Errno::NOENT) => Ok(false),
                exchanged => Ok(exchanged.map(|()| true)?),
            }
        };
        let exchanged = fault().and_then(|()| exchange());
        self.close_moved(&[one, other]);
        exchanged.doing("move to", other)
    }

    /// Removes a file unless it is gone. Of a link, not what it leads to.
    pub(crate) fn remove(&self, path: &Path) -> Result<()> {
        let remove = || self.at(path, |dir, name| Ok(unlinkat(dir, name, AtFlags::empty())?));
        found(fault().and_then(|()| remove())).doing("remove", path).map(drop)
    }

    /// Makes a symbolic link that is not there yet.
    pub(in crate::storage) fn symbolic_link(&self, target: &Path, path: &Path) -> Result<()> {
        let make = || self.at(path, |dir, name| Ok(symlinkat(target, dir, name)?));
        fault().and_then(|()| make()).doing("make the link", path)
    }

    /// Takes from everybody the right to write a file; returns when it was last written, in
    /// nanoseconds since 1970.
    pub(crate) fn seal(&self, path: &Path) -> Result<i64> {
        self.seal_open(&self.reading_made(path)?)
    }

    /// Does the same with an open file. The rights to read and execute it stay.
    pub(in crate::storage) fn seal_open(&self, reading: &Reading<'_>) -> Result<i64> {
        let metadata = reading.metadata();
        let shared = self.shared.unwrap_or(0) & 0o044;
        let mode = metadata.mode() & 0o555 | 0o400 | shared;
        let seal = || reading.file().set_permissions(Permissions::from_mode(mode));
        let sealed = fault().and_then(|()| seal());
        sealed.doing("make read-only", reading.path())?;
        Ok(metadata.modified_ns())
    }

    /// Lets those read a file that its maker made who may read the storage, if that is shared.
    pub(in crate::storage) fn share_made(&self, path: &Path) -> Result<()> {
        let Some(shared) = self.shared else { return Ok(()) };
        let share = || self.at(path, |dir, name| allow(dir, name, shared & 0o044));
        fault().and_then(|()| share()).doing("make readable", path)
    }

    /// Returns the digest of a file's contents.
    pub(crate) fn digest(&self, path: &Path) -> Result<Digest> {
        self.reading(path)?.digest()
    }

    /// Copies a file into a new one; returns the digest of what was copied.
    pub(crate) fn copy(&self, from: &Path, to: &Path) -> Result<Digest> {
        self.reading_made(from)?.copy(self, to)
    }

    /// Returns the last lines of a text, of so many bytes at most.
    pub(in crate::storage) fn tail(&self, path: &Path, bytes: u64) -> Result<String> {
        let tail = || tail(self.open_file(path)?.0, bytes);
        fault().and_then(|()| tail()).doing("read", path)
    }

    /// Waits until a file, or what a directory lists, is on the disk. What is gone needs no waiting.
    pub(crate) fn sync(&self, path: &Path) -> Result<()> {
        let sync = || {
            self.at(path, |dir, name| {
                let file = openat(dir, name, PLAIN | OFlags::RDONLY, Mode::empty())?;
                File::from(file).sync_all()
            })
        };
        found(fault().and_then(|()| sync())).doing("flush", path).map(drop)
    }

    /// Waits until everything on the file system of the storage is on the disk.
    pub(crate) fn sync_all(&self) -> Result<()> {
        let root = self.root();
        let sync = || {
            self.at(root, |dir, name| {
                let root = openat(dir, name, PLAIN | OFlags::RDONLY, Mode::empty())?;
                Ok(rustix::fs::syncfs(root)?)
            })
        };
        fault().and_then(|()| sync()).doing("flush the file system of", root)
    }
}

/// Adds rights to those of a file or directory, unless it has them.
pub(super) fn allow(dir: &OwnedFd, name: &OsStr, rights: u32) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = File::from(openat(dir, name, flags, Mode::empty())?);
    let metadata = Metadata::of(&file)?;
    if metadata.kind() == FileType::Symlink {
        return Err(NotOwn::Link.into());
    }
    if metadata.mode() & rights == rights {
        return Ok(());
    }
    // The file that is open, whatever has its name by now.
    let open = format!("/proc/self/fd/{}", file.as_raw_fd());
    fs::set_permissions(open, Permissions::from_mode(metadata.mode() | rights))
}

/// Returns the last lines of a text, of so many bytes at most.
fn tail(mut file: File, bytes: u64) -> io::Result<String> {
    let begin = file.metadata()?.len().saturating_sub(bytes);
    file.seek(SeekFrom::Start(begin))?;
    let mut text = Vec::new();
    file.take(bytes).read_to_end(&mut text)?;
    let text = String::from_utf8_lossy(&text);
    let whole_lines = text.split_once('\n').filter(|_| begin > 0).map(|(_, rest)| rest);
    Ok(whole_lines.unwrap_or(&text).to_owned())
}
