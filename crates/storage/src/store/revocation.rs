//! Revocations: what somebody says is wrong. Nothing is deleted because of them.

use std::collections::{BTreeMap, HashMap};

use super::Storage;
use crate::disk::Result;
use crate::layout::{Entry, REVOKED, of_revocation, revocation, revocations};
use crate::records::{Read, Record, RevocationRecord};
use ce_model::digest::{Blake3, Digest};

/// A revocation, which is named by its contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revocation {
    /// The result that it is about.
    pub entry: Entry,
    /// What it says.
    pub record: RevocationRecord,
    /// The contents of its file.
    pub text: Vec<u8>,
}

impl Revocation {
    /// Reads the contents of a file of this name. `None` if it is not named by them, or cannot be understood.
    pub fn of_file(name: &str, text: Vec<u8>) -> Option<Self> {
        let (entry, contents) = of_revocation(name)?;
        let record = RevocationRecord::of_text(&text).filter(|_| Blake3::of(&text) == contents)?;
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
        revocation(&self.entry, &Blake3::of(&self.text))
    }
}

/// Revocations, by the short names of the results that they are about.
#[derive(Debug, Default)]
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

    /// The first of these results, by their short names, of which any outputs are revoked, and the reason.
    pub fn first_of<'n>(&self, names: &'n [String]) -> Option<(&'n str, &str)> {
        names.iter().find_map(|name| {
            let revocation = self.of_result.get(name)?.first()?;
            Some((name.as_str(), revocation.record.reason.as_str()))
        })
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.of_result.is_empty()
    }

    /// The results in a storage that are revoked as they stand there: their short names, with the reasons.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read.
    pub fn revoked_in(&self, storage: &Storage) -> Result<BTreeMap<String, String>> {
        let mut revoked = BTreeMap::new();
        for revocations in self.of_result.values() {
            let Some(Revocation { entry, .. }) = revocations.first() else { continue };
            let Read::Record(record) = storage.records().read_entry(entry)? else { continue };
            if let Some(reason) = self.reason(entry, &entry.outputs(&record)) {
                revoked.insert(entry.short(), reason.to_owned());
            }
        }
        Ok(revoked)
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
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read.
    pub fn index(&self) -> Result<RevocationIndex> {
        let mut index = RevocationIndex::default();
        for name in self.storage.root.files(REVOKED)? {
            index.extend(self.read(&name)?);
        }
        Ok(index)
    }

    /// Returns what revokes a result, in the order of the names.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read.
    pub fn of(&self, entry: &Entry, record: &Record) -> Result<Vec<RevocationRecord>> {
        let (outputs, directory) = (entry.outputs(record), revocations(entry));
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
            Err(error) if error.is_not_own() => None,
            read => read?,
        };
        Ok(text.and_then(|text| Revocation::of_file(name, text)))
    }

    /// Adds a revocation. Returns whether it was new. It is durable after the next [`flush`](Storage::flush).
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be written.
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
