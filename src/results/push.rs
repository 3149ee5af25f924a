//! Pushing: what a storage has and a results repository has not is added to it.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::ResultsError;
use super::build::{Finder, build};
use super::inbox::strange_name;
use super::join::join;
use super::layout::{ResultsBranch, TOP};
use super::ledger::ledger;
use super::selection::{PushRequest, Pushed, Selection};
use crate::digest::ObjectId;
use crate::git::{GitResult, Mirror, MirrorError, NewCommit, RefUpdate, RemoteRef};
use crate::storage::Storage;
use crate::words::counted;

/// How often a push is tried before it goes to the inbox.
const ATTEMPTS: u32 = 5;

/// The greatest number of jobs that the message of a commit names.
const JOBS: usize = 20;

/// Pushes the results of a storage.
///
/// # Errors
///
/// Fails if the storage or the repository cannot be read, or the repository cannot be written.
pub fn push(
    storage: &Storage,
    mirror: &Mirror,
    request: &PushRequest,
) -> Result<Pushed, ResultsError> {
    let refs = mirror.list(&ResultsBranch::PATTERNS)?;
    let branch = ResultsBranch::of(&refs);
    let inboxes = branch.inboxes(&refs);
    let there = Finder::new(mirror, fetched(mirror, branch.tip.as_ref())?);
    let Selection { writer, mut files, lines, jobs, mut pushed, .. } =
        Selection::of(storage, mirror, there, request)?;
    pushed.waiting = inboxes.len();
    let Some(mut writer) = writer else { return Ok(pushed) };
    let mut union = Union { ours: None, inboxes: Vec::new() };
    if request.collect {
        union.inboxes = inboxes;
    }
    if !pushed.is_new() {
        publish(mirror, branch, union, "results: inboxes\n", &mut pushed)?;
        return Ok(pushed);
    }
    let ledger = ledger(&lines, request.by.as_deref());
    let top = TOP.map(|(path, text)| (path.to_owned(), text.as_bytes().to_owned()));
    for (path, contents) in ledger.into_iter().chain(top) {
        files.insert(path, writer.file(&contents).map_err(|error| mirror.own(error))?);
    }
    let ours = build(mirror, &mut writer, &files)?;
    writer.finish().map_err(|error| mirror.own(error))?;
    union.ours = Some(ours);
    let message = message(&pushed, &jobs);
    publish(mirror, branch, union, &message, &mut pushed)?;
    Ok(pushed)
}

/// Fetches the results that are there; returns their tree.
fn fetched(mirror: &Mirror, tip: Option<&RemoteRef>) -> Result<Option<ObjectId>, MirrorError> {
    let Some(tip) = tip else { return Ok(None) };
    mirror.fetch(std::slice::from_ref(tip))?;
    mirror.tree_of(&tip.id).map(Some)
}

/// Makes a commit of what is there and what is new the results of the repository. If others push all the time, it goes to an
/// inbox.
fn publish(
    mirror: &Mirror,
    mut branch: ResultsBranch,
    mut union: Union,
    message: &str,
    pushed: &mut Pushed,
) -> Result<(), ResultsError> {
    for attempt in 1.. {
        let base = fetched(mirror, branch.tip.as_ref())?;
        let Some(tree) = union.with(mirror, base.as_ref(), pushed)? else { return Ok(()) };
        if base.as_ref() == Some(&tree) && union.inboxes.is_empty() {
            // What differs is in differs/ already.
            pushed.known += pushed.calls + pushed.jobs + pushed.tables;
            (pushed.calls, pushed.jobs, pushed.tables) = (0, 0, 0);
            return Ok(());
        }
        pushed.inbox = attempt > ATTEMPTS;
        let tip = branch.tip.iter().chain(union.taken(pushed.inbox));
        let parents: Vec<ObjectId> = tip.map(|tip| tip.id.clone()).collect();
        let commit = commit(mirror, &tree, &parents, message)?;
        let name = match pushed.inbox {
            false => branch.name.to_owned(),
            true => format!("{}{}", branch.inbox(), commit.short()),
        };
        let old = branch.tip.as_ref().filter(|_| !pushed.inbox).map(|tip| tip.id.clone());
        let emptied = union.taken(pushed.inbox).map(|RemoteRef { name, id }| RefUpdate {
            name: name.clone(),
            old: Some(id.clone()),
            new: None,
        });
        let mut updates = vec![RefUpdate { name: name.clone(), old, new: Some(commit.clone()) }];
        updates.extend(emptied);
        if mirror.push(&updates)? {
            pushed.emptied = union.taken(pushed.inbox).count();
            pushed.now = Some(RemoteRef { name, id: commit });
            return Ok(());
        }
        if pushed.inbox {
            return Err(ResultsError::Busy(branch.name.to_owned()));
        }
        std::thread::sleep(pause(attempt));
        let refs = mirror.list(&ResultsBranch::PATTERNS)?;
        let tip = refs.iter().find(|it| it.name == branch.name).cloned();
        branch = ResultsBranch { tip, ..branch };
        union.inboxes.retain(|inbox| refs.contains(inbox));
    }
    Ok(())
}

/// What joins with the results of a repository.
struct Union {
    /// What this storage adds, if that is anything.
    ours: Option<ObjectId>,
    /// The inboxes that are emptied.
    inboxes: Vec<RemoteRef>,
}

impl Union {
    /// Joins all with what is there, which has precedence. Inboxes with something else than results are left alone. Returns
    /// `None` if nothing is added.
    fn with(
        &mut self,
        mirror: &Mirror,
        base: Option<&ObjectId>,
        pushed: &mut Pushed,
    ) -> Result<Option<ObjectId>, ResultsError> {
        pushed.differing.clear();
        let mut added: Vec<ObjectId> = self.ours.iter().cloned().collect();
        mirror.fetch(&self.inboxes)?;
        let mut taken = Vec::new();
        for inbox in self.inboxes.drain(..) {
            let tree = mirror.tree_of(&inbox.id)?;
            match strange_name(mirror, base, &tree)? {
                None => {
                    added.push(tree);
                    taken.push(inbox);
                }
                Some(path) => pushed.strange.push((inbox.name, path)),
            }
        }
        self.inboxes = taken;
        if added.is_empty() {
            return Ok(None);
        }
        let mut union = base.cloned();
        for tree in added {
            union = Some(match union {
                None => tree,
                Some(union) => {
                    let joined = join(mirror, &union, &tree)?;
                    let differing = joined.differing.into_iter().map(|(record, _)| record);
                    pushed.differing.extend(differing);
                    joined.tree
                }
            });
        }
        Ok(union)
    }

    /// The inboxes that a push empties; an inbox empties no others.
    fn taken(&self, to_inbox: bool) -> impl Iterator<Item = &RemoteRef> {
        self.inboxes.iter().filter(move |_| !to_inbox)
    }
}

/// How long one waits after an attempt at which another one was faster: up to a tenth of a second, doubled each time.
fn pause(attempt: u32) -> Duration {
    let random = RandomState::new().build_hasher().finish();
    Duration::from_millis(random % 100) * (1 << attempt.min(ATTEMPTS))
}

fn commit(
    mirror: &Mirror,
    tree: &ObjectId,
    parents: &[ObjectId],
    message: &str,
) -> Result<ObjectId, MirrorError> {
    let write = || -> GitResult<_> {
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs().cast_signed();
        let mut writer = mirror.writer();
        let commit = writer.commit(&NewCommit { tree, parents, message, seconds })?;
        writer.finish()?;
        Ok(commit)
    };
    write().map_err(|error| mirror.own(error))
}

/// The message of a commit: what it adds, and trailers for programs.
fn message(pushed: &Pushed, jobs: &[(String, String)]) -> String {
    let tasks: BTreeSet<&String> = jobs.iter().map(|(task, _)| task).collect();
    let named = jobs.iter().take(JOBS).map(|(_, name)| format!("Ce-Job: {name}\n"));
    let trailers: String = named.collect();
    let Pushed { calls, jobs, tables, .. } = pushed;
    let counts = [(*calls, "call"), (*jobs, "job"), (*tables, "table")];
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let counts: Vec<String> = counts.map(|(count, what)| counted(*count, what)).collect();
    let of = match tasks.iter().collect::<Vec<_>>()[..] {
        [task] => format!(" of {task}"),
        [] => String::new(),
        _ => format!(" of {}", counted(tasks.len(), "task")),
    };
    format!("results: {}{of}\n\n{trailers}", counts.join(", "))
}
