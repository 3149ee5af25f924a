//! Values in records: their digests, and the stamps that they had when they were published.

use serde::{Deserialize, Serialize};

use ce_model::digest::{Blake3, Digest};

/// A value that was published, and the stamp that it had.
///
/// A value with another stamp is read and hashed again before it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "PublishedFields", into = "PublishedFields")]
pub struct Published {
    /// Its digest.
    pub digest: Digest,
    /// Its stamp.
    pub stamp: Stamp,
}

/// The state of a value that can be compared without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stamp {
    /// The time of the last write to a file, in nanoseconds since 1970.
    Modified(i64),
    /// The stamp of a directory: see [`Scan::stamp`](ce_files::manifest::Scan::stamp).
    Scanned(Blake3),
    /// Nothing is known, as of a value in a results repository: Git keeps no times.
    Unknown,
}

/// A published value in a record.
#[derive(Serialize, Deserialize)]
struct PublishedFields {
    #[serde(flatten)]
    digest: Digest,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    modified_ns: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stamp: Option<Blake3>,
}

impl From<PublishedFields> for Published {
    fn from(PublishedFields { digest, modified_ns, stamp }: PublishedFields) -> Self {
        let scanned = stamp.map(Stamp::Scanned);
        let stamp = modified_ns.map(Stamp::Modified).or(scanned).unwrap_or(Stamp::Unknown);
        Self { digest, stamp }
    }
}

impl From<Published> for PublishedFields {
    fn from(Published { digest, stamp }: Published) -> Self {
        let (modified_ns, stamp) = match stamp {
            Stamp::Modified(modified_ns) => (Some(modified_ns), None),
            Stamp::Scanned(stamp) => (None, Some(stamp)),
            Stamp::Unknown => (None, None),
        };
        Self { digest, modified_ns, stamp }
    }
}
