//! Questions about results. They return values, which others format.
//!
//! - [`diff`]: where two evaluations, or two tables, differ. [`explain`]: why a call is missing.
//! - [`bisect`]: the search for the first bad commit, and the judgement of a commit.
//! - [`audit`]: recorded calls are executed again, and compared with their results.
//! - [`frame`]: a table of results, its columns and its rows. [`table`] makes one of a sweep, [`table_from_file`] of a file, and
//!   [`page`] of a record.
//! - [`table_summary`]: the medians of its measurements, and their intervals. [`compared_medians`]: the medians of two levels or two tables,
//!   compared.
//! - [`page`]: the data of a page about a task or a storage.

pub mod audit;
pub mod benchmark_files;
pub mod bisect;
pub mod compared_medians;
pub mod diff;
pub mod explain;
pub mod frame;
pub mod page;
pub mod table;
pub mod table_from_file;
pub mod table_summary;
