//! What an executor is told of a call.

use std::path::PathBuf;

use super::ExecutionSettings;
use ce_executor::{CallProgram, InputFile, Invocation, Span, VerifiedPath};
use ce_model::resources::Resources;
use ce_model::task::Computation;
use ce_storage::{LOG, ResultName, Stage, Storage, StorageError, Stored};

/// An execution of a call.
pub(super) struct ExecutionRequest<'a> {
    pub(super) name: &'a ResultName,
    pub(super) computation: &'a Computation,
    /// The files that it reads.
    pub(super) sources: &'a [Stored],
    /// What it asks for.
    pub(super) resources: &'a Resources,
    /// The graphics processors of its turn.
    pub(super) gpus: &'a [String],
    /// The directory that stays if it is suspended.
    pub(super) directory: Option<VerifiedPath>,
}

impl ExecutionRequest<'_> {
    /// Verifies everything that the execution needs.
    ///
    /// # Errors
    ///
    /// Fails if an input is not what it was when it was found, or the storage cannot be read.
    pub(super) fn invocation(
        self,
        storage: &Storage,
        settings: &ExecutionSettings<'_>,
        tree: VerifiedPath,
        stage: &Stage<'_>,
    ) -> Result<Invocation, StorageError> {
        let Computation { tree: tree_id, access, .. } = self.computation;
        let input = |file: &Stored| {
            let (path, id) = storage.inputs().verify_unchanged(file)?;
            Ok(InputFile { file: VerifiedPath { path, id }, digest: file.digest })
        };
        let own = |path| own(storage, path);
        // Slurm grants the graphics processors of an allocation.
        let span = Span::of(self.resources);
        Ok(Invocation {
            call: self.name.short(),
            storage: storage.path(""),
            tree,
            program: CallProgram::Exec,
            tree_id: tree_id.clone(),
            inputs: self.sources.iter().map(input).collect::<Result<_, StorageError>>()?,
            outputs: stage.outputs().collect(),
            work: own(stage.work())?,
            outbox: own(stage.outbox())?,
            directory: self.directory,
            stage: own(stage.directory())?,
            log: LOG.to_owned(),
            access: access.clone(),
            isolate: settings.executor.isolates(),
            limit: self.resources.time.into_iter().chain(settings.policy.timeout).min(),
            visible_gpus: self.gpus.into(),
            exclusive: self.resources.exclusive,
            inspection: None,
            span,
        })
    }
}

/// A path of this run's own, or of a call that it has the lease of.
pub(super) fn own(storage: &Storage, path: PathBuf) -> Result<VerifiedPath, StorageError> {
    let id = storage.id_of(&path)?;
    Ok(VerifiedPath { path, id })
}
