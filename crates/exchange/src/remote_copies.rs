//! The number of repositories that have a result, before it is made away here.

use std::collections::{HashMap, HashSet};

use ce_git::{LfsPointer, Mirror};
use ce_model::digest::ObjectId;
use ce_storage::{Entry, ExpectedFile, Record, Storage, large_name};

use crate::ResultsError;
use crate::lfs::{pointer_of, stored_objects};
use crate::repository::{Finder, MAX_LIMIT, ResultsBranch, place, stored_size};

/// A repository that may have a result whole.
struct CopyCandidate {
    /// Its number.
    at: usize,
    /// The ids of the record and of the files there.
    ids: Vec<ObjectId>,
    /// Its Git LFS objects.
    pointers: Vec<LfsPointer>,
}

/// The number of repositories that have each of these results whole. Each file here is read and compared with its
/// record, and fetched from there anew: old files in a mirror prove nothing about the repository of today. A Git LFS
/// object is not fetched if its store is believed.
pub fn copies<'a>(
    storage: &Storage,
    mirrors: &mut [Mirror],
    results: impl Iterator<Item = (&'a Entry, &'a Record)>,
    is_believed: bool,
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
        let mut having = Vec::new();
        for (at, (mirror, finder)) in finders.iter_mut().enumerate() {
            let id = mirror.blob_hash().compute_id(&shared.text());
            let record = same(finder.file(&entry.record())?, id.as_ref());
            having.extend(record.map(|id| CopyCandidate {
                at,
                ids: vec![id],
                pointers: Vec::new(),
            }));
        }
        for file in entry.expected_files(&shared) {
            if having.is_empty() {
                break;
            }
            having = having_file(storage, &mut finders, having, &file)?;
        }
        promised.insert(entry, having);
    }
    let mut objects = Vec::with_capacity(finders.len());
    for (at, (mirror, _)) in finders.iter().enumerate() {
        let of_it = || promised.values().flatten().filter(|it| it.at == at);
        mirror.fetch_files(&of_it().flat_map(|it| it.ids.clone()).collect::<Vec<_>>())?;
        let pointers: HashSet<LfsPointer> = of_it().flat_map(|it| it.pointers.clone()).collect();
        objects.push(if is_believed {
            pointers
        } else {
            stored_objects(storage, mirror, pointers)?
        });
    }
    let mut copies = HashMap::new();
    for (entry, having) in promised {
        let whole = having.iter().filter(|CopyCandidate { at, ids, pointers }| {
            ids.iter().all(|id| finders[*at].0.has(id))
                && pointers.iter().all(|pointer| objects[*at].contains(pointer))
        });
        copies.insert(entry, whole.count());
    }
    Ok(copies)
}

/// The repositories that have a file, in Git or as an object, with the contents that it has here. A file that differs
/// from its record may be nowhere else.
fn having_file(
    storage: &Storage,
    finders: &mut [(&Mirror, Finder<'_>)],
    having: Vec<CopyCandidate>,
    file: &ExpectedFile,
) -> Result<Vec<CopyCandidate>, ResultsError> {
    let contents = match stored_size(&file.digest) {
        size if size > MAX_LIMIT => None,
        _ => storage.values().shared_contents(file)?,
    };
    // It is hashed only where there is a pointer.
    let mut pointer = None;
    let mut still = Vec::with_capacity(having.len());
    for mut candidate in having {
        let (mirror, finder) = &mut finders[candidate.at];
        let hash = mirror.blob_hash();
        let id = contents.as_ref().and_then(|it| hash.compute_id(it));
        if let Some(id) = same(finder.file(&place(file))?, id.as_ref()) {
            candidate.ids.push(id);
            still.push(candidate);
            continue;
        }
        let Some(there) = finder.file(&large_name(&file.digest))? else { continue };
        let pointer = match &pointer {
            Some(pointer) => pointer,
            None => pointer.insert(pointer_of(storage, file)?),
        };
        let Some(pointer) = pointer else { continue };
        if same(Some(there), hash.compute_id(pointer.text().as_bytes()).as_ref()).is_some() {
            candidate.pointers.push(pointer.clone());
            still.push(candidate);
        }
    }
    Ok(still)
}

/// The id that a repository has for a file, if that is the one of the contents here.
fn same(there: Option<ObjectId>, here: Option<&ObjectId>) -> Option<ObjectId> {
    there.filter(|there| Some(there) == here)
}
