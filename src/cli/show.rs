//! `ce show`: what made a file.

use std::io::Write;

use clap::Parser;

use super::Tool;
use super::options::warn_of_links;
use super::place::StorageFile;
use crate::report::Ancestry;
use ce_evaluate::session::{BeginError, Error, OutputError, Stop, find_call, print_log};
use ce_exchange::Attestations;
use ce_history::{History, TakenOver};
use ce_model::exit::Exit;
use ce_storage::{Defect, Entry, Maintenance, Record, Storage};

/// Show the provenance of a file: what made it, and what that was made from
///
/// Prints the computation, the commit, the inputs, and the points of sweeps that rest on it; when, where, by whom and how fast it was
/// made; whether its contents are still the recorded ones; and the tree of all that it was made
/// from.
#[derive(Debug, Parser)]
#[command(version, allow_missing_positional = true, after_help = EXIT_CODES)]
pub struct Show {
    /// Print one JSON document
    #[arg(long)]
    json: bool,

    /// Print what the call that makes the file has printed; of one that is being executed, what it has printed so far. The
    /// file may also be a call: its name c_NAME/CCID/INPUTS, a file of it, or the first digits of INPUTS
    #[arg(long, conflicts_with = "json")]
    log: bool,

    /// Follow that until the call is over, wherever it is executed
    #[arg(short, long, conflicts_with = "json")]
    follow: bool,

    #[command(flatten)]
    place: StorageFile,
}

const EXIT_CODES: &str = "\
Exit codes: 0 shown, 2 the arguments are wrong or the file has no record, 5 the storage could not be \
read, or the file differs from its record, 130 interrupted.";

impl Tool for Show {
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Error> {
        let storage = &Storage::existing(&self.place.find()?)?;
        if self.log || self.follow {
            let stop = Stop::watch().map_err(BeginError::new)?;
            let name = find_call(storage, &self.place.file)?;
            print_log(storage, &name, self.follow, &stop, out)?;
            return Ok(stop.caught().map_or(Exit::Done, Exit::Interrupted));
        }
        warn_of_links(storage)?;
        let history = History::read(storage)?.with_recipes(storage)?;
        let subject = history.find(storage, &self.place.file)?;
        let fault = Maintenance::new(storage).check(subject.promise);
        let log = match subject.entry {
            Entry::Call(name) => storage.attempts().log(name)?,
            Entry::Job(_) | Entry::Table(_) | Entry::TaskInput(_) => None,
        };
        let summary = history.summary(storage, subject.entry)?;
        let ancestors = history.ancestry(storage, subject)?;
        let taken_over = match subject.record {
            Record::Call(call) => TakenOver::of(storage, call),
            Record::Job(_) | Record::Table(_) | Record::TaskInput(_) => None,
        };
        let attested = match subject.record {
            Record::Call(call) => Some(Attestations::read(storage)?.of(call)),
            Record::Job(_) | Record::Table(_) | Record::TaskInput(_) => None,
        };
        let points = history.points(storage, subject)?;
        let revoked = storage.revocations().of(subject.entry, subject.record)?;
        let texts = ce_history::texts(storage, subject);
        let roles = history.roles(storage, subject, &ancestors)?;
        let ancestry = Ancestry {
            storage,
            subject,
            fault,
            taken_over,
            log,
            summary,
            points,
            texts,
            revoked,
            attested,
            ancestors,
            roles,
        };
        let shown = if self.json { ancestry.json(out) } else { ancestry.text(out) };
        shown.map_err(OutputError)?;
        let is_damaged = ancestry.fault.as_ref().is_some_and(Defect::is_harm);
        Ok(if is_damaged { Exit::Storage } else { Exit::Done })
    }
}
