//! What is there of a task, when nothing is to be computed or written.

use std::io::{self, IsTerminal};
use std::num::NonZeroUsize;
use std::path::Path;

use super::options::Given;
use crate::cache::Cache;
use crate::error::Error;
use crate::evaluate::{Evaluation, Evaluator, Exports, Files};
use crate::git::Trees;
use crate::plan::Plan;
use crate::report::reading;
use crate::storage::{Storage, Unrecorded};
use crate::workflow::Task;

/// Looks for the results of all calls of a task in this directory.
pub(super) fn look(
    dir: &Path,
    task: &Task,
    plan: &Plan,
    given: &Given<'_>,
    unrecorded: Unrecorded,
) -> Result<(Storage, Files, Evaluation), Error> {
    let storage = Storage::inspect(&given.storage, unrecorded)?.remembering(Cache::of_user());
    let files = reading(
        io::stderr().is_terminal(),
        || storage.taken_in(),
        || Files::new(task, plan, &given.inputs, &storage, false),
    )?;
    let evaluation = Evaluation::new(plan);
    let trees = Trees::new(dir);
    Evaluator {
        task,
        plan,
        files: &files,
        storage: &storage,
        exports: &Exports::new(&storage, &trees),
        executor: None,
        retries: 0,
        observe: &|_| {},
    }
    .evaluate(&evaluation, NonZeroUsize::MIN)?;
    Ok((storage, files, evaluation))
}
