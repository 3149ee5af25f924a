//! The table of a sweep: a row for each point with its outputs, as NDJSON.
//!
//! A column has one type, but for the fields of JSON: these keep their own. Results may be numbers that JSON does not have: an infinite one is
//! the text `Infinity` or `-Infinity`, and one that is not a number, `NaN`, is null, as if there were none.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::points::{SweepPoints, point_title, separators};
use super::sheet::{SheetFault, json_fields, json_text};
use super::{ColumnShape, TableColumn};
use crate::digest::Sha1;
use crate::exit::Explain;
use crate::suggest::UnknownName;

/// An output of the body of a sweep at a point.
#[derive(Clone, Debug)]
pub struct PointOutput {
    /// Its contents. They may be left out (`None`) where [`needs_contents`] says so.
    pub contents: Option<Box<[u8]>>,
    /// Its hash, as it is written in the table.
    pub hash: Sha1,
}

/// The outputs of the body of a sweep at a point; `None` if it failed.
pub type PointOutputs = Option<Box<[PointOutput]>>;

/// The reason why outputs cannot be rows of a table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Explain)]
pub enum TableFault {
    /// An output that should be JSON is not JSON.
    #[error("output {output:02} at {point}: {what}")]
    #[hint("let exec write one JSON object, or one object a line for **")]
    Json {
        /// The number of the output.
        output: u8,
        /// The point, as in `threads=8 size=10`.
        point: String,
        /// The fault of the output, in words.
        what: String,
    },
    /// Two columns have one name.
    #[error("the table has two columns {0:?}")]
    #[hint("name the columns in the file columns of the sweep")]
    SameColumn(String),
    /// No column of results has the name that the rule of replicates uses.
    #[error("replicates end by the column {0}, which the results do not have")]
    #[hint(Some(_0.suggestion("columns")))]
    NoColumn(UnknownName),
    /// There is no number at a point by which its replicates could end.
    #[error("replicates end by the column {column:?}, and at {point} {what}")]
    #[hint(
        "let exec write one finite number as JSON spells it, such as 0.25 and not .25, or fail, and allow failed points"
    )]
    NoNumber {
        /// The name of the column.
        column: String,
        point: String,
        /// The contents of the column there, in words.
        what: String,
    },
}

/// Whether an output of this size is read to make these columns.
pub fn needs_contents(columns: &[TableColumn], output: u8, size: u64) -> bool {
    let mut shapes = columns.iter().filter(|it| it.output == output).map(|it| &it.shape);
    shapes.any(|shape| match shape {
        ColumnShape::One(_) => size <= MAX_CELL as u64 + 1,
        ColumnShape::Fields | ColumnShape::Rows => true,
    })
}

/// The table of a sweep: its points with their outputs, in the order of the points. With `allow_failed`, the last column
/// is the status.
///
/// Its rows are made whenever they are asked for, and depend only on the outputs that it was gathered from.
pub struct GatheredTable<'a> {
    points: &'a SweepPoints,
    outputs: &'a [PointOutputs],
    columns: &'a [TableColumn],
    allow_failed: bool,
    parsed: ParsedOutputs<'a>,
    names: ColumnNames,
    types: Vec<CellType>,
}

impl<'a> GatheredTable<'a> {
    /// The table of these points.
    ///
    /// # Errors
    ///
    /// Fails if an output has no such columns, or two columns have one name.
    pub fn new(
        points: &'a SweepPoints,
        outputs: &'a [PointOutputs],
        columns: &'a [TableColumn],
        allow_failed: bool,
    ) -> Result<Self, TableFault> {
        debug_assert_eq!(points.len(), outputs.len(), "each point has outputs, or failed");
        let parsed = parse(points, outputs, columns)?;
        let names = names(points, columns, &parsed, allow_failed)?;
        let width = names.all.len();
        let types = Vec::new();
        let mut table = Self { points, outputs, columns, allow_failed, parsed, names, types };
        table.types = cell_types(width, table.rows().map(|(_, cells)| cells));
        Ok(table)
    }

    /// The names of its columns, all different.
    pub fn names(&self) -> &[String] {
        &self.names.all
    }

    /// The names of the columns of results, and the rule that makes each.
    pub fn results(&self) -> impl Iterator<Item = (&String, &TableColumn)> {
        let columns = self.columns.iter().zip(&self.names.fields);
        columns.flat_map(|(column, names)| names.iter().map(move |name| (name, column)))
    }

    /// Its rows, in the order of the points.
    pub fn rows(&self) -> impl Iterator<Item = TableRow<'_>> + Clone {
        (0..self.outputs.len())
            .flat_map(|number| self.of_point(number).into_iter().map(move |cells| (number, cells)))
    }

    /// Returns the number that each point has in a column of results; `None` where it failed, or is not a number.
    ///
    /// # Errors
    ///
    /// Fails if there is no such column, or a point that has not failed has something else there, or several numbers.
    pub fn numbers(&self, name: &str) -> Result<Vec<Option<f64>>, TableFault> {
        let of_points = self.points.names().len();
        let known = &self.names.all[of_points..];
        let column = match known.iter().position(|column| column == name) {
            Some(at) => of_points + at,
            None if self.outputs.iter().all(Option::is_none) => of_points,
            None => {
                return Err(TableFault::NoColumn(UnknownName::new(name, known)));
            }
        };
        let number = |number: usize| {
            let rows = self.of_point(number);
            let what = match &rows[..] {
                [row] => match row[column].number() {
                    Some(number) => return Ok(Some(number).filter(|it| !it.is_nan())),
                    None => match row[column].text() {
                        Some(text) => format!("has {text:?}, which is not a finite number"),
                        None => "has no number".to_owned(),
                    },
                },
                rows => format!("has {} rows", rows.len()),
            };
            let (column, point) = (name.to_owned(), point_title(self.points.at(number).values()));
            Err(TableFault::NoNumber { column, point, what })
        };
        let points = self.outputs.iter().enumerate();
        points.map(|(at, outputs)| outputs.as_ref().map_or(Ok(None), |_| number(at))).collect()
    }

    /// Writes it as NDJSON.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        write_table(self.names(), &self.types, self.rows().map(|(_, cells)| cells), out)
    }

    /// The rows of a point: one, unless an output of it has rows itself.
    fn of_point(&self, number: usize) -> Vec<Vec<TableCell<'_>>> {
        let of_point = || self.points.at(number).values().map(|(_, text)| TableCell::Text(text));
        let status = |text| self.allow_failed.then_some(TableCell::Text(text));
        let Some(outputs) = &self.outputs[number] else {
            let mut row: Vec<_> = of_point().collect();
            row.resize(self.names.all.len() - usize::from(self.allow_failed), TableCell::Null);
            row.extend(status("failed"));
            return vec![row];
        };
        let objects = self.parsed.rows.as_ref().map(|rows| &rows.objects[number]);
        let row = |row_of_point: usize| {
            let mut row: Vec<_> = of_point().collect();
            for (column, names) in self.columns.iter().zip(&self.names.fields) {
                match &column.shape {
                    ColumnShape::One(_) => {
                        let PointOutput { contents, hash } = &outputs[usize::from(column.output)];
                        row.push(TableCell::Result { contents: contents.as_deref(), hash });
                    }
                    ColumnShape::Fields => {
                        let fields = &self.parsed.fields[&column.output].objects[number][0];
                        row.extend(names.iter().map(|name| cell(fields, name)));
                    }
                    ColumnShape::Rows => {
                        let fields = objects.map(|objects| &objects[row_of_point]);
                        row.extend(
                            names
                                .iter()
                                .map(|name| fields.map_or(TableCell::Null, |it| cell(it, name))),
                        );
                    }
                }
            }
            row.extend(status("ok"));
            row
        };
        (0..objects.map_or(1, Vec::len)).map(row).collect()
    }
}

/// Returns the fault of the outputs of a point, where columns are made of their fields.
pub fn fault_of_outputs(columns: &[TableColumn], outputs: &[PointOutput]) -> Option<String> {
    columns.iter().find_map(|TableColumn { output, shape }| {
        let is_rows = match shape {
            ColumnShape::One(_) => return None,
            ColumnShape::Fields => false,
            ColumnShape::Rows => true,
        };
        let fault = objects(&outputs[usize::from(*output)], is_rows).err()?;
        Some(format!("output {output:02}: {fault}"))
    })
}

/// The names of all columns, and of those that each rule makes.
struct ColumnNames {
    all: Vec<String>,
    fields: Vec<Vec<String>>,
}

fn names(
    points: &SweepPoints,
    columns: &[TableColumn],
    parsed: &ParsedOutputs<'_>,
    allow_failed: bool,
) -> Result<ColumnNames, TableFault> {
    let fields: Vec<Vec<String>> = columns
        .iter()
        .map(|column| match &column.shape {
            ColumnShape::One(name) => vec![name.to_string()],
            ColumnShape::Fields => parsed.fields[&column.output].names.clone(),
            ColumnShape::Rows => {
                parsed.rows.as_ref().map(|it| it.names.clone()).unwrap_or_default()
            }
        })
        .collect();
    let status = allow_failed.then(|| STATUS.to_owned());
    let all = points.names().iter().chain(fields.iter().flatten()).cloned().chain(status);
    let all: Vec<String> = all.collect();
    let mut seen = HashSet::new();
    match all.iter().find(|name| !seen.insert(*name)) {
        Some(name) => Err(TableFault::SameColumn(name.clone())),
        None => Ok(ColumnNames { all, fields }),
    }
}

/// The value of a field: its type, and its text.
type FieldValue<'a> = (JsonType, Cow<'a, str>);

/// The fields of an object by their names. Null has no fields.
type ObjectFields<'a> = HashMap<Cow<'a, str>, FieldValue<'a>>;

/// The objects of an output at each point; none where that failed.
#[derive(Default)]
struct ParsedOutput<'a> {
    /// The names of all fields, in the order of their appearance.
    names: Vec<String>,
    objects: Vec<Vec<ObjectFields<'a>>>,
}

/// The outputs that are JSON.
#[derive(Default)]
struct ParsedOutputs<'a> {
    /// The outputs with an object each, by number.
    fields: HashMap<u8, ParsedOutput<'a>>,
    /// The output that gives rows.
    rows: Option<ParsedOutput<'a>>,
}

fn parse<'a>(
    points: &SweepPoints,
    outputs: &'a [PointOutputs],
    columns: &[TableColumn],
) -> Result<ParsedOutputs<'a>, TableFault> {
    let mut parsed = ParsedOutputs::default();
    for TableColumn { output, shape } in columns {
        let is_rows = *shape == ColumnShape::Rows;
        if !is_rows && *shape != ColumnShape::Fields {
            continue;
        }
        let mut all = ParsedOutput::default();
        let mut seen = HashSet::new();
        for (point, outputs) in points.iter().zip(outputs) {
            let Some(outputs) = outputs else {
                all.objects.push(Vec::new());
                continue;
            };
            let found = objects(&outputs[usize::from(*output)], is_rows).map_err(|what| {
                let point = point_title(point.values());
                TableFault::Json { output: *output, point, what }
            })?;
            let mut objects = Vec::with_capacity(found.len());
            for fields in found {
                let mut object = ObjectFields::with_capacity(fields.len());
                for (name, value) in fields {
                    if seen.insert(name.clone()) {
                        all.names.push(name.to_string());
                    }
                    object.extend(value.map(|value| (name, value)));
                }
                objects.push(object);
            }
            all.objects.push(objects);
        }
        if is_rows { parsed.rows = Some(all) } else { drop(parsed.fields.insert(*output, all)) }
    }
    Ok(parsed)
}

/// The names of fields and their values, in order; `None` for null.
type FieldValues<'a> = Vec<(Cow<'a, str>, Option<FieldValue<'a>>)>;

/// Reads the object that an output is, or one for each line. Its first mistake is the error.
fn objects(output: &PointOutput, is_rows: bool) -> Result<Vec<FieldValues<'_>>, String> {
    let contents = output.contents.as_deref().ok_or("it is not a file")?;
    let lines: Vec<&[u8]> =
        if is_rows { contents.split(|byte| *byte == b'\n').collect() } else { vec![contents] };
    let mut objects = Vec::new();
    for (number, line) in (1..).zip(lines) {
        if is_rows && line.trim_ascii().is_empty() {
            continue;
        }
        let place = |fault: &str| {
            if is_rows { format!("line {number}: {fault}") } else { fault.to_owned() }
        };
        let fields = json_fields(line).map_err(|it| place(&it.to_string()))?;
        objects.push(
            fields
                .into_iter()
                .map(|(name, value)| {
                    let value = field_value(value).map_err(|it| place(&it.to_string()))?;
                    Ok((name, value))
                })
                .collect::<Result<_, String>>()?,
        );
    }
    Ok(objects)
}

/// The type and the text of a value: a string, or how it is spelled; `None` for null. Numbers that JSON does not have are marked:
/// see [`mark_bare_numbers`].
pub(super) fn field_value(value: &RawValue) -> Result<Option<FieldValue<'_>>, SheetFault> {
    let spelled = Cow::Borrowed(value.get());
    Ok(Some(match value.get().as_bytes().first() {
        Some(b'n') => return Ok(None),
        Some(b'"') if let Some(number) = marked_number(value.get()) => {
            (JsonType::Number, number.into())
        }
        Some(b'"') => (JsonType::Text, json_text(value)?),
        Some(b't' | b'f') => (JsonType::Boolean, spelled),
        Some(b'{' | b'[') => (JsonType::Text, unmarked(value.get())),
        _ => (JsonType::Number, spelled),
    }))
}

/// A number that JSON does not have, as programs write it bare and as it is marked in a string: no writer spells letters as escapes.
struct BareNumber {
    spelled: &'static str,
    marked: &'static str,
}

const BARE_NUMBERS: [BareNumber; 3] = [
    BareNumber { spelled: NAN, marked: r#""\u004eaN""# },
    BareNumber { spelled: "-Infinity", marked: r#""-\u0049nfinity""# },
    BareNumber { spelled: "Infinity", marked: r#""\u0049nfinity""# },
];

/// How a value is spelled that is not a number.
const NAN: &str = "NaN";

/// The number that a string stands for, if it is a mark.
fn marked_number(string: &str) -> Option<&'static str> {
    BARE_NUMBERS.iter().find(|it| it.marked == string).map(|it| it.spelled)
}

/// The text of an object or array as it was spelled.
fn unmarked(json: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(json);
    for BareNumber { spelled, marked } in BARE_NUMBERS {
        if text.contains(marked) {
            text = text.replace(marked, spelled).into();
        }
    }
    text
}

/// Marks numbers that stand bare in JSON and are not JSON, as Python writes them: `NaN`, `Infinity` and `-Infinity`. Everything else
/// stays as it is.
pub fn mark_bare_numbers(json: &[u8]) -> Cow<'_, [u8]> {
    if !json.windows(2).any(|it| it == b"Na" || it == b"In") {
        return Cow::Borrowed(json);
    }
    let (mut marked, mut at, mut is_in_string) = (Vec::with_capacity(json.len()), 0, false);
    while at < json.len() {
        let rest = &json[at..];
        let number = BARE_NUMBERS.iter().find(|it| rest.starts_with(it.spelled.as_bytes()));
        let is_before = matches!(marked.last(), Some(b':' | b' ' | b'\t' | b'[' | b','));
        let taken = match number {
            Some(number) if !is_in_string && is_before => {
                marked.extend_from_slice(number.marked.as_bytes());
                number.spelled.len()
            }
            _ => {
                is_in_string ^= rest[0] == b'"';
                let taken = if rest[0] == b'\\' { rest.len().min(2) } else { 1 };
                marked.extend_from_slice(&rest[..taken]);
                taken
            }
        };
        at += taken;
    }
    Cow::Owned(marked)
}

/// The number that JSON does not have and a text spells, in any case: `nan`, `inf`, `Infinity`, with or without a sign. It is spelled as in a table.
pub(super) fn special_number(text: &str) -> Option<&'static str> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let is = |word: &str| unsigned.eq_ignore_ascii_case(word);
    match text.starts_with('-') {
        _ if is("nan") => Some(NAN),
        true if is("inf") || is("infinity") => Some("-Infinity"),
        false if is("inf") || is("infinity") => Some("Infinity"),
        _ => None,
    }
}

fn cell<'a>(fields: &'a ObjectFields<'_>, name: &str) -> TableCell<'a> {
    fields.get(name).map_or(TableCell::Null, |(of, text)| TableCell::Field(*of, text))
}

/// The greatest size of a result that stands in a table itself, in bytes, without its final newline.
pub const MAX_CELL: usize = 1024;

/// The last column of a table where failed points are rows.
pub const STATUS: &str = "status";

/// A value of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableCell<'a> {
    /// Nothing: a failed point has no outputs.
    Null,
    /// The text of a factor or a label, of any length.
    Text(&'a str),
    /// A field of a result that is JSON, of any length. It keeps its type.
    Field(JsonType, &'a str),
    /// A result.
    Result {
        /// Its contents. They may be left out (`None`) if they are longer than [`MAX_CELL`] and a newline.
        contents: Option<&'a [u8]>,
        /// Its hash, as it is written in the table.
        hash: &'a Sha1,
    },
}

/// The type of a value of JSON that is not null. An object or array stands in a table as the text that it is spelled as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonType {
    /// A number, as it is spelled.
    Number,
    /// `true` or `false`.
    Boolean,
    /// A string.
    Text,
}

/// The type of the values of a column as they are written. Each type can hold the values of those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CellType {
    /// A JSON number as it is spelled.
    Number,
    /// A string.
    Text,
    /// A hash, as a string. Texts that are not results stay texts.
    Hash,
}

/// Returns how the values of each column are written, in a table with rows of this width. None of them is kept: there may
/// be a million.
///
/// All cells of a column have one type: numbers if all are JSON numbers, else texts if all are UTF-8 of at
/// most [`MAX_CELL`] bytes, else hashes. One final newline of a result does not count. `null` fits each type. Fields have
/// types of their own, which do not depend on other rows.
pub(super) fn cell_types<'a>(
    width: usize,
    rows: impl Iterator<Item = impl AsRef<[TableCell<'a>]>>,
) -> Vec<CellType> {
    let mut types = vec![CellType::Number; width];
    for row in rows {
        let row = row.as_ref();
        debug_assert_eq!(row.len(), width, "a row has a cell for each column");
        for (of_column, cell) in types.iter_mut().zip(row) {
            *of_column = cell.narrowest(*of_column);
        }
    }
    types
}

/// Writes a table with these types as NDJSON: compact, with the columns in the order of their names, which are different.
pub(super) fn write_table<'a>(
    names: &[String],
    types: &[CellType],
    rows: impl Iterator<Item = Vec<TableCell<'a>>>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let names = names.iter().map(serde_json::to_vec).collect::<Result<Vec<_>, _>>()?;
    for row in rows {
        for ((before, name), (of_column, cell)) in
            separators().zip(&names).zip(types.iter().zip(&row))
        {
            out.write_all(before)?;
            out.write_all(name)?;
            out.write_all(b":")?;
            cell.write(*of_column, &mut *out)?;
        }
        // Without columns, a row is an empty object.
        out.write_all(if names.is_empty() { b"{}\n" } else { b"}\n" })?;
    }
    Ok(())
}

/// A row of a table: the number of its point, and its cells.
pub type TableRow<'a> = (usize, Vec<TableCell<'a>>);

/// The value of a cell in a table whose rows are all known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CellValue {
    /// Nothing.
    Null,
    /// A result that is not a number where others are: `NaN`. It is null in JSON.
    NotANumber,
    /// A number, as it is spelled; an infinite one is a text in JSON.
    Number(String),
    /// A field of JSON that is `true` or `false`.
    Boolean(bool),
    /// A text, or a hash.
    Text(String),
}

impl CellValue {
    /// Makes a text of a number, as it is spelled.
    pub fn make_text(&mut self) {
        if let Self::Number(text) = self {
            *self = Self::Text(std::mem::take(text));
        }
    }

    /// The value of a field of JSON; `None` is null.
    pub(super) fn of_field(field: Option<(JsonType, Cow<'_, str>)>) -> Self {
        match field {
            None => Self::Null,
            Some((JsonType::Number, text)) if text == NAN => Self::NotANumber,
            Some((JsonType::Number, text)) => Self::Number(text.into_owned()),
            Some((JsonType::Boolean, text)) => Self::Boolean(text == "true"),
            Some((JsonType::Text, text)) => Self::Text(text.into_owned()),
        }
    }

    /// Its value as a number, if a double can hold it: `1e400` is a number of JSON, and too large for all of these. It may be infinite.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Number(text) => {
                let number: f64 = text.parse().ok()?;
                (number.is_finite() || special_number(text).is_some()).then_some(number)
            }
            Self::Null | Self::NotANumber | Self::Boolean(_) | Self::Text(_) => None,
        }
    }

    /// Its text; nothing has an empty one.
    pub fn text(&self) -> &str {
        match self {
            Self::Null => "",
            Self::NotANumber => NAN,
            Self::Boolean(true) => "true",
            Self::Boolean(false) => "false",
            Self::Number(text) | Self::Text(text) => text,
        }
    }
}

/// A number stays as it is spelled.
impl Serialize for CellValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null | Self::NotANumber => serializer.serialize_none(),
            Self::Boolean(value) => serializer.serialize_bool(*value),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Number(text) => match serde_json::from_str::<&RawValue>(text) {
                Ok(number) => number.serialize(serializer),
                Err(_) => serializer.serialize_str(text),
            },
        }
    }
}

/// Returns the values that a table has for these rows.
pub fn cell_values(width: usize, rows: &[TableRow<'_>]) -> Vec<Vec<CellValue>> {
    let types = cell_types(width, rows.iter().map(|(_, row)| row));
    rows.iter()
        .map(|(_, row)| {
            row.iter()
                .zip(&types)
                .map(|(cell, of_column)| CellValue::of_field(cell.written(*of_column)))
                .collect()
        })
        .collect()
}

impl<'a> TableCell<'a> {
    /// The text of the cell, unless it is null, too long or not UTF-8.
    fn text(self) -> Option<&'a str> {
        match self {
            Self::Null => None,
            Self::Text(text) | Self::Field(_, text) => Some(text),
            Self::Result { contents, .. } => {
                let contents = contents?;
                let line = contents.strip_suffix(b"\n").unwrap_or(contents);
                std::str::from_utf8(line).ok().filter(|text| text.len() <= MAX_CELL)
            }
        }
    }

    /// The number that it is, or `NaN`.
    fn number(self) -> Option<f64> {
        let text = match self {
            Self::Field(of, text) => Some(text).filter(|_| of == JsonType::Number),
            Self::Null | Self::Text(_) | Self::Result { .. } => self.text(),
        };
        match self.special() {
            Some(special) => special.parse().ok(),
            None => text
                .filter(|text| is_json_number(text))?
                .parse()
                .ok()
                .filter(|it: &f64| it.is_finite()),
        }
    }

    /// The number that JSON does not have and a result is.
    fn special(self) -> Option<&'static str> {
        match self {
            Self::Null | Self::Text(_) | Self::Field(JsonType::Boolean | JsonType::Text, _) => None,
            Self::Result { .. } | Self::Field(JsonType::Number, _) => special_number(self.text()?),
        }
    }

    /// Returns the first type that can hold this cell, beginning with the type of the cells before it.
    fn narrowest(self, before: CellType) -> CellType {
        match self.text() {
            _ if matches!(self, Self::Null | Self::Field(..)) || before == CellType::Hash => before,
            None => CellType::Hash,
            Some(_) if before == CellType::Number && self.special().is_some() => before,
            Some(text) if before == CellType::Number && is_json_number(text) => CellType::Number,
            Some(_) => CellType::Text,
        }
    }

    fn write(self, of_column: CellType, out: &mut dyn Write) -> io::Result<()> {
        match self.written(of_column) {
            None => out.write_all(b"null"),
            Some((JsonType::Number, text)) if text == NAN => out.write_all(b"null"),
            Some((JsonType::Number, text)) if special_number(&text).is_some() => {
                Ok(serde_json::to_writer(out, &*text)?)
            }
            Some((JsonType::Text, text)) => Ok(serde_json::to_writer(out, &*text)?),
            Some((JsonType::Number | JsonType::Boolean, text)) => out.write_all(text.as_bytes()),
        }
    }

    /// The type and the text of a value in a column of this type; `None` for null.
    fn written(self, of_column: CellType) -> Option<(JsonType, Cow<'a, str>)> {
        let of_column_type = match of_column {
            CellType::Number => JsonType::Number,
            CellType::Text | CellType::Hash => JsonType::Text,
        };
        match (self, self.text()) {
            (Self::Null, _) => None,
            (Self::Field(own, text), _) => Some((own, text.into())),
            (Self::Result { .. }, _)
                if of_column == CellType::Number && self.special().is_some() =>
            {
                Some((of_column_type, self.special()?.into()))
            }
            (Self::Result { hash, .. }, _) if of_column == CellType::Hash => {
                Some((JsonType::Text, hash.full().into()))
            }
            (_, text) => Some((of_column_type, text.unwrap_or_default().into())),
        }
    }
}

/// Whether a text is a number as JSON spells it, and nothing else.
pub(super) fn is_json_number(text: &str) -> bool {
    text.starts_with(|first: char| first == '-' || first.is_ascii_digit())
        && serde_json::from_str::<&RawValue>(text).is_ok_and(|number| number.get() == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of one column.
    fn table(cells: &[TableCell<'_>]) -> String {
        let rows: Vec<_> = cells.iter().map(|cell| vec![*cell]).collect();
        let text = text(&["x".to_owned()], &rows);
        text.replace("{\"x\":", "").replace("}\n", ";")
    }

    fn text(names: &[String], rows: &[Vec<TableCell<'_>>]) -> String {
        let types = cell_types(names.len(), rows.iter().cloned());
        let mut text = Vec::new();
        write_table(names, &types, rows.iter().cloned(), &mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    const HASH: &str = "c0ffee0000000000000000000000000000000000";

    /// The hash of each result.
    fn hash() -> Sha1 {
        Sha1::from_digits(HASH.as_bytes()).unwrap()
    }

    fn results(contents: &[&[u8]]) -> String {
        let hash = hash();
        let cells: Vec<_> = contents
            .iter()
            .map(|it| TableCell::Result { contents: Some(it), hash: &hash })
            .collect();
        table(&cells).replace(HASH, "c0ffee")
    }

    #[test]
    fn a_column_has_one_type() {
        assert_eq!(
            results(&[b"1.50\n", b"-0e+9", b"1e999", b"123456789012345678901"]),
            "1.50;-0e+9;1e999;123456789012345678901;"
        );
        assert_eq!(results(&[b"1", b"auto\n\n"]), "\"1\";\"auto\\n\";");
        assert_eq!(results(&[b"auto", b"1"]), "\"auto\";\"1\";");
        assert_eq!(results(&[b"1", b"a", b"\xff", b"2"]), "\"c0ffee\";".repeat(4));
        let (long, longer) = ([b'a'; MAX_CELL], [b'a'; MAX_CELL + 1]);
        assert!(results(&[&[&long[..], b"\n"].concat()]).starts_with("\"aaa"));
        assert_eq!(results(&[&longer]), "\"c0ffee\";");
        for text in
            ["", "01", " 1", "1 ", "1\r", "+1", "1.", ".5", "-", "1e", "0x1", "true", "NaNs", "[1]"]
        {
            assert!(results(&[text.as_bytes(), b"1"]).ends_with("\"1\";"), "{text:?}");
        }
    }

    #[test]
    fn numbers_that_json_does_not_have_leave_a_column_one_of_numbers() {
        let spelled = [&b"1.5\n"[..], b"nan\n", b"-Inf", b"+infinity\n", b"NAN", b"inf"];
        let written = r#"1.5;null;"-Infinity";"Infinity";null;"Infinity";"#;
        assert_eq!(results(&spelled), written);
        assert_eq!(results(&[b"nan", b"nan"]), "null;null;");
        // Among words they are words, and so are names of points.
        assert_eq!(results(&[b"inf", b"word"]), "\"inf\";\"word\";");
        assert_eq!(table(&[TableCell::Text("nan"), TableCell::Text("1")]), "\"nan\";\"1\";");
    }

    #[test]
    fn bare_numbers_of_json_are_marked_and_strings_stay() {
        let json = br#"{"NaN": NaN, "a":[Infinity,-Infinity], "b": "NaN, \" NaN", "c":NaN}"#;
        let marked = mark_bare_numbers(json);
        let fields = json_fields(&marked).unwrap();
        let values: Vec<_> = fields.iter().map(|(_, it)| field_value(it).unwrap()).collect();
        let number = |text: &'static str| Some((JsonType::Number, Cow::Borrowed(text)));
        assert_eq!((&values[0], &values[3]), (&number("NaN"), &number("NaN")));
        assert_eq!(values[1], Some((JsonType::Text, "[Infinity,-Infinity]".into())));
        assert_eq!(values[2], Some((JsonType::Text, "NaN, \" NaN".into())));
        assert_eq!(CellValue::of_field(number("NaN")), CellValue::NotANumber);
        let infinite = CellValue::of_field(number("-Infinity"));
        assert_eq!(infinite.number(), Some(f64::NEG_INFINITY));
        assert_eq!(serde_json::to_string(&infinite).unwrap(), "\"-Infinity\"");
        for json in [&b"{\"a\":\"In\"}"[..], b"NaNs", b"{\"a\": \"x\\\\\", \"b\": \"In\"}"] {
            assert_eq!(*mark_bare_numbers(json), *json);
        }
    }

    #[test]
    fn null_fits_each_type_and_texts_are_never_hashes() {
        let hash = hash();
        let result = |contents| TableCell::Result { contents, hash: &hash };
        assert_eq!(table(&[TableCell::Null, result(Some(b"1"))]), "null;1;");
        assert_eq!(
            table(&[result(Some(b"1")), TableCell::Null, result(None)]),
            format!("\"{HASH}\";null;\"{HASH}\";")
        );
        assert_eq!(table(&[TableCell::Null]), "null;");
        let long = "a".repeat(4096);
        assert_eq!(table(&[TableCell::Text(&long)]), format!("\"{long}\";"));
        assert_eq!(table(&[TableCell::Text("8"), TableCell::Text("16")]), "8;16;");
    }

    #[test]
    fn fields_keep_their_types_whatever_the_others_are() {
        let cells = [
            TableCell::Field(JsonType::Text, "1.10"),
            TableCell::Field(JsonType::Number, "1.10"),
            TableCell::Field(JsonType::Boolean, "true"),
            TableCell::Null,
            TableCell::Field(JsonType::Text, "true"),
        ];
        assert_eq!(table(&cells), "\"1.10\";1.10;true;null;\"true\";");
        let rows: Vec<TableRow<'_>> = cells.iter().map(|cell| (0, vec![*cell])).collect();
        let values = [
            CellValue::Text("1.10".to_owned()),
            CellValue::Number("1.10".to_owned()),
            CellValue::Boolean(true),
            CellValue::Null,
            CellValue::Text("true".to_owned()),
        ];
        assert_eq!(cell_values(1, &rows).concat(), values);
    }

    #[test]
    fn a_row_is_a_compact_object() {
        let names = ["a\"".to_owned(), "b".to_owned()];
        let row = vec![TableCell::Text("1"), TableCell::Text("x y")];
        assert_eq!(text(&names, &[row.clone(), row]), "{\"a\\\"\":1,\"b\":\"x y\"}\n".repeat(2));
        assert_eq!(text(&names, &[]), "");
    }
}
