//! Failures, for the user to read on standard error.
//!
//! A storage that fails may do so for thousands of calls: each cause is told once, and then counted.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::error::Error;
use std::fmt::Write;

use super::harmless;
use crate::evaluate::{Evaluation, Event, Outcome};
use crate::expand::ExclusionFault;
use crate::plan::CallId;
use crate::storage::records::{FailureRecord, Provenance};
use crate::storage::{Damage, PriorAttempt, StorageError};
use crate::words::counted;

/// How many lines of a log are shown.
const LINES: usize = 12;

/// The failures of the storage so far.
#[derive(Debug, Default)]
pub struct Failures {
    /// Why the storage failed, and for how many calls that was not told any more.
    untold: BTreeMap<String, usize>,
}

impl Failures {
    /// Says in words what the user may want to know of an event; `None` if it goes as it should,
    /// or if the storage fails as it was told before.
    pub fn tell(&mut self, evaluation: &Evaluation, event: &Event) -> Option<String> {
        match event {
            Event::Started(call, _, prior) => {
                remembered(&evaluation.title(*call), prior.as_deref()?)
            }
            Event::Retried(call, outcome) => {
                Some(failure(evaluation, *call, outcome)? + "  trying again")
            }
            Event::Held(call, _, holder) => {
                Some(format!("{} waits for {holder}, which computes it", evaluation.title(*call)))
            }
            Event::Unsettled(call, name) => {
                let file = evaluation.shown(&name.output(0));
                let title = evaluation.title(*call);
                Some(format!(
                    "{title} waits a minute: {file} has no record, and may still be written"
                ))
            }
            Event::Expanded(call, unmatched) => points_warning(evaluation, *call, unmatched),
            Event::Ended(call) => match evaluation.outcome(*call)? {
                outcome if self.was_told(outcome) => None,
                outcome => failure(evaluation, *call, outcome),
            },
        }
    }

    /// Counts a failure of the storage; tells whether another one of this cause was told.
    fn was_told(&mut self, outcome: &Outcome) -> bool {
        let Outcome::Failed { error, .. } = outcome else { return false };
        if !error.is_storage() {
            return false;
        }
        match self.untold.entry(cause(&**error)) {
            Entry::Vacant(new) => {
                new.insert(0);
                false
            }
            Entry::Occupied(mut count) => {
                *count.get_mut() += 1;
                true
            }
        }
    }

    /// Whether a call was told to have failed for the same reason.
    pub fn have_told(&self, error: &StorageError) -> bool {
        self.untold.contains_key(&cause(error))
    }

    /// Says how many calls failed beside those that were told, a line for each cause.
    pub fn rest(&self) -> impl Iterator<Item = String> + '_ {
        let untold = self.untold.iter().filter(|(_, count)| **count > 0);
        untold.map(|(cause, &count)| {
            format!("{} failed for the same reason: {cause}", counted(count, "more call"))
        })
    }
}

/// Why, in the end, the storage failed: the system's words if it was that.
fn cause(error: &dyn Error) -> String {
    let causes = std::iter::successors(error.source(), |&error| error.source());
    causes.last().map_or_else(|| error.to_string(), ToString::to_string)
}

/// Says in words what is odd about the computed points of a sweep.
fn points_warning(
    evaluation: &Evaluation,
    call: CallId,
    unmatched: &[ExclusionFault],
) -> Option<String> {
    let title = evaluation.title(call);
    let rows = evaluation.plan.gathered(call)?.rows()?;
    match unmatched {
        _ if rows.points.is_empty() => {
            Some(format!("warning: {title} has no points: its table is empty"))
        }
        [] => None,
        [first, rest @ ..] => {
            let more = if rest.is_empty() {
                String::new()
            } else {
                format!(", and so are {} more rows", rest.len())
            };
            Some(format!("warning: {title}: exclude.tsv: {first}{more}"))
        }
    }
}

/// Says in words what became of a call before: it failed, was damaged, or was taken away.
fn remembered(title: &str, prior: &PriorAttempt) -> Option<String> {
    if let Some(Damage { file, what }) = &prior.damage {
        return Some(format!(
            "{title} is computed again, and the old files are quarantined; {file}: {what}"
        ));
    }
    if let Some(FailureRecord { reason, recorded, .. }) = &prior.failure {
        return Some(format!("{title} is tried again; {reason}, at {:.0}", recorded.at));
    }
    let Provenance { host, user, at, .. } = &prior.collected.as_ref()?.collected;
    Some(format!("{title} is made again; its result was collected at {at:.0} by {user} on {host}"))
}

/// Says in words how a call failed, and what it printed last, or why it is not finished; `None` if
/// neither is so.
fn failure(evaluation: &Evaluation, call: CallId, outcome: &Outcome) -> Option<String> {
    if let Outcome::Unfinished(name, why) = outcome {
        let mut text = format!("{} is not finished: {why}\n", evaluation.title(call));
        line(&mut text, "call", &name.short());
        return Some(text);
    }
    let Outcome::Failed { name, error, log, hint } = outcome else { return None };
    let mut text = format!("{} failed: {error}\n", evaluation.title(call));
    let causes = std::iter::successors(error.source(), |&error| error.source());
    causes.for_each(|cause| line(&mut text, "because", &cause.to_string()));
    line(&mut text, "call", &name.short());
    if let Some(log) = log {
        line(&mut text, "log", &evaluation.shown(&log.name));
        let lines: Vec<&str> = log.tail.lines().collect();
        for printed in &lines[lines.len().saturating_sub(LINES)..] {
            line(&mut text, "   |", &harmless(printed));
        }
    }
    if let Some(hint) = hint {
        line(&mut text, "try", &harmless(hint));
    }
    Some(text)
}

fn line(text: &mut String, word: &str, rest: &str) {
    let colon = if word.ends_with('|') { "" } else { ":" };
    // Writing to a string cannot fail.
    let _written = writeln!(text, "  {word}{colon} {rest}");
}
