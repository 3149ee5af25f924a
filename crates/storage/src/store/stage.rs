//! Stages: private directories of executions, until their outputs are sealed.

use std::path::PathBuf;

use super::Storage;
use crate::disk::{Result, lock};
use crate::layout::{LOG, OUTBOX, RECORD, ResultName, WORK, waiting};
use crate::records::{CallRecord, Published};
use ce_model::task::name::is_directory;

/// The private directory of an execution. Dropping it releases the directory for the next call.
///
/// Directories are reused, since creating and removing one is among the slowest operations of a
/// file system. The names of a call's files are never reused.
#[derive(Debug)]
pub struct Stage<'a> {
    pub(crate) storage: &'a Storage,
    /// The directory, relative to the storage.
    slot: String,
    /// The prefix of the names of the call's files, relative to the storage.
    pub(crate) name: String,
    pub(crate) outputs: usize,
    /// The record is published and the outputs are still here: any run that reads the record may
    /// move them.
    pub(crate) awaited: bool,
    /// Other processes may still write to the files, so only copies are used.
    in_doubt: bool,
    /// The area where `exec` may have left files.
    pub(crate) writable_area: WritableArea,
    /// All outputs are in their places.
    pub(crate) published: bool,
    /// The log is empty.
    pub(crate) log_is_empty: bool,
}

/// The outputs of an execution, hashed and not visible yet.
#[derive(Debug)]
pub struct Sealed<'a> {
    pub(crate) stage: Stage<'a>,
    pub(crate) files: Box<[Published]>,
}

/// The area where `exec` can leave files, beside its working directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WritableArea {
    /// Unknown.
    Anywhere,
    /// The stage. `exec` does not know the outbox.
    Stage,
    /// The outbox only: a sandbox makes everything else read-only.
    Outbox,
}

impl Storage {
    /// Returns a private directory for the execution of a call with this number of outputs.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be written.
    pub fn stage(&self, outputs: usize) -> Result<Stage<'_>> {
        let free = lock(&self.slots).pop();
        let slot = if let Some(slot) = free {
            slot
        } else {
            let slot = self.root.private_name();
            let path = self.root.place(&slot)?;
            self.root.disk.make_dir(&path)?;
            self.root.disk.make_dir(&path.join(WORK))?;
            self.root.disk.make_dir(&path.join(OUTBOX))?;
            slot
        };
        let name = format!("{slot}/{}", self.root.next_number());
        Ok(Stage {
            storage: self,
            slot,
            name,
            outputs,
            awaited: false,
            in_doubt: false,
            writable_area: WritableArea::Anywhere,
            published: false,
            log_is_empty: false,
        })
    }
}

impl<'a> Stage<'a> {
    /// Notes that a call is executed here, so that others find what it prints.
    pub fn announce(&self, name: &ResultName) {
        self.storage.run.executing.begin(&self.name, name);
    }

    /// The paths to which the outputs are written, in order.
    pub fn outputs(&self) -> impl Iterator<Item = PathBuf> + '_ {
        (0..self.outputs).map(|number| self.output(number))
    }

    pub(crate) fn output(&self, number: usize) -> PathBuf {
        self.storage.path(&waiting(&self.name, number))
    }

    pub(crate) fn record(&self) -> PathBuf {
        self.storage.path(&format!("{}{RECORD}", self.name))
    }

    /// Makes the directories that are outputs, where `exec` writes them: in the outbox if a sandbox
    /// shows it that.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be written.
    pub fn make_directories(&self, outputs: &[String], sandboxed: bool) -> Result<()> {
        for (number, _) in outputs.iter().enumerate().filter(|(_, name)| is_directory(name)) {
            let place = if sandboxed { self.made(number) } else { self.output(number) };
            self.storage.root.disk.make_dir(&place)?;
        }
        Ok(())
    }

    /// The path of an output in the outbox.
    pub(crate) fn made(&self, number: usize) -> PathBuf {
        self.outbox().join(format!("{number:02}"))
    }

    /// The path of a temporary copy.
    pub(crate) fn copy(&self) -> PathBuf {
        self.storage.path(&format!("{}.copy", self.name))
    }

    /// The directory itself.
    pub fn directory(&self) -> PathBuf {
        self.storage.path(&self.slot)
    }

    /// The working directory, which is empty.
    pub fn work(&self) -> PathBuf {
        self.directory().join(WORK)
    }

    /// An empty directory to which a sandboxed `exec` writes its outputs, named by their numbers:
    /// `00`, `01`.
    pub fn outbox(&self) -> PathBuf {
        self.directory().join(OUTBOX)
    }

    /// The file for the standard output and error of `exec`, which is empty.
    pub fn log(&self) -> PathBuf {
        self.directory().join(LOG)
    }

    /// Notes that other processes may still write to the files, now and later.
    pub const fn doubt(&mut self) {
        self.in_doubt = true;
    }

    /// Sets the area where `exec` could leave files. Only that is cleaned up.
    pub const fn set_writable_area(&mut self, writable_area: WritableArea) {
        self.writable_area = writable_area;
    }

    /// Returns a stage with a copy of the log only, if this one is in doubt.
    pub(crate) fn doubtless(&self) -> Result<Option<Self>> {
        if !self.in_doubt {
            return Ok(None);
        }
        let other = self.storage.stage(self.outputs)?;
        let log = self.storage.root.disk.metadata(&self.log())?;
        if log.is_some_and(|log| log.is_file()) {
            self.storage.root.disk.copy(&self.log(), &other.copy())?;
            self.storage.root.disk.rename(&other.copy(), &other.log())?;
        }
        Ok(Some(other))
    }

    /// Writes the record into the stage.
    pub(crate) fn write_record(&self, record: &CallRecord) -> Result<()> {
        self.storage.records().write(&self.record(), record)?;
        self.storage.root.unsynced.note_new(&self.record());
        Ok(())
    }

    /// Removes everything that this call left in the directory.
    fn clean(&self) -> Result<()> {
        self.empty(WORK)?;
        if self.writable_area != WritableArea::Stage {
            self.empty(OUTBOX)?;
        }
        if self.writable_area == WritableArea::Outbox && self.published && self.log_is_empty {
            // No other file of this call is here.
            return self.storage.root.disk.remove(&self.record());
        }
        self.clear()
    }

    /// Empties a directory.
    fn empty(&self, part: &str) -> Result<()> {
        let path = self.directory().join(part);
        if self.storage.root.disk.is_empty(&path)? {
            return Ok(());
        }
        self.storage.root.disk.remove_tree(&path)?;
        self.storage.root.disk.make_dir(&path)
    }

    /// Removes everything but the directories and files of an empty stage.
    fn clear(&self) -> Result<()> {
        for path in self.storage.root.disk.list(&self.directory())? {
            let stays = path.ends_with(WORK)
                || path.ends_with(OUTBOX)
                || path.ends_with(LOG) && self.log_is_empty;
            if path == self.record() {
                self.storage.root.disk.remove(&path)?;
            } else if !stays {
                self.storage.root.disk.remove_tree(&path)?;
            }
        }
        Ok(())
    }
}

impl Drop for Stage<'_> {
    /// Removes unpublished files, and releases the directory for the next call, unless other
    /// processes may still write there.
    fn drop(&mut self) {
        self.storage.run.executing.end(&self.name);
        if !self.awaited && self.clean().is_ok() && !self.in_doubt {
            lock(&self.storage.slots).push(std::mem::take(&mut self.slot));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{Durability, Unrecorded};

    #[test]
    fn a_directory_that_is_used_again_is_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path();
        let storage = Storage::open(path, Unrecorded::Adopt, Durability::Unsynced).unwrap();
        for writable_area in [WritableArea::Anywhere, WritableArea::Stage, WritableArea::Outbox] {
            let mut stage = storage.stage(1).unwrap();
            let slot = storage.path(&stage.slot);
            stage.set_writable_area(writable_area);
            let mut places = vec![slot.clone(), stage.work()];
            places.extend((writable_area != WritableArea::Stage).then(|| stage.outbox()));
            for place in places {
                fs::write(place.join("file"), "file").unwrap();
                fs::create_dir(place.join("directory")).unwrap();
            }
            for file in [stage.log(), stage.record(), stage.output(0), stage.copy()] {
                fs::write(file, "file").unwrap();
            }
            drop(stage);
            let again = storage.stage(1).unwrap();
            assert_eq!(storage.path(&again.slot), slot, "it is used again");
            let left = fs::read_dir(&slot).unwrap().map(|entry| entry.unwrap().path());
            let mut left: Vec<PathBuf> = left.collect();
            left.sort();
            assert_eq!(left, [again.outbox(), again.work()], "{writable_area:?}");
            for place in left {
                assert!(storage.root.disk.is_empty(&place).unwrap(), "{writable_area:?}");
            }
        }
    }
}
