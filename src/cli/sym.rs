//! `ce-sym`: prints the workflow as LISP.

use std::io::Write;

use clap::Parser;

use super::Tool;
use super::options::TaskDir;
use crate::exit::Exit;
use crate::export::sym::{self, Sharing};
use crate::load::Uncommitted;
use crate::session::Error;

/// Print the workflow of a task as a LISP-like expression
#[derive(Debug, Parser)]
#[command(name = "ce-sym", version, after_help = "Exit codes: 0 printed, 2 the task is wrong.")]
pub struct Sym {
    /// Print an expression that occurs more than once as #1=(...) the first time, as #1# after
    #[arg(long)]
    share: bool,

    #[command(flatten)]
    task: TaskDir,
}

impl Tool for Sym {
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Error> {
        let task = self.task.load("ce-sym", Uncommitted::Ignore)?;
        let shared = if self.share { Sharing::Label } else { Sharing::Repeat };
        sym::write(&task, shared, out).map_err(Error::Output)?;
        Ok(Exit::Done)
    }
}
