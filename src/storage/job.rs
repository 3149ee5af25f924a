//! Jobs: the outputs of a whole task, under the commit of the task.

use std::fs;
use std::io;
use std::path::Path;

use super::find::Read;
use super::record::{Format, JobInput, JobOutput, JobRecord};
use super::scheme::{DIGITS, Digits, ResultName};
use super::{Doing, Result, Storage, StorageError, Stored, file};
use crate::digest::Digest;
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
    pub calls: Vec<String>,
}

impl Storage {
    /// Keeps the outputs of a job under its own name, with its record; returns that name.
    ///
    /// The outputs are links to files that are in the storage already.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be written.
    pub fn publish_job(&self, job: Job<'_>) -> Result<ResultName> {
        let record = self.job_record(job.task, job.inputs, job.outputs, job.calls);
        for digits in DIGITS {
            let name = ResultName::of_job(job.task, job.inputs, digits);
            match self.record::<JobRecord>(&name.record())? {
                Read::Record(known) if known.inputs != record.inputs => continue,
                Read::Record(known) if known.outputs == record.outputs => {
                    self.link_outputs(&name, job.outputs)?;
                }
                Read::Record(_) | Read::Spoiled | Read::Absent => {
                    self.link_outputs(&name, job.outputs)?;
                    let aside = self.place(&self.stage_name())?;
                    self.write_record(&aside, &record)?;
                    let place = self.place(&name.record())?;
                    fs::rename(&aside, &place).doing("move a record to", &place)?;
                }
            }
            return Ok(name);
        }
        let name = ResultName::of_job(job.task, job.inputs, Digits::Full);
        Err(StorageError::Collision(self.path(&name.record())))
    }

    fn job_record(
        &self,
        task: &Task,
        inputs: &[Digest],
        outputs: &[Stored],
        calls: Vec<String>,
    ) -> JobRecord {
        let input = |(name, digest): (&_, &Digest)| JobInput {
            name: Clone::clone(name),
            digest: *digest,
        };
        let output = |file: &Stored| JobOutput {
            file: file.name.clone(),
            digest: file.digest,
        };
        JobRecord {
            format: Format,
            task: task.name.clone(),
            commit: task.commit.clone(),
            inputs: task.inputs.iter().zip(inputs).map(input).collect(),
            outputs: outputs.iter().map(output).collect(),
            calls,
            recorded: self.stamp(),
        }
    }

    fn link_outputs(&self, name: &ResultName, outputs: &[Stored]) -> Result<()> {
        for (number, output) in outputs.iter().enumerate() {
            let from = self.path(&output.name);
            let place = self.place(&name.output(number))?;
            match fs::hard_link(&from, &place) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    if !self.is_the_output(&place, &output.digest)? {
                        self.replace(&from, &place)?;
                    }
                }
                Err(_) => self.replace(&from, &place)?,
            }
        }
        Ok(())
    }

    fn is_the_output(&self, place: &Path, digest: &Digest) -> Result<bool> {
        let metadata = fs::metadata(place).doing("look at", place)?;
        Ok(metadata.is_file()
            && metadata.len() == digest.size
            && file::digest(place).doing("read", place)? == *digest)
    }

    /// Puts a copy of a stored file in a place, whatever is there: its name promises the contents.
    fn replace(&self, from: &Path, place: &Path) -> Result<()> {
        let copy = self.place(&self.stage_name())?;
        if fs::hard_link(from, &copy).is_err() {
            file::copy(from, &copy).doing("copy", from)?;
            let metadata = fs::metadata(&copy).doing("look at", &copy)?;
            file::protect(&copy, &metadata).doing("make read-only", &copy)?;
        }
        fs::rename(&copy, place).doing("move an output to", place)
    }
}
