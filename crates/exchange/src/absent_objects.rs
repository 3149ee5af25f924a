//! Files that a push reads, and that are not in the mirror: those of older commits that have a new place, and those that are replaced.

use std::collections::HashMap;

use ce_git::{Mirror, MirrorEntry, MirrorError, MirrorKind};
use ce_model::digest::ObjectId;

/// Fetches the files of a tree that the trees of some commits do not have in the same places, and what these have there. `git push`
/// reads them, and fetches nothing by itself.
pub(super) fn fetch_unsent(
    mirror: &Mirror,
    tree: &ObjectId,
    commits: &[ObjectId],
) -> Result<(), MirrorError> {
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
                    // What it replaces is what `git` describes it by.
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
