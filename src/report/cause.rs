//! Reasons and causes in words, one line each.

use super::{derived_title, harmless, title, tree_version};
use ce_evaluate::Evaluation;
use ce_model::digest::Digest;
use ce_model::plan::{CallId, Derivation, DerivedId, LiteralId, Source};
use ce_model::task::{Computation, ComputationId, Node};
use ce_queries::explain::{Cause, CodeVersion, FirstCause, Why};
use ce_storage::records::{FailureRecord, Provenance};

/// The number of an input of a call, and what its computation calls it.
pub(super) fn input_of(evaluation: &Evaluation, call: CallId, at: usize) -> String {
    evaluation.computation(call).map(|computation| input(computation, at)).unwrap_or_default()
}

/// The reason why a call would run, in words.
pub(super) fn reason(evaluation: &Evaluation, call: CallId, why: &Why) -> String {
    let Some(computation) = evaluation.plan.computation(call) else { return String::new() };
    let named = |at: usize| input(&evaluation.task.computations[computation.index()], at);
    match why {
        Why::NeverComputed => "never computed".to_owned(),
        Why::ComputationChanged(old) => changed(evaluation, computation, old),
        Why::Uncommitted(old) => uncommitted(evaluation, computation, old.as_ref()),
        Why::InputDiffers { at, old, new } => format!("{} differs: {}", named(*at), from(old, new)),
        Why::NewAtPoint { at, .. } => format!("{} is new", named(*at)),
        Why::OtherSource { at } => format!("{} has another source than before", named(*at)),
        Why::Waits { at, call } => format!("{} waits for {}", named(*at), title(evaluation, *call)),
        Why::NoLiteral { at, literal } => {
            format!("{}: {} is not in the storage", named(*at), literal_name(evaluation, *literal))
        }
        Why::FailedLast { failure: FailureRecord { reason, recorded, .. }, log } => {
            let log = log.as_ref().map(|log| format!(", log: {}", evaluation.shown(log)));
            format!("failed last; {reason}, at {:.0}{}", recorded.at, log.unwrap_or_default())
        }
        Why::Collected(Provenance { host, user, at, .. }) => {
            format!("its result was collected at {at:.0} by {user} on {host}")
        }
        Why::Away => "its outputs are away, and needed".to_owned(),
        Why::Damaged => "its outputs are gone, or are not what was recorded".to_owned(),
    }
}

/// The name that has the text of a point where a call reads it, if this is such a text.
pub(super) fn text_name(evaluation: &Evaluation, id: DerivedId) -> Option<&str> {
    let Evaluation { plan, task, .. } = evaluation;
    let Derivation::Text(text) = &plan.value(id).how else { return None };
    let is_read = |source: &Source| matches!(source, Source::Derived { value, .. } if *value == id);
    let mut readers = plan.calls().filter(|(_, planned)| planned.inputs.iter().any(is_read));
    readers.find_map(|(call, _)| {
        let mut point = plan.point(task, call).into_iter();
        point.find(|(_, known)| **known == **text).map(|(name, _)| name)
    })
}

/// The file of the task that has the points of a table.
pub(super) fn sheet_of(evaluation: &Evaluation, table: CallId) -> Option<&str> {
    let Evaluation { plan, task, .. } = evaluation;
    let Node::Sweep { inputs, .. } = &task.workflow[plan.call(table).node] else { return None };
    match &task.workflow[inputs.get(1)?.node] {
        Node::File(file) => Some(task.files[file.index()].path.as_str()),
        _ => None,
    }
}

/// A first cause, in words.
pub(super) fn cause(evaluation: &Evaluation, first: &FirstCause) -> String {
    let name = |id: ComputationId| evaluation.task.computations[id.index()].name.as_str();
    match &first.cause {
        Cause::NeverComputed(id) => format!("{} was never computed", name(*id)),
        Cause::Computation(id, old) => changed(evaluation, *id, old),
        Cause::Uncommitted(id, old) => uncommitted(evaluation, *id, old.as_ref()),
        Cause::Input(id, old) => {
            let new = evaluation.digest(Source::Input(*id));
            let digests = new.map_or_else(String::new, |new| format!(": {}", from(old, &new)));
            format!("the task input {} differs{digests}", evaluation.task.inputs[id.index()])
        }
        Cause::File(id, old) => {
            let path = harmless(evaluation.task.files[id.index()].path.as_str());
            let new = evaluation.digest(Source::File(*id));
            let digests = new.map_or_else(String::new, |new| format!(": {}", from(old, &new)));
            format!("the task's file {path} differs{digests}")
        }
        Cause::Tree(id, old) => {
            let title = derived_title(evaluation, *id, 0);
            let new = evaluation.digest(Source::Derived { value: *id, number: 0 });
            let digests = new.map_or_else(String::new, |new| format!(": {}", from(old, &new)));
            match evaluation.plan.tree(*id) {
                Some(_) => {
                    format!("{title} differs, now {}{digests}", tree_version(evaluation, *id))
                }
                None => format!("{title} differs{digests}"),
            }
        }
        Cause::Table(call) => table(evaluation, *call),
        Cause::NewAtPoint(id) => {
            let title = derived_title(evaluation, *id, 0);
            match text_name(evaluation, *id) {
                Some(name) => format!("{}={title} of a point is new", harmless(name)),
                None if evaluation.plan.tree(*id).is_some() => {
                    format!("{title} of a point is new: {}", tree_version(evaluation, *id))
                }
                None => format!("{title} of a point is new"),
            }
        }
        Cause::Member(id, old) => {
            let new = evaluation.digest(Source::Derived { value: *id, number: 0 });
            let digests = new.map_or_else(String::new, |new| format!(": {}", from(old, &new)));
            let of = evaluation.plan.whole(Source::Derived { value: *id, number: 0 }).0;
            let of = evaluation
                .name(of)
                .map_or_else(String::new, |it| format!(" of {}", evaluation.shown(&it)));
            format!("{}{of} differs{digests}", derived_title(evaluation, *id, 0))
        }
        Cause::Literal(id, old) => match &evaluation.files.literals[id.index()] {
            Some(new) => {
                let literal = literal_name(evaluation, *id);
                format!("the literal {literal} differs: {}", from(old, &new.digest))
            }
            None => no_literal(evaluation, *id),
        },
        Cause::NoLiteral(id) => no_literal(evaluation, *id),
        Cause::OtherSource(id, at) => {
            let input = input(&evaluation.task.computations[id.index()], *at);
            format!("{input} of {} has another source than before", name(*id))
        }
        Cause::OtherOutputs(id) => {
            format!("{} gave other outputs for the same inputs", name(*id))
        }
        Cause::Unrecorded(id) => {
            format!("{} gave other outputs, and their provenance is not recorded", name(*id))
        }
        Cause::FailedLast(id) => format!("{} failed last", name(*id)),
        Cause::Collected(id) => format!("results of {} were collected", name(*id)),
        Cause::Away(id) => format!("outputs of {} are away, and needed", name(*id)),
        Cause::Damaged(id) => {
            format!("outputs of {} are gone, or are not what was recorded", name(*id))
        }
    }
}

fn table(evaluation: &Evaluation, call: CallId) -> String {
    let sheet = sheet_of(evaluation, call).map(harmless);
    let points = sheet.map_or_else(String::new, |it| format!(", and its points are those of {it}"));
    format!("{} has other rows or columns{points}", title(evaluation, call))
}

fn no_literal(evaluation: &Evaluation, id: LiteralId) -> String {
    format!("the literal {} is not in the storage", literal_name(evaluation, id))
}

fn changed(evaluation: &Evaluation, id: ComputationId, old: &CodeVersion) -> String {
    let computation = &evaluation.task.computations[id.index()];
    let (name, from, to) = (&computation.name, old.short(), computation.version());
    if old.tree == computation.tree {
        format!("{name} is at another commit, and did not run isolated: was {from}, is {to}")
    } else {
        format!("{name} changed: was {from}, is {to}")
    }
}

fn uncommitted(evaluation: &Evaluation, id: ComputationId, old: Option<&CodeVersion>) -> String {
    let computation = &evaluation.task.computations[id.index()];
    let was = old.map_or_else(String::new, |old| format!(": was {}", old.short()));
    let comma = if old.is_some() { "," } else { ":" };
    format!("{} has uncommitted changes{was}{comma} is {}", computation.name, computation.version())
}

/// The change of a digest, in words.
fn from(old: &Digest, new: &Digest) -> String {
    let (mut was, mut is) = (old.sha1.short(), new.sha1.short());
    if was == is {
        (was, is) = (old.sha1.full(), new.sha1.full());
    }
    format!("was {was}, is {is}")
}

/// The number of an input, and what its computation calls it.
fn input(computation: &Computation, at: usize) -> String {
    match computation.inputs.get(at) {
        Some(name) => format!("input {at:02} ({})", harmless(name)),
        None => format!("input {at:02}"),
    }
}

fn literal_name(evaluation: &Evaluation, id: LiteralId) -> String {
    evaluation.plan.literals()[id.index()].to_string()
}
