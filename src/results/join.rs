//! Joining results: the union of the names. The first has the place where two differ, and the record of the other stands in
//! `differs/`.
//!
//! Only directories are compared that both have and that are not the same. So joining ten new results to a hundred thousand
//! costs as much as joining ten.

use std::collections::BTreeMap;

use super::layout::{MAX_PATH, MAX_RECORD, differs, is_record};
use crate::digest::ObjectId;
use crate::git::{Mirror, MirrorEntry, MirrorError, MirrorKind, PackWriter, UnwrittenTree};
use crate::storage::records::CallRecord;

/// The union of two trees.
#[derive(Debug)]
pub(super) struct Joined {
    /// The tree.
    pub(super) tree: ObjectId,
    /// The paths of records that differ in both, with the id of the one that has lost the place.
    pub(super) differing: Vec<(String, ObjectId)>,
}

/// Two records of one result.
struct Conflict {
    place: String,
    first: ObjectId,
    second: ObjectId,
}

/// Joins two trees. The first one has precedence.
///
/// All records of a result that differ stand in `differs/`, also the one that has the place. So the set of records is the
/// same in whichever order trees join.
pub(super) fn join(
    mirror: &Mirror,
    first: &ObjectId,
    second: &ObjectId,
) -> Result<Joined, MirrorError> {
    let mut conflicts = Vec::new();
    let tree = united(mirror, first, second, &mut conflicts)?;
    let ids: Vec<ObjectId> =
        conflicts.iter().flat_map(|it| [it.first.clone(), it.second.clone()]).collect();
    mirror.fetch_files(&ids)?;
    let (mut changed, mut differing) = (UnwrittenTree::new(), Vec::new());
    let own = |error| mirror.own(error);
    let mut insert = |path: &str, id: &ObjectId| changed.insert(path, id).map_err(own);
    for Conflict { place, first, second } in conflicts {
        match compare(mirror, &first, &second)? {
            RecordComparison::Equal => continue,
            RecordComparison::Better => {
                insert(&place, &second)?;
                continue;
            }
            RecordComparison::Differs => {}
        }
        for id in [&first, &second] {
            insert(&format!("{}/{}.json", differs(&place), id.full()), id)?;
        }
        differing.push((place, second));
    }
    if changed.is_empty() {
        return Ok(Joined { tree, differing });
    }
    let mut writer = mirror.writer();
    let changed = changed.write(&mut writer).map_err(own)?;
    writer.finish().map_err(own)?;
    Ok(Joined { tree: united(mirror, &changed, &tree, &mut Vec::new())?, differing })
}

/// How a record compares with the one in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordComparison {
    /// It has the same outputs.
    Equal,
    /// It has the same outputs, and an isolated execution has made them, which serves more commits.
    Better,
    /// It has other outputs, or one of both is no record of a call.
    Differs,
}

/// Compares a second record with the first one. Their files are here.
pub(super) fn compare(
    mirror: &Mirror,
    first: &ObjectId,
    second: &ObjectId,
) -> Result<RecordComparison, MirrorError> {
    let record = |id: &ObjectId| {
        let text = mirror.contents(id, MAX_RECORD)?;
        Ok::<_, MirrorError>(text.and_then(|text| CallRecord::of_shared(&text)))
    };
    Ok(match (record(first)?, record(second)?) {
        (Some(ours), Some(theirs)) if ours.outputs == theirs.outputs => {
            match theirs.origin.is_isolated() && !ours.origin.is_isolated() {
                true => RecordComparison::Better,
                false => RecordComparison::Equal,
            }
        }
        _ => RecordComparison::Differs,
    })
}

/// The union of two trees, in which the first one has each place that both have. Lists the records in these places.
fn united(
    mirror: &Mirror,
    first: &ObjectId,
    second: &ObjectId,
    conflicts: &mut Vec<Conflict>,
) -> Result<ObjectId, MirrorError> {
    let mut writer = mirror.writer();
    let tree = unite(mirror, &mut writer, "", [first, second], conflicts)?;
    writer.finish().map_err(|error| mirror.own(error))?;
    Ok(tree)
}

/// Unites two directories of this path. Names in a storage have few slashes, so this goes not deep; those that somebody has made
/// to exhaust the stack are an error.
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
    for theirs in mirror.entries(second)? {
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
            [MirrorKind::Blob, MirrorKind::Blob] if is_record(&place) => {
                conflicts.push(Conflict { place, first: ours.id.clone(), second: theirs.id });
            }
            _ => {}
        }
    }
    let entries: Vec<MirrorEntry> = entries.into_values().collect();
    writer.tree(&entries).map_err(|error| mirror.own(error))
}
