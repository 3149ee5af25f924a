//! What goes on in a storage now: its runs, their queues, and its workers. Nothing but private directories of runs is read.

use std::collections::BTreeMap;
use std::fs::File;

use jiff::Timestamp;

use super::Storage;
use super::queue::{runs, tickets, write_whole};
use super::run::Holder;
use crate::storage::disk::Result;
use crate::storage::layout::{RUNS, RunName, log_of_run, queue, state_of_run};
use crate::storage::records::{RunState, Ticket, WorkerRecord};

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
