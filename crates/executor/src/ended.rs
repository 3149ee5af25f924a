//! Ends of executions.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;

use super::sandbox::error::SandboxError;
use super::status::Status;
use super::tasks::TaskStatuses;
use ce_model::exit::Explain;
use ce_model::task::access::Rule;

/// The exit status of an `exec` that has started something which goes on elsewhere: `EX_TEMPFAIL`.
pub const SUSPENDED: i32 = 75;

/// The end of an execution that was started.
#[derive(Clone, Debug, PartialEq)]
pub enum Ended {
    /// `exec` ended with exit status 0.
    Done(Usage),
    /// `exec` ended in another way, which the call is to blame for.
    Failed(Failed),
    /// `exec` has started something that goes on elsewhere, and is to be executed again later.
    Suspended(Usage),
    /// The worker that executed it ended, which the call is not to blame for; in words, how.
    Lost(String),
}

/// An execution that ended without success.
#[derive(Clone, Debug, PartialEq)]
pub struct Failed {
    /// The end of `exec`.
    pub status: Status,
    /// Its use of time and memory.
    pub usage: Usage,
    /// Lines of `access` that would grant what it may have failed for lack of: what its log complains about,
    /// and its sandbox does not show.
    pub lacking: Vec<Rule>,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tasks = &self.usage.tasks;
        match self.status {
            Status::Exited(_) | Status::Killed(_) if !tasks.0.is_empty() => tasks.fmt(f),
            status => status.fmt(f),
        }
    }
}

/// The times, the memory and the isolation of an execution.
#[derive(Clone, Debug, PartialEq)]
pub struct Usage {
    /// When it was started.
    pub start: Timestamp,
    /// When it ended.
    pub end: Timestamp,
    /// User CPU time.
    pub user: Duration,
    /// System CPU time.
    pub system: Duration,
    /// Peak resident memory of the largest process, in bytes.
    pub peak: u64,
    /// A process may be left that can still write to the files of this execution, or of another.
    pub left_behind: bool,
    /// It may have passed open files of its own to a process that it has not started.
    pub passed_on: bool,
    /// Its isolation.
    pub isolation: Isolation,
    /// How its tasks ended, if a launcher has started it. What they used is not known then.
    pub tasks: TaskStatuses,
}

impl Usage {
    /// An execution that ends now and used nothing but time.
    pub fn since(start: Timestamp) -> Self {
        Self {
            start,
            end: Timestamp::now(),
            user: Duration::ZERO,
            system: Duration::ZERO,
            peak: 0,
            left_behind: false,
            passed_on: false,
            isolation: Isolation::None,
            tasks: TaskStatuses::default(),
        }
    }

    /// The duration of the execution, in seconds.
    pub fn seconds(&self) -> f64 {
        self.end.duration_since(self.start).as_secs_f64()
    }
}

/// The isolation of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// It was not.
    None,
    /// By namespaces of Linux.
    Namespaces,
}

/// The reason why an execution did not run to its end.
#[derive(Debug, thiserror::Error)]
pub enum ExecuteError {
    /// It could not be started.
    #[error("{program} cannot be started")]
    Start {
        /// What it is, as in `its exec`.
        program: String,
        /// The file.
        exec: PathBuf,
        /// The cause.
        source: io::Error,
        /// Lines of `access` that would grant its interpreter, which its sandbox does not show.
        lacking: Vec<Rule>,
    },
    /// Its sandbox could not be made, or broke down.
    #[error("it cannot be isolated")]
    Isolate(#[source] SandboxError),
    /// A path does not lead to the file or directory any more that it led to when it was verified.
    #[error("{} was replaced while it was needed", .0.display())]
    Replaced(PathBuf),
    /// The log file could not be created.
    #[error("its log cannot be written")]
    Log {
        /// The file.
        log: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// It was started and cannot be waited for.
    #[error("{program} cannot be waited for")]
    Wait {
        /// What it is, as in `its exec`.
        program: String,
        /// The cause.
        source: io::Error,
    },
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// The executor lacks something that it needs, which the call is not to blame for; in words, what.
    #[error("{0}")]
    Refused(String),
}

impl ExecuteError {
    /// Returns how the execution was lost, in words, if a process of this program broke down rather than what it was to execute.
    pub(super) fn loss(&self) -> Option<String> {
        let (what, source): (String, &dyn std::error::Error) = match self {
            Self::Isolate(SandboxError::Lost(source)) => {
                ("the launcher of its sandbox broke down".to_owned(), source)
            }
            Self::Wait { source, .. } => (self.to_string(), source),
            _ => return None,
        };
        Some(format!("{what}: {source}"))
    }

    /// Whether a directory is not the one any more that was verified, or what is in it is not there any more.
    pub fn has_lost(&self, directory: &Path) -> bool {
        match self {
            Self::Replaced(path) => path == directory,
            Self::Start { exec, source, .. } => {
                let is_stale = source.kind() == io::ErrorKind::StaleNetworkFileHandle;
                is_stale && exec.starts_with(directory)
            }
            _ => false,
        }
    }
}

impl Explain for ExecuteError {
    fn hint(&self) -> Option<String> {
        let (exec, source) = match self {
            Self::Start { exec, source, .. } => (exec, source),
            Self::Isolate(_) => {
                return Some("check what its file access grants, or use --no-isolate".to_owned());
            }
            Self::Replaced(_) => {
                return Some(
                    "see what moves or replaces files of the storage, then run this again"
                        .to_owned(),
                );
            }
            Self::Wait { .. } => return Some("run the same command again".to_owned()),
            Self::Log { .. } | Self::Interrupted | Self::Refused(_) => return None,
        };
        let hint = match source.kind() {
            io::ErrorKind::NotFound if exec.exists() => {
                Some("its first line names an interpreter that is not installed")
            }
            _ if source.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error()) => {
                Some("a script begins with a line such as #!/bin/sh")
            }
            io::ErrorKind::ArgumentListTooLong => Some("give the storage a shorter path"),
            _ => None,
        };
        hint.map(str::to_owned)
    }
}
