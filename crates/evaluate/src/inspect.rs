//! Looking into a call: a shell, or another command, in the sandbox that its `exec` would have.

use crate::Policy;

use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use super::attempt::{check_directories, execute_program};
use super::invocation::ExecutionRequest;
use super::{CallError, ExecutionSettings, Exports};
use ce_executor::{Executor, Inspection, Status, VerifiedPath};
use ce_model::name::is_directory;
use ce_model::resources::Resources;
use ce_model::task::Computation;
use ce_storage::{ResultName, Storage, Stored};

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
