//! The status of a storage: what goes on in it now, or waits.

use crate::storage::{Holder, Storage, StorageError, Suspension};

/// A call that is suspended, and what is known of it now.
#[derive(Clone, Debug)]
pub struct SuspendedFact {
    /// The call.
    pub suspension: Suspension,
    /// The run that executes it just now.
    pub holder: Option<Holder>,
}

/// Returns the calls that are suspended, those first that were begun first. Reads the index of them, and no results.
///
/// # Errors
///
/// Fails if the storage cannot be read.
pub fn suspended(storage: &Storage) -> Result<Vec<SuspendedFact>, StorageError> {
    let all = storage.suspensions().all()?.into_iter();
    let fact = |suspension: Suspension| {
        let holder = storage.leases().holder(&suspension.name);
        SuspendedFact { suspension, holder }
    };
    Ok(all.map(fact).collect())
}
