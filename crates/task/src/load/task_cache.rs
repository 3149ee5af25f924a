//! The task cache: a large task is not read again until a file has changed, and files are not read again to find that they have not.
//!
//! Only a load without uncommitted changes and warnings is cached: then the files are as committed,
//! regardless of Git's configuration.

use std::collections::{BTreeSet, HashSet};
use std::fs::{self, DirEntry};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ce_files::cache::{Cache, FileStat, Fingerprint, Lookup, Table};
use ce_git::RepoState;
use ce_model::digest::ObjectId;
use ce_model::task::{LIBRARY, Task, TreeCommit, WORKFLOW_TEXT};
use serde::{Deserialize, Serialize};

use super::computations::{RESOURCES_FILE, name_of_file};
use super::{CHOICES, DEFAULTS, INPUTS, Loaded, WORKFLOW};

/// The least number of nodes of a large task.
const MIN_NODES: usize = 256;

/// The number of tasks in the cache.
const MAX_TASKS: usize = 32;

/// The parts of a task that are its workflow, in one form or the other. It has some of them.
const PARTS: [&str; 6] = [WORKFLOW, INPUTS, WORKFLOW_TEXT, DEFAULTS, CHOICES, RESOURCES_FILE];

/// The dependencies of a task as it is checked out. A task at a commit has none.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Dependencies {
    /// The directories of the task and of its files, and the work tree of each.
    tops: Vec<(PathBuf, Option<PathBuf>)>,
    repositories: Vec<RepoState>,
    /// The parts that the task need not have, and does not.
    absent: Vec<PathBuf>,
    /// The real path of the library, and its stat: a new name there may be a computation.
    library: Option<(PathBuf, FileStat)>,
    /// The fingerprints of the task's workflow, inputs, defaults and resources, and of its computations and
    /// other files.
    fingerprints: [Fingerprint; 2],
}

/// Looks up the task at this real path, as it is at a commit, or as it is checked out.
pub(super) fn look_up(cache: &Cache, task: &Path, commit: Option<&ObjectId>) -> Lookup<Task> {
    match table(cache) {
        Some(table) => table.look_up(&key(task, commit), Dependencies::are_current),
        None => Lookup::Miss,
    }
}

/// Whether reading an entry is faster than reading the task.
pub(super) fn is_large(task: &Task) -> bool {
    task.workflow.nodes().len() >= MIN_NODES
}

/// Inserts the task loaded from this real path, unless it has changes or warnings.
pub(super) fn insert(
    cache: &Cache,
    task: &Path,
    commit: Option<&ObjectId>,
    loaded: &Loaded,
    dependencies: impl FnOnce() -> Option<Dependencies>,
) {
    if loaded.task.changed.is_empty()
        && loaded.warnings.is_empty()
        && let Some((table, dependencies)) = table(cache).zip(dependencies())
    {
        table.insert(&key(task, commit), &dependencies, &loaded.task);
    }
}

/// Takes the fingerprint of the task's own files; `None` if any is racy at that time.
///
/// It may be taken during the load: a file that is changed meanwhile is racy, or has another stat
/// at the next look-up.
pub(super) fn own_fingerprint(task: &Path, began: SystemTime) -> Option<Fingerprint> {
    let parts = PARTS.map(|name| task.join(name)).into_iter();
    Fingerprint::take(parts.filter(|part| exists(part)), began)
}

fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

impl Dependencies {
    /// Returns the dependencies of a task that was loaded from this real path, beginning at this
    /// time, and is in these repositories. `None` if a change since then may go unnoticed.
    pub(super) fn of_checkout(
        task: &Path,
        began: SystemTime,
        repositories: Vec<RepoState>,
        loaded: &Loaded,
        own: Fingerprint,
    ) -> Option<Self> {
        if loaded.task.trees.iter().any(|tree| tree.commit != TreeCommit::OfRevision) {
            // A change of any file in it would go unnoticed.
            return None;
        }
        let library = match task.join(LIBRARY).canonicalize() {
            Ok(real) => Some(FileStat::read(&real).ok().map(|stat| (real, stat))?),
            Err(_) => None,
        };
        if library.as_ref().is_some_and(|(_, stat)| stat.is_racy(began)) {
            return None;
        }
        let computations = loaded.task.computations.iter().map(|it| task.join(it.place()));
        let same_names = files_of(&loaded.task, &task.join(LIBRARY));
        // Each evaluation looks up the others in their current state.
        let found = loaded.task.files.iter().filter(|it| !it.path.is_open());
        let files = found.map(|it| task.join(it.path.as_str()));
        let places = computations.chain(same_names).chain(files);
        let fingerprints = [own, Fingerprint::take(places, began)?];
        if repositories.iter().any(|it| it.is_racy(began))
            || !fingerprints
                .iter()
                .flat_map(Fingerprint::repositories)
                .all(|top| repositories.iter().any(|it| it.top() == top))
        {
            return None;
        }
        let directories = fingerprints.iter().flat_map(Fingerprint::directories);
        let directories: BTreeSet<&Path> =
            directories.map(PathBuf::as_path).chain([task]).collect();
        let tops = directories.into_iter().map(|it| (it.to_owned(), ce_git::top(it))).collect();
        let optional = PARTS.into_iter().chain([LIBRARY]).map(|name| task.join(name));
        let absent = optional.filter(|part| !exists(part)).collect();
        Some(Self { tops, repositories, absent, library, fingerprints })
    }

    fn are_current(&self) -> bool {
        self.tops.iter().all(|(place, top)| ce_git::top(place) == *top)
            && self.repositories.iter().all(RepoState::is_current)
            && !self.absent.iter().any(|part| exists(part))
            && self
                .library
                .iter()
                .all(|(real, stat)| FileStat::read(real).is_ok_and(|it| it == *stat))
            && self.fingerprints.iter().all(Fingerprint::is_current)
    }
}

/// The files in the library that may be computations of the task, or become so.
fn files_of(task: &Task, library: &Path) -> Vec<PathBuf> {
    let names: HashSet<&str> = task.computations.iter().map(|it| it.name.as_str()).collect();
    let entries = fs::read_dir(library).into_iter().flatten().flatten();
    let is_of = |entry: &DirEntry| {
        let name = entry.file_name();
        name.to_str().and_then(name_of_file).is_some_and(|name| names.contains(name))
    };
    entries.filter(is_of).map(|entry| entry.path()).collect()
}

fn table(cache: &Cache) -> Option<Table> {
    Table::open(cache, "tasks", MAX_TASKS).of_this_program()
}

fn key<'a>(task: &'a Path, commit: Option<&'a ObjectId>) -> [&'a [u8]; 2] {
    [task.as_os_str().as_bytes(), commit.map_or("", ObjectId::full).as_bytes()]
}
