//! Processes of this host.
//!
//! Each `exec` leads a process group of its own. Whatever of the group is left when `exec` ends is
//! killed, so that nobody goes on writing to what is then published. Who has left the group is told
//! of (see `orphans`), and killed when nothing is executed any more.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use jiff::Timestamp;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use wait4::{ResUse, Wait4};

use super::orphans::Orphans;
use super::{Ended, ExecuteError, Executor, Invocation, Status};

/// How often a file that is just being written elsewhere is tried again.
const BUSY: usize = 20;

/// How long a process that was asked to end has to do so.
pub const GRACE: Duration = Duration::from_secs(5);

/// Executes processes of this host, until it is interrupted.
#[derive(Debug, Default)]
pub struct Local {
    /// How long an execution may take.
    pub limit: Option<Duration>,
    groups: Mutex<Groups>,
    orphans: Orphans,
}

/// The process groups that are running.
#[derive(Debug, Default)]
struct Groups {
    running: HashSet<Pid>,
    interrupted: bool,
}

/// How a child has ended.
struct Waited {
    used: ResUse,
    /// It took too long.
    late: bool,
    left_behind: bool,
}

impl Local {
    /// Ends executions that take longer than a limit, if there is one.
    pub fn with_limit(limit: Option<Duration>) -> Self {
        Self { limit, ..Self::default() }
    }

    /// Starts nothing any more, and asks what is running to end.
    pub fn interrupt(&self) {
        let mut groups = self.groups();
        groups.interrupted = true;
        groups.running.iter().for_each(|group| ask_to_end(*group));
    }

    /// Starts nothing any more, and ends what is running.
    pub fn kill(&self) {
        let mut groups = self.groups();
        groups.interrupted = true;
        groups.running.iter().for_each(|group| signal(*group, Signal::KILL));
    }

    fn groups(&self) -> MutexGuard<'_, Groups> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the end of a child and of its group.
    fn wait(&self, child: Child) -> io::Result<Waited> {
        let pid = Pid::from_child(&child);
        {
            let mut groups = self.groups();
            groups.running.insert(pid);
            if groups.interrupted {
                ask_to_end(pid);
            }
        }
        let (waited, late) = match self.limit {
            None => (wait_for(pid), false),
            Some(limit) => wait_at_most(pid, limit),
        };
        self.groups().running.remove(&pid);
        waited?;
        // It is a zombie still: its number, and so its group's, is nobody else's.
        signal(pid, Signal::KILL);
        let left_behind = self.orphans.outlive(pid);
        Ok(Waited { used: child.wait4()?, late, left_behind })
    }
}

/// Waits until a process has ended, and leaves it a zombie.
fn wait_for(pid: Pid) -> io::Result<()> {
    loop {
        match waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            Err(Errno::INTR) => {}
            other => return Ok(other.map(drop)?),
        }
    }
}

/// Waits until a process has ended, and makes it end after a time; tells whether it had to.
fn wait_at_most(pid: Pid, limit: Duration) -> (io::Result<()>, bool) {
    let (sender, ended) = channel::<()>();
    thread::scope(|scope| {
        let watch = scope.spawn(move || {
            let late = ended.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
            if late {
                ask_to_end(pid);
                if ended.recv_timeout(GRACE) == Err(RecvTimeoutError::Timeout) {
                    signal(pid, Signal::KILL);
                }
            }
            late
        });
        let waited = wait_for(pid);
        drop(sender);
        (waited, watch.join().unwrap_or(false))
    })
}

fn ask_to_end(group: Pid) {
    signal(group, Signal::TERM);
    // One that is stopped cannot end.
    signal(group, Signal::CONT);
}

fn signal(group: Pid, signal: Signal) {
    // A group that has just ended needs no signal.
    let _gone = kill_process_group(group, signal);
}

impl Executor for Local {
    fn execute(&self, invocation: &Invocation) -> Result<Ended, ExecuteError> {
        if self.is_interrupted() {
            return Err(ExecuteError::Interrupted);
        }
        let mut command = command(invocation)?;
        let start = Timestamp::now();
        let exec = || invocation.exec.clone();
        let child =
            spawn(&mut command).map_err(|source| ExecuteError::Start { exec: exec(), source })?;
        let Waited { used, late, left_behind } =
            self.wait(child).map_err(|source| ExecuteError::Wait { exec: exec(), source })?;
        let status = match (used.status.code(), used.status.signal(), self.limit) {
            (Some(0), _, _) => Status::Exited(0),
            (_, signal, Some(limit)) if late => Status::TimedOut(signal.unwrap_or(15), limit),
            (Some(code), _, _) => Status::Exited(code),
            (None, signal, _) => Status::Killed(signal.unwrap_or_default()),
        };
        if status != Status::Exited(0) && self.is_interrupted() {
            return Err(ExecuteError::Interrupted);
        }
        Ok(Ended {
            status,
            start,
            end: Timestamp::now(),
            user: used.rusage.utime,
            system: used.rusage.stime,
            peak: used.rusage.maxrss,
            left_behind,
        })
    }

    fn finish(&self) {
        self.orphans.end();
    }

    fn is_interrupted(&self) -> bool {
        self.groups().interrupted
    }
}

fn command(invocation: &Invocation) -> Result<Command, ExecuteError> {
    let wrong = |source| ExecuteError::Log { log: invocation.log.clone(), source };
    let log = File::create(&invocation.log).map_err(wrong)?;
    let mut command = Command::new(&invocation.exec);
    command
        .args(&invocation.inputs)
        .args(&invocation.outputs)
        .current_dir(&invocation.directory)
        .stdin(Stdio::null())
        .stdout(log.try_clone().map_err(wrong)?)
        .stderr(log)
        .process_group(0);
    Ok(command)
}

/// Starts a process. A file that another thread's child still holds open for writing is busy for
/// the blink of an eye; that passes.
fn spawn(command: &mut Command) -> io::Result<Child> {
    for _ in 0..BUSY {
        match command.spawn() {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => {
                thread::yield_now();
            }
            other => return other,
        }
    }
    command.spawn()
}
