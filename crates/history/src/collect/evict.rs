//! Freeing space without losing records: choosing the calls whose outputs can be made or fetched again, and evicting
//! these.

use std::collections::{HashMap, HashSet};
use std::mem;
use std::path::Path;

use ce_git::{Code, ReachableSet, Trees};
use ce_model::digest::{Digest, ObjectId};
use ce_model::task::NONDETERMINISTIC;
use ce_storage::records::CallRecord;
use ce_storage::{
    Entry, KnownRepositories, Maintenance, Pins, Record, Storage, StorageError, Survey,
    split_member,
};
use jiff::Timestamp;

use super::Presence;
use super::{
    Candidate, Fate, InUse, begin, bytes, inputs_of_suspended, seconds, take_away_in_batches,
};
use crate::History;

/// Returns the calls whose outputs are here and may be made away, sorted by name. Outputs stay that are pinned, with
/// everything that they were made from, that suspended calls read, that jobs read as literals, that others are links
/// to, or that were recorded since a time.
pub fn evictable<'a>(
    storage: &Storage,
    history: &'a History,
    since: Option<Timestamp>,
) -> Result<Vec<Candidate<'a>>, StorageError> {
    let pinned: Vec<Entry> = Pins::new(storage).all()?.into_iter().map(|(it, _)| it).collect();
    let read = inputs_of_suspended(storage)?;
    let results = history.results();
    let linked = results.iter().filter_map(|(_, record)| match record {
        Record::Call(call) => call.linked(),
        _ => None,
    });
    let literals = results.iter().flat_map(|(_, record)| match record {
        Record::Job(job) => job.literals.as_deref().unwrap_or_default(),
        _ => &[],
    });
    let literals = literals.filter_map(|literal| Entry::of_file(&literal.file));
    let stay: HashSet<Entry> = read.into_iter().chain(linked).chain(literals).collect();
    let kept = history.with_origins(pinned.iter());
    let mut candidates = Vec::new();
    for ((entry, record), _) in results.iter().zip(kept).filter(|(_, kept)| !kept) {
        let Record::Call(call) = record else { continue };
        let is_young = since.is_some_and(|since| record.at().is_none_or(|at| at >= since));
        let may_leave = !call.dirty && !call.outputs.is_empty() && call.linked().is_none();
        if is_young || stay.contains(entry) || !may_leave || !is_here(storage, entry, record)? {
            continue;
        }
        let (bytes, seconds) = (bytes(history, record), seconds(history, record));
        candidates.push(Candidate { entry, record, bytes, seconds });
    }
    Ok(candidates)
}

/// Whether all files of a result are there.
pub(super) fn is_here(
    storage: &Storage,
    entry: &Entry,
    record: &Record,
) -> Result<bool, StorageError> {
    let mut files = entry.expected_files(record).into_iter();
    files.try_fold(true, |here, file| Ok(here && storage.has(&file.name)?))
}

/// Keeps the candidates whose outputs can be made again, byte for byte: they are repeatable, and all that they read is here
/// or can be made again.
pub fn recomputable<'a>(
    storage: &Storage,
    history: &History,
    candidates: Vec<Candidate<'a>>,
) -> Result<Vec<Candidate<'a>>, StorageError> {
    let chosen: HashSet<&Entry> = candidates.iter().map(|it| it.entry).collect();
    let mut repeatable = RepeatableCalls::new(storage)?;
    let mut made = Remakeable::default();
    for (entry, record) in history.results() {
        let is_made = match record {
            Record::Call(call) if repeatable.has(call) => {
                let is_here = is_here(storage, entry, record)?;
                // Outputs that stay need not be made again.
                chosen.contains(entry) || !is_here
            }
            _ => false,
        };
        match record {
            Record::Call(call) if is_made => made.waiting.push((entry, call)),
            Record::Call(_) | Record::TaskInput(_) if is_here(storage, entry, record)? => {
                let files = entry.expected_files(record);
                made.known.extend(files.iter().map(|file| file.digest));
            }
            _ => {}
        }
    }
    let makeable = made.settle(|entry| chosen.contains(entry));
    Ok(candidates.into_iter().filter(|it| makeable.contains(it.entry)).collect())
}

/// The search for calls that can be made again from the contents that are here.
#[derive(Default)]
struct Remakeable<'a> {
    /// The contents that are here, or can be made.
    known: HashSet<Digest>,
    /// Calls that may turn out to be makeable.
    waiting: Vec<(&'a Entry, &'a CallRecord)>,
}

impl<'a> Remakeable<'a> {
    /// Returns the calls that can be made again. Outputs that are here but cannot be made again stay, and others may be
    /// made from them.
    fn settle(mut self, is_here: impl Fn(&Entry) -> bool) -> HashSet<&'a Entry> {
        let mut makeable = HashSet::new();
        loop {
            self.make(&mut makeable);
            let produced: HashSet<Digest> =
                self.waiting.iter().flat_map(|(_, call)| outputs(call)).collect();
            let waiting = mem::take(&mut self.waiting);
            // No call makes one of their inputs.
            let (stuck, waiting): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|(_, call)| {
                call.inputs.iter().any(|it| !self.known.contains(it) && !produced.contains(it))
            });
            self.waiting = waiting;
            if stuck.is_empty() {
                return makeable;
            }
            let staying = stuck.iter().filter(|(entry, _)| is_here(entry));
            self.known.extend(staying.flat_map(|(_, call)| outputs(call)));
        }
    }

    /// Finds all calls that can be made from the known contents.
    fn make(&mut self, makeable: &mut HashSet<&'a Entry>) {
        let mut readers: HashMap<Digest, Vec<usize>> = HashMap::new();
        let mut lacking: Vec<usize> = Vec::with_capacity(self.waiting.len());
        for (at, (_, call)) in self.waiting.iter().enumerate() {
            let inputs: HashSet<&Digest> = call.inputs.iter().collect();
            let unknown: Vec<_> =
                inputs.into_iter().filter(|it| !self.known.contains(it)).collect();
            lacking.push(unknown.len());
            unknown.into_iter().for_each(|it| readers.entry(*it).or_default().push(at));
        }
        let mut ready: Vec<usize> = (0..lacking.len()).filter(|at| lacking[*at] == 0).collect();
        let mut is_made = vec![false; lacking.len()];
        while let Some(at) = ready.pop() {
            let (entry, call) = self.waiting[at];
            is_made[at] = true;
            makeable.insert(entry);
            for output in outputs(call).filter(|output| self.known.insert(*output)) {
                for reader in readers.remove(&output).unwrap_or_default() {
                    lacking[reader] -= 1;
                    if lacking[reader] == 0 {
                        ready.push(reader);
                    }
                }
            }
        }
        let mut is_made = is_made.into_iter();
        self.waiting.retain(|_| !is_made.next().unwrap_or_default());
    }
}

fn outputs(call: &CallRecord) -> impl Iterator<Item = Digest> + '_ {
    call.outputs.iter().map(|output| output.digest)
}

/// Makes the outputs of candidates away, unless they are in use. Reports the fate of each.
pub fn evict(
    storage: &Storage,
    history: &History,
    candidates: &[Candidate<'_>],
    report: &mut dyn FnMut(&Entry, Fate),
) -> Result<(), StorageError> {
    Survey::new(storage).check_no_links()?;
    let maintenance = Maintenance::new(storage);
    // On the disk, no output is missing without a mark.
    let evictions =
        begin(storage, candidates, |it| maintenance.evict(it.entry, it.record), report)?;
    let mut in_use = InUse::read(storage, history, HashSet::new())?;
    let mut gone = HashSet::new();
    take_away_in_batches(&mut in_use, evictions, &mut |entry, fate| {
        gone.extend((fate == Fate::Collected).then(|| entry.clone()));
        report(entry, fate);
    })?;
    // The outputs of jobs that are links to outputs of evicted calls.
    let mut jobs = Vec::new();
    for (entry, record) in history.results() {
        let Record::Job(job) = record else { continue };
        let makers = job.outputs.iter();
        let mut makers = makers.filter_map(|it| Entry::of_file(split_member(&it.file).0));
        if makers.any(|maker| gone.contains(&maker)) {
            jobs.extend(maintenance.evict(entry, record)?);
        }
    }
    storage.flush()?;
    take_away_in_batches(&mut in_use, jobs, &mut |_, _| ())?;
    storage.flush()
}

/// The declarations of the recorded repositories about computations. A repository that cannot be read declares nothing.
#[derive(Default)]
struct RepeatableCalls {
    reach: ReachableSet,
    repositories: Vec<Trees>,
    /// Whether a tree is known, and does not say that its outputs differ each time.
    known: HashMap<ObjectId, bool>,
}

impl RepeatableCalls {
    /// Reads the recorded repositories that are here.
    pub(super) fn new(storage: &Storage) -> Result<Self, StorageError> {
        let mut calls = Self::default();
        for record in KnownRepositories::new(storage).all()?.into_iter().filter_map(|it| it.record)
        {
            let path = Path::new(&record.path);
            if Presence::check(&record) == Presence::Here && calls.reach.add(path).is_ok() {
                calls.repositories.push(Trees::new(path));
            }
        }
        Ok(calls)
    }

    /// Whether a call can be executed again, and makes the same then: a repository reaches its commit, its computation is not
    /// declared as nondeterministic, and it could read nothing but its inputs.
    pub(super) fn has(&mut self, call: &CallRecord) -> bool {
        let is_pure = call.origin.reads_only_inputs() && !call.dirty;
        is_pure
            && self.reach.has(&call.commit)
            && self.is_deterministic(Code { commit: &call.commit, tree: &call.tree })
    }

    fn is_deterministic(&mut self, code: Code<'_>) -> bool {
        if let Some(known) = self.known.get(code.tree) {
            return *known;
        }
        let mut says =
            self.repositories.iter().filter_map(|it| it.has_file(code, NONDETERMINISTIC).ok());
        let is_so = says.next() == Some(false);
        self.known.insert(code.tree.clone(), is_so);
        is_so
    }
}

#[cfg(test)]
mod tests {
    use ce_storage::ResultName;

    use super::*;

    /// A call with these inputs and outputs.
    fn call(inputs: &[&str], output: &str) -> CallRecord {
        let digest = |text: &str| {
            let Digest { sha1, blake3, size, .. } = Digest::hash_bytes(text.as_bytes());
            format!(r#"{{"sha1":"{}","blake3":"{}","size":{size}}}"#, sha1.full(), blake3.full())
        };
        let inputs: Vec<String> = inputs.iter().map(|it| digest(it)).collect();
        let text = format!(
            r#"{{"format":3,"computation":"x","commit":"{0}","tree":"{0}","inputs":[{1}],"outputs":[{2}],
            "origin":{{"shared":{{"isolation":"namespaces"}}}}}}"#,
            "1".repeat(40),
            inputs.join(","),
            digest(output)
        );
        serde_json::from_str(&text).unwrap()
    }

    /// The numbers of the calls that can be made again from the known contents. The calls `away` are not here.
    fn made(known: &[&str], calls: &[CallRecord], away: &[usize]) -> Vec<usize> {
        let entries: Vec<Entry> = (0..calls.len())
            .map(|at| Entry::Call(ResultName::of_short(&format!("c_x/1/{at}")).unwrap()))
            .collect();
        let remakeable = Remakeable {
            known: known.iter().map(|it| Digest::hash_bytes(it.as_bytes())).collect(),
            waiting: entries.iter().zip(calls).collect(),
        };
        let made = remakeable.settle(|it| !away.iter().any(|at| entries[*at] == *it));
        (0..calls.len()).filter(|at| made.contains(&entries[*at])).collect()
    }

    #[test]
    fn outputs_made_from_present_inputs_can_be_made_again() {
        let chain = [call(&["b"], "c"), call(&["a"], "b"), call(&["b", "c", "b"], "d")];
        assert_eq!(made(&["a"], &chain, &[]), [0, 1, 2]);
        // The first one stays, and the others can be made from it, unless it is away already.
        assert_eq!(made(&[], &chain, &[]), [0, 2]);
        assert_eq!(made(&[], &chain, &[1]), [0; 0]);
    }

    #[test]
    fn outputs_that_need_themselves_cannot_be_made_again() {
        let same = [call(&["a"], "a"), call(&["a"], "b"), call(&["b"], "a")];
        assert_eq!(made(&[], &same, &[]), [0; 0]);
        assert_eq!(made(&["a"], &same, &[]), [0, 1, 2]);
    }
}
