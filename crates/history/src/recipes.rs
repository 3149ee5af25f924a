//! Tables: their recipes lead to the outputs that they were made from.

use std::collections::{HashMap, HashSet};

use super::{History, Subject};
use ce_model::digest::Digest;
use ce_storage::{Entry, RecipeFile, RecipeHeader, Record, Storage, StorageError};

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
                let origin = |it: &RecipeFile| self.recorded(&it.file, &it.digest);
                let origins_of_row = files.filter_map(origin).map(|subject| self.index(subject));
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
    ///
    /// # Errors
    ///
    /// Fails if it cannot be read.
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
