//! `ce cancel` and `ce forget`: the ends of suspended calls that are not their own.

use std::io::Write;
use std::path::PathBuf;

use clap::Parser;

use super::place::{setting, told_apart};
use super::{Tool, say};
use crate::report;
use ce_evaluate::session::{Error, OutputError, SuspensionSession};
use ce_model::exit::{Exit, Explain};
use ce_model::humanize::counted;
use ce_storage::{Storage, Suspension};

/// Why it is not known which calls are meant.
#[derive(Debug, thiserror::Error)]
enum SuspendedChoiceError {
    /// No suspended call is named.
    #[error("no call is given")]
    NoCallGiven,
    /// All suspended calls are meant, and one is named.
    #[error("--all means all suspended calls, and {0} is given, too")]
    AllAndOne(String),
}

impl Explain for SuspendedChoiceError {
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::NoCallGiven => "give names that ce status lists",
            Self::AllAndOne(_) => "leave out one of them",
        };
        Some(hint.to_owned())
    }
}

/// Cancel suspended calls: end what they have started elsewhere, and remove their directories
///
/// The file cancel of the computation is executed, if it has one. The next run that needs a call begins it from the
/// beginning.
#[derive(Debug, Parser)]
#[command(version, after_help = EXIT_CODES)]
pub struct Cancel {
    /// All suspended calls of the storage that this user has begun
    #[arg(long)]
    all: bool,

    /// The directory that keeps all results [default: the one that the path of the first call leads through, else
    /// what Git's configuration has for compeval.storage]
    #[arg(value_hint = clap::ValueHint::DirPath)]
    storage: Option<PathBuf>,

    /// A suspended call: one of its files, its place, or its name c_NAME/CCID/INPUTS
    #[arg(value_name = "CALL|FILE", value_hint = clap::ValueHint::FilePath)]
    calls: Vec<PathBuf>,
}

/// Remove the directories of suspended calls, without ending what they have started elsewhere
///
/// The next run that needs a call begins it from the beginning.
#[derive(Debug, Parser)]
#[command(version, after_help = EXIT_CODES)]
pub struct Forget {
    /// The directory that keeps all results [default: the one that the path of the first call leads through, else
    /// what Git's configuration has for compeval.storage]
    #[arg(value_hint = clap::ValueHint::DirPath)]
    storage: Option<PathBuf>,

    /// A suspended call: one of its files, its place, or its name c_NAME/CCID/INPUTS
    #[arg(value_name = "CALL|FILE", value_hint = clap::ValueHint::FilePath)]
    calls: Vec<PathBuf>,
}

const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 a call could not be cancelled, or is being executed, 2 the arguments are wrong or a call is not \
suspended, 5 the storage could not be read or written.";

impl Tool for Cancel {
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Error> {
        let (path, calls) = told_apart((self.storage.as_deref(), &self.calls), setting()?)?;
        let session = SuspensionSession::open(&path)?;
        let (calls, others) = match (self.all, &calls[..]) {
            (true, []) => own_and_others(session.storage())?,
            (true, [call, ..]) => {
                return Err(SuspendedChoiceError::AllAndOne(call.display().to_string()).into());
            }
            (false, []) => return Err(SuspendedChoiceError::NoCallGiven.into()),
            (false, calls) => (session.find(calls)?, Vec::new()),
        };
        for call in &calls {
            if let Some(signal) = session.interrupted_by() {
                return Ok(Exit::Interrupted(signal));
            }
            let line = session.cancel(call)?;
            let line = line.map(|line| format!(": {}", report::harmless(&line)));
            let line = line.unwrap_or_default();
            writeln!(out, "cancelled {}{line}", call.name.short()).map_err(OutputError)?;
            say_shared(call);
        }
        if self.all {
            let cancelled = counted(calls.len(), "call");
            let others = match others.len() {
                0 => String::new(),
                count => format!("; {} of other users left alone", counted(count, "call")),
            };
            say("ce", &format_args!("{cancelled} of yours cancelled{others}"));
        }
        Ok(Exit::Done)
    }
}

/// The suspended calls that this user has begun, and those of others.
fn own_and_others(storage: &Storage) -> Result<(Vec<Suspension>, Vec<Suspension>), Error> {
    let suspensions = storage.suspensions();
    let (mut own, mut others) = (Vec::new(), Vec::new());
    for call in suspensions.all()? {
        if suspensions.is_own(&call.name)? { own.push(call) } else { others.push(call) }
    }
    Ok((own, others))
}

impl Tool for Forget {
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Error> {
        let (path, calls) = told_apart((self.storage.as_deref(), &self.calls), setting()?)?;
        if calls.is_empty() {
            return Err(SuspendedChoiceError::NoCallGiven.into());
        }
        let session = SuspensionSession::open(&path)?;
        for call in session.find(&calls)? {
            session.forget(&call)?;
            writeln!(out, "forgot {}", call.name.short()).map_err(OutputError)?;
            say_shared(&call);
        }
        Ok(Exit::Done)
    }
}

/// Says that several jobs have waited for a call.
fn say_shared(Suspension { name, record }: &Suspension) {
    let jobs = &record.jobs;
    if jobs.len() > 1 {
        let (count, names) = (counted(jobs.len(), "job"), report::waiting_jobs(jobs));
        say("ce", &format_args!("{} have waited for {}: {names}", count, name.short()));
    }
}
