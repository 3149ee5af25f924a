//! Making and changing tasks in a work tree: a workflow from text, by an editor, or from nothing.
//!
//! A workflow is made beside the present one and takes its place in one step, so there always is a
//! whole one. Nothing is lost: what Git has not recorded is replaced only by force, and what no text
//! says stays where it is. Nothing is committed here.

mod editor;
mod init;
mod library;
mod replace;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

use ce_git::{HeadError, Heads};
use ce_model::exit::{Exit, Explain};
use ce_model::expression::{
    BoundNames, Fault, Mistake, NodeKind, Parsed, Text, WorkflowDirectories, parse,
};
use ce_model::humanize::{counted, size};
use ce_model::name::InputName;
use ce_model::template::Template;
use ce_model::text_file::MAX_POINTS_FILE;
use ce_model::{hints, text_file};

pub use self::editor::Editing;
pub use self::init::{Created, init};
pub use self::replace::make;
use crate::load::{self, LoadError, listed};

/// The treatment of a workflow that Git has not recorded, or of which a text cannot say everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Force {
    /// It is kept, and nothing is written.
    Keep,
    /// It is replaced.
    Replace,
}

/// The changes that writing a text has made.
#[derive(Debug)]
pub struct Edited {
    /// The new workflow, unless the present one is the same.
    pub workflow: Option<WorkflowDirectories>,
    /// The new names of the task's inputs, unless they are the same.
    pub inputs: Option<Vec<InputName>>,
    /// The oddities: computations and files that do not exist yet.
    pub warnings: Vec<Mistake>,
}

/// Makes the workflow of a task from a text, and its file `inputs` if the text names the inputs.
///
/// # Errors
///
/// Fails if the text is wrong, if something would be lost, or if the task cannot be written. Then
/// the task is as it was.
pub fn write(task: &Path, name: &str, contents: &[u8], force: Force) -> Result<Edited, EditError> {
    let real = real(task)?;
    let parts = [".git", "inputs", "workflow", "computations"];
    if !parts.iter().any(|part| real.join(part).symlink_metadata().is_ok()) {
        return Err(EditError::NoTask(task.to_owned()));
    }
    let draft = NewWorkflow::new(&real, name, contents)?;
    let present = load::written(&real).ok();
    let same = present.as_ref().is_some_and(|present| draft.is(&real, &present.text));
    if force == Force::Keep {
        let unread = present.as_ref().map(|present| present.unread.clone()).unwrap_or_default();
        if !same && !unread.is_empty() {
            return Err(EditError::Unread(unread));
        }
        let is_new = present.as_ref().is_some_and(|present| is_new(&present.text));
        let workflow = (!same && !is_new).then_some("workflow");
        let inputs = (draft.new_inputs.is_some() && !is_new).then_some("inputs");
        let parts: Vec<&str> = workflow.into_iter().chain(inputs).collect();
        let changed = uncommitted(&real, &parts)?;
        if !changed.is_empty() {
            return Err(EditError::Uncommitted(changed));
        }
    }
    draft.put(&real, same)
}

/// A text that is right for a task, and is not yet written.
struct NewWorkflow {
    layout: WorkflowDirectories,
    inputs: Vec<InputName>,
    /// The names of the task's inputs, unless the task has the same already.
    new_inputs: Option<Vec<InputName>>,
    warnings: Vec<Mistake>,
}

impl NewWorkflow {
    fn new(task: &Path, name: &str, contents: &[u8]) -> Result<Self, EditError> {
        let wrong = |mistakes| EditError::Text { name: name.to_owned(), mistakes };
        let source = std::str::from_utf8(contents)
            .map_err(|error| wrong(vec![Mistake::not_text(contents, error.valid_up_to())]))?;
        let parsed = parse(source).map_err(|mistake| wrong(vec![mistake]))?;
        let (present, inputs) = match (&parsed.text.inputs, inputs(task)) {
            // The text takes the place of a list that cannot be read.
            (Some(inputs), present) => (present.ok().flatten(), inputs.clone()),
            (None, present) => {
                let present = present?;
                (present.clone(), present.unwrap_or_default())
            }
        };
        let signatures = library::signatures(task, &parsed.text.expression, &inputs);
        let layout = WorkflowDirectories::new(&parsed, &inputs, &signatures).map_err(wrong)?;
        let warnings = unknown(task, &parsed, &inputs);
        let new_inputs = (present.as_ref() != Some(&inputs)).then(|| inputs.clone());
        Ok(Self { layout, inputs, new_inputs, warnings })
    }

    /// Whether the workflow is this one.
    fn is(&self, task: &Path, present: &Text) -> bool {
        let signatures = library::signatures(task, &present.expression, &self.inputs);
        let present =
            WorkflowDirectories::of_expression(&present.expression, &self.inputs, &signatures);
        present.as_ref() == Some(&self.layout)
    }

    /// Writes what is new.
    fn put(self, task: &Path, same: bool) -> Result<Edited, EditError> {
        let Self { layout, new_inputs, warnings, .. } = self;
        let layout = (!same).then_some(layout);
        replace::replace(task, layout.as_ref(), new_inputs.as_deref())?;
        Ok(Edited { workflow: layout, inputs: new_inputs, warnings })
    }
}

/// The computations and files that a text names and the task does not have, each where it stands
/// first.
fn unknown(task: &Path, parsed: &Parsed<'_>, inputs: &[InputName]) -> Vec<Mistake> {
    let mut unknown = Vec::new();
    let mut note = |kind: NodeKind, value: &str, fault: Fault| {
        let node = parsed.first(|node| node.kind == kind && *node.value == *value);
        unknown.extend(node.map(|node| parsed.mistake(node, fault)));
    };
    for (written, name, nearest) in library::missing(task, &parsed.text.expression, inputs) {
        note(NodeKind::Computation, written, Fault::NoComputation { name, nearest });
    }
    let nodes = parsed.text.expression.nodes().iter();
    let files: BTreeSet<&str> =
        nodes.filter(|node| node.kind == NodeKind::File).map(|node| &*node.value).collect();
    // A path with the text of a name is known when the task is evaluated.
    let bound = BoundNames::new(&parsed.text.expression);
    let number = |name: &str| {
        let input = inputs.iter().position(|input| input.as_str() == name);
        input.or_else(|| bound.may_have(name).then_some(inputs.len()))
    };
    for path in files {
        if Template::new(path, number, Path::new("")).is_open() || task.join(path).is_file() {
            continue;
        }
        let fault = if task.join(path).is_dir() { Fault::OwnDirectory } else { Fault::NoFile };
        note(NodeKind::File, path, fault(path.to_owned()));
    }
    unknown.sort_by_key(|mistake| mistake.position);
    unknown
}

/// Whether a workflow is one that [`init()`] makes without a computation: there is nothing to lose.
fn is_new(text: &Text) -> bool {
    let names = text.inputs.as_deref().unwrap_or_default();
    match text.expression.nodes() {
        [node] => node.kind == NodeKind::Input && names.len() == 1,
        _ => false,
    }
}

/// The names of the task's inputs, if there is such a file.
fn inputs(task: &Path) -> Result<Option<Vec<InputName>>, EditError> {
    let path = task.join("inputs");
    match path.metadata() {
        Ok(metadata) if metadata.is_file() => {}
        _ => return Ok(None),
    }
    let unreadable = |source| EditError::Read { path: path.clone(), source };
    let contents = fs::read(&path).map_err(unreadable)?;
    let lines = text_file::lines(&contents).ok();
    let names = lines.and_then(|lines| lines.into_iter().map(|line| line.parse().ok()).collect());
    names
        .map(Some)
        .ok_or_else(|| unreadable(io::Error::other("not every line is a name; see ce check")))
}

/// Lists what of a task Git has not recorded, among these parts.
fn uncommitted(task: &Path, parts: &[&str]) -> Result<Vec<PathBuf>, EditError> {
    let mut found = Vec::new();
    let mut heads = Heads::default();
    for part in parts {
        let path = task.join(part);
        if path.symlink_metadata().is_err() {
            continue;
        }
        match heads.changes(&path, &path) {
            Ok(changes) => {
                let filtered = changes.filtered.into_iter().map(|it| it.path);
                found.extend(changes.changed.into_iter().chain(changes.ignored).chain(filtered));
            }
            Err(HeadError::NoRepository | HeadError::Unborn(_)) => found.push(path),
            Err(error) => return Err(EditError::Head(error)),
        }
    }
    found.sort_unstable();
    found.dedup();
    Ok(found
        .into_iter()
        .map(|path| path.strip_prefix(task).map(Path::to_owned).unwrap_or(path))
        .collect())
}

fn real(dir: &Path) -> Result<PathBuf, EditError> {
    dir.canonicalize().map_err(|source| EditError::Read { path: dir.to_owned(), source })
}

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
        source: ce_model::name::NameError,
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
                return hints::for_directory(path, source);
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
            Self::Read { path, source } => return hints::for_reading(path, source),
            Self::Write { path, source } => return hints::for_writing(path, source),
            Self::Load(_) | Self::Text { .. } => return None,
        };
        Some(hint.to_owned())
    }
}
