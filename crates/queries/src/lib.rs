//! Questions about results. They return values, which others format.
//!
//! - [`compare`]: where two evaluations differ. [`explain`]: why a call is missing.
//! - [`bisect`]: the next commit to judge in a search for the first bad one. [`judge`]: the judgement.
//! - [`audit`]: recorded calls are executed again, and compared with their results.
//! - [`table`]: the table of a sweep as far as it is there.
//! - [`page`]: the data of a page about a task or a storage.

pub mod audit;
pub mod bisect;
pub mod compare;
pub mod explain;
pub mod judge;
pub mod page;
pub mod table;
