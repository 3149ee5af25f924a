//! Revocations in a results repository: what somebody says is wrong.

use super::ResultsError;
use super::conflict::read_revocation;
use super::layout::{MAX_RECORD, REVOKED};
use super::tree_search::Finder;
use super::trust::{Distrust, Trust};
use ce_git::Mirror;
use ce_storage::{
    Entry, Record, RecordState, Revocation, RevocationIndex, RevocationRecord, Storage,
    of_revocation,
};

/// A result that somebody has revoked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevokedResult {
    /// Its short name.
    pub name: String,
    /// The reason.
    pub reason: String,
}

/// The revocations in a repository.
#[derive(Debug, Default)]
pub(super) struct RepositoryRevocations {
    /// Those that count.
    pub(super) trusted: RevocationIndex,
    /// Those that do not, by their paths.
    pub(super) refused: Vec<(String, Distrust)>,
}

impl RepositoryRevocations {
    /// Reads the revocations of those who are trusted for the results.
    pub(super) fn of(
        mirror: &Mirror,
        finder: &mut Finder<'_>,
        trust: &Trust,
    ) -> Result<Self, ResultsError> {
        let mut all = Self::default();
        let mut trusted = Vec::new();
        for (path, id) in finder.files_in(REVOKED)? {
            let Some((entry, _)) = of_revocation(&path) else { continue };
            match trust.check(&path, &id, owner(&entry.record())) {
                Ok(()) => trusted.push((path, id)),
                Err(distrust) => all.refused.push((path, distrust)),
            }
        }
        mirror.fetch_files(&trusted.iter().map(|(_, id)| id.clone()).collect::<Vec<_>>())?;
        for (path, id) in trusted {
            all.trusted.extend(read_revocation(mirror, &path, &id)?);
        }
        Ok(all)
    }

    /// Brings the revocations that count and that a storage does not have, unless nothing is to be written. Returns the results there
    /// that are revoked.
    pub(super) fn import(
        &self,
        storage: &Storage,
        dry: bool,
    ) -> Result<Vec<RevokedResult>, ResultsError> {
        for revocation in self.trusted.all().filter(|_| !dry) {
            storage.revocations().add(revocation)?;
        }
        let revoked = self.trusted.revoked_in(storage)?.into_iter();
        Ok(revoked.map(|(name, reason)| RevokedResult { name, reason }).collect())
    }
}

/// What the name of a result begins with: its computation or task.
pub(super) fn owner(path: &str) -> &str {
    path.split('/').next().unwrap_or_default()
}

/// Makes the revocation of a call, as the repository and the storage have it, or one of them. `None` if neither has the call.
pub(super) fn revocation_of(
    storage: &Storage,
    mirror: &Mirror,
    there: &mut Finder<'_>,
    (entry, reason): (&Entry, &str),
) -> Result<Option<Revocation>, ResultsError> {
    let there = there.file(&entry.record())?;
    mirror.fetch_files(there.as_slice())?;
    let text = there.map(|id| mirror.contents(&id, MAX_RECORD)).transpose()?;
    let shared = text.flatten().and_then(|text| Record::of_shared(entry, &text));
    let own = match storage.records().read_entry(entry)? {
        RecordState::Valid(record) => Some(record).filter(|record| entry.fits(record)),
        RecordState::Spoiled | RecordState::Absent => None,
    };
    let [shared, own] = [shared, own].map(|record| Some(entry.outputs(&record?)));
    if shared.is_some() && own.is_some() && shared != own {
        return Err(ResultsError::OtherOutputs(entry.short()));
    }
    let Some(outputs) = shared.or(own) else { return Ok(None) };
    let revoked =
        RevocationRecord { revoked: RevocationRecord::FORMAT, outputs, reason: reason.to_owned() };
    // Nothing in it cannot be written as JSON.
    let mut text = serde_json::to_vec(&revoked).unwrap_or_default();
    text.push(b'\n');
    Ok(Some(Revocation { entry: entry.clone(), record: revoked, text }))
}
