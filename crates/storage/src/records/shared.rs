//! Records as a results repository holds them.
//!
//! They say what was made from what, and how it was isolated: nothing of who, where and when. So equal results have
//! equal bytes, whoever executed them. Beside them are the records of audits, of signers of the ledger, and of revocations.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{
    CallRecord, Format, HostKind, JobRecord, Origin, Published, Record, SharedOrigin, Stamp,
    TableRecord, text,
};
use crate::paths::Entry;
use ce_model::digest::Digest;

impl CallRecord {
    /// The record for a results repository. `None` for what has no place there: adopted outputs, whose making nobody
    /// knows, those of uncommitted changes, and those taken over because a tree was trusted.
    pub fn shared(&self) -> Option<Self> {
        let stays = self.dirty || self.has_trusted_tree();
        let isolation = self.origin.isolation().filter(|_| !stays)?.to_owned();
        let access = self.origin.access().to_vec();
        Some(Self {
            format: Format::SHARED,
            outputs: self.outputs.iter().map(unstamped).collect(),
            origin: Origin::Shared(SharedOrigin {
                stage: None,
                isolation,
                access,
                taken_over: None,
            }),
            recorded: None,
            ..self.clone()
        })
    }

    /// Reads the record of a call in a results repository. `None` if the text is none.
    pub fn of_shared(text: &[u8]) -> Option<Self> {
        let record: Self = serde_json::from_slice(text).ok()?;
        let is_shared = matches!(
            record.origin,
            Origin::Shared(SharedOrigin { stage: None, taken_over: None, .. })
        );
        (is_shared && !record.dirty).then_some(record)
    }
}

impl JobRecord {
    /// The record for a results repository.
    pub fn shared(&self) -> Self {
        Self { format: Format::SHARED, recorded: None, ..self.clone() }
    }
}

impl TableRecord {
    /// The record for a results repository: of the table alone. The directory beside it is made again where it is needed.
    pub fn shared(&self) -> Self {
        Self {
            format: Format::SHARED,
            recipe: unstamped(&self.recipe),
            outputs: self.outputs.iter().take(1).map(unstamped).collect(),
            recorded: None,
        }
    }
}

impl Record {
    /// The record for a results repository. `None` for what has no place there.
    pub fn shared(&self) -> Option<Self> {
        match self {
            Self::Call(record) => record.shared().map(Self::Call),
            Self::Job(record) => Some(Self::Job(record.shared())),
            Self::Table(record) => Some(Self::Table(record.shared())),
            Self::TaskInput(_) => None,
        }
    }

    /// Reads the record of a result in a results repository. `None` if the text is none, or does not belong to the name.
    pub fn of_shared(entry: &Entry, text: &[u8]) -> Option<Self> {
        let record = match entry {
            Entry::Call(_) => CallRecord::of_shared(text).map(Self::Call),
            Entry::Job(_) => serde_json::from_slice(text).ok().map(Self::Job),
            Entry::Table(_) => serde_json::from_slice(text).ok().map(Self::Table),
            Entry::TaskInput(_) => None,
        };
        record.filter(|record| entry.fits(record))
    }

    /// The text of the file that holds it.
    pub fn text(&self) -> Vec<u8> {
        let text = match self {
            Self::Call(record) => text(record),
            Self::Job(record) => text(record),
            Self::Table(record) => text(record),
            Self::TaskInput(record) => text(record),
        };
        // Nothing in a record cannot be written as JSON: all names of fields are texts.
        text.unwrap_or_default()
    }
}

fn unstamped(value: &Published) -> Published {
    Published { digest: value.digest, stamp: Stamp::Unknown }
}

/// What an audit of a call has found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditReport {
    /// When the execution was started.
    pub start: Timestamp,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// The peak resident memory of its largest process, in bytes.
    pub peak_bytes: u64,
    /// Its isolation, as in the record of a call.
    pub isolation: String,
    /// The kind of its host.
    pub host_kind: Option<HostKind>,
    /// The outputs that it has made; none if it failed.
    pub outputs: Vec<Digest>,
    /// The outputs that are not the recorded ones.
    pub differing: Vec<OutputDifference>,
    /// How it failed, if it did.
    pub failed: Option<AuditFailure>,
}

/// The verdict of an audit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditVerdict {
    /// All outputs are the recorded ones.
    Agrees,
    /// An output is another one.
    Differs,
    /// It failed, and has a result.
    Failed,
}

/// An execution for an audit that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditFailure {
    /// The reason, in words.
    pub reason: String,
    /// What is behind that, if anything is known.
    pub cause: Option<String>,
    /// Advice for the user.
    pub hint: Option<String>,
    /// The name of its log in the storage, if it has printed anything.
    pub log: Option<String>,
}

/// An output that is not the recorded one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutputDifference {
    /// The number of the output.
    pub number: usize,
    /// The recorded output.
    pub recorded: Digest,
    /// The one that was made now.
    pub found: Digest,
    /// The name in the storage of the one that was made now.
    pub aside: String,
    /// Where they differ first; `None` if the recorded one could not be read.
    pub first: Option<FirstDifference>,
}

/// Where two values differ first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FirstDifference {
    /// The path in a directory, as manifests spell it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
    /// What is different about the member, in words, unless it is a file with other contents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
    /// The number of the first byte of a file that differs, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub byte: Option<u64>,
    /// The line with that byte, if both files are texts there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<LineDifference>,
}

/// A line that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LineDifference {
    /// Its number, from 1.
    pub number: u64,
    /// A part of the recorded line; `None` if the file ends before it.
    pub recorded: Option<String>,
    /// The same part of the line that was made now.
    pub found: Option<String>,
}

impl AuditReport {
    /// What it comes to.
    pub const fn verdict(&self) -> AuditVerdict {
        match (&self.failed, self.differing.is_empty()) {
            (Some(_), _) => AuditVerdict::Failed,
            (None, false) => AuditVerdict::Differs,
            (None, true) => AuditVerdict::Agrees,
        }
    }
}

/// Who vouches for a file of the ledger. A file without a note is unsigned.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignerNote {
    /// The file was made in this storage.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own: bool,
    /// The name of the one who has signed the commit with the file, as the allowed signers have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signer: Option<String>,
    /// The fingerprint of the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The repository that it came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
}

/// Says that a result with these outputs is wrong. Nothing is deleted because of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevocationRecord {
    /// The version of the format.
    pub revoked: u32,
    /// The outputs that are wrong: all of one result.
    pub outputs: Vec<Digest>,
    /// The reason, in words.
    pub reason: String,
}

impl RevocationRecord {
    /// The version of the format.
    pub const FORMAT: u32 = 1;

    /// Reads a revocation. `None` if the text is none, or of a later format.
    pub fn of_text(text: &[u8]) -> Option<Self> {
        let revocation: Self = serde_json::from_slice(text).ok()?;
        (revocation.revoked == Self::FORMAT).then_some(revocation)
    }
}
