//! Making and changing tasks in a work tree: a workflow from text, in its other form, or from nothing.
//!
//! A workflow is made beside the present one and takes its place in one step, so there always is a
//! whole one. Nothing is lost: what Git has not recorded is replaced only by force, and what no text
//! says stays where it is. Nothing is committed here.

mod convert;
mod init;

pub use self::convert::{WorkflowForm, convert};
pub use self::init::{Created, init, init_directories, is_file};

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use ce_git::{HeadError, Heads};
use ce_model::declaration::Declaration;
use ce_model::exit::{Exit, Explain};
use ce_model::expression::{
    BoundNames, Expression, Fault, Mistake, NodeKind, Parsed, RESOURCES, Signature, Signatures,
    Text, WorkflowDirectories, WorkflowEntryKind, computation_names, parse,
};
use ce_model::humanize::{counted, size};
use ce_model::name::InputName;
use ce_model::suggest::nearest;
use ce_model::task::{LIBRARY, WORKFLOW_TEXT};
use ce_model::template::Template;
use ce_model::text_file::MAX_POINTS_FILE;
use ce_model::{hints, text_file};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

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

/// Fails if the workflow of a task is one text: directories beside it would be a second one.
fn refuse_text(task: &Path) -> Result<(), EditError> {
    let is_text = task.join(WORKFLOW_TEXT).symlink_metadata().is_ok();
    if is_text { Err(EditError::OneText) } else { Ok(()) }
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
    refuse_text(&real)?;
    let draft = NewWorkflow::new(&real, name, contents)?;
    let present = load::written(&real).ok();
    let same = present.as_ref().is_some_and(|present| draft.is(&real, &present.text));
    if force == Force::Keep {
        let lost = present.iter().flat_map(|it| it.unread.iter().chain(&it.unprinted));
        let lost: Vec<PathBuf> = lost.cloned().collect();
        if !same && !lost.is_empty() {
            return Err(EditError::Unread(lost));
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
        let parsed = parsed(name, contents)?;
        if let Some(number) = parsed.text.defaults.iter().position(Option::is_some) {
            return Err(wrong(vec![parsed.mistake_of_input(number, Fault::Default)]));
        }
        let (present, inputs) = match (&parsed.text.inputs, inputs(task)) {
            // The text takes the place of a list that cannot be read.
            (Some(inputs), present) => (present.ok().flatten(), inputs.clone()),
            (None, present) => {
                let present = present?;
                (present.clone(), present.unwrap_or_default())
            }
        };
        let signatures = signatures(task, &parsed.text.expression, &inputs);
        let layout = WorkflowDirectories::new(&parsed, &inputs, &signatures).map_err(wrong)?;
        let warnings = unknown(task, &parsed, &inputs);
        let new_inputs = (present.as_ref() != Some(&inputs)).then(|| inputs.clone());
        Ok(Self { layout, inputs, new_inputs, warnings })
    }

    /// Whether the workflow is this one, with or without its resources, which `ce-sym` does not print.
    fn is(&self, task: &Path, present: &Text) -> bool {
        let signatures = signatures(task, &present.expression, &self.inputs);
        let mut printed = present.expression.clone();
        for node in printed.nodes_mut() {
            node.files.retain(|file| &*file.name != RESOURCES);
        }
        [&present.expression, &printed].into_iter().any(|it| {
            let present = WorkflowDirectories::of_expression(it, &self.inputs, &signatures);
            present.as_ref() == Some(&self.layout)
        })
    }

    /// Writes what is new.
    fn put(self, task: &Path, same: bool) -> Result<Edited, EditError> {
        let Self { layout, new_inputs, warnings, .. } = self;
        let layout = (!same).then_some(layout);
        replace(task, layout.as_ref(), new_inputs.as_deref())?;
        Ok(Edited { workflow: layout, inputs: new_inputs, warnings })
    }
}

/// Parses the bytes of a text with this name.
fn parsed<'a>(name: &str, contents: &'a [u8]) -> Result<Parsed<'a>, EditError> {
    let source = std::str::from_utf8(contents);
    let source = source.map_err(|error| Mistake::not_text(contents, error.valid_up_to()));
    let wrong = |mistake| EditError::Text { name: name.to_owned(), mistakes: vec![mistake] };
    source.and_then(parse).map_err(wrong)
}

/// The computations and files that a text names and the task does not have, each where it stands
/// first.
fn unknown(task: &Path, parsed: &Parsed<'_>, inputs: &[InputName]) -> Vec<Mistake> {
    let mut unknown = Vec::new();
    let mut note = |kind: NodeKind, value: &str, fault: Fault| {
        let node = parsed.first(|node| node.kind == kind && *node.value == *value);
        unknown.extend(node.map(|node| parsed.mistake(node, fault)));
    };
    for (written, name, nearest) in missing(task, &parsed.text.expression, inputs) {
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

/// Whether a workflow is one that [`init_directories`] makes without a computation: there is nothing to lose.
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
    /// The task has both forms of a workflow.
    #[error("the task has both {WORKFLOW_TEXT} and {0}")]
    TwoForms(&'static str),
    /// A text cannot say the default of an input.
    #[error("defaults/{0} is neither one line of text without ' nor a link to a file of the task")]
    Default(InputName),
    /// The default of an input can be no file.
    #[error("no file in defaults/ can have the name of the input {0}, which has a default")]
    DefaultName(InputName),
    /// A sweep with computed points does not list the names that it binds.
    #[error("a sweep of which the points are computed has no file names")]
    OpenNames,
    /// What would be written does not say the same.
    #[error("nothing is written: the other form would not say the same")]
    NotSaid,
    /// The workflow of the task is one text.
    #[error("the workflow is one text: {WORKFLOW_TEXT}")]
    OneText,
}

impl EditError {
    /// Whether the system failed, rather than the user's text or task.
    pub const fn is_of_system(&self) -> bool {
        matches!(self, Self::Write { .. } | Self::Replace { .. })
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
            Self::OneText => "open it in your editor",
            Self::TwoForms(_) => "remove one of them: git log says which is older",
            Self::Default(_) => "move it to data/, and make a relative link to it in its place",
            Self::DefaultName(_) => "rename the input, or leave out its default",
            Self::OpenNames => {
                "write the names that its body reads of the points into names, one a line: in a text, it binds no others"
            }
            Self::NotSaid => {
                "this is a mistake of the program: please report it, with the workflow"
            }
            Self::Exists(_) => "use another directory; ce write changes a workflow",
            Self::Name { .. } => "give another directory",
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
            Self::Large(_) => "keep points in files of the task, which OWN('FILE') names",
            Self::Read { path, source } => return hints::for_reading(path, source),
            Self::Write { path, source } => return hints::for_writing(path, source),
            Self::Load(_) | Self::Text { .. } => return None,
        };
        Some(hint.to_owned())
    }
}

/// Replaces the workflow of a task, and its file `inputs`, if they are given.
///
/// Both are made in a directory beside them first. If that fails, the task is as it was.
pub(super) fn replace(
    task: &Path,
    layout: Option<&WorkflowDirectories>,
    inputs: Option<&[InputName]>,
) -> Result<(), EditError> {
    let aside = aside(task)?;
    let staged = stage(&aside, layout, inputs);
    if staged.is_ok()
        && let Err(source) = put(&aside, task, layout.is_some(), inputs.is_some())
    {
        // The replaced files may be in no commit.
        return Err(EditError::Replace { path: task.join("workflow"), aside, source });
    }
    // A file that cannot be removed is in nobody's way, and `git status` shows it.
    drop(fs::remove_dir_all(&aside));
    staged
}

/// Makes in a directory what is to be put in place.
fn stage(
    aside: &Path,
    layout: Option<&WorkflowDirectories>,
    inputs: Option<&[InputName]>,
) -> Result<(), EditError> {
    if let Some(layout) = layout {
        let path = aside.join("workflow");
        make(&path, layout).map_err(|source| EditError::Write { path, source })?;
    }
    if let Some(inputs) = inputs {
        let path = aside.join("inputs");
        let lines: String = inputs.iter().map(|name| format!("{name}\n")).collect();
        fs::write(&path, lines).map_err(|source| EditError::Write { path, source })?;
    }
    Ok(())
}

/// Moves what was made to its place, as far as it was.
fn put(aside: &Path, task: &Path, workflow: bool, inputs: bool) -> io::Result<()> {
    if inputs {
        exchange(&aside.join("inputs"), &task.join("inputs"))?;
    }
    if workflow {
        exchange(&aside.join("workflow"), &task.join("workflow"))?;
    }
    Ok(())
}

/// Moves something to a place. What is there moves the other way.
fn exchange(new: &Path, place: &Path) -> io::Result<()> {
    if place.symlink_metadata().is_err() {
        return fs::rename(new, place);
    }
    match renameat_with(CWD, new, CWD, place, RenameFlags::EXCHANGE) {
        // The file system cannot do this at once.
        Err(Errno::INVAL | Errno::NOSYS) => {
            let old = new.with_extension("old");
            fs::rename(place, &old)?;
            let moved = fs::rename(new, place);
            if moved.is_err() {
                fs::rename(&old, place)?;
            }
            moved
        }
        exchanged => Ok(exchanged?),
    }
}

/// Makes a directory in the task, on the same file system as what will be moved.
fn aside(task: &Path) -> Result<PathBuf, EditError> {
    let mut number = 0;
    loop {
        let path = task.join(format!(".ce-write-{}-{number}", std::process::id()));
        match fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(source) => return Err(EditError::Write { path, source }),
        }
    }
}

/// Makes the directory of a workflow, which must not exist, with all that is in it.
///
/// # Errors
///
/// Fails if anything cannot be written. What was written before stays.
pub fn make(dir: &Path, layout: &WorkflowDirectories) -> io::Result<()> {
    for entry in &layout.entries {
        let path = if entry.path.is_empty() { dir.to_owned() } else { dir.join(&entry.path) };
        match &entry.kind {
            WorkflowEntryKind::Link(target) => symlink(target, path)?,
            WorkflowEntryKind::Node { kind, value, files, outputs, inputs } => {
                fs::create_dir(&path)?;
                fs::write(path.join("kind"), format!("{kind}\n"))?;
                if *kind == NodeKind::Text.file() {
                    fs::write(path.join("value"), &**value)?;
                } else if !value.is_empty() {
                    fs::write(path.join("value"), format!("{value}\n"))?;
                }
                for file in files {
                    let path = path.join(&*file.name);
                    if let Some(dir) = path.parent() {
                        fs::create_dir_all(dir)?;
                    }
                    fs::write(path, file.contents())?;
                }
                if let Some(outputs) = outputs {
                    fs::write(path.join("outputs"), outputs.lines())?;
                }
                if *inputs {
                    fs::create_dir(path.join("inputs"))?;
                }
            }
        }
    }
    Ok(())
}

/// Returns what is known of the computations that an expression names, by what is written for them. Of several computations,
/// that is what they have in common.
pub(super) fn signatures(task: &Path, expression: &Expression, inputs: &[InputName]) -> Signatures {
    let mut signatures = Signatures::new();
    for (written, names) in computation_names(expression, inputs) {
        let all = names.iter().map(|name| signature(task, name));
        let common = all.reduce(|a, b| Signature {
            inputs: a.inputs.filter(|inputs| b.inputs.as_ref() == Some(inputs)),
            outputs: a.outputs.filter(|outputs| b.outputs.as_ref() == Some(outputs)),
        });
        signatures.insert(written.to_owned(), common.unwrap_or_default());
    }
    signatures
}

/// Returns what is known of a computation. What cannot be read is not known: loading the task says
/// why.
pub(super) fn signature(task: &Path, name: &str) -> Signature {
    let dir = task.join(LIBRARY).join(name);
    let file = || computations(task).into_iter().find(|(known, _)| known == name);
    if !dir.is_dir()
        && let Some((_, file)) = file()
    {
        let declaration = fs::read(file).ok().and_then(|it| Declaration::parse(&it).ok());
        let list = |file| declaration.as_ref()?.names(file);
        return Signature { inputs: list("inputs"), outputs: list("outputs") };
    }
    Signature { inputs: list(&dir.join("inputs")), outputs: list(&dir.join("outputs")) }
}

/// Reads a list of names, if there is one.
fn list(path: &Path) -> Option<Vec<String>> {
    // To open a pipe could block.
    if !path.metadata().ok()?.is_file() {
        return None;
    }
    let contents = fs::read(path).ok()?;
    let lines = text_file::lines(&contents).ok()?;
    Some(lines.into_iter().map(str::to_owned).collect())
}

/// Returns the names of computations that the task does not have: what is written for each, the name, and the one that may
/// have been meant.
pub(super) fn missing<'a>(
    task: &Path,
    expression: &'a Expression,
    inputs: &[InputName],
) -> Vec<(&'a str, String, Option<String>)> {
    let known: Vec<String> = computations(task).into_iter().map(|(name, _)| name).collect();
    let names = computation_names(expression, inputs).into_iter();
    let names = names.flat_map(|(written, names)| names.into_iter().map(move |it| (written, it)));
    let names = names.filter(|(_, name)| !known.contains(name));
    let nearest = |name: &str| nearest(name, &known);
    names.map(|(written, name)| (written, name.clone(), nearest(&name))).collect()
}

/// The names of the computations of a task, and the directory or file of each.
pub(super) fn computations(task: &Path) -> Vec<(String, PathBuf)> {
    let entries = fs::read_dir(task.join(LIBRARY)).into_iter().flatten().flatten();
    let computation = |entry: fs::DirEntry| {
        let (path, name) = (entry.path(), entry.file_name().into_string().ok()?);
        let metadata = path.metadata().ok()?;
        if metadata.is_dir() {
            return Some((name, path));
        }
        let is_program = metadata.is_file() && metadata.permissions().mode() & 0o111 != 0;
        let name = load::name_of_file(&name).filter(|_| is_program)?.to_owned();
        Some((name, path))
    };
    entries.filter_map(computation).collect()
}
