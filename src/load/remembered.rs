//! Tasks that were loaded before: one whose files all look as they did is not read again.
//!
//! Kept in the user's cache, and only of large workflows. What is remembered is a load that found
//! nothing to tell: then the files are what the commit records, whatever Git's configuration says.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::{Loaded, OWN};
use crate::cache::Cache;
use crate::digest::ObjectId;
use crate::footprint::Footprint;
use crate::git::{self, Standing};
use crate::workflow::{LIBRARY, Task};

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
    /// Of the task's own files, and of its computations.
    footprints: [Footprint; 2],
}

/// What is remembered of a task.
pub(super) enum Memory {
    /// What loading it would give.
    Holds(Loaded),
    /// That it was large before it changed.
    Changed,
    /// Nothing.
    None,
}

/// Recalls what loading the task at this real path would give, as it is at a commit or, without one,
/// as it is checked out.
pub(super) fn recall(cache: &Cache, task: &Path, commit: Option<&ObjectId>) -> Memory {
    match cache.recall::<(Cause, Task)>(TASKS, &key(task, commit)) {
        Some((cause, task)) if cause.holds() => {
            Memory::Holds(Loaded { task, warnings: Vec::new() })
        }
        Some(_) => Memory::Changed,
        None => Memory::None,
    }
}

/// What the task's own files look like, if nothing of that was changed after that time.
///
/// It may be taken while the task is read: who changes a file then makes it too young, or lets it
/// look different the next time.
pub(super) fn own(task: &Path, began: SystemTime) -> Option<Footprint> {
    Footprint::take(OWN.map(|name| task.join(name)).into_iter(), began)
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
        own: Footprint,
    ) -> Option<Self> {
        let library = task.join(LIBRARY);
        let computations = loaded.task.computations.iter();
        let places = computations.map(|it| library.join(it.name.as_str()));
        let footprints = [own, Footprint::take(places, began)?];
        let held = |top: &PathBuf| repositories.iter().any(|it| it.top() == top);
        let settled = repositories.iter().all(|it| it.settled(began));
        if !settled || !footprints.iter().flat_map(Footprint::repositories).all(held) {
            return None;
        }
        let places = footprints.iter().flat_map(Footprint::places);
        let places = places.map(PathBuf::as_path).chain([task]);
        let tops = places.map(|place| (place.to_owned(), git::top(place))).collect();
        Some(Self { tops, repositories, footprints })
    }

    fn holds(&self) -> bool {
        self.tops.iter().all(|(place, top)| git::top(place) == *top)
            && self.repositories.iter().all(Standing::holds)
            && self.footprints.iter().all(Footprint::holds)
    }
}

/// What a task is known by in the cache.
fn key<'a>(task: &'a Path, commit: Option<&'a ObjectId>) -> [&'a [u8]; 2] {
    [task.as_os_str().as_bytes(), commit.map_or("", ObjectId::full).as_bytes()]
}
