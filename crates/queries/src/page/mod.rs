//! The data of a page about results: calls, tables, outputs, and how they were made from each other.
//!
//! All records are read once. A page shows a limited part: the newest calls, the first rows of a table, the end of a log.
//! The data say how many there are. They are a function of the storage and the task: equal ones give equal pages.

mod calls;
mod contents;
mod graph;
mod introduction;
mod measurements;
mod point_files;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

pub use self::calls::{PageCall, PageCallState, PageInput, PageLog, PageValue, ValueOrigin};
use self::calls::{PageIndex, role_in};
use self::contents::ContentsRoom;
pub use self::contents::{CopyBeside, MEMBERS, NotHeld, OutputContents, PageMember};
pub use self::graph::{ResultArrow, ResultGraph, ResultShape, ResultShapeKind};
pub use self::introduction::{GivenInput, GivenValue, PageStudy};
pub use self::measurements::{
    AxisKind, CommitStep, CommitSteps, MeasuredPoint, MeasuredTable, PointAxis,
};
pub use self::point_files::PointPicture;
use crate::frame::{ColumnRole, Frame, FrameColumn, FrameRow, RowStatus};
use ce_evaluate::Evaluation;
use ce_exchange::{Attestations, is_fetched_on_demand};
use ce_history::{History, Subject};
use ce_model::digest::Digest;
use ce_model::expression::written_alone;
pub use ce_model::file_format::FileFormat;
use ce_model::plan::CallId;
use ce_model::sweep::{CellValue, STATUS, read_object, read_replicates};
use ce_model::task::{Node, NodeId, Task, origins};
use ce_storage::records::{CallRecord, RecipeHeader};
use ce_storage::{Entry, RecipeFile, Record, ResultName, Storage, StorageError};

/// The subject of a page.
#[derive(Debug)]
pub enum PageScope<'a> {
    /// All results of a storage.
    Storage,
    /// Some results, and all their origins.
    Results(&'a [Subject<'a>]),
    /// A task with its inputs. Some of its calls may be missing.
    Task(TaskScope<'a>),
}

/// A task with its inputs, as it was looked up.
#[derive(Debug)]
pub struct TaskScope<'a> {
    /// The directory of the task.
    pub dir: &'a Path,
    /// The evaluation, which only looked.
    pub evaluation: &'a Evaluation,
    /// The shapes of the drawing: the label of each, and its calls.
    pub shapes: Vec<(String, &'a [CallId])>,
    /// The tables of its sweeps.
    pub tables: Vec<TaskTable>,
}

/// The limits of everything on a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PageLimits {
    /// The largest number of calls: the newest are taken.
    pub calls: usize,
    /// The largest number of rows of each table: the first are taken.
    pub rows: usize,
    /// The largest number of bytes of each log: the last are taken.
    pub log_bytes: u64,
    /// The largest number of bytes of all logs: failures and the newest calls come first.
    pub all_log_bytes: u64,
    /// The largest number of tables and of outputs: the newest are taken.
    pub results: usize,
    /// The largest number of bytes of outputs on the page: the first ones that have room are taken.
    pub contents: u64,
}

/// A shape of the drawing on a page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PageShape {
    pub label: String,
    /// The calls that it stands for, as far as they are on the page.
    pub calls: Vec<usize>,
}

/// The data of a page. As JSON it has what scripts of the page read.
#[derive(Debug, Serialize)]
pub struct PageData {
    /// Its subject: the name of the task, of the storage, or of the result.
    #[serde(skip)]
    pub title: String,
    /// Facts about that: a name and a text.
    #[serde(skip)]
    pub facts: Vec<(String, String)>,
    /// The calls, the newest first.
    pub calls: Vec<PageCall>,
    /// The number of all calls, also of calls that are not on the page.
    #[serde(skip)]
    pub calls_in_all: usize,
    /// The task inputs.
    pub inputs: Vec<PageInput>,
    /// The tables of sweeps.
    pub tables: Vec<PageTable>,
    /// The number of all tables.
    #[serde(skip)]
    pub tables_in_all: usize,
    /// The outputs of jobs, or the files that were asked for.
    pub outputs: Vec<PageOutput>,
    /// The number of all of them.
    #[serde(skip)]
    pub outputs_in_all: usize,
    /// The shapes of the drawing, in its order; none if it is too large to be drawn.
    pub shapes: Vec<PageShape>,
    #[serde(skip)]
    pub limits: PageLimits,
    /// The task, if the page is about one.
    #[serde(skip)]
    pub study: Option<PageStudy>,
    /// The graph of how the results were made from each other, unless there is a drawing of the task.
    #[serde(skip)]
    pub graph: ResultGraph,
}

impl PageData {
    /// Gathers the data of a page from records that were read.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read.
    pub fn gather(
        storage: &Storage,
        history: &History,
        attestations: &Attestations,
        scope: &mut PageScope<'_>,
        limits: PageLimits,
    ) -> Result<Self, StorageError> {
        let wanted = Wanted::new(history, scope);
        let published = |record: &CallRecord| attestations.first_published(record);
        let past = history.log(storage, &published, |name| wanted.has(name))?;
        let mut index = PageIndex::new(storage, history);
        if let PageScope::Task(task) = scope {
            index.add_names(task.evaluation);
        }
        let mut calls = calls::of_past(past);
        calls::add_missing(scope, &mut calls);
        calls::sort(&mut calls);
        index.number_calls(calls.iter().map(|call| &call.name));
        let mut tables = recorded_tables(&wanted.entries(history), storage, history, &mut index)?;
        calls::add_records(&mut calls, &mut index);
        add_origins(&mut tables, &mut index);
        let mut room = ContentsRoom::new(limits.contents);
        let mut outputs =
            page_outputs(scope, storage, &wanted.entries(history), &mut index, &mut room);
        let graph = match scope {
            PageScope::Task(_) => ResultGraph::default(),
            _ => ResultGraph::new(&calls, &tables, &outputs),
        };
        if let PageScope::Task(task) = scope {
            tables = tables_of_task(std::mem::take(&mut task.tables), &index);
        }
        let in_all = (calls.len(), tables.len(), outputs.len());
        calls.truncate(limits.calls);
        tables.truncate(limits.results);
        outputs.truncate(limits.results);
        for table in &mut tables {
            table.limit(limits.rows);
            table.describe_files(storage, &index, &mut room);
        }
        calls::add_attested(&mut calls, attestations, &index);
        calls::add_published_costs(&mut calls, attestations, &index);
        calls::add_logs(&mut calls, storage, limits)?;
        let shapes = match scope {
            PageScope::Task(task) => index.shapes_of_task(task),
            _ => graph.shapes(),
        };
        let shapes = shapes.into_iter().map(|shape| shape.below(limits.calls)).collect();
        let (title, facts) = page_title(scope, storage);
        let study = match scope {
            PageScope::Task(task) => Some(PageStudy::describe(task.dir, task.evaluation)),
            _ => None,
        };
        let (calls_in_all, tables_in_all, outputs_in_all) = in_all;
        let inputs = index.inputs();
        Ok(Self {
            title,
            facts,
            calls,
            calls_in_all,
            inputs,
            tables,
            tables_in_all,
            outputs,
            outputs_in_all,
            shapes,
            limits,
            study,
            graph,
        })
    }

    /// Describes the parts that were left out: a sentence for each kind.
    pub fn omissions(&self) -> Vec<String> {
        let mut said = Vec::new();
        said.extend(only("newest", self.calls.len(), self.calls_in_all, "calls"));
        said.extend(only("newest", self.tables.len(), self.tables_in_all, "tables"));
        said.extend(only("newest", self.outputs.len(), self.outputs_in_all, "outputs"));
        for table in &self.tables {
            let what = format!("rows of the table {}", table.title);
            said.extend(only("first", table.frame.rows.len(), table.rows_in_all, &what));
        }
        let logs: Vec<&PageLog> = self.calls.iter().filter_map(|call| call.log.as_ref()).collect();
        let left = logs.iter().filter(|log| log.tail.is_none()).count();
        if left > 0 {
            said.push(format!("{left} of {} logs are left out", logs.len()));
        }
        let contents = self.outputs.iter().filter_map(|output| output.contents.as_ref());
        match contents.filter(|it| it.held == Err(NotHeld::Away)).count() {
            0 => {}
            1 => said.push("1 output is away: ce export or ce run fetches it".to_owned()),
            away => said.push(format!("{away} outputs are away: ce export or ce run fetches them")),
        }
        said
    }
}

/// Describes in words that some of all are shown, unless all are.
fn only(which: &str, shown: usize, all: usize, what: &str) -> Option<String> {
    (shown < all).then(|| format!("only the {which} {shown} of {all} {what} are shown"))
}

impl PageShape {
    /// With only the calls that have smaller numbers.
    fn below(mut self, calls: usize) -> Self {
        self.calls.retain(|call| *call < calls);
        self
    }
}

/// The results that a page is about.
struct Wanted {
    /// The short names of calls that need no record; `None` if all of the storage are wanted.
    names: Option<HashSet<String>>,
    /// Whether each result with a record is wanted.
    recorded: Vec<bool>,
}

impl Wanted {
    fn new(history: &History, scope: &PageScope<'_>) -> Self {
        let all = history.results();
        let (mut names, roots): (HashSet<String>, Vec<Entry>) = match scope {
            PageScope::Storage => {
                return Self { names: None, recorded: vec![true; all.len()] };
            }
            PageScope::Results(subjects) => {
                let (mut names, mut roots) = (HashSet::new(), Vec::new());
                for subject in *subjects {
                    match subject.record {
                        Record::Job(job) => {
                            names.extend(job.calls.iter().cloned().chain([subject.entry.short()]));
                        }
                        _ => roots.push(subject.entry.clone()),
                    }
                }
                (names, roots)
            }
            PageScope::Task(TaskScope { evaluation, .. }) => {
                let outcomes = evaluation.outcomes();
                (outcomes.map(|outcome| outcome.name().short()).collect(), Vec::new())
            }
        };
        // A job's calls are all of them. If they were taken over, their inputs may have had names of another commit when
        // they were executed.
        let mut recorded = history.with_origins(roots.iter());
        for (wanted, (entry, _)) in recorded.iter_mut().zip(all) {
            *wanted |= names.contains(&entry.short());
        }
        let of_record = all.iter().zip(&recorded).filter(|(_, wanted)| **wanted);
        names.extend(of_record.map(|((entry, _), _)| entry.short()));
        Self { names: Some(names), recorded }
    }

    fn has(&self, name: &str) -> bool {
        self.names.as_ref().is_none_or(|names| names.contains(name))
    }

    /// The files among them that have a record.
    fn entries<'a>(&self, history: &'a History) -> Vec<&'a (Entry, Record)> {
        let all = history.results().iter().zip(&self.recorded);
        all.filter(|(_, wanted)| **wanted).map(|(result, _)| result).collect()
    }
}

/// An output of a job, or a file that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PageOutput {
    /// The name of the task, if it is an output of one.
    pub task: String,
    /// The short name of the job or result that it is of.
    pub of: String,
    /// The commit of the task.
    pub commit: String,
    /// The inputs of the job: their names and short digests.
    pub inputs: Vec<(String, String)>,
    /// The file, and its maker. Its SHA-1 is empty if it is not known.
    pub value: PageValue,
    /// The name of the output in its maker, or its number.
    #[serde(skip)]
    pub output: String,
    /// The name of its file outside of the storage, where the workflow gives it one of its own.
    #[serde(skip)]
    pub outer_name: Option<String>,
    /// The name that the workflow defines for its maker.
    #[serde(skip)]
    pub defined: Option<String>,
    /// Its maker, in words: the name of a computation, or a node of the workflow.
    #[serde(skip)]
    pub maker: String,
    /// The inputs of that, as the workflow names them.
    #[serde(skip)]
    pub made_from: Vec<String>,
    /// Whether it is the table of a sweep.
    #[serde(skip)]
    pub is_table: bool,
    #[serde(skip)]
    pub contents: Option<OutputContents>,
    /// The files and links in it, if it is a directory that is here.
    #[serde(skip)]
    pub members: Vec<PageMember>,
    /// The place of a file or directory with them.
    #[serde(skip)]
    pub source: Option<PathBuf>,
    /// The copy of a file beside the page, if there is one.
    #[serde(skip)]
    pub beside: Option<CopyBeside>,
}

/// The outputs of a page: of the task, of the requested results, or of all jobs of the storage, the newest
/// first.
fn page_outputs(
    scope: &PageScope<'_>,
    storage: &Storage,
    wanted: &[&(Entry, Record)],
    index: &mut PageIndex<'_>,
    room: &mut ContentsRoom,
) -> Vec<PageOutput> {
    match scope {
        PageScope::Task(task) => outputs_of_task(task.evaluation, index, room),
        PageScope::Results(subjects) => {
            let outputs = subjects.iter().filter_map(|subject| {
                let mut output = of_result(*subject, index)?;
                let (name, digest) = (&output.output, subject.digest);
                let is_here = storage.has(&subject.file()).unwrap_or(true);
                output.source = is_here.then(|| storage.path(&subject.file()));
                if let Some(dir) = output.source.as_ref().filter(|_| digest.is_directory()) {
                    let manifest = storage.values().manifest(&subject.file(), digest);
                    let manifest = manifest.ok().flatten();
                    output.members = manifest.map(|it| room.members(dir, &it)).unwrap_or_default();
                }
                output.contents = Some(match is_here {
                    false => not_here(storage, name, digest),
                    true => room.contents(name, *digest, || {
                        storage.values().contents(&subject.promise()).ok().flatten()
                    }),
                });
                Some(output)
            });
            outputs.collect()
        }
        PageScope::Storage => {
            let mut jobs = wanted.to_vec();
            jobs.retain(|(entry, _)| matches!(entry, Entry::Job(_)));
            jobs.sort_by_key(|(_, record)| Reverse(record.at()));
            let mut outputs = Vec::new();
            for (entry, record) in jobs {
                if let Record::Job(job) = record {
                    for number in 0..job.outputs.len() {
                        let file = index.file(&entry.file(number));
                        outputs.extend(file.and_then(|file| of_result(file, index)));
                    }
                }
            }
            outputs
        }
    }
}

/// The contents of an output that is not in the storage.
fn not_here(storage: &Storage, name: &str, digest: &Digest) -> OutputContents {
    let is_away = is_fetched_on_demand(storage, digest);
    let why = if is_away { NotHeld::Away } else { NotHeld::Absent };
    OutputContents::not_held(name, digest, why)
}

/// The outputs of a task, as the workflow names them.
fn outputs_of_task(
    evaluation: &Evaluation,
    index: &mut PageIndex<'_>,
    room: &mut ContentsRoom,
) -> Vec<PageOutput> {
    let task = &evaluation.task;
    let inputs = task.inputs.iter().enumerate();
    let inputs: Vec<(String, String)> = inputs
        .filter_map(|(at, name)| {
            let digest = evaluation.files.inputs.get(at)?.as_ref()?.file.digest;
            Some((name.to_string(), digest.sha1.short()))
        })
        .collect();
    let (mut outputs, names) = (Vec::new(), task.output_names().unwrap_or_default());
    let origins: Vec<(NodeId, u8)> = origins(&task.workflow, task.workflow.root()).collect();
    for (number, source) in evaluation.plan.outputs().iter().enumerate() {
        let (name, file) = (format!("{number:02}"), evaluation.name(*source));
        let digest = evaluation.digest(*source);
        let value = match (digest, file) {
            (Some(digest), file) => index.value(name, &file.unwrap_or_default(), &digest),
            (None, file) => PageValue::unknown(name, file),
        };
        // The points of a range of inputs have the same outputs each.
        let (node, output) = origins[number % origins.len()];
        let made = task.made(node);
        let output = made.get(usize::from(output)).map_or("", |name| name.trim_end_matches('/'));
        let stored = evaluation.stored(*source);
        let storage = &evaluation.storage;
        let contents = digest.map(|digest| {
            let is_away = digest.is_directory() || is_fetched_on_demand(storage, &digest);
            match stored.is_none() && is_away {
                true => not_here(storage, output, &digest),
                // A given input is known without a file of the storage.
                false => room.contents(output, digest, || evaluation.contents(*source).ok()?),
            }
        });
        let place = stored.map(|it| evaluation.storage.path(&it.name));
        let manifest = || evaluation.manifest(*source);
        let members = match &place {
            Some(dir) if digest.is_some_and(|it| it.is_directory()) => {
                manifest().map(|manifest| room.members(dir, &manifest)).unwrap_or_default()
            }
            _ => Vec::new(),
        };
        outputs.push(PageOutput {
            task: task.name.to_string(),
            of: String::new(),
            commit: task.commit.full().to_owned(),
            inputs: inputs.clone(),
            value,
            output: output.to_owned(),
            outer_name: names.get(number % origins.len()).map(|name| name.files().swap_remove(0)),
            defined: task.definitions.get(&node).and_then(|it| it.first()).map(ToString::to_string),
            maker: node_name(task, node),
            made_from: node_inputs(task, node),
            is_table: matches!(task.workflow[node], Node::Sweep { .. }),
            contents,
            members,
            source: place,
            beside: None,
        });
    }
    outputs
}

/// The name of the maker of the values of a node: a computation's name, or the node as it is written.
fn node_name(task: &Task, node: NodeId) -> String {
    match &task.workflow[node] {
        Node::Computation { computation, .. } => computation.written(task).to_owned(),
        Node::Sweep { .. } => "a sweep".to_owned(),
        _ => written_alone(task, node),
    }
}

/// Returns the inputs of a node, as its workflow names them: definitions, inputs of the task and names of computations. Constants
/// are left out.
fn node_inputs(task: &Task, node: NodeId) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for input in task.workflow[node].inputs().iter().map(|argument| argument.node) {
        let defined = task.definitions.get(&input).and_then(|names| names.first());
        let name = match (&task.workflow[input], defined) {
            (_, Some(name)) => name.to_string(),
            (Node::Input(input), None) => task.inputs[input.index()].to_string(),
            (
                Node::Computation { .. } | Node::File(_) | Node::Tree { .. } | Node::Sweep { .. },
                None,
            ) => node_name(task, input),
            _ => continue,
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn of_result(subject: Subject<'_>, index: &mut PageIndex<'_>) -> Option<PageOutput> {
    let Subject { number, entry, record, .. } = subject;
    let file = subject.file();
    let name = format!("{number:02}");
    let ((maker, made_output), (task, commit, inputs, value)) = match record {
        Record::Job(job) => {
            let inputs = job.inputs.iter().map(|it| (it.name.to_string(), it.digest.sha1.short()));
            let output = job.outputs.get(number)?;
            let mut value = index.value(name, &output.file, &output.digest);
            value.file = Some(file);
            value.role = role_in(job, &output.digest);
            let maker = index.maker(&output.file, &output.digest);
            (maker, (job.task.to_string(), job.commit.full().to_owned(), inputs.collect(), value))
        }
        _ => {
            let value = index.value(name, &file, subject.digest);
            let maker = index.maker(&file, subject.digest);
            (maker, (String::new(), String::new(), Vec::new(), value))
        }
    };
    Some(PageOutput {
        task,
        of: entry.short(),
        commit,
        inputs,
        output: made_output,
        outer_name: None,
        defined: None,
        maker,
        made_from: Vec::new(),
        is_table: matches!(value.from, Some(ValueOrigin::Table(_))),
        contents: None,
        members: Vec::new(),
        source: None,
        beside: None,
        value,
    })
}

/// Returns the subject of a page, and facts about it.
fn page_title(scope: &PageScope<'_>, storage: &Storage) -> (String, Vec<(String, String)>) {
    let place = storage.path("");
    let place = place.canonicalize().unwrap_or(place);
    let name = place.file_name().map(|name| name.to_string_lossy().into_owned());
    let name = name.unwrap_or_else(|| "storage".to_owned());
    let of_storage = ("storage".to_owned(), name.clone());
    match scope {
        PageScope::Storage => (name, Vec::new()),
        PageScope::Task(task) => {
            let it = &task.evaluation.task;
            let commit = ("commit".to_owned(), it.commit.short().to_owned());
            (it.name.to_string(), vec![commit, of_storage])
        }
        PageScope::Results([subject]) => {
            let title = match subject.record {
                Record::Job(job) => job.task.to_string(),
                Record::Call(call) => call.computation.to_string(),
                Record::Table(_) | Record::TaskInput(_) => subject.entry.short(),
            };
            (title, vec![("result".to_owned(), subject.entry.short()), of_storage])
        }
        PageScope::Results(subjects) => (format!("{} results", subjects.len()), vec![of_storage]),
    }
}

/// A table on a page.
#[derive(Clone, Debug, Default)]
pub struct PageTable {
    /// The short names of the recorded tables that it is.
    pub names: Vec<String>,
    /// Its title for people.
    pub title: String,
    /// The table, with the rows that are on the page.
    pub frame: Frame,
    /// The number of all rows.
    pub rows_in_all: usize,
    /// The files that are values of its points, by row and column, in words.
    described: BTreeMap<(usize, usize), CellValue>,
    /// The pictures among them.
    pub pictures: Vec<PointPicture>,
    /// The call that has made the first output of each row, by its number.
    pub calls: Vec<Option<usize>>,
    /// The first output of each row, in a recorded table.
    outputs: Vec<Option<RecipeFile>>,
    /// The files that it was made from.
    files: Vec<RecipeFile>,
    /// The makers of these.
    pub(super) made_from: BTreeSet<ValueOrigin>,
}

/// A row as scripts read it.
#[derive(Serialize)]
struct ScriptRow<'a> {
    cells: Vec<&'a CellValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    call: Option<usize>,
}

/// What scripts read of it.
impl Serialize for PageTable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let columns = &self.frame.columns;
        let keys = columns.iter().filter(|column| column.role == ColumnRole::Key);
        let keys: Vec<&str> = keys.map(|column| &*column.name).collect();
        let rows = self.frame.rows.iter().enumerate().map(|(at, row)| ScriptRow {
            cells: (0..row.cells.len()).map(|column| self.shown(at, column)).collect(),
            status: row.status.in_words(),
            call: self.calls.get(at).copied().flatten(),
        });
        let mut table = serializer.serialize_struct("PageTable", 6)?;
        table.serialize_field("names", &self.names)?;
        table.serialize_field("title", &self.title)?;
        table.serialize_field("columns", &self.frame.names().collect::<Vec<_>>())?;
        table.serialize_field("keys", &keys)?;
        table.serialize_field("rows", &rows.collect::<Vec<_>>())?;
        table.serialize_field("rows_in_all", &self.rows_in_all)?;
        table.end()
    }
}

/// The table of a sweep of a task.
#[derive(Debug)]
pub struct TaskTable {
    /// Its title for people.
    pub title: String,
    /// The short names that it has in the storage, or would have.
    pub names: Vec<String>,
    /// Its rows.
    pub frame: Frame,
}

impl PageTable {
    /// Leaves out the rows beyond a number.
    pub(super) fn limit(&mut self, rows: usize) {
        self.frame.rows.truncate(rows);
    }

    /// Reads a recorded table. A damaged table has no rows.
    fn read(storage: &Storage, name: &ResultName) -> Result<Self, StorageError> {
        let (mut files, mut numbers) = (Vec::new(), HashMap::new());
        let (mut firsts, mut made) = (Vec::new(), Vec::<Box<[usize]>>::new());
        let header = storage.tables().read_recipe(name, |row| {
            let outputs = row.outputs.unwrap_or_default();
            firsts.push(outputs.first().cloned());
            let of_row = outputs.into_iter().map(|it| {
                *numbers.entry(it.file.clone()).or_insert_with(|| {
                    files.push(it);
                    files.len()
                })
            });
            made.push(of_row.collect());
        })?;
        let header = header.unwrap_or_default();
        let mut frame = Frame::default();
        for name in &header.names {
            frame.add_column(FrameColumn::new(name, ColumnRole::Key));
        }
        storage.tables().read_lines(name, |line| {
            let Ok(line) = read_object(line) else { return };
            let mut cells = Vec::with_capacity(line.len());
            for (name, cell) in line {
                let at = frame
                    .place(&name)
                    .unwrap_or_else(|| frame.add_column(recorded_column(&header, &name)));
                cells.push((at, cell));
            }
            frame.add_row(FrameRow::default(), cells.into_iter());
        })?;
        frame.fill();
        let has_origins = frame.rows.len() == firsts.len();
        let outputs = if has_origins { firsts } else { Vec::new() };
        if has_origins {
            for (row, made) in frame.rows.iter_mut().zip(made) {
                row.output_calls = made;
            }
        }
        if header.allow_failed
            && let Some(at) = frame.place(STATUS)
        {
            for row in frame.rows.iter_mut().filter(|row| row.cells[at].text() != "ok") {
                row.status = RowStatus::Failed { reason: String::new(), log: None };
            }
        }
        let rows = header.columns.iter().find_map(|line| line.strip_suffix(" **"));
        let rows: Option<u8> = rows.and_then(|output| output.parse().ok());
        // A record does not know the keys that a sweep names, so these rows cannot lack one.
        drop(frame.find_row_keys(&[], |column| {
            let is_status = header.allow_failed && column.name == STATUS;
            rows.is_some() && column.is_field && column.output == rows && !is_status
        }));
        let made = frame.names().filter(|name| header.names.iter().all(|it| it != name));
        let title =
            format!("{} by {}", made.collect::<Vec<_>>().join(", "), header.names.join(", "));
        let replicates = header.replicates.and_then(|line| read_replicates(&line).ok());
        frame.until = replicates.and_then(|it| it.until);
        let (names, rows_in_all) = (vec![name.short()], frame.rows.len());
        Ok(Self { names, title, frame, rows_in_all, outputs, files, ..Self::default() })
    }
}

/// A column of results in a recorded table: of the only output with fields, if no rule names the column.
fn recorded_column(header: &RecipeHeader, name: &str) -> FrameColumn {
    let rules = header.columns.iter().filter_map(|line| line.split_once(' '));
    let mut of = rules.filter(|(_, shape)| *shape == name || shape.starts_with('*'));
    let named = of.clone().find(|(_, shape)| *shape == name);
    let rule = named.or_else(|| of.next().filter(|_| of.next().is_none()));
    let output = rule.and_then(|(output, _)| output.parse().ok());
    let column = FrameColumn::new(name, ColumnRole::Value);
    FrameColumn { output, is_field: named.is_none(), ..column }
}

/// The recorded tables among some results, the newest first, with their numbers.
fn recorded_tables(
    wanted: &[&(Entry, Record)],
    storage: &Storage,
    history: &History,
    index: &mut PageIndex<'_>,
) -> Result<Vec<PageTable>, StorageError> {
    let mut found = wanted.to_vec();
    found.retain(|(entry, _)| matches!(entry, Entry::Table(_)));
    found.sort_by_key(|(_, record)| Reverse(record.at()));
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
fn add_origins(tables: &mut [PageTable], index: &mut PageIndex<'_>) {
    for table in tables {
        for RecipeFile { file, digest } in &table.files {
            table.made_from.extend(index.value(String::new(), file, digest).from);
        }
        let calls = table.outputs.iter().map(|output| {
            let RecipeFile { file, digest } = output.as_ref()?;
            match index.value(String::new(), file, digest).from {
                Some(ValueOrigin::Call(call)) => Some(call),
                _ => None,
            }
        });
        table.calls = calls.collect();
    }
}

/// The tables of a task.
fn tables_of_task(tables: Vec<TaskTable>, index: &PageIndex<'_>) -> Vec<PageTable> {
    let mut found = Vec::with_capacity(tables.len());
    for TaskTable { title, names, frame } in tables {
        let calls = frame.rows.iter().map(|row| index.call(&row.origin.as_ref()?.call));
        let (calls, rows_in_all) = (calls.collect(), frame.rows.len());
        found.push(PageTable { names, title, frame, rows_in_all, calls, ..PageTable::default() });
    }
    found
}
