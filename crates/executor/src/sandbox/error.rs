//! The reason why an execution cannot be isolated.

use std::io;
use std::path::PathBuf;

use super::wire::Reply;

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
    pub(super) fn unexpected(reply: Reply) -> Self {
        match reply {
            Reply::Failed(doing, path, errno) => {
                Self::Step { doing, path, source: io::Error::from_raw_os_error(errno) }
            }
            _ => Self::garbled(),
        }
    }

    /// The same once something was executed, which is not to blame for what the launcher could not do then.
    pub(super) fn after_start(self) -> Self {
        match self {
            Self::Step { ref source, .. } => {
                Self::Lost(io::Error::other(format!("{self}: {source}")))
            }
            Self::Lost(_) => self,
        }
    }

    /// A reply that cannot be read.
    pub(super) fn garbled() -> Self {
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
