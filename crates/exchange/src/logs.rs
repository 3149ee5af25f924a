//! Logs of calls in results repositories. No record has their contents, and a program may print anything, so they go there only if
//! the user says so, and come from there only if somebody who is trusted vouches for them.

use super::push_candidates::Withheld;
use super::secrets::{Secrets, has, has_word};
use ce_storage::records::CallRecord;
use ce_storage::{ResultName, Storage, StorageError};

/// The logs that are pushed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PushedLogs {
    /// None.
    #[default]
    None,
    /// Those of isolated executions.
    Isolated,
    /// All.
    All,
}

/// Returns the log of a call, if it has printed anything, or why it stays here.
pub(super) fn offer(
    storage: &Storage,
    (name, call): (&ResultName, &CallRecord),
    (logs, limit): (PushedLogs, u64),
    secrets: Option<&Secrets>,
) -> Result<Option<Result<Vec<u8>, Withheld>>, StorageError> {
    let Some(bytes) = storage.logs().log_size(name)?.filter(|bytes| *bytes > 0) else {
        return Ok(None);
    };
    if logs == PushedLogs::Isolated && !call.origin.is_isolated() {
        return Ok(Some(Err(Withheld::Log)));
    }
    if bytes > limit {
        return Ok(Some(Err(Withheld::Large { bytes, limit })));
    }
    let contents = storage.logs().log_contents(name)?;
    let what = secrets.and_then(|secrets| {
        let found = secrets.find(&contents);
        found.or_else(|| named(&contents, storage, call).map(str::to_owned))
    });
    Ok(Some(match what {
        Some(what) => Err(Withheld::Secret { file: name.log(), what }),
        None => Ok(contents),
    }))
}

/// What a log has of the things that no record in a results repository has.
fn named(contents: &[u8], storage: &Storage, call: &CallRecord) -> Option<&'static str> {
    let names = storage.path("");
    let place = names.components().as_path().as_os_str().as_encoded_bytes();
    if has(contents, place) {
        return Some("the path of the storage");
    }
    let recorded = call.recorded.as_ref()?;
    match () {
        () if has_word(contents, &recorded.host) => Some("the name of a host"),
        () if has_word(contents, &recorded.user) => Some("the name of a user"),
        () => None,
    }
}
