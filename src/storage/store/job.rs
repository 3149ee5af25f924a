//! Jobs: the outputs of a whole task, under the commit of the task.

use std::path::Path;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{InputSource, Storage, Stored, Unrecorded};
use crate::digest::{Digest, ObjectId};
use crate::storage::disk::{Result, StorageError};
use crate::storage::layout::{COLLECTED, Entry, RECORDS, ResultName, TaskVersion};
use crate::storage::records::{
    CallRecord, Format, JobInput, JobOutput, JobRecord, Provenance, Read,
};
use crate::task::name::{InputName, TaskName};

/// A job that is done.
#[derive(Debug)]
pub struct Job<'a> {
    /// The version of the task.
    pub task: TaskVersion<'a>,
    /// The symbolic names of its inputs, in order.
    pub names: &'a [InputName],
    /// Their digests.
    pub inputs: &'a [Digest],
    /// The literals that its workflow reads.
    pub literals: &'a [Stored],
    /// The files that are its outputs, in order.
    pub outputs: &'a [Stored],
    /// The names of all calls that it made.
    pub calls: Vec<&'a ResultName>,
}

/// A job's record, of which the names of its calls are not kept: they may be many.
#[derive(Deserialize)]
#[expect(dead_code, reason = "without one of these it is no record")]
struct Done {
    format: Format,
    task: TaskName,
    commit: ObjectId,
    place: Option<String>,
    inputs: Vec<JobInput>,
    literals: Option<Vec<JobOutput>>,
    outputs: Vec<JobOutput>,
    calls: Vec<IgnoredAny>,
    recorded: Provenance,
}

impl Done {
    /// Whether it is the record of the job of a task from these inputs.
    fn is_of(&self, task: TaskVersion<'_>, inputs: &[Digest]) -> bool {
        self.task == *task.name
            && self.commit == *task.commit
            && self.place.is_some()
            && self.place.as_deref() == task.place
            && self.inputs.iter().map(|input| &input.digest).eq(inputs)
    }
}

impl Job<'_> {
    fn recorded_inputs(&self) -> Vec<JobInput> {
        let input =
            |(name, digest): (&_, &Digest)| JobInput { name: Clone::clone(name), digest: *digest };
        self.names.iter().zip(self.inputs).map(input).collect()
    }

    fn recorded(files: &[Stored]) -> Vec<JobOutput> {
        let file = |file: &Stored| JobOutput { file: file.name.clone(), digest: file.digest };
        files.iter().map(file).collect()
    }
}

/// The jobs of a storage.
#[derive(Clone, Copy, Debug)]
pub struct Jobs<'a> {
    storage: &'a Storage,
}

impl<'a> Jobs<'a> {
    pub(super) const fn new(storage: &'a Storage) -> Self {
        Self { storage }
    }

    /// Returns the names of the calls' files that are the outputs of a job, if it is done and they
    /// are all there as they are recorded. What other calls have made on the way is not looked at.
    ///
    /// The files of the inputs are read only if some job of the task at this commit is done.
    ///
    /// # Errors
    ///
    /// Fails if an input or the storage cannot be read.
    pub fn find(
        &self,
        task: TaskVersion<'_>,
        inputs: &[InputSource],
    ) -> Result<Option<Vec<String>>> {
        if self.storage.unrecorded == Unrecorded::Refuse {
            // A job does not say which of its calls were adopted.
            return Ok(None);
        }
        let records = |directory| format!("{directory}/{RECORDS}");
        let rooms = task.directories().into_iter().map(records);
        let mut any = false;
        for room in rooms {
            any |= self.storage.root.disk.exists(&self.storage.path(&room))?;
        }
        if !any {
            return Ok(None);
        }
        let mut digests = Vec::with_capacity(inputs.len());
        for input in inputs {
            digests.push(match input {
                InputSource::Bytes(contents) => Digest::of(contents),
                InputSource::File(path) if path.is_file() => {
                    self.storage.ingest.read_to_digest(path)?
                }
                // Whatever is no regular file, such as a pipe, can be read only once, and not here.
                InputSource::File(_) => return Ok(None),
            });
        }
        for name in task.names(&digests) {
            if let Read::Record(record) = self.storage.records().read::<Done>(&name.record())?
                && record.is_of(task, &digests)
                && self.has_literals(record.literals.as_deref())?
            {
                return self.outputs_there(record.outputs);
            }
        }
        Ok(None)
    }

    /// Whether the literals that a job has read contain the same still, if it says which it has.
    fn has_literals(&self, literals: Option<&[JobOutput]>) -> Result<bool> {
        let Some(literals) = literals else { return Ok(false) };
        for JobOutput { file, digest } in literals {
            if self.storage.inputs().literal(file)?.is_none_or(|found| found.digest != *digest) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the names of these files, if they are all outputs of calls and as these recorded them.
    fn outputs_there(&self, outputs: Vec<JobOutput>) -> Result<Option<Vec<String>>> {
        let mut names = Vec::with_capacity(outputs.len());
        for JobOutput { file, digest } in outputs {
            let Some((call, _, number)) = ResultName::maker(&file) else {
                return Ok(None);
            };
            let Read::Record(record) = self.storage.records().read::<CallRecord>(&call.record())?
            else {
                return Ok(None);
            };
            if !Entry::Call(call).fits_call(&record) {
                return Ok(None);
            }
            let known = record.outputs.get(usize::from(number));
            let Some(known) = known.filter(|known| known.digest == digest) else { return Ok(None) };
            if !self.storage.is_published(&self.storage.path(&file), known)? {
                return Ok(None);
            }
            names.push(file);
        }
        Ok(Some(names))
    }

    /// Keeps the outputs of a job under its own name, with its record; returns that name.
    ///
    /// The outputs are links to files that are in the storage already.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be written.
    pub fn publish(&self, job: &Job<'_>) -> Result<ResultName> {
        let (inputs, outputs) = (job.recorded_inputs(), Job::recorded(job.outputs));
        let literals = Job::recorded(job.literals);
        let names = job.task.names(job.inputs);
        for name in &names {
            match self.storage.records().read::<Done>(&name.record())? {
                // What does not tell its place may be of another task, unless it has the same outputs.
                Read::Record(known)
                    if known.inputs != inputs
                        || known.commit != *job.task.commit
                        || known.place.is_some() && known.place.as_deref() != job.task.place
                        || known.place.is_none() && known.outputs != outputs =>
                {
                    continue;
                }
                Read::Record(known)
                    if known.outputs == outputs
                        && known.literals.as_ref().is_none_or(|known| *known == literals) =>
                {
                    self.link_outputs(name, job.outputs)?;
                }
                Read::Record(_) | Read::Spoiled | Read::Absent => {
                    self.link_outputs(name, job.outputs)?;
                    let record = JobRecord {
                        format: Format,
                        task: job.task.name.clone(),
                        commit: job.task.commit.clone(),
                        place: job.task.place.map(str::to_owned),
                        inputs,
                        literals: Some(literals),
                        outputs,
                        calls: job.calls.iter().map(|call| call.short()).collect(),
                        recorded: Provenance::now(),
                    };
                    self.storage.records().put(&name.record(), &record)?;
                    self.storage
                        .root
                        .disk
                        .remove(&self.storage.path(&name.record_in(COLLECTED)))?;
                }
            }
            return Ok(name.clone());
        }
        let last = names.last().map(ResultName::record).unwrap_or_default();
        Err(StorageError::Collision(self.storage.path(&last)))
    }

    fn link_outputs(&self, name: &ResultName, outputs: &[Stored]) -> Result<()> {
        let disk = &self.storage.root.disk;
        for (number, output) in outputs.iter().enumerate() {
            let from = self.storage.path(&output.name);
            let place = self.storage.root.place(&name.output(number))?;
            // Where the link fails for another reason, a copy may do.
            let linked = disk.link(&from, &place).unwrap_or(false)
                || disk.id(&place)?.is_some_and(|place| disk.id(&from).ok() == Some(Some(place)));
            if !linked && !self.is_the_output(&place, &output.digest)? {
                self.replace(&from, &place)?;
            }
            self.storage.root.unsynced.note(&place);
            self.storage.root.unsynced.note_entry(&place);
        }
        Ok(())
    }

    fn is_the_output(&self, place: &Path, digest: &Digest) -> Result<bool> {
        let disk = &self.storage.root.disk;
        let metadata = disk.metadata(place)?;
        let same_size = metadata.is_some_and(|it| it.is_file() && it.len() == digest.size);
        Ok(same_size && disk.digest(place)? == *digest)
    }

    /// Puts a copy of a stored file in a place, whatever is there: its name promises the contents.
    fn replace(&self, from: &Path, place: &Path) -> Result<()> {
        let copy = self.storage.root.place(&self.storage.root.private_name())?;
        if !self.storage.root.disk.link(from, &copy).unwrap_or(false) {
            self.storage.root.disk.copy(from, &copy)?;
            self.storage.root.disk.seal(&copy)?;
        }
        self.storage.root.disk.rename(&copy, place).map(drop)
    }
}
