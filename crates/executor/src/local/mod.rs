//! Processes of this host.
//!
//! Each `exec` leads its own process group. The rest of the group is killed when `exec` ends, so
//! that published outputs are not written any more. Processes that have left the group are reported
//! (see `process_groups`), and killed at the end. With a sandbox, no process is left.
//!
//! The thread that submits an invocation waits for its process. Handing it to a thread of the executor
//! would wake two threads for each call, one of them after the process has ended.

mod control_groups;
mod finished_process;
mod host_resources;
mod host_samples;
mod host_watch;
mod limits;
mod memory_use;
mod pinning;
mod process_groups;

pub(crate) use self::host_samples::{HostSample, usable_processors};
pub use self::memory_use::own_peak_memory;
pub use self::process_groups::GRACE;

use std::ffi::{OsStr, OsString};
use std::num::NonZeroUsize;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use std::{env, fs, io, thread};

use ce_files::umask;
use ce_model::access::{Access, Rule};
use ce_model::host_use::HostUse;
use jiff::Timestamp;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitIdStatus, kill_process, pidfd_open, waitid,
};
use wait4::Wait4;

use self::finished_process::{FinishedProcess, never_executed};
use self::host_resources::{HostLock, HostUnits};
use self::host_watch::HostWatch;
use self::limits::{Limiter, Limits};
use self::pinning::{BoundThread, Processors};
use self::process_groups::{Groups, Orphans, signal};
use crate::executor::{
    Completion, Ended, ExecuteError, Executor, HostTurn, Isolation, Offer, Reach, Status,
    TaskStatuses, TurnRequest, is_within_call, nesting_variable,
};
use crate::invocation::{Invocation, Span, TAIL, is_replaced, open_log, tail};
use crate::open_files;
use crate::sandbox::{
    Launcher, Sandbox, SandboxError, SandboxSpec, TaskSandbox, VERIFY, lacking, lacking_interpreter,
};
use crate::scheduler::{JobToken, haste};
use crate::slurm::{Allocation, StatusFiles, is_of_allocation};
use crate::start_attempts::{PATIENCE, StartAttempts};

/// Executes processes of this host, until it is cancelled.
#[derive(Debug)]
pub struct Local {
    capacity: NonZeroUsize,
    /// The sandbox that isolates executions, if that is wanted.
    sandbox: Option<Sandbox>,
    /// Whether it executes nothing without isolation.
    requires_isolation: bool,
    attempts: StartAttempts,
    groups: Groups,
    limiter: Limiter,
    orphans: Orphans,
    host: Arc<HostLock>,
    gpus: Arc<HostUnits>,
    processors: Arc<Processors>,
    watch: Arc<HostWatch>,
    /// The allocation that executions may span.
    allocation: Option<Allocation>,
    /// The memory for executions in bytes, if it is known, once it was looked up.
    memory: OnceLock<Option<u64>>,
}

impl Local {
    /// Executes processes, isolated if there is a sandbox and this host allows it. So many threads may
    /// submit at once.
    ///
    /// From now on, this process is the parent of its orphans.
    pub fn new(capacity: NonZeroUsize, sandbox: Option<Sandbox>) -> Self {
        Self {
            capacity,
            sandbox,
            requires_isolation: false,
            attempts: StartAttempts::with_patience(PATIENCE / haste()),
            groups: Groups::default(),
            limiter: Limiter::default(),
            orphans: Orphans::default(),
            host: Arc::default(),
            gpus: Arc::new(HostUnits::gpus(None)),
            processors: Arc::new(Processors::in_directory(None)),
            watch: Arc::new(HostWatch::new()),
            allocation: None,
            memory: OnceLock::new(),
        }
    }

    /// Shares the host with all executors that lock files in the same directory, which need not exist: an exclusive
    /// execution runs alone among the executions of all of them, and no two have the same graphics processor. A process
    /// inside an execution uses that execution's share, and locks nothing: it would wait for itself.
    #[must_use]
    pub fn sharing_host(self, directory: PathBuf) -> Self {
        let directory = (!is_within_call()).then_some(directory);
        let host = Arc::new(HostLock::in_directory(directory.clone()));
        let gpus = Arc::new(HostUnits::gpus(directory.clone()));
        let processors = Arc::new(Processors::in_directory(directory));
        Self { host, gpus, processors, ..self }
    }

    /// Sets whether isolation is required: then nothing is executed without it, even on a host without namespaces.
    #[must_use]
    pub fn requiring_isolation(self, requires_isolation: bool) -> Self {
        Self { requires_isolation, ..self }
    }

    /// Offers no more than this memory, in bytes.
    #[must_use]
    pub fn with_memory(self, memory: u64) -> Self {
        let there =
            host_resources::memory_for_executions().map_or(memory, |there| memory.min(there));
        Self { memory: OnceLock::from(Some(there)), ..self }
    }

    /// Executes calls that ask for an allocation in the allocation of this process.
    #[must_use]
    pub fn in_allocation(self, allocation: Option<Allocation>) -> Self {
        Self { allocation, ..self }
    }

    /// Returns the sandbox if one is wanted, unless this host has answered that it has no namespaces. Without an answer, executions are
    /// isolated or lost.
    fn isolating_sandbox(&self) -> Option<&Sandbox> {
        let is_cancelled = || self.groups.is_cancelled();
        let is_refused =
            |sandbox: &Sandbox| matches!(sandbox.probe(&self.attempts, &is_cancelled), Ok(false));
        self.sandbox.as_ref().filter(|sandbox| !is_refused(sandbox))
    }

    fn execute(&self, invocation: &Invocation) -> Result<Ended, ExecuteError> {
        let Self { groups, limiter, orphans, attempts, processors, .. } = self;
        if groups.is_cancelled() {
            return Err(ExecuteError::Interrupted);
        }
        let watched = self.watch.begin();
        let start = Timestamp::now();
        let refused = |reason: &str| Err(ExecuteError::Refused(reason.to_owned()));
        let processes = Processes { groups, limiter, orphans, attempts, processors };
        let over = match (&invocation.span, &self.allocation) {
            (Some(span), _) if invocation.isolate && span.launcher.is_none() => {
                return refused("it is to be isolated, and starts tasks itself");
            }
            (Some(_), _) if invocation.isolate && self.isolating_sandbox().is_none() => {
                return refused("it is to be isolated, which is not possible here");
            }
            (Some(_), None) => return refused("it asks for an allocation, and there is none"),
            (Some(span), Some(allocation)) => {
                execute_spanning(processes, allocation, span, invocation)
            }
            (None, _) if !invocation.isolate => {
                let hides_allocation = self.allocation.is_some();
                let starter = Starter { hides_allocation, ..Starter::default() };
                execute_unsandboxed(processes, invocation, &starter)
            }
            (None, _) => match self.isolating_sandbox() {
                Some(sandbox) => execute_sandboxed(processes, sandbox, invocation),
                None => return refused("it is to be isolated, which is not possible here"),
            },
        };
        let ended = match over {
            Ok(mut over) => {
                // Tasks have the network of the host.
                let has_network =
                    invocation.span.is_some() && over.isolation == Isolation::Namespaces;
                over.passed_on = has_network || reaches_others(&invocation.access, over.isolation);
                if invocation.span.is_none() {
                    let switches = over.switches;
                    over.host = watched
                        .host_use(&invocation.processors)
                        .map(|it| HostUse { switches, ..it });
                }
                over.ended(start)
            }
            Err(error) => Ended::Lost(error.loss().ok_or(error)?),
        };
        match ended {
            Ended::Failed(_) | Ended::Lost(_) if groups.is_cancelled() => {
                Err(ExecuteError::Interrupted)
            }
            ended => Ok(ended),
        }
    }
}

/// Whether an execution can pass an open file to a process that it has not started: over an abstract socket of the
/// host, or one in a directory that it was granted. Without isolation it always can; then its declared access counts.
fn reaches_others(access: &Access, isolation: Isolation) -> bool {
    access.rules.iter().any(|rule| match rule {
        Rule::Network => true,
        // Others have the directory as well.
        Rule::Suspend => isolation == Isolation::Namespaces,
        Rule::Read(path) | Rule::Write(path) | Rule::Device(path) => {
            let may_be_socket =
                path.metadata().is_ok_and(|about| about.is_dir() || about.file_type().is_socket());
            isolation == Isolation::Namespaces && may_be_socket
        }
        Rule::Env(_) | Rule::Root(_) | Rule::Path(_) | Rule::Set { .. } | Rule::At { .. } => false,
    })
}

impl Executor for Local {
    fn submit(&self, invocation: Invocation, completion: Completion) {
        completion.deliver(self.execute(&invocation));
    }

    fn enter(&self, request: TurnRequest, waits: bool) -> Result<Option<HostTurn>, ExecuteError> {
        let is_cancelled = || self.groups.is_cancelled();
        let Some(turn) = self.host.enter(request.exclusive, waits, is_cancelled)? else {
            return Ok(None);
        };
        // After the turn: who has graphics processors waits for nothing more.
        let Some(gpus) = self.gpus.lease(request.gpus, waits, is_cancelled)? else {
            return Ok(None);
        };
        let processors = self.processors.lease(request.processors, waits, is_cancelled)?;
        Ok(processors.map(|processors| {
            let (names, numbers) = (gpus.names(), processors.numbers());
            HostTurn::new(request, names, numbers, (gpus, processors, turn))
        }))
    }

    fn capacity(&self) -> NonZeroUsize {
        self.capacity
    }

    fn offer(&self) -> Offer {
        let memory = *self.memory.get_or_init(host_resources::memory_for_executions);
        let reach = self.allocation.as_ref().map(Allocation::shape);
        let reach = reach.map_or(Reach::Process, Reach::Allocation);
        Offer {
            memory,
            gpus: Some(self.gpus.names().len()),
            processors: Some(self.processors.count()),
            reach,
        }
    }

    fn notice(&self) -> Option<String> {
        self.attempts
            .notice()
            .or_else(|| self.limiter.notice())
            .or_else(|| self.host.notice())
            .or_else(|| self.gpus.notice())
            .or_else(|| self.processors.notice())
    }

    fn recent_host_use(&self) -> Option<HostUse> {
        self.watch.recent()
    }

    fn isolates(&self) -> bool {
        self.isolating_sandbox().is_some() || self.requires_isolation
    }

    fn exposed(&self) -> Option<&SandboxError> {
        self.sandbox.as_ref()?.refused()
    }

    fn run(&self, command: &mut Command) -> Result<Status, ExecuteError> {
        let Self { groups, orphans, .. } = self;
        if groups.is_cancelled() {
            return Err(ExecuteError::Interrupted);
        }
        // Every child of the main thread is an orphan.
        let over = thread::scope(|scope| {
            let running = || run_command(groups, orphans, command);
            let thread = thread::Builder::new().spawn_scoped(scope, running);
            Ok(thread.map_err(|error| ExecuteError::no_thread(&error))?.join())
        });
        Ok(over?.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?.status())
    }

    fn cancel(&self) {
        self.groups.cancel();
    }

    fn kill(&self) {
        self.groups.kill();
    }

    fn is_cancelled(&self) -> bool {
        self.groups.is_cancelled()
    }

    fn is_killed(&self) -> bool {
        self.groups.is_killed()
    }

    fn finish(&self) {
        // Launchers first: after their threads have ended, they are children of the main thread, like orphans.
        self.sandbox.iter().for_each(Sandbox::dismiss);
        self.orphans.kill_all();
        self.watch.end();
    }
}

/// The directories in which programs are searched if the environment has no `PATH`.
const PROGRAMS: &str = "/usr/local/bin:/usr/bin:/bin";

/// The number of attempts, a millisecond apart, to execute a file that another process is writing.
const BUSY: usize = 1000;

/// Settings for starting `exec` that its invocation does not have.
#[derive(Default)]
pub(super) struct Starter {
    /// The words before it: a program that executes the rest of its arguments.
    pub(super) launcher: Vec<OsString>,
    /// Whether it lacks the variables of the allocation that this process is in.
    pub(super) hides_allocation: bool,
    /// The sandbox of its tasks, which the launcher starts with an environment of their own.
    pub(super) sandbox: Option<TaskSandbox>,
}

/// The processes of an executor.
#[derive(Clone, Copy)]
struct Processes<'a> {
    /// The groups that run.
    groups: &'a Groups,
    /// The limits of executions.
    limiter: &'a Limiter,
    /// The processes that are left behind.
    orphans: &'a Orphans,
    /// The attempts to start others.
    attempts: &'a StartAttempts,
    /// The processors of all.
    processors: &'a Processors,
}

/// Executes, and waits for the end of the process group.
fn execute_unsandboxed(
    processes: Processes<'_>,
    invocation: &Invocation,
    starter: &Starter,
) -> Result<FinishedProcess, ExecuteError> {
    let Processes { groups, limiter, orphans, attempts, processors } = processes;
    if let Some(line) = invocation.access.requires_sandbox().filter(|_| starter.sandbox.is_none()) {
        let line = line.to_string();
        let reason =
            format!("the line {line:?} of its access takes isolation, and it is not isolated");
        return Err(ExecuteError::Refused(reason));
    }
    let is_cancelled = || groups.is_cancelled();
    let failed = |source| ExecuteError::Start {
        program: invocation.program_words(),
        exec: invocation.executable(),
        source,
        lacking: Vec::new(),
    };
    let bound = BoundThread::to(processors, &invocation.processors);
    let begun = attempts.retry(&is_cancelled, ExecuteError::met_limit, || {
        let limits = limiter.prepare(invocation).map_err(failed)?;
        let mut command = command(invocation, starter)?;
        check_inputs(invocation)?;
        Ok((limits, spawn(&mut command).map_err(failed)?))
    });
    drop(bound);
    let (mut limits, child) = begun?;
    let _running = attempts.running();
    let ended = wait(groups, orphans, child, &mut limits);
    let over = ended.map_err(|source| {
        let program = invocation.program_words();
        ExecuteError::Wait { program, source }
    })?;
    check_inputs(invocation)?;
    Ok(over)
}

/// Runs a command in a process group of its own, and waits for the end of the group.
fn run_command(
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
    wait(groups, orphans, child, &mut Limits::default())
        .map_err(|source| ExecuteError::Wait { program, source })
}

/// Waits for the end of a child and of its group.
fn wait(
    groups: &Groups,
    orphans: &Orphans,
    child: Child,
    limits: &mut Limits,
) -> io::Result<FinishedProcess> {
    let pid = Pid::from_child(&child);
    let (waited, met) = groups.wait(pid, || limits.during(pid, pid, || wait_for(pid)));
    let killed = waited?.and_then(|status| status.terminating_signal());
    let never_executed = killed == Some(Signal::KILL.as_raw()) && never_executed(pid);
    // It is still a zombie, so its number, also the number of its group, is not reused.
    signal(pid, Signal::KILL);
    let left_behind = orphans.wait_for_killed_group(pid);
    let used = child.wait4()?;
    Ok(FinishedProcess {
        code: used.status.code(),
        signal: used.status.signal(),
        met: limits.met_by_memory().or(met),
        user: used.rusage.utime,
        system: used.rusage.stime,
        peak: used.rusage.maxrss,
        switches: None,
        left_behind,
        passed_on: false,
        never_executed,
        isolation: Isolation::None,
        lacking: Vec::new(),
        tasks: TaskStatuses::default(),
        launcher_error: None,
        host: None,
    })
}

/// Waits until a process has ended, and leaves it a zombie. Returns how it ended.
fn wait_for(pid: Pid) -> io::Result<Option<WaitIdStatus>> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    // Older kernels have no such descriptors.
    if let Ok(ended) = pidfd_open(pid, PidfdFlags::empty()) {
        while poll(&mut [PollFd::new(&ended, PollFlags::IN)], None) == Err(Errno::INTR) {}
        // A process that traces it would have to wait for it first, as a debugger does at once.
        let over = Instant::now();
        while waitid(WaitId::Pid(pid), options | WaitIdOptions::NOHANG)?.is_none() {
            if over.elapsed() > TRACED {
                let _gone = tracer_of(pid).map(|tracer| kill_process(tracer, Signal::KILL));
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
    loop {
        match waitid(WaitId::Pid(pid), options) {
            Err(Errno::INTR) => {}
            other => return Ok(other?),
        }
    }
}

/// The time within which a process that traces another one waits for its end.
const TRACED: Duration = Duration::from_secs(1);

/// The process that traces another one.
fn tracer_of(pid: Pid) -> Option<Pid> {
    let status = fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).ok()?;
    let number = status.lines().find_map(|line| line.strip_prefix("TracerPid:"))?;
    Pid::from_raw(number.trim().parse().ok()?)
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
    let own: Vec<OsString> = match &starter.sandbox {
        Some(sandbox) => sandbox.words.clone(),
        None => {
            let inputs = inputs.iter().map(|it| it.outside().as_os_str());
            let files = inputs.chain(outputs.iter().map(|it| it.path.as_os_str()));
            let files = files.map(OsStr::to_owned);
            [invocation.executable().into()].into_iter().chain(files).collect()
        }
    };
    let mut words = starter.launcher.iter().cloned().chain(own);
    let mut command = Command::new(words.next().unwrap_or_default());
    if starter.hides_allocation {
        let variables = env::vars_os().map(|(name, _)| name);
        variables.filter(|name| is_of_allocation(name)).for_each(|name| {
            command.env_remove(name);
        });
    }
    command
        .args(words)
        .current_dir(&work.path)
        .stdin(Stdio::null())
        .stdout(log.try_clone().map_err(wrong)?)
        .stderr(log)
        .process_group(0);
    if let Some(sandbox) = &starter.sandbox {
        // Only the variables of the allocation that the launcher needs.
        let variables = env::vars_os();
        let variables = variables.filter(|(name, _)| name.as_encoded_bytes().starts_with(b"SLURM"));
        command.env_clear().envs(variables).envs(sandbox.environment());
        return Ok(command);
    }
    command.envs([nesting_variable(&invocation.call)]);
    // What has no value may belong to a call that has started this run.
    for (name, value) in invocation.variables(None) {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
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
    let mut left = BUSY;
    loop {
        match umask::as_user(|| command.spawn()) {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy && left > 0 => {
                left -= 1;
                thread::sleep(Duration::from_millis(1));
            }
            spawned => {
                return spawned.inspect(|child| open_files::lower(Pid::from_child(child)));
            }
        }
    }
}

/// The reason why a sandboxed execution has not begun.
enum FailedAttempt {
    /// Another attempt may succeed: nothing was executed.
    Passing(SandboxError),
    /// The execution is over.
    Over(ExecuteError),
}

impl FailedAttempt {
    /// Returns the cause if another attempt may succeed.
    fn passing(&self) -> Option<&io::Error> {
        match self {
            Self::Passing(error) => Some(error.cause()),
            Self::Over(_) => None,
        }
    }
}

/// Executes, and waits until nothing of the execution runs any more.
fn execute_sandboxed(
    processes: Processes<'_>,
    sandbox: &Sandbox,
    invocation: &Invocation,
) -> Result<FinishedProcess, ExecuteError> {
    let Processes { groups, limiter, attempts, processors, .. } = processes;
    let broken = |error: SandboxError| match groups.is_cancelled() {
        true => ExecuteError::Interrupted,
        false => ExecuteError::Isolate(error),
    };
    let is_cancelled = || groups.is_cancelled();
    let attempt = || {
        let limits = limiter.prepare(invocation);
        let limits = limits.map_err(|error| FailedAttempt::Passing(SandboxError::Lost(error)))?;
        Ok((limits, begin(sandbox, invocation, &broken)?))
    };
    let bound = BoundThread::to(processors, &invocation.processors);
    let begun = attempts.retry(&is_cancelled, FailedAttempt::passing, attempt);
    drop(bound);
    let (mut limits, (spec, mut launcher, leader)) = begun.map_err(|failed| match failed {
        FailedAttempt::Passing(error) => broken(error.into_lost()),
        FailedAttempt::Over(error) => error,
    })?;
    let _running = attempts.running();
    let root = launcher.process();
    let (waited, met) = groups.wait(leader, || limits.during(leader, root, || launcher.wait()));
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
        met: limits.met_by_memory().or(met),
        user: used.user,
        system: used.system,
        peak: used.peak,
        switches: Some(used.switches),
        left_behind: false,
        passed_on: false,
        never_executed,
        isolation: Isolation::Namespaces,
        lacking,
        tasks: TaskStatuses::default(),
        launcher_error: None,
        host: None,
    })
}

/// Begins an execution. Returns its sandbox specification, its launcher, and the process that leads its group.
fn begin(
    sandbox: &Sandbox,
    invocation: &Invocation,
    broken: &dyn Fn(SandboxError) -> ExecuteError,
) -> Result<(SandboxSpec, Launcher, Pid), FailedAttempt> {
    let or_passing = |error: SandboxError, is_about_execution: bool| match is_about_execution {
        true => FailedAttempt::Over(broken(error)),
        false => FailedAttempt::Passing(error),
    };
    let spec = SandboxSpec::from_invocation(invocation).map_err(|error| {
        let is_about_execution = error.is_about_execution();
        or_passing(error, is_about_execution)
    })?;
    let mut launcher = sandbox.ask(invocation, &spec).map_err(|error| {
        // A launcher shows granted devices, and else only what all executions have.
        let is_device = invocation.access.devices().any(|device| error.path() == Some(device));
        let is_about_execution = is_device && error.is_about_execution();
        or_passing(error, is_about_execution)
    })?;
    match launcher.begin() {
        Ok(leader) => Ok((spec, launcher, leader)),
        // It may have been executed.
        Err(error @ SandboxError::Lost(_)) => Err(FailedAttempt::Over(broken(error))),
        Err(error) => {
            sandbox.give_back(launcher);
            if error.is_about_execution() {
                return Err(FailedAttempt::Over(refused(&spec, invocation, error)));
            }
            Err(FailedAttempt::Passing(error))
        }
    }
}

/// Returns why an execution could not begin in its sandbox.
fn refused(spec: &SandboxSpec, invocation: &Invocation, error: SandboxError) -> ExecuteError {
    match error {
        error if !error.is_about_execution() => ExecuteError::Isolate(error.into_lost()),
        SandboxError::Step { doing, source, .. } if doing == "start" => {
            let (program, exec) = (invocation.program_words(), invocation.executable());
            let lacking = lacking_interpreter(spec, &exec);
            ExecuteError::Start { program, exec, source, lacking }
        }
        SandboxError::Step { doing, path, source } if doing == "write" && path == spec.log() => {
            ExecuteError::Log { log: path, source }
        }
        SandboxError::Step { doing, path, source } if doing == VERIFY && is_replaced(&source) => {
            ExecuteError::Replaced(path)
        }
        error => ExecuteError::Isolate(error),
    }
}

/// Executes, and waits until nothing of the execution runs any more, on any host, as far as Slurm knows.
fn execute_spanning(
    processes: Processes<'_>,
    allocation: &Allocation,
    span: &Span,
    invocation: &Invocation,
) -> Result<FinishedProcess, ExecuteError> {
    allocation.prepare();
    let (mut starter, mut files) = (Starter::default(), None::<StatusFiles>);
    if span.launcher.is_some() {
        let token = JobToken::random()
            .map_err(|error| ExecuteError::Refused(format!("it cannot be launched: {error}")))?;
        // An isolated execution cannot write to the stage.
        let directory = if invocation.isolate { &invocation.stage } else { &invocation.outbox };
        let (mut launcher, statuses) =
            allocation.launcher(span, &invocation.work.path, &directory.path, &token);
        if invocation.isolate {
            let sandbox = TaskSandbox::new(invocation, &token.to_string(), statuses.prefix());
            starter.sandbox = Some(sandbox.map_err(ExecuteError::Isolate)?);
        } else {
            launcher.extend(statuses.noting());
        }
        (starter.launcher, files) = (launcher, Some(statuses));
    }
    let ended = execute_unsandboxed(processes, invocation, &starter);
    // Also after an error, because exec may have been executed.
    let is_over = allocation.end_steps(|| processes.groups.is_killed());
    let statuses = files.map(|files| files.take());
    if let Some(sandbox) = &starter.sandbox
        && let Some(error) = sandbox.refused()
    {
        return Err(refused(&sandbox.spec, invocation, error));
    }
    let mut over = ended?;
    over.left_behind |= !is_over;
    if let Some(statuses) = statuses {
        // These are of the launcher itself.
        (over.user, over.system, over.peak) = (Duration::ZERO, Duration::ZERO, 0);
        over.tasks = TaskStatuses(statuses);
        over.launcher_error = last_error(&invocation.log());
    }
    if let Some(sandbox) = &starter.sandbox {
        over.isolation = Isolation::Namespaces;
        over.lacking = if over.code == Some(0) { Vec::new() } else { lacking(&sandbox.spec) };
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
