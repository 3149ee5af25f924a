//! CompEval evaluates workflows of expensive computations, and never computes anything twice.
//!
//! A [`Task`](workflow::Task) is a Git repository: it holds a [`Workflow`](workflow::Workflow), an
//! expression tree kept as directories, and the names of the inputs that it reads.
pub mod digest;
pub mod evaluate;
pub mod executor;
pub mod exit;
pub mod load;
pub mod name;
pub mod plan;
pub mod slice;
pub mod storage;
pub mod workflow;
