//! Processes of a launcher: forked, moved to new namespaces, reaped, and heard of; and errors that say which step failed.

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use fork::{Fork, fork};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use rustix::thread::UnshareFlags;
use wait4::try_wait4_pid;

use super::protocol::{ProcessUsage, Reply};

/// A failed step: the operation and the path.
#[derive(Debug)]
pub(super) struct StepError {
    pub(super) doing: &'static str,
    pub(super) path: PathBuf,
    pub(super) error: io::Error,
}

impl StepError {
    /// The same, as a message.
    pub(super) fn reply(self) -> Reply {
        let errno = self.error.raw_os_error().unwrap_or_default();
        Reply::Failed(self.doing.to_owned(), self.path, errno)
    }
}

/// Adds the operation and the path to an error.
pub(super) fn at<E: Into<io::Error>>(
    doing: &'static str,
    path: impl Into<PathBuf>,
) -> impl FnOnce(E) -> StepError {
    move |error| StepError { doing, path: path.into(), error: error.into() }
}

/// The reason for the end of a launcher, or of a process forked from one.
#[derive(Debug)]
pub(super) enum ProcessEnd {
    /// Something failed.
    Failed(StepError),
    /// It has done its work, or another process has reported the failure.
    Over,
}

impl From<StepError> for ProcessEnd {
    fn from(failed: StepError) -> Self {
        Self::Failed(failed)
    }
}

/// Sends a message to the process that started the launcher. What was forked uses the same pipe: a frame is one write.
pub(super) fn send(reply: &Reply) {
    // If this fails, the reader has ended.
    let _gone = rustix::io::write(io::stdout(), &reply.frame());
}

/// Sends what failed.
pub(super) fn send_failed(failed: StepError) {
    send(&failed.reply());
}

/// Leaves for new namespaces.
pub(super) fn unshare(flags: UnshareFlags) -> Result<(), StepError> {
    #[expect(deprecated, reason = "only its flag FILES is unsafe, and never used here")]
    rustix::thread::unshare(flags).map_err(at("create namespaces", ""))
}

/// Forks; returns the new process, and `None` in it.
pub(super) fn forked() -> Result<Option<Pid>, StepError> {
    match fork().map_err(at("fork", ""))? {
        Fork::Parent(pid) => Ok(Pid::from_raw(pid)),
        Fork::Child => Ok(None),
    }
}

/// Makes a pipe: its reader and its writer.
pub(super) fn pipe() -> Result<(OwnedFd, OwnedFd), StepError> {
    pipe_with(PipeFlags::CLOEXEC).map_err(at("make", "a pipe"))
}

/// Waits for a child and reaps it. Returns the resource usage of it and of the processes that it
/// has reaped.
pub(super) fn reap(child: Pid) -> Result<ProcessUsage, StepError> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    waitid(WaitId::Pid(child), options).map_err(at("wait", ""))?;
    let ended =
        try_wait4_pid(child.as_raw_nonzero().get().unsigned_abs()).map_err(at("wait", ""))?;
    Ok(ended.map_or_else(ProcessUsage::default, |ended| {
        let usage = ended.rusage;
        ProcessUsage { user: usage.utime, system: usage.stime, peak: usage.maxrss }
    }))
}
