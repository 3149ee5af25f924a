//! `ce-sym`: prints the workflow as LISP.

use std::io::Write;

use clap::Parser;

use super::Tool;
use super::options::TaskDir;
use ce_evaluate::session::{Error, OutputError};
use ce_model::exit::Exit;
use ce_model::expression::{Labels, Sharing, Style, Text};
use ce_task::load::Uncommitted;

/// Print the workflow of a task as a LISP-like expression
#[derive(Debug, Parser)]
#[command(name = "ce-sym", version, after_help = "Exit codes: 0 printed, 2 the task is wrong.")]
pub struct Sym {
    /// Print an expression that occurs more than once as #1=(...) the first time, as #1# after
    #[arg(long)]
    share: bool,

    /// Print the labels of the inputs: the text in the names nn-text of their directories
    #[arg(long)]
    labels: bool,

    #[command(flatten)]
    task: TaskDir,
}

impl Tool for Sym {
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Error> {
        let task = self.task.load("ce-sym", Uncommitted::Ignore)?;
        let style = Style {
            sharing: if self.share { Sharing::Label } else { Sharing::Repeat },
            labels: if self.labels { Labels::Show } else { Labels::Hide },
        };
        Text::from(&task).write(style, out).map_err(OutputError)?;
        Ok(Exit::Done)
    }
}
