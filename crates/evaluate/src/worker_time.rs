//! For whom a worker works, and the time that it has.

use std::time::{Duration, Instant};

use ce_model::resources::Resources;
use ce_storage::records::{OutOfTime, TicketEnd};

/// For whom a worker works, and how long.
#[derive(Clone, Debug)]
pub struct WorkerRules {
    /// The user ids of those whose calls it executes.
    pub users: Vec<u32>,
    /// The time without a ticket after which it ends.
    pub idle: Duration,
    /// The time that it has, if that is limited.
    pub life: Option<Duration>,
    /// Whether outputs are on the disk before they are published.
    pub synced: bool,
    /// Whether it executes only calls that span hosts or tasks.
    pub only_spanning: bool,
}

/// How long before its time is over a scheduler may ask a worker to end for that reason.
const EARLY: Duration = Duration::from_secs(60);

/// When a worker began, and how long it lives, if that is limited.
#[derive(Clone, Copy, Debug)]
pub(super) struct WorkerTime {
    pub(super) began: Instant,
    pub(super) life: Option<Duration>,
}

impl WorkerTime {
    /// The time that is left, if it is limited.
    pub(super) fn left(&self) -> Option<Duration> {
        self.life.map(|life| life.saturating_sub(self.began.elapsed()))
    }

    /// Whether none is left.
    pub(super) fn is_over(&self) -> bool {
        self.left().is_some_and(|left| left.is_zero())
    }

    /// Whether a call may begin now: one that says how long it takes if that is left, any other in the first half.
    pub(super) fn suffices_for(&self, resources: &Resources) -> bool {
        let Some((life, left)) = self.life.zip(self.left()) else { return true };
        left >= resources.time.unwrap_or(life / 2)
    }

    /// What to answer of a call that was interrupted after some time, if that was because the time of the worker is over. A
    /// scheduler may ask it to end somewhat earlier.
    pub(super) fn out_of_time(&self, had: Duration) -> Option<TicketEnd> {
        let (life, left) = self.life.zip(self.left())?;
        let full = had >= life - life / 10;
        let end = TicketEnd::OutOfTime(OutOfTime { seconds: had.as_secs_f64(), full });
        (left <= EARLY.min(life / 4)).then_some(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn a_call_is_out_of_time_at_the_end_only() {
        let after = |minutes: u32| {
            let began = Instant::now().checked_sub(HOUR / 60 * minutes).unwrap();
            WorkerTime { began, life: Some(HOUR) }
        };
        let is_full = |time: WorkerTime, had| match time.out_of_time(had) {
            Some(TicketEnd::OutOfTime(out)) => Some(out.full),
            _ => None,
        };
        assert_eq!(is_full(after(30), HOUR / 2), None, "somebody else has asked it to end");
        assert_eq!(is_full(after(59), HOUR / 2), Some(false));
        assert_eq!(is_full(after(59), HOUR / 10 * 9), Some(true));
        assert!(!after(59).is_over() && after(60).is_over());
        let unknown = Resources::default();
        let known = Resources { time: Some(HOUR / 4), ..Resources::default() };
        let suffices = |minutes| [&unknown, &known].map(|it| after(minutes).suffices_for(it));
        assert_eq!([29, 31, 46].map(suffices), [[true, true], [false, true], [false, false]]);
    }
}
