//! Which results of a storage repositories have, so that they need not be here.

use std::collections::HashMap;

use super::ResultsError;
use super::finder::Finder;
use super::layout::{ResultsBranch, place, stored_size};
use super::selection::MAX_LIMIT;
use crate::git::Mirror;
use crate::storage::{Entry, ExpectedFile, Record, Storage};

/// The number of repositories that have each of these results whole. Each file here is read and compared with its record, and
/// the one there has to have the id of these contents.
///
/// # Errors
///
/// Fails if a repository or the storage cannot be read.
pub fn copies<'a>(
    storage: &Storage,
    mirrors: &[Mirror],
    results: impl Iterator<Item = (&'a Entry, &'a Record)>,
) -> Result<HashMap<&'a Entry, usize>, ResultsError> {
    let mut finders = Vec::with_capacity(mirrors.len());
    for mirror in mirrors {
        let branch = ResultsBranch::of(&mirror.list(&ResultsBranch::PATTERNS)?);
        if let Some(tip) = &branch.tip {
            mirror.fetch(std::slice::from_ref(tip))?;
            finders.push((mirror, Finder::new(mirror, Some(mirror.tree_of(&tip.id)?))));
        }
    }
    let mut copies = HashMap::new();
    for (entry, record) in results {
        let Some(shared) = record.shared() else { continue };
        let files = entry.expected_files(&shared);
        let is_large = |file: &ExpectedFile| stored_size(&file.digest) > MAX_LIMIT;
        if files.iter().any(is_large) {
            continue;
        }
        let mut having: Vec<usize> = Vec::new();
        for (at, (mirror, finder)) in finders.iter_mut().enumerate() {
            let id = mirror.blob_hash().of(&shared.text());
            if id.is_some() && finder.file(&entry.record())? == id {
                having.push(at);
            }
        }
        for file in &files {
            if having.is_empty() {
                break;
            }
            // What is not as recorded may be nowhere else.
            let contents = storage.shared_contents(file)?;
            let mut still = Vec::with_capacity(having.len());
            for at in having {
                let (mirror, finder) = &mut finders[at];
                let id = contents.as_ref().and_then(|it| mirror.blob_hash().of(it));
                if id.is_some() && finder.file(&place(file))? == id {
                    still.push(at);
                }
            }
            having = still;
        }
        copies.insert(entry, having.len());
    }
    Ok(copies)
}
