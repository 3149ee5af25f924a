//! A ticket from the moment when it is queued until it is answered.

use std::collections::HashSet;

use ce_storage::WorkerName;
use ce_storage::records::{OutOfTime, Ticket, TicketEnd};

/// The number of workers whose time may be over before a call has ended.
const MAX_OUT_OF_TIME: u32 = 3;

/// Receives what becomes of a ticket.
pub(super) struct TicketWatcher {
    /// A worker executes the call. It may not be told of a short one.
    pub(super) begun: Box<dyn Fn() + Send>,
    /// What became of the call, once; `None` if nobody executes it since the user asked to stop.
    pub(super) ended: Box<dyn FnOnce(Option<TicketEnd>) + Send>,
}

/// A ticket that is not answered yet.
pub(super) struct OpenTicket {
    pub(super) ticket: Ticket,
    pub(super) watcher: TicketWatcher,
    /// It was told that a worker executes it.
    pub(super) is_begun: bool,
    /// The number of workers that died while they executed it alone.
    pub(super) deaths: u32,
    /// The number of workers whose time was over before it ended.
    out_of_time: u32,
    /// The workers that have refused it, and why the last one did.
    pub(super) refused: HashSet<WorkerName>,
    pub(super) why: String,
    /// It was neither waiting nor claimed at the last look.
    pub(super) is_missing: bool,
}

/// The tickets that ask for the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TicketCounts {
    /// How many wait.
    pub queued: u64,
    /// How many workers have.
    pub running: u64,
    /// How many were answered so far.
    pub answered: u64,
}

impl OpenTicket {
    pub(super) fn new(ticket: Ticket, watcher: TicketWatcher) -> Self {
        let (refused, why) = Default::default();
        let (is_begun, is_missing) = (false, false);
        Self { ticket, watcher, is_begun, deaths: 0, out_of_time: 0, refused, why, is_missing }
    }

    /// The time of a worker was over. Returns whether another worker may do better.
    pub(super) fn ran_out_of_time(&mut self, out: OutOfTime) -> bool {
        self.out_of_time += 1;
        self.is_begun = false;
        !out.full && self.out_of_time < MAX_OUT_OF_TIME
    }
}
