//! The table of a sweep as far as it is there, and the summary of a table: in columns, as CSV, or as JSON.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{self, Write};

use super::calls::title;
use super::terminal::{ColumnStyle, fitted_within, terminal_width};
use super::{harmless, json_line};
use ce_evaluate::Evaluation;
use ce_exchange::Attested;
use ce_history::PublishedExecution;
use ce_model::humanize::counted;
use ce_model::statistics::CONFIDENCE;
use ce_model::sweep::{Better, CellValue, ColumnMeasure, STATUS};
use ce_queries::diff::{ComparedRow, TableComparison};
use ce_queries::table::{ATTESTED, ROW_STATE, RowStatus, SweepRow, SweepTable, row_column_name};
use ce_queries::table_summary::{ColumnSummary, PointSummary, ReplicateSummary};
use ce_storage::Holder;
use jiff::Timestamp;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// The format in which a table is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableFormat {
    /// In columns, for humans.
    Text,
    /// As RFC 4180 has it, with a header.
    Csv,
    /// An object for each row.
    Json,
}

/// The columns of [`ROW_STATE`] that are left out if lines do not fit.
const LEAST_USE: [&str; 4] = ["host", "machine", "time", "log"];

/// The narrowest column of reasons: `it ended with exit status 1` tells nothing if it is cut before the last word.
const REASON_WIDTH: usize = 30;

/// Prints the rows of a table. Returns the names of the columns that a narrow terminal has no room for.
///
/// # Errors
///
/// Fails if the output cannot be written.
pub fn sweep_table(
    table: &SweepTable,
    attested: Option<&[Option<Attested>]>,
    format: TableFormat,
    out: &mut dyn Write,
) -> io::Result<Vec<String>> {
    let attested_of = |at: usize| Some(attested?.get(at)?.as_ref());
    if format == TableFormat::Json {
        for (at, row) in table.rows.iter().enumerate() {
            json_line(&JsonRow::new(table, row, attested_of(at)), out)?;
        }
        return Ok(Vec::new());
    }
    let state_names = ROW_STATE.iter().chain(attested.map(|_| &ATTESTED));
    let of_row = state_names.clone().map(|name| row_column_name(name, &table.names));
    let titles = table.names.iter().map(|name| match format {
        TableFormat::Text => with_unit(name, &table.measures),
        _ => name.clone(),
    });
    let header = titles.chain(of_row).map(Cow::Owned).collect();
    let shown = match format {
        TableFormat::Text => ShownState {
            call: table.is_shared(),
            machine: machines(table).count() > 1,
            exclusive: disturbed(table) > 0,
        },
        _ => ShownState { call: true, machine: true, exclusive: true },
    };
    let rows = table.rows.iter().enumerate().map(|(at, row)| {
        let cells = row.cells.iter().map(|cell| cell.text().into());
        let attested = attested_of(at).map(|it| it.map(ToString::to_string).unwrap_or_default());
        cells.chain(state(row, &shown).into_iter().chain(attested).map(Cow::Owned)).collect()
    });
    let lines: Vec<Vec<Cow<'_, str>>> = std::iter::once(header).chain(rows).collect();
    let styles_of_table = (0..table.names.len()).map(|at| {
        let is_number = table
            .rows
            .iter()
            .all(|row| matches!(row.cells[at], CellValue::Number(_) | CellValue::Null));
        ColumnStyle { is_number, may_be_cut: !has_number(&lines, at), ..ColumnStyle::default() }
    });
    let of_state = state_names.map(|name| ColumnStyle {
        is_number: matches!(*name, "call" | "duration"),
        may_be_cut: matches!(*name, "host" | "machine" | "reason"),
        narrowest: if *name == "reason" { REASON_WIDTH } else { 0 },
        may_be_left_out: LEAST_USE.contains(name),
    });
    let styles: Vec<ColumnStyle> = styles_of_table.chain(of_state).collect();
    print(format, &lines, &styles, table.names.len() + 1, out)
}

/// The name of a column, and its unit if it has one.
pub(super) fn with_unit(name: &str, measures: &BTreeMap<String, ColumnMeasure>) -> String {
    match measures.get(name).and_then(|measure| measure.unit.as_ref()) {
        Some(unit) => format!("{name} [{unit}]"),
        None => name.to_owned(),
    }
}

/// Returns the number of rows of each status, and whether points share calls: `3 rows: 2 ok, 1 missing; 3 points are 2 calls`.
pub fn table_counts(table: &SweepTable) -> String {
    let mut counts: BTreeMap<usize, (&str, usize)> = BTreeMap::new();
    for row in &table.rows {
        let (rank, word) = (rank(&row.status), row.status.word());
        counts.entry(rank).or_insert((word, 0)).1 += 1;
    }
    let at_least = if table.may_grow { "at least " } else { "" };
    let mut text = format!("{at_least}{}", counted(table.rows.len(), "row"));
    for (at, (word, count)) in counts.into_values().enumerate() {
        let _written = write!(text, "{} {count} {word}", if at == 0 { ":" } else { "," });
    }
    if table.is_shared() {
        let [points, calls] = table.points_and_calls;
        let _written = write!(text, "; {points} points are {}", counted(calls, "call"));
    }
    text
}

/// Returns the reason why points of a sweep are not known: the fate of the call that computes them, or of one that this needs.
pub fn why_unknown(evaluation: &Evaluation, table: &SweepTable) -> String {
    let Some((call, status)) = &table.unknown_because else {
        return "the call that computes them is missing".to_owned();
    };
    let title = title(evaluation, *call);
    match status {
        RowStatus::Failed { reason, log } => {
            let log = log.as_ref().map(|log| format!("; log: {log}")).unwrap_or_default();
            format!("{title} failed: {reason}{log}")
        }
        RowStatus::Running(holder) => format!("{title} is being executed {}", running(holder)),
        status => format!("{title} is {}", status.word()),
    }
}

/// The place of a status among all.
const fn rank(status: &RowStatus) -> usize {
    match status {
        RowStatus::Ok => 0,
        RowStatus::Running(_) => 1,
        RowStatus::Suspended => 2,
        RowStatus::Failed { .. } => 3,
        RowStatus::Missing => 4,
        RowStatus::Waiting => 5,
        RowStatus::Excluded => 6,
    }
}

/// The columns among [`ROW_STATE`] that have texts. For humans, those that are the same in each row have none.
struct ShownState {
    call: bool,
    machine: bool,
    exclusive: bool,
}

/// The different machines on which rows were measured.
fn machines(table: &SweepTable) -> impl Iterator<Item = &str> {
    let machines = table.rows.iter().filter_map(|row| row.origin.as_ref()?.machine.as_deref());
    machines.collect::<BTreeSet<_>>().into_iter()
}

/// The number of rows that were measured beside other calls although their calls ask for `exclusive` now.
fn disturbed(table: &SweepTable) -> usize {
    table.rows.iter().filter(|row| row.origin.as_ref().is_some_and(|it| it.is_disturbed)).count()
}

/// Returns a warning on rows that were measured beside other calls although their calls ask for `exclusive` now, if there are some.
pub fn disturbed_rows(table: &SweepTable) -> Option<String> {
    let rows = match disturbed(table) {
        0 => return None,
        1 => "1 row was".to_owned(),
        rows => format!("{rows} rows were"),
    };
    Some(format!("{rows} not measured exclusively, which the task asks for by now"))
}

/// The texts of the columns [`ROW_STATE`].
fn state(row: &SweepRow, shown: &ShownState) -> [String; ROW_STATE.len()] {
    let call = row.call.filter(|_| shown.call).map(|it| it.to_string()).unwrap_or_default();
    let origin = row.origin.as_ref();
    let host = origin.and_then(|it| it.host.as_deref()).unwrap_or_default().to_owned();
    let machine = origin.filter(|_| shown.machine).and_then(|it| it.machine.as_deref());
    let machine = machine.unwrap_or_default().to_owned();
    let exclusive = match origin.filter(|_| shown.exclusive).and_then(|it| it.exclusive) {
        Some(true) => "yes",
        Some(false) => "no",
        None => "",
    };
    let time = origin.and_then(|it| it.at).map(|at| format!("{at:.0}")).unwrap_or_default();
    let seconds = origin.and_then(|it| it.seconds).map(|it| format!("{it:.3}"));
    let (reason, log) = match &row.status {
        RowStatus::Failed { reason, log } => (reason.clone(), log.clone().unwrap_or_default()),
        RowStatus::Running(holder) => (running(holder), String::new()),
        RowStatus::Ok if let Some(uncertain) = &row.uncertain => (uncertain.clone(), String::new()),
        _ => Default::default(),
    };
    let (status, exclusive) = (row.status.word().to_owned(), exclusive.to_owned());
    [status, call, host, machine, time, seconds.unwrap_or_default(), exclusive, reason, log]
}

fn running(holder: &Holder) -> String {
    let began = began(holder).map(|it| format!(", which began at {it:.0}")).unwrap_or_default();
    format!("by {holder}{began}")
}

fn began(holder: &Holder) -> Option<Timestamp> {
    Timestamp::from_nanosecond(holder.began?.into()).ok()
}

/// Prints two tables side by side: the rows that changed, or all.
///
/// # Errors
///
/// Fails if the output cannot be written.
pub fn table_comparison(
    comparison: &TableComparison,
    titles: [&str; 2],
    all: bool,
    format: TableFormat,
    out: &mut dyn Write,
) -> io::Result<()> {
    let TableComparison { keys, outputs, measures, rows } = comparison;
    let rows = rows.iter().filter(|row| all || row.is_changed());
    if format == TableFormat::Json {
        let mut rows = rows;
        return rows.try_for_each(|row| json_line(&JsonComparison::new(comparison, row), out));
    }
    let mut header = keys.clone();
    let status = row_column_name(STATUS, outputs);
    for name in outputs.iter().chain([&status]) {
        for (title, measures) in titles.iter().zip(measures) {
            let name = match format {
                TableFormat::Text => with_unit(name, measures),
                _ => name.clone(),
            };
            header.push(format!("{name}@{title}"));
        }
    }
    header.push(row_column_name("changed", keys));
    let mut lines = vec![header];
    for row in rows {
        let mut line: Vec<String> = row.point.iter().map(|cell| cell.text().to_owned()).collect();
        for at in 0..outputs.len() {
            line.extend(
                row.sides.each_ref().map(|side| {
                    side.as_ref().map_or("", |side| side.outputs[at].text()).to_owned()
                }),
            );
        }
        line.extend(
            row.sides
                .each_ref()
                .map(|side| side.as_ref().map_or("-", |side| side.status.word()).to_owned()),
        );
        line.push(changed(comparison, row).join(","));
        lines.push(line);
    }
    let of_status = keys.len() + 2 * outputs.len();
    let styles = (0..lines[0].len()).map(|at| {
        let texts = lines.iter().skip(1).map(|line| line[at].as_str());
        let mut texts = texts.filter(|text| !text.is_empty());
        let is_status = (of_status..of_status + 2).contains(&at);
        ColumnStyle {
            is_number: texts.all(|text| text.parse::<f64>().is_ok()),
            may_be_cut: !is_status && !has_number(&lines, at),
            ..ColumnStyle::default()
        }
    });
    let styles: Vec<ColumnStyle> = styles.collect();
    print(format, &lines, &styles, usize::MAX, out).map(drop)
}

/// Whether a column has a number below its header: cut, it would be another one.
fn has_number(lines: &[Vec<impl AsRef<str>>], at: usize) -> bool {
    lines.iter().skip(1).any(|line| line[at].as_ref().parse::<f64>().is_ok())
}

/// Whether a column has a text below its header.
pub(super) fn has_text(lines: &[Vec<impl AsRef<str>>], at: usize) -> bool {
    lines.iter().skip(1).any(|line| !line[at].as_ref().is_empty())
}

/// The names of the outputs that differ; `status` if nothing else does.
fn changed<'a>(comparison: &'a TableComparison, row: &ComparedRow) -> Vec<&'a str> {
    let outputs = comparison.outputs.iter().enumerate();
    let changed: Vec<&str> =
        outputs.filter(|(at, _)| row.differs(*at)).map(|(_, name)| name.as_str()).collect();
    if changed.is_empty() && row.is_changed() { vec!["status"] } else { changed }
}

/// Prints lines, the first of which is the header. In columns, those from a number on are left out if they are empty. Returns
/// the names of those that are left out since there is no room.
pub(super) fn print(
    format: TableFormat,
    lines: &[Vec<impl AsRef<str>>],
    styles: &[ColumnStyle],
    optional: usize,
    out: &mut dyn Write,
) -> io::Result<Vec<String>> {
    if format == TableFormat::Csv {
        for line in lines {
            let values: Vec<Cow<'_, str>> = line.iter().map(|text| csv(text.as_ref())).collect();
            writeln!(out, "{}", values.join(","))?;
        }
        return Ok(Vec::new());
    }
    let used: Vec<usize> =
        (0..styles.len()).filter(|at| *at < optional || has_text(lines, *at)).collect();
    let mut shown: Vec<Vec<Cow<'_, str>>> = Vec::with_capacity(lines.len());
    for line in lines {
        let texts = used.iter().map(|at| match harmless(line[*at].as_ref()) {
            text if text.contains('\t') => text.replace('\t', " ").into(),
            text => text,
        });
        shown.push(texts.collect());
    }
    let styles: Vec<ColumnStyle> = used.iter().map(|at| styles[*at]).collect();
    if shown.len() == 1 {
        // A header without rows tells nothing.
        return Ok(Vec::new());
    }
    let (mut fitted, left_out) = fitted_within(&shown, &styles, terminal_width(&io::stdout()));
    fitted.try_for_each(|line| writeln!(out, "{line}"))?;
    Ok(left_out.into_iter().map(|at| shown[0][at].to_string()).collect())
}

/// A value of a line of CSV.
fn csv(text: &str) -> Cow<'_, str> {
    match text.contains(['"', ',', '\n', '\r']) || text.starts_with([' ', '\u{feff}']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")).into(),
        false => text.into(),
    }
}

#[derive(Serialize)]
struct JsonRow<'a> {
    row: JsonCells<'a>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    columns: BTreeMap<&'a str, JsonMeasure<'a>>,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    log: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    holder: Option<JsonHolder<'a>>,
    call: Option<usize>,
    host: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    machine: Option<&'a str>,
    time: Option<Timestamp>,
    duration: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exclusive: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    published: Option<&'a PublishedExecution>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attested: Option<Option<&'a Attested>>,
}

/// The unit of a column, and the direction of its better values.
#[derive(Default, Serialize)]
pub(super) struct JsonMeasure<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    better: Option<&'static str>,
}

impl<'a> From<&'a ColumnMeasure> for JsonMeasure<'a> {
    fn from(ColumnMeasure { unit, better }: &'a ColumnMeasure) -> Self {
        Self { unit: unit.as_deref(), better: better.map(Better::word) }
    }
}

/// The run that executes a call.
#[derive(Serialize)]
struct JsonHolder<'a> {
    host: &'a str,
    process: u32,
    began: Option<Timestamp>,
}

impl<'a> JsonRow<'a> {
    fn new(
        table: &'a SweepTable,
        row: &'a SweepRow,
        attested: Option<Option<&'a Attested>>,
    ) -> Self {
        let (mut reason, mut log, mut holder) = (None, None, None);
        match &row.status {
            RowStatus::Failed { reason: why, log: path } => {
                (reason, log) = (Some(why.as_str()), path.as_deref());
            }
            RowStatus::Running(it) => {
                let Holder { host, process, .. } = it;
                holder = Some(JsonHolder { host, process: *process, began: began(it) });
            }
            _ => reason = row.uncertain.as_deref(),
        }
        let origin = row.origin.as_ref();
        let measures = table.measures.iter().map(|(name, of)| (name.as_str(), of.into()));
        Self {
            row: JsonCells { names: &table.names, cells: &row.cells },
            columns: measures.collect(),
            status: row.status.word(),
            reason,
            log,
            holder,
            call: row.call,
            host: origin.and_then(|it| it.host.as_deref()),
            machine: origin.and_then(|it| it.machine.as_deref()),
            time: origin.and_then(|it| it.at),
            duration: origin.and_then(|it| it.seconds),
            exclusive: origin.and_then(|it| it.exclusive),
            published: origin.and_then(|it| it.published.as_deref()),
            attested,
        }
    }
}

#[derive(Serialize)]
struct JsonComparison<'a> {
    point: JsonCells<'a>,
    old: Option<JsonCells<'a>>,
    new: Option<JsonCells<'a>>,
    status: [Option<&'static str>; 2],
    changed: Vec<&'a str>,
}

impl<'a> JsonComparison<'a> {
    fn new(comparison: &'a TableComparison, row: &'a ComparedRow) -> Self {
        let TableComparison { keys, outputs, .. } = comparison;
        let sides = row.sides.each_ref().map(Option::as_ref);
        let [old, new] =
            sides.map(|side| side.map(|side| JsonCells { names: outputs, cells: &side.outputs }));
        Self {
            point: JsonCells { names: keys, cells: &row.point },
            old,
            new,
            status: sides.map(|side| Some(side?.status.word())),
            changed: changed(comparison, row),
        }
    }
}

/// Values by the names of their columns, in order.
pub(super) struct JsonCells<'a> {
    pub(super) names: &'a [String],
    pub(super) cells: &'a [CellValue],
}

impl Serialize for JsonCells<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.names.iter().zip(self.cells.iter().map(JsonValue::from)))
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum JsonValue {
    Null,
    Boolean(bool),
    Number(Box<RawValue>),
    Text(String),
}

impl From<&CellValue> for JsonValue {
    fn from(cell: &CellValue) -> Self {
        match cell {
            CellValue::Null => Self::Null,
            CellValue::Boolean(value) => Self::Boolean(*value),
            CellValue::Number(text) => match RawValue::from_string(text.clone()) {
                Ok(number) => Self::Number(number),
                Err(_) => Self::Text(text.clone()),
            },
            CellValue::Text(text) => Self::Text(text.clone()),
        }
    }
}

/// The columns that each column of numbers becomes in CSV, in this order.
const SUMMARY_FIELDS: [&str; 4] = ["n", "median", "low", "high"];

/// The column that says how certain a median is that should be more certain.
const UNCERTAIN_COLUMN: &str = "uncertain";

/// The column with the number of rows that are not there.
const NOT_OK_COLUMN: &str = "not ok";

/// Prints the summary of a table.
///
/// # Errors
///
/// Fails if the output cannot be written.
pub fn table_summary(
    summary: &ReplicateSummary,
    format: TableFormat,
    out: &mut dyn Write,
) -> io::Result<()> {
    let ReplicateSummary { names, values, measures, ends_by_results, points, .. } = summary;
    if format == TableFormat::Json {
        return points
            .iter()
            .try_for_each(|point| json_line(&JsonSummary::new(summary, point), out));
    }
    let mut header = names.clone();
    for name in values {
        header.extend(match format {
            TableFormat::Csv => SUMMARY_FIELDS.map(|field| format!("{name} {field}")),
            _ => ["n".to_owned(), with_unit(name, measures), "low".to_owned(), "high".to_owned()],
        });
    }
    header.push(row_column_name(NOT_OK_COLUMN, &header));
    header.extend(ends_by_results.then(|| row_column_name(UNCERTAIN_COLUMN, &header)));
    let mut lines = vec![header];
    for PointSummary { point, columns, not_ok, uncertain } in points {
        let mut line: Vec<String> = point.iter().map(|cell| cell.text().to_owned()).collect();
        for column in columns {
            line.push(column.n.to_string());
            line.extend(numbers(column).map(|cell| cell.text().to_owned()));
        }
        let is_shown = format == TableFormat::Csv || *not_ok > 0;
        line.push(if is_shown { not_ok.to_string() } else { String::new() });
        line.extend(ends_by_results.then(|| uncertain.clone().unwrap_or_default()));
        lines.push(line);
    }
    let styles = (0..lines[0].len()).map(|at| {
        let mut texts = lines.iter().skip(1).map(|line| &line[at]);
        let is_number = texts.all(|text| text.is_empty() || text.parse::<f64>().is_ok());
        ColumnStyle { is_number, may_be_cut: !is_number, ..ColumnStyle::default() }
    });
    let styles: Vec<ColumnStyle> = styles.collect();
    print(format, &lines, &styles, styles.len() - 1 - usize::from(*ends_by_results), out).map(drop)
}

/// Returns the meaning of `low` and `high` in a summary: there may be points with an interval, and others.
pub fn ends_in_words(summary: &ReplicateSummary) -> Option<&'static str> {
    let mut columns = summary.points.iter().flat_map(|point| &point.columns);
    let has_intervals = columns.clone().any(|column| column.has_interval);
    let has_ranges = columns.any(|column| column.n > 0 && !column.has_interval);
    match (has_intervals, has_ranges) {
        (true, true) => Some(
            "low and high are a 95 % confidence interval of the median, or the least and the largest value where n is below 6",
        ),
        (true, false) => Some("low and high are a 95 % confidence interval of the median"),
        (false, true) => Some(
            "low and high are the least and the largest value: a confidence interval needs 6 values",
        ),
        (false, false) => None,
    }
}

/// The median, and the ends.
fn numbers(column: &ColumnSummary) -> [CellValue; 3] {
    match column.median {
        Some(median) => [median.value, median.low, median.high].map(number),
        None => [CellValue::Null, CellValue::Null, CellValue::Null],
    }
}

/// A number as JSON spells it, a whole one without a point.
fn number(number: f64) -> CellValue {
    CellValue::Number(match number.fract() == 0.0 && number.abs() < 2_f64.powi(53) {
        true => format!("{number:.0}"),
        false => format!("{number:?}"),
    })
}

#[derive(Serialize)]
struct JsonSummary<'a> {
    point: JsonCells<'a>,
    columns: BTreeMap<&'a str, JsonColumn<'a>>,
    not_ok: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    uncertain: Option<&'a str>,
}

#[derive(Serialize)]
struct JsonColumn<'a> {
    #[serde(flatten)]
    measure: JsonMeasure<'a>,
    n: usize,
    median: JsonValue,
    low: JsonValue,
    high: JsonValue,
    confidence: Option<f64>,
}

impl<'a> JsonSummary<'a> {
    fn new(summary: &'a ReplicateSummary, point: &'a PointSummary) -> Self {
        let ReplicateSummary { names, values, measures, .. } = summary;
        let columns = values.iter().zip(&point.columns).map(|(name, column)| {
            let [median, low, high] = numbers(column).each_ref().map(JsonValue::from);
            let measure = measures.get(name).map(JsonMeasure::from).unwrap_or_default();
            let confidence = column.has_interval.then_some(CONFIDENCE);
            (name.as_str(), JsonColumn { measure, n: column.n, median, low, high, confidence })
        });
        Self {
            point: JsonCells { names, cells: &point.point },
            columns: columns.collect(),
            not_ok: point.not_ok,
            uncertain: point.uncertain.as_deref(),
        }
    }
}
