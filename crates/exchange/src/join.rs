//! Joining results: the union of the names. Where two differ, the first has the place, unless it was revoked and the
//! second was not. Both records stand in `differs/`.
//!
//! Only directories that both trees have and that differ are compared. So joining ten new results to a hundred thousand
//! costs as much as joining ten.

use std::collections::{BTreeMap, HashSet};

use ce_git::{Mirror, MirrorEntry, MirrorError, MirrorKind, PackWriter, UnwrittenTree};
use ce_model::digest::{Digest, ObjectId};
use ce_storage::records::JobRecord;
use ce_storage::{Entry, Record, Revocation, RevocationIndex, of_revocation, revocations};

use crate::repository::{Finder, MAX_PATH, MAX_RECORD, differs, is_record, place};

/// The union of two trees.
#[derive(Debug)]
pub(super) struct Joined {
    pub(super) tree: ObjectId,
    /// The paths of records that differ in both, where the second one has lost the place.
    pub(super) differing: Vec<String>,
}

/// Joins two trees. The first one has precedence.
///
/// All differing records of a result stand in `differs/`, also the record in its place. So the set of records is the same
/// for any order of joins. Nothing else of a record that lost its place is in the union.
pub(super) fn join(
    mirror: &Mirror,
    first: &ObjectId,
    second: &ObjectId,
) -> Result<Joined, MirrorError> {
    let mut conflicts = Vec::new();
    let tree = united(mirror, [first, second], &mut conflicts)?;
    let (mut beside, mut differing) = (UnwrittenTree::new(), Vec::new());
    let mut left_out = [Vec::new(), Vec::new()];
    for SettledConflict { conflict: Conflict { path, ids }, comparison, lost } in
        settled(mirror, &[first, second], conflicts)?
    {
        let loser = usize::from(comparison == RecordComparison::Differs);
        left_out[loser].extend(lost);
        match comparison {
            RecordComparison::Equal | RecordComparison::Better => continue,
            RecordComparison::Supersedes => {}
            RecordComparison::Differs => differing.push(path.clone()),
        }
        for id in &ids {
            let path = format!("{}/{}.json", differs(&path), id.full());
            beside.insert(&path, id).map_err(|error| mirror.own(error))?;
        }
    }
    if left_out.iter().all(Vec::is_empty) && beside.is_empty() {
        return Ok(Joined { tree, differing });
    }
    let (mut writer, own) = (mirror.writer(), |error| mirror.own(error));
    let mut trees = Vec::new();
    for (tree, paths) in [first, second].into_iter().zip(&left_out) {
        let paths = paths.iter().map(String::as_str).collect();
        trees.extend(without(mirror, &mut writer, tree, paths)?);
    }
    trees.push(beside.write(&mut writer).map_err(own)?);
    writer.finish().map_err(own)?;
    let mut trees = trees.into_iter();
    let mut tree = trees.next().unwrap_or(tree);
    for other in trees {
        tree = united(mirror, [&tree, &other], &mut Vec::new())?;
    }
    Ok(Joined { tree, differing })
}

/// Writes a directory without the files of these paths. `None` if nothing is left.
pub(super) fn without(
    mirror: &Mirror,
    writer: &mut PackWriter<'_>,
    tree: &ObjectId,
    paths: Vec<&str>,
) -> Result<Option<ObjectId>, MirrorError> {
    let mut below = BTreeMap::<&str, Vec<&str>>::new();
    let mut files = HashSet::new();
    for path in paths {
        match path.split_once('/') {
            Some((directory, rest)) => below.entry(directory).or_default().push(rest),
            None => drop(files.insert(path)),
        }
    }
    let mut kept = Vec::new();
    for mut entry in mirror.entries(tree)?.into_iter().filter(|it| it.kind != MirrorKind::Other) {
        let name = entry.name.as_str();
        match entry.kind {
            MirrorKind::Tree if below.contains_key(name) => {
                let paths = below.remove(name).unwrap_or_default();
                let Some(rest) = without(mirror, writer, &entry.id, paths)? else { continue };
                entry.id = rest;
            }
            MirrorKind::Blob if files.contains(name) => continue,
            _ => {}
        }
        kept.push(entry);
    }
    if kept.is_empty() {
        return Ok(None);
    }
    writer.tree(&kept).map(Some).map_err(|error| mirror.own(error))
}

/// The union of two trees, in which the first one has each place that both have. Lists the records in these places.
fn united(
    mirror: &Mirror,
    trees: [&ObjectId; 2],
    conflicts: &mut Vec<Conflict>,
) -> Result<ObjectId, MirrorError> {
    let mut writer = mirror.writer();
    let tree = unite(mirror, &mut writer, "", trees, conflicts)?;
    writer.finish().map_err(|error| mirror.own(error))?;
    Ok(tree)
}

/// Unites two directories of this path. Names in a storage have few slashes, so the recursion is shallow; names that
/// are made to exhaust the stack are an error.
fn unite(
    mirror: &Mirror,
    writer: &mut PackWriter<'_>,
    path: &str,
    [first, second]: [&ObjectId; 2],
    conflicts: &mut Vec<Conflict>,
) -> Result<ObjectId, MirrorError> {
    if first == second {
        return Ok(first.clone());
    }
    if path.len() > MAX_PATH {
        return Err(mirror.own("a directory is too deep".into()));
    }
    let entries = mirror.entries(first)?.into_iter();
    let mut entries: BTreeMap<String, MirrorEntry> =
        entries.map(|entry| (entry.name.clone(), entry)).collect();
    // Links, programs and submodules are not results.
    entries.retain(|_, entry| entry.kind != MirrorKind::Other);
    for theirs in mirror.entries(second)?.into_iter().filter(|it| it.kind != MirrorKind::Other) {
        let Some(ours) = entries.get_mut(&theirs.name) else {
            entries.insert(theirs.name.clone(), theirs);
            continue;
        };
        if *ours == theirs {
            continue;
        }
        let place = format!("{path}{}", theirs.name);
        match [ours.kind, theirs.kind] {
            [MirrorKind::Tree, MirrorKind::Tree] => {
                let ids = [&ours.id, &theirs.id];
                ours.id = unite(mirror, writer, &format!("{place}/"), ids, conflicts)?;
            }
            // A file in the place of a directory would hide all that is in it.
            [MirrorKind::Blob, MirrorKind::Tree] => *ours = theirs,
            [MirrorKind::Blob, MirrorKind::Blob] if is_record(&place) => {
                conflicts.push(Conflict { path: place, ids: [ours.id.clone(), theirs.id] });
            }
            _ => {}
        }
    }
    let entries: Vec<MirrorEntry> = entries.into_values().collect();
    writer.tree(&entries).map_err(|error| mirror.own(error))
}

/// The greatest size of a revocation, and of the record of a call that differs from another one, in bytes.
const MAX_SMALL: u64 = 1 << 20;

/// Two records of one result.
#[derive(Debug)]
pub(super) struct Conflict {
    pub(super) path: String,
    /// Their ids: first of the record that has the place, then of the other one.
    pub(super) ids: [ObjectId; 2],
}

/// The comparison of the other record with the record in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordComparison {
    /// It has the same outputs.
    Equal,
    /// It has the same outputs, and an isolated execution has made them, which serves more commits.
    Better,
    /// It has other outputs. The outputs of the record in the place are revoked, and its own are not.
    Supersedes,
    /// It has other outputs, or one of the two is not a record.
    Differs,
}

/// A conflict, and how it ends.
#[derive(Debug)]
pub(super) struct SettledConflict {
    pub(super) conflict: Conflict,
    /// The comparison of the other record with the record in its place.
    pub(super) comparison: RecordComparison,
    /// The paths of files that only the losing record gives a meaning: the record, its log, and outputs that the other
    /// one does not have.
    pub(super) lost: Vec<String>,
}

/// Settles conflicts by the revocations in these trees, regardless of their signers.
pub(super) fn settled(
    mirror: &Mirror,
    trees: &[&ObjectId],
    conflicts: Vec<Conflict>,
) -> Result<Vec<SettledConflict>, MirrorError> {
    let mut referee = Referee {
        mirror,
        trees: trees.iter().map(|tree| Finder::new(mirror, Some((*tree).clone()))).collect(),
    };
    let ids: Vec<ObjectId> = conflicts.iter().flat_map(|it| it.ids.iter().cloned()).collect();
    mirror.fetch_files(&ids)?;
    let mut calls: Vec<Entry> =
        conflicts.iter().filter_map(|it| Entry::of_record(&it.path)).collect();
    calls.retain(|it| matches!(it, Entry::Call(_)));
    let revoked = referee.revocations(&calls)?;
    conflicts.into_iter().map(|conflict| referee.settle(conflict, &revoked)).collect()
}

/// Decides conflicts in trees.
struct Referee<'a> {
    mirror: &'a Mirror,
    trees: Vec<Finder<'a>>,
}

impl Referee<'_> {
    /// The revocations of these results. All are fetched at once: any user may have added any number.
    fn revocations(&mut self, entries: &[Entry]) -> Result<RevocationIndex, MirrorError> {
        let mut files = HashSet::new();
        for tree in &mut self.trees {
            for entry in entries {
                let all = tree.files_in(&revocations(entry))?.into_iter();
                files.extend(all.filter(|(path, _)| of_revocation(path).is_some()));
            }
        }
        self.mirror.fetch_files(&files.iter().map(|(_, id)| id.clone()).collect::<Vec<_>>())?;
        let mut index = RevocationIndex::default();
        for (path, id) in files {
            index.extend(read_revocation(self.mirror, &path, &id)?);
        }
        Ok(index)
    }

    fn settle(
        &mut self,
        conflict: Conflict,
        revoked: &RevocationIndex,
    ) -> Result<SettledConflict, MirrorError> {
        let [mut first, mut second] = [None, None];
        let entry = Entry::of_record(&conflict.path);
        if let Some(entry) = &entry {
            for (record, id) in [&mut first, &mut second].into_iter().zip(&conflict.ids) {
                *record = self.record(entry, id)?;
            }
        }
        let (Some(entry), Some(first), Some(second)) = (entry, first, second) else {
            let comparison = RecordComparison::Differs;
            return Ok(SettledConflict { conflict, comparison, lost: Vec::new() });
        };
        let comparison = match (&first, &second) {
            (Record::Call(ours), Record::Call(theirs)) if ours.outputs == theirs.outputs => {
                if theirs.origin.is_isolated() && !ours.origin.is_isolated() {
                    RecordComparison::Better
                } else {
                    RecordComparison::Equal
                }
            }
            (Record::Call(_), Record::Call(_)) => {
                let [ours, theirs] = [&first, &second].map(Record::outputs);
                if revoked.reason(&entry, &ours).is_some()
                    && revoked.reason(&entry, &theirs).is_none()
                {
                    RecordComparison::Supersedes
                } else {
                    RecordComparison::Differs
                }
            }
            (Record::Job(ours), Record::Job(theirs)) => {
                if self.is_stale(ours)? && !self.is_stale(theirs)? {
                    RecordComparison::Supersedes
                } else {
                    RecordComparison::Differs
                }
            }
            _ => RecordComparison::Differs,
        };
        let lost = match comparison {
            RecordComparison::Equal => Vec::new(),
            RecordComparison::Better => vec![entry.record()],
            RecordComparison::Supersedes => lost(&entry, &first, &second),
            RecordComparison::Differs => lost(&entry, &second, &first),
        };
        Ok(SettledConflict { conflict, comparison, lost })
    }

    /// The record of a result. `None` if the file is not a record of it, or exceeds the size limit.
    fn record(&self, entry: &Entry, id: &ObjectId) -> Result<Option<Record>, MirrorError> {
        let limit = if matches!(entry, Entry::Call(_)) { MAX_SMALL } else { MAX_RECORD };
        let text = self.mirror.contents(id, limit)?;
        Ok(text.and_then(|text| Record::of_shared(entry, &text)))
    }

    /// Whether a job was made from revoked outputs, as far as names say: one of its outputs is one of these, or a call of it reads one.
    fn is_stale(&mut self, job: &JobRecord) -> Result<bool, MirrorError> {
        let mut calls = Vec::new();
        for call in job.calls.iter().filter_map(|call| Entry::of_short(call)) {
            for tree in &mut self.trees {
                if tree.find(&revocations(&call))?.is_some() {
                    calls.push(call);
                    break;
                }
            }
        }
        if calls.is_empty() {
            return Ok(false);
        }
        let revoked = self.revocations(&calls)?;
        let mut wrong: HashSet<Digest> =
            revoked.all().flat_map(|it| it.record.outputs.iter().copied()).collect();
        // The record that has the place now may have some of these outputs, too.
        let mut records = Vec::new();
        for tree in &mut self.trees {
            for call in &calls {
                records.extend(tree.file(&call.record())?.map(|id| (call, id)));
            }
        }
        self.mirror.fetch_files(&records.iter().map(|(_, id)| id.clone()).collect::<Vec<_>>())?;
        for (call, id) in records {
            let Some(record) = self.record(call, &id)? else { continue };
            let outputs = record.outputs();
            if revoked.reason(call, &outputs).is_none() {
                wrong.retain(|it| !outputs.contains(it));
            }
        }
        let short: HashSet<String> = wrong.iter().map(|it| it.sha1.short()).collect();
        Ok(job.outputs.iter().any(|it| wrong.contains(&it.digest))
            || job.calls.iter().any(|call| call.split(['/', '_']).any(|part| short.contains(part))))
    }
}

/// The paths of files that only the loser's record gives a meaning. Archives are named by their contents, so other
/// results may share them.
fn lost(entry: &Entry, loser: &Record, winner: &Record) -> Vec<String> {
    let mut files = vec![entry.record()];
    match entry {
        Entry::Call(name) => files.extend([name.away(), name.log()]),
        Entry::Job(name) => files.push(name.away()),
        Entry::Table(_) | Entry::TaskInput(_) => {}
    }
    let kept = entry.expected_files(winner);
    let values = entry
        .expected_files(loser)
        .into_iter()
        .filter(|it| !it.digest.is_directory() && !kept.contains(it));
    files.extend(values.map(|it| place(&it)));
    files
}

/// Reads a revocation, whose file is here. `None` if it is not named by its contents, or cannot be understood.
pub(super) fn read_revocation(
    mirror: &Mirror,
    path: &str,
    id: &ObjectId,
) -> Result<Option<Revocation>, MirrorError> {
    let text = mirror.contents(id, MAX_SMALL)?;
    Ok(text.and_then(|text| Revocation::of_file(path, text)))
}
