//! Attempts to start executions where processes, memory or open files are used up: fewer run at once then.
//!
//! While executions of this process run, a failed attempt waits until one of them ends. Otherwise it is repeated for a
//! few seconds, since other processes may free resources. All attempts share these seconds, until one succeeds.

use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ce_model::system_hints;

/// The time for which starting is tried in vain while nothing runs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// The shortest and the longest pause between two attempts.
const PAUSES: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(500)];

/// The executions of a process that run, and attempts to start others.
#[derive(Debug)]
pub(crate) struct StartAttempts {
    state: Mutex<AttemptState>,
    /// An execution has ended.
    ended: Condvar,
    patience: Duration,
}

#[derive(Debug, Default)]
struct AttemptState {
    running: usize,
    /// Since when no attempt has succeeded while nothing ran.
    failing_since: Option<Instant>,
    /// The reason why attempts fail.
    notice: AttemptNotice,
}

/// Whether the user knows why attempts fail.
#[derive(Debug, Default)]
enum AttemptNotice {
    #[default]
    None,
    /// By a limit of the system.
    Limit(&'static str),
    /// The attempt failed for a reason that is not known to be transient.
    Unknown(String),
    Told,
}

impl Default for StartAttempts {
    fn default() -> Self {
        Self::with_patience(PATIENCE)
    }
}

impl StartAttempts {
    /// Tries for this time while nothing runs.
    pub(crate) fn with_patience(patience: Duration) -> Self {
        Self { state: Mutex::default(), ended: Condvar::new(), patience }
    }

    /// Tries until it succeeds, fails for a reason that does not pass, or is cancelled. `passing` returns the cause of a failure that
    /// may pass.
    pub(crate) fn retry<T, E>(
        &self,
        is_cancelled: &dyn Fn() -> bool,
        passing: impl Fn(&E) -> Option<&io::Error>,
        mut attempt: impl FnMut() -> Result<T, E>,
    ) -> Result<T, E> {
        let [mut pause, longest] = PAUSES;
        let mut is_again = false;
        loop {
            let was_running = self.lock().running > 0;
            let error = match attempt() {
                Ok(started) => {
                    self.lock().failing_since = None;
                    return Ok(started);
                }
                Err(error) => error,
            };
            let Some(cause) = passing(&error) else { return Err(error) };
            let mut state = self.lock();
            match (&state.notice, system_hints::exhausted_limit(cause)) {
                (AttemptNotice::None | AttemptNotice::Unknown(_), Some(limit)) => {
                    state.notice = AttemptNotice::Limit(limit);
                }
                // A launcher that was killed once is replaced without a message.
                (AttemptNotice::None, None) if is_again => {
                    state.notice = AttemptNotice::Unknown(cause.to_string());
                }
                _ => {}
            }
            is_again = true;
            // One that has just ended has made room.
            let is_over = if state.running > 0 || was_running {
                state.failing_since = None;
                false
            } else {
                state.failing_since.get_or_insert_with(Instant::now).elapsed() >= self.patience
            };
            if is_over || is_cancelled() {
                return Err(error);
            }
            let (state, _) =
                self.ended.wait_timeout(state, pause).unwrap_or_else(PoisonError::into_inner);
            drop(state);
            if is_cancelled() {
                return Err(error);
            }
            pause = (pause * 2).min(longest);
        }
    }

    /// Counts a started execution until this value is dropped.
    pub(crate) fn running(&self) -> RunningExecution<'_> {
        self.lock().running += 1;
        RunningExecution(self)
    }

    /// Returns once why executions are started later, or fewer at once.
    pub(crate) fn notice(&self) -> Option<String> {
        let mut state = self.lock();
        let told = match &state.notice {
            AttemptNotice::None | AttemptNotice::Told => return None,
            AttemptNotice::Limit(limit) => format!(
                "warning: fewer computations run at once: {limit}\n  try: {}",
                system_hints::raising_limits()
            ),
            AttemptNotice::Unknown(cause) => format!(
                "warning: computations cannot be started now; the run tries again: {cause}\n  try: ce doctor says whether this host can isolate"
            ),
        };
        state.notice = AttemptNotice::Told;
        Some(told)
    }

    fn lock(&self) -> MutexGuard<'_, AttemptState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An execution that runs.
#[derive(Debug)]
pub(crate) struct RunningExecution<'a>(&'a StartAttempts);

impl Drop for RunningExecution<'_> {
    fn drop(&mut self) {
        self.0.lock().running -= 1;
        self.0.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use rustix::io::Errno;

    use super::*;

    fn shortage() -> io::Error {
        Errno::AGAIN.into()
    }

    fn passing(error: &io::Error) -> Option<&io::Error> {
        (error.kind() == io::ErrorKind::WouldBlock).then_some(error)
    }

    #[test]
    fn a_transient_error_is_retried_and_a_permanent_one_is_returned() {
        let attempts = StartAttempts::default();
        let mut left = 4;
        let started = attempts.retry(&|| false, passing, || {
            left -= 1;
            if left == 0 { Ok(()) } else { Err(shortage()) }
        });
        assert!(started.is_ok() && left == 0);
        let refused = attempts.retry(&|| false, passing, || {
            left += 1;
            Err::<(), _>(io::Error::from(Errno::PERM))
        });
        assert!(refused.is_err() && left == 1);
        let notice = attempts.notice().unwrap();
        assert!(notice.contains("the limit of processes"), "{notice}");
        assert_eq!(attempts.notice(), None, "it is said once");
    }

    #[test]
    fn an_unknown_reason_is_reported_if_the_retry_fails_too() {
        for (failures, is_told) in [(1, false), (2, true)] {
            let attempts = StartAttempts::default();
            let mut left = failures;
            let start = || {
                let killed = || Err(io::Error::other("it was killed by signal 9"));
                if left == 0 {
                    Ok(())
                } else {
                    left -= 1;
                    killed()
                }
            };
            attempts.retry(&|| false, |error: &io::Error| Some(error), start).unwrap();
            let notice = attempts.notice();
            assert_eq!(notice.is_some(), is_told, "{failures}");
            assert!(
                notice
                    .is_none_or(|it| it.contains("the run tries again: it was killed by signal 9"))
            );
            assert_eq!(attempts.notice(), None, "it is said once");
        }
    }

    #[test]
    fn all_attempts_share_one_patience_while_nothing_runs() {
        let attempts = StartAttempts::with_patience(Duration::from_millis(50));
        let tries = AtomicUsize::new(0);
        let fail = || {
            tries.fetch_add(1, Ordering::Relaxed);
            Err::<(), _>(shortage())
        };
        assert!(attempts.retry(&|| false, passing, fail).is_err());
        assert!(tries.swap(0, Ordering::Relaxed) > 1);
        assert!(attempts.retry(&|| false, passing, fail).is_err());
        assert_eq!(tries.load(Ordering::Relaxed), 1, "the time is over");
    }

    #[test]
    fn an_attempt_waits_for_the_end_of_running_executions() {
        let attempts = StartAttempts::with_patience(Duration::ZERO);
        let (tries, ended) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let running = attempts.running();
        thread::scope(|scope| {
            let starting = scope.spawn(|| {
                attempts.retry(&|| false, passing, || {
                    tries.fetch_add(1, Ordering::SeqCst);
                    if ended.load(Ordering::SeqCst) == 0 { Err(shortage()) } else { Ok(()) }
                })
            });
            while tries.load(Ordering::SeqCst) < 2 {
                thread::yield_now();
            }
            ended.store(1, Ordering::SeqCst);
            drop(running);
            assert!(starting.join().unwrap().is_ok());
        });
    }

    #[test]
    fn a_signal_ends_the_wait() {
        let attempts = StartAttempts::default();
        let _running = attempts.running();
        let tries = AtomicUsize::new(0);
        let is_cancelled = || tries.load(Ordering::Relaxed) > 1;
        let ended = attempts.retry(&is_cancelled, passing, || {
            tries.fetch_add(1, Ordering::Relaxed);
            Err::<(), _>(shortage())
        });
        assert!(ended.is_err());
    }
}
