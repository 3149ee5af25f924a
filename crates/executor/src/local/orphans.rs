//! Processes that outlive the execution that started them.
//!
//! A process that has left its group cannot be killed with it. But the kernel makes it a child of
//! the nearest ancestor that asks for orphans, which is this program, when its parent ends. The
//! main thread starts no process itself, so its list of children shows whether any process has
//! escaped.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, getpgid, getpid, kill_process, set_child_subreaper, waitid,
};

use super::groups::GRACE;

/// The interval at which it is checked whether killed orphans are gone.
const POLL: Duration = Duration::from_millis(1);

/// The orphans of this process.
#[derive(Debug)]
pub(super) struct Orphans {
    /// The kernel's list of orphans. Its lock is needed to reap one: a number in the list remains
    /// that of an orphan until then.
    ///
    /// `None` if the kernel has no such list, or if there were children before, which cannot be
    /// distinguished from orphans.
    list: Option<Mutex<File>>,
}

impl Default for Orphans {
    /// Makes this process the parent of its orphans from now on.
    fn default() -> Self {
        let list = children().ok().filter(|list| {
            numbers(list).is_ok_and(|pids| pids.is_empty())
                && set_child_subreaper(Some(getpid())).is_ok()
        });
        Self { list: list.map(Mutex::new) }
    }
}

impl Orphans {
    /// Waits until the rest of a killed group has ended. Returns whether other processes may be
    /// left.
    ///
    /// The group's leader must have ended and still be a zombie, so that the number of the group is
    /// not reused and the leader's children are orphans.
    pub(super) fn outlive(&self, group: Pid) -> bool {
        while let Some(left) = self.left() {
            if !left.iter().any(|pid| getpgid(Some(*pid)) == Ok(group)) {
                return !left.is_empty();
            }
            // A killed process takes a moment to go.
            thread::yield_now();
        }
        true
    }

    /// Kills everybody who is left, and their orphans.
    pub(super) fn end(&self) {
        let begin = Instant::now();
        while let Some(left) = self.left().filter(|left| !left.is_empty()) {
            for pid in left {
                // Nobody reaps at the same time, so the number is still its own.
                let _gone = kill_process(pid, Signal::KILL);
            }
            if begin.elapsed() > GRACE {
                return;
            }
            thread::sleep(POLL);
        }
    }

    /// Reaps ended orphans. Returns the others, or `None` if they are unknown.
    fn left(&self) -> Option<Vec<Pid>> {
        let list = self.list.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
        let mut left = numbers(&list).ok()?;
        let reaped = |pid| waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
        left.retain(|pid| !matches!(reaped(*pid), Ok(Some(_))));
        Some(left)
    }
}

/// The kernel's list of the children of this process's main thread.
fn children() -> io::Result<File> {
    let own = getpid().as_raw_nonzero().to_string();
    // In a mount of /proc that belongs to another process namespace all numbers are different.
    if fs::read_link("/proc/self")?.as_os_str() != own.as_str() {
        return Err(io::ErrorKind::Unsupported.into());
    }
    File::open(format!("/proc/self/task/{own}/children"))
}

/// Reads the numbers in a list of processes.
fn numbers(list: &File) -> io::Result<Vec<Pid>> {
    let mut text = Vec::new();
    let mut piece = [0; 256];
    loop {
        match list.read_at(&mut piece, text.len() as u64) {
            Ok(0) => break,
            Ok(count) => text.extend_from_slice(&piece[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let pid = |word: &str| word.parse().ok().and_then(Pid::from_raw);
    let pids = String::from_utf8_lossy(&text).split_whitespace().map(pid).collect::<Option<_>>();
    pids.ok_or_else(|| io::ErrorKind::InvalidData.into())
}
