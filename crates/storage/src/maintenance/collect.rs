//! Garbage collection: the record of a result becomes a tombstone, then its files are removed.
//!
//! A result is retired first: its lease is acquired, so that runs that need it wait, and its record
//! is removed, so that it is not found any more. Then the gate is closed, and the roots of other runs are read. A
//! result that is in use is restored, and its files were where they are all the time. Those of task inputs, tables and jobs, which
//! have no leases, are moved away before the gate is opened: a run that looks for them now makes them again. Then the
//! files are removed. A result that a killed
//! collection had retired is restored by the first run that has its lease, or removed by the next
//! collection.
//!
//! Eviction marks a call as away and then removes its outputs. The record stays, so the call is still known. Outputs are moved
//! while the gate is closed and after the roots of other runs were read. A run that looks for the call finds it away, unless it
//! announced the call before; then the outputs stay.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Maintenance, Pins, Survey};
use crate::disk::Result;
use crate::paths::{COLLECTED, Entry, MANIFESTS, QUARANTINE, ResultName, TREES, manifest};
use crate::protocol::{GcRoots, Lease, Storage};
use crate::records::{CallRecord, JobRecord, Provenance, Published, Record, Tombstone};
use ce_model::digest::Digest;

/// A result without its record, whose files still exist.
#[derive(Debug)]
pub struct Retired<'a> {
    storage: &'a Storage,
    entry: Entry,
    record: Record,
    /// The files of a job, or of a task input or table, but for damaged ones, that are moved away.
    movable: Vec<String>,
    moved: MovedFiles<'a>,
    _lease: Option<Lease<'a>>,
}

impl<'a> Maintenance<'a> {
    /// Retires a result. Returns `None` if it has another record now, or another run computes it.
    pub fn retire(&self, entry: &Entry, record: &Record) -> Result<Option<Retired<'a>>> {
        let lease = match entry {
            Entry::Call(name) => match self.storage.leases().acquire(name) {
                Ok(lease) => Some(lease),
                Err(_) => return Ok(None),
            },
            Entry::Job(_) | Entry::Table(_) | Entry::TaskInput(_) => None,
        };
        if self.storage.records().read_entry(entry)?.ok().as_ref() != Some(record) {
            return Ok(None);
        }
        match record {
            Record::Call(record) => self.write_tombstone(entry, record)?,
            Record::Job(record) => self.write_tombstone(entry, record)?,
            Record::Table(record) => self.write_tombstone(entry, record)?,
            Record::TaskInput(_) => {}
        }
        let root = &self.storage.root;
        let place = root.path(&entry.record());
        root.disk.remove(&place)?;
        root.unsynced.note_entry(&place);
        self.retired(entry.clone(), record.clone(), lease).map(Some)
    }

    fn retired(
        &self,
        entry: Entry,
        record: Record,
        lease: Option<Lease<'a>>,
    ) -> Result<Retired<'a>> {
        let storage = self.storage;
        let mut movable = Vec::new();
        match (&entry, &record) {
            (Entry::TaskInput(_), _) => movable.push(entry.file(0)),
            (Entry::Job(_), Record::Job(job)) => {
                movable.extend((0..job.outputs.len()).map(|number| entry.file(number)));
            }
            (Entry::Table(name), Record::Table(table)) => {
                let outputs = table.outputs.iter().enumerate();
                let outputs = outputs.map(|(number, output)| (name.output(number), output));
                for (file, published) in outputs.chain([(name.recipe(), &table.recipe)]) {
                    if storage.is_published(&file, published)? {
                        movable.push(file);
                    }
                }
            }
            _ => {}
        }
        let moved = MovedFiles::new(storage);
        Ok(Retired { storage, entry, record, movable, moved, _lease: lease })
    }

    fn write_tombstone(&self, entry: &Entry, record: &(impl Clone + Serialize)) -> Result<()> {
        let tombstone = Tombstone { record: record.clone(), collected: Provenance::now() };
        self.storage.records().put(&entry.room(COLLECTED), &tombstone)
    }

    /// Returns the retired results whose files a killed collection has not removed.
    pub fn half_collected(&self) -> Result<Vec<Retired<'a>>> {
        let mut half = Vec::new();
        for entry in Survey::new(self.storage).entries_in(COLLECTED)? {
            let Some(record) = self.storage.records().read_entry_in(COLLECTED, &entry)?.ok() else {
                continue;
            };
            let lease = match &entry {
                Entry::Call(name) => self.storage.leases().acquire(name).ok(),
                Entry::Job(_) | Entry::Table(_) | Entry::TaskInput(_) => None,
            };
            if matches!(entry, Entry::Call(_)) && lease.is_none() || self.exists(&entry.record())? {
                continue;
            }
            let mut files = entry.expected_files(&record).into_iter();
            if files.try_fold(false, |any, file| Ok(any || self.exists(&file.name)?))? {
                half.push(self.retired(entry, record, lease)?);
            }
        }
        Ok(half)
    }

    fn exists(&self, name: &str) -> Result<bool> {
        self.storage.root.disk.exists(&self.storage.path(name))
    }

    /// The provenance of the collection of the result that a file of this name belonged to.
    pub fn tombstone(&self, file: &str) -> Result<Option<Provenance>> {
        #[derive(Deserialize)]
        struct Collected {
            collected: Provenance,
        }
        let Some(entry) = Entry::of_file(file) else { return Ok(None) };
        let read = self.storage.records().read::<Collected>(&entry.room(COLLECTED))?;
        Ok(read.ok().map(|tombstone| tombstone.collected))
    }
}

impl Retired<'_> {
    /// The result.
    pub const fn entry(&self) -> &Entry {
        &self.entry
    }

    /// The record that it had.
    pub const fn record(&self) -> &Record {
        &self.record
    }

    /// Whether it is among what is in use: then it must stay.
    pub fn is_in(&self, roots: &GcRoots) -> bool {
        roots.has(&self.entry, self.entry.expected_files(&self.record).len())
    }

    /// Whether it is pinned: then it must stay.
    pub fn is_pinned(&self) -> Result<bool> {
        Pins::new(self.storage).has(&self.entry)
    }

    /// Restores the result.
    pub fn restore(mut self) -> Result<()> {
        self.moved.put_back()?;
        let (storage, name) = (self.storage, self.entry.record());
        match &self.record {
            Record::Call(record) => storage.records().put_new(&name, record)?,
            Record::Job(record) => storage.records().put_new(&name, record)?,
            Record::Table(record) => storage.records().put_new(&name, record)?,
            Record::TaskInput(record) => storage.records().put_new(&name, record)?,
        };
        self.storage.root.disk.remove(&storage.path(&self.entry.room(COLLECTED)))
    }

    /// Moves the files of a task input, table or job away, which have no lease: a run that needs them later makes
    /// them again. Damaged ones stay, but for those of a job. The gate is closed, and it is [not in use](Self::is_in).
    pub fn move_away(&mut self) -> Result<()> {
        let mut movable = std::mem::take(&mut self.movable).into_iter();
        movable.try_for_each(|name| self.moved.take(name))
    }

    /// Removes its files and its log.
    pub fn discard(mut self) -> Result<()> {
        self.moved.discard()?;
        let Self { storage, entry, record, .. } = &self;
        let (Entry::Call(name), Record::Call(record)) = (entry, record) else { return Ok(()) };
        if storage.root.disk.exists(&storage.path(&entry.record()))? {
            // A run that waited for no lease has published it again.
            return Ok(());
        }
        let outputs = record.outputs.iter().copied().enumerate();
        let mut paths = Maintenance::new(storage).still_there(entry, outputs)?;
        paths.push(storage.path(&name.log()));
        for path in paths {
            storage.root.disk.remove_tree(&path)?;
            storage.root.unsynced.note_entry(&path);
        }
        Ok(())
    }
}

impl Maintenance<'_> {
    /// Restores a call that a collection has retired but not removed. The caller has its lease, so
    /// no collection is removing it. Returns the tombstone if the outputs were removed.
    pub fn restore(&self, name: &ResultName) -> Result<Option<Tombstone<CallRecord>>> {
        let place = name.record_in(COLLECTED);
        let Some(tombstone) = self.storage.records().read::<Tombstone<CallRecord>>(&place)?.ok()
        else {
            return Ok(None);
        };
        let record = &tombstone.record;
        let files = record.outputs.iter().copied().enumerate();
        if self.still_there(&Entry::Call(name.clone()), files)?.len() < record.outputs.len() {
            return Ok(Some(tombstone));
        }
        self.storage.records().put_new(&name.record(), record)?;
        self.storage.root.disk.remove(&self.storage.path(&place))?;
        Ok(None)
    }

    /// Removes what only collected results needed, and nobody uses by now, either: the directories of trees, but for those in
    /// `keep`, and versions without results from the lists under their trees. A run that needs a tree makes it again.
    pub fn remove_unused(
        &self,
        keep: &HashSet<&str>,
        collected: &[(ResultName, CallRecord)],
        roots: &mut GcRoots,
    ) -> Result<()> {
        let root = &self.storage.root;
        let versions: HashMap<_, _> = collected
            .iter()
            .map(|(name, record)| ((name.directory(), record.tree.full()), (name, record)))
            .collect();
        let mut trees = root.own_names(TREES)?;
        trees.retain(|tree| tree != QUARANTINE && !keep.contains(tree.as_str()));
        let gate = self.storage.close_gate()?;
        self.storage.add_gc_roots(roots)?;
        for (name, record) in versions.into_values() {
            // A run that publishes results of this version has announced it, and listed it before.
            if !roots.has_file(name.directory()) {
                self.storage.equivalents().forget_version(name, record)?;
            }
        }
        let mut unused = MovedFiles::new(self.storage);
        for tree in trees {
            let name = format!("{TREES}/{tree}");
            if !roots.has_file(&name) {
                unused.take(name)?;
            }
        }
        let is_held = gate.is_held()?;
        gate.release()?;
        if is_held { unused.discard() } else { unused.put_back() }
    }

    /// Removes the manifests of directories that are not in `keep`. A directory is read again where its
    /// manifest is needed.
    pub fn remove_unused_manifests<'k>(
        &self,
        keep: impl Iterator<Item = &'k Digest>,
    ) -> Result<()> {
        let root = &self.storage.root;
        let keep: HashSet<String> = keep.map(manifest).collect();
        for name in root.files(MANIFESTS)?.iter().filter(|name| !keep.contains(*name)) {
            root.disk.remove(&root.path(name))?;
        }
        Ok(())
    }

    /// Returns the paths of those files that are still the recorded ones.
    fn still_there(
        &self,
        entry: &Entry,
        files: impl Iterator<Item = (usize, Published)>,
    ) -> Result<Vec<PathBuf>> {
        let mut paths = Vec::new();
        for (number, file) in files {
            let name = entry.file(number);
            if self.storage.is_published(&name, &file)? {
                paths.push(self.storage.path(&name));
            }
        }
        Ok(paths)
    }
}

/// Files that were moved away. Whatever was not discarded is moved back in the end.
#[derive(Debug)]
pub(super) struct MovedFiles<'a> {
    storage: &'a Storage,
    /// Their paths now, and their names.
    files: Vec<(PathBuf, String)>,
}

impl<'a> MovedFiles<'a> {
    pub(super) const fn new(storage: &'a Storage) -> Self {
        Self { storage, files: Vec::new() }
    }

    /// Moves a file or directory of this name away, if it is there.
    pub(super) fn take(&mut self, name: String) -> Result<()> {
        let root = &self.storage.root;
        let (path, private) = (root.path(&name), root.private_path()?);
        if root.disk.rename(&path, &private)? {
            root.unsynced.note_entry(&path);
            self.files.push((private, name));
        }
        Ok(())
    }

    /// Moves all of them back, unless they were made again.
    pub(super) fn put_back(&mut self) -> Result<()> {
        let disk = &self.storage.root.disk;
        while let Some((moved, name)) = self.files.pop() {
            if !disk.rename_new(&moved, &self.storage.path(&name))? {
                disk.remove_tree(&moved)?;
            }
        }
        Ok(())
    }

    /// Removes all of them.
    pub(super) fn discard(&mut self) -> Result<()> {
        while let Some((moved, _)) = self.files.pop() {
            self.storage.root.disk.remove_tree(&moved)?;
        }
        Ok(())
    }
}

impl Drop for MovedFiles<'_> {
    fn drop(&mut self) {
        // Without a record, a file is only hashed again; beside outputs that are here, a mark means nothing.
        drop(self.put_back());
    }
}

/// A call that is marked as away, and whose outputs still exist.
#[derive(Debug)]
pub struct Eviction<'a> {
    storage: &'a Storage,
    name: ResultName,
    outputs: usize,
    /// Those that are there, and not damaged.
    intact: Vec<String>,
    moved: MovedFiles<'a>,
    _lease: Lease<'a>,
}

impl<'a> Maintenance<'a> {
    /// Marks a call as away. Returns `None` if it has another record now, or another run computes it. That is durable after
    /// the next [`flush`](Storage::flush).
    pub fn mark_departing(
        &self,
        name: &ResultName,
        record: &CallRecord,
    ) -> Result<Option<Eviction<'a>>> {
        let storage = self.storage;
        let Ok(lease) = storage.leases().acquire(name) else { return Ok(None) };
        let known = storage.records().read_entry(&Entry::Call(name.clone()))?.ok();
        if !matches!(known, Some(Record::Call(known)) if known == *record) {
            return Ok(None);
        }
        storage.evictions().mark_away(name)?;
        let mut intact = Vec::new();
        for (number, output) in record.outputs.iter().enumerate() {
            let file = name.output(number);
            if storage.is_published(&file, output)? {
                intact.push(file);
            }
        }
        let (name, outputs, moved) = (name.clone(), record.outputs.len(), MovedFiles::new(storage));
        Ok(Some(Eviction { storage, name, outputs, intact, moved, _lease: lease }))
    }

    /// Marks a job as away. Returns `None` if no output of it is one of a call that is away. That is durable after the next
    /// [`flush`](Storage::flush): what is missing without a mark was deleted.
    pub fn mark_departing_job(
        &self,
        name: &ResultName,
        record: &JobRecord,
    ) -> Result<Option<JobEviction<'a>>> {
        let storage = self.storage;
        let (name, record, moved) = (name.clone(), record.clone(), MovedFiles::new(storage));
        let job = JobEviction { storage, name, record, moved };
        if job.evicted_outputs()?.is_empty() {
            return Ok(None);
        }
        storage.evictions().mark_away(&job.name)?;
        Ok(Some(job))
    }
}

/// A job that is marked as away, and of which some outputs are those of calls that are away.
#[derive(Debug)]
pub struct JobEviction<'a> {
    storage: &'a Storage,
    name: ResultName,
    record: JobRecord,
    moved: MovedFiles<'a>,
}

impl JobEviction<'_> {
    /// Its outputs that are those of calls that are away now.
    fn evicted_outputs(&self) -> Result<Vec<String>> {
        let mut evicted = Vec::new();
        for (number, output) in self.record.outputs.iter().enumerate() {
            if let Some(Entry::Call(call)) = Entry::of_file(&output.file)
                && self.storage.evictions().is_marked_away(&call)?
                && !self.storage.has(&output.file)?
            {
                evicted.push(self.name.output(number));
            }
        }
        Ok(evicted)
    }

    /// Moves these outputs away. The mark must be on the disk, the gate closed, and it [not in use](Self::is_in).
    pub fn leave(&mut self) -> Result<()> {
        let evicted = self.evicted_outputs()?;
        evicted.into_iter().try_for_each(|name| self.moved.take(name))
    }

    /// Whether it is among what is in use: then it must stay.
    pub fn is_in(&self, roots: &GcRoots) -> bool {
        roots.has(&Entry::Job(self.name.clone()), self.record.outputs.len())
    }

    /// Moves its outputs back. Beside them, the mark means nothing.
    pub fn stay(mut self) -> Result<()> {
        self.moved.put_back()
    }

    /// Removes its outputs.
    pub fn discard(mut self) -> Result<()> {
        self.moved.discard()
    }
}

impl Eviction<'_> {
    /// The call.
    pub const fn name(&self) -> &ResultName {
        &self.name
    }

    /// Moves its outputs away, but for damaged ones. The mark must be on the disk, the gate closed, and it
    /// [not wanted](Self::is_wanted).
    pub fn leave(&mut self) -> Result<()> {
        let mut intact = std::mem::take(&mut self.intact).into_iter();
        intact.try_for_each(|name| self.moved.take(name))
    }

    /// Whether it must stay: it is in use, or pinned.
    pub fn is_wanted(&self, roots: &GcRoots) -> Result<bool> {
        let entry = Entry::Call(self.name.clone());
        Ok(roots.has(&entry, self.outputs) || Pins::new(self.storage).has(&entry)?)
    }

    /// Moves its outputs back, and removes the mark.
    pub fn stay(mut self) -> Result<()> {
        self.moved.put_back()?;
        self.storage.evictions().unmark_away(&self.name)
    }

    /// Removes its outputs.
    pub fn discard(mut self) -> Result<()> {
        self.moved.discard()
    }
}
