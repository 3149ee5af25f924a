//! The roles of task inputs: what a file that no call has made is for. A task input, the level of a sweep and a file of a
//! task's repository are all kept as task inputs, and their records say nothing else.
//!
//! Equal contents may have several roles. Which one they have for a call that reads them, the jobs and the tables that rest on it say.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use serde::Serialize;

use super::levels::{CallInput, InputLevels, TableLevels};
use super::{Ancestor, History, Subject};
use ce_model::digest::Digest;
use ce_storage::records::JobRecord;
use ce_storage::{Entry, ExpectedFile, Record, ResultName, Storage, StorageError};

/// What a task input is for, as far as records say. There are several where they do not say which.
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

/// At most so many tables are followed to the calls at their points, the newest.
const FOLLOWED: usize = 64;

/// No role.
const NONE: &InputRoles =
    &InputRoles { inputs: BTreeSet::new(), levels: BTreeSet::new(), text: None };

/// The roles of the task inputs among a file and its ancestors.
#[derive(Clone, Debug, Default)]
pub struct RolesOfInputs {
    /// Those of some contents, whoever reads them.
    of_contents: HashMap<Digest, InputRoles>,
    /// Those that ancestors have for the calls that read them, by their places.
    of_ancestors: HashMap<usize, InputRoles>,
}

impl RolesOfInputs {
    /// The roles of a file; none if they were not looked up.
    pub fn of(&self, file: &ExpectedFile) -> &InputRoles {
        self.of_contents.get(&file.digest).unwrap_or(NONE)
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
    /// Fails if the recipe of a table cannot be read. Of a damaged one the points before the damage are known.
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
            let any = of_contents.get(&read.file.promise.digest).unwrap_or(NONE);
            let levels = levels.get(&read.ancestor);
            // In a job with this table, it is the level. Another job may have the call, too.
            let is_certain = levels.is_some_and(|it| !it.may_be_other);
            let tables = levels.filter(|_| is_certain).map(|it| &*it.tables).unwrap_or_default();
            let inputs = match jobs.get(&read.input.call) {
                Some(jobs) => {
                    let has_table =
                        |job: &JobOfCall<'_>| job.tables.iter().any(|it| tables.contains(it));
                    let jobs = jobs.iter().filter(|job| !has_table(job)).map(|job| job.job);
                    inputs_with(jobs, &read.file.promise.digest)
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

    /// The levels that inputs may be, by the places of the ancestors: those that calls read at points of tables.
    fn levels_of(
        &self,
        storage: &Storage,
        reads: &[InputRead<'_>],
    ) -> Result<HashMap<usize, InputLevels>, StorageError> {
        let mut known: HashMap<usize, InputLevels> = HashMap::new();
        let tables = self.tables_on(reads.iter().map(|read| read.input.call));
        for table in tables.into_iter().take(FOLLOWED) {
            let is_open =
                |it: &&InputRead<'_>| known.get(&it.ancestor).is_none_or(|it| it.may_be_other);
            let open: Vec<&InputRead<'_>> = reads.iter().filter(is_open).collect();
            if open.is_empty() {
                break;
            }
            let Some(mut levels) = TableLevels::read(self, storage, table)? else { continue };
            for read in open {
                let Some(found) = levels.of(read.input) else { continue };
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
        let name = |read: &InputRead<'_>| self.results[read.input.call].0.short();
        let calls: HashMap<String, usize> =
            reads.iter().map(|read| (name(read), read.input.call)).collect();
        let mut jobs: HashMap<usize, Vec<JobOfCall<'_>>> = HashMap::new();
        for (_, record) in &self.results {
            let Record::Job(job) = record else { continue };
            let is_table = |call: &&String| matches!(Entry::of_short(call), Some(Entry::Table(_)));
            let tables: Rc<[&String]> = job.calls.iter().filter(is_table).collect();
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
        // What was made from an ancestor is the last line before it that is indented less.
        let mut made = vec![Some(subject)];
        for (at, ancestor) in ancestors.iter().enumerate() {
            made.truncate(ancestor.depth);
            if let (Some(Some(reader)), Some(file)) = (made.last(), ancestor.subject)
                && let (Record::Call(record), Entry::TaskInput(_)) = (reader.record, file.entry)
                && let Some(call) = self.index(*reader)
            {
                let input = CallInput { call, number: ancestor.number, record };
                reads.push(InputRead { ancestor: at, file, input });
            }
            made.push(ancestor.subject);
        }
        reads
    }

    /// Returns the roles of the contents of the task inputs among a file and its ancestors, whoever reads them.
    fn roles_of_contents(
        &self,
        storage: &Storage,
        subject: Subject<'_>,
        ancestors: &[Ancestor<'_>],
    ) -> Result<HashMap<Digest, InputRoles>, StorageError> {
        let files = ancestors.iter().filter_map(|it| it.subject).chain([subject]);
        let files = files.filter(|it| matches!(it.entry, Entry::TaskInput(_)));
        let mut roles: HashMap<Digest, InputRoles> = HashMap::new();
        for digest in files.map(|file| file.promise.digest) {
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
                let digest = Digest::of(format!("{text}\n").as_bytes());
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
