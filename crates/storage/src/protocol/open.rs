//! Opening a storage: recognising it, suggesting one for a mistyped path, and recovery from killed runs.
//!
//! No file marks a storage, since storages of the first implementation and of earlier versions lack one. A storage is
//! recognised by its contents, and a directory with other contents is refused.
//!
//! A killed run leaves its private directory in `tmp/`. The next run of the same host moves published outputs from there to
//! their places, and removes the rest.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, RwLock};
use std::time::{Duration, Instant};
use std::{fs, thread};

use super::cached_hashing::FileHasher;
use super::call_lookup::ReservedNames;
use super::equivalent_versions::Versions;
use super::heartbeat::{self, CurrentRun};
use super::private_exports::PrivateExports;
use super::stage::other_owner;
use super::{Storage, Takeover, Unrecorded};
use crate::disk::{
    self, Disk, Durability, IoContext, NoStorage, Patience, Result, Root, StorageError,
};
use crate::paths::{
    DIGITS, GATE, RECORD, ROOMS, RUNS, ResultName, RunName, SUSPENDED, TABLES, TASK_INPUTS,
};
use crate::records::CallRecord;
use ce_model::digest::{DIRTY, SHORT};
use ce_model::suggest::{is_close, nearest_first};

/// The interval at which a storage is looked for.
const LOOK: Duration = Duration::from_millis(100);

impl Storage {
    /// Opens the storage for reading only. Nothing in it is changed, and it need not exist.
    ///
    /// # Errors
    ///
    /// Fails if the path is something other than a storage, or may not be read.
    pub fn inspect(path: &Path, unrecorded: Unrecorded) -> Result<Self> {
        Self::look(path, Absent::Accept, unrecorded)
    }

    /// Opens the storage for reading only, after a look at its path.
    fn look(path: &Path, absent: Absent, unrecorded: Unrecorded) -> Result<Self> {
        Site::inspect(path)?.check(path, absent)?;
        let disk = Disk::open(&std::path::absolute(path).context("open the storage", path)?)?;
        let run = CurrentRun::new();
        Ok(Self {
            root: Root::new(path, disk, run.directory().to_owned()),
            run,
            unrecorded,
            takeover: Takeover::default(),
            hasher: FileHasher::default(),
            record_cache: RwLock::default(),
            versions: Versions::default(),
            reserved_names: ReservedNames::default(),
            unsettled: Mutex::default(),
            writable_dirs: Mutex::default(),
            without_suspensions: AtomicBool::default(),
            slots: Mutex::default(),
            private_exports: PrivateExports::default(),
        })
    }

    /// Opens an existing storage for reading only.
    ///
    /// # Errors
    ///
    /// Fails if there is no storage, or it may not be read.
    pub fn existing(path: &Path) -> Result<Self> {
        Self::look(path, Absent::Refuse, Unrecorded::Refuse)
    }

    /// Opens the storage for reading and writing; creates its directory if it does not exist.
    ///
    /// The leftovers of killed runs are published or removed.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be made, or is something other than a storage.
    pub fn open(path: &Path, unrecorded: Unrecorded, sync: Durability) -> Result<Self> {
        disk::make_storage(path)?;
        let mut storage = Self::inspect(path, unrecorded)?;
        storage.make_writable(sync)?;
        Ok(storage)
    }

    /// Does the same, and waits for the storage now and later whenever it is away.
    ///
    /// # Errors
    ///
    /// Fails as [`open`](Self::open) does, or if the storage does not come back.
    pub fn open_patiently(
        path: &Path,
        unrecorded: Unrecorded,
        sync: Durability,
        patience: Patience,
    ) -> Result<Self> {
        let storage = disk::retry_at(path, &patience, || Self::open(path, unrecorded, sync))?;
        storage.root.disk.wait_with(patience, path.to_owned());
        Ok(storage)
    }

    /// Opens a storage that was opened for reading for writing, too; creates it if it does not exist. The leftovers of killed runs are
    /// published or removed.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be made.
    pub fn into_writable(mut self, sync: Durability) -> Result<Self> {
        disk::make_storage(self.root.shown_place())?;
        self.make_writable(sync)?;
        Ok(self)
    }

    /// Does the same, and waits for the storage now and later whenever it is away.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be made, or the storage does not come back.
    pub fn into_writable_patiently(mut self, sync: Durability, patience: Patience) -> Result<Self> {
        let path = self.root.shown_place().to_owned();
        disk::retry_at(&path, &patience, || {
            disk::make_storage(&path)?;
            self.make_writable(sync)
        })?;
        self.root.disk.wait_with(patience, path);
        Ok(self)
    }

    /// Lets a storage that is there be written.
    fn make_writable(&mut self, sync: Durability) -> Result<()> {
        self.root.make_writable(disk::open_created(self.root.shown_place())?, sync);
        recover(self);
        Ok(())
    }
}

/// Finds a result that a user names: by its name in the storage, or by the path of a file.
#[derive(Clone, Copy, Debug)]
pub struct Locator<'a> {
    storage: &'a Storage,
}

impl<'a> Locator<'a> {
    /// A locator in a storage.
    pub const fn new(storage: &'a Storage) -> Self {
        Self { storage }
    }

    /// The name of the file at a path, which may be relative or go through links. It need not exist if the path begins as the
    /// user named the storage.
    pub fn name_of(&self, path: &Path) -> Option<String> {
        self.storage.root.name_of(path)
    }

    /// The names that a path may stand for: itself, without parts that mean nothing, and the name of the file at this path.
    pub fn names(&self, path: &Path) -> impl Iterator<Item = String> {
        let plain: PathBuf = path.components().collect();
        [plain.to_str().map(str::to_owned), self.name_of(path)].into_iter().flatten()
    }

    /// Finds the thing that a path names. `read` parses names.
    pub fn find<T>(&self, path: &Path, read: impl Fn(&str) -> Option<T>) -> Option<T> {
        self.names(path).find_map(|name| read(&name))
    }
}

/// Whether a storage is there, answers, and is where it was.
#[derive(Clone, Copy, Debug)]
pub struct Availability<'a> {
    storage: &'a Storage,
}

impl<'a> Availability<'a> {
    pub(super) const fn new(storage: &'a Storage) -> Self {
        Self { storage }
    }

    /// Whether the storage was there when it was opened.
    pub fn was_there(&self) -> bool {
        self.storage.root.disk.is_there()
    }

    /// Waits until there is a storage at a path: one that another host has just made may not be visible yet. If it is
    /// not there at once, calls a function once. Gives up after a time.
    ///
    /// # Errors
    ///
    /// Fails if it is not there by then, or may not be read.
    pub fn await_existing(
        path: &Path,
        time: Duration,
        patience: &Patience,
        tell: impl FnOnce(),
    ) -> Result<()> {
        let began = Instant::now();
        let mut tell = Some(tell);
        loop {
            let error = match disk::retry_at(path, patience, || Storage::existing(path)) {
                Ok(_) => return Ok(()),
                Err(error) if error.is_yet_to_be_made() => error,
                Err(error) => return Err(error),
            };
            if began.elapsed() >= time {
                return Err(error);
            }
            if patience.stop.load(Ordering::Relaxed) {
                return Err(StorageError::Interrupted);
            }
            tell.take().into_iter().for_each(|tell| tell());
            thread::sleep(LOOK.min(time));
        }
    }

    /// An error if the storage is not where it was when it was opened, or was waited for and does not answer.
    pub fn vanished(&self) -> Option<StorageError> {
        self.away().or_else(|| self.storage.root.vanished())
    }

    /// An error if the storage was waited for, and does not answer.
    pub fn away(&self) -> Option<StorageError> {
        self.storage.root.disk.away()
    }

    /// Returns the number of times that the storage went away or came back, as far as that was noticed.
    pub fn outages(&self) -> u64 {
        self.storage.root.disk.outages()
    }

    /// Does the same, after a look whether it is away: then it is waited for.
    ///
    /// # Errors
    ///
    /// Fails if it does not come back.
    pub fn outages_now(&self) -> Result<u64> {
        if self.storage.root.disk.is_on_network() {
            self.storage.root.disk.await_answer()?;
        }
        Ok(self.outages())
    }

    /// Whether two runs may have the lease of one call, since hard links cannot be used for leases. It is known once this run
    /// computes.
    pub fn lacks_links(&self) -> bool {
        self.storage.run.lacks_links()
    }

    /// Checks that no directory of results was moved or replaced meanwhile.
    pub fn check_in_place(&self) -> Result<()> {
        self.storage.root.vanished().map_or(Ok(()), Err)?;
        // The private directories of other runs may be removed with these, and the places of suspended calls.
        let prefixes = ["c_", "t_", TASK_INPUTS, TABLES];
        let suspended = format!("/{SUSPENDED}/");
        let moved = self.storage.root.disk.moved(|inside| {
            prefixes.iter().any(|prefix| inside.starts_with(prefix.as_bytes()))
                && !inside.windows(suspended.len()).any(|part| part == suspended.as_bytes())
        });
        moved.map_or(Ok(()), |path| Err(StorageError::Moved(path)))
    }

    /// Returns the duration of the current flush so far, if there is one.
    pub fn flushing(&self) -> Option<Duration> {
        self.storage.root.unsynced.flushing()
    }
}

/// The beginnings of names of results.
const OWNERS: [&str; 2] = ["c_", "t_"];

/// Files that a new storage may hold: Git's, and a new file system's.
const NOTHING: [&str; 4] = [".git", ".gitattributes", ".gitignore", "lost+found"];

/// The greatest number of entries of a directory among which a similar name is looked for, and of similar ones that are looked into.
const MAX_ENTRIES: usize = 10_000;
const MAX_SIMILAR: usize = 16;

/// The kind of directory at the path of a storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Site {
    /// The path does not exist.
    Absent,
    /// A storage without results: an empty directory, or one with rooms of the layout only.
    New,
    /// A storage: it has task inputs, or results of a computation or task.
    Storage,
    /// A directory with other contents.
    Other,
}

/// The treatment of a missing storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Absent {
    /// It is accepted as one without results.
    Accept,
    /// It is an error.
    Refuse,
}

impl Site {
    /// Returns the kind of directory at a path.
    ///
    /// # Errors
    ///
    /// Fails if something other than a directory is there, or it may not be read, or a symbolic link in the path leads nowhere.
    pub fn inspect(path: &Path) -> Result<Self> {
        let disk = Disk::open(path)?;
        if !disk.is_there() {
            return dangling(path).map_or(Ok(Self::Absent), Err);
        }
        let path = disk.root();
        // Nearly every storage has it, so nothing needs to be listed.
        if is_dir(&disk, &path.join(TASK_INPUTS))? {
            return Ok(Self::Storage);
        }
        let mut site = Self::New;
        for entry in disk.list(path)? {
            let name = entry.file_name().and_then(OsStr::to_str).unwrap_or_default();
            let owns = OWNERS.iter().any(|prefix| name.starts_with(*prefix));
            if owns && holds_versions(&disk, &entry)? {
                return Ok(Self::Storage);
            }
            let fits = NOTHING.contains(&name)
                || (owns || ROOMS.contains(&name)) && is_dir(&disk, &entry)?;
            if !fits {
                site = Self::Other;
            }
        }
        Ok(site)
    }

    /// Whether a path begins as the names of results and their records do, relative to a storage.
    pub fn is_named_within(path: &Path) -> bool {
        let first = path.components().next().and_then(|first| first.as_os_str().to_str());
        first.is_some_and(|name| {
            ROOMS.contains(&name) || OWNERS.iter().any(|owner| name.starts_with(owner))
        })
    }

    /// Returns the storage that a path leads through, to a place in it where results or their records are. The
    /// file itself need not be there. Unreadable directories are skipped.
    pub fn around(path: &Path) -> Option<PathBuf> {
        let mut dirs = path
            .ancestors()
            .skip(1)
            .filter(|dir| path.strip_prefix(dir).is_ok_and(Self::is_named_within))
            .map(openable);
        dirs.find(|dir| matches!(Self::inspect(dir), Ok(Self::Storage)))
    }

    /// Checks that there is a storage at this path, or, if that is accepted, that nothing is there.
    pub(crate) fn check(self, path: &Path, absent: Absent) -> Result<()> {
        let source = match (self, absent) {
            (Self::New | Self::Storage, _) | (Self::Absent, Absent::Accept) => return Ok(()),
            (Self::Absent, Absent::Refuse) => {
                NoStorage::Absent { similar: Self::similar(path, is_close) }
            }
            (Self::Other, _) => NoStorage::Other { around: Self::around(path) },
        };
        Err(StorageError::NoStorage { path: path.to_owned(), source: Box::new(source) })
    }
}

/// The path of a directory, which may be empty for the current one.
fn openable(dir: &Path) -> PathBuf {
    if dir == Path::new("") { ".".into() } else { dir.to_owned() }
}

/// The error of a path in which a symbolic link leads nowhere.
fn dangling(path: &Path) -> Option<StorageError> {
    let mut links = path.ancestors().map(|it| it.components().collect::<PathBuf>());
    let (link, target) = links.find_map(|link| match link.read_link() {
        Ok(target) if !link.exists() => Some((link, target)),
        _ => None,
    })?;
    let source = Box::new(NoStorage::Dangling { link, target });
    Some(StorageError::NoStorage { path: path.to_owned(), source })
}

fn is_dir(disk: &Disk, path: &Path) -> Result<bool> {
    Ok(disk.metadata(path)?.is_some_and(|metadata| metadata.is_dir()))
}

/// Whether a directory has results of a version of a computation or task.
fn holds_versions(disk: &Disk, owner: &Path) -> Result<bool> {
    if !is_dir(disk, owner)? {
        return Ok(false);
    }
    let mut names = disk.list(owner)?.into_iter();
    Ok(names.any(|path| path.file_name().and_then(OsStr::to_str).is_some_and(is_version)))
}

fn is_version(name: &str) -> bool {
    // A version that collides has more digits, after a dash.
    let digits = name.strip_prefix(DIRTY).unwrap_or(name).split('-').next().unwrap_or_default();
    digits.len() == SHORT && digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
}

impl Site {
    /// Returns the storage that the user may have meant by the path of a missing one: the path to
    /// it differs in one directory, whose name is similar. Unreadable directories are skipped.
    pub fn similar(path: &Path, is_similar: fn(&str, &str) -> bool) -> Option<PathBuf> {
        let path: PathBuf = path.components().collect();
        let there = path.ancestors().skip(1).find(|dir| openable(dir).is_dir())?;
        let mut missing = path.strip_prefix(there).ok()?.components();
        let wanted = missing.next()?.as_os_str().to_str()?;
        let entries = fs::read_dir(openable(there)).ok()?.take(MAX_ENTRIES);
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let names: Vec<String> = names.filter(|name| is_similar(wanted, name)).collect();
        nearest_first(wanted, &names)
            .into_iter()
            .take(MAX_SIMILAR)
            .map(|name| there.join(name).components().chain(missing.clone()).collect::<PathBuf>())
            .find(|path| matches!(Self::inspect(path), Ok(Self::Storage)))
    }
}

/// Finishes and removes the leftovers of dead runs of this host. Failures are harmless.
pub(crate) fn recover(storage: &Storage) {
    for directory in storage.root.disk.list(&storage.path(RUNS)).unwrap_or_default() {
        let name = directory.file_name().and_then(OsStr::to_str);
        if directory == storage.path(GATE) {
            // The gate of a collection that has died is acquired, and released.
            drop(storage.leases().acquire_file(GATE));
        }
        let Some(Ok(run)) = name.map(str::parse) else {
            continue;
        };
        if is_over(storage, &run, &directory) {
            let mut is_finished = true;
            for slot in storage.root.disk.list(&directory).unwrap_or_default() {
                let files = storage.root.disk.list(&slot).unwrap_or_default();
                for record in files.iter().filter(|path| is_record(path)) {
                    is_finished &= finish(storage, record).is_ok();
                }
            }
            // Files that cannot be moved now stay for the next run: a record promises them. No other user may enter the
            // directories in which its calls could write.
            if is_finished && other_owner(storage, &directory).is_none() {
                drop(storage.root.disk.remove_tree(&directory));
            }
        }
    }
}

fn is_over(storage: &Storage, run: &RunName, directory: &Path) -> bool {
    if storage.run.is_over(run) || !storage.run.may_precede(run) {
        return storage.run.is_over(run);
    }
    let own = storage.run.appear(&storage.root).ok().and_then(Path::parent);
    own.is_some_and(|own| heartbeat::is_timed_out(&storage.root.disk, directory, own))
}

/// Moves the outputs of a published execution to their places.
fn finish(storage: &Storage, record: &Path) -> Result<()> {
    let Some(text) = storage.root.disk.read(record)? else { return Ok(()) };
    let Ok(record) = serde_json::from_slice::<CallRecord>(&text) else { return Ok(()) };
    for directory in record.version().directories() {
        for digits in DIGITS {
            let name = ResultName::new(directory.as_str(), &record.inputs, digits);
            storage.calls().finish(&name, &record)?;
        }
    }
    Ok(())
}

fn is_record(path: &Path) -> bool {
    path.file_name().and_then(OsStr::to_str).is_some_and(|name| name.ends_with(RECORD))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kind of a directory with these files and directories.
    fn site(names: &[&str]) -> Site {
        let dir = tempfile::tempdir().unwrap();
        for name in names {
            match name.strip_suffix('/') {
                Some(name) => fs::create_dir_all(dir.path().join(name)).unwrap(),
                None => fs::write(dir.path().join(name), "").unwrap(),
            }
        }
        Site::inspect(dir.path()).unwrap()
    }

    #[test]
    fn a_storage_is_recognised_by_its_contents() {
        for names in [
            &["tinputs/"][..],
            &["tinputs/", "README"],
            &["c_add/5efbc68dc50d/", ".git/", "README"],
            &["c_add/dirty-5efbc68dc50d/"],
            &["t_task/5efbc68dc50d/", "tmp/"],
        ] {
            assert_eq!(site(names), Site::Storage, "{names:?}");
        }
        for names in [&[][..], &["tmp/"], &["trees/", "tmp/", "c_add/"], &["lost+found/", ".git/"]]
        {
            assert_eq!(site(names), Site::New, "{names:?}");
        }
        for names in [
            &["README"][..],
            // As in the root of a file system, and in some projects.
            &["tmp/", "etc/"],
            &["c_src/", "Makefile"],
            &["c_src/nif/", "trees/", "Makefile"],
            &["tinputs"],
            &[".profile"],
        ] {
            assert_eq!(site(names), Site::Other, "{names:?}");
        }
        assert_eq!(Site::inspect(Path::new("no/such/directory")).unwrap(), Site::Absent);
        assert!(Site::inspect(Path::new("/dev/null")).is_err());
    }

    #[test]
    fn a_path_in_a_storage_tells_it() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["results/tinputs/ad", "results/c_add/5efbc68dc50d/00", "c_src/tinputs/"] {
            fs::create_dir_all(dir.path().join(name)).unwrap();
        }
        let around = |path: &str| {
            let around = Site::around(&dir.path().join(path))?;
            Some(around.strip_prefix(dir.path()).unwrap().display().to_string())
        };
        let storage = Some("results".to_owned());
        assert_eq!(around("results/c_add/5efbc68dc50d/00/ad_5d"), storage);
        assert_eq!(around("results/tinputs/ad/48"), storage);
        assert_eq!(around("results/t_task/gone/00/ad"), storage);
        // A storage is in no other one by its name alone.
        assert_eq!(around("c_src/tinputs/ad"), Some("c_src".to_owned()));
        assert_eq!(around("c_src"), None);
        assert_eq!(around("results"), None);
        assert_eq!(around("results/notes"), None);
        assert_eq!(Site::around(Path::new("")), None);
        assert_eq!(Site::around(Path::new("5d94")), None);
    }

    #[test]
    fn a_similar_storage_is_found_wherever_the_path_goes_wrong() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["results/main/tinputs", "resuls", "other/main/tinputs", "far"] {
            fs::create_dir_all(dir.path().join(name)).unwrap();
        }
        let similar = |path: &str| {
            let similar = Site::similar(&dir.path().join(path), is_close)?;
            Some(similar.strip_prefix(dir.path()).unwrap().display().to_string())
        };
        assert_eq!(similar("results/man").as_deref(), Some("results/main"));
        assert_eq!(similar("./result//main/").as_deref(), Some("results/main"));
        // A directory that is not a storage is not meant, however similar its name.
        assert_eq!(similar("result"), None);
        assert_eq!(similar("others/man"), None);
        assert_eq!(similar("fat"), None);
        assert_eq!(similar("RESULTS/main").as_deref(), Some("results/main"));
        assert_eq!(Site::similar(Path::new(""), is_close), None);
    }

    #[test]
    fn only_a_few_similar_directories_are_searched() {
        let dir = tempfile::tempdir().unwrap();
        let others = ('b'..).take(MAX_SIMILAR).map(|letter| format!("{letter}esults"));
        others.for_each(|name| fs::create_dir(dir.path().join(name)).unwrap());
        fs::create_dir_all(dir.path().join("zesults/tinputs")).unwrap();
        let similar = || Site::similar(&dir.path().join("aesults"), is_close);
        // The alphabet decides among names of one distance.
        assert_eq!(similar(), None);
        fs::remove_dir(dir.path().join("besults")).unwrap();
        assert_eq!(similar(), Some(dir.path().join("zesults")));
    }
}
