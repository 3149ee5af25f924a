//! Earlier attempts at a call: failures, logs, tombstones. Never a result.

use super::call::Damage;
use super::failure::{LogTail, MAX_TAIL};
use crate::disk::{Result, Root};
use crate::layout::{COLLECTED, FAILED, LOGS, ResultName};
use crate::records::{CallRecord, FailureRecord, Read, Records, Tombstone};

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
            Records::new(self.root).read(&name.record_in(COLLECTED)).ok().and_then(Read::ok);
        self.prior_beside(name, collected, damage)
    }

    /// Returns the earlier attempts at a missing call whose tombstone the caller has read.
    pub fn prior_beside(
        &self,
        name: &ResultName,
        collected: Option<Tombstone<CallRecord>>,
        damage: Option<Damage>,
    ) -> Option<Box<PriorAttempt>> {
        let failure = Records::new(self.root).read(&name.record_in(FAILED)).ok().and_then(Read::ok);
        let prior = PriorAttempt { failure, collected, damage, ..PriorAttempt::default() };
        (prior != PriorAttempt::default()).then(|| Box::new(prior))
    }

    /// Removes the failure, its log and the tombstone of a call that has succeeded.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be written.
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
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read.
    pub fn log(&self, name: &ResultName) -> Result<Option<LogTail>> {
        self.tail(name.log(), MAX_TAIL)
    }

    /// Returns the log of a failed call, unless it printed nothing.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read.
    pub fn failed_log(&self, name: &ResultName) -> Result<Option<LogTail>> {
        self.tail(name.room(FAILED), MAX_TAIL)
    }

    /// Returns at most so many bytes of the log of a call that has succeeded or failed, and the size of the whole log in
    /// bytes; nothing if it printed nothing.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read.
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
