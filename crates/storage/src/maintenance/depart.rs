//! Making outputs away: the call is marked, then its outputs are removed. The record stays, so the call is known.
//!
//! Outputs are moved away while the gate is closed, and after the roots of other runs were read. A run that looks for the call
//! then finds it away, or has announced it before; then they stay.

use super::moved::MovedFiles;
use super::{Maintenance, Pins};
use crate::disk::Result;
use crate::layout::{Entry, ResultName};
use crate::records::{CallRecord, JobRecord, Record};
use crate::store::{GcRoots, Lease, Storage};

/// A call that is marked as away, and whose outputs still exist.
#[derive(Debug)]
pub struct Departing<'a> {
    storage: &'a Storage,
    name: ResultName,
    outputs: usize,
    /// Those that are there, and not damaged.
    intact: Vec<String>,
    moved: MovedFiles<'a>,
    _lease: Lease<'a>,
}

impl<'a> Maintenance<'a> {
    /// Marks a call as away. Returns `None` if it has another record now, or another run computes it. That is durable after
    /// the next [`flush`](Storage::flush).
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read or written.
    pub fn mark_departing(
        &self,
        name: &ResultName,
        record: &CallRecord,
    ) -> Result<Option<Departing<'a>>> {
        let storage = self.storage;
        let Ok(lease) = storage.leases().acquire(name) else { return Ok(None) };
        let known = storage.records().read_entry(&Entry::Call(name.clone()))?.ok();
        if !matches!(known, Some(Record::Call(known)) if known == *record) {
            return Ok(None);
        }
        storage.mark_away(name)?;
        let mut intact = Vec::new();
        for (number, output) in record.outputs.iter().enumerate() {
            let file = name.output(number);
            if storage.is_published(&file, output)? {
                intact.push(file);
            }
        }
        let (name, outputs, moved) = (name.clone(), record.outputs.len(), MovedFiles::new(storage));
        Ok(Some(Departing { storage, name, outputs, intact, moved, _lease: lease }))
    }

    /// Removes the outputs of a job that are outputs of calls that are away.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read or written.
    pub fn depart_job(&self, name: &ResultName, record: &JobRecord) -> Result<()> {
        let (storage, root) = (self.storage, &self.storage.root);
        for (number, output) in record.outputs.iter().enumerate() {
            if let Some(Entry::Call(call)) = Entry::of_file(&output.file)
                && storage.is_marked_away(&call)?
                && !storage.has(&output.file)?
            {
                // Marked first: what is missing without a mark was deleted.
                storage.mark_away(name)?;
                let place = root.path(&name.output(number));
                root.disk.remove(&place)?;
                root.unsynced.note_entry(&place);
            }
        }
        Ok(())
    }
}

impl Departing<'_> {
    /// The call.
    pub const fn name(&self) -> &ResultName {
        &self.name
    }

    /// Moves its outputs away, but for damaged ones. The mark must be on the disk, the gate closed, and it
    /// [not wanted](Self::is_wanted).
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be written.
    pub fn leave(&mut self) -> Result<()> {
        let mut intact = std::mem::take(&mut self.intact).into_iter();
        intact.try_for_each(|name| self.moved.take(name))
    }

    /// Whether it must stay: it is in use, or pinned.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read.
    pub fn is_wanted(&self, roots: &GcRoots) -> Result<bool> {
        let entry = Entry::Call(self.name.clone());
        Ok(roots.has(&entry, self.outputs) || Pins::new(self.storage).has(&entry)?)
    }

    /// Moves its outputs back, and removes the mark.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be written.
    pub fn stay(mut self) -> Result<()> {
        self.moved.put_back()?;
        self.storage.unmark_away(&self.name)
    }

    /// Removes its outputs.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be written.
    pub fn discard(mut self) -> Result<()> {
        self.moved.discard()
    }
}
