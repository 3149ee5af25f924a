//! The work of an evaluation: which calls are ready, which executions have ended, and how many more
//! may begin.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use super::reservations::{Reservation, Reservations};
use ce_executor::{Ended, ExecuteError};
use ce_model::plan::CallId;
use ce_storage::records::TicketEnd;

/// The next thing that a worker does.
pub(super) enum Work {
    /// A call is ready. It has a slot until it is over, given up, or executed and sealed.
    Ready(CallId),
    /// A call has what it has waited for, until it is over, given up, or executed and sealed.
    Reserved(CallId),
    /// A worker has begun to execute a call.
    Begun(CallId),
    /// An execution of a call, which has a slot, has ended.
    Completed(CallId, ExecutionEnd),
}

/// How an execution ended.
#[derive(Debug)]
pub(super) enum ExecutionEnd {
    /// By an executor of this process.
    Here(Result<Ended, ExecuteError>),
    /// By a worker elsewhere; `None` if none executes it, since the user asked to stop or another call failed.
    AtWorker(Option<TicketEnd>),
}

/// A queue of work. What was begun comes first; calls begin in the order in which they became ready.
#[derive(Debug)]
pub(super) struct WorkQueue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    ready: VecDeque<CallId>,
    /// The calls that workers have begun.
    begun: Vec<CallId>,
    completed: VecDeque<(CallId, ExecutionEnd)>,
    reservations: Reservations,
    /// The number of waiting workers.
    idle: usize,
    /// There will be no more work.
    closed: bool,
}

impl State {
    fn has_work(&self) -> bool {
        !self.begun.is_empty()
            || !self.completed.is_empty()
            || self.reservations.may_grant()
            || self.reservations.lets_begin() && !self.ready.is_empty()
    }

    fn next(&mut self) -> Option<Work> {
        if let Some(call) = self.begun.pop() {
            return Some(Work::Begun(call));
        }
        if let Some((call, end)) = self.completed.pop_front() {
            return Some(Work::Completed(call, end));
        }
        if let Some(call) = self.reservations.grant() {
            return Some(Work::Reserved(call));
        }
        if !self.reservations.lets_begin() {
            return None;
        }
        let call = self.ready.pop_front()?;
        self.reservations.begin();
        Some(Work::Ready(call))
    }
}

impl WorkQueue {
    /// A queue of calls that are ready, of which so many may be in progress at once as there is room for.
    pub(super) fn new(ready: VecDeque<CallId>, reservations: Reservations) -> Self {
        let (begun, completed) = Default::default();
        let state = State { ready, begun, completed, reservations, idle: 0, closed: false };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Queues calls that are ready.
    pub(super) fn ready(&self, calls: impl IntoIterator<Item = CallId>) {
        self.change(|state| state.ready.extend(calls));
    }

    /// Queues an execution that has ended. If the worker `submitter` delivers that itself, it takes it next, and
    /// no other is woken for it.
    pub(super) fn complete(
        &self,
        call: CallId,
        end: Result<Ended, ExecuteError>,
        submitter: ThreadId,
    ) {
        let mut state = self.lock();
        state.completed.push_back((call, ExecutionEnd::Here(end)));
        if thread::current().id() != submitter {
            self.wake(&state);
        }
    }

    /// Notes that a worker has begun to execute a call.
    pub(super) fn begin_at_worker(&self, call: CallId) {
        self.change(|state| state.begun.push(call));
    }

    /// Queues what became of a call at a worker.
    pub(super) fn complete_at_worker(&self, call: CallId, end: Option<TicketEnd>) {
        self.change(|state| state.completed.push_back((call, ExecutionEnd::AtWorker(end))));
    }

    /// Gives back what a call has.
    pub(super) fn release(&self, call: CallId) {
        self.change(|state| state.reservations.release(call));
    }

    /// Gives back what a call has, of which the outputs are being published.
    pub(super) fn release_sealed(&self, call: CallId) {
        self.change(|state| {
            state.reservations.release(call);
            state.reservations.begin_publishing();
        });
    }

    /// Notes that the outputs of so many calls are published, or will never be.
    pub(super) fn end_publishing(&self, calls: usize) {
        self.change(|state| state.reservations.end_publishing(calls));
    }

    /// Gives back what a call has, and lets it wait for a reservation.
    pub(super) fn reserve(&self, call: CallId, request: Reservation) {
        self.change(|state| state.reservations.wait(call, request));
    }

    /// Lets all workers end.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    /// Waits for the next work; returns `None` if there will be none.
    pub(super) fn next(&self) -> Option<Work> {
        let mut state = self.lock();
        loop {
            if state.closed {
                return None;
            }
            if let Some(work) = state.next() {
                self.wake(&state);
                return Some(work);
            }
            state.idle += 1;
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        change(&mut state);
        self.wake(&state);
    }

    /// Wakes one worker if there is work for it; that wakes the next one.
    fn wake(&self, state: &State) {
        if state.idle > 0 && state.has_work() {
            self.changed.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ce_executor::Offer;

    #[test]
    fn what_was_begun_comes_first_and_no_more_begins_than_there_are_slots() {
        let (call, own) = (CallId::at, thread::current().id());
        let reservations = Reservations::new(2, Offer::default());
        let queue = WorkQueue::new([call(0), call(1), call(2)].into(), reservations);
        let next = || match queue.next().unwrap() {
            Work::Ready(id) | Work::Reserved(id) => (id, false),
            Work::Completed(id, _) => (id, true),
            Work::Begun(_) => panic!("there is no worker elsewhere"),
        };
        assert_eq!([next(), next()], [(call(0), false), (call(1), false)]);
        queue.complete(call(1), Err(ExecuteError::Interrupted), own);
        assert_eq!(next(), (call(1), true), "there is no slot for another call");
        queue.release(call(1));
        queue.ready([call(3)]);
        queue.complete(call(0), Err(ExecuteError::Interrupted), own);
        assert_eq!([next(), next()], [(call(0), true), (call(2), false)]);
        queue.close();
        assert!(queue.next().is_none());
    }
}
