//! The protocol: calls are found, executed once, published, and taken over.

mod attempts;
mod audit;
mod cached_hashing;
mod call_lookup;
mod commit_trees;
mod deviation;
mod equivalent_versions;
mod gc_roots_and_gate;
pub(crate) mod heartbeat;
mod import_results;
mod lease;
mod ledger;
mod open;
mod private_exports;
mod published_jobs;
mod queue;
mod record_cache;
mod stage;
mod stored_trees;
mod stored_values;
mod sweep_table;
mod takeover;
mod task_inputs;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, RwLock};
use std::time::Instant;

pub use self::attempts::{Attempts, CallLogs, LogTail, PriorAttempt};
pub use self::attempts::{FoundSuspension, Suspension, Suspensions};
pub use self::audit::Evictions;
use self::cached_hashing::FileHasher;
use self::call_lookup::ReservedNames;
pub use self::call_lookup::{Call, Damage, Found, Outputs, StoredCalls};
pub use self::commit_trees::{CommitPath, CommitTrees};
pub use self::deviation::{DeviatingOutput, Deviation, Precedence};
use self::equivalent_versions::Versions;
pub use self::equivalent_versions::{Equivalent, Equivalents};
pub use self::gc_roots_and_gate::{GcRoots, RootRegistry};
use self::heartbeat::CurrentRun;
pub use self::heartbeat::{Holder, lease_timeout, state_interval};
pub use self::import_results::Importer;
pub use self::import_results::{AwayCall, Import, ImportedCall, JobOutputs, MissingPart};
pub use self::lease::{ExecutionMode, Lease, Leases};
pub use self::ledger::{Ledger, Revocation, RevocationIndex, Revocations, RevokedResults};
pub use self::open::{Availability, Locator, Site};
use self::private_exports::PrivateExports;
pub use self::published_jobs::{Job, Jobs};
pub use self::queue::Runs;
pub use self::queue::{
    Activity, AnswersRead, Claim, ClaimedCall, ClaimedTicket, Queue, QueueSearch, ServedQueue,
    TicketContents, WorkerName,
};
pub use self::record_cache::CachedRecords;
use self::record_cache::RecordCache;
pub(crate) use self::stage::other_owner;
pub use self::stage::{PublishError, Sealed, Stage, StageProgress, WritableArea};
pub use self::stored_trees::{FoundTree, NewTree, OpenTree, StoredTrees};
pub use self::stored_values::Values;
pub use self::stored_values::{MemberError, OpenedValue, SharedContents};
pub use self::sweep_table::{FoundTable, TableDirectory, Tables};
pub use self::takeover::{OutputLocation, Takeover, VersionlessCall, choose_result};
pub use self::task_inputs::{Input, InputSource, Inputs};
use crate::disk::{FileId, Result, Root};
use crate::records::{Records, Stamp};
use ce_files::cache::Cache;
use ce_model::digest::{Blake3, Digest};

/// A value in the storage: a file or a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Its name, relative to the storage.
    pub name: String,
    pub digest: Digest,
    /// Its stamp; meaningless if it does not exist.
    pub stamp: Stamp,
}

/// The treatment of outputs without a record, for example of the first implementation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unrecorded {
    /// They are hashed, recorded as adopted, and used.
    Adopt,
    /// They are moved to quarantine, and the call is executed.
    Refuse,
}

/// The number of attempts to remove the directory of a run, in which workers may still write.
const REMOVALS: usize = 10;

/// An open storage.
#[derive(Debug)]
pub struct Storage {
    pub(super) root: Root,
    pub(super) run: CurrentRun,
    unrecorded: Unrecorded,
    takeover: Takeover,
    hasher: FileHasher,
    record_cache: RwLock<Option<RecordCache>>,
    versions: Versions,
    reserved_names: ReservedNames,
    /// Outputs without a record that had not settled: their state, and the time since when it is the
    /// same.
    unsettled: Mutex<HashMap<String, (Blake3, Instant)>>,
    /// Directories that were found writable.
    writable_dirs: Mutex<HashSet<PathBuf>>,
    /// No call was suspended here when that was looked up.
    without_suspensions: AtomicBool,
    /// Private directories that are not in use.
    slots: Mutex<Vec<String>>,
    private_exports: PrivateExports,
}

impl Storage {
    /// Uses a cache for digests and records.
    #[must_use]
    pub fn with_cache(mut self, cache: Option<Cache>) -> Self {
        self.hasher.cache = cache;
        self
    }

    /// Sets how outputs without a record are treated.
    #[must_use]
    pub const fn treating(mut self, unrecorded: Unrecorded) -> Self {
        self.unrecorded = unrecorded;
        self
    }

    /// Takes over these results of other versions.
    #[must_use]
    pub const fn taking_over(mut self, takeover: Takeover) -> Self {
        self.takeover = takeover;
        self
    }

    /// Interrupts the reading of inputs when `stop` becomes true.
    #[must_use]
    pub fn until(mut self, stop: Arc<AtomicBool>) -> Self {
        self.hasher.stop = stop;
        self
    }

    /// The absolute path of a name, for other programs.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.path(name)
    }

    /// The path of a name as the user named the storage, for display.
    pub fn shown(&self, name: &str) -> PathBuf {
        self.root.shown(name)
    }

    /// The storage itself as the user named it, for display.
    pub fn shown_place(&self) -> &Path {
        self.root.shown_place()
    }

    /// Whether a name exists.
    pub fn has(&self, name: &str) -> Result<bool> {
        self.root.disk.exists(&self.root.path(name))
    }

    /// Returns the device and inode of a file or directory of this run's own.
    pub fn id_of(&self, path: &Path) -> Result<FileId> {
        self.root.id_of(path)
    }

    /// Whether it may be written.
    pub const fn is_writable(&self) -> bool {
        self.root.writable
    }

    /// Whether writes are flushed: many calls should share a flush then.
    pub fn flushes(&self) -> bool {
        self.root.unsynced.is_synced()
    }

    /// Waits until everything written so far is on the disk.
    ///
    /// # Errors
    ///
    /// Fails if the disk does. Then possibly nothing has reached the disk.
    pub fn flush(&self) -> Result<()> {
        self.root.flush()
    }

    /// The records.
    pub const fn records(&self) -> Records<'_> {
        Records::new(&self.root)
    }

    /// The earlier attempts at calls: failures, logs and tombstones.
    pub const fn attempts(&self) -> Attempts<'_> {
        Attempts::new(&self.root)
    }

    /// The leases of calls.
    pub const fn leases(&self) -> Leases<'_> {
        Leases::new(&self.root, &self.run)
    }

    /// The trees of computations.
    pub const fn trees(&self) -> StoredTrees<'_> {
        StoredTrees::new(&self.root, &self.run, &self.private_exports)
    }

    /// The task inputs.
    pub const fn inputs(&self) -> Inputs<'_> {
        Inputs::new(self)
    }

    /// The evidence of executions.
    pub const fn ledger(&self) -> Ledger<'_> {
        Ledger::new(self)
    }

    /// The revocations that were pulled, or made here.
    pub const fn revocations(&self) -> Revocations<'_> {
        Revocations::new(self)
    }

    /// The tables.
    pub const fn tables(&self) -> Tables<'_> {
        Tables::new(self)
    }

    /// The runs that work on a storage: their queues, workers and states.
    pub const fn runs(&self) -> Runs<'_> {
        Runs::new(self)
    }

    /// Values in the storage: members of directories, and archives.
    pub const fn values(&self) -> Values<'_> {
        Values::new(self)
    }

    /// The directories of commits that tasks have read.
    pub const fn commit_trees(&self) -> CommitTrees<'_> {
        CommitTrees::new(self)
    }

    /// The logs of calls, of running ones and of ended ones.
    pub const fn logs(&self) -> CallLogs<'_> {
        CallLogs::new(self)
    }

    /// Results and failures of other commits that stand for a call's own.
    pub const fn equivalents(&self) -> Equivalents<'_> {
        Equivalents::new(self)
    }

    /// Publication of results from elsewhere: calls, literals, jobs and tables.
    pub const fn importer(&self) -> Importer<'_> {
        Importer::new(self)
    }

    /// Markers of results whose outputs are away.
    pub const fn evictions(&self) -> Evictions<'_> {
        Evictions::new(self)
    }

    /// The calls.
    pub const fn calls(&self) -> StoredCalls<'_> {
        StoredCalls::new(self)
    }

    /// The suspended calls.
    pub const fn suspensions(&self) -> Suspensions<'_> {
        Suspensions::new(self)
    }

    /// The records of calls that need not be read again.
    pub const fn cached_records(&self) -> CachedRecords<'_> {
        CachedRecords::new(self)
    }

    /// The GC roots of all runs, and the gate that a collection closes.
    pub const fn gc_roots(&self) -> RootRegistry<'_> {
        RootRegistry::new(self)
    }

    /// Whether the storage answers, and is where it was.
    pub const fn availability(&self) -> Availability<'_> {
        Availability::new(self)
    }

    /// The jobs.
    pub const fn jobs(&self) -> Jobs<'_> {
        Jobs::new(self)
    }
}

impl Drop for Storage {
    /// Removes this run's own directory.
    fn drop(&mut self) {
        // The heartbeat ends first: the files that it writes meanwhile would be left.
        self.run.end_heartbeat();
        self.private_exports.remove();
        if self.root.writable {
            let own = self.path(self.run.directory());
            // A worker may claim a ticket meanwhile, in a directory that was empty.
            (0..REMOVALS).any(|_| self.root.disk.remove_tree(&own).is_ok());
        }
    }
}
