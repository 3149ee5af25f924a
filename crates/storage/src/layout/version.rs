//! Versions of computations and tasks, and the directories that may hold their results.

#[cfg(test)]
use std::sync::LazyLock;

use super::{DIGITS, ResultName, suspension_key};
use ce_model::digest::{DIRTY, Digest, ObjectId, SHORT};
use ce_model::task::name::{ComputationName, TaskName};
use ce_model::task::workflow::{Computation, Task};

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
        Self::guess(super::TABLES, std::iter::once(None))
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
