//! What some places of a file system look like, kept to tell later that nothing there has changed.
//!
//! No file is read: each file, link and directory is known by its [`Stamp`], and where links lead
//! counts as well. What is in a directory `.git` does not count.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rayon::prelude::*;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, openat, statat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::cache::Stamp;

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
    entries: Vec<(PathBuf, Stamp)>,
}

/// A directory with more than that below it, in no other piece, is a piece.
const MOST: usize = 64;

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
        let within = vec![(name.into(), look(CWD, place)?)];
        let mut open = vec![Open { directory: above.to_owned(), within, seen: Vec::new() }];
        while let Some(top) = open.last_mut() {
            let Some((name, stat)) = top.within.pop() else {
                self.close(&mut open);
                continue;
            };
            let (kind, stamp) = (FileType::from_raw_mode(stat.st_mode), Stamp::from(&stat));
            if name == Path::new(".git") {
                self.repositories.push(top.directory.clone());
                if kind == FileType::Directory {
                    continue;
                }
            }
            if !stamp.settled(before) {
                return Err(Errno::BUSY);
            }
            let path = top.directory.join(&name);
            top.seen.push((name, stamp));
            if kind == FileType::Symlink {
                let real = path.canonicalize().map_err(|_| Errno::LOOP)?;
                self.links.push((path, real));
            } else if kind == FileType::Directory {
                open.push(Open { within: list(&path)?, directory: path, seen: Vec::new() });
            }
        }
        Ok(())
    }

    /// Ends the innermost directory: it becomes a piece, or a part of the one around it.
    fn close(&mut self, open: &mut Vec<Open>) {
        let Some(Open { directory, seen, .. }) = open.pop() else { return };
        match (open.last_mut(), directory.file_name()) {
            (Some(around), Some(name)) if seen.len() <= MOST => {
                let name = Path::new(name);
                around.seen.extend(seen.into_iter().map(|(path, stamp)| (name.join(path), stamp)));
            }
            _ => self.pieces.push(Piece { directory, entries: seen }),
        }
    }
}

/// A directory that is being walked.
struct Open {
    directory: PathBuf,
    /// What is still to be looked at.
    within: Vec<(PathBuf, Stat)>,
    /// What is there, as far as it is not in pieces: paths relative to the directory.
    seen: Vec<(PathBuf, Stamp)>,
}

fn list(directory: &Path) -> Result<Vec<(PathBuf, Stat)>, Errno> {
    let directory = open(directory, OFlags::RDONLY)?;
    let mut names = Vec::new();
    for entry in Dir::read_from(&directory)? {
        let entry = entry?;
        match entry.file_name().to_bytes() {
            b"." | b".." => {}
            name => names.push(PathBuf::from(OsStr::from_bytes(name))),
        }
    }
    names.into_iter().map(|name| look(&directory, &name).map(|stat| (name, stat))).collect()
}

impl Piece {
    fn holds(&self) -> bool {
        let Ok(directory) = open(&self.directory, OFlags::PATH) else { return false };
        let same = |path: &Path, stamp: &Stamp| {
            look(&directory, path).is_ok_and(|stat| Stamp::from(&stat) == *stamp)
        };
        self.entries.iter().all(|(path, stamp)| same(path, stamp))
    }
}

fn open(directory: &Path, how: OFlags) -> Result<OwnedFd, Errno> {
    openat(CWD, directory, how | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

fn look(directory: impl AsFd, path: &Path) -> Result<Stat, Errno> {
    statat(directory, path, AtFlags::SYMLINK_NOFOLLOW)
}
