//! A session for suspended calls: they are asked how they stand, cancelled, and forgotten.

use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use super::Error;
use super::call_inspection::CallNameError;
use super::interrupts::InterruptibleExecutor;
use crate::{CallError, SuspensionAnswer, ask_suspended};
use ce_executor::{CallProgram, ExecuteError, HostTurn, Status, TurnRequest};
use ce_model::exit::Explain;
use ce_storage::{Holder, Lease, Locator, ResultName, Storage, StorageError, Suspension};

/// The reason why nothing was done to a suspended call.
#[derive(Debug, thiserror::Error, Explain)]
pub enum SuspensionError {
    /// It is not suspended.
    #[error("the call {0} is not suspended")]
    #[hint("ce status lists suspended calls")]
    NotSuspended(String),
    /// A run continues it.
    #[error("the call {call} is being executed by {holder}")]
    #[exit(Failed)]
    #[hint("interrupt that run, or wait for its end")]
    Held {
        /// Its short name.
        call: String,
        /// The run.
        holder: Holder,
    },
    /// Its `cancel` has failed.
    #[error("the call {call} is not cancelled, because its program cancel failed: {status}{}", said(line.as_deref()))]
    #[exit(Failed)]
    #[hint("end what it has started by hand, then ce cancel --forget removes its directory")]
    Cancel {
        /// Its short name.
        call: String,
        /// The status with which its `cancel` ended.
        status: Status,
        /// The first line that it has printed.
        line: Option<String>,
    },
    /// Its program cannot be executed.
    #[error("the call {call} cannot be asked or cancelled")]
    #[exit(Failed)]
    #[hint("end what it has started by hand, then ce cancel --forget removes its directory")]
    Execute {
        /// Its short name.
        call: String,
        /// The cause.
        source: CallError,
    },
}

fn said(line: Option<&str>) -> String {
    line.map(|line| format!(": {line}")).unwrap_or_default()
}

/// A storage with suspended calls, and what executes their programs.
pub struct SuspensionSession {
    storage: Arc<Storage>,
    execution: InterruptibleExecutor,
}

impl SuspensionSession {
    /// Opens a storage, which must exist.
    ///
    /// # Errors
    ///
    /// Fails if there is no storage, it cannot be written, or signals not be watched.
    pub fn open(storage: &Path) -> Result<Self, Error> {
        let (storage, execution) = InterruptibleExecutor::beside_runs(storage)?;
        Ok(Self { storage, execution })
    }

    /// The storage.
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// The signal that interrupted it, if any.
    pub fn interrupted_by(&self) -> Option<u8> {
        self.execution.interrupted_by()
    }

    /// Asks a suspended call how it stands; `None` if it has no program for that.
    ///
    /// # Errors
    ///
    /// Fails if the program cannot be executed as its `exec` was.
    pub fn ask(&self, suspension: &Suspension) -> Result<Option<SuspensionAnswer>, CallError> {
        let _turn = self.turn()?;
        self.execute(suspension, CallProgram::Status)
    }

    /// Takes a turn among the runs of this host. Who waits for it has no lease.
    fn turn(&self) -> Result<Option<HostTurn>, CallError> {
        Ok(self.execution.executor.enter(TurnRequest::default(), true)?)
    }

    /// Executes a program of a suspended call. Every child of the main thread is an orphan, so another thread does it.
    fn execute(
        &self,
        suspension: &Suspension,
        program: CallProgram,
    ) -> Result<Option<SuspensionAnswer>, CallError> {
        let (storage, executor) = (&*self.storage, &*self.execution.executor);
        thread::scope(|scope| {
            let asking = || ask_suspended(storage, executor, suspension, program);
            match thread::Builder::new().spawn_scoped(scope, asking) {
                Ok(asking) => asking.join(),
                Err(error) => Ok(Err(ExecuteError::no_thread(&error).into())),
            }
        })
        .unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Returns the calls that are named: by their short names, files, or places.
    ///
    /// # Errors
    ///
    /// Fails with the first one that is not suspended.
    pub fn find(&self, calls: &[PathBuf]) -> Result<Vec<Suspension>, Error> {
        let mut found = Vec::with_capacity(calls.len());
        for path in calls {
            let name = Locator::new(&self.storage).find(path, |name| {
                ResultName::of_suspended(name).or_else(|| ResultName::of_call(name))
            });
            let name = name.ok_or_else(|| CallNameError::NoCall(path.display().to_string()))?;
            let suspension = self.storage.suspensions().read(&name)?;
            found.push(suspension.ok_or_else(|| SuspensionError::NotSuspended(name.short()))?);
        }
        Ok(found)
    }

    /// Splits suspended calls into this user's own and calls of others.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read.
    pub fn own_and_others(
        &self,
        calls: impl IntoIterator<Item = Suspension>,
    ) -> Result<(Vec<Suspension>, Vec<Suspension>), Error> {
        let suspensions = self.storage.suspensions();
        let (mut own, mut others) = (Vec::new(), Vec::new());
        for call in calls {
            if suspensions.is_own(&call.name)? { own.push(call) } else { others.push(call) }
        }
        Ok((own, others))
    }

    /// Ends the processes that a suspended call has started, if it has a program for that, and removes its directory.
    /// Returns the first line that the program has printed.
    ///
    /// # Errors
    ///
    /// Fails if a run executes the call, or the program fails: then nothing is removed.
    pub fn cancel(&self, suspension: &Suspension) -> Result<Option<String>, Error> {
        let call = suspension.name.short();
        let _turn = match self.turn() {
            Ok(turn) => turn,
            Err(source) => return Err(SuspensionError::Execute { call, source }.into()),
        };
        let (_lease, suspension) = self.hold(suspension)?;
        let line = match self.execute(&suspension, CallProgram::Cancel) {
            Ok(Some(SuspensionAnswer { status: Status::Exited(0), line })) => line,
            Ok(Some(SuspensionAnswer { status, line })) => {
                return Err(SuspensionError::Cancel { call, status, line }.into());
            }
            Ok(None) => None,
            Err(source) => return Err(SuspensionError::Execute { call, source }.into()),
        };
        self.storage.suspensions().remove(&suspension)?;
        self.storage.flush()?;
        Ok(line)
    }

    /// Removes the directory of a suspended call, and leaves its processes alone.
    ///
    /// # Errors
    ///
    /// Fails if a run executes the call, or the storage cannot be written.
    pub fn forget(&self, suspension: &Suspension) -> Result<(), Error> {
        let (_lease, suspension) = self.hold(suspension)?;
        self.storage.suspensions().remove(&suspension)?;
        Ok(self.storage.flush()?)
    }

    /// Acquires the lease of a call, and reads again how it stands.
    fn hold(&self, suspension: &Suspension) -> Result<(Lease<'_>, Suspension), Error> {
        let name = &suspension.name;
        let lease = self.storage.leases().acquire(name);
        let lease = lease.map_err(|holder| SuspensionError::Held { call: name.short(), holder })?;
        let again: Result<_, StorageError> = self.storage.suspensions().read(name);
        match again? {
            Some(again) => Ok((lease, again)),
            None => Err(SuspensionError::NotSuspended(name.short()).into()),
        }
    }
}

impl Drop for SuspensionSession {
    fn drop(&mut self) {
        self.execution.executor.finish();
    }
}
