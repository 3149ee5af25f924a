//! The global file storage: a directory of files that never change.
//!
//! A call is present when its record **and** all its outputs exist, and the record's full hashes
//! are the requested ones. The record appears atomically and for one execution only, so the outputs
//! of two executions are never mixed. Nothing is deleted: a file in the way is moved to quarantine.
//! The storage knows nothing of workflows, or of how outputs are computed.
//!
//! Its layers, from the lowest; each imports only those before it:
//!
//! - `disk`: the file system, with faults on demand,
//! - `paths`: every name in the storage,
//! - [`records`]: the formats of records, and reading and writing them,
//! - `protocol`: the protocol by which calls are found, executed once, and published,
//! - [`maintenance`]: verification, repair, collection, pins and repositories.

pub(crate) mod disk;
pub mod maintenance;
pub(crate) mod paths;
pub mod probes;
pub(crate) mod protocol;
pub mod records;

pub use self::disk::{Durability, FileId, NoStorage, Outage, Patience, StorageError};
pub use self::maintenance::{
    KnownRepositories, KnownRepository, Maintenance, NameKind, NewRecords, PastCall, PastCallRef,
    Pins, RecordWatch, Removal, StorageId, StorageIdentity, StorageRecord, Survey,
};
pub use self::paths::{
    ComputationVersion, Entry, LOG, ResultName, TaskVersion, archive_name, large_name, ledger_file,
    of_ledger_file, of_revocation, revocations, split_member,
};
pub use self::paths::{is_of_layout, is_users_file};
pub use self::protocol::{
    Activity, AnswersRead, Attempts, Availability, AwayCall, CachedRecords, Call, CallLogs, Claim,
    ClaimedCall, ClaimedTicket, CommitPath, CommitTrees, Damage, DeviatingOutput, Deviation,
    Equivalent, Equivalents, Evictions, ExecutionMode, Found, FoundSuspension, FoundTable,
    FoundTree, GcRoots, Holder, Import, ImportedCall, Importer, Input, InputSource, Inputs, Job,
    JobOutputs, Jobs, Lease, Leases, Ledger, Locator, LogTail, MemberError, MissingPart, NewTree,
    OpenTree, OpenedValue, OutputLocation, Outputs, Precedence, PriorAttempt, PublishError, Queue,
    QueueSearch, Revocation, RevocationIndex, Revocations, RevokedResults, RootRegistry, Runs,
    Sealed, ServedQueue, SharedContents, Site, Stage, StageProgress, Storage, Stored, StoredCalls,
    StoredTrees, Suspension, Suspensions, TableDirectory, Tables, Takeover, TicketContents,
    Unrecorded, Values, VersionlessCall, WorkerName, WritableArea, choose_result, lease_timeout,
    state_interval,
};
pub use self::records::{
    CheckStopped, Defect, ExpectedFile, Finding, LongText, OwnOutput, PinRecord, RecipeError,
    RecipeFile, RecipeHeader, RecipeReader, RecipeRow, RecipeWriter, Record, RecordState, Records,
    RepositoryRecord, RevocationRecord, SignerNote, Tombstone, VersionRecord, WorkerAbilities,
    WorkerRecord,
};
