//! Changes of a computation, from its Git history.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::{Cause, CodeVersion, Explanation};
use ce_git::{ChangeLog, FileChange, Snapshot, Trees};
use ce_model::task::{Computation, ComputationId, LIBRARY, Task};

/// The greatest number of commits in a list.
const MAX_COMMITS: usize = 10;

/// The change of a computation between two versions, as far as its repository has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Change {
    /// New commits that touched it.
    pub came: Option<ChangeLog>,
    /// Commits that touched it and are not in its history any more.
    pub went: Option<ChangeLog>,
    /// The changed files.
    pub files: Option<Vec<FileChange>>,
    /// The files with uncommitted changes, relative to the task.
    pub uncommitted: Vec<PathBuf>,
}

/// Returns the changes behind the causes of an explanation, by the indices of the causes.
///
/// `dir` is any directory in the repository.
pub fn changes(dir: &Path, task: &Task, explanation: &Explanation) -> HashMap<usize, Change> {
    let real = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    let snapshot = Snapshot::open(dir, task.commit.full()).ok();
    let code = CodeHistory { dir, real, task, snapshot };
    let causes = explanation.causes.iter().enumerate();
    causes
        .filter_map(|(at, first)| match &first.cause {
            Cause::Computation(id, old) => Some((at, code.change(*id, Some(old)))),
            Cause::Uncommitted(id, old) => Some((at, code.change(*id, old.as_ref()))),
            _ => None,
        })
        .collect()
}

/// The history of a task's computations. Missing objects are left out.
struct CodeHistory<'a> {
    dir: &'a Path,
    real: PathBuf,
    task: &'a Task,
    snapshot: Option<Snapshot>,
}

impl CodeHistory<'_> {
    fn change(&self, id: ComputationId, old: Option<&CodeVersion>) -> Change {
        let computation = &self.task.computations[id.index()];
        let mut change = Change::default();
        if let (true, Some(place)) = (computation.dirty, &computation.checked_out) {
            let mut changed = self.task.changed.clone();
            changed.retain(|path| self.real.join(path).starts_with(place));
            change.uncommitted = changed;
        }
        if let (Some(old), Some((trees, inside))) = (old, self.place(computation)) {
            let log = |range| trees.log(&inside, range, MAX_COMMITS).ok().flatten();
            change.came = log([&old.commit, &computation.commit]);
            change.went = log([&computation.commit, &old.commit]);
            change.files = trees.diff([&old.tree, &computation.tree]).ok().flatten();
        }
        change
    }

    /// The repository with a computation, and the computation's path in it.
    fn place(&self, computation: &Computation) -> Option<(Trees, PathBuf)> {
        // A checked out computation may be in another repository than the task.
        if let Some(real) = &computation.checked_out {
            let top = ce_git::top(real)?;
            return Some((Trees::new(real), real.strip_prefix(&top).ok()?.to_owned()));
        }
        let path = Path::new(LIBRARY).join(computation.name.as_str());
        let spot = self.snapshot.as_ref()?.find(&path).ok()?;
        Some((Trees::new(self.dir), spot.inside()))
    }
}
