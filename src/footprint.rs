//! What some places of a file system look like, kept to tell later that nothing there has changed.
//!
//! No file is read: each file, link and directory is known by its [`Stamp`], and where links lead
//! counts as well. What is in a directory `.git` does not count.

use std::collections::BTreeSet;
use std::ffi::{CStr, OsStr};
use std::iter;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rayon::prelude::*;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, statat};
use rustix::io::Errno;
use rustix::path::Arg;
use serde::{Deserialize, Serialize};

use crate::cache::Stamp;
use crate::digest::Blake3;

/// Everything at some places, and below them.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Footprint {
    places: BTreeSet<PathBuf>,
    /// Directories that have an entry `.git`.
    repositories: Vec<PathBuf>,
    /// The texts of all pieces, one behind the other: read as a whole, and given back as a whole.
    text: String,
    pieces: Vec<Piece>,
    /// Paths that are or may become links, and where they lead.
    links: Vec<(PathBuf, PathBuf)>,
}

/// Some of what is below a directory. Its text is the directory's path and paths relative to it, each
/// with a zero byte behind it.
///
/// Paths are long in a deep tree, and the kernel goes each of them step by step. From a directory
/// near by the way is short.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Piece {
    /// How many bytes its text has.
    length: usize,
    /// The hash of the stamps, in the order of the paths.
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
        self.split().is_some_and(|pieces| pieces.into_par_iter().all(looks_so))
            && self.links.par_iter().all(leads)
    }

    fn walk(&mut self, place: &Path, before: SystemTime) -> Result<(), Errno> {
        let (Some(above), Some(name)) = (place.parent(), place.file_name()) else {
            return Err(Errno::INVAL);
        };
        let (kind, stamp) = look(CWD, place, before)?;
        self.add(above, &[(name.into(), stamp)])?;
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
            _ => self.add(&directory, &seen)?,
        }
        Ok(())
    }

    /// Adds a piece. Fails if a path is no text.
    fn add(&mut self, directory: &Path, entries: &[(PathBuf, Stamp)]) -> Result<(), Errno> {
        let before = self.text.len();
        for path in iter::once(directory).chain(entries.iter().map(|(path, _)| path.as_path())) {
            self.text.push_str(path.to_str().ok_or(Errno::ILSEQ)?);
            self.text.push('\0');
        }
        let stamps = hash(entries.iter().map(|(_, stamp)| *stamp));
        self.pieces.push(Piece { length: self.text.len() - before, stamps });
        Ok(())
    }

    /// The text and the hash of each piece.
    fn split(&self) -> Option<Vec<(&str, Blake3)>> {
        let mut rest = &*self.text;
        let next = |piece: &Piece| {
            let (text, others) = rest.split_at_checked(piece.length)?;
            rest = others;
            Some((text, piece.stamps))
        };
        self.pieces.iter().map(next).collect()
    }
}

/// Whether a piece with this text looks as it did when its stamps had this hash.
fn looks_so((text, stamps): (&str, Blake3)) -> bool {
    let paths = text.as_bytes().split_inclusive(|byte| *byte == 0);
    let mut paths = paths.map(|path| CStr::from_bytes_with_nul(path).ok());
    let Some(directory) = paths.next().flatten() else { return false };
    let Ok(directory) = enter(CWD, directory, OFlags::PATH) else { return false };
    let look = |path: Option<&CStr>| {
        Some(Stamp::from(&statat(&directory, path?, AtFlags::SYMLINK_NOFOLLOW).ok()?))
    };
    let now: Option<Vec<Stamp>> = paths.map(look).collect();
    now.is_some_and(|now| hash(now.into_iter()) == stamps)
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
fn enter(around: impl AsFd, path: impl Arg, how: OFlags) -> Result<OwnedFd, Errno> {
    openat(around, path, how | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}
