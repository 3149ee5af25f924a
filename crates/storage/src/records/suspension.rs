//! The record of a suspended call: all that is needed to continue it, to ask for it and to cancel it, on any host and for
//! as long as it takes.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Format, Provenance, TicketValue};
use crate::layout::ComputationVersion;
use ce_model::digest::{Digest, ObjectId};
use ce_model::task::access::{Access, Rule};
use ce_model::task::name::{ComputationName, TaskName};

/// How a suspended call stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SuspensionState {
    /// `exec` runs, or its run has died.
    Executing,
    /// `exec` has ended, and what it has started goes on elsewhere.
    Suspended,
    /// `exec` has failed, and its directory is not empty: what it has started may go on.
    Failed,
}

/// A job that waits for a suspended call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingJob {
    /// The task.
    pub task: TaskName,
    /// The commit of its repository.
    pub commit: ObjectId,
}

/// The record of a suspended call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SuspensionRecord {
    /// The format of this record.
    pub format: Format,
    /// The computation.
    pub computation: ComputationName,
    /// The commit that holds it.
    pub commit: ObjectId,
    /// The Git tree of its directory.
    pub tree: ObjectId,
    /// The tree is not the commit's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dirty: bool,
    /// The Git tree that the exported directory of the computation has as it stands.
    pub export: ObjectId,
    /// The values that it reads, in order.
    pub inputs: Vec<TicketValue>,
    /// The symbolic names of its inputs.
    pub input_names: Vec<String>,
    /// The symbolic names of its outputs.
    pub output_names: Vec<String>,
    /// Its grants of access: the lines of its file `access`.
    pub access: Vec<String>,
    /// Whether it was executed in a sandbox.
    pub isolated: bool,
    /// How it stands.
    pub state: SuspensionState,
    /// How often `exec` was started.
    pub attempts: u32,
    /// When `exec` was started first.
    pub since: Timestamp,
    /// Jobs that wait for it, the first ones.
    pub jobs: Vec<WaitingJob>,
    /// The user, host and time of the last change.
    pub recorded: Provenance,
}

/// The greatest number of jobs that are recorded.
const MAX_JOBS: usize = 20;

impl SuspensionRecord {
    /// The format of a record of a call that reads these values.
    pub fn format_of(values: &[TicketValue]) -> Format {
        Format::of(values.iter().map(|value| &value.value.digest))
    }

    /// The version of the computation.
    pub fn version(&self) -> ComputationVersion<'_> {
        let Self { computation, commit, tree, dirty, .. } = self;
        ComputationVersion { computation, commit, tree, dirty: *dirty }
    }

    /// Its grants of access. A line that only a newer version knows grants nothing.
    pub fn granted(&self) -> Access {
        let rules = self.access.iter().map(|line| Rule::parse(line, &self.input_names));
        Access { rules: rules.filter_map(Result::ok).collect() }
    }

    /// The digests of its inputs.
    pub fn digests(&self) -> Vec<Digest> {
        self.inputs.iter().map(|input| input.value.digest).collect()
    }

    /// Adds a job that waits for it. Returns whether that is new.
    pub fn add_job(&mut self, job: &WaitingJob) -> bool {
        let is_new = !self.jobs.contains(job) && self.jobs.len() < MAX_JOBS;
        if is_new {
            self.jobs.push(job.clone());
        }
        is_new
    }
}
