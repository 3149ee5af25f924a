//! Pushing: what a storage has and a results repository has not is added to it.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::ResultsError;
use super::build::{Finder, NewFiles, build};
use super::inbox::strange_name;
use super::join::join;
use super::layout::{ResultsBranch, TOP, stored_size};
use super::ledger::ledger;
use super::offer::{LeftOut, SharedFile, SharedResult, Withheld, shared_results};
use super::secrets::Secrets;
use crate::digest::ObjectId;
use crate::git::{GitResult, Mirror, MirrorError, NewCommit, PackWriter, RefUpdate, RemoteRef};
use crate::questions::history::History;
use crate::storage::{Record, Storage};
use crate::words::counted;

/// How often a push is tried before it goes to the inbox.
const ATTEMPTS: u32 = 5;

/// The greatest number of jobs that the message of a commit names.
const JOBS: usize = 20;

/// The greatest size of a file unless the user says otherwise: GitHub refuses those of more than 100 MB.
pub const DEFAULT_LIMIT: &str = "64M";

/// The greatest limit, in bytes: files are held in memory.
pub const MAX_LIMIT: u64 = 256 << 20;

/// What is pushed.
#[derive(Debug)]
pub struct PushRequest {
    /// The greatest size of a file, in bytes.
    pub limit: u64,
    /// How the one who pushes wants to be called in the ledger.
    pub by: Option<String>,
    /// Whether files that seem to hold secrets are pushed.
    pub allow_secrets: bool,
    /// Whether results in inboxes become results of the repository.
    pub collect: bool,
    /// Whether nothing is written.
    pub dry: bool,
}

/// What was pushed, or would be.
#[derive(Debug, Default)]
pub struct Pushed {
    /// The number of calls that were new.
    pub calls: usize,
    /// The number of jobs that were new.
    pub jobs: usize,
    /// The number of tables that were new.
    pub tables: usize,
    /// The size of their files, in bytes.
    pub bytes: u64,
    /// The number of results that were there already.
    pub known: usize,
    /// What stays here.
    pub left_out: Vec<LeftOut>,
    /// The paths of records that the repository has with other outputs.
    pub differing: Vec<String>,
    /// The reference that has them now, and the commit; none if nothing was new.
    pub now: Option<RemoteRef>,
    /// Whether that is an inbox, from which somebody else takes them.
    pub inbox: bool,
    /// The number of inboxes that there were.
    pub waiting: usize,
    /// The number of those that were emptied.
    pub emptied: usize,
    /// Inboxes that have something else than results, each with the path of that.
    pub strange: Vec<(String, String)>,
}

impl Pushed {
    /// Whether the repository has everything in its place that may be pushed.
    pub fn is_complete(&self) -> bool {
        let is_withheld = self.left_out.iter().any(|it| it.why.is_wrong());
        !self.inbox && !is_withheld && self.differing.is_empty() && self.strange.is_empty()
    }

    /// Whether anything is new to the repository.
    pub const fn is_new(&self) -> bool {
        self.calls + self.jobs + self.tables > 0
    }
}

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
    let history = History::read(storage)?;
    let refs = mirror.list(&ResultsBranch::PATTERNS)?;
    let branch = ResultsBranch::of(&refs);
    let inboxes = branch.inboxes(&refs);
    let there = Finder::new(mirror, fetched(mirror, branch.tip.as_ref())?);
    let (results, left_out) = shared_results(storage, &history, request.limit);
    let mut selection = Selection {
        storage,
        mirror,
        secrets: (!request.allow_secrets).then(|| Secrets::new(std::env::vars())),
        writer: (!request.dry).then(|| mirror.writer()),
        files: NewFiles::new(),
        pushed: Pushed { left_out, ..Pushed::default() },
    };
    let fresh = selection.fresh(there, results)?;
    let Selection { writer, mut files, mut pushed, .. } = selection;
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
    let ledger = ledger(&fresh, request.by.as_deref());
    let top = TOP.map(|(path, text)| (path.to_owned(), text.as_bytes().to_owned()));
    for (path, contents) in ledger.into_iter().chain(top) {
        files.insert(path, writer.file(&contents).map_err(|error| mirror.own(error))?);
    }
    let ours = build(mirror, &mut writer, &files)?;
    writer.finish().map_err(|error| mirror.own(error))?;
    union.ours = Some(ours);
    let message = message(&pushed, &fresh);
    publish(mirror, branch, union, &message, &mut pushed)?;
    Ok(pushed)
}

/// Fetches the results that are there; returns their tree.
fn fetched(mirror: &Mirror, tip: Option<&RemoteRef>) -> Result<Option<ObjectId>, MirrorError> {
    let Some(tip) = tip else { return Ok(None) };
    mirror.fetch(std::slice::from_ref(tip))?;
    mirror.tree_of(&tip.id).map(Some)
}

/// The choice of what is pushed.
struct Selection<'a> {
    storage: &'a Storage,
    mirror: &'a Mirror,
    /// What is looked for in files, unless it may be pushed.
    secrets: Option<Secrets>,
    /// Writes files, unless nothing is to be written.
    writer: Option<PackWriter<'a>>,
    /// The files that were written.
    files: NewFiles,
    pushed: Pushed,
}

impl Selection<'_> {
    /// Returns those results that the repository does not have. Their files have been written.
    fn fresh<'r>(
        &mut self,
        mut there: Finder<'_>,
        results: Vec<SharedResult<'r>>,
    ) -> Result<Vec<SharedResult<'r>>, ResultsError> {
        let mut fresh = Vec::new();
        for result in results {
            let record = self.mirror.id_of(&result.text)?;
            if there.find(&result.entry.record())?.is_some_and(|known| known.id == record) {
                self.pushed.known += 1;
                continue;
            }
            let written = self.files.len();
            if let Err(withheld) = self.add(&result)? {
                debug_assert_eq!(written, self.files.len(), "all of it is pushed, or nothing");
                self.pushed.left_out.push(LeftOut { name: result.entry.short(), why: withheld });
                continue;
            }
            *match result.record {
                Record::Call(_) => &mut self.pushed.calls,
                Record::Job(_) => &mut self.pushed.jobs,
                Record::Table(_) | Record::TaskInput(_) => &mut self.pushed.tables,
            } += 1;
            let here = result.files.iter().filter(|it| it.path.is_some());
            self.pushed.bytes += here.map(|it| stored_size(&it.file.digest)).sum::<u64>();
            fresh.push(result);
        }
        Ok(fresh)
    }

    /// Reads and writes the files of a result. Returns why it is withheld, if it is.
    fn add(&mut self, result: &SharedResult<'_>) -> Result<Result<(), Withheld>, ResultsError> {
        let mut files = Vec::with_capacity(result.files.len() + 2);
        for SharedFile { file, path } in &result.files {
            let Some(contents) = self.storage.shared_contents(file)? else {
                return Ok(Err(Withheld::Damaged { file: file.name.clone() }));
            };
            if let Some(secrets) = &self.secrets
                && let Some((member, what)) = secrets.find_in(&contents, &file.digest)
            {
                return Ok(Err(Withheld::Secret { file: file.name.clone() + &member, what }));
            }
            files.extend(path.clone().map(|path| (path, contents)));
        }
        files.extend(result.note.iter().map(|note| (note.clone(), Vec::new())));
        files.push((result.entry.record(), result.text.clone()));
        for (path, contents) in files {
            if let Some(writer) = &mut self.writer {
                let id = writer.file(&contents).map_err(|error| self.mirror.own(error))?;
                self.files.insert(path, id);
            }
        }
        Ok(Ok(()))
    }
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
fn message(pushed: &Pushed, fresh: &[SharedResult<'_>]) -> String {
    let mut tasks: BTreeMap<String, usize> = BTreeMap::new();
    let (mut trailers, mut jobs_named) = (String::new(), 0);
    for offer in fresh {
        if let Record::Job(job) = offer.record {
            *tasks.entry(format!("{}@{}", job.task, job.commit.short())).or_default() += 1;
            if jobs_named < JOBS {
                trailers = trailers + "Ce-Job: " + &offer.entry.short() + "\n";
            }
            jobs_named += 1;
        }
    }
    let Pushed { calls, jobs, tables, .. } = pushed;
    let counts = [(*calls, "call"), (*jobs, "job"), (*tables, "table")];
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let counts: Vec<String> = counts.map(|(count, what)| counted(*count, what)).collect();
    let of = match tasks.keys().collect::<Vec<_>>()[..] {
        [task] => format!(" of {task}"),
        [] => String::new(),
        _ => format!(" of {}", counted(tasks.len(), "task")),
    };
    format!("results: {}{of}\n\n{trailers}", counts.join(", "))
}
