//! Calls and points of sweeps in words: titles, `threads=8 size=1000`, and the access of a call.

use std::fmt;
use std::sync::Arc;

use super::harmless;
use super::terminal::without_controls;
use ce_evaluate::{Evaluation, InspectedCall, TreeValues};
use ce_executor::{COMPUTATION, INPUTS, OUTPUTS};
use ce_history::InputTexts;
use ce_model::digest::{Digest, SHORT, is_object_id};
use ce_model::expression::{written_alone, written_contents};
use ce_model::humanize::counted;
use ce_model::name::numbered;
use ce_model::plan::{CallId, Derivation, DerivedId, PlannedSweep, Source, Step};
use ce_model::sweep::{
    Factor, REPLICATE, Replicates, SWEEP_OUTPUTS, Sweep, SweepPoint, SweepPoints, point_title,
};
use ce_model::task::{ROOT_LABEL, SweepId};
use ce_storage::Record;

/// An output of the task.
pub(super) struct ShownOutput {
    /// The point that it belongs to, if points are jobs: `n=8`.
    pub(super) point: Option<String>,
    pub(super) path: String,
    pub(super) is_there: bool,
    /// Whether it is in an archive, and not in its place.
    pub(super) is_archived: bool,
    pub(super) is_left_out: bool,
}

/// The greatest number of inputs that tell a call from others.
const GIVEN: usize = 6;

/// The task's outputs, as a user would write their paths. The path of a directory ends in a slash: it may be a link, and
/// `cp -r` then copies the target.
pub(super) fn shown_outputs(evaluation: &Evaluation) -> impl Iterator<Item = ShownOutput> + '_ {
    let rows = evaluation.plan.jobs().and_then(PlannedSweep::rows);
    let asked = evaluation.plan.asked_outputs(&evaluation.task).into_iter();
    asked.enumerate().filter_map(move |(number, source)| {
        let mut path = evaluation.shown(&evaluation.name(source)?);
        if evaluation.digest(source).is_some_and(|digest| digest.is_directory()) {
            path.push('/');
        }
        let point = match (rows, source) {
            (Some(rows), _) => {
                let point = rows.points.at(number / rows.width);
                Some(without_controls(&point_title(point.values())).into_owned())
            }
            (None, Source::Output { call, .. }) => point_of_call(evaluation, call),
            _ => None,
        };
        Some(ShownOutput {
            point,
            path,
            is_there: evaluation.is_there(source),
            is_archived: evaluation.is_archived(source),
            is_left_out: evaluation.behind(&[source]).are_left_out(),
        })
    })
}

/// The title of a call: its point if it depends on one, the name of its computation, and its label.
pub(super) fn title(evaluation: &Evaluation, call: CallId) -> String {
    let title = title_at_any_point(evaluation, call);
    point_of_call(evaluation, call)
        .map_or_else(|| title.clone(), |point| format!("{point}: {title}"))
}

/// The title of a call without its point.
pub(super) fn title_at_any_point(evaluation: &Evaluation, call: CallId) -> String {
    let path = evaluation.label_path(call);
    let label = harmless(path.as_deref().unwrap_or(ROOT_LABEL));
    match (evaluation.plan.gathered(call), evaluation.computation(call)) {
        (Some(sweep), _) => format!("{} ({label})", sweep_title(evaluation, sweep.sweep)),
        (_, Some(computation)) => format!("{} ({label})", computation.name),
        (None, None) => label.into_owned(),
    }
}

/// The inputs of a call that no call makes, as the workflow names them, with their labels: `n: INPUT('x')`. They
/// distinguish the call from other calls of its computation.
pub(super) fn given_values(evaluation: &Evaluation, call: CallId) -> String {
    let Evaluation { plan, task, .. } = evaluation;
    let arguments = task.workflow[plan.call(call).node].inputs().iter();
    let given = arguments.filter_map(|it| match plan.step(it.node) {
        Step::Leaf(_) => {
            let text = written_alone(task, it.node);
            Some(format!("{}: {text}", harmless(&it.label)))
        }
        Step::Call(_) | Step::Derived(_) | Step::All(_) | Step::PerPoint => None,
    });
    given.take(GIVEN).collect::<Vec<_>>().join(", ")
}

/// Whether a call makes a table: not if the points of its sweep are jobs of their own.
pub(super) fn has_table(evaluation: &Evaluation, call: CallId) -> bool {
    let sweep = evaluation.plan.gathered(call);
    sweep.is_some_and(|it| evaluation.task.sweeps[it.sweep.index()].has_table)
}

/// A sweep in words: `SWEEP scaling`.
pub(super) fn sweep_title(evaluation: &Evaluation, sweep: SweepId) -> String {
    let label = harmless(&evaluation.task.sweeps[sweep.index()].label);
    if label.is_empty() { "SWEEP".to_owned() } else { format!("SWEEP {label}") }
}

/// The names of the outputs of a call.
pub(super) fn output_names(evaluation: &Evaluation, call: CallId) -> impl Iterator<Item = &str> {
    let outputs = evaluation.computation(call).map(|it| it.outputs.iter().map(String::as_str));
    let count = match evaluation.plan.gathered(call) {
        Some(sweep) if has_table(evaluation, call) => 1 + usize::from(sweep.with_directory),
        _ => 0,
    };
    outputs.into_iter().flatten().chain(SWEEP_OUTPUTS.into_iter().take(count))
}

/// A derived value, as the text of the workflow has it: `TREE('lib')[00]`.
pub(super) fn derived_title(evaluation: &Evaluation, value: DerivedId, number: u8) -> String {
    match &evaluation.plan.value(value).how {
        Derivation::Tree(tree, name) => {
            let written = evaluation.task.trees[tree.index()].name.as_str();
            let name = harmless(name.as_ref().map_or(written, |name| name.as_str()));
            format!("TREE('{name}')[{number:02}]")
        }
        Derivation::Member(path) => format!("MEMBER('{}')", harmless(path.as_str())),
        Derivation::File(path) => format!("OWN('{}')", harmless(path.as_str())),
        Derivation::Literal(name) => format!("FILE('{}')", harmless(name.as_str())),
        Derivation::Contents(digest) => format!("the file {}", digest.sha1.short()),
        Derivation::Text { contents, .. } => harmless(&written_contents(contents)).into_owned(),
        Derivation::Points(points) => {
            format!("POINTS('{}')", harmless(&evaluation.task.sweeps[points.index()].label))
        }
        Derivation::Wrong(wrong) => harmless(&wrong.value).into_owned(),
    }
}

/// The commit of a Git tree, with the revision that named it, if it is known.
pub(super) fn tree_version(evaluation: &Evaluation, tree: DerivedId) -> String {
    match evaluation.tree_values(tree) {
        Some(Ok(TreeValues { version, revision: Some(revision), .. })) => {
            format!("{} at {version}", harmless(revision))
        }
        Some(Ok(TreeValues { version, .. })) => version.clone(),
        _ => "an unknown commit".to_owned(),
    }
}

/// The greatest number of characters of a text that are shown.
const TEXT: usize = 32;

/// The greatest number of characters of a point that are shown.
const POINT: usize = 120;

/// The greatest number of factors or columns that are named.
const COLUMNS: usize = 8;

/// The numbers of points of sweeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PointCounts {
    pub(super) sweeps: usize,
    /// The sweeps whose points are not known.
    pub(super) unknown: usize,
    /// The points that are known.
    pub(super) points: usize,
    /// Whether there may be more.
    pub(super) at_least: bool,
    /// The points whose replicates ended, and whose medians are less certain than they should be.
    pub(super) uncertain: usize,
    /// The points with an unknown output of the body.
    pub(super) without_result: usize,
    /// The different steps of the body at all points.
    pub(super) steps: usize,
}

/// The point of a call in words, if it depends on one: `threads=8 size=1000`.
pub(super) fn point_of_call(evaluation: &Evaluation, call: CallId) -> Option<String> {
    let point = evaluation.plan.point(&evaluation.task, call);
    (!point.is_empty()).then(|| texts_in_words(&point))
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
    counts.at_least |= sweep.grows();
    let ends = sweep.ends().unwrap_or_default();
    counts.uncertain += ends.iter().filter(|end| end.shortfall().is_some()).count();
    for (_, sources) in rows.iter() {
        let is_unknown = sources.iter().any(|source| evaluation.digest(*source).is_none());
        counts.without_result += usize::from(is_unknown);
    }
}

/// The points of sweeps with the same rules in words: `threads (4) x size (3): 12 points are 7 calls`.
pub(super) fn points_of_sweeps(
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
    let PointCounts { sweeps, unknown, points, at_least, uncertain, steps, .. } = *counts;
    let several = if sweeps > 1 { format!(" in {sweeps} tables") } else { String::new() };
    let unknown = match unknown {
        0 => String::new(),
        _ if unknown == sweeps => return format!("{}not known", columns.unwrap_or_default()),
        _ => format!(", the points of {unknown} not known"),
    };
    let is_call = evaluation.task.workflow[sweep.body].slice().is_some();
    let noun = if is_call { "call" } else { "value" };
    let fewer =
        if steps < points { format!(" are {}", counted(steps, noun)) } else { String::new() };
    let points = counted(points, "point");
    let at_least = if at_least { "at least " } else { "" };
    let uncertain = match uncertain {
        0 => String::new(),
        1 => "; 1 median is less certain".to_owned(),
        _ => format!("; {uncertain} medians are less certain"),
    };
    format!("{}{at_least}{points}{several}{fewer}{unknown}{uncertain}", columns.unwrap_or_default())
}

/// Factors and the numbers of their levels: `threads (4) x size (3) x 2 replicates`.
fn product(rules: &Sweep) -> String {
    let factors = rules.product.factors.iter().map(|Factor { points, .. }| {
        let names: Vec<_> = points.names().iter().map(|name| harmless(name)).collect();
        format!("{} ({})", names.join("+"), points.len())
    });
    let mut parts = capped(factors.collect(), "factor");
    parts.extend(rules.product.replicates.as_ref().map(replicates));
    parts.join(" x ")
}

/// Returns the number of evaluations of points: `2 replicates`, or `10 to 100 replicates until seconds ±5%`.
fn replicates(replicates: &Replicates) -> String {
    match &replicates.until {
        None => counted(replicates.most.get() as usize, "replicate"),
        Some(until) => {
            let until = until.to_string();
            format!(
                "{} to {} replicates until {}",
                replicates.least(),
                replicates.most,
                harmless(&until)
            )
        }
    }
}

/// Columns of computed points: `threads (4), size (3), files reads, 1 label`.
fn computed(evaluation: &Evaluation, rules: &Sweep, points: &SweepPoints) -> String {
    let bound: Vec<&str> =
        rules.binds.iter().map(|it| evaluation.task.bound[it.index()].as_str()).collect();
    let (mut columns, mut labels) = (Vec::new(), 0);
    for (at, name) in points.names().iter().enumerate().filter(|(_, name)| *name != REPLICATE) {
        match bound.contains(&name.as_str()) {
            true => columns.push(format!("{} ({})", harmless(name), points.levels(at).len())),
            false => labels += 1,
        }
    }
    let mut parts = capped(columns, "column");
    parts.extend(points.files().iter().map(|name| format!("files {}", harmless(name))));
    if labels > 0 {
        parts.push(counted(labels, "label"));
    }
    parts.extend(rules.product.replicates.as_ref().map(replicates));
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
pub(super) fn point_in_words(point: SweepPoint<'_>) -> String {
    let values: Vec<(&str, &Arc<str>)> = point.values().collect();
    texts_in_words(&values.iter().map(|(name, text)| (*name, &***text)).collect::<Vec<_>>())
}

/// Returns the title of a result in lists: `bench n=8 tool=a`, for its computation and the texts that it is known by.
pub(super) fn result_title(record: &Record, texts: &InputTexts) -> String {
    let texts = texts_in_words(&texts.iter().collect::<Vec<_>>());
    let what = match record {
        Record::Call(call) => call.computation.to_string(),
        Record::Job(job) => format!("task {}", job.task),
        Record::Table(_) => "table".to_owned(),
        Record::TaskInput(_) if texts.is_empty() => "input".to_owned(),
        Record::TaskInput(_) => return texts,
    };
    format!("{what} {texts}").trim_end().to_owned()
}

/// A point in words. Long texts are cut, and those with spaces are quoted.
pub(super) fn texts_in_words(point: &[(&str, &str)]) -> String {
    let words: Vec<String> = point
        .iter()
        .map(|(name, text)| format!("{}={}", harmless(name), text_in_words(text)))
        .collect();
    cut(&words.join(" "), POINT)
}

/// A text in words, which is cut if it is long. The id of a Git object has as many digits as in the names of results: cut anywhere, it would
/// be longer and no better known.
pub(super) fn text_in_words(text: &str) -> String {
    let is_number = text.bytes().all(|it| it.is_ascii_digit());
    if is_object_id(text) && !is_number {
        return text[..SHORT].to_owned();
    }
    let text = cut(&harmless(text).replace('\t', " "), TEXT);
    let is_plain = !text.is_empty() && !text.contains([' ', '"']);
    if is_plain { text } else { format!("\"{}\"", text.replace('"', "\\\"")) }
}

/// Two SHA-1 with enough digits to tell them apart: as many as names have, or else all.
pub(super) fn told_apart(old: &Digest, new: &Digest) -> [String; 2] {
    let shown = [old, new].map(|digest| digest.sha1.short());
    if shown[0] == shown[1] { [old, new].map(|digest| digest.sha1.full()) } else { shown }
}

/// The first characters of a text, with `…` in place of the rest.
fn cut(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        None => text.to_owned(),
        Some(_) => text.chars().take(limit - 1).chain(['…']).collect(),
    }
}

/// The contents of the sandbox of a call.
pub struct SandboxContents<'a>(pub &'a InspectedCall);

impl fmt::Display for SandboxContents<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let InspectedCall { name, computation, sources, .. } = self.0;
        writeln!(f, "in the sandbox of {}; nothing is published", name.short())?;
        let mut words = vec![format!("{COMPUTATION}/exec")];
        for (number, source) in sources.iter().enumerate() {
            let label = computation.inputs.get(number).map_or("", String::as_str);
            let path = format!("{INPUTS}/{}", numbered(number, label));
            writeln!(f, "  {path}: {}, {}", harmless(label), source.name)?;
            words.push(path);
        }
        for (number, label) in computation.outputs.iter().enumerate() {
            let path = format!("{OUTPUTS}/{}", numbered(number, label));
            writeln!(f, "  {path}: {}, to be made", harmless(label))?;
            words.push(path);
        }
        write!(f, "  to execute it: {}", words.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_names_and_texts() {
        assert_eq!(texts_in_words(&[("threads", "8"), ("size", "1000")]), "threads=8 size=1000");
        let odd = [("a", ""), ("b", "two words"), ("c", "a\"b"), ("d", "\u{1b}[2J\n")];
        assert_eq!(
            texts_in_words(&odd),
            "a=\"\" b=\"two words\" c=\"a\\\"b\" d=\u{fffd}[2J\u{fffd}"
        );
        let commit = "e34a8e2a607738e8d7db2ca24918cfb5c030ffd5";
        assert_eq!(texts_in_words(&[("commit", commit)]), "commit=e34a8e2a6077");
        let long: &str = &"x".repeat(33);
        assert_eq!(texts_in_words(&[("a", long)]), format!("a={}…", "x".repeat(31)));
        assert_eq!(texts_in_words(&[("a", long); 9]).chars().count(), POINT);
    }
}
