//! The names of all files and directories of a storage.
//!
//! Pure functions from values to names, and back, without I/O.

mod entry;
mod ledger;
pub(super) mod queue;
mod result;
mod revocation;
mod run;
mod stage;
mod suspended;
mod table;
mod version;

pub use self::entry::Entry;
pub(super) use self::ledger::{LEDGER, SIGNERS, signer_note};
pub use self::ledger::{ledger_file, of_ledger_file};
pub(super) use self::result::{
    DIGITS, Digits, is_value, link_to, linked, manifest, task_input, task_input_record,
};
pub(crate) use self::result::{LONGEST_FILE, longest_record};
pub use self::result::{ResultName, archive_name, split_member};
pub(super) use self::revocation::{REVOKED, revocation};
pub use self::revocation::{of_revocation, revocations};
pub(super) use self::run::{
    RunName, log_of_run, roots_file, roots_size, size_of_roots, state_of_run, submission_of_run,
};
pub use self::stage::LOG;
pub(super) use self::stage::{OUTBOX, RECORD, WORK, is_stage, waiting};
pub(super) use self::suspended::{suspension_index, suspension_key};
pub use self::version::{ComputationVersion, TaskVersion};
pub(super) use self::version::{note, notes};
use ce_model::task::name::StorageName;

/// The directory of task inputs.
pub(super) const TASK_INPUTS: &str = "tinputs";

/// The directory of tables.
pub(super) const TABLES: &str = "tables";

/// The directory of trees of computations.
pub(super) const TREES: &str = "trees";

/// The directory of the manifests of directories that are values.
pub(super) const MANIFESTS: &str = "manifests";

/// The directory of the archives of directories in a results repository.
pub(super) const DIRECTORIES: &str = "directories";

/// The directory of quarantined files and trees.
pub(super) const QUARANTINE: &str = "aside";

/// The directory of the records of repositories.
pub(super) const REPOSITORIES: &str = "repositories";

/// The directory of what detached runs print.
pub(super) const RUN_LOGS: &str = "runs";

/// The directory of the private directories of runs.
pub(crate) const RUNS: &str = "tmp";

/// The lease of the collection that takes results away now.
pub(super) const GATE: &str = "tmp/collecting";

/// The directories of the layout, besides those of computations and tasks.
pub(super) const ROOMS: [&str; 11] = [
    TASK_INPUTS,
    TABLES,
    TREES,
    MANIFESTS,
    REPOSITORIES,
    RUN_LOGS,
    RUNS,
    SUSPENDED,
    LEDGER,
    SIGNERS,
    REVOKED,
];

/// The room of the records of present results.
pub(super) const RECORDS: &str = "record";

/// The room of tombstones.
pub(super) const COLLECTED: &str = "collected";

/// The room of failures, and of the logs of failed calls.
pub(super) const FAILED: &str = "failed";

/// The room of the logs of successful calls.
pub(super) const LOGS: &str = "log";

/// The room of suspended calls, and the directory of the index of them.
pub(super) const SUSPENDED: &str = "suspended";

/// The room of markers: the outputs of a result are deliberately not here.
pub(super) const AWAY: &str = "away";

/// The room of leases.
pub(super) const LEASES: &str = "running";

/// The room of pins.
pub(super) const PINS: &str = "pinned";

/// The file that names the version that owns a directory.
pub(super) const OWNER: &str = "version.json";
/// Names at the top that a results repository uses itself, besides the directories of the layout.
const SHARED: [&str; 4] = [DIRECTORIES, "differs", "format", "README.md"];

/// Whether a file of this name is one that users keep in a storage for themselves, such as a literal: neither the storage nor
/// a results repository uses the name, and no component is hidden.
pub fn is_users_file(name: &str) -> bool {
    let mut components = name.split('/');
    let top = components.next().unwrap_or_default();
    let is_room = ROOMS.contains(&top) || SHARED.contains(&top);
    let is_taken = top.starts_with("c_") || top.starts_with("t_") || is_room;
    let is_name = name.parse::<StorageName>().is_ok_and(|it| it.as_str() == name);
    is_name && !is_taken && !name.split('/').any(|component| component.starts_with('.'))
}
