//! The table of a sweep as far as its points are there, and what became of the others.
//!
//! A row is made from an evaluation that only looked: nothing is computed, and nothing is written.

mod calls;
mod choice;
mod compare;
mod status;

use std::collections::HashMap;

use jiff::Timestamp;
use rayon::iter::{IntoParallelIterator, ParallelIterator};

use self::calls::CallNumbers;
pub use self::choice::{SweepChoice, SweepChoiceError, all_sweeps, choose_sweep};
pub use self::compare::{ComparedRow, ComparedSide, TableComparison};
pub use self::status::RowStatus;
use ce_evaluate::{CallError, Evaluation};
use ce_history::OriginalExecution;
use ce_model::exit::{Exit, Explain};
use ce_model::plan::{CallId, PlannedSweep, Source, SweepRows};
use ce_model::sweep::{
    self, CellValue, ColumnShape, GatheredTable, PointOutputs, SheetFormat, Sweep, SweepPoint,
    SweepPoints, TableCell, TableColumn, TableFault, TableRow, fault_of_outputs,
};
use ce_storage::{Entry, Record, RecordState};

/// The table of a sweep, as far as it is there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SweepTable {
    /// The names of the columns, as far as they are known.
    pub names: Vec<String>,
    /// The names of those columns that tell points apart.
    pub keys: Vec<String>,
    /// The names of those that are fields of JSON. The cells of others have one type.
    pub fields: Vec<String>,
    /// The rows, in the order of the points. One that is not there has values for its point only.
    pub rows: Vec<SweepRow>,
    /// Whether there are points that are not known, since they are computed by a call that is missing.
    pub has_unknown_points: bool,
    /// Of those: a call that has failed or is executed, and without which points are not known.
    pub unknown_because: Option<(CallId, RowStatus)>,
    /// The number of points that are known and not excluded, and that of the distinct calls that they rest on.
    pub points_and_calls: [usize; 2],
}

/// A row of a [`SweepTable`].
#[derive(Clone, Debug, PartialEq)]
pub struct SweepRow {
    /// A value for each column.
    pub cells: Vec<CellValue>,
    /// What became of its point.
    pub status: RowStatus,
    /// The number of the calls that make the outputs of its point, from 1 in the order of the rows: rows of different points
    /// with the same number rest on the same execution. `None` for an excluded point.
    pub call: Option<usize>,
    /// The execution that made its first output, if one did.
    pub origin: Option<RowOrigin>,
}

/// The execution that made a row.
#[derive(Clone, Debug, PartialEq)]
pub struct RowOrigin {
    /// The short name of the call.
    pub call: String,
    /// Its host, if that is still recorded.
    pub host: Option<String>,
    /// Its end, or the time at which outputs were adopted, if it is known.
    pub at: Option<Timestamp>,
    /// How long it took, if it is known.
    pub seconds: Option<f64>,
}

/// Why there is no table.
#[derive(Debug, thiserror::Error)]
pub enum SweepTableError {
    /// The columns are wrong.
    #[error(transparent)]
    Columns(#[from] TableFault),
    /// A file cannot be read.
    #[error(transparent)]
    Read(#[from] CallError),
}

impl Explain for SweepTableError {
    fn exit(&self) -> Exit {
        match self {
            Self::Columns(_) => Exit::Malformed,
            Self::Read(_) => Exit::Storage,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Columns(fault) => fault.hint(),
            Self::Read(_) => None,
        }
    }
}

/// A point, what became of it, and its outputs.
type ReadPoint = (RowStatus, PointOutputs, Option<RowOrigin>);

impl SweepTable {
    /// Reads the table of a sweep, from an evaluation that has ended. A sweep within another one has the rows of all
    /// points of that.
    ///
    /// # Errors
    ///
    /// Fails if an output cannot be read, or two columns have one name.
    pub fn read(evaluation: &Evaluation, choice: SweepChoice) -> Result<Self, SweepTableError> {
        let mut table = Self::default();
        let mut calls = CallNumbers::new(evaluation);
        let planned = choice.planned(evaluation);
        let outer_values = outer_values(&planned);
        for ((call, sweep), values) in planned.into_iter().zip(outer_values) {
            let outer = sweep.outer.iter().map(|(name, _)| *name).zip(values);
            let outer: Vec<(String, CellValue)> = outer
                .map(|(name, value)| (evaluation.task.bound[name.index()].to_string(), value))
                .collect();
            let ReadSweep { names, keys, fields, rows } = match sweep.rows() {
                Some(rows) => {
                    table.points_and_calls[0] += rows.points.len();
                    read_sweep(evaluation, (call, sweep), rows, &mut calls)?
                }
                None => {
                    table.has_unknown_points = true;
                    continue;
                }
            };
            let outer_names = || outer.iter().map(|(name, _)| name.clone());
            table.add_names(outer_names().chain(names.iter().cloned()));
            for key in outer_names().chain(keys) {
                if !table.keys.contains(&key) {
                    table.keys.push(key);
                }
            }
            table.fields.extend(fields);
            let places: HashMap<&String, usize> = table.names.iter().zip(0..).collect();
            for row in rows {
                let mut cells = vec![CellValue::Null; table.names.len()];
                for (name, value) in &outer {
                    cells[places[name]] = value.clone();
                }
                for (name, cell) in names.iter().zip(row.cells) {
                    cells[places[name]] = cell;
                }
                table.rows.push(SweepRow { cells, ..row });
            }
        }
        table.points_and_calls[1] = calls.count();
        table.has_unknown_points |= choice.is_unplanned(evaluation);
        if table.has_unknown_points {
            table.unknown_because = RowStatus::of_unknown_points(evaluation);
        }
        let width = table.names.len();
        table.rows.iter_mut().for_each(|row| row.cells.resize(width, CellValue::Null));
        Ok(table)
    }

    /// Whether points share calls.
    pub const fn is_shared(&self) -> bool {
        let [points, calls] = self.points_and_calls;
        calls < points
    }

    /// Whether all rows are there.
    pub fn is_complete(&self) -> bool {
        let is_there = |row: &SweepRow| matches!(row.status, RowStatus::Ok | RowStatus::Excluded);
        !self.has_unknown_points && self.rows.iter().all(is_there)
    }

    fn add_names(&mut self, names: impl Iterator<Item = String>) {
        for name in names {
            if !self.names.contains(&name) {
                self.names.push(name);
            }
        }
    }
}

/// The values of the names that sweeps depend on, for each of them. They make columns like those of points.
fn outer_values(planned: &[(CallId, &PlannedSweep)]) -> Vec<Vec<CellValue>> {
    let width = planned.first().map_or(0, |(_, sweep)| sweep.outer.len());
    let rows = planned
        .iter()
        .map(|(_, sweep)| (0, sweep.outer.iter().map(|(_, text)| TableCell::Text(text)).collect()));
    let rows: Vec<TableRow<'_>> = rows.collect();
    sweep::cell_values(width, &rows)
}

/// The table of a sweep at a point of those around it: as of [`SweepTable`], with excluded rows.
struct ReadSweep {
    names: Vec<String>,
    keys: Vec<String>,
    fields: Vec<String>,
    rows: Vec<SweepRow>,
}

fn read_sweep(
    evaluation: &Evaluation,
    (call, sweep): (CallId, &PlannedSweep),
    rows: &SweepRows,
    calls: &mut CallNumbers<'_>,
) -> Result<ReadSweep, SweepTableError> {
    let rules = &evaluation.task.sweeps[sweep.sweep.index()];
    let columns = columns(evaluation, sweep, rules, &rows.points);
    let read = |number| read_point(evaluation, &columns, rows.row(number));
    let read: Vec<ReadPoint> =
        (0..rows.points.len()).into_par_iter().map(read).collect::<Result<_, _>>()?;
    let mut points = Vec::with_capacity(read.len());
    let mut outputs = Vec::with_capacity(read.len());
    for (number, (status, outputs_of_point, origin)) in read.into_iter().enumerate() {
        points.push((status, calls.of_point(rows.row(number)), origin));
        outputs.push(outputs_of_point);
    }
    let gathered = GatheredTable::new(&rows.points, &outputs, &columns, false)?;
    let (names, found) = (gathered.names(), gathered.rows().collect::<Vec<_>>());
    let values = sweep::cell_values(names.len(), &found);
    let mut found = found.iter().map(|(number, _)| *number).zip(values).peekable();
    let is_key = evaluation.plan.key_columns(&evaluation.task, sweep, &rows.points);
    let keys = rows.points.names().iter().zip(is_key).filter(|(_, is_key)| *is_key);
    let keys = keys.map(|(name, _)| name.clone()).collect();
    let mut table = Vec::with_capacity(found.len());
    let all = all_points(evaluation, call, rules);
    let mut included = rows.points.iter().enumerate().peekable();
    let mut next_rows = |number: usize, table: &mut Vec<SweepRow>| {
        while let Some((_, cells)) = found.next_if(|(of_point, _)| *of_point == number) {
            let (status, call, origin) = points[number].clone();
            table.push(SweepRow { cells, status, call: Some(call), origin });
        }
    };
    for point in all.iter().flat_map(SweepPoints::iter) {
        match included.next_if(|(_, next)| same(*next, point)) {
            Some((number, _)) => next_rows(number, &mut table),
            None => {
                let texts = point.values().map(|(_, text)| CellValue::Text(text.to_string()));
                let mut cells: Vec<CellValue> = texts.collect();
                cells.resize(names.len(), CellValue::Null);
                let status = RowStatus::Excluded;
                table.push(SweepRow { cells, status, call: None, origin: None });
            }
        }
    }
    included.for_each(|(number, _)| next_rows(number, &mut table));
    let fields = gathered.fields().cloned().collect();
    Ok(ReadSweep { names: names.to_vec(), keys, fields, rows: table })
}

/// Whether two points, which may be of different sets, have the same texts.
fn same(one: SweepPoint<'_>, other: SweepPoint<'_>) -> bool {
    one.values().map(|(_, text)| text).eq(other.values().map(|(_, text)| text))
}

/// All points of a sweep that leaves out some.
fn all_points(evaluation: &Evaluation, call: CallId, rules: &Sweep) -> Option<SweepPoints> {
    rules.product.exclude.as_ref()?;
    let computed = match &evaluation.plan.call(call).inputs[..] {
        [] => None,
        [sheet, ..] => {
            let contents = evaluation.contents(*sheet).ok()??;
            Some(sweep::read(SheetFormat::of(&contents), &contents).ok()?)
        }
    };
    Some(sweep::all_points(&rules.product, computed))
}

/// The columns of a table. Jobs that are points have one for each output.
fn columns(
    evaluation: &Evaluation,
    sweep: &PlannedSweep,
    rules: &Sweep,
    points: &SweepPoints,
) -> Vec<TableColumn> {
    if rules.has_table {
        return rules.columns.clone();
    }
    let mut names = points.names().to_vec();
    let mut columns = Vec::new();
    for (output, name) in (0..).zip(evaluation.body_outputs(sweep)) {
        let name =
            if names.contains(&name) { format!("{name} (output {output:02})") } else { name };
        names.push(name.clone());
        columns.push(TableColumn { output, shape: ColumnShape::One(name.into()) });
    }
    columns
}

/// Reads a point: its outputs if they are there, or else what became of it.
fn read_point(
    evaluation: &Evaluation,
    columns: &[TableColumn],
    sources: &[Source],
) -> Result<ReadPoint, CallError> {
    if let Err(error) = evaluation.derive(sources.iter().copied(), false) {
        return Ok((RowStatus::Failed { reason: error.to_string(), log: None }, None, None));
    }
    // A table that could be made is not there.
    let is_there = |source: &Source| match evaluation.plan.origin(*source) {
        Source::Output { .. } => evaluation.is_there(*source),
        _ => true,
    };
    let outputs = match sources.iter().all(is_there) {
        true => evaluation.point_outputs(columns, sources)?,
        false => None,
    };
    let Some(outputs) = outputs else {
        return Ok((RowStatus::of(evaluation, sources), None, None));
    };
    let origin = sources.first().and_then(|source| origin(evaluation, *source));
    Ok(match fault_of_outputs(columns, &outputs) {
        None => (RowStatus::Ok, Some(outputs), origin),
        Some(reason) => (RowStatus::Failed { reason, log: None }, None, origin),
    })
}

/// Finds the execution that made a value.
fn origin(evaluation: &Evaluation, source: Source) -> Option<RowOrigin> {
    let Source::Output { call, .. } = evaluation.plan.origin(source) else { return None };
    let storage = &evaluation.storage;
    let entry = Entry::Call(evaluation.outcome(call)?.outputs()?.name.clone());
    let Ok(RecordState::Valid(Record::Call(record))) = storage.records().read_entry(&entry) else {
        return None;
    };
    let OriginalExecution { at, seconds, host, .. } = OriginalExecution::of(storage, &record);
    Some(RowOrigin { call: entry.short(), host, at, seconds })
}
