//! The values that a task reads and no call makes: its inputs, given or by default, and its own files; and the errors of these.

use std::fs::{self, File};
use std::io::{self, Read};
use std::iter;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::own_files::{expand_own_sheets, own_file};
use super::sheets_of_files::{self, SheetOfFiles};
use super::{Error, InputError};
use crate::{Evaluation, Files, Texts, ValueError};
use ce_files::manifest::Scan;
use ce_git::{AbsentLfsObjects, SourceError, SourceRepositories, Trees};
use ce_model::digest::Digest;
use ce_model::name::InputName;
use ce_model::plan::{Plan, PointSelection, SelectionError};
use ce_model::suggest::UnknownName;
use ce_model::task::{InputId, RecordedTree, Task, TaskTree, TreeCommit};
use ce_model::template::MAX_TEXT;
use ce_storage::{Input, InputSource, Storage, StorageError};
use ce_task::load;

/// A task whose values have the texts of its inputs: its given inputs, and the requested part of it.
pub struct BoundTask {
    /// The task, without free names.
    pub task: Task,
    /// Its values, in the order of its inputs; `None` for one that is its default. An input that was read for its text has its
    /// contents in place of a file, since a pipe can be read only once.
    pub(super) given: Vec<Option<InputSource>>,
    /// Whether each input is read by the requested part.
    pub(super) is_read: Vec<bool>,
    /// The points and calls that are asked for.
    pub(super) selection: PointSelection,
    /// The plan, if it was made already.
    pub(super) plan: Option<Plan>,
    /// What the user has given, in which sheets have paths.
    pub(super) as_given: Vec<Option<InputSource>>,
    /// The inputs that are sheets with columns of files.
    pub(super) sheets: Vec<SheetOfFiles>,
}

impl BoundTask {
    /// Binds the names in the values of a task to the texts of its given inputs. All of it is requested.
    ///
    /// # Errors
    ///
    /// Fails if an input whose text is needed is not given and has no default, or cannot be read, if a value
    /// of the task is wrong with these texts, or if a sheet names a file that cannot be used.
    pub fn new(trees: &Trees, task: Task, given: &[Option<InputSource>]) -> Result<Self, Error> {
        let mut given = given.to_vec();
        let contents = named_contents(trees, &task, &given, InputError::NotGiven)?;
        for (source, contents) in given.iter_mut().zip(&contents) {
            if let (Some(source), Some(contents)) = (source, contents) {
                *source = InputSource::Bytes(contents.clone());
            }
        }
        let is_read = vec![true; task.inputs.len()];
        let task = load::bind(trees.dir(), task, &contents)?;
        given.resize(task.inputs.len().max(given.len()), None);
        let sheets = sheets_of_files::look(trees, &task, &given)?;
        for sheet in &sheets {
            // It may be a pipe, which can be read only once.
            sheet.contents_of_pipe().into_iter().for_each(|it| given[sheet.input] = Some(it));
        }
        let (selection, as_given) = (PointSelection::default(), given.clone());
        Ok(Self { task, given, is_read, selection, plan: None, as_given, sheets })
    }

    /// Puts the sheets that are values in the place of those that were given: they have the digests of files, which are hashed, and
    /// stored if `store` says so.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be read, or the storage cannot be read or written.
    pub(super) fn take_in_sheets(&mut self, storage: &Storage, store: bool) -> Result<(), Error> {
        for sheet in &self.sheets {
            self.given[sheet.input] = Some(sheet.value(storage, store)?);
        }
        Ok(())
    }

    /// Asks for some points and calls only, which read these inputs. Checks that they exist, as far as points are known
    /// before anything is evaluated.
    ///
    /// # Errors
    ///
    /// Fails with the names and values that no points have, or if a sheet cannot be used.
    pub fn selecting(
        self,
        trees: &Trees,
        selection: PointSelection,
        is_read: Vec<bool>,
    ) -> Result<Self, Error> {
        if selection.is_everything() {
            return Ok(self);
        }
        let plan = Plan::of_points(&self.task, selection.clone());
        let has_sheets = expand_own_sheets(trees, &self.task, &plan)?;
        check_selection(&plan)?;
        // An evaluation expands the sheets itself, and reports it.
        let plan = (!has_sheets).then_some(plan);
        Ok(Self { selection, is_read, plan, ..self })
    }

    /// Returns where the contents of all inputs come from: one that is not given is its default.
    ///
    /// # Errors
    ///
    /// Fails if an input is not given and has no default, or if Git's data cannot be read.
    pub fn contents(&self, trees: &Trees) -> Result<Vec<InputSource>, Error> {
        let mut sources = Vec::with_capacity(self.task.inputs.len());
        for (at, name) in self.task.inputs.iter().enumerate() {
            sources.push(match (self.given.get(at), self.task.defaults[at]) {
                (Some(Some(given)), _) => given.clone(),
                (_, Some(file)) => own_file(trees, &self.task.files[file.index()])?,
                (_, None) => return Err(InputError::NotGiven(name.to_string()).into()),
            });
        }
        Ok(sources)
    }

    /// Checks that the directories among the inputs can be values, as far as that shows without reading files.
    ///
    /// # Errors
    ///
    /// Fails with the first one that cannot be read.
    pub fn check_directories(&self) -> Result<(), Error> {
        for (name, source) in self.task.inputs.iter().zip(&self.given) {
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
}

/// Binds a version of a task to the given inputs of another version.
pub(super) fn bind_like(
    trees: &Trees,
    task: Task,
    other: &Evaluation,
    missing: impl Fn(String) -> InputError,
) -> Result<Task, Error> {
    if task.is_bound() {
        return Ok(task);
    }
    let mut given = Vec::with_capacity(task.inputs.len());
    for known in given_to(other, &task) {
        given.push(match known {
            Some((InputSource::File(_), input)) if input.there => {
                Some(InputSource::File(other.storage.path(&input.file.name)))
            }
            known => known.map(|(source, _)| source),
        });
    }
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
    let chosen = (0..task.inputs.len()).filter(|at| task.choices[*at].is_some());
    for at in task.free_names().map(InputId::index).chain(chosen) {
        if contents[at].is_none() {
            let name = &task.inputs[at];
            let source = match (given.get(at), task.defaults[at]) {
                (Some(Some(given)), _) => given.clone(),
                (_, Some(file)) => own_file(trees, &task.files[file.index()])?,
                (_, None) => return Err(missing(name.to_string()).into()),
            };
            let read = read_input(name, source)?;
            check_choice(task, at, &String::from_utf8_lossy(one_line(&read)))?;
            contents[at] = Some(read);
        }
    }
    Ok(contents)
}

/// The contents of a file without the newline at its end.
fn one_line(contents: &[u8]) -> &[u8] {
    contents.strip_suffix(b"\n").unwrap_or(contents)
}

/// Checks that a text of an input, by its number, is one of its choices, if it has some.
///
/// # Errors
///
/// Fails with the choices.
pub(super) fn check_choice(task: &Task, input: usize, text: &str) -> Result<(), Error> {
    let Some(choices) = &task.choices[input] else { return Ok(()) };
    let texts = choices.levels(0);
    if texts.iter().any(|it| **it == *text) {
        return Ok(());
    }
    let choice = UnknownName::new(text, texts);
    Err(InputError::NoChoice { input: task.inputs[input].to_string(), choice }.into())
}

/// Reads an input, but not much more than a text may have.
fn read_input(name: &InputName, source: InputSource) -> Result<Vec<u8>, Error> {
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

/// The error of taking in the inputs of a task: it names the input that it is about.
pub(super) fn of_input(task: &Task, given: &[Option<InputSource>], error: StorageError) -> Error {
    for (name, source) in task.inputs.iter().zip(given) {
        if let Some(InputSource::File(path)) = source
            && error.is_about(path)
        {
            return InputError::InputValue { name: name.to_string(), source: error }.into();
        }
    }
    error.into()
}

/// Returns the contents of small files, which may name revisions. Inputs that can be read only once are left out.
pub(super) fn texts<'a>(sources: impl Iterator<Item = &'a InputSource>) -> Texts {
    let mut texts = Texts::new();
    for source in sources {
        let contents = match source {
            InputSource::Bytes(contents) => Some(contents.clone()),
            InputSource::File(path) => fs::metadata(path)
                .ok()
                .filter(|it| it.is_file() && it.len() <= MAX_TEXT as u64 + 1)
                .and_then(|_| fs::read(path).ok()),
        };
        if let Some(contents) = contents.filter(|it| it.len() <= MAX_TEXT + 1) {
            texts.insert(Digest::hash_bytes(&contents), contents);
        }
    }
    texts
}

/// Completes the files of a task with its inputs: the given ones, in order, and its defaults for the others. Its own
/// files and its literals were found before.
///
/// # Errors
///
/// Fails with what `missing` returns for an input that is read, was not given and has no default.
pub(super) fn fill_in(
    task: &Task,
    is_read: &[bool],
    files: Files,
    given: Vec<Option<(InputSource, Input)>>,
    missing: impl Fn(String) -> InputError,
) -> Result<Files, Error> {
    let mut inputs = Vec::with_capacity(task.inputs.len());
    let mut sources = Vec::with_capacity(task.inputs.len());
    let given = given.into_iter().chain(iter::repeat(None));
    for ((at, name), given) in task.inputs.iter().enumerate().zip(given) {
        let (source, input) = given.unzip();
        let input = match task.defaults[at] {
            Some(default) if input.is_none() => files.own[default.index()].clone(),
            _ => input,
        };
        if input.is_none() && is_read[at] {
            return Err(missing(name.to_string()).into());
        }
        inputs.push(input);
        sources.push(source);
    }
    Ok(Files { inputs, given: sources, ..files })
}

/// Returns for each input of a version of a task what the user has given another version for that name.
pub(super) fn as_given_to(other: &Evaluation, task: &Task) -> Vec<Option<InputSource>> {
    let find = |name| other.task.inputs.iter().position(|known| known == name);
    let given = task.inputs.iter().map(|name| other.files.as_given.get(find(name)?)?.clone());
    given.collect()
}

/// Returns for each input of a version of a task the value that another version was given for that name.
pub(super) fn given_to(other: &Evaluation, task: &Task) -> Vec<Option<(InputSource, Input)>> {
    let mut given = Vec::with_capacity(task.inputs.len());
    for name in &task.inputs {
        let at = other.task.inputs.iter().position(|known| known == name);
        given.push(at.and_then(|at| {
            Some((other.files.given[at].clone()?, other.files.inputs[at].clone()?))
        }));
    }
    given
}

/// Checks that the directories exist that a task reads at recorded commits, and that the contents are here of their files that Git LFS keeps. Skips
/// repositories that are not cloned, since the user may name another repository.
///
/// # Errors
///
/// Fails with the first directory that does not exist, or else with all files whose contents are not here.
pub fn check_trees(dir: &Path, task: &Task) -> Result<(), Error> {
    let (sources, mut absent) = (SourceRepositories::new(dir, Vec::new()), Vec::new());
    for TaskTree { name, commit } in &task.trees {
        let TreeCommit::Recorded(RecordedTree { commit, uncommitted: None }) = commit else {
            continue;
        };
        let repository = sources.find(name.written().source(), task);
        let path = name.written().path();
        let found = repository.and_then(|it| it.tree(commit, path).map(|_| it));
        match found {
            // Who reads the files reports what is wrong with them.
            Ok(repository) => {
                let large = repository.lfs_files(commit, path).unwrap_or_default();
                absent.extend(large.into_iter().filter(|file| !file.may_be_here()));
            }
            Err(SourceError::NotCloned { .. }) => {}
            Err(error) => return Err(ValueError::from(error).into()),
        }
    }
    AbsentLfsObjects::new(absent).map_or(Ok(()), |error| Err(error.into()))
}

/// Checks that some point has each text that is asked for, as far as points are known.
///
/// # Errors
///
/// Fails with the names and values that no points have.
pub fn check_selection(plan: &Plan) -> Result<(), Error> {
    match plan.selection_faults() {
        faults if faults.is_empty() => Ok(()),
        faults => Err(SelectionError(faults).into()),
    }
}
