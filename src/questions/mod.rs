//! Queries on results, without execution. They return values, which `report` formats.
//!
//! - [`history`]: the files of a storage, their makers and their origins.
//! - [`compare`]: where two evaluations differ. [`explain`]: why a call is missing.
//! - [`bisect`]: the next commit to judge in a search for the first bad one. [`judge`]: the judgement.
//! - [`audit`]: recorded calls are executed again, and compared with their results.
//! - [`collect`]: choosing and removing results that are not kept.
//! - [`package`]: the files of results under readable names, for people without the storage.
//! - [`page`]: the data of a page about a task or a storage.
//! - [`status`]: what goes on in a storage, or waits.
//! - [`table`]: the table of a sweep as far as it is there.

pub mod audit;
pub mod bisect;
pub mod collect;
pub mod compare;
pub mod explain;
pub mod history;
pub mod judge;
pub mod package;
pub mod page;
pub mod status;
pub mod table;
