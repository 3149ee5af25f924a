//! The commits between two that touched a directory, as in `git log FROM..TO -- PATH`.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::path::Path;

use gix::revision::walk::Sorting;
use gix::traverse::commit::simple::CommitTimeOrder;
use gix::{ObjectId, Repository};

use super::trees::Trees;
use super::{GitResult, from, object_id};
use crate::digest;

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
    /// The first line of its message.
    pub title: String,
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
            let touching = LogRange::new(repository, path, old, new)?.touching(new)?;
            let more = touching.len().saturating_sub(most);
            let line = |id: &ObjectId| -> GitResult<LogLine> {
                let title = repository.find_commit(*id)?.message()?.summary().to_string();
                Ok(LogLine { id: object_id(*id)?, title })
            };
            let commits = touching.iter().take(most).map(line).collect::<GitResult<_>>()?;
            Ok(Some(ChangeLog { commits, more }))
        })
    }
}

/// The commits that one reaches and another does not.
struct LogRange<'a> {
    repository: &'a Repository,
    path: &'a Path,
    old: ObjectId,
    /// Their parents and times.
    commits: HashMap<ObjectId, (Vec<ObjectId>, i64)>,
    /// The object at the path, for each commit that was looked at.
    known: HashMap<ObjectId, Option<ObjectId>>,
}

impl<'a> LogRange<'a> {
    fn new(
        repository: &'a Repository,
        path: &'a Path,
        old: ObjectId,
        new: ObjectId,
    ) -> GitResult<Self> {
        let walk = repository
            .rev_walk([new])
            .with_hidden([old])
            .sorting(Sorting::ByCommitTime(CommitTimeOrder::NewestFirst))
            .all()?;
        let mut commits = HashMap::new();
        for info in walk {
            let info = info?;
            let time = info.commit_time.unwrap_or_default();
            commits.insert(info.id, (info.parent_ids.to_vec(), time));
        }
        Ok(Self { repository, path, old, commits, known: HashMap::new() })
    }

    /// The commits that touched the path, the newest first.
    fn touching(&mut self, new: ObjectId) -> GitResult<Vec<ObjectId>> {
        let mut touching = Vec::new();
        let mut waiting = BinaryHeap::new();
        let mut seen = HashSet::new();
        let mut next = vec![new];
        loop {
            for id in next.drain(..) {
                if let Some((_, time)) = self.commits.get(&id)
                    && seen.insert(id)
                {
                    // Of the same age, those that were met first come first.
                    waiting.push((*time, Reverse(seen.len()), id));
                }
            }
            let Some((_, _, id)) = waiting.pop() else { return Ok(touching) };
            let (touched, parents) = self.follow(id)?;
            if touched {
                touching.push(id);
            }
            next = parents;
        }
    }

    /// Whether a commit touched the path, and which of its parents lead to others that did.
    fn follow(&mut self, id: ObjectId) -> GitResult<(bool, Vec<ObjectId>)> {
        let own = self.entry(id)?;
        let parents = self.commits.get(&id).map_or(&[][..], |(parents, _)| parents).to_vec();
        let inside = |parent: &ObjectId| *parent == self.old || self.commits.contains_key(parent);
        let (inside, outside): (Vec<_>, Vec<_>) = parents.into_iter().partition(inside);
        for parent in &inside {
            if self.entry(*parent)? == own {
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
            if self.repository.has_object(parent) && self.entry(parent)? != own {
                return Ok((true, Vec::new()));
            }
        }
        Ok((false, Vec::new()))
    }

    /// Returns the object at the path in a commit.
    fn entry(&mut self, id: ObjectId) -> GitResult<Option<ObjectId>> {
        if let Some(known) = self.known.get(&id) {
            return Ok(*known);
        }
        let root = self.repository.find_commit(id)?.tree()?;
        let entry = if self.path.as_os_str().is_empty() {
            Some(root.id)
        } else {
            root.lookup_entry_by_path(self.path)?.map(|entry| entry.object_id())
        };
        self.known.insert(id, entry);
        Ok(entry)
    }
}
