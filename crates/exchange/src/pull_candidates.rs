//! The choice of what is pulled: what a repository has, is not here, and is believed.

use std::sync::Arc;

use rayon::prelude::*;

use super::ResultsError;
use super::exchange_progress::ExchangeProgress;
use super::layout::{MAX_RECORD, place, stored_size};
use super::ledger::counted_with_ledger;
use super::refused_results::{RefusedFor, RefusedResult};
use super::revocations::RevokedResult;
use super::tree_search::Finder;
use super::trust::TrustSettings;
use super::trust_levels::Beliefs;
use ce_git::{BlobHash, Mirror, MirrorError, RemoteRef};
use ce_model::digest::ObjectId;
use ce_storage::{
    Entry, ExpectedFile, MissingPart, Record, RecordState, Storage, StorageError, Survey,
};

/// What is pulled.
#[derive(Debug)]
pub struct PullRequest {
    /// The greatest size of a file, in bytes.
    pub limit: u64,
    /// Who is trusted for what.
    pub trust: TrustSettings,
    /// Whether nothing is written.
    pub dry: bool,
    /// Learns how far the pull is.
    pub progress: Arc<ExchangeProgress>,
}

/// What was pulled, or would be.
#[derive(Debug, Default)]
pub struct Pulled {
    /// The number of calls that were new.
    pub calls: usize,
    /// The number of those calls of which the outputs stay there.
    pub away: usize,
    /// The number of jobs that were new.
    pub jobs: usize,
    /// The number of tables that were new.
    pub tables: usize,
    /// The number of files of the ledger that were new.
    pub ledger: usize,
    /// The size of their files, in bytes.
    pub bytes: u64,
    /// The number of results that were here already.
    pub known: usize,
    /// The short names of results that have other outputs here.
    pub differing: Vec<String>,
    /// What was not taken.
    pub refused: Vec<RefusedResult>,
    /// Results that are here and that somebody has revoked.
    pub revoked: Vec<RevokedResult>,
    /// The paths of records and evidence that are not in the repository any more, each with the commit that has taken it away.
    pub removed: Vec<(String, ObjectId)>,
    /// Where they are from; none if the repository has no results.
    pub from: Option<RemoteRef>,
}

impl Pulled {
    /// Whether everything that the repository has is here, or was left out by rule.
    pub fn is_complete(&self) -> bool {
        self.differing.is_empty()
            && self.revoked.is_empty()
            && self.removed.is_empty()
            && !self.refused.iter().any(|it| it.why.is_wrong())
    }

    /// How many of each kind were new, in words; empty if nothing was.
    pub fn summary(&self) -> String {
        let results = [(self.calls, "call"), (self.jobs, "job"), (self.tables, "table")];
        counted_with_ledger(&results, self.ledger)
    }

    /// Whether anything is new to the storage.
    pub const fn is_new(&self) -> bool {
        self.calls + self.jobs + self.tables + self.ledger > 0
    }

    /// Notes that a job is not taken, since it names something that is not here.
    pub(super) fn refuse_job(&mut self, job: String, missing: MissingPart) {
        let part = Entry::of_file(&missing.file).map(|it| it.short());
        let stays = |it: &RefusedResult| Some(&it.name) == part.as_ref() && !it.why.is_wrong();
        let why = match !missing.is_other && self.refused.iter().any(stays) {
            true => RefusedFor::StaysWith { file: missing.file },
            false => RefusedFor::Part(missing),
        };
        self.refuse(job, why);
    }

    /// Notes what is not taken.
    pub(super) fn refuse(&mut self, name: String, why: RefusedFor) {
        self.refused.push(RefusedResult { name, why });
    }
}

/// A result of a repository that may be pulled. Nothing of it was read: there may be a million.
#[derive(Debug)]
pub(super) struct PullCandidate {
    entry: Entry,
    /// The id of its record in the repository.
    record: ObjectId,
    here: HereAs,
}

/// What is here in the place of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HereAs {
    /// Nothing.
    Absent,
    /// The same, without outputs that the repository has.
    Away,
    /// A result with another record.
    Other,
}

/// A result of a repository that is not here, or away, with the ids of its files.
#[derive(Debug)]
pub(super) struct NewResult {
    pub(super) entry: Entry,
    pub(super) record: Record,
    pub(super) files: Vec<(ExpectedFile, ObjectId)>,
    /// What the call has printed, if the repository has that.
    pub(super) log: Option<ObjectId>,
    /// Whether it becomes known without its outputs.
    pub(super) is_away: bool,
}

impl NewResult {
    /// The size of its files, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.files.iter().map(|(file, _)| stored_size(&file.digest)).sum()
    }

    /// The contents of its files, in order. Those of a file that is larger than recorded are empty.
    pub(super) fn contents(&self, mirror: &Mirror) -> Result<Vec<Vec<u8>>, MirrorError> {
        let contents = |(file, id): &(ExpectedFile, ObjectId)| {
            Ok(mirror.contents(id, stored_size(&file.digest))?.unwrap_or_default())
        };
        self.files.iter().map(contents).collect()
    }
}

/// Finds the results that may be pulled: calls, then tables, then jobs, each in the order of their names. A job names tables and calls.
pub(super) fn candidates(
    storage: &Storage,
    finder: &mut Finder<'_>,
    (request, beliefs): (&PullRequest, &Beliefs<'_>),
    pulled: &mut Pulled,
) -> Result<Vec<PullCandidate>, ResultsError> {
    let marked = Survey::new(storage).marked_away()?;
    let is_marked = |entry: &Entry| matches!(entry, Entry::Call(name) if marked.contains(name));
    let mut candidates = Vec::new();
    let records = finder.records()?;
    request.progress.begin("reading results", records.len());
    let hash = beliefs.mirror.blob_hash();
    let is_here = records.par_iter().map(|(path, record)| {
        request.progress.advance(1);
        is_here(storage, path, (hash, record))
    });
    let is_here: Vec<Option<bool>> = is_here.collect::<Result<_, _>>()?;
    for ((path, record), is_same) in records.into_iter().zip(is_here) {
        let Some(entry) = Entry::of_record(&path) else {
            pulled.refuse(path, RefusedFor::Record);
            continue;
        };
        let here = match is_same {
            None => HereAs::Absent,
            Some(true) if is_marked(&entry) && brings(storage, finder, &entry, request.limit)? => {
                HereAs::Away
            }
            Some(is_same) => {
                pulled.known += 1;
                if is_same {
                    continue;
                }
                HereAs::Other
            }
        };
        // Nothing is read of what nobody trusted vouches for.
        match beliefs.check_signed(&path, &record) {
            Err(why) if here != HereAs::Away => pulled.refuse(entry.short(), why),
            _ => candidates.push(PullCandidate { entry, record, here }),
        }
    }
    candidates.sort_by_key(|it| match it.entry {
        Entry::Call(_) => 0,
        Entry::Table(_) | Entry::TaskInput(_) => 1,
        Entry::Job(_) => 2,
    });
    Ok(candidates)
}

/// Whether the record of this name that is here is this one of the repository. `None` if none is here.
fn is_here(
    storage: &Storage,
    path: &str,
    (hash, record): (BlobHash, &ObjectId),
) -> Result<Option<bool>, StorageError> {
    let Some(entry) = Entry::of_record(path) else { return Ok(None) };
    let RecordState::Valid(known) = storage.records().read_entry(&entry)? else { return Ok(None) };
    let id = known.shared().and_then(|shared| hash.of(&shared.text()));
    Ok(Some(id.as_ref() == Some(record)))
}

/// Reads those candidates that are new.
pub(super) fn new_results(
    candidates: Vec<PullCandidate>,
    storage: &Storage,
    finder: &mut Finder<'_>,
    (request, beliefs): (&PullRequest, &Beliefs<'_>),
    pulled: &mut Pulled,
) -> Result<Vec<NewResult>, ResultsError> {
    let mirror = beliefs.mirror;
    let ids: Vec<ObjectId> = candidates.iter().map(|it| it.record.clone()).collect();
    mirror.fetch_files(&ids)?;
    let mut new = Vec::with_capacity(candidates.len());
    for PullCandidate { entry, record, here } in candidates {
        let text = mirror.contents(&record, MAX_RECORD)?;
        let Some(record) = text.and_then(|text| Record::of_shared(&entry, &text)) else {
            pulled.refuse(entry.short(), RefusedFor::Record);
            continue;
        };
        let files = entry.expected_files(&record);
        if here == HereAs::Other {
            if !has_outputs(storage, &entry, &files)? {
                pulled.differing.push(entry.short());
            }
            continue;
        }
        if here == HereAs::Absent
            && let Err(why) = beliefs.check(&entry, &record)
        {
            pulled.refuse(entry.short(), why);
            continue;
        }
        // The outputs of a job are those of its calls.
        let files = if let Record::Job(_) = record { record.literals() } else { files };
        match in_repository(finder, files, request.limit)? {
            Ok(files) => {
                let log = log(finder, beliefs, &entry, pulled)?;
                new.push(NewResult { entry, record, files, log, is_away: false });
            }
            Err(why) if may_be_away(finder, &entry, &why)? => {
                let files = Vec::new();
                new.push(NewResult { entry, record, files, log: None, is_away: true });
            }
            Err(why) => pulled.refuse(entry.short(), why),
        }
    }
    Ok(new)
}

/// The log of a call in the repository, if somebody who is trusted vouches for it.
fn log(
    finder: &mut Finder<'_>,
    beliefs: &Beliefs<'_>,
    entry: &Entry,
    pulled: &mut Pulled,
) -> Result<Option<ObjectId>, MirrorError> {
    let Entry::Call(name) = entry else { return Ok(None) };
    let Some(log) = finder.file(&name.log())? else { return Ok(None) };
    match beliefs.check_signed(&name.log(), &log) {
        Ok(()) => Ok(Some(log)),
        Err(why) => {
            pulled.refuse(name.log(), why);
            Ok(None)
        }
    }
}

/// Whether a result is here with the outputs of these files.
fn has_outputs(
    storage: &Storage,
    entry: &Entry,
    files: &[ExpectedFile],
) -> Result<bool, ResultsError> {
    let RecordState::Valid(known) = storage.records().read_entry(entry)? else { return Ok(false) };
    let own = entry.expected_files(&known);
    Ok(own.iter().map(|it| it.digest).eq(files.iter().map(|it| it.digest)))
}

/// Whether a call becomes known without its outputs: one is too large, or deliberately not in the repository.
fn may_be_away(
    finder: &mut Finder<'_>,
    entry: &Entry,
    why: &RefusedFor,
) -> Result<bool, MirrorError> {
    let Entry::Call(name) = entry else { return Ok(false) };
    Ok(match why {
        RefusedFor::Large { .. } => true,
        RefusedFor::Absent => finder.file(&name.away())?.is_some(),
        _ => false,
    })
}

/// Whether the repository has all files of a call that is away here, and one of them is lacking.
fn brings(
    storage: &Storage,
    finder: &mut Finder<'_>,
    entry: &Entry,
    limit: u64,
) -> Result<bool, ResultsError> {
    let RecordState::Valid(record) = storage.records().read_entry(entry)? else { return Ok(false) };
    let files = record.shared().map(|shared| entry.expected_files(&shared)).unwrap_or_default();
    for file in &files {
        if !storage.has(&file.name)? {
            return Ok(in_repository(finder, files, limit)?.is_ok());
        }
    }
    Ok(false)
}

/// Finds the files of a result in the repository. Returns why it is not taken, if it is not.
fn in_repository(
    finder: &mut Finder<'_>,
    files: Vec<ExpectedFile>,
    limit: u64,
) -> Result<Result<Vec<(ExpectedFile, ObjectId)>, RefusedFor>, MirrorError> {
    let mut found = Vec::with_capacity(files.len());
    for file in files {
        let bytes = stored_size(&file.digest);
        if bytes > limit {
            return Ok(Err(RefusedFor::Large { bytes, limit }));
        }
        let Some(id) = finder.file(&place(&file))? else { return Ok(Err(RefusedFor::Absent)) };
        found.push((file, id));
    }
    Ok(Ok(found))
}
