//! Invocations: requests for executions, with paths that were verified on this host, and the variables of their environment.

use std::env;
use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use super::files::VerifiedPath;
use ce_model::access::Access;
use ce_model::digest::{Digest, ObjectId};
use ce_model::resources::{Resources, TaskLauncher};

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
