//! Stages: private directories of executions, until their outputs are sealed: hashed and made read-only, with a record.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64};

use super::call::Call;
use super::{Deviation, Storage};
use crate::disk::reading::Reading;
use crate::disk::{ForeignEntry, Result, StorageError, lock, reading};
use crate::paths::{LOG, OUTBOX, RECORD, ResultName, WORK, waiting};
use crate::records::{CallRecord, Execution, Origin, Published, Stamp};
use ce_files::manifest::DirectoryError;
use ce_model::name::is_directory;

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

/// The reason why outputs were not published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// `exec` did not create an output.
    #[error("it made no output {number:02} ({output})")]
    NoOutput {
        /// The number of the output.
        number: usize,
        /// Its symbolic name.
        output: String,
    },
    /// An output is something other than a file.
    #[error("its output {number:02} ({output}) is not a file")]
    NotAFile {
        /// The number of the output.
        number: usize,
        /// Its symbolic name.
        output: String,
    },
    /// An output is something other than a directory.
    #[error("its output {number:02} ({output}) is not a directory")]
    NotADirectory {
        /// The number of the output.
        number: usize,
        /// Its symbolic name.
        output: String,
    },
    /// A directory cannot be a value.
    #[error("its output {number:02} ({output}) cannot be a value: {why}")]
    Directory {
        /// The number of the output.
        number: usize,
        /// Its symbolic name.
        output: String,
        /// The reason, which is part of the text: the record of the failure has nothing else.
        why: Box<DirectoryError>,
    },
    /// Its outputs are away, and it has made others now.
    #[error("{0}")]
    Deviates(Box<Deviation>),
    /// The storage could not be written.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// An output of an execution, as it is found.
#[derive(Clone, Copy)]
struct StagedOutput<'a> {
    number: usize,
    name: &'a str,
    path: &'a Path,
}

impl<'a> Stage<'a> {
    /// Hashes the outputs, makes them read-only, and writes the record.
    ///
    /// # Errors
    ///
    /// Returns the stage with the reason, if an output is missing or is not what it should be, or if the
    /// storage cannot be written.
    pub fn seal(
        self,
        call: Call<'_>,
        execution: Execution,
    ) -> Result<Sealed<'a>, (Self, PublishError)> {
        let collected = self.collect().map_err(PublishError::from);
        let stage = match collected.and_then(|()| self.copied(call.outputs)) {
            Ok(copied) => copied.unwrap_or(self),
            Err(error) => return Err((self, error)),
        };
        match stage.take(call, execution) {
            Ok(files) => Ok(Sealed { stage, files }),
            Err(error) => Err((stage, error)),
        }
    }

    /// Moves the outputs here from the outbox, if `exec` wrote them there.
    fn collect(&self) -> Result<()> {
        if self.writable_area == WritableArea::Outbox {
            for number in 0..self.outputs {
                // A missing output is reported later.
                let disk = &self.storage.root.disk;
                let (made, output) = (self.made(number), self.output(number));
                // What another host has made may not be visible yet.
                if !disk.rename(&made, &output)? && disk.surely(|| disk.metadata(&made))?.is_some()
                {
                    disk.rename(&made, &output)?;
                }
            }
        }
        Ok(())
    }

    /// Copies the outputs and the log to a stage unknown to `exec`, if this one is in doubt.
    fn copied(&self, names: &[String]) -> Result<Option<Self>, PublishError> {
        let Some(copy) = self.doubtless()? else { return Ok(None) };
        for (number, name) in names.iter().enumerate() {
            let (from, to) = (self.output(number), copy.output(number));
            let made = StagedOutput { number, name, path: &from };
            if is_directory(name) {
                self.storage.copy_made(made, &to)?;
            } else {
                made.open(self)?.copy(&self.storage.root.disk, &to)?;
            }
        }
        Ok(Some(copy))
    }

    fn take(&self, call: Call<'_>, execution: Execution) -> Result<Box<[Published]>, PublishError> {
        let paths: Vec<PathBuf> = self.outputs().collect();
        let made = call.outputs.iter().zip(&paths).enumerate();
        let made = made.map(|(number, (name, path))| StagedOutput { number, name, path });
        let mut outputs = vec![None; paths.len()];
        let mut files = Vec::new();
        for made in made {
            if is_directory(made.name) {
                outputs[made.number] = Some(self.storage.seal_made(made)?);
            } else {
                files.push(self.seal_file(made)?);
            }
            self.storage.root.unsynced.note(made.path);
        }
        let (files, stamps): (Vec<_>, Vec<_>) = files.into_iter().unzip();
        let disk = &self.storage.root.disk;
        let plain: Vec<&Path> = files.iter().map(Reading::path).collect();
        let mut files = Some(files);
        let files = disk.read_whole(|| match files.take() {
            Some(files) => reading::digests(files),
            None => {
                reading::digests(plain.iter().map(|it| disk.reading(it)).collect::<Result<_>>()?)
            }
        })?;
        let mut files = files.iter().zip(stamps);
        let outputs = outputs.into_iter().map(|output| {
            output.or_else(|| files.next().map(|(&digest, stamp)| Published { digest, stamp }))
        });
        let outputs: Vec<Published> = outputs.flatten().collect();
        let origin = Origin::Executed { stage: self.name.clone(), execution };
        self.write_record(&call.record(outputs.clone(), origin))?;
        Ok(outputs.into())
    }

    /// Makes a file read-only.
    fn seal_file<'p>(&self, made: StagedOutput<'p>) -> Result<(Reading<'p>, Stamp), PublishError> {
        let disk = &self.storage.root.disk;
        let mut file = made.open(self)?;
        if file.metadata().links() > 1 {
            // The file has another name, through which it could be changed.
            let copy = self.copy();
            file.copy(disk, &copy)?;
            disk.rename(&copy, made.path)?;
            file = made.open(self)?;
        }
        let modified_ns = disk.seal_open(&file)?;
        Ok((file, Stamp::Modified(modified_ns)))
    }
}

impl<'p> StagedOutput<'p> {
    /// Opens a file. Fails unless it is a plain one.
    fn open(self, stage: &Stage<'_>) -> Result<Reading<'p>, PublishError> {
        let Self { number, name, path } = self;
        stage.storage.root.disk.reading_made(path).map_err(|error| match &error {
            StorageError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                PublishError::NoOutput { number, output: name.to_owned() }
            }
            StorageError::Io { source, .. } if ForeignEntry::of(source).is_some() => {
                PublishError::NotAFile { number, output: name.to_owned() }
            }
            _ => error.into(),
        })
    }

    /// The reason why a directory is not published.
    fn refused(self, error: StorageError) -> PublishError {
        let Self { number, name, .. } = self;
        match error {
            StorageError::Directory { source: why, .. } => {
                PublishError::Directory { number, output: name.to_owned(), why }
            }
            error => error.into(),
        }
    }

    /// Fails unless there is a directory.
    fn check_directory(self, storage: &Storage) -> Result<(), PublishError> {
        let Self { number, name, path } = self;
        match storage.root.disk.surely(|| storage.root.disk.metadata(path))? {
            Some(metadata) if metadata.is_dir() => Ok(()),
            Some(_) => Err(PublishError::NotADirectory { number, output: name.to_owned() }),
            None => Err(PublishError::NoOutput { number, output: name.to_owned() }),
        }
    }
}

impl Storage {
    /// Makes a directory read-only, but for its top, and hashes it. A finished output is kept even if somebody
    /// asks to stop.
    fn seal_made(&self, made: StagedOutput<'_>) -> Result<Published, PublishError> {
        made.check_directory(self)?;
        self.seal_at(made.path).map_err(|error| made.refused(error))
    }

    /// Makes a directory at a private path read-only, but for its top, hashes it, and keeps its manifest.
    pub(super) fn seal_at(&self, path: &Path) -> Result<Published> {
        let (root, never) = (&self.root, AtomicBool::new(false));
        root.disk.seal_directory(path)?;
        let scan = root.disk.surely(|| root.disk.scan(path, &never))?;
        let scan = scan.ok_or_else(|| StorageError::Moved(path.to_owned()))?;
        let manifest = root.disk.read_whole(|| {
            let read = scan.read(&never, &AtomicU64::new(0));
            read.map_err(|error| StorageError::of_directory(path, error))
        })?;
        let digest = manifest.digest();
        root.keep_manifest(&digest, &manifest)?;
        root.sync_all()?;
        Ok(Published { digest, stamp: Stamp::Scanned(scan.stamp()) })
    }

    /// Copies a directory.
    fn copy_made(&self, made: StagedOutput<'_>, to: &Path) -> Result<(), PublishError> {
        let (root, never) = (&self.root, AtomicBool::new(false));
        made.check_directory(self)?;
        let scan = root.disk.surely(|| root.disk.scan(made.path, &never));
        let scan = scan.map_err(|error| made.refused(error))?;
        let scan = scan.ok_or_else(|| StorageError::Moved(made.path.to_owned()))?;
        let copied = root.disk.copy_directory(&scan, to, &never, &AtomicU64::new(0));
        copied.map(drop).map_err(|error| made.refused(error))
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
