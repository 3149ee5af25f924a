//! Makes a directory read-only, with everything in it.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, chmodat, fchmod, fstat, openat, renameat, statat,
};
use rustix::io::Errno;

use super::scan::{Descent, LISTING, names};
use super::{DirectoryError, split_path};

/// The name of the copy of a file that has names elsewhere, before a number.
const COPY: &str = ".compeval-copy-";

/// Makes all files and directories in a directory read-only, but not the directory itself: then it can
/// still be moved. A file that has a name elsewhere, through which it could be changed, is replaced
/// by a copy of it, and stays as it is, unless `trusted` says that it cannot. `shared` are the rights of the
/// group and of others that are added.
pub fn seal(top: &OwnedFd, shared: u32, trusted: bool) -> Result<(), DirectoryError> {
    let mut linked: HashMap<(u64, u64), LinkedFile> = HashMap::new();
    let mut listing = Vec::with_capacity(LISTING);
    Descent::walk(top, |descent| {
        let wrong = |error| DirectoryError::of(descent.path(), error);
        let mut inner = Vec::new();
        for name in names(descent.directory(), &mut listing).map_err(wrong)? {
            let sealed = seal_entry(descent, &name, shared, &mut linked);
            if sealed.map_err(|error| DirectoryError::of(&descent.join(&name), error))? {
                inner.push(name);
            }
        }
        if !descent.path().is_empty() {
            let mode = fstat(descent.directory()).map_err(wrong)?.st_mode;
            let mode = Mode::from_raw_mode(sealed_directory(mode, shared));
            fchmod(descent.directory(), mode).map_err(wrong)?;
        }
        Ok(inner)
    })?;
    let mut files: Vec<_> = linked.into_values().flat_map(LinkedFile::into_paths).collect();
    files.sort_unstable();
    let mut descent = Descent::new(top)?;
    for (path, is_outside) in files {
        let (directory, name) = split_path(&path);
        descent.go_to(directory)?;
        let directory = descent.directory();
        let sealed = if is_outside && !trusted {
            copy(directory, name, 0o400 | shared & 0o044)
        } else {
            statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
                .and_then(|stat| seal_file(directory, name, stat.st_mode, shared))
        };
        sealed.map_err(|error| DirectoryError::of(&path, error))?;
    }
    Ok(())
}

/// A file with several names.
struct LinkedFile {
    links: u64,
    /// Its paths in the directory.
    paths: Vec<Box<[u8]>>,
}

impl LinkedFile {
    /// Its paths, each with whether the file has names elsewhere.
    fn into_paths(self) -> impl Iterator<Item = (Box<[u8]>, bool)> {
        let is_outside = self.links > self.paths.len() as u64;
        self.paths.into_iter().map(move |path| (path, is_outside))
    }
}

/// Makes an entry read-only if it is a file with one name, and accessible if it is a directory. Returns
/// whether it is a directory.
fn seal_entry(
    descent: &Descent,
    name: &[u8],
    shared: u32,
    linked: &mut HashMap<(u64, u64), LinkedFile>,
) -> Result<bool, Errno> {
    let directory = descent.directory();
    let stat = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => {
            if stat.st_mode & 0o700 != 0o700 {
                let mode = Mode::from_raw_mode(stat.st_mode & 0o777 | 0o700);
                chmodat(directory, name, mode, AtFlags::empty())?;
            }
            return Ok(true);
        }
        FileType::RegularFile if stat.st_nlink > 1 => {
            let links = stat.st_nlink;
            let file = linked.entry((stat.st_dev, stat.st_ino));
            let file = file.or_insert_with(|| LinkedFile { links, paths: Vec::new() });
            file.paths.push(descent.join(name));
        }
        FileType::RegularFile => seal_file(directory, name, stat.st_mode, shared)?,
        _ => {}
    }
    Ok(false)
}

fn seal_file(directory: &OwnedFd, name: &[u8], mode: u32, shared: u32) -> Result<(), Errno> {
    let wanted = sealed(mode, 0o400 | shared & 0o044);
    if wanted.as_raw_mode() == mode & 0o7777 {
        Ok(())
    } else {
        chmodat(directory, name, wanted, AtFlags::empty())
    }
}

/// The mode without rights to write, and with these.
fn sealed(mode: u32, rights: u32) -> Mode {
    Mode::from_raw_mode(mode & 0o555 | rights)
}

/// Returns the mode of a directory without rights to write, but for those of the group that shares the storage:
/// its members could neither move nor remove it.
pub fn sealed_directory(mode: u32, shared: u32) -> u32 {
    mode & 0o555 | 0o500 | shared & 0o2075
}

/// Replaces a file in a read-only directory by a read-only copy that has no other name.
fn copy(directory: &OwnedFd, name: &[u8], rights: u32) -> Result<(), Errno> {
    let flags = OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(directory, name, flags | OFlags::RDONLY, Mode::empty())?;
    let mode = sealed(fstat(&file)?.st_mode, rights);
    let around = Mode::from_raw_mode(fstat(directory)?.st_mode & 0o7777);
    fchmod(directory, around | Mode::RWXU)?;
    let new = flags | OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
    let mut number = 0_u64;
    let (free, copy) = loop {
        let free = format!("{COPY}{number}");
        match openat(directory, &*free, new, Mode::from_raw_mode(0o600)) {
            Err(Errno::EXIST) => number += 1,
            opened => break (free, opened?),
        }
    };
    let mut copy = File::from(copy);
    let copied = io::copy(&mut File::from(file), &mut copy).map_err(|error| errno(&error));
    copied.and_then(|_| {
        fchmod(&copy, mode)?;
        renameat(directory, &*free, directory, name)?;
        fchmod(directory, around)
    })
}

fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
