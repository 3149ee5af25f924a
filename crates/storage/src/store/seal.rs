//! Sealing: the outputs of an execution are hashed and made read-only, and its record is written.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64};

use super::call::Call;
use super::{Deviation, Sealed, Stage, WritableArea};
use crate::disk::reading::{self, Reading};
use crate::disk::{NotOwn, Result, StorageError};
use crate::records::{Execution, Origin, Published, Stamp};
use ce_files::manifest::DirectoryError;
use ce_model::task::name::is_directory;

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
struct Made<'a> {
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
            let made = Made { number, name, path: &from };
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
        let made = made.map(|(number, (name, path))| Made { number, name, path });
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
    fn seal_file<'p>(&self, made: Made<'p>) -> Result<(Reading<'p>, Stamp), PublishError> {
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

impl<'p> Made<'p> {
    /// Opens a file. Fails unless it is a plain one.
    fn open(self, stage: &Stage<'_>) -> Result<Reading<'p>, PublishError> {
        let Self { number, name, path } = self;
        stage.storage.root.disk.reading_made(path).map_err(|error| match &error {
            StorageError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                PublishError::NoOutput { number, output: name.to_owned() }
            }
            StorageError::Io { source, .. } if NotOwn::of(source).is_some() => {
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
    fn check_directory(self, storage: &super::Storage) -> Result<(), PublishError> {
        let Self { number, name, path } = self;
        match storage.root.disk.surely(|| storage.root.disk.metadata(path))? {
            Some(metadata) if metadata.is_dir() => Ok(()),
            Some(_) => Err(PublishError::NotADirectory { number, output: name.to_owned() }),
            None => Err(PublishError::NoOutput { number, output: name.to_owned() }),
        }
    }
}

impl super::Storage {
    /// Makes a directory read-only, but for its top, and hashes it. A finished output is kept even if somebody
    /// asks to stop.
    fn seal_made(&self, made: Made<'_>) -> Result<Published, PublishError> {
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
    fn copy_made(&self, made: Made<'_>, to: &Path) -> Result<(), PublishError> {
        let (root, never) = (&self.root, AtomicBool::new(false));
        made.check_directory(self)?;
        let scan = root.disk.surely(|| root.disk.scan(made.path, &never));
        let scan = scan.map_err(|error| made.refused(error))?;
        let scan = scan.ok_or_else(|| StorageError::Moved(made.path.to_owned()))?;
        let copied = root.disk.copy_directory(&scan, to, &never, &AtomicU64::new(0));
        copied.map(drop).map_err(|error| made.refused(error))
    }
}
