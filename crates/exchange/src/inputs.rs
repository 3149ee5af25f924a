//! Inputs of jobs in results repositories. Results need no inputs to be served, so inputs go there only if the user says so.

use super::layout::stored_size;
use super::push_candidates::Withheld;
use super::secrets::Secrets;
use ce_storage::{ExpectedFile, Storage, StorageError};

/// Returns a task input as a results repository holds it, or why it stays here.
pub(super) fn offer(
    storage: &Storage,
    file: &ExpectedFile,
    limit: u64,
    secrets: Option<&Secrets>,
) -> Result<Result<Vec<u8>, Withheld>, StorageError> {
    let bytes = stored_size(&file.digest);
    if bytes > limit {
        return Ok(Err(Withheld::Large { bytes, limit }));
    }
    let Some(contents) = storage.values().shared_contents(file)? else {
        return Ok(Err(Withheld::Damaged { file: file.name.clone() }));
    };
    let secret = secrets.and_then(|secrets| secrets.find_in(&contents, &file.digest));
    Ok(match secret {
        Some((member, what)) => Err(Withheld::Secret { file: file.name.clone() + &member, what }),
        None => Ok(contents),
    })
}
