//! Directories with many entries: each push writes those anew that it adds to.

use std::collections::HashMap;

use ce_git::{Mirror, MirrorError};
use ce_model::digest::ObjectId;

/// The number of entries of a directory above which servers and pushes become slow. GitHub recommends at most 3,000.
const CROWDED: usize = 10_000;

/// A directory of a results repository with many entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrowdedDirectory {
    /// Its path.
    pub path: String,
    /// The number of its entries.
    pub entries: usize,
}

/// The largest of the directories that two trees do not share, if it has too many entries. Other directories are not looked at.
pub(super) fn crowded(
    mirror: &Mirror,
    base: Option<&ObjectId>,
    tree: &ObjectId,
) -> Result<Option<CrowdedDirectory>, MirrorError> {
    let mut largest: Option<CrowdedDirectory> = None;
    let mut waiting = vec![(String::new(), base.cloned(), tree.clone())];
    while let Some((path, base, tree)) = waiting.pop() {
        if base.as_ref() == Some(&tree) {
            continue;
        }
        let (entries, directories) = mirror.directories(&tree)?;
        if entries > largest.as_ref().map_or(CROWDED, |it| it.entries) {
            largest = Some(CrowdedDirectory { path: path.clone(), entries });
        }
        let before = base.map(|base| mirror.directories(&base)).transpose()?;
        let mut before: HashMap<String, ObjectId> =
            before.into_iter().flat_map(|(_, directories)| directories).collect();
        for (name, id) in directories {
            waiting.push((format!("{path}{name}/"), before.remove(&name), id));
        }
    }
    Ok(largest)
}
