//! Reports: the tree on standard output, events as JSON, progress on a terminal.
//!
//! Formats values. Starts no process, and reads no storage, except that progress asks how long earlier calls took.

mod activity;
mod ancestry;
mod audit;
mod bar;
mod body;
mod cause;
mod checked_json;
mod citation;
mod columns;
mod commits;
mod diagnosis;
mod diff;
mod diff_json;
mod event_printer;
mod explained_groups;
mod explanation;
mod explanation_json;
mod failed_points;
mod failures;
mod gc;
mod json;
mod json_call;
mod json_sweep;
mod log;
mod maintenance_json;
mod output;
mod package;
mod page;
mod point;
mod progress;
mod progress_line;
mod quiet;
mod remaining;
mod resources;
mod results;
mod revoked;
mod sight;
mod status;
mod table;
mod tally;
mod terminal_text;
mod tree;
mod worker;

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write as _};

pub use self::activity::{JsonActivities, activities, submitted_runs};
pub use self::ancestry::Ancestry;
pub use self::audit::{
    audit_end_json, audit_findings, audit_size, audit_summary, audited, not_audited,
    not_audited_json, planned_audits,
};
pub use self::bar::{Bar, exchanging, terminal, while_reading};
pub use self::checked_json::checked_json;
pub use self::citation::{CitationFormat, citation};
pub use self::commits::{commit, suspect_json};
pub use self::diagnosis::{GradeCounts, diagnosis, diagnosis_json};
pub use self::diff::DiffReport;
pub use self::event_printer::{EventPrinter, evaluate_quietly};
pub use self::explanation::{explanation, reasons};
pub use self::explanation_json::explanation_json;
pub use self::failed_points::{
    failed_points, remembered_points, suspended_points, unfinished_points,
};
pub use self::failures::Failures;
pub use self::gc::{Sum, candidates, pins, repositories};
pub use self::json::Json;
pub use self::log::{log, log_json};
pub use self::maintenance_json::{
    candidates_json, pins_json, repositories_json, verdict_json, verified_json,
};
pub use self::output::Output;
pub use self::package::{package_json, package_readme};
pub use self::page::{PAGE_MARK, page};
use self::point::point_words;
pub use self::progress::{Progress, TICK};
pub use self::quiet::{Quiet, Silent, missing_literals, paths_of_point};
pub use self::resources::{resource_usage, resource_usage_json};
pub use self::results::{not_pulled, not_pushed, pulled, pulled_json, pushed, pushed_json};
pub use self::revoked::revoked_results;
pub use self::sight::Sight;
pub use self::status::{Said, status_json, suspended_calls, waiting_jobs};
pub use self::table::{TableFormat, sweep_table, table_comparison, table_counts, why_unknown};
pub use self::tally::{Tally, Totals, left_out, tally, totals};
use self::terminal_text::without_controls;
pub(crate) use self::terminal_text::{coloured, harmless};
pub use self::tree::{TreePrinter, TreeStyle};
pub use self::worker::WorkerReport;
use ce_evaluate::{Evaluation, Event, TreeValues};
use ce_model::exit::Exit;
use ce_model::expression::written_alone;
use ce_model::plan::{CallId, Derivation, DerivedId, PlannedSweep, Source, Step};
use ce_model::sweep::{SWEEP_OUTPUTS, point_title};
use ce_model::task::{ROOT_LABEL as ROOT, SweepId};
use ce_storage::ResultName;

/// Writes a message to standard error, after the name of the program. Names in it command no terminal, and mislead nobody.
pub fn say(program: &str, text: &dyn fmt::Display) {
    let text = text.to_string();
    let lines: Vec<Cow<'_, str>> = text.split('\n').map(harmless).collect();
    output::before_message();
    // If standard error is closed, the message is lost.
    drop(writeln!(io::stderr(), "{program}: {}", lines.join("\n")));
}

/// An output of the task.
struct ShownOutput {
    /// The point that it belongs to, if points are jobs: `n=8`.
    point: Option<String>,
    path: String,
    is_there: bool,
    /// Whether it is in an archive, and not in its place.
    is_archived: bool,
    is_left_out: bool,
}

/// The greatest number of inputs that tell a call from others.
const GIVEN: usize = 6;

/// The task's outputs, as a user would write their paths. That of a directory ends in a slash: it may be a link, and
/// `cp -r` then copies what it leads to.
fn shown_outputs(evaluation: &Evaluation) -> impl Iterator<Item = ShownOutput> + '_ {
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
            (None, Source::Output { call, .. }) => point_words(evaluation, call),
            _ => None,
        };
        Some(ShownOutput {
            point,
            path,
            is_there: evaluation.is_there(source),
            is_archived: evaluation.is_archived(source),
            is_left_out: evaluation.are_left_out(&[source]),
        })
    })
}

/// The title of a call: its point if it depends on one, the name of its computation, and its label.
fn title(evaluation: &Evaluation, call: CallId) -> String {
    let title = title_at_any_point(evaluation, call);
    point_words(evaluation, call).map_or_else(|| title.clone(), |point| format!("{point}: {title}"))
}

/// The title of a call without its point.
fn title_at_any_point(evaluation: &Evaluation, call: CallId) -> String {
    let path = evaluation.label_path(call);
    let label = harmless(path.as_deref().unwrap_or(ROOT));
    match (evaluation.plan.gathered(call), evaluation.computation(call)) {
        (Some(sweep), _) => format!("{} ({label})", sweep_title(evaluation, sweep.sweep)),
        (_, Some(computation)) => format!("{} ({label})", computation.name),
        (None, None) => label.into_owned(),
    }
}

/// The inputs of a call that no call makes, as the workflow names them, with their labels: `n: INPUT('x')`. They tell it from
/// others of its computation.
fn given_values(evaluation: &Evaluation, call: CallId) -> String {
    let Evaluation { plan, task, .. } = evaluation;
    let arguments = task.workflow[plan.call(call).node].inputs().iter();
    let given = arguments.filter_map(|it| match plan.step(it.node) {
        Step::Leaf(_) => {
            let text = written_alone(task, it.node);
            Some(format!("{}: {text}", harmless(&it.label)))
        }
        Step::Call(_) | Step::Derived(_) | Step::PerPoint => None,
    });
    given.take(GIVEN).collect::<Vec<_>>().join(", ")
}

/// Whether a call makes a table: not if the points of its sweep are jobs of their own.
fn has_table(evaluation: &Evaluation, call: CallId) -> bool {
    let sweep = evaluation.plan.gathered(call);
    sweep.is_some_and(|it| evaluation.task.sweeps[it.sweep.index()].has_table)
}

/// A sweep in words: `SWEEP scaling`.
fn sweep_title(evaluation: &Evaluation, sweep: SweepId) -> String {
    let label = harmless(&evaluation.task.sweeps[sweep.index()].label);
    if label.is_empty() { "SWEEP".to_owned() } else { format!("SWEEP {label}") }
}

/// The names of the outputs of a call.
fn output_names(evaluation: &Evaluation, call: CallId) -> impl Iterator<Item = &str> {
    let outputs = evaluation.computation(call).map(|it| it.outputs.iter().map(String::as_str));
    let count = |sweep: &PlannedSweep| match evaluation.task.sweeps[sweep.sweep.index()].has_table {
        true => 1 + usize::from(sweep.with_directory),
        false => 0,
    };
    let count = evaluation.plan.gathered(call).map_or(0, count);
    outputs.into_iter().flatten().chain(SWEEP_OUTPUTS.into_iter().take(count))
}

/// A derived value, as the text of the workflow has it: `TREE('lib')[00]`.
fn derived_title(evaluation: &Evaluation, value: DerivedId, number: u8) -> String {
    match &evaluation.plan.value(value).how {
        Derivation::Tree(tree, name) => {
            let written = evaluation.task.trees[tree.index()].name.as_str();
            let name = harmless(name.as_ref().map_or(written, |name| name.as_str()));
            format!("TREE('{name}')[{number:02}]")
        }
        Derivation::Member(path) => format!("MEMBER('{}')", harmless(path.as_str())),
        Derivation::File(path) => format!("OWN('{}')", harmless(path.as_str())),
        Derivation::Literal(name) => format!("FILE('{}')", harmless(name.as_str())),
        Derivation::Text(text) => format!("'{}'", harmless(text)),
        Derivation::Points(points) => {
            format!("POINTS('{}')", harmless(&evaluation.task.sweeps[points.index()].label))
        }
        Derivation::Wrong(wrong) => harmless(&wrong.value).into_owned(),
    }
}

/// The commit of a Git tree, with the revision that named it, if it is known.
fn tree_version(evaluation: &Evaluation, tree: DerivedId) -> String {
    match evaluation.tree_values(tree) {
        Some(Ok(TreeValues { version, revision: Some(revision), .. })) => {
            format!("{} at {version}", harmless(revision))
        }
        Some(Ok(TreeValues { version, .. })) => version.clone(),
        _ => "an unknown commit".to_owned(),
    }
}

/// Formats the events of an evaluation.
pub trait Reporter {
    /// Tells of an event.
    ///
    /// # Errors
    ///
    /// Fails if the output cannot be written.
    fn event(&mut self, event: &Event, out: &mut dyn io::Write) -> io::Result<()>;

    /// Formats the end, with the name of each job whose outputs were stored: there is one, unless each point is a job.
    /// Without execution, there are none.
    ///
    /// # Errors
    ///
    /// Fails if the output cannot be written.
    fn end(
        &mut self,
        jobs: &[Option<ResultName>],
        exit: Exit,
        out: &mut dyn io::Write,
    ) -> io::Result<()>;
}
