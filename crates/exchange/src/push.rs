//! Pushing: results of a storage that a results repository lacks are added to the repository.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ce_git::{
    GitResult, Mirror, MirrorEntry, MirrorError, MirrorKind, NewCommit, PackWriter, RefUpdate,
    RemoteRef, UnwrittenTree,
};
use ce_model::digest::ObjectId;
use ce_model::humanize::counted;
use ce_storage::{Entry, Record, Revocation, RevocationRecord, Storage, is_users_file};

use crate::ResultsError;
use crate::join::join;
use crate::ledger::{add_evidence, keep_evidence};
use crate::lfs::{self, LargeUploads};
use crate::push_selection::Selection;
use crate::pushed::{PushRequest, Pushed, StrangeInbox};
use crate::repository::{Finder, MAX_RECORD, ResultsBranch, TOP, crowded};

/// The number of attempts of a push before it goes to the inbox.
const ATTEMPTS: u32 = 5;

/// The greatest number of jobs that the message of a commit names.
const JOBS: usize = 20;

/// Pushes the results of a storage.
pub fn push(
    storage: &Storage,
    mirror: &Mirror,
    request: &PushRequest,
) -> Result<Pushed, ResultsError> {
    request.progress.begin("fetching", 0);
    let refs = mirror.list(&ResultsBranch::PATTERNS)?;
    let branch = ResultsBranch::choose(&refs);
    let inboxes = branch.inboxes(&refs);
    let base = fetched(mirror, &branch)?;
    let mut there = Finder::new(mirror, base.clone());
    let set = lfs::setting(mirror, &mut there, request.lfs.is_some())?;
    let lfs = request.lfs.or(set);
    let mut selection = Selection::from_storage(storage, mirror, &mut there, request, lfs)?;
    selection.pushed.lfs = lfs;
    selection.pushed.is_set = lfs != set;
    let Selection { writer, files, .. } = &mut selection;
    let evidence = add_evidence(storage, mirror, &mut there, writer, files, request.sign)?;
    selection.pushed.ledger = evidence;
    let Selection { writer, files, compared, ledger, jobs, mut pushed, mut large, .. } = selection;
    drop(there);
    let objects = large.as_ref().map(|it| (it.objects, it.bytes));
    (pushed.large, pushed.large_bytes) = objects.unwrap_or_default();
    pushed.waiting = inboxes.len();
    let inboxes = if request.collect { inboxes } else { Vec::new() };
    compare(mirror, base, &compared, &mut pushed)?;
    let (message, sign) = (message(&pushed, &jobs), request.sign);
    let differing = pushed.differing.clone();
    let mut union = Union { ours: None, top: None, inboxes, differing, message, sign };
    let Some(writer) = writer else {
        union.select(mirror, branch.tree(mirror)?.as_ref(), &mut pushed)?;
        pushed.emptied = union.inboxes.len();
        return Ok(pushed);
    };
    if let Some(large) = &mut large {
        request.progress.begin("sending large results", 0);
        large.send()?;
    }
    request.progress.begin("sending", 0);
    if !pushed.is_new() {
        publish(storage, mirror, branch, union, &mut pushed)?;
        return Ok(pushed);
    }
    if pushed.is_set {
        union.top = Some(
            written_tree(mirror.writer(), UnwrittenTree::new(), lfs)
                .map_err(|error| mirror.own(error))?,
        );
    }
    union.ours = Some(written_tree(writer, files, lfs).map_err(|error| mirror.own(error))?);
    publish(storage, mirror, branch, union, &mut pushed)?;
    if pushed.now.is_some() {
        keep_evidence(storage, mirror, &ledger);
        large.iter().for_each(LargeUploads::end);
    }
    Ok(pushed)
}

/// Pushes revocations of calls. A storage that can be written knows them, too, then.
///
/// # Errors
///
/// Fails if the storage or the repository cannot be read, neither has one of the calls, or the repository cannot be written.
pub fn revoke(
    storage: &Storage,
    mirror: &Mirror,
    request: &RevokeRequest,
) -> Result<Pushed, ResultsError> {
    let branch = ResultsBranch::listed(mirror)?;
    let tree = fetched(mirror, &branch)?;
    let mut there = Finder::new(mirror, tree);
    let (mut writer, mut files) = (mirror.writer(), UnwrittenTree::new());
    let (mut pushed, mut revocations) = (Pushed::default(), Vec::new());
    for entry in &request.calls {
        let revocation = revocation_of(storage, mirror, &mut there, entry, &request.reason)?;
        let revocation = revocation.ok_or_else(|| ResultsError::NoCall(entry.short()))?;
        if there.find(&revocation.name())?.is_none() {
            let written = writer.file(&revocation.text);
            let written = written.and_then(|id| files.insert(&revocation.name(), &id));
            written.map_err(|error| mirror.own(error))?;
            pushed.revoked += 1;
        } else {
            pushed.revoked_before += 1;
        }
        revocations.push(revocation);
    }
    if request.dry {
        return Ok(pushed);
    }
    if pushed.is_new() {
        let ours = written_tree(writer, files, None).map_err(|error| mirror.own(error))?;
        let message = message(&pushed, &[]);
        let union = Union {
            ours: Some(ours),
            top: None,
            inboxes: Vec::new(),
            differing: Vec::new(),
            message,
            sign: request.sign,
        };
        publish(storage, mirror, branch, union, &mut pushed)?;
    }
    if storage.is_writable() {
        for revocation in &revocations {
            storage.revocations().add(revocation)?;
        }
        storage.flush()?;
    }
    Ok(pushed)
}

/// Makes the revocation of a call, as the repository and the storage have it, or one of them. `None` if neither has the call.
fn revocation_of(
    storage: &Storage,
    mirror: &Mirror,
    there: &mut Finder<'_>,
    entry: &Entry,
    reason: &str,
) -> Result<Option<Revocation>, ResultsError> {
    let there = there.file(&entry.record())?;
    mirror.fetch_files(there.as_slice())?;
    let text = there.map(|id| mirror.contents(&id, MAX_RECORD)).transpose()?;
    let shared = text.flatten().and_then(|text| Record::of_shared(entry, &text));
    let own = storage.records().read_fitting(entry)?;
    let [shared, own] = [shared, own].map(|record| Some(record?.outputs()));
    if shared.is_some() && own.is_some() && shared != own {
        return Err(ResultsError::OtherOutputs(entry.short()));
    }
    let Some(outputs) = shared.or(own) else { return Ok(None) };
    let revoked =
        RevocationRecord { revoked: RevocationRecord::FORMAT, outputs, reason: reason.to_owned() };
    // All its fields can be written as JSON.
    let mut text = serde_json::to_vec(&revoked).unwrap_or_default();
    text.push(b'\n');
    Ok(Some(Revocation { entry: entry.clone(), record: revoked, text }))
}

/// Writes a tree with these files.
fn write_tree(mirror: &Mirror, files: &[(String, Vec<u8>)]) -> GitResult<ObjectId> {
    let (mut writer, mut tree) = (mirror.writer(), UnwrittenTree::new());
    for (path, contents) in files {
        tree.insert(path, &writer.file(contents)?)?;
    }
    let tree = tree.write(&mut writer)?;
    writer.finish()?;
    Ok(tree)
}

/// Writes a commit that is not signed.
fn write_commit(mirror: &Mirror, commit: &NewCommit<'_>) -> GitResult<ObjectId> {
    let mut writer = mirror.writer();
    let commit = writer.commit(commit)?;
    writer.finish()?;
    Ok(commit)
}

/// Writes the tree with new files, and with the files at the top of each repository. Outputs above a size are Git LFS
/// objects.
fn written_tree(
    mut writer: PackWriter<'_>,
    mut files: UnwrittenTree,
    lfs: Option<u64>,
) -> GitResult<ObjectId> {
    let mut top = BTreeMap::from(TOP.map(|(path, text)| (path, text.to_owned())));
    top.extend(lfs.into_iter().flat_map(lfs::top));
    for (path, text) in top {
        files.insert(path, &writer.file(text.as_bytes())?)?;
    }
    let tree = files.write(&mut writer)?;
    writer.finish()?;
    Ok(tree)
}

/// Joins these files with the files of the repository, and notes where they differ. Results that change nothing there
/// count as known.
fn compare(
    mirror: &Mirror,
    there: Option<ObjectId>,
    files: &[(String, Vec<u8>)],
    pushed: &mut Pushed,
) -> Result<(), MirrorError> {
    let Some(there) = there.filter(|_| !files.is_empty()) else { return Ok(()) };
    let ours = write_tree(mirror, files).map_err(|error| mirror.own(error))?;
    if joined(mirror, Some(there.clone()), &ours, pushed)? == there {
        for entry in files.iter().filter_map(|(path, _)| Entry::of_record(path)) {
            *match entry {
                Entry::Call(_) => &mut pushed.calls,
                Entry::Job(_) => &mut pushed.jobs,
                Entry::Table(_) | Entry::TaskInput(_) => &mut pushed.tables,
            } -= 1;
            pushed.known += 1;
        }
    }
    Ok(())
}

/// Fetches the results that are there; returns their tree.
fn fetched(mirror: &Mirror, branch: &ResultsBranch) -> Result<Option<ObjectId>, ResultsError> {
    mirror.fetch(branch.tip.as_slice())?;
    branch.tree(mirror)
}

/// Makes a commit of the old and the new results the results of the repository. If others push all the time, it goes to an inbox.
fn publish(
    storage: &Storage,
    mirror: &Mirror,
    mut branch: ResultsBranch,
    mut union: Union,
    pushed: &mut Pushed,
) -> Result<(), ResultsError> {
    for attempt in 1.. {
        pushed.inbox = attempt > ATTEMPTS;
        let Some(commit) = union.commit(storage, mirror, &branch, pushed)? else {
            pushed.inbox = false;
            return Ok(());
        };
        let name = if pushed.inbox {
            format!("{}{}", branch.inbox(), commit.short())
        } else {
            branch.name.to_owned()
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
            let base = branch.tip.as_ref().map(|tip| mirror.tree_of(&tip.id)).transpose()?;
            pushed.crowded = crowded(mirror, base.as_ref(), &mirror.tree_of(&commit)?)?;
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

/// The additions that are joined with the results of a repository.
struct Union {
    /// The tree that this storage adds, if it adds anything.
    ours: Option<ObjectId>,
    /// The files at the top of the repository, if they replace the present ones.
    top: Option<ObjectId>,
    /// The inboxes that are emptied.
    inboxes: Vec<RemoteRef>,
    /// The paths of differing records of this storage, if it adds nothing.
    differing: Vec<String>,
    /// The message of the commit with the results that this storage adds.
    message: String,
    /// Whether the commits are signed.
    sign: bool,
}

impl Union {
    /// Joins all with the results of the repository, which have precedence: first what this storage adds, in a commit
    /// of its own, for which a signer vouches, and then the inboxes, in a merge that only joins. Inboxes with other
    /// files than results are left alone. Returns `None` if nothing is added.
    fn commit(
        &mut self,
        storage: &Storage,
        mirror: &Mirror,
        branch: &ResultsBranch,
        pushed: &mut Pushed,
    ) -> Result<Option<ObjectId>, ResultsError> {
        pushed.differing.clone_from(&self.differing);
        let base = fetched(mirror, branch)?;
        let tip = branch.tip.as_ref();
        let mut head = tip.map(|tip| tip.id.clone());
        let mut tree = base.clone();
        if let Some(ours) = &self.ours {
            pushed.differing.clear();
            let mut own = joined(mirror, tree, ours, pushed)?;
            if let Some(top) = &self.top {
                own = joined(mirror, Some(top.clone()), &own, pushed)?;
            }
            if base.as_ref() == Some(&own) {
                // Differing records are in differs/ already.
                pushed.known += pushed.calls + pushed.jobs + pushed.tables;
                (pushed.calls, pushed.jobs, pushed.tables) = (0, 0, 0);
                (pushed.logs, pushed.inputs, pushed.attested) = (0, 0, 0);
                (pushed.ledger, pushed.revoked) = (0, 0);
                pushed.is_set = false;
            } else {
                let parents: Vec<ObjectId> = head.into_iter().collect();
                head = Some(self.write(mirror, &own, &parents, &self.message)?);
            }
            tree = Some(own);
        }
        let is_new = head.as_ref() != tip.map(|tip| &tip.id);
        self.select(mirror, base.as_ref(), pushed)?;
        let mut parents: Vec<ObjectId> = head.clone().into_iter().collect();
        for inbox in self.taken(pushed.inbox) {
            let there = match tree {
                Some(tree) => tree,
                None => written_tree(mirror.writer(), UnwrittenTree::new(), None)
                    .map_err(|error| mirror.own(error))?,
            };
            let known = base.as_ref().unwrap_or(&there);
            let brought =
                lfs::without_settings(storage, mirror, known, &mirror.tree_of(&inbox.id)?)?;
            tree = Some(match brought {
                Some(brought) => joined(mirror, Some(there), &brought, pushed)?,
                None => there,
            });
            parents.push(inbox.id.clone());
        }
        match tree {
            Some(tree) if self.taken(pushed.inbox).count() > 0 => {
                Ok(Some(self.write(mirror, &tree, &parents, "results: inboxes\n")?))
            }
            _ => Ok(head.filter(|_| is_new)),
        }
    }

    /// Fetches the inboxes, and skips inboxes with other files than results.
    fn select(
        &mut self,
        mirror: &Mirror,
        base: Option<&ObjectId>,
        pushed: &mut Pushed,
    ) -> Result<(), ResultsError> {
        mirror.fetch(&self.inboxes)?;
        let mut taken = Vec::new();
        for inbox in self.inboxes.drain(..) {
            match strange_name(mirror, base, &mirror.tree_of(&inbox.id)?)? {
                None => taken.push(inbox),
                Some(path) => pushed.strange.push(StrangeInbox { inbox: inbox.name, path }),
            }
        }
        self.inboxes = taken;
        Ok(())
    }

    /// The inboxes that a push empties; an inbox empties no others.
    fn taken(&self, to_inbox: bool) -> impl Iterator<Item = &RemoteRef> {
        self.inboxes.iter().filter(move |_| !to_inbox)
    }

    /// Writes a commit.
    fn write(
        &self,
        mirror: &Mirror,
        tree: &ObjectId,
        parents: &[ObjectId],
        message: &str,
    ) -> Result<ObjectId, MirrorError> {
        fetch_unsent(mirror, tree, parents)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let seconds = now.as_secs().cast_signed();
        let commit = NewCommit { tree, parents, message, seconds };
        if self.sign {
            return mirror.signed_commit(&commit);
        }
        write_commit(mirror, &commit).map_err(|error| mirror.own(error))
    }
}

/// Joins a tree with the repository's tree, and notes where they differ.
fn joined(
    mirror: &Mirror,
    there: Option<ObjectId>,
    tree: &ObjectId,
    pushed: &mut Pushed,
) -> Result<ObjectId, MirrorError> {
    let Some(there) = there else { return Ok(tree.clone()) };
    let joined = join(mirror, &there, tree)?;
    pushed.differing.extend(joined.differing);
    Ok(joined.tree)
}

/// Returns the pause after an attempt at which another one was faster: up to a tenth of a second, doubled each time.
fn pause(attempt: u32) -> Duration {
    let random = RandomState::new().build_hasher().finish();
    Duration::from_millis(random % 100) * (1 << attempt.min(ATTEMPTS))
}

/// The message of a commit: its additions, and trailers for programs.
fn message(pushed: &Pushed, jobs: &[(String, String)]) -> String {
    let tasks: BTreeSet<&String> = jobs.iter().map(|(task, _)| task).collect();
    let named = jobs.iter().take(JOBS).map(|(_, name)| format!("Ce-Job: {name}\n"));
    let trailers: String = named.collect();
    let of = match tasks.iter().collect::<Vec<_>>()[..] {
        [task] => format!(" of {task}"),
        [] => String::new(),
        _ => format!(" of {}", counted(tasks.len(), "task")),
    };
    let what = match pushed.summary() {
        what if what.is_empty() => "settings".to_owned(),
        what => what,
    };
    let message = format!("results: {what}{of}\n\n{trailers}");
    format!("{}\n", message.trim_end())
}

/// The parameters of a revocation.
#[derive(Debug)]
pub struct RevokeRequest {
    pub calls: Vec<Entry>,
    /// The reason, in words.
    pub reason: String,
    /// Whether the commit is signed, as the user's `git` signs.
    pub sign: bool,
    /// Whether nothing is written.
    pub dry: bool,
}

/// Finds a name in a tree that no results repository has, such as a program or a workflow of a server. Skips entries of
/// the known tree.
fn strange_name(
    mirror: &Mirror,
    known: Option<&ObjectId>,
    tree: &ObjectId,
) -> Result<Option<String>, MirrorError> {
    let mut waiting = vec![(String::new(), known.cloned(), tree.clone())];
    while let Some((path, known, tree)) = waiting.pop() {
        let known = known.map(|known| mirror.entries(&known)).transpose()?.unwrap_or_default();
        for entry in mirror.entries(&tree)? {
            let before = known.iter().find(|it| it.name == entry.name);
            if before == Some(&entry) {
                continue;
            }
            let place = format!("{path}{}", entry.name);
            match entry.kind {
                MirrorKind::Tree => {
                    let before = before.filter(|it| it.kind == MirrorKind::Tree);
                    waiting.push((format!("{place}/"), before.map(|it| it.id.clone()), entry.id));
                }
                MirrorKind::Blob if is_expected(&place) => {}
                MirrorKind::Blob | MirrorKind::Other => return Ok(Some(place)),
            }
        }
    }
    Ok(None)
}

/// Whether a results repository may have a file of this name.
fn is_expected(path: &str) -> bool {
    let top = path.split('/').next().unwrap_or_default();
    let is_result = ["c_", "t_"].iter().any(|prefix| top.starts_with(prefix))
        || ["tables", "directories", "large", "ledger", "differs", "revoked", "tinputs"]
            .contains(&top);
    let is_hidden = path.split('/').any(|component| component.starts_with('.'));
    let is_deep = path.contains('/');
    is_result && is_deep && !is_hidden
        || is_users_file(path)
        || TOP.iter().any(|(name, _)| *name == path)
        // It is not taken.
        || path == lfs::CONFIG
}

/// Fetches the files of a tree that the trees of some commits do not have in the same places, and the files that those have
/// there. `git push` reads them, and fetches nothing by itself.
fn fetch_unsent(mirror: &Mirror, tree: &ObjectId, commits: &[ObjectId]) -> Result<(), MirrorError> {
    let trees: Result<Vec<ObjectId>, MirrorError> =
        commits.iter().map(|commit| mirror.tree_of(commit)).collect();
    let (mut files, mut waiting) = (Vec::new(), vec![(trees?, tree.clone())]);
    while let Some((there, tree)) = waiting.pop() {
        if there.contains(&tree) {
            continue;
        }
        let mut known = HashMap::<String, Vec<MirrorEntry>>::new();
        for tree in &there {
            for entry in mirror.entries(tree)? {
                known.entry(entry.name.clone()).or_default().push(entry);
            }
        }
        for entry in mirror.entries(&tree)? {
            let known = known.remove(&entry.name).unwrap_or_default();
            match entry.kind {
                _ if known.iter().any(|it| it.id == entry.id) => {}
                MirrorKind::Blob => {
                    // `git` describes a file by the file that it replaces.
                    let replaced = known.into_iter().filter(|it| it.kind == MirrorKind::Blob);
                    files.extend(replaced.map(|it| it.id).chain([entry.id]));
                }
                MirrorKind::Tree => {
                    let trees = known.into_iter().filter(|it| it.kind == MirrorKind::Tree);
                    waiting.push((trees.map(|it| it.id).collect(), entry.id));
                }
                MirrorKind::Other => {}
            }
        }
    }
    mirror.fetch_files(&files)
}
