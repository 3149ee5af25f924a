//! Audits: how an execution of a call that has a result compares with that.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::HostKind;
use ce_model::digest::Digest;

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
