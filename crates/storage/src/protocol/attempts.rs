//! Earlier attempts at a call: failures, logs and tombstones. They are never used as results.

use super::Storage;
use super::call::{Call, Damage};
use super::queue::runs;
use super::run::EXECUTING;
use super::stage::Stage;
use crate::disk::{Metadata, Result, Root};
use crate::paths::{COLLECTED, FAILED, LEASES, LOG, LOGS, RUNS, ResultName, RunName, SUSPENDED};
use crate::records::{
    CallRecord, FailureRecord, Format, Provenance, RecordState, Records, Tombstone,
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

    /// Returns at most so many bytes of the log of a call that has succeeded or failed, and the size of the whole log in
    /// bytes; nothing if it printed nothing.
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

/// The failure of a call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Failure {
    /// The reason, in words.
    pub reason: String,
    /// Its exit status, if it ended by itself.
    pub exit_status: Option<i32>,
    /// The signal that killed it, if one did.
    pub signal: Option<i32>,
    /// The exit statuses of its tasks, if a launcher has started it.
    pub tasks: Box<[Option<u8>]>,
    /// The duration, in seconds.
    pub seconds: f64,
    /// The isolation of the execution, if `exec` was started.
    pub isolation: Option<String>,
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
        // The log of another user was shared by that user.
        drop(root.disk.share_made(&log));
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
        let Failure { reason, exit_status, signal, tasks, seconds, isolation } = failure;
        let record = FailureRecord {
            format: Format::of(call.inputs),
            computation: call.version.computation.clone(),
            commit: call.version.commit.clone(),
            tree: Some(call.version.tree.clone()),
            inputs: call.inputs.to_vec(),
            isolation,
            reason,
            exit_status,
            signal,
            tasks,
            seconds,
            recorded: Provenance::now(),
        };
        storage.records().put(&name.record_in(FAILED), &record)?;
        // Only such a failure counts at another commit.
        if record.exit_status.is_some() && record.is_isolated() {
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

    /// Returns what tells an execution of a call from others, and the name of the file to which it prints, if its run has said
    /// that it is being executed.
    pub fn running_log(&self, name: &ResultName) -> Result<Option<(String, String)>> {
        let lease = self
            .storage
            .root
            .disk
            .read(&self.storage.root.path(&name.room(LEASES)))?
            .unwrap_or_default();
        let run = String::from_utf8_lossy(&lease).trim().parse::<RunName>();
        let Ok(run) = run else { return Ok(None) };
        let (call, executions) = (name.short(), self.executions(&run)?);
        let own = executions.into_iter().find(|(_, other)| *other == call);
        let log = |stage: String| {
            let slot = stage.rsplit_once('/').map_or("", |(slot, _)| slot);
            let log = format!("{slot}/{LOG}");
            (stage, log)
        };
        Ok(own.map(|(stage, _)| log(stage)))
    }

    /// Returns the name of the file that keeps what a call has printed that is not being executed, if it has printed anything.
    pub fn kept_log(&self, name: &ResultName) -> Result<Option<String>> {
        for log in [name.room(FAILED), name.log(), name.suspended_log()] {
            if self.storage.has(&log)? {
                return Ok(Some(log));
            }
        }
        Ok(None)
    }

    /// Returns the size of what a call has printed that has succeeded, in bytes; `None` without a plain file.
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

    /// Returns what a log has from a byte on, or the beginning of that; nothing if it does not exist any more.
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
