//! History: which call made what, from reading all records once.
//!
//! A content has the name of a file in its maker's record; where that says nothing any more, the
//! SHA-1 and BLAKE3 of the content lead to whoever made it first. Records that cannot be
//! understood are left out: `ce verify` tells of them. Nothing is changed.

mod earlier;
mod log;
mod origins;
mod takeover;

use std::collections::{HashMap, HashSet};
use std::path::Path;

use jiff::Timestamp;
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

pub use self::earlier::earlier;
pub use self::log::{Filter, Past, log};
pub use self::takeover::TakenOver;
use crate::digest::Digest;
use crate::storage::records::{CallRecord, Origin, Provenance};
use crate::storage::{
    Entry, ExpectedFile, Maintenance, Read, Record, Storage, StorageError, Survey,
};

/// The fewest digits that stand for a content.
const FEWEST: usize = 4;

/// Everything that is recorded of results.
#[derive(Debug)]
pub struct History {
    results: Vec<(Entry, Record)>,
    /// The files of all results, by name.
    files: HashMap<String, RecordedFile>,
    /// The files with some content.
    contents: HashMap<Digest, Vec<String>>,
}

/// A recorded file: which result, and which number it has there.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RecordedFile {
    result: usize,
    number: usize,
    promise: ExpectedFile,
}

/// A recorded file, with everything that is recorded of it.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The file.
    pub promise: &'a ExpectedFile,
    /// Which file of its result it is.
    pub number: usize,
    /// The result.
    pub entry: &'a Entry,
    /// Its record.
    pub record: &'a Record,
}

/// A line of a file's ancestry: an input of the result above it.
#[derive(Clone, Copy, Debug)]
pub struct Ancestor<'a> {
    /// How many results are between it and the file, plus one.
    pub depth: usize,
    /// Which input it is.
    pub number: usize,
    /// What it contains.
    pub digest: Digest,
    /// The file, if its maker is known.
    pub subject: Option<Subject<'a>>,
    /// Its own inputs were told before.
    pub again: bool,
}

/// Why a file cannot be told of.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// Nothing recorded is called so.
    #[error("{0} has no record")]
    Unknown(String),
    /// It was there, and was taken away.
    #[error("{file} was collected at {at:.0} by {user} on {host}")]
    Collected {
        /// What was asked for.
        file: String,
        /// When it was collected.
        at: Timestamp,
        /// By whom.
        user: String,
        /// Where.
        host: String,
    },
    /// The digits are those of several contents.
    #[error("the SHA-1 of {} contents begin with {digits}: {}", found.len(), found.join(", "))]
    Ambiguous {
        /// What was asked for.
        digits: String,
        /// The SHA-1 of those contents.
        found: Vec<String>,
    },
}

impl History {
    /// Reads all records of a storage.
    ///
    /// # Errors
    ///
    /// Fails if a record cannot be read, or only a newer version can.
    pub fn read(storage: &Storage) -> Result<Self, StorageError> {
        let entries = Survey::new(storage).entries()?;
        let read = |entry: &Entry| match storage.records().read_entry(entry) {
            Ok(Read::Record(record)) => Some(Ok((entry.clone(), record))),
            Ok(Read::Spoiled | Read::Absent) => None,
            Err(error) => Some(Err(error)),
        };
        let results: Vec<_> = entries.par_iter().filter_map(read).collect::<Result<_, _>>()?;
        let mut history = Self { results, files: HashMap::new(), contents: HashMap::new() };
        for (result, (entry, record)) in history.results.iter().enumerate() {
            for (number, promise) in entry.expected_files(record).into_iter().enumerate() {
                let (name, digest) = (promise.name.clone(), promise.digest);
                history.contents.entry(digest).or_default().push(name.clone());
                history.files.insert(name, RecordedFile { result, number, promise });
            }
        }
        Ok(history)
    }

    /// Returns every result with its record, sorted by name.
    pub fn results(&self) -> &[(Entry, Record)] {
        &self.results
    }

    /// Whether a result is recorded.
    pub fn has(&self, entry: &Entry) -> bool {
        self.files.contains_key(&entry.file(0))
    }

    /// Returns the file that a user means: by its path, or by digits that its SHA-1 begins with.
    ///
    /// # Errors
    ///
    /// Fails if nothing, or more than one content, is meant.
    pub fn find(&self, storage: &Storage, file: &str) -> Result<Subject<'_>, HistoryError> {
        let plain: std::path::PathBuf = Path::new(file).components().collect();
        let names = [plain.to_str().map(str::to_owned), storage.name_of(Path::new(file))];
        if let Some(subject) = names.iter().flatten().find_map(|name| self.subject(name)) {
            return Ok(subject);
        }
        for name in names.iter().flatten() {
            if let Some(Provenance { at, user, host, .. }) =
                Maintenance::new(storage).tombstone(name).ok().flatten()
            {
                return Err(HistoryError::Collected { file: file.to_owned(), at, user, host });
            }
        }
        let unknown = || HistoryError::Unknown(file.to_owned());
        let digits = file.to_ascii_lowercase();
        if digits.len() < FEWEST || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(unknown());
        }
        let contents = self.contents.keys().filter(|it| it.sha1.full().starts_with(&digits));
        let mut contents: Vec<&Digest> = contents.collect();
        contents.sort_unstable_by_key(|digest| digest.sha1);
        match contents[..] {
            [digest] => self.maker(digest, None).ok_or_else(unknown),
            [] => Err(unknown()),
            _ => {
                let found = contents.iter().map(|digest| digest.sha1.full()).collect();
                Err(HistoryError::Ambiguous { digits, found })
            }
        }
    }

    /// Returns everything that a file was made from, each result before its inputs.
    ///
    /// The inputs of a result are told once, where it occurs first.
    pub fn ancestry<'a>(&'a self, subject: Subject<'a>) -> Vec<Ancestor<'a>> {
        let mut ancestry = Vec::new();
        let mut told: HashSet<&Entry> = HashSet::from([subject.entry]);
        let mut stack = self.inputs(subject, 1);
        while let Some(mut ancestor) = stack.pop() {
            if let Some(subject) = ancestor.subject {
                let inputs = self.inputs(subject, ancestor.depth + 1);
                ancestor.again = !told.insert(subject.entry) && !inputs.is_empty();
                stack.extend(inputs.into_iter().filter(|_| !ancestor.again));
            }
            ancestry.push(ancestor);
        }
        ancestry
    }

    /// Returns the inputs of a file's result, the last one first.
    fn inputs<'a>(&'a self, subject: Subject<'a>, depth: usize) -> Vec<Ancestor<'a>> {
        let ancestor =
            |(number, digest, subject)| Ancestor { depth, number, digest, subject, again: false };
        match subject.record {
            Record::TaskInput(_) => Vec::new(),
            Record::Job(job) => {
                let output = job.outputs.get(subject.number).map(|output| {
                    let made = self.subject(&output.file);
                    (subject.number, output.digest, made)
                });
                output.into_iter().map(ancestor).collect()
            }
            Record::Call(call) => {
                let input = |(number, digest): (usize, &Digest)| {
                    let named = self.named(call, number, digest);
                    (number, *digest, named.or_else(|| self.maker(digest, Some(subject.entry))))
                };
                call.inputs.iter().enumerate().rev().map(input).map(ancestor).collect()
            }
        }
    }

    /// The file that an execution had as an input, if that is still recorded with its contents.
    fn named(&self, call: &CallRecord, number: usize, digest: &Digest) -> Option<Subject<'_>> {
        let Origin::Executed { execution, .. } = &call.origin else {
            return None;
        };
        let subject = self.subject(execution.argv.get(number + 1)?)?;
        Some(subject).filter(|subject| subject.promise.digest == *digest)
    }

    /// The file that first had a content: a task input, or else the output of a call.
    fn maker(&self, digest: &Digest, reader: Option<&Entry>) -> Option<Subject<'_>> {
        let files = self.contents.get(digest)?.iter().filter_map(|name| self.subject(name));
        let others = files.filter(|file| Some(file.entry) != reader);
        let rank = |entry: &Entry| match entry {
            Entry::TaskInput(_) => 0,
            Entry::Call(_) => 1,
            Entry::Job(_) => 2,
        };
        others.min_by_key(|file| (rank(file.entry), file.record.at(), file.number))
    }

    fn subject(&self, name: &str) -> Option<Subject<'_>> {
        let RecordedFile { result, number, promise } = self.files.get(name)?;
        let (entry, record) = &self.results[*result];
        Some(Subject { promise, number: *number, entry, record })
    }
}
