//! `ce write`: makes the workflow of a task from text.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::PathBuf;

use clap::{Args, Parser};

use super::options::new_task_dir;
use super::{Tool, say_mistakes};
use ce_evaluate::session::{Error, OutputError};
use ce_model::exit::Exit;
use ce_model::humanize::counted;
use ce_model::text_file::MAX_POINTS_FILE;
use ce_task::edit::{self, EditError, Edited, Force};

/// Make the workflow of a task from the text that ce-sym prints
#[derive(Debug, Parser)]
#[command(
    version,
    after_help = "Exit codes: 0 written, 2 the text or the task is wrong, or something \
                                 would be lost, 5 the task cannot be written."
)]
pub struct WriteText {
    /// The file with the text, or - for standard input
    #[arg(value_hint = clap::ValueHint::FilePath)]
    file: PathBuf,

    #[command(flatten)]
    target: Target,
}

/// Which task is written, and what may be lost.
#[derive(Debug, Args)]
pub(super) struct Target {
    /// The directory that holds the task, or one within it
    #[arg(long, value_name = "DIR", default_value = ".", value_parser = new_task_dir(), value_hint = clap::ValueHint::DirPath)]
    pub(super) task: PathBuf,

    /// Replace what no commit records, and files in workflow/ that no text says
    #[arg(long)]
    force: bool,
}

impl Target {
    pub(super) const fn force(&self) -> Force {
        if self.force { Force::Replace } else { Force::Keep }
    }
}

impl Tool for WriteText {
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Error> {
        let (name, contents) = if self.file.as_os_str() == "-" {
            ("standard input".to_owned(), read(io::stdin().lock()))
        } else {
            (self.file.display().to_string(), File::open(&self.file).and_then(read))
        };
        let path = PathBuf::from(&name);
        let contents = match contents {
            Err(source) => return Err(EditError::Read { path, source }.into()),
            Ok(None) => return Err(EditError::Large(path).into()),
            Ok(Some(contents)) => contents,
        };
        let change = edit::write(&self.target.task, &name, &contents, self.target.force())?;
        tell(&change, out)
    }
}

/// Reads a text; `None` if it is larger than any can be.
fn read(file: impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut contents = Vec::new();
    file.take(MAX_POINTS_FILE as u64 + 1).read_to_end(&mut contents)?;
    Ok((contents.len() <= MAX_POINTS_FILE).then_some(contents))
}

/// Tells what was written, and what is odd about it.
pub(super) fn tell(change: &Edited, out: &mut dyn Write) -> Result<Exit, Error> {
    let mut parts = Vec::new();
    if let Some(layout) = &change.workflow {
        let (nodes, links) = layout.counts();
        let links =
            if links == 0 { String::new() } else { format!(", {}", counted(links, "link")) };
        parts.push(format!("workflow ({}{links})", counted(nodes, "node")));
    }
    if let Some(inputs) = &change.inputs {
        let names: Vec<String> = inputs.iter().map(ToString::to_string).collect();
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        parts.push(format!("inputs ({names})"));
    }
    let told = match parts.is_empty() {
        true => writeln!(out, "nothing has changed"),
        false => writeln!(out, "wrote {}", parts.join(" and ")),
    };
    told.map_err(OutputError)?;
    say_mistakes("warning: ", &change.warnings);
    Ok(Exit::Done)
}
