//! Starting processes, and nothing else: paths go in, an exit status comes out.
//!
//! Knows nothing of workflows, plans and the storage. `contract` is what executors promise,
//! `invocation` and `ended` are what goes in and comes out. `log` and `interpreter` read what tells why an execution failed.
//! `local` executes on this host, with or without a `sandbox`. `slurm` submits workers to a cluster, and knows the allocation that
//! a worker is in; `tasks` is how tasks of an execution ended.

mod contract;
mod detach;
mod ended;
mod fake;
mod interpreter;
mod invocation;
mod local;
mod log;
pub mod probes;
pub(crate) mod sandbox;
mod signals;
pub mod slurm;
mod status;
mod tasks;
mod turn;
mod verified;
mod within;

use std::ffi::OsString;
use std::process::ExitCode;

pub use self::contract::{AllocationShape, Completion, Executor, Offer, Reach};
pub use self::detach::{Detach, Leaving, detach};
pub use self::ended::{Ended, ExecuteError, Failed, Isolation, SUSPENDED, Usage};
pub use self::fake::Fake;
pub use self::interpreter::{installation, interpreter, links};
pub use self::invocation::{CallProgram, DIRECTORY, InputFile, Inspection, Invocation, Span};
pub use self::local::{GRACE, Local};
pub use self::log::{HEAD, TAIL, head, tail};
pub use self::sandbox::{COMPUTATION, INPUTS, OUTPUTS};
pub use self::sandbox::{Sandbox, SandboxError, TerminalRelay, is_shown, is_terminal};
pub use self::signals::{put_in_order, was_ignored};
pub use self::status::Status;
pub use self::tasks::TaskStatuses;
pub use self::turn::{HostTurn, TurnRequest};
pub use self::verified::VerifiedPath;
pub use self::within::is_within;

/// Does what this program was started for by itself, if a hidden first argument says so.
///
/// The process must have one thread yet.
pub fn hidden(arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    let arguments: Vec<OsString> = arguments.collect();
    sandbox::hidden(arguments.iter().cloned()).or_else(|| slurm::hidden(arguments.into_iter()))
}
