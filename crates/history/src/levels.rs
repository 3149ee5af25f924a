//! The names of the levels that calls read.
//!
//! A level is a text, and several names may have the same one. A record does not say which name an input had, since calls are shared by their
//! contents. But the recipe of a table leads to the calls at each point, and all calls of a computation read the same name as
//! the same input, unless it is called at several places: so a name that fits all of them is the one.

use std::cell::OnceCell;
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use super::History;
use ce_model::digest::Digest;
use ce_storage::records::CallRecord;
use ce_storage::{Entry, Record, ResultName, Storage, StorageError};

/// The texts that the points have for a name at which a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LevelSet {
    None,
    /// All have this one, by its number.
    One(u32),
    Many,
}

/// An input of a call, which is the result with an index.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallInput<'a> {
    pub(super) call: usize,
    pub(super) number: usize,
    pub(super) record: &'a CallRecord,
}

/// What is known of an input that may be a level: the names and texts that it may be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct InputLevels {
    pub(super) levels: BTreeSet<(String, String)>,
    /// It may be no level.
    pub(super) may_be_other: bool,
    /// The short names of the tables that say so.
    pub(super) tables: Vec<String>,
}

/// What all calls of a computation may have got as an input: the numbers of names, or the same contents.
struct SameInput {
    names: Vec<usize>,
    is_constant: bool,
}

/// The points of a table, as the calls that these rest on see them.
pub(super) struct TableLevels<'a> {
    history: &'a History,
    names: Vec<String>,
    /// The different texts of each name.
    texts: Vec<Vec<String>>,
    /// For each result that points rest on, what they have for each name.
    points: HashMap<usize, Box<[LevelSet]>>,
    /// The calls among these, by computation.
    calls: HashMap<(&'a str, &'a str), Vec<usize>>,
    /// Their inputs that were asked for.
    inputs: HashMap<((&'a str, &'a str), usize), SameInput>,
    /// The texts of each name by the contents that calls get, once they were asked for.
    by_contents: OnceCell<Vec<HashMap<Digest, u32>>>,
}

impl<'a> TableLevels<'a> {
    /// Reads the recipe of a table, and follows it to all calls. `None` if it is missing or damaged.
    pub(super) fn read(
        history: &'a History,
        storage: &Storage,
        table: &ResultName,
    ) -> Result<Option<Self>, StorageError> {
        let mut numbers: Vec<HashMap<String, u32>> = Vec::new();
        let mut points: HashMap<usize, Box<[LevelSet]>> = HashMap::new();
        let header = storage.tables().read_recipe(table, |row| {
            numbers.resize_with(row.values.len().max(numbers.len()), HashMap::new);
            let level = |(numbers, text): (&mut HashMap<String, u32>, String)| {
                let next = numbers.len() as u32;
                LevelSet::One(*numbers.entry(text).or_insert(next))
            };
            let levels: Vec<LevelSet> = numbers.iter_mut().zip(row.values).map(level).collect();
            for output in row.outputs.iter().flatten() {
                let subject = history.recorded(&output.file, &output.digest);
                if let Some(at) = subject.and_then(|subject| history.index(subject)) {
                    join(&mut points, at, &levels);
                }
            }
        })?;
        let Some(header) = header.filter(|it| it.names.len() == numbers.len()) else {
            return Ok(None);
        };
        let texts = numbers.into_iter().map(|numbers| {
            let mut texts = vec![String::new(); numbers.len()];
            numbers.into_iter().for_each(|(text, number)| texts[number as usize] = text);
            texts
        });
        let texts = texts.collect();
        let mut origins: HashMap<usize, Vec<usize>> = HashMap::new();
        let mut waiting: Vec<usize> = points.keys().copied().collect();
        while let Some(at) = waiting.pop() {
            let levels = points[&at].clone();
            for origin in origins.entry(at).or_insert_with(|| history.made_from_results(at)) {
                if join(&mut points, *origin, &levels) {
                    waiting.push(*origin);
                }
            }
        }
        let mut calls: HashMap<_, Vec<usize>> = HashMap::new();
        for at in points.keys() {
            if let Record::Call(record) = &history.results[*at].1 {
                calls.entry(computation(record)).or_default().push(*at);
            }
        }
        let (names, inputs, by_contents) = (header.names, HashMap::new(), OnceCell::new());
        Ok(Some(Self { history, names, texts, points, calls, inputs, by_contents }))
    }

    /// Returns which levels an input may be; `None` if no point rests on its call.
    pub(super) fn of(&mut self, input: CallInput<'a>) -> Option<InputLevels> {
        let at_points = self.points.get(&input.call)?;
        let wanted = input.record.inputs.get(input.number)?;
        let key = (computation(input.record), input.number);
        if !self.inputs.contains_key(&key) {
            self.inputs.insert(key, self.names_of(&self.calls[&key.0], input.number));
        }
        let SameInput { names, is_constant } = &self.inputs[&key];
        let named = |name: usize, text: u32| {
            (self.names[name].clone(), self.texts[name][text as usize].clone())
        };
        let certain = names.iter().filter_map(|name| match at_points[*name] {
            LevelSet::One(text) => Some(named(*name, text)),
            LevelSet::None | LevelSet::Many => None,
        });
        let mut levels: BTreeSet<_> = certain.collect();
        if levels.is_empty() && !is_constant {
            // The computation is called at several places, which read different names.
            let texts = self.by_contents.get_or_init(|| by_contents(&self.texts));
            let found = texts
                .iter()
                .enumerate()
                .filter_map(|(name, texts)| texts.get(wanted).map(|text| named(name, *text)));
            levels.extend(found);
        }
        let may_be_other = *is_constant || names.is_empty();
        Some(InputLevels { levels, may_be_other, tables: Vec::new() })
    }

    /// What calls of a computation may all have got as an input.
    fn names_of(&self, calls: &[usize], number: usize) -> SameInput {
        let mut digests = calls.iter().filter_map(|call| self.digest(*call, number));
        let first = digests.next();
        SameInput {
            is_constant: digests.all(|digest| Some(digest) == first),
            names: (0..self.names.len()).filter(|it| self.fits_all(*it, calls, number)).collect(),
        }
    }

    /// Whether each of these calls may have got its input from a name.
    fn fits_all(&self, name: usize, calls: &[usize], number: usize) -> bool {
        let mut known: HashMap<u32, &Digest> = HashMap::new();
        calls.iter().all(|call| {
            let level = self.points.get(call).and_then(|levels| levels.get(name));
            let (Some(LevelSet::One(text)), Some(digest)) = (level, self.digest(*call, number))
            else {
                return false;
            };
            match known.get(text) {
                Some(known) => *known == digest,
                None => {
                    known.insert(*text, digest);
                    is_level(&self.texts[name][*text as usize], digest)
                }
            }
        })
    }

    /// The contents of an input of a call.
    fn digest(&self, call: usize, number: usize) -> Option<&'a Digest> {
        match &self.history.results[call].1 {
            Record::Call(record) => record.inputs.get(number),
            Record::Job(_) | Record::Table(_) | Record::TaskInput(_) => None,
        }
    }
}

/// What tells the calls of a computation from others.
fn computation(record: &CallRecord) -> (&str, &str) {
    (record.computation.as_str(), record.tree.full())
}

/// The numbers of the texts of each name, by the contents that calls get of them.
fn by_contents(texts: &[Vec<String>]) -> Vec<HashMap<Digest, u32>> {
    let contents = |text: &String| Digest::of(format!("{text}\n").as_bytes());
    let of_name = |texts: &Vec<String>| texts.iter().map(contents).zip(0..).collect();
    texts.iter().map(of_name).collect()
}

/// Whether contents are those of a level with this text.
fn is_level(text: &str, digest: &Digest) -> bool {
    let is_equal = || Digest::of(format!("{text}\n").as_bytes()) == *digest;
    digest.size == text.len() as u64 + 1 && is_equal()
}

/// Adds the levels of points to those of a result. Returns whether these are others now.
fn join(points: &mut HashMap<usize, Box<[LevelSet]>>, at: usize, levels: &[LevelSet]) -> bool {
    let known = points.entry(at).or_insert_with(|| vec![LevelSet::None; levels.len()].into());
    let mut has_changed = false;
    for (known, level) in known.iter_mut().zip(levels) {
        let joined = match (*known, *level) {
            (LevelSet::None, other) | (other, LevelSet::None) => other,
            (one, other) if one == other => one,
            _ => LevelSet::Many,
        };
        has_changed |= joined != *known;
        *known = joined;
    }
    has_changed
}

impl History {
    /// The indices of the calls and tables that a result was made from directly.
    pub(super) fn made_from_results(&self, at: usize) -> Vec<usize> {
        let (entry, record) = &self.results[at];
        let of_table = self.made_from.get(&at).into_iter().flatten().copied();
        let origins = match record {
            Record::Call(_) => self.origins(entry, record),
            Record::Job(_) | Record::Table(_) | Record::TaskInput(_) => Vec::new(),
        };
        let index = |entry: &Entry| Some(self.files.get(&entry.file(0))?.result);
        let is_made = |at: &usize| !matches!(self.results[*at].1, Record::TaskInput(_));
        origins.iter().filter_map(index).filter(is_made).chain(of_table).collect()
    }

    /// The tables with points that rest on one of these results, the newest first.
    pub(super) fn tables_on(&self, results: impl Iterator<Item = usize>) -> Vec<&ResultName> {
        let mut readers: HashMap<usize, Vec<usize>> = HashMap::new();
        for at in 0..self.results.len() {
            for origin in self.made_from_results(at) {
                readers.entry(origin).or_default().push(at);
            }
        }
        let mut seen = vec![false; self.results.len()];
        let mut stack: Vec<usize> = results.collect();
        let mut tables = Vec::new();
        while let Some(at) = stack.pop() {
            if std::mem::replace(&mut seen[at], true) {
                continue;
            }
            if let (Entry::Table(name), record) = &self.results[at] {
                tables.push((record.at(), at, name));
            }
            stack.extend(readers.get(&at).into_iter().flatten());
        }
        tables.sort_by_key(|(recorded, at, _)| Reverse((*recorded, *at)));
        tables.into_iter().map(|(_, _, name)| name).collect()
    }
}
