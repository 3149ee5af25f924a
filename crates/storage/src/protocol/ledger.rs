//! The ledger: evidence of executions, in files that are named by their contents and never change.
//!
//! No result depends on the ledger, and its lines are not parsed here. Revocations say that a result is wrong; nothing is deleted
//! because of them.

use std::collections::{BTreeMap, HashMap, HashSet};

use rayon::prelude::*;

use super::Storage;
use crate::disk::{Result, StorageError};
use crate::paths::{
    Entry, LEDGER, QUARANTINE, REVOKED, ledger_file, of_ledger_file, of_revocation, revocation,
    revocations, signer_note,
};
use crate::records::{Record, RecordState, Records, RevocationRecord, SignerNote};
use ce_model::digest::{Blake3, Digest};

/// The ledger of a storage.
#[derive(Clone, Copy, Debug)]
pub struct Ledger<'a> {
    storage: &'a Storage,
}

impl<'a> Ledger<'a> {
    /// The greatest size of a file, in bytes.
    pub const MAX_BYTES: u64 = 16 << 20;

    pub(super) const fn new(storage: &'a Storage) -> Self {
        Self { storage }
    }

    /// Returns the names of all files, sorted, whether or not they are named by their contents.
    pub(crate) fn names(&self) -> Result<Vec<String>> {
        let root = &self.storage.root;
        let mut names = Vec::new();
        for shard in root.own_names(LEDGER)?.iter().filter(|shard| *shard != QUARANTINE) {
            let shard = format!("{LEDGER}/{shard}");
            names.extend(root.own_names(&shard)?.iter().map(|name| format!("{shard}/{name}")));
        }
        Ok(names)
    }

    /// Returns the hashes of all files, sorted.
    pub fn files(&self) -> Result<Vec<Blake3>> {
        Ok(self.names()?.iter().filter_map(|name| of_ledger_file(name)).collect())
    }

    /// Returns a file; `None` if it is not there, or does not have these contents.
    pub fn read(&self, contents: &Blake3) -> Result<Option<Vec<u8>>> {
        let read = self.storage.root.disk.read_one(&self.storage.path(&ledger_file(contents)));
        let read = match read {
            Err(error) if error.is_foreign() => None,
            read => read?,
        };
        Ok(read.map(|(_, text)| text).filter(|text| Blake3::hash_bytes(text) == *contents))
    }

    /// Whether a file of this name is there.
    pub fn has(&self, contents: &Blake3) -> Result<bool> {
        self.storage.has(&ledger_file(contents))
    }

    /// Adds a file. Returns its hash, and whether it was new. It is durable after the next
    /// [`flush`](Storage::flush).
    pub fn add(&self, text: &[u8]) -> Result<(Blake3, bool)> {
        let (root, contents) = (&self.storage.root, Blake3::hash_bytes(text));
        if self.read(&contents)?.is_some() {
            return Ok((contents, false));
        }
        let private = root.private_path()?;
        root.disk.write_sealed(&private, text, 0o444)?;
        root.unsynced.note(&private);
        let place = root.place(&ledger_file(&contents))?;
        root.disk.rename(&private, &place)?;
        root.unsynced.note_new(&place);
        Ok((contents, true))
    }

    /// Adds a file that is made here, and notes that.
    pub fn add_own(&self, text: &[u8]) -> Result<()> {
        let (contents, _) = self.add(text)?;
        self.note_signer(&contents, &SignerNote { own: true, ..SignerNote::default() })
    }

    /// Notes who vouches for a file.
    pub fn note_signer(&self, contents: &Blake3, note: &SignerNote) -> Result<()> {
        Records::new(&self.storage.root).put(&signer_note(contents), note)
    }

    /// Returns the note of who vouches for a file. A note that cannot be understood does not count.
    pub fn signer(&self, contents: &Blake3) -> Result<Option<SignerNote>> {
        match Records::new(&self.storage.root).read(&signer_note(contents)) {
            Ok(RecordState::Valid(note)) => Ok(Some(note)),
            Ok(RecordState::Spoiled | RecordState::Absent) | Err(StorageError::Format { .. }) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Moves a file that is not named by its contents to quarantine.
    pub(crate) fn set_aside(&self, name: &str) -> Result<()> {
        let root = &self.storage.root;
        let room = root.quarantine_room(&format!("{LEDGER}/{QUARANTINE}"));
        root.disk.rename(&root.path(name), &root.place(&room)?).map(drop)
    }

    /// Whether a file is named by its contents.
    pub(crate) fn is_right(&self, name: &str) -> Result<bool> {
        match of_ledger_file(name) {
            Some(contents) => Ok(self.read(&contents)?.is_some()),
            None => Ok(false),
        }
    }
}

/// A revocation, which is named by its contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revocation {
    /// The result that it is about.
    pub entry: Entry,
    pub record: RevocationRecord,
    /// The contents of its file.
    pub text: Vec<u8>,
}

impl Revocation {
    /// Reads the contents of a file of this name. `None` if it is not named by them, or cannot be understood.
    pub fn of_file(name: &str, text: Vec<u8>) -> Option<Self> {
        let (entry, contents) = of_revocation(name)?;
        let record =
            RevocationRecord::of_text(&text).filter(|_| Blake3::hash_bytes(&text) == contents)?;
        Some(Self { entry, record, text })
    }

    /// Whether it is about a result with these outputs. A table has more of them in a storage than in a repository.
    fn is_about(&self, outputs: &[Digest]) -> bool {
        let revoked = &self.record.outputs[..];
        match self.entry {
            Entry::Call(_) => outputs == revoked,
            _ => !revoked.is_empty() && outputs.starts_with(revoked),
        }
    }

    /// The name of its file.
    pub fn name(&self) -> String {
        revocation(&self.entry, &Blake3::hash_bytes(&self.text))
    }
}

/// Results in a storage that are revoked as they stand there: their short names, with the reasons.
pub type RevokedResults = BTreeMap<String, String>;

/// Returns the computation or task that the short name of a result begins with.
fn owner(name: &str) -> &str {
    name.split('/').next().unwrap_or_default()
}

/// Revocations, by the short names of the results that they are about.
#[derive(Clone, Debug, Default)]
pub struct RevocationIndex {
    of_result: HashMap<String, Vec<Revocation>>,
}

impl Extend<Revocation> for RevocationIndex {
    fn extend<I: IntoIterator<Item = Revocation>>(&mut self, revocations: I) {
        for revocation in revocations {
            self.of_result.entry(revocation.entry.short()).or_default().push(revocation);
        }
    }
}

impl RevocationIndex {
    /// All of them, in any order.
    pub fn all(&self) -> impl Iterator<Item = &Revocation> {
        self.of_result.values().flatten()
    }

    /// The reason why a result with these outputs is revoked, if it is.
    pub fn reason(&self, entry: &Entry, outputs: &[Digest]) -> Option<&str> {
        let mut all = self.of_result.get(&entry.short()).into_iter().flatten();
        all.find(|it| it.is_about(outputs)).map(|it| it.record.reason.as_str())
    }

    /// The reason why a recorded result is revoked, if it is: itself, or the one that it was taken over from, with the same outputs.
    pub fn reason_of(&self, entry: &Entry, record: &Record) -> Option<&str> {
        let outputs = record.outputs();
        self.reason(entry, &outputs).or_else(|| {
            let Record::Call(call) = record else { return None };
            let original = Entry::of_short(call.origin.taken_over()?)?;
            self.reason(&original, &outputs)
        })
    }

    /// The first of these calls of a job, by their short names, that is among the revoked results of a storage, or has
    /// any revoked outputs, and the reason. The record of a job does not say which outputs of a call it was made from.
    pub fn first_of<'a>(
        &'a self,
        calls: &'a [String],
        revoked: &'a RevokedResults,
    ) -> Option<(&'a String, &'a String)> {
        calls.iter().find_map(|call| {
            let any = self.of_result.get(call).and_then(|it| it.first());
            Some((call, any.map(|it| &it.record.reason).or_else(|| revoked.get(call))?))
        })
    }

    /// Whether there are no revocations.
    pub fn is_empty(&self) -> bool {
        self.of_result.is_empty()
    }

    /// The results among these that are revoked as they stand in a storage. Only records of computations with revocations are read.
    pub fn revoked_among(&self, storage: &Storage, entries: &[Entry]) -> Result<RevokedResults> {
        let owners: HashSet<&str> = self.of_result.keys().map(|name| owner(name)).collect();
        let read = entries.par_iter().map(|entry| {
            let name = entry.short();
            if !owners.contains(owner(&name)) {
                return Ok(None);
            }
            let record = storage.records().read_fitting(entry)?;
            let reason = record.as_ref().and_then(|record| self.reason_of(entry, record));
            Ok(reason.map(|reason| (name, reason.to_owned())))
        });
        Ok(read.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
    }
}

/// The revocations in a storage.
#[derive(Clone, Copy, Debug)]
pub struct Revocations<'a> {
    storage: &'a Storage,
}

impl<'a> Revocations<'a> {
    pub(super) const fn new(storage: &'a Storage) -> Self {
        Self { storage }
    }

    /// Reads all of them. Files that cannot be understood revoke nothing.
    pub fn index(&self) -> Result<RevocationIndex> {
        let mut index = RevocationIndex::default();
        for name in self.storage.root.files(REVOKED)? {
            index.extend(self.read(&name)?);
        }
        Ok(index)
    }

    /// Returns the revocations of a result, in the order of the names.
    pub fn find(&self, entry: &Entry, record: &Record) -> Result<Vec<RevocationRecord>> {
        let (outputs, directory) = (record.outputs(), revocations(entry));
        let mut found = Vec::new();
        for name in self.storage.root.own_names(&directory)? {
            let revocation = self.read(&format!("{directory}/{name}"))?;
            found.extend(revocation.filter(|it| it.is_about(&outputs)).map(|it| it.record));
        }
        Ok(found)
    }

    fn read(&self, name: &str) -> Result<Option<Revocation>> {
        let root = &self.storage.root;
        let text = match root.disk.read(&root.path(name)) {
            Err(error) if error.is_foreign() => None,
            read => read?,
        };
        Ok(text.and_then(|text| Revocation::of_file(name, text)))
    }

    /// Adds a revocation. Returns whether it was new. It is durable after the next [`flush`](Storage::flush).
    pub fn add(&self, revocation: &Revocation) -> Result<bool> {
        let (root, name) = (&self.storage.root, revocation.name());
        if root.disk.exists(&root.path(&name))? {
            return Ok(false);
        }
        let private = root.private_path()?;
        root.disk.write_sealed(&private, &revocation.text, 0o444)?;
        root.unsynced.note(&private);
        let place = root.place(&name)?;
        root.disk.rename(&private, &place)?;
        root.unsynced.note_new(&place);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{Durability, Unrecorded};

    #[test]
    fn evidence_is_named_by_its_contents_and_other_files_are_ignored() {
        let dir = tempfile::tempdir().unwrap();
        let storage = Storage::open(dir.path(), Unrecorded::Adopt, Durability::Synced).unwrap();
        let ledger = storage.ledger();
        let (one, is_new) = ledger.add(b"one\n").unwrap();
        assert!(is_new && !ledger.add(b"one\n").unwrap().1);
        assert_eq!(ledger.signer(&one).unwrap(), None);
        ledger.add_own(b"one\n").unwrap();
        assert!(ledger.signer(&one).unwrap().unwrap().own);
        assert_eq!(ledger.read(&one).unwrap().unwrap(), b"one\n");
        let (other, _) = ledger.add(b"other\n").unwrap();
        let name = ledger_file(&other);
        fs::remove_file(dir.path().join(&name)).unwrap();
        fs::write(dir.path().join(&name), "forged\n").unwrap();
        assert!(ledger.read(&other).unwrap().is_none() && !ledger.is_right(&name).unwrap());
        ledger.set_aside(&name).unwrap();
        assert_eq!(ledger.files().unwrap(), [one]);
        assert!(ledger.add(b"other\n").unwrap().1, "its place is free again");
        storage.flush().unwrap();
    }
}
