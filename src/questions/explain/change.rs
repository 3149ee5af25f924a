//! What Git tells of a computation that has changed.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::{Cause, CodeVersion, Explanation, FirstCause};
use crate::git::{self, ChangeLog, FileChange, Snapshot, Trees};
use crate::task::workflow::{Computation, ComputationId, LIBRARY, Task};

/// How many commits are told.
const COMMITS: usize = 10;

/// What happened to a computation between two versions, as far as its repository tells.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Change {
    /// The commits that came and touched it.
    pub came: Option<ChangeLog>,
    /// The commits that are no more in its history, and had touched it.
    pub went: Option<ChangeLog>,
    /// The files that differ.
    pub files: Option<Vec<FileChange>>,
    /// The files of which no commit records what they contain now, relative to the task.
    pub uncommitted: Vec<PathBuf>,
}

/// What Git tells of the causes of an explanation, by their places among all causes.
///
/// The repository is given by any directory in it.
pub fn changes(dir: &Path, task: &Task, explanation: &Explanation) -> HashMap<usize, Change> {
    let real = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    let snapshot = Snapshot::open(dir, task.commit.full()).ok();
    let sight = Sight { dir, real, task, snapshot };
    let change = |(at, first): (usize, &FirstCause)| match &first.cause {
        Cause::Computation(id, old) => Some((at, sight.change(*id, Some(old)))),
        Cause::Uncommitted(id, old) => Some((at, sight.change(*id, old.as_ref()))),
        _ => None,
    };
    explanation.causes.iter().enumerate().filter_map(change).collect()
}

/// What can be seen of a task's history. What is not to be had any more is not told.
struct Sight<'a> {
    dir: &'a Path,
    real: PathBuf,
    task: &'a Task,
    snapshot: Option<Snapshot>,
}

impl Sight<'_> {
    fn change(&self, id: ComputationId, old: Option<&CodeVersion>) -> Change {
        let computation = &self.task.computations[id.index()];
        let mut change = Change::default();
        if let (true, Some(place)) = (computation.dirty, &computation.checked_out) {
            let changed = self.task.changed.iter();
            let changed = changed.filter(|path| self.real.join(path).starts_with(place));
            change.uncommitted = changed.cloned().collect();
        }
        if let (Some(old), Some((trees, inside))) = (old, self.place(computation)) {
            let log = |range| trees.log(&inside, range, COMMITS).ok().flatten();
            change.came = log([&old.commit, &computation.commit]);
            change.went = log([&computation.commit, &old.commit]);
            change.files = trees.diff([&old.tree, &computation.tree]).ok().flatten();
        }
        change
    }

    /// The repository that holds a computation, and where the computation is in that.
    fn place(&self, computation: &Computation) -> Option<(Trees, PathBuf)> {
        // What is checked out may be in a repository of which the task's knows nothing.
        if let Some(real) = &computation.checked_out {
            let top = git::top(real)?;
            return Some((Trees::new(real), real.strip_prefix(&top).ok()?.to_owned()));
        }
        let path = Path::new(LIBRARY).join(computation.name.as_str());
        let spot = self.snapshot.as_ref()?.find(&path).ok()?;
        Some((Trees::new(self.dir), spot.inside()))
    }
}
