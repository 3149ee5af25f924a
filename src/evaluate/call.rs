//! One call: found in the storage, or executed and published.

use super::{CallError, Evaluation, Evaluator, Event, Outcome};
use crate::digest::Digest;
use crate::executor::{Ended, ExecuteError, Executor, Invocation, Status};
use crate::plan::{CallId, Planned, Source};
use crate::storage::record::Execution;
use crate::storage::{Call, Found, ResultName, Stage};

impl Evaluator<'_> {
    pub(super) fn call(&self, evaluation: &Evaluation, id: CallId) -> Outcome {
        let planned = self.plan.call(id);
        let computation = &self.task.computations[planned.computation.index()];
        let known = planned
            .inputs
            .iter()
            .map(|source| evaluation.digest(self.files, *source));
        let known: Vec<Option<Digest>> = known.collect();
        let Some(inputs) = known.iter().copied().collect::<Option<Vec<Digest>>>() else {
            let name = ResultName::guess(computation, &known);
            return match self.executor {
                Some(_) if self.awaits_interrupted(evaluation, planned) => {
                    Outcome::Interrupted(name)
                }
                Some(_) => Outcome::Blocked(name),
                None => Outcome::Missing(name),
            };
        };
        let call = Call {
            computation,
            inputs: &inputs,
        };
        let name = match self.storage.find(call) {
            Ok(Found::Hit(outputs)) => return Outcome::Reused(outputs),
            Ok(Found::Absent(name)) => name,
            Err(error) => {
                let name = ResultName::guess(computation, &known);
                return Outcome::Failed {
                    name,
                    error: error.into(),
                    log: None,
                };
            }
        };
        let Some(executor) = self.executor else {
            return Outcome::Missing(name);
        };
        (self.observe)(Event::Started(id, name.clone()));
        let sources = self.sources(evaluation, planned);
        self.compute(executor, call, name, &sources)
    }

    /// Whether an input is missing only because the user asked to stop.
    fn awaits_interrupted(&self, evaluation: &Evaluation, planned: &Planned) -> bool {
        planned.inputs.iter().any(|source| match source {
            Source::Output { call, .. } => {
                matches!(evaluation.outcome(*call), Some(Outcome::Interrupted(_)))
            }
            Source::Input(_) | Source::Literal(_) => false,
        })
    }

    /// The names of the files that a call reads.
    fn sources(&self, evaluation: &Evaluation, planned: &Planned) -> Vec<String> {
        let name = |source: &_| evaluation.name(self.files, self.plan, *source);
        planned.inputs.iter().filter_map(name).collect()
    }

    fn compute(
        &self,
        executor: &dyn Executor,
        call: Call<'_>,
        name: ResultName,
        sources: &[String],
    ) -> Outcome {
        let stage = match self.storage.stage(call.computation.outputs.len()) {
            Ok(stage) => stage,
            Err(error) => {
                return Outcome::Failed {
                    name,
                    error: error.into(),
                    log: None,
                };
            }
        };
        let error = match self.execute(executor, call, &stage, sources) {
            Ok(ended) if ended.status == Status::Exited(0) => {
                let execution = execution(&ended, self.argv(call, &name, sources));
                match stage.publish(call, &name, execution) {
                    Ok(outputs) => return Outcome::Executed(outputs),
                    Err(error) => error.into(),
                }
            }
            Ok(ended) => CallError::Ended(ended.status),
            Err(ExecuteError::Interrupted) => return Outcome::Interrupted(name),
            Err(error) => error.into(),
        };
        match stage.fail(call, &name, &error.to_string()) {
            Ok(log) => Outcome::Failed { name, error, log },
            Err(_) if error.is_storage() => Outcome::Failed {
                name,
                error,
                log: None,
            },
            Err(error) => Outcome::Failed {
                name,
                error: error.into(),
                log: None,
            },
        }
    }

    fn execute(
        &self,
        executor: &dyn Executor,
        call: Call<'_>,
        stage: &Stage<'_>,
        sources: &[String],
    ) -> Result<Ended, ExecuteError> {
        executor.execute(&Invocation {
            exec: call.computation.exec.clone(),
            inputs: sources.iter().map(|name| self.storage.path(name)).collect(),
            outputs: stage.outputs().collect(),
            directory: stage.work(),
            log: stage.log(),
        })
    }

    /// What `exec` was called with, in the storage's names.
    fn argv(&self, call: Call<'_>, name: &ResultName, sources: &[String]) -> Vec<String> {
        let exec = format!("computations/{}/exec", call.computation.name);
        let outputs = (0..call.computation.outputs.len()).map(|number| name.output(number));
        std::iter::once(exec)
            .chain(sources.iter().cloned())
            .chain(outputs)
            .collect()
    }
}

fn execution(ended: &Ended, argv: Vec<String>) -> Execution {
    Execution {
        argv,
        isolation: "none".to_owned(),
        start: ended.start,
        end: ended.end,
        user_seconds: ended.user.as_secs_f64(),
        system_seconds: ended.system.as_secs_f64(),
        peak_bytes: ended.peak,
        exit_status: 0,
    }
}
