//! Evaluation: each call of a plan once, in parallel, by counting down.
//!
//! A call is ready when no input of it is pending any more. Whatever is ready is processed by the next
//! free worker, and submitted if it is to be executed; a call that is over counts down its dependents.
//! No thread waits for a call, so there is no depth of recursion and no deadlock. The only place where
//! plan, storage and executor meet.

mod audit;
mod call;
mod countdown;
mod derived_values;
mod evaluation;
mod evaluator;
mod evicted_outputs;
mod execution;
mod exports;
mod gather;
mod hint;
mod launcher;
mod outcome;
mod queue;
mod reservations;
mod scheduler;
pub mod session;
mod sheet;
mod step;
mod stop;
mod suspension;
mod ticket;
mod waiting;
mod worker;

pub use self::audit::{Audit, AuditBudget, AuditedCall, AuditedEnd};
pub use self::derived_values::{TreeValues, ValueError, export_tree};
pub use self::evaluation::{Evaluation, Files, Texts};
pub use self::evaluator::{Evaluator, ExecutionSettings, Policy};
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
