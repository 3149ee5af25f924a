//! Two records of one result, and which of them has its place.

use std::collections::HashSet;
use std::slice;

use super::finder::Finder;
use super::layout::{MAX_RECORD, place};
use crate::digest::{Digest, ObjectId};
use crate::git::{Mirror, MirrorError};
use crate::storage::{Entry, Record, Revocation, RevocationIndex, revocations};

/// The greatest size of a revocation, in bytes.
const MAX_REVOCATION: u64 = 1 << 20;

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
    /// It has other outputs, and somebody has revoked those of the one in the place, and not these.
    Right,
    /// It has other outputs, or one of both is no record of a call.
    Differs,
}

/// A conflict, and how it ends.
#[derive(Debug)]
pub(super) struct SettledConflict {
    /// The conflict.
    pub(super) conflict: Conflict,
    /// How the other record compares with the one in the place.
    pub(super) comparison: RecordComparison,
    /// The paths of both that mean something with their record only: its own, and those of its outputs and its log.
    pub(super) files: [Vec<String>; 2],
}

/// Settles conflicts by the revocations in these trees, whoever has signed them. Calls come first: of a job, the place goes to the
/// other record with that of one of its calls.
pub(super) fn settled(
    mirror: &Mirror,
    trees: &[&ObjectId],
    mut conflicts: Vec<Conflict>,
) -> Result<Vec<SettledConflict>, MirrorError> {
    let ids: Vec<ObjectId> = conflicts.iter().flat_map(|it| it.ids.iter().cloned()).collect();
    mirror.fetch_files(&ids)?;
    let finder = |tree: &&ObjectId| Finder::new(mirror, Some((*tree).clone()));
    let mut there: Vec<Finder<'_>> = trees.iter().map(finder).collect();
    conflicts.sort_by_key(|it| !matches!(Entry::of_record(&it.path), Some(Entry::Call(_))));
    let mut right = HashSet::new();
    let settled = conflicts.into_iter().map(|conflict| {
        let entry = Entry::of_record(&conflict.path);
        let [mut first, mut second] = [None, None];
        if let Some(entry) = &entry {
            for (record, id) in [&mut first, &mut second].into_iter().zip(&conflict.ids) {
                let text = mirror.contents(id, MAX_RECORD)?;
                *record = text.and_then(|text| Record::of_shared(entry, &text));
            }
        }
        let (Some(entry), Some(first), Some(second)) = (entry, first, second) else {
            let (comparison, files) = (RecordComparison::Differs, Default::default());
            return Ok(SettledConflict { conflict, comparison, files });
        };
        let comparison = match (&first, &second) {
            (Record::Call(ours), Record::Call(theirs)) if ours.outputs == theirs.outputs => {
                match theirs.origin.is_isolated() && !ours.origin.is_isolated() {
                    true => RecordComparison::Better,
                    false => RecordComparison::Equal,
                }
            }
            (Record::Call(_), Record::Call(_)) => {
                let mut is_revoked =
                    |it| is_revoked(mirror, &mut there, &entry, &entry.outputs(it));
                match is_revoked(&first)? && !is_revoked(&second)? {
                    true => RecordComparison::Right,
                    false => RecordComparison::Differs,
                }
            }
            (Record::Job(job), _) if job.calls.iter().any(|call| right.contains(call)) => {
                RecordComparison::Right
            }
            _ => RecordComparison::Differs,
        };
        if comparison == RecordComparison::Right {
            right.insert(entry.short());
        }
        let files = [first, second].map(|record| own_files(&entry, &record));
        Ok(SettledConflict { conflict, comparison, files })
    });
    settled.collect()
}

/// The paths of what means something with this record only.
fn own_files(entry: &Entry, record: &Record) -> Vec<String> {
    let mut files = vec![entry.record()];
    if let Entry::Call(name) = entry {
        files.extend([name.away(), name.log()]);
        // Archives are named by their contents, and may be those of others, too.
        let values = entry.expected_files(record).into_iter();
        files.extend(values.filter(|it| !it.digest.is_directory()).map(|it| place(&it)));
    }
    files
}

/// Whether any of these trees has a revocation of a result with these outputs, whoever has signed it.
fn is_revoked(
    mirror: &Mirror,
    there: &mut [Finder<'_>],
    entry: &Entry,
    outputs: &[Digest],
) -> Result<bool, MirrorError> {
    let mut index = RevocationIndex::default();
    for finder in there {
        for (path, id) in finder.files_in(&revocations(entry))? {
            mirror.fetch_files(slice::from_ref(&id))?;
            index.extend(read_revocation(mirror, &path, &id)?);
        }
    }
    Ok(index.reason(entry, outputs).is_some())
}

/// Reads a revocation, whose file is here. `None` if it is not named by its contents, or cannot be understood.
pub(super) fn read_revocation(
    mirror: &Mirror,
    path: &str,
    id: &ObjectId,
) -> Result<Option<Revocation>, MirrorError> {
    let text = mirror.contents(id, MAX_REVOCATION)?;
    Ok(text.and_then(|text| Revocation::of_file(path, text)))
}
