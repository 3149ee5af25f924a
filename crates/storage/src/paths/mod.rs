//! The names of all files and directories of a storage.
//!
//! Pure functions from values to names, and back, without I/O. This file has the directories at the top, the
//! directories of versions of computations and tasks, and the names of runs, of files in their private directories, of
//! their queues, and of suspended calls. It has the names of the ledger and of revocations, too, which are digests of
//! their contents:
//!
//! ```text
//! tmp/RUN/queue/CLASS/NUMBER      a ticket that waits for a worker with what CLASS asks for
//! tmp/RUN/claims/WORKER/NUMBER    a ticket that a worker has, which is a run like any other
//! tmp/RUN/answers/WORKER          what a worker says of the tickets that it had, a line each
//! tmp/RUN/slurm/NAME              a name under which it has submitted workers to Slurm
//! tmp/RUN/slurm/NAME_N.log        what one of these workers prints
//! tmp/RUN/scheduler/NAME          the same for workers that commands of the user start, with NAME_1.log
//! tmp/RUN/scheduler/NAME_1.sh     the script of such a worker
//! tmp/WORKER/worker.json          what a worker is
//! c_NAME/CCID/suspended/INPUTS/     the place of a call: `work/`, `log`, `state.json`
//! suspended/KEY                     the short name of the call with this computation, tree and inputs
//! suspended/KEY-COMMIT              the same for one that is not isolated: other commits do not continue it
//! ```

mod result;

use std::fmt;
use std::str::FromStr;

use self::result::shown;
pub(super) use self::result::{
    DIGITS, Digits, is_value, link_to, linked, manifest, task_input, task_input_record,
};
pub use self::result::{Entry, ResultName, archive_name, large_name, split_member};
pub(crate) use self::result::{LONGEST_FILE, longest_record};
use ce_model::digest::{Blake3, DIRTY, Digest, ObjectId, SHORT};
use ce_model::name::{ComputationName, StorageName, TaskName};
use ce_model::task::{Computation, Task};

/// The directory of task inputs.
pub(super) const TASK_INPUTS: &str = "tinputs";

/// The room, among task inputs, of files and directories of commits that tasks have read.
pub(super) const COMMITS: &str = "commits";

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

/// The record with the storage's id.
pub(super) const IDENTITY: &str = "repositories/storage";

/// The directory of the logs of detached runs.
pub(super) const RUN_LOGS: &str = "runs";

/// The directory of the private directories of runs.
pub(crate) const RUNS: &str = "tmp";

/// The lease of the collection that takes results away now.
pub(super) const GATE: &str = "tmp/collecting";

/// The directories of the layout, besides the directories of computations and tasks.
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

/// Whether a text has the form of a name of results in a storage, which may have names in braces.
pub fn is_of_layout(name: &str) -> bool {
    let Some((top, rest)) = name.split_once('/') else { return false };
    let is_room = [TABLES, TASK_INPUTS].contains(&top);
    !rest.is_empty() && (top.starts_with("c_") || top.starts_with("t_") || is_room)
}

#[cfg(test)]
use std::sync::LazyLock;

/// A version of a computation: everything that a result depends on but its inputs.
#[derive(Clone, Copy, Debug)]
pub struct ComputationVersion<'a> {
    pub computation: &'a ComputationName,
    /// The commit that has the computation, or that the uncommitted changes are based on.
    pub commit: &'a ObjectId,
    /// The Git tree of its directory.
    pub tree: &'a ObjectId,
    /// The tree is not the commit's.
    pub dirty: bool,
}

impl<'a> From<&'a Computation> for ComputationVersion<'a> {
    fn from(computation: &'a Computation) -> Self {
        let Computation { name, commit, tree, dirty, .. } = computation;
        Self { computation: name, commit, tree, dirty: *dirty }
    }
}

impl PartialEq for ComputationVersion<'_> {
    /// A dirty version is identified by its tree alone.
    fn eq(&self, other: &Self) -> bool {
        self.computation == other.computation
            && self.dirty == other.dirty
            && self.tree == other.tree
            && (self.dirty || self.commit == other.commit)
    }
}

impl ComputationVersion<'_> {
    /// The directories that may hold its results, in the order in which they are tried. The first is
    /// the specification's.
    pub fn directories(self) -> Vec<String> {
        let Self { computation, commit, tree, dirty } = self;
        let names = if dirty {
            vec![format!("{DIRTY}{}", tree.short()), format!("{DIRTY}{}", tree.full())]
        } else {
            vec![
                commit.short().to_owned(),
                format!("{}-{}", commit.short(), tree.short()),
                format!("{}-{}", commit.full(), tree.full()),
            ]
        };
        names.into_iter().map(|name| format!("c_{computation}/{name}")).collect()
    }

    /// Whether a directory of this name may hold its results.
    pub(crate) fn may_be_in(self, directory: &str) -> bool {
        self.directories().iter().any(|it| it == directory)
    }

    /// The key of this version within a run.
    pub(crate) fn key(self) -> String {
        let Self { computation, commit, tree, dirty } = self;
        let commit = if dirty { "dirty" } else { commit.full() };
        [computation.as_str(), commit, tree.full()].join("/")
    }
}

/// A version of a task: everything that a job depends on but its inputs.
#[derive(Clone, Copy, Debug)]
pub struct TaskVersion<'a> {
    pub name: &'a TaskName,
    /// The commit of its repository.
    pub commit: &'a ObjectId,
    /// Its path in the repository. `None` in a record without it.
    pub place: Option<&'a str>,
}

impl<'a> From<&'a Task> for TaskVersion<'a> {
    fn from(task: &'a Task) -> Self {
        Self::new(&task.name, &task.commit, &task.place)
    }
}

impl<'a> TaskVersion<'a> {
    /// Returns a version of a task.
    pub const fn new(name: &'a TaskName, commit: &'a ObjectId, place: &'a str) -> Self {
        Self { name, commit, place: Some(place) }
    }

    /// The directories that may hold its jobs, in the order in which they are tried: two tasks of one
    /// repository may have the same name, and two commits the same first digits.
    pub fn directories(self) -> Vec<String> {
        let Self { name, commit, place } = self;
        let place = Digest::hash_bytes(place.unwrap_or_default().as_bytes()).sha1;
        let versions = [
            commit.short().to_owned(),
            format!("{}-{}", commit.short(), place.short()),
            format!("{}-{}", commit.full(), place.full()),
        ];
        versions.into_iter().map(|version| format!("t_{name}/{version}")).collect()
    }

    /// The names that a job from these inputs may have.
    pub(crate) fn names(self, inputs: &[Digest]) -> Vec<ResultName> {
        self.directories()
            .iter()
            .flat_map(|directory| {
                DIGITS.map(|digits| ResultName::new(directory.as_str(), inputs, digits))
            })
            .collect()
    }
}

impl ResultName {
    /// The name of a table whose recipe is not known. It is only displayed; no file has it.
    pub fn unknown_table() -> Self {
        Self::guess(TABLES, std::iter::once(None))
    }
}

/// The record of the directory with this path in a commit; of the whole commit if the path is empty.
pub(crate) fn commit_tree(commit: &ObjectId, path: &str) -> String {
    let (shard, rest) = commit.full().split_at(2);
    let of_path = match path {
        "" => String::new(),
        path => format!("-{}", Digest::hash_bytes(path.as_bytes()).sha1.short()),
    };
    format!("{TASK_INPUTS}/{COMMITS}/{shard}/{rest}{of_path}.json")
}

/// The directory that lists the versions of a computation with this tree.
pub(crate) fn notes(computation: &ComputationName, tree: &ObjectId) -> String {
    format!("c_{computation}/commits/{}", tree.full())
}

/// The file that lists the version of a result under its tree.
pub(crate) fn note(computation: &ComputationName, tree: &ObjectId, result: &ResultName) -> String {
    format!("{}/{}", notes(computation, tree), result.version())
}

impl ResultName {
    /// The names of the two leases that all versions with the tree of a call share. A run that executes it in isolation
    /// holds the first, and a run that trusts its tree the second. No result has these names.
    pub(crate) fn of_all_versions(version: ComputationVersion<'_>, inputs: &[Digest]) -> [Self; 2] {
        let directory = format!("c_{}/commits", version.computation);
        let key = suspension_key(version, inputs);
        let trusted = format!("{key}-trusted");
        [key, trusted].map(|file| Self { directory: directory.as_str().into(), file: file.into() })
    }

    /// Whether a call may have this name: its version and its inputs have at least as many digits as the specification's.
    pub fn may_be_of_call(&self) -> bool {
        let version = self.version();
        version.strip_prefix(DIRTY).unwrap_or(version).split('-').all(has_digits)
            && (self.inputs().next().is_some() || self.short().ends_with("/_"))
            && self.inputs().all(has_digits)
    }
}

/// Whether a text is hexadecimal digits, at least as many as the specification has.
fn has_digits(text: &str) -> bool {
    text.len() >= SHORT && text.bytes().all(|it| it.is_ascii_hexdigit())
}

#[cfg(test)]
impl ComputationVersion<'static> {
    /// The version of a computation `copy`, for tests.
    pub(crate) fn example() -> Self {
        static COPY: LazyLock<(ComputationName, [ObjectId; 2])> = LazyLock::new(|| {
            let ids = ["0", "1"].map(|digit| digit.repeat(40).parse().unwrap());
            ("copy".parse().unwrap(), ids)
        });
        let (computation, [commit, tree]) = &*COPY;
        Self { computation, commit, tree, dirty: false }
    }
}

/// The directory of the evidence of executions.
pub(crate) const LEDGER: &str = "ledger";

/// The directory of the notes of who vouches for files of the ledger. They never leave the storage.
pub(crate) const SIGNERS: &str = "signers";

/// The ending of the names of files of the ledger.
const LINES: &str = ".ndjson";

/// The name of the file of the ledger with these contents.
pub fn ledger_file(contents: &Blake3) -> String {
    place(LEDGER, contents, LINES)
}

/// The contents that a file of this name in the ledger must have; `None` if the ledger has no such names.
pub fn of_ledger_file(name: &str) -> Option<Blake3> {
    let (shard, rest) = name.strip_prefix(LEDGER)?.strip_prefix('/')?.split_once('/')?;
    let digits = [shard, rest.strip_suffix(LINES)?].concat();
    let contents = Blake3::from_digits(digits.as_bytes())?;
    (ledger_file(&contents) == name).then_some(contents)
}

/// The name of the note of who vouches for a file of the ledger.
pub(crate) fn signer_note(contents: &Blake3) -> String {
    place(SIGNERS, contents, ".json")
}

fn place(directory: &str, contents: &Blake3, ending: &str) -> String {
    let digits = contents.full();
    let (shard, rest) = digits.split_at(2);
    format!("{directory}/{shard}/{rest}{ending}")
}

/// The directory of revocations: statements that results are wrong.
pub(crate) const REVOKED: &str = "revoked";

/// The directory of the revocations of a result.
pub fn revocations(entry: &Entry) -> String {
    format!("{REVOKED}/{}", entry.record().trim_end_matches(".json"))
}

/// The name of the revocation of a result with these contents.
pub(crate) fn revocation(entry: &Entry, contents: &Blake3) -> String {
    format!("{}/{}.json", revocations(entry), contents.full())
}

/// The result that a revocation of this name is about, and the contents that it must have; `None` if it is not the name
/// of one.
pub fn of_revocation(name: &str) -> Option<(Entry, Blake3)> {
    let (record, contents) = name.strip_prefix(REVOKED)?.strip_prefix('/')?.rsplit_once('/')?;
    let entry = Entry::of_record(&format!("{record}.json"))?;
    let contents = Blake3::from_digits(contents.strip_suffix(".json")?.as_bytes())?;
    (revocation(&entry, &contents) == name).then_some((entry, contents))
}

/// The prefix of the name of the file that says how much a run has announced.
const ROOTS_SIZE: &str = "uses-";

/// The name of a run: `HOST-BOOT-NAMESPACE-PROCESS-TIME`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RunName {
    pub(crate) host: String,
    pub(crate) boot: String,
    pub(crate) namespace: String,
    pub(crate) process: u32,
    pub(crate) time: String,
}

impl RunName {
    /// Whether process numbers mean the same for both runs for certain. A host without `/proc`
    /// knows neither its boot id nor its process namespace: unknown ones may differ, and are never
    /// equal.
    pub(crate) fn is_near(&self, other: &Self) -> bool {
        self.host == other.host
            && self.boot == other.boot
            && self.namespace == other.namespace
            && !self.boot.is_empty()
            && !self.namespace.is_empty()
    }

    /// Its private directory, relative to the storage.
    pub(crate) fn directory(&self) -> String {
        format!("{RUNS}/{self}")
    }
}

impl fmt::Display for RunName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, boot, namespace, process, time } = self;
        write!(f, "{host}-{boot}-{namespace}-{process}-{time}")
    }
}

impl FromStr for RunName {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        // The name must fit a directory in `tmp/`.
        if text.contains(['/', '\0']) {
            return Err(());
        }
        let parts: Vec<&str> = text.split('-').collect();
        let [host, boot, namespace, process, time] = parts[..] else {
            return Err(());
        };
        let process = process.parse().map_err(drop)?;
        let [host, boot, namespace, time] = [host, boot, namespace, time].map(str::to_owned);
        Ok(Self { host, boot, namespace, process, time })
    }
}

/// The file that a detached run prints to.
pub(crate) fn log_of_run(run: &RunName) -> String {
    format!("{RUN_LOGS}/{run}/log")
}

/// The file beside the log of a run that says that it waits as a job.
pub(crate) fn submission_of_run(run: &RunName) -> String {
    format!("{RUN_LOGS}/{run}/job.json")
}

/// The file in the private directory of a run that says how far it has come.
pub(crate) fn state_of_run(run: &RunName) -> String {
    format!("{}/state.json", run.directory())
}

/// The file in the private directory of a run that lists its garbage collection roots.
pub(crate) fn roots_file(directory: &str) -> String {
    format!("{directory}/uses")
}

/// The empty file beside the roots whose name says their minimum size in bytes.
pub(crate) fn roots_size(directory: &str, size: usize) -> String {
    format!("{directory}/{ROOTS_SIZE}{size}")
}

/// The number of bytes in the name of such a file; 0 if it is another file.
pub(crate) fn size_of_roots(file: &str) -> usize {
    file.strip_prefix(ROOTS_SIZE).and_then(|size| size.parse().ok()).unwrap_or_default()
}

/// The name of an output that waits to be moved to its place.
pub(crate) fn waiting(stage: &str, number: usize) -> String {
    format!("{stage}.{number:02}")
}

/// Whether this may be the name of a stage: one in the private directory of a run.
pub(crate) fn is_stage(stage: &str) -> bool {
    match stage.split('/').collect::<Vec<_>>()[..] {
        [RUNS, run, slot, call] => {
            run.parse::<RunName>().is_ok() && is_number(slot) && is_number(call)
        }
        _ => false,
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit())
}

/// The ending of the names of records in a stage.
pub(crate) const RECORD: &str = ".record";

/// The directory in a stage that only its user may enter: all that a call may write is in it.
pub(crate) const OWN: &str = "own";

/// The working directory of `exec`.
pub(crate) const WORK: &str = "work";

/// The directory where a sandboxed `exec` leaves its outputs.
pub(crate) const OUTBOX: &str = "out";

/// The name of the file with the standard output and error of `exec`.
pub const LOG: &str = "log";

/// The key of a call in the index: the same for all commits with the computation's tree.
pub(crate) fn suspension_key(version: ComputationVersion<'_>, inputs: &[Digest]) -> String {
    let ComputationVersion { computation, tree, .. } = version;
    let inputs: Vec<String> = inputs.iter().map(|input| shown(input, Digits::Full)).collect();
    let text = format!("{computation}\n{}\n{}", tree.full(), inputs.join("\n"));
    Digest::hash_bytes(text.as_bytes()).sha1.full()
}

/// The name of a call's file in the index.
pub(crate) fn suspension_index(
    version: ComputationVersion<'_>,
    inputs: &[Digest],
    isolated: bool,
) -> String {
    let key = suspension_key(version, inputs);
    match (isolated, version.dirty) {
        (true, _) => format!("{SUSPENDED}/{key}"),
        (false, true) => format!("{SUSPENDED}/{key}-{}", DIRTY.trim_end_matches('-')),
        (false, false) => format!("{SUSPENDED}/{key}-{}", version.commit.full()),
    }
}

impl ResultName {
    /// The place of the call while it is suspended, relative to the storage.
    pub fn suspended_place(&self) -> String {
        self.room(SUSPENDED)
    }

    /// The directory of a suspended call that only its user may enter.
    pub(crate) fn suspended_own(&self) -> String {
        format!("{}/{OWN}", self.suspended_place())
    }

    /// The directory that a suspended call finds again.
    pub(crate) fn suspended_work(&self) -> String {
        format!("{}/{WORK}", self.suspended_own())
    }

    /// The place of that directory in earlier versions. Processes that the call has started elsewhere know its path.
    pub(crate) fn earlier_work(&self) -> String {
        format!("{}/{WORK}", self.suspended_place())
    }

    /// The log of a suspended call.
    pub(crate) fn suspended_log(&self) -> String {
        format!("{}/{LOG}", self.suspended_place())
    }

    /// The record of a suspended call.
    pub(crate) fn suspended_state(&self) -> String {
        format!("{}/state.json", self.suspended_place())
    }

    /// Parses the name of a suspended call's place, or of something in it.
    pub fn of_suspended(name: &str) -> Option<Self> {
        let (directory, rest) = name.split_once(&format!("/{SUSPENDED}/"))?;
        directory.starts_with("c_").then_some(())?;
        let mut end = 0;
        for part in rest.split('/') {
            end += part.len();
            // After a directory that ends in an underscore, the name has more parts.
            if part == "_" || !part.ends_with('_') {
                break;
            }
            end += 1;
        }
        Some(Self { directory: directory.into(), file: rest.get(..end)?.into() })
    }
}

impl RunName {
    /// The directory of tickets that wait.
    pub(crate) fn queue(&self) -> String {
        format!("{}/queue", self.directory())
    }

    /// The directory of the tickets that wait and ask for the same.
    pub(crate) fn class(&self, class: &str) -> String {
        format!("{}/{class}", self.queue())
    }

    /// The directory of the claims of all workers.
    pub(crate) fn claims(&self) -> String {
        format!("{}/claims", self.directory())
    }

    /// The directory of the tickets that a worker has.
    pub(crate) fn claims_of(&self, worker: &Self) -> String {
        format!("{}/{worker}", self.claims())
    }

    /// The directory of the answers of all workers.
    pub(crate) fn answers(&self) -> String {
        format!("{}/answers", self.directory())
    }

    /// The file of the answers of a worker.
    pub(crate) fn answers_of(&self, worker: &Self) -> String {
        format!("{}/{worker}", self.answers())
    }

    /// The directory of the workers that a run has submitted to a scheduler.
    pub(crate) fn submissions(&self, scheduler: &str) -> String {
        format!("{}/{scheduler}", self.directory())
    }

    /// The file with the record of a worker.
    pub(crate) fn worker_record(&self) -> String {
        format!("{}/worker.json", self.directory())
    }
}

/// The name of a ticket in a directory. The tickets of a run sort in the order in which they were made.
pub(crate) fn ticket_in(directory: &str, number: u64) -> String {
    format!("{directory}/{number:010}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_the_ledger_is_named_by_its_contents() {
        let contents = Blake3::hash_bytes(b"evidence");
        let name = ledger_file(&contents);
        assert_eq!(of_ledger_file(&name), Some(contents));
        let short = name.replace(".ndjson", "");
        let upper =
            name.to_ascii_uppercase().replace("LEDGER", "ledger").replace("NDJSON", "ndjson");
        let deeper = name.replacen("ledger/", "ledger/x/", 1);
        for other in
            [short, upper, deeper, "ledger/ab/cd.ndjson".to_owned(), signer_note(&contents)]
        {
            assert_eq!(of_ledger_file(&other), None, "{other}");
        }
    }

    #[test]
    fn a_revocation_is_named_by_its_result_and_contents() {
        let entry = Entry::of_short("c_x/0123456789ab/0123456789ab").unwrap();
        let contents = Blake3::hash_bytes(b"wrong");
        let name = revocation(&entry, &contents);
        assert!(name.starts_with("revoked/c_x/0123456789ab/record/0123456789ab/"), "{name}");
        assert_eq!(of_revocation(&name), Some((entry, contents)));
        for other in [
            name.replacen("revoked/", "", 1),
            name.replacen("revoked/", "revoked/../", 1),
            name.replace("/record/", "/00/"),
            name.replace(".json", ""),
            name.to_ascii_uppercase(),
        ] {
            assert_eq!(of_revocation(&other), None, "{other}");
        }
    }

    #[test]
    fn paths_of_a_suspended_call_lead_to_the_call() {
        for file in ["_", "ad48103e4fc7", "a_b_/c"] {
            let name = ResultName { directory: "c_add/567526d1f10f".into(), file: file.into() };
            for place in [name.suspended_place(), name.suspended_work(), name.suspended_state()] {
                assert_eq!(ResultName::of_suspended(&place), Some(name.clone()), "{place}");
            }
        }
        assert_eq!(ResultName::of_suspended("c_add/567526d1f10f/00/_"), None);
    }

    #[test]
    fn only_an_unisolated_call_is_indexed_by_its_commit() {
        let version = ComputationVersion::example();
        let inputs = [Digest::hash_bytes(b"1")];
        let commit = "2".repeat(40).parse().unwrap();
        let other = ComputationVersion { commit: &commit, ..version };
        let index = |version, isolated| suspension_index(version, &inputs, isolated);
        assert_eq!(index(version, true), index(other, true));
        assert_ne!(index(version, false), index(other, false));
        assert!(index(version, false).starts_with(&index(version, true)));
        assert_ne!(index(version, true), suspension_index(version, &[], true));
    }
}
