//! Launching programs of computations: `exec`, the programs that a suspended call has beside it, and what a user looks into a call with.

use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::time::Duration;

use super::attempt::{check_directories, execute_program};
use super::{CallError, ExecutionSettings, Exports, Policy};
use ce_executor::{
    CallProgram, Executor, InputFile, Inspection, Invocation, Span, Status, VerifiedPath,
};
use ce_model::name::is_directory;
use ce_model::resources::Resources;
use ce_model::task::Computation;
use ce_storage::records::{Published, SuspensionRecord, TicketValue};
use ce_storage::{LOG, ResultName, Stage, Storage, StorageError, Stored, Suspension};

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

/// The longest time that a program has to say how a suspended call stands, or to cancel it.
const LIMIT: Duration = Duration::from_secs(60);

/// What a program of a suspended call has said.
#[derive(Clone, Debug, PartialEq)]
pub struct SuspensionAnswer {
    /// How it ended.
    pub status: Status,
    /// The first line that it has printed.
    pub line: Option<String>,
}

/// The invocation of a program that a suspended call has beside its `exec`.
pub(super) fn invocation(
    storage: &Storage,
    Suspension { name, record }: &Suspension,
    tree: VerifiedPath,
    stage: &Stage<'_>,
    program: CallProgram,
) -> Result<Invocation, StorageError> {
    let input = |value: &TicketValue| {
        let TicketValue { name, value: Published { digest, stamp } } = value;
        let stored = Stored { name: name.clone(), digest: *digest, stamp: *stamp };
        let (path, id) = storage.inputs().verify_unchanged(&stored)?;
        Ok(InputFile { file: VerifiedPath { path, id }, digest: stored.digest })
    };
    let directory = storage.suspensions().work(name)?.filter(|_| record.granted().suspends());
    Ok(Invocation {
        call: name.short(),
        storage: storage.path(""),
        tree,
        program,
        tree_id: record.tree.clone(),
        inputs: record.inputs.iter().map(input).collect::<Result<_, StorageError>>()?,
        outputs: Vec::new(),
        work: own(storage, stage.work())?,
        outbox: own(storage, stage.outbox())?,
        directory: directory.map(|path| own(storage, path)).transpose()?,
        stage: own(storage, stage.directory())?,
        log: LOG.to_owned(),
        access: record.granted(),
        isolate: record.isolated,
        limit: Some(LIMIT),
        visible_gpus: Vec::new(),
        exclusive: false,
        inspection: None,
        span: None,
    })
}

/// Executes a program that a suspended call has beside its `exec`, and waits for its end. Returns `None` if it has none. The caller
/// has a turn.
///
/// # Errors
///
/// Fails if the program cannot be executed as `exec` was.
pub fn ask_suspended(
    storage: &Storage,
    executor: &dyn Executor,
    suspension: &Suspension,
    program: CallProgram,
) -> Result<Option<SuspensionAnswer>, CallError> {
    let SuspensionRecord { tree, export, isolated, .. } = &suspension.record;
    let exports = Exports::of_runs(storage);
    exports.expect(tree, export.clone());
    let computation = computation(&suspension.record);
    let tree = exports.directory(&computation, *isolated)?;
    if !tree.path.join(program.file()).exists() {
        return Ok(None);
    }
    let mut stage = storage.stage(0)?;
    let invocation = invocation(storage, suspension, (*tree).clone(), &stage, program)?;
    let status = execute_program(executor, invocation, &mut stage)?;
    Ok(Some(SuspensionAnswer { status, line: stage.first_line()? }))
}

/// The computation of a suspended call.
fn computation(record: &SuspensionRecord) -> Computation {
    Computation {
        name: record.computation.clone(),
        commit: record.commit.clone(),
        tree: record.tree.clone(),
        dirty: record.dirty,
        inputs: record.input_names.clone(),
        outputs: record.output_names.clone(),
        access: record.granted(),
        checked_out: None,
    }
}

/// A call that is looked into.
pub struct InspectedCall {
    /// Its name.
    pub name: ResultName,
    /// Its computation.
    pub computation: Computation,
    /// The values that it reads, in order.
    pub sources: Vec<Stored>,
    /// The directory that keeps what is made; without one, that is thrown away.
    pub kept: Option<KeptDirectory>,
}

/// A directory outside of the storage that has what a sandbox shows as `/outputs` and `/tmp`.
pub struct KeptDirectory {
    /// Its path.
    pub path: PathBuf,
    outputs: VerifiedPath,
    tmp: VerifiedPath,
}

impl KeptDirectory {
    /// Makes one among the user's temporary files, and in it those outputs of a computation that are directories.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be made.
    pub fn new(computation: &Computation) -> io::Result<Self> {
        let place = std::env::temp_dir().canonicalize()?;
        let make = |path: PathBuf| DirBuilder::new().mode(0o700).create(&path).map(|()| path);
        let mut number = 0;
        let path = loop {
            let path = place.join(format!("ce-shell-{}-{number}", std::process::id()));
            match make(path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                made => break made?,
            }
        };
        let (outputs, tmp) = (make(path.join("outputs"))?, make(path.join("tmp"))?);
        for (number, _) in computation.outputs.iter().enumerate().filter(|(_, it)| is_directory(it))
        {
            make(outputs.join(format!("{number:02}")))?;
        }
        Ok(Self { path, outputs: VerifiedPath::of(outputs)?, tmp: VerifiedPath::of(tmp)? })
    }
}

/// Executes a command in place of a call's `exec`, and waits for its end. Nothing is published. Without a terminal, what it
/// has printed is written to `out` when it has ended. The caller has a turn.
///
/// # Errors
///
/// Fails if the command cannot be executed as `exec` would be, isolated.
pub fn inspect(
    (storage, executor): (&Storage, &dyn Executor),
    exports: &Exports<'_>,
    call: &InspectedCall,
    inspection: Inspection,
    out: &mut (dyn Write + Send),
) -> Result<Status, CallError> {
    let InspectedCall { name, computation, sources, kept } = call;
    let inputs: Vec<_> = sources.iter().map(|it| it.digest).collect();
    check_directories(&computation.access, &inputs)?;
    let policy = &Policy::default();
    let settings = ExecutionSettings { executor, exports, policy, asks: false, queue: None };
    let tree = exports.directory(computation, true)?;
    let mut stage = storage.stage(computation.outputs.len())?;
    stage.make_directories(&computation.outputs, true)?;
    let (resources, gpus, directory) = (&Resources::default(), &[], None);
    let request = ExecutionRequest { name, computation, sources, resources, gpus, directory };
    let mut invocation = request.invocation(storage, &settings, (*tree).clone(), &stage)?;
    invocation.isolate = true;
    if let Some(KeptDirectory { outputs, tmp, .. }) = kept {
        (invocation.outbox, invocation.work) = (outputs.clone(), tmp.clone());
    }
    let has_terminal = inspection.terminal.is_some();
    invocation.inspection = Some(inspection);
    let status = execute_program(executor, invocation, &mut stage)?;
    if !has_terminal && let Ok(mut log) = File::open(stage.log()) {
        // Who does not read on wants no more.
        drop(io::copy(&mut log, out));
    }
    Ok(status)
}
