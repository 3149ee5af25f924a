//! The points of sweeps at which calls failed or are suspended: a few lines after everything else.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use super::point::point_words;
use super::title_at_any_point;
use ce_evaluate::{Absence, CallError, Evaluation, How, Outcome};
use ce_model::humanize::counted;
use ce_model::plan::{CallId, FirstRows};

/// The greatest number of points that get a line of their own.
const POINTS: usize = 8;

/// The greatest number of different failures that are told.
const FAILURES: usize = 5;

/// The greatest number of points that are named in a line.
const NAMED: usize = 3;

/// The title of calls, and what is said of them.
type AlikeKey = (String, String);

/// Calls at points that have failed alike.
#[derive(Default)]
struct AlikeCalls {
    count: usize,
    /// The first of them in the order of the points, by the rows of these.
    first: BTreeSet<(Vec<u32>, CallId)>,
}

/// The failures at points of sweeps, a line for each or for each kind; none if there are none.
pub fn failed_points(evaluation: &Evaluation) -> Vec<String> {
    let failed = |outcome: &Outcome| outcome.failure().and_then(|_| what(outcome));
    let mut lines = lines(evaluation, &alike(evaluation, failed), "other failure");
    if evaluation.outcomes().any(Outcome::is_remembered) {
        lines.push("try: --retry-failed executes those again that failed before".to_owned());
    }
    lines
}

/// The calls at points of sweeps that are suspended, a line for each or for each kind; none if there are none.
pub fn suspended_points(evaluation: &Evaluation) -> Vec<String> {
    let suspended = |outcome: &Outcome| outcome.suspended().and_then(|_| what(outcome));
    lines(evaluation, &alike(evaluation, suspended), "other call")
}

/// The calls at points of sweeps that were lost or refused, a line for each or for each kind; none if there are none.
pub fn unfinished_points(evaluation: &Evaluation) -> Vec<String> {
    let unfinished = |outcome: &Outcome| match outcome.how() {
        How::Unfinished => what(outcome),
        _ => None,
    };
    lines(evaluation, &alike(evaluation, unfinished), "other call")
}

/// The calls at points that failed before and are not executed again, a line for each kind of failure: for where the
/// failures at points are not told one by one.
pub fn remembered_points(evaluation: &Evaluation) -> Vec<String> {
    let reason = |outcome: &Outcome| match &*outcome.failure()?.error {
        CallError::Remembered(failure) => Some(failure.reason.clone()),
        _ => None,
    };
    let line = |((title, reason), calls): &(AlikeKey, AlikeCalls)| {
        let (count, points) = (counted(calls.count, "point"), named(evaluation, calls));
        format!("{count} failed before: {title}: {reason}: {points}")
    };
    alike(evaluation, reason).iter().map(line).collect()
}

/// The calls at points of which something is said in words, by their titles and these words.
fn alike(
    evaluation: &Evaluation,
    what: impl Fn(&Outcome) -> Option<String>,
) -> Vec<(AlikeKey, AlikeCalls)> {
    let mut places: BTreeMap<AlikeKey, usize> = BTreeMap::new();
    let mut first_rows = FirstRows::default();
    let mut alike: Vec<(AlikeKey, AlikeCalls)> = Vec::new();
    for (call, _) in evaluation.plan.calls().filter(|(_, planned)| planned.point.is_some()) {
        let Some(what) = evaluation.outcome(call).and_then(&what) else { continue };
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
        if calls.first.len() > POINTS {
            calls.first.pop_last();
        }
    }
    alike
}

/// The point of a call in words.
fn words(evaluation: &Evaluation, (_, call): &(Vec<u32>, CallId)) -> String {
    point_words(evaluation, *call).unwrap_or_default()
}

/// The first points of calls: `threads=8 size=1, threads=8 size=2, ...`.
fn named(evaluation: &Evaluation, calls: &AlikeCalls) -> String {
    let named: Vec<String> =
        calls.first.iter().take(NAMED).map(|it| words(evaluation, it)).collect();
    let others = if calls.count > NAMED { ", ..." } else { "" };
    named.join(", ") + others
}

fn lines(evaluation: &Evaluation, alike: &[(AlikeKey, AlikeCalls)], other: &str) -> Vec<String> {
    let all: usize = alike.iter().map(|(_, calls)| calls.count).sum();
    if all <= POINTS {
        let lines = alike.iter().flat_map(|((title, what), calls)| {
            calls
                .first
                .iter()
                .map(move |call| format!("{}: {title} {what}", words(evaluation, call)))
        });
        return lines.collect();
    }
    let line = |((title, what), calls): &(AlikeKey, AlikeCalls)| {
        let count = counted(calls.count, "point");
        format!("{title} {what}: {count}: {}", named(evaluation, calls))
    };
    let mut lines: Vec<String> = alike.iter().take(FAILURES).map(line).collect();
    if alike.len() > FAILURES {
        let rest: usize = alike[FAILURES..].iter().map(|(_, calls)| calls.count).sum();
        lines.push(format!("and {}", counted(rest, other)));
    }
    lines
}

/// Says in words that a call failed or is not finished, without what differs from call to call. A failure that does not
/// depend on the point is none of it.
pub(super) fn what(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Absent(_, Absence::Failed(failure)) => match &*failure.error {
            CallError::Remembered(failure) => Some(format!("failed before: {}", failure.reason)),
            error if error.is_common() => None,
            error => Some(format!("failed: {error}")),
        },
        Outcome::Absent(_, Absence::Suspended(_)) => Some("is suspended".to_owned()),
        Outcome::Absent(_, Absence::Unfinished(why)) => Some(format!("is not finished: {why}")),
        _ => None,
    }
}
