//! The scheduler: it decides when each call is processed.
//!
//! Workers process ready calls, submit executions, and seal outputs. An execution that ends later
//! is sealed by any free worker. Sealed calls go to the event loop, in the calling thread. It
//! flushes and publishes many calls together while the workers go on, and polls the calls that
//! other runs compute.

use std::collections::{HashMap, HashSet};
use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use super::pending::PendingCalls;
use super::polled_calls::{HeldCall, HeldCalls, HoldReason};
use super::queue::{MAX_TICKETS, TicketWatcher};
use super::reservations::Reservations;
use super::step::{CallStep, Executed, Footing, QueuedCall, Underway};
use super::work_queue::{ExecutionEnd, Work, WorkQueue};
use super::{EvaluateError, Evaluation, Evaluator, Event, How, Outcome};
use ce_executor::Completion;
use ce_model::plan::{CallId, Operation};
use ce_model::sweep::SweepPoints;
use ce_storage::StorageError;

/// The interval at which calls that other runs compute are polled.
const POLL: Duration = Duration::from_millis(100);

/// A message from a worker to the event loop.
enum Message<'a> {
    Executed(Executed<'a>),
    Held(HeldCall),
    /// A call is over, which others may have waited for.
    Ended,
    /// Every call is over, or a worker has panicked.
    Over,
}

/// The state of the calls of a plan.
struct Scheduler<'e, 'a> {
    evaluator: &'e Evaluator<'a>,
    /// What calls wait for.
    pending: PendingCalls,
    /// Held while the plan grows.
    growing: Mutex<()>,
    /// The number of calls that have not ended.
    left: AtomicUsize,
    /// The calls with outputs of the task, once one of them was asked for.
    wanted: OnceLock<HashSet<CallId>>,
    /// Whether calls are looked at again when another one is over.
    waiting: AtomicBool,
    /// The calls that are being executed.
    underway: Mutex<HashMap<CallId, Underway<'a>>>,
    /// Shared with completions, which may be delivered after the evaluation.
    queue: Arc<WorkQueue>,
    sender: Sender<Message<'a>>,
}

/// Ends all waiting for calls that will never be over, if the thread that has it panics.
struct Alarm<'s, 'a>(&'s WorkQueue, Option<&'s Sender<Message<'a>>>);

impl Drop for Alarm<'_, '_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.close();
            if let Some(sender) = self.1 {
                drop(sender.send(Message::Over));
            }
        }
    }
}

/// Carries out a plan with so many workers, until every call is over.
pub(super) fn carry_out(
    evaluator: &Evaluator<'_>,
    workers: NonZeroUsize,
) -> Result<(), EvaluateError> {
    let plan = &evaluator.evaluation.plan;
    let calls = plan.calls().len();
    if calls == 0 {
        return Ok(());
    }
    let (sender, receiver) = channel();
    let pending = PendingCalls::default();
    let ready = pending.grow(plan);
    // The points of a sweep may be many calls.
    let most = if plan.grows() { usize::MAX } else { calls };
    // Without execution, no slots are reserved.
    let slots = evaluator.execution.map_or(usize::MAX, |it| match it.queue {
        Some(_) => MAX_TICKETS,
        None => it.executor.capacity().get(),
    });
    // What nobody asks for is not looked up.
    let is_asked = !evaluator.evaluation.task.resources.is_empty();
    let execution = evaluator.execution.filter(|_| is_asked);
    let offer = execution.map(|it| it.executor.offer()).unwrap_or_default();
    let queue = Arc::new(WorkQueue::new(ready.into(), Reservations::new(slots, offer)));
    let scheduler = &Scheduler {
        evaluator,
        pending,
        growing: Mutex::default(),
        left: AtomicUsize::new(calls),
        wanted: OnceLock::new(),
        waiting: AtomicBool::new(false),
        underway: Mutex::default(),
        queue,
        sender,
    };
    thread::scope(|scope| {
        let _alarm = Alarm(&scheduler.queue, None);
        let mut threads = Vec::new();
        for _ in 0..workers.get().min(most) {
            let worker = thread::Builder::new().name("worker".to_owned());
            match worker.spawn_scoped(scope, || scheduler.work()) {
                Ok(thread) => threads.push(thread),
                // The workers that were started do all the work.
                Err(_) if !threads.is_empty() => break,
                Err(error) => return Err(EvaluateError::Threads(error)),
            }
        }
        let result = scheduler.event_loop(&receiver);
        for thread in threads {
            thread.join().unwrap_or_else(|panic| resume_unwind(panic));
        }
        Ok(result?)
    })
}

impl<'a> Scheduler<'_, 'a> {
    /// Does what there is to do, until every call is over.
    fn work(&self) {
        let _alarm = Alarm(&self.queue, Some(&self.sender));
        while let Some(work) = self.queue.next() {
            match work {
                Work::Ready(id) => {
                    let step = self.evaluator.process_call(id, Footing::default());
                    self.advance(id, step);
                }
                Work::Reserved(id) => {
                    let footing = Footing { is_reserved: true, turn: None };
                    let step = self.evaluator.process_call(id, footing);
                    self.advance(id, step);
                }
                Work::Begun(id) => {
                    if let Some(runner) = self.evaluator.runner()
                        && let Some(Underway::AtWorker(queued)) = self.underway().get_mut(&id)
                    {
                        runner.tell_begun(queued);
                    }
                }
                Work::Completed(id, end) => {
                    let underway = self.underway().remove(&id);
                    debug_assert!(underway.is_some(), "an execution is completed once");
                    let Some(runner) = self.evaluator.runner() else { continue };
                    match (underway, end) {
                        (Some(Underway::Here(running)), ExecutionEnd::Here(end)) => {
                            let step = runner.conclude(running, end);
                            self.advance(id, step);
                        }
                        (Some(Underway::AtWorker(queued)), ExecutionEnd::AtWorker(end)) => {
                            let step = runner.conclude_at_worker(queued, end);
                            self.advance(id, step);
                        }
                        _ => {}
                    }
                }
            }
        }
    }

    /// Takes a call on after a step. Its slot is given back unless it is executed.
    fn advance(&self, id: CallId, step: CallStep<'a>) {
        match step {
            CallStep::Submit(running, invocation) => {
                let Some(settings) = &self.evaluator.execution else { return };
                self.underway().insert(id, Underway::Here(*running));
                let queue = Arc::clone(&self.queue);
                let submitter = thread::current().id();
                let completion = Completion::new(move |end| queue.complete(id, end, submitter));
                settings.executor.submit(*invocation, completion);
                return;
            }
            CallStep::Queue(queued) => return self.put(*queued),
            CallStep::Reserve(request) => return self.queue.reserve(id, request),
            CallStep::Enter(request, is_reserved) => {
                let Some(settings) = &self.evaluator.execution else { return };
                // Without one, the user has asked to stop.
                let turn = settings.executor.enter(request, true).unwrap_or_default();
                let step = self.evaluator.process_call(id, Footing { is_reserved, turn });
                return self.advance(id, step);
            }
            CallStep::Ended(outcome) if outcome.how() == How::Away && self.is_wanted(id) => {
                // Nobody could demand it before.
                self.pending.demand(id);
                self.complete_call(id, outcome);
                return self.look_again(id);
            }
            CallStep::Ended(outcome) => {
                self.complete_call(id, outcome);
                self.tell(id);
            }
            CallStep::Demand(calls) => self.demand(id, &calls),
            CallStep::Executed(executed) if self.evaluator.evaluation.storage.flushes() => {
                self.queue.release_sealed(id);
                self.send(Message::Executed(executed));
                return;
            }
            CallStep::Executed(executed) => match self.publish_one(executed) {
                Some(outcome) => {
                    self.complete_call(id, outcome);
                    self.tell(id);
                }
                None => return self.look_again(id),
            },
            CallStep::Again => return self.look_again(id),
            CallStep::Suspended(name, call) => {
                self.send(Message::Held(HeldCall::new(id, name, HoldReason::Suspended(call))));
            }
            CallStep::Expand(points) => self.expand(id, points),
            CallStep::Held(name, holder) => {
                let held = HeldCall::new(id, name, HoldReason::Executed(holder));
                held.tell(self.evaluator);
                self.send(Message::Held(held));
            }
            CallStep::Unsettled(name) => {
                if self.pending.note_unsettled(id) {
                    (self.evaluator.observe)(Event::Unsettled(id, name.clone()));
                }
                self.send(Message::Held(HeldCall::new(id, name, HoldReason::Unsettled)));
            }
        }
        self.queue.release(id);
    }

    /// Gives back what a call has, and looks for it again.
    fn look_again(&self, id: CallId) {
        self.queue.release(id);
        self.queue.ready([id]);
    }

    /// Queues a call for workers.
    fn put(&self, queued: QueuedCall) {
        let Some(workers) = self.evaluator.execution.and_then(|it| it.queue) else { return };
        let QueuedCall { id, ref name, ref ticket, .. } = queued;
        let (name, ticket) = (name.clone(), &ticket.clone());
        self.underway().insert(id, Underway::AtWorker(queued));
        let [began, ended] = [(); 2].map(|()| Arc::clone(&self.queue));
        let watcher = TicketWatcher {
            begun: Box::new(move || began.begin_at_worker(id)),
            ended: Box::new(move |end| ended.complete_at_worker(id, end)),
        };
        if let Err(error) = workers.put(ticket, watcher) {
            self.underway().remove(&id);
            self.advance(id, CallStep::Ended(Outcome::failed(name, error)));
        }
    }

    fn underway(&self) -> MutexGuard<'_, HashMap<CallId, Underway<'a>>> {
        self.underway.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, message: Message<'a>) {
        // The receiver exists until every call has ended.
        drop(self.sender.send(message));
    }

    /// Records how a call ended; dependents that waited only for that become ready.
    fn complete_call(&self, id: CallId, outcome: Outcome) {
        let is_away = outcome.how() == How::Away;
        let first = self.evaluator.evaluation.set(id, self.evaluator.blame(outcome));
        debug_assert!(first, "a call ends once, and once more if it is demanded");
        self.evaluator.stop_workers();
        self.queue.ready(match is_away {
            true => self.pending.end_away(id),
            false => self.pending.end(id),
        });
    }

    /// Whether a call has outputs of the task: these are needed in any case.
    fn is_wanted(&self, id: CallId) -> bool {
        let wanted = self.wanted.get_or_init(|| {
            let plan = &self.evaluator.evaluation.plan;
            plan.outputs().iter().filter_map(|source| plan.awaited(*source)).collect()
        });
        wanted.contains(&id) || self.evaluator.evaluation.plan.call(id).is_target()
    }

    /// Lets a call wait for the outputs of others, which are away and are made again. That call is not over, so these
    /// are not the last ones.
    fn demand(&self, reader: CallId, calls: &[CallId]) {
        let mut ready = Vec::new();
        for call in calls.iter().filter(|call| self.pending.demand(**call)) {
            self.left.fetch_add(1, Ordering::AcqRel);
            (self.evaluator.observe)(Event::Demanded(*call));
            ready.push(*call);
        }
        if self.pending.wait_for_outputs(reader, calls) {
            ready.push(reader);
        }
        self.queue.ready(ready);
    }

    /// Adds the calls of a sweep whose points are known by now. The call that gathers it waits for them.
    fn expand(&self, id: CallId, points: SweepPoints) {
        let Evaluation { plan, task, .. } = self.evaluator.evaluation;
        let Operation::Sweep(sweep) = plan.call(id).operation else { return };
        let growing = self.growing.lock().unwrap_or_else(PoisonError::into_inner);
        let before = plan.calls().len();
        let unmatched = match plan.expand(task, sweep, points) {
            Ok(unmatched) => unmatched,
            Err(fault) => {
                drop(growing);
                self.complete_call(id, self.evaluator.no_points(fault));
                return self.tell(id);
            }
        };
        self.evaluator.evaluation.grow();
        self.left.fetch_add(plan.calls().len() - before, Ordering::AcqRel);
        (self.evaluator.observe)(Event::Expanded(id, unmatched));
        let mut ready = self.pending.grow(plan);
        drop(growing);
        if self.pending.wait(plan, id) {
            ready.push(id);
        }
        self.queue.ready(ready);
    }

    /// Tells that a call is over.
    fn tell(&self, id: CallId) {
        (self.evaluator.observe)(Event::Ended(id));
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.queue.close();
            self.send(Message::Over);
        } else if self.waiting.load(Ordering::Acquire) {
            self.send(Message::Ended);
        }
    }

    /// Publishes sealed calls, and polls those of other runs, until every call has ended.
    fn event_loop(&self, receiver: &Receiver<Message<'a>>) -> Result<(), StorageError> {
        let mut held = HeldCalls::default();
        let mut result = Ok(());
        loop {
            let first = if held.is_empty() {
                receiver.recv().map_err(|_| RecvTimeoutError::Disconnected)
            } else {
                receiver.recv_timeout(POLL)
            };
            let mut executed = Vec::new();
            match first {
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return result,
                Ok(first) => {
                    for message in std::iter::once(first).chain(receiver.try_iter()) {
                        match message {
                            Message::Executed(call) => executed.push(call),
                            Message::Held(call) => held.add(call, self.evaluator),
                            Message::Ended => {}
                            Message::Over => return result,
                        }
                    }
                }
            }
            if !executed.is_empty() {
                result = result.and(self.publish(executed));
            }
            self.waiting.store(!held.is_empty(), Ordering::Release);
            self.queue.ready(held.recheck(self.evaluator));
        }
    }

    fn publish_one(&self, executed: Executed<'a>) -> Option<Outcome> {
        // Nothing is executed by an evaluation that only looks.
        self.evaluator.runner()?.publish(executed)
    }

    /// Flushes sealed calls, publishes them, flushes again, and reports them.
    fn publish(&self, executed: Vec<Executed<'a>>) -> Result<(), StorageError> {
        let storage = &self.evaluator.evaluation.storage;
        let flushed = storage.flush().map_err(Arc::new);
        let (count, mut ended) = (executed.len(), Vec::with_capacity(executed.len()));
        for executed in executed {
            let id = executed.id;
            let outcome = match &flushed {
                Ok(()) => self.publish_one(executed),
                Err(error) => Some(executed.give_up(Arc::clone(error))),
            };
            match outcome {
                Some(outcome) => {
                    self.complete_call(id, outcome);
                    ended.push(id);
                }
                None => self.queue.ready([id]),
            }
        }
        self.queue.end_publishing(count);
        let flushed = if flushed.is_ok() { storage.flush() } else { Ok(()) };
        ended.into_iter().for_each(|id| self.tell(id));
        flushed
    }
}
