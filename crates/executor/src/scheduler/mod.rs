//! Schedulers of clusters, which start workers, say which of them wait or run, and cancel them.
//!
//! A [`BatchScheduler`] is known in depth, as Slurm is, or by three commands of its users: [`CommandScheduler`]. A submission has a random
//! [`JobToken`], which its submitter writes down before it begins. `pool` decides what to ask: it is pure, and knows neither processes
//! nor the time. `client` executes what is asked with, for a limited time.
//! A scheduler is only the second opinion: what it does not answer is unknown, and a worker is alive once it has said hello.

mod client;
mod commands;
mod jobs;
mod pool;
mod settings;

pub use self::client::haste;
pub(crate) use self::client::{Client, CommandFailure};
pub use self::commands::{CommandScheduler, CommandSettings, CommandSettingsError};
pub use self::jobs::{
    ArrayTask, JobState, JobToken, NoToken, ScheduledJob, Submission, WorkerRequest,
};
pub(crate) use self::jobs::{JobAnswer, WARNING, script};
pub use self::pool::{PoolAction, WorkerDemand, WorkerPool};
pub(crate) use self::settings::{
    MINUTE, SettingProblem, YEAR, duration, in_minutes, read_all, wrong,
};
pub use self::settings::{Setting, SettingError, SettingsError, WorkerSettings};

use crate::executor::Reach;

/// The jobs of a submission that are cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CancelScope {
    /// Those that have not started.
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
    /// The most workers of one submission. If that is one, a worker is given its number; those of a job array know it.
    pub most_at_once: u32,
    /// The hosts and tasks that one call may have.
    pub reach: Reach,
}

/// A scheduler, which starts workers.
///
/// Each method executes programs, and takes as long as these do. So none of them may be called from the main thread, whose
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
    /// Fails if it is not known that they were accepted. They may have been all the same.
    fn submit(&self, submission: &Submission<'_>) -> Result<(), SchedulerError>;

    /// Returns the known jobs with these names, in one question. A job that is not in the answer is unknown: it may have ended some
    /// time ago, be lost, or be yet to come.
    ///
    /// # Errors
    ///
    /// Fails if there is no answer, or it is not understood: then nothing is known.
    fn jobs(&self, tokens: &[JobToken]) -> Result<Vec<ScheduledJob>, SchedulerError>;

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

/// The reason why a scheduler gave no answer, or not the one that was hoped for.
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
    /// It may have been submitted. If not, it will be accepted once the scheduler is less busy, or something has ended.
    Busy,
    /// It may have been submitted. If not, nobody knows whether it will ever be accepted.
    Unclear,
}
