//! Jobs of a session: their outputs are kept under a name of their own, and found there again.

use std::path::Path;

use super::{Error, Session};
use crate::{CallError, Evaluation, Outcome};
use ce_files::cache::Cache;
use ce_git::Home;
use ce_model::name::{InputName, TreeName};
use ce_model::plan::{Ancestors, Source};
use ce_storage::{
    Durability, Input, InputSource, Job, KnownRepositories, ResultName, Storage, Stored,
    TaskVersion, Unrecorded,
};

/// The fate of the outputs of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// They are kept under this name.
    As(ResultName),
    /// An output is missing.
    Incomplete,
    /// Recorded outputs were replaced by others: calls that were found were made from those before.
    Replaced,
    /// Points of a sweep have failed, which may pass another time.
    FailedPoints,
    /// The task has changes that no commit records.
    Uncommitted,
    /// These revisions are no full commit ids, so they may name other commits later: each with the name
    /// of its tree.
    Revisions(Vec<(TreeName, String)>),
    /// The storage is read-only.
    ReadOnly,
    /// The user may not write something in the storage, for this reason.
    Denied(String),
}

impl Session {
    /// Stores the outputs of an evaluation under the job's name, if all of them exist and the task
    /// is committed.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be written.
    pub fn publish_job(&self, evaluation: &Evaluation) -> Result<Kept, Error> {
        let Evaluation { task, plan, files, .. } = evaluation;
        let inputs = task.inputs.iter().zip(&files.inputs);
        let inputs = inputs.map(|(name, input)| Some((name.clone(), input.clone()?)));
        let Some(inputs) = inputs.collect() else { return Ok(Kept::Incomplete) };
        let ancestors = plan.everything();
        let kept =
            self.publish(&FinishedPart { evaluation, inputs, sources: plan.outputs(), ancestors })?;
        if let Kept::As(_) = kept {
            self.storage.flush()?;
        }
        Ok(kept)
    }

    /// Stores the outputs of a part of an evaluation under the name of its job. It is durable after the next
    /// [`Storage::flush`].
    pub(super) fn publish(&self, part: &FinishedPart<'_>) -> Result<Kept, Error> {
        let FinishedPart { evaluation, inputs, sources, ancestors } = part;
        let Evaluation { task, files, storage, .. } = evaluation;
        let outputs: Option<Vec<Stored>> =
            sources.iter().map(|source| evaluation.stored(*source)).collect();
        let Some(outputs) = outputs else { return Ok(Kept::Incomplete) };
        if evaluation.has_replaced() {
            return Ok(Kept::Replaced);
        }
        if evaluation.has_failed_points(&ancestors.calls) {
            return Ok(Kept::FailedPoints);
        }
        if !task.changed.is_empty() || evaluation.has_changed_files() {
            return Ok(Kept::Uncommitted);
        }
        let revisions = evaluation.loose_revisions(&ancestors.derived);
        if !revisions.is_empty() {
            return Ok(Kept::Revisions(revisions));
        }
        let literals =
            ancestors.literals.iter().filter_map(|it| files.literals[it.index()].as_ref());
        let own = files.own.iter().flatten().map(|input| &input.file);
        let literals = literals.chain(own).chain(evaluation.leaves(&ancestors.derived));
        let (names, inputs): (Vec<_>, Vec<_>) =
            inputs.iter().map(|(name, input)| (name.clone(), input.file.digest)).unzip();
        let calls = ancestors.calls.iter().filter_map(|call| evaluation.outcome(*call));
        let job = Job {
            task: TaskVersion::from(&**task),
            names: &names,
            inputs: &inputs,
            literals: &literals.cloned().collect::<Vec<_>>(),
            outputs: &outputs,
            is_away: false,
            calls: calls.map(Outcome::name).collect(),
        };
        match storage.jobs().publish(&job) {
            Err(error) if error.is_read_only() => Ok(Kept::ReadOnly),
            Err(error) if error.may_not_write() => {
                Ok(Kept::Denied(CallError::from(error).in_full()))
            }
            job => Ok(Kept::As(job?)),
        }
    }
}

/// A part of an evaluation that is a job.
pub(super) struct FinishedPart<'a> {
    pub(super) evaluation: &'a Evaluation,
    /// The inputs of the job.
    pub(super) inputs: Vec<(InputName, Input)>,
    /// The sources of its outputs.
    pub(super) sources: &'a [Source],
    /// What these are made from.
    pub(super) ancestors: Ancestors,
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
/// Fails if the storage cannot be read.
pub fn find_job(
    task: TaskVersion<'_>,
    storage: &Path,
    inputs: &[InputSource],
    unrecorded: Unrecorded,
) -> Result<Option<FinishedJob>, Error> {
    // The evaluation that follows reports an error of this storage, or of an input.
    let Ok(storage) = Storage::inspect(storage, unrecorded) else { return Ok(None) };
    let storage = storage.with_cache(Cache::of_user());
    let Ok(Some(inputs)) = storage.jobs().inputs(task, inputs) else { return Ok(None) };
    let outputs = storage.jobs().find(task, &inputs)?;
    Ok(outputs.map(|outputs| FinishedJob { outputs, storage }))
}

impl FinishedJob {
    /// Records that the repository of a task in a directory uses the storage at this path.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be written.
    pub fn record_use(&self, dir: &Path, storage: &Path) -> Result<(), Error> {
        record_later_use(&self.storage, dir, storage)
    }
}

/// Records that the repository of a task in this directory uses a storage at this path, which was only read so far.
pub(super) fn record_later_use(read: &Storage, dir: &Path, path: &Path) -> Result<(), Error> {
    if KnownRepositories::new(read).is_recorded(&Home::of(dir)?.path.to_string_lossy())? {
        return Ok(());
    }
    record_use(&Storage::open(path, Unrecorded::Refuse, Durability::Unsynced)?, dir)
}

/// Records that the repository of a task in this directory uses a storage.
pub(super) fn record_use(storage: &Storage, dir: &Path) -> Result<(), Error> {
    let Home { path, inode } = Home::of(dir)?;
    Ok(KnownRepositories::new(storage).record(&path.to_string_lossy(), inode)?)
}
