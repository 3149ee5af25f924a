//! The points of a table, which its recipe lists, and the points that a call is for.
//!
//! A record names no point, since a call may be at many. But a call gets each text as an input.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use rayon::iter::{IntoParallelRefIterator, ParallelExtend, ParallelIterator};
use serde::{Serialize, Serializer};

use crate::input_roles::levels;
use crate::{Ancestor, History, Subject};
use ce_model::digest::Digest;
use ce_storage::records::{CallRecord, Origin};
use ce_storage::{
    Entry, Inputs, RecipeFile, RecipeHeader, RecipeRow, Record, ResultName, Storage, StorageError,
    Survey, Suspension,
};

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
    /// The largest number of a table's source outputs that are listed.
    pub const LISTED: usize = 1000;

    /// Reads the recipes of all tables. Only then are the origins of tables known.
    ///
    /// # Errors
    ///
    /// Fails if a recipe cannot be read. A damaged one leads to the origins before the damage: `ce verify` reports it.
    pub fn with_recipes(mut self, storage: &Storage) -> Result<Self, StorageError> {
        let (mut made_from, mut incomplete) = (HashMap::new(), HashSet::new());
        for (at, (entry, _)) in self.results.iter().enumerate() {
            let Entry::Table(name) = entry else { continue };
            let mut origins = Vec::new();
            let header = storage.tables().read_recipe(name, |row| {
                for it in row.outputs.iter().flatten() {
                    match self.recorded(&it.file, &it.digest) {
                        Some(file) => origins.push(file.result),
                        None => drop(incomplete.insert(at)),
                    }
                }
            })?;
            if header.is_none() {
                incomplete.insert(at);
            }
            origins.sort_unstable();
            origins.dedup();
            made_from.insert(at, origins);
        }
        (self.made_from, self.incomplete) = (made_from, incomplete);
        Ok(self)
    }

    /// Returns the recipe of a table in short; `None` if it is missing or damaged, or this is not a table.
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

    /// Returns the tables made only from wanted calls, directly or by way of other tables. Returns no table if no
    /// [recipes were read](Self::with_recipes).
    pub fn tables_of(&self, is_wanted: impl Fn(&Entry, &Record) -> bool) -> Vec<&Entry> {
        let tables = self.made_from.keys().copied().filter(|table| {
            let (mut stack, mut seen, mut calls) = (vec![*table], HashSet::new(), 0);
            while let Some(at) = stack.pop() {
                let (entry, record) = &self.results[at];
                match record {
                    _ if !seen.insert(at) => {}
                    Record::Table(_) => stack.extend(self.made_from.get(&at).into_iter().flatten()),
                    Record::Call(_) if is_wanted(entry, record) => calls += 1,
                    Record::Call(_) => return false,
                    Record::Job(_) | Record::TaskInput(_) => {}
                }
            }
            calls > 0
        });
        tables.map(|table| &self.results[table].0).collect()
    }

    /// The file that a recipe names, or else the first one with its contents.
    pub fn recorded(&self, file: &str, digest: &Digest) -> Option<Subject<'_>> {
        self.same(file, digest).or_else(|| self.maker(digest, None))
    }
}

/// The points of a table that rest on a call.
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
    /// The largest number of points of a table that are listed.
    pub const POINTS: usize = 3;

    /// Returns the points that rest on a call, for each table that has one: the call has made their outputs, or is among
    /// the origins of these. The newest table comes first. Empty if the subject is not a call.
    ///
    /// # Errors
    ///
    /// Fails if a recipe cannot be read. The points before the damage of a damaged recipe are found.
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
        let made = self.made_with(subject.result);
        let mut points = Vec::new();
        for (entry, _) in tables {
            if let Entry::Table(table) = entry {
                points.extend(self.points_in(storage, table, &made)?);
            }
        }
        Ok(points)
    }

    /// The points of a table with a file of one of these results.
    fn points_in(
        &self,
        storage: &Storage,
        table: &ResultName,
        made: &HashSet<usize>,
    ) -> Result<Option<PointsInTable>, StorageError> {
        let mut found = FoundPoints::default();
        let header = storage.tables().read_recipe(table, |row| {
            found.of += 1;
            let is_made_with = row.outputs.iter().flatten().any(|output| {
                let subject = self.recorded(&output.file, &output.digest);
                subject.is_some_and(|subject| made.contains(&subject.result))
            });
            if is_made_with {
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
    fn made_with(&self, call: usize) -> HashSet<usize> {
        let mut readers: HashMap<usize, Vec<usize>> = HashMap::new();
        for (at, (_, record)) in self.results.iter().enumerate() {
            if matches!(record, Record::Call(_)) {
                for origin in self.origins(at) {
                    readers.entry(origin).or_default().push(at);
                }
            }
        }
        let mut made = HashSet::new();
        let mut stack = vec![call];
        while let Some(at) = stack.pop() {
            if made.insert(at) {
                stack.extend(readers.get(&at).into_iter().flatten());
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

/// The inputs of a call that are short texts, each with the name of the computation's input, or its number if the name
/// is not known any more. In the order of the inputs. Its JSON is an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InputTexts(Vec<(String, String)>);

impl InputTexts {
    /// The names and texts.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, text)| (&**name, &**text))
    }
}

impl FromIterator<(String, String)> for InputTexts {
    fn from_iter<T: IntoIterator<Item = (String, String)>>(texts: T) -> Self {
        Self(texts.into_iter().collect())
    }
}

impl Serialize for InputTexts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

/// The short texts that the call of a file reads; empty if a call has not made the file.
pub fn texts(storage: &Storage, subject: Subject<'_>) -> InputTexts {
    match subject.record {
        Record::Call(_) => texts_of(storage, &[(subject.entry, subject.record)]).remove(0),
        Record::Job(_) | Record::Table(_) | Record::TaskInput(_) => InputTexts::default(),
    }
}

/// The short texts that identify each of these results: the texts that its call reads, or the text of a task input, which
/// is called `text`. Jobs and tables have none.
pub fn texts_of(storage: &Storage, results: &[(&Entry, &Record)]) -> Vec<InputTexts> {
    let inputs = results.iter().map(|(_, record)| match record {
        Record::Call(call) => (may_be_texts(call), matches!(call.origin, Origin::Shared(_))),
        Record::TaskInput(input) => (vec![Some(input.file.digest)], false),
        Record::Job(_) | Record::Table(_) => (Vec::new(), false),
    });
    let inputs: Vec<(Vec<Option<Digest>>, bool)> = inputs.collect();
    let calls = inputs.iter().map(|(inputs, is_shared)| (&**inputs, *is_shared));
    let mut known = TextsOfCalls::read(storage, calls);
    let mut texts = Vec::with_capacity(results.len());
    for ((entry, record), (inputs, _)) in results.iter().zip(&inputs) {
        texts.push(match record {
            Record::TaskInput(input) => {
                let text = known.texts.get(&input.file.digest);
                InputTexts(text.map(|text| ("text".to_owned(), text.clone())).into_iter().collect())
            }
            _ => known.find_texts(storage, &entry.short(), inputs),
        });
    }
    texts
}

/// The short texts of the calls among ancestors that made the rows of a table, which only these texts distinguish, by
/// the places of the calls.
pub fn texts_of_rows(
    storage: &Storage,
    subject: Subject<'_>,
    ancestors: &[Ancestor<'_>],
) -> HashMap<usize, InputTexts> {
    let is_table = |subject: Subject<'_>| matches!(subject.record, Record::Table(_));
    // Whether the result that an ancestor was used for is a table: the last line before it that is indented less.
    let mut made = vec![is_table(subject)];
    let (mut places, mut rows) = (Vec::new(), Vec::new());
    for (at, ancestor) in ancestors.iter().enumerate() {
        made.truncate(ancestor.depth);
        if let (Some(true), Some(file)) = (made.last(), ancestor.subject) {
            places.push(at);
            rows.push((file.entry, file.record));
        }
        made.push(ancestor.subject.is_some_and(is_table));
    }
    places.into_iter().zip(texts_of(storage, &rows)).collect()
}

/// The short texts that each of these suspended calls reads.
pub fn suspended_texts(storage: &Storage, calls: &[Suspension]) -> Vec<InputTexts> {
    let inputs: Vec<Vec<Option<Digest>>> = calls
        .iter()
        .map(|call| {
            call.record
                .inputs
                .iter()
                .map(|value| match Entry::of_file(&value.name) {
                    Some(Entry::TaskInput(_)) => Some(value.value.digest),
                    _ => None,
                })
                .collect()
        })
        .collect();
    let known = TextsOfCalls::read(storage, inputs.iter().map(|inputs| (&**inputs, false)));
    calls
        .iter()
        .zip(&inputs)
        .map(|(call, inputs)| {
            let named = call.record.input_names.iter().zip(inputs);
            InputTexts(
                named
                    .filter_map(|(name, input)| {
                        Some((name.clone(), known.texts.get(input.as_ref()?)?.clone()))
                    })
                    .collect(),
            )
        })
        .collect()
}

/// The inputs of a call that may be texts, each in its place. Known outputs of other calls do not count: they may have
/// the contents of a text by accident.
pub(super) fn may_be_texts(call: &CallRecord) -> Vec<Option<Digest>> {
    let mut texts = Vec::with_capacity(call.inputs.len());
    for (at, input) in call.inputs.iter().enumerate() {
        let maker = call.execution().and_then(|it| Entry::of_file(it.argv.get(at + 1)?));
        let is_made = maker.is_some_and(|entry| !matches!(entry, Entry::TaskInput(_)));
        texts.push((!is_made).then_some(*input));
    }
    texts
}

/// The texts of several calls. Each text, and the names of each version of a computation, are read once.
#[derive(Debug, Default)]
pub(super) struct TextsOfCalls {
    texts: HashMap<Digest, String>,
    /// The names of inputs, by the directory of the version.
    names: HashMap<String, Option<Vec<String>>>,
}

impl TextsOfCalls {
    /// Reads the contents that may be texts of inputs of calls. Each call comes with whether it is from another storage:
    /// its levels may be no task inputs here, and then a table may have their texts.
    pub(super) fn read<'a>(
        storage: &Storage,
        calls: impl Iterator<Item = (&'a [Option<Digest>], bool)>,
    ) -> Self {
        let mut different: HashMap<Digest, bool> = HashMap::new();
        for (inputs, is_shared) in calls {
            for digest in inputs.iter().flatten() {
                *different.entry(*digest).or_default() |= is_shared;
            }
        }
        let inputs = storage.inputs();
        let mut texts: HashMap<Digest, String> = different
            .par_iter()
            .filter_map(|(digest, _)| Some((*digest, inputs.short_text(digest)?)))
            .collect();
        // The contents that may be levels.
        let mut unknown: HashSet<Digest> = HashSet::new();
        for (digest, is_shared) in different {
            if is_shared
                && !texts.contains_key(&digest)
                && !digest.is_directory()
                && digest.size <= Inputs::SHORT_TEXT
                && inputs.lacks(&digest)
            {
                unknown.insert(digest);
            }
        }
        if !unknown.is_empty() {
            let sizes = unknown.iter().map(|it| it.size).collect();
            let tables = Survey::new(storage).tables().unwrap_or_default();
            let levels = tables.par_iter().filter_map(|table| levels(storage, table, &sizes).ok());
            // A pulled recipe is untrusted: any user who can push may have written it.
            let levels = levels
                .flatten_iter()
                .filter(|(_, text, digest)| unknown.contains(digest) && Inputs::is_line(text));
            texts.par_extend(levels.map(|(_, text, digest)| (digest, text)));
        }
        Self { texts, names: HashMap::new() }
    }

    /// The texts that a call reads, by its short name and [what may be texts](may_be_texts).
    pub(super) fn find_texts(
        &mut self,
        storage: &Storage,
        call: &str,
        inputs: &[Option<Digest>],
    ) -> InputTexts {
        if !inputs.iter().flatten().any(|input| self.texts.contains_key(input)) {
            return InputTexts::default();
        }
        let directory = call.rsplit_once('/').map_or(call, |(directory, _)| directory);
        if !self.names.contains_key(directory) {
            let names =
                ResultName::of_short(call).and_then(|call| storage.calls().input_names(&call));
            self.names.insert(directory.to_owned(), names);
        }
        let names = self.names[directory].as_ref().filter(|names| names.len() == inputs.len());
        let mut texts = Vec::new();
        for (at, input) in inputs.iter().enumerate() {
            if let Some(text) = input.as_ref().and_then(|input| self.texts.get(input)) {
                let name = names.map_or_else(|| format!("{at:02}"), |names| names[at].clone());
                texts.push((name, text.clone()));
            }
        }
        InputTexts(texts)
    }
}
