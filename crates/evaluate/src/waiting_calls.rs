//! An evaluation is a countdown: a call is ready when all its inputs are settled, and counts down its dependents when
//! it is over.
//!
//! Threads process ready calls, submit executions, and seal outputs. Sealed calls go to the event loop, in the calling
//! thread. It flushes and publishes many calls together while the threads work, and polls the calls that other runs
//! compute.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::call_scheduler::{Scheduler, Work};
use super::capacity::Reservations;
use super::evaluator::{CallStep, Grants, QueuedCall, Running, SealedCall};
use super::execution::CallRunner;
use super::worker_queue::MAX_TICKETS;
use super::{
    CallError, EvaluateError, Evaluation, Evaluator, Event, How, Outcome, PointsError,
    SuspendedCall,
};
use ce_exchange::{fetch_outputs, may_fetch};
use ce_git::Prompts;
use ce_model::plan::{CallId, Operation, Plan, PlanGrowth};
use ce_storage::{Holder, Outputs, ResultName, StorageError};

/// The interval at which calls that other runs compute are polled.
const POLL: Duration = Duration::from_millis(100);

/// The interval at which unsettled outputs are polled.
const SETTLING: Duration = Duration::from_secs(1);

/// The shortest and the longest pause between two looks at a suspended call.
const PAUSES: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(60)];

/// The end of a list of readers.
const NONE: u32 = u32::MAX;

/// The head of the list of readers of a call that has ended.
const ENDED: u32 = u32::MAX - 1;

/// A message from a worker to the event loop.
enum Message<'a> {
    Sealed(SealedCall<'a>),
    Held(PolledCall),
    /// A call is over, which others may have waited for.
    Ended,
    /// Every call is over, or a worker has panicked.
    Over,
}

/// The state of the calls of a plan.
struct Countdown<'e, 'a> {
    evaluator: &'e Evaluator<'a>,
    scheduler: Scheduler<'a, Running<'a>, QueuedCall>,
    /// The calls that wait for others.
    pending: PendingCalls,
    /// Held while the plan grows.
    growing: Mutex<()>,
    /// The number of calls that have not ended.
    left: AtomicUsize,
    /// The calls with outputs of the task, once one of them was asked for.
    wanted: OnceLock<HashSet<CallId>>,
    /// Whether calls are looked at again when another one is over.
    waiting: AtomicBool,
    sender: Sender<Message<'a>>,
}

impl Evaluator<'_> {
    /// Evaluates with this number of workers, until every call has ended.
    ///
    /// # Errors
    ///
    /// Fails if the threads cannot be started, published outputs cannot be flushed, or the storage does not answer any more.
    pub fn evaluate(&self, jobs: NonZeroUsize) -> Result<(), EvaluateError> {
        let Evaluation { task, storage, .. } = self.evaluation;
        storage.cached_records().load(&task.name);
        let carried_out = carry_out(self, jobs);
        // If the storage is away, that is the reason for every call that was not executed.
        let carried_out =
            storage.availability().away().map_or(carried_out, |error| Err(error.into()));
        let mut in_place = Ok(());
        if let Some(execution) = &self.execution {
            execution.executor.finish();
            in_place = storage.availability().check_in_place();
        }
        storage.cached_records().save();
        carried_out.and(in_place.map_err(EvaluateError::from))?;
        if self.evaluation.plan.jobs().is_some() {
            // The outputs were derived for each point, and a call has the errors.
            return Ok(());
        }
        // An output may be derived from values that are known now.
        let outputs = self.evaluation.plan.outputs().iter().copied();
        Ok(self.evaluation.derive(outputs, self.execution.is_some())?)
    }
}

/// Carries out a plan with this number of threads, until every call is over.
pub(super) fn carry_out(
    evaluator: &Evaluator<'_>,
    threads: NonZeroUsize,
) -> Result<(), EvaluateError> {
    let plan = &evaluator.evaluation.plan;
    let calls = plan.calls().len();
    if calls == 0 {
        return Ok(());
    }
    let (sender, receiver) = channel();
    let pending = PendingCalls::default();
    let ready = pending.grow(plan);
    // Without execution, no slots are reserved.
    let slots = evaluator.execution.map_or(usize::MAX, |it| match it.queue {
        Some(_) => MAX_TICKETS,
        None => it.executor.capacity().get(),
    });
    // The host's offer is not looked up if the task requests no resources.
    let is_asked = !evaluator.evaluation.task.resources.is_empty();
    let execution = evaluator.execution.filter(|_| is_asked);
    let offer = execution.map(|it| it.executor.offer()).unwrap_or_default();
    let countdown = &Countdown {
        evaluator,
        scheduler: Scheduler::new(evaluator.execution, ready, Reservations::new(slots, offer)),
        pending,
        growing: Mutex::default(),
        left: AtomicUsize::new(calls),
        wanted: OnceLock::new(),
        waiting: AtomicBool::new(false),
        sender,
    };
    // The points of a sweep may be many calls.
    let most = if plan.grows() { usize::MAX } else { calls };
    let ended = countdown.scheduler.with_threads(
        threads.get().min(most),
        &|| countdown.work(),
        &|| countdown.send(Message::Over),
        || countdown.event_loop(&receiver),
    );
    Ok(ended??)
}

impl<'a> Countdown<'_, 'a> {
    /// Does what there is to do, until every call is over.
    fn work(&self) {
        while let Some(work) = self.scheduler.next() {
            match work {
                Work::Ready(id, grants) => {
                    let step = self.evaluator.process_call(id, grants);
                    self.advance(id, step);
                }
                Work::Fetch(calls) => self.fetch(&calls),
                Work::Begun(id) => self.scheduler.with_queued(id, |queued| {
                    if let Some(runner) = CallRunner::from_evaluator(self.evaluator) {
                        runner.report_begun(queued);
                    }
                }),
                Work::Ended(id, running, end) => {
                    let Some(runner) = CallRunner::from_evaluator(self.evaluator) else { continue };
                    self.advance(id, runner.conclude(running, end));
                }
                Work::Answered(id, queued, end) => {
                    let Some(runner) = CallRunner::from_evaluator(self.evaluator) else { continue };
                    self.advance(id, runner.conclude_at_worker(queued, end));
                }
            }
        }
    }

    /// Takes a call on after a step. Its slot is given back unless it is executed.
    fn advance(&self, id: CallId, step: CallStep<'a>) {
        match step {
            CallStep::Submit(running, invocation) => {
                return self.scheduler.submit(id, *running, *invocation);
            }
            CallStep::Queue(queued) => {
                let (name, ticket) = (queued.name.clone(), queued.ticket.clone());
                if let Err(error) = self.scheduler.put(id, *queued, &ticket) {
                    self.advance(id, CallStep::Ended(Outcome::failed(name, error)));
                }
                return;
            }
            CallStep::Reserve(request) => return self.scheduler.reserve(id, request),
            CallStep::Enter(request, is_reserved) => {
                // Without one, the user has asked to stop.
                let turn = self.scheduler.enter(request);
                let step = self.evaluator.process_call(id, Grants { is_reserved, turn });
                return self.advance(id, step);
            }
            CallStep::Ended(outcome) if outcome.how() == How::Away && self.is_wanted(id) => {
                // No call could demand it before.
                self.pending.demand(id);
                self.complete_call(id, outcome);
                self.scheduler.release(id);
                return self.go_on(vec![id]);
            }
            CallStep::Ended(outcome) => {
                self.complete_call(id, outcome);
                self.report_ended(id);
            }
            CallStep::Demand(calls) => self.demand(id, &calls),
            CallStep::Sealed(executed) if self.evaluator.evaluation.storage.flushes() => {
                self.scheduler.release_sealed(id);
                self.send(Message::Sealed(executed));
                return;
            }
            CallStep::Sealed(executed) => match self.publish_one(executed) {
                Some(outcome) => {
                    self.complete_call(id, outcome);
                    self.report_ended(id);
                }
                None => return self.look_again(id),
            },
            CallStep::Again => return self.look_again(id),
            CallStep::Suspended(name, call) => {
                self.send(Message::Held(PolledCall::new(id, name, PollReason::Suspended(call))));
            }
            CallStep::Expand(growth) => self.expand(id, growth),
            CallStep::Held(name, holder) => {
                let held = PolledCall::new(id, name, PollReason::Executed(holder));
                held.report_holder(self.evaluator);
                self.send(Message::Held(held));
            }
            CallStep::Unsettled(name) => {
                if self.pending.note_unsettled(id) {
                    (self.evaluator.observe)(Event::Unsettled(id, name.clone()));
                }
                self.send(Message::Held(PolledCall::new(id, name, PollReason::Unsettled)));
            }
        }
        self.scheduler.release(id);
    }

    /// Releases the resources of a call, and looks for it again.
    fn look_again(&self, id: CallId) {
        self.scheduler.release(id);
        self.scheduler.ready([id]);
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
        self.scheduler.ready(match is_away {
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
        let mut demanded = Vec::new();
        for call in calls.iter().filter(|call| self.pending.demand(**call)) {
            self.left.fetch_add(1, Ordering::AcqRel);
            (self.evaluator.observe)(Event::Demanded(*call));
            demanded.push(*call);
        }
        if self.pending.wait_for_outputs(reader, calls) {
            self.scheduler.ready([reader]);
        }
        self.go_on(demanded);
    }

    /// Continues calls whose outputs are away and needed: fetches outputs where possible, and executes the other calls.
    fn go_on(&self, demanded: Vec<CallId>) {
        let evaluation = self.evaluator.evaluation;
        let is_fetched = |call: &CallId| {
            self.evaluator.execution.is_some()
                && evaluation.away_outputs(*call).is_some_and(|outputs| {
                    !self.evaluator.is_forced(&outputs.name)
                        && may_fetch(&evaluation.storage, outputs)
                })
        };
        let (fetched, ready): (Vec<CallId>, Vec<CallId>) =
            demanded.into_iter().partition(is_fetched);
        self.scheduler.ready(ready);
        self.scheduler.fetch(fetched);
    }

    /// Fetches outputs of the first of some calls, as many as fit at once. Then these calls are found.
    fn fetch(&self, calls: &[CallId]) {
        if self.evaluator.has_stopped() {
            self.scheduler.release(calls[0]);
            return self.scheduler.ready(calls.iter().copied());
        }
        let evaluation = self.evaluator.evaluation;
        let away = calls.iter().filter_map(|call| evaluation.away_outputs(*call));
        let away: Vec<&Outputs> = away.collect();
        debug_assert_eq!(away.len(), calls.len(), "all of them were away");
        let fetched = fetch_outputs(&evaluation.storage, &away, Prompts::Off);
        self.scheduler.release(calls[0]);
        self.scheduler.fetch(calls[fetched.len()..].iter().copied());
        let mut ready = Vec::with_capacity(fetched.len());
        for ((call, outputs), fetched) in calls.iter().zip(away).zip(fetched) {
            match fetched {
                Ok(_) => ready.push(*call),
                Err(error) => {
                    let error = CallError::Fetch(error);
                    self.complete_call(*call, Outcome::failed(outputs.name.clone(), error));
                    self.report_ended(*call);
                }
            }
        }
        self.scheduler.ready(ready);
    }

    /// Adds the calls at new points of a sweep. The call that gathers it waits for them.
    fn expand(&self, id: CallId, growth: PlanGrowth) {
        let Evaluation { plan, task, .. } = self.evaluator.evaluation;
        let Operation::Sweep(sweep) = plan.call(id).operation else { return };
        let growing = self.growing.lock().unwrap_or_else(PoisonError::into_inner);
        let before = plan.calls().len();
        let unmatched = match plan.expand(task, sweep, growth) {
            Ok(unmatched) => unmatched,
            Err(fault) => {
                drop(growing);
                let name = ResultName::unknown_table();
                self.complete_call(id, Outcome::failed(name, PointsError::from(fault)));
                return self.report_ended(id);
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
        self.scheduler.ready(ready);
    }

    /// Reports the end of a call.
    fn report_ended(&self, id: CallId) {
        (self.evaluator.observe)(Event::Ended(id));
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.scheduler.close();
            self.send(Message::Over);
        } else if self.waiting.load(Ordering::Acquire) {
            self.send(Message::Ended);
        }
    }

    /// Publishes sealed calls, and polls calls of other runs, until every call has ended.
    fn event_loop(&self, receiver: &Receiver<Message<'a>>) -> Result<(), StorageError> {
        let mut held = PolledCalls::default();
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
                            Message::Sealed(call) => executed.push(call),
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
            self.scheduler.ready(held.recheck(self.evaluator));
        }
    }

    fn publish_one(&self, executed: SealedCall<'a>) -> Option<Outcome> {
        // Nothing is executed by an evaluation that only looks.
        CallRunner::from_evaluator(self.evaluator)?.publish(executed)
    }

    /// Flushes sealed calls, publishes them, flushes again, and reports them.
    fn publish(&self, executed: Vec<SealedCall<'a>>) -> Result<(), StorageError> {
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
                None => self.scheduler.ready([id]),
            }
        }
        self.scheduler.end_publishing(count);
        let flushed = if flushed.is_ok() { storage.flush() } else { Ok(()) };
        ended.into_iter().for_each(|id| self.report_ended(id));
        flushed
    }
}

/// The calls of a plan that wait for others.
#[derive(Debug, Default)]
struct PendingCalls {
    calls: boxcar::Vec<PendingCall>,
    /// A list of readers for each call.
    edges: boxcar::Vec<Edge>,
}

#[derive(Debug)]
struct PendingCall {
    /// The number of its inputs that are not known yet.
    inputs: AtomicU32,
    /// The first edge to a reader.
    readers: AtomicU32,
    /// The first edge to a reader that waits for its outputs themselves, if they are away.
    demanders: AtomicU32,
    /// Whether its outputs are needed, though they are away.
    demanded: AtomicBool,
    /// Whether it was reported that its outputs have not settled.
    unsettled: AtomicBool,
}

/// A call that waits for another one.
#[derive(Debug)]
struct Edge {
    reader: CallId,
    /// The next edge from the same call.
    next: AtomicU32,
}

impl PendingCalls {
    /// Adds the new calls of a plan. Returns the ones that wait for nothing. One thread at a time may do this.
    fn grow(&self, plan: &Plan) -> Vec<CallId> {
        let (from, to) = (self.calls.count(), plan.calls().len());
        for _ in from..to {
            self.calls.push(PendingCall {
                inputs: AtomicU32::new(0),
                readers: AtomicU32::new(NONE),
                demanders: AtomicU32::new(NONE),
                demanded: AtomicBool::new(false),
                unsettled: AtomicBool::new(false),
            });
        }
        (from..to).map(CallId::at).filter(|call| self.wait(plan, *call)).collect()
    }

    /// Lets a call wait for its inputs. Returns whether it needs to wait for none.
    fn wait(&self, plan: &Plan, call: CallId) -> bool {
        let awaited = plan.inputs(call).iter().filter_map(|source| plan.awaited(*source));
        self.wait_in(awaited, call, |awaited| &awaited.readers)
    }

    /// Lets a call wait for the outputs of others, which are away. Returns whether all of these have ended again.
    fn wait_for_outputs(&self, call: CallId, awaited: &[CallId]) -> bool {
        self.wait_in(awaited.iter().copied(), call, |awaited| &awaited.demanders)
    }

    fn wait_in(
        &self,
        awaited: impl Iterator<Item = CallId>,
        call: CallId,
        list: fn(&PendingCall) -> &AtomicU32,
    ) -> bool {
        let inputs = &self.calls[call.index()].inputs;
        // It is not ready before all edges are there.
        inputs.store(1, Ordering::Release);
        for awaited in awaited {
            inputs.fetch_add(1, Ordering::AcqRel);
            if !self.add_reader(list(&self.calls[awaited.index()]), call) {
                inputs.fetch_sub(1, Ordering::AcqRel);
            }
        }
        inputs.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Notes that the outputs of a call are needed, though they are away. Returns whether this is the first time.
    fn demand(&self, call: CallId) -> bool {
        !self.calls[call.index()].demanded.swap(true, Ordering::AcqRel)
    }

    /// Adds a reader to the list with this head, unless that is closed.
    fn add_reader(&self, head: &AtomicU32, reader: CallId) -> bool {
        let mut next = head.load(Ordering::Acquire);
        if next == ENDED {
            return false;
        }
        let edge = self.edges.push(Edge { reader, next: AtomicU32::new(next) });
        loop {
            match head.compare_exchange(next, edge as u32, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return true,
                Err(ENDED) => return false,
                Err(other) => next = other,
            }
            self.edges[edge].next.store(next, Ordering::Release);
        }
    }

    /// Ends a call. Returns the calls that waited for nothing else, in the order in which they began to wait.
    fn end(&self, call: CallId) -> Vec<CallId> {
        let mut ready = self.end_away(call);
        ready.extend(self.close(&self.calls[call.index()].demanders));
        ready
    }

    /// Ends a call whose outputs are away. Returns the calls that waited for nothing else: they may need only the
    /// digests of the outputs.
    fn end_away(&self, call: CallId) -> Vec<CallId> {
        self.close(&self.calls[call.index()].readers)
    }

    fn close(&self, head: &AtomicU32) -> Vec<CallId> {
        let mut edge = head.swap(ENDED, Ordering::AcqRel);
        let mut ready = Vec::new();
        while edge != NONE && edge != ENDED {
            let Edge { reader, next } = &self.edges[edge as usize];
            if self.calls[reader.index()].inputs.fetch_sub(1, Ordering::AcqRel) == 1 {
                ready.push(*reader);
            }
            edge = next.load(Ordering::Acquire);
        }
        ready.reverse();
        ready
    }

    /// Notes that it is reported that the outputs of a call have not settled. Returns whether this is the first time.
    fn note_unsettled(&self, call: CallId) -> bool {
        !self.calls[call.index()].unsettled.swap(true, Ordering::Relaxed)
    }
}

/// A call that is to be looked at again.
struct PolledCall {
    id: CallId,
    name: ResultName,
    reason: PollReason,
    /// When it was looked at.
    since: Instant,
}

/// The reason to look at a call again.
enum PollReason {
    /// Another run executes it.
    Executed(Holder),
    /// Its outputs have not settled.
    Unsettled,
    /// It is suspended.
    Suspended(SuspendedCall),
}

impl PollReason {
    /// Whether this run executes the call.
    const fn is_own(&self) -> bool {
        matches!(self, Self::Executed(Holder { own: true, .. }))
    }
}

impl PolledCall {
    /// A call that was looked at now.
    fn new(id: CallId, name: ResultName, reason: PollReason) -> Self {
        Self { id, name, reason, since: Instant::now() }
    }

    /// Reports the holder for which it waits.
    fn report_holder(&self, evaluator: &Evaluator<'_>) {
        if let PollReason::Executed(holder) = &self.reason
            && !holder.own
        {
            (evaluator.observe)(Event::Held(self.id, self.name.clone(), holder.clone()));
        }
    }
}

/// The calls that are looked at again.
#[derive(Default)]
struct PolledCalls {
    calls: Vec<PolledCall>,
    /// The pause before each suspended call is looked at again.
    pauses: HashMap<CallId, Duration>,
}

impl PolledCalls {
    const fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Adds a call. One that is suspended waits longer each time.
    fn add(&mut self, call: PolledCall, evaluator: &Evaluator<'_>) {
        if let PollReason::Suspended(suspended) = &call.reason {
            let [shortest, longest] = PAUSES;
            match self.pauses.entry(call.id) {
                Entry::Occupied(mut pause) => {
                    *pause.get_mut() = (*pause.get() * 3 / 2).min(longest);
                }
                Entry::Vacant(pause) => {
                    pause.insert(shortest);
                    let (name, suspended) = (call.name.clone(), suspended.clone());
                    (evaluator.observe)(Event::Suspended(call.id, name, suspended));
                }
            }
        }
        self.calls.push(call);
    }

    /// Returns the calls that are to be looked at now: no other run executes them any more, or their pause is over.
    fn recheck(&mut self, evaluator: &Evaluator<'_>) -> Vec<CallId> {
        let Evaluator { evaluation, execution, .. } = evaluator;
        let cancelled = execution.is_some_and(|it| it.executor.is_cancelled());
        let stopped = evaluator.has_stopped();
        let pauses = &self.pauses;
        let mut ready = Vec::new();
        self.calls.retain_mut(|call| {
            let wait = match &mut call.reason {
                _ if cancelled => false,
                // Calls that this run executes itself continue, and end soon.
                reason if stopped && !reason.is_own() => false,
                PollReason::Unsettled => call.since.elapsed() < SETTLING,
                PollReason::Suspended(_) => {
                    pauses.get(&call.id).is_some_and(|pause| call.since.elapsed() < *pause)
                }
                PollReason::Executed(known) => {
                    match evaluation.storage.leases().holder(&call.name) {
                        Some(holder) if holder != *known => {
                            *known = holder;
                            call.report_holder(evaluator);
                            true
                        }
                        Some(_) => true,
                        // It may have suspended the call.
                        None => {
                            evaluation.storage.suspensions().look_again();
                            false
                        }
                    }
                }
            };
            ready.extend((!wait).then_some(call.id));
            wait
        });
        ready
    }
}
