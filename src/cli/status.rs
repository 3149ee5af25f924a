//! `ce status`: what goes on in a storage, or waits.

use std::io::Write;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use jiff::Timestamp;

use super::Tool;
use super::place::StorageDir;
use crate::report::{self, Output, Said, TICK};
use ce_evaluate::session::{
    BeginError, Error, OutputError, Stop, SuspensionSession, retain_waiting,
};
use ce_history::{SuspendedFact, suspended};
use ce_model::exit::Exit;
use ce_storage::Storage;
use ce_storage::records::SuspensionState;

/// Show what goes on in a storage: runs, workers, and calls that are suspended
///
/// Of each run it says how far it has come, what runs where and since when, what waits for workers, and what has failed. Only
/// what runs and workers say of themselves is read, and an index of suspended calls; no results.
#[derive(Debug, Parser)]
#[command(
    version,
    after_help = "\
Exit codes: 0 listed, even if there are none, 2 the arguments are wrong, 5 the storage could not be read, or not \
be written with --ask."
)]
pub struct ShowStatus {
    /// Ask each call how it stands: execute the file status of its computation
    #[arg(long)]
    ask: bool,

    /// Print one JSON object
    #[arg(long)]
    json: bool,

    /// Print it again every two seconds, until Ctrl-C
    #[arg(long, conflicts_with = "json")]
    watch: bool,

    #[command(flatten)]
    storage: StorageDir,
}

/// The interval at which it is printed again.
const WATCH: Duration = Duration::from_secs(2);

impl Tool for ShowStatus {
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Error> {
        let path = self.storage.find()?;
        if self.watch {
            return self.watch(&path, out);
        }
        if !self.ask {
            return self.look(&path, out);
        }
        let session = SuspensionSession::open(&path)?;
        let mut facts = Vec::new();
        for fact in suspended(session.storage())? {
            if session.interrupted_by().is_some() {
                break;
            }
            let said = can_be_asked(&fact).then(|| ask(&session, &fact));
            facts.push((fact, said));
        }
        let exit = self.print(session.storage(), &facts, out)?;
        Ok(session.interrupted_by().map_or(exit, Exit::Interrupted))
    }
}

/// Whether nobody executes a call just now, and its last attempt has ended.
fn can_be_asked(fact: &SuspendedFact) -> bool {
    fact.holder.is_none() && fact.suspension.record.state == SuspensionState::Suspended
}

/// Asks a call how it stands.
fn ask(session: &SuspensionSession, fact: &SuspendedFact) -> Said {
    session.ask(&fact.suspension).map_err(|error| error.in_full())
}

impl ShowStatus {
    /// Prints how things stand, and asks nobody.
    fn look(&self, path: &Path, out: &mut dyn Write) -> Result<Exit, Error> {
        let storage = Storage::existing(path)?;
        let facts: Vec<_> = suspended(&storage)?.into_iter().map(|fact| (fact, None)).collect();
        self.print(&storage, &facts, out)
    }

    /// Prints how things stand again and again.
    fn watch(&self, path: &Path, out: &mut dyn Write) -> Result<Exit, Error> {
        let stop = Stop::watch().map_err(BeginError::new)?;
        loop {
            let mut screen = Vec::new();
            self.look(path, &mut screen)?;
            Output.clear_screen().map_err(OutputError)?;
            out.write_all(&screen).and_then(|()| out.flush()).map_err(OutputError)?;
            let shown = Instant::now();
            while shown.elapsed() < WATCH {
                if let Some(signal) = stop.caught() {
                    return Ok(Exit::Interrupted(signal));
                }
                thread::sleep(TICK);
            }
        }
    }

    fn print(
        &self,
        storage: &Storage,
        facts: &[(SuspendedFact, Option<Said>)],
        out: &mut dyn Write,
    ) -> Result<Exit, Error> {
        let activities = storage.runs().activities()?;
        let mut submitted = storage.runs().submitted_runs()?;
        retain_waiting(&mut submitted);
        let now = Timestamp::now();
        let printed = match self.json {
            true => report::status_json(storage, (&activities, &submitted), facts, out),
            false => report::activities(&activities, now, out)
                .and_then(|()| report::submitted_runs(&submitted, now, out))
                .and_then(|()| report::suspended_calls(storage, facts, out)),
        };
        printed.map_err(OutputError)?;
        Ok(Exit::Done)
    }
}
