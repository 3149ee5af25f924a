//! Options that several programs have, and loading the task that they name.

use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anstream::{AutoStream, ColorChoice};
use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{Args, ValueEnum};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};

use ce_evaluate::Policy;
use ce_evaluate::session::{Error, IsolationPolicy, Place, RunOptions};
use ce_executor::scheduler::{CommandSettings, Setting};
use ce_executor::slurm::SlurmSettings;
use ce_files::cache::Cache;
use ce_git::{Config, ConfigEntry};
use ce_model::exit::Explain;
use ce_model::humanize::{parse_count, parse_duration, parse_number};
use ce_model::task::Task;
use ce_report::{self as report, TreeStyle, say};
use ce_storage::{Durability, Finding, Storage, Survey, Unrecorded};
use ce_task::load::{self, Loaded, Uncommitted, Warning};

/// Whether the name of a file to be written means standard output.
pub(super) fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

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

/// The directory of a task that a directory is or is in: the nearest one in the same work tree that holds a
/// workflow. Without any, it is the directory itself.
pub(super) fn task_dir() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().map(task_around)
}

/// See [`task_dir`].
pub(super) fn task_around(dir: PathBuf) -> PathBuf {
    ce_git::around(&dir, load::is_task).unwrap_or(dir)
}

/// Which task.
#[derive(Debug, Args)]
pub(super) struct TaskDir {
    /// The directory that holds the task, or one within it
    #[arg(long, value_name = "DIR", default_value = ".", value_parser = task_dir(), value_hint = clap::ValueHint::DirPath)]
    pub(super) task: PathBuf,

    /// Take the task as it was at a commit, from the repository's objects: nothing is checked out
    #[arg(long, value_name = "REV")]
    pub(super) at: Option<String>,
}

impl TaskDir {
    /// Returns Git's configuration for the task's repository.
    pub(super) fn config(&self) -> Result<Config, Error> {
        Ok(Config::read(&self.task)?)
    }

    /// Loads the task, and prints warnings about it.
    pub(super) fn load(&self, program: &str, uncommitted: Uncommitted) -> Result<Task, Error> {
        // Warnings need a look at the task itself.
        let cache = Cache::of_user().filter(|_| uncommitted != Uncommitted::Warn);
        let Loaded { task, warnings } = match &self.at {
            Some(rev) => load::task_at(&self.task, rev, cache.as_ref())?,
            None => load::task(&self.task, uncommitted, cache.as_ref())?,
        };
        for warning in warnings {
            warn(program, &warning);
        }
        Ok(task)
    }
}

/// Prints a warning about a task, and what to try.
pub(super) fn warn(program: &str, warning: &Warning) {
    let hint = warning.oddity.hint().unwrap_or_default();
    say(program, &format_args!("warning: {warning}\n  try: {hint}"));
}

/// The treatment of outputs without a record.
#[derive(Debug, Args)]
pub(super) struct Strict {
    /// Do not use results without a record, adopted results, or results taken over because a tree was trusted
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

    /// The options of a session that only looks up results.
    pub(super) fn to_look(&self, config: &Config) -> Result<RunOptions, Error> {
        Ok(RunOptions::to_look(config, self.unrecorded(), report::terminal())?)
    }
}

/// Where calls are executed.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum PlaceName {
    Here,
    Workers,
    Slurm,
    Scheduler,
}

impl PlaceName {
    pub(super) fn place(self, config: &Config) -> Result<Place, Error> {
        Ok(match self {
            Self::Here => Place::Here,
            Self::Workers => Place::Workers,
            Self::Slurm => Place::Slurm,
            Self::Scheduler => {
                let entries = config.subsection("scheduler");
                let settings = CommandSettings::new(entries.iter().map(setting))?;
                Place::Scheduler(Box::new(settings))
            }
        })
    }
}

/// How tasks are evaluated.
#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// How many computations run at the same time, or how many cpus they use if they ask for several [default:
    /// compeval.jobs in Git's configuration, else the number of cores]
    #[arg(short, long, value_name = "N", value_parser = parse_count)]
    jobs: Option<NonZeroUsize>,

    /// Where calls are executed: here, by workers that others start with ce worker, by workers that are submitted
    /// to Slurm, or by workers that the commands compeval.scheduler.* start
    #[arg(long, value_name = "PLACE", default_value = "here")]
    on: PlaceName,

    /// The file of a key that this run and its workers share, instead of the user's own, which is in the home
    /// directory. It is made if it does not exist, and is for its owner alone
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    key: Option<PathBuf>,

    /// Start no more calls once one has failed. Running calls go on to their end: results are kept, and failures are not
    /// retried
    #[arg(long, overrides_with = "keep_going")]
    fail_fast: bool,

    /// Evaluate all calls that do not depend on a failed one. This is the default
    #[arg(long, overrides_with = "fail_fast")]
    keep_going: bool,

    /// Retry a failed call up to N times
    #[arg(long, value_name = "N", value_parser = |text: &str| parse_number::<u32>(text, 0), default_value_t = 0)]
    retry: u32,

    /// Execute points of sweeps again that failed before, in sweeps that allow failures
    #[arg(long)]
    retry_failed: bool,

    /// End a computation that takes longer, such as 90s, 10min or 1h30min
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    timeout: Option<Duration>,

    /// Do not wait until results are on the disk: faster, and safe as long as the power stays on
    #[arg(long)]
    no_sync: bool,

    /// Isolate computations from the rest of the system, or execute nothing [default: isolate unless the host has no
    /// namespaces]
    #[arg(long, overrides_with = "no_isolate")]
    isolate: bool,

    /// Do not isolate computations from the rest of the system [default: compeval.isolate in Git's configuration]
    #[arg(long, overrides_with = "isolate")]
    no_isolate: bool,

    #[command(flatten)]
    strict: Strict,
}

impl RunArgs {
    /// Returns the options of a session: these arguments, or else Git's configuration, or defaults.
    pub(super) fn options(&self, config: &Config) -> Result<RunOptions, Error> {
        Ok(RunOptions {
            jobs: jobs(self.jobs, config)?,
            policy: Policy {
                retries: self.retry,
                retry_failed: self.retry_failed,
                fail_fast: self.fail_fast,
                timeout: self.timeout,
                ..Policy::default()
            },
            durability: if self.no_sync { Durability::Unsynced } else { Durability::Synced },
            isolation: isolation(self.isolate, self.no_isolate, config)?,
            unrecorded: self.unrecorded(),
            takeover: RunOptions::takeover(config)?,
            place: self.on.place(config)?,
            key: self.key.clone(),
            slurm: slurm(config)?,
            is_job: false,
            accepts_new: true,
            quiet: false,
            frontend: report::terminal(),
        })
    }

    /// The treatment of outputs without a record.
    pub(super) const fn unrecorded(&self) -> Unrecorded {
        self.strict.unrecorded()
    }
}

/// Returns the number of computations that run at the same time: as asked for, configured, or by default.
pub(super) fn jobs(asked: Option<NonZeroUsize>, config: &Config) -> Result<NonZeroUsize, Error> {
    match asked {
        Some(jobs) => Ok(jobs),
        None => Ok(config.jobs()?.unwrap_or(RunOptions::default().jobs)),
    }
}

/// Whether computations are isolated: as asked for, configured, or by default.
pub(super) fn isolation(
    asked: bool,
    refused: bool,
    config: &Config,
) -> Result<IsolationPolicy, Error> {
    let asked = if asked || refused { Some(asked) } else { config.isolate()? };
    Ok(match asked {
        Some(true) => IsolationPolicy::Required,
        Some(false) => IsolationPolicy::Off,
        None => RunOptions::default().isolation,
    })
}

/// Returns the settings for submitting workers to Slurm.
pub(super) fn slurm(config: &Config) -> Result<SlurmSettings, Error> {
    let entries = config.subsection("slurm");
    Ok(SlurmSettings::new(entries.iter().map(setting))?)
}

/// A setting of a scheduler.
fn setting(entry: &ConfigEntry) -> Setting<'_> {
    Setting { key: &entry.key, value: &entry.value, place: &entry.file }
}

/// Opens a storage that is there, for reading and writing.
pub(super) fn writable(path: &Path) -> Result<Storage, Error> {
    Ok(Storage::existing(path)?.into_writable(Durability::Synced)?)
}

/// Warns of symbolic links in the place of directories: nothing behind them is looked at.
pub(super) fn warn_of_links(storage: &Storage) -> Result<(), Error> {
    for Finding { name, defect } in Survey::new(storage).links()? {
        let path = storage.shown(&name);
        say(
            "ce",
            &format_args!(
                "warning: {} is left out: {defect}\n  try: replace the link by the directory, or mount that there",
                path.display()
            ),
        );
    }
    Ok(())
}

/// How the tree tells states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum StyleName {
    Original,
    Words,
}

impl StyleName {
    /// The style that was asked for, or is configured, or else words: with colours on a terminal, unless the user's environment is against
    /// them.
    pub(super) fn style(asked: Option<Self>, config: &Config) -> Result<TreeStyle, Error> {
        let configured = config.prints_words()?;
        let configured = configured.map(|words| if words { Self::Words } else { Self::Original });
        Ok(match asked.or(configured).unwrap_or(Self::Words) {
            Self::Original => TreeStyle::Original,
            Self::Words => {
                let colours = AutoStream::choice(&io::stdout()) != ColorChoice::Never;
                TreeStyle::Words { colours }
            }
        })
    }
}

/// A time in the past.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PastTime {
    pub(super) time: Timestamp,
    /// It is an age of zero.
    is_now: bool,
}

impl PastTime {
    /// The time before which something is old; `None` if everything is, even records from a clock that is ahead.
    pub(super) fn limit(self) -> Option<Timestamp> {
        (!self.is_now).then_some(self.time)
    }
}

/// Reads a time in the past: a date, which begins at midnight UTC, a date with a time, which is in UTC unless it has
/// a zone, or an age.
///
/// # Errors
///
/// Fails with a text that says how times are written, or that it is in the future.
pub(super) fn past_time(text: &str) -> Result<PastTime, String> {
    let now = Timestamp::now();
    let time = if let Ok(time) = text.parse::<Timestamp>() {
        Some(time)
    } else if let Ok(time) = text.parse::<DateTime>() {
        time.to_zoned(TimeZone::UTC).ok().map(|time| time.timestamp())
    } else {
        let age = text.parse::<Span>().ok();
        age.and_then(|age| now.to_zoned(TimeZone::UTC).checked_sub(age).ok())
            .map(|time| time.timestamp())
    };
    match time {
        Some(time) if time <= now => Ok(PastTime { time, is_now: time == now }),
        Some(_) => Err(format!("it is in the future; write a time before {now:.0}")),
        None => {
            Err("write a date, a time such as 2026-07-31T12:00:00Z, or an age such as 90m, 36h, \
                     3d or 2w"
                .to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_date_a_time_or_an_age() {
        assert_eq!(past_time("2026-07-31"), past_time("2026-07-31T00:00:00Z"));
        assert_eq!(past_time("2026-07-31T02:00:00+02:00"), past_time("2026-07-31 00:00"));
        let ages = ["1y", "11mo", "3w", "20d", "36h", "90m", "60s", "0s"]
            .map(|age| past_time(age).unwrap());
        assert!(ages.is_sorted(), "{ages:?}");
        assert!(ages.iter().all(|age| age.limit().is_some() == (age.time < ages[7].time)));
        assert!(past_time("yesterday").unwrap_err().contains("an age such as 90m"));
        for future in ["2100-01-01", "2100-01-01T00:00:00Z", "-1d"] {
            assert!(
                past_time(future)
                    .unwrap_err()
                    .starts_with("it is in the future; write a time before 2"),
                "{future}"
            );
        }
    }
}
