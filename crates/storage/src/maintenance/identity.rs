//! The identity of a storage: a random id, by which a repository distinguishes its storage from another one at the same
//! path.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use ce_files::state::random_bytes;

use crate::disk::{IoContext, Result};
use crate::paths::IDENTITY;
use crate::protocol::Storage;
use crate::records::{Format, Provenance, RecordState};

/// The number of random bytes of an id.
const BYTES: usize = 16;

/// The random id of a storage. Copies of the storage have the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StorageId(String);

impl StorageId {
    /// Makes an id from random bytes of the kernel.
    ///
    /// # Errors
    ///
    /// Fails if the kernel has no random bytes.
    pub fn random() -> Result<Self> {
        let bytes = random_bytes::<BYTES>().context("read", Path::new("/dev/urandom"))?;
        Ok(Self(format!("{:032x}", u128::from_le_bytes(bytes))))
    }

    /// Parses an id.
    pub fn parse(text: &str) -> Option<Self> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let is_id = text.len() == 2 * BYTES && text.bytes().all(is_digit);
        is_id.then(|| Self(text.to_owned()))
    }

    /// The id as it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for StorageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The record of the id of a storage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StorageRecord {
    /// The format of this record.
    pub format: Format,
    pub id: StorageId,
    /// The user and the time of the first use.
    pub recorded: Provenance,
}

/// The identity of a storage.
#[derive(Clone, Copy, Debug)]
pub struct StorageIdentity<'a> {
    storage: &'a Storage,
}

impl<'a> StorageIdentity<'a> {
    /// The identity of a storage.
    pub const fn new(storage: &'a Storage) -> Self {
        Self { storage }
    }

    /// Returns the id; `None` if the storage has none yet, or its record is spoiled.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be read.
    pub fn read(self) -> Result<Option<StorageId>> {
        let record = self.storage.records().read::<StorageRecord>(IDENTITY)?;
        Ok(record.ok().and_then(|record| StorageId::parse(record.id.as_str())))
    }

    /// Returns the id. Creates it if needed; concurrent runs get the same. `None` if the storage may not be written.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be read or written.
    pub fn ensure(self) -> Result<Option<StorageId>> {
        if let Some(id) = self.read()? {
            return Ok(Some(id));
        }
        let records = self.storage.records();
        let (format, id) = (Format::FILES, StorageId::random()?);
        let record = StorageRecord { format, id, recorded: Provenance::now() };
        let put = match records.read::<StorageRecord>(IDENTITY)? {
            RecordState::Absent => records.put_new(IDENTITY, &record).map(drop),
            RecordState::Valid(_) | RecordState::Spoiled => records.put(IDENTITY, &record),
        };
        match put {
            // Another run may have been faster.
            Ok(()) => self.read(),
            Err(error) if error.may_not_write() || error.is_foreign() => Ok(None),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{Durability, Unrecorded};

    #[test]
    fn an_id_is_given_once_and_copied_with_the_storage() {
        let dir = tempfile::tempdir().unwrap();
        let open = || Storage::open(dir.path(), Unrecorded::Adopt, Durability::Unsynced).unwrap();
        let [one, other] = [open(), open()];
        assert_eq!(StorageIdentity::new(&one).read().unwrap(), None);
        let id = StorageIdentity::new(&one).ensure().unwrap();
        assert!(id.is_some());
        assert_eq!(StorageIdentity::new(&other).ensure().unwrap(), id);
        assert_eq!(StorageIdentity::new(&other).read().unwrap(), id);
        fs::write(dir.path().join(IDENTITY), "{}").unwrap();
        assert_eq!(StorageIdentity::new(&one).read().unwrap(), None, "it is spoiled");
        let new = StorageIdentity::new(&one).ensure().unwrap();
        assert!(new.is_some() && new != id, "it is replaced");
        assert_eq!(StorageIdentity::new(&other).ensure().unwrap(), new);
    }

    #[test]
    fn an_id_is_random_hexadecimal_digits() {
        let [one, other] = [(); 2].map(|()| StorageId::random().unwrap());
        assert_ne!(one, other);
        assert_eq!(StorageId::parse(one.as_str()), Some(one.clone()));
        for text in ["", "00", &one.as_str().to_uppercase()[..31], &format!("{one}0")] {
            assert_eq!(StorageId::parse(text), None, "{text:?}");
        }
    }
}
