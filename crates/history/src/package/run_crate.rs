//! A job as a crate: an RO-Crate that follows the profile Provenance Run Crate 0.5. doc/decisions/0030 says why.
//!
//! Beside the files of a package, a crate has the workflow, as a text, and metadata. No metadata name a host, a user or a
//! path of this machine, and they have times and machines only if the user wants them published.
//!
//! The executions for a job become entities of the crate: computations, their calls, and the points of sweeps. The document of
//! metadata describes them: <https://www.researchobject.org/workflow-run-crate/>.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

use super::attribution::{Attribution, AttributionError, Contributor};
use super::entities::{
    COMPLETED, CrateStep, CrateValues, ENGINE, Entities, Entity, StepKey, described,
    is_web_address, kind, of_path, performed, reference, references, revision, step_name,
    valid_url,
};
use super::{Package, PackagedFile, README, producers};
use crate::{History, Subject};
use ce_git::{Config, Snapshot};
use ce_model::digest::Digest;
use ce_model::exit::Explain;
use ce_model::expression::Text;
use ce_model::file_format::FileFormat;
use ce_model::name::{encoded, file_name};
use ce_model::task::{Computation, Node, NodeId, Task, WORKFLOW_TEXT};
use ce_storage::records::{
    CallRecord, Execution, JobRecord, Origin, RecipeFile, RecipeHeader, TableRecord,
};
use ce_storage::{Entry, RecipeRow, Record, ResultName, Storage, StorageError};
use ce_task::load::{self, LoadError};
use jiff::Timestamp;
use serde_json::Value;

/// The file with the metadata of a crate.
pub(super) const METADATA: &str = "ro-crate-metadata.json";

/// The definitions of the terms of the metadata.
const CONTEXTS: [&str; 2] =
    ["https://w3id.org/ro/crate/1.1/context", "https://w3id.org/ro/terms/workflow-run/context"];

/// The format of the file with the metadata.
const SPECIFICATION: &str = "https://w3id.org/ro/crate/1.1";

/// The profiles that a crate follows: address, name, version.
const PROFILES: [(&str, &str, &str); 4] = [
    ("https://w3id.org/ro/wfrun/process/0.5", "Process Run Crate", "0.5"),
    ("https://w3id.org/ro/wfrun/workflow/0.5", "Workflow Run Crate", "0.5"),
    ("https://w3id.org/ro/wfrun/provenance/0.5", "Provenance Run Crate", "0.5"),
    (WORKFLOW_PROFILE, "Workflow RO-Crate", "1.0"),
];

/// The profile that the file with the metadata follows, too.
const WORKFLOW_PROFILE: &str = "https://w3id.org/workflowhub/workflow-ro-crate/1.0";

/// The profile that a workflow follows.
const BIOSCHEMAS: &str = "https://bioschemas.org/profiles/ComputationalWorkflow/1.0-RELEASE";

/// The formats of files that a crate adds to the package: type, address and name.
const PLAIN_TEXT: [&str; 3] =
    ["text/plain", "https://www.nationalarchives.gov.uk/PRONOM/x-fmt/111", "Plain Text File"];
const MARKDOWN: [&str; 3] =
    ["text/markdown", "https://www.nationalarchives.gov.uk/PRONOM/fmt/1149", "Markdown"];

/// The greatest size of a file that is read to find its type, in bytes.
const MOST_READ: u64 = 1 << 20;

/// The language of workflows.
const LANGUAGE: &str = "#workflow-language";

/// The id of the run of CompEval.
const ORGANIZATION: &str = "#run";

/// The units of the resource usage of executions.
const SECOND_UNIT: &str = "https://qudt.org/vocab/unit/SEC";
const BYTE_UNIT: &str = "https://qudt.org/vocab/unit/BYTE";

/// The facts about a job that a user wants to publish.
#[derive(Clone, Debug, Default)]
pub struct CrateFacts {
    /// When calls were executed.
    pub times: bool,
    /// On which machines: processors, memory, kernel.
    pub machine: bool,
    /// The one who has executed them.
    pub by: Option<Contributor>,
}

/// A job, and everything that its crate says beyond the records.
#[derive(Debug)]
pub struct RunCrate<'a> {
    storage: &'a Storage,
    history: &'a History,
    entry: &'a Entry,
    job: &'a JobRecord,
    task: Task,
    facts: CrateFacts,
    /// The text of the workflow.
    workflow: String,
    attribution: Attribution,
    /// All whom the crate names, each once.
    people: Vec<Contributor>,
    /// The repository of the current directory, and the address of its remote one.
    top: PathBuf,
    remote: Option<String>,
    /// The day of the publication.
    day: String,
}

impl<'a> RunCrate<'a> {
    /// Finds the workflow of a job in the repository of the current directory, with its licence and authors unless they are given.
    ///
    /// # Errors
    ///
    /// Fails if the result is not a job, its workflow is not there, or the licence or the authors are unknown.
    pub fn from_job(
        storage: &'a Storage,
        history: &'a History,
        result: Subject<'a>,
        facts: CrateFacts,
        attribution: Attribution,
    ) -> Result<Self, CrateError> {
        let (entry, Record::Job(job)) = (result.entry, result.record) else {
            return Err(CrateError::NoJob(result.entry.short()));
        };
        let here = Path::new(".").canonicalize().ok();
        let top = here.as_deref().and_then(ce_git::top);
        let found = top.and_then(|top| Some((job.task_in(&top)?, top)));
        let Some((place, top)) = found else {
            return Err(CrateError::no_workflow(job, None));
        };
        let task = load::task_at(&place, job.commit.full(), None)
            .map_err(|source| CrateError::no_workflow(job, Some(source)))?
            .task;
        let attribution = attribution.or_cited(&top, &job.commit)?;
        let people = attribution.people(facts.by.as_ref());
        let written = Snapshot::open(&place, job.commit.full()).and_then(|snapshot| {
            let file = snapshot.find(Path::new(WORKFLOW_TEXT))?;
            snapshot.read(&file)
        });
        let written = written.ok().and_then(|text| String::from_utf8(text).ok());
        let workflow = written.unwrap_or_else(|| Text::from(&task).workflow());
        let remote = Config::read(&top).ok().and_then(|config| config.origin());
        let day = today().strftime("%F").to_string();
        Ok(Self {
            storage,
            history,
            entry,
            job,
            task,
            facts,
            workflow,
            attribution,
            people,
            top,
            remote,
            day,
        })
    }

    /// The address of the remote repository, if it is a public address.
    fn address(&self) -> Option<String> {
        self.remote.as_deref().filter(|remote| is_web_address(remote)).map(valid_url)
    }

    /// The address of the remote repository if the repository here has a commit. Any other than a web address may name a
    /// user, a host or a path.
    fn remote_of(&self, commit: &str) -> Option<&str> {
        let remote = self.remote.as_deref().filter(|remote| is_web_address(remote))?;
        Some(remote).filter(|_| Snapshot::open(&self.top, commit).is_ok())
    }

    /// Whether a call of the job was executed in this storage. If no call was, the job was pulled, and who made its
    /// tables and when is unknown here.
    fn is_own(&self) -> bool {
        self.job.calls.iter().any(|call| {
            let subject = Entry::of_short(call).and_then(|it| self.history.subject(&it.file(0)));
            matches!(subject.map(|it| it.record), Some(Record::Call(it)) if it.execution().is_some())
        })
    }

    /// Describes the one who has executed the calls of this storage, and returns the id.
    fn agent(&self, graph: &mut Entities) -> Option<String> {
        Some(self.contributor(self.facts.by.as_ref()?, graph))
    }

    /// Describes a contributor. Returns the id: the same for the same person or organization.
    fn contributor(&self, contributor: &Contributor, graph: &mut Entities) -> String {
        let mut people = self.people.iter();
        // A person may be called as the organization is.
        let known = people
            .find(|it| it.is(contributor) && (it.is_organization || !contributor.is_organization));
        let known = known.unwrap_or(contributor);
        let id = match &known.url {
            Some(url) => valid_url(url),
            None if known.is_organization => format!("#organization/{}", encoded(&known.name)),
            None => format!("#contributor/{}", encoded(&known.name)),
        };
        let kind = if known.is_organization { "Organization" } else { "Person" };
        let organization = known.affiliation.as_deref().map(Contributor::organization);
        let organization = organization.map(|it| self.contributor(&it, graph));
        let entity = graph.entity(&id, &[kind]).with("name", known.name.as_str());
        entity.set("url", known.url.as_deref().map(valid_url));
        entity.set("affiliation", organization.map(reference));
        id
    }
}

/// Today, or the day that `SOURCE_DATE_EPOCH` says, so that a crate can be made again byte by byte.
fn today() -> Timestamp {
    let given = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|text| text.parse().ok());
    let given = given.and_then(|seconds| Timestamp::from_second(seconds).ok());
    given.unwrap_or_else(Timestamp::now)
}

/// The reason why a crate cannot be made of a result.
#[derive(Debug, thiserror::Error, Explain)]
pub enum CrateError {
    /// It is not a job.
    #[error("{0} is not a job: a crate holds the run of a task")]
    #[hint("give an output of a job, t_NAME/..., or its short name")]
    NoJob(String),
    /// The number of given results is not one.
    #[error("a crate holds one job, and {0} results are given")]
    #[hint("make a crate of each")]
    Several(usize),
    /// The workflow is not in the repository of the current directory.
    #[error("the workflow of {task} at commit {commit} is not found from here")]
    #[hint("run ce export in a clone of the task's repository that has this commit")]
    NoWorkflow {
        task: String,
        commit: String,
        /// The cause, if the current directory is in a repository.
        source: Option<Box<LoadError>>,
    },
    /// The licence or the authors are not known.
    #[error(transparent)]
    #[hint(_0.hint())]
    Attribution(#[from] AttributionError),
}

impl CrateError {
    fn no_workflow(job: &JobRecord, source: Option<LoadError>) -> Self {
        let (task, commit) = (job.task.to_string(), job.commit.short().to_owned());
        Self::NoWorkflow { task, commit, source: source.map(Box::new) }
    }
}

/// When something began, and when it ended.
type Period = Option<[Timestamp; 2]>;

/// Collects the executions.
struct Actions<'r, 'a> {
    run: &'r RunCrate<'a>,
    values: CrateValues,
    steps: BTreeMap<StepKey, CrateStep>,
    /// The ids of all actions.
    actions: Vec<String>,
    span: Period,
    /// The nodes that have made a call or table, by its short name.
    producers: HashMap<String, BTreeSet<NodeId>>,
    /// The remote repository that has a commit.
    remotes: HashMap<String, Option<String>>,
}

impl<'r, 'a> Actions<'r, 'a> {
    fn new(run: &'r RunCrate<'a>, values: CrateValues) -> Self {
        let (steps, actions, span) = (BTreeMap::new(), Vec::new(), None);
        let (producers, remotes) = (HashMap::new(), HashMap::new());
        Self { run, values, steps, actions, span, producers, remotes }
    }

    /// Describes the calls and tables of the job. One whose record was collected is left out.
    fn describe(&mut self) -> Result<(), StorageError> {
        let RunCrate { storage, history, job, task, .. } = self.run;
        for (node, result) in producers(task, storage, history, job)? {
            self.producers.entry(result.entry.short()).or_default().insert(node);
        }
        let mut seen = HashSet::new();
        for call in job.calls.iter().filter(|call| seen.insert(*call)) {
            let subject = Entry::of_short(call).and_then(|entry| history.subject(&entry.file(0)));
            let Some(subject) = subject else { continue };
            match (subject.entry, subject.record) {
                (Entry::Call(name), Record::Call(record)) => self.call(name, record, subject)?,
                (Entry::Table(name), Record::Table(record)) => self.table(name, record)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// The values that were described, the steps, the ids of all actions, and the time of all calls together.
    fn finish(self) -> (CrateValues, BTreeMap<StepKey, CrateStep>, Vec<String>, Period) {
        (self.values, self.steps, self.actions, self.span)
    }

    /// Adds the executions of a result to its steps.
    fn step(
        &mut self,
        short: &str,
        is_maker: impl Fn(&Node) -> bool,
        tool: &str,
        actions: &[String],
    ) {
        let task = &self.run.task;
        let nodes = self.producers.get(short).cloned().unwrap_or_else(|| {
            // No record leads there from the outputs: if only one node can have made it, that node has.
            let may = task.workflow.nodes().filter(|(_, node)| is_maker(node)).map(|(id, _)| id);
            let may: BTreeSet<NodeId> = may.collect();
            if may.len() == 1 { may } else { BTreeSet::new() }
        });
        let mut keys: Vec<StepKey> = nodes.into_iter().map(StepKey::Node).collect();
        let other = short.split('/').next().unwrap_or(short).trim_start_matches("c_").to_owned();
        if keys.is_empty() {
            keys.push(StepKey::Other(other.clone()));
        }
        for key in keys {
            let name = match &key {
                StepKey::Node(node) => step_name(task, *node),
                StepKey::Other(_) => None,
            };
            let step = self.steps.entry(key).or_default();
            step.name = name.unwrap_or_else(|| other.clone());
            step.tools.insert(tool.to_owned());
            step.actions.extend_from_slice(actions);
        }
    }

    fn call(
        &mut self,
        name: &ResultName,
        record: &CallRecord,
        subject: Subject<'_>,
    ) -> Result<(), StorageError> {
        let (run, short) = (self.run, name.short());
        let id = format!("#call/{}", encoded(&short));
        let directory = short.splitn(3, '/').take(2).collect::<Vec<_>>().join("/");
        let (tool, declared) = self.tool(&directory, record);
        let mut inputs = Vec::with_capacity(record.inputs.len());
        for (number, input) in run.history.parents(run.storage, subject)?.iter().enumerate() {
            let name = declared.and_then(|it| it.inputs.get(number)).cloned();
            let name = name.unwrap_or_else(|| format!("{number:02}"));
            let value = self.values.id(input.file(), &name, &input.digest);
            self.parameter(&tool, ["input", "in"], &directory, &name, &value, &input.digest);
            inputs.push(value);
        }
        let mut outputs = Vec::with_capacity(record.outputs.len());
        for (number, output) in record.outputs.iter().enumerate() {
            let name = declared.and_then(|it| it.outputs.get(number));
            let name = name.map(|it| it.trim_end_matches('/').to_owned());
            let name = name.unwrap_or_else(|| format!("{number:02}"));
            let file = subject.entry.file(number);
            let value = self.values.id(Some(file), &name, &output.digest);
            self.parameter(&tool, ["output", "out"], &directory, &name, &value, &output.digest);
            outputs.push(value);
        }
        let execution = record.execution();
        let span = execution.map(|it| [it.start, it.end]).filter(|_| run.facts.times);
        self.action(&id, &tool, execution.is_some(), span);
        let usage = execution.map(|it| self.usage(&id, it)).unwrap_or_default();
        let action = self.values.graph.entity(&id, &[]);
        action.with("name", format!("Execution of {}", record.computation));
        action.with("description", description(record, run.facts.machine));
        action.set("object", references(inputs)).set("result", references(outputs));
        action.set("resourceUsage", references(usage));
        let computation = record.computation.as_str();
        let is_maker = |node: &Node| match node {
            Node::Computation { computation: it, .. } => it.written(&run.task) == computation,
            _ => false,
        };
        self.step(&short, is_maker, &tool, &[id]);
        Ok(())
    }

    /// Describes an action, with its performer if it was in this storage.
    fn action(&mut self, id: &str, tool: &str, is_own: bool, span: Period) {
        let graph = &mut self.values.graph;
        let agent = if is_own { self.run.agent(graph) } else { None };
        let action = graph.entity(id, &["CreateAction"]).with("instrument", reference(tool));
        performed(action.with("actionStatus", COMPLETED), agent.as_deref(), span);
        self.actions.push(id.to_owned());
        self.span = union_of_periods(self.span, span);
    }

    /// Describes a computation at a commit. Returns its id, and its description in the task.
    fn tool(&mut self, directory: &str, record: &CallRecord) -> (String, Option<&'r Computation>) {
        let run = self.run;
        let commit = record.commit.full();
        let remote = self.remotes.entry(commit.to_owned());
        let remote = remote.or_insert_with(|| run.remote_of(commit).map(str::to_owned)).clone();
        let address = run.address().filter(|_| remote.is_some());
        let id = format!("{}#{}", address.as_deref().unwrap_or_default(), encoded(directory));
        let declared = run.task.computations.iter().find(|it| it.tree == record.tree);
        let tool = self.values.graph.entity(&id, &["SoftwareApplication"]);
        tool.with("name", record.computation.as_str()).set("url", address);
        tool.with("version", commit);
        // No repository has the blob of a computation that stands in a text.
        let archived = declared.filter(|it| run.task.text_computation(it).is_none());
        if let (Some(revision), Some(declared)) = (revision(commit), archived) {
            let kind = if declared.file.is_some() { "cnt" } else { "dir" };
            let origin = remote.map(|it| format!("origin={};", valid_url(&it))).unwrap_or_default();
            let tree = record.tree.full();
            tool.with("identifier", format!("swh:1:{kind}:{tree};{origin}anchor={revision}"));
        }
        (id, declared)
    }

    /// Describes an input or output of a computation or sweep.
    fn parameter(
        &mut self,
        tool: &str,
        [property, side]: [&'static str; 2],
        place: &str,
        name: &str,
        value: &str,
        contents: &Digest,
    ) {
        let id = format!("#{}/{side}/{}", encoded(place), encoded(name));
        self.values.parameter(&id, name, value, contents);
        self.values.graph.entity(tool, &[]).add(property, reference(id));
    }

    /// Describes the resource usage of an execution. The usage of its tasks is not known.
    fn usage(&mut self, call: &str, execution: &Execution) -> Vec<String> {
        let Execution { start, end, user_seconds, system_seconds, peak_bytes, .. } = execution;
        let seconds = end.duration_since(*start).as_secs_f64().max(0.0);
        let mut used = vec![("seconds", SECOND_UNIT, Value::from(seconds))];
        if execution.tasks.is_empty() {
            used.push(("user_seconds", SECOND_UNIT, Value::from(*user_seconds)));
            used.push(("system_seconds", SECOND_UNIT, Value::from(*system_seconds)));
            used.push(("peak_bytes", BYTE_UNIT, Value::from(*peak_bytes)));
        }
        let mut ids = Vec::with_capacity(used.len());
        for (name, unit, value) in used {
            let id = format!("{call}/{name}");
            let property = self.values.graph.entity(&id, &["PropertyValue"]).with("name", name);
            property.with("propertyID", format!("compeval:{name}")).with("unitCode", unit);
            property.with("value", value.to_string());
            ids.push(id);
        }
        ids
    }

    /// Describes a sweep: its body is a workflow of its own, that runs at each point.
    fn table(&mut self, name: &ResultName, record: &TableRecord) -> Result<(), StorageError> {
        let run = self.run;
        let mut rows: Vec<RecipeRow> = Vec::new();
        let header = run.storage.tables().read_recipe(name, |row| rows.push(row))?;
        let (Some(header), table) = (header, Entry::Table(name.clone())) else { return Ok(()) };
        let short = table.short();
        let node = self.producers.get(&short).and_then(|nodes| nodes.first()).copied();
        let sweeps = run.task.workflow.nodes();
        let mut sweeps = sweeps.filter(|(_, node)| is_sweep(node)).map(|(id, _)| id);
        let only = sweeps.next().filter(|_| sweeps.next().is_none());
        let key = node.or(only).map_or_else(|| StepKey::Other(short.clone()), StepKey::Node);
        let body = key.workflow();
        let (mut points, mut gathered) = (Vec::with_capacity(rows.len()), Vec::new());
        for (number, row) in rows.iter().enumerate() {
            // No job is stored while a point of it has failed.
            let Some(outputs) = &row.outputs else { continue };
            let id = format!("#point/{}/{number}", encoded(&short));
            gathered.extend(self.point(&id, &body, &header, &row.values, outputs));
            points.push(id);
        }
        let recorded = record.recorded.as_ref().filter(|_| run.is_own());
        let made_at = recorded.map(|it| [it.at; 2]).filter(|_| run.facts.times);
        let id = format!("#table/{}", encoded(&short));
        self.action(&id, ENGINE, recorded.is_some(), made_at);
        let names = ["table", "points"].iter().zip(&record.outputs).enumerate();
        let tables = names.map(|(number, (name, output))| {
            self.values.id(Some(table.file(number)), name, &output.digest)
        });
        let tables: Vec<String> = tables.collect();
        let action = self.values.graph.entity(&id, &[]);
        action.with("name", "Table of the points of a sweep");
        action.with("description", "CompEval has gathered the results of all points");
        action.set("object", references(gathered)).set("result", references(tables));
        if !points.is_empty() {
            self.step(&short, is_sweep, &body, &points);
        }
        Ok(())
    }

    /// Describes a point of a sweep. Returns the ids of its outputs.
    fn point(
        &mut self,
        id: &str,
        body: &str,
        header: &RecipeHeader,
        values: &[String],
        outputs: &[RecipeFile],
    ) -> Vec<String> {
        let run = self.run;
        self.values.graph.entity(body, &["SoftwareSourceCode", "ComputationalWorkflow", "HowTo"]);
        let point: Vec<(&String, &String)> = header.names.iter().zip(values).collect();
        let mut levels = Vec::with_capacity(point.len());
        for (name, value) in &point {
            levels.push(self.level(body, name, value));
        }
        let (mut results, mut span) = (Vec::with_capacity(outputs.len()), None);
        for (number, RecipeFile { file, digest }) in outputs.iter().enumerate() {
            let name = header.outputs.get(number).cloned();
            let name = name.unwrap_or_else(|| format!("{number:02}"));
            let value = self.values.id(Some(file.clone()), &name, digest);
            self.parameter(body, ["output", "out"], &body[1..], &name, &value, digest);
            results.push(value);
            let made = run.history.recorded(file, digest);
            if let Some(Record::Call(call)) = made.map(|made| made.record) {
                span = union_of_periods(span, call.execution().map(|it| [it.start, it.end]));
            }
        }
        self.action(id, body, span.is_some(), span.filter(|_| run.facts.times));
        let point: Vec<String> =
            point.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let action = self.values.graph.entity(id, &[]);
        action.with("name", format!("Point {}", point.join(", ")));
        action.with("description", "The evaluation of the sweep's body at a point");
        action.set("object", references(levels)).set("result", references(&results));
        results
    }

    /// Describes a level of a factor, once for all points that have it. Returns its id.
    fn level(&mut self, body: &str, name: &str, value: &str) -> String {
        let parameter = format!("{body}/in/{}", encoded(name));
        let id = format!("{body}/in/{}/{}", encoded(name), encoded(&file_name(value)));
        let graph = &mut self.values.graph;
        let entity = graph.entity(&parameter, &["FormalParameter"]).with("name", name);
        entity.with("additionalType", "Text");
        let entity = graph.entity(&id, &["PropertyValue"]).with("name", name).with("value", value);
        entity.with("exampleOfWork", reference(&parameter));
        graph.entity(body, &[]).add("input", reference(parameter));
        id
    }
}

const fn is_sweep(node: &Node) -> bool {
    matches!(node, Node::Sweep { .. })
}

/// The time from the first beginning to the last end.
fn union_of_periods(one: Period, other: Period) -> Period {
    match (one, other) {
        (Some([a, b]), Some([c, d])) => Some([a.min(c), b.max(d)]),
        (one, other) => one.or(other),
    }
}

/// Describes an execution in words: its facts that are relative to the storage, and the machine only if the user wants that.
fn description(record: &CallRecord, with_machine: bool) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut facts: Vec<String> = Vec::new();
    match &record.origin {
        Origin::Executed { execution, .. } => {
            parts.push(execution.argv.iter().collect::<Vec<_>>().join(" "));
            facts.extend(execution.taken_over.as_ref().map(|it| format!("taken over from {it}")));
            facts.extend(execution.host_kind.as_ref().map(|it| format!("kind of host: {it}")));
            let machine = execution.machine.as_ref().filter(|_| with_machine);
            facts.extend(machine.map(|it| format!("machine: {it}")));
            let host_use = execution.host_use.as_ref().filter(|_| with_machine);
            facts.extend(host_use.map(|it| format!("meanwhile {}", it.in_words())));
        }
        Origin::Shared(_) => parts.push("Executed in another storage".to_owned()),
        Origin::Adopted => parts.push("Its outputs were found without a record".to_owned()),
    }
    facts.extend(record.origin.isolation().map(|it| format!("isolation: {it}")));
    let access = record.origin.access();
    if !access.is_empty() {
        facts.push(format!("granted: {}", access.join(", ")));
    }
    if !facts.is_empty() {
        parts.push(format!("({})", facts.join("; ")));
    }
    parts.join(" ")
}

/// The files that a crate adds to its package: paths and texts. The last one has the metadata.
pub fn crate_texts(
    run: &RunCrate<'_>,
    package: &Package,
    readme: String,
) -> Result<Vec<(&'static str, String)>, StorageError> {
    let metadata = document(run, package, &readme)?;
    let workflow = (WORKFLOW_TEXT, run.workflow.clone());
    Ok(vec![(README, readme), workflow, (METADATA, metadata)])
}

/// Describes the job and its package, as a document of JSON-LD.
fn document(run: &RunCrate<'_>, package: &Package, readme: &str) -> Result<String, StorageError> {
    let mut graph = Entities::default();
    let descriptor = graph.entity(METADATA, &["CreativeWork"]);
    descriptor.with("about", reference("./"));
    descriptor.set("conformsTo", references([SPECIFICATION, WORKFLOW_PROFILE]));
    graph.entity("./", &["Dataset"]);
    graph.entity(SPECIFICATION, &["CreativeWork"]).with("name", "RO-Crate").with("version", "1.1");
    for (id, name, version) in PROFILES {
        graph.entity(id, &["CreativeWork"]).with("name", name).with("version", version);
    }
    graph.entity(BIOSCHEMAS, &["CreativeWork"]).with("name", "ComputationalWorkflow profile");
    let compeval = run.job.recorded.as_ref().map(|it| &*it.compeval);
    let compeval = compeval.unwrap_or(env!("CARGO_PKG_VERSION"));
    graph
        .entity(ENGINE, &["SoftwareApplication"])
        .with("name", "CompEval")
        .with("version", compeval);
    graph.entity(LANGUAGE, &["ComputerLanguage"]).with("name", "CompEval workflow");
    graph.entity(LANGUAGE, &[]).with("version", compeval);
    let mut parts = vec![WORKFLOW_TEXT.to_owned(), README.to_owned()];
    let mut values = CrateValues { graph, ids: HashMap::new() };
    let outputs = run.job.outputs.iter().enumerate();
    let outputs: HashMap<String, &str> =
        outputs.map(|(number, output)| (run.entry.file(number), &*output.file)).collect();
    for file in &package.files {
        // An output of the job is described as the file that a call or sweep has made.
        let source = outputs.get(&file.file).copied().unwrap_or(&file.file);
        parts.push(describe_packaged(run, file, source, &mut values));
    }
    let mut actions = Actions::new(run, values);
    describe_parameters(run, package, &mut actions.values);
    actions.describe()?;
    let (mut values, steps, mentions, span) = actions.finish();
    describe_steps(run, &mut values.graph, &steps);
    describe_job(run, package, &mut values, span);
    let job = job_id(run);
    if mentions.is_empty() {
        // A workflow has a tool that was executed: one without calls is evaluated by CompEval alone.
        values.graph.entity(&job, &[]).set("instrument", references([WORKFLOW_TEXT, ENGINE]));
    }
    let mut described = vec![job];
    described.extend(mentions);
    described.extend(values.graph.has(ORGANIZATION).then(|| ORGANIZATION.to_owned()));
    let graph = &mut values.graph;
    describe_text(graph, README, readme, MARKDOWN).with("about", reference("./"));
    describe_root(run, graph, compeval);
    graph
        .entity("./", &[])
        .set("hasPart", references(parts))
        .set("mentions", references(described));
    Ok(graph.document(&CONTEXTS))
}

/// Describes the inputs and outputs of the workflow.
fn describe_parameters(run: &RunCrate<'_>, package: &Package, values: &mut CrateValues) {
    for input in &run.job.inputs {
        let file = values.input(run.history, package, input.name.as_str(), &input.digest);
        let id = format!("#workflow/in/{}", encoded(input.name.as_str()));
        values.parameter(&id, input.name.as_str(), &file, &input.digest);
    }
    for (file, output) in packaged_outputs(run, package) {
        let id = format!("#workflow/out/{}", encoded(&file.path));
        values.parameter(&id, &file.path, &of_path(&file.path, output), output);
    }
}

/// The outputs of the job in the package.
fn packaged_outputs<'p>(
    run: &RunCrate<'_>,
    package: &'p Package,
) -> impl Iterator<Item = (&'p PackagedFile, &'p Digest)> {
    let names: BTreeSet<String> =
        (0..run.job.outputs.len()).map(|number| run.entry.file(number)).collect();
    let files = package.files.iter().filter(move |file| names.contains(&file.file));
    files.map(|file| (file, &file.contents))
}

fn job_id(run: &RunCrate<'_>) -> String {
    format!("#job/{}", encoded(&run.entry.short()))
}

/// Describes the run of the workflow, and the run of CompEval.
fn describe_job(
    run: &RunCrate<'_>,
    package: &Package,
    values: &mut CrateValues,
    span: Option<[Timestamp; 2]>,
) {
    let mut inputs = Vec::new();
    for input in &run.job.inputs {
        inputs.push(values.input(run.history, package, input.name.as_str(), &input.digest));
    }
    let outputs = packaged_outputs(run, package).map(|(file, output)| of_path(&file.path, output));
    let id = job_id(run);
    let names: Vec<&str> = run.job.inputs.iter().map(|input| input.name.as_str()).collect();
    let description = match &names[..] {
        [] => "CompEval evaluated the workflow of the task".to_owned(),
        names => {
            format!("CompEval evaluated the workflow of the task, given {}", names.join(", "))
        }
    };
    let graph = &mut values.graph;
    let job = graph.entity(&id, &["CreateAction"]);
    job.with("name", format!("Run of the task {}", run.job.task));
    job.with("description", description);
    job.with("instrument", reference(WORKFLOW_TEXT));
    job.set("object", references(inputs)).set("result", references(outputs));
    job.with("actionStatus", COMPLETED);
    let agent = if run.is_own() { run.agent(graph) } else { None };
    performed(graph.entity(&id, &[]), agent.as_deref(), span);
    // Nothing was organized for a workflow without calls.
    if graph.has(ORGANIZATION) {
        let organization = graph.entity(ORGANIZATION, &[]);
        performed(organization, agent.as_deref(), span);
        organization.with("name", "Run of CompEval").with("instrument", reference(ENGINE));
        organization.with("description", "Executed the calls of the workflow, or took them over");
        organization.with("result", reference(&id));
    }
}

/// Describes the crate as a whole.
fn describe_root(run: &RunCrate<'_>, graph: &mut Entities, compeval: &str) {
    let JobRecord { task, commit, place, .. } = run.job;
    let place = place.as_deref().filter(|place| !place.is_empty());
    let place = place.map(|place| format!(", {place} of its repository")).unwrap_or_default();
    let remote = run.remote_of(commit.full());
    let of_remote = remote.map(|it| format!(" of {it}")).unwrap_or_default();
    let commit = commit.full();
    let description = format!(
        "A run of the task {task}{place}, at commit {commit}{of_remote}, recorded by CompEval {compeval}"
    );
    let Attribution { licences, authors, publisher } = &run.attribution;
    let mut ids: Vec<String> = Vec::new();
    for author in authors {
        let id = run.contributor(author, graph);
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    let publisher = publisher.as_ref().map(|it| run.contributor(it, graph));
    let licences: Vec<String> = licences.iter().map(|it| it.describe(graph)).collect();
    let root = graph.entity("./", &[]);
    root.with("name", format!("Run of the task {task}")).with("description", description);
    root.with("datePublished", run.day.as_str()).set("license", references(licences));
    root.set("author", references(&ids)).set("publisher", publisher.map(reference));
    root.set("conformsTo", references(PROFILES.map(|(id, ..)| id)));
    root.with("mainEntity", reference(WORKFLOW_TEXT));
    graph.entity(WORKFLOW_TEXT, &[]).set("creator", references(ids));
}

/// Describes the workflow, the workflows of its sweeps, and their steps.
fn describe_steps(run: &RunCrate<'_>, graph: &mut Entities, steps: &BTreeMap<StepKey, CrateStep>) {
    let types = ["File", "SoftwareSourceCode", "ComputationalWorkflow", "HowTo"];
    graph.entity(WORKFLOW_TEXT, &types);
    describe_text(graph, WORKFLOW_TEXT, &run.workflow, PLAIN_TEXT);
    let levels = sweeps_of_nodes(&run.task);
    let mut positions: HashMap<String, usize> = HashMap::new();
    for (number, (key, step)) in steps.iter().enumerate() {
        let level = match key {
            StepKey::Node(node) => levels.get(node).copied().flatten(),
            StepKey::Other(_) => None,
        };
        // Points of a sweep may be there and lead to no table of it.
        let level = level.map(|node| StepKey::Node(node).workflow());
        let workflow = level.filter(|id| graph.has(id)).unwrap_or(WORKFLOW_TEXT.to_owned());
        let position = positions.entry(workflow.clone()).or_default();
        *position += 1;
        let (id, control) = (format!("#step/{number}"), format!("#control/{number}"));
        let entity = graph.entity(&id, &["HowToStep"]).with("name", step.name.as_str());
        entity.with("position", position.to_string());
        entity.set("workExample", references(&step.tools));
        let entity = graph.entity(&control, &["ControlAction"]);
        entity.with("name", format!("Step {}", step.name)).with("instrument", reference(&id));
        entity.set("object", references(&step.actions));
        graph.entity(ORGANIZATION, &["OrganizeAction"]).push("object", reference(control));
        let entity = graph.entity(&workflow, &[]);
        entity.push("step", reference(id));
        step.tools.iter().for_each(|tool| entity.add("hasPart", reference(tool)));
    }
    let (commit, task) = (run.job.commit.full(), &run.job.task);
    let remote = run.remote_of(commit);
    let mut workflows = vec![(WORKFLOW_TEXT.to_owned(), task.to_string())];
    for (key, step) in steps {
        let id = key.workflow();
        if graph.has(&id) {
            workflows.push((id, step.name.clone()));
        }
    }
    for (id, name) in workflows {
        let workflow = graph.entity(&id, &[]);
        workflow.with("name", name).with("version", commit);
        workflow.with("programmingLanguage", reference(LANGUAGE));
        workflow.with("conformsTo", reference(BIOSCHEMAS));
        workflow.set("url", run.address()).set("codeRepository", remote);
        workflow.set("identifier", revision(commit));
        if !workflow.knows("hasPart") {
            workflow.with("hasPart", reference(ENGINE));
        }
    }
}

/// Describes a file of the package, and which value it is a copy of. Returns its id.
fn describe_packaged(
    run: &RunCrate<'_>,
    file: &PackagedFile,
    source: &str,
    values: &mut CrateValues,
) -> String {
    let id = of_path(&file.path, &file.contents);
    let shown = file.path.rsplit('/').next().unwrap_or(&file.path);
    let entity = values.graph.entity(&id, &[kind(&file.contents)]);
    described(entity, shown, &file.contents);
    if !file.contents.is_directory() {
        let is_small = file.contents.size <= MOST_READ;
        let media_type = FileFormat::media_type_of(shown, || {
            is_small.then(|| fs::read(run.storage.path(&file.file)).ok()).flatten()
        });
        entity.with("encodingFormat", media_type);
    }
    for name in [source, &file.file] {
        let first = values.ids.entry(name.to_owned()).or_insert_with(|| id.clone());
        if *first != id {
            values.graph.entity(&id, &[]).add("sameAs", reference(first));
        }
    }
    id
}

/// The sweep whose body each node is in: the outermost of nested sweeps that needs it.
fn sweeps_of_nodes(task: &Task) -> HashMap<NodeId, Option<NodeId>> {
    let mut levels = HashMap::new();
    let mut bodies = VecDeque::from([(task.workflow.root(), None)]);
    while let Some((body, level)) = bodies.pop_front() {
        let mut stack = vec![body];
        while let Some(node) = stack.pop() {
            if levels.contains_key(&node) {
                continue;
            }
            levels.insert(node, level);
            let inputs = task.workflow[node].inputs().iter().map(|input| input.node);
            match &task.workflow[node] {
                Node::Sweep { inputs: parts, .. } => {
                    bodies.extend(parts.first().map(|body| (body.node, Some(node))));
                    stack.extend(inputs.skip(1));
                }
                _ => stack.extend(inputs),
            }
        }
    }
    levels
}

/// Describes a text of the crate.
fn describe_text<'g>(
    graph: &'g mut Entities,
    path: &str,
    text: &str,
    [kind, address, name]: [&str; 3],
) -> &'g mut Entity {
    graph.entity(address, &["WebSite"]).with("name", name);
    let entity = graph.entity(path, &["File"]);
    described(entity, path, &Digest::hash_bytes(text.as_bytes()));
    entity.set("encodingFormat", [kind.into(), reference(address)])
}
