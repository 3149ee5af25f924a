//! The log: calls that succeeded or failed, by time.

use std::collections::{BTreeSet, HashMap};

use jiff::Timestamp;
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use serde::Serialize;

use super::texts::{TextsOfCalls, may_be_texts};
use super::{History, InputTexts, OriginalExecution, TakenOver};
use ce_model::digest::{DIRTY, Digest};
use ce_model::suggest::nearest;
use ce_storage::records::{CallRecord, FailureRecord, Origin, SuspensionState};
use ce_storage::{
    Entry, Record, RecordState, ResultName, Storage, StorageError, Survey, Suspension,
};

/// A call that has succeeded, or whose last execution failed. Its JSON is a line of `ce log
/// --json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Past {
    /// The end of its execution, or else the time of its record, such as that of a take-over. A results repository keeps neither.
    pub at: Option<Timestamp>,
    /// The execution that made its outputs, also if they were taken over.
    #[serde(skip)]
    pub made: OriginalExecution,
    /// The short name of the call.
    pub name: String,
    /// The name of the computation.
    pub computation: String,
    /// The version of the computation, as in the name.
    pub version: String,
    /// The commit with the computation, or the one below its uncommitted changes.
    pub commit: String,
    /// Whether the computation had uncommitted changes.
    pub dirty: bool,
    /// Its inputs.
    pub inputs: Vec<Digest>,
    /// Those that may be texts, each in its place.
    #[serde(skip)]
    pub(super) may_be_texts: Vec<Option<Digest>>,
    /// Those of its inputs that are short texts.
    pub texts: InputTexts,
    /// The duration of its execution, in seconds, unless it was adopted or taken over.
    pub seconds: Option<f64>,
    /// Its CPU time in seconds, if it was measured.
    pub cpu_seconds: Option<f64>,
    /// Its peak memory in bytes, if it was measured.
    pub peak_bytes: Option<u64>,
    /// What it has asked for: lines of a file `resources`.
    pub resources: Box<[String]>,
    /// The host that recorded it, if that is known.
    pub host: Option<String>,
    /// Whether it was executed in another storage, and is here by way of a results repository.
    pub shared: bool,
    /// Whether an output of it is deliberately not here.
    pub away: bool,
    /// The source of its outputs, if they were taken over.
    pub taken_over: Option<TakenOver>,
    /// The reason of its failure, if it failed.
    pub failed: Option<String>,
    /// When it was begun, if it is suspended.
    pub suspended: Option<Timestamp>,
}

/// A selection of calls: those that meet all conditions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    /// Of this computation.
    pub computation: Option<String>,
    /// Of a commit or version that begins with this.
    pub commit: Option<String>,
    /// Failed ones only.
    pub failed: bool,
    /// Only those that ran at least this many seconds.
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

    fn of_call(storage: &Storage, name: &ResultName, record: CallRecord) -> Self {
        let made = OriginalExecution::of(storage, &record);
        // A call that was taken over was not executed.
        let own = match made.taken_over.is_some() {
            true => OriginalExecution {
                at: record.recorded.as_ref().map(|it| it.at),
                ..OriginalExecution::default()
            },
            false => made.clone(),
        };
        Self {
            at: own.at,
            name: name.short(),
            computation: record.computation.to_string(),
            version: name.version().to_owned(),
            commit: record.commit.full().to_owned(),
            dirty: record.dirty,
            seconds: own.seconds,
            cpu_seconds: own.cpu_seconds,
            peak_bytes: own.peak_bytes,
            resources: own.resources,
            may_be_texts: may_be_texts(&record),
            inputs: record.inputs,
            texts: InputTexts::default(),
            host: record.recorded.map(|it| it.host),
            shared: matches!(record.origin, Origin::Shared(_)),
            away: false,
            taken_over: made.taken_over.clone(),
            failed: None,
            suspended: None,
            made,
        }
    }

    fn of_failure(name: &ResultName, record: FailureRecord) -> Self {
        Self {
            at: Some(record.recorded.at),
            name: name.short(),
            computation: record.computation.to_string(),
            version: name.version().to_owned(),
            commit: record.commit.full().to_owned(),
            dirty: name.version().starts_with(DIRTY),
            may_be_texts: record.inputs.iter().copied().map(Some).collect(),
            inputs: record.inputs,
            texts: InputTexts::default(),
            seconds: Some(record.seconds),
            cpu_seconds: None,
            peak_bytes: None,
            resources: Box::default(),
            made: OriginalExecution {
                at: Some(record.recorded.at),
                seconds: Some(record.seconds),
                host: Some(record.recorded.host.clone()),
                ..OriginalExecution::default()
            },
            host: Some(record.recorded.host),
            shared: false,
            away: false,
            taken_over: None,
            failed: Some(record.reason),
            suspended: None,
        }
    }
}

impl Past {
    fn of_suspension(Suspension { name, record }: Suspension) -> Self {
        Self {
            at: Some(record.recorded.at),
            name: name.short(),
            computation: record.computation.to_string(),
            version: name.version().to_owned(),
            commit: record.commit.full().to_owned(),
            dirty: record.dirty,
            may_be_texts: record.digests().into_iter().map(Some).collect(),
            inputs: record.digests(),
            texts: InputTexts::default(),
            seconds: None,
            cpu_seconds: None,
            peak_bytes: None,
            resources: Box::default(),
            made: OriginalExecution {
                at: Some(record.recorded.at),
                host: Some(record.recorded.host.clone()),
                ..OriginalExecution::default()
            },
            host: Some(record.recorded.host),
            shared: false,
            away: false,
            taken_over: None,
            failed: None,
            suspended: Some(record.since),
        }
    }
}

/// Returns the selected calls of a storage, the newest last. Spoiled records, and those that do not
/// fit their names, are left out: `ce verify` reports them.
///
/// # Errors
///
/// Fails if a record cannot be read, or only a newer version can.
pub fn log(storage: &Storage, filter: &Filter) -> Result<Vec<Past>, StorageError> {
    let entries = if filter.failed { Vec::new() } else { Survey::new(storage).entries()? };
    let read = |entry: &Entry| match storage.records().read_entry(entry)? {
        RecordState::Valid(Record::Call(record)) if entry.fits_call(&record) => Ok(Some(record)),
        _ => Ok(None),
    };
    let mut log = unfinished(storage)?;
    log.extend(succeeded(storage, &entries.iter().collect::<Vec<_>>(), read)?);
    log.retain(|past| filter.has(past));
    // Sorting is stable, and the records are in the order of their names.
    log.sort_by_key(|past| past.at);
    let surplus = filter.most.map_or(0, |most| log.len().saturating_sub(most));
    let mut log = log.split_off(surplus);
    add_texts(storage, &mut log);
    Ok(log)
}

/// Returns why no call of a storage matches, as far as the computation tells: the storage has none of it.
///
/// # Errors
///
/// Fails if a record cannot be read, or only a newer version can.
pub fn why_none(storage: &Storage, filter: &Filter) -> Result<Option<String>, StorageError> {
    let Some(wanted) = &filter.computation else { return Ok(None) };
    let all = log(storage, &Filter::default())?;
    let names: BTreeSet<String> = all.into_iter().map(|past| past.computation).collect();
    if names.contains(wanted) {
        return Ok(None);
    }
    let meant = nearest(wanted, &names.into_iter().collect::<Vec<_>>());
    let meant = meant.map(|name| format!("; did you mean {name}?")).unwrap_or_default();
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
    entries: &[&Entry],
    read: impl Fn(&Entry) -> Result<Option<CallRecord>, StorageError> + Sync,
) -> Result<Vec<Past>, StorageError> {
    let marked = Survey::new(storage).marked_away()?;
    let past = |entry: &&Entry| {
        let Entry::Call(name) = entry else { return Ok(None) };
        let Some(record) = read(entry)? else { return Ok(None) };
        let (mut away, outputs) =
            (false, if marked.contains(name) { record.outputs.len() } else { 0 });
        for number in 0..outputs {
            away |= !storage.has(&name.output(number))?;
        }
        Ok(Some(Past { away, ..Past::of_call(storage, name, record) }))
    };
    let calls: Vec<Option<Past>> =
        entries.par_iter().map(past).collect::<Result<_, StorageError>>()?;
    Ok(calls.into_iter().flatten().collect())
}

/// Adds the texts that calls read.
fn add_texts(storage: &Storage, log: &mut [Past]) {
    let calls = log.iter().map(|past| (&*past.may_be_texts, past.shared));
    let mut texts = TextsOfCalls::read(storage, calls);
    for past in log {
        past.texts = texts.of(storage, &past.name, &past.may_be_texts);
    }
}

impl History {
    /// Returns the calls that were read and are wanted, and those that have failed or are suspended, the newest last. Reads
    /// no record again.
    ///
    /// # Errors
    ///
    /// Fails if the record of a call that has failed or is suspended cannot be read, or only a newer version can.
    pub fn log(
        &self,
        storage: &Storage,
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
        log.extend(succeeded(storage, &entries, |entry| {
            Ok(records.get(entry).map(|record| (*record).clone()))
        })?);
        log.sort_by_key(|past| past.at);
        add_texts(storage, &mut log);
        Ok(log)
    }
}
