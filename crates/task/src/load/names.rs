//! The names in a task, for somebody who is typing one: nothing is checked that is not needed for them.

use std::path::Path;

use super::problems::Problems;
use super::worktree::WorkTree;
use super::{Uncommitted, inputs, library};
use ce_git::{Config, Snapshot};
use ce_model::task::name::{ComputationName, InputName};

/// Returns the inputs of the task in a directory, as it is checked out or at a revision. There are none if
/// the task or its repository cannot be read, or is not trusted.
pub fn input_names(dir: &Path, at: Option<&str>) -> Vec<InputName> {
    let mut problems = Problems::default();
    let names = match at {
        Some(rev) => {
            Snapshot::open(dir, rev).ok().and_then(|mut it| inputs(&mut it, &mut problems))
        }
        None => work_tree(dir).and_then(|mut it| inputs(&mut it, &mut problems)),
    };
    names.unwrap_or_default()
}

/// Returns the computations of the task in a directory, as it is checked out. There are none if the task or
/// its repository cannot be read, or is not trusted.
pub fn computation_names(dir: &Path) -> Vec<ComputationName> {
    let names = work_tree(dir).map(|mut source| library::names(&mut source));
    let mut names: Vec<ComputationName> =
        names.unwrap_or_default().iter().filter_map(|name| name.parse().ok()).collect();
    names.sort();
    names
}

/// The task as it is checked out, if its repository is there and trusted.
fn work_tree(dir: &Path) -> Option<WorkTree> {
    let real = dir.canonicalize().ok()?;
    Config::of(&real).ok()?;
    Some(WorkTree::new(&real, Uncommitted::Ignore))
}
