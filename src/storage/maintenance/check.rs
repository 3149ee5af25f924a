//! Checks whether the storage keeps what its records promise, and moves what does not to quarantine.
//!
//! A check reads every byte: time stamps are not believed. It changes nothing. What is repaired
//! is moved to `aside/`, and computed or copied again by the next run that needs it.

use std::sync::atomic::{AtomicBool, Ordering};

use super::Maintenance;
use crate::storage::disk::{FileId, Result};
use crate::storage::layout::{Entry, QUARANTINE, ResultName, TASK_INPUTS};
use crate::storage::records::{Defect, ExpectedFile, Read, Record, Stopped};
use crate::task::slice::MAX_ARITY;

impl Maintenance<'_> {
    /// Reads a promised file to its end; returns what is wrong with it.
    pub fn check(&self, expected: &ExpectedFile) -> Option<Defect> {
        // Nobody says stop.
        self.check_unless(&AtomicBool::new(false), expected).unwrap_or(None)
    }

    /// Reads a promised file to its end; returns what is wrong with it.
    ///
    /// # Errors
    ///
    /// Fails if it was told to stop before the end.
    pub fn check_unless(
        &self,
        stop: &AtomicBool,
        expected: &ExpectedFile,
    ) -> Result<Option<Defect>, Stopped> {
        // A run that publishes moves it meanwhile, so its place is looked at once more at the end.
        let places = [Some(&expected.name), expected.waiting.as_ref(), Some(&expected.name)];
        let mut defect = Some(Defect::Missing);
        for name in places.into_iter().flatten() {
            defect = Defect::of_file(&self.storage.root, name, &expected.digest, stop)
                .unwrap_or_else(|e| Some(Defect::Unreadable(e)));
            if !matches!(defect, Some(Defect::Missing)) {
                break;
            }
        }
        // The file may not have been read to its end.
        if stop.load(Ordering::Relaxed) { Err(Stopped) } else { Ok(defect) }
    }

    /// Reads a record and tells what is wrong with the record itself.
    ///
    /// # Errors
    ///
    /// Returns what is wrong; `None` stands for a record that is gone.
    pub fn check_record(&self, entry: &Entry) -> Result<Option<Record>, Defect> {
        match self.storage.records().read_entry(entry).map_err(Defect::Unreadable)? {
            Read::Record(record) if entry.fits(&record) => Ok(Some(record)),
            Read::Record(_) => Err(Defect::Misplaced),
            Read::Spoiled => Err(Defect::Spoiled),
            Read::Absent => Ok(None),
        }
    }

    /// Moves a damaged result to quarantine, record and files, so that the next run makes it again.
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
                let expected = entry.expected_files(&record);
                files = expected.len();
                let mut defects = expected.iter().filter_map(|file| self.check(file));
                defects.any(|defect| defect.is_repairable())
            }
            Err(defect) => defect.is_repairable(),
        };
        if !damaged {
            return Ok(None);
        }
        let room = match entry {
            Entry::Call(name) | Entry::Job(name) => self.quarantine(
                name,
                files,
                self.storage.root.disk.id(&self.storage.path(&name.record()))?,
            )?,
            Entry::TaskInput(place) => {
                let room = self
                    .storage
                    .root
                    .quarantine_room(&format!("{TASK_INPUTS}/{QUARANTINE}/{place}"));
                let quarantine = |part: &str, from: &str| {
                    self.storage.root.disk.rename(
                        &self.storage.path(from),
                        &self.storage.root.place(&format!("{room}/{part}"))?,
                    )
                };
                quarantine("00", &entry.file(0))?;
                quarantine("record.json", &entry.record())?;
                room
            }
        };
        Ok(Some(room))
    }

    /// Moves what stands under a name to quarantine; nothing is deleted. Returns where it is now.
    ///
    /// The record goes last: outputs without one would be adopted. A record that is not the one
    /// that was looked at is left alone, with its outputs: somebody was faster.
    fn quarantine(
        &self,
        name: &ResultName,
        outputs: usize,
        record: Option<FileId>,
    ) -> Result<String> {
        let room = self.storage.root.quarantine_room(&name.quarantine());
        let path = self.storage.path(&name.record());
        let parts = (0..outputs).map(|number| (name.output(number), format!("{number:02}")));
        for (from, part) in parts.chain([(name.record(), "record.json".to_owned())]) {
            let from = self.storage.path(&from);
            if self.storage.root.disk.id(&path)? == record
                && self.storage.root.disk.exists(&from)?
            {
                self.storage
                    .root
                    .disk
                    .rename(&from, &self.storage.root.place(&format!("{room}/{part}"))?)?;
            }
        }
        Ok(room)
    }
}
