//! The programs that a suspended call has beside its `exec`: they say how it stands, and cancel it.

use std::time::Duration;

use super::attempt::execute_program;
use super::invocation::own;
use super::{CallError, Exports};
use ce_executor::{CallProgram, Executor, InputFile, Invocation, Status, VerifiedPath};
use ce_model::task::Computation;
use ce_storage::records::{Published, SuspensionRecord, TicketValue};
use ce_storage::{LOG, Stage, Storage, StorageError, Stored, Suspension};

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
