//! Points of sweeps in words: `threads=8 size=1000`.

use std::sync::Arc;

use super::harmless;
use ce_evaluate::Evaluation;
use ce_model::humanize::counted;
use ce_model::plan::{CallId, PlannedSweep, Source};
use ce_model::sweep::{Factor, REPLICATE, Sweep, SweepPoint, SweepPoints};

/// The greatest number of characters of a text that are shown.
const TEXT: usize = 32;

/// The greatest number of characters of a point that are shown.
const POINT: usize = 120;

/// The greatest number of factors or columns that are named.
const COLUMNS: usize = 8;

/// The numbers of points of sweeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PointCounts {
    /// The sweeps.
    pub(super) sweeps: usize,
    /// Those of which the points are not known.
    pub(super) unknown: usize,
    /// The points that are known.
    pub(super) points: usize,
    /// The points of which an output of the body is not known.
    pub(super) without_result: usize,
    /// The different steps of the body at all points.
    pub(super) steps: usize,
}

/// The point of a call in words, if it depends on one: `threads=8 size=1000`.
pub(super) fn point_words(evaluation: &Evaluation, call: CallId) -> Option<String> {
    let point = evaluation.plan.point(&evaluation.task, call);
    (!point.is_empty()).then(|| words(&point))
}

/// Adds the points of a sweep, without the steps of its body.
pub(super) fn count_points(
    evaluation: &Evaluation,
    sweep: &PlannedSweep,
    counts: &mut PointCounts,
) {
    counts.sweeps += 1;
    let Some(rows) = sweep.rows() else {
        counts.unknown += 1;
        return;
    };
    counts.points += rows.points.len();
    let is_known = |source: &Source| evaluation.digest(*source).is_some();
    let without = rows.iter().filter(|(_, sources)| !sources.iter().all(is_known));
    counts.without_result += without.count();
}

/// The points of sweeps with the same rules in words: `threads (4) x size (3): 12 points are 7 calls`.
pub(super) fn points_words(
    evaluation: &Evaluation,
    sweep: &PlannedSweep,
    counts: &PointCounts,
    is_computed: bool,
) -> String {
    let rules = &evaluation.task.sweeps[sweep.sweep.index()];
    let columns = match is_computed {
        true => sweep.rows().map(|rows| computed(evaluation, rules, &rows.points)),
        false => Some(product(rules)),
    };
    let columns = columns.filter(|it| !it.is_empty()).map(|it| format!("{it}: "));
    let PointCounts { sweeps, unknown, points, steps, .. } = *counts;
    let several = if sweeps > 1 { format!(" in {sweeps} tables") } else { String::new() };
    let unknown = match unknown {
        0 => String::new(),
        _ if unknown == sweeps => return format!("{}not known", columns.unwrap_or_default()),
        _ => format!(", those of {unknown} not known"),
    };
    let is_call = evaluation.task.workflow[sweep.body].slice().is_some();
    let noun = if is_call { "call" } else { "value" };
    let fewer =
        if steps < points { format!(" are {}", counted(steps, noun)) } else { String::new() };
    let points = counted(points, "point");
    format!("{}{points}{several}{fewer}{unknown}", columns.unwrap_or_default())
}

/// Factors and the numbers of their levels: `threads (4) x size (3) x 2 replicates`.
fn product(rules: &Sweep) -> String {
    let factor = |it: &Factor| {
        let names: Vec<_> = it.points.names().iter().map(|name| harmless(name)).collect();
        format!("{} ({})", names.join("+"), it.points.len())
    };
    let factors = rules.product.factors.iter().map(factor);
    let mut parts = capped(factors.collect(), "factor");
    parts.extend(rules.product.replicates.map(|it| counted(it.get() as usize, "replicate")));
    parts.join(" x ")
}

/// Columns of computed points: `threads (4), size (3), 1 label`.
fn computed(evaluation: &Evaluation, rules: &Sweep, points: &SweepPoints) -> String {
    let is_bound = |name: &str| {
        rules.binds.iter().any(|it| evaluation.task.bound[it.index()].as_str() == name)
    };
    let names = points.names().iter().enumerate().filter(|(_, name)| *name != REPLICATE);
    let (bound, labels): (Vec<_>, Vec<_>) = names.partition(|(_, name)| is_bound(name));
    let column = |(at, name): &(usize, &String)| {
        format!("{} ({})", harmless(name), points.levels(*at).len())
    };
    let mut parts = capped(bound.iter().map(column).collect(), "column");
    if !labels.is_empty() {
        parts.push(counted(labels.len(), "label"));
    }
    parts.extend(rules.product.replicates.map(|it| counted(it.get() as usize, "replicate")));
    parts.join(", ")
}

/// The first parts, and how many more there are.
fn capped(mut parts: Vec<String>, noun: &str) -> Vec<String> {
    if parts.len() > COLUMNS {
        let more = parts.len() - COLUMNS;
        parts.truncate(COLUMNS);
        parts.push(counted(more, &format!("more {noun}")));
    }
    parts
}

/// All values of a point in words.
pub(super) fn values_words(point: SweepPoint<'_>) -> String {
    let values: Vec<(&str, &Arc<str>)> = point.values().collect();
    words(&values.iter().map(|(name, text)| (*name, &***text)).collect::<Vec<_>>())
}

/// A point in words. Long texts are cut, and those with spaces are quoted.
pub(super) fn words(point: &[(&str, &str)]) -> String {
    let words: Vec<String> =
        point.iter().map(|(name, text)| format!("{}={}", harmless(name), word(text))).collect();
    cut(&words.join(" "), POINT)
}

/// A text in words, which is cut if it is long.
pub(super) fn word(text: &str) -> String {
    let text = cut(&harmless(text).replace('\t', " "), TEXT);
    let is_plain = !text.is_empty() && !text.contains([' ', '"']);
    if is_plain { text } else { format!("\"{}\"", text.replace('"', "\\\"")) }
}

/// The first characters of a text, with `…` in place of the rest.
fn cut(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        None => text.to_owned(),
        Some(_) => text.chars().take(limit - 1).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_names_and_texts() {
        assert_eq!(words(&[("threads", "8"), ("size", "1000")]), "threads=8 size=1000");
        let odd = [("a", ""), ("b", "two words"), ("c", "a\"b"), ("d", "\u{1b}[2J\n")];
        assert_eq!(words(&odd), "a=\"\" b=\"two words\" c=\"a\\\"b\" d=\u{fffd}[2J\u{fffd}");
        let long: &str = &"x".repeat(33);
        assert_eq!(words(&[("a", long)]), format!("a={}…", "x".repeat(31)));
        assert_eq!(words(&[("a", long); 9]).chars().count(), POINT);
    }
}
