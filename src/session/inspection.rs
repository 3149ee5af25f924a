//! A session in which a user looks into a call: its record says what it reads, and its computation's directory what it is.

use std::ffi::OsString;
use std::io::Write;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use super::interrupt::Interrupts;
use super::{Error, RunOptions, find_call, local};
use crate::digest::{Digest, ObjectId};
use crate::evaluate::{Exports, InspectedCall, inspect};
use crate::executor::{Executor, Inspection, Status, TerminalRelay, TurnRequest, is_terminal};
use crate::exit::Exit;
use crate::git::Trees;
use crate::load;
use crate::questions::history::History;
use crate::storage::{Entry, Read, Record, ResultName, Storage, Stored};
use crate::task::name::ComputationName;
use crate::task::workflow::Computation;

/// Why a call cannot be looked into.
#[derive(Debug, thiserror::Error)]
pub enum InspectionError {
    /// No call is named.
    #[error("no call is given")]
    NoCallGiven,
    /// It has neither a result nor a failure.
    #[error("the call {0} has neither succeeded nor failed yet")]
    NoRecord(String),
    /// Its record is that of an earlier version.
    #[error("the record of the failure of {0} does not say which tree its computation has")]
    NoTree(String),
    /// A value that it reads is not in the storage.
    #[error("input {number:02} of {call} is not in the storage: no file has SHA-1 {digest}")]
    NoInput {
        /// Its short name.
        call: String,
        /// The number of the input.
        number: usize,
        /// The digits of the SHA-1 of its contents.
        digest: String,
    },
    /// Its computation's directory cannot be read.
    #[error("the computation of {0} cannot be used: {1}")]
    Computation(String, String),
    /// There is no terminal and no command.
    #[error("a shell needs a terminal, and standard input or output is none")]
    NoTerminal,
    /// Nothing can be isolated on this host.
    #[error("nothing can be isolated on this host")]
    NotIsolated,
    /// The command cannot be executed.
    #[error("{0:?} cannot be executed in the sandbox of {1}: {2}")]
    Execute(OsString, String, String),
}

impl InspectionError {
    /// The exit code for it.
    pub const fn exit(&self) -> Exit {
        match self {
            Self::NoCallGiven | Self::NoRecord(_) | Self::NoTree(_) | Self::NoTerminal => {
                Exit::Malformed
            }
            Self::NotIsolated | Self::NoInput { .. } | Self::Computation(..) => Exit::Missing,
            Self::Execute(..) => Exit::Failed,
        }
    }

    /// Advice for the user, unless there is none.
    pub const fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NoCallGiven => Some("ce log lists calls"),
            Self::NoRecord(_) | Self::NoTree(_) => Some("run it first; ce show --log follows it"),
            Self::NoInput { .. } => Some("run the task again, which makes what is missing"),
            Self::Computation(..) => Some("give the repository of the task by --task"),
            Self::NoTerminal => Some("give a command: ce shell CALL -- ls -l /inputs"),
            Self::NotIsolated => Some("ce doctor says why"),
            Self::Execute(..) => None,
        }
    }
}

/// A storage, and what executes commands in the sandboxes of its calls.
pub struct InspectionSession {
    storage: Arc<Storage>,
    trees: Trees,
    executor: Arc<dyn Executor>,
    _interrupts: Interrupts,
}

impl InspectionSession {
    /// Opens a storage, which must exist. Computations may be exported from the repository of a directory.
    ///
    /// # Errors
    ///
    /// Fails if there is no storage, it cannot be written, signals not be watched, or nothing be isolated here.
    pub fn open(dir: &Path, storage: &Path) -> Result<Self, Error> {
        let options = RunOptions::default();
        Storage::existing(storage)?;
        let storage = Storage::open(storage, options.unrecorded, options.durability)?;
        let executor = local(&options, None, None);
        let interrupts =
            Interrupts::watch(&executor).map_err(|error| Error::Begin(error.into()))?;
        if !executor.isolates() {
            return Err(InspectionError::NotIsolated.into());
        }
        let (storage, trees) = (Arc::new(storage), Trees::new(dir));
        Ok(Self { storage, trees, executor, _interrupts: interrupts })
    }

    /// Finds a call that has succeeded or failed.
    ///
    /// # Errors
    ///
    /// Fails if there is none, or its inputs or its computation are not there.
    pub fn find(&self, text: &str) -> Result<InspectedCall, Error> {
        let name = find_call(&self.storage, text)?;
        let (computation, commit, tree, dirty, inputs) = self.recorded(&name)?;
        let computation = self.computation(&name, (computation, commit, tree, dirty))?;
        let history = History::read(&self.storage)?;
        let mut sources = Vec::with_capacity(inputs.len());
        for (number, digest) in inputs.iter().enumerate() {
            let found = self.value(&history, digest)?;
            let (call, digits) = (name.short(), digest.sha1.full());
            sources.push(found.ok_or(InspectionError::NoInput { call, number, digest: digits })?);
        }
        Ok(InspectedCall { name, computation, sources })
    }

    /// Checks that there is a command, or a terminal for a shell.
    ///
    /// # Errors
    ///
    /// Fails if there is neither.
    pub fn check_terminal(command: &[OsString]) -> Result<(), InspectionError> {
        match command.is_empty() && !is_terminal() {
            true => Err(InspectionError::NoTerminal),
            false => Ok(()),
        }
    }

    /// Executes a command in the sandbox of a call, or the user's shell if there is none.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be executed.
    pub fn execute(
        &self,
        call: &InspectedCall,
        command: &[OsString],
        out: &mut (dyn Write + Send),
    ) -> Result<Status, Error> {
        let begin = |error: std::io::Error| Error::Begin(error.into());
        let relay = is_terminal().then(TerminalRelay::start).transpose().map_err(begin)?;
        let command = match command {
            [] => vec![shell(call)],
            command => command.to_vec(),
        };
        let program = command[0].clone();
        let terminal = relay.as_ref().map(|relay| relay.path.clone());
        let inspection = Inspection { command, terminal };
        let exports = Exports::of_any(&self.storage, &self.trees, &call.computation);
        let execute = || {
            let _turn = self.executor.enter(TurnRequest::default(), true)?;
            inspect((&self.storage, &*self.executor), &exports, call, inspection, out)
        };
        // Every child of the main thread is an orphan.
        let ended = thread::scope(|scope| scope.spawn(execute).join());
        drop(relay);
        let ended = ended.unwrap_or_else(|panic| resume_unwind(panic));
        Ok(ended.map_err(|error| {
            InspectionError::Execute(program, call.name.short(), error.in_full())
        })?)
    }

    /// What the record of a call, or of its failure, says of its computation and its inputs.
    fn recorded(
        &self,
        name: &ResultName,
    ) -> Result<(ComputationName, ObjectId, ObjectId, bool, Vec<Digest>), Error> {
        let entry = Entry::Call(name.clone());
        if let Read::Record(Record::Call(call)) = self.storage.records().read_entry(&entry)? {
            return Ok((call.computation, call.commit, call.tree, call.dirty, call.inputs));
        }
        let prior = self.storage.attempts().prior(name, None).and_then(|prior| prior.failure);
        let failed = prior.ok_or_else(|| InspectionError::NoRecord(name.short()))?;
        let tree = failed.tree.ok_or_else(|| InspectionError::NoTree(name.short()))?;
        Ok((failed.computation, failed.commit, tree, false, failed.inputs))
    }

    /// A file or directory of the storage with these contents, if there is one.
    fn value(&self, history: &History, digest: &Digest) -> Result<Option<Stored>, Error> {
        let Some(subject) = history.maker(digest, None) else { return Ok(None) };
        let stored = self.storage.inputs().literal(&subject.promise.name)?;
        Ok(stored.filter(|stored| stored.digest == *digest))
    }

    /// The computation of a call: its directory is exported, and says what its inputs and outputs are called, and what it may
    /// access.
    fn computation(
        &self,
        call: &ResultName,
        (name, commit, tree, dirty): (ComputationName, ObjectId, ObjectId, bool),
    ) -> Result<Computation, Error> {
        let wrong = |why: String| InspectionError::Computation(call.short(), why);
        let (inputs, outputs, access) = Default::default();
        let checked_out = None;
        let computation =
            Computation { name, commit, tree, dirty, inputs, outputs, access, checked_out };
        let exports = Exports::of_any(&self.storage, &self.trees, &computation);
        let path = exports.exported(&computation).map_err(|error| wrong(error.in_full()))?;
        let (inputs, outputs, access) =
            load::exported(&path).map_err(|problem| wrong(problem.to_string()))?;
        Ok(Computation { inputs, outputs, access, ..computation })
    }
}

/// The user's shell, if it is among the programs that the sandbox shows.
fn shell(call: &InspectedCall) -> OsString {
    let own = std::env::var_os("SHELL").filter(|path| {
        let is_shown = ["/bin", "/usr/bin"].iter().any(|dir| Path::new(path).starts_with(dir));
        is_shown && call.computation.access.root().is_none()
    });
    own.unwrap_or_else(|| "/bin/sh".into())
}

impl Drop for InspectionSession {
    fn drop(&mut self) {
        self.executor.finish();
    }
}
