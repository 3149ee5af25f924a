//! A table of results: its columns with their roles, and its rows. The table of a sweep, a file and a record are all of this type, and
//! summaries, comparisons, steps and pages are views of it.
//!
//! The rows of a point are a [group](Frame::groups). **The values that one call makes in a column are one measurement**, however many rows
//! have them. Columns of texts in an output that gives rows tell points apart, as the names of points do
//! (`Frame::find_row_keys`).

mod groups;
mod row;
mod row_columns;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use ce_model::exit::Explain;
use ce_model::host_use::DisturbedCalls;
use ce_model::plan::CallId;
use ce_model::shared_text::SharedText;
use ce_model::suggest::UnknownName;
use ce_model::sweep::{CellValue, ColumnMeasure, REPLICATE, Until};

pub use self::groups::{CallValues, FrameSide, MeasuredSide, MeasuredValue, RowGroup, SideRows};
pub(crate) use self::groups::{cells_at, grouped, has_one_text, row_numbers};
pub(crate) use self::row::measured_beside_others;
pub use self::row::{FrameRow, RowOrigin, RowStatus};
pub use self::row_columns::{
    ROW_COLUMNS, RowColumn, RowFact, RowSubject, row_column_name, run_in_words,
};

/// A table of results.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Frame {
    /// The columns, as far as they are known.
    pub columns: Vec<FrameColumn>,
    /// The rows, each with a cell for every column.
    pub rows: Vec<FrameRow>,
    /// The rule by which replicates end, if they end by results.
    pub until: Option<Until>,
    /// The points of a sweep that its rows are of.
    pub extent: SweepExtent,
    /// Whether rows have the attesters of their calls.
    pub has_attesters: bool,
    /// Whether the sweep names the columns that tell the rows of an output apart.
    pub has_row_keys: bool,
}

/// The rows of an output lack a column that should tell them apart.
#[derive(Debug, thiserror::Error, Explain)]
#[error("the rows have no column {0}, which :columns names behind by")]
#[hint(Some(_0.suggestion("columns")))]
pub struct RowKeyError(UnknownName);

/// The points of a sweep, as far as they are known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SweepExtent {
    /// The number of points that are known and not excluded.
    pub points: usize,
    /// The number of distinct calls that they rest on.
    pub calls: usize,
    /// Whether there may be more replicates than there are rows.
    pub may_grow: bool,
    /// Whether there are points that are not known, since they are computed by a call that is missing.
    pub has_unknown_points: bool,
    /// A call that has failed or is executed, and without which points are not known.
    pub unknown_because: Option<(CallId, RowStatus)>,
}

/// A column of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrameColumn {
    pub name: String,
    pub role: ColumnRole,
    /// Its unit, and which values are better.
    pub measure: ColumnMeasure,
    /// The number of the output that it is of. `None` for a name of points, and in a file.
    pub output: Option<u8>,
    /// Whether it is a field of JSON. Its cells have types of their own; the cells of another column share one.
    pub is_field: bool,
    /// Whether it may be measured although it is a key: in a file, a column of numbers with some texts may be either.
    pub is_numeric: bool,
}

/// The role of a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ColumnRole {
    /// It tells points apart.
    Key,
    /// It belongs to points, and does not tell them apart.
    Label,
    /// A text of rows by which points are not told apart.
    RowLabel,
    /// A result.
    #[default]
    Value,
}

impl FrameColumn {
    /// A column with this name and role.
    pub fn new(name: &str, role: ColumnRole) -> Self {
        Self { name: name.to_owned(), role, ..Self::default() }
    }

    /// Whether it tells points apart, apart from their replicates.
    pub fn is_point_key(&self) -> bool {
        self.role == ColumnRole::Key && self.name != REPLICATE
    }

    /// Whether a cell is a number or `NaN`, or would be one if all cells of the column were. A string of JSON is not.
    pub(crate) fn reads_as_number(&self, cell: &CellValue) -> bool {
        match cell {
            CellValue::Number(_) => cell.number().is_some(),
            CellValue::NotANumber => true,
            CellValue::Text(text) if !self.is_field => {
                text.parse::<f64>().is_ok_and(f64::is_finite)
            }
            CellValue::Null | CellValue::Boolean(_) | CellValue::Text(_) => false,
        }
    }

    /// The name of the column, with its unit if it has one.
    pub fn title(&self) -> String {
        match &self.measure.unit {
            Some(unit) => format!("{} [{unit}]", self.name),
            None => self.name.clone(),
        }
    }
}

/// The kinds of cells in a column, without the empty ones.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct CellKinds<'a> {
    /// The number of cells.
    pub(crate) cells: usize,
    /// The number of them that are numbers or `NaN`, also if no double can hold them.
    pub(crate) numbers: usize,
    /// The number of them that [read as numbers](FrameColumn::reads_as_number).
    pub(crate) readable: usize,
    /// The first text among these.
    pub(crate) text: Option<&'a CellValue>,
    /// The first one that does not read as a number.
    pub(crate) other: Option<&'a CellValue>,
}

impl<'a> CellKinds<'a> {
    pub(crate) fn new(column: &FrameColumn, cells: impl Iterator<Item = &'a CellValue>) -> Self {
        let mut kinds = Self::default();
        for cell in cells.filter(|cell| **cell != CellValue::Null) {
            kinds.cells += 1;
            let is_number = matches!(cell, CellValue::Number(_) | CellValue::NotANumber);
            kinds.numbers += usize::from(is_number);
            if column.reads_as_number(cell) {
                kinds.readable += 1;
                kinds.text = kinds.text.or((!is_number).then_some(cell));
            } else {
                kinds.other = kinds.other.or(Some(cell));
            }
        }
        kinds
    }

    /// Whether there are numbers, and nothing else.
    pub(crate) const fn are_numbers(&self) -> bool {
        self.cells > 0 && self.numbers == self.cells
    }

    /// Whether at least half of the cells read as numbers.
    pub(crate) const fn are_mostly_numbers(&self) -> bool {
        self.readable > 0 && 2 * self.readable >= self.cells
    }
}

impl Frame {
    /// The places of the columns with such a property.
    pub fn places(&self, is_meant: impl Fn(&FrameColumn) -> bool) -> Vec<usize> {
        (0..self.columns.len()).filter(|at| is_meant(&self.columns[*at])).collect()
    }

    /// The place of the column with this name.
    pub fn place(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// The names of all columns.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> + Clone {
        self.columns.iter().map(|column| &*column.name)
    }

    /// The rows, without the rows of excluded points.
    pub fn included(&self) -> impl Iterator<Item = &FrameRow> + Clone {
        self.rows.iter().filter(|row| row.status != RowStatus::Excluded)
    }

    /// Whether points share calls.
    pub const fn is_shared(&self) -> bool {
        self.extent.calls < self.extent.points
    }

    /// Whether all rows are there, and each result that should be a number is one.
    pub fn is_complete(&self) -> bool {
        !self.extent.has_unknown_points
            && self.included().all(|row| row.status == RowStatus::Ok && !row.has_nan())
    }

    /// The columns with results that are not numbers, and how many rows have one there.
    pub fn not_numbers(&self) -> impl Iterator<Item = (&str, usize)> {
        self.columns.iter().enumerate().filter_map(|(at, column)| {
            let count = self.ok().filter(|row| row.cells[at] == CellValue::NotANumber).count();
            (count > 0).then_some((&*column.name, count))
        })
    }

    /// Whether rows were measured on several machines.
    pub fn has_several_machines(&self) -> bool {
        let mut machines = self.rows.iter().filter_map(|row| row.origin.as_ref()?.machine.as_ref());
        let first = machines.next();
        machines.any(|machine| Some(machine) != first)
    }

    /// The different resources that rows of one point asked for, of the first point with some.
    pub fn different_requests(&self) -> Option<BTreeSet<SharedText>> {
        let asked = |group: RowGroup<'_, 1>| -> BTreeSet<SharedText> {
            let origins = group.sides[0].ok().filter_map(|row| row.origin.as_ref());
            origins.filter_map(|origin| origin.asked.clone()).collect()
        };
        self.groups().into_iter().map(asked).find(|asked| asked.len() > 1)
    }

    /// The number of rows that were measured beside other calls although their calls ask for `exclusive` now.
    pub fn disturbed(&self) -> usize {
        let origins = self.rows.iter().filter_map(|row| row.origin.as_ref());
        origins.filter(|origin| origin.is_disturbed).count()
    }

    /// The measurements during which others used the processors, as far as that is known.
    pub fn measured_beside_others(&self) -> DisturbedCalls {
        measured_beside_others(self.ok())
    }

    /// The rows of points whose outputs are there.
    fn ok(&self) -> impl Iterator<Item = &FrameRow> {
        self.rows.iter().filter(|row| row.status == RowStatus::Ok)
    }

    /// The number of the call that makes the value of a row in a column: rows with the same number have one measurement. In
    /// a column of points, and in a file, it is the row's.
    pub fn call_of(&self, row: &FrameRow, column: usize) -> Option<usize> {
        let output = self.columns[column].output.map(usize::from);
        output.and_then(|at| row.output_calls.get(at).copied()).or(row.call)
    }

    /// The rows of each point, without its replicate, in the order of their first rows.
    pub fn groups(&self) -> Vec<RowGroup<'_, 1>> {
        let places = self.places(FrameColumn::is_point_key).into_iter().map(Some).collect();
        grouped([FrameSide { frame: self, rows: self.included().collect(), places }])
    }

    /// The places of the columns that have measurements: numbers, and nothing else.
    pub fn measured(&self) -> Vec<usize> {
        let mut places = self.places(|column| column.role == ColumnRole::Value);
        places.retain(|at| {
            CellKinds::new(&self.columns[*at], self.ok().map(|row| &row.cells[*at])).are_numbers()
        });
        places
    }

    /// Whether all numbers in a column are finite.
    pub(crate) fn has_finite_numbers(&self, column: usize) -> bool {
        let mut cells = self.ok().map(|row| &row.cells[column]);
        cells.all(|cell| match cell {
            CellValue::Null | CellValue::NotANumber => true,
            cell => cell.number().is_some_and(f64::is_finite),
        })
    }

    /// The columns of results that have numbers and other values, so no medians, and the first of these values.
    pub fn mixed(&self) -> Vec<(&str, &str)> {
        let columns = self.columns.iter().enumerate();
        let results = columns.filter(|(_, column)| column.role == ColumnRole::Value);
        let mixed = results.filter_map(|(at, column)| {
            let kinds = CellKinds::new(column, self.ok().map(|row| &row.cells[at]));
            let other = kinds.other.filter(|_| kinds.are_mostly_numbers())?;
            Some((&*column.name, other.text()))
        });
        mixed.collect()
    }

    /// The names of the columns of rows whose texts tell no points apart.
    pub fn row_labels(&self) -> impl Iterator<Item = &str> {
        let labels = self.columns.iter().filter(|column| column.role == ColumnRole::RowLabel);
        labels.map(|column| &*column.name)
    }

    /// Adds a column, or finds the one with its name. What tells points apart somewhere is a key everywhere.
    pub(crate) fn add_column(&mut self, column: FrameColumn) -> usize {
        let Some(at) = self.place(&column.name) else {
            self.columns.push(column);
            return self.columns.len() - 1;
        };
        if column.role == ColumnRole::Key {
            self.columns[at].role = ColumnRole::Key;
        }
        at
    }

    /// Adds a row with some cells at places of columns.
    pub(crate) fn add_row(
        &mut self,
        row: FrameRow,
        cells: impl Iterator<Item = (usize, CellValue)>,
    ) {
        let mut all = vec![CellValue::Null; self.columns.len()];
        cells.for_each(|(at, cell)| all[at] = cell);
        self.rows.push(FrameRow { cells: all, ..row });
    }

    /// Adds the rows of a table, behind columns that are constant there.
    pub(crate) fn append(&mut self, constants: Vec<(String, CellValue)>, other: Self) {
        let constants: Vec<(usize, CellValue)> = constants
            .into_iter()
            .map(|(name, cell)| (self.add_column(FrameColumn::new(&name, ColumnRole::Key)), cell))
            .collect();
        let places: Vec<usize> =
            other.columns.into_iter().map(|column| self.add_column(column)).collect();
        for mut row in other.rows {
            let cells = places.iter().copied().zip(std::mem::take(&mut row.cells));
            self.add_row(row, constants.iter().cloned().chain(cells));
        }
    }

    /// Gives each row a cell for every column.
    pub(crate) fn fill(&mut self) {
        let width = self.columns.len();
        self.rows.iter_mut().for_each(|row| row.cells.resize(width, CellValue::Null));
    }

    /// Finds the roles of columns that an output has for each of its rows. The columns `by` tell points apart; without one, columns of
    /// texts do, such as the name of a benchmark, unless no calls of a point share a text.
    ///
    /// # Errors
    ///
    /// Fails if the rows have no column of this name.
    pub(crate) fn find_row_keys(
        &mut self,
        by: &[Box<str>],
        is_of_rows: impl Fn(&FrameColumn) -> bool,
    ) -> Result<(), RowKeyError> {
        let of_rows = self.places(|column| column.role == ColumnRole::Value && is_of_rows(column));
        let names = || of_rows.iter().map(|at| &*self.columns[*at].name);
        let mut keys = by.iter().map(|key| &**key).filter(|_| !of_rows.is_empty());
        if let Some(unknown) = keys.find(|key| names().all(|name| name != *key)) {
            return Err(RowKeyError(UnknownName::new(unknown, names())));
        }
        self.has_row_keys = !by.is_empty();
        let mut roles = Vec::with_capacity(of_rows.len());
        for at in &of_rows {
            let column = &self.columns[*at];
            let kinds = CellKinds::new(column, self.ok().map(|row| &row.cells[*at]));
            let is_text = kinds.cells > kinds.numbers && !kinds.are_mostly_numbers();
            let is_key = match by {
                [] => is_text && !self.is_of_calls(*at),
                by => by.iter().any(|key| **key == *column.name),
            };
            roles.push(match (is_key, is_text) {
                (true, _) => ColumnRole::Key,
                (false, true) => ColumnRole::RowLabel,
                (false, false) => ColumnRole::Value,
            });
        }
        for (at, role) in of_rows.into_iter().zip(roles) {
            self.columns[at].role = role;
        }
        Ok(())
    }

    /// Whether a column of texts tells calls apart, as a time does: no calls of a point share a text. Where each point has one call, no
    /// calls at all do, and none has several texts, since these could be benchmarks of its own.
    fn is_of_calls(&self, column: usize) -> bool {
        let mut has_replicates = false;
        for group in self.groups() {
            let calls = self.calls_of_texts(group.sides[0].ok(), column);
            let Some(calls) = calls else { return false };
            has_replicates |= calls.values().collect::<HashSet<_>>().len() > 1;
        }
        let calls = || self.calls_of_texts(self.ok(), column);
        has_replicates
            || calls().is_some_and(|calls| {
                let different: HashSet<_> = calls.values().collect();
                different.len() > 1 && different.len() == calls.len()
            })
    }

    /// The call that makes each text of a column in some rows. `None` if two calls make one.
    fn calls_of_texts<'a>(
        &self,
        rows: impl Iterator<Item = &'a FrameRow>,
        column: usize,
    ) -> Option<HashMap<&'a str, Option<usize>>> {
        let mut calls = HashMap::new();
        for row in rows.filter(|row| row.cells[column] != CellValue::Null) {
            let call = self.call_of(row, column);
            if *calls.entry(row.cells[column].text()).or_insert(call) != call {
                return None;
            }
        }
        Some(calls)
    }

    /// The units and directions of columns, by their names, where some are given.
    pub fn measures(&self) -> BTreeMap<&str, &ColumnMeasure> {
        let given = self.columns.iter().filter(|it| it.measure != ColumnMeasure::default());
        given.map(|column| (&*column.name, &column.measure)).collect()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A table in words. The header has names of points, labels such as `subject~`, results such as `seconds@0`, which is of output 0,
    /// and fields of its rows such as `seconds@0*`. A row has its cells (`-` is empty, `"1"` a text), and behind `|` the
    /// numbers of the calls that made the outputs, or a state and the number of the row's call.
    pub(crate) fn frame(text: &str) -> Frame {
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let columns = lines.next().unwrap_or_default().split_whitespace().map(column);
        let mut frame = Frame { columns: columns.collect(), ..Frame::default() };
        frame.rows = lines.map(row).collect();
        frame.find_row_keys(&[], |column| column.is_field).unwrap();
        frame
    }

    fn column(word: &str) -> FrameColumn {
        if let Some(name) = word.strip_suffix('~') {
            return FrameColumn::new(name, ColumnRole::Label);
        }
        let Some((name, output)) = word.split_once('@') else {
            return FrameColumn::new(word, ColumnRole::Key);
        };
        let column = FrameColumn::new(name, ColumnRole::Value);
        let is_field = output.ends_with('*');
        let output = output.trim_end_matches('*').parse().ok();
        FrameColumn { output, is_field, ..column }
    }

    fn row(line: &str) -> FrameRow {
        let (cells, made) = line.split_once('|').unwrap_or((line, ""));
        let cell = |word: &str| match word {
            "-" => CellValue::Null,
            "true" | "false" => CellValue::Boolean(word == "true"),
            _ if word.parse::<f64>().is_ok() => CellValue::Number(word.to_owned()),
            _ => CellValue::Text(word.trim_matches('"').to_owned()),
        };
        let cells = cells.split_whitespace().map(cell).collect();
        let (mut status, mut calls) = (RowStatus::Ok, Vec::new());
        for word in made.split_whitespace() {
            match word {
                "failed" => {
                    status = RowStatus::Failed { reason: "it failed".to_owned(), log: None }
                }
                "missing" => status = RowStatus::Missing,
                "excluded" => status = RowStatus::Excluded,
                call => calls.extend(call.parse::<usize>()),
            }
        }
        let call = calls.first().copied();
        FrameRow { cells, status, call, output_calls: calls.into(), ..FrameRow::default() }
    }

    /// The columns with a role.
    fn with_role(frame: &Frame, role: ColumnRole) -> Vec<&str> {
        let columns = frame.columns.iter().filter(|column| column.role == role);
        columns.map(|column| &*column.name).collect()
    }

    /// A suite of two benchmarks, which a call measures for each replicate.
    pub(crate) const SUITE: &str = "
        tool replicate benchmark@0* seconds@0*
        a 1 fast 0.11  | 1
        a 1 slow 100.1 | 1
        a 2 fast 0.12  | 2
        a 2 slow 100.2 | 2
        b 1 fast 0.91  | 3
        b 1 slow 100.1 | 3
        b 2 -    -     | failed 4";

    #[test]
    fn texts_of_rows_are_keys() {
        let frame = frame(SUITE);
        assert_eq!(with_role(&frame, ColumnRole::Key), ["tool", "replicate", "benchmark"]);
        assert_eq!(with_role(&frame, ColumnRole::Value), ["seconds"]);
        assert_eq!(frame.row_labels().count(), 0);
    }

    #[test]
    fn texts_of_a_result_are_not_keys() {
        let frame = frame("n state@0\n 1 warm | 1\n 2 warm | 2");
        assert_eq!(with_role(&frame, ColumnRole::Key), ["n"]);
    }

    #[test]
    fn booleans_of_rows_are_keys() {
        let frame = frame("n warm@0* s@0*\n 1 true 2 | 1\n 2 true 2 | 2");
        assert_eq!(with_role(&frame, ColumnRole::Key), ["n", "warm"]);
    }

    #[test]
    fn numbers_of_rows_are_results_also_with_some_texts() {
        let frame = frame("n size@0* s@0*\n 1 8 2 | 1\n 1 9 timeout | 1\n 2 8 2 | 2\n 2 9 2 | 2");
        assert_eq!(with_role(&frame, ColumnRole::Value), ["size", "s"]);
        assert_eq!(frame.mixed(), [("s", "timeout")]);
    }

    #[test]
    fn texts_that_no_two_calls_share_tell_rows_apart() {
        let frame = frame(
            "n replicate at@0* s@0*
             1 1 noon 5 | 1
             1 1 noon 6 | 1
             1 2 night 7 | 2",
        );
        assert_eq!(with_role(&frame, ColumnRole::RowLabel), ["at"]);
        assert_eq!(frame.row_labels().collect::<Vec<_>>(), ["at"]);
    }

    #[test]
    fn texts_that_differ_in_each_call_of_a_point_tell_rows_apart() {
        let suite = "n replicate name@0* at@0* s@0*
             1 1 fast noon  5 | 1
             1 1 slow noon  9 | 1
             1 2 fast night 5 | 2
             1 2 slow night 9 | 2
             2 1 fast noon  5 | 3
             2 1 slow noon  9 | 3";
        assert_eq!(with_role(&frame(suite), ColumnRole::Key), ["n", "replicate", "name"]);
        assert_eq!(with_role(&frame(suite), ColumnRole::RowLabel), ["at"]);
    }

    #[test]
    fn texts_of_a_call_that_no_other_call_has_are_keys_without_replicates() {
        let own = "crate name@0* s@0*\n a one 5 | 1\n a two 9 | 1\n b three 7 | 2";
        assert_eq!(with_role(&frame(own), ColumnRole::Key), ["crate", "name"]);
        let time = "commit at@0* s@0*\n a noon 5 | 1\n b night 9 | 2";
        assert_eq!(with_role(&frame(time), ColumnRole::RowLabel), ["at"]);
    }

    #[test]
    fn named_columns_of_rows_are_the_keys() {
        let rows = "n name@0* size@0* tag@0* s@0*\n 1 fast 8 x 5 | 1\n 1 fast 9 y 9 | 1";
        let by = |names: &[&str]| {
            let mut table = frame(&rows.replace('*', ""));
            table.columns.iter_mut().for_each(|column| column.is_field = column.output.is_some());
            let names: Vec<Box<str>> = names.iter().map(|name| (*name).into()).collect();
            table.find_row_keys(&names, |column| column.is_field).map(|()| table)
        };
        let table = by(&["size", "name"]).unwrap();
        assert_eq!(with_role(&table, ColumnRole::Key), ["n", "name", "size"]);
        assert_eq!(table.row_labels().collect::<Vec<_>>(), ["tag"]);
        assert_eq!(table.groups().len(), 2);
        let error = by(&["name", "sizes"]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the rows have no column \"sizes\", which :columns names behind by"
        );
        assert!(error.hint().unwrap().starts_with("did you mean \"size\"?"));
    }

    #[test]
    fn texts_of_the_only_call_are_keys() {
        let frame = frame("n name@0* s@0*\n 1 fast 5 | 1\n 1 slow 6 | 1");
        assert_eq!(with_role(&frame, ColumnRole::Key), ["n", "name"]);
    }

    #[test]
    fn numbers_in_strings_of_json_are_texts() {
        let frame = frame("n id@0*\n 1 \"1\" | 1\n 2 \"1\" | 2");
        assert_eq!(with_role(&frame, ColumnRole::Key), ["n", "id"]);
        let column = FrameColumn { is_field: true, ..FrameColumn::default() };
        assert!(!column.reads_as_number(&CellValue::Text("1".to_owned())));
        let column = FrameColumn { is_field: false, ..column };
        assert!(column.reads_as_number(&CellValue::Text("1".to_owned())));
        assert!(!column.reads_as_number(&CellValue::Text("NaN".to_owned())));
        assert!(!column.reads_as_number(&CellValue::Number("1e400".to_owned())));
        assert!(!column.reads_as_number(&CellValue::Boolean(true)));
    }

    #[test]
    fn tables_are_joined_by_the_names_of_their_columns() {
        let mut all = Frame::default();
        let text = |text: &str| CellValue::Text(text.to_owned());
        all.append(vec![("outer".to_owned(), text("x"))], frame("n~ s@0\n 1 2 | 1"));
        all.append(vec![("outer".to_owned(), text("y"))], frame("n m s@0\n 1 5 3 | 2"));
        all.fill();
        assert_eq!(all.names().collect::<Vec<_>>(), ["outer", "n", "s", "m"]);
        assert_eq!(
            with_role(&all, ColumnRole::Key),
            ["outer", "n", "m"],
            "a key is one everywhere"
        );
        let cells = |at: usize| all.rows[at].cells.iter().map(CellValue::text).collect::<Vec<_>>();
        assert_eq!([cells(0), cells(1)], [["x", "1", "2", ""], ["y", "1", "3", "5"]]);
    }

    #[test]
    fn a_column_has_measurements_if_all_cells_are_numbers_or_empty() {
        let frame = frame(
            "n all@0 some@0 none@0 text@0 large@0
             1 1 1 - a 1e400 | 1
             2 2 - - 1 2     | 2
             3 - - - - -     | missing 3",
        );
        let names = frame.measured().into_iter().map(|at| &*frame.columns[at].name);
        assert_eq!(names.collect::<Vec<_>>(), ["all", "some", "large"]);
    }

    #[test]
    fn a_table_is_complete_without_rows_that_are_missing_and_unknown_points() {
        let mut table = frame("n s@0\n 1 2 | 1\n 2 - | excluded");
        assert!(table.is_complete());
        table.extent.has_unknown_points = true;
        assert!(!table.is_complete());
        assert!(!frame("n s@0\n 1 2 | 1\n 2 - | missing 2").is_complete());
    }

    #[test]
    fn machines_are_counted_where_they_are_known() {
        let mut table = frame("n s@0\n 1 2 | 1\n 2 3 | 2\n 3 4 | 3");
        assert!(!table.has_several_machines());
        for (row, machine) in table.rows.iter_mut().zip(["one", "one", "other"]) {
            let machine = Some(machine.into());
            row.origin = Some(std::sync::Arc::new(RowOrigin { machine, ..RowOrigin::default() }));
        }
        assert!(table.has_several_machines());
        table.rows.pop();
        assert!(!table.has_several_machines());
    }
}
