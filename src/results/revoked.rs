//! Revocations in a results repository: what somebody says is wrong.

use std::collections::HashMap;

use super::ResultsError;
use super::finder::Finder;
use super::layout::{MAX_RECORD, REVOKED};
use super::trust::{Distrust, Trust};
use crate::digest::{Blake3, Digest, ObjectId};
use crate::git::{Mirror, PackWriter};
use crate::storage::records::CallRecord;
use crate::storage::{Entry, Read, Record, RevocationRecord, Storage, of_revocation, revocation};

/// The greatest size of a revocation, in bytes.
const MAX_REVOCATION: u64 = 1 << 20;

/// A result that somebody has revoked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevokedResult {
    /// Its short name.
    pub name: String,
    /// The reason.
    pub reason: String,
}

/// The revocations in a repository that count.
#[derive(Debug, Default)]
pub(super) struct RevokedResults {
    of_record: HashMap<String, Vec<(Entry, RevocationRecord, Vec<u8>)>>,
    /// The revoked calls that the repository has, by their short names, with the reasons.
    there: HashMap<String, String>,
    /// Those that do not, by their paths.
    pub(super) refused: Vec<(String, Distrust)>,
}

impl RevokedResults {
    /// Reads the revocations of those who are trusted for the results.
    pub(super) fn of(
        mirror: &Mirror,
        finder: &mut Finder<'_>,
        trust: &Trust,
    ) -> Result<Self, ResultsError> {
        let mut revoked = Self::default();
        let mut trusted = Vec::new();
        for (path, id) in finder.files_in(REVOKED)? {
            let Some((entry, contents)) = of_revocation(&path) else { continue };
            match trust.check(&path, &id, owner(&entry.record())) {
                Ok(()) => trusted.push((entry, contents, id)),
                Err(distrust) => revoked.refused.push((path, distrust)),
            }
        }
        let ids: Vec<ObjectId> = trusted.iter().map(|(_, _, id)| id.clone()).collect();
        mirror.fetch_files(&ids)?;
        for (entry, contents, id) in trusted {
            let text = mirror.contents(&id, MAX_REVOCATION)?;
            let Some(text) = text.filter(|text| Blake3::of(text) == contents) else { continue };
            let Some(record) = RevocationRecord::of_text(&text) else { continue };
            revoked.of_record.entry(entry.record()).or_default().push((entry, record, text));
        }
        revoked.find_calls(mirror, finder)?;
        Ok(revoked)
    }

    /// Finds which of the calls in the repository are revoked with the outputs that they have there.
    fn find_calls(&mut self, mirror: &Mirror, finder: &mut Finder<'_>) -> Result<(), ResultsError> {
        let mut there = Vec::new();
        for (path, revocations) in &self.of_record {
            let Some((entry, ..)) = revocations.first() else { continue };
            there.extend(finder.file(path)?.map(|id| (entry, id)));
        }
        mirror.fetch_files(&there.iter().map(|(_, id)| id.clone()).collect::<Vec<_>>())?;
        let mut found = HashMap::new();
        for (entry, id) in there {
            let text = mirror.contents(&id, MAX_RECORD)?;
            let Some(record) = text.and_then(|text| Record::of_shared(entry, &text)) else {
                continue;
            };
            if let Some(reason) = self.reason(entry, &outputs(entry, &record)) {
                found.insert(entry.short(), reason.to_owned());
            }
        }
        self.there = found;
        Ok(())
    }

    /// The first of these calls, by their short names, that is revoked in the repository, and why.
    pub(super) fn call_of<'c>(&self, calls: &'c [String]) -> Option<(&'c str, &str)> {
        calls.iter().find_map(|call| Some((call.as_str(), self.there.get(call)?.as_str())))
    }

    /// Why a result with these outputs is revoked, if it is.
    pub(super) fn reason(&self, entry: &Entry, outputs: &[Digest]) -> Option<&str> {
        let all = self.of_record.get(&entry.record()).into_iter().flatten();
        let mut of_outputs = all.filter(|(_, it, _)| outputs.starts_with(&it.outputs));
        of_outputs.next().map(|(_, it, _)| it.reason.as_str())
    }

    /// Brings the revocations that a storage does not have, unless nothing is to be written. Returns the results there that are revoked.
    pub(super) fn import(
        &self,
        storage: &Storage,
        dry: bool,
    ) -> Result<Vec<RevokedResult>, ResultsError> {
        let mut here = Vec::new();
        for revocations in self.of_record.values() {
            for (entry, _, text) in revocations.iter().filter(|_| !dry) {
                storage.revocations().add(entry, text)?;
            }
            let Some((entry, ..)) = revocations.first() else { continue };
            let Read::Record(record) = storage.records().read_entry(entry)? else { continue };
            if let Some(reason) = self.reason(entry, &outputs(entry, &record)) {
                here.push(RevokedResult { name: entry.short(), reason: reason.to_owned() });
            }
        }
        here.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(here)
    }
}

/// What the name of a result begins with: its computation or task.
pub(super) fn owner(path: &str) -> &str {
    path.split('/').next().unwrap_or_default()
}

/// The outputs of a result.
pub(super) fn outputs(entry: &Entry, record: &Record) -> Vec<Digest> {
    entry.expected_files(record).into_iter().map(|it| it.digest).collect()
}

/// Writes the revocation of a call, as the repository has it, or else the storage. Returns its path and id; `None` if neither
/// has the call.
pub(super) fn write_revocation(
    storage: &Storage,
    mirror: &Mirror,
    there: &mut Finder<'_>,
    (entry, reason): (&Entry, &str),
    writer: &mut PackWriter<'_>,
) -> Result<Option<(String, ObjectId)>, ResultsError> {
    let there = there.file(&entry.record())?;
    mirror.fetch_files(there.as_slice())?;
    let text = there.map(|id| mirror.contents(&id, MAX_RECORD)).transpose()?;
    let shared = text.flatten().and_then(|text| CallRecord::of_shared(&text)).map(Record::Call);
    let record = match shared.filter(|record| entry.fits(record)) {
        Some(record) => record,
        None => match storage.records().read_entry(entry)? {
            Read::Record(record) if entry.fits(&record) => record,
            Read::Record(_) | Read::Spoiled | Read::Absent => return Ok(None),
        },
    };
    let revoked = RevocationRecord {
        revoked: RevocationRecord::FORMAT,
        outputs: outputs(entry, &record),
        reason: reason.to_owned(),
    };
    // Nothing in it cannot be written as JSON.
    let mut text = serde_json::to_vec(&revoked).unwrap_or_default();
    text.push(b'\n');
    let id = writer.file(&text).map_err(|error| mirror.own(error))?;
    Ok(Some((revocation(entry, &Blake3::of(&text)), id)))
}
