//! Those whose signatures count.

use std::fs;
use std::path::{Path, PathBuf};

use super::ResultsError;
use ce_git::Mirror;
use ce_model::digest::Blake3;

/// What git calls the file of revoked ssh keys.
const REVOCATIONS: &str = "gpg.ssh.revocationFile";

/// The files that decide whose signatures count.
#[derive(Debug)]
pub(super) struct Signers {
    /// The absolute path of the file of allowed signers.
    pub(super) file: PathBuf,
    /// The hash of all that decides.
    pub(super) keys: Blake3,
}

impl Signers {
    /// Reads the file of allowed signers, and that of revoked keys, if `git` has one.
    pub(super) fn read(mirror: &Mirror, file: &Path) -> Result<Self, ResultsError> {
        let read = |path: &Path| Ok((path.canonicalize()?, fs::read(path)?));
        let signers = |source| ResultsError::Signers { path: file.to_owned(), source };
        let (real, mut keys) = read(file).map_err(signers)?;
        if let Some(revoked) = mirror.users_path(REVOCATIONS)?.map(PathBuf::from) {
            let (place, revoked) = read(&revoked)
                .map_err(|source| ResultsError::RevokedKeys { path: revoked.clone(), source })?;
            keys.push(0);
            keys.extend(place.as_os_str().as_encoded_bytes());
            keys.push(0);
            keys.extend(revoked);
        }
        Ok(Self { file: real, keys: Blake3::of(&keys) })
    }
}
