//! Schedulers of clusters, which start workers, say which of them wait or run, and cancel them.
//!
//! A [`BatchScheduler`] is supported directly, like Slurm, or by three commands of its users: [`CommandScheduler`]. A
//! submission has a random [`JobToken`], which its submitter writes down before it begins. `pool` decides what to ask:
//! it is pure, and knows neither processes nor the time. `command_runner` executes the programs that ask, for a limited
//! time. A scheduler is only the second opinion: without its answer, a job's state is unknown, and a worker is alive
//! once it has said hello.
//!
//! [`WorkerSettings`] are the settings that all schedulers have: `compeval.SCHEDULER.*`.

mod command_runner;
mod commands;
mod pool;
mod worker_jobs;

use std::num::NonZeroU32;
use std::time::Duration;

use crate::executor::Reach;
use ce_model::exit::Explain;
use ce_model::humanize;
use ce_model::resources::Resources;

pub use self::command_runner::haste;
pub(crate) use self::command_runner::{Client, CommandFailure, excerpt, last_lines};
pub use self::commands::{CommandScheduler, CommandSettings, CommandSettingsError};
pub use self::pool::{PoolAction, WorkerDemand, WorkerPool};
pub use self::worker_jobs::{
    ArrayTask, JobState, JobToken, NoToken, ScheduledJob, Submission, WorkerRequest,
};
pub(crate) use self::worker_jobs::{JobAnswer, WARNING, script};

/// The jobs of a submission that are cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CancelScope {
    /// Jobs that have not started.
    Pending,
    /// All.
    All,
}

/// The properties of a kind of scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedulerKind {
    /// The word for it: in options, in the names of settings, and of a directory of the storage.
    pub word: &'static str,
    /// Its name in a sentence.
    pub name: &'static str,
    /// The most workers of one submission. If that is one, a worker is given its number; workers of a job array know
    /// theirs.
    pub most_at_once: u32,
    /// The hosts and tasks that one call may have.
    pub reach: Reach,
}

/// A scheduler, which starts workers.
///
/// Each method executes programs, and takes as long as these do. So they must not be called from the main thread, whose
/// children are taken for orphans of executions. [`interrupt`](Self::interrupt) ends a call from another thread.
pub trait BatchScheduler: Send + Sync {
    /// Returns its kind.
    fn kind(&self) -> SchedulerKind;

    /// Returns the settings for starting workers.
    fn settings(&self) -> &WorkerSettings;

    /// Submits workers.
    ///
    /// # Errors
    ///
    /// Fails if it is not known that they were accepted. They may have been accepted nevertheless.
    fn submit(&self, submission: &Submission<'_>) -> Result<(), SchedulerError>;

    /// Returns the known jobs with these names, in one question. A job that is not in the answer is unknown: it may have ended some
    /// time ago, be lost, or be yet to come.
    ///
    /// # Errors
    ///
    /// Fails if there is no answer, or it is not understood: then nothing is known.
    fn jobs(&self, tokens: &[JobToken]) -> Result<Vec<ScheduledJob>, SchedulerError>;

    /// Whether a worker has ended since it used more memory than its job had, as far as the scheduler says so.
    fn ran_out_of_memory(&self, _: &ArrayTask) -> bool {
        false
    }

    /// Cancels the jobs with a name. There need not be any.
    ///
    /// # Errors
    ///
    /// Fails if some may be left. The advice is to cancel them by hand.
    fn cancel(&self, token: &JobToken, scope: CancelScope) -> Result<(), SchedulerError>;

    /// Returns the command with which a user cancels the jobs with these names; `None` if it is not known.
    fn cancel_by_hand(&self, tokens: &[&JobToken]) -> Option<String>;

    /// Ends the programs that run now. A submission may or may not have succeeded then.
    fn interrupt(&self);
}

/// The reason why a scheduler gave no answer, or an unexpected one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct SchedulerError {
    /// The failure and its cause, in words.
    pub text: String,
    /// Advice for the user.
    pub advice: Option<String>,
    /// The consequence for a submission, if the error is about one.
    pub failure: SubmitFailure,
}

/// The consequence of a submission that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubmitFailure {
    /// Nothing was submitted, and the same will not be accepted later.
    Final,
    /// Nothing was submitted, since the user has too much in the scheduler's queues. Fewer workers may be accepted, or as many once something
    /// has ended.
    Limit,
    /// It may have been submitted. If not, it will be accepted once the scheduler is less busy.
    Busy,
    /// It may have been submitted. If not, it may never be accepted.
    Unclear,
}

/// The unit of time limits, and the shortest one.
pub(crate) const MINUTE: Duration = Duration::from_secs(60);
/// The time of a worker beside its calls: until it has started, and to end.
const WORKER_RESERVE: Duration = Duration::from_secs(5 * 60);
/// The longest time limit.
pub(crate) const YEAR: Duration = Duration::from_secs(365 * 86400);
/// The most workers in one job array: Slurm's default limit.
const MOST_PENDING: u32 = 1000;

/// A setting as it is written.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// The name after the scheduler's name; upper case counts as lower case.
    pub key: &'a str,
    /// The text.
    pub value: &'a str,
    /// The place where it is written.
    pub place: &'a str,
}

/// A setting that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("compeval.{scheduler}.{key} in {place} is {value:?}, {problem}")]
pub struct SettingError {
    /// The word for the scheduler.
    pub scheduler: &'static str,
    /// The name after the scheduler's name.
    pub key: String,
    /// The text.
    pub value: String,
    /// The place where it is written.
    pub place: String,
    /// Its fault, in words.
    pub problem: String,
    /// Advice for the user.
    pub advice: String,
}

/// All settings that are wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Explain)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
#[hint(_0.first().map(|error| error.advice.clone()))]
pub struct SettingsError(pub Vec<SettingError>);

/// The settings for starting workers that all schedulers have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerSettings {
    /// Lines of shell before the worker.
    pub prologue: Vec<String>,
    /// The most workers at once.
    pub workers: NonZeroU32,
    /// The time limit of a worker.
    pub walltime: Duration,
    /// The most workers at once that have not said hello yet.
    pub pending: NonZeroU32,
    /// The least time between two questions to the scheduler.
    pub interval: Duration,
}

impl Default for WorkerSettings {
    fn default() -> Self {
        Self {
            prologue: Vec::new(),
            workers: NonZeroU32::MIN.saturating_add(99),
            walltime: 60 * MINUTE,
            pending: NonZeroU32::MIN.saturating_add(3),
            interval: Self::SHORTEST_INTERVAL,
        }
    }
}

/// The fault of a setting, and advice for the user.
pub(crate) type SettingProblem = (String, String);

/// Reads the settings of a scheduler in the order of their places. The later of two texts counts; texts of a list add up.
///
/// # Errors
///
/// Fails with all settings that are wrong.
pub(crate) fn read_settings<'a>(
    scheduler: &'static str,
    settings: impl IntoIterator<Item = Setting<'a>>,
    mut set: impl FnMut(&str, &str) -> Result<(), SettingProblem>,
) -> Result<(), SettingsError> {
    let mut errors = Vec::new();
    for Setting { key, value, place } in settings {
        let key = key.to_ascii_lowercase();
        if let Err((problem, advice)) = set(&key, value) {
            let (value, place) = (value.to_owned(), place.to_owned());
            errors.push(SettingError { scheduler, key, value, place, problem, advice });
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(SettingsError(errors)) }
}

impl WorkerSettings {
    /// The names of these settings.
    pub(crate) const KEYS: [&str; 5] = ["prologue", "workers", "walltime", "pending", "interval"];

    /// The least time between two questions to the scheduler that a user may set.
    pub const SHORTEST_INTERVAL: Duration = Duration::from_secs(2);

    /// Applies a setting. The prologue is a list, which an empty text empties. `others` are the names of the
    /// scheduler's own settings.
    pub(crate) fn set(
        &mut self,
        key: &str,
        value: &str,
        others: &[&str],
    ) -> Result<(), SettingProblem> {
        match key {
            "prologue" if value.is_empty() => self.prologue.clear(),
            "prologue" => self.prologue.push(read_line(value)?),
            "workers" => self.workers = read_number(value, u32::MAX)?,
            "pending" => self.pending = read_number(value, MOST_PENDING)?,
            "walltime" => self.walltime = read_duration(value, MINUTE, YEAR, "2h")?,
            "interval" => {
                self.interval = read_duration(value, Self::SHORTEST_INTERVAL, 60 * MINUTE, "30s")?;
            }
            _ => {
                let names = [others, &Self::KEYS].concat();
                return Err(wrong_setting("but there is no such setting", names.join(", ")));
            }
        }
        Ok(())
    }

    /// The time limit of workers for calls with these resources, in whole minutes: the limit of the settings, or more
    /// if a call asks for more time.
    pub fn walltime_for(&self, resources: &Resources) -> Duration {
        let asked = resources.time.map(|time| time.saturating_add(WORKER_RESERVE));
        let least = asked.unwrap_or_default().max(self.walltime).min(YEAR);
        in_minutes(least)
    }
}

/// The memory that a worker gets in addition to the limit of its call, so that the call meets its own limit first.
const OWN_MEMORY: u64 = 128 << 20;

/// The memory of a worker for calls with these resources, in bytes.
pub(crate) fn memory_of_worker(resources: &Resources) -> Option<u64> {
    let own = if resources.last_memory.is_some() { OWN_MEMORY } else { 0 };
    resources.memory.map(|bytes| bytes.saturating_add(own))
}

/// The next whole number of minutes.
pub(crate) fn in_minutes(time: Duration) -> Duration {
    let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
    Duration::from_secs(seconds.next_multiple_of(MINUTE.as_secs()))
}

/// A problem of a setting, and what to write instead.
pub(crate) fn wrong_setting(problem: &str, advice: impl Into<String>) -> SettingProblem {
    (problem.to_owned(), advice.into())
}

/// Reads a line of shell.
pub(crate) fn read_line(text: &str) -> Result<String, SettingProblem> {
    if text.contains(['\n', '\0']) {
        return Err(wrong_setting("which is not one line", "one setting for each line"));
    }
    Ok(text.to_owned())
}

/// Reads a number from 1 to `most`.
fn read_number(text: &str, most: u32) -> Result<NonZeroU32, SettingProblem> {
    let number = text.parse::<NonZeroU32>().ok().filter(|number| number.get() <= most);
    let range = if most == u32::MAX { "1 or more".to_owned() } else { format!("1 to {most}") };
    number.ok_or_else(|| wrong_setting("which is not such a number", range))
}

/// Reads a time with its unit.
pub(crate) fn read_duration(
    text: &str,
    least: Duration,
    most: Duration,
    example: &str,
) -> Result<Duration, SettingProblem> {
    let advice = format!("a time with its unit, such as {example}");
    let Ok(time) = humanize::parse_duration(text) else {
        return Err(wrong_setting("which is not a time", advice));
    };
    if time < least {
        let least = humanize::duration(least.as_secs_f64());
        return Err(wrong_setting("which is too short", format!("{advice}, at least {least}")));
    }
    if time > most {
        let most = humanize::duration(most.as_secs_f64());
        return Err(wrong_setting("which is too long", format!("{advice}, at most {most}")));
    }
    Ok(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_limit_of_a_worker_covers_the_call() {
        let settings = WorkerSettings { walltime: Duration::from_secs(90), ..<_>::default() };
        let minutes = |time| {
            let resources = Resources { time, ..Resources::default() };
            settings.walltime_for(&resources).as_secs() as f64 / 60.0
        };
        assert_eq!(minutes(None), 2.0);
        assert_eq!(minutes(Some(Duration::from_millis(1))), 6.0);
        assert_eq!(minutes(Some(Duration::from_secs(7200))), 125.0);
        assert_eq!(minutes(Some(Duration::MAX)), 365.0 * 1440.0);
    }
}
