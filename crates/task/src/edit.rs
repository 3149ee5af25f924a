//! Making and changing tasks in a work tree: from nothing, or from the other form of the workflow.
//!
//! All is written aside and moved to its place when it is whole. Nothing is lost: what Git has not recorded
//! is replaced only by force, and so is what no text says. Nothing is committed here.
//!
//! A workflow has two forms: one text, `workflow.ce`, and directories. Both say the same after a conversion, which is checked before
//! anything is written.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::load::{self, LoadError, Written, listed};
use ce_git::{HeadError, Heads};
use ce_model::declaration::Declaration;
use ce_model::exit::{Exit, Explain};
use ce_model::expression::{
    DEFINITION, Expression, ExpressionInput, ExpressionNode, InputDefault, NodeKind, RuleFile,
    Signature, Signatures, Text, WorkflowDirectories, WorkflowEntryKind, computation_names,
    drop_default_labels, parse,
};
use ce_model::name::{ComputationName, InputName, TaskName};
use ce_model::slice::WrittenSlice;
use ce_model::sweep::NAMES;
use ce_model::task::{LIBRARY, WORKFLOW_TEXT};
use ce_model::{hints, text_file};

fn real(dir: &Path) -> Result<PathBuf, EditError> {
    dir.canonicalize().map_err(|source| EditError::Read { path: dir.to_owned(), source })
}

/// The reason why a task could not be made or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// The present workflow cannot be read, or something is wrong with it.
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
        /// The path of the old or the new one.
        aside: PathBuf,
        /// The cause.
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
        /// The cause.
        source: ce_model::name::NameError,
    },
    /// Git's record of the task cannot be read.
    #[error("it cannot be told what is committed: {0}")]
    Head(#[source] HeadError),
    /// A repository could not be made, or its configuration could not be read.
    #[error("cannot use the repository at {}", path.display())]
    Git {
        /// Its path.
        path: PathBuf,
        /// The message of gix.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A file could not be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file could not be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A text cannot say the default of an input.
    #[error("defaults/{0} is neither one line of text without ' nor a link to a file of the task")]
    Default(InputName),
    /// The default of an input can be no file.
    #[error("no file in defaults/ can have the name of the input {0}, which has a default")]
    DefaultName(InputName),
    /// Different nodes have the name of one definition.
    #[error("nothing is written: files definition give the name {0:?} to different nodes")]
    AmbiguousDefinition(String),
    /// A sweep with computed points does not list the names that it binds.
    #[error("a sweep of which the points are computed has no file names")]
    OpenNames,
    /// The text or the files to be written would not mean the same.
    #[error("nothing is written: the other form would not say the same")]
    NotSaid,
}

impl Explain for EditError {
    fn exit(&self) -> Exit {
        match self {
            Self::Write { .. } | Self::Replace { .. } => Exit::Storage,
            _ => Exit::Malformed,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Load(LoadError::NoTask(_)) => {
                "make one with ce init, or name its directory with --task"
            }
            Self::Uncommitted(_) => "git add and git commit them, or replace them with --force",
            Self::Unread(_) => {
                "move it out of workflow/, correct what reads it there, and commit that; --force removes it"
            }
            Self::Default(_) => "move it to data/, and make a relative link to it in its place",
            Self::DefaultName(_) => "rename the input, or leave out its default",
            Self::AmbiguousDefinition(_) => {
                "keep it in the file definition of one of them; --force does so with the first one"
            }
            Self::OpenNames => {
                "write the names that its body reads of the points into names, one a line: in a text, it binds no others"
            }
            Self::NotSaid => {
                "this is a mistake of the program: please report it, with the workflow"
            }
            Self::Exists(_) => "use another directory, or edit what is there",
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
            Self::Read { path, source } => return hints::for_reading(path, source),
            Self::Write { path, source } => return hints::for_writing(path, source),
            Self::Load(_) => return None,
        };
        Some(hint.to_owned())
    }
}

/// Makes a directory in the task, on the same file system as what will be moved.
fn aside(task: &Path) -> Result<PathBuf, EditError> {
    let mut number = 0;
    loop {
        let path = task.join(format!(".ce-new-{}-{number}", std::process::id()));
        match fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(source) => return Err(write_error(&path, source)),
        }
    }
}

fn write_error(path: &Path, source: io::Error) -> EditError {
    EditError::Write { path: path.to_owned(), source }
}

/// Lets something write parts of a task aside, moves them to their places, and then what they replace away. If something fails
/// before, the task is as it was.
fn put_in_place(
    task: &Path,
    new: &[&str],
    old: &[&str],
    write: impl FnOnce(&Path) -> Result<(), EditError>,
) -> Result<(), EditError> {
    let aside = aside(task)?;
    let new = new.iter().map(|part| (part, aside.join(part), task.join(part)));
    let old = old.iter().filter(|part| task.join(part).symlink_metadata().is_ok());
    let old = old.map(|part| (part, task.join(part), aside.join(format!("old-{part}"))));
    let moved = write(&aside).and_then(|()| {
        new.chain(old).try_for_each(|(part, from, to)| {
            let path = task.join(part);
            fs::rename(from, to).map_err(|source| EditError::Replace {
                path,
                aside: aside.clone(),
                source,
            })
        })
    });
    // After a move that failed, something may be in no other place.
    if !matches!(moved, Err(EditError::Replace { .. })) {
        drop(fs::remove_dir_all(aside));
    }
    moved
}

/// Makes the directories of a workflow, and the files beside them.
fn make_parts(
    aside: &Path,
    layout: &WorkflowDirectories,
    inputs: &[InputName],
    defaults: &[Option<InputDefault>],
) -> io::Result<()> {
    make(&aside.join("workflow"), layout)?;
    let lines: String = inputs.iter().map(|name| format!("{name}\n")).collect();
    fs::write(aside.join("inputs"), lines)?;
    for (name, default) in inputs.iter().zip(defaults) {
        let path = aside.join("defaults").join(name.as_str());
        if default.is_some() {
            fs::create_dir_all(aside.join("defaults"))?;
        }
        match default {
            None => {}
            Some(InputDefault::Text(text)) => fs::write(path, &**text)?,
            Some(InputDefault::File(target)) => symlink(format!("../{target}"), path)?,
        }
    }
    Ok(())
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

/// Returns the signatures, as far as they are known, of the computations that an expression names, by what is written for them. Of
/// several computations, that is what they have in common.
fn signatures(task: &Path, expression: &Expression, inputs: &[InputName]) -> Signatures {
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

/// Returns the signature of a computation, as far as it is known. What cannot be read is not known: loading the task says why.
fn signature(task: &Path, name: &str) -> Signature {
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

/// The names of the computations of a task, and the directory or file of each.
fn computations(task: &Path) -> Vec<(String, PathBuf)> {
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

/// The parts of a new task.
#[derive(Debug)]
pub struct Created {
    /// The task is in a repository that was there before.
    pub in_repository: bool,
    /// The files that were made, relative to its directory.
    pub files: Vec<PathBuf>,
}

/// The program of a new computation.
const NEW_EXEC: &str = "\
#!/bin/sh
# Called with the paths of all inputs in order, then of all outputs in order.
# Reads nothing but its inputs, and makes every output.
set -eu
cp \"$1\" \"$2\"";

/// The name of the input of a new task, and of a new computation.
const NEW_INPUT: &str = "input";

/// The name of its output.
const NEW_OUTPUT: &str = "output";

/// The files of a new task of which the workflow is one text: it runs at once.
const NEW_TASK: [(&str, &str, u32); 3] = [
    (
        WORKFLOW_TEXT,
        "\
# How many lines, words and bytes does the text have?
Inputs: text = OWN('data/text')

(count text)
",
        0o666,
    ),
    (
        "computations/count.sh",
        "\
#!/bin/sh
#CE inputs text
#CE outputs counts
# It is called with the paths of all inputs in order, then of all outputs in order.
# It reads nothing but its inputs, and makes every output.
set -eu
wc <\"$1\" >\"$2\"
",
        0o777,
    ),
    ("data/text", "The first line of many.\nThe second one.\n", 0o666),
];

/// Makes a task that runs at once in a directory: a Git repository unless it is in one, a workflow that is one text, a
/// computation of one file, and its data.
///
/// # Errors
///
/// Fails if there is a part of a task already, or a file cannot be written. Nothing is overwritten.
pub fn init(dir: &Path) -> Result<Created, EditError> {
    let task = new_task(dir)?;
    let present: Vec<PathBuf> = NEW_TASK.map(|(path, ..)| path.into()).into();
    refuse_present(&task, present)?;
    let count = computations(&task).into_iter().find(|(name, _)| name == "count");
    if let Some((_, place)) = count {
        return Err(EditError::Exists(vec![place]));
    }
    let in_repository = create_repository(dir, &task)?;
    let mut files = Vec::new();
    for (path, contents, mode) in NEW_TASK {
        make_file(&task.join(path), contents, mode)?;
        files.push(path.into());
    }
    Ok(Created { in_repository, files })
}

/// Makes the directory of a task, and returns its real path.
fn new_task(dir: &Path) -> Result<PathBuf, EditError> {
    fs::create_dir_all(dir).map_err(|source| write_error(dir, source))?;
    let task = real(dir)?;
    let name = task.file_name().unwrap_or(task.as_os_str()).to_string_lossy();
    name.parse::<TaskName>().map_err(|source| EditError::Name { path: dir.to_owned(), source })?;
    refuse_present(&task, ["inputs", "workflow", WORKFLOW_TEXT].map(PathBuf::from).into())?;
    Ok(task)
}

/// Fails if any of these is in a directory.
fn refuse_present(task: &Path, mut parts: Vec<PathBuf>) -> Result<(), EditError> {
    parts.retain(|part| task.join(part).symlink_metadata().is_ok());
    if parts.is_empty() { Ok(()) } else { Err(EditError::Exists(parts)) }
}

/// Makes a repository unless the task is in one. Returns whether it is.
fn create_repository(dir: &Path, task: &Path) -> Result<bool, EditError> {
    let in_repository = ce_git::top(task).is_some();
    if !in_repository {
        ce_git::create(task).map_err(|source| EditError::Git { path: dir.to_owned(), source })?;
    }
    Ok(in_repository)
}

/// Makes a file that does not exist, and the directories that it is in.
fn make_file(path: &Path, contents: &str, mode: u32) -> Result<(), EditError> {
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir).map_err(|source| write_error(dir, source))?;
    }
    let file = fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    file.and_then(|mut file| file.write_all(contents.as_bytes()))
        .map_err(|source| write_error(path, source))
}

/// Makes a task with directories: a Git repository unless it is in one, a workflow, and the names of its
/// inputs. With a computation, the workflow is a call of it; the computation is made unless it is
/// there. Without, the workflow is one input.
///
/// # Errors
///
/// Fails if there is a part of a task already, or a file cannot be written. Nothing is overwritten.
pub fn init_directories(
    dir: &Path,
    computation: Option<&ComputationName>,
) -> Result<Created, EditError> {
    let task = new_task(dir)?;
    let unusable =
        || EditError::Computation(computation.map(ToString::to_string).unwrap_or_default());
    let signature = signature_of(&task, computation).ok_or_else(unusable)?;
    let (expression, names) = expression(computation, &signature).ok_or_else(unusable)?;
    let signatures = computation.map(|name| (name.to_string(), signature));
    let layout =
        WorkflowDirectories::of_expression(&expression, &names, &signatures.into_iter().collect());
    let layout = layout.ok_or_else(unusable)?;
    let in_repository = create_repository(dir, &task)?;
    let mut files = Vec::new();
    if let Some(name) = computation {
        files.extend(create_computation(&task, name)?);
    }
    let parts = ["inputs", "workflow"];
    put_in_place(&task, &parts, &[], |aside| {
        make_parts(aside, &layout, &names, &[]).map_err(|source| write_error(aside, source))
    })?;
    files.extend(parts.map(PathBuf::from));
    Ok(Created { in_repository, files })
}

/// Returns the inputs and outputs of the first computation; `None` if it exists and they are unknown.
fn signature_of(task: &Path, computation: Option<&ComputationName>) -> Option<Signature> {
    let present = computation.filter(|name| is_present(task, name));
    let Some(name) = present else {
        return Some(Signature {
            inputs: Some(vec![NEW_INPUT.to_owned()]),
            outputs: Some(vec![NEW_OUTPUT.to_owned()]),
        });
    };
    let signature = signature(task, name.as_str());
    Some(signature).filter(|it| it.inputs.is_some() && it.outputs.is_some())
}

/// The first expression of a task, and the names of the task's inputs; `None` if the computation has
/// inputs that a task cannot have.
fn expression(
    computation: Option<&ComputationName>,
    signature: &Signature,
) -> Option<(Expression, Vec<InputName>)> {
    let (mut names, mut inputs) = (Vec::new(), Vec::new());
    let mut expression = Expression::default();
    for take in signature.inputs.iter().flatten() {
        let name: InputName = take.parse().ok()?;
        let (kind, value) = (NodeKind::Input, name.as_str().into());
        let node = expression.push(ExpressionNode {
            kind,
            value,
            files: Vec::new(),
            inputs: Vec::new(),
            outputs: None,
        });
        inputs.push(ExpressionInput { label: None, node });
        // Computations may name two inputs alike, and tasks may not.
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if let Some(name) = computation {
        let (kind, value) = (NodeKind::Computation, name.as_str().into());
        let outputs = signature.outputs.as_ref().map(Vec::len).filter(|makes| *makes > 0);
        let outputs = outputs.map(WrittenSlice::all);
        expression.push(ExpressionNode { kind, value, files: Vec::new(), inputs, outputs });
    }
    Some((expression, names))
}

/// Makes a computation that copies its input, unless there is one of that name.
fn create_computation(task: &Path, name: &ComputationName) -> Result<Vec<PathBuf>, EditError> {
    if is_present(task, name) {
        return Ok(Vec::new());
    }
    let place = Path::new(LIBRARY).join(name.as_str());
    let dir = task.join(&place);
    for (file, contents, mode) in
        [("inputs", NEW_INPUT, 0o666), ("outputs", NEW_OUTPUT, 0o666), ("exec", NEW_EXEC, 0o777)]
    {
        make_file(&dir.join(file), &format!("{contents}\n"), mode)?;
    }
    Ok(vec![place])
}

/// Whether the computation of this name is one file.
pub fn is_file(task: &Path, name: &ComputationName) -> bool {
    let all = computations(task);
    all.iter().any(|(known, path)| known == name.as_str() && path.is_file())
}

/// Whether there is anything of that name.
fn is_present(task: &Path, name: &ComputationName) -> bool {
    let dir = task.join(LIBRARY).join(name.as_str());
    dir.symlink_metadata().is_ok()
        || computations(task).iter().any(|(known, _)| known == name.as_str())
}

/// The form of a workflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkflowForm {
    /// One text, `workflow.ce`.
    Text,
    /// Directories below `workflow/`, with the files `inputs` and `defaults/`.
    Directories,
}

/// The parts of a task that are its workflow as directories.
const WORKFLOW_PARTS: [&str; 3] = ["workflow", "inputs", "defaults"];

/// The treatment of what Git has not recorded, or what no text says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Force {
    /// It is kept, and nothing is written.
    Keep,
    /// It is replaced.
    Replace,
}

/// Gives the workflow of a task this form, if it has the other one. Returns the names of what was written.
///
/// # Errors
///
/// Fails if the workflow is wrong, if something would be lost, or if the task cannot be written. Then the task is as it was.
pub fn convert(dir: &Path, form: WorkflowForm, force: Force) -> Result<Vec<String>, EditError> {
    match (form, load::written_text(dir)?) {
        (WorkflowForm::Directories, Some(text)) => to_directories(dir, &text, force),
        (WorkflowForm::Text, None) => to_text(dir, force),
        (_, None) if !load::is_task(dir) => Err(LoadError::NoTask(dir.to_owned()).into()),
        _ => Ok(Vec::new()),
    }
}

fn to_text(dir: &Path, force: Force) -> Result<Vec<String>, EditError> {
    let task = &real(dir)?;
    let Written { mut text, mut unread } = load::written(dir)?;
    let Some(inputs) = text.inputs.clone() else {
        let source = io::ErrorKind::NotFound.into();
        return Err(EditError::Read { path: task.join("inputs"), source });
    };
    text.defaults = defaults(task, &inputs, &mut unread)?;
    if force == Force::Keep && !unread.is_empty() {
        return Err(EditError::Unread(unread));
    }
    if force == Force::Keep
        && let Some(name) = text.ambiguous_definition()
    {
        return Err(EditError::AmbiguousDefinition(name.to_owned()));
    }
    // In a text, a sweep binds what it lists.
    let is_open = |node: &ExpressionNode| {
        let lists = node.files.iter().any(|file| &*file.name == NAMES);
        node.kind == NodeKind::Sweep && node.inputs.len() > 1 && !lists
    };
    if text.expression.nodes().iter().any(is_open) {
        return Err(EditError::OpenNames);
    }
    let signatures = signatures(task, &text.expression, &inputs);
    drop_default_labels(&mut text.expression, &signatures);
    let contents = text.workflow();
    let mut read = parse(&contents).map_err(|_| EditError::NotSaid)?.text;
    drop_default_labels(&mut read.expression, &signatures);
    let is_same = (&read.inputs, &read.defaults) == (&text.inputs, &text.defaults);
    if !is_same || !read.expression.says_the_same(&text.expression) {
        return Err(EditError::NotSaid);
    }
    refuse_uncommitted(task, &WORKFLOW_PARTS, force)?;
    put_in_place(task, &[WORKFLOW_TEXT], &WORKFLOW_PARTS, |aside| {
        let new = aside.join(WORKFLOW_TEXT);
        fs::write(&new, contents).map_err(|source| write_error(&new, source))
    })?;
    Ok(vec![WORKFLOW_TEXT.to_owned()])
}

/// The defaults of inputs, as a text says them. Adds the entries of `defaults/` that are none.
fn defaults(
    task: &Path,
    inputs: &[InputName],
    unread: &mut Vec<PathBuf>,
) -> Result<Vec<Option<InputDefault>>, EditError> {
    let mut defaults = vec![None; inputs.len()];
    let dir = task.join("defaults");
    let read = |source| EditError::Read { path: dir.clone(), source };
    if dir.symlink_metadata().is_err() {
        return Ok(defaults);
    }
    for entry in fs::read_dir(&dir).map_err(read)? {
        let name = entry.map_err(read)?.file_name();
        let input = inputs.iter().position(|input| *input.as_str() == *name);
        match input.filter(|at| is_file_name(&inputs[*at])) {
            Some(at) => defaults[at] = Some(default(task, &inputs[at])?),
            None => unread.push(Path::new("defaults").join(name)),
        }
    }
    Ok(defaults)
}

/// Whether the default of an input can be a file of `defaults/`.
fn is_file_name(name: &InputName) -> bool {
    let name = name.as_str();
    !name.starts_with('.') && !name.contains('/')
}

/// The default of an input as a text says it: a line, or a file of the task to which `defaults/NAME` leads.
fn default(task: &Path, name: &InputName) -> Result<InputDefault, EditError> {
    let path = task.join("defaults").join(name.as_str());
    let read = |source| EditError::Read { path: path.clone(), source };
    let unsayable = || EditError::Default(name.clone());
    let metadata = path.symlink_metadata().map_err(read)?;
    if metadata.is_symlink() {
        let target = path.canonicalize().map_err(read)?;
        let target = target.strip_prefix(task).ok().and_then(Path::to_str);
        let target = target.and_then(|target| target.parse().ok()).ok_or_else(unsayable)?;
        return Ok(InputDefault::File(target));
    }
    let contents = if metadata.is_file() { fs::read(&path).map_err(read)? } else { Vec::new() };
    let text = String::from_utf8(contents).map_err(|_| unsayable())?;
    match text.strip_suffix('\n') {
        Some(line) if !line.contains(|c: char| c.is_control() || c == '\'') => {
            Ok(InputDefault::Text(text.into()))
        }
        _ => Err(unsayable()),
    }
}

fn to_directories(dir: &Path, source: &str, force: Force) -> Result<Vec<String>, EditError> {
    let task = &real(dir)?;
    let mut parsed = parse(source).map_err(|mistake| LoadError::of_text(dir, vec![mistake]))?;
    let inputs = parsed.text.inputs.clone().unwrap_or_default();
    let signatures = signatures(task, &parsed.text.expression, &inputs);
    let mut expression = parsed.text.expression.clone();
    add_names(&mut parsed.text);
    let layout = WorkflowDirectories::new(&parsed, &inputs, &signatures)
        .map_err(|mistakes| LoadError::of_text(dir, mistakes))?;
    let defaults = &parsed.text.defaults;
    for (name, _) in inputs.iter().zip(defaults).filter(|(_, default)| default.is_some()) {
        if !is_file_name(name) {
            return Err(EditError::DefaultName(name.clone()));
        }
    }
    refuse_uncommitted(task, &[WORKFLOW_TEXT], force)?;
    let has_defaults = defaults.iter().any(Option::is_some);
    let parts = if has_defaults { &WORKFLOW_PARTS[..] } else { &WORKFLOW_PARTS[..2] };
    put_in_place(task, parts, &[WORKFLOW_TEXT], |aside| {
        make_parts(aside, &layout, &inputs, defaults)
            .map_err(|source| write_error(aside, source))?;
        let Written { text: mut written, unread } = load::written(aside)?;
        for expression in [&mut written.expression, &mut expression] {
            drop_default_labels(expression, &signatures);
        }
        let is_same = unread.is_empty() && written.inputs.as_deref() == Some(&inputs[..]);
        let is_same = is_same && written.expression.says_the_same(&expression);
        if is_same { Ok(()) } else { Err(EditError::NotSaid) }
    })?;
    let mut written = vec![format!("workflow ({} directories)", layout.entries.len())];
    written.extend(parts[1..].iter().map(|part| (*part).to_owned()));
    Ok(written)
}

/// Gives the nodes of a text the names of its definitions as files.
fn add_names(text: &mut Text) {
    for definition in &text.definitions {
        for node in &definition.nodes {
            let files = &mut text.expression.nodes_mut()[node.index()].files;
            let name = vec![definition.name.clone()];
            match files.iter_mut().find(|file| &*file.name == DEFINITION) {
                Some(file) => file.rows.push(name),
                None => files.push(RuleFile { name: DEFINITION.into(), rows: vec![name] }),
            }
        }
    }
}

/// Fails if Git has not recorded what would be removed.
fn refuse_uncommitted(task: &Path, parts: &[&str], force: Force) -> Result<(), EditError> {
    let mut found = Vec::new();
    let mut heads = Heads::default();
    for part in parts.iter().filter(|_| force == Force::Keep) {
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
    if found.is_empty() {
        return Ok(());
    }
    found.sort_unstable();
    found.dedup();
    let inside = |path: PathBuf| path.strip_prefix(task).map(Path::to_owned).unwrap_or(path);
    Err(EditError::Uncommitted(found.into_iter().map(inside).collect()))
}
