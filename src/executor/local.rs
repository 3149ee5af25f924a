//! Processes of this host.
//!
//! Each `exec` leads a process group of its own. Whatever of the group is left when `exec` ends is
//! killed, so that nobody goes on writing to what is then published.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use wait4::{ResUse, Wait4};

use super::{Ended, ExecuteError, Executor, Invocation, Status};

/// How often a file that is just being written elsewhere is tried again.
const BUSY: usize = 20;

/// Executes processes of this host, until it is interrupted.
#[derive(Debug, Default)]
pub struct Local {
    groups: Mutex<Groups>,
}

/// The process groups that are running.
#[derive(Debug, Default)]
struct Groups {
    running: HashSet<Pid>,
    interrupted: bool,
}

impl Local {
    /// Starts nothing any more, and asks what is running to end.
    pub fn interrupt(&self) {
        let mut groups = self.groups();
        groups.interrupted = true;
        groups.signal(Signal::TERM);
    }

    /// Starts nothing any more, and ends what is running.
    pub fn kill(&self) {
        let mut groups = self.groups();
        groups.interrupted = true;
        groups.signal(Signal::KILL);
    }

    fn groups(&self) -> MutexGuard<'_, Groups> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self, child: Child) -> io::Result<ResUse> {
        let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else {
            return child.wait4();
        };
        {
            let mut groups = self.groups();
            groups.running.insert(pid);
            if groups.interrupted {
                groups.signal(Signal::TERM);
            }
        }
        let waited = loop {
            // It stays a zombie for now: its number, and so its group's, is nobody else's.
            match waitid(
                WaitId::Pid(pid),
                WaitIdOptions::EXITED | WaitIdOptions::NOWAIT,
            ) {
                Err(rustix::io::Errno::INTR) => {}
                other => break other,
            }
        };
        self.groups().running.remove(&pid);
        waited?;
        let _gone = kill_process_group(pid, Signal::KILL);
        child.wait4()
    }
}

impl Groups {
    fn signal(&self, signal: Signal) {
        for group in &self.running {
            // A group that has just ended needs no signal.
            let _gone = kill_process_group(*group, signal);
        }
    }
}

impl Executor for Local {
    fn execute(&self, invocation: &Invocation) -> Result<Ended, ExecuteError> {
        if self.groups().interrupted {
            return Err(ExecuteError::Interrupted);
        }
        let mut command = command(invocation)?;
        let start = Timestamp::now();
        let exec = || invocation.exec.clone();
        let child = spawn(&mut command).map_err(|source| ExecuteError::Start {
            exec: exec(),
            source,
        })?;
        let used = self.wait(child).map_err(|source| ExecuteError::Wait {
            exec: exec(),
            source,
        })?;
        let status = match (used.status.code(), used.status.signal()) {
            (Some(code), _) => Status::Exited(code),
            (None, signal) => Status::Killed(signal.unwrap_or_default()),
        };
        if status != Status::Exited(0) && self.groups().interrupted {
            return Err(ExecuteError::Interrupted);
        }
        Ok(Ended {
            status,
            start,
            end: Timestamp::now(),
            user: used.rusage.utime,
            system: used.rusage.stime,
            peak: used.rusage.maxrss,
        })
    }
}

fn command(invocation: &Invocation) -> Result<Command, ExecuteError> {
    let wrong = |source| ExecuteError::Log {
        log: invocation.log.clone(),
        source,
    };
    let log = File::create_new(&invocation.log).map_err(wrong)?;
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
                std::thread::yield_now();
            }
            other => return other,
        }
    }
    command.spawn()
}
