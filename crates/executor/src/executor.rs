//! The contract between executors and callers that submit invocations; and an executor that starts nothing.

use std::any::Any;
use std::ffi::OsString;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use std::{env, fmt};

use ce_model::access::Access;
use ce_model::digest::{Digest, ObjectId};
use ce_model::resources::{Resources, TaskLauncher};
use jiff::Timestamp;

use crate::files::VerifiedPath;
use crate::outcome::{Ended, ExecuteError, Failed, SUSPENDED, Status, Usage};
use crate::sandbox::SandboxError;

/// What an executor has for all executions together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// The memory in bytes; `None` if it does not matter.
    pub memory: Option<u64>,
    /// The number of graphics processors; `None` if it does not matter.
    pub gpus: Option<usize>,
    /// The hosts and tasks of one execution.
    pub reach: Reach,
}

/// The hosts and tasks that one execution may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// Any number.
    #[default]
    Any,
    /// It is one process of one host.
    Process,
    /// It may have an allocation of this shape.
    Allocation(AllocationShape),
}

/// The shape of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocationShape {
    /// The number of hosts.
    pub nodes: NonZeroU32,
    /// The number of processes that are started there.
    pub tasks: NonZeroU32,
}

/// An executor: starts processes for invocations.
///
/// It delivers the end of each execution when that has come, in any order and from any thread. A
/// cluster does so long after [`submit`](Self::submit) has returned. An executor that needs a
/// thread for each execution may use the one that submits, and deliver before it returns, so
/// callers must submit from threads of their own.
pub trait Executor: Send + Sync {
    /// Takes an invocation, to be started as soon as possible.
    fn submit(&self, invocation: Invocation, completion: Completion);

    /// Takes a turn for an execution, to be kept until that has ended. Returns `None` if other runs have what it needs, unless it
    /// `waits`. Who waits must have nothing that others may wait for, such as the lease of a call.
    ///
    /// # Errors
    ///
    /// Fails as soon as nothing is started any more, or if there will never be what it needs.
    fn enter(&self, request: TurnRequest, _waits: bool) -> Result<Option<HostTurn>, ExecuteError> {
        Ok(Some(HostTurn::beside_all(request)))
    }

    /// The number of executions that may run at once. Submitting more keeps others waiting.
    fn capacity(&self) -> NonZeroUsize;

    /// What it has for all executions together, beside its capacity.
    fn offer(&self) -> Offer {
        Offer::default()
    }

    /// Whether it takes invocations that are to be isolated; it refuses them otherwise.
    fn isolates(&self) -> bool {
        false
    }

    /// The reason why it does not isolate although it should, if that is known.
    fn exposed(&self) -> Option<&SandboxError> {
        None
    }

    /// Returns what the user should know of it by now, each thing once.
    fn notice(&self) -> Option<String> {
        None
    }

    /// Runs a command of the user's on this host, and waits for its end. It is interrupted like
    /// executions; it is not isolated, and may take any time.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be started or waited for, or if the executor runs no commands.
    fn run(&self, command: &mut Command) -> Result<Status, ExecuteError> {
        let program = command.get_program().display();
        Err(ExecuteError::Refused(format!("{program} cannot be run by this executor")))
    }

    /// Starts no further execution, and asks the running ones to end.
    fn cancel(&self) {}

    /// Starts no further execution, and kills the running ones.
    fn kill(&self) {}

    /// Whether nothing is started any more.
    fn is_cancelled(&self) -> bool {
        false
    }

    /// Whether executions are killed that still run: the user does not want to wait any longer.
    fn is_killed(&self) -> bool {
        false
    }

    /// Whether an execution that has just ended like this may have been disturbed: somebody who ends this process may have sent
    /// signals to processes of the execution, too, and a script that goes on without one of them makes wrong outputs.
    fn is_disturbed(&self, _: &Result<Ended, ExecuteError>) -> bool {
        false
    }

    /// Ends what executions have left behind, after the last one is over.
    fn finish(&self) {}
}

/// Delivers the end of one execution, once.
///
/// Dropping it reports the execution as lost, so no caller waits forever.
pub struct Completion(Option<Deliver>);

type Deliver = Box<dyn FnOnce(Result<Ended, ExecuteError>) + Send>;

impl Completion {
    /// Calls a function with the end of the execution, in any thread.
    pub fn new(deliver: impl FnOnce(Result<Ended, ExecuteError>) + Send + 'static) -> Self {
        Self(Some(Box::new(deliver)))
    }

    /// Delivers how the execution ended, or why it was not executed to its end.
    pub fn deliver(mut self, end: Result<Ended, ExecuteError>) {
        if let Some(deliver) = self.0.take() {
            deliver(end);
        }
    }
}

impl Drop for Completion {
    fn drop(&mut self) {
        if let Some(deliver) = self.0.take() {
            deliver(Ok(Ended::Lost("its executor broke down".to_owned())));
        }
    }
}

impl fmt::Debug for Completion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Completion").finish_non_exhaustive()
    }
}

/// What an execution takes of its host that other runs may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TurnRequest {
    /// The number of graphics processors.
    pub gpus: u32,
    /// Whether nothing else may be executed on the host meanwhile.
    pub exclusive: bool,
}

/// The right to execute, given back when dropped.
pub struct HostTurn {
    request: TurnRequest,
    gpus: Vec<String>,
    /// The locks.
    _held: Box<dyn Any + Send>,
}

impl HostTurn {
    /// A turn with these graphics processors, as long as something is held.
    pub(super) fn new(request: TurnRequest, gpus: Vec<String>, held: impl Any + Send) -> Self {
        Self { request, gpus, _held: Box::new(held) }
    }

    /// A turn of which nothing keeps anybody else waiting.
    fn beside_all(request: TurnRequest) -> Self {
        Self::new(request, Vec::new(), ())
    }

    /// What was asked for.
    pub const fn request(&self) -> TurnRequest {
        self.request
    }

    /// The names of the graphics processors.
    pub fn gpus(&self) -> &[String] {
        &self.gpus
    }
}

impl fmt::Debug for HostTurn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostTurn").field("request", &self.request).finish_non_exhaustive()
    }
}

/// Calls a function in place of a process, in the thread that submits. Its result is the exit
/// status.
#[derive(Debug)]
pub struct Fake<F>(pub F);

impl<F: Fn(&Invocation) -> i32 + Send + Sync> Executor for Fake<F> {
    fn submit(&self, invocation: Invocation, completion: Completion) {
        let start = Timestamp::now();
        let code = (self.0)(&invocation);
        let usage = Usage::since(start);
        completion.deliver(Ok(match code {
            0 => Ended::Done(usage),
            SUSPENDED => Ended::Suspended(usage),
            code => {
                Ended::Failed(Failed { status: Status::Exited(code), usage, lacking: Vec::new() })
            }
        }));
    }

    fn capacity(&self) -> NonZeroUsize {
        NonZeroUsize::MAX
    }
}

/// One execution, as an executor is asked for it. All paths but those that `access` grants are in the
/// storage.
#[derive(Clone, Debug)]
pub struct Invocation {
    /// The name of the call, which is also that of its lease.
    pub call: String,
    /// The directory of the storage.
    pub storage: PathBuf,
    /// The directory of the computation.
    pub tree: VerifiedPath,
    /// Which of its files is executed.
    pub program: CallProgram,
    /// The Git tree that this directory is an export of.
    pub tree_id: ObjectId,
    /// The values that it reads, in order.
    pub inputs: Vec<InputFile>,
    /// The files and directories that it makes, in order. The directories exist, and are empty.
    pub outputs: Vec<PathBuf>,
    /// The directory that it works in, which is empty.
    pub work: VerifiedPath,
    /// Another empty one, where a sandbox lets it write its outputs, by their numbers: `00`, `01`.
    pub outbox: VerifiedPath,
    /// A directory of the call, which it finds by [`DIRECTORY`] and may write, and which stays.
    pub directory: Option<VerifiedPath>,
    /// The directory in which the log is made.
    pub stage: VerifiedPath,
    /// The name of the log file, which is empty or does not exist.
    pub log: String,
    /// Access that it has beyond all that, in a sandbox.
    pub access: Access,
    /// Whether it is executed in a sandbox. An executor that has none refuses it then.
    pub isolate: bool,
    /// Its time limit.
    pub limit: Option<Duration>,
    /// The names of the graphics processors that its turn lets it use.
    pub visible_gpus: Vec<String>,
    /// Whether nothing else may be executed on the host meanwhile.
    pub exclusive: bool,
    /// A command in place of the program, with which a user looks into the sandbox.
    pub inspection: Option<Inspection>,
    /// What it asks for of an allocation, which it has to itself. It is not isolated then.
    pub span: Option<Span>,
}

/// A command with which a user looks into a sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// The terminal that it has, as a path of the host. Without one it prints to the log, and has no input.
    pub terminal: Option<PathBuf>,
}

/// What an execution asks for of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The number of hosts, if it matters.
    pub nodes: Option<NonZeroU32>,
    /// The number of tasks.
    pub tasks: NonZeroU32,
    /// The number of processors of each task.
    pub cpus: NonZeroU32,
    /// The program that starts `exec` on every task. Without one, `exec` is executed once.
    pub launcher: Option<TaskLauncher>,
}

impl Span {
    /// What a call needs of an allocation, if it needs one.
    pub fn of(resources: &Resources) -> Option<Self> {
        let Resources { nodes, launcher, .. } = *resources;
        let cpus = resources.cpus.unwrap_or(NonZeroU32::MIN);
        let tasks = resources.task_count();
        resources.spans().then_some(Self { nodes, tasks, cpus, launcher })
    }
}

/// A program of a computation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallProgram {
    /// Makes its outputs.
    Exec,
    /// Tells what has become of what it has started elsewhere.
    Status,
    /// Ends what it has started elsewhere.
    Cancel,
}

impl CallProgram {
    /// The name of the file, in the directory of the computation.
    pub const fn file(self) -> &'static str {
        match self {
            Self::Exec => "exec",
            Self::Status => "status",
            Self::Cancel => "cancel",
        }
    }
}

/// A file or directory that an execution reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputFile {
    /// The file or directory.
    pub file: VerifiedPath,
    /// Its digest, which tells whether it is a directory.
    pub digest: Digest,
}

/// The variable that names the directory of a call which stays as long as that is suspended.
pub const DIRECTORY: &str = "CE_DIRECTORY";

/// The variable that names the graphics processors of a process.
pub(super) const VISIBLE_GPUS: &str = "CUDA_VISIBLE_DEVICES";

impl Invocation {
    /// What is executed, in words.
    pub(super) fn program_words(&self) -> String {
        match &self.inspection {
            Some(_) => self.executable().display().to_string(),
            None => format!("its {}", self.program.file()),
        }
    }

    /// The variable of the environment that names its graphics processors, and its value.
    pub(super) fn gpu_variable(&self) -> Option<(&'static str, String)> {
        let names = &self.visible_gpus;
        (!names.is_empty()).then(|| (VISIBLE_GPUS, names.join(",")))
    }

    /// The file that is executed.
    pub(super) fn executable(&self) -> PathBuf {
        match self.inspection.as_ref().and_then(|it| it.command.first()) {
            Some(command) => command.into(),
            None => self.tree.path.join(self.program.file()),
        }
    }

    /// The variable of the environment that names its directory, and its value.
    pub(super) fn directory_variable(&self) -> Option<(&'static str, &PathBuf)> {
        self.directory.as_ref().map(|directory| (DIRECTORY, &directory.path))
    }

    /// The path of the log.
    pub fn log(&self) -> PathBuf {
        self.stage.path.join(&self.log)
    }
}

/// The variable that executions without a sandbox have: a line for each call around, the outermost first.
const WITHIN: &str = "COMPEVAL_WITHIN";

/// Whether this process is part of an execution.
pub(super) fn is_within_call() -> bool {
    env::var_os(WITHIN).is_some()
}

/// The variable of an execution of a call by this process, and its value.
pub(super) fn nesting_variable(call: &str) -> (&'static str, OsString) {
    let mut calls = env::var_os(WITHIN).unwrap_or_default();
    calls.push(format!("{} {call}\n", std::process::id()));
    (WITHIN, calls)
}

/// Whether this process is part of the execution of a call, or of that call at any version, by another process of this host.
pub fn is_within(process: u32, call: &str, any_version: bool) -> bool {
    let Ok(calls) = env::var(WITHIN) else { return false };
    calls.lines().filter_map(|line| line.split_once(' ')).any(|(other, around)| {
        let is_call = around == call || any_version && unversioned(around) == unversioned(call);
        other == process.to_string() && is_call
    })
}

/// The computation of a call and the digits of its inputs: `c_NAME` and `INPUTS` of `c_NAME/CCID/INPUTS`.
fn unversioned(call: &str) -> Option<(&str, &str)> {
    let (computation, rest) = call.split_once('/')?;
    Some((computation, rest.split_once('/')?.1))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use super::*;

    fn completion(ends: &Sender<Result<Ended, ExecuteError>>) -> Completion {
        let ends = ends.clone();
        Completion::new(move |end| ends.send(end).unwrap())
    }

    #[test]
    fn an_execution_that_nobody_completes_is_lost() {
        let (sender, ends) = channel();
        completion(&sender).deliver(Err(ExecuteError::Interrupted));
        assert!(matches!(ends.recv(), Ok(Err(ExecuteError::Interrupted))));
        drop(completion(&sender));
        assert!(matches!(ends.recv(), Ok(Ok(Ended::Lost(_)))));
        assert!(ends.try_recv().is_err(), "each delivers once");
    }
}
