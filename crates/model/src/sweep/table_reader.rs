//! Reading any table: NDJSON, TSV or CSV. Unlike the points of a sheet, its rows may be equal and its cells empty, and objects may lack fields.

use std::collections::HashMap;

use super::output_table::{field_value, is_json_number, mark_bare_numbers, special_number};
use super::sheet::{SheetRecord, SheetRecords, json_fields, trimmed};
use super::{CellValue, ColumnShape, SheetFault, SheetFormat, SheetProblem, TableColumn};

/// A table that is known by its contents alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CellTable {
    /// The names of its columns, in the order in which they first stand.
    pub names: Vec<String>,
    /// The rows: a value for each column. Objects and arrays are texts as they are spelled.
    pub rows: Vec<Vec<CellValue>>,
}

impl CellTable {
    /// Whether a result is a column of texts that would be one of numbers, if it were made now: some are numbers that JSON does not have.
    pub fn has_texts_of_numbers(&self, columns: &[TableColumn]) -> bool {
        let results = columns.iter().filter_map(|column| match &column.shape {
            ColumnShape::One(name) => self.names.iter().position(|it| **it == **name),
            ColumnShape::Fields | ColumnShape::Rows => None,
        });
        results.into_iter().any(|at| {
            let cells =
                || self.rows.iter().map(|row| &row[at]).filter(|it| **it != CellValue::Null);
            let is_number = |it: &CellValue| match it {
                CellValue::Text(text) => is_json_number(text) || special_number(text).is_some(),
                _ => false,
            };
            cells().all(is_number) && cells().any(|it| special_number(it.text()).is_some())
        })
    }

    /// The table as CSV, with a header. Nothing is an empty cell.
    pub fn csv(&self) -> String {
        let mut text = String::new();
        add_csv_line(self.names.iter().map(String::as_str), &mut text);
        for row in &self.rows {
            add_csv_line(row.iter().map(CellValue::text), &mut text);
        }
        text
    }
}

/// Appends a line of CSV.
pub fn add_csv_line<'a>(cells: impl Iterator<Item = &'a str>, text: &mut String) {
    for (at, cell) in cells.enumerate() {
        if at > 0 {
            text.push(',');
        }
        if cell.contains(['"', ',', '\n', '\r']) || cell.starts_with([' ', '\u{feff}']) {
            text.push('"');
            text.push_str(&cell.replace('"', "\"\""));
            text.push('"');
        } else {
            text.push_str(cell);
        }
    }
    text.push('\n');
}

/// Reads a table. A column of TSV or CSV has numbers if each cell is one or empty, and some are finite. A column of NDJSON that has numbers has infinite
/// ones where it has the texts `Infinity` and `-Infinity`, and no other texts.
///
/// # Errors
///
/// Fails at the first problem.
pub fn read_cells(contents: &[u8]) -> Result<CellTable, SheetProblem> {
    let contents = trimmed(contents);
    match SheetFormat::detect(contents) {
        SheetFormat::Ndjson => objects(&mark_bare_numbers(contents)),
        SheetFormat::Tsv => records(contents, b'\t'),
        SheetFormat::Csv => records(contents, b','),
        SheetFormat::JsonArray => Err(problem(1, SheetFault::Array)),
    }
}

const fn problem(line: usize, fault: SheetFault) -> SheetProblem {
    SheetProblem { line: Some(line), column: None, fault }
}

/// Reads the names and values of a line of NDJSON, in their order. Objects and arrays are texts as they are spelled.
///
/// # Errors
///
/// Fails if it is not an object.
pub fn read_object(line: &[u8]) -> Result<Vec<(String, CellValue)>, SheetFault> {
    let fields = json_fields(line)?.into_iter();
    fields
        .map(|(name, value)| Ok((name.into_owned(), CellValue::of_field(field_value(value)?))))
        .collect()
}

fn objects(contents: &[u8]) -> Result<CellTable, SheetProblem> {
    let mut table = CellTable::default();
    let mut places: HashMap<String, usize> = HashMap::new();
    for (line, text) in (1..).zip(contents.split(|byte| *byte == b'\n')) {
        if text.trim_ascii().is_empty() {
            continue;
        }
        let mut row = vec![CellValue::Null; table.names.len()];
        for (name, value) in read_object(text).map_err(|fault| problem(line, fault))? {
            let at = *places.entry(name).or_insert_with_key(|name| {
                table.names.push(name.clone());
                row.push(CellValue::Null);
                row.len() - 1
            });
            row[at] = value;
        }
        table.rows.push(row);
    }
    for at in 0..table.names.len() {
        find_infinite(&mut table.rows, at);
    }
    let width = table.names.len();
    table.rows.iter_mut().for_each(|row| row.resize(width, CellValue::Null));
    Ok(table)
}

/// Makes texts of infinite numbers numbers, in a column that has no other texts, and numbers.
fn find_infinite(rows: &mut [Vec<CellValue>], column: usize) {
    let is_infinite = |text: &str| matches!(text, "Infinity" | "-Infinity");
    let cells = || rows.iter().filter_map(|row| row.get(column));
    let mut texts = cells().filter(|cell| matches!(cell, CellValue::Text(_))).peekable();
    if texts.peek().is_none()
        || !texts.all(|cell| is_infinite(cell.text()))
        || !cells().any(|cell| matches!(cell, CellValue::Number(_)))
    {
        return;
    }
    for cell in rows.iter_mut().filter_map(|row| row.get_mut(column)) {
        if let CellValue::Text(text) = cell {
            *cell = CellValue::Number(std::mem::take(text));
        }
    }
}

fn records(contents: &[u8], separator: u8) -> Result<CellTable, SheetProblem> {
    let (mut records, mut record) =
        (SheetRecords::new(contents, separator), SheetRecord::default());
    let mut lines: Vec<Vec<String>> = Vec::new();
    while records.read(&mut record) {
        if let Some((_, fault)) = record.faults.first() {
            return Err(problem(record.line, fault.clone()));
        }
        let expected = lines.first().map_or(record.width, Vec::len);
        // A single column may have an empty cell.
        if record.is_empty && expected != 1 {
            continue;
        }
        if record.width != expected {
            let fault = SheetFault::Width { expected, found: record.width };
            return Err(problem(record.line, fault));
        }
        let texts: Option<Vec<String>> = record.values.iter().map(|it| text(it)).collect();
        lines.push(texts.ok_or_else(|| problem(record.line, SheetFault::NotText))?);
    }
    let mut lines = lines.into_iter();
    let names = lines.next().ok_or_else(|| problem(1, SheetFault::NoHeader))?;
    if let Some(at) = (1..names.len()).find(|at| names[..*at].contains(&names[*at])) {
        return Err(problem(1, SheetFault::SameName(names[at].clone())));
    }
    let lines: Vec<Vec<String>> = lines.collect();
    let is_of_numbers = |at: usize| {
        let mut cells = lines.iter().map(|line| &*line[at]);
        cells.clone().all(is_number)
            && cells.any(|text| !text.is_empty() && special_number(text).is_none())
    };
    let numbers: Vec<bool> = (0..names.len()).map(is_of_numbers).collect();
    let rows = lines.into_iter().map(|line| {
        let cells = line.into_iter().zip(&numbers).map(|(text, is_number)| match is_number {
            _ if text.is_empty() => CellValue::Null,
            true if text.parse().is_ok_and(f64::is_nan) => CellValue::NotANumber,
            true => CellValue::Number(text),
            false => CellValue::Text(text),
        });
        cells.collect()
    });
    Ok(CellTable { rows: rows.collect(), names })
}

/// Whether a cell may be in a column of numbers: it is empty, or a number.
fn is_number(text: &str) -> bool {
    text.is_empty() || text.parse::<f64>().is_ok()
}

fn text(value: &[u8]) -> Option<String> {
    std::str::from_utf8(value).ok().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> CellValue {
        CellValue::Number(text.to_owned())
    }

    fn word(text: &str) -> CellValue {
        CellValue::Text(text.to_owned())
    }

    #[test]
    fn rows_may_be_equal_and_cells_empty() {
        let expected = CellTable {
            names: ["tool", "id", "s"].map(str::to_owned).to_vec(),
            rows: vec![
                vec![word("a,b"), word("1"), number("0.50")],
                vec![word("a,b"), word("1"), number("0.50")],
                vec![CellValue::Null, word("x"), CellValue::Null],
            ],
        };
        let csv = "\u{feff}tool,id,s\r\n\"a,b\",1,0.50\r\n\"a,b\",1,0.50\r\n,x,\r\n\n";
        assert_eq!(read_cells(csv.as_bytes()), Ok(expected.clone()));
        let tsv = "tool\tid\ts\na,b\t1\t0.50\na,b\t1\t0.50\n\tx\t\n";
        assert_eq!(read_cells(tsv.as_bytes()), Ok(expected.clone()));
        let json = "{\"tool\":\"a,b\",\"id\":\"1\",\"s\":0.50}\n{\"s\":0.50,\"id\":\"1\",\"tool\":\"a,b\"}\n\n\
                    {\"tool\":null,\"id\":\"x\"}\n";
        assert_eq!(read_cells(json.as_bytes()), Ok(expected));
        let values = read_cells(b"{\"a\":true,\"b\":{\"c\": 1}}").unwrap().rows;
        assert_eq!(values, [[CellValue::Boolean(true), word("{\"c\": 1}")]]);
        assert_eq!(read_cells(b"s\n1\n\n2").unwrap().rows[1], [CellValue::Null]);
    }

    #[test]
    fn the_first_problem_has_its_line() {
        for (text, line, fault) in [
            (&b"a,b\n1,2\n3\n"[..], 3, SheetFault::Width { expected: 2, found: 1 }),
            (b"a,a\n1,2\n", 1, SheetFault::SameName("a".to_owned())),
            (b"a,b\n1,x\"\n", 2, SheetFault::QuoteInside),
            (b"a\tb\n\xff\t1\n", 2, SheetFault::NotText),
            (b"[1, 2]", 1, SheetFault::Array),
        ] {
            assert_eq!(read_cells(text), Err(problem(line, fault)));
        }
        assert!(matches!(
            read_cells(b"{\"a\":1}\n{\"a\"").unwrap_err().fault,
            SheetFault::OpenObject(_)
        ));
        assert_eq!(read_cells(b""), Ok(CellTable::default()));
    }
}
