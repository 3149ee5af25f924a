//! Looking into a call: finding it, whether it has succeeded, failed or is executed now; its log; and a session in
//! which a user looks into its sandbox. Its record has its inputs, and the directory of its computation its program.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::interrupts::InterruptibleExecutor;
use super::{BeginError, Error, OutputError, Stop};
use crate::{CallError, Exports, InspectedCall, KeptDirectory, inspect};
use ce_executor::{ExecuteError, Inspection, Status, TerminalRelay, TurnRequest, is_terminal};
use ce_git::Trees;
use ce_history::{Filter, History, HistoryError, MIN_DIGITS, Past, Subject, log};
use ce_model::access::Access;
use ce_model::digest::{Digest, ObjectId};
use ce_model::exit::Explain;
use ce_model::humanize::quoted;
use ce_model::name::ComputationName;
use ce_model::plan::computations_named;
use ce_model::resources::Resources;
use ce_model::task::{Computation, Task, Uncommitted};
use ce_storage::records::{CallRecord, FailureRecord};
use ce_storage::{Entry, Locator, Record, RecordState, ResultName, Storage, Stored};
use ce_task::load;

/// The reason why a text names no call or job.
#[derive(Debug, thiserror::Error, Explain)]
pub enum CallNameError {
    /// A text names no call.
    #[error("{0} is not a call of the storage")]
    #[hint(
        "give a file in c_NAME/CCID/NN/, or c_NAME/CCID/INPUTS; ce show prints what made a file"
    )]
    NoCall(String),
    /// A text names no job.
    #[error("{0} is not a job of the storage")]
    #[hint("give one of its files in t_NAME/CCID/NN/, or t_NAME/CCID/INPUTS")]
    NoJob(String),
}

/// Returns the call that is named by its short name, or by the path or name of one of its files. It need not be there.
///
/// # Errors
///
/// Fails if it is not such a name.
pub fn named_call(storage: &Storage, path: &Path) -> Result<ResultName, CallNameError> {
    Locator::new(storage)
        .find(path, ResultName::of_call)
        .ok_or_else(|| CallNameError::NoCall(path.display().to_string()))
}

/// Returns the job that is named in the same way.
///
/// # Errors
///
/// Fails if it is not such a name.
pub fn named_job(storage: &Storage, path: &Path) -> Result<ResultName, CallNameError> {
    Locator::new(storage)
        .find(path, ResultName::of_job)
        .ok_or_else(|| CallNameError::NoJob(path.display().to_string()))
}

/// Returns the call that is named by its short name, the path or name of one of its files, or the first digits of its inputs in that
/// name, if it is known or executed now.
///
/// # Errors
///
/// Fails if no call or several match, or the storage cannot be read.
pub fn find_call(storage: &Storage, text: &str) -> Result<ResultName, Error> {
    find_call_and_log(storage, text, &mut None)
}

/// Finds a call as [`find_call`] does. If the log was read for that, the caller gets it.
fn find_call_and_log(
    storage: &Storage,
    text: &str,
    read: &mut Option<Vec<Past>>,
) -> Result<ResultName, Error> {
    for name in named(storage, text) {
        // In this order: a call that ends between the two looks is known at the second.
        if storage.leases().holder(&name).is_some() || storage.logs().is_known(&name)? {
            return Ok(name);
        }
    }
    let unknown = HistoryError::NoCall(text.to_owned());
    let digits = text.to_ascii_lowercase();
    if digits.is_empty() || !digits.bytes().all(|it| it.is_ascii_hexdigit() || it == b'_') {
        return Err(unknown.into());
    }
    if digits.len() < MIN_DIGITS {
        return Err(HistoryError::TooShort(digits).into());
    }
    let executed = storage.logs().executed_calls()?;
    let log = read.insert(log(storage, &|_| None, &Filter::default())?.0);
    let mut found: Vec<String> = log.iter().map(|past| past.name.clone()).chain(executed).collect();
    found.retain(|name| name.rsplit('/').next().is_some_and(|it| it.starts_with(&digits)));
    found.sort_unstable();
    found.dedup();
    match &found[..] {
        [name] => Ok(ResultName::of_short(name).ok_or(unknown)?),
        [] => Err(unknown.into()),
        _ => Err(HistoryError::Calls { digits, found }.into()),
    }
}

/// Returns the only known call with a name that `ce run --only` accepts: the name of a computation, or the labels that
/// lead to a call. The task says which computations are meant. Calls of the task's versions come first, and then those
/// of any version, as for a computation that the task does not have. `None` if there is no such computation. Reads the
/// log unless that was `read`.
///
/// # Errors
///
/// Fails if several calls have it, or may be another call than the labels lead to, or none does and the task has the computation, or
/// the storage cannot be read.
fn find_call_of(
    storage: &Storage,
    task: Option<&Task>,
    text: &str,
    read: Option<Vec<Past>>,
) -> Result<Option<ResultName>, Error> {
    let named = task.map(|task| computations_named(task, text));
    let (computations, is_shared) = named.unwrap_or_default();
    // The texts among the inputs of each call.
    let mut all: BTreeMap<String, String> = BTreeMap::new();
    for name in storage.logs().executed_calls()? {
        all.insert(name, String::new());
    }
    let log = match read {
        Some(log) => log,
        None => log(storage, &|_| None, &Filter::default())?.0,
    };
    for past in log {
        let texts = past.texts.iter().map(|(name, text)| format!(" {name}={text}")).collect();
        all.insert(past.name, texts);
    }
    let mut prefixes: Vec<String> =
        computations.iter().map(|it| format!("c_{}/{}/", it.name, it.version())).collect();
    let mut found = begin_with(&all, &prefixes);
    if found.is_empty() {
        prefixes = computations.iter().map(|it| format!("c_{}/", it.name)).collect();
        if prefixes.is_empty() {
            prefixes.push(format!("c_{text}/"));
        }
        found = begin_with(&all, &prefixes);
    }
    let text = text.to_owned();
    match &found[..] {
        [] if computations.is_empty() => return Ok(None),
        [] => return Err(HistoryError::NoCall(text).into()),
        [(name, _)] if !is_shared => return Ok(ResultName::of_short(name)),
        _ => {}
    }
    let found = found.into_iter().map(|(name, texts)| format!("{name}{texts}")).collect();
    if !is_shared {
        return Err(HistoryError::CallsOf { text, found }.into());
    }
    let computations: Vec<&str> = computations.iter().map(|it| it.name.as_str()).collect();
    let computation = computations.join(", ");
    Err(HistoryError::SharedComputation { label: text, computation, found }.into())
}

/// The calls whose names begin with one of these, and their texts.
fn begin_with<'a>(
    calls: &'a BTreeMap<String, String>,
    prefixes: &[String],
) -> Vec<(&'a String, &'a String)> {
    let mut found: Vec<_> = calls.iter().collect();
    found.retain(|(name, _)| prefixes.iter().any(|prefix| name.starts_with(prefix)));
    found
}

/// The calls that a text may be the name of, or the path or name of a file of.
pub(super) fn named(storage: &Storage, text: &str) -> impl Iterator<Item = ResultName> {
    let names = Locator::new(storage).names(Path::new(text)).collect::<Vec<_>>();
    names.into_iter().filter_map(|name| ResultName::of_call_file(&name))
}

/// The pause between two looks at a log.
const PAUSE: Duration = Duration::from_millis(50);

/// Prints the log of a call. With `follows`, continues until no run executes it any more, or the user asks to stop. The
/// log is read from the storage, so the execution may be on another host.
///
/// # Errors
///
/// Fails if nothing is known of the call, the storage cannot be read, or the output not be written.
pub fn print_log(
    storage: &Storage,
    name: &ResultName,
    follows: bool,
    stop: &Stop,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let (mut execution, mut printed) = (None, 0);
    let mut is_known = false;
    loop {
        let held = storage.leases().holder(name).is_some();
        let running = storage.logs().running_log(name)?.filter(|_| held);
        if let Some((number, log)) = &running {
            if execution.as_ref().is_some_and(|known| known != number) {
                printed = 0;
            }
            execution = Some(number.clone());
            printed += copy(storage, log, printed, out)?;
        }
        is_known |= held;
        if stop.caught().is_some() {
            return Ok(());
        }
        if !(held && follows) {
            if running.is_none() || follows {
                break;
            }
            return Ok(());
        }
        thread::sleep(PAUSE);
    }
    match storage.logs().kept_log(name)? {
        Some(log) => copy(storage, &log, printed, out).map(drop),
        None if is_known || storage.logs().is_known(name)? => Ok(()),
        None => Err(HistoryError::NoCall(name.short()).into()),
    }
}

/// Prints a log from a byte on. Returns the number of printed bytes.
fn copy(storage: &Storage, log: &str, from: u64, out: &mut dyn Write) -> Result<u64, Error> {
    let mut copied = 0;
    loop {
        let piece = storage.logs().read_log(log, from + copied)?;
        if piece.is_empty() {
            out.flush().map_err(OutputError)?;
            return Ok(copied);
        }
        out.write_all(&piece).map_err(OutputError)?;
        copied += piece.len() as u64;
    }
}

/// The reason why a call cannot be looked into.
#[derive(Debug, thiserror::Error, Explain)]
pub enum InspectionError {
    /// No call is named.
    #[error("no call is given")]
    #[hint("ce log lists calls")]
    NoCallGiven,
    /// A storage is named, and no call in it.
    #[error("{} is a storage, and no call in it is given", .0.display())]
    #[hint("give a call after it; ce log {} lists calls", quoted(&_0.to_string_lossy()))]
    NoCallIn(PathBuf),
    /// It has neither a result nor a failure, and its computation is not known.
    #[error(
        "the call {0} has neither succeeded nor failed yet, and the task does not have its computation"
    )]
    #[hint("give the task by --task, or wait until it has ended")]
    NoRecord(String),
    /// An earlier version of this program made its record.
    #[error("the record of the failure of {0} does not say which tree its computation has")]
    #[hint("run it again")]
    NoTree(String),
    /// A value that it reads is not in the storage.
    #[error("input {number:02} of {call} is not in the storage: no file has SHA-1 {digest}")]
    #[exit(Missing)]
    #[hint("run the task again, which makes what is missing")]
    NoInput {
        /// Its short name.
        call: String,
        /// The number of the input.
        number: usize,
        /// The digits of the SHA-1 of its contents.
        digest: String,
    },
    /// The outputs cannot be kept.
    #[error("no directory can be made for the outputs")]
    #[exit(Failed)]
    #[hint("set TMPDIR to a directory that can be written")]
    Keep(#[source] std::io::Error),
    /// Its computation's directory cannot be read.
    #[error("the computation of {0} cannot be used: {1}")]
    #[exit(Missing)]
    #[hint("give the repository of the task by --task")]
    Computation(String, String),
    /// There is neither a terminal nor a command.
    #[error("a shell needs a terminal: standard input or output is not one")]
    #[hint("give a command: ce shell CALL -- ls -l /inputs")]
    NoTerminal,
    /// Nothing can be isolated on this host.
    #[error("nothing can be isolated on this host")]
    #[exit(Missing)]
    #[hint("ce doctor says why")]
    NotIsolated,
    /// The command cannot be executed.
    #[error("{program:?} cannot be executed in the sandbox of {call}")]
    #[exit(Failed)]
    #[hint(hint_for_command(source))]
    Execute {
        /// Its first word.
        program: OsString,
        /// The short name of the call.
        call: String,
        /// The cause.
        source: Box<CallError>,
    },
}

/// Returns what to try after a command could not be executed in a sandbox.
fn hint_for_command(source: &CallError) -> Option<String> {
    if let CallError::Execute(ExecuteError::Start { .. }) = source {
        let shown = "give a program that the sandbox shows: one in /usr, or in the root that access \
                     names, or below a path that access grants";
        return Some(shown.to_owned());
    }
    source.hint()
}

/// A storage, and what executes commands in the sandboxes of its calls.
pub struct InspectionSession {
    /// The directory of the task.
    dir: PathBuf,
    storage: Arc<Storage>,
    trees: Trees,
    execution: InterruptibleExecutor,
}

impl InspectionSession {
    /// Opens a storage, which must exist. Computations may be exported from the repository of a directory.
    ///
    /// # Errors
    ///
    /// Fails if there is no storage, it cannot be written, signals not be watched, or nothing be isolated here.
    pub fn open(dir: &Path, storage: &Path) -> Result<Self, Error> {
        let (storage, execution) = InterruptibleExecutor::beside_runs(storage)?;
        if !execution.executor.isolates() {
            return Err(InspectionError::NotIsolated.into());
        }
        Ok(Self { dir: dir.to_owned(), storage, trees: Trees::new(dir), execution })
    }

    /// The signal that interrupted it, if any.
    pub fn interrupted_by(&self) -> Option<u8> {
        self.execution.interrupted_by()
    }

    /// Finds a call: one that has succeeded or failed, or one of a computation of the task, by its whole name; or the
    /// only one of a computation or with a label. Its outputs are kept if `keeps`.
    ///
    /// # Errors
    ///
    /// Fails if no call matches, its inputs or its computation are not there, or the directory for its outputs cannot
    /// be made.
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
        let mut resources = Resources::default();
        let (computation, digests) = match self.recorded(&name)? {
            Some((computation, inputs)) => {
                // What it asked for is told, and not limited.
                resources = computation.resources.told();
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
        Ok(InspectedCall { name, computation, sources, resources, kept })
    }

    /// Checks that there is a command, or a terminal for a shell.
    ///
    /// # Errors
    ///
    /// Fails if there is neither.
    pub fn check_terminal(command: &[OsString]) -> Result<(), InspectionError> {
        if command.is_empty() && !is_terminal() { Err(InspectionError::NoTerminal) } else { Ok(()) }
    }

    /// Executes a command in the sandbox of a call, or the user's shell if the command is empty.
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
        // Every child of the main thread is an orphan.
        let ended = thread::scope(|scope| {
            let executing = || {
                let executor = &*self.execution.executor;
                let _turn = executor.enter(TurnRequest::default(), true)?;
                inspect(&self.storage, executor, &exports, call, inspection, out)
            };
            match thread::Builder::new().spawn_scoped(scope, executing) {
                Ok(executing) => executing.join(),
                Err(error) => Ok(Err(ExecuteError::no_thread(&error).into())),
            }
        });
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

    /// Returns the computation and the inputs of a call, from its record or the record of its failure.
    fn recorded(
        &self,
        name: &ResultName,
    ) -> Result<Option<(RecordedComputation, Vec<Digest>)>, Error> {
        let entry = Entry::Call(name.clone());
        if let RecordState::Valid(Record::Call(call)) = self.storage.records().read_entry(&entry)? {
            let resources = Resources::of_lines(call.origin.resources());
            let CallRecord { computation: name, commit, tree, dirty, inputs, .. } = call;
            let computation = RecordedComputation { name, commit, tree, dirty, resources };
            return Ok(Some((computation, inputs)));
        }
        let prior = self.storage.attempts().prior(name, None).and_then(|prior| prior.failure);
        let Some(failed) = prior else { return Ok(None) };
        let tree = failed.tree.ok_or_else(|| InspectionError::NoTree(name.short()))?;
        let FailureRecord { computation: name, commit, inputs, .. } = failed;
        let (dirty, resources) = (false, Resources::default());
        Ok(Some((RecordedComputation { name, commit, tree, dirty, resources }, inputs)))
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
        if let Some(subject) = history.maker(digest, None) {
            return Ok(self.stored(subject)?.filter(|stored| stored.digest == *digest));
        }
        for directory in history.directories() {
            if let Some(directory) = self.stored(directory)?
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

    /// A result, which is announced to stay, if it is in the storage.
    fn stored(&self, subject: Subject<'_>) -> Result<Option<Stored>, Error> {
        let file = subject.file();
        self.storage.gc_roots().announce([file.clone()])?;
        Ok(self.storage.inputs().literal(&file)?)
    }

    /// The computation of a call. Its directory is exported, and has the names of its inputs and outputs, and its
    /// access.
    fn computation(
        &self,
        call: &ResultName,
        recorded: RecordedComputation,
    ) -> Result<Computation, Error> {
        let RecordedComputation { name, commit, tree, dirty, .. } = recorded;
        let computation = Computation {
            name,
            commit,
            tree,
            dirty,
            inputs: Vec::new(),
            outputs: Vec::new(),
            access: Access::default(),
            checked_out: None,
            file: None,
        };
        let exports = Exports::of_any(&self.storage, &self.trees, &computation);
        let path = exports
            .exported(&computation)
            .map_err(|error| InspectionError::Computation(call.short(), error.in_full()))?;
        let (inputs, outputs, access) = load::exported(&path)
            .map_err(|problem| InspectionError::Computation(call.short(), problem.to_string()))?;
        Ok(Computation { inputs, outputs, access, ..computation })
    }
}

/// The computation of a record.
struct RecordedComputation {
    name: ComputationName,
    commit: ObjectId,
    tree: ObjectId,
    /// Whether it had uncommitted changes.
    dirty: bool,
    /// What it asked for, if that is recorded.
    resources: Resources,
}

/// The recorded contents with the digits in the name of a call; the digits themselves if no contents or several match.
fn digests(history: &History, name: &ResultName) -> Vec<Result<Digest, String>> {
    let mut digests = Vec::new();
    for digits in name.inputs() {
        // A directory has a `d` after all digits.
        let known = history.with_digits(digits.get(..40).unwrap_or(digits));
        digests.push(match known[..] {
            [digest] => Ok(*digest),
            _ => Err(digits.to_owned()),
        });
    }
    digests
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
        self.execution.executor.finish();
    }
}
