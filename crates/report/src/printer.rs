//! The printer of a run: standard output, progress, and failures on standard error. For scripts, only the paths of the
//! outputs; for a worker, its activity.
//!
//! Events wait in a queue, so a slow or closed output does not delay the evaluation.
//!
//! At the end, a summary says how many calls and tables ended in each way, and which results are revoked.

use std::collections::{BTreeMap, HashMap, hash_map};
use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use super::calls::{ShownOutput, has_table, shown_outputs, sweep_title};
use super::failures::remembered_points;
use super::terminal::without_controls;
use super::{Failures, Progress, Reporter, TICK, harmless, say};
use ce_evaluate::session::{Observer, Progression, Session};
use ce_evaluate::{Evaluation, Event, How, MemoryExcess, WorkerEvent};
use ce_model::exit::{Error, Exit};
use ce_model::humanize::{counted, size};
use ce_model::plan::CallId;
use ce_model::sweep::{SweepPoint, point_title};
use ce_storage::records::{FailedCall, FailureFacts, OutputSource, Provenance, Ticket, TicketEnd};
use ce_storage::{Entry, ResultName, StorageError, state_interval};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// The number of events that are printed at once.
const BATCH: usize = 10_000;

/// The number of wake-ups of the printer for single events. After that, events come too fast: a
/// wake-up costs more than printing ten.
const MAX_WAKES: usize = 20;

/// The time that events may wait after that.
const PAUSE: Duration = Duration::from_millis(4);

/// Prints the events of one evaluation.
pub struct EventPrinter<'a> {
    program: &'static str,
    evaluation: &'a Evaluation,
    reporter: Box<dyn Reporter + 'a>,
    progress: Progress<'a>,
    failures: Failures,
    /// The text to write next.
    text: Vec<u8>,
    out: Box<dyn Write + 'a>,
    /// The error that stopped the output.
    broken: Option<io::Error>,
}

impl<'a> EventPrinter<'a> {
    /// Prints events to `out` as a reporter formats them, after its first text. With `progress`,
    /// shows running calls on a terminal.
    pub fn new(
        program: &'static str,
        evaluation: &'a Evaluation,
        reporter: Box<dyn Reporter + 'a>,
        text: Vec<u8>,
        progress: bool,
        out: impl Write + 'a,
    ) -> Self {
        let progress = Progress::new(evaluation, progress);
        let (failures, out) = (Failures::default(), Box::new(out));
        Self { program, evaluation, reporter, progress, failures, text, out, broken: None }
    }

    /// Prints nothing but failures and progress.
    pub fn silent(evaluation: &'a Evaluation, progress: bool) -> Self {
        Self::new("ce", evaluation, Box::new(Silent), Vec::new(), progress, io::sink())
    }

    /// Prints which points failed before, if nothing else tells them.
    pub fn remembered(&mut self) {
        let lines = remembered_points(self.evaluation);
        lines.iter().for_each(|text| self.print_message(text));
    }

    fn event(&mut self, event: &Event) {
        self.progress.event(event);
        let formatted = self.reporter.event(event, &mut self.text);
        self.keep_error(formatted);
        if let Some(text) = self.failures.message(self.evaluation, event) {
            self.write();
            self.print_message(text.trim_end());
        }
    }

    fn print_message(&mut self, text: &str) {
        let printed = self.progress.print_above(|| {
            say(self.program, &text);
            Ok(())
        });
        self.keep_error(printed);
    }

    /// Prints the end. Returns why the output could not be written, if it could not.
    pub fn end(mut self, jobs: &[Option<ResultName>], exit: Exit) -> Option<io::Error> {
        let formatted = self.reporter.end(jobs, exit, &mut self.text);
        self.keep_error(formatted);
        self.write();
        self.broken
    }

    fn write(&mut self) {
        if !self.text.is_empty() && self.broken.is_none() {
            let (out, text) = (&mut self.out, &self.text);
            let written = self.progress.print_above(|| {
                out.write_all(text)?;
                out.flush()
            });
            self.keep_error(written);
        }
        self.text.clear();
    }

    fn keep_error(&mut self, written: io::Result<()>) {
        if let Err(error) = written {
            self.broken.get_or_insert(error);
        }
    }
}

/// Evaluates, and prints nothing but failures and progress.
///
/// # Errors
///
/// Fails as [`Session::evaluate`] does.
pub fn evaluate_quietly(session: &Session, evaluation: &Evaluation) -> Result<(), Error> {
    let mut printer = EventPrinter::silent(evaluation, session.executes());
    session.evaluate(evaluation, &mut printer)?;
    printer.remembered();
    Ok(())
}

impl Observer for EventPrinter<'_> {
    /// Prints all events until there are no more, that the user asked to stop, and each notice. Every few seconds it notes how far
    /// the run has come.
    fn follow(&mut self, progression: &Progression<'_>) {
        let &Progression { events, wait, interrupted_by, notice, note } = progression;
        let began = Provenance::now();
        let mut noted = Instant::now();
        self.write();
        let mut interrupted = false;
        let mut woken = 0;
        loop {
            match events.recv_timeout(TICK) {
                Ok(event) => {
                    self.event(&event);
                    woken += 1;
                    if woken > MAX_WAKES {
                        wait(PAUSE);
                    }
                    events.try_iter().take(BATCH).for_each(|event| self.event(&event));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            while let Some(text) = notice() {
                self.print_message(&text);
            }
            self.write();
            if !interrupted && interrupted_by().is_some() {
                interrupted = true;
                self.print_message(
                    "interrupted: ending the running computations (again kills them)",
                );
            }
            self.progress.show();
            if let Some(note) = note
                && noted.elapsed() > state_interval()
            {
                note(&self.progress.state(&began));
                noted = Instant::now();
            }
        }
        self.progress.clear();
        let rest: Vec<String> = self.failures.unreported().collect();
        rest.iter().for_each(|text| self.print_message(text));
    }

    fn has_reported(&self, error: &StorageError) -> bool {
        self.failures.has_reported(error)
    }
}

/// Prints a line for each output of a point that is a job: the point and the path, with a tab between.
pub fn paths_of_point(
    point: SweepPoint<'_>,
    outputs: &[String],
    storage: &Path,
    out: &mut dyn Write,
) -> io::Result<()> {
    let title = point_title(point.values());
    for name in outputs {
        writeln!(out, "{}\t{}", without_controls(&title), storage.join(name).display())?;
    }
    Ok(())
}

/// Returns a message for each literal that is not in the storage, which the tree would show.
pub fn missing_literals(evaluation: &Evaluation) -> impl Iterator<Item = String> {
    let found = evaluation.plan.literals().iter().zip(&evaluation.files.literals);
    found.filter(|(_, file)| file.is_none()).map(|(name, _)| {
        let path = evaluation.shown(name.as_ref());
        format!("the literal {name} is not in the storage; put it at {path}")
    })
}

/// Prints the paths of the outputs at the end.
pub struct OutputPaths<'a>(pub &'a Evaluation);

impl Reporter for OutputPaths<'_> {
    fn event(&mut self, _: &Event, _: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self, _: &[Option<ResultName>], _: Exit, out: &mut dyn Write) -> io::Result<()> {
        for ShownOutput { point, path, is_there, .. } in shown_outputs(self.0) {
            match point {
                _ if !is_there => {}
                Some(point) => writeln!(out, "{point}\t{path}")?,
                None => writeln!(out, "{path}")?,
            }
        }
        Ok(())
    }
}

/// Prints nothing.
pub struct Silent;

impl Reporter for Silent {
    fn event(&mut self, _: &Event, _: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self, _: &[Option<ResultName>], _: Exit, _: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }
}

/// The counts of the calls of a worker so far. Threads may count at the same time.
#[derive(Debug, Default)]
pub struct WorkerReport {
    executed: AtomicUsize,
    found: AtomicUsize,
    failed: AtomicUsize,
    broken: AtomicUsize,
    audited: AtomicUsize,
    refused: AtomicUsize,
    /// Whether the scheduler reported that a ticket is not trusted.
    distrusts: AtomicBool,
}

impl WorkerReport {
    /// Counts an event, and prints it if somebody should know of it: if `is_quiet`, only that the storage fails.
    pub fn record(&self, event: &WorkerEvent<'_>, is_quiet: bool) {
        let say = |text: fmt::Arguments<'_>| {
            if !is_quiet {
                say("ce", &text);
            }
        };
        match event {
            WorkerEvent::Began(_) | WorkerEvent::Ended(_, None) => {}
            WorkerEvent::Distrusted(why) => {
                count(&self.refused);
                if !self.distrusts.swap(true, Ordering::Relaxed) {
                    let hint = "give the run and this worker the same --key FILE, if they do not share a home; else somebody has changed it";
                    say(format_args!("warning: not executed: {why}\n  try: {hint}"));
                }
            }
            WorkerEvent::Ended(ticket, Some(end)) => match end {
                TicketEnd::Published(call) if call.source == OutputSource::Executed => {
                    count(&self.executed);
                }
                TicketEnd::Published(_) => count(&self.found),
                TicketEnd::Failed(failed) => {
                    count(&self.failed);
                    let FailedCall { name, failure } = failed;
                    match failure.of_storage {
                        true => self.record_broken(failed),
                        false => say(format_args!("{name}: failed: {}", failure.reason)),
                    }
                }
                TicketEnd::Audited(_) => count(&self.audited),
                TicketEnd::Refused(why) => {
                    count(&self.refused);
                    say(format_args!("{}: refused: {why}", title(ticket)));
                }
                TicketEnd::Suspended(call) => say(format_args!("{call}: suspended")),
                TicketEnd::OutOfMemory | TicketEnd::OutOfTime(_) => {
                    say(format_args!("{}: the time of the worker is over", title(ticket)));
                }
                TicketEnd::Lost(how) => {
                    say(format_args!("{}: not executed: {how}", title(ticket)));
                }
            },
        }
    }

    /// Counts a call that has failed because of the storage, and prints why.
    fn record_broken(&self, FailedCall { name, failure }: &FailedCall) {
        count(&self.broken);
        let FailureFacts { reason, hint, .. } = failure;
        let hint = hint.as_ref().map(|hint| format!("\n  try: {hint}")).unwrap_or_default();
        say("ce", &format_args!("{name}: failed: {reason}{hint}"));
    }

    /// The number of calls that failed because the storage could not be read or written.
    pub fn broken(&self) -> usize {
        self.broken.load(Ordering::Relaxed)
    }

    /// Returns the counts in words.
    pub fn summary(&self) -> String {
        let all = [&self.executed, &self.found, &self.failed, &self.refused, &self.audited];
        let [executed, found, failed, refused, audited] =
            all.map(|counter| counter.load(Ordering::Relaxed));
        let others =
            [(found, "reused"), (failed, "failed"), (refused, "refused"), (audited, "audited")];
        let others = others.into_iter().filter(|(count, _)| *count > 0);
        let others = others.map(|(count, what)| format!(", {count} {what}"));
        format!("{} computed{}", counted(executed, "call"), others.collect::<String>())
    }
}

/// Counts one more.
fn count(counter: &AtomicUsize) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// Returns the title of a ticket for people.
fn title(ticket: &Ticket) -> String {
    format!("{} of {}", ticket.computation, ticket.task)
}

/// The number of calls by outcome. Calls of a plan that turn out to be one, since they have the same inputs, count once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// All of them, whether they have ended or not.
    pub calls: usize,
    /// The numbers of ended calls, by outcome.
    ended: [usize; How::ALL.len()],
    /// Failed calls that make rows of tables.
    allowed: usize,
}

/// The numbers of calls and of tables by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// The calls of computations.
    pub calls: Tally,
    /// The tables of sweeps.
    pub tables: Tally,
    /// Whether there may be more calls: the points of a sweep are not known.
    pub at_least: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it like this")]
pub(super) const fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The number of calls of computations by outcome.
pub fn tally(evaluation: &Evaluation) -> Tally {
    totals(evaluation).calls
}

/// The numbers of calls and of tables by outcome.
pub fn totals(evaluation: &Evaluation) -> Totals {
    let [mut calls, mut tables] = [(); 2].map(|()| CallCounter::default());
    for (call, _) in evaluation.plan.calls() {
        match evaluation.plan.computation(call) {
            Some(_) => calls.add(evaluation, call),
            None if !has_table(evaluation, call) => {}
            None => tables.add(evaluation, call),
        }
    }
    Totals { calls: calls.tally, tables: tables.tally, at_least: evaluation.plan.grows() }
}

/// Returns, for each sweep with unselected points, the numbers of selected and of unselected points.
pub fn left_out(evaluation: &Evaluation) -> impl Iterator<Item = String> + '_ {
    evaluation.plan.partial_sweeps().into_iter().map(|(sweep, [asked, all])| {
        let title = match evaluation.task.sweeps[sweep.index()].has_table {
            true => sweep_title(evaluation, sweep),
            false => "the task".to_owned(),
        };
        format!("{asked} of {all} points of {title}: {} were not asked for", all - asked)
    })
}

/// Counts calls by outcome.
#[derive(Debug, Default)]
pub(super) struct CallCounter<'a> {
    pub(super) tally: Tally,
    /// The results that were counted, and how their calls ended.
    results: HashMap<&'a ResultName, How>,
}

impl<'a> CallCounter<'a> {
    /// Adds a call, and its outcome if it has ended. A call whose result was counted is the same call: if this run has
    /// executed it, its outcome is Executed.
    pub(super) fn add(&mut self, evaluation: &'a Evaluation, call: CallId) {
        let Tally { calls, ended, allowed } = &mut self.tally;
        let Some(outcome) = evaluation.outcome(call) else {
            *calls += 1;
            return;
        };
        let how = outcome.how();
        if let Some(name) = outcome.result() {
            match self.results.entry(name) {
                hash_map::Entry::Vacant(new) => drop(new.insert(how)),
                hash_map::Entry::Occupied(mut known) => {
                    if how == How::Executed {
                        ended[known.insert(how) as usize] -= 1;
                        ended[how as usize] += 1;
                    }
                    return;
                }
            }
        }
        *calls += 1;
        ended[how as usize] += 1;
        *allowed += usize::from(evaluation.is_allowed(call, outcome));
    }
}

impl Tally {
    /// Returns how many calls ended like this.
    pub const fn count(&self, how: How) -> usize {
        self.ended[how as usize]
    }

    /// The counts of tables, in words: `3 tables: 2 reused, 1 made`.
    pub(super) fn of_tables(self) -> String {
        self.words("table", "made")
    }

    fn words(&self, noun: &str, executed: &str) -> String {
        // Failures are printed before the calls that they block.
        let mut order = How::ALL;
        order.swap(How::Blocked as usize, How::Failed as usize);
        let mut parts = Vec::new();
        for how in order.into_iter().filter(|how| self.count(*how) > 0) {
            let word = if how == How::Executed { executed } else { how.word() };
            parts.push(format!("{} {word}", self.count(how)));
        }
        let colon = if parts.is_empty() { "" } else { ": " };
        format!("{}{colon}{}", counted(self.calls, noun), parts.join(", "))
    }
}

/// As JSON, seven counts are always there; the others are left out if they are zero.
impl Serialize for Tally {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut counts = serializer.serialize_map(None)?;
        counts.serialize_entry("calls", &self.calls)?;
        for how in How::ALL {
            let is_always_there = matches!(
                how,
                How::Reused
                    | How::TakenOver
                    | How::Executed
                    | How::Missing
                    | How::Blocked
                    | How::Failed
                    | How::Interrupted
            );
            if is_always_there || self.count(how) > 0 {
                counts.serialize_entry(&how, &self.count(how))?;
            }
        }
        if self.allowed > 0 {
            counts.serialize_entry("allowed", &self.allowed)?;
        }
        counts.end()
    }
}

/// The counts in words: `3 calls: 2 reused, 1 computed`.
impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words("call", How::Executed.word()))
    }
}

/// The counts in words: `3 calls: 2 reused, 1 computed; 1 table: 1 made`.
impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { calls, tables, at_least } = self;
        write!(f, "{}{calls}", if *at_least { "at least " } else { "" })?;
        if tables.calls == 0 { Ok(()) } else { write!(f, "; {}", tables.of_tables()) }
    }
}

/// Returns a line for each computation that has used more memory than it had reserved.
pub fn memory_excess(evaluation: &Evaluation) -> Vec<String> {
    let excess = evaluation.memory_excess().into_iter();
    let lines = excess.map(|(computation, MemoryExcess { reserved, used })| {
        format!("{computation} used {} of {} reserved", size(used), size(reserved))
    });
    lines.collect()
}

/// The greatest number of results that are named.
const MOST_REVOKED: usize = 20;

/// Returns a line for each result that is revoked, with the reason, whether it was reused or executed again with the same
/// outputs. An unreadable revocation does not stop the evaluation.
pub fn revoked_results(evaluation: &Evaluation) -> Vec<String> {
    let revocations = evaluation.storage.revocations().index().unwrap_or_default();
    if revocations.is_empty() {
        return Vec::new();
    }
    let mut revoked = BTreeMap::new();
    for outcome in evaluation.outcomes() {
        let Some(outputs) = outcome.known() else { continue };
        let is_again = outcome.how() == How::Executed;
        let entry = Entry::Call(outputs.name.clone());
        let record = evaluation.storage.records().read_fitting(&entry).ok().flatten();
        let reason = match &record {
            Some(record) if !is_again => revocations.reason_of(&entry, record),
            _ => revocations.reason(&entry, &outputs.digests()),
        };
        if let Some(reason) = reason {
            revoked.insert(outputs.name.short(), (reason, is_again));
        }
    }
    let lines = revoked.iter().map(|(name, (reason, is_again))| {
        let (name, reason) = (harmless(name), harmless(reason));
        if *is_again {
            return format!(
                "warning: {name} was executed again and made the revoked outputs: {reason}\n  \
                 try: correct the computation or its inputs, and commit that"
            );
        }
        format!("warning: the result {name} is revoked: {reason}\n  try: ce run --force {name}")
    });
    let mut lines: Vec<String> = lines.collect();
    let more = lines.len().saturating_sub(MOST_REVOKED);
    lines.truncate(MOST_REVOKED);
    if more > 0 {
        lines.push(format!(
            "warning: {more} more results are revoked\n  try: ce run --force CALL computes one again"
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_counts_tables_after_calls() {
        let tally = |calls, counts: &[(How, usize)]| {
            let mut tally = Tally { calls, ..Tally::default() };
            for (how, count) in counts {
                tally.ended[*how as usize] = *count;
            }
            tally
        };
        let calls = tally(16, &[(How::Executed, 13), (How::Failed, 2), (How::Blocked, 1)]);
        let tables = tally(2, &[(How::Executed, 1), (How::Blocked, 1)]);
        let totals = Totals { calls, tables: Tally::default(), at_least: false };
        assert_eq!(totals.to_string(), "16 calls: 13 computed, 2 failed, 1 blocked");
        let text = "16 calls: 13 computed, 2 failed, 1 blocked; 2 tables: 1 made, 1 blocked";
        assert_eq!(Totals { tables, ..totals }.to_string(), text);
        let unknown = Totals { calls: Tally::default(), at_least: true, ..totals };
        assert_eq!(unknown.to_string(), "at least 0 calls");
    }
}
