//! Execution without a sandbox: in a process group, which ends with `exec`.

use std::env::{self, JoinPathsError};
use std::ffi::OsString;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, waitid};
use wait4::Wait4;

use super::groups::{Groups, signal};
use super::orphans::Orphans;
use super::over::{Over, is_unborn};
use crate::ended::{ExecuteError, Isolation};
use crate::invocation::{DIRECTORY, Invocation};
use crate::log::open_log;
use crate::slurm::is_of_allocation;
use crate::tasks::TaskStatuses;
use crate::verified::is_replaced;
use crate::within;

/// Where programs are looked for if the environment has no `PATH`.
const PROGRAMS: &str = "/usr/local/bin:/usr/bin:/bin";

/// The number of attempts, a millisecond apart, to execute a file that another process is writing.
const BUSY: usize = 1000;

/// How `exec` is started beyond what its invocation says.
#[derive(Default)]
pub(super) struct Starter {
    /// The words before it: a program that executes the rest of its arguments.
    pub(super) launcher: Vec<OsString>,
    /// Whether it lacks the variables of the allocation that this process is in.
    pub(super) hides_allocation: bool,
}

/// Executes, and waits for the end of the process group.
pub(super) fn execute(
    groups: &Groups,
    orphans: &Orphans,
    invocation: &Invocation,
    starter: &Starter,
) -> Result<Over, ExecuteError> {
    let program = || invocation.program_words();
    if let Some(label) = invocation.access.root() {
        let reason = format!("its root is the input {}, and it is not isolated", label.name);
        return Err(ExecuteError::Refused(reason));
    }
    let mut command = command(invocation, starter)?;
    check_inputs(invocation)?;
    let child = spawn(&mut command).map_err(|source| ExecuteError::Start {
        program: program(),
        exec: invocation.executable(),
        source,
        lacking: Vec::new(),
    })?;
    let ended = wait(groups, orphans, child, invocation.limit);
    let over = ended.map_err(|source| ExecuteError::Wait { program: program(), source })?;
    check_inputs(invocation)?;
    Ok(over)
}

/// Runs a command in a process group of its own, and waits for the end of the group.
pub(super) fn run(
    groups: &Groups,
    orphans: &Orphans,
    command: &mut Command,
) -> Result<Over, ExecuteError> {
    let exec = PathBuf::from(command.get_program());
    let program = exec.display().to_string();
    let child = spawn(command.process_group(0)).map_err(|source| ExecuteError::Start {
        program: program.clone(),
        exec,
        source,
        lacking: Vec::new(),
    })?;
    wait(groups, orphans, child, None).map_err(|source| ExecuteError::Wait { program, source })
}

/// Waits for the end of a child and of its group.
fn wait(
    groups: &Groups,
    orphans: &Orphans,
    child: Child,
    limit: Option<Duration>,
) -> io::Result<Over> {
    let pid = Pid::from_child(&child);
    let (waited, late) = groups.wait(pid, limit, || wait_for(pid));
    let killed = waited?.and_then(|status| status.terminating_signal());
    let is_unborn = killed == Some(Signal::KILL.as_raw()) && is_unborn(pid);
    // It is still a zombie, so its number, which is also that of its group, is not reused.
    signal(pid, Signal::KILL);
    let left_behind = orphans.outlive(pid);
    let used = child.wait4()?;
    Ok(Over {
        code: used.status.code(),
        signal: used.status.signal(),
        late,
        user: used.rusage.utime,
        system: used.rusage.stime,
        peak: used.rusage.maxrss,
        left_behind,
        passed_on: false,
        is_unborn,
        isolation: Isolation::None,
        lacking: Vec::new(),
        tasks: TaskStatuses::default(),
        said: None,
    })
}

/// Waits until a process has ended, and leaves it a zombie. Returns how it ended.
fn wait_for(pid: Pid) -> io::Result<Option<WaitIdStatus>> {
    loop {
        match waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            Err(Errno::INTR) => {}
            other => return Ok(other?),
        }
    }
}

/// Checks that the computation and its inputs are where they were verified: `exec` opens them by
/// their paths.
fn check_inputs(invocation: &Invocation) -> Result<(), ExecuteError> {
    let inputs = invocation.inputs.iter().map(|input| &input.file);
    for verified in std::iter::once(&invocation.tree).chain(inputs) {
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

fn command(invocation: &Invocation, starter: &Starter) -> Result<Command, ExecuteError> {
    let Invocation { inputs, outputs, work, stage, .. } = invocation;
    let wrong = |source| ExecuteError::Log { log: invocation.log(), source };
    let opened = stage.open().map_err(|error| match is_replaced(&error) {
        true => ExecuteError::Replaced(stage.path.clone()),
        false => wrong(error),
    })?;
    let log = open_log(&opened, &invocation.log).map_err(wrong)?;
    let mut words = starter.launcher.iter().cloned().chain([invocation.executable().into()]);
    let mut command = Command::new(words.next().unwrap_or_default());
    if starter.hides_allocation {
        let variables = env::vars_os().map(|(name, _)| name);
        variables.filter(|name| is_of_allocation(name)).for_each(|name| {
            command.env_remove(name);
        });
    }
    command
        .args(words)
        .args(inputs.iter().map(|input| &input.file.path))
        .args(outputs)
        .current_dir(&work.path)
        .stdin(Stdio::null())
        .stdout(log.try_clone().map_err(wrong)?)
        .stderr(log)
        .process_group(0)
        .envs([within::variable(&invocation.call)])
        // It may be that of a call which has started this run.
        .env_remove(DIRECTORY)
        .envs(invocation.directory_variable())
        .envs(invocation.gpu_variable());
    if let Some(path) = path(invocation)? {
        command.env("PATH", path);
    }
    Ok(command)
}

/// `PATH` with the programs of the inputs that `access` names, if there are any.
fn path(invocation: &Invocation) -> Result<Option<OsString>, ExecuteError> {
    let inputs = invocation.access.path().filter_map(|label| invocation.inputs.get(label.number));
    let mut path: Vec<PathBuf> = inputs.map(|input| input.file.path.join("bin")).collect();
    if path.is_empty() {
        return Ok(None);
    }
    path.extend(env::split_paths(&env::var_os("PATH").unwrap_or_else(|| PROGRAMS.into())));
    let refused = |error: JoinPathsError| {
        ExecuteError::Refused(format!("the storage cannot be in PATH: {error}"))
    };
    env::join_paths(path).map(Some).map_err(refused)
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
