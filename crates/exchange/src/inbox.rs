//! Inboxes: references with results that somebody else is to take into the results of a repository.

use super::layout::TOP;
use ce_git::{Mirror, MirrorError, MirrorKind};
use ce_model::digest::ObjectId;
use ce_storage::is_users_file;

/// Finds a name in a tree that no results repository has, such as a program or a workflow of a server; `None` if there is none.
/// What a known tree has is not looked at again.
pub(super) fn strange_name(
    mirror: &Mirror,
    known: Option<&ObjectId>,
    tree: &ObjectId,
) -> Result<Option<String>, MirrorError> {
    let mut waiting = vec![(String::new(), known.cloned(), tree.clone())];
    while let Some((path, known, tree)) = waiting.pop() {
        let known = known.map(|known| mirror.entries(&known)).transpose()?.unwrap_or_default();
        for entry in mirror.entries(&tree)? {
            let before = known.iter().find(|it| it.name == entry.name);
            if before == Some(&entry) {
                continue;
            }
            let place = format!("{path}{}", entry.name);
            match entry.kind {
                MirrorKind::Tree => {
                    let before = before.filter(|it| it.kind == MirrorKind::Tree);
                    waiting.push((format!("{place}/"), before.map(|it| it.id.clone()), entry.id));
                }
                MirrorKind::Blob if is_expected(&place) => {}
                MirrorKind::Blob | MirrorKind::Other => return Ok(Some(place)),
            }
        }
    }
    Ok(None)
}

/// Whether a results repository may have a file of this name.
fn is_expected(path: &str) -> bool {
    let top = path.split('/').next().unwrap_or_default();
    let is_result = ["c_", "t_"].iter().any(|prefix| top.starts_with(prefix))
        || ["tables", "directories", "ledger", "differs", "revoked", "tinputs"].contains(&top);
    let is_hidden = path.split('/').any(|component| component.starts_with('.'));
    let is_deep = path.contains('/');
    is_result && is_deep && !is_hidden
        || is_users_file(path)
        || TOP.iter().any(|(name, _)| *name == path)
}
