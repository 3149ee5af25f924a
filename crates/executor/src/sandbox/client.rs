//! The client of a launcher: starts one, and asks it to execute.

use std::io::{self, BufReader, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rustix::process::Pid;

use super::error::SandboxError;
use super::spec::SandboxSpec;
use super::wire::{HOST_NETWORK, LAUNCH, OWN_NETWORK, Reply, Used};
use ce_model::task::access::Access;

/// State shared by all executions of one launcher.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Shared {
    network: bool,
    devices: Vec<PathBuf>,
}

impl Shared {
    pub(super) fn of(access: &Access) -> Self {
        let mut devices: Vec<PathBuf> = access.devices().map(Path::to_owned).collect();
        devices.sort();
        devices.dedup();
        Self { network: access.network(), devices }
    }
}

/// A launcher. It executes one thing at a time.
#[derive(Debug)]
pub(crate) struct Launcher {
    pub(super) shared: Shared,
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// It executes nothing any more.
    pub(super) spent: bool,
}

impl Launcher {
    /// Starts one.
    pub(super) fn start(program: &Path, shared: Shared) -> Result<Self, SandboxError> {
        let mut command = Command::new(program);
        command
            .arg0("ce-launcher")
            .arg(LAUNCH)
            .arg(if shared.network { HOST_NETWORK } else { OWN_NETWORK })
            .args(&shared.devices)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().map_err(SandboxError::Lost)?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(SandboxError::Lost(io::ErrorKind::BrokenPipe.into()));
        };
        let output = BufReader::new(output);
        let mut launcher = Self { shared, child, input, output, spent: false };
        match launcher.reply()? {
            Reply::Ready => Ok(launcher),
            reply => Err(SandboxError::unexpected(reply)),
        }
    }

    /// Asks for an execution.
    pub(super) fn ask(&mut self, spec: &SandboxSpec) -> Result<(), SandboxError> {
        spec.write(&mut self.input).map_err(|error| self.lost(error))
    }

    /// Waits until the execution that it was asked for begins; returns the process that leads its group.
    pub(crate) fn begin(&mut self) -> Result<Pid, SandboxError> {
        let mut failed = None;
        loop {
            match self.reply()? {
                Reply::Started(pid) => return Pid::from_raw(pid).ok_or_else(SandboxError::garbled),
                Reply::Over => return Err(failed.unwrap_or_else(SandboxError::garbled)),
                reply => failed = Some(SandboxError::unexpected(reply)),
            }
        }
    }

    /// Waits until `exec` has ended; returns how: an exit status, or minus a signal.
    pub(crate) fn wait(&mut self) -> Result<i32, SandboxError> {
        match self.reply()? {
            Reply::Ended(status) => Ok(status),
            reply => Err(SandboxError::unexpected(reply).after_start()),
        }
    }

    /// Lets the launcher reap the group's leader, waits for the end of all processes of the
    /// execution, and returns their resource usage.
    pub(crate) fn end(&mut self) -> Result<Used, SandboxError> {
        self.input.write_all(b"a").map_err(|error| self.lost(error))?;
        match self.reply()? {
            Reply::Used(used) => Ok(used),
            Reply::Last(used) => {
                self.spent = true;
                Ok(used)
            }
            reply => Err(SandboxError::unexpected(reply).after_start()),
        }
    }

    fn reply(&mut self) -> Result<Reply, SandboxError> {
        Reply::read(&mut self.output).map_err(|error| self.lost(error))
    }

    /// The reason why it does not answer: the signal that has ended it, if one has.
    fn lost(&mut self, error: io::Error) -> SandboxError {
        use io::ErrorKind::{BrokenPipe, UnexpectedEof};
        // It closes its ends of the pipes by ending.
        let is_ended = matches!(error.kind(), BrokenPipe | UnexpectedEof);
        let status = is_ended.then(|| self.child.wait().ok()).flatten();
        SandboxError::Lost(match status.and_then(|status| status.signal()) {
            Some(signal) => io::Error::other(format!("it was killed by signal {signal}")),
            None => error,
        })
    }
}

impl Drop for Launcher {
    /// Ends the launcher, and an execution that is not waited for.
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}
