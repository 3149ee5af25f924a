//! The commits between a good one and a bad one, of a task's repository or of a submodule in it.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use gix::{ObjectId, Repository};

use super::repositories::Repositories;
use super::revision;
use super::snapshot::Snapshot;
use super::snapshot_error::SnapshotError;
use super::{GitResult, object_id};
use ce_model::digest;

/// A commit of the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Its id.
    pub id: digest::ObjectId,
    /// The ids of its parents, whether or not they are part of the history.
    pub parents: Vec<digest::ObjectId>,
    /// The first line of its message.
    pub subject: String,
}

/// The commits that are reachable from a bad commit and not from a good one.
#[derive(Debug)]
pub struct Range {
    /// The path of the submodule in the task's repository, if it is one.
    pub submodule: Option<PathBuf>,
    /// The good commit.
    pub good: digest::ObjectId,
    /// The bad commit.
    pub bad: digest::ObjectId,
    /// The merge bases of the two, if the good one is not an ancestor of the bad one.
    pub bases: Vec<digest::ObjectId>,
    /// The commits, in any order.
    pub commits: Vec<Commit>,
}

impl Range {
    /// Finds the commits from `good` to `bad` in the repository of a task; or, if `within` is a
    /// path in the task as it is at HEAD, in the innermost repository that holds that.
    ///
    /// # Errors
    ///
    /// Fails if there is no such path, submodule or revision, or Git's data cannot be read.
    pub fn find(
        dir: &Path,
        within: Option<&Path>,
        [good, bad]: [&str; 2],
    ) -> Result<Self, SnapshotError> {
        let repositories =
            Repositories::open(dir).map_err(|source| SnapshotError::of_opening(dir, source))?;
        let (submodule, repository) = match within {
            None => (None, &repositories.task),
            Some(path) => {
                let found = Snapshot::open(dir, "HEAD")?.submodule(path);
                let (place, commit) = found.map_err(|source| SnapshotError::Submodule {
                    path: path.to_owned(),
                    source: Box::new(source),
                })?;
                let having = repositories.having(commit).map_err(SnapshotError::Git)?;
                (Some(place), having.unwrap_or(&repositories.task))
            }
        };
        let git_dir = repository.git_dir();
        let dir = if within.is_some() { git_dir } else { dir };
        let commit = |rev: &str| {
            let wrong = |source| SnapshotError::Revision {
                rev: rev.to_owned(),
                repository: git_dir.to_owned(),
                source,
            };
            revision::commit(repository, dir, rev).map_err(wrong)
        };
        let ends = [commit(good)?, commit(bad)?];
        let between = || -> GitResult<Self> { between(repository, ends, submodule) };
        between().map_err(SnapshotError::Git)
    }
}

fn between(
    repository: &Repository,
    [good, bad]: [ObjectId; 2],
    submodule: Option<PathBuf>,
) -> GitResult<Range> {
    let known: HashSet<ObjectId> = repository
        .rev_walk([good])
        .all()?
        .map(|commit| commit.map(|it| it.id))
        .collect::<Result<_, _>>()?;
    let mut commits = Vec::new();
    if !known.contains(&bad) {
        for info in repository.rev_walk([bad]).selected(|id| !known.contains(id))? {
            let info = info?;
            commits.push(Commit {
                id: object_id(info.id)?,
                parents: info
                    .parent_ids
                    .iter()
                    .copied()
                    .map(object_id)
                    .collect::<GitResult<_>>()?,
                subject: info.object()?.message()?.summary().to_string(),
            });
        }
    }
    let bases = repository.merge_bases_many(good, &[bad])?;
    let others = bases.into_iter().map(gix::Id::detach).filter(|base| *base != good);
    Ok(Range {
        submodule,
        good: object_id(good)?,
        bad: object_id(bad)?,
        bases: others.map(object_id).collect::<GitResult<_>>()?,
        commits,
    })
}
