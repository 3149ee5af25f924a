//! The workflow of a task in an editor.
//!
//! The text is a file in the repository's own directory, as the message of a commit is. It is removed
//! only when what it says is written.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ce_model::expression::{Labels, Sharing, Style, WorkflowDirectories, drop_default_labels};
use signal_hook::consts::{SIGINT, SIGQUIT};
use signal_hook::flag;

use super::{EditError, Edited, Force, NewWorkflow, library, real};
use crate::load::{self, Written};

/// A workflow that is being edited.
#[derive(Debug)]
pub struct Editing {
    task: PathBuf,
    /// The file with the text.
    path: PathBuf,
    /// The text as it was opened.
    opened: Vec<u8>,
    /// The workflow as it was opened, if its directories are known.
    layout: Option<WorkflowDirectories>,
    editor: OsString,
}

impl Editing {
    /// Writes the text of a task's workflow into a file.
    ///
    /// # Errors
    ///
    /// Fails if there is no editor, if the workflow cannot be read, or if no text says all that is in
    /// its directories and that is not to be lost.
    pub fn new(task: &Path, force: Force) -> Result<Self, EditError> {
        let task = real(task)?;
        let Written { mut text, unread } = load::written(&task)?;
        if force == Force::Keep && !unread.is_empty() {
            return Err(EditError::Unread(unread));
        }
        let editor = ce_git::editor(&task)
            .map_err(|source| EditError::Git { path: task.clone(), source })?
            .ok_or(EditError::NoEditor)?;
        let layout = layout(&task, &text);
        let inputs = text.inputs.as_deref().unwrap_or_default();
        let signatures = library::signatures(&task, &text.expression, inputs);
        drop_default_labels(&mut text.expression, &signatures);
        let mut opened = HEAD.as_bytes().to_vec();
        let style = Style { sharing: Sharing::Label, labels: Labels::Show };
        let path = ce_git::private_dir(&task).unwrap_or_else(std::env::temp_dir);
        let path = path.join(format!("ce-edit-{}.lisp", std::process::id()));
        let write = |source| EditError::Write { path: path.clone(), source };
        text.write(style, &mut opened).map_err(write)?;
        let file = fs::OpenOptions::new().write(true).create_new(true).open(&path);
        file.and_then(|mut file| file.write_all(&opened)).map_err(write)?;
        Ok(Self { task, path, opened, layout, editor })
    }

    /// The file with the text.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the text in the user's editor, and waits until it has ended.
    pub fn edit(&self) -> Result<(), EditError> {
        // As Git does: a signal from the terminal is the editor's until it has ended.
        let ended = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGQUIT] {
            let _ours = flag::register_conditional_default(signal, Arc::clone(&ended));
        }
        let mut script = self.editor.clone();
        script.push(" \"$@\"");
        let status = Command::new("sh")
            .arg0("sh")
            .arg("-c")
            .arg(script)
            .arg(&self.editor)
            .arg(&self.path)
            .status();
        ended.store(true, Ordering::SeqCst);
        let status = status.and_then(|status| {
            if status.success() {
                Ok(())
            } else {
                Err(io::Error::other(format!("it ended with {status}")))
            }
        });
        let editor = self.editor.to_string_lossy().into_owned();
        status.map_err(|source| EditError::Editor { editor, source })
    }

    /// Writes what was changed in the text, and removes the file.
    ///
    /// # Errors
    ///
    /// Fails if the text is wrong, or if the workflow is no longer as it was opened. The file stays.
    pub fn write_back(&self) -> Result<Edited, EditError> {
        let read = |source| EditError::Read { path: self.path.clone(), source };
        let contents = fs::read(&self.path).map_err(read)?;
        let mut change = Edited { workflow: None, inputs: None, warnings: Vec::new() };
        if contents != self.opened {
            let draft = NewWorkflow::new(&self.task, &self.path.display().to_string(), &contents)?;
            let present = load::written(&self.task)?.text;
            if layout(&self.task, &present) != self.layout {
                return Err(EditError::Changed);
            }
            let same = draft.is(&self.task, &present);
            change = draft.put(&self.task, same)?;
        }
        drop(fs::remove_file(&self.path));
        Ok(change)
    }
}

/// The directories of a workflow as it is.
fn layout(task: &Path, text: &ce_model::expression::Text) -> Option<WorkflowDirectories> {
    let inputs = text.inputs.clone().unwrap_or_default();
    let signatures = library::signatures(task, &text.expression, &inputs);
    WorkflowDirectories::of_expression(&text.expression, &inputs, &signatures)
}

/// The comment above the text.
const HEAD: &str = "\
; What is changed here is written to the workflow/ and inputs of the task.
; Inputs may have labels, as in (add :left INPUT('x') :right INPUT('y')). Those that are
; named like the computation's inputs are not shown.

";
