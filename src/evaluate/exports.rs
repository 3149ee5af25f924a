//! Where computations run from: their directory as it is checked out, or their tree, exported once.

use std::collections::HashSet;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use super::CallError;
use crate::digest::ObjectId;
use crate::git::{TreeFileKind, Trees};
use crate::storage::{NewTree, Storage, StorageError};
use crate::workflow::Computation;

/// The trees of computations, in the storage. Each is looked at once, and made if it is not there
/// or is not what its name says.
#[derive(Debug)]
pub struct Exports<'a> {
    storage: &'a Storage,
    trees: &'a Trees,
    /// What was looked at.
    right: Mutex<HashSet<ObjectId>>,
}

impl<'a> Exports<'a> {
    /// Takes trees from the repository of a task.
    pub fn new(storage: &'a Storage, trees: &'a Trees) -> Self {
        Self { storage, trees, right: Mutex::default() }
    }

    /// Returns the directory that a computation runs from: where it is isolated, one that holds
    /// nothing but what its commit records.
    pub(super) fn directory(
        &self,
        computation: &Computation,
        isolated: bool,
    ) -> Result<PathBuf, CallError> {
        match &computation.checked_out {
            Some(directory) if computation.dirty || !isolated => return Ok(directory.clone()),
            _ => {}
        }
        let tree = &computation.tree;
        let mut right = self.right.lock().unwrap_or_else(PoisonError::into_inner);
        let directory = self.storage.tree(tree);
        if !right.contains(tree) {
            self.storage.announce([self.storage.tree_name(tree)]);
            // What is checked out may be in a repository of which the task's knows nothing.
            let own = computation.checked_out.as_deref().map(Trees::new);
            let trees = own.as_ref().unwrap_or(self.trees);
            if directory.is_dir() && !trees.are_in(&directory, tree).map_err(CallError::Tree)? {
                self.storage.set_tree_aside(tree)?;
            }
            if !directory.is_dir() {
                self.export(trees, tree)?;
            }
            right.insert(tree.clone());
        }
        Ok(directory)
    }

    fn export(&self, trees: &Trees, tree: &ObjectId) -> Result<(), CallError> {
        let new = self.storage.new_tree()?;
        let mut failed = None;
        let filled = trees.files(tree, &mut |file| {
            write(&new, &file.path, file.kind).map_err(|error| {
                failed = Some(error);
                io::ErrorKind::Other.into()
            })
        });
        if let Some(error) = failed {
            return Err(error.into());
        }
        filled.map_err(CallError::Tree)?;
        Ok(new.publish(tree)?)
    }
}

fn write(
    new: &NewTree<'_>,
    path: &std::path::Path,
    kind: TreeFileKind,
) -> Result<(), StorageError> {
    match kind {
        TreeFileKind::Plain(contents) => new.file(path, &contents, false),
        TreeFileKind::Executable(contents) => new.file(path, &contents, true),
        TreeFileKind::Link(target) => new.link(path, &target),
    }
}
