//! The executor of a worker as one of its calls sees it.

use std::num::NonZeroUsize;

use crate::executor::{Completion, Executor, Invocation, Offer, SandboxError};
use crate::task::resources::Resources;

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

    fn is_cancelled(&self) -> bool {
        self.executor.is_cancelled()
    }
}
