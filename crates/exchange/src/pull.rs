//! Pulling: what a results repository has and a storage has not is published in it.
//!
//! Nothing that comes from there is believed but for its record: names have to belong to their records, and files to be what these
//! say. What is here never changes.

use std::env;
use std::num::NonZeroUsize;

use super::ResultsError;
use super::dry_run::Rehearsal;
use super::evidence::TakenEvidence;
use super::layout::ResultsBranch;
use super::pull_candidates::{
    NewResult, PullCandidate, PullRequest, Pulled, candidates, new_results,
};
use super::refused_results::RefusedFor;
use super::tree_search::Finder;
use super::trust::{check_history, remember};
use super::trust_levels::Beliefs;
use ce_git::Mirror;
use ce_storage::{AwayCall, Import, ImportedCall, Record, Storage};

/// The greatest number of calls that are published at once.
const BATCH: usize = 256;

/// The size of the outputs that are published at once, in bytes.
const BATCH_BYTES: u64 = 64 << 20;

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
///
/// # Errors
///
/// Fails if the repository or the storage cannot be read, or the storage cannot be written.
pub fn pull(
    storage: &Storage,
    (mirror, branch): (&Mirror, &ResultsBranch),
    request: &PullRequest,
) -> Result<Pulled, ResultsError> {
    let progress = &request.progress;
    progress.begin("fetching", 0);
    let mut pulled = Pulled { from: branch.tip.clone(), ..Pulled::default() };
    mirror.fetch(pulled.from.as_slice())?;
    check_history(mirror, pulled.from.as_ref(), &request.trust)?;
    let Some((tip, tree)) = branch.tip.clone().zip(branch.tree(mirror)?) else { return Ok(pulled) };
    // What one has read is forgotten with it.
    let finder = || Finder::new(mirror, Some(tree.clone()));
    let beliefs = Beliefs::of(storage, (mirror, &mut finder()), &tip.id, &request.trust)?;
    let candidates = candidates(storage, &mut finder(), (request, &beliefs), &mut pulled)?;
    let mut finder = finder();
    pulled.removed = beliefs.removed(&mut finder)?;
    let (evidence, revoked) = beliefs.import(storage, request.dry)?;
    pulled.add(evidence);
    pulled.revoked = revoked;
    progress.begin("pulling results", candidates.len());
    let mut candidates = candidates.into_iter();
    let mut rehearsal = Rehearsal::new(storage, mirror);
    loop {
        let part: Vec<PullCandidate> = candidates.by_ref().take(part()).collect();
        if part.is_empty() {
            break;
        }
        let wanted = part.len();
        let new = new_results(part, storage, &mut finder, (request, &beliefs), &mut pulled)?;
        progress.advance(wanted - new.len());
        match request.dry {
            true => rehearsal.rehearse(&new, &mut pulled)?,
            false => publish(storage, mirror, new, (request, &mut pulled))?,
        }
    }
    pulled.refused.extend(beliefs.refused());
    if !request.dry {
        storage.flush()?;
        remember(mirror, &tip)?;
    }
    Ok(pulled)
}

/// Publishes results, of which calls come first, then tables, then jobs.
fn publish(
    storage: &Storage,
    mirror: &Mirror,
    new: Vec<NewResult>,
    (request, pulled): (&PullRequest, &mut Pulled),
) -> Result<(), ResultsError> {
    let progress = &request.progress;
    let files = new.iter().flat_map(|it| it.files.iter().map(|(_, id)| id).chain(&it.log).cloned());
    mirror.fetch_files(&files.collect::<Vec<_>>())?;
    let (calls, others): (Vec<_>, Vec<_>) =
        new.into_iter().partition(|it| matches!(it.record, Record::Call(_)));
    let (away, calls): (Vec<_>, Vec<_>) = calls.into_iter().partition(|it| it.is_away);
    publish_away(storage, &away, pulled)?;
    progress.advance(away.len());
    let mut rest = &calls[..];
    while !rest.is_empty() {
        let (batch, later) = rest.split_at(batch(rest));
        publish_calls(storage, mirror, batch, (request.limit, pulled))?;
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
                for ((file, _), contents) in result.files.iter().zip(result.contents(mirror)?) {
                    storage.importer().import_literal(file, &contents)?;
                }
                match storage.importer().import_job(job)? {
                    Ok(()) => Import::New(()),
                    Err(missing) => {
                        pulled.refuse_job(result.entry.short(), missing);
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

/// The number of calls that are published at once: from one up.
fn batch(calls: &[NewResult]) -> usize {
    let mut bytes = 0;
    let fits = |result: &&NewResult| {
        bytes += result.bytes();
        bytes <= BATCH_BYTES
    };
    calls.iter().take(BATCH).take_while(fits).count().max(1)
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

/// Publishes calls, all of which are on the disk before the first one is visible.
fn publish_calls(
    storage: &Storage,
    mirror: &Mirror,
    calls: &[NewResult],
    (limit, pulled): (u64, &mut Pulled),
) -> Result<(), ResultsError> {
    let mut staged: Vec<(&NewResult, ImportedCall<'_>)> = Vec::with_capacity(calls.len());
    for result in calls {
        let Record::Call(call) = &result.record else { continue };
        // A log that is too large stays there.
        let log = result.log.as_ref().map(|log| mirror.contents(log, limit)).transpose()?;
        let log = log.flatten().unwrap_or_default();
        match storage.importer().stage_import(call, (&result.contents(mirror)?, &log))? {
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
