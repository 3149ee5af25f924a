//! History: which call made which file, from a read of all records.
//!
//! An input has the name of a file in the record of the call that read it. If that file is not
//! recorded any more, the first file with the same SHA-1 and BLAKE3 is taken. Spoiled records are
//! left out: `ce verify` reports them. Nothing is changed.

mod absent;
pub mod collect;
mod earlier;
mod error;
mod levels;
mod log;
mod origins;
pub mod package;
mod points;
mod recipes;
mod roles;
pub mod status;
mod takeover;
mod texts;
mod usage;

use std::collections::{HashMap, HashSet};
use std::path::Path;

use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

use self::absent::why_absent;
pub use self::earlier::{EarlierCalls, earlier, usual_seconds};
pub use self::error::{HistoryError, MIN_DIGITS};
pub use self::log::{Filter, Past, log, why_none};
pub use self::points::{PointTexts, PointsInTable};
pub use self::recipes::TableSummary;
pub use self::roles::{InputRoles, RolesOfInputs};
pub use self::takeover::{OriginalExecution, TakenOver};
pub use self::texts::{InputTexts, suspended_texts, texts};
pub use self::usage::{ResourceUsage, resource_usage};
use ce_model::digest::Digest;
use ce_storage::records::{CallRecord, RecipeFile};
use ce_storage::{
    Entry, ExpectedFile, Record, RecordState, Storage, StorageError, Survey, split_member,
};

/// All records of results.
#[derive(Debug)]
pub struct History {
    results: Vec<(Entry, Record)>,
    /// The files of all results, by name.
    files: HashMap<String, RecordedFile>,
    /// The files with some content.
    contents: HashMap<Digest, Vec<String>>,
    /// The results that tables were made from, by the index of the table, once recipes were read.
    made_from: HashMap<usize, Vec<usize>>,
}

/// A recorded file: the index of its result, and its number there.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RecordedFile {
    result: usize,
    number: usize,
    promise: ExpectedFile,
}

/// A recorded file and its record.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The file.
    pub promise: &'a ExpectedFile,
    /// Its number in the result.
    pub number: usize,
    /// The result.
    pub entry: &'a Entry,
    /// Its record.
    pub record: &'a Record,
}

/// A line of a file's ancestry: an input of the result above it.
#[derive(Clone, Debug)]
pub struct Ancestor<'a> {
    /// The number of results between it and the file, plus one.
    pub depth: usize,
    /// The number of the input.
    pub number: usize,
    /// Its digest.
    pub digest: Digest,
    /// The file, if its maker is known.
    pub subject: Option<Subject<'a>>,
    /// The path within the subject, if that is a directory of which only a member was read.
    pub member: Option<String>,
    /// Its own inputs are listed at an earlier occurrence.
    pub again: bool,
    /// The number of its own inputs that are not listed, if it is a table of many.
    pub omitted: usize,
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
            Ok(RecordState::Valid(record)) => Some(Ok((entry.clone(), record))),
            Ok(RecordState::Spoiled | RecordState::Absent) => None,
            Err(error) => Some(Err(error)),
        };
        let results: Vec<_> = entries.par_iter().filter_map(read).collect::<Result<_, _>>()?;
        let mut history = Self {
            results,
            files: HashMap::new(),
            contents: HashMap::new(),
            made_from: HashMap::new(),
        };
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

    /// Returns the file with this path, or with a SHA-1 that begins with these digits.
    ///
    /// # Errors
    ///
    /// Fails if there is none, or more than one content.
    pub fn find(&self, storage: &Storage, file: &str) -> Result<Subject<'_>, HistoryError> {
        let plain: std::path::PathBuf = Path::new(file).components().collect();
        let names = [plain.to_str().map(str::to_owned), storage.name_of(Path::new(file))];
        let first_output = |name: &String| self.subject(&Entry::of_short(name)?.file(0));
        let subject = |name: &String| self.subject(name).or_else(|| first_output(name));
        if let Some(subject) = names.iter().flatten().find_map(subject) {
            return Ok(subject);
        }
        if let Some(why) = names.iter().flatten().find_map(|name| why_absent(storage, name, file)) {
            return Err(why);
        }
        let unknown = || HistoryError::Unknown(file.to_owned());
        let digits = file.to_ascii_lowercase();
        if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(unknown());
        }
        if digits.len() < MIN_DIGITS {
            return Err(HistoryError::TooShort(digits));
        }
        let contents = self.with_digits(&digits);
        match contents[..] {
            [digest] => self.maker(digest, None).ok_or_else(unknown),
            [] => Err(unknown()),
            _ => {
                let found = contents.iter().map(|digest| digest.sha1.full()).collect();
                Err(HistoryError::Ambiguous { digits, found })
            }
        }
    }

    /// A directory with each recorded contents of one.
    pub fn directories(&self) -> impl Iterator<Item = Subject<'_>> {
        let directories = self.contents.keys().filter(|digest| digest.is_directory());
        directories.filter_map(|digest| self.maker(digest, None))
    }

    /// The recorded contents whose SHA-1 begins with these digits.
    pub fn with_digits(&self, digits: &str) -> Vec<&Digest> {
        let mut contents: Vec<&Digest> =
            self.contents.keys().filter(|it| it.sha1.full().starts_with(digits)).collect();
        contents.sort_unstable_by_key(|digest| digest.sha1);
        contents
    }

    /// Returns everything that a file was made from, each result before its inputs.
    ///
    /// The inputs of a result are listed once, at its first occurrence. Of a table, the first
    /// [`LISTED`](Self::LISTED) different outputs are its inputs.
    ///
    /// # Errors
    ///
    /// Fails if the recipe of a table cannot be read.
    pub fn ancestry<'a>(
        &'a self,
        storage: &Storage,
        subject: Subject<'a>,
    ) -> Result<Vec<Ancestor<'a>>, StorageError> {
        let mut ancestry = Vec::new();
        let mut listed: HashSet<&Entry> = HashSet::from([subject.entry]);
        let (mut stack, _) = self.inputs(storage, subject, 1)?;
        while let Some(mut ancestor) = stack.pop() {
            if let Some(subject) = ancestor.subject {
                // The recipe of a table is not read again.
                let again = !listed.insert(subject.entry);
                if again && matches!(subject.record, Record::Table(_)) {
                    ancestor.again = true;
                } else {
                    let (inputs, omitted) = self.inputs(storage, subject, ancestor.depth + 1)?;
                    ancestor.again = again && !inputs.is_empty();
                    if !ancestor.again {
                        ancestor.omitted = omitted;
                        stack.extend(inputs);
                    }
                }
            }
            ancestry.push(ancestor);
        }
        Ok(ancestry)
    }

    /// Returns what a file's result was made from directly, in order: the inputs of a call, the output of a call that a
    /// job's output is. Of a table, the first [`LISTED`](Self::LISTED) outputs.
    ///
    /// # Errors
    ///
    /// Fails if the recipe of a table cannot be read.
    pub fn parents<'a>(
        &'a self,
        storage: &Storage,
        subject: Subject<'a>,
    ) -> Result<Vec<Ancestor<'a>>, StorageError> {
        let (mut parents, _) = self.inputs(storage, subject, 1)?;
        parents.reverse();
        Ok(parents)
    }

    /// Returns the inputs of a file's result, the last one first, and how many more there are.
    fn inputs<'a>(
        &'a self,
        storage: &Storage,
        subject: Subject<'a>,
        depth: usize,
    ) -> Result<(Vec<Ancestor<'a>>, usize), StorageError> {
        let ancestor = |number, digest, subject, name: Option<&str>| {
            let member = name.and_then(|name| split_member(name).1).map(str::to_owned);
            Ancestor { depth, number, digest, subject, member, again: false, omitted: 0 }
        };
        let inputs = match subject.record {
            Record::TaskInput(_) => Vec::new(),
            Record::Table(_) => {
                let Some(summary) = self.summary(storage, subject.entry)? else {
                    return Ok((Vec::new(), 0));
                };
                let files = summary.first.iter().enumerate().rev();
                let inputs = files.map(|(number, RecipeFile { file, digest })| {
                    ancestor(number, *digest, self.recorded(file, digest), Some(file))
                });
                return Ok((inputs.collect(), summary.files - summary.first.len()));
            }
            Record::Job(job) => {
                let output = job.outputs.get(subject.number).map(|output| {
                    let file = &output.file;
                    ancestor(subject.number, output.digest, self.subject(file), Some(file))
                });
                output.into_iter().collect()
            }
            Record::Call(call) => {
                let inputs = call.inputs.iter().enumerate().rev();
                inputs
                    .map(|(number, digest)| {
                        let input = self.input(subject.entry, call, number, digest);
                        let name = call.execution().and_then(|it| it.argv.get(number + 1));
                        ancestor(number, *digest, input, name.map(String::as_str))
                    })
                    .collect()
            }
        };
        Ok((inputs, 0))
    }

    /// The file of a call's input: the named one, or else the first one with its contents.
    fn input(
        &self,
        entry: &Entry,
        call: &CallRecord,
        number: usize,
        digest: &Digest,
    ) -> Option<Subject<'_>> {
        self.named(call, number, digest).or_else(|| self.maker(digest, Some(entry)))
    }

    /// The file that an execution read as an input, if it is still recorded with the same contents.
    fn named(&self, call: &CallRecord, number: usize, digest: &Digest) -> Option<Subject<'_>> {
        self.same(call.execution()?.argv.get(number + 1)?, digest)
    }

    /// The file of this name, if it is still recorded with the same contents.
    fn same(&self, name: &str, digest: &Digest) -> Option<Subject<'_>> {
        let (value, member) = split_member(name);
        let subject = self.subject(value)?;
        // The contents of a member are not recorded.
        Some(subject).filter(|subject| member.is_some() || subject.promise.digest == *digest)
    }

    /// All files with some contents.
    pub fn with_contents(&self, digest: &Digest) -> impl Iterator<Item = Subject<'_>> {
        self.contents.get(digest).into_iter().flatten().filter_map(|name| self.subject(name))
    }

    /// The first file with some contents: a task input, or else the output of a call. It is not one
    /// of `reader`.
    pub fn maker(&self, digest: &Digest, reader: Option<&Entry>) -> Option<Subject<'_>> {
        let others = self.with_contents(digest).filter(|file| Some(file.entry) != reader);
        let rank = |entry: &Entry| match entry {
            Entry::TaskInput(_) => 0,
            Entry::Call(_) => 1,
            Entry::Table(_) => 2,
            Entry::Job(_) => 3,
        };
        others.min_by_key(|file| (rank(file.entry), file.record.at(), file.number))
    }

    /// The file of this name, or the directory that a file of this name is a member of.
    pub fn subject(&self, name: &str) -> Option<Subject<'_>> {
        let RecordedFile { result, number, promise } = self.files.get(split_member(name).0)?;
        let (entry, record) = &self.results[*result];
        Some(Subject { promise, number: *number, entry, record })
    }
}
