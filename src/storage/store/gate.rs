//! The gate: while a collection takes results away, no run begins to use any.
//!
//! A run announces names, and then waits as long as the gate is closed. A collection closes the gate, and then reads what
//! is announced. So one of the two notices the other, before anything is taken away: what a run has found stays where it is.
//! The gate is a lease, so that of a collection that has died is open.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use super::{Lease, Storage};
use crate::storage::disk::Result;
use crate::storage::layout::GATE;

/// The interval at which a closed gate is looked at. A collection only reads names and moves files while it is closed.
const POLL: Duration = Duration::from_millis(5);

impl Storage {
    /// Closes the gate until the lease is released. Waits as long as another collection has closed it.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be closed: then nothing may be taken away.
    pub fn close_gate(&self) -> Result<Lease<'_>> {
        loop {
            match self.leases().acquire_file(GATE)? {
                Ok(lease) => return Ok(lease),
                // One that this run could not give back is its own.
                Err(holder) if holder.own => return Ok(self.leases().lease_at(self.path(GATE))),
                Err(_) => thread::sleep(POLL),
            }
        }
    }

    /// Waits as long as a collection of another process has closed the gate. A run that was asked to stop does not wait.
    pub(super) fn await_gate(&self) {
        let is_closed = || self.leases().holder_of_file(GATE).is_some_and(|holder| !holder.own);
        while is_closed() && !self.ingest.stop.load(Ordering::Relaxed) {
            thread::sleep(POLL);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::storage::{Durability, Unrecorded};

    #[test]
    fn a_gate_that_cannot_be_closed_is_an_error_and_one_that_was_left_is_closed_again() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("tinputs")).unwrap();
        let storage = Storage::open(dir.path(), Unrecorded::Adopt, Durability::Unsynced).unwrap();
        let gate = storage.close_gate().unwrap();
        let again = storage.close_gate().unwrap();
        drop((gate, again));
        assert!(!dir.path().join(GATE).exists());
        fs::create_dir(dir.path().join(GATE)).unwrap();
        assert!(storage.close_gate().is_err());
    }
}
