//! Options that several programs have, and loading the task that they name.

use std::fs;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};

use super::say;
use crate::cache::Cache;
use crate::evaluate::Evaluation;
use crate::git::Config;
use crate::load::{self, Loaded, Uncommitted};
use crate::session::{self, Error, RunOptions};
use crate::storage::{Durability, Finding, Storage, Survey, Unrecorded};
use crate::task::workflow::Task;

/// Whether changes that are not committed count.
#[derive(Debug, Args)]
pub(super) struct Dirty {
    /// Evaluate computations with uncommitted changes, under names of their own
    ///
    /// Their results are in c_NAME/dirty-TREE, where TREE identifies their contents, and the job's
    /// outputs are not stored under the task's commit.
    #[arg(long)]
    dirty: bool,
}

impl Dirty {
    pub(super) const fn uncommitted(&self) -> Uncommitted {
        if self.dirty { Uncommitted::Evaluate } else { Uncommitted::Refuse }
    }
}

/// Which task.
#[derive(Debug, Args)]
pub(super) struct TaskDir {
    /// The directory that holds the task
    #[arg(long, value_name = "DIR", default_value = ".", value_hint = clap::ValueHint::DirPath)]
    pub(super) task: PathBuf,

    /// Take the task as it was at a commit, from the repository's objects: nothing is checked out
    #[arg(long, value_name = "REV")]
    pub(super) at: Option<String>,
}

impl TaskDir {
    /// Returns what Git's configuration says for the task's repository.
    pub(super) fn config(&self) -> Result<Config, Error> {
        Ok(Config::of(&self.task)?)
    }

    /// Loads the task, and tells what is odd about it.
    pub(super) fn load(&self, program: &str, uncommitted: Uncommitted) -> Result<Task, Error> {
        // Warnings need a look at the task itself.
        let cache = Cache::of_user().filter(|_| uncommitted != Uncommitted::Warn);
        let Loaded { task, warnings } = match &self.at {
            Some(rev) => load::task_at(&self.task, rev, cache.as_ref())?,
            None => load::task(&self.task, uncommitted, cache.as_ref())?,
        };
        for warning in warnings {
            say(program, &format_args!("warning: {warning}"));
        }
        Ok(task)
    }
}

/// The treatment of outputs without a record.
#[derive(Debug, Args)]
pub(super) struct Strict {
    /// Use neither results without a record nor adopted ones
    ///
    /// By default, results of the first CompEval implementation and files put in place by hand are
    /// adopted: used, and recorded as adopted.
    #[arg(long)]
    strict: bool,
}

impl Strict {
    pub(super) const fn unrecorded(&self) -> Unrecorded {
        if self.strict { Unrecorded::Refuse } else { Unrecorded::Adopt }
    }
}

/// How tasks are evaluated.
#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// How many computations run at the same time [default: what Git's configuration has for
    /// compeval.jobs, else the number of cores]
    #[arg(short, long, value_name = "N")]
    jobs: Option<NonZeroUsize>,

    /// Retry a failed call up to N times
    #[arg(long, value_name = "N", default_value_t = 0)]
    retry: u32,

    /// End a computation that takes longer, such as 90s, 10min or 1h30min
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    timeout: Option<Duration>,

    /// Do not wait until results are on the disk: faster, and safe as long as the power stays on
    #[arg(long)]
    no_sync: bool,

    /// Isolate computations from the rest of the system, whatever Git's configuration has for
    /// compeval.isolate
    #[arg(long, overrides_with = "no_isolate")]
    isolate: bool,

    /// Do not isolate computations from the rest of the system [default: what Git's configuration
    /// has for compeval.isolate]
    #[arg(long, overrides_with = "isolate")]
    no_isolate: bool,

    #[command(flatten)]
    strict: Strict,
}

impl RunArgs {
    /// Returns the options of a session: these arguments, or else Git's configuration, or defaults.
    pub(super) fn options(&self, config: &Config) -> Result<RunOptions, Error> {
        let default = RunOptions::default();
        let jobs = match self.jobs {
            Some(jobs) => Some(jobs),
            None => config.jobs()?,
        };
        Ok(RunOptions {
            jobs: jobs.unwrap_or(default.jobs),
            retries: self.retry,
            timeout: self.timeout,
            durability: if self.no_sync { Durability::Unsynced } else { Durability::Synced },
            isolate: match (self.isolate, self.no_isolate) {
                (false, false) => config.isolate()?.unwrap_or(default.isolate),
                (isolate, _) => isolate,
            },
            unrecorded: self.unrecorded(),
        })
    }

    /// The treatment of outputs without a record.
    pub(super) const fn unrecorded(&self) -> Unrecorded {
        self.strict.unrecorded()
    }
}

/// Reads a duration with its unit.
fn duration(text: &str) -> Result<Duration, String> {
    let duration: jiff::SignedDuration = text.parse().map_err(|error| format!("{error}"))?;
    Duration::try_from(duration).map_err(|_| "it is negative".to_owned())
}

/// Opens a storage that is there, for reading and writing.
pub(super) fn writable(path: &Path) -> Result<Storage, Error> {
    Storage::existing(path)?;
    Ok(Storage::open(path, Unrecorded::Refuse, Durability::Synced)?)
}

/// Warns of symbolic links in the place of directories: nothing behind them is looked at.
pub(super) fn warn_of_links(storage: &Storage) -> Result<(), Error> {
    for Finding { name, defect } in Survey::new(storage).links()? {
        let path = storage.shown(&name);
        say("ce", &format_args!("warning: {} is left out: {defect}", path.display()));
    }
    Ok(())
}

/// Where the results are, and what the task is given, as it was typed.
#[derive(Clone, Debug, Args)]
pub(super) struct PathArgs {
    /// The directory that keeps all results [default: what Git's configuration has for
    /// compeval.storage]
    #[arg(value_hint = clap::ValueHint::DirPath)]
    storage: Option<PathBuf>,

    /// A file for each input of the task, in the order of the task's inputs
    #[arg(value_hint = clap::ValueHint::FilePath)]
    inputs: Vec<PathBuf>,
}

/// Where the results are, and what the task is given.
pub(super) struct ResolvedPaths<'a> {
    pub(super) storage: PathBuf,
    pub(super) inputs: Vec<&'a Path>,
}

impl PathArgs {
    /// Whether nothing was typed.
    pub(super) const fn is_nothing(&self) -> bool {
        self.storage.is_none()
    }

    /// The first argument, and the others as if they had been typed without it.
    pub(super) fn split_first(&self) -> Option<(&Path, Self)> {
        let mut inputs = self.inputs.clone().into_iter();
        Some((self.storage.as_deref()?, Self { storage: inputs.next(), inputs: inputs.collect() }))
    }

    /// The ways to tell the storage from the inputs: it is the one that is configured, or comes
    /// first.
    pub(super) fn candidates(&self, config: &Config) -> Result<Vec<ResolvedPaths<'_>>, Error> {
        let typed = self.storage.iter().chain(&self.inputs).map(PathBuf::as_path);
        let typed: Vec<&Path> = typed.collect();
        let first = typed.split_first().map(|(storage, inputs)| ResolvedPaths {
            storage: (*storage).to_owned(),
            inputs: inputs.to_vec(),
        });
        let configured = config.storage()?.map(|storage| ResolvedPaths { storage, inputs: typed });
        Ok(configured.into_iter().chain(first).collect())
    }

    /// Looks for all results of a task in the storage. Computes and writes nothing.
    pub(super) fn look_up(
        &self,
        dir: &TaskDir,
        task: Task,
        strict: &Strict,
    ) -> Result<Evaluation, Error> {
        let ResolvedPaths { storage, inputs } = self.resolve(&task, &dir.config()?)?;
        session::look_up(&dir.task, task, &storage, &inputs, strict.unrecorded())
    }

    /// Tells the storage from the inputs: it comes first, unless the configuration has one and
    /// there are just as many files as the task has inputs.
    pub(super) fn resolve(&self, task: &Task, config: &Config) -> Result<ResolvedPaths<'_>, Error> {
        let mut candidates = self.candidates(config)?;
        let fits = |given: &ResolvedPaths<'_>| given.inputs.len() == task.inputs.len();
        match candidates.iter().position(fits) {
            Some(at) => {
                let given = candidates.swap_remove(at);
                check_inputs(task, &given.inputs)?;
                Ok(given)
            }
            None => {
                let configured = config.storage()?.is_some();
                let wrong =
                    |given: &ResolvedPaths<'_>| wrong_number(task, given.inputs.len(), configured);
                Err(candidates.first().map_or(Error::NoStorage, wrong))
            }
        }
    }
}

fn wrong_number(task: &Task, given: usize, configured: bool) -> Error {
    let names = task.inputs.iter().map(ToString::to_string).collect();
    Error::Inputs { task: task.name.to_string(), names, given, configured }
}

/// Sees to it that each input of the task is a readable file.
fn check_inputs(task: &Task, paths: &[&Path]) -> Result<(), Error> {
    for (name, path) in task.inputs.iter().zip(paths) {
        readable(path).map_err(|source| Error::Input {
            name: name.to_string(),
            path: path.display().to_string(),
            source,
        })?;
    }
    Ok(())
}

fn readable(path: &Path) -> io::Result<()> {
    let metadata = fs::metadata(path)?;
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    // Opening a pipe would wait for its writer.
    if metadata.is_file() { fs::File::open(path).map(drop) } else { Ok(()) }
}

/// Reads a time in the past: a date, which begins at midnight UTC, a time with its zone, or how
/// long ago it was.
pub(super) fn time(text: &str) -> Result<Timestamp, String> {
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time);
    }
    if let Ok(date) = text.parse::<Date>() {
        let midnight = date.to_zoned(TimeZone::UTC).map_err(|error| error.to_string())?;
        return Ok(midnight.timestamp());
    }
    let span = text.parse::<Span>().and_then(|span| {
        let now = Timestamp::now().to_zoned(TimeZone::UTC);
        Ok(now.checked_sub(span)?.timestamp())
    });
    span.map_err(|_| "write a date, a time such as 2026-07-31T12:00:00Z, or 7d, 12h".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_date_a_time_or_a_span() {
        assert_eq!(time("2026-07-31"), time("2026-07-31T00:00:00Z"));
        assert_eq!(time("2026-07-31T02:00:00+02:00"), time("2026-07-31T00:00:00Z"));
        assert!(time("7d").unwrap() < time("12h").unwrap());
        assert!(time("yesterday").is_err());
        assert!(time("1y").unwrap() < time("11mo").unwrap());
    }
}
