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

use crate::table::{
    ATTESTED, ROW_STATE, RowOrigin, RowStatus, SweepRow, SweepTable, row_column_name,
};

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

/// The columns of the state of a row that tables of earlier versions do not have.
const LATER: [&str; 2] = ["machine", "exclusive"];

/// The places of the columns that say what became of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct StatePlaces {
    status: Option<usize>,
    call: Option<usize>,
    host: Option<usize>,
    machine: Option<usize>,
    time: Option<usize>,
    duration: Option<usize>,
    exclusive: Option<usize>,
}

impl StatePlaces {
    /// The columns that have these names.
    fn named(at: impl Fn(&str) -> Option<usize>) -> Self {
        let [call, host, machine] = ["call", "host", "machine"].map(&at);
        let [time, duration, exclusive] = ["time", "duration", "exclusive"].map(&at);
        Self { status: at(STATUS), call, host, machine, time, duration, exclusive }
    }

    /// The columns of a table as `ce table` prints it, from that of the status on. Behind `status` stand all the others and nothing else;
    /// otherwise they are columns of the table, however they are called.
    fn printed(names: &[String], status: usize) -> Self {
        let (columns, printed) = names.split_at(status);
        let mut expected = ROW_STATE.iter().chain([&ATTESTED]).peekable();
        let mut found = Vec::new();
        for name in printed {
            let is_expected = |it: &&&str| row_column_name(it, columns) == *name;
            while expected.next_if(|it| !is_expected(it) && LATER.contains(it)).is_some() {}
            match expected.next_if(is_expected) {
                Some(it) => found.push(*it),
                None => return Self { status: Some(status), ..Self::default() },
            }
        }
        if expected.next().is_some_and(|next| *next != ATTESTED) {
            return Self { status: Some(status), ..Self::default() };
        }
        Self::named(|name| found.iter().position(|it| *it == name).map(|at| status + at))
    }
}

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
            return Ok(table(values, &cells, StatePlaces::named(at), measures));
        }
    }
    let mut values = cells.clone();
    let status = (0..cells.names.len()).rev().find(|at| {
        let mut texts = cells.rows.iter().map(|row| row[*at].text());
        cells.names[*at] == row_column_name(STATUS, &cells.names[..*at])
            && texts.all(|it| RowStatus::WORDS.contains(&it))
    });
    let mut state = StatePlaces::default();
    if let Some(status) = status {
        state = StatePlaces::printed(&cells.names, status);
        let end = if state.call.is_some() { cells.names.len() } else { status + 1 };
        values.names.drain(status..end);
        values.rows.iter_mut().for_each(|row| drop(row.drain(status..end)));
    }
    Ok(table(values, &cells, state, BTreeMap::new()))
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
    cells: &CellTable,
    state: StatePlaces,
    measures: BTreeMap<String, ColumnMeasure>,
) -> SweepTable {
    let row = |(values, cells): (Vec<CellValue>, &Vec<CellValue>)| {
        let text = |at: Option<usize>| at.map(|at| cells[at].text()).filter(|it| !it.is_empty());
        let host = text(state.host).map(Into::into);
        let at: Option<Timestamp> = text(state.time).and_then(|it| it.parse().ok());
        let origin = (host.is_some() || at.is_some()).then(|| {
            Arc::new(RowOrigin {
                call: String::new(),
                executions: Vec::new(),
                host,
                machine: text(state.machine).map(Into::into),
                exclusive: text(state.exclusive).map(|it| it == "yes" || it == "true"),
                is_disturbed: false,
                published: None,
                at,
                seconds: text(state.duration).and_then(|it| it.parse().ok()),
            })
        });
        let status = match text(state.status) {
            None => RowStatus::Ok,
            Some(word) if word == RowStatus::Ok.word() => RowStatus::Ok,
            Some(word) if word == RowStatus::Excluded.word() => RowStatus::Excluded,
            Some(other) => RowStatus::Failed { reason: other.to_owned(), log: None },
        };
        let call = text(state.call).and_then(|it| it.parse().ok());
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
        let are_numbers = cells.iter().all(|cell| cell.number().is_some());
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

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> SweepTable {
        read_table(Path::new("t"), text.as_bytes()).unwrap()
    }

    /// The names of columns of a table with this header and a row, and whether its row says which call made it.
    fn names(header: &str, row: &str) -> (String, Option<usize>) {
        let table = read(&format!("{header}\n{row}\n"));
        (table.names.join(","), table.rows[0].call)
    }

    #[test]
    fn columns_of_the_state_are_those_that_are_printed_and_no_others() {
        let printed = "b,s,status,call,host,machine,time,duration,exclusive,reason,log";
        let row = "a,1.5,ok,7,red,,2026-01-01T00:00:00Z,1.5,yes,,";
        assert_eq!(names(printed, row), ("b,s".to_owned(), Some(7)));
        assert_eq!(names(&format!("{printed},attested"), &format!("{row},me")).1, Some(7));
        let older = "b,s,status,call,host,time,duration,reason,log";
        assert_eq!(names(older, "a,1.5,ok,7,red,2026-01-01T00:00:00Z,1.5,,").1, Some(7));
        // Every name of the state, and names that begin like one, may be one of a measurement.
        for name in ROW_STATE.iter().skip(1).chain([&ATTESTED, &"calls", &"callgrind", &"hostile"])
        {
            for header in [format!("b,s,status,{name}"), format!("b,s,{name},status")] {
                let row = if header.ends_with(STATUS) { "a,1.5,5,ok" } else { "a,1.5,ok,5" };
                assert_eq!(names(&header, row), (format!("b,s,{name}"), None), "{header}");
            }
        }
        let more = (format!("{printed},n"), format!("{row},5"));
        assert!(names(&more.0, &more.1).0.ends_with("log,n"));
        // A column of the table that is called as one of the state is followed by one with another name.
        let both = "status,call,status (of the row),call (of the row),host,machine,time,duration,exclusive,reason,log";
        let row = "ok,3,failed,7,,,,,,,";
        assert_eq!(names(both, row), ("status,call".to_owned(), Some(7)));
        // A text that only begins like the status says nothing of the rows.
        let table = read("b,s,status of the build\na,1,failed\n");
        assert_eq!((table.names.len(), &table.rows[0].status), (3, &RowStatus::Ok));
    }
}
