//! Where a call that is being executed writes, and how its outputs become visible.
//!
//! Linking the record decides: it appears whole, under a name that was free, so one execution wins
//! and every other one throws its outputs away. The winner's outputs then move from its stage to
//! their places; if it dies on the way, whoever meets the record next moves the rest.

use std::cell::Cell;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::find::{Call, Outputs, State};
use super::record::{Execution, FailureRecord, Format, Origin, Published};
use super::scheme::ResultName;
use super::{Found, Result, Storage, StorageError, disk};

/// How often a result that others change is looked at before giving up.
const PATIENCE: usize = 10;

/// How much of a log is shown, in bytes.
const TAIL: u64 = 2000;

/// What a call that failed has printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// The file in the storage that keeps all of it.
    pub name: String,
    /// Its end.
    pub tail: String,
}

/// The private directory of a call that is being executed.
#[derive(Debug)]
pub struct Stage<'a> {
    storage: &'a Storage,
    name: String,
    dir: PathBuf,
    outputs: usize,
    /// Whether the record is there and outputs still wait to be moved, by whoever meets it next.
    waiting: Cell<bool>,
}

/// Why outputs were not published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// `exec` left no file where an output belongs.
    #[error("it made no output {number:02} ({output})")]
    NoOutput {
        /// The number of the output.
        number: usize,
        /// Its symbolic name.
        output: String,
    },
    /// Something other than a file stands where an output belongs.
    #[error("its output {number:02} ({output}) is not a file")]
    NotAFile {
        /// The number of the output.
        number: usize,
        /// Its symbolic name.
        output: String,
    },
    /// The storage could not be written.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl Storage {
    /// Makes a private directory for the execution of a call with so many outputs.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be written.
    pub fn stage(&self, outputs: usize) -> Result<Stage<'_>> {
        let name = self.stage_name();
        let dir = self.place(&name)?;
        disk::make_dir(&dir)?;
        let stage = Stage {
            storage: self,
            name,
            dir,
            outputs,
            waiting: Cell::new(false),
        };
        disk::make_dir(&stage.work())?;
        Ok(stage)
    }
}

impl Stage<'_> {
    /// Where the outputs are to be written, in order.
    pub fn outputs(&self) -> impl Iterator<Item = PathBuf> + '_ {
        (0..self.outputs).map(|number| self.output(number))
    }

    fn output(&self, number: usize) -> PathBuf {
        self.dir.join(format!("{number:02}"))
    }

    /// An empty directory to work in.
    pub fn work(&self) -> PathBuf {
        self.dir.join("work")
    }

    /// Where what `exec` prints is to be written.
    pub fn log(&self) -> PathBuf {
        self.dir.join("log")
    }

    /// Makes the outputs visible, all or none; returns those that are visible then.
    ///
    /// They are another execution's if that was faster.
    ///
    /// # Errors
    ///
    /// Fails if an output is missing or is no file, or if the storage cannot be written.
    pub fn publish(
        &self,
        call: Call<'_>,
        name: &ResultName,
        execution: Execution,
    ) -> Result<Outputs, PublishError> {
        let outputs = self.take(call)?;
        let digests = outputs.iter().map(|output| output.digest).collect();
        let origin = Origin::Executed {
            stage: self.name.clone(),
            execution,
        };
        let record = self.dir.join("record");
        self.storage
            .write_record(&record, &self.storage.call_record(call, outputs, origin))?;
        let mut name = name.clone();
        for _ in 0..PATIENCE {
            let place = self.storage.place(&name.record())?;
            if disk::link(&record, &place)? {
                self.waiting.set(true);
                self.reveal(&name)?;
                self.waiting.set(false);
                return Ok(Outputs { name, digests });
            }
            match self.storage.state(&name, call)? {
                State::Hit(theirs) => return Ok(theirs),
                State::Remains | State::Free => self.storage.set_aside(&name, self.outputs)?,
                State::Stranger => match self.storage.find(call)? {
                    Found::Hit(theirs) => return Ok(theirs),
                    Found::Absent(other) => name = other,
                },
            }
        }
        Err(StorageError::Unsteady(self.storage.path(&name.record())).into())
    }

    /// Hashes the outputs and makes them read-only.
    fn take(&self, call: Call<'_>) -> Result<Vec<Published>, PublishError> {
        let mut outputs = Vec::with_capacity(self.outputs);
        for (number, path) in self.outputs().enumerate() {
            let output = || call.computation.outputs[number].clone();
            let Some(metadata) = disk::link_metadata(&path)? else {
                return Err(PublishError::NoOutput {
                    number,
                    output: output(),
                });
            };
            if !metadata.is_file() {
                return Err(PublishError::NotAFile {
                    number,
                    output: output(),
                });
            }
            if metadata.nlink() > 1 {
                // Another name leads to the same file, and whoever has it could write there.
                let copy = self.dir.join("copy");
                disk::copy(&path, &copy)?;
                disk::rename(&copy, &path)?;
            }
            let modified_ns = disk::seal(&path)?;
            outputs.push(Published {
                digest: disk::digest(&path)?,
                modified_ns,
            });
        }
        Ok(outputs)
    }

    /// Moves everything to its place, after the record.
    fn reveal(&self, name: &ResultName) -> Result<()> {
        for number in 0..self.outputs {
            // If it is gone, somebody who met the record has moved it.
            disk::rename(
                &self.output(number),
                &self.storage.place(&name.output(number))?,
            )?;
        }
        self.keep_log(name, "log")?;
        self.storage.forget_failure(name)
    }

    /// Moves the log to a room, unless nothing was printed; returns its name there.
    fn keep_log(&self, name: &ResultName, room: &str) -> Result<Option<String>> {
        let log = self.log();
        if disk::metadata(&log)?.is_none_or(|metadata| metadata.len() == 0) {
            return Ok(None);
        }
        let kept = name.room(room);
        disk::rename(&log, &self.storage.place(&kept)?)?;
        Ok(Some(kept))
    }

    /// Keeps the memory of a failure, and nothing of its outputs; returns what it printed.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be written.
    pub fn fail(self, call: Call<'_>, name: &ResultName, reason: &str) -> Result<Option<Log>> {
        let log = self.keep_log(name, "failed")?.map(|name| {
            // A log that cannot be read is no reason to say less of the failure itself.
            let tail = disk::tail(&self.storage.path(&name), TAIL).unwrap_or_default();
            Log { name, tail }
        });
        let record = FailureRecord {
            format: Format,
            computation: call.computation.name.clone(),
            commit: call.computation.commit.clone(),
            inputs: call.inputs.to_vec(),
            reason: reason.to_owned(),
            recorded: self.storage.stamp(),
        };
        self.storage.put_record(&failure(name), &record)?;
        Ok(log)
    }
}

impl Drop for Stage<'_> {
    /// Removes what was not published.
    fn drop(&mut self) {
        if !self.waiting.get() {
            drop(disk::remove_tree(&self.dir));
        }
    }
}

fn failure(name: &ResultName) -> String {
    name.room("failed") + ".json"
}

impl Storage {
    fn forget_failure(&self, name: &ResultName) -> Result<()> {
        [failure(name), name.room("failed")]
            .iter()
            .try_for_each(|name| disk::remove(&self.path(name)))
    }

    /// Moves what stands under a name out of the way; nothing is deleted.
    fn set_aside(&self, name: &ResultName, outputs: usize) -> Result<()> {
        let room = format!(
            "{}/{}",
            name.room("aside"),
            self.stage_name().replace('/', "-")
        );
        let aside = |part: &str, from: &Path| {
            disk::rename(from, &self.place(&format!("{room}/{part}"))?).map(drop)
        };
        aside("record.json", &self.path(&name.record()))?;
        (0..outputs)
            .try_for_each(|number| aside(&format!("{number:02}"), &self.path(&name.output(number))))
    }
}
