//! Whether the storage keeps what its records promise, and setting aside what does not.
//!
//! A check reads every byte: time stamps are not believed. It changes nothing. What is repaired
//! is moved to `aside/`, and computed or copied again by the next run that needs it.

use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;

use super::find::Read;
use super::record::{CallRecord, InputRecord, Origin};
use super::scheme::{DIGITS, task_input};
use super::stage::{is_stage, waiting};
use super::survey::{Entry, Record};
use super::version::OfVersion;
use super::{Result, Storage, StorageError};
use crate::digest::Digest;
use crate::slice::MAX_ARITY;

/// A kind of damage, or of harmless oddity, in the storage.
#[derive(Debug, thiserror::Error)]
pub enum Defect {
    /// A recorded file is not there.
    #[error("it is missing")]
    Missing,
    /// Something other than a file stands where a file belongs.
    #[error("it is not a file")]
    NotAFile,
    /// A file has grown or been cut.
    #[error("it has {found} bytes, and {recorded} are recorded")]
    Size {
        /// How many bytes there are.
        found: u64,
        /// How many there were.
        recorded: u64,
    },
    /// A file has the right size and other contents.
    #[error("its contents are not the recorded ones")]
    Contents,
    /// A record is no record.
    #[error("the record cannot be understood")]
    Spoiled,
    /// A record tells of something else than its name does.
    #[error("the record belongs to another name")]
    Misplaced,
    /// Outputs were not executed but found, and that is not believed.
    #[error("it was adopted, and not executed")]
    Adopted,
    /// A symbolic link stands in the place of a directory: nothing goes through it.
    #[error("it is a symbolic link in the place of a directory")]
    Link,
    /// A file or record cannot be looked at.
    #[error("{}", with_cause(.0))]
    Unreadable(#[source] StorageError),
    /// Nobody recorded a file: harmless.
    #[error("nobody recorded it (harmless)")]
    Orphan,
    /// The private directory of a run that is gone: harmless.
    #[error("left behind by a run that is gone (harmless)")]
    Leftover,
    /// The lease of a run that is gone: harmless.
    #[error("a lease of a run that is gone (harmless)")]
    Lease,
}

impl Defect {
    /// Whether the storage does not keep what it promises.
    pub const fn is_harm(&self) -> bool {
        !matches!(self, Self::Orphan | Self::Leftover | Self::Lease)
    }

    /// Whether setting the result aside helps. A file that cannot be read may be right all the same.
    pub const fn is_repairable(&self) -> bool {
        self.is_harm() && !matches!(self, Self::Unreadable(_) | Self::Link)
    }
}

fn with_cause(error: &StorageError) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// Somebody asked to stop before it was known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped;

/// Something in the storage, and what is wrong with it.
#[derive(Debug)]
pub struct Finding {
    /// The name, relative to the storage.
    pub name: String,
    /// The damage.
    pub defect: Defect,
}

/// A file that a record promises.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedFile {
    /// Its name, relative to the storage.
    pub name: String,
    /// Its digest.
    pub digest: Digest,
    /// Where it may still wait to be moved to its place.
    waiting: Option<String>,
}

impl Entry {
    /// The files that its record promises.
    pub fn expected_files(&self, record: &Record) -> Vec<ExpectedFile> {
        let stage = match record {
            Record::Call(call) => match &call.origin {
                Origin::Executed { stage, .. } => Some(stage),
                Origin::Adopted => None,
            },
            Record::Job(_) | Record::TaskInput(_) => None,
        };
        let digests: Vec<Digest> = match record {
            Record::Call(call) => call.outputs.iter().map(|output| output.digest).collect(),
            Record::Job(job) => job.outputs.iter().map(|output| output.digest).collect(),
            Record::TaskInput(input) => vec![input.file.digest],
        };
        let promise = |(number, digest)| ExpectedFile {
            name: self.file(number),
            digest,
            waiting: stage.filter(|it| is_stage(it)).map(|stage| waiting(stage, number)),
        };
        digests.into_iter().enumerate().map(promise).collect()
    }

    /// Whether the record tells of what the name says.
    pub fn fits(&self, record: &Record) -> bool {
        match (self, record) {
            (Self::Call(_), Record::Call(call)) => self.fits_call(call),
            (Self::Job(name), Record::Job(job)) => {
                let inputs: Vec<Digest> = job.inputs.iter().map(|input| input.digest).collect();
                job.version().directories().iter().any(|it| name.is_of(it, &inputs))
            }
            (Self::TaskInput(_), Record::TaskInput(InputRecord { file, .. })) => {
                DIGITS.into_iter().any(|digits| self.file(0) == task_input(&file.digest, digits))
            }
            _ => false,
        }
    }

    /// Whether the record of a call tells of what the name says.
    pub fn fits_call(&self, call: &CallRecord) -> bool {
        let Self::Call(name) = self else { return false };
        call.version().directories().iter().any(|it| name.is_of(it, &call.inputs))
    }
}

impl Record {
    /// When it was recorded.
    pub const fn at(&self) -> Timestamp {
        match self {
            Self::Call(record) => record.recorded.at,
            Self::Job(record) => record.recorded.at,
            Self::TaskInput(record) => record.recorded.at,
        }
    }
}

impl Storage {
    /// Reads a promised file to its end; returns what is wrong with it.
    pub fn check(&self, promise: &ExpectedFile) -> Option<Defect> {
        // Nobody says stop.
        self.check_unless(&AtomicBool::new(false), promise).unwrap_or(None)
    }

    /// Reads a promised file to its end; returns what is wrong with it.
    ///
    /// # Errors
    ///
    /// Fails if it was told to stop before the end.
    pub fn check_unless(
        &self,
        stop: &AtomicBool,
        promise: &ExpectedFile,
    ) -> Result<Option<Defect>, Stopped> {
        // A run that publishes moves it meanwhile, so its place is looked at once more at the end.
        let places = [Some(&promise.name), promise.waiting.as_ref(), Some(&promise.name)];
        let mut defect = Some(Defect::Missing);
        for name in places.into_iter().flatten() {
            defect = self
                .check_file(stop, name, &promise.digest)
                .unwrap_or_else(|e| Some(Defect::Unreadable(e)));
            if !matches!(defect, Some(Defect::Missing)) {
                break;
            }
        }
        // The file may not have been read to its end.
        if stop.load(Ordering::Relaxed) { Err(Stopped) } else { Ok(defect) }
    }

    /// Returns the damage of a file that is not the recorded one.
    pub(super) fn defect_of(&self, name: &str, digest: &Digest) -> Result<Defect> {
        let stop = AtomicBool::new(false);
        Ok(self.check_file(&stop, name, digest)?.unwrap_or(Defect::Contents))
    }

    fn check_file(&self, stop: &AtomicBool, name: &str, digest: &Digest) -> Result<Option<Defect>> {
        let path = self.path(name);
        let Some(metadata) = self.disk.metadata(&path)? else {
            return Ok(Some(Defect::Missing));
        };
        if !metadata.is_file() {
            return Ok(Some(Defect::NotAFile));
        }
        let (found, recorded) = (metadata.len(), digest.size);
        if found != recorded {
            return Ok(Some(Defect::Size { found, recorded }));
        }
        let found = self.disk.reading(&path)?.until(stop).digest()?;
        Ok((found != *digest).then_some(Defect::Contents))
    }

    /// Reads a record and tells what is wrong with the record itself.
    ///
    /// # Errors
    ///
    /// Returns what is wrong; `None` stands for a record that is gone.
    pub fn check_record(&self, entry: &Entry) -> Result<Option<Record>, Defect> {
        match self.read_entry(entry).map_err(Defect::Unreadable)? {
            Read::Record(record) if entry.fits(&record) => Ok(Some(record)),
            Read::Record(_) => Err(Defect::Misplaced),
            Read::Spoiled => Err(Defect::Spoiled),
            Read::Absent => Ok(None),
        }
    }

    /// Sets a damaged result aside, record and files, so that the next run makes it again.
    ///
    /// It is checked once more before: a run may have made it again meanwhile. Returns the
    /// directory where it is now, or `None` if nothing was to be done.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be written.
    pub fn repair(&self, entry: &Entry) -> Result<Option<String>> {
        let mut files = MAX_ARITY;
        let damaged = match self.check_record(entry) {
            Ok(None) => false,
            Ok(Some(record)) => {
                let promises = entry.expected_files(&record);
                files = promises.len();
                let mut defects = promises.iter().filter_map(|promise| self.check(promise));
                defects.any(|defect| defect.is_repairable())
            }
            Err(defect) => defect.is_repairable(),
        };
        if !damaged {
            return Ok(None);
        }
        let room = match entry {
            Entry::Call(name) | Entry::Job(name) => {
                self.set_aside(name, files, self.disk.id(&self.path(&name.record()))?)?
            }
            Entry::TaskInput(place) => {
                let room = self.aside_room(&format!("tinputs/aside/{place}"));
                let aside = |part: &str, from: &str| {
                    self.disk.rename(&self.path(from), &self.place(&format!("{room}/{part}"))?)
                };
                aside("00", &entry.file(0))?;
                aside("record.json", &entry.record())?;
                room
            }
        };
        Ok(Some(room))
    }
}
