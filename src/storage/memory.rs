//! What is remembered of a call that is not there: never a result.

use super::collect::{COLLECTED, Tombstone};
use super::failure::FAILED;
use super::find::{Damage, Read};
use super::record::{CallRecord, FailureRecord};
use super::{Result, ResultName, Storage};

/// What is remembered of a call that is not there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PriorAttempt {
    /// It failed last.
    pub failure: Option<FailureRecord>,
    /// It was there, and was collected.
    pub collected: Option<Tombstone<CallRecord>>,
    /// Something is there that cannot be used.
    pub damage: Option<Damage>,
}

impl Storage {
    /// Returns what is remembered of a call, if anything is. What cannot be read is not.
    pub fn prior_attempt(
        &self,
        name: &ResultName,
        damage: Option<Damage>,
    ) -> Option<Box<PriorAttempt>> {
        let collected = self.record(&name.record_in(COLLECTED)).ok().and_then(Read::ok);
        self.prior_attempt_beside(name, collected, damage)
    }

    /// The same where it is known whether the call was collected.
    pub fn prior_attempt_beside(
        &self,
        name: &ResultName,
        collected: Option<Tombstone<CallRecord>>,
        damage: Option<Damage>,
    ) -> Option<Box<PriorAttempt>> {
        let failure = self.record(&name.record_in(FAILED)).ok().and_then(Read::ok);
        let prior = PriorAttempt { failure, collected, damage };
        (prior != PriorAttempt::default()).then(|| Box::new(prior))
    }

    /// Forgets what is remembered of a call that has succeeded.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be written.
    pub fn forget(&self, name: &ResultName) -> Result<()> {
        let names = [name.record_in(FAILED), name.room(FAILED), name.record_in(COLLECTED)];
        names.iter().try_for_each(|name| self.disk.remove(&self.path(name)))
    }
}
