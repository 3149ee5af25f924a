//! The ledger: what each push says of executions. It only grows, and no result depends on it.

use serde::{Deserialize, Serialize};

use super::layout::LEDGER;
use super::offer::SharedResult;
use crate::digest::{Blake3, Digest, ObjectId};
use crate::storage::Record;
use crate::storage::records::{CallRecord, Origin};
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

/// What a line of the ledger says of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Attestation {
    /// What identifies the call.
    pub(super) id: Blake3,
    /// Its outputs; `None` if it failed.
    pub(super) outputs: Option<Vec<Digest>>,
}

/// The first line of a file, as far as it must be understood.
#[derive(Deserialize)]
struct ReadHeader {
    ledger: u32,
}

/// A line, as far as it must be understood.
#[derive(Deserialize)]
struct ReadLine {
    id: Blake3,
    outputs: Option<Vec<Digest>>,
    failed: Option<serde_json::Value>,
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
    Some(json(&LedgerLine {
        call: result.entry.short(),
        id: identity(call),
        outputs: call.outputs.iter().map(|it| it.digest).collect(),
        seconds: call.seconds().unwrap_or_default(),
        peak_bytes: execution.peak_bytes,
        isolation: &execution.isolation,
    }))
}

/// What identifies a call in the ledger.
pub(super) fn identity(call: &CallRecord) -> Blake3 {
    let (computation, tree, inputs) = (&call.computation, &call.tree, &call.inputs);
    Blake3::of(&json(&CallIdentity { computation, tree, inputs }))
}

/// Reads a file of the ledger. `None` if it is none, or has too many lines.
pub(super) fn attestations(text: &[u8]) -> Option<Vec<Attestation>> {
    let mut lines = text.strip_suffix(b"\n")?.split(|c| *c == b'\n');
    let header: ReadHeader = serde_json::from_slice(lines.next()?).ok()?;
    if header.ledger != 1 {
        return None;
    }
    let attestation = |line: &[u8]| {
        let ReadLine { id, outputs, failed } = serde_json::from_slice(line).ok()?;
        let is_whole = outputs.is_some() != failed.is_some();
        is_whole.then_some(Attestation { id, outputs })
    };
    let all = lines.take(LINES + 1).map(attestation).collect::<Option<Vec<_>>>()?;
    (all.len() <= LINES).then_some(all)
}

fn json(value: &impl Serialize) -> Vec<u8> {
    // Nothing here has a map whose keys are no texts, which alone could fail.
    serde_json::to_vec(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_the_ledger_is_read_whole_or_not_at_all() {
        let id = Blake3::of(b"call");
        let line = |rest: &str| format!("{{\"id\":\"{}\",{rest}}}\n", id.full());
        let [done, failed] = [line("\"outputs\":[]"), line("\"failed\":\"exit 1\"")];
        let file = |lines: &str| format!("{{\"ledger\":1,\"reason\":\"run\"}}\n{lines}");
        let read = |text: String| attestations(text.as_bytes());
        let expected = [Some(Vec::new()), None].map(|outputs| Attestation { id, outputs });
        assert_eq!(read(file(&format!("{done}{failed}"))).unwrap(), expected);
        assert_eq!(read(file(&done.repeat(LINES))).unwrap().len(), LINES);
        for wrong in [
            String::new(),
            done.clone(),
            file(&done.repeat(LINES + 1)),
            file(done.trim_end()),
            file(&line("\"seconds\":1")),
            file(&format!("{done}\n")),
            file(&done).replace("\"ledger\":1", "\"ledger\":2"),
        ] {
            assert_eq!(read(wrong.clone()), None, "{}", &wrong[..wrong.len().min(200)]);
        }
    }
}
