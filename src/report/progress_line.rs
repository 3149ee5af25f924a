//! The last line of the progress of a run, as wide as the terminal: `[====>   ] 12/70 calls, 4 running, 0:12, 3:20 to go`.
//!
//! Pure.

use std::time::Duration;

use super::remaining::TimeLeft;
use ce_model::humanize::clock;

/// The greatest width of the bar, without its brackets.
const BAR: usize = 20;

/// The smallest one: below it there is no bar.
const MIN_BAR: usize = 4;

/// How far a run has come.
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
}
