//! Directories that are written for people: pages, packages, new tasks. All that is written lies beneath one open
//! directory, and is reached through no symbolic link. Existing files are never overwritten.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Permissions};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::SystemTime;

use ce_model::digest::{Digest, Hasher, PIECE};
use rustix::fs::{
    AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, RenameFlags, flock, mkdirat, openat,
    readlinkat, renameat, renameat_with, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;

use crate::beneath::{ForeignEntry, each_entry, open_directory, open_listed, remove_tree};
use crate::cache::FileStat;
use crate::manifest::Scan;
use crate::umask::for_user;

/// The modes of new files and directories, before the user's umask is applied.
const FILE: u32 = 0o666;
const DIRECTORY: u32 = 0o777;

/// The right of the owner to write.
const WRITE: u32 = 0o200;

/// An entry of a directory, as it was when it was looked at. A link is not followed.
#[derive(Clone, Copy, Debug)]
pub struct EntryState {
    pub kind: FileType,
    /// Its owner may execute it.
    pub is_executable: bool,
    pub stat: FileStat,
}

/// Writes files into a directory. Paths are relative to it, with `/` between components.
#[derive(Debug)]
pub struct DirectoryWriter {
    top: OwnedFd,
}

impl DirectoryWriter {
    /// Opens a directory. Only its own path may lead through symbolic links.
    ///
    /// # Errors
    ///
    /// Fails if there is no such directory.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self { top: openat(CWD, path, flags, Mode::empty())? })
    }

    /// Opens the directory that a path is in, and returns the last component.
    fn locate<'p>(&self, path: &'p str) -> io::Result<(OwnedFd, &'p OsStr)> {
        if path.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err(ForeignEntry::Outside.into());
        }
        match path.rsplit_once('/') {
            Some((dir, name)) => {
                Ok((open_directory(&self.top, OsStr::new(dir))?, OsStr::new(name)))
            }
            None => Ok((self.top.try_clone()?, OsStr::new(path))),
        }
    }

    /// Makes a directory, and its parents, unless they exist.
    ///
    /// # Errors
    ///
    /// Fails if something else is in the place of one, such as a symbolic link.
    pub fn make_dirs(&self, path: &str) -> io::Result<()> {
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        for end in ends {
            let dir = &path[..end];
            let (above, name) = self.locate(dir)?;
            match mkdirat(&above, name, Mode::from_raw_mode(for_user(DIRECTORY))) {
                Err(Errno::EXIST) => drop(open_directory(&above, name)?),
                made => made?,
            }
        }
        Ok(())
    }

    /// Makes the directories that a path is in.
    fn make_room(&self, path: &str) -> io::Result<()> {
        let Some((dir, _)) = path.rsplit_once('/') else { return Ok(()) };
        match self.locate(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.make_dirs(dir),
            found => found.map(drop),
        }
    }

    /// Makes a directory, which must not exist.
    ///
    /// # Errors
    ///
    /// Fails if anything has its name, or it cannot be made.
    pub fn make_dir(&self, path: &str) -> io::Result<()> {
        self.make_room(path)?;
        let (dir, name) = self.locate(path)?;
        Ok(mkdirat(dir, name, Mode::from_raw_mode(for_user(DIRECTORY)))?)
    }

    /// Makes an empty file with this mode, reduced by the user's mask, and the directories that it is in.
    ///
    /// # Errors
    ///
    /// Fails if anything has its name, or it cannot be made.
    fn new_file(&self, path: &str, mode: u32) -> io::Result<File> {
        self.make_room(path)?;
        let (dir, name) = self.locate(path)?;
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(File::from(openat(dir, name, flags, Mode::from_raw_mode(for_user(mode)))?))
    }

    /// Makes a file with these contents.
    ///
    /// # Errors
    ///
    /// Fails if anything has its name, or it cannot be written.
    pub fn write(&self, path: &str, contents: impl AsRef<[u8]>) -> io::Result<()> {
        self.new_file(path, FILE)?.write_all(contents.as_ref())
    }

    /// Makes an executable file with these contents.
    ///
    /// # Errors
    ///
    /// Fails if anything has its name, or it cannot be written.
    pub fn write_program(&self, path: &str, contents: impl AsRef<[u8]>) -> io::Result<()> {
        self.new_file(path, DIRECTORY)?.write_all(contents.as_ref())
    }

    /// Puts a file with these contents in the place of a file, or where nothing is: all of it, or nothing. Waits until it is on the disk.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be written.
    pub fn replace(&self, path: &str, contents: &[u8]) -> io::Result<()> {
        let (dir, name) = self.locate(path)?;
        let aside = format!(".{}.{}.part", name.to_string_lossy(), std::process::id());
        let beside =
            path.rsplit_once('/').map_or(aside.clone(), |(dir, _)| format!("{dir}/{aside}"));
        let mut file = self.new_file(&beside, FILE)?;
        let written = file.write_all(contents).and_then(|()| file.sync_all());
        let written = written.and_then(|()| Ok(renameat(&dir, &*aside, &dir, name)?));
        if written.is_err() {
            drop(self.remove(&beside));
        }
        written
    }

    /// Makes a symbolic link.
    ///
    /// # Errors
    ///
    /// Fails if anything has its name, or it cannot be made.
    pub fn link(&self, target: &Path, path: &str) -> io::Result<()> {
        self.make_room(path)?;
        let (dir, name) = self.locate(path)?;
        Ok(symlinkat(target, dir, name)?)
    }

    /// Moves an entry to a free path.
    ///
    /// # Errors
    ///
    /// Fails if anything is there.
    pub fn rename_to_free(&self, from: &str, to: &str) -> io::Result<()> {
        self.make_room(to)?;
        let ((from, old), (to, new)) = (self.locate(from)?, self.locate(to)?);
        match renameat_with(&from, old, &to, new, RenameFlags::NOREPLACE) {
            // The file system does not know this: somebody may come between.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                match statat(&to, new, AtFlags::SYMLINK_NOFOLLOW) {
                    Err(Errno::NOENT) => Ok(renameat(from, old, to, new)?),
                    _ => Err(io::ErrorKind::AlreadyExists.into()),
                }
            }
            renamed => Ok(renamed?),
        }
    }

    /// Moves an entry to a free path, or replaces a file or an empty directory.
    ///
    /// # Errors
    ///
    /// Fails if something else is there.
    pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.make_room(to)?;
        let ((from, old), (to, new)) = (self.locate(from)?, self.locate(to)?);
        Ok(renameat(from, old, to, new)?)
    }

    /// Copies a file or a directory with all its entries. The copies may be written; their room is shared where the file
    /// system can do that.
    ///
    /// # Errors
    ///
    /// Fails if anything has the name of the copy, or something cannot be read or written.
    pub fn copy(&self, from: &Path, to: &str) -> io::Result<()> {
        self.make_room(to)?;
        let (dir, name) = self.locate(to)?;
        if !fs::metadata(from)?.is_dir() {
            return copy_file(from, &dir, name);
        }
        mkdirat(&dir, name, Mode::from_raw_mode(for_user(DIRECTORY)))?;
        copy_entries(from, &open_directory(&dir, name)?)
    }

    /// Removes a file, or a directory with all its entries.
    ///
    /// # Errors
    ///
    /// Fails if it does not exist, or cannot be removed.
    pub fn remove(&self, path: &str) -> io::Result<()> {
        let (dir, name) = self.locate(path)?;
        remove_tree(&dir, name)
    }

    /// Removes a file or a link.
    ///
    /// # Errors
    ///
    /// Fails if it does not exist, is a directory, or cannot be removed.
    pub fn remove_file(&self, path: &str) -> io::Result<()> {
        let (dir, name) = self.locate(path)?;
        Ok(unlinkat(dir, name, AtFlags::empty())?)
    }

    /// Removes a directory in which nothing is, and the ones around it that become empty.
    pub fn remove_empty_dirs(&self, path: &str) {
        let mut dir = Some(path);
        while let Some(path) = dir
            && let Ok((above, name)) = self.locate(path)
            && unlinkat(above, name, AtFlags::REMOVEDIR).is_ok()
        {
            dir = path.rsplit_once('/').map(|(above, _)| above);
        }
    }

    /// Keeps other processes from writing with this lock, as long as the returned file is open. Waits for one that does. Where
    /// a file system knows no locks, nobody waits.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be read.
    pub fn lock(&self) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let top = openat(&self.top, ".", flags, Mode::empty())?;
        match flock(&top, FlockOperation::LockExclusive) {
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOLCK | Errno::BADF | Errno::INVAL) => {
                Ok(File::from(top))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Sets the time of the last modification of a file.
    ///
    /// # Errors
    ///
    /// Fails if it is missing, or belongs to somebody else.
    pub fn set_modified(&self, path: &str, time: SystemTime) -> io::Result<()> {
        self.file(path)?.set_modified(time)
    }

    /// Waits until a file is on the disk.
    ///
    /// # Errors
    ///
    /// Fails if it is missing, or cannot be written.
    pub fn sync(&self, path: &str) -> io::Result<()> {
        self.file(path)?.sync_all()
    }

    /// Returns the target of a symbolic link.
    ///
    /// # Errors
    ///
    /// Fails if there is no link.
    pub fn target(&self, path: &str) -> io::Result<OsString> {
        let (dir, name) = self.locate(path)?;
        let target = readlinkat(dir, name, Vec::new())?;
        Ok(OsString::from_vec(target.into_bytes()))
    }

    /// Returns the kind of an entry, or `None` if nothing has its name.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be looked at.
    pub fn kind(&self, path: &str) -> io::Result<Option<FileType>> {
        Ok(self.look(path)?.map(|entry| entry.kind))
    }

    /// Looks at an entry; `None` if nothing has its name.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be looked at.
    pub fn look(&self, path: &str) -> io::Result<Option<EntryState>> {
        let found = self
            .locate(path)
            .and_then(|(dir, name)| Ok(statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?));
        let stat = match found {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            found => found?,
        };
        Ok(Some(EntryState {
            kind: FileType::from_raw_mode(stat.st_mode),
            is_executable: stat.st_mode & 0o100 != 0,
            stat: FileStat::from(&stat),
        }))
    }

    /// Whether nothing is in the directory.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be listed.
    pub fn is_empty(&self) -> io::Result<bool> {
        let mut is_empty = true;
        each_entry(&open_listed(&self.top, OsStr::new("."))?, |_, _| {
            is_empty = false;
            false
        })?;
        Ok(is_empty)
    }

    /// Opens a file for reading.
    ///
    /// # Errors
    ///
    /// Fails if the path is missing, or is a link, FIFO, device or directory.
    pub fn file(&self, path: &str) -> io::Result<File> {
        let (dir, name) = self.locate(path)?;
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = File::from(openat(dir, name, flags, Mode::empty())?);
        if file.metadata()?.is_file() {
            Ok(file)
        } else {
            Err(ForeignEntry::Kind("no file").into())
        }
    }

    /// Returns the digest of a file, or of a directory as a value; `None` if it cannot be read, or is not a value.
    pub fn digest(&self, path: &str) -> Option<Digest> {
        let (dir, name) = self.locate(path).ok()?;
        if let Ok(directory) = open_directory(&dir, name) {
            let stop = AtomicBool::new(false);
            let manifest = Scan::walk(directory, &stop).ok()?.read(&stop, &AtomicU64::new(0));
            return Some(manifest.ok()?.digest());
        }
        let (mut file, mut hasher) = (self.file(path).ok()?, Hasher::default());
        let mut piece = vec![0; PIECE];
        loop {
            match file.read(&mut piece).ok()? {
                0 => return Some(hasher.finish()),
                bytes => hasher.update(&piece[..bytes]),
            }
        }
    }
}

/// Copies a file to a new one. The copy has the same mode, reduced by the user's mask, and may be written.
fn copy_file(from: &Path, dir: &OwnedFd, name: &OsStr) -> io::Result<()> {
    // To open a FIFO would wait.
    if !fs::metadata(from)?.is_file() {
        return Err(ForeignEntry::Kind("no file").into());
    }
    let mut source = File::open(from)?;
    let mode = for_user(source.metadata()?.permissions().mode() & DIRECTORY | WRITE);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut copy = File::from(openat(dir, name, flags, Mode::from_raw_mode(mode))?);
    io::copy(&mut source, &mut copy)?;
    copy.set_permissions(Permissions::from_mode(mode))
}

/// Copies the entries of a directory.
fn copy_entries(from: &Path, to: &OwnedFd) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (path, name, kind) = (entry.path(), entry.file_name(), entry.file_type()?);
        if kind.is_dir() {
            mkdirat(to, &*name, Mode::from_raw_mode(for_user(DIRECTORY)))?;
            copy_entries(&path, &open_directory(to, &name)?)?;
        } else if kind.is_symlink() {
            symlinkat(fs::read_link(&path)?, to, &*name)?;
        } else {
            copy_file(&path, to, &name)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, symlink};

    use super::*;

    /// A directory with a writer, and one beside it.
    fn lab() -> (tempfile::TempDir, DirectoryWriter) {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("top")).unwrap();
        fs::create_dir(dir.path().join("elsewhere")).unwrap();
        fs::write(dir.path().join("elsewhere/data"), "precious").unwrap();
        let writer = DirectoryWriter::open(&dir.path().join("top")).unwrap();
        (dir, writer)
    }

    #[test]
    fn no_operation_follows_a_link_or_leaves_the_directory() {
        let (dir, writer) = lab();
        symlink("../elsewhere", dir.path().join("top/link")).unwrap();
        fs::write(dir.path().join("top/file"), "").unwrap();
        let data = dir.path().join("elsewhere/data");
        for path in
            ["link/data", "../elsewhere/data", "link/../elsewhere/data", "/etc/x", "a//b", ".", ""]
        {
            let refused = [
                writer.write(path, "").is_err(),
                writer.replace(path, b"").is_err(),
                writer.copy(&data, path).is_err(),
                writer.link(&data, path).is_err(),
                writer.rename("file", path).is_err(),
                writer.rename(path, "new").is_err(),
                writer.remove(path).is_err(),
                writer.make_dirs(path).is_err(),
                writer.file(path).is_err(),
                writer.digest(path).is_none(),
            ];
            assert_eq!(refused, [true; 10], "{path}");
        }
        assert_eq!(fs::read_to_string(&data).unwrap(), "precious");
        assert_eq!(fs::read_dir(dir.path().join("elsewhere")).unwrap().count(), 1);
        writer.remove("link").unwrap();
        assert!(data.exists());
    }

    #[test]
    fn nothing_is_written_over_and_copies_may_be_changed() {
        let (dir, writer) = lab();
        let from = dir.path().join("from");
        fs::create_dir_all(from.join("a")).unwrap();
        fs::write(from.join("a/b.html"), "text").unwrap();
        fs::set_permissions(from.join("a/b.html"), Permissions::from_mode(0o6555)).unwrap();
        symlink("a/b.html", from.join("link")).unwrap();
        writer.copy(&from, "x/y").unwrap();
        let copy = dir.path().join("top/x/y");
        assert_eq!(fs::metadata(copy.join("a/b.html")).unwrap().mode() & 0o7777, 0o755);
        assert_eq!(fs::read_link(copy.join("link")).unwrap(), Path::new("a/b.html"));
        assert!(writer.copy(&from, "x/y").is_err() && writer.write("x", "").is_err());
        writer.write("file", "one").unwrap();
        assert!(writer.write("file", "two").is_err());
        writer.replace("file", b"two").unwrap();
        assert_eq!(writer.digest("file"), Some(Digest::hash_bytes(b"two")));
        assert_eq!(fs::read_dir(dir.path().join("top")).unwrap().count(), 2);
    }
}
