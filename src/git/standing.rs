//! Where a repository stands: at which commit, and with which index.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::opening::index_path;
use super::{GitResult, object_id, open};
use crate::cache::Stamp;
use crate::digest::ObjectId;

/// What HEAD and the index of a repository were at some time.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    top: PathBuf,
    commit: ObjectId,
    index: Option<Stamp>,
}

impl Standing {
    /// Where a repository stands that was opened before.
    pub(super) fn of(
        top: &Path,
        repository: &gix::Repository,
        commit: gix::ObjectId,
    ) -> GitResult<Self> {
        let index = index_path(repository).symlink_metadata().ok();
        let index = index.as_ref().map(Stamp::of);
        Ok(Self { top: top.to_owned(), commit: object_id(commit)?, index })
    }

    /// Where the top of its work tree is.
    pub fn top(&self) -> &Path {
        &self.top
    }

    /// Whether nothing has been staged after that time, or it would show.
    pub fn settled(&self, before: SystemTime) -> bool {
        self.index.is_none_or(|index| index.settled(before))
    }

    /// Whether the repository stands where it stood.
    pub fn holds(&self) -> bool {
        let now = || {
            let repository = open(&self.top)?;
            let commit = repository.head_commit()?.id;
            Self::of(&self.top, &repository, commit)
        };
        now().is_ok_and(|now| now == *self)
    }
}
