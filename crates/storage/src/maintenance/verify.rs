//! Verification: every file that a record promises is read and compared, on all cores.
//!
//! Findings are reported in the order of records, regardless of the order in which files are read, so an
//! interrupted verification can continue from the name of a record. Nothing is changed unless a
//! repair is requested, and then only after all files were read.
//!
//! A check reads every byte, and trusts no time stamp. A repair moves a damaged result to quarantine (`aside/`); the next run
//! that needs it computes or copies it again.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

use jiff::Timestamp;
use rayon::iter::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};
use serde::Serialize;

use super::{Maintenance, Survey};
use crate::disk::{FileId, Result, StorageError};
use crate::paths::{Entry, QUARANTINE, ResultName, TASK_INPUTS};
use crate::protocol::Storage;
use crate::records::{CheckStopped, Defect, ExpectedFile, Finding, Record, RecordState};
use ce_model::digest::Digest;
use ce_model::exit::Explain;
use ce_model::slice::MAX_ARITY;

/// A random part of the records, another one each day.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The size of the part, in percent.
    pub percent: f64,
    /// The day, in any form.
    pub day: String,
}

/// A selection of records, and the treatment of damage.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// The record to begin at, in the order of names.
    pub from: Option<String>,
    /// A random part of the records only.
    pub sample: Option<Sample>,
    /// Only results recorded since this time.
    pub since: Option<Timestamp>,
    /// Whether damaged results are moved to quarantine.
    pub repair: bool,
}

/// An event of a verification.
#[derive(Debug)]
pub enum VerifyEvent<'a> {
    /// The records are read, and files are checked next.
    Begun {
        /// The total size of the files, in bytes.
        bytes: u64,
    },
    /// A file was checked.
    Checked {
        /// Its recorded size, in bytes.
        bytes: u64,
    },
    /// Something is damaged, or harmlessly odd.
    Found(&'a Finding),
    /// A damaged result was moved to quarantine.
    SetAside {
        /// The name of its record.
        record: &'a str,
        /// Its quarantine directory, relative to the storage.
        room: &'a str,
    },
}

/// The outcome of a verification.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// The number of files to check.
    #[serde(skip)]
    pub promised: usize,
    /// The number of checked files.
    pub files: usize,
    /// Their recorded size, in bytes.
    pub bytes: u64,
    /// The number of damaged files and records.
    pub wrong: usize,
    /// The number of harmless oddities.
    pub odd: usize,
    /// The number of results that are away: known, and some of their files deliberately not here.
    pub away: usize,
    /// The number of results moved to quarantine.
    pub quarantined: usize,
    /// The record to continue from, if it was stopped before the end.
    pub stopped: Option<String>,
}

impl Sample {
    /// Whether a record is part of the sample: the same all day, and on every host.
    fn has(&self, record: &str) -> bool {
        let digits = Digest::hash_bytes(format!("{} {record}", self.day).as_bytes()).sha1.short();
        let number = u64::from_str_radix(&digits, 16).unwrap_or_default();
        (number as f64) < self.percent / 100.0 * (1_u64 << (4 * digits.len())) as f64
    }
}

/// The reason why a storage was not verified.
#[derive(Debug, thiserror::Error, Explain)]
pub enum VerifyError {
    /// The storage could not be read, or a repair not be written.
    #[error(transparent)]
    #[exit(Storage)]
    #[hint(_0.hint())]
    Storage(#[from] StorageError),
    /// The name to begin at has no record.
    #[error("there is no record {0}")]
    #[hint("give the name that the interrupted check printed, or leave out --from")]
    NoRecord(String),
}

/// A record and the files that it promises.
struct RecordFiles<'a> {
    entry: &'a Entry,
    promises: Vec<ExpectedFile>,
    /// The damage of the record itself. Then it promises no files.
    wrong: Option<Finding>,
}

/// A file to check, or a damaged record.
struct FileCheck<'a> {
    /// The index of its record.
    part: usize,
    promise: Option<&'a ExpectedFile>,
}

/// Verifies a storage, and passes events to `observe`.
///
/// It ends soon after `stop` becomes true, even within a file. Damage up to the record where it
/// stopped is reported then, and repaired if that was requested.
///
/// # Errors
///
/// Fails if a directory of the storage cannot be read, a repair not be written, or if there is no
/// record to begin at. A file that cannot be read is a finding.
pub fn verify(
    storage: &Storage,
    request: &Request,
    stop: &AtomicBool,
    observe: &mut dyn FnMut(VerifyEvent<'_>),
) -> Result<Verdict, VerifyError> {
    let entries = Survey::new(storage).entries()?;
    let chosen = choose(&entries, request)?;
    let mut verdict = Verdict::default();
    let Ok(parts) = read(storage, &chosen, request.since, stop) else {
        verdict.stopped = chosen.first().map(|entry| entry.record());
        return Ok(verdict);
    };
    let jobs = jobs(&parts);
    let promises: Vec<_> = jobs.iter().filter_map(|job| job.promise).collect();
    verdict.promised = promises.len();
    // The sizes in a spoiled record may be arbitrarily large.
    let bytes = promises.iter().map(|it| it.digest.total()).fold(0, u64::saturating_add);
    observe(VerifyEvent::Begun { bytes });
    let mut damaged = Vec::new();
    // A file that could not be looked at. This is not damage.
    let mut leased = None;
    // The damage of the files of one record, and the next job.
    let mut found = Vec::new();
    let mut next = 0;
    let mut told: HashSet<String> = HashSet::new();
    check(storage, &jobs, stop, &mut |number, defect| {
        let FileCheck { part, promise } = jobs[number];
        if let Some(ExpectedFile { name, digest, .. }) = promise {
            verdict.files += 1;
            verdict.bytes = verdict.bytes.saturating_add(digest.total());
            observe(VerifyEvent::Checked { bytes: digest.total() });
            match defect {
                Some(Defect::Unreadable(error)) if error.is_leased() => leased = Some(error),
                defect => {
                    found.extend(defect.map(|defect| Finding { name: name.clone(), defect }));
                }
            }
        }
        if jobs.get(number + 1).is_some_and(|next| next.part == part) {
            return;
        }
        // The findings of a record are reported after all its files are checked: a stopped
        // verification continues at a record.
        next = number + 1;
        let RecordFiles { entry, wrong, .. } = &parts[part];
        let is_away = found.iter().any(|it| matches!(it.defect, Defect::Away));
        verdict.away += usize::from(is_away);
        found.retain(|it| !matches!(it.defect, Defect::Away));
        let defects = || wrong.iter().chain(&found);
        let wrong = defects().filter(|finding| finding.defect.is_harm()).count();
        verdict.wrong += wrong;
        verdict.odd += defects().count() - wrong;
        defects().for_each(|finding| observe(VerifyEvent::Found(finding)));
        told.extend(defects().map(|finding| finding.name.clone()));
        damaged.extend(defects().any(|finding| finding.defect.is_repairable()).then_some(*entry));
        found.clear();
    });
    verdict.stopped = jobs.get(next).map(|job| parts[job.part].entry.record());
    if verdict.stopped.is_none() {
        let mut rest = Survey::new(storage).links()?;
        rest.extend(Survey::new(storage).suspended_findings()?);
        if request.since.is_none() {
            rest.extend(Survey::new(storage).orphans(&entries)?);
            rest.extend(Survey::new(storage).lost_markers()?);
            rest.extend(Survey::new(storage).leftovers()?);
            rest.extend(Survey::new(storage).forged()?);
            // Most of it was found already, where it is read.
            rest.extend(Survey::new(storage).unlike()?);
        }
        for finding in rest.iter().filter(|finding| told.insert(finding.name.clone())) {
            let count =
                if finding.defect.is_harm() { &mut verdict.wrong } else { &mut verdict.odd };
            *count += 1;
            observe(VerifyEvent::Found(finding));
        }
    }
    if request.repair {
        verdict.quarantined = repair(storage, &damaged, observe)?;
    }
    leased.map_or(Ok(verdict), |error| Err(error.into()))
}

/// Returns the entries that a request selects, in order.
fn choose<'a>(entries: &'a [Entry], request: &Request) -> Result<Vec<&'a Entry>, VerifyError> {
    let first = match &request.from {
        None => 0,
        Some(from) => {
            let place = entries.iter().position(|entry| entry.record() == *from);
            place.ok_or_else(|| VerifyError::NoRecord(from.clone()))?
        }
    };
    Ok(entries[first..]
        .iter()
        .filter(|entry| request.sample.as_ref().is_none_or(|sample| sample.has(&entry.record())))
        .collect())
}

/// Reads records in parallel. Returns records since a time, records without a time, and damaged ones.
fn read<'a>(
    storage: &Storage,
    entries: &[&'a Entry],
    since: Option<Timestamp>,
    stop: &AtomicBool,
) -> Result<Vec<RecordFiles<'a>>, CheckStopped> {
    let parts = entries.par_iter().map(|entry| {
        if stop.load(Ordering::Relaxed) {
            return Err(CheckStopped);
        }
        let (promises, wrong) = match Maintenance::new(storage).check_record(entry) {
            Ok(Some(record)) if since.zip(record.at()).is_none_or(|(since, at)| at >= since) => {
                (entry.expected_files(&record), None)
            }
            Ok(_) => return Ok(None),
            Err(defect) => (Vec::new(), Some(Finding { name: entry.record(), defect })),
        };
        Ok(Some(RecordFiles { entry, promises, wrong }))
    });
    let parts = parts.collect::<Result<Vec<_>, CheckStopped>>()?;
    Ok(parts.into_iter().flatten().collect())
}

/// Lists the files to check, in order.
fn jobs<'a>(parts: &'a [RecordFiles<'_>]) -> Vec<FileCheck<'a>> {
    let mut jobs = Vec::new();
    for (part, RecordFiles { promises, wrong, .. }) in parts.iter().enumerate() {
        jobs.extend(promises.iter().map(|promise| FileCheck { part, promise: Some(promise) }));
        jobs.extend(wrong.iter().map(|_| FileCheck { part, promise: None }));
    }
    jobs
}

/// Checks all files in parallel. Reports them in the order given, up to where it was stopped.
fn check(
    storage: &Storage,
    jobs: &[FileCheck<'_>],
    stop: &AtomicBool,
    report: &mut dyn FnMut(usize, Option<Defect>),
) {
    let (sender, checked) = mpsc::channel();
    let check_all = &|sender: mpsc::Sender<_>| {
        // Each task is a single file, so that a few large ones are distributed to all cores.
        let jobs = jobs.par_iter().with_max_len(1).enumerate();
        jobs.for_each_with(sender, |sender, (number, job)| {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            if let Ok(defect) = job
                .promise
                .map_or(Ok(None), |promise| Maintenance::new(storage).check_unless(stop, promise))
            {
                drop(sender.send((number, defect)));
            }
        });
    };
    thread::scope(|scope| {
        let other = sender.clone();
        match thread::Builder::new().spawn_scoped(scope, move || check_all(other)) {
            Ok(_) => drop(sender),
            // Its findings are reported at the end.
            Err(_) => check_all(sender),
        }
        let mut waiting = BTreeMap::new();
        let mut next = 0;
        for (number, defect) in checked {
            waiting.insert(number, defect);
            while let Some(defect) = waiting.remove(&next) {
                report(next, defect);
                next += 1;
            }
        }
    });
}

/// Moves damaged results to quarantine. Returns their number.
fn repair(
    storage: &Storage,
    damaged: &[&Entry],
    observe: &mut dyn FnMut(VerifyEvent<'_>),
) -> Result<usize, StorageError> {
    let mut count = 0;
    for entry in damaged {
        if let Some(room) = Maintenance::new(storage).repair(entry)? {
            count += 1;
            observe(VerifyEvent::SetAside { record: &entry.record(), room: &room });
        }
    }
    for forged in Survey::new(storage).forged()? {
        storage.ledger().set_aside(&forged.name)?;
    }
    for name in Survey::new(storage).suspended()? {
        if let Some(suspension) = storage.suspensions().read(&name)? {
            storage.suspensions().restore(&suspension)?;
        }
    }
    storage.flush()?;
    Ok(count)
}

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
    ) -> Result<Option<Defect>, CheckStopped> {
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
            && self.storage.evictions().is_marked_away(&result).unwrap_or(false)
        {
            defect = Some(Defect::Away);
        }
        // The file may not have been read to its end.
        if stop.load(Ordering::Relaxed) { Err(CheckStopped) } else { Ok(defect) }
    }

    /// Reads a record, and checks that it belongs to its name. Returns `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// Returns the damage of the record.
    pub fn check_record(&self, entry: &Entry) -> Result<Option<Record>, Defect> {
        match self.storage.records().read_entry(entry).map_err(Defect::Unreadable)? {
            RecordState::Valid(record) if entry.fits(&record) => Ok(Some(record)),
            RecordState::Valid(_) => Err(Defect::Misplaced),
            RecordState::Spoiled => Err(Defect::Spoiled),
            RecordState::Absent => Ok(None),
        }
    }

    /// Moves a damaged result, record and files, to quarantine, so that the next run computes it
    /// again.
    ///
    /// It is checked again first: a run may have replaced it meanwhile. Returns the quarantine
    /// directory, or `None` if nothing was moved.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_about_the_requested_size_and_is_the_same_all_day() {
        let count = |percent, day: &str| {
            let sample = Sample { percent, day: day.to_owned() };
            (0..1000).filter(|n| sample.has(&format!("c_add/{n}"))).collect::<Vec<_>>()
        };
        assert_eq!(count(0.0, "a").len(), 0);
        assert_eq!(count(100.0, "a").len(), 1000);
        let some = count(20.0, "a");
        assert!((150..250).contains(&some.len()), "{}", some.len());
        assert_eq!(some, count(20.0, "a"));
        assert_ne!(some, count(20.0, "b"));
    }
}
