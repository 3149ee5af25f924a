//! Processes of this host.
//!
//! Each `exec` leads a process group of its own. Whatever of the group is left when `exec` ends is
//! killed, so that nobody goes on writing to what is then published. Who has left the group is told
//! of (see `orphans`), and killed when nothing is executed any more. With a sandbox, nothing at all
//! is left.
//!
//! A thread waits for each process: as many threads as may execute at once, and none before there is
//! something to execute.

mod groups;
mod inside;
mod orphans;
mod outside;
mod over;
mod threads;

use std::num::NonZeroUsize;
use std::process::Command;
use std::sync::Arc;
use std::thread;

use jiff::Timestamp;

pub use self::groups::GRACE;
use self::groups::Groups;
use self::orphans::Orphans;
use self::threads::Threads;
use super::contract::{Completion, Executor};
use super::ended::{Ended, ExecuteError, Status};
use super::invocation::Invocation;
use super::sandbox::error::SandboxError;
use super::sandbox::pool::Sandbox;

/// Executes processes of this host, until it is cancelled.
#[derive(Debug)]
pub struct Local {
    host: Arc<Host>,
    threads: Threads<(Invocation, Completion)>,
}

/// What all executions share.
#[derive(Debug)]
struct Host {
    /// What isolates executions, if that is wanted.
    sandbox: Option<Sandbox>,
    groups: Groups,
    orphans: Orphans,
}

impl Local {
    /// Executes so many processes at once, isolated if there is a sandbox and this host allows it.
    ///
    /// From now on, this process is the parent of its orphans.
    pub fn new(slots: NonZeroUsize, sandbox: Option<Sandbox>) -> Self {
        let (groups, orphans) = (Groups::default(), Orphans::default());
        let host = Arc::new(Host { sandbox, groups, orphans });
        let own = Arc::clone(&host);
        let execute = move |(invocation, completion): (Invocation, Completion)| {
            completion.deliver(own.execute(&invocation));
        };
        Self { host, threads: Threads::new(slots, execute) }
    }
}

impl Host {
    /// The sandbox, if one is wanted and this host allows it.
    fn sandbox(&self) -> Option<&Sandbox> {
        self.sandbox.as_ref().filter(|sandbox| sandbox.is_possible())
    }

    fn execute(&self, invocation: &Invocation) -> Result<Ended, ExecuteError> {
        let Self { groups, orphans, .. } = self;
        if groups.is_cancelled() {
            return Err(ExecuteError::Interrupted);
        }
        let start = Timestamp::now();
        let over = match (invocation.isolate, self.sandbox()) {
            (true, Some(sandbox)) => inside::execute(groups, sandbox, invocation)?,
            (true, None) => {
                let reason = "it is to be isolated, which is not possible here";
                return Err(ExecuteError::Refused(reason.to_owned()));
            }
            (false, _) => outside::execute(groups, orphans, invocation)?,
        };
        match over.ended(start, invocation.limit) {
            Ended::Failed(_) if groups.is_cancelled() => Err(ExecuteError::Interrupted),
            ended => Ok(ended),
        }
    }
}

impl Executor for Local {
    fn submit(&self, invocation: Invocation, completion: Completion) {
        if let Err((source, job)) = self.threads.run((invocation, completion)) {
            let (invocation, completion) = job;
            let exec = invocation.tree.path.join("exec");
            completion.deliver(Err(ExecuteError::Start { exec, source, lacking: None }));
        }
    }

    fn capacity(&self) -> NonZeroUsize {
        self.threads.most()
    }

    fn isolates(&self) -> bool {
        self.host.sandbox().is_some()
    }

    fn exposed(&self) -> Option<&SandboxError> {
        self.host.sandbox.as_ref()?.refused()
    }

    fn run(&self, command: &mut Command) -> Result<Status, ExecuteError> {
        let Host { groups, orphans, .. } = &*self.host;
        if groups.is_cancelled() {
            return Err(ExecuteError::Interrupted);
        }
        let run = || outside::run(groups, orphans, command);
        // Whatever is a child of the main thread is an orphan.
        let over = thread::scope(|scope| scope.spawn(run).join());
        let over = over.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok(over.status())
    }

    fn cancel(&self) {
        self.host.groups.cancel();
    }

    fn kill(&self) {
        self.host.groups.kill();
    }

    fn is_cancelled(&self) -> bool {
        self.host.groups.is_cancelled()
    }

    fn finish(&self) {
        // Launchers first: those of threads that have ended are children of the main thread, like orphans.
        self.host.sandbox.iter().for_each(Sandbox::dismiss);
        self.host.orphans.end();
    }
}
