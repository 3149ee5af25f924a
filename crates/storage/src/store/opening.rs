//! Opening a storage, and waiting for one that is not there yet or does not answer.

use std::path::Path;
use std::sync::Mutex;
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::call::Claims;
use super::ingest::Ingest;
use super::run::OwnRun;
use super::site::{Absent, Site};
use super::versions::Versions;
use super::{Storage, Takeover, Unrecorded};
use crate::disk::{self, Disk, Doing, Durability, Patience, Result, Root, StorageError};

/// The interval at which it is looked whether there is a storage by now.
const LOOK: Duration = Duration::from_millis(100);

impl Storage {
    /// Opens the storage for reading only. Nothing in it is changed, and it need not exist.
    ///
    /// # Errors
    ///
    /// Fails if the path is something other than a storage, or may not be read.
    pub fn inspect(path: &Path, unrecorded: Unrecorded) -> Result<Self> {
        Site::of(path)?.check(path, Absent::Accept)?;
        let disk = Disk::open(&std::path::absolute(path).doing("open the storage", path)?)?;
        let run = OwnRun::new();
        Ok(Self {
            root: Root::new(path, disk, run.directory().to_owned()),
            run,
            unrecorded,
            takeover: Takeover::default(),
            ingest: Ingest::default(),
            record_cache: RwLock::default(),
            versions: Versions::default(),
            claims: Claims::default(),
            unsettled: Mutex::default(),
            writable_dirs: Mutex::default(),
            without_suspensions: AtomicBool::default(),
            slots: Mutex::default(),
        })
    }

    /// Opens an existing storage for reading only.
    ///
    /// # Errors
    ///
    /// Fails if there is no storage, or it may not be read.
    pub fn existing(path: &Path) -> Result<Self> {
        Site::of(path)?.check(path, Absent::Refuse)?;
        Self::inspect(path, Unrecorded::Refuse)
    }

    /// Opens the storage for reading and writing; creates it if it does not exist.
    ///
    /// The leftovers of killed runs are published or removed.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be made, or is something other than a storage.
    pub fn open(path: &Path, unrecorded: Unrecorded, sync: Durability) -> Result<Self> {
        disk::make_dirs(path)?;
        let mut storage = Self::inspect(path, unrecorded)?;
        storage.root.make_writable(disk::open_made(path)?, sync);
        storage.recover();
        Ok(storage)
    }

    /// Does the same, and waits for the storage now and later whenever it is away.
    ///
    /// # Errors
    ///
    /// Fails as [`open`](Self::open) does, or if the storage does not come back.
    pub fn open_patiently(
        path: &Path,
        (unrecorded, sync): (Unrecorded, Durability),
        patience: Patience,
    ) -> Result<Self> {
        let storage = disk::persist_at(path, &patience, || Self::open(path, unrecorded, sync))?;
        storage.root.disk.wait_with(patience, path.to_owned());
        Ok(storage)
    }

    /// Waits until there is a storage at a path: one that another host has just made may not be visible yet. Calls a function
    /// once if that is not at once, and gives up after a time.
    ///
    /// # Errors
    ///
    /// Fails if there is none by then, or it may not be read.
    pub fn await_existing(
        path: &Path,
        time: Duration,
        patience: &Patience,
        tell: impl FnOnce(),
    ) -> Result<()> {
        let began = Instant::now();
        let mut tell = Some(tell);
        loop {
            let error = match disk::persist_at(path, patience, || Self::existing(path)) {
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
        self.away().or_else(|| self.root.vanished())
    }

    /// An error if the storage was waited for, and does not answer.
    pub fn away(&self) -> Option<StorageError> {
        self.root.disk.away()
    }

    /// How often the storage went away or came back, as far as that was noticed.
    pub fn outages(&self) -> u64 {
        self.root.disk.outages()
    }

    /// Does the same, after a look whether it is away: then it is waited for.
    ///
    /// # Errors
    ///
    /// Fails if it does not come back.
    pub fn outages_now(&self) -> Result<u64> {
        if self.root.disk.is_on_network() {
            self.root.disk.await_answer()?;
        }
        Ok(self.outages())
    }

    /// Whether two runs may have the lease of one call, since hard links are not what leases need. It is known once this run
    /// computes.
    pub fn lacks_links(&self) -> bool {
        self.run.lacks_links()
    }
}
