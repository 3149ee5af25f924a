//! What the user should know of a queue: each thing once.

use std::collections::{HashSet, VecDeque};
use std::num::NonZeroU32;
use std::path::Path;

use super::oversized_calls::Misfit;
use super::pending_ticket::OpenTicket;
use super::ticket::TicketRules;
use ce_executor::{AllocationShape, Reach};
use ce_model::name::ComputationName;
use ce_model::resources::Resources;
use ce_storage::WorkerName;
use ce_storage::records::{Ticket, WorkerRecord};

/// What is yet to be told, and what was told.
#[derive(Default)]
pub(super) struct Notices {
    waiting: VecDeque<String>,
    exposed: HashSet<ComputationName>,
    unserved: HashSet<String>,
}

impl Notices {
    /// Returns the next one.
    pub(super) fn take(&mut self) -> Option<String> {
        self.waiting.pop_front()
    }

    pub(super) fn add(&mut self, notice: String) {
        self.waiting.push_back(notice);
    }

    /// Tells that a computation is not isolated although the run isolates.
    pub(super) fn tell_of_isolation(&mut self, ticket: &Ticket, rules: TicketRules) {
        if rules.isolated && !ticket.isolated && self.exposed.insert(ticket.computation.clone()) {
            let name = &ticket.computation;
            self.add(format!(
                "warning: {name} is not isolated: it asks for an allocation, where Slurm starts processes outside of any sandbox\n  try: let it ask for one task if it is to be isolated"
            ));
        }
    }

    /// Tells that no worker has the shape of a call that waits, if there are workers.
    pub(super) fn tell_of_shape<'a>(
        &mut self,
        tickets: impl Iterator<Item = &'a OpenTicket>,
        workers: &[(WorkerName, WorkerRecord)],
        storage: &Path,
    ) {
        let reach = |worker: &WorkerRecord| match (worker.nodes, worker.tasks) {
            (Some(nodes), Some(tasks)) => Reach::Allocation(AllocationShape { nodes, tasks }),
            _ => Reach::Process,
        };
        for OpenTicket { ticket: Ticket { resources, .. }, .. } in tickets {
            let mut workers = workers.iter().map(|(_, worker)| reach(worker)).peekable();
            let is_unserved = resources.spans()
                && workers.peek().is_some()
                && workers.all(|reach| Misfit::of_span(resources, reach).is_some());
            if is_unserved && self.unserved.insert(resources.class()) {
                self.add(format!(
                    "no worker has an allocation for {}; such calls wait\n  try: sbatch {}--wrap 'ce worker {}', or give --on slurm",
                    resources.class(),
                    options(resources),
                    storage.display()
                ));
            }
        }
    }
}

/// The options of sbatch for a shape, each with a blank after it.
fn options(resources: &Resources) -> String {
    let Resources { nodes, tasks, cpus, .. } = *resources;
    let option = |name: &str, number: Option<NonZeroU32>| {
        number.map(|number| format!("--{name}={number} ")).unwrap_or_default()
    };
    [("nodes", nodes), ("ntasks", tasks), ("cpus-per-task", cpus)]
        .map(|(name, number)| option(name, number))
        .concat()
}
