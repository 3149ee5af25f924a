//! Isolation: executions can access their own files only.
//!
//! A launcher, which is this program started again with a hidden argument, prepares namespaces once
//! and forks executions in them. Imports go one way, from the first to the last of these lines:
//!
//! - `Sandbox` starts launchers and asks them to execute. `missing_access` finds paths that an execution may lack.
//! - `launcher`: the launcher's side.
//! - `cluster_tasks`: the side of tasks that a cluster starts, each in the sandbox of its host.
//! - `shared_namespaces`: the namespaces that successive executions of a launcher share, and the process that starts them there.
//! - `root`, `user`, `seccomp`: the environment of an execution.
//! - `spec`: the visible files and the environment of an execution, as a value. `mounts` and `launcher_processes` are used by all.

mod cluster_tasks;
mod launcher;
mod launcher_processes;
mod missing_access;
mod mounts;
mod root;
mod seccomp;
mod shared_namespaces;
mod spec;
mod user;

pub(crate) use self::cluster_tasks::TaskSandbox;
pub use self::missing_access::{installation, interpreter, is_shown, links};
pub(crate) use self::missing_access::{lacking, lacking_interpreter};
pub(crate) use self::mounts::VERIFY;
pub(crate) use self::root::{DEVICES, TELLING};
pub(crate) use self::spec::SandboxSpec;
pub use self::spec::{COMPUTATION, INPUTS, OUTPUTS};

use std::ffi::OsString;
use std::io::{self, BufReader, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};

use ce_files::umask;
use ce_model::access::Access;
use ce_model::exit::Explain;
use rustix::process::Pid;

use self::cluster_tasks::TASK;
use self::launcher_processes::{HOST_NETWORK, LAUNCH, OWN_NETWORK, ProcessUsage, Reply};
use crate::invocation::Invocation;

/// The reason why an execution cannot be isolated.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// A step failed.
    #[error("cannot {}", [doing.as_str(), &path.to_string_lossy()].join(" ").trim_end())]
    Step {
        /// The step that failed.
        doing: String,
        /// The path it was about; empty if there is none.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The launcher cannot be started, or has ended.
    #[error("the launcher does not answer")]
    Lost(#[source] io::Error),
}

impl SandboxError {
    /// A reply of a launcher in place of the one that was expected.
    fn unexpected(reply: Reply) -> Self {
        match reply {
            Reply::Failed(doing, path, errno) => {
                Self::Step { doing, path, source: io::Error::from_raw_os_error(errno) }
            }
            _ => Self::garbled(),
        }
    }

    /// The same once something was executed, which is not to blame for what the launcher could not do then.
    fn after_start(self) -> Self {
        match self {
            Self::Step { ref source, .. } => {
                Self::Lost(io::Error::other(format!("{self}: {source}")))
            }
            Self::Lost(_) => self,
        }
    }

    /// A reply that cannot be read.
    fn garbled() -> Self {
        Self::Lost(io::ErrorKind::InvalidData.into())
    }
}

impl Explain for SandboxError {
    fn hint(&self) -> Option<String> {
        let (doing, source) = match self {
            Self::Step { doing, source, .. } => (doing, source),
            Self::Lost(_) => {
                return Some(
                    "run this again; ce doctor says whether computations can be isolated"
                        .to_owned(),
                );
            }
        };
        let space = source.raw_os_error() == Some(rustix::io::Errno::NOSPC.raw_os_error());
        let hint = match doing.as_str() {
            "create namespaces" if space => {
                Some("sysctl user.max_user_namespaces is 0 or used up; raise it")
            }
            "create namespaces" | "write" | "make private the mounts below" => Some(
                "allow user namespaces: sysctl kernel.unprivileged_userns_clone=1 (Debian) or \
                 kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu); in a container, its seccomp \
                 profile",
            ),
            _ => None,
        };
        hint.map(str::to_owned)
    }
}

/// Does what this program was started for by itself, if a hidden first argument says so.
///
/// The process must have one thread yet.
pub(super) fn hidden(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    match arguments.next()?.to_str()? {
        LAUNCH => Some(launcher::launch(arguments)),
        TASK => Some(cluster_tasks::task(arguments)),
        _ => None,
    }
}

/// The number of times that a launcher is started, if it ends before it says whether it can isolate.
const STARTS: usize = 3;

/// Launchers: one for each execution at a time, used again and again.
#[derive(Debug)]
pub struct Sandbox {
    /// The program that is started as a launcher.
    program: PathBuf,
    idle: Mutex<Vec<Launcher>>,
    possible: OnceLock<Result<(), SandboxError>>,
}

impl Default for Sandbox {
    /// Launchers that are this very program, even if another file has its name by now.
    fn default() -> Self {
        Self::of("/proc/self/exe".into())
    }
}

impl Sandbox {
    /// Launchers that are a program whose `main` begins with [`hidden`](crate::hidden).
    pub fn of(program: PathBuf) -> Self {
        Self { program, idle: Mutex::default(), possible: OnceLock::new() }
    }

    /// Returns why nothing can be isolated on this host, if that has been tried.
    pub fn refused(&self) -> Option<&SandboxError> {
        self.possible.get()?.as_ref().err()
    }

    /// Tries whether anything can be isolated on this host, once.
    pub fn is_possible(&self) -> bool {
        self.possible
            .get_or_init(|| {
                let mut started = Launcher::start(&self.program, SharedState::default());
                for _ in 1..STARTS {
                    // Somebody may have killed it, which says nothing of this host.
                    if matches!(started, Err(SandboxError::Lost(_))) {
                        started = Launcher::start(&self.program, SharedState::default());
                    }
                }
                self.give_back(started?);
                Ok(())
            })
            .is_ok()
    }

    /// Asks an idle launcher to execute, or one that is started for that.
    pub(crate) fn ask(
        &self,
        invocation: &Invocation,
        spec: &SandboxSpec,
    ) -> Result<Launcher, SandboxError> {
        let shared = SharedState::of(&invocation.access);
        while let Some(mut launcher) = self.take_idle(&shared) {
            // One that somebody has killed meanwhile takes nothing.
            if launcher.ask(spec).is_ok() {
                return Ok(launcher);
            }
        }
        let mut launcher = Launcher::start(&self.program, shared)?;
        launcher.ask(spec)?;
        Ok(launcher)
    }

    fn take_idle(&self, shared: &SharedState) -> Option<Launcher> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let place = idle.iter().position(|launcher| launcher.shared == *shared)?;
        Some(idle.swap_remove(place))
    }

    /// Ends the launchers that are idle.
    pub(crate) fn dismiss(&self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Gives a launcher back, for other executions.
    pub(crate) fn give_back(&self, launcher: Launcher) {
        if launcher.spent {
            return;
        }
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(launcher);
    }
}

/// Specifies what an invocation may see.
pub(crate) fn specify(invocation: &Invocation) -> Result<SandboxSpec, SandboxError> {
    SandboxSpec::of(invocation).map_err(|(path, source)| SandboxError::Step {
        doing: "find".to_owned(),
        path,
        source,
    })
}

/// State shared by all executions of one launcher.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct SharedState {
    network: bool,
    devices: Vec<PathBuf>,
}

impl SharedState {
    fn of(access: &Access) -> Self {
        let mut devices: Vec<PathBuf> = access.devices().map(Path::to_owned).collect();
        devices.sort();
        devices.dedup();
        Self { network: access.network(), devices }
    }
}

/// A launcher. It executes one thing at a time.
#[derive(Debug)]
pub(crate) struct Launcher {
    shared: SharedState,
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// It executes nothing any more.
    spent: bool,
}

impl Launcher {
    /// Starts one.
    fn start(program: &Path, shared: SharedState) -> Result<Self, SandboxError> {
        let mut command = Command::new(program);
        command
            .arg0("ce-launcher")
            .arg(LAUNCH)
            .arg(if shared.network { HOST_NETWORK } else { OWN_NETWORK })
            .args(&shared.devices)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = umask::as_user(|| command.spawn()).map_err(SandboxError::Lost)?;
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
    fn ask(&mut self, spec: &SandboxSpec) -> Result<(), SandboxError> {
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
    pub(crate) fn end(&mut self) -> Result<ProcessUsage, SandboxError> {
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
