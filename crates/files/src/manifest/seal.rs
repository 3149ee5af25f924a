//! Makes a directory and everything in it read-only, and removes attributes that are not part of a value.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

use ce_model::digest::PIECE;
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, Stat, chmodat, fchmod, fstat, openat, renameat, statat,
};
use rustix::io::Errno;

use super::hash_files::FileCopy;
use super::scan::{Descent, LISTING, names};
use super::{DirectoryError, split_path};
use crate::attributes::Sealing;

/// The name of the copy of a file that has names elsewhere, before a number.
const COPY: &str = ".compeval-copy-";

/// The makers of the files in a directory that is sealed.
#[derive(Debug)]
pub enum Made<'a, 's> {
    /// A computation: the attributes that it has set are removed. A file with another name elsewhere, through which it could be changed, is
    /// replaced by a copy; the file itself stays as it is.
    ByComputation(&'a mut Sealing<'s>),
    /// This program: only modes change. Files may have names elsewhere, in other results.
    Here,
}

/// Makes all files and directories in a directory read-only, but not the directory itself: then it can
/// still be moved. `shared` are the rights of the group and of others that are added.
pub fn seal(top: &OwnedFd, shared: u32, mut made: Made<'_, '_>) -> Result<(), DirectoryError> {
    let mut linked: HashMap<(u64, u64), LinkedFile> = HashMap::new();
    let mut listing = Vec::with_capacity(LISTING);
    Descent::walk(top, |descent| {
        let wrong = |error| DirectoryError::from_errno(descent.path(), error);
        let mode = fstat(descent.directory()).map_err(wrong)?.st_mode;
        let mode = Mode::from_raw_mode(match descent.path() {
            [] => mode & 0o777 | 0o700 | shared & 0o2000,
            _ => sealed_directory(mode, shared),
        });
        let set = match &mut made {
            Made::ByComputation(sealing) => sealing.set(descent.directory(), mode),
            Made::Here if descent.path().is_empty() => Ok(()),
            Made::Here => fchmod(descent.directory(), mode),
        };
        set.map_err(wrong)?;
        let mut names = names(descent.directory(), &mut listing).map_err(wrong)?;
        // So times are in the same order on every file system.
        names.sort_unstable();
        let mut inner = Vec::new();
        for name in names {
            if made.is_stopped() {
                return Err(DirectoryError::Interrupted);
            }
            let sealed = seal_entry(descent, &name, shared, &mut made, &mut linked);
            let sealed = sealed.map_err(|error| match error {
                _ if made.is_stopped() => DirectoryError::Interrupted,
                error => DirectoryError::from_errno(&descent.join(&name), error),
            })?;
            if sealed {
                inner.push(name);
            }
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
        let sealed =
            statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).and_then(|stat| match &mut made {
                Made::ByComputation(sealing) if is_outside => {
                    copy(directory, name, 0o400 | shared & 0o044, sealing)
                }
                made => seal_file(directory, name, &stat, shared, made),
            });
        sealed.map_err(|error| match error {
            _ if made.is_stopped() => DirectoryError::Interrupted,
            error => DirectoryError::from_errno(&path, error),
        })?;
    }
    Ok(())
}

impl Made<'_, '_> {
    fn is_stopped(&self) -> bool {
        matches!(self, Self::ByComputation(sealing) if sealing.is_stopped())
    }
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
    made: &mut Made<'_, '_>,
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
        FileType::RegularFile => seal_file(directory, name, &stat, shared, made)?,
        FileType::Symlink => {
            if let Made::ByComputation(sealing) = made {
                sealing.set_link(directory, name, &stat)?;
            }
        }
        _ => {}
    }
    Ok(false)
}

fn seal_file(
    directory: &OwnedFd,
    name: &[u8],
    stat: &Stat,
    shared: u32,
    made: &mut Made<'_, '_>,
) -> Result<(), Errno> {
    let rights = 0o400 | shared & 0o044;
    let wanted = sealed(stat.st_mode, rights);
    match made {
        Made::Here if wanted.as_raw_mode() == stat.st_mode & 0o7777 => Ok(()),
        Made::Here => chmodat(directory, name, wanted, AtFlags::empty()),
        Made::ByComputation(sealing) => {
            let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let open = || openat(directory, name, flags, Mode::empty());
            let file = match open() {
                Err(Errno::ACCESS) => {
                    chmodat(directory, name, wanted, AtFlags::empty())?;
                    open()?
                }
                opened => opened?,
            };
            match sealing.set(&file, wanted) {
                Err(Errno::PERM | Errno::ACCESS) => copy(directory, name, rights, sealing),
                set => set,
            }
        }
    }
}

/// The mode without rights to write, and with these.
fn sealed(mode: u32, rights: u32) -> Mode {
    Mode::from_raw_mode(mode & 0o555 | rights)
}

/// Returns the mode of a directory without rights to write, except for the group that shares the storage: without
/// these, its members could neither move nor remove it.
pub fn sealed_directory(mode: u32, shared: u32) -> u32 {
    mode & 0o555 | 0o500 | shared & 0o2075
}

/// Replaces a file in a read-only directory by a read-only copy that has no other name.
fn copy(directory: &OwnedFd, name: &[u8], rights: u32, sealing: &mut Sealing) -> Result<(), Errno> {
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
    let mut copy = FileCopy::begin(copy.into());
    let copied = fill(&mut copy, &File::from(file), sealing);
    copied.and_then(|()| {
        sealing.set(&copy.file, mode)?;
        renameat(directory, &*free, directory, name)?;
        sealing.set(directory, around)
    })
}

/// Copies a file. Holes stay holes.
fn fill(copy: &mut FileCopy, file: &File, sealing: &Sealing<'_>) -> Result<(), Errno> {
    let (mut piece, mut at) = (vec![0; PIECE], 0);
    loop {
        if sealing.is_stopped() {
            return Err(Errno::CANCELED);
        }
        match file.read_at(&mut piece, at) {
            Ok(0) => return copy.finish(at).map_err(|error| errno(&error)),
            Ok(count) => {
                copy.write(&piece[..count], at).map_err(|error| errno(&error))?;
                at += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(errno(&error)),
        }
    }
}

fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
