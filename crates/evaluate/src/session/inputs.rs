//! The values that a task reads and no call makes: its inputs, given or by default, and its own files; and the errors of these.

use std::fs::{self, File};
use std::io::{self, Read};
use std::iter;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::{Error, check_selection, expand_own_sheets};
use crate::{Evaluation, Files, Texts, ValueError};
use ce_files::manifest::Scan;
use ce_git::{SourceError, SourceRepositories, Trees};
use ce_model::digest::Digest;
use ce_model::exit::{Exit, Explain};
use ce_model::humanize::counted;
use ce_model::name::InputName;
use ce_model::plan::{Plan, PointSelection};
use ce_model::suggest::nearest;
use ce_model::system_hints;
use ce_model::task::{FileContents, InputId, RecordedTree, Task, TaskFile, TaskTree, TreeCommit};
use ce_model::template::MAX_TEXT;
use ce_storage::{Input, InputSource, StorageError};
use ce_task::load;

/// A task whose values have the texts of its inputs: what it is given, and what of it is asked for.
pub struct BoundTask {
    /// The task, without free names.
    pub task: Task,
    /// Its values, in the order of its inputs; `None` for one that is its default. An input that was read for its text has its
    /// contents in place of a file, since a pipe can be read only once.
    pub(super) given: Vec<Option<InputSource>>,
    /// Whether each input is read by what is asked for.
    pub(super) is_read: Vec<bool>,
    /// The points and calls that are asked for.
    pub(super) selection: PointSelection,
    /// The plan, if it was made already.
    pub(super) plan: Option<Plan>,
}

impl BoundTask {
    /// Binds the names in the values of a task to the texts of what it is given. All of it is asked for.
    ///
    /// # Errors
    ///
    /// Fails if an input whose text is needed is not given and has no default, or cannot be read, or if a value
    /// of the task is wrong with these texts.
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
        Ok(Self { task, given, is_read, selection: PointSelection::default(), plan: None })
    }

    /// Asks for some points and calls only, which read these inputs. Checks that there are such, as far as points are known before anything
    /// is evaluated.
    ///
    /// # Errors
    ///
    /// Fails with what no points have, or if a sheet cannot be used.
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
        // An evaluation expands the sheets itself, and tells of it.
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
    /// Fails with the first one that cannot.
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

/// Binds a version of a task to what another version was given.
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
    for at in task.free_names().map(InputId::index) {
        if contents[at].is_none() {
            let name = &task.inputs[at];
            let source = match (given.get(at), task.defaults[at]) {
                (Some(Some(given)), _) => given.clone(),
                (_, Some(file)) => own_file(trees, &task.files[file.index()])?,
                (_, None) => return Err(missing(name.to_string()).into()),
            };
            contents[at] = Some(read_input(name, source)?);
        }
    }
    Ok(contents)
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

/// Returns where the contents of a task's own files come from; `None` for one whose path depends on names that a sweep
/// binds.
pub(super) fn own_files(trees: &Trees, task: &Task) -> Result<Vec<Option<InputSource>>, Error> {
    let mut own = Vec::with_capacity(task.files.len());
    for file in &task.files {
        own.push(match file.contents {
            FileContents::Unbound => None,
            _ => Some(own_file(trees, file)?),
        });
    }
    Ok(own)
}

/// The repository, or the work tree if the file has changes that are not committed.
pub(super) fn own_file(trees: &Trees, file: &TaskFile) -> Result<InputSource, Error> {
    match &file.contents {
        FileContents::Uncommitted(path) | FileContents::Large(path) => {
            Ok(InputSource::File(path.clone()))
        }
        FileContents::Written(text) => Ok(InputSource::Bytes(text.as_bytes().to_vec())),
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
            texts.insert(Digest::of(&contents), contents);
        }
    }
    texts
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

/// Returns, for each input of a version of a task, what another version was given for that name.
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

/// The reason why the inputs of a task, or its repositories, cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// The number of inputs is not the task's.
    #[error(
        "the task {task} takes {}{}, and {given} {} given",
        list_inputs(names),
        match (*named, &defaults[..]) {
            (true, _) => " beside those given by name",
            (false, []) => "",
            (false, _) => " beside those that have defaults",
        },
        if *given == 1 { "is" } else { "are" }
    )]
    Inputs {
        /// The name of the task.
        task: String,
        /// The names of the inputs that it takes by position.
        names: Vec<String>,
        /// The names of the inputs that have defaults, and are not given by name.
        defaults: Vec<String>,
        /// The number of inputs given by position.
        given: usize,
        /// Other inputs are given by name.
        named: bool,
        /// Git's configuration has a storage, so none needs to be given.
        configured: bool,
    },
    /// The task has no input of this name.
    #[error("the task {task} takes no input {name}")]
    UnknownInput {
        /// The name of the task.
        task: String,
        /// The name of the input.
        name: String,
        /// The name of an input that the task takes and may be meant.
        nearest: Option<String>,
        /// The names of all inputs that it takes.
        inputs: Vec<String>,
    },
    /// An input is not given, and has no default.
    #[error("the input {0} is not given, and has no default")]
    NotGiven(String),
    /// An input is given by its name more than once.
    #[error("the input {0} is given twice")]
    InputTwice(String),
    /// One version of a task takes an input that the other one does not.
    #[error("the task at {takes} takes an input {name}, and at {lacks} it does not")]
    NoInput {
        /// The symbolic name.
        name: String,
        /// The version that takes it.
        takes: String,
        /// The version that does not.
        lacks: String,
    },
    /// An input is not there or may not be read.
    #[error("cannot read the input {name}, {path}")]
    Input {
        /// Its symbolic name.
        name: String,
        /// The file.
        path: String,
        /// The cause.
        source: io::Error,
    },
    /// An input cannot be a value, or not be read to its end.
    #[error("the input {name} cannot be used")]
    InputValue {
        /// Its symbolic name.
        name: String,
        /// The cause.
        source: StorageError,
    },
    /// A file of the task cannot be read from its repository.
    #[error("cannot read the task's file {path}")]
    OwnFile {
        /// Its path in the task.
        path: String,
        /// The error of Git.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The task reads no repository of this name.
    #[error("the task {task} reads no repository {name}")]
    UnknownRepository {
        /// The name of the task.
        task: String,
        /// The name that the user gave.
        name: String,
        /// The name of a repository that the task reads and may be meant.
        nearest: Option<String>,
    },
    /// A repository is named more than once.
    #[error("the repository {0} is given twice")]
    RepositoryTwice(String),
}

impl InputError {
    /// Returns the error for a name that no input of a task has.
    pub fn unknown(task: &Task, name: &str) -> Self {
        let inputs: Vec<String> = task.inputs.iter().map(ToString::to_string).collect();
        let (task, nearest) = (task.name.to_string(), nearest(name, &inputs));
        Self::UnknownInput { task, name: name.to_owned(), nearest, inputs }
    }
}

impl Explain for InputError {
    fn exit(&self) -> Exit {
        match self {
            Self::InputValue { source: StorageError::Io { source, .. }, .. }
                if is_of_user(source) =>
            {
                Exit::Malformed
            }
            Self::InputValue { source, .. } => source.exit(),
            _ => Exit::Malformed,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Inputs { names, defaults, configured, .. } => {
                let by_position = giving(names, *configured);
                Some(match &defaults[..] {
                    [] => by_position,
                    [name, ..] => {
                        format!("{by_position}; to replace a default, {name}=FILE or -p {name}=TEXT")
                    }
                })
            }
            Self::UnknownInput { nearest: None, inputs, .. } if !inputs.is_empty() => {
                Some(format!("its inputs are {}", inputs.join(", ")))
            }
            Self::UnknownInput { nearest, .. } | Self::UnknownRepository { nearest, .. } => {
                nearest.as_ref().map(|name| format!("did you mean {name}?"))
            }
            Self::NotGiven(name) => Some(format!("give {name}=FILE or -p {name}=TEXT")),
            Self::InputTwice(_) | Self::RepositoryTwice(_) => Some("give it once".to_owned()),
            Self::NoInput { .. } => {
                Some("give revisions at which the task takes the same inputs".to_owned())
            }
            Self::Input { name, source, .. } if source.kind() == io::ErrorKind::Other => {
                Some(format!("give another file or directory, or -p {name}=TEXT"))
            }
            Self::Input { path, source, .. } => system_hints::for_reading(Path::new(path), source),
            Self::InputValue { source: error @ StorageError::Io { path, source, .. }, .. } => {
                system_hints::for_reading(path, source).or_else(|| error.hint())
            }
            Self::InputValue { source, .. } => source.hint(),
            Self::OwnFile { .. } => Some(
                "git status says whether it is as committed, and git fsck whether the repository is damaged"
                    .to_owned(),
            ),
        }
    }
}

/// Whether the user has given a wrong path, or one that nobody lets them read. Any other error is the system's.
fn is_of_user(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidFilename, IsADirectory, NotADirectory, NotFound, PermissionDenied};
    matches!(
        error.kind(),
        InvalidFilename | IsADirectory | NotADirectory | NotFound | PermissionDenied
    )
}

/// The number and the names of a task's inputs, in words.
fn list_inputs(names: &[String]) -> String {
    match names.len() {
        0 => "no inputs".to_owned(),
        takes => format!("{} ({})", counted(takes, "input"), names.join(", ")),
    }
}

/// Describes in words how to give a storage and these inputs.
fn giving(names: &[String], has_storage: bool) -> String {
    let storage = if has_storage { "if not compeval.storage" } else { "first" };
    match names {
        [] => "give the storage and nothing more".to_owned(),
        [name] => format!("give the storage {storage}, and a file or -p {name}=TEXT for it"),
        [name, ..] => format!(
            "give the storage {storage}, and a file for each, in this order, or -p {name}=TEXT"
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn only_what_the_user_can_mend_is_wrong_input() {
        let exit = |kind: io::ErrorKind| {
            let path = PathBuf::from("data/d");
            let source = StorageError::Io { doing: "read", path, source: kind.into() };
            InputError::InputValue { name: "x".to_owned(), source }.exit()
        };
        assert_eq!(exit(io::ErrorKind::PermissionDenied), Exit::Malformed);
        assert_eq!(exit(io::ErrorKind::NotFound), Exit::Malformed);
        assert_eq!(exit(io::ErrorKind::StaleNetworkFileHandle), Exit::Storage);
        assert_eq!(exit(io::ErrorKind::Other), Exit::Storage);
    }
}
