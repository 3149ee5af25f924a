//! What a task reads that no call makes: its inputs, given or by default, and its own files.

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

/// Returns the files of a version of a task, of which only its own were found, with the inputs that
/// another version was given, by name. An input that was not given there is this version's default.
///
/// # Errors
///
/// Fails if an input was not given there and has no default here. `titles` names both versions.
pub(super) fn with_inputs_of(
    other: &Evaluation,
    task: &Task,
    own: Files,
    [takes, lacks]: [&str; 2],
) -> Result<Files, Error> {
    let mut inputs = Vec::with_capacity(task.inputs.len());
    let mut defaulted = Vec::with_capacity(task.inputs.len());
    for (name, default) in task.inputs.iter().zip(&task.defaults) {
        let at = other.task.inputs.iter().position(|known| known == name);
        let given = at.filter(|at| !other.files.defaulted[*at]).map(|at| &other.files.inputs[at]);
        let default = default.map(|file| &own.own[file.index()]);
        let input: &Input = given.or(default).ok_or_else(|| Error::NoInput {
            name: name.to_string(),
            takes: takes.to_owned(),
            lacks: lacks.to_owned(),
        })?;
        inputs.push(input.clone());
        defaulted.push(given.is_none());
    }
    Ok(Files { inputs, defaulted, ..own })
}
