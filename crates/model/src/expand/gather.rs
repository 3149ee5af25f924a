//! The table of a sweep: which columns it has, and what outputs become in them.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

use serde_json::value::RawValue;

use super::json;
use super::table::{CellType, JsonType, STATUS, TableCell, TableRow, cell_types, write_table};
use crate::digest::Sha1;
use crate::exit::Explain;
use crate::task::points::SweepPoints;
use crate::task::sweep::{ColumnShape, TableColumn};

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

/// Why outputs cannot be rows of a table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableFault {
    /// An output that should be JSON is none.
    #[error("output {output:02} at {point}: {what}")]
    Json {
        /// The number of the output.
        output: u8,
        /// The point, as in `threads=8 size=10`.
        point: String,
        /// What is wrong with it.
        what: String,
    },
    /// Two columns have one name.
    #[error("the table has two columns {0:?}")]
    SameColumn(String),
}

impl Explain for TableFault {
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Json { .. } => "let exec write one JSON object, or one object a line for **",
            Self::SameColumn(_) => "name the columns in the file columns of the sweep",
        };
        Some(hint.to_owned())
    }
}

/// Whether an output of this size is read to make these columns.
pub fn needs_contents(columns: &[TableColumn], output: u8, size: u64) -> bool {
    let mut shapes = columns.iter().filter(|it| it.output == output).map(|it| &it.shape);
    shapes.any(|shape| match shape {
        ColumnShape::One(_) => size <= super::MAX_CELL as u64 + 1,
        ColumnShape::Fields | ColumnShape::Rows => true,
    })
}

/// A point in words: `threads=8 size=10`.
pub fn point_title<'a, T: AsRef<str>>(values: impl Iterator<Item = (&'a str, T)>) -> String {
    let values = values.map(|(name, text)| match text.as_ref() {
        "" => format!("{name}=\"\""),
        text => format!("{name}={text}"),
    });
    values.collect::<Vec<_>>().join(" ")
}

/// The table of a sweep: its points with their outputs, in the order of the points. With `allow_failed`, the last column
/// is the status.
///
/// Its rows are made whenever they are asked for, and depend on nothing but what it was gathered from.
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

    /// The names of those that are fields of JSON, and have types of their own.
    pub fn fields(&self) -> impl Iterator<Item = &String> {
        let columns = self.columns.iter().zip(&self.names.fields);
        columns.filter(|(column, _)| column.shape.is_json()).flat_map(|(_, names)| names)
    }

    /// Its rows, in the order of the points.
    pub fn rows(&self) -> impl Iterator<Item = TableRow<'_>> + Clone {
        (0..self.outputs.len())
            .flat_map(|number| self.of_point(number).into_iter().map(move |cells| (number, cells)))
    }

    /// Writes it as NDJSON.
    ///
    /// # Errors
    ///
    /// Fails if `out` does.
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
                        let cells =
                            |name: &String| fields.map_or(TableCell::Null, |it| cell(it, name));
                        row.extend(names.iter().map(cells));
                    }
                }
            }
            row.extend(status("ok"));
            row
        };
        (0..objects.map_or(1, Vec::len)).map(row).collect()
    }
}

/// Returns what is wrong with the outputs of a point, where columns are made of their fields.
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

/// The fields of an object by their names. Null is none.
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
    /// Those with an object each, by number.
    fields: HashMap<u8, ParsedOutput<'a>>,
    /// The one that gives rows.
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
            let fault = |what: String| {
                let point = point_title(point.values());
                TableFault::Json { output: *output, point, what }
            };
            let found = objects(&outputs[usize::from(*output)], is_rows).map_err(fault)?;
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
        match is_rows {
            true => parsed.rows = Some(all),
            false => drop(parsed.fields.insert(*output, all)),
        }
    }
    Ok(parsed)
}

/// The names of fields and their values, in order; `None` for null.
type FieldValues<'a> = Vec<(Cow<'a, str>, Option<FieldValue<'a>>)>;

/// Reads the object that an output is, or one for each line. What is wrong with it is the error.
fn objects(output: &PointOutput, is_rows: bool) -> Result<Vec<FieldValues<'_>>, String> {
    let contents = output.contents.as_deref().ok_or("it is no file")?;
    let lines: Vec<&[u8]> = match is_rows {
        true => contents.split(|byte| *byte == b'\n').collect(),
        false => vec![contents],
    };
    let mut objects = Vec::new();
    for (number, line) in (1..).zip(lines) {
        if is_rows && line.trim_ascii().is_empty() {
            continue;
        }
        let place = |fault: &str| match is_rows {
            true => format!("line {number}: {fault}"),
            false => fault.to_owned(),
        };
        let fields = json::fields(line).map_err(|it| place(&it.to_string()))?;
        let field = |(name, value)| Ok((name, field_value(value).map_err(|it| place(&it))?));
        objects.push(fields.into_iter().map(field).collect::<Result<_, String>>()?);
    }
    Ok(objects)
}

/// The type and the text of a value: a string, or how it is spelled; `None` for null.
fn field_value(value: &RawValue) -> Result<Option<FieldValue<'_>>, String> {
    let spelled = Cow::Borrowed(value.get());
    Ok(Some(match value.get().as_bytes().first() {
        Some(b'n') => return Ok(None),
        Some(b'"') => (JsonType::Text, json::text(value).map_err(|fault| fault.to_string())?),
        Some(b't' | b'f') => (JsonType::Boolean, spelled),
        Some(b'{' | b'[') => (JsonType::Text, spelled),
        _ => (JsonType::Number, spelled),
    }))
}

fn cell<'a>(fields: &'a ObjectFields<'_>, name: &str) -> TableCell<'a> {
    let cell = |(of, text): &'a FieldValue<'_>| TableCell::Field(*of, text);
    fields.get(name).map_or(TableCell::Null, cell)
}
