//! Evaluation: each call of a plan once, in parallel, by counting down.
//!
//! A call is ready when no input of it is pending any more. Whatever is ready is processed by the next
//! free worker, and submitted if it is to be executed; a call that is over counts down its dependents.
//! No thread waits for a call, so there is no depth of recursion and no deadlock. The only place where
//! plan, storage and executor meet.

mod attempt;
mod audit;
mod call;
mod derived_values;
mod evaluation;
mod evicted_outputs;
mod exports;
mod gather;
mod grants;
mod hint;
mod launcher;
mod outcome;
mod pending;
mod polled_calls;
mod publish;
mod queue;
mod remembered_failures;
mod reservations;
mod scheduler;
pub mod session;
mod sheet;
mod step;
mod stop;
mod suspended;
mod ticket;
mod waiting;
mod work_queue;
mod worker;

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::time::Duration;

pub use self::audit::{Audit, AuditBudget, AuditedCall, AuditedEnd};
pub use self::derived_values::{TreeValues, ValueError, export_tree};
pub use self::evaluation::{Evaluation, Files, Texts};
pub use self::exports::Exports;
pub use self::launcher::{InspectedCall, KeptDirectory, SuspensionAnswer, ask_suspended, inspect};
pub use self::outcome::{
    Absence, CallError, CallFailure, EvaluateError, Event, How, Outcome, SuspendedCall,
    Unavailable, Unfinished,
};
pub use self::queue::{TicketCounts, WorkerQueue};
pub use self::reservations::Misfit;
pub use self::sheet::PointsError;
pub use self::stop::StopReason;
pub use self::ticket::TicketRules;
pub use self::worker::{Worker, WorkerEvent, WorkerRules};
use ce_executor::Executor;
use ce_storage::ResultName;

/// Evaluates the calls of one evaluation.
pub struct Evaluator<'a> {
    /// The evaluation, which gets the outcomes.
    pub evaluation: &'a Evaluation,
    /// The settings for executions. Without them, nothing is computed or written.
    pub execution: Option<ExecutionSettings<'a>>,
    /// Receives events, in the thread where they happen.
    pub observe: &'a (dyn Fn(Event) + Sync),
}

/// How missing calls are executed, as the user wants it.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// The number of retries of a failed call.
    pub retries: u32,
    /// Whether failures that make rows of a table are tried again.
    pub retry_failed: bool,
    /// The time limit of an execution.
    pub timeout: Option<Duration>,
    /// The calls that are executed even if they have outputs.
    pub forced: HashSet<ResultName>,
    /// Whether outputs that are away are replaced by those that are made now, if these differ.
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
    /// What the user wants.
    pub policy: &'a Policy,
    /// Whether suspended calls are asked whether they go on still. A worker leaves that to the run.
    pub asks: bool,
    /// The queue of the workers that execute calls in place of the executor.
    pub queue: Option<&'a WorkerQueue>,
}

impl Evaluator<'_> {
    /// Evaluates with this number of workers, until every call has ended.
    ///
    /// # Errors
    ///
    /// Fails if the threads cannot be started, published outputs cannot be flushed, or the storage does not answer any more.
    pub fn evaluate(&self, jobs: NonZeroUsize) -> Result<(), EvaluateError> {
        let Evaluation { task, storage, .. } = self.evaluation;
        storage.load_record_cache(&task.name);
        let carried_out = scheduler::carry_out(self, jobs);
        // Whatever was not done was not for this reason.
        let carried_out = storage.away().map_or(carried_out, |error| Err(error.into()));
        let mut in_place = Ok(());
        if let Some(execution) = &self.execution {
            execution.executor.finish();
            in_place = storage.check_in_place();
        }
        storage.save_record_cache();
        carried_out.and(in_place.map_err(EvaluateError::from))?;
        if self.evaluation.plan.jobs().is_some() {
            // That was done for each point, and a call has the errors.
            return Ok(());
        }
        // An output may be derived from values that are known by now.
        let outputs = self.evaluation.plan.outputs().iter().copied();
        Ok(self.evaluation.derive(outputs, self.execution.is_some())?)
    }
}
