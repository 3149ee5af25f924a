//! When to ask Slurm again: at an interval that doubles while nothing changes. Many clusters slow down by being asked.

use std::time::Duration;

/// The longest time between two questions, unless the user's interval is longer.
const LONGEST: Duration = Duration::from_secs(60);
/// So many failures in a row are told.
const TOLD: u32 = 3;

/// A time to wait that doubles.
#[derive(Clone, Copy, Debug)]
pub(super) struct Backoff {
    shortest: Duration,
    now: Duration,
}

impl Backoff {
    pub(super) const fn new(shortest: Duration) -> Self {
        Self { shortest, now: shortest }
    }

    /// Begins again with the shortest time.
    pub(super) const fn reset(&mut self) {
        self.now = self.shortest;
    }

    /// The time to wait now. The next one is twice as long.
    pub(super) fn wait(&mut self) -> Duration {
        let wait = self.now;
        self.now = (wait * 2).min(LONGEST).max(self.shortest);
        wait
    }
}

/// The questions to Slurm, one after the other.
#[derive(Debug)]
pub(super) struct Asking {
    backoff: Backoff,
    /// When to ask next.
    next: Duration,
    is_asked: bool,
    failures: u32,
}

impl Asking {
    pub(super) const fn new(interval: Duration) -> Self {
        let backoff = Backoff::new(interval);
        Self { backoff, next: Duration::ZERO, is_asked: false, failures: 0 }
    }

    /// When to ask next, or `None` while an answer is awaited.
    pub(super) fn next(&self) -> Option<Duration> {
        (!self.is_asked).then_some(self.next)
    }

    pub(super) const fn ask(&mut self) {
        self.is_asked = true;
    }

    /// There is something new to ask about, from now on.
    pub(super) fn hurry(&mut self, now: Duration) {
        self.backoff.reset();
        let sooner = now + self.backoff.shortest;
        self.next = if self.next > now { self.next.min(sooner) } else { sooner };
    }

    /// An answer came, which may have told something new.
    pub(super) fn answered(&mut self, now: Duration, is_new: bool) {
        if is_new {
            self.backoff.reset();
        }
        (self.is_asked, self.failures) = (false, 0);
        self.next = now + self.backoff.wait();
    }

    /// No answer came. Returns whether the user should know now.
    pub(super) fn failed(&mut self, now: Duration) -> bool {
        self.is_asked = false;
        self.failures += 1;
        self.next = now + self.backoff.wait();
        self.failures == TOLD
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn questions_get_rarer_while_nothing_changes() {
        let mut asking = Asking::new(s(2));
        let (mut now, mut waits) = (s(0), Vec::new());
        for _ in 0..8 {
            asking.ask();
            assert_eq!(asking.next(), None);
            asking.answered(now, false);
            let next = asking.next().unwrap();
            waits.push((next - now).as_secs());
            now = next;
        }
        assert_eq!(waits, [2, 4, 8, 16, 32, 60, 60, 60]);
        asking.answered(now, true);
        assert_eq!(asking.next(), Some(now + s(2)));
        let mut rare = Asking::new(s(120));
        rare.answered(s(0), false);
        rare.answered(s(120), false);
        assert_eq!(rare.next(), Some(s(240)), "the user's interval counts");
    }

    #[test]
    fn a_submission_makes_the_next_question_sooner_but_never_too_soon() {
        let mut asking = Asking::new(s(2));
        asking.hurry(s(7));
        assert_eq!(asking.next(), Some(s(9)));
        for _ in 0..5 {
            asking.answered(s(10), false);
        }
        assert!(asking.next() > Some(s(30)));
        asking.hurry(s(11));
        assert_eq!(asking.next(), Some(s(13)));
        asking.hurry(s(12));
        assert_eq!(asking.next(), Some(s(13)), "submissions do not put it off");
    }

    #[test]
    fn failures_are_told_once() {
        let mut asking = Asking::new(s(2));
        let told: Vec<bool> = (0..5).map(|at| asking.failed(s(at * 60))).collect();
        assert_eq!(told, [false, false, true, false, false]);
        asking.answered(s(600), true);
        assert!(!asking.failed(s(602)), "the next failure is the first one");
    }
}
