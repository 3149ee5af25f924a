//! Adoption: outputs without a record, such as those of the first implementation, are hashed and
//! recorded.
//!
//! Only settled files are adopted: a copying tool may still be writing a file that has changed a
//! moment ago.

use std::time::Instant;

use jiff::Timestamp;

use super::call::{Call, CallState, Damage};
use super::run::lease_timeout;
use super::{Storage, Unrecorded};
use crate::disk::{Result, SeenValue, StorageError, lock};
use crate::layout::{COLLECTED, ResultName};
use crate::records::{Defect, Origin};
use ce_files::cache::FileStat;
use ce_model::digest::Blake3;
use ce_model::task::name::is_directory;

impl Storage {
    /// Adopts outputs without a record, if all of them exist and have settled.
    pub(crate) fn unrecorded(&self, name: &ResultName, call: Call<'_>) -> Result<CallState> {
        let mut there = Vec::with_capacity(call.outputs.len());
        for (number, output) in call.outputs.iter().enumerate() {
            let file = name.output(number);
            match (self.root.disk.see(&self.path(&file), &self.ingest.stop), is_directory(output)) {
                (Ok(None), _) => {}
                (Ok(Some(seen @ SeenValue::File(_))), false)
                | (Ok(Some(seen @ SeenValue::Directory(..))), true) => there.push((file, seen)),
                (Ok(Some(_)) | Err(StorageError::Directory { .. }), directory) => {
                    let defect = if directory { Defect::NotADirectory } else { Defect::NotAFile };
                    let damage = Damage { file, what: defect.to_string() };
                    return Ok(CallState::Incomplete(None, Some(damage)));
                }
                (Err(error), _) => return Err(error),
            }
        }
        if there.is_empty() {
            return Ok(CallState::Vacant);
        }
        if there.len() < call.outputs.len()
            || self.unrecorded == Unrecorded::Refuse
            // They are being collected.
            || self.root.disk.exists(&self.path(&name.record_in(COLLECTED)))?
        {
            return Ok(CallState::Incomplete(None, None));
        }
        let mut outputs = Vec::with_capacity(there.len());
        for (file, seen) in &there {
            let path = self.path(file);
            if !self.has_settled(file, seen) {
                return Ok(CallState::Unsettled);
            }
            let output = self.ingest.stored_value(&self.root.disk, &path, seen)?;
            let now = self.root.disk.see(&path, &self.ingest.stop)?;
            if now.is_none_or(|now| state(&now) != state(seen)) {
                return Ok(CallState::Unsettled);
            }
            outputs.push(output);
        }
        let hit = CallState::hit(name, &outputs);
        // If the record cannot be written, they are only hashed again the next time.
        let adopted = self.root.writable && {
            let record = call.record(outputs, Origin::Adopted);
            self.records().put_new(&name.record(), &record).unwrap_or(false)
        };
        if !adopted && self.root.disk.exists(&self.path(&name.record()))? {
            // Another run has published since. The files may be partly the old ones, partly the new
            // ones.
            return self.state(name, call);
        }
        Ok(hit)
    }

    /// Whether a value is no longer being written: it was last changed at least a minute ago.
    ///
    /// A copying tool sets an earlier time at its end. Where clocks differ, a value has settled if
    /// it was watched for a minute and did not change.
    fn has_settled(&self, name: &str, seen: &SeenValue) -> bool {
        let changed = match seen {
            SeenValue::File(metadata) => {
                let FileStat { modified_ns, changed_ns, .. } = metadata.stat();
                modified_ns.min(changed_ns)
            }
            SeenValue::Directory(scan, _) => scan.changed_ns(),
            SeenValue::Other => return false,
        };
        let age = Timestamp::now().as_nanosecond() - i128::from(changed);
        if age >= lease_timeout().as_nanos().cast_signed() {
            return true;
        }
        let state = state(seen);
        let mut watched = lock(&self.unsettled);
        let known = watched.entry(name.to_owned()).or_insert_with(|| (state, Instant::now()));
        if known.0 != state {
            *known = (state, Instant::now());
        }
        known.1.elapsed() >= lease_timeout()
    }
}

/// The state of a value that is looked at, and not read.
fn state(seen: &SeenValue) -> Blake3 {
    match seen {
        SeenValue::File(metadata) => {
            let FileStat { device, inode, size, modified_ns, changed_ns } = metadata.stat();
            let text = format!("{device} {inode} {size} {modified_ns} {changed_ns}");
            Blake3::of(text.as_bytes())
        }
        SeenValue::Directory(scan, _) => scan.exact_stamp(),
        SeenValue::Other => Blake3::of(b""),
    }
}
