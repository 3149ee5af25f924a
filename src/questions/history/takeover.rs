//! Where results were executed that a call has taken over from another commit.

use jiff::Timestamp;
use serde::Serialize;

use crate::storage::records::CallRecord;
use crate::storage::{Entry, Storage, Survey};

/// How many results of one tree may have been taken over one after the other.
const MOST: usize = 1000;

/// Where the outputs of a call come from that was not executed itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TakenOver {
    /// The result that they were taken over from: its name without an output's number.
    pub from: String,
    /// When the execution ended that made them.
    pub executed: Timestamp,
    /// The host that executed it, unless nothing is recorded of that any more.
    pub host: Option<String>,
}

impl TakenOver {
    /// Looks where the outputs of a call were executed; `None` unless they were taken over.
    pub fn of(storage: &Storage, record: &CallRecord) -> Option<Self> {
        let execution = record.execution()?;
        let from = execution.taken_over.clone()?;
        let mut host = None;
        let mut source = Some(from.clone());
        for _ in 0..MOST {
            // A record that cannot be read ends the search.
            let entry = source.take().and_then(|source| Entry::of_call(&source));
            let Some(Entry::Call(name)) = entry else { break };
            let Ok(Some(earlier)) = Survey::new(storage).record_or_tombstone(&name) else { break };
            source = earlier.execution().and_then(|execution| execution.taken_over.clone());
            if source.is_none() {
                host = Some(earlier.recorded.host);
            }
        }
        Some(Self { from, executed: execution.end, host })
    }
}
