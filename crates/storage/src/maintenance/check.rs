//! Checks whether files are as their records promise, and moves damaged results to quarantine.
//!
//! A check reads every byte: time stamps are not trusted. It changes nothing. A repaired result is
//! moved to `aside/`, and computed or copied again by the next run that needs it.

use std::sync::atomic::{AtomicBool, Ordering};

use super::Maintenance;
use crate::disk::{FileId, Result};
use crate::layout::{Entry, QUARANTINE, ResultName, TASK_INPUTS};
use crate::records::{Defect, ExpectedFile, Read, Record, Stopped};
use ce_model::task::slice::MAX_ARITY;

impl Maintenance<'_> {
    /// Reads a promised file to its end. Returns its damage, if any.
    pub fn check(&self, expected: &ExpectedFile) -> Option<Defect> {
        // Without a stop flag it cannot be stopped.
        self.check_unless(&AtomicBool::new(false), expected).unwrap_or(None)
    }

    /// Reads a promised file to its end. Returns its damage, if any.
    ///
    /// # Errors
    ///
    /// Fails if it was stopped before the end.
    pub fn check_unless(
        &self,
        stop: &AtomicBool,
        expected: &ExpectedFile,
    ) -> Result<Option<Defect>, Stopped> {
        // A run may move the file to its place meanwhile, so that is checked once more at the end.
        let places = [Some(&expected.name), expected.waiting.as_ref(), Some(&expected.name)];
        let mut defect = Some(Defect::Missing);
        for name in places.into_iter().flatten() {
            defect = Defect::of_value(&self.storage.root, name, &expected.digest, stop)
                .unwrap_or_else(|e| Some(Defect::Unreadable(e)));
            if !matches!(defect, Some(Defect::Missing)) {
                break;
            }
        }
        if matches!(defect, Some(Defect::Missing))
            && let Some(result) = ResultName::of_output(&expected.name)
            && self.storage.is_marked_away(&result).unwrap_or(false)
        {
            defect = Some(Defect::Away);
        }
        // The file may not have been read to its end.
        if stop.load(Ordering::Relaxed) { Err(Stopped) } else { Ok(defect) }
    }

    /// Reads a record, and checks that it belongs to its name. Returns `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// Returns the damage of the record.
    pub fn check_record(&self, entry: &Entry) -> Result<Option<Record>, Defect> {
        match self.storage.records().read_entry(entry).map_err(Defect::Unreadable)? {
            Read::Record(record) if entry.fits(&record) => Ok(Some(record)),
            Read::Record(_) => Err(Defect::Misplaced),
            Read::Spoiled => Err(Defect::Spoiled),
            Read::Absent => Ok(None),
        }
    }

    /// Moves a damaged result, record and files, to quarantine, so that the next run computes it
    /// again.
    ///
    /// It is checked again first: a run may have replaced it meanwhile. Returns the quarantine
    /// directory, or `None` if nothing was moved.
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
        let root = &self.storage.root;
        let room = match entry {
            Entry::Call(name) | Entry::Job(name) => {
                let record = root.disk.id(&root.path(&name.record()))?;
                self.quarantine(name, files, record)?
            }
            Entry::Table(name) => {
                let room = root.quarantine_room(&name.quarantine());
                let outputs = ["00", "01"].into_iter().enumerate();
                let outputs = outputs.map(|(number, part)| (entry.file(number), part));
                let rest = [(name.recipe(), "recipe"), (entry.record(), "record.json")];
                self.move_aside(outputs.chain(rest), &room)?;
                room
            }
            Entry::TaskInput(place) => {
                let room = root.quarantine_room(&format!("{TASK_INPUTS}/{QUARANTINE}/{place}"));
                let parts = [(entry.file(0), "00"), (entry.record(), "record.json")];
                self.move_aside(parts, &room)?;
                room
            }
        };
        Ok(Some(room))
    }

    /// Moves files to quarantine, if they exist.
    fn move_aside(
        &self,
        parts: impl IntoIterator<Item = (String, &'static str)>,
        room: &str,
    ) -> Result<()> {
        let root = &self.storage.root;
        for (from, part) in parts {
            root.disk.rename(&root.path(&from), &root.place(&format!("{room}/{part}"))?)?;
        }
        Ok(())
    }

    /// Moves the files and the record of a result to quarantine; nothing is deleted. Returns the
    /// quarantine directory.
    ///
    /// The record goes last: outputs without one would be adopted. If the record is not the one
    /// that was read, another run has replaced the result, and it stays.
    fn quarantine(
        &self,
        name: &ResultName,
        outputs: usize,
        record: Option<FileId>,
    ) -> Result<String> {
        let root = &self.storage.root;
        let room = root.quarantine_room(&name.quarantine());
        let path = root.path(&name.record());
        let parts = (0..outputs).map(|number| (name.output(number), format!("{number:02}")));
        for (from, part) in parts.chain([(name.record(), "record.json".to_owned())]) {
            let from = root.path(&from);
            if root.disk.id(&path)? == record && root.disk.exists(&from)? {
                root.disk.rename(&from, &root.place(&format!("{room}/{part}"))?)?;
            }
        }
        Ok(room)
    }
}
