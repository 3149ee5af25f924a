//! The points of sweeps at which calls failed: a few lines after everything else.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use crate::evaluate::{CallError, Evaluation, Outcome, Unfinished};
use crate::plan::CallId;
use crate::words::counted;

/// The greatest number of points that get a line of their own.
const POINTS: usize = 8;

/// The greatest number of different failures that are told.
const FAILURES: usize = 5;

/// The greatest number of points that are named in a line.
const NAMED: usize = 3;

/// Calls at points that have failed alike.
#[derive(Default)]
struct AlikeCalls {
    count: usize,
    /// The first of them in the order of the points, by the rows of these.
    first: BTreeSet<(Vec<u32>, CallId)>,
}

impl Evaluation {
    /// The failures at points of sweeps, a line for each or for each kind; none if there are none.
    pub fn failed_points(&self) -> Vec<String> {
        let mut places: BTreeMap<(String, String), usize> = BTreeMap::new();
        let mut alike: Vec<((String, String), AlikeCalls)> = Vec::new();
        for (call, planned) in self.plan.calls().filter(|(_, planned)| planned.point.is_some()) {
            let Some(what) = self.outcome(call).and_then(what) else { continue };
            let key = (self.title_at_any_point(call), what);
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
            calls.first.insert((self.plan.rows(planned.point), call));
            if calls.first.len() > POINTS {
                calls.first.pop_last();
            }
        }
        let mut lines = self.lines(&alike);
        if self.outcomes().any(Outcome::is_remembered) {
            lines.push("try: --retry-failed executes those again that failed before".to_owned());
        }
        lines
    }

    fn lines(&self, alike: &[((String, String), AlikeCalls)]) -> Vec<String> {
        let all: usize = alike.iter().map(|(_, calls)| calls.count).sum();
        let words = |(_, call): &(_, CallId)| self.point_words(*call).unwrap_or_default();
        if all <= POINTS {
            let lines = alike.iter().flat_map(|((title, what), calls)| {
                calls.first.iter().map(move |call| format!("{}: {title} {what}", words(call)))
            });
            return lines.collect();
        }
        let line = |((title, what), calls): &((String, String), AlikeCalls)| {
            let named: Vec<String> = calls.first.iter().take(NAMED).map(words).collect();
            let others = if calls.count > NAMED { ", ..." } else { "" };
            let count = counted(calls.count, "point");
            format!("{title} {what}: {count}: {}{others}", named.join(", "))
        };
        let mut lines: Vec<String> = alike.iter().take(FAILURES).map(line).collect();
        if alike.len() > FAILURES {
            let rest: usize = alike[FAILURES..].iter().map(|(_, calls)| calls.count).sum();
            lines.push(format!("and {}", counted(rest, "other failure")));
        }
        lines
    }
}

/// Says in words that a call failed or is not finished, without what differs from call to call. A failure that does not
/// depend on the point is none of it.
pub(super) fn what(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Failed { error, .. } => match &**error {
            CallError::Remembered(failure) => Some(format!("failed before: {}", failure.reason)),
            error if error.is_common() => None,
            error => Some(format!("failed: {error}")),
        },
        Outcome::Unfinished(_, Unfinished::Suspended(_)) => Some("is suspended".to_owned()),
        Outcome::Unfinished(_, why) => Some(format!("is not finished: {why}")),
        _ => None,
    }
}
