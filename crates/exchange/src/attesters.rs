//! Attestations: who has executed a call, and with which outputs, by the ledger of a storage or of a repository.
//!
//! Statements without a signature count once in total: any user may write them, any number of times.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use ce_git::Mirror;
use ce_history::PublishedExecution;
use ce_model::digest::{Blake3, Digest, ObjectId};
use ce_storage::records::{CallRecord, HostKind, SignerNote};
use ce_storage::{Entry, Ledger, Record, Storage, StorageError, of_ledger_file};
use serde::{Serialize, Serializer};

use crate::ResultsError;
use crate::ledger::{LedgerLine, call_identity, parse};
use crate::repository::{Finder, LEDGER};
use crate::trust::{FileSigner, Trust};

/// The author of a statement that a call was executed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Attester {
    /// A signer whose signature was verified.
    Signer(String),
    /// This storage.
    Here,
    /// All authors without a signature.
    Unsigned,
}

impl Attester {
    /// The attester of a file of the ledger with this note.
    fn of_note(note: Option<SignerNote>) -> Self {
        match note {
            Some(SignerNote { own: true, .. }) => Self::Here,
            Some(SignerNote { signer: Some(signer), .. }) => Self::Signer(signer),
            _ => Self::Unsigned,
        }
    }
}

impl fmt::Display for Attester {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Signer(signer) => signer,
            Self::Here => "here",
            Self::Unsigned => "unsigned",
        })
    }
}

impl Serialize for Attester {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// An execution: the author of the statement, the kind of its host, if that is known, and its outputs, which are empty
/// if it failed.
type Statement = (Attester, Option<HostKind>, Option<Vec<Digest>>);

/// An execution that made outputs: when and by whom, if that is published, and its cost.
type MadeExecution = (Option<PublishedExecution>, ExecutionCost);

/// The statements about the executions of all calls.
#[derive(Debug, Default)]
pub struct Attestations {
    by_call: HashMap<Blake3, Vec<Statement>>,
    /// The executions that made outputs, by the call and the outputs. They are sorted: the one that ended first is first, and ones without an
    /// end are last.
    made: HashMap<(Blake3, Vec<Digest>), Vec<MadeExecution>>,
}

/// The duration and memory of an execution, as the ledger has them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExecutionCost {
    pub seconds: f64,
    /// Its peak memory in bytes.
    pub peak_bytes: u64,
}

/// Attesters who agree with the recorded outputs of a call, and attesters who do not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Agreement<T> {
    /// Attesters with only the recorded outputs.
    pub agreeing: Vec<T>,
    /// Attesters with other outputs, or with a failure.
    pub differing: Vec<T>,
}

/// The attesters of one call, and the kinds of hosts that it was executed on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Attested {
    /// The attesters that have executed it.
    #[serde(flatten)]
    pub by: Agreement<Attester>,
    /// The kinds of hosts on which it was executed, as far as signers or this storage say so.
    pub host_kinds: Agreement<HostKind>,
}

/// The stance of an attester, or of a kind of host, on the outputs of one call.
#[derive(Clone, Copy, Debug, Default)]
struct Stance {
    agrees: bool,
    differs: bool,
}

/// The stances of all attesters on one call. An attester who has differed once does not agree, regardless of their other
/// statements.
#[derive(Debug, Default)]
struct AttesterStances {
    of_attester: BTreeMap<Attester, Stance>,
    of_kind: BTreeMap<HostKind, Stance>,
}

impl AttesterStances {
    /// Adds an execution of a call with these recorded outputs. One that failed has no outputs.
    fn add(
        &mut self,
        attester: Attester,
        kind: Option<&HostKind>,
        recorded: &[Digest],
        outputs: Option<&[Digest]>,
    ) {
        // Any user may invent kinds.
        let kind = kind.filter(|_| attester != Attester::Unsigned);
        let of_kind = kind.map(|kind| self.of_kind.entry(kind.clone()).or_default());
        let of_attester = self.of_attester.entry(attester).or_default();
        for stance in of_kind.into_iter().chain([of_attester]) {
            // A failed execution may have lacked something.
            stance.agrees |= outputs.is_some_and(|outputs| outputs == recorded);
            stance.differs |= outputs.is_some_and(|outputs| outputs != recorded);
        }
    }
}

impl From<AttesterStances> for Attested {
    fn from(stances: AttesterStances) -> Self {
        let AttesterStances { of_attester, of_kind } = stances;
        Self { by: of_attester.into_iter().collect(), host_kinds: of_kind.into_iter().collect() }
    }
}

impl<T> FromIterator<(T, Stance)> for Agreement<T> {
    fn from_iter<I: IntoIterator<Item = (T, Stance)>>(stances: I) -> Self {
        let mut agreement = Self::default();
        for (one, Stance { agrees, differs }) in stances {
            let agrees = agrees && !differs;
            let list = if agrees { &mut agreement.agreeing } else { &mut agreement.differing };
            list.push(one);
        }
        agreement
    }
}

// Not derived: that would ask for a default of T.
impl<T> Default for Agreement<T> {
    fn default() -> Self {
        Self { agreeing: Vec::new(), differing: Vec::new() }
    }
}

impl Attestations {
    /// Reads the ledger of a storage. Files that are not named by their contents, or cannot be understood, are evidence of
    /// nothing.
    pub fn read(storage: &Storage) -> Result<Self, StorageError> {
        let ledger = storage.ledger();
        let mut attestations = Self::default();
        for file in ledger.files()? {
            let Some(lines) = ledger.read(&file)?.and_then(|text| parse(&text)) else { continue };
            let attester = Attester::of_note(ledger.signer(&file)?);
            for line in lines {
                if let Some(outputs) = &line.outputs {
                    let (by, machine) = (attester.to_string(), line.machine);
                    let others_percent = line.others_percent;
                    let published =
                        line.end.map(|end| PublishedExecution { end, by, machine, others_percent });
                    let cost = ExecutionCost { seconds: line.seconds, peak_bytes: line.peak_bytes };
                    let made = attestations.made.entry((line.id, outputs.clone())).or_default();
                    made.push((published, cost));
                }
                let said = attestations.by_call.entry(line.id).or_default();
                said.push((attester.clone(), line.host_kind, line.outputs));
            }
        }
        for made in attestations.made.values_mut() {
            made.sort_by_cached_key(|(published, _)| {
                let without_machine = published.as_ref().map(|it| (it.end, it.machine.is_none()));
                (published.is_none(), without_machine, published.clone())
            });
        }
        Ok(attestations)
    }

    /// The executions that have made the outputs of a record.
    fn made(&self, record: &CallRecord) -> &[MadeExecution] {
        let recorded = record.outputs.iter().map(|it| it.digest).collect();
        self.made.get(&(call_identity(record), recorded)).map_or(&[], Vec::as_slice)
    }

    /// Returns the attesters of the recorded call with this short name; `None` if no such call is recorded.
    pub fn of_call(&self, storage: &Storage, name: &str) -> Result<Option<Attested>, StorageError> {
        let Some(entry @ Entry::Call(_)) = Entry::of_short(name) else { return Ok(None) };
        Ok(match storage.records().read_fitting(&entry)? {
            Some(Record::Call(record)) => Some(self.find_attesters(&record)),
            _ => None,
        })
    }

    /// The executions that have made the outputs of this record and say when they ended, the first one first.
    pub fn published(&self, record: &CallRecord) -> Vec<PublishedExecution> {
        let mut published: Vec<_> =
            self.made(record).iter().filter_map(|(published, _)| published.clone()).collect();
        published.sort_unstable();
        published.dedup();
        published
    }

    /// What the execution cost that [`Self::first_published`] returns, or else another one that has made the outputs of this record.
    pub fn cost(&self, record: &CallRecord) -> Option<ExecutionCost> {
        self.made(record).first().map(|(_, cost)| *cost)
    }

    /// Returns the published execution of a call that ended first; of several at that time, one with a machine.
    pub fn first_published(&self, record: &CallRecord) -> Option<PublishedExecution> {
        self.made(record).first()?.0.clone()
    }

    /// Returns the attesters of a call with this record. An execution here counts as a statement of this storage.
    pub fn find_attesters(&self, record: &CallRecord) -> Attested {
        let mut said = AttesterStances::default();
        let recorded: Vec<Digest> = record.outputs.iter().map(|it| it.digest).collect();
        if let Some(execution) = record.execution() {
            let kind = execution.host_kind.as_ref();
            said.add(Attester::Here, kind, &recorded, Some(&recorded));
        }
        let of_call = self.by_call.get(&call_identity(record)).into_iter().flatten();
        for (attester, kind, outputs) in of_call {
            said.add(attester.clone(), kind.as_ref(), &recorded, outputs.as_deref());
        }
        said.into()
    }
}

impl<T: fmt::Display> Agreement<T> {
    /// Their number.
    pub const fn all(&self) -> usize {
        self.agreeing.len() + self.differing.len()
    }

    /// Their names: `alice@lab.org, here; differs: unsigned`.
    pub fn names(&self) -> String {
        let [agreeing, differing] = [&self.agreeing, &self.differing]
            .map(|of| of.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "));
        match (&*agreeing, &*differing) {
            (_, "") => agreeing,
            ("", _) => format!("differs: {differing}"),
            _ => format!("{agreeing}; differs: {differing}"),
        }
    }
}

/// `2 of 3`.
impl<T: fmt::Display> fmt::Display for Agreement<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.agreeing.len(), self.all())
    }
}

impl Attested {
    /// Returns how well attested it is: the number of agreeing attesters, then of agreeing kinds of hosts.
    pub const fn rank(&self) -> (usize, usize) {
        (self.by.agreeing.len(), self.host_kinds.agreeing.len())
    }
}

/// `2 of 3`, and of several kinds of hosts `2 of 3 on 1 of 2 kinds`.
impl fmt::Display for Attested {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { by, host_kinds } = self;
        match host_kinds.all() {
            0 | 1 => write!(f, "{by}"),
            _ => write!(f, "{by} on {host_kinds} kinds"),
        }
    }
}

/// A file of the ledger of a repository.
#[derive(Debug)]
struct LedgerFile {
    path: String,
    id: ObjectId,
    contents: Blake3,
}

/// The text of a file of the ledger, and its statements.
type ReadFile = (Vec<u8>, Vec<LedgerLine>);

/// Files of the ledger of a repository.
#[derive(Debug, Default)]
pub(super) struct TakenEvidence {
    /// The number of files that were new, or would be.
    pub(super) new: usize,
    /// The paths of files that are not evidence.
    pub(super) refused: Vec<String>,
}

/// The evidence in a repository.
#[derive(Debug)]
pub(super) struct Evidence {
    files: Vec<LedgerFile>,
    /// The paths of files that are not named by contents.
    strange: Vec<String>,
    /// The attestations of each call, each with the number of its file.
    of_call: HashMap<Blake3, Vec<(usize, LedgerLine)>>,
}

impl Evidence {
    /// Lists the files of the ledger, and reads them if that is wanted. Files that do not match their names, or cannot be
    /// parsed, are left out.
    pub(super) fn collect(
        mirror: &Mirror,
        finder: &mut Finder<'_>,
        is_read: bool,
    ) -> Result<Self, ResultsError> {
        let (mut files, mut strange) = (Vec::new(), Vec::new());
        for (path, id) in finder.files_in(LEDGER)? {
            match of_ledger_file(&path) {
                Some(contents) => files.push(LedgerFile { path, id, contents }),
                None => strange.push(path),
            }
        }
        let mut evidence = Self { files, strange, of_call: HashMap::new() };
        if is_read {
            let ids: Vec<ObjectId> = evidence.files.iter().map(|it| it.id.clone()).collect();
            mirror.fetch_files(&ids)?;
            for (number, file) in evidence.files.iter().enumerate() {
                let Some((_, attestations)) = file.read(mirror)? else { continue };
                for attestation in attestations {
                    let of_call = evidence.of_call.entry(attestation.id).or_default();
                    of_call.push((number, attestation));
                }
            }
        }
        Ok(evidence)
    }

    /// Returns the attesters of a call with these outputs. Each signer who is trusted for it counts as one, and all others together
    /// as one.
    pub(super) fn attested(
        &self,
        trust: &Trust,
        call: &Blake3,
        owner: &str,
        outputs: &[Digest],
    ) -> Attested {
        let mut attested = AttesterStances::default();
        for (number, line) in self.of_call.get(call).into_iter().flatten() {
            let LedgerFile { path, id, .. } = &self.files[*number];
            let signers = trust.signers(path, id).into_iter().map(|it| it.principal);
            let trusted = signers.filter(|it| trust.is_trusted(it, owner));
            let mut attesters: Vec<Attester> =
                trusted.map(|it| Attester::Signer(it.to_owned())).collect();
            if attesters.is_empty() {
                attesters.push(Attester::Unsigned);
            }
            for attester in attesters {
                let kind = line.host_kind.as_ref();
                attested.add(attester, kind, outputs, line.outputs.as_deref());
            }
        }
        attested.into()
    }

    /// Brings the files that a storage does not have, and notes who vouches for them, unless nothing is to be written.
    pub(super) fn import(
        &self,
        storage: &Storage,
        mirror: &Mirror,
        trust: &Trust,
        dry: bool,
    ) -> Result<TakenEvidence, ResultsError> {
        let ledger = storage.ledger();
        let mut lacking = Vec::new();
        for file in &self.files {
            if !ledger.has(&file.contents)? {
                lacking.push(file);
            }
        }
        let mut taken = TakenEvidence { new: lacking.len(), refused: self.strange.clone() };
        if dry {
            return Ok(taken);
        }
        let ids: Vec<ObjectId> = lacking.iter().map(|it| it.id.clone()).collect();
        mirror.fetch_files(&ids)?;
        for file in lacking {
            match file.read(mirror)? {
                Some((text, _)) => drop(ledger.add(&text)?),
                None => {
                    taken.new -= 1;
                    taken.refused.push(file.path.clone());
                }
            }
        }
        for file in &self.files {
            if let Some(signer) = trust.signers(&file.path, &file.id).first()
                && ledger.has(&file.contents)?
                && ledger.signer(&file.contents)?.is_none()
            {
                ledger.note_signer(&file.contents, &signer_note(signer, mirror.url()))?;
            }
        }
        Ok(taken)
    }
}

impl LedgerFile {
    /// Its contents, and its statements. `None` if they do not belong to the name, or cannot be understood.
    fn read(&self, mirror: &Mirror) -> Result<Option<ReadFile>, ResultsError> {
        let text = mirror.contents(&self.id, Ledger::MAX_BYTES)?;
        let text = text.filter(|text| Blake3::hash_bytes(text) == self.contents);
        Ok(text.and_then(|text| parse(&text).map(|found| (text, found))))
    }
}

/// The note of who vouches for a file of the ledger.
fn signer_note(FileSigner { principal, key, commit }: &FileSigner<'_>, url: &str) -> SignerNote {
    SignerNote {
        own: false,
        signer: Some((*principal).to_owned()),
        key: Some((*key).to_owned()),
        commit: Some(commit.full().to_owned()),
        repository: Some(url.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use ce_storage::records::{AuditReport, FailureFacts, Provenance};
    use ce_storage::{Durability, Unrecorded};

    use super::*;
    use crate::ledger::{AuditFinding, LedgerReason, files, record_audits};

    /// The record of a call from elsewhere, with one output.
    fn record(output: &Digest) -> CallRecord {
        let id = "0123456789abcdef0123456789abcdef01234567";
        let output = serde_json::to_value(output).unwrap();
        let record = serde_json::json!({
            "format": 3, "computation": "copy", "commit": id, "tree": id, "inputs": [output],
            "outputs": [output], "origin": {"shared": {"isolation": "namespaces"}},
        });
        serde_json::from_value(record).unwrap()
    }

    fn finding(record: &CallRecord, output: Option<&Digest>) -> AuditFinding {
        let failed = FailureFacts::of_reason("it ended with exit status 1");
        let report = AuditReport {
            start: Provenance::now().at,
            seconds: 1.0,
            peak_bytes: 1,
            isolation: "namespaces".into(),
            host_kind: None,
            outputs: output.into_iter().copied().collect(),
            differing: Vec::new(),
            failed: output.is_none().then_some(failed),
        };
        AuditFinding { name: "c_copy/0/1".to_owned(), id: call_identity(record), report }
    }

    #[test]
    fn each_signer_counts_once_and_all_unsigned_evidence_counts_once() {
        let dir = tempfile::tempdir().unwrap();
        let storage = Storage::open(dir.path(), Unrecorded::Adopt, Durability::Unsynced).unwrap();
        let (same, other) = (Digest::hash_bytes(b"same"), Digest::hash_bytes(b"other"));
        let record = record(&same);
        let attested = || Attestations::read(&storage).unwrap().find_attesters(&record);
        assert_eq!(
            (attested(), attested().to_string()),
            (Attested::default(), "0 of 0".to_owned())
        );
        // Files with the same line of different people.
        let line = |output: &Digest| {
            let scratch = tempfile::tempdir().unwrap();
            let scratch =
                Storage::open(scratch.path(), Unrecorded::Adopt, Durability::Unsynced).unwrap();
            record_audits(&scratch, &[finding(&record, Some(output))], None).unwrap();
            let ledger = scratch.ledger();
            let text = ledger.read(&ledger.files().unwrap()[0]).unwrap().unwrap();
            text.split(|byte| *byte == b'\n').nth(1).unwrap().to_vec()
        };
        let add = |output: &Digest, by: &str, signer: Option<&str>| {
            let text = files(&[line(output)], LedgerReason::Run, Some(by)).remove(0);
            let (contents, _) = storage.ledger().add(&text).unwrap();
            if let Some(signer) = signer {
                let signer = Some(signer.to_owned());
                let note = SignerNote { signer, ..SignerNote::default() };
                storage.ledger().note_signer(&contents, &note).unwrap();
            }
        };
        add(&same, "one", None);
        add(&same, "two", None);
        assert_eq!(
            (attested().to_string(), attested().by.names()),
            ("1 of 1".into(), "unsigned".into())
        );
        add(&same, "alice", Some("alice@lab.org"));
        add(&same, "alice again", Some("alice@lab.org"));
        add(&other, "bob", Some("bob@lab.org"));
        assert_eq!(attested().to_string(), "2 of 3");
        assert_eq!(attested().by.names(), "alice@lab.org, unsigned; differs: bob@lab.org");
        // An attester who has differed once stays in `differing`.
        add(&other, "three", None);
        assert_eq!(attested().by.names(), "alice@lab.org; differs: bob@lab.org, unsigned");
        // An attester who has only failed has not got the recorded outputs.
        record_audits(&storage, &[finding(&record, None)], None).unwrap();
        assert_eq!(attested().by.names(), "alice@lab.org; differs: bob@lab.org, here, unsigned");
        record_audits(&storage, &[finding(&record, Some(&same))], None).unwrap();
        assert_eq!(attested().to_string(), "2 of 4");
    }

    #[test]
    fn the_published_execution_that_ended_first_says_when_and_how_long() {
        let dir = tempfile::tempdir().unwrap();
        let storage = Storage::open(dir.path(), Unrecorded::Adopt, Durability::Unsynced).unwrap();
        let output = Digest::hash_bytes(b"same");
        let record = record(&output);
        record_audits(&storage, &[finding(&record, Some(&output))], None).unwrap();
        let ledger = storage.ledger();
        let text = ledger.read(&ledger.files().unwrap()[0]).unwrap().unwrap();
        let line = text.split(|byte| *byte == b'\n').nth(1).unwrap();
        for (by, end, seconds) in [("a", 3, 30.0), ("b", 1, 10.0), ("c", 2, 20.0)] {
            let mut line: serde_json::Value = serde_json::from_slice(line).unwrap();
            line["end"] = serde_json::json!(format!("2026-01-0{end}T00:00:00Z"));
            line["seconds"] = serde_json::json!(seconds);
            let text = files(&[line.to_string().into_bytes()], LedgerReason::Run, Some(by));
            ledger.add(&text[0]).unwrap();
        }
        let all = Attestations::read(&storage).unwrap();
        let first = all.first_published(&record).unwrap();
        assert_eq!(first.end.to_string(), "2026-01-01T00:00:00Z");
        assert_eq!(all.cost(&record).unwrap().seconds, 10.0);
        let ends =
            all.published(&record).into_iter().map(|it| it.end.to_string()[8..10].to_owned());
        assert_eq!(ends.collect::<Vec<_>>(), ["01", "02", "03"]);
    }

    #[test]
    fn hosts_count_by_the_kind_that_their_signers_state() {
        let (same, other) = (Digest::hash_bytes(b"same"), Digest::hash_bytes(b"other"));
        let [intel, amd, arm] =
            ["x86_64-v4-intel", "x86_64-v3-amd", "aarch64"].map(|it| HostKind::named(it).unwrap());
        let attested = |said: &[(Attester, Option<&HostKind>, Option<&Digest>)]| {
            let mut stances = AttesterStances::default();
            for (attester, kind, output) in said {
                let outputs = output.map(std::slice::from_ref);
                stances.add(attester.clone(), *kind, std::slice::from_ref(&same), outputs);
            }
            let attested = Attested::from(stances);
            (attested.to_string(), attested.host_kinds.names())
        };
        let alice = || Attester::Signer("alice@lab.org".to_owned());
        let (here, unsigned) = (Attester::Here, Attester::Unsigned);
        let said = [
            (here.clone(), Some(&intel), Some(&same)),
            (alice(), Some(&amd), Some(&same)),
            // The first statement is unsigned, so its kind does not count. An earlier program has written no kind.
            (unsigned, Some(&arm), Some(&same)),
            (here.clone(), None, Some(&same)),
            // This is the second kind of host of alice.
            (alice(), Some(&intel), Some(&same)),
        ];
        let expected = ("3 of 3 on 2 of 2 kinds".into(), "x86_64-v3-amd, x86_64-v4-intel".into());
        assert_eq!(attested(&said), expected);
        let one_kind = ("2 of 2".to_owned(), "x86_64-v4-intel".to_owned());
        assert_eq!(attested(&[said[0].clone(), said[2].clone()]), one_kind);
        // A kind on which it differed once, or only failed, does not agree.
        let mut said = said.to_vec();
        said.extend([(here.clone(), Some(&amd), Some(&other)), (alice(), Some(&arm), None)]);
        let differing = "x86_64-v4-intel; differs: aarch64, x86_64-v3-amd";
        assert_eq!(attested(&said), ("2 of 3 on 1 of 3 kinds".to_owned(), differing.to_owned()));
    }
}
