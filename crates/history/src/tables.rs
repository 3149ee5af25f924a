//! Tables: what their recipes lead to, and the points at which a call is.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use ce_model::digest::Digest;
use ce_storage::{
    Entry, RecipeFile, RecipeHeader, RecipeRow, Record, ResultName, Storage, StorageError,
};
use serde::{Serialize, Serializer};

use crate::{History, Subject};

/// The recipe of a table, in short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableSummary {
    /// The rules of the table.
    pub header: RecipeHeader,
    /// The number of its points.
    pub points: usize,
    /// The number of points that failed.
    pub failed: usize,
    /// The number of different outputs that it was made from.
    pub files: usize,
    /// The first [`History::LISTED`] of them.
    pub first: Vec<RecipeFile>,
}

impl History {
    /// How many of the outputs that a table was made from are listed.
    pub const LISTED: usize = 1000;

    /// Reads the recipes of all tables. Only then are the origins of tables known.
    ///
    /// # Errors
    ///
    /// Fails if a recipe cannot be read. A damaged one leads to the origins before the damage: `ce verify` reports it.
    pub fn with_recipes(mut self, storage: &Storage) -> Result<Self, StorageError> {
        let mut made_from = HashMap::new();
        for (at, (entry, _)) in self.results.iter().enumerate() {
            let Entry::Table(name) = entry else { continue };
            let mut origins = Vec::new();
            storage.tables().read_recipe(name, |row| {
                let files = row.outputs.iter().flatten();
                let origins_of_row = files
                    .filter_map(|it| self.recorded(&it.file, &it.digest))
                    .map(|subject| self.index(subject));
                origins.extend(origins_of_row.flatten());
            })?;
            origins.sort_unstable();
            origins.dedup();
            made_from.insert(at, origins);
        }
        self.made_from = made_from;
        Ok(self)
    }

    /// Returns the recipe of a table in short; `None` if it is missing or damaged, or this is no table.
    pub fn summary(
        &self,
        storage: &Storage,
        table: &Entry,
    ) -> Result<Option<TableSummary>, StorageError> {
        let Entry::Table(name) = table else { return Ok(None) };
        let (mut points, mut failed) = (0, 0);
        let (mut first, mut seen) = (Vec::new(), HashSet::new());
        let header = storage.tables().read_recipe(name, |row| {
            points += 1;
            failed += usize::from(row.outputs.is_none());
            for output in row.outputs.into_iter().flatten() {
                if seen.insert(output.file.clone()) && first.len() < Self::LISTED {
                    first.push(output);
                }
            }
        })?;
        let files = seen.len();
        Ok(header.map(|header| TableSummary { header, points, failed, files, first }))
    }

    /// Returns the tables that were made from calls, all of which are wanted: directly, or by way of other tables. None if
    /// no [recipes were read](Self::with_recipes).
    pub fn tables_of(&self, is_wanted: impl Fn(&Record) -> bool) -> Vec<&Entry> {
        let is_made_of_wanted = |table: usize| {
            let (mut stack, mut seen, mut calls) = (vec![table], HashSet::new(), 0);
            while let Some(at) = stack.pop() {
                match &self.results[at].1 {
                    _ if !seen.insert(at) => {}
                    Record::Table(_) => stack.extend(self.made_from.get(&at).into_iter().flatten()),
                    record @ Record::Call(_) if is_wanted(record) => calls += 1,
                    Record::Call(_) => return false,
                    Record::Job(_) | Record::TaskInput(_) => {}
                }
            }
            calls > 0
        };
        let tables = self.made_from.keys().copied().filter(|table| is_made_of_wanted(*table));
        tables.map(|table| &self.results[table].0).collect()
    }

    /// The file that a recipe names, or else the first one with its contents.
    pub fn recorded(&self, file: &str, digest: &Digest) -> Option<Subject<'_>> {
        self.same(file, digest).or_else(|| self.maker(digest, None))
    }

    /// The index of the result of a file.
    pub(super) fn index(&self, subject: Subject<'_>) -> Option<usize> {
        Some(self.files.get(&subject.promise.name)?.result)
    }
}

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
        let mut tables: Vec<_> =
            self.results.iter().filter(|(entry, _)| matches!(entry, Entry::Table(_))).collect();
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
