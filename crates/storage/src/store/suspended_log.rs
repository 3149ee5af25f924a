//! The log of a suspended call: that of all its attempts, one after the other.

use std::path::Path;

use super::stage::Stage;
use super::suspension::Suspensions;
use crate::disk::{Result, StorageError};
use crate::layout::ResultName;

/// The number of bytes of a log that are copied at a time.
const PIECE: u64 = 1 << 20;

impl Suspensions<'_> {
    /// Keeps the log of an attempt that has ended, with those of the attempts before it.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be written.
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
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read or written.
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
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read.
    pub fn first_line(&self) -> Result<Option<String>> {
        const LONGEST: u64 = 2000;
        let begin = self.storage.root.disk.read_from(&self.log(), 0, LONGEST)?;
        let text = String::from_utf8_lossy(&begin);
        Ok(text.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned))
    }
}
