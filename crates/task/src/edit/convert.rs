//! Converting a workflow between its forms: one text, `workflow.ce`, and directories. Both say the same afterwards, which is checked
//! before anything is written.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ce_files::directory_writer::DirectoryWriter;
use ce_files::umask;
use ce_git::{HeadError, Heads};
use ce_model::expression::{
    DEFINITION, ExpressionNode, InputDefault, NodeKind, RuleFile, Text, WorkflowDirectories,
    drop_default_labels, parse,
};
use ce_model::name::InputName;
use ce_model::sweep::{FILES, NAMES, read_levels};
use ce_model::task::{LIBRARY, WORKFLOW_TEXT};

use super::{EditError, make_parts, put_in_place, real, signatures, write_error};
use crate::load::{self, LoadError, WrittenDirectories};

/// The form of a workflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkflowForm {
    /// One text, `workflow.ce`.
    Text,
    /// Directories below `workflow/`, with the files `inputs` and `defaults/`.
    Directories,
}

/// The parts of a task that are its workflow as directories.
const PARTS: [&str; 4] = ["workflow", "inputs", "defaults", "choices"];

/// The treatment of files that Git has not recorded, or that a text cannot express.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Force {
    /// It is kept, and nothing is written.
    Keep,
    /// It is replaced.
    Replace,
}

/// Gives the workflow of a task this form, if it has the other one. Returns the names of the written files.
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
    let WrittenDirectories { mut text, mut unread, .. } = load::written(dir)?;
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
    // In a text, a sweep binds the names that it lists.
    let is_open = |node: &ExpressionNode| {
        let lists = node.files.iter().any(|file| [NAMES, FILES].contains(&&*file.name));
        node.kind == NodeKind::Sweep && node.inputs.len() > 1 && !lists
    };
    if text.expression.nodes().iter().any(is_open) {
        return Err(EditError::OpenNames);
    }
    let signatures = signatures(task, &text);
    drop_default_labels(&mut text.expression, &signatures);
    let contents = text.workflow();
    let mut read = parse(&contents).map_err(|_| EditError::NotSaid)?.text;
    drop_default_labels(&mut read.expression, &signatures);
    let is_same = (&read.inputs, &read.defaults) == (&text.inputs, &text.defaults);
    if !is_same || !read.expression.says_the_same(&text.expression) {
        return Err(EditError::NotSaid);
    }
    refuse_uncommitted(task, &PARTS, force)?;
    put_in_place(task, &[WORKFLOW_TEXT], &PARTS, |aside| {
        let written =
            DirectoryWriter::open(aside).and_then(|writer| writer.write(WORKFLOW_TEXT, contents));
        written.map_err(|source| write_error(&aside.join(WORKFLOW_TEXT), source))
    })?;
    Ok(vec![WORKFLOW_TEXT.to_owned()])
}

/// The defaults of inputs, as a text says them. Adds the other entries of `defaults/` to `unread`.
fn defaults(
    task: &Path,
    inputs: &[InputName],
    unread: &mut Vec<PathBuf>,
) -> Result<Vec<Option<InputDefault>>, EditError> {
    let mut defaults = vec![None; inputs.len()];
    for part in ["defaults", "choices"] {
        let dir = task.join(part);
        let read = |source| EditError::Read { path: dir.clone(), source };
        if dir.symlink_metadata().is_err() {
            continue;
        }
        for entry in fs::read_dir(&dir).map_err(read)? {
            let name = entry.map_err(read)?.file_name();
            let input = inputs.iter().position(|input| *input.as_str() == *name);
            match input.filter(|at| is_default_file_name(&inputs[*at])) {
                Some(at) if part == "choices" => {
                    let path = dir.join(&name);
                    let text = fs::read(&path);
                    let text = text.map_err(|source| EditError::Read { path, source })?;
                    let choices = read_levels(inputs[at].as_str(), &text).unwrap_or_default();
                    defaults[at] = Some(InputDefault::Choices(choices));
                }
                Some(at) => defaults[at] = Some(read_default(task, &inputs[at])?),
                None => unread.push(Path::new(part).join(name)),
            }
        }
    }
    Ok(defaults)
}

/// Whether the default of an input can be a file of `defaults/`.
fn is_default_file_name(name: &InputName) -> bool {
    let name = name.as_str();
    !name.starts_with('.') && !name.contains('/')
}

/// The default of an input as a text says it: a line, or a file of the task to which `defaults/NAME` leads.
fn read_default(task: &Path, name: &InputName) -> Result<InputDefault, EditError> {
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
    load::check_text(dir)?;
    let mut parsed = parse(source).map_err(|mistake| LoadError::of_text(dir, vec![mistake]))?;
    let inputs = parsed.text.inputs.clone().unwrap_or_default();
    let signatures = signatures(task, &parsed.text);
    let mut expression = parsed.text.expression.clone();
    add_names(&mut parsed.text);
    let layout = WorkflowDirectories::new(&parsed, &signatures)
        .map_err(|mistakes| LoadError::of_text(dir, mistakes))?;
    let defaults = &parsed.text.defaults;
    for (name, _) in inputs.iter().zip(defaults).filter(|(_, default)| default.is_some()) {
        if !is_default_file_name(name) {
            return Err(EditError::DefaultName(name.clone()));
        }
    }
    refuse_uncommitted(task, &[WORKFLOW_TEXT], force)?;
    let given = || defaults.iter().flatten();
    let is_choice = |it: &InputDefault| matches!(it, InputDefault::Choices(_));
    let parts = PARTS.iter().filter(|part| match **part {
        "defaults" => given().any(|it| !is_choice(it)),
        "choices" => given().any(is_choice),
        _ => true,
    });
    let files = parsed.text.computations.iter();
    let files: Vec<(String, String)> =
        files.map(|it| (format!("{LIBRARY}/{}", it.file_name()), it.file().contents)).collect();
    let new: Vec<&str> = parts.copied().chain(files.iter().map(|(path, _)| &**path)).collect();
    let present = files.iter().map(|(path, _)| PathBuf::from(path));
    let present: Vec<PathBuf> =
        present.filter(|path| task.join(path).symlink_metadata().is_ok()).collect();
    if !present.is_empty() {
        return Err(EditError::Exists(present));
    }
    if !files.is_empty() {
        let library = task.join(LIBRARY);
        umask::create_dir_all(&library).map_err(|source| write_error(&library, source))?;
    }
    put_in_place(task, &new, &[WORKFLOW_TEXT], |aside| {
        make_parts(aside, &layout, &inputs, defaults)
            .and_then(|()| make_programs(aside, &files))
            .map_err(|source| write_error(aside, source))?;
        let WrittenDirectories { text: mut written, unread, .. } = load::written(aside)?;
        for expression in [&mut written.expression, &mut expression] {
            drop_default_labels(expression, &signatures);
        }
        let is_same = unread.is_empty() && written.inputs.as_deref() == Some(&inputs[..]);
        let is_same = is_same && written.expression.says_the_same(&expression);
        if is_same { Ok(()) } else { Err(EditError::NotSaid) }
    })?;
    let mut written = vec![format!("workflow ({} directories)", layout.entries.len())];
    written.extend(new[1..].iter().map(|part| (*part).to_owned()));
    Ok(written)
}

/// Writes files that are computations, given by their paths and contents.
fn make_programs(dir: &Path, files: &[(String, String)]) -> io::Result<()> {
    let writer = DirectoryWriter::open(dir)?;
    files.iter().try_for_each(|(path, contents)| writer.write_program(path, contents))
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
