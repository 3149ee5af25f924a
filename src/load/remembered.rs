//! Tasks that were loaded before: one whose files all look as they did is not read again.
//!
//! Kept in the user's cache, and only of large workflows. What is remembered is a load that found
//! nothing to tell: then the files are what the commit records, whatever Git's configuration says.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::library::DIRECTORY;
use super::{Loaded, OWN};
use crate::cache::Cache;
use crate::digest::ObjectId;
use crate::footprint::Footprint;
use crate::git::{self, Standing};
use crate::workflow::Task;

/// Fewer nodes are read as fast as they are remembered.
const WORTH: usize = 256;

/// How many tasks are remembered.
const MOST: usize = 32;

/// Where they are in the cache.
const TASKS: &str = "tasks";

/// What tells that a load would give the same: everything that it depends on. Of what a commit holds,
/// that is nothing.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Cause {
    /// The task and the places of its files, and in which work tree each is.
    tops: Vec<(PathBuf, Option<PathBuf>)>,
    repositories: Vec<Standing>,
    footprint: Footprint,
}

/// Returns what loading the task at this real path would give, as it is at a commit or, without one,
/// as it is checked out; if that is known.
pub(super) fn recall(cache: &Cache, task: &Path, commit: Option<&ObjectId>) -> Option<Loaded> {
    let (cause, task): (Cause, Task) = cache.recall(TASKS, &key(task, commit))?;
    cause.holds().then(|| Loaded { task, warnings: Vec::new() })
}

/// Remembers what loading the task at this real path gave, if that is worth it.
pub(super) fn keep(
    cache: &Cache,
    task: &Path,
    commit: Option<&ObjectId>,
    loaded: &Loaded,
    cause: impl FnOnce() -> Option<Cause>,
) {
    let nodes = loaded.task.workflow.nodes().len();
    if nodes < WORTH || !loaded.task.changed.is_empty() || !loaded.warnings.is_empty() {
        return;
    }
    if let Some(cause) = cause() {
        cache.remember(TASKS, &key(task, commit), &(cause, &loaded.task), MOST);
    }
}

impl Cause {
    /// The task that began to be loaded from this real path at that time, and these are the
    /// repositories that hold it. `None` if changes since may not show.
    pub(super) fn of_checkout(
        task: &Path,
        began: SystemTime,
        repositories: Vec<Standing>,
        loaded: &Loaded,
    ) -> Option<Self> {
        let library = task.join(DIRECTORY);
        let computations = loaded.task.computations.iter();
        let places = OWN.map(|name| task.join(name)).into_iter();
        let places = places.chain(computations.map(|it| library.join(it.name.as_str())));
        let footprint = Footprint::take(places, began)?;
        let held = |top: &PathBuf| repositories.iter().any(|it| it.top() == top);
        let settled = repositories.iter().all(|it| it.settled(began));
        if !settled || !footprint.repositories().iter().all(held) {
            return None;
        }
        let places = footprint.places().iter().map(PathBuf::as_path).chain([task]);
        let tops = places.map(|place| (place.to_owned(), git::top(place))).collect();
        Some(Self { tops, repositories, footprint })
    }

    fn holds(&self) -> bool {
        self.tops.iter().all(|(place, top)| git::top(place) == *top)
            && self.repositories.iter().all(Standing::holds)
            && self.footprint.holds()
    }
}

/// What a task is known by in the cache.
fn key<'a>(task: &'a Path, commit: Option<&'a ObjectId>) -> [&'a [u8]; 2] {
    [task.as_os_str().as_bytes(), commit.map_or("", ObjectId::full).as_bytes()]
}
