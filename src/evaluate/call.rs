//! One call: found in the storage, or executed and sealed.

use std::sync::Arc;

use std::path::PathBuf;

use super::{CallError, Evaluator, Event, ExecutionSettings, Outcome};
use crate::digest::Digest;
use crate::executor::{Ended, ExecuteError, Invocation, Isolation, Status, VerifiedPath};
use crate::plan::{CallId, Planned, Source};
use crate::storage::record::{Execution, NOT_ISOLATED};
use crate::storage::{
    Call, Damage, Failure, Found, Holder, LOG, Lease, Memory, Reach, ResultName, Sealed, Stage,
    StorageError, Stored, Version,
};
use crate::workflow::{Computation, LIBRARY};

/// How far a call has come when its turn is over.
pub(super) enum Turn<'a> {
    /// It is over.
    Ended(Outcome),
    /// It was executed; its outputs are to be flushed and published.
    Executed(Executed<'a>),
    /// Another run computes it; it is to be looked for again when that is over.
    Held(ResultName, Holder),
    /// Its outputs are there without a record, and may still be written; it is to be looked for again.
    Unsettled(ResultName),
}

/// A call of which the outputs are to be flushed and published.
pub(super) struct Executed<'a> {
    pub(super) id: CallId,
    name: ResultName,
    inputs: Vec<Digest>,
    sealed: Sealed<'a>,
    /// Nothing was executed: the outputs are another commit's.
    taken_over: bool,
    /// Something is remembered of the call, which is to be forgotten.
    remembered: bool,
    /// What is there is to be replaced.
    forced: bool,
    /// Given back when the outputs are visible.
    _lease: Lease<'a>,
}

/// What looking for a call again led to.
enum Again<'a> {
    /// It is over.
    Ended(Outcome),
    /// Its outputs are taken over, and are to be flushed and published.
    Sealed(Sealed<'a>),
    /// It is to be executed; this is remembered of it.
    Absent(Option<Box<Memory>>),
    /// Another call has the name by now.
    Taken,
}

/// A call that is to be executed.
struct Pending<'a> {
    id: CallId,
    computation: &'a Computation,
    call: Call<'a>,
    name: ResultName,
    /// The files that it reads.
    sources: Vec<Stored>,
    /// What is remembered of it.
    memory: Option<Box<Memory>>,
}

impl<'a> Evaluator<'a> {
    /// Does for a call what can be done at once.
    pub(super) fn turn(&self, id: CallId) -> Turn<'a> {
        let evaluation = self.evaluation;
        let storage = &*evaluation.storage;
        let planned = evaluation.plan.call(id);
        let computation = evaluation.computation(id);
        let known = || planned.inputs.iter().map(|source| evaluation.digest(*source));
        let guess = || storage.guess(Version::of(computation), known());
        let Some(inputs) = known().collect::<Option<Vec<Digest>>>() else {
            let name = guess();
            return Turn::Ended(match self.execution {
                Some(_) if self.awaits_interrupted(planned) => Outcome::Interrupted(name),
                Some(_) => Outcome::Blocked(name),
                None => Outcome::Missing(name, None),
            });
        };
        let call = call_of(computation, &inputs);
        let (name, damage) = match storage.find(call) {
            Ok(Found::Hit(outputs)) if self.is_forced(&outputs.name) => (outputs.name, None),
            Ok(Found::Hit(outputs)) => return Turn::Ended(Outcome::Reused(outputs)),
            Ok(Found::Absent { name, damage }) => (name, damage),
            Ok(Found::Unsettled(name)) => return self.await_settled(name),
            Err(error) => return Turn::Ended(Outcome::failed(guess(), error)),
        };
        let Some(execution) = &self.execution else {
            return Turn::Ended(self.only_look(call, name, damage));
        };
        if execution.executor.is_interrupted() {
            return Turn::Ended(Outcome::Interrupted(name));
        }
        let lease = match storage.lease(&name) {
            Ok(lease) => lease,
            Err(holder) => return Turn::Held(name, holder),
        };
        match self.look_again(call, &name, damage) {
            Ok(Again::Ended(outcome)) => Turn::Ended(outcome),
            Ok(Again::Sealed(sealed)) => {
                let (inputs, taken_over, remembered) = (inputs.clone(), true, true);
                let _lease = lease;
                Turn::Executed(Executed {
                    id,
                    name,
                    inputs,
                    sealed,
                    taken_over,
                    remembered,
                    forced: false,
                    _lease,
                })
            }
            Ok(Again::Absent(memory)) => {
                let sources = self.sources(planned);
                let pending = Pending { id, computation, call, name, sources, memory };
                self.compute(execution, pending, lease)
            }
            Ok(Again::Taken) => {
                // From the beginning: with the lease of the longer name that it is to have.
                drop(lease);
                self.turn(id)
            }
            Err(error) => Turn::Ended(Outcome::failed(name, error)),
        }
    }

    /// Whether a call is to be executed although its outputs are there.
    fn is_forced(&self, name: &ResultName) -> bool {
        self.execution.is_some_and(|it| it.forced.contains(name))
    }

    /// What becomes of a call whose outputs may still be written.
    fn await_settled(&self, name: ResultName) -> Turn<'a> {
        match self.execution {
            Some(it) if it.executor.is_interrupted() => Turn::Ended(Outcome::Interrupted(name)),
            Some(_) => Turn::Unsettled(name),
            None => Turn::Ended(Outcome::Missing(name, None)),
        }
    }

    /// What becomes of a call that is absent, where nothing is computed.
    fn only_look(&self, call: Call<'_>, name: ResultName, damage: Option<Damage>) -> Outcome {
        match self.evaluation.storage.same_elsewhere(call) {
            Ok(Some(source)) => Outcome::TakenOver(source.outputs),
            Ok(None) => {
                let memory = self.evaluation.storage.memory(&name, damage);
                Outcome::Missing(name, memory)
            }
            Err(error) => Outcome::failed(name, error),
        }
    }

    /// Looks for a call once more, with its lease: whoever had that until now may have just
    /// published, or died while taking it away. Or another commit has the same.
    fn look_again(
        &self,
        call: Call<'_>,
        name: &ResultName,
        damage: Option<Damage>,
    ) -> Result<Again<'a>, StorageError> {
        if self.is_forced(name) {
            return Ok(Again::Absent(self.evaluation.storage.memory(name, damage)));
        }
        let collected = self.evaluation.storage.revive(name)?;
        match self.evaluation.storage.find_again(call, name)? {
            Found::Hit(outputs) => return Ok(Again::Ended(Outcome::Reused(outputs))),
            Found::Absent { name: other, .. } | Found::Unsettled(other) if other != *name => {
                return Ok(Again::Taken);
            }
            Found::Absent { .. } | Found::Unsettled(_) => {}
        }
        let absent =
            || Again::Absent(self.evaluation.storage.memory_beside(name, collected, damage));
        let Some(source) = self.evaluation.storage.same_elsewhere(call)? else {
            return Ok(absent());
        };
        match self.evaluation.storage.take_over(call, &source) {
            Ok(taken) => Ok(taken.map_or_else(absent, Again::Sealed)),
            Err(error) if error.is_read_only() => {
                Ok(Again::Ended(Outcome::TakenOver(source.outputs)))
            }
            Err(error) => Err(error),
        }
    }

    /// Whether an input is missing only because the user asked to stop.
    fn awaits_interrupted(&self, planned: &Planned) -> bool {
        planned.inputs.iter().any(|source| match source {
            Source::Output { call, .. } => {
                matches!(self.evaluation.outcome(*call), Some(Outcome::Interrupted(_)))
            }
            Source::Input(_) | Source::Literal(_) => false,
        })
    }

    /// The files that a call reads.
    fn sources(&self, planned: &Planned) -> Vec<Stored> {
        let stored = |source: &_| self.evaluation.stored(*source);
        planned.inputs.iter().filter_map(stored).collect()
    }

    /// Executes a call, again if it fails and may be tried again.
    fn compute(
        &self,
        execution: &ExecutionSettings<'_>,
        mut pending: Pending<'_>,
        lease: Lease<'a>,
    ) -> Turn<'a> {
        let memory = pending.memory.take();
        let mut remembered = memory.is_some();
        (self.observe)(Event::Started(pending.id, pending.name.clone(), memory));
        for tries_left in (0..=execution.retries).rev() {
            match self.attempt(execution, &pending) {
                Ok(sealed) => {
                    let Pending { id, name, call, .. } = pending;
                    let inputs = call.inputs.to_vec();
                    let forced = self.is_forced(&name);
                    return Turn::Executed(Executed {
                        id,
                        name,
                        inputs,
                        sealed,
                        taken_over: false,
                        remembered,
                        forced,
                        _lease: lease,
                    });
                }
                Err(outcome) if tries_left == 0 || !outcome.may_pass() => {
                    return Turn::Ended(outcome);
                }
                Err(outcome) => (self.observe)(Event::Retried(pending.id, Box::new(outcome))),
            }
            remembered = true;
        }
        Turn::Ended(Outcome::Interrupted(pending.name))
    }

    fn attempt(
        &self,
        ExecutionSettings { executor, exports, .. }: &ExecutionSettings<'_>,
        pending: &Pending<'_>,
    ) -> Result<Sealed<'a>, Outcome> {
        let Pending { computation, call, name, sources, .. } = pending;
        let prepare = || -> Result<_, CallError> {
            // What cannot be published is not computed.
            self.evaluation.storage.prepare(name, call.outputs)?;
            let tree = exports.directory(computation, executor.isolates())?;
            let stage = self.evaluation.storage.stage(call.outputs)?;
            Ok((self.invocation(tree, &stage, pending)?, stage))
        };
        let (invocation, mut stage) =
            prepare().map_err(|error| Outcome::failed(name.clone(), error))?;
        let ended = executor.execute(&invocation);
        if let Ok(ended) = &ended {
            stage.reached(match ended.isolation {
                Isolation::None => Reach::Stage,
                Isolation::Namespaces => Reach::Outbox,
            });
            if ended.left_behind {
                stage.doubt();
            }
        }
        match ended {
            Ok(ended) if ended.status == Status::Exited(0) => {
                let execution = execution(&ended, computation, argv(*call, name, sources));
                stage
                    .seal(*call, &computation.outputs, execution)
                    .map_err(|(stage, error)| fail(stage, *call, name, error.into()))
            }
            Ok(ended) => Err(fail(stage, *call, name, CallError::Ended(Box::new(ended)))),
            Err(ExecuteError::Interrupted) => Err(Outcome::Interrupted(name.clone())),
            Err(error) => Err(fail(stage, *call, name, error.into())),
        }
    }

    fn invocation(
        &self,
        tree: VerifiedPath,
        stage: &Stage<'_>,
        pending: &Pending<'_>,
    ) -> Result<Invocation, StorageError> {
        let input = |file: &Stored| {
            let id = self.evaluation.storage.verify_unchanged(file)?;
            Ok(VerifiedPath { path: self.evaluation.storage.path(&file.name), id })
        };
        let own = |path: PathBuf| {
            let id = self.evaluation.storage.id_of(&path)?;
            Ok::<_, StorageError>(VerifiedPath { path, id })
        };
        Ok(Invocation {
            tree,
            inputs: pending.sources.iter().map(input).collect::<Result<_, StorageError>>()?,
            outputs: stage.outputs().collect(),
            work: own(stage.work())?,
            outbox: own(stage.outbox())?,
            stage: own(stage.directory())?,
            log: LOG,
            access: pending.computation.access.clone(),
        })
    }

    /// Whatever fails where the storage has vanished fails because of that.
    pub(super) fn blame(&self, outcome: Outcome) -> Outcome {
        let Outcome::Failed { name, .. } = &outcome else { return outcome };
        match self.evaluation.storage.vanished() {
            Some(error) => Outcome::failed(name.clone(), error),
            None => outcome,
        }
    }

    /// Publishes what was executed and is flushed.
    pub(super) fn publish(&self, executed: Executed<'_>) -> Outcome {
        let Executed { id, name, inputs, sealed, taken_over, remembered, forced, _lease } =
            executed;
        let computation = self.evaluation.computation(id);
        let call = call_of(computation, &inputs);
        let published = sealed.publish(call, &name, forced).and_then(|outputs| {
            if remembered {
                self.evaluation.storage.forget(&outputs.name)?;
            }
            Ok(outputs)
        });
        match published {
            Ok(outputs) if taken_over => Outcome::TakenOver(outputs),
            Ok(outputs) => Outcome::Executed(outputs),
            Err(error) => Outcome::failed(name, error),
        }
    }
}

impl Executed<'_> {
    /// Throws the outputs away, which could not be flushed.
    pub(super) fn give_up(self, error: Arc<StorageError>) -> Outcome {
        Outcome::failed(self.name, error)
    }
}

/// What the storage knows a call by.
fn call_of<'a>(computation: &'a Computation, inputs: &'a [Digest]) -> Call<'a> {
    Call { version: Version::of(computation), inputs, outputs: computation.outputs.len() }
}

/// What `exec` was called with, in the storage's names.
fn argv(call: Call<'_>, name: &ResultName, sources: &[Stored]) -> Vec<String> {
    let exec = format!("{LIBRARY}/{}/exec", call.version.computation);
    let outputs = (0..call.outputs).map(|number| name.output(number));
    let sources = sources.iter().map(|file| file.name.clone());
    std::iter::once(exec).chain(sources).chain(outputs).collect()
}

/// Remembers a failure.
fn fail(stage: Stage<'_>, call: Call<'_>, name: &ResultName, error: CallError) -> Outcome {
    let name = name.clone();
    if error.is_storage() {
        return Outcome::failed(name, error);
    }
    let (exit_status, signal, seconds) = match &error {
        CallError::Ended(ended) => match ended.status {
            Status::Exited(status) => (Some(status), None, ended.seconds()),
            Status::Killed(signal) | Status::TimedOut(signal, _) => {
                (None, Some(signal), ended.seconds())
            }
        },
        _ => (None, None, 0.0),
    };
    let failure = Failure { reason: error.to_string(), exit_status, signal, seconds };
    match stage.fail(call, &name, failure) {
        Ok(log) => Outcome::Failed { name, error: Box::new(error), log },
        Err(error) => Outcome::failed(name, error),
    }
}

fn execution(ended: &Ended, computation: &Computation, argv: Vec<String>) -> Execution {
    let rules = computation.access.rules.iter();
    let (isolation, access) = match ended.isolation {
        Isolation::None => (NOT_ISOLATED, Vec::new()),
        Isolation::Namespaces => ("namespaces", rules.map(ToString::to_string).collect()),
    };
    Execution {
        argv,
        isolation: isolation.to_owned(),
        access,
        start: ended.start,
        end: ended.end,
        user_seconds: ended.user.as_secs_f64(),
        system_seconds: ended.system.as_secs_f64(),
        peak_bytes: ended.peak,
        exit_status: 0,
        taken_over: None,
    }
}
