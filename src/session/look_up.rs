//! Looking for results without an execution.

use std::num::NonZeroUsize;
use std::path::Path;

use super::{Error, Given, RunOptions, Session};
use crate::evaluate::{Evaluation, Evaluator};
use crate::storage::{Storage, Unrecorded};
use crate::task::workflow::Task;

/// Looks for the results of all calls of a task in a storage that exists. Computes and writes nothing.
///
/// # Errors
///
/// Fails if an input or the storage cannot be read.
pub fn look_up(
    dir: &Path,
    task: Task,
    given: &Given,
    unrecorded: Unrecorded,
) -> Result<Evaluation, Error> {
    let Given { storage, inputs, repositories } = given;
    Storage::existing(storage)?;
    let options = RunOptions { unrecorded, ..RunOptions::default() };
    let session = Session::inspect(dir, storage, &options)?.reading(dir, repositories);
    let evaluation = session.prepare(task, inputs, true)?;
    let evaluator = Evaluator { evaluation: &evaluation, execution: None, observe: &|_| {} };
    evaluator.evaluate(NonZeroUsize::MIN)?;
    Ok(evaluation)
}
