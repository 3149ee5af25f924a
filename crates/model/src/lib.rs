//! The nouns of CompEval, and pure functions on them: digests, names, workflows, sweeps, and plans.
//!
//! Nothing here reads a file, starts a process, or prints.

pub mod access;
pub mod diagnosis;
pub mod digest;
pub mod exit;
pub mod expression;
pub mod hints;
pub mod humanize;
mod ids;
pub mod name;
pub mod plan;
pub mod resources;
pub mod slice;
pub mod suggest;
pub mod sweep;
pub mod task;
pub mod template;
pub mod text_file;
