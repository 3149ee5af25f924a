//! The ledger: statements about executions. It only grows, and no result depends on it.
//!
//! A file has a header and a line for each execution. A push writes the executions of new results, and an audit its
//! findings. Its name is the hash of its contents.

use std::collections::HashSet;

use ce_git::{Mirror, PackWriter, UnwrittenTree};
use ce_model::digest::{Blake3, Digest, ObjectId};
use ce_model::humanize::counted_all;
use ce_model::name::ComputationName;
use ce_model::shared_text::SharedText;
use ce_storage::records::{AuditReport, CallRecord, HostKind, Origin};
use ce_storage::{Ledger, Storage, StorageError, ledger_file};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::ResultsError;
use crate::repository::Finder;

/// The greatest number of lines in a file.
const LINES: usize = 10_000;

/// The size of the lines of a file beyond which no further one is added, in bytes.
const FULL: usize = 8 << 20;

/// The version of files that this program reads and writes.
const VERSION: u32 = 1;

/// The greatest length of the reason of a failure, in characters.
const REASON: usize = 200;

/// The facts on executions that a push publishes only on request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LedgerFacts {
    /// When they ended.
    pub times: bool,
    /// On which machines they were.
    pub machine: bool,
}

/// The reason why executions are in the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum LedgerReason {
    /// Their outputs are results.
    Run,
    /// They were compared with results.
    Audit,
}

/// The first line of a file.
#[derive(Serialize, Deserialize)]
struct LedgerHeader {
    ledger: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    reason: LedgerReason,
}

/// An execution.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct LedgerLine {
    pub(super) call: String,
    pub(super) id: Blake3,
    /// None if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) outputs: Option<Vec<Digest>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failed: Option<String>,
    pub(super) seconds: f64,
    pub(super) peak_bytes: u64,
    isolation: SharedText,
    /// None if an earlier program has recorded it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) host_kind: Option<HostKind>,
    /// When it ended, if that was to be published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) end: Option<Timestamp>,
    /// On which machine, if that was to be published, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) machine: Option<SharedText>,
    /// The share of its processors that others had, in percent and rounded up, published with the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) others_percent: Option<u32>,
}

/// The identity of a call in all storages: the executed computation, and its inputs. The name does not identify it,
/// since it may be longer elsewhere.
#[derive(Serialize)]
struct CallIdentity<'a> {
    computation: &'a ComputationName,
    tree: &'a ObjectId,
    inputs: &'a [Digest],
}

/// An audited call, and the finding.
#[derive(Clone, Debug)]
pub struct AuditFinding {
    /// Its short name.
    pub name: String,
    /// Its identity in all storages.
    pub id: Blake3,
    /// The finding itself.
    pub report: AuditReport,
}

/// Returns the identity of a recorded call, which is the same in all storages.
pub fn call_identity(record: &CallRecord) -> Blake3 {
    let CallRecord { computation, tree, inputs, .. } = record;
    Blake3::hash_bytes(&json(&CallIdentity { computation, tree, inputs }))
}

/// Writes evidence of audits into the ledger of a storage. `by` is the name under which the executor of the calls wants to
/// appear.
pub fn record_audits(
    storage: &Storage,
    findings: &[AuditFinding],
    by: Option<&str>,
) -> Result<(), StorageError> {
    let mut lines = Vec::with_capacity(findings.len());
    for AuditFinding { name, id, report } in findings {
        let AuditReport { outputs, seconds, peak_bytes, isolation, host_kind, failed, .. } = report;
        let reason = failed.as_ref().map(|it| it.reason.chars().take(REASON).collect());
        lines.push(json(&LedgerLine {
            call: name.clone(),
            id: *id,
            outputs: failed.is_none().then(|| outputs.clone()),
            failed: reason,
            seconds: *seconds,
            peak_bytes: *peak_bytes,
            isolation: isolation.clone(),
            host_kind: host_kind.clone(),
            end: None,
            machine: None,
            others_percent: None,
        }));
    }
    for file in files(&lines, LedgerReason::Audit, by) {
        storage.ledger().add_own(&file)?;
    }
    storage.flush()
}

/// Lines of the ledger that become files, each as soon as it is full.
#[derive(Debug)]
pub(super) struct LedgerWriter {
    header: Vec<u8>,
    text: Vec<u8>,
    lines: usize,
}

impl LedgerWriter {
    /// Without lines. `by` is the name under which the executor of the calls wants to appear.
    pub(super) fn new(reason: LedgerReason, by: Option<&str>) -> Self {
        let mut header = json(&LedgerHeader { ledger: VERSION, by: by.map(str::to_owned), reason });
        header.push(b'\n');
        Self { header, text: Vec::new(), lines: 0 }
    }

    /// Adds a line. Returns the file that it has made full, if it has.
    pub(super) fn add(&mut self, line: &[u8]) -> Option<Vec<u8>> {
        if self.lines == 0 {
            self.text.extend(&self.header);
        }
        self.text.extend(line);
        self.text.push(b'\n');
        self.lines += 1;
        let is_full = self.lines == LINES || self.text.len() - self.header.len() > FULL;
        if is_full { self.rest() } else { None }
    }

    /// The file with the lines that are in no other one, if there are any.
    pub(super) fn rest(&mut self) -> Option<Vec<u8>> {
        self.lines = 0;
        let text = std::mem::take(&mut self.text);
        (!text.is_empty()).then_some(text)
    }
}

/// Returns the number of results of each kind, in words; without any, the number of files of the ledger. These come with results.
pub(super) fn counted_with_ledger(results: &[(usize, &str)], files: usize) -> String {
    match counted_all(results) {
        none if none.is_empty() => counted_all(&[(files, "ledger file")]),
        results => results,
    }
}

/// The files of the ledger with these lines.
pub(super) fn files(lines: &[Vec<u8>], reason: LedgerReason, by: Option<&str>) -> Vec<Vec<u8>> {
    let mut writer = LedgerWriter::new(reason, by);
    let mut files: Vec<Vec<u8>> = lines.iter().filter_map(|line| writer.add(line)).collect();
    files.extend(writer.rest());
    files
}

/// The lines of a file; `None` if it is not a file of the ledger.
pub(super) fn parse(text: &[u8]) -> Option<Vec<LedgerLine>> {
    if text.len() as u64 > Ledger::MAX_BYTES {
        return None;
    }
    let mut lines = text.strip_suffix(b"\n")?.split(|byte| *byte == b'\n');
    let header: LedgerHeader = serde_json::from_slice(lines.next()?).ok()?;
    let lines: Vec<LedgerLine> = lines
        .map(|line| {
            let line: LedgerLine = serde_json::from_slice(line).ok()?;
            (line.outputs.is_some() != line.failed.is_some()).then_some(line)
        })
        .collect::<Option<_>>()?;
    (header.ledger == VERSION && lines.len() <= LINES).then_some(lines)
}

/// The executions that the ledger of a storage says were here, each by its identity.
pub(super) fn own_executions(storage: &Storage) -> Result<HashSet<Blake3>, StorageError> {
    let ledger = storage.ledger();
    let mut own = HashSet::new();
    for contents in ledger.files()? {
        if ledger.signer(&contents)?.is_some_and(|note| note.own) {
            let lines = ledger.read(&contents)?.and_then(|text| parse(&text)).unwrap_or_default();
            own.extend(lines.iter().flat_map(LedgerLine::identities));
        }
    }
    Ok(own)
}

impl LedgerLine {
    /// The execution of a call with this short name; `None` unless it was executed in this storage.
    pub(super) fn from_call(name: String, call: &CallRecord, facts: LedgerFacts) -> Option<Self> {
        let Origin::Executed { execution, .. } = &call.origin else { return None };
        if execution.taken_over.is_some() {
            return None;
        }
        let host_use = execution.host_use.as_ref().filter(|_| facts.machine);
        Some(Self {
            call: name,
            id: call_identity(call),
            outputs: Some(call.outputs.iter().map(|it| it.digest).collect()),
            failed: None,
            seconds: call.seconds().unwrap_or_default(),
            peak_bytes: execution.peak_bytes,
            isolation: execution.isolation.clone(),
            host_kind: execution.host_kind.clone(),
            end: facts.times.then_some(execution.end),
            machine: execution.machine.clone().filter(|_| facts.machine),
            others_percent: host_use.map(|it| (it.share() * 100.0).ceil() as u32),
        })
    }

    /// Its text in a file.
    pub(super) fn line(&self) -> Vec<u8> {
        json(self)
    }

    /// Returns the identity that it shares with all executions of the same call with the same outputs on the same kind of host, and
    /// the one that adds its time and machine, if it says so.
    pub(super) fn identities(&self) -> [Blake3; 2] {
        let Self { id, outputs, host_kind, end, machine, .. } = self;
        let execution = (id, outputs, host_kind);
        let facts = (end.is_some() || machine.is_some()).then_some((end, machine));
        let with_facts = facts.map(|facts| Blake3::hash_bytes(&json(&(execution, facts))));
        let execution = Blake3::hash_bytes(&json(&execution));
        [execution, with_facts.unwrap_or(execution)]
    }
}

fn json(value: &impl Serialize) -> Vec<u8> {
    // Only a map with keys that are not texts could fail, and there are none here.
    serde_json::to_vec(value).unwrap_or_default()
}

/// Writes the files of a storage that the repository lacks, unless nothing is to be written. Returns their number. If
/// the commit is signed, files of other authors are not written: the signer would vouch for them.
pub(super) fn add_evidence(
    storage: &Storage,
    mirror: &Mirror,
    there: &mut Finder<'_>,
    writer: &mut Option<PackWriter<'_>>,
    files: &mut UnwrittenTree,
    is_signed: bool,
) -> Result<usize, ResultsError> {
    let (ledger, mut lacking) = (storage.ledger(), 0);
    for contents in ledger.files()? {
        let path = ledger_file(&contents);
        let is_own = ledger.signer(&contents)?.is_some_and(|it| it.own);
        if (is_signed && !is_own) || there.find(&path)?.is_some() {
            continue;
        }
        let Some(text) = ledger.read(&contents)?.filter(|text| parse(text).is_some()) else {
            continue;
        };
        if let Some(writer) = writer {
            let written = writer.file(&text).and_then(|id| files.insert(&path, &id));
            written.map_err(|error| mirror.own(error))?;
        }
        lacking += 1;
    }
    Ok(lacking)
}

/// Keeps files that were pushed, as made here. The repository has the lines, so a failure to write them does not matter.
pub(super) fn keep_evidence(storage: &Storage, mirror: &Mirror, files: &[ObjectId]) {
    if storage.is_writable() {
        for file in files {
            if let Ok(Some(text)) = mirror.contents(file, Ledger::MAX_BYTES) {
                drop(storage.ledger().add_own(&text));
            }
        }
        drop(storage.flush());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(call: &str) -> Vec<u8> {
        json(&LedgerLine {
            call: call.to_owned(),
            id: Blake3::hash_bytes(call.as_bytes()),
            outputs: Some(vec![Digest::hash_bytes(b"x")]),
            failed: None,
            seconds: 1.5,
            peak_bytes: 1024,
            isolation: "namespaces".into(),
            host_kind: Some(HostKind::here().clone()),
            end: None,
            machine: None,
            others_percent: None,
        })
    }

    #[test]
    fn a_ledger_is_read_as_it_was_written_and_split_when_large() {
        let lines: Vec<Vec<u8>> = (0..LINES + 1).map(|it| line(&it.to_string())).collect();
        let files = files(&lines, LedgerReason::Audit, Some("alice"));
        let read: Vec<usize> = files.iter().map(|file| parse(file).unwrap().len()).collect();
        assert_eq!(read, [LINES, 1]);
        assert!(files[0].starts_with(b"{\"ledger\":1,\"by\":\"alice\",\"reason\":\"audit\"}\n"));
        let long = "x".repeat(FULL / 2);
        let lines: Vec<Vec<u8>> = (0..4).map(|_| line(&long)).collect();
        let read = super::files(&lines, LedgerReason::Run, None);
        assert_eq!(read.iter().map(|file| parse(file).unwrap().len()).collect::<Vec<_>>(), [2, 2]);
    }

    #[test]
    fn invalid_ledgers_are_refused() {
        let good = files(&[line("a")], LedgerReason::Run, None).remove(0);
        let text = String::from_utf8(good).unwrap();
        assert!(parse(text.as_bytes()).is_some());
        let both = text.replace("\"seconds\"", "\"failed\":\"no\",\"seconds\"");
        let neither = text.replace("\"outputs\"", "\"others\"");
        let bad = [
            text.replace("\"ledger\":1", "\"ledger\":2"),
            text.replace("\"run\"", "\"whim\""),
            text.trim_end().to_owned(),
            text.clone() + "x\n",
            text.clone() + "\n",
            text.lines().nth(1).unwrap().to_owned() + "\n",
            both,
            neither,
            String::new(),
        ];
        for bad in bad {
            assert!(parse(bad.as_bytes()).is_none(), "{bad}");
        }
    }
}
