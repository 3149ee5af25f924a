//! Garbage collection: the record of a result becomes a tombstone, then its files are removed.
//!
//! A result is retired first: its lease is acquired, so that runs that need it wait, and its record is removed, so that
//! it is not found any more. Then the gate is closed, and the roots of other runs are read. A result that is in use is
//! restored; its files never moved. The files of task inputs, tables and jobs, which have no leases, are moved away
//! before the gate is opened: a run that looks for them now makes them again. Then the files are removed. A result that
//! a killed collection had retired is restored by the first run that has its lease, or removed by the next collection.
//!
//! Eviction marks a call as away and then removes its outputs. The record stays, so the call is still known. Outputs are moved
//! while the gate is closed and after the roots of other runs were read. A run that looks for the call finds it away, unless it
//! announced the call before; then the outputs stay.
//!
//! [`RecordWatch`] returns the records that were added since the last look. It does not list a directory again whose stat has
//! not changed, unless that is racy, or the file system may show late what others have written.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::time::SystemTime;

use rustix::fs::FileType;
use serde::{Deserialize, Serialize};

use super::{Maintenance, Pins, Survey};
use crate::disk::Result;
use crate::paths::{
    COLLECTED, Entry, MANIFESTS, QUARANTINE, RECORDS, ResultName, SUSPENDED, TABLES, TASK_INPUTS,
    TREES, is_value, manifest,
};
use crate::protocol::{GcRoots, Lease, Storage, Suspension};
use crate::records::{CallRecord, JobRecord, Provenance, Published, Record, Tombstone};
use ce_files::cache::FileStat;
use ce_model::digest::Digest;

/// A result whose files may go: its record was removed, or it is marked as away.
#[derive(Debug)]
pub struct Removal<'a> {
    storage: &'a Storage,
    entry: Entry,
    record: Record,
    kind: RemovalKind,
    /// The files that are moved away: the files of a result that was retired and has no lease, and the outputs of an
    /// evicted call that are not damaged.
    movable: Vec<String>,
    moved: MovedFiles<'a>,
    _lease: Option<Lease<'a>>,
}

/// The reason why a result may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RemovalKind {
    /// It is collected. It has no record.
    Collection,
    /// Its outputs are evicted. It has a record, and is marked as away.
    Eviction,
}

impl<'a> Maintenance<'a> {
    /// Retires a result: removes its record. Returns `None` if it has another record now, or another run computes it.
    pub fn retire(&self, entry: &Entry, record: &Record) -> Result<Option<Removal<'a>>> {
        let Some(lease) = self.reserve(entry, record)? else { return Ok(None) };
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

    /// Marks a call as away, or a job with outputs of calls that are away. Returns `None` if it has another record now,
    /// or another run computes it, or the job has no such output. The mark is durable after the next
    /// [`flush`](Storage::flush): a missing output without a mark was deleted.
    pub fn evict(&self, entry: &Entry, record: &Record) -> Result<Option<Removal<'a>>> {
        let (Entry::Call(name) | Entry::Job(name)) = entry else { return Ok(None) };
        let Some(lease) = self.reserve(entry, record)? else { return Ok(None) };
        let (entry, record) = (entry.clone(), record.clone());
        let mut removal = self.removal(RemovalKind::Eviction, entry, record, lease);
        if let Record::Job(job) = &removal.record
            && removal.outputs_away(job)?.is_empty()
        {
            return Ok(None);
        }
        self.storage.evictions().mark_away(name)?;
        if let Record::Call(call) = &removal.record {
            for (number, output) in call.outputs.iter().enumerate() {
                let file = name.output(number);
                if self.storage.values().is_published(&file, output)? {
                    removal.movable.push(file);
                }
            }
        }
        Ok(Some(removal))
    }

    /// Acquires the lease of a result, if that is a call. Returns `None` if another run has it, or it has another record now.
    fn reserve(&self, entry: &Entry, record: &Record) -> Result<Option<Option<Lease<'a>>>> {
        let lease = match entry {
            Entry::Call(name) => match self.storage.leases().acquire(name) {
                Ok(lease) => Some(lease),
                Err(_) => return Ok(None),
            },
            Entry::Job(_) | Entry::Table(_) | Entry::TaskInput(_) => None,
        };
        let known = self.storage.records().read_entry(entry)?.ok();
        Ok((known.as_ref() == Some(record)).then_some(lease))
    }

    fn retired(
        &self,
        entry: Entry,
        record: Record,
        lease: Option<Lease<'a>>,
    ) -> Result<Removal<'a>> {
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
                    if self.storage.values().is_published(&file, published)? {
                        movable.push(file);
                    }
                }
            }
            _ => {}
        }
        Ok(Removal { movable, ..self.removal(RemovalKind::Collection, entry, record, lease) })
    }

    fn removal(
        &self,
        kind: RemovalKind,
        entry: Entry,
        record: Record,
        lease: Option<Lease<'a>>,
    ) -> Removal<'a> {
        let (storage, moved) = (self.storage, MovedFiles::new(self.storage));
        Removal { storage, entry, record, kind, movable: Vec::new(), moved, _lease: lease }
    }

    fn write_tombstone(&self, entry: &Entry, record: &(impl Clone + Serialize)) -> Result<()> {
        let tombstone = Tombstone { record: record.clone(), collected: Provenance::now() };
        self.storage.records().put(&entry.room(COLLECTED), &tombstone)
    }

    /// Returns the retired results whose files a killed collection has not removed.
    pub fn half_collected(&self) -> Result<Vec<Removal<'a>>> {
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

impl Removal<'_> {
    /// The result.
    pub const fn entry(&self) -> &Entry {
        &self.entry
    }

    /// The record that it has, or had.
    pub const fn record(&self) -> &Record {
        &self.record
    }

    /// Whether it is pinned: then it must stay.
    pub fn is_pinned(&self) -> Result<bool> {
        Pins::new(self.storage).has(&self.entry)
    }

    /// Whether it may be pinned meanwhile: it is a call that keeps its record.
    pub fn may_be_pinned(&self) -> bool {
        self.kind == RemovalKind::Eviction && matches!(self.entry, Entry::Call(_))
    }

    /// Whether it must stay: it is in use, or is a call that was pinned meanwhile.
    pub fn is_wanted(&self, roots: &GcRoots) -> Result<bool> {
        let is_in = roots.has(&self.entry, self.entry.expected_files(&self.record).len());
        Ok(is_in || self.may_be_pinned() && self.is_pinned()?)
    }

    /// Moves away files that a run can make again if it needs them later: the files of a task input, table or job,
    /// which have no lease, and evicted outputs. Damaged ones stay, unless they are outputs of a job. The gate is
    /// closed, the marks are on the disk, and it is [not wanted](Self::is_wanted).
    pub fn move_away(&mut self) -> Result<()> {
        let movable = match &self.record {
            Record::Job(job) if self.kind == RemovalKind::Eviction => self.outputs_away(job)?,
            _ => std::mem::take(&mut self.movable),
        };
        movable.into_iter().try_for_each(|name| self.moved.take(name))
    }

    /// The outputs of a job whose calls' outputs are away now.
    fn outputs_away(&self, job: &JobRecord) -> Result<Vec<String>> {
        let mut away = Vec::new();
        for (number, output) in job.outputs.iter().enumerate() {
            if let Some(Entry::Call(call)) = Entry::of_file(&output.file)
                && self.storage.evictions().is_marked_away(&call)?
                && !self.storage.has(&output.file)?
            {
                away.push(self.entry.file(number));
            }
        }
        Ok(away)
    }

    /// Restores the result: its files, and its record or, for an evicted call, its state as present. A mark beside the
    /// outputs of a job is ignored.
    pub fn restore(mut self) -> Result<()> {
        self.moved.put_back()?;
        let Self { storage, entry, record, kind, .. } = &self;
        match (kind, entry) {
            (RemovalKind::Eviction, Entry::Call(name)) => {
                return storage.evictions().unmark_away(name);
            }
            (RemovalKind::Eviction, _) => return Ok(()),
            (RemovalKind::Collection, _) => {}
        }
        let name = entry.record();
        match record {
            Record::Call(record) => storage.records().put_new(&name, record)?,
            Record::Job(record) => storage.records().put_new(&name, record)?,
            Record::Table(record) => storage.records().put_new(&name, record)?,
            Record::TaskInput(record) => storage.records().put_new(&name, record)?,
        };
        storage.root.disk.remove(&storage.path(&entry.room(COLLECTED)))
    }

    /// Removes the files that were moved away, and the files and the log of a collected call.
    pub fn discard(mut self) -> Result<()> {
        self.moved.discard()?;
        let Self { storage, entry, record, kind, .. } = &self;
        let (Entry::Call(name), Record::Call(record)) = (entry, record) else { return Ok(()) };
        if *kind == RemovalKind::Eviction
            // A run that waited for no lease has published it again.
            || storage.root.disk.exists(&storage.path(&entry.record()))?
        {
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

    /// Removes files that only collected results needed, and no run uses now: the directories of trees that are not in
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
        let gate = self.storage.gc_roots().close_gate()?;
        self.storage.gc_roots().add_to(roots)?;
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

    /// Returns the paths of the files that are still the recorded ones.
    fn still_there(
        &self,
        entry: &Entry,
        files: impl Iterator<Item = (usize, Published)>,
    ) -> Result<Vec<PathBuf>> {
        let mut paths = Vec::new();
        for (number, file) in files {
            let name = entry.file(number);
            if self.storage.values().is_published(&name, &file)? {
                paths.push(self.storage.path(&name));
            }
        }
        Ok(paths)
    }
}

/// Files that were moved away. Files that are not discarded are moved back in the end.
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
        // Without a record, a file is only hashed again; a mark beside outputs that are here is ignored.
        drop(self.put_back());
    }
}

/// Finds records that are new since its last look; at first, all records.
#[derive(Debug)]
pub struct RecordWatch<'a> {
    storage: &'a Storage,
    /// The directories that it has listed.
    listed: HashMap<String, Listed>,
    /// The places of suspended calls.
    suspended: BTreeSet<String>,
    /// The results that it has returned.
    returned: HashSet<Entry>,
}

/// A directory that was listed.
#[derive(Debug)]
struct Listed {
    /// Its stat before, and when it was taken.
    stat: Option<FileStat>,
    taken: SystemTime,
    /// The directories in it.
    below: Vec<String>,
}

/// The records that are new since the last look.
#[derive(Debug, Default)]
pub struct NewRecords {
    /// Results, in any order.
    pub entries: Vec<Entry>,
    /// Suspended calls whose record is another.
    pub suspended: Vec<Suspension>,
}

impl<'a> RecordWatch<'a> {
    /// Has not looked at the storage yet.
    pub fn new(storage: &'a Storage) -> Self {
        let (listed, suspended, returned) = <_>::default();
        Self { storage, listed, suspended, returned }
    }

    /// Returns the records that are new since the last look, except of known results.
    pub fn look(&mut self, is_known: impl Fn(&Entry) -> bool) -> Result<NewRecords> {
        let mut entries = Vec::new();
        let mut returned = std::mem::take(&mut self.returned);
        let mut places = Vec::new();
        let mut note = |file: String| {
            let entry = recorded(&file);
            entries.extend(entry.filter(|it| !is_known(it) && returned.insert(it.clone())));
        };
        for owner in self.storage.root.own_names("")? {
            let is_call = owner.starts_with("c_");
            if !is_call && !owner.starts_with("t_") {
                continue;
            }
            self.list(&owner, |_| false, &mut |_| ())?;
            let versions = self.listed.get(&owner).map(|it| it.below.clone());
            for version in versions.unwrap_or_default() {
                self.visit(format!("{version}/{RECORDS}"), |_| false, &mut note)?;
                if is_call {
                    let suspended = format!("{version}/{SUSPENDED}");
                    self.visit(suspended, is_value, &mut |place| places.push(place))?;
                }
            }
        }
        for room in [TABLES, TASK_INPUTS] {
            self.visit(format!("{room}/{RECORDS}"), |_| false, &mut note)?;
        }
        self.returned = returned;
        self.suspended.extend(places);
        Ok(NewRecords { entries, suspended: self.changed_suspensions()? })
    }

    /// Returns the suspended calls whose places have changed: their records are in these.
    fn changed_suspensions(&mut self) -> Result<Vec<Suspension>> {
        let mut changed = Vec::new();
        for place in self.suspended.clone() {
            if self.list(&place, |_| false, &mut |_| ())?
                && let Some(name) = ResultName::of_suspended(&place)
            {
                changed.extend(self.storage.suspensions().read(&name)?);
            }
        }
        Ok(changed)
    }

    /// Lists the files of a directory, and of all directories below it, that may have changed.
    fn visit(
        &mut self,
        directory: String,
        is_file: fn(&str) -> bool,
        note: &mut impl FnMut(String),
    ) -> Result<()> {
        let mut waiting = vec![directory];
        while let Some(next) = waiting.pop() {
            self.list(&next, is_file, note)?;
            let below = self.listed.get(&next).map(|listed| listed.below.iter().cloned());
            waiting.extend(below.into_iter().flatten());
        }
        Ok(())
    }

    /// Lists a directory if it may have changed, and passes on the files in it. Returns whether it was listed.
    ///
    /// Anything in the place of a record counts as a file, as in all surveys. Anything behind a link counts as absent.
    fn list(
        &mut self,
        directory: &str,
        is_file: fn(&str) -> bool,
        note: &mut impl FnMut(String),
    ) -> Result<bool> {
        let disk = &self.storage.root.disk;
        let path = self.storage.path(directory);
        let taken = SystemTime::now();
        let stat = match disk.directory_stat(&path) {
            Err(error) if error.is_foreign() => return Ok(false),
            stat => stat?,
        };
        if !disk.may_show_late()
            && self.listed.get(directory).is_some_and(|it| {
                it.stat == stat && stat.is_none_or(|stat| !stat.is_racy(it.taken))
            })
        {
            return Ok(false);
        }
        let mut below = Vec::new();
        for (name, kind) in disk.kinds(&path)? {
            let is_directory = kind == FileType::Directory && !name.ends_with(".json");
            let is_directory = is_directory && !is_file(&name);
            let name = format!("{directory}/{name}");
            if is_directory { below.push(name) } else { note(name) }
        }
        self.listed.insert(directory.to_owned(), Listed { stat, taken, below });
        Ok(true)
    }
}

/// The result whose record has this name.
fn recorded(name: &str) -> Option<Entry> {
    let place = name.strip_prefix(TASK_INPUTS).and_then(|it| it.strip_prefix('/'));
    let Some(place) = place.and_then(|it| it.strip_prefix(RECORDS)?.strip_prefix('/')) else {
        return Entry::of_record(name);
    };
    Some(Entry::TaskInput(place.strip_suffix(".json")?.to_owned()))
}
