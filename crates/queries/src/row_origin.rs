//! The execution that made a row of a table: where, when, on what machine, and whether nothing else was executed beside it.

use jiff::Timestamp;

use ce_evaluate::Evaluation;
use ce_exchange::Attestations;
use ce_history::{OriginalExecution, PublishedExecution};
use ce_model::plan::{CallId, Source};
use ce_model::resources::Resource;
use ce_model::shared_text::SharedText;
use ce_storage::{Entry, Record, RecordState};

/// The execution that made a row.
#[derive(Clone, Debug, PartialEq)]
pub struct RowOrigin {
    /// The short name of the call.
    pub call: String,
    /// The short name of the result of the execution that made each of its outputs, wherever that was taken over from, if a call did.
    pub executions: Vec<Option<String>>,
    /// Its host, if that is still recorded.
    pub host: Option<SharedText>,
    /// Its machine in words, if that was recorded or published.
    pub machine: Option<SharedText>,
    /// Whether nothing else was executed beside it, as it had asked for; `None` if that is not known.
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

impl RowOrigin {
    /// Finds the executions that made the outputs of a point; `None` unless one made the first of them.
    pub(crate) fn find(
        evaluation: &Evaluation,
        attestations: &Attestations,
        sources: &[Source],
    ) -> Option<Self> {
        let storage = &evaluation.storage;
        let calls = sources.iter().map(|source| match evaluation.plan.origin(*source) {
            Source::Output { call, .. } => Some(call),
            _ => None,
        });
        let calls: Vec<Option<CallId>> = calls.collect();
        let mut origin: Option<Self> = None;
        for (at, call) in calls.iter().enumerate() {
            if let (Some(before), Some(origin)) =
                (calls[..at].iter().position(|it| it == call), &mut origin)
            {
                origin.executions.push(origin.executions[before].clone());
                continue;
            }
            let found = call.and_then(|call| {
                let entry = Entry::Call(evaluation.outcome(call)?.name().clone());
                match storage.records().read_entry(&entry) {
                    Ok(RecordState::Valid(Record::Call(record))) => Some((entry.short(), record)),
                    _ => None,
                }
            });
            let Some((name, record)) = found else {
                origin.as_mut()?.executions.push(None);
                continue;
            };
            let made = OriginalExecution::of(storage, &record);
            let made = made.or_published(|| attestations.first_published(&record));
            let exclusive = record.execution().map(|_| made.resources.iter().any(is_exclusive));
            let asked = call.and_then(|call| evaluation.plan.resources(call).ok().flatten());
            let asks = asked.is_some_and(|it| it.exclusive);
            let OriginalExecution { at, seconds, host, machine, published, taken_over, .. } = made;
            let execution = taken_over.map_or_else(|| name.clone(), |it| it.first);
            let first = origin.get_or_insert_with(|| Self {
                call: name,
                executions: Vec::new(),
                host,
                machine,
                exclusive,
                is_disturbed: false,
                published,
                at,
                seconds,
            });
            first.executions.push(Some(execution));
            first.is_disturbed |= asks && exclusive == Some(false);
        }
        origin
    }
}

/// Whether a line of a file `resources` asks that nothing else is executed meanwhile.
fn is_exclusive(line: &String) -> bool {
    line == Resource::Exclusive.word()
}
