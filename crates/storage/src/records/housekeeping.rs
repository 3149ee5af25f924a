//! Records of other things than results: owners of directories, pins, repositories and tombstones.

use serde::{Deserialize, Serialize};

use super::{Format, Provenance, host};
use crate::paths::ComputationVersion;
use ce_model::digest::ObjectId;
use ce_model::name::ComputationName;

/// The record of the version that owns a directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VersionRecord {
    /// The format of this record.
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
    /// The user and the time of the first use.
    pub recorded: Provenance,
}

impl VersionRecord {
    /// The record for a version, written now.
    pub(crate) fn now(version: ComputationVersion<'_>) -> Self {
        let ComputationVersion { computation, commit, tree, dirty } = version;
        Self {
            format: Format::FILES,
            computation: computation.clone(),
            commit: commit.clone(),
            tree: tree.clone(),
            dirty,
            recorded: Provenance::now(),
        }
    }

    /// The version.
    pub(crate) fn version(&self) -> ComputationVersion<'_> {
        let Self { computation, commit, tree, dirty, .. } = self;
        ComputationVersion { computation, commit, tree, dirty: *dirty }
    }
}

/// The record of a pin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinRecord {
    /// The format of this record.
    pub format: Format,
    /// The reason, in the user's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The user, and the time.
    pub recorded: Provenance,
}

/// A repository with tasks that were evaluated into the storage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepositoryRecord {
    /// The format of this record.
    pub format: Format,
    /// The real path of the repository.
    pub path: String,
    /// The inode of its Git directory. On other hosts it shows whether the path leads to the same
    /// one.
    pub inode: u64,
    /// The user, and the time of the last evaluation of a task of it, to within a day.
    pub recorded: Provenance,
}

impl RepositoryRecord {
    /// Whether this host recorded it.
    pub fn is_of_this_host(&self) -> bool {
        self.recorded.host == host()
    }
}

/// The remaining record of a collected result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tombstone<T> {
    /// Its record.
    #[serde(flatten)]
    pub record: T,
    /// The user, and the time of the collection.
    pub collected: Provenance,
}
