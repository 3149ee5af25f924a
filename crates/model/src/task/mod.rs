//! The data types of a task, without any I/O.
//!
//! - [`workflow`]: the task, its expression and its computations.
//! - [`expression`]: the workflow as somebody wrote it, and as text.
//! - [`name`]: the names that users write. [`slice`](mod@slice): the outputs that a node passes up.
//! - [`points`]: what a sweep evaluates its body for. [`sweep`]: the rules of a sweep.
//! - [`template`]: values in which names stand for texts.
//! - [`resources`]: what calls ask for.
//! - [`access`]: grants of access beyond a computation's own tree.
//! - [`text`]: parsing of text files into lines.

pub mod access;
pub mod expression;
pub(crate) mod ids;
pub mod name;
pub mod points;
pub mod resources;
pub mod slice;
pub mod sweep;
pub mod template;
pub mod text;
pub mod workflow;
