//! The executions behind results that were taken over from another commit.

use jiff::Timestamp;
use serde::Serialize;

use crate::storage::records::CallRecord;
use crate::storage::{Entry, Storage, Survey};

/// The greatest number of take-overs, one after the other, that are followed.
const MAX_STEPS: usize = 1000;

/// The source of outputs that were taken over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TakenOver {
    /// The short name of the result that they were taken over from.
    pub from: String,
    /// The end of the execution that made them.
    pub executed: Timestamp,
    /// The host of the execution, if it still has a record.
    pub host: Option<String>,
    /// Whether it was not isolated, and taken over because its tree was trusted.
    pub trusted_tree: bool,
}

impl TakenOver {
    /// Finds the execution of a call's outputs; `None` unless they were taken over.
    pub fn of(storage: &Storage, record: &CallRecord) -> Option<Self> {
        let execution = record.execution()?;
        let (from, trusted_tree) = (execution.taken_over.clone()?, execution.trusted_tree);
        let mut host = None;
        let mut source = Some(from.clone());
        for _ in 0..MAX_STEPS {
            // A record that cannot be read ends the search.
            let entry = source.take().and_then(|source| Entry::of_short(&source));
            let Some(Entry::Call(name)) = entry else { break };
            let Ok(Some(earlier)) = Survey::new(storage).record_or_tombstone(&name) else { break };
            source = earlier.execution().and_then(|execution| execution.taken_over.clone());
            if source.is_none() {
                host = earlier.recorded.map(|it| it.host);
            }
        }
        Some(Self { from, executed: execution.end, host, trusted_tree })
    }
}
