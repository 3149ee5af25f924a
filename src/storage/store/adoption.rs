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
use crate::cache::FileStat;
use crate::storage::disk::{Result, lock};
use crate::storage::layout::{COLLECTED, ResultName};
use crate::storage::records::{Defect, Origin, Published};

impl Storage {
    /// Adopts outputs without a record, if all of them exist and have settled.
    pub(in crate::storage) fn unrecorded(
        &self,
        name: &ResultName,
        call: Call<'_>,
    ) -> Result<CallState> {
        let mut there = Vec::with_capacity(call.outputs);
        for number in 0..call.outputs {
            let file = name.output(number);
            match self.root.disk.metadata(&self.path(&file))? {
                Some(metadata) if metadata.is_file() => there.push((file, metadata.stat())),
                Some(_) => {
                    let damage = Damage { file, what: Defect::NotAFile.to_string() };
                    return Ok(CallState::Incomplete(None, Some(damage)));
                }
                None => {}
            }
        }
        if there.is_empty() {
            return Ok(CallState::Vacant);
        }
        if there.len() < call.outputs
            || self.unrecorded == Unrecorded::Refuse
            // They are being collected.
            || self.root.disk.exists(&self.path(&name.record_in(COLLECTED)))?
        {
            return Ok(CallState::Incomplete(None, None));
        }
        let mut outputs = Vec::with_capacity(there.len());
        for (file, stat) in &there {
            let path = self.path(file);
            if !self.has_settled(file, stat) {
                return Ok(CallState::Unsettled);
            }
            let digest = self.ingest.stored_digest(&self.root.disk, &path)?;
            if self.root.disk.metadata(&path)?.map(|metadata| metadata.stat()) != Some(*stat) {
                return Ok(CallState::Unsettled);
            }
            outputs.push(Published { digest, modified_ns: stat.modified_ns });
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

    /// Whether a file is no longer being written: it was last changed at least a minute ago.
    ///
    /// A copying tool sets an earlier time at its end. Where clocks differ, a file has settled if
    /// it was watched for a minute and did not change.
    fn has_settled(&self, file: &str, stat: &FileStat) -> bool {
        let changed = stat.modified_ns.min(stat.changed_ns);
        let age = Timestamp::now().as_nanosecond() - i128::from(changed);
        if age >= lease_timeout().as_nanos().cast_signed() {
            return true;
        }
        let mut seen = lock(&self.unsettled);
        let known = seen.entry(file.to_owned()).or_insert_with(|| (*stat, Instant::now()));
        if known.0 != *stat {
            *known = (*stat, Instant::now());
        }
        known.1.elapsed() >= lease_timeout()
    }
}
