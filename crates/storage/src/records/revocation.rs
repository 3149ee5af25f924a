//! Revocations: somebody says that a result is wrong.

use serde::{Deserialize, Serialize};

use ce_model::digest::Digest;

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
