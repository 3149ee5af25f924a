//! The last line of the progress of a run, as wide as the terminal: `[====>   ] 12/70 calls, 4 running, 0:12, 3:20 to go`.
//!
//! The time that the remaining calls will take is estimated from the durations of others. Calls of which no duration is known make
//! an estimate a lower bound. Pure.

use std::time::Duration;

use ce_model::humanize::clock;
use ce_model::task::ComputationId;

/// The greatest width of the bar, without its brackets.
const BAR: usize = 20;

/// The smallest one: below it there is no bar.
const MIN_BAR: usize = 4;

/// The progress of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RunProgress {
    /// The calls that are over.
    pub(super) done: usize,
    /// All calls that are known and asked for.
    pub(super) all: usize,
    /// Whether there may be more.
    pub(super) at_least: bool,
    /// The calls that were found.
    pub(super) found: usize,
    /// The calls that run.
    pub(super) running: usize,
    /// The calls that wait for workers.
    pub(super) queued: usize,
    /// The calls that are suspended.
    pub(super) suspended: usize,
    /// The calls that wait for another run, or until files have settled.
    pub(super) held: usize,
    /// The calls that have failed.
    pub(super) failed: usize,
    /// The time since the run began.
    pub(super) since: Duration,
    /// The time until it ends, if that can be estimated.
    pub(super) left: Option<TimeLeft>,
}

impl RunProgress {
    /// The line, of at most so many columns. On narrow terminals the bar is shorter, then parts are left out, and then words.
    pub(super) fn line(&self, columns: usize) -> String {
        let text = self.text(columns, false);
        let text = if text.len() > columns { self.text(columns, true) } else { text };
        let room = columns.saturating_sub(text.len() + "[] ".len()).min(BAR);
        if room < MIN_BAR { text } else { format!("[{}] {text}", self.bar(room)) }
    }

    /// The text behind the bar: all parts, or those with the lowest ranks if it has more columns than these.
    fn text(&self, columns: usize, is_brief: bool) -> String {
        let Self { done, all, at_least, found, running, queued, suspended, held, failed, .. } =
            *self;
        let calls = match at_least {
            true if is_brief => format!("{done}/{all}+ calls"),
            true => format!("{done} of at least {all} calls"),
            false => format!("{done}/{all} calls"),
        };
        let mut parts = vec![(0, calls)];
        let mut count = |rank, number, what| parts.push((rank, format!("{number} {what}")));
        if failed > 0 {
            count(0, failed, "failed");
        }
        count(3, found, "reused");
        count(1, running, "running");
        if queued > 0 {
            count(1, queued, "queued");
        }
        if suspended > 0 {
            count(1, suspended, "suspended");
        }
        if held > 0 {
            count(1, held, "waiting");
        }
        parts.push((2, clock(self.since)));
        if let Some(TimeLeft { seconds, at_least }) = self.left.filter(|_| done < all) {
            let time = clock(Duration::try_from_secs_f64(seconds.ceil()).unwrap_or_default());
            let text = match at_least {
                true if is_brief => format!("{time}+ to go"),
                true => format!("at least {time} to go"),
                false => format!("{time} to go"),
            };
            parts.push((0, text));
        }
        loop {
            let texts: Vec<&str> = parts.iter().map(|(_, text)| &**text).collect();
            let text = texts.join(", ");
            let most = parts.iter().enumerate().max_by_key(|(_, (rank, _))| *rank);
            match most {
                Some((at, (1.., _))) if text.len() > columns => drop(parts.remove(at)),
                _ => return text,
            }
        }
    }

    fn bar(&self, width: usize) -> String {
        let filled = (width * self.done).checked_div(self.all).unwrap_or(0).min(width);
        let tip = if filled < width { ">" } else { "" };
        format!("{:width$}", format!("{}{tip}", "=".repeat(filled)))
    }
}

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

    /// Returns the time that all calls took that were executed in this run, in seconds.
    pub(super) fn busy(&self) -> f64 {
        self.computations.iter().map(|calls| calls.seconds).sum()
    }

    /// The computations with calls that are left, of which no duration is known and none was asked for.
    pub(super) fn unknown(&self) -> Vec<ComputationId> {
        let mut unknown = Vec::new();
        for (at, it) in self.computations.iter().enumerate() {
            if it.left > 0 && it.executed == 0 && it.earlier.is_none() {
                unknown.push(ComputationId::at(at));
            }
        }
        unknown
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

    fn progress() -> RunProgress {
        RunProgress {
            done: 120,
            all: 2000,
            at_least: false,
            found: 100,
            running: 4,
            queued: 0,
            suspended: 0,
            held: 0,
            failed: 0,
            since: Duration::from_secs(12),
            left: Some(TimeLeft { seconds: 199.6, at_least: false }),
        }
    }

    #[test]
    fn the_bar_shrinks_first() {
        let lines = [80, 70, 60, 50, 40, 30].map(|columns| progress().line(columns));
        let text = "120/2000 calls, 100 reused, 4 running, 0:12, 3:20 to go";
        assert_eq!(lines[0], format!("[=>                  ] {text}"));
        assert_eq!(lines[1], format!("[>           ] {text}"));
        assert_eq!(lines[2], text);
        assert_eq!(lines[3], "[>   ] 120/2000 calls, 4 running, 0:12, 3:20 to go");
        assert_eq!(lines[4], "120/2000 calls, 4 running, 3:20 to go");
        assert_eq!(lines[5], "120/2000 calls, 3:20 to go");
        for (line, columns) in lines.iter().zip([80, 70, 60, 50, 40, 30]) {
            assert!(line.len() <= columns, "{line}");
        }
    }

    #[test]
    fn what_is_not_known_is_not_told() {
        let line = RunProgress { left: None, at_least: true, ..progress() }.line(80);
        assert!(
            line.ends_with("] 120 of at least 2000 calls, 100 reused, 4 running, 0:12"),
            "{line}"
        );
        let left = Some(TimeLeft { seconds: 60.0, at_least: true });
        let line = RunProgress { left, ..progress() }.line(40);
        assert_eq!(line, "120/2000 calls, at least 1:00 to go");
        let some = RunProgress { suspended: 2, ..progress() };
        assert!(some.line(120).contains(", 4 running, 2 suspended, 0:12, "), "{}", some.line(120));
        let nothing = RunProgress::default().line(40);
        assert_eq!(nothing, "0/0 calls, 0 reused, 0 running, 0:00");
    }

    #[test]
    fn words_are_left_out_last() {
        let left = Some(TimeLeft { seconds: 199.6, at_least: true });
        let all = RunProgress { at_least: true, failed: 3, left, ..progress() };
        let line = "120 of at least 2000 calls, 3 failed, at least 3:20 to go";
        assert_eq!(all.line(60), line);
        assert_eq!(all.line(40), "120/2000+ calls, 3 failed, 3:20+ to go");
    }

    #[test]
    fn what_waits_for_workers_is_told_if_there_is_any() {
        let line = RunProgress { queued: 1800, ..progress() }.line(60);
        assert_eq!(line, "120/2000 calls, 4 running, 1800 queued, 0:12, 3:20 to go");
    }

    #[test]
    fn failures_are_told_however_narrow_the_terminal_is() {
        let line = RunProgress { failed: 3, held: 2, ..progress() }.line(40);
        assert_eq!(line, "120/2000 calls, 3 failed, 3:20 to go");
        let line = RunProgress { held: 2, ..progress() }.line(60);
        assert_eq!(line, "120/2000 calls, 4 running, 2 waiting, 0:12, 3:20 to go");
    }

    #[test]
    fn a_full_bar_has_no_tip() {
        let line = RunProgress { done: 2000, ..progress() }.line(80);
        assert!(line.starts_with("[====================] 2000/2000"), "{line}");
    }

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
