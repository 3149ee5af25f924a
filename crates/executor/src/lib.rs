//! Starting processes, and nothing else: paths go in, an exit status comes out.
//!
//! Knows nothing of workflows, plans and the storage. `executor` has the contract of executors and their output;
//! `invocation` is their input. `local` executes on this host, with or without a `sandbox`. `scheduler` starts workers
//! on a cluster, by commands of the user or by `slurm`, which knows the allocation, too, that a worker is in.
//! `isolation_probes` try to break out of the sandbox; `measuring_probes` look at what disturbs measurements. `own_process` is this process: its signals and its terminal; `process_tree` is all that it has started.
//! `start_attempts` tries again where a limit of the system is met, and `open_files` raises one of them.

mod executor;
mod invocation;
pub mod isolation_probes;
mod local;
pub mod measuring_probes;
mod open_files;
mod own_process;
mod process_tree;
mod sandbox;
pub mod scheduler;
pub mod slurm;
mod start_attempts;

pub use self::executor::{
    AllocationShape, Completion, Ended, ExecuteError, Executor, Failed, Fake, HostTurn, Isolation,
    Offer, Reach, SUSPENDED, Status, TaskStatuses, TurnRequest, Usage, is_within,
};
pub use self::invocation::{
    CallProgram, DIRECTORY, HEAD, InputFile, Inspection, Invocation, OutputFile, Span, TAIL,
    VerifiedPath, head, tail,
};
pub use self::local::{GRACE, Local, own_peak_memory};
pub use self::open_files::raise_open_files;
pub use self::own_process::{
    Detach, Leaving, TerminalRelay, detach, has_hung_up, is_terminal, note_unwritten,
    outlive_typed_signals, reset_signals, was_ignored,
};
pub use self::sandbox::{
    COMPUTATION, INPUTS, OUTPUTS, Sandbox, SandboxError, installation, interpreter, is_shown, links,
};

use std::ffi::OsString;
use std::process::ExitCode;

/// Does what this program was started for by itself, if a hidden first argument says so.
///
/// The process must have one thread yet.
pub fn hidden(arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    let arguments: Vec<OsString> = arguments.collect();
    sandbox::hidden(arguments.iter().cloned()).or_else(|| slurm::hidden(arguments.into_iter()))
}
