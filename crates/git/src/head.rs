//! The commit of a directory: the result of `git rev-parse HEAD` in it, which is the HEAD of the innermost
//! repository. And whether a repository is still where it was.

use std::collections::HashMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::SystemTime;

use gix::objs::tree::EntryKind;
use serde::{Deserialize, Serialize};

use super::commit_snapshot::Snapshot;
use super::draft::Draft;
use super::errors::{hint_for_unreadable, hint_to_trust};
use super::objects::{object, tree_of};
use super::opening::{NoRepository, Unsupported, Untrusted, index_path};
use super::submodules::Repositories;
use super::uncommitted_changes::{self, Changes};
use super::{GitResult, from, object_id, open, top};
use ce_files::cache::FileStat;
use ce_model::digest::ObjectId;
use ce_model::exit::Explain;

/// A directory or file as its repository's HEAD records it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The commit at HEAD.
    pub commit: ObjectId,
    /// The tree of the directory in that commit, or the blob of the file.
    pub object: ObjectId,
}

/// The reason why the commit of a directory is unknown.
#[derive(Debug, thiserror::Error, Explain)]
#[non_exhaustive]
pub enum HeadError {
    /// The directory and all above it are outside of any repository.
    #[error("is not in a Git repository")]
    #[hint("git init, git add and git commit the task")]
    NoRepository,
    /// The repository at this place has no commit yet.
    #[error("the repository at {} has no commit yet", .0.display())]
    #[hint("git add and git commit it")]
    Unborn(PathBuf),
    /// The directory is not part of the commit.
    #[error("is not in the commit {commit} of {}", repository.display())]
    #[hint("git add and git commit it")]
    NotCommitted {
        /// The first digits of the commit at HEAD.
        commit: String,
        repository: PathBuf,
    },
    /// The directory belongs to a submodule that is not checked out.
    #[error("is a submodule that is not checked out")]
    #[hint("git submodule update --init --recursive")]
    NotCheckedOut,
    /// The repository belongs to another user, and is not trusted.
    #[error("the repository at {} belongs to another user", .0.display())]
    #[hint(Some(hint_to_trust(_0.display())))]
    Untrusted(PathBuf),
    /// Git's data could not be read.
    #[error("the repository at {} cannot be read: {source}", repository.display())]
    #[hint("{}", hint_for_unreadable(&**source))]
    Git {
        repository: PathBuf,
        /// The error of gix.
        source: Box<dyn Error + Send + Sync>,
    },
}

impl HeadError {
    fn of_git(repository: &Path, source: Box<dyn Error + Send + Sync>) -> Self {
        Self::Git { repository: repository.to_owned(), source }
    }
}

/// The repositories met so far, each opened once.
#[derive(Debug, Default)]
pub struct Heads {
    opened: HashMap<PathBuf, Opened>,
    /// Uncommitted changes, by the directory that was looked at.
    changes: HashMap<PathBuf, Changes>,
}

#[derive(Debug)]
struct Opened {
    repository: gix::Repository,
    commit: gix::ObjectId,
}

impl Heads {
    /// The repositories around a directory, where this commit counts as that at HEAD.
    pub fn at(dir: &Path, commit: &ObjectId) -> Result<Self, HeadError> {
        let mut heads = Self::default();
        let top = top(dir).ok_or(HeadError::NoRepository)?;
        heads.open(&top)?;
        let of_git = |it| HeadError::of_git(&top, it);
        let commit = from(commit).map_err(of_git)?;
        heads.opened.entry(top.clone()).and_modify(|opened| opened.commit = commit);
        Ok(heads)
    }

    /// Whether HEAD of the repository around a directory is still the commit that it was.
    pub fn stands(&mut self, dir: &Path) -> Result<bool, HeadError> {
        let top = top(dir).ok_or(HeadError::NoRepository)?;
        let now = open_head(&top).map_err(|it| HeadError::of_git(&top, it))?;
        let opened = self.open(&top)?;
        Ok(now.is_some_and(|now| now.commit == opened.commit))
    }

    /// Returns how HEAD of the innermost repository records a directory, given by its real path.
    pub fn find_head(&mut self, dir: &Path) -> Result<Head, HeadError> {
        match self.entry(dir)? {
            (commit, Some((object, EntryKind::Tree))) => Ok(Head { commit, object }),
            (_, Some((_, EntryKind::Commit))) => Err(HeadError::NotCheckedOut),
            (commit, _) => Err(not_committed(&commit, dir)),
        }
    }

    /// Returns how HEAD of the innermost repository around it records a file.
    pub fn of_file(&mut self, file: &Path) -> Result<Head, HeadError> {
        match self.entry(file)? {
            (commit, Some((object, EntryKind::Blob | EntryKind::BlobExecutable))) => {
                Ok(Head { commit, object })
            }
            (commit, _) => Err(not_committed(&commit, file)),
        }
    }

    /// Whether the commit at HEAD of the innermost repository has anything at a place.
    pub fn has(&mut self, place: &Path) -> Result<bool, HeadError> {
        Ok(self.entry(place)?.1.is_some())
    }

    /// Returns the commit at HEAD of the innermost repository, and its entry for a path.
    fn entry(
        &mut self,
        place: &Path,
    ) -> Result<(ObjectId, Option<(ObjectId, EntryKind)>), HeadError> {
        let top = top(place).ok_or(HeadError::NoRepository)?;
        let opened = self.open(&top)?;
        let commit = object_id(opened.commit).map_err(|it| HeadError::of_git(&top, it))?;
        let inside = place.strip_prefix(&top).unwrap_or(Path::new(""));
        let Some((id, kind)) = opened.entry(inside).map_err(|it| HeadError::of_git(&top, it))?
        else {
            return Ok((commit, None));
        };
        Ok((commit, Some((object_id(id).map_err(|it| HeadError::of_git(&top, it))?, kind))))
    }

    /// Returns the commit at HEAD of the innermost repository around a directory.
    pub fn commit(&mut self, dir: &Path) -> Result<ObjectId, HeadError> {
        let top = top(dir).ok_or(HeadError::NoRepository)?;
        let opened = self.open(&top)?;
        object_id(opened.commit).map_err(|it| HeadError::of_git(&top, it))
    }

    /// Returns the uncommitted changes below a directory, as absolute paths.
    ///
    /// The whole scope, a directory above it, is checked at once if it is in the same repository,
    /// which is much cheaper.
    pub fn changes(&mut self, dir: &Path, scope: &Path) -> Result<Changes, HeadError> {
        let top = top(dir).ok_or(HeadError::NoRepository)?;
        let scope = if scope.starts_with(&top) { scope } else { dir };
        if !self.changes.contains_key(scope) {
            let opened = self.open(&top)?;
            let inside = scope.strip_prefix(&top).unwrap_or(Path::new(""));
            let changes =
                uncommitted_changes::changes(&opened.repository, Some(opened.commit), inside)
                    .map_err(|it| HeadError::of_git(&top, it))?;
            self.changes.insert(scope.to_owned(), changes.below(&top));
        }
        Ok(self.changes[scope].within(dir))
    }

    /// The commit at HEAD of the repository that a directory is in, with paths relative to the directory.
    pub fn snapshot(&mut self, dir: &Path) -> Result<Snapshot, HeadError> {
        let top = top(dir).ok_or(HeadError::NoRepository)?;
        let opened = self.open(&top)?;
        let repositories = Rc::new(Repositories::from_open(opened.repository.clone(), Vec::new()));
        let inside = dir.strip_prefix(&top).unwrap_or(Path::new(""));
        Ok(Snapshot::from_commit(repositories, opened.commit).relative_to(inside))
    }

    /// The same for the work tree as it stands, with uncommitted changes. Without a repository or a commit, nothing is
    /// committed.
    pub fn draft_snapshot(&mut self, dir: &Path) -> Result<Snapshot, HeadError> {
        let top = top(dir).unwrap_or_else(|| dir.to_owned());
        self.draft_within(dir, &top)
    }

    /// The same, with only the changes in a directory or a file.
    pub(super) fn draft_within(&mut self, dir: &Path, scope: &Path) -> Result<Snapshot, HeadError> {
        let top = top(dir).unwrap_or_else(|| dir.to_owned());
        let inside = dir.strip_prefix(&top).unwrap_or(Path::new("")).to_owned();
        let of_git = |it| HeadError::of_git(&top, it);
        let (repositories, commit, draft) = match self.open(&top) {
            Ok(_) => {
                let changes = self.changes(scope, scope)?.inside(&top);
                let Opened { repository, commit } = self.open(&top)?;
                (Some(repository.clone()), Some(*commit), Draft::new(repository, &changes))
            }
            Err(HeadError::Unborn(_)) => {
                let repository = open(&top).map_err(of_git)?;
                let scope = scope.strip_prefix(&top).unwrap_or(Path::new(""));
                let changes = uncommitted_changes::changes(&repository, None, scope);
                let draft = Draft::new(&repository, &changes.map_err(of_git)?);
                (Some(repository), None, draft)
            }
            Err(HeadError::NoRepository) => (None, None, Draft::outside(&top)),
            Err(error) => return Err(error),
        };
        let repositories = repositories.map(|it| Rc::new(Repositories::from_open(it, Vec::new())));
        Ok(Snapshot::of_draft(repositories, commit, draft).relative_to(&inside))
    }

    /// Whether unchanged files were read to find changes, since their stats differ from the index.
    pub fn is_stale(&self) -> bool {
        self.changes.values().any(|changes| changes.is_stale)
    }

    /// Returns the first submodule around a directory that is at another commit than the
    /// repository around it records, up to the repository that a task is in.
    pub fn displaced_submodule(
        &mut self,
        dir: &Path,
        task: &Path,
    ) -> Result<Option<PathBuf>, HeadError> {
        let end = top(task);
        let mut inner = top(dir);
        while inner != end
            && let Some(submodule) = inner
            && let Some(outer) = submodule.parent().and_then(top)
        {
            let commit = self.open(&submodule)?.commit;
            let place = submodule.strip_prefix(&outer).unwrap_or(Path::new(""));
            if self.open(&outer)?.entry(place).map_err(|it| HeadError::of_git(&outer, it))?
                != Some((commit, EntryKind::Commit))
            {
                return Ok(Some(submodule));
            }
            inner = Some(outer);
        }
        Ok(None)
    }

    /// Returns the states of all repositories that were opened; `None` if one is unknown.
    pub fn repository_states(&self) -> Option<Vec<RepoState>> {
        self.opened
            .iter()
            .map(|(top, opened)| {
                RepoState::from_repository(top, &opened.repository, opened.commit).ok()
            })
            .collect()
    }

    fn open(&mut self, top: &Path) -> Result<&Opened, HeadError> {
        if !self.opened.contains_key(top) {
            let opened = match open_head(top) {
                Err(error) if error.is::<NoRepository>() => return Err(HeadError::NoRepository),
                Err(error) if error.is::<Untrusted>() => {
                    return Err(HeadError::Untrusted(top.to_owned()));
                }
                opened => opened.map_err(|it| HeadError::of_git(top, it))?,
            };
            let opened = opened.ok_or_else(|| HeadError::Unborn(top.to_owned()))?;
            self.opened.insert(top.to_owned(), opened);
        }
        Ok(&self.opened[top])
    }
}

fn not_committed(commit: &ObjectId, place: &Path) -> HeadError {
    let repository = top(place).unwrap_or_default();
    HeadError::NotCommitted { commit: commit.short().to_owned(), repository }
}

fn open_head(top: &Path) -> GitResult<Option<Opened>> {
    let repository = open(top)?;
    let head = repository.head();
    if head.is_err()
        && let Some(format) = repository.config_snapshot().string("extensions.refStorage")
        && **format == *b"reftable"
    {
        return Err(Unsupported::Reftable.into());
    }
    let head = head?;
    if head.is_unborn() {
        return Ok(None);
    }
    let commit = repository.head_commit()?.id;
    Ok(Some(Opened { repository, commit }))
}

impl Opened {
    /// Returns the entry that the commit has at this place, or the submodule that has this place.
    fn entry(&self, inside: &Path) -> GitResult<Option<(gix::ObjectId, EntryKind)>> {
        let root = tree_of(&self.repository, self.commit)?;
        if inside.as_os_str().is_empty() {
            return Ok(Some((root, EntryKind::Tree)));
        }
        let mut tree = self.tree(root)?;
        let mut components = inside.components();
        while let Some(component) = components.next() {
            let name = Path::new(component.as_os_str());
            let Some(entry) = tree.lookup_entry_by_path(name)? else {
                return Ok(None);
            };
            let kind = entry.mode().kind();
            if kind == EntryKind::Commit || components.as_path().as_os_str().is_empty() {
                return Ok(Some((entry.object_id(), kind)));
            }
            if kind != EntryKind::Tree {
                return Ok(None);
            }
            tree = self.tree(entry.object_id())?;
        }
        Ok(None)
    }

    fn tree(&self, id: gix::ObjectId) -> GitResult<gix::Tree<'_>> {
        Ok(object(&self.repository, id)?.try_into_tree()?)
    }
}

/// The state of a repository's HEAD and index at some time.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepoState {
    top: PathBuf,
    commit: ObjectId,
    index: Option<FileStat>,
}

impl RepoState {
    /// The state of an open repository.
    pub(super) fn from_repository(
        top: &Path,
        repository: &gix::Repository,
        commit: gix::ObjectId,
    ) -> GitResult<Self> {
        let index = FileStat::read(&index_path(repository)).ok();
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
        Self::read(&self.top).is_ok_and(|now| now == *self)
    }

    fn read(top: &Path) -> GitResult<Self> {
        let repository = open(top)?;
        let commit = repository.head_commit()?.id;
        Self::from_repository(top, &repository, commit)
    }
}
