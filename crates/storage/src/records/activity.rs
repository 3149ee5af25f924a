//! What runs say of themselves while they go on: a file in the private directory of each, for people who look.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Provenance;

/// How far a run has come. It is written again every few seconds, and goes with the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunState {
    /// The name of the task.
    pub task: String,
    /// The version of the task: the commit, shortened.
    pub version: String,
    /// Who began the run, where and when.
    pub began: Provenance,
    /// When this was written.
    pub at: Timestamp,
    /// The calls that are over.
    pub done: usize,
    /// All calls that are known and asked for.
    pub all: usize,
    /// Whether there may be more.
    pub at_least: bool,
    /// The calls that had results.
    pub found: usize,
    /// The calls that wait for workers.
    pub queued: usize,
    /// The number of calls that run.
    pub running: usize,
    /// Those that have run longest.
    pub longest: Vec<RunningCall>,
    /// The number of calls that have failed.
    pub failed: usize,
    /// The first of them, and why.
    pub failures: Vec<FailedTitle>,
    /// The time until it ends in seconds, if that can be estimated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds_left: Option<f64>,
}

/// A call that runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunningCall {
    /// Its title, for people.
    pub title: String,
    /// The time since its start, in seconds.
    pub seconds: f64,
}

/// A call that has failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedTitle {
    /// Its title, for people.
    pub title: String,
    /// The reason, in words.
    pub reason: String,
}

/// A run that was submitted as a job. Its file is removed when the job begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubmittedRun {
    /// The name of the task.
    pub task: String,
    /// The version of the task: the commit, shortened.
    pub version: String,
    /// The name of its jobs.
    pub job: String,
    /// Who submitted it, where and when.
    pub recorded: Provenance,
}
