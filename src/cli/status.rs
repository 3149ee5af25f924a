//! `ce status`: what goes on in a storage, or waits.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Parser;

use super::Tool;
use crate::exit::Exit;
use crate::git::Config;
use crate::questions::status::{SuspendedFact, suspended};
use crate::report::{self, Said};
use crate::session::{Error, SuspensionSession};
use crate::storage::Storage;
use crate::storage::records::SuspensionState;

/// List the calls that are suspended: what they have started goes on elsewhere
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

    /// The directory of the storage [default: compeval.storage in Git's configuration]
    #[arg(value_hint = clap::ValueHint::DirPath)]
    storage: Option<PathBuf>,
}

impl Tool for ShowStatus {
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Error> {
        let path = match &self.storage {
            Some(path) => path.clone(),
            None => Config::of(Path::new("."))?.storage()?.ok_or(Error::NoStorage)?,
        };
        if !self.ask {
            let storage = Storage::existing(&path)?;
            let facts: Vec<_> = suspended(&storage)?.into_iter().map(|fact| (fact, None)).collect();
            return self.print(&storage, &facts, out);
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
    fn print(
        &self,
        storage: &Storage,
        facts: &[(SuspendedFact, Option<Said>)],
        out: &mut dyn Write,
    ) -> Result<Exit, Error> {
        let printed = match self.json {
            true => report::status_json(storage, facts, out),
            false => report::suspended_calls(storage, facts, out),
        };
        printed.map(|()| Exit::Done).map_err(Error::Output)
    }
}
