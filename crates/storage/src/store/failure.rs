//! Failures: recorded with their logs, never used as results.

use super::call::Call;
use super::stage::Stage;
use crate::disk::Result;
use crate::layout::{FAILED, ResultName};
use crate::records::{FailureRecord, Format, Provenance};

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
            storage.note_version(call.version, name);
        }
        Ok(log)
    }
}
