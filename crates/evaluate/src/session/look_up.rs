//! Looking for results without an execution.

use std::num::NonZeroUsize;
use std::path::Path;

use super::{Error, Frontend, Given, RunOptions, Session};
use crate::{EvaluateError, Evaluation, Evaluator};
use ce_git::Config;
use ce_model::task::Task;
use ce_storage::{Storage, Unrecorded};

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
    frontend: Frontend,
) -> Result<Evaluation, Error> {
    let session = inspect(dir, given, unrecorded, frontend)?;
    let evaluation = session.prepare(task, &given.inputs)?;
    look_only(&evaluation, NonZeroUsize::MIN)?;
    Ok(evaluation)
}

/// Looks for the results of two versions of a task, the older one first. That one has the inputs of the same names that
/// the newer one is given. An output that cannot be derived is no error. `titles` names both for errors.
///
/// # Errors
///
/// Fails if an input or the storage cannot be read, or if the older version has an input that the newer one lacks.
pub fn look_up_versions(
    dir: &Path,
    ([older, newer], titles): ([Task; 2], [&str; 2]),
    given: &Given,
    unrecorded: Unrecorded,
    frontend: Frontend,
) -> Result<[Evaluation; 2], Error> {
    let session = inspect(dir, given, unrecorded, frontend)?;
    let newer = session.prepare(newer, &given.inputs)?;
    let older = session.prepare_like(older, &newer, titles)?;
    for evaluation in [&older, &newer] {
        match look_only(evaluation, NonZeroUsize::MIN) {
            Ok(()) | Err(EvaluateError::Output(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok([older, newer])
}

/// A session in which nothing is computed.
fn inspect(
    dir: &Path,
    given: &Given,
    unrecorded: Unrecorded,
    frontend: Frontend,
) -> Result<Session, Error> {
    let Given { storage, repositories, .. } = given;
    Storage::existing(storage)?;
    let takeover = RunOptions::takeover(&Config::of(dir)?)?;
    let options = RunOptions { unrecorded, takeover, frontend, ..RunOptions::default() };
    Ok(Session::inspect(dir, storage, &options)?.reading(dir, repositories))
}

/// Looks for the results of all calls, in so many threads. Computes and writes nothing.
///
/// # Errors
///
/// Fails if threads cannot be started, or the storage cannot be read.
pub fn look_only(evaluation: &Evaluation, jobs: NonZeroUsize) -> Result<(), EvaluateError> {
    Evaluator { evaluation, execution: None, observe: &|_| {} }.evaluate(jobs)
}
