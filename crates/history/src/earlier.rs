//! Earlier calls: calls of some computations that succeeded once, even if their outputs were
//! collected.

use std::cmp::Reverse;

use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

use ce_model::name::ComputationName;
use ce_storage::records::FailureRecord;
use ce_storage::{PastCallRef, ResultName, Storage, Survey};

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
