//! The execution of a call that has a result: in a stage of its own, without the lease of the call, and compared with the
//! result. Nothing that is published changes.

use std::sync::mpsc::channel;

use super::attempt::{check_directories, execution, isolation_word, leaves_processes, limit};
use super::exports::MAX_TRIES;
use super::grants::turn_request;
use super::hint::{self, Scene};
use super::invocation::ExecutionRequest;
use super::{CallError, ExecutionSettings};
use ce_executor::{Completion, Ended, ExecuteError, HostTurn, Isolation, Usage};
use ce_model::digest::Digest;
use ce_model::exit::Explain;
use ce_model::resources::Resources;
use ce_model::task::Computation;
use ce_storage::records::{AuditFailure, AuditReport, FailedCall, HostKind, Provenance, TicketEnd};
use ce_storage::{Call, Outputs, Stage, Storage, StorageError, Stored};

/// A call that is executed again.
pub(super) struct AuditSubject<'a> {
    pub(super) storage: &'a Storage,
    pub(super) computation: &'a Computation,
    /// The values that it reads, in order.
    pub(super) sources: &'a [Stored],
    /// What it asks for.
    pub(super) resources: &'a Resources,
    /// The result.
    pub(super) recorded: &'a Outputs,
}

/// The end of an attempt.
enum AttemptEnd {
    /// There is nothing more to do.
    Over(Option<TicketEnd>),
    /// Another run has put its own export in the place of that of this one, or the export is not there any more.
    Replaced,
}

impl AuditSubject<'_> {
    /// Executes the call, and compares. Returns `None` if the user asks to stop.
    pub(super) fn audit(&self, settings: &ExecutionSettings<'_>) -> Option<TicketEnd> {
        self.execute(settings).unwrap_or_else(|error| Some(self.broken(&error.into())))
    }

    fn execute(&self, settings: &ExecutionSettings<'_>) -> Result<Option<TicketEnd>, StorageError> {
        let inputs: Vec<Digest> = self.sources.iter().map(|it| it.digest).collect();
        if let Err(error) = check_directories(&self.computation.access, &inputs) {
            return Ok(Some(self.failed(None, &error, None, None)));
        }
        let turn = match settings.executor.enter(turn_request(self.resources), true) {
            Ok(Some(turn)) => turn,
            Ok(None) | Err(ExecuteError::Interrupted) => return Ok(None),
            Err(ExecuteError::Refused(why)) => return Ok(Some(TicketEnd::Refused(why))),
            Err(error) => return Ok(Some(self.failed(None, &error.into(), None, None))),
        };
        for _ in 0..MAX_TRIES {
            match self.attempt(settings, &turn, &inputs)? {
                AttemptEnd::Over(end) => return Ok(end),
                AttemptEnd::Replaced => {}
            }
        }
        Ok(Some(TicketEnd::Lost("others have replaced its computation all the time".to_owned())))
    }

    fn attempt(
        &self,
        settings: &ExecutionSettings<'_>,
        turn: &HostTurn,
        inputs: &[Digest],
    ) -> Result<AttemptEnd, StorageError> {
        let Self { storage, computation, sources, resources, recorded } = *self;
        let executor = settings.executor;
        let tree = match settings.exports.directory(computation, executor.isolates()) {
            Ok(tree) => tree,
            Err(error) => return Ok(AttemptEnd::Over(Some(self.not_executed(&error)))),
        };
        let stage = storage.stage(computation.outputs.len())?;
        stage.make_directories(&computation.outputs, executor.isolates())?;
        let (name, gpus, directory) = (&recorded.name, turn.gpus(), None);
        let request = ExecutionRequest { name, computation, sources, resources, gpus, directory };
        let invocation = request.invocation(storage, settings, (*tree).clone(), &stage)?;
        let (sender, ended) = channel();
        // The receiver is gone only if this thread has panicked.
        executor.submit(invocation, Completion::new(move |end| drop(sender.send(end))));
        let end = ended.recv().unwrap_or(Err(ExecuteError::Interrupted));
        let end = match executor.is_disturbed(&end) {
            true => Err(ExecuteError::Interrupted),
            false => end,
        };
        if leaves_processes(&end) {
            settings.exports.abandon(&tree);
        }
        if end.as_ref().is_err_and(|error| error.has_lost(&tree.path))
            && settings.exports.forget(&computation.tree, &tree)
        {
            return Ok(AttemptEnd::Replaced);
        }
        let root = computation.access.root().and_then(|label| sources.get(label.number));
        let root = root.map(|root| storage.path(&root.name));
        let scene = Scene { computation, tree: &tree.path, root, isolated: executor.isolates() };
        self.conclude(stage, end, inputs, &scene).map(AttemptEnd::Over)
    }

    fn conclude(
        &self,
        mut stage: Stage<'_>,
        end: Result<Ended, ExecuteError>,
        inputs: &[Digest],
        scene: &Scene<'_>,
    ) -> Result<Option<TicketEnd>, StorageError> {
        let (stage, usage, error) = match end {
            Ok(Ended::Done(usage)) => {
                limit(&mut stage, &usage);
                let (version, outputs) = (self.computation.into(), &self.computation.outputs);
                let call = Call { version, inputs, outputs };
                match stage.seal(call, execution(&usage, self.computation, Vec::new())) {
                    Ok(sealed) => {
                        let outputs = sealed.digests();
                        let differing = sealed.compare(self.recorded)?;
                        let report = AuditReport { outputs, differing, ..report(Some(&usage)) };
                        return Ok(Some(TicketEnd::Audited(Box::new(report))));
                    }
                    Err((stage, error)) => (stage, Some(usage), CallError::from(error)),
                }
            }
            Ok(Ended::Failed(failed)) => {
                limit(&mut stage, &failed.usage);
                (stage, Some(failed.usage.clone()), CallError::Ended(Box::new(failed)))
            }
            Ok(Ended::Suspended(_)) => {
                let why = "it is suspended, and an audit does not wait for what goes on elsewhere";
                return Ok(Some(TicketEnd::Refused(why.to_owned())));
            }
            Ok(Ended::Lost(how)) => {
                // It may still run.
                stage.doubt();
                return Ok(Some(TicketEnd::Lost(how)));
            }
            Err(ExecuteError::Refused(why)) => return Ok(Some(TicketEnd::Refused(why))),
            Err(ExecuteError::Interrupted) => return Ok(None),
            Err(error) => (stage, None, CallError::from(error)),
        };
        if error.is_storage() {
            return Ok(Some(self.broken(&error)));
        }
        // The stage is emptied afterwards.
        let hint = hint::hint(&stage, scene, &error);
        let log = stage.fail_audit(&self.recorded.name)?;
        Ok(Some(self.failed(usage.as_ref(), &error, hint, log)))
    }

    /// The call has failed, which is a verdict.
    fn failed(
        &self,
        usage: Option<&Usage>,
        error: &CallError,
        hint: Option<String>,
        log: Option<String>,
    ) -> TicketEnd {
        let hint = hint.or_else(|| error.hint());
        let reason = error.to_string();
        let cause = error.in_full().strip_prefix(&format!("{reason}: ")).map(str::to_owned);
        let failed = Some(AuditFailure { reason, cause, hint, log });
        TicketEnd::Audited(Box::new(AuditReport { failed, ..report(usage) }))
    }

    /// Its computation is not to be had, which the call is not to blame for.
    fn not_executed(&self, error: &CallError) -> TicketEnd {
        match error.is_storage() {
            true => self.broken(error),
            false => TicketEnd::Refused(error.in_full()),
        }
    }

    /// The storage cannot be read or written.
    fn broken(&self, error: &CallError) -> TicketEnd {
        TicketEnd::Failed(FailedCall {
            name: self.recorded.name.short(),
            reason: error.in_full(),
            hint: error.hint(),
            recurs: false,
            storage: true,
        })
    }
}

/// A report without outputs. Without usage, nothing was started.
fn report(usage: Option<&Usage>) -> AuditReport {
    AuditReport {
        start: usage.map_or_else(|| Provenance::now().at, |usage| usage.start),
        seconds: usage.map_or(0.0, Usage::seconds),
        peak_bytes: usage.map_or(0, |usage| usage.peak),
        isolation: isolation_word(usage.map_or(Isolation::None, |it| it.isolation)).to_owned(),
        host_kind: Some(HostKind::here().clone()),
        outputs: Vec::new(),
        differing: Vec::new(),
        failed: None,
    }
}
