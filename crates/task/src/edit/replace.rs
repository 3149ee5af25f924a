//! Makes the directories of a workflow, and puts them in the place of the present ones, in one step.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::{fs, io};

use ce_model::expression::{WorkflowDirectories, WorkflowEntryKind};
use ce_model::name::InputName;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use super::EditError;

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
                if !value.is_empty() {
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
