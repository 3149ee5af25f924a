//! The steps of a call: their results, and the data that they pass on.

use std::sync::Arc;

use super::capacity::Reservation;
use super::launcher::Launch;
use super::{Outcome, SuspendedCall};
use ce_executor::{HostTurn, Invocation, TurnRequest};
use ce_model::digest::Digest;
use ce_model::plan::{CallId, PlanGrowth};
use ce_model::resources::Resources;
use ce_model::task::Computation;
use ce_storage::records::Ticket;
use ce_storage::{
    Call, Holder, Lease, Precedence, PriorAttempt, ResultName, Sealed, StorageError, Stored,
    Suspension,
};

/// The state of a call after a step.
pub(super) enum CallStep<'a> {
    /// It is over.
    Ended(Outcome),
    /// It is to be executed, and waits for more than a slot.
    Reserve(Reservation),
    /// It is to be executed, and waits for a turn among the runs of the host; whether its reservation is granted.
    Enter(TurnRequest, bool),
    /// It is to be executed by a worker elsewhere.
    Queue(Box<QueuedCall>),
    /// It is to be executed.
    Submit(Box<Running<'a>>, Box<Invocation>),
    /// It was executed; its outputs are to be flushed and published.
    Sealed(SealedCall<'a>),
    /// It gathers a sweep of which more points are known by now, and waits for the outputs of the body at each.
    Expand(PlanGrowth),
    /// It is suspended, and is to be looked at again in a while.
    Suspended(ResultName, SuspendedCall),
    /// It needs the outputs of these calls, which are away. It must be looked up again.
    Demand(Vec<CallId>),
    /// It is to be looked for again from the beginning.
    Again,
    /// Another run computes it, and has the lease of this name; it is to be looked for again when that is over.
    Held(ResultName, Holder),
    /// It has outputs without a record, which may still be written to. It must be looked up again.
    Unsettled(ResultName),
}

/// A call whose outputs must be flushed and published.
pub(super) struct SealedCall<'a> {
    pub(super) id: CallId,
    pub(super) computation: &'a Computation,
    pub(super) name: ResultName,
    pub(super) inputs: Vec<Digest>,
    pub(super) sealed: Sealed<'a>,
    /// Nothing was executed: the outputs are another commit's.
    pub(super) taken_over: bool,
    /// Something is remembered of the call, which is to be forgotten.
    pub(super) remembered: bool,
    /// Whether recorded or new outputs are kept if there are outputs already.
    pub(super) precedence: Precedence,
    /// The place that it had while it was suspended.
    pub(super) place: SuspendedPlace<'a>,
    /// Given back when the outputs are visible.
    pub(super) _lease: Lease<'a>,
}

/// A call that is to be executed.
pub(super) struct BegunCall<'a> {
    pub(super) id: CallId,
    pub(super) computation: &'a Computation,
    pub(super) name: ResultName,
    pub(super) inputs: Vec<Digest>,
    /// The files that it reads.
    pub(super) sources: Vec<Stored>,
    /// Something is remembered of it.
    pub(super) remembered: bool,
    /// The resources that it requests.
    pub(super) resources: Resources,
    /// The number of retries if it fails.
    pub(super) retries: u32,
    /// The number of retries if it is lost.
    pub(super) replacements: u32,
    /// The number of retries if another run replaces its export.
    pub(super) exports: usize,
    /// Its place, if it is known that it may be suspended.
    pub(super) place: SuspendedPlace<'a>,
    pub(super) lease: Lease<'a>,
    /// Kept until it is over: who executes it again does not wait.
    pub(super) turn: HostTurn,
}

/// A call of which a program is being executed.
pub(super) enum Running<'a> {
    /// Its `exec`.
    Executed(BegunCall<'a>, Launch<'a>),
    /// The program that says how it stands, since it is suspended.
    Asked(AskedCall<'a>),
}

/// A suspended call that is asked how it stands.
pub(super) struct AskedCall<'a> {
    pub(super) absent: AbsentCall<'a>,
    pub(super) place: SuspendedPlace<'a>,
    pub(super) turn: HostTurn,
    pub(super) launch: Launch<'a>,
}

/// A call that a worker elsewhere executes.
pub(super) struct QueuedCall {
    pub(super) id: CallId,
    pub(super) name: ResultName,
    pub(super) ticket: Ticket,
    /// The number of retries if it fails.
    pub(super) retries: u32,
    /// The earlier attempt that is recorded of it, until it was reported that a worker executes the call.
    pub(super) unreported: Option<Option<Box<PriorAttempt>>>,
}

impl SealedCall<'_> {
    /// Throws the outputs away, which could not be flushed.
    pub(super) fn give_up(self, error: Arc<StorageError>) -> Outcome {
        Outcome::failed(self.name, error)
    }
}

impl BegunCall<'_> {
    /// The call that is executed: that of the commit that began it.
    pub(super) fn call(&self) -> Call<'_> {
        call_as_begun(call_of(self.computation, &self.inputs), self.place.suspension.as_deref())
    }

    /// The name under which it is published.
    pub(super) fn published_name(&self) -> &ResultName {
        self.place.suspension.as_ref().map_or(&self.name, |suspension| &suspension.name)
    }
}

/// A call under the commit that began it.
pub(super) fn call_as_begun<'b>(call: Call<'b>, suspension: Option<&'b Suspension>) -> Call<'b> {
    let version = suspension.map_or(call.version, |it| it.record.version());
    Call { version, ..call }
}

/// Returns the key by which the storage knows a call.
pub(super) fn call_of<'a>(computation: &'a Computation, inputs: &'a [Digest]) -> Call<'a> {
    Call { version: computation.into(), inputs, outputs: &computation.outputs }
}

/// A call that is to be executed, and what is remembered of it.
pub(super) struct AbsentCall<'a> {
    pub(super) id: CallId,
    pub(super) computation: &'a Computation,
    pub(super) name: ResultName,
    pub(super) inputs: Vec<Digest>,
    pub(super) prior: Option<Box<PriorAttempt>>,
    pub(super) lease: Lease<'a>,
}

/// The place of a call that is suspended, or may be.
#[derive(Default)]
pub(super) struct SuspendedPlace<'a> {
    pub(super) suspension: Option<Box<Suspension>>,
    /// The lease of the name under which it was begun, if that is another.
    pub(super) _lease: Option<Lease<'a>>,
}

/// Resources that a call in progress was granted.
#[derive(Debug, Default)]
pub(super) struct Grants {
    /// Whether all that it asks for is reserved.
    pub(super) is_reserved: bool,
    /// Its turn.
    pub(super) turn: Option<HostTurn>,
}
