//! Progress on a terminal: running calls with their start times, and the finished part.
//!
//! Nothing is shown if standard error is not a terminal.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, Instant};
use std::{io, mem};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use jiff::Timestamp;

use super::bar::set_text;
use super::columns::terminal_width;
use super::failed_points::what;
use super::progress_line::RunProgress;
use super::remaining::{Remaining, TimeLeft};
use super::title;
use ce_evaluate::{Evaluation, Event, How, Outcome};
use ce_history::usual_seconds;
use ce_model::humanize;
use ce_model::plan::CallId;
use ce_storage::records::{FailedTitle, Provenance, RunState, RunningCall};

/// The shortest time between changes of the display.
pub const TICK: Duration = Duration::from_millis(100);

/// The greatest number of running calls that are shown.
const LINES: usize = 8;

/// The time after which a running call is shown.
const MIN_TIME: Duration = Duration::from_millis(200);

/// The least duration of an execution.
const MIN_DURATION: Duration = Duration::from_millis(1);

/// The time after which it is estimated how long the run will take.
const MIN_ESTIMATE: Duration = Duration::from_secs(2);

/// The width of a terminal that does not tell its own.
const COLUMNS: usize = 80;

/// A progress display.
pub struct Progress<'a> {
    evaluation: &'a Evaluation,
    all: MultiProgress,
    total: ProgressBar,
    lines: Vec<ProgressBar>,
    running: BTreeMap<(Instant, CallId), String>,
    since: HashMap<CallId, Instant>,
    /// The calls that wait for workers.
    queued: HashSet<CallId>,
    /// The calls that wait for something but a worker: since when, and for what.
    held: BTreeMap<CallId, (Instant, String)>,
    /// The first calls that have failed.
    failures: Vec<FailedTitle>,
    suspended: HashSet<CallId>,
    remaining: Remaining,
    /// The calls that were counted as remaining, and tables.
    counted: usize,
    /// The calls that are left out. They do not count.
    left_out: HashSet<CallId>,
    /// The plan has grown since it was last searched for calls that are left out.
    has_grown: bool,
    /// When the first call was started.
    first: Option<Instant>,
    begun: Instant,
    shown: Instant,
    /// `all` is the number of calls of computations that are asked for.
    state: RunProgress,
}

impl<'a> Progress<'a> {
    /// A display without progress; hidden unless `visible`.
    pub fn new(evaluation: &'a Evaluation, visible: bool) -> Self {
        let target =
            if visible { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let all = MultiProgress::with_draw_target(target);
        let total = ProgressBar::new_spinner();
        let style = ProgressStyle::with_template("{wide_msg}");
        total.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        let total = all.add(total);
        let mut progress = Self {
            evaluation,
            all,
            total,
            lines: Vec::new(),
            running: BTreeMap::new(),
            since: HashMap::new(),
            queued: HashSet::new(),
            held: BTreeMap::new(),
            failures: Vec::new(),
            suspended: HashSet::new(),
            remaining: Remaining::default(),
            counted: 0,
            left_out: HashSet::new(),
            has_grown: false,
            first: None,
            begun: Instant::now(),
            shown: Instant::now(),
            state: RunProgress::default(),
        };
        progress.grow();
        progress
    }

    /// Takes in the calls that were added to the plan.
    fn grow(&mut self) {
        let plan = &self.evaluation.plan;
        let calls = plan.calls().len();
        for call in (self.counted..calls).map(CallId::at) {
            if let Some(computation) = plan.computation(call) {
                self.remaining.add(computation);
                self.state.all += 1;
            }
        }
        self.counted = calls;
        self.has_grown = true;
    }

    /// Takes out the calls that are left out, if there may be more of them. This searches the whole plan, which grows often, so it
    /// is only done before something is shown.
    fn leave_out(&mut self) {
        if !mem::take(&mut self.has_grown) {
            return;
        }
        let left_out = self.evaluation.plan.left_out_calls().into_iter();
        // The end of a call counts by itself.
        for call in left_out.filter(|it| self.evaluation.outcome(*it).is_none()) {
            self.take_out(call);
        }
    }

    /// Takes out a call that is left out.
    fn take_out(&mut self, call: CallId) {
        let computation =
            self.evaluation.plan.computation(call).filter(|_| call.index() < self.counted);
        if let Some(computation) = computation.filter(|_| self.left_out.insert(call)) {
            self.remaining.end(computation, None);
            self.state.all -= 1;
        }
    }

    /// Records the end of a call. Tables and calls that are left out do not count.
    fn end(&mut self, call: CallId) {
        let Some(computation) = self.evaluation.plan.computation(call) else { return };
        let outcome = self.evaluation.outcome(call);
        if outcome.map(Outcome::how) == Some(How::LeftOut) {
            self.take_out(call);
        }
        if self.left_out.contains(&call) {
            return;
        }
        self.queued.remove(&call);
        let since = self.since.remove(&call);
        if let Some(since) = since {
            self.running.remove(&(since, call));
        }
        // What a worker has executed between two looks took less than can be told.
        let since = since.filter(|since| since.elapsed() >= MIN_DURATION);
        let how = outcome.map(Outcome::how);
        let is_found = matches!(how, Some(How::Reused | How::TakenOver));
        self.state.found += usize::from(is_found);
        if let Some(reason) = outcome.filter(|it| it.how() == How::Failed).and_then(what) {
            self.state.failed += 1;
            if self.failures.len() < LINES {
                self.failures.push(FailedTitle { title: title(self.evaluation, call), reason });
            }
        }
        let is_over = outcome.is_some_and(|it| it.suspended().is_none());
        if is_over && self.suspended.remove(&call) {
            self.state.suspended -= 1;
        } else if !is_over && self.suspended.insert(call) {
            self.state.suspended += 1;
        }
        self.state.done += 1;
        self.remaining.end(computation, since.map(|since| since.elapsed().as_secs_f64()));
    }

    /// Notes that a call that was over goes on, since its outputs are needed and away.
    fn go_on(&mut self, call: CallId) {
        let Some(computation) = self.evaluation.plan.computation(call) else { return };
        self.state.done = self.state.done.saturating_sub(1);
        self.remaining.add(computation);
    }

    /// Notes that a call is suspended: it does not run any more.
    fn suspend(&mut self, call: CallId) {
        if let Some(since) = self.since.remove(&call) {
            self.running.remove(&(since, call));
        }
        self.state.suspended += usize::from(self.suspended.insert(call));
    }

    /// Notes that a call does not run any more, but is not over. How long it takes is known once it is.
    fn stop(&mut self, call: CallId) {
        if let Some(since) = self.since.get(&call) {
            self.running.remove(&(*since, call));
        }
    }

    /// Takes note of an event.
    pub fn event(&mut self, event: &Event) {
        if let Event::Queued(call, _) | Event::Started(call, ..) | Event::Ended(call) = event {
            self.held.remove(call);
        }
        match event {
            Event::Queued(call, _) => {
                self.queued.insert(*call);
            }
            // Tables do not count.
            Event::Started(call, ..) if self.evaluation.plan.computation(*call).is_none() => {}
            Event::Started(call, ..) => {
                self.queued.remove(call);
                let now = Instant::now();
                self.running.insert((now, *call), title(self.evaluation, *call));
                self.since.insert(*call, now);
                self.first.get_or_insert(now);
            }
            Event::Demanded(call) => self.go_on(*call),
            Event::Ended(call) => self.end(*call),
            Event::Expanded(..) => self.grow(),
            Event::Suspended(call, ..) => self.suspend(*call),
            Event::Held(call, _, holder) => self.hold(*call, &format!("{holder} computes it")),
            Event::Unsettled(call, _) => self.hold(*call, "its files may still be written"),
            Event::Sealed(call) => self.stop(*call),
            Event::Retried(..) => {}
        }
    }

    /// Notes what a call waits for.
    fn hold(&mut self, call: CallId, what: &str) {
        let text = format!("{}: {what}", title(self.evaluation, call));
        self.held.insert(call, (Instant::now(), text));
    }

    /// What takes time: running calls, the longest first, calls that wait for something, and the disk.
    fn lines(&self) -> Vec<String> {
        let running = self.running.iter().map(|((since, _), title)| (since.elapsed(), &**title));
        let held = self.held.values().map(|(since, text)| (since.elapsed(), &**text));
        let flush = self.evaluation.storage.flushing();
        let flush = flush.map(|since| (since, "waiting for the disk, which keeps the results"));
        let slow = flush.into_iter().chain(running).chain(held);
        slow.filter(|(time, _)| *time >= MIN_TIME)
            .take(LINES)
            .map(|(time, text)| format!("{:>8}  {text}", humanize::clock(time)))
            .collect()
    }

    /// How far the run has come, for others.
    pub fn state(&mut self, began: &Provenance) -> RunState {
        self.leave_out();
        let left = self.estimate();
        let running = |((since, _), title): (&(Instant, CallId), &String)| RunningCall {
            title: title.clone(),
            seconds: since.elapsed().as_secs_f64(),
        };
        let Evaluation { task, plan, .. } = self.evaluation;
        RunState {
            task: task.name.to_string(),
            version: task.commit.short().to_owned(),
            began: began.clone(),
            at: Timestamp::now(),
            done: self.state.done,
            all: self.state.all,
            at_least: plan.grows(),
            found: self.state.found,
            queued: self.queued.len(),
            running: self.running.len(),
            longest: self.running.iter().take(LINES).map(running).collect(),
            failed: self.state.failed,
            failures: self.failures.clone(),
            seconds_left: left.map(|left| left.seconds),
        }
    }

    /// Shows how things stand, unless that was done a moment ago. What has not changed is not drawn again.
    pub fn show(&mut self) {
        if self.all.is_hidden() || self.shown.elapsed() < TICK {
            return;
        }
        self.shown = Instant::now();
        self.leave_out();
        let long = self.lines();
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
            set_text(line, &text);
        }
        let left = self.estimate();
        self.state = RunProgress {
            at_least: self.evaluation.plan.grows(),
            running: self.running.len(),
            queued: self.queued.len(),
            held: self.held.len(),
            since: self.begun.elapsed(),
            left,
            ..self.state
        };
        let columns = terminal_width(&io::stderr()).unwrap_or(COLUMNS);
        set_text(&self.total, &self.state.line(columns));
    }

    /// Estimates how long the run will take from now on.
    fn estimate(&mut self) -> Option<TimeLeft> {
        let Evaluation { task, plan, storage, .. } = self.evaluation;
        if self.begun.elapsed() < MIN_ESTIMATE {
            return None;
        }
        for computation in self.remaining.unknown() {
            let name = &task.computations[computation.index()].name;
            self.remaining.learn(computation, usual_seconds(storage, name));
        }
        let running = self.running.keys().filter_map(|(since, call)| {
            Some((plan.computation(*call)?, since.elapsed().as_secs_f64()))
        });
        let running: Vec<_> = running.collect();
        let busy = self.remaining.busy() + running.iter().map(|(_, seconds)| seconds).sum::<f64>();
        let parallel = busy / self.first?.elapsed().as_secs_f64().max(f64::MIN_POSITIVE);
        let left = self.remaining.estimate(running.into_iter(), parallel)?;
        Some(TimeLeft { at_least: left.at_least || plan.grows(), ..left })
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
