//! A package of results: their files under readable names, for people without the storage.
//!
//! Every name is made of checked parts, so it does not lead out of the package: see [`file_name`]. Sources are named by
//! the places of records, never by what records say. The whole package appears at once, or not at all.
//!
//! `Definitions` are the names that the workflow of a job defines: of its outputs, and of the calls and tables that
//! they were made from. Records do not have them. The workflow is read from the job's commit, in the repository of the
//! current directory. Which call a node made is found by following records from the outputs on, beside the workflow.

mod attribution;
mod entities;
mod licence;
mod run_crate;
mod write;

use std::collections::hash_map::Entry as Place;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Mutex;

use self::entities::{INPUTS, SHEET_FILES, input_path};
use self::run_crate::METADATA;
use crate::call_log::{FirstPublished, OriginalExecution, PublishedExecution};
use crate::output_directory::{OutputToWrite, OutputsError};
use crate::{Ancestor, History, HistoryError, Subject};
use ce_git::{Code, TreeFileKind, Trees};
use ce_model::digest::{Digest, ObjectId};
use ce_model::name::{MemberPath, file_name, stem};
use ce_model::shared_text::SharedText;
use ce_model::sweep::{SWEEP_OUTPUTS, point_path};
use ce_model::task::{Node, NodeId, OutputName, Task, WORKFLOW_TEXT, origins};
use ce_model::text_file;
use ce_storage::records::JobRecord;
use ce_storage::{
    Entry, Locator, RecipeRow, Record, ResultName, Storage, StorageError, split_member,
};
use ce_task::load;
use jiff::Timestamp;
use serde::Serialize;

pub use self::attribution::{Attribution, AttributionError, AttributionFault, Contributor};
pub use self::licence::{LicenceFault, LicenceName};
pub use self::run_crate::{CrateError, CrateFacts, RunCrate, crate_texts};
pub use self::write::{
    BadFile, Citation, Package, PackageError, PackageKind, PackagedValue, job_of, vacant,
};

/// The file of a package that tells the origin of each other file.
pub const README: &str = "README.md";

/// The directory of the points of a sweep.
const POINTS: &str = "points";

/// The directory of the sources of a job's outputs.
const INTERMEDIATE: &str = "intermediate";

/// A file or directory of a package.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PackagedFile {
    /// Its path in the package.
    pub path: String,
    /// Its name in the storage.
    pub file: String,
    pub contents: Digest,
    /// The name that the workflow defines for its maker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
    pub made: FileMaker,
    /// The recorded file that holds it: itself, or the directory that it is a member of.
    #[serde(skip)]
    holder: String,
}

/// A file that a package needs and that is not here.
#[derive(Clone, Copy, Debug)]
pub struct AbsentFile<'a> {
    /// The recorded file.
    pub file: Subject<'a>,
    /// The value that it is: of an output of a job, that which the job was given, which may be here; otherwise itself.
    pub value: Subject<'a>,
}

/// A result in a package.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PackagedResult {
    /// Its short name in the storage.
    pub name: String,
    /// The name of the task or the computation, unless it is a table or a task input.
    pub title: Option<String>,
    /// The commit of the task or the computation.
    pub commit: Option<String>,
    /// The names of the inputs of a job, and their digests.
    pub inputs: Vec<(String, Digest)>,
}

/// Collects the files of a package.
pub struct Packer<'a> {
    storage: &'a Storage,
    history: &'a History,
    published: &'a FirstPublished<'a>,
    names: OutputNames<'a>,
    definitions: Definitions,
    places: Places,
    files: Vec<PackagedFile>,
    results: Vec<PackagedResult>,
    bad: Vec<BadFile>,
}

impl<'a> Packer<'a> {
    /// A package without any file. Names that the storage does not know are looked for in the repository
    /// of the current directory.
    pub fn new(
        storage: &'a Storage,
        history: &'a History,
        published: &'a FirstPublished<'a>,
    ) -> Self {
        let names = OutputNames::new(storage);
        let (definitions, places) = (Definitions::default(), Places::default());
        let (files, results, bad) = (Vec::new(), Vec::new(), Vec::new());
        Self { storage, history, published, names, definitions, places, files, results, bad }
    }

    /// Returns the result that a user names: by any file of it, or by its short name.
    ///
    /// # Errors
    ///
    /// Fails if no result has this name.
    pub fn find(&self, name: &str) -> Result<Subject<'a>, HistoryError> {
        let short = Locator::new(self.storage).find(Path::new(name), |name| {
            let result = ResultName::of_short(name)?;
            let entry = match name.get(..2)? {
                "t_" => Entry::Job(result),
                _ => Entry::of_short(name)?,
            };
            self.history.subject(&entry.file(0)).filter(|it| *it.entry == entry)
        });
        short.map_or_else(|| self.history.find(self.storage, name), Ok)
    }

    /// Adds the inputs of a job below the directory `inputs` of a crate, if `wanted`. What else a crate has keeps its path.
    pub fn add_inputs(&mut self, job: Subject<'a>, wanted: bool) -> Result<(), StorageError> {
        for path in [METADATA, WORKFLOW_TEXT, INPUTS, SHEET_FILES] {
            self.places.reserve(path);
        }
        let Record::Job(record) = job.record else { return Ok(()) };
        let inputs = record.inputs.iter().map(|it| (input_path(it.name.as_str()), it.digest));
        // The cell of a sheet has the digits of the name of its file.
        let named = record.named_files().map(|it| (join(SHEET_FILES, &it.sha1.full()), it));
        for (path, contents) in inputs.chain(named).filter(|_| wanted) {
            let Some(subject) = self.history.maker(&contents, None) else {
                let name = format!("{path} of the job");
                self.bad.push(BadFile::new(name, "it is not in the storage".to_owned()));
                continue;
            };
            let (file, holder) = (subject.file(), subject.file());
            let made = FileMaker::find(self.storage, self.history, self.published, subject)?;
            self.files.push(PackagedFile { path, file, contents, definition: None, made, holder });
        }
        Ok(())
    }

    /// Adds a result below a directory of the package, which may be empty; with `all`, also the outputs of all
    /// calls of a job.
    pub fn add(&mut self, dir: &str, result: Subject<'a>, all: bool) -> Result<(), StorageError> {
        self.results.push(summary(result));
        self.places.reserve(&join(dir, README));
        self.definitions = match result.record {
            Record::Job(job) => Definitions::from_job(self.storage, self.history, job)?,
            _ => Definitions::default(),
        };
        let Record::Job(job) = result.record else {
            for (number, file) in result.entry.expected_files(result.record).iter().enumerate() {
                if let Some(subject) = self.history.subject(&file.name) {
                    let name = self.names.find(subject, number);
                    self.push(dir, number, &encoded_name(&name), subject, None)?;
                }
            }
            return match (result.entry, result.record) {
                (Entry::Table(name), Record::Table(table)) if table.outputs.len() == 1 => {
                    self.points(&join(dir, POINTS), name)
                }
                _ => Ok(()),
            };
        };
        self.places.reserve(&join(dir, INTERMEDIATE));
        let tables = self.tables(job);
        let mut points = Vec::with_capacity(tables.len());
        for table in &tables {
            let made = self.history.subject(&Entry::Table(table.clone()).file(0));
            let definition = made.and_then(|made| self.definitions.result(made));
            let name = titled(definition, POINTS);
            points.push(self.places.take(join(dir, &file_name(&name)), |turn| {
                join(dir, &file_name(&numbered(&name, turn + 1)))
            }));
        }
        for number in 0..job.outputs.len() {
            self.output(dir, result.entry, job, number)?;
        }
        for (dir, table) in points.iter().zip(&tables) {
            self.points(dir, table)?;
        }
        if all { self.calls(&join(dir, INTERMEDIATE), job) } else { Ok(()) }
    }

    /// Adds the outputs of a job, and nothing that leads to them.
    pub fn add_outputs(&mut self, entry: &Entry, job: &JobRecord) -> Result<(), StorageError> {
        self.definitions = Definitions::of_outputs(job);
        (0..job.outputs.len()).try_for_each(|number| self.output("", entry, job, number))
    }

    /// Returns the outputs of a job that were added, to be written into a directory under names that stay.
    ///
    /// # Errors
    ///
    /// Fails if the workflow is not in the repository of the current directory, or gives two outputs one name; or if the storage cannot be read.
    pub fn outputs_to_write(
        &self,
        entry: &Entry,
        job: &JobRecord,
    ) -> Result<Vec<OutputToWrite>, OutputsError> {
        let no_workflow = || OutputsError::NoWorkflow {
            job: entry.short(),
            commit: job.commit.short().to_owned(),
        };
        let names = self.definitions.task.as_ref().ok_or_else(no_workflow)?.output_names()?;
        let mut outputs = Vec::new();
        for (number, output) in job.outputs.iter().enumerate() {
            let name = names.get(number).ok_or_else(no_workflow)?;
            // A job keeps its files where the call that made them was collected.
            let file = match self.storage.has(&output.file)? {
                true => output.file.clone(),
                false => entry.file(number),
            };
            let written = OutputToWrite::of_stored(self.storage, "", name, &file, output.digest)?;
            outputs.extend(written.into_iter().map(|it| it.coming_from(&output.file)));
        }
        Ok(outputs)
    }

    /// Finds files that the package needs and that are not here.
    pub fn absent(&self) -> Result<Vec<AbsentFile<'a>>, StorageError> {
        let (mut absent, mut seen) = (Vec::new(), HashSet::new());
        for file in self.files.iter().filter(|file| seen.insert(&file.holder)) {
            let Some(file) = self.history.subject(&file.holder) else { continue };
            let given = match file.record {
                Record::Job(job) => job.outputs.get(file.number).map(|given| &given.file),
                Record::Call(_) | Record::Table(_) | Record::TaskInput(_) => None,
            };
            // A member stands for itself: its directory may be away.
            let given = given.filter(|given| split_member(given).1.is_none());
            let value = given.and_then(|given| self.history.subject(given)).unwrap_or(file);
            // A directory of a job is a link to the value.
            let is_link = file.digest.is_directory() && !self.storage.has(&value.file())?;
            if is_link || !self.storage.has(&file.file())? {
                absent.push(AbsentFile { file, value });
            }
        }
        Ok(absent)
    }

    /// The files, results and damage that were found.
    pub(super) fn found(self) -> (Vec<PackagedResult>, Vec<PackagedFile>, Vec<BadFile>) {
        (self.results, self.files, self.bad)
    }

    /// The tables of a job whose directories are not among its outputs.
    fn tables(&self, job: &JobRecord) -> Vec<ResultName> {
        let entries = job.calls.iter().filter_map(|call| Entry::of_short(call));
        let mut tables: Vec<ResultName> = Vec::new();
        for entry in entries {
            let directory = entry.file(1);
            let is_output = job.outputs.iter().any(|output| output.file == directory);
            if let Entry::Table(table) = entry
                && !is_output
                && !tables.contains(&table)
            {
                tables.push(table);
            }
        }
        tables
    }

    /// Adds an output of a job, under its name in the workflow and in the computation that made it.
    fn output(
        &mut self,
        dir: &str,
        entry: &Entry,
        job: &JobRecord,
        number: usize,
    ) -> Result<(), StorageError> {
        let Some(subject) = self.history.subject(&entry.file(number)) else { return Ok(()) };
        let names = &self.definitions.output_names;
        if let Some(name) = names.get(number.checked_rem(names.len()).unwrap_or_default()) {
            let name = name.files().swap_remove(0);
            return self.push(dir, number, &name, subject, None);
        }
        let (value, member) = split_member(&job.outputs[number].file);
        let made = Entry::of_file(value);
        let name = match (member, made) {
            (Some(member), _) => member.rsplit('/').next().unwrap_or(member).to_owned(),
            (None, Some(Entry::TaskInput(_))) => {
                let digest = job.outputs[number].digest;
                let mut inputs = job.inputs.iter().filter(|input| input.digest == digest);
                // If several inputs have the same contents, it may be any of them.
                match (inputs.next(), inputs.next()) {
                    (Some(input), None) => input.name.to_string(),
                    _ => format!("{number:02}"),
                }
            }
            // In a clone, only the table is recorded.
            (None, Some(table @ Entry::Table(_))) if value == table.file(1) => POINTS.to_owned(),
            (None, _) => match self.history.subject(value) {
                Some(made) => self.names.find(made, made.number),
                None => format!("{number:02}"),
            },
        };
        let name = titled(self.definitions.output(number), &name);
        self.push(dir, number, &encoded_name(&name), subject, None)
    }

    /// Adds the outputs of each point of a table, in a directory for each.
    fn points(&mut self, dir: &str, table: &ResultName) -> Result<(), StorageError> {
        let mut rows: Vec<RecipeRow> = Vec::new();
        let header = self.storage.tables().read_recipe(table, |row| rows.push(row))?;
        let Some(header) = header else {
            self.bad.push(BadFile::new(table.recipe(), "it is missing or damaged".to_owned()));
            return Ok(());
        };
        for RecipeRow { values, outputs } in rows {
            if values.len() != header.names.len() {
                let why = "the values of a point are not as many as its names".to_owned();
                self.bad.push(BadFile::new(table.recipe(), why));
                break;
            }
            let names = header.names.iter().map(String::as_str);
            let dir = match point_path(names.zip(&values)) {
                point if point.is_empty() => dir.to_owned(),
                point => join(dir, &point),
            };
            for (number, output) in outputs.into_iter().flatten().enumerate() {
                let name = header.outputs.get(number).cloned();
                let name = name.unwrap_or_else(|| format!("{number:02}"));
                let member = split_member(&output.file).1.map(str::to_owned);
                let member = member.map(|member| member.parse::<MemberPath>()).transpose();
                match (self.history.recorded(&output.file, &output.digest), member) {
                    (Some(subject), Ok(member)) => {
                        // Another file with the same contents is whole.
                        let is_named = split_member(&output.file).0 == subject.file();
                        let member = member.filter(|_| is_named);
                        let digest = output.digest;
                        let member = member.map(|path| PackagedMember { path, digest });
                        self.push(&dir, number, &encoded_name(&name), subject, member)?;
                    }
                    _ => self.bad.push(BadFile::new(output.file, "it has no record".to_owned())),
                }
            }
        }
        Ok(())
    }

    /// Adds the outputs of all calls of a job. Nodes with equal inputs have the same call.
    fn calls(&mut self, dir: &str, job: &JobRecord) -> Result<(), StorageError> {
        let mut seen = HashSet::new();
        for call in job.calls.iter().filter(|call| seen.insert(*call)) {
            let Some(entry @ Entry::Call(_)) = Entry::of_short(call) else { continue };
            let Some(first) = self.history.subject(&entry.file(0)) else {
                self.bad.push(BadFile::new(call.clone(), "it has no record".to_owned()));
                continue;
            };
            let Record::Call(record) = first.record else { continue };
            let inputs = call.rsplit('/').next().unwrap_or_default();
            let maker = self.definitions.result(first).unwrap_or(record.computation.as_str());
            let maker = join(dir, &file_name(maker));
            let wanted = join(&maker, &file_name(inputs));
            let version = entry.version().unwrap_or_default();
            let dir = self.places.take(wanted, |turn| {
                join(&maker, &file_name(&numbered(&format!("{inputs}-{version}"), turn)))
            });
            for number in 0..record.outputs.len() {
                if let Some(subject) = self.history.subject(&entry.file(number)) {
                    let name = self.names.find(subject, number);
                    self.push(&dir, number, &encoded_name(&name), subject, None)?;
                }
            }
        }
        Ok(())
    }

    /// Adds a file under a name, a component of a path, or under its number if something else has that name.
    fn push(
        &mut self,
        dir: &str,
        number: usize,
        name: &str,
        subject: Subject<'a>,
        member: Option<PackagedMember>,
    ) -> Result<(), StorageError> {
        let path = self.places.take(join(dir, name), |turn| {
            join(dir, &format!("{}-{name}", numbered(&format!("{number:02}"), turn)))
        });
        let definition = match subject.record {
            Record::Job(_) => self.definitions.output(number),
            _ => self.definitions.result(subject),
        };
        let definition = definition.map(str::to_owned);
        let made = FileMaker::find(self.storage, self.history, self.published, subject)?;
        let holder = subject.file();
        let (file, contents) = match member {
            Some(PackagedMember { path, digest }) => (format!("{holder}/{path}"), digest),
            None => (holder.clone(), *subject.digest),
        };
        self.files.push(PackagedFile { path, file, contents, definition, made, holder });
        Ok(())
    }
}

/// A file in a directory of the storage that goes into a package on its own.
struct PackagedMember {
    path: MemberPath,
    digest: Digest,
}

/// The directory of a result beside others: `TASK/COMMIT/INPUTS`.
pub fn own_directory(entry: &Entry) -> String {
    let short = entry.short();
    let short = short.strip_prefix("t_").or_else(|| short.strip_prefix("c_")).unwrap_or(&short);
    short.split('/').map(file_name).collect::<Vec<_>>().join("/")
}

fn summary(result: Subject<'_>) -> PackagedResult {
    let name = result.entry.short();
    let (title, commit, inputs) = match result.record {
        Record::Job(job) => {
            let inputs = job.inputs.iter().map(|it| (it.name.to_string(), it.digest));
            (Some(job.task.to_string()), Some(&job.commit), inputs.collect())
        }
        Record::Call(call) => (Some(call.computation.to_string()), Some(&call.commit), Vec::new()),
        Record::Table(_) | Record::TaskInput(_) => (None, None, Vec::new()),
    };
    PackagedResult { name, title, commit: commit.map(|it| it.full().to_owned()), inputs }
}

fn join(dir: &str, name: &str) -> String {
    if dir.is_empty() { name.to_owned() } else { format!("{dir}/{name}") }
}

/// The name of an output of a computation as a component of a path.
fn encoded_name(output: &str) -> String {
    file_name(output.strip_suffix('/').unwrap_or(output))
}

/// The name of an output in a package: `called-variants.vcf`, or without the definition where that is its name already.
fn titled(definition: Option<&str>, output: &str) -> String {
    match definition {
        Some(definition) if stem(output).trim_end_matches('/') != definition => {
            format!("{definition}-{output}")
        }
        _ => output.to_owned(),
    }
}

/// A name with a number, unless that is 0.
fn numbered(name: &str, number: usize) -> String {
    if number == 0 { name.to_owned() } else { format!("{name}-{}", number + 1) }
}

/// The paths of a package that are taken.
#[derive(Debug, Default)]
struct Places(HashSet<String>);

impl Places {
    /// Keeps a path free for something else.
    fn reserve(&mut self, path: &str) {
        self.0.insert(path.to_owned());
    }

    /// Takes a path, or else the first free one of others.
    pub(super) fn take(&mut self, wanted: String, other: impl Fn(usize) -> String) -> String {
        let mut path = wanted;
        let mut turn = 0;
        while !self.0.insert(path.clone()) {
            path = other(turn);
            turn += 1;
        }
        path
    }
}

/// The names of outputs: as the computation has them, in the storage or in the repository of the current directory.
#[derive(Debug)]
pub(super) struct OutputNames<'a> {
    storage: &'a Storage,
    repository: Trees,
    known: HashMap<ObjectId, Option<Vec<String>>>,
}

impl<'a> OutputNames<'a> {
    pub(super) fn new(storage: &'a Storage) -> Self {
        Self { storage, repository: Trees::new(Path::new(".")), known: HashMap::new() }
    }

    /// The name of an output of a result, or its number if the name is not known.
    pub(super) fn find(&mut self, result: Subject<'_>, number: usize) -> String {
        let name = match (result.entry, result.record) {
            (Entry::Call(call), Record::Call(record)) => {
                let (storage, repository) = (self.storage, &self.repository);
                let names = self.known.entry(record.tree.clone()).or_insert_with(|| {
                    storage.calls().output_names(call).or_else(|| {
                        names_in(repository, Code { commit: &record.commit, tree: &record.tree })
                    })
                });
                let names = names.as_ref().filter(|it| it.len() == record.outputs.len());
                names.and_then(|names| names.get(number).cloned())
            }
            (Entry::Table(_), Record::Table(record)) => Some(match number {
                0 => format!("{}.ndjson", SWEEP_OUTPUTS[0]),
                1 if record.outputs.len() > 1 => POINTS.to_owned(),
                _ => "recipe.ndjson".to_owned(),
            }),
            _ => None,
        };
        name.unwrap_or_else(|| format!("{number:02}"))
    }
}

/// The names of the outputs of a computation, if the repository has its code.
fn names_in(repository: &Trees, code: Code<'_>) -> Option<Vec<String>> {
    if let Some(declaration) = repository.declaration(code).ok()? {
        return declaration.names("outputs");
    }
    let found = Mutex::new(None);
    let read = repository.code_files(code, &|file| {
        if file.path == Path::new("outputs")
            && let TreeFileKind::Plain(contents) | TreeFileKind::Executable(contents) = file.kind
        {
            *found.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(contents);
        }
        Ok(())
    });
    read.ok()?;
    let contents = found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)?;
    Some(text_file::lines(&contents).ok()?.into_iter().map(str::to_owned).collect())
}

/// The maker of a file.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum FileMaker {
    /// An execution of a computation.
    Call {
        computation: String,
        /// The number of the output.
        output: usize,
        /// The commit with the computation, or the one below its uncommitted changes.
        commit: String,
        /// The computation had uncommitted changes.
        dirty: bool,
        /// The inputs that it has read, in order.
        inputs: Vec<MakerInput>,
        /// The end of the execution, or else the time of the record, if one is known.
        at: Option<Timestamp>,
        /// The host of the execution, if that is known.
        host: Option<SharedText>,
        /// The published execution, if no record says when it ended.
        #[serde(skip_serializing_if = "Option::is_none")]
        published: Option<Box<PublishedExecution>>,
    },
    /// A sweep: it is a table.
    Table,
    /// A user, or a Git repository: it is a task input.
    TaskInput,
    /// It is not known any more.
    Unknown,
}

/// An input of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MakerInput {
    /// Its file in the storage, if that has a record.
    pub file: Option<String>,
    pub contents: Digest,
}

impl MakerInput {
    fn from_ancestor(ancestor: &Ancestor<'_>) -> Self {
        Self { file: ancestor.file(), contents: ancestor.digest }
    }
}

impl FileMaker {
    /// Finds the maker of a file. The maker of an output of a job is the maker of the file that the job took.
    pub fn find(
        storage: &Storage,
        history: &History,
        published: &FirstPublished<'_>,
        subject: Subject<'_>,
    ) -> Result<Self, StorageError> {
        Ok(match subject.record {
            Record::Table(_) => Self::Table,
            Record::TaskInput(_) => Self::TaskInput,
            Record::Job(job) => {
                let file = job.outputs.get(subject.number).map(|output| &*output.file);
                let made = history.parents(storage, subject)?.into_iter().find_map(|it| it.subject);
                match made {
                    // A record that leads to a job instead of the maker could lead to itself.
                    Some(made) if !matches!(made.record, Record::Job(_)) => {
                        Self::find(storage, history, published, made)?
                    }
                    // A clone does not have what every run makes again.
                    _ => match file.and_then(Entry::of_file) {
                        Some(Entry::Table(_)) => Self::Table,
                        Some(Entry::TaskInput(_)) => Self::TaskInput,
                        Some(Entry::Call(_) | Entry::Job(_)) | None => Self::Unknown,
                    },
                }
            }
            Record::Call(call) => {
                let made = OriginalExecution::find(storage, call).or_published(|| published(call));
                let OriginalExecution { at, host, published, .. } = made;
                Self::Call {
                    computation: call.computation.to_string(),
                    output: subject.number,
                    commit: call.commit.full().to_owned(),
                    dirty: call.dirty,
                    inputs: history
                        .parents(storage, subject)?
                        .iter()
                        .map(MakerInput::from_ancestor)
                        .collect(),
                    at,
                    host,
                    published,
                }
            }
        })
    }
}

/// The names that the workflow of a job defines.
#[derive(Debug, Default)]
struct Definitions {
    /// The task, if it is here.
    task: Option<Task>,
    /// The names of its outputs outside of the storage, if each one has another.
    output_names: Vec<OutputName>,
    /// The names of results, by properties that are the same at each commit.
    results: HashMap<String, String>,
    /// The names of computations that each node with them has.
    computations: HashMap<String, Option<String>>,
}

impl Definitions {
    /// The definitions of outputs. Empty unless the repository of the current directory has the commit of the job.
    fn of_outputs(job: &JobRecord) -> Self {
        let here = Path::new(".").canonicalize().ok();
        let place = here.as_deref().and_then(ce_git::top).and_then(|top| job.task_in(&top));
        let task =
            place.and_then(|place| Some(load::task_at(&place, job.commit.full(), None).ok()?.task));
        let names = task.as_ref().and_then(|task| task.output_names().ok());
        Self { task, output_names: names.unwrap_or_default(), ..Self::default() }
    }

    /// The definitions of outputs, calls and tables.
    fn from_job(
        storage: &Storage,
        history: &History,
        job: &JobRecord,
    ) -> Result<Self, StorageError> {
        let mut definitions = Self::of_outputs(job);
        let Some(task) = definitions.task.take() else { return Ok(definitions) };
        for (id, node) in task.workflow.nodes() {
            let Node::Computation { computation, .. } = node else { continue };
            let own = name_of_node(&task, id).map(str::to_owned);
            match definitions.computations.entry(computation.written(&task).to_owned()) {
                Place::Vacant(place) => drop(place.insert(own)),
                Place::Occupied(mut place) if *place.get() != own => drop(place.insert(None)),
                Place::Occupied(_) => {}
            }
        }
        for (node, subject) in producers(&task, storage, history, job)? {
            if let Some(name) = name_of_node(&task, node) {
                definitions
                    .results
                    .entry(name_without_version(subject.entry))
                    .or_insert_with(|| name.to_owned());
            }
        }
        definitions.task = Some(task);
        Ok(definitions)
    }

    /// The name of the maker of an output of the job.
    fn output(&self, number: usize) -> Option<&str> {
        let task = self.task.as_ref()?;
        name_of_node(task, output_node(task, number)?)
    }

    /// The name of a call or table of the job.
    fn result(&self, result: Subject<'_>) -> Option<&str> {
        let found =
            self.results.get(&name_without_version(result.entry)).or_else(|| match result.record {
                Record::Call(call) => self.computations.get(call.computation.as_str())?.as_ref(),
                Record::Job(_) | Record::Table(_) | Record::TaskInput(_) => None,
            });
        found.map(String::as_str)
    }
}

/// Returns the nodes of a job's workflow with the calls and tables that each has made, as far as records lead from the outputs.
fn producers<'a>(
    task: &Task,
    storage: &Storage,
    history: &'a History,
    job: &JobRecord,
) -> Result<Vec<(NodeId, Subject<'a>)>, StorageError> {
    let mut made: Vec<(NodeId, Subject<'a>)> = Vec::new();
    for (number, output) in job.outputs.iter().enumerate() {
        let node = output_node(task, number);
        let subject = history.subject(split_member(&output.file).0);
        made.extend(node.zip(subject));
    }
    let (mut seen, mut producers) = (HashSet::new(), Vec::new());
    while let Some((node, subject)) = made.pop() {
        let node = directory_node(task, node);
        if seen.insert((node, subject.entry)) && may_have_made(task, node, subject) {
            producers.push((node, subject));
            made.extend(made_from(task, node, storage, history, subject)?);
        }
    }
    Ok(producers)
}

/// The name of a node.
fn name_of_node(task: &Task, node: NodeId) -> Option<&str> {
    task.definitions.get(&node)?.first().map(|name| &**name)
}

/// The node that makes an output. The points of a range of inputs have the same outputs each.
fn output_node(task: &Task, number: usize) -> Option<NodeId> {
    let origins: Vec<NodeId> =
        origins(&task.workflow, task.workflow.root()).map(|(node, _)| node).collect();
    origins.get(number.checked_rem(origins.len())?).copied()
}

/// The node whose directory a member is of, or the node itself.
fn directory_node(task: &Task, mut node: NodeId) -> NodeId {
    while let Node::Member { inputs, .. } = &task.workflow[node]
        && let Some((holder, _)) = origins(&task.workflow, inputs[0].node).next()
    {
        node = holder;
    }
    node
}

/// Whether a node may have made a result: equal contents may lead to another one.
fn may_have_made(task: &Task, node: NodeId, result: Subject<'_>) -> bool {
    match (&task.workflow[node], result.record) {
        (Node::Computation { computation, .. }, Record::Call(call)) => {
            computation.open.is_some() || computation.written(task) == call.computation.as_str()
        }
        (Node::Sweep { .. }, Record::Table(_)) => true,
        _ => false,
    }
}

/// Returns the results that a result was made from, each with the node that made it.
fn made_from<'a>(
    task: &Task,
    node: NodeId,
    storage: &Storage,
    history: &'a History,
    result: Subject<'a>,
) -> Result<Vec<(NodeId, Subject<'a>)>, StorageError> {
    let inputs = task.workflow[node].inputs();
    let Entry::Table(table) = result.entry else {
        let nodes = inputs.iter().flat_map(|input| origins(&task.workflow, input.node));
        let parents = history.parents(storage, result)?;
        let made = nodes.zip(parents);
        return Ok(made.filter_map(|((node, _), it)| Some((node, it.subject?))).collect());
    };
    let body: Vec<NodeId> = inputs
        .first()
        .map(|body| origins(&task.workflow, body.node).map(|(node, _)| node).collect())
        .unwrap_or_default();
    let mut made = Vec::new();
    storage.tables().read_recipe(table, |RecipeRow { outputs, .. }| {
        for (node, output) in body.iter().zip(outputs.into_iter().flatten()) {
            made.extend(history.recorded(&output.file, &output.digest).map(|it| (*node, it)));
        }
    })?;
    Ok(made)
}

/// The part of the name of a result that is the same at each commit.
fn name_without_version(entry: &Entry) -> String {
    match entry {
        Entry::Call(call) => call.short().replacen(&format!("/{}/", call.version()), "/", 1),
        _ => entry.short(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_path_gets_a_number() {
        let mut places = Places::default();
        places.reserve("README.md");
        let mut take = |name: &str| places.take(name.to_owned(), |turn| format!("{turn}-{name}"));
        assert_eq!(["a", "README.md", "a", "a"].map(&mut take), ["a", "0-README.md", "0-a", "1-a"]);
    }
}
