//! Exports: directories in the storage with the files of computations' trees, from which they run.
//! The work tree is not used, since it may change at any time.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::CallError;
use super::tree::{ValueError, each_file, write};
use crate::digest::ObjectId;
use crate::executor::VerifiedPath;
use crate::git::Trees;
use crate::storage::{FoundTree, NewTree, Storage, StorageError};
use crate::task::name::ComputationName;
use crate::task::workflow::Computation;

/// The number of attempts to use a directory that other runs change.
pub(super) const MAX_TRIES: usize = 10;

/// The trees of computations, in the storage.
///
/// An isolated computation cannot change its directory, which is in `trees/` and shared by all
/// runs. Each run hashes it once, and replaces it if it is missing or wrong. A computation that is
/// not isolated may write to its directory, as interpreters do that store compiled files. It gets a
/// directory of this run, named by the computation, which no other run uses.
#[derive(Debug)]
pub struct Exports<'a> {
    storage: &'a Storage,
    trees: &'a Trees,
    /// The directories that were made or hashed: of each tree, and of each computation that is not
    /// isolated.
    right: Mutex<HashMap<(ObjectId, Option<ComputationName>), VerifiedPath>>,
}

impl<'a> Exports<'a> {
    /// Takes trees from the repository of a task.
    pub fn new(storage: &'a Storage, trees: &'a Trees) -> Self {
        Self { storage, trees, right: Default::default() }
    }

    /// Returns the directory that a computation runs from. It holds nothing but what its commit
    /// records or, if it is dirty, what the work tree had when the task was loaded.
    pub(super) fn directory(
        &self,
        computation: &Computation,
        isolated: bool,
    ) -> Result<VerifiedPath, CallError> {
        let Computation { name, tree, .. } = computation;
        let key = (tree.clone(), (!isolated).then(|| name.clone()));
        let mut right = self.right.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(directory) = right.get(&key) {
            return Ok(directory.clone());
        }
        // A checked-out directory may be in a repository of which the task's knows nothing.
        let own = computation.checked_out.as_deref().map(|directory| match computation.dirty {
            true => Trees::as_it_stands(directory, tree),
            false => Trees::new(directory),
        });
        let trees = own.as_ref().unwrap_or(self.trees);
        let directory = match isolated {
            true => self.shared(trees, tree)?,
            false => {
                let new = self.storage.trees().create_private(name.as_str())?;
                fill(&new, trees, tree)?;
                VerifiedPath { path: new.path().to_owned(), id: new.id()? }
            }
        };
        right.insert(key, directory.clone());
        Ok(directory)
    }

    /// Forgets a directory that is not there any more, so that the next look finds another one. Returns
    /// true if another run may have put one in its place.
    pub(super) fn forget(&self, tree: &ObjectId, directory: &VerifiedPath) -> bool {
        let mut right = self.right.lock().unwrap_or_else(PoisonError::into_inner);
        right.retain(|_, it| it != directory);
        directory.path == self.storage.trees().path(tree)
            && matches!(self.storage.trees().find(tree), Ok(Some(FoundTree::Directory(_))))
    }

    /// The directory of a tree that is shared by all runs.
    fn shared(&self, trees: &Trees, tree: &ObjectId) -> Result<VerifiedPath, CallError> {
        let path = self.storage.trees().path(tree);
        self.storage.announce_roots([self.storage.trees().name(tree)]);
        for _ in 0..MAX_TRIES {
            let found = self.storage.trees().find(tree)?;
            if let Some(FoundTree::Directory(open)) = &found
                && trees.are_in(&open.path(), tree).map_err(CallError::Tree)?
            {
                return Ok(VerifiedPath { path, id: open.id });
            }
            let new = self.storage.trees().create()?;
            fill(&new, trees, tree)?;
            let id = new.id()?;
            let first = if found.is_some() { new.replace(tree)? } else { new.publish(tree)? };
            // The directory of a run that was faster is hashed like any other.
            if first {
                return Ok(VerifiedPath { path, id });
            }
        }
        Err(StorageError::Unsteady(path).into())
    }
}

/// Fills a new directory with the files of a tree.
fn fill(new: &NewTree<'_>, trees: &Trees, tree: &ObjectId) -> Result<(), CallError> {
    each_file(trees, tree, &|file| write(new, file)).map_err(|error| match error {
        ValueError::Storage(error) => error.into(),
        error => CallError::Tree(error.into()),
    })
}
