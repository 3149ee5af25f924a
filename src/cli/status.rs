//! `ce status`: the running and waiting calls of a storage. `ce cancel`: the end of suspended calls that is not their own.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use clap::{Args, Parser};
use jiff::Timestamp;

use super::Tool;
use super::input_args::levels;
use super::storage_args::{StorageDir, configured_storage, storage_and_results};
use ce_evaluate::session::{
    BeginError, Error, OutputError, Stop, SuspensionSession, retain_waiting,
};
use ce_history::{SuspendedFact, suspended};
use ce_model::exit::{Exit, Explain};
use ce_model::humanize::counted;
use ce_model::sweep::Factor;
use ce_report::{self as report, AskedStatus, Output, SuspendedStatus, TICK, say};
use ce_storage::records::SuspensionState;
use ce_storage::{Storage, Suspension};

/// Which suspended calls are meant.
#[derive(Debug, Args)]
pub(super) struct SuspendedSelection {
    /// Only suspended calls for which jobs of this task wait
    #[arg(long, value_name = "NAME", value_hint = clap::ValueHint::Other)]
    task: Option<String>,

    /// Only suspended calls of these computations
    #[arg(long, value_name = "COMPUTATION", value_hint = clap::ValueHint::Other)]
    only: Vec<String>,

    /// Only suspended calls that read one of these texts as the input NAME
    #[arg(long = "where", value_name = "NAME=TEXT,...", value_parser = levels, value_hint = clap::ValueHint::Other)]
    wanted: Vec<Factor>,

    /// Only suspended calls in this state
    #[arg(long, value_parser = SuspendedFact::STATES)]
    state: Option<String>,
}

impl SuspendedSelection {
    /// Whether it leaves nothing out.
    const fn is_everything(&self) -> bool {
        let Self { task, only, wanted, state } = self;
        task.is_none() && only.is_empty() && wanted.is_empty() && state.is_none()
    }

    /// The suspended calls of a storage that it means.
    fn suspended(&self, storage: &Storage) -> Result<Vec<SuspendedFact>, Error> {
        let mut facts = suspended(storage)?;
        for wanted in &self.wanted {
            // `n=1,size=2` has the texts 1 and size=2 of n.
            let is_read = |text: &str| {
                let texts = facts.iter().flat_map(|fact| fact.texts.iter());
                texts.into_iter().any(|(_, read)| *read == *text)
            };
            let names = wanted.points.levels(0).iter().filter(|text| text.contains('='));
            if let Some(text) = names.into_iter().find(|text| !is_read(text)) {
                let name = wanted.points.names()[0].clone();
                return Err(SuspendedChoiceError::NoText { name, text: text.to_string() }.into());
            }
        }
        facts.retain(|fact| self.has(fact));
        Ok(facts)
    }

    /// Whether it means this call.
    fn has(&self, fact: &SuspendedFact) -> bool {
        let record = &fact.suspension.record;
        let reads = |wanted: &Factor| {
            fact.texts.iter().any(|(name, text)| {
                wanted.points.column(name).is_some_and(|column| {
                    wanted.points.levels(column).iter().any(|wanted| **wanted == *text)
                })
            })
        };
        self.task
            .as_ref()
            .is_none_or(|task| record.jobs.iter().any(|job| job.task.as_str() == task))
            && (self.only.is_empty()
                || self.only.iter().any(|name| record.computation.as_str() == name))
            && self.wanted.iter().all(reads)
            && self.state.as_deref().is_none_or(|state| state == fact.state())
    }
}

/// Show the activity in a storage: runs, workers, and suspended calls
///
/// Shows for each run its progress, the running calls with their hosts and times, the calls that wait for workers, and the
/// failed ones. Reads only the status files of runs and workers, and an index of suspended calls, but no results. With
/// --task, --only, --where or --state, only suspended calls are shown.
#[derive(Debug, Parser)]
#[command(
    version,
    after_help = "\
Exit codes: 0 listed, even if there are none, 2 the arguments are wrong, 5 the storage could not be read, or not \
be written with --ask."
)]
pub(super) struct ShowStatus {
    /// Ask each call for its state: execute the file status of its computation
    #[arg(long)]
    ask: bool,

    /// Print one JSON object
    #[arg(long)]
    json: bool,

    /// Print it again every two seconds, until Ctrl-C
    #[arg(long, conflicts_with = "json")]
    watch: bool,

    #[command(flatten)]
    selection: SuspendedSelection,

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
        let mut calls = Vec::new();
        for fact in self.selection.suspended(session.storage())? {
            if session.interrupted_by().is_some() {
                break;
            }
            let said = can_be_asked(&fact).then(|| ask(&session, &fact));
            calls.push(SuspendedStatus { fact, said });
        }
        let exit = self.print(session.storage(), &calls, out)?;
        Ok(session.interrupted_by().map_or(exit, Exit::Interrupted))
    }
}

/// Whether nobody executes a call just now, and its last attempt has ended.
fn can_be_asked(fact: &SuspendedFact) -> bool {
    fact.holder.is_none() && fact.suspension.record.state == SuspensionState::Suspended
}

/// Asks a call how it stands.
fn ask(session: &SuspensionSession, fact: &SuspendedFact) -> AskedStatus {
    session.ask(&fact.suspension).map_err(|error| error.in_full())
}

impl ShowStatus {
    /// Prints how things stand, and asks nobody.
    fn look(&self, path: &Path, out: &mut dyn Write) -> Result<Exit, Error> {
        let storage = Storage::existing(path)?;
        let facts = self.selection.suspended(&storage)?;
        let calls = facts.into_iter().map(|fact| SuspendedStatus { fact, said: None });
        self.print(&storage, &calls.collect::<Vec<_>>(), out)
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
        calls: &[SuspendedStatus],
        out: &mut dyn Write,
    ) -> Result<Exit, Error> {
        let (mut activities, mut submitted) = Default::default();
        if self.selection.is_everything() {
            activities = storage.runs().activities()?;
            submitted = storage.runs().submitted_runs()?;
            retain_waiting(&mut submitted);
        }
        let now = Timestamp::now();
        let printed = if self.json {
            report::status_json(storage, &activities, &submitted, calls, out)
        } else if self.selection.is_everything() {
            report::activities(&activities, now, out)
                .and_then(|()| report::submitted_runs(&submitted, now, out))
                .and_then(|()| report::suspended_calls(storage, calls, out))
        } else {
            report::suspended_calls(storage, calls, out)
        };
        printed.map_err(OutputError)?;
        if calls.is_empty() && !self.selection.is_everything() && !self.watch {
            let all = counted(suspended(storage)?.len(), "suspended call");
            say("ce", &format_args!("these options choose none of {all}"));
        }
        Ok(Exit::Done)
    }
}

/// The reason why it is not known which calls are meant.
#[derive(Debug, thiserror::Error, Explain)]
enum SuspendedChoiceError {
    /// No suspended call is named.
    #[error("no call is given")]
    #[hint("give names that ce status lists, or choose calls by --only, --where or --task")]
    NoCallGiven,
    /// Suspended calls are chosen, and one is named.
    #[error("options choose suspended calls, and {0} is given, too")]
    #[hint("leave out the call, or the options")]
    ChosenAndOne(String),
    /// No suspended call reads a text that is asked for, and that looks like another name.
    #[error("no suspended call has {name}={text}")]
    #[hint("write --where once for each name, as in --where {name}=TEXT --where {text}")]
    NoText {
        /// The name.
        name: String,
        /// The text.
        text: String,
    },
    /// No suspended call of this user is chosen.
    #[error("no suspended call of yours is chosen by these options")]
    #[hint("see what ce status prints with the same options")]
    NoneChosen,
}

/// Cancel suspended calls: end the jobs that they have started elsewhere, and remove their directories
///
/// The file cancel of the computation is executed, if it has one, and not with --forget. The next run that needs a call
/// begins it from the beginning. With --all, or options that choose calls, calls of other users are left alone.
#[derive(Debug, Parser)]
#[command(version, after_help = EXIT_CODES)]
pub(super) struct Cancel {
    /// All suspended calls of the storage that this user has begun
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    selection: SuspendedSelection,

    /// Only remove their directories; the jobs that they have started go on
    #[arg(long)]
    forget: bool,

    /// The directory that keeps all results [default: the one in the path of the first call, else compeval.storage in Git's
    /// configuration]
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
        let (path, calls) =
            storage_and_results(self.storage.as_deref(), &self.calls, configured_storage()?)?;
        let session = SuspensionSession::open(&path)?;
        let is_chosen = self.all || !self.selection.is_everything();
        let facts = self.selection.suspended(session.storage())?;
        let (calls, others) = match (is_chosen, &calls[..]) {
            (true, []) => session.own_and_others(facts.iter().map(|it| it.suspension.clone()))?,
            (true, [call, ..]) => {
                let call = call.display().to_string();
                return Err(SuspendedChoiceError::ChosenAndOne(call).into());
            }
            (false, []) => return Err(SuspendedChoiceError::NoCallGiven.into()),
            (false, calls) => (session.find(calls)?, Vec::new()),
        };
        if !self.selection.is_everything() && calls.is_empty() {
            return Err(SuspendedChoiceError::NoneChosen.into());
        }
        let done = if self.forget { "forgot" } else { "cancelled" };
        for call in &calls {
            if let Some(signal) = session.interrupted_by() {
                return Ok(Exit::Interrupted(signal));
            }
            let line = if self.forget {
                session.forget(call).map(|()| None)?
            } else {
                session.cancel(call)?
            };
            let line = line.map(|line| format!(": {}", report::harmless(&line)));
            let line = line.unwrap_or_default();
            let fact = facts.iter().find(|fact| fact.suspension.name == call.name);
            let title = fact.map(|fact| format!("{} ", report::suspended_title(fact)));
            let title = title.unwrap_or_default();
            writeln!(out, "{done} {title}({}){line}", call.name.short()).map_err(OutputError)?;
            say_shared(call);
        }
        if is_chosen {
            let cancelled = counted(calls.len(), "call");
            let others = match others.len() {
                0 => String::new(),
                count => format!("; {} of other users left alone", counted(count, "call")),
            };
            let done = if self.forget { "forgotten" } else { "cancelled" };
            say("ce", &format_args!("{cancelled} of yours {done}{others}"));
        }
        Ok(Exit::Done)
    }
}

/// Prints that several jobs have waited for a call.
fn say_shared(Suspension { name, record }: &Suspension) {
    let jobs = &record.jobs;
    if jobs.len() > 1 {
        let (count, names) = (counted(jobs.len(), "job"), report::waiting_jobs(jobs));
        say("ce", &format_args!("{} have waited for {}: {names}", count, name.short()));
    }
}
