//! Launching programs of computations: `exec`, the other programs of a suspended call, and a user's programs for
//! looking into a call.
//!
//! All purposes share one way: inputs are checked, the directory of the computation is exported, a stage is made, and
//! an invocation tells an executor what to do. They judge the end of an execution in the same way, too.

use std::collections::HashSet;
use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use super::hint::Scene;
use super::ticket::stored_value;
use super::{CallError, Exports, WorkerQueue};
use ce_executor::{
    CallProgram, Completion, Ended, ExecuteError, Executor, Failed, HostTurn, InputFile,
    Inspection, Invocation, Isolation, OutputFile, SUSPENDED, Span, Status, Usage, VerifiedPath,
    note_unwritten,
};
use ce_files::state::SecretKey;
use ce_model::access::{InputLabel, Rule};
use ce_model::name::{self, is_directory, numbered};
use ce_model::resources::Resources;
use ce_model::task::Computation;
use ce_storage::records::{Execution, HostKind, NOT_ISOLATED, SuspensionRecord, machine};
use ce_storage::{LOG, ResultName, Stage, Storage, StorageError, Stored, Suspension, WritableArea};

/// The longest time that a program has to say how a suspended call stands, or to cancel it.
const LIMIT: Duration = Duration::from_secs(60);

/// The purpose of an execution of a program.
#[derive(Clone, Copy)]
pub(super) enum Purpose<'a> {
    /// `exec` makes outputs that are to be published under this name. A call that may be suspended has a place.
    Publish(&'a ResultName, Option<&'a Suspension>),
    /// `exec` makes outputs that are compared with the result of the call.
    Compare,
    /// A user looks into a call by a command in place of `exec`, and may keep what that makes.
    Look(Option<&'a KeptDirectory>),
    /// A program beside `exec` says how a suspended call stands, or cancels it.
    Ask(CallProgram, &'a Suspension),
}

/// A program of a computation that is to be executed.
#[derive(Clone, Copy)]
pub(super) struct LaunchRequest<'a> {
    pub(super) name: &'a ResultName,
    pub(super) computation: &'a Computation,
    /// The files that it reads.
    pub(super) sources: &'a [Stored],
    /// The resources that the call requests.
    pub(super) resources: &'a Resources,
    /// The turn of the caller, if it has one: with processors that only the call may use.
    pub(super) turn: Option<&'a HostTurn>,
    pub(super) purpose: Purpose<'a>,
}

/// The state of an execution of a program, until it is over.
pub(super) struct Launch<'a> {
    /// The directory that it runs from.
    pub(super) tree: Arc<VerifiedPath>,
    /// The stage of its outputs.
    pub(super) stage: Stage<'a>,
    /// The time limit.
    pub(super) limit: Option<Duration>,
    /// The number of times that the storage had gone away or come back when it began.
    outages: u64,
}

/// Calls that are executed even if they have outputs.
#[derive(Clone, Debug, Default)]
pub struct ForcedCalls {
    /// Some calls.
    pub calls: HashSet<ResultName>,
    /// The names of computations, all of whose calls these are.
    pub computations: HashSet<String>,
}

impl ForcedCalls {
    /// Whether a call is among them.
    pub fn contain(&self, call: &ResultName) -> bool {
        self.calls.contains(call)
            || call.computation().is_some_and(|name| self.computations.contains(name))
    }
}

/// The user's policy for executing missing calls.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// The number of retries of a failed call.
    pub retries: u32,
    /// Whether failures that make rows of a table are tried again.
    pub retry_failed: bool,
    /// The time limit of an execution.
    pub timeout: Option<Duration>,
    /// The calls that are executed even if they have outputs.
    pub forced: ForcedCalls,
    /// Whether outputs that are away are replaced by new outputs that differ.
    pub accept: bool,
    /// Whether no more calls are started once one has failed.
    pub fail_fast: bool,
    /// Whether suspended calls are waited for.
    pub wait: bool,
}

/// Settings for the execution of missing calls.
#[derive(Clone, Copy)]
pub struct ExecutionSettings<'a> {
    /// The executor that starts processes.
    pub executor: &'a dyn Executor,
    /// The directories that computations run from.
    pub exports: &'a Exports<'a>,
    /// The user's choices: retries, limits, forced calls.
    pub policy: &'a Policy,
    /// Whether suspended calls are asked for their status, and calls are executed again with more of what a limit has ended them for. A
    /// worker leaves that to the run.
    pub leads: bool,
    /// The queue of the workers that execute calls in place of the executor.
    pub queue: Option<&'a WorkerQueue>,
}

/// Launches programs, by these settings.
#[derive(Clone, Copy)]
pub(super) struct CallLauncher<'a> {
    pub(super) storage: &'a Storage,
    pub(super) settings: ExecutionSettings<'a>,
}

impl<'a> CallLauncher<'a> {
    /// Makes everything that an execution needs.
    ///
    /// # Errors
    ///
    /// Fails if the computation cannot be exported, an input has changed since it was found, or the storage cannot be
    /// written.
    pub(super) fn prepare(
        &self,
        request: LaunchRequest<'_>,
    ) -> Result<(Launch<'a>, Invocation), CallError> {
        loop {
            let outages = self.storage.availability().outages();
            match self.export(request).and_then(|tree| self.stage(request, tree)) {
                // A directory of the storage was read by a path of its own while that was away.
                Err(error) if !error.is_storage() && self.has_changed_since(outages) => {}
                prepared => return prepared,
            }
        }
    }

    /// Prepares a program that a suspended call has beside its `exec`. Returns `None` if its exported computation lacks
    /// it.
    pub(super) fn prepare_question(
        &self,
        exported: &Computation,
        suspension: &Suspension,
        program: CallProgram,
    ) -> Result<Option<(Launch<'a>, Invocation)>, CallError> {
        let Suspension { name, record } = suspension;
        let tree = self.settings.exports.directory(exported, record.isolated)?;
        if !tree.path.join(program.file()).exists() {
            return Ok(None);
        }
        let request = LaunchRequest {
            name,
            // Takes `access` from the computation: others may have written the record.
            computation: &Computation { access: exported.access.clone(), ..computation_of(record) },
            sources: &record.inputs.iter().map(stored_value).collect::<Vec<_>>(),
            resources: &Resources::default(),
            turn: None,
            purpose: Purpose::Ask(program, suspension),
        };
        self.stage(request, tree).map(Some)
    }

    /// Checks the requirements of a computation on its inputs, and exports its directory.
    fn export(&self, request: LaunchRequest<'_>) -> Result<Arc<VerifiedPath>, CallError> {
        let LaunchRequest { computation, sources, purpose, .. } = request;
        check_directories(computation, sources)?;
        if let Purpose::Publish(name, _) = purpose {
            // A call that cannot be published is not executed.
            self.storage.calls().prepare(name, computation.outputs.len())?;
        }
        self.settings.exports.directory(computation, self.isolates(purpose))
    }

    /// Makes the stage of an execution, and the invocation for an executor.
    fn stage(
        &self,
        request: LaunchRequest<'_>,
        tree: Arc<VerifiedPath>,
    ) -> Result<(Launch<'a>, Invocation), CallError> {
        let purpose = request.purpose;
        let outputs = match purpose {
            Purpose::Ask(..) => &[],
            _ => &request.computation.outputs[..],
        };
        let mut stage = Stage::new(self.storage, outputs.len())?;
        for number in 0..outputs.len() {
            if let Some(path) = request.computation.access.place_of_output(number) {
                stage.place(number, path.to_owned());
            }
        }
        if let Purpose::Publish(..) = purpose {
            stage.announce(request.name);
        }
        stage.make_directories(outputs, self.isolates(purpose))?;
        let invocation = self.invocation(request, (*tree).clone(), &stage, outputs)?;
        let (limit, outages) = (invocation.limit, self.storage.availability().outages());
        Ok((Launch { tree, stage, limit, outages }, invocation))
    }

    /// Verifies everything that an execution needs.
    fn invocation(
        &self,
        request: LaunchRequest<'_>,
        tree: VerifiedPath,
        stage: &Stage<'_>,
        outputs: &[String],
    ) -> Result<Invocation, StorageError> {
        let LaunchRequest { name, computation, sources, resources, turn, purpose } = request;
        let storage = self.storage;
        let place = match purpose {
            Purpose::Publish(_, Some(suspension)) | Purpose::Ask(_, suspension)
                if computation.access.suspends() =>
            {
                storage.suspensions().work(&suspension.name)?
            }
            _ => None,
        };
        let mut inputs = Vec::with_capacity(sources.len());
        let mut variables = name::variables(&computation.inputs).into_iter();
        let isolate = self.isolates(purpose);
        for (number, source) in sources.iter().enumerate() {
            let (path, id) = storage.inputs().verify_unchanged(source)?;
            let label = computation.inputs.get(number).map_or("", String::as_str);
            inputs.push(InputFile {
                link: if isolate { None } else { stage.link_input(number, label, &path)? },
                file: VerifiedPath { path, id },
                digest: source.digest,
                at: computation.access.place_of_input(number).map(Path::to_owned),
                name: numbered(number, label),
                variable: variables.next().flatten(),
                text: storage.values().text(source)?,
            });
        }
        let outputs = outputs.iter().zip(name::variables(outputs)).enumerate();
        let outputs = outputs.map(|(number, (name, variable))| OutputFile {
            path: stage.made(number, name, false),
            name: numbered(number, name),
            at: computation.access.place_of_output(number).map(Path::to_owned),
            variable,
        });
        let (outbox, work) = match purpose {
            Purpose::Look(Some(kept)) => (kept.outputs.clone(), kept.tmp.clone()),
            _ => (self.own(stage.outbox())?, self.own(stage.work())?),
        };
        Ok(Invocation {
            call: name.short(),
            storage: storage.path(""),
            tree,
            program: match purpose {
                Purpose::Ask(program, _) => program,
                _ => CallProgram::Exec,
            },
            tree_id: computation.tree.clone(),
            inputs,
            outputs: outputs.collect(),
            work,
            outbox,
            directory: place.map(|path| self.own(path)).transpose()?,
            stage: self.own(stage.directory())?,
            log: LOG.to_owned(),
            access: computation.access.clone(),
            isolate,
            limit: match purpose {
                Purpose::Ask(..) => Some(LIMIT),
                _ => resources.time.into_iter().chain(self.settings.policy.timeout).min(),
            },
            memory_limit: match purpose {
                Purpose::Publish(..) => resources.last_memory.and(resources.memory),
                // The others are few, and no attempt of the call.
                Purpose::Compare | Purpose::Look(_) | Purpose::Ask(..) => None,
            },
            visible_gpus: turn.map(HostTurn::gpus).unwrap_or_default().into(),
            processors: turn.map(HostTurn::processors).unwrap_or_default().into(),
            requested: resources.variables(&computation.access),
            exclusive: resources.exclusive,
            inspection: None,
            // Slurm grants the graphics processors of an allocation.
            span: Span::from_resources(resources),
        })
    }

    /// A path of this run's own, or of a call that it has the lease of.
    fn own(&self, path: PathBuf) -> Result<VerifiedPath, StorageError> {
        let id = self.storage.id_of(&path)?;
        Ok(VerifiedPath { path, id })
    }

    /// Whether a program is isolated that is executed for this.
    fn isolates(&self, purpose: Purpose<'_>) -> bool {
        match purpose {
            Purpose::Publish(..) | Purpose::Compare => self.settings.executor.isolates(),
            Purpose::Look(_) => true,
            Purpose::Ask(_, suspension) => suspension.record.isolated,
        }
    }

    /// Executes a prepared program, and waits for its end. The caller has a turn.
    fn execute(
        &self,
        launch: &mut Launch<'_>,
        invocation: Invocation,
    ) -> Result<Status, CallError> {
        let (sender, ends) = channel();
        let completion = Completion::new(move |end| drop(sender.send(end)));
        self.settings.executor.submit(invocation, completion);
        let end = ends.recv().unwrap_or(Err(ExecuteError::Interrupted))?;
        let (status, usage) = match end {
            Ended::Done(usage) => (Status::Exited(0), usage),
            Ended::Suspended(usage) => (Status::Exited(SUSPENDED), usage),
            Ended::Failed(Failed { status, usage, .. }) => (status, usage),
            Ended::Lost(how) => return Err(ExecuteError::Refused(how).into()),
        };
        limit(&mut launch.stage, &usage);
        Ok(status)
    }

    /// Returns the end of an execution that read these files, from all known facts. It was interrupted if signals that end
    /// this process may have disturbed it, and is lost if it may have failed because of the storage.
    pub(super) fn judge(
        &self,
        launch: &Launch<'_>,
        sources: &[Stored],
        end: Result<Ended, ExecuteError>,
    ) -> Result<Ended, ExecuteError> {
        let is_disturbed = self.settings.executor.is_disturbed(&end);
        let end = if is_disturbed { Err(ExecuteError::Interrupted) } else { end };
        if leaves_processes(&end) {
            self.settings.exports.abandon(&launch.tree);
        }
        let (may_have_failed, may_be_cut_off) = match &end {
            Ok(Ended::Failed(_)) => (true, true),
            Ok(Ended::Done(_)) => (false, true),
            Ok(Ended::Suspended(_) | Ended::Lost(_)) | Err(ExecuteError::Interrupted) => {
                (false, false)
            }
            Err(_) => (true, true),
        };
        // Data that it has written may never have arrived.
        if may_be_cut_off
            && !self.storage.availability().outages_now().is_ok_and(|now| now == launch.outages)
        {
            return Ok(Ended::Lost("the storage was away while it was executed".to_owned()));
        }
        if may_have_failed && let Some(how) = self.lost_input(sources) {
            return Ok(Ended::Lost(how));
        }
        end
    }

    /// Whether the directory that a program should have run from has been replaced by another run, or is not there any more, and the
    /// next attempt may find another one.
    pub(super) fn is_replaced(
        &self,
        launch: &Launch<'_>,
        computation: &Computation,
        end: &Result<Ended, ExecuteError>,
    ) -> bool {
        end.as_ref().is_err_and(|error| error.has_lost(&launch.tree.path))
            && self.settings.exports.forget(&computation.tree, &launch.tree)
    }

    /// Describes the first of these files that is gone or was changed since it was found, if any.
    pub(super) fn lost_input(&self, sources: &[Stored]) -> Option<String> {
        let lost = sources.iter().find(|file| self.storage.inputs().is_lost(file))?;
        let path = self.storage.path(&lost.name);
        Some(format!("its input {} was removed or changed while it was executed", path.display()))
    }

    /// Returns the place where a program was executed, in which hints look for the reason of a failure.
    pub(super) fn scene<'b>(
        &self,
        tree: &'b VerifiedPath,
        computation: &'b Computation,
        sources: &[Stored],
    ) -> Scene<'b>
    where
        'a: 'b,
    {
        let root = computation.access.root().and_then(|label| sources.get(label.number));
        Scene {
            computation,
            tree: &tree.path,
            root: root.map(|root| self.storage.path(&root.name)),
            isolated: self.settings.executor.isolates(),
            task: self.settings.exports.task(),
        }
    }

    /// Whether the storage went away and is back, or came back, since then. If it is away, it is waited for.
    fn has_changed_since(&self, before: u64) -> bool {
        self.storage.availability().outages_now().is_ok_and(|now| now != before)
    }
}

/// Checks that the inputs that `access` takes as directories are directories.
fn check_directories(computation: &Computation, sources: &[Stored]) -> Result<(), CallError> {
    for rule in &computation.access.rules {
        if let Some(InputLabel { name, number }) = rule.input()
            && sources.get(*number).is_some_and(|source| !source.digest.is_directory())
        {
            let (input, line) = (name.clone(), rule.to_string());
            return Err(CallError::NotADirectory { input, line });
        }
    }
    Ok(())
}

/// Whether an execution without isolation may have left processes that write to the directory that it ran from.
fn leaves_processes(end: &Result<Ended, ExecuteError>) -> bool {
    let usage = match end {
        Ok(Ended::Done(usage) | Ended::Suspended(usage)) => usage,
        Ok(Ended::Failed(failed)) => &failed.usage,
        Ok(Ended::Lost(_)) => return true,
        Err(_) => return false,
    };
    usage.left_behind && usage.isolation == Isolation::None
}

/// Sets the area in which an execution may have left something.
pub(super) fn limit(stage: &mut Stage<'_>, usage: &Usage) {
    stage.set_writable_area(match usage.isolation {
        Isolation::None => WritableArea::Stage,
        Isolation::Namespaces => WritableArea::Outbox,
    });
    if usage.left_behind || usage.passed_on {
        stage.doubt();
    }
}

/// Returns the word for an isolation in records.
pub(super) const fn isolation_word(isolation: Isolation) -> &'static str {
    match isolation {
        Isolation::None => NOT_ISOLATED,
        Isolation::Namespaces => "namespaces",
    }
}

/// The record of an execution that has made all outputs.
pub(super) fn execution(usage: &Usage, computation: &Computation, argv: Vec<String>) -> Execution {
    let isolation = isolation_word(usage.isolation);
    let mut access = Vec::new();
    for rule in &computation.access.rules {
        // Without isolation, no access needs to be granted; only PATH is set as declared.
        if isolation != NOT_ISOLATED
            || matches!(rule, Rule::Path(_) | Rule::Set { .. } | Rule::Suspend)
        {
            access.push(rule.to_string());
        }
    }
    let is_here = usage.tasks.0.is_empty();
    Execution {
        argv: argv.into(),
        isolation: isolation.into(),
        access: access.into(),
        resources: Box::default(),
        attempts: Box::default(),
        // A launcher starts tasks on unknown hosts.
        host_kind: is_here.then(|| HostKind::here().clone()),
        machine: is_here.then(|| machine().into()),
        host_use: usage.host.map(Box::new),
        start: usage.start,
        end: usage.end,
        user_seconds: usage.user.as_secs_f64(),
        system_seconds: usage.system.as_secs_f64(),
        peak_bytes: usage.peak,
        exit_status: 0,
        tasks: usage.tasks.0.clone(),
        taken_over: None,
        trusted_tree: false,
    }
}

/// The answer of a program of a suspended call.
#[derive(Clone, Debug, PartialEq)]
pub struct SuspensionAnswer {
    /// The status with which it ended.
    pub status: Status,
    /// The first line that it has printed.
    pub line: Option<String>,
}

/// Executes a program that a suspended call has beside its `exec`, and waits for its end. Returns `None` if the call
/// lacks it. The caller has a turn.
pub fn ask_suspended(
    storage: &Storage,
    executor: &dyn Executor,
    suspension: &Suspension,
    program: CallProgram,
) -> Result<Option<SuspensionAnswer>, CallError> {
    let record = &suspension.record;
    let exports = &Exports::of_runs(storage);
    exports.expect(&record.tree, record.export.clone());
    let policy = &Policy::default();
    let settings = ExecutionSettings { executor, exports, policy, leads: false, queue: None };
    let launcher = CallLauncher { storage, settings };
    let prepared = launcher.prepare_question(&computation_of(record), suspension, program)?;
    let Some((mut launch, invocation)) = prepared else { return Ok(None) };
    if !storage.suspensions().is_out_of_reach(&suspension.name) {
        // Other users may have written the record, which determines what is executed.
        let code = own_key().map(|key| record.code_of(&suspension.name, &key));
        if code.is_none_or(|code| !record.code.is_some_and(|it| it.is_same(&code))) {
            return Err(CallError::NotOwn);
        }
    }
    let status = launcher.execute(&mut launch, invocation)?;
    Ok(Some(SuspensionAnswer { status, line: launch.stage.first_line()? }))
}

/// The key of the user, if there is a place for one.
pub(super) fn own_key() -> Option<SecretKey> {
    SecretKey::file(None).and_then(|file| SecretKey::find(&file)).ok()
}

/// A computation as the record of a suspended call has it.
fn computation_of(record: &SuspensionRecord) -> Computation {
    Computation {
        name: record.computation.clone(),
        commit: record.commit.clone(),
        tree: record.tree.clone(),
        dirty: record.dirty,
        inputs: record.input_names.clone(),
        outputs: record.output_names.clone(),
        access: record.granted(),
        checked_out: None,
        file: None,
    }
}

/// A call that is looked into.
pub struct InspectedCall {
    pub name: ResultName,
    pub computation: Computation,
    /// The values that it reads, in order.
    pub sources: Vec<Stored>,
    /// What its execution was told to have asked for.
    pub resources: Resources,
    /// The directory that keeps the outputs; without one, they are discarded.
    pub kept: Option<KeptDirectory>,
}

/// A directory outside of the storage that a sandbox shows as `/outputs` and `/tmp`.
pub struct KeptDirectory {
    pub path: PathBuf,
    outputs: VerifiedPath,
    tmp: VerifiedPath,
}

impl KeptDirectory {
    /// Makes a directory among the user's temporary files, and in it the output directories of a computation.
    pub fn new(computation: &Computation) -> io::Result<Self> {
        let place = std::env::temp_dir().canonicalize()?;
        let make = |path: PathBuf| DirBuilder::new().mode(0o700).create(&path).map(|()| path);
        let mut number = 0;
        let path = loop {
            let path = place.join(format!("ce-shell-{}-{number}", std::process::id()));
            match make(path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                made => break made?,
            }
        };
        let (outputs, tmp) = (make(path.join("outputs"))?, make(path.join("tmp"))?);
        for (number, name) in
            computation.outputs.iter().enumerate().filter(|(_, it)| is_directory(it))
        {
            make(outputs.join(numbered(number, name)))?;
        }
        Ok(Self { path, outputs: VerifiedPath::verify(outputs)?, tmp: VerifiedPath::verify(tmp)? })
    }
}

/// Executes a command in place of a call's `exec`, and waits for its end. Nothing is published. Without a terminal, its
/// output is written to `out` when it has ended. The caller has a turn.
pub fn inspect(
    storage: &Storage,
    executor: &dyn Executor,
    exports: &Exports<'_>,
    call: &InspectedCall,
    inspection: Inspection,
    out: &mut (dyn Write + Send),
) -> Result<Status, CallError> {
    let policy = &Policy::default();
    let settings = ExecutionSettings { executor, exports, policy, leads: false, queue: None };
    let launcher = CallLauncher { storage, settings };
    let (mut launch, mut invocation) = launcher.prepare(LaunchRequest {
        name: &call.name,
        computation: &call.computation,
        sources: &call.sources,
        resources: &call.resources,
        turn: None,
        purpose: Purpose::Look(call.kept.as_ref()),
    })?;
    let has_terminal = inspection.terminal.is_some();
    invocation.inspection = Some(inspection);
    let status = launcher.execute(&mut launch, invocation)?;
    if !has_terminal && let Ok(mut log) = File::open(launch.stage.log()) {
        // A reader who has closed the output wants no more of it.
        if let Err(error) = io::copy(&mut log, out) {
            note_unwritten(io::stdout(), &error);
        }
    }
    Ok(status)
}
