//! The repository of a directory, whichever of its work trees that is in.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::snapshot_error::SnapshotError;
use super::{GitResult, open, top};

/// The location of a repository, and its identity there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    /// The real path of its main work tree, or of the repository itself if it is bare.
    pub path: PathBuf,
    /// The inode of its Git directory.
    pub inode: u64,
}

impl Home {
    /// Finds the repository that a directory is in, or is.
    ///
    /// # Errors
    ///
    /// Fails if there is no such directory or repository, or that cannot be read.
    pub fn of(dir: &Path) -> Result<Self, SnapshotError> {
        find(dir).map_err(SnapshotError::Git)
    }
}

fn find(dir: &Path) -> GitResult<Home> {
    let real = dir.canonicalize()?;
    let work_tree = top(&real).unwrap_or(real);
    // A file leads to the Git directory of a submodule, or of a linked work tree.
    let is_linked = work_tree.join(".git").is_file();
    let main = if is_linked { main_work_tree(&work_tree)? } else { None };
    let path = main.unwrap_or(work_tree);
    let git = path.join(".git");
    let is_bare = path.join("HEAD").is_file() && !git.exists();
    let inode = fs::metadata(if is_bare { &path } else { &git })?.ino();
    Ok(Home { path, inode })
}

/// The main work tree of a linked one, or the repository if that is bare.
fn main_work_tree(linked: &Path) -> GitResult<Option<PathBuf>> {
    let repository = open(linked)?;
    let common = repository.common_dir().canonicalize()?;
    if common == repository.git_dir().canonicalize()? {
        return Ok(None);
    }
    let main = common.parent().filter(|_| common.ends_with(".git")).unwrap_or(&common).to_owned();
    // The Git directory of a submodule is within another repository.
    Ok(Some(main).filter(|main| top(main).is_none_or(|top| top == *main)))
}
