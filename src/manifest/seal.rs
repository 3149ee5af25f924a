//! Makes a directory read-only, with everything in it.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, chmodat, fchmod, fstat, openat, renameat, statat, unlinkat,
};
use rustix::io::Errno;

use super::descent::Descent;
use super::error::DirectoryError;
use super::path::split;
use super::scan::{LISTING, names};

/// The name of the copy of a file that has names elsewhere.
const COPY: &str = ".compeval-copy";

/// Makes all files and directories in a directory read-only, but not the directory itself: then it can
/// still be moved. A file that has a name elsewhere, through which it could be changed, is replaced
/// by a copy of it, unless `trusted` says that it cannot. `shared` are the rights of the group and of others
/// that are added.
///
/// # Errors
///
/// Fails if an entry cannot be looked at or changed.
pub fn seal(top: &OwnedFd, shared: u32, trusted: bool) -> Result<(), DirectoryError> {
    let mut found = SealWalk::default();
    let mut listing = Vec::with_capacity(LISTING);
    Descent::walk(top, |descent| {
        let wrong = |error| DirectoryError::of(descent.path(), error);
        let mut inner = Vec::new();
        for name in names(descent.directory(), &mut listing).map_err(wrong)? {
            let looked = found.take(descent, &name, shared);
            if looked.map_err(|error| DirectoryError::of(&descent.join(&name), error))? {
                inner.push(name);
            }
        }
        Ok(inner)
    })?;
    let SealWalk { mut directories, linked } = found;
    let mut descent = Descent::new(top)?;
    let linked = linked.into_values().filter(|_| !trusted);
    let outside = linked.filter(|file| file.links > file.paths.len() as u64);
    let mut copied: Vec<_> = outside.flat_map(|file| file.paths).collect();
    copied.sort_unstable();
    for path in copied {
        let (directory, name) = split(&path);
        descent.go_to(directory)?;
        copy(descent.directory(), name).map_err(|error| DirectoryError::of(&path, error))?;
    }
    directories.sort_unstable();
    for path in directories {
        descent.go_to(&path)?;
        let wrong = |error| DirectoryError::of(&path, error);
        let mode = fstat(descent.directory()).map_err(wrong)?.st_mode;
        fchmod(descent.directory(), sealed(mode, 0o500 | shared & 0o055)).map_err(wrong)?;
    }
    Ok(())
}

/// What a walk has found.
#[derive(Default)]
struct SealWalk {
    /// The paths of all directories.
    directories: Vec<Box<[u8]>>,
    /// Files with several names, by device and inode.
    linked: HashMap<(u64, u64), LinkedFile>,
}

/// A file with several names.
struct LinkedFile {
    links: u64,
    /// Its paths in the directory.
    paths: Vec<Box<[u8]>>,
}

impl SealWalk {
    /// Makes an entry read-only if it is a file, and accessible if it is a directory. Returns whether it is
    /// a directory.
    fn take(&mut self, descent: &Descent, name: &[u8], shared: u32) -> Result<bool, Errno> {
        let directory = descent.directory();
        let stat = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let (mode, wanted) = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {
                self.directories.push(descent.join(name));
                (stat.st_mode & 0o7777, Mode::from_raw_mode(stat.st_mode & 0o777 | 0o700))
            }
            FileType::RegularFile => {
                if stat.st_nlink > 1 {
                    let links = stat.st_nlink;
                    let file = self.linked.entry((stat.st_dev, stat.st_ino));
                    let file = file.or_insert_with(|| LinkedFile { links, paths: Vec::new() });
                    file.paths.push(descent.join(name));
                }
                (stat.st_mode & 0o7777, sealed(stat.st_mode, 0o400 | shared & 0o044))
            }
            _ => return Ok(false),
        };
        if wanted.as_raw_mode() != mode {
            chmodat(directory, name, wanted, AtFlags::empty())?;
        }
        Ok(FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
    }
}

/// The mode without rights to write, and with these.
fn sealed(mode: u32, rights: u32) -> Mode {
    Mode::from_raw_mode(mode & 0o555 | rights)
}

/// Replaces a file by a copy that has no other name.
fn copy(directory: &OwnedFd, name: &[u8]) -> Result<(), Errno> {
    let flags = OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(directory, name, flags | OFlags::RDONLY, Mode::empty())?;
    let mode = Mode::from_raw_mode(fstat(&file)?.st_mode & 0o777);
    let new = flags | OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
    let copy = openat(directory, COPY, new, Mode::from_raw_mode(0o600))?;
    let mut copy = File::from(copy);
    let copied = io::copy(&mut File::from(file), &mut copy).map_err(|error| errno(&error));
    let renamed = copied.and_then(|_| {
        fchmod(&copy, mode)?;
        renameat(directory, COPY, directory, name)
    });
    if renamed.is_err() {
        let _gone = unlinkat(directory, COPY, AtFlags::empty());
    }
    renamed
}

fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
