//! Acquiring the right to execute a call, or waiting for the run that has it.

use super::step::CallStep;
use super::{CallError, Evaluator, ExecutionSettings, Outcome};
use crate::executor::is_within;
use crate::plan::CallId;
use crate::storage::{Call, Holder, Lease, ResultName};

impl<'a> Evaluator<'a> {
    /// Acquires the lease of a call; that of all versions of its tree, too, if its result will serve them.
    pub(super) fn acquire(
        &self,
        settings: &ExecutionSettings<'_>,
        (id, name): (CallId, &ResultName),
        call: Call<'_>,
    ) -> Result<Lease<'a>, (ResultName, Holder)> {
        let storage = &*self.evaluation.storage;
        let serves_tree = storage.trusts_trees() || self.is_isolated(settings, id);
        // One that is forced is executed even if there is a result.
        if !serves_tree || self.is_forced(name) {
            let lease = storage.leases().acquire(name);
            return lease.map_err(|holder| (name.clone(), holder));
        }
        let lease = storage.leases().acquire_for_tree(name, call)?;
        storage.refresh_versions(call.version);
        Ok(lease)
    }

    /// The next step of a call of which another run, or another call of this one, has this lease.
    pub(super) fn held(&self, name: ResultName, lease: ResultName, holder: Holder) -> CallStep<'a> {
        match () {
            () if is_within(holder.process, &name.short(), lease != name) => {
                CallStep::Ended(Outcome::failed(name, CallError::Within))
            }
            () if self.has_stopped() && !holder.own => CallStep::Ended(self.not_started(name)),
            () => CallStep::Held(lease, holder),
        }
    }
}
