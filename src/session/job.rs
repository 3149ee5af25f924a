//! Jobs of a session: their outputs are kept under a name of their own, and found there again.

use std::path::Path;

use super::{Error, Session};
use crate::cache::Cache;
use crate::digest::Digest;
use crate::evaluate::{Evaluation, Outcome};
use crate::git::Home;
use crate::storage::{
    Durability, InputSource, Job, KnownRepositories, ResultName, Storage, Stored, TaskVersion,
    Unrecorded,
};
use crate::task::name::TreeName;

/// The fate of the outputs of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// They are kept under this name.
    As(ResultName),
    /// An output is missing.
    Incomplete,
    /// Points of a sweep have failed, which may pass another time.
    FailedPoints,
    /// The task has changes that no commit records.
    Uncommitted,
    /// These revisions are no full commit ids, so they may name other commits later: each with the name
    /// of its tree.
    Revisions(Vec<(TreeName, String)>),
    /// The storage is read-only.
    ReadOnly,
}

impl Session {
    /// Stores the outputs of an evaluation under the job's name, if all of them exist and the task
    /// is committed.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be written.
    pub fn publish_job(&self, evaluation: &Evaluation) -> Result<Kept, Error> {
        let Evaluation { task, files, storage, .. } = evaluation;
        let Some(outputs) = evaluation.outputs() else { return Ok(Kept::Incomplete) };
        if evaluation.has_failed_points() {
            return Ok(Kept::FailedPoints);
        }
        if !task.changed.is_empty() || evaluation.has_changed_files() {
            return Ok(Kept::Uncommitted);
        }
        let revisions = evaluation.loose_revisions();
        if !revisions.is_empty() {
            return Ok(Kept::Revisions(revisions));
        }
        let own =
            files.own.iter().flatten().map(|input| &input.file).chain(evaluation.tree_files());
        let literals: Vec<Stored> = files.literals.iter().flatten().chain(own).cloned().collect();
        let inputs: Vec<Digest> = files.inputs.iter().map(|input| input.file.digest).collect();
        let job = Job {
            task: TaskVersion::from(&**task),
            names: &task.inputs,
            inputs: &inputs,
            literals: &literals,
            outputs: &outputs,
            calls: evaluation.outcomes().map(Outcome::name).collect(),
        };
        match storage.jobs().publish(&job) {
            Err(error) if error.is_read_only() => Ok(Kept::ReadOnly),
            job => {
                let job = job?;
                storage.flush()?;
                Ok(Kept::As(job))
            }
        }
    }
}

/// A job that was finished before.
#[derive(Debug)]
pub struct FinishedJob {
    /// The names of its outputs.
    pub outputs: Vec<String>,
    /// The storage that has it.
    pub storage: Storage,
}

/// Looks for a job that was finished before: that needs no look at its calls, however many they are.
///
/// # Errors
///
/// Fails if an input cannot be read.
pub fn find_job(
    task: TaskVersion<'_>,
    storage: &Path,
    inputs: &[InputSource],
    unrecorded: Unrecorded,
) -> Result<Option<FinishedJob>, Error> {
    // The evaluation that follows reports an error of this storage.
    let Ok(storage) = Storage::inspect(storage, unrecorded) else { return Ok(None) };
    let storage = storage.with_cache(Cache::of_user());
    let outputs = storage.jobs().find(task, inputs)?;
    Ok(outputs.map(|outputs| FinishedJob { outputs, storage }))
}

impl FinishedJob {
    /// Records that the repository of a task in a directory uses the storage at this path.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be written.
    pub fn record_use(&self, dir: &Path, storage: &Path) -> Result<(), Error> {
        if KnownRepositories::new(&self.storage)
            .is_recorded(&Home::of(dir)?.path.to_string_lossy())?
        {
            return Ok(());
        }
        record_use(&Storage::open(storage, Unrecorded::Refuse, Durability::Unsynced)?, dir)
    }
}

/// Records that the repository of a task in this directory uses a storage.
pub(super) fn record_use(storage: &Storage, dir: &Path) -> Result<(), Error> {
    let Home { path, inode } = Home::of(dir)?;
    Ok(KnownRepositories::new(storage).record(&path.to_string_lossy(), inode)?)
}
