//! The selection of a push: results that the repository lacks and that do not stay here, with their executions, logs,
//! inputs and revocations.

use std::collections::{BTreeMap, HashSet};

use ce_git::{BlobHash, LfsPointer, Mirror, PackWriter, UnwrittenTree};
use ce_model::digest::{Blake3, ObjectId};
use ce_storage::records::{CallRecord, Origin};
use ce_storage::{
    Entry, ExpectedFile, Record, ResultName, Revocation, RevokedResults, Storage, StorageError,
    Survey, large_name, ledger_file,
};
use rayon::prelude::*;

use crate::ledger::{LedgerFacts, LedgerLine, LedgerReason, LedgerWriter, own_executions};
use crate::lfs::{LargeUploads, StagedObject, StoredLarge};
use crate::pushed::{LeftOut, PushRequest, Pushed, PushedLogs, Withheld};
use crate::repository::{FileSizes, Finder, place, stored_size};
use crate::secrets::{Secrets, has, has_word};
use crate::{ExchangeProgress, ResultsError};

/// The number of records that are read at once, by all cores.
const BATCH: usize = 1024;

/// The chosen results. Little is kept of each: there may be a million.
pub(super) struct Selection<'a> {
    storage: &'a Storage,
    mirror: &'a Mirror,
    /// The sizes that decide where a file goes.
    sizes: FileSizes,
    /// The values that become Git LFS objects; `None` if objects are not used.
    pub(super) large: Option<LargeUploads>,
    logs: PushedLogs,
    /// The task inputs that were looked at; `None` if inputs are not pushed.
    inputs: Option<HashSet<String>>,
    /// The secrets that files are searched for; `None` if these may be pushed.
    secrets: Option<Secrets>,
    /// Writes files, unless nothing is to be written.
    pub(super) writer: Option<PackWriter<'a>>,
    /// The files that were written.
    pub(super) files: UnwrittenTree,
    /// Revocations, and records in whose places the repository has others: these may be known there, too.
    pub(super) compared: Vec<(String, Vec<u8>)>,
    /// The results that are revoked as they stand here.
    revoked: RevokedResults,
    /// Whether the executions of calls that the repository has already are added to the ledger.
    attest: bool,
    /// The facts on executions that are published.
    facts: LedgerFacts,
    /// This storage's executions that are in the ledger already; `None` until they are needed.
    attested: Option<HashSet<Blake3>>,
    /// The lines of the ledger that are in no file yet.
    lines: LedgerWriter,
    /// The files of the ledger with the others.
    pub(super) ledger: Vec<ObjectId>,
    /// The jobs: the task with its commit, and the short name.
    pub(super) jobs: Vec<(String, String)>,
    /// The summary of the push.
    pub(super) pushed: Pushed,
}

impl<'a> Selection<'a> {
    /// Chooses the results that the repository does not have, and writes their files.
    pub(super) fn from_storage(
        storage: &'a Storage,
        mirror: &'a Mirror,
        there: &mut Finder<'_>,
        request: &PushRequest,
        lfs: Option<u64>,
    ) -> Result<Self, ResultsError> {
        let revocations = storage.revocations().index()?;
        let entries = Survey::new(storage).entries()?;
        let mut selection = Self {
            storage,
            mirror,
            sizes: FileSizes::with_limits(request.limit, lfs),
            large: lfs.map(|_| LargeUploads::new(mirror, request.dry)).transpose()?,
            logs: request.logs,
            inputs: request.inputs.then(HashSet::new),
            secrets: (!request.allow_secrets).then(Secrets::of_environment),
            writer: (!request.dry).then(|| mirror.writer()),
            files: UnwrittenTree::new(),
            compared: Vec::new(),
            revoked: revocations.revoked_among(storage, &entries)?,
            attest: request.attest,
            facts: request.facts,
            attested: None,
            lines: LedgerWriter::new(LedgerReason::Run, request.by.as_deref()),
            ledger: Vec::new(),
            jobs: Vec::new(),
            pushed: Pushed::default(),
        };
        let (all, mut done) = (entries.len(), 0);
        let mut entries = entries.into_iter();
        request.progress.begin("reading results", all);
        loop {
            let batch: Vec<Entry> = entries.by_ref().take(BATCH).collect();
            if batch.is_empty() {
                break;
            }
            let results = batch.len();
            let offered = offered(storage, batch, selection.sizes, mirror.blob_hash())?;
            if selection.stage_large(there, &offered, &request.progress)? {
                request.progress.begin("reading results", all);
                request.progress.advance(done);
            }
            for result in offered {
                match result {
                    Ok(result) if selection.choose(there, &result)? => {
                        selection.add_log(there, &result)?;
                        selection.add_inputs(there, &result)?;
                    }
                    Ok(_) => {}
                    Err(left_out) => selection.pushed.left_out.push(left_out),
                }
            }
            request.progress.advance(results);
            done += results;
        }
        for revocation in revocations.all() {
            selection.add_revocation(there, revocation)?;
        }
        let rest = selection.lines.rest();
        selection.add_ledger(rest)?;
        Ok(selection)
    }

    /// Writes the files of a result, if the repository does not have it and nothing keeps it here. Whether the repository has it
    /// then.
    fn choose(
        &mut self,
        there: &mut Finder<'_>,
        result: &SharedResult,
    ) -> Result<bool, ResultsError> {
        let known = there.find(&result.entry.record())?.map(|it| it.id);
        if known.is_some() && known == result.id && !self.brings(there, result)? {
            self.pushed.known += 1;
            if self.attest && self.add_execution(result, true)? {
                self.pushed.attested += 1;
            }
            return Ok(true);
        }
        let added =
            match self.revoked(result).map_or_else(|| self.add(result), |why| Ok(Err(why)))? {
                Ok(added) => added,
                Err(why) => {
                    self.leave_out(result.entry.short(), why);
                    return Ok(false);
                }
            };
        if known.is_some() && known != result.id {
            self.compared.push((result.entry.record(), result.text.clone()));
        }
        match &result.record {
            Record::Call(_) => {
                self.pushed.calls += 1;
                self.pushed.away += usize::from(added.stays);
            }
            Record::Job(job) => {
                let task = format!("{}@{}", job.task, job.commit.short());
                self.jobs.push((task, result.entry.short()));
                self.pushed.jobs += 1;
            }
            Record::Table(_) | Record::TaskInput(_) => self.pushed.tables += 1,
        }
        self.pushed.bytes += added.bytes;
        self.add_execution(result, known.is_some())?;
        Ok(true)
    }

    /// Adds the execution of a result to the ledger, if it was executed here. If the repository has the result or another one in its place,
    /// this storage may have said so before. Returns whether it is added.
    fn add_execution(
        &mut self,
        result: &SharedResult,
        is_there: bool,
    ) -> Result<bool, ResultsError> {
        let Record::Call(call) = &result.record else { return Ok(false) };
        let Some(execution) = LedgerLine::from_call(result.entry.short(), call, self.facts) else {
            return Ok(false);
        };
        if is_there {
            let attested = match &mut self.attested {
                Some(attested) => attested,
                attested => attested.insert(own_executions(self.storage)?),
            };
            let [of_execution, with_facts] = execution.identities();
            if !attested.insert(with_facts) {
                return Ok(false);
            }
            attested.insert(of_execution);
        }
        let full = self.lines.add(&execution.line());
        self.add_ledger(full)?;
        Ok(true)
    }

    /// Returns the reason to keep a result here if it is revoked, or is a job with a revoked call.
    fn revoked(&self, result: &SharedResult) -> Option<Withheld> {
        if let Record::Job(job) = &result.record {
            let (call, reason) = job.calls.iter().find_map(|it| self.revoked.get_key_value(it))?;
            return Some(Withheld::RevokedCall { call: call.clone(), reason: reason.clone() });
        }
        let reason = self.revoked.get(&result.entry.short())?.clone();
        Some(Withheld::Revoked { reason })
    }

    /// Writes a revocation, if the repository does not have it.
    fn add_revocation(
        &mut self,
        there: &mut Finder<'_>,
        revocation: &Revocation,
    ) -> Result<(), ResultsError> {
        let name = revocation.name();
        if there.find(&name)?.is_some() {
            return Ok(());
        }
        if let Some(what) = self.secrets.as_ref().and_then(|it| it.find(&revocation.text)) {
            self.leave_out(name.clone(), Withheld::Secret { file: name, what });
            return Ok(());
        }
        self.pushed.revoked += 1;
        self.compared.push((name.clone(), revocation.text.clone()));
        self.write(&name, &revocation.text)
    }

    /// Writes the log of a call, if it is wanted and the repository lacks it.
    fn add_log(
        &mut self,
        there: &mut Finder<'_>,
        result: &SharedResult,
    ) -> Result<(), ResultsError> {
        let (Entry::Call(name), Record::Call(call)) = (&result.entry, &result.record) else {
            return Ok(());
        };
        if self.logs == PushedLogs::None {
            return Ok(());
        }
        // A log beside a record with other outputs is the log of another execution.
        let is_same = there.file(&result.entry.record())? == result.id;
        if is_same && there.find(&name.log())?.is_some() {
            return Ok(());
        }
        let Self { storage, logs, secrets, sizes, .. } = self;
        match shared_log(storage, name, call, *logs, sizes.limit, secrets.as_ref())? {
            None => Ok(()),
            Some(Err(why)) => {
                self.leave_out(name.log(), why);
                Ok(())
            }
            Some(Ok(contents)) => {
                self.pushed.logs += 1;
                self.pushed.bytes += contents.len() as u64;
                self.write(&name.log(), &contents)
            }
        }
    }

    /// Writes the inputs of a job, if they are wanted and the repository does not have them.
    fn add_inputs(
        &mut self,
        there: &mut Finder<'_>,
        result: &SharedResult,
    ) -> Result<(), ResultsError> {
        let Record::Job(job) = &result.record else { return Ok(()) };
        let Some(mut seen) = self.inputs.take() else { return Ok(()) };
        for digest in job.inputs.iter().map(|input| input.digest).chain(job.named_files()) {
            let (file, is_here) = self.storage.inputs().expected(digest)?;
            let place = place(&file);
            if !seen.insert(place.clone()) || there.find(&place)?.is_some() {
                continue;
            }
            match shared_input(self.storage, &file, self.sizes.limit, self.secrets.as_ref())? {
                Err(Withheld::Damaged { .. }) if !is_here => {}
                Ok(contents) => {
                    self.pushed.inputs += 1;
                    self.pushed.bytes += contents.len() as u64;
                    self.write(&place, &contents)?;
                }
                Err(why) => self.leave_out(file.name, why),
            }
        }
        self.inputs = Some(seen);
        Ok(())
    }

    /// Notes a result that is not pushed.
    fn leave_out(&mut self, name: String, why: Withheld) {
        self.pushed.left_out.push(LeftOut { name, why });
    }

    /// Writes a file, unless nothing is to be written.
    fn write(&mut self, path: &str, contents: &[u8]) -> Result<(), ResultsError> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        let written = writer.file(contents).and_then(|id| self.files.insert(path, &id));
        Ok(written.map_err(|error| self.mirror.own(error))?)
    }

    /// Writes a file of the ledger.
    fn add_ledger(&mut self, file: Option<Vec<u8>>) -> Result<(), ResultsError> {
        if let Some((text, writer)) = file.zip(self.writer.as_mut()) {
            let path = ledger_file(&Blake3::hash_bytes(&text));
            let written = writer.file(&text).and_then(|id| {
                self.files.insert(&path, &id)?;
                Ok(id)
            });
            self.ledger.push(written.map_err(|error| self.mirror.own(error))?);
        }
        Ok(())
    }

    /// Whether the repository has a result without a file that is here: one that was away, or was lost there.
    fn brings(&self, there: &mut Finder<'_>, result: &SharedResult) -> Result<bool, ResultsError> {
        for SharedFile { file, path, stays, is_large } in &result.files {
            let Some(path) = path.as_ref().filter(|_| !stays) else { continue };
            // The setting may have been different when it was pushed.
            let other = if *is_large { place(file) } else { large_name(&file.digest) };
            if there.find(path)?.is_none()
                && there.find(&other)?.is_none()
                && self.storage.has(&file.name)?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Makes objects of the large values of pushed results that the repository lacks or has lost. Returns whether there are
    /// any.
    fn stage_large(
        &mut self,
        there: &mut Finder<'_>,
        offered: &[Result<SharedResult, LeftOut>],
        progress: &ExchangeProgress,
    ) -> Result<bool, ResultsError> {
        let (mut files, mut stored) = (Vec::new(), BTreeMap::new());
        for result in offered.iter().flatten() {
            let large = result.files.iter().filter(|it| it.is_large && !it.stays);
            let large: Vec<&ExpectedFile> = large.map(|it| &it.file).collect();
            if large.is_empty() || self.revoked(result).is_some() {
                continue;
            }
            let known = there.find(&result.entry.record())?.map(|it| it.id);
            let is_new = known.is_none() || known != result.id || self.brings(there, result)?;
            for file in large {
                match there.find(&large_name(&file.digest))? {
                    Some(pointer) if self.storage.has(&file.name)? => {
                        // An output of a job is one of a call.
                        let large = stored.entry(large_name(&file.digest));
                        let first = StoredLarge { pointer: pointer.id, file, is_relied_on: false };
                        large.or_insert(first).is_relied_on |= is_new;
                    }
                    None if is_new => files.push(file),
                    _ => {}
                }
            }
        }
        let Some(large) = self.large.as_mut() else { return Ok(false) };
        let lost =
            large.lost(self.storage, self.mirror, &stored.into_values().collect::<Vec<_>>())?;
        files.extend(&lost);
        if files.is_empty() {
            return Ok(false);
        }
        let bytes = files.iter().map(|file| stored_size(&file.digest)).sum();
        progress.begin_bytes("copying large results", bytes);
        large.stage(self.storage, &files, self.secrets.as_ref(), progress)?;
        for file in lost {
            match large.staged(file).map(|staged| staged.pointer(file)) {
                Some(Err(why)) => {
                    self.pushed.left_out.push(LeftOut { name: file.name.clone(), why });
                }
                Some(Ok(_)) | None => self.pushed.restored += 1,
            }
        }
        Ok(true)
    }

    /// Makes an object of an output that reads like a pointer, where outputs are objects: servers refuse a file that seems
    /// to be a pointer and has no object. Returns whether it is such an output.
    fn stage_like_pointer(
        &mut self,
        result: &SharedResult,
        file: &ExpectedFile,
    ) -> Result<bool, ResultsError> {
        let Some(large) = &mut self.large else { return Ok(false) };
        if result.marker.is_none()
            || file.digest.is_directory()
            || file.digest.size > LfsPointer::MAX
        {
            return Ok(false);
        }
        let contents = self.storage.values().contents(file)?;
        if contents.is_none_or(|it| LfsPointer::parse(&it).is_none()) {
            return Ok(false);
        }
        let progress = ExchangeProgress::default();
        large.stage(self.storage, &[file], self.secrets.as_ref(), &progress)?;
        Ok(true)
    }

    /// Adds a value that is a Git LFS object, and is away in its place: its pointer, unless the repository has that.
    /// Returns why it is not pushed, or `None` if it is.
    fn add_large(
        &self,
        result: &SharedResult,
        file: &ExpectedFile,
        added: &mut Added,
    ) -> Result<Result<Option<LfsPointer>, Withheld>, ResultsError> {
        added.is_away = true;
        Ok(match self.large.as_ref().and_then(|large| large.staged(file)) {
            None => Ok(None),
            Some(StagedObject::Damaged)
                if self.storage.evictions().is_away(&result.entry, file)? =>
            {
                added.stays = true;
                Ok(None)
            }
            Some(staged) => staged.pointer(file).map(|pointer| Some(pointer.clone())),
        })
    }

    /// Reads and writes the files of a result that do not stay here. Writes no file if the result is withheld, and
    /// returns the reason.
    fn add(&mut self, result: &SharedResult) -> Result<Result<Added, Withheld>, ResultsError> {
        let mut files = Vec::with_capacity(result.files.len() + 3);
        let mut added = Added::default();
        // The outputs of a job that its calls have made have been counted there.
        let literals = result.record.literals();
        let own = result.entry.own_outputs(&result.record);
        for SharedFile { file, path, stays, is_large } in &result.files {
            if *stays {
                added.set_away();
                continue;
            }
            let is_literal = literals.contains(file);
            let is_counted = !matches!(result.record, Record::Job(_))
                || is_literal
                || own.iter().any(|it| it.file == *file);
            let is_like_pointer = !is_literal && self.stage_like_pointer(result, file)?;
            if *is_large || is_like_pointer {
                let path = path.as_ref().map(|_| large_name(&file.digest));
                let pointer = match self.add_large(result, file, &mut added)? {
                    Ok(pointer) => pointer,
                    Err(why) => return Ok(Err(why)),
                };
                let Some((path, pointer)) = path.zip(pointer) else { continue };
                if is_counted {
                    added.bytes += pointer.size;
                }
                files.push((path, pointer.text().into_bytes()));
                continue;
            }
            let Some(contents) = self.storage.values().shared_contents(file)? else {
                if self.storage.evictions().is_away(&result.entry, file)? {
                    added.set_away();
                    continue;
                }
                return Ok(Err(Withheld::Damaged { file: file.name.clone() }));
            };
            if let Some(secrets) = &self.secrets
                && let Some((member, what)) = secrets.find_in(&contents, &file.digest)
            {
                return Ok(Err(Withheld::Secret { file: file.name.clone() + &member, what }));
            }
            if let Some(path) = path {
                if is_counted {
                    added.bytes += stored_size(&file.digest);
                }
                files.push((path.clone(), contents));
            }
        }
        let marker = result.marker.iter().filter(|_| added.is_away);
        files.extend(marker.map(|marker| (marker.clone(), Vec::new())));
        files.extend(result.note.iter().map(|note| (note.clone(), Vec::new())));
        files.push((result.entry.record(), result.text.clone()));
        for (path, contents) in files {
            self.write(&path, &contents)?;
        }
        Ok(Ok(added))
    }
}

/// The size of a result that was added, and whether its outputs are there.
#[derive(Clone, Copy, Debug, Default)]
struct Added {
    /// The size of its files, in bytes.
    bytes: u64,
    /// Whether outputs of it are not in their places.
    is_away: bool,
    /// Whether outputs of it stay here.
    stays: bool,
}

impl Added {
    /// Outputs of it stay here.
    const fn set_away(&mut self) {
        (self.is_away, self.stays) = (true, true);
    }
}

/// Reads the results that a storage offers, without task inputs. Spoiled records are left out: `ce verify` reports
/// them.
fn offered(
    storage: &Storage,
    entries: Vec<Entry>,
    sizes: FileSizes,
    hash: BlobHash,
) -> Result<Vec<Result<SharedResult, LeftOut>>, StorageError> {
    let results = entries.into_par_iter().filter(|it| !matches!(it, Entry::TaskInput(_)));
    let read = results.map(|entry| {
        let record = storage.records().read_fitting(&entry)?;
        Ok(record.map(|record| shared_result(storage, entry, record, sizes, hash)))
    });
    Ok(read.collect::<Result<Vec<_>, StorageError>>()?.into_iter().flatten().collect())
}

/// A result that may be pushed.
#[derive(Debug)]
pub(super) struct SharedResult {
    /// The result.
    pub(super) entry: Entry,
    pub(super) record: Record,
    /// The text of its record in a results repository.
    pub(super) text: Vec<u8>,
    /// The id of that text there.
    pub(super) id: Option<ObjectId>,
    /// The values that this promises.
    pub(super) files: Vec<SharedFile>,
    /// An empty file that lists it under its tree, for other commits.
    pub(super) note: Option<String>,
    /// An empty file that marks it as away; `None` for a result that is only there as a whole.
    marker: Option<String>,
}

/// A file or directory of a result.
#[derive(Debug)]
pub(super) struct SharedFile {
    /// The file that the record promises.
    pub(super) file: ExpectedFile,
    /// Its path in the repository. `None` if another result puts it there: a call, for example, whose output is the directory of a job.
    pub(super) path: Option<String>,
    /// Whether it is too large. Then it is not pushed, and the result is there without it.
    pub(super) stays: bool,
    /// Whether it is a Git LFS object there. Its path is the path of the pointer.
    pub(super) is_large: bool,
}

/// Returns the part of a result that a storage offers, or the reason why it keeps it to itself.
fn shared_result(
    storage: &Storage,
    entry: Entry,
    record: Record,
    sizes: FileSizes,
    hash: BlobHash,
) -> Result<SharedResult, LeftOut> {
    let parts = shared_parts(storage, &entry, &record, sizes);
    let (text, files, note) = parts.map_err(|why| LeftOut { name: entry.short(), why })?;
    let (id, marker) = (hash.compute_id(&text), marker(&entry));
    Ok(SharedResult { entry, record, text, id, files, note, marker })
}

/// The text of the record, the values, and the note.
type Offered = (Vec<u8>, Vec<SharedFile>, Option<String>);

fn shared_parts(
    storage: &Storage,
    entry: &Entry,
    record: &Record,
    sizes: FileSizes,
) -> Result<Offered, Withheld> {
    let Some(shared) = record.shared() else {
        return Err(match record {
            Record::Call(call) if call.origin == Origin::Adopted => Withheld::Adopted,
            Record::Call(call) if call.has_trusted_tree() => Withheld::TrustedTree,
            Record::Job(job) if !job.revisions.is_empty() => Withheld::Revisions,
            _ => Withheld::Dirty,
        });
    };
    let literals = shared.literals();
    let mut files = Vec::new();
    let own = entry.own_outputs(&shared);
    for file in entry.expected_files(&shared).into_iter().chain(literals.iter().cloned()) {
        let (is_literal, bytes) = (literals.contains(&file), stored_size(&file.digest));
        // A table is there as a whole, and so is a literal that a job reads, since no call makes it again.
        let may_be_away = !is_literal && marker(entry).is_some();
        let is_large = may_be_away && sizes.large.is_some_and(|large| bytes > large);
        let limit = if is_large { sizes.large_limit } else { sizes.limit };
        if bytes > limit && !may_be_away {
            return Err(Withheld::Large { bytes, limit });
        }
        let is_elsewhere = matches!(entry, Entry::Job(_))
            && file.digest.is_directory()
            && !is_literal
            && !own.iter().any(|it| it.file == file);
        let path = if is_large { large_name(&file.digest) } else { place(&file) };
        let path = (!is_elsewhere).then_some(path);
        files.push(SharedFile { path, stays: bytes > limit, is_large, file });
    }
    let note = match (entry, record) {
        (Entry::Call(name), Record::Call(call)) => Some(storage.equivalents().note_of(name, call)),
        _ => None,
    };
    Ok((shared.text(), files, note))
}

/// The name of the marker of a result whose outputs may be away.
fn marker(entry: &Entry) -> Option<String> {
    match entry {
        Entry::Call(name) | Entry::Job(name) => Some(name.away()),
        Entry::Table(_) | Entry::TaskInput(_) => None,
    }
}

/// Returns the log of a call, if it has printed anything, or why it stays here.
fn shared_log(
    storage: &Storage,
    name: &ResultName,
    call: &CallRecord,
    logs: PushedLogs,
    limit: u64,
    secrets: Option<&Secrets>,
) -> Result<Option<Result<Vec<u8>, Withheld>>, StorageError> {
    let Some(bytes) = storage.logs().log_size(name)?.filter(|bytes| *bytes > 0) else {
        return Ok(None);
    };
    if logs == PushedLogs::Isolated && !call.origin.is_isolated() {
        return Ok(Some(Err(Withheld::Log)));
    }
    if bytes > limit {
        return Ok(Some(Err(Withheld::Large { bytes, limit })));
    }
    let contents = storage.logs().log_contents(name)?;
    let what = secrets.and_then(|secrets| {
        let found = secrets.find(&contents);
        found.or_else(|| named(&contents, storage, call).map(str::to_owned))
    });
    Ok(Some(match what {
        Some(what) => Err(Withheld::Secret { file: name.log(), what }),
        None => Ok(contents),
    }))
}

/// Finds something in a log that no record in a results repository has: the path of the storage, or the name of a host or a user.
fn named(contents: &[u8], storage: &Storage, call: &CallRecord) -> Option<&'static str> {
    let names = storage.path("");
    let place = names.components().as_path().as_os_str().as_encoded_bytes();
    if has(contents, place) {
        return Some("the path of the storage");
    }
    let recorded = call.recorded.as_ref()?;
    match () {
        () if has_word(contents, &recorded.host) => Some("the name of a host"),
        () if has_word(contents, &recorded.user) => Some("the name of a user"),
        () => None,
    }
}

/// Returns a task input as a results repository holds it, or why it stays here.
fn shared_input(
    storage: &Storage,
    file: &ExpectedFile,
    limit: u64,
    secrets: Option<&Secrets>,
) -> Result<Result<Vec<u8>, Withheld>, StorageError> {
    let bytes = stored_size(&file.digest);
    if bytes > limit {
        return Ok(Err(Withheld::Large { bytes, limit }));
    }
    let Some(contents) = storage.values().shared_contents(file)? else {
        return Ok(Err(Withheld::Damaged { file: file.name.clone() }));
    };
    let secret = secrets.and_then(|secrets| secrets.find_in(&contents, &file.digest));
    Ok(match secret {
        Some((member, what)) => Err(Withheld::Secret { file: file.name.clone() + &member, what }),
        None => Ok(contents),
    })
}
