//! CompEval evaluates workflows of expensive computations, and never computes anything twice.
//!
//! A [`Task`](workflow::Task) is a Git repository. It holds a [`Workflow`](workflow::Workflow), an
//! expression tree kept as directories, and the names of the inputs that it reads. Each node of
//! the tree is a task input, a literal (a file in the storage), or a
//! [`Computation`](workflow::Computation): a named executable, at a commit, that turns input files
//! into output files. A computation with its inputs and outputs is a call; a task with its inputs
//! and outputs is a job. All of them are kept in the global file [`Storage`](storage::Storage),
//! under names that say which computation, which commit and which inputs made them.
//!
//! Data goes one way:
//!
//! ```text
//! argv -> cli        what was typed
//!      -> load       task repository -> Task, or every problem at once
//!      -> plan       Task -> unique calls, leaves first; reads nothing
//!      -> evaluate   each call once: found | missing | executed and published | failed | blocked
//!      -> storage    the only writer of the storage;    executor: the only starter of processes
//!      -> report     events as they happen -> tree, progress, JSON lines
//!      -> export     the same expression as LISP, DOT, SVG
//! ```
//!
//! `load`, `plan`, `storage` and `executor` are strangers: only `evaluate` introduces them.
//!
//! ```
//! use compeval::plan::Plan;
//! use compeval::workflow::{Builder, InputId, Node};
//!
//! let mut builder = Builder::default();
//! let x = builder.intern(Node::Input(InputId::at(0)));
//! let plan = Plan::new(&builder.finish(x));
//! assert_eq!(plan.calls().len(), 0, "an input needs no call");
//! ```

pub mod access;
pub mod bisect;
pub mod cache;
pub mod cli;
pub mod collect;
pub mod compare;
pub mod count;
pub mod diagnosis;
pub mod digest;
pub mod error;
pub mod evaluate;
pub mod executor;
pub mod exit;
pub mod explain;
pub mod export;
pub mod footprint;
pub mod git;
pub mod history;
pub mod load;
pub mod name;
pub mod plan;
pub mod report;
pub mod slice;
pub mod storage;
pub mod text;
pub mod verify;
pub mod workflow;
