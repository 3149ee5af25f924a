//! The calls of some computations that succeeded once, whether they are there or were collected.

use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

use crate::storage::{self, Storage, Survey, Trace};
use crate::task::name::ComputationName;

/// The calls that succeeded once, as far as that can be read.
#[derive(Debug)]
pub struct EarlierCalls {
    /// The newest first.
    pub calls: Vec<storage::PastCall>,
    /// How many files and directories could not be read, or are no records.
    pub unread: usize,
}

/// Reads all that is recorded of calls of these computations, at any commit.
pub fn earlier<'a>(
    storage: &Storage,
    computations: impl Iterator<Item = &'a ComputationName>,
) -> EarlierCalls {
    let mut unread = 0;
    let traces: Vec<Trace> =
        computations.flat_map(|name| Survey::new(storage).traces(name, &mut unread)).collect();
    let read =
        traces.par_iter().filter_map(|trace| Survey::new(storage).past_call(trace).ok().flatten());
    let mut calls: Vec<storage::PastCall> = read.collect();
    unread += traces.len() - calls.len();
    calls.sort_by(|one, other| {
        let newest = |it: &storage::PastCall| std::cmp::Reverse(it.record.recorded.at);
        newest(one).cmp(&newest(other))
    });
    EarlierCalls { calls, unread }
}
