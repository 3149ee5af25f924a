//! Reservations: which calls may begin, by what the running ones leave.
//!
//! The oldest call that waits decides: what it lacks is kept for it, and others begin only if they take nothing of that.
//! So no call waits forever, and what is of no use to it does not lie idle. An exclusive call takes all slots.

use std::collections::{HashMap, VecDeque};

use crate::plan::CallId;
use crate::task::resources::Resources;

/// What a call takes while it is in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reservation {
    /// The number of slots; all of them if there are fewer.
    slots: usize,
    /// Whether nothing else may be in progress.
    exclusive: bool,
}

impl Reservation {
    /// What a call takes beyond the slot that every call has; `None` if that is nothing.
    pub(super) fn of(resources: &Resources) -> Option<Self> {
        resources.exclusive.then_some(Self { slots: 1, exclusive: true })
    }
}

/// What is free, what is taken, and who waits.
#[derive(Debug)]
pub(super) struct Reservations {
    /// The number of slots.
    all: usize,
    /// The number of free slots.
    free: usize,
    /// The number of calls that gave their slots back, and whose outputs are being published.
    unpublished: usize,
    /// The calls that wait, in order.
    waiting: VecDeque<(CallId, Reservation)>,
    /// The calls in progress that have more than one slot.
    granted: HashMap<CallId, Reservation>,
    /// Slots are kept for the first call that waits.
    keeps_slots: bool,
}

impl Reservations {
    pub(super) fn new(slots: usize) -> Self {
        Self {
            all: slots,
            free: slots,
            unpublished: 0,
            waiting: VecDeque::new(),
            granted: HashMap::new(),
            keeps_slots: false,
        }
    }

    /// Whether a call may begin with one slot.
    pub(super) const fn lets_begin(&self) -> bool {
        self.free > 0 && !self.keeps_slots
    }

    /// Lets a call begin with one slot.
    pub(super) const fn begin(&mut self) {
        self.free -= 1;
    }

    /// Lets a call in progress wait for a reservation, and gives its slot back.
    pub(super) fn wait(&mut self, call: CallId, request: Reservation) {
        self.release(call);
        self.waiting.push_back((call, request));
    }

    /// Gives everything back that a call has.
    pub(super) fn release(&mut self, call: CallId) {
        self.free += match self.granted.remove(&call) {
            Some(request) => self.slots(request),
            None => 1,
        };
    }

    /// Notes that the outputs of a call that has given everything back are being published.
    pub(super) const fn begin_publishing(&mut self) {
        self.unpublished += 1;
    }

    /// Notes that the outputs of so many calls are published, or will never be.
    pub(super) const fn end_publishing(&mut self, calls: usize) {
        self.unpublished -= calls;
    }

    /// Whether [`grant`](Self::grant) may find a call.
    pub(super) fn may_grant(&self) -> bool {
        self.waiting.front().is_some_and(|(_, request)| self.fits(*request))
    }

    /// Grants the reservation of a call that waits, if one fits.
    pub(super) fn grant(&mut self) -> Option<CallId> {
        let (call, request) = *self.waiting.front()?;
        if !self.fits(request) {
            self.keeps_slots = true;
            return None;
        }
        self.waiting.pop_front();
        self.keeps_slots = false;
        self.free -= self.slots(request);
        self.granted.insert(call, request);
        Some(call)
    }

    fn slots(&self, request: Reservation) -> usize {
        if request.exclusive { self.all } else { request.slots.min(self.all) }
    }

    fn fits(&self, request: Reservation) -> bool {
        let is_alone = !request.exclusive || self.unpublished == 0;
        is_alone && self.slots(request) <= self.free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXCLUSIVE: Reservation = Reservation { slots: 1, exclusive: true };

    /// Lets as many calls begin as may, one slot each. Returns how many.
    fn begin_all(reservations: &mut Reservations) -> usize {
        let mut count = 0;
        while reservations.grant().is_none() && reservations.lets_begin() {
            reservations.begin();
            count += 1;
        }
        count
    }

    #[test]
    fn an_exclusive_call_that_waits_lets_running_ones_end_and_is_next() {
        let call = CallId::at;
        let mut reservations = Reservations::new(3);
        assert_eq!(begin_all(&mut reservations), 3);
        reservations.wait(call(0), EXCLUSIVE);
        reservations.wait(call(1), EXCLUSIVE);
        // However many others are ready, none begins.
        assert_eq!(begin_all(&mut reservations), 0);
        assert!(!reservations.may_grant(), "one that began before is not over");
        reservations.release(call(2));
        assert_eq!(reservations.grant(), Some(call(0)));
        assert_eq!(begin_all(&mut reservations), 0);
        reservations.release(call(0));
        assert_eq!(reservations.grant(), Some(call(1)));
        reservations.release(call(1));
        assert_eq!(begin_all(&mut reservations), 3);
    }

    #[test]
    fn nothing_is_published_beside_an_exclusive_call() {
        let mut reservations = Reservations::new(2);
        reservations.begin();
        reservations.wait(CallId::at(0), EXCLUSIVE);
        reservations.begin_publishing();
        assert_eq!(reservations.grant(), None);
        reservations.end_publishing(1);
        assert_eq!(reservations.grant(), Some(CallId::at(0)));
    }
}
