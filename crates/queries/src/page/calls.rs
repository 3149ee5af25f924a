//! The calls of a page, and the numbers by which its values and calls refer to each other.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{PageLimits, PageScope, PageShape, TaskScope};
use ce_evaluate::{Absence, CallFailure, Evaluation, Outcome};
use ce_exchange::{Attestations, Attested, Attester};
use ce_history::{History, InputTexts, Past, Subject, TakenOver};
use ce_model::digest::Digest;
use ce_model::plan::{CallId, Source};
use ce_model::shared_text::SharedText;
use ce_storage::records::{CallRecord, JobRecord, Origin};
use ce_storage::{Entry, LogTail, Record, ResultName, Storage, StorageError, split_member};
use serde::Serialize;

/// The state of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PageCallState {
    /// It was executed.
    Executed,
    /// Its outputs were taken over from another commit.
    TakenOver,
    /// Its outputs were adopted.
    Adopted,
    /// It was executed in another storage.
    Shared,
    /// Its outputs are known, and deliberately not here.
    Away,
    /// It failed, and has not succeeded since.
    Failed,
    /// It has started something that goes on elsewhere.
    Suspended,
    /// It is not in the storage.
    Missing,
}

/// A call on a page.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PageCall {
    /// Its short name.
    pub name: String,
    /// The name of the computation.
    pub computation: String,
    /// The commit with the computation, or the one below its uncommitted changes; empty if it is not known.
    pub commit: SharedText,
    /// Whether the computation had uncommitted changes.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dirty: bool,
    pub state: PageCallState,
    /// The end of the execution that made its outputs in milliseconds since 1970, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<i64>,
    /// The duration of that execution in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// Its CPU time in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_seconds: Option<f64>,
    /// Its peak memory in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_bytes: Option<u64>,
    /// The host of its execution, or the one that recorded its failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<SharedText>,
    /// The machine of its execution, in words, as this storage or the ledger has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<SharedText>,
    /// The share of its processors that others had, as this storage or the ledger has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub others: Option<f64>,
    /// The user who recorded it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<SharedText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isolation: Option<String>,
    /// The resources that it has requested.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub resources: Box<[String]>,
    /// Its inputs that are short texts.
    pub texts: InputTexts,
    pub inputs: Vec<PageValue>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<PageValue>,
    /// The source of its outputs, if they were taken over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taken_over: Option<Box<TakenOver>>,
    /// The reason why it failed, or could not be executed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<PageLog>,
    /// The attesters of its execution; none if only this storage says that it was executed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attested: Option<Attested>,
    /// The digests of its inputs.
    #[serde(skip)]
    digests: Vec<Digest>,
}

/// The log of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PageLog {
    /// The name of the log in the storage.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
    /// Its end; none if there are too many logs.
    pub tail: Option<String>,
}

impl PageCall {
    /// Whether its outputs are there, or known.
    pub const fn is_there(&self) -> bool {
        !matches!(
            self.state,
            PageCallState::Failed | PageCallState::Suspended | PageCallState::Missing
        )
    }

    fn of_past(past: Past) -> Self {
        let state = match &past {
            _ if past.failed.is_some() => PageCallState::Failed,
            _ if past.suspended.is_some() => PageCallState::Suspended,
            _ if past.away => PageCallState::Away,
            _ if past.taken_over.is_some() => PageCallState::TakenOver,
            _ if past.shared => PageCallState::Shared,
            _ if past.made.seconds.is_none() => PageCallState::Adopted,
            _ => PageCallState::Executed,
        };
        Self {
            name: past.name,
            computation: past.computation,
            commit: past.commit,
            dirty: past.dirty,
            state,
            end: past.made.at.map(jiff::Timestamp::as_millisecond),
            seconds: past.made.seconds,
            cpu_seconds: past.made.cpu_seconds,
            peak_bytes: past.made.peak_bytes,
            host: past.made.host,
            machine: past.made.machine,
            others: past.made.others,
            user: None,
            isolation: None,
            resources: past.made.resources,
            texts: past.texts,
            inputs: Vec::new(),
            outputs: Vec::new(),
            taken_over: past.taken_over,
            reason: past.failed,
            log: None,
            attested: None,
            digests: past.inputs,
        }
    }

    /// A call of a plan that has no record.
    fn missing(evaluation: &Evaluation, call: CallId, name: String) -> Option<Self> {
        let computation = evaluation.computation(call)?;
        let inputs = evaluation.plan.inputs(call).iter().map(|source| evaluation.digest(*source));
        let outcome = evaluation.outcome(call)?;
        // A call that has failed at another commit, which has its record.
        let failed = outcome.prior_failure();
        let reason = match outcome {
            _ if failed.is_some() => failed.map(|it| it.failure.reason.clone()),
            Outcome::Absent(_, Absence::Failed(failure)) => Some(failure.error.in_full()),
            Outcome::Absent(_, Absence::Unfinished(why)) => Some(why.to_string()),
            Outcome::Absent(_, Absence::Suspended(call)) => {
                Some(format!("it is suspended: {call}"))
            }
            Outcome::Absent(_, Absence::Blocked) => Some("an input is not there".to_owned()),
            Outcome::Absent(_, Absence::Waiting) => {
                Some("an input is not there yet: a call is suspended".to_owned())
            }
            _ => None,
        };
        Some(Self {
            name,
            computation: computation.name.to_string(),
            commit: computation.commit.full().into(),
            dirty: computation.dirty,
            state: if failed.is_some() { PageCallState::Failed } else { PageCallState::Missing },
            end: failed.map(|it| it.recorded.at.as_millisecond()),
            seconds: None,
            cpu_seconds: None,
            peak_bytes: None,
            host: None,
            machine: None,
            others: None,
            user: None,
            isolation: None,
            resources: Box::default(),
            texts: known_texts(evaluation, call, &computation.inputs),
            inputs: Vec::new(),
            outputs: Vec::new(),
            taken_over: None,
            reason,
            log: outcome.failure().and_then(|failure| remembered_log(evaluation, failure)),
            attested: None,
            digests: inputs.collect::<Option<_>>().unwrap_or_default(),
        })
    }
}

/// The inputs of a call that are short texts, with these names of inputs.
fn known_texts(evaluation: &Evaluation, call: CallId, names: &[String]) -> InputTexts {
    let named = names.iter().zip(evaluation.plan.inputs(call));
    let texts = named.filter_map(|(name, source)| {
        let file = evaluation.stored(*source)?;
        let text = evaluation.storage.values().text(&file).ok()??;
        Some((name.clone(), text.to_string()))
    });
    texts.collect()
}

/// The end of the log of a failure, which may be another commit's.
fn remembered_log(evaluation: &Evaluation, failure: &CallFailure) -> Option<PageLog> {
    let LogTail { name, tail } = failure.log.as_ref()?;
    let size = evaluation.storage.path(name).metadata().ok()?.len();
    Some(PageLog { name: name.clone(), size, tail: Some(tail.clone()) })
}

/// The calls of a log. Their inputs are not known yet.
pub(super) fn of_past(log: Vec<Past>) -> Vec<PageCall> {
    log.into_iter().map(PageCall::of_past).collect()
}

/// Adds the calls of a task that the storage has nothing of.
pub(super) fn add_missing(scope: &PageScope<'_>, calls: &mut Vec<PageCall>) {
    let PageScope::Task(task) = scope else { return };
    let mut known: HashSet<String> = calls.iter().map(|call| call.name.clone()).collect();
    for (call, _) in task.evaluation.plan.calls() {
        let Some(outcome) = task.evaluation.outcome(call) else { continue };
        let name = name_of(task.evaluation, call);
        if outcome.known().is_none()
            && let Some(name) = name.filter(|it| known.insert(it.clone()))
        {
            calls.extend(PageCall::missing(task.evaluation, call, name));
        }
    }
}

/// Sorts calls: the newest first, and among equally old ones by name.
pub(super) fn sort(calls: &mut [PageCall]) {
    calls.sort_by(|one, other| other.end.cmp(&one.end).then_with(|| one.name.cmp(&other.name)));
}

/// Adds the facts of the records of calls, and the sources of their inputs.
pub(super) fn add_records(calls: &mut [PageCall], index: &mut PageIndex<'_>) {
    for call in calls {
        let record = match index.subject(&call.name).map(|subject| subject.record) {
            Some(Record::Call(record)) if call.is_there() => Some(record),
            _ => None,
        };
        let execution = record.and_then(CallRecord::execution);
        for (at, digest) in std::mem::take(&mut call.digests).iter().enumerate() {
            let file = execution.and_then(|it| it.argv.get(at + 1)).unwrap_or_default();
            let name = index.name_of(&call.name, at, false);
            let role = index.role(&call.name, at, digest);
            call.inputs.push(PageValue { role, ..index.value(name, file, digest) });
        }
        let Some(record) = record else { continue };
        call.user = record.recorded.as_ref().map(|it| it.user.clone());
        call.isolation = Origin::isolation(&record.origin).map(str::to_owned);
        let result = ResultName::of_short(&call.name);
        for (at, output) in record.outputs.iter().enumerate() {
            call.outputs.push(PageValue {
                name: index.name_of(&call.name, at, true),
                file: result.as_ref().map(|result| result.output(at)),
                sha1: output.digest.sha1.full(),
                size: output.digest.total(),
                from: None,
                role: None,
                number: at,
            });
        }
    }
}

/// Adds who has executed calls, where that is more than this storage on one kind of host.
pub(super) fn add_attested(calls: &mut [PageCall], all: &Attestations, index: &PageIndex<'_>) {
    for call in calls.iter_mut().filter(|call| call.is_there()) {
        let Some(Record::Call(record)) = index.subject(&call.name).map(|it| it.record) else {
            continue;
        };
        let attested = all.find_attesters(record);
        let Attested { by, host_kinds } = &attested;
        let is_own = by.differing.is_empty() && by.agreeing == [Attester::Here];
        let is_usual = by.all() == 0 || is_own && host_kinds.all() <= 1;
        call.attested = (!is_usual).then_some(attested);
    }
}

/// Adds the duration and peak memory of calls that were executed elsewhere, as far as the ledger has them.
pub(super) fn add_published_costs(
    calls: &mut [PageCall],
    all: &Attestations,
    index: &PageIndex<'_>,
) {
    for call in calls.iter_mut().filter(|call| call.is_there() && call.seconds.is_none()) {
        if let Some(Record::Call(record)) = index.subject(&call.name).map(|it| it.record)
            && let Some(cost) = all.cost(record)
        {
            (call.seconds, call.peak_bytes) = (Some(cost.seconds), Some(cost.peak_bytes));
        }
    }
}

/// Adds the ends of logs: failures first, then the newest calls.
pub(super) fn add_logs(
    calls: &mut [PageCall],
    storage: &Storage,
    limits: PageLimits,
) -> Result<(), StorageError> {
    let mut room = limits.all_log_bytes;
    for failures in [true, false] {
        let is_meant = |it: &&mut PageCall| failures == (it.state == PageCallState::Failed);
        for call in calls.iter_mut().filter(is_meant).filter(|it| it.log.is_none()) {
            let Some(name) = ResultName::of_short(&call.name) else { continue };
            let most = limits.log_bytes.min(room);
            let Some((log, size)) = storage.attempts().log_end(&name, failures, most)? else {
                continue;
            };
            room -= size.min(most);
            let is_shown = most > 0 && (size <= most || most == limits.log_bytes);
            let tail = is_shown.then_some(log.tail);
            call.log = Some(PageLog { name: log.name, size, tail });
        }
    }
    Ok(())
}

/// The maker of a value: a call, a table or a task input, by its number on the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueOrigin {
    /// A task input.
    Input(usize),
    /// A call.
    Call(usize),
    /// A table.
    Table(usize),
}

/// A file or directory that was read or made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PageValue {
    /// The name of the input or output in the computation, or its number.
    pub name: String,
    /// Its name in the storage, if it is recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    pub sha1: String,
    /// Its size in bytes.
    pub size: u64,
    /// Its maker, if that is on the page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<ValueOrigin>,
    /// The name of the task input that it is in a job with its reader.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Its number among the outputs of that.
    #[serde(skip)]
    pub(super) number: usize,
}

/// A task input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PageInput {
    /// Its name in the storage.
    pub file: String,
    pub sha1: String,
    /// Its size in bytes.
    pub size: u64,
}

/// The name of the input of a job with some contents; all names if several have them.
pub(super) fn role_in(job: &JobRecord, digest: &Digest) -> Option<String> {
    let inputs = job.inputs.iter().filter(|input| input.digest == *digest);
    either(inputs.map(|input| input.name.to_string()))
}

/// Names in words, if there are any.
fn either(names: impl Iterator<Item = String>) -> Option<String> {
    Some(names.collect::<Vec<_>>().join(" or ")).filter(|names| !names.is_empty())
}

/// The parts of the name of an output that are the same at each commit: computation, number and inputs.
fn parts(file: &str) -> Vec<&str> {
    file.split('/').enumerate().filter(|(at, _)| *at != 1).map(|(_, part)| part).collect()
}

/// The short name of a call of a task. One whose inputs are not all known has no name yet: it has its number.
fn name_of(evaluation: &Evaluation, call: CallId) -> Option<String> {
    let outcome = evaluation.outcome(call)?;
    let mut inputs = evaluation.plan.inputs(call).iter();
    Some(if outcome.known().is_some() || inputs.all(|it| evaluation.digest(*it).is_some()) {
        outcome.name().short()
    } else {
        format!("call {} of the task", call.index())
    })
}

/// See the module.
#[derive(Debug)]
pub(super) struct PageIndex<'a> {
    storage: &'a Storage,
    history: &'a History,
    calls: HashMap<String, usize>,
    tables: HashMap<String, usize>,
    inputs: Vec<PageInput>,
    numbers_of_inputs: HashMap<String, usize>,
    /// The jobs that have a call, by its short name.
    jobs: HashMap<&'a str, Vec<&'a JobRecord>>,
    /// The names of the task inputs that are inputs of calls, by the short names of these and their numbers, where a plan says so.
    planned: HashMap<(String, usize), BTreeSet<String>>,
    /// The names of the inputs and the outputs of a computation, by the directory of the version.
    names: HashMap<String, [Option<Vec<String>>; 2]>,
}

impl<'a> PageIndex<'a> {
    pub(super) fn new(storage: &'a Storage, history: &'a History) -> Self {
        let mut jobs: HashMap<&str, Vec<&JobRecord>> = HashMap::new();
        for (_, record) in history.results() {
            let Record::Job(job) = record else { continue };
            for call in &job.calls {
                jobs.entry(call).or_default().push(job);
            }
        }
        let (calls, tables, numbers_of_inputs, planned, names) = Default::default();
        let inputs = Vec::new();
        Self { storage, history, calls, tables, inputs, numbers_of_inputs, jobs, planned, names }
    }

    /// Gives calls their numbers.
    pub(super) fn number_calls<'n>(&mut self, names: impl Iterator<Item = &'n String>) {
        self.calls = names.enumerate().map(|(at, name)| (name.clone(), at)).collect();
    }

    /// Gives tables their numbers.
    pub(super) fn number_tables(&mut self, names: impl Iterator<Item = String>) {
        self.tables = names.enumerate().map(|(at, name)| (name, at)).collect();
    }

    /// The number of a call.
    pub(super) fn call(&self, name: &str) -> Option<usize> {
        self.calls.get(name).copied()
    }

    /// The inputs that were asked for.
    pub(super) fn inputs(self) -> Vec<PageInput> {
        self.inputs
    }

    /// The name that an input of a call has as a task input: in the plan, or in the first job that has both.
    pub(super) fn role(&self, call: &str, number: usize, digest: &Digest) -> Option<String> {
        if let Some(names) = self.planned.get(&(call.to_owned(), number)) {
            return either(names.iter().cloned());
        }
        self.jobs.get(call)?.iter().find_map(|job| role_in(job, digest))
    }

    /// The recorded result with this short name.
    pub(super) fn subject(&self, name: &str) -> Option<Subject<'a>> {
        self.file(&Entry::of_short(name)?.file(0))
    }

    /// The recorded file of this name.
    pub(super) fn file(&self, name: &str) -> Option<Subject<'a>> {
        self.history.subject(name)
    }

    /// A value with this name in the storage, or else the first recorded one with its contents.
    pub(super) fn value(&mut self, name: String, file: &str, digest: &Digest) -> PageValue {
        let subject = self.history.recorded(file, digest).map(|it| self.on_page(it, file));
        let number = subject.map_or(0, |subject| subject.number);
        let from = subject.and_then(|subject| self.origin(subject));
        let file = match subject {
            // A member of a directory has a name that is longer.
            Some(subject) if !file.starts_with(&subject.file()) => {
                // Another file with the same contents is whole.
                let member = split_member(file).1.filter(|_| subject.digest != digest);
                let member = member.map(|member| format!("/{member}"));
                Some(format!("{}{}", subject.file(), member.unwrap_or_default()))
            }
            _ => Some(file.to_owned()).filter(|file| !file.is_empty()),
        };
        let (sha1, size) = (digest.sha1.full(), digest.total());
        PageValue { name, file, sha1, size, from, role: None, number }
    }

    /// The same output of a call on the page, if its own call is not there. Its own call may belong to another commit that
    /// the reader was taken over from. `file` is the name under which it was read.
    fn on_page(&self, subject: Subject<'a>, file: &str) -> Subject<'a> {
        if !matches!(subject.entry, Entry::Call(_)) || self.call(&subject.entry.short()).is_some() {
            return subject;
        }
        let wanted = parts(split_member(file).0);
        let same = self.history.with_contents(subject.digest);
        // Different calls may have equal contents.
        same.filter(|it| self.call(&it.entry.short()).is_some())
            .max_by_key(|it| parts(&it.file()) == wanted)
            .unwrap_or(subject)
    }

    /// Returns the maker of a recorded file.
    fn origin(&mut self, subject: Subject<'a>) -> Option<ValueOrigin> {
        match (subject.entry, subject.record) {
            (Entry::Call(name), _) => self.call(&name.short()).map(ValueOrigin::Call),
            (Entry::Table(name), _) => {
                self.tables.get(&name.short()).copied().map(ValueOrigin::Table)
            }
            (Entry::TaskInput(_), _) => Some(ValueOrigin::Input(self.number_of_input(subject))),
            (Entry::Job(_), Record::Job(job)) => {
                let output = job.outputs.get(subject.number)?;
                let maker = self.history.recorded(&output.file, &output.digest)?;
                match maker.entry {
                    Entry::Job(_) => None,
                    _ => self.origin(maker),
                }
            }
            (Entry::Job(_), _) => None,
        }
    }

    fn number_of_input(&mut self, subject: Subject<'_>) -> usize {
        let file = subject.file();
        if let Some(number) = self.numbers_of_inputs.get(&file) {
            return *number;
        }
        let digest = subject.digest;
        let (sha1, size) = (digest.sha1.full(), digest.total());
        self.inputs.push(PageInput { file: file.clone(), sha1, size });
        self.numbers_of_inputs.insert(file, self.inputs.len() - 1);
        self.inputs.len() - 1
    }

    /// Returns the maker of a file with this name in the storage, in words, and the name of the output of that.
    pub(super) fn maker(&mut self, file: &str, digest: &Digest) -> (String, String) {
        let Some(subject) = self.history.recorded(file, digest).map(|it| self.on_page(it, file))
        else {
            return Default::default();
        };
        match subject.record {
            Record::Call(call) => {
                let output = self.name_of(&subject.entry.short(), subject.number, true);
                (call.computation.to_string(), output)
            }
            Record::Table(_) => ("a sweep".to_owned(), "table".to_owned()),
            Record::TaskInput(_) | Record::Job(_) => Default::default(),
        }
    }

    /// The name of an input or output in the computation of a call; or its number, if names are not known any more.
    fn name_of(&mut self, call: &str, number: usize, is_output: bool) -> String {
        let directory = call.rsplit_once('/').map_or(call, |(directory, _)| directory);
        if !self.names.contains_key(directory) {
            let name = ResultName::of_short(call);
            let names = name.map_or_else(Default::default, |name| {
                [self.storage.calls().input_names(&name), self.storage.calls().output_names(&name)]
            });
            self.names.insert(directory.to_owned(), names);
        }
        let names = self.names[directory][usize::from(is_output)].as_ref();
        names.and_then(|names| names.get(number)).cloned().unwrap_or_else(|| format!("{number:02}"))
    }

    /// Takes the names of inputs and outputs from a task, since a storage may not know them, and the names of task inputs, since equal
    /// contents may belong to several.
    pub(super) fn add_names(&mut self, evaluation: &Evaluation) {
        for (call, _) in evaluation.plan.calls() {
            let (Some(computation), Some(outcome)) =
                (evaluation.computation(call), evaluation.outcome(call))
            else {
                continue;
            };
            let short = outcome.name().short();
            for (number, source) in evaluation.plan.inputs(call).iter().enumerate() {
                let names = self.planned.entry((short.clone(), number)).or_default();
                if let Source::Input(input) = source {
                    names.insert(evaluation.task.inputs[input.index()].to_string());
                }
            }
            let directory = short.rsplit_once('/').map_or("", |(directory, _)| directory);
            if !self.names.contains_key(directory) {
                let names = [&computation.inputs, &computation.outputs];
                let names =
                    names.map(|names| Some(names.iter().map(ToString::to_string).collect()));
                self.names.insert(directory.to_owned(), names);
            }
        }
    }

    /// The shapes of the drawing of a task, with the numbers of their calls.
    pub(super) fn shapes_of_task(&self, task: &TaskScope<'_>) -> Vec<PageShape> {
        let mut shapes = Vec::with_capacity(task.shapes.len());
        for (label, calls) in &task.shapes {
            let names = calls.iter().filter_map(|call| name_of(task.evaluation, *call));
            let calls = names.filter_map(|name| self.call(&name)).collect();
            shapes.push(PageShape { label: label.clone(), calls });
        }
        shapes
    }
}

impl PageValue {
    /// A value that is not there, whose contents are not known.
    pub(super) const fn unknown(name: String, file: Option<String>) -> Self {
        Self { name, file, sha1: String::new(), size: 0, from: None, role: None, number: 0 }
    }
}
