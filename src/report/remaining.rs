//! How long the calls that are left will take, from the durations of others.
//!
//! Calls of which no duration is known make an estimate a lower bound. Pure.

use ce_model::task::ComputationId;

/// The calls of a run by computation: how many are left, and how long those that are over took.
#[derive(Debug, Default)]
pub(super) struct Remaining {
    computations: Vec<CallsLeft>,
}

/// An estimate of the time that is left.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TimeLeft {
    /// In seconds.
    pub(super) seconds: f64,
    /// Whether it will take longer, since the durations of some calls are not known.
    pub(super) at_least: bool,
}

/// The calls of one computation.
#[derive(Clone, Debug, Default)]
struct CallsLeft {
    /// Those that are not over, whether they run or not.
    left: usize,
    /// Those that were executed in this run.
    executed: usize,
    /// Those that were not: they were found, or could not be.
    others: usize,
    /// The sum of the durations of those that were executed.
    seconds: f64,
    /// The usual duration in earlier runs, once it was asked for.
    earlier: Option<Option<f64>>,
}

impl Remaining {
    fn of(&mut self, computation: ComputationId) -> &mut CallsLeft {
        let at = computation.index();
        if at >= self.computations.len() {
            self.computations.resize_with(at + 1, CallsLeft::default);
        }
        &mut self.computations[at]
    }

    /// Adds a call that is left.
    pub(super) fn add(&mut self, computation: ComputationId) {
        self.of(computation).left += 1;
    }

    /// Notes that a call is over, and how many seconds it took if it was executed.
    pub(super) fn end(&mut self, computation: ComputationId, seconds: Option<f64>) {
        let calls = self.of(computation);
        calls.left = calls.left.saturating_sub(1);
        match seconds {
            Some(seconds) => {
                calls.executed += 1;
                calls.seconds += seconds;
            }
            None => calls.others += 1,
        }
    }

    /// How many seconds all calls took that were executed in this run.
    pub(super) fn busy(&self) -> f64 {
        self.computations.iter().map(|calls| calls.seconds).sum()
    }

    /// The computations with calls that are left, of which no duration is known and none was asked for.
    pub(super) fn unknown(&self) -> Vec<ComputationId> {
        let is_unknown = |it: &CallsLeft| it.left > 0 && it.executed == 0 && it.earlier.is_none();
        let computations = self.computations.iter().enumerate();
        computations.filter(|(_, it)| is_unknown(it)).map(|(at, _)| ComputationId::at(at)).collect()
    }

    /// Notes the usual duration in earlier runs, in seconds, if one is known.
    pub(super) fn learn(&mut self, computation: ComputationId, seconds: Option<f64>) {
        self.of(computation).earlier = Some(seconds);
    }

    /// Estimates how long it takes until all calls are over, if so many run at the same time on average. `running`
    /// are the calls that run, and for how many seconds they have. `None` if nothing is known of those that are left.
    pub(super) fn estimate(
        &self,
        running: impl Iterator<Item = (ComputationId, f64)>,
        parallel: f64,
    ) -> Option<TimeLeft> {
        let mut waiting: Vec<usize> = self.computations.iter().map(|it| it.left).collect();
        let (mut sum, mut longest) = (0.0, 0.0_f64);
        let (mut is_known, mut at_least) = (false, false);
        let mut add = |seconds: f64, calls: f64| {
            sum += seconds * calls;
            longest = longest.max(seconds);
            is_known = true;
        };
        for (computation, since) in running {
            let calls = self.computations.get(computation.index())?;
            waiting[computation.index()] = waiting[computation.index()].saturating_sub(1);
            match calls.mean() {
                Some(mean) => add((mean - since).max(0.0), 1.0),
                None => at_least = true,
            }
        }
        for (calls, waiting) in self.computations.iter().zip(waiting).filter(|(_, it)| *it > 0) {
            match calls.mean() {
                Some(mean) => add(mean * calls.share(), waiting as f64),
                None => at_least = true,
            }
        }
        let seconds = (sum / parallel.max(1.0)).max(longest);
        is_known.then_some(TimeLeft { seconds, at_least })
    }
}

impl CallsLeft {
    /// The mean duration of those that were executed, or else the usual one in earlier runs.
    fn mean(&self) -> Option<f64> {
        match self.executed {
            0 => self.earlier?,
            executed => Some(self.seconds / executed as f64),
        }
    }

    /// The share of the calls that are left that have to be executed, since others need not be.
    fn share(&self) -> f64 {
        (self.executed + 1) as f64 / (self.executed + self.others + 1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first() -> ComputationId {
        ComputationId::at(0)
    }

    fn left(counts: &[usize]) -> Remaining {
        let mut remaining = Remaining::default();
        for (at, count) in counts.iter().enumerate() {
            (0..*count).for_each(|_| remaining.add(ComputationId::at(at)));
        }
        remaining
    }

    fn time(remaining: &Remaining, running: &[(usize, f64)], parallel: u32) -> Option<TimeLeft> {
        let running = running.iter().map(|(at, since)| (ComputationId::at(*at), *since));
        remaining.estimate(running, parallel.into())
    }

    fn estimate(remaining: &Remaining, running: &[(usize, f64)], parallel: u32) -> Option<f64> {
        time(remaining, running, parallel).filter(|it| !it.at_least).map(|it| it.seconds)
    }

    #[test]
    fn the_mean_of_this_run_times_what_is_left_is_shared_by_those_that_run() {
        let mut remaining = left(&[10]);
        assert_eq!(estimate(&remaining, &[], 2), None, "nothing is known");
        [2.0, 4.0].into_iter().for_each(|seconds| remaining.end(first(), Some(seconds)));
        assert_eq!(estimate(&remaining, &[], 1), Some(24.0));
        assert_eq!(estimate(&remaining, &[], 4), Some(6.0));
        // Two run, one of them longer than usual.
        assert_eq!(estimate(&remaining, &[(0, 1.0), (0, 9.0)], 2), Some(10.0));
    }

    #[test]
    fn it_takes_as_long_as_the_longest_call() {
        let mut remaining = left(&[2, 1]);
        remaining.learn(first(), Some(1.0));
        remaining.learn(ComputationId::at(1), Some(60.0));
        assert_eq!(estimate(&remaining, &[], 8), Some(60.0));
        assert_eq!(estimate(&remaining, &[(1, 50.0)], 8), Some(10.0));
    }

    #[test]
    fn earlier_runs_count_until_one_is_executed() {
        let mut remaining = left(&[3, 2]);
        assert_eq!(remaining.unknown(), [first(), ComputationId::at(1)]);
        remaining.learn(first(), Some(5.0));
        remaining.learn(ComputationId::at(1), None);
        assert!(remaining.unknown().is_empty(), "it is asked once");
        let some = TimeLeft { seconds: 15.0, at_least: true };
        assert_eq!(time(&remaining, &[], 1), Some(some), "one is not known");
        remaining.end(ComputationId::at(1), Some(2.0));
        assert_eq!(estimate(&remaining, &[], 1), Some(17.0));
        remaining.end(first(), Some(1.0));
        assert_eq!(estimate(&remaining, &[], 1), Some(4.0));
    }

    #[test]
    fn where_most_are_found_most_will_be() {
        let mut remaining = left(&[200]);
        (0..99).for_each(|_| remaining.end(first(), None));
        remaining.end(first(), Some(10.0));
        let seconds = estimate(&remaining, &[], 1).unwrap();
        assert!((19.0..21.0).contains(&seconds), "{seconds}");
        (0..100).for_each(|_| remaining.end(first(), None));
        assert_eq!(estimate(&remaining, &[], 1), None, "nothing is left");
    }
}
