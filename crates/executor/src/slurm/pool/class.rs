//! The workers with certain resources: how many are needed, and whether more are submitted.

use std::time::Duration;

use super::{Backoff, WorkerDemand};

/// After so many failures in a row nothing more is submitted.
const FAILURES: u32 = 5;
/// The first time to wait after a submission that failed. It doubles.
const RETRY: Duration = Duration::from_secs(2);
/// So many different failures are told.
const TOLD: usize = 3;

/// What is known of the workers with certain resources.
#[derive(Debug)]
pub(super) struct WorkerClass {
    demand: Option<WorkerDemand>,
    /// Since when there have been no tickets.
    idle_since: Option<Duration>,
    /// The workers that have ended since a ticket was last seen to be executed.
    idle_ends: u32,
    /// The number of tickets that were answered at the last look.
    answered: u64,
    /// The failures since the last hello.
    failures: u32,
    texts: Vec<String>,
    /// Why nothing more is submitted.
    stopped: Option<String>,
    /// Before that nothing is submitted.
    retry_at: Duration,
    retry: Backoff,
}

impl WorkerClass {
    pub(super) const fn new() -> Self {
        Self {
            demand: None,
            idle_since: None,
            idle_ends: 0,
            answered: 0,
            failures: 0,
            texts: Vec::new(),
            stopped: None,
            retry_at: Duration::ZERO,
            retry: Backoff::new(RETRY),
        }
    }

    pub(super) fn set_demand(&mut self, now: Duration, demand: Option<WorkerDemand>) {
        if demand.is_none_or(|it| it.running > 0 || it.answered != self.answered) {
            self.idle_ends = 0;
        }
        self.answered = demand.map_or(0, |it| it.answered);
        self.demand = demand.filter(|demand| demand.queued > 0 || demand.running > 0);
        self.idle_since = match self.demand {
            Some(_) => None,
            None => self.idle_since.or(Some(now)),
        };
    }

    /// Since when there have been no tickets.
    pub(super) const fn idle_since(&self) -> Option<Duration> {
        self.idle_since
    }

    /// How many workers it lacks, and from when on they may be submitted, or `None` if it lacks none.
    pub(super) fn lack(&self, has: u32) -> Option<(Duration, u32)> {
        let demand = self.demand.filter(|_| self.stopped.is_none())?;
        let at_once = u64::from(demand.at_once.get());
        let wanted = demand.queued.saturating_add(demand.running).div_ceil(at_once);
        // Tickets that are being executed need no other worker.
        let lack = wanted.saturating_sub(has.into()).min(demand.queued.div_ceil(at_once));
        let lack = u32::try_from(lack).unwrap_or(u32::MAX);
        (lack > 0).then_some((self.retry_at, lack))
    }

    /// A worker said hello.
    pub(super) fn succeeded(&mut self) {
        self.failures = 0;
        if self.idle_ends >= FAILURES {
            return;
        }
        self.texts.clear();
        self.stopped = None;
    }

    /// A worker that had said hello has ended. Returns what the user should know, once so many have executed nothing.
    pub(super) fn gone(&mut self) -> Option<String> {
        self.demand.filter(|demand| demand.queued > 0)?;
        self.idle_ends += 1;
        if self.idle_ends < FAILURES {
            return None;
        }
        self.remember(format!("{FAILURES} workers in a row ended, and had executed nothing"));
        self.stop()
    }

    /// Slurm accepted a submission.
    pub(super) const fn accepted(&mut self) {
        self.retry.reset();
    }

    /// Slurm has refused a submission for ever. Returns what the user should know.
    pub(super) fn refused(&mut self, text: &str, advice: Option<String>) -> Option<String> {
        let advice = advice.map(|advice| format!("; try: {advice}")).unwrap_or_default();
        self.remember(format!("{text}{advice}"));
        self.stop()
    }

    /// A submission failed, and is tried again later. If the reason is unclear, it counts as a failure.
    pub(super) fn postponed(&mut self, now: Duration, failure: Option<String>) -> Option<String> {
        self.retry_at = now + self.retry.wait();
        failure.and_then(|text| self.failed(text))
    }

    /// Something failed. Returns what the user should know, once that has happened too often.
    pub(super) fn failed(&mut self, text: String) -> Option<String> {
        self.failures += 1;
        self.remember(text);
        if self.failures >= FAILURES { self.stop() } else { None }
    }

    /// Why tickets are queued in vain, if they are.
    pub(super) fn stuck(&self) -> Option<&str> {
        self.demand.filter(|demand| demand.queued > 0)?;
        self.stopped.as_deref()
    }

    fn remember(&mut self, text: String) {
        if !self.texts.contains(&text) {
            self.texts.push(text);
        }
        let first = self.texts.len().saturating_sub(TOLD);
        self.texts.drain(..first);
    }

    fn stop(&mut self) -> Option<String> {
        if self.stopped.is_some() {
            return None;
        }
        let text = format!("no more workers are submitted: {}", self.texts.join("; "));
        self.stopped = Some(text.clone());
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

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
    fn workers_that_execute_nothing_stop_it_in_spite_of_their_hello() {
        let mut class = class(9, 0, 1);
        for answered in 1..20 {
            assert_eq!(come_and_go(&mut class, answered, 0), None, "short calls are executed");
        }
        for _ in 1..20 {
            assert_eq!(come_and_go(&mut class, 20, 1), None, "a long call is executed");
        }
        let told: Vec<_> = (1..9).filter_map(|_| come_and_go(&mut class, 20, 0)).collect();
        let text =
            "no more workers are submitted: 5 workers in a row ended, and had executed nothing";
        assert_eq!(told, [text]);
        assert_eq!((class.lack(0), class.stuck()), (None, Some(text)));
    }

    fn lack(class: &WorkerClass, has: u32) -> Option<u32> {
        class.lack(has).map(|(_, lack)| lack)
    }

    #[test]
    fn a_class_lacks_workers_for_what_is_queued() {
        assert_eq!(lack(&class(10, 0, 1), 0), Some(10));
        assert_eq!(lack(&class(10, 4, 1), 4), Some(10));
        assert_eq!(lack(&class(10, 4, 1), 14), None);
        assert_eq!(lack(&class(10, 0, 4), 1), Some(2));
        assert_eq!(lack(&class(1, 4, 1), 0), Some(1), "others execute the rest");
        assert_eq!(lack(&class(0, 4, 1), 0), None);
        assert_eq!(lack(&class(u64::MAX, 1, 1), 0), Some(u32::MAX));
    }

    #[test]
    fn failures_in_a_row_stop_it_until_a_hello() {
        let mut class = class(9, 0, 1);
        let told: Vec<_> = (1..=6).filter_map(|at| class.failed(format!("failure {at}"))).collect();
        assert_eq!(told, ["no more workers are submitted: failure 3; failure 4; failure 5"]);
        assert_eq!(class.lack(0), None);
        assert_eq!(class.stuck(), Some(&*told[0]));
        class.succeeded();
        assert_eq!((class.lack(0).is_some(), class.stuck()), (true, None));
        assert_eq!(class.failed("one more".to_owned()), None);
        let told = class.refused("no such partition", Some("another".to_owned()));
        let text = "no more workers are submitted: one more; no such partition; try: another";
        assert_eq!(told.as_deref(), Some(text));
    }

    #[test]
    fn a_busy_slurm_is_not_a_failure() {
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
}
