//! Why a task could not be made or changed.

use std::io;
use std::path::PathBuf;

use crate::load::{LoadError, listed};
use ce_git::HeadError;
use ce_model::advice;
use ce_model::exit::{Exit, Explain};
use ce_model::task::expression::Mistake;
use ce_model::task::text::MAX_POINTS_FILE;
use ce_model::words::{counted, size};

/// Why a task could not be made or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// Something is wrong with the text.
    #[error("{name} has {}", counted(mistakes.len(), "mistake"))]
    Text {
        /// The name of the text.
        name: String,
        /// All that is wrong, in the order of the text.
        mistakes: Vec<Mistake>,
    },
    /// The directory holds nothing of a task.
    #[error("{} holds no task: it has no inputs, workflow or computations", .0.display())]
    NoTask(PathBuf),
    /// The present workflow cannot be read.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// Files that would be replaced are in no commit.
    #[error("nothing is written: these have uncommitted changes: {}", listed(.0))]
    Uncommitted(Vec<PathBuf>),
    /// Files that would be removed are no part of the expression.
    #[error("nothing is written: no text says what is in {}", listed(.0))]
    Unread(Vec<PathBuf>),
    /// The workflow was changed while its text was edited.
    #[error("nothing is written: the workflow has changed since its text was opened")]
    Changed,
    /// The new workflow or list of inputs could not be moved to its place.
    #[error("cannot replace {}: see {}", path.display(), aside.display())]
    Replace {
        /// The place.
        path: PathBuf,
        /// Where the old or the new one is.
        aside: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The computation that a new task should call cannot be called.
    #[error("computations/{0} has no valid lists inputs and outputs")]
    Computation(String),
    /// Parts of a task exist already.
    #[error("nothing is written: {} is there already", listed(.0))]
    Exists(Vec<PathBuf>),
    /// The directory cannot hold a task of this name.
    #[error("{} cannot be the name of a task", path.display())]
    Name {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: ce_model::task::name::NameError,
    },
    /// Git's record of the task cannot be read.
    #[error("it cannot be told what is committed: {0}")]
    Head(#[source] HeadError),
    /// A repository could not be made, or its configuration could not be read.
    #[error("cannot use the repository at {}", path.display())]
    Git {
        /// Where it is.
        path: PathBuf,
        /// The message of gix.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A file could not be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A text has more than [`MAX_POINTS_FILE`] bytes.
    #[error("{} is larger than {}", .0.display(), size(MAX_POINTS_FILE as u64))]
    Large(PathBuf),
    /// A file could not be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// No editor is configured.
    #[error("there is no editor: the terminal is dumb, and none is configured")]
    NoEditor,
    /// The editor could not be started, or ended with an error.
    #[error("the editor {editor} failed")]
    Editor {
        /// Its command.
        editor: String,
        /// Why.
        source: io::Error,
    },
}

impl EditError {
    /// Whether the system failed, rather than the user's text or task.
    pub const fn is_of_system(&self) -> bool {
        matches!(self, Self::Write { .. } | Self::Replace { .. } | Self::Editor { .. })
    }
}

impl Explain for EditError {
    fn exit(&self) -> Exit {
        if self.is_of_system() { Exit::Storage } else { Exit::Malformed }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::NoTask(_) | Self::Load(LoadError::NoTask(_)) => {
                "make one with ce init, or name its directory with --task"
            }
            Self::Uncommitted(_) => "git add and git commit them, or replace them with --force",
            Self::Unread(_) => {
                "move it out of workflow/, correct what reads it there, and commit that; --force removes it"
            }
            Self::Changed => "look at git diff, and edit again",
            Self::Exists(_) => "use another directory; ce write changes a workflow",
            Self::Name { .. } => "give another directory",
            Self::NoEditor => "set GIT_EDITOR, or git config --global core.editor EDITOR",
            Self::Head(error) => return error.hint(),
            Self::Load(LoadError::Directory { path, source }) => {
                return advice::for_directory(path, source);
            }
            Self::Replace { path, aside, .. } => {
                return Some(format!(
                    "move what is in {} to {}, which may lack it; git status shows what differs",
                    aside.display(),
                    path.parent().unwrap_or(path).display()
                ));
            }
            Self::Computation(name) => {
                return Some(format!(
                    "write names, one a line, into inputs and outputs of computations/{name}"
                ));
            }
            Self::Git { path, .. } => {
                return Some(format!("git -C {} status says what is wrong", path.display()));
            }
            Self::Editor { .. } => {
                "nothing was written: edit again; GIT_EDITOR or core.editor chooses another editor"
            }
            Self::Large(_) => "keep points in files of the task, which OWN('FILE') names",
            Self::Read { path, source } => return advice::for_reading(path, source),
            Self::Write { path, source } => return advice::for_writing(path, source),
            Self::Load(_) | Self::Text { .. } => return None,
        };
        Some(hint.to_owned())
    }
}
