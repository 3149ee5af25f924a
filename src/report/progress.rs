//! Progress on a terminal: running calls with their start times, and the finished part.
//!
//! Nothing is shown if standard error is not a terminal.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::evaluate::{Evaluation, Event, Outcome};
use crate::plan::CallId;
use crate::words;

/// The shortest time between changes of the display.
pub const TICK: Duration = Duration::from_millis(100);

/// The greatest number of running calls that are shown.
const LINES: usize = 8;

/// The time after which a running call is shown.
const MIN_TIME: Duration = Duration::from_millis(200);

/// A progress display.
pub struct Progress<'a> {
    evaluation: &'a Evaluation,
    all: MultiProgress,
    total: ProgressBar,
    lines: Vec<ProgressBar>,
    running: BTreeMap<(Instant, CallId), String>,
    since: std::collections::HashMap<CallId, Instant>,
    begun: Instant,
    shown: Instant,
    done: u64,
    reused: u64,
}

impl<'a> Progress<'a> {
    /// A display without progress; hidden unless `visible`.
    pub fn new(evaluation: &'a Evaluation, visible: bool) -> Self {
        let target =
            if visible { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let all = MultiProgress::with_draw_target(target);
        let total = ProgressBar::new(evaluation.plan.calls().len() as u64);
        let style = ProgressStyle::with_template("[{bar:20}] {pos}/{len} {wide_msg}");
        total.set_style(
            style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "),
        );
        let total = all.add(total);
        Self {
            evaluation,
            all,
            total,
            lines: Vec::new(),
            running: BTreeMap::new(),
            since: std::collections::HashMap::new(),
            begun: Instant::now(),
            shown: Instant::now(),
            done: 0,
            reused: 0,
        }
    }

    /// Takes note of an event.
    pub fn event(&mut self, event: &Event) {
        match event {
            Event::Started(call, ..) => {
                let now = Instant::now();
                self.running.insert((now, *call), self.evaluation.title(*call));
                self.since.insert(*call, now);
            }
            Event::Ended(call) => {
                self.done += 1;
                let outcome = self.evaluation.outcome(*call);
                self.reused +=
                    u64::from(matches!(outcome, Some(Outcome::Reused(_) | Outcome::TakenOver(_))));
                if let Some(since) = self.since.remove(call) {
                    self.running.remove(&(since, *call));
                }
            }
            Event::Expanded(..) => self.total.set_length(self.evaluation.plan.calls().len() as u64),
            Event::Retried(..) | Event::Held(..) | Event::Unsettled(..) => {}
        }
    }

    /// Shows how things stand, unless that was done a moment ago.
    pub fn show(&mut self) {
        if self.all.is_hidden() || self.shown.elapsed() < TICK {
            return;
        }
        self.shown = Instant::now();
        let long: Vec<String> = (self.running.iter())
            .filter(|((since, _), _)| since.elapsed() >= MIN_TIME)
            .take(LINES)
            .map(|((since, _), title)| format!("{:>8}  {title}", words::clock(since.elapsed())))
            .collect();
        self.lines.resize_with(long.len().max(self.lines.len()), || {
            let line = ProgressBar::new_spinner();
            let style = ProgressStyle::with_template("{wide_msg}");
            line.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
            self.all.insert_before(&self.total, line)
        });
        for line in self.lines.drain(long.len()..) {
            line.finish_and_clear();
            self.all.remove(&line);
        }
        for (line, text) in self.lines.iter().zip(long) {
            line.set_message(text);
        }
        self.total.set_position(self.done);
        let (reused, running) = (self.reused, self.running.len());
        let time = words::clock(self.begun.elapsed());
        self.total.set_message(format!("calls, {reused} found, {running} running, {time}"));
    }

    /// Writes to the terminal while the display is hidden.
    ///
    /// # Errors
    ///
    /// Returns the error of `write`.
    pub fn aside(&self, write: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        self.all.suspend(write)
    }

    /// Takes the display away.
    pub fn clear(&self) {
        for line in &self.lines {
            line.finish_and_clear();
        }
        self.total.finish_and_clear();
    }
}
