//! Computations that stand in the texts of workflows. No repository has their blobs: they are made of the texts of a commit when one
//! of them is needed.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use gix::objs::tree::EntryKind;
use gix::objs::{Kind, compute_hash};
use gix::{ObjectId, Repository};

use super::GitResult;
use super::objects::{blob, object, tree_of};
use ce_model::expression::parse;
use ce_model::task::{TextComputation, WORKFLOW_TEXT};

/// The suffix of all files that may be the text of a workflow: other files are not read to find a computation.
const TEXT_SUFFIX: &str = ".ce";

/// Whether a file may be read as the text of a workflow whose computations are found again.
pub fn is_text_name(path: &Path) -> bool {
    debug_assert!(WORKFLOW_TEXT.ends_with(TEXT_SUFFIX), "every workflow has it");
    path.as_os_str().as_bytes().ends_with(TEXT_SUFFIX.as_bytes())
}

/// The files that the computations in a text are. There are none if it cannot be read.
pub(super) fn files(text: &[u8]) -> Vec<String> {
    let parsed = std::str::from_utf8(text).ok().and_then(|text| parse(text).ok());
    let computations = parsed.map(|parsed| parsed.text.computations).unwrap_or_default();
    computations.iter().map(TextComputation::file).map(|file| file.contents).collect()
}

/// The id of the blob of a file.
pub(super) fn id_of(file: &str, hash: gix::hash::Kind) -> GitResult<ObjectId> {
    Ok(compute_hash(hash, Kind::Blob, file.as_bytes())?)
}

/// Files, and the first error of what could not be read.
type FoundFiles = (Vec<String>, Option<Box<dyn std::error::Error + Send + Sync>>);

/// The files of all computations in the texts of a commit, and why a part of it could not be read: what a partial clone has left out, or is
/// damaged, need not have what is looked for.
pub(super) fn files_at(repository: &Repository, commit: ObjectId) -> GitResult<FoundFiles> {
    let (mut found, mut unread) = (Vec::new(), None);
    let mut trees = vec![tree_of(repository, commit)?];
    while let Some(tree) = trees.pop() {
        let tree = match object(repository, tree) {
            Ok(tree) => tree,
            Err(error) => {
                unread.get_or_insert(error);
                continue;
            }
        };
        for entry in tree.try_into_tree()?.iter() {
            let entry = entry?;
            match entry.kind() {
                EntryKind::Tree => trees.push(entry.object_id()),
                EntryKind::Blob | EntryKind::BlobExecutable
                    if is_text_name(Path::new(OsStr::from_bytes(entry.filename()))) =>
                {
                    match blob(repository, entry.object_id()) {
                        Ok(text) => found.extend(files(&text)),
                        Err(error) => drop(unread.get_or_insert(error)),
                    }
                }
                EntryKind::Blob
                | EntryKind::BlobExecutable
                | EntryKind::Link
                | EntryKind::Commit => {}
            }
        }
    }
    Ok((found, unread))
}
