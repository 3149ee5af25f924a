//! Verification: every file that a record promises is read and compared, by all cores.
//!
//! Findings are told in the order of names, whatever the order in which files are read. Nothing is
//! changed unless a repair is asked for, and then only after all files were read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc;
use std::thread;

use jiff::Timestamp;
use rayon::iter::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};

use crate::digest::Digest;
use crate::storage::{Entry, Fault, Finding, Promise, Record, Storage, StorageError};

/// A part of the records, chosen by chance, another one each day.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// How many of a hundred.
    pub percent: f64,
    /// The day, in any form.
    pub day: String,
}

/// What is to be verified, and what is done about what is wrong.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// A part of the records only.
    pub sample: Option<Sample>,
    /// Only what was recorded since.
    pub since: Option<Timestamp>,
    /// Whether damaged results are set aside.
    pub repair: bool,
}

/// What happens.
#[derive(Debug)]
pub enum Event<'a> {
    /// The records are read; so much is to be checked.
    Begun {
        /// How many bytes.
        bytes: u64,
    },
    /// A file of so many bytes was checked.
    Checked {
        /// How many bytes it should have.
        bytes: u64,
    },
    /// Something is wrong, or odd.
    Found(&'a Finding),
    /// A damaged result was moved out of the way.
    SetAside {
        /// The name of its record.
        record: &'a str,
        /// The directory where it is now, relative to the storage.
        room: &'a str,
    },
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// How many files were checked.
    pub files: usize,
    /// How many bytes they should have.
    pub bytes: u64,
    /// How much is wrong.
    pub wrong: usize,
    /// How much is odd and harmless.
    pub odd: usize,
    /// How many results were set aside.
    pub set_aside: usize,
}

impl Sample {
    /// Whether a record is part of the sample: the same all day, and on every host.
    fn has(&self, record: &str) -> bool {
        let digits = Digest::of(format!("{} {record}", self.day).as_bytes()).sha1.short();
        let number = u64::from_str_radix(&digits, 16).unwrap_or_default();
        (number as f64) < self.percent / 100.0 * (1_u64 << (4 * digits.len())) as f64
    }
}

/// A file to be checked, and the entry that promises it.
struct Job<'a> {
    entry: usize,
    promise: &'a Promise,
}

/// Verifies a storage, and tells what is found to `observe`.
///
/// # Errors
///
/// Fails if a directory of the storage cannot be read, or a repair not be written. A file that
/// cannot be read is a finding.
pub fn verify(
    storage: &Storage,
    request: &Request,
    observe: &mut dyn FnMut(Event<'_>),
) -> Result<Verdict, StorageError> {
    let entries = storage.entries()?;
    let mut verdict = Verdict::default();
    let chosen: Vec<&Entry> = match &request.sample {
        Some(sample) => entries.iter().filter(|entry| sample.has(&entry.record())).collect(),
        None => entries.iter().collect(),
    };
    let mut damaged = BTreeSet::new();
    let mut promises = Vec::new();
    for (entry, read) in read(storage, &chosen).into_iter().enumerate() {
        match read {
            Ok(Some(record)) if request.since.is_none_or(|since| record.at() >= since) => {
                promises.push((entry, chosen[entry].promises(&record)));
            }
            Ok(_) => {}
            Err(fault) => {
                damaged.extend(fault.is_repairable().then_some(entry));
                verdict.wrong += 1;
                observe(Event::Found(&Finding { name: chosen[entry].record(), fault }));
            }
        }
    }
    let jobs: Vec<Job<'_>> = promises
        .iter()
        .flat_map(|(entry, all)| all.iter().map(|promise| Job { entry: *entry, promise }))
        .collect();
    verdict.files = jobs.len();
    verdict.bytes = jobs.iter().map(|job| job.promise.digest.size).sum();
    observe(Event::Begun { bytes: verdict.bytes });
    check(storage, &jobs, &mut |job, fault| {
        observe(Event::Checked { bytes: job.promise.digest.size });
        if let Some(fault) = fault {
            damaged.extend(fault.is_repairable().then_some(job.entry));
            verdict.wrong += 1;
            let name = job.promise.name.clone();
            observe(Event::Found(&Finding { name, fault }));
        }
    });
    if request.since.is_none() {
        for finding in storage.orphans(&entries)?.iter().chain(&storage.leftovers()?) {
            verdict.odd += 1;
            observe(Event::Found(finding));
        }
    }
    for entry in damaged.into_iter().filter(|_| request.repair).map(|entry| chosen[entry]) {
        if let Some(room) = storage.repair(entry)? {
            verdict.set_aside += 1;
            observe(Event::SetAside { record: &entry.record(), room: &room });
        }
    }
    if request.repair {
        storage.flush()?;
    }
    Ok(verdict)
}

/// Reads all records, in parallel.
fn read(storage: &Storage, entries: &[&Entry]) -> Vec<Result<Option<Record>, Fault>> {
    entries.par_iter().map(|entry| storage.check_record(entry)).collect()
}

/// Checks all files in parallel; tells each in the order given.
fn check(storage: &Storage, jobs: &[Job<'_>], tell: &mut dyn FnMut(&Job<'_>, Option<Fault>)) {
    let (sender, checked) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(move || {
            // One file after the other: a few large ones are shared among all cores.
            let jobs = jobs.par_iter().with_max_len(1).enumerate();
            jobs.for_each_with(sender, |sender, (number, job)| {
                drop(sender.send((number, storage.check(job.promise))));
            });
        });
        let mut waiting = BTreeMap::new();
        let mut next = 0;
        for (number, fault) in checked {
            waiting.insert(number, fault);
            while let Some(fault) = waiting.remove(&next) {
                tell(&jobs[next], fault);
                next += 1;
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_about_as_large_as_asked_for_and_the_same_all_day() {
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
