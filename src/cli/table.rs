//! `ce table`: the existing rows of a sweep, and the status of the others.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, Parser};

use super::Tool;
use super::input_args::PathArgs;
use super::input_args::{PointArgs, ranged, warn_of_texts};
use super::options::{Dirty, Strict, TaskDir, task_dir};
use ce_evaluate::Evaluation;
use ce_evaluate::session::{
    Error, OutputError, PointsFile, check_own_sheets, look_up, look_up_versions,
};
use ce_exchange::Attestations;
use ce_git::Config;
use ce_model::exit::{Exit, Explain};
use ce_model::task::Task;
use ce_queries::diff::TableComparison;
use ce_queries::frame::Frame;
use ce_queries::page::MeasuredTable;
use ce_queries::table::choose_sweep;
use ce_queries::table_summary::ReplicateSummary;
use ce_report::{self as report, TableFormat, say};

/// More versions were named than can be shown.
#[derive(Debug, thiserror::Error, Explain)]
enum TooManyVersions {
    #[error("{0} versions are given, and two can be compared")]
    #[hint("give --at once or twice")]
    Compared(usize),
    #[error("{0} versions are given, and --summary takes one")]
    #[hint("give --at once, or leave out --summary")]
    Summarised(usize),
    #[error("{0} versions are given, and --steps takes one")]
    #[hint("give --at once, or leave out --steps")]
    Steps(usize),
}

/// The points of a sweep are not a history.
#[derive(Debug, thiserror::Error, Explain)]
#[error(
    "there are no steps: no column of the points has commits, or no column has numbers at them"
)]
#[hint("let a sweep have the commits that ce commits lists as points")]
struct NoHistory;

/// Show the table of a sweep as far as it exists, and the status of the other points
///
/// Nothing is computed, and nothing is written. A row has the columns of the table, its status, and where, when and how
/// long the call ran that made its output. With --each or --points, the points are points of the task's own inputs. With
/// two --at, the values of two versions stand side by side.
#[derive(Debug, Parser)]
#[command(version, after_help = EXIT_CODES)]
pub(super) struct ShowTable {
    /// Print CSV, with a header
    #[arg(long, conflicts_with = "json")]
    csv: bool,

    /// Print a JSON object for each row
    #[arg(long)]
    json: bool,

    /// Print a row for each point, with all its replicates: for each column of numbers the number of values, the median,
    /// and its 95 % confidence interval, or the least and the largest of fewer than 6 values
    #[arg(long, conflicts_with_all = ["attested", "all"])]
    summary: bool,

    /// Print, for each column of numbers, the commits at which the median changes and stays; the sweep has commits as
    /// points, the oldest first
    #[arg(long, conflicts_with_all = ["csv", "json", "summary", "attested", "all"])]
    steps: bool,

    /// Print how many of the executors of the call of each row have got the recorded outputs, by the ledger
    #[arg(long)]
    attested: bool,

    /// With two versions, print all rows, also those that did not change
    #[arg(long)]
    all: bool,

    /// The directory that holds the task, or one within it
    #[arg(long, value_name = "DIR", default_value = ".", value_parser = task_dir(), value_hint = clap::ValueHint::DirPath)]
    task: PathBuf,

    #[command(flatten)]
    of: SweepArgs,
}

/// A sweep of a task at one or two commits.
#[derive(Debug, Args)]
pub(super) struct SweepArgs {
    /// The sweep: its definition, its label, its place (workflow.ce:LINE, or its directory), or the
    /// computation of its body; needed if the task has several
    #[arg(long, value_name = "NAME")]
    sweep: Option<String>,

    #[command(flatten)]
    dirty: Dirty,

    #[command(flatten)]
    strict: Strict,

    /// Take the task as it was at a commit, from the repository's objects; with a second one, compare the
    /// older version with the newer one
    #[arg(long, value_name = "REV")]
    pub(super) at: Vec<String>,

    #[command(flatten)]
    points: PointArgs,

    #[command(flatten)]
    pub(super) typed: PathArgs,
}

const EXIT_CODES: &str = "\
Exit codes: 0 all rows are there, 2 the arguments or the task are wrong, 3 a row is not there, or \
points are not known, 5 the storage could not be read.";

impl Tool for ShowTable {
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Error> {
        match &self.of.at[..] {
            [_, _, ..] if self.summary => {
                return Err(TooManyVersions::Summarised(self.of.at.len()).into());
            }
            [_, _, ..] if self.steps => {
                return Err(TooManyVersions::Steps(self.of.at.len()).into());
            }
            [older, newer] => return self.compare([older, newer], out),
            [] | [_] => {}
            more => return Err(TooManyVersions::Compared(more.len()).into()),
        }
        let (evaluation, mut table) = self.of.table(&self.task)?;
        if self.summary {
            self.summarise(&table, out)?;
        } else if self.steps {
            print_steps(&table, out)?;
        } else {
            if self.attested {
                add_attesters(&evaluation, &mut table)?;
            }
            self.print(&table, out)?;
        }
        say_unknown(&[(&evaluation, &table)]);
        if self.format() == TableFormat::Text {
            say("ce", &report::table_counts(&table));
            let oddities = [
                report::not_numbers(&table),
                report::disturbed_rows(&table),
                report::different_requests(&table),
                report::measured_beside_others(&table),
            ];
            oddities.iter().flatten().for_each(|oddity| say("ce", oddity));
        }
        Ok(match evaluation.exit() {
            _ if table.is_complete() => Exit::Done,
            Exit::Malformed => Exit::Malformed,
            _ => Exit::Missing,
        })
    }
}

impl SweepArgs {
    /// Whether something was typed that only a task has.
    pub(super) const fn is_of_task(&self) -> bool {
        self.sweep.is_some()
            || !self.at.is_empty()
            || !self.points.is_nothing()
            || self.typed.has_options()
    }

    /// The table of the sweep at one commit, or as it is checked out.
    pub(super) fn table(&self, dir: &Path) -> Result<(Evaluation, Frame), Error> {
        let task = self.load(dir, self.at.first(), &self.points.read()?, true)?;
        choose_sweep(&task, self.sweep.as_deref())?;
        let config = Config::read(dir)?;
        let given = self.typed.resolve(dir, &task, &config)?;
        let evaluation = look_up(dir, task, &given, &self.strict.to_look(&config)?)?;
        // Binding texts of inputs may make nodes one.
        let table = self.read(dir, &evaluation, &Attestations::read(&evaluation.storage)?)?;
        Ok((evaluation, table))
    }

    /// The tables at two commits, the older one first.
    pub(super) fn tables(
        &self,
        dir: &Path,
        titles: [&String; 2],
    ) -> Result<[(Evaluation, Frame); 2], Error> {
        let files = self.points.read()?;
        let older = self.load(dir, Some(titles[0]), &files, true)?;
        let tasks = [older, self.load(dir, Some(titles[1]), &files, false)?];
        for task in &tasks {
            choose_sweep(task, self.sweep.as_deref())?;
        }
        let config = Config::read(dir)?;
        let given = self.typed.resolve(dir, &tasks[1], &config)?;
        let options = self.strict.to_look(&config)?;
        let titles = titles.map(String::as_str);
        let [older, newer] = look_up_versions(dir, tasks, titles, &given, &options)?;
        let attestations = Attestations::read(&older.storage)?;
        let [older_table, newer_table] =
            [&older, &newer].map(|evaluation| self.read(dir, evaluation, &attestations));
        Ok([(older, older_table?), (newer, newer_table?)])
    }

    /// Reads the table of the sweep that is asked for.
    fn read(
        &self,
        dir: &Path,
        evaluation: &Evaluation,
        attestations: &Attestations,
    ) -> Result<Frame, Error> {
        let choice = choose_sweep(&evaluation.task, self.sweep.as_deref())?;
        let table = Frame::of_sweep(evaluation, attestations, choice)?;
        if table.extent.has_unknown_points {
            check_own_sheets(dir, &evaluation.task)?;
        }
        Ok(table)
    }

    /// Loads a version of the task, which is evaluated for each point if points are given. Perhaps warns of lookalikes
    /// among these.
    fn load(
        &self,
        dir: &Path,
        at: Option<&String>,
        files: &[PointsFile],
        warns: bool,
    ) -> Result<Task, Error> {
        let place = TaskDir { task: dir.to_owned(), at: at.cloned() };
        let task = place.load("ce", self.dirty.uncommitted())?;
        let factors = self.points.factors(files, dir, &task)?;
        if warns {
            warn_of_texts("ce", &factors);
        }
        Ok(ranged(task, factors, &self.typed)?.0)
    }
}

impl ShowTable {
    /// Prints the rows.
    fn print(&self, table: &Frame, out: &mut dyn Write) -> Result<(), Error> {
        let left_out = report::table(table, self.format(), out).map_err(OutputError)?;
        if !left_out.is_empty() {
            let names = left_out.join(", ");
            say("ce", &format_args!("the terminal has no room for {names}; --csv has all columns"));
        }
        Ok(())
    }

    /// Prints the summary, and what its ends are.
    fn summarise(&self, table: &Frame, out: &mut dyn Write) -> Result<(), Error> {
        let summary = ReplicateSummary::new(table);
        report::table_summary(&summary, self.format(), out).map_err(OutputError)?;
        if self.format() == TableFormat::Text
            && let Some(ends) = report::ends_in_words(&summary)
        {
            say("ce", &ends);
        }
        say_row_labels(table);
        for (name, value) in table.mixed() {
            say(
                "ce",
                &format_args!(
                    "{name} is left out: one of its values is {value:?}, which is not a number"
                ),
            );
        }
        Ok(())
    }

    const fn format(&self) -> TableFormat {
        match (self.csv, self.json) {
            (true, _) => TableFormat::Csv,
            (_, true) => TableFormat::Json,
            _ => TableFormat::Text,
        }
    }

    /// Prints the tables of two versions.
    fn compare(&self, titles: [&String; 2], out: &mut dyn Write) -> Result<Exit, Error> {
        let [(old, older), (new, newer)] = self.of.tables(&self.task, titles)?;
        let titles = titles.map(String::as_str);
        let comparison = TableComparison::new(&older, &newer);
        report::table_comparison(&comparison, titles, self.all, self.format(), out)
            .map_err(OutputError)?;
        say_unknown(&[(&old, &older), (&new, &newer)]);
        if self.format() == TableFormat::Text {
            let changed = comparison.rows.iter().filter(|row| row.is_changed()).count();
            for (title, table) in titles.into_iter().zip([&older, &newer]) {
                say("ce", &format_args!("{title}: {}", report::table_counts(table)));
            }
            let rows = comparison.rows.len();
            say("ce", &format_args!("{changed} of {rows} rows changed"));
        }
        let is_complete = older.is_complete() && newer.is_complete();
        Ok(if is_complete { Exit::Done } else { Exit::Missing })
    }
}

/// Adds the attesters of the call of each row.
fn add_attesters(evaluation: &Evaluation, table: &mut Frame) -> Result<(), Error> {
    let storage = &evaluation.storage;
    let all = Attestations::read(storage)?;
    table.has_attesters = true;
    for row in &mut table.rows {
        if let Some(origin) = &row.origin {
            row.attested = all.of_call(storage, &origin.call)?.map(Arc::new);
        }
    }
    Ok(())
}

/// Prints the steps of each column over commits.
fn print_steps(table: &Frame, out: &mut dyn Write) -> Result<(), Error> {
    say_row_labels(table);
    let measured = MeasuredTable::new(table);
    if measured.commits().is_none() || measured.columns.is_empty() {
        return Err(NoHistory.into());
    }
    for column in 0..measured.columns.len() {
        for line in report::steps_in_words(&measured, column, false) {
            writeln!(out, "{}", report::harmless(&line)).map_err(OutputError)?;
        }
    }
    Ok(())
}

/// Says which texts of rows tell no points apart.
fn say_row_labels(table: &Frame) {
    report::row_labels_in_words(table).iter().for_each(|line| say("ce", line));
}

/// Prints, once for each reason, that there may be more rows.
pub(super) fn say_unknown(tables: &[(&Evaluation, &Frame)]) {
    let tables = tables.iter().filter(|(_, table)| table.extent.has_unknown_points);
    let mut whys: Vec<String> =
        tables.map(|(evaluation, table)| report::why_unknown(evaluation, table)).collect();
    whys.dedup();
    for why in whys {
        say("ce", &format_args!("points of the sweep are not known: {why}"));
    }
}
