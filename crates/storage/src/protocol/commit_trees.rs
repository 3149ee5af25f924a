//! The contents of directories of commits that tasks have read. So results can be found by their inputs when Git has
//! lost a commit: its history was rewritten, and its objects are gone.

use super::{Input, Storage};
use crate::disk::Result;
use crate::paths::commit_tree;
use crate::records::{CommitTreeRecord, Format, Provenance};
use ce_model::digest::{Digest, ObjectId};

/// A directory in a commit.
#[derive(Clone, Copy, Debug)]
pub struct CommitPath<'a> {
    pub commit: &'a ObjectId,
    /// The path of the directory; empty for the whole commit.
    pub path: &'a str,
}

/// The directories of commits that tasks have read into a storage.
#[derive(Clone, Copy, Debug)]
pub struct CommitTrees<'a> {
    storage: &'a Storage,
}

impl<'a> CommitTrees<'a> {
    pub(super) const fn new(storage: &'a Storage) -> Self {
        Self { storage }
    }

    /// Returns the directory that a task has read from a commit, if that is recorded and the directory is still here.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read.
    pub fn find(&self, place: CommitPath<'_>) -> Result<Option<Input>> {
        let CommitPath { commit, path } = place;
        let record = self.storage.records().read::<CommitTreeRecord>(&commit_tree(commit, path))?;
        let fits = |it: &CommitTreeRecord| it.commit == *commit && it.path == path;
        let Some(record) = record.ok().filter(fits) else { return Ok(None) };
        let input = self.storage.inputs().known(record.directory)?;
        Ok(Some(input).filter(|input| input.there))
    }

    /// Records the digest of a directory that a task reads from a commit. Does nothing for a user who may not write.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read or written.
    pub fn record(&self, place: CommitPath<'_>, tree: &ObjectId, directory: &Digest) -> Result<()> {
        let name = commit_tree(place.commit, place.path);
        if self.storage.has(&name)? {
            return Ok(());
        }
        let record = CommitTreeRecord {
            format: Format::for_values([directory]),
            commit: place.commit.clone(),
            path: place.path.to_owned(),
            tree: tree.clone(),
            directory: *directory,
            recorded: Provenance::now(),
        };
        match self.storage.records().put_new(&name, &record) {
            Err(error) if error.may_not_write() || error.is_foreign() => Ok(()),
            written => written.map(drop),
        }
    }
}
