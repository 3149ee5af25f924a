//! `ce add`: computations of the library that `ce` carries become a task's own.

use std::io::Write;
use std::path::PathBuf;

use clap::Parser;

use super::Tool;
use super::options::task_dir;
use ce_evaluate::session::{Error, OutputError};
use ce_model::exit::Exit;
use ce_model::humanize::quoted_path;
use ce_queries::diff::unified;
use ce_task::edit::{self, AddedComputation, LIBRARY_COMPUTATIONS};

/// Copy computations of the library, which ce carries, into computations/; without names, list them
#[derive(Debug, Parser)]
#[command(
    version,
    after_help = "They are the task's own from then on: commit them, and change them as you like. What is there is not overwritten.\n\n\
                  Exit codes: 0 they are there, 2 the library has no such computation, or the task has changed it, 5 the task cannot be written."
)]
pub(super) struct Add {
    /// The names of computations of the library
    #[arg(value_name = "NAME")]
    names: Vec<String>,

    /// Print how the task's computations differ from the library's, and write nothing
    #[arg(long, requires = "names")]
    diff: bool,

    /// The directory that holds the task, or one within it
    #[arg(long, value_name = "DIR", default_value = ".", value_parser = task_dir(), value_hint = clap::ValueHint::DirPath)]
    task: PathBuf,
}

impl Tool for Add {
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Error> {
        let text = if self.names.is_empty() {
            listed()
        } else if self.diff {
            let compared = edit::compare(&self.task, &self.names)?;
            let absent = compared.iter().filter(|it| it.is_new);
            let absent = absent.map(|it| format!("not all of {} is there\n", it.place.display()));
            let changed = compared.iter().flat_map(|it| &it.changed).map(difference);
            absent.chain(changed).collect()
        } else {
            self.added(&edit::add(&self.task, &self.names)?)
        };
        out.write_all(text.as_bytes()).map_err(OutputError)?;
        Ok(Exit::Done)
    }
}

impl Add {
    /// Says what was written, how it is called, and what comes next.
    fn added(&self, added: &[AddedComputation]) -> String {
        let told = |it: &AddedComputation| {
            let what = if it.is_new { "wrote" } else { "it is there:" };
            format!("{what} {}\n  call it: {}\n", it.place.display(), it.computation.example)
        };
        let mut text: String = added.iter().map(told).collect();
        let new: Vec<String> =
            added.iter().filter(|it| it.is_new).map(|it| quoted_path(&it.place)).collect();
        if !new.is_empty() {
            text.extend(["next:\n  git add ", &new.join(" "), " && git commit\n"]);
        }
        text
    }
}

/// The computations of the library, a line each.
fn listed() -> String {
    let width = LIBRARY_COMPUTATIONS.iter().map(|it| it.name.len()).max().unwrap_or_default();
    let lines = LIBRARY_COMPUTATIONS.iter();
    lines.map(|it| format!("{:width$}  {}\n", it.name, it.help)).collect()
}

fn difference(file: &edit::ChangedFile) -> String {
    let edit::ChangedFile { path, own, library } = file;
    format!("--- library/{path}\n+++ {path}\n{}", unified(library, own))
}
