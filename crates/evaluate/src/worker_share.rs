//! The executor of a worker as one of its calls sees it.

use std::num::NonZeroUsize;
use std::thread;
use std::time::{Duration, Instant};

use ce_executor::{
    Completion, Ended, ExecuteError, Executor, HostTurn, Invocation, Offer, SandboxError, Status,
    TurnRequest,
};
use ce_model::resources::Resources;

/// The time after the death of an execution within which the signal of a scheduler reaches this process.
const LATE: Duration = Duration::from_millis(500);
/// The interval at which it is looked for.
const LOOK: Duration = Duration::from_millis(10);

/// An executor that offers one call the processors that were reserved for it, and isolates it only if it is to be isolated.
pub(super) struct Share<'a> {
    executor: &'a dyn Executor,
    slots: NonZeroUsize,
    isolates: bool,
}

impl<'a> Share<'a> {
    /// The share of a call that has what it asks for.
    pub(super) fn new(executor: &'a dyn Executor, resources: &Resources, isolates: bool) -> Self {
        let slots = resources.cpus.map_or(1, |cpus| cpus.get() as usize);
        Self { executor, slots: NonZeroUsize::new(slots).unwrap_or(NonZeroUsize::MIN), isolates }
    }
}

impl Executor for Share<'_> {
    fn submit(&self, invocation: Invocation, completion: Completion) {
        self.executor.submit(invocation, completion);
    }

    fn enter(&self, request: TurnRequest, waits: bool) -> Result<Option<HostTurn>, ExecuteError> {
        self.executor.enter(request, waits)
    }

    fn capacity(&self) -> NonZeroUsize {
        self.slots
    }

    fn offer(&self) -> Offer {
        self.executor.offer()
    }

    fn isolates(&self) -> bool {
        self.isolates && self.executor.isolates()
    }

    fn exposed(&self) -> Option<&SandboxError> {
        self.executor.exposed()
    }

    /// Schedulers send signals to all processes of a job, and to this one last.
    fn is_disturbed(&self, end: &Result<Ended, ExecuteError>) -> bool {
        let is_killed = match end {
            Ok(Ended::Failed(failed)) => matches!(failed.status, Status::Killed(_)),
            Ok(Ended::Lost(_)) => true,
            _ => false,
        };
        let began = Instant::now();
        while is_killed && !self.executor.is_cancelled() && began.elapsed() < LATE {
            thread::sleep(LOOK);
        }
        self.executor.is_cancelled()
    }

    fn is_cancelled(&self) -> bool {
        self.executor.is_cancelled()
    }
}
