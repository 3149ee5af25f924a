//! `ce init`: makes a task from nothing.

use std::io::Write;
use std::path::PathBuf;

use clap::Parser;

use super::Tool;
use ce_evaluate::session::{Error, OutputError};
use ce_model::exit::Exit;
use ce_model::humanize::quoted_path;
use ce_model::name::ComputationName;
use ce_task::edit;

/// Make a task: a Git repository with a workflow and, if wanted, a first computation
#[derive(Debug, Parser)]
#[command(
    version,
    after_help = "Nothing is overwritten, and nothing is committed.\n\n\
                                 Exit codes: 0 made, 2 there is a task already, 5 it cannot be written."
)]
pub struct Init {
    /// The directory of the task, which is made if it does not exist; its name is the task's
    #[arg(value_name = "DIR", default_value = ".", value_hint = clap::ValueHint::DirPath)]
    dir: PathBuf,

    /// Call this computation in the workflow, and make it unless it is in computations/
    #[arg(long, value_name = "NAME")]
    computation: Option<ComputationName>,
}

impl Tool for Init {
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Error> {
        let made = edit::init(&self.dir, self.computation.as_ref())?;
        let mut next = Vec::new();
        if self.dir.as_os_str() != "." {
            next.push(format!("cd {}", quoted_path(&self.dir)));
        }
        match &self.computation {
            Some(name) => next.push(format!("write computations/{name}/exec")),
            None => {
                let make = "make computations: directories computations/NAME with inputs, outputs and exec";
                next.push(make.to_owned());
                next.push("ce edit, or ce write FILE: the workflow that calls them".to_owned());
            }
        }
        next.push("git add . && git commit".to_owned());
        next.push("ce check; ce run STORAGE and a file for each input".to_owned());
        let files: Vec<String> = made.files.iter().map(|path| path.display().to_string()).collect();
        let place = if made.in_repository { "in this repository" } else { "in a new repository" };
        let next: String = next.iter().map(|step| format!("  {step}\n")).collect();
        let text = format!("made {} {place}\nnext:\n{next}", files.join(", "));
        out.write_all(text.as_bytes()).map_err(OutputError)?;
        Ok(Exit::Done)
    }
}
