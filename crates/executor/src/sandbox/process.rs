//! Processes of a launcher: forked, moved to new namespaces, reaped, and heard of.

use std::io;

use fork::{Fork, fork};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use rustix::thread::UnshareFlags;
use wait4::try_wait4_pid;

use super::mounts::{StepError, at};
use super::wire::{Reply, Used};

/// The reason for the end of a launcher, or of a process forked from one.
#[derive(Debug)]
pub(super) enum End {
    /// Something failed.
    Failed(StepError),
    /// It has done its work, or another process has reported the failure.
    Over,
}

impl From<StepError> for End {
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

/// Waits for a child and reaps it. Returns the resource usage of it and of the processes that it
/// has reaped.
pub(super) fn reap(child: Pid) -> Result<Used, StepError> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    waitid(WaitId::Pid(child), options).map_err(at("wait", ""))?;
    let ended =
        try_wait4_pid(child.as_raw_nonzero().get().unsigned_abs()).map_err(at("wait", ""))?;
    Ok(ended.map_or_else(Used::default, |ended| {
        let usage = ended.rusage;
        Used { user: usage.utime, system: usage.stime, peak: usage.maxrss }
    }))
}
