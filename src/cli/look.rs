//! What is there of a task, when nothing is to be computed or written.

use std::path::Path;

use super::options::Given;
use crate::cache::Cache;
use crate::error::Error;
use crate::evaluate::{Evaluation, Files};
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
    Storage::existing(&given.storage)?;
    let storage = Storage::inspect(&given.storage, unrecorded)?.remembering(Cache::of_user());
    let read = || Files::new(task, plan, &given.inputs, &storage, false);
    let files = reading(true, || storage.taken_in(), read)?;
    let evaluation = Evaluation::of_what_is_there(dir, task, plan, &files, &storage)?;
    Ok((storage, files, evaluation))
}
