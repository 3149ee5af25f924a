//! The global file storage: a directory of files that never change.
//!
//! A call is present when its record **and** all its outputs are, and when the record's full
//! hashes are the ones asked for. The record appears at once and for one execution only, so the
//! outputs of two executions are never mixed. Nothing is deleted: what is in the way is set aside.
//! Knows nothing of workflows, or of how outputs come about.

mod adoption;
mod advice;
mod check;
mod collect;
mod disk;
mod earlier;
mod error;
mod failure;
mod fault;
mod find;
mod flush;
mod ingest;
mod input;
mod job;
mod lease;
mod leftover;
mod memory;
mod pin;
mod probe;
mod publish;
mod reading;
pub mod record;
mod record_cache;
mod repositories;
mod run;
mod scheme;
mod site;
mod stage;
mod survey;
mod takeover;
mod tree;
mod uses;
mod version;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, RwLock};
use std::time::Instant;

use jiff::Timestamp;

pub use self::advice::advice;
pub use self::check::{Defect, ExpectedFile, Finding, Stopped};
pub use self::collect::{Retired, Tombstone};
pub use self::disk::FileId;
use self::disk::{Disk, Doing};
pub use self::earlier::{PastCall, Trace};
pub use self::error::StorageError;
pub use self::failure::{Failure, LogTail};
pub use self::find::{Call, Damage, Found, Outputs, Read};
pub use self::flush::Durability;
use self::flush::Unsynced;
use self::ingest::Ingest;
pub use self::input::Input;
pub use self::job::{Job, TaskVersion};
pub use self::lease::Lease;
pub use self::memory::PriorAttempt;
pub use self::pin::PinRecord;
pub use self::probe::Probes;
pub use self::publish::Sealed;
use self::record::{Provenance, Published};
use self::record_cache::RecordCache;
pub use self::repositories::{KnownRepository, RepositoryRecord};
pub use self::run::{Holder, LEASE_TIMEOUT};
use self::run::{OwnRun, RunName};
pub use self::scheme::ResultName;
use self::site::Absent;
pub use self::site::{NoStorage, Site};
pub use self::stage::{LOG, PublishError, Stage, WritableArea};
use self::survey::TASK_INPUTS;
pub use self::survey::{Entry, Record};
pub use self::takeover::Equivalent;
pub use self::tree::{FoundTree, NewTree, OpenTree};
pub use self::uses::GcRoots;
pub use self::version::{ComputationVersion, VersionRecord};
use crate::cache::{Cache, FileStat};
use crate::digest::Digest;

type Result<T, E = StorageError> = std::result::Result<T, E>;

/// A file in the storage, and what it contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Its name, relative to the storage.
    pub name: String,
    /// Its digest.
    pub digest: Digest,
    /// When it was last written, in nanoseconds since 1970; of no meaning if it is not there.
    pub modified_ns: i64,
}

/// The treatment of outputs without a record, such as those of the original tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unrecorded {
    /// They are hashed, recorded as adopted, and used.
    Adopt,
    /// They are set aside, and the call is executed.
    Refuse,
}

/// An open storage.
#[derive(Debug)]
pub struct Storage {
    shown: PathBuf,
    disk: Arc<Disk>,
    writable: bool,
    unrecorded: Unrecorded,
    run: OwnRun,
    unsynced: Unsynced,
    cache: Option<Cache>,
    record_cache: RwLock<Option<RecordCache>>,
    ingest: Ingest,
    /// Directories that are known to be there.
    made: Mutex<HashSet<PathBuf>>,
    /// Directories that can be written, as far as that was checked.
    writable_dirs: Mutex<HashSet<PathBuf>>,
    /// Who is to have a name that is not yet taken: two calls that collide may be met together.
    claims: Mutex<HashMap<ResultName, Box<[Digest]>>>,
    /// The directories that belong to versions of computations, as far as they were looked for.
    owned: Mutex<HashMap<String, Arc<str>>>,
    /// The versions that have results of some tree, by the directory that names them.
    versions: Mutex<HashMap<String, Arc<[String]>>>,
    /// Outputs without a record that were not settled: what they were, and since when.
    seen: Mutex<HashMap<String, (FileStat, Instant)>>,
    /// Private directories that no call uses now.
    slots: Mutex<Vec<String>>,
    next_number: AtomicU64,
}

impl Storage {
    /// Opens the storage for reading only. Nothing in it is changed, and it need not be there.
    ///
    /// # Errors
    ///
    /// Fails if the path is something other than a storage, or may not be looked at.
    pub fn inspect(path: &Path, unrecorded: Unrecorded) -> Result<Self> {
        Site::of(path)?.check(path, Absent::Accept)?;
        let shown = path.components().collect::<PathBuf>();
        let root = std::path::absolute(path).doing("open the storage", path)?;
        Ok(Self {
            shown,
            disk: Arc::new(Disk::open(&root)?),
            writable: false,
            unrecorded,
            run: OwnRun::new(),
            unsynced: Unsynced::new(Durability::Unsynced),
            cache: None,
            record_cache: RwLock::default(),
            ingest: Ingest::default(),
            made: Mutex::default(),
            writable_dirs: Mutex::default(),
            claims: Mutex::default(),
            owned: Mutex::default(),
            versions: Mutex::default(),
            seen: Mutex::default(),
            slots: Mutex::default(),
            next_number: AtomicU64::new(0),
        })
    }

    /// Opens a storage that is there, for reading only.
    ///
    /// # Errors
    ///
    /// Fails if there is no storage, or it may not be looked at.
    pub fn existing(path: &Path) -> Result<Self> {
        Site::of(path)?.check(path, Absent::Refuse)?;
        Self::inspect(path, Unrecorded::Refuse)
    }

    /// Opens the storage for reading and writing, and makes it if it is not there.
    ///
    /// Leftovers of runs that died are put in place or removed.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be made, or is something other than a storage.
    pub fn open(path: &Path, unrecorded: Unrecorded, sync: Durability) -> Result<Self> {
        disk::make_dirs(path)?;
        let mut storage = Self::inspect(path, unrecorded)?;
        storage.disk = Arc::new(Disk::open(&path.canonicalize().doing("open the storage", path)?)?);
        storage.writable = true;
        storage.unsynced = Unsynced::new(sync);
        storage.clear_leftovers();
        Ok(storage)
    }

    /// Where a file of this name is, absolute: for programs that run elsewhere.
    pub fn path(&self, name: &str) -> PathBuf {
        let root = self.disk.root();
        let mut path = PathBuf::with_capacity(root.as_os_str().len() + 1 + name.len());
        path.push(root);
        path.push(name);
        path
    }

    /// Where a file of this name is, as the user named the storage: for showing.
    pub fn shown(&self, name: &str) -> PathBuf {
        self.shown.join(name)
    }

    /// The name of a file in the storage, given its path from anywhere.
    pub fn name_of(&self, path: &Path) -> Option<String> {
        let inside = |path: &Path, root: &Path| {
            path.strip_prefix(root).ok().and_then(Path::to_str).map(str::to_owned)
        };
        let plain = std::path::absolute(path).ok().and_then(|path| inside(&path, self.disk.root()));
        plain.or_else(|| inside(&path.canonicalize().ok()?, &self.disk.root().canonicalize().ok()?))
    }

    /// Returns a file that is expected to be in the storage, or `None` if it is not.
    ///
    /// # Errors
    ///
    /// Fails if the file is there and cannot be read.
    pub fn literal(&self, name: &str) -> Result<Option<Stored>> {
        let path = self.path(name);
        match self.disk.metadata(&path)? {
            Some(metadata) if metadata.is_file() => {
                self.ingest.expect(metadata.len());
                let digest = self.stored_digest(&path)?;
                let modified_ns = metadata.modified_ns();
                Ok(Some(Stored { name: name.to_owned(), digest, modified_ns }))
            }
            _ => Ok(None),
        }
    }

    /// Returns the device and inode of a file that was found before, provided that it still has the
    /// same contents: size and time stamp decide, as when it was found.
    ///
    /// # Errors
    ///
    /// Fails if the file was changed or replaced meanwhile, or the storage cannot be read.
    pub fn verify_unchanged(&self, file: &Stored) -> Result<FileId> {
        let Stored { ref name, digest, modified_ns } = *file;
        let path = self.path(name);
        match self.disk.metadata(&path)? {
            Some(metadata)
                if self.unchanged(&path, &metadata, &Published { digest, modified_ns })? =>
            {
                Ok(metadata.id())
            }
            _ => Err(StorageError::Changed(path)),
        }
    }

    /// Returns the device and inode of a file or directory of this run's own.
    ///
    /// # Errors
    ///
    /// Fails if it is gone.
    pub fn id_of(&self, path: &Path) -> Result<FileId> {
        self.disk.id(path)?.ok_or_else(|| StorageError::Moved(path.to_owned()))
    }

    /// Makes the directory that is to hold a file of this name; returns the file's path.
    fn place(&self, name: &str) -> Result<PathBuf> {
        let path = self.path(name);
        let Some(dir) = path.parent() else {
            return Ok(path);
        };
        if !lock(&self.made).contains(dir) {
            // Making it again would silently start a new storage.
            self.vanished().map_or(Ok(()), Err)?;
            self.disk.make_dirs(dir)?;
            lock(&self.made).insert(dir.to_owned());
            // Each directory is an entry of the one above it.
            let above =
                dir.ancestors().skip(1).take_while(|above| above.starts_with(self.disk.root()));
            above.for_each(|above| self.unsynced.note(above));
        }
        Ok(path)
    }

    /// Lets others see from now on that this run works here; returns the file that names it.
    fn appear(&self) -> Result<&Path> {
        let beat = self.place(&format!("{}/beat", self.run.directory()))?;
        Ok(self.run.start_heartbeat(&self.disk, beat.parent().unwrap_or(self.disk.root())))
    }

    /// The error that the storage is not where it was when it was opened, if it is not.
    ///
    /// Another directory in its place is another storage.
    pub fn vanished(&self) -> Option<StorageError> {
        let gone = self.writable && !self.disk.is_in_place();
        gone.then(|| StorageError::Vanished(self.shown.clone()))
    }

    /// Checks that what was published is where its name says: that no directory was moved meanwhile.
    ///
    /// # Errors
    ///
    /// Fails if one was.
    pub fn check_in_place(&self) -> Result<()> {
        self.vanished().map_or(Ok(()), Err)?;
        // The private directories of other runs go with these.
        let moved = self.disk.moved(&["c_", "t_", TASK_INPUTS]);
        moved.map_or(Ok(()), |path| Err(StorageError::Moved(path)))
    }

    /// The error that this run's private directory is not where it was made, if it is not.
    fn displaced(&self) -> Option<StorageError> {
        let own = self.path(self.run.directory());
        let moved = || self.disk.is_moved(&own).then(|| StorageError::Moved(own.clone()));
        self.vanished().or_else(moved)
    }

    /// Where the private directory of a run is.
    fn directory_of(&self, run: &RunName) -> PathBuf {
        self.path(run::ROOM).join(run.to_string())
    }

    /// A name for a new file or directory of this run's own.
    fn private_name(&self) -> String {
        format!("{}/{}", self.run.directory(), self.next_number())
    }

    fn next_number(&self) -> u64 {
        self.next_number.fetch_add(1, Ordering::Relaxed)
    }

    fn provenance(&self) -> Provenance {
        Provenance {
            host: run::host(),
            user: user(),
            at: Timestamp::now(),
            compeval: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

impl Drop for Storage {
    /// Removes this run's own directory.
    fn drop(&mut self) {
        if self.writable {
            drop(self.disk.remove_tree(&self.path(self.run.directory())));
        }
    }
}

/// Locks what is only ever changed in one step: a panic elsewhere does not spoil it.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The name of the user.
fn user() -> String {
    static USER: OnceLock<String> = OnceLock::new();
    let of_environment =
        || ["USER", "LOGNAME"].into_iter().find_map(|name| std::env::var(name).ok());
    let number = || format!("uid {}", rustix::process::getuid().as_raw());
    USER.get_or_init(|| of_environment().unwrap_or_else(number)).clone()
}
