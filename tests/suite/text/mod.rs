//! The expression as text: read, written, converted, and from nothing.

mod all;
mod computations;
mod convert;
mod init;
mod library;
mod mistakes;
mod one_text;
mod round_trip;
mod sweeps;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use compeval::edit::{EditError, Force, WorkflowForm, convert};
use compeval::exit::Explain;
use compeval::load::{self, LoadError, Uncommitted};

/// All files below a directory, and where links lead, by their names relative to it. What Git keeps for
/// itself is left out.
fn tree(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries =
        walkdir::WalkDir::new(dir).into_iter().filter_entry(|it| it.file_name() != ".git");
    let entries = entries.map(Result::unwrap).filter(|entry| !entry.file_type().is_dir());
    let contents = |path: &Path| match fs::read_link(path) {
        Ok(target) => format!("-> {}", target.display()).into_bytes(),
        Err(_) => fs::read(path).unwrap(),
    };
    let name = |path: &Path| path.strip_prefix(dir).unwrap().to_str().unwrap().to_owned();
    entries.map(|entry| (name(entry.path()), contents(entry.path()))).collect()
}

/// Makes the workflow of a task the directories that this text becomes.
#[track_caller]
fn write(task: &Path, text: &str) {
    drop(fs::remove_dir_all(task.join("workflow")));
    drop(fs::remove_file(task.join("inputs")));
    fs::write(task.join("workflow.ce"), text).unwrap();
    if let Err(error) = convert(task, WorkflowForm::Directories, Force::Replace) {
        panic!("{error:?} in\n{text}");
    }
}

/// The message of a task with problems, as a program prints it there.
fn message(error: &LoadError) -> String {
    let LoadError::Problems { path, problems, .. } = error else { panic!("{error:?}") };
    let mut lines = vec![format!("ce: {}", error.to_string().replace(path.to_str().unwrap(), "."))];
    for problem in problems {
        lines.push(format!("  {problem}"));
        lines.extend(problem.fault.hint().map(|hint| format!("    try: {hint}")));
    }
    lines.join("\n") + "\n"
}

/// Returns the messages of converting and checking a task for texts that are wrong, once where they are the same. The task has the
/// inputs `x` and `y`, which stand in a line before each text that names none. Nothing of it changes.
fn mistakes(texts: impl IntoIterator<Item = String>) -> String {
    let lab = one_text::task("").commit();
    let task = lab.path("task");
    let mut told = String::new();
    for text in texts {
        let inputs = if text.starts_with("Inputs:") { "" } else { "Inputs: x, y\n" };
        fs::write(task.join("workflow.ce"), format!("{inputs}{text}")).unwrap();
        let before = tree(&task);
        let converted = convert(&task, WorkflowForm::Directories, Force::Replace).unwrap_err();
        let EditError::Load(converted) = &converted else { panic!("{converted:?}") };
        let converted = message(converted);
        write!(told, "{text}\n{converted}\n").unwrap();
        assert_eq!(tree(&task), before);
        let checked = message(&load::task(&task, Uncommitted::Ignore, None).unwrap_err());
        if checked != converted {
            write!(told, "ce check:\n{checked}\n").unwrap();
        }
    }
    told
}
