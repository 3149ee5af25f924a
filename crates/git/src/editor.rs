//! The parts of a command that lets the user edit a text, as `git commit` does; and new repositories.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::{GitResult, open, top};

/// Returns the command of the user's editor, for a shell: what `git var GIT_EDITOR` says in the
/// repository that a directory is in. `None` if the terminal is dumb and nothing is configured.
///
/// # Errors
///
/// Fails if the repository's configuration cannot be read.
pub fn editor(dir: &Path) -> GitResult<Option<OsString>> {
    match top(dir) {
        Some(top) => Ok(open(&top)?.editor()?),
        None => Ok(["GIT_EDITOR", "VISUAL", "EDITOR"].into_iter().find_map(std::env::var_os)),
    }
}

/// Returns Git's own directory of the repository that a directory is in.
pub fn private_dir(dir: &Path) -> Option<PathBuf> {
    let repository = open(&top(dir)?).ok()?;
    Some(repository.git_dir().to_owned())
}

/// Makes an empty repository in a directory that may hold files.
///
/// # Errors
///
/// Fails if there is one, or it cannot be written.
pub fn create(dir: &Path) -> GitResult<()> {
    gix::init(dir)?;
    Ok(())
}
