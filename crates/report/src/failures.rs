//! Failures, for the user to read on standard error: as they happen, and those at points of sweeps in a few lines at the end.
//!
//! A storage that fails may do so for thousands of calls: each cause is reported once, and then counted. What happens alike at
//! many points of a sweep is reported for the first few of them, and then counted.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt::Write;

use super::calls::{given_values, point_of_call, title, title_at_any_point};
use super::harmless;
use ce_evaluate::{
    Absence, CallError, CallFailure, Evaluation, Event, How, Outcome, SuspendedCall,
};
use ce_model::exit::Explain;
use ce_model::humanize::{counted, quoted};
use ce_model::plan::{CallId, FirstRows, Operation, ReplicatedPoint};
use ce_model::sweep::{EndReason, ExclusionFault, REPLICATE, ReplicatesEnd, point_title};
use ce_model::task::WORKFLOW_TEXT;
use ce_storage::records::{FailureRecord, Provenance};
use ce_storage::{Damage, LogTail, PriorAttempt, StorageError};
use ce_task::load::WarningKind;

/// The number of lines of a log that are shown.
const LINES: usize = 12;

/// The number of points that are reported in full of what happens alike at several, and how many are named of the others.
const POINTS_IN_FULL: usize = 3;

/// The failures so far.
#[derive(Debug, Default)]
pub struct Failures {
    /// Causes why the storage or a repository failed, and the number of calls for which they were not reported any more.
    unreported: BTreeMap<String, usize>,
    /// The events at points of sweeps.
    at_points: BTreeMap<PointEvent, SharedPoints>,
    /// The calls that a limit has ended, and that have more now.
    continued: BTreeSet<CallId>,
    /// Whether `ce shell` was named.
    has_named_shell: bool,
}

/// An event of calls at several points: of the same computation, for the same reason.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PointEvent {
    /// The title of the calls, without their points.
    title: String,
    /// The event, in words.
    what: String,
}

/// The points at which the same has happened.
#[derive(Debug, Default)]
struct SharedPoints {
    count: usize,
    /// Some that were not reported.
    unreported: Vec<String>,
}

impl Failures {
    /// Returns a message on an event that the user may want to see; `None` if it goes as it should, or if the storage fails as it
    /// was reported before.
    pub fn message(&mut self, evaluation: &Evaluation, event: &Event) -> Option<String> {
        match event {
            Event::Retried(call, outcome) if outcome.continues() => {
                self.continued.insert(*call);
            }
            Event::Started(call, ..) if self.continued.remove(call) => return None,
            _ => {}
        }
        if self.is_shared(evaluation, event) {
            return None;
        }
        match event {
            Event::Started(call, _, prior) => {
                remembered(&title(evaluation, *call), prior.as_deref()?)
            }
            Event::Retried(call, outcome) if outcome.continues() => {
                Some(format!("{}: {}", title(evaluation, *call), outcome.reason()?))
            }
            Event::Retried(call, outcome) => {
                Some(failure(evaluation, *call, outcome)? + "  trying again")
            }
            Event::Held(call, _, holder) => {
                Some(format!("{} waits for {holder}, which computes it", title(evaluation, *call)))
            }
            Event::Suspended(call, _, suspended) => {
                let text = suspended_text(evaluation, *call, suspended);
                Some(text + "  waiting until it goes on")
            }
            Event::Unsettled(call, name) => {
                let file = evaluation.shown(&name.output(0));
                let title = title(evaluation, *call);
                Some(format!(
                    "{title} waits a minute: {file} has no record, and may still be written"
                ))
            }
            Event::Queued(..) | Event::Demanded(_) | Event::Hashing(..) | Event::Sealed(_) => None,
            Event::Expanded(call, unmatched) => points_warning(evaluation, *call, unmatched),
            Event::Ended(call) => match evaluation.outcome(*call)? {
                outcome if self.is_repeated(outcome) => None,
                outcome if outcome.known().is_some() => uncertain_medians(evaluation, *call),
                // The end names it.
                outcome
                    if outcome.is_remembered() && evaluation.plan.call(*call).point.is_some() =>
                {
                    None
                }
                outcome => {
                    let text = failure(evaluation, *call, outcome)?;
                    Some(text + &self.shell(evaluation, outcome).unwrap_or_default())
                }
            },
        }
    }

    /// The line that names the command to look into a failed call with a log, of the first that was executed in a sandbox.
    fn shell(&mut self, evaluation: &Evaluation, outcome: &Outcome) -> Option<String> {
        outcome.failure()?.log.as_ref()?;
        if self.has_named_shell {
            return None;
        }
        evaluation
            .storage
            .attempts()
            .prior(outcome.name(), None)?
            .failure
            .filter(FailureRecord::is_isolated)?;
        self.has_named_shell = true;
        let mut text = String::new();
        let call = quoted(&evaluation.shown(&outcome.name().short()));
        line(&mut text, "to look inside", &format!("ce shell {call}"));
        Some(text)
    }

    /// Counts what happens at a point of a sweep. Returns whether the same was reported of a few other points.
    fn is_shared(&mut self, evaluation: &Evaluation, event: &Event) -> bool {
        let Some((call, what)) = point_event(evaluation, event) else { return false };
        let Some(point) = point_of_call(evaluation, call) else { return false };
        let title = title_at_any_point(evaluation, call);
        let shared = self.at_points.entry(PointEvent { title, what }).or_default();
        shared.count += 1;
        let is_shared = shared.count > POINTS_IN_FULL;
        if is_shared && shared.unreported.len() < POINTS_IN_FULL {
            shared.unreported.push(point);
        }
        is_shared
    }

    /// Counts a failure that does not depend on the call. Returns whether another failure with this cause was reported.
    fn is_repeated(&mut self, outcome: &Outcome) -> bool {
        let Some(CallFailure { error, .. }) = outcome.failure() else { return false };
        if !error.is_common() {
            return false;
        }
        match self.unreported.entry(cause(&**error)) {
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

    /// Whether a call was reported to have failed for the same reason.
    pub fn has_reported(&self, error: &StorageError) -> bool {
        self.unreported.contains_key(&cause(error))
    }

    /// Returns how many calls failed that were not reported, a line for each cause.
    pub fn unreported(&self) -> impl Iterator<Item = String> + '_ {
        let at_points = self.at_points.iter().filter(|(_, shared)| shared.count > POINTS_IN_FULL);
        let at_points =
            at_points.map(|(PointEvent { title, what }, SharedPoints { count, unreported })| {
                let (more, points) = (count - POINTS_IN_FULL, unreported.join(", "));
                let others = if more > unreported.len() { ", ..." } else { "" };
                format!("{}: {title} {what}: {points}{others}", counted(more, "more point"))
            });
        let unreported = self.unreported.iter().filter(|(_, count)| **count > 0);
        at_points.chain(unreported.map(|(cause, &count)| {
            format!("{} failed for the same reason: {cause}", counted(count, "more call"))
        }))
    }
}

/// Returns the call of an event, and the event in words, without parts that differ from point to point; `None` if nothing is left,
/// or the storage is to blame.
fn point_event(evaluation: &Evaluation, event: &Event) -> Option<(CallId, String)> {
    let (call, what) = match event {
        Event::Started(call, _, prior) => (call, tried_again(prior.as_deref()?)),
        Event::Retried(call, outcome) if outcome.continues() => (call, trouble_in_words(outcome)?),
        Event::Retried(call, outcome) => {
            (call, format!("{}, and was tried again", trouble_in_words(outcome)?))
        }
        Event::Held(call, _, holder) => (call, format!("waits for {holder}")),
        Event::Suspended(call, ..) => (call, "is suspended, and is waited for".to_owned()),
        Event::Unsettled(call, _) => (call, "waits a minute: it has no record".to_owned()),
        // The end names all of them at once.
        Event::Ended(call) if evaluation.outcome(*call)?.is_remembered() => return None,
        Event::Ended(call) => (call, trouble_in_words(evaluation.outcome(*call)?)?),
        Event::Expanded(..)
        | Event::Queued(..)
        | Event::Demanded(_)
        | Event::Hashing(..)
        | Event::Sealed(_) => {
            return None;
        }
    };
    evaluation.plan.call(*call).point.map(|_| (*call, what))
}

/// Describes in words the reason for executing a call again, without times and files.
fn tried_again(prior: &PriorAttempt) -> String {
    match prior {
        PriorAttempt { damage: Some(_), .. } => "is computed again".to_owned(),
        PriorAttempt { failure: Some(record), .. } => {
            format!("is tried again; {}", record.failure.reason)
        }
        PriorAttempt { suspended: Some(_), .. } => {
            "is begun anew; it is suspended for another commit".to_owned()
        }
        PriorAttempt { away: true, .. } => {
            "is executed again, since its outputs are away".to_owned()
        }
        PriorAttempt { .. } => "is made again".to_owned(),
    }
}

/// Returns the root cause of a failure of the storage: the system's words if it was that.
fn cause(error: &dyn Error) -> String {
    let causes = std::iter::successors(error.source(), |&error| error.source());
    causes.last().map_or_else(|| error.to_string(), ToString::to_string)
}

/// Describes in words the oddities of the computed points of a sweep.
fn points_warning(
    evaluation: &Evaluation,
    call: CallId,
    unmatched: &[ExclusionFault],
) -> Option<String> {
    let title = title(evaluation, call);
    let rows = evaluation.plan.gathered(call)?.rows()?;
    let warning = |oddity: WarningKind| {
        let hint = oddity.hint().unwrap_or_default();
        Some(format!("warning: {title}: {oddity}\n  try: {hint}"))
    };
    match unmatched {
        _ if rows.points.is_empty() && !rows.is_partial() => warning(WarningKind::NoPoints),
        [] if rows.points.blank_rows() > 0 => {
            warning(WarningKind::BlankRows(rows.points.blank_rows()))
        }
        [] => None,
        [first, rest @ ..] => {
            let more = if rest.is_empty() {
                String::new()
            } else {
                format!(", and so are {} more rows", rest.len())
            };
            let hint = first.hint().unwrap_or_default();
            Some(format!("warning: {title}: exclude.tsv: {first}{more}\n  try: {hint}"))
        }
    }
}

/// Warns of the points of a sweep whose replicates have ended, and whose medians are less certain than they should be.
fn uncertain_medians(evaluation: &Evaluation, call: CallId) -> Option<String> {
    let sweep = evaluation.plan.gathered(call)?;
    let (rows, ends) = (sweep.rows()?, sweep.ends()?);
    let rules = &evaluation.task.sweeps[sweep.sweep.index()].product;
    let until = rules.replicates.as_ref()?.until.as_ref()?;
    let points = rows.replicated.iter().zip(ends).filter_map(|(of_point, end)| {
        let point = rows.points.get(of_point.rows.clone().next()?)?;
        let point = point_title(point.values().filter(|(name, _)| *name != REPLICATE));
        let at = if point.is_empty() { "" } else { " at " };
        let replicates = counted(of_point.rows.len(), "replicate");
        Some(format!("{} after {replicates}{at}{}", end.shortfall()?, harmless(&point)))
    });
    let points: Vec<String> = points.collect();
    let (first, rest) = points.split_at(points.len().min(POINTS_IN_FULL));
    let more = if rest.is_empty() { String::new() } else { format!("; and {} more", rest.len()) };
    let has_no_interval = ends.iter().any(ReplicatesEnd::has_no_interval);
    let lacks = |(of_point, end): (&ReplicatedPoint, &ReplicatesEnd)| {
        end.reason == EndReason::Most && of_point.rows.len() < end.replicates as usize
    };
    let first_short = ends.iter().find(|end| end.reason != EndReason::Narrow);
    let hint = match first_short.map(|end| end.reason) {
        _ if rows.replicated.iter().zip(ends).any(lacks) => {
            "leave out fewer replicates with :where or :exclude, or accept a larger share"
        }
        _ if has_no_interval => {
            "let more replicates succeed, and the call that makes the column read replicate: an interval needs 6 values"
        }
        Some(EndReason::HalfFailed) => "ce table says why they failed",
        Some(EndReason::ZeroMedian) => {
            "look at a column whose median is not 0, or give a number of replicates"
        }
        _ => "allow more replicates, or accept a larger share",
    };
    (!points.is_empty()).then(|| {
        format!(
            "warning: {}: the median of {} is less certain than {} at {}: {}{more}\n  try: {hint}",
            title(evaluation, call),
            harmless(&until.column),
            until.precision,
            counted(points.len(), "point"),
            first.join("; ")
        )
    })
}

/// Describes in words the earlier fate of a call: it failed, was damaged, or was taken away.
fn remembered(title: &str, prior: &PriorAttempt) -> Option<String> {
    if let Some(Damage { file, what }) = &prior.damage {
        return Some(format!(
            "{title} is computed again, and the old files are quarantined; {file}: {what}"
        ));
    }
    if let Some(FailureRecord { failure, recorded, .. }) = &prior.failure {
        let reason = &failure.reason;
        return Some(format!("{title} is tried again; {reason}, at {:.0}", recorded.at));
    }
    if let Some(other) = &prior.suspended {
        return Some(format!(
            "{title} is begun anew; {other} is suspended, and not continued for another commit since it is not isolated"
        ));
    }
    if prior.away {
        return Some(format!(
            "{title} is executed again: its outputs are away, and needed; they must be what is recorded"
        ));
    }
    let Provenance { host, user, at, .. } = &prior.collected.as_ref()?.collected;
    Some(format!("{title} is made again; its result was collected at {at:.0} by {user} on {host}"))
}

/// Describes in words the failure of a call and the end of its log, or why it is not finished; `None` if it ended well.
fn failure(evaluation: &Evaluation, call: CallId, outcome: &Outcome) -> Option<String> {
    if let Some(suspended) = outcome.suspended() {
        return Some(suspended_text(evaluation, call, suspended));
    }
    if let Outcome::Absent(name, Absence::Unfinished(why)) = outcome {
        let mut text = format!("{} is not finished: {why}\n", title(evaluation, call));
        line(&mut text, "call", &name.short());
        line(&mut text, "try", &why.hint().unwrap_or_default());
        return Some(text);
    }
    let CallFailure { error, log, hint } = outcome.failure()?;
    let mut text = format!("{} failed: {error}\n", title(evaluation, call));
    let causes = std::iter::successors(error.source(), |&error| error.source());
    causes.for_each(|cause| line(&mut text, "because", &cause.to_string()));
    line(&mut text, "call", &outcome.name().short());
    let given = given_values(evaluation, call);
    if !given.is_empty() {
        line(&mut text, "reads", &given);
    }
    if let Some(log) = log {
        line(&mut text, "log", &evaluation.shown(&log.name));
        let lines: Vec<&str> = log.tail.lines().collect();
        for printed in &lines[lines.len().saturating_sub(LINES)..] {
            line(&mut text, "   |", &harmless(printed));
        }
    }
    if let Some(number) = line_in_text(evaluation, call, log.as_ref()) {
        line(&mut text, "at", &format!("{WORKFLOW_TEXT}:{number}"));
    }
    if let Some(hint) = hint {
        line(&mut text, "try", &harmless(hint));
    }
    Some(text)
}

/// The line of a computation that stands in the text of the workflow: the one that its log names last, or else its head.
fn line_in_text(evaluation: &Evaluation, call: CallId, log: Option<&LogTail>) -> Option<usize> {
    let Operation::Computation(id) = evaluation.plan.call(call).operation else { return None };
    let computation = &evaluation.task.computations[id.index()];
    let text = evaluation.task.text_computation(computation)?;
    let named = log.and_then(|log| text.file().line_named_in(&log.tail));
    Some(named.unwrap_or(text.head_line))
}

/// Describes in words the suspension of a call.
fn suspended_text(evaluation: &Evaluation, call: CallId, suspended: &SuspendedCall) -> String {
    let why = suspended.to_string();
    let mut text = format!("{} is suspended: {}\n", title(evaluation, call), harmless(&why));
    line(&mut text, "call", &suspended.name.short());
    text
}

fn line(text: &mut String, word: &str, rest: &str) {
    let colon = if word.ends_with('|') { "" } else { ":" };
    // Writing to a string cannot fail.
    let _written = writeln!(text, "  {word}{colon} {rest}");
}

/// The greatest number of points that get a line of their own.
const SINGLE_POINTS: usize = 8;

/// The greatest number of different failures that are reported.
const FAILURES: usize = 5;

/// The greatest number of points that are named in a line.
const NAMED: usize = 3;

/// The title of calls, and the text about them.
type AlikeKey = (String, String);

/// Calls at points that have failed alike.
#[derive(Default)]
struct AlikeCalls {
    count: usize,
    /// The first of them in the order of the points, by the rows of these.
    first: BTreeSet<(Vec<u32>, CallId)>,
}

/// The failures at points of sweeps, a line for each or for each kind.
pub fn failed_points(evaluation: &Evaluation) -> Vec<String> {
    let failed = alike(evaluation, How::Failed, trouble_in_words);
    let mut lines = lines(evaluation, &failed, "other failure");
    if evaluation.outcomes().any(Outcome::is_remembered) {
        lines.push("try: --retry-failed executes those again that failed before".to_owned());
    }
    lines
}

/// The suspended calls at points of sweeps, a line for each or for each kind.
pub fn suspended_points(evaluation: &Evaluation) -> Vec<String> {
    lines(evaluation, &alike(evaluation, How::Suspended, trouble_in_words), "other call")
}

/// The lost or refused calls at points of sweeps, a line for each or for each kind.
pub fn unfinished_points(evaluation: &Evaluation) -> Vec<String> {
    lines(evaluation, &alike(evaluation, How::Unfinished, trouble_in_words), "other call")
}

/// The calls at points that failed before and are not executed again, a line for each kind of failure: for where the
/// failures at points are not reported one by one.
pub fn remembered_points(evaluation: &Evaluation) -> Vec<String> {
    let remembered = alike(evaluation, How::Failed, |outcome| match &*outcome.failure()?.error {
        CallError::Remembered(record) => Some(record.failure.reason.clone()),
        _ => None,
    });
    let lines = remembered.iter().map(|((title, reason), calls)| {
        let (count, points) = (counted(calls.count, "point"), named(evaluation, calls));
        format!("{count} failed before: {title}: {reason}: {points}")
    });
    lines.collect()
}

/// The calls at points that ended like this and have a description, by their titles and descriptions.
fn alike(
    evaluation: &Evaluation,
    how: How,
    what: impl Fn(&Outcome) -> Option<String>,
) -> Vec<(AlikeKey, AlikeCalls)> {
    let mut places: BTreeMap<AlikeKey, usize> = BTreeMap::new();
    let mut first_rows = FirstRows::default();
    let mut alike: Vec<(AlikeKey, AlikeCalls)> = Vec::new();
    for (call, _) in evaluation.plan.calls().filter(|(_, planned)| planned.point.is_some()) {
        let Some(what) = evaluation.outcome(call).filter(|it| it.how() == how).and_then(&what)
        else {
            continue;
        };
        let key = (title_at_any_point(evaluation, call), what);
        let calls = match places.entry(key) {
            Entry::Occupied(place) => &mut alike[*place.get()].1,
            Entry::Vacant(place) => {
                alike.push((place.key().clone(), AlikeCalls::default()));
                place.insert(alike.len() - 1);
                let last = alike.len() - 1;
                &mut alike[last].1
            }
        };
        calls.count += 1;
        calls
            .first
            .insert((evaluation.plan.first_rows(&evaluation.task, call, &mut first_rows), call));
        if calls.first.len() > SINGLE_POINTS {
            calls.first.pop_last();
        }
    }
    alike
}

/// The point of a call in words.
fn words(evaluation: &Evaluation, call: CallId) -> String {
    point_of_call(evaluation, call).unwrap_or_default()
}

/// The first points of calls: `threads=8 size=1, threads=8 size=2, ...`.
fn named(evaluation: &Evaluation, calls: &AlikeCalls) -> String {
    let named: Vec<String> =
        calls.first.iter().take(NAMED).map(|(_, call)| words(evaluation, *call)).collect();
    let others = if calls.count > NAMED { ", ..." } else { "" };
    named.join(", ") + others
}

fn lines(evaluation: &Evaluation, alike: &[(AlikeKey, AlikeCalls)], other: &str) -> Vec<String> {
    let all: usize = alike.iter().map(|(_, calls)| calls.count).sum();
    if all <= SINGLE_POINTS {
        let lines = alike.iter().flat_map(|((title, what), calls)| {
            calls
                .first
                .iter()
                .map(move |(_, call)| format!("{}: {title} {what}", words(evaluation, *call)))
        });
        return lines.collect();
    }
    let mut lines = Vec::new();
    for ((title, what), calls) in alike.iter().take(FAILURES) {
        let count = counted(calls.count, "point");
        lines.push(format!("{title} {what}: {count}: {}", named(evaluation, calls)));
    }
    if alike.len() > FAILURES {
        let rest: usize = alike[FAILURES..].iter().map(|(_, calls)| calls.count).sum();
        lines.push(format!("and {}", counted(rest, other)));
    }
    lines
}

/// Describes in words that a call failed or is not finished, without details that differ from call to call. `None` for a
/// failure that does not depend on the point.
pub(super) fn trouble_in_words(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Absent(_, Absence::Failed(failure)) => match &*failure.error {
            CallError::Remembered(record) => {
                Some(format!("failed before: {}", record.failure.reason))
            }
            error if error.is_common() => None,
            error => Some(format!("failed: {error}")),
        },
        Outcome::Absent(_, Absence::Suspended(_)) => Some("is suspended".to_owned()),
        Outcome::Absent(_, Absence::Unfinished(why)) => Some(format!("is not finished: {why}")),
        _ => None,
    }
}
