//! The tables of two versions of a task, point by point.

use std::collections::HashMap;

use super::{RowStatus, SweepRow, SweepTable};
use ce_model::sweep::CellValue;

/// Two tables of a sweep, side by side.
#[derive(Clone, Debug, PartialEq)]
pub struct TableComparison {
    /// The names of the columns that tell points apart.
    pub keys: Vec<String>,
    /// The names of all other columns.
    pub outputs: Vec<String>,
    /// A row for each row of one of them, in the order of the newer one; those of the older one alone come last.
    pub rows: Vec<ComparedRow>,
}

/// A row of two tables.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedRow {
    /// The texts of its point.
    pub point: Vec<CellValue>,
    /// What the older and the newer table have for it, if they have such a point.
    pub sides: [Option<ComparedSide>; 2],
}

/// A row as one table has it.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedSide {
    /// The values of its outputs.
    pub outputs: Vec<CellValue>,
    /// What became of its point.
    pub status: RowStatus,
}

impl ComparedRow {
    /// Whether an output has another value or the status is another one, or only one side has the row. Why and when a point
    /// failed does not count.
    pub fn is_changed(&self) -> bool {
        match &self.sides {
            [Some(old), Some(new)] => {
                old.outputs != new.outputs || old.status.word() != new.status.word()
            }
            sides => sides.iter().any(Option::is_some),
        }
    }

    /// Whether an output has another value. The values of a side without the row are null.
    pub fn differs(&self, output: usize) -> bool {
        let value = |side: &Option<ComparedSide>| {
            side.as_ref().map_or(CellValue::Null, |side| side.outputs[output].clone())
        };
        value(&self.sides[0]) != value(&self.sides[1])
    }
}

/// The texts of a point, and the number of the row among those of the point.
type RowKey = (Vec<String>, usize);

impl TableComparison {
    /// Compares an older table with a newer one.
    pub fn new(older: &SweepTable, newer: &SweepTable) -> Self {
        let tables = [older, newer];
        let mut keys = newer.keys.clone();
        keys.extend(older.keys.iter().filter(|name| !newer.keys.contains(name)).cloned());
        let mut outputs: Vec<String> = Vec::new();
        for name in newer.names.iter().chain(&older.names) {
            if !keys.contains(name) && !outputs.contains(name) {
                outputs.push(name.clone());
            }
        }
        let texts: Vec<bool> = outputs.iter().map(|name| is_text(tables, name)).collect();
        let mut rows: Vec<ComparedRow> = Vec::new();
        let mut known: HashMap<RowKey, usize> = HashMap::new();
        for (side, table) in tables.into_iter().enumerate().rev() {
            let [keys, places] = [&keys, &outputs].map(|names| places(table, names));
            let mut counts: HashMap<Vec<String>, usize> = HashMap::new();
            for row in table.rows.iter().filter(|row| row.status != RowStatus::Excluded) {
                let point = cells(row, &keys);
                let key: Vec<String> = point.iter().map(|cell| cell.text().to_owned()).collect();
                let count = counts.entry(key.clone()).or_default();
                let at = *known.entry((key, *count)).or_insert(rows.len());
                *count += 1;
                if at == rows.len() {
                    rows.push(ComparedRow { point, sides: [None, None] });
                }
                let mut cells = cells(row, &places);
                for cell in cells.iter_mut().zip(&texts).filter(|(_, is_text)| **is_text) {
                    cell.0.make_text();
                }
                let status = row.status.clone();
                rows[at].sides[side] = Some(ComparedSide { outputs: cells, status });
            }
        }
        Self { keys, outputs, rows }
    }
}

/// Whether a column has texts in one of two tables, and one type: then numbers in the other one are texts, too, and equal ones do not
/// differ. Fields of JSON have types of their own.
fn is_text(tables: [&SweepTable; 2], name: &String) -> bool {
    let has_texts = |table: &&SweepTable| {
        let at = table.names.iter().position(|it| it == name);
        let mut rows = table.rows.iter().filter(|row| row.status != RowStatus::Excluded);
        at.is_some_and(|at| rows.any(|row| matches!(row.cells[at], CellValue::Text(_))))
    };
    tables.iter().all(|table| !table.fields.contains(name)) && tables.iter().any(has_texts)
}

/// The places of names in a table.
fn places(table: &SweepTable, names: &[String]) -> Vec<Option<usize>> {
    names.iter().map(|name| table.names.iter().position(|it| it == name)).collect()
}

fn cells(row: &SweepRow, places: &[Option<usize>]) -> Vec<CellValue> {
    let cell = |at: &Option<usize>| at.map_or(CellValue::Null, |at| row.cells[at].clone());
    places.iter().map(cell).collect()
}
