//! Calls that succeeded once: their records and tombstones.

use super::Survey;
use crate::disk::Result;
use crate::layout::{COLLECTED, RECORDS, ResultName};
use crate::records::{CallRecord, Provenance, Read, Tombstone};
use ce_model::task::name::ComputationName;

/// A call that succeeded once.
#[derive(Clone, Debug, PartialEq)]
pub struct PastCall {
    /// Its name.
    pub name: ResultName,
    /// Its record.
    pub record: CallRecord,
    /// The collection of its outputs, if they were collected.
    pub collected: Option<Provenance>,
}

/// The record or tombstone of a call that succeeded once, not read yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    name: ResultName,
    collected: bool,
}

impl Survey<'_> {
    /// Returns the records and tombstones of all calls of a computation, sorted by version. Counts
    /// the directories that cannot be read.
    pub fn traces(&self, computation: &ComputationName, unread: &mut usize) -> Vec<Trace> {
        let mut traces = Vec::new();
        let mut counted = |names: Result<Vec<String>>| {
            names.unwrap_or_else(|_| {
                *unread += 1;
                Vec::new()
            })
        };
        let owner = format!("c_{computation}");
        for version in counted(self.storage.root.names(&owner)) {
            for (room, collected) in [(RECORDS, false), (COLLECTED, true)] {
                let records =
                    counted(self.storage.root.files(&format!("{owner}/{version}/{room}")));
                let names = records.iter().filter_map(|it| ResultName::of_record_in(room, it));
                traces.extend(names.map(|name| Trace { name, collected }));
            }
        }
        traces
    }

    /// Reads a record or tombstone; `None` if it is spoiled or does not exist any more.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, or only a newer version can.
    pub fn past_call(&self, trace: &Trace) -> Result<Option<PastCall>> {
        let Trace { name, collected } = trace;
        let name = name.clone();
        if *collected {
            let tombstone: Read<Tombstone<CallRecord>> =
                self.storage.records().read(&name.record_in(COLLECTED))?;
            return Ok(tombstone.ok().map(|Tombstone { record, collected }| PastCall {
                name,
                record,
                collected: Some(collected),
            }));
        }
        let record: Read<CallRecord> = self.storage.records().read(&name.record())?;
        Ok(record.ok().map(|record| PastCall { name, record, collected: None }))
    }

    /// Reads the record of a call, or its tombstone if it was collected.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, or only a newer version can.
    pub fn record_or_tombstone(&self, name: &ResultName) -> Result<Option<CallRecord>> {
        for collected in [false, true] {
            let trace = Trace { name: name.clone(), collected };
            if let Some(PastCall { record, .. }) = self.past_call(&trace)? {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }
}

impl PastCall {
    /// The file of an input, as in the record, if the call was executed.
    pub fn input(&self, number: usize) -> Option<&str> {
        let argv = &self.record.execution()?.argv;
        argv.get(number + 1).map(String::as_str)
    }
}
