//! The directory of a computation that a run has exported: it is in no repository.

use std::path::Path;

use super::library::signature;
use super::problems::{Problem, Problems};
use super::source::TaskSource;
use super::worktree::WorkTree;
use ce_model::task::access::Access;
use ce_model::task::workflow::Uncommitted;

/// Returns the names of the inputs and outputs of the computation in a directory, and what it may access.
///
/// # Errors
///
/// Fails with the first problem of its files.
pub fn exported(dir: &Path) -> Result<(Vec<String>, Vec<String>, Access), Problem> {
    let mut findings = Problems::default();
    let mut source = WorkTree::new(dir, Uncommitted::Ignore);
    let read = match source.task() {
        Ok(place) => signature(&mut source, &place, Path::new(""), &mut findings),
        Err(fault) => return Err(Problem { path: dir.to_owned(), line: None, fault }),
    };
    match (read, findings.problems.into_iter().next()) {
        (_, Some(problem)) => Err(problem),
        ((inputs, outputs, access), None) => Ok((
            inputs.unwrap_or_default(),
            outputs.unwrap_or_default(),
            access.unwrap_or_default(),
        )),
    }
}
