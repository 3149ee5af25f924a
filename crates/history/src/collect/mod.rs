//! Garbage collection: choosing the results to remove, and removing them. Tombstones remain.
//!
//! A kept result is kept with everything that it was made from, since an evaluation looks up calls from the leaves.
//! Results in use by a run are kept, too. Results that a workflow of a reachable commit would use are kept, whichever
//! commit they were made for.

mod evict;
mod retention;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::mem;
use std::path::Path;

use jiff::Timestamp;

pub use self::evict::{evict, evictable, recomputable};
use crate::History;
use ce_git::{Home, ReachError, ReachableSet};
use ce_model::digest::Digest;
use ce_model::exit::Explain;
use ce_storage::records::CallRecord;
use ce_storage::{
    Entry, GcRoots, KnownRepositories, KnownRepository, Maintenance, NewRecords, Pins, Record,
    RecordState, RecordWatch, Removal, RepositoryRecord, ResultName, Storage, StorageError, Survey,
    Suspension,
};

/// The number of results whose files are moved away before the gate is opened for waiting runs.
const MOVED_AT_ONCE: usize = 500;

/// The results to keep. A result is a candidate if neither condition holds.
#[derive(Debug, Default)]
pub struct CollectRequest {
    /// Results of commits that are reachable in some repositories.
    pub reach: Option<ReachableSet>,
    /// Results recorded since this time.
    pub since: Option<Timestamp>,
}

/// A result that is not kept.
#[derive(Debug)]
pub struct Candidate<'a> {
    /// The result.
    pub entry: &'a Entry,
    pub record: &'a Record,
    /// The size of its own files, in bytes. Links count once.
    pub bytes: u64,
    /// The duration of its execution, in seconds; 0 if it was not executed.
    pub seconds: f64,
}

/// The fate of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It was removed.
    Collected,
    /// It is in use, or was pinned meanwhile.
    Kept,
}

impl CollectRequest {
    /// Whether a commit that is kept has it.
    fn reaches(&self, record: &Record) -> bool {
        let commit = match record {
            Record::Call(call) => Some(&call.commit),
            Record::Job(job) => Some(&job.commit),
            Record::Table(_) | Record::TaskInput(_) => None,
        };
        self.reach.as_ref().zip(commit).is_some_and(|(reach, commit)| reach.has(commit))
    }

    fn is_recent(&self, record: &Record) -> bool {
        self.since.is_some_and(|since| record.at().is_none_or(|at| at >= since))
    }
}

/// Returns the results that are not kept, sorted by name.
pub fn candidates<'a>(
    storage: &Storage,
    history: &'a History,
    request: &CollectRequest,
) -> Result<Vec<Candidate<'a>>, RepositoryError> {
    let mut roots: HashSet<Entry> =
        Pins::new(storage).all()?.into_iter().map(|(entry, _)| entry).collect();
    roots.extend(inputs_of_suspended(storage)?);
    let kept = history.results().iter().filter(|(entry, record)| {
        roots.contains(entry) || request.reaches(record) || request.is_recent(record)
    });
    let mut kept: Vec<&Entry> = kept.map(|(entry, _)| entry).collect();
    // A table with failed points may be the output of a task, and that has no job then.
    kept.extend(history.tables_of(|_, record| request.reaches(record)));
    if let Some(reach) = &request.reach {
        kept.extend(retention::literals(history, reach));
        kept.extend(retention::usable(storage, history, reach, &kept)?);
    }
    let kept = history.with_origins(kept.into_iter());
    let mut candidates = Vec::new();
    for ((entry, record), _) in history.results().iter().zip(kept).filter(|(_, kept)| !kept) {
        let (bytes, seconds) = (bytes(history, record), seconds(history, record));
        candidates.push(Candidate { entry, record, bytes, seconds });
    }
    Ok(candidates)
}

/// Candidates that the same tasks have used.
#[derive(Debug)]
pub struct Group<'a> {
    /// The tasks of the recorded jobs that they belong to; empty if they belong to no job.
    pub tasks: Vec<&'a str>,
    /// The candidates, sorted by name.
    pub candidates: Vec<&'a Candidate<'a>>,
}

/// Groups candidates by the tasks that have used them, sorted. Candidates of no recorded job come last.
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
    groups.into_iter().map(|((_, tasks), candidates)| Group { tasks, candidates }).collect()
}

/// The size of the files of a result, in bytes. A link to a file of another recorded result counts there.
fn bytes(history: &History, record: &Record) -> u64 {
    match record {
        Record::Call(call) if is_copy(history, call) => 0,
        Record::Call(call) => {
            // The sizes in a spoiled record may be arbitrarily large.
            call.outputs.iter().map(|output| output.digest.total()).fold(0, u64::saturating_add)
        }
        // Its outputs are links to outputs of its calls.
        Record::Job(_) => 0,
        // The files of its directory are shared with its calls.
        Record::Table(table) => {
            let table = table.outputs.iter().take(1).chain([&table.recipe]);
            table.map(|file| file.digest.total()).fold(0, u64::saturating_add)
        }
        Record::TaskInput(input) => input.file.digest.total(),
    }
}

/// Whether a result was taken over from another recorded one: its outputs are links to those.
fn is_copy(history: &History, call: &CallRecord) -> bool {
    let source = call.origin.taken_over().and_then(Entry::of_short);
    source.is_some_and(|source| history.has(&source))
}

/// The duration of the execution, in seconds; 0 for a result that was taken over from a present
/// one.
fn seconds(history: &History, record: &Record) -> f64 {
    match record {
        Record::Call(call) if !is_copy(history, call) => call.seconds().unwrap_or_default(),
        Record::Call(_) | Record::Job(_) | Record::Table(_) | Record::TaskInput(_) => 0.0,
    }
}

/// The calls that are suspended, whether or not the index has them.
fn suspensions(storage: &Storage) -> Result<Vec<Suspension>, StorageError> {
    let names = Survey::new(storage).suspended()?;
    let read = names.iter().map(|name| storage.suspensions().read(name));
    Ok(read.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}

/// The results that suspended calls read.
fn inputs_of_suspended(storage: &Storage) -> Result<Vec<Entry>, StorageError> {
    Ok(inputs(&suspensions(storage)?).collect())
}

/// Returns the candidates that are in use, or that results in use were made from. Removing them would fail.
pub fn in_use(
    storage: &Storage,
    history: &History,
    candidates: &[Candidate<'_>],
) -> Result<HashSet<Entry>, StorageError> {
    let (retired, changes) = (HashSet::new(), RecordWatch::new(storage));
    let roots = storage.gc_roots().read()?;
    let mut in_use = InUse { storage, history, retired, changes, roots };
    let results: Vec<_> = candidates.iter().map(|it| (it.entry, it.record)).collect();
    let stays = in_use.settle(&results, |at, roots| {
        let (entry, record) = results[at];
        Ok(roots.has(entry, entry.expected_files(record).len()))
    })?;
    let mut used = HashSet::new();
    for ((entry, _), _) in results.iter().zip(stays).filter(|(_, stays)| *stays) {
        used.insert((*entry).clone());
        used.extend(history.linked(entry));
    }
    Ok(used)
}

/// Removes candidates, unless they are in use, and finishes a collection that was killed. Reports
/// the fate of each.
pub fn collect(
    storage: &Storage,
    history: &History,
    candidates: &[Candidate<'_>],
    report: &mut dyn FnMut(&Entry, Fate),
) -> Result<(), StorageError> {
    Survey::new(storage).check_no_links()?;
    // The records of calls show whether suspensions are over.
    storage.suspensions().tidy()?;
    let maintenance = Maintenance::new(storage);
    let mut retired = maintenance.half_collected()?;
    let half: HashSet<Entry> = retired.iter().map(|one| one.entry().clone()).collect();
    // On the disk, a result with a record must have its files.
    retired.extend(begin(
        storage,
        candidates,
        |it| maintenance.retire(it.entry, it.record),
        report,
    )?);
    let gone: HashSet<&Entry> = candidates.iter().map(|it| it.entry).collect();
    let mut in_use = InUse::read(storage, history, gone.clone())?;
    let kept: Vec<_> =
        history.results().iter().filter(|(entry, _)| !gone.contains(entry)).collect();
    in_use.add_needed(&half, &kept)?;
    // A result without a record cannot be pinned meanwhile.
    for one in &retired {
        if one.is_pinned()? {
            in_use.add(one.entry());
        }
    }
    // A job that is in use keeps calls, which are taken away before jobs are.
    settle(&retired, &mut in_use)?;
    // Calls and tables at once, since they may be links to each other; few of them have files that are moved.
    let (linked, others): (Vec<_>, Vec<_>) = retired
        .into_iter()
        .partition(|one| matches!(one.entry(), Entry::Call(_) | Entry::Table(_)));
    let mut collected: Vec<(ResultName, CallRecord)> = Vec::new();
    for one in &linked {
        if let (Entry::Call(name), Record::Call(record)) = (one.entry(), one.record()) {
            collected.push((name.clone(), record.clone()));
        }
    }
    let mut taken = HashSet::new();
    take_away(&mut in_use, linked, &mut |entry, fate| {
        taken.extend((fate == Fate::Collected).then(|| entry.clone()));
        report(entry, fate);
    })?;
    collected.retain(|(name, _)| taken.contains(&Entry::Call(name.clone())));
    take_away_in_batches(&mut in_use, others, report)?;
    let suspended = suspensions(storage)?;
    let mut used = trees(&kept);
    used.extend(suspended.iter().map(|it| it.record.tree.full()));
    maintenance.remove_unused(&used, &collected, &mut in_use.into_roots())?;
    let files = kept.iter().flat_map(|(entry, record)| entry.expected_files(record));
    let digests: Vec<Digest> = files.map(|file| file.digest).collect();
    let directories = digests.iter().filter(|digest| digest.is_directory());
    maintenance.remove_unused_manifests(directories)?;
    storage.flush()
}

/// Begins the removal of candidates, durably. Reports the ones that stay, since they have other records now, or are
/// computed.
fn begin<'s>(
    storage: &Storage,
    candidates: &[Candidate<'_>],
    mark: impl Fn(&Candidate<'_>) -> Result<Option<Removal<'s>>, StorageError>,
    report: &mut dyn FnMut(&Entry, Fate),
) -> Result<Vec<Removal<'s>>, StorageError> {
    let mut removals = Vec::with_capacity(candidates.len());
    for candidate in candidates {
        match mark(candidate)? {
            Some(one) => removals.push(one),
            None => report(candidate.entry, Fate::Kept),
        }
    }
    storage.flush()?;
    Ok(removals)
}

/// Takes results away, unless they are in use, a few at once: the gate is opened between them.
fn take_away_in_batches(
    in_use: &mut InUse<'_>,
    mut removals: Vec<Removal<'_>>,
    report: &mut dyn FnMut(&Entry, Fate),
) -> Result<(), StorageError> {
    while !removals.is_empty() {
        let rest = removals.split_off(removals.len().min(MOVED_AT_ONCE));
        take_away(in_use, mem::replace(&mut removals, rest), report)?;
    }
    Ok(())
}

/// Takes results away, unless they are in use. Reports the fate of each.
///
/// The gate is closed for the moves, and for reading which results have come into use since the last look.
fn take_away(
    in_use: &mut InUse<'_>,
    mut removals: Vec<Removal<'_>>,
    report: &mut dyn FnMut(&Entry, Fate),
) -> Result<(), StorageError> {
    in_use.update()?;
    let mut stays = settle(&removals, in_use)?;
    let gate = in_use.storage.gc_roots().close_gate()?;
    // The gate may have been waited for: meanwhile, results with a record may have been pinned.
    if in_use.update()? || removals.iter().any(Removal::may_be_pinned) {
        stays = settle(&removals, in_use)?;
    }
    for (one, _) in removals.iter_mut().zip(&stays).filter(|(_, stays)| !**stays) {
        one.move_away()?;
    }
    // Runs that did not wait: this process was taken for dead, or they know no gate.
    in_use.add_announced()?;
    let is_held = gate.is_held()?;
    gate.release()?;
    stays = settle(&removals, in_use)?;
    for (one, stays) in removals.into_iter().zip(stays) {
        let entry = one.entry().clone();
        // Removing the ones before it may have taken long.
        let stays = stays || one.may_be_pinned() && one.is_pinned()?;
        if stays || !is_held {
            one.restore()?;
            report(&entry, Fate::Kept);
        } else {
            one.discard()?;
            report(&entry, Fate::Collected);
        }
    }
    Ok(())
}

/// Whether each of some results stays.
fn settle(removals: &[Removal<'_>], in_use: &mut InUse<'_>) -> Result<Vec<bool>, StorageError> {
    let results: Vec<_> = removals.iter().map(|one| (one.entry(), one.record())).collect();
    in_use.settle(&results, |at, roots| removals[at].is_wanted(roots))
}

/// The trees of the computations of these results.
fn trees<'a>(kept: &[&'a (Entry, Record)]) -> HashSet<&'a str> {
    let trees = kept.iter().filter_map(|(_, record)| match record {
        Record::Call(call) => Some(call.tree.full()),
        Record::Job(_) | Record::Table(_) | Record::TaskInput(_) => None,
    });
    trees.collect()
}

/// The results that a table was made from, by its recipe.
fn made_from(storage: &Storage, table: &ResultName) -> Result<Vec<Entry>, StorageError> {
    let mut results = Vec::new();
    storage.tables().read_recipe(table, |row| {
        let files = row.outputs.iter().flatten();
        results.extend(files.filter_map(|output| Entry::of_file(&output.file)));
    })?;
    Ok(results)
}

/// The results in use by other runs, by suspended calls, and by results that were published since the history was read.
pub(super) struct InUse<'a> {
    storage: &'a Storage,
    history: &'a History,
    /// Results whose records were removed. One that has a record was recorded again.
    retired: HashSet<&'a Entry>,
    changes: RecordWatch<'a>,
    roots: GcRoots,
}

impl<'a> InUse<'a> {
    /// Reads the results in use, after the records of some results were removed.
    pub(super) fn read(
        storage: &'a Storage,
        history: &'a History,
        retired: HashSet<&'a Entry>,
    ) -> Result<Self, StorageError> {
        let (changes, roots) = (RecordWatch::new(storage), GcRoots::default());
        let mut in_use = Self { storage, history, retired, changes, roots };
        in_use.update()?;
        Ok(in_use)
    }

    /// The names that are in use, to be added to.
    fn into_roots(self) -> GcRoots {
        self.roots
    }

    /// Adds results that have come into use since the last look. Returns whether there are any.
    pub(super) fn update(&mut self) -> Result<bool, StorageError> {
        let before = self.roots.count();
        // A run that ends now has recorded everything before its announcements go.
        self.add_announced()?;
        let NewRecords { entries, suspended } =
            self.changes.look(|entry| self.history.has(entry) && !self.retired.contains(entry))?;
        self.roots.add(inputs(&suspended));
        entries.iter().try_for_each(|entry| self.add_published(entry))?;
        Ok(self.roots.count() > before)
    }

    /// Adds the new announcements of other runs. Returns whether there are any.
    pub(super) fn add_announced(&mut self) -> Result<bool, StorageError> {
        let before = self.roots.count();
        self.storage.gc_roots().add_to(&mut self.roots)?;
        Ok(self.roots.count() > before)
    }

    /// Adds a result.
    pub(super) fn add(&mut self, entry: &Entry) {
        self.roots.add([entry.clone()]);
    }

    /// Adds the results without a record that a killed collection has left and that kept results need: a directory of a
    /// kept result may be a link to one of their directories.
    fn add_needed(
        &mut self,
        half: &HashSet<Entry>,
        kept: &[&(Entry, Record)],
    ) -> Result<(), StorageError> {
        if half.is_empty() {
            return Ok(());
        }
        for (entry, record) in kept {
            let mut needed = Vec::new();
            match (entry, record) {
                (_, Record::Call(call)) => needed.extend(call.linked()),
                (_, Record::Job(job)) => {
                    needed.extend(job.calls.iter().filter_map(|name| Entry::of_short(name)));
                }
                (Entry::Table(name), Record::Table(_)) => {
                    needed.extend(made_from(self.storage, name)?);
                }
                (_, Record::Table(_) | Record::TaskInput(_)) => {}
            }
            self.roots.add(needed.into_iter().filter(|entry| half.contains(entry)));
        }
        Ok(())
    }

    /// Adds the results that the directories of a call are links to, directly or by way of others.
    fn add_linked(&mut self, call: &CallRecord) {
        if let Some(source) = call.linked() {
            self.roots.add(self.history.linked(&source));
            self.roots.add([source]);
        }
    }

    /// Adds a result that was published since the history was read, and its sources.
    fn add_published(&mut self, entry: &Entry) -> Result<(), StorageError> {
        self.add(entry);
        match self.storage.records().read_listed(entry)? {
            RecordState::Valid(record) => self.add_sources(entry, &record),
            RecordState::Spoiled | RecordState::Absent => Ok(()),
        }
    }

    /// Decides for each of some results whether it stays: it is wanted, by its place, or a result that stays was made from
    /// it. Adds the sources of results that stay.
    ///
    /// Results that a killed collection has left are in no history, so their sources are found by their own records.
    fn settle(
        &mut self,
        results: &[(&Entry, &Record)],
        is_wanted: impl Fn(usize, &GcRoots) -> Result<bool, StorageError>,
    ) -> Result<Vec<bool>, StorageError> {
        let mut stays = vec![false; results.len()];
        loop {
            let before = self.roots.count();
            // Sources come before the results that were made from them.
            for (at, (entry, record)) in results.iter().enumerate().rev() {
                if !stays[at] && is_wanted(at, &self.roots)? {
                    stays[at] = true;
                    self.add_sources(entry, record)?;
                }
            }
            if self.roots.count() == before {
                return Ok(stays);
            }
        }
    }

    /// Adds the sources of a result, as far as its record has them.
    fn add_sources(&mut self, entry: &Entry, record: &Record) -> Result<(), StorageError> {
        match (entry, record) {
            // A job that was finished meanwhile may use a result that it found before that was retired.
            (_, Record::Job(job)) => self.roots.add_job(job),
            // The directories of a call may be links to directories of other calls.
            (_, Record::Call(call)) => {
                self.roots.add_inputs(call.inputs.iter());
                self.add_linked(call);
            }
            (Entry::Table(name), Record::Table(_)) => {
                self.roots.add(made_from(self.storage, name)?);
            }
            (_, Record::Table(_) | Record::TaskInput(_)) => {}
        }
        Ok(())
    }
}

/// The results that suspended calls read.
pub(super) fn inputs(suspended: &[Suspension]) -> impl Iterator<Item = Entry> + '_ {
    let inputs = suspended.iter().flat_map(|it| &it.record.inputs);
    inputs.filter_map(|input| Entry::of_file(&input.name))
}

/// The reason why the reachable commits are unknown.
#[derive(Debug, thiserror::Error, Explain)]
pub enum RepositoryError {
    /// The storage cannot be read.
    #[error(transparent)]
    #[exit(Storage)]
    #[hint(_0.hint())]
    Storage(#[from] StorageError),
    /// A repository cannot be read.
    #[error(transparent)]
    #[hint(_0.hint())]
    Reach(#[from] ReachError),
    /// No repository is recorded.
    #[error("no repository is recorded to use the storage")]
    #[hint("name all that use it with --keep REPOSITORY, or give --no-keep with --older TIME")]
    None,
    /// Some repositories were not found: a line for each.
    #[error("cannot read these recorded repositories:{}", lines(.0))]
    #[hint(
        "ce gc --forget ID STORAGE for one that is gone; or collect on a host that has all of them, or name those to \
         keep with --keep REPOSITORY"
    )]
    Lost(Vec<String>),
    /// The repository to forget is not recorded.
    #[error("no repository is recorded as {0}")]
    #[hint("ce gc --repositories STORAGE lists them")]
    Unknown(String),
}

fn lines(lost: &[String]) -> String {
    lost.iter().map(|line| format!("\n  {line}")).collect()
}

/// Whether a recorded repository is on this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It is on this host.
    Here,
    /// No repository is at its path.
    Gone,
    /// It was recorded on another host, and its path leads to another repository here.
    Elsewhere,
}

impl Presence {
    /// Looks for a recorded repository on this host.
    pub fn check(record: &RepositoryRecord) -> Self {
        let path = Path::new(&record.path);
        match Home::find(path) {
            Ok(home) if home.path != path => Self::Gone,
            Ok(home) if record.is_of_this_host() || home.inode == record.inode => Self::Here,
            Ok(_) => Self::Elsewhere,
            Err(_) => Self::Gone,
        }
    }

    /// A description, as in "the repository ...".
    pub const fn text(self) -> &'static str {
        match self {
            Self::Here => "is there",
            Self::Gone => "is not there",
            Self::Elsewhere => "is another one here",
        }
    }
}

/// Returns the commits that are reachable in the recorded repositories.
///
/// # Errors
///
/// Fails if no repository is recorded, or one cannot be read.
pub fn reach_of_recorded(storage: &Storage) -> Result<ReachableSet, RepositoryError> {
    let mut here = Vec::new();
    let mut lost = Vec::new();
    for KnownRepository { id, record } in KnownRepositories::new(storage).all()? {
        match record {
            None => lost.push(format!("{id}: its record cannot be understood")),
            Some(record) => match Presence::check(&record) {
                Presence::Here => here.push(record.path),
                other => {
                    let (path, host) = (&record.path, &record.recorded.host);
                    lost.push(format!("{id}: {path} of the host {host} {}", other.text()));
                }
            },
        }
    }
    if !lost.is_empty() {
        return Err(RepositoryError::Lost(lost));
    }
    if here.is_empty() {
        return Err(RepositoryError::None);
    }
    here.sort_unstable();
    here.dedup();
    let mut reach = ReachableSet::default();
    here.iter().try_for_each(|path| reach.add(Path::new(path)))?;
    Ok(reach)
}

/// Returns the recorded repositories that are not among these, so their results are not kept.
pub fn not_kept<'a>(
    storage: &Storage,
    kept: impl Iterator<Item = &'a Path>,
) -> Result<Vec<RepositoryRecord>, StorageError> {
    let kept: Vec<Home> = kept.filter_map(|path| Home::find(path).ok()).collect();
    let known = KnownRepositories::new(storage).all()?;
    let mut not_kept: Vec<_> = known.into_iter().filter_map(|known| known.record).collect();
    not_kept.retain(|record| {
        kept.iter().all(|home| home.path != Path::new(&record.path))
            || Presence::check(record) != Presence::Here
    });
    Ok(not_kept)
}

/// Removes the records of repositories, given by ID or by path on any host.
///
/// # Errors
///
/// Fails if one of them is not recorded, before any is forgotten, or the storage cannot be written.
pub fn forget(storage: &Storage, repositories: &[String]) -> Result<(), RepositoryError> {
    let known = KnownRepositories::new(storage).all()?;
    let mut found = Vec::new();
    for wanted in repositories {
        let real = Home::find(Path::new(wanted)).ok().map(|home| home.path);
        let before = found.len();
        found.extend(known.iter().filter(|known| {
            let path = known.record.as_ref().map(|record| record.path.as_str());
            known.id == *wanted
                || path.is_some_and(|path| path == wanted || real.as_deref() == Some(path.as_ref()))
        }));
        if found.len() == before {
            return Err(RepositoryError::Unknown(wanted.clone()));
        }
    }
    Ok(found.into_iter().try_for_each(|known| KnownRepositories::new(storage).forget(known))?)
}
