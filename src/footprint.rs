//! What some places of a file system look like, kept to tell later that nothing there has changed.
//!
//! No file is read: each file, link and directory is known by its [`Stamp`], and where links lead
//! counts as well. What is in a directory `.git` does not count.

use std::collections::BTreeSet;
use std::ffi::{CStr, OsStr};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rayon::prelude::*;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, statat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::cache::Stamp;
use crate::digest::Blake3;

/// Everything at some places, and below them.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Footprint {
    places: BTreeSet<PathBuf>,
    /// Directories that have an entry `.git`.
    repositories: Vec<PathBuf>,
    pieces: Vec<Piece>,
    /// Paths that are or may become links, and where they lead.
    links: Vec<(PathBuf, PathBuf)>,
}

/// Some of what is below a directory: paths relative to it.
///
/// Paths are long in a deep tree, and the kernel goes each of them step by step. From a directory
/// near by the way is short.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Piece {
    directory: PathBuf,
    /// Each with a zero byte behind it.
    paths: String,
    /// The hash of their stamps, in this order.
    stamps: Blake3,
}

/// A directory with more than that below it, in no other piece, is a piece.
const MOST: usize = 16;

impl Footprint {
    /// Looks at some places, given by absolute paths, and at wherever links lead from there.
    ///
    /// `None` if anything may have been changed after that time, or cannot be looked at.
    pub fn take(places: impl Iterator<Item = PathBuf>, before: SystemTime) -> Option<Self> {
        let lead = |path: PathBuf| path.canonicalize().map(|real| (path, real));
        let links = places.map(lead).collect::<Result<_, _>>().ok()?;
        let mut taken = Self { links, ..Self::default() };
        let mut next = 0;
        while let Some((_, real)) = taken.links.get(next) {
            let place = real.clone();
            if !place.ancestors().any(|around| taken.places.contains(around)) {
                taken.walk(&place, before).ok()?;
                taken.places.insert(place);
            }
            next += 1;
        }
        Some(taken)
    }

    /// Where everything really is: no path has a link in it.
    pub const fn places(&self) -> &BTreeSet<PathBuf> {
        &self.places
    }

    /// The directories in which something is called `.git`.
    pub fn repositories(&self) -> &[PathBuf] {
        &self.repositories
    }

    /// Whether everything looks as it did.
    pub fn holds(&self) -> bool {
        let leads =
            |(link, real): &(PathBuf, PathBuf)| link.canonicalize().is_ok_and(|path| path == *real);
        self.pieces.par_iter().all(Piece::holds) && self.links.par_iter().all(leads)
    }

    fn walk(&mut self, place: &Path, before: SystemTime) -> Result<(), Errno> {
        let (Some(above), Some(name)) = (place.parent(), place.file_name()) else {
            return Err(Errno::INVAL);
        };
        let (kind, stamp) = look(CWD, place, before)?;
        self.pieces.push(Piece::new(above.into(), &[(name.into(), stamp)])?);
        let mut open = Vec::new();
        if kind == FileType::Directory {
            open.push(Open::new(CWD, place, place.to_owned())?);
        }
        while let Some(top) = open.last_mut() {
            let Some(entry) = top.listing.read().transpose()? else {
                self.close(&mut open)?;
                continue;
            };
            let name = Path::new(OsStr::from_bytes(entry.file_name().to_bytes()));
            if name == Path::new(".") || name == Path::new("..") {
                continue;
            }
            if name == Path::new(".git") {
                self.repositories.push(top.directory.clone());
                if entry.file_type() == FileType::Directory {
                    continue;
                }
            }
            let around = top.listing.fd()?;
            let (kind, stamp) = look(around, name, before)?;
            let inner = match kind {
                FileType::Directory => Some(Open::new(around, name, top.directory.join(name))?),
                _ => None,
            };
            if kind == FileType::Symlink {
                let path = top.directory.join(name);
                let real = path.canonicalize().map_err(|_| Errno::LOOP)?;
                self.links.push((path, real));
            }
            top.seen.push((name.to_owned(), stamp));
            open.extend(inner);
        }
        Ok(())
    }

    /// Ends the innermost directory: it becomes a piece, or a part of the one around it.
    fn close(&mut self, open: &mut Vec<Open>) -> Result<(), Errno> {
        let Some(Open { directory, seen, .. }) = open.pop() else { return Ok(()) };
        match (open.last_mut(), directory.file_name()) {
            (Some(around), Some(name)) if seen.len() <= MOST => {
                let name = Path::new(name);
                around.seen.extend(seen.into_iter().map(|(path, stamp)| (name.join(path), stamp)));
            }
            _ => self.pieces.push(Piece::new(directory, &seen)?),
        }
        Ok(())
    }
}

/// A directory that is being walked.
struct Open {
    directory: PathBuf,
    listing: Dir,
    /// What is there, as far as it is not in pieces: paths relative to the directory.
    seen: Vec<(PathBuf, Stamp)>,
}

impl Open {
    fn new(around: impl AsFd, name: &Path, directory: PathBuf) -> Result<Self, Errno> {
        let listing = Dir::new(enter(around, name, OFlags::RDONLY)?)?;
        Ok(Self { directory, listing, seen: Vec::new() })
    }
}

/// Tells what has a path, and its stamp.
fn look(around: impl AsFd, path: &Path, before: SystemTime) -> Result<(FileType, Stamp), Errno> {
    let stat = statat(around, path, AtFlags::SYMLINK_NOFOLLOW)?;
    let stamp = Stamp::from(&stat);
    // Anything younger may change again without a sign of it.
    if !stamp.settled(before) {
        return Err(Errno::BUSY);
    }
    Ok((FileType::from_raw_mode(stat.st_mode), stamp))
}

impl Piece {
    /// Fails if a path is no text.
    fn new(directory: PathBuf, entries: &[(PathBuf, Stamp)]) -> Result<Self, Errno> {
        let mut paths = String::new();
        for (path, _) in entries {
            paths.push_str(path.to_str().ok_or(Errno::ILSEQ)?);
            paths.push('\0');
        }
        Ok(Self { directory, paths, stamps: hash(entries.iter().map(|(_, stamp)| *stamp)) })
    }

    fn holds(&self) -> bool {
        let Ok(directory) = enter(CWD, &self.directory, OFlags::PATH) else { return false };
        let look = |path: &[u8]| {
            let path = CStr::from_bytes_with_nul(path).ok()?;
            Some(Stamp::from(&statat(&directory, path, AtFlags::SYMLINK_NOFOLLOW).ok()?))
        };
        let paths = self.paths.as_bytes().split_inclusive(|byte| *byte == 0);
        let now: Option<Vec<Stamp>> = paths.map(look).collect();
        now.is_some_and(|now| hash(now.into_iter()) == self.stamps)
    }
}

/// One hash for all stamps.
fn hash(stamps: impl Iterator<Item = Stamp>) -> Blake3 {
    let mut bytes = Vec::with_capacity(stamps.size_hint().0 * size_of::<Stamp>());
    for Stamp { device, inode, size, modified_ns, changed_ns } in stamps {
        let numbers =
            [device, inode, size, modified_ns.cast_unsigned(), changed_ns.cast_unsigned()];
        numbers.iter().for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
    }
    Blake3::of(&bytes)
}

/// Opens a directory.
fn enter(around: impl AsFd, path: &Path, how: OFlags) -> Result<OwnedFd, Errno> {
    openat(around, path, how | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}
