//! What was computed and what failed, in the order of time.

use jiff::{SignedDuration, Timestamp};

use crate::digest::Digest;
use crate::storage::record::{CallRecord, FailureRecord, Origin};
use crate::storage::{Entry, Read, Record, Storage, StorageError};

/// A call that has succeeded, or has failed last.
#[derive(Clone, Debug, PartialEq)]
pub struct Past {
    /// When it ended.
    pub at: Timestamp,
    /// The name of the computation.
    pub computation: String,
    /// The commit that holds it.
    pub commit: String,
    /// Its inputs.
    pub inputs: Vec<Digest>,
    /// How long it ran, in seconds, unless it was adopted.
    pub seconds: Option<f64>,
    /// Its peak memory in bytes, if it was measured.
    pub peak_bytes: Option<u64>,
    /// The host that recorded it.
    pub host: String,
    /// Why it failed, if it did.
    pub failed: Option<String>,
}

/// Which calls are wanted: those that fit everything that is said.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    /// Of this computation.
    pub computation: Option<String>,
    /// Of a commit that begins with these digits.
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
            && self.commit.as_ref().is_none_or(|commit| past.commit.starts_with(commit.as_str()))
            && (!self.failed || past.failed.is_some())
            && self.slow.is_none_or(|slow| past.seconds.is_some_and(|seconds| seconds >= slow))
    }
}

impl From<CallRecord> for Past {
    fn from(record: CallRecord) -> Self {
        let execution = match record.origin {
            Origin::Executed { execution, .. } => Some(execution),
            Origin::Adopted => None,
        };
        let seconds = |from, to: Timestamp| to.duration_since(from).max(SignedDuration::ZERO);
        Self {
            at: execution.as_ref().map_or(record.recorded.at, |it| it.end),
            computation: record.computation.to_string(),
            commit: record.commit.full().to_owned(),
            inputs: record.inputs,
            seconds: execution.as_ref().map(|it| seconds(it.start, it.end).as_secs_f64()),
            peak_bytes: execution.map(|it| it.peak_bytes),
            host: record.recorded.host,
            failed: None,
        }
    }
}

impl From<FailureRecord> for Past {
    fn from(record: FailureRecord) -> Self {
        Self {
            at: record.recorded.at,
            computation: record.computation.to_string(),
            commit: record.commit.full().to_owned(),
            inputs: record.inputs,
            seconds: Some(record.seconds),
            peak_bytes: None,
            host: record.recorded.host,
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
    let mut log: Vec<Past> = storage.failures()?.into_iter().map(Past::from).collect();
    let calls = |entry: &Entry| matches!(entry, Entry::Call(_)) && !filter.failed;
    for entry in storage.entries()?.iter().filter(|entry| calls(entry)) {
        if let Read::Record(Record::Call(record)) = storage.read_entry(entry)? {
            log.push(record.into());
        }
    }
    log.retain(|past| filter.has(past));
    // Sorting is stable, and the records come in the order of their names.
    log.sort_by_key(|past| past.at);
    let surplus = filter.most.map_or(0, |most| log.len().saturating_sub(most));
    Ok(log.split_off(surplus))
}
