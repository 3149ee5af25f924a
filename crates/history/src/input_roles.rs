//! The roles of task inputs: the purposes of files that no call has made. A task input, the level of a sweep and a file
//! of a task's repository are all kept as task inputs, and their records say nothing else.
//!
//! Equal contents may have several roles. The jobs and tables that rest on a call tell which role its inputs have.

use std::cell::OnceCell;
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use ce_model::digest::Digest;
use ce_storage::records::{CallRecord, JobRecord};
use ce_storage::{Entry, Record, ResultName, Storage, StorageError};
use serde::Serialize;

use crate::{Ancestor, History, Subject};

/// The roles of a task input, as far as records show. It has several roles if the records do not show the right one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct InputRoles {
    /// The inputs of recorded jobs: their names, and the tasks.
    pub inputs: BTreeSet<(String, String)>,
    /// The names and texts of points of tables, as calls get them.
    pub levels: BTreeSet<(String, String)>,
    /// The contents, if they are a short text.
    pub text: Option<String>,
}

/// A job that has a call.
struct JobOfCall<'a> {
    job: &'a JobRecord,
    /// The short names of its tables.
    tables: Rc<[&'a String]>,
}

/// The maximum number of tables, newest first, that are followed to the calls at their points.
const FOLLOWED: usize = 64;

/// No role.
const NONE: &InputRoles =
    &InputRoles { inputs: BTreeSet::new(), levels: BTreeSet::new(), text: None };

/// The roles of the task inputs among a file and its ancestors.
#[derive(Clone, Debug, Default)]
pub struct RolesOfInputs {
    /// The roles of some contents, regardless of their readers.
    of_contents: HashMap<Digest, InputRoles>,
    /// The roles of ancestors for the calls that read them, by the places of the ancestors.
    of_ancestors: HashMap<usize, InputRoles>,
}

impl RolesOfInputs {
    /// The roles of some contents; empty if they were not looked up.
    pub fn find(&self, digest: &Digest) -> &InputRoles {
        self.of_contents.get(digest).unwrap_or(NONE)
    }

    /// The roles of the ancestor at a place.
    pub fn of_ancestor(&self, at: usize) -> &InputRoles {
        self.of_ancestors.get(&at).unwrap_or(NONE)
    }
}

/// A task input among ancestors, and the call that reads it.
struct InputRead<'a> {
    ancestor: usize,
    file: Subject<'a>,
    input: CallInput<'a>,
}

impl History {
    /// Returns the roles of the task inputs among a file and its ancestors. Tables in tables are followed if [recipes were
    /// read](Self::with_recipes).
    ///
    /// # Errors
    ///
    /// Fails if the recipe of a table cannot be read. The points before the damage of a damaged recipe are known.
    pub fn roles(
        &self,
        storage: &Storage,
        subject: Subject<'_>,
        ancestors: &[Ancestor<'_>],
    ) -> Result<RolesOfInputs, StorageError> {
        let of_contents = self.roles_of_contents(storage, subject, ancestors)?;
        let reads = self.reads(subject, ancestors);
        let levels = self.levels_of(storage, &reads)?;
        let jobs = self.jobs_of(&reads);
        let mut of_ancestors = HashMap::new();
        for read in reads {
            let any = of_contents.get(read.file.digest).unwrap_or(NONE);
            let levels = levels.get(&read.ancestor);
            // In a job with this table, it is the level. Another job may have the call, too.
            let is_certain = levels.is_some_and(|it| !it.may_be_other);
            let tables = levels.filter(|_| is_certain).map(|it| &*it.tables).unwrap_or_default();
            let inputs = match jobs.get(&read.input.call) {
                Some(jobs) => {
                    let jobs = jobs.iter();
                    let jobs = jobs.filter(|job| !job.tables.iter().any(|it| tables.contains(it)));
                    inputs_with(jobs.map(|job| job.job), read.file.digest)
                }
                None if is_certain => BTreeSet::new(),
                None => any.inputs.clone(),
            };
            let levels = match levels {
                Some(InputLevels { levels, .. }) => levels.clone(),
                None if inputs.is_empty() => any.levels.clone(),
                None => BTreeSet::new(),
            };
            of_ancestors
                .insert(read.ancestor, InputRoles { inputs, levels, text: any.text.clone() });
        }
        Ok(RolesOfInputs { of_contents, of_ancestors })
    }

    /// The levels that inputs may be, by the places of the ancestors: the levels that calls read at points of tables.
    fn levels_of(
        &self,
        storage: &Storage,
        reads: &[InputRead<'_>],
    ) -> Result<HashMap<usize, InputLevels>, StorageError> {
        let mut known: HashMap<usize, InputLevels> = HashMap::new();
        let tables = self.tables_on(reads.iter().map(|read| read.input.call));
        for table in tables.into_iter().take(FOLLOWED) {
            let open: Vec<&InputRead<'_>> = reads
                .iter()
                .filter(|it| known.get(&it.ancestor).is_none_or(|it| it.may_be_other))
                .collect();
            if open.is_empty() {
                break;
            }
            let Some(mut levels) = TableLevels::read(self, storage, table)? else { continue };
            for read in open {
                let Some(found) = levels.find_levels(read.input) else { continue };
                let known = known.entry(read.ancestor).or_default();
                // A table in a table may leave open what that one says, and the other way round.
                if !found.may_be_other {
                    known.levels.clear();
                }
                known.may_be_other = found.may_be_other;
                known.levels.extend(found.levels);
                known.tables.push(table.short());
            }
        }
        Ok(known)
    }

    /// The jobs that have the calls of some inputs.
    fn jobs_of(&self, reads: &[InputRead<'_>]) -> HashMap<usize, Vec<JobOfCall<'_>>> {
        let calls = reads.iter().map(|read| read.input.call);
        let calls: HashMap<String, usize> =
            calls.map(|call| (self.results[call].0.short(), call)).collect();
        let mut jobs: HashMap<usize, Vec<JobOfCall<'_>>> = HashMap::new();
        for (_, record) in &self.results {
            let Record::Job(job) = record else { continue };
            let tables: Rc<[&String]> = job
                .calls
                .iter()
                .filter(|call| matches!(Entry::of_short(call), Some(Entry::Table(_))))
                .collect();
            for call in job.calls.iter().filter_map(|call| calls.get(call)) {
                let tables = Rc::clone(&tables);
                jobs.entry(*call).or_default().push(JobOfCall { job, tables });
            }
        }
        jobs
    }

    /// The task inputs among ancestors that calls read.
    fn reads<'a>(&'a self, subject: Subject<'a>, ancestors: &[Ancestor<'a>]) -> Vec<InputRead<'a>> {
        let mut reads = Vec::new();
        // The result that was made from an ancestor is the last line before it that is indented less.
        let mut made = vec![Some(subject)];
        for (at, ancestor) in ancestors.iter().enumerate() {
            made.truncate(ancestor.depth);
            if let (Some(Some(reader)), Some(file)) = (made.last(), ancestor.subject)
                && let (Record::Call(record), Entry::TaskInput(_)) = (reader.record, file.entry)
            {
                let input = CallInput { call: reader.result, number: ancestor.number, record };
                reads.push(InputRead { ancestor: at, file, input });
            }
            made.push(ancestor.subject);
        }
        reads
    }

    /// Returns the roles of the contents of the task inputs among a file and its ancestors, regardless of their readers.
    fn roles_of_contents(
        &self,
        storage: &Storage,
        subject: Subject<'_>,
        ancestors: &[Ancestor<'_>],
    ) -> Result<HashMap<Digest, InputRoles>, StorageError> {
        let files = ancestors.iter().filter_map(|it| it.subject).chain([subject]);
        let files = files.filter(|it| matches!(it.entry, Entry::TaskInput(_)));
        let mut roles: HashMap<Digest, InputRoles> = HashMap::new();
        for digest in files.map(|file| *file.digest) {
            roles.entry(digest).or_insert_with(|| InputRoles {
                text: storage.inputs().short_text(&digest),
                ..InputRoles::default()
            });
        }
        if roles.is_empty() {
            return Ok(roles);
        }
        let sizes = roles.keys().map(|digest| digest.size).collect();
        for (entry, record) in &self.results {
            match (entry, record) {
                (_, Record::Job(job)) => {
                    for input in &job.inputs {
                        if let Some(roles) = roles.get_mut(&input.digest) {
                            roles.inputs.insert((input.name.to_string(), job.task.to_string()));
                        }
                    }
                }
                (Entry::Table(table), _) => {
                    for (name, text, digest) in levels(storage, table, &sizes)? {
                        if let Some(roles) = roles.get_mut(&digest) {
                            roles.levels.insert((name, text));
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(roles)
    }
}

/// The inputs of jobs with some contents: their names, and the tasks.
fn inputs_with<'a>(
    jobs: impl Iterator<Item = &'a JobRecord>,
    digest: &Digest,
) -> BTreeSet<(String, String)> {
    let inputs = jobs.flat_map(|job| job.inputs.iter().map(move |input| (job, input)));
    let inputs = inputs.filter(|(_, input)| input.digest == *digest);
    inputs.map(|(job, input)| (input.name.to_string(), job.task.to_string())).collect()
}

/// Returns the different texts of a table's points whose contents have one of these sizes, each with its name and the digest of these
/// contents.
pub(super) fn levels(
    storage: &Storage,
    table: &ResultName,
    sizes: &HashSet<u64>,
) -> Result<Vec<(String, String, Digest)>, StorageError> {
    // A text is hashed once for each column, and only if it has the size of wanted contents.
    let mut seen: Vec<HashMap<String, Digest>> = Vec::new();
    let header = storage.tables().read_recipe(table, |row| {
        seen.resize_with(row.values.len().max(seen.len()), HashMap::new);
        for (seen, text) in seen.iter_mut().zip(row.values) {
            if sizes.contains(&(text.len() as u64 + 1)) && !seen.contains_key(&text) {
                let digest = Digest::hash_bytes(format!("{text}\n").as_bytes());
                seen.insert(text, digest);
            }
        }
    })?;
    let names = header.map(|header| header.names).unwrap_or_default();
    let levels = names.into_iter().zip(seen).flat_map(|(name, texts)| {
        texts.into_iter().map(move |(text, digest)| (name.clone(), text, digest))
    });
    Ok(levels.collect())
}

/// The texts of a name at the points of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LevelSet {
    None,
    /// All calls have this text, by its number.
    One(u32),
    Many,
}

/// An input of a call, which is the result with an index.
#[derive(Clone, Copy, Debug)]
struct CallInput<'a> {
    pub(super) call: usize,
    pub(super) number: usize,
    pub(super) record: &'a CallRecord,
}

/// The levels that an input may be, by their names and texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct InputLevels {
    pub(super) levels: BTreeSet<(String, String)>,
    /// It may be no level.
    may_be_other: bool,
    /// The short names of the tables that say so.
    pub(super) tables: Vec<String>,
}

/// The origins that an input may have in all calls of a computation: the numbers of names, or the same contents.
struct SameInput {
    names: Vec<usize>,
    is_constant: bool,
}

/// The points of a table, as the calls that these rest on see them: the names of the levels that calls read.
///
/// A level is a text, and several names may have the same one. A record does not say which name an input had, since calls are shared by
/// their contents. But the recipe of a table leads to the calls at each point, and all calls of a computation read the same name as the
/// same input, unless it is called at several places: so a name that fits all of them is the one.
struct TableLevels<'a> {
    history: &'a History,
    names: Vec<String>,
    /// The different texts of each name.
    texts: Vec<Vec<String>>,
    /// For each result that points rest on, their levels for each name.
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
            let levels: Vec<LevelSet> = numbers
                .iter_mut()
                .zip(row.values)
                .map(|(numbers, text)| {
                    let next = numbers.len() as u32;
                    LevelSet::One(*numbers.entry(text).or_insert(next))
                })
                .collect();
            for output in row.outputs.iter().flatten() {
                let subject = history.recorded(&output.file, &output.digest);
                if let Some(subject) = subject {
                    join(&mut points, subject.result, &levels);
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
    pub(super) fn find_levels(&mut self, input: CallInput<'a>) -> Option<InputLevels> {
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

    /// Returns the origins that an input may have in all calls of a computation.
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

/// Returns the name and the tree of the computation, which distinguish its calls from others.
fn computation(record: &CallRecord) -> (&str, &str) {
    (record.computation.as_str(), record.tree.full())
}

/// The numbers of the texts of each name, by the contents that calls get of them.
fn by_contents(texts: &[Vec<String>]) -> Vec<HashMap<Digest, u32>> {
    texts
        .iter()
        .map(|texts| {
            texts
                .iter()
                .map(|text| Digest::hash_bytes(format!("{text}\n").as_bytes()))
                .zip(0..)
                .collect()
        })
        .collect()
}

/// Whether a level with this text has these contents.
fn is_level(text: &str, digest: &Digest) -> bool {
    digest.size == text.len() as u64 + 1
        && Digest::hash_bytes(format!("{text}\n").as_bytes()) == *digest
}

/// Adds the levels of points to a result's levels. Returns whether the result's levels changed.
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
    fn made_from_results(&self, at: usize) -> Vec<usize> {
        let of_table = self.made_from.get(&at).into_iter().flatten().copied();
        let origins = match &self.results[at].1 {
            Record::Call(_) => self.origins(at),
            Record::Job(_) | Record::Table(_) | Record::TaskInput(_) => Vec::new(),
        };
        origins
            .into_iter()
            .filter(|at| !matches!(self.results[*at].1, Record::TaskInput(_)))
            .chain(of_table)
            .collect()
    }

    /// The tables with points that rest on one of these results, the newest first.
    fn tables_on(&self, results: impl Iterator<Item = usize>) -> Vec<&ResultName> {
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
