//! The state of a repository: its commit and its index.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::opening::index_path;
use super::{GitResult, object_id, open};
use ce_files::cache::FileStat;
use ce_model::digest::ObjectId;

/// The state of a repository's HEAD and index at some time.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepoState {
    top: PathBuf,
    commit: ObjectId,
    index: Option<FileStat>,
}

impl RepoState {
    /// The state of an open repository.
    pub(super) fn of(
        top: &Path,
        repository: &gix::Repository,
        commit: gix::ObjectId,
    ) -> GitResult<Self> {
        let index = FileStat::of(&index_path(repository)).ok();
        Ok(Self { top: top.to_owned(), commit: object_id(commit)?, index })
    }

    /// The top of its work tree.
    pub fn top(&self) -> &Path {
        &self.top
    }

    /// Returns whether something may have been staged after that time without showing it.
    pub fn is_racy(&self, taken: SystemTime) -> bool {
        self.index.is_some_and(|index| index.is_racy(taken))
    }

    /// Returns whether the repository stands where it stood.
    pub fn is_current(&self) -> bool {
        let now = || {
            let repository = open(&self.top)?;
            let commit = repository.head_commit()?.id;
            Self::of(&self.top, &repository, commit)
        };
        now().is_ok_and(|now| now == *self)
    }
}
