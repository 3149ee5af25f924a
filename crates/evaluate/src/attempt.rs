//! The attempts to execute a call: prepared, submitted, sealed when one has ended, and made again if it
//! failed and may pass.

use std::sync::Arc;
use std::sync::mpsc::channel;

use super::hint::{self, Scene};
use super::launcher::{ExecutionRequest, own};
use super::step::{CallStep, Executed, Pending, Running};
use super::{
    Absence, CallError, CallFailure, Evaluator, Event, ExecutionSettings, Outcome, Unfinished,
};
use ce_executor::{
    CallProgram, Completion, Ended, ExecuteError, Executor, Failed, Invocation, Isolation,
    SUSPENDED, Status, Usage, VerifiedPath,
};
use ce_model::access::{Access, InputLabel, Rule};
use ce_model::digest::Digest;
use ce_model::task::{Computation, LIBRARY};
use ce_storage::records::{Execution, HostKind, NOT_ISOLATED};
use ce_storage::{Call, Failure, ResultName, Sealed, Stage, StorageError, Stored, WritableArea};

impl<'a> Evaluator<'a> {
    /// Prepares the next execution of a call.
    pub(super) fn attempt(
        &self,
        settings: &ExecutionSettings<'_>,
        mut pending: Pending<'a>,
    ) -> CallStep<'a> {
        loop {
            let outages = self.evaluation.storage.outages();
            match self.prepare(settings, &pending) {
                Ok((invocation, tree, stage)) => {
                    let (program, outages) = (CallProgram::Exec, self.evaluation.storage.outages());
                    let running = Running { pending, program, tree, stage, outages };
                    return CallStep::Submit(Box::new(running), Box::new(invocation));
                }
                // A directory of the storage was read by a path of its own while that was away.
                Err(error) if !error.is_storage() && self.has_changed_since(outages) => {}
                Err(error) => {
                    let outcome = Outcome::failed(pending.name.clone(), error);
                    if let Err(outcome) = self.retry(&mut pending, outcome) {
                        return CallStep::Ended(outcome);
                    }
                }
            }
        }
    }

    /// Goes on with a call of which an execution has ended.
    pub(super) fn conclude(
        &self,
        settings: &ExecutionSettings<'_>,
        running: Running<'a>,
        end: Result<Ended, ExecuteError>,
    ) -> CallStep<'a> {
        let Running { mut pending, program, tree, stage, outages } = running;
        let is_disturbed = settings.executor.is_disturbed(&end);
        let end = if is_disturbed { Err(ExecuteError::Interrupted) } else { end };
        if leaves_processes(&end) {
            settings.exports.abandon(&tree);
        }
        let end = self.unless_cut_off(end, outages);
        let end = self.unless_inputs_lost(end, &pending.sources);
        if program == CallProgram::Status {
            return self.answered(settings, pending, (stage, end));
        }
        // Another run has found the export changed, like this one, and put its own in that place; or it is not there any more.
        if end.as_ref().is_err_and(|error| error.has_lost(&tree.path))
            && pending.exports > 0
            && settings.exports.forget(&pending.computation.tree, &tree)
        {
            pending.exports -= 1;
            drop(stage);
            return self.attempt(settings, pending);
        }
        let computation = pending.computation;
        let root = computation.access.root().and_then(|label| pending.sources.get(label.number));
        let scene = Scene {
            computation,
            tree: &tree.path,
            root: root.map(|root| self.evaluation.storage.path(&root.name)),
            isolated: settings.executor.isolates(),
        };
        match self.seal(settings, &mut pending, (stage, end), &scene) {
            Ok(sealed) => {
                let Pending { id, computation, name, inputs, remembered, .. } = pending;
                let (suspension, _leases) = (pending.suspension, pending.leases);
                let precedence = self.precedence(&name);
                // Before its slot is given back, and another call begins.
                (self.observe)(Event::Sealed(id));
                CallStep::Executed(Executed {
                    id,
                    computation,
                    name,
                    inputs,
                    sealed,
                    taken_over: false,
                    remembered,
                    precedence,
                    suspension,
                    _leases,
                })
            }
            Err(outcome) => match self.retry(&mut pending, outcome) {
                Ok(()) => self.attempt(settings, pending),
                Err(outcome) => self.leave(&mut pending, outcome),
            },
        }
    }

    /// How an execution ended. It is lost if the storage was away meanwhile: it may have failed because of that, or have written
    /// what has never arrived.
    fn unless_cut_off(
        &self,
        end: Result<Ended, ExecuteError>,
        before: u64,
    ) -> Result<Ended, ExecuteError> {
        let may_be_cut_off = match &end {
            Ok(Ended::Done(_) | Ended::Failed(_)) => true,
            Err(error) => !matches!(error, ExecuteError::Interrupted),
            Ok(Ended::Suspended(_) | Ended::Lost(_)) => false,
        };
        if !may_be_cut_off || self.evaluation.storage.outages_now().is_ok_and(|now| now == before) {
            return end;
        }
        Ok(Ended::Lost("the storage was away while it was executed".to_owned()))
    }

    /// How an execution ended. It is lost if an input is gone or was changed meanwhile: it may have failed because of that.
    fn unless_inputs_lost(
        &self,
        end: Result<Ended, ExecuteError>,
        sources: &[Stored],
    ) -> Result<Ended, ExecuteError> {
        let may_be_lost = match &end {
            Ok(Ended::Failed(_)) => true,
            Err(error) => !matches!(error, ExecuteError::Interrupted),
            Ok(Ended::Done(_) | Ended::Suspended(_) | Ended::Lost(_)) => false,
        };
        match may_be_lost.then(|| self.lost_input(sources)).flatten() {
            Some(how) => Ok(Ended::Lost(how)),
            None => end,
        }
    }

    /// Says which file is gone or was changed since it was found, if one of these was.
    fn lost_input(&self, sources: &[Stored]) -> Option<String> {
        let storage = &self.evaluation.storage;
        let lost = sources.iter().find(|file| storage.inputs().is_lost(file))?;
        let path = storage.path(&lost.name);
        Some(format!("its input {} was removed or changed while it was executed", path.display()))
    }

    /// Whether the storage went away and is back, or came back, since then. If it is away, it is waited for.
    fn has_changed_since(&self, before: u64) -> bool {
        self.evaluation.storage.outages_now().is_ok_and(|now| now != before)
    }

    /// Counts an unsuccessful execution. Reports it if the call is executed again; returns the
    /// outcome otherwise.
    fn retry(&self, pending: &mut Pending<'_>, outcome: Outcome) -> Result<(), Outcome> {
        let left = match &outcome {
            _ if self.has_stopped() => return Err(outcome),
            Outcome::Absent(_, Absence::Unfinished(Unfinished::Lost(_))) => {
                &mut pending.replacements
            }
            Outcome::Absent(_, Absence::Failed(failure)) if !failure.error.is_storage() => {
                &mut pending.retries
            }
            _ => return Err(outcome),
        };
        *left = match left.checked_sub(1) {
            Some(left) => left,
            None => return Err(outcome),
        };
        // A failure is remembered, a loss is not.
        pending.remembered |= outcome.failure().is_some();
        (self.observe)(Event::Retried(pending.id, Box::new(outcome)));
        Ok(())
    }

    /// Makes everything that an execution needs.
    fn prepare(
        &self,
        settings: &ExecutionSettings<'_>,
        pending: &Pending<'_>,
    ) -> Result<(Invocation, Arc<VerifiedPath>, Stage<'a>), CallError> {
        let computation = pending.computation;
        let outputs = computation.outputs.len();
        check_directories(&computation.access, &pending.inputs)?;
        // A call that cannot be published is not executed.
        self.evaluation.storage.prepare(pending.published_name(), outputs)?;
        let tree = settings.exports.directory(computation, settings.executor.isolates())?;
        let stage = self.evaluation.storage.stage(outputs)?;
        stage.announce(&pending.name);
        stage.make_directories(&computation.outputs, settings.executor.isolates())?;
        let invocation = self.invocation(settings, (*tree).clone(), &stage, pending)?;
        Ok((invocation, tree, stage))
    }

    fn invocation(
        &self,
        settings: &ExecutionSettings<'_>,
        tree: VerifiedPath,
        stage: &Stage<'_>,
        pending: &Pending<'_>,
    ) -> Result<Invocation, StorageError> {
        let storage = &self.evaluation.storage;
        let access = &pending.computation.access;
        let directory = pending.suspension.as_ref().filter(|_| access.suspends());
        let directory = directory.map(|it| storage.suspensions().work(&it.name)).transpose()?;
        let request = ExecutionRequest {
            name: &pending.name,
            computation: pending.computation,
            sources: &pending.sources,
            resources: &pending.resources,
            gpus: pending.turn.gpus(),
            directory: directory.flatten().map(|path| own(storage, path)).transpose()?,
        };
        request.invocation(storage, settings, tree, stage)
    }

    /// Seals what an execution has made, or returns what became of it otherwise.
    fn seal(
        &self,
        settings: &ExecutionSettings<'_>,
        pending: &mut Pending<'a>,
        (mut stage, end): (Stage<'a>, Result<Ended, ExecuteError>),
        scene: &Scene<'_>,
    ) -> Result<Sealed<'a>, Outcome> {
        if let (Some(suspension), Ok(Ended::Done(_) | Ended::Failed(_) | Ended::Suspended(_))) =
            (&pending.suspension, &end)
        {
            let continued = stage.continue_log(&suspension.name);
            continued.map_err(|error| Outcome::failed(pending.name.clone(), error))?;
        }
        if let Ok(Ended::Suspended(usage)) = &end {
            limit(&mut stage, usage);
            return Err(self.suspend(settings, pending, stage));
        }
        let sources = &pending.sources;
        let (computation, call, name) =
            (scene.computation, pending.call(), pending.published_name());
        let unfinished = |why| Err(Outcome::Absent(name.clone(), Absence::Unfinished(why)));
        match end {
            Ok(Ended::Done(usage)) => {
                limit(&mut stage, &usage);
                let execution = execution(&usage, computation, argv(call, name, sources));
                let execution = Execution {
                    resources: pending.resources.lines().into(),
                    // The work of a suspended call ran elsewhere, on an unknown kind of host.
                    host_kind: execution.host_kind.filter(|_| pending.suspension.is_none()),
                    ..execution
                };
                stage.seal(call, execution).map_err(|(stage, error)| {
                    // What it lacks may be lacking because of that.
                    match self.lost_input(sources) {
                        Some(how) => Outcome::Absent(
                            name.clone(),
                            Absence::Unfinished(Unfinished::Lost(how)),
                        ),
                        None => fail(stage, call, name, error.into(), scene),
                    }
                })
            }
            Ok(Ended::Failed(failed)) => {
                limit(&mut stage, &failed.usage);
                Err(fail(stage, call, name, CallError::Ended(Box::new(failed)), scene))
            }
            Ok(Ended::Suspended(_)) => unfinished(Unfinished::Lost("it is suspended".to_owned())),
            Ok(Ended::Lost(how)) => {
                // It may still run.
                stage.doubt();
                unfinished(Unfinished::Lost(how))
            }
            Err(ExecuteError::Refused(why)) => unfinished(Unfinished::Refused(why)),
            Err(ExecuteError::Interrupted) => {
                Err(Outcome::Absent(name.clone(), Absence::Interrupted))
            }
            Err(error) => Err(fail(stage, call, name, error.into(), scene)),
        }
    }
}

/// Checks that the inputs that `access` takes as directories are directories.
pub(super) fn check_directories(access: &Access, inputs: &[Digest]) -> Result<(), CallError> {
    for rule in &access.rules {
        if let Some(InputLabel { name, number }) = rule.input()
            && inputs.get(*number).is_some_and(|digest| !digest.is_directory())
        {
            let (input, line) = (name.clone(), rule.to_string());
            return Err(CallError::NotADirectory { input, line });
        }
    }
    Ok(())
}

/// Executes a program that is not a call's `exec`, and waits for its end. The caller has a turn.
///
/// # Errors
///
/// Fails if it cannot be executed, or is lost.
pub(super) fn execute_program(
    executor: &dyn Executor,
    invocation: Invocation,
    stage: &mut Stage<'_>,
) -> Result<Status, CallError> {
    let (sender, ends) = channel();
    executor.submit(invocation, Completion::new(move |end| drop(sender.send(end))));
    let end = ends.recv().unwrap_or(Err(ExecuteError::Interrupted))?;
    let (status, usage) = match end {
        Ended::Done(usage) => (Status::Exited(0), usage),
        Ended::Suspended(usage) => (Status::Exited(SUSPENDED), usage),
        Ended::Failed(Failed { status, usage, .. }) => (status, usage),
        Ended::Lost(how) => return Err(ExecuteError::Refused(how).into()),
    };
    limit(stage, &usage);
    Ok(status)
}

/// Whether an execution without isolation may have left processes that write to the directory that it ran from.
pub(super) fn leaves_processes(end: &Result<Ended, ExecuteError>) -> bool {
    let usage = match end {
        Ok(Ended::Done(usage) | Ended::Suspended(usage)) => usage,
        Ok(Ended::Failed(failed)) => &failed.usage,
        Ok(Ended::Lost(_)) => return true,
        Err(_) => return false,
    };
    usage.left_behind && usage.isolation == Isolation::None
}

/// Says where an execution may have left something.
pub(super) fn limit(stage: &mut Stage<'_>, usage: &Usage) {
    stage.set_writable_area(match usage.isolation {
        Isolation::None => WritableArea::Stage,
        Isolation::Namespaces => WritableArea::Outbox,
    });
    if usage.left_behind || usage.passed_on {
        stage.doubt();
    }
}

/// Returns the arguments of `exec`, in the storage's names.
fn argv(call: Call<'_>, name: &ResultName, sources: &[Stored]) -> Vec<String> {
    let exec = format!("{LIBRARY}/{}/exec", call.version.computation);
    let outputs = (0..call.outputs.len()).map(|number| name.output(number));
    let sources = sources.iter().map(|file| file.name.clone());
    std::iter::once(exec).chain(sources).chain(outputs).collect()
}

/// Remembers a failure.
fn fail(
    stage: Stage<'_>,
    call: Call<'_>,
    name: &ResultName,
    error: CallError,
    scene: &Scene<'_>,
) -> Outcome {
    let name = name.clone();
    if error.is_storage() {
        return Outcome::failed(name, error);
    }
    // The stage is emptied afterwards.
    let hint = hint::hint(&stage, scene, &error);
    let tasks = match &error {
        CallError::Ended(failed) => failed.usage.tasks.0.clone(),
        _ => Box::default(),
    };
    let (exit_status, signal, seconds) = match &error {
        CallError::Ended(failed) => match failed.status {
            Status::Exited(status) => (Some(status), None, failed.usage.seconds()),
            Status::Killed(signal) | Status::TimedOut(signal, _) => {
                (None, Some(signal), failed.usage.seconds())
            }
        },
        _ => (None, None, 0.0),
    };
    let isolation = match &error {
        CallError::Ended(failed) => Some(isolation_word(failed.usage.isolation).to_owned()),
        _ => None,
    };
    let failure =
        Failure { reason: error.to_string(), exit_status, signal, tasks, seconds, isolation };
    match stage.fail(call, &name, failure) {
        Ok(log) => {
            let error = Box::new(error);
            Outcome::Absent(name, Absence::Failed(CallFailure { error, log, hint }))
        }
        Err(error) => Outcome::failed(name, error),
    }
}

/// How records spell an isolation.
pub(super) const fn isolation_word(isolation: Isolation) -> &'static str {
    match isolation {
        Isolation::None => NOT_ISOLATED,
        Isolation::Namespaces => "namespaces",
    }
}

pub(super) fn execution(usage: &Usage, computation: &Computation, argv: Vec<String>) -> Execution {
    let isolation = isolation_word(usage.isolation);
    // Without isolation there is nothing to be granted; only PATH is as it says.
    let counts =
        |rule: &&Rule| isolation != NOT_ISOLATED || matches!(rule, Rule::Path(_) | Rule::Suspend);
    let rules = computation.access.rules.iter().filter(counts);
    let access = rules.map(ToString::to_string).collect();
    Execution {
        argv: argv.into(),
        isolation: isolation.to_owned(),
        access,
        resources: Box::default(),
        // A launcher starts tasks on hosts whose kind is unknown.
        host_kind: usage.tasks.0.is_empty().then(|| HostKind::here().clone()),
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
