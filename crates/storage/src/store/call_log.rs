//! The logs of calls: of those that are being executed, and of those that have ended.

use super::Storage;
use super::executing::EXECUTING;
use super::queue::runs;
use crate::disk::{Metadata, Result};
use crate::layout::{FAILED, LEASES, LOG, RUNS, ResultName, RunName, SUSPENDED};

/// The most that is read of a log at once, in bytes.
const PIECE: u64 = 1 << 16;

impl Storage {
    /// Returns the short names of the calls that living runs execute, as far as they have said so.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read.
    pub fn executed_calls(&self) -> Result<Vec<String>> {
        let mut calls = Vec::new();
        for run in runs(&self.root, RUNS)?.filter(|run| self.lives(run)) {
            calls.extend(self.executions(&run)?.into_iter().map(|(_, call)| call));
        }
        Ok(calls)
    }

    /// Returns what tells an execution of a call from others, and the name of the file to which it prints, if its run has said
    /// that it is being executed.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read.
    pub fn running_log(&self, name: &ResultName) -> Result<Option<(String, String)>> {
        let lease = self.root.disk.read(&self.root.path(&name.room(LEASES)))?.unwrap_or_default();
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
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read.
    pub fn kept_log(&self, name: &ResultName) -> Result<Option<String>> {
        for log in [name.room(FAILED), name.log(), name.suspended_log()] {
            if self.has(&log)? {
                return Ok(Some(log));
            }
        }
        Ok(None)
    }

    /// Returns the size of what a call has printed that has succeeded, in bytes; `None` without a plain file.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read.
    pub fn log_size(&self, name: &ResultName) -> Result<Option<u64>> {
        let log = self.root.disk.metadata(&self.root.path(&name.log()))?;
        Ok(log.filter(Metadata::is_file).map(|log| log.len()))
    }

    /// Returns all that a call has printed that has succeeded.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be read, or is larger than a record may be.
    pub fn log_contents(&self, name: &ResultName) -> Result<Vec<u8>> {
        Ok(self.root.disk.read(&self.root.path(&name.log()))?.unwrap_or_default())
    }

    /// Whether there is a record of a call, or of its last failure; or it is suspended.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read.
    pub fn is_known(&self, name: &ResultName) -> Result<bool> {
        Ok(self.has(&name.record())?
            || self.has(&name.record_in(FAILED))?
            || self.has(&name.room(SUSPENDED))?)
    }

    /// Returns what a log has from a byte on, or the beginning of that; nothing if it does not exist any more.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be read.
    pub fn read_log(&self, log: &str, from: u64) -> Result<Vec<u8>> {
        self.root.disk.read_from(&self.root.path(log), from, PIECE)
    }

    fn executions(&self, run: &RunName) -> Result<Vec<(String, String)>> {
        let list = self.root.path(&format!("{}/{EXECUTING}", run.directory()));
        let text = self.root.disk.read(&list)?.unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        let pair = |line: &str| line.split_once(' ').map(|(a, b)| (a.to_owned(), b.to_owned()));
        Ok(text.lines().filter_map(pair).collect())
    }
}
