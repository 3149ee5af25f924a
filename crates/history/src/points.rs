//! The points of tables at which a call is: the recipes of tables lead to it, directly or by way of other calls.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use serde::{Serialize, Serializer};

use super::{History, Subject};
use ce_storage::{Entry, RecipeRow, Record, ResultName, Storage, StorageError};

/// The points of a table at which a call is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PointsInTable {
    /// The short name of the table.
    pub table: String,
    /// The task whose newest job has this table, if there is such a job.
    pub task: Option<String>,
    /// The number of these points.
    pub count: usize,
    /// The number of all points of the table.
    pub of: usize,
    /// The names and texts that all these points have.
    pub common: PointTexts,
    /// The first [`History::POINTS`] of the points, with all their texts.
    pub first: Vec<PointTexts>,
}

/// Names and texts of a point. Its JSON is an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PointTexts(pub Vec<(String, String)>);

impl Serialize for PointTexts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, text)| (name, text)))
    }
}

/// The points of a table that were found so far.
#[derive(Default)]
struct FoundPoints {
    count: usize,
    of: usize,
    /// The texts that all of them have, column by column.
    common: Vec<Option<String>>,
    first: Vec<Vec<String>>,
}

impl FoundPoints {
    fn add(&mut self, row: RecipeRow) {
        if self.count == 0 {
            self.common = row.values.iter().cloned().map(Some).collect();
        }
        for (common, text) in self.common.iter_mut().zip(&row.values) {
            common.take_if(|common| common != text);
        }
        self.count += 1;
        if self.first.len() < History::POINTS {
            self.first.push(row.values);
        }
    }
}

impl History {
    /// How many points of a table are listed.
    pub const POINTS: usize = 3;

    /// Returns the points at which a call is, of each table that has one: those whose outputs it has made, or was among
    /// the origins of. The newest table comes first. Empty if the subject is no call.
    ///
    /// # Errors
    ///
    /// Fails if a recipe cannot be read. Of a damaged one the points before the damage are found.
    pub fn points(
        &self,
        storage: &Storage,
        subject: Subject<'_>,
    ) -> Result<Vec<PointsInTable>, StorageError> {
        let is_table = |(entry, _): &&(Entry, Record)| matches!(entry, Entry::Table(_));
        let mut tables: Vec<_> = self.results.iter().filter(is_table).collect();
        if tables.is_empty() || !matches!(subject.entry, Entry::Call(_)) {
            return Ok(Vec::new());
        }
        tables.sort_by_key(|(_, record)| Reverse(record.at()));
        let files = self.made_with(subject.entry);
        let mut points = Vec::new();
        for (entry, _) in tables {
            if let Entry::Table(table) = entry {
                points.extend(self.points_in(storage, table, &files)?);
            }
        }
        Ok(points)
    }

    /// The points of a table with one of these files.
    fn points_in(
        &self,
        storage: &Storage,
        table: &ResultName,
        files: &HashSet<&Entry>,
    ) -> Result<Option<PointsInTable>, StorageError> {
        let mut found = FoundPoints::default();
        let header = storage.tables().read_recipe(table, |row| {
            found.of += 1;
            let made = row.outputs.iter().flatten().any(|output| {
                let subject = self.recorded(&output.file, &output.digest);
                subject.is_some_and(|subject| files.contains(subject.entry))
            });
            if made {
                found.add(row);
            }
        })?;
        let Some(header) = header.filter(|_| found.count > 0) else { return Ok(None) };
        let named = |texts: Vec<Option<String>>| {
            let texts = header.names.iter().cloned().zip(texts);
            PointTexts(texts.filter_map(|(name, text)| Some((name, text?))).collect())
        };
        let first = found.first.into_iter();
        Ok(Some(PointsInTable {
            table: table.short(),
            task: self.task_with(&table.short()),
            count: found.count,
            of: found.of,
            common: named(found.common),
            first: first.map(|texts| named(texts.into_iter().map(Some).collect())).collect(),
        }))
    }

    /// The call, and all calls that were made from it.
    fn made_with<'a>(&'a self, call: &'a Entry) -> HashSet<&'a Entry> {
        let mut readers: HashMap<Entry, Vec<&Entry>> = HashMap::new();
        for (entry, record) in &self.results {
            if matches!(entry, Entry::Call(_)) {
                for origin in self.origins(entry, record) {
                    readers.entry(origin).or_default().push(entry);
                }
            }
        }
        let mut made = HashSet::new();
        let mut stack = vec![call];
        while let Some(entry) = stack.pop() {
            if made.insert(entry) {
                stack.extend(readers.get(entry).into_iter().flatten());
            }
        }
        made
    }

    /// The task whose newest job has this table.
    pub fn task_with(&self, table: &str) -> Option<String> {
        let jobs = self.results.iter().filter_map(|(_, record)| match record {
            Record::Job(job) => Some(job),
            Record::Call(_) | Record::Table(_) | Record::TaskInput(_) => None,
        });
        let with = jobs.filter(|job| job.calls.iter().any(|call| call == table));
        Some(with.max_by_key(|job| job.recorded.as_ref().map(|it| it.at))?.task.to_string())
    }
}
