//! Exports: directories in the storage with the files of computations' trees, from which they run.
//! The work tree is not used, since it may change at any time.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::CallError;
use super::ValueError;
use super::value_maker::{FileTeller, each_file, write};
use ce_executor::VerifiedPath;
use ce_files::manifest::Scan;
use ce_git::{Trees, files_in, is_in, tree_in};
use ce_model::digest::{Blake3, ObjectId};
use ce_model::name::ComputationName;
use ce_model::task::Computation;
use ce_storage::{FoundTree, NewTree, OpenTree, Storage, StorageError};

/// The number of attempts to use a directory that other runs change.
pub(super) const MAX_TRIES: usize = 10;

/// The trees of computations, in the storage.
///
/// An isolated computation cannot change its directory, which is in `trees/` and shared by all runs. Each run hashes
/// it, and replaces it if it is missing or wrong. A computation that is not isolated may write to its directory, as
/// interpreters do that store compiled files. It gets a directory that is named by the computation and belongs to this
/// run. Executions use it one at a time. If others may write the storage, no other user can reach it.
///
/// Before each execution, the stats of all files are compared with their stats when their contents were last read. If
/// they differ, or are inconclusive, the files are hashed, and exported again if they are wrong.
#[derive(Debug)]
pub struct Exports<'a> {
    storage: &'a Storage,
    /// The repository; `None` for a worker, which has only the exports of runs.
    trees: Option<&'a Trees>,
    /// The shared directory of each tree, if it was made or hashed. Each has its own lock, for as long as it is made or checked.
    shared: Mutex<HashMap<ObjectId, Arc<Mutex<Option<Export>>>>>,
    /// The directories of computations that are not isolated. A directory that is being checked is not among them.
    private: Mutex<HashMap<PrivateKey, Vec<Export>>>,
    /// The Git tree that the shared directory of each tree has as it stands. It differs if the tree has submodules, which
    /// are directories like others there.
    standing: Mutex<HashMap<ObjectId, ObjectId>>,
}

/// A tree, and a computation with it.
type PrivateKey = (ObjectId, ComputationName);

/// A directory that was made or hashed.
#[derive(Debug)]
struct Export {
    /// Other calls may not have it as long as something is executed from it.
    directory: Arc<VerifiedPath>,
    /// The stamp of its files when they were hashed; `None` if they may have changed since and still have it.
    stamp: Option<Blake3>,
}

impl<'a> Exports<'a> {
    /// Takes trees from the repository of a task.
    pub fn new(storage: &'a Storage, trees: &'a Trees) -> Self {
        Self { trees: Some(trees), ..Self::of_runs(storage) }
    }

    /// Takes trees that runs have exported into the storage.
    pub fn of_runs(storage: &'a Storage) -> Self {
        Self {
            storage,
            trees: None,
            shared: Mutex::default(),
            private: Mutex::default(),
            standing: Mutex::default(),
        }
    }

    /// The directory of the task; `None` for a worker.
    pub(super) fn task(&self) -> Option<&'a Path> {
        self.trees.map(Trees::dir)
    }

    /// Returns the directory that a computation runs from. It holds exactly the files of its commit or, if it is dirty,
    /// of the work tree when the task was loaded.
    ///
    /// The caller keeps it until nothing is executed from it any more.
    pub(super) fn directory(
        &self,
        computation: &Computation,
        isolated: bool,
    ) -> Result<Arc<VerifiedPath>, CallError> {
        if isolated { self.shared_directory(computation) } else { self.own_directory(computation) }
    }

    /// The directory of an isolated computation, which all computations with its tree share.
    fn shared_directory(&self, computation: &Computation) -> Result<Arc<VerifiedPath>, CallError> {
        let shared = lock(&self.shared).entry(computation.tree.clone()).or_default().clone();
        let mut shared = lock(&shared);
        if let Some(mut export) = shared.take()
            && self.is_unchanged(&mut export, computation, true)?
        {
            return Ok(shared.insert(export).directory.clone());
        }
        let directory = Arc::new(self.shared(computation)?);
        *shared = Some(Export { directory: directory.clone(), stamp: None });
        Ok(directory)
    }

    /// The directory of a computation that is not isolated: one from which nothing else is executed now.
    fn own_directory(&self, computation: &Computation) -> Result<Arc<VerifiedPath>, CallError> {
        let key = (computation.tree.clone(), computation.name.clone());
        let export = loop {
            let (mut export, is_new) = match self.take_unused(&key) {
                Some(export) => (export, false),
                None => {
                    let directory = Arc::new(self.private(computation)?);
                    (Export { directory, stamp: None }, true)
                }
            };
            // A new one is hashed, too: the copied files may have been changed just then.
            if self.is_unchanged(&mut export, computation, false)? {
                break export;
            }
            self.storage.trees().remove_private(&export.directory.path)?;
            if is_new {
                return Err(StorageError::Changed(export.directory.path.clone()).into());
            }
        };
        let directory = export.directory.clone();
        lock(&self.private).entry(key).or_default().push(export);
        Ok(directory)
    }

    /// Takes a directory of a computation from which nothing is executed now, if there is one.
    fn take_unused(&self, key: &PrivateKey) -> Option<Export> {
        let mut private = lock(&self.private);
        let exports = private.get_mut(key)?;
        let at = exports.iter().position(|it| Arc::strong_count(&it.directory) == 1)?;
        Some(exports.swap_remove(at))
    }

    /// Whether a directory still has the files of a computation.
    fn is_unchanged(
        &self,
        export: &mut Export,
        computation: &Computation,
        isolated: bool,
    ) -> Result<bool, CallError> {
        let VerifiedPath { path, id } = &*export.directory;
        let open = match self.storage.trees().reopen(path) {
            Ok(Some(open)) if open.id == *id => open,
            // The executor finds and reports that a shared one was replaced.
            _ => return Ok(isolated),
        };
        // The files of a tree that cannot be a value are hashed each time.
        let scan = Scan::at(&open.path(), &AtomicBool::new(false)).ok();
        let stamp = scan.as_ref().map(Scan::exact_stamp);
        if export.stamp.is_some() && export.stamp == stamp {
            return Ok(true);
        }
        export.stamp = stamp.filter(|_| scan.is_some_and(|scan| !scan.is_racy()));
        self.is_right(computation, &open)
    }

    /// Takes the tree of a computation from a repository or, if that does not have it, from the exports of runs.
    pub fn of_any(storage: &'a Storage, trees: &'a Trees, computation: &Computation) -> Self {
        let own = Self::new(storage, trees);
        if own.directory(computation, true).is_ok() {
            return own;
        }
        let exported = Self::of_runs(storage);
        exported.expect(&computation.tree, computation.tree.clone());
        exported
    }

    /// Returns the directory that an isolated computation runs from.
    pub fn exported(&self, computation: &Computation) -> Result<PathBuf, CallError> {
        self.directory(computation, true).map(|directory| directory.path.clone())
    }

    /// Forgets a directory that is not there any more. Returns true if the next look may find another one, or the tree may be
    /// exported again.
    pub(super) fn forget(&self, tree: &ObjectId, directory: &VerifiedPath) -> bool {
        let is_it = |export: &Export| *export.directory == *directory;
        lock(&self.private).values_mut().for_each(|it| it.retain(|export| !is_it(export)));
        let shared = lock(&self.shared).get(tree).cloned();
        if let Some(shared) = shared {
            lock(&shared).take_if(|export| is_it(export));
        }
        directory.path == self.storage.trees().path(tree)
            && match self.storage.trees().find(tree) {
                Ok(Some(FoundTree::Directory(_))) => true,
                Ok(None) => self.trees.is_some(),
                Ok(Some(FoundTree::Other)) | Err(_) => false,
            }
    }

    /// Lets nothing more be executed from a directory that only this run uses. It stays until the end of the run.
    ///
    /// The same holds after each execution that leaves a process, also one that was there before: a call may have handed
    /// the directory to it, as to a server that compiles for all.
    pub(super) fn abandon(&self, directory: &VerifiedPath) {
        let mut private = lock(&self.private);
        private.values_mut().for_each(|it| it.retain(|export| *export.directory != *directory));
    }

    /// Exports a computation for workers. Returns the Git tree that its shared directory has as it stands.
    pub(super) fn for_workers(&self, computation: &Computation) -> Result<ObjectId, CallError> {
        let directory = self.directory(computation, true)?;
        if let Some(standing) = lock(&self.standing).get(&computation.tree) {
            return Ok(standing.clone());
        }
        let found = tree_in(&directory.path, &computation.tree).map_err(CallError::Tree)?;
        let standing = found.unwrap_or_else(|| computation.tree.clone());
        self.expect(&computation.tree, standing.clone());
        Ok(standing)
    }

    /// Notes which Git tree the shared directory of a tree has as it stands, if a run has made it.
    pub(super) fn expect(&self, tree: &ObjectId, standing: ObjectId) {
        lock(&self.standing).insert(tree.clone(), standing);
    }

    /// A directory that only this run uses.
    fn private(&self, computation: &Computation) -> Result<VerifiedPath, CallError> {
        let exported = self.trees.is_none().then(|| self.shared(computation)).transpose()?;
        let new = self.storage.trees().create_private(computation.name.as_str())?;
        match exported {
            None => self.with_trees(computation, |trees| fill(&new, trees, computation))?,
            Some(exported) => {
                let files = files_in(&exported.path).map_err(CallError::Tree)?;
                files.into_iter().try_for_each(|file| write(&new, file, &NEVER))?;
            }
        }
        Ok(VerifiedPath { path: new.path().to_owned(), id: new.id()? })
    }

    /// The directory of a tree that is shared by all runs.
    fn shared(&self, computation: &Computation) -> Result<VerifiedPath, CallError> {
        let tree = &computation.tree;
        let path = self.storage.trees().path(tree);
        self.storage.gc_roots().announce([self.storage.trees().name(tree)])?;
        for _ in 0..MAX_TRIES {
            let found = self.storage.trees().find(tree)?;
            if let Some(FoundTree::Directory(open)) = &found
                && self.is_right(computation, open)?
            {
                return Ok(VerifiedPath { path, id: open.id });
            }
            if self.trees.is_none() {
                return Err(StorageError::Changed(path).into());
            }
            let new = self.storage.trees().create()?;
            self.with_trees(computation, |trees| fill(&new, trees, computation))?;
            let id = new.id()?;
            let first = if found.is_some() { new.replace(tree)? } else { new.publish(tree)? };
            // The directory of a run that was faster is hashed like any other.
            if first {
                return Ok(VerifiedPath { path, id });
            }
        }
        Err(StorageError::Unsteady(path).into())
    }

    /// Whether a directory has the files of a computation, and nothing else.
    fn is_right(&self, computation: &Computation, open: &OpenTree) -> Result<bool, CallError> {
        let tree = &computation.tree;
        if self.trees.is_some() {
            return self.with_trees(computation, |trees| {
                trees.are_in(&open.path(), computation.into()).map_err(CallError::Tree)
            });
        }
        let standing = lock(&self.standing).get(tree).unwrap_or(tree).clone();
        is_in(&open.path(), &standing).map_err(CallError::Tree)
    }

    /// Does something with the repository that has a computation.
    fn with_trees<T>(
        &self,
        computation: &Computation,
        act: impl FnOnce(&Trees) -> Result<T, CallError>,
    ) -> Result<T, CallError> {
        let own = Trees::checked_out(computation);
        match own.as_ref().or(self.trees) {
            Some(trees) => act(trees),
            None => Err(CallError::Tree("it is in no repository here".into())),
        }
    }
}

/// The files of a computation are small.
static NEVER: AtomicBool = AtomicBool::new(false);

/// Locks a value that is consistent after each change, even if a thread panics.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Fills a new directory with the files of a computation.
fn fill(new: &NewTree<'_>, trees: &Trees, computation: &Computation) -> Result<(), CallError> {
    let files = |tell: &FileTeller<'_>| trees.code_files(computation.into(), tell);
    each_file(files, &|file| write(new, file, &NEVER)).map_err(|error| match error {
        ValueError::Storage(error) => error.into(),
        // The error's own text is advice, too.
        ValueError::Git(source) => CallError::Tree(source),
        error => CallError::Tree(error.into()),
    })
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::process::Command;
    use std::sync::mpsc::channel;
    use std::thread;
    use std::time::Duration;

    use super::*;
    use ce_storage::{Durability, Unrecorded};

    /// The id of the tree without files, which every repository has.
    const EMPTY: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

    /// Makes a repository without objects.
    fn repository(dir: &Path) {
        for room in ["objects", "refs"] {
            fs::create_dir_all(dir.join(".git").join(room)).unwrap();
        }
        fs::write(dir.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    }

    fn computation(name: &str, tree: &str, checked_out: Option<PathBuf>) -> Computation {
        Computation {
            name: name.parse().unwrap(),
            commit: "0".repeat(40).parse().unwrap(),
            tree: tree.parse().unwrap(),
            dirty: false,
            inputs: Vec::new(),
            outputs: Vec::new(),
            access: Default::default(),
            checked_out,
            file: None,
        }
    }

    #[test]
    fn directories_of_different_computations_are_made_at_the_same_time() {
        for isolated in [true, false] {
            let dir = tempfile::tempdir().unwrap();
            let place = |name: &str| dir.path().join(name);
            let storage = Storage::open(&place("storage"), Unrecorded::Adopt, Durability::Unsynced);
            let storage = storage.unwrap();
            repository(&place("own"));
            repository(&place("slow"));
            // Opening this repository waits until its configuration is written.
            let config = place("slow/.git/config");
            assert!(Command::new("mkfifo").arg(&config).status().unwrap().success());
            let trees = Trees::new(&place("own"));
            let exports = Exports::new(&storage, &trees);
            let slow = computation("slow", &"a".repeat(40), Some(place("slow")));
            let fast = computation("fast", EMPTY, None);
            let (sender, ends) = channel();
            thread::scope(|scope| {
                let waiting = scope.spawn(|| {
                    let made = exports.directory(&slow, isolated).map(drop);
                    // Lets the test continue if no thread has read it.
                    drop(File::options().read(true).write(true).open(&config));
                    made
                });
                let writer = File::options().write(true).open(&config).unwrap();
                scope.spawn(|| sender.send(exports.directory(&fast, isolated).map(drop)));
                let made = ends.recv_timeout(Duration::from_secs(60));
                fs::remove_file(&config).unwrap();
                drop(writer);
                assert!(matches!(made, Ok(Ok(()))), "{isolated} {made:?}");
                // It has no objects.
                assert!(waiting.join().unwrap().is_err());
            });
        }
    }
}
