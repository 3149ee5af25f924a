//! The check of `access`, before anything is executed.

use std::error::Error as _;
use std::path::Path;

use super::RunOptions;
use ce_executor::Sandbox;
use ce_model::exit::Explain;
use ce_model::task::Task;
use ce_task::load::{self, Exposed, LoadError};

impl RunOptions {
    /// Checks that this host has what the files `access` of a task's computations say.
    ///
    /// # Errors
    ///
    /// Returns all that is missing: granted paths, and isolation for a root.
    pub fn check_access(&self, dir: &Path, task: &Task) -> Result<(), LoadError> {
        load::check_access(dir, task, self.exposed(task).as_ref())
    }

    /// Returns why computations are not isolated. Isolation is tried for a task with a root only: others
    /// are executed without it where it is not possible.
    fn exposed(&self, task: &Task) -> Option<Exposed> {
        if !self.isolate {
            let reason = "which is turned off".to_owned();
            let hint = "leave out --no-isolate, or give --isolate if compeval.isolate is false";
            return Some(Exposed { reason, hint: Some(hint.to_owned()) });
        }
        let sandbox = Sandbox::default();
        let mut accesses = task.computations.iter().map(|computation| &computation.access);
        if accesses.all(|access| access.root().is_none()) || sandbox.is_possible() {
            return None;
        }
        let error = sandbox.refused()?;
        let because = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
        let reason = format!("which is not possible here: {error}{because}");
        Some(Exposed { reason, hint: error.hint() })
    }
}
