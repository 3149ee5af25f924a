//! Collection: what nobody needs any more is taken away, and a tombstone stays.
//!
//! What is kept, is kept with everything that it was made from: a workflow that is evaluated again
//! looks for its calls from the leaves up. What a run that goes on uses is kept, too.

mod repositories;

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use jiff::Timestamp;

pub use self::repositories::{Presence, RepositoryError, forget, not_kept, reach_of_recorded};
use crate::git::ReachableSet;
use crate::questions::history::History;
use crate::storage::{
    Entry, Maintenance, Pins, Read, Record, Retired, Storage, StorageError, Survey,
};

/// What is to be kept. A result goes if neither holds it.
#[derive(Debug, Default)]
pub struct CollectRequest {
    /// What belongs to commits that some repositories reach.
    pub reach: Option<ReachableSet>,
    /// What was recorded since.
    pub since: Option<Timestamp>,
}

/// A result that nothing keeps.
#[derive(Debug)]
pub struct Candidate<'a> {
    /// The result.
    pub entry: &'a Entry,
    /// Its record.
    pub record: &'a Record,
    /// What its own files contain, in bytes.
    pub bytes: u64,
    /// How long it was computed, in seconds; nothing was, if it is no call that was executed.
    pub seconds: f64,
}

/// What became of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It was taken away.
    Collected,
    /// It is in use, or was pinned meanwhile.
    Kept,
}

impl CollectRequest {
    fn keeps(&self, record: &Record) -> bool {
        let reached = |reach: &ReachableSet| match record {
            Record::Call(call) => reach.has(&call.commit),
            Record::Job(job) => reach.has(&job.commit),
            Record::TaskInput(_) => false,
        };
        self.reach.as_ref().is_some_and(reached)
            || self.since.is_some_and(|since| record.at() >= since)
    }
}

/// Returns what nothing keeps, sorted by name.
///
/// # Errors
///
/// Fails if the storage cannot be read.
pub fn candidates<'a>(
    storage: &Storage,
    history: &'a History,
    request: &CollectRequest,
) -> Result<Vec<Candidate<'a>>, StorageError> {
    let pinned: Vec<Entry> =
        Pins::new(storage).all()?.into_iter().map(|(entry, _)| entry).collect();
    let literals = request.reach.iter().flat_map(ReachableSet::literals);
    let literals: Vec<Entry> = literals.filter_map(Entry::of_file).collect();
    let kept = history.results().iter().filter(|(_, record)| request.keeps(record));
    let kept = kept.map(|(entry, _)| entry).chain(&pinned).chain(&literals);
    let kept = history.with_origins(kept);
    let results = history.results().iter().zip(kept);
    let gone = results.filter(|(_, kept)| !kept).map(|((entry, record), _)| Candidate {
        entry,
        record,
        bytes: bytes(record),
        seconds: seconds(history, record),
    });
    Ok(gone.collect())
}

/// Candidates that the same tasks have used.
#[derive(Debug)]
pub struct Group<'a> {
    /// The tasks of the recorded jobs that they belong to; none if they belong to no job.
    pub tasks: Vec<&'a str>,
    /// The candidates, sorted by name.
    pub candidates: Vec<&'a Candidate<'a>>,
}

/// Groups candidates by the tasks that have used them, sorted; last come those of no recorded job.
pub fn groups<'a>(history: &'a History, candidates: &'a [Candidate<'a>]) -> Vec<Group<'a>> {
    let mut jobs: BTreeMap<&str, Vec<&Entry>> = BTreeMap::new();
    for (entry, record) in history.results() {
        if let Record::Job(job) = record {
            jobs.entry(job.task.as_str()).or_default().push(entry);
        }
    }
    let mut tasks: HashMap<&Entry, Vec<&str>> = HashMap::new();
    for (task, jobs) in jobs {
        let used = history.results().iter().zip(history.with_origins(jobs.into_iter()));
        for ((entry, _), _) in used.filter(|(_, used)| *used) {
            tasks.entry(entry).or_default().push(task);
        }
    }
    let mut groups: BTreeMap<(bool, Vec<&str>), Vec<&Candidate<'_>>> = BTreeMap::new();
    for candidate in candidates {
        let tasks = tasks.get(candidate.entry).cloned().unwrap_or_default();
        groups.entry((tasks.is_empty(), tasks)).or_default().push(candidate);
    }
    let group = |((_, tasks), candidates)| Group { tasks, candidates };
    groups.into_iter().map(group).collect()
}

fn bytes(record: &Record) -> u64 {
    match record {
        Record::Call(call) => {
            // A spoiled record may promise more than there can be.
            call.outputs.iter().map(|output| output.digest.size).fold(0, u64::saturating_add)
        }
        // Its outputs are links to those of its calls.
        Record::Job(_) => 0,
        Record::TaskInput(input) => input.file.digest.size,
    }
}

/// How long it was computed. What was taken over was not, unless it is all that is left of it.
fn seconds(history: &History, record: &Record) -> f64 {
    let Record::Call(call) = record else { return 0.0 };
    let source = call.execution().and_then(|execution| execution.taken_over.as_deref());
    let is_there = |source| Entry::of_call(source).is_some_and(|source| history.has(&source));
    if source.is_some_and(is_there) { 0.0 } else { call.seconds().unwrap_or_default() }
}

/// Takes candidates away, unless somebody uses them; goes on with what an earlier collection that
/// died has begun. Tells the fate of each.
///
/// # Errors
///
/// Fails if the storage cannot be read or written.
pub fn collect(
    storage: &Storage,
    history: &History,
    candidates: &[Candidate<'_>],
    tell: &mut dyn FnMut(&Entry, Fate),
) -> Result<(), StorageError> {
    Survey::new(storage).check_no_links()?;
    let mut retired: VecDeque<Retired<'_>> = Maintenance::new(storage).half_collected()?.into();
    for Candidate { entry, record, .. } in candidates {
        match Maintenance::new(storage).retire(entry, record)? {
            Some(one) => retired.push_back(one),
            None => tell(entry, Fate::Kept),
        }
    }
    // On the disk, what has a record has its files.
    storage.flush()?;
    let mut roots = storage.gc_roots()?;
    let known: HashSet<&Entry> = history.results().iter().map(|(entry, _)| entry).collect();
    for job in Survey::new(storage).jobs()?.iter().filter(|job| !known.contains(job)) {
        // Somebody was done meanwhile with what was found before it was retired.
        if let Read::Record(Record::Job(job)) = storage.records().read_entry(job)? {
            roots.add_job(&job);
        }
    }
    while let Some(one) = retired.pop_front() {
        let entry = one.entry().clone();
        if one.is_wanted(&roots)? {
            one.restore()?;
            tell(&entry, Fate::Kept);
        } else {
            one.discard()?;
            tell(&entry, Fate::Collected);
        }
    }
    Maintenance::new(storage).remove_unused_trees(&trees(history, candidates))?;
    storage.flush()
}

/// The trees of computations that have results which are no candidates.
fn trees<'a>(history: &'a History, candidates: &[Candidate<'_>]) -> HashSet<&'a str> {
    let gone: HashSet<&Entry> = candidates.iter().map(|candidate| candidate.entry).collect();
    let stay = history.results().iter().filter(|(entry, _)| !gone.contains(entry));
    let tree = |(_, record): &'a (Entry, Record)| match record {
        Record::Call(call) => Some(call.tree.full()),
        Record::Job(_) | Record::TaskInput(_) => None,
    };
    stay.filter_map(tree).collect()
}
