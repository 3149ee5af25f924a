//! Isolation: executions see and touch what is theirs, and nothing else.
//!
//! A launcher, which is this program started again with a hidden argument, prepares namespaces once
//! and forks executions in them: `launcher`, `number_one`, `system`, `execution` and `root` are its
//! side, and `client` is the other one. `cell` is a value that says what an execution sees, `wire` carries it.
//! `filter` is the system calls that are refused. `attempt`, `kernel` and `probe` try to break out, `explain` says what an execution may have missed.

mod attempt;
mod cell;
mod client;
mod execution;
mod explain;
mod filter;
mod kernel;
mod launcher;
mod loopback;
mod mounts;
mod number_one;
mod privileges;
mod probe;
mod root;
mod system;
mod wire;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Mutex, OnceLock, PoisonError};

use self::cell::Cell;
use self::client::{Launcher, Shared};
use self::mounts::VERIFY;
pub use self::probe::break_outs;
use self::wire::Told;
use crate::access::Rule;
use crate::executor::verified::is_replaced;
use crate::executor::{ExecuteError, Invocation, tail};

/// The hidden first argument that makes this program a launcher.
const LAUNCH: &str = "--launch";

/// The hidden first argument that makes this program try to break out.
const BREAK_OUT: &str = "--break-out";

/// Does what this program was started for by itself, if a hidden first argument says so.
///
/// The process must have one thread yet.
pub fn hidden(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    match arguments.next()?.to_str()? {
        LAUNCH => Some(launcher::launch(arguments)),
        BREAK_OUT => Some(probe::break_out(arguments)),
        _ => None,
    }
}

/// How much of a log is searched for what lacks, in bytes.
const TAIL: u64 = 4000;

/// Why something cannot be isolated.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// A step failed.
    #[error("cannot {}", [doing.as_str(), &path.to_string_lossy()].join(" ").trim_end())]
    Step {
        /// What was being done.
        doing: String,
        /// To which path; empty if to none.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// The launcher cannot be started, or has ended.
    #[error("the launcher does not answer")]
    Lost(#[source] io::Error),
}

impl SandboxError {
    /// What a launcher told in place of what was to be expected.
    fn unexpected(told: Told) -> Self {
        match told {
            Told::Failed(doing, path, errno) => {
                Self::Step { doing, path, source: io::Error::from_raw_os_error(errno) }
            }
            _ => Self::garbled(),
        }
    }

    fn garbled() -> Self {
        Self::Lost(io::ErrorKind::InvalidData.into())
    }

    /// What the user can do about it, if that is known.
    pub fn hint(&self) -> Option<&'static str> {
        let Self::Step { doing, source, .. } = self else { return None };
        let space = source.raw_os_error() == Some(rustix::io::Errno::NOSPC.raw_os_error());
        match doing.as_str() {
            "leave for new namespaces" if space => {
                Some("sysctl user.max_user_namespaces is 0 or used up; raise it")
            }
            "leave for new namespaces" | "write" | "make private the mounts below" => Some(
                "allow user namespaces: sysctl kernel.unprivileged_userns_clone=1 (Debian) or \
                 kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu); in a container, its seccomp \
                 profile",
            ),
            _ => None,
        }
    }
}

/// Launchers: one for each execution at a time, used again and again.
#[derive(Debug)]
pub struct Sandbox {
    /// What is started as a launcher.
    program: PathBuf,
    idle: Mutex<Vec<Launcher>>,
    possible: OnceLock<Result<(), SandboxError>>,
}

impl Default for Sandbox {
    /// Launchers that are this very program, whatever has its name by now.
    fn default() -> Self {
        Self::of("/proc/self/exe".into())
    }
}

impl Sandbox {
    /// Launchers that are a program whose `main` begins with [`hidden`].
    pub fn of(program: PathBuf) -> Self {
        Self { program, idle: Mutex::default(), possible: OnceLock::new() }
    }

    /// Tells why nothing can be isolated on this host, if that has been tried.
    pub fn refused(&self) -> Option<&SandboxError> {
        self.possible.get()?.as_ref().err()
    }

    /// Tries whether anything can be isolated on this host, once.
    pub(super) fn is_possible(&self) -> bool {
        let first = || {
            let launcher = Launcher::start(&self.program, Shared::default())?;
            self.give_back(launcher);
            Ok(())
        };
        self.possible.get_or_init(first).is_ok()
    }

    /// Takes an idle launcher, or starts one.
    pub(super) fn take(&self, invocation: &Invocation) -> Result<Launcher, SandboxError> {
        let shared = Shared::of(&invocation.access);
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let place = idle.iter().position(|launcher| launcher.shared == shared);
        let found = place.map(|place| idle.swap_remove(place));
        drop(idle);
        found.map_or_else(|| Launcher::start(&self.program, shared), Ok)
    }

    /// Ends the launchers that are idle.
    pub(super) fn dismiss(&self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Lets another execution have a launcher.
    pub(super) fn give_back(&self, launcher: Launcher) {
        if launcher.spent {
            return;
        }
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(launcher);
    }
}

/// What an invocation may see.
pub(super) fn cell(invocation: &Invocation) -> Result<Cell, SandboxError> {
    Cell::of(invocation).map_err(|(path, source)| SandboxError::Step {
        doing: "find".to_owned(),
        path,
        source,
    })
}

/// Says which lines of `access` may be missing, as far as what was printed tells.
pub(super) fn lacking(cell: &Cell) -> Option<String> {
    let log = tail(&cell.log(), TAIL).unwrap_or_default();
    hint(&explain::lacking(cell, &String::from_utf8_lossy(&log), Path::exists))
}

/// Says why an execution could not begin.
pub(super) fn refused(cell: &Cell, invocation: &Invocation, error: SandboxError) -> ExecuteError {
    let exec = invocation.tree.path.join("exec");
    match error {
        SandboxError::Step { doing, source, .. } if doing == "start" => {
            let script = tail(&exec, u64::MAX).unwrap_or_default();
            let rule = explain::interpreter(&script)
                .and_then(|path| explain::rule(cell, &path, false, &Path::exists));
            let lacking = hint(rule.as_slice());
            ExecuteError::Start { exec, source, lacking }
        }
        SandboxError::Step { doing, path, source } if doing == "write" && path == cell.log() => {
            ExecuteError::Log { log: path, source }
        }
        SandboxError::Step { doing, path, source } if doing == VERIFY && is_replaced(&source) => {
            ExecuteError::Replaced(path)
        }
        error => ExecuteError::Isolate(error),
    }
}

/// What to try if these lines are missing.
fn hint(rules: &[Rule]) -> Option<String> {
    let words = match rules {
        [] => return None,
        [rule] => {
            format!("its sandbox does not show that; if it needs it, commit the line \"{rule}\"")
        }
        rules => {
            let lines: Vec<String> = rules.iter().map(|rule| format!("\"{rule}\"")).collect();
            let lines = lines.join(", ");
            format!("its sandbox does not show these; if it needs them, commit the lines {lines}")
        }
    };
    Some(words + " in the computation's file access")
}
