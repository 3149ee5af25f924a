//! Results that are not taken from a repository, and why.

use std::fmt;

use super::attestation::Attested;
use super::trust::Distrust;
use ce_model::humanize::{counted, size};
use ce_storage::MissingPart;

/// A result that was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedResult {
    /// Its short name, or the path of its record.
    pub name: String,
    /// The reason.
    pub why: RefusedFor,
}

/// The reason why a result was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefusedFor {
    /// Its record cannot be understood, or does not belong to its name.
    Record,
    /// One of its files is not in the repository.
    Absent,
    /// A file is not what the record says.
    Contents,
    /// A file is larger than the limit.
    Large {
        /// Its size in bytes.
        bytes: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// Something that it names is not here.
    Part(MissingPart),
    /// It is a job, and something that it names stays in the repository.
    StaysWith {
        /// The name of its file.
        file: String,
    },
    /// It is no evidence: its name is not that of its contents, or it cannot be understood.
    Evidence,
    /// Nobody who is trusted vouches for it.
    Untrusted(Distrust),
    /// Too few have attested it.
    Attested {
        /// Those who have.
        attested: Attested,
        /// The number that is required.
        required: usize,
    },
    /// Nobody attests tables.
    Table,
    /// Somebody has revoked it.
    Revoked {
        /// The reason.
        reason: String,
    },
    /// Somebody has revoked a call of the job.
    RevokedCall {
        /// Its short name.
        call: String,
        /// The reason.
        reason: String,
    },
}

impl RefusedFor {
    /// Whether somebody should look at it: the others stay in the repository by rule.
    pub const fn is_wrong(&self) -> bool {
        match self {
            Self::Record
            | Self::Absent
            | Self::Contents
            | Self::Part(_)
            | Self::Evidence
            | Self::Untrusted(_)
            | Self::Attested { .. } => true,
            Self::Large { .. }
            | Self::StaysWith { .. }
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
            Self::Evidence => {
                write!(f, "its name is not that of its contents, or it cannot be understood")
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
