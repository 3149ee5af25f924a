//! A pool of workers on a real Slurm, driven as a run does it, by a clock that is faster than the real one.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use compeval::executor::scheduler::{
    ArrayTask, CancelScope, JobState, JobToken, PoolAction, SchedulerError, WorkerDemand,
    WorkerPool, WorkerSettings,
};
use compeval::executor::slurm::{Slurm, SlurmScheduler, SlurmSettings};
use tempfile::TempDir;

use super::cluster::Cluster;
use super::{request, submit};
use crate::program::PATIENCE;

/// The factor by which the pool's clock is faster.
const HASTE: u32 = 10;

/// The time for which a pool waits at once.
const TICK: Duration = Duration::from_millis(20);

/// A pool with tickets in a directory, where workers leave files as their hello.
struct Run<'a> {
    slurm: &'a Slurm,
    dir: &'a Path,
    settings: &'a SlurmSettings,
    script: &'a str,
    pool: WorkerPool,
    begin: Instant,
    /// The time of the pool. It stands still while the cluster answers, which takes longer on a busy machine.
    now: Duration,
    tokens: Vec<JobToken>,
}

impl<'a> Run<'a> {
    fn new(slurm: &'a Slurm, dir: &'a Path, settings: &'a SlurmSettings, script: &'a str) -> Self {
        let pool = WorkerPool::new(SlurmScheduler::KIND, &settings.common);
        let begin = Instant::now();
        Self { slurm, dir, settings, script, pool, begin, now: Duration::ZERO, tokens: Vec::new() }
    }

    /// Performs the actions of the pool until a condition holds.
    #[track_caller]
    fn until(&mut self, holds: impl Fn(&WorkerPool) -> bool) {
        loop {
            for token in &self.tokens {
                let said_hello = |index| self.dir.join(format!("{token}_{index}")).exists();
                for index in (1..=9).filter(|index| said_hello(*index)) {
                    self.pool.hello(&ArrayTask { token: token.clone(), index });
                }
            }
            if holds(&self.pool) {
                return;
            }
            assert!(self.begin.elapsed() < PATIENCE, "{:?}", self.pool);
            match self.pool.next(self.now, || JobToken::random().unwrap()) {
                PoolAction::Submit(request) => {
                    self.tokens.push(request.token.clone());
                    let result = submit(self.slurm, self.dir, &request, self.settings, self.script);
                    let result = result.map(drop).map_err(SchedulerError::from);
                    self.pool.submitted(self.now, &request.token, &result);
                }
                PoolAction::Ask(tokens) => {
                    let answer = self.slurm.jobs(&tokens).map_err(SchedulerError::from);
                    self.pool.answered(self.now, &answer);
                }
                PoolAction::Cancel(token, scope) => {
                    let result = self.slurm.cancel(&token, scope).map_err(SchedulerError::from);
                    self.pool.cancelled(self.now, &token, &result);
                }
                PoolAction::Wait(_) => {
                    thread::sleep(TICK);
                    self.now += TICK * HASTE;
                }
            }
        }
    }

    fn queue(&mut self, queued: u64) {
        let demand = WorkerDemand { queued, running: 0, answered: 0, at_once: NonZeroU32::MIN };
        let demand = BTreeMap::from([(request(1).resources, demand)]);
        self.pool.set_demand(self.now, &demand);
    }
}

fn settings(workers: u32, pending: u32) -> SlurmSettings {
    let [workers, pending] = [workers, pending].map(|number| NonZeroU32::new(number).unwrap());
    let common = WorkerSettings { workers, pending, ..WorkerSettings::default() };
    SlurmSettings { common, ..SlurmSettings::default() }
}

#[test]
fn workers_start_up_to_the_limit_and_end() {
    let Some(cluster) = Cluster::shared() else { return };
    let (slurm, dir, settings) = (cluster.slurm(), TempDir::new().unwrap(), settings(5, 2));
    let script = "touch ${SLURM_JOB_NAME}_$SLURM_ARRAY_TASK_ID; exec sleep 600";
    let mut run = Run::new(&slurm, dir.path(), &settings, script);
    run.queue(9);
    run.until(|pool| pool.workers() == (0, 5));
    assert_eq!(slurm.jobs(&run.tokens).unwrap().len(), 5);
    run.pool.close(CancelScope::All);
    run.until(WorkerPool::is_closed);
    let ended = super::cluster::wait_for("end", || {
        let jobs = slurm.jobs(&run.tokens).unwrap();
        jobs.iter().all(|job| job.state == JobState::Ended).then_some(jobs)
    });
    assert_eq!(ended.len(), 5);
    assert_eq!(run.pool.take_notices(), [""; 0]);
}

#[test]
fn workers_that_cannot_start_are_not_submitted_for_ever() {
    let Some(cluster) = Cluster::shared() else { return };
    let (slurm, dir, settings) = (cluster.slurm(), TempDir::new().unwrap(), settings(9, 2));
    let mut run = Run::new(&slurm, dir.path(), &settings, "exit 9");
    run.queue(9);
    run.until(|pool| pool.stuck().count() == 1);
    let (_, reason) = run.pool.stuck().next().unwrap();
    assert!(reason.contains("ended at its start: FAILED (NonZeroExitCode)"), "{reason}");
    // Five failures suffice. On a busy machine Slurm shows some that have ended as running, and
    // others are submitted meanwhile: up to the nine workers of the settings.
    assert!(run.tokens.len() < 5 + 9, "{:?}", run.tokens);
    assert!(run.pool.bad_nodes().count() > 0);
}
