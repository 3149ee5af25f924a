//! Objects of repositories: read, and verified.

use std::path::PathBuf;

use gix::objs::Kind;
use gix::{ObjectId, Repository};

use crate::GitResult;

/// Reads an object of a repository, and verifies its hash: an object with another id is damaged, or
/// was overwritten.
pub(super) fn object(repository: &Repository, id: ObjectId) -> GitResult<gix::Object<'_>> {
    let damaged = |why: String| {
        let repository = repository.git_dir().to_owned();
        Damaged { id, repository, why }
    };
    let object = repository.try_find_object(id).map_err(|error| damaged(error.to_string()))?;
    let object = object.ok_or(AbsentObject(id))?;
    let found = gix::objs::compute_hash(id.kind(), object.kind, &object.data)?;
    if found != id {
        return Err(damaged(format!("its contents have the id {found}")).into());
    }
    Ok(object)
}

/// The tree of a commit.
pub(super) fn tree_of(repository: &Repository, commit: ObjectId) -> GitResult<ObjectId> {
    Ok(object(repository, commit)?.try_into_commit()?.tree_id()?.detach())
}

/// The contents of a blob.
pub(super) fn blob(repository: &Repository, id: ObjectId) -> GitResult<Vec<u8>> {
    match object(repository, id)? {
        blob if blob.kind == Kind::Blob => Ok(blob.detach().data),
        other => Err(format!("the object {id} is a {}, not a blob", other.kind).into()),
    }
}

/// An object that is not what its id says.
#[derive(Debug, thiserror::Error)]
#[error(
    "the object {id} in {} is damaged: {why}. git fsck lists all damaged objects, and git fetch \
     --refetch gets them again",
    repository.display()
)]
struct Damaged {
    id: ObjectId,
    repository: PathBuf,
    why: String,
}

/// An object that no repository has.
#[derive(Debug, thiserror::Error)]
#[error(
    "the object {0} is missing: git fetch --refetch --no-filter gets those that a partial clone has left out, and \
     git fsck lists others"
)]
pub struct AbsentObject(pub(super) ObjectId);
