//! Files of the storage: reading, writing, linking, moving, removing, and their metadata.
//!
//! A network file system may link or move a file and report a failure. Both operations compare device and inode before
//! they try again.

use std::ffi::OsStr;
use std::fs::{File, Permissions};
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RenameFlags, linkat, openat, renameat, renameat_with,
    symlinkat, syncfs, unlinkat,
};
use rustix::io::Errno;

use super::hash_and_copy::Reading;
use super::network::OnNotFound;
use super::{Disk, FileId, ForeignEntry, IoContext, Metadata, Result, StorageError, found, stat};
use ce_files::attributes::Sealing;
use ce_files::beneath::{allow, set_mode};
use ce_files::cache::FileStat;
use ce_files::{open_leased, umask};
use ce_model::digest::{Digest, PIECE};

/// The flags to open a file: not through a link, and without waiting for the other end of a FIFO.
const PLAIN: OFlags =
    OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// The greatest size of a file that is read at once, in bytes: 256 MiB, far more than any record.
const MAX_READ: u64 = 1 << 28;

/// Opens a plain file for reading.
fn open_plain(
    dir: &OwnedFd,
    name: &OsStr,
    is_stopped: impl Fn() -> bool,
) -> io::Result<(File, Metadata)> {
    let open = || openat(dir, name, PLAIN | OFlags::RDONLY, Mode::empty());
    let file = match open_leased(is_stopped, open) {
        Ok(file) => File::from(file),
        // A socket cannot be opened at all.
        Err(error @ (Errno::LOOP | Errno::NXIO | Errno::OPNOTSUPP)) => {
            let kind = ForeignEntry::of_type(FileType::from_raw_mode(stat(dir, name)?.st_mode));
            return Err(kind.map_or_else(|| error.into(), io::Error::from));
        }
        Err(error) => return Err(error.into()),
    };
    let metadata = Metadata::read(&file)?;
    match ForeignEntry::of_type(metadata.kind()) {
        None => Ok((file, metadata)),
        Some(kind) => Err(kind.into()),
    }
}

impl Disk {
    /// Opens a plain file for reading.
    fn open_file(&self, path: &Path) -> io::Result<(File, Metadata)> {
        self.at(path, |dir, name| open_plain(dir, name, || self.is_stopped()))
    }

    /// Opens a file to be read to its end.
    pub(crate) fn reading<'a>(&self, path: &'a Path) -> Result<Reading<'a>> {
        let (file, metadata) = self.attempt("read", path, || self.open_file(path))?;
        Ok(Reading::new(path, file, metadata))
    }

    /// Opens a file to be read to its end, unless `stop` is set, which also ends waiting for a program that holds a lease on it.
    pub(crate) fn reading_until<'a>(
        &self,
        path: &'a Path,
        stop: &'a AtomicBool,
    ) -> Result<Reading<'a>> {
        let is_stopped = || stop.load(Ordering::Relaxed);
        let open = || self.at(path, |dir, name| open_plain(dir, name, is_stopped));
        match self.attempt("read", path, open) {
            Err(error) if error.is_leased() && is_stopped() => Err(StorageError::Interrupted),
            opened => opened.map(|(file, metadata)| Reading::new(path, file, metadata).until(stop)),
        }
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
        Ok(Reading::new(path, file, metadata))
    }

    /// Returns the contents of a small file, or `None` if nothing has that name.
    pub(crate) fn read(&self, path: &Path) -> Result<Option<Vec<u8>>> {
        Ok(self.read_one(path)?.map(|(_, contents)| contents))
    }

    /// Returns the stat and the contents of a small file, or `None` if nothing has that name.
    pub(crate) fn read_one(&self, path: &Path) -> Result<Option<(FileStat, Vec<u8>)>> {
        self.look("read", path, || {
            let (mut file, metadata) = self.open_file(path)?;
            if metadata.len() > MAX_READ {
                return Err(ForeignEntry::TooLarge.into());
            }
            // Such files appear whole: no further `read` is needed to find the end.
            let mut contents = vec![0; metadata.len() as usize];
            file.read_exact(&mut contents)?;
            Ok((metadata.stat(), contents))
        })
    }

    /// Opens a file that is read line by line; `None` if there is no plain file of that name.
    pub(crate) fn lines(&self, path: &Path) -> Result<Option<BufReader<File>>> {
        match self.look("read", path, || self.open_file(path)) {
            Ok(opened) => Ok(opened.map(|(file, _)| BufReader::new(file))),
            Err(error) if error.is_foreign() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Creates a file, and opens it for reading and writing.
    ///
    /// It has the rights of `mode` that the group has, if the storage is shared, and else the rights that the umask
    /// leaves.
    pub(crate) fn create(&self, path: &Path, mode: u32) -> Result<File> {
        let flags = PLAIN | OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        let open = |flags| {
            self.at(path, |dir, name| {
                self.making(mode, |mode| Ok(File::from(openat(dir, name, flags, mode)?)))
            })
        };
        self.attempt_again("write", path, |again| {
            match self.again(&[path], || open(flags)) {
                // It was created, and reported as not created: then nothing is in it.
                Err(error) if again && error.kind() == io::ErrorKind::AlreadyExists => {
                    let file = open(flags - OFlags::EXCL - OFlags::CREATE)?;
                    if Metadata::read(&file)?.len() > 0 { Err(error) } else { Ok(file) }
                }
                created => created,
            }
        })
    }

    /// Makes a file or directory with the mode that a new one has here: another user of a shared storage may need it at once.
    pub(super) fn making<T>(&self, mode: u32, make: impl FnOnce(Mode) -> T) -> T {
        match self.shared {
            Some(shared) => {
                let mode = mode & (0o700 | shared);
                umask::exact(mode, || make(Mode::from_raw_mode(mode)))
            }
            None => make(Mode::from_raw_mode(umask::for_user(mode))),
        }
    }

    /// Writes a new file.
    pub(crate) fn write(&self, path: &Path, contents: &[u8]) -> Result<()> {
        self.writing(path, || {
            let mut file = self.create(path, 0o666)?;
            file.write_all(contents).and_then(|()| self.arrive(&file)).context("write", path)
        })
    }

    /// On a file system that may be a network file system, waits until the server has all bytes that were written to a
    /// file: else an error would come when the file is closed, where it is not seen.
    pub(super) fn arrive(&self, file: &File) -> io::Result<()> {
        if self.may_show_late() { file.sync_data() } else { Ok(()) }
    }

    /// Writes a new file. A retry starts over.
    fn writing(&self, path: &Path, mut write: impl FnMut() -> Result<()>) -> Result<()> {
        self.retry(OnNotFound::Accept, |again| {
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
            .context("write", path)
    }

    /// Writes a new file, and then sets its permissions.
    pub(crate) fn write_sealed(&self, path: &Path, contents: &[u8], mode: u32) -> Result<()> {
        self.writing(path, || {
            let mut file = self.create(path, 0o600)?;
            file.write_all(contents)
                .and_then(|()| self.arrive(&file))
                .and_then(|()| file.set_permissions(Permissions::from_mode(mode)))
                .context("write", path)
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
                self.making(0o666, |mode| {
                    let open = || openat(dir, name, flags, mode);
                    Ok(File::from(open_leased(|| self.is_stopped(), open)?))
                })
            })?;
            if let Some(kind) = ForeignEntry::of_type(Metadata::read(&file)?.kind()) {
                return Err(kind.into());
            }
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
        self.look("remove", path, || self.at(path, unlink)).map(drop)
    }

    /// Makes a file of this program read-only. The rights to read and execute it stay. Returns the time of its last write, in
    /// nanoseconds since 1970.
    pub(crate) fn seal(&self, path: &Path) -> Result<i64> {
        let reading = self.reading_made(path)?;
        let mode = self.sealed_mode(reading.metadata().mode() & 0o555 | 0o400);
        self.attempt("make read-only", path, || {
            reading.file().set_permissions(Permissions::from_mode(mode))
        })?;
        Ok(reading.metadata().modified_ns())
    }

    /// A mode with the rights to read that all have in a storage which is shared.
    fn sealed_mode(&self, mode: u32) -> u32 {
        mode | self.shared.unwrap_or(0) & 0o044
    }

    /// Seals a file that a computation has made: makes it read-only, and removes the attributes that the computation has set. A copy
    /// replaces a file that has another name, through which it could be changed, or an attribute that cannot be removed. Returns the open
    /// file.
    pub(crate) fn seal_made<'a>(
        &self,
        reading: Reading<'a>,
        copy: &Path,
        sealing: &mut Sealing<'_>,
    ) -> Result<Reading<'a>> {
        let mode = self.sealed_mode(reading.metadata().mode() & 0o555 | 0o400);
        self.seal_as(reading, mode, copy, sealing)
    }

    /// Does the same with a log, which its owner may write.
    pub(crate) fn seal_log(
        &self,
        log: &Path,
        copy: &Path,
        sealing: &mut Sealing<'_>,
    ) -> Result<()> {
        let reading = self.reading_made(log)?;
        let mode = self.sealed_mode(reading.metadata().mode() & 0o644 | 0o600);
        self.seal_as(reading, mode, copy, sealing).map(drop)
    }

    fn seal_as<'a>(
        &self,
        mut reading: Reading<'a>,
        mode: u32,
        copy: &Path,
        sealing: &mut Sealing<'_>,
    ) -> Result<Reading<'a>> {
        let path = reading.path();
        let mut set = |reading: &Reading<'_>| {
            self.attempt("make read-only", path, || {
                Ok(sealing.set(reading.file(), Mode::from_raw_mode(mode))?)
            })
        };
        let is_copied = reading.metadata().links() > 1
            || match set(&reading) {
                Err(error) if error.may_not_write() => true,
                done => done.map(|()| false)?,
            };
        if is_copied {
            reading.copy(self, copy)?;
            self.rename(copy, path)?;
            reading = self.reading_made(path)?;
            set(&reading)?;
        }
        reading.refresh()
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

    /// Returns the contents of a file from a byte on, at most `most` bytes; nothing if it does not exist.
    ///
    /// The file is opened anew: over NFS, only then is its size known for certain.
    pub(crate) fn read_from(&self, path: &Path, from: u64, most: u64) -> Result<Vec<u8>> {
        let read = self.look("read", path, || {
            let mut file = self.open_file(path)?.0;
            let mut contents = Vec::new();
            file.seek(SeekFrom::Start(from))?;
            file.take(most).read_to_end(&mut contents)?;
            Ok(contents)
        });
        Ok(read?.unwrap_or_default())
    }

    /// Waits until a file, or the list of entries of a directory, is on the disk. Does nothing if
    /// it does not exist.
    pub(crate) fn sync(&self, path: &Path) -> Result<()> {
        self.look("flush", path, || self.at(path, flush)).map(drop)
    }

    /// Waits until everything on the file system of the storage is on the disk.
    pub(crate) fn sync_all(&self) -> Result<()> {
        self.attempt("flush the file system of", self.root(), || {
            self.at(self.root(), |dir, name| {
                Ok(syncfs(openat(dir, name, PLAIN | OFlags::RDONLY, Mode::empty())?)?)
            })
        })
    }
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

/// The result of giving a file a second name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Linked {
    /// The name was free.
    New,
    /// It leads to that file already. Over a network, the link may have been made and reported as failed.
    Same,
    /// It leads to something else.
    Taken,
}

impl Disk {
    /// Gives a file a second name; returns whether it has that now. A link is not followed.
    pub(crate) fn link(&self, from: &Path, to: &Path) -> Result<bool> {
        Ok(self.link_as(from, to)? != Linked::Taken)
    }

    /// Gives a file a second name. A local file system is not asked whether a name that is taken leads to the same file.
    pub(crate) fn link_as(&self, from: &Path, to: &Path) -> Result<Linked> {
        self.attempt_again("link to", to, |again| match self.link_located(from, to) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let is_same = (again || self.is_on_network())
                    && self
                        .id_now(to)?
                        .is_some_and(|id| Some(id) == self.id_now(from).ok().flatten());
                Ok(if is_same { Linked::Same } else { Linked::Taken })
            }
            linked => linked.map(|()| Linked::New),
        })
    }

    /// Gives a file a second name. Tries once more if the directory of one of the names was removed and may be there again.
    fn link_located(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.again(&[from, to], || {
            let (from, to) = (self.locate(from)?, self.locate(to)?);
            let flags = AtFlags::empty();
            Ok(linkat(&from.directory, from.name, &to.directory, to.name, flags)?)
        })
    }

    /// Tries whether a hard link is the same file under another name, and is refused if the name is taken: one file gets it, and
    /// another one tries to.
    pub(crate) fn links_refuse(&self, [one, other]: [&Path; 2], name: &Path) -> bool {
        // A file system without hard links has no leases.
        let refuse = self.try_links([one, other], name).unwrap_or(false);
        drop(self.remove(name));
        refuse
    }

    fn try_links(&self, [one, other]: [&Path; 2], name: &Path) -> Result<bool> {
        Ok(self.link(one, name)? && !self.link(other, name)? && self.id(name)? == self.id(one)?)
    }

    /// The device and inode of a file, if it exists.
    fn id_now(&self, path: &Path) -> io::Result<Option<FileId>> {
        Ok(found(self.at(path, stat))?.map(|stat| (stat.st_dev, stat.st_ino)))
    }

    /// The device and inode of a file that is going to be moved on a network file system.
    fn id_to_move(&self, path: &Path) -> Option<FileId> {
        if self.is_on_network() { self.id_now(path).ok().flatten() } else { None }
    }

    /// Links to a file, or copies it where the system refuses to link to a file of another user
    /// (`fs.protected_hardlinks`). Returns whether the new name was free.
    pub(crate) fn link_or_copy(&self, from: &Path, to: &Path) -> Result<bool> {
        match self.link(from, to) {
            Err(error) if error.may_not_write() => self.copy(from, to).map(|_| true),
            linked => linked,
        }
    }

    /// Gives an entry that is going to be replaced another name. A directory is moved, since it has
    /// only one name.
    pub(crate) fn quarantine(&self, from: &Path, to: &Path) -> Result<()> {
        match self.metadata(from)? {
            Some(metadata) if metadata.is_dir() => self.rename(from, to).map(drop),
            _ => self.link_or_copy(from, to).map(drop),
        }
    }

    /// Moves a file; replaces any file at the new path. Returns whether there was a file to move.
    pub(crate) fn rename(&self, from: &Path, to: &Path) -> Result<bool> {
        let rename = || {
            let (from, to) = (self.locate(from)?, self.locate(to)?);
            Ok(renameat(&from.directory, from.name, &to.directory, to.name)?)
        };
        let before = self.id_to_move(from);
        let moved = self.attempt_again("move to", to, |again| {
            self.or_gone(from, self.moving(from, to, rename).map(|()| true), || {
                self.was_moved(again, before, to)
            })
        });
        self.close_moved(&[from]);
        moved
    }

    /// Makes a directory of this run accessible whose mode a computation may have changed.
    pub(crate) fn make_accessible(&self, dir: &Path) -> Result<()> {
        self.attempt("change the mode of", dir, || {
            self.at(dir, |above, name| allow(above, name, 0o700))
        })
    }

    /// Whether something has this name.
    fn exists_now(&self, path: &Path) -> io::Result<bool> {
        Ok(self.id_now(path)?.is_some())
    }

    /// Moves a file unless something has the new name. Returns whether the name was free.
    ///
    /// A file that does not exist is not moved; that returns true.
    pub(crate) fn rename_new(&self, from: &Path, to: &Path) -> Result<bool> {
        Ok(self.move_new(from, to)? != Moved::Taken)
    }

    /// Moves a file unless something has the new name, or there is no such file.
    pub(crate) fn move_new(&self, from: &Path, to: &Path) -> Result<Moved> {
        let refused = || Ok(if self.exists_now(from)? { Moved::Taken } else { Moved::Gone });
        let rename = || {
            let (old, new) = (self.locate(from)?, self.locate(to)?);
            let flags = RenameFlags::NOREPLACE;
            match renameat_with(&old.directory, old.name, &new.directory, new.name, flags) {
                // Network file systems do not support the flag.
                Err(Errno::INVAL) if self.exists_now(to)? => return refused(),
                Err(Errno::INVAL) => {
                    match renameat(&old.directory, old.name, &new.directory, new.name) {
                        // A directory has got the name since, or was not visible.
                        Err(Errno::NOTEMPTY | Errno::EXIST) => return refused(),
                        moved => moved?,
                    }
                }
                Err(Errno::EXIST | Errno::NOTEMPTY) => return refused(),
                moved => moved?,
            }
            Ok(Moved::Here)
        };
        let moved = self.attempt("move to", to, || {
            self.or_gone(from, self.moving(from, to, rename), || Ok(Moved::Gone))
        });
        self.close_moved(&[from]);
        moved
    }

    /// Returns the result of a move, or the result of `gone` if there was no file to move. On a network file system,
    /// the file or its target directory may exist without being visible yet: then the error is returned.
    fn or_gone<T>(
        &self,
        from: &Path,
        moved: io::Result<T>,
        gone: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        match moved {
            Err(error) if super::is_absent(&error) => {
                if self.is_on_network() {
                    self.close_removed(&[from]);
                    if self.id_now(from)?.is_some() {
                        return Err(error);
                    }
                }
                gone()
            }
            moved => moved,
        }
    }

    /// Whether an earlier attempt has moved a file, and was reported as failed.
    pub(super) fn was_moved(
        &self,
        again: bool,
        before: Option<FileId>,
        to: &Path,
    ) -> io::Result<bool> {
        Ok(again && before.is_some() && self.id_now(to)? == before)
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
    pub(crate) fn exchange(&self, one: &Path, other: &Path) -> Result<bool> {
        let before = self.id_to_move(one);
        let exchanged = self.attempt_again("move to", other, |again| {
            if self.was_moved(again, before, other)? {
                return Ok(true);
            }
            let (here, there) = (self.locate(one)?, self.locate(other)?);
            let flags = RenameFlags::EXCHANGE;
            match renameat_with(&here.directory, here.name, &there.directory, there.name, flags) {
                Err(Errno::INVAL | Errno::NOENT) => Ok(false),
                exchanged => Ok(exchanged.map(|()| true)?),
            }
        });
        self.close_moved(&[one, other]);
        exchanged
    }

    /// Creates a symbolic link.
    pub(crate) fn symbolic_link(&self, target: &Path, path: &Path) -> Result<()> {
        let make = || self.at(path, |dir, name| Ok(symlinkat(target, dir, name)?));
        self.attempt_again("make the link", path, |again| match make() {
            Err(error) if again && error.kind() == io::ErrorKind::AlreadyExists => {
                if self.target_now(path).is_ok_and(|made| made == target) {
                    Ok(())
                } else {
                    Err(error)
                }
            }
            made => made,
        })
    }
}

/// The result of moving a file to a name that may be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moved {
    /// It was moved.
    Here,
    /// There is no such file.
    Gone,
    /// Something else has the name.
    Taken,
}

/// Removes a file of a directory.
fn unlink(dir: &OwnedFd, name: &OsStr) -> io::Result<()> {
    Ok(unlinkat(dir, name, AtFlags::empty())?)
}

/// Waits until an entry of a directory is on the disk.
fn flush(dir: &OwnedFd, name: &OsStr) -> io::Result<()> {
    let open = || openat(dir, name, PLAIN | OFlags::RDONLY, Mode::empty());
    File::from(open_leased(|| false, open)?).sync_all()
}
