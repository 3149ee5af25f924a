//! Tickets: a call that a run writes down for a worker, and the evaluation that the worker makes of it.
//!
//! A worker evaluates a ticket as a task of one call. So a call is found, taken over, executed and published there by the same
//! rules as anywhere.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::{
    Absence, CallError, CallFailure, Evaluation, Files, Outcome, SuspendedCall, Unfinished,
};
use ce_model::digest::ObjectId;
use ce_model::name::{InputName, NameError};
use ce_model::plan::Plan;
use ce_model::resources::{Resource, ResourceLine, ResourceLines, Resources};
use ce_model::slice::Slice;
use ce_model::task::{
    Argument, Builder, Computation, ComputationId, InputId, LoadedFrom, Node, Task, TaskResources,
};
use ce_model::template::Template;
use ce_storage::records::{
    FailedCall, Published, PublishedCall, TICKET_FORMAT, Ticket, TicketEnd, TicketValue,
};
use ce_storage::{Input, Outputs, ResultName, Storage, Stored};

/// The rules of a run for the workers that execute its calls.
#[derive(Clone, Copy, Debug)]
pub struct TicketRules {
    /// Whether calls are isolated.
    pub isolated: bool,
    /// Whether outputs are on the disk before they are published.
    pub synced: bool,
    /// The time limit of a call that asks for none.
    pub limit: Option<Duration>,
}

impl TicketRules {
    /// Whether a call that asks for this is isolated. One that starts tasks itself cannot be.
    pub(super) fn isolates(self, resources: &Resources) -> bool {
        self.isolated && resources.can_be_isolated()
    }
}

/// A call that is to be written down.
pub(super) struct TicketCall<'a> {
    pub(super) task: &'a Task,
    pub(super) computation: &'a Computation,
    /// The Git tree that the exported directory of the computation has as it stands.
    pub(super) standing: ObjectId,
    pub(super) values: &'a [Stored],
    pub(super) resources: Resources,
    pub(super) forced: bool,
    pub(super) accept: bool,
    pub(super) audited: bool,
}

impl TicketCall<'_> {
    /// Writes the call down.
    pub(super) fn write(self, rules: TicketRules) -> Ticket {
        let Self { task, computation, standing, values, resources, forced, accept, audited } = self;
        Ticket {
            format: TICKET_FORMAT,
            task: task.name.clone(),
            computation: computation.name.clone(),
            commit: computation.commit.clone(),
            tree: computation.tree.clone(),
            dirty: computation.dirty,
            export: standing,
            inputs: computation.inputs.clone(),
            outputs: computation.outputs.clone(),
            access: computation.access.clone(),
            values: values.iter().map(ticket_value).collect(),
            limit: rules.limit,
            isolated: rules.isolates(&resources),
            resources,
            synced: rules.synced,
            forced,
            accept,
            audited,
        }
    }
}

/// The evaluation of a ticket: a task that applies one computation to its inputs.
///
/// # Errors
///
/// Fails if the ticket has more inputs than a task can.
pub(super) fn evaluation(ticket: &Ticket, storage: &Arc<Storage>) -> Result<Evaluation, NameError> {
    let task = task(ticket)?;
    let inputs = sources(ticket).into_iter().map(|file| Input { file, there: true });
    let files = Files {
        inputs: inputs.map(Some).collect(),
        literals: Vec::new(),
        own: Vec::new(),
        own_sources: Vec::new(),
        given: ticket.values.iter().map(|_| None).collect(),
        as_given: Vec::new(),
    };
    let plan = Plan::new(&task);
    Ok(Evaluation::new(task, plan, files, Arc::clone(storage)))
}

/// The values that the call of a ticket reads, in order.
pub(super) fn sources(ticket: &Ticket) -> Vec<Stored> {
    ticket.values.iter().map(stored_value).collect()
}

/// A value in the storage, as a ticket or the record of a suspended call names it.
pub(super) fn ticket_value(stored: &Stored) -> TicketValue {
    let value = Published { digest: stored.digest, stamp: stored.stamp };
    TicketValue { name: stored.name.clone(), value }
}

/// The value in the storage with this name.
pub(super) fn stored_value(named: &TicketValue) -> Stored {
    let Published { digest, stamp } = named.value;
    Stored { name: named.name.clone(), digest, stamp }
}

fn task(ticket: &Ticket) -> Result<Task, NameError> {
    let mut builder = Builder::default();
    let (mut inputs, mut names) = (Vec::new(), Vec::new());
    for at in 0..ticket.values.len() {
        let (node, number) = (builder.intern(Node::Input(InputId::at(at))), at as u8);
        let label = ticket.inputs.get(at).map_or("", String::as_str);
        inputs.push(Argument { label: label.into(), first: number, last: number, node });
        names.push(format!("i{at}").parse::<InputName>()?);
    }
    let computation = ComputationId::at(0);
    let root = builder.intern(Node::Computation {
        computation: computation.into(),
        inputs: inputs.into(),
        outputs: Slice::all(ticket.outputs.len()),
    });
    let mut resources = TaskResources::default();
    resources.add(root, computation, lines(&ticket.resources));
    Ok(Task {
        name: ticket.task.clone(),
        commit: ticket.commit.clone(),
        place: String::new(),
        loaded_from: LoadedFrom::Commit(None),
        changed: Vec::new(),
        inputs: names,
        defaults: ticket.values.iter().map(|_| None).collect(),
        choices: ticket.values.iter().map(|_| None).collect(),
        files: Vec::new(),
        trees: Vec::new(),
        bound: Vec::new(),
        sweeps: Vec::new(),
        text_computations: Vec::new(),
        computations: vec![Computation {
            name: ticket.computation.clone(),
            commit: ticket.commit.clone(),
            tree: ticket.tree.clone(),
            dirty: ticket.dirty,
            inputs: ticket.inputs.clone(),
            outputs: ticket.outputs.clone(),
            access: ticket.access.clone(),
            checked_out: None,
            file: None,
        }],
        resources,
        workflow: builder.finish(root),
        definitions: BTreeMap::new(),
        parts: BTreeSet::new(),
    })
}

/// Lines that ask for the same.
fn lines(resources: &Resources) -> ResourceLines {
    ResourceLines::new(resources.lines().into_iter().filter_map(|line| {
        let (word, amount) = line.split_once(' ').unwrap_or((&line, ""));
        let amount = Template::new(amount.to_owned(), |_| None, Path::new(""));
        let resource = Resource::of_word(word)?;
        Some(ResourceLine { resource, amount, path: PathBuf::new(), line: 0 })
    }))
}

/// The answer of a worker that could not execute a call.
const NOT_DONE: &str = "the worker could not do it";

/// Returns a worker's answer for a call with this end; `None` if it was interrupted, and another worker may have it.
pub(super) fn answer(outcome: &Outcome) -> Option<TicketEnd> {
    let (name, absence) = match outcome {
        Outcome::Present(Outputs { name, files }, source) => {
            let (name, outputs) = (name.short(), files.to_vec());
            return Some(TicketEnd::Published(PublishedCall { name, source: *source, outputs }));
        }
        Outcome::Known(..) => return Some(TicketEnd::Lost(NOT_DONE.to_owned())),
        Outcome::Absent(name, absence) => (name, absence),
    };
    match absence {
        Absence::Failed(failed) => {
            let (name, failure) = (name.short(), failed.facts().in_full());
            Some(TicketEnd::Failed(FailedCall { name, failure }))
        }
        Absence::Unfinished(Unfinished::Refused(why)) => Some(TicketEnd::Refused(why.clone())),
        Absence::Unfinished(Unfinished::Lost(how) | Unfinished::Unreadable { why: how, .. }) => {
            Some(TicketEnd::Lost(how.clone()))
        }
        Absence::Suspended(call) => Some(TicketEnd::Suspended(call.name.short())),
        Absence::Interrupted | Absence::NotStarted(_) => None,
        Absence::Missing(_) | Absence::Blocked | Absence::Waiting | Absence::LeftOut => {
            Some(TicketEnd::Lost(NOT_DONE.to_owned()))
        }
    }
}

/// The outcome of a call with this answer of a worker, which is neither a loss nor a refusal.
pub(super) fn outcome(storage: &Storage, name: &ResultName, end: TicketEnd) -> Outcome {
    match end {
        TicketEnd::Published(PublishedCall { name: short, source, outputs }) => {
            let name = ResultName::of_short(&short).unwrap_or_else(|| name.clone());
            let outputs = Outputs { name, files: outputs.into() };
            Outcome::Present(outputs, source)
        }
        TicketEnd::Failed(FailedCall { name: short, failure }) => {
            let name = ResultName::of_short(&short).unwrap_or_else(|| name.clone());
            let log = storage.attempts().failed_log(&name).ok().flatten();
            let hint = failure.hint.clone();
            let error = Box::new(CallError::AtWorker(failure));
            Outcome::Absent(name, Absence::Failed(CallFailure { error, log, hint }))
        }
        TicketEnd::OutOfMemory => {
            let how = "its worker used more memory than it had".to_owned();
            Outcome::Absent(name.clone(), Absence::Unfinished(Unfinished::Lost(how)))
        }
        TicketEnd::OutOfTime(out) => {
            Outcome::failed(name.clone(), CallError::OutOfTime(out.seconds))
        }
        TicketEnd::Refused(why) => {
            Outcome::Absent(name.clone(), Absence::Unfinished(Unfinished::Refused(why)))
        }
        TicketEnd::Suspended(begun) => {
            let begun = ResultName::of_short(&begun).unwrap_or_else(|| name.clone());
            let call = SuspendedCall { name: begun, line: None, continues: true };
            Outcome::Absent(name.clone(), Absence::Suspended(call))
        }
        TicketEnd::Lost(how) => {
            Outcome::Absent(name.clone(), Absence::Unfinished(Unfinished::Lost(how)))
        }
        TicketEnd::Audited(_) => {
            let how = "its worker has compared it, and not published it".to_owned();
            Outcome::Absent(name.clone(), Absence::Unfinished(Unfinished::Lost(how)))
        }
    }
}
