//! Maintenance of a storage: listing, checking, repairing and collecting its contents.

mod changes;
mod check;
mod collect;
mod depart;
mod kinds;
mod moved;
mod names;
mod past;
mod pin;
mod repositories;
mod survey;
pub mod verify;

pub use self::changes::{NewRecords, RecordWatch};
pub use self::collect::Retired;
pub use self::depart::Departing;
pub use self::names::NameKind;
pub use self::past::{PastCall, Trace};
pub use self::pin::Pins;
pub use self::repositories::{KnownRepositories, KnownRepository};
pub use self::survey::Survey;
use super::store::Storage;

/// Checks, repairs and collects results.
#[derive(Clone, Copy, Debug)]
pub struct Maintenance<'a> {
    storage: &'a Storage,
}

impl<'a> Maintenance<'a> {
    /// The maintenance of a storage.
    pub const fn new(storage: &'a Storage) -> Self {
        Self { storage }
    }
}
