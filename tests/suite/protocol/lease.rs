//! Leases: the steps of taking, respecting and giving back, in the order of `crates/storage/src/protocol/lease.rs`.

use super::world::{Execution, Outputs, Run, Step, World};

/// The state of a run with respect to leases.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Lease {
    /// It executes without.
    Ignored,
    /// It is to have one before it executes.
    Wanted,
    /// It has got one, which may be gone since.
    Taken,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum LeaseStep {
    Link,
    See,
    /// Finds out who holds it now, after it was seen to be this one's.
    Judge(Option<Execution>),
    IsStill(Execution),
    Remove,
    Wait,
    /// It is over, with these outputs or none.
    IsOwn(Option<Outputs>),
    GiveBack(Option<Outputs>),
}

impl Lease {
    /// The step in place of the execution: without the lease, it is taken first.
    pub(super) const fn before_execution(self) -> Step {
        match self {
            Self::Wanted => Step::Lease(LeaseStep::Link),
            Self::Ignored | Self::Taken => Step::Execute,
        }
    }

    /// The step in place of one that is the end: the lease is given back first.
    pub(super) const fn after_all(self, end: Step) -> Step {
        match (self, end) {
            (Self::Taken, Step::Done(outputs)) => Step::Lease(LeaseStep::IsOwn(Some(outputs))),
            (Self::Taken, Step::GaveUp) => Step::Lease(LeaseStep::IsOwn(None)),
            _ => end,
        }
    }
}

impl World {
    /// Lets a run do its next operation on the lease; tells whether there was one.
    pub(super) fn advance_lease(&mut self, at: usize, step: LeaseStep) -> bool {
        let lease = self.storage.lease;
        let is_held = lease.is_some_and(|holder| self.lives(holder));
        let own = self.runs[at].execution;
        let next = match step {
            LeaseStep::Link if lease.is_none() => {
                self.storage.lease = Some(own);
                self.runs[at].lease = Lease::Taken;
                // The run that had it until now may have just published.
                Step::ReadRecord
            }
            LeaseStep::Link => Step::Lease(LeaseStep::See),
            LeaseStep::See => Step::Lease(LeaseStep::Judge(lease)),
            LeaseStep::Judge(_) if is_held => Step::Lease(LeaseStep::Wait),
            LeaseStep::Judge(seen) => after_death(seen),
            LeaseStep::IsStill(seen) if lease == Some(seen) => Step::Lease(LeaseStep::Remove),
            LeaseStep::IsStill(_) => Step::Lease(LeaseStep::Link),
            LeaseStep::Remove => {
                self.storage.lease = None;
                Step::Lease(LeaseStep::Link)
            }
            LeaseStep::Wait if is_held => return false,
            LeaseStep::Wait => Step::ReadRecord,
            LeaseStep::IsOwn(outputs) if lease == Some(own) => {
                Step::Lease(LeaseStep::GiveBack(outputs))
            }
            LeaseStep::IsOwn(outputs) => outputs.map_or(Step::GaveUp, Step::Done),
            LeaseStep::GiveBack(outputs) => {
                self.storage.lease = None;
                outputs.map_or(Step::GaveUp, Step::Done)
            }
        };
        self.runs[at].step = next;
        true
    }

    /// Lets a run take the holder of the lease for dead that only looks so; tells whether it can.
    pub(super) fn misjudge(&mut self, at: usize) -> bool {
        let holds = |run: &Run| self.storage.lease == Some(run.execution);
        if !self.runs.iter().any(|run| run.silent && holds(run)) {
            return false;
        }
        self.runs[at].step = match self.runs[at].step {
            Step::Lease(LeaseStep::Judge(seen)) => after_death(seen),
            Step::Lease(LeaseStep::Wait) => Step::ReadRecord,
            _ => return false,
        };
        true
    }

    /// Lets a run look dead from now on, while it goes on; tells whether it can.
    pub(super) fn look_dead(&mut self, at: usize) -> bool {
        let run = &mut self.runs[at];
        run.is_alive() && !std::mem::replace(&mut run.silent, true)
    }

    /// Lets a run fail to execute, or be interrupted; tells whether it can.
    pub(super) fn give_up(&mut self, at: usize) -> bool {
        let run = &mut self.runs[at];
        let can = run.step == Step::Execute;
        if can {
            run.step = run.lease.after_all(Step::GaveUp);
        }
        can
    }

    /// Whether there is a run that does this execution, and it has not died.
    fn lives(&self, execution: Execution) -> bool {
        let dead = |step: &Step| matches!(step, Step::Clear(_) | Step::Cleared);
        self.runs.iter().any(|run| run.execution == execution && !dead(&run.step))
    }
}

/// Returns the step after the holder of the lease was found to be no more, or not to be there.
fn after_death(seen: Option<Execution>) -> Step {
    Step::Lease(seen.map_or(LeaseStep::Link, LeaseStep::IsStill))
}
