//! What is in use, read twice: most of it before the gate is closed, and the rest while it is closed.
//!
//! Nothing leaves the set. What a run had announced before it ended stays, and so does all that it has recorded.

use std::collections::HashSet;

use crate::History;
use ce_storage::{
    Entry, GcRoots, NewRecords, Record, RecordState, RecordWatch, Storage, StorageError, Suspension,
};

/// What is in use by other runs, by suspended calls, and by results that were published since the history was read.
pub(super) struct InUse<'a> {
    storage: &'a Storage,
    history: &'a History,
    /// Results whose records were removed. One that has a record was recorded again.
    retired: HashSet<&'a Entry>,
    changes: RecordWatch<'a>,
    roots: GcRoots,
}

impl<'a> InUse<'a> {
    /// Reads what is in use by now, after the records of some results were removed.
    pub(super) fn read(
        storage: &'a Storage,
        history: &'a History,
        retired: HashSet<&'a Entry>,
    ) -> Result<Self, StorageError> {
        let (changes, roots) = (RecordWatch::new(storage), GcRoots::default());
        let mut in_use = Self { storage, history, retired, changes, roots };
        in_use.update()?;
        Ok(in_use)
    }

    pub(super) const fn storage(&self) -> &'a Storage {
        self.storage
    }

    /// The names that are in use.
    pub(super) const fn roots(&self) -> &GcRoots {
        &self.roots
    }

    /// The names that are in use, to be added to.
    pub(super) fn into_roots(self) -> GcRoots {
        self.roots
    }

    /// Adds what is in use by now, and was not when this was read last. Returns whether there is anything.
    pub(super) fn update(&mut self) -> Result<bool, StorageError> {
        let before = self.roots.count();
        // A run that ends now has recorded everything before its announcements go.
        self.add_announced()?;
        let is_known = |entry: &Entry| self.history.has(entry) && !self.retired.contains(entry);
        let NewRecords { entries, suspended } = self.changes.look(is_known)?;
        self.roots.add(inputs(&suspended));
        entries.iter().try_for_each(|entry| self.add_published(entry))?;
        Ok(self.roots.count() > before)
    }

    /// Adds what other runs have announced by now. Returns whether there is anything.
    pub(super) fn add_announced(&mut self) -> Result<bool, StorageError> {
        let before = self.roots.count();
        self.storage.add_gc_roots(&mut self.roots)?;
        Ok(self.roots.count() > before)
    }

    /// Adds a result.
    pub(super) fn add(&mut self, entry: &Entry) {
        self.roots.add([entry.clone()]);
    }

    /// Adds the results that the directories of a result are links to.
    pub(super) fn add_linked(&mut self, entry: &Entry) {
        self.roots.add(self.history.linked(entry));
    }

    /// Adds a result that was published since the history was read, and what it was made from.
    fn add_published(&mut self, entry: &Entry) -> Result<(), StorageError> {
        let (storage, roots) = (self.storage, &mut self.roots);
        roots.add([entry.clone()]);
        match storage.records().read_listed(entry)? {
            // A job that was finished meanwhile may use a result that it found before that was retired.
            RecordState::Valid(Record::Job(job)) => roots.add_job(&job),
            // The directories of a result that was published meanwhile may be links to those of others.
            RecordState::Valid(Record::Call(call)) => {
                roots.add_inputs(call.inputs.iter());
                let source = call.linked();
                roots.add(source.iter().flat_map(|source| self.history.linked(source)));
                roots.add(source);
            }
            // What a table that was published meanwhile was made from is kept with it.
            RecordState::Valid(Record::Table(_)) => {
                let Entry::Table(name) = entry else { return Ok(()) };
                storage.tables().read_recipe(name, |row| {
                    let files = row.outputs.iter().flatten();
                    roots.add(files.filter_map(|output| Entry::of_file(&output.file)));
                })?;
            }
            RecordState::Valid(Record::TaskInput(_))
            | RecordState::Spoiled
            | RecordState::Absent => {}
        }
        Ok(())
    }
}

/// The results that suspended calls read.
pub(super) fn inputs(suspended: &[Suspension]) -> impl Iterator<Item = Entry> + '_ {
    let inputs = suspended.iter().flat_map(|it| &it.record.inputs);
    inputs.filter_map(|input| Entry::of_file(&input.name))
}
