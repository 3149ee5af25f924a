//! The nouns of CompEval, and pure functions on them: digests, names, workflows, points of sweeps, and plans.
//!
//! Nothing here reads a file, starts a process, or prints.

pub mod advice;
pub mod diagnosis;
pub mod digest;
pub mod exit;
pub mod expand;
pub mod plan;
pub mod task;
pub mod words;
