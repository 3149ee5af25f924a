//! The process groups that are running, and how they are asked to end.

use std::collections::HashSet;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

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
    /// Asks all groups to end, and those that are yet to come.
    pub(super) fn cancel(&self) {
        self.end(ask_to_end, false);
    }

    /// Ends all groups; those that are yet to come are asked to end.
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

    /// Waits for the end of a process group, which may be asked to end meanwhile. Returns whether
    /// it exceeded a time limit.
    pub(super) fn wait<T>(
        &self,
        leader: Pid,
        limit: Option<Duration>,
        wait: impl FnOnce() -> T,
    ) -> (T, bool) {
        {
            let mut running = self.lock();
            running.leaders.insert(leader);
            if running.cancelled {
                ask_to_end(leader);
            }
        }
        let (waited, late) = match limit {
            None => (wait(), false),
            Some(limit) => wait_at_most(leader, limit, wait),
        };
        self.lock().leaders.remove(&leader);
        (waited, late)
    }

    fn lock(&self) -> MutexGuard<'_, LiveGroups> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits for a process group, and ends it after a time limit. Returns whether it did.
fn wait_at_most<T>(leader: Pid, limit: Duration, wait: impl FnOnce() -> T) -> (T, bool) {
    let (sender, ended) = channel::<()>();
    thread::scope(|scope| {
        let watch = scope.spawn(move || {
            let late = ended.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
            if late {
                ask_to_end(leader);
                if ended.recv_timeout(GRACE) == Err(RecvTimeoutError::Timeout) {
                    kill(leader);
                }
            }
            late
        });
        let waited = wait();
        drop(sender);
        (waited, watch.join().unwrap_or(false))
    })
}

fn ask_to_end(group: Pid) {
    signal(group, Signal::TERM);
    // One that is stopped cannot end.
    signal(group, Signal::CONT);
}

/// Ends a group, and its leader, who may have left it.
fn kill(leader: Pid) {
    signal(leader, Signal::KILL);
    let _gone = kill_process(leader, Signal::KILL);
}

/// Sends a signal to a group.
pub(super) fn signal(group: Pid, signal: Signal) {
    // A group that has just ended needs no signal.
    let _gone = kill_process_group(group, signal);
}
