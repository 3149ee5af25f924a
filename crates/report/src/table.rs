//! The table of a sweep as far as it is there, and the summary of a table: in columns, as CSV, or as JSON.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};

use super::calls::title;
use super::digits::without_noise;
use super::terminal::{ColumnStyle, fitted_within, terminal_width};
use super::{harmless, json_line};
use ce_evaluate::Evaluation;
use ce_model::humanize::counted;
use ce_model::statistics::CONFIDENCE;
use ce_model::sweep::{Better, CellValue, ColumnMeasure, STATUS, add_csv_line};
use ce_queries::diff::{ComparedRow, TableComparison};
use ce_queries::frame::{
    Frame, FrameRow, ROW_COLUMNS, RowColumn, RowStatus, SweepExtent, row_column_name, run_in_words,
};
use ce_queries::table_summary::{
    ColumnSummary, MEDIAN, PointSummary, ReplicateSummary, STATISTICS,
};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

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

/// Says which texts of rows tell no points apart, and why.
pub fn row_labels_in_words(frame: &Frame) -> Vec<String> {
    let why = match frame.has_row_keys {
        true => "by names other columns in :columns",
        false => "no two calls of a point have a text in common",
    };
    frame.row_labels().map(|name| format!("{name} tells no points apart: {why}")).collect()
}

/// Prints the rows of a table. Returns the names of the columns that a narrow terminal has no room for.
///
/// # Errors
///
/// Fails if the output cannot be written.
pub fn table(frame: &Frame, format: TableFormat, out: &mut dyn Write) -> io::Result<Vec<String>> {
    if format == TableFormat::Json {
        frame.rows.iter().try_for_each(|row| json_line(&JsonRow { frame, row }, out))?;
        return Ok(Vec::new());
    }
    let is_text = format == TableFormat::Text;
    let names: Vec<&str> = frame.names().collect();
    let of_rows = ROW_COLUMNS.iter().filter(|column| column.is_printed(frame));
    let of_rows: Vec<(&RowColumn, bool)> =
        of_rows.map(|column| (column, !is_text || (column.is_shown)(frame))).collect();
    let titles = frame.columns.iter().map(|column| match is_text {
        true => column.title(),
        false => column.name.clone(),
    });
    let row_titles = of_rows.iter().map(|(column, _)| row_column_name(column.name, &names));
    let header = titles.chain(row_titles).map(Cow::Owned).collect();
    let rows = frame.rows.iter().map(|row| {
        let facts = of_rows.iter().map(|(column, is_shown)| {
            let fact = (column.fact)(row).filter(|_| *is_shown);
            fact.map(|fact| fact.text()).unwrap_or_default()
        });
        row.cells.iter().map(|cell| Cow::from(cell.text())).chain(facts).collect()
    });
    let lines: Vec<Vec<Cow<'_, str>>> = std::iter::once(header).chain(rows).collect();
    let styles_of_table = (0..frame.columns.len()).map(|at| {
        let mut cells = frame.rows.iter().map(|row| &row.cells[at]);
        let is_number = cells.all(|cell| {
            matches!(cell, CellValue::Number(_) | CellValue::NotANumber | CellValue::Null)
        });
        ColumnStyle { is_number, may_be_cut: !has_number(&lines, at), ..ColumnStyle::default() }
    });
    let styles_of_rows = of_rows.iter().map(|(column, _)| ColumnStyle {
        is_number: column.is_number,
        may_be_cut: column.may_be_cut,
        narrowest: column.narrowest,
        may_be_left_out: column.may_be_left_out,
    });
    let styles: Vec<ColumnStyle> = styles_of_table.chain(styles_of_rows).collect();
    print(format, &lines, &styles, frame.columns.len() + 1, out)
}

/// Returns the number of rows of each status, and whether points share calls: `3 rows: 2 ok, 1 missing; 3 points are 2 calls`.
pub fn table_counts(table: &Frame) -> String {
    let mut counts: BTreeMap<usize, (&str, usize)> = BTreeMap::new();
    for row in &table.rows {
        counts.entry(row.status.rank()).or_insert((row.status.word(), 0)).1 += 1;
    }
    let SweepExtent { points, calls, may_grow, .. } = table.extent;
    let at_least = if may_grow { "at least " } else { "" };
    let mut text = format!("{at_least}{}", counted(table.rows.len(), "row"));
    for (at, (word, count)) in counts.into_values().enumerate() {
        let _written = write!(text, "{} {count} {word}", if at == 0 { ":" } else { "," });
    }
    if table.is_shared() {
        let _written = write!(text, "; {points} points are {}", counted(calls, "call"));
    }
    text
}

/// Returns the reason why points of a sweep are not known: the fate of the call that computes them, or of one that this needs.
pub fn why_unknown(evaluation: &Evaluation, table: &Frame) -> String {
    let Some((call, status)) = &table.extent.unknown_because else {
        return "the call that computes them is missing".to_owned();
    };
    let title = title(evaluation, *call);
    match status {
        RowStatus::Failed { reason, log } => {
            let log = log.as_ref().map(|log| format!("; log: {log}")).unwrap_or_default();
            format!("{title} failed: {reason}{log}")
        }
        RowStatus::Running(holder) => format!("{title} is being executed {}", run_in_words(holder)),
        status => format!("{title} is {}", status.word()),
    }
}

/// Returns a warning on rows that were measured beside other calls although their calls ask for `exclusive` now, if there are some.
pub fn disturbed_rows(table: &Frame) -> Option<String> {
    let rows = match table.disturbed() {
        0 => return None,
        1 => "1 row was".to_owned(),
        rows => format!("{rows} rows were"),
    };
    Some(format!("{rows} not measured exclusively, which the task asks for by now"))
}

/// Returns a warning on measurements during which others used the processors, if there are some.
pub fn measured_beside_others(table: &Frame) -> Option<String> {
    table.measured_beside_others().in_words()
}

/// Returns a note on results that are not numbers, which count as rows that are not there, if there are some.
pub fn not_numbers(table: &Frame) -> Option<String> {
    let counts = table.not_numbers().map(|(name, rows)| {
        let noun = if rows == 1 { "row" } else { "rows" };
        format!("{} in {rows} {noun}", harmless(name))
    });
    let counts: Vec<String> = counts.collect();
    (!counts.is_empty()).then(|| {
        format!("not a number: {}; such a row counts as one that is not ok", counts.join(", "))
    })
}

/// Returns a warning on rows of one point whose calls were told different resources, if there are some.
pub fn different_requests(table: &Frame) -> Option<String> {
    let asked: Vec<String> = table.different_requests()?.iter().map(ToString::to_string).collect();
    Some(format!("rows of one point asked for different resources: {}", asked.join("; ")))
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
    let TableComparison { keys, outputs, titles: titles_of_sides, rows } = comparison;
    let rows = rows.iter().filter(|row| all || row.is_changed());
    if format == TableFormat::Json {
        let mut rows = rows;
        return rows.try_for_each(|row| json_line(&JsonComparison::new(comparison, row), out));
    }
    let mut header = keys.clone();
    let status = row_column_name(STATUS, outputs);
    for (at, name) in outputs.iter().chain([&status]).enumerate() {
        for (side, title) in titles.iter().enumerate() {
            let with_unit = titles_of_sides.get(at).filter(|_| format == TableFormat::Text);
            header.push(format!("{}@{title}", with_unit.map_or(name, |titles| &titles[side])));
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

/// Prints lines; the first one is the header. Columns from a number on are left out if they are empty. Returns
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
            let mut text = String::new();
            add_csv_line(line.iter().map(AsRef::as_ref), &mut text);
            out.write_all(text.as_bytes())?;
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

/// A row, as JSON.
struct JsonRow<'a> {
    frame: &'a Frame,
    row: &'a FrameRow,
}

impl Serialize for JsonRow<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { frame, row } = self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("row", &JsonCells::new(frame.names(), &row.cells))?;
        let measures = frame.measures().into_iter();
        let measures: BTreeMap<&str, JsonMeasure<'_>> =
            measures.map(|(name, measure)| (name, measure.into())).collect();
        if !measures.is_empty() {
            map.serialize_entry("columns", &measures)?;
        }
        let mut columns = ROW_COLUMNS;
        columns.sort_by_key(|column| column.subject);
        for (name, fact) in columns.iter().filter_map(|column| column.json(frame, row)) {
            map.serialize_entry(name, &fact)?;
        }
        map.end()
    }
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
        let [old, new] = sides.map(|side| side.map(|side| JsonCells::new(outputs, &side.outputs)));
        Self {
            point: JsonCells::new(keys, &row.point),
            old,
            new,
            status: sides.map(|side| Some(side?.status.word())),
            changed: changed(comparison, row),
        }
    }
}

/// Values by the names of their columns, in order.
pub(super) struct JsonCells<'a>(Vec<(&'a str, &'a CellValue)>);

impl<'a> JsonCells<'a> {
    pub(super) fn new<N: AsRef<str> + ?Sized + 'a>(
        names: impl IntoIterator<Item = &'a N>,
        cells: impl IntoIterator<Item = &'a CellValue>,
    ) -> Self {
        Self(names.into_iter().map(AsRef::as_ref).zip(cells).collect())
    }
}

impl Serialize for JsonCells<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().copied())
    }
}

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
    summary: &ReplicateSummary<'_>,
    format: TableFormat,
    out: &mut dyn Write,
) -> io::Result<()> {
    let ReplicateSummary { keys, columns, ends_by_results, points } = summary;
    if format == TableFormat::Json {
        return points
            .iter()
            .try_for_each(|point| json_line(&JsonSummary::new(summary, point), out));
    }
    let mut header: Vec<String> = keys.iter().map(|column| column.name.clone()).collect();
    for column in columns {
        let names = ["n"].into_iter().chain(STATISTICS.map(|it| it.name));
        header.extend(names.map(|name| match format {
            TableFormat::Csv => format!("{} {name}", column.name),
            _ if name == MEDIAN => column.title(),
            _ => name.to_owned(),
        }));
    }
    header.push(row_column_name(NOT_OK_COLUMN, &header));
    header.extend(ends_by_results.then(|| row_column_name(UNCERTAIN_COLUMN, &header)));
    let mut lines = vec![header];
    for PointSummary { point, columns, not_ok, uncertain } in points {
        let mut line: Vec<String> = point.iter().map(|cell| cell.text().to_owned()).collect();
        for column in columns {
            line.push(column.n.to_string());
            let [_, ends @ ..] = &column.statistics;
            let ends = ends.each_ref().map(|cell| cell.number().unwrap_or(f64::NAN));
            line.extend(column.statistics.iter().map(|cell| match format {
                TableFormat::Csv => cell.text().to_owned(),
                _ => without_noise(cell.text(), ends),
            }));
        }
        let is_shown = format == TableFormat::Csv || *not_ok > 0;
        line.push(if is_shown { not_ok.to_string() } else { String::new() });
        line.extend(ends_by_results.then(|| uncertain.unwrap_or_default().to_owned()));
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
pub fn ends_in_words(summary: &ReplicateSummary<'_>) -> Option<&'static str> {
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

#[derive(Serialize)]
struct JsonSummary<'a> {
    point: JsonCells<'a>,
    columns: BTreeMap<&'a str, JsonColumn<'a>>,
    not_ok: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    uncertain: Option<&'a str>,
}

/// The summary of a column, as JSON.
#[derive(Serialize)]
struct JsonColumn<'a> {
    #[serde(flatten)]
    measure: JsonMeasure<'a>,
    n: usize,
    #[serde(flatten)]
    statistics: JsonCells<'a>,
    confidence: Option<f64>,
}

impl<'a> JsonSummary<'a> {
    fn new(summary: &'a ReplicateSummary<'a>, point: &'a PointSummary<'a>) -> Self {
        let columns = summary.columns.iter().zip(&point.columns);
        let columns = columns.map(|(column, ColumnSummary { n, statistics, has_interval })| {
            let measure = JsonMeasure::from(&column.measure);
            let statistics = JsonCells::new(STATISTICS.iter().map(|it| it.name), statistics);
            let confidence = has_interval.then_some(CONFIDENCE);
            (&*column.name, JsonColumn { measure, n: *n, statistics, confidence })
        });
        let names = summary.keys.iter().map(|column| &*column.name);
        Self {
            point: JsonCells::new(names, point.point.iter().copied()),
            columns: columns.collect(),
            not_ok: point.not_ok,
            uncertain: point.uncertain,
        }
    }
}
