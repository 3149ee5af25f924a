//! A session whose calls are executed by workers.

use std::sync::Arc;

use super::slurm::{SlurmOptions, SlurmWorkers};
use super::{Error, Place, RunOptions, Session};
use crate::{TicketRules, WorkerQueue};
use ce_executor::Executor;
use ce_storage::Durability;

impl Session {
    /// Lets workers execute what is missing.
    pub(super) fn queue_calls(
        &mut self,
        executor: &Arc<dyn Executor>,
        options: &RunOptions,
    ) -> Result<(), Error> {
        let synced = options.durability == Durability::Synced;
        let (isolated, limit) = (options.isolate, options.policy.timeout);
        let rules = TicketRules { isolated, synced, limit };
        let on_slurm = options.place == Place::Slurm;
        let (storage, watched) = (Arc::clone(&self.storage), Arc::clone(executor));
        let queue = Arc::new(WorkerQueue::open(storage, watched, rules, on_slurm)?);
        if on_slurm {
            let options =
                SlurmOptions { settings: options.slurm.clone(), isolate: isolated, synced };
            let workers =
                SlurmWorkers::start(&self.storage, &queue, executor, options, self.frontend);
            self.slurm = Some(workers?);
        }
        self.queue = Some(queue);
        Ok(())
    }
}
