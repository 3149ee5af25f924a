//! Earlier attempts at a call: failures, logs and tombstones, which are never used as results; and suspensions.
//!
//! A suspended call has a place that stays between its attempts, and a file in an index by which other commits find it.
//! The place exists before an `exec` is started that knows it, and until its outputs are published. So processes that
//! were started elsewhere are found again, even if any process dies at any moment. The file of the index is made first,
//! and removed last: one that leads nowhere is ignored. The log of a suspended call has the logs of all its attempts,
//! one after the other.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use ce_files::walk::is_out_of_reach;
use rustix::process::geteuid;

use super::Storage;
use super::call_lookup::{Call, Damage};
use super::heartbeat::EXECUTING;
use super::queue::runs;
use super::stage::{Stage, other_owner};
use crate::disk::{Metadata, Result, Root, StorageError};
use crate::paths::{
    COLLECTED, FAILED, LEASES, LOG, LOGS, OWN, RUNS, ResultName, RunName, SUSPENDED,
    suspension_index, suspension_key,
};
use crate::records::{
    CallRecord, Failure, FailureRecord, Format, Provenance, RecordState, Records, SuspensionRecord,
    SuspensionState, Tombstone, WaitingJob,
};

/// The last failed attempt of a missing call, and its other remains.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PriorAttempt {
    /// The failure of the last execution.
    pub failure: Option<FailureRecord>,
    /// The tombstone, if the outputs were collected.
    pub collected: Option<Tombstone<CallRecord>>,
    /// Damaged remains of the outputs or the record.
    pub damage: Option<Damage>,
    /// The short name of the same call of another commit, which is suspended and not continued, since it is not isolated.
    pub suspended: Option<String>,
    /// Its record is here, and outputs are deliberately not.
    pub away: bool,
}

/// The earlier attempts at calls in a storage.
#[derive(Clone, Copy, Debug)]
pub struct Attempts<'a> {
    root: &'a Root,
}

impl<'a> Attempts<'a> {
    pub(super) const fn new(root: &'a Root) -> Self {
        Self { root }
    }

    /// Returns the earlier attempts at a missing call, if there are any. Unreadable files count as
    /// missing.
    pub fn prior(&self, name: &ResultName, damage: Option<Damage>) -> Option<Box<PriorAttempt>> {
        let collected =
            Records::new(self.root).read(&name.record_in(COLLECTED)).ok().and_then(RecordState::ok);
        self.prior_beside(name, collected, damage)
    }

    /// Returns the earlier attempts at a missing call whose tombstone the caller has read.
    pub fn prior_beside(
        &self,
        name: &ResultName,
        collected: Option<Tombstone<CallRecord>>,
        damage: Option<Damage>,
    ) -> Option<Box<PriorAttempt>> {
        let failure =
            Records::new(self.root).read(&name.record_in(FAILED)).ok().and_then(RecordState::ok);
        let prior = PriorAttempt { failure, collected, damage, ..PriorAttempt::default() };
        (prior != PriorAttempt::default()).then(|| Box::new(prior))
    }

    /// Removes the failure, its log and the tombstone of a call that has succeeded.
    pub fn forget(&self, name: &ResultName) -> Result<()> {
        let names = [name.record_in(FAILED), name.room(FAILED), name.record_in(COLLECTED)];
        names.iter().try_for_each(|name| self.root.disk.remove(&self.root.path(name)))
    }

    /// Returns the name of the log of a failed call, unless it printed nothing.
    pub fn failure_log(&self, name: &ResultName) -> Option<String> {
        let log = name.room(FAILED);
        self.root.disk.metadata(&self.root.path(&log)).ok().flatten().map(|_| log)
    }

    /// Returns the log of a successful call, unless it printed nothing.
    pub fn log(&self, name: &ResultName) -> Result<Option<LogTail>> {
        self.tail(name.log(), MAX_TAIL)
    }

    /// Returns the log of a failed call, unless it printed nothing.
    pub fn failed_log(&self, name: &ResultName) -> Result<Option<LogTail>> {
        self.tail(name.room(FAILED), MAX_TAIL)
    }

    /// Returns at most the last `most` bytes of the log of a call that has succeeded or failed, and the size of the
    /// whole log in bytes; nothing if it printed nothing.
    pub fn log_end(
        &self,
        name: &ResultName,
        has_failed: bool,
        most: u64,
    ) -> Result<Option<(LogTail, u64)>> {
        let log = name.room(if has_failed { FAILED } else { LOGS });
        let size = self.root.disk.metadata(&self.root.path(&log))?.map(|it| it.len());
        let Some(size) = size else { return Ok(None) };
        Ok(self.tail(log, most)?.map(|tail| (tail, size)))
    }

    fn tail(&self, name: String, most: u64) -> Result<Option<LogTail>> {
        let path = self.root.path(&name);
        if self.root.disk.metadata(&path)?.is_none() {
            return Ok(None);
        }
        Ok(Some(LogTail { name, tail: self.root.disk.tail(&path, most)? }))
    }
}

/// The greatest part of a log that is shown, in bytes.
pub(super) const MAX_TAIL: u64 = 2000;

/// The log of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogTail {
    /// The name of the file with the whole log.
    pub name: String,
    /// Its end.
    pub tail: String,
}

impl Stage<'_> {
    /// Moves the log to a room, unless it is empty. Returns its name there.
    pub(crate) fn keep_log(&mut self, name: &ResultName, room: &str) -> Result<Option<String>> {
        let root = &self.storage.root;
        let log = self.log();
        let known = root.disk.metadata(&log)?;
        self.log_is_empty =
            known.is_none_or(|log| log.is_file() && log.links() == 1 && log.len() == 0);
        if self.log_is_empty || known.is_none_or(|log| !log.is_file()) {
            return Ok(None);
        }
        let kept = name.room(room);
        self.seal_log()?;
        root.disk.rename(&log, &root.place(&kept)?)?;
        Ok(Some(kept))
    }

    /// Records a failure, and discards the outputs. Returns the log.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be written, or this run's directory in it was moved: then the call
    /// may have failed because of that, and nothing is recorded.
    pub fn fail(
        self,
        call: Call<'_>,
        name: &ResultName,
        failure: Failure,
    ) -> Result<Option<LogTail>> {
        self.storage.root.displaced().map_or(Ok(()), Err)?;
        let mut stage = self.doubtless()?.unwrap_or(self);
        let storage = stage.storage;
        let log = stage.keep_log(name, FAILED)?.map(|name| {
            // The failure is reported even without its log.
            let tail = storage.root.disk.tail(&storage.path(&name), MAX_TAIL).unwrap_or_default();
            LogTail { name, tail }
        });
        let record = FailureRecord {
            format: Format::for_values(call.inputs),
            computation: call.version.computation.clone(),
            commit: call.version.commit.clone(),
            tree: Some(call.version.tree.clone()),
            inputs: call.inputs.to_vec(),
            failure,
            recorded: Provenance::now(),
        };
        storage.records().put(&name.record_in(FAILED), &record)?;
        // Another commit uses a failure only if it is isolated, for its exit status or its attempts.
        let Failure { exit_status, ref attempts, .. } = record.failure;
        if (exit_status.is_some() || !attempts.is_empty()) && record.is_isolated() {
            storage.equivalents().note_version(call.version, name);
        }
        Ok(log)
    }
}

/// The most that is read of a log at once, in bytes.
const PIECE: u64 = 1 << 16;

/// The logs of calls, of running ones and of ended ones.
#[derive(Clone, Copy, Debug)]
pub struct CallLogs<'a> {
    storage: &'a Storage,
}

impl<'a> CallLogs<'a> {
    pub(super) const fn new(storage: &'a Storage) -> Self {
        Self { storage }
    }

    /// Returns the short names of the calls that living runs execute, as far as they have said so.
    pub fn executed_calls(&self) -> Result<Vec<String>> {
        let mut calls = Vec::new();
        for run in runs(&self.storage.root, RUNS)?.filter(|run| self.storage.runs().lives(run)) {
            calls.extend(self.executions(&run)?.into_iter().map(|(_, call)| call));
        }
        Ok(calls)
    }

    /// Returns a name that distinguishes an execution of a call from others, and the name of the file to which it prints, if its
    /// run has said that it is being executed.
    pub fn running_log(&self, name: &ResultName) -> Result<Option<(String, String)>> {
        let lease = self
            .storage
            .root
            .disk
            .read(&self.storage.root.path(&name.room(LEASES)))?
            .unwrap_or_default();
        let run = String::from_utf8_lossy(&lease).trim().parse::<RunName>();
        let Ok(run) = run else { return Ok(None) };
        if other_owner(self.storage, &self.storage.root.path(&run.directory())).is_some() {
            // Only its user may read its log, until it has ended.
            return Ok(None);
        }
        let (call, executions) = (name.short(), self.executions(&run)?);
        let own = executions.into_iter().find(|(_, other)| *other == call);
        Ok(own.map(|(stage, _)| {
            let slot = stage.rsplit_once('/').map_or("", |(slot, _)| slot);
            let log = format!("{slot}/{OWN}/{LOG}");
            (stage, log)
        }))
    }

    /// Returns the name of the log of a call that is not being executed, if it has printed anything.
    pub fn kept_log(&self, name: &ResultName) -> Result<Option<String>> {
        for log in [name.room(FAILED), name.log(), name.suspended_log()] {
            if self.storage.has(&log)? {
                return Ok(Some(log));
            }
        }
        Ok(None)
    }

    /// Returns the size of the log of a call that has succeeded, in bytes; `None` without a plain file.
    pub fn log_size(&self, name: &ResultName) -> Result<Option<u64>> {
        let log = self.storage.root.disk.metadata(&self.storage.root.path(&name.log()))?;
        Ok(log.filter(Metadata::is_file).map(|log| log.len()))
    }

    /// Returns all that a call has printed that has succeeded.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be read, or is larger than a record may be.
    pub fn log_contents(&self, name: &ResultName) -> Result<Vec<u8>> {
        Ok(self.storage.root.disk.read(&self.storage.root.path(&name.log()))?.unwrap_or_default())
    }

    /// Whether there is a record of a call, or of its last failure; or it is suspended.
    pub fn is_known(&self, name: &ResultName) -> Result<bool> {
        Ok(self.storage.has(&name.record())?
            || self.storage.has(&name.record_in(FAILED))?
            || self.storage.has(&name.room(SUSPENDED))?)
    }

    /// Returns the contents of a log from a byte on, or the beginning of that; nothing if it does not exist any more.
    pub fn read_log(&self, log: &str, from: u64) -> Result<Vec<u8>> {
        self.storage.root.disk.read_from(&self.storage.root.path(log), from, PIECE)
    }

    fn executions(&self, run: &RunName) -> Result<Vec<(String, String)>> {
        let list = self.storage.root.path(&format!("{}/{EXECUTING}", run.directory()));
        let text = self.storage.root.disk.read(&list)?.unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        Ok(text
            .lines()
            .filter_map(|line| line.split_once(' ').map(|(a, b)| (a.to_owned(), b.to_owned())))
            .collect())
    }
}

/// A suspended call.
#[derive(Clone, Debug, PartialEq)]
pub struct Suspension {
    /// The name under which it was begun.
    pub name: ResultName,
    pub record: SuspensionRecord,
}

/// The result of looking for a suspended call.
#[derive(Debug)]
pub enum FoundSuspension {
    /// It is to be continued.
    Same(Box<Suspension>),
    /// It was begun with another isolation than the current one, so it cannot be continued.
    Unlike(Box<Suspension>),
    /// The call is not suspended.
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

    /// Whether a call may be suspended here. If no call is, this is looked up once, so that later questions cost
    /// nothing.
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

    /// Looks for a call, isolated or not, that was begun for any commit.
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

    /// Returns an equal call that is suspended for another commit, and not continued since it is not isolated.
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

    /// Returns all calls of the index, sorted by the time of their beginning. A call whose outputs were published since
    /// its last attempt began is over.
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

    /// Whether only this user and root can change the record of a call.
    pub fn is_out_of_reach(&self, name: &ResultName) -> bool {
        let place = self.storage.path(&name.suspended_place());
        is_out_of_reach(&place, geteuid().as_raw())
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

    /// Begins an attempt before `exec` is started: records the start, and makes the directory that `exec` finds again. The
    /// caller has the lease of the call.
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
            self.make_work(name)?;
        }
        self.settle(name, record)?;
        Ok(None)
    }

    /// Makes the directory that a call finds again, which no other user may enter, unless it is there.
    fn make_work(&self, name: &ResultName) -> Result<()> {
        if self.work(name)?.is_some() {
            return Ok(());
        }
        let root = &self.storage.root;
        let own = root.place(&name.suspended_own())?;
        if !root.disk.exists(&own)? {
            root.disk.make_private_dir(&own)?;
        }
        root.disk.make_private_dir(&root.path(&name.suspended_work()))
    }

    /// Waits until a place is on the disk: the started processes may outlive this host.
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

    /// Puts a call into the index. Returns the name of another call that has its place there.
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
        let disk = &self.storage.root.disk;
        for name in [name.suspended_work(), name.earlier_work()] {
            let work = self.storage.path(&name);
            if disk.exists(&work)? {
                return Ok(Some(work));
            }
        }
        Ok(None)
    }

    /// Whether another user has begun a call and only that one may enter the directory that it finds again.
    pub fn is_closed(&self, name: &ResultName) -> Result<bool> {
        let own = self.storage.root.disk.metadata(&self.storage.path(&name.suspended_own()))?;
        Ok(own.and_then(|own| own.another_owner()).is_some())
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
                Some(suspension) if self.is_over(&suspension)? && !self.is_closed(&name)? => {
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
const COPY_PIECE: u64 = 1 << 20;

impl Suspensions<'_> {
    /// Keeps the log of an attempt that has ended, with the logs of the attempts before it.
    pub fn keep_log(&self, name: &ResultName, stage: Stage<'_>) -> Result<()> {
        let stage = stage.doubtless()?.unwrap_or(stage);
        let root = &self.storage.root;
        let log = root.disk.metadata(&stage.log())?;
        if log.is_some_and(|log| log.is_file() && log.len() > 0) {
            stage.seal_log()?;
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
                let piece = disk.read_from(part, from, COPY_PIECE)?;
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
