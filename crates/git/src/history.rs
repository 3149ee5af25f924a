//! Histories: the commits that a user names or that touched a path, as in `git log FROM..TO -- PATH`, and the commits
//! between a good one and a bad one, of a task's repository or of a submodule in it.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use gix::objs::tree::EntryKind;
use gix::revision::Walk;
use gix::revision::walk::Sorting;
use gix::traverse::commit::simple::CommitTimeOrder;
use gix::{ObjectId, Repository};
use serde::Serialize;

use super::commit_snapshot::Snapshot;
use super::discovery::find_repository;
use super::errors::{CutOff, SnapshotError, UnreadableRepository};
use super::opening::open;
use super::submodules::Repositories;
use super::trees::{FileEntry, Trees};
use super::{GitResult, from, object_id, revision};
use ce_model::digest;
use ce_model::exit::Explain;

const NEWEST_FIRST: Sorting = Sorting::ByCommitTime(CommitTimeOrder::NewestFirst);

/// The commits that touched a directory, the newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ChangeLog {
    /// The newest of them.
    pub commits: Vec<LogLine>,
    /// The number of further commits.
    pub more: usize,
}

/// A commit, in one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LogLine {
    #[serde(rename = "commit")]
    pub id: digest::ObjectId,
    /// Its committer's date, in seconds since 1970.
    #[serde(skip)]
    pub time: i64,
    /// The first line of its message.
    pub title: String,
}

impl LogLine {
    pub(super) fn read(repository: &Repository, id: ObjectId) -> GitResult<Self> {
        let commit = repository.find_commit(id)?;
        // Git, too, takes a date that cannot be read for the first second.
        let time = commit.time().map(|time| time.seconds).unwrap_or_default();
        Ok(Self { id: object_id(id)?, time, title: commit.message()?.summary().to_string() })
    }
}

impl Trees {
    /// Returns the commits reachable from `new` but not from `old` that touched a path in their
    /// repository: the newest ones, up to a number. `None` if a commit does not exist.
    ///
    /// If a merge took everything from one side, the other side is left out, as by Git.
    pub fn log(
        &self,
        path: &Path,
        [old, new]: [&digest::ObjectId; 2],
        most: usize,
    ) -> GitResult<Option<ChangeLog>> {
        let [old, new] = [from(old)?, from(new)?];
        self.with(|repositories| {
            let Some(repository) = repositories.repository_of(new)? else { return Ok(None) };
            if !repository.has_object(old) {
                return Ok(None);
            }
            let range = LogRange { old: Some(old), new, first_parent: false, path: Some(path) };
            // Fast, but commits of the old history may be among them if clocks went wrong.
            let all = repository.rev_walk([new]).with_hidden([old]).sorting(NEWEST_FIRST).all()?;
            let never = AtomicBool::new(false);
            let touching = range.walk(repository, all, &never)?.collect::<GitResult<Vec<_>>>()?;
            let more = touching.len().saturating_sub(most);
            let commits = touching.iter().take(most).map(|id| LogLine::read(repository, *id));
            let commits = commits.collect::<GitResult<_>>()?;
            Ok(Some(ChangeLog { commits, more }))
        })
    }
}

/// The last commit that touched a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastChange {
    pub commit: LogLine,
    /// The name of its author.
    pub author: String,
    /// The address of its author.
    pub email: String,
}

impl Trees {
    /// Returns the newest commit, from one on, that touched a path in its repository; of an empty path, that one
    /// itself. `None` if no commit did, or the commit does not exist.
    pub fn last_change(
        &self,
        path: &Path,
        commit: &digest::ObjectId,
    ) -> GitResult<Option<LastChange>> {
        let new = from(commit)?;
        self.with(|repositories| {
            let Some(repository) = repositories.repository_of(new)? else { return Ok(None) };
            let path = Some(path).filter(|path| !path.as_os_str().is_empty());
            let range = LogRange { old: None, new, first_parent: false, path };
            let all = repository.rev_walk([new]).sorting(NEWEST_FIRST).all()?;
            let never = AtomicBool::new(false);
            let Some(id) = range.walk(repository, all, &never)?.next().transpose()? else {
                return Ok(None);
            };
            let found = repository.find_commit(id)?;
            let author = found.author()?.trim();
            Ok(Some(LastChange {
                commit: LogLine::read(repository, id)?,
                author: author.name.to_string(),
                email: author.email.to_string(),
            }))
        })
    }
}

/// The commits that are reachable from one commit and not from another.
#[derive(Clone, Copy)]
struct LogRange<'a> {
    /// The commit whose history is left out, with itself.
    pub(super) old: Option<ObjectId>,
    /// The newest commit.
    pub(super) new: ObjectId,
    /// Only the first parent of a merge is followed.
    first_parent: bool,
    /// Only commits that touched this path, relative to the top of the repository.
    pub(super) path: Option<&'a Path>,
}

/// A walk from a commit to its ancestors, the newest first. It ends early once that is asked for.
struct LogWalk<'a> {
    range: LogRange<'a>,
    repository: &'a Repository,
    is_asked: &'a AtomicBool,
    /// All commits of the range, as far as they were looked at.
    all: Walk<'a>,
    /// Their parents and times.
    commits: HashMap<ObjectId, (Vec<ObjectId>, i64)>,
    /// The commits at which the history of a shallow clone is cut off: they count as having no parents.
    cut: HashSet<ObjectId>,
    /// The object at the path, for each commit that was looked at.
    known: HashMap<ObjectId, Option<FileEntry>>,
    /// The commits that come next. Among commits of the same age, the one that was met first comes first.
    waiting: BinaryHeap<(i64, Reverse<usize>, ObjectId)>,
    seen: HashSet<ObjectId>,
}

impl<'a> LogRange<'a> {
    /// Begins a walk, given all commits of the range. It ends when the flag becomes true.
    pub(super) fn walk(
        self,
        repository: &'a Repository,
        all: Walk<'a>,
        is_asked: &'a AtomicBool,
    ) -> GitResult<LogWalk<'a>> {
        let cut = repository.shallow_commits()?.map(|cut| cut.iter().copied().collect());
        let mut walk = LogWalk {
            range: self,
            repository,
            is_asked,
            all,
            commits: HashMap::new(),
            cut: cut.unwrap_or_default(),
            known: HashMap::new(),
            waiting: BinaryHeap::new(),
            seen: HashSet::new(),
        };
        walk.wait_for(self.new)?;
        Ok(walk)
    }
}

impl Iterator for LogWalk<'_> {
    type Item = GitResult<ObjectId>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.is_asked.load(Ordering::Relaxed) {
            let (_, _, id) = self.waiting.pop()?;
            match self.pass(id) {
                Ok(true) => return Some(Ok(id)),
                Ok(false) => {}
                Err(error) => {
                    self.waiting.clear();
                    return Some(Err(error));
                }
            }
        }
        None
    }
}

impl LogWalk<'_> {
    /// Continues to the parents of a commit. Returns whether it touched the path.
    fn pass(&mut self, id: ObjectId) -> GitResult<bool> {
        let parents = self.commits.get(&id).map_or(&[][..], |(parents, _)| parents).to_vec();
        let (touched, parents) = match self.range.path {
            Some(path) => self.follow(id, path, parents)?,
            None => (true, parents),
        };
        parents.into_iter().try_for_each(|parent| self.wait_for(parent))?;
        Ok(touched)
    }

    /// Adds a commit to the waiting ones, unless it was met before or is not in the range.
    fn wait_for(&mut self, id: ObjectId) -> GitResult<()> {
        if let Some(time) = self.time(id)?
            && self.seen.insert(id)
        {
            self.waiting.push((time, Reverse(self.seen.len()), id));
        }
        Ok(())
    }

    /// The time of a commit; `None` if it is not of the range.
    fn time(&mut self, id: ObjectId) -> GitResult<Option<i64>> {
        loop {
            if let Some((_, time)) = self.commits.get(&id) {
                return Ok(Some(*time));
            }
            let Some(info) = self.all.next().transpose()? else { return Ok(None) };
            let parents = match self.range.first_parent {
                _ if self.cut.contains(&info.id) => Vec::new(),
                true => info.parent_ids.iter().copied().take(1).collect(),
                false => info.parent_ids.to_vec(),
            };
            self.commits.insert(info.id, (parents, info.commit_time.unwrap_or_default()));
        }
    }

    /// Whether a commit touched the path, and which of its parents lead to others that did.
    fn follow(
        &mut self,
        id: ObjectId,
        path: &Path,
        parents: Vec<ObjectId>,
    ) -> GitResult<(bool, Vec<ObjectId>)> {
        let own = self.entry(id, path)?;
        let (mut inside, mut outside) = (Vec::new(), Vec::new());
        for parent in parents {
            let is_inside = Some(parent) == self.range.old || self.time(parent)?.is_some();
            if is_inside { &mut inside } else { &mut outside }.push(parent);
        }
        for parent in &inside {
            if self.entry(*parent, path)? == own {
                return Ok((false, vec![*parent]));
            }
        }
        if !inside.is_empty() {
            return Ok((true, inside));
        }
        if outside.is_empty() {
            return Ok((own.is_some(), Vec::new()));
        }
        for parent in outside {
            if self.repository.has_object(parent) && self.entry(parent, path)? != own {
                return Ok((true, Vec::new()));
            }
        }
        Ok((false, Vec::new()))
    }

    /// Returns the object at the path in a commit.
    fn entry(&mut self, id: ObjectId, path: &Path) -> GitResult<Option<FileEntry>> {
        if let Some(known) = self.known.get(&id) {
            return Ok(*known);
        }
        let root = self.repository.find_commit(id)?.tree()?;
        let entry = if path.as_os_str().is_empty() {
            Some((EntryKind::Tree, root.id))
        } else {
            root.lookup_entry_by_path(path)?.map(|entry| (entry.mode().kind(), entry.object_id()))
        };
        self.known.insert(id, entry);
        Ok(entry)
    }
}

/// A filter of the commits of a repository.
#[derive(Clone, Debug)]
pub struct CommitFilter {
    /// The revision whose history is left out, with itself.
    pub after: Option<String>,
    /// The newest commit, as a revision.
    pub until: String,
    /// Only the first parent of a merge is followed.
    pub first_parent: bool,
    /// Only commits that touched this path, relative to the top of the repository. If a merge took everything
    /// from one side, the other side is left out, as by Git.
    pub path: Option<PathBuf>,
}

/// A repository whose commits are listed.
#[derive(Debug)]
pub struct CommitHistory {
    place: PathBuf,
    repository: Repository,
}

/// The reason why the commits of a repository cannot be listed.
#[derive(Debug, thiserror::Error, Explain)]
#[non_exhaustive]
pub enum CommitHistoryError {
    /// The repository cannot be read.
    #[error(transparent)]
    #[hint(_0.hint())]
    Repository(#[from] UnreadableRepository),
    /// No commit has this name.
    #[error("the repository {} has no commit {rev}", repository.display())]
    #[hint(Some(unknown_revision_hint(rev, repository, *is_head_broken, &**source)))]
    Revision {
        /// The revision.
        rev: String,
        repository: PathBuf,
        /// Whether it begins at HEAD, and HEAD leads to no commit.
        is_head_broken: bool,
        /// The error of Git.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// What to try if no commit of a repository is called so.
fn unknown_revision_hint(
    rev: &str,
    repository: &Path,
    is_head_broken: bool,
    source: &(dyn std::error::Error + 'static),
) -> String {
    let repository = repository.display();
    if is_head_broken {
        "name a branch, tag or commit in place of HEAD".to_owned()
    } else if source.is::<CutOff>() {
        format!("git -C {repository} fetch --unshallow")
    } else if let Some((of, _)) = rev.split_once(['~', '^'])
        && !rev.contains("^{")
    {
        format!("git -C {repository} rev-list {of} lists the existing ancestors")
    } else {
        format!("git -C {repository} fetch --tags")
    }
}

/// The bytes of trees that are kept: histories read the same ones again and again.
const CACHED: usize = 16 << 20;

impl CommitHistory {
    /// Opens a repository: a bare one, or one with a work tree, by any directory in it.
    pub fn open(dir: &Path) -> Result<Self, CommitHistoryError> {
        let place =
            find_repository(dir).map_err(|error| UnreadableRepository::of_directory(dir, error))?;
        let place = place.ok_or_else(|| UnreadableRepository::NoRepository(dir.to_owned()))?;
        let repository = open(&place).map_err(|error| UnreadableRepository::new(dir, error));
        let mut repository = repository?;
        repository.object_cache_size_if_unset(CACHED);
        Ok(Self { place: dir.to_owned(), repository })
    }

    /// Returns the commits in the order of `git log`: from the newest one on to parents. The waiting commit with the latest
    /// date comes first. They end early when the flag becomes true.
    ///
    /// # Errors
    ///
    /// Fails if a revision is unknown. An item fails if Git's data cannot be read, and is the last one.
    pub fn commits<'a>(
        &'a self,
        filter: &'a CommitFilter,
        is_asked: &'a AtomicBool,
    ) -> Result<impl Iterator<Item = Result<LogLine, CommitHistoryError>> + 'a, CommitHistoryError>
    {
        let new = self.commit(&filter.until)?;
        let old = filter.after.as_ref().map(|rev| self.commit(rev)).transpose()?;
        let CommitFilter { first_parent, path, .. } = filter;
        let range = LogRange { old, new, first_parent: *first_parent, path: path.as_deref() };
        let walk = self.walk(range, is_asked).map_err(|error| self.unreadable(error))?;
        Ok(walk.map(|id| {
            let line = id.and_then(|id| LogLine::read(&self.repository, id));
            line.map_err(|error| self.unreadable(error))
        }))
    }

    /// Returns the commit that a revision names.
    ///
    /// # Errors
    ///
    /// Fails if the revision is unknown, or if Git's data cannot be read.
    pub fn named(&self, rev: &str) -> Result<LogLine, CommitHistoryError> {
        LogLine::read(&self.repository, self.commit(rev)?).map_err(|error| self.unreadable(error))
    }

    fn unreadable(&self, error: Box<dyn std::error::Error + Send + Sync>) -> CommitHistoryError {
        UnreadableRepository::new(&self.place, error).into()
    }

    fn walk<'a>(&'a self, range: LogRange<'a>, is_asked: &'a AtomicBool) -> GitResult<LogWalk<'a>> {
        // The whole history of the old commit: dates do not show what is in it.
        let old = self.repository.rev_walk(range.old).all()?;
        let old = old.take_while(|_| !is_asked.load(Ordering::Relaxed));
        let old = old.map(|it| Ok(it?.id)).collect::<GitResult<HashSet<ObjectId>>>()?;
        let all = self.repository.rev_walk([range.new]).sorting(NEWEST_FIRST);
        let all = all.selected(move |id| !old.contains(id))?;
        range.walk(&self.repository, all, is_asked)
    }

    fn commit(&self, rev: &str) -> Result<ObjectId, CommitHistoryError> {
        let begins_at_head = rev.split(['~', '^']).next() == Some("HEAD");
        revision::commit(&self.repository, &self.place, rev).map_err(|source| {
            CommitHistoryError::Revision {
                rev: rev.to_owned(),
                repository: self.place.clone(),
                is_head_broken: begins_at_head
                    && revision::commit(&self.repository, &self.place, "HEAD").is_err(),
                source,
            }
        })
    }
}

/// A commit of the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
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
                let having = repositories.repository_of(commit).map_err(SnapshotError::Git)?;
                (Some(place), having.unwrap_or(&repositories.task))
            }
        };
        let git_dir = repository.git_dir();
        let dir = if within.is_some() { git_dir } else { dir };
        let [good, bad] = [good, bad].map(|rev| {
            revision::commit(repository, dir, rev).map_err(|source| SnapshotError::Revision {
                rev: rev.to_owned(),
                repository: git_dir.to_owned(),
                source,
            })
        });
        between(repository, [good?, bad?], submodule).map_err(SnapshotError::Git)
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
