//! Joining results: the union of the names. The first has the place where two differ, unless somebody has revoked it and not the
//! second one. Both records stand in `differs/`.
//!
//! Only directories are compared that both have and that are not the same. So joining ten new results to a hundred thousand
//! costs as much as joining ten.

use std::collections::{BTreeMap, HashSet};

use super::conflict::{Conflict, RecordComparison, SettledConflict, settled};
use super::layout::{MAX_PATH, differs, is_record};
use ce_git::{Mirror, MirrorEntry, MirrorError, MirrorKind, PackWriter, UnwrittenTree};
use ce_model::digest::ObjectId;

/// The union of two trees.
#[derive(Debug)]
pub(super) struct Joined {
    /// The tree.
    pub(super) tree: ObjectId,
    /// The paths of records that differ in both, where the second one has lost the place.
    pub(super) differing: Vec<String>,
}

/// Joins two trees. The first one has precedence.
///
/// All records of a result that differ stand in `differs/`, also the one that has the place. So the set of records is the
/// same in whichever order trees join. Of the one that has lost the place, nothing else is in the union.
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
fn without(
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
    // Links, programs and submodules are no results.
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
            // What hides a directory hides all that is in it.
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
