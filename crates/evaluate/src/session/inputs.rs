//! The values that a task reads and no call makes: its inputs, given or by default, and its own files.

use std::fs::{self, File};
use std::io::{self, Read};
use std::iter;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::{Error, InputError};
use crate::{Evaluation, Files, Texts, ValueError};
use ce_files::manifest::Scan;
use ce_git::{SourceError, SourceRepositories, Trees};
use ce_model::digest::Digest;
use ce_model::name::InputName;
use ce_model::task::{FileContents, InputId, RecordedTree, Task, TaskFile, TaskTree, TreeCommit};
use ce_model::template::MAX_TEXT;
use ce_storage::{Input, InputSource, StorageError};
use ce_task::load;

/// Returns a task without free names, and its given inputs: those whose texts were read have their contents
/// in place of a file, since a pipe can be read only once.
///
/// # Errors
///
/// Fails if an input whose text is needed is not given and has no default, or cannot be read, or if a value
/// of the task is wrong with these texts.
pub fn bind(
    trees: &Trees,
    task: Task,
    given: &[Option<InputSource>],
) -> Result<(Task, Vec<Option<InputSource>>), Error> {
    let mut given = given.to_vec();
    let contents = named_contents(trees, &task, &given, InputError::NotGiven)?;
    for (source, contents) in given.iter_mut().zip(&contents) {
        if let (Some(source), Some(contents)) = (source, contents) {
            *source = InputSource::Bytes(contents.clone());
        }
    }
    Ok((load::bind(trees.dir(), task, &contents)?, given))
}

/// Does the same for a version of a task, with what another version was given.
pub(super) fn bind_like(
    trees: &Trees,
    task: Task,
    other: &Evaluation,
    missing: impl Fn(String) -> InputError,
) -> Result<Task, Error> {
    if task.is_bound() {
        return Ok(task);
    }
    let source = |(source, input): (InputSource, Input)| match source {
        InputSource::File(_) if input.there => {
            InputSource::File(other.storage.path(&input.file.name))
        }
        source => source,
    };
    let given: Vec<_> = given_to(other, &task).into_iter().map(|it| it.map(source)).collect();
    for (name, source) in task.free_names().map(|id| (&task.inputs[id.index()], &given[id.index()]))
    {
        if let Some(InputSource::File(path)) = source
            && !path.is_file()
        {
            let source = io::Error::other("it can be read only once");
            let path = path.display().to_string();
            return Err(InputError::Input { name: name.to_string(), path, source }.into());
        }
    }
    let contents = named_contents(trees, &task, &given, missing)?;
    Ok(load::bind(trees.dir(), task, &contents)?)
}

/// Returns the contents of the inputs that values of a task name, as far as they may be texts.
fn named_contents(
    trees: &Trees,
    task: &Task,
    given: &[Option<InputSource>],
    missing: impl Fn(String) -> InputError,
) -> Result<Vec<Option<Vec<u8>>>, Error> {
    let mut contents = vec![None; task.inputs.len()];
    for at in task.free_names().map(InputId::index) {
        if contents[at].is_none() {
            let name = &task.inputs[at];
            let source = match (given.get(at), task.defaults[at]) {
                (Some(Some(given)), _) => given.clone(),
                (_, Some(file)) => own_file(trees, &task.files[file.index()])?,
                (_, None) => return Err(missing(name.to_string()).into()),
            };
            contents[at] = Some(read(name, source)?);
        }
    }
    Ok(contents)
}

/// Reads an input, but not much more than a text may have.
fn read(name: &InputName, source: InputSource) -> Result<Vec<u8>, Error> {
    let path = match source {
        InputSource::Bytes(contents) => return Ok(contents),
        InputSource::File(path) => path,
    };
    let mut contents = Vec::new();
    let file = File::open(&path);
    let read = file.and_then(|it| it.take(MAX_TEXT as u64 + 2).read_to_end(&mut contents));
    let (name, path) = (name.to_string(), path.display().to_string());
    read.map_err(|source| InputError::Input { name, path, source })?;
    Ok(contents)
}

/// Checks that the directories among the inputs of a task can be values, as far as that shows without reading files.
///
/// # Errors
///
/// Fails with the first one that cannot.
pub fn check_directories(task: &Task, given: &[Option<InputSource>]) -> Result<(), Error> {
    for (name, source) in task.inputs.iter().zip(given) {
        if let Some(InputSource::File(path)) = source
            && path.is_dir()
            && let Err(error) = Scan::at(path, &AtomicBool::new(false))
        {
            let source = StorageError::of_directory(path, error);
            return Err(InputError::InputValue { name: name.to_string(), source }.into());
        }
    }
    Ok(())
}

/// The error of taking in the inputs of a task: it names the input that it is about.
pub(super) fn of_input(task: &Task, given: &[Option<InputSource>], error: StorageError) -> Error {
    let is_in = |source: &Option<InputSource>| match source {
        Some(InputSource::File(path)) => error.is_about(path),
        _ => false,
    };
    let mut inputs = task.inputs.iter().zip(given);
    match inputs.find(|(_, source)| is_in(source)) {
        Some((name, _)) => InputError::InputValue { name: name.to_string(), source: error }.into(),
        None => error.into(),
    }
}

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
            (_, None) => return Err(InputError::NotGiven(name.to_string()).into()),
        });
    }
    Ok(sources)
}

/// Returns where the contents of a task's own files come from; `None` for one whose path depends on names that a sweep
/// binds.
pub(super) fn own_files(trees: &Trees, task: &Task) -> Result<Vec<Option<InputSource>>, Error> {
    let is_open = |file: &TaskFile| file.contents == FileContents::Unbound;
    let own = |file: &TaskFile| (!is_open(file)).then(|| own_file(trees, file)).transpose();
    task.files.iter().map(own).collect()
}

/// The repository, or the work tree if the file has changes that are not committed.
pub(super) fn own_file(trees: &Trees, file: &TaskFile) -> Result<InputSource, Error> {
    match &file.contents {
        FileContents::Uncommitted(path) => Ok(InputSource::File(path.clone())),
        FileContents::Blob(id) => match trees.blob(id) {
            Ok(contents) => Ok(InputSource::Bytes(contents)),
            Err(source) => Err(InputError::OwnFile { path: file.path.to_string(), source }.into()),
        },
        FileContents::Unbound => {
            debug_assert!(false, "a task is bound before its files are read");
            let source = "the texts of its names are unknown".into();
            Err(InputError::OwnFile { path: file.path.to_string(), source }.into())
        }
    }
}

/// Returns the contents of small files, which may name revisions. What can be read only once is left out.
pub(super) fn texts<'a>(sources: impl Iterator<Item = &'a InputSource>) -> Texts {
    let contents = |source: &InputSource| match source {
        InputSource::Bytes(contents) => Some(contents.clone()),
        InputSource::File(path) => {
            let is_small = |it: &fs::Metadata| it.is_file() && it.len() <= MAX_TEXT as u64 + 1;
            fs::metadata(path).ok().filter(is_small).and_then(|_| fs::read(path).ok())
        }
    };
    let texts = sources.filter_map(contents).filter(|it| it.len() <= MAX_TEXT + 1);
    texts.map(|contents| (Digest::of(&contents), contents)).collect()
}

/// Completes the files of a task, of which its own and its literals were found, with its inputs: those that were
/// given, in order, and its defaults for the others.
///
/// # Errors
///
/// Fails with what `missing` returns for an input that is read, was not given and has no default.
pub(super) fn fill_in(
    (task, is_read): (&Task, &[bool]),
    files: Files,
    given: Vec<Option<(InputSource, Input)>>,
    missing: impl Fn(String) -> InputError,
) -> Result<Files, Error> {
    let mut inputs = Vec::with_capacity(task.inputs.len());
    let mut sources = Vec::with_capacity(task.inputs.len());
    let given = given.into_iter().chain(iter::repeat(None));
    for ((at, name), given) in task.inputs.iter().enumerate().zip(given) {
        let (source, input) = given.unzip();
        let default = || files.own[task.defaults[at]?.index()].clone();
        let input = input.or_else(default);
        if input.is_none() && is_read[at] {
            return Err(missing(name.to_string()).into());
        }
        inputs.push(input);
        sources.push(source);
    }
    Ok(Files { inputs, given: sources, ..files })
}

/// Returns, for each input of a version of a task, what another version was given for that name.
pub(super) fn given_to(other: &Evaluation, task: &Task) -> Vec<Option<(InputSource, Input)>> {
    let given = |name| {
        let at = other.task.inputs.iter().position(|known| known == name)?;
        Some((other.files.given[at].clone()?, other.files.inputs[at].clone()?))
    };
    task.inputs.iter().map(given).collect()
}

/// Checks that the directories exist that a task reads at recorded commits. What is not cloned is left out, since
/// the user may name another repository.
///
/// # Errors
///
/// Fails with the first one that does not exist.
pub fn check_trees(dir: &Path, task: &Task) -> Result<(), Error> {
    let sources = SourceRepositories::new(dir, Vec::new());
    for TaskTree { name, commit } in &task.trees {
        let TreeCommit::Recorded(RecordedTree { commit, uncommitted: None }) = commit else {
            continue;
        };
        let repository = sources.find(name.written().source(), &task.commit);
        match repository.and_then(|it| it.tree(commit, name.written().path())) {
            Ok(_) | Err(SourceError::NotCloned { .. }) => {}
            Err(error) => return Err(ValueError::from(error).into()),
        }
    }
    Ok(())
}
