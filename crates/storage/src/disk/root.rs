//! The directory of a storage as one run uses it: path resolution, private names, directories made on demand, and pending flushes.
//!
//! Directories are opened relative to another one and through no symbolic link; open ones that were moved or replaced are detected.
//! Written files are on the disk before anything depends on them. Changed files and directories are recorded and flushed
//! together, so many small calls share one flush.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::known_texts::KnownTexts;
use super::{Disk, FileId, Result, StorageError, lock};

/// The greatest number of files and directories that are flushed one by one. More are flushed with
/// the whole file system.
const MAX_SINGLE_FLUSHES: usize = 16;

/// The directory of an open storage.
#[derive(Debug)]
pub(crate) struct Root {
    shown: PathBuf,
    pub(crate) disk: Arc<Disk>,
    /// Whether the storage may be written.
    pub(crate) writable: bool,
    /// Files and directories that may not be on the disk yet.
    pub(crate) unsynced: Unsynced,
    /// The texts of small files that were read.
    pub(crate) texts: KnownTexts,
    /// The private directory of this run, relative to the storage.
    own: String,
    /// Paths that this run has created, or has found to exist.
    made: Mutex<HashSet<PathBuf>>,
    next_number: AtomicU64,
}

/// The path of a name below a directory, which is allocated once.
fn below(directory: &Path, name: &str) -> PathBuf {
    let mut path = PathBuf::with_capacity(directory.as_os_str().len() + 1 + name.len());
    path.push(directory);
    path.push(name);
    path
}

impl Root {
    /// The directory of a storage that is only read. `own` names the private directory of this run.
    pub(crate) fn new(shown: &Path, disk: Disk, own: String) -> Self {
        Self {
            shown: shown.components().collect(),
            disk: Arc::new(disk),
            writable: false,
            unsynced: Unsynced::new(Durability::Unsynced),
            texts: KnownTexts::default(),
            own,
            made: Mutex::default(),
            next_number: AtomicU64::new(0),
        }
    }

    /// Makes the storage writable through this disk.
    pub(crate) fn make_writable(&mut self, disk: Disk, sync: Durability) {
        self.disk = Arc::new(disk);
        self.writable = true;
        self.unsynced = Unsynced::new(sync);
    }

    /// The absolute path of a name.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        below(self.disk.root(), name)
    }

    /// The path of a name as the user named the storage.
    pub(crate) fn shown(&self, name: &str) -> PathBuf {
        below(&self.shown, name)
    }

    /// The storage as the user named it.
    pub(crate) fn shown_place(&self) -> &Path {
        &self.shown
    }

    /// The name of the file at a path, which may be relative or go through links. It need not exist if the path begins as the
    /// user named the storage.
    pub(crate) fn name_of(&self, path: &Path) -> Option<String> {
        let root = self.disk.root();
        std::path::absolute(path)
            .ok()
            .and_then(|path| name_inside(&path, root))
            .or_else(|| name_inside(&path.canonicalize().ok()?, &root.canonicalize().ok()?))
            .or_else(|| {
                name_inside(path, &self.shown).filter(|name| !name.split('/').any(|it| it == ".."))
            })
    }

    /// Creates the directory for a file of this name. Returns the file's path.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be made, or the storage has vanished.
    pub(crate) fn place(&self, name: &str) -> Result<PathBuf> {
        let path = self.path(name);
        let Some(dir) = path.parent() else {
            return Ok(path);
        };
        if !lock(&self.made).contains(dir) {
            // Making it again would silently start a new storage.
            self.vanished().map_or(Ok(()), Err)?;
            self.disk.make_dirs(dir)?;
            self.first_made(dir);
            // Each directory is an entry of the one above it.
            dir.ancestors()
                .skip(1)
                .take_while(|above| above.starts_with(self.disk.root()))
                .for_each(|above| self.unsynced.note(above));
        }
        Ok(path)
    }

    /// Notes that a path was created. Returns true the first time.
    pub(crate) fn first_made(&self, path: &Path) -> bool {
        lock(&self.made).insert(path.to_owned())
    }

    /// A name for a new file or directory in this run's private directory.
    pub(crate) fn private_name(&self) -> String {
        format!("{}/{}", self.own, self.next_number())
    }

    /// Creates this run's private directory. Returns a path for a new file or directory in it.
    pub(crate) fn private_path(&self) -> Result<PathBuf> {
        self.place(&self.private_name())
    }

    /// A new name below a quarantine directory, for the parts of one result that this run moves
    /// there.
    pub(crate) fn quarantine_room(&self, quarantine: &str) -> String {
        format!("{quarantine}/{}", self.private_name().replace('/', "-"))
    }

    /// Returns the path of a part of a result in a new room of its quarantine, and makes the room.
    pub(crate) fn quarantine_place(&self, quarantine: &str, part: &str) -> Result<PathBuf> {
        self.place(&format!("{}/{part}", self.quarantine_room(quarantine)))
    }

    /// A number that this run has not used yet.
    pub(crate) fn next_number(&self) -> u64 {
        self.next_number.fetch_add(1, Ordering::Relaxed)
    }

    /// An error if the storage is not where it was when it was opened.
    ///
    /// Another directory in its place is another storage.
    pub(crate) fn vanished(&self) -> Option<StorageError> {
        let gone = self.writable && !self.disk.is_in_place();
        gone.then(|| StorageError::Vanished(self.shown.clone()))
    }

    /// An error if this run's private directory is not where it was created.
    pub(crate) fn displaced(&self) -> Option<StorageError> {
        let own = self.path(&self.own);
        self.vanished().or_else(|| self.disk.is_moved(&own).then_some(StorageError::Moved(own)))
    }

    /// Returns the device and inode of a file or directory of this run's own.
    pub(crate) fn id_of(&self, path: &Path) -> Result<FileId> {
        self.disk.surely(|| self.disk.id(path))?.ok_or_else(|| StorageError::Moved(path.to_owned()))
    }

    /// Returns the names in a directory, sorted.
    pub(crate) fn names(&self, directory: &str) -> Result<Vec<String>> {
        let names = self.disk.names(&self.path(directory))?;
        Ok(names.into_iter().map(|(name, _)| name).collect())
    }

    /// Returns the names in a directory, sorted, without symbolic links; none if it is a link
    /// itself.
    pub(crate) fn own_names(&self, directory: &str) -> Result<Vec<String>> {
        match self.disk.names(&self.path(directory)) {
            Err(error) if error.is_foreign() => Ok(Vec::new()),
            names => {
                Ok(names?.into_iter().filter(|(_, is_link)| !is_link).map(|it| it.0).collect())
            }
        }
    }

    /// Returns the names of all files below a directory, relative to the storage.
    pub(crate) fn files(&self, directory: &str) -> Result<Vec<String>> {
        let files = self.disk.walk(&self.path(directory))?;
        Ok(files.into_iter().map(|file| format!("{directory}/{file}")).collect())
    }

    /// Returns the names of all values below a directory, relative to the storage. A directory that is a
    /// value is not entered.
    pub(crate) fn values(
        &self,
        directory: &str,
        is_value: fn(&str) -> bool,
    ) -> Result<Vec<String>> {
        let values = self
            .disk
            .walk_unless(&self.path(directory), |name| name.to_str().is_some_and(is_value))?;
        Ok(values.into_iter().map(|value| format!("{directory}/{value}")).collect())
    }

    /// Waits until a file is on the disk, if writes are flushed.
    pub(crate) fn sync(&self, path: &Path) -> Result<()> {
        if self.unsynced.is_synced() { self.disk.sync(path) } else { Ok(()) }
    }

    /// Waits until the file system of the storage is on the disk, if writes are flushed.
    pub(crate) fn sync_all(&self) -> Result<()> {
        if self.unsynced.is_synced() { self.disk.sync_all() } else { Ok(()) }
    }

    /// Waits until everything written so far is on the disk.
    ///
    /// # Errors
    ///
    /// Fails if the disk does. Then possibly nothing has reached the disk.
    pub(crate) fn flush(&self) -> Result<()> {
        let paths = self.unsynced.take();
        if paths.is_empty() {
            return Ok(());
        }
        self.unsynced.note_flush(Some(Instant::now()));
        let flushed = match paths.len() {
            ..=MAX_SINGLE_FLUSHES => paths.iter().try_for_each(|path| self.disk.sync(path)),
            _ => self.disk.sync_all(),
        };
        self.unsynced.note_flush(None);
        if flushed.is_err() {
            self.unsynced.put_back(paths);
        }
        self.vanished().map_or(flushed, Err)
    }
}

/// Whether written files are flushed to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Everything is flushed before it is reported: a reported result survives a loss of power.
    Synced,
    /// Nothing is flushed: faster, and safe as long as the power stays on.
    Unsynced,
}

/// Files and directories that have changed and may not be on the disk yet.
#[derive(Debug)]
pub(crate) struct Unsynced {
    sync: Durability,
    paths: Mutex<HashSet<PathBuf>>,
    /// The beginning of the current flush.
    flushing: Mutex<Option<Instant>>,
}

impl Unsynced {
    pub(crate) fn new(sync: Durability) -> Self {
        Self { sync, paths: Mutex::default(), flushing: Mutex::default() }
    }

    /// Notes that a file, or the list of entries of a directory, has changed.
    pub(crate) fn note(&self, path: &Path) {
        if self.is_synced() {
            lock(&self.paths).insert(path.to_owned());
        }
    }

    /// Notes that a file and the entry for it in its directory are new.
    pub(crate) fn note_new(&self, file: &Path) {
        self.note(file);
        self.note_entry(file);
    }

    /// Notes that the entry for a file in its directory has changed.
    pub(crate) fn note_entry(&self, file: &Path) {
        if let Some(directory) = file.parent() {
            self.note(directory);
        }
    }

    /// Whether writes are flushed at all.
    pub(crate) fn is_synced(&self) -> bool {
        self.sync == Durability::Synced
    }

    /// Notes that a flush begins now, or is over.
    pub(super) fn note_flush(&self, began: Option<Instant>) {
        *lock(&self.flushing) = began;
    }

    /// Returns the duration of the current flush so far, if there is one.
    pub(crate) fn flushing(&self) -> Option<Duration> {
        lock(&self.flushing).map(|began| began.elapsed())
    }

    /// Returns all noted paths, to be flushed, and forgets them.
    pub(super) fn take(&self) -> HashSet<PathBuf> {
        std::mem::take(&mut *lock(&self.paths))
    }

    /// Notes paths again that could not be flushed: the next flush must cover them.
    pub(super) fn put_back(&self, paths: HashSet<PathBuf>) {
        lock(&self.paths).extend(paths);
    }
}

/// The part of a path below a root, as a name; `None` if the path is not below it, or is not UTF-8.
fn name_inside(path: &Path, root: &Path) -> Option<String> {
    path.strip_prefix(root).ok().and_then(Path::to_str).map(str::to_owned)
}

impl Disk {
    /// Whether the path of the top directory still leads to the one that was opened.
    pub(crate) fn is_in_place(&self) -> bool {
        self.is_certain(|| match rustix::fs::stat(&self.root) {
            Ok(stat) => self.id == Some((stat.st_dev, stat.st_ino)),
            // Any other error counts as "the same": the operations themselves will fail.
            Err(error) => self.id.is_some() && error != Errno::NOENT,
        })
    }

    /// Whether something holds that should: if it does not, that may be an old answer.
    pub(super) fn is_certain(&self, holds: impl Fn() -> bool) -> bool {
        self.surely(|| Ok(holds().then_some(()))).is_ok_and(|found| found.is_some())
    }
}
