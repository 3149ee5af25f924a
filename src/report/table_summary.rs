//! The summary of a table: in columns, as CSV, or as JSON.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;

use super::table::{
    JsonCells, JsonMeasure, JsonValue, TableFormat, json, print, unlike, with_unit,
};
use super::terminal::ColumnStyle;
use ce_model::statistics::CONFIDENCE;
use ce_model::sweep::CellValue;
use ce_queries::table_summary::{ColumnSummary, PointSummary, ReplicateSummary};

/// The columns that each column of numbers becomes in CSV, in this order.
const FIELDS: [&str; 4] = ["n", "median", "low", "high"];

/// The column that says how certain a median is that should be more certain.
const UNCERTAIN: &str = "uncertain";

/// The column with the number of rows that are not there.
const NOT_OK: &str = "not ok";

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
        return points.iter().try_for_each(|point| json(&JsonSummary::new(summary, point), out));
    }
    let mut header = names.clone();
    for name in values {
        header.extend(match format {
            TableFormat::Csv => FIELDS.map(|field| format!("{name} {field}")),
            _ => ["n".to_owned(), with_unit(name, measures), "low".to_owned(), "high".to_owned()],
        });
    }
    header.push(unlike(NOT_OK, &header));
    header.extend(ends_by_results.then(|| unlike(UNCERTAIN, &header)));
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
    let style = |at: usize| {
        let mut texts = lines.iter().skip(1).map(|line| &line[at]);
        let is_number = texts.all(|text| text.is_empty() || text.parse::<f64>().is_ok());
        ColumnStyle { is_number, may_be_cut: !is_number, ..ColumnStyle::default() }
    };
    let styles: Vec<ColumnStyle> = (0..lines[0].len()).map(style).collect();
    print(format, &lines, (&styles, styles.len() - 1 - usize::from(*ends_by_results)), out)
        .map(drop)
}

/// Returns the meaning of `low` and `high` in a summary: there may be points with an interval, and others.
pub fn ends_in_words(summary: &ReplicateSummary) -> Option<&'static str> {
    let columns = || summary.points.iter().flat_map(|point| &point.columns);
    let has_intervals = columns().any(|column| column.has_interval);
    let has_ranges = columns().any(|column| column.n > 0 && !column.has_interval);
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
