//! Reading points from a sheet: NDJSON, or TSV or CSV with a header. The problems that a sheet can have.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::{fmt, mem};

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::points::SweepPoints;
use crate::exit::Explain;
use crate::humanize::counted;
use crate::suggest::UnknownName;
use crate::template::{self, NoText};
use crate::text_file::{self, TextError};

/// The greatest size of a sheet, in bytes.
pub const MAX_SHEET: usize = 1 << 30;

/// The format of a sheet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SheetFormat {
    /// A JSON object a line. The first one decides the columns; the others have the same fields in any order.
    Ndjson,
    /// A header, and a row a line, with tabs between the values. There are no quotes.
    Tsv,
    /// A header and rows as in RFC 4180.
    Csv,
    /// An array, which is not read.
    JsonArray,
}

impl SheetFormat {
    /// Returns the format of a sheet. An empty one is NDJSON without points. A tab in the first line means TSV: in CSV it would be
    /// an error.
    pub fn detect(contents: &[u8]) -> Self {
        let contents = trimmed(contents);
        let first = contents.split(|byte| *byte == b'\n').next().unwrap_or_default();
        match first.trim_ascii_start().first() {
            None | Some(b'{') => Self::Ndjson,
            Some(b'[') if is_json_array(contents) => Self::JsonArray,
            Some(_) if first.contains(&b'\t') => Self::Tsv,
            Some(_) => Self::Csv,
        }
    }
}

/// Reads the points of a sheet.
///
/// Text is identity: of a sheet only a byte order mark, carriage returns at the ends of lines, and newlines at
/// its end are ignored. JSON strings, numbers as they are spelled and booleans are texts.
///
/// # Errors
///
/// Fails with all problems up to [`MAX_PROBLEMS`], in the order of their lines. If there are more,
/// [`SheetFault::More`] follows.
pub fn read(format: SheetFormat, contents: &[u8]) -> Result<SweepPoints, Vec<SheetProblem>> {
    read_placed(format, contents).map(|(points, _)| points)
}

/// Does the same, and returns the lines in which the points stand, counted from one.
pub(super) fn read_placed(
    format: SheetFormat,
    contents: &[u8],
) -> Result<(SweepPoints, Vec<u32>), Vec<SheetProblem>> {
    if contents.len() > MAX_SHEET {
        return Err(vec![SheetProblem { line: None, column: None, fault: SheetFault::TooLarge }]);
    }
    let contents = trimmed(contents);
    let mut reader = SheetReader::default();
    match format {
        SheetFormat::Ndjson => reader.objects(contents),
        SheetFormat::Tsv => reader.records(contents, b'\t'),
        SheetFormat::Csv => reader.records(contents, b','),
        SheetFormat::JsonArray => reader.problem(0, None, SheetFault::Array),
    }
    reader.finish()
}

/// The line of a list of levels that is the empty text.
pub const EMPTY_LEVEL: &str = "''";

/// Returns the line of a list of levels that a text is.
pub const fn level_line(text: &str) -> &str {
    if text.is_empty() { EMPTY_LEVEL } else { text }
}

/// Reads the sheet of a factor or of an exclusion, TSV. Rows of empty cells at its end count as others do.
pub fn read_factor(contents: &[u8]) -> Result<SweepPoints, Vec<SheetProblem>> {
    let mut reader = SheetReader { keeps_blank_rows: true, ..SheetReader::default() };
    reader.records(trimmed(contents), b'\t');
    reader.finish().map(|(points, _)| points)
}

/// Reads the levels of a factor, one a line, as points of one column. [`EMPTY_LEVEL`] is the empty text.
///
/// This is a list like the other ones of a task: white space around a line is ignored.
pub fn read_levels(name: &str, contents: &[u8]) -> Result<SweepPoints, Vec<SheetProblem>> {
    let mut reader = SheetReader::default();
    if contents.len() > MAX_SHEET {
        reader.problem(0, None, SheetFault::TooLarge);
        return reader.finish().map(|(points, _)| points);
    }
    match text_file::lines(contents) {
        Ok(mut lines) => {
            lines.iter_mut().filter(|line| **line == EMPTY_LEVEL).for_each(|line| *line = "");
            reader.list(name, &lines);
        }
        Err(faults) => {
            for (line, fault) in faults.into_iter().take(MAX_PROBLEMS + 1) {
                let is_empty = fault == TextError::EmptyLine;
                let fault = if is_empty { SheetFault::EmptyLevel } else { SheetFault::NotText };
                reader.problem(line, None, fault);
            }
        }
    }
    reader.finish().map(|(points, _)| points)
}

/// Reads levels of a factor that are lines of a list already.
pub fn read_list(name: &str, lines: &[&str]) -> Result<SweepPoints, Vec<SheetProblem>> {
    let mut reader = SheetReader::default();
    reader.list(name, lines);
    reader.finish().map(|(points, _)| points)
}

/// Reads the points of rows that TSV could have; the first one is the header.
pub fn read_rows(rows: &[Vec<&str>]) -> Result<SweepPoints, Vec<SheetProblem>> {
    let mut reader = SheetReader::default();
    match rows {
        [] => reader.problem(1, None, SheetFault::NoHeader),
        [header, rows @ ..] => {
            reader.header(1, header);
            for (line, row) in (2..).zip(rows) {
                reader.written(line, row);
            }
        }
    }
    reader.finish().map(|(points, _)| points)
}

/// The sheet without its byte order mark and the newlines at its end.
pub(super) fn trimmed(contents: &[u8]) -> &[u8] {
    let contents = contents.strip_prefix(b"\xef\xbb\xbf").unwrap_or(contents);
    let end = contents.iter().rposition(|byte| !b"\r\n".contains(byte)).map_or(0, |at| at + 1);
    &contents[..end]
}

/// The text of a name or value. Unlike a file's, it has no final newline that does not count.
pub(super) fn checked(bytes: &[u8]) -> Result<&str, NoText> {
    if bytes.ends_with(b"\n") { Err(NoText::Control) } else { template::text(bytes) }
}

/// A sheet that is being read.
#[derive(Default)]
struct SheetReader {
    names: Vec<String>,
    columns: Vec<Interner>,
    rows: Vec<u32>,
    /// The lines of the rows.
    lines: Vec<u32>,
    /// The number of rows of empty cells at the end, which are left out.
    blank_rows: usize,
    /// Whether they are not.
    keeps_blank_rows: bool,
    problems: Vec<SheetProblem>,
    /// Whether nothing more is read: there are too many problems, or the columns are unknown.
    is_over: bool,
}

/// A value of a row, or why it has none.
type CellText<'a> = Result<Cow<'a, [u8]>, SheetFault>;

impl SheetReader {
    fn records(&mut self, contents: &[u8], separator: u8) {
        let (mut records, mut record) =
            (SheetRecords::new(contents, separator), SheetRecord::default());
        let mut values = Vec::new();
        if !records.read(&mut record) {
            return self.problem(1, None, SheetFault::NoHeader);
        }
        match &record.faults[..] {
            [] => self.header(1, &record.values),
            faults => return faults.iter().for_each(|it| self.problem(1, None, it.1.clone())),
        }
        while !self.is_over && records.read(&mut record) {
            let (expected, found) = (self.names.len(), record.width);
            if !record.faults.is_empty() {
                for (number, fault) in record.faults.drain(..) {
                    self.problem(record.line, Some(number), fault);
                }
            } else if record.is_empty {
                self.problem(record.line, None, SheetFault::EmptyLine);
            } else if found != expected {
                self.problem(record.line, None, SheetFault::Width { expected, found });
            } else {
                values.extend(record.values.drain(..).map(Ok));
                self.row(record.line, &values);
                values.clear();
            }
        }
        if !self.keeps_blank_rows {
            self.leave_out_blank_rows();
        }
    }

    /// Leaves out rows of empty cells at the end. In a sheet of one column, such a row was meant: it has quotes.
    fn leave_out_blank_rows(&mut self) {
        let width = self.names.len();
        let is_blank = |row: &[u32]| {
            row.iter().zip(&self.columns).all(|(level, column)| column.text(*level).is_empty())
        };
        while width > 1
            && let Some(last) = self.rows.len().checked_sub(width)
            && is_blank(&self.rows[last..])
        {
            self.rows.truncate(last);
            self.lines.pop();
            self.blank_rows += 1;
        }
        for at in 0..width {
            let used = self.rows.chunks_exact(width).map(|row| row[at] + 1).max();
            self.columns[at].levels.truncate(used.unwrap_or_default() as usize);
        }
    }

    fn objects(&mut self, contents: &[u8]) {
        let mut columns = None;
        let lines = contents.split(|byte| *byte == b'\n').take_while(|_| !contents.is_empty());
        let mut lines = (1..).zip(lines).peekable();
        while let Some((line, text)) = lines.next() {
            if self.is_over {
                break;
            }
            if text.trim_ascii().is_empty() {
                self.problem(line, None, SheetFault::EmptyLine);
                continue;
            }
            let fields = match json_fields(text) {
                Ok(fields) => fields,
                Err(fault) => {
                    // If objects have several lines, no line is one.
                    self.is_over |= matches!(fault, SheetFault::OpenObject(_))
                        && columns.is_none()
                        && lines
                            .peek()
                            .is_some_and(|(_, next)| !next.trim_ascii().starts_with(b"{"));
                    self.problem(line, None, fault);
                    continue;
                }
            };
            let columns = columns.get_or_insert_with(|| {
                let names: Vec<&[u8]> = fields.iter().map(|(name, _)| name.as_bytes()).collect();
                self.header(line, &names);
                self.names.iter().cloned().zip(0..).collect()
            });
            if !self.is_over {
                self.object(line, columns, &fields);
            }
        }
    }

    /// Adds a row whose values have names.
    fn object(&mut self, line: usize, columns: &HashMap<String, usize>, fields: &[JsonField<'_>]) {
        let mut values: Vec<Option<CellText<'_>>> = vec![None; self.names.len()];
        let before = self.problems.len();
        for (at, (name, value)) in fields.iter().enumerate() {
            let here = self.names.get(at).is_some_and(|known| known == name);
            let column = if here { Some(at) } else { columns.get(name.as_ref()).copied() };
            let Some(column) = column else {
                self.problem(line, None, SheetFault::UnknownField(name.to_string()));
                continue;
            };
            let text = json_text(value).map(|text| match text {
                Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
                Cow::Owned(text) => Cow::Owned(text.into_bytes()),
            });
            if values[column].replace(text).is_some() {
                self.problem(line, None, SheetFault::SameName(name.to_string()));
            }
        }
        for column in (0..values.len()).filter(|at| values[*at].is_none()) {
            self.problem(line, None, SheetFault::MissingField(self.names[column].clone()));
        }
        if self.problems.len() == before {
            let values: Vec<CellText<'_>> = values.into_iter().flatten().collect();
            self.row(line, &values);
        }
    }

    /// Reads a list of levels.
    fn list(&mut self, name: &str, lines: &[&str]) {
        self.header(0, &[name.as_bytes()]);
        for (at, line) in lines.iter().enumerate() {
            if self.is_over {
                break;
            }
            self.row(at + 1, &[Ok(Cow::Borrowed(line.as_bytes()))]);
        }
    }

    /// Adds a row as it could be written in TSV.
    fn written(&mut self, line: usize, row: &[&str]) {
        let (expected, found) = (self.names.len(), row.len());
        if self.is_over {
        } else if matches!(row, [""]) {
            self.problem(line, None, SheetFault::EmptyLine);
        } else if found != expected {
            self.problem(line, None, SheetFault::Width { expected, found });
        } else {
            let cells: Vec<_> = row.iter().map(|it| Ok(Cow::Borrowed(it.as_bytes()))).collect();
            self.row(line, &cells);
        }
    }

    /// Reads the names of the columns.
    fn header(&mut self, line: usize, names: &[impl AsRef<[u8]>]) {
        let before = self.problems.len();
        if names.is_empty() {
            self.problem(line, None, SheetFault::NoColumns);
        }
        if names.len() > MAX_COLUMNS {
            self.problem(line, None, SheetFault::TooWide);
        }
        let mut seen = HashSet::new();
        for (number, name) in (1..).zip(names.iter().take(MAX_COLUMNS)) {
            match checked(name.as_ref()) {
                Ok("") => self.problem(line, None, SheetFault::NoName(number)),
                Ok(name) if !seen.insert(name) => {
                    self.problem(line, None, SheetFault::SameName(name.to_owned()));
                }
                Ok(name) => self.names.push(name.to_owned()),
                Err(fault) => self.problem(line, None, SheetFault::Name { number, fault }),
            }
        }
        self.columns.resize_with(self.names.len(), Interner::default);
        self.is_over |= self.problems.len() > before;
    }

    /// Adds a row with a value for each column.
    fn row(&mut self, line: usize, values: &[CellText<'_>]) {
        let begin = self.rows.len();
        for (column, value) in values.iter().enumerate() {
            let text = value.as_ref().map_err(Clone::clone);
            match text.and_then(|value| Ok(checked(value)?)) {
                Ok(text) => self.rows.push(self.columns[column].number(text)),
                Err(fault) => self.problem(line, Some(column), fault),
            }
        }
        if self.rows.len() - begin == values.len() {
            // A sheet of 1 GiB has fewer lines than there are numbers.
            self.lines.push(line as u32);
        } else {
            self.rows.truncate(begin);
        }
    }

    /// Adds a problem in a line, counted from one, and a column, counted from zero. Line zero is the whole sheet.
    fn problem(&mut self, line: usize, column: Option<usize>, fault: SheetFault) {
        let fault = match self.problems.len() {
            ..MAX_PROBLEMS => fault,
            MAX_PROBLEMS => SheetFault::More,
            _ => return,
        };
        self.is_over |= fault == SheetFault::More;
        let column = column.filter(|_| !self.is_over);
        let column = column.and_then(|column| self.names.get(column)).cloned();
        self.problems.push(SheetProblem { line: (line > 0).then_some(line), column, fault });
    }

    /// The points, and the lines in which they stand.
    fn finish(mut self) -> Result<(SweepPoints, Vec<u32>), Vec<SheetProblem>> {
        self.find_same_rows();
        if !self.problems.is_empty() {
            self.problems.sort_by_key(|it| (it.fault == SheetFault::More, it.line));
            return Err(self.problems);
        }
        let levels = self.columns.into_iter().map(Interner::into_levels).collect();
        let Self { names, rows, blank_rows, .. } = self;
        Ok((SweepPoints { names, files: Vec::new(), levels, rows, blank_rows }, self.lines))
    }

    fn find_same_rows(&mut self) {
        let rows = self.rows.chunks_exact(self.names.len().max(1));
        let mut first = HashMap::with_capacity(self.lines.len());
        let mut same = Vec::new();
        for (row, line) in rows.zip(&self.lines) {
            let before = *first.entry(row).or_insert(*line);
            if before != *line && same.len() <= MAX_PROBLEMS {
                same.push((*line as usize, before as usize));
            }
        }
        for (line, before) in same {
            self.problem(line, None, SheetFault::SameRow(before));
        }
    }
}

/// The greatest number of columns of a sheet.
pub const MAX_COLUMNS: usize = 4096;

/// The number of problems after which a sheet is not read further.
pub const MAX_PROBLEMS: usize = 20;

/// A problem at a place in a sheet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SheetProblem {
    /// The line, counted from one; `None` for the sheet as a whole.
    pub line: Option<usize>,
    /// The name of the column, where it is known.
    pub column: Option<String>,
    pub fault: SheetFault,
}

/// The kind of a problem of a sheet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Explain)]
#[non_exhaustive]
pub enum SheetFault {
    /// The sheet is larger than can be read.
    #[error("the sheet is larger than 1 GiB")]
    #[hint("keep data in files, and their names in the sheet")]
    TooLarge,
    /// There are too many columns.
    #[error("the sheet has more than {MAX_COLUMNS} columns")]
    #[hint("give each point a row, not a column")]
    TooWide,
    /// A sheet with a header is empty.
    #[error("the sheet has no header")]
    #[hint("write the names of the columns into the first line")]
    NoHeader,
    /// A list of levels is not a text.
    #[error("the list is not UTF-8 text")]
    #[hint("save the list as UTF-8")]
    NotText,
    /// A line between others is empty.
    #[error("the line is empty")]
    #[hint("remove it; in CSV, \"\" is an empty value")]
    EmptyLine,
    /// A line of a list of levels is empty.
    #[error("the line is empty")]
    #[hint("remove it; a line '' is the empty text")]
    EmptyLevel,
    /// A column has no name.
    #[error("the name of column {0} is empty")]
    #[hint("name it, or remove the separator")]
    NoName(usize),
    /// The name of a column cannot be one.
    #[error("the name of column {number} cannot be used: {fault}")]
    #[hint("{}", cell_hint(*fault, "give it a short name of one line"))]
    Name {
        /// The number of the column, counted from one.
        number: usize,
        /// The reason why it cannot.
        fault: NoText,
    },
    /// Two columns, or two fields of an object, have one name.
    #[error("there are two columns {0:?}")]
    #[hint("rename or remove one of them")]
    SameName(String),
    /// A value cannot be the text of a name.
    #[error("the value cannot be used: {0}")]
    #[hint("{}", cell_hint(*_0, "write one short line; the task can read a file with more, by its name"))]
    Value(#[from] NoText),
    /// A row has another number of values than there are columns.
    #[error("the row has {}, and the header {expected}", counted(*found, "value"))]
    #[hint("separate values as the header does; in CSV, put one that has a comma in quotes")]
    Width {
        /// The number of columns.
        expected: usize,
        /// The number of values.
        found: usize,
    },
    /// A quoted value does not end.
    #[error("a quoted value begins here and does not end")]
    #[hint("close it with a quote, and write quotes in it twice")]
    Unterminated,
    /// A value without quotes has a quote in it.
    #[error("a value that does not begin with a quote has one in it")]
    #[hint("put the whole value in quotes, and write quotes in it twice")]
    QuoteInside,
    /// Something follows the closing quote of a value.
    #[error("something follows the closing quote of a value")]
    #[hint("put the whole value in quotes, and write quotes in it twice")]
    AfterQuote,
    /// The sheet is an array of JSON.
    #[error("the sheet is a JSON array; NDJSON, TSV and CSV are read")]
    #[hint("write one object a line, without brackets and commas around them; jq -c '.[]' does so")]
    Array,
    /// An object of JSON goes on in the next line.
    #[error("the line is not a JSON object: {0}")]
    #[hint("write one object a line, as in {{\"x\": \"1\"}}")]
    OpenObject(String),
    /// A line is no JSON object.
    #[error("the line is not a JSON object: {0}")]
    #[hint("write one object a line, as in {{\"x\": \"1\"}}")]
    Json(String),
    /// A string of JSON is not valid.
    #[error("the string is not valid: {0}")]
    #[hint("write characters as they are; only \\, \" and control characters take a \\")]
    Escape(String),
    /// An object has no fields.
    #[error("the object has no fields")]
    #[hint("write one object a line, as in {{\"x\": \"1\"}}")]
    NoColumns,
    /// A value is `null`.
    #[error("the value is null")]
    #[hint("write a text, as in \"\", or leave the row out")]
    Null,
    /// A value is an object or an array.
    #[error("the value is an object or an array")]
    #[hint("write it as a text, or give each of its parts a column")]
    Container,
    /// An object lacks a field that the first one has.
    #[error("the object has no field {0:?}")]
    #[hint("give all objects the same fields")]
    MissingField(String),
    /// An object has a field that the first one has not.
    #[error("the first object has no field {0:?}")]
    #[hint("give all objects the same fields")]
    UnknownField(String),
    /// A row is the same as an earlier one.
    #[error("the row repeats line {0}")]
    #[hint("remove one of them; replicates repeat points")]
    SameRow(usize),
    /// There is no column with the files that a sweep binds.
    #[error("the sheet has no column {0}, which :files names")]
    #[hint(Some(_0.suggestion("columns")))]
    NoFileColumn(UnknownName),
    /// A cell that should be a path is a URL.
    #[error("{0} is a URL, and not the path of a file")]
    #[hint("fetch it first, and write the path of the file")]
    Url(String),
    /// The file of a cell cannot be used.
    #[error(transparent)]
    #[hint(_0.hint())]
    File(Box<CellFault>),
    /// A row has the same texts as an earlier one, and its files have the same contents.
    #[error("the row repeats line {0}: its files have the same contents")]
    #[hint("remove one of them, or tell them apart in a column of texts")]
    SameFiles(usize),
    /// A cell is the digest of a file that the storage does not have.
    #[error("the storage does not have the file of {0}")]
    #[hint("give the sheet with paths, or pull the results that were made from it")]
    NoContents(String),
    /// A path in a sheet of the task leads out of the task.
    #[error("{0} is not the path of a file of the task")]
    #[hint(
        "write a path in the directory of the task, relative to the sheet; or make the sheet an input of the task"
    )]
    OutsideTask(String),
    /// The sheet was not read further.
    #[error("there are more than {MAX_PROBLEMS} problems: the rest was not read")]
    #[hint("correct those that are listed first")]
    More,
}

/// The reason why the file of a cell cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Explain)]
#[error("{path:?}: {reason}")]
#[hint(hint.clone())]
pub struct CellFault {
    /// The cell.
    pub path: String,
    pub reason: String,
    pub hint: Option<String>,
}

impl From<CellFault> for SheetFault {
    fn from(fault: CellFault) -> Self {
        Self::File(Box::new(fault))
    }
}

/// What to try if the text of a cell cannot be used: this, unless it is not text.
fn cell_hint(fault: NoText, other: &'static str) -> &'static str {
    if fault == NoText::NotUtf8 { "save the sheet as UTF-8" } else { other }
}

impl fmt::Display for SheetProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        if let Some(column) = &self.column {
            write!(f, "column {column:?}: ")?;
        }
        self.fault.fmt(f)
    }
}

/// Returns the points of two files with the same columns, in any order, each once: first those of the first file. Returns `None` if the columns
/// differ.
pub fn united(first: &SweepPoints, second: &SweepPoints) -> Option<SweepPoints> {
    let names = first.names();
    let places: Option<Vec<usize>> = names.iter().map(|name| second.column(name)).collect();
    let places = places.filter(|it| it.len() == second.names().len())?;
    let mut columns: Vec<Interner> = names.iter().map(|_| Interner::default()).collect();
    let (mut rows, mut seen) = (Vec::new(), HashSet::new());
    for (points, places) in [(first, (0..names.len()).collect()), (second, places)] {
        for point in points.iter() {
            let texts = places.iter().map(|place| point.at(*place));
            let levels = columns.iter_mut().zip(texts).map(|(column, text)| column.number(text));
            let row: Vec<u32> = levels.collect();
            if seen.insert(row.clone()) {
                rows.extend(row);
            }
        }
    }
    let levels = columns.into_iter().map(Interner::into_levels).collect();
    let blank_rows = first.blank_rows + second.blank_rows;
    Some(SweepPoints { names: names.to_vec(), levels, rows, blank_rows, ..SweepPoints::default() })
}

/// The levels of a column that is being read.
#[derive(Debug, Default)]
pub(crate) struct Interner {
    known: HashMap<Arc<str>, u32>,
    levels: Vec<Arc<str>>,
}

impl Interner {
    /// Returns the number of a text.
    pub(crate) fn number(&mut self, text: &str) -> u32 {
        if let Some(number) = self.known.get(text) {
            return *number;
        }
        // A sheet of 1 GiB has fewer texts than there are numbers.
        let (number, text) = (self.levels.len() as u32, Arc::<str>::from(text));
        self.levels.push(Arc::clone(&text));
        self.known.insert(text, number);
        number
    }

    fn text(&self, number: u32) -> &str {
        &self.levels[number as usize]
    }

    pub(crate) fn into_levels(self) -> Vec<Arc<str>> {
        self.levels
    }
}

/// The records of TSV, which has no quotes, or of CSV as RFC 4180 has it, one after the other.
///
/// The known libraries read quotes leniently: an unterminated quote would silently swallow the rest of a sheet. A sheet
/// decides which calls are executed, so that is an error here.
pub(super) struct SheetRecords<'a> {
    rest: &'a [u8],
    separator: u8,
    line: usize,
    faults: Vec<(usize, SheetFault)>,
}

/// A record.
#[derive(Default)]
pub(super) struct SheetRecord<'a> {
    /// The line in which it begins, counted from one.
    pub(super) line: usize,
    /// Its values, at most one more than [`MAX_COLUMNS`].
    pub(super) values: Vec<Cow<'a, [u8]>>,
    /// The number of its values.
    pub(super) width: usize,
    /// Faults of its quotes, with the numbers of the values.
    pub(super) faults: Vec<(usize, SheetFault)>,
    /// Whether it is an empty line.
    pub(super) is_empty: bool,
}

impl<'a> SheetRecords<'a> {
    /// The records of a sheet that does not end in newlines. The separator is a comma or a tab.
    pub(super) const fn new(contents: &'a [u8], separator: u8) -> Self {
        Self { rest: contents, separator, line: 1, faults: Vec::new() }
    }

    /// Reads the next record into the place of another. Returns false at the end.
    pub(super) fn read(&mut self, record: &mut SheetRecord<'a>) -> bool {
        if self.rest.is_empty() {
            return false;
        }
        record.line = self.line;
        record.is_empty = self.rest.starts_with(b"\n") || self.rest.starts_with(b"\r\n");
        record.values.clear();
        record.width = 0;
        let mut is_last = false;
        while !is_last {
            let value;
            (value, is_last) = if self.separator == b',' && self.rest.starts_with(b"\"") {
                self.quoted(record.width)
            } else {
                self.plain(record.width)
            };
            record.width += 1;
            if record.values.len() <= MAX_COLUMNS {
                record.values.push(value);
            }
        }
        record.faults = mem::take(&mut self.faults);
        true
    }

    /// Reads a value without quotes. Returns it, and whether it is the last one of its record.
    fn plain(&mut self, number: usize) -> (Cow<'a, [u8]>, bool) {
        let (value, is_last) = self.up_to_separator();
        if self.separator == b',' && value.contains(&b'"') {
            self.fault(number, SheetFault::QuoteInside);
        }
        (Cow::Borrowed(value), is_last)
    }

    /// Reads a value in quotes. Returns it, and whether it is the last one of its record.
    fn quoted(&mut self, number: usize) -> (Cow<'a, [u8]>, bool) {
        let (mut from, mut has_quotes) = (1, false);
        let end = loop {
            let Some(at) = self.rest[from..].iter().position(|byte| *byte == b'"') else {
                self.fault(number, SheetFault::Unterminated);
                self.rest = &[];
                return (Cow::default(), true);
            };
            let end = from + at;
            if self.rest.get(end + 1) != Some(&b'"') {
                break end;
            }
            (from, has_quotes) = (end + 2, true);
        };
        let value = &self.rest[1..end];
        self.line += value.iter().filter(|byte| **byte == b'\n').count();
        self.rest = &self.rest[end + 1..];
        let (after, is_last) = self.up_to_separator();
        if !after.is_empty() {
            self.fault(number, SheetFault::AfterQuote);
        }
        (if has_quotes { Cow::Owned(unescaped(value)) } else { Cow::Borrowed(value) }, is_last)
    }

    /// Takes everything up to the next separator or the end of the line, and that, too.
    fn up_to_separator(&mut self) -> (&'a [u8], bool) {
        let end = self
            .rest
            .iter()
            .position(|byte| *byte == self.separator || *byte == b'\n')
            .unwrap_or(self.rest.len());
        let value = &self.rest[..end];
        let is_last = self.rest.get(end) != Some(&self.separator);
        self.rest = self.rest.get(end + 1..).unwrap_or_default();
        if !is_last {
            return (value, false);
        }
        self.line += 1;
        (value.strip_suffix(b"\r").unwrap_or(value), true)
    }

    /// Notes a fault of a value, the first ones of a record only.
    fn fault(&mut self, number: usize, fault: SheetFault) {
        if number <= MAX_COLUMNS {
            self.faults.push((number, fault));
        }
    }
}

/// The contents of a quoted value, in which quotes are written twice.
fn unescaped(value: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(value.len());
    let mut bytes = value.iter();
    while let Some(byte) = bytes.next() {
        text.push(*byte);
        if *byte == b'"' {
            bytes.next();
        }
    }
    text
}

/// The names and values of an object, in the order in which they are written. At most one more than [`MAX_COLUMNS`] are kept.
pub(super) struct Fields<'a>(Vec<(&'a RawValue, &'a RawValue)>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;
        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    if fields.len() <= MAX_COLUMNS {
                        fields.push(field);
                    }
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(FieldsVisitor)
    }
}

/// A field of an object: its name, and its value as it is spelled.
pub(super) type JsonField<'a> = (Cow<'a, str>, &'a RawValue);

/// Reads the fields of an object: their names, and their values as they are spelled.
pub(super) fn json_fields(line: &[u8]) -> Result<Vec<JsonField<'_>>, SheetFault> {
    let fields: Fields<'_> = serde_json::from_slice(line).map_err(|error| {
        if error.is_eof() {
            SheetFault::OpenObject(reason(&error))
        } else {
            SheetFault::Json(reason(&error))
        }
    })?;
    named_fields(fields)
}

/// The fields of an object with their names as texts.
pub(super) fn named_fields(fields: Fields<'_>) -> Result<Vec<JsonField<'_>>, SheetFault> {
    fields.0.into_iter().map(|(name, value)| Ok((json_string(name)?, value))).collect()
}

/// Whether a sheet that begins with a bracket is an array of JSON, or the beginning of one: a header may begin so, too.
pub(super) fn is_json_array(sheet: &[u8]) -> bool {
    let first = sheet.trim_ascii_start().strip_prefix(b"[").unwrap_or_default().trim_ascii_start();
    matches!(first.first(), None | Some(b'{' | b'[' | b']'))
        || serde_json::from_slice::<IgnoredAny>(sheet).is_ok()
}

/// The text of a value: a string, or a number or boolean as it is spelled.
///
/// # Errors
///
/// Fails if it is null, an object or an array.
pub(super) fn json_text(value: &RawValue) -> Result<Cow<'_, str>, SheetFault> {
    match value.get().as_bytes().first() {
        Some(b'"') => json_string(value),
        Some(b'n') => Err(SheetFault::Null),
        Some(b'{' | b'[') => Err(SheetFault::Container),
        _ => Ok(Cow::Borrowed(value.get())),
    }
}

/// Returns the text of a string. Only one with escapes is copied.
fn json_string(value: &RawValue) -> Result<Cow<'_, str>, SheetFault> {
    let plain = value.get().strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    match plain.filter(|text| !text.contains('\\')) {
        Some(text) => Ok(Cow::Borrowed(text)),
        None => serde_json::from_str(value.get())
            .map(Cow::Owned)
            .map_err(|error| SheetFault::Escape(reason(&error))),
    }
}

/// The error without its line, which is always the first.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.replace(" at line 1 column 0", "").replace(" at line 1 column ", " at byte ")
}
