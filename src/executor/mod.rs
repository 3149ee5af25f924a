//! Starting processes, and nothing else: paths go in, an exit status comes out.
//!
//! Knows nothing of workflows, plans and the storage.

mod fake;
mod local;
mod orphans;
mod sandbox;
mod signals;
mod verified;

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use rustix::fs::{FileType, Mode, OFlags, fstat, open, openat};
use rustix::path::Arg;

pub use self::fake::Fake;
pub use self::local::{GRACE, Local};
pub use self::sandbox::{Sandbox, SandboxError, break_outs, hidden};
pub use self::signals::{put_in_order, was_ignored};
pub use self::verified::VerifiedPath;
use crate::access::Access;

/// What is to be executed.
#[derive(Debug)]
pub struct Invocation {
    /// The directory of the computation: its file `exec` is executed.
    pub tree: VerifiedPath,
    /// The files that it reads, in order.
    pub inputs: Vec<VerifiedPath>,
    /// The files that it makes, in order.
    pub outputs: Vec<PathBuf>,
    /// The directory that it works in, which is empty.
    pub work: VerifiedPath,
    /// Another empty one, where a sandbox lets it write its outputs, by their numbers: `00`, `01`.
    pub outbox: VerifiedPath,
    /// The directory in which the log is made.
    pub stage: VerifiedPath,
    /// The name of the file that takes what it prints: an empty file, or one that is yet to be made.
    pub log: &'static str,
    /// What it may use beyond all that, in a sandbox.
    pub access: Access,
}

impl Invocation {
    /// The path of the log.
    pub fn log(&self) -> PathBuf {
        self.stage.path.join(self.log)
    }
}

/// How an execution was kept apart from everything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// It was not.
    None,
    /// By namespaces of Linux.
    Namespaces,
}

/// How an execution ended, and what it used.
#[derive(Clone, Debug, PartialEq)]
pub struct Ended {
    /// How it ended.
    pub status: Status,
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
    /// How it was kept apart.
    pub isolation: Isolation,
    /// What to try if it failed for lack of what its sandbox does not show.
    pub lacking: Option<String>,
}

impl Ended {
    /// How long it ran, in seconds.
    pub fn seconds(&self) -> f64 {
        self.end.duration_since(self.start).as_secs_f64()
    }
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// By itself, with this status; zero is success.
    Exited(i32),
    /// By this signal.
    Killed(i32),
    /// By this signal, after so long a time that it was told to.
    TimedOut(i32, Duration),
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "it ended with exit status {code}"),
            Self::Killed(signal) => write!(f, "it was killed by signal {signal}"),
            Self::TimedOut(_, limit) => write!(f, "it was ended after {} s", limit.as_secs_f64()),
        }
    }
}

/// Why something did not run to its end.
#[derive(Debug, thiserror::Error)]
pub enum ExecuteError {
    /// It could not be started.
    #[error("its exec cannot be started")]
    Start {
        /// The file.
        exec: PathBuf,
        /// Why.
        source: io::Error,
        /// What to try if it needs what its sandbox does not show.
        lacking: Option<String>,
    },
    /// Its sandbox could not be made, or broke down.
    #[error("it cannot be isolated")]
    Isolate(#[source] SandboxError),
    /// A path does not lead to the file or directory any more that it led to when it was verified.
    #[error("{} was replaced while it was needed", .0.display())]
    Replaced(PathBuf),
    /// The file for what it prints could not be made.
    #[error("its log cannot be written")]
    Log {
        /// The file.
        log: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It was started and cannot be waited for.
    #[error("its exec cannot be waited for")]
    Wait {
        /// The file.
        exec: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
}

impl ExecuteError {
    /// What the user can do about it, if that is not plain.
    pub fn hint(&self) -> Option<&str> {
        let (exec, source) = match self {
            Self::Start { lacking: Some(lacking), .. } => return Some(lacking),
            Self::Start { exec, source, .. } => (exec, source),
            Self::Isolate(_) => {
                return Some("see what its file access grants, or use --no-isolate");
            }
            Self::Replaced(_) => {
                return Some(
                    "see what moves or replaces files of the storage, then run this again",
                );
            }
            _ => return None,
        };
        match source.kind() {
            io::ErrorKind::NotFound if exec.exists() => {
                Some("its first line names an interpreter that is not installed")
            }
            _ if source.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error()) => {
                Some("a script begins with a line such as #!/bin/sh")
            }
            io::ErrorKind::ArgumentListTooLong => Some("give the storage a shorter path"),
            _ => None,
        }
    }
}

/// Opens the file that takes what an execution prints: an empty one, or one that is yet to be made.
///
/// Another execution without isolation may have put a link or a FIFO in its place: neither is used.
fn open_log(stage: &OwnedFd, name: impl Arg) -> io::Result<File> {
    // To cut it would be a change of the file system, even where it is empty.
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let log = openat(stage, name, flags | OFlags::CLOEXEC, Mode::from_raw_mode(0o666))?;
    match FileType::from_raw_mode(fstat(&log)?.st_mode) {
        FileType::RegularFile => Ok(log.into()),
        _ => Err(io::Error::other("it is not a plain file")),
    }
}

/// Returns the last bytes of a plain file, at most so many.
fn tail(path: &Path, bytes: u64) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut file = File::from(open(path, flags, Mode::empty())?);
    let metadata = file.metadata()?;
    let mut end = Vec::new();
    if metadata.is_file() {
        file.seek(SeekFrom::Start(metadata.len().saturating_sub(bytes)))?;
        file.take(bytes).read_to_end(&mut end)?;
    }
    Ok(end)
}

/// Whatever can execute.
pub trait Executor: Sync {
    /// Executes one invocation and waits for its end.
    ///
    /// # Errors
    ///
    /// Fails if it could not be started or was interrupted. A non-zero exit status is no error.
    fn execute(&self, invocation: &Invocation) -> Result<Ended, ExecuteError>;

    /// Whether what is executed sees nothing but what it is given.
    fn isolates(&self) -> bool {
        false
    }

    /// Ends what executions have left behind, after the last one is over.
    fn finish(&self) {}

    /// Whether nothing is executed any more.
    fn is_interrupted(&self) -> bool {
        false
    }
}
