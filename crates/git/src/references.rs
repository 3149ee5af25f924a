//! The names by which a repository knows its commits.

use std::path::Path;

use super::GitResult;
use super::repositories::Repositories;
use super::snapshot_error::SnapshotError;

/// Returns HEAD and the branches and tags of the repository that a directory is in, or is: the short name of
/// each, and its kind. Names that cannot be typed or look like options are left out.
///
/// # Errors
///
/// Fails if there is no repository, it is not trusted, or it cannot be read.
pub fn references(dir: &Path) -> Result<Vec<(String, &'static str)>, SnapshotError> {
    read(dir).map_err(SnapshotError::Git)
}

fn read(dir: &Path) -> GitResult<Vec<(String, &'static str)>> {
    let repository = Repositories::open(dir)?.task;
    let references = repository.references()?;
    let mut names = Vec::new();
    if !repository.head()?.is_unborn() {
        names.push(("HEAD".to_owned(), "checked out"));
    }
    for (found, kind) in [
        (references.local_branches()?, "branch"),
        (references.tags()?, "tag"),
        (references.remote_branches()?, "remote branch"),
    ] {
        // One that cannot be read hides no others.
        let found = found.filter_map(Result::ok).map(|it| it.name().shorten().to_string());
        names.extend(found.filter(|name| !name.starts_with('-')).map(|name| (name, kind)));
    }
    names.retain(|(name, _)| {
        !name.contains(|c: char| c.is_control() || c == char::REPLACEMENT_CHARACTER)
    });
    Ok(names)
}
