//! The printer of a run: standard output, progress, and failures on standard error. For scripts, only the paths of the outputs; of a
//! worker, what it does.
//!
//! Events wait in a queue, so a slow or closed output does not delay the evaluation.

use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::thread;
use std::time::{Duration, Instant};

use super::calls::{ShownOutput, shown_outputs};
use super::failures::remembered_points;
use super::terminal::without_controls;
use super::{Failures, Progress, Reporter, TICK, say};
use ce_evaluate::session::{Observer, Progression, Session};
use ce_evaluate::{Evaluation, Event, WorkerEvent};
use ce_model::exit::{Error, Exit};
use ce_model::humanize::counted;
use ce_model::sweep::{SweepPoint, point_title};
use ce_storage::records::{FailedCall, OutputSource, Provenance, Ticket, TicketEnd};
use ce_storage::{ResultName, StorageError, state_interval};

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
    /// The error because of which nothing more is written.
    broken: Option<io::Error>,
}

impl<'a> EventPrinter<'a> {
    /// Prints events to `out` as a reporter formats them, after its first text. With `progress`,
    /// shows running calls on a terminal.
    pub fn new(
        program: &'static str,
        evaluation: &'a Evaluation,
        (reporter, text): (Box<dyn Reporter + 'a>, Vec<u8>),
        progress: bool,
        out: impl Write + 'a,
    ) -> Self {
        let progress = Progress::new(evaluation, progress);
        let (failures, out) = (Failures::default(), Box::new(out));
        Self { program, evaluation, reporter, progress, failures, text, out, broken: None }
    }

    /// Prints nothing but failures and progress.
    pub fn silent(evaluation: &'a Evaluation, progress: bool) -> Self {
        Self::new("ce", evaluation, (Box::new(Silent), Vec::new()), progress, io::sink())
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
        let &Progression { events, interrupted_by, notice, note } = progression;
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
                        thread::sleep(PAUSE);
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
            WorkerEvent::Ended(ticket, Some(end)) => match end {
                TicketEnd::Published(call) if call.source == OutputSource::Executed => {
                    count(&self.executed);
                }
                TicketEnd::Published(_) => count(&self.found),
                TicketEnd::Failed(failed) => {
                    count(&self.failed);
                    match failed.storage {
                        true => self.record_broken(failed),
                        false => say(format_args!("{}: failed: {}", failed.name, failed.reason)),
                    }
                }
                TicketEnd::Audited(_) => count(&self.audited),
                TicketEnd::Refused(why) => {
                    count(&self.refused);
                    say(format_args!("{}: refused: {why}", title(ticket)));
                }
                TicketEnd::Suspended(call) => say(format_args!("{call}: suspended")),
                TicketEnd::OutOfTime(_) => {
                    say(format_args!("{}: the time of the worker is over", title(ticket)));
                }
                TicketEnd::Lost(how) => {
                    say(format_args!("{}: not executed: {how}", title(ticket)));
                }
            },
        }
    }

    /// Counts a call that has failed because of the storage, and prints why.
    fn record_broken(&self, failed: &FailedCall) {
        count(&self.broken);
        let hint = failed.hint.as_ref().map(|hint| format!("\n  try: {hint}")).unwrap_or_default();
        say("ce", &format_args!("{}: failed: {}{hint}", failed.name, failed.reason));
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
