//! Isolation: executions can access their own files only.
//!
//! A launcher, which is this program started again with a hidden argument, prepares namespaces once
//! and forks executions in them. Imports go one way, from the first to the last of these lines:
//!
//! - `pool`: starts launchers and asks them to execute; `missing_access` finds paths that an execution may lack.
//! - `launcher`: the launcher's side.
//! - `root`, `user`, `seccomp`: the environment of an execution.
//! - `spec`: the visible files and the environment of an execution, as a value. `mounts`, `process` and `protocol` are used by all.

mod launcher;
mod missing_access;
mod mounts;
mod pool;
mod process;
mod protocol;
mod root;
mod seccomp;
mod spec;
mod user;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

pub use self::missing_access::{installation, interpreter, is_shown, links};
pub(crate) use self::missing_access::{lacking, refused};
pub use self::pool::Sandbox;
pub(crate) use self::pool::specify;
use self::protocol::Reply;
pub(crate) use self::root::{DEVICES, TELLING};
pub use self::spec::{COMPUTATION, INPUTS, OUTPUTS};
use ce_model::exit::Explain;

/// The reason why an execution cannot be isolated.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// A step failed.
    #[error("cannot {}", [doing.as_str(), &path.to_string_lossy()].join(" ").trim_end())]
    Step {
        /// The step that failed.
        doing: String,
        /// The path it was about; empty if there is none.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The launcher cannot be started, or has ended.
    #[error("the launcher does not answer")]
    Lost(#[source] io::Error),
}

impl SandboxError {
    /// A reply of a launcher in place of the one that was expected.
    fn unexpected(reply: Reply) -> Self {
        match reply {
            Reply::Failed(doing, path, errno) => {
                Self::Step { doing, path, source: io::Error::from_raw_os_error(errno) }
            }
            _ => Self::garbled(),
        }
    }

    /// The same once something was executed, which is not to blame for what the launcher could not do then.
    fn after_start(self) -> Self {
        match self {
            Self::Step { ref source, .. } => {
                Self::Lost(io::Error::other(format!("{self}: {source}")))
            }
            Self::Lost(_) => self,
        }
    }

    /// A reply that cannot be read.
    fn garbled() -> Self {
        Self::Lost(io::ErrorKind::InvalidData.into())
    }
}

impl Explain for SandboxError {
    fn hint(&self) -> Option<String> {
        let (doing, source) = match self {
            Self::Step { doing, source, .. } => (doing, source),
            Self::Lost(_) => {
                return Some(
                    "run this again; ce doctor says whether computations can be isolated"
                        .to_owned(),
                );
            }
        };
        let space = source.raw_os_error() == Some(rustix::io::Errno::NOSPC.raw_os_error());
        let hint = match doing.as_str() {
            "create namespaces" if space => {
                Some("sysctl user.max_user_namespaces is 0 or used up; raise it")
            }
            "create namespaces" | "write" | "make private the mounts below" => Some(
                "allow user namespaces: sysctl kernel.unprivileged_userns_clone=1 (Debian) or \
                 kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu); in a container, its seccomp \
                 profile",
            ),
            _ => None,
        };
        hint.map(str::to_owned)
    }
}

/// Does what this program was started for by itself, if a hidden first argument says so.
///
/// The process must have one thread yet.
pub(super) fn hidden(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    (arguments.next()? == protocol::LAUNCH).then(|| launcher::launch(arguments))
}
