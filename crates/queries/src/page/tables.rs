//! The tables of a page: those of sweeps that are recorded, or of a task as far as its points are there.

use std::collections::{BTreeSet, HashSet};
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::calls::{PageIndex, ValueOrigin};
use crate::table::{RowStatus, SweepTable};
use ce_history::History;
use ce_model::sweep::CellValue;
use ce_storage::{Entry, RecipeFile, Record, ResultName, Storage, StorageError};

/// A table on a page.
#[derive(Clone, Debug, Serialize)]
pub struct PageTable {
    /// The short names of the recorded tables that it is.
    pub names: Vec<String>,
    /// What people call it.
    pub title: String,
    /// The names of its columns.
    pub columns: Vec<String>,
    /// Those of them that tell points apart.
    pub keys: Vec<String>,
    /// The rows that are on the page.
    pub rows: Vec<PageRow>,
    /// The number of all rows.
    pub rows_in_all: usize,
    /// The files that it was made from.
    #[serde(skip)]
    files: Vec<RecipeFile>,
    /// What these were made by.
    #[serde(skip)]
    pub(super) made_from: BTreeSet<ValueOrigin>,
}

/// A row of a table on a page.
#[derive(Clone, Debug, Serialize)]
pub struct PageRow {
    /// A value for each column: a number as it is spelled, true or false, a text or nothing.
    #[serde(serialize_with = "as_json")]
    pub cells: Vec<CellValue>,
    /// What became of its point, unless it is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// The call that has made its first output, by its number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<usize>,
    /// The first output.
    #[serde(skip)]
    file: Option<RecipeFile>,
}

/// The table of a sweep of a task.
#[derive(Debug)]
pub struct TaskTable {
    /// What people call it.
    pub title: String,
    /// The short names that it has in the storage, or would have.
    pub names: Vec<String>,
    /// Its rows.
    pub table: SweepTable,
}

/// Cells as values of JSON.
fn as_json<S: Serializer>(cells: &[CellValue], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(cells.iter().map(JsonCell))
}

struct JsonCell<'a>(&'a CellValue);

impl Serialize for JsonCell<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            CellValue::Null => serializer.serialize_none(),
            CellValue::Boolean(value) => serializer.serialize_bool(*value),
            CellValue::Text(text) => serializer.serialize_str(text),
            CellValue::Number(text) => match RawValue::from_string(text.clone()) {
                Ok(number) => number.serialize(serializer),
                Err(_) => serializer.serialize_str(text),
            },
        }
    }
}

/// The columns of a line of a table, in their order.
struct OrderedLine(Vec<(String, CellValue)>);

impl<'de> Deserialize<'de> for OrderedLine {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Columns;
        impl<'de> Visitor<'de> for Columns {
            type Value = OrderedLine;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a row of a table")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<OrderedLine, A::Error> {
                let mut columns = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, Box<RawValue>>()? {
                    columns.push((name, cell(value.get())));
                }
                Ok(OrderedLine(columns))
            }
        }
        deserializer.deserialize_map(Columns)
    }
}

/// A cell as it is written in a table.
fn cell(json: &str) -> CellValue {
    match (json, serde_json::from_str::<String>(json)) {
        ("null", _) => CellValue::Null,
        ("true" | "false", _) => CellValue::Boolean(json == "true"),
        (_, Ok(text)) => CellValue::Text(text),
        _ => CellValue::Number(json.to_owned()),
    }
}

impl PageTable {
    /// Leaves out the rows beyond a number.
    pub(super) fn limit(&mut self, rows: usize) {
        self.rows.truncate(rows);
    }

    /// Reads a recorded table. What is damaged has no rows.
    fn read(storage: &Storage, name: &ResultName) -> Result<Self, StorageError> {
        let (mut files, mut seen) = (Vec::new(), HashSet::new());
        let mut firsts = Vec::new();
        let header = storage.tables().read_recipe(name, |row| {
            let outputs = row.outputs.unwrap_or_default();
            firsts.push(outputs.first().cloned());
            files.extend(outputs.into_iter().filter(|it| seen.insert(it.file.clone())));
        })?;
        let header = header.unwrap_or_default();
        let (mut columns, mut rows) = (header.names.clone(), Vec::new());
        storage.tables().read_lines(name, |line| {
            let Ok(OrderedLine(line)) = serde_json::from_slice(line) else { return };
            let known = columns.len();
            for (name, _) in &line {
                if !columns[..known].contains(name) {
                    columns.push(name.clone());
                }
            }
            let mut cells = vec![CellValue::Null; columns.len()];
            for (name, cell) in line {
                if let Some(at) = columns.iter().position(|it| *it == name) {
                    cells[at] = cell;
                }
            }
            rows.push(PageRow { cells, status: None, call: None, file: None });
        })?;
        for row in &mut rows {
            row.cells.resize(columns.len(), CellValue::Null);
        }
        if rows.len() == firsts.len() {
            for (row, first) in rows.iter_mut().zip(firsts) {
                row.file = first;
            }
        }
        let made = columns.iter().filter(|it| !header.names.contains(it)).cloned();
        let made: Vec<String> = made.collect();
        let title = format!("{} by {}", made.join(", "), header.names.join(", "));
        Ok(Self {
            names: vec![name.short()],
            title,
            columns,
            keys: header.names,
            rows_in_all: rows.len(),
            rows,
            files,
            made_from: BTreeSet::new(),
        })
    }
}

/// The recorded tables among some results, the newest first, with their numbers.
pub(super) fn recorded(
    wanted: &[&(Entry, Record)],
    (storage, history): (&Storage, &History),
    index: &mut PageIndex<'_>,
) -> Result<Vec<PageTable>, StorageError> {
    let mut found = wanted.to_vec();
    found.retain(|(entry, _)| matches!(entry, Entry::Table(_)));
    found.sort_by_key(|(_, record)| std::cmp::Reverse(record.at()));
    let mut tables = Vec::new();
    for (entry, _) in found {
        if let Entry::Table(name) = entry {
            let mut table = PageTable::read(storage, name)?;
            if let Some(task) = history.task_with(&name.short()) {
                table.title = format!("{task}: {}", table.title);
            }
            tables.push(table);
        }
    }
    index.number_tables(tables.iter().flat_map(|table| table.names.iter().cloned()));
    Ok(tables)
}

/// Adds what tables and their rows were made by.
pub(super) fn add_origins(tables: &mut [PageTable], index: &mut PageIndex<'_>) {
    for table in tables {
        for RecipeFile { file, digest } in &table.files {
            table.made_from.extend(index.value(String::new(), file, digest).from);
        }
        for row in &mut table.rows {
            let Some(RecipeFile { file, digest }) = &row.file else { continue };
            row.call = match index.value(String::new(), file, digest).from {
                Some(ValueOrigin::Call(call)) => Some(call),
                _ => None,
            };
        }
    }
}

/// The tables of a task.
pub(super) fn of_task(tables: Vec<TaskTable>, index: &PageIndex<'_>) -> Vec<PageTable> {
    let mut found = Vec::with_capacity(tables.len());
    for TaskTable { title, names, table } in tables {
        let rows = table.rows.into_iter().map(|row| PageRow {
            status: match &row.status {
                RowStatus::Ok => None,
                RowStatus::Failed { reason, .. } => Some(format!("failed: {reason}")),
                status => Some(status.word().to_owned()),
            },
            call: row.origin.and_then(|origin| index.call(&origin.call)),
            cells: row.cells,
            file: None,
        });
        let rows: Vec<PageRow> = rows.collect();
        found.push(PageTable {
            names,
            title,
            columns: table.names,
            keys: table.keys,
            rows_in_all: rows.len(),
            rows,
            files: Vec::new(),
            made_from: BTreeSet::new(),
        });
    }
    found
}
