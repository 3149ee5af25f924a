//! History: which call made which file, from a read of all records.
//!
//! An input has the name of a file in the record of the call that read it. If that file is not
//! recorded any more, the first file with the same SHA-1 and BLAKE3 is taken. Spoiled records are
//! left out: `ce verify` reports them. Nothing is changed.

mod call_log;
pub mod collect;
mod input_roles;
pub mod output_directory;
pub mod package;
mod recorded_points;

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::path::Path;

use self::output_directory::digest_of_output;
use ce_model::digest::{Digest, Sha1};
use ce_model::exit::Explain;
use ce_model::humanize::counted;
use ce_model::shared_text::SharedText;
use ce_storage::records::{CallRecord, Provenance, RecipeFile};
use ce_storage::{
    Entry, ExpectedFile, Locator, Maintenance, Record, ResultName, Storage, StorageError, Survey,
    Suspension, split_member,
};
use hashbrown::HashTable;
use jiff::Timestamp;
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use rayon::slice::ParallelSliceMut;

pub use self::call_log::{
    EarlierCalls, Filter, FirstPublished, OriginalExecution, Past, PublishedExecution,
    ResourceUsage, SuspendedFact, TakenOver, earlier, log, resource_usage, suspended,
    usual_seconds, why_none,
};
pub use self::input_roles::{InputRoles, RolesOfInputs};
pub use self::recorded_points::{
    InputTexts, PointTexts, PointsInTable, TableSummary, suspended_texts, texts, texts_of,
    texts_of_rows,
};

/// The number of records that are read before they are put to the others.
const READ_AT_ONCE: usize = 10_000;

/// All records of results.
#[derive(Debug)]
pub struct History {
    results: Vec<(Entry, Record)>,
    /// The indices of the results, by their entries.
    places: HashTable<u32>,
    hashing: RandomState,
    /// The files of all results, sorted by the SHA-1 of their contents.
    contents: Vec<FileWithContents>,
    /// The results that tables were made from, by the index of the table, once recipes were read.
    made_from: HashMap<usize, Vec<usize>>,
    /// The tables that were made from a result which is not recorded any more.
    incomplete: HashSet<usize>,
}

/// A recorded file: the SHA-1 of its contents, the index of its result, and its number there.
type FileWithContents = (Sha1, u32, u8);

/// A recorded file and its record.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// Its number in the result.
    pub number: usize,
    /// Its contents.
    pub digest: &'a Digest,
    /// The result.
    pub entry: &'a Entry,
    pub record: &'a Record,
    /// The index of the result.
    result: usize,
}

impl Subject<'_> {
    /// The name of the file, relative to the storage.
    pub fn file(&self) -> String {
        self.entry.name_of_file(self.record, self.number)
    }

    /// The file as its record promises it.
    pub fn promise(&self) -> ExpectedFile {
        self.entry.expected_file(self.record, self.number, *self.digest)
    }
}

/// A line of a file's ancestry: an input of the result above it.
#[derive(Clone, Debug)]
pub struct Ancestor<'a> {
    /// The number of results between it and the file, plus one.
    pub depth: usize,
    /// The number of the input.
    pub number: usize,
    pub digest: Digest,
    /// The file, if its maker is known.
    pub subject: Option<Subject<'a>>,
    /// The path within the subject, if the subject is a directory and only a member of it was read.
    pub member: Option<String>,
    /// Its own inputs are listed at an earlier occurrence.
    pub again: bool,
    /// The number of its own inputs that are not listed, if it is a table of many.
    pub omitted: usize,
}

impl Ancestor<'_> {
    /// The name of the file, or of the member that was read of it, if its maker is known.
    pub fn file(&self) -> Option<String> {
        let file = self.subject?.file();
        Some(match &self.member {
            Some(member) => format!("{file}/{member}"),
            None => file,
        })
    }
}

impl History {
    /// Reads all records of a storage.
    pub fn read(storage: &Storage) -> Result<Self, StorageError> {
        let entries = Survey::new(storage).entries()?;
        let mut results = Vec::with_capacity(entries.len());
        let mut entries = entries.into_iter();
        while entries.len() > 0 {
            // Threads collect a part in memory of their own.
            let part: Vec<Entry> = entries.by_ref().take(READ_AT_ONCE).collect();
            let read = part.into_par_iter().map(|entry| {
                let record = storage.records().read_entry(&entry)?;
                Ok(record.ok().map(|record| (entry, record)))
            });
            results.extend(read.collect::<Result<Vec<_>, StorageError>>()?.into_iter().flatten());
        }
        let hashing = RandomState::new();
        let mut places = HashTable::with_capacity(results.len());
        let mut contents = Vec::with_capacity(results.len());
        for (result, (entry, record)) in (0..).zip(&results) {
            let hash = |at: &u32| hashing.hash_one(&results[*at as usize].0);
            places.insert_unique(hashing.hash_one(entry), result, hash);
            let digests = (0..).zip(record.digests());
            contents.extend(digests.map(|(number, digest)| (digest.sha1, result, number)));
        }
        contents.par_sort_unstable();
        Ok(Self {
            results,
            places,
            hashing,
            contents,
            made_from: HashMap::new(),
            incomplete: HashSet::new(),
        })
    }

    /// Returns every result with its record, sorted by name.
    pub fn results(&self) -> &[(Entry, Record)] {
        &self.results
    }

    /// Whether a result is recorded.
    pub fn has(&self, entry: &Entry) -> bool {
        self.place(entry).is_some()
    }

    /// The index of a result.
    fn place(&self, entry: &Entry) -> Option<usize> {
        let hash = self.hashing.hash_one(entry);
        Some(*self.places.find(hash, |at| self.results[*at as usize].0 == *entry)? as usize)
    }

    /// A file of a result.
    fn file_of(&self, result: usize, number: usize) -> Option<Subject<'_>> {
        let (entry, record) = self.results.get(result)?;
        Some(Subject { number, digest: record.digest(number)?, entry, record, result })
    }

    /// Files of the list of contents.
    fn files<'a>(
        &'a self,
        files: impl Iterator<Item = &'a FileWithContents>,
    ) -> impl Iterator<Item = Subject<'a>> {
        files.filter_map(|(_, result, number)| self.file_of(*result as usize, (*number).into()))
    }

    /// Returns the file with this path, or with a SHA-1 that begins with these digits.
    ///
    /// # Errors
    ///
    /// Fails if no file matches, or files with different contents do.
    pub fn find(&self, storage: &Storage, file: &str) -> Result<Subject<'_>, HistoryError> {
        let locator = Locator::new(storage);
        let found = locator.find(Path::new(file), |name| {
            self.subject(name).or_else(|| self.subject(&Entry::of_short(name)?.file(0)))
        });
        let found = found.or_else(|| self.maker(&digest_of_output(Path::new(file))?, None));
        if let Some(subject) = found {
            return Ok(subject);
        }
        if let Some(why) = locator.find(Path::new(file), |name| why_absent(storage, name, file)) {
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
        let directories =
            self.files(self.contents.iter()).filter(|file| file.digest.is_directory());
        let mut last = None;
        directories.filter_map(move |file| {
            let is_new = last.replace(file.digest) != Some(file.digest);
            self.maker(file.digest, None).filter(|_| is_new)
        })
    }

    /// The recorded contents whose SHA-1 begins with these digits.
    pub fn with_digits(&self, digits: &str) -> Vec<&Digest> {
        let files = self.contents.iter().filter(|(sha1, ..)| sha1.full().starts_with(digits));
        let mut contents: Vec<&Digest> = self.files(files).map(|file| file.digest).collect();
        contents.dedup();
        contents
    }

    /// Returns everything that a file was made from, each result before its inputs.
    ///
    /// The inputs of a result are listed once, at its first occurrence. The first [`LISTED`](Self::LISTED) different
    /// outputs of a table are its inputs.
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

    /// Returns the direct ancestors of a file's result, in order: the inputs of a call, the output of a call that a job's
    /// output is. The first [`LISTED`](Self::LISTED) outputs of a table.
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
                        ancestor(number, *digest, input, name)
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
        Some(subject).filter(|subject| member.is_some() || subject.digest == digest)
    }

    /// All files with some contents.
    pub fn with_contents<'a>(&'a self, digest: &Digest) -> impl Iterator<Item = Subject<'a>> {
        let begin = self.contents.partition_point(|(sha1, ..)| *sha1 < digest.sha1);
        let same = self.contents[begin..].partition_point(|(sha1, ..)| *sha1 == digest.sha1);
        let digest = *digest;
        self.files(self.contents[begin..begin + same].iter())
            .filter(move |file| *file.digest == digest)
    }

    /// The first file with some contents: a task input, or else the output of a call. It is not one
    /// of `reader`.
    pub fn maker(&self, digest: &Digest, reader: Option<&Entry>) -> Option<Subject<'_>> {
        let others = self.with_contents(digest).filter(|file| Some(file.entry) != reader);
        others.min_by_key(|file| {
            let rank = match file.entry {
                Entry::TaskInput(_) => 0,
                Entry::Call(_) => 1,
                Entry::Table(_) => 2,
                Entry::Job(_) => 3,
            };
            (rank, file.record.at(), file.number)
        })
    }

    /// The file of this name, or the directory that a file of this name is a member of.
    pub fn subject(&self, name: &str) -> Option<Subject<'_>> {
        let name = split_member(name).0;
        let result = self.place(&Entry::of_file(name)?)?;
        let mut files = (0..).map_while(|number| self.file_of(result, number));
        files.find(|file| file.file() == name)
    }
}

impl History {
    /// Returns for each result whether it is one of the given results, or one of them was made from it. The origins of
    /// tables count if [recipes were read](Self::with_recipes).
    pub fn with_origins<'a>(&'a self, wanted: impl Iterator<Item = &'a Entry>) -> Vec<bool> {
        let mut found = vec![false; self.results.len()];
        let mut stack: Vec<usize> = wanted.filter_map(|entry| self.place(entry)).collect();
        while let Some(at) = stack.pop() {
            if !std::mem::replace(&mut found[at], true) {
                stack.extend(self.origins(at));
                stack.extend(self.made_from.get(&at).into_iter().flatten());
            }
        }
        found
    }

    /// Returns the results that the directories of a result are links to, directly or by way of others.
    pub fn linked(&self, entry: &Entry) -> Vec<Entry> {
        let mut linked: Vec<Entry> = Vec::new();
        let mut next = Some(entry.clone());
        while let Some(entry) = next.take() {
            let subject = self.subject(&entry.file(0));
            if let Some(Record::Call(call)) = subject.map(|subject| subject.record)
                && let Some(source) = call.linked()
                && !linked.contains(&source)
            {
                linked.push(source.clone());
                next = Some(source);
            }
        }
        linked
    }

    /// The index of the result that a call was taken over from. Later findings about it apply to the call, too.
    fn original(&self, call: &CallRecord) -> Option<usize> {
        self.place(&Entry::of_short(call.origin.taken_over()?)?)
    }

    /// The recorded result with the same outputs that a call was taken over from, directly or by way of others.
    fn first_original(&self, entry: &Entry, call: &CallRecord) -> Option<&(Entry, Record)> {
        let outputs =
            |call: &CallRecord| call.outputs.iter().map(|it| it.digest).collect::<Vec<_>>();
        let (mut found, mut seen) = (self.results.get(self.place(entry)?)?, HashSet::new());
        while let (entry, Record::Call(copy)) = found
            && seen.insert(entry)
            && let Some(at) = self.original(copy)
            && let Some(source @ (_, Record::Call(original))) = self.results.get(at)
            && outputs(original) == outputs(call)
        {
            found = source;
        }
        Some(found)
    }

    /// The results that a table was made from directly; `None` unless all of them are recorded, and
    /// [recipes were read](Self::with_recipes).
    fn rows(&self, table: &Entry) -> Option<impl Iterator<Item = &(Entry, Record)>> {
        let at = self.place(table).filter(|at| !self.incomplete.contains(at))?;
        Some(self.made_from.get(&at)?.iter().map(|at| &self.results[*at]))
    }

    /// The indices of the results that a result was made from directly. For a job, all its calls. Empty for a table,
    /// since its recipe names them.
    fn origins(&self, result: usize) -> Vec<usize> {
        let (entry, record) = &self.results[result];
        match record {
            Record::Table(_) | Record::TaskInput(_) => Vec::new(),
            Record::Call(call) => {
                let inputs = call.inputs.iter().enumerate();
                let inputs =
                    inputs.filter_map(|(number, digest)| self.input(entry, call, number, digest));
                inputs.map(|subject| subject.result).chain(self.original(call)).collect()
            }
            Record::Job(job) => {
                let calls = job.calls.iter().filter_map(|call| self.place(&Entry::of_short(call)?));
                let outputs = job.outputs.iter().filter_map(|output| self.subject(&output.file));
                let inputs = job.inputs.iter().filter_map(|it| self.maker(&it.digest, None));
                calls.chain(outputs.chain(inputs).map(|file| file.result)).collect()
            }
        }
    }
}

/// Returns why a file of this name in the storage has no record, if that is known. Unreadable records are treated as
/// absent.
fn why_absent(storage: &Storage, name: &str, file: &str) -> Option<HistoryError> {
    let file = file.to_owned();
    let call = ResultName::of_suspended(name).or_else(|| ResultName::of_call_file(name));
    if let Some(call) = &call {
        if let Ok(Some(Suspension { name, record })) = storage.suspensions().read(call) {
            let (call, since) = (name.short(), record.since);
            return Some(HistoryError::Suspended { file, call, since });
        }
        if let Some(record) = storage.attempts().prior(call, None).and_then(|it| it.failure) {
            let (call, at, reason) = (call.short(), record.recorded.at, record.failure.reason);
            return Some(HistoryError::Failed { file, call, at, reason });
        }
    }
    let collected = Maintenance::new(storage).tombstone(name).ok().flatten()?;
    let Provenance { at, user, host, .. } = collected;
    Some(HistoryError::Collected { file, at, user, host })
}

/// The least number of digits that identify a content.
pub const MIN_DIGITS: usize = 4;

/// The largest number of calls that an error names.
const NAMED: usize = 20;

/// The reason why a file has no history.
#[derive(Debug, thiserror::Error, Explain)]
pub enum HistoryError {
    /// No recorded file has this name.
    #[error("{0} has no record")]
    #[hint("give the path of an output or task input, or digits of its SHA-1; ce log lists calls")]
    Unknown(String),
    /// The call that makes it is suspended.
    #[error("{file} is not there yet: the call {call} is suspended since {since:.0}")]
    #[hint("ce status --ask says how it stands")]
    Suspended {
        /// The requested file.
        file: String,
        /// The short name of the call.
        call: String,
        /// When it was begun.
        since: Timestamp,
    },
    /// The call that makes it has failed.
    #[error("{file} was not made: the call {call} failed at {at:.0}: {reason}")]
    #[hint("give --log, too: ce show --log prints what exec has printed")]
    Failed {
        /// The requested file.
        file: String,
        /// The short name of the call.
        call: String,
        /// When that was recorded.
        at: Timestamp,
        /// The reason, in words.
        reason: String,
    },
    /// The file was collected.
    #[error("{file} was collected at {at:.0} by {user} on {host}")]
    #[hint("run its task again, which makes it again")]
    Collected {
        /// The requested file.
        file: String,
        /// The time of the collection.
        at: Timestamp,
        /// The user who collected it.
        user: SharedText,
        /// The host that collected it.
        host: SharedText,
    },
    /// Nothing is known of a call.
    #[error("{0} does not name a call that has ended or is running")]
    #[hint("ce log lists calls, and ce status those that are executed now")]
    NoCall(String),
    /// The inputs of several calls have these digits.
    #[error("the inputs of {} calls begin with {digits}: {}", found.len(), found.join(", "))]
    #[hint("give more digits")]
    Calls {
        /// The requested digits.
        digits: String,
        /// The short names of the calls.
        found: Vec<String>,
    },
    /// Several calls have this name.
    #[error("{} calls are named {text}: {}", found.len(), list_names(found))]
    #[hint("give the name of one of them, without what it has read")]
    CallsOf {
        /// The requested name: a computation's name, or a label.
        text: String,
        /// The short names of the calls, with the texts that they read.
        found: Vec<String>,
    },
    /// A label has a computation that other labels have, too, so a call of that may be theirs.
    #[error("{} of {computation}, the computation of {label}: {}", counted(found.len(), "call"), list_names(found))]
    #[hint(
        "give the name of one of them: other labels have that computation, too, and no record tells the label of a call"
    )]
    SharedComputation {
        /// The requested label.
        label: String,
        /// The name of the computation.
        computation: String,
        /// The short names of its calls, with the texts that they read.
        found: Vec<String>,
    },
    /// Too few digits are given.
    #[error("{0} is too short: {MIN_DIGITS} or more digits of a SHA-1 name a result")]
    #[hint("give more digits, or the path of an output in the storage")]
    TooShort(String),
    /// Several contents have these digits.
    #[error("the SHA-1 of {} contents begin with {digits}: {}", found.len(), found.join(", "))]
    #[hint("give more digits")]
    Ambiguous {
        /// The requested digits.
        digits: String,
        /// The SHA-1 of the contents.
        found: Vec<String>,
    },
}

/// The first of some names.
fn list_names(names: &[String]) -> String {
    let more = match names.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    names[..names.len().min(NAMED)].join(", ") + &more
}
