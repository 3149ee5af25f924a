//! A session in which a user looks into a call: its record says what it reads, and its computation's directory what it is.

use std::ffi::OsString;
use std::io::Write;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use super::calls::{find_call_and_log, find_call_of, named};
use super::interrupt::Interrupts;
use super::{BeginError, Error, RunOptions, local};
use crate::{CallError, Exports, InspectedCall, KeptDirectory, inspect};
use ce_executor::{
    ExecuteError, Executor, Inspection, Status, TerminalRelay, TurnRequest, is_terminal,
};
use ce_git::Trees;
use ce_history::{History, HistoryError, Subject};
use ce_model::digest::{Digest, ObjectId};
use ce_model::exit::{Exit, Explain};
use ce_model::humanize::quoted;
use ce_model::name::ComputationName;
use ce_model::task::{Computation, Task, Uncommitted};
use ce_storage::{Entry, Record, RecordState, ResultName, Storage, Stored};
use ce_task::load;

/// Why a call cannot be looked into.
#[derive(Debug, thiserror::Error)]
pub enum InspectionError {
    /// No call is named.
    #[error("no call is given")]
    NoCallGiven,
    /// A storage is named, and no call in it.
    #[error("{} is a storage, and no call in it is given", .0.display())]
    NoCallIn(PathBuf),
    /// It has neither a result nor a failure, and its computation is not known.
    #[error(
        "the call {0} has neither succeeded nor failed yet, and the task does not have its computation"
    )]
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
    /// What is made cannot be kept.
    #[error("no directory can be made to keep what is made")]
    Keep(#[source] std::io::Error),
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
    #[error("{program:?} cannot be executed in the sandbox of {call}")]
    Execute {
        /// Its first word.
        program: OsString,
        /// The short name of the call.
        call: String,
        /// Why.
        source: Box<CallError>,
    },
}

impl Explain for InspectionError {
    fn exit(&self) -> Exit {
        match self {
            Self::NoCallGiven
            | Self::NoCallIn(_)
            | Self::NoRecord(_)
            | Self::NoTree(_)
            | Self::NoTerminal => Exit::Malformed,
            Self::NotIsolated | Self::NoInput { .. } | Self::Computation(..) => Exit::Missing,
            Self::Keep(_) | Self::Execute { .. } => Exit::Failed,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::NoCallGiven => "ce log lists calls",
            Self::NoCallIn(storage) => {
                let storage = quoted(&storage.to_string_lossy());
                return Some(format!("give a call after it; ce log {storage} lists calls"));
            }
            Self::NoRecord(_) => "give the task by --task, or wait until it has ended",
            Self::NoTree(_) => "run it again",
            Self::NoInput { .. } => "run the task again, which makes what is missing",
            Self::Computation(..) => "give the repository of the task by --task",
            Self::NoTerminal => "give a command: ce shell CALL -- ls -l /inputs",
            Self::NotIsolated => "ce doctor says why",
            Self::Keep(_) => "set TMPDIR to a directory that can be written",
            Self::Execute { source, .. } => match **source {
                CallError::Execute(ExecuteError::Start { .. }) => {
                    "give a program that the sandbox shows: one in /usr, or in the root that access \
                     names, or below a path that access grants"
                }
                _ => return source.hint(),
            },
        };
        Some(hint.to_owned())
    }
}

/// A storage, and what executes commands in the sandboxes of its calls.
pub struct InspectionSession {
    /// The directory of the task.
    dir: PathBuf,
    storage: Arc<Storage>,
    trees: Trees,
    executor: Arc<dyn Executor>,
    interrupts: Interrupts,
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
        let interrupts = Interrupts::watch(&executor).map_err(BeginError::new)?;
        if !executor.isolates() {
            return Err(InspectionError::NotIsolated.into());
        }
        let (storage, trees) = (Arc::new(storage), Trees::new(dir));
        Ok(Self { dir: dir.to_owned(), storage, trees, executor, interrupts })
    }

    /// The signal that interrupted it, if any.
    pub fn interrupted_by(&self) -> Option<u8> {
        self.interrupts.caught()
    }

    /// Finds a call: one that has succeeded or failed, or one of a computation of the task, by its whole name; or the only one of a
    /// computation or with a label. What it makes is kept, if it is to be.
    ///
    /// # Errors
    ///
    /// Fails if there is none, its inputs or its computation are not there, or no directory for what it makes can be made.
    pub fn find(&self, text: &str, keeps: bool) -> Result<InspectedCall, Error> {
        let mut log = None;
        let found = find_call_and_log(&self.storage, text, &mut log);
        let (name, unknown) = match (found, named(&self.storage, text).next()) {
            (Ok(name), _) => {
                let unknown = InspectionError::NoRecord(name.short()).into();
                (name, unknown)
            }
            (Err(unknown), Some(name)) => (name, unknown),
            (Err(unknown), None) => {
                let name = find_call_of(&self.storage, self.task().as_ref(), text, log)?;
                (name.ok_or(unknown)?, HistoryError::NoCall(text.to_owned()).into())
            }
        };
        let history = History::read(&self.storage)?;
        let (computation, digests) = match self.recorded(&name)? {
            Some((computation, inputs)) => {
                (self.computation(&name, computation)?, inputs.into_iter().map(Ok).collect())
            }
            None => match self.in_task(&name) {
                Some(computation) => (computation, digests(&history, &name)),
                None => return Err(unknown),
            },
        };
        let sources = digests.into_iter().enumerate().map(|(number, digest)| {
            let found = digest.as_ref().ok().map(|it| self.value(&history, it)).transpose()?;
            let call = name.short();
            let digest = digest.map_or_else(|digits| digits, |digest| digest.sha1.full());
            let missing = InspectionError::NoInput { call, number, digest };
            found.flatten().ok_or_else(|| missing.into())
        });
        let sources = sources.collect::<Result<Vec<Stored>, Error>>()?;
        let kept = keeps.then(|| KeptDirectory::new(&computation)).transpose();
        let kept = kept.map_err(InspectionError::Keep)?;
        Ok(InspectedCall { name, computation, sources, kept })
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
        let relay = is_terminal().then(TerminalRelay::start).transpose();
        let relay = relay.map_err(BeginError::new)?;
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
        ended.map_err(|error| match error {
            CallError::Storage(error) => error.into(),
            error => {
                let (call, source) = (call.name.short(), Box::new(error));
                InspectionError::Execute { program, call, source }.into()
            }
        })
    }

    /// What the record of a call, or of its failure, says of its computation and its inputs.
    fn recorded(
        &self,
        name: &ResultName,
    ) -> Result<Option<(RecordedComputation, Vec<Digest>)>, Error> {
        let entry = Entry::Call(name.clone());
        if let RecordState::Valid(Record::Call(call)) = self.storage.records().read_entry(&entry)? {
            let computation = (call.computation, call.commit, call.tree, call.dirty);
            return Ok(Some((computation, call.inputs)));
        }
        let prior = self.storage.attempts().prior(name, None).and_then(|prior| prior.failure);
        let Some(failed) = prior else { return Ok(None) };
        let tree = failed.tree.ok_or_else(|| InspectionError::NoTree(name.short()))?;
        Ok(Some(((failed.computation, failed.commit, tree, false), failed.inputs)))
    }

    /// The task, if there is one.
    fn task(&self) -> Option<Task> {
        Some(load::task(&self.dir, Uncommitted::Evaluate, None).ok()?.task)
    }

    /// The computation of a call, if the task has it in this version.
    fn in_task(&self, name: &ResultName) -> Option<Computation> {
        let call = name.short();
        let mut computations = self.task()?.computations.into_iter();
        computations.find(|it| {
            let directory = format!("c_{}/{}/", it.name, it.version());
            call.starts_with(&directory) && name.inputs().count() == it.inputs.len()
        })
    }

    /// A file or directory of the storage with these contents, if there is one: a result, or a member of one.
    fn value(&self, history: &History, digest: &Digest) -> Result<Option<Stored>, Error> {
        let stored = |subject: Subject<'_>| {
            self.storage.announce_roots([subject.promise.name.clone()])?;
            self.storage.inputs().literal(&subject.promise.name)
        };
        if let Some(subject) = history.maker(digest, None) {
            return Ok(stored(subject)?.filter(|stored| stored.digest == *digest));
        }
        for directory in history.directories() {
            if let Some(directory) = stored(directory)?
                && let Some(member) = self
                    .storage
                    .values()
                    .member_with(&self.storage.values().open_value(&directory)?, digest)
            {
                return Ok(Some(member));
            }
        }
        Ok(None)
    }

    /// The computation of a call: its directory is exported, and says what its inputs and outputs are called, and what it may
    /// access.
    fn computation(
        &self,
        call: &ResultName,
        (name, commit, tree, dirty): RecordedComputation,
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

/// The computation of a record: its name, its commit, its tree, and whether it had uncommitted changes.
type RecordedComputation = (ComputationName, ObjectId, ObjectId, bool);

/// The recorded contents with the digits in the name of a call; the digits themselves if there are none, or several.
fn digests(history: &History, name: &ResultName) -> Vec<Result<Digest, String>> {
    let one = |digits: &str| {
        // A directory has a `d` after all digits.
        let known = history.with_digits(digits.get(..40).unwrap_or(digits));
        match known[..] {
            [digest] => Ok(*digest),
            _ => Err(digits.to_owned()),
        }
    };
    name.inputs().map(one).collect()
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
