//! `ce cite`: what a paper needs to name a result.

use std::io::Write;
use std::path::Path;

use clap::{Parser, ValueEnum};

use super::options::warn_of_links;
use super::place::StorageFile;
use super::{Tool, say};
use crate::report::{CitationFormat, citation, harmless};
use ce_evaluate::session::{Error, OutputError};
use ce_history::History;
use ce_history::package::Citation;
use ce_model::exit::Exit;
use ce_storage::{Defect, Maintenance, Storage};

/// Print what a paper needs to name a result
///
/// The task and the output, the full commit and the repository that has it, the inputs and the file with
/// their hashes, the version of CompEval, and the day of the execution.
#[derive(Debug, Parser)]
#[command(version, allow_missing_positional = true, after_help = EXIT_CODES)]
pub struct CiteResult {
    /// The form of the citation
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: FormatName,

    #[command(flatten)]
    place: StorageFile,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum FormatName {
    Text,
    Bibtex,
    CslJson,
}

const EXIT_CODES: &str = "\
Exit codes: 0 printed, 2 the arguments are wrong or the file has no record, 5 the storage could not be read, \
or the file differs from its record.";

impl Tool for CiteResult {
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Error> {
        let storage = &Storage::existing(&self.place.find()?)?;
        warn_of_links(storage)?;
        let history = History::read(storage)?;
        let subject = history.find(storage, &self.place.file)?;
        let fault = Maintenance::new(storage).check(subject.promise);
        let fault = fault.filter(Defect::is_harm);
        let cited = Citation::of(storage, &history, subject)?.with_repository(Path::new("."))?;
        let format = match self.format {
            FormatName::Text => CitationFormat::Text,
            FormatName::Bibtex => CitationFormat::Bibtex,
            FormatName::CslJson => CitationFormat::CslJson,
        };
        citation(&cited, format, out).map_err(OutputError)?;
        let Some(fault) = fault else { return Ok(Exit::Done) };
        say(
            "ce",
            &format_args!(
                "warning: {} is not what is cited: {fault}\n  try: ce verify --repair, and run the task again",
                harmless(&subject.promise.name)
            ),
        );
        Ok(Exit::Storage)
    }
}
