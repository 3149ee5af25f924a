//! What does not go as it should, for the user to read: on standard error.

use std::error::Error;
use std::fmt::Write;

use super::{View, harmless};
use crate::evaluate::{Event, Outcome};
use crate::plan::CallId;
use crate::storage::Memory;
use crate::storage::record::{FailureRecord, Stamp};

/// How many lines of a log are shown.
const LINES: usize = 12;

/// Says in words what the user may want to know of an event; `None` if it goes as it should.
pub fn trouble(view: View<'_>, event: &Event) -> Option<String> {
    match event {
        Event::Started(call, _, memory) => {
            remembered(&view.title(*call), memory.as_deref()?, ["is tried again", "is made again"])
        }
        Event::Retried(call, outcome) => Some(failure(view, *call, outcome)? + "  trying again"),
        Event::Held(call, _, holder) => {
            Some(format!("{} waits for {holder}, which computes it", view.title(*call)))
        }
        Event::Ended(call) => match view.evaluation.outcome(*call)? {
            Outcome::Missing(_, memory) => {
                remembered(&view.title(*call), memory.as_deref()?, ["failed last", "was there"])
            }
            outcome => failure(view, *call, outcome),
        },
    }
}

/// Says in words what became of a call before: it failed, or was taken away.
fn remembered(title: &str, memory: &Memory, [failed, gone]: [&str; 2]) -> Option<String> {
    if let Some(FailureRecord { reason, recorded, .. }) = &memory.failure {
        return Some(format!("{title} {failed}; {reason}, at {:.0}", recorded.at));
    }
    let Stamp { host, user, at, .. } = &memory.collected.as_ref()?.collected;
    Some(format!("{title} {gone}; its result was collected at {at:.0} by {user} on {host}"))
}

/// Says in words how a call failed, and what it printed last; `None` if it did not fail.
fn failure(view: View<'_>, call: CallId, outcome: &Outcome) -> Option<String> {
    let Outcome::Failed { name, error, log } = outcome else { return None };
    let mut text = format!("{} failed: {error}\n", view.title(call));
    let causes = std::iter::successors(error.source(), |&error| error.source());
    causes.for_each(|cause| line(&mut text, "because", &cause.to_string()));
    line(&mut text, "call", &name.short());
    if let Some(log) = log {
        line(&mut text, "log", &view.shown(&log.name));
        let lines: Vec<&str> = log.tail.lines().collect();
        for printed in &lines[lines.len().saturating_sub(LINES)..] {
            line(&mut text, "   |", &harmless(printed));
        }
    }
    if let Some(hint) = error.hint() {
        line(&mut text, "try", hint);
    }
    Some(text)
}

fn line(text: &mut String, word: &str, rest: &str) {
    let colon = if word.ends_with('|') { "" } else { ":" };
    // Writing to a string cannot fail.
    let _written = writeln!(text, "  {word}{colon} {rest}");
}
