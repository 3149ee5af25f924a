//! A table that somebody gives as a file: NDJSON, TSV or CSV, also as `ce table` prints it.
//!
//! Nothing says which columns tell points apart. Those before `replicate` do, and those that are not all numbers. Of one that is mostly
//! numbers, it is not clear.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;

use ce_model::exit::Explain;
use ce_model::sweep::{
    Better, CellTable, CellValue, ColumnMeasure, REPLICATE, STATUS, SheetProblem, read_cells,
};

use crate::table::RowOrigin;
use crate::table::{RowStatus, SweepRow, SweepTable};

/// A file is no table.
#[derive(Debug, thiserror::Error)]
#[error("{path} is no table: {problem}")]
pub struct TableFileError {
    /// The file.
    path: String,
    /// The problem.
    problem: SheetProblem,
}

impl Explain for TableFileError {
    fn hint(&self) -> Option<String> {
        self.problem.fault.hint()
    }
}

/// The columns that `ce table` puts behind `status`, in this order.
const STATE: [&str; 9] =
    ["call", "host", "machine", "time", "duration", "exclusive", "reason", "log", "attested"];

/// Those of them that tables of earlier versions do not have.
const LATER: [&str; 2] = ["machine", "exclusive"];

/// Reads a table from the contents of a file.
///
/// # Errors
///
/// Fails if it is neither NDJSON, nor TSV or CSV with a header.
pub fn read_table(path: &Path, contents: &[u8]) -> Result<SweepTable, TableFileError> {
    let cells = read_file_cells(path, contents)?;
    let at = |name: &str| cells.names.iter().position(|it| it == name);
    // The output of `ce table --json` has the values within another object.
    if let (Some(row), Some(_)) = (at("row"), at(STATUS)) {
        let lines: Vec<&str> = cells.rows.iter().map(|cells| cells[row].text()).collect();
        if lines.iter().all(|line| line.starts_with('{')) {
            let values = read_file_cells(path, lines.join("\n").as_bytes())?;
            let measures = at("columns").map(|at| measures(&cells, at)).unwrap_or_default();
            let state = STATE.map(at);
            return Ok(table(values, (&cells, at(STATUS), state), measures));
        }
    }
    let mut values = cells.clone();
    let status = (0..cells.names.len()).rev().find(|at| {
        let texts = cells.rows.iter().map(|row| row[*at].text());
        cells.names[*at].starts_with(STATUS)
            && texts.into_iter().all(|it| RowStatus::WORDS.contains(&it))
    });
    let mut state = [None; STATE.len()];
    if let Some(status) = status {
        let mut count = 1;
        for (name, state) in STATE.iter().zip(&mut state) {
            match cells.names.get(status + count) {
                Some(it) if it.starts_with(name) => {
                    *state = Some(status + count);
                    count += 1;
                }
                _ if LATER.contains(name) => {}
                _ => break,
            }
        }
        // A column of a table that is called so is another one, unless all that follow are of the state.
        if status + count < cells.names.len() {
            (state, count) = ([None; STATE.len()], 1);
        }
        values.names.drain(status..status + count);
        values.rows.iter_mut().for_each(|row| drop(row.drain(status..status + count)));
    }
    Ok(table(values, (&cells, status, state), BTreeMap::new()))
}

/// Reads the cells of a file from its contents.
fn read_file_cells(path: &Path, contents: &[u8]) -> Result<CellTable, TableFileError> {
    read_cells(contents)
        .map_err(|problem| TableFileError { path: path.display().to_string(), problem })
}

/// The units and directions of columns that the first row has.
fn measures(cells: &CellTable, at: usize) -> BTreeMap<String, ColumnMeasure> {
    let first = cells.rows.first().map_or("{}", |row| row[at].text());
    let columns: BTreeMap<String, BTreeMap<String, String>> =
        serde_json::from_str(first).unwrap_or_default();
    let measures = columns.into_iter().map(|(name, fields)| {
        let unit = fields.get("unit").map(|unit| unit.as_str().into());
        let better = fields.get("better").and_then(|word| {
            [Better::Less, Better::More].into_iter().find(|better| better.word() == word)
        });
        (name, ColumnMeasure { unit, better })
    });
    measures.collect()
}

/// A table with these values. Their state is in another one, whose columns have these places.
fn table(
    values: CellTable,
    (cells, status, state): (&CellTable, Option<usize>, [Option<usize>; STATE.len()]),
    measures: BTreeMap<String, ColumnMeasure>,
) -> SweepTable {
    let row = |(values, cells): (Vec<CellValue>, &Vec<CellValue>)| {
        let text = |at: Option<usize>| at.map(|at| cells[at].text()).filter(|it| !it.is_empty());
        let [call, host, machine, time, duration, exclusive, ..] = state.map(text);
        let host = host.map(Into::into);
        let at: Option<Timestamp> = time.and_then(|it| it.parse().ok());
        let origin = (host.is_some() || at.is_some()).then(|| {
            Arc::new(RowOrigin {
                call: String::new(),
                executions: Vec::new(),
                host,
                machine: machine.map(Into::into),
                exclusive: exclusive.map(|it| it == "yes" || it == "true"),
                is_disturbed: false,
                published: None,
                at,
                seconds: duration.and_then(|it| it.parse().ok()),
            })
        });
        let status = match text(status) {
            None => RowStatus::Ok,
            Some(word) if word == RowStatus::Ok.word() => RowStatus::Ok,
            Some(word) if word == RowStatus::Excluded.word() => RowStatus::Excluded,
            Some(other) => RowStatus::Failed { reason: other.to_owned(), log: None },
        };
        let call = call.and_then(|it| it.parse().ok());
        let (output_calls, uncertain) = Default::default();
        SweepRow { cells: values, status, call, output_calls, origin, uncertain }
    };
    let CellTable { names, rows } = values;
    let before = names.iter().position(|name| name == REPLICATE);
    let rows = rows.into_iter().zip(&cells.rows).map(row).collect();
    let mut table = SweepTable { names, measures, rows, ..SweepTable::default() };
    for (at, name) in table.names.iter().enumerate() {
        let cells = table.rows.iter().map(|row| &row.cells[at]);
        let cells: Vec<&CellValue> = cells.filter(|cell| **cell != CellValue::Null).collect();
        let readable = cells.iter().filter(|cell| table.reads_as_number(name, cell)).count();
        let are_numbers = cells.iter().all(|cell| matches!(cell, CellValue::Number(_)));
        let is_of_point = at < before.unwrap_or_default() || name == REPLICATE;
        let is_mixed = readable < cells.len();
        let is_numeric = (is_mixed || are_numbers) && readable > 0 && 2 * readable >= cells.len();
        let is_measured = are_numbers || is_numeric && before.is_some();
        if is_of_point || !is_measured {
            table.keys.push(name.clone());
        }
        if is_numeric && !is_of_point {
            table.numeric.push(name.clone());
        }
    }
    table
}
