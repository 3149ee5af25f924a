//! Two records of one result, and which of them has its place.

use std::collections::HashSet;

use super::layout::{MAX_RECORD, place};
use super::tree_search::Finder;
use ce_git::{Mirror, MirrorError};
use ce_model::digest::{Digest, ObjectId};
use ce_storage::records::JobRecord;
use ce_storage::{
    Entry, ExpectedFile, Record, Revocation, RevocationIndex, of_revocation, revocations,
};

/// The greatest size of a revocation, and of the record of a call that differs from another one, in bytes.
const MAX_SMALL: u64 = 1 << 20;

/// Two records of one result.
#[derive(Debug)]
pub(super) struct Conflict {
    /// Their path.
    pub(super) path: String,
    /// Their ids: that of the one that has the place, and that of another one.
    pub(super) ids: [ObjectId; 2],
}

/// How the other record compares with the one in the place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordComparison {
    /// It has the same outputs.
    Equal,
    /// It has the same outputs, and an isolated execution has made them, which serves more commits.
    Better,
    /// It has other outputs, and those of the one in the place are revoked, and not its own.
    Supersedes,
    /// It has other outputs, or one of both is no record.
    Differs,
}

/// A conflict, and how it ends.
#[derive(Debug)]
pub(super) struct SettledConflict {
    /// The conflict.
    pub(super) conflict: Conflict,
    /// How the other record compares with the one in the place.
    pub(super) comparison: RecordComparison,
    /// The paths of what means something only with the record that has lost: that, its log, and outputs that the other one does not have.
    pub(super) lost: Vec<String>,
}

/// Settles conflicts by the revocations in these trees, whoever has signed them.
pub(super) fn settled(
    mirror: &Mirror,
    trees: &[&ObjectId],
    conflicts: Vec<Conflict>,
) -> Result<Vec<SettledConflict>, MirrorError> {
    let finder = |tree: &&ObjectId| Finder::new(mirror, Some((*tree).clone()));
    let mut referee = Referee { mirror, trees: trees.iter().map(finder).collect() };
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
    /// The revocations of these results. All are fetched at once: anybody may have added any number.
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
                match theirs.origin.is_isolated() && !ours.origin.is_isolated() {
                    true => RecordComparison::Better,
                    false => RecordComparison::Equal,
                }
            }
            (Record::Call(_), Record::Call(_)) => {
                let is_revoked = |it| revoked.reason(&entry, &entry.outputs(it)).is_some();
                match is_revoked(&first) && !is_revoked(&second) {
                    true => RecordComparison::Supersedes,
                    false => RecordComparison::Differs,
                }
            }
            (Record::Job(ours), Record::Job(theirs)) => {
                match self.is_stale(ours)? && !self.is_stale(theirs)? {
                    true => RecordComparison::Supersedes,
                    false => RecordComparison::Differs,
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

    /// The record of a result. `None` if the file is none, or larger than any.
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
        // What has the place now may have some of these outputs, too.
        let mut records = Vec::new();
        for tree in &mut self.trees {
            for call in &calls {
                records.extend(tree.file(&call.record())?.map(|id| (call, id)));
            }
        }
        self.mirror.fetch_files(&records.iter().map(|(_, id)| id.clone()).collect::<Vec<_>>())?;
        for (call, id) in records {
            let Some(record) = self.record(call, &id)? else { continue };
            let outputs = call.outputs(&record);
            if revoked.reason(call, &outputs).is_none() {
                wrong.retain(|it| !outputs.contains(it));
            }
        }
        let short: HashSet<String> = wrong.iter().map(|it| it.sha1.short()).collect();
        let reads = |call: &String| call.split(['/', '_']).any(|part| short.contains(part));
        Ok(job.outputs.iter().any(|it| wrong.contains(&it.digest)) || job.calls.iter().any(reads))
    }
}

/// The paths of what means something only with the record of the loser. Archives are named by their contents, and may be those of others, too.
fn lost(entry: &Entry, loser: &Record, winner: &Record) -> Vec<String> {
    let mut files = vec![entry.record()];
    match entry {
        Entry::Call(name) => files.extend([name.away(), name.log()]),
        Entry::Job(name) => files.push(name.away()),
        Entry::Table(_) | Entry::TaskInput(_) => {}
    }
    let kept = entry.expected_files(winner);
    let is_lost = |it: &ExpectedFile| !it.digest.is_directory() && !kept.contains(it);
    let values = entry.expected_files(loser).into_iter().filter(is_lost);
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
