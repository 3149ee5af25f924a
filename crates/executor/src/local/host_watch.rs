//! Watches what else uses this host while executions run.
//!
//! A thread takes a sample each tenth of a second, less often where that would take more than a share of it. An execution asks for
//! nothing of the system: it takes the last sample at its beginning, and compares it with the last one at its end.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use ce_model::host_use::HostUse;

use super::host_samples::{HostSample, usable_processors};

/// The shortest interval between samples.
const INTERVAL: Duration = Duration::from_millis(100);

/// The longest one.
const LONGEST: Duration = Duration::from_secs(5);

/// Samples take at most one of so many parts of the time.
const RARELY: u32 = 200;

/// The shortest interval from which anything is concluded.
const LEAST: Duration = Duration::from_millis(500);

/// The time for which samples are kept. What others used in that time is worth a warning.
const KEPT: Duration = Duration::from_secs(10);

/// Watches this host while executions run.
#[derive(Debug)]
pub(super) struct HostWatch {
    state: Mutex<WatchState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct WatchState {
    /// The samples of the last seconds, in order. Empty while the thread sleeps.
    samples: VecDeque<Arc<HostSample>>,
    /// The processors that executions may use.
    processors: Option<Vec<usize>>,
    /// The number of executions that run.
    running: usize,
    /// Until when no execution asks for a sample, since there was none.
    blind_until: Option<Instant>,
    has_thread: bool,
    is_over: bool,
}

/// An execution that runs, during which the host is watched.
pub(super) struct WatchedExecution {
    watch: Arc<HostWatch>,
    first: Option<Arc<HostSample>>,
}

impl HostWatch {
    /// Watches the processors that this thread may use now.
    pub(super) fn new() -> Self {
        let state = WatchState { processors: usable_processors(), ..WatchState::default() };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Begins an execution.
    pub(super) fn begin(self: &Arc<Self>) -> WatchedExecution {
        let mut state = self.lock();
        state.running += 1;
        let may_look = state.blind_until.is_none_or(|until| until < Instant::now());
        if state.samples.is_empty() && !state.is_over && may_look && state.add(HostSample::now()) {
            if !state.has_thread {
                let watch = Arc::clone(self);
                let thread = thread::Builder::new().name("host".to_owned());
                // Without a thread nothing is known of the host.
                state.has_thread = thread.spawn(move || watch.follow()).is_ok();
            }
            self.changed.notify_all();
        }
        let first = state.samples.back().cloned();
        drop(state);
        WatchedExecution { watch: Arc::clone(self), first }
    }

    /// Returns the use by others during the last seconds, while executions ran, if it is known.
    pub(super) fn recent(&self) -> Option<HostUse> {
        let state = self.lock();
        let [first, last] = [state.samples.front()?, state.samples.back()?];
        let is_long = last.at.duration_since(first.at) > KEPT / 2;
        (is_long && state.running > 0)
            .then(|| last.used_by_others_since(first, state.processors.as_deref()))
    }

    /// Ends the thread.
    pub(super) fn end(&self) {
        self.lock().is_over = true;
        self.changed.notify_all();
    }

    /// Takes samples while executions run, until the end.
    fn follow(&self) {
        let mut state = self.lock();
        let mut pause = INTERVAL;
        while !state.is_over {
            if state.samples.is_empty() {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let was_idle = state.running == 0;
            let waited = self.changed.wait_timeout(state, pause);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            if was_idle && state.running == 0 {
                state.samples.clear();
                continue;
            }
            drop(state);
            let began = Instant::now();
            let sample = HostSample::now();
            pause = (began.elapsed() * RARELY).clamp(INTERVAL, LONGEST);
            state = self.lock();
            state.add(sample);
        }
    }

    fn lock(&self) -> MutexGuard<'_, WatchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WatchState {
    /// Adds a sample, and forgets the ones that are old. Without it all are forgotten: nothing is concluded from samples that end long before.
    /// Returns whether there is one.
    fn add(&mut self, sample: Option<HostSample>) -> bool {
        let Some(sample) = sample else {
            self.samples.clear();
            self.blind_until = Some(Instant::now() + LONGEST);
            return false;
        };
        while self.samples.front().is_some_and(|it| it.at + KEPT < sample.at) {
            self.samples.pop_front();
        }
        let sample = match self.samples.back() {
            Some(before) => sample.after(before),
            None => sample,
        };
        self.samples.push_back(Arc::new(sample));
        true
    }
}

impl WatchedExecution {
    /// Returns the use of its processors by others, over an interval that begins with the execution, or before if it was short. `None` if there
    /// was no such interval. Of an execution that is bound to processors, what this run has used elsewhere may hide something.
    pub(super) fn host_use(&self, bound_to: &[usize]) -> Option<HostUse> {
        let state = self.watch.lock();
        let (own, last) = (self.first.as_ref()?, state.samples.back()?);
        let is_enough = |it: &HostSample| it.at <= own.at && it.at + LEAST <= last.at;
        let earlier = state.samples.iter().rev().find(|it| is_enough(it));
        let first = Some(own).filter(|it| is_enough(it)).or(earlier)?;
        let all = state.processors.as_deref();
        Some(last.used_by_others_since(first, Some(bound_to).filter(|it| !it.is_empty()).or(all)))
    }
}

impl Drop for WatchedExecution {
    fn drop(&mut self) {
        self.watch.lock().running -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waits until a function returns something.
    fn wait_for<T>(mut found: impl FnMut() -> Option<T>) -> T {
        let began = Instant::now();
        loop {
            if let Some(found) = found() {
                return found;
            }
            assert!(began.elapsed() < Duration::from_secs(60), "it does not come");
            thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn executions_share_the_samples_of_a_thread_that_sleeps_between_them() {
        let watch = Arc::new(HostWatch::new());
        let long = watch.begin();
        assert_eq!(long.host_use(&[]), None, "no interval is over");
        let used = wait_for(|| long.host_use(&[]));
        assert!(used.seconds >= 0.5 && used.processors > 0, "{used:?}");
        // It has the interval of the long one's last half second.
        let short = watch.begin();
        assert!(short.host_use(&[]).unwrap().seconds >= 0.5);
        assert_eq!(watch.lock().running, 2);
        drop((long, short));
        wait_for(|| watch.lock().samples.is_empty().then_some(()));
        assert_eq!(watch.recent(), None, "nothing runs");
        let next = watch.begin();
        assert!(wait_for(|| next.host_use(&[])).seconds >= 0.5);
        watch.end();
        wait_for(|| (Arc::strong_count(&watch) == 2).then_some(()));
    }

    #[test]
    fn a_host_that_says_nothing_is_not_asked_at_each_execution() {
        let mut state = WatchState::default();
        assert!(state.add(HostSample::now()) && state.samples.len() == 1);
        assert_eq!(state.blind_until, None);
        assert!(!state.add(None) && state.samples.is_empty());
        assert!(state.blind_until > Some(Instant::now()));
    }
}
