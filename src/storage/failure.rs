//! Failures: remembered with what was printed, never served.

use super::find::{Call, Read};
use super::record::{FailureRecord, Format};
use super::scheme::ResultName;
use super::stage::Stage;
use super::{Result, Storage};

/// The room of what is remembered of failures.
pub(super) const FAILED: &str = "failed";

/// How much of a log is shown, in bytes.
const MAX_TAIL: u64 = 2000;

/// The output that a call has printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogTail {
    /// The file in the storage that keeps all of it.
    pub name: String,
    /// Its end.
    pub tail: String,
}

/// How a call failed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Failure {
    /// Why, in words.
    pub reason: String,
    /// Its exit status, if it ended by itself.
    pub exit_status: Option<i32>,
    /// The signal that killed it, if one did.
    pub signal: Option<i32>,
    /// How long it ran, in seconds.
    pub seconds: f64,
}

/// Where a log is kept.
#[derive(Clone, Copy, Debug)]
pub(super) enum Room {
    /// Beside a result.
    Log,
    /// Beside the memory of a failure.
    Failed,
}

impl Stage<'_> {
    /// Moves the log to a room, unless nothing was printed; returns its name there.
    pub(super) fn keep_log(&mut self, name: &ResultName, room: Room) -> Result<Option<String>> {
        let log = self.log();
        let known = self.storage.disk.metadata(&log)?;
        self.log_is_empty =
            known.is_none_or(|log| log.is_file() && log.links() == 1 && log.len() == 0);
        if self.log_is_empty || known.is_none_or(|log| !log.is_file()) {
            return Ok(None);
        }
        let kept = name.room(match room {
            Room::Log => "log",
            Room::Failed => FAILED,
        });
        // One that is another user's was shared by that user.
        drop(self.storage.disk.share_made(&log));
        self.storage.disk.rename(&log, &self.storage.place(&kept)?)?;
        Ok(Some(kept))
    }

    /// Records a failure, and keeps nothing of the outputs; returns the log.
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
        self.storage.displaced().map_or(Ok(()), Err)?;
        let mut stage = self.doubtless()?.unwrap_or(self);
        let storage = stage.storage;
        let log = stage.keep_log(name, Room::Failed)?.map(|name| {
            // A log that cannot be read is no reason to say less of the failure itself.
            let tail = storage.disk.tail(&storage.path(&name), MAX_TAIL).unwrap_or_default();
            LogTail { name, tail }
        });
        let Failure { reason, exit_status, signal, seconds } = failure;
        let record = FailureRecord {
            format: Format,
            computation: call.version.computation.clone(),
            commit: call.version.commit.clone(),
            inputs: call.inputs.to_vec(),
            reason,
            exit_status,
            signal,
            seconds,
            recorded: storage.provenance(),
        };
        storage.put_record(&name.record_in(FAILED), &record)?;
        Ok(log)
    }
}

impl Storage {
    /// Returns the name of the log of a call that failed last, unless it printed nothing.
    pub fn failure_log(&self, name: &ResultName) -> Option<String> {
        let log = name.room(FAILED);
        self.disk.metadata(&self.path(&log)).ok().flatten().map(|_| log)
    }

    /// Returns what a call has printed, unless that was nothing.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read.
    pub fn log(&self, name: &ResultName) -> Result<Option<LogTail>> {
        let name = name.room("log");
        let path = self.path(&name);
        if self.disk.metadata(&path)?.is_none() {
            return Ok(None);
        }
        Ok(Some(LogTail { name, tail: self.disk.tail(&path, MAX_TAIL)? }))
    }

    /// Returns the calls that failed last, sorted by name, with their failures.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read.
    pub fn failures(&self) -> Result<Vec<(ResultName, FailureRecord)>> {
        let mut failures = Vec::new();
        for name in self.results_in(FAILED, "c_", std::convert::identity)? {
            if let Read::Record(record) = self.record(&name.record_in(FAILED))? {
                failures.push((name, record));
            }
        }
        Ok(failures)
    }
}
