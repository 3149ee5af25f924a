//! `ce edit`: opens the workflow of a task in the user's editor.

use std::io::{self, BufRead, IsTerminal, Write};

use clap::Parser;

use super::write::{self, Target};
use super::{Tool, say, tell};
use ce_evaluate::session::{Error, OutputError};
use ce_model::exit::Exit;
use ce_model::humanize::quoted_path;
use ce_task::edit::{EditError, Edited, Editing};

/// Edit the workflow of a task as text, in the editor that Git uses
#[derive(Debug, Parser)]
#[command(
    version,
    after_help = "The editor is GIT_EDITOR, core.editor, VISUAL or EDITOR, as for git commit.\n\n\
                  Exit codes: 0 written, or nothing was changed, 2 the text or the task is wrong, \
                  5 the editor failed, or the task cannot be written. A text that is not written is kept."
)]
pub struct Edit {
    #[command(flatten)]
    target: Target,
}

impl Tool for Edit {
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Error> {
        let editing = Editing::new(&self.target.task, self.target.force())?;
        loop {
            let error = match edit(&editing) {
                Ok(change) => return write::tell(&change, out),
                Err(error) => Error::from(error),
            };
            tell("ce", &error);
            if matches!(error.of(), Some(EditError::Text { .. })) && asks_again()? {
                continue;
            }
            let path = quoted_path(editing.path());
            say("ce", &format_args!("the text is kept: ce write {path} writes it"));
            return Ok(error.exit());
        }
    }
}

fn edit(editing: &Editing) -> Result<Edited, EditError> {
    editing.edit()?;
    editing.write_back()
}

/// Asks the user, if there is a terminal, whether to edit a wrong text again.
fn asks_again() -> Result<bool, Error> {
    let (input, mut output) = (io::stdin(), io::stderr());
    if !input.is_terminal() || !output.is_terminal() {
        return Ok(false);
    }
    write!(output, "Edit again? [Y/n] ").map_err(OutputError)?;
    let mut answer = String::new();
    let read = input.lock().read_line(&mut answer);
    // The end of the input is no answer.
    let is_answer = read.is_ok_and(|read| read > 0);
    Ok(is_answer && !answer.trim().to_lowercase().starts_with('n'))
}
