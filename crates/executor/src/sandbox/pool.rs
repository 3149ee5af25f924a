//! The sandbox of an executor: a pool of launchers, and what an execution in one may have missed.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use super::client::{Launcher, Shared};
use super::error::SandboxError;
use super::explain;
use super::mounts::VERIFY;
use super::spec::SandboxSpec;
use crate::files::{HEAD, TAIL, head, is_replaced, tail};
use crate::interpreter::interpreter;
use crate::invocation::Invocation;
use crate::outcome::ExecuteError;
use ce_model::task::access::Rule;

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
    /// Launchers that are this very program, whatever has its name by now.
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
                let start = || Launcher::start(&self.program, Shared::default());
                let mut started = start();
                for _ in 1..STARTS {
                    // Somebody may have killed it, which says nothing of this host.
                    if matches!(started, Err(SandboxError::Lost(_))) {
                        started = start();
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
        let shared = Shared::of(&invocation.access);
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

    fn take_idle(&self, shared: &Shared) -> Option<Launcher> {
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

/// Returns the lines that may be missing in `access`, as far as the log shows.
pub(crate) fn lacking(spec: &SandboxSpec) -> Vec<Rule> {
    let log = tail(&spec.log(), TAIL).unwrap_or_default();
    explain::lacking(spec, &String::from_utf8_lossy(&log), Path::exists)
}

/// Returns why an execution could not begin.
pub(crate) fn refused(
    spec: &SandboxSpec,
    invocation: &Invocation,
    error: SandboxError,
) -> ExecuteError {
    let exec = invocation.executable();
    match error {
        SandboxError::Step { doing, source, .. } if doing == "start" => {
            let script = head(&exec, HEAD).unwrap_or_default();
            // A root of its own has its own interpreters.
            let named = interpreter(&script).filter(|_| spec.root.is_none());
            let lacking = named.map(|path| explain::installations(spec, &path));
            let lacking = lacking.unwrap_or_default();
            ExecuteError::Start { program: invocation.program_words(), exec, source, lacking }
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
