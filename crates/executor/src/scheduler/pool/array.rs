//! A job array of workers, and the known state of each.

use std::time::Duration;

use super::Backoff;
use crate::scheduler::{CancelScope, JobState, ScheduledJob, WorkerRequest};

/// After a scheduler has said that a worker ended, its hello may still be on its way through a network file system. If it ended
/// with success, it has certainly said hello.
const HELLO_LATE: [Duration; 2] = [Duration::from_secs(10), Duration::from_secs(60)];
/// A job that its scheduler does not know any more is given up after this time and this number of answers.
const FORGOTTEN: (Duration, u32) = (Duration::from_secs(120), 3);
/// A submission that failed is given up after this number of answers without its jobs.
const NOT_SUBMITTED: u32 = 2;
/// The number of attempts to cancel an array.
const CANCEL_TRIES: u32 = 3;

/// The known state of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WorkerState {
    /// Its scheduler was asked to start it, and has not told where it is.
    Asked,
    /// The scheduler first reported at this time that it waits.
    Pending { since: Duration, reason: String },
    /// The scheduler first reported at this time that it runs.
    Running { since: Duration, job: ScheduledJob },
    /// The scheduler reported at this time that it ended.
    Ended { at: Duration, job: ScheduledJob },
    /// It has said hello, and was not reported as gone since.
    Alive,
    /// It does not exist any more.
    Over,
}

/// One of the workers.
#[derive(Clone, Debug)]
pub(super) struct ArrayWorker {
    pub(super) state: WorkerState,
    has_said_hello: bool,
    /// The number of answers in a row that lacked it, and since when.
    missing: Option<(u32, Duration)>,
}

/// A start that failed: the worker ended without a hello.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FailedStart {
    /// The failure, in words.
    pub(super) text: String,
    /// The node that may be to blame.
    pub(super) node: Option<String>,
}

/// The progress of cancelling an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cancelling {
    No,
    Wanted(CancelScope, Duration),
    Asked(CancelScope),
    Done(CancelScope),
}

/// An array from its submission to the end of its last worker.
#[derive(Debug)]
pub(super) struct JobArray {
    pub(super) request: WorkerRequest,
    pub(super) workers: Vec<ArrayWorker>,
    /// Whether it is being submitted.
    pub(super) is_submitting: bool,
    /// Whether the submission failed, and nothing has shown yet that it was accepted.
    pub(super) is_doubtful: bool,
    cancelling: Cancelling,
    cancel_failures: u32,
    cancel_backoff: Backoff,
}

impl JobArray {
    pub(super) fn new(request: WorkerRequest) -> Self {
        let worker =
            ArrayWorker { state: WorkerState::Asked, has_said_hello: false, missing: None };
        Self {
            workers: vec![worker; request.workers as usize],
            request,
            is_submitting: true,
            is_doubtful: false,
            cancelling: Cancelling::No,
            cancel_failures: 0,
            cancel_backoff: Backoff::new(Duration::from_secs(2)),
        }
    }

    /// The number of workers whose state satisfies a condition.
    pub(super) fn count(&self, holds: impl Fn(&WorkerState) -> bool) -> u32 {
        self.workers.iter().filter(|worker| holds(&worker.state)).count() as u32
    }

    /// The number of its workers that execute calls or will. In a cancelled array, only workers that have said hello
    /// count.
    pub(super) fn usable_workers(&self) -> u32 {
        if self.is_cancelled() {
            self.count(|state| *state == WorkerState::Alive)
        } else {
            self.count(|state| *state != WorkerState::Over)
        }
    }

    /// One of its workers said hello. Returns whether that is new.
    pub(super) fn hello(&mut self, index: u32) -> bool {
        let Some(worker) = self.worker(index).filter(|worker| !worker.has_said_hello) else {
            return false;
        };
        (worker.state, worker.has_said_hello) = (WorkerState::Alive, true);
        self.is_doubtful = false;
        true
    }

    /// One of its workers is gone.
    pub(super) fn gone(&mut self, index: u32) {
        if let Some(worker) = self.worker(index) {
            (worker.state, worker.has_said_hello) = (WorkerState::Over, true);
        }
    }

    fn worker(&mut self, index: u32) -> Option<&mut ArrayWorker> {
        self.workers.get_mut(index.checked_sub(1)? as usize)
    }

    /// Marks its unknown workers as over: they will not be started.
    pub(super) fn refuse(&mut self) {
        for worker in self.workers.iter_mut().filter(|worker| worker.state.is_unknown()) {
            worker.state = WorkerState::Over;
        }
    }

    /// Whether the scheduler is to be asked about it.
    pub(super) fn is_unknown(&self) -> bool {
        !self.is_submitting && self.workers.iter().any(|worker| worker.state.is_unknown())
    }

    /// Processes an answer. Returns whether it was new.
    pub(super) fn answered<'a>(
        &mut self,
        now: Duration,
        job: impl Fn(u32) -> Option<&'a ScheduledJob>,
    ) -> bool {
        let mut is_new = false;
        for (worker, index) in self.workers.iter_mut().zip(1..) {
            if !worker.state.is_unknown() {
                continue;
            }
            match job(index) {
                Some(job) => {
                    self.is_doubtful = false;
                    worker.missing = None;
                    is_new |= worker.state.see(now, job);
                }
                None => {
                    let (answers, since) = worker.missing.unwrap_or((0, now));
                    worker.missing = Some((answers + 1, since));
                }
            }
        }
        is_new
    }

    /// Whether it was never submitted, as far as known.
    pub(super) fn is_refuted(&self) -> bool {
        let mut missing = self.workers.iter().map(|worker| worker.missing);
        self.is_doubtful
            && missing.all(|it| it.is_some_and(|(answers, _)| answers >= NOT_SUBMITTED))
    }

    /// Gives up the workers that will not say hello any more. Returns why, for each whose start has failed. `scheduler` is its name.
    pub(super) fn give_up(&mut self, now: Duration, scheduler: &str) -> Vec<FailedStart> {
        let is_cancelled = self.is_cancelled();
        let mut failed = Vec::new();
        for worker in &mut self.workers {
            if worker.patience().is_none_or(|time| now < time) {
                continue;
            }
            match std::mem::replace(&mut worker.state, WorkerState::Over) {
                WorkerState::Ended { job, .. } => failed.extend(failure(&job, is_cancelled)),
                _ => {
                    // It must not begin after all.
                    self.cancelling = self.cancelling.or(CancelScope::Pending, now);
                    let text = format!(
                        "a worker of {} was lost: {scheduler} knows no such job",
                        self.request.token
                    );
                    failed.extend((!is_cancelled).then_some(FailedStart { text, node: None }));
                }
            }
        }
        failed
    }

    /// When a worker will be given up unless more is heard of it.
    pub(super) fn patience(&self) -> Option<Duration> {
        self.workers.iter().filter_map(ArrayWorker::patience).min()
    }

    /// Makes it be cancelled, unless as much has been asked for.
    pub(super) fn cancel(&mut self, scope: CancelScope, now: Duration) {
        if self.needs(Some(scope)) {
            self.cancelling = self.cancelling.or(scope, now);
        }
    }

    /// Whether it has workers of a scope, and is not being cancelled so far.
    pub(super) fn needs(&self, scope: Option<CancelScope>) -> bool {
        let Some(scope) = scope else { return false };
        let is_asked = match self.cancelling {
            Cancelling::No => false,
            Cancelling::Wanted(other, _) | Cancelling::Asked(other) | Cancelling::Done(other) => {
                other >= scope
            }
        };
        !is_asked
            && self.workers.iter().any(|worker| match &worker.state {
                WorkerState::Alive => scope == CancelScope::All,
                state => state.is_unknown(),
            })
    }

    /// The time to cancel it, and the part to cancel. Nothing is cancelled while it is being submitted.
    pub(super) fn cancel_due(&self) -> Option<(Duration, CancelScope)> {
        match self.cancelling {
            Cancelling::Wanted(scope, time) if !self.is_submitting => Some((time, scope)),
            _ => None,
        }
    }

    /// It is being cancelled now.
    pub(super) const fn begin_cancel(&mut self, scope: CancelScope) {
        self.cancelling = Cancelling::Asked(scope);
    }

    /// It was cancelled, or not. Returns whether nothing more is tried.
    pub(super) fn cancelled(&mut self, now: Duration, is_done: bool) -> bool {
        let Cancelling::Asked(scope) = self.cancelling else { return false };
        self.cancel_failures += u32::from(!is_done);
        let is_given_up = !is_done && self.cancel_failures >= CANCEL_TRIES;
        self.cancelling = if is_done || is_given_up {
            Cancelling::Done(scope)
        } else {
            Cancelling::Wanted(scope, now + self.cancel_backoff.wait())
        };
        is_given_up
    }

    /// Whether it is being cancelled or was: then its waiting workers do not count.
    pub(super) fn is_cancelled(&self) -> bool {
        self.cancelling != Cancelling::No
    }

    /// Whether no program of the scheduler is to be started for it now.
    pub(super) const fn is_settled(&self) -> bool {
        !self.is_submitting && matches!(self.cancelling, Cancelling::No | Cancelling::Done(_))
    }

    /// Whether all its workers are over, and nothing is to be done for it any more.
    pub(super) fn is_over(&self) -> bool {
        self.is_settled() && self.workers.iter().all(|worker| worker.state == WorkerState::Over)
    }
}

impl ArrayWorker {
    /// When it is given up.
    fn patience(&self) -> Option<Duration> {
        let forgotten = self.missing.filter(|(answers, _)| *answers >= FORGOTTEN.1);
        match &self.state {
            WorkerState::Ended { at, job } => {
                Some(*at + HELLO_LATE[usize::from(job.word == "COMPLETED")])
            }
            state if state.is_unknown() => forgotten.map(|(_, since)| since + FORGOTTEN.0),
            _ => None,
        }
    }
}

/// Returns the failed start that the end of a worker without a hello means, if it is one.
fn failure(job: &ScheduledJob, is_cancelled: bool) -> Option<FailedStart> {
    let is_blamed = match &*job.word {
        "PREEMPTED" => return None,
        "CANCELLED" if is_cancelled => return None,
        word => word != "CANCELLED",
    };
    let place = job.node.as_ref().map(|node| format!(" on {node}")).unwrap_or_default();
    let text = format!("worker {}{place} ended at its start: {}", job.id, job.description());
    Some(FailedStart { text, node: job.node.clone().filter(|_| is_blamed) })
}

impl WorkerState {
    /// Whether the scheduler may know more of it.
    pub(super) const fn is_unknown(&self) -> bool {
        matches!(self, Self::Asked | Self::Pending { .. } | Self::Running { .. })
    }

    /// Whether it has been asked for and not proved to work.
    pub(super) const fn is_waiting(&self) -> bool {
        self.is_unknown() || matches!(self, Self::Ended { .. })
    }

    /// Processes the scheduler's statement. Returns whether it is new.
    fn see(&mut self, now: Duration, job: &ScheduledJob) -> bool {
        let next = match (job.state, &*self) {
            (JobState::Unknown, _) => return false,
            (JobState::Pending, Self::Pending { since, .. }) => {
                Self::Pending { since: *since, reason: job.reason.clone() }
            }
            (JobState::Pending, _) => Self::Pending { since: now, reason: job.reason.clone() },
            (JobState::Running, Self::Running { since, .. }) => {
                Self::Running { since: *since, job: job.clone() }
            }
            (JobState::Running, _) => Self::Running { since: now, job: job.clone() },
            (JobState::Ended, _) => Self::Ended { at: now, job: job.clone() },
        };
        let is_new = *self != next;
        *self = next;
        is_new
    }
}

impl Cancelling {
    /// The same, and a scope that is to be cancelled.
    fn or(self, scope: CancelScope, now: Duration) -> Self {
        match self {
            Self::Wanted(other, time) => Self::Wanted(scope.max(other), time),
            Self::Asked(other) | Self::Done(other) if other >= scope => self,
            _ => Self::Wanted(scope, now),
        }
    }
}
