//! Isolation: executions can access their own files only.
//!
//! A launcher, which is this program started again with a hidden argument, prepares namespaces once
//! and forks executions in them. Imports go one way, from the first to the last of these lines:
//!
//! - `Sandbox` starts launchers and asks them to execute. `missing_access` finds paths that an execution may lack.
//! - `host_answer` says which failures of a launcher mean that the host has no namespaces.
//! - `launcher`: the launcher's side.
//! - `cluster_tasks`: the side of tasks that a cluster starts, each in the sandbox of its host.
//! - `shared_namespaces`: the namespaces that successive executions of a launcher share, and the process that starts them there.
//! - `root`, `user`, `seccomp`: the environment of an execution.
//! - `spec`: the visible files and the environment of an execution, as a value. `mounts` and `launcher_processes` are used by all.

mod cluster_tasks;
mod host_answer;
mod launcher;
mod launcher_processes;
mod missing_access;
mod mounts;
mod own_network;
mod root;
mod seccomp;
mod shared_namespaces;
mod spec;
mod system_files;
mod user;

pub(crate) use self::cluster_tasks::TaskSandbox;
pub use self::missing_access::{installation, interpreter, is_shown, links};
pub(crate) use self::missing_access::{lacking, lacking_interpreter};
pub(crate) use self::mounts::VERIFY;
pub(crate) use self::root::{DEVICES, TELLING};
pub use self::spec::{COMPUTATION, INPUTS, OUTPUTS};
pub(crate) use self::spec::{HOME, SandboxSpec};

use std::ffi::{OsStr, OsString};
use std::io::{self, BufReader, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};

use ce_files::umask;
use ce_files::walk::GrantError;
use ce_model::access::Access;
use ce_model::exit::Explain;
use rustix::io::Errno;
use rustix::process::Pid;

use self::cluster_tasks::TASK;
use self::host_answer::{is_same, lacks_namespaces};
use self::launcher_processes::{
    HOST_FILES, HOST_NETWORK, LAUNCH, OWN_FILES, OWN_NETWORK, ProcessUsage, Reply,
};
use self::seccomp::CallFilter;
use crate::invocation::Invocation;
use crate::open_files;
use crate::process_tree::bind_below;
use crate::start_attempts::StartAttempts;

/// The reason why an execution cannot be isolated.
#[derive(Debug, thiserror::Error, Explain)]
pub enum SandboxError {
    /// A step failed.
    #[error("cannot {}", [doing.as_str(), &path.to_string_lossy()].join(" ").trim_end())]
    #[hint(hint_for_step(doing, source))]
    Step {
        /// The step that failed.
        doing: String,
        /// The path of the step; empty if it has no path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The launcher cannot be started, or has ended.
    #[error("the launcher does not answer")]
    #[hint("run this again; ce doctor says whether computations can be isolated")]
    Lost(#[source] io::Error),
}

impl From<GrantError> for SandboxError {
    fn from(error: GrantError) -> Self {
        let (doing, path, source) = match error {
            GrantError::Link { link, instead } => {
                let link = link.display();
                let doing = format!("{FOLLOW}{link}, which a computation could have made, to");
                (doing, instead, Errno::PERM.into())
            }
            GrantError::Forbidden { place, .. } => ("grant".to_owned(), place, Errno::PERM.into()),
            GrantError::Find { path, source } => ("find".to_owned(), path, source),
        };
        Self::Step { doing, path, source }
    }
}

/// The beginning of the step that fails at a link of a granted path.
const FOLLOW: &str = "follow the link ";

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

    /// Converts the failed step of a launcher into a loss, which is not the execution's fault.
    pub(crate) fn into_lost(self) -> Self {
        match self {
            Self::Step { ref source, .. } => {
                Self::Lost(io::Error::other(format!("{self}: {source}")))
            }
            Self::Lost(_) => self,
        }
    }

    /// The error of the operation that failed.
    pub(crate) fn cause(&self) -> &io::Error {
        match self {
            Self::Lost(source) | Self::Step { source, .. } => source,
        }
    }

    /// The path that the error is about, if any.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Self::Step { path, .. } => {
                Some(path).filter(|path| !path.as_os_str().is_empty()).map(PathBuf::as_path)
            }
            Self::Lost(_) => None,
        }
    }

    /// Whether it is about a file that the execution was given or granted. Everything else passes: something is used up, or a
    /// process of the launcher was killed.
    pub(crate) fn is_about_execution(&self) -> bool {
        let error = self.cause().raw_os_error().map(Errno::from_raw_os_error);
        self.path().is_some() && error.is_some_and(|error| !PASSING.contains(&error))
    }

    /// A reply that cannot be read.
    fn garbled() -> Self {
        Self::Lost(io::ErrorKind::InvalidData.into())
    }
}

/// Errors that say nothing of the file that an operation was about.
const PASSING: [Errno; 9] = [
    Errno::AGAIN,
    Errno::MFILE,
    Errno::NFILE,
    Errno::NOMEM,
    Errno::NOSPC,
    Errno::INTR,
    Errno::PIPE,
    Errno::CHILD,
    Errno::SRCH,
];

/// Returns what may make a failed step succeed.
fn hint_for_step(doing: &str, source: &io::Error) -> Option<String> {
    let space = source.raw_os_error() == Some(Errno::NOSPC.raw_os_error());
    let hint = match doing {
        "create namespaces" if space => "sysctl user.max_user_namespaces is 0 or used up; raise it",
        "show something in place of what its root has at" => "choose another path for it",
        follow if follow.starts_with(FOLLOW) => "grant that path itself in its access",
        "create namespaces" | "write" | "make private the mounts below" => {
            "allow user namespaces: sysctl kernel.unprivileged_userns_clone=1 (Debian) or \
             kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu); in a container, its seccomp \
             profile"
        }
        _ => return None,
    };
    Some(hint.to_owned())
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

/// Launchers: one for each execution at a time, used again and again.
#[derive(Debug)]
pub struct Sandbox {
    /// The program that is started as a launcher.
    program: PathBuf,
    idle: Mutex<Vec<Launcher>>,
    /// The answer of the host, once it has given one.
    possible: OnceLock<Result<(), SandboxError>>,
    /// Held by the thread that asks the host.
    probing: Mutex<()>,
}

impl Default for Sandbox {
    /// Launchers that are this very program, even if another file has its name now.
    fn default() -> Self {
        Self::with_program("/proc/self/exe".into())
    }
}

impl Sandbox {
    /// Launchers that are a program whose `main` begins with [`hidden`](crate::hidden).
    pub fn with_program(program: PathBuf) -> Self {
        Self { program, idle: Mutex::default(), possible: OnceLock::new(), probing: Mutex::new(()) }
    }

    /// Returns why nothing can be isolated on this host, if that is its answer.
    pub fn refused(&self) -> Option<&SandboxError> {
        self.possible.get()?.as_ref().err()
    }

    /// Whether executions can be isolated on this host.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be determined now.
    pub fn is_possible(&self) -> Result<bool, SandboxError> {
        self.probe(&StartAttempts::default(), &|| false)
    }

    /// Does the same within the limits of these attempts, until it is cancelled. The answer holds as long as this value:
    /// where something was isolated once, everything is.
    pub(crate) fn probe(
        &self,
        attempts: &StartAttempts,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<bool, SandboxError> {
        if self.possible.get().is_none() {
            let _one_at_a_time = self.probing.lock().unwrap_or_else(PoisonError::into_inner);
            if self.possible.get().is_none() {
                let answer = attempts.retry(
                    is_cancelled,
                    |error: &SandboxError| Some(error.cause()),
                    || self.ask_host(),
                )?;
                let _known = self.possible.set(answer);
            }
        }
        Ok(self.refused().is_none())
    }

    /// Starts a launcher, and a second one if the first one was refused: a host that has no namespaces gives the same answer twice.
    fn ask_host(&self) -> Result<Result<(), SandboxError>, SandboxError> {
        let mut first = None;
        loop {
            match (Launcher::start(&self.program, SharedState::default()), first.take()) {
                (Ok(launcher), _) => {
                    self.give_back(launcher);
                    return Ok(Ok(()));
                }
                (Err(error), _) if !lacks_namespaces(&error) => return Err(error),
                (Err(error), None) => first = Some(error),
                (Err(second), Some(first)) if is_same(&first, &second) => return Ok(Err(second)),
                (Err(second), Some(_)) => return Err(second),
            }
        }
    }

    /// Asks an idle launcher to execute, or one that is started for that.
    pub(crate) fn ask(
        &self,
        invocation: &Invocation,
        spec: &SandboxSpec,
    ) -> Result<Launcher, SandboxError> {
        let shared = SharedState::from_access(&invocation.access);
        while let Some(mut launcher) = self.take_idle(&shared) {
            // A new one is bound as the thread that starts it.
            bind_below(launcher.process(), &invocation.processors);
            // A launcher that was killed meanwhile accepts nothing.
            if launcher.ask(spec).is_ok() {
                return Ok(launcher);
            }
        }
        let mut launcher = Launcher::start(&self.program, shared)?;
        let _known = self.possible.set(Ok(()));
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

/// State shared by all executions of one launcher.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct SharedState {
    network: bool,
    /// Whether they may write files of the host.
    writes: bool,
    devices: Vec<PathBuf>,
}

impl SharedState {
    fn from_access(access: &Access) -> Self {
        let mut devices: Vec<PathBuf> = access.devices().map(Path::to_owned).collect();
        devices.sort();
        devices.dedup();
        let writes = access.writes().next().is_some() || access.suspends();
        Self { network: access.network(), writes, devices }
    }

    /// The words that pass it to a launcher.
    fn words(&self) -> impl Iterator<Item = &OsStr> {
        let network = if self.network { HOST_NETWORK } else { OWN_NETWORK };
        let files = if self.writes { HOST_FILES } else { OWN_FILES };
        let devices = self.devices.iter().map(|path| path.as_os_str());
        [network, files].into_iter().map(OsStr::new).chain(devices)
    }

    /// Reads these words.
    fn parse(mut words: impl Iterator<Item = OsString>) -> Self {
        let network = words.next().is_some_and(|word| word == HOST_NETWORK);
        let writes = words.next().is_some_and(|word| word == HOST_FILES);
        Self { network, writes, devices: words.map(PathBuf::from).collect() }
    }

    /// The filter of system calls that they have.
    const fn filter(&self) -> CallFilter {
        CallFilter { alone: !self.network, writes: self.writes }
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
            .args(shared.words())
            .env_clear()
            .envs(open_files::variable())
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
            match self.reply() {
                Ok(Reply::Started(pid)) => {
                    return Pid::from_raw(pid).ok_or_else(SandboxError::garbled);
                }
                Ok(Reply::Over) => return Err(failed.unwrap_or_else(SandboxError::garbled)),
                Ok(reply) => failed = Some(SandboxError::unexpected(reply)),
                // Something that failed has ended it, and nothing was executed.
                Err(lost) => {
                    self.spent = true;
                    return Err(failed.unwrap_or(lost));
                }
            }
        }
    }

    /// The process of the launcher, which all processes of an execution descend from.
    pub(crate) fn process(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Waits until `exec` has ended; returns how: an exit status, or minus a signal.
    pub(crate) fn wait(&mut self) -> Result<i32, SandboxError> {
        match self.reply()? {
            Reply::Ended(status) => Ok(status),
            reply => Err(SandboxError::unexpected(reply).into_lost()),
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
            reply => Err(SandboxError::unexpected(reply).into_lost()),
        }
    }

    fn reply(&mut self) -> Result<Reply, SandboxError> {
        Reply::read(&mut self.output).map_err(|error| self.lost(error))
    }

    /// The reason why it does not answer: the signal that has ended it, if any.
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

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;
    use std::time::Duration;

    use super::*;

    /// A program that answers as a launcher: each start has the next of these answers, and all further ones the last.
    fn answering(answers: &[&str]) -> (tempfile::TempDir, Sandbox) {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("launcher");
        let place = dir.path().display();
        let cases = answers.iter().enumerate().map(|(number, answer)| {
            let is_last = number + 1 == answers.len();
            let pattern = if is_last { "*".to_owned() } else { (number + 1).to_string() };
            format!("{pattern}) {answer} ;;\n")
        });
        let script = format!(
            "#!/bin/sh\nPATH=/usr/bin:/bin\necho >>{place}/starts\ncase $(wc -l <{place}/starts) in\n{}esac\n",
            cases.collect::<String>()
        );
        for (name, reply) in [
            ("ready", Reply::Ready),
            ("over", Reply::Over),
            ("denied", failed("create namespaces", "", Errno::PERM)),
            ("unmounted", failed("mount", "/proc", Errno::PERM)),
            ("exhausted", failed("fork", "", Errno::AGAIN)),
            ("used-up", failed("create namespaces", "", Errno::AGAIN)),
        ] {
            fs::write(dir.path().join(name), reply.frame()).unwrap();
        }
        fs::write(dir.path().join("garbled"), [9, 0, 0, 0, 0, 0, 0, 0, 1, 2]).unwrap();
        let script = script.replace("answer ", &format!("cat {place}/"));
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, Permissions::from_mode(0o700)).unwrap();
        (dir, Sandbox::with_program(program))
    }

    fn failed(doing: &str, path: &str, error: Errno) -> Reply {
        Reply::Failed(doing.to_owned(), path.into(), error.raw_os_error())
    }

    /// The answer, now and later.
    fn probed(patience: Duration, answers: &[&str]) -> [Option<bool>; 2] {
        let (_dir, sandbox) = answering(answers);
        let attempts = StartAttempts::with_patience(patience);
        [(); 2].map(|()| sandbox.probe(&attempts, &|| false).ok())
    }

    #[test]
    fn a_host_has_no_namespaces_if_it_says_so_twice() {
        let alive = "answer ready; read stays";
        let (few, enough) = (Duration::from_millis(30), Duration::from_secs(600));
        assert_eq!(probed(enough, &["answer denied"]), [Some(false); 2]);
        let once = [alive, "answer denied"];
        assert_eq!(probed(enough, &once), [Some(true); 2], "what worked once works");
        assert_eq!(probed(enough, &["answer denied", alive]), [Some(true); 2]);
        for passing in [
            "answer exhausted",
            "answer used-up",
            "answer garbled",
            "answer over",
            "kill -9 $$",
            "exit 1",
        ] {
            assert_eq!(probed(few, &[passing]), [None; 2], "{passing}");
            let recovered = [passing, passing, passing, alive];
            assert_eq!(probed(enough, &recovered), [Some(true); 2], "{passing}");
            let refused = [passing, "answer denied"];
            assert_eq!(probed(enough, &refused), [Some(false); 2], "{passing}");
        }
        let changing = ["answer denied", "answer unmounted", "kill -9 $$"];
        assert_eq!(probed(few, &changing), [None; 2], "not the same twice");
    }

    #[test]
    fn a_launcher_that_cannot_start_proves_nothing_about_the_host() {
        let attempts = StartAttempts::with_patience(Duration::ZERO);
        for program in ["/nonexistent/launcher", "/dev/null", "/"] {
            let sandbox = Sandbox::with_program(program.into());
            assert!(sandbox.probe(&attempts, &|| false).is_err(), "{program}");
            assert!(sandbox.refused().is_none());
        }
    }

    #[test]
    fn only_errors_at_given_files_are_blamed_on_the_execution() {
        let is_about = |path: &str, error: Errno| {
            SandboxError::unexpected(failed("bind", path, error)).is_about_execution()
        };
        assert!(is_about("/data", Errno::NOENT) && is_about("/data", Errno::ACCESS));
        assert!(!is_about("", Errno::ACCESS) && !SandboxError::garbled().is_about_execution());
        for error in PASSING {
            assert!(!is_about("/data", error), "{error}");
        }
    }
}
