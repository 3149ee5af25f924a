//! Taking results away: the record becomes a tombstone, then the files go.
//!
//! A result is retired first: its record goes, so that nobody finds it any more, and its lease is
//! taken, so that whoever needs it waits. Only then it is asked whether somebody uses it. If so it
//! is restored, else its files are removed. What a collection that died has retired is
//! revived by the first run that has its lease, or taken away by the next collection.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::lease::Lease;
use super::record::{CallRecord, Provenance, Published};
use super::survey::{Entry, Record};
use super::uses::GcRoots;
use super::{Result, ResultName, Storage};

/// The room of tombstones.
pub(super) const COLLECTED: &str = "collected";

/// What stays of a result that was taken away.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tombstone<T> {
    /// Its record.
    #[serde(flatten)]
    pub record: T,
    /// Who took it away, and when.
    pub collected: Provenance,
}

/// A result that nobody finds any more, and of which the files are there.
#[derive(Debug)]
pub struct Retired<'a> {
    storage: &'a Storage,
    entry: Entry,
    record: Record,
    /// Where the file of a task input is meanwhile.
    aside: Option<PathBuf>,
    _lease: Option<Lease<'a>>,
}

impl Storage {
    /// Retires a result; returns `None` if its record is another one by now, or somebody computes
    /// it.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read or written.
    pub fn retire(&self, entry: &Entry, record: &Record) -> Result<Option<Retired<'_>>> {
        let lease = match entry {
            Entry::Call(name) => match self.lease(name) {
                Ok(lease) => Some(lease),
                Err(_) => return Ok(None),
            },
            Entry::Job(_) | Entry::TaskInput(_) => None,
        };
        if self.read_entry(entry)?.ok().as_ref() != Some(record) {
            return Ok(None);
        }
        match record {
            Record::Call(record) => self.write_tombstone(entry, record)?,
            Record::Job(record) => self.write_tombstone(entry, record)?,
            Record::TaskInput(_) => {}
        }
        let place = self.path(&entry.record());
        self.disk.remove(&place)?;
        self.unsynced.note_entry(&place);
        let (entry, record) = (entry.clone(), record.clone());
        let mut retired = Retired { storage: self, entry, record, aside: None, _lease: lease };
        if let Entry::TaskInput(_) = retired.entry {
            // Whoever has the same file copies it again while it is away.
            let aside = self.place(&self.private_name())?;
            let moved = self.disk.rename(&self.path(&retired.entry.file(0)), &aside)?;
            retired.aside = moved.then_some(aside);
        }
        Ok(Some(retired))
    }

    fn write_tombstone(&self, entry: &Entry, record: &(impl Clone + Serialize)) -> Result<()> {
        let tombstone = Tombstone { record: record.clone(), collected: self.provenance() };
        self.put_record(&entry.room(COLLECTED), &tombstone)
    }

    /// Returns the results of which a collection that died has left files.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read or written.
    pub fn half_collected(&self) -> Result<Vec<Retired<'_>>> {
        let mut half = Vec::new();
        for entry in self.entries_in(COLLECTED)? {
            let Some(record) = self.read_entry_in(COLLECTED, &entry)?.ok() else { continue };
            let lease = match &entry {
                Entry::Call(name) => self.lease(name).ok(),
                Entry::Job(_) | Entry::TaskInput(_) => None,
            };
            let is_call = matches!(entry, Entry::Call(_));
            let free = self.disk.metadata(&self.path(&entry.record()))?.is_none();
            let mut files = 0..entry.expected_files(&record).len();
            let left = files.try_fold(false, |left, number| {
                Ok(left || self.disk.exists(&self.path(&entry.file(number)))?)
            })?;
            if free && left && lease.is_some() == is_call {
                let (storage, aside) = (self, None);
                half.push(Retired { storage, entry, record, aside, _lease: lease });
            }
        }
        Ok(half)
    }

    /// The tombstone of the result that a file belonged to, going by its name.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read.
    pub fn tombstone(&self, file: &str) -> Result<Option<Provenance>> {
        #[derive(Deserialize)]
        struct Collected {
            collected: Provenance,
        }
        let Some(entry) = Entry::of_file(file) else { return Ok(None) };
        let read = self.record::<Collected>(&entry.room(COLLECTED))?;
        Ok(read.ok().map(|tombstone| tombstone.collected))
    }
}

impl Retired<'_> {
    /// The result.
    pub const fn entry(&self) -> &Entry {
        &self.entry
    }

    /// Whether it must not be taken away: somebody uses it, or has pinned it.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read.
    pub fn is_wanted(&self, roots: &GcRoots) -> Result<bool> {
        let files = self.entry.expected_files(&self.record).len();
        Ok(roots.has(&self.entry, files) || self.storage.is_pinned(&self.entry)?)
    }

    /// Makes the result what it was.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be written.
    pub fn restore(mut self) -> Result<()> {
        self.put_back()?;
        let (storage, name) = (self.storage, self.entry.record());
        match &self.record {
            Record::Call(record) => storage.put_new_record(&name, record)?,
            Record::Job(record) => storage.put_new_record(&name, record)?,
            Record::TaskInput(record) => storage.put_new_record(&name, record)?,
        };
        self.storage.disk.remove(&storage.path(&self.entry.room(COLLECTED)))
    }

    /// Moves the file of a task input back, unless somebody has copied it again.
    fn put_back(&mut self) -> Result<()> {
        match self.aside.take() {
            Some(aside)
                if !self
                    .storage
                    .disk
                    .rename_new(&aside, &self.storage.path(&self.entry.file(0)))? =>
            {
                self.storage.disk.remove(&aside)
            }
            _ => Ok(()),
        }
    }

    /// Removes its files, and what it printed.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be written.
    pub fn discard(mut self) -> Result<()> {
        if let Some(aside) = self.aside.take() {
            return self.storage.disk.remove(&aside);
        }
        let Self { storage, entry, record, .. } = &self;
        if self.storage.disk.exists(&storage.path(&entry.record()))? {
            // Somebody has made it again.
            return Ok(());
        }
        let mut paths = match record {
            Record::Call(record) => {
                storage.still_there(entry, record.outputs.iter().copied().enumerate())?
            }
            Record::Job(record) => {
                (0..record.outputs.len()).map(|at| storage.path(&entry.file(at))).collect()
            }
            Record::TaskInput(_) => Vec::new(),
        };
        if let Entry::Call(name) = entry {
            paths.push(storage.path(&name.room("log")));
        }
        for path in paths {
            self.storage.disk.remove(&path)?;
            storage.unsynced.note_entry(&path);
        }
        match (entry, record) {
            (Entry::Call(name), Record::Call(record)) => storage.forget_version(name, record),
            _ => Ok(()),
        }
    }
}

impl Drop for Retired<'_> {
    fn drop(&mut self) {
        // Without a record it is one that nobody recorded: harmless.
        drop(self.put_back());
    }
}

impl Storage {
    /// Makes a call what it was that a collection has retired and not taken away. The caller has
    /// its lease, so nobody is about to. Returns the tombstone of one that was taken away.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read or written.
    pub fn restore(&self, name: &ResultName) -> Result<Option<Tombstone<CallRecord>>> {
        let place = name.record_in(COLLECTED);
        let Some(tombstone) = self.record::<Tombstone<CallRecord>>(&place)?.ok() else {
            return Ok(None);
        };
        let record = &tombstone.record;
        let files = record.outputs.iter().copied().enumerate();
        if self.still_there(&Entry::Call(name.clone()), files)?.len() < record.outputs.len() {
            return Ok(Some(tombstone));
        }
        self.put_new_record(&name.record(), record)?;
        self.disk.remove(&self.path(&place))?;
        Ok(None)
    }

    /// Which of these files are the recorded ones.
    fn still_there(
        &self,
        entry: &Entry,
        files: impl Iterator<Item = (usize, Published)>,
    ) -> Result<Vec<PathBuf>> {
        let mut paths = Vec::new();
        for (number, file) in files {
            let path = self.path(&entry.file(number));
            if self.is_published(&path, &file)? {
                paths.push(path);
            }
        }
        Ok(paths)
    }
}
