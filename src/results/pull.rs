//! Pulling: what a results repository has and a storage has not is published in it.
//!
//! Nothing that comes from there is believed but for its record: names have to belong to their records, and files to be what these
//! say. What is here never changes.

use std::sync::Arc;

use super::ResultsError;
use super::beliefs::Beliefs;
use super::evidence::TakenEvidence;
use super::exchange_progress::ExchangeProgress;
use super::finder::Finder;
use super::layout::{MAX_RECORD, ResultsBranch, place, stored_size};
use super::refusal::{RefusedFor, RefusedResult};
use super::revoked::RevokedResult;
use super::trust::{TrustSettings, check_history, remember};
use crate::digest::ObjectId;
use crate::git::{Mirror, MirrorError, RemoteRef};
use crate::storage::{
    AwayCall, Entry, ExpectedFile, Import, ImportedCall, Read, Record, Storage, Survey,
};

/// The greatest number of calls that are published at once.
const BATCH: usize = 256;

/// The size of the outputs that are published at once, in bytes.
const BATCH_BYTES: u64 = 64 << 20;

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

    /// Whether anything is new to the storage.
    pub const fn is_new(&self) -> bool {
        self.calls + self.jobs + self.tables + self.ledger > 0
    }
}

/// A result of the repository that is not here, with the ids of its files.
#[derive(Debug)]
struct NewResult {
    entry: Entry,
    record: Record,
    files: Vec<(ExpectedFile, ObjectId)>,
    /// Whether it becomes known without its outputs.
    is_away: bool,
}

/// Pulls the results of a repository into a storage.
///
/// # Errors
///
/// Fails if the repository or the storage cannot be read, or the storage cannot be written.
pub fn pull(
    storage: &Storage,
    mirror: &Mirror,
    request: &PullRequest,
) -> Result<Pulled, ResultsError> {
    let progress = &request.progress;
    progress.begin("fetching", 0);
    let branch = ResultsBranch::of(&mirror.list(&ResultsBranch::PATTERNS)?);
    let mut pulled = Pulled { from: branch.tip, ..Pulled::default() };
    mirror.fetch(pulled.from.as_slice())?;
    check_history(mirror, pulled.from.as_ref(), &request.trust)?;
    let Some(tip) = pulled.from.clone() else { return Ok(pulled) };
    let mut finder = Finder::new(mirror, Some(mirror.tree_of(&tip.id)?));
    let beliefs = Beliefs::of(mirror, &mut finder, &tip.id, &request.trust)?;
    let new = new_results(storage, &mut finder, (request, &beliefs), &mut pulled)?;
    pulled.refused.extend(beliefs.refused());
    pulled.removed = beliefs.removed(&mut finder)?;
    let (evidence, revoked) = beliefs.import(storage, request.dry)?;
    pulled.add(evidence);
    pulled.revoked = revoked;
    if request.dry {
        new.iter().for_each(|result| pulled.count(result));
        return Ok(pulled);
    }
    let ids: Vec<ObjectId> =
        new.iter().flat_map(|it| it.files.iter().map(|(_, id)| id.clone())).collect();
    progress.begin("fetching files", 0);
    mirror.fetch_files(&ids)?;
    progress.begin("writing results", new.len());
    let (calls, others): (Vec<_>, Vec<_>) =
        new.into_iter().partition(|it| matches!(it.record, Record::Call(_)));
    let (away, calls): (Vec<_>, Vec<_>) = calls.into_iter().partition(|it| it.is_away);
    publish_away(storage, &away, &mut pulled)?;
    let mut rest = &calls[..];
    while !rest.is_empty() {
        let (batch, later) = rest.split_at(batch(rest));
        publish_calls(storage, mirror, batch, &mut pulled)?;
        progress.advance(batch.len());
        rest = later;
    }
    // A job names tables.
    let (tables, jobs): (Vec<_>, Vec<_>) =
        others.into_iter().partition(|it| matches!(it.record, Record::Table(_)));
    for result in tables.iter().chain(&jobs) {
        let imported = match &result.record {
            Record::Table(table) => {
                let files = contents(mirror, result)?;
                let [outcome, recipe] = files.try_into().unwrap_or_default();
                storage.import_table(table, &outcome, recipe)?
            }
            Record::Job(job) => {
                for ((file, _), contents) in result.files.iter().zip(contents(mirror, result)?) {
                    storage.import_literal(file, &contents)?;
                }
                storage.import_job(job)?
            }
            Record::Call(_) | Record::TaskInput(_) => continue,
        };
        pulled.note(result, &imported);
    }
    storage.flush()?;
    remember(mirror, &tip)?;
    Ok(pulled)
}

/// The number of calls that are published at once: from one up.
fn batch(calls: &[NewResult]) -> usize {
    let mut bytes = 0;
    let fits = |result: &&NewResult| {
        bytes += result.bytes();
        bytes <= BATCH_BYTES
    };
    calls.iter().take(BATCH).take_while(fits).count().max(1)
}

impl NewResult {
    fn bytes(&self) -> u64 {
        self.files.iter().map(|(file, _)| stored_size(&file.digest)).sum()
    }
}

impl Pulled {
    fn count(&mut self, result: &NewResult) {
        self.away += usize::from(result.is_away);
        *match result.record {
            Record::Call(_) => &mut self.calls,
            Record::Job(_) => &mut self.jobs,
            Record::Table(_) | Record::TaskInput(_) => &mut self.tables,
        } += 1;
        self.bytes += result.bytes();
    }

    fn add(&mut self, evidence: TakenEvidence) {
        self.ledger = evidence.new;
        evidence.refused.into_iter().for_each(|path| self.refuse(path, RefusedFor::Evidence));
    }

    fn refuse(&mut self, name: String, why: RefusedFor) {
        self.refused.push(RefusedResult { name, why });
    }

    fn note<T>(&mut self, result: &NewResult, imported: &Import<T>) {
        match imported {
            Import::New(_) => self.count(result),
            Import::Known => self.known += 1,
            Import::Differs => self.differing.push(result.entry.short()),
            Import::Damaged if matches!(result.record, Record::Job(_)) => {
                self.refuse(result.entry.short(), RefusedFor::Parts);
            }
            Import::Damaged => self.refuse(result.entry.short(), RefusedFor::Contents),
        }
    }
}

/// Finds the results that are not here, in the order of their names.
fn new_results(
    storage: &Storage,
    finder: &mut Finder<'_>,
    (request, beliefs): (&PullRequest, &Beliefs<'_>),
    pulled: &mut Pulled,
) -> Result<Vec<NewResult>, ResultsError> {
    let mirror = beliefs.mirror;
    let marked = Survey::new(storage).marked_away()?;
    let is_marked = |entry: &Entry| matches!(entry, Entry::Call(name) if marked.contains(name));
    let (mut unknown, mut returning) = (Vec::new(), Vec::new());
    let records = finder.records()?;
    request.progress.begin("reading results", records.len());
    for (path, id) in records {
        request.progress.advance(1);
        let Some(entry) = Entry::of_record(&path) else {
            pulled.refuse(path, RefusedFor::Record);
            continue;
        };
        let known = match storage.records().read_entry(&entry)? {
            Read::Record(known) => {
                let text = known.shared().map(|shared| shared.text()).unwrap_or_default();
                pulled.known += 1;
                if mirror.id_of(&text)? == id {
                    if is_marked(&entry) {
                        let files = brought(storage, finder, (&entry, &known), request.limit)?;
                        if let Some((record, files)) = known.shared().zip(files) {
                            pulled.known -= 1;
                            returning.push(NewResult { entry, record, files, is_away: false });
                        }
                    }
                    continue;
                }
                Some(known)
            }
            Read::Spoiled | Read::Absent => None,
        };
        // Nothing is read of what nobody trusted vouches for.
        match beliefs.check_signed(&path, &id) {
            Ok(()) => unknown.push((entry, id, known)),
            Err(why) => pulled.refuse(entry.short(), why),
        }
    }
    request.progress.begin("fetching records", 0);
    let ids: Vec<ObjectId> = unknown.iter().map(|(_, id, _)| id.clone()).collect();
    mirror.fetch_files(&ids)?;
    request.progress.begin("reading new results", unknown.len());
    let mut new = returning;
    for (entry, id, known) in unknown {
        request.progress.advance(1);
        let text = mirror.contents(&id, MAX_RECORD)?;
        let Some(record) = text.and_then(|text| Record::of_shared(&entry, &text)) else {
            pulled.refuse(entry.short(), RefusedFor::Record);
            continue;
        };
        let files = entry.expected_files(&record);
        if let Some(known) = known {
            let own = entry.expected_files(&known);
            let same = own.iter().map(|it| it.digest).eq(files.iter().map(|it| it.digest));
            if !same {
                pulled.differing.push(entry.short());
            }
            continue;
        }
        if let Err(why) = beliefs.check(&entry, &record) {
            pulled.refuse(entry.short(), why);
            continue;
        }
        // The outputs of a job are those of its calls.
        let files = if let Record::Job(_) = record { record.literals() } else { files };
        match in_repository(finder, files, request.limit)? {
            Ok(files) => new.push(NewResult { entry, record, files, is_away: false }),
            Err(why) if may_be_away(finder, &entry, &why)? => {
                new.push(NewResult { entry, record, files: Vec::new(), is_away: true });
            }
            Err(why) => pulled.refuse(entry.short(), why),
        }
    }
    Ok(new)
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

/// The files of a call that is away here, if the repository has all of them.
fn brought(
    storage: &Storage,
    finder: &mut Finder<'_>,
    (entry, record): (&Entry, &Record),
    limit: u64,
) -> Result<Option<Vec<(ExpectedFile, ObjectId)>>, ResultsError> {
    let files = record.shared().map(|shared| entry.expected_files(&shared)).unwrap_or_default();
    for file in &files {
        if !storage.has(&file.name)? {
            return Ok(in_repository(finder, files, limit)?.ok());
        }
    }
    Ok(None)
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

/// The contents of a result's files, in order. Those of a file that is larger than recorded are empty.
fn contents(mirror: &Mirror, result: &NewResult) -> Result<Vec<Vec<u8>>, MirrorError> {
    let contents = |(file, id): &(ExpectedFile, ObjectId)| {
        Ok(mirror.contents(id, stored_size(&file.digest))?.unwrap_or_default())
    };
    result.files.iter().map(contents).collect()
}

/// Makes calls known whose outputs stay in the repository. All of them are marked on the disk before the first one is known.
fn publish_away(
    storage: &Storage,
    calls: &[NewResult],
    pulled: &mut Pulled,
) -> Result<(), ResultsError> {
    let mut marked: Vec<(&NewResult, AwayCall<'_>)> = Vec::with_capacity(calls.len());
    for result in calls {
        let Record::Call(call) = &result.record else { continue };
        match storage.mark_import(call)? {
            Import::New(call) => marked.push((result, call)),
            other => pulled.note(result, &other),
        }
    }
    storage.flush()?;
    for (result, call) in marked {
        let published = call.publish()?;
        pulled.note(result, &published);
    }
    Ok(())
}

/// Publishes calls, all of which are on the disk before the first one is visible.
fn publish_calls(
    storage: &Storage,
    mirror: &Mirror,
    calls: &[NewResult],
    pulled: &mut Pulled,
) -> Result<(), ResultsError> {
    let mut staged: Vec<(&NewResult, ImportedCall<'_>)> = Vec::with_capacity(calls.len());
    for result in calls {
        let Record::Call(call) = &result.record else { continue };
        match storage.stage_import(call, &contents(mirror, result)?)? {
            Import::New(import) => staged.push((result, import)),
            other => pulled.note(result, &other),
        }
    }
    storage.flush()?;
    for (result, import) in staged {
        let published = import.publish()?;
        pulled.note(result, &published);
    }
    Ok(())
}
