//! What was computed and what failed, in the order of time.

use jiff::{SignedDuration, Timestamp};

use super::TakenOver;
use crate::digest::Digest;
use crate::storage::record::{CallRecord, FailureRecord};
use crate::storage::{Entry, Read, Record, Storage, StorageError};
use crate::workflow::DIRTY;

/// A call that has succeeded, or has failed last.
#[derive(Clone, Debug, PartialEq)]
pub struct Past {
    /// When it ended; when it was recorded, if it was not executed.
    pub at: Timestamp,
    /// The name of the computation.
    pub computation: String,
    /// The commit that holds it, or `dirty-` and digits of its tree if no commit does.
    pub version: String,
    /// The commit that its changes were made on top of, if no commit holds it.
    pub on_top_of: Option<String>,
    /// Its inputs.
    pub inputs: Vec<Digest>,
    /// How long it ran, in seconds, unless it was adopted or taken over.
    pub seconds: Option<f64>,
    /// Its peak memory in bytes, if it was measured.
    pub peak_bytes: Option<u64>,
    /// The host that recorded it.
    pub host: String,
    /// Where its outputs come from, if they were taken over.
    pub taken_over: Option<TakenOver>,
    /// Why it failed, if it did.
    pub failed: Option<String>,
}

/// Which calls are wanted: those that fit everything that is said.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    /// Of this computation.
    pub computation: Option<String>,
    /// Of a version that begins with this: of a commit, or of what no commit holds.
    pub commit: Option<String>,
    /// Only those that failed.
    pub failed: bool,
    /// Only those that ran at least so many seconds.
    pub slow: Option<f64>,
    /// Only so many, the newest.
    pub most: Option<usize>,
}

impl Filter {
    fn has(&self, past: &Past) -> bool {
        self.computation.as_ref().is_none_or(|name| *name == past.computation)
            && self.commit.as_ref().is_none_or(|commit| past.version.starts_with(commit.as_str()))
            && (!self.failed || past.failed.is_some())
            && self.slow.is_none_or(|slow| past.seconds.is_some_and(|seconds| seconds >= slow))
    }
}

impl Past {
    fn of_call(storage: &Storage, record: CallRecord) -> Self {
        let taken_over = TakenOver::of(storage, &record);
        // What was taken over is no execution.
        let execution = record.execution().filter(|_| taken_over.is_none());
        let seconds = |from, to: Timestamp| to.duration_since(from).max(SignedDuration::ZERO);
        let commit = record.commit.full().to_owned();
        Self {
            at: execution.map_or(record.recorded.at, |it| it.end),
            computation: record.computation.to_string(),
            version: if record.dirty { record.version_name() } else { commit.clone() },
            on_top_of: record.dirty.then_some(commit),
            seconds: execution.map(|it| seconds(it.start, it.end).as_secs_f64()),
            peak_bytes: execution.map(|it| it.peak_bytes),
            inputs: record.inputs,
            host: record.recorded.host,
            taken_over,
            failed: None,
        }
    }

    fn of_failure(version: String, record: FailureRecord) -> Self {
        let commit = record.commit.full().to_owned();
        let is_dirty = version.starts_with(DIRTY);
        Self {
            at: record.recorded.at,
            computation: record.computation.to_string(),
            version: if is_dirty { version } else { commit.clone() },
            on_top_of: is_dirty.then_some(commit),
            inputs: record.inputs,
            seconds: Some(record.seconds),
            peak_bytes: None,
            host: record.recorded.host,
            taken_over: None,
            failed: Some(record.reason),
        }
    }
}

/// Returns the calls of a storage that are wanted, the newest last.
///
/// # Errors
///
/// Fails if a record cannot be read, or only a newer version can.
pub fn log(storage: &Storage, filter: &Filter) -> Result<Vec<Past>, StorageError> {
    let failures = storage.failures()?.into_iter();
    let mut log: Vec<Past> =
        failures.map(|(version, record)| Past::of_failure(version, record)).collect();
    let calls = |entry: &Entry| matches!(entry, Entry::Call(_)) && !filter.failed;
    for entry in storage.entries()?.iter().filter(|entry| calls(entry)) {
        if let Read::Record(Record::Call(record)) = storage.read_entry(entry)? {
            log.push(Past::of_call(storage, record));
        }
    }
    log.retain(|past| filter.has(past));
    // Sorting is stable, and the records come in the order of their names.
    log.sort_by_key(|past| past.at);
    let surplus = filter.most.map_or(0, |most| log.len().saturating_sub(most));
    Ok(log.split_off(surplus))
}
