//! The walk through a directory that reads no file.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::SystemTime;
use std::{io, mem};

use ce_model::digest::{Blake3, Digest};
use rayon::iter::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, RawDir, Stat, fstat, mkdirat, openat, readlinkat, statat,
};
use rustix::io::Errno;

use super::format::{EntryKind, HEADER, ManifestEntry, contents, hash};
use super::{DirectoryError, Refusal, Refused, check_link};
use crate::cache::FileStat;
use crate::umask;

/// The number of bytes of a listing that the kernel gives at a time.
pub(super) const LISTING: usize = 64 << 10;

/// From this number of names on, all cores look at the entries of a directory.
const MANY: usize = 1024;

/// The contents of a directory when it was walked through: every entry, with the stats of files.
///
/// All of it can be part of a value: else there is no scan.
#[derive(Debug)]
pub struct Scan {
    pub(super) top: OwnedFd,
    /// Sorted by the bytes of the paths.
    pub(super) entries: Vec<ManifestEntry<FileStat>>,
    taken: SystemTime,
    changed_ns: i64,
    /// Its files may get other names while they are read.
    pub(super) linked: bool,
}

impl Scan {
    /// Walks through the directory at this path, which may be a link to it.
    pub fn at(path: &Path, stop: &AtomicBool) -> Result<Self, DirectoryError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let top = openat(CWD, path, flags, Mode::empty());
        Self::walk(
            top.map_err(|error| DirectoryError::Io { path: [].into(), source: error.into() })?,
            stop,
        )
    }

    /// Walks through an open directory. A descriptor that is only a place (`O_PATH`) will do.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be listed, changes meanwhile, or has entries that cannot be part of a value: then
    /// the error names all of them. Fails once `stop` is set.
    pub fn walk(top: OwnedFd, stop: &AtomicBool) -> Result<Self, DirectoryError> {
        let taken = SystemTime::now();
        let mut walk = DirectoryWalk {
            listing: Vec::with_capacity(LISTING),
            entries: Vec::new(),
            refused: Vec::new(),
            changed_ns: i64::MIN,
        };
        Descent::walk(&top, |descent| walk.list(descent, stop))?;
        let DirectoryWalk { mut entries, mut refused, changed_ns, .. } = walk;
        if !refused.is_empty() {
            refused.sort_by(|one, other| one.path.cmp(&other.path));
            return Err(DirectoryError::Refused(refused));
        }
        entries.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(Self { top, entries, taken, changed_ns, linked: false })
    }

    /// Lets files get other names while they are read, or lose them, which changes the time of their last change: for
    /// directories whose files are shared with others, and never change.
    #[must_use]
    pub fn linked(self) -> Self {
        Self { linked: true, ..self }
    }

    /// The entries, sorted by the bytes of their paths.
    pub fn entries(&self) -> &[ManifestEntry<FileStat>] {
        &self.entries
    }

    /// Returns the number of bytes that [`Scan::read`] will read.
    pub fn bytes(&self) -> u64 {
        self.stats().fold(0, |sum, stat| sum.saturating_add(stat.size))
    }

    /// Returns the stamp of the directory: equal stamps mean equal paths, types, sizes and times of
    /// modification of files, and equal targets of links.
    ///
    /// It survives a copy that keeps times, and a rename of the directory. It is the BLAKE3 of a text
    /// like a manifest. The first line is `compeval stamp 1`; the line of a file has its size and its time of
    /// modification, in nanoseconds since 1970, and no hashes.
    pub fn stamp(&self) -> Blake3 {
        stamp(&self.entries)
    }

    /// Returns the stamp of a directory in it, as if that had been scanned by itself.
    pub fn stamp_of(&self, path: &[u8]) -> Blake3 {
        let prefix = [path, b"/"].concat();
        let inner = self.entries.iter().filter_map(|entry| {
            let path = entry.path.strip_prefix(&*prefix)?.into();
            Some(ManifestEntry { path, kind: entry.kind.clone() })
        });
        stamp(&inner.collect::<Vec<_>>())
    }

    /// The time of the last modification of a file in it, in nanoseconds since 1970; `None` if no file has that
    /// path.
    pub fn modified_ns(&self, path: &[u8]) -> Option<i64> {
        let at = self.entries.binary_search_by(|entry| (*entry.path).cmp(path)).ok()?;
        match &self.entries[at].kind {
            EntryKind::File { contents, .. } => Some(contents.modified_ns),
            EntryKind::Link { .. } | EntryKind::Empty => None,
        }
    }

    /// Returns the stamp of the very files: it also covers the device and inode of each, and the time of
    /// its last change of anything. No program can change a file and keep this stamp, provided
    /// that it was not [racy](Self::is_racy). It changes with every copy.
    pub fn exact_stamp(&self) -> Blake3 {
        hash("compeval exact stamp 1", &self.entries, |stat| {
            let FileStat { device, inode, size, modified_ns, changed_ns } = stat;
            format!("{size} {modified_ns} {changed_ns} {device} {inode}")
        })
    }

    /// Returns whether a file may have changed since without another stamp, see [`FileStat::is_racy`].
    /// Then neither stamp must be kept.
    pub fn is_racy(&self) -> bool {
        self.stats().any(|stat| stat.is_racy(self.taken))
    }

    /// The size of the manifest, in bytes: it is known without reading files.
    pub fn manifest_size(&self) -> u64 {
        // All hashes take the same room.
        let any = Digest::hash_bytes(b"");
        let mut text = format!("{HEADER}\n");
        for entry in &self.entries {
            entry.write(|stat| contents(&Digest { size: stat.size, ..any }), &mut text);
        }
        text.len() as u64
    }

    /// The time of the last change of any file or directory, in nanoseconds since 1970. For each, the earlier of its
    /// mtime and ctime counts.
    pub fn changed_ns(&self) -> i64 {
        self.changed_ns
    }

    /// The device and inode of the directory itself.
    pub fn id(&self) -> io::Result<(u64, u64)> {
        let stat = fstat(&self.top)?;
        Ok((stat.st_dev, stat.st_ino))
    }

    fn stats(&self) -> impl Iterator<Item = &FileStat> {
        self.entries.iter().filter_map(|entry| match &entry.kind {
            EntryKind::File { contents, .. } => Some(contents),
            EntryKind::Link { .. } | EntryKind::Empty => None,
        })
    }
}

/// The parts that threads which read have in common.
#[derive(Clone, Copy)]
pub(super) struct Watch<'a> {
    pub(super) stop: &'a AtomicBool,
    pub(super) done: &'a AtomicU64,
    /// The time of a file's last change may differ afterwards.
    pub(super) linked: bool,
}

/// A walk, and its findings so far.
struct DirectoryWalk {
    listing: Vec<u8>,
    entries: Vec<ManifestEntry<FileStat>>,
    refused: Vec<Refused>,
    changed_ns: i64,
}

impl DirectoryWalk {
    /// Adds the entries of the current directory. Returns the names of the directories in it, sorted.
    fn list(
        &mut self,
        descent: &Descent,
        stop: &AtomicBool,
    ) -> Result<Vec<Box<[u8]>>, DirectoryError> {
        let wrong = |error| DirectoryError::from_errno(descent.path(), error);
        let own = FileStat::from(&fstat(descent.directory()).map_err(wrong)?);
        self.note_change(&own);
        let mut names = names(descent.directory(), &mut self.listing).map_err(wrong)?;
        if names.is_empty() && !descent.path().is_empty() {
            let path = descent.path().into();
            self.entries.push(ManifestEntry { path, kind: EntryKind::Empty });
        }
        // Sorted, so that errors are the same each time, regardless of the order of the file system.
        names.sort_unstable();
        let look = |name: &[u8]| {
            if stop.load(Ordering::Relaxed) {
                return Err(DirectoryError::Interrupted);
            }
            let path = descent.join(name);
            let looked = look(descent.directory(), name, &path);
            looked
                .map(|looked| (looked, path))
                .map_err(|error| DirectoryError::from_errno(&descent.join(name), error))
        };
        let looked: Vec<_> = if names.len() < MANY {
            names.iter().map(|name| look(name)).collect()
        } else {
            names.par_iter().with_min_len(MANY / 4).map(|name| look(name)).collect()
        };
        let mut directories = Vec::new();
        for (name, looked) in names.into_iter().zip(looked) {
            let (looked, path) = looked?;
            match looked {
                Looked::Entry(kind) => {
                    if let EntryKind::File { contents, .. } = &kind {
                        self.note_change(contents);
                    }
                    self.entries.push(ManifestEntry { path, kind });
                }
                Looked::Directory => directories.push(name),
                Looked::Refused(why) => self.refused.push(Refused { path, why }),
            }
        }
        Ok(directories)
    }

    fn note_change(&mut self, stat: &FileStat) {
        self.changed_ns = self.changed_ns.max(stat.modified_ns.min(stat.changed_ns));
    }
}

fn stamp(entries: &[ManifestEntry<FileStat>]) -> Blake3 {
    hash("compeval stamp 1", entries, |stat| format!("{} {}", stat.size, stat.modified_ns))
}

/// Returns the meaning of this name in a directory, which has this path below the top.
fn look(directory: &OwnedFd, name: &[u8], path: &[u8]) -> Result<Looked, Errno> {
    if name == b".git" {
        return Ok(Looked::Refused(Refusal::Repository));
    }
    let stat = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let other = |kind| Ok(Looked::Refused(Refusal::Kind(kind)));
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(Looked::Entry(file(&stat))),
        FileType::Directory => Ok(Looked::Directory),
        FileType::Symlink => {
            let target: Box<[u8]> = readlinkat(directory, name, Vec::new())?.into_bytes().into();
            Ok(match check_link(path, &target) {
                Ok(()) => Looked::Entry(EntryKind::Link { target }),
                Err(fault) => Looked::Refused(Refusal::Link { target, fault }),
            })
        }
        FileType::Fifo => other("a FIFO"),
        FileType::Socket => other("a socket"),
        FileType::CharacterDevice | FileType::BlockDevice => other("a device"),
        FileType::Unknown => other("something unknown"),
    }
}

/// The meaning of a name in a directory.
enum Looked {
    Entry(EntryKind<FileStat>),
    Directory,
    Refused(Refusal),
}

fn file(stat: &Stat) -> EntryKind<FileStat> {
    EntryKind::File { contents: FileStat::from(stat), executable: stat.st_mode & 0o100 != 0 }
}

/// The names in an open directory that was not listed before.
pub(super) fn names(directory: impl AsFd, listing: &mut Vec<u8>) -> Result<Vec<Box<[u8]>>, Errno> {
    let mut entries = RawDir::new(directory, listing.spare_capacity_mut());
    let mut names = Vec::new();
    while let Some(entry) = entries.next() {
        match entry?.file_name().to_bytes() {
            b"." | b".." => {}
            name => names.push(name.into()),
        }
    }
    Ok(names)
}

/// The number of the directories around the current one that stay open.
const NEAR: usize = 32;

/// An open directory below a top one. It moves to a directory in it, or back to the one around it.
///
/// No path is longer than a name, so the depth is not limited by the longest path of a system call, and a move takes
/// the same time everywhere. Few descriptors are open: of a directory farther up only device and inode are remembered.
/// The way back then leads through `..`, and must lead to that directory: this one may have been moved meanwhile.
#[derive(Debug)]
pub(super) struct Descent {
    /// The path of the current directory, relative to the top; empty at the top.
    path: Vec<u8>,
    here: Arc<OwnedFd>,
    above: Vec<Above>,
}

/// A directory around the current one.
#[derive(Debug)]
struct Above {
    /// The length of its path.
    length: usize,
    handle: Handle,
}

#[derive(Debug)]
enum Handle {
    Open(Arc<OwnedFd>),
    /// It was closed, and has this device and inode.
    Closed((u64, u64)),
}

impl Descent {
    /// Begins at the top directory. It may have been opened as a place only (`O_PATH`).
    pub(super) fn new(top: impl AsFd) -> Result<Self, DirectoryError> {
        let here = open(top, b".");
        let here =
            here.map_err(|error| DirectoryError::Io { path: [].into(), source: error.into() })?;
        Ok(Self { path: Vec::new(), here: Arc::new(here), above: Vec::new() })
    }

    /// Visits the top directory and all below it, each before its subdirectories. `visit` gets the descent in a
    /// directory, and returns the names of the directories in it that are visited next, in this order.
    pub(super) fn walk(
        top: impl AsFd,
        mut visit: impl FnMut(&Self) -> Result<Vec<Box<[u8]>>, DirectoryError>,
    ) -> Result<(), DirectoryError> {
        let mut descent = Self::new(top)?;
        // The directories that are still to be entered, at each level; the next one is the last.
        let mut pending = vec![visit(&descent)?];
        pending[0].reverse();
        while let Some(directories) = pending.last_mut() {
            if let Some(name) = directories.pop() {
                descent.enter(&name)?;
                let mut inner = visit(&descent)?;
                inner.reverse();
                pending.push(inner);
            } else {
                pending.pop();
                descent.leave()?;
            }
        }
        Ok(())
    }

    /// The current directory.
    pub(super) const fn directory(&self) -> &Arc<OwnedFd> {
        &self.here
    }

    /// Its path.
    pub(super) fn path(&self) -> &[u8] {
        &self.path
    }

    /// The path of something in it.
    pub(super) fn join(&self, name: &[u8]) -> Box<[u8]> {
        let slash: &[u8] = if self.path.is_empty() { b"" } else { b"/" };
        [&self.path, slash, name].concat().into()
    }

    /// Moves to a directory in the current one, which is not a link.
    pub(super) fn enter(&mut self, name: &[u8]) -> Result<(), DirectoryError> {
        let inner = open(&self.here, name);
        let inner = inner.map_err(|error| DirectoryError::from_errno(&self.join(name), error))?;
        let length = self.path.len();
        if length > 0 {
            self.path.push(b'/');
        }
        self.path.extend_from_slice(name);
        let around = mem::replace(&mut self.here, Arc::new(inner));
        self.above.push(Above { length, handle: Handle::Open(around) });
        let far = self.above.len().checked_sub(NEAR + 1).and_then(|at| self.above.get_mut(at));
        if let Some(Above { length, handle }) = far
            && let Handle::Open(directory) = handle
        {
            let id = id(directory)
                .map_err(|error| DirectoryError::from_errno(&self.path[..*length], error))?;
            *handle = Handle::Closed(id);
        }
        Ok(())
    }

    /// Moves to the directory around the current one; stays at the top.
    pub(super) fn leave(&mut self) -> Result<(), DirectoryError> {
        let Some(Above { length, handle }) = self.above.pop() else { return Ok(()) };
        self.here = match handle {
            Handle::Open(around) => around,
            Handle::Closed(expected) => {
                let around = open(&self.here, b"..").and_then(|around| Ok((id(&around)?, around)));
                match around {
                    Ok((found, around)) if found == expected => Arc::new(around),
                    Ok(_) => return Err(DirectoryError::Changed(self.path.as_slice().into())),
                    Err(error) => return Err(DirectoryError::from_errno(&self.path, error)),
                }
            }
        };
        self.path.truncate(length);
        Ok(())
    }

    /// Moves to the directory with this path.
    pub(super) fn go_to(&mut self, path: &[u8]) -> Result<(), DirectoryError> {
        while !is_within(path, &self.path) {
            self.leave()?;
        }
        let rest = path[self.path.len()..].split(|byte| *byte == b'/');
        rest.filter(|name| !name.is_empty()).try_for_each(|name| self.enter(name))
    }

    /// Moves to the directory with this path, and makes the directories on the way that do not exist.
    pub(super) fn make(&mut self, path: &[u8]) -> Result<(), DirectoryError> {
        while !is_within(path, &self.path) {
            self.leave()?;
        }
        let rest = path[self.path.len()..].split(|byte| *byte == b'/');
        for name in rest.filter(|name| !name.is_empty()) {
            match mkdirat(&self.here, name, Mode::from_raw_mode(umask::for_user(0o777))) {
                Ok(()) | Err(Errno::EXIST) => self.enter(name)?,
                Err(error) => return Err(DirectoryError::from_errno(&self.join(name), error)),
            }
        }
        Ok(())
    }
}

/// Whether a path is a directory, or something below it.
fn is_within(path: &[u8], directory: &[u8]) -> bool {
    let rest = path.strip_prefix(directory);
    directory.is_empty() || rest.is_some_and(|rest| matches!(rest, [] | [b'/', ..]))
}

/// Opens a directory so that it can be listed.
fn open(around: impl AsFd, name: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(around, name, flags, Mode::empty())
}

fn id(directory: &OwnedFd) -> Result<(u64, u64), Errno> {
    fstat(directory).map(|stat| (stat.st_dev, stat.st_ino))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;

    #[test]
    fn leaving_a_directory_leads_back_to_its_parents() {
        let dir = tempfile::tempdir().unwrap();
        let deep = ["d"; NEAR + 10].join("/");
        fs::create_dir_all(dir.path().join(&deep)).unwrap();
        fs::create_dir_all(dir.path().join("dd/e")).unwrap();
        let mut descent = Descent::new(File::open(dir.path()).unwrap()).unwrap();
        for path in [&deep, "dd/e", "", "d/d", &deep, "d", "dd"] {
            descent.go_to(path.as_bytes()).unwrap();
            assert_eq!(descent.path(), path.as_bytes());
            let expected = File::open(dir.path().join(path)).unwrap().into();
            assert_eq!(id(descent.directory()).unwrap(), id(&expected).unwrap(), "{path}");
            let open = descent.above.iter().filter(|it| matches!(it.handle, Handle::Open(_)));
            assert!(open.count() <= NEAR);
        }
    }

    #[test]
    fn a_directory_that_was_moved_meanwhile_does_not_lead_elsewhere() {
        let dir = tempfile::tempdir().unwrap();
        let deep = ["d"; NEAR + 10].join("/");
        fs::create_dir_all(dir.path().join("top").join(&deep)).unwrap();
        let mut descent = Descent::new(File::open(dir.path().join("top")).unwrap()).unwrap();
        descent.go_to(deep.as_bytes()).unwrap();
        fs::rename(dir.path().join("top/d/d/d"), dir.path().join("elsewhere")).unwrap();
        assert!(
            matches!(descent.go_to(b""), Err(DirectoryError::Changed(path)) if *path == *b"d/d/d")
        );
    }

    #[test]
    fn a_link_is_not_entered() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/", dir.path().join("link")).unwrap();
        let mut descent = Descent::new(File::open(dir.path()).unwrap()).unwrap();
        assert!(
            matches!(descent.enter(b"link"), Err(DirectoryError::Changed(path)) if *path == *b"link")
        );
    }
}
