//! Stages: directories of executions, until their outputs are sealed: hashed and made read-only, with a record; and publishing,
//! which makes them visible.
//!
//! All that `exec` can write is in a directory that no other user may enter: whatever modes it sets, no set-user-id
//! program can be reached. Outputs leave it once they have this run's attributes, and wait where all who share the
//! storage can move them.
//!
//! The link to the record is the commit point: it appears atomically under a free name, so one
//! execution wins, and every other one discards its outputs. The winner's outputs then move from
//! its stage to their places. If the winner is killed meanwhile, the next run that reads the record
//! moves the rest.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::call_lookup::{Call, CallState, Found, Outputs};
use super::{Deviation, Precedence, Storage};
use crate::disk::hash_and_copy::Reading;
use crate::disk::{FileId, ForeignEntry, Metadata, Result, StorageError, hash_and_copy, lock};
use crate::paths::{LOG, LOGS, OUTBOX, OWN, RECORD, ResultName, WORK, waiting};
use crate::records::{CallRecord, Execution, Origin, Published, Stamp};
use ce_files::attributes::Sealing;
use ce_files::manifest::DirectoryError;
use ce_model::digest::LARGE;
use ce_model::exit::Explain;
use ce_model::name::{is_directory, numbered, suffix};

/// The number of attempts to read a result that others change.
const MAX_ATTEMPTS: usize = 10;

/// The size of a log in bytes above which only its end is kept, if it has to be copied: no time limit of the call ends that.
const LARGE_LOG: u64 = 1 << 30;

/// The number of bytes at the end of such a log that are kept.
const LOG_END: u64 = 64 << 20;

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
    pub(crate) log_is_empty: bool,
    /// The numbers of outputs that have paths of their own while they are made, and these.
    places: Vec<(usize, PathBuf)>,
    progress: StageProgress,
}

/// How far the sealing of a stage has come, which may take long: others may ask, and end it.
#[derive(Clone, Debug, Default)]
pub struct StageProgress(Arc<(AtomicBool, Mutex<Option<String>>)>);

impl StageProgress {
    /// Lets every operation that copies, seals or hashes files of the stage fail as interrupted.
    pub fn stop(&self) {
        self.0.0.store(true, Ordering::Relaxed);
    }

    /// Lets later actions run to their end.
    pub fn go_on(&self) {
        self.0.0.store(false, Ordering::Relaxed);
    }

    /// The output that is being read, in words: of several files, the largest one.
    pub fn file(&self) -> Option<String> {
        lock(&self.0.1).clone()
    }

    fn is_asked(&self) -> &AtomicBool {
        &self.0.0
    }

    fn note(&self, number: usize, name: &str) {
        *lock(&self.0.1) = Some(format!("output {number:02} ({name})"));
    }
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

impl<'a> Stage<'a> {
    /// Sets the path of its own that an output has while it is made.
    pub fn place(&mut self, number: usize, path: PathBuf) {
        self.places.push((number, path));
    }

    /// Returns a private directory for the execution of a call with this number of outputs.
    pub fn new(storage: &'a Storage, outputs: usize) -> Result<Self> {
        let free = lock(&storage.slots).pop();
        let slot = if let Some(slot) = free {
            slot
        } else {
            let slot = storage.root.private_name();
            let path = storage.root.place(&slot)?;
            storage.root.disk.make_dir(&path)?;
            let own = path.join(OWN);
            for private in [&own, &own.join(WORK), &own.join(OUTBOX)] {
                storage.root.disk.make_private_dir(private)?;
            }
            slot
        };
        let name = format!("{slot}/{}", storage.root.next_number());
        Ok(Self {
            storage,
            slot,
            name,
            outputs,
            awaited: false,
            in_doubt: false,
            writable_area: WritableArea::Anywhere,
            published: false,
            log_is_empty: false,
            places: Vec::new(),
            progress: StageProgress::default(),
        })
    }

    /// Notes that a call is executed here, so that others find its log.
    pub fn announce(&self, name: &ResultName) {
        self.storage.run.executing.begin(&self.name, name);
    }

    /// The paths where the outputs wait to be moved to their places, in order.
    pub fn outputs(&self) -> impl Iterator<Item = PathBuf> + '_ {
        (0..self.outputs).map(|number| self.output(number))
    }

    pub(crate) fn output(&self, number: usize) -> PathBuf {
        self.storage.path(&waiting(&self.name, number))
    }

    pub(crate) fn record(&self) -> PathBuf {
        self.storage.path(&format!("{}{RECORD}", self.name))
    }

    /// The path where `exec` makes an output with this name: in the outbox if a sandbox shows it that.
    pub fn made(&self, number: usize, name: &str, sandboxed: bool) -> PathBuf {
        if sandboxed {
            self.outbox().join(numbered(number, name))
        } else {
            self.own(&format!(".{}", numbered(number, name)))
        }
    }

    /// The paths where `exec` has made outputs with these names, in order.
    pub fn all_made(&self, names: &[String]) -> Vec<PathBuf> {
        let sandboxed = self.writable_area == WritableArea::Outbox;
        names.iter().enumerate().map(|(number, name)| self.made(number, name, sandboxed)).collect()
    }

    /// How far its sealing has come.
    pub fn progress(&self) -> StageProgress {
        self.progress.clone()
    }

    /// Whether it may take long to copy, seal or hash what `exec` has made of these outputs, or its log.
    pub fn is_large(&self, names: &[String]) -> bool {
        names.iter().any(|name| is_directory(name))
            || self.all_made(names).iter().chain([&self.log()]).any(|path| {
                let metadata = self.storage.root.disk.metadata(path);
                metadata.is_ok_and(|it| it.is_some_and(|it| it.len() >= LARGE))
            })
    }

    /// The path of a file of the call that no other user can reach.
    fn own(&self, ending: &str) -> PathBuf {
        let number = self.name.rsplit('/').next().unwrap_or_default();
        self.directory().join(format!("{number}{ending}"))
    }

    /// Makes the directories that are outputs, where `exec` makes the others.
    pub fn make_directories(&self, outputs: &[String], sandboxed: bool) -> Result<()> {
        for (number, name) in outputs.iter().enumerate().filter(|(_, name)| is_directory(name)) {
            self.storage.root.disk.make_dir(&self.made(number, name, sandboxed))?;
        }
        Ok(())
    }

    /// Makes a link to an input that ends in the suffix of the input's name. Returns its path; `None` if the name has
    /// no suffix.
    pub fn link_input(&self, number: usize, name: &str, input: &Path) -> Result<Option<PathBuf>> {
        if suffix(name).is_empty() {
            return Ok(None);
        }
        let link = self.own(&format!(".in-{}", numbered(number, name)));
        self.storage.root.disk.symbolic_link(input, &link)?;
        Ok(Some(link))
    }

    /// The path of a temporary copy.
    pub(crate) fn copy(&self) -> PathBuf {
        self.own(".copy")
    }

    /// The directory in which `exec` may write, and which no other user may enter.
    pub fn directory(&self) -> PathBuf {
        self.storage.path(&self.slot).join(OWN)
    }

    /// The working directory, which is empty.
    pub fn work(&self) -> PathBuf {
        self.directory().join(WORK)
    }

    /// An empty directory to which a sandboxed `exec` writes its outputs, named by their numbers and suffixes:
    /// `00`, `01.svg`.
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
        let mut other = Stage::new(self.storage, self.outputs)?;
        other.writable_area = self.writable_area;
        other.progress = self.progress();
        let (disk, path) = (&self.storage.root.disk, self.log());
        if let Some(log) = disk.metadata(&path)?.filter(Metadata::is_file) {
            if log.len() > LARGE_LOG {
                let end = disk.read_from(&path, log.len() - LOG_END, LOG_END)?;
                disk.write(&other.copy(), &end)?;
            } else {
                disk.reading_made(&path)?.until(self.stop()).copy(disk, &other.copy())?;
            }
            disk.rename(&other.copy(), &other.log())?;
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
        if self.is_isolated() && self.published && self.log_is_empty {
            // No other file of this call is here.
            let disk = &self.storage.root.disk;
            disk.remove(&self.log())?;
            return disk.remove(&self.record());
        }
        self.clear()
    }

    /// Empties a directory. Replaces it by a new one after an isolated execution, so that the next one sees no attributes, flags or sizes
    /// of it.
    fn empty(&self, part: &str) -> Result<()> {
        let (disk, path) = (&self.storage.root.disk, self.directory().join(part));
        if !self.is_isolated() && disk.is_empty(&path)? {
            return Ok(());
        }
        disk.remove_tree(&path)?;
        disk.make_private_dir(&path)
    }

    fn is_isolated(&self) -> bool {
        self.writable_area == WritableArea::Outbox
    }

    /// Removes everything but the directories and files of an empty stage.
    fn clear(&self) -> Result<()> {
        let disk = &self.storage.root.disk;
        for directory in [self.storage.path(&self.slot), self.directory()] {
            for path in disk.list(&directory)? {
                let stays = [OWN, WORK, OUTBOX].iter().any(|name| path.ends_with(name))
                    || path.ends_with(LOG) && self.log_is_empty && !self.is_isolated();
                if path == self.record() {
                    disk.remove(&path)?;
                } else if !stays {
                    disk.remove_tree(&path)?;
                }
            }
        }
        Ok(())
    }

    /// Resets the attributes that an execution has set on its log, before others can reach it.
    pub(crate) fn seal_log(&self) -> Result<()> {
        if self.writable_area == WritableArea::Anywhere {
            // Nothing was executed. It may be a link to the log of another result.
            return Ok(());
        }
        let disk = &self.storage.root.disk;
        let sealing = &mut disk.sealing(&self.directory(), self.stop())?;
        disk.seal_log(&self.log(), &self.copy(), sealing)
    }

    fn stop(&self) -> &AtomicBool {
        self.progress.is_asked()
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

/// Returns the user who owns the stages in the directory of a run, if that is another user: then only that user and
/// root may enter them.
pub(crate) fn other_owner(storage: &Storage, directory: &Path) -> Option<u32> {
    let disk = &storage.root.disk;
    let stages = disk.list(directory).unwrap_or_default();
    stages.iter().find_map(|stage| disk.metadata(&stage.join(OWN)).ok()??.another_owner())
}

/// The reason why outputs were not published.
#[derive(Debug, thiserror::Error, Explain)]
#[exit(Failed)]
pub enum PublishError {
    /// `exec` did not create an output.
    #[error("it made no output {number:02} ({output})")]
    #[hint(None)]
    NoOutput {
        /// The number of the output.
        number: usize,
        /// Its symbolic name.
        output: String,
    },
    /// An output is something other than a file.
    #[error("its output {number:02} ({output}) is not a file")]
    #[hint("let exec write a plain file there")]
    NotAFile {
        /// The number of the output.
        number: usize,
        /// Its symbolic name.
        output: String,
    },
    /// An output is something other than a directory.
    #[error("its output {number:02} ({output}) is not a directory")]
    #[hint(
        "let exec write into the directory that is there, or remove the slash from the name in outputs"
    )]
    NotADirectory {
        /// The number of the output.
        number: usize,
        /// Its symbolic name.
        output: String,
    },
    /// A directory cannot be a value.
    #[error("its output {number:02} ({output}) cannot be a value: {why}")]
    #[hint(why.hint())]
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
    #[hint(
        "compare both; ce run --accept replaces the recorded result and all that was made from it"
    )]
    Deviates(Box<Deviation>),
    /// The storage could not be written.
    #[error(transparent)]
    #[exit(_0.exit())]
    #[hint(_0.hint())]
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
    /// Returns the stage with the reason, if an output is missing or of the wrong kind, or if the storage cannot be
    /// written.
    pub fn seal(
        self,
        call: Call<'_>,
        execution: Execution,
    ) -> Result<Sealed<'a>, Box<(Self, PublishError)>> {
        let is_accessible = match self.writable_area {
            WritableArea::Outbox => self.storage.root.disk.make_accessible(&self.outbox()),
            WritableArea::Anywhere | WritableArea::Stage => Ok(()),
        };
        let is_accessible = is_accessible.and_then(|()| self.make_links_relative(call.outputs));
        let copied = is_accessible.map_err(PublishError::from);
        let stage = match copied.and_then(|()| self.copied(call.outputs)) {
            Ok(copied) => copied.unwrap_or(self),
            Err(error) => return Err(Box::new((self, error))),
        };
        match stage.take(call, execution) {
            Ok(files) => Ok(Sealed { stage, files }),
            Err(error) => Err(Box::new((stage, error))),
        }
    }

    /// Makes links relative in the outputs that had paths of their own.
    fn make_links_relative(&self, names: &[String]) -> Result<()> {
        let made = self.all_made(names);
        self.places.iter().try_for_each(|(number, place)| {
            self.storage.root.disk.make_links_relative(&made[*number], place)
        })
    }

    /// Copies the outputs and the log to a stage unknown to `exec`, if this one is in doubt.
    fn copied(&self, names: &[String]) -> Result<Option<Self>, PublishError> {
        let Some(copy) = self.doubtless()? else { return Ok(None) };
        let places = self.all_made(names).into_iter().zip(copy.all_made(names));
        for ((number, name), (from, to)) in names.iter().enumerate().zip(places) {
            let made = StagedOutput { number, name, path: &from };
            if is_directory(name) {
                made.copy_directory(self, &to)?;
            } else {
                made.open(self)?.copy(&self.storage.root.disk, &to)?;
            }
        }
        Ok(Some(copy))
    }

    fn take(&self, call: Call<'_>, execution: Execution) -> Result<Box<[Published]>, PublishError> {
        let disk = &self.storage.root.disk;
        let sealing = &mut disk.sealing(&self.directory(), self.stop())?;
        let (made, paths) = (self.all_made(call.outputs), Vec::from_iter(self.outputs()));
        let mut outputs = vec![None; paths.len()];
        let (mut files, mut largest) = (Vec::new(), 0);
        for (number, (name, path)) in call.outputs.iter().zip(&made).enumerate() {
            let output = StagedOutput { number, name, path };
            if is_directory(name) {
                self.progress.note(number, name);
                outputs[number] = Some(output.seal_directory(self, sealing)?);
            } else {
                let file = output.open(self)?;
                if file.metadata().len() >= largest {
                    largest = file.metadata().len();
                    self.progress.note(number, name);
                }
                let file = disk.seal_made(file, &self.copy(), sealing)?;
                files.push(file.moved(&paths[number]));
            }
        }
        for (made, path) in made.iter().zip(&paths) {
            if self.writable_area != WritableArea::Outbox {
                // Nothing should be there, and `exec` could reach it.
                disk.remove_tree(path)?;
            }
            if !disk.rename(made, path)? {
                return Err(StorageError::Moved(made.clone()).into());
            }
            self.storage.root.unsynced.note(path);
        }
        let stamps: Vec<_> = files.iter().map(|it| it.metadata().modified_ns()).collect();
        let plain: Vec<&Path> = files.iter().map(Reading::path).collect();
        let mut files = Some(files);
        let files = disk.read_whole(|| match files.take() {
            Some(files) => hash_and_copy::digests(files),
            None => hash_and_copy::digests(
                plain
                    .iter()
                    .map(|it| Ok(disk.reading(it)?.until(self.stop())))
                    .collect::<Result<_>>()?,
            ),
        })?;
        let mut files = files.iter().zip(stamps);
        let outputs = outputs.into_iter().map(|output| {
            output.or_else(|| {
                let (&digest, stamp) = files.next()?;
                Some(Published { digest, stamp: Stamp::Modified(stamp) })
            })
        });
        let outputs: Vec<Published> = outputs.flatten().collect();
        let origin = Origin::Executed { stage: self.name.clone(), execution };
        self.write_record(&call.record(outputs.clone(), origin))?;
        Ok(outputs.into())
    }
}

impl<'p> StagedOutput<'p> {
    /// Opens a file. Fails unless it is a plain one.
    fn open(self, stage: &'p Stage<'_>) -> Result<Reading<'p>, PublishError> {
        let Self { number, name, path } = self;
        let root = &stage.storage.root;
        let opened = root.disk.reading_made(path);
        opened.map(|it| it.until(stage.stop()).noting(&root.texts)).map_err(|error| match &error {
            StorageError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                PublishError::NoOutput { number, output: name.to_owned() }
            }
            StorageError::Io { source, .. } if ForeignEntry::from_error(source).is_some() => {
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

impl StagedOutput<'_> {
    /// Makes a directory read-only, except its top, and hashes it.
    fn seal_directory(
        self,
        stage: &Stage<'_>,
        sealing: &mut Sealing<'_>,
    ) -> Result<Published, PublishError> {
        self.check_directory(stage.storage)?;
        let sealed = stage.storage.values().seal(self.path, Some(sealing), stage.stop());
        sealed.map_err(|error| self.refused(error))
    }

    /// Copies a directory.
    fn copy_directory(self, stage: &Stage<'_>, to: &Path) -> Result<(), PublishError> {
        let (root, stop) = (&stage.storage.root, stage.stop());
        self.check_directory(stage.storage)?;
        let scan = root.disk.surely(|| root.disk.scan(self.path, stop));
        let scan = scan.map_err(|error| self.refused(error))?;
        let scan = scan.ok_or_else(|| StorageError::Moved(self.path.to_owned()))?;
        let copied = root.disk.copy_directory(&scan, to, stop, &AtomicU64::new(0));
        copied.map(drop).map_err(|error| self.refused(error))
    }
}

impl Sealed<'_> {
    /// Makes all outputs visible, or none. Returns the visible outputs.
    ///
    /// If another execution was faster, its outputs are returned, unless the new ones have precedence: then existing
    /// outputs go to quarantine even if they are intact.
    ///
    /// # Errors
    ///
    /// Fails if the outputs of the call are away and the new ones differ, or if the storage cannot be written.
    pub fn publish(
        mut self,
        call: Call<'_>,
        name: &ResultName,
        precedence: Precedence,
    ) -> Result<Outputs, PublishError> {
        let published = self.link(call, name, precedence)?;
        self.stage.storage.reserved_names.release(&published.name);
        Ok(published)
    }

    fn link(
        &mut self,
        call: Call<'_>,
        name: &ResultName,
        precedence: Precedence,
    ) -> Result<Outputs, PublishError> {
        let storage = self.stage.storage;
        let mut name = name.clone();
        for _ in 0..MAX_ATTEMPTS {
            // If a directory cannot be created, nothing has been decided yet.
            storage.calls().prepare(&name, self.stage.outputs)?;
            let place = storage.root.place(&name.record())?;
            if storage.root.disk.link(&self.stage.record(), &place)? {
                storage.root.unsynced.note_entry(&place);
                storage.equivalents().note_version(call.version, &name);
                return Ok(self.reveal(name)?);
            }
            match storage.calls().state(&name, call)? {
                CallState::Hit(_) if precedence == Precedence::New => {
                    let record = storage.root.disk.id(&place)?;
                    if let Some(record) = record
                        && self.replace(&name, record)?
                    {
                        return Ok(self.reveal(name)?);
                    }
                }
                CallState::Away(record, theirs) => {
                    if precedence == Precedence::Recorded
                        && let Some(deviation) = self.deviation(&theirs)?
                    {
                        return Err(PublishError::Deviates(Box::new(deviation)));
                    }
                    if self.replace(&name, record)? {
                        let published = self.reveal(name)?;
                        storage.evictions().unmark_away(&published.name)?;
                        return Ok(published);
                    }
                }
                CallState::Hit(theirs) | CallState::Archived(theirs) => return Ok(theirs),
                CallState::Incomplete(Some(record), _) => {
                    if self.replace(&name, record)? {
                        return Ok(self.reveal(name)?);
                    }
                }
                CallState::Incomplete(None, _) | CallState::Vacant | CallState::Unsettled => {}
                CallState::Collision => match storage.calls().find(call)? {
                    Found::Hit(theirs) | Found::Archived(theirs) => return Ok(theirs),
                    Found::Away(Outputs { name: other, .. })
                    | Found::Absent { name: other, .. }
                    | Found::Unsettled(other) => name = other,
                },
            }
        }
        Err(StorageError::Unsteady(storage.path(&name.record())).into())
    }

    /// Replaces a record whose outputs are lost or damaged. Returns false if it has changed since
    /// it was read.
    ///
    /// There is a record at any moment: outputs without one would be adopted.
    fn replace(&self, name: &ResultName, record: FileId) -> Result<bool> {
        let root = &self.stage.storage.root;
        let place = root.path(&name.record());
        let copy = self.stage.copy();
        let kept = root.quarantine_place(&name.quarantine(), "record.json")?;
        if root.disk.id(&place)? != Some(record) {
            return Ok(false);
        }
        root.disk.quarantine(&place, &kept)?;
        root.disk.link(&self.stage.record(), &copy)?;
        root.disk.rename(&copy, &place)?;
        root.unsynced.note_entry(&place);
        Ok(true)
    }

    /// Moves the outputs and the log to their places, after the record.
    fn reveal(&mut self, name: ResultName) -> Result<Outputs> {
        self.stage.awaited = true;
        for number in 0..self.stage.outputs {
            let waiting = waiting(&self.stage.name, number);
            self.stage.storage.calls().reveal(&waiting, &name, number, &self.files[number])?;
        }
        self.stage.awaited = false;
        self.stage.keep_log(&name, LOGS)?;
        self.stage.published = true;
        Ok(Outputs { name, files: self.files.clone() })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use jiff::Timestamp;

    use super::super::open::recover;
    use super::*;
    use crate::paths::{ComputationVersion, RunName};
    use crate::records::{Arguments, NOT_ISOLATED};
    use crate::{Durability, Unrecorded};
    use ce_model::digest::Digest;

    /// Their SHA-1s are the same in the digits that names show.
    const COLLIDING: [&str; 2] = ["input 11405692\n", "input 27966124\n"];

    static NAMES: [String; 1] = [String::new()];

    fn call(inputs: &[Digest]) -> Call<'_> {
        Call { version: ComputationVersion::example(), inputs, outputs: &NAMES }
    }

    fn open(path: &Path) -> Storage {
        Storage::open(path, Unrecorded::Adopt, Durability::Unsynced).unwrap()
    }

    fn absent(found: Found) -> ResultName {
        let Found::Absent { name, .. } = found else { panic!("{found:?}") };
        name
    }

    /// Seals an output as if the call had been executed.
    fn seal<'a>(storage: &'a Storage, call: Call<'_>, output: &str) -> Sealed<'a> {
        let stage = Stage::new(storage, 1).unwrap();
        fs::write(stage.made(0, "", false), output).unwrap();
        let execution = Execution {
            argv: Arguments::default(),
            isolation: NOT_ISOLATED.into(),
            access: Box::default(),
            resources: Box::default(),
            attempts: Box::default(),
            host_kind: None,
            host_use: None,
            machine: None,
            start: Timestamp::now(),
            end: Timestamp::now(),
            user_seconds: 0.0,
            system_seconds: 0.0,
            peak_bytes: 0,
            exit_status: 0,
            tasks: Box::default(),
            taken_over: None,
            trusted_tree: false,
        };
        stage.seal(call, execution).map_err(|failed| failed.1).unwrap()
    }

    /// Publishes as if the call had been executed under this name.
    fn publish(storage: &Storage, call: Call<'_>, name: &ResultName, output: &str) {
        seal(storage, call, output).publish(call, name, Precedence::Recorded).unwrap();
    }

    #[test]
    fn a_name_is_reserved_until_a_record_keeps_others_from_it() {
        let dir = tempfile::tempdir().unwrap();
        let storage = open(dir.path());
        let inputs = COLLIDING.map(|text| [Digest::hash_bytes(text.as_bytes())]);
        let [one, other] = [0, 1].map(|at| call(&inputs[at]));
        let reserved = || storage.reserved_names.count();

        let names = [one, other].map(|call| absent(storage.calls().find(call).unwrap()));
        assert!(names[0] != names[1] && reserved() == 2, "{names:?}");
        assert_eq!(absent(storage.calls().find(one).unwrap()), names[0]);

        publish(&storage, one, &names[0], COLLIDING[0]);
        assert_eq!(reserved(), 1);
        assert_eq!(absent(storage.calls().find(other).unwrap()), names[1]);
        publish(&storage, other, &names[1], COLLIDING[1]);
        assert_eq!(reserved(), 0);
        for (call, name) in [one, other].into_iter().zip(names) {
            let Found::Hit(hit) = storage.calls().find(call).unwrap() else { panic!("{name:?}") };
            assert_eq!((hit.name, hit.files[0].digest), (name, call.inputs[0]));
        }
    }

    #[test]
    fn a_name_that_another_run_has_taken_is_another_calls() {
        let dir = tempfile::tempdir().unwrap();
        let [here, elsewhere] = [(); 2].map(|()| open(dir.path()));
        let inputs = COLLIDING.map(|text| [Digest::hash_bytes(text.as_bytes())]);
        let [one, other] = [0, 1].map(|at| call(&inputs[at]));

        let name = absent(here.calls().find(one).unwrap());
        assert_eq!(absent(here.calls().find_again(one, &name).unwrap()), name);
        publish(&elsewhere, other, &absent(elsewhere.calls().find(other).unwrap()), COLLIDING[1]);
        let longer = absent(here.calls().find_again(one, &name).unwrap());
        assert_ne!(longer, name);
        assert_eq!(absent(here.calls().find_again(one, &longer).unwrap()), longer);
        publish(&elsewhere, one, &absent(elsewhere.calls().find(one).unwrap()), COLLIDING[0]);
        assert!(matches!(here.calls().find_again(one, &longer).unwrap(), Found::Hit(_)));
        assert!(here.reserved_names.count() < 2, "what was found is reserved no more");
    }

    #[test]
    fn an_output_that_is_not_there_is_not_reported() {
        let dir = tempfile::tempdir().unwrap();
        let storage = open(dir.path());
        let inputs = [Digest::hash_bytes(b"input\n")];
        let call = call(&inputs);
        let name = absent(storage.calls().find(call).unwrap());
        let sealed = seal(&storage, call, "output");
        // Another run has taken this run for dead, and removed its unpublished outputs.
        fs::remove_file(sealed.stage.output(0)).unwrap();
        let published = sealed.publish(call, &name, Precedence::Recorded);
        assert!(
            matches!(published, Err(PublishError::Storage(StorageError::Moved(_)))),
            "{published:?}"
        );
        assert_eq!(absent(storage.calls().find(call).unwrap()), name);
        publish(&storage, call, &name, "output");
        assert!(matches!(storage.calls().find(call).unwrap(), Found::Hit(_)));
    }

    #[test]
    fn a_staged_output_that_cannot_be_moved_stays_for_the_next_run() {
        let dir = tempfile::tempdir().unwrap();
        let storage = open(dir.path());
        let inputs = [Digest::hash_bytes(b"input\n")];
        let call = call(&inputs);
        let name = absent(storage.calls().find(call).unwrap());
        let sealed = seal(&storage, call, "output");
        // A run that has ended had just put the record into its place.
        let own = storage.run.name();
        let dead = RunName { process: i32::MAX.unsigned_abs(), ..own.clone() };
        let text = fs::read_to_string(sealed.stage.record()).unwrap();
        let text = text.replace(&own.to_string(), &dead.to_string());
        let [left, output] = [dead.directory(), name.output(0)].map(|name| storage.path(&name));
        let stage = sealed.stage.name.replace(&own.to_string(), &dead.to_string());
        let stage = storage.path(&stage);
        fs::create_dir_all(stage.parent().unwrap()).unwrap();
        fs::rename(sealed.stage.output(0), stage.with_extension("00")).unwrap();
        fs::write(stage.with_extension("record"), &text).unwrap();
        fs::write(storage.root.place(&name.record()).unwrap(), &text).unwrap();
        drop(sealed);
        fs::write(output.parent().unwrap(), "in the way").unwrap();
        recover(&storage);
        assert!(left.exists() && !output.exists());
        fs::remove_file(output.parent().unwrap()).unwrap();
        recover(&storage);
        assert!(!left.exists());
        assert_eq!(fs::read_to_string(output).unwrap(), "output");
    }

    #[test]
    fn a_directory_that_is_used_again_is_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path();
        let storage = Storage::open(path, Unrecorded::Adopt, Durability::Unsynced).unwrap();
        for writable_area in [WritableArea::Anywhere, WritableArea::Stage, WritableArea::Outbox] {
            let mut stage = Stage::new(&storage, 1).unwrap();
            let slot = storage.path(&stage.slot);
            stage.set_writable_area(writable_area);
            let mut places = vec![slot.clone(), stage.directory(), stage.work()];
            places.extend((writable_area != WritableArea::Stage).then(|| stage.outbox()));
            for place in places {
                fs::write(place.join("file"), "file").unwrap();
                fs::create_dir(place.join("directory")).unwrap();
            }
            for file in [stage.log(), stage.record(), stage.output(0), stage.copy()] {
                fs::write(file, "file").unwrap();
            }
            drop(stage);
            let again = Stage::new(&storage, 1).unwrap();
            assert_eq!(storage.path(&again.slot), slot, "it is used again");
            let [slot, mut left] = [&slot, &again.directory()].map(|directory| {
                let names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
                Vec::from_iter(names)
            });
            left.sort();
            assert_eq!(slot, [again.directory()], "{writable_area:?}");
            assert_eq!(left, [again.outbox(), again.work()], "{writable_area:?}");
            for place in left {
                assert!(storage.root.disk.is_empty(&place).unwrap(), "{writable_area:?}");
            }
        }
    }
}
