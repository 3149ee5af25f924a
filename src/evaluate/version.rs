//! The versions by which a storage knows the computations and tasks of a workflow.

use crate::storage::{ComputationVersion, TaskVersion};
use crate::task::workflow::{Computation, Task};

impl<'a> From<&'a Computation> for ComputationVersion<'a> {
    fn from(computation: &'a Computation) -> Self {
        let Computation { name, commit, tree, dirty, .. } = computation;
        Self { computation: name, commit, tree, dirty: *dirty }
    }
}

impl<'a> From<&'a Task> for TaskVersion<'a> {
    fn from(task: &'a Task) -> Self {
        Self::new(&task.name, &task.commit, &task.place)
    }
}
