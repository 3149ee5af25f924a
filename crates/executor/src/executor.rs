//! The contract between executors and callers that submit invocations: how an execution ends, with its exit status,
//! resource usage or error, and an executor that starts nothing.

use std::any::Any;
use std::ffi::OsString;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{env, fmt, io};

use jiff::Timestamp;
use rustix::fs::{StatVfsMountFlags, statvfs};
use rustix::process::Signal;

use crate::invocation::Invocation;
use crate::sandbox::SandboxError;
use ce_files::beneath::advice;
use ce_model::access::Rule;
use ce_model::exit::Explain;
use ce_model::host_use::HostUse;
use ce_model::humanize::size;
use ce_model::system_hints::exhausted_limit;

/// The resources that an executor has for all executions together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// The memory in bytes; `None` if it does not matter.
    pub memory: Option<u64>,
    /// The number of graphics processors; `None` if it does not matter.
    pub gpus: Option<usize>,
    /// The number of processors that executions can be bound to; `None` if it does not matter.
    pub processors: Option<usize>,
    /// The hosts and tasks of one execution.
    pub reach: Reach,
}

/// The hosts and tasks that one execution may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// Any number.
    #[default]
    Any,
    /// The execution is one process on one host.
    Process,
    /// It may have an allocation of this shape.
    Allocation(AllocationShape),
}

/// The shape of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocationShape {
    /// The number of hosts.
    pub nodes: NonZeroU32,
    /// The number of processes that are started there.
    pub tasks: NonZeroU32,
}

/// An executor: starts processes for invocations.
///
/// It delivers the end of each execution when that has come, in any order and from any thread. A
/// cluster does so long after [`submit`](Self::submit) has returned. An executor that needs a
/// thread for each execution may use the one that submits, and deliver before it returns, so
/// callers must submit from threads of their own.
pub trait Executor: Send + Sync {
    /// Takes an invocation, to be started as soon as possible.
    fn submit(&self, invocation: Invocation, completion: Completion);

    /// Takes a turn for an execution, to be kept until that has ended. Returns `None` if other runs have the resources
    /// that it needs, unless it `waits`. A caller that waits must hold nothing that others may wait for, such as the
    /// lease of a call.
    ///
    /// # Errors
    ///
    /// Fails as soon as nothing is started any more, or if the resources will never be there.
    fn enter(&self, request: TurnRequest, _waits: bool) -> Result<Option<HostTurn>, ExecuteError> {
        Ok(Some(HostTurn::beside_all(request)))
    }

    /// The number of executions that may run at once. Submitting more keeps others waiting.
    fn capacity(&self) -> NonZeroUsize;

    /// Returns its resources for all executions together, beside its capacity.
    fn offer(&self) -> Offer {
        Offer::default()
    }

    /// Whether it accepts invocations that require isolation; otherwise it refuses them. It takes them unless isolation is
    /// not wanted, or its host has no namespaces: another failure does not turn isolation off.
    fn isolates(&self) -> bool {
        false
    }

    /// The reason why it does not isolate although it should, if known.
    fn exposed(&self) -> Option<&SandboxError> {
        None
    }

    /// Returns the use of this host by others during the last seconds, while executions ran, if it is known.
    fn recent_host_use(&self) -> Option<HostUse> {
        None
    }

    /// Returns the next message about it for the user, if any, each one once.
    fn notice(&self) -> Option<String> {
        None
    }

    /// Runs a command of the user on this host, and waits for its end. It is interrupted like executions; it is not
    /// isolated, and may take any time.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be started or waited for, or if the executor runs no commands.
    fn run(&self, command: &mut Command) -> Result<Status, ExecuteError> {
        let program = command.get_program().display();
        Err(ExecuteError::Refused(format!("{program} cannot be run by this executor")))
    }

    /// Starts no further execution, and asks the running ones to end.
    fn cancel(&self) {}

    /// Starts no further execution, and kills the running ones.
    fn kill(&self) {}

    /// Whether nothing is started any more.
    fn is_cancelled(&self) -> bool {
        false
    }

    /// Whether executions are killed that still run: the user does not want to wait any longer.
    fn is_killed(&self) -> bool {
        false
    }

    /// Whether an execution that has just ended in this way may have been disturbed: signals that end this process may
    /// have gone to processes of the execution, too, and a script that continues without one of them makes wrong
    /// outputs.
    fn is_disturbed(&self, _: &Result<Ended, ExecuteError>) -> bool {
        false
    }

    /// Ends what executions have left behind, after the last one is over.
    fn finish(&self) {}
}

/// Delivers the end of one execution, once.
///
/// Dropping it reports the execution as lost, so no caller waits forever.
pub struct Completion(Option<Deliver>);

type Deliver = Box<dyn FnOnce(Result<Ended, ExecuteError>) + Send>;

impl Completion {
    /// Calls a function with the end of the execution, in any thread.
    pub fn new(deliver: impl FnOnce(Result<Ended, ExecuteError>) + Send + 'static) -> Self {
        Self(Some(Box::new(deliver)))
    }

    /// Delivers how the execution ended, or why it was not executed to its end.
    pub fn deliver(mut self, end: Result<Ended, ExecuteError>) {
        if let Some(deliver) = self.0.take() {
            deliver(end);
        }
    }
}

impl Drop for Completion {
    fn drop(&mut self) {
        if let Some(deliver) = self.0.take() {
            deliver(Ok(Ended::Lost("its executor broke down".to_owned())));
        }
    }
}

impl fmt::Debug for Completion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Completion").finish_non_exhaustive()
    }
}

/// The resources of its host that an execution takes, and that other runs may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TurnRequest {
    /// The number of graphics processors.
    pub gpus: u32,
    /// The number of processors that it is bound to, and nothing else of the same user.
    pub processors: u32,
    /// Whether nothing else may be executed on the host meanwhile.
    pub exclusive: bool,
}

/// The right to execute, given back when dropped.
pub struct HostTurn {
    request: TurnRequest,
    gpus: Vec<String>,
    processors: Vec<usize>,
    /// The locks.
    _held: Box<dyn Any + Send>,
}

impl HostTurn {
    /// A turn with these graphics processors, and bound to these processors, as long as something is held.
    pub(super) fn new(
        request: TurnRequest,
        gpus: Vec<String>,
        processors: Vec<usize>,
        held: impl Any + Send,
    ) -> Self {
        Self { request, gpus, processors, _held: Box::new(held) }
    }

    /// A turn that holds nothing, so no other run waits for it.
    fn beside_all(request: TurnRequest) -> Self {
        Self::new(request, Vec::new(), Vec::new(), ())
    }

    /// Returns the request.
    pub const fn request(&self) -> TurnRequest {
        self.request
    }

    /// The names of the graphics processors.
    pub fn gpus(&self) -> &[String] {
        &self.gpus
    }

    /// The numbers of the processors that it is bound to; without any it is bound to none.
    pub fn processors(&self) -> &[usize] {
        &self.processors
    }
}

impl fmt::Debug for HostTurn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostTurn").field("request", &self.request).finish_non_exhaustive()
    }
}

/// Calls a function in place of a process, in the thread that submits. Its result is the exit
/// status.
#[derive(Debug)]
pub struct Fake<F>(pub F);

impl<F: Fn(&Invocation) -> i32 + Send + Sync> Executor for Fake<F> {
    fn submit(&self, invocation: Invocation, completion: Completion) {
        let start = Timestamp::now();
        let code = (self.0)(&invocation);
        let usage = Usage::since(start);
        completion.deliver(Ok(match code {
            0 => Ended::Done(usage),
            SUSPENDED => Ended::Suspended(usage),
            code => {
                Ended::Failed(Failed { status: Status::Exited(code), usage, lacking: Vec::new() })
            }
        }));
    }

    fn capacity(&self) -> NonZeroUsize {
        NonZeroUsize::MAX
    }
}

/// The variable that executions without a sandbox have: a line for each call around, the outermost first.
const WITHIN: &str = "COMPEVAL_WITHIN";

/// Whether this process is part of an execution.
pub(super) fn is_within_call() -> bool {
    env::var_os(WITHIN).is_some()
}

/// The variable of an execution of a call by this process, and its value.
pub(super) fn nesting_variable(call: &str) -> (&'static str, OsString) {
    let mut calls = env::var_os(WITHIN).unwrap_or_default();
    calls.push(format!("{} {call}\n", std::process::id()));
    (WITHIN, calls)
}

/// Whether this process is part of the execution of a call, or of that call at any version, by another process of this host.
pub fn is_within(process: u32, call: &str, any_version: bool) -> bool {
    let Ok(calls) = env::var(WITHIN) else { return false };
    calls.lines().filter_map(|line| line.split_once(' ')).any(|(other, around)| {
        let is_call = around == call || any_version && unversioned(around) == unversioned(call);
        other == process.to_string() && is_call
    })
}

/// The computation of a call and the digits of its inputs: `c_NAME` and `INPUTS` of `c_NAME/CCID/INPUTS`.
fn unversioned(call: &str) -> Option<(&str, &str)> {
    let (computation, rest) = call.split_once('/')?;
    Some((computation, rest.split_once('/')?.1))
}

/// The exit status of an `exec` that has started a process elsewhere: `EX_TEMPFAIL`.
pub const SUSPENDED: i32 = 75;

/// The end of an execution that was started.
#[derive(Clone, Debug, PartialEq)]
pub enum Ended {
    /// `exec` ended with exit status 0.
    Done(Usage),
    /// `exec` ended in another way, which the call is to blame for.
    Failed(Failed),
    /// `exec` has started a process that runs elsewhere, and is to be executed again later.
    Suspended(Usage),
    /// The worker that executed it ended, which the call is not to blame for; in words, how.
    Lost(String),
}

/// An execution that ended without success.
#[derive(Clone, Debug, PartialEq)]
pub struct Failed {
    /// The end of `exec`.
    pub status: Status,
    /// Its use of time and memory.
    pub usage: Usage,
    /// Lines of `access` that might prevent the failure: they grant paths that its log complains about and its sandbox
    /// does not show.
    pub lacking: Vec<Rule>,
}

impl Failed {
    /// The failure of an execution whose outputs could not be stored within its time limit.
    pub fn over_time(limit: Duration, usage: Usage) -> Self {
        Self { status: Status::TimedOut(Signal::KILL.as_raw(), limit), usage, lacking: Vec::new() }
    }

    /// The failure of an execution that was ended with its worker, since that used more memory than this. Its times are not known.
    pub fn out_of_memory(limit: u64, isolation: Isolation) -> Self {
        let usage = Usage { isolation, ..Usage::since(Timestamp::now()) };
        Self { status: Status::OutOfMemory(limit), usage, lacking: Vec::new() }
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tasks = &self.usage.tasks;
        match self.status {
            Status::Exited(_) | Status::Killed(_) if !tasks.0.is_empty() => tasks.fmt(f),
            status => status.fmt(f),
        }
    }
}

/// The times, the memory and the isolation of an execution.
#[derive(Clone, Debug, PartialEq)]
pub struct Usage {
    /// When it was started.
    pub start: Timestamp,
    /// When it ended.
    pub end: Timestamp,
    /// User CPU time.
    pub user: Duration,
    /// System CPU time.
    pub system: Duration,
    /// Peak resident memory of the largest process, in bytes.
    pub peak: u64,
    /// A process may be left that can still write to the files of this execution, or of another.
    pub left_behind: bool,
    /// It may have passed open files of its own to a process that it has not started.
    pub passed_on: bool,
    pub isolation: Isolation,
    /// The statuses of its tasks, if a launcher has started it. Their resource usage is not known then.
    pub tasks: TaskStatuses,
    /// The use of its host by others, if it is known.
    pub host: Option<HostUse>,
}

impl Usage {
    /// An execution that ends now and used nothing but time.
    pub fn since(start: Timestamp) -> Self {
        Self {
            start,
            end: Timestamp::now(),
            user: Duration::ZERO,
            system: Duration::ZERO,
            peak: 0,
            left_behind: false,
            passed_on: false,
            isolation: Isolation::None,
            tasks: TaskStatuses::default(),
            host: None,
        }
    }

    /// The duration of the execution, in seconds.
    pub fn seconds(&self) -> f64 {
        self.end.duration_since(self.start).as_secs_f64()
    }
}

/// The isolation of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// It was not.
    None,
    /// By namespaces of Linux.
    Namespaces,
}

/// The reason why an execution did not run to its end.
#[derive(Debug, thiserror::Error, Explain)]
pub enum ExecuteError {
    /// It could not be started.
    #[error("{program} cannot be started")]
    #[hint(hint_for_program(exec, source))]
    Start {
        /// The program in words, as in `its exec`.
        program: String,
        /// The file.
        exec: PathBuf,
        /// The cause.
        source: io::Error,
        /// Lines of `access` that would grant its interpreter, which its sandbox does not show.
        lacking: Vec<Rule>,
    },
    /// Its sandbox could not be made, or broke down.
    #[error("it cannot be isolated")]
    #[hint(
        _0.hint().or_else(|| Some("check what its file access grants, or use --no-isolate".to_owned()))
    )]
    Isolate(#[source] SandboxError),
    /// A path does not lead to the file or directory any more that it led to when it was verified.
    #[error("{} was replaced while it was needed", .0.display())]
    #[hint("see what moves or replaces files of the storage, then run this again")]
    Replaced(PathBuf),
    /// The log file could not be created.
    #[error("its log cannot be written")]
    #[hint(advice("write", source).map(str::to_owned))]
    Log {
        /// The file.
        log: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// It was started and cannot be waited for.
    #[error("{program} cannot be waited for")]
    #[hint("run the same command again")]
    Wait {
        /// The program in words, as in `its exec`.
        program: String,
        /// The cause.
        source: io::Error,
    },
    /// The user asked to stop.
    #[error("interrupted")]
    #[hint(None)]
    Interrupted,
    /// The executor lacks something that it needs, which the call is not to blame for; in words, what.
    #[error("{0}")]
    #[hint(None)]
    Refused(String),
}

impl ExecuteError {
    /// No thread can be started for it.
    pub fn no_thread(source: &io::Error) -> Self {
        Self::Refused(format!("no thread can be started: {source}"))
    }

    /// Returns the cause if it has met a limit of the system, which the call is not to blame for.
    pub(super) fn met_limit(&self) -> Option<&io::Error> {
        match self {
            Self::Start { source, .. } | Self::Log { source, .. } => {
                exhausted_limit(source).map(|_| source)
            }
            _ => None,
        }
    }

    /// Returns how the execution was lost, in words, if a process of this program broke down rather than the executed
    /// program.
    pub(super) fn loss(&self) -> Option<String> {
        let (what, source): (String, &dyn std::error::Error) = match self {
            Self::Isolate(SandboxError::Lost(source)) => {
                ("the launcher of its sandbox broke down".to_owned(), source)
            }
            Self::Wait { source, .. } => (self.to_string(), source),
            _ => (self.to_string(), self.met_limit()?),
        };
        Some(format!("{what}: {source}"))
    }

    /// Whether a verified directory was replaced, or a file in it is gone.
    pub fn has_lost(&self, directory: &Path) -> bool {
        match self {
            Self::Replaced(path) => path == directory,
            Self::Start { exec, source, .. } => {
                let is_stale = source.kind() == io::ErrorKind::StaleNetworkFileHandle;
                is_stale && exec.starts_with(directory)
            }
            _ => false,
        }
    }
}

/// Whether a file, or the nearest existing directory above it, is on a file system that forbids to start programs.
fn is_noexec(file: &Path) -> bool {
    let nearest = file.ancestors().find_map(|path| statvfs(path).ok());
    nearest.is_some_and(|stat| stat.f_flag.contains(StatVfsMountFlags::NOEXEC))
}

/// Returns what to try after this program could not be started.
fn hint_for_program(exec: &Path, source: &io::Error) -> Option<String> {
    let hint = match source.kind() {
        io::ErrorKind::NotFound if exec.exists() => {
            "its first line names an interpreter that is not installed"
        }
        _ if source.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error()) => {
            "a script begins with a line such as #!/bin/sh"
        }
        io::ErrorKind::ArgumentListTooLong => "give the storage a shorter path",
        io::ErrorKind::PermissionDenied if is_noexec(exec) => {
            return Some(format!(
                "no program can be started from {}: its file system is mounted noexec; mount it without that, or give a storage elsewhere",
                exec.parent().unwrap_or(exec).display()
            ));
        }
        _ => return None,
    };
    Some(hint.to_owned())
}

/// The end of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// By itself, with this status; zero is success.
    Exited(i32),
    /// By this signal.
    Killed(i32),
    /// It was ended by this signal, which it got after this time limit.
    TimedOut(i32, Duration),
    /// It was ended since its processes used more than this memory together, in bytes.
    OutOfMemory(u64),
}

impl Status {
    /// The signal that ended it.
    pub const fn signal(self) -> Option<i32> {
        match self {
            Self::Exited(_) => None,
            Self::Killed(signal) | Self::TimedOut(signal, _) => Some(signal),
            Self::OutOfMemory(_) => Some(Signal::KILL.as_raw()),
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "it ended with exit status {code}"),
            Self::Killed(signal) => write!(f, "it was killed by signal {signal}"),
            Self::TimedOut(_, limit) => write!(f, "it timed out after {} s", limit.as_secs_f64()),
            Self::OutOfMemory(limit) => {
                write!(f, "it used more than its {} of memory", size(*limit))
            }
        }
    }
}

/// The number that a shell adds to the number of the signal that has ended a process.
const SIGNALLED: u8 = 128;
/// The greatest number of a signal.
const LAST_SIGNAL: u8 = 64;
/// The status of one that was killed: by a launcher when another one has failed, or for lack of memory.
const KILLED: u8 = SIGNALLED + 9;
/// The statuses of tasks that were asked to end by HUP, INT or TERM: by a launcher when another one has failed, or by a
/// stranger.
const ASKED: [u8; 3] = [SIGNALLED + 1, SIGNALLED + 2, SIGNALLED + 15];

/// The exit statuses of tasks, by their numbers, as a shell has them: 128 and the number of a signal for one that was
/// killed. A task that was ended before it could note a status has `None`.
///
/// Empty unless a launcher has started tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskStatuses(pub Box<[Option<u8>]>);

impl TaskStatuses {
    /// Whether there are tasks, and all have ended well.
    pub fn are_done(&self) -> bool {
        !self.0.is_empty() && self.0.iter().all(|status| *status == Some(0))
    }

    /// The end of the first task that has failed by itself, or else of the first one that was killed; `None` if no task has
    /// noted that it has failed, or was but asked to end.
    pub fn failure(&self) -> Option<Status> {
        let status = self.causes().first().map(|(status, _)| *status)?;
        Some(match status.checked_sub(SIGNALLED) {
            Some(signal @ 1..=LAST_SIGNAL) => Status::Killed(signal.into()),
            _ => Status::Exited(status.into()),
        })
    }

    /// The statuses of tasks that have failed by themselves, each with its tasks. If there are none, the status of
    /// killed tasks.
    fn causes(&self) -> Vec<(u8, Vec<usize>)> {
        let own = self.tasks_by_status(|it| !matches!(it, 0 | KILLED) && !ASKED.contains(&it));
        if own.is_empty() { self.tasks_by_status(|it| it == KILLED) } else { own }
    }

    /// The tasks that ended with each of certain statuses, in the order of their first tasks.
    fn tasks_by_status(&self, is_wanted: fn(u8) -> bool) -> Vec<(u8, Vec<usize>)> {
        let mut found: Vec<(u8, Vec<usize>)> = Vec::new();
        for (task, status) in self.0.iter().enumerate() {
            let Some(status) = status.filter(|status| is_wanted(*status)) else { continue };
            match found.iter_mut().find(|(other, _)| *other == status) {
                Some((_, tasks)) => tasks.push(task),
                None => found.push((status, vec![task])),
            }
        }
        found
    }
}

impl fmt::Display for TaskStatuses {
    /// Lists the tasks that have failed, and how.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let causes = self.causes();
        let mut reported = 0;
        for (at, (status, tasks)) in causes.iter().enumerate() {
            let separator = if at > 0 { "; " } else { "" };
            let word = if tasks.len() == 1 { "task" } else { "tasks" };
            write!(f, "{separator}{word} {} ended with exit status {status}", ranges(tasks))?;
            reported += tasks.len();
        }
        let ended = self.0.iter().filter(|status| **status != Some(0)).count() - reported;
        match ended {
            0 => Ok(()),
            ended => write!(f, "; the launcher ended {ended} of {} tasks", self.0.len()),
        }
    }
}

/// Numbers in ascending order, as `0-2, 5`.
fn ranges(numbers: &[usize]) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => ranges.push((*number, *number)),
        }
    }
    let mut words = Vec::with_capacity(ranges.len());
    for (first, last) in ranges {
        words.push(if first == last { first.to_string() } else { format!("{first}-{last}") });
    }
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use super::*;

    fn completion(ends: &Sender<Result<Ended, ExecuteError>>) -> Completion {
        let ends = ends.clone();
        Completion::new(move |end| ends.send(end).unwrap())
    }

    #[test]
    fn an_execution_that_nobody_completes_is_lost() {
        let (sender, ends) = channel();
        completion(&sender).deliver(Err(ExecuteError::Interrupted));
        assert!(matches!(ends.recv(), Ok(Err(ExecuteError::Interrupted))));
        drop(completion(&sender));
        assert!(matches!(ends.recv(), Ok(Ok(Ended::Lost(_)))));
        assert!(ends.try_recv().is_err(), "each delivers once");
    }

    fn told(statuses: &[Option<u8>]) -> (Option<Status>, String) {
        let statuses = TaskStatuses(statuses.into());
        (statuses.failure(), statuses.to_string())
    }

    #[test]
    fn tasks_that_failed_by_themselves_are_reported_first() {
        assert_eq!(
            told(&[Some(143), Some(3), None, Some(0)]),
            (
                Some(Status::Exited(3)),
                "task 1 ended with exit status 3; the launcher ended 2 of 4 tasks".to_owned()
            )
        );
        assert_eq!(
            told(&[Some(3), Some(3), Some(3), Some(9), Some(0), Some(3)]),
            (
                Some(Status::Exited(3)),
                "tasks 0-2, 5 ended with exit status 3; task 3 ended with exit status 9".to_owned()
            )
        );
        assert_eq!(told(&[Some(139), Some(137)]).0, Some(Status::Killed(11)));
        assert_eq!(
            told(&[Some(0), Some(137)]),
            (Some(Status::Killed(9)), "task 1 ended with exit status 137".to_owned())
        );
        assert_eq!(told(&[Some(200)]).0, Some(Status::Exited(200)));
        assert_eq!(told(&[None, Some(0)]).0, None);
        assert_eq!(told(&[Some(143), Some(130), Some(129), None]).0, None, "a stranger ended them");
    }

    fn are_done(statuses: &[Option<u8>]) -> bool {
        TaskStatuses(statuses.into()).are_done()
    }

    #[test]
    fn an_execution_is_done_only_if_all_tasks_ended_well() {
        assert!(are_done(&[Some(0), Some(0)]));
        assert!(!are_done(&[Some(0), None]) && !are_done(&[Some(0), Some(1)]) && !are_done(&[]));
    }
}
