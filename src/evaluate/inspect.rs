//! Looking into a call: a shell, or another command, in the sandbox that its `exec` would have.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Write};

use super::attempt::{check_directories, execute_program};
use super::invocation::ExecutionRequest;
use super::{CallError, ExecutionSettings, Exports};
use crate::executor::{Executor, Inspection, Status};
use crate::storage::{ResultName, Storage, Stored};
use crate::task::resources::Resources;
use crate::task::workflow::Computation;

/// A call that is looked into.
pub struct InspectedCall {
    /// Its name.
    pub name: ResultName,
    /// Its computation.
    pub computation: Computation,
    /// The values that it reads, in order.
    pub sources: Vec<Stored>,
}

/// Executes a command in place of a call's `exec`, and waits for its end. What it makes is thrown away. Without a terminal, what it
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
    let InspectedCall { name, computation, sources } = call;
    let inputs: Vec<_> = sources.iter().map(|it| it.digest).collect();
    check_directories(&computation.access, &inputs)?;
    let forced = &HashSet::new();
    let settings = ExecutionSettings {
        executor,
        exports,
        retries: 0,
        retry_failed: false,
        limit: None,
        forced,
        accept: false,
        fail_fast: false,
        wait: false,
        asks: false,
        queue: None,
    };
    let tree = exports.directory(computation, true)?;
    let mut stage = storage.stage(computation.outputs.len())?;
    stage.make_directories(&computation.outputs, true)?;
    let (resources, gpus, directory) = (&Resources::default(), &[], None);
    let request = ExecutionRequest { name, computation, sources, resources, gpus, directory };
    let mut invocation = request.invocation(storage, &settings, tree, &stage)?;
    invocation.isolate = true;
    let has_terminal = inspection.terminal.is_some();
    invocation.inspection = Some(inspection);
    let status = execute_program(executor, invocation, &mut stage)?;
    if !has_terminal && let Ok(mut log) = File::open(stage.log()) {
        // Who does not read on wants no more.
        drop(io::copy(&mut log, out));
    }
    Ok(status)
}
