//! Decides what to ask a scheduler for: how many workers, when to look after them, and which to cancel.
//!
//! Pure: observations and their times are arguments. All times are counted from one moment, which does not matter. A
//! worker counts from its submission on, until it is known to be over. A state that the scheduler does not report is
//! unknown, and only leads to another question: a worker that has said hello is alive until the caller says that it is
//! gone.

mod array;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::time::Duration;

use self::array::{JobArray, WorkerState};
use super::{
    ArrayTask, CancelScope, JobAnswer, JobToken, ScheduledJob, SchedulerError, SchedulerKind,
    SubmitFailure, WorkerRequest, WorkerSettings,
};
use ce_model::resources::Resources;

/// After this number of failed starts a node gets no more workers.
const BAD_NODE: u32 = 2;
/// Workers that are not needed any more are cancelled after this time: a queue is slow to get into.
const IDLE: Duration = Duration::from_secs(60);
/// The time after which the reason why workers wait is reported to the user.
const TOLD: Duration = Duration::from_secs(60);

/// Submission stops if even single workers are refused for this time while no worker exists.
const REFUSED: Duration = Duration::from_secs(600);

/// The tickets for workers with certain resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerDemand {
    /// The number of tickets that wait for a worker.
    pub queued: u64,
    /// The number of tickets that are being executed by workers.
    pub running: u64,
    /// The number of tickets that were answered so far.
    pub answered: u64,
    /// The number of tickets that a worker executes at once.
    pub at_once: NonZeroU32,
}

/// The next action of the caller. Its result is to be reported to the pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PoolAction {
    /// Write down the token, submit these workers, and report by [`WorkerPool::submitted`].
    Submit(WorkerRequest),
    /// Ask where the jobs with these names are, and report by [`WorkerPool::answered`].
    Ask(Vec<JobToken>),
    /// Cancel the jobs with this name, and report by [`WorkerPool::cancelled`].
    Cancel(JobToken, CancelScope),
    /// The pool does nothing before this time, unless something is reported. `None`: only after a report.
    Wait(Option<Duration>),
}

/// The workers of a run.
#[derive(Debug)]
pub struct WorkerPool {
    kind: SchedulerKind,
    most_workers: u32,
    most_pending: u32,
    classes: BTreeMap<Resources, WorkerClass>,
    arrays: BTreeMap<JobToken, JobArray>,
    polling: Polling,
    asked: BTreeSet<JobToken>,
    failed_starts: BTreeMap<String, u32>,
    closing: Option<CancelScope>,
    notices: Vec<String>,
    told: BTreeSet<String>,
}

impl WorkerPool {
    /// Makes a pool without workers.
    pub fn new(kind: SchedulerKind, settings: &WorkerSettings) -> Self {
        Self {
            kind,
            most_workers: settings.workers.get(),
            most_pending: settings.pending.get(),
            classes: BTreeMap::new(),
            arrays: BTreeMap::new(),
            polling: Polling::new(settings.interval),
            asked: BTreeSet::new(),
            failed_starts: BTreeMap::new(),
            closing: None,
            notices: Vec::new(),
            told: BTreeSet::new(),
        }
    }

    /// Sets the numbers of all tickets, by the resources that their workers need.
    pub fn set_demand(&mut self, now: Duration, demand: &BTreeMap<Resources, WorkerDemand>) {
        for resources in
            demand.keys().filter(|it| !self.classes.contains_key(*it)).cloned().collect::<Vec<_>>()
        {
            self.classes.insert(resources, WorkerClass::new());
        }
        for (resources, class) in &mut self.classes {
            class.set_demand(now, demand.get(resources).copied());
        }
    }

    /// A worker said hello. A second hello changes nothing, and neither does a hello by a foreign worker.
    pub fn hello(&mut self, task: &ArrayTask) {
        let Some(array) = self.arrays.get_mut(&task.token) else { return };
        if array.hello(task.index)
            && let Some(class) = self.classes.get_mut(&array.request.resources)
        {
            class.succeeded();
        }
    }

    /// A worker has said good-bye, or its heartbeat has stopped.
    pub fn gone(&mut self, task: &ArrayTask) {
        let Some(array) = self.arrays.get_mut(&task.token) else { return };
        array.gone(task.index);
        if let Some(class) = self.classes.get_mut(&array.request.resources) {
            self.notices.extend(class.gone());
        }
    }

    /// Processes the result of a submission. A failed submission may have been accepted, so the scheduler is asked before
    /// anything else.
    pub fn submitted(
        &mut self,
        now: Duration,
        token: &JobToken,
        result: &Result<(), SchedulerError>,
    ) {
        let name = self.kind.name;
        let is_alone = self.arrays.iter().all(|(other, array)| {
            other == token || array.count(|state| *state != WorkerState::Over) == 0
        });
        let Some(array) = self.arrays.get_mut(token) else { return };
        let Some(class) = self.classes.get_mut(&array.request.resources) else { return };
        array.is_submitting = false;
        self.polling.hurry(now);
        let Err(error) = result else { return class.accepted() };
        let stop = match error.failure {
            SubmitFailure::Final => {
                array.refuse();
                class.refused(format!("{error}{}", advice(error)))
            }
            SubmitFailure::Limit => {
                array.refuse();
                let since = class.limited(now, array.request.workers, is_alone);
                let stop = since.filter(|since| now >= *since + REFUSED).and_then(|since| {
                    let minutes = (now - since).as_secs() / 60;
                    let text =
                        format!("{name} has refused even one for {minutes} minutes: {error}");
                    class.refused(text + &advice(error))
                });
                self.tell_once(format!("workers are submitted again later: {}", error.text));
                stop
            }
            failure => {
                array.is_doubtful = !array.workers.iter().any(|it| it.state == WorkerState::Alive);
                let is_failure = failure == SubmitFailure::Unclear;
                let stop =
                    class.postponed(now, is_failure.then(|| format!("{error}{}", advice(error))));
                self.tell_once(format!("workers are submitted again later: {}", error.text));
                stop
            }
        };
        self.notices.extend(stop);
    }

    /// Processes the scheduler's answer. A missing answer changes nothing.
    pub fn answered(&mut self, now: Duration, answer: &Result<Vec<ScheduledJob>, SchedulerError>) {
        let asked = std::mem::take(&mut self.asked);
        let jobs = match answer {
            Ok(jobs) => jobs,
            Err(error) => {
                if self.polling.failed(now) {
                    let name = self.kind.name;
                    self.notices
                        .push(format!("{name} does not answer, and is asked again: {error}"));
                }
                return;
            }
        };
        let answer = JobAnswer::new(jobs);
        let mut is_new = false;
        for token in &asked {
            let Some(array) = self.arrays.get_mut(token) else { continue };
            is_new |= array.answered(now, |index| answer.find_job(token, index));
        }
        self.polling.answered(now, is_new);
    }

    /// Processes the result of cancelling jobs.
    pub fn cancelled(
        &mut self,
        now: Duration,
        token: &JobToken,
        result: &Result<(), SchedulerError>,
    ) {
        let Some(array) = self.arrays.get_mut(token) else { return };
        if array.cancelled(now, result.is_ok())
            && let Err(error) = result
        {
            self.notices.push(format!("jobs may be left ({error}){}", advice(error)));
        }
    }

    /// Submits nothing any more, and cancels workers that have not started, or all.
    pub fn close(&mut self, scope: CancelScope) {
        self.closing = self.closing.max(Some(scope));
    }

    /// Whether it was closed, and all its actions are done.
    pub fn is_closed(&self) -> bool {
        self.closing.is_some()
            && self.arrays.values().all(|it| it.is_settled() && !it.needs(self.closing))
    }

    /// The jobs that may stay behind, at least in part, if nothing more is done now.
    pub fn unsettled(&self) -> Vec<&JobToken> {
        let scope = Some(CancelScope::Pending);
        let open = self.arrays.iter().filter(|(_, it)| !it.is_settled() || it.needs(scope));
        open.map(|(token, _)| token).collect()
    }

    /// Decides what to do at a time. A token is taken for a submission only, and never again.
    pub fn next(&mut self, now: Duration, token: impl FnOnce() -> JobToken) -> PoolAction {
        self.settle(now);
        let mut times = Vec::new();
        for (token, array) in &mut self.arrays {
            match array.cancel_due() {
                Some((time, scope)) if time <= now => {
                    array.begin_cancel(scope);
                    return PoolAction::Cancel(token.clone(), scope);
                }
                Some((time, _)) => times.push(time),
                None => {}
            }
            times.extend(array.patience());
        }
        match self.request(now) {
            Some((time, _, _)) if time > now => times.push(time),
            Some((_, resources, workers)) => {
                let exclude = self.bad_nodes().map(str::to_owned).collect();
                let token = token();
                let request = WorkerRequest { token: token.clone(), resources, workers, exclude };
                self.arrays.insert(token, JobArray::new(request.clone()));
                return PoolAction::Submit(request);
            }
            None => {}
        }
        let unknown = self.arrays.iter().filter(|(_, array)| array.is_unknown());
        let unknown: BTreeSet<_> = unknown.map(|(token, _)| token.clone()).collect();
        match self.polling.next() {
            _ if unknown.is_empty() || self.closing.is_some() => {}
            Some(time) if time > now => times.push(time),
            Some(_) => {
                self.polling.ask();
                self.asked.clone_from(&unknown);
                return PoolAction::Ask(unknown.into_iter().collect());
            }
            None => {}
        }
        times.extend(self.classes.values().filter_map(WorkerClass::idle_since).map(|it| it + IDLE));
        PoolAction::Wait(times.into_iter().filter(|time| *time > now).min())
    }

    /// The nodes that get no more workers.
    pub fn bad_nodes(&self) -> impl Iterator<Item = &str> {
        let bad = self.failed_starts.iter().filter(|(_, failures)| **failures >= BAD_NODE);
        bad.map(|(node, _)| node.as_str())
    }

    /// The number of workers that were submitted and have not said hello, and of workers that are alive.
    pub fn workers(&self) -> (u32, u32) {
        let arrays = self.arrays.values();
        let waiting = arrays.clone().map(|array| array.count(WorkerState::is_waiting)).sum();
        let alive = arrays.map(|array| array.count(|state| *state == WorkerState::Alive)).sum();
        (waiting, alive)
    }

    /// The resources of tickets that are queued in vain, and why: they have no worker, and no more are submitted.
    pub fn stuck(&self) -> impl Iterator<Item = (&Resources, &str)> {
        let stopped = self.classes.iter().filter_map(|(it, class)| Some((it, class.stuck()?)));
        stopped.filter(|(resources, _)| {
            let mut arrays = self.arrays.values().filter(|it| it.request.resources == **resources);
            arrays.all(|array| array.count(|state| *state != WorkerState::Over) == 0)
        })
    }

    /// Returns the new messages for the user, each once.
    pub fn take_notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }

    fn tell_once(&mut self, notice: String) {
        if self.told.insert(notice.clone()) {
            self.notices.push(notice);
        }
    }

    /// Returns the workers to submit, and when. Chooses the class with the fewest workers among those that lack some. One
    /// submission at a time.
    fn request(&self, now: Duration) -> Option<(Duration, Resources, u32)> {
        let (waiting, alive) = self.workers();
        let pending = self.most_pending.checked_sub(waiting)?;
        let room = self.most_workers.checked_sub(waiting + alive)?.min(pending);
        let most = self.kind.most_at_once;
        let is_submitting = self.arrays.values().any(|array| array.is_submitting);
        if room == 0 || is_submitting || self.closing.is_some() {
            return None;
        }
        let lacking = self.classes.iter().filter_map(|(resources, class)| {
            let arrays = self.arrays.values().filter(|it| it.request.resources == *resources);
            let has = arrays.map(JobArray::usable_workers).sum();
            let (time, lack) = class.lack(has)?;
            Some((time.max(now), has, resources, lack))
        });
        let lacking: Vec<_> = lacking.collect();
        let ready = lacking.iter().filter(|it| it.0 == now).count() as u32;
        let share = room.div_ceil(ready.max(1));
        let (time, _, resources, lack) = lacking.into_iter().min()?;
        Some((time, resources.clone(), lack.min(share).min(most)))
    }

    /// Draws all conclusions from the known facts.
    fn settle(&mut self, now: Duration) {
        let mut failed = Vec::new();
        for array in self.arrays.values_mut() {
            let resources = &array.request.resources;
            let class = self.classes.get(resources);
            let is_idle =
                class.and_then(WorkerClass::idle_since).is_some_and(|it| it + IDLE <= now);
            if let Some(scope) = self.closing {
                array.cancel(scope, now);
            } else if is_idle || array.is_refuted() {
                array.cancel(CancelScope::Pending, now);
            }
            if array.is_refuted() {
                array.refuse();
            }
            failed.extend(
                array
                    .give_up(now, self.kind.name)
                    .into_iter()
                    .map(|it| (array.request.clone(), it)),
            );
        }
        for (request, start) in failed {
            let failures = start.node.as_ref().map(|node| {
                let failures = self.failed_starts.entry(node.clone()).or_default();
                *failures += 1;
                *failures
            });
            self.notices.push(start.text.clone());
            if let (Some(BAD_NODE), Some(node)) = (failures, &start.node) {
                self.notices.push(format!(
                    "{node} gets no more workers: {BAD_NODE} ended there at their start"
                ));
            }
            // A bad node does not stop everything by itself, before it has been excluded.
            let is_excluded = start.node.as_ref().is_some_and(|it| request.exclude.contains(it));
            if (is_excluded || failures.is_none_or(|failures| failures <= BAD_NODE))
                && let Some(class) = self.classes.get_mut(&request.resources)
            {
                self.notices.extend(class.failed(start.text));
            }
        }
        self.arrays.retain(|_, array| !array.is_over());
        self.tell_what_waits(now);
    }

    /// Reports why workers have been waiting for long.
    fn tell_what_waits(&mut self, now: Duration) {
        let name = self.kind.name;
        let mut reasons = BTreeSet::new();
        for worker in self.arrays.values().flat_map(|array| &array.workers) {
            match &worker.state {
                WorkerState::Pending { since, reason } if *since + TOLD <= now => {
                    let reason = Some(reason).filter(|reason| !reason.is_empty());
                    let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
                    reasons.insert(format!("{name} lets workers wait{reason}"));
                }
                WorkerState::Running { since, job } if *since + 5 * TOLD <= now => {
                    let node = job.node.as_deref().unwrap_or("several nodes");
                    let id = &job.id;
                    reasons
                        .insert(format!("worker {id} runs on {node} and has not said hello yet"));
                }
                _ => {}
            }
        }
        reasons.into_iter().for_each(|reason| self.tell_once(reason));
    }
}

/// Returns the advice of an error, to be written behind it.
fn advice(error: &SchedulerError) -> String {
    error.advice.as_ref().map(|advice| format!("; try: {advice}")).unwrap_or_default()
}

/// The longest time between two questions, unless the user's interval is longer.
const LONGEST: Duration = Duration::from_secs(60);
/// The number of failures in a row after which they are reported.
const TOLD_FAILURES: u32 = 3;

/// A time to wait that doubles.
#[derive(Clone, Copy, Debug)]
struct Backoff {
    shortest: Duration,
    now: Duration,
}

impl Backoff {
    const fn new(shortest: Duration) -> Self {
        Self { shortest, now: shortest }
    }

    /// Begins again with the shortest time.
    const fn reset(&mut self) {
        self.now = self.shortest;
    }

    /// The time to wait now. The next one is twice as long.
    fn wait(&mut self) -> Duration {
        let wait = self.now;
        self.now = (wait * 2).min(LONGEST).max(self.shortest);
        wait
    }
}

/// The questions to the scheduler, one after the other.
#[derive(Debug)]
struct Polling {
    backoff: Backoff,
    /// When to ask next.
    next: Duration,
    is_asked: bool,
    failures: u32,
}

impl Polling {
    const fn new(interval: Duration) -> Self {
        let backoff = Backoff::new(interval);
        Self { backoff, next: Duration::ZERO, is_asked: false, failures: 0 }
    }

    /// When to ask next, or `None` while an answer is awaited.
    fn next(&self) -> Option<Duration> {
        (!self.is_asked).then_some(self.next)
    }

    const fn ask(&mut self) {
        self.is_asked = true;
    }

    /// There is something new to ask about, from now on.
    fn hurry(&mut self, now: Duration) {
        self.backoff.reset();
        let sooner = now + self.backoff.shortest;
        self.next = if self.next > now { self.next.min(sooner) } else { sooner };
    }

    /// An answer came, which may have told something new.
    fn answered(&mut self, now: Duration, is_new: bool) {
        if is_new {
            self.backoff.reset();
        }
        (self.is_asked, self.failures) = (false, 0);
        self.next = now + self.backoff.wait();
    }

    /// No answer came. Returns whether the user should know now.
    fn failed(&mut self, now: Duration) -> bool {
        self.is_asked = false;
        self.failures += 1;
        self.next = now + self.backoff.wait();
        self.failures == TOLD_FAILURES
    }
}

/// After this number of failures in a row nothing more is submitted.
const FAILURES: u32 = 5;
/// The first time to wait after a submission that failed. It doubles.
const RETRY: Duration = Duration::from_secs(2);
/// The number of different failures that are reported.
const TEXTS: usize = 3;

/// The state of the workers with certain resources.
#[derive(Debug)]
struct WorkerClass {
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
    /// The reason why nothing more is submitted.
    stopped: Option<String>,
    /// The most workers of the next submission: half as many as were refused.
    most: u32,
    /// The time since which every submission of a single worker was refused while no worker existed.
    refused_since: Option<Duration>,
    /// Before that nothing is submitted.
    retry_at: Duration,
    retry: Backoff,
}

impl WorkerClass {
    const fn new() -> Self {
        Self {
            demand: None,
            idle_since: None,
            idle_ends: 0,
            answered: 0,
            failures: 0,
            texts: Vec::new(),
            stopped: None,
            most: u32::MAX,
            refused_since: None,
            retry_at: Duration::ZERO,
            retry: Backoff::new(RETRY),
        }
    }

    fn set_demand(&mut self, now: Duration, demand: Option<WorkerDemand>) {
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
    const fn idle_since(&self) -> Option<Duration> {
        self.idle_since
    }

    /// Returns the number of lacking workers to submit, and the earliest time, or `None` if none is lacking.
    fn lack(&self, has: u32) -> Option<(Duration, u32)> {
        let demand = self.demand.filter(|_| self.stopped.is_none())?;
        let at_once = u64::from(demand.at_once.get());
        let wanted = demand.queued.saturating_add(demand.running).div_ceil(at_once);
        // Tickets that are being executed need no other worker.
        let lack = wanted.saturating_sub(has.into()).min(demand.queued.div_ceil(at_once));
        let lack = u32::try_from(lack).unwrap_or(u32::MAX).min(self.most);
        (lack > 0).then_some((self.retry_at, lack))
    }

    /// A worker said hello.
    fn succeeded(&mut self) {
        self.failures = 0;
        if self.idle_ends >= FAILURES {
            return;
        }
        self.texts.clear();
        self.stopped = None;
    }

    /// A worker that had said hello has ended. Returns a message for the user, once [`FAILURES`] in a row have executed
    /// nothing.
    fn gone(&mut self) -> Option<String> {
        self.demand.filter(|demand| demand.queued > 0)?;
        self.idle_ends += 1;
        if self.idle_ends < FAILURES {
            return None;
        }
        self.remember(format!("{FAILURES} workers in a row ended, and had executed nothing"));
        self.stop()
    }

    /// A submission was accepted: after a smaller one, the next may have twice as many workers.
    const fn accepted(&mut self) {
        self.retry.reset();
        self.most = self.most.saturating_mul(2);
        self.refused_since = None;
    }

    /// Records that a limit on the user's jobs refused these workers: the next submission has half as many. Returns the time since which
    /// single workers were refused while no other existed.
    fn limited(&mut self, now: Duration, workers: u32, is_alone: bool) -> Option<Duration> {
        self.most = (workers / 2).max(1);
        self.retry_at = now + self.retry.wait();
        self.refused_since = match self.refused_since {
            Some(since) if is_alone => Some(since),
            _ => (is_alone && workers == 1).then_some(now),
        };
        self.refused_since
    }

    /// A submission was refused for ever. Returns a message for the user.
    fn refused(&mut self, text: String) -> Option<String> {
        self.remember(text);
        self.stop()
    }

    /// A submission failed, and is tried again later. If the reason is unclear, it counts as a failure.
    fn postponed(&mut self, now: Duration, failure: Option<String>) -> Option<String> {
        self.retry_at = now + self.retry.wait();
        failure.and_then(|text| self.failed(text))
    }

    /// Something failed. Returns a message for the user, once that has happened too often.
    fn failed(&mut self, text: String) -> Option<String> {
        self.failures += 1;
        self.remember(text);
        if self.failures >= FAILURES { self.stop() } else { None }
    }

    /// Returns the reason why tickets are queued in vain, if they are.
    fn stuck(&self) -> Option<&str> {
        self.demand.filter(|demand| demand.queued > 0)?;
        self.stopped.as_deref()
    }

    fn remember(&mut self, text: String) {
        if !self.texts.contains(&text) {
            self.texts.push(text);
        }
        let first = self.texts.len().saturating_sub(TEXTS);
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
