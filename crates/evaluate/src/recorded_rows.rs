//! The rows that recorded tables have for points whose outputs are away: a user who has made a table, and then its
//! outputs away, need not compute them again to read their contents.

use std::collections::HashMap;
use std::sync::Arc;

use super::{CallError, Evaluation};
use ce_model::digest::Digest;
use ce_model::plan::PlannedSweep;
use ce_model::sweep::{CellValue, Sweep, read_cells};
use ce_storage::{Entry, Record, RecordState, Survey};

/// The rows of recorded tables with the columns of a sweep, by the outputs of their points.
#[derive(Debug, Default)]
pub struct RecordedRows(HashMap<Vec<Digest>, RecordedPoint>);

/// The rows of a point.
#[derive(Debug)]
pub struct RecordedPoint {
    /// The names of the columns, with the columns of points first.
    pub names: Arc<[String]>,
    pub rows: Vec<Vec<CellValue>>,
}

impl RecordedRows {
    /// Reads the recorded tables with the columns of a sweep. One that is damaged says nothing.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read.
    pub fn read(evaluation: &Evaluation, sweep: &PlannedSweep) -> Result<Self, CallError> {
        let storage = &evaluation.storage;
        let rules = &evaluation.task.sweeps[sweep.sweep.index()];
        let (columns, outputs) = (recipe_columns(rules), evaluation.task.passed_names(sweep.body));
        let mut found = HashMap::new();
        for name in Survey::new(storage).tables()? {
            let mut points = Vec::new();
            let header = storage.tables().read_recipe(&name, |row| points.push(row))?;
            let header = header.filter(|it| it.columns == columns && it.outputs == outputs);
            let Some(header) = header else { continue };
            let Ok(RecordState::Valid(Record::Table(record))) =
                storage.records().read_entry(&Entry::Table(name.clone()))
            else {
                continue;
            };
            let mut table = Vec::new();
            storage.tables().read_lines(&name, |line| table.extend([line, b"\n"].concat()))?;
            let digest = Digest::hash_bytes(&table);
            let is_whole = record.outputs.first().is_some_and(|it| it.digest == digest);
            let Ok(table) = read_cells(&table) else { continue };
            if !is_whole || !table.names.starts_with(&header.names) {
                continue;
            }
            let names: Arc<[String]> = table.names.into();
            let mut rows = table.rows.into_iter().peekable();
            for point in points {
                let is_of_point = |row: &Vec<CellValue>| {
                    point.values.iter().zip(row).all(|(text, cell)| text == cell.text())
                };
                let rows = std::iter::from_fn(|| rows.next_if(is_of_point)).collect();
                let outputs = point.outputs.into_iter().flatten().map(|output| output.digest);
                found.insert(outputs.collect(), RecordedPoint { names: Arc::clone(&names), rows });
            }
        }
        Ok(Self(found))
    }

    /// The rows of the point with these outputs.
    pub fn find_point(&self, outputs: &[Digest]) -> Option<&RecordedPoint> {
        self.0.get(outputs)
    }
}

impl RecordedPoint {
    /// The number in a column, if it has one row.
    pub(super) fn number(&self, column: &str) -> Option<f64> {
        let at = self.names.iter().position(|name| name == column)?;
        match &self.rows[..] {
            [row] => row[at].number(),
            _ => None,
        }
    }
}

/// The rules of columns as recipes have them.
pub(super) fn recipe_columns(rules: &Sweep) -> Vec<String> {
    rules.columns.iter().map(|it| format!("{:02} {}", it.output, it.shape.text())).collect()
}
