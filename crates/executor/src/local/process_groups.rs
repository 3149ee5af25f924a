//! Process groups that are running, how they are asked to end, and the processes that escape them.
//!
//! A process that has left its group cannot be killed with it. But the kernel makes it a child of
//! the nearest ancestor that asks for orphans, which is this program, when its parent ends. The
//! main thread starts no process itself, so its list of children shows whether any process has
//! escaped.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, getpgid, getpid, kill_process, kill_process_group,
    set_child_subreaper, waitid,
};

/// The time that a process has to end after it was asked to.
pub const GRACE: Duration = Duration::from_secs(5);

/// The process groups that are running, by their leaders.
#[derive(Debug, Default)]
pub(super) struct Groups(Mutex<LiveGroups>);

#[derive(Debug, Default)]
struct LiveGroups {
    leaders: HashSet<Pid>,
    cancelled: bool,
    killed: bool,
}

impl Groups {
    /// Asks all groups to end, also later ones.
    pub(super) fn cancel(&self) {
        self.end(ask_to_end, false);
    }

    /// Ends all groups; later ones are asked to end.
    pub(super) fn kill(&self) {
        self.end(kill, true);
    }

    fn end(&self, end: fn(Pid), is_kill: bool) {
        let mut running = self.lock();
        running.cancelled = true;
        running.killed |= is_kill;
        running.leaders.iter().for_each(|leader| end(*leader));
    }

    /// Whether groups are asked to end.
    pub(super) fn is_cancelled(&self) -> bool {
        self.lock().cancelled
    }

    /// Whether groups were killed.
    pub(super) fn is_killed(&self) -> bool {
        self.lock().killed
    }

    /// Waits for the end of a process group, which may be asked to end meanwhile.
    pub(super) fn wait<T>(&self, leader: Pid, wait: impl FnOnce() -> T) -> T {
        {
            let mut running = self.lock();
            running.leaders.insert(leader);
            if running.cancelled {
                ask_to_end(leader);
            }
        }
        let waited = wait();
        self.lock().leaders.remove(&leader);
        waited
    }

    fn lock(&self) -> MutexGuard<'_, LiveGroups> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) fn ask_to_end(group: Pid) {
    signal(group, Signal::TERM);
    // One that is stopped cannot end.
    signal(group, Signal::CONT);
}

/// Ends a group, and its leader, who may have left it.
pub(super) fn kill(leader: Pid) {
    signal(leader, Signal::KILL);
    let _gone = kill_process(leader, Signal::KILL);
}

/// Sends a signal to a group.
pub(super) fn signal(group: Pid, signal: Signal) {
    // A group that has just ended needs no signal.
    let _gone = kill_process_group(group, signal);
}

/// The interval at which it is checked whether killed orphans are gone.
const POLL: Duration = Duration::from_millis(1);

/// The orphans of this process.
#[derive(Debug)]
pub(super) struct Orphans {
    /// The kernel's list of orphans. Its lock is needed to reap one: until then, a number in the list remains an
    /// orphan's.
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
    pub(super) fn wait_for_killed_group(&self, group: Pid) -> bool {
        while let Some(left) = self.reap() {
            if !left.iter().any(|pid| getpgid(Some(*pid)) == Ok(group)) {
                return !left.is_empty();
            }
            // A killed process takes a moment to go.
            thread::yield_now();
        }
        true
    }

    /// Kills all remaining orphans, and their orphans.
    pub(super) fn kill_all(&self) {
        let begin = Instant::now();
        while let Some(left) = self.reap().filter(|left| !left.is_empty()) {
            for pid in left {
                // No other thread reaps at the same time, so the number is still its own.
                let _gone = kill_process(pid, Signal::KILL);
            }
            if begin.elapsed() > GRACE {
                return;
            }
            thread::sleep(POLL);
        }
    }

    /// Reaps ended orphans. Returns the others, or `None` if they are unknown.
    fn reap(&self) -> Option<Vec<Pid>> {
        let list = self.list.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
        let mut left = numbers(&list).ok()?;
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
        left.retain(|pid| !matches!(waitid(WaitId::Pid(*pid), options), Ok(Some(_))));
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
    let text = String::from_utf8_lossy(&text);
    let pids = text.split_whitespace().map(|word| word.parse().ok().and_then(Pid::from_raw));
    pids.collect::<Option<_>>().ok_or_else(|| io::ErrorKind::InvalidData.into())
}
