//! `ce-run`, as users see it.

mod arguments;
mod at;
mod calls;
mod changing;
mod damage;
mod detach;
mod escape;
mod exports;
mod fail_fast;
mod failures;
mod force;
mod hints;
mod hosts;
mod inputs;
mod interrupt;
mod large_outputs;
mod lfs_files;
mod limits;
mod looking;
mod members;
mod named;
mod names;
mod output;
mod own_files;
mod signals;
mod storage;
mod strangers;
mod style;
mod takeover;
mod templates;
mod terminal;
mod trees;
mod trust;
mod uncommitted;
mod versions;

pub(crate) use self::hosts::{child, elsewhere};
