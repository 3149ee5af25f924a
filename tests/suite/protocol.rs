//! The protocol of publishing as a model: every interleaving of two or three runs, each of which may
//! die at any step, and none of which respects a lease.
//!
//! One step of the model is one operation on the file system, in the order in which
//! `src/storage/{find,publish,leftover}.rs` do them. A call has two outputs, and an execution is
//! known by a number, so that a mixture of two executions shows.

use std::collections::HashSet;

/// An execution; what it leaves in the storage is marked with it.
type Execution = u8;

/// What a record says of the two outputs.
type Outputs = [Execution; 2];

/// What is under the name of the call, and what waits in the stage of each execution.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Storage {
    record: Option<Outputs>,
    places: [Option<Execution>; 2],
    staged: Vec<[bool; 2]>,
}

/// Where a run is: the operation that it does next.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Step {
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
    Done(Outputs),
    /// It is dead, and somebody clears away what it has left.
    Clear(usize),
    Cleared,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Run {
    execution: Execution,
    step: Step,
    executed: bool,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct World {
    storage: Storage,
    runs: Vec<Run>,
    deaths: usize,
}

impl Storage {
    /// Moves an output from a stage to its place, if it is waiting there.
    fn reveal(&mut self, execution: Execution, number: usize) {
        if std::mem::take(&mut self.staged[usize::from(execution)][number]) {
            self.places[number] = Some(execution);
        }
    }
}

impl World {
    fn new(storage: Storage, runs: usize, deaths: usize) -> Self {
        let run = |at: usize| Run { execution: at as u8, step: Step::ReadRecord, executed: false };
        let mut world = Self { storage, runs: (0..runs).map(run).collect(), deaths };
        world.storage.staged.resize(runs.max(world.storage.staged.len()), [false; 2]);
        world
    }

    /// Lets a run do its next operation; tells whether there was one.
    #[expect(clippy::too_many_lines, reason = "one arm for each operation is easiest to compare")]
    fn advance(&mut self, at: usize) -> bool {
        let Self { storage, runs, .. } = self;
        let Run { execution, step, executed } = &mut runs[at];
        let own = *execution;
        *step = match *step {
            Step::Done(_) | Step::Cleared => return false,
            Step::ReadRecord => match storage.record {
                Some(record) => Step::Check(record, 0),
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
            Step::CheckAgain(..) => Step::Execute,
            Step::LookAt(number, mut seen) => {
                seen[number] = storage.places[number];
                match (number, seen) {
                    (0, _) => Step::LookAt(1, seen),
                    (_, [Some(one), Some(other)]) => Step::Adopt([one, other]),
                    _ if *executed => Step::LinkRecord,
                    _ => Step::Execute,
                }
            }
            // Somebody may have published since: then it is not for this run to say what is there.
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
            Step::LinkRecord if storage.record.is_none() => {
                storage.record = Some([own; 2]);
                Step::Reveal(0)
            }
            Step::LinkRecord => Step::ReadRecord,
            Step::Reveal(number) => {
                storage.reveal(own, number);
                if number == 1 { Step::Done([own; 2]) } else { Step::Reveal(1) }
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
        if let Step::Done(_) = step {
            // What it did not need is thrown away.
            storage.staged[usize::from(own)] = [false; 2];
        }
        true
    }

    /// Lets a run die where it is, if it is not over.
    fn kill(&mut self, at: usize) -> bool {
        let run = &mut self.runs[at];
        let alive = !matches!(run.step, Step::Done(_) | Step::Clear(_) | Step::Cleared);
        if alive {
            run.step = Step::Clear(0);
        }
        alive
    }

    /// What must hold whenever and wherever everything stops: the next run, alone, ends with the
    /// outputs of one execution in their places.
    fn check(&self) {
        for run in &self.runs {
            if let Step::Done([one, other]) = run.step {
                assert_eq!(one, other, "outputs of two executions were used: {self:?}");
            }
        }
        let mut after = self.clone();
        for at in 0..after.runs.len() {
            after.kill(at);
            while after.advance(at) {}
        }
        let execution = after.storage.staged.len() as u8;
        after.storage.staged.push([false; 2]);
        after.runs = vec![Run { execution, step: Step::ReadRecord, executed: false }];
        for _ in 0..100 {
            if !after.advance(0) {
                break;
            }
        }
        let Step::Done([one, other]) = after.runs[0].step else { panic!("it hangs: {self:?}") };
        assert_eq!(one, other, "outputs of two executions after {self:?}");
        assert_eq!(after.storage.places, [Some(one); 2], "other files than told after {self:?}");
    }
}

/// Visits every state that can be reached; returns how many there are.
fn explore(storage: &Storage, runs: usize, deaths: usize) -> usize {
    let first = World::new(storage.clone(), runs, deaths);
    let mut seen = HashSet::from([first.clone()]);
    let mut waiting = vec![first];
    while let Some(world) = waiting.pop() {
        world.check();
        for at in 0..runs {
            let mut next = world.clone();
            if next.advance(at) && seen.insert(next.clone()) {
                waiting.push(next);
            }
            let mut next = world.clone();
            if next.deaths > 0 && next.kill(at) {
                next.deaths -= 1;
                if seen.insert(next.clone()) {
                    waiting.push(next);
                }
            }
        }
    }
    seen.len()
}

/// The storages from which runs begin: nothing, a result of which an output is lost or damaged,
/// and an output without a record.
fn beginnings() -> Vec<Storage> {
    let old = 3;
    let staged = vec![[false; 2]; 4];
    let storage = |record, places| Storage { record, places, staged: staged.clone() };
    vec![
        storage(None, [None, None]),
        storage(Some([old; 2]), [None, Some(old)]),
        storage(Some([old; 2]), [Some(9), Some(old)]),
        storage(None, [None, Some(old)]),
    ]
}

#[test]
fn no_interleaving_of_two_runs_that_may_die_mixes_two_executions() {
    let states: usize = beginnings().iter().map(|storage| explore(storage, 2, 2)).sum();
    println!("{states} states");
    assert!(states > 1_000, "{states} states were visited");
}

#[test]
fn no_interleaving_of_three_runs_mixes_two_executions() {
    let states: usize = beginnings().iter().map(|storage| explore(storage, 3, 1)).sum();
    println!("{states} states");
    assert!(states > 10_000, "{states} states were visited");
}
