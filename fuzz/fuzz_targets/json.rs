//! The texts of records alone, without a storage, and so a hundred times as fast as `record`, which
//! may go on from what this finds.
#![no_main]

use std::fmt::Debug;

use compeval::storage::records::{CallRecord, FailureRecord, InputRecord, JobRecord};
use libfuzzer_sys::fuzz_target;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Accepted text reads as it is written.
fn check<T: DeserializeOwned + Serialize + PartialEq + Debug>(text: &[u8]) {
    if let Ok(record) = serde_json::from_slice::<T>(text) {
        let text = serde_json::to_vec_pretty(&record).unwrap();
        assert_eq!(serde_json::from_slice::<T>(&text).unwrap(), record);
    }
}

fuzz_target!(|data: (u8, &[u8])| {
    let (kind, text) = data;
    match kind % 5 {
        1 => check::<JobRecord>(text),
        2 => check::<InputRecord>(text),
        3 => check::<FailureRecord>(text),
        _ => check::<CallRecord>(text),
    }
});
