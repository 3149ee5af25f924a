//! What is believed of the results of a repository: by signatures, attestations and revocations.

use super::ResultsError;
use super::evidence::{Evidence, TakenEvidence};
use super::ledger::call_identity;
use super::refused_results::{RefusedFor, RefusedResult};
use super::revocations::{RepositoryRevocations, RevokedResult, owner};
use super::tree_search::Finder;
use super::trust::{Trust, TrustSettings};
use ce_git::{Mirror, MirrorError};
use ce_model::digest::ObjectId;
use ce_storage::{Entry, Record, Storage};

/// What is believed of the results of a repository.
#[derive(Debug)]
pub(super) struct Beliefs<'a> {
    pub(super) mirror: &'a Mirror,
    trust: Trust,
    evidence: Evidence,
    revoked: RepositoryRevocations,
    /// The number of attesters that a call needs.
    required: usize,
}

impl<'a> Beliefs<'a> {
    /// Judges the results that a finder finds, which are those of a tip. What the storage knows to be revoked counts, too.
    pub(super) fn of(
        storage: &Storage,
        (mirror, finder): (&'a Mirror, &mut Finder<'_>),
        tip: &ObjectId,
        settings: &TrustSettings,
    ) -> Result<Self, ResultsError> {
        let trust = Trust::of(mirror, tip, settings)?;
        let required = settings.require.map_or(0, Into::into);
        let evidence = Evidence::of(mirror, finder, required > 0)?;
        let mut revoked = RepositoryRevocations::of(mirror, finder, &trust)?;
        revoked.trusted.extend(storage.revocations().index()?.all().cloned());
        Ok(Self { mirror, trust, evidence, revoked, required })
    }

    /// Checks that somebody who is trusted for a result has signed a file of it that no record vouches for: its record, or its log.
    pub(super) fn check_signed(&self, path: &str, file: &ObjectId) -> Result<(), RefusedFor> {
        self.trust.check(path, file, owner(path)).map_err(RefusedFor::Untrusted)
    }

    /// Checks that a result is attested by as many as required, and not revoked.
    pub(super) fn check(&self, entry: &Entry, record: &Record) -> Result<(), RefusedFor> {
        let outputs = entry.outputs(record);
        if let Some(reason) = self.revoked.trusted.reason(entry, &outputs) {
            return Err(RefusedFor::Revoked { reason: reason.to_owned() });
        }
        if let Record::Job(job) = record
            && let Some((call, reason)) = self.revoked.trusted.first_of(&job.calls)
        {
            let (call, reason) = (call.to_owned(), reason.to_owned());
            return Err(RefusedFor::RevokedCall { call, reason });
        }
        match (record, self.required) {
            (_, 0) | (Record::Job(_) | Record::TaskInput(_), _) => Ok(()),
            (Record::Table(_), _) => Err(RefusedFor::Table),
            (Record::Call(call), required) => {
                let (path, call) = (entry.record(), call_identity(call));
                let attested = self.evidence.attested(&self.trust, (&call, owner(&path)), &outputs);
                match attested.by.agreeing.len() >= required {
                    true => Ok(()),
                    false => Err(RefusedFor::Attested { attested, required }),
                }
            }
        }
    }

    /// The revocations that do not count.
    pub(super) fn refused(&self) -> impl Iterator<Item = RefusedResult> {
        self.revoked.refused.iter().map(|(path, distrust)| RefusedResult {
            name: path.clone(),
            why: RefusedFor::Untrusted(distrust.clone()),
        })
    }

    /// What commits have taken away, and is not there again.
    pub(super) fn removed(
        &self,
        finder: &mut Finder<'_>,
    ) -> Result<Vec<(String, ObjectId)>, MirrorError> {
        let mut removed = Vec::new();
        for (path, commit) in self.trust.removed() {
            if finder.file(path)?.is_none() {
                removed.push((path.to_owned(), commit.clone()));
            }
        }
        Ok(removed)
    }

    /// Brings the ledger and the revocations, unless nothing is to be written. Returns what was new of the ledger, and the results
    /// that are here and revoked.
    pub(super) fn import(
        &self,
        storage: &Storage,
        dry: bool,
    ) -> Result<(TakenEvidence, Vec<RevokedResult>), ResultsError> {
        let taken = self.evidence.import(storage, self.mirror, &self.trust, dry)?;
        Ok((taken, self.revoked.import(storage, dry)?))
    }
}
