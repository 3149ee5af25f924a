//! The gate: while a collection takes results away, no run begins to use any.
//!
//! A run announces names, and then waits as long as the gate is closed. A collection closes the gate, and then reads what
//! is announced. So one of the two notices the other, before anything is taken away: what a run has found stays where it is.
//! The gate is a lease, so that of a collection that has died is open.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use super::{Holder, Lease, Leases, Storage};
use crate::disk::{Result, patience};
use crate::layout::GATE;

/// The interval at which a closed gate is looked at. A collection only reads names and moves files while it is closed.
const POLL: Duration = Duration::from_millis(5);

/// The part of a run's patience after which the user is told that it waits.
const TELL: u32 = 30;

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
        let began = Instant::now();
        while let Some(holder) = self.leases().gate_holder().filter(|holder| !holder.own)
            && !self.ingest.stop.load(Ordering::Relaxed)
        {
            if began.elapsed() >= patience() / TELL {
                self.run.tell_of_collection(&self.root.disk, &holder);
            }
            thread::sleep(POLL);
        }
    }
}

impl Leases<'_> {
    /// The living run that has closed the gate. On a network file system, what is known of the lease may be old, or missing: so it
    /// is there if it is listed, and its holder is asked for again before it counts as dead.
    pub(super) fn gate_holder(&self) -> Option<Holder> {
        let disk = &self.root.disk;
        if !disk.is_on_network() {
            return self.holder_as_known(GATE);
        }
        let path = self.root.path(GATE);
        let holder = disk.surely(|| match disk.is_listed(&path)? {
            true => Ok(self.holder_as_known(GATE).map(Some)),
            false => Ok(Some(None)),
        });
        holder.ok().flatten().flatten()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use super::*;
    use crate::{Durability, Unrecorded};

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

    #[test]
    fn over_a_network_a_gate_that_is_listed_is_closed_until_its_holder_is_surely_dead() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("tinputs")).unwrap();
        let open = || {
            let open = Storage::open(dir.path(), Unrecorded::Adopt, Durability::Unsynced);
            let mut storage = open.unwrap();
            Arc::get_mut(&mut storage.root.disk).unwrap().put_on_network();
            storage
        };
        let (run, other) = (open(), open());
        assert!(run.leases().gate_holder().is_none(), "there is none");
        let gate = other.close_gate().unwrap();
        let holder = run.leases().gate_holder().unwrap();
        assert!(!holder.own);
        // What was there before is seen for a while.
        let [live, path] = ["live", GATE].map(|name| dir.path().join(name));
        fs::rename(&path, &live).unwrap();
        fs::write(&path, "host-0-1-1-1\n").unwrap();
        thread::scope(|scope| {
            let waiting = scope.spawn(|| run.leases().gate_holder());
            fs::rename(&live, &path).unwrap();
            assert_eq!(waiting.join().unwrap(), Some(holder));
        });
        drop(gate);
        fs::write(&path, "host-0-1-1-1\n").unwrap();
        let began = Instant::now();
        assert!(run.leases().gate_holder().is_none(), "its holder is dead");
        assert!(began.elapsed() > Duration::from_secs(1), "it was asked for again");
    }
}
