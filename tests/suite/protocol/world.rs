//! The storage, the runs, and the steps of looking for a call, executing and publishing it.

use super::lease::{Lease, LeaseStep};
use super::watchers::{Cleaner, Reader};

/// An execution; its files in the storage are marked with it.
pub(super) type Execution = u8;

/// The two outputs in a record.
pub(super) type Outputs = [Execution; 2];

/// The files under the name of the call, and those that wait in the stage of each execution.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Storage {
    pub(super) record: Option<Outputs>,
    pub(super) places: [Option<Execution>; 2],
    pub(super) staged: Vec<[bool; 2]>,
    /// The execution whose lease of the call is there.
    pub(super) lease: Option<Execution>,
}

/// The place of a run: the operation that it does next.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Step {
    ReadRecord,
    Check(Outputs, usize),
    RollForward(Outputs, usize),
    CheckAgain(Outputs, usize),
    LookAt(usize, [Option<Execution>; 2]),
    Adopt(Outputs),
    Execute,
    LinkRecord,
    Reveal(usize),
    Judge(Outputs),
    Replace,
    Lease(LeaseStep),
    Done(Outputs),
    /// It has executed nothing, and goes away.
    GaveUp,
    /// It is dead, and another run removes its leftovers.
    Clear(usize),
    Cleared,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Run {
    pub(super) execution: Execution,
    pub(super) step: Step,
    pub(super) executed: bool,
    pub(super) lease: Lease,
    /// It may look dead, and is not.
    pub(super) silent: bool,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct World {
    pub(super) storage: Storage,
    pub(super) runs: Vec<Run>,
    pub(super) reader: Reader,
    pub(super) cleaner: Cleaner,
    pub(super) may_still: May,
}

/// The events that may still happen to runs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct May {
    /// The number of them that may die.
    pub(super) die: usize,
    /// The number of them that may look dead for a while.
    pub(super) look_dead: usize,
    /// The number of them that may give up.
    pub(super) give_up: usize,
    /// The number of readers, one after the other.
    pub(super) read: usize,
    /// The number of runs whose directory may be removed while they only look dead.
    pub(super) clean: usize,
}

impl Storage {
    /// Moves an output from a stage to its place, if it is waiting there.
    pub(super) fn reveal(&mut self, execution: Execution, number: usize) {
        if std::mem::take(&mut self.staged[usize::from(execution)][number]) {
            self.places[number] = Some(execution);
        }
    }
}

impl Run {
    pub(super) const fn new(execution: Execution, lease: Lease) -> Self {
        Self { execution, step: Step::ReadRecord, executed: false, lease, silent: false }
    }

    /// Whether it has something to do yet.
    pub(super) const fn is_alive(&self) -> bool {
        !matches!(self.step, Step::Done(_) | Step::GaveUp | Step::Clear(_) | Step::Cleared)
    }
}

impl World {
    pub(super) fn new(storage: Storage, runs: usize, lease: Lease, may_still: May) -> Self {
        let runs = (0..runs).map(|at| Run::new(at as Execution, lease)).collect::<Vec<_>>();
        let (reader, cleaner) = (Reader::Away, Cleaner::Away);
        let mut world = Self { storage, runs, reader, cleaner, may_still };
        let staged = world.runs.len().max(world.storage.staged.len());
        world.storage.staged.resize(staged, [false; 2]);
        world
    }

    /// Lets a run do its next operation; tells whether there was one.
    #[expect(clippy::too_many_lines, reason = "one arm for each operation is easiest to compare")]
    pub(super) fn advance(&mut self, at: usize) -> bool {
        if let Step::Lease(step) = self.runs[at].step {
            return self.advance_lease(at, step);
        }
        let Self { storage, runs, .. } = self;
        let Run { execution, step, executed, lease, .. } = &mut runs[at];
        let own = *execution;
        *step = match *step {
            Step::Lease(_) | Step::Done(_) | Step::GaveUp | Step::Cleared => return false,
            Step::ReadRecord => match storage.record {
                Some(record) => Step::Check(record, 0),
                // With the lease, outputs without a record are not looked for once more.
                None if *lease == Lease::Taken && !*executed => Step::Execute,
                None => Step::LookAt(0, [None; 2]),
            },
            Step::Check(record, number) | Step::CheckAgain(record, number)
                if storage.places[number] == Some(record[number]) =>
            {
                if number == 1 {
                    Step::Done(record)
                } else {
                    Step::Check(record, 1)
                }
            }
            Step::Check(record, number) => Step::RollForward(record, number),
            Step::RollForward(record, number) => {
                storage.reveal(record[number], number);
                Step::CheckAgain(record, number)
            }
            Step::CheckAgain(record, _) if *executed => Step::Judge(record),
            Step::CheckAgain(..) => lease.before_execution(),
            Step::LookAt(number, mut seen) => {
                seen[number] = storage.places[number];
                match (number, seen) {
                    (0, _) => Step::LookAt(1, seen),
                    (_, [Some(one), Some(other)]) => Step::Adopt([one, other]),
                    _ if *executed => Step::LinkRecord,
                    _ => lease.before_execution(),
                }
            }
            // Another run may have published since: then it is not for this run to decide on the outputs.
            Step::Adopt(outputs) if storage.record.is_none() => {
                storage.record = Some(outputs);
                Step::Done(outputs)
            }
            Step::Adopt(_) => Step::ReadRecord,
            Step::Execute => {
                *executed = true;
                storage.staged[usize::from(own)] = [true; 2];
                Step::LinkRecord
            }
            // Its directory was removed, and the record with it.
            Step::LinkRecord | Step::Replace if storage.staged[usize::from(own)] == [false; 2] => {
                Step::GaveUp
            }
            Step::LinkRecord if storage.record.is_none() => {
                storage.record = Some([own; 2]);
                Step::Reveal(0)
            }
            Step::LinkRecord => Step::ReadRecord,
            Step::Reveal(number) => {
                storage.reveal(own, number);
                // It is not staged, and no other run has moved it: nobody is told that it is there.
                if storage.places[number] != Some(own) {
                    Step::GaveUp
                } else if number == 1 {
                    Step::Done([own; 2])
                } else {
                    Step::Reveal(1)
                }
            }
            Step::Judge(record) if storage.record != Some(record) => Step::LinkRecord,
            Step::Judge(_) => Step::Replace,
            Step::Replace => {
                storage.record = Some([own; 2]);
                Step::Reveal(0)
            }
            Step::Clear(number) => {
                if number < 2 && storage.record == Some([own; 2]) {
                    storage.reveal(own, number);
                }
                if number == 2 {
                    storage.staged[usize::from(own)] = [false; 2];
                    Step::Cleared
                } else {
                    Step::Clear(number + 1)
                }
            }
        };
        if let Step::Done(_) | Step::GaveUp = step {
            // Outputs that it did not need are thrown away.
            storage.staged[usize::from(own)] = [false; 2];
            *step = lease.after_all(*step);
        }
        true
    }

    /// Lets a run die where it is, if it is not over.
    pub(super) fn kill(&mut self, at: usize) -> bool {
        let run = &mut self.runs[at];
        let alive = run.is_alive();
        if alive {
            run.step = Step::Clear(0);
        }
        alive
    }
}
