//! Questions about results. They return values, which others format.
//!
//! - [`diff`]: where two evaluations, or two tables, differ. [`explain`]: why a call is missing.
//! - [`bisect`]: the search for the first bad commit, and the judgement of a commit.
//! - [`audit`]: recorded calls are executed again, and compared with their results.
//! - [`table`]: the table of a sweep as far as it is there. [`table::RowOrigin`]: the execution that made a row.
//! - [`table_summary`]: the medians of its measurements, and their intervals.
//! - [`compared_medians`]: the medians of two levels or two tables, compared. [`table_from_file`]: a table that somebody gives as a file.
//! - [`page`]: the data of a page about a task or a storage.

pub mod audit;
pub mod bisect;
pub mod compared_medians;
pub mod diff;
pub mod explain;
pub mod page;
pub mod table;
pub mod table_from_file;
pub mod table_summary;
