//! The log: calls that succeeded, failed or are suspended, by time, and the executions that made them.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet, HashMap};

use ce_model::digest::{DIRTY, Digest, ObjectId};
use ce_model::name::ComputationName;
use ce_model::resources::{LimitedAttempt, Resources};
use ce_model::shared_text::SharedText;
use ce_model::suggest::UnknownName;
use ce_storage::records::{
    CallRecord, Execution, FailureRecord, Origin, Provenance, SuspensionRecord, SuspensionState,
};
use ce_storage::{
    Entry, Holder, PastCallRef, Record, ResultName, Storage, StorageError, Survey, Suspension,
};
use jiff::Timestamp;
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use serde::Serialize;

use crate::History;
use crate::recorded_points::{InputTexts, TextsOfCalls, may_be_texts, suspended_texts};

/// A call that has succeeded, or whose last execution failed. Its JSON is a line of `ce log
/// --json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Past {
    /// The end of its execution, or else the time of its record, for example of a take-over. A results repository keeps
    /// neither.
    pub at: Option<Timestamp>,
    /// The execution that made its outputs, also if they were taken over.
    #[serde(skip)]
    pub made: OriginalExecution,
    /// The short name of the call.
    pub name: String,
    /// The name of the computation.
    pub computation: String,
    /// The version of the computation, as in the name.
    pub version: SharedText,
    /// The commit with the computation, or the one below its uncommitted changes.
    pub commit: SharedText,
    /// Whether the computation had uncommitted changes.
    pub dirty: bool,
    pub inputs: Vec<Digest>,
    /// The inputs that may be texts, each in its place.
    #[serde(skip)]
    pub(super) may_be_texts: Vec<Option<Digest>>,
    /// Its inputs that are short texts.
    pub texts: InputTexts,
    /// The duration of its execution, in seconds, unless it was adopted or taken over.
    pub seconds: Option<f64>,
    /// Its CPU time in seconds, if it was measured.
    pub cpu_seconds: Option<f64>,
    /// Its peak memory in bytes, if it was measured.
    pub peak_bytes: Option<u64>,
    /// The resources that it has requested: lines of a file `resources`.
    pub resources: Box<[String]>,
    /// The executions before it that a limit has ended.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub attempts: Box<[LimitedAttempt]>,
    /// The host that recorded it, if that is known.
    pub host: Option<SharedText>,
    /// The published execution, if no record says when it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published: Option<Box<PublishedExecution>>,
    /// Whether it was executed in another storage, and is here by way of a results repository.
    pub shared: bool,
    /// Whether an output of it is deliberately not here.
    pub away: bool,
    /// The source of its outputs, if they were taken over.
    pub taken_over: Option<Box<TakenOver>>,
    /// The reason of its failure, if it failed.
    pub failed: Option<String>,
    /// When it was begun, if it is suspended.
    pub suspended: Option<Timestamp>,
}

/// The number of records that are read at once, by all cores: what cores collect is in memory twice.
const BATCH: usize = 1024;

/// A selection of calls by conditions, which must all hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    /// Only calls of this computation.
    pub computation: Option<String>,
    /// Only calls of a commit or version that begins with this.
    pub commit: Option<String>,
    /// Failed ones only.
    pub failed: bool,
    /// Only calls that ran at least this many seconds.
    pub slow: Option<f64>,
    /// At most this many, the newest.
    pub most: Option<usize>,
}

impl Filter {
    /// Whether there is a condition but the number.
    pub const fn is_selective(&self) -> bool {
        self.computation.is_some() || self.commit.is_some() || self.failed || self.slow.is_some()
    }

    fn has(&self, past: &Past) -> bool {
        self.computation.as_ref().is_none_or(|name| *name == past.computation)
            && self.commit.as_ref().is_none_or(|commit| past.is_at(commit))
            && (!self.failed || past.failed.is_some())
            && self.slow.is_none_or(|slow| past.seconds.is_some_and(|seconds| seconds >= slow))
    }
}

impl Past {
    /// Whether its commit or version begins with this.
    fn is_at(&self, commit: &str) -> bool {
        self.version.starts_with(commit) || !self.dirty && self.commit.starts_with(commit)
    }

    fn of_call(
        storage: &Storage,
        published: &FirstPublished<'_>,
        name: &ResultName,
        record: CallRecord,
    ) -> Self {
        let made = OriginalExecution::find(storage, &record).or_published(|| published(&record));
        // A call that was taken over was not executed.
        let own = if made.taken_over.is_some() {
            OriginalExecution {
                at: record.recorded.as_ref().map(|it| it.at),
                ..OriginalExecution::default()
            }
        } else {
            made.clone()
        };
        Self {
            at: own.at.or(record.recorded.as_ref().map(|it| it.at)),
            name: name.short(),
            computation: record.computation.to_string(),
            version: name.version().into(),
            commit: record.commit.full().into(),
            dirty: record.dirty,
            seconds: own.seconds,
            cpu_seconds: own.cpu_seconds,
            peak_bytes: own.peak_bytes,
            resources: own.resources,
            attempts: own.attempts,
            may_be_texts: may_be_texts(&record),
            inputs: record.inputs,
            texts: InputTexts::default(),
            host: record.recorded.map(|it| it.host),
            published: own.published,
            shared: matches!(record.origin, Origin::Shared(_)),
            away: false,
            taken_over: made.taken_over.clone(),
            failed: None,
            suspended: None,
            made,
        }
    }

    fn of_failure(name: &ResultName, record: FailureRecord) -> Self {
        let FailureRecord { computation, commit, inputs, failure, recorded, .. } = record;
        let seconds = Some(failure.seconds);
        Self {
            attempts: failure.attempts,
            dirty: name.version().starts_with(DIRTY),
            failed: Some(failure.reason),
            ..Self::unfinished(name, &computation, &commit, inputs, seconds, recorded)
        }
    }

    fn of_suspension(Suspension { name, record }: Suspension) -> Self {
        let inputs = record.digests();
        let SuspensionRecord { computation, commit, recorded, .. } = record;
        Self {
            dirty: record.dirty,
            suspended: Some(record.since),
            ..Self::unfinished(&name, &computation, &commit, inputs, None, recorded)
        }
    }

    /// A call without outputs. Its execution had taken this number of seconds when it was recorded.
    fn unfinished(
        name: &ResultName,
        computation: &ComputationName,
        commit: &ObjectId,
        inputs: Vec<Digest>,
        seconds: Option<f64>,
        recorded: Provenance,
    ) -> Self {
        let (at, host) = (Some(recorded.at), Some(recorded.host));
        Self {
            at,
            name: name.short(),
            computation: computation.to_string(),
            version: name.version().into(),
            commit: commit.full().into(),
            dirty: false,
            may_be_texts: inputs.iter().copied().map(Some).collect(),
            inputs,
            texts: InputTexts::default(),
            seconds,
            cpu_seconds: None,
            peak_bytes: None,
            resources: Box::default(),
            attempts: Box::default(),
            made: OriginalExecution {
                at,
                seconds,
                host: host.clone(),
                ..OriginalExecution::default()
            },
            host,
            published: None,
            shared: false,
            away: false,
            taken_over: None,
            failed: None,
            suspended: None,
        }
    }
}

/// Returns the selected calls of a storage, the newest last, and how many there are without a limit. Spoiled records,
/// and records that do not fit their names, are left out: `ce verify` reports them.
pub fn log(
    storage: &Storage,
    published: &FirstPublished<'_>,
    filter: &Filter,
) -> Result<(Vec<Past>, usize), StorageError> {
    let entries = if filter.failed { Vec::new() } else { Survey::new(storage).entries()? };
    let mut log = unfinished(storage)?;
    log.extend(succeeded(storage, published, &entries.iter().collect::<Vec<_>>(), |entry| {
        Ok(match storage.records().read_fitting(entry)? {
            Some(Record::Call(record)) => Some(record),
            _ => None,
        })
    })?);
    log.retain(|past| filter.has(past));
    // Sorting is stable, and the records are in the order of their names.
    log.sort_by_key(|past| past.at);
    let all = log.len();
    let mut log = log.split_off(filter.most.map_or(0, |most| all.saturating_sub(most)));
    add_texts(storage, &mut log);
    Ok((log, all))
}

/// Returns why no call of a storage matches, if the reason is the computation: the storage has no call of it.
pub fn why_none(storage: &Storage, filter: &Filter) -> Result<Option<String>, StorageError> {
    let Some(wanted) = &filter.computation else { return Ok(None) };
    let (all, _) = log(storage, &|_| None, &Filter::default())?;
    let names: BTreeSet<String> = all.into_iter().map(|past| past.computation).collect();
    if names.contains(wanted) {
        return Ok(None);
    }
    let meant = UnknownName::new(wanted, names).meant();
    let meant = meant.map(|question| format!("; {question}")).unwrap_or_default();
    Ok(Some(format!("the storage has none of the computation {wanted}{meant}")))
}

/// Returns the calls that have failed or are suspended, without the texts that they read.
fn unfinished(storage: &Storage) -> Result<Vec<Past>, StorageError> {
    let failures = Survey::new(storage).failures()?.into_iter();
    let mut log: Vec<Past> =
        failures.map(|(name, record)| Past::of_failure(&name, record)).collect();
    let suspended = storage.suspensions().all()?.into_iter();
    let suspended = suspended.filter(|it| it.record.state != SuspensionState::Failed);
    log.extend(suspended.map(Past::of_suspension));
    Ok(log)
}

/// Returns the calls among these results that have a record, without the texts that they read.
fn succeeded(
    storage: &Storage,
    published: &FirstPublished<'_>,
    entries: &[&Entry],
    read: impl Fn(&Entry) -> Result<Option<CallRecord>, StorageError> + Sync,
) -> Result<Vec<Past>, StorageError> {
    let marked = Survey::new(storage).marked_away()?;
    let past = |entry: &&Entry| {
        let Entry::Call(name) = entry else { return Ok(None) };
        let Some(record) = read(entry)? else { return Ok(None) };
        let mut away = false;
        if marked.contains(name) {
            for number in 0..record.outputs.len() {
                away |= !storage.has(&name.output(number))?;
            }
        }
        Ok(Some(Past { away, ..Past::of_call(storage, published, name, record) }))
    };
    let mut calls = Vec::new();
    for batch in entries.chunks(BATCH) {
        let read = batch.par_iter().filter_map(|entry| past(entry).transpose());
        calls.extend(read.collect::<Result<Vec<Past>, StorageError>>()?);
    }
    Ok(calls)
}

/// Adds the texts that calls read.
fn add_texts(storage: &Storage, log: &mut [Past]) {
    let calls = log.iter().map(|past| (&*past.may_be_texts, past.shared));
    let mut texts = TextsOfCalls::read(storage, calls);
    for past in log {
        past.texts = texts.find_texts(storage, &past.name, &past.may_be_texts);
    }
}

impl History {
    /// Returns the wanted ones of the calls that were read, and the calls that have failed or are suspended, the newest
    /// last. Reads no record again.
    ///
    /// # Errors
    ///
    /// Fails if the record of a call that has failed or is suspended cannot be read, or only a newer version can.
    pub fn log(
        &self,
        storage: &Storage,
        published: &FirstPublished<'_>,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Result<Vec<Past>, StorageError> {
        let calls = self.results().iter().filter_map(|(entry, record)| match record {
            Record::Call(call) if is_wanted(&entry.short()) => Some((entry, call)),
            _ => None,
        });
        let records: HashMap<&Entry, &CallRecord> = calls.collect();
        let entries = self.results().iter().map(|(entry, _)| entry);
        let entries: Vec<&Entry> = entries.filter(|it| records.contains_key(it)).collect();
        let mut log = unfinished(storage)?;
        log.retain(|past| is_wanted(&past.name));
        log.extend(succeeded(storage, published, &entries, |entry| {
            Ok(records.get(entry).map(|record| (*record).clone()))
        })?);
        log.sort_by_key(|past| past.at);
        add_texts(storage, &mut log);
        Ok(log)
    }
}

/// The greatest number of take-overs, one after the other, that are followed.
const MAX_STEPS: usize = 1000;

/// The source of outputs that were taken over.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TakenOver {
    /// The short name of the result that they were taken over from.
    pub from: String,
    /// The short name of the result of the execution that made them, as far as records lead to it.
    #[serde(skip)]
    pub first: String,
    /// The end of the execution that made them.
    pub executed: Timestamp,
    /// The host of the execution, if it still has a record.
    pub host: Option<SharedText>,
    /// Whether it was not isolated, and taken over because its tree was trusted.
    pub trusted_tree: bool,
    /// The duration of the execution, in seconds.
    pub seconds: f64,
    /// Its CPU time in seconds, if it was measured.
    pub cpu_seconds: Option<f64>,
    /// Its peak memory in bytes, if it was measured.
    pub peak_bytes: Option<u64>,
}

/// An execution that made the recorded outputs, and whose end is in the ledger.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct PublishedExecution {
    /// When it ended.
    pub end: Timestamp,
    /// The author of this statement: a signer, `here` or `unsigned`.
    pub by: String,
    /// The machine, in words, if it is published.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<SharedText>,
    /// The share of its processors that others had, in percent and rounded up, if that is published.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub others_percent: Option<u32>,
}

/// Finds the first published execution of a call.
pub type FirstPublished<'a> = dyn Fn(&CallRecord) -> Option<PublishedExecution> + Sync + 'a;

/// The execution that made the outputs of a call, wherever these were taken over from. All reports of it take it from here.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OriginalExecution {
    /// Its end, or else the time of the record. Records from a results repository have neither: then it is the
    /// published time.
    pub at: Option<Timestamp>,
    /// Its duration in seconds, unless the outputs were adopted or are from another storage.
    pub seconds: Option<f64>,
    /// Its CPU time in seconds, if it was measured.
    pub cpu_seconds: Option<f64>,
    /// Its peak memory in bytes, if it was measured.
    pub peak_bytes: Option<u64>,
    /// The resources that it has requested: lines of a file `resources`.
    pub resources: Box<[String]>,
    /// The executions before it that a limit has ended.
    pub attempts: Box<[LimitedAttempt]>,
    /// Its host, if that is known.
    pub host: Option<SharedText>,
    /// Its machine, in words, if that was recorded or published.
    pub machine: Option<SharedText>,
    /// The share of its processors that others had, if that was recorded or published.
    pub others: Option<f64>,
    /// The published execution, if only that says when it ended.
    pub published: Option<Box<PublishedExecution>>,
    /// The result that the outputs were taken over from, if they were.
    pub taken_over: Option<Box<TakenOver>>,
}

impl OriginalExecution {
    /// Finds the execution that made a call's outputs.
    pub fn find(storage: &Storage, record: &CallRecord) -> Self {
        let taken_over = TakenOver::find(storage, record);
        // The record of a result from elsewhere says when it came here.
        let recorded =
            record.recorded.as_ref().filter(|_| !matches!(record.origin, Origin::Shared(_)));
        // A take-over copies the execution from the record, except the host.
        let execution = record.execution();
        let (cpu_seconds, peak_bytes) = execution.map(used).unwrap_or_default();
        Self {
            at: execution.map(|it| it.end).or(recorded.map(|it| it.at)),
            seconds: record.seconds(),
            cpu_seconds,
            peak_bytes,
            resources: execution.map(|it| it.resources.clone()).unwrap_or_default(),
            attempts: execution.map(|it| it.attempts.clone()).unwrap_or_default(),
            host: match &taken_over {
                Some(source) => source.host.clone(),
                None => recorded.map(|it| it.host.clone()),
            },
            machine: execution.and_then(|it| it.machine.clone()),
            others: execution.and_then(|it| Some(it.host_use.as_ref()?.share())),
            published: None,
            taken_over,
        }
    }

    /// Takes its end and its machine from a published execution if no record has its end.
    pub fn or_published(mut self, first: impl FnOnce() -> Option<PublishedExecution>) -> Self {
        if self.at.is_none()
            && let Some(published) = first()
        {
            self.at = Some(published.end);
            self.machine.clone_from(&published.machine);
            self.others = published.others_percent.map(|it| f64::from(it) / 100.0);
            self.published = Some(Box::new(published));
        }
        self
    }
}

/// The CPU time in seconds and the peak memory in bytes of an execution. What its tasks have used is not known.
fn used(execution: &Execution) -> (Option<f64>, Option<u64>) {
    let measured = Some(execution).filter(|it| it.tasks.is_empty());
    let cpu_seconds = measured.map(|it| it.user_seconds + it.system_seconds);
    (cpu_seconds, measured.map(|it| it.peak_bytes))
}

impl TakenOver {
    /// Finds the execution of a call's outputs; `None` unless they were taken over.
    pub fn find(storage: &Storage, record: &CallRecord) -> Option<Box<Self>> {
        let execution = record.execution()?;
        let (from, trusted_tree) = (execution.taken_over.clone()?, execution.trusted_tree);
        let mut host = None;
        let (mut first, mut source) = (from.clone(), Some(from.clone()));
        for _ in 0..MAX_STEPS {
            // A record that cannot be read ends the search.
            let entry = source.take().and_then(|source| Entry::of_short(&source));
            let Some(Entry::Call(name)) = entry else { break };
            let Ok(Some(earlier)) = Survey::new(storage).record_or_tombstone(&name) else { break };
            source = earlier.execution().and_then(|execution| execution.taken_over.clone());
            match &source {
                Some(source) => first.clone_from(source),
                None => host = earlier.recorded.map(|it| it.host),
            }
        }
        let (cpu_seconds, peak_bytes) = used(execution);
        let seconds = record.seconds().unwrap_or_default();
        let executed = execution.end;
        Some(Box::new(Self {
            from,
            first,
            executed,
            host,
            trusted_tree,
            seconds,
            cpu_seconds,
            peak_bytes,
        }))
    }
}

/// The earlier calls, as far as they can be read.
#[derive(Debug)]
pub struct EarlierCalls {
    /// The newest first.
    pub calls: Vec<ce_storage::PastCall>,
    /// The calls whose last execution failed, the newest first.
    pub failures: Vec<(ResultName, FailureRecord)>,
    /// The number of unreadable files and directories, and of spoiled records.
    pub unread: usize,
}

/// The greatest number of records that are read for the usual duration.
const SAMPLE: usize = 32;

/// The usual duration of calls of a computation, in seconds: the median of a few earlier calls, if there are any.
pub fn usual_seconds(storage: &Storage, computation: &ComputationName) -> Option<f64> {
    let survey = Survey::new(storage);
    let traces = survey.traces(computation, &mut 0);
    let step = traces.len().div_ceil(SAMPLE).max(1);
    let calls = traces.iter().step_by(step).filter_map(|trace| survey.past_call(trace).ok()?);
    let mut seconds: Vec<f64> = calls.filter_map(|call| call.record.seconds()).collect();
    seconds.sort_unstable_by(f64::total_cmp);
    seconds.get(seconds.len() / 2).copied()
}

/// Reads all records and tombstones of calls of these computations, at any commit, and all failures.
pub fn earlier<'a>(
    storage: &Storage,
    computations: impl Iterator<Item = &'a ComputationName>,
) -> EarlierCalls {
    let mut unread = 0;
    let traces: Vec<PastCallRef> =
        computations.flat_map(|name| Survey::new(storage).traces(name, &mut unread)).collect();
    let mut calls: Vec<ce_storage::PastCall> = traces
        .par_iter()
        .filter_map(|trace| Survey::new(storage).past_call(trace).ok().flatten())
        .collect();
    unread += traces.len() - calls.len();
    calls.sort_by_key(|call| Reverse(call.record.recorded.as_ref().map(|it| it.at)));
    let mut failures = Survey::new(storage).failures().unwrap_or_else(|_| {
        unread += 1;
        Vec::new()
    });
    failures.sort_by_key(|(_, failure)| Reverse(failure.recorded.at));
    EarlierCalls { calls, failures, unread }
}

/// Calls of a computation with the same request, and the peak usage of one of them. Its JSON is a line of `ce log
/// --resources --json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ResourceUsage {
    /// The name of the computation.
    pub computation: String,
    /// The resources that they have requested, in the first attempt of each: lines of a file `resources`.
    pub resources: Box<[String]>,
    /// The number of calls.
    pub calls: usize,
    /// The most attempts that one has taken.
    pub attempts: usize,
    /// The most processors that one has used on average; `None` if all were too short to measure.
    pub cpus: Option<f64>,
    /// The most memory that a process of one has used, in bytes.
    pub peak_bytes: u64,
    /// The duration of the longest one, in seconds.
    pub seconds: f64,
}

/// Compares the requested and the used resources of calls, by computation. Calls that failed or were not executed are
/// left out.
pub fn resource_usage(log: &[Past]) -> Vec<ResourceUsage> {
    let mut groups: BTreeMap<(&str, Box<[String]>), ResourceUsage> = BTreeMap::new();
    for past in log {
        let Past { computation, resources, attempts, seconds, cpu_seconds, peak_bytes, .. } = past;
        let (Some(seconds), Some(cpu_seconds), Some(peak_bytes)) =
            (*seconds, *cpu_seconds, *peak_bytes)
        else {
            continue;
        };
        let resources = match &**attempts {
            [] => resources.clone(),
            attempts => Resources::of_lines(resources).before(attempts).lines().into(),
        };
        let group =
            groups.entry((computation, resources.clone())).or_insert_with(|| ResourceUsage {
                computation: computation.clone(),
                resources,
                calls: 0,
                attempts: 0,
                cpus: None,
                peak_bytes: 0,
                seconds: 0.0,
            });
        group.calls += 1;
        group.attempts = group.attempts.max(attempts.len() + 1);
        if seconds > 0.0 {
            let cpus = cpu_seconds / seconds;
            group.cpus = Some(group.cpus.map_or(cpus, |most| most.max(cpus)));
        }
        group.peak_bytes = group.peak_bytes.max(peak_bytes);
        group.seconds = group.seconds.max(seconds);
    }
    groups.into_values().collect()
}

/// A call that is suspended, and its current state.
#[derive(Clone, Debug)]
pub struct SuspendedFact {
    /// The call.
    pub suspension: Suspension,
    /// The run that executes it just now.
    pub holder: Option<Holder>,
    /// The short texts that it reads, such as the levels of a point.
    pub texts: InputTexts,
}

impl SuspendedFact {
    /// All values of [`SuspendedFact::state`].
    pub const STATES: [&'static str; 4] = ["suspended", "executing", "interrupted", "failed"];

    /// Returns the state of the call in a word: interrupted if its run has died.
    pub const fn state(&self) -> &'static str {
        let [suspended, executing, interrupted, failed] = Self::STATES;
        match (&self.holder, self.suspension.record.state) {
            (Some(_), _) => executing,
            (None, SuspensionState::Executing) => interrupted,
            (None, SuspensionState::Suspended) => suspended,
            (None, SuspensionState::Failed) => failed,
        }
    }
}

/// Returns the calls that are suspended, in the order of their computations and of the texts that they read. Reads the index of them and short task inputs, and no results.
pub fn suspended(storage: &Storage) -> Result<Vec<SuspendedFact>, StorageError> {
    let all = storage.suspensions().all()?;
    let texts = suspended_texts(storage, &all);
    let facts = all.into_iter().zip(texts).map(|(suspension, texts)| {
        let holder = storage.leases().holder(&suspension.name);
        SuspendedFact { suspension, holder, texts }
    });
    let mut facts: Vec<SuspendedFact> = facts.collect();
    facts.sort_by(|a, b| {
        let [one, other] = [a, b].map(|it| &it.suspension);
        let computations = one.record.computation.cmp(&other.record.computation);
        let texts = || {
            let pairs = a.texts.iter().zip(b.texts.iter());
            let mut orders = pairs.map(|((_, one), (_, other))| by_number(one, other));
            orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        };
        computations.then_with(texts).then_with(|| one.name.short().cmp(&other.name.short()))
    });
    Ok(facts)
}

/// Compares texts: as numbers if both are numbers.
fn by_number(one: &str, other: &str) -> Ordering {
    match (one.parse::<f64>(), other.parse::<f64>()) {
        (Ok(a), Ok(b)) => a.total_cmp(&b).then_with(|| one.cmp(other)),
        // Numbers come first, so that this is an order.
        (Ok(_), Err(_)) => Ordering::Less,
        (Err(_), Ok(_)) => Ordering::Greater,
        (Err(_), Err(_)) => one.cmp(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn past(computation: &str, lines: &[&str], used: Option<(f64, f64, u64)>) -> Past {
        Past {
            at: None,
            made: OriginalExecution::default(),
            name: String::new(),
            computation: computation.to_owned(),
            version: "".into(),
            commit: "".into(),
            dirty: false,
            inputs: Vec::new(),
            may_be_texts: Vec::new(),
            texts: Default::default(),
            seconds: used.map(|it| it.0),
            cpu_seconds: used.map(|it| it.1),
            peak_bytes: used.map(|it| it.2),
            resources: lines.iter().map(|line| (*line).to_owned()).collect(),
            attempts: Box::default(),
            host: None,
            published: None,
            shared: false,
            away: false,
            taken_over: None,
            failed: None,
            suspended: None,
        }
    }

    #[test]
    fn the_peak_usage_of_calls_is_kept_for_each_request() {
        let four = ["cpus 4"];
        let log = [
            past("sort", &four, Some((2.0, 6.0, 100))),
            past("sort", &four, Some((4.0, 2.0, 300))),
            past("sort", &four, Some((0.0, 0.1, 200))),
            past("sort", &four, None),
            past("sort", &[], Some((0.0, 0.0, 7))),
            past("align", &[], Some((1.0, 1.0, 1))),
        ];
        let usage = resource_usage(&log);
        let usage: Vec<_> = usage
            .iter()
            .map(|it| {
                (&*it.computation, it.resources.len(), it.calls, it.cpus, it.peak_bytes, it.seconds)
            })
            .collect();
        assert_eq!(
            usage,
            [
                ("align", 0, 1, Some(1.0), 1, 1.0),
                ("sort", 0, 1, None, 7, 0.0),
                ("sort", 1, 3, Some(3.0), 300, 4.0),
            ]
        );
    }
}
