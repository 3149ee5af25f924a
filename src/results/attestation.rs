//! Attestations: who has executed a call, and with which outputs, by the ledger of a storage.
//!
//! What has no signature counts once, however often it is said: anybody may write it, any number of times.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use serde::{Serialize, Serializer};

use super::ledger::{call_identity, parse};
use crate::digest::{Blake3, Digest};
use crate::storage::records::{CallRecord, SignerNote};
use crate::storage::{Entry, Read, Record, Storage, StorageError};

/// Who says that a call was executed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Attester {
    /// Somebody whose signature was verified.
    Signer(String),
    /// This storage.
    Here,
    /// Whoever has not signed.
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

/// An execution: who says so, and its outputs; none if it failed.
type Statement = (Attester, Option<Vec<Digest>>);

/// What is said of the executions of all calls.
#[derive(Debug, Default)]
pub struct Attestations {
    by_call: HashMap<Blake3, Vec<Statement>>,
}

/// What is said of the executions of one call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Attested {
    /// Who has got the recorded outputs, and no others.
    pub agreeing: Vec<Attester>,
    /// Who has got others, or none.
    pub differing: Vec<Attester>,
}

/// What one attester says of a call.
#[derive(Clone, Copy, Debug, Default)]
struct Stance {
    agrees: bool,
    differs: bool,
}

/// What each attester says of one call. Who has differed once does not agree, whatever else they say.
#[derive(Debug, Default)]
pub(super) struct AttesterStances {
    of_attester: BTreeMap<Attester, Stance>,
}

impl AttesterStances {
    /// Adds an execution of a call with these recorded outputs. One that failed has no outputs.
    pub(super) fn add(
        &mut self,
        attester: Attester,
        recorded: &[Digest],
        outputs: Option<&[Digest]>,
    ) {
        let stance = self.of_attester.entry(attester).or_default();
        // One that failed may have done so for lack of something.
        if let Some(outputs) = outputs {
            stance.agrees |= outputs == recorded;
            stance.differs |= outputs != recorded;
        }
    }
}

impl From<AttesterStances> for Attested {
    fn from(stances: AttesterStances) -> Self {
        let mut attested = Self::default();
        for (attester, Stance { agrees, differs }) in stances.of_attester {
            let list =
                if agrees && !differs { &mut attested.agreeing } else { &mut attested.differing };
            list.push(attester);
        }
        attested
    }
}

impl Attestations {
    /// Reads the ledger of a storage. Files that are not named by their contents, or cannot be understood, are evidence of
    /// nothing.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read.
    pub fn read(storage: &Storage) -> Result<Self, StorageError> {
        let ledger = storage.ledger();
        let mut attestations = Self::default();
        for file in ledger.files()? {
            let Some(lines) = ledger.read(&file)?.and_then(|text| parse(&text)) else { continue };
            let attester = Attester::of_note(ledger.signer(&file)?);
            for line in lines {
                let said = attestations.by_call.entry(line.id).or_default();
                said.push((attester.clone(), line.outputs));
            }
        }
        Ok(attestations)
    }

    /// What is said of the recorded call with this short name; `None` if there is none.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read.
    pub fn of_call(&self, storage: &Storage, name: &str) -> Result<Option<Attested>, StorageError> {
        let Some(entry @ Entry::Call(_)) = Entry::of_short(name) else { return Ok(None) };
        Ok(match storage.records().read_entry(&entry)? {
            Read::Record(Record::Call(record)) if entry.fits_call(&record) => {
                Some(self.of(&record))
            }
            _ => None,
        })
    }

    /// What is said of a call with this record, which counts as said here if it was executed here.
    pub fn of(&self, record: &CallRecord) -> Attested {
        let mut said = AttesterStances::default();
        let recorded: Vec<Digest> = record.outputs.iter().map(|it| it.digest).collect();
        if record.execution().is_some() {
            said.add(Attester::Here, &recorded, Some(&recorded));
        }
        for (attester, outputs) in self.by_call.get(&call_identity(record)).into_iter().flatten() {
            said.add(attester.clone(), &recorded, outputs.as_deref());
        }
        said.into()
    }
}

impl Attested {
    /// The number of those who have executed the call.
    pub const fn all(&self) -> usize {
        self.agreeing.len() + self.differing.len()
    }

    /// Who they are: `alice@lab.org, here; differs: unsigned`.
    pub fn names(&self) -> String {
        let list =
            |who: &[Attester]| who.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let differing = match self.differing.is_empty() {
            true => String::new(),
            false => format!("differs: {}", list(&self.differing)),
        };
        let parts = [list(&self.agreeing), differing];
        parts.into_iter().filter(|it| !it.is_empty()).collect::<Vec<_>>().join("; ")
    }
}

/// `2 of 3`.
impl fmt::Display for Attested {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.agreeing.len(), self.all())
    }
}

#[cfg(test)]
mod tests {
    use super::super::ledger::{AuditFinding, LedgerReason, files, record_audits};
    use super::*;
    use crate::storage::records::{AuditFailure, AuditReport, Provenance};
    use crate::storage::{Durability, Unrecorded};

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
        let failed = AuditFailure {
            reason: "it ended with exit status 1".to_owned(),
            cause: None,
            hint: None,
            log: None,
        };
        let report = AuditReport {
            start: Provenance::now().at,
            seconds: 1.0,
            peak_bytes: 1,
            isolation: "namespaces".to_owned(),
            outputs: output.into_iter().copied().collect(),
            differing: Vec::new(),
            failed: output.is_none().then_some(failed),
        };
        AuditFinding { name: "c_copy/0/1".to_owned(), id: call_identity(record), report }
    }

    #[test]
    fn each_signer_counts_once_and_all_that_is_unsigned_counts_once() {
        let dir = tempfile::tempdir().unwrap();
        let storage = Storage::open(dir.path(), Unrecorded::Adopt, Durability::Unsynced).unwrap();
        let (same, other) = (Digest::of(b"same"), Digest::of(b"other"));
        let record = record(&same);
        let attested = || Attestations::read(&storage).unwrap().of(&record);
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
            (attested().to_string(), attested().names()),
            ("1 of 1".into(), "unsigned".into())
        );
        add(&same, "alice", Some("alice@lab.org"));
        add(&same, "alice again", Some("alice@lab.org"));
        add(&other, "bob", Some("bob@lab.org"));
        assert_eq!(attested().to_string(), "2 of 3");
        assert_eq!(attested().names(), "alice@lab.org, unsigned; differs: bob@lab.org");
        // What was found to differ once stays said.
        add(&other, "three", None);
        assert_eq!(attested().names(), "alice@lab.org; differs: bob@lab.org, unsigned");
        // Who has only failed has not got the recorded outputs.
        record_audits(&storage, &[finding(&record, None)], None).unwrap();
        assert_eq!(attested().names(), "alice@lab.org; differs: bob@lab.org, here, unsigned");
        record_audits(&storage, &[finding(&record, Some(&same))], None).unwrap();
        assert_eq!(attested().to_string(), "2 of 4");
    }
}
