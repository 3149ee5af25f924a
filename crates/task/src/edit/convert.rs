//! Converting a workflow between its forms: one text, `workflow.ce`, and directories. Both say the same afterwards, which is checked
//! before anything is written.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};

use ce_model::expression::{
    DEFINITION, Definition, Expression, ExpressionNode, InputDefault, Mistake, NodeKind, RuleFile,
    Text, WorkflowDirectories, drop_default_labels, parse,
};
use ce_model::name::InputName;
use ce_model::sweep::NAMES;
use ce_model::task::WORKFLOW_TEXT;

use super::{EditError, Force, aside, exchange, make, real, signatures, uncommitted};
use crate::load::{self, Written};

/// The form of a workflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkflowForm {
    /// One text, `workflow.ce`.
    Text,
    /// Directories below `workflow/`, with the files `inputs` and `defaults/`.
    Directories,
}

/// The parts of a task that are its workflow as directories.
const PARTS: [&str; 3] = ["workflow", "inputs", "defaults"];

/// Gives the workflow of a task this form, if it has the other one. Returns the names of what was written.
///
/// # Errors
///
/// Fails if the workflow is wrong, if something would be lost, or if the task cannot be written. Then the task is as it was.
pub fn convert(task: &Path, form: WorkflowForm, force: Force) -> Result<Vec<String>, EditError> {
    let task = real(task)?;
    let is_text = task.join(WORKFLOW_TEXT).symlink_metadata().is_ok();
    let is_directories = task.join("workflow").symlink_metadata().is_ok();
    match (form, is_text, is_directories) {
        (_, false, false) => Err(EditError::NoTask(task)),
        (_, true, true) => Err(EditError::TwoForms),
        (WorkflowForm::Text, false, true) => to_text(&task, force),
        (WorkflowForm::Directories, true, false) => to_directories(&task, force),
        _ => Ok(Vec::new()),
    }
}

fn to_text(task: &Path, force: Force) -> Result<Vec<String>, EditError> {
    let Written { mut text, unread, .. } = load::written(task)?;
    if force == Force::Keep && !unread.is_empty() {
        return Err(EditError::Unread(unread));
    }
    // In a text, a sweep binds what it lists.
    let is_open = |node: &ExpressionNode| {
        let lists = node.files.iter().any(|file| &*file.name == NAMES);
        node.kind == NodeKind::Sweep && node.inputs.len() > 1 && !lists
    };
    if text.expression.nodes().iter().any(is_open) {
        return Err(EditError::OpenNames);
    }
    let inputs = text.inputs.clone().unwrap_or_default();
    text.defaults = inputs.iter().map(|name| default(task, name)).collect::<Result<_, _>>()?;
    let signatures = signatures(task, &text.expression, &inputs);
    drop_default_labels(&mut text.expression, &signatures);
    let contents = text.workflow();
    let mut parsed = parsed(&contents)?;
    drop_default_labels(&mut parsed.expression, &signatures);
    if !parsed.expression.says_the_same(&text.expression) || parsed.defaults != text.defaults {
        return Err(EditError::NotSaid);
    }
    refuse_uncommitted(task, &PARTS, force)?;
    let aside = aside(task)?;
    let new = aside.join(WORKFLOW_TEXT);
    let written =
        fs::write(&new, contents).map_err(|source| EditError::Write { path: new.clone(), source });
    put_in_place(task, &aside, written, &[WORKFLOW_TEXT], &PARTS)?;
    Ok(vec![WORKFLOW_TEXT.to_owned()])
}

/// Reads a text that was just written.
fn parsed(contents: &str) -> Result<Text, EditError> {
    parse(contents).map(|parsed| parsed.text).map_err(|mistake| wrong(vec![mistake]))
}

fn wrong(mistakes: Vec<Mistake>) -> EditError {
    EditError::Text { name: WORKFLOW_TEXT.to_owned(), mistakes }
}

/// The default of an input as a text says it: a line, or a file of the task to which `defaults/NAME` is a link.
fn default(task: &Path, name: &InputName) -> Result<Option<InputDefault>, EditError> {
    let path = task.join("defaults").join(name.as_str());
    let read = |source| EditError::Read { path: path.clone(), source };
    let Ok(metadata) = path.symlink_metadata() else { return Ok(None) };
    let unsayable = || EditError::Default(name.clone());
    if metadata.is_symlink() {
        let target = fs::read_link(&path).map_err(read)?;
        let target = inside(&Path::new("defaults").join(target)).ok_or_else(unsayable)?;
        let target = target.to_str().and_then(|target| target.parse().ok());
        return Ok(Some(InputDefault::File(target.ok_or_else(unsayable)?)));
    }
    let contents = if metadata.is_file() { fs::read(&path).map_err(read)? } else { Vec::new() };
    let line = String::from_utf8(contents).ok();
    let line = line.filter(|text| text.lines().count() == 1 && text.ends_with('\n'));
    let line = line.filter(|text| !text.trim_end_matches('\n').contains(char::is_control));
    Ok(Some(InputDefault::Text(line.ok_or_else(unsayable)?.into())))
}

/// A relative path without `.` and `..`; `None` if it leads out.
fn inside(path: &Path) -> Option<PathBuf> {
    let mut inside = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(part) => inside.push(part),
            Component::CurDir => {}
            Component::ParentDir if inside.pop() => {}
            _ => return None,
        }
    }
    Some(inside)
}

fn to_directories(task: &Path, force: Force) -> Result<Vec<String>, EditError> {
    let path = task.join(WORKFLOW_TEXT);
    let contents = fs::read(&path).map_err(|source| EditError::Read { path, source })?;
    let source = std::str::from_utf8(&contents)
        .map_err(|error| wrong(vec![Mistake::not_text(&contents, error.valid_up_to())]))?;
    let parsed = parse(source).map_err(|mistake| wrong(vec![mistake]))?;
    let inputs = parsed.text.inputs.clone().unwrap_or_default();
    let signatures = signatures(task, &parsed.text.expression, &inputs);
    // What is wrong has a place in the text only as it is written there.
    WorkflowDirectories::new(&parsed, &inputs, &signatures).map_err(wrong)?;
    let named = with_names(&parsed.text.expression, &parsed.text.definitions);
    let layout = WorkflowDirectories::of_expression(&named, &inputs, &signatures);
    let layout = layout.ok_or(EditError::NotSaid)?;
    refuse_uncommitted(task, &[WORKFLOW_TEXT], force)?;
    let aside = aside(task)?;
    let written = make_parts(&aside, &layout, &inputs, &parsed.text.defaults)
        .map_err(|source| EditError::Write { path: aside.clone(), source });
    let has_defaults = parsed.text.defaults.iter().any(Option::is_some);
    let parts = if has_defaults { &PARTS[..] } else { &PARTS[..2] };
    put_in_place(task, &aside, written, parts, &[WORKFLOW_TEXT])?;
    let (nodes, links) = layout.counts();
    let mut written = vec![format!("workflow ({} directories)", nodes + links)];
    written.extend(parts[1..].iter().map(|part| (*part).to_owned()));
    Ok(written)
}

/// An expression of which the nodes have the names of definitions as files.
fn with_names(expression: &Expression, definitions: &[Definition]) -> Expression {
    let mut named = expression.clone();
    for definition in definitions {
        for node in &definition.nodes {
            let files = &mut named.nodes_mut()[node.index()].files;
            match files.iter_mut().find(|file| &*file.name == DEFINITION) {
                Some(file) => file.rows.push(vec![definition.name.clone()]),
                None => files.push(RuleFile {
                    name: DEFINITION.into(),
                    rows: vec![vec![definition.name.clone()]],
                }),
            }
        }
    }
    named
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

/// Fails if Git has not recorded what would be removed.
fn refuse_uncommitted(task: &Path, parts: &[&str], force: Force) -> Result<(), EditError> {
    let changed = if force == Force::Keep { uncommitted(task, parts)? } else { Vec::new() };
    if changed.is_empty() { Ok(()) } else { Err(EditError::Uncommitted(changed)) }
}

/// Moves what was written to its places, and then what it replaces away. If something fails before, the task is as it was.
fn put_in_place(
    task: &Path,
    aside: &Path,
    written: Result<(), EditError>,
    new: &[&str],
    old: &[&str],
) -> Result<(), EditError> {
    let moved =
        written.and_then(|()| {
            for part in new {
                exchange(&aside.join(part), &task.join(part)).map_err(|source| {
                    EditError::Replace { path: task.join(part), aside: aside.to_owned(), source }
                })?;
            }
            for part in old.iter().filter(|part| task.join(part).symlink_metadata().is_ok()) {
                let gone = aside.join(format!("old-{part}"));
                fs::rename(task.join(part), gone).map_err(|source| EditError::Replace {
                    path: task.join(part),
                    aside: aside.to_owned(),
                    source,
                })?;
            }
            Ok(())
        });
    // After a move that failed, something may be in no other place.
    if !matches!(moved, Err(EditError::Replace { .. })) {
        drop(fs::remove_dir_all(aside));
    }
    moved
}
