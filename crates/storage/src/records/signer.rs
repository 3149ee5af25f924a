//! Notes of who vouches for a file of the ledger.

use serde::{Deserialize, Serialize};

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
