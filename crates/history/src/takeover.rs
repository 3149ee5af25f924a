//! The executions that made results, also those that were taken over from another commit.

use jiff::Timestamp;
use serde::Serialize;

use ce_storage::records::{CallRecord, Execution};
use ce_storage::{Entry, Storage, Survey};

/// The greatest number of take-overs, one after the other, that are followed.
const MAX_STEPS: usize = 1000;

/// The source of outputs that were taken over.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TakenOver {
    /// The short name of the result that they were taken over from.
    pub from: String,
    /// The end of the execution that made them.
    pub executed: Timestamp,
    /// The host of the execution, if it still has a record.
    pub host: Option<String>,
    /// Whether it was not isolated, and taken over because its tree was trusted.
    pub trusted_tree: bool,
    /// The duration of the execution, in seconds.
    pub seconds: f64,
    /// Its CPU time in seconds, if it was measured.
    pub cpu_seconds: Option<f64>,
    /// Its peak memory in bytes, if it was measured.
    pub peak_bytes: Option<u64>,
}

/// The execution that made the outputs of a call, wherever these were taken over from. Whoever tells of it asks here.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OriginalExecution {
    /// Its end, or else the time of the record. A results repository keeps neither.
    pub at: Option<Timestamp>,
    /// Its duration in seconds, unless the outputs were adopted or are from another storage.
    pub seconds: Option<f64>,
    /// Its CPU time in seconds, if it was measured.
    pub cpu_seconds: Option<f64>,
    /// Its peak memory in bytes, if it was measured.
    pub peak_bytes: Option<u64>,
    /// What it has asked for: lines of a file `resources`.
    pub resources: Box<[String]>,
    /// Its host, if that is known.
    pub host: Option<String>,
    /// The result that the outputs were taken over from, if they were.
    pub taken_over: Option<TakenOver>,
}

impl OriginalExecution {
    /// Finds the execution that made a call's outputs.
    pub fn of(storage: &Storage, record: &CallRecord) -> Self {
        let taken_over = TakenOver::of(storage, record);
        let recorded = record.recorded.as_ref();
        // A take-over copies what the record says of the execution, but for the host.
        let execution = record.execution();
        let (cpu_seconds, peak_bytes) = execution.map(used).unwrap_or_default();
        Self {
            at: execution.map(|it| it.end).or(recorded.map(|it| it.at)),
            seconds: record.seconds(),
            cpu_seconds,
            peak_bytes,
            resources: execution.map(|it| it.resources.clone()).unwrap_or_default(),
            host: match &taken_over {
                Some(source) => source.host.clone(),
                None => recorded.map(|it| it.host.clone()),
            },
            taken_over,
        }
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
        let (cpu_seconds, peak_bytes) = used(execution);
        let seconds = record.seconds().unwrap_or_default();
        let executed = execution.end;
        Some(Self { from, executed, host, trusted_tree, seconds, cpu_seconds, peak_bytes })
    }
}
