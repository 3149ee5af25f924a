//! The Git trees that a task reads. Only the commits that the task records are read here.

use std::collections::HashMap;

use super::problems::{LoadFault, Problems};
use super::source::TaskSource;
use ce_model::task::name::TreeName;
use ce_model::task::template::Template;
use ce_model::task::workflow::{TaskTree, TaskTreeId, TreeCommit};

/// The trees found so far.
#[derive(Default)]
pub(super) struct TaskTrees {
    found: Vec<TaskTree>,
    /// By their names, and whether they are at the recorded commit.
    known: HashMap<(Template<TreeName>, bool), Option<TaskTreeId>>,
}

impl TaskTrees {
    pub(super) fn into_trees(self) -> Vec<TaskTree> {
        self.found
    }

    pub(super) fn all(&self) -> &[TaskTree] {
        &self.found
    }

    /// Adds a tree that was found before, unless it is there.
    pub(super) fn add(&mut self, tree: &TaskTree) -> Option<TaskTreeId> {
        let found = &mut self.found;
        let add = || {
            found.push(tree.clone());
            Some(TaskTreeId::at(found.len() - 1))
        };
        let is_recorded = tree.commit != TreeCommit::OfRevision;
        *self.known.entry((tree.name.clone(), is_recorded)).or_insert_with(add)
    }

    /// Returns the tree with this name, at the commit that the task records or at any. `None` if it has a
    /// problem, which is reported once.
    ///
    /// # Errors
    ///
    /// Fails, each time, if the task records none.
    pub(super) fn find(
        &mut self,
        source: &mut impl TaskSource,
        name: Template<TreeName>,
        is_recorded: bool,
        findings: &mut Problems,
    ) -> Result<Option<TaskTreeId>, LoadFault> {
        let key = (name, is_recorded);
        if let Some(known) = self.known.get(&key) {
            return Ok(*known);
        }
        let (name, _) = key;
        let repository = name.written().source();
        let commit = match is_recorded {
            false => Some(TreeCommit::OfRevision),
            true if name.is_open() => Some(TreeCommit::Unbound),
            true => match source.recorded(name.written()) {
                Err(LoadFault::Missing) => {
                    return Err(LoadFault::NoSubmodule(repository.to_owned()));
                }
                recorded => findings.note(repository.as_ref(), recorded).map(TreeCommit::Recorded),
            },
        };
        Ok(match commit {
            Some(commit) => self.add(&TaskTree { name, commit }),
            None => *self.known.entry((name, is_recorded)).or_insert(None),
        })
    }
}
