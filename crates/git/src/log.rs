//! The commits of a history, or those that touched a path, as in `git log FROM..TO -- PATH`.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use gix::objs::tree::EntryKind;
use gix::revision::Walk;
use gix::revision::walk::Sorting;
use gix::traverse::commit::simple::CommitTimeOrder;
use gix::{ObjectId, Repository};

use super::trees::{FileEntry, Trees};
use super::{GitResult, from, object_id};
use ce_model::digest;

pub(super) const NEWEST_FIRST: Sorting = Sorting::ByCommitTime(CommitTimeOrder::NewestFirst);

/// The commits that touched a directory, the newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangeLog {
    /// The newest of them.
    pub commits: Vec<LogLine>,
    /// The number of further commits.
    pub more: usize,
}

/// A commit, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// Its id.
    pub id: digest::ObjectId,
    /// Its committer's date, in seconds since 1970.
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
    ///
    /// # Errors
    ///
    /// Fails if Git's data cannot be read.
    pub fn log(
        &self,
        path: &Path,
        [old, new]: [&digest::ObjectId; 2],
        most: usize,
    ) -> GitResult<Option<ChangeLog>> {
        let [old, new] = [from(old)?, from(new)?];
        self.with(|repositories| {
            let Some(repository) = repositories.having(new)? else { return Ok(None) };
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

/// The commits that one reaches and another does not.
#[derive(Clone, Copy)]
pub(super) struct LogRange<'a> {
    /// The commit whose history is left out, with itself.
    pub(super) old: Option<ObjectId>,
    /// The newest commit.
    pub(super) new: ObjectId,
    /// Of merges, only the first parent is followed.
    pub(super) first_parent: bool,
    /// Only commits that touched this path, relative to the top of the repository.
    pub(super) path: Option<&'a Path>,
}

/// A walk from a commit to its ancestors, the newest first. It ends early once that is asked for.
pub(super) struct LogWalk<'a> {
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
    /// The commits that come next. Of the same age, those that were met first come first.
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
    /// Goes on to the parents of a commit. Returns whether it touched the path.
    fn pass(&mut self, id: ObjectId) -> GitResult<bool> {
        let parents = self.commits.get(&id).map_or(&[][..], |(parents, _)| parents).to_vec();
        let (touched, parents) = match self.range.path {
            Some(path) => self.follow(id, path, parents)?,
            None => (true, parents),
        };
        parents.into_iter().try_for_each(|parent| self.wait_for(parent))?;
        Ok(touched)
    }

    /// Adds a commit to those that come next, unless it was met before or is not of the range.
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
