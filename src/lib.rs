//! CompEval evaluates workflows of expensive computations, and never computes anything twice.
//!
//! A [`Task`](task::Task) is a Git repository. It holds a [`Workflow`](task::Workflow), an
//! expression tree kept as directories, and the names of the inputs that it reads. Each node of
//! the tree is a task input, a literal (a file in the storage), or a
//! [`Computation`](task::Computation): a named executable, at a commit, that turns input files
//! into output files. A computation with its inputs and outputs is a call; a task with its inputs
//! and outputs is a job. All of them are kept in the global file [`Storage`](storage::Storage),
//! under names that say which computation, which commit and which inputs made them.
//!
//! Data goes one way:
//!
//! ```text
//! argv -> cli        what was typed
//!      -> session    one evaluation, from options to the published job
//!      -> load       task repository -> Task, or every problem at once
//!      -> plan       Task -> unique calls, leaves first; reads nothing
//!      -> evaluate   each call once: found | missing | executed and published | failed | blocked
//!      -> storage    the only writer of the storage;    executor: the only starter of processes
//!      -> report     events as they happen -> tree, progress, JSON lines
//!      -> expression the same workflow as text;   draw: as DOT, SVG
//! ```
//!
//! `load`, `plan`, `storage` and `executor` never import each other: only `evaluate` connects them.
//!
//! The modules, from the ground up:
//!
//! - [`digest`]: hashes of contents, and ids of commits and trees.
//! - [`task`]: the data types of a task: its workflow, also as text, names, slices, granted access.
//! - [`cache`]: the user's cache, which may be lost: file stats, fingerprints, tables.
//! - [`sweep`]: the points of sweeps: sheets, levels, their product, and the table of results.
//! - [`manifest`]: directories as values: their manifests, and how they are read.
//! - [`umask`]: the umask of the user. A program whose storage a group shares takes it when it starts.
//! - [`git`]: reading Git repositories; the only user of gix.
//! - [`load`]: reads a task from a repository, or finds all its problems.
//! - [`plan`]: the unique calls of a task, in an order in which they can be evaluated.
//! - [`storage`]: files that never change, their records, and their maintenance.
//! - [`executor`]: starts processes, in a sandbox or without one.
//! - [`evaluate`]: evaluates the calls of a plan.
//! - [`session`]: evaluations on one storage, from options to the published job.
//! - [`history`]: what made a result, and what nobody needs. [`queries`]: comparison, explanation, bisection, audits, tables.
//! - [`exchange`]: push and pull.
//! - [`report`]: events and answers as text and JSON.
//! - [`edit`]: makes and changes tasks: a workflow from text, by an editor, or from nothing.
//! - [`draw`]: the workflow as a picture, in DOT or SVG.
//! - [`exit`]: exit codes, and every error that ends a program.
//!
//! A program that evaluates a task:
//!
//! ```no_run
//! use std::path::Path;
//!
//! use compeval::load::{self, Uncommitted};
//! use compeval::report;
//! use compeval::session::{Kept, RunOptions, Session};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let (dir, storage) = (Path::new("tasks/arith"), Path::new("../results"));
//!     let inputs = ["x", "y"].map(|file| Some(Path::new(file).into()));
//!     let task = load::task(dir, Uncommitted::Refuse, None)?.task;
//!     let session = Session::open(dir, storage, &RunOptions::default())?;
//!     let evaluation = session.prepare(session.bind(task, &inputs)?)?;
//!     report::evaluate_quietly(&session, &evaluation)?;
//!     for output in evaluation.outputs().unwrap_or_default() {
//!         println!("{}", session.storage().path(&output.name).display());
//!     }
//!     if let Kept::As(job) = session.publish_job(&evaluation)? {
//!         println!("kept as {}", job.short());
//!     }
//!     Ok(())
//! }
//! ```

#[doc(hidden)]
pub mod cli;

pub use ce_draw as draw;
pub use ce_evaluate as evaluate;
pub use ce_evaluate::session;
pub use ce_exchange as exchange;
pub use ce_executor as executor;
pub use ce_files::{cache, manifest, umask};
pub use ce_git as git;
pub use ce_history as history;
pub use ce_model::{
    declaration, digest, exit, expression, name, plan, resources, slice, sweep, task,
};
pub use ce_queries as queries;
pub use ce_report as report;
pub use ce_storage as storage;
pub use ce_task::{edit, load};
