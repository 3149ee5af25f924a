//! What calls wait for: how many of their inputs are not known yet, and which calls wait for each.
//!
//! Calls may be added while others end. A call that has ended has no more readers: an edge to it is refused.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use ce_model::plan::{CallId, Plan};

/// The end of a list of readers.
const NONE: u32 = u32::MAX;

/// The head of the list of readers of a call that has ended.
const ENDED: u32 = u32::MAX - 1;

/// The calls of a plan that wait for others.
#[derive(Debug, Default)]
pub(super) struct PendingCalls {
    calls: boxcar::Vec<PendingCall>,
    /// A list of readers for each call.
    edges: boxcar::Vec<Edge>,
}

#[derive(Debug)]
struct PendingCall {
    /// How many of its inputs are not known yet.
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
    /// Takes in what was added to a plan. Returns the new calls that wait for nothing. One thread at a time does so.
    pub(super) fn grow(&self, plan: &Plan) -> Vec<CallId> {
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

    /// Lets a call wait for its inputs. Returns whether there is nothing to wait for.
    pub(super) fn wait(&self, plan: &Plan, call: CallId) -> bool {
        let awaited = plan.inputs(call).iter().filter_map(|source| plan.awaited(*source));
        self.wait_in(awaited, call, |awaited| &awaited.readers)
    }

    /// Lets a call wait for the outputs of others, which are away. Returns whether all of these have ended again.
    pub(super) fn wait_for_outputs(&self, call: CallId, awaited: &[CallId]) -> bool {
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
    pub(super) fn demand(&self, call: CallId) -> bool {
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

    /// Ends a call. Returns those that waited for nothing else, in the order in which they began to wait.
    pub(super) fn end(&self, call: CallId) -> Vec<CallId> {
        let mut ready = self.end_away(call);
        ready.extend(self.close(&self.calls[call.index()].demanders));
        ready
    }

    /// Ends a call whose outputs are away. Returns those that waited for nothing else: they may need no more than to know
    /// what the outputs are.
    pub(super) fn end_away(&self, call: CallId) -> Vec<CallId> {
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
    pub(super) fn note_unsettled(&self, call: CallId) -> bool {
        !self.calls[call.index()].unsettled.swap(true, Ordering::Relaxed)
    }
}
