//! Reports: the tree on standard output, events as JSON, progress on a terminal.
//!
//! Formats values. Starts no process but the pager. Reads no storage, except that progress asks how long earlier calls took, and an
//! explanation which texts task inputs are. Writes no file, except the directory of a page.

mod ancestry;
mod audit;
mod calls;
mod compared_medians;
mod diff;
mod digits;
mod events;
mod exchange;
mod explanation;
mod failures;
mod log;
mod maintenance;
mod outputs;
mod package;
mod page;
mod printer;
mod progress;
mod screen;
mod sentences;
mod status;
mod table;
mod terminal;
mod tree;

use std::borrow::Cow;
use std::fmt;
use std::io;

use serde::Serialize;

pub use self::ancestry::Ancestry;
pub use self::audit::{
    audit_end_json, audit_findings, audit_size, audit_summary, audited, not_audited,
    not_audited_json, planned_audits,
};
pub use self::calls::SandboxContents;
pub use self::compared_medians::{MedianFormat, medians, steps_in_words};
pub use self::diff::DiffReport;
pub use self::events::{Json, checked_json};
pub use self::exchange::{not_pulled, not_pushed, pulled, pushed};
pub use self::explanation::{explanation, explanation_json, reasons};
pub use self::failures::{
    Failures, failed_points, remembered_points, suspended_points, unfinished_points,
};
pub use self::log::{commit, log, log_json, resource_usage, resource_usage_json, suspect_json};
pub use self::maintenance::{
    CandidateTotals, GradeCounts, candidates, candidates_json, diagnosis, diagnosis_json, pins,
    pins_json, repositories, repositories_json, verdict_json, verified_json,
};
pub use self::outputs::{changed_outputs, outputs_not_updated};
pub use self::package::{CitationFormat, ReadmeFor, citation, package_json, package_readme};
pub use self::page::{PageDirectory, PageError, begins_as_page, page, refuse_links};
pub use self::printer::{
    EventPrinter, OutputPaths, Silent, Tally, Totals, WorkerReport, evaluate_quietly, left_out,
    memory_excess, missing_literals, paths_of_point, revoked_results, tally, totals,
};
pub use self::progress::{Bar, Progress, TICK, exchanging, terminal, while_reading};
pub use self::status::{
    AskedStatus, SuspendedStatus, activities, status_json, submitted_runs, suspended_calls,
    suspended_title, waiting_jobs,
};
pub use self::table::{
    TableFormat, different_requests, disturbed_rows, ends_in_words, measured_beside_others,
    not_numbers, row_labels_in_words, table, table_comparison, table_counts, table_summary,
    why_unknown,
};
pub use self::terminal::{Output, coloured, harmless, print_paged};
pub use self::tree::{TreePrinter, TreeStyle};
use ce_evaluate::Event;
use ce_model::exit::Exit;
use ce_storage::ResultName;

/// Writes a message to standard error, after the name of the program. Names in it command no terminal, and mislead nobody.
pub fn say(program: &str, text: &dyn fmt::Display) {
    let text = text.to_string();
    let lines: Vec<Cow<'_, str>> = text.split('\n').map(harmless).collect();
    terminal::before_message();
    terminal::write_error(&format!("{program}: {}\n", lines.join("\n")));
}

/// Prints a value as a JSON object in a line.
pub fn json_line(value: &impl Serialize, out: &mut dyn io::Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")
}

/// Formats the events of an evaluation.
pub trait Reporter {
    /// Formats an event.
    fn event(&mut self, event: &Event, out: &mut dyn io::Write) -> io::Result<()>;

    /// Formats the end, with the name of each job whose outputs were stored: there is one, unless each point is a job.
    /// Without execution, there are none.
    fn end(
        &mut self,
        jobs: &[Option<ResultName>],
        exit: Exit,
        out: &mut dyn io::Write,
    ) -> io::Result<()>;
}
