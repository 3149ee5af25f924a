//! `ce pin`: keeps results whatever becomes of the rest.

use std::io::Write;
use std::path::PathBuf;

use clap::Parser;

use super::options::{warn_of_links, writable};
use super::place::{setting, told_apart};
use super::{Tool, say};
use crate::report;
use ce_evaluate::session::{Error, OutputError, naming_results};
use ce_history::History;
use ce_model::exit::{Exit, Explain};
use ce_storage::{Entry, Pins, Storage};

/// No result is named for an option that changes pins.
#[derive(Debug, thiserror::Error)]
#[error("{0} needs a file")]
struct NothingToPin(&'static str);

impl Explain for NothingToPin {
    fn hint(&self) -> Option<String> {
        Some(naming_results())
    }
}

/// Pin results, so that they are never collected; without a file, list what is pinned
///
/// A result that is pinned stays with everything that it was made from.
#[derive(Debug, Parser)]
#[command(
    version,
    after_help = "\
Exit codes: 0 done, 2 the arguments are wrong or a file has no record, 5 the storage could not be \
read or written."
)]
pub struct Pin {
    /// Remove the pins
    #[arg(long, conflicts_with = "note")]
    remove: bool,

    /// Why they are pinned
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,

    /// Print what is pinned as JSON, one object a line
    #[arg(long)]
    json: bool,

    /// The directory that keeps all results [default: the one that the path of the first file leads through, else
    /// what Git's configuration has for compeval.storage]
    #[arg(value_hint = clap::ValueHint::DirPath)]
    storage: Option<PathBuf>,

    /// An output or task input: its path, with or without the storage's, or the first four or
    /// more digits of its SHA-1
    #[arg(value_hint = clap::ValueHint::FilePath)]
    files: Vec<PathBuf>,
}

impl Tool for Pin {
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Error> {
        let (path, files) = told_apart((self.storage.as_deref(), &self.files), setting()?)?;
        if let Some(option) = self.changing().filter(|_| files.is_empty()) {
            return Err(NothingToPin(option).into());
        }
        if files.is_empty() {
            let storage = Storage::existing(&path)?;
            warn_of_links(&storage)?;
            let print = if self.json { report::pins_json } else { report::pins };
            print(&storage, &Pins::new(&storage).all()?, out).map_err(OutputError)?;
            return Ok(Exit::Done);
        }
        let storage = &writable(&path)?;
        warn_of_links(storage)?;
        let history = History::read(storage)?;
        // All are looked for before any is pinned.
        let files: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
        let entry = |file: &String| history.find(storage, file).map(|subject| subject.entry);
        let entries: Vec<&Entry> = files.iter().map(entry).collect::<Result<_, _>>()?;
        for (entry, file) in entries.into_iter().zip(&files) {
            if !self.remove {
                Pins::new(storage).add(entry, self.note.clone())?;
            } else if !Pins::new(storage).remove(entry)? {
                say("ce", &format_args!("{file} is not pinned"));
            }
        }
        Ok(Exit::Done)
    }
}

impl Pin {
    /// The option that needs a file.
    fn changing(&self) -> Option<&'static str> {
        if self.remove { Some("--remove") } else { self.note.as_ref().map(|_| "--note") }
    }
}
