//! Exports: directories in the storage with the files of computations' trees, from which they run.
//! The work tree is not used, since it may change at any time.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::CallError;
use super::tree::{ValueError, each_file, write};
use crate::digest::{Blake3, ObjectId};
use crate::executor::VerifiedPath;
use crate::git::{Trees, files_in, tree_in};
use crate::manifest::Scan;
use crate::storage::{FoundTree, NewTree, OpenTree, Storage, StorageError};
use crate::task::name::ComputationName;
use crate::task::workflow::Computation;

/// The number of attempts to use a directory that other runs change.
pub(super) const MAX_TRIES: usize = 10;

/// The trees of computations, in the storage.
///
/// An isolated computation cannot change its directory, which is in `trees/` and shared by all
/// runs. Each run hashes it, and replaces it if it is missing or wrong. A computation that is
/// not isolated may write to its directory, as interpreters do that store compiled files. It gets a
/// directory of this run, named by the computation, which no other run uses, and no other execution at the same time.
///
/// Before each execution, the stats of all files are compared with those of the last look at their contents. If they differ,
/// or cannot tell, the files are hashed, and exported again if they are wrong.
#[derive(Debug)]
pub struct Exports<'a> {
    storage: &'a Storage,
    /// The repository; `None` for a worker, which has only what runs have exported.
    trees: Option<&'a Trees>,
    /// The directories that were made or hashed: one of each tree, and those of each computation that is not
    /// isolated.
    right: Mutex<HashMap<ExportKey, Vec<Export>>>,
    /// The Git tree that the shared directory of each tree has as it stands. It differs if the tree has submodules, which
    /// are directories like others there.
    standing: Mutex<HashMap<ObjectId, ObjectId>>,
}

/// A tree, and the computation if it is not isolated.
type ExportKey = (ObjectId, Option<ComputationName>);

/// A directory that was made or hashed.
#[derive(Debug)]
struct Export {
    /// Others have it as long as something is executed from it.
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
        Self { storage, trees: None, right: Default::default(), standing: Default::default() }
    }

    /// Returns the directory that a computation runs from. It holds nothing but what its commit
    /// records or, if it is dirty, what the work tree had when the task was loaded.
    ///
    /// The caller keeps it until nothing is executed from it any more.
    pub(super) fn directory(
        &self,
        computation: &Computation,
        isolated: bool,
    ) -> Result<Arc<VerifiedPath>, CallError> {
        let Computation { name, tree, .. } = computation;
        let key = (tree.clone(), (!isolated).then(|| name.clone()));
        let mut right = self.right.lock().unwrap_or_else(PoisonError::into_inner);
        let exports = right.entry(key).or_default();
        while let Some(at) =
            exports.iter().position(|it| isolated || Arc::strong_count(&it.directory) == 1)
        {
            if self.is_unchanged(&mut exports[at], computation, isolated)? {
                return Ok(exports[at].directory.clone());
            }
            let changed = exports.swap_remove(at);
            if !isolated {
                self.storage.trees().remove_private(&changed.directory.path)?;
            }
        }
        let directory = Arc::new(match isolated {
            true => self.shared(computation)?,
            false => self.private(computation)?,
        });
        exports.push(Export { directory: directory.clone(), stamp: None });
        Ok(directory)
    }

    /// Whether a directory still has the files of a computation.
    fn is_unchanged(
        &self,
        export: &mut Export,
        computation: &Computation,
        isolated: bool,
    ) -> Result<bool, CallError> {
        let VerifiedPath { path, id } = &*export.directory;
        let open = match self.storage.trees().open(path) {
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

    /// Takes the tree of a computation from a repository or, if that does not have it, what a run has exported.
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
    ///
    /// # Errors
    ///
    /// Fails if neither has the tree.
    pub fn exported(&self, computation: &Computation) -> Result<PathBuf, CallError> {
        self.directory(computation, true).map(|directory| directory.path.clone())
    }

    /// Forgets a directory that is not there any more, so that the next look finds another one. Returns
    /// true if another run may have put one in its place.
    pub(super) fn forget(&self, tree: &ObjectId, directory: &VerifiedPath) -> bool {
        let mut right = self.right.lock().unwrap_or_else(PoisonError::into_inner);
        right.values_mut().for_each(|it| it.retain(|export| *export.directory != *directory));
        directory.path == self.storage.trees().path(tree)
            && matches!(self.storage.trees().find(tree), Ok(Some(FoundTree::Directory(_))))
    }

    /// Lets nothing more be executed from a directory that only this run uses. It stays until the end of the run.
    pub(super) fn abandon(&self, directory: &VerifiedPath) {
        let mut right = self.right.lock().unwrap_or_else(PoisonError::into_inner);
        let private = right.iter_mut().filter(|((_, computation), _)| computation.is_some());
        private.for_each(|(_, it)| it.retain(|export| *export.directory != *directory));
    }

    /// Exports a computation for workers. Returns the Git tree that its shared directory has as it stands.
    pub(super) fn for_workers(&self, computation: &Computation) -> Result<ObjectId, CallError> {
        let directory = self.directory(computation, true)?;
        if let Some(standing) = self.standing().get(&computation.tree) {
            return Ok(standing.clone());
        }
        let found = tree_in(&directory.path, &computation.tree).map_err(CallError::Tree)?;
        let standing = found.unwrap_or_else(|| computation.tree.clone());
        self.expect(&computation.tree, standing.clone());
        Ok(standing)
    }

    /// Notes which Git tree the shared directory of a tree has as it stands, if a run has made it.
    pub(super) fn expect(&self, tree: &ObjectId, standing: ObjectId) {
        self.standing().insert(tree.clone(), standing);
    }

    fn standing(&self) -> MutexGuard<'_, HashMap<ObjectId, ObjectId>> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A directory that only this run uses.
    fn private(&self, computation: &Computation) -> Result<VerifiedPath, CallError> {
        let Computation { name, tree, .. } = computation;
        let exported = self.trees.is_none().then(|| self.shared(computation)).transpose()?;
        let new = self.storage.trees().create_private(name.as_str())?;
        match exported {
            None => self.with_trees(computation, |trees| fill(&new, trees, tree))?,
            Some(exported) => {
                let files = files_in(&exported.path).map_err(CallError::Tree)?;
                files.into_iter().try_for_each(|file| write(&new, file))?;
            }
        }
        Ok(VerifiedPath { path: new.path().to_owned(), id: new.id()? })
    }

    /// The directory of a tree that is shared by all runs.
    fn shared(&self, computation: &Computation) -> Result<VerifiedPath, CallError> {
        let tree = &computation.tree;
        let path = self.storage.trees().path(tree);
        self.storage.announce_roots([self.storage.trees().name(tree)]);
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
            self.with_trees(computation, |trees| fill(&new, trees, tree))?;
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
                trees.are_in(&open.path(), tree).map_err(CallError::Tree)
            });
        }
        let found = tree_in(&open.path(), tree).map_err(CallError::Tree)?;
        Ok(found.as_ref() == Some(self.standing().get(tree).unwrap_or(tree)))
    }

    /// Does something with the repository that has a computation.
    fn with_trees<T>(
        &self,
        computation: &Computation,
        act: impl FnOnce(&Trees) -> Result<T, CallError>,
    ) -> Result<T, CallError> {
        // A checked-out directory may be in a repository of which the task's knows nothing.
        let own = computation.checked_out.as_deref().map(|directory| match computation.dirty {
            true => Trees::as_it_stands(directory, &computation.tree),
            false => Trees::new(directory),
        });
        match own.as_ref().or(self.trees) {
            Some(trees) => act(trees),
            None => Err(CallError::Tree("it is in no repository here".into())),
        }
    }
}

/// Fills a new directory with the files of a tree.
fn fill(new: &NewTree<'_>, trees: &Trees, tree: &ObjectId) -> Result<(), CallError> {
    each_file(trees, tree, &|file| write(new, file)).map_err(|error| match error {
        ValueError::Storage(error) => error.into(),
        error => CallError::Tree(error.into()),
    })
}
