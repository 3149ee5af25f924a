//! Processes of this host.
//!
//! Each `exec` leads its own process group. The rest of the group is killed when `exec` ends, so
//! that published outputs are not written any more. Processes that have left the group are reported
//! (see `process_groups`), and killed at the end. With a sandbox, no process is left.
//!
//! The thread that submits an invocation waits for its process. Handing it to a thread of the executor
//! would wake two threads for each call, one of them after the process has ended.

mod execution;
mod host;
mod process_groups;

use std::num::NonZeroUsize;
use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, OnceLock};
use std::thread;

use jiff::Timestamp;

use self::execution::Starter;
use self::host::{Gpus, HostLock};
pub use self::process_groups::GRACE;
use self::process_groups::{Groups, Orphans};
use super::executor::{Completion, Executor, HostTurn, Offer, Reach, TurnRequest};
use super::invocation::{self, Invocation};
use super::outcome::{Ended, ExecuteError, Isolation, Status};
use super::sandbox::{Sandbox, SandboxError};
use super::slurm::Allocation;
use ce_model::access::{Access, Rule};

/// Executes processes of this host, until it is cancelled.
#[derive(Debug)]
pub struct Local {
    capacity: NonZeroUsize,
    /// The sandbox that isolates executions, if that is wanted.
    sandbox: Option<Sandbox>,
    groups: Groups,
    orphans: Orphans,
    host: Arc<HostLock>,
    gpus: Arc<Gpus>,
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
            groups: Groups::default(),
            orphans: Orphans::default(),
            host: Arc::default(),
            gpus: Arc::default(),
            allocation: None,
            memory: OnceLock::new(),
        }
    }

    /// Shares the host with all executors that lock files in the same directory, which need not exist: an exclusive
    /// execution of one is alone among those of all, and no two have the same graphics processor. A process that is part of
    /// an execution has what that has, and shares nothing: it would wait for itself.
    #[must_use]
    pub fn sharing_host(self, directory: PathBuf) -> Self {
        let directory = (!invocation::is_within_call()).then_some(directory);
        let host = Arc::new(HostLock::in_directory(directory.clone()));
        Self { host, gpus: Arc::new(Gpus::in_directory(directory)), ..self }
    }

    /// Offers no more than this memory, in bytes.
    #[must_use]
    pub fn with_memory(self, memory: u64) -> Self {
        let there = host::memory_for_executions().map_or(memory, |there| memory.min(there));
        Self { memory: OnceLock::from(Some(there)), ..self }
    }

    /// Executes what asks for an allocation in this one, which is this process's own.
    #[must_use]
    pub fn in_allocation(self, allocation: Option<Allocation>) -> Self {
        Self { allocation, ..self }
    }

    /// The sandbox, if one is wanted and this host allows it.
    fn isolating_sandbox(&self) -> Option<&Sandbox> {
        self.sandbox.as_ref().filter(|sandbox| sandbox.is_possible())
    }

    fn execute(&self, invocation: &Invocation) -> Result<Ended, ExecuteError> {
        let Self { groups, orphans, .. } = self;
        if groups.is_cancelled() {
            return Err(ExecuteError::Interrupted);
        }
        let start = Timestamp::now();
        let refused = |reason: &str| Err(ExecuteError::Refused(reason.to_owned()));
        let over = match (&invocation.span, &self.allocation) {
            (Some(_), _) if invocation.isolate => {
                return refused("it is to be isolated, which is not possible for several tasks");
            }
            (Some(_), None) => return refused("it asks for an allocation, and there is none"),
            (Some(span), Some(allocation)) => {
                execution::execute_spanning(groups, orphans, allocation, span, invocation)
            }
            (None, _) if !invocation.isolate => {
                let hides_allocation = self.allocation.is_some();
                let starter = Starter { hides_allocation, ..Starter::default() };
                execution::execute_unsandboxed(groups, orphans, invocation, &starter)
            }
            (None, _) => match self.isolating_sandbox() {
                Some(sandbox) => execution::execute_sandboxed(groups, sandbox, invocation),
                None => return refused("it is to be isolated, which is not possible here"),
            },
        };
        let ended = match over {
            Ok(mut over) => {
                over.passed_on = reaches_others(&invocation.access, over.isolation);
                over.ended(start, invocation.limit)
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

/// Whether an execution can pass an open file to a process that it has not started: over an abstract socket of the host, or one
/// in a directory that it was granted. Without isolation it can always; then what it asks for counts.
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
        Rule::Env(_) | Rule::Root(_) | Rule::Path(_) => false,
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
        let gpus = self.gpus.lease(request.gpus, waits, is_cancelled)?;
        Ok(gpus.map(|gpus| HostTurn::new(request, gpus.names(), (gpus, turn))))
    }

    fn capacity(&self) -> NonZeroUsize {
        self.capacity
    }

    fn offer(&self) -> Offer {
        let memory = *self.memory.get_or_init(host::memory_for_executions);
        let reach = self.allocation.as_ref().map(Allocation::shape);
        let reach = reach.map_or(Reach::Process, Reach::Allocation);
        Offer { memory, gpus: Some(self.gpus.names().len()), reach }
    }

    fn notice(&self) -> Option<String> {
        self.host.notice().or_else(|| self.gpus.notice())
    }

    fn isolates(&self) -> bool {
        self.isolating_sandbox().is_some()
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
        let over =
            thread::scope(|scope| scope.spawn(|| execution::run(groups, orphans, command)).join());
        Ok(over.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?.status())
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
        // Launchers first: those of threads that have ended are children of the main thread, like orphans.
        self.sandbox.iter().for_each(Sandbox::dismiss);
        self.orphans.kill_all();
    }
}
