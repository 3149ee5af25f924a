//! Why a file has no record: its call is suspended or has failed, or it was collected.

use super::HistoryError;
use ce_storage::records::Provenance;
use ce_storage::{Maintenance, ResultName, Storage, Suspension};

/// Returns why a file of this name in the storage has no record, if that is known. What cannot be read is not known.
pub(super) fn why_absent(storage: &Storage, name: &str, file: &str) -> Option<HistoryError> {
    let file = file.to_owned();
    let call = ResultName::of_suspended(name).or_else(|| ResultName::of_call_file(name));
    if let Some(call) = &call {
        if let Ok(Some(Suspension { name, record })) = storage.suspensions().read(call) {
            let (call, since) = (name.short(), record.since);
            return Some(HistoryError::Suspended { file, call, since });
        }
        if let Some(failure) = storage.attempts().prior(call, None).and_then(|it| it.failure) {
            let (call, at, reason) = (call.short(), failure.recorded.at, failure.reason);
            return Some(HistoryError::Failed { file, call, at, reason });
        }
    }
    let collected = Maintenance::new(storage).tombstone(name).ok().flatten()?;
    let Provenance { at, user, host, .. } = collected;
    Some(HistoryError::Collected { file, at, user, host })
}
