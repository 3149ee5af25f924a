//! Calls that are looked at again after a while: others execute them, or they are suspended.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::{Duration, Instant};

use super::{Evaluator, Event, SuspendedCall};
use ce_model::plan::CallId;
use ce_storage::{Holder, ResultName};

/// The interval at which unsettled outputs are polled.
const SETTLING: Duration = Duration::from_secs(1);

/// The shortest and the longest pause between two looks at a suspended call.
const PAUSES: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(60)];

/// A call that is to be looked at again.
pub(super) struct HeldCall {
    id: CallId,
    name: ResultName,
    reason: HoldReason,
    /// When it was looked at.
    since: Instant,
}

/// Why a call is looked at again.
pub(super) enum HoldReason {
    /// Another run executes it.
    Executed(Holder),
    /// Its outputs have not settled.
    Unsettled,
    /// It is suspended.
    Suspended(SuspendedCall),
}

impl HoldReason {
    /// Whether this run executes the call.
    const fn is_own(&self) -> bool {
        matches!(self, Self::Executed(Holder { own: true, .. }))
    }
}

impl HeldCall {
    /// A call that was looked at now.
    pub(super) fn new(id: CallId, name: ResultName, reason: HoldReason) -> Self {
        Self { id, name, reason, since: Instant::now() }
    }

    /// Tells for whom it waits.
    pub(super) fn tell(&self, evaluator: &Evaluator<'_>) {
        if let HoldReason::Executed(holder) = &self.reason
            && !holder.own
        {
            (evaluator.observe)(Event::Held(self.id, self.name.clone(), holder.clone()));
        }
    }
}

/// The calls that are looked at again.
#[derive(Default)]
pub(super) struct HeldCalls {
    calls: Vec<HeldCall>,
    /// How long each suspended call is left alone.
    pauses: HashMap<CallId, Duration>,
}

impl HeldCalls {
    pub(super) const fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Adds a call. One that is suspended waits longer each time.
    pub(super) fn add(&mut self, call: HeldCall, evaluator: &Evaluator<'_>) {
        if let HoldReason::Suspended(suspended) = &call.reason {
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

    /// Returns those that are to be looked at now: no other run executes them any more, or their pause is over.
    pub(super) fn recheck(&mut self, evaluator: &Evaluator<'_>) -> Vec<CallId> {
        let Evaluator { evaluation, execution, .. } = evaluator;
        let cancelled = execution.is_some_and(|it| it.executor.is_cancelled());
        let stopped = evaluator.has_stopped();
        let pauses = &self.pauses;
        let mut ready = Vec::new();
        self.calls.retain_mut(|call| {
            let wait = match &mut call.reason {
                _ if cancelled => false,
                // What this run executes goes on, and ends soon.
                reason if stopped && !reason.is_own() => false,
                HoldReason::Unsettled => call.since.elapsed() < SETTLING,
                HoldReason::Suspended(_) => {
                    pauses.get(&call.id).is_some_and(|pause| call.since.elapsed() < *pause)
                }
                HoldReason::Executed(known) => {
                    match evaluation.storage.leases().holder(&call.name) {
                        Some(holder) if holder != *known => {
                            *known = holder;
                            call.tell(evaluator);
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
