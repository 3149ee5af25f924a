//! A table that somebody gives as a file: NDJSON, TSV or CSV, also as `ce table` prints it, or the file of a tool for benchmarks.
//!
//! No file declares which columns tell points apart. Columns before `replicate` do, and columns that are not all numbers. A
//! column that is mostly numbers is ambiguous.

use std::collections::BTreeMap;
use std::path::Path;

use ce_model::exit::Explain;
use ce_model::sweep::{
    Better, CellTable, CellValue, ColumnMeasure, REPLICATE, STATUS, SheetProblem, read_cells,
};

use crate::benchmark_files::{BenchmarkFileError, read_benchmarks};
use crate::frame::{
    CellKinds, ColumnRole, Frame, FrameColumn, FrameRow, ROW_COLUMNS, RowColumn, RowStatus,
    RowSubject, row_column_name,
};

/// A file is not a table.
#[derive(Debug, thiserror::Error, Explain)]
pub enum TableFileError {
    #[error("{path} is not a table: {problem}")]
    #[hint(problem.fault.hint())]
    Sheet { path: String, problem: SheetProblem },
    /// It is of a tool for benchmarks.
    #[error("{path} cannot be compared: {problem}")]
    #[hint(problem.hint())]
    Benchmarks { path: String, problem: BenchmarkFileError },
}

/// The columns of a file that say what became of a row, each with its place.
type RowColumnPlaces = Vec<(usize, RowColumn)>;

/// The columns that have the names of [`ROW_COLUMNS`].
fn named_columns(names: &[String]) -> RowColumnPlaces {
    let place = |column: &RowColumn| names.iter().position(|name| name == column.name);
    ROW_COLUMNS.iter().filter_map(|column| Some((place(column)?, *column))).collect()
}

/// The columns of a table as `ce table` prints it, from the status on. Behind `status` stand all the others and nothing else;
/// otherwise they are columns of the table, however they are called.
fn printed_columns(names: &[String], status: usize) -> RowColumnPlaces {
    let (columns, printed) = names.split_at(status);
    let mut expected =
        ROW_COLUMNS.iter().filter(|it| it.subject != RowSubject::Evidence).peekable();
    let mut found = Vec::new();
    for (at, name) in (status..).zip(printed) {
        let is_expected = |it: &&RowColumn| row_column_name(it.name, columns) == *name;
        while expected.next_if(|it| !is_expected(it) && it.is_later).is_some() {}
        match expected.next_if(is_expected) {
            Some(column) => found.push((at, *column)),
            None => return vec![(status, ROW_COLUMNS[0])],
        }
    }
    match expected.next() {
        Some(next) if next.subject != RowSubject::Attesters => vec![(status, ROW_COLUMNS[0])],
        _ => found,
    }
}

/// Reads a table from the contents of a file.
///
/// # Errors
///
/// Fails if it is neither NDJSON, nor TSV or CSV with a header, nor the file of a tool for benchmarks.
pub fn read_table(path: &Path, contents: &[u8]) -> Result<Frame, TableFileError> {
    let (cells, known) = match read_benchmarks(contents) {
        Some(read) => read.map_err(|problem| TableFileError::Benchmarks {
            path: path.display().to_string(),
            problem,
        })?,
        None => (read_file_cells(path, contents)?, BTreeMap::new()),
    };
    let at = |name: &str| cells.names.iter().position(|it| it == name);
    // The output of `ce table --json` has the values within another object.
    if let (Some(row), Some(_)) = (at("row"), at(STATUS)) {
        let lines: Vec<&str> = cells.rows.iter().map(|cells| cells[row].text()).collect();
        if lines.iter().all(|line| line.starts_with('{')) {
            let values = read_file_cells(path, lines.join("\n").as_bytes())?;
            let measures = at("columns").map(|at| measures(&cells, at)).unwrap_or_default();
            return Ok(frame(values, &cells, &named_columns(&cells.names), measures));
        }
    }
    let mut values = cells.clone();
    let status = (0..cells.names.len()).rev().find(|at| {
        let mut texts = cells.rows.iter().map(|row| row[*at].text());
        cells.names[*at] == row_column_name(STATUS, &cells.names[..*at])
            && texts.all(|it| RowStatus::WORDS.contains(&it))
    });
    let mut of_rows = RowColumnPlaces::new();
    if let Some(status) = status {
        of_rows = printed_columns(&cells.names, status);
        let end = status + of_rows.len();
        values.names.drain(status..end);
        values.rows.iter_mut().for_each(|row| drop(row.drain(status..end)));
    }
    Ok(frame(values, &cells, &of_rows, known))
}

/// Reads the cells of a file from its contents.
fn read_file_cells(path: &Path, contents: &[u8]) -> Result<CellTable, TableFileError> {
    read_cells(contents)
        .map_err(|problem| TableFileError::Sheet { path: path.display().to_string(), problem })
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

/// A table with these values. The columns `of_rows` of other cells say what became of a row.
fn frame(
    values: CellTable,
    cells: &CellTable,
    of_rows: &RowColumnPlaces,
    mut measures: BTreeMap<String, ColumnMeasure>,
) -> Frame {
    let row = |(values, cells): (Vec<CellValue>, &Vec<CellValue>)| {
        let mut row = FrameRow { cells: values, ..FrameRow::default() };
        for (at, column) in of_rows {
            let text = cells[*at].text();
            if !text.is_empty() {
                (column.read)(&mut row, text);
            }
        }
        row.origin = row.origin.filter(|origin| origin.host.is_some() || origin.at.is_some());
        row
    };
    let rows: Vec<FrameRow> = values.rows.into_iter().zip(&cells.rows).map(row).collect();
    let before = values.names.iter().position(|name| name == REPLICATE);
    let columns = values.names.iter().enumerate().map(|(at, name)| {
        let mut column = FrameColumn::new(name, ColumnRole::Value);
        column.measure = measures.remove(name).unwrap_or_default();
        let kinds = CellKinds::new(&column, rows.iter().map(|row| &row.cells[at]));
        let are_numbers = kinds.numbers == kinds.cells && kinds.readable == kinds.cells;
        let is_of_point = at < before.unwrap_or_default() || name == REPLICATE;
        let is_mixed = kinds.readable < kinds.cells;
        let is_numeric = (is_mixed || are_numbers) && kinds.are_mostly_numbers();
        let is_measured = are_numbers || is_numeric && before.is_some();
        if is_of_point || !is_measured {
            column.role = ColumnRole::Key;
        }
        column.is_numeric = is_numeric && !is_of_point;
        column
    });
    Frame { columns: columns.collect(), rows, ..Frame::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Frame {
        read_table(Path::new("t"), text.as_bytes()).unwrap()
    }

    /// The names of columns of a table with this header and a row, and whether its row says which call made it.
    fn names(header: &str, row: &str) -> (String, Option<usize>) {
        let table = read(&format!("{header}\n{row}\n"));
        (table.names().collect::<Vec<_>>().join(","), table.rows[0].call)
    }

    #[test]
    fn only_printed_columns_are_taken_for_columns_of_the_state() {
        let printed = "b,s,status,call,host,machine,time,duration,exclusive,reason,log";
        let row = "a,1.5,ok,7,red,,2026-01-01T00:00:00Z,1.5,yes,,";
        assert_eq!(names(printed, row), ("b,s".to_owned(), Some(7)));
        assert_eq!(names(&format!("{printed},attested"), &format!("{row},me")).1, Some(7));
        let older = "b,s,status,call,host,time,duration,reason,log";
        assert_eq!(names(older, "a,1.5,ok,7,red,2026-01-01T00:00:00Z,1.5,,").1, Some(7));
        // Every name of the state, and names that begin like one, may be one of a measurement.
        let others = ["calls", "callgrind", "hostile"];
        for name in ROW_COLUMNS.iter().skip(1).map(|it| it.name).chain(others) {
            for header in [format!("b,s,status,{name}"), format!("b,s,{name},status")] {
                let row = if header.ends_with(STATUS) { "a,1.5,5,ok" } else { "a,1.5,ok,5" };
                assert_eq!(names(&header, row), (format!("b,s,{name}"), None), "{header}");
            }
        }
        let more = (format!("{printed},n"), format!("{row},5"));
        assert!(names(&more.0, &more.1).0.ends_with("log,n"));
        // If a column of the table has the name of a column of the state, the latter gets another name.
        let both = "status,call,status (of the row),call (of the row),host,machine,time,duration,exclusive,reason,log";
        let row = "ok,3,failed,7,,,,,,,";
        assert_eq!(names(both, row), ("status,call".to_owned(), Some(7)));
        // A text that only begins like the status says nothing of the rows.
        let table = read("b,s,status of the build\na,1,failed\n");
        assert_eq!((table.columns.len(), &table.rows[0].status), (3, &RowStatus::Ok));
    }

    /// The names of the columns with a role.
    fn with_role(table: &Frame, role: ColumnRole) -> String {
        let columns = table.columns.iter().filter(|column| column.role == role);
        columns.map(|column| &*column.name).collect::<Vec<_>>().join(",")
    }

    #[test]
    fn keys_are_before_the_replicate_or_are_not_all_numbers() {
        let table = read("n,replicate,seconds,state\n1,1,2.5,warm\n2,1,3.5,cold\n");
        assert_eq!(with_role(&table, ColumnRole::Key), "n,replicate,state");
        assert_eq!(with_role(&table, ColumnRole::Value), "seconds");
        let table = read("{\"n\":\"1\",\"warm\":true,\"s\":1,\"none\":null}\n");
        assert_eq!(with_role(&table, ColumnRole::Key), "n,warm");
    }

    #[test]
    fn a_numeric_column_with_a_text_is_a_key_or_a_value() {
        let of = |table: &Frame| {
            let at = table.place("s").unwrap();
            (table.columns[at].role, table.columns[at].is_numeric)
        };
        assert_eq!(of(&read("b,s\na,1\na,2\na,x\n")), (ColumnRole::Key, true));
        assert_eq!(of(&read("b,replicate,s\na,1,1\na,2,2\na,3,x\n")), (ColumnRole::Value, true));
        assert_eq!(of(&read("b,s\na,1\na,x\na,y\n")), (ColumnRole::Key, false));
        assert_eq!(of(&read("s,replicate,t\n1,1,1\n2,2,2\n")), (ColumnRole::Key, false));
    }

    #[test]
    fn the_status_of_a_row_is_read() {
        let header = "b,s,status,call,host,machine,time,duration,exclusive,reason,log\n";
        let rows = "a,1,ok,7,red,a CPU,2026-01-01T00:00:00Z,1.5,yes,,\nb,,failed,8,,,,,,exit,log\nc,,excluded,,,,,,,,\nd,,missing,9,,,,,,,\n";
        let table = read(&format!("{header}{rows}"));
        let words: Vec<&str> = table.rows.iter().map(|row| row.status.word()).collect();
        assert_eq!(words, ["ok", "failed", "excluded", "failed"]);
        let origin = table.rows[0].origin.as_ref().unwrap();
        assert_eq!(
            (origin.host.as_deref(), origin.machine.as_deref()),
            (Some("red"), Some("a CPU"))
        );
        assert_eq!((origin.seconds, origin.exclusive), (Some(1.5), Some(true)));
        assert_eq!(origin.at, Some("2026-01-01T00:00:00Z".parse().unwrap()));
        assert_eq!(table.rows[1].origin, None);
        assert_eq!(
            table.rows.iter().map(|row| row.call).collect::<Vec<_>>(),
            [Some(7), Some(8), None, Some(9)]
        );
    }

    #[test]
    fn the_json_of_a_table_has_units_and_statuses_of_rows() {
        let line = r#"{"row":{"n":1,"s":2.5},"columns":{"s":{"unit":"s","better":"less"}},"status":"ok","call":3,"host":null,"time":null,"duration":null}"#;
        let table = read(&format!("{line}\n"));
        assert_eq!(table.names().collect::<Vec<_>>(), ["n", "s"]);
        assert_eq!(table.columns[1].title(), "s [s]");
        assert_eq!((table.rows[0].call, &table.rows[0].origin), (Some(3), &None));
        // An object with a column of such a name was not printed by `ce table`.
        let table = read("{\"row\":\"x\",\"status\":\"ok\",\"s\":1}\n");
        assert_eq!(table.names().collect::<Vec<_>>(), ["row", "s"]);
    }

    #[test]
    fn an_invalid_table_is_an_error_with_its_line() {
        let error = read_table(Path::new("wide"), b"a,b\n1\n").unwrap_err();
        assert_eq!(
            error.to_string(),
            "wide is not a table: line 2: the row has 1 value, and the header 2"
        );
    }
}
