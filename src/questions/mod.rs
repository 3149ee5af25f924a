//! Queries on results, without execution. They return values, which `report` presents.
//!
//! - [`history`]: what is in a storage, who made it, and from what.
//! - [`compare`]: where two evaluations differ. [`explain`]: why a call is missing.
//! - [`bisect`]: the next commit to judge in a search for the first bad one.
//! - [`collect`]: which results nothing keeps, and their removal.

pub mod bisect;
pub mod collect;
pub mod compare;
pub mod explain;
pub mod history;
