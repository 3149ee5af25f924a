//! The status of a storage: what goes on in it now, or waits.

use crate::{InputTexts, suspended_texts};
use ce_storage::{Holder, Storage, StorageError, Suspension};

/// A call that is suspended, and what is known of it now.
#[derive(Clone, Debug)]
pub struct SuspendedFact {
    /// The call.
    pub suspension: Suspension,
    /// The run that executes it just now.
    pub holder: Option<Holder>,
    /// The short texts that it reads, such as the levels of a point.
    pub texts: InputTexts,
}

/// Returns the calls that are suspended, those first that were begun first. Reads the index of them and short task inputs, and no results.
///
/// # Errors
///
/// Fails if the storage cannot be read.
pub fn suspended(storage: &Storage) -> Result<Vec<SuspendedFact>, StorageError> {
    let all = storage.suspensions().all()?;
    let texts = suspended_texts(storage, &all);
    let fact = |(suspension, texts): (Suspension, InputTexts)| {
        let holder = storage.leases().holder(&suspension.name);
        SuspendedFact { suspension, holder, texts }
    };
    Ok(all.into_iter().zip(texts).map(fact).collect())
}
