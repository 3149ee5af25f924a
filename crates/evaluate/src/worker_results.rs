//! The results that the calls of a worker have already.

use std::collections::HashSet;

use super::audited::AuditSubject;
use super::{ExecutionSettings, Worker, ticket};
use ce_model::task::Computation;
use ce_storage::records::{Ticket, TicketEnd};
use ce_storage::{Call, Found, Outputs, ResultName};

impl Worker<'_> {
    /// Executes a call that has a result, and compares.
    pub(super) fn audit(
        &self,
        ticket: &Ticket,
        computation: &Computation,
        settings: &ExecutionSettings<'_>,
    ) -> Option<TicketEnd> {
        let Some(recorded) = &self.recorded(ticket) else {
            return Some(TicketEnd::Refused("its result is not visible to the worker".to_owned()));
        };
        let sources = &ticket::sources(ticket);
        let (storage, resources) = (self.storage, &ticket.resources);
        AuditSubject { storage, computation, sources, resources, recorded }.audit(settings)
    }

    /// The result that is to be replaced, if one is.
    pub(super) fn forced(&self, ticket: &Ticket) -> HashSet<ResultName> {
        let forced = ticket.forced.then(|| self.recorded(ticket)).flatten();
        forced.into_iter().map(|outputs| outputs.name).collect()
    }

    /// The result of a ticket's call, if it has one.
    fn recorded(&self, ticket: &Ticket) -> Option<Outputs> {
        let inputs: Vec<_> = ticket.values.iter().map(|it| it.value.digest).collect();
        let call = Call { version: ticket.version(), inputs: &inputs, outputs: &ticket.outputs };
        match self.storage.find(call) {
            Ok(Found::Hit(outputs)) => Some(outputs),
            _ => None,
        }
    }
}
