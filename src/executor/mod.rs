//! Starting processes, and nothing else: paths go in, an exit status comes out.
//!
//! Knows nothing of workflows, plans and the storage. `contract` is what executors promise,
//! `invocation` and `ended` are what goes in and comes out. `log` and `interpreter` read what tells why an execution failed.
//! `local` executes on this host, with or without a `sandbox`. `slurm` submits workers to a cluster.

mod contract;
mod detach;
mod ended;
mod fake;
mod interpreter;
mod invocation;
mod local;
mod log;
pub(crate) mod sandbox;
mod signals;
pub mod slurm;
mod turn;
mod verified;
mod within;

pub use self::contract::{Completion, Executor, Offer};
pub use self::detach::{Detach, Leaving, detach};
pub use self::ended::{Ended, ExecuteError, Failed, Isolation, SUSPENDED, Status, Usage};
pub use self::fake::Fake;
pub use self::interpreter::{installation, interpreter, links};
pub use self::invocation::{CallProgram, DIRECTORY, InputFile, Invocation};
pub use self::local::{GRACE, Local};
pub use self::log::{HEAD, TAIL, head, tail};
pub use self::sandbox::{Sandbox, SandboxError, hidden, is_shown};
pub use self::signals::{put_in_order, was_ignored};
pub use self::turn::{HostTurn, TurnRequest};
pub use self::verified::VerifiedPath;
pub use self::within::is_within;
