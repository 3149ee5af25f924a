//! Whether files have changed, without reading them: the stat of a file, and the fingerprint of some places of a file system.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::{CStr, OsStr};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{io, iter};

use ce_model::digest::Blake3;
use rayon::prelude::*;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, lstat, openat, stat, statat};
use rustix::io::Errno;
use rustix::path::Arg;
use serde::{Deserialize, Serialize};

use super::images::is_image;

/// The state of everything at some places and below them.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    directories: BTreeSet<PathBuf>,
    /// Directories that have an entry `.git`.
    repositories: Vec<PathBuf>,
    /// The texts of all pieces, one behind the other: read as a whole, and given back as a whole.
    text: String,
    pieces: Vec<Piece>,
    /// Paths that are links, and directories that are or may become links, and where they lead.
    links: BTreeMap<PathBuf, PathBuf>,
}

/// Some entries below a directory. Its text is the directory's path and paths relative to it, each
/// followed by a zero byte.
///
/// Paths are long in a deep tree, and the kernel resolves each step by step. Paths relative to a
/// directory near by are short.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Piece {
    /// The size of its text, in bytes.
    length: usize,
    /// The hash of the stats, in the order of the paths.
    stats: Blake3,
}

/// A directory with more entries below it that are in no other piece is a piece of its own.
const MAX_MERGED: usize = 16;

/// The most places of one directory that are one piece: pieces are looked at side by side.
const MAX_PLACES: usize = 1024;

impl Fingerprint {
    /// Takes the fingerprint of some places, given by absolute paths, and of all that links there lead
    /// to.
    ///
    /// `None` if anything is racy at that time or cannot be looked at.
    pub fn take(places: impl Iterator<Item = PathBuf>, before: SystemTime) -> Option<Self> {
        let mut taken = Self::default();
        let mut places: VecDeque<PathBuf> = places.collect();
        let mut seen = BTreeSet::new();
        let mut entries: BTreeMap<PathBuf, Vec<(PathBuf, FileStat)>> = BTreeMap::new();
        while let Some(path) = places.pop_front() {
            let place = taken.resolve(&path).ok()?;
            if place.ancestors().any(|around| seen.contains(around)) {
                continue;
            }
            let (above, name) = place.parent().zip(place.file_name())?;
            let (kind, stat) = look(CWD, &place, before).ok()?;
            entries.entry(above.to_owned()).or_default().push((name.into(), stat));
            if kind == FileType::Directory {
                taken.directories.insert(place.clone());
                places.extend(taken.walk(&place, before).ok()?);
            } else {
                taken.directories.insert(above.to_owned());
            }
            seen.insert(place);
        }
        for (directory, entries) in &entries {
            for entries in entries.chunks(MAX_PLACES) {
                taken.add(directory, entries).ok()?;
            }
        }
        Some(taken)
    }

    /// The real paths of the places that are directories, and of the directories around the others, without links.
    pub const fn directories(&self) -> &BTreeSet<PathBuf> {
        &self.directories
    }

    /// The directories that have an entry `.git`.
    pub fn repositories(&self) -> &[PathBuf] {
        &self.repositories
    }

    /// Whether nothing has changed since.
    pub fn is_current(&self) -> bool {
        self.split().is_some_and(|pieces| {
            pieces.into_par_iter().all(|(text, stats)| is_current(text, stats))
        }) && self
            .links
            .par_iter()
            .all(|(link, real)| link.canonicalize().is_ok_and(|path| path == *real))
    }

    /// Returns the real path of a place. Only a link is followed on its own: that a file does not become one shows in its stat.
    fn resolve(&mut self, path: &Path) -> io::Result<PathBuf> {
        match path.parent().zip(path.file_name()) {
            Some((around, name)) if !path.is_symlink() => Ok(self.follow(around)?.join(name)),
            _ => self.follow(path).cloned(),
        }
    }

    /// Returns where a path leads, which is looked at once.
    fn follow(&mut self, path: &Path) -> io::Result<&PathBuf> {
        Ok(match self.links.entry(path.to_owned()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(path.canonicalize()?),
        })
    }

    /// Looks at everything below a directory. Returns the links there.
    fn walk(&mut self, place: &Path, before: SystemTime) -> Result<Vec<PathBuf>, Errno> {
        let mut links = Vec::new();
        let mut open = vec![Open::new(CWD, place, place.to_owned())?];
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
            let (kind, stat) = look(around, name, before)?;
            let inner = match kind {
                FileType::Directory => Some(Open::new(around, name, top.directory.join(name))?),
                _ => None,
            };
            if kind == FileType::Symlink {
                links.push(top.directory.join(name));
            }
            top.seen.push((name.to_owned(), stat));
            open.extend(inner);
        }
        Ok(links)
    }

    /// Closes the innermost directory: it becomes a piece, or is merged into the one around it.
    fn close(&mut self, open: &mut Vec<Open>) -> Result<(), Errno> {
        let Some(Open { directory, seen, .. }) = open.pop() else { return Ok(()) };
        match (open.last_mut(), directory.file_name()) {
            (Some(around), Some(name)) if seen.len() <= MAX_MERGED => {
                let name = Path::new(name);
                around.seen.extend(seen.into_iter().map(|(path, stat)| (name.join(path), stat)));
            }
            _ => self.add(&directory, &seen)?,
        }
        Ok(())
    }

    /// Adds a piece. Fails if a path is not UTF-8.
    fn add(&mut self, directory: &Path, entries: &[(PathBuf, FileStat)]) -> Result<(), Errno> {
        let before = self.text.len();
        for path in iter::once(directory).chain(entries.iter().map(|(path, _)| path.as_path())) {
            self.text.push_str(path.to_str().ok_or(Errno::ILSEQ)?);
            self.text.push('\0');
        }
        let stats = hash(entries.iter().map(|(_, stat)| *stat));
        self.pieces.push(Piece { length: self.text.len() - before, stats });
        Ok(())
    }

    /// The text and the hash of each piece.
    fn split(&self) -> Option<Vec<(&str, Blake3)>> {
        let mut rest = &*self.text;
        self.pieces
            .iter()
            .map(|piece| {
                let (text, others) = rest.split_at_checked(piece.length)?;
                rest = others;
                Some((text, piece.stats))
            })
            .collect()
    }
}

/// Returns whether the files that this text names still have stats with this hash.
fn is_current(text: &str, stats: Blake3) -> bool {
    let mut paths = text
        .as_bytes()
        .split_inclusive(|byte| *byte == 0)
        .map(|path| CStr::from_bytes_with_nul(path).ok());
    let Some(directory) = paths.next().flatten() else { return false };
    let Ok(directory) = enter(CWD, directory, OFlags::PATH) else { return false };
    let now: Option<Vec<FileStat>> = paths
        .map(|path| {
            Some(FileStat::from(&statat(&directory, path?, AtFlags::SYMLINK_NOFOLLOW).ok()?))
        })
        .collect();
    now.is_some_and(|now| hash(now.into_iter()) == stats)
}

/// A directory that is being listed.
struct Open {
    directory: PathBuf,
    listing: Dir,
    /// The paths found there that are in no piece yet, relative to the directory.
    seen: Vec<(PathBuf, FileStat)>,
}

impl Open {
    fn new(around: impl AsFd, name: &Path, directory: PathBuf) -> Result<Self, Errno> {
        let listing = Dir::new(enter(around, name, OFlags::RDONLY)?)?;
        Ok(Self { directory, listing, seen: Vec::new() })
    }
}

/// Returns the type and the stat of a file. Fails if it is racy.
fn look(around: impl AsFd, path: &Path, before: SystemTime) -> Result<(FileType, FileStat), Errno> {
    let stat = statat(around, path, AtFlags::SYMLINK_NOFOLLOW)?;
    let kind = FileType::from_raw_mode(stat.st_mode);
    let stat = FileStat::from(&stat);
    if stat.is_racy(before) { Err(Errno::BUSY) } else { Ok((kind, stat)) }
}

/// Hashes stats.
fn hash(stats: impl Iterator<Item = FileStat>) -> Blake3 {
    let mut bytes = Vec::with_capacity(stats.size_hint().0 * size_of::<FileStat>());
    for FileStat { device, inode, size, modified_ns, changed_ns } in stats {
        let numbers =
            [device, inode, size, modified_ns.cast_unsigned(), changed_ns.cast_unsigned()];
        numbers.iter().for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
    }
    Blake3::hash_bytes(&bytes)
}

/// Opens a directory.
fn enter(around: impl AsFd, path: impl Arg, how: OFlags) -> Result<OwnedFd, Errno> {
    openat(around, path, how | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

/// The coarsest step of a file system's times.
const MAX_TIME_STEP: Duration = Duration::from_secs(2);

/// The identity, size and times of a file. A changed file has another stat, since no program can set all of
/// it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileStat {
    /// The number of its file system.
    pub device: u64,
    /// Its number on the file system.
    pub inode: u64,
    /// Its size, in bytes.
    pub size: u64,
    /// The time of its last modification, which users can set, in nanoseconds since 1970.
    pub modified_ns: i64,
    /// The time of the last change of anything of it, in nanoseconds since 1970.
    pub changed_ns: i64,
}

/// A time in nanoseconds since 1970.
const fn nanoseconds(seconds: i64, rest: u64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(rest.cast_signed())
}

impl From<&Stat> for FileStat {
    fn from(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
            size: stat.st_size.unsigned_abs(),
            modified_ns: nanoseconds(stat.st_mtime, stat.st_mtime_nsec),
            changed_ns: nanoseconds(stat.st_ctime, stat.st_ctime_nsec),
        }
    }
}

impl FileStat {
    /// Looks at a file. A link is not followed.
    pub fn read(path: &Path) -> io::Result<Self> {
        Ok(Self::from(&lstat(path)?))
    }

    /// Looks at a file, or at the target of a link.
    pub fn of_target(path: &Path) -> io::Result<Self> {
        Ok(Self::from(&stat(path)?))
    }

    /// The device and inode, which no other file has.
    pub const fn id(&self) -> (u64, u64) {
        (self.device, self.inode)
    }

    /// Returns whether the file may have changed after that time without another `FileStat`. Such an entry must not be
    /// cached. It is what Git calls racy of an entry of its index.
    ///
    /// A file that has just changed can change again without another time, and one that was changed in
    /// the future shows that the clock cannot be trusted. In the place of an image, another one may have a file with the same stat.
    pub fn is_racy(&self, taken: SystemTime) -> bool {
        self.is_recent(taken) || is_image(self.device)
    }

    /// Whether the file was changed so late before that time that it may have been changed again since.
    fn is_recent(&self, taken: SystemTime) -> bool {
        let taken = taken.duration_since(UNIX_EPOCH).unwrap_or_default();
        match taken.checked_sub(MAX_TIME_STEP).map(|before| i64::try_from(before.as_nanos())) {
            Some(Ok(before)) => self.modified_ns.max(self.changed_ns) > before,
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_racy_until_both_times_are_past() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let now = FileStat::read(file.path()).unwrap();
        let after = |ms: i64| {
            let ns = now.changed_ns.max(now.modified_ns) + ms * 1_000_000;
            UNIX_EPOCH + Duration::from_nanos(ns.try_into().unwrap())
        };
        assert!(now.is_racy(after(-5000)), "the future");
        assert!(now.is_racy(after(0)));
        assert!(now.is_racy(after(1999)));
        assert!(!now.is_racy(after(2000)));
        assert!(FileStat { modified_ns: now.modified_ns + 1, ..now }.is_racy(after(2000)));
        assert!(FileStat { changed_ns: now.changed_ns + 1, ..now }.is_racy(after(2000)));
        assert!(now.is_racy(UNIX_EPOCH), "a clock that stands at the beginning");
        assert!(!FileStat { modified_ns: -1, ..now }.is_racy(after(2000)), "an old archive");
    }
}
