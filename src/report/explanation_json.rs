//! Why calls would run, as JSON: doc/programs/ce-explain.md describes the fields.

use std::collections::HashMap;
use std::io::{self, Write};

use serde_json::{Map, Value, json};

use super::calls::{derived_title, title, tree_version};
use super::explanation::{sheet_of, text_name};
use ce_evaluate::Evaluation;
use ce_model::plan::Source;
use ce_model::task::ComputationId;
use ce_queries::explain::{Cause, Change, CodeVersion, Explained, Explanation};
use ce_storage::ResultName;

/// Prints a line for each cause, a line for each call that would run, and a line with the totals.
///
/// `changes` has the Git history of causes, by their indices.
///
/// # Errors
///
/// Fails if the output cannot be written.
pub fn explanation_json(
    evaluation: &Evaluation,
    explanation: &Explanation,
    changes: &HashMap<usize, Change>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut line = |line: Value| {
        serde_json::to_writer(&mut *out, &line)?;
        out.write_all(b"\n")
    };
    for (at, first) in explanation.causes.iter().enumerate() {
        let mut told = json!({ "event": "cause", "number": at + 1, "calls": first.calls });
        merge(&mut told, cause(evaluation, &first.cause));
        if let Some(change) = changes.get(&at) {
            merge(&mut told, json!(change));
        }
        line(told)?;
    }
    for explained in &explanation.calls {
        let Explained { call, whys, nearest, seconds } = explained;
        let computation = evaluation.computation(*call).map(|it| it.name.as_str());
        let mut reasons = Vec::with_capacity(whys.len());
        for (why, causes) in whys {
            let mut reason = json!(why);
            let causes: Vec<usize> = causes.iter().map(|at| at + 1).collect();
            merge(&mut reason, json!({ "causes": causes }));
            reasons.push(reason);
        }
        let point = evaluation.plan.point(&evaluation.task, *call);
        let mut told = json!({
            "event": "call",
            "call": call.index(),
            "computation": computation,
            "name": evaluation.outcome(*call).map(|it| it.name().short()),
            "why": reasons,
            "nearest": nearest.as_ref().map(ResultName::short),
            "seconds": seconds,
        });
        if !point.is_empty() {
            let point: Map<String, Value> =
                point.into_iter().map(|(name, text)| (name.to_owned(), text.into())).collect();
            merge(&mut told, json!({ "point": point }));
        }
        line(told)?;
    }
    // The sum of no numbers is -0.0.
    let seconds = 0.0 + explanation.calls.iter().filter_map(|it| it.seconds).sum::<f64>();
    line(json!({
        "event": "end",
        "calls": explanation.calls.len(),
        "seconds": seconds,
        "unknown": explanation.calls.iter().filter(|it| it.seconds.is_none()).count(),
        "unread": explanation.unread,
        "exit": evaluation.exit().code(),
    }))
}

fn merge(line: &mut Value, more: Value) {
    if let (Value::Object(line), Value::Object(more)) = (line, more) {
        line.extend(more);
    }
}

/// The name of a computation, and its version.
fn named(evaluation: &Evaluation, id: ComputationId) -> (&str, CodeVersion) {
    let computation = &evaluation.task.computations[id.index()];
    (computation.name.as_str(), CodeVersion::of(computation))
}

fn cause(evaluation: &Evaluation, cause: &Cause) -> Value {
    let of = |kind: &str, id: &ComputationId| json!({ "cause": kind, "computation": named(evaluation, *id).0 });
    match cause {
        Cause::NeverComputed(id) => of("never_computed", id),
        Cause::Computation(id, old) => {
            let (computation, new) = named(evaluation, *id);
            json!({ "cause": "computation", "computation": computation, "old": old, "new": new })
        }
        Cause::Uncommitted(id, old) => {
            let (computation, new) = named(evaluation, *id);
            json!({ "cause": "uncommitted", "computation": computation, "old": old, "new": new })
        }
        Cause::Input(id, old) => {
            let new = evaluation.digest(Source::Input(*id));
            let input = evaluation.task.inputs[id.index()].as_str();
            json!({ "cause": "input", "input": input, "old": old, "new": new })
        }
        Cause::File(id, old) => {
            let new = evaluation.digest(Source::File(*id));
            let file = evaluation.task.files[id.index()].path.as_str();
            json!({ "cause": "file", "file": file, "old": old, "new": new })
        }
        Cause::Tree(id, old) if evaluation.plan.tree(*id).is_none() => {
            let new = evaluation.digest(Source::Derived { value: *id, number: 0 });
            let value = derived_title(evaluation, *id, 0);
            json!({ "cause": "point", "name": null, "value": value, "old": old, "new": new })
        }
        Cause::Table(call) => {
            let (table, file) = (title(evaluation, *call), sheet_of(evaluation, *call));
            json!({ "cause": "table", "table": table, "file": file })
        }
        Cause::NewAtPoint(id) => {
            let new = evaluation.digest(Source::Derived { value: *id, number: 0 });
            let value = derived_title(evaluation, *id, 0);
            let name = text_name(evaluation, *id);
            json!({ "cause": "point", "name": name, "value": value, "new": new })
        }
        Cause::Tree(id, old) => {
            let new = evaluation.digest(Source::Derived { value: *id, number: 0 });
            let tree = evaluation.plan.tree(*id).map(|tree| &evaluation.task.trees[tree.index()]);
            let tree = tree.map(|tree| tree.name.as_str());
            let version = tree_version(evaluation, *id);
            json!({ "cause": "tree", "tree": tree, "version": version, "old": old, "new": new })
        }
        Cause::Member(id, old) => {
            let (of, path) = evaluation.plan.whole(Source::Derived { value: *id, number: 0 });
            let new = evaluation.digest(Source::Derived { value: *id, number: 0 });
            let of = evaluation.name(of);
            json!({ "cause": "member", "member": path, "directory": of, "old": old, "new": new })
        }
        Cause::Literal(id, old) => {
            let new = evaluation.files.literals[id.index()].as_ref().map(|it| it.digest);
            let literal = &evaluation.plan.literals()[id.index()];
            json!({ "cause": "literal", "literal": literal, "old": old, "new": new })
        }
        Cause::NoLiteral(id) => {
            json!({ "cause": "no_literal", "literal": evaluation.plan.literals()[id.index()] })
        }
        Cause::OtherSource(id, at) => {
            let mut line = of("other_source", id);
            line["input"] = json!(at);
            line
        }
        Cause::OtherOutputs(id) => of("other_outputs", id),
        Cause::Unrecorded(id) => of("unrecorded", id),
        Cause::FailedLast(id) => of("failed_last", id),
        Cause::Collected(id) => of("collected", id),
        Cause::Away(id) => of("away", id),
        Cause::Damaged(id) => of("damaged", id),
    }
}
