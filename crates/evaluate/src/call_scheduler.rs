//! The scheduler: it decides when each call begins, and hands out what there is to do.
//!
//! The first ready call in the order of the plan whose slots and resources are free begins: so a replicate of all points
//! comes before the next one, although they wait for different calls. An execution that ends is handed to any free thread.
//! The scheduler does not know which inputs calls wait for, or why they are executed: an evaluation counts down, and an
//! audit does not.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::mem;
use std::panic::resume_unwind;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use super::capacity::{Reservation, Reservations};
use super::evaluator::Grants;
use super::worker_queue::TicketWatcher;
use super::{EvaluateError, ExecutionSettings};
use ce_executor::{Completion, Ended, ExecuteError, HostTurn, Invocation, TurnRequest};
use ce_model::plan::CallId;
use ce_storage::StorageError;
use ce_storage::records::{Ticket, TicketEnd};

/// The next thing that a thread does. `H` is the state of a call that is executed here, and `W` of one that is executed
/// by a worker elsewhere.
pub(super) enum Work<H, W> {
    /// A call is ready, and may begin.
    Ready(CallId, Grants),
    /// Outputs of these calls are to be fetched. These calls share one slot until the first of them is released.
    Fetch(Vec<CallId>),
    /// A worker elsewhere has begun to execute a call.
    Begun(CallId),
    /// An execution of a call has ended here. The call keeps its reservation until it is released.
    Ended(CallId, H, Result<Ended, ExecuteError>),
    /// A worker elsewhere has answered; `None` if no worker executes the call, since the user asked to stop or another
    /// call failed.
    Answered(CallId, W, Option<TicketEnd>),
}

/// A call that is being executed.
enum Underway<H, W> {
    Here(H),
    AtWorker(W),
}

/// Decides when calls begin.
pub(super) struct Scheduler<'a, H, W> {
    execution: Option<ExecutionSettings<'a>>,
    /// The calls that are being executed.
    underway: Mutex<HashMap<CallId, Underway<H, W>>>,
    /// Shared with completions, which may be delivered after the last call is over.
    queue: Arc<WorkQueue>,
}

impl<'a, H: Send, W: Send> Scheduler<'a, H, W> {
    /// Schedules ready calls, and others later, as far as there is room for them.
    pub(super) fn new(
        execution: Option<ExecutionSettings<'a>>,
        ready: impl IntoIterator<Item = CallId>,
        reservations: Reservations,
    ) -> Self {
        let queue = Arc::new(WorkQueue::new(ready, reservations));
        Self { execution, underway: Mutex::default(), queue }
    }

    /// Runs `work` in at most `most` threads until the scheduler is closed, and `lead` in this thread. If a thread
    /// panics, the scheduler is closed, and `alarm` is called.
    pub(super) fn with_threads<T>(
        &self,
        most: usize,
        work: &(impl Fn() + Sync),
        alarm: &(impl Fn() + Sync),
        lead: impl FnOnce() -> T,
    ) -> Result<T, EvaluateError> {
        thread::scope(|scope| {
            let _alarm = Alarm(&self.queue, &|| {});
            let mut threads = Vec::new();
            for _ in 0..most {
                let thread = thread::Builder::new().name("worker".to_owned());
                let working = || {
                    let _alarm = Alarm(&self.queue, alarm);
                    work();
                };
                match thread.spawn_scoped(scope, working) {
                    Ok(thread) => threads.push(thread),
                    // The threads that were started do all the work.
                    Err(_) if !threads.is_empty() => break,
                    Err(error) => return Err(EvaluateError::Threads(error)),
                }
            }
            let result = lead();
            for thread in threads {
                thread.join().unwrap_or_else(|panic| resume_unwind(panic));
            }
            Ok(result)
        })
    }

    /// Waits for the next work. Returns `None` when the scheduler is closed.
    pub(super) fn next(&self) -> Option<Work<H, W>> {
        loop {
            let (id, end) = match self.queue.next()? {
                NextWork::Ready(id) => return Some(Work::Ready(id, Grants::default())),
                NextWork::Reserved(id) => {
                    let grants = Grants { is_reserved: true, turn: None };
                    return Some(Work::Ready(id, grants));
                }
                NextWork::Fetch(calls) => return Some(Work::Fetch(calls)),
                NextWork::Begun(id) => return Some(Work::Begun(id)),
                NextWork::Completed(id, end) => (id, end),
            };
            let underway = self.underway().remove(&id);
            debug_assert!(underway.is_some(), "an execution is completed once");
            match (underway, end) {
                (Some(Underway::Here(here)), ExecutionEnd::Here(end)) => {
                    return Some(Work::Ended(id, here, end));
                }
                (Some(Underway::AtWorker(queued)), ExecutionEnd::AtWorker(end)) => {
                    return Some(Work::Answered(id, queued, end));
                }
                _ => {}
            }
        }
    }

    /// Starts a prepared execution of a call.
    pub(super) fn submit(&self, id: CallId, here: H, invocation: Invocation) {
        let Some(settings) = &self.execution else { return };
        self.underway().insert(id, Underway::Here(here));
        let queue = Arc::clone(&self.queue);
        let submitter = thread::current().id();
        let completion = Completion::new(move |end| queue.complete(id, end, submitter));
        settings.executor.submit(invocation, completion);
    }

    /// Queues a call for workers.
    ///
    /// # Errors
    ///
    /// Fails if its ticket cannot be written: then nothing more is heard of it.
    pub(super) fn put(&self, id: CallId, queued: W, ticket: &Ticket) -> Result<(), StorageError> {
        let Some(workers) = self.execution.and_then(|it| it.queue) else { return Ok(()) };
        self.underway().insert(id, Underway::AtWorker(queued));
        let (began, ended) = (Arc::clone(&self.queue), Arc::clone(&self.queue));
        let watcher = TicketWatcher {
            begun: Box::new(move || began.begin_at_worker(id)),
            ended: Box::new(move |end| ended.complete_at_worker(id, end)),
        };
        workers.put(ticket, watcher).inspect_err(|_| {
            self.underway().remove(&id);
        })
    }

    /// Does something with the state of a call that a worker has.
    pub(super) fn with_queued(&self, id: CallId, act: impl FnOnce(&mut W)) {
        if let Some(Underway::AtWorker(queued)) = self.underway().get_mut(&id) {
            act(queued);
        }
    }

    /// Waits for a turn among the runs of the host. Returns `None` if the user asks to stop, or the host does not give one.
    pub(super) fn enter(&self, request: TurnRequest) -> Option<HostTurn> {
        self.execution?.executor.enter(request, true).unwrap_or_default()
    }

    /// Releases the resources of a call, and lets it wait for a reservation.
    pub(super) fn reserve(&self, call: CallId, request: Reservation) {
        self.queue.change(|state| state.reservations.wait(call, request));
    }

    /// Queues calls that are ready.
    pub(super) fn ready(&self, calls: impl IntoIterator<Item = CallId>) {
        let mut calls = calls.into_iter().peekable();
        // Most ended calls are not the last input that another call has waited for.
        if calls.peek().is_some() {
            self.queue.ready(calls);
        }
    }

    /// Queues calls whose outputs are to be fetched: many at once, when nothing else is ready.
    pub(super) fn fetch(&self, calls: impl IntoIterator<Item = CallId>) {
        self.queue.change(|state| state.fetched.extend(calls));
    }

    /// Releases the resources of a call.
    pub(super) fn release(&self, call: CallId) {
        self.queue.release(call);
    }

    /// Releases the reservations of a call whose outputs are being published.
    pub(super) fn release_sealed(&self, call: CallId) {
        self.queue.change(|state| {
            state.reservations.release(call);
            state.reservations.begin_publishing();
        });
    }

    /// Notes that the outputs of this number of calls are published, or will never be.
    pub(super) fn end_publishing(&self, calls: usize) {
        self.queue.change(|state| state.reservations.end_publishing(calls));
    }

    /// Lets all threads end.
    pub(super) fn close(&self) {
        self.queue.close();
    }

    fn underway(&self) -> MutexGuard<'_, HashMap<CallId, Underway<H, W>>> {
        self.underway.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends all waiting for calls that will never be over, if the thread that has it panics.
struct Alarm<'s>(&'s WorkQueue, &'s (dyn Fn() + Sync));

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.close();
            (self.1)();
        }
    }
}

/// The next work, as the queue knows it.
enum NextWork {
    /// A call is ready. It has a slot until it is over, given up, or executed and sealed.
    Ready(CallId),
    /// A call has its reservation, until it is over, given up, or executed and sealed.
    Reserved(CallId),
    /// Nothing else is ready. These calls have one slot, until the first of them is released.
    Fetch(Vec<CallId>),
    /// A worker has begun to execute a call.
    Begun(CallId),
    /// An execution of a call, which has a slot, has ended.
    Completed(CallId, ExecutionEnd),
}

/// The end of an execution.
#[derive(Debug)]
enum ExecutionEnd {
    /// By an executor of this process.
    Here(Result<Ended, ExecuteError>),
    /// By a worker elsewhere; `None` if no worker executes it, since the user asked to stop or another call failed.
    AtWorker(Option<TicketEnd>),
}

/// A queue of work. Calls that were begun come first; of the ready calls, the first one of the plan is next.
#[derive(Debug)]
struct WorkQueue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    ready: BinaryHeap<Reverse<CallId>>,
    /// The calls whose outputs are to be fetched.
    fetched: Vec<CallId>,
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
            || self.reservations.lets_begin() && !(self.ready.is_empty() && self.fetched.is_empty())
    }

    fn next(&mut self) -> Option<NextWork> {
        if let Some(call) = self.begun.pop() {
            return Some(NextWork::Begun(call));
        }
        if let Some((call, end)) = self.completed.pop_front() {
            return Some(NextWork::Completed(call, end));
        }
        if let Some(call) = self.reservations.grant() {
            return Some(NextWork::Reserved(call));
        }
        if !self.reservations.lets_begin() {
            return None;
        }
        let next = match self.ready.pop() {
            Some(Reverse(call)) => NextWork::Ready(call),
            None if self.fetched.is_empty() => return None,
            None => NextWork::Fetch(mem::take(&mut self.fetched)),
        };
        self.reservations.begin();
        Some(next)
    }
}

impl WorkQueue {
    /// A queue of calls that are ready. The reservations limit how many are in progress at once.
    fn new(ready: impl IntoIterator<Item = CallId>, reservations: Reservations) -> Self {
        let state = State {
            ready: ready.into_iter().map(Reverse).collect(),
            fetched: Vec::new(),
            begun: Vec::new(),
            completed: VecDeque::new(),
            reservations,
            idle: 0,
            closed: false,
        };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Queues calls that are ready.
    fn ready(&self, calls: impl IntoIterator<Item = CallId>) {
        self.change(|state| state.ready.extend(calls.into_iter().map(Reverse)));
    }

    /// Queues an execution that has ended. If the worker `submitter` delivers that itself, it takes it next, and
    /// no other is woken for it.
    fn complete(&self, call: CallId, end: Result<Ended, ExecuteError>, submitter: ThreadId) {
        let mut state = self.lock();
        state.completed.push_back((call, ExecutionEnd::Here(end)));
        if thread::current().id() != submitter {
            self.wake(&state);
        }
    }

    /// Notes that a worker has begun to execute a call.
    fn begin_at_worker(&self, call: CallId) {
        self.change(|state| state.begun.push(call));
    }

    /// Queues what became of a call at a worker.
    fn complete_at_worker(&self, call: CallId, end: Option<TicketEnd>) {
        self.change(|state| state.completed.push_back((call, ExecutionEnd::AtWorker(end))));
    }

    /// Releases the resources of a call.
    fn release(&self, call: CallId) {
        self.change(|state| state.reservations.release(call));
    }

    /// Lets all workers end.
    fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    /// Waits for the next work. Returns `None` if no more work will come.
    fn next(&self) -> Option<NextWork> {
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

    /// Wakes one worker if there is work for it; that worker wakes the next one.
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
    fn a_begun_call_comes_first_and_slots_limit_new_ones() {
        let (call, own) = (CallId::at, thread::current().id());
        let reservations = Reservations::new(2, Offer::default());
        let queue = WorkQueue::new([2, 0, 1].map(call), reservations);
        let next = || match queue.next().unwrap() {
            NextWork::Ready(id) | NextWork::Reserved(id) => (id, false),
            NextWork::Completed(id, _) => (id, true),
            NextWork::Begun(_) => panic!("there is no worker elsewhere"),
            NextWork::Fetch(calls) => panic!("{calls:?} came first"),
        };
        assert_eq!([next(), next()], [(call(0), false), (call(1), false)]);
        queue.complete(call(1), Err(ExecuteError::Interrupted), own);
        assert_eq!(next(), (call(1), true), "there is no slot for another call");
        queue.release(call(1));
        queue.ready([call(3)]);
        queue.complete(call(0), Err(ExecuteError::Interrupted), own);
        assert_eq!([next(), next()], [(call(0), true), (call(2), false)]);
        queue.ready([call(4), call(1)]);
        queue.release(call(0));
        queue.release(call(2));
        assert_eq!([next(), next()], [(call(1), false), (call(3), false)], "the first of the plan");
        queue.close();
        assert!(queue.next().is_none());
    }

    #[test]
    fn fetches_come_together_when_no_call_is_ready() {
        let call = CallId::at;
        let queue = WorkQueue::new([0, 1].map(call), Reservations::new(1, Offer::default()));
        let next = || {
            queue.lock().next().map(|next| match next {
                NextWork::Ready(id) => vec![id],
                NextWork::Fetch(calls) => calls,
                _ => panic!("nothing was begun"),
            })
        };
        let fetch = |id| queue.change(|state| state.fetched.push(call(id)));
        fetch(5);
        assert_eq!(next(), Some(vec![call(0)]));
        fetch(4);
        assert_eq!(next(), None, "the only slot is taken");
        queue.release(call(0));
        assert_eq!(next(), Some(vec![call(1)]));
        queue.release(call(1));
        assert_eq!(next(), Some([5, 4].map(call).to_vec()));
        assert_eq!(next(), None);
        queue.release(call(5));
        fetch(3);
        assert_eq!(next(), Some(vec![call(3)]));
    }
}
