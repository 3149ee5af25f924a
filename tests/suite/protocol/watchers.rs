//! Those who look at a storage beside the runs: a reader, and somebody who takes a living run for dead and tidies up.

use super::world::{Execution, Outputs, World};

/// A reader, which moves nothing: `ce show`, `ce verify`, an export. It looks for an output in its place, in the stage that the record
/// names, and in its place again.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Reader {
    Away,
    ReadRecord,
    /// It looks for this output, for the second or third time.
    Look(Outputs, usize, usize),
    /// It has found all outputs.
    Found(Outputs),
    /// It has not found an output.
    Missing(Execution),
}

/// Somebody who finishes what a run has published that looks dead, and removes its directory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Cleaner {
    Away,
    ReadRecord(Execution),
    Finish(Execution, usize),
    Remove(Execution),
}

impl World {
    /// Lets a reader come, or look once more; tells whether it could.
    pub(super) fn read(&mut self) -> bool {
        let storage = &self.storage;
        self.reader = match self.reader {
            Reader::Away | Reader::Found(_) | Reader::Missing(_) => {
                let Some(left) = self.may_still.read.checked_sub(1) else { return false };
                self.may_still.read = left;
                Reader::ReadRecord
            }
            Reader::ReadRecord => match storage.record {
                Some(record) => Reader::Look(record, 0, 0),
                None => Reader::Away,
            },
            Reader::Look(record, number, times) => {
                let made = record[number];
                let is_there = match times {
                    1 => storage.staged[usize::from(made)][number],
                    _ => storage.places[number] == Some(made),
                };
                match (is_there, number, times) {
                    (true, 0, _) => Reader::Look(record, 1, 0),
                    (true, _, _) => Reader::Found(record),
                    (false, _, 0 | 1) => Reader::Look(record, number, times + 1),
                    (false, _, _) => Reader::Missing(made),
                }
            }
        };
        true
    }

    /// Lets somebody tidy up after a run that only looks dead, or go on with that; tells whether there was anything to do.
    pub(super) fn clean(&mut self) -> bool {
        self.cleaner = match self.cleaner {
            Cleaner::Away => {
                let looks_dead = self.runs.iter().find(|run| run.silent && run.is_alive());
                let Some(run) = looks_dead else { return false };
                let Some(left) = self.may_still.clean.checked_sub(1) else { return false };
                self.may_still.clean = left;
                Cleaner::ReadRecord(run.execution)
            }
            Cleaner::ReadRecord(execution) if self.storage.record == Some([execution; 2]) => {
                Cleaner::Finish(execution, 0)
            }
            Cleaner::ReadRecord(execution) => Cleaner::Remove(execution),
            Cleaner::Finish(execution, number) => {
                self.storage.reveal(execution, number);
                match number {
                    0 => Cleaner::Finish(execution, 1),
                    _ => Cleaner::Remove(execution),
                }
            }
            Cleaner::Remove(execution) => {
                self.storage.staged[usize::from(execution)] = [false; 2];
                Cleaner::Away
            }
        };
        true
    }
}
