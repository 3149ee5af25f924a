//! The names of all files and directories of a storage.
//!
//! Pure functions from values to names, and back, without I/O. This file has the directories at the top, those of versions of
//! computations and tasks, and the names of the ledger and of revocations, which are digests of their contents.

mod result;
mod run;

pub(super) use self::result::{
    DIGITS, Digits, is_value, link_to, linked, manifest, task_input, task_input_record,
};
pub use self::result::{Entry, ResultName, archive_name, split_member};
pub(crate) use self::result::{LONGEST_FILE, longest_record};
pub use self::run::LOG;
pub(super) use self::run::{
    OUTBOX, RECORD, RunName, WORK, is_stage, log_of_run, roots_file, roots_size, size_of_roots,
    state_of_run, submission_of_run, suspension_index, suspension_key, ticket_in, waiting,
};
use ce_model::digest::{Blake3, DIRTY, Digest, ObjectId, SHORT};
use ce_model::name::{ComputationName, StorageName, TaskName};
use ce_model::task::{Computation, Task};

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

#[cfg(test)]
use std::sync::LazyLock;

/// A version of a computation: everything that a result depends on but its inputs.
#[derive(Clone, Copy, Debug)]
pub struct ComputationVersion<'a> {
    /// The name of the computation.
    pub computation: &'a ComputationName,
    /// The commit that holds it, or that it was changed from.
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
    /// The name of the task.
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
        let place = Digest::of(place.unwrap_or_default().as_bytes()).sha1;
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
            .flat_map(|directory| DIGITS.map(|digits| ResultName::new(directory, inputs, digits)))
            .collect()
    }
}

impl ResultName {
    /// The name of a table whose recipe is not known. It is only displayed; no file has it.
    pub fn unknown_table() -> Self {
        Self::guess(TABLES, std::iter::once(None))
    }
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
    /// The names of the two leases that all versions with the tree of a call share: that of whoever executes it in isolation,
    /// and that of whoever trusts its tree. No result has them.
    pub(crate) fn of_all_versions(version: ComputationVersion<'_>, inputs: &[Digest]) -> [Self; 2] {
        let directory = format!("c_{}/commits", version.computation);
        let key = suspension_key(version, inputs);
        let trusted = format!("{key}-trusted");
        [key, trusted].map(|file| Self { directory: directory.as_str().into(), file: file.into() })
    }

    /// Whether a call may have this name: its version and its inputs have at least as many digits as the specification's.
    pub fn may_be_of_call(&self) -> bool {
        let has_digits =
            |text: &str| text.len() >= SHORT && text.bytes().all(|it| it.is_ascii_hexdigit());
        let version = self.version();
        version.strip_prefix(DIRTY).unwrap_or(version).split('-').all(has_digits)
            && (self.inputs().next().is_some() || self.short().ends_with("/_"))
            && self.inputs().all(has_digits)
    }
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

/// The contents that a file of this name in the ledger must have; `None` if it is no name of such a file.
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

/// The directory of revocations: what somebody says is wrong.
pub(crate) const REVOKED: &str = "revoked";

/// The directory of the revocations of a result.
pub fn revocations(entry: &Entry) -> String {
    format!("{REVOKED}/{}", entry.record().trim_end_matches(".json"))
}

/// The name of the revocation of a result with these contents.
pub(crate) fn revocation(entry: &Entry, contents: &Blake3) -> String {
    format!("{}/{}.json", revocations(entry), contents.full())
}

/// The result that a revocation of this name is about, and the contents that it must have; `None` if it is no such name.
pub fn of_revocation(name: &str) -> Option<(Entry, Blake3)> {
    let (record, contents) = name.strip_prefix(REVOKED)?.strip_prefix('/')?.rsplit_once('/')?;
    let entry = Entry::of_record(&format!("{record}.json"))?;
    let contents = Blake3::from_digits(contents.strip_suffix(".json")?.as_bytes())?;
    (revocation(&entry, &contents) == name).then_some((entry, contents))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_the_ledger_is_named_by_its_contents() {
        let contents = Blake3::of(b"evidence");
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
        let contents = Blake3::of(b"wrong");
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
}
