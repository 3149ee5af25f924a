//! One execution on this host: in a process group, in a sandbox, or over an allocation of several hosts or tasks.
//!
//! Each way waits until nothing of the execution runs any more, as far as it can know, and returns what the system reported.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use jiff::Timestamp;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, getpid, waitid};
use wait4::Wait4;

use super::process_groups::{Groups, Orphans, signal};
use crate::files::{TAIL, is_replaced, open_log, tail};
use crate::invocation::{self, DIRECTORY, Invocation, Span};
use crate::outcome::{
    Ended, ExecuteError, Failed, Isolation, SUSPENDED, Status, TaskStatuses, Usage,
};
use crate::sandbox::{Sandbox, SandboxError, lacking, refused, specify};
use crate::slurm::{Allocation, StatusFiles, is_of_allocation};
use ce_model::access::Rule;

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
pub(super) fn execute_unsandboxed(
    groups: &Groups,
    orphans: &Orphans,
    invocation: &Invocation,
    starter: &Starter,
) -> Result<FinishedProcess, ExecuteError> {
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
) -> Result<FinishedProcess, ExecuteError> {
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
) -> io::Result<FinishedProcess> {
    let pid = Pid::from_child(&child);
    let (waited, late) = groups.wait(pid, limit, || wait_for(pid));
    let killed = waited?.and_then(|status| status.terminating_signal());
    let never_executed = killed == Some(Signal::KILL.as_raw()) && never_executed(pid);
    // It is still a zombie, so its number, which is also that of its group, is not reused.
    signal(pid, Signal::KILL);
    let left_behind = orphans.wait_for_killed_group(pid);
    let used = child.wait4()?;
    Ok(FinishedProcess {
        code: used.status.code(),
        signal: used.status.signal(),
        late,
        user: used.rusage.utime,
        system: used.rusage.stime,
        peak: used.rusage.maxrss,
        left_behind,
        passed_on: false,
        never_executed,
        isolation: Isolation::None,
        lacking: Vec::new(),
        tasks: TaskStatuses::default(),
        launcher_error: None,
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
    let opened = match stage.open() {
        Err(error) if is_replaced(&error) => {
            return Err(ExecuteError::Replaced(stage.path.clone()));
        }
        opened => opened.map_err(wrong)?,
    };
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
        .envs([invocation::nesting_variable(&invocation.call)])
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
    env::join_paths(path)
        .map(Some)
        .map_err(|error| ExecuteError::Refused(format!("the storage cannot be in PATH: {error}")))
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

/// Executes, and waits until nothing of the execution runs any more.
pub(super) fn execute_sandboxed(
    groups: &Groups,
    sandbox: &Sandbox,
    invocation: &Invocation,
) -> Result<FinishedProcess, ExecuteError> {
    let broken = |error| {
        if groups.is_cancelled() { ExecuteError::Interrupted } else { ExecuteError::Isolate(error) }
    };
    let spec = specify(invocation).map_err(ExecuteError::Isolate)?;
    let mut launcher = sandbox.ask(invocation, &spec).map_err(broken)?;
    let leader = match launcher.begin() {
        Ok(leader) => leader,
        Err(error @ SandboxError::Lost(_)) => return Err(broken(error)),
        Err(error) => {
            sandbox.give_back(launcher);
            return Err(refused(&spec, invocation, error));
        }
    };
    let (waited, late) = groups.wait(leader, invocation.limit, || launcher.wait());
    let ended = waited.map_err(broken)?;
    // Its launcher has not reaped it yet.
    let never_executed = ended == -Signal::KILL.as_raw() && never_executed(leader);
    let used = launcher.end().map_err(broken)?;
    sandbox.give_back(launcher);
    let code = (ended >= 0).then_some(ended);
    let lacking = if code == Some(0) { Vec::new() } else { lacking(&spec) };
    Ok(FinishedProcess {
        code,
        signal: (ended < 0).then_some(-ended),
        late,
        user: used.user,
        system: used.system,
        peak: used.peak,
        left_behind: false,
        passed_on: false,
        never_executed,
        isolation: Isolation::Namespaces,
        lacking,
        tasks: TaskStatuses::default(),
        launcher_error: None,
    })
}

/// Executes, and waits until nothing of the execution runs any more, on any host, as far as Slurm knows.
pub(super) fn execute_spanning(
    groups: &Groups,
    orphans: &Orphans,
    allocation: &Allocation,
    span: &Span,
    invocation: &Invocation,
) -> Result<FinishedProcess, ExecuteError> {
    allocation.prepare();
    let launched = launcher(allocation, span, invocation)?;
    let (launcher, files) = launched.map_or((Vec::new(), None), |(it, files)| (it, Some(files)));
    let starter = Starter { launcher, hides_allocation: false };
    let ended = execute_unsandboxed(groups, orphans, invocation, &starter);
    // Also after an error: exec may have been executed.
    let is_over = allocation.end_steps(|| groups.is_killed());
    let statuses = files.map(|files| files.take());
    let mut over = ended?;
    over.left_behind |= !is_over;
    if let Some(statuses) = statuses {
        // These are of the launcher itself.
        (over.user, over.system, over.peak) = (Duration::ZERO, Duration::ZERO, 0);
        over.tasks = TaskStatuses(statuses);
        over.launcher_error = last_error(&invocation.log());
    }
    Ok(over)
}

/// The last error of the launcher in a log.
fn last_error(log: &Path) -> Option<String> {
    let text = String::from_utf8_lossy(&tail(log, TAIL).ok()?).into_owned();
    let mut errors =
        text.lines().filter(|line| line.starts_with("srun: ") && line.contains("error: "));
    errors.next_back().map(str::to_owned)
}

/// The words that start `exec` on every task, if it asks for that.
fn launcher(
    allocation: &Allocation,
    span: &Span,
    invocation: &Invocation,
) -> Result<Option<(Vec<OsString>, StatusFiles)>, ExecuteError> {
    if span.launcher.is_none() {
        return Ok(None);
    }
    match allocation.launcher(span, &invocation.work.path, &invocation.outbox.path) {
        Ok(launcher) => Ok(Some(launcher)),
        Err(error) => Err(ExecuteError::Refused(format!("it cannot be launched: {error}"))),
    }
}

/// The signals by which users, shells and schedulers ask programs to end: HUP, INT and TERM.
const ASKING: [i32; 3] = [1, 2, 15];

/// The flag of the kernel for a process that has executed nothing since it was forked: `PF_FORKNOEXEC`.
const FORKED: u32 = 0x40;

/// An ended execution, as the system reports it.
pub(super) struct FinishedProcess {
    /// Its exit status.
    pub(super) code: Option<i32>,
    /// The signal that ended it.
    pub(super) signal: Option<i32>,
    /// It took longer than its limit.
    pub(super) late: bool,
    pub(super) user: Duration,
    pub(super) system: Duration,
    /// In bytes.
    pub(super) peak: u64,
    pub(super) left_behind: bool,
    pub(super) passed_on: bool,
    /// Whether it was killed before it was another program than this one.
    never_executed: bool,
    pub(super) isolation: Isolation,
    pub(super) lacking: Vec<Rule>,
    /// How its tasks ended, if a launcher has started it.
    pub(super) tasks: TaskStatuses,
    /// What its launcher said last, if that is the reason why tasks did not end.
    pub(super) launcher_error: Option<String>,
}

impl FinishedProcess {
    /// The signal that ended it although this program has not sent it: one that asks programs to end.
    fn foreign_signal(&self) -> Option<i32> {
        self.signal.filter(|signal| !self.late && ASKING.contains(signal))
    }

    /// The exit status or signal.
    pub(super) fn status(&self) -> Status {
        match self.code {
            Some(code) => Status::Exited(code),
            None => Status::Killed(self.signal.unwrap_or_default()),
        }
    }

    /// The end of the execution, by its start and its time limit.
    pub(super) fn ended(self, start: Timestamp, limit: Option<Duration>) -> Ended {
        let is_launched = !self.tasks.0.is_empty();
        if !is_launched && let Some(signal) = self.foreign_signal() {
            let status = Status::Killed(signal);
            return Ended::Lost(format!("{status}, which compeval had not sent"));
        }
        if self.never_executed && !self.late {
            return Ended::Lost(format!("{} before it was started", self.status()));
        }
        let own = match self.tasks.failure() {
            _ if !is_launched => self.status(),
            None if self.tasks.are_done() => Status::Exited(0),
            // A launcher that was killed leaves tasks which may fail for that reason.
            Some(status) if self.late || self.signal.is_none() => status,
            _ if self.late => self.status(),
            _ => {
                let how = self.launcher_error.clone().unwrap_or_else(|| self.status().to_string());
                return Ended::Lost(format!("its launcher failed: {how}"));
            }
        };
        let status = match (own, limit) {
            (Status::Exited(0), _) => None,
            (_, Some(limit)) if self.late => {
                Some(Status::TimedOut(self.signal.unwrap_or(15), limit))
            }
            (status, _) => Some(status),
        };
        let Self { user, system, peak, left_behind, passed_on, isolation, lacking, tasks, .. } =
            self;
        let end = Timestamp::now();
        let usage =
            Usage { start, end, user, system, peak, left_behind, passed_on, isolation, tasks };
        match status {
            None => Ended::Done(usage),
            Some(Status::Exited(SUSPENDED)) if !is_launched => Ended::Suspended(usage),
            Some(status) => Ended::Failed(Failed { status, usage, lacking }),
        }
    }
}

/// Whether a process, which has ended and was not reaped, has never executed a program. False if that is not known.
fn never_executed(pid: Pid) -> bool {
    // In a mount of /proc that belongs to another process namespace all numbers are different.
    let own = getpid().as_raw_nonzero().to_string();
    let is_own = fs::read_link("/proc/self").is_ok_and(|to| to.as_os_str() == own.as_str());
    let stat = fs::read(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    is_own && stat.is_ok_and(|stat| is_only_forked(&String::from_utf8_lossy(&stat)))
}

/// Reads the flags of a process, which stand behind its name and six other fields.
fn is_only_forked(stat: &str) -> bool {
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
    let flags = fields.split(' ').nth(6).and_then(|flags| flags.parse::<u32>().ok());
    flags.is_some_and(|flags| flags & FORKED != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_that_has_run_out_before_exec_is_a_failure_and_a_foreign_kill_is_none() {
        let ended = |late: bool| {
            let over = FinishedProcess {
                code: None,
                signal: Some(9),
                late,
                user: Duration::ZERO,
                system: Duration::ZERO,
                peak: 0,
                left_behind: false,
                passed_on: false,
                never_executed: true,
                isolation: Isolation::None,
                lacking: Vec::new(),
                tasks: TaskStatuses::default(),
                launcher_error: None,
            };
            over.ended(Timestamp::now(), Some(Duration::from_secs(1)))
        };
        assert!(matches!(ended(true), Ended::Failed(Failed { status: Status::TimedOut(..), .. })));
        assert!(matches!(ended(false), Ended::Lost(_)));
    }

    #[test]
    fn flags_stand_behind_any_name() {
        assert!(is_only_forked("12 (a) b) Z 1 12 12 0 -1 4194372 99 0"));
        assert!(!is_only_forked("12 (ce) Z 1 12 12 0 -1 4194308 99 0"));
        assert!(!is_only_forked("") && !is_only_forked("12 (ce) Z 1"));
    }

    #[test]
    fn a_program_that_has_ended_was_executed() {
        let mut child = Command::new("true").spawn().unwrap();
        let pid = Pid::from_child(&child);
        waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
        assert!(!never_executed(pid));
        child.wait().unwrap();
    }
}
