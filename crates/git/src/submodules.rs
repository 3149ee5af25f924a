//! A repository and its cloned submodules, at any depth.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use gix::index::entry::Mode;
use gix::objs::Kind;
use gix::{ObjectId, Repository};

use crate::opening::{NoRepository, is_repository, open, open_submodule, own_index};
use crate::{GitResult, to_path};

/// A repository with its submodules, which are opened when one is asked for.
#[derive(Clone, Debug)]
pub(super) struct Repositories {
    pub(super) task: Repository,
    /// Repositories in its work tree that are not submodules.
    nested: Vec<Repository>,
    submodules: OnceCell<Vec<Repository>>,
}

impl Repositories {
    /// Opens the repository that a directory is in, or is; or was in, if it is gone.
    pub(super) fn open(dir: &Path) -> GitResult<Self> {
        let real = dir.canonicalize();
        let top =
            crate::discovery::top(real.as_deref().unwrap_or(dir)).unwrap_or_else(|| dir.to_owned());
        Ok(Self::from_open(open(&top)?, Vec::new()))
    }

    /// A repository that was opened before, and some in its work tree.
    pub(super) fn from_open(task: Repository, nested: Vec<Repository>) -> Self {
        Self { task, nested, submodules: OnceCell::new() }
    }

    /// The submodules that are cloned.
    pub(super) fn submodules(&self) -> GitResult<&[Repository]> {
        if let Some(known) = self.submodules.get() {
            return Ok(known);
        }
        let found = find(&self.task)?;
        Ok(self.submodules.get_or_init(|| found))
    }

    /// The repository that has an object, if any.
    pub(super) fn repository_of(&self, id: ObjectId) -> GitResult<Option<&Repository>> {
        let known = [&self.task].into_iter().chain(&self.nested);
        if let Some(found) = known.into_iter().find(|repository| repository.has_object(id)) {
            return Ok(Some(found));
        }
        Ok(self.submodules()?.iter().find(|repository| repository.has_object(id)))
    }

    /// The repository that has an object. Fails if no repository has it.
    pub(super) fn required_repository_of(&self, id: ObjectId) -> GitResult<&Repository> {
        match self.repository_of(id) {
            Ok(None) | Err(_) if !self.task.git_dir().exists() => {
                let place = self.task.workdir().unwrap_or(self.task.git_dir());
                Err(NoRepository(place.to_owned()).into())
            }
            Ok(found) => Ok(found.ok_or(AbsentObject(id))?),
            // Even the submodules may be unknown if objects are missing.
            Err(why) => Err(format!("{} ({why})", AbsentObject(id)).into()),
        }
    }
}

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
pub struct AbsentObject(ObjectId);

/// Returns the submodules in `modules/`, even if they are not recorded now, and submodules that are checked out with
/// their own repository.
fn find(task: &Repository) -> GitResult<Vec<Repository>> {
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    let mut waiting = vec![task.clone()];
    while let Some(repository) = waiting.pop() {
        let mut submodules = kept(&repository.common_dir().join("modules"))?;
        for submodule in repository.submodules()?.into_iter().flatten() {
            if let Ok(Some(opened)) = submodule.open() {
                submodules.push(open_submodule(opened.git_dir())?);
            }
        }
        submodules.extend(unnamed(&repository)?);
        for submodule in submodules {
            if seen.insert(submodule.git_dir().canonicalize()?) {
                waiting.push(submodule.clone());
                found.push(submodule);
            }
        }
    }
    Ok(found)
}

/// The repositories that are checked out where the index has a commit, even if `.gitmodules` does not name them.
fn unnamed(around: &Repository) -> GitResult<Vec<Repository>> {
    let Some(top) = around.workdir() else { return Ok(Vec::new()) };
    let index = own_index(around)?;
    let commits = index.entries().iter().filter(|entry| entry.mode == Mode::COMMIT);
    let places = commits.map(|entry| top.join(to_path(entry.path(&index))));
    // A `.git` that leads nowhere belongs to a submodule that is not cloned.
    Ok(places.filter(|it| is_repository(it)).filter_map(|it| open_submodule(&it).ok()).collect())
}

fn kept(room: &Path) -> GitResult<Vec<Repository>> {
    let mut kept = Vec::new();
    let mut rooms = vec![room.to_owned()];
    while let Some(room) = rooms.pop() {
        let Ok(entries) = fs::read_dir(&room) else { continue };
        for path in entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()) {
            // A submodule's name may have slashes, so a directory may be on the way to one.
            if path.join("HEAD").is_file() && path.join("objects").is_dir() {
                kept.push(open_submodule(&path)?);
            } else {
                rooms.push(path);
            }
        }
    }
    Ok(kept)
}
