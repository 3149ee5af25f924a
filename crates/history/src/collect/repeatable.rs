//! Calls that can be executed again with the same outputs, byte for byte.

use std::collections::HashMap;
use std::path::Path;

use super::repositories::Presence;
use ce_git::{ReachableSet, Trees};
use ce_model::digest::ObjectId;
use ce_model::task::NONDETERMINISTIC;
use ce_storage::records::CallRecord;
use ce_storage::{KnownRepositories, Storage, StorageError};

/// What the recorded repositories say of computations. One that cannot be read says nothing.
#[derive(Default)]
pub(super) struct RepeatableCalls {
    reach: ReachableSet,
    repositories: Vec<Trees>,
    /// Whether a tree is known, and does not say that its outputs differ each time.
    known: HashMap<ObjectId, bool>,
}

impl RepeatableCalls {
    /// Reads the recorded repositories that are here.
    pub(super) fn new(storage: &Storage) -> Result<Self, StorageError> {
        let mut calls = Self::default();
        for record in KnownRepositories::new(storage).all()?.into_iter().filter_map(|it| it.record)
        {
            let path = Path::new(&record.path);
            if Presence::of(&record) == Presence::Here && calls.reach.add(path).is_ok() {
                calls.repositories.push(Trees::new(path));
            }
        }
        Ok(calls)
    }

    /// Whether a call can be executed again, and makes the same then: a repository reaches its commit, its computation is not
    /// declared as nondeterministic, and it could read nothing but its inputs.
    pub(super) fn has(&mut self, call: &CallRecord) -> bool {
        let is_pure = call.origin.reads_only_inputs() && !call.dirty;
        is_pure && self.reach.has(&call.commit) && self.is_deterministic(&call.tree)
    }

    fn is_deterministic(&mut self, tree: &ObjectId) -> bool {
        if let Some(known) = self.known.get(tree) {
            return *known;
        }
        let mut says =
            self.repositories.iter().filter_map(|it| it.has_file(tree, NONDETERMINISTIC).ok());
        let is_so = says.next() == Some(false);
        self.known.insert(tree.clone(), is_so);
        is_so
    }
}
