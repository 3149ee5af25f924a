//! Records that are no results: owners of directories, pins, repositories and tombstones.

use serde::{Deserialize, Serialize};

use super::{Format, Provenance, host};
use crate::digest::ObjectId;
use crate::storage::layout::ComputationVersion;
use crate::task::name::ComputationName;

/// What says which version a directory belongs to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VersionRecord {
    /// How to read this record.
    pub format: Format,
    /// The computation.
    pub computation: ComputationName,
    /// The commit that holds it.
    pub commit: ObjectId,
    /// The Git tree of its directory.
    pub tree: ObjectId,
    /// The tree is not the commit's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dirty: bool,
    /// Who came first.
    pub recorded: Provenance,
}

impl VersionRecord {
    /// The record that a directory belongs to a version, written now.
    pub(in crate::storage) fn now(version: ComputationVersion<'_>) -> Self {
        let ComputationVersion { computation, commit, tree, dirty } = version;
        Self {
            format: Format,
            computation: computation.clone(),
            commit: commit.clone(),
            tree: tree.clone(),
            dirty,
            recorded: Provenance::now(),
        }
    }

    /// The version.
    pub(in crate::storage) fn version(&self) -> ComputationVersion<'_> {
        let Self { computation, commit, tree, dirty, .. } = self;
        ComputationVersion { computation, commit, tree, dirty: *dirty }
    }
}

/// Who wants a result to stay, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinRecord {
    /// How to read this record.
    pub format: Format,
    /// Why, in the user's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Who pinned it, and when.
    pub recorded: Provenance,
}

/// A repository with tasks that were evaluated into the storage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepositoryRecord {
    /// How to read this record.
    pub format: Format,
    /// The real path of the repository.
    pub path: String,
    /// The inode of its Git directory: tells on other hosts whether the path leads to the same one.
    pub inode: u64,
    /// Who evaluated a task of it, and when: the last time, give or take a day.
    pub recorded: Provenance,
}

impl RepositoryRecord {
    /// Whether this host recorded it.
    pub fn is_of_this_host(&self) -> bool {
        self.recorded.host == host()
    }
}

/// What stays of a result that was taken away.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tombstone<T> {
    /// Its record.
    #[serde(flatten)]
    pub record: T,
    /// Who took it away, and when.
    pub collected: Provenance,
}
