//! Pulling: results of a results repository that a storage lacks are published in the storage.
//!
//! Only records are believed: names have to belong to their records, and files have to match them. Results that are
//! here never change.

use std::collections::HashSet;
use std::env;
use std::num::NonZeroUsize;
use std::sync::Arc;

use ce_git::{BlobHash, LfsPointer, Mirror, MirrorError, RemoteRef};
use ce_model::digest::ObjectId;
use ce_storage::{
    AwayCall, Entry, ExpectedFile, Import, ImportedCall, MissingPart, OwnOutput, Record,
    RecordState, SharedContents, Storage, StorageError, Survey, is_users_file, large_name,
    split_member,
};
use rayon::prelude::*;
use serde::Serialize;

use crate::acceptance::{Acceptance, RefusedFor, RefusedResult, RemovedFile, RevokedResult};
use crate::attesters::TakenEvidence;
use crate::ledger::counted_with_ledger;
use crate::lfs::LargeSource;
use crate::repository::{
    DEFAULT_LIMIT, Finder, MAX_LIMIT, MAX_RECORD, ResultsBranch, place, stored_size,
};
use crate::trust::{TrustSettings, check_history, remember};
use crate::{ExchangeProgress, ResultsError, reference_and_commit};

/// The greatest number of calls that are published at once.
const BATCH: usize = 256;

/// The size of the outputs that are published at once, in bytes.
const BATCH_BYTES: u64 = 64 << 20;

/// The reason why an object is missing if its pointer cannot be understood.
const NO_POINTER: &str = "what stands there is no pointer to it";

/// The number of results whose records and files are fetched at once: only their records are in memory. A build with debug
/// assertions obeys `CE_PART`.
fn part() -> usize {
    const PART: usize = 8 << 10;
    if !cfg!(debug_assertions) {
        return PART;
    }
    let given = env::var("CE_PART").ok().and_then(|it| it.parse().ok());
    given.map_or(PART, NonZeroUsize::get)
}

/// Pulls the results of a repository, as they were listed, into a storage.
pub fn pull(
    storage: &Storage,
    mirror: &Mirror,
    branch: &ResultsBranch,
    request: &PullRequest,
) -> Result<Pulled, ResultsError> {
    let progress = &request.progress;
    progress.begin("fetching", 0);
    let mut pulled = Pulled { from: branch.tip.clone(), ..Pulled::default() };
    mirror.fetch(pulled.from.as_slice())?;
    check_history(mirror, pulled.from.as_ref(), &request.trust)?;
    let Some((tip, tree)) = branch.tip.clone().zip(branch.tree(mirror)?) else { return Ok(pulled) };
    // A finder keeps all that it has read until it is dropped.
    let finder = || Finder::new(mirror, Some(tree.clone()));
    let acceptance = Acceptance::judge(storage, mirror, &mut finder(), &tip.id, &request.trust)?;
    let candidates = candidates(storage, &mut finder(), request, &acceptance, &mut pulled)?;
    let mut finder = finder();
    pulled.removed = acceptance.removed(&mut finder)?;
    let (evidence, revoked) = acceptance.import(storage, request.dry)?;
    pulled.add(evidence);
    pulled.revoked = revoked;
    progress.begin("pulling results", candidates.len());
    let mut candidates = candidates.into_iter();
    let mut rehearsal = Rehearsal::new(storage, mirror);
    let mut large = None;
    loop {
        let part: Vec<PullCandidate> = candidates.by_ref().take(part()).collect();
        if part.is_empty() {
            break;
        }
        let wanted = part.len();
        let new = new_results(part, storage, &mut finder, request, &acceptance, &mut pulled)?;
        progress.advance(wanted - new.len());
        if request.dry {
            rehearsal.rehearse(&new, &mut pulled)?;
        } else {
            publish(storage, mirror, new, &mut large, request, &mut pulled)?;
        }
    }
    pulled.refused.extend(acceptance.refused());
    if !request.dry {
        storage.flush()?;
        remember(mirror, &tip)?;
    }
    Ok(pulled)
}

/// Publishes results: calls first, then tables, then jobs.
fn publish(
    storage: &Storage,
    mirror: &Mirror,
    new: Vec<NewResult>,
    large: &mut Option<LargeSource>,
    request: &PullRequest,
    pulled: &mut Pulled,
) -> Result<(), ResultsError> {
    let progress = &request.progress;
    let files = new.iter().flat_map(|it| it.files.iter().map(|it| &it.id).chain(&it.log).cloned());
    mirror.fetch_files(&files.collect::<Vec<_>>())?;
    let (calls, others): (Vec<_>, Vec<_>) =
        new.into_iter().partition(|it| matches!(it.record, Record::Call(_)));
    let (away, calls): (Vec<_>, Vec<_>) = calls.into_iter().partition(|it| it.is_away);
    publish_away(storage, &away, pulled)?;
    progress.advance(away.len());
    let mut rest = &calls[..];
    while !rest.is_empty() {
        let (batch, later) = rest.split_at(batch(rest));
        let source = if batch.iter().any(NewResult::is_large) {
            let source = match large.take() {
                Some(source) => source,
                None => LargeSource::new(mirror.lfs()?, mirror.beside("lfs-objects"))?,
            };
            let source = large.insert(source);
            source.fetch(&pointers(mirror, batch)?, &|| false)?;
            Some(&*source)
        } else {
            None
        };
        publish_calls(storage, mirror, batch, source, request.limits().git, pulled)?;
        progress.advance(batch.len());
        rest = later;
    }
    for result in &others {
        let imported = match &result.record {
            Record::Table(table) => {
                let files = result.contents(mirror)?;
                let [outcome, recipe] = files.try_into().unwrap_or_default();
                storage.importer().import_table(table, &outcome, recipe)?
            }
            Record::Job(job) => {
                if !import_files(storage, mirror, result)? {
                    pulled.refuse(result.entry.short(), RefusedFor::Contents);
                    progress.advance(1);
                    continue;
                }
                match storage.importer().import_job(job)? {
                    Ok(()) => Import::New(()),
                    Err(missing) => {
                        pulled.refuse_job(storage, result.entry.short(), missing)?;
                        progress.advance(1);
                        continue;
                    }
                }
            }
            Record::Call(_) | Record::TaskInput(_) => continue,
        };
        pulled.note(result, &imported);
        progress.advance(1);
    }
    Ok(())
}

/// Stores the literals of a job, and the outputs that no call has made. Returns false if one of the latter is not as
/// recorded.
fn import_files(storage: &Storage, mirror: &Mirror, job: &NewResult) -> Result<bool, ResultsError> {
    let importer = storage.importer();
    for (found, contents) in job.files.iter().zip(job.contents(mirror)?) {
        if is_users_file(&found.file.name) {
            importer.import_literal(&found.file, &contents)?;
        } else if let Import::Damaged = importer.import_input(&found.file, &contents)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The number of calls that are published at once: from one up.
fn batch(calls: &[NewResult]) -> usize {
    let mut bytes = 0;
    calls
        .iter()
        .take(BATCH)
        .take_while(|result| {
            bytes += result.bytes();
            bytes <= BATCH_BYTES
        })
        .count()
        .max(1)
}

impl Pulled {
    pub(super) fn count(&mut self, result: &NewResult) {
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

    fn note<T>(&mut self, result: &NewResult, imported: &Import<T>) {
        match imported {
            Import::New(_) => self.count(result),
            Import::Known => self.known += 1,
            Import::Differs => self.differing.push(result.entry.short()),
            Import::Damaged => self.refuse(result.entry.short(), RefusedFor::Contents),
        }
    }
}

/// The pointers of results.
fn pointers(mirror: &Mirror, results: &[NewResult]) -> Result<Vec<LfsPointer>, MirrorError> {
    let mut pointers = Vec::new();
    for file in results.iter().flat_map(|it| &it.files).filter(|it| it.is_large) {
        pointers.extend(file.pointer(mirror)?);
    }
    Ok(pointers)
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
        match storage.importer().mark_import(call)? {
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

/// Publishes calls. All are on the disk before the first one is visible.
fn publish_calls(
    storage: &Storage,
    mirror: &Mirror,
    calls: &[NewResult],
    large: Option<&LargeSource>,
    limit: u64,
    pulled: &mut Pulled,
) -> Result<(), ResultsError> {
    let mut lacking = Vec::new();
    let mut staged: Vec<(&NewResult, ImportedCall<'_>)> = Vec::with_capacity(calls.len());
    for result in calls {
        let Record::Call(call) = &result.record else { continue };
        // A log that is too large stays there.
        let log = result.log.as_ref().map(|log| mirror.contents(log, limit)).transpose()?;
        let log = log.flatten().unwrap_or_default();
        let outputs = match result.shared(mirror, large)? {
            Ok(outputs) => outputs,
            Err((file, why)) => {
                pulled.refuse(result.entry.short(), RefusedFor::Object { file, why });
                // Like one that stays there.
                lacking.push(NewResult {
                    entry: result.entry.clone(),
                    record: result.record.clone(),
                    files: Vec::new(),
                    log: None,
                    is_away: true,
                });
                continue;
            }
        };
        match storage.importer().stage_import(call, &outputs, &log)? {
            Import::New(import) => staged.push((result, import)),
            other => pulled.note(result, &other),
        }
    }
    storage.flush()?;
    for (result, import) in staged {
        let published = import.publish()?;
        pulled.note(result, &published);
    }
    publish_away(storage, &lacking, pulled)
}

/// The parameters of a pull.
#[derive(Debug)]
pub struct PullRequest {
    /// The greatest size of a file, in bytes; `None` for the default one.
    pub limit: Option<u64>,
    /// The signers that are trusted, and for which results.
    pub trust: TrustSettings,
    /// Whether nothing is written.
    pub dry: bool,
    /// Learns how far the pull is.
    pub progress: Arc<ExchangeProgress>,
}

impl PullRequest {
    /// The greatest sizes of the files that are pulled.
    fn limits(&self) -> SizeLimits {
        let limit = self.limit.unwrap_or(DEFAULT_LIMIT);
        SizeLimits { git: limit.min(MAX_LIMIT), object: limit }
    }
}

/// The greatest sizes of the files that are pulled, in bytes.
#[derive(Clone, Copy)]
struct SizeLimits {
    /// The greatest size of a file in Git.
    git: u64,
    /// The greatest size of a Git LFS object.
    object: u64,
}

/// The summary of a pull, or of its dry run. As JSON: doc/schema/output.json describes the fields.
#[derive(Debug, Default, Serialize)]
pub struct Pulled {
    /// The number of calls that were new.
    pub calls: usize,
    /// The number of calls whose outputs stay there.
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
    /// The results that were not taken.
    pub refused: Vec<RefusedResult>,
    /// Results that are here and were revoked.
    pub revoked: Vec<RevokedResult>,
    /// Records and evidence that are not in the repository any more.
    pub removed: Vec<RemovedFile>,
    /// The reference and commit that they are from; `None` if the repository has no results.
    #[serde(flatten, serialize_with = "reference_and_commit")]
    pub from: Option<RemoteRef>,
}

impl Pulled {
    /// Whether all results of the repository are here, or were left out by rule.
    pub fn is_complete(&self) -> bool {
        self.differing.is_empty()
            && self.revoked.is_empty()
            && self.removed.is_empty()
            && !self.refused.iter().any(|it| it.why.is_wrong())
    }

    /// Returns the number of new ones of each kind, in words; empty if nothing was new.
    pub fn summary(&self) -> String {
        let results = [(self.calls, "call"), (self.jobs, "job"), (self.tables, "table")];
        counted_with_ledger(&results, self.ledger)
    }

    /// Whether anything is new to the storage.
    pub const fn is_new(&self) -> bool {
        self.calls + self.jobs + self.tables + self.ledger > 0
    }

    /// Notes that a job is not taken, since it names something that is not here.
    fn refuse_job(
        &mut self,
        storage: &Storage,
        job: String,
        missing: MissingPart,
    ) -> Result<(), StorageError> {
        let part = Entry::of_file(&missing.file);
        let name = part.as_ref().map(Entry::short);
        let refused = self.refused.iter().find(|it| Some(&it.name) == name.as_ref());
        let why = match (refused, part) {
            _ if missing.is_other => RefusedFor::Part(missing),
            (Some(part), _) if !part.why.is_wrong() => RefusedFor::StaysWith { file: missing.file },
            // With a record here, the table has lost its file here.
            (None, Some(table @ Entry::Table(_)))
                if is_of_directory(&table, &missing.file)
                    || matches!(storage.records().read_entry(&table)?, RecordState::Absent) =>
            {
                RefusedFor::Derived { file: missing.file }
            }
            (None, Some(Entry::TaskInput(_))) => RefusedFor::Derived { file: missing.file },
            _ => RefusedFor::Part(missing),
        };
        self.refuse(job, why);
        Ok(())
    }

    /// Notes a result that is not taken.
    fn refuse(&mut self, name: String, why: RefusedFor) {
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

/// The state of this storage in the place of a result.
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
    pub(super) files: Vec<FoundFile>,
    /// The log of the call, if the repository has it.
    pub(super) log: Option<ObjectId>,
    /// Whether it becomes known without its outputs.
    pub(super) is_away: bool,
}

/// A file of a result in a repository.
#[derive(Debug)]
pub(super) struct FoundFile {
    file: ExpectedFile,
    /// The id of its contents, or of the pointer to them.
    id: ObjectId,
    /// Whether it is a Git LFS object.
    is_large: bool,
}

impl FoundFile {
    /// Its pointer; `None` unless it points to an object of the recorded size.
    fn pointer(&self, mirror: &Mirror) -> Result<Option<LfsPointer>, MirrorError> {
        let text = mirror.contents(&self.id, LfsPointer::MAX)?.unwrap_or_default();
        let pointer = LfsPointer::parse(&text);
        Ok(pointer.filter(|it| it.size == stored_size(&self.file.digest)))
    }

    fn contents(&self, mirror: &Mirror) -> Result<Vec<u8>, MirrorError> {
        let contents = mirror.contents(&self.id, stored_size(&self.file.digest))?;
        Ok(contents.unwrap_or_default())
    }
}

impl NewResult {
    /// Whether a file of it is a Git LFS object.
    fn is_large(&self) -> bool {
        self.files.iter().any(|it| it.is_large)
    }

    /// Its files, in order, or the name of one that should be an object and is not there, and why.
    fn shared(
        &self,
        mirror: &Mirror,
        large: Option<&LargeSource>,
    ) -> Result<Result<Vec<SharedContents>, (String, String)>, MirrorError> {
        let mut all = Vec::with_capacity(self.files.len());
        for file in &self.files {
            all.push(if file.is_large {
                let pointer = file.pointer(mirror)?.zip(large);
                let object = pointer.map(|(pointer, large)| large.object(&pointer));
                match object.unwrap_or_else(|| Err(NO_POINTER.to_owned())) {
                    Ok(object) => SharedContents::Object(object),
                    Err(why) => return Ok(Err((file.file.name.clone(), why))),
                }
            } else {
                SharedContents::Bytes(file.contents(mirror)?)
            });
        }
        Ok(Ok(all))
    }

    /// The size of its files, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.files.iter().map(|it| stored_size(&it.file.digest)).sum()
    }

    /// The contents of its files, in order. Empty for a file that is larger than recorded.
    pub(super) fn contents(&self, mirror: &Mirror) -> Result<Vec<Vec<u8>>, MirrorError> {
        self.files.iter().map(|file| file.contents(mirror)).collect()
    }
}

/// Finds the results that may be pulled: calls, then tables, then jobs, each in the order of their names. A job names tables and calls.
pub(super) fn candidates(
    storage: &Storage,
    finder: &mut Finder<'_>,
    request: &PullRequest,
    acceptance: &Acceptance<'_>,
    pulled: &mut Pulled,
) -> Result<Vec<PullCandidate>, ResultsError> {
    let marked = Survey::new(storage).marked_away()?;
    let mut candidates = Vec::new();
    let records = finder.records()?;
    request.progress.begin("reading results", records.len());
    let hash = acceptance.mirror.blob_hash();
    let is_here = records.par_iter().map(|(path, record)| {
        request.progress.advance(1);
        is_here(storage, path, hash, record)
    });
    let is_here: Vec<Option<bool>> = is_here.collect::<Result<_, _>>()?;
    for ((path, record), is_same) in records.into_iter().zip(is_here) {
        let Some(entry) = Entry::of_record(&path) else {
            pulled.refuse(path, RefusedFor::Record);
            continue;
        };
        let here = match is_same {
            None => HereAs::Absent,
            Some(true)
                if matches!(&entry, Entry::Call(name) if marked.contains(name))
                    && brings(storage, finder, &entry, request.limits())? =>
            {
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
        // The files of a result are read only if a trusted signer vouches for it.
        match acceptance.check_signed(&path, &record) {
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

/// Whether the record of this name here equals the repository's. `None` if no record is here.
fn is_here(
    storage: &Storage,
    path: &str,
    hash: BlobHash,
    record: &ObjectId,
) -> Result<Option<bool>, StorageError> {
    let Some(entry) = Entry::of_record(path) else { return Ok(None) };
    let RecordState::Valid(known) = storage.records().read_entry(&entry)? else { return Ok(None) };
    let id = known.shared().and_then(|shared| hash.compute_id(&shared.text()));
    Ok(Some(id.as_ref() == Some(record)))
}

/// Reads the new candidates.
fn new_results(
    candidates: Vec<PullCandidate>,
    storage: &Storage,
    finder: &mut Finder<'_>,
    request: &PullRequest,
    acceptance: &Acceptance<'_>,
    pulled: &mut Pulled,
) -> Result<Vec<NewResult>, ResultsError> {
    let mirror = acceptance.mirror;
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
            && let Err(why) = acceptance.check(&entry, &record)
        {
            pulled.refuse(entry.short(), why);
            continue;
        }
        // All other outputs of a job are outputs of its calls.
        let is_job = matches!(record, Record::Job(_));
        let files = if is_job { record.literals() } else { files };
        match in_repository(finder, files, request.limits())? {
            Ok(mut files) => {
                if is_job {
                    files.extend(own_outputs(finder, &entry, &record, request.limits())?);
                }
                let log = log(finder, acceptance, &entry, pulled)?;
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

/// Whether a file is the directory of a table, or in it. No repository has that: a run makes it from the calls.
fn is_of_directory(entry: &Entry, file: &str) -> bool {
    matches!(entry, Entry::Table(_)) && split_member(file).0 != entry.file(0)
}

/// Finds the outputs of a job whose names are names of task inputs, as far as the repository has them in Git.
fn own_outputs(
    finder: &mut Finder<'_>,
    job: &Entry,
    record: &Record,
    limits: SizeLimits,
) -> Result<Vec<FoundFile>, MirrorError> {
    let mut found = Vec::new();
    for OwnOutput { file, input } in job.own_outputs(record) {
        let Some(name) = input else { continue };
        let there = in_repository(finder, vec![file], limits)?.unwrap_or_default();
        let there = there.into_iter().filter(|it| !it.is_large);
        found.extend(there.map(|it| FoundFile { file: it.file.named(name.clone()), ..it }));
    }
    Ok(found)
}

/// The log of a call in the repository, if a trusted signer vouches for it.
fn log(
    finder: &mut Finder<'_>,
    acceptance: &Acceptance<'_>,
    entry: &Entry,
    pulled: &mut Pulled,
) -> Result<Option<ObjectId>, MirrorError> {
    let Entry::Call(name) = entry else { return Ok(None) };
    let Some(log) = finder.file(&name.log())? else { return Ok(None) };
    match acceptance.check_signed(&name.log(), &log) {
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
    limits: SizeLimits,
) -> Result<bool, ResultsError> {
    let RecordState::Valid(record) = storage.records().read_entry(entry)? else { return Ok(false) };
    let files = record.shared().map(|shared| entry.expected_files(&shared)).unwrap_or_default();
    for file in &files {
        if !storage.has(&file.name)? {
            return Ok(in_repository(finder, files, limits)?.is_ok());
        }
    }
    Ok(false)
}

/// Finds the files of a result in the repository, up to these sizes in Git and as objects. Returns why it is not taken, if it is not.
fn in_repository(
    finder: &mut Finder<'_>,
    files: Vec<ExpectedFile>,
    limits: SizeLimits,
) -> Result<Result<Vec<FoundFile>, RefusedFor>, MirrorError> {
    let mut found = Vec::with_capacity(files.len());
    for file in files {
        let bytes = stored_size(&file.digest);
        let pointer = match finder.file(&place(&file))? {
            Some(id) if bytes <= limits.git => {
                found.push(FoundFile { file, id, is_large: false });
                continue;
            }
            _ => finder.file(&large_name(&file.digest))?,
        };
        match pointer {
            Some(id) if bytes <= limits.object => {
                found.push(FoundFile { file, id, is_large: true });
            }
            Some(_) => return Ok(Err(RefusedFor::Large { bytes, limit: limits.object })),
            None if bytes > limits.git => {
                return Ok(Err(RefusedFor::Large { bytes, limit: limits.git }));
            }
            None => return Ok(Err(RefusedFor::Absent)),
        }
    }
    Ok(Ok(found))
}

/// A pull that takes nothing.
struct Rehearsal<'a> {
    storage: &'a Storage,
    mirror: &'a Mirror,
    /// The short names of the calls and tables that would be taken.
    coming: HashSet<String>,
}

impl<'a> Rehearsal<'a> {
    pub(super) fn new(storage: &'a Storage, mirror: &'a Mirror) -> Self {
        Self { storage, mirror, coming: HashSet::new() }
    }

    /// Counts the results that would be taken: calls first, then tables, then jobs.
    fn rehearse(&mut self, new: &[NewResult], pulled: &mut Pulled) -> Result<(), ResultsError> {
        let jobs = new.iter().filter(|it| matches!(it.record, Record::Job(_)));
        let literals = jobs.flat_map(|it| it.files.iter().map(|it| it.id.clone()));
        self.mirror.fetch_files(&literals.collect::<Vec<ObjectId>>())?;
        for result in new {
            let Record::Job(job) = &result.record else {
                self.coming.insert(result.entry.short());
                pulled.count(result);
                continue;
            };
            let literals = self.literals(result)?;
            let is_coming = |file: &str| {
                let result = Entry::of_file(file).filter(|it| !is_of_directory(it, file));
                literals.contains(file)
                    || result.is_some_and(|it| self.coming.contains(&it.short()))
            };
            match self.storage.importer().check_job(job, &is_coming)? {
                Ok(_) => pulled.count(result),
                Err(missing) => pulled.refuse_job(self.storage, result.entry.short(), missing)?,
            }
        }
        Ok(())
    }

    /// The literals and own outputs of a job that would be put into their places.
    fn literals<'b>(&self, job: &'b NewResult) -> Result<HashSet<&'b str>, ResultsError> {
        let mut literals = HashSet::new();
        for (FoundFile { file, .. }, contents) in job.files.iter().zip(job.contents(self.mirror)?) {
            let importer = self.storage.importer();
            let accepts = if is_users_file(&file.name) {
                importer.accepts_literal(file, &contents)?
            } else {
                importer.accepts_input(file, &contents)
            };
            if accepts {
                literals.insert(file.name.as_str());
            }
        }
        Ok(literals)
    }
}
