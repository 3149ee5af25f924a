//! Isolation: executions can access their own files only.
//!
//! A launcher, which is this program started again with a hidden argument, prepares namespaces once
//! and forks executions in them. Imports go one way, from the first to the last of these lines:
//!
//! - `pool`, `client`: starting launchers and sending requests; `explain` finds paths that an execution may lack.
//! - `launcher`, with `execution` and `namespace_init`: the launcher's side, with `process` for all its processes.
//! - `root` with `image`, `system`, `loopback`, `nobody`, `privileges`, `filter`: the environment of an execution.
//! - `spec`: the visible files and the environment of an execution, as a value. `mounts`, `error` and `wire` are used by all.

mod client;
pub(super) mod error;
mod execution;
mod explain;
mod filter;
mod image;
mod launcher;
mod loopback;
mod mounts;
mod namespace_init;
mod nobody;
pub(super) mod pool;
mod privileges;
mod process;
mod root;
mod spec;
mod system;
mod wire;

use std::ffi::OsString;
use std::process::ExitCode;

pub use self::error::SandboxError;
pub use self::explain::is_shown;
pub use self::pool::Sandbox;
pub use self::spec::{COMPUTATION, INPUTS, OUTPUTS};
pub(crate) use self::system::{DEVICES, TELLING};

/// Does what this program was started for by itself, if a hidden first argument says so.
///
/// The process must have one thread yet.
pub(super) fn hidden(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    (arguments.next()? == wire::LAUNCH).then(|| launcher::launch(arguments))
}
