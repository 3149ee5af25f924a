//! The queue of a run as a model: every interleaving of a run, its two tickets, and workers that claim, execute, answer, die, or
//! look dead and go on.
//!
//! One step is one operation on the file system, in the order in which `crates/evaluate/src/{queue,worker}.rs` and
//! `crates/storage/src/protocol/queue.rs` do them. A longer form lets more of them die:
//! `CE_STATES=all cargo test --test suite protocol::queue`.

use std::collections::HashSet;

const TICKETS: usize = 2;
const WORKERS: usize = 3;

/// The state of a worker with a ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Worker {
    Idle,
    /// It has the ticket; its call is not published yet.
    Executing(usize),
    /// The call is published, and the ticket is not answered.
    Published(usize),
    /// The ticket is answered; the claim may be there.
    Answered(usize),
    Dead,
}

/// The state of the run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Run {
    Reads,
    /// It has listed the claims, and found out which of their workers live: what it takes for claims of the dead, and
    /// which tickets were claimed.
    Listed {
        dead: Vec<(usize, usize)>,
        claimed: [bool; TICKETS],
    },
    /// Then it has read the answers.
    Buries {
        dead: Vec<(usize, usize)>,
        claimed: [bool; TICKETS],
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    /// Whether the file of a ticket is in the queue.
    waiting: [bool; TICKETS],
    /// Whether a worker's claim of a ticket is there.
    claims: [[bool; TICKETS]; WORKERS],
    workers: [Worker; WORKERS],
    /// The answers of each worker that the run has not read.
    unread: [Vec<usize>; WORKERS],
    /// The number of times that the end of a ticket was delivered.
    delivered: [u8; TICKETS],
    /// Whether a ticket was neither waiting nor claimed at the last look.
    missing: [bool; TICKETS],
    executions: [u8; TICKETS],
    run: Run,
    /// The number of workers that may still die, or look dead.
    deaths: u8,
    errors: u8,
}

impl State {
    fn new(deaths: u8, errors: u8) -> Self {
        Self {
            waiting: [true; TICKETS],
            claims: [[false; TICKETS]; WORKERS],
            workers: [Worker::Idle; WORKERS],
            unread: Default::default(),
            delivered: [0; TICKETS],
            missing: [false; TICKETS],
            executions: [0; TICKETS],
            run: Run::Reads,
            deaths,
            errors,
        }
    }

    fn is_over(&self) -> bool {
        self.delivered.iter().all(|count| *count > 0)
    }

    /// All states after one step.
    fn next(&self) -> Vec<Self> {
        let mut next = Vec::new();
        let mut step = |change: &dyn Fn(&mut Self)| {
            let mut state = self.clone();
            change(&mut state);
            if state != *self {
                next.push(state);
            }
        };
        for worker in 0..WORKERS {
            match self.workers[worker] {
                Worker::Idle => {
                    for ticket in (0..TICKETS).filter(|ticket| self.waiting[*ticket]) {
                        step(&|state| {
                            state.waiting[ticket] = false;
                            state.claims[worker][ticket] = true;
                            state.workers[worker] = Worker::Executing(ticket);
                        });
                    }
                }
                Worker::Executing(ticket) => step(&|state| {
                    state.executions[ticket] += 1;
                    state.workers[worker] = Worker::Published(ticket);
                }),
                Worker::Published(ticket) => step(&|state| {
                    state.unread[worker].push(ticket);
                    state.workers[worker] = Worker::Answered(ticket);
                }),
                Worker::Answered(ticket) => step(&|state| {
                    state.claims[worker][ticket] = false;
                    state.workers[worker] = Worker::Idle;
                }),
                Worker::Dead => {}
            }
            // The last worker lives: somebody always starts another one.
            if self.workers[worker] != Worker::Dead && self.deaths > 0 && worker + 1 < WORKERS {
                step(&|state| {
                    state.workers[worker] = Worker::Dead;
                    state.deaths -= 1;
                });
            }
        }
        match &self.run {
            Run::Reads => {
                step(&Self::read);
                step(&|state| state.list(false));
                if self.errors > 0 {
                    step(&|state| {
                        state.errors -= 1;
                        state.list(true);
                    });
                }
            }
            Run::Listed { dead, claimed } => step(&|state| {
                state.read();
                state.run = Run::Buries { dead: dead.clone(), claimed: *claimed };
            }),
            Run::Buries { dead, claimed } => step(&|state| state.bury(dead, *claimed)),
        }
        next
    }

    /// The run reads all answers, and delivers the answers to open tickets.
    fn read(&mut self) {
        for unread in &mut self.unread {
            for ticket in unread.drain(..) {
                if self.delivered[ticket] == 0 {
                    self.delivered[ticket] += 1;
                }
            }
        }
    }

    /// The run lists the claims. With `wrongly`, it takes all workers for dead.
    fn list(&mut self, wrongly: bool) {
        let mut dead = Vec::new();
        let mut claimed = [false; TICKETS];
        for worker in 0..WORKERS {
            for ticket in (0..TICKETS).filter(|ticket| self.claims[worker][*ticket]) {
                claimed[ticket] = true;
                if wrongly || self.workers[worker] == Worker::Dead {
                    dead.push((worker, ticket));
                }
            }
        }
        self.run = Run::Listed { dead, claimed };
    }

    /// The run drops the claims of the dead, and queues their tickets again; then those that are nowhere, twice in a row.
    fn bury(&mut self, dead: &[(usize, usize)], claimed: [bool; TICKETS]) {
        for (worker, ticket) in dead {
            self.claims[*worker][*ticket] = false;
            self.waiting[*ticket] |= self.delivered[*ticket] == 0;
        }
        for (ticket, is_claimed) in claimed.into_iter().enumerate() {
            let is_there = self.delivered[ticket] > 0 || is_claimed || self.waiting[ticket];
            self.waiting[ticket] |= !is_there && self.missing[ticket];
            self.missing[ticket] = !is_there;
        }
        self.run = Run::Reads;
    }
}

/// Visits all states; returns how many there are, and how often a call is executed at most.
fn explore(deaths: u8, errors: u8) -> (usize, u8) {
    let mut seen = HashSet::from([State::new(deaths, errors)]);
    let mut open: Vec<State> = seen.iter().cloned().collect();
    let mut most = 0;
    while let Some(state) = open.pop() {
        assert!(state.delivered.iter().all(|count| *count < 2), "delivered twice: {state:?}");
        for (ticket, count) in state.delivered.iter().enumerate() {
            assert!(*count == 0 || state.executions[ticket] > 0, "not executed: {state:?}");
        }
        most = most.max(state.executions.into_iter().max().unwrap());
        if state.is_over() {
            continue;
        }
        let next = state.next();
        assert!(!next.is_empty(), "nothing goes on: {state:?}");
        // Executions have bounds, or there were no end of states.
        for state in next.into_iter().filter(|it| it.executions.iter().all(|count| *count < 5)) {
            if seen.insert(state.clone()) {
                open.push(state);
            }
        }
    }
    (seen.len(), most)
}

/// Whether the run ends from a state if no worker dies any more, and everybody goes on in turn.
fn ends(mut state: State) -> bool {
    for _ in 0..100 {
        if state.is_over() {
            return true;
        }
        for worker in (0..WORKERS).rev() {
            let before = state.workers[worker];
            let next = state.next().into_iter();
            let mut next =
                next.filter(|it| it.workers[worker] != before && it.deaths == state.deaths);
            if let Some(after) = next.next() {
                state = after;
            }
        }
        for _ in 0..3 {
            match state.run.clone() {
                Run::Reads => state.list(false),
                Run::Listed { dead, claimed } => {
                    state.read();
                    state.run = Run::Buries { dead, claimed };
                }
                Run::Buries { dead, claimed } => state.bury(&dead, claimed),
            }
        }
    }
    false
}

/// Returns the number of workers that die, or look dead, and the number of states that are tried to their ends.
fn form() -> (u8, usize) {
    if std::env::var_os("CE_STATES").is_some() { (2, 100_000) } else { (1, 500) }
}

#[test]
fn each_ticket_is_delivered_once_in_spite_of_deaths() {
    let (states, most) = explore(form().0, 0);
    assert!(states > 1_000, "{states} states were visited");
    assert!((2..=3).contains(&most), "each death costs at most one more execution: {most}");
}

#[test]
fn each_ticket_is_delivered_once_though_living_workers_look_dead() {
    let (states, most) = explore(form().0 - 1, 1);
    assert!(states > 1_000, "{states} states were visited");
    assert!(most >= 2, "a call may be executed by two at once");
}

#[test]
fn a_call_is_executed_once_if_nobody_dies() {
    assert_eq!(explore(0, 0).1, 1);
}

#[test]
fn no_ticket_is_forgotten() {
    let (deaths, most) = form();
    let mut seen = HashSet::from([State::new(deaths, 1)]);
    let mut open: Vec<State> = seen.iter().cloned().collect();
    while let Some(state) = open.pop() {
        assert!(ends(state.clone()), "a ticket is forgotten: {state:?}");
        for state in state.next().into_iter().filter(|it| it.executions.iter().all(|it| *it < 3)) {
            if seen.len() < most && seen.insert(state.clone()) {
                open.push(state);
            }
        }
    }
}
