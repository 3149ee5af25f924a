//! The file system as the storage uses it.
//!
//! Everything below a storage is opened relative to a descriptor of its top directory and through
//! no symbolic link, so only the storage's own files are read, written, moved or removed, even if a
//! directory is replaced meanwhile. Only plain files and directories are opened. A path that is not
//! below the top is refused.
//!
//! An error names the operation and the file. "No such file" is returned as a value where callers
//! expect it. All files that a result depends on are accessed through this module, so a test can
//! make any operation fail (see `fault` in `error`).

mod directories;
mod error;
pub(super) mod file_system_kinds;
mod files;
pub(super) mod hash_and_copy;
mod known_texts;
mod metadata;
mod network;
mod placed_links;
mod root;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use rustix::fs::{AtFlags, Mode, OFlags, Stat, fstat, open, statat};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

pub(crate) use self::directories::{EarlierDirectory, make_dirs, make_storage};
pub(super) use self::error::fault;
pub use self::error::{NoStorage, StorageError};
use self::file_system_kinds::FileSystemKind;
pub(super) use self::files::Linked;
pub(crate) use self::files::Moved;
pub(crate) use self::known_texts::MAX_TEXT_FILE;
pub use self::metadata::FileId;
pub(crate) use self::metadata::{Metadata, ValueMetadata};
use self::network::{Listings, OnNotFound, Outages};
pub use self::network::{Outage, Patience};
pub(super) use self::network::{open_created, patience, retry_at};
pub use self::root::Durability;
pub(super) use self::root::Root;
pub(super) use ce_files::beneath::ForeignEntry;
use ce_files::beneath::open_directory;

/// The result of an operation of the storage.
pub(crate) type Result<T, E = StorageError> = std::result::Result<T, E>;

/// The greatest number of directories that are kept open.
const MAX_OPEN: usize = 200;

/// The number of directories that may be kept open: at most a fourth of the process's limit of
/// files.
fn max_open() -> usize {
    static MAX: OnceLock<usize> = OnceLock::new();
    *MAX.get_or_init(|| match getrlimit(Resource::Nofile).current.map(usize::try_from) {
        Some(Ok(files)) => MAX_OPEN.min(files / 4),
        _ => MAX_OPEN,
    })
}

/// The directory of a storage, and the open directories below it.
#[derive(Debug)]
pub(crate) struct Disk {
    root: PathBuf,
    /// `None` if the directory did not exist when this was opened.
    top: Option<Arc<OwnedFd>>,
    /// The device and inode of the top directory.
    id: Option<FileId>,
    /// The mode bits of all new files and directories, if the storage is shared by a group.
    shared: Option<u32>,
    kind: FileSystemKind,
    /// The times when it was away.
    outages: Outages,
    /// The listings of directories of a network file system.
    listings: Listings,
    /// Open directories, by their paths below the top.
    directories: RwLock<HashMap<Box<[u8]>, Arc<OwnedFd>>>,
}

/// An open directory, and a name in it.
struct Location<'p> {
    directory: Arc<OwnedFd>,
    name: &'p OsStr,
}

/// Adds the operation and its path to an error.
pub(crate) trait IoContext<T> {
    fn context(self, doing: &'static str, path: &Path) -> Result<T>;
}

impl<T> IoContext<T> for io::Result<T> {
    fn context(self, doing: &'static str, path: &Path) -> Result<T> {
        self.map_err(|source| StorageError::Io { doing, path: path.to_owned(), source })
    }
}

/// Turns a "no such file" error into `None`.
fn found<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Performs an operation once, unless a fault is injected. An error names the operation and its path.
fn attempt_once<T>(
    doing: &'static str,
    path: &Path,
    act: impl FnOnce() -> io::Result<T>,
) -> Result<T> {
    fault().and_then(|()| act()).context(doing, path)
}

/// Looks at a path once. Returns `None` if nothing has that name.
fn look_once<T>(
    doing: &'static str,
    path: &Path,
    act: impl FnOnce() -> io::Result<T>,
) -> Result<Option<T>> {
    found(fault().and_then(|()| act())).context(doing, path)
}

/// Performs an operation outside of an open storage, and again if the answer may be old.
pub(super) fn attempt<T>(
    doing: &'static str,
    path: &Path,
    mut act: impl FnMut() -> io::Result<T>,
) -> Result<T> {
    network::retry(None, OnNotFound::Accept, |_| attempt_once(doing, path, &mut act))
}

pub(crate) fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

impl Disk {
    /// Opens the directory at this absolute path, which need not exist.
    ///
    /// # Errors
    ///
    /// Fails if it is not a directory, or may not be entered.
    pub(crate) fn open(root: &Path) -> Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = attempt("open the storage", root, || Ok(open(root, flags, Mode::empty())?));
        let top = match opened {
            Err(error) if error.is(Errno::NOENT) => None,
            opened => Some(opened?),
        };
        // Paths below it are recognised by this prefix.
        let root = root.components().collect();
        let stat = top.as_ref().and_then(|top| fstat(top).ok());
        let kind = top.as_ref().map(FileSystemKind::detect).unwrap_or_default();
        let mode = stat.map(|stat| stat.st_mode & 0o2777);
        Ok(Self {
            root,
            top: top.map(Arc::new),
            id: stat.map(|stat| (stat.st_dev, stat.st_ino)),
            shared: mode.filter(|mode| mode & 0o020 != 0),
            kind,
            outages: Outages::default(),
            listings: Listings::default(),
            directories: RwLock::default(),
        })
    }

    /// A directory that does not exist.
    pub(crate) fn absent(root: PathBuf) -> Self {
        Self {
            root,
            top: None,
            id: None,
            shared: None,
            kind: FileSystemKind::default(),
            outages: Outages::default(),
            listings: Listings::default(),
            directories: RwLock::default(),
        }
    }

    /// Whether several hosts may write to it, judged by its kind.
    pub(crate) const fn is_on_network(&self) -> bool {
        self.kind.is_on_network
    }

    /// Whether it may show late what other hosts have written, judged by its kind: one of an unknown kind may.
    pub(crate) const fn may_show_late(&self) -> bool {
        self.kind.may_show_late
    }

    /// Whether hard links may not refuse a name that is taken.
    pub(crate) const fn may_lack_links(&self) -> bool {
        self.kind.may_lack_links
    }

    /// The path of the top directory.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Whether the directory existed when this was opened.
    pub(crate) const fn is_there(&self) -> bool {
        self.top.is_some()
    }

    /// Returns a path below the top, relative to it.
    fn inside<'p>(&self, path: &'p Path) -> io::Result<&'p [u8]> {
        match path.as_os_str().as_bytes().strip_prefix(self.root.as_os_str().as_bytes()) {
            Some(b"") => Ok(b""),
            Some([b'/', inside @ ..]) => Ok(inside),
            // The root of the file system ends in a slash itself.
            Some(inside) if self.root == Path::new("/") => Ok(inside),
            _ => Err(ForeignEntry::Outside.into()),
        }
    }

    fn locate<'p>(&self, path: &'p Path) -> io::Result<Location<'p>> {
        let inside = self.inside(path)?;
        let (directory, name) = match inside.iter().rposition(|byte| *byte == b'/') {
            Some(at) => (&inside[..at], &inside[at + 1..]),
            None if inside.is_empty() => (inside, &b"."[..]),
            None => (&b""[..], inside),
        };
        if name.is_empty() || name == b".." {
            return Err(ForeignEntry::Outside.into());
        }
        Ok(Location { directory: self.directory(directory)?, name: OsStr::from_bytes(name) })
    }

    /// Returns a directory below the top; opens it if necessary.
    fn directory(&self, inside: &[u8]) -> io::Result<Arc<OwnedFd>> {
        let top = self.top.as_ref().ok_or(Errno::NOENT)?;
        if inside.is_empty() {
            return Ok(Arc::clone(top));
        }
        if let Some(known) = self.known(inside) {
            return Ok(known);
        }
        let opened = Arc::new(open_directory(top, OsStr::from_bytes(inside))?);
        let mut known = self.directories.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= max_open() {
            known.clear();
        }
        known.insert(inside.into(), Arc::clone(&opened));
        Ok(opened)
    }

    /// The directory with this path below the top, if it is open.
    fn known(&self, inside: &[u8]) -> Option<Arc<OwnedFd>> {
        let directories = self.directories.read().unwrap_or_else(PoisonError::into_inner);
        directories.get(inside).map(Arc::clone)
    }

    /// Closes a directory, and all below it: their paths may lead to others now.
    fn close(&self, inside: &[u8]) {
        let mut known = self.directories.write().unwrap_or_else(PoisonError::into_inner);
        known.retain(|path, _| !matches!(path.strip_prefix(inside), Some([] | [b'/', ..])));
    }

    /// Calls a function with the open directory of a path, and the name in it.
    fn at<T>(
        &self,
        path: &Path,
        act: impl FnOnce(&OwnedFd, &OsStr) -> io::Result<T>,
    ) -> io::Result<T> {
        let Location { directory, name } = self.locate(path)?;
        act(&directory, name)
    }

    /// Performs an operation on a path that leads to something, or to a directory that does. An error names both.
    fn attempt<T>(
        &self,
        doing: &'static str,
        path: &Path,
        mut act: impl FnMut() -> io::Result<T>,
    ) -> Result<T> {
        self.attempt_again(doing, path, |_| act())
    }

    /// Does the same with an operation whose argument says whether it was tried before: an attempt that failed may have
    /// been performed.
    fn attempt_again<T>(
        &self,
        doing: &'static str,
        path: &Path,
        mut act: impl FnMut(bool) -> io::Result<T>,
    ) -> Result<T> {
        self.retry(OnNotFound::Retry, |again| attempt_once(doing, path, || act(again)))
    }

    /// Looks at a path. Returns `None` if nothing has that name.
    fn look<T>(
        &self,
        doing: &'static str,
        path: &Path,
        mut act: impl FnMut() -> io::Result<T>,
    ) -> Result<Option<T>> {
        self.retry(OnNotFound::Accept, |_| look_once(doing, path, &mut act))
    }

    /// Performs an operation on paths. If it fails and a directory of one of them was removed since
    /// it was opened, performs it once more: there may be a new directory in its place.
    fn again<T>(&self, paths: &[&Path], act: impl Fn() -> io::Result<T>) -> io::Result<T> {
        match act() {
            Err(error) if may_be_gone(&error) && self.close_removed(paths) => act(),
            done => done,
        }
    }

    /// Closes the directories of paths that were removed since they were opened. Returns whether
    /// there were any.
    fn close_removed(&self, paths: &[&Path]) -> bool {
        let mut any = false;
        for path in paths {
            let Ok(inside) = self.inside(path) else { continue };
            let slash = inside.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
            any |= self.close_if_removed(&inside[..slash]);
        }
        any
    }

    /// Closes directories whose paths may have changed.
    fn close_moved(&self, paths: &[&Path]) {
        for inside in paths.iter().filter_map(|path| self.inside(path).ok()) {
            if self.known(inside).is_some() {
                self.close(inside);
            }
        }
    }

    /// Closes a directory if it was removed since it was opened. Returns whether it was.
    fn close_if_removed(&self, inside: &[u8]) -> bool {
        let removed = self
            .known(inside)
            .is_some_and(|known| fstat(&known).map_or(true, |stat| stat.st_nlink == 0));
        if removed {
            self.close(inside);
        }
        removed
    }

    /// Returns the metadata of a file, or `None` if nothing has that name. Links are not followed.
    pub(crate) fn metadata(&self, path: &Path) -> Result<Option<Metadata>> {
        let stat = self.look("look at", path, || self.at(path, stat))?;
        Ok(stat.map(|stat| Metadata::from(&stat)))
    }

    /// Whether anything has this name.
    pub(crate) fn exists(&self, path: &Path) -> Result<bool> {
        Ok(self.metadata(path)?.is_some())
    }

    /// Returns the device and inode of a file, or `None` if nothing has that name.
    pub(crate) fn id(&self, path: &Path) -> Result<Option<FileId>> {
        Ok(self.metadata(path)?.map(|metadata| metadata.id()))
    }
}

/// Locks a mutex. Its value is only changed in single steps, so a panic of another thread does no
/// harm.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The `stat` of a name in a directory. Links are not followed.
fn stat(dir: &OwnedFd, name: &OsStr) -> io::Result<Stat> {
    Ok(statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?)
}

/// Whether an error may come of a directory that was removed after it was opened.
fn may_be_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::StaleNetworkFileHandle)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::fs::File;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use rustix::fs::{CWD, FileType, mknodat};

    use super::*;

    fn lab() -> (tempfile::TempDir, Disk, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap().join("storage");
        fs::create_dir(&root).unwrap();
        let disk = Disk::open(&root).unwrap();
        (dir, disk, root)
    }

    /// Returns the reason why an operation refused to do something.
    fn refusal<T>(result: Result<T>) -> Option<ForeignEntry> {
        match result {
            Err(StorageError::Io { source, .. }) => ForeignEntry::from_error(&source),
            _ => None,
        }
    }

    #[test]
    fn nothing_behind_a_link_is_read_written_or_removed() {
        let (dir, disk, root) = lab();
        let decoy = dir.path().join("decoy");
        fs::create_dir(&decoy).unwrap();
        fs::write(decoy.join("file"), "decoy").unwrap();
        symlink(&decoy, root.join("link")).unwrap();
        symlink(decoy.join("file"), root.join("near")).unwrap();
        fs::write(root.join("own"), "own").unwrap();
        let (own, near) = (root.join("own"), root.join("near"));
        let (file, new) = (root.join("link/file"), root.join("link/new"));
        let link = Some(ForeignEntry::Link);
        assert_eq!(refusal(disk.metadata(&file)), link);
        assert_eq!(refusal(disk.read(&file)), link);
        assert_eq!(refusal(disk.read(&near)), link);
        assert_eq!(refusal(disk.digest(&near)), link);
        assert_eq!(refusal(disk.seal(&near)), link);
        assert!(disk.append(&near, b"x").is_err());
        assert_eq!(refusal(disk.write(&new, b"x")), link);
        assert_eq!(refusal(disk.make_dir(&new)), link);
        assert_eq!(refusal(disk.make_dirs(&new.join("a/b"))), link);
        assert_eq!(refusal(disk.link(&own, &new)), link);
        assert_eq!(refusal(disk.rename(&own, &new)), link);
        assert_eq!(refusal(disk.rename_new(&own, &new)), link);
        assert_eq!(refusal(disk.rename(&file, &own)), link);
        assert_eq!(refusal(disk.remove(&file)), link);
        assert_eq!(refusal(disk.remove_tree(&file)), link);
        assert_eq!(refusal(disk.list(&root.join("link"))), link);
        assert_eq!(refusal(disk.walk(&root.join("link"))), link);
        assert_eq!(disk.walk(&root).unwrap(), ["link", "near", "own"]);
        assert!(disk.link(&near, &root.join("second")).unwrap());
        disk.remove_tree(&root.join("link")).unwrap();
        disk.remove_tree(&near).unwrap();
        assert_eq!(fs::read_to_string(decoy.join("file")).unwrap(), "decoy");
        assert_eq!(fs::read_dir(&decoy).unwrap().count(), 1);
    }

    #[test]
    fn a_path_outside_is_refused() {
        let (dir, disk, root) = lab();
        fs::write(dir.path().join("file"), "").unwrap();
        let twin = PathBuf::from(format!("{}-twin", root.display()));
        for path in [&dir.path().join("file"), &root.join("../file"), &root.join(".."), &twin] {
            assert_eq!(
                refusal(disk.remove(path)),
                Some(ForeignEntry::Outside),
                "{}",
                path.display()
            );
            assert_eq!(
                refusal(disk.metadata(path)),
                Some(ForeignEntry::Outside),
                "{}",
                path.display()
            );
        }
        assert!(dir.path().join("file").exists());
        assert!(disk.metadata(&root).unwrap().unwrap().is_dir());
    }

    #[test]
    fn reading_a_special_file_is_refused_without_waiting() {
        let (_dir, disk, root) = lab();
        let fifo = root.join("fifo");
        mknodat(CWD, &fifo, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        let _listener = UnixListener::bind(root.join("socket")).unwrap();
        fs::create_dir(root.join("directory")).unwrap();
        for (name, kind) in
            [("fifo", "a FIFO"), ("socket", "a socket"), ("directory", "a directory")]
        {
            assert_eq!(
                refusal(disk.read(&root.join(name))),
                Some(ForeignEntry::Kind(kind)),
                "{name}"
            );
            assert_eq!(
                refusal(disk.digest(&root.join(name))),
                Some(ForeignEntry::Kind(kind)),
                "{name}"
            );
            assert!(!disk.metadata(&root.join(name)).unwrap().unwrap().is_file());
        }
        assert!(disk.append(&fifo, b"x").is_err(), "nobody reads it");
    }

    #[test]
    fn a_directory_that_was_made_again_is_found_again() {
        let (_dir, disk, root) = lab();
        let file = root.join("a/b/file");
        for round in ["first", "second"] {
            disk.make_dirs(&root.join("a/b")).unwrap();
            disk.write(&file, round.as_bytes()).unwrap();
            assert_eq!(disk.read(&file).unwrap().unwrap(), round.as_bytes());
            fs::remove_dir_all(root.join("a")).unwrap();
            assert!(disk.write(&file, b"").is_err());
            fs::create_dir_all(root.join("a/b")).unwrap();
            disk.write(&file, b"third").unwrap();
            fs::remove_dir_all(root.join("a")).unwrap();
        }
    }

    #[test]
    fn more_directories_can_be_used_than_are_kept_open() {
        let (_dir, disk, root) = lab();
        for number in 0..3 * MAX_OPEN {
            let dir = root.join(number.to_string());
            disk.make_dirs(&dir).unwrap();
            disk.write(&dir.join("file"), b"").unwrap();
            assert!(disk.directories.read().unwrap().len() <= MAX_OPEN);
        }
        assert_eq!(disk.walk(&root).unwrap().len(), 3 * MAX_OPEN);
    }

    #[test]
    fn a_tree_is_removed_however_deep_and_whatever_its_modes() {
        use std::os::unix::fs::PermissionsExt;
        let (_dir, disk, root) = lab();
        let mut deep = root.join("tree");
        for _ in 0..300 {
            disk.make_dir(&deep).unwrap();
            disk.write(&deep.join("file"), b"").unwrap();
            symlink("/", deep.join("link")).unwrap();
            deep.push("d");
        }
        for (number, mode) in [0o000, 0o555, 0o300].into_iter().enumerate() {
            let dir = root.join(format!("tree/{number}"));
            fs::create_dir_all(dir.join("below/more")).unwrap();
            fs::set_permissions(&dir, fs::Permissions::from_mode(mode)).unwrap();
        }
        disk.remove_tree(&root.join("tree")).unwrap();
        assert_eq!(fs::read_dir(&root).unwrap().count(), 0);
        disk.remove_tree(&root.join("tree")).unwrap();
    }

    #[test]
    fn a_storage_that_a_group_shares_is_shared_throughout() {
        // As the program does when it starts.
        ce_files::umask::take();
        use std::os::unix::fs::{MetadataExt, PermissionsExt};
        let (_dir, _, root) = lab();
        fs::set_permissions(&root, fs::Permissions::from_mode(0o2770)).unwrap();
        let disk = Disk::open(&root).unwrap();
        disk.make_dirs(&root.join("a/b")).unwrap();
        disk.write(&root.join("a/b/file"), b"x").unwrap();
        disk.write(&root.join("a/b/sealed"), b"x").unwrap();
        disk.seal(&root.join("a/b/sealed")).unwrap();
        let mode = |name: &str| root.join(name).metadata().unwrap().mode() & 0o7777;
        assert_eq!([mode("a"), mode("a/b")], [0o2770; 2]);
        assert_eq!([mode("a/b/file"), mode("a/b/sealed")], [0o660, 0o440]);
    }

    /// Asks with these answers, the first one last. Returns the answer, and the argument of each attempt.
    fn ask(
        disk: &Disk,
        on_not_found: OnNotFound,
        mut answers: Vec<Result<u8, Errno>>,
    ) -> (Result<u8>, Vec<bool>) {
        let mut told = Vec::new();
        let answer = disk.retry(on_not_found, |again| {
            told.push(again);
            answers.pop().unwrap().map_err(io::Error::from).context("read", disk.root())
        });
        (answer, told)
    }

    #[test]
    fn a_possibly_stale_answer_is_asked_for_again_over_a_network() {
        let (_dir, mut disk, _) = lab();
        let late = |errno| vec![Ok(7), Err(errno), Err(errno)];
        let (answer, told) = ask(&disk, OnNotFound::Accept, late(Errno::STALE));
        assert_eq!((answer.unwrap(), told), (7, vec![false, true, true]));
        for errno in [Errno::NOENT, Errno::NOTEMPTY] {
            let (answer, told) = ask(&disk, OnNotFound::Retry, late(errno));
            assert!(answer.unwrap_err().is(errno) && told.len() == 1, "a local file system knows");
        }
        disk.put_on_network();
        for errno in [Errno::NOENT, Errno::NOTEMPTY] {
            let (answer, told) = ask(&disk, OnNotFound::Retry, late(errno));
            assert_eq!((answer.unwrap(), told.len()), (7, 3), "{errno}");
        }
        let (answer, told) = ask(&disk, OnNotFound::Accept, late(Errno::NOENT));
        assert!(answer.unwrap_err().is(Errno::NOENT) && told.len() == 1, "it is an answer");
        // No process waits for it.
        let (answer, told) = ask(&disk, OnNotFound::Retry, late(Errno::NOTCONN));
        assert!(answer.unwrap_err().is(Errno::NOTCONN) && told.len() == 1);
    }

    #[test]
    fn written_data_is_flushed_where_errors_may_come_late() {
        let (_dir, mut disk, _) = lab();
        // A pipe cannot be flushed.
        let pipe = File::from(OwnedFd::from(io::pipe().unwrap().0));
        disk.arrive(&pipe).unwrap();
        for put in [Disk::put_on_network, Disk::put_on_unknown] {
            put(&mut disk);
            disk.arrive(&pipe).unwrap_err();
        }
    }

    /// Looks at a path with these answers, the last one first. Returns the answer that counts, and how many of them were asked for.
    fn look(disk: &Disk, path: &Path, mut answers: Vec<Option<u8>>) -> (Option<u8>, usize) {
        let all = answers.len();
        let found = disk.look_anew(path, || Ok(answers.pop().unwrap())).unwrap();
        (found, all - answers.len())
    }

    #[test]
    fn over_a_network_a_cached_answer_counts_only_if_the_directory_confirms_it() {
        let (_dir, mut disk, root) = lab();
        let (here, gone) = (root.join("here"), root.join("gone"));
        fs::write(&here, "").unwrap();
        let old = vec![None, Some(1), Some(1)];
        assert_eq!(look(&disk, &gone, old.clone()), (Some(1), 1), "a local file system knows");
        disk.put_on_network();
        assert_eq!(look(&disk, &gone, old), (None, 3));
        assert_eq!(look(&disk, &here, vec![Some(1), None, None]), (Some(1), 3));
        assert_eq!(look(&disk, &here, vec![Some(1)]), (Some(1), 1));
        assert_eq!(look(&disk, &gone, vec![None]), (None, 1));
        assert_eq!(look(&disk, &root.join("no/such"), vec![None]), (None, 1));
        assert_eq!(look(&disk, &gone, vec![Some(1); 1000]).0, None, "it stays old");
    }

    #[test]
    fn over_a_network_a_success_that_was_reported_as_failure_is_recognised() {
        let (_dir, mut disk, root) = lab();
        let [own, other, name, free] = ["own", "other", "name", "free"].map(|name| root.join(name));
        fs::write(&own, "own").unwrap();
        fs::write(&other, "other").unwrap();
        assert_eq!(disk.link_as(&own, &name).unwrap(), Linked::New);
        assert_eq!(disk.link_as(&own, &name).unwrap(), Linked::Taken, "nothing more is asked");
        disk.put_on_network();
        assert_eq!(disk.link_as(&own, &name).unwrap(), Linked::Same);
        assert_eq!(disk.link_as(&other, &name).unwrap(), Linked::Taken);
        let before = disk.id(&own).unwrap();
        disk.rename(&own, &free).unwrap();
        assert!(disk.was_moved(true, before, &free).unwrap());
        assert!(!disk.was_moved(false, before, &free).unwrap(), "nothing was tried before");
        assert!(!disk.was_moved(true, before, &other).unwrap(), "another file is there");
        assert!(!disk.rename(&own, &other).unwrap() && other.exists());
    }

    /// It is asked for again meanwhile, and open directories are closed for that.
    #[test]
    fn over_a_network_a_directory_that_was_moved_is_found() {
        let (_dir, mut disk, root) = lab();
        disk.put_on_network();
        disk.make_dirs(&root.join("a/b")).unwrap();
        disk.write(&root.join("a/b/file"), b"").unwrap();
        fs::rename(root.join("a/b"), root.join("elsewhere")).unwrap();
        let (sender, found) = mpsc::channel();
        thread::spawn(move || sender.send(disk.moved(|inside| inside == b"a/b")));
        let found = found.recv_timeout(Duration::from_secs(60));
        assert_eq!(found.expect("it ends"), Some(root.join("a/b")));
    }

    #[test]
    fn over_a_network_directories_are_identified_by_their_entries() {
        let (_dir, mut disk, root) = lab();
        disk.put_on_network();
        disk.make_dirs(&root.join("a/b")).unwrap();
        disk.write(&root.join("a/b/file"), b"").unwrap();
        fs::rename(root.join("a/b"), root.join("elsewhere")).unwrap();
        fs::create_dir(root.join("a/b")).unwrap();
        assert!(disk.is_moved(&root.join("a/b")), "the file is not there");
        disk.make_dirs(&root.join("a/b")).unwrap();
        disk.write(&root.join("a/b/file"), b"").unwrap();
        fs::rename(root.join("a/b"), root.join("third")).unwrap();
        fs::create_dir(root.join("a/b")).unwrap();
        for name in ["file", "another"] {
            fs::write(root.join("a/b").join(name), "").unwrap();
        }
        assert!(!disk.is_moved(&root.join("a/b")), "it has another identity");
    }

    #[test]
    fn a_directory_is_not_moved_onto_one_that_another_host_has_made() {
        let (_dir, mut disk, root) = lab();
        disk.put_on_network();
        let [one, place] = ["one", "place"].map(|name| root.join(name));
        for dir in [&one, &place] {
            disk.make_dir(dir).unwrap();
            disk.write(&dir.join("file"), b"").unwrap();
        }
        assert!(!disk.rename_new(&one, &place).unwrap());
        assert!(one.join("file").exists() && place.join("file").exists());
    }

    #[test]
    fn a_storage_that_is_away_is_waited_for_until_the_user_asks_to_stop() {
        let (_dir, disk, root) = lab();
        let stop = Arc::<std::sync::atomic::AtomicBool>::default();
        let outages = Arc::<Mutex<Vec<Outage>>>::default();
        let noted = Arc::clone(&outages);
        let tell = Arc::new(move |outage: &Outage| lock(&noted).push(outage.clone()));
        disk.wait_with(Patience { stop: Arc::clone(&stop), tell }, root);
        let (answer, told) = ask(&disk, OnNotFound::Accept, vec![Ok(7), Err(Errno::NOTCONN)]);
        assert_eq!((answer.unwrap(), told), (7, vec![false, true]));
        assert!(matches!(**lock(&outages), [Outage::Began { .. }, Outage::Over { .. }]));
        assert_eq!(disk.outages(), 2, "it went away, and came back");
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        let (answer, _) = ask(&disk, OnNotFound::Accept, vec![Err(Errno::HOSTDOWN)]);
        assert!(matches!(answer, Err(StorageError::Interrupted)));
    }
}
