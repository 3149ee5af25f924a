//! Processes of this host.
//!
//! Each `exec` leads a process group of its own. Whatever of the group is left when `exec` ends is
//! killed, so that nobody goes on writing to what is then published. Who has left the group is told
//! of (see `orphans`), and killed when nothing is executed any more. With a sandbox, nothing at all
//! is left.

use std::collections::HashSet;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use jiff::Timestamp;
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid,
};
use wait4::Wait4;

use super::orphans::Orphans;
use super::sandbox::{self, Sandbox, SandboxError};
use super::verified::is_replaced;
use super::{Ended, ExecuteError, Executor, Invocation, Isolation, Status, open_log};

/// How often, a millisecond apart, a file that is just being written elsewhere is tried again.
const BUSY: usize = 1000;

/// How long a process that was asked to end has to do so.
pub const GRACE: Duration = Duration::from_secs(5);

/// Executes processes of this host, until it is interrupted.
#[derive(Debug, Default)]
pub struct Local {
    /// How long an execution may take.
    limit: Option<Duration>,
    /// What keeps executions apart, if that is wanted.
    sandbox: Option<Sandbox>,
    groups: Mutex<Groups>,
    orphans: Orphans,
}

/// The process groups that are running.
#[derive(Debug, Default)]
struct Groups {
    running: HashSet<Pid>,
    interrupted: bool,
}

/// How an execution is over.
struct Over {
    /// Its exit status.
    code: Option<i32>,
    /// The signal that ended it.
    signal: Option<i32>,
    /// It took too long.
    late: bool,
    user: Duration,
    system: Duration,
    /// In bytes.
    peak: u64,
    left_behind: bool,
    isolation: Isolation,
    lacking: Option<String>,
}

impl Local {
    /// Ends executions that take longer than a limit, if there is one.
    pub fn with_limit(limit: Option<Duration>) -> Self {
        Self { limit, ..Self::default() }
    }

    /// Isolates executions, if this host allows it.
    #[must_use]
    pub fn isolated(self, sandbox: Sandbox) -> Self {
        Self { sandbox: Some(sandbox), ..self }
    }

    /// Tells why nothing is isolated although it was to be, if that has turned out.
    pub fn exposed(&self) -> Option<&SandboxError> {
        self.sandbox.as_ref()?.refused()
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
        groups.running.iter().for_each(|group| kill(*group));
    }

    /// The sandbox, if one is wanted and this host allows it.
    fn possible(&self) -> Option<&Sandbox> {
        self.sandbox.as_ref().filter(|sandbox| sandbox.is_possible())
    }

    /// Runs a command that the user gave, in a process group of its own, and waits for its end. It
    /// is interrupted like executions; it is not isolated, and no limit is set to it.
    ///
    /// # Errors
    ///
    /// Fails if it could not be started or waited for.
    pub fn run(&self, command: &mut Command) -> Result<Status, ExecuteError> {
        if self.is_interrupted() {
            return Err(ExecuteError::Interrupted);
        }
        let exec = PathBuf::from(command.get_program());
        let start = |source| ExecuteError::Start { exec: exec.clone(), source, lacking: None };
        let wait = |source| ExecuteError::Wait { exec: exec.clone(), source };
        let run = || {
            let child = spawn(command.process_group(0)).map_err(start)?;
            self.wait(child, None).map_err(wait)
        };
        // Whatever is a child of the main thread is an orphan.
        let over = thread::scope(|scope| scope.spawn(run).join());
        let over = over.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok(match over.code {
            Some(code) => Status::Exited(code),
            None => Status::Killed(over.signal.unwrap_or_default()),
        })
    }

    fn groups(&self) -> MutexGuard<'_, Groups> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the end of what a process leads, which may be asked to end meanwhile; tells whether
    /// it took too long.
    fn attend<T>(
        &self,
        leader: Pid,
        limit: Option<Duration>,
        wait: impl FnOnce() -> T,
    ) -> (T, bool) {
        {
            let mut groups = self.groups();
            groups.running.insert(leader);
            if groups.interrupted {
                ask_to_end(leader);
            }
        }
        let (waited, late) = match limit {
            None => (wait(), false),
            Some(limit) => wait_at_most(leader, limit, wait),
        };
        self.groups().running.remove(&leader);
        (waited, late)
    }

    /// Executes without a sandbox.
    fn execute_here(&self, invocation: &Invocation) -> Result<Over, ExecuteError> {
        let exec = || invocation.tree.path.join("exec");
        let mut command = command(invocation)?;
        check_inputs(invocation)?;
        let child = spawn(&mut command).map_err(|source| ExecuteError::Start {
            exec: exec(),
            source,
            lacking: None,
        })?;
        let ended = self.wait(child, self.limit);
        let over = ended.map_err(|source| ExecuteError::Wait { exec: exec(), source })?;
        check_inputs(invocation)?;
        Ok(over)
    }

    /// Waits for the end of a child and of its group.
    fn wait(&self, child: Child, limit: Option<Duration>) -> io::Result<Over> {
        let pid = Pid::from_child(&child);
        let (waited, late) = self.attend(pid, limit, || wait_for(pid));
        waited?;
        // It is a zombie still: its number, and so its group's, is nobody else's.
        signal(pid, Signal::KILL);
        let left_behind = self.orphans.outlive(pid);
        let used = child.wait4()?;
        Ok(Over {
            code: used.status.code(),
            signal: used.status.signal(),
            late,
            user: used.rusage.utime,
            system: used.rusage.stime,
            peak: used.rusage.maxrss,
            left_behind,
            isolation: Isolation::None,
            lacking: None,
        })
    }

    /// Executes in a sandbox.
    fn execute_in(&self, room: &Sandbox, invocation: &Invocation) -> Result<Over, ExecuteError> {
        let broken = |error| {
            if self.is_interrupted() {
                ExecuteError::Interrupted
            } else {
                ExecuteError::Isolate(error)
            }
        };
        let cell = sandbox::cell(invocation).map_err(ExecuteError::Isolate)?;
        let mut launcher = room.take(invocation).map_err(broken)?;
        let leader = match launcher.begin(&cell) {
            Ok(leader) => leader,
            Err(error @ SandboxError::Lost(_)) => return Err(broken(error)),
            Err(error) => {
                room.give_back(launcher);
                return Err(sandbox::refused(&cell, invocation, error));
            }
        };
        let (waited, late) = self.attend(leader, self.limit, || launcher.wait());
        let ended = waited.map_err(broken)?;
        let used = launcher.end().map_err(broken)?;
        room.give_back(launcher);
        let code = (ended >= 0).then_some(ended);
        let lacking = if code == Some(0) { None } else { sandbox::lacking(&cell) };
        Ok(Over {
            code,
            signal: (ended < 0).then_some(-ended),
            late,
            user: used.user,
            system: used.system,
            peak: used.peak,
            left_behind: false,
            isolation: Isolation::Namespaces,
            lacking,
        })
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

/// Waits for what a process leads, and makes it end after a time; tells whether it had to.
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

fn signal(group: Pid, signal: Signal) {
    // A group that has just ended needs no signal.
    let _gone = kill_process_group(group, signal);
}

impl Executor for Local {
    fn execute(&self, invocation: &Invocation) -> Result<Ended, ExecuteError> {
        if self.is_interrupted() {
            return Err(ExecuteError::Interrupted);
        }
        let start = Timestamp::now();
        let over = match self.possible() {
            Some(sandbox) => self.execute_in(sandbox, invocation),
            None => self.execute_here(invocation),
        };
        let Over { code, signal, late, user, system, peak, left_behind, isolation, lacking } =
            over?;
        let status = match (code, self.limit) {
            (Some(0), _) => Status::Exited(0),
            (_, Some(limit)) if late => Status::TimedOut(signal.unwrap_or(15), limit),
            (Some(code), _) => Status::Exited(code),
            (None, _) => Status::Killed(signal.unwrap_or_default()),
        };
        if status != Status::Exited(0) && self.is_interrupted() {
            return Err(ExecuteError::Interrupted);
        }
        let end = Timestamp::now();
        Ok(Ended { status, start, end, user, system, peak, left_behind, isolation, lacking })
    }

    fn isolates(&self) -> bool {
        self.possible().is_some()
    }

    fn finish(&self) {
        // Threads that have ended leave their children, and so launchers, to the main thread.
        self.sandbox.iter().for_each(Sandbox::dismiss);
        self.orphans.end();
    }

    fn is_interrupted(&self) -> bool {
        self.groups().interrupted
    }
}

/// Checks that the computation and its inputs are where they were verified: `exec` opens them by
/// their paths.
fn check_inputs(invocation: &Invocation) -> Result<(), ExecuteError> {
    let Invocation { tree, inputs, .. } = invocation;
    for verified in std::iter::once(tree).chain(inputs) {
        match verified.check() {
            Err(error) if is_replaced(&error) => {
                return Err(ExecuteError::Replaced(verified.path.clone()));
            }
            // If the path cannot be used, exec says so.
            _ => {}
        }
    }
    Ok(())
}

fn command(invocation: &Invocation) -> Result<Command, ExecuteError> {
    let Invocation { tree, inputs, outputs, work, stage, .. } = invocation;
    let wrong = |source| ExecuteError::Log { log: invocation.log(), source };
    let opened = stage.open_at(&stage.path).map_err(|error| match is_replaced(&error) {
        true => ExecuteError::Replaced(stage.path.clone()),
        false => wrong(error),
    })?;
    let log = open_log(&opened, invocation.log).map_err(wrong)?;
    let mut command = Command::new(tree.path.join("exec"));
    command
        .args(inputs.iter().map(|input| &input.path))
        .args(outputs)
        .current_dir(&work.path)
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
                thread::sleep(Duration::from_millis(1));
            }
            other => return other,
        }
    }
    command.spawn()
}
