//! The summary of a table: the medians of its measurements at each point over all replicates, with their intervals.

use std::collections::{BTreeMap, HashMap, HashSet};

use ce_model::statistics::{Estimate, Measurements};
use ce_model::sweep::{CellValue, ColumnMeasure, REPLICATE};

use crate::table::{RowStatus, SweepRow, SweepTable};

/// A table with a row for each point without its replicate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReplicateSummary {
    /// The names of the columns that tell these points apart, and of labels that each of them has one of.
    pub names: Vec<String>,
    /// The names of the columns that are summarised: those of numbers.
    pub values: Vec<String>,
    /// The columns that have numbers and texts, so no medians, and the first text of each.
    pub mixed: Vec<(String, String)>,
    /// The units and directions of columns, by their names.
    pub measures: BTreeMap<String, ColumnMeasure>,
    /// Whether replicates end by results.
    pub ends_by_results: bool,
    /// The points, in the order of their first rows.
    pub points: Vec<PointSummary>,
}

/// The rows of a point.
#[derive(Clone, Debug, PartialEq)]
pub struct PointSummary {
    /// The texts of the point.
    pub point: Vec<CellValue>,
    /// The summary of each column.
    pub columns: Vec<ColumnSummary>,
    /// The number of rows that are not there.
    pub not_ok: usize,
    /// The uncertainty of its median, if it has no more replicates and should be more certain.
    pub uncertain: Option<String>,
}

/// The values of a column at a point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ColumnSummary {
    /// The number of values. Those that one call makes are one.
    pub n: usize,
    /// Their median, and the ends of its 95 % confidence interval or, without one, the least and the largest value. `None` without values, or if
    /// one of them is too large for a computer.
    pub median: Option<Estimate>,
    /// Whether there is an interval: there are at least 6 values.
    pub has_interval: bool,
}

impl ColumnSummary {
    fn of(values: Vec<f64>) -> Self {
        let n = values.len();
        let Some(values) = Measurements::new(values) else {
            return Self { n, median: None, has_interval: false };
        };
        let interval = values.interval();
        let [low, high] = interval.unwrap_or(values.range());
        let median = Some(Estimate { value: values.median(), low, high });
        Self { n, median, has_interval: interval.is_some() }
    }
}

impl ReplicateSummary {
    /// Sums up a table, without excluded points.
    pub fn of(table: &SweepTable) -> Self {
        let keys = places(table, |name| table.keys.contains(name) && name != REPLICATE);
        let mut groups: Vec<Vec<&SweepRow>> = Vec::new();
        let mut known: HashMap<Vec<&str>, usize> = HashMap::new();
        for row in table.rows.iter().filter(|row| row.status != RowStatus::Excluded) {
            let key = keys.iter().map(|at| row.cells[*at].text()).collect();
            let at = *known.entry(key).or_insert(groups.len());
            groups.resize_with(groups.len().max(at + 1), Vec::new);
            groups[at].push(row);
        }
        let is_one = |at: usize| {
            groups.iter().all(|rows| rows.iter().all(|row| row.cells[at] == rows[0].cells[at]))
        };
        let is_of_point = |name: &String| table.keys.contains(name) || table.labels.contains(name);
        let (of_point, mut values) =
            (places(table, is_of_point), places(table, |name| !is_of_point(name)));
        let mixed = values.iter().filter_map(|at| {
            let rows = table.rows.iter().filter(|row| row.status == RowStatus::Ok);
            let cells = rows.map(|row| &row.cells[*at]);
            let name = &table.names[*at];
            let text = odd_text(cells.map(|cell| (cell, table.reads_as_number(name, cell))))?;
            Some((name.clone(), text.to_owned()))
        });
        let mixed = mixed.collect();
        values.retain(|at| is_numeric(&groups, *at));
        let is_named =
            |at: &&usize| keys.contains(*at) || table.names[**at] != REPLICATE && is_one(**at);
        let names: Vec<usize> = of_point.iter().filter(is_named).copied().collect();
        let points = groups.iter().map(|rows| summary(table, rows, &of_point, &names, &values));
        let points = points.collect();
        let measures = table.measures.clone();
        let ends_by_results = table.until.is_some();
        let [names, values] = [names, values]
            .map(|places| places.iter().map(|at| table.names[*at].clone()).collect());
        Self { names, values, mixed, measures, ends_by_results, points }
    }
}

/// The places of the columns that have such names.
fn places(table: &SweepTable, is_meant: impl Fn(&String) -> bool) -> Vec<usize> {
    let names = table.names.iter().enumerate();
    names.filter(|(_, name)| is_meant(name)).map(|(at, _)| at).collect()
}

/// Whether a column has numbers, and nothing else.
fn is_numeric(groups: &[Vec<&SweepRow>], at: usize) -> bool {
    let mut has_numbers = false;
    for row in groups.iter().flatten() {
        match row.cells[at] {
            CellValue::Null => {}
            CellValue::Number(_) => has_numbers = true,
            CellValue::Boolean(_) | CellValue::Text(_) => return false,
        }
    }
    has_numbers
}

/// The first text among cells of which at least half read as numbers. With each cell comes whether it does.
pub(crate) fn odd_text<'a>(cells: impl Iterator<Item = (&'a CellValue, bool)>) -> Option<&'a str> {
    let (mut numbers, mut others, mut text) = (0, 0, None);
    for (cell, is_number) in cells.filter(|(cell, _)| **cell != CellValue::Null) {
        *(if is_number { &mut numbers } else { &mut others }) += 1;
        text = text.or((!is_number).then(|| cell.text()));
    }
    text.filter(|_| numbers >= others)
}

/// Sums up the rows of a point. Of values that the same call makes, the first one counts; an output that gives several rows has them all.
fn summary(
    table: &SweepTable,
    rows: &[&SweepRow],
    of_point: &[usize],
    names: &[usize],
    values: &[usize],
) -> PointSummary {
    let mut counts = HashMap::<Vec<&str>, usize>::new();
    let mut absent = HashSet::new();
    let mut numbers = vec![(Vec::new(), HashSet::new()); values.len()];
    for row in rows {
        let count = counts.entry(of_point.iter().map(|at| row.cells[*at].text()).collect());
        let count = *count.and_modify(|count| *count += 1).or_default();
        if row.status != RowStatus::Ok {
            absent.insert((row.call, count));
            continue;
        }
        for (at, (numbers, seen)) in values.iter().zip(&mut numbers) {
            if let CellValue::Number(text) = &row.cells[*at]
                && seen.insert((table.call_of(row, *at), count))
            {
                numbers.extend(text.parse::<f64>());
            }
        }
    }
    let columns = numbers.into_iter().map(|(numbers, _)| ColumnSummary::of(numbers)).collect();
    let point = names.iter().map(|at| rows[0].cells[*at].clone()).collect();
    let uncertain = rows[0].uncertain.clone();
    PointSummary { point, columns, not_ok: absent.len(), uncertain }
}
