//! The contract between executors and callers that submit invocations; and an executor that starts nothing.

use std::any::Any;
use std::fmt;
use std::num::{NonZeroU32, NonZeroUsize};
use std::process::Command;

use jiff::Timestamp;

use super::invocation::Invocation;
use super::outcome::{Ended, ExecuteError, Failed, SUSPENDED, Status, Usage};
use super::sandbox::SandboxError;

/// What an executor has for all executions together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// The memory in bytes; `None` if it does not matter.
    pub memory: Option<u64>,
    /// The number of graphics processors; `None` if it does not matter.
    pub gpus: Option<usize>,
    /// The hosts and tasks of one execution.
    pub reach: Reach,
}

/// The hosts and tasks that one execution may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// Any number.
    #[default]
    Any,
    /// It is one process of one host.
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

    /// Takes a turn for an execution, to be kept until that has ended. Returns `None` if other runs have what it needs, unless it
    /// `waits`. Who waits must have nothing that others may wait for, such as the lease of a call.
    ///
    /// # Errors
    ///
    /// Fails as soon as nothing is started any more, or if there will never be what it needs.
    fn enter(&self, request: TurnRequest, _waits: bool) -> Result<Option<HostTurn>, ExecuteError> {
        Ok(Some(HostTurn::beside_all(request)))
    }

    /// The number of executions that may run at once. Submitting more keeps others waiting.
    fn capacity(&self) -> NonZeroUsize;

    /// What it has for all executions together, beside its capacity.
    fn offer(&self) -> Offer {
        Offer::default()
    }

    /// Whether it takes invocations that are to be isolated; it refuses them otherwise.
    fn isolates(&self) -> bool {
        false
    }

    /// The reason why it does not isolate although it should, if that is known.
    fn exposed(&self) -> Option<&SandboxError> {
        None
    }

    /// Returns what the user should know of it by now, each thing once.
    fn notice(&self) -> Option<String> {
        None
    }

    /// Runs a command of the user's on this host, and waits for its end. It is interrupted like
    /// executions; it is not isolated, and may take any time.
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

    /// Whether an execution that has just ended like this may have been disturbed: somebody who ends this process may have sent
    /// signals to processes of the execution, too, and a script that goes on without one of them makes wrong outputs.
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

/// What an execution takes of its host that other runs may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TurnRequest {
    /// The number of graphics processors.
    pub gpus: u32,
    /// Whether nothing else may be executed on the host meanwhile.
    pub exclusive: bool,
}

/// The right to execute, given back when dropped.
pub struct HostTurn {
    request: TurnRequest,
    gpus: Vec<String>,
    /// The locks.
    _held: Box<dyn Any + Send>,
}

impl HostTurn {
    /// A turn with these graphics processors, as long as something is held.
    pub(super) fn new(request: TurnRequest, gpus: Vec<String>, held: impl Any + Send) -> Self {
        Self { request, gpus, _held: Box::new(held) }
    }

    /// A turn of which nothing keeps anybody else waiting.
    fn beside_all(request: TurnRequest) -> Self {
        Self::new(request, Vec::new(), ())
    }

    /// What was asked for.
    pub const fn request(&self) -> TurnRequest {
        self.request
    }

    /// The names of the graphics processors.
    pub fn gpus(&self) -> &[String] {
        &self.gpus
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

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn an_execution_that_nobody_completes_is_lost() {
        let (sender, ends) = channel();
        let completion = || {
            let sender = sender.clone();
            Completion::new(move |end| sender.send(end).unwrap())
        };
        completion().deliver(Err(ExecuteError::Interrupted));
        assert!(matches!(ends.recv(), Ok(Err(ExecuteError::Interrupted))));
        drop(completion());
        assert!(matches!(ends.recv(), Ok(Ok(Ended::Lost(_)))));
        assert!(ends.try_recv().is_err(), "each delivers once");
    }
}
