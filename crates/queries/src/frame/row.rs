//! A row of a table, its status, and the execution that made it.

use std::collections::HashSet;
use std::sync::Arc;

use ce_exchange::Attested;
use ce_history::PublishedExecution;
use ce_model::host_use::DisturbedCalls;
use ce_model::shared_text::SharedText;
use ce_model::sweep::CellValue;
use ce_storage::Holder;
use jiff::Timestamp;

/// A row of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FrameRow {
    /// A value for each column.
    pub cells: Vec<CellValue>,
    /// The state of its point.
    pub status: RowStatus,
    /// The number of the calls that make the outputs of its point, from 1 in the order of the rows: rows of different points
    /// with the same number rest on the same execution. `None` for an excluded point.
    pub call: Option<usize>,
    /// The number of the call that makes each of these outputs, if that is known.
    pub output_calls: Box<[usize]>,
    /// The execution that made its first output, if any. Rows of a point share it.
    pub origin: Option<Arc<RowOrigin>>,
    /// The uncertainty of the median of its point, if its replicates have ended, and it should be more certain: `±9.8%`.
    pub uncertain: Option<String>,
    /// The attesters of its call, where they are asked for and known.
    pub attested: Option<Arc<Attested>>,
}

/// The state of a point.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum RowStatus {
    /// Its outputs are there.
    #[default]
    Ok,
    /// A call that it needs is being executed.
    Running(Holder),
    /// A call that it needs is suspended: its jobs go on elsewhere.
    Suspended,
    /// An input of the call that makes its outputs is not there yet.
    Waiting,
    /// The call that makes its outputs could be executed, and was not.
    Missing,
    /// A call that it needs has failed, and has not succeeded since.
    Failed {
        /// The reason, in words; nothing if it is not known.
        reason: String,
        /// The log, as the user would write its path.
        log: Option<String>,
    },
    /// The rules of the sweep leave it out.
    Excluded,
}

impl FrameRow {
    /// Whether a result is not a number where others are.
    pub fn has_nan(&self) -> bool {
        self.cells.contains(&CellValue::NotANumber)
    }
}

impl RowStatus {
    /// The words for all of them.
    pub(crate) const WORDS: [&str; 7] =
        ["ok", "running", "suspended", "failed", "missing", "waiting", "excluded"];

    /// Its place among all words, which is that in a count of rows.
    pub const fn rank(&self) -> usize {
        match self {
            Self::Ok => 0,
            Self::Running(_) => 1,
            Self::Suspended => 2,
            Self::Failed { .. } => 3,
            Self::Missing => 4,
            Self::Waiting => 5,
            Self::Excluded => 6,
        }
    }

    /// The word for it.
    pub const fn word(&self) -> &'static str {
        Self::WORDS[self.rank()]
    }

    /// The status that a file has this word for.
    pub(crate) fn of_word(word: &str) -> Self {
        if word == Self::Ok.word() {
            Self::Ok
        } else if word == Self::Excluded.word() {
            Self::Excluded
        } else {
            Self::Failed { reason: word.to_owned(), log: None }
        }
    }

    /// The status of the row, in words, unless it has its outputs.
    pub fn in_words(&self) -> Option<String> {
        match self {
            Self::Ok => None,
            Self::Failed { reason, .. } if !reason.is_empty() => Some(format!("failed: {reason}")),
            status => Some(status.word().to_owned()),
        }
    }
}

/// Counts the calls of rows during which others used the processors, as far as that is known.
pub(crate) fn measured_beside_others<'a>(
    rows: impl Iterator<Item = &'a FrameRow>,
) -> DisturbedCalls {
    let mut calls = HashSet::new();
    let shares = rows.filter_map(|row| {
        let share = row.origin.as_ref()?.others?;
        row.call.is_none_or(|call| calls.insert(call)).then_some(share)
    });
    DisturbedCalls::count(shares)
}

/// The execution that made a row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RowOrigin {
    /// The short name of the call.
    pub call: String,
    /// The short name of the result of the execution that made each of its outputs, wherever that was taken over from, if a call did.
    pub executions: Vec<Option<String>>,
    /// Its host, if that is still recorded.
    pub host: Option<SharedText>,
    /// Its machine in words, if that was recorded or published.
    pub machine: Option<SharedText>,
    /// The share of its processors that others had, if that was recorded or published.
    pub others: Option<f64>,
    /// The processors, memory and graphics processors that it was told to have asked for, if that is recorded.
    pub asked: Option<SharedText>,
    /// Whether nothing else was executed beside it, as requested; `None` if unknown.
    pub exclusive: Option<bool>,
    /// Whether a call that made an output was executed beside others, and asks for `exclusive` now.
    pub is_disturbed: bool,
    /// The published execution, if no record says when it ended.
    pub published: Option<Box<PublishedExecution>>,
    /// Its end, or the time at which outputs were adopted, if it is known.
    pub at: Option<Timestamp>,
    /// Its duration in seconds, if it is known.
    pub seconds: Option<f64>,
}
