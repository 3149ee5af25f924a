//! What users call commits.

use std::path::Path;
use std::process::Command;

use gix::{ObjectId, Repository};

use super::GitResult;

/// Finds a revision as Git does. What gix does not understand, Git itself is asked for.
pub(super) fn commit(repository: &Repository, dir: &Path, rev: &str) -> GitResult<ObjectId> {
    let parse = || -> GitResult<ObjectId> {
        let object = repository.rev_parse_single(rev)?.object()?;
        Ok(object.peel_to_commit()?.id)
    };
    let error = match parse() {
        Ok(commit) => return Ok(commit),
        Err(error) => error,
    };
    let mut git = Command::new("git");
    git.arg("-C").arg(dir).args(["rev-parse", "--verify", "--quiet", "--end-of-options"]);
    match git.arg(format!("{rev}^{{commit}}")).output() {
        Ok(output) if output.status.success() => {
            Ok(ObjectId::from_hex(output.stdout.trim_ascii())?)
        }
        _ => Err(error),
    }
}
