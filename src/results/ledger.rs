//! The ledger: what each push says of executions. It only grows, and no result depends on it.

use serde::Serialize;

use super::layout::LEDGER;
use super::offer::SharedResult;
use crate::digest::{Blake3, Digest, ObjectId};
use crate::storage::Record;
use crate::storage::records::Origin;
use crate::task::name::ComputationName;

/// The greatest number of lines in a file.
const LINES: usize = 10_000;

/// The first line of a file.
#[derive(Serialize)]
struct LedgerHeader<'a> {
    ledger: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'a str>,
    reason: &'static str,
}

/// An execution.
#[derive(Serialize)]
struct LedgerLine<'a> {
    call: String,
    id: Blake3,
    outputs: Vec<Digest>,
    seconds: f64,
    peak_bytes: u64,
    isolation: &'a str,
}

/// What identifies a call everywhere: what was executed, from what. Its name does not, since it may be longer elsewhere.
#[derive(Serialize)]
struct CallIdentity<'a> {
    computation: &'a ComputationName,
    tree: &'a ObjectId,
    inputs: &'a [Digest],
}

/// The files of the ledger that a push adds, with their names. `by` is how the one who executed the calls wants to be called.
pub(super) fn ledger(lines: &[Vec<u8>], by: Option<&str>) -> Vec<(String, Vec<u8>)> {
    lines.chunks(LINES).map(|lines| file(lines, by)).collect()
}

fn file(lines: &[Vec<u8>], by: Option<&str>) -> (String, Vec<u8>) {
    let mut text = json(&LedgerHeader { ledger: 1, by, reason: "run" });
    text.push(b'\n');
    for line in lines {
        text.extend(line);
        text.push(b'\n');
    }
    let name = Blake3::of(&text).full();
    let (shard, rest) = name.split_at(2);
    (format!("{LEDGER}/{shard}/{rest}.ndjson"), text)
}

/// The line of a result; `None` unless it was executed in this storage.
pub(super) fn line(result: &SharedResult) -> Option<Vec<u8>> {
    let Record::Call(call) = &result.record else { return None };
    let Origin::Executed { execution, .. } = &call.origin else { return None };
    if execution.taken_over.is_some() {
        return None;
    }
    let (computation, tree, inputs) = (&call.computation, &call.tree, &call.inputs);
    Some(json(&LedgerLine {
        call: result.entry.short(),
        id: Blake3::of(&json(&CallIdentity { computation, tree, inputs })),
        outputs: call.outputs.iter().map(|it| it.digest).collect(),
        seconds: call.seconds().unwrap_or_default(),
        peak_bytes: execution.peak_bytes,
        isolation: &execution.isolation,
    }))
}

fn json(value: &impl Serialize) -> Vec<u8> {
    // Nothing here has a map whose keys are no texts, which alone could fail.
    serde_json::to_vec(value).unwrap_or_default()
}
