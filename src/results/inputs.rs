//! Inputs of jobs in results repositories. Results need no inputs to be served, so inputs go there only if the user says so.

use super::offer::Withheld;
use super::secrets::Secrets;
use crate::storage::{ExpectedFile, Storage, StorageError};

/// Returns the contents of a task input, or why it stays here.
pub(super) fn offer(
    storage: &Storage,
    file: &ExpectedFile,
    limit: u64,
    secrets: Option<&Secrets>,
) -> Result<Result<Vec<u8>, Withheld>, StorageError> {
    let (bytes, name) = (file.digest.size, || file.name.clone());
    if file.digest.is_directory() {
        return Ok(Err(Withheld::Directory));
    }
    if bytes > limit {
        return Ok(Err(Withheld::Large { bytes, limit }));
    }
    let Some(contents) = storage.contents(file)? else {
        return Ok(Err(Withheld::Damaged { file: name() }));
    };
    Ok(match secrets.and_then(|secrets| secrets.find(&contents)) {
        Some(what) => Err(Withheld::Secret { file: name(), what }),
        None => Ok(contents),
    })
}
