//! Suspended calls: each has a place that stays between its attempts, and a file in an index by which other commits find it.
//!
//! The place exists before an `exec` is started that knows it, and until its outputs are published. So whatever dies at any
//! moment, what was started elsewhere is found again. The file of the index is made first, and removed last: one that
//! leads nowhere means nothing. The log of a suspended call is that of all its attempts, one after the other.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use rustix::process::geteuid;

use super::Storage;
use super::call::Call;
use super::stage::Stage;
use crate::disk::{Result, StorageError};
use crate::paths::{ResultName, SUSPENDED, suspension_index, suspension_key};
use crate::records::{
    CallRecord, Provenance, RecordState, SuspensionRecord, SuspensionState, WaitingJob,
};

/// A suspended call.
#[derive(Clone, Debug, PartialEq)]
pub struct Suspension {
    /// The name under which it was begun.
    pub name: ResultName,
    /// Its record.
    pub record: SuspensionRecord,
}

/// The result of looking for a suspended call.
#[derive(Debug)]
pub enum FoundSuspension {
    /// It is to be continued.
    Same(Box<Suspension>),
    /// It was begun with another isolation, and cannot be continued like this.
    Unlike(Box<Suspension>),
    /// There is none.
    Absent,
}

/// The suspended calls of a storage.
#[derive(Clone, Copy, Debug)]
pub struct Suspensions<'a> {
    pub(super) storage: &'a Storage,
}

impl<'a> Suspensions<'a> {
    pub(super) const fn new(storage: &'a Storage) -> Self {
        Self { storage }
    }

    /// Whether a call may be suspended here. That none is is looked up once, so that others cost nothing.
    pub fn may_exist(&self) -> Result<bool> {
        let absent = &self.storage.without_suspensions;
        if absent.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let there = self.storage.has(SUSPENDED)?;
        absent.store(!there, Ordering::Relaxed);
        Ok(there)
    }

    /// Looks again whether a call may be suspended here: another run has ended.
    pub fn look_again(&self) {
        self.storage.without_suspensions.store(false, Ordering::Relaxed);
    }

    /// Looks for a call, isolated or not, whatever commit it was begun for.
    pub fn find(&self, call: Call<'_>, isolated: bool) -> Result<FoundSuspension> {
        if let Some(same) = self.indexed(call, isolated)? {
            return Ok(FoundSuspension::Same(Box::new(same)));
        }
        let unlike = self.indexed(call, !isolated)?;
        Ok(unlike.map_or(FoundSuspension::Absent, |it| FoundSuspension::Unlike(Box::new(it))))
    }

    fn indexed(&self, call: Call<'_>, isolated: bool) -> Result<Option<Suspension>> {
        let Some(name) = self.entry(&suspension_index(call.version, call.inputs, isolated))? else {
            return Ok(None);
        };
        Ok(self.read(&name)?.filter(|Suspension { record, .. }| {
            record.computation == *call.version.computation
                && record.tree == *call.version.tree
                && record.isolated == isolated
                && record.digests() == call.inputs
        }))
    }

    /// Returns a call like this one that is suspended for another commit, and not continued since it is not isolated.
    pub fn elsewhere(&self, call: Call<'_>) -> Result<Option<ResultName>> {
        let begin = suspension_key(call.version, call.inputs) + "-";
        let own = suspension_index(call.version, call.inputs, false);
        for file in self.storage.root.own_names(SUSPENDED)? {
            let file = format!("{SUSPENDED}/{file}");
            if file != own
                && file.strip_prefix(SUSPENDED).is_some_and(|it| it[1..].starts_with(&begin))
                && let Some(name) = self.entry(&file)?
                && self.read(&name)?.is_some()
            {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }

    /// The name that a file of the index holds.
    fn entry(&self, file: &str) -> Result<Option<ResultName>> {
        let text = self.storage.root.disk.read(&self.storage.path(file))?;
        let text = text.and_then(|text| String::from_utf8(text).ok());
        Ok(text.and_then(|text| ResultName::of_call(text.trim())))
    }

    /// Returns the call with this name, if it is suspended.
    pub fn read(&self, name: &ResultName) -> Result<Option<Suspension>> {
        let record: RecordState<SuspensionRecord> =
            self.storage.records().read(&name.suspended_state())?;
        let record = record.ok().filter(|it| it.version().may_be_in(name.directory()));
        Ok(record.map(|record| Suspension { name: name.clone(), record }))
    }

    /// Returns all calls of the index, sorted by the time of their beginning. Those whose outputs were published since
    /// their last attempt began are over.
    pub fn all(&self) -> Result<Vec<Suspension>> {
        let mut all = Vec::new();
        for file in self.storage.root.own_names(SUSPENDED)? {
            if let Some(name) = self.entry(&format!("{SUSPENDED}/{file}"))?
                && let Some(suspension) = self.read(&name)?
                && !self.is_over(&suspension)?
            {
                all.push(suspension);
            }
        }
        all.sort_by(|a, b| {
            let [a, b] = [a, b].map(|it| (it.record.since, it.name.short()));
            a.cmp(&b)
        });
        Ok(all)
    }

    /// Whether this user has begun a call: its place belongs to who has made it.
    pub fn is_own(&self, name: &ResultName) -> Result<bool> {
        let root = &self.storage.root;
        let place = root.disk.metadata(&root.path(&name.suspended_place()))?;
        Ok(place.is_some_and(|place| place.owner() == geteuid().as_raw()))
    }

    /// Whether the outputs of a call were published by its last attempt, and only its place is left: its run has died.
    pub fn is_over(&self, Suspension { name, record }: &Suspension) -> Result<bool> {
        if record.state != SuspensionState::Executing {
            return Ok(false);
        }
        let published = self.storage.records().read::<CallRecord>(&name.record())?.ok();
        let published = published.and_then(|it| it.recorded);
        Ok(published.is_some_and(|it| it.at >= record.recorded.at))
    }

    /// Begins an attempt: records that `exec` is started, and makes the directory that it finds again, before it is. The caller
    /// has the lease of the call.
    ///
    /// Returns the name of the call in the index if that is another one, which another commit has begun meanwhile.
    pub fn begin(&self, suspension: &mut Suspension) -> Result<Option<ResultName>> {
        let Suspension { name, record } = suspension;
        if let Some(other) = self.claim(name, record)? {
            return Ok(Some(other));
        }
        record.state = SuspensionState::Executing;
        record.attempts = record.attempts.saturating_add(1);
        self.write(name, record)?;
        if record.granted().suspends() {
            let root = &self.storage.root;
            root.disk.make_dirs(&root.place(&name.suspended_work())?)?;
        }
        self.settle(name, record)?;
        Ok(None)
    }

    /// Waits until a place is on the disk: what was started may outlive this host.
    fn settle(&self, name: &ResultName, record: &SuspensionRecord) -> Result<()> {
        let root = &self.storage.root;
        let file = suspension_index(record.version(), &record.digests(), record.isolated);
        let names = [name.suspended_state(), name.suspended_work(), file];
        let paths: BTreeSet<PathBuf> = names
            .iter()
            .flat_map(|name| {
                let path = root.path(name);
                let above = path.ancestors().take_while(|it| it.starts_with(root.disk.root()));
                above.map(Path::to_owned).collect::<Vec<_>>()
            })
            .collect();
        paths.iter().try_for_each(|path| root.sync(path))
    }

    /// Puts a call into the index. Returns the name of another one that has its place there.
    fn claim(&self, name: &ResultName, record: &SuspensionRecord) -> Result<Option<ResultName>> {
        let root = &self.storage.root;
        let file = suspension_index(record.version(), &record.digests(), record.isolated);
        let (private, place) = (root.private_path()?, root.place(&file)?);
        root.disk.write(&private, format!("{}\n", name.short()).as_bytes())?;
        let first = root.disk.link(&private, &place)?;
        if !first {
            match self.entry(&file)? {
                Some(other) if other == *name => {}
                Some(other) if self.is_taken(&other)? => {
                    root.disk.remove(&private)?;
                    return Ok(Some(other));
                }
                _ => drop(root.disk.rename(&private, &place)?),
            }
        }
        root.disk.remove(&private)?;
        root.unsynced.note_new(&place);
        Ok(None)
    }

    /// Whether a call that the index names is suspended, or may be in a moment.
    fn is_taken(&self, name: &ResultName) -> Result<bool> {
        Ok(self.read(name)?.is_some() || self.storage.leases().holder(name).is_some())
    }

    /// Records how a call stands after an attempt.
    pub fn set(&self, suspension: &mut Suspension, state: SuspensionState) -> Result<()> {
        suspension.record.state = state;
        self.write(&suspension.name, &mut suspension.record)?;
        self.settle(&suspension.name, &suspension.record)
    }

    fn write(&self, name: &ResultName, record: &mut SuspensionRecord) -> Result<()> {
        record.recorded = Provenance::now();
        self.storage.records().put(&name.suspended_state(), record)
    }

    /// Records that a job waits for a call.
    pub fn add_job(&self, suspension: &mut Suspension, job: &WaitingJob) -> Result<()> {
        if suspension.record.add_job(job) {
            self.write(&suspension.name, &mut suspension.record)
        } else {
            Ok(())
        }
    }

    /// The directory that a call finds again, if it has one.
    pub fn work(&self, name: &ResultName) -> Result<Option<PathBuf>> {
        let work = self.storage.path(&name.suspended_work());
        Ok(self.storage.root.disk.exists(&work)?.then_some(work))
    }

    /// Whether a call has left nothing in the directory that it finds again.
    pub fn is_empty(&self, name: &ResultName) -> Result<bool> {
        let work = self.work(name)?;
        Ok(work.is_none_or(|work| self.storage.root.disk.is_empty(&work).unwrap_or(false)))
    }

    /// Removes the place of a call, and its file in the index. The caller has the lease of the call.
    pub fn remove(&self, suspension: &Suspension) -> Result<()> {
        let Suspension { name, record } = suspension;
        let root = &self.storage.root;
        let (place, removed) = (root.path(&name.suspended_place()), root.private_path()?);
        if root.disk.rename(&place, &removed)? {
            root.unsynced.note_entry(&place);
        }
        let file = suspension_index(record.version(), &record.digests(), record.isolated);
        if self.entry(&file)?.as_ref() == Some(name) {
            root.disk.remove(&root.path(&file))?;
            root.unsynced.note_entry(&root.path(&file));
        }
        root.disk.remove_tree(&removed)
    }

    /// Removes the places of calls that are over, unless a run has their leases. Returns how many.
    pub fn tidy(&self) -> Result<usize> {
        let mut removed = 0;
        for file in self.storage.root.own_names(SUSPENDED)? {
            let file = format!("{SUSPENDED}/{file}");
            let Some(name) = self.entry(&file)? else { continue };
            let Ok(lease) = self.storage.leases().acquire(&name) else { continue };
            match self.read(&name)? {
                Some(suspension) if self.is_over(&suspension)? => {
                    self.remove(&suspension)?;
                    removed += 1;
                }
                None if !self.storage.has(&name.suspended_place())? => {
                    self.storage.root.disk.remove(&self.storage.path(&file))?;
                }
                _ => {}
            }
            drop(lease);
        }
        Ok(removed)
    }

    /// Puts a call into the index again that was lost there. Returns whether it was.
    pub fn restore(&self, suspension: &Suspension) -> Result<bool> {
        let Suspension { name, record } = suspension;
        let file = suspension_index(record.version(), &record.digests(), record.isolated);
        let is_lost = self.entry(&file)?.is_none();
        Ok(is_lost && self.claim(name, record)?.is_none())
    }

    /// Whether a call is in the index.
    pub fn is_indexed(&self, Suspension { name, record }: &Suspension) -> Result<bool> {
        let file = suspension_index(record.version(), &record.digests(), record.isolated);
        Ok(self.entry(&file)?.as_ref() == Some(name))
    }
}

/// The number of bytes of a log that are copied at a time.
const PIECE: u64 = 1 << 20;

impl Suspensions<'_> {
    /// Keeps the log of an attempt that has ended, with those of the attempts before it.
    pub fn keep_log(&self, name: &ResultName, stage: Stage<'_>) -> Result<()> {
        let stage = stage.doubtless()?.unwrap_or(stage);
        let root = &self.storage.root;
        let log = root.disk.metadata(&stage.log())?;
        if log.is_some_and(|log| log.is_file() && log.len() > 0) {
            drop(root.disk.share_made(&stage.log()));
            root.disk.rename(&stage.log(), &root.place(&name.suspended_log())?)?;
        }
        Ok(())
    }
}

impl Stage<'_> {
    /// Puts what earlier attempts of a suspended call have printed before what this one has.
    pub fn continue_log(&self, name: &ResultName) -> Result<()> {
        let disk = &self.storage.root.disk;
        let (earlier, log, both) =
            (self.storage.path(&name.suspended_log()), self.log(), self.copy());
        let is_file = |path: &Path| {
            Ok::<_, StorageError>(disk.metadata(path)?.is_some_and(|it| it.is_file()))
        };
        if !is_file(&earlier)? {
            return Ok(());
        }
        for part in [&earlier, &log] {
            let mut from = 0;
            while is_file(part)? {
                let piece = disk.read_from(part, from, PIECE)?;
                if piece.is_empty() {
                    break;
                }
                from += piece.len() as u64;
                disk.append(&both, &piece)?;
            }
        }
        disk.rename(&both, &log).map(drop)
    }

    /// The first line that an execution has printed, if it has printed any.
    pub fn first_line(&self) -> Result<Option<String>> {
        const LONGEST: u64 = 2000;
        let begin = self.storage.root.disk.read_from(&self.log(), 0, LONGEST)?;
        let text = String::from_utf8_lossy(&begin);
        Ok(text.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned))
    }
}
