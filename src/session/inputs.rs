//! What a task reads that no call makes: its inputs, given or by default, and its own files.

use std::iter;

use super::Error;
use crate::evaluate::{Evaluation, Files};
use crate::git::Trees;
use crate::storage::{Input, InputSource};
use crate::task::workflow::{FileContents, Task, TaskFile};

/// Returns where the contents of a task's inputs come from: an input that is not given is its default.
///
/// # Errors
///
/// Fails if an input is not given and has no default, or if Git's data cannot be read.
pub fn with_defaults(
    trees: &Trees,
    task: &Task,
    given: &[Option<InputSource>],
) -> Result<Vec<InputSource>, Error> {
    let mut sources = Vec::with_capacity(task.inputs.len());
    for (at, name) in task.inputs.iter().enumerate() {
        sources.push(match (given.get(at), task.defaults[at]) {
            (Some(Some(given)), _) => given.clone(),
            (_, Some(file)) => own_file(trees, &task.files[file.index()])?,
            (_, None) => return Err(Error::NotGiven(name.to_string())),
        });
    }
    Ok(sources)
}

/// Returns where the contents of a task's own files come from.
pub(super) fn own_files(trees: &Trees, task: &Task) -> Result<Vec<InputSource>, Error> {
    task.files.iter().map(|file| own_file(trees, file)).collect()
}

/// The repository, or the work tree if the file has changes that are not committed.
fn own_file(trees: &Trees, file: &TaskFile) -> Result<InputSource, Error> {
    match &file.contents {
        FileContents::Uncommitted(path) => Ok(InputSource::File(path.clone())),
        FileContents::Blob(id) => match trees.blob(id) {
            Ok(contents) => Ok(InputSource::Bytes(contents)),
            Err(source) => Err(Error::OwnFile { path: file.path.to_string(), source }),
        },
    }
}

/// Completes the files of a task, of which its own and its literals were found, with its inputs: those that were
/// given, in order, and its defaults for the others.
///
/// # Errors
///
/// Fails with what `missing` returns for an input that was not given and has no default.
pub(super) fn fill_in(
    task: &Task,
    files: Files,
    given: Vec<Option<Input>>,
    missing: impl Fn(String) -> Error,
) -> Result<Files, Error> {
    let mut inputs = Vec::with_capacity(task.inputs.len());
    let mut defaulted = Vec::with_capacity(task.inputs.len());
    let given = given.into_iter().chain(iter::repeat(None));
    for ((name, default), given) in task.inputs.iter().zip(&task.defaults).zip(given) {
        defaulted.push(given.is_none());
        let default = || default.map(|file| files.own[file.index()].clone());
        inputs.push(given.or_else(default).ok_or_else(|| missing(name.to_string()))?);
    }
    Ok(Files { inputs, defaulted, ..files })
}

/// Returns, for each input of a version of a task, what another version was given for that name.
pub(super) fn given_to(other: &Evaluation, task: &Task) -> Vec<Option<Input>> {
    let given = |name| {
        let at = other.task.inputs.iter().position(|known| known == name)?;
        (!other.files.defaulted[at]).then(|| other.files.inputs[at].clone())
    };
    task.inputs.iter().map(given).collect()
}
