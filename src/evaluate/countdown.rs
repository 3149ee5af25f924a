//! The countdown: which call is ready, and what becomes of it after its turn.
//!
//! Threads of a pool give each ready call its turn. What was executed comes back to the thread that
//! called, which flushes and publishes many calls together while the others go on executing; what
//! another run computes is looked at again from time to time.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use rayon::ScopeFifo;

use super::call::{Executed, Turn};
use super::{EvaluateError, Evaluator, Event, Outcome};
use crate::plan::CallId;
use crate::storage::{Holder, ResultName, StorageError};

/// How often calls that another run computes are looked at.
const POLL: Duration = Duration::from_millis(100);

/// How often outputs that have not settled are looked at.
const SETTLING: Duration = Duration::from_secs(1);

/// What a thread of the pool tells the one that called.
enum Message<'a> {
    Executed(Executed<'a>),
    Held(Held),
    /// A call is over, which others may have waited for.
    Ended,
    /// Every call is over.
    Over,
}

/// A call that another run computes.
struct Held {
    id: CallId,
    name: ResultName,
    /// `None` if its outputs are there and have not settled.
    holder: Option<Holder>,
    /// When it was looked at.
    since: Instant,
}

/// How far the calls of a plan are from their turns.
struct Countdown<'e, 'a> {
    evaluator: &'e Evaluator<'a>,
    /// For each call, how many of its inputs are awaited.
    awaited: Vec<AtomicU32>,
    /// For each call, whether it was told that its outputs have not settled.
    unsettled: Vec<AtomicBool>,
    /// How many calls are not over.
    left: AtomicUsize,
    /// Whether calls are looked at again when another one is over.
    waiting: AtomicBool,
    sender: Sender<Message<'a>>,
}

/// Ends the waiting for calls that will never be over, since a thread has panicked.
struct Alarm<'s, 'a>(&'s Sender<Message<'a>>);

impl Drop for Alarm<'_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            drop(self.0.send(Message::Over));
        }
    }
}

/// Carries out a plan with so many threads, until every call is over.
pub(super) fn carry_out(
    evaluator: &Evaluator<'_>,
    jobs: NonZeroUsize,
) -> Result<(), EvaluateError> {
    let plan = &evaluator.evaluation.plan;
    if plan.calls().len() == 0 {
        return Ok(());
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs.get()).build()?;
    let (sender, receiver) = channel();
    let awaited = plan.calls().map(|(id, _)| AtomicU32::new(plan.awaited(id) as u32)).collect();
    let left = AtomicUsize::new(plan.calls().len());
    let unsettled = plan.calls().map(|_| AtomicBool::new(false)).collect();
    let waiting = AtomicBool::new(false);
    let countdown = &Countdown { evaluator, awaited, unsettled, left, waiting, sender };
    // Collected before the first is spawned: one that is counted down meanwhile is not ready from
    // the beginning.
    let ready = |id: &CallId| plan.awaited(*id) == 0;
    let ready: Vec<CallId> = plan.calls().map(|(id, _)| id).filter(ready).collect();
    pool.in_place_scope_fifo(|scope| {
        for id in ready {
            scope.spawn_fifo(move |scope| countdown.turn(scope, id));
        }
        countdown.attend(scope, &receiver)
    })?;
    Ok(())
}

impl<'s, 'a> Countdown<'_, 'a> {
    /// Gives a call its turn, in a thread of the pool.
    fn turn(&'s self, scope: &ScopeFifo<'s>, id: CallId) {
        let _alarm = Alarm(&self.sender);
        match self.evaluator.turn(id) {
            Turn::Ended(outcome) => {
                self.settle(scope, id, outcome);
                self.tell(id);
            }
            Turn::Executed(executed) if self.evaluator.evaluation.storage.flushes() => {
                self.send(Message::Executed(executed));
            }
            Turn::Executed(executed) => {
                let outcome = self.evaluator.publish(executed);
                self.settle(scope, id, outcome);
                self.tell(id);
            }
            Turn::Held(name, holder) => {
                let held = Held { id, name, holder: Some(holder), since: Instant::now() };
                self.tell_holder(&held);
                self.send(Message::Held(held));
            }
            Turn::Unsettled(name) => {
                if !self.unsettled[id.index()].swap(true, Ordering::Relaxed) {
                    (self.evaluator.observe)(Event::Unsettled(id, name.clone()));
                }
                self.send(Message::Held(Held { id, name, holder: None, since: Instant::now() }));
            }
        }
    }

    fn send(&self, message: Message<'a>) {
        // The other end is there until every call is over.
        drop(self.sender.send(message));
    }

    /// Notes how a call ended, and gives their turns to the calls that awaited only that.
    fn settle(&'s self, scope: &ScopeFifo<'s>, id: CallId, outcome: Outcome) {
        let first = self.evaluator.evaluation.set(id, self.evaluator.blame(outcome));
        debug_assert!(first, "a call ends once");
        for &reader in self.evaluator.evaluation.plan.readers(id) {
            if self.awaited[reader.index()].fetch_sub(1, Ordering::AcqRel) == 1 {
                scope.spawn_fifo(move |scope| self.turn(scope, reader));
            }
        }
    }

    /// Tells that a call is over.
    fn tell(&self, id: CallId) {
        (self.evaluator.observe)(Event::Ended(id));
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.send(Message::Over);
        } else if self.waiting.load(Ordering::Acquire) {
            self.send(Message::Ended);
        }
    }

    /// Tells for whom a call waits.
    fn tell_holder(&self, Held { id, name, holder, .. }: &Held) {
        if let Some(holder) = holder.as_ref().filter(|holder| !holder.own) {
            (self.evaluator.observe)(Event::Held(*id, name.clone(), holder.clone()));
        }
    }

    /// Publishes what was executed, and looks after what others compute, until all is over.
    fn attend(
        &'s self,
        scope: &ScopeFifo<'s>,
        receiver: &Receiver<Message<'a>>,
    ) -> Result<(), StorageError> {
        let mut held: Vec<Held> = Vec::new();
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
                            Message::Held(call) => held.push(call),
                            Message::Ended => {}
                            Message::Over => return result,
                        }
                    }
                }
            }
            if !executed.is_empty() {
                result = result.and(self.publish(scope, executed));
            }
            self.waiting.store(!held.is_empty(), Ordering::Release);
            self.look_again(scope, &mut held);
        }
    }

    /// Flushes what was executed, publishes it, flushes that, and tells it.
    fn publish(
        &'s self,
        scope: &ScopeFifo<'s>,
        executed: Vec<Executed<'a>>,
    ) -> Result<(), StorageError> {
        let storage = &self.evaluator.evaluation.storage;
        let ids: Vec<CallId> = executed.iter().map(|executed| executed.id).collect();
        let flushed = storage.flush().map_err(Arc::new);
        for executed in executed {
            let id = executed.id;
            let outcome = match &flushed {
                Ok(()) => self.evaluator.publish(executed),
                Err(error) => executed.give_up(Arc::clone(error)),
            };
            self.settle(scope, id, outcome);
        }
        let flushed = if flushed.is_ok() { storage.flush() } else { Ok(()) };
        ids.into_iter().for_each(|id| self.tell(id));
        flushed
    }

    /// Gives their turns to calls that no other run computes any more.
    fn look_again(&'s self, scope: &ScopeFifo<'s>, held: &mut Vec<Held>) {
        let Evaluator { evaluation, execution, .. } = self.evaluator;
        let interrupted = execution.is_some_and(|it| it.executor.is_interrupted());
        held.retain_mut(|call| {
            let holder = evaluation.storage.holder(&call.name).filter(|_| !interrupted);
            let settles = call.holder.is_none() && call.since.elapsed() < SETTLING;
            let wait = holder.is_some() || settles && !interrupted;
            if holder.is_some() && holder != call.holder {
                call.holder = holder;
                self.tell_holder(call);
            } else if !wait {
                let id = call.id;
                scope.spawn_fifo(move |scope| self.turn(scope, id));
            }
            wait
        });
    }
}
