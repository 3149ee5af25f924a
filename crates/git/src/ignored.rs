//! Whether Git ignores a directory.

use std::path::{Path, PathBuf};

use gix::index::entry::Mode;
use gix::worktree::stack::state::ignore::Source;

use super::status::own_index;
use super::{GitResult, open, top};

/// The path of a directory within the work tree that it is in, if Git would add its files with the others there.
///
/// `None` if it is in none, is the top of one, or is ignored; or if that cannot be found out: no more than a warning may depend
/// on it.
pub fn unignored(dir: &Path) -> Option<PathBuf> {
    find(dir).ok().flatten()
}

fn find(dir: &Path) -> GitResult<Option<PathBuf>> {
    let real = dir.canonicalize()?;
    let Some(top) = top(&real).filter(|top| *top != real) else { return Ok(None) };
    let path = real.strip_prefix(&top)?;
    let repository = open(&top)?;
    let index = own_index(&repository)?;
    let source = Source::WorktreeThenIdMappingIfNotSkipped;
    let mut ignored = repository.excludes(&index, None, source)?;
    let is_ignored = ignored.at_path(path, Some(Mode::DIR))?.is_excluded();
    Ok((!is_ignored).then(|| path.to_owned()))
}
