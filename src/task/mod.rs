//! The nouns of a task: what its files say, without any I/O.
//!
//! - [`workflow`]: the task, its expression and its computations.
//! - [`expression`]: the workflow as somebody wrote it, and as text.
//! - [`name`]: the names that users write. [`slice`](mod@slice): which outputs a node passes up.
//! - [`access`]: what a computation may use beyond its own tree.
//! - [`text`]: how text files are divided into lines.

pub mod access;
pub mod expression;
pub mod name;
pub mod slice;
pub mod text;
pub mod workflow;
