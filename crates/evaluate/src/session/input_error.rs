//! Why the inputs of a task, or its repositories, cannot be used.

use std::io;
use std::path::Path;

use ce_model::exit::{Exit, Explain};
use ce_model::humanize::counted;
use ce_model::suggest::UnknownName;
use ce_model::system_hints;
use ce_model::task::Task;
use ce_storage::StorageError;

/// The reason why the inputs of a task, or its repositories, cannot be used.
#[derive(Debug, thiserror::Error, Explain)]
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
    #[hint(Some(giving_or_replacing(names, defaults, *configured)))]
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
        /// Git's configuration has a storage, so it need not be given.
        configured: bool,
    },
    /// The task has no input of this name.
    #[error("the task {task} takes no input {}", input.name)]
    #[hint(input.meant().or_else(|| listing_inputs(&input.known)))]
    UnknownInput {
        /// The name of the task.
        task: String,
        /// The name that the user gave, with the names of all inputs.
        input: UnknownName,
    },
    /// An input is not given, and has no default.
    #[error("the input {0} is not given, and has no default")]
    #[hint("give {_0}=FILE or -p {_0}=TEXT")]
    NotGiven(String),
    /// An input is given by its name more than once.
    #[error("the input {0} is given twice")]
    #[hint("give it once")]
    InputTwice(String),
    /// One version of a task takes an input that the other one does not.
    #[error("the task at {takes} takes an input {name}, and at {lacks} it does not")]
    #[hint("give revisions at which the task takes the same inputs")]
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
    #[hint(hint_for_input(name, Path::new(path), source))]
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
    #[exit(exit_for_value(source))]
    #[hint(hint_for_value(source))]
    InputValue {
        /// Its symbolic name.
        name: String,
        /// The cause.
        source: StorageError,
    },
    /// A file of the task cannot be read from its repository.
    #[error("cannot read the task's file {path}")]
    #[hint(
        "git status says whether it is as committed, and git fsck whether the repository is damaged"
    )]
    OwnFile {
        /// Its path in the task.
        path: String,
        /// The error of Git.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The text of an input is not one of its choices.
    #[error("the input {input} cannot be {choice}")]
    #[hint(Some(choice.suggestion("choices")))]
    NoChoice {
        input: String,
        /// The text, with the choices.
        choice: UnknownName,
    },
    /// The task reads no repository of this name.
    #[error("the task {task} reads no repository {}", repository.name)]
    #[hint(repository.meant())]
    UnknownRepository {
        /// The name of the task.
        task: String,
        /// The name that the user gave, with the repositories that the task reads.
        repository: UnknownName,
    },
    /// A repository is named more than once.
    #[error("the repository {0} is given twice")]
    #[hint("give it once")]
    RepositoryTwice(String),
}

impl InputError {
    /// Returns the error for a name that no input of a task has.
    pub fn unknown(task: &Task, name: &str) -> Self {
        let input = UnknownName::new(name, &task.inputs);
        Self::UnknownInput { task: task.name.to_string(), input }
    }
}

fn exit_for_value(source: &StorageError) -> Exit {
    match source {
        StorageError::Io { source, .. } if is_of_user(source) => Exit::Malformed,
        source => source.exit(),
    }
}

fn hint_for_value(error: &StorageError) -> Option<String> {
    if let StorageError::Io { path, source, .. } = error
        && let Some(hint) = system_hints::for_reading(path, source)
    {
        return Some(hint);
    }
    error.hint()
}

fn hint_for_input(name: &str, path: &Path, source: &io::Error) -> Option<String> {
    if source.kind() == io::ErrorKind::Other {
        return Some(format!("give another file or directory, or -p {name}=TEXT"));
    }
    system_hints::for_reading(path, source)
}

fn listing_inputs(known: &[String]) -> Option<String> {
    (!known.is_empty()).then(|| format!("its inputs are {}", known.join(", ")))
}

/// Describes in words how to give a storage and these inputs, and how to replace defaults.
fn giving_or_replacing(names: &[String], defaults: &[String], has_storage: bool) -> String {
    let by_position = giving(names, has_storage);
    match defaults {
        [] => by_position,
        [name, ..] => {
            format!("{by_position}; to replace a default, {name}=FILE or -p {name}=TEXT")
        }
    }
}

/// Whether the user has given a wrong path, or one that they may not read. Any other error is the system's.
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
    fn only_errors_that_the_user_can_mend_count_as_wrong_input() {
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
