//! Makes a task from nothing.

use std::path::{Path, PathBuf};

use ce_files::directory_writer::DirectoryWriter;
use ce_files::umask;
use ce_model::expression::{
    Expression, ExpressionInput, ExpressionNode, NodeKind, Signature, WorkflowDirectories,
};
use ce_model::name::{ComputationName, InputName, TaskName};
use ce_model::slice::WrittenSlice;
use ce_model::task::{LIBRARY, WORKFLOW_TEXT};

use super::{EditError, make_parts, put_in_place, real, write_error};
use crate::load;

/// The parts of a new task.
#[derive(Debug)]
pub struct Created {
    /// The task is in a repository that was there before.
    pub in_repository: bool,
    /// The files that were made, relative to its directory.
    pub files: Vec<PathBuf>,
}

/// The program of a new computation.
const EXEC: &str = "\
#!/bin/sh
# Called with the paths of all inputs in order, then of all outputs in order.
# Reads nothing but its inputs, and makes every output.
set -eu
cp \"$1\" \"$2\"";

/// The name of the input of a new task, and of a new computation.
const INPUT: &str = "input";

/// The name of its output.
const OUTPUT: &str = "output";

/// A file that does not exist yet.
#[derive(Debug)]
pub(super) struct NewFile<'a> {
    /// The path in the task.
    pub(super) path: &'a str,
    pub(super) contents: &'a str,
    pub(super) is_program: bool,
}

/// The files of a new task whose workflow is one text: it runs at once.
const STUDY: [NewFile<'static>; 2] = [
    NewFile {
        path: WORKFLOW_TEXT,
        contents: "\
# How many lines, words and bytes does the text have?
Inputs: text = OWN('data/text')

# A computation reads nothing but its inputs, and makes every output. Its block is Bash, or what its first line
# names, such as #!/usr/bin/python3. The variables in_NAME and out_NAME have the paths, text_NAME the text of a short input.
count: text -> counts
    wc < \"$in_text\" > \"$out_counts\"

(count text)
",
        is_program: false,
    },
    NewFile {
        path: "data/text",
        contents: "The first line of many.\nThe second one.\n",
        is_program: false,
    },
];

/// Makes a task that runs at once in a directory: a Git repository unless it is in one, a workflow that is one text, a
/// computation in it, and its data.
///
/// # Errors
///
/// Fails if there is a part of a task already, or a file cannot be written. Nothing is overwritten.
pub fn init(dir: &Path) -> Result<Created, EditError> {
    let task = new_task(dir)?;
    let present: Vec<PathBuf> = STUDY.map(|file| file.path.into()).into();
    refuse_present(&task, present)?;
    let count = load::library(&task).into_iter().find(|(name, _)| name == "count");
    if let Some((_, place)) = count {
        return Err(EditError::Exists(vec![place]));
    }
    let in_repository = create_repository(dir, &task)?;
    make_files(&task, &STUDY)?;
    Ok(Created { in_repository, files: STUDY.map(|file| file.path.into()).into() })
}

/// Makes the directory of a task, and returns its real path.
fn new_task(dir: &Path) -> Result<PathBuf, EditError> {
    umask::create_dir_all(dir).map_err(|source| write_error(dir, source))?;
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

/// Makes files that do not exist, and the directories that they are in: through no link, which the repository may have brought.
pub(super) fn make_files<'a>(
    task: &Path,
    files: impl IntoIterator<Item = &'a NewFile<'a>>,
) -> Result<(), EditError> {
    let writer = DirectoryWriter::open(task).map_err(|source| write_error(task, source))?;
    for NewFile { path, contents, is_program } in files {
        let written = match is_program {
            true => writer.write_program(path, contents),
            false => writer.write(path, contents),
        };
        written.map_err(|source| write_error(&task.join(path), source))?;
    }
    Ok(())
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
    let layout = WorkflowDirectories::of_expression(&expression, &signatures.into_iter().collect());
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
            inputs: Some(vec![INPUT.to_owned()]),
            outputs: Some(vec![OUTPUT.to_owned()]),
        });
    };
    let name_text = name.to_string();
    let signature = load::signatures(task, [&name_text]).remove(&name_text).unwrap_or_default();
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
    let files = [("inputs", INPUT, false), ("outputs", OUTPUT, false), ("exec", EXEC, true)];
    let files = files.map(|(file, line, is_program)| {
        (format!("{LIBRARY}/{name}/{file}"), format!("{line}\n"), is_program)
    });
    let files = files.each_ref().map(|(path, contents, is_program)| NewFile {
        path,
        contents,
        is_program: *is_program,
    });
    make_files(task, &files)?;
    Ok(vec![place])
}

/// Whether the computation of this name is one file.
pub fn is_file(task: &Path, name: &ComputationName) -> bool {
    let all = load::library(task);
    all.iter().any(|(known, path)| known == name.as_str() && path.is_file())
}

/// Whether there is anything of that name.
fn is_present(task: &Path, name: &ComputationName) -> bool {
    let dir = task.join(LIBRARY).join(name.as_str());
    dir.symlink_metadata().is_ok()
        || load::library(task).iter().any(|(known, _)| known == name.as_str())
}
