//! The judgement on the results of a repository, by trust, evidence and revocations, and the reasons why a result is not taken.

use std::fmt;

use ce_git::{Mirror, MirrorError};
use ce_model::digest::ObjectId;
use ce_model::humanize::{counted, size};
use ce_storage::{
    Entry, MissingPart, Record, RevocationIndex, RevokedResults, Storage, Survey, of_revocation,
};
use serde::Serialize;

use crate::attesters::{Attested, Evidence, TakenEvidence};
use crate::join::read_revocation;
use crate::ledger::call_identity;
use crate::repository::{Finder, REVOKED};
use crate::trust::{Distrust, Trust, TrustSettings};
use crate::{ResultsError, in_words};

/// The judgement on the results of a repository.
#[derive(Debug)]
pub(super) struct Acceptance<'a> {
    pub(super) mirror: &'a Mirror,
    trust: Trust,
    evidence: Evidence,
    revoked: RepositoryRevocations,
    /// The results that are revoked as they stand in the storage.
    here: RevokedResults,
    /// The number of attesters that a call needs.
    required: usize,
}

impl<'a> Acceptance<'a> {
    /// Judges the results of a tip, which the finder finds. Results that are revoked in the storage count as revoked,
    /// too.
    pub(super) fn judge(
        storage: &Storage,
        mirror: &'a Mirror,
        finder: &mut Finder<'_>,
        tip: &ObjectId,
        settings: &TrustSettings,
    ) -> Result<Self, ResultsError> {
        let trust = Trust::from_settings(mirror, tip, settings)?;
        let required = settings.require.map_or(0, Into::into);
        let evidence = Evidence::collect(mirror, finder, required > 0)?;
        let mut revoked = RepositoryRevocations::read(mirror, finder, &trust)?;
        revoked.trusted.extend(storage.revocations().index()?.all().cloned());
        let here = if revoked.trusted.is_empty() {
            RevokedResults::new()
        } else {
            revoked.trusted.revoked_among(storage, &Survey::new(storage).entries()?)?
        };
        Ok(Self { mirror, trust, evidence, revoked, here, required })
    }

    /// Checks that a signer who is trusted for a result has signed a file of it that no record vouches for: its record,
    /// or its log.
    pub(super) fn check_signed(&self, path: &str, file: &ObjectId) -> Result<(), RefusedFor> {
        self.trust.check(path, file, owner(path)).map_err(RefusedFor::Untrusted)
    }

    /// Checks that a result is attested by as many as required, and not revoked.
    pub(super) fn check(&self, entry: &Entry, record: &Record) -> Result<(), RefusedFor> {
        if let Some(reason) = self.revoked.trusted.reason_of(entry, record) {
            return Err(RefusedFor::Revoked { reason: reason.to_owned() });
        }
        if let Record::Job(job) = record
            && let Some((call, reason)) = self.revoked.trusted.first_of(&job.calls, &self.here)
        {
            let (call, reason) = (call.clone(), reason.clone());
            return Err(RefusedFor::RevokedCall { call, reason });
        }
        match (record, self.required) {
            (_, 0) | (Record::Job(_) | Record::TaskInput(_), _) => Ok(()),
            (Record::Table(_), _) => Err(RefusedFor::Table),
            (Record::Call(call), required) => {
                let (path, call) = (entry.record(), call_identity(call));
                let attested =
                    self.evidence.attested(&self.trust, &call, owner(&path), &record.outputs());
                if attested.by.agreeing.len() >= required {
                    Ok(())
                } else {
                    Err(RefusedFor::Attested { attested, required })
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

    /// Returns the files that commits have removed, and that are not there again.
    pub(super) fn removed(&self, finder: &mut Finder<'_>) -> Result<Vec<RemovedFile>, MirrorError> {
        let mut removed = Vec::new();
        for (path, commit) in self.trust.removed() {
            if finder.file(path)?.is_none() {
                removed.push(RemovedFile { name: path.to_owned(), commit: commit.clone() });
            }
        }
        Ok(removed)
    }

    /// Brings the ledger and the revocations, unless nothing is to be written. Returns the evidence of the ledger that was new, and
    /// the results that are here and revoked.
    pub(super) fn import(
        &self,
        storage: &Storage,
        dry: bool,
    ) -> Result<(TakenEvidence, Vec<RevokedResult>), ResultsError> {
        let taken = self.evidence.import(storage, self.mirror, &self.trust, dry)?;
        for revocation in self.revoked.trusted.all().filter(|_| !dry) {
            storage.revocations().add(revocation)?;
        }
        let revoked = self.here.clone().into_iter();
        Ok((taken, revoked.map(|(name, reason)| RevokedResult { name, reason }).collect()))
    }
}

/// A revoked result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RevokedResult {
    /// Its short name.
    pub name: String,
    pub reason: String,
}

/// The revocations in a repository.
#[derive(Debug, Default)]
struct RepositoryRevocations {
    /// The revocations that count.
    pub(super) trusted: RevocationIndex,
    /// The revocations that do not count, by their paths.
    pub(super) refused: Vec<(String, Distrust)>,
}

impl RepositoryRevocations {
    /// Reads the revocations by signers who are trusted for the results.
    pub(super) fn read(
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
}

/// Returns the computation or task that the name of a result begins with.
fn owner(path: &str) -> &str {
    path.split('/').next().unwrap_or_default()
}

/// A file of a results repository that is not there any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RemovedFile {
    /// Its path.
    pub name: String,
    /// The commit that has taken it away.
    pub commit: ObjectId,
}

/// A result that was not taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RefusedResult {
    /// Its short name, or the path of its record.
    pub name: String,
    /// The reason.
    #[serde(rename = "reason", serialize_with = "in_words")]
    pub why: RefusedFor,
}

/// The reason why a result was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefusedFor {
    /// Its record cannot be understood, or does not belong to its name.
    Record,
    /// One of its files is not in the repository.
    Absent,
    /// A file differs from the record.
    Contents,
    /// The repository has a pointer to a Git LFS object, and not the object.
    Object {
        /// The name of the file.
        file: String,
        /// The reason, in words.
        why: String,
    },
    /// A file is larger than the limit.
    Large {
        /// Its size in bytes.
        bytes: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// A result that it names is not here.
    Part(MissingPart),
    /// It is a job, and something that it names stays in the repository.
    StaysWith {
        /// The name of its file.
        file: String,
    },
    /// It is a job, and the repository does not have an output of it that a run makes from the calls: a table that was too large to be
    /// pushed, the directory of a sweep, a text.
    Derived {
        /// The name of the file.
        file: String,
    },
    /// It is not evidence: its name does not match its contents, or it cannot be understood.
    Evidence,
    /// No trusted signer vouches for it.
    Untrusted(Distrust),
    /// Too few have attested it.
    Attested {
        /// The attesters so far.
        attested: Attested,
        /// The number that is required.
        required: usize,
    },
    /// Tables are never attested.
    Table,
    /// It was revoked.
    Revoked { reason: String },
    /// A call of the job was revoked.
    RevokedCall {
        /// Its short name.
        call: String,
        reason: String,
    },
}

impl RefusedFor {
    /// Whether it needs attention: the others stay in the repository by rule.
    pub const fn is_wrong(&self) -> bool {
        match self {
            Self::Record
            | Self::Absent
            | Self::Contents
            | Self::Object { .. }
            | Self::Part(_)
            | Self::Evidence
            | Self::Untrusted(_)
            | Self::Attested { .. } => true,
            Self::Large { .. }
            | Self::StaysWith { .. }
            | Self::Derived { .. }
            | Self::Table
            | Self::Revoked { .. }
            | Self::RevokedCall { .. } => false,
        }
    }
}

impl fmt::Display for RefusedFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Record => {
                write!(f, "its record cannot be understood, or does not belong to its name")
            }
            Self::Absent => write!(f, "a file of it is not in the repository"),
            Self::Object { file, why } => {
                write!(f, "{file} should be a Git LFS object there, and is not: {why}")
            }
            Self::Contents => write!(f, "a file of it is not what the record says"),
            Self::Large { bytes, limit } => {
                write!(f, "a file has {}, and the limit is {}", size(*bytes), size(*limit))
            }
            Self::Part(MissingPart { file, is_other: false }) => {
                write!(f, "it names {file}, which is not here, and was not taken")
            }
            Self::Part(MissingPart { file, is_other: true }) => write!(
                f,
                "it names {file}, which has other contents here, and they stay; a run makes a job from them"
            ),
            Self::StaysWith { file } => write!(f, "it names {file}, which stays there, too"),
            Self::Derived { file } => {
                write!(
                    f,
                    "it names {file}, which the repository does not have: a run makes both from the calls"
                )
            }
            Self::Evidence => {
                write!(f, "its name is not the hash of its contents, or it cannot be understood")
            }
            Self::Untrusted(distrust) => write!(f, "{distrust}"),
            Self::Attested { attested, required } => {
                let (agree, attesters) =
                    (attested.by.agreeing.len(), counted(attested.by.all(), "attester"));
                write!(f, "{agree} of {attesters} had these outputs, and {required} are required")
            }
            Self::Table => write!(f, "nobody attests tables: a run makes it again from the calls"),
            Self::Revoked { reason } => write!(f, "it is revoked: {reason}"),
            Self::RevokedCall { call, reason } => {
                write!(f, "its call {call} is revoked: {reason}")
            }
        }
    }
}
