//! What goes on in a storage now: its runs, their queues, and its workers. Nothing but private directories of runs is read.

use std::collections::BTreeMap;
use std::fs::File;

use jiff::Timestamp;

use super::Storage;
use super::queue::{runs, tickets, write_whole};
use super::run::Holder;
use crate::disk::Result;
use crate::layout::{RUN_LOGS, RUNS, RunName, log_of_run, queue, state_of_run, submission_of_run};
use crate::records::{RunState, SubmittedRun, Ticket, WorkerRecord};

/// A process that works on a storage.
#[derive(Clone, Debug)]
pub struct Activity {
    /// Where it is, and since when.
    pub holder: Holder,
    /// How far it has come, if it is a run that has said so.
    pub state: Option<RunState>,
    /// What it is, if it is a worker.
    pub worker: Option<WorkerRecord>,
    /// The number of tickets that wait for workers, by what they ask for.
    pub queued: BTreeMap<String, usize>,
    /// The calls that workers execute for it.
    pub claimed: Vec<ClaimedCall>,
}

/// A call that a worker executes.
#[derive(Clone, Debug)]
pub struct ClaimedCall {
    /// The worker.
    pub worker: Holder,
    /// The call, unless it has ended just now.
    pub ticket: Option<Ticket>,
    /// When the worker took it.
    pub since: Timestamp,
}

impl Storage {
    /// Says how far this run has come.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be written.
    pub fn note_state(&self, state: &RunState) -> Result<()> {
        self.run.appear(&self.root)?;
        let text = serde_json::to_vec(state).unwrap_or_default();
        write_whole(&self.root, &state_of_run(self.run.name()), &text)
    }

    /// Creates the file that this run prints to when it has no terminal. Returns it with its name.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be written.
    pub fn create_run_log(&self) -> Result<(File, String)> {
        let name = log_of_run(self.run.name());
        let file = self.root.disk.create(&self.root.place(&name)?, 0o666)?;
        Ok((file, name))
    }

    /// Notes that this run is submitted as a job, until [the job begins](Self::forget_waiting_run).
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be written.
    pub fn note_waiting_run(&self, log: &str, run: &SubmittedRun) -> Result<()> {
        let text = serde_json::to_vec(run).unwrap_or_default();
        submission_of_log(log).map_or(Ok(()), |name| write_whole(&self.root, &name, &text))
    }

    /// Removes the note that a run with this log is submitted.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be written.
    pub fn forget_waiting_run(&self, log: &str) -> Result<()> {
        let name = submission_of_log(log);
        name.map_or(Ok(()), |name| self.root.disk.remove(&self.root.path(&name)))
    }

    /// Returns the runs that were submitted as jobs, and have not begun since.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read.
    pub fn submitted_runs(&self) -> Result<Vec<SubmittedRun>> {
        let notes =
            runs(&self.root, RUN_LOGS)?.map(|run| self.read_small(&submission_of_run(&run)));
        let notes = notes.collect::<Result<Vec<Option<SubmittedRun>>>>()?;
        let mut submitted: Vec<SubmittedRun> = notes.into_iter().flatten().collect();
        submitted.sort_by_key(|run| run.recorded.at);
        Ok(submitted)
    }

    /// The number of this process.
    pub fn own_process(&self) -> u32 {
        self.run.name().process
    }

    /// Returns the processes that work on the storage, as far as this host can tell, and that are not this one.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read.
    pub fn activities(&self) -> Result<Vec<Activity>> {
        let mut activities = Vec::new();
        for run in runs(&self.root, RUNS)? {
            if run != *self.run.name() && self.lives(&run) {
                activities.push(self.activity(&run)?);
            }
        }
        Ok(activities)
    }

    fn activity(&self, run: &RunName) -> Result<Activity> {
        let queued = tickets(&self.root, run)?.into_iter().map(|(class, it)| (class, it.len()));
        let queued = queued.filter(|(_, count)| *count > 0).collect();
        let mut claimed = Vec::new();
        for worker in runs(&self.root, &queue::claims(run))? {
            for ticket in self.root.names(&queue::claims_of(run, &worker))? {
                let place = self.root.path(&format!("{}/{ticket}", queue::claims_of(run, &worker)));
                let Some((stat, text)) = self.root.disk.read_one(&place)? else { continue };
                claimed.push(ClaimedCall {
                    worker: Holder::new(&worker, false),
                    ticket: serde_json::from_slice(&text).ok(),
                    since: Timestamp::from_nanosecond(stat.changed_ns.into()).unwrap_or_default(),
                });
            }
        }
        Ok(Activity {
            holder: Holder::new(run, false),
            state: self.read_small(&state_of_run(run))?,
            worker: self.read_small(&queue::worker(run))?,
            queued,
            claimed,
        })
    }

    /// Reads a file of JSON; `None` if it does not exist, or another version has written it.
    pub(super) fn read_small<T: serde::de::DeserializeOwned>(
        &self,
        name: &str,
    ) -> Result<Option<T>> {
        let text = self.root.disk.read(&self.root.path(name))?;
        Ok(text.and_then(|text| serde_json::from_slice(&text).ok()))
    }
}

/// The note that stands beside a log.
fn submission_of_log(log: &str) -> Option<String> {
    let run: RunName =
        log.strip_prefix(RUN_LOGS)?.strip_prefix('/')?.split('/').next()?.parse().ok()?;
    Some(submission_of_run(&run))
}
