//! Evaluation: each call of a plan once, in parallel, by counting down.
//!
//! A call is ready when no input of it is pending any more. A ready call is processed by the next
//! free worker, and submitted if it is to be executed; a call that is over counts down its dependents.
//! No thread waits for a call, so there is no depth of recursion and no deadlock. The only place where
//! plan, storage and executor meet.

mod audit;
mod call;
mod call_scheduler;
mod capacity;
mod computation_directories;
mod derived_values;
mod evaluation;
mod evaluator;
mod execution;
mod hint;
mod launcher;
mod outcome;
mod recorded_rows;
mod retry;
mod sealing_watch;
pub mod session;
mod suspended_calls;
mod sweep;
mod ticket;
mod value_error;
mod value_maker;
mod waiting_calls;
mod worker;
mod worker_queue;

pub use self::audit::{Audit, AuditBudget, AuditedCall, AuditedEnd, InputMissing};
pub use self::capacity::Unsatisfiable;
pub use self::computation_directories::Exports;
pub use self::derived_values::TreeValues;
pub use self::evaluation::{AwaitedCalls, Evaluation, Files, MemoryExcess, Texts};
pub use self::evaluator::Evaluator;
pub use self::launcher::{
    ExecutionSettings, ForcedCalls, InspectedCall, KeptDirectory, Policy, SuspensionAnswer,
    ask_suspended, inspect,
};
pub use self::outcome::{
    Absence, CallError, CallFailure, EvaluateError, Event, How, LimitedExecution, Outcome,
    PointsError, StopReason, SuspendedCall, Unavailable, Unfinished,
};
pub use self::recorded_rows::{RecordedPoint, RecordedRows};
pub use self::sweep::{CallNumbers, point_outputs};
pub use self::ticket::TicketRules;
pub use self::value_error::ValueError;
pub use self::value_maker::{LeafOrigin, export_tree};
pub use self::worker::{Worker, WorkerEvent, WorkerRules};
pub use self::worker_queue::{TicketCounts, WorkerQueue};
