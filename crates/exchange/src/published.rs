//! Which results of a storage repositories have, so that they need not be here.

use std::collections::HashMap;

use super::ResultsError;
use super::layout::{ResultsBranch, place, stored_size};
use super::push_summary::MAX_LIMIT;
use super::tree_search::Finder;
use ce_git::Mirror;
use ce_model::digest::ObjectId;
use ce_storage::{Entry, ExpectedFile, Record, Storage};

/// The number of repositories that have each of these results whole. Each file here is read and compared with its record, and
/// fetched from there anew: what a mirror has of earlier times says nothing about the repository of today.
///
/// # Errors
///
/// Fails if a repository or the storage cannot be read.
pub fn copies<'a>(
    storage: &Storage,
    mirrors: &mut [Mirror],
    results: impl Iterator<Item = (&'a Entry, &'a Record)>,
) -> Result<HashMap<&'a Entry, usize>, ResultsError> {
    let mut finders = Vec::with_capacity(mirrors.len());
    for mirror in mirrors {
        mirror.renew()?;
        let mirror = &*mirror;
        let branch = ResultsBranch::listed(mirror)?;
        if branch.tip.is_none() {
            return Err(ResultsError::Unpublished(mirror.url().to_owned()));
        }
        mirror.fetch(branch.tip.as_slice())?;
        finders.push((mirror, Finder::new(mirror, branch.tree(mirror)?)));
    }
    let mut promised = HashMap::new();
    for (entry, record) in results {
        let Some(shared) = record.shared() else { continue };
        let files = entry.expected_files(&shared);
        let is_large = |file: &ExpectedFile| stored_size(&file.digest) > MAX_LIMIT;
        if files.iter().any(is_large) {
            continue;
        }
        // The number of each repository that lists it, and the ids of all its files.
        let mut having: Vec<(usize, Vec<ObjectId>)> = Vec::new();
        for (at, (mirror, finder)) in finders.iter_mut().enumerate() {
            let id = mirror.blob_hash().of(&shared.text());
            having
                .extend(same(finder.file(&entry.record())?, id.as_ref()).map(|id| (at, vec![id])));
        }
        for file in &files {
            if having.is_empty() {
                break;
            }
            // What is not as recorded may be nowhere else.
            let contents = storage.values().shared_contents(file)?;
            let mut still = Vec::with_capacity(having.len());
            for (at, mut ids) in having {
                let (mirror, finder) = &mut finders[at];
                let id = contents.as_ref().and_then(|it| mirror.blob_hash().of(it));
                if let Some(id) = same(finder.file(&place(file))?, id.as_ref()) {
                    ids.push(id);
                    still.push((at, ids));
                }
            }
            having = still;
        }
        promised.insert(entry, having);
    }
    for (at, (mirror, _)) in finders.iter().enumerate() {
        let of_it = promised.values().flatten().filter(|(it, _)| *it == at);
        mirror.fetch_files(&of_it.flat_map(|(_, ids)| ids.clone()).collect::<Vec<_>>())?;
    }
    let is_there =
        |(at, ids): &&(usize, Vec<ObjectId>)| ids.iter().all(|id| finders[*at].0.has(id));
    Ok(promised
        .into_iter()
        .map(|(it, having)| (it, having.iter().filter(is_there).count()))
        .collect())
}

/// The id that a repository has for a file, if that is the one of the contents here.
fn same(there: Option<ObjectId>, here: Option<&ObjectId>) -> Option<ObjectId> {
    there.filter(|there| Some(there) == here)
}
