//! What a worker prints: failures and refusals as they happen, and a summary at its end.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::say;
use ce_evaluate::WorkerEvent;
use ce_model::humanize::counted;
use ce_storage::records::{FailedCall, OutputSource, Ticket, TicketEnd};

/// What a worker has done so far. Threads may count at the same time.
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
    pub fn tell(&self, event: &WorkerEvent<'_>, is_quiet: bool) {
        let say = |text: fmt::Arguments<'_>| {
            if !is_quiet {
                say("ce", &text);
            }
        };
        let count = |counter: &AtomicUsize| counter.fetch_add(1, Ordering::Relaxed);
        match event {
            WorkerEvent::Began(_) | WorkerEvent::Ended(_, None) => {}
            WorkerEvent::Ended(ticket, Some(end)) => match end {
                TicketEnd::Published(call) if call.source == OutputSource::Executed => {
                    count(&self.executed);
                }
                TicketEnd::Published(_) => {
                    count(&self.found);
                }
                TicketEnd::Failed(failed) => {
                    count(&self.failed);
                    match failed.storage {
                        true => self.tell_broken(failed),
                        false => say(format_args!("{}: failed: {}", failed.name, failed.reason)),
                    }
                }
                TicketEnd::Audited(_) => {
                    count(&self.audited);
                }
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
    fn tell_broken(&self, failed: &FailedCall) {
        self.broken.fetch_add(1, Ordering::Relaxed);
        let hint = failed.hint.as_ref().map(|hint| format!("\n  try: {hint}")).unwrap_or_default();
        say("ce", &format_args!("{}: failed: {}{hint}", failed.name, failed.reason));
    }

    /// The number of calls that failed because the storage could not be read or written.
    pub fn broken(&self) -> usize {
        self.broken.load(Ordering::Relaxed)
    }

    /// What was done, in words.
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

/// What a ticket asks for, for people.
fn title(ticket: &Ticket) -> String {
    format!("{} of {}", ticket.computation, ticket.task)
}
