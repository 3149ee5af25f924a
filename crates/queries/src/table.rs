//! The table of a sweep as far as its points are there, and what became of the others.
//!
//! A row is made from an evaluation that only looked: nothing is computed, and nothing is written. Rows of different points with the same
//! number rest on one execution, such as values at commits with the same tree.
//!
//! A [`RowOrigin`] is the execution that made a row: where, when, on what machine, and whether nothing else was executed beside it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use ce_evaluate::{
    Absence, CallError, CallFailure, CallNumbers, Evaluation, Outcome, RecordedPoint, RecordedRows,
    point_outputs,
};
use ce_exchange::Attestations;
use ce_history::OriginalExecution;
use ce_model::digest::Digest;
use ce_model::exit::Explain;
use ce_model::plan::{CallId, Operation, PlannedSweep, Source, SweepRows};
use ce_model::resources::{Resource, Resources};
use ce_model::suggest::nearest;
use ce_model::sweep::{
    self, CellValue, ColumnShape, GatheredTable, PointOutputs, REPLICATE, Replicates, STATUS,
    SheetFormat, Sweep, SweepPoint, SweepPoints, TableCell, TableColumn, TableFault, TableRow,
    fault_of_outputs,
};
use ce_model::task::{Node, NodeId, SweepId, Task};
use ce_storage::{Entry, Record, RecordState};
use rayon::iter::{IntoParallelIterator, ParallelIterator};

use crate::frame::{ColumnRole, Frame, FrameColumn, FrameRow, RowKeyError, RowOrigin, RowStatus};

/// The reason why there is no table.
#[derive(Debug, thiserror::Error, Explain)]
pub enum SweepTableError {
    /// The columns are wrong.
    #[error(transparent)]
    #[hint(_0.hint())]
    Columns(#[from] TableFault),
    /// The rows of an output lack a key.
    #[error(transparent)]
    #[hint(_0.hint())]
    RowKey(#[from] RowKeyError),
    /// A file cannot be read.
    #[error(transparent)]
    #[exit(Storage)]
    #[hint(None)]
    Read(#[from] CallError),
}

/// A point: what became of it, and its outputs.
type ReadPoint = (FrameRow, PointOutputs);

impl Frame {
    /// Reads the table of a sweep, from an evaluation that has ended. A sweep within another one has the rows of all
    /// points of that.
    ///
    /// # Errors
    ///
    /// Fails if an output cannot be read, or two columns have one name.
    pub fn of_sweep(
        evaluation: &Evaluation,
        attestations: &Attestations,
        choice: SweepChoice,
    ) -> Result<Self, SweepTableError> {
        let rules = &evaluation.task.sweeps[choice.sweep.index()];
        let until = rules.product.replicates.as_ref().and_then(|it| it.until.clone());
        let mut table = Self { until, ..Self::default() };
        let calls = CallNumbers::new(evaluation);
        let mut numbers = PointNumbers { calls, points: HashMap::new() };
        let planned = choice.planned(evaluation);
        let outer_values = outer_values(&planned);
        for ((call, sweep), values) in planned.into_iter().zip(outer_values) {
            let outer = sweep.outer_texts().map(|(name, _)| name).zip(values);
            let outer: Vec<(String, CellValue)> = outer
                .map(|(name, value)| (evaluation.task.bound[name.index()].to_string(), value))
                .collect();
            let Some(rows) = sweep.rows() else {
                table.extent.has_unknown_points = true;
                continue;
            };
            table.extent.points += rows.points.len();
            table.extent.may_grow |= sweep.grows();
            let read = read_sweep(evaluation, attestations, call, sweep, rows, &mut numbers)?;
            table.append(outer, read);
        }
        table.fill();
        table.extent.calls = numbers.points.len();
        table.extent.has_unknown_points |= choice.is_unplanned(evaluation);
        if table.extent.has_unknown_points {
            table.extent.unknown_because = RowStatus::of_unknown_points(evaluation);
        }
        let of_rows = rules.columns.iter().find(|column| column.shape == ColumnShape::Rows);
        let of_rows = of_rows.map(|column| column.output);
        table.find_row_keys(rules.row_keys(), |column| {
            of_rows.is_some() && column.is_field && column.output == of_rows
        })?;
        for (name, measure) in rules.measures() {
            if let Some(at) = table.place(name) {
                table.columns[at].measure = measure.clone();
            }
        }
        Ok(table)
    }
}

/// The values of the names that sweeps depend on, for each of them. They make columns, as the names of points do.
fn outer_values(planned: &[(CallId, &PlannedSweep)]) -> Vec<Vec<CellValue>> {
    let width = planned.first().map_or(0, |(_, sweep)| sweep.outer_texts().count());
    let rows = planned.iter().map(|(_, sweep)| {
        (0, sweep.outer_texts().map(|(_, text)| TableCell::Text(text)).collect())
    });
    let rows: Vec<TableRow<'_>> = rows.collect();
    sweep::cell_values(width, &rows)
}

/// Reads the table of a sweep at a point of those around it, with excluded rows.
fn read_sweep(
    evaluation: &Evaluation,
    attestations: &Attestations,
    call: CallId,
    sweep: &PlannedSweep,
    rows: &SweepRows,
    numbers: &mut PointNumbers<'_>,
) -> Result<Frame, SweepTableError> {
    let rules = &evaluation.task.sweeps[sweep.sweep.index()];
    let columns = columns(evaluation, sweep, rules, &rows.points);
    let away = away_points(evaluation, rules, rows);
    let recorded = match away.iter().any(Option::is_some) {
        true => RecordedRows::read(evaluation, sweep)?,
        false => RecordedRows::default(),
    };
    let recorded: Vec<Option<&RecordedPoint>> =
        away.iter().map(|outputs| recorded.find_point(outputs.as_ref()?)).collect();
    let read = (0..rows.points.len()).into_par_iter().map(|number| match recorded[number] {
        Some(_) => {
            let origin = RowOrigin::find(evaluation, attestations, rows.row(number));
            Ok((FrameRow { origin: origin.map(Arc::new), ..FrameRow::default() }, None))
        }
        None => read_point(evaluation, attestations, &columns, rows.row(number)),
    });
    let read: Vec<ReadPoint> = read.collect::<Result<_, _>>()?;
    let mut points = Vec::with_capacity(read.len());
    let mut outputs = Vec::with_capacity(read.len());
    let mut uncertain = vec![None; rows.points.len()];
    for (of_point, end) in rows.replicated.iter().zip(sweep.ends().unwrap_or_default()) {
        uncertain[of_point.rows.clone()].fill(end.shortfall());
    }
    for (number, (mut row, outputs_of_point)) in read.into_iter().enumerate() {
        let (call, output_calls) = numbers.of_point(rows.row(number));
        (row.call, row.output_calls) = (Some(call), output_calls);
        row.uncertain = uncertain[number].take();
        points.push(row);
        outputs.push(outputs_of_point);
    }
    let gathered = GatheredTable::new(&rows.points, &outputs, &columns, false)?;
    let found = gathered.rows().collect::<Vec<_>>();
    let values = sweep::cell_values(gathered.names().len(), &found);
    let mut found = found.iter().map(|(number, _)| *number).zip(values).peekable();
    let is_key = evaluation.plan.key_columns(&evaluation.task, sweep, &rows.points);
    let mut table = Frame::default();
    for (name, is_key) in rows.points.names().iter().zip(is_key) {
        let role = if is_key { ColumnRole::Key } else { ColumnRole::Label };
        table.columns.push(FrameColumn::new(name, role));
    }
    for (name, rule) in gathered.results() {
        table.columns.push(result_column(name, Some(rule)));
    }
    let all = all_points(evaluation, call, rules);
    let mut included = rows.points.iter().enumerate().peekable();
    // A possible replicate is not excluded.
    let mut possible = rows.possible.iter().peekable();
    let least = rules.product.replicates.as_ref().map_or(u32::MAX, Replicates::least);
    let mut next_rows = |number: usize, table: &mut Frame| {
        while let Some((_, cells)) = found.next_if(|(of_point, _)| *of_point == number) {
            match recorded[number] {
                None => table.add_row(points[number].clone(), (0..).zip(cells)),
                Some(recorded) => {
                    let of_point = &cells[..rows.points.names().len()];
                    add_recorded_rows(table, &points[number], of_point, recorded, rules);
                }
            }
        }
    };
    for point in all.iter().flat_map(SweepPoints::iter) {
        let is_possible = possible.next_if(|next| same(*next, point)).is_some();
        match included.next_if(|(_, next)| same(*next, point)) {
            Some((number, _)) => next_rows(number, &mut table),
            None if is_possible || number_of_replicate(point) > least => {}
            None => {
                let texts = point.values().map(|(_, text)| CellValue::Text(text.to_string()));
                let row = FrameRow { status: RowStatus::Excluded, ..FrameRow::default() };
                table.add_row(row, texts.enumerate());
            }
        }
    }
    included.for_each(|(number, _)| next_rows(number, &mut table));
    Ok(table)
}

/// A column of results that a rule makes.
fn result_column(name: &str, rule: Option<&TableColumn>) -> FrameColumn {
    FrameColumn {
        output: rule.map(|rule| rule.output),
        is_field: rule.is_none_or(|rule| rule.shape.is_json()),
        ..FrameColumn::new(name, ColumnRole::Value)
    }
}

/// Adds the rows of a point as they were recorded, behind its own cells: another point may have had the same outputs. A column that is new
/// is a field of JSON, of the only output that has fields.
fn add_recorded_rows(
    table: &mut Frame,
    row: &FrameRow,
    of_point: &[CellValue],
    recorded: &RecordedPoint,
    rules: &Sweep,
) {
    let mut json = rules.columns.iter().filter(|it| it.shape.is_json());
    let only = json.next().filter(|_| json.next().is_none());
    let mut places = Vec::with_capacity(recorded.names.len());
    for name in &*recorded.names {
        places.push(match table.place(name) {
            Some(at) => Some(at).filter(|at| *at >= of_point.len()),
            None if rules.allow_failed && name == STATUS => None,
            None => Some(table.add_column(result_column(name, only))),
        });
    }
    for cells in &recorded.rows {
        let results =
            places.iter().zip(cells).filter_map(|(at, cell)| Some(((*at)?, cell.clone())));
        table.add_row(row.clone(), of_point.iter().cloned().enumerate().chain(results));
    }
}

/// The digests of the outputs of each point whose outputs are known and not there.
fn away_points(
    evaluation: &Evaluation,
    rules: &Sweep,
    rows: &SweepRows,
) -> Vec<Option<Vec<Digest>>> {
    let away = rows.iter().map(|(_, sources)| {
        let is_away = rules.has_table
            && sources.iter().any(|source| {
                matches!(evaluation.plan.origin(*source), Source::Output { .. })
                    && !evaluation.is_there(*source)
            });
        if is_away {
            sources.iter().map(|source| evaluation.digest(*source)).collect()
        } else {
            None
        }
    });
    away.collect()
}

/// The number of the replicate that a point is; zero if it is none.
fn number_of_replicate(point: SweepPoint<'_>) -> u32 {
    point.value(REPLICATE).and_then(|number| number.parse().ok()).unwrap_or_default()
}

/// Whether two points, which may be of different sets, have the same texts and files.
fn same(one: SweepPoint<'_>, other: SweepPoint<'_>) -> bool {
    one.texts_and_files().eq(other.texts_and_files())
}

/// All points of a sweep that leaves out some.
fn all_points(evaluation: &Evaluation, call: CallId, rules: &Sweep) -> Option<SweepPoints> {
    if !rules.product.leaves_out() {
        return None;
    }
    let computed = match &evaluation.plan.call(call).inputs[..] {
        [] => None,
        [sheet, ..] => {
            let contents = evaluation.contents(*sheet).ok()??;
            let read = sweep::read(SheetFormat::detect(&contents), &contents).ok()?;
            let planned = evaluation.plan.gathered(call)?;
            Some(planned.with_files(&evaluation.task, &evaluation.plan, read))
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
    for (output, name) in (0..).zip(evaluation.task.passed_names(sweep.body)) {
        let name =
            if names.contains(&name) { format!("{name} (output {output:02})") } else { name };
        names.push(name.clone());
        columns.push(TableColumn { output, shape: ColumnShape::One(name.into()) });
    }
    columns
}

/// Reads a point: its outputs if they exist, or else its status.
fn read_point(
    evaluation: &Evaluation,
    attestations: &Attestations,
    columns: &[TableColumn],
    sources: &[Source],
) -> Result<ReadPoint, CallError> {
    let mut row = FrameRow::default();
    if let Err(error) = evaluation.derive(sources.iter().copied(), false) {
        row.status = RowStatus::Failed { reason: error.to_string(), log: None };
        return Ok((row, None));
    }
    // A table that could be made is not there.
    let are_there = sources.iter().all(|source| match evaluation.plan.origin(*source) {
        Source::Output { .. } => evaluation.is_there(*source),
        _ => true,
    });
    let outputs = if are_there { point_outputs(evaluation, columns, sources)? } else { None };
    let Some(outputs) = outputs else {
        row.status = RowStatus::find(evaluation, sources);
        return Ok((row, None));
    };
    row.origin = RowOrigin::find(evaluation, attestations, sources).map(Arc::new);
    let Some(reason) = fault_of_outputs(columns, &outputs) else {
        return Ok((row, Some(outputs)));
    };
    row.status = RowStatus::Failed { reason, log: None };
    Ok((row, None))
}

impl RowStatus {
    /// Determines the status of a point with outputs from these sources, if one is missing.
    ///
    /// A failure of a call that it needs counts first, then an execution.
    fn find(evaluation: &Evaluation, sources: &[Source]) -> Self {
        Self::with_call(evaluation, sources).0
    }

    /// Does the same, and also returns the call that has failed or is executed, if there is one.
    fn with_call(evaluation: &Evaluation, sources: &[Source]) -> (Self, Option<CallId>) {
        let own = awaited_calls(evaluation, sources);
        let is_waiting = own.iter().any(|call| {
            evaluation.plan.inputs(*call).iter().any(|it| evaluation.digest(*it).is_none())
        });
        let mut status = (if is_waiting { Self::Waiting } else { Self::Missing }, None);
        let (mut waiting, mut seen) = (own, HashSet::new());
        while let Some(call) = waiting.pop() {
            if !seen.insert(call) {
                continue;
            }
            match Self::of_call(evaluation, call) {
                Some(failed @ Self::Failed { .. }) => return (failed, Some(call)),
                Some(running) => status = (running, Some(call)),
                None => {}
            }
            waiting.extend(awaited_calls(evaluation, evaluation.plan.inputs(call)));
        }
        status
    }

    /// Finds the failed or running call that keeps the points of a sweep unknown, if there is one.
    fn of_unknown_points(evaluation: &Evaluation) -> Option<(CallId, Self)> {
        let plan = &evaluation.plan;
        let gathering = plan.calls().filter_map(|(call, _)| Some((call, plan.gathered(call)?)));
        let mut unknown = gathering.filter(|(_, sweep)| sweep.rows().is_none());
        unknown.find_map(|(call, _)| {
            // A fault of points that no call makes is an error of the sweep itself.
            if let Some(failed @ Self::Failed { .. }) = Self::of_call(evaluation, call) {
                return Some((call, failed));
            }
            let (status, call) = Self::with_call(evaluation, plan.inputs(call));
            Some((call?, status))
        })
    }

    /// The state of a missing call, if it has failed or is being executed.
    fn of_call(evaluation: &Evaluation, call: CallId) -> Option<Self> {
        let storage = &evaluation.storage;
        let outcome = evaluation.outcome(call)?;
        let name = outcome.name();
        if let Some(CallFailure { error, log, .. }) = outcome.failure() {
            let log = log.as_ref().map(|log| evaluation_path(evaluation, &log.name));
            return Some(Self::Failed { reason: error.to_string(), log });
        }
        if outcome.suspended().is_some() {
            return Some(Self::Suspended);
        }
        let Outcome::Absent(_, Absence::Missing(prior)) = outcome else { return None };
        if let Some(holder) = storage.leases().holder(name) {
            return Some(Self::Running(holder));
        }
        let record = prior.as_ref()?.failure.as_ref()?;
        let log = storage.attempts().failure_log(name);
        let log = log.map(|log| evaluation_path(evaluation, &log));
        Some(Self::Failed { reason: record.failure.reason.clone(), log })
    }
}

/// The calls that make the missing ones of these values.
fn awaited_calls(evaluation: &Evaluation, sources: &[Source]) -> Vec<CallId> {
    let absent = sources.iter().filter(|source| evaluation.digest(**source).is_none());
    absent.filter_map(|source| evaluation.plan.awaited(*source)).collect()
}

fn evaluation_path(evaluation: &Evaluation, name: &str) -> String {
    evaluation.storage.shown(name).display().to_string()
}

/// The numbers of points, from 1 in the order in which they are asked for: those that rest on the same calls have one.
#[derive(Debug)]
struct PointNumbers<'a> {
    calls: CallNumbers<'a>,
    points: HashMap<Box<[usize]>, usize>,
}

impl PointNumbers<'_> {
    /// The number of a point, and the numbers of the calls that make its outputs.
    fn of_point(&mut self, outputs: &[Source]) -> (usize, Box<[usize]>) {
        let calls: Box<[usize]> = outputs.iter().map(|it| self.calls.of_output(*it)).collect();
        let next = self.points.len() + 1;
        (*self.points.entry(calls.clone()).or_insert(next), calls)
    }
}

/// A sweep of a task: its rules and its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweepChoice {
    sweep: SweepId,
    body: NodeId,
}

/// The reason why no sweep is chosen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Explain)]
pub enum SweepChoiceError {
    /// The task has no sweep.
    #[error("the task {0} has no sweep")]
    #[hint("give --each or --points to see the jobs of these points")]
    None(String),
    /// The task has no sweep, and a name was given.
    #[error("the task {task} has no sweep, so none is called {name}")]
    #[hint("leave out --sweep: --each and --points alone show the jobs of their points")]
    NoneNamed {
        /// The name of the task.
        task: String,
        /// The name that was given.
        name: String,
    },
    /// Several could be meant; their names.
    #[error("the task has several sweeps: {}", .0.join(", "))]
    #[hint("choose one with --sweep, by any name that it alone has")]
    Several(Vec<String>),
    /// None has this name.
    #[error("the task has no sweep {name}; there are {}", known.join(", "))]
    #[hint(Some(nearest_or_any(nearest.as_deref())))]
    Unknown {
        name: String,
        /// The most similar name.
        nearest: Option<String>,
        /// The existing names.
        known: Vec<String>,
    },
}

fn nearest_or_any(nearest: Option<&str>) -> String {
    match nearest {
        Some(name) => format!("did you mean {name}?"),
        None => "give --sweep one of these names".to_owned(),
    }
}

/// Chooses the sweep of a task with this name: its definition, label, place, or computation of its body; without a name, the only one. The
/// one over the task's own inputs comes first.
///
/// # Errors
///
/// Fails if there is none, or more than one.
pub fn choose_sweep(task: &Task, name: Option<&str>) -> Result<SweepChoice, SweepChoiceError> {
    let mut sweeps = all_sweeps(task);
    let over_inputs = sweeps.iter().find(|it| !task.sweeps[it.sweep.index()].has_table).copied();
    let Some(name) = name else {
        return match (over_inputs, &sweeps[..]) {
            (Some(jobs), _) => Ok(jobs),
            (None, [only]) => Ok(*only),
            (None, []) => Err(SweepChoiceError::None(task.name.to_string())),
            (None, several) => Err(SweepChoiceError::Several(titles(task, several))),
        };
    };
    sweeps.retain(|it| Some(*it) != over_inputs);
    let directory = name.trim_end_matches('/');
    let found: Vec<SweepChoice> = sweeps
        .iter()
        .filter(|it| it.names(task).iter().any(|known| known == name || known == directory))
        .copied()
        .collect();
    match &found[..] {
        [only] => Ok(*only),
        [] if sweeps.is_empty() => {
            Err(SweepChoiceError::NoneNamed { task: task.name.to_string(), name: name.to_owned() })
        }
        [] => {
            let all: Vec<String> = sweeps.iter().flat_map(|it| it.names(task)).collect();
            let (nearest, known) = (nearest(name, &all), titles(task, &sweeps));
            Err(SweepChoiceError::Unknown { name: name.to_owned(), nearest, known })
        }
        several => Err(SweepChoiceError::Several(titles(task, several))),
    }
}

/// All sweeps of a task, in the order of its workflow.
pub fn all_sweeps(task: &Task) -> Vec<SweepChoice> {
    let mut sweeps: Vec<SweepChoice> = Vec::new();
    for (_, node) in task.workflow.nodes() {
        if let Node::Sweep { sweep, inputs, .. } = node {
            let choice = SweepChoice { sweep: *sweep, body: inputs[0].node };
            if !sweeps.contains(&choice) {
                sweeps.push(choice);
            }
        }
    }
    sweeps
}

fn titles(task: &Task, sweeps: &[SweepChoice]) -> Vec<String> {
    let mut titles = Vec::with_capacity(sweeps.len());
    for sweep in sweeps {
        titles.push(match sweep.names(task).split_first() {
            Some((first, [])) => first.clone(),
            Some((first, others)) => format!("{first} (or {})", others.join(", ")),
            None => String::new(),
        });
    }
    titles
}

impl SweepChoice {
    /// Its first name: its label if it has one. The sweep over a task's own inputs may have no label, which is an empty
    /// text.
    pub fn title(self, task: &Task) -> String {
        self.names(task).into_iter().next().unwrap_or_default()
    }

    /// The short names of its tables in the storage, which need not be there.
    pub fn tables(self, evaluation: &Evaluation) -> Vec<String> {
        let outcomes = self.planned(evaluation).into_iter();
        let outcomes = outcomes.filter_map(|(call, _)| evaluation.outcome(call));
        outcomes.map(|outcome| outcome.name().short()).collect()
    }

    /// The names that it is defined by, its label, its place, and the computation of its body, each once.
    pub fn names(self, task: &Task) -> Vec<String> {
        let rules = &task.sweeps[self.sweep.index()];
        let body = match &task.workflow[self.body] {
            Node::Computation { computation, .. } => computation.written(task).to_owned(),
            _ => String::new(),
        };
        let place = rules.place.display().to_string();
        let own = task.workflow.nodes().filter(|(_, node)| match node {
            Node::Sweep { sweep, inputs, .. } => {
                *sweep == self.sweep && inputs[0].node == self.body
            }
            _ => false,
        });
        let defined = own.filter_map(|(id, _)| task.definitions.get(&id)).flatten();
        let defined = defined.map(ToString::to_string);
        let names = defined.chain([rules.label.to_string(), place, body]);
        let mut different: Vec<String> = Vec::new();
        for name in names {
            if !name.is_empty() && !different.contains(&name) {
                different.push(name);
            }
        }
        different
    }

    /// The calls that gather it, one for each point of the sweeps around it that it depends on, in the order of the points.
    fn planned(self, evaluation: &Evaluation) -> Vec<(CallId, &PlannedSweep)> {
        let calls = evaluation.plan.calls().filter_map(|(call, planned)| {
            let Operation::Sweep(id) = planned.operation else { return None };
            let sweep = evaluation.plan.sweep(id);
            (sweep.sweep == self.sweep && sweep.body == self.body).then_some((call, sweep))
        });
        let mut calls: Vec<_> = calls.collect();
        evaluation.plan.in_table_order(&evaluation.task, &mut calls);
        calls
    }

    /// Whether it may be planned more often than it is: the points of a sweep around it are not known.
    fn is_unplanned(self, evaluation: &Evaluation) -> bool {
        evaluation.plan.grows() && self.planned(evaluation).is_empty()
    }
}

impl RowOrigin {
    /// Finds the executions that made the outputs of a point; `None` unless one made the first of them.
    pub(crate) fn find(
        evaluation: &Evaluation,
        attestations: &Attestations,
        sources: &[Source],
    ) -> Option<Self> {
        let storage = &evaluation.storage;
        let calls = sources.iter().map(|source| match evaluation.plan.origin(*source) {
            Source::Output { call, .. } => Some(call),
            _ => None,
        });
        let calls: Vec<Option<CallId>> = calls.collect();
        let mut origin: Option<Self> = None;
        for (at, call) in calls.iter().enumerate() {
            if let (Some(before), Some(origin)) =
                (calls[..at].iter().position(|it| it == call), &mut origin)
            {
                origin.executions.push(origin.executions[before].clone());
                continue;
            }
            let found = call.and_then(|call| {
                let entry = Entry::Call(evaluation.outcome(call)?.name().clone());
                match storage.records().read_entry(&entry) {
                    Ok(RecordState::Valid(Record::Call(record))) => Some((entry.short(), record)),
                    _ => None,
                }
            });
            let Some((name, record)) = found else {
                origin.as_mut()?.executions.push(None);
                continue;
            };
            let made = OriginalExecution::find(storage, &record);
            let made = made.or_published(|| attestations.first_published(&record));
            let exclusive = record.execution().map(|_| made.resources.iter().any(is_exclusive));
            let asked = call.and_then(|call| evaluation.plan.resources(call).ok().flatten());
            let asks = asked.is_some_and(|it| it.exclusive);
            let resources = Resources::of_lines(&made.resources).told().lines();
            let asked = record.execution().map(|_| match &resources[..] {
                [] => "none".into(),
                lines => lines.join(", ").into(),
            });
            let OriginalExecution {
                at, seconds, host, machine, others, published, taken_over, ..
            } = made;
            let execution = taken_over.map_or_else(|| name.clone(), |it| it.first);
            let first = origin.get_or_insert_with(|| Self {
                call: name,
                executions: Vec::new(),
                host,
                machine,
                others,
                asked,
                exclusive,
                is_disturbed: false,
                published,
                at,
                seconds,
            });
            first.executions.push(Some(execution));
            first.is_disturbed |= asks && exclusive == Some(false);
        }
        origin
    }
}

/// Whether a line of a file `resources` asks that nothing else is executed meanwhile.
fn is_exclusive(line: &String) -> bool {
    line == Resource::Exclusive.word()
}
