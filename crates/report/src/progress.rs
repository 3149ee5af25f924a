//! Progress on a terminal: running calls with their start times, and the finished part; and bars for reading and exchanges.
//!
//! Nothing is shown if standard error is not a terminal.
//!
//! The last line of a run is as wide as the terminal: `[====>   ] 12/70 calls, 4 running, 0:12, 3:20 to go`. The time that the remaining
//! calls will take is estimated from the durations of others. Calls without a known duration make an estimate a lower bound.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{self, IsTerminal};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{mem, panic, thread};

use super::calls::title;
use super::failures::trouble_in_words;
use super::screen::{COLUMNS, draw_target};
use super::terminal::terminal_width;
use super::{harmless, say};
use ce_evaluate::session::{Frontend, InputReading};
use ce_evaluate::{Evaluation, Event, How, Outcome};
use ce_exchange::ExchangeProgress;
use ce_history::usual_seconds;
use ce_model::humanize::clock;
use ce_model::plan::CallId;
use ce_model::task::ComputationId;
use ce_storage::ResultName;
use ce_storage::records::{FailedTitle, Provenance, RunState, RunningCall};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use jiff::Timestamp;

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
    /// The calls that are left out, and calls that turned out to be equal to others. They do not count.
    left_out: HashSet<CallId>,
    /// The first call with each result.
    results: HashMap<&'a ResultName, CallId>,
    /// The plan has grown since it was last searched for calls that are left out.
    has_grown: bool,
    /// When the first call was started.
    first: Option<Instant>,
    begun: Instant,
    shown: Instant,
    /// `all` is the number of calls of computations that are asked for.
    state: ProgressLine,
}

impl<'a> Progress<'a> {
    /// A display without progress; hidden unless `visible`.
    pub fn new(evaluation: &'a Evaluation, visible: bool) -> Self {
        let target = draw_target(visible);
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
            results: HashMap::new(),
            has_grown: false,
            first: None,
            begun: Instant::now(),
            shown: Instant::now(),
            state: ProgressLine::default(),
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
        self.queued.remove(&call);
        let since = self.since.remove(&call);
        if let Some(since) = since {
            self.running.remove(&(since, call));
        }
        let is_over = outcome.is_some_and(|it| it.suspended().is_none());
        if is_over && self.suspended.remove(&call) {
            self.state.suspended -= 1;
        } else if !is_over && self.suspended.insert(call) {
            self.state.suspended += 1;
        }
        let result = outcome.and_then(Outcome::result);
        let is_another = result.is_some_and(|it| *self.results.entry(it).or_insert(call) != call);
        if is_another || outcome.map(Outcome::how) == Some(How::LeftOut) {
            self.take_out(call);
        }
        if self.left_out.contains(&call) {
            return;
        }
        // The duration of a call that a worker has begun and ended between two looks is not known.
        let since = since.filter(|since| since.elapsed() >= MIN_DURATION);
        let how = outcome.map(Outcome::how);
        let is_found = matches!(how, Some(How::Reused | How::TakenOver));
        self.state.found += usize::from(is_found);
        if let Some(reason) =
            outcome.filter(|it| it.how() == How::Failed).and_then(trouble_in_words)
        {
            self.state.failed += 1;
            if self.failures.len() < LINES {
                self.failures.push(FailedTitle { title: title(self.evaluation, call), reason });
            }
        }
        self.state.done += 1;
        self.remaining.end(computation, since.map(|since| since.elapsed().as_secs_f64()));
    }

    /// Notes that a call that was over goes on, since its outputs are needed and away.
    fn go_on(&mut self, call: CallId) {
        let computation = self.evaluation.plan.computation(call);
        let Some(computation) = computation.filter(|_| !self.left_out.contains(&call)) else {
            return;
        };
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
            Event::Hashing(call, what) => {
                if let Some(since) = self.since.get(call)
                    && let Some(text) = self.running.get_mut(&(*since, *call))
                {
                    *text = format!("{}: hashing {what}", title(self.evaluation, *call));
                }
            }
            Event::Sealed(call) => self.stop(*call),
            Event::Retried(..) => {}
        }
    }

    /// Notes why a call waits.
    fn hold(&mut self, call: CallId, what: &str) {
        let text = format!("{}: {what}", title(self.evaluation, call));
        self.held.insert(call, (Instant::now(), text));
    }

    /// Returns a line for each thing that takes time: running calls, the longest first, calls that wait for something, and the
    /// disk.
    fn lines(&self) -> Vec<String> {
        let running = self.running.iter().map(|((since, _), title)| (since.elapsed(), &**title));
        let held = self.held.values().map(|(since, text)| (since.elapsed(), &**text));
        let flush = self.evaluation.storage.availability().flushing();
        let flush = flush.map(|since| (since, "waiting for the disk, which keeps the results"));
        let slow = flush.into_iter().chain(running).chain(held);
        slow.filter(|(time, _)| *time >= MIN_TIME)
            .take(LINES)
            .map(|(time, text)| format!("{:>8}  {text}", clock(time)))
            .collect()
    }

    /// Returns the progress of the run, for others.
    pub fn state(&mut self, began: &Provenance) -> RunState {
        self.leave_out();
        let left = self.estimate();
        let mut longest = Vec::new();
        for ((since, _), title) in self.running.iter().take(LINES) {
            let seconds = since.elapsed().as_secs_f64();
            longest.push(RunningCall { title: title.clone(), seconds });
        }
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
            longest,
            failed: self.state.failed,
            failures: self.failures.clone(),
            seconds_left: left.map(|left| left.seconds),
        }
    }

    /// Shows how things stand, unless that was done a moment ago. An unchanged line is not drawn again.
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
        self.state = ProgressLine {
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
    pub fn print_above(&self, write: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
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

/// The least number of columns for a bar and the longest numbers.
const WIDE: usize = 75;

/// A progress bar.
pub struct Bar(ProgressBar);

impl Bar {
    /// A bar without progress; hidden unless `visible`.
    pub fn new(visible: bool) -> Self {
        Self::with(
            visible,
            match is_wide() {
                true => "[{bar:20}] {bytes}/{total_bytes} {bytes_per_sec}, {eta} to go",
                false => "{bytes}/{total_bytes}, {eta} to go",
            },
        )
    }

    /// A bar for this number of calls; hidden unless `visible`.
    pub fn of_calls(visible: bool, calls: usize) -> Self {
        let bar = Self::with(
            visible,
            match is_wide() {
                true => "[{bar:20}] {pos}/{len} calls, {elapsed}",
                false => "{pos}/{len} calls, {elapsed}",
            },
        );
        bar.begin(calls as u64);
        bar
    }

    fn with(visible: bool, text: &str) -> Self {
        let target = draw_target(visible);
        let bar = ProgressBar::with_draw_target(None, target);
        let style = ProgressStyle::with_template(text);
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
        Self(bar)
    }

    /// Sets the total, in bytes or calls.
    pub fn begin(&self, bytes: u64) {
        self.0.set_length(bytes);
    }

    /// Adds to the progress, in bytes or calls.
    pub fn advance(&self, bytes: u64) {
        self.0.inc(bytes);
    }

    /// Writes to the terminal while the bar is hidden.
    pub fn print_above(&self, write: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        self.0.suspend(write)
    }

    /// Takes the bar away.
    pub fn clear(&self) {
        self.0.finish_and_clear();
    }
}

/// Whether the terminal has room for a bar beside its numbers. A line that wraps is not taken away.
fn is_wide() -> bool {
    terminal_width(&io::stderr()).is_none_or(|columns| columns >= WIDE)
}

/// Sets the text of a bar. It is drawn only if it has changed.
fn set_text(bar: &ProgressBar, text: &str) {
    let text = harmless(text);
    if bar.message() != text {
        bar.set_message(text.into_owned());
    }
}

/// Pushes or pulls; if that takes a while, shows on a terminal how far it is.
pub fn exchanging<T>(progress: &ExchangeProgress, exchange: impl FnOnce() -> T) -> T {
    let text = "{wide_msg}";
    thread::scope(|scope| {
        let (sender, end) = mpsc::channel::<()>();
        let showing = move || {
            let bar = Bar::with(io::stderr().is_terminal(), text);
            while end.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                if let Some(shown) = progress.shown() {
                    set_text(&bar.0, &shown);
                }
            }
            bar.clear();
        };
        // Without a thread, nothing is shown.
        drop(thread::Builder::new().spawn_scoped(scope, showing));
        let exchanged = exchange();
        // Goes also if that panics.
        drop(sender);
        exchanged
    })
}

/// Does some work that reads inputs. If that takes a while, shows on a terminal how many bytes of how many were read, or that
/// something is read.
pub fn while_reading(done: &dyn Fn() -> (u64, u64), read: InputReading<'_>) {
    if !io::stderr().is_terminal() {
        return read();
    }
    let read = &Mutex::new(read);
    let lock = || read.lock().unwrap_or_else(PoisonError::into_inner);
    thread::scope(|scope| {
        let (sender, end) = mpsc::channel::<()>();
        let reading = move || {
            // Goes when all is read, or reading panics.
            let _sender = sender;
            lock()();
        };
        let Ok(reader) = thread::Builder::new().spawn_scoped(scope, reading) else {
            return lock()();
        };
        let (bar, mut waiting) = (Bar::new(true), Some(Bar::with(true, "{msg}")));
        while end.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
            let (bytes, of) = done();
            if of > 0 {
                waiting.take().iter().for_each(Bar::clear);
                bar.begin(of);
                bar.0.set_position(bytes);
            } else if let Some(waiting) = &waiting {
                // The size of a pipe is unknown.
                set_text(&waiting.0, "reading inputs");
            }
        }
        waiting.iter().chain([&bar]).for_each(Bar::clear);
        reader.join().unwrap_or_else(|panic| panic::resume_unwind(panic));
    });
}

/// The front end of sessions that shows the progress to its user.
pub fn terminal() -> Frontend {
    Frontend { notify: |text| say("ce", &text), while_reading }
}

/// The greatest width of the bar, without its brackets.
const BAR_WIDTH: usize = 20;

/// The smallest width: below it there is no bar.
const MIN_BAR: usize = 4;

/// The progress of a run.
#[derive(Clone, Copy, Debug, Default)]
struct ProgressLine {
    /// The calls that are over.
    done: usize,
    /// All calls that are known and asked for.
    all: usize,
    /// Whether there may be more.
    at_least: bool,
    /// The calls that were found.
    found: usize,
    /// The calls that run.
    running: usize,
    /// The calls that wait for workers.
    queued: usize,
    /// The calls that are suspended.
    suspended: usize,
    /// The calls that wait for another run, or until files have settled.
    held: usize,
    /// The calls that have failed.
    failed: usize,
    /// The time since the run began.
    since: Duration,
    /// The time until it ends, if that can be estimated.
    left: Option<TimeLeft>,
}

impl ProgressLine {
    /// The line, of at most this many columns. On narrow terminals the bar is shorter, then parts are left out, and then words.
    fn line(&self, columns: usize) -> String {
        let text = self.text(columns, false);
        let text = if text.len() > columns { self.text(columns, true) } else { text };
        let room = columns.saturating_sub(text.len() + "[] ".len()).min(BAR_WIDTH);
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
struct Remaining {
    computations: Vec<CallsLeft>,
}

/// An estimate of the time that is left.
#[derive(Clone, Copy, Debug, PartialEq)]
struct TimeLeft {
    seconds: f64,
    /// Whether it will take longer, since the durations of some calls are not known.
    at_least: bool,
}

/// The calls of one computation.
#[derive(Clone, Debug, Default)]
struct CallsLeft {
    /// The calls that are not over, whether they run or not.
    left: usize,
    /// The calls that were executed in this run.
    executed: usize,
    /// The calls that were not executed: they were found, or failed before.
    others: usize,
    /// The sum of the durations of those that were executed.
    seconds: f64,
    /// The usual duration in earlier runs, once it was asked for.
    earlier: Option<Option<f64>>,
}

impl Remaining {
    fn calls_left(&mut self, computation: ComputationId) -> &mut CallsLeft {
        let at = computation.index();
        if at >= self.computations.len() {
            self.computations.resize_with(at + 1, CallsLeft::default);
        }
        &mut self.computations[at]
    }

    /// Adds a call that is left.
    fn add(&mut self, computation: ComputationId) {
        self.calls_left(computation).left += 1;
    }

    /// Notes that a call is over, and how many seconds it took if it was executed.
    fn end(&mut self, computation: ComputationId, seconds: Option<f64>) {
        let calls = self.calls_left(computation);
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
    fn busy(&self) -> f64 {
        self.computations.iter().map(|calls| calls.seconds).sum()
    }

    /// The computations with remaining calls whose duration is neither known nor requested yet.
    fn unknown(&self) -> Vec<ComputationId> {
        let mut unknown = Vec::new();
        for (at, it) in self.computations.iter().enumerate() {
            if it.left > 0 && it.executed == 0 && it.earlier.is_none() {
                unknown.push(ComputationId::at(at));
            }
        }
        unknown
    }

    /// Notes the usual duration in earlier runs, in seconds, if one is known.
    fn learn(&mut self, computation: ComputationId, seconds: Option<f64>) {
        self.calls_left(computation).earlier = Some(seconds);
    }

    /// Estimates how long it takes until all calls are over, if this number of calls run at the same time on average. `running`
    /// are the calls that run, and for how many seconds they have. `None` if nothing is known of the remaining calls.
    fn estimate(
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

    fn progress() -> ProgressLine {
        ProgressLine {
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
    fn a_narrow_terminal_shortens_the_bar_first() {
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
    fn unknown_times_and_totals_are_left_out() {
        let line = ProgressLine { left: None, at_least: true, ..progress() }.line(80);
        assert!(
            line.ends_with("] 120 of at least 2000 calls, 100 reused, 4 running, 0:12"),
            "{line}"
        );
        let left = Some(TimeLeft { seconds: 60.0, at_least: true });
        let line = ProgressLine { left, ..progress() }.line(40);
        assert_eq!(line, "120/2000 calls, at least 1:00 to go");
        let some = ProgressLine { suspended: 2, ..progress() };
        assert!(some.line(120).contains(", 4 running, 2 suspended, 0:12, "), "{}", some.line(120));
        let nothing = ProgressLine::default().line(40);
        assert_eq!(nothing, "0/0 calls, 0 reused, 0 running, 0:00");
    }

    #[test]
    fn a_narrow_terminal_drops_words_last() {
        let left = Some(TimeLeft { seconds: 199.6, at_least: true });
        let all = ProgressLine { at_least: true, failed: 3, left, ..progress() };
        let line = "120 of at least 2000 calls, 3 failed, at least 3:20 to go";
        assert_eq!(all.line(60), line);
        assert_eq!(all.line(40), "120/2000+ calls, 3 failed, 3:20+ to go");
    }

    #[test]
    fn queued_calls_are_counted_if_there_are_any() {
        let line = ProgressLine { queued: 1800, ..progress() }.line(60);
        assert_eq!(line, "120/2000 calls, 4 running, 1800 queued, 0:12, 3:20 to go");
    }

    #[test]
    fn failures_are_reported_however_narrow_the_terminal_is() {
        let line = ProgressLine { failed: 3, held: 2, ..progress() }.line(40);
        assert_eq!(line, "120/2000 calls, 3 failed, 3:20 to go");
        let line = ProgressLine { held: 2, ..progress() }.line(60);
        assert_eq!(line, "120/2000 calls, 4 running, 2 waiting, 0:12, 3:20 to go");
    }

    #[test]
    fn a_full_bar_has_no_arrow_head() {
        let line = ProgressLine { done: 2000, ..progress() }.line(80);
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
    fn the_estimate_divides_the_remaining_mean_times_by_the_slots() {
        let mut remaining = left(&[10]);
        assert_eq!(estimate(&remaining, &[], 2), None, "nothing is known");
        [2.0, 4.0].into_iter().for_each(|seconds| remaining.end(first(), Some(seconds)));
        assert_eq!(estimate(&remaining, &[], 1), Some(24.0));
        assert_eq!(estimate(&remaining, &[], 4), Some(6.0));
        // Two run, one of them longer than usual.
        assert_eq!(estimate(&remaining, &[(0, 1.0), (0, 9.0)], 2), Some(10.0));
    }

    #[test]
    fn the_estimate_is_at_least_the_longest_call() {
        let mut remaining = left(&[2, 1]);
        remaining.learn(first(), Some(1.0));
        remaining.learn(ComputationId::at(1), Some(60.0));
        assert_eq!(estimate(&remaining, &[], 8), Some(60.0));
        assert_eq!(estimate(&remaining, &[(1, 50.0)], 8), Some(10.0));
    }

    #[test]
    fn times_of_earlier_runs_count_until_a_call_was_executed() {
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
    fn the_estimate_expects_as_many_reused_calls_as_before() {
        let mut remaining = left(&[200]);
        (0..99).for_each(|_| remaining.end(first(), None));
        remaining.end(first(), Some(10.0));
        let seconds = estimate(&remaining, &[], 1).unwrap();
        assert!((19.0..21.0).contains(&seconds), "{seconds}");
        (0..100).for_each(|_| remaining.end(first(), None));
        assert_eq!(estimate(&remaining, &[], 1), None, "nothing is left");
    }
}
