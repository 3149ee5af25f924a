//! Tests of the pool: what it never does in a world where anything may go wrong.

use super::tests::{cpus, demand, pool, s, token};
use super::*;
use crate::slurm::squeue::JobState;

/// A Slurm and a storage in which anything may go wrong, and all jobs end at last.
struct World {
    pool: WorkerPool,
    limits: [usize; 2],
    now: Duration,
    random: u64,
    jobs: BTreeMap<ArrayTask, (JobState, Duration)>,
    alive: BTreeSet<ArrayTask>,
    submitted: u64,
    last_ask: Option<Duration>,
    tickets: u64,
    /// Of a hundred starts so many fail.
    failing: u64,
}

impl World {
    fn new(random: u64, failing: u64) -> Self {
        let mut world = Self {
            pool: pool(1, 1, 0),
            limits: [0; 2],
            now: s(0),
            random,
            jobs: BTreeMap::new(),
            alive: BTreeSet::new(),
            submitted: 0,
            last_ask: None,
            tickets: 0,
            failing,
        };
        world.limits = [world.below(9) as usize + 1, world.below(5) as usize + 1];
        world.pool = pool(world.limits[0] as u32, world.limits[1] as u32, 0);
        world.tickets = world.below(60) + 1;
        world
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.random >> 33) % limit
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// Does what the pool wants, with or without success, and checks that it may want it.
    fn act(&mut self) {
        let busy = SlurmError::TimedOut { program: "sbatch", limit: s(60) };
        let next = token(self.submitted + 1);
        match self.pool.next(self.now, || next) {
            PoolAction::Submit(request) => {
                self.submitted += 1;
                assert_eq!(request.token, token(self.submitted), "a token is used once");
                let is_accepted = self.chance(90);
                for index in (1..=request.workers).filter(|_| is_accepted) {
                    let task = ArrayTask { token: request.token.clone(), index };
                    self.jobs.insert(task, (JobState::Pending, self.now));
                }
                let result = if is_accepted && self.chance(90) { Ok(1) } else { Err(busy) };
                self.pool.submitted(self.now, &request.token, &result);
            }
            PoolAction::Ask(tokens) => {
                let last = self.last_ask.replace(self.now);
                assert!(last.is_none_or(|last| last + s(2) <= self.now), "it asks too often");
                let words = |state| match state {
                    JobState::Pending => "PENDING",
                    JobState::Running => "RUNNING",
                    _ => "FAILED",
                };
                let known = self.jobs.iter().filter(|(task, _)| tokens.contains(&task.token));
                let lines = known.map(|(task, (state, _))| {
                    let node = format!("n{}", task.index % 3);
                    format!("1_{}|{}|{}|{node}|None\n", task.index, task.token, words(*state))
                });
                let jobs = SlurmJob::read_all(&lines.collect::<String>()).unwrap();
                let answer = if self.chance(80) { Ok(jobs) } else { Err(busy) };
                self.pool.answered(self.now, &answer);
            }
            PoolAction::Cancel(token, scope) => {
                let result = if self.chance(80) { Ok(()) } else { Err(busy) };
                if result.is_ok() {
                    let is_meant = |state| scope == CancelScope::All || state == JobState::Pending;
                    let jobs = self.jobs.iter_mut().filter(|(task, _)| task.token == token);
                    for (_, job) in jobs.filter(|(_, (state, _))| is_meant(*state)) {
                        *job = (JobState::Ended, self.now);
                    }
                }
                self.pool.cancelled(self.now, &token, &result);
            }
            PoolAction::Wait(time) => {
                let soon = self.now + s(self.below(5) + 1);
                self.now = time.unwrap_or(soon).min(soon).max(self.now + Duration::from_millis(1));
            }
        }
    }

    /// Lets jobs start, fail, work, vanish and end.
    fn live(&mut self) {
        for task in self.jobs.keys().cloned().collect::<Vec<_>>() {
            let (state, since) = self.jobs[&task];
            let age = self.now - since;
            match state {
                JobState::Pending if self.chance(1) => drop(self.jobs.remove(&task)),
                JobState::Pending if self.chance(30) => {
                    let is_bad = self.chance(self.failing);
                    let state = if is_bad { JobState::Ended } else { JobState::Running };
                    self.jobs.insert(task, (state, self.now));
                }
                JobState::Running if !self.alive.contains(&task) => {
                    self.alive.insert(task.clone());
                    self.pool.hello(&task);
                }
                JobState::Running if age > s(300) || self.chance(5) => {
                    self.jobs.insert(task.clone(), (JobState::Ended, self.now));
                    self.alive.remove(&task);
                    self.pool.gone(&task);
                }
                JobState::Running => self.tickets = self.tickets.saturating_sub(1),
                JobState::Ended if age > s(300) => drop(self.jobs.remove(&task)),
                _ => {}
            }
        }
    }

    fn check(&mut self) {
        let count = |states: &[JobState]| {
            self.jobs.values().filter(|(state, _)| states.contains(state)).count()
        };
        let all = count(&[JobState::Pending, JobState::Running]);
        assert!(all <= self.limits[0], "{all} workers of {}", self.limits[0]);
        let pending = count(&[JobState::Pending]);
        assert!(pending <= self.limits[1], "{pending} waiting of {}", self.limits[1]);
        let running = self.tickets.min(self.alive.len() as u64);
        let all = [(cpus(1), demand(self.tickets - running, running))];
        self.pool.set_demand(self.now, &all.into());
    }
}

#[test]
fn in_any_world_the_limits_hold_and_all_is_done() {
    for seed in 0..300 {
        let mut world = World::new(seed * 7919 + 1, 10);
        let mut steps = 0;
        while world.tickets > 0 {
            world.check();
            world.act();
            world.live();
            steps += 1;
            let is_stuck = world.pool.stuck().count() > 0;
            assert!(steps < 20_000 || is_stuck, "seed {seed} does not end: {:?}", world.pool);
            if is_stuck {
                break;
            }
        }
        world.pool.close(CancelScope::All);
        let submitted = world.submitted;
        for _ in 0..1000 {
            world.act();
        }
        assert_eq!(world.submitted, submitted, "seed {seed}");
        assert!(world.pool.is_closed(), "seed {seed}");
    }
}

#[test]
fn in_a_world_where_nothing_starts_submissions_end() {
    for seed in 0..100 {
        let mut world = World::new(seed * 104_729 + 1, 100);
        world.tickets = 1000;
        for _ in 0..3000 {
            world.check();
            world.act();
            world.live();
        }
        assert!(world.pool.stuck().count() > 0, "seed {seed}: {:?}", world.pool);
        let submitted = world.submitted;
        for _ in 0..1000 {
            world.act();
            world.live();
        }
        assert_eq!(world.submitted, submitted, "seed {seed}");
        assert!(submitted <= 40, "seed {seed}: {submitted} submissions");
    }
}
