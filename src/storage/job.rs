//! Jobs: the outputs of a whole task, under the commit of the task.

use std::path::Path;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::collect::COLLECTED;
use super::find::Read;
use super::record::{CallRecord, Format, JobInput, JobOutput, JobRecord, Stamp};
use super::scheme::{DIGITS, Digits, RECORDS, ResultName};
use super::{Result, Storage, StorageError, Stored, disk};
use crate::digest::{Digest, ObjectId};
use crate::name::TaskName;
use crate::workflow::Task;

/// A job that is done.
#[derive(Debug)]
pub struct Job<'a> {
    /// The task.
    pub task: &'a Task,
    /// What its inputs contain, in order.
    pub inputs: &'a [Digest],
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
    inputs: Vec<JobInput>,
    outputs: Vec<JobOutput>,
    calls: Vec<IgnoredAny>,
    recorded: Stamp,
}

impl Job<'_> {
    fn recorded_inputs(&self) -> Vec<JobInput> {
        let input =
            |(name, digest): (&_, &Digest)| JobInput { name: Clone::clone(name), digest: *digest };
        self.task.inputs.iter().zip(self.inputs).map(input).collect()
    }

    fn recorded_outputs(&self) -> Vec<JobOutput> {
        let output = |file: &Stored| JobOutput { file: file.name.clone(), digest: file.digest };
        self.outputs.iter().map(output).collect()
    }
}

impl Storage {
    /// Returns the names of the calls' files that are the outputs of a job, if it is done and they
    /// are all there as they are recorded. What other calls have made on the way is not looked at.
    ///
    /// The files of the inputs are read only if some job of the task at this commit is done.
    ///
    /// # Errors
    ///
    /// Fails if an input or the storage cannot be read.
    pub fn find_job(
        &self,
        task: &TaskName,
        commit: &ObjectId,
        inputs: &[&Path],
    ) -> Result<Option<Vec<String>>> {
        let any = ResultName::of_job(task, commit, &[], Digits::Short).room_itself(RECORDS);
        if disk::metadata(&self.path(&any))?.is_none() {
            return Ok(None);
        }
        let mut digests = Vec::with_capacity(inputs.len());
        for input in inputs {
            // What is no regular file, such as a pipe, can be read only once, and not here.
            if !disk::metadata(input)?.is_some_and(|metadata| metadata.is_file()) {
                return Ok(None);
            }
            digests.push(self.read_to_digest(input)?);
        }
        for digits in DIGITS {
            let name = ResultName::of_job(task, commit, &digests, digits);
            let Read::Record(record) = self.record::<Done>(&name.record())? else {
                return Ok(None);
            };
            let known = record.inputs.iter().map(|input| &input.digest);
            if record.commit == *commit && known.eq(&digests) {
                return self.outputs_there(record.outputs);
            }
        }
        Ok(None)
    }

    /// Returns the names of these files, if they are all outputs of calls and as these recorded them.
    fn outputs_there(&self, outputs: Vec<JobOutput>) -> Result<Option<Vec<String>>> {
        let mut names = Vec::with_capacity(outputs.len());
        for JobOutput { file, digest } in outputs {
            let Some((call, _, number)) = ResultName::maker(&file) else {
                return Ok(None);
            };
            let Read::Record(record) = self.record::<CallRecord>(&call.record())? else {
                return Ok(None);
            };
            let known = record.outputs.get(usize::from(number));
            let Some(known) = known.filter(|known| known.digest == digest) else { return Ok(None) };
            if !disk::is_published(&self.path(&file), known)? {
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
    pub fn publish_job(&self, job: &Job<'_>) -> Result<ResultName> {
        let (inputs, outputs) = (job.recorded_inputs(), job.recorded_outputs());
        for digits in DIGITS {
            let name = ResultName::of_job(&job.task.name, &job.task.commit, job.inputs, digits);
            match self.record::<Done>(&name.record())? {
                Read::Record(known) if known.inputs != inputs => continue,
                Read::Record(known) if known.outputs == outputs => {
                    self.link_outputs(&name, job.outputs)?;
                }
                Read::Record(_) | Read::Spoiled | Read::Absent => {
                    self.link_outputs(&name, job.outputs)?;
                    let record = JobRecord {
                        format: Format,
                        task: job.task.name.clone(),
                        commit: job.task.commit.clone(),
                        inputs,
                        outputs,
                        calls: job.calls.iter().map(|call| call.short()).collect(),
                        recorded: self.stamp(),
                    };
                    self.put_record(&name.record(), &record)?;
                    disk::remove(&self.path(&name.record_in(COLLECTED)))?;
                }
            }
            return Ok(name);
        }
        let name = ResultName::of_job(&job.task.name, &job.task.commit, job.inputs, Digits::Full);
        Err(StorageError::Collision(self.path(&name.record())))
    }

    fn link_outputs(&self, name: &ResultName, outputs: &[Stored]) -> Result<()> {
        for (number, output) in outputs.iter().enumerate() {
            let from = self.path(&output.name);
            let place = self.place(&name.output(number))?;
            // Where the link fails for another reason, a copy may do.
            let linked = disk::link(&from, &place).unwrap_or(false)
                || disk::id(&place)?.is_some_and(|place| disk::id(&from).ok() == Some(Some(place)));
            if !linked && !self.is_the_output(&place, &output.digest)? {
                self.replace(&from, &place)?;
            }
            self.unsynced.note(&place);
            self.unsynced.note_entry(&place);
        }
        Ok(())
    }

    fn is_the_output(&self, place: &Path, digest: &Digest) -> Result<bool> {
        let same_size = disk::metadata(place)?
            .is_some_and(|metadata| metadata.is_file() && metadata.len() == digest.size);
        Ok(same_size && disk::digest(place)? == *digest)
    }

    /// Puts a copy of a stored file in a place, whatever is there: its name promises the contents.
    fn replace(&self, from: &Path, place: &Path) -> Result<()> {
        let copy = self.place(&self.private_name())?;
        if !disk::link(from, &copy).unwrap_or(false) {
            disk::copy(from, &copy)?;
            disk::seal(&copy)?;
        }
        disk::rename(&copy, place).map(drop)
    }
}
