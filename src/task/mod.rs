//! The data types of a task, without any I/O.
//!
//! - [`workflow`]: the task, its expression and its computations.
//! - [`expression`]: the workflow as somebody wrote it, and as text.
//! - [`name`]: the names that users write. [`slice`](mod@slice): the outputs that a node passes up.
//! - [`template`]: values in which names stand for texts.
//! - [`access`]: grants of access beyond a computation's own tree.
//! - [`text`]: parsing of text files into lines.

pub mod access;
pub mod expression;
pub mod name;
pub mod slice;
pub mod template;
pub mod text;
pub mod workflow;
