//! Shallow clones: repositories whose history is cut off.

use gix::Repository;

use super::GitResult;
use ce_model::digest::SHORT;
use ce_model::exit::Explain;

/// The number of commits of a border that are named.
const NAMED: usize = 3;

/// A revision that is not there, in a repository whose history is cut off.
#[derive(Debug, thiserror::Error)]
#[error("{why}: the repository is a shallow clone, whose history ends at the commit {border}")]
pub(super) struct CutOff {
    /// Why it is not there, in words.
    pub(super) why: String,
    /// The commits without their parents.
    pub(super) border: String,
}

impl Explain for CutOff {
    fn hint(&self) -> Option<String> {
        let hint = "git fetch --unshallow";
        Some(hint.to_owned())
    }
}

/// The first digits of the commits whose parents a repository lacks; `None` unless it is a shallow clone.
pub(super) fn border(repository: &Repository) -> GitResult<Option<String>> {
    let Some(commits) = repository.shallow_commits()? else { return Ok(None) };
    let mut names: Vec<String> =
        commits.iter().map(|commit| commit.to_hex_with_len(SHORT).to_string()).collect();
    names.sort();
    if let Some(more @ 1..) = names.len().checked_sub(NAMED) {
        names.truncate(NAMED);
        names.push(format!("and {more} more"));
    }
    Ok(Some(names.join(", ")))
}
