//! Reading and writing records. A record appears atomically: it is written under a private name
//! first.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{CallRecord, FORMAT, FormatOf, InputRecord, JobRecord, TableRecord};
use crate::disk::{NotOwn, Result, Root, StorageError};
use crate::layout::{Entry, RECORDS};
use ce_files::cache::FileStat;

/// The record of any result.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// Of a call.
    Call(CallRecord),
    /// Of a job.
    Job(JobRecord),
    /// Of a table.
    Table(TableRecord),
    /// Of a task input.
    TaskInput(InputRecord),
}

impl Record {
    /// The time of recording, if it is known.
    pub fn at(&self) -> Option<Timestamp> {
        let recorded = match self {
            Self::Call(record) => record.recorded.as_ref(),
            Self::Job(record) => record.recorded.as_ref(),
            Self::Table(record) => record.recorded.as_ref(),
            Self::TaskInput(record) => Some(&record.recorded),
        };
        recorded.map(|it| it.at)
    }
}

/// The result of reading a record.
#[derive(Debug)]
pub enum Read<T> {
    /// The record.
    Record(T),
    /// The file cannot be parsed, or is not a plain file.
    Spoiled,
    /// The file does not exist.
    Absent,
}

impl<T> Read<T> {
    /// The record, if there is one.
    pub(crate) fn ok(self) -> Option<T> {
        match self {
            Self::Record(record) => Some(record),
            Self::Spoiled | Self::Absent => None,
        }
    }

    /// Converts the record.
    pub(crate) fn map<U>(self, record: impl FnOnce(T) -> U) -> Read<U> {
        match self {
            Self::Record(it) => Read::Record(record(it)),
            Self::Spoiled => Read::Spoiled,
            Self::Absent => Read::Absent,
        }
    }
}

/// The records of a storage.
#[derive(Clone, Copy, Debug)]
pub struct Records<'a> {
    root: &'a Root,
}

impl<'a> Records<'a> {
    /// The records below a root.
    pub(crate) const fn new(root: &'a Root) -> Self {
        Self { root }
    }

    /// Reads the record of an entry.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, or only a newer version can.
    pub fn read_entry(&self, entry: &Entry) -> Result<Read<Record>> {
        self.read_entry_in(RECORDS, entry)
    }

    /// Reads the record of an entry in a room.
    pub(crate) fn read_entry_in(&self, room: &str, entry: &Entry) -> Result<Read<Record>> {
        let name = entry.room(room);
        Ok(match entry {
            Entry::Call(_) => self.read(&name)?.map(Record::Call),
            Entry::Job(_) => self.read(&name)?.map(Record::Job),
            Entry::Table(_) => self.read(&name)?.map(Record::Table),
            Entry::TaskInput(_) => self.read(&name)?.map(Record::TaskInput),
        })
    }

    /// Reads a record of this name.
    pub(crate) fn read<T: DeserializeOwned>(&self, name: &str) -> Result<Read<T>> {
        Ok(match self.read_at(name)? {
            Some((_, Some(record))) => Read::Record(record),
            Some((_, None)) => Read::Spoiled,
            None => Read::Absent,
        })
    }

    /// Reads the file of a record. Returns its stat, and the record if it can be parsed.
    pub(crate) fn read_at<T: DeserializeOwned>(
        &self,
        name: &str,
    ) -> Result<Option<(FileStat, Option<T>)>> {
        let path = self.root.path(name);
        let (stat, text) = match self.root.disk.read_one(&path) {
            Ok(Some(read)) => read,
            Ok(None) => return Ok(None),
            // Anything but a plain file is a spoiled record.
            Err(StorageError::Io { source, .. }) if NotOwn::of(&source).is_some() => {
                return Ok(self.root.disk.metadata(&path)?.map(|metadata| (metadata.stat(), None)));
            }
            Err(error) => return Err(error),
        };
        if let Ok(record) = serde_json::from_slice(&text) {
            return Ok(Some((stat, Some(record))));
        }
        match serde_json::from_slice(&text) {
            Ok(FormatOf { format }) if format > FORMAT => {
                Err(StorageError::Format { path, format, newest: FORMAT })
            }
            _ => Ok(Some((stat, None))),
        }
    }

    /// Writes a record into a new file.
    pub(crate) fn write(&self, path: &Path, record: &impl Serialize) -> Result<()> {
        let json = |source| StorageError::Record { path: path.to_owned(), source };
        self.root.disk.write(path, &text(record).map_err(json)?)
    }

    /// Writes a record atomically; replaces an existing one.
    pub(crate) fn put(&self, name: &str, record: &impl Serialize) -> Result<()> {
        let private = self.write_private(record)?;
        self.reveal(&private, name)
    }

    /// Gives a complete record its name.
    fn reveal(&self, private: &Path, name: &str) -> Result<()> {
        let place = self.root.place(name)?;
        self.root.disk.rename(private, &place)?;
        self.root.unsynced.note_new(&place);
        Ok(())
    }

    /// Writes a record atomically like [`Self::put`], without holding its text: it may be long.
    pub(crate) fn put_long(&self, name: &str, record: &impl Serialize) -> Result<()> {
        let private = self.root.private_path()?;
        self.root.disk.write_by(&private, |out| {
            serde_json::to_writer_pretty(&mut *out, record)?;
            out.write_all(b"\n")
        })?;
        self.reveal(&private, name)
    }

    /// Writes a record atomically, unless there is one. Returns whether it was written.
    pub(crate) fn put_new(&self, name: &str, record: &impl Serialize) -> Result<bool> {
        let private = self.write_private(record)?;
        let place = self.root.place(name)?;
        let first = self.root.disk.link(&private, &place)?;
        self.root.disk.remove(&private)?;
        self.root.unsynced.note_new(&place);
        Ok(first)
    }

    fn write_private(&self, record: &impl Serialize) -> Result<PathBuf> {
        let private = self.root.private_path()?;
        self.write(&private, record)?;
        Ok(private)
    }
}

/// The text of a record.
pub(super) fn text(record: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut text = serde_json::to_vec_pretty(record)?;
    text.push(b'\n');
    Ok(text)
}
