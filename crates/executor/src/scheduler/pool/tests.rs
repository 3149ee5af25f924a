//! Tests of the pool: its decisions, and its invariants in a simulated cluster where anything may go wrong.

use super::*;
use crate::executor::Reach;
use crate::scheduler::JobState;

pub(super) const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

const KIND: SchedulerKind =
    SchedulerKind { word: "slurm", name: "Slurm", most_at_once: u32::MAX, reach: Reach::Any };

fn settings(workers: u32, pending: u32) -> WorkerSettings {
    let [workers, pending] = [workers, pending].map(|number| NonZeroU32::new(number).unwrap());
    WorkerSettings { workers, pending, ..WorkerSettings::default() }
}

pub(super) fn token(number: u64) -> JobToken {
    format!("ce-{number:016x}").parse().unwrap()
}

fn task(number: u64, index: u32) -> ArrayTask {
    ArrayTask { token: token(number), index }
}

pub(super) fn cpus(number: u32) -> Resources {
    Resources { cpus: NonZeroU32::new(number), ..Resources::default() }
}

pub(super) fn demand(queued: u64, running: u64) -> WorkerDemand {
    WorkerDemand { queued, running, answered: 0, at_once: NonZeroU32::MIN }
}

fn job(number: u64, index: u32, word: &str, node: &str) -> ScheduledJob {
    let state = match word {
        "PENDING" => JobState::Pending,
        "RUNNING" => JobState::Running,
        _ => JobState::Ended,
    };
    ScheduledJob {
        id: format!("7_{index}"),
        token: token(number),
        index: Some(index),
        state,
        word: word.to_owned(),
        node: Some(node.to_owned()).filter(|node| !node.is_empty()),
        reason: "Resources".to_owned(),
    }
}

fn failed(failure: SubmitFailure) -> SchedulerError {
    SchedulerError { text: "it failed".to_owned(), advice: Some("this".to_owned()), failure }
}

fn busy() -> SchedulerError {
    failed(SubmitFailure::Busy)
}

/// A pool with tickets for workers with one cpu.
pub(super) fn pool(workers: u32, pending: u32, queued: u64) -> WorkerPool {
    let mut pool = WorkerPool::new(KIND, &settings(workers, pending));
    pool.set_demand(s(0), &[(cpus(1), demand(queued, 0))].into());
    pool
}

#[track_caller]
fn submits(pool: &mut WorkerPool, now: Duration, number: u64) -> WorkerRequest {
    match pool.next(now, || token(number)) {
        PoolAction::Submit(request) => request,
        other => panic!("{other:?}"),
    }
}

/// Returns the next action of a pool that must not submit.
fn other(pool: &mut WorkerPool, now: Duration) -> PoolAction {
    pool.next(now, || panic!("it submits"))
}

#[test]
fn more_workers_are_submitted_as_earlier_ones_report() {
    let mut pool = pool(5, 2, 9);
    let request = submits(&mut pool, s(0), 1);
    assert_eq!((request.workers, &request.resources), (2, &cpus(1)));
    assert_eq!(other(&mut pool, s(0)), PoolAction::Wait(None), "one submission at a time");
    pool.submitted(s(1), &token(1), &Ok(()));
    assert_eq!(other(&mut pool, s(1)), PoolAction::Wait(Some(s(3))));
    pool.hello(&task(1, 1));
    pool.hello(&task(1, 1));
    pool.hello(&task(99, 1));
    assert_eq!(pool.workers(), (1, 1));
    assert_eq!(submits(&mut pool, s(2), 2).workers, 1);
    pool.submitted(s(2), &token(2), &Ok(()));
    pool.hello(&task(1, 2));
    pool.hello(&task(2, 1));
    assert_eq!(submits(&mut pool, s(2), 3).workers, 2);
    pool.submitted(s(2), &token(3), &Ok(()));
    (1..=2).for_each(|index| pool.hello(&task(3, index)));
    assert_eq!(
        other(&mut pool, s(9)),
        PoolAction::Wait(None),
        "all are known, and five are enough"
    );
    pool.gone(&task(1, 1));
    pool.hello(&task(1, 1));
    assert_eq!(pool.workers(), (0, 4), "who is gone does not come back");
    assert_eq!(submits(&mut pool, s(9), 4).workers, 1);
}

#[test]
fn a_scheduler_without_arrays_gets_one_worker_at_a_time() {
    let kind = SchedulerKind { name: "the scheduler", most_at_once: 1, ..KIND };
    let mut pool = WorkerPool::new(kind, &settings(9, 2));
    pool.set_demand(s(0), &[(cpus(1), demand(9, 0))].into());
    for number in 1..=2 {
        assert_eq!(submits(&mut pool, s(0), number).workers, 1);
        pool.submitted(s(0), &token(number), &Ok(()));
    }
    assert_eq!(other(&mut pool, s(0)), PoolAction::Wait(Some(s(2))));
    for now in [s(2), s(70)] {
        assert!(matches!(other(&mut pool, now), PoolAction::Ask(_)));
        let silent =
            |number| ScheduledJob { reason: String::new(), ..job(number, 1, "PENDING", "") };
        pool.answered(now, &Ok(vec![silent(1), silent(2)]));
    }
    other(&mut pool, s(70));
    assert_eq!(pool.take_notices(), ["the scheduler lets workers wait"], "it says no reason");
}

#[test]
fn classes_of_resources_share_the_workers() {
    let mut pool = WorkerPool::new(KIND, &settings(10, 4));
    let classes = [(cpus(1), demand(100, 0)), (cpus(8), demand(1, 0)), (cpus(9), demand(0, 3))];
    pool.set_demand(s(0), &classes.into());
    let one = submits(&mut pool, s(0), 1);
    pool.submitted(s(0), &one.token, &Ok(()));
    let two = submits(&mut pool, s(0), 2);
    assert_eq!((one.workers, one.resources), (2, cpus(1)));
    assert_eq!((two.workers, two.resources), (1, cpus(8)));
}

#[test]
fn a_failed_submission_is_searched_before_the_next_one() {
    for is_there in [true, false] {
        let mut pool = pool(3, 3, 9);
        submits(&mut pool, s(0), 1);
        pool.submitted(s(60), &token(1), &Err(busy()));
        assert_eq!(pool.take_notices(), ["workers are submitted again later: it failed"]);
        assert_eq!(other(&mut pool, s(60)), PoolAction::Wait(Some(s(62))));
        for now in [62, 64] {
            assert_eq!(other(&mut pool, s(now)), PoolAction::Ask(vec![token(1)]));
            let jobs = (1..=3).map(|index| job(1, index, "RUNNING", "n1"));
            pool.answered(s(now), &Ok(jobs.filter(|_| is_there).collect()));
        }
        if is_there {
            assert_eq!(pool.workers(), (3, 0));
            (1..=3).for_each(|index| pool.hello(&task(1, index)));
            assert_eq!(other(&mut pool, s(64)), PoolAction::Wait(None));
        } else {
            let cancel = PoolAction::Cancel(token(1), CancelScope::Pending);
            assert_eq!(other(&mut pool, s(64)), cancel, "it must not come later");
            pool.cancelled(s(64), &token(1), &Ok(()));
            assert_eq!(submits(&mut pool, s(64), 2).token, token(2));
        }
    }
}

#[test]
fn a_refusal_stops_a_class_and_says_why() {
    let mut pool = pool(3, 3, 9);
    pool.set_demand(s(0), &[(cpus(1), demand(9, 0)), (cpus(2), demand(9, 0))].into());
    submits(&mut pool, s(0), 1);
    pool.submitted(s(0), &token(1), &Err(failed(SubmitFailure::Final)));
    let text = "no more workers are submitted: it failed; try: this";
    assert_eq!(pool.take_notices(), [text]);
    assert_eq!(pool.stuck().collect::<Vec<_>>(), [(&cpus(1), text)]);
    assert_eq!(submits(&mut pool, s(0), 2).resources, cpus(2), "others may be accepted");
    pool.submitted(s(0), &token(2), &Err(failed(SubmitFailure::Final)));
    assert_eq!(other(&mut pool, s(0)), PoolAction::Wait(None));
    assert_eq!(pool.stuck().count(), 2);
}

#[test]
fn a_node_where_workers_end_without_a_hello_is_excluded() {
    let mut pool = pool(4, 4, 9);
    submits(&mut pool, s(0), 1);
    pool.submitted(s(0), &token(1), &Ok(()));
    assert!(matches!(other(&mut pool, s(2)), PoolAction::Ask(_)));
    let ends = ["FAILED", "FAILED", "COMPLETED", "PREEMPTED"];
    let jobs = ends.iter().zip(1..).map(|(word, index)| job(1, index, word, "n3"));
    pool.answered(s(3), &Ok(jobs.collect()));
    pool.hello(&task(1, 3));
    assert_eq!(other(&mut pool, s(3)), PoolAction::Wait(Some(s(13))), "a hello may be late");
    let request = submits(&mut pool, s(13), 2);
    assert_eq!((request.exclude, request.workers), (vec!["n3".to_owned()], 3));
    let notices = pool.take_notices();
    assert_eq!(notices[0], "worker 7_1 on n3 ended at its start: FAILED (Resources)");
    assert_eq!(notices[2..], ["n3 gets no more workers: 2 ended there at their start"]);
}

#[test]
fn failed_starts_in_a_row_stop_submissions() {
    let mut pool = pool(9, 1, 9);
    let mut now = s(0);
    for number in 1..=5 {
        submits(&mut pool, now, number);
        pool.submitted(now, &token(number), &Ok(()));
        let PoolAction::Wait(Some(time)) = other(&mut pool, now) else { panic!("it waits") };
        assert_eq!(other(&mut pool, time), PoolAction::Ask(vec![token(number)]));
        pool.answered(time, &Ok(vec![job(number, 1, "FAILED", &format!("n{number}"))]));
        now = time + s(10);
    }
    assert_eq!(other(&mut pool, now), PoolAction::Wait(None));
    let (_, reason) = pool.stuck().next().unwrap();
    assert!(reason.contains("worker 7_1 on n5 ended at its start: FAILED"), "{reason}");
}

#[test]
fn a_job_that_the_scheduler_forgot_is_given_up_late() {
    let mut pool = pool(2, 2, 2);
    submits(&mut pool, s(0), 1);
    pool.submitted(s(0), &token(1), &Ok(()));
    let mut now = s(0);
    while now < s(100) {
        match other(&mut pool, now) {
            PoolAction::Wait(Some(time)) => now = time,
            PoolAction::Ask(_) => pool.answered(now, &Ok(vec![job(1, 1, "PENDING", "")])),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(pool.workers(), (2, 0), "one of them is unknown");
    assert_eq!(pool.take_notices(), ["Slurm lets workers wait: Resources"]);
    now += s(60);
    assert!(matches!(other(&mut pool, now), PoolAction::Cancel(_, CancelScope::Pending)));
    assert_eq!(pool.workers(), (1, 0));
    assert!(pool.take_notices()[0].contains("was lost"));
}

#[test]
fn a_failed_query_proves_nothing_about_jobs() {
    let mut pool = pool(2, 2, 2);
    submits(&mut pool, s(0), 1);
    pool.submitted(s(0), &token(1), &Ok(()));
    let mut now = s(0);
    for _ in 0..200 {
        match other(&mut pool, now) {
            PoolAction::Wait(Some(time)) => now = time,
            PoolAction::Ask(_) => {
                pool.answered(now, &Err(busy()));
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(now > s(3600));
    assert_eq!((pool.workers(), pool.take_notices().len()), ((2, 0), 1));
}

#[test]
fn pending_workers_without_demand_are_cancelled_after_a_minute() {
    let mut pool = pool(3, 3, 3);
    submits(&mut pool, s(0), 1);
    pool.submitted(s(0), &token(1), &Ok(()));
    pool.hello(&task(1, 1));
    pool.set_demand(s(1), &BTreeMap::new());
    assert!(matches!(other(&mut pool, s(2)), PoolAction::Ask(_)));
    pool.answered(s(2), &Ok(vec![job(1, 2, "PENDING", ""), job(1, 3, "PENDING", "")]));
    pool.set_demand(s(30), &BTreeMap::new());
    let cancel = PoolAction::Cancel(token(1), CancelScope::Pending);
    assert_eq!(other(&mut pool, s(61)), cancel);
    pool.cancelled(s(61), &token(1), &Err(busy()));
    assert!(matches!(other(&mut pool, s(62)), PoolAction::Ask(_)));
    pool.answered(s(62), &Ok(vec![]));
    assert_eq!(other(&mut pool, s(63)), cancel, "it is tried again");
    pool.cancelled(s(63), &token(1), &Ok(()));
    pool.set_demand(s(63), &[(cpus(1), demand(3, 0))].into());
    assert_eq!(pool.workers(), (2, 1));
    assert_eq!(other(&mut pool, s(63)), PoolAction::Wait(Some(s(66))), "they still count");
    assert!(matches!(other(&mut pool, s(66)), PoolAction::Ask(_)));
    let end = ScheduledJob { index: None, ..job(1, 1, "CANCELLED", "") };
    pool.answered(s(66), &Ok(vec![end]));
    assert_eq!(submits(&mut pool, s(76), 2).workers, 2);
    let notices = pool.take_notices();
    assert_eq!(notices, ["Slurm lets workers wait: Resources"], "it is not a failure");
}

#[test]
fn a_closed_pool_cancels_and_submits_nothing() {
    let mut pool = pool(9, 2, 9);
    submits(&mut pool, s(0), 1);
    pool.submitted(s(0), &token(1), &Ok(()));
    pool.hello(&task(1, 1));
    pool.hello(&task(1, 2));
    submits(&mut pool, s(0), 2);
    pool.close(CancelScope::Pending);
    assert_eq!(other(&mut pool, s(1)), PoolAction::Wait(None), "the submission is waited for");
    assert!(!pool.is_closed());
    pool.submitted(s(1), &token(2), &Err(busy()));
    assert_eq!(other(&mut pool, s(1)), PoolAction::Cancel(token(2), CancelScope::Pending));
    pool.cancelled(s(1), &token(2), &Ok(()));
    assert_eq!(other(&mut pool, s(1)), PoolAction::Wait(None));
    assert!(pool.is_closed(), "those that are alive end by themselves");
    pool.close(CancelScope::All);
    assert!(!pool.is_closed());
    assert_eq!(other(&mut pool, s(2)), PoolAction::Cancel(token(1), CancelScope::All));
    pool.cancelled(s(2), &token(1), &Ok(()));
    assert_eq!(other(&mut pool, s(2)), PoolAction::Cancel(token(2), CancelScope::All));
    for _ in 0..3 {
        pool.cancelled(s(2), &token(2), &Err(busy()));
        other(&mut pool, s(60));
    }
    assert!(pool.is_closed(), "at last it is given up");
    let left = "jobs may be left (it failed); try: this";
    assert_eq!(pool.take_notices().last().unwrap(), left);
}

#[test]
fn a_limit_of_jobs_per_user_lets_fewer_workers_be_submitted() {
    let mut pool = pool(100, 4, 12);
    let (mut now, mut number) = (s(0), 0);
    let mut tried = Vec::new();
    let (mut here, mut left) = (Vec::new(), 12);
    while left > 0 {
        match pool.next(now, || token(number + 1)) {
            PoolAction::Submit(request) => {
                number += 1;
                tried.push(request.workers);
                let fits = here.len() + request.workers as usize <= 3;
                let result = if fits { Ok(()) } else { Err(failed(SubmitFailure::Limit)) };
                pool.submitted(now, &token(number), &result);
                here.extend((1..=request.workers).filter(|_| fits).map(|at| task(number, at)));
            }
            PoolAction::Ask(_) => {
                let jobs = here.iter().map(|task| ScheduledJob {
                    token: task.token.clone(),
                    ..job(1, task.index, "RUNNING", "n1")
                });
                pool.answered(now, &Ok(jobs.collect()));
            }
            // The oldest worker executes a call and ends.
            PoolAction::Wait(_) if !here.is_empty() => {
                let worker = here.remove(0);
                pool.hello(&worker);
                left -= 1;
                now += s(1);
                let all = WorkerDemand { answered: 12 - left, ..demand(left, 0) };
                pool.set_demand(now, &[(cpus(1), all)].into());
                pool.gone(&worker);
            }
            PoolAction::Wait(time) => now = time.unwrap(),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(tried[..2], [4, 2], "{tried:?}");
    assert!(now < s(120), "{now:?}");
    let told = "workers are submitted again later: it failed";
    assert_eq!(pool.take_notices().iter().filter(|it| *it == told).count(), 1);
    assert_eq!(pool.stuck().count(), 0);
}

#[test]
fn a_run_ends_after_ten_minutes_if_its_user_may_submit_no_job() {
    let mut pool = pool(9, 4, 9);
    let (mut now, mut number) = (s(0), 0);
    let mut tried = Vec::new();
    while pool.stuck().count() == 0 {
        match pool.next(now, || token(number + 1)) {
            PoolAction::Submit(request) => {
                number += 1;
                tried.push(request.workers);
                pool.submitted(now, &token(number), &Err(failed(SubmitFailure::Limit)));
            }
            PoolAction::Wait(time) => now = time.unwrap(),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(tried[..3], [4, 2, 1]);
    assert!(tried[2..].iter().all(|workers| *workers == 1));
    assert!(now >= s(600) && now < s(720), "{now:?}");
    let (_, why) = pool.stuck().next().unwrap();
    let told = "no more workers are submitted: Slurm has refused even one for 10 minutes: it failed; try: this";
    assert_eq!(why, told);
    assert_eq!(pool.take_notices().last().unwrap(), told);
    assert_eq!(other(&mut pool, now), PoolAction::Wait(None));
}

#[test]
fn a_refused_submission_does_not_end_a_run_that_has_workers() {
    let mut pool = pool(9, 1, 9);
    submits(&mut pool, s(0), 1);
    pool.submitted(s(0), &token(1), &Ok(()));
    pool.hello(&task(1, 1));
    let mut now = s(0);
    for number in 2..40 {
        while let PoolAction::Wait(time) = pool.next(now, || token(number)) {
            now = time.unwrap();
        }
        pool.submitted(now, &token(number), &Err(failed(SubmitFailure::Limit)));
    }
    assert!(now > s(1200) && pool.stuck().count() == 0);
    // From now on no worker is alive.
    pool.gone(&task(1, 1));
    let alone = now;
    for number in 40..80 {
        while let PoolAction::Wait(Some(time)) = pool.next(now, || token(number)) {
            now = time;
        }
        pool.submitted(now, &token(number), &Err(failed(SubmitFailure::Limit)));
        if pool.stuck().count() > 0 {
            break;
        }
    }
    assert!(now >= alone + s(600) && now <= alone + s(900), "{:?}", now - alone);
}

/// A scheduler and a storage in which anything may go wrong, and all jobs end at last.
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
    /// The percentage of starts that fail.
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

    /// Carries out the pool's action, with or without success, and checks that the action is allowed.
    fn act(&mut self) {
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
                let result = if is_accepted && self.chance(90) { Ok(()) } else { Err(busy()) };
                self.pool.submitted(self.now, &request.token, &result);
            }
            PoolAction::Ask(tokens) => {
                let last = self.last_ask.replace(self.now);
                assert!(last.is_none_or(|last| last + s(2) <= self.now), "it asks too often");
                let known = self.jobs.iter().filter(|(task, _)| tokens.contains(&task.token));
                let jobs = known.map(|(task, (state, _))| {
                    let word = match state {
                        JobState::Pending => "PENDING",
                        JobState::Running => "RUNNING",
                        _ => "FAILED",
                    };
                    let node = format!("n{}", task.index % 3);
                    ScheduledJob { token: task.token.clone(), ..job(1, task.index, word, &node) }
                });
                let jobs = jobs.collect();
                let answer = if self.chance(80) { Ok(jobs) } else { Err(busy()) };
                self.pool.answered(self.now, &answer);
            }
            PoolAction::Cancel(token, scope) => {
                let result = if self.chance(80) { Ok(()) } else { Err(busy()) };
                if result.is_ok() {
                    for (task, job) in &mut self.jobs {
                        let is_meant = scope == CancelScope::All || job.0 == JobState::Pending;
                        if task.token == token && is_meant {
                            *job = (JobState::Ended, self.now);
                        }
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
fn a_random_scheduler_keeps_the_limits_and_completes_all_calls() {
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
fn submissions_end_if_no_worker_ever_starts() {
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

#[test]
fn queries_become_rarer_while_nothing_changes() {
    let mut polling = Polling::new(s(2));
    let (mut now, mut waits) = (s(0), Vec::new());
    for _ in 0..8 {
        polling.ask();
        assert_eq!(polling.next(), None);
        polling.answered(now, false);
        let next = polling.next().unwrap();
        waits.push((next - now).as_secs());
        now = next;
    }
    assert_eq!(waits, [2, 4, 8, 16, 32, 60, 60, 60]);
    polling.answered(now, true);
    assert_eq!(polling.next(), Some(now + s(2)));
    let mut rare = Polling::new(s(120));
    rare.answered(s(0), false);
    rare.answered(s(120), false);
    assert_eq!(rare.next(), Some(s(240)), "the user's interval counts");
}

#[test]
fn a_submission_brings_the_next_query_forward_but_keeps_a_minimum_pause() {
    let mut polling = Polling::new(s(2));
    polling.hurry(s(7));
    assert_eq!(polling.next(), Some(s(9)));
    for _ in 0..5 {
        polling.answered(s(10), false);
    }
    assert!(polling.next() > Some(s(30)));
    polling.hurry(s(11));
    assert_eq!(polling.next(), Some(s(13)));
    polling.hurry(s(12));
    assert_eq!(polling.next(), Some(s(13)), "submissions do not put it off");
}

#[test]
fn failures_are_reported_once() {
    let mut polling = Polling::new(s(2));
    let told: Vec<bool> = (0..5).map(|at| polling.failed(s(at * 60))).collect();
    assert_eq!(told, [false, false, true, false, false]);
    polling.answered(s(600), true);
    assert!(!polling.failed(s(602)), "the next failure is the first one");
}

fn class(queued: u64, running: u64, at_once: u32) -> WorkerClass {
    let mut class = WorkerClass::new();
    set_demand(&mut class, queued, running, 0, at_once);
    class
}

fn set_demand(class: &mut WorkerClass, queued: u64, running: u64, answered: u64, at_once: u32) {
    let at_once = NonZeroU32::new(at_once).unwrap();
    let demand = WorkerDemand { queued, running, answered, at_once };
    class.set_demand(Duration::ZERO, Some(demand));
}

fn come_and_go(class: &mut WorkerClass, answered: u64, running: u64) -> Option<String> {
    class.succeeded();
    set_demand(class, 9, running, answered, 1);
    class.gone()
}

#[test]
fn workers_that_execute_nothing_stop_a_class() {
    let mut class = class(9, 0, 1);
    for answered in 1..20 {
        assert_eq!(come_and_go(&mut class, answered, 0), None, "short calls are executed");
    }
    for _ in 1..20 {
        assert_eq!(come_and_go(&mut class, 20, 1), None, "a long call is executed");
    }
    let told: Vec<_> = (1..9).filter_map(|_| come_and_go(&mut class, 20, 0)).collect();
    let text = "no more workers are submitted: 5 workers in a row ended, and had executed nothing";
    assert_eq!(told, [text]);
    assert_eq!((class.lack(0), class.stuck()), (None, Some(text)));
}

fn lack(class: &WorkerClass, has: u32) -> Option<u32> {
    class.lack(has).map(|(_, lack)| lack)
}

#[test]
fn a_class_lacks_workers_for_its_queued_calls() {
    assert_eq!(lack(&class(10, 0, 1), 0), Some(10));
    assert_eq!(lack(&class(10, 4, 1), 4), Some(10));
    assert_eq!(lack(&class(10, 4, 1), 14), None);
    assert_eq!(lack(&class(10, 0, 4), 1), Some(2));
    assert_eq!(lack(&class(1, 4, 1), 0), Some(1), "others execute the rest");
    assert_eq!(lack(&class(0, 4, 1), 0), None);
    assert_eq!(lack(&class(u64::MAX, 1, 1), 0), Some(u32::MAX));
}

#[test]
fn failures_in_a_row_stop_a_class_until_a_worker_reports() {
    let mut class = class(9, 0, 1);
    let told: Vec<_> = (1..=6).filter_map(|at| class.failed(format!("failure {at}"))).collect();
    assert_eq!(told, ["no more workers are submitted: failure 3; failure 4; failure 5"]);
    assert_eq!(class.lack(0), None);
    assert_eq!(class.stuck(), Some(&*told[0]));
    class.succeeded();
    assert_eq!((class.lack(0).is_some(), class.stuck()), (true, None));
    assert_eq!(class.failed("one more".to_owned()), None);
    let told = class.refused("no such partition".to_owned());
    let text = "no more workers are submitted: one more; no such partition";
    assert_eq!(told.as_deref(), Some(text));
}

#[test]
fn a_busy_scheduler_is_not_a_failure() {
    let mut class = class(9, 0, 1);
    let s = Duration::from_secs;
    let mut now = s(0);
    for wait in [2, 4, 8, 16, 32, 60, 60] {
        assert_eq!(class.postponed(now, None), None);
        assert_eq!(class.lack(0), Some((now + s(wait), 9)));
        now += s(wait);
    }
    class.accepted();
    class.postponed(now, None);
    assert_eq!(class.lack(0), Some((now + s(2), 9)));
}
